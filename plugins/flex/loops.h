/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * loops.h - the loop shapes of elementwise kernels, included once per element type T.
 *
 * Each takes the op as a function that the compiler inlines, so that the loop becomes vector code.
 * Output and input may be the same array: FLEX_INDEPENDENT says that no element needs another's.
 * Defines: loop_unary, loop_test (bool result), loop_binary, loop_compare, and loop_unary_plain and
 * loop_binary_plain for ops of an instruction or two, where counting costs as much as the op does.
 * With FLEX_LOOPS_PAST also loop_unary_past and loop_binary_past, which write whole lines past the
 * caches (kernels.h). No include guard.
 */
#if defined(__SSE2__)
#define FLEX_LOOPS_PAST 1
#include <immintrin.h>
#endif

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

/* A loop as short as a line: vectors, not as many single elements. */
#if defined(__clang__)
#define FLEX_WHOLE_VECTORS FLEX_INDEPENDENT
#else
#define FLEX_WHOLE_VECTORS FLEX_INDEPENDENT _Pragma("GCC unroll 1")
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

#if defined(FLEX_LOOPS_PAST)
enum { LINE_ELEMENTS = 64 / sizeof(T) };

/* A line at once: what is written of it in pieces costs several trips to memory. */
FLEX_LOOP void write_line(T *z, const T *line)
{
#if defined(__AVX512F__)
    _mm512_stream_si512((void *)z, _mm512_load_si512(line));
#elif defined(__AVX__)
    __m256i *to = (__m256i *)(void *)z;
    const __m256i *from = (const __m256i *)(const void *)line;
    _mm256_stream_si256(to, _mm256_load_si256(from));
    _mm256_stream_si256(to + 1, _mm256_load_si256(from + 1));
#else
    __m128i *to = (__m128i *)(void *)z;
    const __m128i *from = (const __m128i *)(const void *)line;
    for (uint32_t k = 0; k < 4; k++) {
        _mm_stream_si128(to + k, _mm_load_si128(from + k));
    }
#endif
}

FLEX_LOOP uint64_t loop_unary_past(void *out, const void *in, uint64_t n, T (*f)(T))
{
    T *z = out;
    const T *x = in;
    for (uint64_t i = 0; i < n; i += LINE_ELEMENTS) {
        _Alignas(64) T line[LINE_ELEMENTS];
        FLEX_WHOLE_VECTORS
        for (uint32_t k = 0; k < LINE_ELEMENTS; k++) {
            line[k] = f(x[i + k]);
        }
        write_line(z + i, line);
    }
    return n;
}

/* One of the operands may be one value. */
FLEX_LOOP void lines_binary(T *z, const T *x, uint64_t x_step, const T *y, uint64_t y_step,
                            uint64_t n, T (*f)(T, T))
{
    for (uint64_t i = 0; i < n; i += LINE_ELEMENTS) {
        _Alignas(64) T line[LINE_ELEMENTS];
        FLEX_WHOLE_VECTORS
        for (uint32_t k = 0; k < LINE_ELEMENTS; k++) {
            line[k] = f(x[(i + k) * x_step], y[(i + k) * y_step]);
        }
        write_line(z + i, line);
    }
}

FLEX_LOOP uint64_t loop_binary_past(void *out, const void *in, const void *with, uint64_t n,
                                    uint32_t mode, T (*f)(T, T))
{
    if (mode == 0) {
        lines_binary(out, in, 1, with, 1, n, f);
    } else if ((mode & 1) != 0) {
        lines_binary(out, in, 0, with, 1, n, f);
    } else {
        lines_binary(out, in, 1, with, 0, n, f);
    }
    return n;
}
#endif /* FLEX_LOOPS_PAST */
