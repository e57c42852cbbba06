/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * random_tmpl.c - Philox blocks and Box-Muller, compiled once per ISA with ISA defined as baseline,
 * avx2 or avx512.
 *
 * Several blocks at a time, one per vector lane. The words are those of burn_philox
 * (sdk/burn_sdk/philox.h). Normals are computed in f64 and rounded once.
 */
#include "kernels.h"
#include "math_f32.h"

#include <burn_sdk/philox.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define ISA_NAME(name) PASTE(name, ISA)

extern const flex_random_table ISA_NAME(flex_random_table_);

#if defined(__AVX512F__)
#define WIDTH 8
#elif defined(__AVX2__)
#define WIDTH 4
#else
#define WIDTH 2
#endif

/* One block per 64-bit lane, its words in the low halves; the high halves may hold anything. */
typedef uint64_t lanes __attribute__((vector_size(WIDTH * 8)));
enum { LANES = 2 * WIDTH };

static inline __attribute__((always_inline)) lanes product(lanes a, uint64_t b)
{
    lanes all = b - (lanes){0};
#if defined(__AVX512F__)
    return (lanes)_mm512_mul_epu32((__m512i)a, (__m512i)all);
#elif defined(__AVX2__)
    return (lanes)_mm256_mul_epu32((__m256i)a, (__m256i)all);
#elif defined(__SSE2__)
    return (lanes)_mm_mul_epu32((__m128i)a, (__m128i)all);
#else
    return (a & UINT64_C(0xffffffff)) * all;
#endif
}

/* Two vectors of blocks at a time, to overlap their multiplications. */
static void some_blocks(uint32_t *out, uint64_t seed, uint64_t counter)
{
    lanes c[2][4];
    uint64_t k0 = (uint32_t)seed;
    uint64_t k1 = seed >> 32;
    for (uint32_t v = 0; v < 2; v++) {
        uint64_t first[WIDTH];
        for (uint32_t i = 0; i < WIDTH; i++) {
            first[i] = counter + v * WIDTH + i;
        }
        memcpy(&c[v][0], first, sizeof(first));
        c[v][1] = c[v][0] >> 32;
        c[v][2] = (lanes){0};
        c[v][3] = (lanes){0};
    }
    for (uint32_t round = 0; round < 10; round++) {
        for (uint32_t v = 0; v < 2; v++) {
            lanes a = product(c[v][0], UINT64_C(0xD2511F53));
            lanes b = product(c[v][2], UINT64_C(0xCD9E8D57));
            c[v][0] = (b >> 32) ^ c[v][1] ^ k0;
            c[v][2] = (a >> 32) ^ c[v][3] ^ k1;
            c[v][1] = b;
            c[v][3] = a;
        }
        k0 = (uint32_t)(k0 + UINT32_C(0x9E3779B9));
        k1 = (uint32_t)(k1 + UINT32_C(0xBB67AE85));
    }
    for (uint32_t v = 0; v < 2; v++) {
        lanes low = (c[v][0] & UINT64_C(0xffffffff)) | c[v][1] << 32;
        lanes high = (c[v][2] & UINT64_C(0xffffffff)) | c[v][3] << 32;
        for (uint32_t i = 0; i < WIDTH; i++) {
            uint64_t pair[2] = {low[i], high[i]};
            memcpy(out + 4 * (v * WIDTH + i), pair, sizeof(pair)); /* little-endian */
        }
    }
}

static void blocks(uint32_t *out, uint64_t seed, uint64_t counter, uint64_t n_blocks)
{
    uint64_t i = 0;
    for (; i + LANES <= n_blocks; i += LANES) {
        some_blocks(out + 4 * i, seed, counter + i);
    }
    for (; i < n_blocks; i++) {
        burn_philox(seed, counter + i, out + 4 * i);
    }
}

static void normals(float *out, const uint32_t *bits, uint64_t n_pairs)
{
    for (uint64_t i = 0; i < n_pairs; i++) {
        double u0 = (double)(int32_t)(bits[2 * i] >> 8) * 0x1p-24;
        double u1 = (double)(int32_t)(bits[2 * i + 1] >> 8) * 0x1p-24;
        double k;
        double m = fm_log_parts(1.0 - u0, &k);
        double radius = sqrt(-2.0 * FM_FMAD(k, 0x1.62e42fefa39efp-1, m));
        const double magic = 6755399441055744.0;
        double shifted = 4.0 * u1 + magic;
        double r = (4.0 * u1 - (shifted - magic)) * 1.57079632679489662;
        double z = r * r;
        double s = fm_sin_core(r, z);
        double c = fm_cos_core(z);
        uint64_t n = fm_bits64(shifted);
        double sine = (n & 1) != 0 ? c : s;
        double cosine = (n & 1) != 0 ? s : c;
        uint64_t flip_sine = (n & 2) << 62;
        uint64_t flip_cosine = ((n + 1) & 2) << 62;
        out[2 * i] = (float)(radius * fm_double(fm_bits64(cosine) ^ flip_cosine));
        out[2 * i + 1] = (float)(radius * fm_double(fm_bits64(sine) ^ flip_sine));
    }
}

const flex_random_table ISA_NAME(flex_random_table_) = {
    .blocks = blocks,
    .normals = normals,
};
