/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * op_rms_norm.c - the definition of starter.rms_norm: everything about the op but its kernels.
 *
 * `infer` says which shapes fit, `vjp` what the gradient is, `decompose` what the op is made of for
 * devices without a kernel, `eval` what it means, `samples` how it is tried. All of them are pure
 * and may run on any thread. vjp and decompose make ops through a builder and never see numbers, so
 * they serve every device, and a gradient has a gradient again. To add an op: a file like this one.
 */
#include "starter_plugin.h"

#include <math.h>

/* ---- operands and attributes ----------------------------------------------------------------- */

/* Inputs, then outputs. y has the dtype of operand 0: the number there is 1 + 0. */
static const burn_role roles[] = {
    {.name = "x", .dtypes = {BURN_SET_FLOAT, 0, 0, 0}},
    {.name = "y", .same_dtype_as = 1, .dtypes = {BURN_SET_FLOAT, 0, 0, 0}},
};

static const burn_attr attrs_rows[] = {
    {.name = "eps",
     .doc = "added to the mean of the squares",
     .type = BURN_ATTR_F64,
     .offset = (uint16_t)offsetof(starter_rms_norm_attrs, eps),
     .size = (uint16_t)sizeof(double),
     .since_revision = 1,
     .klass = BURN_ATTR_KEY},
};

/* The attributes are bytes until their size was looked at. */
static const starter_rms_norm_attrs *attrs_of(const void *attrs, uint32_t size)
{
    return attrs != NULL && size >= sizeof(starter_rms_norm_attrs)
               ? (const starter_rms_norm_attrs *)attrs
               : NULL;
}

/* Only what shapes and attributes show; data are not known here. */
static int32_t infer(const burn_infer *a)
{
    const starter_rms_norm_attrs *attrs = attrs_of(a->attrs, a->attrs_size);
    if (attrs == NULL || !(attrs->eps > 0.0)) {
        return burn_plugin_fail(a->err, BURN_E_INVALID,
                                STARTER_RMS_NORM ": eps must be above 0, like 1e-6 (is %g)",
                                attrs != NULL ? attrs->eps : 0.0);
    }
    if (a->in[0]->rank == 0) {
        return burn_plugin_fail(a->err, BURN_E_SHAPE,
                                STARTER_RMS_NORM ": x is a scalar and has no axis; reshape it");
    }
    a->out[0].rank = a->in[0]->rank;
    memcpy(a->out[0].dims, a->in[0]->dims, sizeof(a->out[0].dims));
    return BURN_OK;
}

/* ---- gradient and decomposition -------------------------------------------------------------- */

/* 1 / sqrt(mean(x * x) + eps), one number per row. */
static burn_value *row_factor(const burn_builder *b, burn_value *x, uint32_t rank, double eps)
{
    burn_value *squares = burn_b_mul(b, x, x);
    burn_value *mean = burn_b_reduce1(b, BURN_OP_MEAN, squares, (int64_t)rank - 1, 1);
    return burn_b_rsqrt(b, burn_b_add_num(b, mean, eps));
}

static int32_t decompose(const burn_builder *b, const burn_expand *a)
{
    const starter_rms_norm_attrs *attrs = attrs_of(a->attrs, a->attrs_size);
    burn_value *factor = row_factor(b, a->in[0], a->in_meta[0].rank, attrs->eps);
    a->out[0] = burn_b_mul(b, a->in[0], factor);
    return BURN_OK;
}

/* With y = x * f: the gradient of x is f * (g - y * mean(g * y)). */
static int32_t vjp(const burn_builder *b, const burn_vjp *a)
{
    const starter_rms_norm_attrs *attrs = attrs_of(a->attrs, a->attrs_size);
    burn_value *g = a->grad_out[0];
    burn_value *y = a->out[0];
    uint32_t rank = a->in_meta[0].rank;
    if (g == NULL || !a->wanted[0]) {
        a->grad_in[0] = NULL;
        return BURN_OK;
    }
    burn_value *factor = row_factor(b, a->in[0], rank, attrs->eps);
    burn_value *along = burn_b_reduce1(b, BURN_OP_MEAN, burn_b_mul(b, g, y), (int64_t)rank - 1, 1);
    a->grad_in[0] = burn_b_mul(b, factor, burn_b_sub(b, g, burn_b_mul(b, y, along)));
    return BURN_OK;
}

/* What the gradient of input 0 looks at: x and y are kept until then. */
static const uint32_t vjp_saves[] = {BURN_SAVE_IN(0) | BURN_SAVE_OUT(0)};

/* ---- meaning and samples --------------------------------------------------------------------- */

/* In double, one row after the other; conformance compares every kernel with this. */
static int32_t eval(const burn_eval *a)
{
    const starter_rms_norm_attrs *attrs = attrs_of(a->attrs, a->attrs_size);
    const burn_eval_operand *x = &a->in[0];
    int64_t n = x->meta.dims[x->meta.rank - 1];
    for (uint64_t first = 0; first < x->n; first += (uint64_t)n) {
        double sum = 0.0;
        for (int64_t k = 0; k < n; k++) {
            sum += x->f[first + (uint64_t)k] * x->f[first + (uint64_t)k];
        }
        double factor = 1.0 / sqrt(sum / (double)n + attrs->eps);
        for (int64_t k = 0; k < n; k++) {
            a->out[0].f[first + (uint64_t)k] = x->f[first + (uint64_t)k] * factor;
        }
    }
    return BURN_OK;
}

typedef struct sample_row {
    const char *name;
    int32_t error; /* BURN_OK, or the code with which it must fail */
    uint8_t rank;
    int64_t dims[3];
    double eps;
} sample_row;

/*
 * Few, small and odd sizes; one whose rows hold NaN, infinities, zeros of both signs and a
 * subnormal; and one for each rule that infer has.
 */
static const sample_row sample_rows[] = {
    {"matrix", BURN_OK, 2, {3, 5}, 1e-6},
    {"vector", BURN_OK, 1, {17}, 1e-6},
    {"three axes", BURN_OK, 3, {2, 3, 4}, 1e-3},
    {"long rows", BURN_OK, 2, {2, 129}, 1e-6},
    {"rows of one", BURN_OK, 2, {4, 1}, 0.1},
    {"no rows", BURN_OK, 2, {0, 4}, 1e-6},
    {"empty rows", BURN_OK, 2, {3, 0}, 1e-6},
    {"special values", BURN_OK, 2, {4, 3}, 1e-6},
    {"a scalar", BURN_E_SHAPE, 0, {0}, 1e-6},
    {"eps of 0", BURN_E_INVALID, 2, {3, 5}, 0.0},
};

/* Each row has one answer, whatever the order of its sum: an infinite one makes the others 0. */
static const double special[12] = {
    1.0, (double)NAN, 2.0, (double)INFINITY, -2.0, -0.0, 0.5, -(double)INFINITY, 0.0,
    0x1p-130, 1.0, -0.0,
};

static int32_t samples(uint32_t i, burn_sample *out)
{
    if (i >= BURN_COUNT(sample_rows)) {
        return BURN_E_END;
    }
    const sample_row *row = &sample_rows[i];
    starter_rms_norm_attrs attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.eps = row->eps;
    out->name = row->name;
    out->error = row->error;
    out->flags = row->error != BURN_OK ? BURN_SAMPLE_ERROR : 0;
    out->tolerance = 8;
    out->grad_tolerance = 64;
    out->attrs_size = (uint32_t)sizeof(attrs);
    memcpy(out->attrs, &attrs, sizeof(attrs));
    out->n_in = 1;
    out->in[0].kind = BURN_TENSOR;
    out->in[0].fill = BURN_FILL_NORMAL;
    out->in[0].rank = row->rank;
    memcpy(out->in[0].dims, row->dims, sizeof(row->dims));
    if (strcmp(row->name, "special values") == 0) {
        out->flags |= BURN_SAMPLE_NO_GRAD; /* forward only */
        out->in[0].fill = BURN_FILL_VALUES;
        out->in[0].n_values = (uint32_t)BURN_COUNT(special);
        out->in[0].values = special;
    }
    return BURN_OK;
}

/* The id is the hash of the name; plugin.c fills it in. */
const burn_op_def starter_op_rms_norm = {
    .struct_size = (uint32_t)sizeof(burn_op_def),
    .revision = 1,
    .n_in = 1,
    .n_out = 1,
    .name = STARTER_RMS_NORM,
    .summary = "x / sqrt(mean(x * x, last axis) + eps)",
    .roles = roles,
    .role_stride = (uint32_t)sizeof(burn_role),
    .attrs = attrs_rows,
    .attr_stride = (uint32_t)sizeof(burn_attr),
    .n_attrs = (uint32_t)BURN_COUNT(attrs_rows),
    .attrs_size = (uint32_t)sizeof(starter_rms_norm_attrs),
    .infer = infer,
    .vjp = vjp,
    .vjp_saves = vjp_saves,
    .decompose = decompose,
    .eval = eval,
    .samples = samples,
};
