/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * core_test.h - what the tests of the core share: a device and a window from the command line,
 * short ways to make and to compare tensors.
 *
 * Each program runs as `test_x DEVICE WINDOW`, once for each pair in meson.build; the tests of a
 * program share one device. Every test begins and ends outside of all scopes, with the device's
 * latched failure cleared. To add a test: a function in a file, a row in its array.
 */
#ifndef BURN_TESTS_UNIT_CORE_CORE_TEST_H
#define BURN_TESTS_UNIT_CORE_CORE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <burn/build.h>
#include <burn/device.h>
#include <burn/grad.h>
#include <burn/graph.h>
#include <burn/nn.h>
#include <burn/ops.h>
#include <burn/registry.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The device under test, and its autodiff handle. */
extern burn_device *dev;
extern burn_device *ad;
/* 1 when the device is mock (asynchronous, few kernels); the window that was asked for. */
extern int on_mock;
extern uint32_t window;

/* Opens the device and runs the tests; the exit status. Sets option name=value first when given. */
int core_test_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n);
/* The same with BURN_EXPLAIN on, in a folder that is removed at the end. */
int core_test_main_explained(int argc, char **argv, const struct CMUnitTest *tests, size_t n);
/* Setup and teardown of every test. */
int core_setup(void **state);
int core_teardown(void **state);
#define CORE_TEST(f) cmocka_unit_test_setup_teardown(f, core_setup, core_teardown)

/* For tests that look inside (core_inside.c): the calling thread's stream; another window, after
 * what is pending has run; a teardown that takes back the window of the command line. */
struct burni_stream *core_stream(void);
void set_window(uint32_t n);
int restore_window(void **state);
#define WINDOW_TEST(f) cmocka_unit_test_setup_teardown(f, core_setup, restore_window)

/* f32 tensors: a vector, a matrix, from `start` in steps of 1 with those dims. */
burn_tensor *vec(int64_t n, const float *values);
burn_tensor *mat(int64_t rows, int64_t columns, const float *values);
burn_tensor *count_up(burn_device *device, uint32_t rank, const int64_t *dims, double start);
burn_tensor *index_vec(int64_t n, const int64_t *values);
#define VEC(...)                                                                                   \
    vec((int64_t)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), (const float[]){__VA_ARGS__})
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* The tensor is fine and has exactly these values (within `tolerance`, relative above 1). */
void check_values(int line, burn_tensor *t, size_t n, const double *values, double tolerance);
#define CHECK(t, ...)                                                                              \
    check_values(__LINE__, t, sizeof((double[]){__VA_ARGS__}) / sizeof(double),                    \
                 (double[]){__VA_ARGS__}, 0.0)
#define CHECK_NEAR(t, tolerance, ...)                                                              \
    check_values(__LINE__, t, sizeof((double[]){__VA_ARGS__}) / sizeof(double),                    \
                 (double[]){__VA_ARGS__}, tolerance)
void check_shape(const burn_tensor *t, uint32_t rank, const int64_t *dims);
/* Both are fine and have the same dtype, shape and bits. */
#define check_same(a, b) check_same_at(__LINE__, a, b)
void check_same_at(int line, burn_tensor *a, burn_tensor *b);
/* The tensor failed at its call, with that code and all of these words in its text; NULL ends. */
#define check_failed(t, ...) check_failed_at(__LINE__, t, __VA_ARGS__)
void check_failed_at(int line, burn_tensor *t, int32_t code, ...);
/* Reading it gives that code, at the call or later, and these words. */
#define check_read_fails(t, ...) check_read_fails_at(__LINE__, t, __VA_ARGS__)
void check_read_fails_at(int line, burn_tensor *t, int32_t code, ...);
/* burn_sync gives nothing to report. */
void check_clean(void);

/* Bytes in use on the device, now. */
uint64_t in_use(void);
/* A number from a small generator, for random programs. */
uint32_t next_random(uint64_t *state);

#endif /* BURN_TESTS_UNIT_CORE_CORE_TEST_H */
