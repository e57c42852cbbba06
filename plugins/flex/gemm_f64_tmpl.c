/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_f64_tmpl.c - micro-kernels and the packer of the f64 matrix product, compiled once per ISA
 * with ISA defined as baseline, avx2 or avx512.
 *
 * Owns the loops that touch every element, not the blocking (gemm_f64.c). Tiles have as many
 * accumulators as registers allow, and the full one is as wide as that lets, as those of f32 are
 * (gemm_kernel_tmpl.c). Rules: an element is one chain of multiply-adds over k from zero, fused
 * where the ISA has it. To add an ISA: give its vector, tiles and `fused` below, and build this
 * file with its flags.
 */
#include "gemm_f64_kernel.h"
#include "unrolled.h"

/* TILES(X): X(vectors, rows) for each tile; ROWS_OF: the most rows of one, two, ... vectors. */
#define UP_TO_4(X, v) X(v, 1) X(v, 2) X(v, 3) X(v, 4)
#define UP_TO_6(X, v) UP_TO_4(X, v) X(v, 5) X(v, 6)
#define UP_TO_8(X, v) UP_TO_6(X, v) X(v, 7) X(v, 8)
#define UP_TO_12(X, v) UP_TO_8(X, v) X(v, 9) X(v, 10) X(v, 11) X(v, 12)
#define UP_TO_16(X, v) UP_TO_12(X, v) X(v, 13) X(v, 14) X(v, 15) X(v, 16)
#if defined(__AVX512F__)
#define VL 8
#define MR 6
#define NV 4
#define TILES(X) UP_TO_16(X, 1) UP_TO_12(X, 2) UP_TO_8(X, 3) UP_TO_6(X, 4)
#define ROWS_OF 16, 12, 8, 6
#elif defined(__AVX2__) && defined(__FMA__)
#define VL 4
#define MR 4
#define NV 3
#define TILES(X) UP_TO_12(X, 1) UP_TO_6(X, 2) UP_TO_4(X, 3)
#define ROWS_OF 12, 6, 4
#elif defined(__aarch64__)
#define VL 2
#define MR 6
#define NV 4
#define TILES(X) UP_TO_16(X, 1) UP_TO_12(X, 2) UP_TO_8(X, 3) UP_TO_6(X, 4)
#define ROWS_OF 16, 12, 8, 6
#else
#define VL 2
#define MR 4
#define NV 2
#define TILES(X) UP_TO_8(X, 1) UP_TO_4(X, 2)
#define ROWS_OF 8, 4
#endif
#define NR (NV * VL)
/* Pointers to A's rows, each for three of them, so that addresses need few registers. */
#define POINTERS ((FLEX_F64_MR_MAX + 2) / 3)
/*
 * Steps along k per turn of the loop. A sanitizer checks every load, so that unrolled bodies take
 * minutes to compile: one step then.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNROLL 1
#else
#define UNROLL 2
#endif
/* Rows of B ahead that the packing of whole rows asks for. */
#define PACK_AHEAD 4
/* Steps of a few columns that are packed in turn: whole lines are read, and what is written stays
 * in the first cache until the other columns come. */
#define PACK_RUN 32

typedef double vec __attribute__((vector_size(VL * 8), aligned(8), may_alias));
typedef double vec4 __attribute__((vector_size(32), aligned(8), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const double *p)
{
    return *(const vec *)(const void *)p;
}

INLINE void store(double *p, vec x)
{
    *(vec *)(void *)p = x;
}

INLINE vec splat(double x)
{
    return x - (vec){0};
}

/* c + a * b, rounded once where the ISA can; written out as f32's is. */
INLINE vec fused(vec a, vec b, vec c)
{
#if defined(__AVX512F__)
    __asm__("vfmadd231pd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
#elif defined(__AVX2__) && defined(__FMA__)
    __asm__("vfmadd231pd %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
#elif defined(__aarch64__)
    __asm__("fmla %0.2d, %1.2d, %2.2d" : "+w"(c) : "w"(a), "w"(b));
    return c;
#else
    return a * b + c;
#endif
}

/* Adds what the tile starts from and writes it. */
INLINE void finish(int rows, int nv, const flex_f64_tile *t, vec acc[FLEX_F64_MR_MAX][NV])
{
    uint32_t mode = t->mode;
    UNROLLED
    for (int i = 0; i < rows; i++) {
        double *c = t->c + i * t->ldc;
        UNROLLED
        for (int v = 0; v < nv; v++) {
            vec sum = acc[i][v];
            if (mode == FLEX_F64_C) {
                sum = load(c + v * VL) + sum;
            } else if (mode == FLEX_F64_COL) {
                sum = load(t->init + v * VL) + sum;
            }
            store(c + v * VL, sum);
        }
    }
}

/* One step along k. */
INLINE void step_k(int rows, int nv, int64_t ars, const double *const *a, const double *b,
                   vec acc[FLEX_F64_MR_MAX][NV])
{
    vec y[NV];
    UNROLLED
    for (int v = 0; v < nv; v++) {
        y[v] = load(b + v * VL);
    }
    UNROLLED
    for (int i = 0; i < rows; i++) {
        vec x = splat(a[i / 3][(i % 3) * ars]);
        UNROLLED
        for (int v = 0; v < nv; v++) {
            acc[i][v] = fused(x, y[v], acc[i][v]);
        }
    }
}

/* Some steps, after which the pointers are moved. */
INLINE void steps_k(int count, int rows, int nv, int64_t ars, int64_t acs, int64_t ldb,
                    const double **a, const double **b, vec acc[FLEX_F64_MR_MAX][NV])
{
    UNROLLED
    for (int u = 0; u < count; u++) {
        const double *at[POINTERS];
        UNROLLED
        for (int i = 0; i < (rows + 2) / 3; i++) {
            at[i] = a[i] + u * acs;
        }
        step_k(rows, nv, ars, at, *b + u * ldb, acc);
    }
    UNROLLED
    for (int i = 0; i < (rows + 2) / 3; i++) {
        a[i] += count * acs;
    }
    *b += count * ldb;
}

INLINE void tile(int rows, int nv, int64_t ars, int64_t acs, const flex_f64_tile *t)
{
    vec acc[FLEX_F64_MR_MAX][NV];
    const double *a[POINTERS];
    const double *b = t->b;
    int64_t ldb = t->ldb;
    UNROLLED
    for (int i = 0; i < rows; i++) {
        UNROLLED
        for (int v = 0; v < nv; v++) {
            acc[i][v] = (vec){0};
        }
    }
    UNROLLED
    for (int i = 0; i < (rows + 2) / 3; i++) {
        a[i] = t->a + 3 * i * ars;
    }
    int64_t k = 0;
    for (; k + UNROLL <= t->kc; k += UNROLL) {
        steps_k(UNROLL, rows, nv, ars, acs, ldb, a, &b, acc);
    }
    for (; k < t->kc; k++) {
        steps_k(1, rows, nv, ars, acs, ldb, a, &b, acc);
    }
    finish(rows, nv, t, acc);
}

#define TILE_FN(v, rows)                                                                           \
    static void tile_##v##_##rows(const flex_f64_tile *t)                                          \
    {                                                                                              \
        tile(rows, v, t->lda, 1, t);                                                               \
    }                                                                                              \
    static void turned_##v##_##rows(const flex_f64_tile *t)                                        \
    {                                                                                              \
        tile(rows, v, 1, t->lda, t);                                                               \
    }
TILES(TILE_FN)

/* dst[k][j] for 4 x 4 elements of four columns that are dense along k. */
INLINE void transpose4(double *dst, int64_t ld, const double *src, int64_t cs)
{
    vec4 r0 = *(const vec4 *)(const void *)src;
    vec4 r1 = *(const vec4 *)(const void *)(src + cs);
    vec4 r2 = *(const vec4 *)(const void *)(src + 2 * cs);
    vec4 r3 = *(const vec4 *)(const void *)(src + 3 * cs);
    vec4 even01 = __builtin_shufflevector(r0, r1, 0, 4, 2, 6);
    vec4 odd01 = __builtin_shufflevector(r0, r1, 1, 5, 3, 7);
    vec4 even23 = __builtin_shufflevector(r2, r3, 0, 4, 2, 6);
    vec4 odd23 = __builtin_shufflevector(r2, r3, 1, 5, 3, 7);
    *(vec4 *)(void *)dst = __builtin_shufflevector(even01, even23, 0, 1, 4, 5);
    *(vec4 *)(void *)(dst + ld) = __builtin_shufflevector(odd01, odd23, 0, 1, 4, 5);
    *(vec4 *)(void *)(dst + 2 * ld) = __builtin_shufflevector(even01, even23, 2, 3, 6, 7);
    *(vec4 *)(void *)(dst + 3 * ld) = __builtin_shufflevector(odd01, odd23, 2, 3, 6, 7);
}

/* One panel of any strides, `ld` columns wide. */
static void pack_panel(double *dst, int64_t ld, const double *src, int64_t rs, int64_t cs,
                       int64_t n, int64_t kc)
{
    int64_t k4 = rs == 1 ? kc - kc % 4 : 0;
    int64_t n4 = n - n % 4;
    for (int64_t k0 = 0; k0 < k4; k0 += PACK_RUN) {
        int64_t k1 = k0 + PACK_RUN < k4 ? k0 + PACK_RUN : k4;
        for (int64_t j = 0; j < n4; j += 4) {
            for (int64_t k = k0; k < k1; k += 4) {
                transpose4(dst + k * ld + j, ld, src + k + j * cs, cs);
            }
        }
    }
    for (int64_t k = 0; k < kc; k++) {
        for (int64_t j = k < k4 ? n4 : 0; j < n; j++) {
            dst[k * ld + j] = src[k * rs + j * cs];
        }
        for (int64_t j = n; j < ld; j++) {
            dst[k * ld + j] = 0.0;
        }
    }
}

/* Whole rows at a time, since they are what memory fetches well; the next ones are asked for. */
static void pack_rows(double *dst, const double *src, int64_t rs, int64_t n, int64_t kc)
{
    for (int64_t k = 0; k < kc; k++) {
        const double *s = src + k * rs;
        double *d = dst + k * NR;
        for (int64_t j = 0; j < n; j += NR) {
            UNROLLED
            for (int v = 0; v < NV; v++) {
                __builtin_prefetch(s + PACK_AHEAD * rs + j + v * VL);
                store(d + j * kc + v * VL, load(s + j + v * VL));
            }
        }
    }
}

static void pack(double *dst, const double *src, int64_t rs, int64_t cs, int64_t n, int64_t kc)
{
    int64_t full = n - n % NR;
    if (cs == 1) {
        pack_rows(dst, src, rs, full, kc);
    } else {
        for (int64_t j = 0; j < full; j += NR) {
            pack_panel(dst + j * kc, NR, src + j * cs, rs, cs, NR, kc);
        }
    }
    if (full < n) {
        int64_t ld = (n - full + VL - 1) / VL * VL;
        pack_panel(dst + full * kc, ld, src + full * cs, rs, cs, n - full, kc);
    }
}

#define TILE_ENTRY(v, r)   [v][r] = tile_##v##_##r,
#define TURNED_ENTRY(v, r) [v][r] = turned_##v##_##r,
#define KERNELS_NAME_OF(isa) flex_f64_kernels_##isa
#define KERNELS_NAME(isa) KERNELS_NAME_OF(isa)

const flex_f64_kernels KERNELS_NAME(ISA) = {
    .mr = MR,
    .lanes = VL,
    .nv = NV,
    .rows = {0, ROWS_OF},
    .tile = {TILES(TILE_ENTRY)},
    .turned = {TILES(TURNED_ENTRY)},
    .pack = pack,
};
