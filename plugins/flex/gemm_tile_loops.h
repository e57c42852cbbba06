/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_tile_loops.h - the tiles of the matrix products in f32 and f64: what a template includes
 * that is compiled once per ISA.
 *
 * Owns the loop over k and what becomes of its sums; not the shapes of tiles, which the template
 * says before: ELEMENT (its type), ELEMENT_BYTES, TILE_TYPE (the argument of a tile), VL (elements
 * of a vector), NV (vectors of the widest tile), TILE_ADDS_ROWS (1: they know FLEX_INIT_ROW).
 * Rules: an element is one chain of multiply-adds over k from zero, fused where the ISA has it,
 * then what the tile starts from is added; so its bits do not depend on the tile. To add an ISA: a
 * case of `fused`, and the template's shapes.
 */
#ifndef BURN_PLUGINS_FLEX_GEMM_TILE_LOOPS_H
#define BURN_PLUGINS_FLEX_GEMM_TILE_LOOPS_H

#include "gemm_kernel.h"
#include "unrolled.h"

/* For TILES(X): X(vectors, rows) for each tile. */
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

/* Adds what the tile starts from and writes it. */
INLINE void finish(int rows, int nv, const TILE_TYPE *t, vec acc[FLEX_MR_MAX][NV])
{
    uint32_t mode = t->mode;
    UNROLLED
    for (int i = 0; i < rows; i++) {
        ELEMENT *c = t->c + i * t->ldc;
        UNROLLED
        for (int v = 0; v < nv; v++) {
            vec sum = acc[i][v];
            if (mode == FLEX_INIT_C) {
                sum = load(c + v * VL) + sum;
            } else if (mode == FLEX_INIT_COL) {
                sum = load(t->init + v * VL) + sum;
            } else if (TILE_ADDS_ROWS && mode == FLEX_INIT_ROW) {
                sum = splat(t->init[i]) + sum;
            }
            store(c + v * VL, sum);
        }
    }
}

/* One step along k. */
INLINE void step_k(int rows, int nv, int64_t ars, const ELEMENT *const *a, const ELEMENT *b,
                   vec acc[FLEX_MR_MAX][NV])
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

/* Some steps: scalar instructions compete with multiply-adds for ports, so there are few. */
INLINE void steps_k(int count, int rows, int nv, int64_t ars, int64_t acs, int64_t ldb,
                    const ELEMENT **a, const ELEMENT **b, vec acc[FLEX_MR_MAX][NV])
{
    UNROLLED
    for (int u = 0; u < count; u++) {
        const ELEMENT *at[POINTERS];
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

/* A tile, `turn` steps along k at a time. */
INLINE void tile(int turn, int rows, int nv, int64_t ars, int64_t acs, int64_t ldb,
                 const TILE_TYPE *t)
{
    vec acc[FLEX_MR_MAX][NV];
    const ELEMENT *a[POINTERS];
    const ELEMENT *b = t->b;
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
    for (; k + turn <= t->kc; k += turn) {
        steps_k(turn, rows, nv, ars, acs, ldb, a, &b, acc);
    }
    for (; k < t->kc; k++) {
        steps_k(1, rows, nv, ars, acs, ldb, a, &b, acc);
    }
    finish(rows, nv, t, acc);
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

/* The two kernels of a tile, for TILES, and how a table names them. */
#define TILE_FN(v, rows)                                                                           \
    static void tile_##v##_##rows(const TILE_TYPE *t)                                              \
    {                                                                                              \
        tile(UNROLL_SHORT, rows, v, t->ars, 1, t->ldb, t);                                         \
    }                                                                                              \
    static void turned_##v##_##rows(const TILE_TYPE *t)                                            \
    {                                                                                              \
        tile(UNROLL_SHORT, rows, v, 1, t->ars, t->ldb, t);                                         \
    }
#define TILE_ENTRY(v, r)   [v][r] = tile_##v##_##r,
#define TURNED_ENTRY(v, r) [v][r] = turned_##v##_##r,

#endif /* BURN_PLUGINS_FLEX_GEMM_TILE_LOOPS_H */
