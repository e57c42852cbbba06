/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cast.h - the table of conversions between element types; cast_tmpl.c defines one row per source.
 */
#ifndef BURN_PLUGINS_FLEX_CAST_H
#define BURN_PLUGINS_FLEX_CAST_H

#include "kernels.h"

typedef struct flex_cast_row {
    flex_convert_fn to[16]; /* by dtype; NULL for the halves */
    flex_convert_fn odd;    /* to f32, rounded to odd */
} flex_cast_row;

/* X(NAME, name) */
#define FLEX_FOREACH_CAST_SOURCE(X)                                                                \
    X(BOOL, bool)                                                                                  \
    X(U8, u8)                                                                                      \
    X(I8, i8)                                                                                      \
    X(U16, u16)                                                                                    \
    X(I16, i16)                                                                                    \
    X(U32, u32)                                                                                    \
    X(I32, i32)                                                                                    \
    X(U64, u64)                                                                                    \
    X(I64, i64)                                                                                    \
    X(F32, f32)                                                                                    \
    X(F64, f64)

#define FLEX_DECLARE_CAST(NAME, name) extern const flex_cast_row flex_cast_from_##name;
FLEX_FOREACH_CAST_SOURCE(FLEX_DECLARE_CAST)
#undef FLEX_DECLARE_CAST

/*
 * The loop from one dtype to another, equal ones only for bool. Halves are read as the f32 that
 * they were widened to, and written as an f32 that is still to be narrowed.
 */
flex_convert_fn flex_cast_loop(uint8_t from, uint8_t to);

#endif /* BURN_PLUGINS_FLEX_CAST_H */
