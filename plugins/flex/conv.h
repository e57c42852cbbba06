/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * conv.h - one description for every convolution call, shared by the f32 and the f64 kernels.
 *
 * The convolution takes image [n, c, h, w] and kernel [o, c / groups, kh, kw] to map [n, o, oh,
 * ow]. Its gradients and the transposed convolution are the same description read another way:
 * conv.c fills it, conv_f32.c and conv_f64.c compute one of the three arrays from the other two.
 */
#ifndef BURN_PLUGINS_FLEX_CONV_H
#define BURN_PLUGINS_FLEX_CONV_H

#include "epilogue.h"

#include <burn/call.h>
#include <stdint.h>

/* Which array is computed. */
enum { FLEX_CONV_MAP = 0, FLEX_CONV_IMAGE = 1, FLEX_CONV_KERNEL = 2 };

typedef struct flex_conv {
    int64_t n;
    int64_t c;
    int64_t h;
    int64_t w;
    int64_t o;
    int64_t oh;
    int64_t ow;
    int64_t kh;
    int64_t kw;
    int64_t stride[2];
    int64_t padding[2];
    int64_t dilation[2];
    int64_t groups;
} flex_conv;

/* Dense arrays; the one to compute is written. `bias` (per channel of the result) may be NULL. */
typedef struct flex_conv_data {
    void *image;
    void *kernel;
    void *map;
    const void *bias;
    flex_epilogue finish; /* what f32 maps are handed to, piece by piece */
} flex_conv_data;

/* By which of the two ways: as its shape suggests, straight from the padded image (where that can
 * be; else by products), or by products with an implicit patch matrix. */
enum { FLEX_CONV_BY_SHAPE = 0, FLEX_CONV_DIRECT = 1, FLEX_CONV_PRODUCT = 2 };

/* Bytes of 64-byte aligned memory that the f32 kernels need. */
uint64_t flex_conv_f32_bytes(const flex_conv *v, uint32_t what, uint32_t way);
void flex_conv_f32(const flex_conv *v, uint32_t what, uint32_t way, const flex_conv_data *data,
                   void *memory);

/* The same by flex.conv2d of a call in f32, whose map is handed to `finish` piece by piece.
 * BURN_E_UNSUPPORTED with nothing done where pieces would be short, or not in f32. */
int32_t flex_conv_run_hot(const burn_call *call, const flex_epilogue *finish);
/* Will it do so, without writing the map itself? */
int flex_conv_passes_on(const burn_call *call);
/* Does the f32 map's way write it where it is handed to `finish`, too? */
int flex_conv_keeps_map(const flex_conv *v);

void flex_conv_f64(const flex_conv *v, uint32_t what, const flex_conv_data *data);

#endif /* BURN_PLUGINS_FLEX_CONV_H */
