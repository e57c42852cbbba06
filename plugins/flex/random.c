/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * random.c - random_bits, random_uniform, random_normal, bernoulli, dropout. See random.h.
 *
 * Element i is a function of seed, counter and i alone (dropout's of x's element i, too), so tasks
 * fill their ranges in any order. Words come from random_tmpl.c in tiles; here they become the
 * dtype asked for. To add an op: a filler (tile of words in, elements out), a row of `kinds`, a
 * launch function, a row.
 */
#include "random.h"

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

/* Words that come before the first element's in its tile: tiles begin at whole blocks. */
static const uint32_t *from_first(const flex_random *g, const uint32_t *words, uint64_t skip)
{
    return words + skip * g->words_per_element;
}

void flex_random_elements(const flex_random *g, void *out, const void *in, uint64_t first,
                          uint64_t n)
{
    uint32_t words[2 * TILE + 4];
    uint32_t size = flex_size(g->dtype);
    char *z = out;
    const char *x = in;
    while (n > 0) {
        uint64_t skip = first % 4;
        uint64_t now = n < TILE - skip ? n : TILE - skip;
        uint64_t block = (first - skip) * g->words_per_element / 4;
        uint64_t n_blocks = ((skip + now) * g->words_per_element + 3) / 4;
        flex_isa_kernels->random->blocks(words, g->seed, g->counter + block, n_blocks);
        g->fill(g, z, x, skip, now, words);
        z += now * size;
        x += x != NULL ? now * size : 0;
        first += now;
        n -= now;
    }
}

/* ---- fillers --------------------------------------------------------------------------------- */

static void fill_bits(const flex_random *g, void *out, const void *in, uint64_t skip, uint64_t n,
                      const uint32_t *words)
{
    (void)in;
    /* low word first, as memory has it */
    memcpy(out, from_first(g, words, skip), n * flex_size(g->dtype));
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

static void fill_uniform(const flex_random *g, void *out, const void *in, uint64_t skip,
                         uint64_t n, const uint32_t *words)
{
    (void)in;
    words = from_first(g, words, skip);
    if (g->dtype == BURN_F64) {
        double *z = out;
        for (uint64_t i = 0; i < n; i++) {
            z[i] = uniform_f64(words, i);
        }
    } else if (g->dtype == BURN_F32) {
        float *z = out;
        for (uint64_t i = 0; i < n; i++) {
            z[i] = (float)(int32_t)(words[i] >> 8) * 0x1p-24f;
        }
    } else {
        uint16_t *z = out;
        for (uint64_t i = 0; i < n; i++) {
            z[i] = half_below(burn_philox_uniform32(words[i]), g->dtype);
        }
    }
}

/* A last odd element uses half of its pair. */
static void pairs_f64(double *z, uint64_t n, const uint32_t *words)
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

/* Tiles begin with a pair. */
static void fill_normal(const flex_random *g, void *out, const void *in, uint64_t skip, uint64_t n,
                        const uint32_t *words)
{
    float wide[TILE + 2];
    double wider[TILE + 2];
    (void)in;
    if (g->dtype == BURN_F64) {
        pairs_f64(wider, skip + n, words);
        memcpy(out, wider + skip, n * sizeof(double));
        return;
    }
    flex_isa_kernels->random->normals(wide, words, (skip + n + 1) / 2);
    if (g->dtype == BURN_F32) {
        memcpy(out, wide + skip, n * sizeof(float));
    } else if (g->dtype == BURN_F16) {
        flex_isa_kernels->float_to_half(out, wide + skip, n);
    } else {
        flex_isa_kernels->float_to_bfloat(out, wide + skip, n);
    }
}

static void fill_bernoulli(const flex_random *g, void *out, const void *in, uint64_t skip,
                           uint64_t n, const uint32_t *words)
{
    uint32_t size = flex_size(g->dtype);
    char *z = out;
    (void)in;
    words = from_first(g, words, skip);
    memset(z, 0, n * size);
    for (uint64_t i = 0; i < n; i++) {
        if (burn_philox_uniform32(words[i]) < g->chance) {
            memcpy(z + i * size, g->one, size);
        }
    }
}

static void fill_dropout(const flex_random *g, void *out, const void *in, uint64_t skip, uint64_t n,
                         const uint32_t *words)
{
    float wide[TILE];
    words = from_first(g, words, skip);
    if (g->dtype == BURN_F64) {
        const double *x = in;
        double *z = out;
        for (uint64_t i = 0; i < n; i++) {
            int kept = burn_philox_uniform32(words[i]) >= g->chance;
            z[i] = kept ? x[i] * g->scale : 0.0;
        }
        return;
    }
    const float *x = in;
    const float scale = (float)g->scale;
    float *z = g->dtype == BURN_F32 ? (float *)out : wide;
    if (g->dtype == BURN_F16) {
        flex_isa_kernels->half_to_float(wide, in, n);
        x = wide;
    } else if (g->dtype == BURN_BF16) {
        flex_isa_kernels->bfloat_to_float(wide, in, n);
        x = wide;
    }
    for (uint64_t i = 0; i < n; i++) {
        float u = (float)(int32_t)(words[i] >> 8) * 0x1p-24f;
        float y = x[i] * scale;
        z[i] = u >= g->chance ? y : 0.0f;
    }
    if (g->dtype == BURN_F16) {
        flex_isa_kernels->float_to_half(out, wide, n);
    } else if (g->dtype == BURN_BF16) {
        flex_isa_kernels->float_to_bfloat(out, wide, n);
    }
}

/* ---- kinds ----------------------------------------------------------------------------------- */

#define NONE FLEX_RANDOM_NONE
static const flex_random_kind kinds[] = {
    {BURN_OP_RANDOM_BITS, fill_bits, NONE, NONE, 0, {0}},
    {BURN_OP_RANDOM_UNIFORM, fill_uniform, NONE, NONE, 0, {0}},
    {BURN_OP_RANDOM_NORMAL, fill_normal, NONE, NONE, 0, {0}},
    {BURN_OP_BERNOULLI, fill_bernoulli, NONE, 0, 1, {0}},
    {BURN_OP_DROPOUT, fill_dropout, 0, 1, 2, {0}},
};

const flex_random_kind *flex_random_of(uint64_t op)
{
    for (uint32_t k = 0; k < FLEX_COUNT(kinds); k++) {
        if (kinds[k].op == op) {
            return &kinds[k];
        }
    }
    return NULL;
}

void flex_random_start(flex_random *g, const flex_random_kind *kind, uint8_t dtype,
                       const void *seed, const void *counter, const void *chance)
{
    memset(g, 0, sizeof(*g));
    g->fill = kind->fill;
    g->dtype = dtype;
    memcpy(&g->seed, seed, sizeof(g->seed));
    memcpy(&g->counter, counter, sizeof(g->counter));
    int wide = kind->chance == NONE && flex_size(dtype) == 8;
    g->words_per_element = wide ? 2 : 1;
    if (kind->chance != NONE) {
        double p = flex_read_f64(chance, BURN_F64);
        g->chance = (float)p;
        g->scale = p < 1.0 ? 1.0 / (1.0 - p) : 0.0;
        flex_one(dtype, g->one);
    }
}

/* ---- single ops ------------------------------------------------------------------------------ */

typedef struct random_job {
    flex_random random;
    char *out;
    const burn_operand *x; /* or NULL */
    uint64_t n;
    uint64_t grain;
} random_job;

/* A piece of x that is not dense, gathered. */
static void strided_range(const random_job *job, uint64_t lo, uint64_t hi)
{
    const burn_operand *x = job->x;
    uint32_t size = flex_size(x->dtype);
    _Alignas(64) char raw[TILE * 8];
    for (uint64_t at = lo; at < hi; at += TILE) {
        uint64_t n = hi - at < TILE ? hi - at : TILE;
        flex_gather(raw, x->data, size, x->rank, x->dims, x->strides, (int64_t)at, (int64_t)n);
        flex_random_elements(&job->random, job->out + at * size, raw, at, n);
    }
}

static void random_task(void *ctx, uint32_t task)
{
    const random_job *job = ctx;
    uint32_t size = flex_size(job->random.dtype);
    uint64_t lo = task * job->grain;
    uint64_t hi = job->n - lo < job->grain ? job->n : lo + job->grain;
    if (job->x != NULL && job->x->layout != BURN_LAYOUT_CONTIGUOUS) {
        strided_range(job, lo, hi);
        return;
    }
    const char *x = job->x != NULL ? (const char *)job->x->data + lo * size : NULL;
    flex_random_elements(&job->random, job->out + lo * size, x, lo, hi - lo);
}

static int32_t launch(const burn_call *call, uint64_t op)
{
    random_job job;
    const flex_random_kind *kind = flex_random_of(op);
    const burn_operand *z = flex_out(call, 0);
    const void *chance = kind->chance != NONE ? flex_in(call, kind->chance)->data : NULL;
    flex_random_start(&job.random, kind, z->dtype, flex_in(call, kind->first)->data,
                      flex_in(call, kind->first + 1u)->data, chance);
    job.out = z->data;
    job.x = kind->x != NONE ? flex_in(call, kind->x) : NULL;
    job.n = (uint64_t)flex_numel(z);
    job.grain = GRAIN;
    while (job.n / job.grain >= UINT32_MAX) {
        job.grain *= 2;
    }
    flex_parallel((uint32_t)((job.n + job.grain - 1) / job.grain), random_task, &job);
    return BURN_OK;
}

static int32_t launch_bits(const burn_call *call)
{
    return launch(call, BURN_OP_RANDOM_BITS);
}

static int32_t launch_uniform(const burn_call *call)
{
    return launch(call, BURN_OP_RANDOM_UNIFORM);
}

static int32_t launch_normal(const burn_call *call)
{
    return launch(call, BURN_OP_RANDOM_NORMAL);
}

static int32_t launch_bernoulli(const burn_call *call)
{
    return launch(call, BURN_OP_BERNOULLI);
}

static int32_t launch_dropout(const burn_call *call)
{
    return launch(call, BURN_OP_DROPOUT);
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
