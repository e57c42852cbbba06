/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_tile_loops.h - the tiles of the matrix products in f32 and f64: what a template includes
 * that is compiled once per ISA.
 *
 * Owns the loop over k and what becomes of its sums; not the shapes of tiles, which the template
 * says before: ELEMENT (its type), ELEMENT_BYTES, TILE_TYPE (the argument of a tile), VL (elements
 * of a vector), NV (vectors of the widest tile), TILE_ADDS_ROWS (1: they know FLEX_INIT_ROW).
 * Rules: an element is one chain of multiply-adds over k from zero, fused where the ISA has it,
 * then what the tile starts from is added; so its bits do not depend on the tile. No column but the
 * tile's is read or written: where n is no multiple of a vector, the last one ends with the row and
 * overlaps the one before it; fewer columns than a vector are a mask. To add an ISA: a case of
 * `fused`, one of the masks if it has them, and the template's shapes.
 */
#ifndef BURN_PLUGINS_FLEX_GEMM_TILE_LOOPS_H
#define BURN_PLUGINS_FLEX_GEMM_TILE_LOOPS_H

#include "gemm_kernel.h"
#include "unrolled.h"

#include <stddef.h>

#if defined(__x86_64__)
#    include <immintrin.h>
#endif

/* For NARROW_TILES and WIDE_TILES: X(vectors, rows) for each tile. */
#define UP_TO_4(X, v) X(v, 1) X(v, 2) X(v, 3) X(v, 4)
#define UP_TO_6(X, v) UP_TO_4(X, v) X(v, 5) X(v, 6)
#define UP_TO_8(X, v) UP_TO_6(X, v) X(v, 7) X(v, 8)
#define UP_TO_12(X, v) UP_TO_8(X, v) X(v, 9) X(v, 10) X(v, 11) X(v, 12)
#define UP_TO_16(X, v) UP_TO_12(X, v) X(v, 13) X(v, 14) X(v, 15) X(v, 16)

/* Pointers to A's rows, each for three of them, so that addresses need few registers. */
#define POINTERS ((FLEX_MR_MAX + 2) / 3)

typedef ELEMENT vec
    __attribute__((vector_size(VL * ELEMENT_BYTES), aligned(ELEMENT_BYTES), may_alias));
/* Four elements, which the packers turn. */
typedef ELEMENT vec4
    __attribute__((vector_size(4 * ELEMENT_BYTES), aligned(ELEMENT_BYTES), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const ELEMENT *p)
{
    return *(const vec *)(const void *)p;
}

INLINE void store(ELEMENT *p, vec x)
{
    *(vec *)(void *)p = x;
}

/* HAS_NARROW: the first n elements of a vector, the others zero, and how they are written. */
#if defined(__AVX512F__)
#define HAS_NARROW 1
typedef uint32_t narrow_mask;
INLINE narrow_mask mask_of(int64_t n)
{
    return (UINT32_C(1) << n) - 1;
}

INLINE vec load_narrow(const ELEMENT *p, narrow_mask m)
{
#if ELEMENT_BYTES == 8
    return (vec)_mm512_maskz_loadu_pd((__mmask8)m, p);
#else
    return (vec)_mm512_maskz_loadu_ps((__mmask16)m, p);
#endif
}

INLINE void store_narrow(ELEMENT *p, narrow_mask m, vec x)
{
#if ELEMENT_BYTES == 8
    _mm512_mask_storeu_pd(p, (__mmask8)m, (__m512d)x);
#else
    _mm512_mask_storeu_ps(p, (__mmask16)m, (__m512)x);
#endif
}
#elif defined(__AVX2__) && defined(__FMA__)
#define HAS_NARROW 1
typedef __m256i narrow_mask;
INLINE narrow_mask mask_of(int64_t n)
{
#if ELEMENT_BYTES == 8
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
#else
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
#endif
}

INLINE vec load_narrow(const ELEMENT *p, narrow_mask m)
{
#if ELEMENT_BYTES == 8
    return (vec)_mm256_maskload_pd(p, m);
#else
    return (vec)_mm256_maskload_ps(p, m);
#endif
}

INLINE void store_narrow(ELEMENT *p, narrow_mask m, vec x)
{
#if ELEMENT_BYTES == 8
    _mm256_maskstore_pd(p, m, (__m256d)x);
#else
    _mm256_maskstore_ps(p, m, (__m256)x);
#endif
}
#else
#define HAS_NARROW 0
typedef int narrow_mask;
INLINE narrow_mask mask_of(int64_t n)
{
    return (int)n;
}

INLINE vec load_narrow(const ELEMENT *p, narrow_mask m)
{
    (void)m;
    return load(p);
}

INLINE void store_narrow(ELEMENT *p, narrow_mask m, vec x)
{
    (void)m;
    store(p, x);
}
#endif

INLINE vec splat(ELEMENT x)
{
    return x - (vec){0};
}

#if ELEMENT_BYTES == 8
#define X86_SUFFIX "pd"
#define ARM_LANES  "2d"
#else
#define X86_SUFFIX "ps"
#define ARM_LANES  "4s"
#endif

/*
 * c + a * b, rounded once where the ISA can. Written out, since compilers that may choose among the
 * operand orders of the instruction copy accumulators about.
 */
INLINE vec fused(vec a, vec b, vec c)
{
#if defined(__AVX512F__)
    __asm__("vfmadd231" X86_SUFFIX " %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
#elif defined(__AVX2__) && defined(__FMA__)
    __asm__("vfmadd231" X86_SUFFIX " %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
#elif defined(__aarch64__)
    __asm__("fmla %0." ARM_LANES ", %1." ARM_LANES ", %2." ARM_LANES
            : "+w"(c)
            : "w"(a), "w"(b));
    return c;
#else
    return a * b + c;
#endif
}

/* How a tile's columns lie in vectors. */
typedef struct columns {
    int nv;
    int part;   /* they fill the last vector in part */
    int narrow; /* and there is no other one */
    int64_t last; /* where it begins */
    narrow_mask mask;
} columns;

INLINE vec load_at(const columns *w, int v, const ELEMENT *p)
{
    if (w->narrow) {
        return load_narrow(p, w->mask);
    }
    return load(p + (v == w->nv - 1 ? w->last : v * VL));
}

INLINE void store_at(const columns *w, int v, ELEMENT *p, vec x)
{
    if (w->narrow) {
        store_narrow(p, w->mask, x);
    } else {
        store(p + (v == w->nv - 1 ? w->last : v * VL), x);
    }
}

/* Adds what the tile starts from and writes it: all of a row is read before any of it is written,
 * for its last vectors may overlap. */
INLINE void finish(int rows, const columns *w, const TILE_TYPE *t, vec acc[FLEX_MR_MAX][NV])
{
    uint32_t mode = t->mode;
    UNROLLED
    for (int i = 0; i < rows; i++) {
        ELEMENT *c = t->c + i * t->ldc;
        vec sums[NV];
        UNROLLED
        for (int v = 0; v < w->nv; v++) {
            sums[v] = acc[i][v];
            if (mode == FLEX_INIT_C) {
                sums[v] = load_at(w, v, c) + sums[v];
            } else if (mode == FLEX_INIT_COL) {
                sums[v] = load_at(w, v, t->init) + sums[v];
            } else if (TILE_ADDS_ROWS && mode == FLEX_INIT_ROW) {
                sums[v] = splat(t->init[i]) + sums[v];
            }
        }
        UNROLLED
        for (int v = 0; v < w->nv; v++) {
            store_at(w, v, c, sums[v]);
        }
    }
}

/* Where the next step along k is read: A's rows, each for three of them, B's row, and the last
 * vector of that. */
typedef struct place {
    const ELEMENT *a[POINTERS];
    const ELEMENT *b;
    const ELEMENT *last;
} place;

/* One step along k, `u` steps behind the place. */
INLINE void step_k(int u, int rows, const columns *w, int64_t ars, int64_t acs, int64_t ldb,
                   const place *at, vec acc[FLEX_MR_MAX][NV])
{
    vec y[NV];
    UNROLLED
    for (int v = 0; v < w->nv; v++) {
        if (w->narrow) {
            y[v] = load_narrow(at->b + u * ldb, w->mask);
        } else if (w->part && v == w->nv - 1) {
            y[v] = load(at->last + u * ldb);
        } else {
            y[v] = load(at->b + u * ldb + v * VL);
        }
    }
    UNROLLED
    for (int i = 0; i < rows; i++) {
        vec x = splat(at->a[i / 3][(i % 3) * ars + u * acs]);
        UNROLLED
        for (int v = 0; v < w->nv; v++) {
            acc[i][v] = fused(x, y[v], acc[i][v]);
        }
    }
}

/* Some steps: scalar instructions compete with multiply-adds for ports, so there are few. */
INLINE void steps_k(int count, int rows, const columns *w, int64_t ars, int64_t acs, int64_t ldb,
                    place *at, vec acc[FLEX_MR_MAX][NV])
{
    UNROLLED
    for (int u = 0; u < count; u++) {
        step_k(u, rows, w, ars, acs, ldb, at, acc);
    }
    UNROLLED
    for (int i = 0; i < (rows + 2) / 3; i++) {
        at->a[i] += count * acs;
    }
    at->b += count * ldb;
    if (w->part) {
        at->last += count * ldb;
    }
}

/* One line in each of `count` places. */
INLINE void ask_for_lines(int count, const ELEMENT *at, int64_t step)
{
    UNROLLED
    for (int i = 0; i < count; i++) {
        __builtin_prefetch(at + i * step);
    }
}

/*
 * A tile, `turn` steps along k at a time. `asks`: it asks for memory that is needed later, a few
 * lines every FLEX_ASK_STEPS steps: more at a time would keep what the tile itself reads waiting.
 */
INLINE void tile(int turn, int rows, const columns *w, int64_t ars, int64_t acs, int64_t ldb,
                 const TILE_TYPE *t, int asks, const ELEMENT *next)
{
    vec acc[FLEX_MR_MAX][NV];
    place at = {.b = t->b, .last = t->b + w->last}; /* which is read only of a part */
    UNROLLED
    for (int i = 0; i < rows; i++) {
        UNROLLED
        for (int v = 0; v < w->nv; v++) {
            acc[i][v] = (vec){0};
        }
    }
    UNROLLED
    for (int i = 0; i < (rows + 2) / 3; i++) {
        at.a[i] = t->a + 3 * i * ars;
    }
    int64_t k = 0;
    if (asks) {
        for (int n = 0; k + FLEX_ASK_STEPS <= t->kc; n++) {
            if (next != NULL) {
                ask_for_lines(rows, next + n * FLEX_ASK_LINE, ars);
            }
            if (n < rows) {
                ask_for_lines(w->nv, t->c + n * t->ldc, VL);
            }
            for (int64_t end = k + FLEX_ASK_STEPS; k < end; k += turn) {
                steps_k(turn, rows, w, ars, acs, ldb, &at, acc);
            }
        }
    }
    for (; k + turn <= t->kc; k += turn) {
        steps_k(turn, rows, w, ars, acs, ldb, &at, acc);
    }
    for (; k < t->kc; k++) {
        steps_k(1, rows, w, ars, acs, ldb, &at, acc);
    }
    finish(rows, w, t, acc);
}

/*
 * Steps along k per turn of the loop: of tiles that may be so short that getting into the loop
 * counts, and of others. A sanitizer checks every load, so that unrolled bodies take minutes to
 * compile: one step then.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNROLL_SHORT 1
#define UNROLL_LONG  1
#else
#define UNROLL_SHORT 2
#define UNROLL_LONG  4
#endif

/* Columns of a tile: v whole vectors; so many that the last one is one in part. */
#define WHOLE(v) ((columns){.nv = (v), .last = ((v)-1) * VL})
#define PART(v)                                                                                    \
    ((v) == 1 ? (columns){.nv = 1, .part = 1, .narrow = 1, .mask = mask_of(t->n)}                  \
              : (columns){.nv = (v), .part = 1, .last = t->n - VL})

/* The kernels of a shape, for TILES, and how a table names them. */
#define TILE_PAIR(name, rows, shape)                                                               \
    static void tile_##name(const TILE_TYPE *t)                                                    \
    {                                                                                              \
        const columns w = shape;                                                                   \
        tile(UNROLL_SHORT, rows, &w, t->ars, 1, t->ldb, t, 0, NULL);                               \
    }                                                                                              \
    static void turned_##name(const TILE_TYPE *t)                                                  \
    {                                                                                              \
        const columns w = shape;                                                                   \
        tile(UNROLL_SHORT, rows, &w, 1, t->ars, t->ldb, t, 0, NULL);                               \
    }
#define TILE_FN(v, rows)          TILE_PAIR(v##_##rows, rows, WHOLE(v))
#define PART_FN(v, rows)          TILE_PAIR(part_##v##_##rows, rows, PART(v))
#define TILE_ENTRY(v, r)          [v][r] = tile_##v##_##r,
#define TURNED_ENTRY(v, r)        [v][r] = turned_##v##_##r,
#define PART_TILE_ENTRY(v, r)     [v][r] = tile_part_##v##_##r,
#define PART_TURNED_ENTRY(v, r)   [v][r] = turned_part_##v##_##r,
/* The tiles that can end in a part of a vector. */
#if HAS_NARROW
#define PART_TILES(X) NARROW_TILES(X) WIDE_TILES(X)
#else
#define PART_TILES(X) WIDE_TILES(X)
#endif
#define TILES(X) NARROW_TILES(X) WIDE_TILES(X)

#endif /* BURN_PLUGINS_FLEX_GEMM_TILE_LOOPS_H */
