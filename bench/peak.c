/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * peak.c - the highest rate of f32 multiply-adds: loops over registers, one per instruction set.
 *
 * Each loop keeps more sums than latency times units (at most 4 * 2), so that only the number of
 * units counts. Must be built with -O3, which unrolls the inner loops so that the sums stay in
 * registers (meson.build sees to it). To add an instruction set: a spin function, a row in SPINS.
 */
#include "clock.h"
#include "roof.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__)
#    include <immintrin.h>
#endif

enum { SUMS = 12, REPEATS = 20000 };

struct spin {
    const char *isa;
    int (*is_usable)(void);
    float (*run)(void); /* REPEATS * SUMS * lanes multiply-adds */
    int lanes;
};

#if defined(__x86_64__)

static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f");
}

static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

__attribute__((target("avx512f"), noinline)) static float spin_avx512(void)
{
    const __m512 scale = _mm512_set1_ps(0.999f);
    const __m512 shift = _mm512_set1_ps(0.001f);
    __m512 sums[SUMS];
    for (int i = 0; i < SUMS; i++) {
        sums[i] = _mm512_set1_ps((float)i);
    }
    for (int r = 0; r < REPEATS; r++) {
        for (int i = 0; i < SUMS; i++) {
            sums[i] = _mm512_fmadd_ps(sums[i], scale, shift);
        }
    }
    float total = 0;
    for (int i = 0; i < SUMS; i++) {
        total += _mm512_reduce_add_ps(sums[i]);
    }
    return total;
}

__attribute__((target("avx2,fma"), noinline)) static float spin_avx2(void)
{
    const __m256 scale = _mm256_set1_ps(0.999f);
    const __m256 shift = _mm256_set1_ps(0.001f);
    __m256 sums[SUMS];
    for (int i = 0; i < SUMS; i++) {
        sums[i] = _mm256_set1_ps((float)i);
    }
    for (int r = 0; r < REPEATS; r++) {
        for (int i = 0; i < SUMS; i++) {
            sums[i] = _mm256_fmadd_ps(sums[i], scale, shift);
        }
    }
    float total = 0;
    for (int i = 0; i < SUMS; i++) {
        total += _mm256_cvtss_f32(sums[i]);
    }
    return total;
}

#endif

/* What the compiler's baseline has: a multiplication and an addition where nothing is fused. */
typedef float baseline_vector __attribute__((vector_size(16)));

static int has_baseline(void)
{
    return 1;
}

__attribute__((noinline)) static float spin_baseline(void)
{
    const baseline_vector scale = {0.999f, 0.999f, 0.999f, 0.999f};
    const baseline_vector shift = {0.001f, 0.001f, 0.001f, 0.001f};
    baseline_vector sums[SUMS];
    for (int i = 0; i < SUMS; i++) {
        sums[i] = scale * (float)i;
    }
    for (int r = 0; r < REPEATS; r++) {
        for (int i = 0; i < SUMS; i++) {
            sums[i] = sums[i] * scale + shift;
        }
    }
    float total = 0;
    for (int i = 0; i < SUMS; i++) {
        total += sums[i][0];
    }
    return total;
}

/* The best first. */
static const struct spin SPINS[] = {
#if defined(__x86_64__)
    {"avx512", has_avx512, spin_avx512, 16},
    {"avx2", has_avx2, spin_avx2, 8},
#endif
    {"baseline", has_baseline, spin_baseline, 4},
};

static const struct spin *best_spin(void)
{
    const struct spin *spin = SPINS;
    while (!spin->is_usable()) {
        spin++;
    }
    return spin;
}

const char *bench_peak_isa(void)
{
    return best_spin()->isa;
}

static volatile float peak_sink;

static double spin_for(int index, void *user)
{
    (void)index;
    const struct spin *spin = best_spin();
    double seconds = *(const double *)user;
    double flops = 2.0 * REPEATS * SUMS * spin->lanes;
    int64_t n = 0;
    double start = bench_now();
    double took = 0;
    do {
        peak_sink = spin->run();
        n++;
        took = bench_now() - start;
    } while (took < seconds);
    return flops * (double)n / took;
}

double bench_peak_flops(int threads, double seconds)
{
    return bench_on_threads(threads, spin_for, &seconds);
}

/* ---- threads ----------------------------------------------------------------------------- */

struct job {
    double (*work)(int index, void *user);
    void *user;
    double result;
    int index;
    pthread_barrier_t *start;
};

static void *run_job(void *argument)
{
    struct job *job = argument;
    (void)pthread_barrier_wait(job->start);
    job->result = job->work(job->index, job->user);
    return NULL;
}

double bench_on_threads(int threads, double (*work)(int index, void *user), void *user)
{
    if (threads <= 1) {
        return work(0, user);
    }
    struct job jobs[BENCH_MAX_THREADS];
    pthread_t ids[BENCH_MAX_THREADS];
    pthread_barrier_t start;
    threads = threads > BENCH_MAX_THREADS ? BENCH_MAX_THREADS : threads;
    (void)pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        jobs[i] = (struct job){work, user, 0, i, &start};
        if (i > 0 && pthread_create(&ids[i], NULL, run_job, &jobs[i]) != 0) {
            fprintf(stderr, "burn-bench: could not start thread %d of %d\n", i + 1, threads);
            exit(1);
        }
    }
    (void)run_job(&jobs[0]);
    double total = jobs[0].result;
    for (int i = 1; i < threads; i++) {
        (void)pthread_join(ids[i], NULL);
        total += jobs[i].result;
    }
    (void)pthread_barrier_destroy(&start);
    return total;
}
