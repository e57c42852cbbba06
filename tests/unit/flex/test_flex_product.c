/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_product.c - fused programs that begin with a product or a convolution have, to the last
 * bit, the results of their ops one by one, for any number of threads.
 *
 * Each case is an op with shapes that take one of the kernel's ways (in place, packed, k in blocks,
 * batches, direct and implicit convolution, narrow and empty results); each runs with each of the
 * tails: what follows the product, and what is given out. To add a case: a row of `cases`; a tail:
 * a row of `tails`.
 */
#include "fixture.h"

#include <burn/fused.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IN = 3, MAX_TAIL = 3, MAX_OUT = 3 };

typedef struct product {
    const char *name;
    uint64_t op;
    uint8_t dtype;
    uint8_t turned; /* operand 1 is a transposed one */
    uint8_t n_in;
    uint8_t rank[MAX_IN + 1]; /* of the operands, then of the result */
    int64_t dims[MAX_IN + 1][4];
    int64_t padding;
} product;

static const product cases[] = {
    {"small", BURN_OP_MATMUL, BURN_F32, 0, 2, {2, 2, 0, 2}, {{5, 7}, {7, 9}, {0}, {5, 9}}, 0},
    {"turned", BURN_OP_MATMUL, BURN_F32, 1, 2, {2, 2, 0, 2},
     {{65, 33}, {33, 70}, {0}, {65, 70}}, 0},
    {"turned and large", BURN_OP_MATMUL, BURN_F32, 1, 2, {2, 2, 0, 2},
     {{260, 70}, {70, 270}, {0}, {260, 270}}, 0},
    {"tall", BURN_OP_MATMUL, BURN_F32, 0, 2, {2, 2, 0, 2},
     {{900, 40}, {40, 33}, {0}, {900, 33}}, 0},
    {"wide", BURN_OP_MATMUL, BURN_F32, 0, 2, {2, 2, 0, 2},
     {{70, 90}, {90, 1100}, {0}, {70, 1100}}, 0},
    {"packed", BURN_OP_MATMUL, BURN_F32, 0, 2, {2, 2, 0, 2},
     {{301, 300}, {300, 311}, {0}, {301, 311}}, 0},
    {"strips", BURN_OP_MATMUL, BURN_F32, 0, 2, {2, 2, 0, 2},
     {{301, 130}, {130, 700}, {0}, {301, 700}}, 0},
    {"batches of strips", BURN_OP_MATMUL, BURN_F32, 0, 2, {3, 3, 0, 3},
     {{3, 140, 300}, {3, 300, 420}, {0}, {3, 140, 420}}, 0},
    {"k in blocks", BURN_OP_MATMUL, BURN_F32, 0, 2, {2, 2, 0, 2},
     {{130, 1100}, {1100, 270}, {0}, {130, 270}}, 0},
    {"few rows, long k", BURN_OP_MATMUL, BURN_F32, 0, 2, {2, 2, 0, 2},
     {{8, 3000}, {3000, 130}, {0}, {8, 130}}, 0},
    {"a row", BURN_OP_MATMUL, BURN_F32, 0, 2, {2, 2, 0, 2},
     {{1, 700}, {700, 400}, {0}, {1, 400}}, 0},
    {"no k", BURN_OP_MATMUL, BURN_F32, 0, 2, {2, 2, 0, 2}, {{3, 0}, {0, 5}, {0}, {3, 5}}, 0},
    {"no rows", BURN_OP_MATMUL, BURN_F32, 0, 2, {2, 2, 0, 2}, {{0, 4}, {4, 5}, {0}, {0, 5}}, 0},
    {"batches", BURN_OP_MATMUL, BURN_F32, 0, 2, {3, 3, 0, 3},
     {{9, 17, 20}, {9, 20, 31}, {0}, {9, 17, 31}}, 0},
    {"batches stretch", BURN_OP_MATMUL, BURN_F32, 0, 2, {4, 3, 0, 4},
     {{3, 1, 17, 20}, {4, 20, 31}, {0}, {3, 4, 17, 31}}, 0},
    {"one matrix", BURN_OP_MATMUL, BURN_F32, 0, 2, {3, 2, 0, 3},
     {{9, 17, 20}, {20, 31}, {0}, {9, 17, 31}}, 0},
    {"halves", BURN_OP_MATMUL, BURN_F16, 0, 2, {2, 2, 0, 2},
     {{65, 33}, {33, 70}, {0}, {65, 70}}, 0},
    {"doubles", BURN_OP_MATMUL, BURN_F64, 0, 2, {2, 2, 0, 2},
     {{65, 33}, {33, 70}, {0}, {65, 70}}, 0},
    {"integers", BURN_OP_MATMUL, BURN_I16, 0, 2, {2, 2, 0, 2},
     {{65, 3}, {3, 70}, {0}, {65, 70}}, 0},
    {"linear", BURN_OP_LINEAR, BURN_F32, 0, 3, {2, 2, 1, 2},
     {{64, 784}, {784, 128}, {128}, {64, 128}}, 0},
    {"linear of many rows", BURN_OP_LINEAR, BURN_F32, 0, 3, {3, 2, 1, 3},
     {{4, 160, 200}, {200, 530}, {530}, {4, 160, 530}}, 0},
    {"linear of a vector", BURN_OP_LINEAR, BURN_F32, 0, 3, {1, 2, 1, 1},
     {{20}, {20, 31}, {31}, {31}}, 0},
    {"linear, bf16", BURN_OP_LINEAR, BURN_BF16, 0, 3, {2, 2, 1, 2},
     {{20, 33}, {33, 70}, {70}, {20, 70}}, 0},
    {"direct convolution", BURN_OP_CONV2D, BURN_F32, 0, 3, {4, 4, 1, 4},
     {{3, 2, 28, 28}, {6, 2, 5, 5}, {6}, {3, 6, 24, 24}}, 0},
    {"in bands", BURN_OP_CONV2D, BURN_F32, 0, 3, {4, 4, 1, 4},
     {{2, 33, 40, 41}, {17, 33, 3, 3}, {17}, {2, 17, 40, 41}}, 1},
    {"by a large product", BURN_OP_CONV2D, BURN_F32, 0, 3, {4, 4, 1, 4},
     {{2, 130, 13, 13}, {19, 130, 1, 1}, {19}, {2, 19, 13, 13}}, 0},
    {"by a product", BURN_OP_CONV2D, BURN_F32, 0, 3, {4, 4, 1, 4},
     {{3, 40, 13, 13}, {19, 40, 1, 1}, {19}, {3, 19, 13, 13}}, 0},
    {"small maps", BURN_OP_CONV2D, BURN_F32, 0, 3, {4, 4, 1, 4},
     {{5, 6, 5, 5}, {9, 6, 3, 3}, {9}, {5, 9, 3, 3}}, 0},
    {"convolution, f64", BURN_OP_CONV2D, BURN_F64, 0, 3, {4, 4, 1, 4},
     {{2, 2, 9, 9}, {3, 2, 3, 3}, {3}, {2, 3, 7, 7}}, 0},
    {"convolution, f16", BURN_OP_CONV2D, BURN_F16, 0, 3, {4, 4, 1, 4},
     {{2, 2, 9, 9}, {3, 2, 3, 3}, {3}, {2, 3, 7, 7}}, 0},
};

/* Steps behind the product. Values: 0 the product, 1 .. the steps, REST and LINE inputs. */
enum { REST = 100, LINE = 101 };

typedef struct tail {
    const char *name;
    struct {
        uint64_t op;
        uint8_t dtype; /* 0: the product's */
        uint8_t n_args;
        uint8_t args[2];
    } steps[MAX_TAIL];
    uint32_t n_steps;
    uint32_t n_out;
    uint8_t outputs[MAX_OUT];
} tail;

static const tail tails[] = {
    {"negated", {{BURN_OP_NEG, 0, 1, {0}}}, 1, 1, {1}},
    {"given out, too", {{BURN_OP_ABS, 0, 1, {0}}}, 1, 2, {1, 0}},
    {"a residual", {{BURN_OP_ABS, 0, 1, {0}}, {BURN_OP_ADD, 0, 2, {1, REST}}}, 2, 1, {2}},
    {"a line, read late", {{BURN_OP_ADD, 0, 2, {0, LINE}}, {BURN_OP_ABS, 0, 1, {1}},
                           {BURN_OP_SUB, 0, 2, {2, 0}}}, 3, 2, {1, 3}},
    {"narrowed", {{BURN_OP_CAST, BURN_I8, 1, {0}}}, 1, 1, {1}},
    {"compared", {{BURN_OP_LESS, BURN_BOOL, 2, {0, REST}}}, 1, 1, {1}},
};

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

typedef struct rig {
    const product *p;
    const tail *t;
    burn_attrs_conv conv;
    burn_attrs_cast cast;
    tensor in[MAX_IN];
    tensor rest;
    tensor line; /* one line of the result, for all of them */
    tensor want[MAX_TAIL + 1];
    tensor got[MAX_OUT];
} rig;

/* ---- calls ----------------------------------------------------------------------------------- */

static const burn_row *row_of(uint64_t op, const char *name, uint8_t dtype)
{
    const burn_plugin *plugin = fixture_plugin();
    for (uint32_t s = 0; s < plugin->n_row_sets; s++) {
        const burn_row_set *set = &plugin->row_sets[s];
        for (uint32_t i = 0; i < set->n_rows; i++) {
            const burn_row *row = &set->rows[i];
            int named = name != NULL ? strcmp(row->name, name) == 0
                                     : (row->flags & BURN_ROW_EPILOGUE) != 0 &&
                                           (row->slots[0].dtypes[0] >> dtype & 1) != 0;
            if (row->op == op && named) {
                return row;
            }
        }
    }
    fail_msg("no row of op %llu", (unsigned long long)op);
    return NULL;
}

static int32_t call_row(const burn_row *row, const void *attrs, uint32_t size, tensor **operands,
                        uint32_t n_in, uint32_t n_out)
{
    burn_operand all[16];
    burn_operand workspace;
    burn_prepared prepared;
    burn_call call;
    for (uint32_t i = 0; i < n_in + n_out; i++) {
        operands[i]->o.dims = operands[i]->dims;
        operands[i]->o.strides = operands[i]->strides;
        all[i] = operands[i]->o;
    }
    memset(&call, 0, sizeof(call));
    call.struct_size = (uint32_t)sizeof(call);
    call.operand_stride = (uint32_t)sizeof(burn_operand);
    call.n_in = n_in;
    call.n_out = n_out;
    call.operands = all;
    call.attrs = attrs;
    call.attrs_size = size;
    call.err = &fixture_error;
    fixture_error.text[0] = '\0';
    BURN_INIT(&prepared, burn_prepared);
    int32_t rc = row->prepare(&call, &prepared);
    if (rc != BURN_OK) {
        return rc;
    }
    uint64_t bytes = (prepared.workspace_bytes + 63) / 64 * 64;
    memset(&workspace, 0, sizeof(workspace));
    workspace.kind = BURN_TENSOR;
    workspace.data = bytes > 0 ? aligned_alloc(64, bytes) : NULL;
    call.workspace = bytes > 0 ? &workspace : NULL;
    call.state = prepared.state;
    rc = row->launch(&call);
    free(workspace.data);
    if (row->release != NULL) {
        row->release(prepared.state);
    }
    return rc;
}

/* ---- the program ----------------------------------------------------------------------------- */

static const void *attrs_of(const rig *r, uint64_t op, uint32_t *out_size)
{
    const void *attrs = op == BURN_OP_CONV2D ? (const void *)&r->conv
                        : op == BURN_OP_CAST ? (const void *)&r->cast
                                             : NULL;
    *out_size = op == BURN_OP_CONV2D ? (uint32_t)sizeof(r->conv)
                : op == BURN_OP_CAST ? (uint32_t)sizeof(r->cast)
                                     : 0;
    return attrs;
}

static uint8_t dtype_of(const rig *r, uint32_t step)
{
    uint8_t own = r->t->steps[step].dtype;
    return own != 0 ? own : r->p->dtype;
}

static void put_step(const rig *r, burn_fused_program *p, uint32_t s, uint64_t op, uint8_t dtype)
{
    burn_fused_step *step = (burn_fused_step *)(uintptr_t)burn_fused_steps(p) + s;
    uint32_t size = 0;
    const void *attrs = attrs_of(r, op, &size);
    step->op = op;
    step->dtype = dtype;
    step->space = BURN_FUSED_FULL;
    memset(step->args, 0xff, sizeof(step->args));
    if (size > 0) {
        step->attrs_offset = (uint16_t)p->head.size;
        step->attrs_size = (uint16_t)size;
        memcpy((char *)p + p->head.size, attrs, size);
        p->head.size += size;
    }
}

/* Inputs: those of the product, the rest, the line. */
static uint32_t write_program(const rig *r, burn_fused_program *p)
{
    const uint32_t n = r->p->n_in;
    memset(p, 0, BURN_FUSED_MAX_BYTES);
    p->head.revision = BURN_FUSED_VERSION;
    p->n_in = (uint16_t)(n + 2);
    p->n_out = (uint16_t)r->t->n_out;
    p->n_steps = (uint16_t)(r->t->n_steps + 1);
    p->row_input = BURN_FUSED_NONE;
    p->inputs_offset = (uint16_t)sizeof(*p);
    p->outputs_offset = (uint16_t)(p->inputs_offset + p->n_in * sizeof(burn_fused_input));
    p->steps_offset = (uint16_t)((p->outputs_offset + p->n_out * 2u + 7) / 8 * 8);
    p->head.size = p->steps_offset + (uint32_t)(p->n_steps * sizeof(burn_fused_step));
    burn_fused_input *in = (burn_fused_input *)(uintptr_t)burn_fused_inputs(p);
    uint16_t *outputs = (uint16_t *)(uintptr_t)burn_fused_outputs(p);
    burn_fused_step *steps = (burn_fused_step *)(uintptr_t)burn_fused_steps(p);
    for (uint32_t i = 0; i < p->n_in; i++) {
        in[i].dtype = r->p->dtype;
        in[i].space = i < n ? BURN_FUSED_WHOLE : BURN_FUSED_FULL;
    }
    put_step(r, p, 0, r->p->op, r->p->dtype);
    steps[0].n_args = (uint8_t)(r->p->op == BURN_OP_MATMUL ? 2 : 3);
    for (uint16_t i = 0; i < n; i++) {
        steps[0].args[i] = i;
    }
    for (uint32_t s = 0; s < r->t->n_steps; s++) {
        put_step(r, p, s + 1, r->t->steps[s].op, dtype_of(r, s));
        steps[s + 1].n_args = r->t->steps[s].n_args;
        for (uint32_t i = 0; i < r->t->steps[s].n_args; i++) {
            uint32_t v = r->t->steps[s].args[i];
            steps[s + 1].args[i] = (uint16_t)(v == REST   ? n
                                              : v == LINE ? n + 1
                                                          : p->n_in + v);
        }
    }
    for (uint32_t j = 0; j < r->t->n_out; j++) {
        outputs[j] = (uint16_t)(p->n_in + r->t->outputs[j]);
    }
    return p->head.size;
}

/* ---- running --------------------------------------------------------------------------------- */

static void fill(tensor *t)
{
    int is_float = t->o.dtype >= BURN_F16;
    for (int64_t k = 0; k < numel(t); k++) {
        double x = next_random(-2.0, 2.0);
        double special = is_float ? next_random(0.0, 4000.0) : 1000.0;
        put(t, k, special < 1.0 ? (double)NAN : special < 2.0 ? -0.0 : is_float ? x : floor(x));
    }
}

static void begin(rig *r)
{
    const product *p = r->p;
    memset(&r->conv, 0, sizeof(r->conv));
    r->conv.head.size = (uint32_t)sizeof(r->conv);
    r->conv.head.revision = 1;
    r->conv.groups = 1;
    for (uint32_t k = 0; k < 2; k++) {
        r->conv.stride[k] = 1;
        r->conv.dilation[k] = 1;
        r->conv.padding[k] = p->padding;
    }
    memset(&r->cast, 0, sizeof(r->cast));
    r->cast.head.size = (uint32_t)sizeof(r->cast);
    r->cast.head.revision = 1;
    r->cast.dtype = BURN_I8;
    for (uint32_t i = 0; i < p->n_in; i++) {
        int64_t dims[4];
        memcpy(dims, p->dims[i], sizeof(dims));
        int turn = i == 1 && p->turned;
        if (turn) {
            dims[0] = p->dims[i][1];
            dims[1] = p->dims[i][0];
        }
        make(&r->in[i], p->dtype, p->rank[i], dims);
        fill(&r->in[i]);
        if (turn) {
            swap_axes(&r->in[i], 0, 1);
        }
    }
    make(&r->rest, p->dtype, p->rank[MAX_IN], p->dims[MAX_IN]);
    fill(&r->rest);
    int64_t ones[4] = {1, 1, 1, 1};
    ones[p->rank[MAX_IN] - 1] = p->dims[MAX_IN][p->rank[MAX_IN] - 1];
    make(&r->line, p->dtype, p->rank[MAX_IN], ones);
    fill(&r->line);
    for (uint32_t d = 0; d + 1 < p->rank[MAX_IN]; d++) {
        stretch(&r->line, d, p->dims[MAX_IN][d]);
    }
    for (uint32_t s = 0; s <= r->t->n_steps; s++) {
        make(&r->want[s], s == 0 ? p->dtype : dtype_of(r, s - 1), p->rank[MAX_IN], p->dims[MAX_IN]);
    }
    for (uint32_t j = 0; j < r->t->n_out; j++) {
        make(&r->got[j], r->want[r->t->outputs[j]].o.dtype, p->rank[MAX_IN], p->dims[MAX_IN]);
    }
}

static void end(rig *r)
{
    for (uint32_t i = 0; i < r->p->n_in; i++) {
        unmake(&r->in[i]);
    }
    unmake(&r->rest);
    unmake(&r->line);
    for (uint32_t s = 0; s <= r->t->n_steps; s++) {
        unmake(&r->want[s]);
    }
    for (uint32_t j = 0; j < r->t->n_out; j++) {
        unmake(&r->got[j]);
    }
}

static void run_one_by_one(rig *r)
{
    const product *p = r->p;
    tensor absent;
    uint32_t size = 0;
    const void *attrs = attrs_of(r, p->op, &size);
    uint32_t n = p->op == BURN_OP_MATMUL ? 2 : 3;
    tensor *all[4] = {&r->in[0], &r->in[1], &r->in[2], NULL};
    make_absent(&absent);
    all[2] = p->n_in > 2 ? all[2] : &absent;
    all[n] = &r->want[0];
    assert_int_equal(call_row(row_of(p->op, NULL, p->dtype), attrs, size, all, n, 1), BURN_OK);
    for (uint32_t s = 0; s < r->t->n_steps; s++) {
        tensor *in[2];
        tensor *out = &r->want[s + 1];
        for (uint32_t i = 0; i < r->t->steps[s].n_args; i++) {
            uint32_t v = r->t->steps[s].args[i];
            in[i] = v == REST ? &r->rest : v == LINE ? &r->line : &r->want[v];
        }
        attrs = attrs_of(r, r->t->steps[s].op, &size);
        assert_int_equal(run(r->t->steps[s].op, attrs, r->t->steps[s].n_args, in, 1, &out),
                         BURN_OK);
    }
}

static int equal(const tensor *a, const tensor *b, int64_t k)
{
    size_t size = dtype_size(a->o.dtype);
    int same = memcmp(a->memory + (size_t)k * size, b->memory + (size_t)k * size, size) == 0;
    return same || (a->o.dtype >= BURN_F16 && isnan(get(a, k)) && isnan(get(b, k)));
}

static void run_fused(rig *r)
{
    uint64_t bytes[BURN_FUSED_MAX_BYTES / 8];
    burn_fused_program *program = (burn_fused_program *)(void *)bytes;
    tensor *all[16];
    uint32_t n = 0;
    uint32_t size = write_program(r, program);
    for (uint32_t i = 0; i < r->p->n_in; i++) {
        all[n++] = &r->in[i];
    }
    all[n++] = &r->rest;
    all[n++] = &r->line;
    for (uint32_t j = 0; j < r->t->n_out; j++) {
        all[n + j] = &r->got[j];
    }
    int32_t rc = call_row(row_of(BURN_OP_FUSED, "flex.fused.product", 0), program, size, all, n,
                          r->t->n_out);
    if (rc != BURN_OK) {
        fail_msg("%s, %s: %s", r->p->name, r->t->name, fixture_error.text);
    }
    for (uint32_t j = 0; j < r->t->n_out; j++) {
        const tensor *want = &r->want[r->t->outputs[j]];
        for (int64_t k = 0; k < numel(want); k++) {
            if (!equal(&r->got[j], want, k)) {
                fail_msg("%s, %s: output %u element %lld: %g, want %g", r->p->name, r->t->name, j,
                         (long long)k, get(&r->got[j], k), get(want, k));
            }
        }
    }
}

static void check_all(uint32_t threads)
{
    fixture_threads(threads);
    for (uint32_t i = 0; i < COUNT(cases); i++) {
        for (uint32_t k = 0; k < COUNT(tails); k++) {
            rig r = {.p = &cases[i], .t = &tails[k]};
            begin(&r);
            run_one_by_one(&r);
            run_fused(&r);
            end(&r);
        }
    }
}

static void products__equal_their_ops_on_one_thread(void **state)
{
    (void)state;
    check_all(1);
}

static void products__equal_their_ops_on_several_threads(void **state)
{
    (void)state;
    check_all(2);
    check_all(5);
}

/* The plain rows do not take a program with a product, and its row no other. */
static void rows__are_for_programs_of_their_own(void **state)
{
    (void)state;
    uint64_t bytes[BURN_FUSED_MAX_BYTES / 8];
    rig r = {.p = &cases[0], .t = &tails[0]};
    begin(&r);
    uint32_t size = write_program(&r, (burn_fused_program *)(void *)bytes);
    tensor *all[5] = {&r.in[0], &r.in[1], &r.rest, &r.line, &r.got[0]};
    assert_int_equal(call_row(row_of(BURN_OP_FUSED, "flex.fused", 0), bytes, size, all, 4, 1),
                     BURN_E_UNSUPPORTED);
    assert_non_null(strstr(fixture_error.text, "begins with a product"));
    end(&r);
}

/* A convolution's row takes dense operands only. */
static void layouts__that_the_row_does_not_take_are_refused(void **state)
{
    (void)state;
    uint64_t bytes[BURN_FUSED_MAX_BYTES / 8];
    const product *p = &cases[0];
    while (p->op != BURN_OP_CONV2D) {
        p++;
    }
    rig r = {.p = p, .t = &tails[0]};
    begin(&r);
    uint32_t size = write_program(&r, (burn_fused_program *)(void *)bytes);
    swap_axes(&r.in[0], 2, 3);
    tensor *all[6] = {&r.in[0], &r.in[1], &r.in[2], &r.rest, &r.line, &r.got[0]};
    assert_int_equal(call_row(row_of(BURN_OP_FUSED, "flex.fused.product", 0), bytes, size, all, 5,
                              1),
                     BURN_E_UNSUPPORTED);
    assert_non_null(strstr(fixture_error.text, "another layout"));
    end(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products__equal_their_ops_on_one_thread),
        cmocka_unit_test(products__equal_their_ops_on_several_threads),
        cmocka_unit_test(rows__are_for_programs_of_their_own),
        cmocka_unit_test(layouts__that_the_row_does_not_take_are_refused),
    };
    return fixture_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
