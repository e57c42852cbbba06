/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * random.c - random_bits, random_uniform, random_normal, bernoulli, dropout.
 *
 * Element i is a function of seed, counter and i alone, so tasks of a fixed size fill their ranges
 * in any order. Words come from random_tmpl.c in tiles; here they become the dtype asked for. To
 * add an op: a filler (tile of words in, elements out), a launch function, a row.
 */
#include "copy_nd.h"
#include "kernels.h"
#include "rows.h"
#include "threads.h"
#include "tiles.h"

#include <burn_sdk/half.h>
#include <burn_sdk/philox.h>
#include <math.h>
#include <string.h>

enum { TILE = 512, GRAIN = 16384 };

typedef struct random_job random_job;
/* Makes n elements, `first` is the number of the first, from words that start at it. */
typedef void (*filler)(const random_job *job, uint64_t first, uint64_t n, const uint32_t *words);

struct random_job {
    filler fill;
    char *out;
    uint64_t n;
    uint64_t seed;
    uint64_t counter;
    uint64_t grain;
    uint32_t words_per_element;
    uint8_t dtype;
    uint8_t zero[3];
    /* bernoulli: value of one; bernoulli and dropout: the chance */
    float chance;
    uint32_t padding;
    double scale;
    char one[8];
    const burn_operand *x;
};

static void random_task(void *ctx, uint32_t task)
{
    const random_job *job = ctx;
    uint32_t words[2 * TILE + 4];
    uint64_t lo = task * job->grain;
    uint64_t hi = job->n - lo < job->grain ? job->n : lo + job->grain;
    for (uint64_t at = lo; at < hi; at += TILE) {
        uint64_t n = hi - at < TILE ? hi - at : TILE;
        uint64_t block = at * job->words_per_element / 4;
        uint64_t n_blocks = (n * job->words_per_element + 3) / 4;
        flex_isa_kernels->random->blocks(words, job->seed, job->counter + block, n_blocks);
        job->fill(job, at, n, words);
    }
}

static void start(random_job *job, const burn_call *call, uint32_t first, filler fill)
{
    const burn_operand *z = flex_out(call, 0);
    memset(job, 0, sizeof(*job));
    job->fill = fill;
    job->out = z->data;
    job->n = (uint64_t)flex_numel(z);
    job->dtype = z->dtype;
    job->seed = (uint64_t)flex_read_i64(flex_in(call, first)->data, BURN_U64);
    job->counter = (uint64_t)flex_read_i64(flex_in(call, first + 1)->data, BURN_U64);
    job->words_per_element = 1;
    job->grain = GRAIN;
}

static int32_t fill_all(random_job *job)
{
    while (job->n / job->grain >= UINT32_MAX) {
        job->grain *= 2;
    }
    flex_parallel((uint32_t)((job->n + job->grain - 1) / job->grain), random_task, job);
    return BURN_OK;
}

static void fill_bits(const random_job *job, uint64_t first, uint64_t n, const uint32_t *words)
{
    uint32_t size = 4 * job->words_per_element;
    memcpy(job->out + first * size, words, n * size); /* low word first, as memory has it */
}

static int32_t launch_bits(const burn_call *call)
{
    random_job job;
    start(&job, call, 0, fill_bits);
    job.words_per_element = job.dtype == BURN_U64 ? 2 : 1;
    return fill_all(&job);
}

/* Rounds a number in [0,1) down to a half, so that 1 is never reached. */
static uint16_t half_below(float u, uint8_t dtype)
{
    uint16_t h = dtype == BURN_F16 ? burn_float_to_half(u) : burn_float_to_bfloat(u);
    float back = dtype == BURN_F16 ? burn_half_to_float(h) : burn_bfloat_to_float(h);
    return (uint16_t)(back > u ? h - 1 : h);
}

static double uniform_f64(const uint32_t *words, uint64_t i)
{
    return burn_philox_uniform64((uint64_t)words[2 * i + 1] << 32 | words[2 * i]);
}

static void fill_uniform(const random_job *job, uint64_t first, uint64_t n, const uint32_t *words)
{
    if (job->dtype == BURN_F64) {
        double *z = (double *)(void *)job->out + first;
        for (uint64_t i = 0; i < n; i++) {
            z[i] = uniform_f64(words, i);
        }
    } else if (job->dtype == BURN_F32) {
        float *z = (float *)(void *)job->out + first;
        for (uint64_t i = 0; i < n; i++) {
            z[i] = (float)(int32_t)(words[i] >> 8) * 0x1p-24f;
        }
    } else {
        uint16_t *z = (uint16_t *)(void *)job->out + first;
        for (uint64_t i = 0; i < n; i++) {
            z[i] = half_below(burn_philox_uniform32(words[i]), job->dtype);
        }
    }
}

static int32_t launch_uniform(const burn_call *call)
{
    random_job job;
    start(&job, call, 0, fill_uniform);
    job.words_per_element = job.dtype == BURN_F64 ? 2 : 1;
    return fill_all(&job);
}

/* Tiles start at even elements; a last odd element uses half of its pair. */
static void fill_normal_f64(double *z, uint64_t n, const uint32_t *words)
{
    for (uint64_t i = 0; i < n; i += 2) {
        double radius = sqrt(-2.0 * log1p(-uniform_f64(words, i)));
        double angle = 6.283185307179586477 * uniform_f64(words, i + 1);
        z[i] = radius * cos(angle);
        if (i + 1 < n) {
            z[i + 1] = radius * sin(angle);
        }
    }
}

static void fill_normal(const random_job *job, uint64_t first, uint64_t n, const uint32_t *words)
{
    float wide[TILE + 2];
    if (job->dtype == BURN_F64) {
        fill_normal_f64((double *)(void *)job->out + first, n, words);
        return;
    }
    flex_isa_kernels->random->normals(wide, words, (n + 1) / 2);
    if (job->dtype == BURN_F32) {
        memcpy(job->out + first * 4, wide, n * 4);
    } else if (job->dtype == BURN_F16) {
        flex_isa_kernels->float_to_half(job->out + first * 2, wide, n);
    } else {
        flex_isa_kernels->float_to_bfloat(job->out + first * 2, wide, n);
    }
}

static int32_t launch_normal(const burn_call *call)
{
    random_job job;
    start(&job, call, 0, fill_normal);
    job.words_per_element = job.dtype == BURN_F64 ? 2 : 1;
    return fill_all(&job);
}

static void fill_bernoulli(const random_job *job, uint64_t first, uint64_t n,
                           const uint32_t *words)
{
    uint32_t size = flex_size(job->dtype);
    char *z = job->out + first * size;
    memset(z, 0, n * size);
    for (uint64_t i = 0; i < n; i++) {
        if (burn_philox_uniform32(words[i]) < job->chance) {
            memcpy(z + i * size, job->one, size);
        }
    }
}

static int32_t launch_bernoulli(const burn_call *call)
{
    random_job job;
    start(&job, call, 1, fill_bernoulli);
    job.chance = (float)flex_read_f64(flex_in(call, 0)->data, BURN_F64);
    flex_one(job.dtype, job.one);
    return fill_all(&job);
}

/* One tile of x, in any layout, as f64 or f32. */
static void fill_dropout(const random_job *job, uint64_t first, uint64_t n, const uint32_t *words)
{
    const burn_operand *x = job->x;
    uint32_t size = flex_size(x->dtype);
    _Alignas(64) char raw[TILE * 8];
    float wide[TILE];
    const char *data = (const char *)x->data + first * size;
    if (x->layout != BURN_LAYOUT_CONTIGUOUS) {
        flex_gather(raw, x->data, size, x->rank, x->dims, x->strides, (int64_t)first, (int64_t)n);
        data = raw;
    }
    char *out = job->out + first * size;
    if (x->dtype == BURN_F64) {
        const double *in = (const double *)(const void *)data;
        double *z = (double *)(void *)out;
        for (uint64_t i = 0; i < n; i++) {
            int kept = burn_philox_uniform32(words[i]) >= job->chance;
            z[i] = kept ? in[i] * job->scale : 0.0;
        }
        return;
    }
    const float *in = (const float *)(const void *)data;
    const float scale = (float)job->scale;
    float *z = x->dtype == BURN_F32 ? (float *)(void *)out : wide;
    if (x->dtype == BURN_F16) {
        flex_isa_kernels->half_to_float(wide, data, n);
        in = wide;
    } else if (x->dtype == BURN_BF16) {
        flex_isa_kernels->bfloat_to_float(wide, data, n);
        in = wide;
    }
    for (uint64_t i = 0; i < n; i++) {
        float u = (float)(int32_t)(words[i] >> 8) * 0x1p-24f;
        float y = in[i] * scale;
        z[i] = u >= job->chance ? y : 0.0f;
    }
    if (x->dtype == BURN_F16) {
        flex_isa_kernels->float_to_half(out, wide, n);
    } else if (x->dtype == BURN_BF16) {
        flex_isa_kernels->float_to_bfloat(out, wide, n);
    }
}

static int32_t launch_dropout(const burn_call *call)
{
    random_job job;
    double p = flex_read_f64(flex_in(call, 1)->data, BURN_F64);
    start(&job, call, 2, fill_dropout);
    job.x = flex_in(call, 0);
    job.chance = (float)p;
    job.scale = p < 1.0 ? 1.0 / (1.0 - p) : 0.0;
    return fill_all(&job);
}

/* clang-format off */
#define NUMBER(set) FLEX_SLOT(set, BURN_LAYOUT_ANY, 0, FLEX_IMM)
#define SEEDS NUMBER(BURN_BIT(U64)), NUMBER(BURN_BIT(U64))
#define OUT(set, like) FLEX_SLOT(set, FLEX_LAYOUT_OUT, like, 0)
static const burn_slot slots_bits[] = {SEEDS, OUT(BURN_BIT(U32) | BURN_BIT(U64), 0)};
static const burn_slot slots_float[] = {SEEDS, OUT(BURN_SET_FLOAT, 0)};
static const burn_slot slots_bernoulli[] = {NUMBER(BURN_BIT(F64)), SEEDS, OUT(BURN_SET_ANY, 0)};
static const burn_slot slots_dropout[] = {
    FLEX_SLOT(BURN_SET_FLOAT, BURN_LAYOUT_ANY, 0, 0), NUMBER(BURN_BIT(F64)), SEEDS,
    OUT(BURN_SET_FLOAT, 1)};

const burn_row flex_rows_random[] = {
    FLEX_ROW(BURN_OP_RANDOM_BITS, slots_bits, 0, 0, "flex.random_bits", launch_bits),
    FLEX_ROW(BURN_OP_RANDOM_UNIFORM, slots_float, 0, 0, "flex.random_uniform", launch_uniform),
    FLEX_ROW(BURN_OP_RANDOM_NORMAL, slots_float, 0, 0, "flex.random_normal", launch_normal),
    FLEX_ROW(BURN_OP_BERNOULLI, slots_bernoulli, 0, 0, "flex.bernoulli", launch_bernoulli),
    FLEX_ROW(BURN_OP_DROPOUT, slots_dropout, 0, 1, "flex.dropout", launch_dropout),
};
/* clang-format on */
const uint32_t flex_rows_random_count = FLEX_COUNT(flex_rows_random);
