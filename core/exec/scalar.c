/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * scalar.c - immediates: converting a scalar to the dtype of the tensor that it meets.
 *
 * A value must fit: integers exactly and in range, floats unless a finite value would become
 * infinite. The 16 bytes of an immediate hold the value at their start.
 */
#include "base/error.h"
#include "exec/emit.h"

#include <burn_sdk/half.h>
#include <math.h>
#include <string.h>

double burni_scalar_f64(uint8_t dtype, const uint64_t bits[2])
{
    if (burn_dtype_size(dtype) == 0) {
        return (double)NAN;
    }
    double d;
    float f;
    switch (dtype) {
    case BURN_F64:
        memcpy(&d, bits, sizeof(d));
        return d;
    case BURN_F32:
        memcpy(&f, bits, sizeof(f));
        return (double)f;
    case BURN_F16:
        return (double)burn_half_to_float((uint16_t)bits[0]);
    case BURN_BF16:
        return (double)burn_bfloat_to_float((uint16_t)bits[0]);
    default:
        break;
    }
    uint32_t shift = 64 - 8 * burn_dtype_size(dtype);
    if (burn_dtype_class(dtype) == BURN_CLASS_INT) {
        return (double)((int64_t)(bits[0] << shift) >> shift);
    }
    return (double)(bits[0] << shift >> shift);
}

int64_t burni_scalar_whole(uint8_t dtype, const uint64_t bits[2])
{
    uint32_t klass = burn_dtype_class(dtype);
    uint32_t shift = 64 - 8 * burn_dtype_size(dtype);
    if (klass == BURN_CLASS_INT) {
        return (int64_t)(bits[0] << shift) >> shift;
    }
    return klass == BURN_CLASS_UINT ? (int64_t)(bits[0] << shift >> shift) : 0;
}

static int32_t does_not_fit(const char *what, uint8_t to, double value, burn_err *err)
{
    return burni_fail(err, BURN_E_DTYPE,
                      "%s: the scalar %g does not fit the dtype %s; cast the tensor first", what,
                      value, burn_dtype_name(to));
}

static int32_t to_float(double value, uint8_t to, uint64_t out[2], const char *what, burn_err *err)
{
    float f = (float)value;
    uint16_t h = 0;
    float back = f;
    if (to == BURN_F16) {
        h = burn_float_to_half(f);
        back = burn_half_to_float(h);
    } else if (to == BURN_BF16) {
        h = burn_float_to_bfloat(f);
        back = burn_bfloat_to_float(h);
    }
    if (to == BURN_F64) {
        memcpy(out, &value, sizeof(value));
        return BURN_OK;
    }
    if (isfinite(value) && !isfinite(back)) {
        return does_not_fit(what, to, value, err);
    }
    if (to == BURN_F32) {
        memcpy(out, &f, sizeof(f));
    } else {
        memcpy(out, &h, sizeof(h));
    }
    return BURN_OK;
}

/* Range of integer dtypes: bits of size and sign decide. */
static int int_fits(uint8_t to, int negative, uint64_t magnitude)
{
    uint32_t bits = 8 * burn_dtype_size(to);
    if (to == BURN_BOOL) {
        return !negative && magnitude <= 1;
    }
    if (burn_dtype_class(to) == BURN_CLASS_UINT) {
        return (!negative || magnitude == 0) && (bits == 64 || magnitude >> bits == 0);
    }
    uint64_t half = UINT64_C(1) << (bits - 1);
    return negative ? magnitude <= half : magnitude < half;
}

static int32_t to_int(uint8_t from, const uint64_t bits[2], uint8_t to, uint64_t out[2],
                      const char *what, burn_err *err)
{
    double value = burni_scalar_f64(from, bits);
    int negative = value < 0;
    uint64_t magnitude;
    if (burn_dtype_class(from) == BURN_CLASS_FLOAT) {
        if (!(fabs(value) < 18446744073709551616.0) || value != trunc(value)) {
            return does_not_fit(what, to, value, err);
        }
        magnitude = (uint64_t)fabs(value);
    } else {
        uint32_t shift = 64 - 8 * burn_dtype_size(from);
        int is_signed = burn_dtype_class(from) == BURN_CLASS_INT;
        uint64_t wide = is_signed ? (uint64_t)((int64_t)(bits[0] << shift) >> shift)
                                  : bits[0] << shift >> shift;
        negative = is_signed && (int64_t)wide < 0;
        magnitude = negative ? 0 - wide : wide;
    }
    if (!int_fits(to, negative, magnitude)) {
        return does_not_fit(what, to, value, err);
    }
    out[0] = negative ? 0 - magnitude : magnitude;
    return BURN_OK;
}

int32_t burni_scalar_convert(uint8_t from, const uint64_t bits[2], uint8_t to, uint64_t out[2],
                             const char *what, burn_err *err)
{
    out[0] = 0;
    out[1] = 0;
    if (burn_dtype_size(to) == 0 || burn_dtype_size(from) == 0) {
        return burni_fail(err, BURN_E_DTYPE, "%s: %u is not a dtype that scalars have", what,
                          burn_dtype_size(to) == 0 ? to : from);
    }
    if (from == to) {
        out[0] = bits[0];
        return BURN_OK;
    }
    if (burn_dtype_class(to) == BURN_CLASS_FLOAT) {
        return to_float(burni_scalar_f64(from, bits), to, out, what, err);
    }
    return to_int(from, bits, to, out, what, err);
}
