/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stub_values.c - an extension with a kernel of a core op for flex, in f32, whose numbers are wrong
 * where few look: near 0, at subnormals, zeros, NaN and infinities.
 *
 * A test copies this library to <id>.so. The row of `lies` with that name says which op it takes
 * and what it computes; "<id>_right" is the same kernel with the right function, so that nothing
 * but the lie can turn a check red. Operands that broadcast or are scalars are refused, so flex
 * runs them. To add a lie: a function, a row, and one row in values.py.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "../loader/own_id.h"

#include <burn/op_attrs.h>
#include <burn/op_list.h>
#include <burn_sdk/loop.h>
#include <burn_sdk/op.h>
#include <burn_sdk/slots.h>
#include <float.h>
#include <math.h>

typedef float (*one_fn)(float x);
typedef float (*two_fn)(float x, float y);

typedef struct lie {
    const char *name;
    uint64_t op;
    int32_t(BURN_CALL *launch)(const burn_call *call);
    one_fn one[2]; /* wrong, right */
    two_fn two[2];
} lie;

static char own_id[64];
static char op_name[80];
static burn_op_def ops[1];
static burn_role roles[2];
static burn_slot slots[4];
static burn_row rows[1];
static burn_row_set row_sets[1];
static burn_plugin plugin;
static const burn_host *host;
static const lie *told;
static uint32_t is_right;

/* ---- wrong and right functions --------------------------------------------------------------- */

static float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0F, x) : x;
}

#define RIGHT(name)                                                                                \
    static float right_##name(float x)                                                             \
    {                                                                                              \
        return (float)name((double)x);                                                             \
    }
RIGHT(exp)
RIGHT(expm1)
RIGHT(log)
RIGHT(log1p)
RIGHT(sin)
RIGHT(sinh)
RIGHT(tanh)
RIGHT(sqrt)
RIGHT(trunc)

static float expm1_by_exp(float x)
{
    return (float)(exp((double)x)) - 1.0F;
}

static float log1p_by_log(float x)
{
    return (float)log((double)(1.0F + x));
}

static float sinh_by_exp(float x)
{
    return 0.5F * ((float)exp((double)x) - (float)exp(-(double)x));
}

static float tanh_by_exp(float x)
{
    float e = (float)exp(-2.0 * fabs((double)x));
    return copysignf((1.0F - e) / (1.0F + e), x);
}

/* Two words of pi in place of three: off where the angle is close to a multiple. */
static float sin_by_two_words(float x)
{
    float turns = rintf(x * 0.318309886F);
    float rest = fmaf(turns, -3.14159274F, x);
    float value = (float)sin((double)rest);
    float signed_value = fmodf(turns, 2.0F) == 0.0F ? value : -value;
    return x == 0.0F || !isfinite(x) ? (float)sin((double)x) : signed_value;
}

static float softplus_by_log(float x)
{
    return x > 20.0F ? x : (float)log((double)(1.0F + (float)exp((double)x)));
}

static float right_softplus(float x)
{
    double y = (double)x;
    return (float)((y < 0.0 ? 0.0 : y) + log1p(exp(-fabs(y))));
}

static float exp_flushed(float x)
{
    return flushed(right_exp(x));
}

static float sqrt_flushed(float x)
{
    return right_sqrt(flushed(x));
}

static float log_flushed(float x)
{
    return right_log(flushed(x));
}

static float abs_flushed(float x)
{
    return fabsf(flushed(x));
}

static float neg_by_sub(float x)
{
    return 0.0F - x;
}

static float right_neg(float x)
{
    return -x;
}

static float trunc_by_integer(float x)
{
    return fabsf(x) < 1e9F ? (float)(int32_t)x : x;
}

static float relu_by_fmax(float x)
{
    return fmaxf(x, 0.0F);
}

static float right_relu(float x)
{
    return x < 0.0F ? 0.0F : x;
}

static float sign_by_copysign(float x)
{
    return x == 0.0F ? 0.0F : copysignf(1.0F, x);
}

static float right_sign(float x)
{
    return (float)((x > 0.0F) - (x < 0.0F));
}

static float add_flushed(float x, float y)
{
    return flushed(x + y);
}

static float right_add(float x, float y)
{
    return x + y;
}

static float mul_flushed(float x, float y)
{
    return flushed(x * y);
}

/* A zero in either is taken for all there is to know. */
static float mul_skips_zero(float x, float y)
{
    return x == 0.0F || y == 0.0F ? 0.0F : x * y;
}

static float mul_unsigned_zero(float x, float y)
{
    float z = x * y;
    return z == 0.0F ? 0.0F : z;
}

static float right_mul(float x, float y)
{
    return x * y;
}

static float div_by_recip(float x, float y)
{
    return x * (1.0F / y);
}

static float right_div(float x, float y)
{
    return x / y;
}

static float maximum_loses_nan(float x, float y)
{
    return fmaxf(x, y);
}

static float maximum_of_one_side(float x, float y)
{
    return x > y ? x : y;
}

static float right_maximum(float x, float y)
{
    return isnan(x) ? x : x > y ? x : y;
}

static float pow_of_nan(float x, float y)
{
    return isnan(x) || isnan(y) ? NAN : (float)pow((double)x, (double)y);
}

static float right_pow(float x, float y)
{
    return (float)pow((double)x, (double)y);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static int64_t count(const burn_operand *o)
{
    return burn_dims_count(o->rank, o->dims);
}

static int32_t launch_one(const burn_call *call)
{
    const float *x = burn_call_operand(call, 0)->data;
    const burn_operand *z = burn_call_operand(call, 1);
    int64_t n = count(z);
    for (int64_t k = 0; k < n; k++) {
        ((float *)z->data)[k] = told->one[is_right](x[k]);
    }
    return BURN_OK;
}

static int32_t launch_two(const burn_call *call)
{
    const float *x = burn_call_operand(call, 0)->data;
    const float *y = burn_call_operand(call, 1)->data;
    const burn_operand *z = burn_call_operand(call, 2);
    int64_t n = count(z);
    for (int64_t k = 0; k < n; k++) {
        ((float *)z->data)[k] = told->two[is_right](x[k], y[k]);
    }
    return BURN_OK;
}

/* The lie leaves out what is multiplied by a zero of x. */
static int32_t launch_matmul(const burn_call *call)
{
    const burn_operand *a = burn_call_operand(call, 0);
    const burn_operand *b = burn_call_operand(call, 1);
    const float *x = a->data;
    const float *y = b->data;
    float *z = burn_call_operand(call, 2)->data;
    for (int64_t i = 0; i < a->dims[0]; i++) {
        for (int64_t j = 0; j < b->dims[1]; j++) {
            double sum = 0.0;
            for (int64_t k = 0; k < a->dims[1]; k++) {
                double one = (double)x[i * a->dims[1] + k];
                double other = (double)y[k * b->dims[1] + j];
                sum += one != 0.0 || is_right ? one * other : 0.0;
            }
            z[i * b->dims[1] + j] = (float)sum;
        }
    }
    return BURN_OK;
}

/* One element of a convolution; the lie leaves the padding out. */
static double window_sum(const burn_call *call, const int64_t *at)
{
    const burn_attrs_conv *a = call->attrs;
    const burn_operand *x = burn_call_operand(call, 0);
    const burn_operand *w = burn_call_operand(call, 1);
    const burn_operand *bias = burn_call_operand(call, 2);
    int64_t taps = w->dims[2] * w->dims[3];
    double sum = bias->kind == BURN_TENSOR ? (double)((const float *)bias->data)[at[1]] : 0.0;
    for (int64_t t = 0; t < w->dims[1] * taps; t++) {
        int64_t iy = at[2] * a->stride[0] - a->padding[0] + t % taps / w->dims[3];
        int64_t ix = at[3] * a->stride[1] - a->padding[1] + t % w->dims[3];
        int inside = iy >= 0 && iy < x->dims[2] && ix >= 0 && ix < x->dims[3];
        int64_t from = ((at[0] * x->dims[1] + t / taps) * x->dims[2] + iy) * x->dims[3] + ix;
        double value = inside ? (double)((const float *)x->data)[from] : 0.0;
        if (inside || is_right) {
            sum += value * (double)((const float *)w->data)[at[1] * w->dims[1] * taps + t];
        }
    }
    return sum;
}

static int32_t launch_conv(const burn_call *call)
{
    const burn_operand *y = burn_call_operand(call, 3);
    int64_t n = count(y);
    for (int64_t k = 0; k < n; k++) {
        int64_t at[4];
        int64_t rest = k;
        for (uint32_t d = 4; d-- > 0;) {
            at[d] = rest % y->dims[d];
            rest /= y->dims[d];
        }
        ((float *)y->data)[k] = (float)window_sum(call, at);
    }
    return BURN_OK;
}

/* Shapes that the loops above can do; flex does the others. */
static int32_t can_do(const burn_call *call)
{
    const burn_operand *x = burn_call_operand(call, 0);
    int fits = 1;
    if (rows[0].op == BURN_OP_CONV2D) {
        const burn_attrs_conv *a = call->attrs;
        fits = a->groups == 1 && a->dilation[0] == 1 && a->dilation[1] == 1;
    } else if (rows[0].op == BURN_OP_MATMUL) {
        fits = x->rank == 2 && burn_call_operand(call, 1)->rank == 2;
    } else {
        for (uint32_t i = 1; i < call->n_in + call->n_out; i++) {
            const burn_operand *o = burn_call_operand(call, i);
            fits = fits && o->rank == x->rank &&
                   memcmp(o->dims, x->dims, x->rank * sizeof(x->dims[0])) == 0;
        }
    }
    return fits ? BURN_OK : burn_plugin_fail(call->err, BURN_E_UNSUPPORTED, "flex does those");
}

#define ONE(name, OP, wrong, right)                                                                \
    {                                                                                              \
        name, BURN_OP_##OP, launch_one, {wrong, right}, { NULL, NULL }                             \
    }
#define TWO(name, OP, wrong, right)                                                                \
    {                                                                                              \
        name, BURN_OP_##OP, launch_two, {NULL, NULL}, { wrong, right }                             \
    }
#define SUM(name, OP, launch)                                                                      \
    {                                                                                              \
        name, BURN_OP_##OP, launch, {NULL, NULL}, { NULL, NULL }                                   \
    }

static const lie lies[] = {
    ONE("expm1_by_exp", EXPM1, expm1_by_exp, right_expm1),
    ONE("log1p_by_log", LOG1P, log1p_by_log, right_log1p),
    ONE("sinh_by_exp", SINH, sinh_by_exp, right_sinh),
    ONE("tanh_by_exp", TANH, tanh_by_exp, right_tanh),
    ONE("sin_by_two_words", SIN, sin_by_two_words, right_sin),
    ONE("softplus_by_log", SOFTPLUS, softplus_by_log, right_softplus),
    ONE("exp_flushed", EXP, exp_flushed, right_exp),
    ONE("sqrt_flushed", SQRT, sqrt_flushed, right_sqrt),
    ONE("log_flushed", LOG, log_flushed, right_log),
    ONE("abs_flushed", ABS, abs_flushed, fabsf),
    ONE("neg_by_sub", NEG, neg_by_sub, right_neg),
    ONE("trunc_by_integer", TRUNC, trunc_by_integer, right_trunc),
    ONE("relu_by_fmax", RELU, relu_by_fmax, right_relu),
    ONE("sign_by_copysign", SIGN, sign_by_copysign, right_sign),
    TWO("add_flushed", ADD, add_flushed, right_add),
    TWO("mul_flushed", MUL, mul_flushed, right_mul),
    TWO("mul_skips_zero", MUL, mul_skips_zero, right_mul),
    TWO("mul_unsigned_zero", MUL, mul_unsigned_zero, right_mul),
    TWO("div_by_recip", DIV, div_by_recip, right_div),
    TWO("maximum_loses_nan", MAXIMUM, maximum_loses_nan, right_maximum),
    TWO("maximum_of_one_side", MAXIMUM, maximum_of_one_side, right_maximum),
    TWO("pow_of_nan", POW, pow_of_nan, right_pow),
    SUM("matmul_skips_zero", MATMUL, launch_matmul),
    SUM("conv2d_skips_padding", CONV2D, launch_conv),
    ONE("own_loses_nan", FILL, relu_by_fmax, right_relu), /* of an op of its own */
};

/* ---- an op of its own, whose samples have ordinary numbers only ------------------------------ */

static int32_t eval(const burn_eval *a)
{
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        double x = a->in[0].f[k];
        a->out[0].f[k] = x < 0.0 ? 0.0 : x;
    }
    return BURN_OK;
}

static int32_t decompose(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_relu(b, a->in[0]);
    return BURN_OK;
}

static int32_t samples(uint32_t i, burn_sample *out)
{
    const int64_t dims[1] = {60};
    if (i > 0) {
        return BURN_E_END;
    }
    burn_sample_begin(out, "vector", 0.0, 64.0);
    burn_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, 1, dims);
    out->flags |= BURN_SAMPLE_ANY_ZERO;
    return BURN_OK;
}

static void build_op(void)
{
    (void)snprintf(op_name, sizeof(op_name), "%s.op", own_id);
    for (uint32_t k = 0; k < 2; k++) {
        roles[k].name = k == 0 ? "x" : "y";
        roles[k].dtypes[0] = BURN_SET_FLOAT;
        roles[k].same_dtype_as = k;
    }
    ops[0].name = op_name;
    ops[0].summary = "The positive part of x.";
    ops[0].n_in = 1;
    ops[0].n_out = 1;
    ops[0].roles = roles;
    ops[0].fuse = BURN_FUSE_POINTWISE;
    ops[0].decompose = decompose;
    ops[0].eval = eval;
    ops[0].samples = samples;
    burn_op_finish(&ops[0]);
}

/* ---- the plugin ------------------------------------------------------------------------------ */

/* The lie whose name this library has, with "_right" behind it or not. */
static void find_lie(void)
{
    for (size_t i = 0; i < BURN_COUNT(lies); i++) {
        size_t n = strlen(lies[i].name);
        if (strncmp(lies[i].name, own_id, n) == 0 &&
            (own_id[n] == '\0' || strcmp(own_id + n, "_right") == 0)) {
            told = &lies[i];
            is_right = own_id[n] != '\0';
        }
    }
}

static void build_row(void)
{
    uint32_t n_in = told->two[0] != NULL || told->op == BURN_OP_MATMUL ? 2 : 1;
    n_in = told->op == BURN_OP_CONV2D ? 3 : n_in;
    for (uint32_t i = 0; i < BURN_COUNT(slots); i++) {
        slots[i].dtypes[0] = BURN_BIT(F32);
        slots[i].layouts = BURN_LAYOUT_CONTIGUOUS;
        slots[i].rank_max = BURN_MAX_RANK;
    }
    BURN_INIT(&rows[0], burn_row);
    rows[0].flags = BURN_ROW_DETERMINISTIC | BURN_ROW_ANY_DIMS;
    rows[0].op = told->op == BURN_OP_FILL ? ops[0].id : told->op;
    rows[0].revision_min = 1;
    rows[0].revision_max = 1;
    rows[0].priority = 1000;
    rows[0].n_slots = n_in + 1;
    rows[0].slot_stride = (uint32_t)sizeof(burn_slot);
    rows[0].slots = slots;
    rows[0].name = "stub.values";
    rows[0].check = can_do;
    rows[0].launch = told->launch;
    BURN_INIT(&row_sets[0], burn_row_set);
    row_sets[0].backend = "flex";
    row_sets[0].rows = rows;
    row_sets[0].n_rows = 1;
    row_sets[0].row_stride = (uint32_t)sizeof(burn_row);
}

__attribute__((visibility("default"))) const burn_plugin *BURN_CALL
burn_plugin_query(uint32_t host_oldest, uint32_t host_newest, const burn_host *given, burn_err *err)
{
    static const burn_magic magic = BURN_MAGIC_INIT;
    find_own_id(own_id, sizeof(own_id));
    find_lie();
    BURN_INIT(&plugin, burn_plugin);
    build_op();
    plugin.magic = magic;
    plugin.id = own_id;
    plugin.version = "1.2.3";
    plugin.ops = ops;
    plugin.n_ops = 1;
    plugin.op_stride = (uint32_t)sizeof(burn_op_def);
    if (told != NULL) {
        build_row();
        plugin.row_sets = row_sets;
        plugin.n_row_sets = 1;
        plugin.row_set_stride = (uint32_t)sizeof(burn_row_set);
    }
    return burn_plugin_answer(host_oldest, host_newest, given, &host, &plugin, err);
}
