/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * kernels.h - the vector loops behind the elementwise ops, as tables.
 *
 * A loop runs over dense arrays (or one scalar, see FLEX_MODE_*) and knows no shape: pointwise.c
 * cuts a call into such runs. The tables of numbers and the half conversions exist once per ISA,
 * bool's and where's once. f16 and bf16 have no table: they are converted tile by tile and use
 * f32's. To add an op: a row in op_list.h gives it an index here; then its function in the
 * templates.
 */
#ifndef BURN_PLUGINS_FLEX_KERNELS_H
#define BURN_PLUGINS_FLEX_KERNELS_H

#include "types.h"

#include <burn/dtype.h>
#include <burn/op_list.h>
#include <stdint.h>

#define FLEX_UNARY_INDEX(id, NAME, name) FLEX_U_##NAME,
enum { BURN_FOREACH_UNARY_OP(FLEX_UNARY_INDEX) FLEX_U_GELU, FLEX_U_GELU_TANH, FLEX_N_UNARY };
#undef FLEX_UNARY_INDEX

#define FLEX_BINARY_INDEX(id, NAME, name) FLEX_B_##NAME,
enum { BURN_FOREACH_BINARY_OP(FLEX_BINARY_INDEX) FLEX_B_GELU_GRAD, FLEX_B_GELU_TANH_GRAD,
       FLEX_B_RELU_GRAD, FLEX_N_BINARY };
#undef FLEX_BINARY_INDEX

/* Which operand of a loop is one value for all elements. */
enum { FLEX_MODE_DENSE = 0, FLEX_MODE_X_SCALAR = 1, FLEX_MODE_Y_SCALAR = 2,
       FLEX_MODE_COND_SCALAR = 4 };

/*
 * Loops return how many elements they did: `n`, or the position of the first element that has no
 * answer (a division by zero). The output may be the same array as an input of equal element size.
 */
typedef uint64_t (*flex_unary_fn)(void *out, const void *x, uint64_t n);
typedef uint64_t (*flex_binary_fn)(void *out, const void *x, const void *y, uint64_t n,
                                   uint32_t mode);
typedef void (*flex_where_fn)(void *out, const void *cond, const void *x, const void *y,
                              uint64_t n, uint32_t mode);
typedef void (*flex_convert_fn)(void *out, const void *x, uint64_t n);

typedef struct flex_pointwise_table {
    flex_unary_fn unary[FLEX_N_UNARY];
    flex_binary_fn binary[FLEX_N_BINARY];
    /* The same with stores that go past the caches (stream.h): `out` begins a line of 64 bytes, n
     * elements are whole lines, operands are elsewhere. NULL where there is none. */
    flex_unary_fn unary_past[FLEX_N_UNARY];
    flex_binary_fn binary_past[FLEX_N_BINARY];
} flex_pointwise_table;

/* f32 reductions over dense runs, see reduce_f32_tmpl.c. */
typedef struct flex_reduce_table {
    /* `from`, and the sums of runs of FLEX_REDUCE_RUN added to it one by one. */
    double (*sum)(double from, const float *x, uint64_t n);
    double (*sum_ahead)(double from, const float *x, uint64_t n); /* asks for what is behind */
    float (*max)(const float *x, uint64_t n);
    float (*min)(const float *x, uint64_t n);
    /* acc[j] += x[j] and so on, for sums over outer dims. */
    void (*add_rows)(float *acc, const float *x, uint64_t n);
    void (*max_rows)(float *acc, const float *x, uint64_t n);
    void (*min_rows)(float *acc, const float *x, uint64_t n);
    void (*add_rows_f64)(double *acc, const float *x, uint64_t n);
    void (*square_rows_f64)(double *acc, const float *x, const double *mean, uint64_t n);
    double (*sum_f64)(const float *x, uint64_t n);
    double (*sum_squares)(const float *x, double mean, uint64_t n);
    double (*sum_exp)(const float *x, float shift, uint64_t n);
} flex_reduce_table;

/* Philox, see random_tmpl.c. */
typedef struct flex_random_table {
    /* Blocks counter .. counter + n_blocks - 1, four words each. */
    void (*blocks)(uint32_t *out, uint64_t seed, uint64_t counter, uint64_t n_blocks);
    /* Two normals of each pair of words. */
    void (*normals)(float *out, const uint32_t *bits, uint64_t n_pairs);
} flex_random_table;

/* Links of strands, see strand.h. */
typedef struct flex_strand_table flex_strand_table;

/* What exists once per ISA. */
typedef struct flex_isa_table {
    const flex_pointwise_table *f32;
    const flex_reduce_table *reduce;
    const flex_random_table *random;
    const flex_strand_table *strand;
    flex_convert_fn half_to_float;
    flex_convert_fn float_to_half;
    flex_convert_fn bfloat_to_float;
    flex_convert_fn float_to_bfloat;
} flex_isa_table;

extern const flex_isa_table flex_isa_table_baseline;
extern const flex_isa_table flex_isa_table_avx2;
extern const flex_isa_table flex_isa_table_avx512;

/* X(DTYPE, name): the other types whose loops exist once per ISA. bool has one table for all. */
#define FLEX_FOREACH_ISA_TYPE(X)                                                                   \
    FLEX_FOREACH_WHOLE_TYPE(X)                                                                     \
    X(F64, f64)

#define FLEX_DECLARE_TABLES(NAME, name)                                                            \
    extern const flex_pointwise_table flex_pointwise_##name##_baseline;                            \
    extern const flex_pointwise_table flex_pointwise_##name##_avx2;                                \
    extern const flex_pointwise_table flex_pointwise_##name##_avx512;
FLEX_FOREACH_ISA_TYPE(FLEX_DECLARE_TABLES)
#undef FLEX_DECLARE_TABLES
extern const flex_pointwise_table flex_pointwise_bool;

/* By element size 1, 2, 4, 8 (index: log2). */
extern const flex_where_fn flex_where_by_size[4];

/* The tables in use, by dtype; f16 and bf16 have f32's. Constant after flex_kernels_init. */
extern const flex_isa_table *flex_isa_kernels;
extern const flex_pointwise_table *flex_pointwise[16];
void flex_kernels_init(void);

#endif /* BURN_PLUGINS_FLEX_KERNELS_H */
