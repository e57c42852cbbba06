/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * conv_direct.c - f32 convolution and its gradients for stride 1, straight from the padded image.
 *
 * Owns which calls take this way, the cutting into tasks and their scratch. The image's gradient is
 * the map of the map's gradient with the kernel turned round. The kernel's gradient is summed chunk
 * by chunk of images, and the chunks in order. Cuts depend on sizes only. There, zeros stand where
 * nothing is: if an infinity or a NaN may have met one, the caller computes by products instead.
 */
#include "conv_direct.h"

#include "isa.h"
#include "nn.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Floats of one band of a padded image, of a chunk of images, and of all chunks' sums. */
enum { BAND_FLOATS = 1 << 15, CHUNK_FLOATS = 1 << 17, SUM_FLOATS = 1 << 20 };
/* A chunk's sums cost about as much as so many vectors of positions. */
enum { MAX_CHUNKS = 8, MIN_VECTORS = 12, MAX_PATCH = 1024 };
/* What a tile may read past the last position. */
enum { SLACK = 8 * FLEX_CONV_LANES };

static const flex_conv_kernels *kernels_of(void)
{
#if defined(__x86_64__)
    if (flex_isa == FLEX_ISA_AVX512) {
        return &flex_conv_kernels_avx512;
    }
    if (flex_isa == FLEX_ISA_AVX2) {
        return &flex_conv_kernels_avx2;
    }
#endif
    return &flex_conv_kernels_baseline;
}

static int all_finite(const float *x, int64_t n)
{
    const float largest = FLT_MAX;
    int bad = 0;
    for (int64_t i = 0; i < n; i++) {
        bad |= !(fabsf(x[i]) <= largest);
    }
    return bad == 0;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

typedef struct layout {
    int64_t cg; /* channels of a group of the image, and of the map */
    int64_t og;
    int64_t k; /* patch elements */
    int64_t hp;
    int64_t wp;
    int64_t positions; /* of a whole map, the last row without its rest */
} layout;

static layout layout_of(const flex_conv *v)
{
    layout l;
    l.cg = v->c / v->groups;
    l.og = v->o / v->groups;
    l.k = l.cg * v->kh * v->kw;
    l.hp = v->h + 2 * v->padding[0];
    l.wp = v->w + 2 * v->padding[1];
    l.positions = (v->oh - 1) * l.wp + v->ow;
    return l;
}

/* The convolution whose map is the image's gradient: the map's padded, the kernel turned round. */
static flex_conv turned_round(const flex_conv *v)
{
    flex_conv t = *v;
    t.c = v->o;
    t.h = v->oh;
    t.w = v->ow;
    t.o = v->c;
    t.oh = v->h;
    t.ow = v->w;
    t.padding[0] = (v->kh - 1) * v->dilation[0] - v->padding[0];
    t.padding[1] = (v->kw - 1) * v->dilation[1] - v->padding[1];
    return t;
}

static int is_plain(const flex_conv *v)
{
    for (uint32_t i = 0; i < 2; i++) {
        int64_t in = i == 0 ? v->h : v->w;
        int64_t out = i == 0 ? v->oh : v->ow;
        int64_t kernel = i == 0 ? v->kh : v->kw;
        int64_t reach = (kernel - 1) * v->dilation[i];
        if (v->stride[i] != 1 || v->padding[i] < 0 || out != in + 2 * v->padding[i] - reach) {
            return 0;
        }
    }
    return v->n > 0 && v->c > 0 && v->o > 0 && v->oh > 0 && v->ow > 0 && v->kh * v->kw > 1;
}

/* ---- maps ------------------------------------------------------------------------------------ */

typedef struct map_job {
    flex_conv v;
    layout l;
    const flex_conv_kernels *kernels;
    int64_t band; /* rows of the map in a task */
    int64_t bands;
    int64_t rows_in; /* rows of the padded image that it needs */
    int64_t block;   /* channels of a block */
    int64_t blocks;
    int64_t image_floats; /* of scratch */
    int64_t wide_floats;
    int64_t block_floats; /* a block's maps, dense, for `finish` */
    const float *image;
    const float *weights; /* [group][block][k][rows] */
    const int64_t *offset;
    const float *bias; /* NULL: none */
    float *map;
    flex_epilogue finish;
    float *scratch;
} map_job;

static void make_map_job(const flex_conv *v, map_job *job)
{
    memset(job, 0, sizeof(*job));
    job->v = *v;
    job->l = layout_of(v);
    job->kernels = kernels_of();
    int64_t reach = (v->kh - 1) * v->dilation[0];
    int64_t room = BAND_FLOATS / (job->l.cg * job->l.wp) - reach;
    int64_t most = room < 4 ? 4 : room;
    job->bands = (v->oh + most - 1) / most;
    job->band = (v->oh + job->bands - 1) / job->bands;
    job->bands = (v->oh + job->band - 1) / job->band;
    job->rows_in = job->band + reach;
    job->blocks = (job->l.og + job->kernels->rows - 1) / job->kernels->rows;
    job->block = (job->l.og + job->blocks - 1) / job->blocks;
    job->blocks = (job->l.og + job->block - 1) / job->block;
    job->image_floats = flex_round_up(job->l.cg * job->rows_in * job->l.wp + SLACK, 16);
    job->wide_floats = flex_round_up(job->band * job->l.wp + SLACK, 16);
    job->block_floats = flex_round_up(job->block * job->band * v->ow, 16);
}

static int64_t scratch_floats(const map_job *job)
{
    return job->image_floats + job->wide_floats * job->block + job->block_floats;
}

static int64_t map_items(const map_job *job)
{
    return job->v.n * job->v.groups * job->bands;
}

static uint64_t map_bytes(const map_job *job)
{
    uint64_t floats = (uint64_t)scratch_floats(job);
    return flex_float_bytes(job->v.o * job->l.k) + flex_float_bytes(2 * job->l.k) +
           floats * sizeof(float) * flex_slots(map_items(job));
}

static int map_fits(const flex_conv *v)
{
    if (!is_plain(v)) {
        return 0;
    }
    layout l = layout_of(v);
    map_job job;
    make_map_job(v, &job);
    /* A few rows of a wide image may still be too much for the caches; narrow maps waste lanes. */
    return job.image_floats <= 4 * (int64_t)BAND_FLOATS && l.k <= MAX_PATCH &&
           2 * v->ow >= l.wp && l.positions >= job.kernels->lanes / 2;
}

/* Copies padded rows y0 .. y0+rows of some channels; the padding is zero. */
static void lay_image(const map_job *job, const float *channels, int64_t y0, float *to)
{
    const flex_conv *v = &job->v;
    const layout *l = &job->l;
    int64_t plane = job->rows_in * l->wp;
    int64_t first = flex_min(y0 < v->padding[0] ? v->padding[0] - y0 : 0, job->rows_in);
    int64_t from = y0 + first - v->padding[0];
    int64_t rows = flex_min(job->rows_in - first, v->h - from);
    if (v->padding[0] > 0 || v->padding[1] > 0 || rows < job->rows_in) {
        memset(to, 0, (size_t)(l->cg * plane) * sizeof(float));
    }
    for (int64_t c = 0; c < l->cg && rows > 0; c++) {
        float *start = to + c * plane + first * l->wp + v->padding[1];
        const float *rows_from = channels + (c * v->h + from) * v->w;
        if (v->padding[1] == 0) {
            memcpy(start, rows_from, (size_t)(rows * v->w) * sizeof(float));
        } else {
            job->kernels->copy_rows(start, l->wp, rows_from, v->w, rows, v->w);
        }
    }
    memset(to + l->cg * plane, 0, SLACK * sizeof(float));
}

/* All positions of a block of channels; `to` has wide_floats for each. */
static void run_tiles(const map_job *job, flex_conv_tile *t, int64_t rows, int64_t positions,
                      const float *image, float *to)
{
    const flex_conv_kernels *kernels = job->kernels;
    int64_t step = kernels->vectors[rows] * kernels->lanes;
    int64_t at = 0;
    while (at < positions) {
        int whole = positions - at > step - kernels->lanes;
        t->image = image + at;
        t->to = to + at;
        (whole ? kernels->wide[rows] : kernels->narrow[rows])(t);
        at += whole ? step : kernels->lanes;
    }
}

/* A block's maps, without the rests of rows: where they belong, or side by side and handed on. */
static void place_block(const map_job *job, int64_t image, int64_t channel, int64_t y0,
                        int64_t rows, int64_t rows_out, float *wide)
{
    const flex_conv *v = &job->v;
    int64_t pixels = v->oh * v->ow;
    flex_block b = {.at = (image * v->o + channel) * pixels + y0 * v->ow, .step = pixels};
    b.c = job->finish.fn != NULL ? wide + job->wide_floats * job->block : job->map + b.at;
    b.ldc = job->finish.fn != NULL ? rows_out * v->ow : pixels;
    for (int64_t i = 0; i < rows; i++) {
        job->kernels->copy_rows(b.c + i * b.ldc, v->ow, wide + i * job->wide_floats, job->l.wp,
                                rows_out, v->ow);
    }
    if (job->finish.fn != NULL) {
        b.row = channel;
        b.col = y0 * v->ow;
        b.rows = rows;
        b.cols = rows_out * v->ow;
        b.batch = image;
        job->finish.fn(job->finish.user, &b);
    }
}

static void map_item(void *ctx, int64_t item, uint32_t slot)
{
    const map_job *job = ctx;
    const flex_conv *v = &job->v;
    const layout *l = &job->l;
    int64_t y0 = item % job->bands * job->band;
    int64_t image = item / job->bands / v->groups;
    int64_t group = item / job->bands % v->groups;
    int64_t rows_out = flex_min(job->band, v->oh - y0);
    float *laid = job->scratch + slot * scratch_floats(job);
    float *wide = laid + job->image_floats;
    float start[FLEX_CONV_ROWS] = {0};
    lay_image(job, job->image + (image * v->c + group * l->cg) * v->h * v->w, y0, laid);
    for (int64_t b = 0; b < job->blocks; b++) {
        int64_t rows = flex_min(job->block, l->og - b * job->block);
        int64_t channel = group * l->og + b * job->block;
        flex_conv_tile t = {.offset = job->offset, .k = l->k, .start = start};
        t.weights = job->weights + channel * l->k;
        t.ld = job->wide_floats;
        for (int64_t i = 0; i < rows && job->bias != NULL; i++) {
            start[i] = job->bias[channel + i];
        }
        run_tiles(job, &t, rows, (rows_out - 1) * l->wp + v->ow, laid, wide);
        place_block(job, image, channel, y0, rows, rows_out, wide);
    }
}

/* Lays the weights of a block element by element; for the image's gradient they are turned. */
static void lay_weights(const map_job *job, const float *kernel, int turned, float *to)
{
    const layout *l = &job->l;
    int64_t area = job->v.kh * job->v.kw;
    for (int64_t group = 0; group < job->v.groups; group++) {
        for (int64_t b = 0; b < job->blocks; b++) {
            int64_t first = b * job->block;
            int64_t rows = flex_min(job->block, l->og - first);
            const float *from = kernel + group * l->og * l->k;
            for (int64_t k = 0; k < l->k; k++) {
                int64_t c = k / area;
                int64_t spot = k % area;
                for (int64_t i = 0; i < rows; i++) {
                    int64_t o = first + i;
                    *to++ = turned ? from[(c * l->og + o) * area + area - 1 - spot]
                                   : from[(o * l->cg + c) * area + spot];
                }
            }
        }
    }
}

static void lay_offsets(const flex_conv *v, int64_t channels, int64_t rows, int64_t wp, int64_t *to)
{
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t y = 0; y < v->kh; y++) {
            for (int64_t x = 0; x < v->kw; x++) {
                *to++ = (c * rows + y * v->dilation[0]) * wp + x * v->dilation[1];
            }
        }
    }
}

static void run_map(map_job *job, const float *kernel, int turned, void *memory)
{
    char *bytes = memory;
    float *weights = memory;
    bytes += flex_float_bytes(job->v.o * job->l.k);
    int64_t *offset = (int64_t *)(void *)bytes;
    bytes += flex_float_bytes(2 * job->l.k);
    lay_weights(job, kernel, turned, weights);
    lay_offsets(&job->v, job->l.cg, job->rows_in, job->l.wp, offset);
    job->weights = weights;
    job->offset = offset;
    job->scratch = (float *)(void *)bytes;
    int64_t items = map_items(job);
    int64_t work = job->v.n * job->v.o * job->l.positions * job->l.k;
    flex_share(items, work < 4 * FLEX_GRAIN ? 1 : flex_slots(items), map_item, job);
}

/* ---- the kernel's gradient ------------------------------------------------------------------- */

typedef struct sum_job {
    map_job lay; /* how images are laid: one band */
    int64_t chunk; /* images */
    int64_t chunks;
    int64_t block; /* channels of the map's gradient */
    int64_t plane; /* floats of one of its planes, laid */
    const float *g;
    float *sums; /* [chunk][o][k] */
    float *scratch;
} sum_job;

static int64_t chunk_floats(const sum_job *job)
{
    return job->chunk * (job->lay.image_floats + job->lay.l.og * job->plane);
}

static void make_sum_job(const flex_conv *v, sum_job *job)
{
    memset(job, 0, sizeof(*job));
    make_map_job(v, &job->lay);
    layout *l = &job->lay.l;
    job->lay.rows_in = l->hp;
    job->lay.image_floats = flex_round_up(l->cg * l->hp * l->wp + SLACK, 16);
    int64_t most = job->lay.kernels->sum_rows;
    int64_t blocks = (l->og + most - 1) / most;
    job->block = (l->og + blocks - 1) / blocks;
    job->plane = flex_round_up(l->positions, FLEX_CONV_LANES);
    int64_t each = job->lay.image_floats + l->og * job->plane;
    job->chunk = flex_min((v->n + MAX_CHUNKS - 1) / MAX_CHUNKS, CHUNK_FLOATS / each);
    job->chunk = job->chunk > 0 ? job->chunk : 1;
    job->chunks = (v->n + job->chunk - 1) / job->chunk;
}

static uint64_t sum_bytes(const sum_job *job)
{
    int64_t results = job->chunks * job->lay.v.o * job->lay.l.k;
    int64_t scratch = chunk_floats(job) * flex_slots(job->chunks * job->lay.v.groups);
    return flex_float_bytes(2 * job->lay.l.k + 2 * FLEX_CONV_TAPS) + flex_float_bytes(results) +
           flex_float_bytes(scratch);
}

static int sum_fits(const flex_conv *v)
{
    if (!is_plain(v)) {
        return 0;
    }
    sum_job job;
    make_sum_job(v, &job);
    const layout *l = &job.lay.l;
    int64_t vectors = job.chunk * (job.plane / job.lay.kernels->lanes);
    return 2 * v->ow >= l->wp && vectors >= MIN_VECTORS && chunk_floats(&job) <= 2 * CHUNK_FLOATS &&
           job.chunks * v->o * l->k <= SUM_FLOATS;
}

/* The map's gradient of some channels, rows as far apart as the image's, zero in between. */
static void lay_gradient(const sum_job *job, const float *from, float *to)
{
    const flex_conv *v = &job->lay.v;
    const layout *l = &job->lay.l;
    memset(to, 0, (size_t)(l->og * job->plane) * sizeof(float));
    for (int64_t o = 0; o < l->og; o++) {
        job->lay.kernels->copy_rows(to + o * job->plane, l->wp, from + o * v->oh * v->ow, v->ow,
                                    v->oh, v->ow);
    }
}

/* All sums of the rows of one block; `offset` may be read past k. */
static void run_sums(const sum_job *job, const flex_conv_sums *block, int64_t rows, float *to)
{
    int64_t k = job->lay.l.k;
    int64_t taps = job->lay.kernels->taps[rows];
    float tile[FLEX_CONV_ROWS * FLEX_CONV_TAPS];
    flex_conv_sums s = *block;
    s.to = tile;
    for (int64_t j = 0; j < k; j += taps) {
        s.offset = job->lay.offset + j;
        job->lay.kernels->sums[rows](&s);
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t t = 0; t < taps && j + t < k; t++) {
                to[i * k + j + t] = tile[i * taps + t];
            }
        }
    }
}

static void sum_item(void *ctx, int64_t item, uint32_t slot)
{
    const sum_job *job = ctx;
    const flex_conv *v = &job->lay.v;
    const layout *l = &job->lay.l;
    int64_t chunk = item / v->groups;
    int64_t group = item % v->groups;
    float *laid = job->scratch + slot * chunk_floats(job);
    float *g = laid + job->chunk * job->lay.image_floats;
    int64_t first = chunk * job->chunk;
    int64_t images = flex_min(job->chunk, v->n - first);
    for (int64_t m = 0; m < images; m++) {
        const float *image = job->lay.image + ((first + m) * v->c + group * l->cg) * v->h * v->w;
        const float *from = job->g + ((first + m) * v->o + group * l->og) * v->oh * v->ow;
        lay_image(&job->lay, image, 0, laid + m * job->lay.image_floats);
        lay_gradient(job, from, g + m * l->og * job->plane);
    }
    flex_conv_sums s = {.images = images, .image = laid, .image_step = job->lay.image_floats};
    s.vectors = job->plane / job->lay.kernels->lanes;
    s.g_plane = job->plane;
    s.g_image = l->og * job->plane;
    for (int64_t o = 0; o < l->og; o += job->block) {
        s.g = g + o * job->plane;
        run_sums(job, &s, flex_min(job->block, l->og - o),
                 job->sums + (chunk * v->o + group * l->og + o) * l->k);
    }
}

/* Adds the chunks' sums; 0 when one is not finite. */
static int add_chunks(const sum_job *job, float *kernel)
{
    int64_t n = job->lay.v.o * job->lay.l.k;
    memcpy(kernel, job->sums, (size_t)n * sizeof(float));
    for (int64_t c = 1; c < job->chunks; c++) {
        for (int64_t i = 0; i < n; i++) {
            kernel[i] += job->sums[c * n + i];
        }
    }
    return all_finite(kernel, n);
}

static int run_kernel(sum_job *job, float *kernel, void *memory)
{
    char *bytes = memory;
    const layout *l = &job->lay.l;
    int64_t *offset = memory;
    bytes += flex_float_bytes(2 * l->k + 2 * FLEX_CONV_TAPS);
    job->sums = (float *)(void *)bytes;
    bytes += flex_float_bytes(job->chunks * job->lay.v.o * l->k);
    job->scratch = (float *)(void *)bytes;
    lay_offsets(&job->lay.v, l->cg, l->hp, l->wp, offset);
    memset(offset + l->k, 0, FLEX_CONV_TAPS * sizeof(*offset));
    job->lay.offset = offset;
    int64_t items = job->chunks * job->lay.v.groups;
    int64_t work = job->lay.v.n * job->lay.v.o * l->positions * l->k;
    flex_share(items, work < 4 * FLEX_GRAIN ? 1 : flex_slots(items), sum_item, job);
    return add_chunks(job, kernel);
}

/* ---- entry ----------------------------------------------------------------------------------- */

int flex_conv_direct_fits(const flex_conv *v, uint32_t what)
{
    if (what == FLEX_CONV_KERNEL) {
        return sum_fits(v);
    }
    flex_conv t = what == FLEX_CONV_IMAGE ? turned_round(v) : *v;
    return map_fits(&t);
}

int flex_conv_direct_can(const flex_conv *v, uint32_t what)
{
    flex_conv t = what == FLEX_CONV_IMAGE ? turned_round(v) : *v;
    if (!is_plain(v) || !is_plain(&t)) {
        return 0;
    }
    /* A vector must lie within a map, and scratch memory must not be beyond all measure. */
    layout l = layout_of(&t);
    return l.positions >= kernels_of()->lanes &&
           flex_conv_direct_bytes(v, what) <= (uint64_t)256 << 20;
}

uint64_t flex_conv_direct_bytes(const flex_conv *v, uint32_t what)
{
    if (what == FLEX_CONV_KERNEL) {
        sum_job sums;
        make_sum_job(v, &sums);
        return sum_bytes(&sums);
    }
    flex_conv t = what == FLEX_CONV_IMAGE ? turned_round(v) : *v;
    map_job job;
    make_map_job(&t, &job);
    return map_bytes(&job);
}

int flex_conv_direct(const flex_conv *v, uint32_t what, const flex_conv_data *data, void *memory)
{
    if (what == FLEX_CONV_KERNEL) {
        sum_job sums;
        make_sum_job(v, &sums);
        sums.lay.image = data->image;
        sums.g = data->map;
        return run_kernel(&sums, data->kernel, memory);
    }
    int turned = what == FLEX_CONV_IMAGE;
    flex_conv t = turned ? turned_round(v) : *v;
    map_job job;
    make_map_job(&t, &job);
    if (turned && !all_finite(data->kernel, t.o * job.l.k)) {
        return 0;
    }
    job.image = turned ? data->map : data->image;
    job.map = turned ? data->image : data->map;
    job.bias = data->bias;
    job.finish = data->finish;
    run_map(&job, data->kernel, turned, memory);
    return 1;
}
