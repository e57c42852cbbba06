/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_step.c - what the steps of a fused program do with a tile: maps, loads, stores, reductions.
 *
 * A map is one call of a vector loop. Values of rows are a loop's scalar where a row is long, and
 * are repeated for a few hundred positions at a time where rows are short. Owns no buffer but that.
 */
#include "fused_turn.h"

#include "stream.h"
#include "tiles.h"

#include <string.h>

/* Rows at least this long are looped over one by one; elements of a group of shorter ones. */
enum { LONG_ROW = 32, GROUP = 512 };

int flex_fused_map(const flex_fused_step *s, flex_fused_tile *t)
{
    const void *in[3] = {t->ptr[s->in[0]], t->ptr[s->in[1]], t->ptr[s->in[2]]};
    uint64_t n = s->space == BURN_FUSED_FULL ? t->n : t->n_rows;
    return s->loop(s, t->ptr[s->out], in, n, s->mode) == n;
}

/* Where argument i has the elements of position `at` and row `row` of the tile. */
static const char *argument(const flex_fused_step *s, const flex_fused_tile *t, uint32_t i,
                            uint64_t at, uint64_t row)
{
    const flex_fused_value *v = &t->job->f->values[s->in[i]];
    uint64_t skip = (s->mode >> i & 1) != 0 ? 0 : (s->row_mask >> i & 1) != 0 ? row : at;
    return t->ptr[s->in[i]] + skip * v->size;
}

static int long_rows(const flex_fused_step *s, flex_fused_tile *t)
{
    const uint32_t size = t->job->f->values[s->out].size;
    for (uint64_t r = 0; r < t->n_rows; r++) {
        const void *in[3] = {NULL, NULL, NULL};
        uint64_t at = r * t->length;
        for (uint32_t i = 0; i < s->n_in; i++) {
            in[i] = argument(s, t, i, at, r);
        }
        if (s->loop(s, t->ptr[s->out] + at * size, in, t->length,
                    s->mode | (uint32_t)s->row_mask) != t->length) {
            return 0;
        }
    }
    return 1;
}

/* Rows first .. first + n - 1, with an element of a row's value per position. */
static int row_group(const flex_fused_step *s, flex_fused_tile *t, uint64_t first, uint64_t n)
{
    _Alignas(64) char wide[3][GROUP * 8];
    const void *in[3] = {NULL, NULL, NULL};
    uint64_t at = first * t->length;
    for (uint32_t i = 0; i < s->n_in; i++) {
        const uint32_t size = t->job->f->values[s->in[i]].size;
        const char *x = argument(s, t, i, at, first);
        in[i] = x;
        if ((s->row_mask >> i & 1) == 0) {
            continue;
        }
        for (uint64_t r = 0; r < n; r++) {
            flex_spread(wide[i] + r * t->length * size, x + r * size, size, t->length);
        }
        in[i] = wide[i];
    }
    const uint32_t size = t->job->f->values[s->out].size;
    uint64_t all = n * t->length;
    return s->loop(s, t->ptr[s->out] + at * size, in, all, s->mode) == all;
}

int flex_fused_map_rows(const flex_fused_step *s, flex_fused_tile *t)
{
    if (t->n_rows == 1) {
        const void *in[3] = {t->ptr[s->in[0]], t->ptr[s->in[1]], t->ptr[s->in[2]]};
        return s->loop(s, t->ptr[s->out], in, t->n, s->mode | (uint32_t)s->row_mask) == t->n;
    }
    if (t->length >= LONG_ROW) {
        return long_rows(s, t);
    }
    uint64_t group = GROUP / t->length;
    for (uint64_t r = 0; r < t->n_rows; r += group) {
        uint64_t n = t->n_rows - r < group ? t->n_rows - r : group;
        if (!row_group(s, t, r, n)) {
            return 0;
        }
    }
    return 1;
}

/* Numbers by their place: whichever tile it is in, position i has element i. */
int flex_fused_generate(const flex_fused_step *s, flex_fused_tile *t)
{
    flex_random g;
    flex_random_start(&g, s->fn.random, t->job->f->values[s->out].dtype, t->ptr[s->in[1]],
                      t->ptr[s->in[2]],
                      s->fn.random->chance != FLEX_RANDOM_NONE ? t->ptr[s->index] : NULL);
    flex_random_elements(&g, t->ptr[s->out], s->n_in > 0 ? t->ptr[s->in[0]] : NULL, t->at, t->n);
    return 1;
}

/* In place where the tile lies in one run of the operand. */
int flex_fused_load(const flex_fused_step *s, flex_fused_tile *t)
{
    const flex_fused *f = t->job->f;
    const burn_operand *x = t->job->operands[s->index];
    const flex_fused_value *v = &f->values[s->out];
    int full = s->space == BURN_FUSED_FULL;
    char *panel = full ? flex_fused_panel(t, s->index) : NULL;
    if (panel != NULL) {
        t->ptr[s->out] = panel;
        return 1;
    }
    int64_t first = full ? (int64_t)t->at : t->row;
    int64_t n = full ? (int64_t)t->n : (int64_t)t->n_rows;
    int64_t run = x->dims[x->rank - 1];
    char *data = x->data;
    if (full && x->strides[x->rank - 1] == 1 && first % run + n <= run) {
        int64_t offset = flex_offset_at(x->rank, x->dims, x->strides, first);
        t->ptr[s->out] = data + offset * (int64_t)v->size;
        return 1;
    }
    char *out = full ? t->full + v->slot * t->job->tile * f->slot_size : t->ptr[s->out];
    flex_gather(out, data, v->size, x->rank, x->dims, x->strides, first, n);
    t->ptr[s->out] = out;
    return 1;
}

int flex_fused_store(const flex_fused_step *s, flex_fused_tile *t)
{
    const flex_fused_job *job = t->job;
    const uint32_t operand = job->f->n_in + (uint32_t)s->out;
    const uint64_t size = job->f->size[operand];
    char *out = job->data[operand];
    const char *from = t->ptr[s->in[0]];
    if (s->space == BURN_FUSED_ROW) {
        memcpy(out + (uint64_t)t->row * size, from, t->n_rows * size);
        return 1;
    }
    out += t->at * size;
    if (out == from) {
        return 1; /* it was made there */
    }
    if (job->stream) {
        flex_stream(out, from, t->n * size);
    } else {
        memcpy(out, from, t->n * size);
    }
    return 1;
}

/* Folds a row as the single op does: in runs, parts of many runs. */
static void fold_row(const flex_fused_fold *f, flex_fold_fn fold, uint32_t kind, double shift,
                     const char *x, uint64_t n, uint32_t size, flex_acc *acc)
{
    flex_acc_start(acc, kind, shift);
    for (uint64_t at = 0; at < n; at += FLEX_REDUCE_PART) {
        flex_acc part;
        uint64_t end = n - at < FLEX_REDUCE_PART ? n : at + FLEX_REDUCE_PART;
        flex_acc_start(&part, kind, shift);
        for (uint64_t k = at; k < end; k += FLEX_REDUCE_RUN) {
            uint64_t run = end - k < FLEX_REDUCE_RUN ? end - k : FLEX_REDUCE_RUN;
            fold(&part, x + k * size, run);
        }
        flex_acc_merge(&f->how, kind, acc, &part);
    }
}

/* What reductions that look twice find first. */
static void first_look(const flex_fused_fold *f, const char *x, uint64_t n, uint32_t size,
                       const double *sum, flex_acc *acc)
{
    uint32_t kind = flex_reduce_first(&f->how);
    if (f->shares) {
        flex_acc_start(acc, kind, 0.0);
        acc->f = *sum;
        return;
    }
    fold_row(f, f->first, kind, 0.0, x, n, size, acc);
}

/* A whole row. `sum` is the tile's, of that row. */
static void reduce_row(const flex_fused_fold *f, const char *x, uint64_t n, uint32_t size,
                       double *sum, char *out)
{
    flex_acc acc;
    double shift = 0.0;
    if (f->first != NULL) {
        first_look(f, x, n, size, sum, &acc);
        if (!flex_acc_shift(&f->how, (int64_t)n, &acc, &shift)) {
            flex_acc_finish(&f->how, (int64_t)n, &acc, out);
            return;
        }
    }
    fold_row(f, f->fold, f->how.kind, shift, x, n, size, &acc);
    if (f->keeps) {
        *sum = acc.f;
    }
    flex_acc_finish(&f->how, (int64_t)n, &acc, out);
}

int flex_fused_reduce(const flex_fused_step *s, flex_fused_tile *t)
{
    const flex_fused *f = t->job->f;
    const flex_fused_fold *fold = &f->folds[s->index];
    const char *x = t->ptr[s->in[0]];
    if (t->accs != NULL) {
        fold->fold(&t->accs[s->index], x, t->n);
        return 1;
    }
    const uint32_t from = f->values[s->in[0]].size;
    const uint32_t size = f->values[s->out].size;
    for (uint64_t r = 0; r < t->n_rows; r++) {
        reduce_row(fold, x + r * t->length * from, t->length, from, &t->sums[r],
                   t->ptr[s->out] + r * size);
    }
    return 1;
}
