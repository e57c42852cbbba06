/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * bandwidth.c - how fast c = a + b can be for arrays of a given size.
 *
 * Every thread repeats its own slice, so no thread waits for another and slices stay in the caches
 * that they fit in. Twelve bytes count per element: two reads, one write; that ordinary stores
 * also read the line they write to is not counted, and streaming stores avoid it.
 */
#include "clock.h"
#include "roof.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#    include <immintrin.h>
#endif

enum { SLICE_STEP = 64 /* elements: slices start on a multiple of 256 bytes */ };

static float *arrays[3];
static int64_t array_elements;

struct pass {
    int threads;
    int streaming;
    double seconds;
};

/* ---- loops ------------------------------------------------------------------------------- */

static void add_plain(float *restrict c, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        c[i] = a[i] + b[i];
    }
}

#if defined(__x86_64__)

/* For the avx512 loops n is a multiple of 16 and the arrays are aligned. */
__attribute__((target("avx512f"))) static void add_plain_avx512(float *c, const float *a,
                                                                const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i += 16) {
        _mm512_store_ps(c + i, _mm512_add_ps(_mm512_load_ps(a + i), _mm512_load_ps(b + i)));
    }
}

__attribute__((target("avx2"))) static void add_plain_avx2(float *restrict c, const float *a,
                                                           const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        c[i] = a[i] + b[i];
    }
}

__attribute__((target("avx512f"))) static void add_streaming_avx512(float *c, const float *a,
                                                                    const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i += 16) {
        _mm512_stream_ps(c + i, _mm512_add_ps(_mm512_load_ps(a + i), _mm512_load_ps(b + i)));
    }
    _mm_sfence();
}

static void add_streaming_sse(float *c, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i += 4) {
        _mm_stream_ps(c + i, _mm_add_ps(_mm_load_ps(a + i), _mm_load_ps(b + i)));
    }
    _mm_sfence();
}

static void add_slice(float *c, const float *a, const float *b, int64_t n, int streaming)
{
    int wide = __builtin_cpu_supports("avx512f");
    if (streaming) {
        (wide ? add_streaming_avx512 : add_streaming_sse)(c, a, b, n);
    } else if (wide) {
        add_plain_avx512(c, a, b, n);
    } else if (__builtin_cpu_supports("avx2")) {
        add_plain_avx2(c, a, b, n);
    } else {
        add_plain(c, a, b, n);
    }
}

#else

static void add_slice(float *c, const float *a, const float *b, int64_t n, int streaming)
{
    (void)streaming;
    add_plain(c, a, b, n);
}

#endif

/* ---- measuring --------------------------------------------------------------------------- */

static double pass_over_slice(int index, void *user)
{
    const struct pass *pass = user;
    int64_t steps = array_elements / SLICE_STEP;
    int64_t first = steps * index / pass->threads * SLICE_STEP;
    int64_t last = steps * (index + 1) / pass->threads * SLICE_STEP;
    int64_t n = 0;
    double start = bench_now();
    double took = 0;
    do {
        add_slice(arrays[2] + first, arrays[0] + first, arrays[1] + first, last - first,
                  pass->streaming);
        n++;
        took = bench_now() - start;
    } while (took < pass->seconds);
    return 12.0 * (double)(last - first) * (double)n / took;
}

void bench_bandwidth_free(void)
{
    for (int i = 0; i < 3; i++) {
        free(arrays[i]);
        arrays[i] = NULL;
    }
    array_elements = 0;
}

static int use_arrays(int64_t elements)
{
    if (array_elements == elements) {
        return 0;
    }
    bench_bandwidth_free();
    const size_t huge_page = (size_t)2 << 20;
    size_t bytes = ((size_t)elements * sizeof(float) + huge_page - 1) / huge_page * huge_page;
    for (int i = 0; i < 3; i++) {
        arrays[i] = aligned_alloc(huge_page, bytes);
        if (arrays[i] == NULL) {
            bench_bandwidth_free();
            return -1;
        }
        (void)madvise(arrays[i], bytes, MADV_HUGEPAGE);
        memset(arrays[i], 0, bytes);
    }
    array_elements = elements;
    return 0;
}

double bench_bandwidth(int64_t elements, int threads, double seconds)
{
    if (use_arrays(elements) != 0) {
        return -1;
    }
    struct pass pass = {threads, 0, seconds / 2};
    double plain = bench_on_threads(threads, pass_over_slice, &pass);
    pass.streaming = 1;
    double streaming = bench_on_threads(threads, pass_over_slice, &pass);
    return plain > streaming ? plain : streaming;
}
