/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * chains.c - chains of calls that come again: what is recognised, deferred, planned and fused.
 *
 * A chain is drawn first, then applied some times over: to the same value, or to one of another
 * batch size. Its links are pointwise calls of many dtypes, with scalars, rows and earlier values
 * broadcast, reductions whose results go back in, products and convolutions, values handed over,
 * casts, reads of variables and updates, random numbers, integer divisions that fail by what the
 * data are. Scopes around them end early. To add a sort of link: a row of `makers`.
 */
#include "generate.h"

enum { MAX_LINKS = 9 };

typedef struct link {
    uint8_t kind;
    uint8_t moves; /* the operand is handed over where that is possible */
    uint8_t dtype;
    uint8_t pick;
} link;

typedef struct place {
    maker *m;
    uint32_t t;
    int32_t first; /* the value that the chain began with */
    const link *how;
} place;

static const burn_meta *meta_of(const place *at, int32_t id)
{
    return &maker_at(at->m, id)->host.meta;
}

/* Hands operand 0 of the call made last over, when nobody needs it any more. */
static void hand_over(const place *at, int32_t x)
{
    program *p = at->m->p;
    step *s = &p->steps[p->n_steps - 1];
    value *v = maker_at(at->m, x);
    int free = x != at->first && v->alive && v->known && v->thread == at->t;
    for (uint32_t i = 1; i < s->n_in; i++) {
        free &= s->in[i] != x;
    }
    if (at->how->moves && free && s->kind == STEP_OP && s->in[0] == x && s->moved == 0) {
        s->moved = 1;
        v->alive = 0;
    }
}

static int32_t call(const place *at, uint64_t op, int32_t x, int32_t y, uint32_t n)
{
    int32_t in[2] = {x, y};
    int32_t out = maker_op(at->m, at->t, op, NULL, 0, in, n);
    if (out != NO_VALUE) {
        hand_over(at, x);
    }
    return out;
}

static int32_t cast(const place *at, int32_t x, uint8_t dtype)
{
    burn_attrs_cast a;
    burn_attrs_init(&a, sizeof(a));
    a.dtype = dtype;
    return maker_op(at->m, at->t, BURN_OP_CAST, &a, sizeof(a), &x, 1);
}

static uint64_t pick_binary(const place *at)
{
    static const uint64_t ops[] = {BURN_OP_ADD, BURN_OP_MUL,     BURN_OP_SUB,
                                   BURN_OP_ADD, BURN_OP_MAXIMUM, BURN_OP_MINIMUM};
    return ops[at->how->pick % COUNT_OF(ops)];
}

/* The value the chain began with, as x's dtype; x itself where that one is gone. */
static int32_t first_as(const place *at, int32_t x)
{
    if (!maker_may_use(at->m, at->first, at->t)) {
        return x;
    }
    uint8_t dtype = meta_of(at, x)->dtype;
    int same = meta_of(at, at->first)->dtype == dtype || !maker_at(at->m, x)->known;
    return same ? at->first : cast(at, at->first, dtype);
}

/* ---- links ----------------------------------------------------------------------------------- */

static int32_t unary(const place *at, int32_t x)
{
    static const uint64_t ops[] = {BURN_OP_TANH, BURN_OP_NEG, BURN_OP_ABS,  BURN_OP_RELU,
                                   BURN_OP_SIN,  BURN_OP_NEG, BURN_OP_SILU, BURN_OP_SIGMOID};
    return call(at, ops[at->how->pick % COUNT_OF(ops)], x, NO_VALUE, 1);
}

static int32_t with_scalar(const place *at, int32_t x)
{
    if (!maker_at(at->m, x)->known) {
        return x;
    }
    return call(at, pick_binary(at), x, maker_scalar(at->m, at->t, meta_of(at, x)->dtype), 2);
}

static int32_t with_first(const place *at, int32_t x)
{
    int32_t y = first_as(at, x);
    return y != NO_VALUE ? call(at, pick_binary(at), x, y, 2) : x;
}

static int32_t with_itself(const place *at, int32_t x)
{
    return call(at, pick_binary(at), x, x, 2);
}

static int32_t recast(const place *at, int32_t x)
{
    return cast(at, x, at->how->dtype);
}

/* What each row gives goes back into its elements, as in a softmax. */
static int32_t with_row(const place *at, int32_t x)
{
    static const uint64_t ops[] = {BURN_OP_SUM, BURN_OP_MAX, BURN_OP_MEAN, BURN_OP_MIN};
    const burn_meta *meta = meta_of(at, x);
    burn_attrs_axes a;
    burn_attrs_init(&a, sizeof(a));
    if (meta->rank == 0) {
        return x;
    }
    a.n_axes = 1;
    a.axes[0] = meta->rank - 1;
    a.keepdims = 1;
    int32_t row = maker_op(at->m, at->t, ops[at->how->pick % COUNT_OF(ops)], &a, sizeof(a), &x, 1);
    if (row == NO_VALUE || !maker_may_use(at->m, x, at->t)) {
        return row;
    }
    return call(at, pick_binary(at), x, row, 2);
}

/* What each column gives: beside the chain, as a bias's gradient, or back into its elements. */
static int32_t with_columns(const place *at, int32_t x)
{
    static const uint64_t ops[] = {BURN_OP_SUM, BURN_OP_SUM, BURN_OP_MAX, BURN_OP_MEAN,
                                   BURN_OP_MIN, BURN_OP_ANY, BURN_OP_SUM};
    const burn_meta *meta = meta_of(at, x);
    burn_attrs_axes a;
    burn_attrs_init(&a, sizeof(a));
    if (!maker_at(at->m, x)->known || meta->rank < 2) {
        return x;
    }
    a.n_axes = at->how->pick % 3 == 0 ? 1 : meta->rank - 1;
    for (uint32_t k = 0; k < a.n_axes; k++) {
        a.axes[k] = k;
    }
    a.keepdims = at->how->pick % 2;
    int32_t column = maker_op(at->m, at->t, ops[at->how->pick % COUNT_OF(ops)], &a, sizeof(a), &x,
                              1);
    if (column == NO_VALUE || !maker_may_use(at->m, x, at->t)) {
        return column;
    }
    int fits = maker_at(at->m, column)->known &&
               meta_of(at, column)->dtype == meta_of(at, x)->dtype;
    return fits && at->how->pick % 5 == 0 ? call(at, pick_binary(at), x, column, 2) : x;
}

/* A norm with or without its scale and shift. */
static int32_t normalised(const place *at, int32_t x, const burn_meta *meta)
{
    const int64_t *last = &meta->dims[meta->rank - 1];
    burn_attrs_norm a;
    burn_attrs_init(&a, sizeof(a));
    a.eps = 1e-3;
    a.n_axes = 1;
    int32_t in[3] = {x, NO_VALUE, NO_VALUE};
    for (uint32_t k = 0; k < 2; k++) {
        if ((at->how->pick >> k & 1) != 0) {
            in[1 + k] = maker_plain(at->m, at->t, meta->dtype, 1, last);
        }
    }
    return maker_op(at->m, at->t, BURN_OP_LAYER_NORM, &a, sizeof(a), in, 3);
}

/* Ops that go over lines: mostly over the last axis, where they join groups. */
static int32_t over_lines(const place *at, int32_t x)
{
    static const uint64_t ops[] = {BURN_OP_SOFTMAX, BURN_OP_LOG_SOFTMAX, BURN_OP_SOFTMAX_GRAD};
    const burn_meta meta = *meta_of(at, x);
    burn_attrs_axis a;
    if (!maker_at(at->m, x)->known || meta.rank == 0 || !conf_is_float(meta.dtype)) {
        return x;
    }
    uint32_t kind = at->how->pick % 4;
    if (kind == COUNT_OF(ops)) {
        return normalised(at, x, &meta);
    }
    burn_attrs_init(&a, sizeof(a));
    a.axis = at->how->pick % 7 == 0 ? 0 : meta.rank - 1;
    int32_t in[2] = {x, x};
    return maker_op(at->m, at->t, ops[kind], &a, sizeof(a), in, kind == 2 ? 2 : 1);
}

/* An operand that is dense along another axis than the last. */
static int32_t with_turned(const place *at, int32_t x)
{
    const burn_meta meta = *meta_of(at, x);
    burn_attrs_permute a;
    int64_t dims[BURN_MAX_RANK] = {0};
    if (!maker_at(at->m, x)->known || meta.rank < 2 || meta.dtype == BURN_BOOL) {
        return x;
    }
    burn_attrs_init(&a, sizeof(a));
    a.n_axes = meta.rank;
    for (uint32_t k = 0; k < meta.rank; k++) {
        uint32_t from = (k + 1 + at->how->pick % (meta.rank - 1)) % meta.rank;
        a.perm[k] = from;
        dims[from] = meta.dims[k];
    }
    int32_t y = maker_plain(at->m, at->t, meta.dtype, meta.rank, dims);
    y = maker_op(at->m, at->t, BURN_OP_PERMUTE, &a, sizeof(a), &y, 1);
    if (y == NO_VALUE || !maker_may_use(at->m, x, at->t)) {
        return x;
    }
    return call(at, pick_binary(at), x, y, 2);
}

/* One column or one row of the first value, broadcast. */
static int32_t with_part(const place *at, int32_t x)
{
    int32_t y = first_as(at, x);
    if (y == NO_VALUE || y == x || !maker_at(at->m, y)->known || meta_of(at, y)->rank == 0) {
        return x;
    }
    burn_attrs_slice a;
    burn_attrs_init(&a, sizeof(a));
    a.axis = at->how->pick % 2 ? meta_of(at, y)->rank - 1 : 0;
    a.step = 1;
    a.size = 1;
    int32_t zero = maker_scalar(at->m, at->t, BURN_I64);
    value *v = maker_at(at->m, zero);
    conf_set(&v->host, 0, 0.0);
    conf_tell_number(&v->host);
    int32_t in[2] = {y, zero};
    int32_t part = maker_op(at->m, at->t, BURN_OP_SLICE, &a, sizeof(a), in, 2);
    if (part == NO_VALUE || !maker_may_use(at->m, x, at->t)) {
        return part;
    }
    return call(at, pick_binary(at), x, part, 2);
}

static int32_t choose(const place *at, int32_t x)
{
    int32_t y = first_as(at, x);
    if (y == NO_VALUE || !maker_may_use(at->m, x, at->t)) {
        return x;
    }
    int32_t two[2] = {y, x};
    int32_t less = maker_op(at->m, at->t, BURN_OP_LESS, NULL, 0, two, 2);
    if (less == NO_VALUE || !maker_may_use(at->m, x, at->t) || !maker_may_use(at->m, y, at->t)) {
        return less;
    }
    int32_t in[3] = {less, x, y};
    return maker_op(at->m, at->t, BURN_OP_WHERE, NULL, 0, in, 3);
}

/* A scalar by value that ops take as a seed, a counter or a chance. */
static int32_t number(const place *at, uint8_t dtype, double x)
{
    int32_t id = maker_scalar(at->m, at->t, dtype);
    value *v = maker_at(at->m, id);
    conf_set(&v->host, 0, x);
    conf_tell_number(&v->host);
    return id;
}

/* Drops some, or adds numbers that are drawn. */
static int32_t draw_numbers(const place *at, int32_t x)
{
    const burn_meta *meta = meta_of(at, x);
    burn_attrs_shape a;
    if (!maker_at(at->m, x)->known || burn_dtype_class(meta->dtype) != BURN_CLASS_FLOAT) {
        return x;
    }
    int32_t seed = number(at, BURN_U64, at->how->pick);
    int32_t counter = number(at, BURN_U64, at->how->pick % 7);
    if (at->how->pick % 2) {
        int32_t in[4] = {x, number(at, BURN_F64, 0.25), seed, counter};
        return maker_op(at->m, at->t, BURN_OP_DROPOUT, NULL, 0, in, 4);
    }
    burn_attrs_init(&a, sizeof(a));
    a.dtype = meta->dtype;
    a.n_dims = meta->rank;
    memcpy(a.dims, meta->dims, meta->rank * sizeof(a.dims[0]));
    int32_t in[2] = {seed, counter};
    int32_t u = maker_op(at->m, at->t, BURN_OP_RANDOM_UNIFORM, &a, sizeof(a), in, 2);
    if (u == NO_VALUE || !maker_may_use(at->m, x, at->t)) {
        return x;
    }
    return call(at, pick_binary(at), x, u, 2);
}

/* Fails where a small number has become 0. */
static int32_t divide(const place *at, int32_t x)
{
    int32_t y = cast(at, x, at->how->pick % 2 ? BURN_I32 : BURN_I64);
    if (y == NO_VALUE || !maker_at(at->m, y)->known) {
        return y;
    }
    int32_t by = at->how->pick % 3 ? maker_scalar(at->m, at->t, meta_of(at, y)->dtype) : y;
    return call(at, at->how->pick % 5 ? BURN_OP_DIV : BURN_OP_REMAINDER, y, by, 2);
}

/* A product that leaves the shape as it is; every third time with a transposed matrix. */
static int32_t product(const place *at, int32_t x)
{
    if (!maker_at(at->m, x)->known || meta_of(at, x)->rank == 0) {
        return x;
    }
    burn_meta meta = *meta_of(at, x);
    int64_t dims[2] = {meta.dims[meta.rank - 1], meta.dims[meta.rank - 1]};
    int is_float = conf_is_float(meta.dtype);
    if (meta.dtype == BURN_BOOL || dims[0] > 40 || (meta.rank < 2 && !is_float)) {
        return x;
    }
    int32_t in[3] = {x, maker_plain(at->m, at->t, meta.dtype, 2, dims), NO_VALUE};
    if (at->how->pick % 3 == 0) {
        burn_attrs_permute a;
        burn_attrs_init(&a, sizeof(a));
        a.n_axes = 2;
        a.perm[0] = 1;
        in[1] = maker_op(at->m, at->t, BURN_OP_PERMUTE, &a, sizeof(a), &in[1], 1);
    }
    if (meta.rank >= 2 && (at->how->pick % 2 == 0 || !is_float)) {
        return maker_op(at->m, at->t, BURN_OP_MATMUL, NULL, 0, in, 2);
    }
    in[2] = at->how->pick % 5 != 0 ? maker_plain(at->m, at->t, meta.dtype, 1, dims) : NO_VALUE;
    return maker_op(at->m, at->t, BURN_OP_LINEAR, NULL, 0, in, 3);
}

static int32_t reshaped(const place *at, int32_t x, uint32_t rank, const int64_t *dims)
{
    burn_attrs_shape a;
    burn_attrs_init(&a, sizeof(a));
    a.n_dims = rank;
    memcpy(a.dims, dims, rank * sizeof(dims[0]));
    return maker_op(at->m, at->t, BURN_OP_RESHAPE, &a, sizeof(a), &x, 1);
}

/* All of it as one image, which keeps its size. */
static int32_t convolve(const place *at, int32_t x)
{
    burn_meta meta = *meta_of(at, x);
    if (!maker_at(at->m, x)->known || meta.rank == 0 || !conf_is_float(meta.dtype) ||
        conf_count(&meta) == 0) {
        return x;
    }
    int64_t last = meta.dims[meta.rank - 1];
    const int64_t image[4] = {1, 1, conf_count(&meta) / last, last};
    const int64_t kernel[4] = {1, 1, 3, 3};
    burn_attrs_conv a;
    burn_attrs_init(&a, sizeof(a));
    for (uint32_t k = 0; k < 2; k++) {
        a.stride[k] = 1;
        a.padding[k] = 1;
        a.dilation[k] = 1;
    }
    a.groups = 1;
    int32_t in[3] = {reshaped(at, x, 4, image),
                     maker_plain(at->m, at->t, meta.dtype, 4, kernel), NO_VALUE};
    int32_t y = maker_op(at->m, at->t, BURN_OP_CONV2D, &a, sizeof(a), in, 3);
    return y != NO_VALUE ? reshaped(at, y, meta.rank, meta.dims) : y;
}

static int32_t variable(const place *at, int32_t x)
{
    if (at->how->pick % 2) {
        maker_get_var(at->m, at->t);
    } else {
        /* Several in a row may be one launch. */
        for (uint32_t k = 0; k < 1u + at->how->pick % 4u; k++) {
            maker_set_var(at->m, at->t);
        }
    }
    return x;
}

static int32_t keep(const place *at, int32_t x)
{
    maker_keep(at->m, at->t, x);
    return x;
}

typedef struct sort {
    uint32_t weight;
    int32_t (*make)(const place *at, int32_t x);
} sort;

static const sort makers[] = {
    {20, unary},     {14, with_scalar}, {14, with_first}, {8, with_itself}, {12, recast},
    {14, with_row},  {8, with_part},    {8, choose},      {3, divide},      {6, variable},
    {3, keep},       {9, draw_numbers}, {9, product},     {3, convolve},
    {9, with_turned}, {9, with_columns}, {14, over_lines},
};

/* ---- the chain ------------------------------------------------------------------------------- */

static uint32_t draw_chain(maker *m, link *links)
{
    static const uint8_t dtypes[] = {BURN_F32, BURN_F32, BURN_F64,  BURN_F16,
                                     BURN_I32, BURN_I64, BURN_BF16, BURN_U8};
    uint32_t total = 0;
    for (uint32_t k = 0; k < COUNT_OF(makers); k++) {
        total += makers[k].weight;
    }
    uint32_t n = 2 + draw(m, MAX_LINKS - 1);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t left = draw(m, total);
        links[k].kind = 0;
        while (left >= makers[links[k].kind].weight) {
            left -= makers[links[k].kind++].weight;
        }
        links[k].moves = (uint8_t)chance(m, 40);
        links[k].dtype = dtypes[draw(m, COUNT_OF(dtypes))];
        links[k].pick = (uint8_t)draw(m, 120);
    }
    return n;
}

static int32_t apply(maker *m, uint32_t t, const link *links, uint32_t n, int32_t first)
{
    int32_t x = first;
    for (uint32_t k = 0; k < n; k++) {
        place at = {m, t, first, &links[k]};
        int32_t next = makers[links[k].kind].make(&at, x);
        if (next == NO_VALUE || !maker_may_use(m, next, t)) {
            break;
        }
        x = next;
    }
    return x;
}

static int has_room(const maker *m)
{
    return m->p->n_steps < MAX_STEPS - 160 && m->p->n_values < MAX_VALUES - 110;
}

/* One that is larger than a tile of a pass. */
static int32_t larger(maker *m, uint32_t t)
{
    const int64_t dims[3] = {1 + draw(m, 3), 3 + draw(m, 70), 2 + draw(m, 80)};
    uint32_t rank = 2 + draw(m, 2);
    return maker_plain(m, t, BURN_F32, rank, dims + 3 - rank);
}

/* The same thing with another number of rows. */
static int32_t other_batch(maker *m, uint32_t t, int32_t x)
{
    burn_meta meta = maker_at(m, x)->host.meta;
    if (meta.rank == 0 || !maker_at(m, x)->known) {
        return x;
    }
    meta.dims[0] += 1 + draw(m, 3);
    return maker_plain(m, t, meta.dtype, meta.rank, meta.dims);
}

void maker_chains(maker *m, uint32_t t)
{
    link links[MAX_LINKS];
    uint32_t n = draw_chain(m, links);
    uint32_t rounds = 1 + draw(m, 4);
    int32_t first = maker_find(m, t, chance(m, 60) ? BURN_F32 : BURN_DTYPE_NONE);
    first = chance(m, 20) ? larger(m, t) : first;
    if (m->big != NO_VALUE && maker_may_use(m, m->big, t) && chance(m, 70)) {
        first = m->big;
    }
    int32_t leaf = chance(m, 40) ? maker_find_leaf(m, t) : NO_VALUE;
    first = leaf != NO_VALUE ? leaf : first;
    if (first == NO_VALUE) {
        return;
    }
    int scoped = chance(m, 50);
    for (uint32_t k = 0; k < rounds && has_room(m) && maker_may_use(m, first, t); k++) {
        uint32_t depth = m->depth[t];
        if (scoped) {
            maker_begin(m, t);
        }
        int32_t last = apply(m, t, links, n, first);
        if (chance(m, 15) && maker_may_use(m, last, t)) {
            maker_keep(m, t, last);
        }
        if (chance(m, 10) && maker_may_use(m, last, t)) {
            maker_read(m, t, last);
        }
        if (m->depth[t] > depth) {
            maker_end(m, t);
        }
        if (chance(m, 25) && maker_may_use(m, first, t)) {
            first = other_batch(m, t, first);
        }
    }
}
