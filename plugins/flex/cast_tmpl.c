/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cast_tmpl.c - conversions from one element type to all others, compiled once per source type with
 * S the type (int32_t), S_NAME its dtype's name (i32) and S_FLOAT 0 or 1, S_BOOL 0 or 1.
 *
 * Floats truncate toward zero and saturate into integers, NaN gives 0; integers wrap; anything but
 * zero is true. f16 and bf16 are no element types here: cast.c goes through f32, and `odd` is the
 * conversion to f32 that rounds to odd, so that a second rounding to 16 bits is still right.
 */
#include "cast.h"

#include <math.h>
#include <string.h>

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)

#if S_BOOL
#define VALUE(x) ((S)((x) != 0))
#else
#define VALUE(x) (x)
#endif

#define D uint8_t
#define D_NAME u8
#define D_MIN 0
#define D_MAX UINT8_MAX
#include "cast_loop.h"
#define D int8_t
#define D_NAME i8
#define D_MIN INT8_MIN
#define D_MAX INT8_MAX
#include "cast_loop.h"
#define D uint16_t
#define D_NAME u16
#define D_MIN 0
#define D_MAX UINT16_MAX
#include "cast_loop.h"
#define D int16_t
#define D_NAME i16
#define D_MIN INT16_MIN
#define D_MAX INT16_MAX
#include "cast_loop.h"
#define D uint32_t
#define D_NAME u32
#define D_MIN 0
#define D_MAX UINT32_MAX
#include "cast_loop.h"
#define D int32_t
#define D_NAME i32
#define D_MIN INT32_MIN
#define D_MAX INT32_MAX
#include "cast_loop.h"
#define D uint64_t
#define D_NAME u64
#define D_MIN 0
#define D_MAX UINT64_MAX
#include "cast_loop.h"
#define D int64_t
#define D_NAME i64
#define D_MIN INT64_MIN
#define D_MAX INT64_MAX
#include "cast_loop.h"

static void to_bool(void *out, const void *in, uint64_t n)
{
    uint8_t *z = out;
    const S *x = in;
    for (uint64_t i = 0; i < n; i++) {
        z[i] = (uint8_t)(x[i] != (S)0);
    }
}

static void to_f32(void *out, const void *in, uint64_t n)
{
    float *z = out;
    const S *x = in;
    for (uint64_t i = 0; i < n; i++) {
        z[i] = (float)VALUE(x[i]);
    }
}

static void to_f64(void *out, const void *in, uint64_t n)
{
    double *z = out;
    const S *x = in;
    for (uint64_t i = 0; i < n; i++) {
        z[i] = (double)VALUE(x[i]);
    }
}

/* An f64 near enough: integers above 2^53 keep their top bits and a sticky one. */
static double widened(S value)
{
#if !S_FLOAT
    if (sizeof(S) == 8) {
        uint64_t bits = (uint64_t)value;
        int negative = (S)-1 < (S)1 && value < (S)1 && value != (S)0;
        uint64_t size = negative ? 0 - bits : bits;
        if (size >> 53 != 0) {
            size = (size & ~UINT64_C(0xffff)) | ((size & 0xffff) != 0 ? UINT64_C(0x8000) : 0);
        }
        return negative ? -(double)size : (double)size;
    }
#endif
    return (double)value;
}

static void to_odd(void *out, const void *in, uint64_t n)
{
    float *z = out;
    const S *x = in;
    for (uint64_t i = 0; i < n; i++) {
        double wide = widened(VALUE(x[i]));
        float narrow = (float)wide;
        double back = (double)narrow;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof(bits));
        int inexact = back != wide && wide == wide && (bits & 1u) == 0;
        uint32_t toward = fabs(back) < fabs(wide) ? 1u : UINT32_MAX;
        bits += inexact ? toward : 0u;
        memcpy(&z[i], &bits, sizeof(bits));
    }
}

const flex_cast_row PASTE(flex_cast_from_, S_NAME) = {
    .to =
        {
            [BURN_BOOL] = to_bool,
            [BURN_U8] = to_u8,
            [BURN_I8] = to_i8,
            [BURN_U16] = to_u16,
            [BURN_I16] = to_i16,
            [BURN_U32] = to_u32,
            [BURN_I32] = to_i32,
            [BURN_U64] = to_u64,
            [BURN_I64] = to_i64,
            [BURN_F32] = to_f32,
            [BURN_F64] = to_f64,
        },
    .odd = to_odd,
};
