/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * conv_direct.h - convolution with stride 1 without a patch matrix, and its vector kernels.
 *
 * An image is laid with its padding, rows `wp` apart. Then output (y, x) is position y * wp + x,
 * each patch element is one fixed offset from it, and vectors run over positions; those between the
 * rows are computed and dropped. conv_direct.c owns shapes, memory and tasks; the kernels of
 * conv_direct_tmpl.c exist once per ISA. To add one: a member here, a function there.
 */
#ifndef BURN_PLUGINS_FLEX_CONV_DIRECT_H
#define BURN_PLUGINS_FLEX_CONV_DIRECT_H

#include "conv.h"

/* Most channels of a block, and most taps of a tile of the kernel's gradient, of any ISA. */
enum { FLEX_CONV_ROWS = 8, FLEX_CONV_TAPS = 8, FLEX_CONV_LANES = 16 };

/* Some channels of the map, from some position on. */
typedef struct flex_conv_tile {
    const float *image; /* at the first position */
    const int64_t *offset;
    int64_t k;
    const float *weights; /* [k][rows of the block] */
    const float *start;   /* the value that each row's sums start from */
    float *to;            /* row i at to + i * ld */
    int64_t ld;
} flex_conv_tile;

/* Products of gradient planes and shifted images, summed over positions and images. */
typedef struct flex_conv_sums {
    int64_t images;
    int64_t vectors; /* of positions */
    const float *g;  /* row i of image m at g + m * g_image + i * g_plane */
    int64_t g_image;
    int64_t g_plane;
    const float *image;
    int64_t image_step;
    const int64_t *offset; /* as many as the tile has taps */
    float *to;             /* [rows][taps] */
} flex_conv_sums;

typedef void (*flex_conv_tile_fn)(const flex_conv_tile *t);
typedef void (*flex_conv_sums_fn)(const flex_conv_sums *s);

typedef struct flex_conv_kernels {
    int64_t lanes;
    int64_t rows; /* of a full block of the map */
    /* By rows: how many vectors the wide tile has, the tile, and the one of one vector. */
    uint8_t vectors[FLEX_CONV_ROWS + 1];
    flex_conv_tile_fn wide[FLEX_CONV_ROWS + 1];
    flex_conv_tile_fn narrow[FLEX_CONV_ROWS + 1];
    int64_t sum_rows; /* of a full block of the gradient */
    uint8_t taps[FLEX_CONV_ROWS + 1];
    flex_conv_sums_fn sums[FLEX_CONV_ROWS + 1];
    /* Copies rows of `width` floats. */
    void (*copy_rows)(float *to, int64_t to_step, const float *from, int64_t from_step,
                      int64_t rows, int64_t width);
} flex_conv_kernels;

extern const flex_conv_kernels flex_conv_kernels_baseline;
#if defined(__x86_64__)
extern const flex_conv_kernels flex_conv_kernels_avx2;
extern const flex_conv_kernels flex_conv_kernels_avx512;
#endif

/* Whether the direct way can compute `what` and is worth it; whether it can; its bytes of aligned
 * memory. */
int flex_conv_direct_fits(const flex_conv *v, uint32_t what);
int flex_conv_direct_can(const flex_conv *v, uint32_t what);
uint64_t flex_conv_direct_bytes(const flex_conv *v, uint32_t what);

/*
 * Computes. 0: infinities or NaN meet zeros that stand for nothing; what was written is void, and
 * the caller takes the other way.
 */
int flex_conv_direct(const flex_conv *v, uint32_t what, const flex_conv_data *data, void *memory);

#endif /* BURN_PLUGINS_FLEX_CONV_DIRECT_H */
