/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * check.c - one op against its `eval`, on the bits that the device itself had as operands.
 *
 * Errors do not add up this way, however long a program is. Samples with their own operands are
 * held to their own tolerance; other operands (results of other ops) to a loose one that grows with
 * the operands' size, and not at all where they are huge or not finite, or the op jumps: there the
 * two may rightly differ. Shapes, dtypes, integers and codes always count.
 */
#include "program.h"

#include <burn_sdk/plugin.h>
#include <math.h>
#include <stdio.h>

#define HUGE_OPERAND 100.0

/* Ops whose result jumps where a rounding on the way differs, so that a decomposition may. */
static int jumps(const burn_op_def *def)
{
    static const uint64_t ids[] = {BURN_OP_REMAINDER, BURN_OP_FMOD,  BURN_OP_POW,  BURN_OP_ROUND,
                                   BURN_OP_ATAN2,     BURN_OP_FLOOR, BURN_OP_CEIL, BURN_OP_TRUNC,
                                   BURN_OP_SIGN,      BURN_OP_TAN,   BURN_OP_CAST};
    for (uint32_t i = 0; i < COUNT_OF(ids); i++) {
        if (def->id == ids[i]) {
            return 1;
        }
    }
    return 0;
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

/* The largest operand; infinity when one is not finite. */
static double largest(const conf_value *in, uint32_t n)
{
    double most = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint64_t k = 0; in[i].meta.kind != BURN_ABSENT && k < in[i].n; k++) {
            double x = fabs(conf_get(&in[i], k));
            if (!(x <= most)) {
                most = isnan(x) ? (double)INFINITY : x;
            }
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

static int compare_loose(const step *s, const conf_value *in, const conf_value *got,
                         const conf_value *want, char *text, size_t size)
{
    double big = largest(in, s->n_in);
    if (!conf_is_float(want->meta.dtype)) {
        int exact = !jumps(s->def) && big <= 1e15;
        return !exact || conf_compare(got, want, 0, text, size);
    }
    if (big > HUGE_OPERAND || jumps(s->def)) {
        return 1;
    }
    double scale = fmax(1.0, big) * fmax(1.0, big);
    scale *= s->def->fuse == BURN_FUSE_POINTWISE ? 1.0 : (double)most_elements(in, s->n_in);
    double allowed = 64.0 * fmax(s->tolerance, 16.0) * scale;
    for (uint64_t k = 0; k < want->n; k++) {
        double w = conf_get(want, k);
        if (fabs(w) <= HUGE_OPERAND &&
            !conf_close(conf_get(got, k), w, allowed, want->meta.dtype, 0.0)) {
            (void)snprintf(text, size, "element %llu is %.9g, not %.9g (allowed %g eps)",
                           (unsigned long long)k, conf_get(got, k), w, allowed);
            return 0;
        }
    }
    return 1;
}

static int compare_output(const step *s, const conf_value *in, const conf_value *got,
                          const conf_value *want, char *text, size_t size)
{
    if (got->meta.dtype != want->meta.dtype || !conf_same_shape(&got->meta, &want->meta)) {
        char a[160];
        char b[160];
        (void)snprintf(text, size, "is %s, not %s", conf_meta_text(a, sizeof(a), &got->meta),
                       conf_meta_text(b, sizeof(b), &want->meta));
        return 0;
    }
    if (!s->loose) {
        return conf_compare(got, want, s->tolerance, text, size);
    }
    return compare_loose(s, in, got, want, text, size);
}

int check_op(conf_arena *arena, burn_device *device, const step *s, const conf_value *in,
             const int32_t *in_codes, const conf_value *out, const int32_t *out_codes, char *text,
             size_t size)
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
        if (code == BURN_OK && !lacks &&
            !compare_output(s, in, &out[j], &want[j], why, sizeof(why))) {
            (void)snprintf(text, size, "output %u %s", j, why);
            return 0;
        }
    }
    return 1;
}
