/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_rig.h - f32 products for the tests that link the plugin's objects: one product with all that
 * it lies in, and an epilogue that notices what it is handed.
 *
 * Owns operands that lie in any layout and end where memory ends (guarded.h), workspace with guard
 * bytes behind it, and plain sums in double. A matrix has the same numbers in each layout. Not
 * thread-safe but for the epilogue. To add a layout: a value below and its case in gemm_rig.c.
 */
#ifndef BURN_TESTS_UNIT_FLEX_GEMM_RIG_H
#define BURN_TESTS_UNIT_FLEX_GEMM_RIG_H

#include "../../../plugins/flex/gemm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>

/* How a matrix lies: where the next element of a row, or the next row, is. */
enum {
    LIES_DENSE = 0,
    LIES_TURNED = 1,    /* columns are dense */
    LIES_SPREAD = 2,    /* every third element */
    LIES_BACKWARDS = 3, /* from the end to the start */
    LIES_UPSIDE_DOWN = 4, /* the last row first, rows dense */
    N_LIES = 5
};

typedef struct gemm_rig {
    flex_gemm g;
    float *a; /* what is owned; g.a may begin elsewhere in it */
    float *b;
    float *c;
    float *init;
    unsigned char *memory;
    uint64_t bytes;
} gemm_rig;

typedef struct gemm_size {
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t rows; /* see flex_gemm */
} gemm_size;

/* n numbers in [-1, 1). Release with guarded_free. */
float *rig_numbers(int64_t n, uint32_t seed);

/* A product of random numbers in [-1, 1); C is full of NaN, init has m + n numbers. */
gemm_rig rig_new(gemm_size size, int a_lies, int b_lies, uint32_t threads);
/* Runs it on so many threads, as many as it was made for at most. */
void rig_run(gemm_rig *p, uint32_t threads);
/* Also checks the bytes behind the workspace. */
void rig_drop(gemm_rig *p);

float *rig_a(const gemm_rig *p, int64_t i, int64_t k);
float *rig_b(const gemm_rig *p, int64_t k, int64_t j);

/* An element in double, and, where wanted, the sum of the magnitudes. */
double rig_expected(const flex_gemm *g, int64_t i, int64_t j, double *out_magnitudes);

/* Have both the same bits in C? */
void rig_same_bits(const gemm_rig *x, const gemm_rig *y);

/* What an epilogue saw. `twice` writes two times each element to `to`, which lies as C, so that a
 * call too early or a second one shows; it expects batch 7 and at0 RIG_AT. */
enum { RIG_AT = 1000 };
typedef struct rig_seen {
    const flex_gemm *g;
    float *to;
    atomic_llong elements;
    atomic_int wrong;
} rig_seen;

void rig_twice(void *user, const flex_block *b);
/* Makes it the epilogue; `passes`: see flex_gemm. */
void rig_watch(gemm_rig *p, rig_seen *seen, int passes);

#endif /* BURN_TESTS_UNIT_FLEX_GEMM_RIG_H */
