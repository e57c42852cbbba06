/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * random_tmpl.c - Philox blocks and Box-Muller, compiled once per ISA with ISA defined as baseline,
 * avx2 or avx512.
 *
 * Sixteen blocks at a time, one array per word, so that the rounds become vector code. The words
 * are those of burn_philox (sdk/burn_sdk/philox.h). Normals are computed in f64 and rounded once.
 */
#include "kernels.h"
#include "math_f32.h"

#include <burn_sdk/philox.h>

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define ISA_NAME(name) PASTE(name, ISA)

extern const flex_random_table ISA_NAME(flex_random_table_);

enum { LANES = 16 };

static void sixteen(uint32_t *out, uint64_t seed, uint64_t counter)
{
    uint32_t c0[LANES];
    uint32_t c1[LANES];
    uint32_t c2[LANES] = {0};
    uint32_t c3[LANES] = {0};
    uint32_t k0 = (uint32_t)seed;
    uint32_t k1 = (uint32_t)(seed >> 32);
    for (uint32_t i = 0; i < LANES; i++) {
        c0[i] = (uint32_t)(counter + i);
        c1[i] = (uint32_t)((counter + i) >> 32);
    }
    for (uint32_t round = 0; round < 10; round++) {
        for (uint32_t i = 0; i < LANES; i++) {
            uint64_t a = (uint64_t)c0[i] * UINT32_C(0xD2511F53);
            uint64_t b = (uint64_t)c2[i] * UINT32_C(0xCD9E8D57);
            c0[i] = (uint32_t)(b >> 32) ^ c1[i] ^ k0;
            c2[i] = (uint32_t)(a >> 32) ^ c3[i] ^ k1;
            c1[i] = (uint32_t)b;
            c3[i] = (uint32_t)a;
        }
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    for (uint32_t i = 0; i < LANES; i++) {
        out[4 * i] = c0[i];
        out[4 * i + 1] = c1[i];
        out[4 * i + 2] = c2[i];
        out[4 * i + 3] = c3[i];
    }
}

static void blocks(uint32_t *out, uint64_t seed, uint64_t counter, uint64_t n_blocks)
{
    uint64_t i = 0;
    for (; i + LANES <= n_blocks; i += LANES) {
        sixteen(out + 4 * i, seed, counter + i);
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
