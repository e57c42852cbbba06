/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused.c - programs of `burn.fused`: the check and the printer. Writing them is fused_build.c.
 *
 * A program may come from a file: each section is compared with the real size before it is read,
 * sections lie one behind the other without gaps, and what a step gives is asked of its op's own
 * shape rule, with small shapes that stand for the spaces. Pure; no state. To add a rule: a
 * function of `rules` below, or one more line of check_step, and its test.
 */
#include "graph/fused.h"

#include "base/printer.h"
#include "ops/ask.h"
#include "ops/fused.h"
#include "ops/registry.h"
#include "ops/rules.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Dims that stand for FULL and ROW while shape rules are asked. */
#define ROWS   2
#define LENGTH 3

typedef struct check {
    const burn_fused_program *p;
    const char *bytes;
    size_t size;
    size_t end; /* of the attributes that were looked at so far */
    burn_err *err;
} check;

static const char *const space_names[] = {"full", "row", "one", "whole", "column"};

static int32_t wrong(const check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int32_t wrong(const check *c, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return burni_fail(c->err, BURN_E_FORMAT, "fused: %s", text);
}

/* ---- head and inputs ------------------------------------------------------------------------- */

static size_t align8(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

static int is_zero(const char *bytes, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (bytes[i] != 0) {
            return 0;
        }
    }
    return 1;
}

static int32_t check_head(check *c)
{
    if ((uintptr_t)c->bytes % 8 != 0) {
        return wrong(c, "the program's bytes are not at a multiple of 8");
    }
    if (c->bytes == NULL || c->size < sizeof(*c->p) || c->size > BURN_FUSED_MAX_BYTES) {
        return wrong(c, "%zu bytes; a program has %zu to %d", c->size, sizeof(*c->p),
                     BURN_FUSED_MAX_BYTES);
    }
    if (c->p->head.size != c->size) {
        return wrong(c, "the head says %u bytes, there are %zu", c->p->head.size, c->size);
    }
    if (c->p->head.revision == 0 || c->p->head.revision > BURN_FUSED_VERSION) {
        return wrong(c, "version %u; this library knows 1 to %d", c->p->head.revision,
                     BURN_FUSED_VERSION);
    }
    return c->p->zero == 0 ? BURN_OK : wrong(c, "the head's padding is %u, not 0", c->p->zero);
}

static int32_t check_counts(check *c)
{
    const burn_fused_program *p = c->p;
    uint32_t operands = (uint32_t)p->n_in + p->n_out;
    if (p->n_in == 0 || p->n_out == 0 || operands > BURN_MAX_OPERANDS) {
        return wrong(c, "%u inputs and %u outputs; at least one of each, %d together", p->n_in,
                     p->n_out, BURN_MAX_OPERANDS);
    }
    if (p->n_steps == 0 || p->n_steps > BURN_FUSED_MAX_STEPS) {
        return wrong(c, "%u steps; 1 to %d are possible", p->n_steps, BURN_FUSED_MAX_STEPS);
    }
    return BURN_OK;
}

/* Each section lies right behind the one before. */
static int32_t check_sections(check *c)
{
    const burn_fused_program *p = c->p;
    size_t inputs = sizeof(*p);
    size_t outputs = inputs + p->n_in * sizeof(burn_fused_input);
    size_t end = outputs + p->n_out * sizeof(uint16_t);
    size_t steps = align8(end);
    c->end = steps + p->n_steps * sizeof(burn_fused_step);
    if (p->inputs_offset != inputs || p->outputs_offset != outputs || p->steps_offset != steps) {
        return wrong(c, "inputs, outputs and steps at %u, %u, %u; they belong at %zu, %zu, %zu",
                     p->inputs_offset, p->outputs_offset, p->steps_offset, inputs, outputs, steps);
    }
    if (c->end > c->size) {
        return wrong(c, "the steps end at byte %zu of %zu", c->end, c->size);
    }
    return is_zero(c->bytes, end, steps) ? BURN_OK
                                         : wrong(c, "padding behind the outputs is not 0");
}

/* Is input i an operand of a step that takes whole inputs: a producer, or one over lines? */
static int is_taken_whole(const burn_fused_program *p, uint32_t i)
{
    int found = 0;
    for (uint32_t s = 0; s < p->n_steps; s++) {
        const burn_fused_step *step = &burn_fused_steps(p)[s];
        int is_first = s == 0 && burni_fused_has_producer(p);
        for (uint32_t k = 0; k < BURN_FUSED_MAX_ARGS; k++) {
            found |= k < step->n_args && step->args[k] == i &&
                     (is_first || burni_fused_takes_line(step, k));
        }
    }
    return found;
}

static int32_t check_input(const check *c, uint32_t i)
{
    const burn_fused_input *in = &burn_fused_inputs(c->p)[i];
    if (burn_dtype_size(in->dtype) == 0) {
        return wrong(c, "input %u has the unknown dtype %u", i, in->dtype);
    }
    if (in->space > BURN_FUSED_WHOLE || in->immediate > 1 || in->zero != 0) {
        return wrong(c, "input %u has space %u, immediate %u, padding %u; 3, 1, 0 are the most", i,
                     in->space, in->immediate, in->zero);
    }
    if (in->space == BURN_FUSED_WHOLE && !is_taken_whole(c->p, i)) {
        return wrong(c, "input %u is whole, but no operand of a producer in the first step, and "
                        "no line of a step over lines",
                     i);
    }
    if (in->immediate != 0 && in->space != BURN_FUSED_ONE) {
        return wrong(c, "input %u is an immediate of space %s; it must be one", i,
                     space_names[in->space]);
    }
    if (in->space == BURN_FUSED_ROW && c->p->row_input == BURN_FUSED_NONE) {
        return wrong(c, "input %u is per row, but no input is the length of a row", i);
    }
    return BURN_OK;
}

static int32_t check_inputs(check *c)
{
    const burn_fused_program *p = c->p;
    const burn_fused_input *inputs = burn_fused_inputs(p);
    int full = burni_fused_has_producer(p);
    for (uint32_t i = 0; i < p->n_in; i++) {
        int32_t rc = check_input(c, i);
        if (rc != BURN_OK) {
            return rc;
        }
        full |= inputs[i].space == BURN_FUSED_FULL;
    }
    if (!full) {
        return wrong(c, "no input is full, so nothing says how many positions there are");
    }
    if (p->row_input == BURN_FUSED_NONE) {
        return BURN_OK;
    }
    if (p->row_input >= p->n_in) {
        return wrong(c, "the length of a row is input %u of %u", p->row_input, p->n_in);
    }
    const burn_fused_input *length = &inputs[p->row_input];
    return length->immediate != 0 && length->dtype == BURN_I64
               ? BURN_OK
               : wrong(c, "the length of a row, input %u, must be an immediate i64", p->row_input);
}

/* ---- steps ----------------------------------------------------------------------------------- */

typedef struct value {
    uint8_t dtype;
    uint8_t space;
    uint8_t immediate;
} value;

static value value_at(const burn_fused_program *p, uint32_t v)
{
    value out;
    if (v < p->n_in) {
        const burn_fused_input *in = &burn_fused_inputs(p)[v];
        out = (value){in->dtype, in->space, in->immediate};
    } else {
        const burn_fused_step *step = &burn_fused_steps(p)[v - p->n_in];
        out = (value){step->dtype, step->space, 0};
    }
    return out;
}

static const char *dtype_text(uint8_t dtype)
{
    return burn_dtype_size(dtype) != 0 ? burn_dtype_name(dtype) : "of no dtype";
}

static int32_t check_op(const check *c, uint32_t s, const burni_op **out)
{
    const burn_fused_step *step = &burn_fused_steps(c->p)[s];
    const burni_op *op = burni_op_find(step->op);
    if (op == NULL || op->plugin != NULL) {
        return wrong(c, "step %u is op %" PRIu64 ", which is none of the core's", s, step->op);
    }
    const burn_op_def *d = &op->def;
    if (d->fuse == BURN_FUSE_EPILOGUE_HOST && s > 0) {
        return wrong(c, "step %u (%s): only the first step may be a producer", s, d->name);
    }
    uint32_t kind = d->fuse;
    if (kind == BURN_FUSE_EPILOGUE_HOST && !burni_fused_has_producer(c->p)) {
        kind = BURN_FUSE_NONE;
    }
    int is_late = kind == BURN_FUSE_LINES || burni_is_loss(d);
    if (is_late && c->p->head.revision < BURN_FUSED_VERSION_LINES) {
        return wrong(c, "step %u (%s): goes over lines, which version %u does not know", s, d->name,
                     c->p->head.revision);
    }
    if (kind == BURN_FUSE_LINES && c->p->row_input == BURN_FUSED_NONE) {
        return wrong(c, "step %u (%s): over lines, but no input is the length of a row", s,
                     d->name);
    }
    if (!burni_fused_takes(op, kind)) {
        return wrong(c, "step %u (%s): neither maps, reduces nor generates elements, nor goes over "
                        "lines", s, d->name);
    }
    if (step->n_args != d->n_in) {
        return wrong(c, "step %u (%s): %u operands; %u expected", s, d->name, step->n_args,
                     d->n_in);
    }
    int is_space = step->space <= BURN_FUSED_ROW || step->space == BURN_FUSED_COLUMN;
    if (step->zero != 0 || !is_space || burn_dtype_size(step->dtype) == 0) {
        return wrong(c, "step %u (%s): space %u, dtype %u, padding %u are not possible", s, d->name,
                     step->space, step->dtype, step->zero);
    }
    if (step->space != BURN_FUSED_FULL && c->p->row_input == BURN_FUSED_NONE) {
        return wrong(c, "step %u (%s): per %s, but no input is the length of a row", s, d->name,
                     space_names[step->space]);
    }
    *out = op;
    return BURN_OK;
}

static int32_t check_arg(const check *c, uint32_t s, const burni_op *op, uint32_t i)
{
    const burn_fused_step *step = &burn_fused_steps(c->p)[s];
    const burn_role *role = burni_op_role_in(op, i);
    const char *name = op->def.name;
    uint16_t v = step->args[i];
    if (v == BURN_FUSED_NONE) {
        return (role->flags & BURN_ROLE_OPTIONAL) != 0
                   ? BURN_OK
                   : wrong(c, "step %u (%s): operand %s is missing", s, name, role->name);
    }
    if (v >= c->p->n_in + s) {
        return wrong(c, "step %u (%s): operand %s is value %u; %u are there before it", s, name,
                     role->name, v, c->p->n_in + s);
    }
    value x = value_at(c->p, v);
    int whole = op->def.fuse == BURN_FUSE_EPILOGUE_HOST || burni_fused_takes_line(step, i);
    if (x.space == BURN_FUSED_COLUMN) {
        return wrong(c, "step %u (%s): operand %s is per column, which is known behind the last "
                        "row; it can only be given out",
                     s, name, role->name);
    }
    if (whole != (x.space == BURN_FUSED_WHOLE)) {
        return wrong(c, "step %u (%s): operand %s is %s; %s", s, name, role->name,
                     space_names[x.space],
                     whole ? "it must be a whole input"
                           : "only a producer takes that, and a step over lines one line");
    }
    const uint32_t by_value = BURN_ROLE_IMMEDIATE | BURN_ROLE_ONLY_IMMEDIATE;
    if (x.immediate != 0 && (role->flags & by_value) == 0) {
        return wrong(c, "step %u (%s): operand %s must be a tensor, not a scalar", s, name,
                     role->name);
    }
    if ((x.immediate == 0 && (role->flags & BURN_ROLE_ONLY_IMMEDIATE) != 0) ||
        (role->flags & BURN_ROLE_STATE) != 0) {
        return wrong(c, "step %u (%s): operand %s must be a scalar, not a tensor", s, name,
                     role->name);
    }
    if (role->dtypes[0] != 0 && (role->dtypes[x.dtype / 64] >> (x.dtype % 64) & 1) == 0) {
        return wrong(c, "step %u (%s): operand %s is %s, which the op does not take", s, name,
                     role->name, dtype_text(x.dtype));
    }
    uint32_t like = role->same_dtype_as;
    uint16_t other = like != 0 ? step->args[like - 1] : (uint16_t)BURN_FUSED_NONE;
    if (other != BURN_FUSED_NONE && other < c->p->n_in + s &&
        value_at(c->p, other).dtype != x.dtype) {
        return wrong(c, "step %u (%s): operand %s is %s, %s is %s", s, name, role->name,
                     dtype_text(x.dtype), burni_op_role_in(op, like - 1)->name,
                     dtype_text(value_at(c->p, other).dtype));
    }
    return BURN_OK;
}

/* Operand i of an op that generates elements by their place. */
static int32_t check_generated(const check *c, uint32_t s, const burni_op *op, uint32_t i)
{
    const burn_fused_step *step = &burn_fused_steps(c->p)[s];
    if (step->space != BURN_FUSED_FULL) {
        return wrong(c, "step %u (%s): gives one element per position, not %s", s, op->def.name,
                     space_names[step->space]);
    }
    value x = value_at(c->p, step->args[i]);
    if (x.immediate == 0 && x.space != BURN_FUSED_FULL) {
        return wrong(c, "step %u (%s): operand %u is %s; it must be full", s, op->def.name, i,
                     space_names[x.space]);
    }
    return BURN_OK;
}

/* Lines are of full values, and so is what is made of them. */
static int32_t check_lines(const check *c, uint32_t s, const burni_op *op)
{
    const burn_fused_step *step = &burn_fused_steps(c->p)[s];
    int32_t rc = BURN_OK;
    if (step->space != BURN_FUSED_FULL) {
        rc = wrong(c, "step %u (%s): gives lines, which are full, not %s", s, op->def.name,
                   space_names[step->space]);
    }
    for (uint32_t i = 0; i < BURN_FUSED_MAX_ARGS && rc == BURN_OK; i++) {
        uint16_t v = step->args[i];
        int is_line = burni_fused_takes_line(step, i);
        if (v != BURN_FUSED_NONE &&
            (i >= step->n_args || (!is_line && value_at(c->p, v).space != BURN_FUSED_FULL))) {
            rc = wrong(c, "step %u (%s): operand %u is value %u, which is not full or too many", s,
                       op->def.name, i, v);
        }
    }
    return rc;
}

/* Which values an op may take and give: a map's result is no smaller than its operands. */
static int32_t check_spaces(const check *c, uint32_t s, const burni_op *op)
{
    const burn_fused_step *step = &burn_fused_steps(c->p)[s];
    int reduces = op->def.fuse == BURN_FUSE_REDUCE;
    int generates = op->def.fuse == BURN_FUSE_GENERATE;
    for (uint32_t i = 0; generates && i < step->n_args; i++) {
        int32_t rc = step->args[i] != BURN_FUSED_NONE ? check_generated(c, s, op, i) : BURN_OK;
        if (rc != BURN_OK) {
            return rc;
        }
    }
    if (op->def.fuse == BURN_FUSE_EPILOGUE_HOST && step->space != BURN_FUSED_FULL) {
        return wrong(c, "step %u (%s): what it gives is full, not %s", s, op->def.name,
                     space_names[step->space]);
    }
    if (op->def.fuse == BURN_FUSE_LINES) {
        return check_lines(c, s, op);
    }
    if (reduces && step->space == BURN_FUSED_FULL) {
        return wrong(c, "step %u (%s): a reduction gives one value per row or column, not %s", s,
                     op->def.name, space_names[step->space]);
    }
    if (step->space == BURN_FUSED_COLUMN &&
        (!reduces || c->p->head.revision < BURN_FUSED_VERSION_COLUMN)) {
        return wrong(c, "step %u (%s): per column, which only a reduction gives, in version %d", s,
                     op->def.name, BURN_FUSED_VERSION_COLUMN);
    }
    for (uint32_t i = 0; i < BURN_FUSED_MAX_ARGS; i++) {
        uint16_t v = step->args[i];
        if (i >= step->n_args && v != BURN_FUSED_NONE) {
            return wrong(c, "step %u (%s): operand %u of %u is value %u; what is unused is none", s,
                         op->def.name, i, step->n_args, v);
        }
        uint8_t space = v == BURN_FUSED_NONE ? BURN_FUSED_ONE : value_at(c->p, v).space;
        if (reduces && i < step->n_args && space != BURN_FUSED_FULL) {
            return wrong(c, "step %u (%s): reduces a value of space %s; it must be full", s,
                         op->def.name, space_names[space]);
        }
        if (!reduces && space < step->space) {
            return wrong(c, "step %u (%s): operand %u is %s, larger than the result, which is %s",
                         s, op->def.name, i, space_names[space], space_names[step->space]);
        }
    }
    return BURN_OK;
}

/* ---- attributes of steps --------------------------------------------------------------------- */

/* The struct's head, and zeros where it has no field. */
static int32_t check_fields(const check *c, uint32_t s, const burn_op_def *d, const char *attrs)
{
    burn_attrs_head head;
    memcpy(&head, attrs, sizeof(head));
    if (head.size != d->attrs_size || head.revision == 0 || head.revision > d->revision) {
        return wrong(c, "step %u (%s): its attributes say size %u and revision %u; %u and up to %u "
                        "expected",
                     s, d->name, head.size, head.revision, d->attrs_size, d->revision);
    }
    for (uint32_t at = sizeof(head); at < d->attrs_size; at++) {
        int is_field = attrs[at] == 0;
        for (uint32_t a = 0; a < d->n_attrs && !is_field; a++) {
            is_field = at >= d->attrs[a].offset && at - d->attrs[a].offset < d->attrs[a].size;
        }
        if (!is_field) {
            return wrong(c, "step %u (%s): byte %u of its attributes is padding and not 0", s,
                         d->name, at);
        }
    }
    return BURN_OK;
}

/* Those that an earlier step has, or new ones right behind the last. */
static int32_t check_place(check *c, uint32_t s, const char *name)
{
    const burn_fused_step *steps = burn_fused_steps(c->p);
    const burn_fused_step *step = &steps[s];
    for (uint32_t k = 0; k < s; k++) {
        if (steps[k].attrs_offset == step->attrs_offset &&
            steps[k].attrs_size == step->attrs_size) {
            return BURN_OK;
        }
    }
    size_t end = (size_t)step->attrs_offset + step->attrs_size;
    if (step->attrs_offset != c->end || end > c->size) {
        return wrong(c, "step %u (%s): its attributes are bytes %u to %zu of %zu; the next begin "
                        "at %zu",
                     s, name, step->attrs_offset, end, c->size, c->end);
    }
    c->end = align8(end);
    if (c->end > c->size || !is_zero(c->bytes, end, c->end)) {
        return wrong(c, "step %u (%s): padding behind its attributes is missing or not 0", s, name);
    }
    return BURN_OK;
}

static int32_t check_attrs(check *c, uint32_t s, const burni_op *op)
{
    const burn_fused_step *step = &burn_fused_steps(c->p)[s];
    const burn_op_def *d = &op->def;
    if (step->attrs_size != d->attrs_size || (d->attrs_size == 0) != (step->attrs_offset == 0)) {
        return wrong(c, "step %u (%s): %u bytes of attributes at %u; the op has %u", s, d->name,
                     step->attrs_size, step->attrs_offset, d->attrs_size);
    }
    if (d->attrs_size == 0) {
        return BURN_OK;
    }
    int32_t rc = check_place(c, s, d->name);
    if (rc == BURN_OK) {
        rc = check_fields(c, s, d, c->bytes + step->attrs_offset);
    }
    if (rc == BURN_OK && burni_is_loss(d)) {
        int reduces = burni_loss_reduces(d, c->bytes + step->attrs_offset);
        return reduces && step->space == BURN_FUSED_ROW
                   ? BURN_OK
                   : wrong(c, "step %u (%s): a loss gives one row's value, by mean or sum", s,
                           d->name);
    }
    if (rc == BURN_OK && d->fuse == BURN_FUSE_REDUCE) {
        burn_attrs_axes given;
        burn_attrs_axes axes;
        memcpy(&given, c->bytes + step->attrs_offset, sizeof(given));
        burni_fused_axes(&axes, step->space, given.correction);
        if (memcmp(&axes, &given, sizeof(axes)) != 0) {
            rc = wrong(c, "step %u (%s): reduces other axes than a %s: n_axes 1, axes {%d}, "
                          "keepdims 1 are possible",
                       s, d->name, space_names[step->space], (int)axes.axes[0]);
        }
    }
    if (rc == BURN_OK && d->fuse == BURN_FUSE_LINES) {
        uint64_t lines[BURN_MAX_ATTRS / sizeof(uint64_t)];
        (void)burni_fused_lines(op, c->bytes + step->attrs_offset, lines);
        if (memcmp(lines, c->bytes + step->attrs_offset, d->attrs_size) != 0) {
            rc = wrong(c, "step %u (%s): lines along other axes than a row: axis 1, or n_axes 1, "
                          "are possible",
                       s, d->name);
        }
    }
    if (rc == BURN_OK && d->fuse == BURN_FUSE_GENERATE) {
        burn_attrs_shape given;
        burn_attrs_shape shape;
        memcpy(&given, c->bytes + step->attrs_offset, sizeof(given));
        (void)burni_fused_shapeless(op, &given, &shape);
        if (memcmp(&shape, &given, sizeof(shape)) != 0) {
            rc = wrong(c, "step %u (%s): has a shape of its own, rank %u; the positions say it: "
                          "n_dims 0 and dims 0 are possible",
                       s, d->name, given.n_dims);
        }
    }
    return rc;
}

/* ---- results --------------------------------------------------------------------------------- */

static void meta_of(value x, burn_meta *out)
{
    memset(out, 0, sizeof(*out));
    out->kind = x.immediate != 0 ? BURN_IMMEDIATE : BURN_TENSOR;
    out->dtype = x.dtype;
    if (x.space == BURN_FUSED_WHOLE) {
        out->rank = 1; /* a line: what a producer makes of the shapes is not asked here */
        out->dims[0] = LENGTH;
    } else if (x.space != BURN_FUSED_ONE) {
        out->rank = 2;
        out->dims[0] = ROWS;
        out->dims[1] = x.space == BURN_FUSED_FULL ? LENGTH : 1;
    }
}

/* The dtype that an output role gives before the shape rule: that of its operand, or its only. */
static uint8_t role_dtype(const burn_role *role, const burn_meta *in)
{
    uint64_t set = role->dtypes[0];
    if (role->same_dtype_as != 0) {
        return in[role->same_dtype_as - 1].dtype;
    }
    return set != 0 && (set & (set - 1)) == 0 ? (uint8_t)__builtin_ctzll(set) : BURN_DTYPE_NONE;
}

/* What the op's own rule says about these operands. */
static int32_t check_result(const check *c, uint32_t s, const burni_op *op)
{
    const burn_fused_step *step = &burn_fused_steps(c->p)[s];
    burn_meta in[BURN_FUSED_MAX_ARGS];
    const burn_meta *pointers[BURN_FUSED_MAX_ARGS];
    burn_meta out;
    memset(in, 0, sizeof(in));
    memset(&out, 0, sizeof(out));
    out.kind = BURN_TENSOR;
    for (uint32_t i = 0; i < step->n_args; i++) {
        pointers[i] = &in[i];
        if (step->args[i] != BURN_FUSED_NONE) {
            meta_of(value_at(c->p, step->args[i]), &in[i]);
        }
    }
    out.dtype = role_dtype(burni_op_role_out(op, 0), in);
    /* What a producer makes of the shapes is asked when these are known. */
    if (op->def.infer != NULL && op->def.fuse != BURN_FUSE_EPILOGUE_HOST) {
        burn_err why = BURN_ERR_INIT;
        const char *attrs = step->attrs_size > 0 ? c->bytes + step->attrs_offset : NULL;
        burn_infer a = {sizeof(a), step->n_args, 1, step->attrs_size, pointers, &out, attrs, &why};
        if (burni_ask_infer(op, &a) != BURN_OK) {
            return wrong(c, "step %u: %s", s, why.text);
        }
    }
    if (out.dtype != step->dtype) {
        return wrong(c, "step %u (%s): says it gives %s; the op gives %s", s, op->def.name,
                     dtype_text(step->dtype), dtype_text(out.dtype));
    }
    return BURN_OK;
}

static int32_t check_steps(check *c)
{
    int32_t rc = BURN_OK;
    for (uint32_t s = 0; s < c->p->n_steps && rc == BURN_OK; s++) {
        const burni_op *op = NULL;
        rc = check_op(c, s, &op);
        for (uint32_t i = 0; rc == BURN_OK && i < op->def.n_in; i++) {
            rc = check_arg(c, s, op, i);
        }
        rc = rc == BURN_OK ? check_spaces(c, s, op) : rc;
        rc = rc == BURN_OK ? check_attrs(c, s, op) : rc;
        rc = rc == BURN_OK ? check_result(c, s, op) : rc;
    }
    if (rc == BURN_OK && c->end != c->size) {
        rc = wrong(c, "%zu bytes behind the last section", c->size - c->end);
    }
    return rc;
}

/* What no step takes is there for somebody outside. */
static int32_t check_columns(check *c)
{
    const burn_fused_program *p = c->p;
    for (uint32_t s = 0; s < p->n_steps; s++) {
        int is_given = burn_fused_steps(p)[s].space != BURN_FUSED_COLUMN;
        for (uint32_t j = 0; j < p->n_out; j++) {
            is_given |= burn_fused_outputs(p)[j] == p->n_in + s;
        }
        if (!is_given) {
            return wrong(c, "step %u is per column and not given out", s);
        }
    }
    return BURN_OK;
}

static int32_t check_outputs(check *c)
{
    const burn_fused_program *p = c->p;
    const uint16_t *outputs = burn_fused_outputs(p);
    for (uint32_t j = 0; j < p->n_out; j++) {
        if (outputs[j] < p->n_in || outputs[j] >= p->n_in + p->n_steps) {
            return wrong(c, "output %u is value %u; the steps give %u to %u", j, outputs[j],
                         p->n_in, p->n_in + p->n_steps - 1u);
        }
        for (uint32_t k = 0; k < j; k++) {
            if (outputs[k] == outputs[j]) {
                return wrong(c, "outputs %u and %u are both value %u", k, j, outputs[j]);
            }
        }
    }
    return BURN_OK;
}

static int32_t (*const rules[])(check *c) = {
    check_head, check_counts, check_sections, check_inputs, check_steps, check_outputs,
    check_columns,
};

int32_t burn_fused_check(const void *bytes, size_t size, burn_err *err)
{
    check c = {.p = bytes, .bytes = bytes, .size = size, .err = err};
    int32_t rc = BURN_OK;
    for (size_t i = 0; rc == BURN_OK && i < sizeof(rules) / sizeof(rules[0]); i++) {
        rc = rules[i](&c);
    }
    return rc;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_value(burni_printer *p, const burn_fused_program *program, uint16_t v)
{
    if (v == BURN_FUSED_NONE) {
        burni_print(p, "-");
    } else {
        burni_print(p, "%s%u", v < program->n_in ? "in" : "v", v);
    }
}

static void print_type(burni_printer *p, uint8_t dtype, uint8_t space)
{
    burni_print(p, " %s", burn_dtype_name(dtype));
    if (space != BURN_FUSED_FULL) {
        burni_print(p, " %s", space_names[space]);
    }
}

static void print_inputs(burni_printer *p, const burn_fused_program *program)
{
    const burn_fused_input *inputs = burn_fused_inputs(program);
    for (uint16_t i = 0; i < program->n_in; i++) {
        burni_print(p, "%s", i > 0 ? ", " : "");
        print_value(p, program, i);
        if (inputs[i].immediate != 0) {
            burni_print(p, " %s by value", burn_dtype_name(inputs[i].dtype));
        } else {
            print_type(p, inputs[i].dtype, inputs[i].space);
        }
        burni_print(p, "%s", i == program->row_input ? ", the length of a row" : "");
    }
    burni_print(p, "\n");
}

size_t burn_fused_text(const burn_fused_program *program, char *out, size_t size)
{
    burni_printer p = {out, size, 0};
    const burn_fused_step *steps = burn_fused_steps(program);
    print_inputs(&p, program);
    for (uint16_t s = 0; s < program->n_steps; s++) {
        const burni_op *op = burni_op_find(steps[s].op);
        print_value(&p, program, (uint16_t)(program->n_in + s));
        print_type(&p, steps[s].dtype, steps[s].space);
        burni_print(&p, " = %s", op != NULL ? op->def.name : "(unknown)");
        for (uint32_t i = 0; i < steps[s].n_args; i++) {
            burni_print(&p, "%s", i > 0 ? ", " : " ");
            print_value(&p, program, steps[s].args[i]);
        }
        burni_print(&p, "\n");
    }
    burni_print(&p, "out ");
    for (uint32_t j = 0; j < program->n_out; j++) {
        burni_print(&p, "%s", j > 0 ? ", " : "");
        print_value(&p, program, burn_fused_outputs(program)[j]);
    }
    burni_print(&p, "\n");
    return p.used;
}
