/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * trace.h - where calls come from, and how exactly they compute: tags, lines, math modes.
 *
 * Each call carries the tag and the math mode of its thread at that moment; the ops of its gradient
 * have the same tag. Texts of failures, BURN_CHECK and `burn explain` show the tag; kernels get it
 * as a number. A module is a tag by itself (burn_forward), so a network needs none of this. All of
 * it is per thread and nests. All functions: [any].
 */
#ifndef BURN_TRACE_H
#define BURN_TRACE_H

#include <burn/tensor.h>

BURN_BEGIN_DECLS

/* Calls from here on belong to `name`, below what they belonged to: "encoder", then "encoder.0".
 * Names are cut to 63 bytes. */
BURN_API void burn_tag_begin(const char *name);
BURN_API void burn_tag_end(void);
/* The calling thread's tag, 0: none. Equal places have equal tags as long as the process lives. */
BURN_API uint64_t burn_tag(void);
/* "encoder.0.attention", "encoder (main.c:42)"; cut to size, returns the needed length. */
BURN_API size_t burn_tag_text(uint64_t tag, char *out, size_t size);

/* Calls from here on compute in this mode (BURN_MATH_*, see <burn/call.h>; 0 = exact). With
 * BURN_MATH_REDUCED a backend may use products of lower precision, if it has them. */
BURN_API void burn_math_begin(uint32_t mode);
BURN_API void burn_math_end(void);

/*
 * With BURN_TRACE_CALLS defined before <burn/ops.h>, each op call also says its file and line:
 * "matmul: inner sizes differ (...) [at encoder (main.c:42)]". These are what the macros call.
 */
BURN_API void burn_trace_begin(const char *file, uint32_t line);
BURN_API burn_tensor *burn_trace_end(burn_tensor *result);

BURN_END_DECLS

#endif /* BURN_TRACE_H */
