/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * conv_direct_tmpl.c - the vector kernels of conv_direct.h, compiled once per ISA with ISA defined
 * as baseline, avx2 or avx512.
 *
 * Owns tiles that live in registers. Rules: an element of a map is one chain of multiply-adds over
 * k, in order, in any tile, so its bits do not depend on the tile it falls into. A sum of the
 * kernel's gradient runs over images and positions in one chain per lane; lanes are folded by
 * halves. To add an ISA: its vector, `fused` and the tile sizes.
 */
#include "conv_direct.h"
#include "unrolled.h"

#include <string.h>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VL 16
#elif defined(__AVX2__) && defined(__FMA__)
#define VL 8
#else
#define VL 4
#endif

typedef float vec __attribute__((vector_size(VL * 4), aligned(4), may_alias));
typedef float vec4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef float vec8 __attribute__((vector_size(32), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

enum { MAX_VECTORS = 8 };

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

/* c + a * b, rounded once where the ISA can. */
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

INLINE void map_tile(int rows, int vectors, const flex_conv_tile *t)
{
    vec acc[FLEX_CONV_ROWS][MAX_VECTORS];
    UNROLLED
    for (int i = 0; i < rows; i++) {
        UNROLLED
        for (int v = 0; v < vectors; v++) {
            acc[i][v] = splat(t->start[i]);
        }
    }
    const float *w = t->weights;
    for (int64_t k = 0; k < t->k; k++) {
        const float *from = t->image + t->offset[k];
        vec x[MAX_VECTORS];
        UNROLLED
        for (int v = 0; v < vectors; v++) {
            x[v] = load(from + v * VL);
        }
        UNROLLED
        for (int i = 0; i < rows; i++) {
            vec weight = splat(w[i]);
            UNROLLED
            for (int v = 0; v < vectors; v++) {
                acc[i][v] = fused(weight, x[v], acc[i][v]);
            }
        }
        w += rows;
    }
    UNROLLED
    for (int i = 0; i < rows; i++) {
        UNROLLED
        for (int v = 0; v < vectors; v++) {
            store(t->to + i * t->ld + v * VL, acc[i][v]);
        }
    }
}

/* Both halves of a vector, added. */
#if VL == 16
INLINE vec4 fold_to_4(vec x)
{
    vec8 y = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) +
             __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
    return __builtin_shufflevector(y, y, 0, 1, 2, 3) + __builtin_shufflevector(y, y, 4, 5, 6, 7);
}
#elif VL == 8
INLINE vec4 fold_to_4(vec x)
{
    return __builtin_shufflevector(x, x, 0, 1, 2, 3) + __builtin_shufflevector(x, x, 4, 5, 6, 7);
}
#else
INLINE vec4 fold_to_4(vec x)
{
    return x;
}
#endif

/* The sum of all lanes, folded by halves. */
INLINE float fold(vec x)
{
    vec4 y = fold_to_4(x);
    y += __builtin_shufflevector(y, y, 2, 3, 0, 1);
    return y[0] + y[1];
}

INLINE void sum_tile(int rows, int taps, const flex_conv_sums *s)
{
    vec acc[FLEX_CONV_ROWS][FLEX_CONV_TAPS];
    UNROLLED
    for (int i = 0; i < rows; i++) {
        UNROLLED
        for (int j = 0; j < taps; j++) {
            acc[i][j] = (vec){0};
        }
    }
    for (int64_t m = 0; m < s->images; m++) {
        const float *g[FLEX_CONV_ROWS];
        const float *x[FLEX_CONV_TAPS];
        UNROLLED
        for (int i = 0; i < rows; i++) {
            g[i] = s->g + m * s->g_image + i * s->g_plane;
        }
        UNROLLED
        for (int j = 0; j < taps; j++) {
            x[j] = s->image + m * s->image_step + s->offset[j];
        }
        for (int64_t p = 0; p < s->vectors * VL; p += VL) {
            vec row[FLEX_CONV_ROWS];
            UNROLLED
            for (int i = 0; i < rows; i++) {
                row[i] = load(g[i] + p);
            }
            UNROLLED
            for (int j = 0; j < taps; j++) {
                vec tap = load(x[j] + p);
                UNROLLED
                for (int i = 0; i < rows; i++) {
                    acc[i][j] = fused(row[i], tap, acc[i][j]);
                }
            }
        }
    }
    UNROLLED
    for (int i = 0; i < rows; i++) {
        UNROLLED
        for (int j = 0; j < taps; j++) {
            s->to[i * taps + j] = fold(acc[i][j]);
        }
    }
}

/* One row, its last vector laid over the end, so that nothing is written past it. */
INLINE void copy_row(float *to, const float *from, int64_t width)
{
    int64_t x = 0;
    if (width >= VL) {
        for (; x + VL <= width; x += VL) {
            store(to + x, load(from + x));
        }
        store(to + width - VL, load(from + width - VL));
    } else if (width >= 8) {
        *(vec8 *)(void *)to = *(const vec8 *)(const void *)from;
        *(vec8 *)(void *)(to + width - 8) = *(const vec8 *)(const void *)(from + width - 8);
    } else if (width >= 4) {
        *(vec4 *)(void *)to = *(const vec4 *)(const void *)from;
        *(vec4 *)(void *)(to + width - 4) = *(const vec4 *)(const void *)(from + width - 4);
    } else {
        for (; x < width; x++) {
            to[x] = from[x];
        }
    }
}

static void copy_rows(float *to, int64_t to_step, const float *from, int64_t from_step,
                      int64_t rows, int64_t width)
{
    for (int64_t y = 0; y < rows; y++) {
        copy_row(to + y * to_step, from + y * from_step, width);
    }
}

/* rows, vectors of the wide tile, taps of the sums */
#if VL == 16
#define MAP_ROWS 8
#define SUM_ROWS 6
#define MAP_TILES(X) X(1, 8) X(2, 8) X(3, 6) X(4, 6) X(5, 4) X(6, 4) X(7, 3) X(8, 3)
#define SUM_TILES(X) X(1, 8) X(2, 8) X(3, 8) X(4, 6) X(5, 4) X(6, 4)
#else
#define MAP_ROWS 6
#define SUM_ROWS 4
#define MAP_TILES(X) X(1, 6) X(2, 4) X(3, 3) X(4, 2) X(5, 2) X(6, 2)
#define SUM_TILES(X) X(1, 8) X(2, 5) X(3, 4) X(4, 3)
#endif

#define MAP_FNS(rows, vectors)                                                                     \
    static void wide_##rows(const flex_conv_tile *t)                                               \
    {                                                                                              \
        map_tile(rows, vectors, t);                                                                \
    }                                                                                              \
    static void narrow_##rows(const flex_conv_tile *t)                                             \
    {                                                                                              \
        map_tile(rows, 1, t);                                                                      \
    }
MAP_TILES(MAP_FNS)

#define SUM_FNS(rows, taps)                                                                        \
    static void sums_##rows(const flex_conv_sums *s)                                               \
    {                                                                                              \
        sum_tile(rows, taps, s);                                                                   \
    }
SUM_TILES(SUM_FNS)

#define VECTORS_ENTRY(rows, n) [rows] = (n),
#define WIDE_ENTRY(rows, n) [rows] = wide_##rows,
#define NARROW_ENTRY(rows, n) [rows] = narrow_##rows,
#define SUMS_ENTRY(rows, n) [rows] = sums_##rows,

#define TABLE_OF(isa) flex_conv_kernels_##isa
#define TABLE_NAME(isa) TABLE_OF(isa)

/* clang-format off */
const flex_conv_kernels TABLE_NAME(ISA) = {
    .lanes = VL,
    .rows = MAP_ROWS,
    .vectors = {MAP_TILES(VECTORS_ENTRY)},
    .wide = {MAP_TILES(WIDE_ENTRY)},
    .narrow = {MAP_TILES(NARROW_ENTRY)},
    .sum_rows = SUM_ROWS,
    .taps = {SUM_TILES(VECTORS_ENTRY)},
    .sums = {SUM_TILES(SUMS_ENTRY)},
    .copy_rows = copy_rows,
};
/* clang-format on */
