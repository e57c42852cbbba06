/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fuzz_fused.c - programs of `burn.fused`, read from arbitrary bytes and made from them.
 *
 * What the check takes must be safe to print, to build again and to run on the device that
 * BURN_DEVICE names, whatever its operands hold: outputs that can be read, or a failure that only
 * the data explain. The bytes are tried as a program; then as a recipe for one, whose steps are
 * kept where the check takes them, so that most runs reach the ops. Seeds are in corpus/fused.
 */
#include "fuzz.h"

#include "graph/fused.h"
#include "ops/fused.h"
#include "ops/rules.h"

#include <burn/build.h>
#include <burn/op_list.h>
#include <burn/registry.h>
#include <burn/tensor.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 2, LENGTH = 3, MAX_MADE = 8, MAX_READ = 1 << 16 };

typedef union program {
    uint64_t aligned;
    uint8_t bytes[BURN_FUSED_MAX_BYTES + 8];
} program;

static burn_device *need_device(void)
{
    static burn_device *device;
    if (device == NULL) {
        burn_err err = BURN_ERR_INIT;
        device = burn_device_open(NULL, &err);
        if (device == NULL) {
            abort(); /* BURN_PLUGIN_PATH or BURN_DEVICE is wrong: nothing would be tested */
        }
        burn_memory_limit(device, UINT64_C(64) << 20);
    }
    return device;
}

/* ---- what was accepted ----------------------------------------------------------------------- */

static void print_it(const burn_fused_program *p)
{
    char text[16384];
    size_t need = burn_fused_text(p, text, sizeof(text));
    if (need == 0 || (need < sizeof(text) && strlen(text) != need)) {
        abort(); /* it printed less, or more, than it says */
    }
}

static uint16_t renumbered(const burn_fused_program *p, uint16_t value)
{
    int is_step = value != BURN_FUSED_NONE && value >= p->n_in;
    return is_step ? (uint16_t)(BURNI_FUSED_STEP + value - p->n_in) : value;
}

/* The builder makes a program of it that is no longer, and that the check takes as well. */
static void build_it_again(const burn_fused_program *p)
{
    static burni_fused_builder b;
    static program again;
    burn_err err = BURN_ERR_INIT;
    burni_fused_begin(&b);
    for (uint32_t i = 0; i < p->n_in; i++) {
        const burn_fused_input *in = &burn_fused_inputs(p)[i];
        (void)burni_fused_add_input(&b, in->dtype, in->space, in->immediate);
    }
    burni_fused_set_row_input(&b, p->row_input);
    for (uint32_t s = 0; s < p->n_steps; s++) {
        const burn_fused_step *step = &burn_fused_steps(p)[s];
        uint16_t args[BURN_FUSED_MAX_ARGS];
        for (uint32_t i = 0; i < BURN_FUSED_MAX_ARGS; i++) {
            args[i] = renumbered(p, step->args[i]);
        }
        (void)burni_fused_add_step(&b, step->op, step->dtype, step->space, args, step->n_args,
                                   (const char *)p + step->attrs_offset, step->attrs_size);
    }
    for (uint32_t j = 0; j < p->n_out; j++) {
        (void)burni_fused_add_output(&b, renumbered(p, burn_fused_outputs(p)[j]));
    }
    uint32_t size = burni_fused_finish(&b, again.bytes, BURN_FUSED_MAX_BYTES);
    if (size == 0 || size > p->head.size ||
        burn_fused_check(again.bytes, size, &err) != BURN_OK) {
        abort();
    }
}

/* Operand 0, 1, 2 of a producer, so that most products give ROWS by LENGTH elements. */
static burn_tensor *whole_operand(const burn_fused_program *p, uint32_t i, const double *values)
{
    static const int64_t dims[2][3][4] = {{{ROWS, 1}, {1, LENGTH}, {LENGTH}},
                                          {{ROWS, 1, 1, LENGTH}, {1, 1, 1, 1}, {1}}};
    static const uint32_t ranks[2][3] = {{2, 2, 1}, {4, 4, 1}};
    const burn_fused_step *step = burn_fused_steps(p);
    uint32_t k = 0;
    while (k < 2 && step->args[k] != i) {
        k++;
    }
    uint32_t flat = step->attrs_size == 0 ? 0 : 1;
    return burn_tensor_from_f64(need_device(), burn_fused_inputs(p)[i].dtype, ranks[flat][k],
                                dims[flat][k], values);
}

/* A loss is of one row. */
static int64_t rows_of(const burn_fused_program *p)
{
    int64_t rows = ROWS;
    for (uint32_t s = 0; s < p->n_steps; s++) {
        rows = burni_is_loss(burn_op_find_id(burn_fused_steps(p)[s].op)) ? 1 : rows;
    }
    return rows;
}

static burn_tensor *operand(const burn_fused_program *p, uint32_t i, uint8_t salt)
{
    static const double numbers[] = {1.0, -2.0, 0.5, 0.0, 3.0, -1.0, 100.0, 7.0};
    const burn_fused_input *in = &burn_fused_inputs(p)[i];
    const int64_t rows = rows_of(p);
    const int64_t length = ROWS * LENGTH / rows;
    int64_t dims[2] = {rows, length};
    double values[ROWS * LENGTH];
    for (uint32_t k = 0; k < ROWS * LENGTH; k++) {
        values[k] = numbers[(k + i + salt) % 8];
    }
    if (in->immediate != 0) {
        int is_float = burn_dtype_class(in->dtype) == BURN_CLASS_FLOAT;
        int64_t whole = i == p->row_input ? length : 1;
        return is_float ? burn_scalar(values[0]) : burn_scalar_int(whole);
    }
    dims[1] = in->space == BURN_FUSED_FULL ? length : 1;
    dims[0] = in->space == BURN_FUSED_ONE ? 1 : rows;
    if (burni_fused_is_line(p, i)) {
        return burn_tensor_from_f64(need_device(), in->dtype, 1, &length, values);
    }
    if (in->space == BURN_FUSED_WHOLE) {
        return whole_operand(p, i, values);
    }
    return burn_tensor_from_f64(need_device(), in->dtype, 2, dims, values);
}

/* Shapes of a producer's operands are no part of the program, so they may not fit it. */
static int may_misfit(const burn_fused_program *p, int32_t code)
{
    uint16_t x = burn_fused_steps(p)->args[0];
    int has_producer = x < p->n_in && burn_fused_inputs(p)[x].space == BURN_FUSED_WHOLE;
    return has_producer && (code == BURN_E_SHAPE || code == BURN_E_INVALID);
}

static void read_output(const burn_fused_program *p, burn_tensor *t, int32_t code)
{
    static uint8_t bytes[MAX_READ];
    burn_err err = BURN_ERR_INIT;
    if (t == NULL || burn_ok(t) != (code == BURN_OK)) {
        abort(); /* no output, or one that does not know how its call ended */
    }
    /* What pads its operand may give more than there is room for: then it only runs. */
    size_t size = burn_ok(t) ? (size_t)burn_numel(t) * burn_dtype_size(burn_dtype_of(t)) : 0;
    if (burn_ok(t) && size <= sizeof(bytes)) {
        (void)burn_read(t, bytes, size, &err);
    } else {
        (void)burn_tensor_error(t, &err);
    }
    int explained = err.code == BURN_OK || err.code == BURN_E_DATA ||
                    err.code == BURN_E_UNSUPPORTED || err.code == BURN_E_NO_MEMORY ||
                    may_misfit(p, err.code);
    if (!explained || (err.code != BURN_OK && err.text[0] == '\0')) {
        abort(); /* a program that was taken must run, whatever the numbers are */
    }
}

static void run_it(const burn_fused_program *p, uint8_t salt)
{
    burn_tensor *in[BURN_MAX_OPERANDS];
    burn_tensor *out[BURN_MAX_OPERANDS];
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    for (uint32_t i = 0; i < p->n_in; i++) {
        in[i] = operand(p, i, salt);
    }
    int32_t code = burn_op_call(need_device(), BURN_OP_FUSED, p, p->head.size, in, p->n_in, out,
                                p->n_out);
    for (uint32_t j = 0; j < p->n_out; j++) {
        read_output(p, out[j], code);
    }
    burn_scope_end();
    (void)burn_sync(need_device(), &err);
}

static void try_program(const void *bytes, size_t size, uint8_t salt)
{
    burn_err err = BURN_ERR_INIT;
    int32_t code = burn_fused_check(bytes, size, &err);
    if (code != BURN_OK) {
        if (code != BURN_E_FORMAT || err.code != code || err.text[0] == '\0') {
            abort(); /* refused without cause */
        }
        return;
    }
    print_it(bytes);
    build_it_again(bytes);
    run_it(bytes, salt);
}

/* ---- recipes --------------------------------------------------------------------------------- */

typedef struct recipe {
    const uint8_t *at;
    size_t left;
    uint16_t values[BURN_MAX_OPERANDS];
    uint32_t n_values;
} recipe;

static uint8_t next(recipe *r)
{
    if (r->left == 0) {
        return 0;
    }
    r->left--;
    return *r->at++;
}

/* One recipe of four begins with a product. */
static void add_product(recipe *r, burni_fused_builder *b, uint8_t dtype)
{
    uint16_t args[2];
    if (next(r) % 4 != 0) {
        return;
    }
    args[0] = burni_fused_add_input(b, dtype, BURN_FUSED_WHOLE, 0);
    args[1] = burni_fused_add_input(b, dtype, BURN_FUSED_WHOLE, 0);
    r->values[r->n_values++] =
        burni_fused_add_step(b, BURN_OP_MATMUL, dtype, BURN_FUSED_FULL, args, 2, NULL, 0);
}

static void add_inputs(recipe *r, burni_fused_builder *b)
{
    uint32_t n = 1u + next(r) % 4;
    uint8_t dtype = (uint8_t)(BURN_BOOL + next(r) % BURN_F64);
    r->values[r->n_values++] = burni_fused_add_input(b, dtype, BURN_FUSED_FULL, 0);
    burni_fused_set_row_input(b, burni_fused_add_input(b, BURN_I64, BURN_FUSED_ONE, 1));
    for (uint32_t i = 0; i < n; i++) {
        uint8_t kind = next(r) % 4;
        uint8_t other = (uint8_t)(BURN_BOOL + next(r) % BURN_F64);
        uint8_t space = kind < 3 ? kind : (uint8_t)BURN_FUSED_ONE;
        r->values[r->n_values++] =
            burni_fused_add_input(b, next(r) % 4 == 0 ? other : dtype, space, kind == 3);
    }
    add_product(r, b, dtype);
}

static uint32_t make_attrs(uint64_t op, uint8_t byte, uint8_t space, void *attrs)
{
    const burn_op_def *def = burn_op_find_id(op);
    uint32_t size = def != NULL ? def->attrs_size : 0;
    if (size == 0 || size > BURN_MAX_ATTRS) {
        return 0;
    }
    burn_attrs_init(attrs, size);
    if (def->fuse == BURN_FUSE_REDUCE && size == sizeof(burn_attrs_axes)) {
        burni_fused_axes(attrs, space, 0);
    } else if (burni_is_loss(def)) {
        ((uint8_t *)attrs)[sizeof(burn_attrs_head)] = byte % 2;
    } else if (def->fuse == BURN_FUSE_LINES) {
        burni_set_line_axis(def, attrs);
    } else {
        ((uint8_t *)attrs)[sizeof(burn_attrs_head)] = byte;
    }
    return size;
}

/* One more step, in the first dtype and space that the check takes; 0 when it takes none. */
static int add_step(recipe *r, burni_fused_builder *b)
{
    static burni_fused_builder tried;
    static program p;
    uint64_t attrs[BURN_MAX_ATTRS / sizeof(uint64_t)];
    uint16_t args[BURN_FUSED_MAX_ARGS];
    uint64_t op = next(r);
    const burn_op_def *def = burn_op_find_id(op);
    uint8_t byte = (uint8_t)(BURN_BOOL + next(r) % BURN_F64);
    for (uint32_t i = 0; i < BURN_FUSED_MAX_ARGS; i++) {
        args[i] = r->values[next(r) % r->n_values];
    }
    /* A reduction that is asked for after an even byte is one over the rows. */
    const uint8_t spaces[3] = {byte % 2 == 0 ? BURN_FUSED_COLUMN : BURN_FUSED_ROW, BURN_FUSED_ROW,
                               BURN_FUSED_FULL};
    for (uint32_t k = 0; def != NULL && k < 3u * BURN_F64; k++) {
        uint8_t dtype = (uint8_t)(BURN_BOOL + k % BURN_F64);
        uint8_t space = spaces[k / BURN_F64];
        uint32_t size = make_attrs(op, byte, space, attrs);
        tried = *b;
        uint16_t value = burni_fused_add_step(&tried, op, dtype, space, args, def->n_in, attrs,
                                              size);
        (void)burni_fused_add_output(&tried, value);
        uint32_t bytes = burni_fused_finish(&tried, p.bytes, BURN_FUSED_MAX_BYTES);
        if (bytes > 0 && burn_fused_check(p.bytes, bytes, NULL) == BURN_OK) {
            *b = tried;
            r->values[r->n_values] = value;
            r->n_values += space != BURN_FUSED_COLUMN; /* no step may take that */
            return 1;
        }
    }
    return 0;
}

static void try_recipe(const uint8_t *bytes, size_t size)
{
    static burni_fused_builder b;
    static program p;
    recipe r = {.at = bytes, .left = size};
    burni_fused_begin(&b);
    add_inputs(&r, &b);
    for (uint32_t s = 0; s < MAX_MADE && r.left > 0; s++) {
        (void)add_step(&r, &b);
    }
    uint32_t made = burni_fused_finish(&b, p.bytes, BURN_FUSED_MAX_BYTES);
    if (b.n_steps > 0) {
        try_program(p.bytes, made, next(&r));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static program p;
    size_t taken = size < sizeof(p.bytes) ? size : sizeof(p.bytes);
    if (size > 0) {
        memcpy(p.bytes, bytes, taken);
    }
    try_program(p.bytes, taken, 0);
    if (taken >= sizeof(burn_fused_program)) {
        burn_fused_program *head = (burn_fused_program *)(void *)p.bytes;
        head->head.size = (uint32_t)taken;
        head->head.revision = BURN_FUSED_VERSION;
        try_program(p.bytes, taken, 1);
        head->head.revision = 1;
        try_program(p.bytes, taken, 1);
    }
    try_recipe(bytes, size);
    return 0;
}
