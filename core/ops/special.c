/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * special.c - samples with NaN, infinities, zeros of both signs and subnormals for ops that are not
 * pointwise (those the conformance tool tries with such values by itself).
 *
 * Each is one of the op's own samples once more, forward only, with other values. What an op moves
 * or compares may be anything; what it adds up has one answer whatever the order of the sums: small
 * whole numbers and few values that are not finite, which decide a sum for themselves. An op of
 * floats without such a sample is refused by the tool's check `definition`. To add one: a row in
 * the table beside the op's samples.
 */
#include "ops/rules.h"

#include <math.h>
#include <string.h>

#define MORE    (double)INFINITY
#define LESS    (-(double)INFINITY)
#define NO      (double)NAN
#define SMALL   0x1p-130  /* subnormal in f32 and bf16 */
#define HALF    0x1p-24   /* in f16 */
#define SMALLER 0x1p-1060 /* in f64 */

/*
 * A prime number of values, so that lines of a tensor differ: with NaN, one infinity, both, nothing
 * of that kind. No two subnormals are near, whose product would be 0 in one dtype only.
 */
static const double summed_values[] = {
    1, -2, NO, 3, 2,  -1, 1,  -0.0, 2, 1,    MORE, 2, -1, 0, 3,  1,    -2, 2,   1,    LESS,
    1, 3,  -1, 2, SMALL, 0, 1, 2, -0.0, 3,   -1,   1, 2,  LESS, 1, MORE, 2, 3,  -1,   1,
    2, -3, 1,  0, HALF,  2, -1, 1, 3,  2,    NO,   1, -0.0, 1, 2, -1,  SMALLER, 2, 1,
};

enum { N_SUMMED = sizeof(summed_values) / sizeof(summed_values[0]), SHIFT = 11 };

static void put_summed(burn_sample *s, uint32_t i)
{
    uint32_t from = i % 4 * SHIFT;
    burni_sample_values(s, i, N_SUMMED - from, summed_values + from);
    if (s->in[i].dtype == 0) { /* integers cannot hold them */
        s->dtypes = s->dtypes != 0 ? s->dtypes & BURN_SET_FLOAT : BURN_SET_FLOAT;
    }
}

/* The good sample of that name. */
static int32_t find_sample(burni_samples_fn rows, const char *name, burn_sample *out)
{
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; rc == BURN_OK; i++) {
        rc = rows(i, out);
        if (rc == BURN_OK && (out->flags & BURN_SAMPLE_ERROR) == 0 &&
            strcmp(out->name, name) == 0) {
            return BURN_OK;
        }
    }
    return rc;
}

void burni_sample_special(burn_sample *s, uint32_t moved, uint32_t summed)
{
    s->flags |= BURN_SAMPLE_NO_GRAD;
    for (uint32_t i = 0; i < s->n_in; i++) {
        if ((moved >> i & 1) != 0) {
            s->in[i].fill = BURN_FILL_SPECIAL;
        } else if ((summed >> i & 1) != 0) {
            put_summed(s, i);
        }
    }
}

int32_t burni_samples_special(uint32_t i, burn_sample *out, burni_samples_fn rows,
                              const burni_special *special, uint32_t n)
{
    int32_t rc = rows(i, out);
    if (rc != BURN_E_END) {
        return rc;
    }
    uint32_t n_rows = i;
    while (n_rows > 0 && rows(n_rows - 1, out) == BURN_E_END) {
        n_rows--;
    }
    if (i - n_rows >= n) {
        return BURN_E_END;
    }
    const burni_special *s = &special[i - n_rows];
    rc = find_sample(rows, s->like, out);
    if (rc == BURN_OK) {
        out->name = s->name;
        burni_sample_special(out, s->moved, s->summed);
    }
    return rc;
}
