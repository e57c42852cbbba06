/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * loops.h - the loop shapes of elementwise kernels, included once per element type T.
 *
 * Each takes the op as a function that the compiler inlines, so that the loop becomes vector code.
 * Output and input may be the same array: FLEX_INDEPENDENT says that no element needs another's.
 * Defines: loop_unary, loop_test (bool result), loop_binary, loop_compare, and loop_unary_plain and
 * loop_binary_plain for ops of an instruction or two, where counting costs as much as the op does.
 * No include guard.
 */
#if defined(__clang__)
#define FLEX_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define FLEX_INDEPENDENT _Pragma("GCC ivdep")
#endif
/* Clang unrolls such loops by itself. */
#if defined(__clang__)
#define FLEX_INDEPENDENT_PLAIN FLEX_INDEPENDENT
#else
#define FLEX_INDEPENDENT_PLAIN FLEX_INDEPENDENT _Pragma("GCC unroll 4")
#endif

#define FLEX_LOOP static inline __attribute__((always_inline))

FLEX_LOOP uint64_t loop_unary(void *out, const void *in, uint64_t n, T (*f)(T))
{
    T *z = out;
    const T *x = in;
    FLEX_INDEPENDENT
    for (uint64_t i = 0; i < n; i++) {
        z[i] = f(x[i]);
    }
    return n;
}

FLEX_LOOP uint64_t loop_test(void *out, const void *in, uint64_t n, int (*f)(T))
{
    uint8_t *z = out;
    const T *x = in;
    FLEX_INDEPENDENT
    for (uint64_t i = 0; i < n; i++) {
        z[i] = (uint8_t)(f(x[i]) != 0);
    }
    return n;
}

FLEX_LOOP uint64_t loop_binary(void *out, const void *in, const void *with, uint64_t n,
                               uint32_t mode, T (*f)(T, T))
{
    T *z = out;
    const T *x = in;
    const T *y = with;
    if (mode == 0) {
        FLEX_INDEPENDENT
        for (uint64_t i = 0; i < n; i++) {
            z[i] = f(x[i], y[i]);
        }
        return n;
    }
    if ((mode & 1) != 0) {
        const T x0 = n > 0 ? x[0] : (T)0;
        FLEX_INDEPENDENT
        for (uint64_t i = 0; i < n; i++) {
            z[i] = f(x0, y[i]);
        }
        return n;
    }
    const T y0 = n > 0 ? y[0] : (T)0;
    FLEX_INDEPENDENT
    for (uint64_t i = 0; i < n; i++) {
        z[i] = f(x[i], y0);
    }
    return n;
}

FLEX_LOOP uint64_t loop_compare(void *out, const void *in, const void *with, uint64_t n,
                                uint32_t mode, int (*f)(T, T))
{
    uint8_t *z = out;
    const T *x = in;
    const T *y = with;
    if (mode == 0) {
        FLEX_INDEPENDENT
        for (uint64_t i = 0; i < n; i++) {
            z[i] = (uint8_t)f(x[i], y[i]);
        }
        return n;
    }
    if ((mode & 1) != 0) {
        const T x0 = n > 0 ? x[0] : (T)0;
        FLEX_INDEPENDENT
        for (uint64_t i = 0; i < n; i++) {
            z[i] = (uint8_t)f(x0, y[i]);
        }
        return n;
    }
    const T y0 = n > 0 ? y[0] : (T)0;
    FLEX_INDEPENDENT
    for (uint64_t i = 0; i < n; i++) {
        z[i] = (uint8_t)f(x[i], y0);
    }
    return n;
}

FLEX_LOOP uint64_t loop_unary_plain(void *out, const void *in, uint64_t n, T (*f)(T))
{
    T *z = out;
    const T *x = in;
    FLEX_INDEPENDENT_PLAIN
    for (uint64_t i = 0; i < n; i++) {
        z[i] = f(x[i]);
    }
    return n;
}

FLEX_LOOP uint64_t loop_binary_plain(void *out, const void *in, const void *with, uint64_t n,
                                     uint32_t mode, T (*f)(T, T))
{
    T *z = out;
    const T *x = in;
    const T *y = with;
    if (mode == 0) {
        FLEX_INDEPENDENT_PLAIN
        for (uint64_t i = 0; i < n; i++) {
            z[i] = f(x[i], y[i]);
        }
        return n;
    }
    if ((mode & 1) != 0) {
        const T x0 = n > 0 ? x[0] : (T)0;
        FLEX_INDEPENDENT_PLAIN
        for (uint64_t i = 0; i < n; i++) {
            z[i] = f(x0, y[i]);
        }
        return n;
    }
    const T y0 = n > 0 ? y[0] : (T)0;
    FLEX_INDEPENDENT_PLAIN
    for (uint64_t i = 0; i < n; i++) {
        z[i] = f(x[i], y0);
    }
    return n;
}
