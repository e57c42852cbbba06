/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * conv_f64.c - f64 convolution and its gradients as plain loops.
 *
 * Owns one visit of all (map element, patch element) pairs for each result array. Every result
 * element, or the plane that it lies in, belongs to one task, and is summed in a fixed order.
 */
#include "conv.h"

#include "nn.h"

typedef struct plain {
    const flex_conv *v;
    const flex_conv_data *data;
} plain;

/* Image position of map position `at` for kernel position `tap`, or -1 in the padding. */
static int64_t position(const flex_conv *v, uint32_t axis, int64_t at, int64_t tap, int64_t size)
{
    int64_t x = at * v->stride[axis] - v->padding[axis] + tap * v->dilation[axis];
    return x >= 0 && x < size ? x : -1;
}

static double patch_sum(const flex_conv *v, const double *image, const double *kernel, int64_t y,
                        int64_t x)
{
    double sum = 0;
    for (int64_t c = 0; c < v->c / v->groups; c++) {
        for (int64_t ky = 0; ky < v->kh; ky++) {
            int64_t iy = position(v, 0, y, ky, v->h);
            for (int64_t kx = 0; kx < v->kw; kx++) {
                int64_t ix = position(v, 1, x, kx, v->w);
                double value = iy < 0 || ix < 0 ? 0.0 : image[(c * v->h + iy) * v->w + ix];
                sum += value * kernel[(c * v->kh + ky) * v->kw + kx];
            }
        }
    }
    return sum;
}

/* One plane (image, output channel) of the map. */
static void map_plane(void *ctx, int64_t item, uint32_t slot)
{
    (void)slot;
    const plain *p = ctx;
    const flex_conv *v = p->v;
    int64_t n = item / v->o;
    int64_t o = item % v->o;
    int64_t cg = v->c / v->groups;
    int64_t group = o / (v->o / v->groups);
    const double *image = (const double *)p->data->image + (n * v->c + group * cg) * v->h * v->w;
    const double *kernel = (const double *)p->data->kernel + o * cg * v->kh * v->kw;
    double *map = (double *)p->data->map + item * v->oh * v->ow;
    double bias = p->data->bias != NULL ? ((const double *)p->data->bias)[o] : 0.0;
    for (int64_t y = 0; y < v->oh; y++) {
        for (int64_t x = 0; x < v->ow; x++) {
            map[y * v->ow + x] = bias + patch_sum(v, image, kernel, y, x);
        }
    }
}

/* Adds kernel tap (ky, kx) times one map plane to an image plane. */
static void spread(const flex_conv *v, const double *map, double tap, int64_t ky, int64_t kx,
                   double *image)
{
    for (int64_t y = 0; y < v->oh; y++) {
        int64_t iy = position(v, 0, y, ky, v->h);
        for (int64_t x = 0; iy >= 0 && x < v->ow; x++) {
            int64_t ix = position(v, 1, x, kx, v->w);
            if (ix >= 0) {
                image[iy * v->w + ix] += tap * map[y * v->ow + x];
            }
        }
    }
}

/* One plane (image, input channel) of the image. */
static void image_plane(void *ctx, int64_t item, uint32_t slot)
{
    (void)slot;
    const plain *p = ctx;
    const flex_conv *v = p->v;
    int64_t n = item / v->c;
    int64_t c = item % v->c;
    int64_t cg = v->c / v->groups;
    int64_t og = v->o / v->groups;
    int64_t group = c / cg;
    double *image = (double *)p->data->image + item * v->h * v->w;
    double bias = p->data->bias != NULL ? ((const double *)p->data->bias)[c] : 0.0;
    for (int64_t i = 0; i < v->h * v->w; i++) {
        image[i] = bias;
    }
    for (int64_t o = group * og; o < (group + 1) * og; o++) {
        const double *map = (const double *)p->data->map + (n * v->o + o) * v->oh * v->ow;
        const double *kernel =
            (const double *)p->data->kernel + (o * cg + c % cg) * v->kh * v->kw;
        for (int64_t tap = 0; tap < v->kh * v->kw; tap++) {
            spread(v, map, kernel[tap], tap / v->kw, tap % v->kw, image);
        }
    }
}

/* Padding is a real zero, which an infinite map element makes NaN. */
static double correlate(const flex_conv *v, const double *map, const double *image, int64_t ky,
                        int64_t kx)
{
    double sum = 0;
    for (int64_t y = 0; y < v->oh; y++) {
        int64_t iy = position(v, 0, y, ky, v->h);
        for (int64_t x = 0; x < v->ow; x++) {
            int64_t ix = position(v, 1, x, kx, v->w);
            sum += map[y * v->ow + x] * (iy < 0 || ix < 0 ? 0.0 : image[iy * v->w + ix]);
        }
    }
    return sum;
}

/* One plane (output channel, channel of its group) of the kernel. */
static void kernel_plane(void *ctx, int64_t item, uint32_t slot)
{
    (void)slot;
    const plain *p = ctx;
    const flex_conv *v = p->v;
    int64_t cg = v->c / v->groups;
    int64_t o = item / cg;
    int64_t c = o / (v->o / v->groups) * cg + item % cg;
    double *kernel = (double *)p->data->kernel + item * v->kh * v->kw;
    for (int64_t tap = 0; tap < v->kh * v->kw; tap++) {
        double sum = 0;
        for (int64_t n = 0; n < v->n; n++) {
            const double *map = (const double *)p->data->map + (n * v->o + o) * v->oh * v->ow;
            const double *image = (const double *)p->data->image + (n * v->c + c) * v->h * v->w;
            sum += correlate(v, map, image, tap / v->kw, tap % v->kw);
        }
        kernel[tap] = sum;
    }
}

void flex_conv_f64(const flex_conv *v, uint32_t what, const flex_conv_data *data)
{
    static const flex_item_fn planes[] = {map_plane, image_plane, kernel_plane};
    int64_t items[] = {v->n * v->o, v->n * v->c, v->o * (v->c / v->groups)};
    plain p = {v, data};
    flex_share(items[what], flex_slots(items[what]), planes[what], &p);
}
