/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stub.c - an extension that is wrong in one way, chosen by the name of its own file.
 *
 * A test copies this library to <id>.so. The query finds that name, builds two ops that are right,
 * "<id>.first" and "<id>.op" (z = x + y), and applies the row of `defects` with the name; a name
 * without a row is a healthy extension. To add a defect: one small function or value, one row, and
 * one row of expectations in test_stubs.c; further lists have files of their own (stub.h).
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "stub.h"

#include "../loader/own_id.h"

#include <math.h>
#include <signal.h>

typedef struct stub_attrs {
    burn_attrs_head head;
    int64_t axis;
} stub_attrs;

static char own_id[64];
static char names[2][80];
static burn_op_def ops[2];
static burn_role roles[64];
static burn_attr attrs[2];
static burn_alias aliases[2];
static uint32_t saves[2];
static burn_slot slots[4];
static burn_row rows[2];
static burn_row_set row_sets[2];
static burn_plugin plugin;
static const burn_host *host;

/* ---- the op as it should be ------------------------------------------------------------------ */

static int32_t infer(const burn_infer *a)
{
    int32_t rc = burn_check_same_shape(names[1], "x", a->in[0], "y", a->in[1], a->err);
    for (uint32_t j = 0; j < a->n_out; j++) {
        burn_meta_copy_shape(&a->out[j], a->in[0]);
    }
    return rc;
}

static int32_t decompose(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_add(b, a->in[0], a->in[1]);
    return BURN_OK;
}

static int32_t vjp(const burn_builder *b, const burn_vjp *a)
{
    (void)b;
    for (uint32_t i = 0; i < 2; i++) {
        if (a->wanted[i]) {
            a->grad_in[i] = a->grad_out[0];
        }
    }
    return BURN_OK;
}

static int32_t eval(const burn_eval *a)
{
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        a->out[0].f[k] = a->in[0].f[k] + a->in[1].f[k];
    }
    return BURN_OK;
}

static int32_t samples(uint32_t i, burn_sample *out)
{
    const int64_t dims[1] = {3};
    if (i > 1) {
        return BURN_E_END;
    }
    uint8_t fill = i == 0 ? BURN_FILL_NORMAL : BURN_FILL_SPECIAL;
    burn_sample_begin(out, i == 0 ? "vector" : "special values", 2.0, 64.0);
    burn_sample_tensor(out, 0, 0, fill, 1, dims);
    burn_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, 1, dims);
    out->flags |= i == 0 ? 0 : BURN_SAMPLE_NO_GRAD;
    return BURN_OK;
}

static int32_t launch(const burn_call *call)
{
    const burn_operand *z = burn_call_operand(call, 2);
    int64_t n = burn_dims_count(z->rank, z->dims);
    for (int64_t k = 0; k < n; k++) {
        ((float *)z->data)[k] = 42.0F;
    }
    return BURN_OK;
}

static void build_ops(void)
{
    static const char *const role_names[] = {"x", "y", "z"};
    for (uint32_t i = 0; i < 64; i++) {
        roles[i].name = i < 3 ? role_names[i] : "more";
        roles[i].dtypes[0] = BURN_SET_FLOAT;
        roles[i].same_dtype_as = i > 0;
    }
    for (uint32_t i = 0; i < 2; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%s.%s", own_id, i == 0 ? "first" : "op");
        memset(&ops[i], 0, sizeof(ops[i]));
        ops[i].name = names[i];
        ops[i].summary = "z = x + y";
        ops[i].n_in = 2;
        ops[i].n_out = 1;
        ops[i].roles = roles;
        ops[i].infer = infer;
        ops[i].vjp = vjp;
        ops[i].vjp_saves = saves;
        ops[i].decompose = decompose;
        ops[i].eval = eval;
        ops[i].samples = samples;
        burn_op_finish(&ops[i]);
    }
    /* The first op has roles of its own: only the second one is wrong. */
    static burn_role good[3];
    memcpy(good, roles, sizeof(good));
    ops[0].roles = good;
}

static void build_rows(const char *backend, uint64_t op)
{
    for (uint32_t i = 0; i < 4; i++) {
        slots[i].dtypes[0] = BURN_BIT(F32);
        slots[i].layouts = BURN_LAYOUT_CONTIGUOUS;
        slots[i].rank_max = BURN_MAX_RANK;
    }
    BURN_INIT(&rows[0], burn_row);
    rows[0].flags = BURN_ROW_DETERMINISTIC | BURN_ROW_ANY_DIMS;
    rows[0].op = op;
    rows[0].revision_min = 1;
    rows[0].revision_max = 1;
    rows[0].priority = 1000;
    rows[0].n_slots = 3;
    rows[0].slot_stride = (uint32_t)sizeof(burn_slot);
    rows[0].slots = slots;
    rows[0].name = "stub.row";
    rows[0].launch = launch;
    BURN_INIT(&row_sets[0], burn_row_set);
    row_sets[0].backend = backend;
    row_sets[0].rows = rows;
    row_sets[0].n_rows = 1;
    row_sets[0].row_stride = (uint32_t)sizeof(burn_row);
    plugin.row_sets = row_sets;
    plugin.n_row_sets = 1;
    plugin.row_set_stride = (uint32_t)sizeof(burn_row_set);
}

burn_op_def *stub_op(void)
{
    return &ops[1];
}

burn_row *stub_row(const char *backend, uint64_t op)
{
    build_rows(backend, op);
    return &rows[0];
}

/* ---- what may be wrong ----------------------------------------------------------------------- */

#define SET(name, target, value)                                                                   \
    static void name(void)                                                                         \
    {                                                                                              \
        target = value;                                                                            \
    }

SET(role_flags, roles[1].flags, 1024)
SET(role_name, roles[2].name, NULL)
SET(role_tie, roles[1].same_dtype_as, 9)
SET(role_tie_out, roles[2].same_dtype_as, 3)
SET(role_variadic_first, roles[0].flags, BURN_ROLE_VARIADIC)
SET(role_variadic_out, roles[2].flags, BURN_ROLE_VARIADIC)
SET(role_scalar_out, roles[2].flags, BURN_ROLE_IMMEDIATE)
SET(role_stride, ops[1].role_stride, 8)
SET(state_is_pure, roles[0].flags, BURN_ROLE_STATE)
SET(saves_null, ops[1].vjp_saves, NULL)
SET(no_eval, ops[1].eval, NULL)
SET(no_samples, ops[1].samples, NULL)
SET(no_outputs, ops[1].n_out, 0)
SET(many_inputs, ops[1].n_in, 60)
SET(unknown_flags, ops[1].flags, 64)
SET(unknown_effect, ops[1].effect, 77)
SET(unknown_fuse, ops[1].fuse, 77)
SET(revision_0, ops[1].revision, 0)
SET(view_null, ops[1].fuse, BURN_FUSE_VIEW)
SET(attrs_head, ops[1].attrs_size, 4)

static void take_name(const char *name)
{
    (void)snprintf(names[1], sizeof(names[1]), "%s", name);
    ops[1].id = burn_op_id_from_name(names[1]);
}

static void bad_name(void)
{
    take_name("Not A Name");
}

static void clash_core(void)
{
    take_name("add");
}

static void thief(void)
{
    take_name("owner.op");
}

static void foreign_prefix(void)
{
    take_name("healthy.more");
}

static void longer_prefix(void)
{
    take_name("longer_prefix_more.op");
}

static void id_core(void)
{
    ops[1].id = BURN_OP_ADD;
}

static void saves_range(void)
{
    static const uint32_t wrong[2] = {BURN_SAVE_IN(5), BURN_SAVE_OUT(3)};
    ops[1].vjp_saves = wrong;
}

static void no_way(void)
{
    ops[1].vjp = NULL;
    ops[1].decompose = NULL;
}

static void pointwise_outputs(void)
{
    ops[1].fuse = BURN_FUSE_POINTWISE;
    ops[1].n_out = 2;
}

/* ---- attributes */

static void add_attrs(uint32_t n)
{
    for (uint32_t i = 0; i < 2; i++) {
        attrs[i].name = i == 0 ? "axis" : "more";
        attrs[i].type = BURN_ATTR_I64;
        attrs[i].offset = 8;
        attrs[i].size = 8;
    }
    ops[1].attrs = attrs;
    ops[1].n_attrs = n;
    ops[1].attrs_size = (uint32_t)sizeof(stub_attrs);
}

static void attr_offset(void)
{
    add_attrs(1);
    attrs[0].offset = 200;
}

static void attr_type(void)
{
    add_attrs(1);
    attrs[0].type = 99;
}

static void attr_size(void)
{
    add_attrs(1);
    attrs[0].size = 4;
}

static void attr_overlap(void)
{
    add_attrs(2);
}

static void attr_list(void)
{
    add_attrs(1);
    attrs[0].type = BURN_ATTR_I64_LIST;
    attrs[0].size = 64;
    ops[1].attrs_size = 72;
}

/* ---- states and aliases */

static void make_state(uint32_t n_aliases)
{
    roles[0].flags = BURN_ROLE_STATE | BURN_ROLE_NO_GRAD;
    roles[1].flags = BURN_ROLE_NO_GRAD;
    roles[2].flags = BURN_ROLE_NO_GRAD;
    aliases[0].kind = BURN_ALIAS_MUST;
    aliases[1].kind = BURN_ALIAS_MUST;
    ops[1].aliases = aliases;
    ops[1].n_aliases = (uint16_t)n_aliases;
    ops[1].effect = BURN_EFFECT_STATE;
    ops[1].vjp = NULL;
    ops[1].no_vjp = "it overwrites a variable";
}

static void state_no_alias(void)
{
    make_state(0);
}

static void alias_range(void)
{
    make_state(1);
    aliases[0].out = 7;
}

static void alias_kind(void)
{
    make_state(1);
    aliases[0].kind = 9;
}

static void alias_twice(void)
{
    make_state(2);
}

static void alias_not_state(void)
{
    make_state(1);
    aliases[0].in = 1;
}

static int32_t infer_grows(const burn_infer *a)
{
    a->out[0].rank = 1;
    a->out[0].dims[0] = 100000;
    return BURN_OK;
}

static void state_shape(void)
{
    make_state(1);
    ops[1].infer = infer_grows;
}

/* ---- samples */

static int32_t samples_for_ever(uint32_t i, burn_sample *out)
{
    (void)i;
    return samples(0, out);
}

static int32_t samples_of_rank_99(uint32_t i, burn_sample *out)
{
    int32_t rc = samples(i, out);
    out->in[0].rank = 99;
    return rc;
}

static int32_t samples_negative(uint32_t i, burn_sample *out)
{
    int32_t rc = samples(i, out);
    out->in[0].dims[0] = -3;
    return rc;
}

static int32_t samples_of_99_operands(uint32_t i, burn_sample *out)
{
    int32_t rc = samples(i, out);
    out->n_in = 99;
    return rc;
}

static int32_t samples_empty(uint32_t i, burn_sample *out)
{
    (void)i;
    (void)out;
    return BURN_E_END;
}

SET(samples_endless, ops[1].samples, samples_for_ever)
SET(samples_rank, ops[1].samples, samples_of_rank_99)
SET(samples_dims, ops[1].samples, samples_negative)
SET(samples_operands, ops[1].samples, samples_of_99_operands)
SET(samples_none, ops[1].samples, samples_empty)

/* ---- shape rules */

static int32_t rule_rank(const burn_infer *a)
{
    a->out[0].rank = 200;
    return BURN_OK;
}

static int32_t rule_negative(const burn_infer *a)
{
    a->out[0].rank = 2;
    a->out[0].dims[0] = -1;
    a->out[0].dims[1] = 4;
    return BURN_OK;
}

static int32_t rule_huge(const burn_infer *a)
{
    a->out[0].rank = 3;
    for (uint32_t d = 0; d < 3; d++) {
        a->out[0].dims[d] = INT64_C(1) << 40;
    }
    return BURN_OK;
}

static int32_t rule_dtype(const burn_infer *a)
{
    (void)infer(a);
    a->out[0].dtype = BURN_I32;
    return BURN_OK;
}

static int32_t rule_no_dtype(const burn_infer *a)
{
    (void)infer(a);
    a->out[0].dtype = 250;
    return BURN_OK;
}

static int32_t rule_kind(const burn_infer *a)
{
    (void)infer(a);
    a->out[0].kind = 17;
    return BURN_OK;
}

static int32_t rule_code(const burn_infer *a)
{
    (void)a;
    return 12345;
}

static int32_t rule_other_float(const burn_infer *a)
{
    (void)infer(a);
    a->out[0].dtype = a->in[0]->dtype == BURN_F64 ? BURN_F32 : BURN_F64;
    return BURN_OK;
}

SET(infer_other_float, ops[1].infer, rule_other_float)
SET(infer_rank, ops[1].infer, rule_rank)
SET(infer_negative, ops[1].infer, rule_negative)
SET(infer_huge, ops[1].infer, rule_huge)
SET(infer_dtype, ops[1].infer, rule_dtype)
SET(infer_no_dtype, ops[1].infer, rule_no_dtype)
SET(infer_kind, ops[1].infer, rule_kind)
SET(infer_code, ops[1].infer, rule_code)

static void infer_pointwise(void)
{
    ops[1].fuse = BURN_FUSE_POINTWISE;
    ops[1].infer = infer_grows;
}

/* ---- views */

static int64_t view_offset;
static int64_t view_stride;

static int32_t view_rule(const burn_view *a)
{
    a->out_strides[0] = view_stride;
    *a->out_offset = view_offset;
    return BURN_OK;
}

static int32_t infer_view(const burn_infer *a)
{
    burn_meta_copy_shape(&a->out[0], a->in[0]);
    return BURN_OK;
}

static int32_t samples_of_view(uint32_t i, burn_sample *out)
{
    int32_t rc = samples(i, out);
    burn_sample_number(out, 1, BURN_I64, 0.0);
    return rc;
}

static void make_view(int64_t offset, int64_t stride)
{
    view_offset = offset;
    view_stride = stride;
    ops[1].fuse = BURN_FUSE_VIEW;
    ops[1].view = view_rule;
    ops[1].infer = infer_view;
    ops[1].samples = samples_of_view;
    roles[1].flags = BURN_ROLE_ONLY_IMMEDIATE;
    roles[1].dtypes[0] = BURN_BIT(I64);
    roles[1].same_dtype_as = 0;
}

static void view_behind(void)
{
    make_view(1, 1);
}

static void view_before(void)
{
    make_view(0, -1);
}

static void view_far(void)
{
    make_view(0, INT64_MAX);
}

static void view_optional(void)
{
    make_view(0, 1);
    roles[0].flags = BURN_ROLE_OPTIONAL;
}

static void view_tensor(void)
{
    make_view(0, 1);
    roles[1].flags = 0;
}

static void view_number_optional(void)
{
    make_view(0, 1);
    roles[1].flags |= BURN_ROLE_OPTIONAL;
}

static void view_numbers(void)
{
    make_view(0, 1);
    roles[1].flags |= BURN_ROLE_VARIADIC;
}

/* As many bytes as it may reach, in smaller elements: read with the operand's, it reaches further.
 */
static int32_t rule_halves(const burn_infer *a)
{
    burn_meta_copy_shape(&a->out[0], a->in[0]);
    a->out[0].dtype = BURN_F16;
    a->out[0].dims[0] *= 2;
    return BURN_OK;
}

static void view_dtype(void)
{
    make_view(0, 1);
    ops[1].infer = rule_halves;
}

static void infer_tied_dtype(void)
{
    ops[1].infer = rule_halves;
}

/* ---- decompositions */

static int32_t parts_shape(const burn_builder *b, const burn_expand *a)
{
    const int64_t dims[2] = {1, a->in_meta[0].dims[0]};
    a->out[0] = burn_b_reshape(b, a->in[0], 2, dims);
    return BURN_OK;
}

static int32_t parts_dtype(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_cast(b, a->in[0], BURN_F64);
    return BURN_OK;
}

static int32_t parts_scalar(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_num(b, a->in[0], 3.0);
    return BURN_OK;
}

static int32_t parts_none(const burn_builder *b, const burn_expand *a)
{
    (void)b;
    (void)a;
    return BURN_OK;
}

static int32_t parts_code(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_add(b, a->in[0], a->in[1]);
    return 77;
}

static int32_t parts_self(const burn_builder *b, const burn_expand *a)
{
    burn_value *in[2] = {a->in[0], a->in[1]};
    a->out[0] = burn_b_emit(b, burn_op_id_from_name(names[1]), NULL, in, 2);
    return BURN_OK;
}

/* Two calls of itself: without an end at the first of them, 2^n ways. */
static int32_t parts_twice(const burn_builder *b, const burn_expand *a)
{
    burn_value *in[2] = {a->in[0], a->in[1]};
    uint64_t id = burn_op_id_from_name(names[1]);
    burn_value *left = burn_b_emit(b, id, NULL, in, 2);
    burn_value *right = burn_b_emit(b, id, NULL, in, 2);
    a->out[0] = burn_b_add(b, left, right);
    return BURN_OK;
}

static int32_t parts_first(const burn_builder *b, const burn_expand *a)
{
    burn_value *in[2] = {a->in[0], a->in[1]};
    a->out[0] = burn_b_emit(b, burn_op_id_from_name(names[0]), NULL, in, 2);
    return BURN_OK;
}

SET(decompose_shape, ops[1].decompose, parts_shape)
SET(decompose_dtype, ops[1].decompose, parts_dtype)
SET(decompose_scalar, ops[1].decompose, parts_scalar)
SET(decompose_none, ops[1].decompose, parts_none)
SET(decompose_code, ops[1].decompose, parts_code)
SET(decompose_self, ops[1].decompose, parts_self)
SET(decompose_twice, ops[1].decompose, parts_twice)

static void decompose_pair(void)
{
    ops[0].decompose = parts_self;
    ops[1].decompose = parts_first;
}

static void only_by_parts(void)
{
    ops[1].vjp = NULL;
    ops[1].vjp_saves = NULL;
}

static void taped_shape(void)
{
    only_by_parts();
    ops[1].decompose = parts_shape;
}

/* ---- gradients */

static int32_t slope_shape(const burn_builder *b, const burn_vjp *a)
{
    const int64_t dims[1] = {a->in_meta[0].dims[0] + 2};
    a->grad_in[0] = a->wanted[0] ? burn_b_fill(b, BURN_F32, 1, dims, 1.0) : NULL;
    return BURN_OK;
}

static int32_t slope_dtype(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = a->wanted[0] ? burn_b_cast(b, a->grad_out[0], BURN_F64) : NULL;
    return BURN_OK;
}

static int32_t slope_scalar(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = a->wanted[0] ? burn_b_num(b, a->grad_out[0], 1.0) : NULL;
    return BURN_OK;
}

static int32_t slope_unwanted(const burn_builder *b, const burn_vjp *a)
{
    (void)b;
    a->grad_in[0] = a->grad_out[0];
    a->grad_in[1] = a->grad_out[0];
    return BURN_OK;
}

static int32_t slope_code(const burn_builder *b, const burn_vjp *a)
{
    (void)b;
    (void)a;
    return 4711;
}

/* It needs an input that it did not say it saves. */
static int32_t slope_not_saved(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = a->wanted[0] ? burn_b_mul(b, a->grad_out[0], a->in[1]) : NULL;
    return BURN_OK;
}

SET(vjp_shape, ops[1].vjp, slope_shape)

static void vjp_pointwise(void)
{
    ops[1].fuse = BURN_FUSE_POINTWISE;
    ops[1].vjp = slope_shape;
}

SET(vjp_dtype, ops[1].vjp, slope_dtype)
SET(vjp_scalar, ops[1].vjp, slope_scalar)
SET(vjp_unwanted, ops[1].vjp, slope_unwanted)
SET(vjp_code, ops[1].vjp, slope_code)
SET(vjp_not_saved, ops[1].vjp, slope_not_saved)

static void no_gradient(void)
{
    no_way();
    ops[1].no_vjp = "its author had no time";
}

static void view_no_gradient(void)
{
    make_view(0, 1);
    no_gradient();
}

/* ---- rows */

static void row_slots(void)
{
    build_rows("flex", ops[1].id);
    rows[0].n_slots = 2;
}

/* Its row is for an op of another extension, which is not there yet when it is loaded. */
static void row_foreign(void)
{
    build_rows("flex", burn_op_id_from_name("healthy.op"));
    rows[0].n_slots = 2;
}

/* Its samples log: the callback of the application may call anything. */
static int32_t samples_that_log(uint32_t i, burn_sample *out)
{
    host->log(BURN_LOG_WARN, own_id, "samples are asked for");
    return samples(i, out);
}

SET(talks, ops[1].samples, samples_that_log)

static void contract(void)
{
    build_rows("flex", ops[1].id);
    row_sets[0].contract = 99;
}

/* Rows for a core op, which change what it computes: a test can see which row was taken. */
static void takes_add(void)
{
    build_rows("flex", BURN_OP_ADD);
}

static int32_t refuse(const burn_call *call)
{
    return burn_plugin_fail(call->err, BURN_E_UNSUPPORTED, "its memory is elsewhere");
}

/* Right, but not to the bits of the step over lines that flex has: what its flag promises. */
static int32_t launch_softmax(const burn_call *call)
{
    const burn_operand *x = burn_call_operand(call, 0);
    const float *from = x->data;
    float *to = burn_call_operand(call, 1)->data;
    int64_t n = x->dims[x->rank - 1];
    int64_t all = n;
    for (uint32_t d = 0; d + 1u < x->rank; d++) {
        all *= x->dims[d];
    }
    for (int64_t at = 0; at < all; at += n) {
        double sum = 0.0;
        for (int64_t k = 0; k < n; k++) {
            sum += exp((double)from[at + k]);
        }
        for (int64_t k = 0; k < n; k++) {
            to[at + k] = (float)(exp((double)from[at + k]) / sum);
        }
    }
    return BURN_OK;
}

static int32_t only_last_axis(const burn_call *call)
{
    const burn_attrs_axis *a = call->attrs;
    return a->axis + 1 == burn_call_operand(call, 0)->rank ? BURN_OK : BURN_E_UNSUPPORTED;
}

static void takes_softmax(void)
{
    build_rows("flex", BURN_OP_SOFTMAX);
    rows[0].n_slots = 2;
    rows[0].flags |= BURN_ROW_LINES;
    rows[0].check = only_last_axis;
    rows[0].launch = launch_softmax;
}

/* The same of the step over columns: it adds from the last row on. */
static int32_t launch_sum(const burn_call *call)
{
    const burn_operand *x = burn_call_operand(call, 0);
    const float *from = x->data;
    float *to = burn_call_operand(call, 1)->data;
    for (int64_t k = 0; k < x->dims[1]; k++) {
        to[k] = 0.0F;
        for (int64_t r = x->dims[0]; r-- > 0;) {
            to[k] += from[r * x->dims[1] + k];
        }
    }
    return BURN_OK;
}

static int32_t only_first_of_two(const burn_call *call)
{
    const burn_attrs_axes *a = call->attrs;
    int fits = burn_call_operand(call, 0)->rank == 2 && a->n_axes == 1 && a->axes[0] == 0;
    return fits ? BURN_OK : BURN_E_UNSUPPORTED;
}

static void takes_sum(void)
{
    build_rows("flex", BURN_OP_SUM);
    rows[0].n_slots = 2;
    rows[0].flags |= BURN_ROW_COLUMNS;
    rows[0].check = only_first_of_two;
    rows[0].launch = launch_sum;
}

/* On another backend the list of rows grows as well, by one that is never taken. */
static void takes_mul(void)
{
    build_rows("flex", BURN_OP_MUL);
    rows[1] = rows[0];
    rows[1].check = refuse;
    row_sets[1] = row_sets[0];
    row_sets[1].backend = "mock";
    row_sets[1].rows = &rows[1];
    plugin.n_row_sets = 2;
}

/* ---- what crashes, or fails without a word: for the conformance tool ------------------------- */

static int32_t eval_without_text(const burn_eval *a)
{
    (void)a;
    return BURN_E_DATA;
}

static int32_t eval_aborts(const burn_eval *a)
{
    (void)a;
    (void)raise(SIGABRT);
    return BURN_OK;
}

static int32_t launch_crashes(const burn_call *call)
{
    (void)call;
    (void)raise(SIGSEGV);
    return BURN_OK;
}

SET(eval_silent, ops[1].eval, eval_without_text)
SET(eval_abort, ops[1].eval, eval_aborts)

static void launch_crash(void)
{
    build_rows("flex", ops[1].id);
    rows[0].launch = launch_crashes;
}

#define ROW(name) STUB_DEFECT(name)
static const stub_defect defects[] = {
    ROW(role_flags),
    ROW(role_name),
    ROW(role_tie),
    ROW(role_tie_out),
    ROW(role_variadic_first),
    ROW(role_variadic_out),
    ROW(role_scalar_out),
    ROW(role_stride),
    ROW(state_is_pure),
    ROW(saves_null),
    ROW(no_eval),
    ROW(no_samples),
    ROW(no_outputs),
    ROW(many_inputs),
    ROW(unknown_flags),
    ROW(unknown_effect),
    ROW(unknown_fuse),
    ROW(revision_0),
    ROW(view_null),
    ROW(attrs_head),
    ROW(bad_name),
    ROW(clash_core),
    ROW(id_core),
    ROW(saves_range),
    ROW(no_way),
    ROW(pointwise_outputs),
    ROW(attr_offset),
    ROW(attr_type),
    ROW(attr_size),
    ROW(attr_overlap),
    ROW(attr_list),
    ROW(state_no_alias),
    ROW(alias_range),
    ROW(alias_kind),
    ROW(alias_twice),
    ROW(alias_not_state),
    ROW(state_shape),
    ROW(samples_endless),
    ROW(samples_rank),
    ROW(samples_dims),
    ROW(samples_operands),
    ROW(samples_none),
    ROW(infer_other_float),
    ROW(infer_rank),
    ROW(infer_negative),
    ROW(infer_huge),
    ROW(infer_dtype),
    ROW(infer_no_dtype),
    ROW(infer_kind),
    ROW(infer_code),
    ROW(infer_pointwise),
    ROW(view_behind),
    ROW(view_before),
    ROW(view_far),
    ROW(view_optional),
    ROW(view_tensor),
    ROW(view_number_optional),
    ROW(view_numbers),
    ROW(view_dtype),
    ROW(infer_tied_dtype),
    ROW(decompose_shape),
    ROW(decompose_dtype),
    ROW(decompose_scalar),
    ROW(decompose_none),
    ROW(decompose_code),
    ROW(decompose_self),
    ROW(decompose_twice),
    ROW(decompose_pair),
    ROW(taped_shape),
    ROW(only_by_parts),
    ROW(vjp_shape),
    ROW(vjp_pointwise),
    ROW(vjp_dtype),
    ROW(vjp_scalar),
    ROW(vjp_unwanted),
    ROW(vjp_code),
    ROW(vjp_not_saved),
    ROW(no_gradient),
    ROW(view_no_gradient),
    ROW(row_slots),
    ROW(row_foreign),
    ROW(talks),
    ROW(contract),
    ROW(eval_silent),
    ROW(eval_abort),
    ROW(launch_crash),
    ROW(takes_add),
    ROW(takes_mul),
    ROW(takes_softmax),
    ROW(takes_sum),
    {"foreign_prefix", foreign_prefix},
    {"longer_prefix", longer_prefix},
    {"thief", thief},
    {NULL, NULL},
};

static const stub_defect *const lists[] = {defects, stub_bounds_defects, stub_claims_defects};

static void apply(const stub_defect *list)
{
    for (; list->name != NULL; list++) {
        if (strcmp(list->name, own_id) == 0) {
            list->apply();
        }
    }
}

__attribute__((visibility("default"))) const burn_plugin *BURN_CALL
burn_plugin_query(uint32_t host_oldest, uint32_t host_newest, const burn_host *given, burn_err *err)
{
    static const burn_magic magic = BURN_MAGIC_INIT;
    find_own_id(own_id, sizeof(own_id));
    BURN_INIT(&plugin, burn_plugin);
    build_ops();
    for (size_t i = 0; i < BURN_COUNT(lists); i++) {
        apply(lists[i]);
    }
    plugin.magic = magic;
    plugin.id = own_id;
    plugin.version = "1.2.3";
    plugin.ops = ops;
    plugin.n_ops = 2;
    plugin.op_stride = (uint32_t)sizeof(burn_op_def);
    return burn_plugin_answer(host_oldest, host_newest, given, &host, &plugin, err);
}
