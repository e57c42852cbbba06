/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sample_check.c - see sample_check.h.
 */
#include "sample_check.h"

#include "eval_builder.h"
#include "ops/rules.h"

#include <burn/call.h>
#include <burn_sdk/half.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct trial {
    const burn_op_def *def;
    const burn_sample *sample;
    uint8_t dtype;
    eval_builder *e;
    burn_value *in[16];
    int findings;
} trial;

static void finding(trial *t, const char *what, uint32_t operand, uint64_t k, double got,
                    double wanted)
{
    t->findings++;
    if (t->findings <= 3) {
        (void)printf("%s, sample \"%s\", %s: %s %u[%llu] is %.17g, wanted %.17g\n", t->def->name,
                     t->sample->name, burn_dtype_name(t->dtype), what, operand,
                     (unsigned long long)k, got, wanted);
    }
}

/* ---- filling --------------------------------------------------------------------------------- */

static double unit(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    double r = sqrt(-2.0 * log(1.0 - unit(state)));
    return r * cos(6.283185307179586 * unit(state));
}

static double special(uint64_t k, uint64_t *state)
{
    static const double values[] = {(double)NAN, HUGE_VAL, -HUGE_VAL, 0.0,
                                    -0.0,        1e-40,    1e30,      -1e30};
    return k % 3 == 0 ? values[(k / 3) % 8] : normal(state);
}

static double filled(const burn_sample_operand *o, uint64_t k, uint64_t *state, int is_float)
{
    switch (o->fill) {
    case BURN_FILL_UNIFORM:
        return o->lo + (o->hi - o->lo) * unit(state);
    case BURN_FILL_INDEX:
        return o->hi > 0.0 ? floor(unit(state) * o->hi) : 0.0;
    case BURN_FILL_SPECIAL:
        return special(k, state);
    case BURN_FILL_BOOL:
        return unit(state) < 0.7 ? 1.0 : 0.0;
    case BURN_FILL_VALUES:
        return o->values[k % o->n_values];
    case BURN_FILL_NONZERO:
        return (0.5 + 1.5 * unit(state)) * (unit(state) < 0.5 ? -1.0 : 1.0);
    default:
        return is_float ? normal(state) : floor(unit(state) * 19.0) - 9.0;
    }
}

/* The dtype tried, unless the role knows only one. */
static uint8_t role_dtype(const burn_role *role, uint8_t tried)
{
    uint64_t set = role->dtypes[0];
    return set != 0 && (set & (set - 1)) == 0 ? (uint8_t)__builtin_ctzll(set) : tried;
}

static burn_value *make_operand(trial *t, uint32_t i, uint64_t *state)
{
    const burn_sample_operand *o = &t->sample->in[i];
    const burn_role *role = &t->def->roles[i < t->def->n_in ? i : t->def->n_in - 1u];
    if (o->kind == BURN_ABSENT) {
        return NULL;
    }
    uint8_t dtype = o->dtype != 0 ? o->dtype : role_dtype(role, t->dtype);
    if (o->kind == BURN_IMMEDIATE) {
        return eval_scalar(t->e, dtype, o->lo);
    }
    int64_t n = burni_numel(o->rank, o->dims);
    double *numbers = calloc((size_t)n + 1, sizeof(double));
    for (int64_t k = 0; k < n; k++) {
        numbers[k] = filled(o, (uint64_t)k, state, burn_dtype_class(dtype) == BURN_CLASS_FLOAT);
    }
    burn_value *v = eval_tensor(t->e, dtype, o->rank, o->dims, numbers);
    free(numbers);
    return v;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int close_enough(double got, double wanted, double allowed)
{
    if (isnan(wanted) || isnan(got)) {
        return isnan(wanted) && isnan(got);
    }
    if (isinf(wanted) || isinf(got)) {
        return got == wanted;
    }
    return fabs(got - wanted) <= allowed * fmax(1.0, fabs(wanted));
}

static void compare_outputs(trial *t, burn_value *const *got, burn_value *const *wanted)
{
    for (uint32_t j = 0; j < eval_outputs(t->def, t->sample->attrs); j++) {
        const eval_value *g = eval_of(got[j]);
        const eval_value *w = eval_of(wanted[j]);
        double allowed = t->sample->tolerance * burn_epsilon(w->x.meta.dtype);
        if (g->code != BURN_OK) {
            t->findings++;
            (void)printf("%s, sample \"%s\": decomposition failed: %s\n", t->def->name,
                         t->sample->name, g->text);
            return;
        }
        if (g->x.meta.dtype != w->x.meta.dtype || g->x.meta.rank != w->x.meta.rank ||
            memcmp(g->x.meta.dims, w->x.meta.dims,
                   g->x.meta.rank * sizeof(g->x.meta.dims[0])) != 0) {
            finding(t, "dtype or shape of output", j, 0, g->x.meta.rank, w->x.meta.rank);
            return;
        }
        for (uint64_t k = 0; k < w->x.n; k++) {
            double a = burni_eval_get(&g->x, k);
            double b = burni_eval_get(&w->x, k);
            if (!close_enough(a, b, allowed)) {
                finding(t, "decomposed output", j, k, a, b);
            }
        }
    }
}

static int carries_gradient(const burn_role *role, const burn_value *v)
{
    return v != NULL && (role->flags & BURN_ROLE_NO_GRAD) == 0 &&
           eval_of(v)->x.meta.kind == BURN_TENSOR &&
           burn_dtype_class(eval_of(v)->x.meta.dtype) == BURN_CLASS_FLOAT;
}

/* sum of weight * output over the outputs that carry gradient */
static double objective(const trial *t, burn_value *const *seeds)
{
    eval_builder *e = eval_builder_new();
    burn_value *out[16] = {NULL};
    double sum = 0.0;
    (void)eval_run(e, t->def, t->sample->attrs, t->sample->attrs_size, t->in, t->sample->n_in, out);
    for (uint32_t j = 0; j < t->def->n_out; j++) {
        for (uint64_t k = 0; seeds[j] != NULL && k < eval_of(out[j])->x.n; k++) {
            sum += eval_at(out[j], k) * eval_at(seeds[j], k);
        }
    }
    eval_builder_free(e);
    return sum;
}

/* The core's part for pointwise ops: sums a gradient over the axes that were broadcast. */
static burn_value *sum_back(trial *t, const burn_value *grad, const burn_meta *x)
{
    eval_value *g = eval_of(grad);
    int64_t n = burni_numel(x->rank, x->dims);
    double *sums = calloc((size_t)n + 1, sizeof(double));
    int64_t strides[BURN_MAX_RANK] = {0};
    int64_t index[BURN_MAX_RANK] = {0};
    burn_meta wide = g->x.meta;
    if (wide.rank < x->rank) {
        wide = *x; /* a gradient may be smaller than its input */
    }
    int64_t from[BURN_MAX_RANK] = {0};
    burni_broadcast_strides(x, &wide, strides);
    burni_broadcast_strides(&g->x.meta, &wide, from);
    for (int more = burni_numel(wide.rank, wide.dims) > 0; more;) {
        sums[burni_offset(wide.rank, index, strides)] +=
            g->x.f[burni_offset(wide.rank, index, from)];
        more = burni_next_index(wide.rank, wide.dims, index);
    }
    burn_value *v = eval_tensor(t->e, x->dtype, x->rank, x->dims, sums);
    free(sums);
    return v;
}

static void compare_gradient(trial *t, uint32_t i, const burn_value *grad, burn_value *const *seeds)
{
    eval_value *x = eval_of(t->in[i]);
    for (uint64_t k = 0; k < x->x.n; k++) {
        double old = x->x.f[k];
        double step = 1e-5 * fmax(1.0, fabs(old));
        x->x.f[k] = old + step;
        double up = objective(t, seeds);
        x->x.f[k] = old - step;
        double down = objective(t, seeds);
        x->x.f[k] = old;
        double wanted = (up - down) / (2.0 * step);
        double got = grad != NULL ? eval_at(grad, k) : 0.0;
        if (!close_enough(got, wanted, 1e-6)) {
            finding(t, "gradient of input", i, k, got, wanted);
        }
    }
}

/* Runs the vjp with only what vjp_saves names for the wanted inputs. */
static void check_gradient(trial *t, burn_value *const *out, uint32_t only)
{
    const burn_op_def *def = t->def;
    burn_builder b = eval_builder_of(t->e);
    burn_value *saved_in[16] = {NULL};
    burn_value *saved_out[16] = {NULL};
    burn_value *seeds[16] = {NULL};
    burn_value *grads[16] = {NULL};
    burn_meta metas[16];
    uint8_t wanted[16] = {0};
    uint32_t saves = 0;
    uint32_t n_wanted = 0;
    uint64_t state = 77;
    memset(metas, 0, sizeof(metas));
    for (uint32_t i = 0; i < def->n_in; i++) {
        wanted[i] = carries_gradient(&def->roles[i], t->in[i]) && (only == 99 || only == i);
        saves |= wanted[i] ? def->vjp_saves[i] : 0;
        n_wanted += wanted[i];
        if (t->in[i] != NULL) {
            metas[i] = eval_of(t->in[i])->x.meta;
        }
    }
    if (n_wanted == 0) {
        return;
    }
    for (uint32_t i = 0; i < def->n_in; i++) {
        saved_in[i] = (saves & BURN_SAVE_IN(i)) != 0 ? t->in[i] : NULL;
    }
    for (uint32_t j = 0; j < def->n_out; j++) {
        saved_out[j] = (saves & BURN_SAVE_OUT(j)) != 0 ? out[j] : NULL;
        if (carries_gradient(&def->roles[def->n_in + j], out[j])) {
            const burn_eval_operand *y = &eval_of(out[j])->x;
            seeds[j] = eval_tensor(t->e, y->meta.dtype, y->meta.rank, y->meta.dims, y->f);
            for (uint64_t k = 0; k < y->n; k++) {
                eval_of(seeds[j])->x.f[k] = normal(&state);
            }
        }
    }
    burn_vjp a = {sizeof(a), def->n_in, def->n_out, t->sample->attrs_size, saved_in, saved_out,
                  seeds,     wanted,    metas,      grads, t->sample->attrs};
    if (def->vjp(&b, &a) != BURN_OK) {
        finding(t, "code of vjp", 0, 0, -1, 0);
        return;
    }
    for (uint32_t i = 0; i < def->n_in; i++) {
        if (wanted[i] && grads[i] != NULL && eval_of(grads[i])->code != BURN_OK) {
            (void)printf("%s: vjp failed: %s\n", def->name, eval_of(grads[i])->text);
            t->findings++;
        } else if (wanted[i]) {
            if (grads[i] != NULL && def->fuse == BURN_FUSE_POINTWISE) {
                grads[i] = sum_back(t, grads[i], &metas[i]);
            }
            compare_gradient(t, i, grads[i], seeds);
        }
    }
}

static void check_error(trial *t, int32_t code, burn_value *const *out)
{
    const char *text = code != BURN_OK ? eval_of(out[0])->text : "";
    if (code != t->sample->error) {
        finding(t, "error code of", 0, 0, code, t->sample->error);
    } else if (strncmp(text, t->def->name, strlen(t->def->name)) != 0) {
        t->findings++;
        (void)printf("%s: the error does not start with the op: %s\n", t->def->name, text);
    }
    if (code == BURN_E_DATA && t->def->decompose != NULL) {
        burn_value *again[16] = {NULL};
        (void)eval_expand(t->e, t->def, t->sample->attrs, t->sample->attrs_size, t->in,
                          t->sample->n_in, again);
        if (again[0] == NULL || eval_of(again[0])->code != BURN_E_DATA) {
            finding(t, "error code of the decomposition of", 0, 0, 0, BURN_E_DATA);
        }
    }
}

static int try_sample(const burn_op_def *def, const burn_sample *sample, uint8_t dtype)
{
    trial t = {def, sample, dtype, eval_builder_new(), {NULL}, 0};
    burn_value *wanted[16] = {NULL};
    burn_value *got[16] = {NULL};
    uint64_t state = 1234;
    for (uint32_t i = 0; i < sample->n_in; i++) {
        t.in[i] = make_operand(&t, i, &state);
    }
    int32_t code =
        eval_run(t.e, def, sample->attrs, sample->attrs_size, t.in, sample->n_in, wanted);
    if ((sample->flags & BURN_SAMPLE_ERROR) != 0) {
        check_error(&t, code, wanted);
    } else if (code != BURN_OK) {
        t.findings++;
        (void)printf("%s, sample \"%s\": %s\n", def->name, sample->name, eval_of(wanted[0])->text);
    } else {
        if (def->decompose != NULL) {
            (void)eval_expand(t.e, def, sample->attrs, sample->attrs_size, t.in, sample->n_in, got);
            compare_outputs(&t, got, wanted);
        }
        if (def->vjp != NULL && dtype == BURN_F64 && (sample->flags & BURN_SAMPLE_NO_GRAD) == 0) {
            check_gradient(&t, wanted, 99);
            for (uint32_t i = 0; i < def->n_in; i++) {
                check_gradient(&t, wanted, i);
            }
        }
    }
    eval_builder_free(t.e);
    return t.findings;
}

/* The dtypes of the first role that knows more than one. */
static uint64_t leading_dtypes(const burn_op_def *def)
{
    for (uint32_t i = 0; i < def->n_in; i++) {
        uint64_t set = def->roles[i].dtypes[0];
        if ((set & (set - 1)) != 0) {
            return set;
        }
    }
    return BURN_SET_ANY;
}

int check_samples(const burn_op_def *def)
{
    static const uint8_t dtypes[] = {BURN_F64, BURN_F32, BURN_F16, BURN_BF16, BURN_I64, BURN_BOOL};
    burn_sample sample;
    int findings = 0;
    for (uint32_t i = 0; def->samples(i, &sample) == BURN_OK; i++) {
        uint64_t set = leading_dtypes(def) & (sample.dtypes != 0 ? sample.dtypes : ~0ull);
        for (uint32_t d = 0; d < sizeof(dtypes); d++) {
            if ((set >> dtypes[d] & 1) != 0) {
                findings += try_sample(def, &sample, dtypes[d]);
            }
        }
    }
    return findings;
}
