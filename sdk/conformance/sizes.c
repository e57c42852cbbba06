/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sizes.c - the sizes of a case, and the same case at others.
 *
 * A size is a number above 1 that occurs in operands' dims, or in attributes that are dims of the
 * result; it is replaced wherever it occurs, so that most ops still take the case. Large cases have
 * one size so large that an operand has many elements, or all of them multiplied, within an amount
 * of work. Values are not touched: conf_case_inputs makes them anew.
 */
#include "conformance.h"

/* Of a result. */
#define MOST_ELEMENTS (INT64_C(1) << 21)

uint32_t conf_main_variant(const conf_case *c, uint32_t n)
{
    static conf_case other; /* large */
    for (uint32_t v = 0; v < n; v++) {
        other = *c;
        conf_case_dtypes(&other, v);
        if (other.dtype == BURN_F32) {
            return v;
        }
    }
    return 0;
}

static uint32_t add_size(int64_t *sizes, uint32_t n, int64_t size)
{
    uint32_t k = 0;
    while (k < n && sizes[k] != size) {
        k++;
    }
    if (k == n && size > 1 && n < BURN_MAX_RANK) {
        sizes[n++] = size;
    }
    return n;
}

uint32_t conf_distinct_sizes(const conf_case *c, int64_t *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_in; i++) {
        for (uint32_t d = 0; d < c->in[i].meta.rank; d++) {
            n = add_size(out, n, c->in[i].meta.dims[d]);
        }
    }
    for (uint32_t a = 0; a < c->def->n_attrs; a++) {
        uint32_t offset = 0;
        for (uint32_t k = 0; (offset = conf_dim_attr(c->def, a, k)) != 0; k++) {
            int64_t size = 0;
            memcpy(&size, c->sample.attrs + offset, sizeof(size));
            n = add_size(out, n, size);
        }
    }
    return n;
}

int64_t conf_first_size(const conf_case *c)
{
    int64_t found[BURN_MAX_RANK];
    return conf_distinct_sizes(c, found) > 0 ? found[0] : 0;
}

/* Attributes that are sizes of the result: `from` becomes `to`; 0: all get `to` times as large. */
static void resize_attrs(conf_case *c, int64_t from, int64_t to)
{
    for (uint32_t a = 0; a < c->def->n_attrs; a++) {
        uint32_t offset = 0;
        for (uint32_t k = 0; (offset = conf_dim_attr(c->def, a, k)) != 0; k++) {
            unsigned char *at = c->sample.attrs + offset;
            int64_t size = 0;
            memcpy(&size, at, sizeof(size));
            if (size > 1 && (from == 0 || size == from)) {
                size = from == 0 ? size * to : to;
                memcpy(at, &size, sizeof(size));
            }
        }
    }
}

void conf_resize(conf_case *c, int64_t from, int64_t to)
{
    for (uint32_t i = 0; i < c->n_in; i++) {
        for (uint32_t d = 0; d < c->in[i].meta.rank; d++) {
            if (c->in[i].meta.dims[d] == from) {
                c->in[i].meta.dims[d] = to;
            }
        }
    }
    resize_attrs(c, from, to);
}

int32_t conf_work(const conf_case *c, burn_meta *out, double *flops)
{
    const burn_meta *metas[CONF_MAX_IN];
    burn_err err = BURN_ERR_INIT;
    *flops = 0.0;
    int32_t code = conf_infer(c->def, c->sample.attrs, c->sample.attrs_size, c->in, c->n_in, out,
                              c->n_out, &err);
    if (code != BURN_OK || c->def->flops == NULL) {
        return code;
    }
    for (uint32_t i = 0; i < c->n_in; i++) {
        metas[i] = &c->in[i].meta;
    }
    burn_infer a;
    BURN_INIT(&a, burn_infer);
    a.n_in = c->n_in;
    a.n_out = c->n_out;
    a.attrs_size = c->sample.attrs_size;
    a.in = metas;
    a.out = out;
    a.attrs = c->sample.attrs;
    a.err = &err;
    *flops = (double)c->def->flops(&a);
    return BURN_OK;
}

/* ---- large cases ----------------------------------------------------------------------------- */

/* Elements of the largest operand; of ops without tensors, of what they make. */
static int64_t largest(const conf_case *c)
{
    burn_meta out[CONF_MAX_OUT];
    int64_t most = 0;
    double work = 0.0;
    int any = 0;
    for (uint32_t i = 0; i < c->n_in; i++) {
        int64_t n = c->in[i].meta.kind == BURN_TENSOR ? conf_count(&c->in[i].meta) : 0;
        most = n > most ? n : most;
        any |= c->in[i].meta.kind == BURN_TENSOR;
    }
    return any || conf_work(c, out, &work) != BURN_OK ? most : conf_count(&out[0]);
}

static void scale_all(conf_case *c, int64_t factor)
{
    for (uint32_t i = 0; i < c->n_in; i++) {
        for (uint32_t d = 0; d < c->in[i].meta.rank; d++) {
            int64_t size = c->in[i].meta.dims[d];
            c->in[i].meta.dims[d] = size > 1 ? size * factor : size;
        }
    }
}

/* The case with one size, or (form n) all of them, so large that an operand has `goal` elements. */
static void grow(conf_case *to, const conf_case *c, uint32_t form, int64_t goal)
{
    int64_t found[BURN_MAX_RANK];
    uint32_t n = conf_distinct_sizes(c, found);
    int64_t factor = 1;
    int64_t size = form < n ? found[form] : 0;
    for (*to = *c; largest(to) < goal && factor < goal && size <= goal; factor++) {
        *to = *c;
        if (form < n) {
            size = 2 * size + 1; /* odd, so that shares are not equal */
            conf_resize(to, found[form], size);
        } else {
            scale_all(to, factor + 1);
            resize_attrs(to, 0, factor + 1);
        }
    }
}

/* How often the elements of `meta` meet each element of `large`: by the dims that it has alone. */
static double meetings(const burn_meta *meta, const burn_meta *large)
{
    uint8_t used[BURN_MAX_RANK] = {0};
    double n = 1.0;
    for (uint32_t d = 0; d < meta->rank; d++) {
        uint32_t k = 0;
        while (k < large->rank && (used[k] != 0 || large->dims[k] != meta->dims[d])) {
            k++;
        }
        if (k < large->rank) {
            used[k] = 1;
        } else {
            n *= (double)meta->dims[d];
        }
    }
    return n;
}

/* Work of an op that does not say it. */
static double guess_work(const conf_case *c)
{
    uint32_t at = 0;
    double most = 1.0;
    for (uint32_t i = 0; i < c->n_in; i++) {
        int is_tensor = c->in[i].meta.kind == BURN_TENSOR;
        at = is_tensor && conf_count(&c->in[i].meta) > conf_count(&c->in[at].meta) ? i : at;
    }
    for (uint32_t i = 0; i < c->n_in; i++) {
        double n = c->in[i].meta.kind == BURN_TENSOR ? meetings(&c->in[i].meta, &c->in[at].meta)
                                                     : 1.0;
        most = n > most ? n : most;
    }
    return c->n_in > 0 ? most * (double)conf_count(&c->in[at].meta) : 1.0;
}

/* Sets the metas of the outputs; 0: the op does not take these sizes, or it is too much work. */
static int takes(conf_case *c, double most_work)
{
    burn_meta out[CONF_MAX_OUT];
    double work = 0.0;
    if (conf_work(c, out, &work) != BURN_OK) {
        return 0;
    }
    if ((c->def->flops != NULL ? work : guess_work(c)) > most_work) {
        return 0;
    }
    for (uint32_t j = 0; j < c->n_out; j++) {
        int64_t n = out[j].kind == BURN_TENSOR ? conf_count(&out[j]) : 0;
        if (n > MOST_ELEMENTS) {
            return 0;
        }
        memset(&c->out[j], 0, sizeof(c->out[j]));
        c->out[j].meta = out[j];
        c->out[j].n = (uint64_t)n;
    }
    return 1;
}

/* 0: this form has no large case. */
int conf_enlarge(conf_case *to, const conf_case *c, uint32_t form, const conf_extent *most)
{
    int64_t goal = most->elements;
    int64_t found[BURN_MAX_RANK];
    if (form > conf_distinct_sizes(c, found)) {
        return 0;
    }
    for (int64_t now = goal; now >= goal / 16; now /= 2) {
        grow(to, c, form, now);
        if (largest(to) >= now && takes(to, most->work)) {
            return 1;
        }
    }
    return 0;
}
