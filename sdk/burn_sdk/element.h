/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * element.h - loads and stores one element of any dtype as double, int64_t or uint64_t.
 *
 * Owns the conversion rules of the library, in scalar form: float to integer truncates, saturates
 * and turns NaN into 0; integer to integer wraps; anything but zero (NaN too) is a true bool; a
 * double on its way to f16 or bf16 is rounded once.
 * Slow and obvious: for references, templates and tests, not for inner loops. Memory need not be
 * aligned. To add a dtype: a row in <burn/dtype.h> and one case in each function here. [any]
 */
#ifndef BURN_SDK_ELEMENT_H
#define BURN_SDK_ELEMENT_H

#include <burn/dtype.h>
#include <burn_sdk/half.h>
#include <string.h>

/* Bytes of one element; 0 for a dtype without kernels. */
static inline uint32_t burn_element_size(uint8_t dtype)
{
    switch (dtype) {
#define BURN_ELEMENT_SIZE(code, NAME, name, bytes, klass)                                          \
    case code:                                                                                     \
        return bytes;
        BURN_FOREACH_DTYPE(BURN_ELEMENT_SIZE)
#undef BURN_ELEMENT_SIZE
    default:
        return 0;
    }
}

/* BURN_CLASS_* of a dtype; 0 for a dtype without kernels. */
static inline uint32_t burn_element_class(uint8_t dtype)
{
    switch (dtype) {
#define BURN_ELEMENT_CLASS(code, NAME, name, bytes, klass)                                         \
    case code:                                                                                     \
        return BURN_CLASS_##klass;
        BURN_FOREACH_DTYPE(BURN_ELEMENT_CLASS)
#undef BURN_ELEMENT_CLASS
    default:
        return 0;
    }
}

/* Name of a dtype for messages; "none" for a dtype without kernels. */
static inline const char *burn_element_name(uint8_t dtype)
{
    switch (dtype) {
#define BURN_ELEMENT_NAME(code, NAME, name, bytes, klass)                                          \
    case code:                                                                                     \
        return #name;
        BURN_FOREACH_DTYPE(BURN_ELEMENT_NAME)
#undef BURN_ELEMENT_NAME
    default:
        return "none";
    }
}

/* Truncates toward zero and saturates; NaN gives 0. */
static inline int64_t burn_double_to_i64(double value)
{
    if (value != value) {
        return 0;
    }
    if (value >= 9223372036854775808.0) {
        return INT64_MAX;
    }
    if (value <= -9223372036854775808.0) {
        return INT64_MIN;
    }
    return (int64_t)value;
}

static inline uint64_t burn_double_to_u64(double value)
{
    if (value != value || value <= 0.0) {
        return 0;
    }
    if (value >= 18446744073709551616.0) {
        return UINT64_MAX;
    }
    return (uint64_t)value;
}

static inline int64_t burn_clamp_i64(int64_t value, int64_t low, int64_t high)
{
    if (value < low) {
        return low;
    }
    return value > high ? high : value;
}

/* An integer's lowest and highest value; meaningless for other classes. */
static inline int64_t burn_element_low(uint8_t dtype)
{
    if (burn_element_class(dtype) != BURN_CLASS_INT) {
        return 0;
    }
    return -(int64_t)(UINT64_C(1) << (burn_element_size(dtype) * 8 - 2)) * 2;
}

static inline uint64_t burn_element_high(uint8_t dtype)
{
    uint32_t bits = burn_element_size(dtype) * 8;
    uint32_t spare = burn_element_class(dtype) == BURN_CLASS_INT ? 1 : 0;
    return UINT64_MAX >> (64 - bits + spare);
}

/* Integer bits of any integer or bool dtype, sign extended, as stored. */
static inline uint64_t burn_load_bits(const void *memory, uint8_t dtype)
{
    uint64_t u64 = 0;
    uint32_t u32 = 0;
    uint16_t u16 = 0;
    uint8_t u8 = 0;
    int is_signed = burn_element_class(dtype) == BURN_CLASS_INT;
    switch (burn_element_size(dtype)) {
    case 1:
        memcpy(&u8, memory, 1);
        return is_signed ? (uint64_t)(int64_t)(int8_t)u8 : u8;
    case 2:
        memcpy(&u16, memory, 2);
        return is_signed ? (uint64_t)(int64_t)(int16_t)u16 : u16;
    case 4:
        memcpy(&u32, memory, 4);
        return is_signed ? (uint64_t)(int64_t)(int32_t)u32 : u32;
    case 8:
        memcpy(&u64, memory, 8);
        return u64;
    default:
        return 0;
    }
}

static inline void burn_store_bits(void *memory, uint8_t dtype, uint64_t bits)
{
    uint32_t u32 = (uint32_t)bits;
    uint16_t u16 = (uint16_t)bits;
    uint8_t u8 = (uint8_t)bits;
    switch (burn_element_size(dtype)) {
    case 1:
        memcpy(memory, &u8, 1);
        break;
    case 2:
        memcpy(memory, &u16, 2);
        break;
    case 4:
        memcpy(memory, &u32, 4);
        break;
    case 8:
        memcpy(memory, &bits, 8);
        break;
    default:
        break;
    }
}

/* A float dtype's element as a double, exact; 0 for other dtypes. */
static inline double burn_load_float(const void *memory, uint8_t dtype)
{
    uint16_t half = 0;
    float single = 0.0f;
    double wide = 0.0;
    switch (dtype) {
    case BURN_F16:
        memcpy(&half, memory, 2);
        return (double)burn_half_to_float(half);
    case BURN_BF16:
        memcpy(&half, memory, 2);
        return (double)burn_bfloat_to_float(half);
    case BURN_F32:
        memcpy(&single, memory, 4);
        return (double)single;
    case BURN_F64:
        memcpy(&wide, memory, 8);
        return wide;
    default:
        return 0.0;
    }
}

static inline void burn_store_float(void *memory, uint8_t dtype, double value)
{
    float single = (float)value;
    uint16_t half = 0;
    switch (dtype) {
    case BURN_F16:
        half = burn_double_to_half(value);
        memcpy(memory, &half, 2);
        break;
    case BURN_BF16:
        half = burn_double_to_bfloat(value);
        memcpy(memory, &half, 2);
        break;
    case BURN_F32:
        memcpy(memory, &single, 4);
        break;
    case BURN_F64:
        memcpy(memory, &value, 8);
        break;
    default:
        break;
    }
}

static inline double burn_load_f64(const void *memory, uint8_t dtype)
{
    switch (burn_element_class(dtype)) {
    case BURN_CLASS_FLOAT:
        return burn_load_float(memory, dtype);
    case BURN_CLASS_INT:
        return (double)(int64_t)burn_load_bits(memory, dtype);
    case BURN_CLASS_UINT:
        return (double)burn_load_bits(memory, dtype);
    case BURN_CLASS_BOOL:
        return burn_load_bits(memory, dtype) != 0 ? 1.0 : 0.0;
    default:
        return 0.0;
    }
}

/* u64 above INT64_MAX wraps. */
static inline int64_t burn_load_i64(const void *memory, uint8_t dtype)
{
    switch (burn_element_class(dtype)) {
    case BURN_CLASS_FLOAT:
        return burn_double_to_i64(burn_load_float(memory, dtype));
    case BURN_CLASS_BOOL:
        return burn_load_bits(memory, dtype) != 0;
    default:
        return (int64_t)burn_load_bits(memory, dtype);
    }
}

/* Negative integers wrap. */
static inline uint64_t burn_load_u64(const void *memory, uint8_t dtype)
{
    switch (burn_element_class(dtype)) {
    case BURN_CLASS_FLOAT:
        return burn_double_to_u64(burn_load_float(memory, dtype));
    case BURN_CLASS_BOOL:
        return burn_load_bits(memory, dtype) != 0;
    default:
        return burn_load_bits(memory, dtype);
    }
}

static inline void burn_store_f64(void *memory, uint8_t dtype, double value)
{
    int64_t high = 0;
    uint64_t whole = 0;
    switch (burn_element_class(dtype)) {
    case BURN_CLASS_FLOAT:
        burn_store_float(memory, dtype, value);
        break;
    case BURN_CLASS_INT:
        high = (int64_t)burn_element_high(dtype);
        whole = (uint64_t)burn_clamp_i64(burn_double_to_i64(value), burn_element_low(dtype), high);
        burn_store_bits(memory, dtype, whole);
        break;
    case BURN_CLASS_UINT:
        whole = burn_double_to_u64(value);
        if (whole > burn_element_high(dtype)) {
            whole = burn_element_high(dtype);
        }
        burn_store_bits(memory, dtype, whole);
        break;
    case BURN_CLASS_BOOL:
        burn_store_bits(memory, dtype, value != 0.0);
        break;
    default:
        break;
    }
}

static inline void burn_store_i64(void *memory, uint8_t dtype, int64_t value)
{
    switch (burn_element_class(dtype)) {
    case BURN_CLASS_FLOAT:
        burn_store_float(memory, dtype, (double)value);
        break;
    case BURN_CLASS_BOOL:
        burn_store_bits(memory, dtype, value != 0);
        break;
    default:
        burn_store_bits(memory, dtype, (uint64_t)value);
        break;
    }
}

static inline void burn_store_u64(void *memory, uint8_t dtype, uint64_t value)
{
    switch (burn_element_class(dtype)) {
    case BURN_CLASS_FLOAT:
        burn_store_float(memory, dtype, (double)value);
        break;
    case BURN_CLASS_BOOL:
        burn_store_bits(memory, dtype, value != 0);
        break;
    default:
        burn_store_bits(memory, dtype, value);
        break;
    }
}

/* One element from one dtype to another, by the rules above. */
static inline void burn_element_cast(void *to, uint8_t to_dtype, const void *from,
                                     uint8_t from_dtype)
{
    switch (burn_element_class(from_dtype)) {
    case BURN_CLASS_FLOAT:
        burn_store_f64(to, to_dtype, burn_load_float(from, from_dtype));
        break;
    case BURN_CLASS_UINT:
        burn_store_u64(to, to_dtype, burn_load_u64(from, from_dtype));
        break;
    default:
        burn_store_i64(to, to_dtype, burn_load_i64(from, from_dtype));
        break;
    }
}

#endif /* BURN_SDK_ELEMENT_H */
