/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tiles.c - gathering, converting and threading for elementwise loops (tiles.h).
 *
 * Owns the tile buffers (on the stack) and the cut into tasks; knows no op.
 */
#include "tiles.h"

#include "stream.h"
#include "threads.h"

#include <burn_sdk/half.h>
#include <string.h>

/* Rows at least this long are used in place instead of being gathered. */
enum { LONG_ROW = 64, BLOCK_ROWS = 16, BLOCK_COLUMNS = 64 };

/* Streamed tiles are short, so that reading the next one begins while this one is written. */
enum { STREAM_TILE = 256 };

/* One copier per element size; the strided loops are what matters here. */
static void copy_1(uint8_t *z, const uint8_t *x, int64_t stride, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        z[i] = x[i * stride];
    }
}

static void copy_2(uint16_t *z, const uint16_t *x, int64_t stride, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        z[i] = x[i * stride];
    }
}

static void copy_4(uint32_t *z, const uint32_t *x, int64_t stride, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        z[i] = x[i * stride];
    }
}

static void copy_8(uint64_t *z, const uint64_t *x, int64_t stride, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        z[i] = x[i * stride];
    }
}

static void spread_4(uint32_t *z, uint32_t value, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        z[i] = value;
    }
}

static void spread_8(uint64_t *z, uint64_t value, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        z[i] = value;
    }
}

static void spread_2(uint16_t *z, uint16_t value, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        z[i] = value;
    }
}

void flex_spread(void *out, const void *value, uint32_t size, uint64_t n)
{
    if (size == 4) {
        spread_4(out, *(const uint32_t *)value, n);
    } else if (size == 8) {
        spread_8(out, *(const uint64_t *)value, n);
    } else if (size == 2) {
        spread_2(out, *(const uint16_t *)value, n);
    } else {
        memset(out, *(const uint8_t *)value, n);
    }
}

void flex_copy_run(void *out, const void *data, uint32_t size, int64_t stride, int64_t n)
{
    if (stride == 1 && n > 8) {
        memcpy(out, data, (size_t)n * size);
    } else if (stride == 0 && n > 8) {
        flex_spread(out, data, size, (uint64_t)n);
    } else if (size == 4) {
        copy_4(out, data, stride, n);
    } else if (size == 8) {
        copy_8(out, data, stride, n);
    } else if (size == 2) {
        copy_2(out, data, stride, n);
    } else {
        copy_1(out, data, stride, n);
    }
}

int64_t flex_offset_at(uint32_t rank, const int64_t *dims, const int64_t *strides,
                       int64_t position)
{
    int64_t offset = 0;
    for (uint32_t axis = rank; axis-- > 0;) {
        int64_t d = dims[axis] > 0 ? dims[axis] : 1;
        offset += position % d * strides[axis];
        position /= d;
    }
    return offset;
}

void flex_gather(void *out, const void *data, uint32_t size, uint32_t rank, const int64_t *dims,
                 const int64_t *strides, int64_t first, int64_t n)
{
    char *z = out;
    const char *x = data;
    int64_t index[BURN_MAX_RANK];
    if (rank == 0) {
        memcpy(z, x, size);
        return;
    }
    int64_t offset = 0;
    int64_t rest = first;
    for (uint32_t axis = rank; axis-- > 0;) {
        index[axis] = rest % dims[axis];
        rest /= dims[axis];
        offset += index[axis] * strides[axis];
    }
    const uint32_t last = rank - 1;
    while (n > 0) {
        int64_t run = dims[last] - index[last];
        run = run < n ? run : n;
        flex_copy_run(z, x + offset * (int64_t)size, size, strides[last], run);
        z += run * (int64_t)size;
        n -= run;
        offset -= index[last] * strides[last];
        index[last] = 0;
        for (uint32_t axis = last; axis-- > 0;) {
            offset += strides[axis];
            if (++index[axis] < dims[axis]) {
                break;
            }
            offset -= dims[axis] * strides[axis];
            index[axis] = 0;
        }
    }
}

void flex_job_source(flex_job *job, uint32_t i, const burn_operand *x, int widen)
{
    flex_source *s = &job->src[i];
    s->data = x->data;
    s->strides = x->strides;
    s->size = flex_size(x->dtype);
    s->scalar = x->kind == BURN_IMMEDIATE || x->layout == BURN_LAYOUT_SCALAR;
    s->dense = x->layout == BURN_LAYOUT_CONTIGUOUS && !s->scalar;
    s->convert = NULL;
    if (widen && x->dtype == BURN_F16) {
        s->convert = flex_isa_kernels->half_to_float;
    } else if (widen && x->dtype == BURN_BF16) {
        s->convert = flex_isa_kernels->bfloat_to_float;
    }
    if ((!s->dense && !s->scalar) || s->convert != NULL) {
        job->all_dense = 0;
    }
    job->n_src = i + 1;
}

void flex_job_start(flex_job *job, const burn_operand *out, int narrow)
{
    memset(job, 0, sizeof(*job));
    job->rank = out->rank;
    job->dims = out->dims;
    job->out = out->data;
    job->out_size = flex_size(out->dtype);
    job->n = (uint64_t)flex_numel(out);
    job->grain = FLEX_GRAIN;
    job->all_dense = 1;
    if (narrow && out->dtype == BURN_F16) {
        job->convert_out = flex_isa_kernels->float_to_half;
    } else if (narrow && out->dtype == BURN_BF16) {
        job->convert_out = flex_isa_kernels->float_to_bfloat;
    }
    if (job->convert_out != NULL) {
        job->all_dense = 0;
    }
}

typedef struct tile_buffers {
    _Alignas(64) char raw[FLEX_MAX_SOURCES][FLEX_TILE * 8];
    _Alignas(64) float wide[FLEX_MAX_SOURCES][FLEX_TILE];
    _Alignas(64) float out[FLEX_TILE];
    _Alignas(64) char last[FLEX_TILE * 8]; /* what will be streamed */
} tile_buffers;

/* Where the loop finds source i of elements first .. first + n - 1. */
static const void *tile_source(const flex_job *job, uint32_t i, tile_buffers *b, int64_t first,
                               int64_t n, int one_row)
{
    const flex_source *s = &job->src[i];
    const char *data;
    uint64_t count = s->scalar ? 1 : (uint64_t)n;
    if (s->scalar) {
        data = s->data;
    } else if (s->dense) {
        data = s->data + first * (int64_t)s->size;
    } else if (one_row && s->strides[job->rank - 1] == 1) {
        int64_t offset = flex_offset_at(job->rank, job->dims, s->strides, first);
        data = s->data + offset * (int64_t)s->size;
    } else {
        flex_gather(b->raw[i], s->data, s->size, job->rank, job->dims, s->strides, first, n);
        data = b->raw[i];
    }
    if (s->convert != NULL) {
        s->convert(b->wide[i], data, count);
        return b->wide[i];
    }
    return data;
}

/*
 * Asks for elements of the dense sources that later tiles will read. Without it memory idles while
 * a tile is written. Beyond the end of an array this does nothing.
 */
static void fetch_ahead(const flex_job *job, uint64_t at, uint64_t n)
{
    for (uint32_t i = 0; i < job->n_src; i++) {
        const flex_source *s = &job->src[i];
        if (s->dense) {
            flex_fetch((const void *)((uintptr_t)s->data + at * s->size), n * s->size);
        }
    }
}

/* Elements at .. at + n - 1, n <= FLEX_TILE. Returns how many were done. */
static uint64_t run_tile(const flex_job *job, tile_buffers *buffers, uint64_t at, uint64_t n,
                         int one_row, uint32_t mode)
{
    const void *in[FLEX_MAX_SOURCES] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i < job->n_src; i++) {
        in[i] = tile_source(job, i, buffers, (int64_t)at, (int64_t)n, one_row);
    }
    if (job->stream) {
        fetch_ahead(job, at + n, n);
    }
    char *out = job->out + at * job->out_size;
    char *last = job->stream ? buffers->last : out;
    void *into = job->convert_out != NULL ? (void *)buffers->out : (void *)last;
    uint64_t done = job->loop(job, into, in, n, mode);
    if (done == n && job->convert_out != NULL) {
        job->convert_out(last, buffers->out, n);
    }
    if (job->stream) {
        flex_stream(out, last, done * job->out_size);
    }
    return done;
}

/*
 * A source that is dense along another axis than the last would fetch a line per element: blocks of
 * rows and columns use the lines while they are there. The order does not matter to the values.
 */
static void run_blocks(const flex_job *job, tile_buffers *buffers, uint64_t lo, uint64_t hi,
                       uint64_t row, uint32_t mode)
{
    for (uint64_t first = lo / row; first * row < hi; first += BLOCK_ROWS) {
        for (uint64_t column = 0; column < row; column += BLOCK_COLUMNS) {
            for (uint64_t r = first; r < first + BLOCK_ROWS; r++) {
                uint64_t from = r * row + column;
                uint64_t width = row - column < BLOCK_COLUMNS ? row - column : BLOCK_COLUMNS;
                uint64_t to = from + width < hi ? from + width : hi;
                from = from > lo ? from : lo;
                if (from < to) {
                    (void)run_tile(job, buffers, from, to - from, 1, mode);
                }
            }
        }
    }
}

static int is_transposed(const flex_job *job)
{
    int found = 0;
    for (uint32_t i = 0; i < job->n_src; i++) {
        const flex_source *s = &job->src[i];
        if (!s->scalar && !s->dense && job->rank > 1) {
            int64_t stride = s->strides[job->rank - 1];
            found |= stride != 0 && stride != 1 && s->strides[job->rank - 2] == 1;
        }
    }
    return found && !job->may_stop;
}

static uint64_t run_tiles(const flex_job *job, uint64_t lo, uint64_t hi, uint32_t mode)
{
    tile_buffers buffers;
    uint64_t row = job->rank > 0 ? (uint64_t)job->dims[job->rank - 1] : 1;
    int by_row = !job->all_dense && row >= LONG_ROW && job->rank > 1;
    if (by_row && is_transposed(job)) {
        run_blocks(job, &buffers, lo, hi, row, mode);
        return hi;
    }
    uint64_t tile = job->stream ? STREAM_TILE : FLEX_TILE;
    for (uint64_t at = lo; at < hi;) {
        uint64_t n = hi - at < tile ? hi - at : tile;
        if (by_row) {
            uint64_t left = row - at % row;
            n = n < left ? n : left;
        }
        uint64_t done = run_tile(job, &buffers, at, n, by_row, mode);
        if (done < n) {
            return at + done;
        }
        at += n;
    }
    return hi;
}

/* Where the loop finds source i at a position of a dense job; the tile after it is asked for. */
static const void *dense_source(const flex_source *s, uint64_t at)
{
    if (s->scalar) {
        return s->data;
    }
    const char *x = s->data + at * s->size;
    flex_fetch((const void *)((uintptr_t)x + STREAM_TILE * s->size), STREAM_TILE * s->size);
    return x;
}

/*
 * Dense operands whose results go past the caches. The buffer starts a page, so how its lines lie
 * to those of the operands does not change from process to process: a load waits for a store that
 * is a multiple of 4 KiB away.
 */
static uint64_t run_dense_stream(const flex_job *job, uint64_t lo, uint64_t hi, uint32_t mode)
{
    _Alignas(4096) char buffer[STREAM_TILE * 8];
    const void *in[FLEX_MAX_SOURCES] = {NULL, NULL, NULL};
    uint64_t n = STREAM_TILE;
    for (uint64_t at = lo; at < hi; at += n) {
        n = hi - at < n ? hi - at : n;
        for (uint32_t i = 0; i < job->n_src; i++) {
            in[i] = dense_source(&job->src[i], at);
        }
        uint64_t done = job->loop(job, buffer, in, n, mode);
        flex_stream(job->out + at * job->out_size, buffer, done * job->out_size);
        if (done < n) {
            return at + done;
        }
    }
    return hi;
}

/* The same with a function that writes whole lines itself: before the first and behind the last one
 * its twin writes. What a tile in level 1 between would cost is in bench/README.md. */
static uint64_t run_dense_past(const flex_job *job, uint64_t lo, uint64_t hi, uint32_t mode)
{
    enum { LINE = 64 };
    uint64_t behind = (uintptr_t)(job->out + lo * job->out_size) % LINE;
    uint64_t head = behind == 0 ? lo : lo + (LINE - behind) / job->out_size;
    head = head < hi ? head : hi;
    uint64_t tail = hi - (hi - head) % (LINE / job->out_size);
    const uint64_t ends[] = {lo, head, tail, hi};
    for (uint32_t part = 0; part < 3; part++) {
        const void *in[FLEX_MAX_SOURCES] = {NULL, NULL, NULL};
        uint64_t at = ends[part];
        for (uint32_t i = 0; i < job->n_src; i++) {
            in[i] = job->src[i].data + (job->src[i].scalar ? 0 : at * job->src[i].size);
        }
        (void)job->loop(job, job->out + at * job->out_size, in, ends[part + 1] - at,
                        part == 1 ? mode | FLEX_MODE_PAST : mode);
    }
    return hi;
}

/* Elements lo .. hi - 1. Returns hi, or the first position without an answer. */
static uint64_t run_range(const flex_job *job, uint64_t lo, uint64_t hi)
{
    uint32_t mode = 0;
    const void *in[FLEX_MAX_SOURCES] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i < job->n_src; i++) {
        mode |= job->src[i].scalar ? 1u << i : 0;
        in[i] = job->src[i].data + (job->src[i].scalar ? 0 : lo * job->src[i].size);
    }
    if (job->all_dense && !job->stream) {
        return lo + job->loop(job, job->out + lo * job->out_size, in, hi - lo, mode);
    }
    uint64_t end = !job->all_dense        ? run_tiles(job, lo, hi, mode)
                   : job->past_fn != NULL ? run_dense_past(job, lo, hi, mode)
                                          : run_dense_stream(job, lo, hi, mode);
    if (job->stream) {
        flex_stream_end();
    }
    return end;
}

static void run_task(void *ctx, uint32_t task)
{
    flex_job *job = ctx;
    uint64_t lo = task * job->grain;
    uint64_t hi = job->n - lo < job->grain ? job->n : lo + job->grain;
    uint64_t end = run_range(job, lo, hi);
    if (end >= hi) {
        return;
    }
    uint64_t seen = atomic_load(&job->fault);
    while (end < seen && !atomic_compare_exchange_weak(&job->fault, &seen, end)) {
    }
}

/* Large results are streamed, unless they overwrite an operand, whose lines are there already. */
static int wants_stream(const flex_job *job)
{
    uint64_t bytes = job->out_size;
    for (uint32_t i = 0; i < job->n_src; i++) {
        if (job->src[i].data == job->out) {
            return 0;
        }
        bytes += job->src[i].scalar ? 0 : job->src[i].size;
    }
    return flex_stream_pays(bytes * job->n);
}

uint64_t flex_even_grain(uint64_t n, uint64_t grain, uint64_t multiple)
{
    enum { FEW = 4 };
    uint64_t threads = flex_thread_count();
    uint64_t tasks = (n + grain - 1) / grain;
    if (tasks <= threads || tasks > FEW * threads) {
        return grain;
    }
    uint64_t part = (n + threads - 1) / threads;
    return (part + multiple - 1) / multiple * multiple;
}

uint64_t flex_job_run(flex_job *job)
{
    if (job->n == 0) {
        return 0;
    }
    job->stream = (uint8_t)wants_stream(job);
    job->grain = flex_even_grain(job->n, job->grain, 1024);
    if (job->stream) {
        job->grain = flex_stream_grain(job->n, job->grain, FLEX_STREAM_ELEMENTS);
    }
    /* 32-bit task numbers: huge jobs get larger tasks. */
    while ((job->n - 1) / job->grain >= UINT32_MAX) {
        job->grain *= 2;
    }
    if (!job->all_dense && is_transposed(job)) {
        uint64_t block = (uint64_t)job->dims[job->rank - 1] * BLOCK_ROWS;
        job->grain = (job->grain + block - 1) / block * block;
    }
    atomic_store(&job->fault, job->n);
    if (job->n <= job->grain) {
        uint64_t end = run_range(job, 0, job->n);
        return end;
    }
    flex_parallel((uint32_t)((job->n + job->grain - 1) / job->grain), run_task, job);
    return atomic_load(&job->fault);
}
