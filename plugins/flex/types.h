/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * types.h - the element types that tables of loops have rows for, as lists X(NAME, name).
 *
 * Which list a table takes is its own business: halves are widened by most, and bool has one table
 * for all CPUs. A new integer type is one row here.
 */
#ifndef BURN_PLUGINS_FLEX_TYPES_H
#define BURN_PLUGINS_FLEX_TYPES_H

#define FLEX_FOREACH_WHOLE_TYPE(X)                                                                 \
    X(U8, u8)                                                                                      \
    X(I8, i8)                                                                                      \
    X(U16, u16)                                                                                    \
    X(I16, i16)                                                                                    \
    X(U32, u32)                                                                                    \
    X(I32, i32)                                                                                    \
    X(U64, u64)                                                                                    \
    X(I64, i64)

/* All but the halves. */
#define FLEX_FOREACH_WIDE_TYPE(X)                                                                  \
    X(BOOL, bool)                                                                                  \
    FLEX_FOREACH_WHOLE_TYPE(X)                                                                     \
    X(F32, f32)                                                                                    \
    X(F64, f64)

#endif /* BURN_PLUGINS_FLEX_TYPES_H */
