/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_tile.c - what the ways of the f32 matrix product do with one panel, one tile, one block.
 *
 * Owns how k is cut, packing of panels, where a column of C lies, one tile of any size, and handing
 * a finished block on. Not: which panels and tiles, in which order and on which thread
 * (gemm_direct.c, gemm_driver.c, gemm_split.c); loops over elements (gemm_kernel_tmpl.c). Rules: no
 * state and no memory but the caller's, so any thread may call; tiles that kernels cannot do alone
 * go through a scratch tile, as do those whose columns lie apart; C is never read before it is
 * written. To add a layout that packs fast: a packer in flex_gemm_kernels and its case in the two
 * pack functions.
 */
#include "gemm_parts.h"

#include "copy_nd.h"
#include "nn.h"

#include <string.h>

int64_t flex_gemm_block_length(int64_t k)
{
    if (k <= FLEX_GEMM_KC) {
        return k > 0 ? k : 1;
    }
    int64_t blocks = (k + FLEX_GEMM_KC - 1) / FLEX_GEMM_KC;
    return flex_round_up((k + blocks - 1) / blocks, 8);
}

void flex_gemm_turn_a(const flex_gemm *g, int64_t i, int64_t rows, int64_t k0, int64_t kc,
                      float *dst, int64_t ld)
{
    const float *a = g->a + i * g->ars + k0 * g->acs;
    if (g->ars == 1) {
        flex_transpose(sizeof(float), dst, ld, a, g->acs, rows, kc);
        return;
    }
    for (int64_t k = 0; k < kc; k++) {
        for (int64_t r = 0; r < rows; r++) {
            dst[r * ld + k] = a[r * g->ars + k * g->acs];
        }
    }
}

void flex_gemm_pack_b(const flex_gemm *g, const flex_gemm_kernels *kernels, int64_t j0, int64_t n,
                      int64_t k0, int64_t kc, float *dst, int64_t ld)
{
    if (g->pack_b != NULL) {
        g->pack_b(g->pack_ctx, k0, kc, j0, n, dst);
        return;
    }
    const float *src = g->b + k0 * g->brs + j0 * g->bcs;
    if (g->bcs == 1) {
        kernels->pack_copy(dst, ld, src, g->brs, n, kc);
    } else if (g->brs == 1) {
        flex_transpose(sizeof(float), dst, ld, src, g->bcs, kc, n);
        for (int64_t k = 0; n < ld && k < kc; k++) {
            memset(dst + k * ld + n, 0, (size_t)(ld - n) * sizeof(float));
        }
    } else {
        for (int64_t k = 0; k < kc; k++) {
            for (int64_t j = 0; j < ld; j++) {
                dst[k * ld + j] = j < n ? src[k * g->brs + j * g->bcs] : 0.0F;
            }
        }
    }
}

int64_t flex_gemm_column_offset(const flex_gemm *g, int64_t j, int64_t *out_dense)
{
    if (g->cseg == 0) {
        *out_dense = g->n - j;
        return j;
    }
    *out_dense = g->cseg - j % g->cseg;
    return (j / g->cseg) * g->cseg_stride + j % g->cseg;
}

static float *c_column(const flex_gemm *g, int64_t j, int64_t *out_dense)
{
    return g->c + flex_gemm_column_offset(g, j, out_dense);
}

void flex_gemm_finish_at(const flex_gemm *g, float *strip, int64_t ld, int64_t i0, int64_t rows,
                         int64_t j0, int64_t n)
{
    int64_t done = 0;
    while (done < n) {
        int64_t dense = 0;
        int64_t offset = flex_gemm_column_offset(g, j0 + done, &dense) + i0 * g->crs;
        flex_block b = {.at = g->at0 + offset, .step = g->crs, .rows = rows, .batch = g->batch};
        b.c = strip != NULL ? strip + done : g->c + offset;
        b.ldc = strip != NULL ? ld : g->crs;
        b.row = g->row0 + i0;
        b.col = j0 + done;
        b.cols = flex_min(dense, n - done);
        g->epilogue(g->epilogue_user, &b);
        done += b.cols;
    }
}

void flex_gemm_finish(const flex_gemm *g, int64_t i0, int64_t rows, int64_t j0, int64_t n)
{
    if (g->epilogue != NULL && rows > 0) {
        flex_gemm_finish_at(g, NULL, 0, i0, rows, j0, n);
    }
}

/* Copies the tile's C between the scratch and where it lies. */
static void move_tile(const flex_gemm *g, int64_t i0, int64_t rows, int64_t j0, int64_t n,
                      float *scratch, int64_t ld, int to_c)
{
    int64_t done = 0;
    while (done < n) {
        int64_t dense = 0;
        float *c = c_column(g, j0 + done, &dense) + i0 * g->crs;
        int64_t part = flex_min(dense, n - done);
        for (int64_t i = 0; i < rows; i++) {
            float *s = scratch + i * ld + done;
            size_t bytes = (size_t)part * sizeof(float);
            if (to_c) {
                memcpy(c + i * g->crs, s, bytes);
            } else {
                memcpy(s, c + i * g->crs, bytes);
            }
        }
        done += part;
    }
}

void flex_gemm_run_tile(const flex_gemm *g, const flex_gemm_kernels *kernels, flex_tile *t,
                        int64_t i0, int64_t rows, int64_t j0, int64_t n, int64_t k0,
                        flex_tile_fn fn)
{
    float scratch[FLEX_TILE_MAX];
    float init[FLEX_NR_MAX];
    int64_t dense = 0;
    t->c = c_column(g, j0, &dense) + i0 * g->crs;
    t->ldc = g->crs;
    t->mode = k0 == 0 ? g->mode : FLEX_INIT_C;
    int fits = flex_gemm_fits(kernels, n);
    t->n = fits ? n : (int64_t)kernels->lanes;
    if (t->mode == FLEX_INIT_COL) {
        t->init = g->init + j0;
        if (!fits) {
            memset(init, 0, sizeof(init));
            memcpy(init, t->init, (size_t)n * sizeof(float));
            t->init = init;
        }
    } else if (t->mode == FLEX_INIT_ROW) {
        t->init = g->init + i0;
    }
    if (fits && dense >= n) {
        fn(t);
        return;
    }
    t->c = scratch;
    t->ldc = t->n;
    if (t->mode == FLEX_INIT_C) {
        memset(scratch, 0, sizeof(scratch));
        move_tile(g, i0, rows, j0, n, scratch, t->ldc, 0);
    }
    fn(t);
    move_tile(g, i0, rows, j0, n, scratch, t->ldc, 1);
}
