/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * conv_f32.c - f32 convolution and its two gradients as matrix products.
 *
 * Map and kernel gradient use an implicit patch matrix: the image is copied once with its padding,
 * after which each patch element is a fixed offset, and the product's packer reads patches straight
 * into its panels. The image gradient multiplies by the turned kernel, image by image, and adds the
 * columns back where they came from. Padding is a real zero. Results do not depend on threads: the
 * products promise it, and each image is added up by one task.
 */
#include "conv.h"
#include "conv_direct.h"
#include "gemm.h"
#include "nn.h"

#include <string.h>

/* Where the padded image and the offsets of patch elements lie. */
typedef struct patches {
    const flex_conv *v;
    const float *padded;
    const int64_t *offset; /* of patch element k = (c, kh, kw) within one group's channels */
    int64_t hp;
    int64_t wp;
    int64_t channel0;
} patches;

static int64_t patch_size(const flex_conv *v)
{
    return v->c / v->groups * v->kh * v->kw;
}

static int64_t padded_floats(const flex_conv *v)
{
    int64_t hp = v->h + 2 * v->padding[0];
    int64_t wp = v->w + 2 * v->padding[1];
    return v->n * v->c * hp * wp + FLEX_NR_MAX;
}

static void pad_plane(void *ctx, int64_t plane, uint32_t slot)
{
    (void)slot;
    const flex_conv_data *data = ((void **)ctx)[0];
    const flex_conv *v = ((void **)ctx)[1];
    int64_t wp = v->w + 2 * v->padding[1];
    int64_t hp = v->h + 2 * v->padding[0];
    float *to = (float *)((void **)ctx)[2] + plane * hp * wp;
    const float *from = (const float *)data->image + plane * v->h * v->w;
    memset(to, 0, (size_t)(v->padding[0] * wp) * sizeof(float));
    for (int64_t y = 0; y < v->h; y++) {
        float *row = to + (y + v->padding[0]) * wp;
        memset(row, 0, (size_t)v->padding[1] * sizeof(float));
        memcpy(row + v->padding[1], from + y * v->w, (size_t)v->w * sizeof(float));
        memset(row + v->padding[1] + v->w, 0, (size_t)v->padding[1] * sizeof(float));
    }
    memset(to + (hp - v->padding[0]) * wp, 0, (size_t)(v->padding[0] * wp) * sizeof(float));
}

static void make_patches(const flex_conv *v, const flex_conv_data *data, float *padded,
                         int64_t *offset, patches *p)
{
    p->v = v;
    p->padded = padded;
    p->offset = offset;
    p->hp = v->h + 2 * v->padding[0];
    p->wp = v->w + 2 * v->padding[1];
    p->channel0 = 0;
    int64_t planes = v->n * v->c;
    const void *arguments[3] = {data, v, padded};
    uint32_t slots = planes * p->hp * p->wp < FLEX_GRAIN ? 1 : flex_slots(planes);
    flex_share(planes, slots, pad_plane, arguments);
    memset(padded + planes * p->hp * p->wp, 0, FLEX_NR_MAX * sizeof(float));
    int64_t k = 0;
    for (int64_t c = 0; c < v->c / v->groups; c++) {
        for (int64_t y = 0; y < v->kh; y++) {
            for (int64_t x = 0; x < v->kw; x++) {
                offset[k++] = (c * p->hp + y * v->dilation[0]) * p->wp + x * v->dilation[1];
            }
        }
    }
}

/* Offset in the padded image of the patch of map pixel j = (image, y, x). */
static int64_t patch_start(const patches *p, int64_t j)
{
    const flex_conv *v = p->v;
    int64_t pixels = v->oh * v->ow;
    int64_t image = j / pixels;
    int64_t y = j % pixels / v->ow;
    int64_t x = j % v->ow;
    return ((image * v->c + p->channel0) * p->hp + y * v->stride[0]) * p->wp + x * v->stride[1];
}

/* Cuts pixels j0 .. j0+n into runs that lie densely in the padded image; returns their number. */
static int64_t make_runs(const patches *p, int64_t j0, int64_t n, int64_t *start, int64_t *from)
{
    int64_t runs = 0;
    int64_t done = 0;
    while (done < n) {
        int64_t at = patch_start(p, j0 + done);
        int joins = runs > 0 && from[runs - 1] + done - start[runs - 1] == at;
        if (!joins) {
            start[runs] = done;
            from[runs] = at;
            runs++;
        }
        int64_t row = p->v->stride[1] == 1 ? p->v->ow - (j0 + done) % p->v->ow : 1;
        done += row;
    }
    return runs;
}

/* B panel of the map's product: patch elements k0 .. k0+kc of pixels j0 .. j0+n. */
static void pack_pixels(const void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t n, float *dst)
{
    const patches *p = ctx;
    const flex_gemm_kernels *kernels = flex_gemm_table();
    int64_t nr = kernels->nr;
    int64_t start[FLEX_NR_MAX];
    int64_t from[FLEX_NR_MAX];
    int64_t runs = make_runs(p, j0, n, start, from);
    if (p->v->stride[1] == 1 && runs <= 24) {
        kernels->pack_runs(dst, p->padded, p->offset + k0, kc, start, from, runs);
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        from[j] = patch_start(p, j0 + j);
    }
    for (int64_t k = 0; k < kc; k++) {
        const float *s = p->padded + p->offset[k0 + k];
        float *d = dst + k * nr;
        for (int64_t j = 0; j < n; j++) {
            d[j] = s[from[j]];
        }
        for (int64_t j = n; j < nr; j++) {
            d[j] = 0.0F;
        }
    }
}

/* B panel of the kernel gradient: pixels k0 .. k0+kc of patch elements j0 .. j0+n. */
static void pack_elements(const void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t n,
                          float *dst)
{
    const patches *p = ctx;
    const flex_gemm_kernels *kernels = flex_gemm_table();
    int64_t nr = kernels->nr;
    int64_t step = p->v->stride[1];
    int64_t done = 0;
    while (done < kc) {
        int64_t len = flex_min(p->v->ow - (k0 + done) % p->v->ow, kc - done);
        const float *s = p->padded + patch_start(p, k0 + done);
        float *d = dst + done * nr;
        const float *rows[FLEX_NR_MAX];
        for (int64_t j = 0; j < n; j++) {
            rows[j] = s + p->offset[j0 + j];
        }
        if (step == 1) {
            kernels->pack_rows(d, nr, rows, n, len);
        } else {
            for (int64_t k = 0; k < len; k++) {
                for (int64_t j = 0; j < nr; j++) {
                    d[k * nr + j] = j < n ? rows[j][k * step] : 0.0F;
                }
            }
        }
        done += len;
    }
}

static flex_gemm map_product(const flex_conv *v, const flex_conv_data *data, int64_t group,
                             const patches *p)
{
    int64_t pixels = v->oh * v->ow;
    int64_t og = v->o / v->groups;
    int64_t k = patch_size(v);
    flex_gemm g = {.m = og, .n = v->n * pixels, .k = k, .ars = k, .acs = 1};
    g.pack_b = pack_pixels;
    g.pack_ctx = p;
    g.crs = pixels;
    g.cseg = pixels;
    g.cseg_stride = v->o * pixels;
    if (data != NULL) {
        g.a = (const float *)data->kernel + group * og * k;
        g.c = data->map != NULL ? (float *)data->map + group * og * pixels : NULL;
        g.epilogue = data->finish.fn;
        g.epilogue_user = data->finish.user;
        g.at0 = group * og * pixels;
        g.passes = 1;
        if (data->bias != NULL) {
            g.init = (const float *)data->bias + group * og;
            g.mode = FLEX_INIT_ROW;
        }
    }
    return g;
}

static flex_gemm kernel_product(const flex_conv *v, const flex_conv_data *data, int64_t group,
                                const patches *p)
{
    int64_t pixels = v->oh * v->ow;
    int64_t og = v->o / v->groups;
    int64_t k = patch_size(v);
    flex_gemm g = {.m = og, .n = k, .k = v->n * pixels, .ars = pixels, .acs = 1};
    g.aseg = pixels;
    g.aseg_stride = v->o * pixels;
    g.pack_b = pack_elements;
    g.pack_ctx = p;
    g.crs = k;
    if (data != NULL) {
        g.a = (const float *)data->map + group * og * pixels;
        g.c = (float *)data->kernel + group * og * k;
    }
    return g;
}

/* Columns of one image: turned kernel times map. */
static flex_gemm image_product(const flex_conv *v, const flex_conv_data *data, int64_t image,
                               int64_t group, float *columns)
{
    int64_t pixels = v->oh * v->ow;
    int64_t og = v->o / v->groups;
    int64_t k = patch_size(v);
    flex_gemm g = {.m = k, .n = pixels, .k = og, .ars = 1, .acs = k, .brs = pixels, .bcs = 1};
    g.c = columns;
    g.crs = pixels;
    if (data != NULL) {
        g.a = (const float *)data->kernel + group * og * k;
        g.b = (const float *)data->map + (image * v->o + group * og) * pixels;
    }
    return g;
}

/* First and last + 1 of the positions x with 0 <= x * stride + shift < size. */
static void valid_range(int64_t stride, int64_t shift, int64_t size, int64_t count, int64_t *lo,
                        int64_t *hi)
{
    *lo = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    *hi = size - shift <= 0 ? 0 : (size - shift + stride - 1) / stride;
    *hi = flex_min(*hi, count);
    *lo = flex_min(*lo, *hi);
}

/* Adds one patch element's column, a plane of oh x ow, to the channel that it was taken from. */
static void add_plane(const flex_conv *v, const float *column, int64_t ky, int64_t kx,
                      float *channel)
{
    int64_t y0 = ky * v->dilation[0] - v->padding[0];
    int64_t x0 = kx * v->dilation[1] - v->padding[1];
    int64_t ylo = 0;
    int64_t yhi = 0;
    int64_t xlo = 0;
    int64_t xhi = 0;
    valid_range(v->stride[0], y0, v->h, v->oh, &ylo, &yhi);
    valid_range(v->stride[1], x0, v->w, v->ow, &xlo, &xhi);
    int64_t step = v->stride[1];
    for (int64_t y = ylo; y < yhi; y++) {
        float *to = channel + (y * v->stride[0] + y0) * v->w + x0;
        const float *from = column + y * v->ow;
        if (step == 1) {
            for (int64_t x = xlo; x < xhi; x++) {
                to[x] += from[x];
            }
        } else {
            for (int64_t x = xlo; x < xhi; x++) {
                to[x * step] += from[x];
            }
        }
    }
}

typedef struct image_job {
    const flex_conv *v;
    const flex_conv_data *data;
    char *memory;
    uint64_t slot_bytes;
    uint64_t column_bytes;
} image_job;

/* Starts a channel of the image at its bias, or at zero. */
static void start_channel(const flex_conv *v, const float *bias, int64_t channel, float *plane)
{
    float value = bias != NULL ? bias[channel] : 0.0F;
    for (int64_t i = 0; i < v->h * v->w; i++) {
        plane[i] = value;
    }
}

static void one_image(void *ctx, int64_t item, uint32_t slot)
{
    const image_job *job = ctx;
    const flex_conv *v = job->v;
    int64_t image = item / v->groups;
    int64_t group = item % v->groups;
    int64_t cg = v->c / v->groups;
    char *memory = job->memory + slot * job->slot_bytes;
    float *columns = (float *)(void *)memory;
    flex_gemm g = image_product(v, job->data, image, group, columns);
    flex_gemm_serial(&g, memory + job->column_bytes);
    const float *column = columns;
    for (int64_t c = 0; c < cg; c++) {
        int64_t channel = group * cg + c;
        float *plane = (float *)job->data->image + (image * v->c + channel) * v->h * v->w;
        start_channel(v, job->data->bias, channel, plane);
        for (int64_t ky = 0; ky < v->kh; ky++) {
            for (int64_t kx = 0; kx < v->kw; kx++) {
                add_plane(v, column, ky, kx, plane);
                column += v->oh * v->ow;
            }
        }
    }
}

static void image_sizes(const flex_conv *v, image_job *job)
{
    flex_gemm g = image_product(v, NULL, 0, 0, NULL);
    job->column_bytes = flex_float_bytes(patch_size(v) * v->oh * v->ow);
    job->slot_bytes = job->column_bytes + flex_gemm_bytes(&g, 1);
}

/* Bytes of the padded image and the offsets. */
static uint64_t patch_bytes(const flex_conv *v)
{
    return flex_float_bytes(padded_floats(v)) + flex_float_bytes(2 * patch_size(v));
}

static uint64_t product_bytes(const flex_conv *v, uint32_t what)
{
    if (what == FLEX_CONV_IMAGE) {
        image_job job;
        image_sizes(v, &job);
        return job.slot_bytes * flex_slots(v->n * v->groups);
    }
    flex_gemm g = what == FLEX_CONV_MAP ? map_product(v, NULL, 0, NULL)
                                        : kernel_product(v, NULL, 0, NULL);
    return patch_bytes(v) + flex_gemm_bytes(&g, flex_thread_count());
}

static int goes_direct(const flex_conv *v, uint32_t what, uint32_t way)
{
    return way == FLEX_CONV_DIRECT ? flex_conv_direct_can(v, what)
                                   : way == FLEX_CONV_BY_SHAPE && flex_conv_direct_fits(v, what);
}

uint64_t flex_conv_f32_bytes(const flex_conv *v, uint32_t what, uint32_t way)
{
    uint64_t bytes = product_bytes(v, what);
    uint64_t direct = goes_direct(v, what, way) ? flex_conv_direct_bytes(v, what) : 0;
    return bytes > direct ? bytes : direct;
}

int flex_conv_keeps_map(const flex_conv *v)
{
    flex_gemm g = map_product(v, NULL, 0, NULL);
    return !goes_direct(v, FLEX_CONV_MAP, FLEX_CONV_BY_SHAPE) && flex_gemm_keeps_c(&g);
}

void flex_conv_f32(const flex_conv *v, uint32_t what, uint32_t way, const flex_conv_data *data,
                   void *memory)
{
    if (goes_direct(v, what, way) && flex_conv_direct(v, what, data, memory)) {
        return;
    }
    if (what == FLEX_CONV_IMAGE) {
        image_job job = {.v = v, .data = data, .memory = memory};
        image_sizes(v, &job);
        int64_t items = v->n * v->groups;
        flex_share(items, flex_slots(items), one_image, &job);
        return;
    }
    patches p;
    char *bytes = memory;
    char *offsets = bytes + flex_float_bytes(padded_floats(v));
    make_patches(v, data, memory, (int64_t *)(void *)offsets, &p);
    char *rest = bytes + patch_bytes(v);
    for (int64_t group = 0; group < v->groups; group++) {
        p.channel0 = group * (v->c / v->groups);
        flex_gemm g = what == FLEX_CONV_MAP ? map_product(v, data, group, &p)
                                            : kernel_product(v, data, group, &p);
        flex_gemm_parallel(&g, rest, flex_thread_count());
    }
}
