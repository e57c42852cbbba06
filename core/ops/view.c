/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * view.c - reshape, expand, permute, flip: ops that show the same storage in another shape.
 *
 * Owns the four definitions; slice and unfold are in window.c, cat and pad in movement.c. Each
 * has a `view` callback which gives the output's strides and offset in elements; nothing is ever
 * launched. A reshape that strides cannot express answers BURN_E_UNSUPPORTED: the core copies and
 * asks again. `eval` does not use `view`, so that one checks the other. To add a view op: infer,
 * view, eval, vjp, samples, and the definition with BURN_OP_PRIMITIVE and BURN_FUSE_VIEW.
 */
#include "ops/parts.h"

#include <string.h>

#define VIEW_DEF(NAME, name)                                                                       \
    BURNI_DEF(NAME, name), .flags = BURN_OP_PRIMITIVE, .n_in = 1, .n_out = 1,                      \
                           .roles = view_roles, .fuse = BURN_FUSE_VIEW,                            \
                           .vjp_saves = burni_saves_nothing

static const burn_role view_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_ANY),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_ANY),
};

/* ---- reshape --------------------------------------------------------------------------------- */

static int32_t check_dims(const char *op, const burn_attrs_shape *s, burn_err *err)
{
    if (s->n_dims > BURN_MAX_RANK) {
        return burni_fail(err, BURN_E_SHAPE, "%s: %u dims wanted, at most %d are possible", op,
                          (unsigned)s->n_dims, BURN_MAX_RANK);
    }
    for (uint32_t i = 0; i < s->n_dims; i++) {
        if (s->dims[i] < 0) {
            char text[192];
            return burni_fail(err, BURN_E_SHAPE, "%s: dim %u of %s is %lld, sizes start at 0", op,
                              (unsigned)i, burni_shape_text(text, sizeof(text), s->n_dims, s->dims),
                              (long long)s->dims[i]);
        }
    }
    return BURN_OK;
}

static int32_t infer_reshape(const burn_infer *a)
{
    const burn_attrs_shape *s = BURNI_ATTRS(a, burn_attrs_shape);
    const burn_meta *in = a->in[0];
    if (s == NULL) {
        return burni_no_attrs("reshape", a->err);
    }
    int32_t rc = check_dims("reshape", s, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    int64_t n = burni_numel(in->rank, in->dims);
    if (burni_numel(s->n_dims, s->dims) != n) {
        char from[192];
        char to[192];
        return burni_fail(a->err, BURN_E_SHAPE,
                          "reshape: %s has %lld elements and does not fit into %s; choose dims "
                          "with that product, or -1 for one of them",
                          burni_shape_text(from, sizeof(from), in->rank, in->dims), (long long)n,
                          burni_shape_text(to, sizeof(to), s->n_dims, s->dims));
    }
    return burni_set_shape("reshape", &a->out[0], s->n_dims, s->dims, a->err);
}

/* Runs of input dims that step evenly, inner dims merged into outer ones; sizes of 1 left out. */
typedef struct runs {
    uint32_t n;
    int64_t size[BURN_MAX_RANK];
    int64_t stride[BURN_MAX_RANK];
} runs;

static void merge_dims(const burn_view *a, runs *r)
{
    r->n = 0;
    for (uint32_t i = 0; i < a->in->rank; i++) {
        int64_t size = a->in->dims[i];
        int64_t stride = a->in_strides[i];
        if (size == 1) {
            continue;
        }
        if (r->n > 0 && r->stride[r->n - 1] == size * stride) {
            r->size[r->n - 1] *= size;
            r->stride[r->n - 1] = stride;
        } else {
            r->size[r->n] = size;
            r->stride[r->n] = stride;
            r->n++;
        }
    }
}

static int32_t view_reshape(const burn_view *a)
{
    runs r;
    const burn_meta *out = a->out;
    *a->out_offset = a->in_offset;
    burni_dense_strides(out->rank, out->dims, a->out_strides);
    if (burni_numel(out->rank, out->dims) == 0) {
        return BURN_OK;
    }
    merge_dims(a, &r);
    /* Output dims, the innermost first, are cut off the runs; each must end at a run's border. */
    int64_t left = r.n > 0 ? r.size[r.n - 1] : 1;
    int64_t stride = r.n > 0 ? r.stride[r.n - 1] : 1;
    for (uint32_t i = out->rank; i > 0; i--) {
        int64_t size = out->dims[i - 1];
        if (left == 1 && size != 1) {
            r.n--;
            left = r.size[r.n - 1];
            stride = r.stride[r.n - 1];
        }
        if (left % size != 0) {
            return BURN_E_UNSUPPORTED;
        }
        a->out_strides[i - 1] = stride;
        stride *= size;
        left /= size;
    }
    return BURN_OK;
}

static int32_t eval_reshape(const burn_eval *a)
{
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        burni_eval_move(&a->out[0], k, &a->in[0], k);
    }
    return BURN_OK;
}

static int32_t vjp_reshape(const burn_builder *b, const burn_vjp *a)
{
    if (a->wanted[0] && a->grad_out[0] != NULL) {
        a->grad_in[0] = burni_b_reshape_to(b, a->grad_out[0], &a->in_meta[0]);
    }
    return BURN_OK;
}

typedef struct shape_sample {
    const char *name;
    uint32_t rank;
    int64_t dims[BURN_MAX_RANK];
    burn_attrs_shape attrs;
    int32_t error;
} shape_sample;

#define SHAPE_HEAD BURNI_HEAD(burn_attrs_shape)

static const shape_sample reshape_samples[] = {
    {"matrix to rows", 2, {3, 4}, {SHAPE_HEAD, 2, 0, {2, 6}}, 0},
    {"flatten", 3, {3, 5, 7}, {SHAPE_HEAD, 1, 0, {105}}, 0},
    {"split", 1, {24}, {SHAPE_HEAD, 4, 0, {2, 3, 1, 4}}, 0},
    {"rank 0", 2, {1, 1}, {SHAPE_HEAD, 0, 0, {0}}, 0},
    {"from rank 0", 0, {0}, {SHAPE_HEAD, 3, 0, {1, 1, 1}}, 0},
    {"empty", 2, {0, 3}, {SHAPE_HEAD, 3, 0, {5, 0, 7}}, 0},
    {"too few elements", 2, {2, 3}, {SHAPE_HEAD, 1, 0, {11}}, BURN_E_SHAPE},
    {"negative size", 2, {2, 3}, {SHAPE_HEAD, 2, 0, {-2, -3}}, BURN_E_SHAPE},
    {"rank 9", 1, {1}, {SHAPE_HEAD, 9, 0, {1, 1, 1, 1, 1, 1, 1, 1}}, BURN_E_SHAPE},
};

static int32_t shape_samples(const shape_sample *rows, uint32_t n, uint32_t i, burn_sample *out)
{
    if (i >= n) {
        return BURN_E_END;
    }
    burni_sample_begin(out, rows[i].name, 0.0, 256.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, rows[i].rank, rows[i].dims);
    burni_sample_attrs(out, &rows[i].attrs, (uint32_t)sizeof(rows[i].attrs));
    if (rows[i].error != 0) {
        burni_sample_error(out, rows[i].error);
    }
    return BURN_OK;
}

static int32_t samples_reshape(uint32_t i, burn_sample *out)
{
    return shape_samples(reshape_samples, sizeof(reshape_samples) / sizeof(reshape_samples[0]), i,
                         out);
}

static const burni_special reshape_special[] = {
    {"flatten", "special values", 1, 0},
};

static int32_t reshape_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_reshape, reshape_special,
                                 BURNI_N_SPECIAL(reshape_special));
}

const burn_op_def burn_op_def_reshape = {
    VIEW_DEF(RESHAPE, reshape),
    .summary = "The same elements in row-major order under other dims",
    .attrs = burni_attrs_shape_rows,
    .n_attrs = BURNI_N_ATTRS_SHAPE,
    .attrs_size = (uint32_t)sizeof(burn_attrs_shape),
    .infer = infer_reshape,
    .view = view_reshape,
    .vjp = vjp_reshape,
    .eval = eval_reshape,
    .samples = reshape_all_samples,
};

/* ---- expand ---------------------------------------------------------------------------------- */

static int32_t infer_expand(const burn_infer *a)
{
    const burn_attrs_shape *s = BURNI_ATTRS(a, burn_attrs_shape);
    const burn_meta *in = a->in[0];
    if (s == NULL) {
        return burni_no_attrs("expand", a->err);
    }
    int32_t rc = check_dims("expand", s, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    int fits = in->rank <= s->n_dims;
    for (uint32_t i = 0; fits && i < in->rank; i++) {
        int64_t wanted = s->dims[s->n_dims - in->rank + i];
        fits = in->dims[i] == 1 || in->dims[i] == wanted;
    }
    if (!fits) {
        char from[192];
        char to[192];
        return burni_fail(a->err, BURN_E_SHAPE,
                          "expand: %s does not stretch to %s; aligned at the right, each size must "
                          "be equal or 1",
                          burni_shape_text(from, sizeof(from), in->rank, in->dims),
                          burni_shape_text(to, sizeof(to), s->n_dims, s->dims));
    }
    return burni_set_shape("expand", &a->out[0], s->n_dims, s->dims, a->err);
}

static int32_t view_expand(const burn_view *a)
{
    uint32_t lead = (uint32_t)(a->out->rank - a->in->rank);
    *a->out_offset = a->in_offset;
    for (uint32_t i = 0; i < a->out->rank; i++) {
        int stretched = i < lead || (a->in->dims[i - lead] == 1 && a->out->dims[i] != 1);
        a->out_strides[i] = stretched ? 0 : a->in_strides[i - lead];
    }
    return BURN_OK;
}

static void source_expand(const burn_eval *a, const int64_t *out_index, int64_t *in_index)
{
    const burn_meta *in = &a->in[0].meta;
    uint32_t lead = (uint32_t)(a->out[0].meta.rank - in->rank);
    for (uint32_t i = 0; i < in->rank; i++) {
        in_index[i] = in->dims[i] == 1 ? 0 : out_index[i + lead];
    }
}

static int32_t eval_expand(const burn_eval *a)
{
    return burni_eval_by_source(a, source_expand);
}

static int32_t vjp_expand(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_shape *s = BURNI_ATTRS(a, burn_attrs_shape);
    const burn_meta *in = &a->in_meta[0];
    int64_t axes[BURN_MAX_RANK];
    uint32_t n = 0;
    if (!a->wanted[0] || a->grad_out[0] == NULL || s == NULL) {
        return BURN_OK;
    }
    uint32_t lead = s->n_dims - in->rank;
    for (uint32_t i = 0; i < s->n_dims; i++) {
        if (i < lead || (in->dims[i - lead] == 1 && s->dims[i] != 1)) {
            axes[n++] = i;
        }
    }
    burn_value *g = a->grad_out[0];
    if (n > 0) {
        g = burn_b_reduce(b, BURN_OP_SUM, g, n, axes, 0);
    }
    a->grad_in[0] = burni_b_reshape_to(b, g, in);
    return BURN_OK;
}

static const shape_sample expand_samples[] = {
    {"column", 2, {3, 1}, {SHAPE_HEAD, 2, 0, {3, 5}}, 0},
    {"row", 1, {5}, {SHAPE_HEAD, 3, 0, {2, 3, 5}}, 0},
    {"rank 0", 0, {0}, {SHAPE_HEAD, 2, 0, {2, 3}}, 0},
    {"nothing to do", 2, {2, 3}, {SHAPE_HEAD, 2, 0, {2, 3}}, 0},
    {"inner and outer", 4, {1, 3, 1, 2}, {SHAPE_HEAD, 5, 0, {2, 4, 3, 5, 2}}, 0},
    {"to zero", 2, {3, 1}, {SHAPE_HEAD, 2, 0, {3, 0}}, 0},
    {"of zero", 2, {0, 1}, {SHAPE_HEAD, 3, 0, {2, 0, 4}}, 0},
    {"size 2 to 7", 2, {2, 3}, {SHAPE_HEAD, 2, 0, {7, 3}}, BURN_E_SHAPE},
    {"fewer dims", 2, {1, 3}, {SHAPE_HEAD, 1, 0, {3}}, BURN_E_SHAPE},
};

static int32_t samples_expand(uint32_t i, burn_sample *out)
{
    return shape_samples(expand_samples, sizeof(expand_samples) / sizeof(expand_samples[0]), i,
                         out);
}

static const burni_special expand_special[] = {
    {"inner and outer", "special values", 1, 0},
};

static int32_t expand_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_expand, expand_special,
                                 BURNI_N_SPECIAL(expand_special));
}

const burn_op_def burn_op_def_expand = {
    VIEW_DEF(EXPAND, expand),
    .summary = "Dims of size 1 (and new dims on the left) repeat without being stored",
    .attrs = burni_attrs_shape_rows,
    .n_attrs = BURNI_N_ATTRS_SHAPE,
    .attrs_size = (uint32_t)sizeof(burn_attrs_shape),
    .infer = infer_expand,
    .view = view_expand,
    .vjp = vjp_expand,
    .eval = eval_expand,
    .samples = expand_all_samples,
};

/* ---- permute --------------------------------------------------------------------------------- */

static int32_t infer_permute(const burn_infer *a)
{
    const burn_attrs_permute *p = BURNI_ATTRS(a, burn_attrs_permute);
    const burn_meta *in = a->in[0];
    int64_t dims[BURN_MAX_RANK] = {0};
    uint32_t seen = 0;
    if (p == NULL) {
        return burni_no_attrs("permute", a->err);
    }
    if (p->n_axes != in->rank) {
        return burni_fail(a->err, BURN_E_INVALID,
                          "permute: %u axes given for a tensor of rank %u; name each axis once",
                          (unsigned)p->n_axes, (unsigned)in->rank);
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        int32_t rc = burni_check_axis("permute", p->perm[i], in->rank, a->err);
        if (rc != BURN_OK) {
            return rc;
        }
        if ((seen >> p->perm[i]) & 1u) {
            return burni_fail(a->err, BURN_E_INVALID,
                              "permute: axis %lld stands twice in the order; name each axis once",
                              (long long)p->perm[i]);
        }
        seen |= 1u << p->perm[i];
        dims[i] = in->dims[p->perm[i]];
    }
    return burni_set_shape("permute", &a->out[0], in->rank, dims, a->err);
}

static int32_t view_permute(const burn_view *a)
{
    const burn_attrs_permute *p = (const burn_attrs_permute *)a->attrs;
    *a->out_offset = a->in_offset;
    for (uint32_t i = 0; i < a->out->rank; i++) {
        a->out_strides[i] = a->in_strides[p->perm[i]];
    }
    return BURN_OK;
}

static void source_permute(const burn_eval *a, const int64_t *out_index, int64_t *in_index)
{
    const burn_attrs_permute *p = (const burn_attrs_permute *)a->attrs;
    for (uint32_t i = 0; i < p->n_axes; i++) {
        in_index[p->perm[i]] = out_index[i];
    }
}

static int32_t eval_permute(const burn_eval *a)
{
    return burni_eval_by_source(a, source_permute);
}

static int32_t vjp_permute(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_permute *p = BURNI_ATTRS(a, burn_attrs_permute);
    int64_t back[BURN_MAX_RANK];
    if (!a->wanted[0] || a->grad_out[0] == NULL || p == NULL) {
        return BURN_OK;
    }
    for (uint32_t i = 0; i < p->n_axes; i++) {
        back[p->perm[i]] = i;
    }
    a->grad_in[0] = burn_b_permute(b, a->grad_out[0], p->n_axes, back);
    return BURN_OK;
}

typedef struct permute_sample {
    const char *name;
    uint32_t rank;
    int64_t dims[BURN_MAX_RANK];
    burn_attrs_permute attrs;
    int32_t error;
} permute_sample;

#define PERMUTE_HEAD BURNI_HEAD(burn_attrs_permute)

static const permute_sample permute_rows[] = {
    {"transpose", 2, {3, 5}, {PERMUTE_HEAD, 2, 0, {1, 0}}, 0},
    {"rotate", 3, {2, 3, 5}, {PERMUTE_HEAD, 3, 0, {2, 0, 1}}, 0},
    {"channels last to first", 4, {2, 3, 4, 5}, {PERMUTE_HEAD, 4, 0, {0, 3, 1, 2}}, 0},
    {"identity", 2, {1, 7}, {PERMUTE_HEAD, 2, 0, {0, 1}}, 0},
    {"rank 0", 0, {0}, {PERMUTE_HEAD, 0, 0, {0}}, 0},
    {"rank 8", 8, {1, 2, 1, 2, 3, 1, 2, 1}, {PERMUTE_HEAD, 8, 0, {7, 6, 5, 4, 3, 2, 1, 0}}, 0},
    {"empty", 3, {2, 0, 3}, {PERMUTE_HEAD, 3, 0, {2, 1, 0}}, 0},
    {"an axis twice", 2, {2, 3}, {PERMUTE_HEAD, 2, 0, {1, 1}}, BURN_E_INVALID},
    {"an axis missing", 3, {2, 3, 4}, {PERMUTE_HEAD, 2, 0, {1, 0}}, BURN_E_INVALID},
    {"no such axis", 2, {2, 3}, {PERMUTE_HEAD, 2, 0, {0, 2}}, BURN_E_INVALID},
};

static int32_t samples_permute(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(permute_rows) / sizeof(permute_rows[0])) {
        return BURN_E_END;
    }
    const permute_sample *row = &permute_rows[i];
    burni_sample_begin(out, row->name, 0.0, 256.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, row->rank, row->dims);
    burni_sample_attrs(out, &row->attrs, (uint32_t)sizeof(row->attrs));
    if (row->error != 0) {
        burni_sample_error(out, row->error);
    }
    return BURN_OK;
}

static const burni_special permute_special[] = {
    {"rotate", "special values", 1, 0},
    {"channels last to first", "special values, rank 4", 1, 0},
};

static int32_t permute_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_permute, permute_special,
                                 BURNI_N_SPECIAL(permute_special));
}

static const burn_attr permute_attrs[] = {
    BURNI_ATTR(burn_attrs_permute, n_axes, BURN_ATTR_U32, BURN_ATTR_KEY, "the tensor's rank"),
    BURNI_ATTR(burn_attrs_permute, perm, BURN_ATTR_I64_LIST, BURN_ATTR_KEY,
               "output axis i is input axis perm[i]"),
};

const burn_op_def burn_op_def_permute = {
    VIEW_DEF(PERMUTE, permute),
    .summary = "The axes in another order",
    .attrs = permute_attrs,
    .n_attrs = 2,
    .attrs_size = (uint32_t)sizeof(burn_attrs_permute),
    .infer = infer_permute,
    .view = view_permute,
    .vjp = vjp_permute,
    .eval = eval_permute,
    .samples = permute_all_samples,
};

/* ---- flip ------------------------------------------------------------------------------------ */

/* Unlike reductions, flip takes n_axes 0 as it stands: nothing is reversed. */
static int flips(const burn_attrs_axes *s, uint32_t axis)
{
    return s->n_axes > 0 && burni_is_reduced(s, axis);
}

static int32_t infer_flip(const burn_infer *a)
{
    const burn_attrs_axes *s = BURNI_ATTRS(a, burn_attrs_axes);
    if (s == NULL) {
        return burni_no_attrs("flip", a->err);
    }
    int32_t rc = burni_check_axes("flip", s, a->in[0]->rank, a->err);
    return rc != BURN_OK ? rc : burni_infer_same(a);
}

static int32_t view_flip(const burn_view *a)
{
    const burn_attrs_axes *s = (const burn_attrs_axes *)a->attrs;
    *a->out_offset = a->in_offset;
    for (uint32_t i = 0; i < a->in->rank; i++) {
        int turned = flips(s, i) && a->in->dims[i] > 0;
        a->out_strides[i] = turned ? -a->in_strides[i] : a->in_strides[i];
        if (turned) {
            *a->out_offset += (a->in->dims[i] - 1) * a->in_strides[i];
        }
    }
    /* Of an empty tensor nothing is read; its offset stays where the storage is. */
    if (burni_numel(a->in->rank, a->in->dims) == 0) {
        *a->out_offset = a->in_offset;
    }
    return BURN_OK;
}

static void source_flip(const burn_eval *a, const int64_t *out_index, int64_t *in_index)
{
    const burn_attrs_axes *s = (const burn_attrs_axes *)a->attrs;
    const burn_meta *in = &a->in[0].meta;
    for (uint32_t i = 0; i < in->rank; i++) {
        in_index[i] = flips(s, i) ? in->dims[i] - 1 - out_index[i] : out_index[i];
    }
}

static int32_t eval_flip(const burn_eval *a)
{
    return burni_eval_by_source(a, source_flip);
}

static int32_t vjp_flip(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_axes *s = BURNI_ATTRS(a, burn_attrs_axes);
    if (a->wanted[0] && a->grad_out[0] != NULL && s != NULL) {
        a->grad_in[0] = burn_b_flip(b, a->grad_out[0], s->n_axes, s->axes);
    }
    return BURN_OK;
}

typedef struct flip_sample {
    const char *name;
    uint32_t rank;
    int64_t dims[BURN_MAX_RANK];
    burn_attrs_axes attrs;
    int32_t error;
} flip_sample;

#define FLIP_HEAD BURNI_HEAD(burn_attrs_axes)

static const flip_sample flip_rows[] = {
    {"vector", 1, {7}, {FLIP_HEAD, 1, 0, {0}, 0}, 0},
    {"inner axis", 2, {3, 5}, {FLIP_HEAD, 1, 0, {1}, 0}, 0},
    {"outer axis", 2, {3, 5}, {FLIP_HEAD, 1, 0, {0}, 0}, 0},
    {"two of three", 3, {2, 3, 4}, {FLIP_HEAD, 2, 0, {0, 2}, 0}, 0},
    {"no axis", 2, {2, 3}, {FLIP_HEAD, 0, 0, {0}, 0}, 0},
    {"size 1", 2, {1, 3}, {FLIP_HEAD, 1, 0, {0}, 0}, 0},
    {"empty", 2, {0, 3}, {FLIP_HEAD, 2, 0, {0, 1}, 0}, 0},
    {"no such axis", 2, {2, 3}, {FLIP_HEAD, 1, 0, {2}, 0}, BURN_E_INVALID},
    {"an axis twice", 2, {2, 3}, {FLIP_HEAD, 2, 0, {1, 1}, 0}, BURN_E_INVALID},
};

static int32_t samples_flip(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(flip_rows) / sizeof(flip_rows[0])) {
        return BURN_E_END;
    }
    const flip_sample *row = &flip_rows[i];
    burni_sample_begin(out, row->name, 0.0, 256.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, row->rank, row->dims);
    burni_sample_attrs(out, &row->attrs, (uint32_t)sizeof(row->attrs));
    if (row->error != 0) {
        burni_sample_error(out, row->error);
    }
    return BURN_OK;
}

static const burni_special flip_special[] = {
    {"two of three", "special values", 1, 0},
};

static int32_t flip_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_flip, flip_special,
                                 BURNI_N_SPECIAL(flip_special));
}

const burn_op_def burn_op_def_flip = {
    VIEW_DEF(FLIP, flip),
    .summary = "The order of the elements along some axes reversed (no axis: unchanged)",
    .attrs = burni_attrs_axes_rows,
    .n_attrs = BURNI_N_ATTRS_AXES,
    .attrs_size = (uint32_t)sizeof(burn_attrs_axes),
    .infer = infer_flip,
    .view = view_flip,
    .vjp = vjp_flip,
    .eval = eval_flip,
    .samples = flip_all_samples,
};
