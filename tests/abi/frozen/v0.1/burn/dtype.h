/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * dtype.h - element types: one byte, 256 codes.
 *
 * The list below is the only place where a dtype's code, name, size and class stand. Codes are
 * frozen; the second list reserves codes for types that have no kernels yet. Complex numbers are
 * pairs. f16 and bf16 are storage: arithmetic on them happens in f32.
 */
#ifndef BURN_DTYPE_H
#define BURN_DTYPE_H

#include <burn/base.h>

BURN_BEGIN_DECLS

enum {
    BURN_CLASS_BOOL = 1,
    BURN_CLASS_UINT = 2,
    BURN_CLASS_INT = 3,
    BURN_CLASS_FLOAT = 4,
    BURN_CLASS_COMPLEX = 5,
    BURN_CLASS_PACKED = 6
};

/* X(code, NAME, name, bytes, CLASS) */
#define BURN_FOREACH_DTYPE(X)                                                                      \
    X(1, BOOL, bool, 1, BOOL)                                                                      \
    X(2, U8, u8, 1, UINT)                                                                          \
    X(3, I8, i8, 1, INT)                                                                           \
    X(4, U16, u16, 2, UINT)                                                                        \
    X(5, I16, i16, 2, INT)                                                                         \
    X(6, U32, u32, 4, UINT)                                                                        \
    X(7, I32, i32, 4, INT)                                                                         \
    X(8, U64, u64, 8, UINT)                                                                        \
    X(9, I64, i64, 8, INT)                                                                         \
    X(10, F16, f16, 2, FLOAT)                                                                      \
    X(11, BF16, bf16, 2, FLOAT)                                                                    \
    X(12, F32, f32, 4, FLOAT)                                                                      \
    X(13, F64, f64, 8, FLOAT)

/* Reserved: nothing accepts these yet, and no other type will ever get their codes. */
#define BURN_FOREACH_RESERVED_DTYPE(X)                                                             \
    X(16, C64, c64, 8, COMPLEX)                                                                    \
    X(17, C128, c128, 16, COMPLEX)                                                                 \
    X(20, F8E4M3FN, f8e4m3fn, 1, FLOAT)                                                            \
    X(21, F8E5M2, f8e5m2, 1, FLOAT)                                                                \
    X(22, F8E4M3FNUZ, f8e4m3fnuz, 1, FLOAT)                                                        \
    X(23, F8E5M2FNUZ, f8e5m2fnuz, 1, FLOAT)                                                        \
    X(24, F8E8M0, f8e8m0, 1, FLOAT)                                                                \
    X(25, F4E2M1, f4e2m1, 1, FLOAT)                                                                \
    X(32, Q8, q8, 1, PACKED)                                                                       \
    X(33, Q4, q4, 1, PACKED)                                                                       \
    X(34, Q2, q2, 1, PACKED)

enum {
    BURN_DTYPE_NONE = 0,
#define BURN_DTYPE_ROW(code, NAME, name, bytes, klass) BURN_##NAME = (code),
    BURN_FOREACH_DTYPE(BURN_DTYPE_ROW) BURN_FOREACH_RESERVED_DTYPE(BURN_DTYPE_ROW)
#undef BURN_DTYPE_ROW
};

/* Sets of dtypes are 256-bit masks, four words; everything that exists today is in word 0. */
#define BURN_BIT(NAME) (UINT64_C(1) << BURN_##NAME)
#define BURN_SET_FLOAT (BURN_BIT(F16) | BURN_BIT(BF16) | BURN_BIT(F32) | BURN_BIT(F64))
#define BURN_SET_SIGNED (BURN_BIT(I8) | BURN_BIT(I16) | BURN_BIT(I32) | BURN_BIT(I64))
#define BURN_SET_UNSIGNED (BURN_BIT(U8) | BURN_BIT(U16) | BURN_BIT(U32) | BURN_BIT(U64))
#define BURN_SET_INT (BURN_SET_SIGNED | BURN_SET_UNSIGNED)
#define BURN_SET_NUMERIC (BURN_SET_FLOAT | BURN_SET_INT)
#define BURN_SET_ANY (BURN_SET_NUMERIC | BURN_BIT(BOOL))
#define BURN_SET_INDEX (BURN_BIT(I64) | BURN_BIT(I32))

/* Name ("f32"), size in bytes, class (BURN_CLASS_*) of a dtype; "none" and 0 for an unknown one. */
BURN_API const char *burn_dtype_name(uint8_t dtype);
BURN_API uint32_t burn_dtype_size(uint8_t dtype);
BURN_API uint32_t burn_dtype_class(uint8_t dtype);

/* The dtype of that name, or BURN_DTYPE_NONE. [any] */
BURN_API uint8_t burn_dtype_from_name(const char *name);

BURN_END_DECLS

#endif /* BURN_DTYPE_H */
