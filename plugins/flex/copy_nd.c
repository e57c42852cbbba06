/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * copy_nd.c - strided copies (copy_nd.h).
 *
 * Dims are dropped and merged first, so that most copies end as one of three shapes: dense rows,
 * a transposition (the source is dense along another axis than the destination), or single
 * elements. Work is cut into tasks over the outermost axis that is long enough.
 */
#include "copy_nd.h"

#include "isa.h"
#include "stream.h"
#include "threads.h"
#include "tiles.h"

#include <string.h>

#if defined(FLEX_HAS_X86_KERNELS)
#include <immintrin.h>
#endif

/*
 * A block is a line of 16 floats wide. Streamed transpositions read long pieces of few rows and
 * write two lines side by side: STRIP rows of the output, BAND columns at a time. The longer the
 * pieces the better: of the speed of a copy, strips of 1024 reach 0.81, of 4096 0.90, of 8192 0.95.
 * More than 32 rows at a time are more streams than the CPU foresees (0.5), and a Zen 5 does not
 * foresee these: asked for bytes AHEAD of each row squares of 5760 and 4800 reach 0.79 and 0.75,
 * else 0.52 and 0.54; and 0.81 and 0.95 when TILE rows of the output, two lines of each row, are
 * done before the next. Tasks are COLUMNS wide, so that strips need not be short for threads to
 * share.
 */
enum { BLOCK = 16, STRIP = 8192, BAND = 32, TILE = 32, AHEAD = 256, COLUMNS = 256 };
enum { LONG_RUN = 256 };

typedef struct plan {
    uint32_t size;
    uint32_t rank;
    int64_t dims[BURN_MAX_RANK];
    int64_t out_strides[BURN_MAX_RANK];
    int64_t in_strides[BURN_MAX_RANK];
    char *out;
    const char *in;
    uint32_t cut_axis; /* tasks are ranges of this axis */
    uint32_t stream;   /* the copy is larger than caches (stream.h) */
    int64_t per_task;
} plan;

void flex_dense_strides(uint32_t rank, const int64_t *dims, int64_t *strides)
{
    uint64_t step = 1; /* unsigned: see flex_product */
    for (uint32_t axis = rank; axis-- > 0;) {
        strides[axis] = (int64_t)step;
        step *= (uint64_t)dims[axis];
    }
}

/* Drops axes of size 1 and merges neighbours that are one run on both sides. 0: nothing to copy. */
static int make_plan(plan *p, uint32_t rank, const int64_t *dims, const int64_t *out_strides,
                     const int64_t *in_strides)
{
    p->rank = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] == 0) {
            return 0;
        }
        if (dims[i] == 1) {
            continue;
        }
        uint32_t k = p->rank;
        if (k > 0 && p->out_strides[k - 1] == dims[i] * out_strides[i] &&
            p->in_strides[k - 1] == dims[i] * in_strides[i]) {
            k--;
            p->dims[k] *= dims[i];
        } else {
            p->dims[k] = dims[i];
            p->rank++;
        }
        p->out_strides[k] = out_strides[i];
        p->in_strides[k] = in_strides[i];
    }
    return 1;
}

/* One value per element size, to keep the inner loops simple. */
static void block_1(char *out, int64_t out_row, const char *in, int64_t in_col, int64_t rows,
                    int64_t cols)
{
    uint8_t *z = (uint8_t *)out;
    const uint8_t *x = (const uint8_t *)in;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) {
            z[r * out_row + c] = x[r + c * in_col];
        }
    }
}

static void block_2(char *out, int64_t out_row, const char *in, int64_t in_col, int64_t rows,
                    int64_t cols)
{
    uint16_t *z = (uint16_t *)(void *)out;
    const uint16_t *x = (const uint16_t *)(const void *)in;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) {
            z[r * out_row + c] = x[r + c * in_col];
        }
    }
}

static void block_8(char *out, int64_t out_row, const char *in, int64_t in_col, int64_t rows,
                    int64_t cols)
{
    uint64_t *z = (uint64_t *)(void *)out;
    const uint64_t *x = (const uint64_t *)(const void *)in;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) {
            z[r * out_row + c] = x[r + c * in_col];
        }
    }
}

typedef uint32_t lanes4 __attribute__((vector_size(16), aligned(4), may_alias));

/* 4 x 4 elements of 4 bytes in registers. */
static void block_4x4(uint32_t *z, int64_t out_row, const uint32_t *x, int64_t in_col)
{
    lanes4 a = *(const lanes4 *)x;
    lanes4 b = *(const lanes4 *)(x + in_col);
    lanes4 c = *(const lanes4 *)(x + 2 * in_col);
    lanes4 d = *(const lanes4 *)(x + 3 * in_col);
#if defined(__clang__)
    lanes4 ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    lanes4 ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    lanes4 cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    lanes4 cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(lanes4 *)z = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
    *(lanes4 *)(z + out_row) = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
    *(lanes4 *)(z + 2 * out_row) = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
    *(lanes4 *)(z + 3 * out_row) = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
#else
    lanes4 ab0 = __builtin_shuffle(a, b, (lanes4){0, 4, 1, 5});
    lanes4 ab1 = __builtin_shuffle(a, b, (lanes4){2, 6, 3, 7});
    lanes4 cd0 = __builtin_shuffle(c, d, (lanes4){0, 4, 1, 5});
    lanes4 cd1 = __builtin_shuffle(c, d, (lanes4){2, 6, 3, 7});
    *(lanes4 *)z = __builtin_shuffle(ab0, cd0, (lanes4){0, 1, 4, 5});
    *(lanes4 *)(z + out_row) = __builtin_shuffle(ab0, cd0, (lanes4){2, 3, 6, 7});
    *(lanes4 *)(z + 2 * out_row) = __builtin_shuffle(ab1, cd1, (lanes4){0, 1, 4, 5});
    *(lanes4 *)(z + 3 * out_row) = __builtin_shuffle(ab1, cd1, (lanes4){2, 3, 6, 7});
#endif
}

static void block_4(char *out, int64_t out_row, const char *in, int64_t in_col, int64_t rows,
                    int64_t cols)
{
    uint32_t *z = (uint32_t *)(void *)out;
    const uint32_t *x = (const uint32_t *)(const void *)in;
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        int64_t c = 0;
        for (; c + 4 <= cols; c += 4) {
            block_4x4(z + r * out_row + c, out_row, x + r + c * in_col, in_col);
        }
        for (; c < cols; c++) {
            for (int64_t k = r; k < r + 4; k++) {
                z[k * out_row + c] = x[k + c * in_col];
            }
        }
    }
    for (; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) {
            z[r * out_row + c] = x[r + c * in_col];
        }
    }
}

/*
 * A full block by way of a small buffer: every line of the source is read whole and every line of
 * the output written whole, however many of them share a cache set.
 */
static void block_4_full(char *out, int64_t out_row, const char *in, int64_t in_col, int stream)
{
    _Alignas(64) uint32_t buffer[BLOCK * BLOCK];
    _Alignas(64) uint32_t turned[BLOCK * BLOCK];
    for (int64_t c = 0; c < BLOCK; c++) {
        memcpy(buffer + c * BLOCK, in + c * in_col * 4, BLOCK * 4);
    }
    uint32_t *z = stream ? turned : (uint32_t *)(void *)out;
    int64_t row = stream ? BLOCK : out_row;
    for (int64_t r = 0; r < BLOCK; r += 4) {
        for (int64_t c = 0; c < BLOCK; c += 4) {
            block_4x4(z + r * row + c, row, buffer + r + c * BLOCK, BLOCK);
        }
    }
    for (int64_t r = 0; stream && r < BLOCK; r++) {
        flex_stream(out + r * out_row * 4, turned + r * BLOCK, BLOCK * 4);
    }
}

#if defined(FLEX_HAS_X86_KERNELS)
/* A full block in registers. Pairs, fours, then quarters of a register change places. */
__attribute__((target("avx512f"))) static void block_16(char *out, int64_t out_row, const char *in,
                                                        int64_t in_col, int stream)
{
    __m512 r[BLOCK];
    __m512 t[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        const char *row = in + i * in_col * 4;
        r[i] = _mm512_loadu_ps(row);
        if (stream) {
            __builtin_prefetch((const void *)((uintptr_t)row + AHEAD));
        }
    }
    for (int i = 0; i < BLOCK; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < BLOCK; i += 4) {
        __m512d a = _mm512_castps_pd(t[i]);
        __m512d b = _mm512_castps_pd(t[i + 1]);
        __m512d c = _mm512_castps_pd(t[i + 2]);
        __m512d d = _mm512_castps_pd(t[i + 3]);
        r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        r[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        r[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
        r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
    int on_lines = (((uintptr_t)out | (uintptr_t)(out_row * 4)) & 63) == 0;
    if (stream && on_lines) {
        for (int i = 0; i < BLOCK; i++) {
            _mm512_stream_ps((float *)(void *)(out + i * out_row * 4), r[i]);
        }
        return;
    }
    for (int i = 0; i < BLOCK; i++) {
        _mm512_storeu_ps(out + i * out_row * 4, r[i]);
    }
}

static int has_block_16(void)
{
    return flex_isa == FLEX_ISA_AVX512;
}
#else
static void block_16(char *out, int64_t out_row, const char *in, int64_t in_col, int stream)
{
    block_4_full(out, out_row, in, in_col, stream);
}

static int has_block_16(void)
{
    return 0;
}
#endif

/* nr x nc elements, at most a block. */
static void transpose_block(const plan *p, char *z, int64_t out_row, const char *x, int64_t in_col,
                            int64_t nr, int64_t nc)
{
    if (p->size == 4 && nr == BLOCK && nc == BLOCK && has_block_16()) {
        block_16(z, out_row, x, in_col, p->stream != 0);
    } else if (p->size == 4 && nr == BLOCK && nc == BLOCK) {
        block_4_full(z, out_row, x, in_col, p->stream != 0);
    } else if (p->size == 4) {
        block_4(z, out_row, x, in_col, nr, nc);
    } else if (p->size == 8) {
        block_8(z, out_row, x, in_col, nr, nc);
    } else if (p->size == 2) {
        block_2(z, out_row, x, in_col, nr, nc);
    } else {
        block_1(z, out_row, x, in_col, nr, nc);
    }
}

/* Rows first .. end - 1 of the output, columns c .. c_end - 1: lines of the source side by side. */
static void transpose_tile(const plan *p, char *out, int64_t out_row, const char *in,
                           int64_t in_col, int64_t first, int64_t end, int64_t c, int64_t c_end)
{
    const int64_t bytes = (int64_t)p->size;
    for (int64_t k = c; k < c_end; k += BLOCK) {
        int64_t nc = c_end - k < BLOCK ? c_end - k : BLOCK;
        for (int64_t r = first; r < end; r += BLOCK) {
            int64_t nr = end - r < BLOCK ? end - r : BLOCK;
            transpose_block(p, out + (r * out_row + k) * bytes, out_row,
                            in + (r + k * in_col) * bytes, in_col, nr, nc);
        }
    }
}

/* out[r][c] = in[c][r] for a plane: rows of the source are dense along r, of the output along c. */
static void transpose(const plan *p, char *out, int64_t out_row, const char *in, int64_t in_col,
                      int64_t rows, int64_t cols)
{
    const int64_t strip = p->stream != 0 ? STRIP : BLOCK;
    const int64_t band = p->stream != 0 ? BAND : cols;
    const int64_t tile = p->stream != 0 ? TILE : BLOCK;
    for (int64_t first = 0; first < rows; first += strip) {
        int64_t end = rows - first < strip ? rows : first + strip;
        for (int64_t c = 0; c < cols; c += band) {
            int64_t c_end = cols - c < band ? cols : c + band;
            for (int64_t r = first; r < end; r += tile) {
                int64_t r_end = end - r < tile ? end : r + tile;
                transpose_tile(p, out, out_row, in, in_col, r, r_end, c, c_end);
            }
        }
    }
}

void flex_transpose(uint32_t size, void *out, int64_t out_row, const void *in, int64_t in_col,
                    int64_t rows, int64_t cols)
{
    const plan p = {.size = size};
    transpose(&p, out, out_row, in, in_col, rows, cols);
}

/* The innermost run: any strides on both sides. */
static void copy_run(const plan *p, char *out, int64_t out_stride, const char *in,
                     int64_t in_stride, int64_t n)
{
    const int64_t bytes = (int64_t)p->size;
    if (p->stream != 0 && out_stride == 1 && in_stride == 1 && n * bytes >= LONG_RUN) {
        flex_stream(out, in, (uint64_t)(n * bytes));
        return;
    }
    if (out_stride == 1) {
        flex_copy_run(out, in, p->size, in_stride, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy(out + i * out_stride * bytes, in + i * in_stride * bytes, p->size);
    }
}

/* Is there an axis along which the source is dense, while it is not along the last one? */
static uint32_t transposed_axis(const plan *p)
{
    uint32_t last = p->rank - 1;
    if (p->in_strides[last] == 1 || p->out_strides[last] != 1 || p->in_strides[last] == 0) {
        return last;
    }
    for (uint32_t i = 0; i < last; i++) {
        if (p->in_strides[i] == 1 && p->dims[i] >= 4) {
            return i;
        }
    }
    return last;
}

/* Copies the block that `dims` (within p->dims) describes, from the given addresses. */
static void copy_block(const plan *p, const int64_t *dims, char *out, const char *in)
{
    const uint32_t last = p->rank - 1;
    const int64_t bytes = (int64_t)p->size;
    uint32_t plane = transposed_axis(p);
    int64_t index[BURN_MAX_RANK] = {0};
    int64_t z = 0;
    int64_t x = 0;
    for (;;) {
        if (plane != last) {
            transpose(p, out + z * bytes, p->out_strides[plane], in + x * bytes,
                      p->in_strides[last], dims[plane], dims[last]);
        } else {
            copy_run(p, out + z * bytes, p->out_strides[last], in + x * bytes,
                     p->in_strides[last], dims[last]);
        }
        uint32_t axis = last;
        while (axis-- > 0) {
            if (axis == plane) {
                continue;
            }
            z += p->out_strides[axis];
            x += p->in_strides[axis];
            if (++index[axis] < dims[axis]) {
                break;
            }
            z -= dims[axis] * p->out_strides[axis];
            x -= dims[axis] * p->in_strides[axis];
            index[axis] = 0;
        }
        if (axis == UINT32_MAX) {
            break;
        }
    }
    if (p->stream != 0) {
        flex_stream_end();
    }
}

static void copy_task(void *ctx, uint32_t task)
{
    const plan *p = ctx;
    const uint32_t axis = p->cut_axis;
    int64_t dims[BURN_MAX_RANK];
    memcpy(dims, p->dims, sizeof(dims));
    int64_t first = task * p->per_task;
    int64_t left = p->dims[axis] - first;
    dims[axis] = left < p->per_task ? left : p->per_task;
    copy_block(p, dims, p->out + first * p->out_strides[axis] * (int64_t)p->size,
               p->in + first * p->in_strides[axis] * (int64_t)p->size);
}

/* Ranges of columns of a transposition, where there are enough of them. */
static int cut_columns(plan *p)
{
    const int64_t columns = p->dims[p->rank - 1];
    if (columns < 2 * BAND * (int64_t)flex_thread_count()) {
        return 0;
    }
    p->cut_axis = p->rank - 1;
    p->per_task = (int64_t)flex_stream_grain((uint64_t)columns, BAND, COLUMNS);
    return 1;
}

/* Long tasks, of which each thread gets as many as any other; strips of a transposition. */
static void cut_stream(plan *p, int64_t rest)
{
    const int64_t n = p->dims[p->cut_axis];
    const int64_t threads = (int64_t)flex_thread_count();
    if (transposed_axis(p) != p->cut_axis || p->cut_axis + 1 == p->rank) {
        uint64_t longest = (uint64_t)(FLEX_STREAM_ELEMENTS / (rest > 0 ? rest : 1));
        p->per_task = (int64_t)flex_stream_grain((uint64_t)n, (uint64_t)p->per_task, longest);
        return;
    }
    if (cut_columns(p)) {
        return;
    }
    int64_t tasks = (n + STRIP - 1) / STRIP;
    tasks = (tasks + threads - 1) / threads * threads;
    p->per_task = ((n + tasks - 1) / tasks + BLOCK - 1) / BLOCK * BLOCK;
}

void flex_copy_nd(uint32_t size, uint32_t rank, const int64_t *dims, void *out,
                  const int64_t *out_strides, const void *in, const int64_t *in_strides)
{
    plan p;
    memset(&p, 0, sizeof(p));
    p.size = size;
    p.out = out;
    p.in = in;
    if (make_plan(&p, rank, dims, out_strides, in_strides) == 0) {
        return;
    }
    if (p.rank == 0) {
        memcpy(out, in, size);
        return;
    }
    int64_t n = flex_product(p.rank, p.dims);
    uint32_t cut = 0;
    for (uint32_t i = 1; i < p.rank; i++) {
        cut = p.dims[i] > p.dims[cut] && p.dims[cut] < 16 ? i : cut;
    }
    p.cut_axis = cut;
    int64_t rest = n / p.dims[cut];
    int64_t grain = FLEX_GRAIN / (rest > 0 ? rest : 1);
    grain = (grain + BLOCK - 1) / BLOCK * BLOCK;
    p.per_task = grain < 1 ? BLOCK : grain;
    p.per_task = (int64_t)flex_even_grain((uint64_t)p.dims[cut], (uint64_t)p.per_task, BLOCK);
    p.stream = (uint32_t)flex_stream_pays(2 * (uint64_t)n * size);
    if (p.stream != 0) {
        cut_stream(&p, rest);
        cut = p.cut_axis;
    }
    if (n <= FLEX_GRAIN || p.per_task >= p.dims[cut]) {
        copy_block(&p, p.dims, p.out, p.in);
        return;
    }
    while ((p.dims[cut] - 1) / p.per_task >= (int64_t)UINT32_MAX) {
        p.per_task *= 2;
    }
    flex_parallel((uint32_t)((p.dims[cut] + p.per_task - 1) / p.per_task), copy_task, &p);
}

typedef struct fill_job {
    char *out;
    const void *value;
    uint64_t n;
    uint64_t grain;
    uint32_t size;
} fill_job;

static void fill_task(void *ctx, uint32_t task)
{
    const fill_job *job = ctx;
    uint64_t first = task * job->grain;
    uint64_t n = job->n - first < job->grain ? job->n - first : job->grain;
    char *out = job->out + first * job->size;
    const unsigned char *bytes = job->value;
    int same = 1;
    for (uint32_t i = 1; i < job->size; i++) {
        same &= bytes[i] == bytes[0];
    }
    if (same) {
        memset(out, bytes[0], n * job->size);
        return;
    }
    flex_copy_run(out, job->value, job->size, 0, (int64_t)n);
}

void flex_fill(uint32_t size, void *out, const void *value, uint64_t n)
{
    fill_job job = {out, value, n, FLEX_GRAIN * 2, size};
    while (n / job.grain >= UINT32_MAX) {
        job.grain *= 2;
    }
    if (n > 0) {
        flex_parallel((uint32_t)((n + job.grain - 1) / job.grain), fill_task, &job);
    }
}
