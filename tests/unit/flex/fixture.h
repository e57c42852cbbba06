/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fixture.h - loads flex.so with a small host and makes calls to its rows by hand.
 *
 * Tensors live in malloc'd memory that is exactly as large as they are, so that a sanitizer sees
 * every access beyond it. Outputs are filled with a pattern first. Single-threaded.
 */
#ifndef BURN_TESTS_UNIT_FLEX_FIXTURE_H
#define BURN_TESTS_UNIT_FLEX_FIXTURE_H

#include <burn/op_attrs.h>
#include <burn/op_list.h>
#include <burn/plugin.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* An operand with its own dims, strides and memory. */
typedef struct tensor {
    burn_operand o;
    int64_t dims[BURN_MAX_RANK];
    int64_t strides[BURN_MAX_RANK];
    unsigned char *memory;
    uint64_t immediate[2];
} tensor;

/*
 * Loads the plugin of argument 1, with the instruction set of argument 2 where there is one, runs
 * the tests and ends it. Returns what main does: 77 where this CPU has not that instruction set.
 */
int fixture_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n_tests);
const burn_plugin *fixture_plugin(void);
/* Queries again with another number of threads. */
void fixture_threads(uint32_t n);

uint32_t dtype_size(uint8_t dtype);

/* A dense tensor. Values are given as doubles and converted. */
void make(tensor *t, uint8_t dtype, uint32_t rank, const int64_t *dims);
void make1(tensor *t, uint8_t dtype, int64_t n);
void make_values(tensor *t, uint8_t dtype, int64_t n, const double *values);
void make_imm(tensor *t, uint8_t dtype, double value);
void make_imm_u64(tensor *t, uint64_t value);
void make_absent(tensor *t);
/* Lays the elements of a dense tensor out with another order of axes in memory; step > 1 spreads
   the last axis, a negative one mirrors it. */
void restride(tensor *t, int64_t step);
/* Sees a dense tensor with axes a and b exchanged. */
void swap_axes(tensor *t, uint32_t a, uint32_t b);
/* Sees a tensor with a size of 1 stretched along an axis. */
void stretch(tensor *t, uint32_t axis, int64_t n);
void unmake(tensor *t);

int64_t numel(const tensor *t);
/* Element k in row-major order. */
double get(const tensor *t, int64_t k);
void put(tensor *t, int64_t k, double value);

/* Runs the first row of an op. Returns its code; the text is in `fixture_error`. */
int32_t run(uint64_t op, const void *attrs, uint32_t n_in, tensor **in, uint32_t n_out,
            tensor **out);
int32_t run1(uint64_t op, const void *attrs, tensor *x, tensor *z);
int32_t run2(uint64_t op, const void *attrs, tensor *x, tensor *y, tensor *z);
extern _Thread_local burn_err fixture_error;

/* Distance in units of the last place of `want` rounded to f32. */
double ulp_f32(float got, double want);

/* Pseudo-random numbers in [lo, hi). */
double next_random(double lo, double hi);

#endif /* BURN_TESTS_UNIT_FLEX_FIXTURE_H */
