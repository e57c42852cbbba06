/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * norm.c - rows of layer_norm, batch_norm and their gradients.
 *
 * Owns statistics and the walk; line arithmetic is in the line tables. Mean and variance are
 * f64, and eps is added in f64, whatever the dtype. Lines of layer norm are rows, lines
 * of batch norm are the planes of a channel, in order. Gradients of gamma and beta are summed per
 * fixed block of rows, then block by block. To add a norm: statistics, a line function and a row.
 */
#include "fused_lines.h"
#include "nn.h"
#include "nn_lines.h"
#include "rows.h"
#include "stream.h"

#include <math.h>
#include <string.h>

static const burn_operand *optional(const burn_call *call, uint32_t i)
{
    if (i >= call->n_in || flex_absent(flex_in(call, i))) {
        return NULL;
    }
    return flex_in(call, i);
}

static int32_t no_workspace(const burn_call *call, const char *op)
{
    return flex_fail(call->err, BURN_E_INTERNAL, "%s: the call has no workspace", op);
}

/* ---- layer_norm ------------------------------------------------------------------------------ */

enum { LAYER_LINES = 3, BLOCK_ROWS = 32, MAX_BLOCKS = 64 };

typedef struct layer {
    const burn_attrs_norm *attrs;
    const flex_lines *table;
    const burn_operand *x;
    const burn_operand *g; /* gradient only */
    const burn_operand *out;
    const void *gamma; /* as lines; NULL: none */
    const void *beta;
    int64_t rows;
    int64_t n;
    int64_t block_rows;
    int stream; /* rows of y are made in scratch, then streamed */
    char *scratch;
    double *partial; /* per block: n sums for gamma, n for beta */
} layer;

static void make_layer(const burn_call *call, layer *l)
{
    memset(l, 0, sizeof(*l));
    l->attrs = call->attrs;
    l->x = flex_in(call, 0);
    l->out = flex_out(call, 0);
    l->table = flex_lines_of(l->x->dtype);
    l->rows = 1;
    l->n = 1;
    for (uint32_t i = 0; i < l->x->rank; i++) {
        if (i + l->attrs->n_axes < l->x->rank) {
            l->rows *= l->x->dims[i];
        } else {
            l->n *= l->x->dims[i];
        }
    }
    l->block_rows = BLOCK_ROWS;
    while ((l->rows + l->block_rows - 1) / l->block_rows > MAX_BLOCKS) {
        l->block_rows *= 2;
    }
}

static int64_t layer_blocks(const layer *l)
{
    return (l->rows + l->block_rows - 1) / l->block_rows;
}

/* Workspace: lines of gamma and beta, lines of each slot, sums of each block. */
static uint64_t layer_bytes(const layer *l, int gradient)
{
    uint64_t line = flex_line_bytes(l->n);
    uint64_t sums = gradient ? 2 * line * (uint64_t)layer_blocks(l) : 0;
    return line * (2 + LAYER_LINES * (uint64_t)flex_thread_count()) + sums;
}

/* Reads gamma (operand 1) and beta (the operand `beta`), cuts the workspace. */
static int cut_layer(const burn_call *call, layer *l, uint32_t beta)
{
    char *memory = flex_workspace(call);
    if (memory == NULL) {
        return 0;
    }
    uint64_t line = flex_line_bytes(l->n);
    const burn_operand *operands[2] = {optional(call, 1), beta != 0 ? optional(call, beta) : NULL};
    const void *lines[2] = {NULL, NULL};
    for (uint32_t i = 0; i < 2; i++) {
        if (operands[i] != NULL) {
            lines[i] =
                flex_line_get(l->table->dtype, operands[i], 0, 1, l->n, memory + i * line);
        }
    }
    l->gamma = lines[0];
    l->beta = lines[1];
    l->scratch = memory + 2 * line;
    l->partial = (double *)(void *)(l->scratch + LAYER_LINES * line * flex_thread_count());
    return 1;
}

static void row_statistics(const flex_lines *t, double eps, const void *line, int64_t n,
                           const void *next, double *mean, double *inv)
{
    double moments[2];
    t->moments(moments, line, n, next);
    *mean = moments[0];
    *inv = 1.0 / sqrt(moments[1] + eps);
}

void flex_layer_norm_line(const flex_lines *t, const void *attrs, void *out,
                          const void *const *in, int64_t n)
{
    const burn_attrs_norm *a = attrs;
    double mean = 0;
    double inv = 0;
    row_statistics(t, a->eps, in[0], n, in[0], &mean, &inv);
    t->normalize(out, in[0], mean, inv, in[1], in[2], n);
}

static void layer_block(void *ctx, int64_t block, uint32_t slot)
{
    const layer *l = ctx;
    uint8_t dtype = l->table->dtype;
    uint64_t bytes = flex_line_bytes(l->n);
    uint64_t row_bytes = (uint64_t)l->n * flex_size(dtype);
    char *scratch = l->scratch + slot * LAYER_LINES * bytes;
    int64_t end = flex_min((block + 1) * l->block_rows, l->rows);
    for (int64_t row = block * l->block_rows; row < end; row++) {
        int64_t at = row * l->n;
        const void *x = flex_line_get(dtype, l->x, at, 1, l->n, scratch);
        void *y = l->stream ? scratch + bytes
                            : flex_line_open(dtype, l->out, at, 1, scratch + bytes);
        double mean = 0;
        double inv = 0;
        uintptr_t ahead = l->stream && row + 1 < end ? (uintptr_t)row_bytes : 0;
        const void *next = (const void *)((uintptr_t)x + ahead);
        row_statistics(l->table, l->attrs->eps, x, l->n, next, &mean, &inv);
        l->table->normalize(y, x, mean, inv, l->gamma, l->beta, l->n);
        if (l->stream) {
            flex_stream((char *)l->out->data + (uint64_t)row * row_bytes, y, row_bytes);
        } else {
            flex_line_put(dtype, l->out, at, 1, l->n, y);
        }
    }
    if (l->stream) {
        flex_stream_end();
    }
}

/* Rows that fit the first cache, of a result that fits none; halves are converted on their way. */
static int layer_streams(const layer *l)
{
    enum { SHORT_ROW = 16384 };
    uint64_t size = flex_size(l->out->dtype);
    uint64_t row = (uint64_t)l->n * size;
    return l->out->dtype == l->table->dtype && row <= SHORT_ROW &&
           flex_stream_pays(2 * row * (uint64_t)l->rows);
}

static void layer_grad_block(void *ctx, int64_t block, uint32_t slot)
{
    const layer *l = ctx;
    uint8_t dtype = l->table->dtype;
    uint64_t bytes = flex_line_bytes(l->n);
    char *scratch = l->scratch + slot * LAYER_LINES * bytes;
    int64_t end = flex_min((block + 1) * l->block_rows, l->rows);
    double *gamma_sums = l->partial + block * 2 * flex_round_up(l->n, 8);
    double *beta_sums = gamma_sums + flex_round_up(l->n, 8);
    memset(gamma_sums, 0, bytes * 2);
    for (int64_t row = block * l->block_rows; row < end; row++) {
        int64_t at = row * l->n;
        const void *x = flex_line_get(dtype, l->x, at, 1, l->n, scratch);
        const void *g = flex_line_get(dtype, l->g, at, 1, l->n, scratch + bytes);
        void *gx = flex_line_open(dtype, l->out, at, 1, scratch + 2 * bytes);
        double mean = 0;
        double inv = 0;
        double sums[2];
        row_statistics(l->table, l->attrs->eps, x, l->n, x, &mean, &inv);
        l->table->norm_sums(sums, x, g, l->gamma, mean, inv, l->n);
        sums[0] /= (double)l->n;
        sums[1] /= (double)l->n;
        l->table->norm_grad(gx, x, g, l->gamma, mean, inv, inv, sums, l->n);
        l->table->add_param_grads(gamma_sums, beta_sums, x, g, mean, inv, l->n);
        flex_line_put(dtype, l->out, at, 1, l->n, gx);
    }
}

static int32_t prepare_layer(const burn_call *call, burn_prepared *out)
{
    layer l;
    make_layer(call, &l);
    return flex_want_workspace(out, layer_bytes(&l, 0));
}

static int32_t prepare_layer_grad(const burn_call *call, burn_prepared *out)
{
    layer l;
    make_layer(call, &l);
    return flex_want_workspace(out, layer_bytes(&l, 1));
}

static uint32_t layer_slots(const layer *l)
{
    return l->rows * l->n < FLEX_GRAIN ? 1 : flex_slots(layer_blocks(l));
}

static int32_t launch_layer(const burn_call *call)
{
    layer l;
    make_layer(call, &l);
    if (!cut_layer(call, &l, 2)) {
        return no_workspace(call, "layer_norm");
    }
    l.stream = layer_streams(&l);
    if (l.n > 0) {
        flex_share(layer_blocks(&l), layer_slots(&l), layer_block, &l);
    }
    return BURN_OK;
}

/* Adds up the blocks' sums, in order, into gradient `which` (0 gamma, 1 beta). */
static void finish_param_grad(const burn_operand *out, const double *partial, int64_t blocks,
                              int64_t n, int64_t which)
{
    if (flex_absent(out)) {
        return;
    }
    int64_t ld = flex_round_up(n, 8);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t b = 0; b < blocks; b++) {
            sum += partial[(b * 2 + which) * ld + i];
        }
        flex_store_f64(out->data, i, out->dtype, sum);
    }
}

static int32_t launch_layer_grad(const burn_call *call)
{
    layer l;
    make_layer(call, &l);
    l.g = flex_in(call, 2);
    if (!cut_layer(call, &l, 0)) {
        return no_workspace(call, "layer_norm_grad");
    }
    int64_t blocks = layer_blocks(&l);
    if (l.n > 0) {
        flex_share(blocks, layer_slots(&l), layer_grad_block, &l);
    }
    for (uint32_t i = 1; i < call->n_out; i++) {
        finish_param_grad(flex_out(call, i), l.partial, blocks, l.n, (int64_t)i - 1);
    }
    return BURN_OK;
}

/* ---- batch_norm ------------------------------------------------------------------------------ */

enum { BATCH_LINES = 3 };

typedef struct batch {
    const burn_call *call;
    const burn_attrs_norm *attrs;
    const flex_lines *table;
    const burn_operand *x;
    const burn_operand *g;
    const burn_operand *gamma;
    const burn_operand *beta;
    const burn_operand *mean;
    const burn_operand *var;
    flex_axis axis; /* outer: images, n: channels, inner: a plane */
    char *scratch;
} batch;

static void make_batch(const burn_call *call, batch *b)
{
    memset(b, 0, sizeof(*b));
    b->call = call;
    b->attrs = call->attrs;
    b->x = flex_in(call, 0);
    b->table = flex_lines_of(b->x->dtype);
    b->gamma = optional(call, 1);
    b->mean = optional(call, 3);
    b->var = optional(call, 4);
    b->axis = flex_axis_of(b->x, 1);
    b->scratch = flex_workspace(call);
}

/*
 * A channel's values as lines: planes where they are long, else one line of all images, which are
 * then `n * inner` apart. The order of the values is the same.
 */
typedef struct channel_lines {
    int64_t count;
    int64_t length;
    int64_t step;   /* between elements of a line */
    int64_t stride; /* between lines */
    int64_t start;
} channel_lines;

static channel_lines lines_of(const batch *b, int64_t channel)
{
    const flex_axis *a = &b->axis;
    channel_lines c = {a->outer, a->inner, 1, a->n * a->inner, channel * a->inner};
    if (a->inner == 1) {
        c.count = a->outer > 0 ? 1 : 0;
        c.length = a->outer;
        c.step = a->n;
        c.stride = 0;
    }
    return c;
}

static uint64_t batch_line_bytes(const batch *b)
{
    return flex_line_bytes(b->axis.inner == 1 ? b->axis.outer : b->axis.inner);
}

static int32_t prepare_batch(const burn_call *call, burn_prepared *out)
{
    batch b;
    make_batch(call, &b);
    uint64_t slot = BATCH_LINES * batch_line_bytes(&b);
    return flex_want_workspace(out, slot * flex_thread_count());
}

static double number(const burn_operand *x, int64_t i, double without)
{
    return x != NULL ? flex_load_f64(x->data, i, x->dtype) : without;
}

/* Mean and variance of a channel: of the batch when training, else as given. */
static void channel_statistics(const batch *b, int64_t channel, char *scratch, double *mean,
                               double *var)
{
    if (!b->attrs->training) {
        *mean = number(b->mean, channel, 0.0);
        *var = number(b->var, channel, 1.0);
        return;
    }
    channel_lines c = lines_of(b, channel);
    double count = (double)(c.count * c.length);
    double sum = 0;
    double squares = 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < c.count; i++) {
            const void *line = flex_line_get(b->table->dtype, b->x, c.start + i * c.stride, c.step,
                                             c.length, scratch);
            if (pass == 0) {
                sum += b->table->sum(line, c.length);
            } else {
                squares += b->table->sum_squares(line, sum / count, c.length);
            }
        }
    }
    *mean = sum / count;
    *var = squares / count;
}

static void batch_channel(void *ctx, int64_t channel, uint32_t slot)
{
    const batch *b = ctx;
    uint8_t dtype = b->table->dtype;
    uint64_t bytes = batch_line_bytes(b);
    char *scratch = b->scratch + slot * BATCH_LINES * bytes;
    const burn_operand *y = flex_out(b->call, 0);
    double mean = 0;
    double var = 0;
    channel_statistics(b, channel, scratch, &mean, &var);
    double by = number(b->gamma, channel, 1.0) / sqrt(var + b->attrs->eps);
    double beta = number(b->beta, channel, 0.0);
    channel_lines c = lines_of(b, channel);
    for (int64_t i = 0; i < c.count; i++) {
        int64_t at = c.start + i * c.stride;
        const void *line = flex_line_get(dtype, b->x, at, c.step, c.length, scratch);
        void *out = flex_line_open(dtype, y, at, c.step, scratch + bytes);
        b->table->affine(out, line, mean, by, beta, c.length);
        flex_line_put(dtype, y, at, c.step, c.length, out);
    }
    const burn_operand *mean_out = flex_out(b->call, 1);
    const burn_operand *var_out = flex_out(b->call, 2);
    if (!flex_absent(mean_out)) {
        flex_store_f64(mean_out->data, channel, mean_out->dtype, mean);
    }
    if (!flex_absent(var_out)) {
        flex_store_f64(var_out->data, channel, var_out->dtype, var);
    }
}

static void batch_grad_channel(void *ctx, int64_t channel, uint32_t slot)
{
    const batch *b = ctx;
    uint8_t dtype = b->table->dtype;
    uint64_t bytes = batch_line_bytes(b);
    char *scratch = b->scratch + slot * BATCH_LINES * bytes;
    const burn_operand *gx = flex_out(b->call, 0);
    double mean = 0;
    double var = 0;
    channel_statistics(b, channel, scratch, &mean, &var);
    double inv = 1.0 / sqrt(var + b->attrs->eps);
    channel_lines c = lines_of(b, channel);
    double total[2] = {0, 0};
    for (int64_t i = 0; i < c.count; i++) {
        int64_t at = c.start + i * c.stride;
        const void *x = flex_line_get(dtype, b->x, at, c.step, c.length, scratch);
        const void *g = flex_line_get(dtype, b->g, at, c.step, c.length, scratch + bytes);
        double sums[2];
        b->table->norm_sums(sums, x, g, NULL, mean, inv, c.length);
        total[0] += sums[0];
        total[1] += sums[1];
    }
    double count = (double)(c.count * c.length);
    double centre[2] = {0, 0};
    if (b->attrs->training) {
        centre[0] = total[0] / count;
        centre[1] = total[1] / count;
    }
    double by = number(b->gamma, channel, 1.0) * inv;
    for (int64_t i = 0; i < c.count; i++) {
        int64_t at = c.start + i * c.stride;
        const void *x = flex_line_get(dtype, b->x, at, c.step, c.length, scratch);
        const void *g = flex_line_get(dtype, b->g, at, c.step, c.length, scratch + bytes);
        void *out = flex_line_open(dtype, gx, at, c.step, scratch + 2 * bytes);
        if (b->attrs->training) {
            b->table->norm_grad(out, x, g, NULL, mean, inv, by, centre, c.length);
        } else { /* x has no part in it, not even 0 times an infinity */
            b->table->scale(out, g, by, c.length);
        }
        flex_line_put(dtype, gx, at, c.step, c.length, out);
    }
    for (uint32_t i = 1; i < b->call->n_out; i++) {
        const burn_operand *out = flex_out(b->call, i);
        if (!flex_absent(out)) {
            flex_store_f64(out->data, channel, out->dtype, total[2 - i]);
        }
    }
}

static int32_t run_channels(const burn_call *call, batch *b, flex_item_fn fn)
{
    if (b->scratch == NULL && flex_numel(b->x) > 0) {
        return no_workspace(call, "batch_norm");
    }
    uint32_t slots = flex_numel(b->x) < FLEX_GRAIN ? 1 : flex_slots(b->axis.n);
    flex_share(b->axis.n, slots, fn, b);
    return BURN_OK;
}

static int32_t launch_batch(const burn_call *call)
{
    batch b;
    make_batch(call, &b);
    b.beta = optional(call, 2);
    return run_channels(call, &b, batch_channel);
}

static int32_t launch_batch_grad(const burn_call *call)
{
    batch b;
    make_batch(call, &b);
    b.g = flex_in(call, 2);
    return run_channels(call, &b, batch_grad_channel);
}

#define DENSE BURN_LAYOUT_CONTIGUOUS
#define FIRST FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0)
#define LIKE_X FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0)
#define MAYBE FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, FLEX_OPT)
static const burn_slot layer_slots_table[] = {FIRST, MAYBE, MAYBE, LIKE_X};
static const burn_slot layer_grad_slots[] = {FIRST, MAYBE, LIKE_X, LIKE_X, MAYBE, MAYBE};
static const burn_slot batch_slots[] = {FIRST, MAYBE, MAYBE, MAYBE, MAYBE, LIKE_X, MAYBE, MAYBE};
static const burn_slot batch_grad_slots[] = {FIRST, MAYBE, LIKE_X, MAYBE,
                                             MAYBE, LIKE_X, MAYBE, MAYBE};

/* clang-format off */
const burn_row flex_rows_norm[] = {
    FLEX_ROW_PREPARED(BURN_OP_LAYER_NORM, layer_slots_table, BURN_ROW_LINES, "flex.layer_norm",
                      prepare_layer, launch_layer),
    FLEX_ROW_PREPARED(BURN_OP_LAYER_NORM_GRAD, layer_grad_slots, 0, "flex.layer_norm_grad",
                      prepare_layer_grad, launch_layer_grad),
    FLEX_ROW_PREPARED(BURN_OP_BATCH_NORM, batch_slots, 0, "flex.batch_norm",
                      prepare_batch, launch_batch),
    FLEX_ROW_PREPARED(BURN_OP_BATCH_NORM_GRAD, batch_grad_slots, 0, "flex.batch_norm_grad",
                      prepare_batch, launch_batch_grad),
};
/* clang-format on */
const uint32_t flex_rows_norm_count = FLEX_COUNT(flex_rows_norm);
