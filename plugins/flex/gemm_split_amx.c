/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_split_amx.c - sums over bf16 parts by the matrix unit of x86-64 (AMX), and what prepares
 * them with AVX-512.
 *
 * Owns the split of numbers into parts and the tile of 32 x 32 sums; not which tiles, nor whether
 * their numbers are fit for it (gemm_split.c). The unit multiplies pairs of bf16, sums 16 pairs in
 * f32 from zero, and adds that to the tile; numbers below 2^-126 are zero to it. Source of what
 * the instructions do: Intel's Architecture Instruction Set Extensions reference, TDPBF16PS.
 */
#include "gemm_split.h"

#include "gemm_kernel.h"
#include "unrolled.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

/* Halves of a strip's side, and bytes of one half of one part of a piece. */
#define HALF       16
#define HALF_BYTES 1024
#define PART_BYTES (2 * HALF_BYTES)
#define LINE_BYTES 64

/* Eight tiles of 16 lines of 64 bytes. Not made on the stack: GCC 12 does not see that the whole of
 * it is read, and leaves out what it is filled with. */
static const struct {
    uint8_t palette;
    uint8_t start;
    uint8_t zero[14];
    uint16_t bytes[16]; /* of a line */
    uint8_t lines[16];
} shape __attribute__((aligned(64))) = {
    .palette = 1,
    .bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .lines = {16, 16, 16, 16, 16, 16, 16, 16},
};

static void begin(void)
{
    _tile_loadconfig(&shape);
}

static void end(void)
{
    _tile_release();
}

/* The range so far, lane by lane. */
typedef struct ranges {
    __m512i most;
    __m512i least;
} ranges;

INLINE ranges no_ranges(void)
{
    return (ranges){_mm512_setzero_si512(), _mm512_set1_epi32(-1)};
}

INLINE void widen(ranges *r, __m512 x)
{
    __m512i bits = _mm512_and_si512((__m512i)x, _mm512_set1_epi32(0x7fffffff));
    r->most = _mm512_max_epu32(r->most, bits);
    r->least = _mm512_min_epu32(r->least, _mm512_sub_epi32(bits, _mm512_set1_epi32(1)));
}

INLINE flex_split_range range_of(const ranges *r)
{
    return (flex_split_range){_mm512_reduce_max_epu32(r->most), _mm512_reduce_min_epu32(r->least)};
}

/* Lanes of x and y in turns: x0 y0 x1 y1 ... */
INLINE __m512i in_turns(__m512i bf16)
{
    const __m512i order =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(order, bf16);
}

/* One line of each part: x are the even numbers of it, y the odd ones. */
INLINE void split_line(char *line, __m512 x, __m512 y, ranges *r)
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    widen(r, x);
    widen(r, y);
    UNROLLED
    for (int part = 0; part < 3; part++) {
        __m512i both = in_turns((__m512i)_mm512_cvtne2ps_pbh(y, x));
        _mm512_store_si512(line + part * PART_BYTES, both);
        x = _mm512_sub_ps(x, (__m512)_mm512_slli_epi32(both, 16));
        y = _mm512_sub_ps(y, (__m512)_mm512_and_si512(both, upper));
    }
}

/* The lanes of a vector that so many numbers fill. */
INLINE __mmask16 lanes(int64_t n)
{
    return n >= HALF ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

static flex_split_range split_rows(char *strip, const float *a, int64_t ars, int64_t rows,
                                   int64_t kc)
{
    ranges r = no_ranges();
    for (int64_t i = 0; i < FLEX_SPLIT_SIDE; i++) {
        const float *row = a + i * ars;
        char *line = strip + i / HALF * HALF_BYTES + i % HALF * LINE_BYTES;
        int64_t length = i < rows ? kc : 0;
        for (int64_t k = 0; k < kc; k += FLEX_SPLIT_STEP) {
            __m512 x;
            __m512 y;
            if (k + FLEX_SPLIT_STEP <= length) {
                x = _mm512_loadu_ps(row + k);
                y = _mm512_loadu_ps(row + k + HALF);
            } else {
                x = _mm512_maskz_loadu_ps(lanes(length - k), row + k);
                y = _mm512_maskz_loadu_ps(lanes(length - k - HALF), row + k + HALF);
            }
            split_line(line, x, y, &r);
            line += FLEX_SPLIT_PIECE;
        }
    }
    return range_of(&r);
}

static flex_split_range split_columns(char *strip, const float *b, int64_t brs, int64_t columns,
                                      int64_t kc)
{
    ranges r = no_ranges();
    const __mmask16 all[2] = {lanes(columns), lanes(columns - HALF)};
    for (int64_t k0 = 0; k0 < kc; k0 += FLEX_SPLIT_STEP) {
        for (int64_t k = k0; k < k0 + HALF; k++) {
            UNROLLED
            for (int h = 0; h < 2; h++) {
                const float *from = b + k * brs + h * HALF;
                __mmask16 first = k < kc ? all[h] : 0;
                __mmask16 second = k + HALF < kc ? all[h] : 0;
                __m512 x = _mm512_maskz_loadu_ps(first, from);
                __m512 y = _mm512_maskz_loadu_ps(second, from + HALF * brs);
                split_line(strip + h * HALF_BYTES + (k - k0) * LINE_BYTES, x, y, &r);
            }
        }
        strip += FLEX_SPLIT_PIECE;
    }
    return range_of(&r);
}

/* Tiles 0 to 3 are sums, 4 and 5 a part of A's two halves, 6 and 7 one of B's. */
#define LOAD_A(part)                                                                               \
    _tile_loadd(4, a + (part)*PART_BYTES, LINE_BYTES);                                             \
    _tile_loadd(5, a + (part)*PART_BYTES + HALF_BYTES, LINE_BYTES)
#define LOAD_B(part)                                                                               \
    _tile_loadd(6, b + (part)*PART_BYTES, LINE_BYTES);                                             \
    _tile_loadd(7, b + (part)*PART_BYTES + HALF_BYTES, LINE_BYTES)
#define MULTIPLY()                                                                                 \
    _tile_dpbf16ps(0, 4, 6);                                                                       \
    _tile_dpbf16ps(1, 4, 7);                                                                       \
    _tile_dpbf16ps(2, 5, 6);                                                                       \
    _tile_dpbf16ps(3, 5, 7)

/* Six products of parts, in an order that loads few tiles. */
static void tile(const char *a, const char *b, int64_t pieces, flex_split_sum *sum)
{
    enum { ROW_BYTES = sizeof((*sum)[0]) };
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t s = 0; s < pieces; s++) {
        LOAD_A(0);
        LOAD_B(2);
        MULTIPLY();
        LOAD_B(1);
        MULTIPLY();
        LOAD_A(1);
        MULTIPLY();
        LOAD_B(0);
        MULTIPLY();
        LOAD_A(2);
        MULTIPLY();
        LOAD_A(0);
        MULTIPLY();
        a += FLEX_SPLIT_PIECE;
        b += FLEX_SPLIT_PIECE;
    }
    _tile_stored(0, (*sum)[0], ROW_BYTES);
    _tile_stored(1, (*sum)[0] + HALF, ROW_BYTES);
    _tile_stored(2, (*sum)[HALF], ROW_BYTES);
    _tile_stored(3, (*sum)[HALF] + HALF, ROW_BYTES);
}

/* What a row's sums are added to. */
INLINE __m512 start(const float *c, const float *init, int64_t i, int h, uint32_t mode,
                    __mmask16 mask)
{
    if (mode == FLEX_INIT_C) {
        return _mm512_maskz_loadu_ps(mask, c + h * HALF);
    }
    if (mode == FLEX_INIT_COL) {
        return _mm512_maskz_loadu_ps(mask, init + h * HALF);
    }
    return mode == FLEX_INIT_ROW ? _mm512_set1_ps(init[i]) : _mm512_setzero_ps();
}

static void add(const flex_split_sum *sum, float *c, int64_t ldc, int64_t rows, int64_t columns,
                const float *init, uint32_t mode)
{
    const __mmask16 mask[2] = {lanes(columns), lanes(columns - HALF)};
    for (int64_t i = 0; i < rows; i++) {
        UNROLLED
        for (int h = 0; h < 2; h++) {
            __m512 x = _mm512_load_ps((*sum)[i] + h * HALF);
            if (mode != FLEX_INIT_ZERO) {
                x = _mm512_add_ps(start(c, init, i, h, mode, mask[h]), x);
            }
            _mm512_mask_storeu_ps(c + h * HALF, mask[h], x);
        }
        c += ldc;
    }
}

const flex_split_kernels flex_split_amx = {
    .begin = begin,
    .end = end,
    .rows = split_rows,
    .columns = split_columns,
    .tile = tile,
    .add = add,
};
