/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stub_kernels.c - an extension whose kernel or gradient is wrong in one way that only one check of
 * burn-conformance sees, chosen by the name of its own file.
 *
 * A test copies this library to <id>.so. It has two ops, "<id>.first" and "<id>.op" (z = x * y, of
 * one shape), with kernels for flex in f32, which are right; the row of `defects` with the name
 * changes one thing, and a name without a row is a healthy extension. What stub.c has is wrong by
 * the rules and is refused; this here follows them all and computes something else. To add a
 * defect: a function, a row, and one row in wrong.py.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "../loader/own_id.h"

#include <burn_sdk/flex_kernel.h>
#include <burn_sdk/loop.h>
#include <burn_sdk/op.h>
#include <burn_sdk/slots.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>

static char own_id[64];
static char names[2][80];
static burn_op_def ops[2];
static burn_role roles[2][3];
static burn_alias aliases[1];
static uint32_t saves[2];
static burn_slot slots[2][3];
static burn_slot any_slots[2];
static burn_row rows[2];
static burn_row_set row_sets[1];
static burn_plugin plugin;
static const burn_host *host;

/* ---- the ops as they should be --------------------------------------------------------------- */

static int32_t infer(const burn_infer *a)
{
    int32_t rc = burn_check_same_shape(names[1], "x", a->in[0], "y", a->in[1], a->err);
    burn_meta_copy_shape(&a->out[0], a->in[0]);
    return rc;
}

static int32_t decompose(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_mul(b, a->in[0], a->in[1]);
    return BURN_OK;
}

static int32_t vjp(const burn_builder *b, const burn_vjp *a)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (a->wanted[i]) {
            a->grad_in[i] = burn_b_mul(b, a->grad_out[0], a->in[1 - i]);
        }
    }
    return BURN_OK;
}

static int32_t eval(const burn_eval *a)
{
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        a->out[0].f[k] = a->in[0].f[k] * a->in[1].f[k];
    }
    return BURN_OK;
}

static int32_t samples(uint32_t i, burn_sample *out)
{
    const int64_t dims[2] = {4, 6};
    if (i > 1) {
        return BURN_E_END;
    }
    uint8_t fill = i == 0 ? BURN_FILL_NORMAL : BURN_FILL_SPECIAL;
    burn_sample_begin(out, i == 0 ? "matrix" : "special values", 2.0, 64.0);
    burn_sample_tensor(out, 0, 0, fill, 2, dims);
    burn_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, 2, dims);
    out->flags |= i == 0 ? 0 : BURN_SAMPLE_NO_GRAD;
    return BURN_OK;
}

/* ---- and their kernels ----------------------------------------------------------------------- */

static int64_t count(const burn_operand *o)
{
    return burn_dims_count(o->rank, o->dims);
}

/* Where element k of `o` is, by the strides of `by`. */
static int64_t place(const burn_operand *o, const burn_operand *by, int64_t k)
{
    int64_t at = 0;
    for (uint32_t d = o->rank; d-- > 0;) {
        at += k % o->dims[d] * by->strides[d];
        k /= o->dims[d];
    }
    return at;
}

/* z = x * y, each input by the strides of an operand of the call. */
static void multiply(const burn_call *call, uint32_t x_by, uint32_t y_by)
{
    const burn_operand *x = burn_call_operand(call, 0);
    const burn_operand *y = burn_call_operand(call, 1);
    const burn_operand *z = burn_call_operand(call, 2);
    const burn_operand *like_x = burn_call_operand(call, x_by);
    const burn_operand *like_y = burn_call_operand(call, y_by);
    int64_t n = count(z);
    for (int64_t k = 0; k < n; k++) {
        ((float *)z->data)[k] = ((const float *)x->data)[place(x, like_x, k)] *
                                ((const float *)y->data)[place(y, like_y, k)];
    }
}

static int32_t launch(const burn_call *call)
{
    multiply(call, 0, 1);
    return BURN_OK;
}

/* One element a little off: within the tolerance, but with other bits. */
static void nudge(const burn_call *call)
{
    const burn_operand *z = burn_call_operand(call, 2);
    if (count(z) > 0) {
        float *first = z->data;
        *first = nextafterf(*first, INFINITY);
    }
}

/* ---- kernels that go wrong ------------------------------------------------------------------- */

static int32_t counts_launches(const burn_call *call)
{
    static uint32_t n;
    multiply(call, 0, 1);
    if (n++ % 2 == 1) {
        nudge(call);
    }
    return BURN_OK;
}

/* It settles on numbers that come again and again, once they are not the first ones it saw: a step
 * that is kept with some numbers and runs with others does that. */
static int32_t settles(const burn_call *call)
{
    static float last;
    static uint32_t changes;
    static uint32_t times;
    const float *x = burn_call_operand(call, 0)->data;
    multiply(call, 0, 1);
    if (count(burn_call_operand(call, 0)) > 0) {
        int is_new = *x < last || *x > last;
        changes += (uint32_t)is_new;
        times = is_new ? 1 : times + 1;
        last = *x;
        if (changes > 1 && times == 3) {
            nudge(call);
        }
    }
    return BURN_OK;
}

static int32_t no_squares(const burn_call *call)
{
    int is_square = burn_call_operand(call, 0)->data == burn_call_operand(call, 1)->data;
    multiply(call, 0, 1);
    if (is_square) {
        memcpy(burn_call_operand(call, 2)->data, burn_call_operand(call, 0)->data, sizeof(float));
    }
    return BURN_OK;
}

/* Right for two tensors in any layout; a square is taken for dense. */
static int32_t dense_squares(const burn_call *call)
{
    int is_square = burn_call_operand(call, 0)->data == burn_call_operand(call, 1)->data;
    multiply(call, is_square ? 2 : 0, is_square ? 2 : 1);
    return BURN_OK;
}

static int32_t writes_input(const burn_call *call)
{
    multiply(call, 0, 1);
    if (count(burn_call_operand(call, 0)) > 0) {
        *(float *)burn_call_operand(call, 0)->data = 0.0F;
    }
    return BURN_OK;
}

static int32_t writes_strided_input(const burn_call *call)
{
    int is_dense = burn_call_operand(call, 0)->layout == BURN_LAYOUT_CONTIGUOUS;
    return is_dense ? launch(call) : writes_input(call);
}

/* It says that z may take the memory of x, and reads x when z is written already. */
static int32_t two_passes(const burn_call *call)
{
    const burn_operand *z = burn_call_operand(call, 2);
    const float *x = burn_call_operand(call, 0)->data;
    const float *y = burn_call_operand(call, 1)->data;
    float *to = z->data;
    int64_t n = count(z);
    for (int64_t k = 0; k < n; k++) {
        to[k] = y[k];
    }
    for (int64_t k = 0; k < n; k++) {
        to[k] *= x[k];
    }
    return BURN_OK;
}

static int32_t prepare_flex(const burn_call *call, burn_prepared *out)
{
    out->state = burn_flex_kernel_of(host);
    return out->state != NULL ? BURN_OK
                              : burn_plugin_fail(call->err, BURN_E_UNSUPPORTED, "no flex kernels");
}

/* Cut by the number of threads where there is much to do. */
static int32_t counts_threads(const burn_call *call)
{
    const burn_flex_kernel *flex = call->state;
    multiply(call, 0, 1);
    if (flex->thread_count() == 3 && count(burn_call_operand(call, 2)) > 16384) {
        nudge(call);
    }
    return BURN_OK;
}

static int32_t breaks_with_threads(const burn_call *call)
{
    const burn_flex_kernel *flex = call->state;
    if (flex->thread_count() == 3) {
        (void)raise(SIGKILL);
    }
    return launch(call);
}

static int32_t takes_dense(const burn_call *call)
{
    multiply(call, 2, 2);
    return BURN_OK;
}

static int32_t takes_alike(const burn_call *call)
{
    multiply(call, 0, 0);
    return BURN_OK;
}

static int32_t loses_tail(const burn_call *call)
{
    const burn_operand *z = burn_call_operand(call, 2);
    multiply(call, 0, 1);
    if (z->rank > 0 && z->dims[0] > 16 && z->dims[0] % 16 == 1) {
        ((float *)z->data)[count(z) - 1] = 0.0F;
    }
    return BURN_OK;
}

/* Right up to what `sweep` tries at most, and beyond that wrong in one element. */
static int32_t loses_one_of_many(const burn_call *call)
{
    const burn_operand *z = burn_call_operand(call, 2);
    multiply(call, 0, 1);
    if (count(z) > 65536) {
        ((float *)z->data)[count(z) / 2] += 1.0F;
    }
    return BURN_OK;
}

/* Of fused programs, which need more than one op that waits. */
static int32_t no_programs(const burn_call *call)
{
    for (uint32_t j = 0; j < call->n_out; j++) {
        const burn_operand *z = burn_call_operand(call, call->n_in + j);
        memset(z->data, 0, (size_t)count(z) * (z->dtype == BURN_F32 ? 4u : 1u));
    }
    return BURN_OK;
}

/* ---- what is wrong --------------------------------------------------------------------------- */

#define KERNEL(name, fn)                                                                           \
    static void name(void)                                                                         \
    {                                                                                              \
        rows[0].launch = fn;                                                                       \
    }

KERNEL(repeat, counts_launches)
KERNEL(replay, settles)
KERNEL(same_operand, no_squares)
KERNEL(moved, writes_input)
KERNEL(sweep, loses_tail)
KERNEL(large, loses_one_of_many)

static void in_place(void)
{
    rows[0].in_place_mask = 1;
    rows[0].launch = two_passes;
}

static void take_any(uint32_t row, burn_launch_fn fn)
{
    slots[row][0].layouts = BURN_LAYOUT_ANY;
    slots[row][1].layouts = BURN_LAYOUT_ANY;
    rows[row].launch = fn;
}

static void layouts(void)
{
    take_any(0, takes_dense);
}

static void mixed(void)
{
    take_any(0, takes_alike);
}

static void same_operand_mixed(void)
{
    take_any(0, dense_squares);
}

static void moved_mixed(void)
{
    take_any(0, writes_strided_input);
}

static void use_flex(uint32_t row)
{
    rows[row].prepare = prepare_flex;
    rows[row].launch = counts_threads;
    row_sets[0].contract = BURN_FLEX_KERNEL_CONTRACT;
}

static void threads(void)
{
    use_flex(0);
}

static void threads_kill(void)
{
    use_flex(0);
    rows[0].launch = breaks_with_threads;
}

/* One more sample where the number of threads was set. */
static int32_t samples_by_mode(uint32_t i, burn_sample *out)
{
    const char *n = getenv("BURN_THREADS");
    int more = n != NULL && strcmp(n, "3") == 0;
    return samples(more && i > 0 ? i - 1 : i, out);
}

static void threads_samples(void)
{
    ops[1].samples = samples_by_mode;
}

/* Its answer is rarely seen in windows of one op. */
static void window(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        any_slots[i] = slots[0][0];
        any_slots[i].dtypes[0] = BURN_SET_ANY;
        any_slots[i].layouts = BURN_LAYOUT_ANY;
        any_slots[i].immediate_ok = 1;
    }
    rows[1].op = BURN_OP_FUSED;
    rows[1].slots = any_slots;
    rows[1].n_slots = 2;
    rows[1].launch = no_programs;
}

/* The gradient's part by another op, which is the first one. */
static int32_t vjp_by_first(const burn_builder *b, const burn_vjp *a)
{
    for (uint32_t i = 0; i < 2; i++) {
        burn_value *in[2] = {a->grad_out[0], a->in[1 - i]};
        if (a->wanted[i]) {
            a->grad_in[i] = burn_b_emit(b, ops[0].id, NULL, in, 2);
        }
    }
    return BURN_OK;
}

static int32_t parts_by_first(const burn_builder *b, const burn_expand *a)
{
    burn_value *in[2] = {a->in[0], a->in[1]};
    a->out[0] = burn_b_emit(b, ops[0].id, NULL, in, 2);
    return BURN_OK;
}

static void threads_gradient(void)
{
    use_flex(1);
    ops[1].vjp = vjp_by_first;
}

/* Only what is made of the op goes through the first one's kernel. */
static void parts_mixed(void)
{
    take_any(1, takes_dense);
    ops[1].vjp = vjp_by_first;
    ops[1].decompose = parts_by_first;
}

static int32_t steep(const burn_builder *b, const burn_vjp *a)
{
    (void)vjp(b, a);
    if (a->wanted[1]) {
        a->grad_in[1] = burn_b_mul_num(b, a->grad_in[1], 1.01);
    }
    return BURN_OK;
}

static void gradient(void)
{
    ops[1].vjp = steep;
}

/* Both gradients together are right. */
static int32_t alone_is_steep(const burn_builder *b, const burn_vjp *a)
{
    (void)vjp(b, a);
    if (a->wanted[0] && !a->wanted[1]) {
        a->grad_in[0] = burn_b_mul_num(b, a->grad_in[0], 1.01);
    }
    return BURN_OK;
}

static void gradient_alone(void)
{
    ops[1].vjp = alone_is_steep;
}

/* The gradient by x needs y, which is kept only when its own is asked for, too. */
static void saves_few(void)
{
    saves[0] = BURN_SAVE_IN(0);
    saves[1] = BURN_SAVE_IN(0) | BURN_SAVE_IN(1);
}

/* The gradient is right, and that of the gradient is not. */
static void second(void)
{
    ops[1].vjp = vjp_by_first;
    ops[0].vjp = steep;
}

static void only_f32(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < 3; k++) {
            roles[i][k].dtypes[0] = BURN_BIT(F32);
        }
    }
}

static void second_f32(void)
{
    only_f32();
    second();
}

static void healthy_f32(void)
{
    only_f32();
}

/* Nobody can tell the slope of this. */
static int32_t noise(const burn_builder *b, const burn_vjp *a)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (a->wanted[i]) {
            a->grad_in[i] = burn_b_sin(b, burn_b_mul_num(b, a->in[i], 1e13));
        }
    }
    return BURN_OK;
}

static void second_unknown(void)
{
    ops[1].vjp = noise;
}

static int32_t parts_off(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_mul_num(b, burn_b_mul(b, a->in[0], a->in[1]), 1.01);
    return BURN_OK;
}

static void decomposed(void)
{
    ops[1].decompose = parts_off;
}

/* x is a variable; y comes in any layout, and is taken for dense. */
static void state_strided(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        roles[1][i].flags = BURN_ROLE_NO_GRAD;
    }
    roles[1][0].flags |= BURN_ROLE_STATE;
    aliases[0].kind = BURN_ALIAS_MUST;
    ops[1].aliases = aliases;
    ops[1].n_aliases = 1;
    ops[1].effect = BURN_EFFECT_STATE;
    ops[1].vjp = NULL;
    ops[1].no_vjp = "it overwrites a variable";
    slots[0][1].layouts = BURN_LAYOUT_ANY;
    rows[0].launch = takes_dense;
}

static int32_t samples_that_fail(uint32_t i, burn_sample *out)
{
    if (i != 2) {
        return i > 2 ? BURN_E_END : samples(i, out);
    }
    (void)samples(0, out);
    out->flags |= BURN_SAMPLE_ERROR;
    out->error = BURN_E_SHAPE;
    return BURN_OK;
}

static void error(void)
{
    ops[1].samples = samples_that_fail;
}

/* A number that the kernel has no answer to: in no other sample. */
#define UNANSWERED 77.0

static int32_t finds_fault(const burn_call *call)
{
    const burn_operand *x = burn_call_operand(call, 0);
    const float *first = x->data;
    multiply(call, 0, 1);
    if (count(x) > 0 && *first >= (float)UNANSWERED && *first <= (float)UNANSWERED) {
        return burn_plugin_fail(call->err, BURN_E_DATA, "%s: x is %g", names[1], UNANSWERED);
    }
    return BURN_OK;
}

static int32_t samples_with_fault(uint32_t i, burn_sample *out)
{
    static const double values[] = {UNANSWERED};
    if (i != 2) {
        return i > 2 ? BURN_E_END : samples(i, out);
    }
    (void)samples(0, out);
    out->in[0].fill = BURN_FILL_VALUES;
    out->in[0].values = values;
    out->in[0].n_values = 1;
    burn_sample_error(out, BURN_E_DATA);
    return BURN_OK;
}

static void faults(void)
{
    ops[1].samples = samples_with_fault;
    rows[0].launch = finds_fault;
    rows[0].flags |= BURN_ROW_FAULTS;
}

/* The same without saying so. */
static void faults_untold(void)
{
    faults();
    rows[0].flags &= ~(uint32_t)BURN_ROW_FAULTS;
}

static int32_t ordinary_samples(uint32_t i, burn_sample *out)
{
    return i > 0 ? BURN_E_END : samples(i, out);
}

static void ordinary(void)
{
    ops[1].samples = ordinary_samples;
}

/* Called special, and has ordinary numbers; another one has special ones. */
static int32_t misnamed_samples(uint32_t i, burn_sample *out)
{
    int32_t rc = i > 2 ? BURN_E_END : samples(i > 1 ? 1 : i, out);
    if (i == 1) {
        out->in[0].fill = BURN_FILL_NORMAL;
    }
    return rc;
}

static void misnamed(void)
{
    ops[1].samples = misnamed_samples;
}

/* ---- an attribute whose value the text does not name ----------------------------------------- */

typedef struct sized_attrs {
    burn_attrs_head head;
    int64_t size;
} sized_attrs;

static const burn_attr sized_rows[] = {
    {"size", "how much", BURN_ATTR_I64, (uint16_t)offsetof(sized_attrs, size), 8, 1,
     BURN_ATTR_KEY, 0},
};

static int32_t infer_sized(const burn_infer *a)
{
    const sized_attrs *attrs = a->attrs;
    burn_meta_copy_shape(&a->out[0], a->in[0]);
    if (attrs->size > 1) {
        return burn_plugin_fail(a->err, BURN_E_INVALID, "%s: size is %d, it must be 1", names[1],
                                (int)attrs->size % 10);
    }
    return burn_check_same_shape(names[1], "x", a->in[0], "y", a->in[1], a->err);
}

static int32_t sized_samples(uint32_t i, burn_sample *out)
{
    sized_attrs attrs;
    int32_t rc = i > 2 ? BURN_E_END : samples(i % 2, out);
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.size = i == 2 ? 77 : 1;
    memcpy(out->attrs, &attrs, sizeof(attrs));
    out->attrs_size = (uint32_t)sizeof(attrs);
    if (i == 2) {
        out->flags |= BURN_SAMPLE_ERROR;
        out->error = BURN_E_INVALID;
    }
    return rc;
}

static void unnamed(void)
{
    ops[1].attrs = sized_rows;
    ops[1].n_attrs = 1;
    ops[1].attr_stride = (uint32_t)sizeof(burn_attr);
    ops[1].attrs_size = (uint32_t)sizeof(sized_attrs);
    ops[1].infer = infer_sized;
    ops[1].samples = sized_samples;
}

static int32_t infer_curtly(const burn_infer *a)
{
    burn_err own = BURN_ERR_INIT;
    int same = burn_check_same_shape(names[1], "x", a->in[0], "y", a->in[1], &own) == BURN_OK;
    burn_meta_copy_shape(&a->out[0], a->in[0]);
    return same ? BURN_OK : burn_plugin_fail(a->err, BURN_E_SHAPE, "it does not fit");
}

static void refuse(void)
{
    ops[1].infer = infer_curtly;
}

typedef struct defect {
    const char *name;
    void (*apply)(void);
} defect;

static const defect defects[] = {
    {"decomposed", decomposed},
    {"error", error},
    {"faults", faults},
    {"faults_untold", faults_untold},
    {"gradient", gradient},
    {"gradient_alone", gradient_alone},
    {"saves_few", saves_few},
    {"healthy_f32", healthy_f32},
    {"in_place", in_place},
    {"large", large},
    {"layouts", layouts},
    {"mixed", mixed},
    {"misnamed", misnamed},
    {"moved", moved},
    {"moved_mixed", moved_mixed},
    {"ordinary", ordinary},
    {"parts_mixed", parts_mixed},
    {"refuse", refuse},
    {"repeat", repeat},
    {"replay", replay},
    {"same_operand", same_operand},
    {"same_operand_mixed", same_operand_mixed},
    {"second", second},
    {"second_f32", second_f32},
    {"second_unknown", second_unknown},
    {"state_strided", state_strided},
    {"sweep", sweep},
    {"threads", threads},
    {"threads_gradient", threads_gradient},
    {"threads_kill", threads_kill},
    {"threads_samples", threads_samples},
    {"unnamed", unnamed},
    {"window", window},
};

/* ---- the plugin ------------------------------------------------------------------------------ */

static void build_ops(void)
{
    static const char *const role_names[] = {"x", "y", "z"};
    saves[0] = BURN_SAVE_IN(1);
    saves[1] = BURN_SAVE_IN(0);
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < 3; k++) {
            roles[i][k].name = role_names[k];
            roles[i][k].dtypes[0] = BURN_SET_FLOAT;
            roles[i][k].same_dtype_as = k > 0;
        }
        (void)snprintf(names[i], sizeof(names[i]), "%s.%s", own_id, i == 0 ? "first" : "op");
        ops[i].name = names[i];
        ops[i].summary = "The product of two tensors of one shape.";
        ops[i].n_in = 2;
        ops[i].n_out = 1;
        ops[i].roles = roles[i];
        ops[i].infer = infer;
        ops[i].vjp = vjp;
        ops[i].vjp_saves = saves;
        ops[i].decompose = decompose;
        ops[i].eval = eval;
        ops[i].samples = samples;
        burn_op_finish(&ops[i]);
    }
}

/* Row 0 is of the op, row 1 of the first one. */
static void build_rows(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < 3; k++) {
            slots[i][k].dtypes[0] = BURN_BIT(F32);
            slots[i][k].layouts = BURN_LAYOUT_CONTIGUOUS;
            slots[i][k].rank_max = BURN_MAX_RANK;
        }
        BURN_INIT(&rows[i], burn_row);
        rows[i].flags = BURN_ROW_DETERMINISTIC | BURN_ROW_ANY_DIMS;
        rows[i].op = ops[1 - i].id;
        rows[i].revision_min = 1;
        rows[i].revision_max = 1;
        rows[i].priority = 1000;
        rows[i].n_slots = 3;
        rows[i].slot_stride = (uint32_t)sizeof(burn_slot);
        rows[i].slots = slots[i];
        rows[i].name = i == 0 ? "stub.op" : "stub.first";
        rows[i].launch = launch;
    }
    BURN_INIT(&row_sets[0], burn_row_set);
    row_sets[0].backend = "flex";
    row_sets[0].rows = rows;
    row_sets[0].n_rows = 2;
    row_sets[0].row_stride = (uint32_t)sizeof(burn_row);
}

__attribute__((visibility("default"))) const burn_plugin *BURN_CALL
burn_plugin_query(uint32_t host_oldest, uint32_t host_newest, const burn_host *given, burn_err *err)
{
    static const burn_magic magic = BURN_MAGIC_INIT;
    find_own_id(own_id, sizeof(own_id));
    BURN_INIT(&plugin, burn_plugin);
    build_ops();
    build_rows();
    for (size_t i = 0; i < BURN_COUNT(defects); i++) {
        if (strcmp(defects[i].name, own_id) == 0) {
            defects[i].apply();
        }
    }
    plugin.magic = magic;
    plugin.id = own_id;
    plugin.version = "1.2.3";
    plugin.ops = ops;
    plugin.n_ops = 2;
    plugin.op_stride = (uint32_t)sizeof(burn_op_def);
    plugin.row_sets = row_sets;
    plugin.n_row_sets = 1;
    plugin.row_set_stride = (uint32_t)sizeof(burn_row_set);
    return burn_plugin_answer(host_oldest, host_newest, given, &host, &plugin, err);
}
