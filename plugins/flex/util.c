/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * util.c - errors, dtype facts and scalar reads that all kernel files share.
 *
 * The dtype table is made from the list in dtype.h, since a plugin links to nothing of the core.
 * Nothing here is on a hot path. [any]
 */
#include "flex.h"

#include <burn_sdk/half.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const burn_host *flex_host;

#define DTYPE_BYTES(code, NAME, name, bytes, klass) [code] = (bytes),
const uint8_t flex_dtype_bytes[16] = {BURN_FOREACH_DTYPE(DTYPE_BYTES)};
#undef DTYPE_BYTES

#define DTYPE_NAME(code, NAME, name, bytes, klass) [code] = #name,
static const char *const dtype_names[16] = {BURN_FOREACH_DTYPE(DTYPE_NAME)};
#undef DTYPE_NAME

const char *flex_dtype_name(uint8_t dtype)
{
    const char *name = dtype < 16 ? dtype_names[dtype] : NULL;
    return name != NULL ? name : "none";
}

int32_t flex_fail(burn_err *err, int32_t code, const char *format, ...)
{
    if (err == NULL) {
        return code;
    }
    err->code = code;
    err->backend_code = 0;
    uint32_t cap = err->cap < sizeof(err->text) ? err->cap : (uint32_t)sizeof(err->text);
    if (cap > 0) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(err->text, cap, format, args);
        va_end(args);
    }
    return code;
}

/* One reader per class: the union is filled by memcpy, since immediates need not be aligned. */
typedef union scalar {
    uint8_t u8;
    int8_t i8;
    uint16_t u16;
    int16_t i16;
    uint32_t u32;
    int32_t i32;
    uint64_t u64;
    int64_t i64;
    float f32;
    double f64;
} scalar;

int64_t flex_read_i64(const void *data, uint8_t dtype)
{
    scalar s;
    memset(&s, 0, sizeof(s));
    memcpy(&s, data, flex_size(dtype));
    switch (dtype) {
    case BURN_I8:
        return s.i8;
    case BURN_I16:
        return s.i16;
    case BURN_U16:
        return s.u16;
    case BURN_I32:
        return s.i32;
    case BURN_U32:
        return s.u32;
    case BURN_I64:
        return s.i64;
    case BURN_U64:
        return (int64_t)s.u64;
    case BURN_BOOL:
    case BURN_U8:
        return s.u8;
    default:
        return (int64_t)flex_read_f64(data, dtype);
    }
}

double flex_read_f64(const void *data, uint8_t dtype)
{
    scalar s;
    memset(&s, 0, sizeof(s));
    memcpy(&s, data, flex_size(dtype));
    switch (dtype) {
    case BURN_F64:
        return s.f64;
    case BURN_F32:
        return (double)s.f32;
    case BURN_F16:
        return (double)burn_half_to_float(s.u16);
    case BURN_BF16:
        return (double)burn_bfloat_to_float(s.u16);
    case BURN_U64:
        return (double)s.u64;
    default:
        return (double)flex_read_i64(data, dtype);
    }
}

void flex_one(uint8_t dtype, char out[8])
{
    const double wide = 1.0;
    const float single = 1.0f;
    const uint64_t whole = 1;
    uint16_t half = dtype == BURN_F16 ? burn_float_to_half(1.0f) : burn_float_to_bfloat(1.0f);
    memcpy(out, &whole, sizeof(whole));
    if (dtype == BURN_F64) {
        memcpy(out, &wide, sizeof(wide));
    } else if (dtype == BURN_F32) {
        memcpy(out, &single, sizeof(single));
    } else if (dtype == BURN_F16 || dtype == BURN_BF16) {
        memcpy(out, &half, sizeof(half));
    }
}

int flex_step(uint32_t rank, const int64_t *dims, int64_t *index, uint32_t n_offsets,
              const int64_t *const *strides, int64_t *offsets)
{
    for (uint32_t axis = rank; axis-- > 0;) {
        index[axis]++;
        if (index[axis] < dims[axis]) {
            for (uint32_t k = 0; k < n_offsets; k++) {
                offsets[k] += strides[k][axis];
            }
            return 1;
        }
        index[axis] = 0;
        for (uint32_t k = 0; k < n_offsets; k++) {
            offsets[k] -= (dims[axis] - 1) * strides[k][axis];
        }
    }
    return 0;
}
