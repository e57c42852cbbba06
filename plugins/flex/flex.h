/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * flex.h - what the kernel files of the CPU backend share: the host, errors, operand access,
 * terse row and slot tables, element counts and loops over dims.
 *
 * Owns no kernel. A launch function reads its operands through flex_in and flex_out, checks nothing
 * that the row's slots already say, and returns BURN_OK or what flex_fail returned.
 */
#ifndef BURN_PLUGINS_FLEX_FLEX_H
#define BURN_PLUGINS_FLEX_FLEX_H

#include <burn/base.h>
#include <burn/call.h>
#include <burn/dtype.h>
#include <burn/op_attrs.h>
#include <burn/op_list.h>
#include <burn/plugin.h>
#include <burn/row.h>
#include <stdint.h>

/* The host's services, set by burn_plugin_query and constant from then on. */
extern const burn_host *flex_host;

/* Writes code and text into the sink (NULL allowed); returns the code. */
int32_t flex_fail(burn_err *err, int32_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Operand `i` of the inputs, output `j`. */
static inline const burn_operand *flex_in(const burn_call *call, uint32_t i)
{
    return burn_call_operand(call, i);
}

static inline const burn_operand *flex_out(const burn_call *call, uint32_t j)
{
    return burn_call_operand(call, call->n_in + j);
}

static inline int flex_absent(const burn_operand *x)
{
    return x->kind == BURN_ABSENT;
}

/* Number of elements of an operand; of dims. Beside a dim of 0 the others may be of any size, so
 * the product is taken without signs. */
static inline int64_t flex_product(uint32_t rank, const int64_t *dims)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < rank; i++) {
        n *= (uint64_t)dims[i];
    }
    return (int64_t)n;
}

static inline int64_t flex_numel(const burn_operand *x)
{
    return flex_product(x->rank, x->dims);
}

/* Bytes of one element of an existing dtype. */
extern const uint8_t flex_dtype_bytes[16];
static inline uint32_t flex_size(uint8_t dtype)
{
    return flex_dtype_bytes[dtype & 15];
}

/* Name of a dtype, for messages. */
const char *flex_dtype_name(uint8_t dtype);

/* The value of an immediate or a one-element operand, widened. */
double flex_read_f64(const void *data, uint8_t dtype);
int64_t flex_read_i64(const void *data, uint8_t dtype);

/* The number 1 as an element of a dtype. */
void flex_one(uint8_t dtype, char out[8]);

/*
 * Steps an index over dims, row-major, and moves `n_offsets` offsets (in elements) along with it.
 * Returns 0 past the end. strides[k] are the strides of offset k.
 */
int flex_step(uint32_t rank, const int64_t *dims, int64_t *index, uint32_t n_offsets,
              const int64_t *const *strides, int64_t *offsets);

/* Outputs are dense; a rank of 0 may be called scalar. */
#define FLEX_LAYOUT_OUT (BURN_LAYOUT_CONTIGUOUS | BURN_LAYOUT_SCALAR)

/* Tables. A slot: dtypes of word 0, layouts, same_dtype_as (1 + operand, 0 free), flags. */
enum { FLEX_IMM = 1, FLEX_OPT = 2 };
/* clang-format off */
#define FLEX_SLOT(set, layouts, like, what) \
    { {(set), 0, 0, 0}, (layouts), 0, BURN_MAX_RANK, 0, (like), ((what) & FLEX_IMM) != 0, \
      ((what) & FLEX_OPT) != 0, {0} }
#define FLEX_ROW_FLAGS (BURN_ROW_DETERMINISTIC | BURN_ROW_CAPTURE_SAFE | BURN_ROW_ANY_DIMS | \
                        BURN_ROW_INDEX64)
/* A row without prepare: op id, slot array, extra flags, in-place mask, stable name, launch. */
#define FLEX_ROW(op, slots, extra, in_place, name, launch) \
    { (uint32_t)sizeof(burn_row), FLEX_ROW_FLAGS | (extra), (op), 1, 1, 0, \
      (uint16_t)(sizeof(slots) / sizeof((slots)[0])), (uint32_t)sizeof(burn_slot), (in_place), \
      (slots), (name), 1, 0, NULL, (uint32_t)sizeof(burn_guard), 0, 0, NULL, NULL, NULL, NULL, \
      (launch) }
/* clang-format on */

#define FLEX_COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* Work below this many elements stays on the calling thread. */
#define FLEX_GRAIN 32768

/* What is wrong with the option FLEX_GEMM, if anything (gemm_blas.c). [any] */
int32_t flex_blas_check(const char *option, burn_err *err);

#endif /* BURN_PLUGINS_FLEX_FLEX_H */
