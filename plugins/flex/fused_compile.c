/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_compile.c - from a program's bytes to values and steps (fused.h).
 *
 * The core has checked the program (burn_fused_check). A draft takes one step of the program after
 * the other, adding loads, widenings and roundings where they are needed; fused_plan.c then decides
 * which passes need which step and which buffers they use. A draft lives in one allocation until
 * the end of flex_fused_compile. To add a kind of op: a function in `compilers`, by FLEX_MAP_*.
 */
#include "fused_draft.h"

#include "cast.h"
#include "fused_producer.h"
#include "pair_fold.h"
#include "pointwise.h"
#include "reduce_columns.h"
#include "tiles.h"

#include <string.h>

enum { NONE = BURN_FUSED_NONE };

static int is_half(uint8_t dtype)
{
    return dtype == BURN_F16 || dtype == BURN_BF16;
}

/* ---- loops ----------------------------------------------------------------------------------- */

static uint64_t call_unary(const flex_fused_step *step, void *out, const void *const *in,
                           uint64_t n, uint32_t mode)
{
    (void)mode;
    return step->fn.unary(out, in[0], n);
}

static uint64_t call_binary(const flex_fused_step *step, void *out, const void *const *in,
                            uint64_t n, uint32_t mode)
{
    return step->fn.binary(out, in[0], in[1], n, mode);
}

static uint64_t call_where(const flex_fused_step *step, void *out, const void *const *in,
                           uint64_t n, uint32_t mode)
{
    uint32_t where_mode = ((mode & 1u) != 0 ? FLEX_MODE_COND_SCALAR : 0u) | mode >> 1;
    step->fn.where(out, in[0], in[1], in[2], n, where_mode);
    return n;
}

static uint64_t call_convert(const flex_fused_step *step, void *out, const void *const *in,
                             uint64_t n, uint32_t mode)
{
    (void)mode;
    step->fn.convert(out, in[0], n);
    return n;
}

/* One value, of `index` bytes, for all elements. */
static uint64_t call_spread(const flex_fused_step *step, void *out, const void *const *in,
                            uint64_t n, uint32_t mode)
{
    if (mode != 0) {
        flex_spread(out, in[0], step->index, n);
    } else {
        memcpy(out, in[0], n * step->index);
    }
    return n;
}

/* ---- values and steps ------------------------------------------------------------------------ */

static int fail(draft *d, const char *what)
{
    d->failed = 1;
    (void)flex_fail(d->call->err, BURN_E_UNSUPPORTED, "fused: %s", what);
    return 0;
}

static uint16_t new_value(draft *d, uint8_t dtype, uint8_t space)
{
    if (d->n_values == FLEX_FUSED_VALUES) {
        (void)fail(d, "more values than buffers are made for");
        return 0;
    }
    flex_fused_value *v = &d->values[d->n_values];
    memset(v, 0, sizeof(*v));
    v->dtype = dtype;
    v->size = (uint8_t)flex_size(dtype);
    v->space = space;
    v->slot = FLEX_FUSED_NO_SLOT;
    d->wide[d->n_values] = NONE;
    d->full[d->n_values] = NONE;
    return d->n_values++;
}

static flex_fused_step *new_step(draft *d, uint16_t out)
{
    uint8_t space = d->values[out].space;
    flex_fused_step *s = &d->scrap;
    if (d->n_steps + d->n_ones < DRAFT_STEPS) {
        s = space == BURN_FUSED_ONE ? &d->ones[d->n_ones++] : &d->steps[d->n_steps++];
    } else {
        (void)fail(d, "more steps than there is room for");
    }
    memset(s, 0, sizeof(*s));
    s->exec = flex_fused_map;
    s->space = space;
    s->out = out;
    return s;
}

/* Says what the arguments of a map are, once they are all there. */
static void describe(const draft *d, flex_fused_step *s)
{
    for (uint32_t i = 0; i < s->n_in; i++) {
        uint8_t space = d->values[s->in[i]].space;
        if (space == BURN_FUSED_ONE && s->space != BURN_FUSED_ONE) {
            s->mode |= (uint8_t)(1u << i);
        } else if (space == BURN_FUSED_ROW && s->space == BURN_FUSED_FULL) {
            s->row_mask |= (uint8_t)(1u << i);
        }
    }
    if (s->row_mask != 0) {
        s->exec = flex_fused_map_rows;
    }
}

static uint16_t convert(draft *d, uint16_t x, uint8_t dtype, flex_convert_fn fn)
{
    uint16_t out = new_value(d, dtype, d->values[x].space);
    flex_fused_step *s = new_step(d, out);
    s->loop = call_convert;
    s->fn.convert = fn;
    s->in[0] = x;
    s->n_in = 1;
    return out;
}

/* A half as the f32 that loops take; all others as they are. */
static uint16_t widen(draft *d, uint16_t x)
{
    uint8_t dtype = d->values[x].dtype;
    if (!is_half(dtype)) {
        return x;
    }
    if (d->wide[x] == NONE) {
        d->wide[x] = convert(d, x, BURN_F32,
                             dtype == BURN_F16 ? flex_isa_kernels->half_to_float
                                               : flex_isa_kernels->bfloat_to_float);
    }
    return d->wide[x];
}

/* What a loop made, rounded to `dtype`. */
static uint16_t narrow(draft *d, uint16_t x, uint8_t dtype)
{
    if (!is_half(dtype)) {
        return x;
    }
    return convert(d, x, dtype,
                   dtype == BURN_F16 ? flex_isa_kernels->float_to_half
                                     : flex_isa_kernels->float_to_bfloat);
}

/* Repeats a smaller value so that it has one element per element of `space`. */
static uint16_t fit(draft *d, uint16_t x, uint8_t space)
{
    if (d->values[x].space == space) {
        return x;
    }
    if (space == BURN_FUSED_FULL && d->full[x] != NONE) {
        return d->full[x];
    }
    uint16_t out = new_value(d, d->values[x].dtype, space);
    flex_fused_step *s = new_step(d, out);
    s->loop = call_spread;
    s->in[0] = x;
    s->n_in = 1;
    s->index = d->values[x].size;
    describe(d, s);
    if (space == BURN_FUSED_FULL) {
        d->full[x] = out;
    }
    return out;
}

/* The value of an input, on its first use. */
static uint16_t input_value(draft *d, uint16_t i)
{
    const burn_operand *x = flex_in(d->call, i);
    uint8_t space = burn_fused_inputs(d->program)[i].space;
    if (x->kind == BURN_IMMEDIATE || x->layout == BURN_LAYOUT_SCALAR) {
        space = BURN_FUSED_ONE;
    }
    uint16_t v = new_value(d, x->dtype, space);
    if (space == BURN_FUSED_ONE || x->layout == BURN_LAYOUT_CONTIGUOUS) {
        d->values[v].in_place = 1;
        d->values[v].slot = i;
        return v;
    }
    flex_fused_step *s = new_step(d, v);
    s->exec = flex_fused_load;
    s->index = i;
    if (space == BURN_FUSED_FULL && d->cut == NONE) {
        d->cut = i;
    }
    return v;
}

static uint16_t value_of(draft *d, uint16_t v)
{
    if (d->reg[v] == NONE) {
        d->reg[v] = input_value(d, v);
    }
    return d->reg[v];
}

/* ---- maps ------------------------------------------------------------------------------------ */

typedef struct map_step {
    const burn_fused_step *step;
    const flex_map *map;
    const void *attrs;
} map_step;

static uint16_t arg(draft *d, const map_step *m, uint32_t i)
{
    return value_of(d, m->step->args[i]);
}

static int has_arg(const map_step *m, uint32_t i)
{
    return i < m->step->n_args && m->step->args[i] != NONE;
}

static uint32_t index_of(const map_step *m)
{
    const burn_attrs_gelu *a = m->attrs;
    return m->map->index + (m->map->by_form && a != NULL && a->tanh_form != 0 ? 1u : 0u);
}

/* What loops write for a result of that dtype. */
static uint8_t loop_dtype(uint8_t dtype)
{
    return is_half(dtype) ? (uint8_t)BURN_F32 : dtype;
}

static uint16_t no_kernel(draft *d, uint16_t x)
{
    char text[96] = "no CPU kernel of this op for ";
    strncat(text, flex_dtype_name(d->values[x].dtype), sizeof(text) - strlen(text) - 1);
    (void)fail(d, text);
    return x;
}

static uint16_t make_unary(draft *d, const map_step *m)
{
    uint16_t x = fit(d, widen(d, arg(d, m, 0)), m->step->space);
    flex_unary_fn fn = flex_pointwise[d->values[x].dtype]->unary[index_of(m)];
    if (fn == NULL) {
        return no_kernel(d, x);
    }
    uint16_t out = new_value(d, loop_dtype(m->step->dtype), m->step->space);
    flex_fused_step *s = new_step(d, out);
    s->loop = call_unary;
    s->fn.unary = fn;
    s->in[0] = x;
    s->n_in = 1;
    s->reuse = 1;
    return narrow(d, out, m->step->dtype);
}

/* One of a loop's arguments must have all elements. */
static uint16_t fit_one(draft *d, uint16_t x, uint16_t y, uint8_t space)
{
    return d->values[y].space == space ? x : fit(d, x, space);
}

static uint16_t binary(draft *d, flex_binary_fn fn, uint16_t x, uint16_t y, uint8_t dtype,
                       uint8_t space)
{
    x = fit_one(d, x, y, space);
    if (fn == NULL) {
        return no_kernel(d, x);
    }
    uint16_t out = new_value(d, loop_dtype(dtype), space);
    flex_fused_step *s = new_step(d, out);
    s->loop = call_binary;
    s->fn.binary = fn;
    s->in[0] = x;
    s->in[1] = y;
    s->n_in = 2;
    s->reuse = 1;
    describe(d, s);
    return out;
}

static uint16_t make_binary(draft *d, const map_step *m)
{
    uint16_t x = widen(d, arg(d, m, 0));
    uint16_t y = widen(d, arg(d, m, 1));
    uint8_t dtype = d->values[x].dtype;
    d->stops |= m->map->stops && dtype < BURN_F16;
    uint16_t z = binary(d, flex_pointwise[dtype]->binary[index_of(m)], x, y, m->step->dtype,
                        m->step->space);
    return narrow(d, z, m->step->dtype);
}

/* Halves keep their bits here. */
static uint16_t make_where(draft *d, const map_step *m)
{
    uint16_t c = arg(d, m, 0);
    uint16_t x = arg(d, m, 1);
    uint16_t y = arg(d, m, 2);
    uint8_t space = m->step->space;
    if (d->values[x].space != space && d->values[y].space != space) {
        c = fit(d, c, space);
    }
    uint16_t out = new_value(d, m->step->dtype, space);
    uint8_t size = d->values[out].size;
    flex_fused_step *s = new_step(d, out);
    s->loop = call_where;
    s->fn.where = flex_where_by_size[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
    s->in[0] = c;
    s->in[1] = x;
    s->in[2] = y;
    s->n_in = 3;
    s->reuse = 1;
    describe(d, s);
    return out;
}

/* The lower bound first, as the single op does. */
static uint16_t make_clamp(draft *d, const map_step *m)
{
    uint8_t dtype = m->step->dtype;
    uint16_t x = fit(d, widen(d, arg(d, m, 0)), m->step->space);
    const flex_pointwise_table *table = flex_pointwise[dtype];
    if (has_arg(m, 1)) {
        x = binary(d, table->binary[FLEX_B_MAXIMUM], x, widen(d, arg(d, m, 1)), dtype,
                   m->step->space);
    }
    if (has_arg(m, 2)) {
        x = binary(d, table->binary[FLEX_B_MINIMUM], x, widen(d, arg(d, m, 2)), dtype,
                   m->step->space);
    }
    return narrow(d, x, dtype);
}

static uint16_t make_copy(draft *d, const map_step *m)
{
    return fit(d, arg(d, m, 0), m->step->space);
}

static uint16_t make_cast(draft *d, const map_step *m)
{
    uint8_t to = m->step->dtype;
    uint16_t x = arg(d, m, 0);
    uint8_t from = d->values[x].dtype;
    if (from == to && from != BURN_BOOL) {
        return fit(d, x, m->step->space);
    }
    x = fit(d, widen(d, x), m->step->space);
    return narrow(d, convert(d, x, loop_dtype(to), flex_cast_loop(from, to)), to);
}

static uint16_t (*const compilers[FLEX_N_MAP_KINDS])(draft *d, const map_step *m) = {
    [FLEX_MAP_UNARY] = make_unary, [FLEX_MAP_BINARY] = make_binary, [FLEX_MAP_WHERE] = make_where,
    [FLEX_MAP_CLAMP] = make_clamp, [FLEX_MAP_COPY] = make_copy,     [FLEX_MAP_CAST] = make_cast,
};

/* ---- reductions ------------------------------------------------------------------------------ */

typedef struct reduce_kind {
    uint8_t known;
    uint8_t kind;
    uint8_t result;
} reduce_kind;

#define REDUCE_KIND(NAME, name, kind, result, slots) [BURN_OP_##NAME] = {1, kind, result},
static const reduce_kind reduce_kinds[] = {FLEX_FOREACH_REDUCTION(REDUCE_KIND)};
#undef REDUCE_KIND

/*
 * Sums of floats depend on how a row is cut, and the single op cuts operands that are not dense in
 * other ways. What a step made is dense there, and here.
 */
static int cuts_alike(const draft *d, const burn_fused_step *step)
{
    uint16_t v = step->args[0];
    return v >= d->program->n_in || flex_in(d->call, v)->dtype < BURN_F16 ||
           flex_in(d->call, v)->layout == BURN_LAYOUT_CONTIGUOUS;
}

/* A variance begins with the mean: where that was asked for before, its sums are not made again.
 * One mean of a program can keep them. */
static void share_sums(draft *d, flex_fused_fold *f)
{
    flex_fused_fold *mean = NULL;
    for (uint16_t k = 0; k < d->n_folds && f->how.result == FLEX_RESULT_VAR; k++) {
        flex_fused_fold *other = &d->folds[k];
        if (other->keeps) {
            mean = other;
            break;
        }
        mean = other->how.result == FLEX_RESULT_MEAN && other->x == f->x ? other : mean;
    }
    if (mean != NULL && mean->x == f->x) {
        mean->keeps = 1;
        f->shares = 1;
    }
}

/* Over the rows. The single op goes by columns where elements are f32. */
static uint16_t make_column(draft *d, const burn_fused_step *step, const reduce_kind *kind)
{
    uint16_t v = step->args[0];
    int is_dense = v >= d->program->n_in || flex_in(d->call, v)->layout == BURN_LAYOUT_CONTIGUOUS;
    if (!is_dense || d->product != NULL || d->n_columns == FLEX_FUSED_COLUMNS ||
        flex_column_lines(kind->kind, 1) == 0 || step->dtype != BURN_F32) {
        (void)fail(d, "a sum over first dims that it has no columns for");
        return 0;
    }
    uint16_t x = value_of(d, v);
    uint16_t out = new_value(d, step->dtype, BURN_FUSED_COLUMN);
    flex_fused_step *s = new_step(d, out);
    s->exec = flex_fused_reduce_columns;
    s->space = BURN_FUSED_FULL;
    s->in[0] = x;
    s->n_in = 1;
    s->index = d->n_columns;
    d->columns[d->n_columns++] = (flex_fused_column){out, 0, kind->kind, {0}};
    return out;
}

static uint16_t make_reduce(draft *d, const burn_fused_step *step, const reduce_kind *kind,
                            const void *attrs)
{
    if (d->program->row_input == NONE || !cuts_alike(d, step) ||
        d->n_folds == FLEX_FUSED_FOLDS) {
        (void)fail(d, "a reduction of an operand that is not dense, or too many");
        return 0;
    }
    const burn_attrs_axes *a = attrs;
    uint16_t stored = value_of(d, step->args[0]);
    uint16_t x = fit(d, widen(d, stored), BURN_FUSED_FULL);
    uint16_t out = new_value(d, step->dtype, BURN_FUSED_ROW);
    flex_fused_fold *f = &d->folds[d->n_folds];
    memset(f, 0, sizeof(*f));
    f->how.dtype = d->values[stored].dtype;
    f->how.out_dtype = step->dtype;
    f->how.kind = kind->kind;
    f->how.result = kind->result;
    f->how.correction = a != NULL && kind->result == FLEX_RESULT_VAR ? (double)a->correction : 0.0;
    f->fold = flex_fold_of(f->how.dtype, kind->kind);
    uint32_t first = flex_reduce_first(&f->how);
    f->first = first != FLEX_N_REDUCE ? flex_fold_of(f->how.dtype, first) : NULL;
    f->out = out;
    f->x = x;
    share_sums(d, f);
    if (f->fold == NULL) {
        return no_kernel(d, stored);
    }
    d->looks_twice |= f->first != NULL;
    flex_fused_step *s = new_step(d, out);
    s->exec = flex_fused_reduce;
    s->space = BURN_FUSED_FULL;
    s->in[0] = x;
    s->n_in = 1;
    s->index = d->n_folds++;
    return out;
}

/* A fold of what x and y make, to the bits of the op's own row (loss.c), which does the same. */
static uint16_t make_pair_fold(draft *d, const burn_fused_step *step, const flex_pair_fold *pair,
                               const burn_attrs_loss *a)
{
    uint16_t x = fit(d, widen(d, value_of(d, step->args[0])), BURN_FUSED_FULL);
    uint16_t y = fit(d, widen(d, value_of(d, step->args[1])), BURN_FUSED_FULL);
    uint8_t dtype = d->values[x].dtype;
    uint16_t z = binary(d, flex_pointwise[dtype]->binary[pair->map], x, y, dtype,
                        BURN_FUSED_FULL);
    if (d->program->row_input == NONE || d->n_folds == FLEX_FUSED_FOLDS) {
        (void)fail(d, "too many reductions");
        return 0;
    }
    uint16_t out = new_value(d, step->dtype, BURN_FUSED_ROW);
    flex_fused_fold *f = &d->folds[d->n_folds];
    memset(f, 0, sizeof(*f));
    f->how = flex_pair_reducer(pair, dtype, step->dtype, a->reduction == BURN_REDUCTION_MEAN);
    f->fold = flex_fold_of(dtype, f->how.kind);
    f->out = out;
    f->x = z;
    flex_fused_step *s = new_step(d, out);
    s->exec = flex_fused_reduce;
    s->space = BURN_FUSED_FULL;
    s->in[0] = z;
    s->n_in = 1;
    s->index = d->n_folds++;
    return out;
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* One costs about as much as so many cheap maps. */
enum { RANDOM_WEIGHT = 4 };

/* Seed, counter and probability are immediates, which lie in their operands; halves stay as they
 * are stored, since the loops take them so. */
static uint16_t make_random(draft *d, const burn_fused_step *step, const flex_random_kind *kind)
{
    uint16_t x = NONE;
    if (kind->x != FLEX_RANDOM_NONE) {
        x = fit(d, value_of(d, step->args[kind->x]), BURN_FUSED_FULL);
    }
    uint16_t seed = value_of(d, step->args[kind->first]);
    uint16_t counter = value_of(d, step->args[kind->first + 1]);
    uint16_t chance = 0;
    if (kind->chance != FLEX_RANDOM_NONE) {
        chance = value_of(d, step->args[kind->chance]);
    }
    uint16_t out = new_value(d, step->dtype, BURN_FUSED_FULL);
    flex_fused_step *s = new_step(d, out);
    s->exec = flex_fused_generate;
    s->fn.random = kind;
    s->in[0] = x != NONE ? x : 0;
    s->n_in = x != NONE;
    s->in[1] = seed;
    s->in[2] = counter;
    s->index = chance;
    s->reuse = 1;
    return out;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* A line is used where it lies, at the same place for all tiles. */
static uint16_t line_value(draft *d, uint16_t i)
{
    const burn_operand *x = flex_in(d->call, i);
    int is_dense = x->layout == BURN_LAYOUT_CONTIGUOUS || flex_numel(x) == 1;
    if (is_half(x->dtype) || !is_dense) {
        (void)fail(d, "a line of halves, or one that is not dense");
    }
    uint16_t v = new_value(d, x->dtype, BURN_FUSED_ONE);
    d->values[v].in_place = 1;
    d->values[v].slot = i;
    return v;
}

static uint16_t make_lines(draft *d, const burn_fused_step *step, const flex_line_op *op)
{
    uint16_t in[3] = {0, 0, 0};
    uint16_t there = 0;
    for (uint32_t i = 0; i < step->n_args && i < 3; i++) {
        uint16_t v = step->args[i];
        if (v == NONE) {
            continue;
        }
        in[i] = i < op->n_full ? fit(d, widen(d, value_of(d, v)), BURN_FUSED_FULL)
                               : line_value(d, v);
        there |= (uint16_t)(1u << i);
    }
    uint16_t out = new_value(d, loop_dtype(step->dtype), BURN_FUSED_FULL);
    flex_fused_step *s = new_step(d, out);
    s->exec = flex_fused_lines;
    s->fn.line = op;
    memcpy(s->in, in, sizeof(in));
    s->n_in = op->n_full;
    s->index = there;
    s->attrs = step->attrs_offset;
    s->reuse = op->in_place;
    d->has_lines = 1;
    return narrow(d, out, step->dtype);
}

/* ---- products -------------------------------------------------------------------------------- */

/* Results of that size, and operands beside them, lie beyond the second cache. */
enum { FAR_BYTES = 1 << 20 };

/* Does a later step read another operand that has all positions? Such come from memory, which a
 * pass of its own asks for in time, as pieces of a product do not. */
static int reads_far(const draft *d)
{
    const burn_fused_input *inputs = burn_fused_inputs(d->program);
    for (uint32_t i = 0; i < d->program->n_in; i++) {
        const burn_operand *x = flex_in(d->call, i);
        int repeats = x->layout == BURN_LAYOUT_SCALAR || x->layout == BURN_LAYOUT_VECTOR;
        if (inputs[i].space == BURN_FUSED_FULL && x->kind == BURN_TENSOR && !repeats) {
            return 1;
        }
    }
    return 0;
}

/* Its result is there, dense, when the other steps run: an operand more. */
static uint16_t make_product(draft *d)
{
    flex_producer producer;
    burn_prepared prepared;
    if (!flex_producer_make(&producer, d->call)) {
        (void)fail(d, "no kernel that a program may begin with");
        return 0;
    }
    d->product = flex_producer_row(&producer);
    if (d->product == NULL) {
        (void)fail(d, "the product takes its operands in another layout");
        return 0;
    }
    memset(&prepared, 0, sizeof(prepared));
    prepared.struct_size = (uint32_t)sizeof(prepared);
    if (d->product->prepare(&producer.call, &prepared) != BURN_OK) {
        d->failed = 1; /* and has said why */
        return 0;
    }
    const burn_operand *z = flex_producer_result(&producer);
    d->product_bytes = prepared.workspace_bytes;
    d->result_bytes = (uint64_t)flex_numel(z) * flex_size(z->dtype);
    d->hot = d->program->row_input == NONE && !(d->result_bytes >= FAR_BYTES && reads_far(d));
    d->passes_on = d->hot && flex_producer_passes_on(&producer);
    uint16_t v = new_value(d, z->dtype, BURN_FUSED_FULL);
    d->values[v].in_place = 1;
    d->values[v].slot = (uint16_t)(d->call->n_in + d->call->n_out);
    return v;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void compile_step(draft *d, const burn_fused_step *step, uint16_t value)
{
    map_step m = {step, flex_map_of(step->op), NULL};
    if (value == d->program->n_in && flex_producer_begins(d->program)) {
        d->reg[value] = make_product(d);
        return;
    }
    if (step->attrs_size > 0) {
        m.attrs = (const char *)d->program + step->attrs_offset;
    }
    if (m.map != NULL) {
        d->reg[value] = compilers[m.map->kind](d, &m);
        d->weight += FLEX_GRAIN / m.map->grain;
    } else if (step->op < FLEX_COUNT(reduce_kinds) && reduce_kinds[step->op].known) {
        const reduce_kind *kind = &reduce_kinds[step->op];
        d->reg[value] = step->space == BURN_FUSED_COLUMN ? make_column(d, step, kind)
                                                         : make_reduce(d, step, kind, m.attrs);
        d->weight++;
    } else if (flex_pair_fold_of(step->op) != NULL) {
        d->reg[value] = make_pair_fold(d, step, flex_pair_fold_of(step->op), m.attrs);
        d->weight += 2;
    } else if (flex_random_of(step->op) != NULL) {
        d->reg[value] = make_random(d, step, flex_random_of(step->op));
        d->weight += RANDOM_WEIGHT;
    } else if (flex_line_op_of(step->op) != NULL) {
        d->reg[value] = make_lines(d, step, flex_line_op_of(step->op));
        d->weight += flex_line_op_of(step->op)->weight;
    } else {
        (void)flex_fail(d->call->err, BURN_E_UNSUPPORTED, "fused: no loop for op %llu",
                        (unsigned long long)step->op);
        d->failed = 1;
    }
}

/* An operand that has all positions: they are counted there. */
static uint16_t find_full(const burn_fused_program *p)
{
    if (flex_producer_begins(p)) {
        return (uint16_t)(p->n_in + p->n_out);
    }
    for (uint16_t j = 0; j < p->n_out; j++) {
        uint16_t v = burn_fused_outputs(p)[j];
        if (v >= p->n_in && burn_fused_steps(p)[v - p->n_in].space == BURN_FUSED_FULL) {
            return (uint16_t)(p->n_in + j);
        }
    }
    for (uint16_t i = 0; i < p->n_in; i++) {
        if (burn_fused_inputs(p)[i].space == BURN_FUSED_FULL) {
            return i;
        }
    }
    return NONE;
}

static int compile_all(draft *d)
{
    const burn_fused_program *p = d->program;
    d->cut = NONE;
    if (p->head.revision > BURN_FUSED_VERSION) {
        return fail(d, "a version of programs that is not known here");
    }
    d->operand_full = find_full(p);
    if (d->operand_full == NONE) {
        return fail(d, "no operand has all positions");
    }
    memset(d->reg, 0xff, sizeof(d->reg));
    for (uint16_t s = 0; s < p->n_steps && !d->failed; s++) {
        compile_step(d, &burn_fused_steps(p)[s], (uint16_t)(p->n_in + s));
    }
    for (uint16_t j = 0; j < p->n_out && !d->failed; j++) {
        d->outs[j].value = value_of(d, burn_fused_outputs(p)[j]);
        d->outs[j].space = d->values[d->outs[j].value].space;
        for (uint32_t k = 0; k < d->n_columns; k++) {
            d->columns[k].out = d->columns[k].value == d->outs[j].value ? j : d->columns[k].out;
        }
    }
    return !d->failed;
}

const flex_fused *flex_fused_compile(const burn_call *call)
{
    draft *d = flex_host->alloc(sizeof(*d));
    if (d == NULL) {
        (void)flex_fail(call->err, BURN_E_NO_MEMORY, "fused: out of host memory");
        return NULL;
    }
    memset(d, 0, sizeof(*d));
    d->call = call;
    d->program = call->attrs;
    const flex_fused *made = compile_all(d) ? flex_fused_plan(d) : NULL;
    flex_host->free(d);
    return made;
}

void flex_fused_free(const flex_fused *program)
{
    if (program != NULL) {
        /* The program was allocated as plain memory; only its users see it as constant. */
        uintptr_t memory = (uintptr_t)program;
        flex_host->free((void *)memory);
    }
}
