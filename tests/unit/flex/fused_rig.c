/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_rig.c - see fused_rig.h.
 */
#include "fused_rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing --------------------------------------------------------------------------------- */

static rig_value *new_value(rig *r, uint8_t dtype, uint8_t space)
{
    assert_true(r->n_values < RIG_VALUES);
    rig_value *v = &r->values[r->n_values++];
    memset(v, 0, sizeof(*v));
    v->dtype = dtype;
    v->space = space;
    return v;
}

static uint16_t add_immediate(rig *r, uint8_t dtype, double value)
{
    rig_value *v = new_value(r, dtype, BURN_FUSED_ONE);
    v->is_input = 1;
    v->is_immediate = 1;
    make_imm(&v->operand, dtype, value);
    make_imm(&v->dense, dtype, value);
    r->n_in++;
    return (uint16_t)(r->n_values - 1);
}

void rig_begin(rig *r, int64_t n_rows, int64_t length)
{
    memset(r, 0, sizeof(*r));
    r->n_rows = n_rows;
    r->length = length;
    r->n = length > 0 ? n_rows * length : n_rows;
    r->in_place = BURN_FUSED_NONE;
    if (length > 0) {
        uint16_t v = add_immediate(r, BURN_I64, (double)length);
        r->values[v].is_length = 1;
    }
}

void rig_end(rig *r)
{
    for (uint16_t v = 0; v < r->n_values; v++) {
        unmake(&r->values[v].operand);
        unmake(&r->values[v].dense);
    }
    for (uint16_t j = 0; j < r->n_out; j++) {
        if (j > 0 || r->in_place == BURN_FUSED_NONE) {
            unmake(&r->results[j]);
        }
    }
}

static int64_t count_of(const rig *r, uint8_t space)
{
    return space == BURN_FUSED_FULL  ? r->n
           : space == BURN_FUSED_ROW ? r->n_rows
           : space == BURN_FUSED_ONE ? 1
                                     : r->length;
}

static double random_value(const rig *r, uint8_t dtype)
{
    if (dtype == BURN_BOOL) {
        return next_random(0.0, 1.0) < 0.5 ? 1.0 : 0.0;
    }
    if (dtype < BURN_F16) {
        double low = dtype == BURN_U8 || dtype == BURN_U16 || dtype == BURN_U32 ||
                             dtype == BURN_U64 || r->divides
                         ? 1.0
                         : -9.0;
        return floor(next_random(low, 10.0));
    }
    double special = next_random(0.0, 200.0);
    if (special < 3.0) {
        return special < 1.0 ? (double)NAN : special < 2.0 ? (double)INFINITY : -0.0;
    }
    return next_random(-3.0, 3.0);
}

/* Lines and columns of `n` elements. */
static void cut_in_two(const rig *r, uint8_t space, int64_t dims[2])
{
    int64_t n = count_of(r, space);
    dims[0] = 1;
    dims[1] = n;
    if (space == BURN_FUSED_FULL && r->length > 0 && next_random(0.0, 1.0) < 0.5) {
        dims[0] = r->n_rows;
        dims[1] = r->length;
        return;
    }
    for (int64_t d = 2; d <= 200 && d < n; d++) {
        if (n % d == 0 && next_random(0.0, 1.0) < 0.5) {
            dims[0] = d;
            dims[1] = n / d;
        }
    }
}

static void lay_out(const rig *r, rig_value *v)
{
    int64_t dims[2];
    cut_in_two(r, v->space, dims);
    int64_t made[2] = {dims[0], dims[1]};
    if (v->layout == RIG_TURNED) {
        made[0] = dims[1];
        made[1] = dims[0];
    } else if (v->layout == RIG_COLUMN) {
        made[1] = 1;
    } else if (v->layout == RIG_LINE) {
        made[0] = 1;
    }
    make(&v->operand, v->dtype, 2, made);
    for (int64_t k = 0; k < numel(&v->operand); k++) {
        put(&v->operand, k, random_value(r, v->dtype));
    }
    if (v->layout == RIG_TURNED) {
        swap_axes(&v->operand, 0, 1);
    } else if (v->layout == RIG_SPREAD) {
        restride(&v->operand, 2);
    } else if (v->layout == RIG_MIRRORED) {
        restride(&v->operand, -1);
    } else if (v->layout == RIG_COLUMN) {
        stretch(&v->operand, 1, dims[1]);
    } else if (v->layout == RIG_LINE) {
        stretch(&v->operand, 0, dims[0]);
    }
}

uint16_t rig_input(rig *r, uint8_t dtype, uint8_t space, rig_layout layout)
{
    rig_value *v = new_value(r, dtype, space);
    int64_t n = count_of(r, space);
    v->is_input = 1;
    v->layout = n > 0 ? layout : RIG_DENSE;
    make1(&v->dense, dtype, n);
    if (v->layout != RIG_DENSE && space != BURN_FUSED_ONE) {
        lay_out(r, v);
    } else {
        make1(&v->operand, dtype, n);
        for (int64_t k = 0; k < n; k++) {
            put(&v->operand, k, random_value(r, dtype));
        }
    }
    for (int64_t k = 0; k < n; k++) {
        put(&v->dense, k, get(&v->operand, k));
    }
    v->is_length = space == BURN_FUSED_WHOLE;
    if (space == BURN_FUSED_ONE) {
        v->operand.o.layout = BURN_LAYOUT_SCALAR;
        v->operand.strides[0] = 0;
    }
    r->n_in++;
    return (uint16_t)(r->n_values - 1);
}

uint16_t rig_immediate(rig *r, uint8_t dtype, double value)
{
    return add_immediate(r, dtype, dtype == BURN_BOOL ? (value > 0.0 ? 1.0 : 0.0) : fabs(value));
}

static int reduces(uint64_t op)
{
    return (op >= BURN_OP_SUM && op <= BURN_OP_LOGSUMEXP) || op == BURN_OP_MSE_LOSS;
}

uint16_t rig_step(rig *r, uint64_t op, uint8_t dtype, const uint16_t *args, uint32_t n_args,
                  const void *attrs, size_t attrs_size)
{
    burn_fused_step *s = &r->steps[r->n_steps++];
    const burn_attrs_axes *axes = attrs;
    uint8_t space = BURN_FUSED_ONE;
    if (reduces(op)) {
        space = axes->axes[0] == 0 ? BURN_FUSED_COLUMN : BURN_FUSED_ROW;
    }
    memset(s, 0, sizeof(*s));
    s->op = op;
    s->dtype = dtype;
    s->n_args = (uint8_t)n_args;
    for (uint32_t i = 0; i < BURN_FUSED_MAX_ARGS; i++) {
        s->args[i] = i < n_args ? args[i] : BURN_FUSED_NONE;
        if (s->args[i] != BURN_FUSED_NONE && !reduces(op) &&
            r->values[s->args[i]].space < space) {
            space = r->values[s->args[i]].space;
        }
    }
    s->space = space == BURN_FUSED_ONE ? BURN_FUSED_FULL : space;
    if (attrs != NULL) {
        s->attrs_offset = r->attrs_size; /* from the program on, once it is written */
        s->attrs_size = (uint16_t)attrs_size;
        memcpy((char *)r->attrs + r->attrs_size, attrs, attrs_size);
        r->attrs_size = (uint16_t)(r->attrs_size + (attrs_size + 7) / 8 * 8);
    }
    rig_value *v = new_value(r, dtype, s->space);
    int64_t dims[2] = {r->n_rows, r->length};
    if (s->space == BURN_FUSED_FULL && r->length > 0) {
        make(&v->dense, dtype, 2, dims);
    } else {
        make1(&v->dense, dtype, count_of(r, s->space));
    }
    return (uint16_t)(r->n_values - 1);
}

static uint16_t add_reduction(rig *r, uint64_t op, uint16_t x, int64_t axis)
{
    burn_attrs_axes a;
    memset(&a, 0, sizeof(a));
    a.head.size = (uint32_t)sizeof(a);
    a.head.revision = 1;
    a.n_axes = 1;
    a.keepdims = 1;
    a.axes[0] = axis;
    a.correction = op == BURN_OP_VAR ? 1 : 0;
    return rig_step(r, op, r->values[x].dtype, &x, 1, &a, sizeof(a));
}

uint16_t rig_lines(rig *r, uint64_t op, uint16_t x, const uint16_t others[2])
{
    burn_attrs_axis axis;
    burn_attrs_norm norm;
    const uint16_t args[3] = {x, others[0], others[1]};
    int is_norm = op == BURN_OP_LAYER_NORM;
    memset(&axis, 0, sizeof(axis));
    memset(&norm, 0, sizeof(norm));
    axis.head.size = (uint32_t)sizeof(axis);
    axis.head.revision = 1;
    axis.axis = 1;
    norm.head.size = (uint32_t)sizeof(norm);
    norm.head.revision = 1;
    norm.eps = 1e-3;
    norm.n_axes = 1;
    uint32_t n = is_norm ? 3 : others[0] != BURN_FUSED_NONE ? 2 : 1;
    return rig_step(r, op, r->values[x].dtype, args, n, is_norm ? (void *)&norm : (void *)&axis,
                    is_norm ? sizeof(norm) : sizeof(axis));
}

uint16_t rig_fold(rig *r, uint64_t op, uint16_t x)
{
    return add_reduction(r, op, x, 1);
}

uint16_t rig_column(rig *r, uint64_t op, uint16_t x)
{
    return add_reduction(r, op, x, 0);
}

void rig_outputs(rig *r, uint32_t more)
{
    r->n_out = 0;
    for (uint16_t v = r->n_in; v < r->n_values; v++) {
        if (r->values[v].space == BURN_FUSED_COLUMN || v + 1 == r->n_values) {
            r->outputs[r->n_out++] = v;
        }
    }
    for (uint32_t k = 0; k < more && r->n_steps > 1; k++) {
        uint16_t v = (uint16_t)(r->n_in + (uint16_t)next_random(0.0, r->n_steps - 1.0));
        int known = 0;
        for (uint16_t j = 0; j < r->n_out; j++) {
            known |= r->outputs[j] == v;
        }
        if (!known) {
            r->outputs[r->n_out++] = v;
        }
    }
}

/* ---- running --------------------------------------------------------------------------------- */

const burn_row *rig_row(uint64_t op, uint32_t index)
{
    const burn_plugin *plugin = fixture_plugin();
    for (uint32_t s = 0; s < plugin->n_row_sets; s++) {
        const burn_row_set *set = &plugin->row_sets[s];
        for (uint32_t i = 0; i < set->n_rows; i++) {
            if (set->rows[i].op == op && index-- == 0) {
                return &set->rows[i];
            }
        }
    }
    return NULL;
}

/* The bytes of the program. Returns their number. */
static uint32_t write_program(const rig *r, uint64_t *out)
{
    burn_fused_program *p = (burn_fused_program *)(void *)out;
    char *bytes = (char *)out;
    memset(out, 0, BURN_FUSED_MAX_BYTES);
    p->head.revision = BURN_FUSED_VERSION + r->versions_ahead;
    p->n_in = r->n_in;
    p->n_out = r->n_out;
    p->n_steps = r->n_steps;
    p->row_input = r->length > 0 ? 0 : BURN_FUSED_NONE;
    p->inputs_offset = (uint16_t)sizeof(*p);
    p->outputs_offset = (uint16_t)(p->inputs_offset + r->n_in * sizeof(burn_fused_input));
    size_t at = p->outputs_offset + r->n_out * sizeof(uint16_t);
    p->steps_offset = (uint16_t)((at + 7) / 8 * 8);
    size_t attrs_at = p->steps_offset + r->n_steps * sizeof(burn_fused_step);
    p->head.size = (uint32_t)(attrs_at + r->attrs_size);
    assert_true(p->head.size <= BURN_FUSED_MAX_BYTES);
    burn_fused_input *in = (burn_fused_input *)(void *)(bytes + p->inputs_offset);
    burn_fused_step *steps = (burn_fused_step *)(void *)(bytes + p->steps_offset);
    for (uint16_t i = 0; i < r->n_in; i++) {
        in[i].dtype = r->values[i].dtype;
        in[i].space = r->values[i].space;
        in[i].immediate = r->values[i].is_immediate;
    }
    memcpy(bytes + p->outputs_offset, r->outputs, r->n_out * sizeof(uint16_t));
    memcpy(steps, r->steps, r->n_steps * sizeof(*steps));
    for (uint16_t s = 0; s < r->n_steps; s++) {
        steps[s].attrs_offset =
            steps[s].attrs_size > 0 ? (uint16_t)(steps[s].attrs_offset + attrs_at) : 0;
    }
    memcpy(bytes + attrs_at, r->attrs, r->attrs_size);
    return p->head.size;
}

static void make_results(rig *r)
{
    for (uint16_t j = 0; j < r->n_out; j++) {
        const rig_value *v = &r->values[r->outputs[j]];
        if (j == 0 && r->in_place != BURN_FUSED_NONE) {
            r->results[j] = r->values[r->in_place].operand;
            continue;
        }
        unmake(&r->results[j]);
        make1(&r->results[j], v->dtype, count_of(r, v->space));
    }
}

int32_t rig_run(rig *r, uint32_t index)
{
    uint64_t program[BURN_FUSED_MAX_BYTES / 8];
    burn_operand operands[BURN_MAX_OPERANDS];
    burn_call call;
    burn_prepared prepared;
    const burn_row *row = rig_row(BURN_OP_FUSED, index);
    memset(&call, 0, sizeof(call));
    BURN_INIT(&prepared, burn_prepared);
    make_results(r);
    for (uint16_t i = 0; i < r->n_in; i++) {
        tensor *t = &r->values[i].operand;
        t->o.dims = t->dims;
        t->o.strides = t->strides;
        operands[i] = t->o;
    }
    for (uint16_t j = 0; j < r->n_out; j++) {
        tensor *t = &r->results[j];
        t->o.dims = t->dims;
        t->o.strides = t->strides;
        operands[r->n_in + j] = t->o;
    }
    call.struct_size = (uint32_t)sizeof(call);
    call.operand_stride = (uint32_t)sizeof(burn_operand);
    call.n_in = r->n_in;
    call.n_out = r->n_out;
    call.operands = operands;
    call.attrs = program;
    call.attrs_size = write_program(r, program);
    call.err = &fixture_error;
    fixture_error.text[0] = '\0';
    int32_t rc = row->prepare(&call, &prepared);
    if (rc != BURN_OK) {
        return rc;
    }
    if (r->in_place != BURN_FUSED_NONE && r->n_out == 1) {
        assert_true((prepared.in_place_mask >> r->in_place & 1) != 0);
    }
    call.state = prepared.state;
    rc = row->launch(&call);
    row->release(prepared.state);
    return rc;
}

/* ---- one by one ------------------------------------------------------------------------------ */

/* A value as an operand of an op whose result has that space. */
static tensor seen_as(const rig *r, const rig_value *v, uint8_t space)
{
    tensor t = v->dense;
    t.o.rank = space == BURN_FUSED_FULL && r->length > 0 ? 2 : 1;
    t.dims[0] = space == BURN_FUSED_FULL && r->length == 0 ? r->n : r->n_rows;
    t.dims[0] = space == BURN_FUSED_COLUMN ? r->length : t.dims[0];
    t.dims[1] = r->length;
    t.strides[0] = t.o.rank == 2 ? r->length : 1;
    t.strides[1] = 1;
    t.o.layout = BURN_LAYOUT_CONTIGUOUS;
    if (v->space == BURN_FUSED_WHOLE) {
        t.o.rank = 1;
        t.dims[0] = r->length;
        t.strides[0] = 1;
    } else if (v->space == BURN_FUSED_ONE) {
        t.strides[0] = 0;
        t.strides[1] = 0;
        t.o.layout = BURN_LAYOUT_SCALAR;
        t.o.data = v->is_immediate ? (void *)(uintptr_t)v->dense.immediate : v->dense.memory;
    } else if (v->space != space) {
        t.strides[0] = 1;
        t.strides[1] = 0;
        t.o.layout = BURN_LAYOUT_STRIDED;
    }
    return t;
}

static int32_t run_op(rig *r, uint16_t index)
{
    const burn_fused_step *s = &r->steps[index];
    rig_value *z = &r->values[r->n_in + index];
    uint8_t space = reduces(s->op) ? (uint8_t)BURN_FUSED_FULL : s->space;
    tensor seen[BURN_FUSED_MAX_ARGS];
    tensor *in[BURN_FUSED_MAX_ARGS];
    for (uint32_t i = 0; i < s->n_args; i++) {
        in[i] = &seen[i];
        if (s->args[i] == BURN_FUSED_NONE) {
            make_absent(&seen[i]);
        } else {
            seen[i] = seen_as(r, &r->values[s->args[i]], space);
        }
    }
    tensor out = seen_as(r, z, s->space);
    tensor *outs = &out;
    const void *attrs = s->attrs_size > 0 ? (char *)r->attrs + s->attrs_offset : NULL;
    return run(s->op, attrs, s->n_args, in, 1, &outs);
}

static int equal(const tensor *a, const tensor *b, int64_t k)
{
    size_t size = dtype_size(a->o.dtype);
    if (memcmp((const char *)a->o.data + (size_t)k * size,
               (const char *)b->memory + (size_t)k * size, size) == 0) {
        return 1;
    }
    return a->o.dtype >= BURN_F16 && isnan(get(a, k)) && isnan(get(b, k));
}

static void say_program(const rig *r)
{
    print_message("%lld rows of %lld\n", (long long)r->n_rows, (long long)r->length);
    for (uint16_t i = 0; i < r->n_in; i++) {
        print_message("  %u: input dtype %u space %u layout %d imm %d\n", i, r->values[i].dtype,
                      r->values[i].space, (int)r->values[i].layout, r->values[i].is_immediate);
    }
    for (uint16_t s = 0; s < r->n_steps; s++) {
        print_message("  %u: op %llu dtype %u space %u of %u %u %u\n", r->n_in + s,
                      (unsigned long long)r->steps[s].op, r->steps[s].dtype, r->steps[s].space,
                      r->steps[s].args[0], r->steps[s].args[1], r->steps[s].args[2]);
    }
    for (uint16_t j = 0; j < r->n_out; j++) {
        print_message("  output %u: %u\n", j, r->outputs[j]);
    }
}

static void compare(const rig *r)
{
    for (uint16_t j = 0; j < r->n_out; j++) {
        const rig_value *want = &r->values[r->outputs[j]];
        const tensor *got = &r->results[j];
        for (int64_t k = 0; k < numel(got); k++) {
            if (!equal(got, &want->dense, k)) {
                say_program(r);
                print_message("output %u element %lld: %g, want %g\n", j, (long long)k,
                              get(got, k), get(&want->dense, k));
                fail();
            }
        }
    }
}

int rig_check(rig *r)
{
    int32_t want = BURN_OK;
    for (uint16_t s = 0; s < r->n_steps && want == BURN_OK && r->n > 0; s++) {
        want = run_op(r, s);
    }
    assert_true(want == BURN_OK || want == BURN_E_DATA);
    int32_t got = rig_run(r, 0);
    if (got == BURN_E_UNSUPPORTED) {
        got = rig_run(r, 1);
    }
    if (got == BURN_E_UNSUPPORTED) {
        return 0;
    }
    if (got != want) {
        say_program(r);
        print_message("code %d, want %d: %s\n", got, want, fixture_error.text);
    }
    assert_int_equal(got, want);
    if (want == BURN_OK) {
        compare(r);
    }
    return 1;
}
