/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_build.c - writing the program of a `burn.fused` call. See fused.h.
 *
 * Sizes are known at every moment, so a program that would not fit is noticed when something is
 * added, not at the end. Pure: nothing is allocated. To add a section: burni_fused_size and
 * burni_fused_finish, in the order of the format.
 */
#include "graph/fused.h"

#include "ops/registry.h"
#include "ops/rules.h"

#include <burn/build.h>
#include <string.h>

static uint32_t align8(uint32_t n)
{
    return (n + 7u) & ~7u;
}

void burni_fused_begin(burni_fused_builder *b)
{
    b->n_in = 0;
    b->n_out = 0;
    b->n_steps = 0;
    b->row_input = BURN_FUSED_NONE;
    b->attrs_bytes = 0;
    b->full = 0;
}

static uint32_t outputs_offset(const burni_fused_builder *b)
{
    return (uint32_t)(sizeof(burn_fused_program) + b->n_in * sizeof(burn_fused_input));
}

static uint32_t steps_offset(const burni_fused_builder *b)
{
    return align8(outputs_offset(b) + (uint32_t)(b->n_out * sizeof(uint16_t)));
}

static uint32_t attrs_offset(const burni_fused_builder *b)
{
    return steps_offset(b) + (uint32_t)(b->n_steps * sizeof(burn_fused_step));
}

uint32_t burni_fused_size(const burni_fused_builder *b)
{
    return attrs_offset(b) + b->attrs_bytes;
}

/* Is there room for so many bytes more, padding included? Once not, nothing is added any more. */
static int has_room(burni_fused_builder *b, size_t bytes, int fits)
{
    if (b->full || !fits || burni_fused_size(b) + align8((uint32_t)bytes) > BURN_FUSED_MAX_BYTES) {
        b->full = 1;
    }
    return !b->full;
}

uint16_t burni_fused_add_input(burni_fused_builder *b, uint8_t dtype, uint8_t space,
                               uint8_t immediate)
{
    if (!has_room(b, sizeof(burn_fused_input), b->n_in + b->n_out < BURN_MAX_OPERANDS)) {
        return BURN_FUSED_NONE;
    }
    b->inputs[b->n_in] = (burn_fused_input){dtype, space, immediate, 0};
    return b->n_in++;
}

void burni_fused_set_row_input(burni_fused_builder *b, uint16_t input)
{
    b->row_input = input;
}

/* Where these attributes are already, or where they were put. */
static uint16_t place_attrs(burni_fused_builder *b, const void *attrs, uint32_t size)
{
    unsigned char *bytes = (unsigned char *)b->attrs;
    for (uint32_t s = 0; s < b->n_steps; s++) {
        const burn_fused_step *step = &b->steps[s];
        if (step->attrs_size == size && memcmp(bytes + step->attrs_offset, attrs, size) == 0) {
            return step->attrs_offset;
        }
    }
    uint16_t at = b->attrs_bytes;
    memcpy(bytes + at, attrs, size);
    memset(bytes + at + size, 0, align8(size) - size);
    b->attrs_bytes = (uint16_t)(at + align8(size));
    return at;
}

uint16_t burni_fused_add_step(burni_fused_builder *b, uint64_t op, uint8_t dtype, uint8_t space,
                              const uint16_t *args, uint32_t n_args, const void *attrs,
                              uint32_t attrs_size)
{
    int fits = b->n_steps < BURN_FUSED_MAX_STEPS && n_args <= BURN_FUSED_MAX_ARGS &&
               attrs_size <= BURN_MAX_ATTRS;
    if (!has_room(b, sizeof(burn_fused_step) + align8(attrs_size), fits)) {
        return BURN_FUSED_NONE;
    }
    burn_fused_step *step = &b->steps[b->n_steps];
    memset(step, 0, sizeof(*step));
    step->op = op;
    step->n_args = (uint8_t)n_args;
    step->dtype = dtype;
    step->space = space;
    step->attrs_size = (uint16_t)attrs_size;
    step->attrs_offset = attrs_size > 0 ? place_attrs(b, attrs, attrs_size) : (uint16_t)0;
    for (uint32_t i = 0; i < BURN_FUSED_MAX_ARGS; i++) {
        step->args[i] = i < n_args ? args[i] : (uint16_t)BURN_FUSED_NONE;
    }
    return (uint16_t)(BURNI_FUSED_STEP | b->n_steps++);
}

uint16_t burni_fused_add_output(burni_fused_builder *b, uint16_t value)
{
    for (uint16_t j = 0; j < b->n_out; j++) {
        if (b->outputs[j] == value) {
            return j;
        }
    }
    if (!has_room(b, sizeof(uint16_t), b->n_in + b->n_out < BURN_MAX_OPERANDS)) {
        return BURN_FUSED_NONE;
    }
    b->outputs[b->n_out] = value;
    return b->n_out++;
}

void burni_fused_axes(burn_attrs_axes *out, uint8_t space, int64_t correction)
{
    burn_attrs_init(out, (uint32_t)sizeof(*out));
    out->n_axes = 1;
    out->keepdims = 1;
    out->axes[0] = space == BURN_FUSED_COLUMN ? 0 : 1;
    out->correction = correction;
}

int burni_fused_takes(const burni_op *op, uint32_t fuse)
{
    const burn_op_def *d = &op->def;
    int fits = d->fuse == fuse && op->plugin == NULL && d->n_out == 1 && !op->variadic &&
               d->n_in <= BURN_FUSED_MAX_ARGS && d->effect <= BURN_EFFECT_RANDOM;
    if (fuse == BURN_FUSE_REDUCE) {
        return fits && (d->attrs == burni_attrs_axes_rows || burni_is_loss(d));
    }
    if (fuse == BURN_FUSE_GENERATE) {
        return fits && (d->n_attrs == 0 || d->attrs == burni_attrs_shape_rows);
    }
    if (fuse == BURN_FUSE_LINES) {
        return fits && burni_goes_over_lines(d);
    }
    int is_pure = fuse == BURN_FUSE_POINTWISE || fuse == BURN_FUSE_EPILOGUE_HOST;
    return fits && is_pure && d->effect == BURN_EFFECT_PURE;
}

uint32_t burni_fused_lines(const burni_op *op, const void *attrs, void *out)
{
    memcpy(out, attrs, op->def.attrs_size);
    burni_set_line_axis(&op->def, out);
    return op->def.attrs_size;
}

uint32_t burni_fused_shapeless(const burni_op *op, const void *attrs, burn_attrs_shape *out)
{
    const burn_attrs_shape *given = attrs;
    if (op->def.n_attrs == 0) {
        return 0;
    }
    burn_attrs_init(out, (uint32_t)sizeof(*out));
    out->dtype = given->dtype;
    return (uint32_t)sizeof(*out);
}

/* A value in the program's numbers: steps come behind the inputs. */
static uint16_t renumber(const burni_fused_builder *b, uint16_t value)
{
    if (value == BURN_FUSED_NONE || value < BURNI_FUSED_STEP) {
        return value;
    }
    return (uint16_t)(b->n_in + (value - BURNI_FUSED_STEP));
}

/* The oldest version that can say it. */
static uint32_t version_of(const burni_fused_builder *b)
{
    uint32_t version = 1;
    for (uint32_t i = 0; i < b->n_in; i++) {
        if (b->inputs[i].space == BURN_FUSED_WHOLE) {
            version = BURN_FUSED_VERSION_PRODUCER;
        }
    }
    for (uint32_t s = 0; s < b->n_steps; s++) {
        const burni_op *op = burni_op_find(b->steps[s].op);
        if (op != NULL && (op->def.fuse == BURN_FUSE_LINES || burni_is_loss(&op->def))) {
            version = BURN_FUSED_VERSION_LINES;
        }
        if (b->steps[s].space == BURN_FUSED_COLUMN) {
            version = BURN_FUSED_VERSION_COLUMN;
        }
    }
    return version;
}

static void write_steps(const burni_fused_builder *b, burn_fused_step *out)
{
    for (uint32_t s = 0; s < b->n_steps; s++) {
        out[s] = b->steps[s];
        if (out[s].attrs_size > 0) {
            out[s].attrs_offset = (uint16_t)(out[s].attrs_offset + attrs_offset(b));
        }
        for (uint32_t i = 0; i < BURN_FUSED_MAX_ARGS; i++) {
            out[s].args[i] = renumber(b, out[s].args[i]);
        }
    }
}

uint32_t burni_fused_finish(const burni_fused_builder *b, void *out, uint32_t cap)
{
    uint32_t size = burni_fused_size(b);
    if (b->full || size > cap) {
        return 0;
    }
    unsigned char *bytes = out;
    memset(bytes, 0, steps_offset(b));
    burn_fused_program *p = out;
    p->head.size = size;
    p->head.revision = version_of(b);
    p->n_in = b->n_in;
    p->n_out = b->n_out;
    p->n_steps = b->n_steps;
    p->row_input = b->row_input;
    p->inputs_offset = (uint16_t)sizeof(*p);
    p->outputs_offset = (uint16_t)outputs_offset(b);
    p->steps_offset = (uint16_t)steps_offset(b);
    memcpy(bytes + p->inputs_offset, b->inputs, b->n_in * sizeof(b->inputs[0]));
    uint16_t *outputs = (uint16_t *)(void *)(bytes + p->outputs_offset);
    for (uint32_t j = 0; j < b->n_out; j++) {
        outputs[j] = renumber(b, b->outputs[j]);
    }
    write_steps(b, (burn_fused_step *)(void *)(bytes + p->steps_offset));
    memcpy(bytes + attrs_offset(b), b->attrs, b->attrs_bytes);
    return size;
}
