/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cast.h - the table of conversions between element types; cast_tmpl.c defines one row per source.
 */
#ifndef BURN_PLUGINS_FLEX_CAST_H
#define BURN_PLUGINS_FLEX_CAST_H

#include "kernels.h"
#include "types.h"

typedef struct flex_cast_row {
    flex_convert_fn to[16]; /* by dtype; NULL for the halves */
    flex_convert_fn odd;    /* to f32, rounded to odd */
} flex_cast_row;

#define FLEX_DECLARE_CAST(NAME, name) extern const flex_cast_row flex_cast_from_##name;
FLEX_FOREACH_WIDE_TYPE(FLEX_DECLARE_CAST)
#undef FLEX_DECLARE_CAST

/*
 * The loop from one dtype to another, equal ones only for bool. Halves are read as the f32 that
 * they were widened to, and written as an f32 that is still to be narrowed.
 */
flex_convert_fn flex_cast_loop(uint8_t from, uint8_t to);

#endif /* BURN_PLUGINS_FLEX_CAST_H */
