/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * conv.c - rows of conv1d, conv2d, conv_transpose2d and the gradients of conv2d.
 *
 * Owns how a call becomes a flex_conv: each op is a row of a small table that says which operand is
 * image, kernel and map, and which of them is computed (a transposed convolution computes the
 * image). f16 and bf16 are widened to f32 in the workspace. Operands come dense.
 * To add an op: a row of `readings` and a row at the end.
 */
#include "conv.h"

#include "conv_direct.h"
#include "nn.h"
#include "rows.h"

#include <string.h>

/* Operand positions; -1: none. The result is the operand after the inputs. */
typedef struct reading {
    uint32_t what;
    int8_t image;
    int8_t kernel;
    int8_t map;
    int8_t bias;
} reading;

enum { RESULT = -2 };

static const reading read_conv = {FLEX_CONV_MAP, 0, 1, RESULT, 2};
static const reading read_grad_input = {FLEX_CONV_IMAGE, RESULT, 0, 1, -1};
static const reading read_grad_weight = {FLEX_CONV_KERNEL, 0, RESULT, 1, -1};
static const reading read_transpose = {FLEX_CONV_IMAGE, RESULT, 1, 0, 2};

static const burn_operand *pick(const burn_call *call, int8_t which)
{
    if (which == RESULT) {
        return flex_out(call, 0);
    }
    if (which < 0 || (uint32_t)which >= call->n_in) {
        return NULL;
    }
    const burn_operand *x = flex_in(call, (uint32_t)which);
    return flex_absent(x) ? NULL : x;
}

/* Height of an operand (1 for the rank-3 operands of conv1d) and its width. */
static int64_t height(const burn_operand *x)
{
    return x->rank == 4 ? x->dims[2] : 1;
}

static int64_t width(const burn_operand *x)
{
    return x->dims[x->rank - 1];
}

static void make_conv(const burn_call *call, const reading *r, flex_conv *v)
{
    const burn_attrs_conv *attrs = call->attrs;
    const burn_operand *image = pick(call, r->image);
    const burn_operand *kernel = pick(call, r->kernel);
    const burn_operand *map = pick(call, r->map);
    v->n = image->dims[0];
    v->c = image->dims[1];
    v->h = height(image);
    v->w = width(image);
    v->o = map->dims[1];
    v->oh = height(map);
    v->ow = width(map);
    v->kh = height(kernel);
    v->kw = width(kernel);
    v->groups = attrs->groups;
    for (uint32_t i = 0; i < 2; i++) {
        v->stride[i] = attrs->stride[i];
        v->padding[i] = attrs->padding[i];
        v->dilation[i] = attrs->dilation[i];
    }
    if (image->rank == 3) {
        v->stride[1] = attrs->stride[0];
        v->padding[1] = attrs->padding[0];
        v->dilation[1] = attrs->dilation[0];
        v->stride[0] = 1;
        v->padding[0] = 0;
        v->dilation[0] = 1;
    }
}

/* The four operands in the order of flex_conv_data. */
static void operands_of(const burn_call *call, const reading *r, const burn_operand *x[4])
{
    x[0] = pick(call, r->image);
    x[1] = pick(call, r->kernel);
    x[2] = pick(call, r->map);
    x[3] = pick(call, r->bias);
}

static int needs_widening(const burn_operand *x)
{
    return x != NULL && x->dtype != BURN_F32 && x->dtype != BURN_F64;
}

static uint64_t widened_bytes(const burn_operand *const x[4])
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < 4; i++) {
        bytes += needs_widening(x[i]) ? flex_float_bytes(flex_numel(x[i])) : 0;
    }
    return bytes;
}

static int32_t prepare_by(const burn_call *call, const reading *r, uint32_t way,
                          burn_prepared *out)
{
    flex_conv v;
    make_conv(call, r, &v);
    const burn_operand *x[4];
    operands_of(call, r, x);
    out->flops = (uint64_t)(2 * v.n * v.o * v.oh * v.ow * (v.c / v.groups) * v.kh * v.kw);
    uint64_t own = x[0]->dtype == BURN_F64 ? 0 : flex_conv_f32_bytes(&v, r->what, way);
    return flex_want_workspace(out, own + widened_bytes(x));
}

static int32_t prepare(const burn_call *call, const reading *r, burn_prepared *out)
{
    return prepare_by(call, r, FLEX_CONV_BY_SHAPE, out);
}

static int32_t launch_by(const burn_call *call, const reading *r, uint32_t way)
{
    flex_conv v;
    make_conv(call, r, &v);
    const burn_operand *x[4];
    operands_of(call, r, x);
    const burn_operand *result = flex_out(call, 0);
    if (flex_numel(result) == 0) {
        return BURN_OK;
    }
    void *data[4] = {x[0]->data, x[1]->data, x[2]->data, x[3] != NULL ? x[3]->data : NULL};
    if (x[0]->dtype == BURN_F64) {
        flex_conv_data d = {data[0], data[1], data[2], data[3], {NULL, NULL}};
        flex_conv_f64(&v, r->what, &d);
        return BURN_OK;
    }
    char *memory = flex_workspace(call);
    if (memory == NULL) {
        return flex_fail(call->err, BURN_E_INTERNAL, "convolution: the call has no workspace");
    }
    for (uint32_t i = 0; i < 4; i++) {
        if (needs_widening(x[i])) {
            data[i] = memory;
            memory += flex_float_bytes(flex_numel(x[i]));
            if (x[i] != result) {
                flex_gather_f32(data[i], x[i]);
            }
        }
    }
    flex_conv_data d = {data[0], data[1], data[2], data[3], {NULL, NULL}};
    flex_conv_f32(&v, r->what, way, &d, memory);
    if (needs_widening(result)) {
        static const uint8_t index_of_result[] = {2, 0, 1}; /* by FLEX_CONV_* */
        const float *wide = data[index_of_result[r->what]];
        flex_narrow(result->data, result->dtype, wide, flex_numel(result));
    }
    return BURN_OK;
}

static int32_t launch(const burn_call *call, const reading *r)
{
    return launch_by(call, r, FLEX_CONV_BY_SHAPE);
}

/* Maps this small are not worth a run of an epilogue for each channel or image, nor strips of
 * products that are computed so soon. */
enum { LEAST_PIXELS = 128, LEAST_PATCH = 128 };

static int is_hot(const burn_operand *x, const flex_conv *v)
{
    int64_t patch = v->c / v->groups * v->kh * v->kw;
    return x->dtype == BURN_F32 && v->oh * v->ow >= LEAST_PIXELS &&
           (patch >= LEAST_PATCH || flex_conv_direct_fits(v, FLEX_CONV_MAP));
}

int flex_conv_passes_on(const burn_call *call)
{
    flex_conv v;
    make_conv(call, &read_conv, &v);
    return is_hot(flex_in(call, 0), &v) && !flex_conv_keeps_map(&v);
}

int32_t flex_conv_run_hot(const burn_call *call, const flex_epilogue *finish)
{
    flex_conv v;
    const burn_operand *x[4];
    make_conv(call, &read_conv, &v);
    operands_of(call, &read_conv, x);
    void *memory = flex_workspace(call);
    if (!is_hot(x[0], &v) || memory == NULL) {
        return BURN_E_UNSUPPORTED;
    }
    flex_conv_data d = {x[0]->data, x[1]->data, x[2]->data, x[3] != NULL ? x[3]->data : NULL,
                        *finish};
    flex_conv_f32(&v, FLEX_CONV_MAP, FLEX_CONV_BY_SHAPE, &d, memory);
    return BURN_OK;
}

/* Candidates of the tuner: each way where the shape suggests the other one. */
static int32_t check_way(const burn_call *call, const reading *r, uint32_t way)
{
    flex_conv v;
    make_conv(call, r, &v);
    if (flex_numel(flex_out(call, 0)) == 0) {
        return flex_fail(call->err, BURN_E_UNSUPPORTED, "convolution: there is nothing to compute");
    }
    int direct = flex_conv_direct_fits(&v, r->what);
    if (direct == (way == FLEX_CONV_DIRECT)) {
        return flex_fail(call->err, BURN_E_UNSUPPORTED,
                         "convolution: the plain row takes this way already");
    }
    if (way == FLEX_CONV_DIRECT && !flex_conv_direct_can(&v, r->what)) {
        return flex_fail(call->err, BURN_E_UNSUPPORTED,
                         "convolution: this shape cannot be computed from the image itself");
    }
    return BURN_OK;
}

#define WAY_FNS(name, way, suffix)                                                                 \
    static int32_t check_##name##_##suffix(const burn_call *call)                                  \
    {                                                                                              \
        return check_way(call, &read_##name, way);                                                 \
    }                                                                                              \
    static int32_t prepare_##name##_##suffix(const burn_call *call, burn_prepared *out)            \
    {                                                                                              \
        return prepare_by(call, &read_##name, way, out);                                           \
    }                                                                                              \
    static int32_t launch_##name##_##suffix(const burn_call *call)                                 \
    {                                                                                              \
        return launch_by(call, &read_##name, way);                                                 \
    }
#define BOTH_WAYS(name)                                                                            \
    WAY_FNS(name, FLEX_CONV_DIRECT, direct)                                                        \
    WAY_FNS(name, FLEX_CONV_PRODUCT, product)
BOTH_WAYS(conv)
BOTH_WAYS(grad_input)
BOTH_WAYS(grad_weight)

#define READING_FNS(name)                                                                          \
    static int32_t prepare_##name(const burn_call *call, burn_prepared *out)                       \
    {                                                                                              \
        return prepare(call, &read_##name, out);                                                   \
    }                                                                                              \
    static int32_t launch_##name(const burn_call *call)                                            \
    {                                                                                              \
        return launch(call, &read_##name);                                                         \
    }
READING_FNS(conv)
READING_FNS(grad_input)
READING_FNS(grad_weight)
READING_FNS(transpose)

#define DENSE BURN_LAYOUT_CONTIGUOUS
static const burn_slot with_bias[] = {
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0),
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0),
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, FLEX_OPT),
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0),
};
static const burn_slot without_bias[] = {
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0),
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0),
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0),
};

#define NARROW_SET (BURN_BIT(F32) | BURN_BIT(F16) | BURN_BIT(BF16))
static const burn_slot narrow_with_bias[] = {
    FLEX_SLOT(NARROW_SET, DENSE, 0, 0),
    FLEX_SLOT(NARROW_SET, DENSE, 1, 0),
    FLEX_SLOT(NARROW_SET, DENSE, 1, FLEX_OPT),
    FLEX_SLOT(NARROW_SET, DENSE, 1, 0),
};
static const burn_slot narrow_without_bias[] = {
    FLEX_SLOT(NARROW_SET, DENSE, 0, 0),
    FLEX_SLOT(NARROW_SET, DENSE, 1, 0),
    FLEX_SLOT(NARROW_SET, DENSE, 1, 0),
};

/* clang-format off */
#define CANDIDATES(op, slots, name, reading)                                                       \
    FLEX_ROW_CANDIDATE(op, slots, name ".direct", check_##reading##_direct,                        \
                       prepare_##reading##_direct, launch_##reading##_direct),                     \
    FLEX_ROW_CANDIDATE(op, slots, name ".product", check_##reading##_product,                      \
                       prepare_##reading##_product, launch_##reading##_product)

const burn_row flex_rows_conv[] = {
    FLEX_ROW_PREPARED(BURN_OP_CONV2D, with_bias, BURN_ROW_EPILOGUE | BURN_ROW_TUNABLE,
                      "flex.conv2d", prepare_conv, launch_conv),
    CANDIDATES(BURN_OP_CONV2D, narrow_with_bias, "flex.conv2d", conv),
    FLEX_ROW_PREPARED(BURN_OP_CONV1D, with_bias, BURN_ROW_EPILOGUE | BURN_ROW_TUNABLE,
                      "flex.conv1d", prepare_conv, launch_conv),
    CANDIDATES(BURN_OP_CONV1D, narrow_with_bias, "flex.conv1d", conv),
    FLEX_ROW_PREPARED(BURN_OP_CONV2D_GRAD_INPUT, without_bias, BURN_ROW_TUNABLE,
                      "flex.conv2d_grad_input", prepare_grad_input, launch_grad_input),
    CANDIDATES(BURN_OP_CONV2D_GRAD_INPUT, narrow_without_bias, "flex.conv2d_grad_input",
               grad_input),
    FLEX_ROW_PREPARED(BURN_OP_CONV2D_GRAD_WEIGHT, without_bias, BURN_ROW_TUNABLE,
                      "flex.conv2d_grad_weight", prepare_grad_weight, launch_grad_weight),
    CANDIDATES(BURN_OP_CONV2D_GRAD_WEIGHT, narrow_without_bias, "flex.conv2d_grad_weight",
               grad_weight),
    FLEX_ROW_PREPARED(BURN_OP_CONV_TRANSPOSE2D, with_bias, 0, "flex.conv_transpose2d",
                      prepare_transpose, launch_transpose),
};
/* clang-format on */
const uint32_t flex_rows_conv_count = FLEX_COUNT(flex_rows_conv);
