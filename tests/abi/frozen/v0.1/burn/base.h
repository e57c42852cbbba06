/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * base.h - what every public header starts from: fixed-width types, the export macro, the calling
 * convention and the frozen numbers of the ABI.
 *
 * Owns no functions. Every struct that crosses a plugin border follows three rules: its size stands
 * first (or is given by the stride of the array that carries it), fields are only ever appended,
 * and reserved words are zero. `BURN_INIT` makes such a struct; `BURN_HAS` is the only way to ask
 * whether the other side knows a field.
 */
#ifndef BURN_BASE_H
#define BURN_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define BURN_BEGIN_DECLS extern "C" {
#define BURN_END_DECLS }
#else
#define BURN_BEGIN_DECLS
#define BURN_END_DECLS
#endif

/* Symbols of libburn-core and libburn-train; everything else is hidden. */
#if defined(__GNUC__)
#define BURN_API __attribute__((visibility("default")))
#else
#define BURN_API
#endif

/* Calling convention of every function pointer that crosses a plugin border. */
#define BURN_CALL

#define BURN_MAX_RANK 8
#define BURN_MAX_ATTRS 256
#define BURN_MAX_OPERANDS 64

/* Zeroes the struct that `p` points at and states its size. */
#define BURN_INIT(p, type)                                                                         \
    do {                                                                                           \
        unsigned char *burn_init_bytes = (unsigned char *)(p);                                     \
        for (size_t burn_init_i = 0; burn_init_i < sizeof(type); burn_init_i++) {                  \
            burn_init_bytes[burn_init_i] = 0;                                                      \
        }                                                                                          \
        (p)->struct_size = (uint32_t)sizeof(type);                                                 \
    } while (0)

/* True when the writer of `*p` knew the field: its end lies within the size that it stated. */
#define BURN_HAS(p, type, field)                                                                   \
    ((p)->struct_size >= offsetof(type, field) + sizeof(((const type *)0)->field))

#endif /* BURN_BASE_H */
