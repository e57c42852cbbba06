/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * builder.h - how a gradient or a decomposition makes ops, without knowing who runs them.
 *
 * `vjp` and `decompose` get a builder and opaque values. They never see a thread, a device handle
 * or the public API, so one function serves eager calls, capture, higher order and remote
 * execution. A failing emit still hands out values: they carry the first cause, later emits pass it
 * on, and the function may end normally. Values belong to the builder; nothing is freed here.
 * build.h has an inline wrapper for each core op, so that code reads like ordinary calls.
 */
#ifndef BURN_BUILDER_H
#define BURN_BUILDER_H

#include <burn/base.h>
#include <burn/status.h>

BURN_BEGIN_DECLS

typedef struct burn_value burn_value;

/*
 * What is known of a value before anything runs. Of a call's operands, a scalar of an integer
 * dtype (BURN_IMMEDIATE) has its value in dims[0]; its rank is 0 all the same.
 */
typedef struct burn_meta {
    uint32_t flags;
    uint8_t kind; /* BURN_ABSENT, BURN_TENSOR, BURN_IMMEDIATE */
    uint8_t dtype;
    uint8_t rank;
    uint8_t zero;
    int64_t dims[BURN_MAX_RANK];
} burn_meta;

typedef struct burn_builder {
    uint32_t struct_size;
    uint32_t zero;
    void *ctx;
    /*
     * Emits one op. `in` may hold NULL for an absent operand. Writes n_out values, also on failure.
     * Returns the code of the failure that the outputs carry, or BURN_OK. [callback]
     */
    int32_t(BURN_CALL *emit)(void *ctx, uint64_t op, const void *attrs, uint32_t attrs_size,
                             burn_value *const *in, uint32_t n_in, burn_value **out,
                             uint32_t n_out);
    /* dtype and shape; a failed value has rank 0 and dtype BURN_DTYPE_NONE. [callback] */
    void(BURN_CALL *meta)(void *ctx, const burn_value *value, burn_meta *out);
    /* An immediate of that dtype, made from a number; its op may convert it. [callback] */
    burn_value *(BURN_CALL *immediate)(void *ctx, uint8_t dtype, double number);
    burn_value *(BURN_CALL *immediate_int)(void *ctx, uint8_t dtype, int64_t number);
    /* A tensor with these host bytes, copied at once. [callback] */
    burn_value *(BURN_CALL *constant)(void *ctx, uint8_t dtype, uint32_t rank, const int64_t *dims,
                                      const void *bytes);
    /* A failed value with that code and text. [callback] */
    burn_value *(BURN_CALL *fail)(void *ctx, int32_t code, const char *text);
} burn_builder;

BURN_END_DECLS

#endif /* BURN_BUILDER_H */
