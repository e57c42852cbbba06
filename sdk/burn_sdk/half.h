/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * half.h - f16 and bf16 to float and back, exact for every bit pattern; how fine each format is.
 *
 * Owns the scalar conversions; vector forms are a backend's own. To float is exact, subnormals
 * and infinities included. From float rounds to nearest, ties to even, overflows to infinity and
 * keeps NaN a (quiet) NaN with its sign and upper payload bits. Needs no hardware support and no
 * rounding mode: integer arithmetic only. Plain C11 and C++17. To add a format: two functions here
 * and a row in element.h. [any]
 */
#ifndef BURN_SDK_HALF_H
#define BURN_SDK_HALF_H

#include <burn/dtype.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t burn_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float burn_float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* IEEE binary16 to float. */
static inline float burn_half_to_float(uint16_t half)
{
    uint32_t sign = ((uint32_t)half & 0x8000u) << 16;
    uint32_t exponent = ((uint32_t)half >> 10) & 0x1fu;
    uint32_t mantissa = (uint32_t)half & 0x3ffu;
    if (exponent == 0x1f) {
        uint32_t quiet = mantissa != 0 ? 0x00400000u : 0u;
        return burn_float_from_bits(sign | 0x7f800000u | quiet | (mantissa << 13));
    }
    if (exponent != 0) {
        return burn_float_from_bits(sign | ((exponent + 112u) << 23) | (mantissa << 13));
    }
    /* Subnormal or zero: mantissa * 2^-24, which a float holds exactly. */
    float magnitude = (float)mantissa * 5.9604644775390625e-08f;
    return burn_float_from_bits(sign | burn_float_bits(magnitude));
}

/* Float to IEEE binary16, to nearest even. */
static inline uint16_t burn_float_to_half(float value)
{
    uint32_t bits = burn_float_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    }
    if (magnitude >= 0x47800000u) {
        return (uint16_t)(sign | 0x7c00u); /* 2^16 and above */
    }
    if (magnitude >= 0x38800000u) {
        /* Normal in half; a carry out of the mantissa correctly raises the exponent, up to inf. */
        uint32_t odd = (magnitude >> 13) & 1u;
        return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
    }
    if (magnitude < 0x33000000u) {
        return (uint16_t)sign; /* below 2^-25: to zero */
    }
    uint32_t full = (magnitude & 0x007fffffu) | 0x00800000u;
    uint32_t shift = 126u - (magnitude >> 23); /* 14..24 */
    uint32_t kept = full >> shift;
    uint32_t rest = full & ((1u << shift) - 1u);
    uint32_t half_way = 1u << (shift - 1u);
    if (rest > half_way || (rest == half_way && (kept & 1u) != 0)) {
        kept++;
    }
    return (uint16_t)(sign | kept);
}

/* bfloat16 to float. */
static inline float burn_bfloat_to_float(uint16_t bfloat)
{
    return burn_float_from_bits((uint32_t)bfloat << 16);
}

/* Float to bfloat16, to nearest even. */
static inline uint16_t burn_float_to_bfloat(float value)
{
    uint32_t bits = burn_float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)((bits >> 16) | 0x0040u);
    }
    uint32_t odd = (bits >> 16) & 1u;
    return (uint16_t)((bits + 0x7fffu + odd) >> 16);
}

/*
 * Double to float, to odd: what lies between two floats takes the one with an odd last bit. Rounded
 * once more to half precision it gives what a single rounding would have given.
 */
static inline float burn_double_to_float_odd(double value)
{
    float single = (float)value;
    double back = (double)single;
    uint32_t bits = burn_float_bits(single);
    if (back == value || value != value || (bits & 1u) != 0) {
        return single;
    }
    int too_small = value < 0.0 ? back > value : back < value;
    return burn_float_from_bits(too_small ? bits + 1u : bits - 1u);
}

/* Double to IEEE binary16 and to bfloat16, to nearest even, rounded once. */
static inline uint16_t burn_double_to_half(double value)
{
    return burn_float_to_half(burn_double_to_float_odd(value));
}

static inline uint16_t burn_double_to_bfloat(double value)
{
    return burn_float_to_bfloat(burn_double_to_float_odd(value));
}

/* From 1 to the next number of a float format, the unit of tolerances; 0 for other dtypes. */
static inline double burn_epsilon(uint8_t dtype)
{
    switch (dtype) {
    case BURN_F16:
        return 0x1p-10;
    case BURN_BF16:
        return 0x1p-7;
    case BURN_F32:
        return 0x1p-23;
    case BURN_F64:
        return 0x1p-52;
    default:
        return 0.0;
    }
}

#endif /* BURN_SDK_HALF_H */
