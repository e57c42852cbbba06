/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * lines.c - an op over lines (BURN_FUSE_LINES), a loss that reduces, or a reduction over the rows,
 * as the step of a fused program: the bits of the op alone.
 *
 * A row with BURN_ROW_LINES or BURN_ROW_COLUMNS promises this of the backend's row of
 * BURN_OP_FUSED, and the core puts calls into groups because of it. Each sample is tried with its
 * own size and with others, a reduction with planes of its own, since kernels take lines of
 * different lengths in different ways. The program is written here, by the format of burn/fused.h.
 * Where no row takes it the core runs the op itself, which is right, too.
 */
#include "conformance.h"

#include <burn/fused.h>
#include <burn/op_attrs.h>

/* Sizes that take the place of the sample's first one; 0: it stays. */
static const int64_t sizes[] = {0, 1, 67, 1030};
/* Rows and columns, the last ones many enough to be shared out. */
static const int64_t planes[][2] = {{2, 8}, {67, 33}, {70, 1030}, {2100, 33}};

static int is_loss(const burn_op_def *def)
{
    return def->fuse == BURN_FUSE_REDUCE && def->attrs_size == sizeof(burn_attrs_loss);
}

static int reduces_axes(const burn_op_def *def)
{
    return def->fuse == BURN_FUSE_REDUCE && def->attrs_size == sizeof(burn_attrs_axes) &&
           def->n_in == 1;
}

/* The attribute that says what a line is, or whether a loss reduces. */
static const burn_attr *line_attr(const burn_op_def *def)
{
    for (uint32_t i = 0; i < def->n_attrs; i++) {
        const char *row = (const char *)def->attrs + (size_t)i * def->attr_stride;
        const burn_attr *a = (const burn_attr *)(const void *)row;
        if (strcmp(a->name, is_loss(def) ? "reduction" : "axis") == 0 ||
            strcmp(a->name, "n_axes") == 0) {
            return a;
        }
    }
    return NULL;
}

/* Elements of a line, and the attributes of the step; 0: lines go along another axis. */
static int64_t describe_line(const conf_case *c, unsigned char *attrs)
{
    const burn_attr *a = line_attr(c->def);
    const burn_meta *x = &c->in[0].meta;
    const int64_t axis = 1;
    const uint32_t one = 1;
    int64_t given = 0;
    uint32_t n = 1;
    memcpy(attrs, c->sample.attrs, c->sample.attrs_size);
    if (is_loss(c->def)) {
        memcpy(&n, attrs + a->offset, sizeof(n));
        return n == BURN_REDUCTION_NONE ? 0 : conf_count(x);
    }
    if (a->type == BURN_ATTR_I64) {
        memcpy(&given, attrs + a->offset, sizeof(given));
        memcpy(attrs + a->offset, &axis, sizeof(axis));
        n = given + 1 == x->rank;
    } else {
        memcpy(&n, attrs + a->offset, sizeof(n));
        memcpy(attrs + a->offset, &one, sizeof(one));
    }
    int64_t length = n > 0 && n <= x->rank ? 1 : 0;
    for (uint32_t k = 0; k < n && length > 0; k++) {
        length *= x->dims[x->rank - 1u - k];
    }
    return length;
}

/* The program of one step. Returns its size. */
static uint32_t write_program(const conf_case *c, const unsigned char *attrs, uint64_t *out)
{
    burn_fused_input inputs[CONF_MAX_IN];
    burn_fused_program p;
    burn_fused_step step;
    char *bytes = (char *)out;
    uint16_t n = 0;
    memset(&p, 0, sizeof(p));
    memset(&step, 0, sizeof(step));
    memset(inputs, 0, sizeof(inputs));
    step.op = c->def->id;
    step.n_args = (uint8_t)c->n_in;
    step.dtype = c->out[0].meta.dtype;
    step.space = is_loss(c->def)        ? BURN_FUSED_ROW
                 : reduces_axes(c->def) ? BURN_FUSED_COLUMN
                                        : BURN_FUSED_FULL;
    for (uint32_t i = 0; i < BURN_FUSED_MAX_ARGS; i++) {
        int there = i < c->n_in && c->in[i].meta.kind != BURN_ABSENT;
        step.args[i] = there ? n : (uint16_t)BURN_FUSED_NONE;
        if (there) {
            int is_line = (conf_role_in(c->def, i)->flags & BURN_ROLE_LINE) != 0;
            inputs[n].dtype = c->in[i].meta.dtype;
            inputs[n++].space = is_line ? BURN_FUSED_WHOLE : BURN_FUSED_FULL;
        }
    }
    inputs[n] = (burn_fused_input){BURN_I64, BURN_FUSED_ONE, 1, 0};
    p.row_input = n++;
    p.n_in = n;
    p.n_out = 1;
    p.n_steps = 1;
    p.inputs_offset = (uint16_t)sizeof(p);
    p.outputs_offset = (uint16_t)(p.inputs_offset + n * sizeof(inputs[0]));
    p.steps_offset = (uint16_t)((p.outputs_offset + sizeof(uint16_t) + 7u) / 8u * 8u);
    step.attrs_offset = (uint16_t)(p.steps_offset + sizeof(step));
    step.attrs_size = (uint16_t)c->sample.attrs_size;
    p.head.size = (step.attrs_offset + c->sample.attrs_size + 7u) / 8u * 8u;
    p.head.revision = BURN_FUSED_VERSION_LINES;
    memset(bytes, 0, p.head.size);
    memcpy(bytes, &p, sizeof(p));
    memcpy(bytes + p.inputs_offset, inputs, n * sizeof(inputs[0]));
    memcpy(bytes + p.outputs_offset, &n, sizeof(n)); /* the step's value comes behind the inputs */
    memcpy(bytes + p.steps_offset, &step, sizeof(step));
    memcpy(bytes + step.attrs_offset, attrs, c->sample.attrs_size);
    return p.head.size;
}

static int32_t run_step(conf_runner *runner, const conf_case *c, int64_t length,
                        const unsigned char *attrs, conf_value *out, burn_err *err)
{
    uint64_t program[BURN_FUSED_MAX_BYTES / sizeof(uint64_t)];
    burn_value *in[CONF_MAX_IN + 1] = {NULL};
    burn_value *result = NULL;
    uint32_t n = 0;
    uint32_t size = write_program(c, attrs, program);
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (c->in[i].meta.kind != BURN_ABSENT) {
            in[n++] = conf_make_in(runner, &c->in[i], c->layout, i);
        }
    }
    in[n++] = runner->builder.immediate_int(runner->builder.ctx, BURN_I64, length);
    (void)runner->builder.emit(runner->builder.ctx, BURN_OP_FUSED, program, size, in, n, &result,
                               1);
    return runner->read(runner, result, c->arena, out, err);
}

/* 0: it failed, and was reported. */
static int check_one(conf_report *report, conf_runner *runner, const conf_case *c, int64_t length,
                     const unsigned char *attrs)
{
    conf_value alone[CONF_MAX_OUT];
    conf_value step;
    burn_err err = BURN_ERR_INIT;
    int32_t code = conf_run(runner, c, alone, &err);
    if (code == BURN_OK) {
        code = run_step(runner, c, length, attrs, &step, &err);
    }
    if (code != BURN_OK) {
        conf_failed(report, c, "step", "", code, err.text);
        return 0;
    }
    /* A loss has no dims alone, and as a step may have one of size 1; columns have one. */
    step.meta = step.n == alone[0].n ? alone[0].meta : step.meta;
    if (!conf_same_bits(c->arena, &step, &alone[0])) {
        conf_result(report, c, "step", "", CONF_FAIL,
                    "%s of %lld: as the step of a program it gives other bits than alone",
                    reduces_axes(c->def) ? "rows" : "lines", (long long)length);
        return 0;
    }
    return 1;
}

/* Over the first dim of two, which is kept; the step has the same attributes. */
static void check_columns(conf_report *report, conf_runner *runner, const conf_case *c)
{
    static conf_case other; /* large */
    const uint32_t n = sizeof(planes) / sizeof(planes[0]);
    burn_attrs_axes a;
    memcpy(&a, c->sample.attrs, sizeof(a));
    memset(a.axes, 0, sizeof(a.axes));
    a.n_axes = 1;
    a.keepdims = 1;
    for (uint32_t k = 0; k < n; k++) {
        other = *c;
        memcpy(other.sample.attrs, &a, sizeof(a));
        other.in[0].meta.rank = 2;
        memcpy(other.in[0].meta.dims, planes[k], sizeof(planes[k]));
        conf_case_inputs(&other);
        if (!check_one(report, runner, &other, planes[k][1], (const unsigned char *)&a)) {
            return;
        }
    }
    conf_result(report, c, "step", "", CONF_PASS, "%u sizes", (unsigned)n);
}

void conf_check_lines(conf_report *report, conf_runner *runner, conf_case *c)
{
    static conf_case other; /* large */
    unsigned char attrs[BURN_MAX_ATTRS];
    burn_meta out[CONF_MAX_OUT];
    burn_err err = BURN_ERR_INIT;
    uint32_t n = 0;
    if (c->def->id >> 63 == 0 && reduces_axes(c->def)) {
        if (c->sample_index == conf_first_good_sample(c->def)) {
            check_columns(report, runner, c);
        }
        return;
    }
    if ((c->def->fuse != BURN_FUSE_LINES && !is_loss(c->def)) || c->def->id >> 63 != 0) {
        return;
    }
    for (uint32_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        other = *c;
        int64_t from = sizes[k] > 0 ? conf_first_size(&other) : 0;
        if (from > 1) {
            conf_resize(&other, from, sizes[k]);
            conf_case_inputs(&other);
        } else if (sizes[k] > 0) {
            continue;
        }
        int64_t length = describe_line(&other, attrs);
        if (length < 1 || conf_count(&other.in[0].meta) == 0 ||
            conf_infer(other.def, other.sample.attrs, other.sample.attrs_size, other.in, other.n_in,
                       out, other.n_out, &err) != BURN_OK) {
            continue;
        }
        if (!check_one(report, runner, &other, length, attrs)) {
            return;
        }
        n++;
    }
    if (n > 0) {
        conf_result(report, c, "step", "", CONF_PASS, "%u sizes", (unsigned)n);
    }
}
