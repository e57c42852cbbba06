/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * check.c - one op against its `eval`, on the bits that the device itself had as operands.
 *
 * Errors do not add up this way, however long a program is, and what a device may differ in from
 * another is what each may differ in from eval. Samples with their own operands are held to their
 * own tolerance. For other operands (results of other ops) the tolerance follows from the op's: an
 * element may be off by that many eps of itself, and by what changes when the operands are off by
 * as many eps of themselves, which eval tells (a few times, at random). Where that is so much that
 * a rounding decides what comes out (floor near an integer, a sum that cancels), elements that
 * differ are counted apart; main.c has a limit for them. Shapes, dtypes and codes always count.
 */
#include "program.h"

#include <burn_sdk/plugin.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

/* A disturbance that is uniform in +-1 has a root mean square of 1/sqrt(3). The mean of SAMPLES
 * squares is below 1/10 of the true one once in 10^4 elements that differ at all; SAFETY covers
 * that and errors that add up instead of cancelling. */
#define SAMPLES 6
#define SAFETY  12.0
/* Beyond this part of the numbers involved, a tolerance compares nothing. */
#define WIDE (1.0 / 64)

typedef struct comparison {
    conf_arena *arena;
    const step *s;
    const conf_value *in;
    uint32_t out;
    const conf_value *got;
    const conf_value *want; /* rounded */
    double tolerance;
    double *spread; /* per element; NULL: not known yet */
    double big;     /* the largest finite operand */
} comparison;

double check_tolerance(const burn_op_def *def)
{
    burn_sample sample;
    double most = 1.0;
    for (uint32_t n = 0; n < 200 && def->samples != NULL; n++) {
        BURN_INIT(&sample, burn_sample);
        if (def->samples(n, &sample) != BURN_OK) {
            break;
        }
        most = fmax(most, sample.tolerance);
    }
    return most;
}

/* A copy of a float operand in which each element is off by up to `eps` of itself, and all by as
 * much more together, as the sums of many roundings are. `which` picks the random numbers. */
static void disturb(conf_arena *arena, conf_value *v, double eps, uint64_t which)
{
    if (v->f == NULL || v->meta.kind != BURN_TENSOR) {
        return;
    }
    double *f = conf_alloc(arena, v->n * sizeof(*f));
    double all = 2.0 * conf_uniform(which, v->n) - 1.0;
    for (uint64_t k = 0; k < v->n; k++) {
        f[k] = v->f[k] * (1.0 + eps * (all + 2.0 * conf_uniform(which, k) - 1.0));
    }
    v->f = f;
}

static int32_t first_failed(const step *s, const int32_t *codes)
{
    for (uint32_t i = 0; i < s->n_in; i++) {
        if (s->in[i] != NO_VALUE && codes[i] != BURN_OK) {
            return codes[i];
        }
    }
    return BURN_OK;
}

static double largest(const conf_value *in, uint32_t n)
{
    double most = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint64_t k = 0; in[i].meta.kind != BURN_ABSENT && k < in[i].n; k++) {
            double x = fabs(conf_get(&in[i], k));
            most = isfinite(x) ? fmax(x, most) : most;
        }
    }
    return most;
}

static uint64_t most_elements(const conf_value *in, uint32_t n)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < n; i++) {
        most = in[i].n > most ? in[i].n : most;
    }
    return most;
}

/* Root mean squares of what disturbed operands change; infinite where eval fails or a number stops
 * being one. A sum of n roundings is off by about sqrt(n) of them, so where ops sum the operands
 * are disturbed by more; eval itself adds one by one in double, which counts for f64. */
static void find_spread(comparison *c)
{
    const step *s = c->s;
    conf_value in[MAX_USES];
    conf_value exact[MAX_OUTS];
    conf_value out[MAX_OUTS];
    burn_err err = BURN_ERR_INIT;
    double n = s->def->fuse == BURN_FUSE_POINTWISE ? 1.0 : (double)most_elements(c->in, s->n_in);
    double roundings = c->want->meta.dtype == BURN_F64 ? n : sqrt(n) / 16;
    double eps = c->tolerance * fmax(1.0, roundings) * burn_epsilon(c->want->meta.dtype);
    c->spread = conf_alloc(c->arena, c->want->n * sizeof(double));
    int32_t rc = conf_evaluate_exact(c->arena, s->def, s->attrs, s->attrs_size, c->in, s->n_in,
                                     exact, s->n_out, &err);
    for (uint32_t n_done = 0; n_done < SAMPLES; n_done++) {
        memcpy(in, c->in, s->n_in * sizeof(in[0]));
        for (uint32_t i = 0; i < s->n_in; i++) {
            disturb(c->arena, &in[i], eps, 1000 + n_done * MAX_USES + i);
        }
        if (rc == BURN_OK) {
            rc = conf_evaluate_exact(c->arena, s->def, s->attrs, s->attrs_size, in, s->n_in, out,
                                     s->n_out, &err);
        }
        for (uint64_t k = 0; k < c->want->n; k++) {
            double off = rc == BURN_OK ? conf_get(&out[c->out], k) - conf_get(&exact[c->out], k)
                                       : (double)INFINITY;
            int same = rc == BURN_OK && conf_get(&out[c->out], k) == conf_get(&exact[c->out], k);
            c->spread[k] += same ? 0.0 : off * off / SAMPLES;
        }
    }
    for (uint64_t k = 0; k < c->want->n; k++) {
        c->spread[k] = isfinite(c->spread[k]) ? SAFETY * sqrt(c->spread[k]) : (double)INFINITY;
    }
    c->big = largest(c->in, s->n_in);
}

double check_tiny(uint8_t dtype)
{
    switch (dtype) {
    case BURN_F64:
        return DBL_MIN * DBL_EPSILON;
    case BURN_F16:
        return 0x1p-24;
    default:
        return (double)FLT_MIN * burn_epsilon(dtype);
    }
}

static int is_equal(const comparison *c, uint64_t k)
{
    if (c->want->u != NULL) {
        return c->got->u[k] == c->want->u[k];
    }
    if (c->want->i != NULL) {
        return c->got->i[k] == c->want->i[k];
    }
    double want = c->want->f[k];
    double got = c->got->f[k];
    if (got == want || (isnan(got) && isnan(want))) {
        return 1;
    }
    uint8_t dtype = c->want->meta.dtype;
    double allowed = c->tolerance * (burn_epsilon(dtype) * fabs(want) + check_tiny(dtype));
    return isfinite(want) && fabs(got - want) <= allowed;
}

/* Ops that add small numbers to 1 on their way, however small what comes out is. */
static int goes_through_one(const burn_op_def *def)
{
    static const uint64_t ids[] = {BURN_OP_LOG_SOFTMAX, BURN_OP_CROSS_ENTROPY};
    for (uint32_t i = 0; i < COUNT_OF(ids); i++) {
        if (def->id == ids[i]) {
            return 1;
        }
    }
    return 0;
}

/* A product or a partial sum may be infinite where the whole hardly fits. */
static int overflows(double got, double want, uint8_t dtype)
{
    double most = dtype == BURN_F64 ? DBL_MAX : dtype == BURN_F16 ? 65504.0 : (double)FLT_MAX;
    return !isfinite(got) && fabs(want) > most / 1024;
}

/* 1: it may differ that much, 0: it may not, -1: rounding decides. */
static int may_differ(comparison *c, uint64_t k)
{
    if (c->spread == NULL) {
        find_spread(c);
    }
    double got = conf_get(c->got, k);
    double want = conf_get(c->want, k);
    double allowed = c->spread[k];
    if (allowed > WIDE * fmax(c->big, fabs(want)) || (!conf_is_float(c->want->meta.dtype) &&
                                                      allowed > 0) ||
        overflows(got, want, c->want->meta.dtype)) {
        return -1;
    }
    double size = fmax(fabs(want), goes_through_one(c->s->def) ? 1.0 : 0.0);
    allowed += c->tolerance * burn_epsilon(c->want->meta.dtype) * size;
    /* What underflows on the way may be multiplied by an operand. */
    allowed += c->tolerance * check_tiny(c->want->meta.dtype) * fmax(1.0, c->big);
    return conf_is_float(c->want->meta.dtype) && fabs(got - want) <= allowed;
}

static int compare_derived(comparison *c, tally *count, char *text, size_t size)
{
    for (uint64_t k = 0; k < c->want->n; k++) {
        int may = is_equal(c, k) ? 1 : may_differ(c, k);
        if (may == 0) {
            (void)snprintf(text, size, "element %llu is %.9g, not %.9g (allowed %g eps of it and "
                           "%.3g for what operands that are off by as much change)",
                           (unsigned long long)k, conf_get(c->got, k), conf_get(c->want, k),
                           c->tolerance, c->spread[k]);
            return 0;
        }
        count->decided += may < 0;
    }
    return 1;
}

static int compare_output(comparison *c, tally *count, char *text, size_t size)
{
    const step *s = c->s;
    if (c->got->meta.dtype != c->want->meta.dtype ||
        !conf_same_shape(&c->got->meta, &c->want->meta)) {
        char a[160];
        char b[160];
        (void)snprintf(text, size, "is %s, not %s", conf_meta_text(a, sizeof(a), &c->got->meta),
                       conf_meta_text(b, sizeof(b), &c->want->meta));
        return 0;
    }
    count->values += c->want->n;
    if (!s->loose) {
        return conf_compare(c->got, c->want, s->tolerance, text, size);
    }
    c->tolerance = check_tolerance(s->def);
    return compare_derived(c, count, text, size);
}

int check_op(conf_arena *arena, burn_device *device, const step *s, const conf_value *in,
             const int32_t *in_codes, const conf_value *out, const int32_t *out_codes,
             tally *count, char *text, size_t size)
{
    conf_value want[MAX_OUTS];
    burn_err err = BURN_ERR_INIT;
    int32_t failed = first_failed(s, in_codes);
    int32_t code = failed != BURN_OK ? failed
                                     : conf_evaluate(arena, s->def, s->attrs, s->attrs_size, in,
                                                     s->n_in, want, s->n_out, &err);
    for (uint32_t j = 0; j < s->n_out; j++) {
        /* A device without a row may lack what the decomposition needs. */
        int lacks =
            out_codes[j] == BURN_E_UNSUPPORTED && burn_op_row(device, s->def->id, 0) == NULL;
        /* Where nothing is made, nothing need be looked at, not even a bad index. */
        int nothing = code == BURN_E_DATA && out_codes[j] == BURN_OK && out[j].n == 0;
        /* An output of a decomposition may depend on some of the operands only. */
        int apart = failed != BURN_OK && s->n_out > 1 && burn_op_row(device, s->def->id, 0) == NULL;
        int agree = out_codes[j] == code || lacks || nothing || apart ||
                    (failed != BURN_OK && out_codes[j] != BURN_OK);
        if (!agree) {
            (void)snprintf(text, size, "output %u: code %s, not %s (%.120s)", j,
                           burn_status_name(out_codes[j]), burn_status_name(code), err.text);
            return 0;
        }
        char why[300];
        comparison c = {arena, s, in, j, &out[j], &want[j], 0, NULL, 0};
        if (code == BURN_OK && !lacks && !compare_output(&c, count, why, sizeof(why))) {
            (void)snprintf(text, size, "output %u %s", j, why);
            return 0;
        }
    }
    return 1;
}
