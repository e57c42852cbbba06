/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sleef.c - calls SLEEF as a program would: one call per vector, through the library's own symbols.
 *
 * The library is opened at run time, so nothing is built against it and it may be absent. Its 1 ulp
 * functions are taken; ours promise 2. For x86-64 with AVX-512 or AVX2.
 */
#include "sleef.h"

#include "clock.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__)
#    include <immintrin.h>

typedef void (*pass_fn)(void *function, float *out, const float *in, int64_t n);

__attribute__((target("avx512f"))) static void pass_avx512(void *function, float *out,
                                                           const float *in, int64_t n)
{
    __m512 (*f)(__m512);
    *(void **)&f = function;
    for (int64_t i = 0; i + 16 <= n; i += 16) {
        _mm512_storeu_ps(out + i, f(_mm512_loadu_ps(in + i)));
    }
}

__attribute__((target("avx2"))) static void pass_avx2(void *function, float *out, const float *in,
                                                      int64_t n)
{
    __m256 (*f)(__m256);
    *(void **)&f = function;
    for (int64_t i = 0; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(out + i, f(_mm256_loadu_ps(in + i)));
    }
}

static void *find_function(const char *function, pass_fn *out_pass)
{
    static void *library;
    char name[64];
    if (library == NULL) {
        library = dlopen("libsleef.so.3", RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL) {
        return NULL;
    }
    int wide = __builtin_cpu_supports("avx512f");
    if (!wide && !__builtin_cpu_supports("avx2")) {
        return NULL;
    }
    *out_pass = wide ? pass_avx512 : pass_avx2;
    (void)snprintf(name, sizeof(name), "Sleef_%.20sf%s", function,
                   wide ? "16_u10avx512f" : "8_u10avx2");
    return dlsym(library, name);
}

enum { PASSES = 16 };

static void some_passes(pass_fn pass, void *f, float *out, const float *in, int64_t n)
{
    for (int i = 0; i < PASSES; i++) {
        pass(f, out, in, n);
    }
}

double bench_sleef(const char *function, int64_t n, double seconds)
{
    pass_fn pass = NULL;
    void *f = find_function(function, &pass);
    size_t bytes = ((size_t)n * sizeof(float) + 63) / 64 * 64;
    float *in = aligned_alloc(64, bytes);
    float *out = aligned_alloc(64, bytes);
    double per_pass = (double)NAN;
    if (f != NULL && in != NULL && out != NULL) {
        for (int64_t i = 0; i < n; i++) {
            in[i] = (float)i / (float)n;
        }
        int64_t passes = 0;
        some_passes(pass, f, out, in, n); /* not counted, as in worker.c */
        double start = bench_now();
        double took = 0;
        do {
            some_passes(pass, f, out, in, n);
            passes += PASSES;
            took = bench_now() - start;
        } while (took < seconds);
        per_pass = took / (double)passes;
    }
    free(in);
    free(out);
    return per_pass;
}

#else

double bench_sleef(const char *function, int64_t n, double seconds)
{
    (void)function;
    (void)n;
    (void)seconds;
    return (double)NAN;
}

#endif
