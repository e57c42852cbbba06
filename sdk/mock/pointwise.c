/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pointwise.c - unary and binary arithmetic, comparisons, where, cast, copy and assign.
 *
 * One loop per family over the output's dims with each operand's strides; what differs between two
 * ops of a family is a small table of scalar functions. Floats are computed in double and rounded
 * once to f32 (then to the dtype); integers wrap. To add an op: its scalar functions, a table, a
 * launch function. Runs on the worker of a queue.
 */
#include "mock.h"
#include "mock_kernels.h"

#include <math.h>

/* Starts a loop over output 0; strides: inputs, then the output. */
static void begin(burn_loop *loop, mock_item *item)
{
    const int64_t *strides[MOCK_OPERANDS];
    const mock_operand *out = mock_out(item);
    for (uint32_t i = 0; i <= item->n_in; i++) {
        strides[i] = item->operands[i].strides;
    }
    burn_loop_begin(loop, out->rank, out->dims, item->n_in + 1, strides);
}

static unsigned char *operand_at(mock_item *item, const burn_loop *loop, uint32_t i)
{
    return mock_at(&item->operands[i], loop->offset[i]);
}

/* Unary: floats only. */
typedef struct unary_kernel {
    double (*apply)(double x);
} unary_kernel;

static void run_unary(mock_item *item)
{
    const unary_kernel *kernel = (const unary_kernel *)item->kernel;
    uint8_t dtype = mock_out(item)->dtype;
    burn_loop loop;
    for (begin(&loop, item); burn_loop_more(&loop); burn_loop_next(&loop)) {
        double x = burn_load_f64(operand_at(item, &loop, 0), dtype);
        burn_store_f64(operand_at(item, &loop, 1), dtype, kernel->apply(x));
    }
}

static const unary_kernel kernel_exp = {exp};
static const unary_kernel kernel_log = {log};
static const unary_kernel kernel_sqrt = {sqrt};
static const unary_kernel kernel_floor = {floor};
static const unary_kernel kernel_sin = {sin};
static const unary_kernel kernel_cos = {cos};
static const unary_kernel kernel_tanh = {tanh};
static const unary_kernel kernel_erf = {erf};

int32_t mock_launch_exp(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_EXP, run_unary, &kernel_exp);
}

int32_t mock_launch_log(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_LOG, run_unary, &kernel_log);
}

int32_t mock_launch_sqrt(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_SQRT, run_unary, &kernel_sqrt);
}

int32_t mock_launch_floor(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_FLOOR, run_unary, &kernel_floor);
}

int32_t mock_launch_sin(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_SIN, run_unary, &kernel_sin);
}

int32_t mock_launch_cos(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_COS, run_unary, &kernel_cos);
}

int32_t mock_launch_tanh(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_TANH, run_unary, &kernel_tanh);
}

int32_t mock_launch_erf(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_ERF, run_unary, &kernel_erf);
}

/* Binary arithmetic: one function per class of dtype. */
typedef struct binary_kernel {
    double (*floats)(double x, double y);
    int64_t (*ints)(int64_t x, int64_t y);
    uint64_t (*uints)(uint64_t x, uint64_t y);
    int32_t zero_faults; /* an integer 0 on the right is an error */
} binary_kernel;

static void run_binary(mock_item *item)
{
    const binary_kernel *kernel = (const binary_kernel *)item->kernel;
    uint8_t dtype = mock_out(item)->dtype;
    uint32_t klass = burn_element_class(dtype);
    burn_loop loop;
    for (begin(&loop, item); burn_loop_more(&loop); burn_loop_next(&loop)) {
        const unsigned char *x = operand_at(item, &loop, 0);
        const unsigned char *y = operand_at(item, &loop, 1);
        unsigned char *z = operand_at(item, &loop, 2);
        if (klass == BURN_CLASS_FLOAT) {
            burn_store_f64(z, dtype, kernel->floats(burn_load_f64(x, dtype),
                                                    burn_load_f64(y, dtype)));
        } else if (kernel->zero_faults != 0 && burn_load_u64(y, dtype) == 0) {
            mock_fault(item, BURN_E_DATA, 1, 0, loop.position, 0);
            burn_store_i64(z, dtype, 0);
        } else if (klass == BURN_CLASS_UINT) {
            burn_store_u64(z, dtype, kernel->uints(burn_load_u64(x, dtype),
                                                   burn_load_u64(y, dtype)));
        } else {
            burn_store_i64(z, dtype, kernel->ints(burn_load_i64(x, dtype),
                                                  burn_load_i64(y, dtype)));
        }
    }
}

static double add_floats(double x, double y)
{
    return x + y;
}

static int64_t add_ints(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x + (uint64_t)y);
}

static uint64_t add_uints(uint64_t x, uint64_t y)
{
    return x + y;
}

static double sub_floats(double x, double y)
{
    return x - y;
}

static int64_t sub_ints(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x - (uint64_t)y);
}

static uint64_t sub_uints(uint64_t x, uint64_t y)
{
    return x - y;
}

static double mul_floats(double x, double y)
{
    return x * y;
}

static int64_t mul_ints(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x * (uint64_t)y);
}

static uint64_t mul_uints(uint64_t x, uint64_t y)
{
    return x * y;
}

static double div_floats(double x, double y)
{
    return x / y;
}

/* -1 is apart: INT64_MIN / -1 is a trap, and wraps here. */
static int64_t div_ints(int64_t x, int64_t y)
{
    return y == -1 ? sub_ints(0, x) : x / y;
}

static uint64_t div_uints(uint64_t x, uint64_t y)
{
    return x / y;
}

/* NaN wins on either side. */
static double max_floats(double x, double y)
{
    if (x != x || y != y) {
        return x + y;
    }
    return x < y ? y : x;
}

static int64_t max_ints(int64_t x, int64_t y)
{
    return x < y ? y : x;
}

static uint64_t max_uints(uint64_t x, uint64_t y)
{
    return x < y ? y : x;
}

static const binary_kernel kernel_add = {add_floats, add_ints, add_uints, 0};
static const binary_kernel kernel_sub = {sub_floats, sub_ints, sub_uints, 0};
static const binary_kernel kernel_mul = {mul_floats, mul_ints, mul_uints, 0};
static const binary_kernel kernel_div = {div_floats, div_ints, div_uints, 1};
static const binary_kernel kernel_maximum = {max_floats, max_ints, max_uints, 0};

int32_t mock_launch_add(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_ADD, run_binary, &kernel_add);
}

int32_t mock_launch_sub(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_SUB, run_binary, &kernel_sub);
}

int32_t mock_launch_mul(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_MUL, run_binary, &kernel_mul);
}

int32_t mock_launch_div(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_DIV, run_binary, &kernel_div);
}

int32_t mock_launch_maximum(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_MAXIMUM, run_binary, &kernel_maximum);
}

/* Comparisons: a bool for each pair; false with NaN. */
typedef struct compare_kernel {
    int (*floats)(double x, double y);
    int (*ints)(int64_t x, int64_t y);
    int (*uints)(uint64_t x, uint64_t y);
} compare_kernel;

static void run_compare(mock_item *item)
{
    const compare_kernel *kernel = (const compare_kernel *)item->kernel;
    uint8_t dtype = item->operands[0].dtype;
    uint32_t klass = burn_element_class(dtype);
    burn_loop loop;
    for (begin(&loop, item); burn_loop_more(&loop); burn_loop_next(&loop)) {
        const unsigned char *x = operand_at(item, &loop, 0);
        const unsigned char *y = operand_at(item, &loop, 1);
        int truth = 0;
        if (klass == BURN_CLASS_FLOAT) {
            truth = kernel->floats(burn_load_f64(x, dtype), burn_load_f64(y, dtype));
        } else if (klass == BURN_CLASS_UINT) {
            truth = kernel->uints(burn_load_u64(x, dtype), burn_load_u64(y, dtype));
        } else {
            truth = kernel->ints(burn_load_i64(x, dtype), burn_load_i64(y, dtype));
        }
        burn_store_i64(operand_at(item, &loop, 2), BURN_BOOL, truth);
    }
}

static int equal_floats(double x, double y)
{
    return x == y;
}

static int equal_ints(int64_t x, int64_t y)
{
    return x == y;
}

static int equal_uints(uint64_t x, uint64_t y)
{
    return x == y;
}

static int less_floats(double x, double y)
{
    return x < y;
}

static int less_ints(int64_t x, int64_t y)
{
    return x < y;
}

static int less_uints(uint64_t x, uint64_t y)
{
    return x < y;
}

static const compare_kernel kernel_equal = {equal_floats, equal_ints, equal_uints};
static const compare_kernel kernel_less = {less_floats, less_ints, less_uints};

int32_t mock_launch_equal(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_EQUAL, run_compare, &kernel_equal);
}

int32_t mock_launch_less(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_LESS, run_compare, &kernel_less);
}

/* Only bits move, so NaN payloads stay. */
static void run_where(mock_item *item)
{
    size_t size = mock_out(item)->size;
    burn_loop loop;
    for (begin(&loop, item); burn_loop_more(&loop); burn_loop_next(&loop)) {
        uint32_t side = *operand_at(item, &loop, 0) != 0 ? 1 : 2;
        memcpy(operand_at(item, &loop, 3), operand_at(item, &loop, side), size);
    }
}

int32_t mock_launch_where(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_WHERE, run_where, NULL);
}

static void run_cast(mock_item *item)
{
    uint8_t from = item->operands[0].dtype;
    uint8_t to = mock_out(item)->dtype;
    burn_loop loop;
    for (begin(&loop, item); burn_loop_more(&loop); burn_loop_next(&loop)) {
        burn_element_cast(operand_at(item, &loop, 1), to, operand_at(item, &loop, 0), from);
    }
}

int32_t mock_launch_cast(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_CAST, run_cast, NULL);
}

/* The last input into the output, element by element. */
static void run_copy(mock_item *item)
{
    uint32_t from = item->n_in - 1;
    size_t size = mock_out(item)->size;
    burn_loop loop;
    for (begin(&loop, item); burn_loop_more(&loop); burn_loop_next(&loop)) {
        unsigned char *to = operand_at(item, &loop, item->n_in);
        memmove(to, operand_at(item, &loop, from), size);
    }
}

int32_t mock_launch_copy(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_COPY, run_copy, NULL);
}

/* The output is the variable's own storage; input 0, its old value, is not read. */
int32_t mock_launch_assign(const burn_call *call)
{
    return mock_launch_pointwise(call, BURN_OP_ASSIGN, run_copy, NULL);
}

int32_t mock_launch_many_assign(const burn_call *calls, uint32_t n, uint32_t stride)
{
    return mock_launch_many(calls, n, stride, BURN_OP_ASSIGN, run_copy);
}
