/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_stream.c - results so large that they go past the caches have the bits of small ones.
 *
 * Each op runs once on tensors of more than 48 MiB, from where on the backend streams, and again on
 * pieces of them, where it does not. Sizes are odd, so that tiles, lines and tasks end in the
 * middle, and results start 4 bytes off a line; then whole lines. Transposed copies are compared by
 * index. Argument 1 is the instruction set.
 */
#include "nn_checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 9001, PIECE = 97 };

/* Elements of a line, and where results start: set by the tests. */
static int64_t line = 1003;
static uintptr_t off_a_line = 4;

static rig_tensor lines_of(uint8_t dtype, int64_t n, void *data)
{
    rig_tensor t;
    memset(&t, 0, sizeof(t));
    t.dtype = dtype;
    t.rank = 2;
    t.dims[0] = n;
    t.dims[1] = line;
    t.strides[0] = line;
    t.strides[1] = 1;
    t.data = data;
    return t;
}

static int64_t size_of(uint8_t dtype)
{
    return dtype == BURN_F64 ? 8 : dtype == BURN_F32 ? 4 : 2;
}

/* Memory for all lines and 128 bytes more, filled with 0xA5. */
static char *room_for(uint8_t dtype)
{
    size_t bytes = (size_t)LINES * (size_t)line * (size_t)size_of(dtype) + 128;
    char *memory = malloc(bytes);
    assert_non_null(memory);
    memset(memory, 0xa5, bytes);
    return memory;
}

static void run_lines(const burn_plugin *plugin, uint64_t op, const void *attrs, uint32_t size,
                      uint32_t n_in, rig_tensor *in, rig_tensor *out)
{
    burn_err err = BURN_ERR_INIT;
    rig_tensor none = rig_absent();
    rig_call call;
    memset(&call, 0, sizeof(call));
    call.op = op;
    call.n_in = op == BURN_OP_LAYER_NORM ? 3 : n_in;
    call.in[0] = &in[0];
    call.in[1] = n_in > 1 ? &in[1] : &none;
    call.in[2] = &none;
    call.n_out = 1;
    call.out[0] = out;
    call.attrs = attrs;
    call.attrs_size = size;
    int32_t code = rig_run(plugin, &call, &err);
    if (code != BURN_OK) {
        print_message("%s\n", err.text);
    }
    assert_int_equal(code, BURN_OK);
}

/* Which operand is one value in all calls; NO_ONE: none. */
enum { NO_ONE = 2 };
static uint32_t one_value = NO_ONE;

/* All lines at once and piece by piece: the same bytes, and nothing written behind them. */
static void check_lines(uint64_t op, uint8_t dtype, uint32_t n_in, const void *attrs,
                        uint32_t size)
{
    const int64_t step = line * size_of(dtype);
    const int64_t all = LINES * step;
    rig_tensor made[2];
    for (uint32_t i = 0; i < n_in; i++) {
        made[i] = rig_random(dtype, 2, (const int64_t[]){LINES, line}, 7 + i);
        made[i].strides[0] = i == one_value ? 0 : line;
        made[i].strides[1] = i != one_value;
    }
    char *small = room_for(dtype);
    for (int64_t at = 0; at < LINES; at += PIECE) {
        int64_t n = LINES - at < PIECE ? LINES - at : PIECE;
        rig_tensor in[2];
        for (uint32_t i = 0; i < n_in; i++) {
            in[i] = made[i];
            in[i].dims[0] = n;
            in[i].data = (char *)made[i].data + (i == one_value ? 0 : at * step);
        }
        rig_tensor out = lines_of(dtype, n, small + at * step);
        run_lines(check_plugins[0], op, attrs, size, n_in, in, &out);
    }
    for (uint32_t threads = 1; threads <= 2; threads++) {
        char *large = room_for(dtype);
        uintptr_t start = 64 - (uintptr_t)large % 64 + off_a_line;
        rig_tensor out = lines_of(dtype, LINES, large + start);
        run_lines(check_plugins[threads - 1], op, attrs, size, n_in, made, &out);
        assert_memory_equal(large + start, small, (size_t)all);
        for (uintptr_t i = 0; i < 4; i++) {
            assert_int_equal((unsigned char)large[start - 4 + i], 0xa5);
            assert_int_equal((unsigned char)large[start + (uintptr_t)all + i], 0xa5);
        }
        free(large);
    }
    free(small);
    for (uint32_t i = 0; i < n_in; i++) {
        rig_free(&made[i]);
    }
}

static void elementwise__streamed_bits_are_those_of_pieces(void **state)
{
    (void)state;
    check_lines(BURN_OP_ADD, BURN_F32, 2, NULL, 0);
    check_lines(BURN_OP_RELU, BURN_F32, 1, NULL, 0);
    check_lines(BURN_OP_EXP, BURN_F32, 1, NULL, 0);
    check_lines(BURN_OP_SIN, BURN_F32, 1, NULL, 0);
    check_lines(BURN_OP_MUL, BURN_BF16, 2, NULL, 0);
    check_lines(BURN_OP_COPY, BURN_F32, 1, NULL, 0);
}

/* Those that write whole lines themselves (flex_pointwise_table), on CPUs that have such stores. */
static void loops_past_the_caches__have_the_bits_of_their_twins(void **state)
{
    (void)state;
#if !defined(__x86_64__)
    skip();
#endif
    static const uint64_t unary[] = {
        BURN_OP_NEG,   BURN_OP_ABS,  BURN_OP_SIGN, BURN_OP_SQRT,    BURN_OP_RECIP, BURN_OP_LOG,
        BURN_OP_EXPM1, BURN_OP_TANH, BURN_OP_ERF,  BURN_OP_SIGMOID, BURN_OP_ATAN};
    static const uint64_t binary[] = {BURN_OP_SUB, BURN_OP_MAXIMUM, BURN_OP_MINIMUM};
    for (uint32_t i = 0; i < sizeof(unary) / sizeof(unary[0]); i++) {
        check_lines(unary[i], BURN_F32, 1, NULL, 0);
    }
    for (one_value = 0; one_value <= NO_ONE; one_value++) {
        check_lines(binary[one_value], BURN_F32, 2, NULL, 0);
    }
    one_value = NO_ONE;
    off_a_line = 8;
    check_lines(BURN_OP_TANH, BURN_F64, 1, NULL, 0);
    check_lines(BURN_OP_RELU, BURN_F64, 1, NULL, 0);
    check_lines(BURN_OP_SUB, BURN_F64, 2, NULL, 0);
    off_a_line = 0;
    line = 1024;
    check_lines(BURN_OP_ADD, BURN_F32, 2, NULL, 0);
    line = 1003;
    off_a_line = 4;
}

static void check_ops_of_lines(void)
{
    burn_attrs_axis axis;
    burn_attrs_norm norm;
    memset(&axis, 0, sizeof(axis));
    memset(&norm, 0, sizeof(norm));
    axis.head.size = (uint32_t)sizeof(axis);
    axis.axis = 1;
    norm.head.size = (uint32_t)sizeof(norm);
    norm.n_axes = 1;
    norm.eps = 1e-5;
    check_lines(BURN_OP_SOFTMAX, BURN_F32, 1, &axis, (uint32_t)sizeof(axis));
    check_lines(BURN_OP_LOG_SOFTMAX, BURN_F32, 1, &axis, (uint32_t)sizeof(axis));
    check_lines(BURN_OP_SOFTMAX_GRAD, BURN_F32, 2, &axis, (uint32_t)sizeof(axis));
    check_lines(BURN_OP_LAYER_NORM, BURN_F32, 1, &norm, (uint32_t)sizeof(norm));
}

static void lines__streamed_bits_are_those_of_pieces(void **state)
{
    (void)state;
    check_ops_of_lines();
}

/* Whole lines of memory, which some loops write themselves. */
static void aligned_lines__streamed_bits_are_those_of_pieces(void **state)
{
    (void)state;
    static const int64_t lengths[] = {64, 1008, 1024, 2048, 2112};
    off_a_line = 0;
    for (uint32_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
        line = lengths[k];
        check_ops_of_lines();
    }
}

/* Rows of numbers that no near cache holds, in one call and row by row. */
static void check_folds(uint64_t op, int64_t length)
{
    enum { ROWS = 700 };
    burn_attrs_axes last;
    memset(&last, 0, sizeof(last));
    last.head.size = (uint32_t)sizeof(last);
    last.n_axes = 1;
    last.axes[0] = 1;
    rig_tensor x = rig_random(BURN_F32, 2, (const int64_t[]){ROWS, length}, 11);
    rig_tensor all = rig_new(BURN_F32, 1, (const int64_t[]){ROWS});
    rig_tensor one = rig_new(BURN_F32, 1, (const int64_t[]){ROWS});
    run_lines(check_plugins[1], op, &last, (uint32_t)sizeof(last), 1, &x, &all);
    for (int64_t r = 0; r < ROWS; r++) {
        rig_tensor row = x;
        rig_tensor out = one;
        row.dims[0] = 1;
        row.data = (char *)x.data + r * length * 4;
        out.dims[0] = 1;
        out.data = (char *)one.data + r * 4;
        run_lines(check_plugins[0], op, &last, (uint32_t)sizeof(last), 1, &row, &out);
    }
    assert_memory_equal(all.data, one.data, ROWS * sizeof(float));
    rig_free(&x);
    rig_free(&all);
    rig_free(&one);
}

static void folds_of_far_rows__have_the_bits_of_near_ones(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1000, 1024, 4096, 9001};
    for (uint32_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
        check_folds(BURN_OP_SUM, lengths[k]);
        check_folds(BURN_OP_MAX, lengths[k]);
    }
}

/* Strips of 8192, ranges of 256 columns and blocks of 16 do not divide these sizes. */
static void check_transposed(int64_t rows, int64_t columns)
{
    burn_err err = BURN_ERR_INIT;
    rig_tensor x = rig_new(BURN_F32, 2, (const int64_t[]){rows, columns});
    rig_tensor z = rig_new(BURN_F32, 2, (const int64_t[]){columns, rows});
    z.data = (char *)z.memory + (64 - (uintptr_t)z.memory % 64); /* there is that much room */
    float *from = x.data;
    const float *to = z.data;
    for (int64_t i = 0; i < rows * columns; i++) {
        from[i] = (float)i;
    }
    rig_tensor turned = rig_swapped(&x, 0, 1);
    for (uint32_t threads = 1; threads <= 2; threads++) {
        rig_call call = {.op = BURN_OP_COPY, .in = {&turned}, .out = {&z}, .n_in = 1, .n_out = 1};
        memset(z.data, 0xa5, sizeof(float) * (size_t)(rows * columns));
        assert_int_equal(rig_run(check_plugins[threads - 1], &call, &err), BURN_OK);
        int64_t wrong = 0;
        for (int64_t r = 0; r < columns; r++) {
            for (int64_t c = 0; c < rows; c++) {
                wrong += to[r * rows + c] != from[c * columns + r];
            }
        }
        assert_int_equal(wrong, 0);
    }
    rig_free(&x);
    rig_free(&z);
}

/* Rows that end in the middle of a line, and rows of whole lines. */
static void transposed_copy__every_element_arrives(void **state)
{
    (void)state;
    check_transposed(2611, 2573);
    check_transposed(2640, 2579);
    check_transposed(1553, 9001);
    check_transposed(61, 300007);
}

int main(int argc, char **argv)
{
    int code = check_load(argc, argv);
    if (code != 0) {
        return code;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise__streamed_bits_are_those_of_pieces),
        cmocka_unit_test(loops_past_the_caches__have_the_bits_of_their_twins),
        cmocka_unit_test(lines__streamed_bits_are_those_of_pieces),
        cmocka_unit_test(aligned_lines__streamed_bits_are_those_of_pieces),
        cmocka_unit_test(folds_of_far_rows__have_the_bits_of_near_ones),
        cmocka_unit_test(transposed_copy__every_element_arrives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
