/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_kernel_tmpl.c - micro-kernels and packers of the f32 matrix product, compiled once per ISA
 * with ISA defined as baseline, avx2 or avx512.
 *
 * Owns the loops that touch every element, not the blocking. The tile is 12 x 32 with AVX-512,
 * 6 x 16 with AVX2 and 4 x 8 otherwise: as many accumulators as registers allow. Rules: an element
 * is one chain of multiply-adds over k from zero, fused where the ISA has it. To add an ISA: give
 * its vector, tile and `fused` below, and build this file with its flags.
 */
#include "gemm_kernel.h"

#include <string.h>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VL 16
#define MR 12
#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#elif defined(__AVX2__) && defined(__FMA__)
#define VL 8
#define MR 6
#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#elif defined(__aarch64__)
#define VL 4
#define MR 8
#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#else
#define VL 4
#define MR 4
#define ROWS(X) X(1) X(2) X(3) X(4)
#endif
#define NR (2 * VL)
/*
 * Steps along k per turn of the loop, and how far ahead the packed panels are fetched. A sanitizer
 * checks every load, so that unrolled bodies take minutes to compile: one step then.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNROLL 1
#else
#define UNROLL 4
#endif
#define FETCH_STEPS 16
/* Rows ahead that the packing of whole rows asks for. */
#define PACK_AHEAD 4

typedef float vec __attribute__((vector_size(VL * 4), aligned(4), may_alias));
typedef float vec4 __attribute__((vector_size(16), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const float *p)
{
    return *(const vec *)(const void *)p;
}

INLINE void store(float *p, vec x)
{
    *(vec *)(void *)p = x;
}

INLINE vec splat(float x)
{
    return x - (vec){0};
}

/*
 * c + a * b, rounded once where the ISA can. Written out, since compilers that may choose among the
 * operand orders of the instruction copy accumulators about.
 */
INLINE vec fused(vec a, vec b, vec c)
{
#if defined(__AVX512F__)
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
#elif defined(__AVX2__) && defined(__FMA__)
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
#elif defined(__aarch64__)
    __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(a), "w"(b));
    return c;
#else
    return a * b + c;
#endif
}

/* Adds what the tile starts from and writes it. */
INLINE void finish(int rows, int nv, const flex_tile *t, vec acc[MR][2])
{
    uint32_t mode = t->mode;
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        float *c = t->c + i * t->ldc;
#pragma GCC unroll 2
        for (int v = 0; v < nv; v++) {
            vec sum = acc[i][v];
            if (mode == FLEX_INIT_C) {
                sum = load(c + v * VL) + sum;
            } else if (mode == FLEX_INIT_COL) {
                sum = load(t->init + v * VL) + sum;
            } else if (mode == FLEX_INIT_ROW) {
                sum = splat(t->init[i]) + sum;
            }
            store(c + v * VL, sum);
        }
    }
}

/* What a tile asks of the caches while it sums. */
enum { FETCH_NONE = 0, FETCH_PACKED = 1 };

/*
 * One step along k. Rows are reached by one pointer per three, so that addresses need few
 * registers.
 */
INLINE void step_k(int rows, int nv, int64_t ars, const float *const *a, const float *b,
                   vec acc[MR][2])
{
    vec b0 = load(b);
    vec b1 = nv > 1 ? load(b + VL) : b0;
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        vec x = splat(a[i / 3][(i % 3) * ars]);
        acc[i][0] = fused(x, b0, acc[i][0]);
        if (nv > 1) {
            acc[i][1] = fused(x, b1, acc[i][1]);
        }
    }
}

/* UNROLL steps: scalar instructions compete with multiply-adds for ports, so there are few. */
INLINE void steps_k(int count, int rows, int nv, int64_t ars, int64_t acs, int64_t ldb, int fetch,
                    const float **a, const float **b, vec acc[MR][2])
{
#pragma GCC unroll 4
    for (int u = 0; u < count; u++) {
        if (fetch != FETCH_NONE) {
            __builtin_prefetch(*b + (FETCH_STEPS + u) * ldb);
            __builtin_prefetch(*b + (FETCH_STEPS + u) * ldb + NR - 1);
            if (acs != 1) {
                __builtin_prefetch(a[0] + (2 * FETCH_STEPS + u) * MR);
            }
        }
        const float *at[4] = {a[0] + u * acs, a[1] + u * acs, a[2] + u * acs, a[3] + u * acs};
        step_k(rows, nv, ars, at, *b + u * ldb, acc);
    }
#pragma GCC unroll 4
    for (int i = 0; i < (rows + 2) / 3; i++) {
        a[i] += count * acs;
    }
    *b += count * ldb;
}

/*
 * The sum over k. Lines of C, which are needed at the end, and of the next panels are asked for one
 * at a time, since only so many can be on their way, and this tile's must not wait.
 */
INLINE void sum_k(int rows, int nv, int64_t ars, int64_t acs, int64_t ldb, int fetch,
                  const flex_tile *t, vec acc[MR][2])
{
    const float *a[4] = {t->a, t->a + 3 * ars, t->a + 6 * ars, t->a + 9 * ars};
    const float *b = t->b;
    int64_t k = 0;
    if (fetch != FETCH_NONE) {
        const float *c = t->c;
        for (int i = 0; i < rows && k + UNROLL <= t->kc; i++, k += UNROLL) {
            __builtin_prefetch(c, 1);
            __builtin_prefetch(c + NR - 1, 1);
            c += t->ldc;
            steps_k(UNROLL, rows, nv, ars, acs, ldb, fetch, a, &b, acc);
        }
        for (int s = 0; s < 2; s++) {
            const float *at = t->ahead[s].at;
            for (int64_t i = 0; i < t->ahead[s].n && k + UNROLL <= t->kc; i++, k += UNROLL) {
                __builtin_prefetch(at, 0, 2);
                __builtin_prefetch(at + 16, 0, 2);
                at += t->ahead[s].step;
                steps_k(UNROLL, rows, nv, ars, acs, ldb, fetch, a, &b, acc);
            }
        }
    }
    for (; k + UNROLL <= t->kc; k += UNROLL) {
        steps_k(UNROLL, rows, nv, ars, acs, ldb, fetch, a, &b, acc);
    }
    for (; k < t->kc; k++) {
        steps_k(1, rows, nv, ars, acs, ldb, FETCH_NONE, a, &b, acc);
    }
}

INLINE void tile(int rows, int nv, int64_t ars, int64_t acs, int64_t ldb, int fetch,
                 const flex_tile *t)
{
    vec acc[MR][2];
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        acc[i][0] = (vec){0};
        acc[i][1] = (vec){0};
    }
    sum_k(rows, nv, ars, acs, ldb, fetch, t, acc);
    finish(rows, nv, t, acc);
}

static void packed(const flex_tile *t)
{
    tile(MR, 2, 1, MR, NR, FETCH_PACKED, t);
}

/* Rows of A, B packed. */
static void strip(const flex_tile *t)
{
    tile(MR, 2, t->ars, 1, NR, FETCH_PACKED, t);
}

#define TILE_FN(rows)                                                                              \
    static void tile_##rows##_1(const flex_tile *t)                                                \
    {                                                                                              \
        tile(rows, 1, t->ars, 1, t->ldb, FETCH_NONE, t);                                           \
    }                                                                                              \
    static void tile_##rows##_2(const flex_tile *t)                                                \
    {                                                                                              \
        tile(rows, 2, t->ars, 1, t->ldb, FETCH_NONE, t);                                           \
    }                                                                                              \
    static void turned_##rows##_1(const flex_tile *t)                                              \
    {                                                                                              \
        tile(rows, 1, 1, t->ars, t->ldb, FETCH_NONE, t);                                           \
    }                                                                                              \
    static void turned_##rows##_2(const flex_tile *t)                                              \
    {                                                                                              \
        tile(rows, 2, 1, t->ars, t->ldb, FETCH_NONE, t);                                           \
    }
ROWS(TILE_FN)

/* dst[k][j] for a 4 x 4 block read from four rows. */
INLINE void transpose4(float *dst, int64_t ld, const float *const *rows, int64_t k)
{
    vec4 r0 = *(const vec4 *)(const void *)(rows[0] + k);
    vec4 r1 = *(const vec4 *)(const void *)(rows[1] + k);
    vec4 r2 = *(const vec4 *)(const void *)(rows[2] + k);
    vec4 r3 = *(const vec4 *)(const void *)(rows[3] + k);
    vec4 lo01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
    vec4 hi01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
    vec4 lo23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
    vec4 hi23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    *(vec4 *)(void *)dst = __builtin_shufflevector(lo01, lo23, 0, 1, 4, 5);
    *(vec4 *)(void *)(dst + ld) = __builtin_shufflevector(lo01, lo23, 2, 3, 6, 7);
    *(vec4 *)(void *)(dst + 2 * ld) = __builtin_shufflevector(hi01, hi23, 0, 1, 4, 5);
    *(vec4 *)(void *)(dst + 3 * ld) = __builtin_shufflevector(hi01, hi23, 2, 3, 6, 7);
}

static void pack_rows(float *dst, int64_t ld, const float *const *rows, int64_t n, int64_t kc)
{
    int64_t n4 = n - n % 4;
    int64_t k4 = kc - kc % 4;
    for (int64_t k = 0; k < k4; k += 4) {
        for (int64_t j = 0; j < n4; j += 4) {
            transpose4(dst + k * ld + j, ld, rows + j, k);
        }
    }
    for (int64_t k = k4; k < kc; k++) {
        for (int64_t j = 0; j < n4; j++) {
            dst[k * ld + j] = rows[j][k];
        }
    }
    for (int64_t j = n4; j < n; j++) {
        for (int64_t k = 0; k < kc; k++) {
            dst[k * ld + j] = rows[j][k];
        }
    }
    for (int64_t k = 0; n < ld && k < kc; k++) {
        for (int64_t j = n; j < ld; j++) {
            dst[k * ld + j] = 0.0F;
        }
    }
}

/* n floats of each row into a full panel; n is known to the compiler. */
INLINE void pack_full(float *dst, const float *src, int64_t stride, int64_t n, int64_t kc)
{
    for (int64_t k = 0; k < kc; k++) {
        __builtin_prefetch(src + (k + 2 * PACK_AHEAD) * stride);
        memcpy(dst + k * n, src + k * stride, (size_t)n * sizeof(float));
    }
}

static void pack_copy(float *dst, int64_t ld, const float *src, int64_t stride, int64_t n,
                      int64_t kc)
{
    if (n == ld && n == MR) {
        pack_full(dst, src, stride, MR, kc);
        return;
    }
    if (n == ld && n == NR) {
        pack_full(dst, src, stride, NR, kc);
        return;
    }
    for (int64_t k = 0; k < kc; k++) {
        float *d = dst + k * ld;
        for (int64_t j = 0; j < n; j++) {
            d[j] = src[k * stride + j];
        }
        for (int64_t j = n; j < ld; j++) {
            d[j] = 0.0F;
        }
    }
}

/* Whole rows at a time, since they are what memory fetches well; the next ones are asked for. */
static void pack_panels(float *dst, const float *src, int64_t stride, int64_t n, int64_t kc)
{
    int64_t full = n - n % NR;
    for (int64_t k = 0; k < kc; k++) {
        const float *s = src + k * stride;
        float *d = dst + k * NR;
        for (int64_t j = 0; j < full; j += NR) {
            __builtin_prefetch(s + PACK_AHEAD * stride + j);
            __builtin_prefetch(s + PACK_AHEAD * stride + j + VL);
            store(d + j * kc, load(s + j));
            store(d + j * kc + VL, load(s + j + VL));
        }
    }
    if (full < n) {
        pack_copy(dst + full * kc, NR, src + full, stride, n - full, kc);
    }
}

static void pack_runs(float *dst, int64_t ld, const float *src, const int64_t *offset, int64_t kc,
                      const int64_t *start, const int64_t *from, int64_t n_runs)
{
    (void)ld;
    for (int64_t k = 0; k < kc; k++) {
        float *d = dst + k * NR;
        const float *s = src + offset[k];
        for (int64_t r = 0; r < n_runs; r++) {
            vec x0 = load(s + from[r]);
            vec x1 = load(s + from[r] + VL);
            store(d + start[r], x0);
            store(d + start[r] + VL, x1);
        }
    }
}

#define TILE_ENTRY(rows)   [rows] = {0, tile_##rows##_1, tile_##rows##_2},
#define TURNED_ENTRY(rows) [rows] = {0, turned_##rows##_1, turned_##rows##_2},
#define KERNELS_NAME_OF(isa) flex_gemm_kernels_##isa
#define KERNELS_NAME(isa) KERNELS_NAME_OF(isa)

const flex_gemm_kernels KERNELS_NAME(ISA) = {
    .mr = MR,
    .nr = NR,
    .packed = packed,
    .strip = strip,
    .tile = {ROWS(TILE_ENTRY)},
    .turned = {ROWS(TURNED_ENTRY)},
    .pack_rows = pack_rows,
    .pack_copy = pack_copy,
    .pack_panels = pack_panels,
    .pack_runs = pack_runs,
};
