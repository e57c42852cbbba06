/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * bandwidth.c - how fast c = a + b, c = a and sum(a) can be for arrays of a given size.
 *
 * Every thread repeats its own slice, so no thread waits for another and slices stay in the caches
 * that they fit in. What counts are the elements read and written; that ordinary stores also read
 * the line they write to is not counted, and streaming stores avoid it. Loops for AVX-512 are
 * written out, others are left to the compiler. To add a pattern: a loop of each kind, a row.
 */
#include "clock.h"
#include "roof.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#    include <immintrin.h>
#endif

enum { SLICE_STEP = 64 /* elements: slices start on a multiple of 256 bytes */ };

/* The arrays start differently far behind a page: a load that lies a multiple of 4 KiB from a store
 * just before it waits for that store, which costs a third where all is in level 2. */
enum { STAGGER = 1344 / 4 /* elements, whole lines */ };

static float *memory[3];
static float *arrays[3];
static int64_t array_elements;

struct pass {
    enum bench_traffic traffic;
    int threads;
    int streaming;
    double seconds;
};

/* ---- loops ------------------------------------------------------------------------------- */

/* n is a multiple of SLICE_STEP, the arrays start on lines; `b` or `c` are not used by all. */
typedef void (*slice_fn)(float *c, const float *a, const float *b, int64_t n);

static volatile float bandwidth_sink;

static void add_plain(float *restrict c, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        c[i] = a[i] + b[i];
    }
}

static void copy_plain(float *restrict c, const float *a, const float *b, int64_t n)
{
    (void)b;
    memcpy(c, a, (size_t)n * sizeof(float));
}

/* 64 sums at once, so that no addition waits for another. */
static void sum_plain(float *c, const float *a, const float *b, int64_t n)
{
    typedef float lanes __attribute__((vector_size(16), aligned(4), may_alias));
    lanes sums[16] = {{0}};
    (void)c;
    (void)b;
    for (int64_t i = 0; i < n; i += SLICE_STEP) {
        for (int k = 0; k < 16; k++) {
            sums[k] += *(const lanes *)(const void *)(a + i + 4 * k);
        }
    }
    for (int k = 1; k < 16; k++) {
        sums[0] += sums[k];
    }
    bandwidth_sink = sums[0][0] + sums[0][1] + sums[0][2] + sums[0][3];
}

#if defined(__x86_64__)

__attribute__((target("avx512f"))) static void add_plain_avx512(float *c, const float *a,
                                                                const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i += 16) {
        _mm512_store_ps(c + i, _mm512_add_ps(_mm512_load_ps(a + i), _mm512_load_ps(b + i)));
    }
}

__attribute__((target("avx512f"))) static void copy_plain_avx512(float *c, const float *a,
                                                                 const float *b, int64_t n)
{
    (void)b;
    for (int64_t i = 0; i < n; i += 16) {
        _mm512_store_ps(c + i, _mm512_load_ps(a + i));
    }
}

__attribute__((target("avx512f"))) static void sum_plain_avx512(float *c, const float *a,
                                                                const float *b, int64_t n)
{
    __m512 sums[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                      _mm512_setzero_ps()};
    (void)c;
    (void)b;
    for (int64_t i = 0; i < n; i += SLICE_STEP) {
        for (int k = 0; k < 4; k++) {
            sums[k] = _mm512_add_ps(sums[k], _mm512_load_ps(a + i + 16 * k));
        }
    }
    __m512 all = _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3]));
    bandwidth_sink = _mm512_reduce_add_ps(all);
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

__attribute__((target("avx512f"))) static void copy_streaming_avx512(float *c, const float *a,
                                                                     const float *b, int64_t n)
{
    (void)b;
    for (int64_t i = 0; i < n; i += 16) {
        _mm512_stream_ps(c + i, _mm512_load_ps(a + i));
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

static void copy_streaming_sse(float *c, const float *a, const float *b, int64_t n)
{
    (void)b;
    for (int64_t i = 0; i < n; i += 4) {
        _mm_stream_ps(c + i, _mm_load_ps(a + i));
    }
    _mm_sfence();
}

#endif

/* By traffic: what a thread runs. `streaming` is NULL where there is nothing to stream. */
struct loops {
    slice_fn plain;
    slice_fn streaming;
};

static const struct loops *pick_loops(enum bench_traffic traffic)
{
    static const struct loops any[] = {{add_plain, NULL}, {copy_plain, NULL}, {sum_plain, NULL}};
#if defined(__x86_64__)
    static const struct loops avx512[] = {{add_plain_avx512, add_streaming_avx512},
                                          {copy_plain_avx512, copy_streaming_avx512},
                                          {sum_plain_avx512, NULL}};
    static const struct loops avx2[] = {{add_plain_avx2, add_streaming_sse},
                                        {copy_plain, copy_streaming_sse},
                                        {sum_plain, NULL}};
    static const struct loops sse[] = {{add_plain, add_streaming_sse},
                                       {copy_plain, copy_streaming_sse},
                                       {sum_plain, NULL}};
    if (__builtin_cpu_supports("avx512f")) {
        return &avx512[traffic];
    }
    return __builtin_cpu_supports("avx2") ? &avx2[traffic] : &sse[traffic];
#endif
    return &any[traffic];
}

double bench_traffic_bytes(enum bench_traffic traffic)
{
    static const double bytes[] = {12.0, 8.0, 4.0};
    return bytes[traffic];
}

/* ---- measuring --------------------------------------------------------------------------- */

static double pass_over_slice(int index, void *user)
{
    const struct pass *pass = user;
    const struct loops *loops = pick_loops(pass->traffic);
    slice_fn run = pass->streaming ? loops->streaming : loops->plain;
    int64_t steps = array_elements / SLICE_STEP;
    int64_t first = steps * index / pass->threads * SLICE_STEP;
    int64_t last = steps * (index + 1) / pass->threads * SLICE_STEP;
    int64_t n = 0;
    double start = bench_now();
    double took = 0;
    do {
        run(arrays[2] + first, arrays[0] + first, arrays[1] + first, last - first);
        n++;
        took = bench_now() - start;
    } while (took < pass->seconds);
    return bench_traffic_bytes(pass->traffic) * (double)(last - first) * (double)n / took;
}

void bench_bandwidth_free(void)
{
    for (int i = 0; i < 3; i++) {
        free(memory[i]);
        memory[i] = NULL;
        arrays[i] = NULL;
    }
    array_elements = 0;
}

/*
 * Numbers in [0, 1) as the rows' own operands are: lines of nothing but zeros move faster than
 * others (a Zen 5: 66 GB/s of copies in memory, not 57), so they would make the limit too high.
 */
static void fill(float *x, size_t n)
{
    uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u; /* Numerical Recipes, 7.1 */
        x[i] = (float)(state >> 8) * 0x1p-24f;
    }
}

static int use_arrays(int64_t elements)
{
    if (array_elements == elements) {
        return 0;
    }
    bench_bandwidth_free();
    const size_t huge_page = (size_t)2 << 20;
    size_t bytes = ((size_t)elements + 2 * STAGGER) * sizeof(float);
    bytes = (bytes + huge_page - 1) / huge_page * huge_page;
    for (int i = 0; i < 3; i++) {
        memory[i] = aligned_alloc(huge_page, bytes);
        if (memory[i] == NULL) {
            bench_bandwidth_free();
            return -1;
        }
        (void)madvise(memory[i], bytes, MADV_HUGEPAGE);
        fill(memory[i], bytes / sizeof(float));
        arrays[i] = memory[i] + (ptrdiff_t)i * STAGGER;
    }
    array_elements = elements;
    return 0;
}

/* What the last measurement was of, and the stores that were faster there. */
static struct {
    enum bench_traffic traffic;
    int threads;
    int64_t elements;
    int streaming;
} chosen = {BENCH_READ, 0, 0, 0};

/*
 * The better kind of stores, found out once: were it the better of two runs each time, chance would
 * make the limit better than it is.
 */
static int pick_stores(struct pass *pass)
{
    double rate[2] = {0, 0};
    if (pick_loops(pass->traffic)->streaming == NULL) {
        return 0;
    }
    if (chosen.traffic == pass->traffic && chosen.threads == pass->threads &&
        chosen.elements == array_elements) {
        return chosen.streaming;
    }
    for (int turn = 0; turn < 6; turn++) {
        pass->streaming = turn % 2;
        double found = bench_on_threads(pass->threads, pass_over_slice, pass);
        rate[turn % 2] = found > rate[turn % 2] ? found : rate[turn % 2];
    }
    chosen.traffic = pass->traffic;
    chosen.threads = pass->threads;
    chosen.elements = array_elements;
    chosen.streaming = rate[1] > rate[0];
    return chosen.streaming;
}

double bench_bandwidth(enum bench_traffic traffic, int64_t elements, int threads, double seconds)
{
    if (use_arrays(elements) != 0) {
        return -1;
    }
    struct pass pass = {traffic, threads, 0, seconds / 3};
    pass.streaming = pick_stores(&pass);
    pass.seconds = seconds;
    return bench_on_threads(threads, pass_over_slice, &pass);
}
