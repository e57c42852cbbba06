/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * digest.c - the digest: each word is mixed in by an xor, a multiplication and a shift.
 *
 * Not cryptographic: it finds work that was left out or done differently, not forgeries. Runs
 * outside of what is timed.
 */
#include "digest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t fail(burn_err *err, int32_t code, const char *text)
{
    (void)snprintf(err->text, sizeof(err->text), "%s", text);
    err->code = code;
    return code;
}

static int mix(const float *values, int64_t n, uint64_t *digest)
{
    uint64_t mixed = *digest;
    int finite = 1;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = 0;
        memcpy(&bits, &values[i], sizeof(bits));
        finite &= isfinite(values[i]) != 0;
        mixed = (mixed ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
        mixed ^= mixed >> 29;
    }
    *digest = mixed;
    return finite;
}

int32_t bench_digest(const burn_tensor *t, uint64_t *digest, burn_err *err)
{
    int32_t code = burn_tensor_error(t, err);
    if (code != BURN_OK) {
        return code;
    }
    if (burn_dtype_of(t) != BURN_F32 || burn_numel(t) == 0) {
        return fail(err, BURN_E_DTYPE, "a result to compare is not f32, or empty");
    }
    const int64_t n = burn_numel(t);
    float *values = malloc((size_t)n * sizeof(*values));
    if (values == NULL) {
        return fail(err, BURN_E_NO_MEMORY, "no memory to read a result");
    }
    code = burn_read(t, values, (size_t)n * sizeof(*values), err);
    if (code == BURN_OK && !mix(values, n, digest)) {
        code = fail(err, BURN_E_DATA, "a result to compare is not finite");
    }
    free(values);
    return code;
}
