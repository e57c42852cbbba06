/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * matmul.c - matmul (batched, broadcasting over the batch dims) and linear.
 *
 * Owns the two definitions. matmul is a minimal primitive; linear is matmul and add. Integers wrap.
 * An empty inner size gives zeros. matmul is not pointwise, so its gradients sum over broadcast
 * batch dims here. Where one side is a plain matrix, the other side's batch is folded into its
 * rows: one large product, and the sum over the batch happens inside of it. To add a product: infer
 * with the sizes in the error text, vjp, eval in double precision, samples.
 */
#include "ops/parts.h"

#include <string.h>

/* ---- matmul ---------------------------------------------------------------------------------- */

static int32_t shape_error(const char *what, const burn_meta *x, const burn_meta *y,
                           const char *remedy, burn_err *err)
{
    char tx[192];
    char ty[192];
    return burni_fail(err, BURN_E_SHAPE, "matmul: %s (lhs %s, rhs %s); %s", what,
                      burni_shape_text(tx, sizeof(tx), x->rank, x->dims),
                      burni_shape_text(ty, sizeof(ty), y->rank, y->dims), remedy);
}

static int32_t infer_matmul(const burn_infer *a)
{
    const burn_meta *x = a->in[0];
    const burn_meta *y = a->in[1];
    burn_meta bx;
    burn_meta by;
    burn_meta batch;
    if (x->rank < 2 || y->rank < 2) {
        return shape_error("both sides need rank 2 or more", x, y,
                           "reshape a vector to one row or one column", a->err);
    }
    if (x->dims[x->rank - 1] != y->dims[y->rank - 2]) {
        return shape_error("inner sizes differ", x, y,
                           "transpose rhs or check the layer's in_features", a->err);
    }
    bx = *x;
    by = *y;
    batch = *x;
    bx.rank = (uint8_t)(x->rank - 2);
    by.rank = (uint8_t)(y->rank - 2);
    int32_t rc = burni_broadcast("matmul: batch dims", &bx, &by, &batch, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    uint32_t rank = (uint32_t)batch.rank + 2;
    batch.dims[rank - 2] = x->dims[x->rank - 2];
    batch.dims[rank - 1] = y->dims[y->rank - 1];
    return burni_set_shape("matmul", &a->out[0], rank, batch.dims, a->err);
}

/* Sums a gradient of the broadcast shape back over the batch dims that `like` stretched. */
static burn_value *sum_batch(const burn_builder *b, burn_value *g, const burn_meta *like)
{
    burn_meta meta = burn_b_meta(b, g);
    int64_t axes[BURN_MAX_RANK];
    uint32_t n = 0;
    if (meta.rank < like->rank || like->rank < 2) {
        return g;
    }
    uint32_t lead = (uint32_t)(meta.rank - like->rank);
    for (uint32_t i = 0; i + 2 < meta.rank; i++) {
        if (i < lead || (like->dims[i - lead] == 1 && meta.dims[i] != 1)) {
            axes[n++] = i;
        }
    }
    if (n == 0) {
        return g;
    }
    g = burn_b_reduce(b, BURN_OP_SUM, g, n, axes, 0);
    return burni_b_reshape_to(b, g, like);
}

static burn_value *swap_last(const burn_builder *b, burn_value *x, const burn_meta *meta)
{
    return burn_b_transpose(b, x, (uint32_t)meta->rank - 2, (uint32_t)meta->rank - 1);
}

/* [.., m, k] as [product, k] */
static burn_value *fold_rows(const burn_builder *b, burn_value *x, const burn_meta *meta)
{
    int64_t dims[2];
    if (meta->rank == 2) {
        return x;
    }
    dims[0] = burni_numel((uint32_t)meta->rank - 1, meta->dims);
    dims[1] = meta->dims[meta->rank - 1];
    return burn_b_reshape(b, x, 2, dims);
}

static int32_t vjp_matmul(const burn_builder *b, const burn_vjp *a)
{
    const burn_meta *x = &a->in_meta[0];
    const burn_meta *y = &a->in_meta[1];
    burn_value *g = a->grad_out[0];
    if (g == NULL) {
        return BURN_OK;
    }
    if (a->wanted[0]) {
        burn_value *gx = burn_b_matmul(b, g, swap_last(b, a->in[1], y));
        a->grad_in[0] = sum_batch(b, gx, x);
    }
    if (a->wanted[1] && y->rank == 2) {
        burn_meta gm = *x;
        gm.dims[x->rank - 1] = y->dims[1];
        burn_value *rows = fold_rows(b, a->in[0], x);
        a->grad_in[1] =
            burn_b_matmul(b, burn_b_transpose(b, rows, 0, 1), fold_rows(b, g, &gm));
    } else if (a->wanted[1]) {
        burn_value *gy = burn_b_matmul(b, swap_last(b, a->in[0], x), g);
        a->grad_in[1] = sum_batch(b, gy, y);
    }
    return BURN_OK;
}

/* Sum over k of x[at_x + k * 1] * y[at_y + k * n], in the operands' class. */
static void dot(burn_eval_operand *out, uint64_t at, const burn_eval_operand *x, uint64_t at_x,
                const burn_eval_operand *y, uint64_t at_y, uint64_t n_inner, uint64_t n)
{
    uint32_t klass = burn_dtype_class(out->meta.dtype);
    uint32_t drop = 64 - 8 * burn_dtype_size(out->meta.dtype);
    double sum = 0.0;
    uint64_t bits = 0;
    for (uint64_t k = 0; k < n_inner; k++) {
        if (klass == BURN_CLASS_FLOAT) {
            sum += x->f[at_x + k] * y->f[at_y + k * n];
        } else if (klass == BURN_CLASS_UINT) {
            bits += x->u[at_x + k] * y->u[at_y + k * n];
        } else {
            bits += (uint64_t)x->i[at_x + k] * (uint64_t)y->i[at_y + k * n];
        }
    }
    if (klass == BURN_CLASS_FLOAT) {
        out->f[at] = sum;
    } else if (klass == BURN_CLASS_UINT) {
        out->u[at] = bits << drop >> drop;
    } else {
        uint64_t sign = UINT64_C(1) << (63 - drop);
        out->i[at] = (int64_t)(((bits << drop >> drop) ^ sign) - sign);
    }
}

static int32_t eval_matmul(const burn_eval *a)
{
    const burn_meta *out = &a->out[0].meta;
    const burn_meta *x = &a->in[0].meta;
    const burn_meta *y = &a->in[1].meta;
    int64_t index[BURN_MAX_RANK] = {0};
    int64_t sx[BURN_MAX_RANK];
    int64_t sy[BURN_MAX_RANK];
    burn_meta shape = *out;
    uint64_t inner = (uint64_t)x->dims[x->rank - 1];
    uint64_t n = (uint64_t)y->dims[y->rank - 1];
    uint32_t rank = out->rank;
    /* burni_broadcast_strides looks at sizes of 1 only, so the last two dims need no care. */
    burni_broadcast_strides(x, &shape, sx);
    burni_broadcast_strides(y, &shape, sy);
    sx[rank - 2] = (int64_t)inner;
    sx[rank - 1] = 0;
    sy[rank - 2] = 0;
    sy[rank - 1] = 1;
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        dot(&a->out[0], k, &a->in[0], (uint64_t)burni_offset(rank, index, sx), &a->in[1],
            (uint64_t)burni_offset(rank, index, sy), inner, n);
        (void)burni_next_index(rank, out->dims, index);
    }
    return BURN_OK;
}

static uint64_t flops_matmul(const burn_infer *a)
{
    const burn_meta *x = a->in[0];
    int64_t n = burni_numel(a->out[0].rank, a->out[0].dims);
    return x->rank > 0 ? 2 * (uint64_t)n * (uint64_t)x->dims[x->rank - 1] : 0;
}

typedef struct product_sample {
    const char *name;
    uint32_t rank[3];
    int64_t dims[3][5];
    int32_t error; /* or BURNI_NONFINITE, or BURNI_LARGE */
} product_sample;

/* So large that backends have ways of their own for it; in one dtype, since it takes its time. */
enum { BURNI_LARGE = BURNI_NONFINITE + 1 };

/* Sums of a thousand products may cancel: what is left is compared with what they were. */
static double product_tolerance(const product_sample *row)
{
    return row->error == BURNI_LARGE ? 2048.0 : 64.0;
}

/* `what`: BURNI_NONFINITE, BURNI_LARGE, an error, or 0. */
static void finish_sample(burn_sample *s, int32_t what)
{
    for (uint32_t k = 0; k < 2 && what == BURNI_NONFINITE; k++) {
        burni_sample_nonfinite(s, k);
    }
    if (what == BURNI_LARGE) {
        s->dtypes = BURN_BIT(F32);
        s->flags |= BURN_SAMPLE_NO_GRAD; /* differences of it would take longer than all else */
    }
    if (what < 0) {
        burni_sample_error(s, what);
    }
}

static const product_sample matmul_rows[] = {
    {"square", {2, 2}, {{3, 3}, {3, 3}}, 0},
    {"odd sizes", {2, 2}, {{3, 7}, {7, 5}}, 0},
    {"row and column", {2, 2}, {{1, 17}, {17, 1}}, 0},
    {"outer product", {2, 2}, {{5, 1}, {1, 7}}, 0},
    {"tile borders", {2, 2}, {{17, 33}, {33, 15}}, 0},
    {"batch", {3, 3}, {{2, 3, 4}, {2, 4, 5}}, 0},
    {"one matrix on the right", {3, 2}, {{3, 2, 4}, {4, 3}}, 0},
    {"one matrix on the left", {2, 3}, {{2, 4}, {3, 4, 3}}, 0},
    {"batches stretch", {4, 4}, {{2, 1, 3, 2}, {1, 3, 2, 4}}, 0},
    {"one batch of many", {3, 4}, {{1, 2, 3}, {2, 3, 3, 2}}, 0},
    {"inner size 0", {2, 2}, {{3, 0}, {0, 2}}, 0},
    {"no rows", {2, 2}, {{0, 3}, {3, 2}}, 0},
    {"no batch", {3, 3}, {{0, 2, 3}, {0, 3, 2}}, 0},
    {"batch 1 against 0", {3, 3}, {{1, 2, 3}, {0, 3, 2}}, 0},
    {"large", {2, 2}, {{131, 1027}, {1027, 131}}, BURNI_LARGE},
    {"non-finite", {2, 2}, {{11, 5}, {5, 17}}, BURNI_NONFINITE},
    {"non-finite batch", {3, 2}, {{3, 2, 4}, {4, 9}}, BURNI_NONFINITE},
    {"inner sizes differ", {2, 2}, {{2, 3}, {4, 5}}, BURN_E_SHAPE},
    {"a vector", {1, 2}, {{3}, {3, 2}}, BURN_E_SHAPE},
    {"batches differ", {3, 3}, {{2, 2, 3}, {3, 3, 2}}, BURN_E_SHAPE},
};

static int32_t samples_matmul(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(matmul_rows) / sizeof(matmul_rows[0])) {
        return BURN_E_END;
    }
    const product_sample *row = &matmul_rows[i];
    burni_sample_begin(out, row->name, product_tolerance(row), 1024.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, row->rank[0], row->dims[0]);
    burni_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, row->rank[1], row->dims[1]);
    finish_sample(out, row->error);
    return BURN_OK;
}

static const burn_role matmul_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_NUMERIC),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_NUMERIC),
    BURNI_ROLE_LIKE("z", 0, 0, BURN_SET_NUMERIC),
};

static const uint32_t matmul_saves[] = {BURN_SAVE_IN(1), BURN_SAVE_IN(0)};

const burn_op_def burn_op_def_matmul = {
    BURNI_DEF(MATMUL, matmul),
    .summary = "Matrix product over the last two dims; batch dims broadcast",
    .flags = BURN_OP_PRIMITIVE | BURN_OP_MINIMAL,
    .n_in = 2,
    .n_out = 1,
    .roles = matmul_roles,
    .fuse = BURN_FUSE_EPILOGUE_HOST,
    .infer = infer_matmul,
    .vjp = vjp_matmul,
    .vjp_saves = matmul_saves,
    .eval = eval_matmul,
    .samples = samples_matmul,
    .flops = flops_matmul,
};

/* ---- linear ---------------------------------------------------------------------------------- */

static int32_t linear_error(const char *what, const burn_infer *a, const burn_meta *other)
{
    char tx[192];
    char ty[192];
    return burni_fail(a->err, BURN_E_SHAPE, "linear: %s (weight %s, got %s)", what,
                      burni_shape_text(tx, sizeof(tx), a->in[1]->rank, a->in[1]->dims),
                      burni_shape_text(ty, sizeof(ty), other->rank, other->dims));
}

static int has_bias(uint32_t n_in, const burn_meta *bias)
{
    return n_in > 2 && bias != NULL && bias->kind != BURN_ABSENT;
}

static int32_t infer_linear(const burn_infer *a)
{
    const burn_meta *x = a->in[0];
    const burn_meta *w = a->in[1];
    const burn_meta *bias = a->n_in > 2 ? a->in[2] : NULL;
    int64_t dims[BURN_MAX_RANK];
    if (w->rank != 2) {
        return linear_error("the weight needs rank 2: [in_features, out_features]", a, w);
    }
    if (x->rank < 1 || x->dims[x->rank - 1] != w->dims[0]) {
        return linear_error("x's last size must be the weight's first; transpose the weight or "
                            "check the layer's in_features",
                            a, x);
    }
    if (has_bias(a->n_in, bias) && (bias->rank != 1 || bias->dims[0] != w->dims[1])) {
        return linear_error("the bias needs rank 1 and the weight's second size", a, bias);
    }
    memcpy(dims, x->dims, sizeof(dims));
    dims[x->rank - 1] = w->dims[1];
    return burni_set_shape("linear", &a->out[0], x->rank, dims, a->err);
}

/* x [.., k] as a matrix [product, k]; rank 1 becomes one row. */
static burn_value *as_matrix(const burn_builder *b, burn_value *x, const burn_meta *x_meta,
                             int64_t last)
{
    int64_t dims[2];
    if (x_meta->rank == 2) {
        return x;
    }
    dims[0] = burni_numel((uint32_t)x_meta->rank - 1, x_meta->dims);
    dims[1] = last;
    return burn_b_reshape(b, x, 2, dims);
}

static int32_t vjp_linear(const burn_builder *b, const burn_vjp *a)
{
    const burn_meta *x = &a->in_meta[0];
    const burn_meta *w = &a->in_meta[1];
    static const int64_t rows[1] = {0};
    if (a->grad_out[0] == NULL) {
        return BURN_OK;
    }
    burn_value *g = as_matrix(b, a->grad_out[0], x, w->dims[1]);
    if (a->wanted[0]) {
        burn_value *gx = burn_b_matmul(b, g, burn_b_transpose(b, a->in[1], 0, 1));
        a->grad_in[0] = x->rank == 2 ? gx : burni_b_reshape_to(b, gx, x);
    }
    if (a->wanted[1]) {
        burn_value *flat = as_matrix(b, a->in[0], x, w->dims[0]);
        a->grad_in[1] = burn_b_matmul(b, burn_b_transpose(b, flat, 0, 1), g);
    }
    if (a->n_in > 2 && a->wanted[2]) {
        a->grad_in[2] = burn_b_reduce(b, BURN_OP_SUM, g, 1, rows, 0);
    }
    return BURN_OK;
}

static int32_t decompose_linear(const burn_builder *b, const burn_expand *a)
{
    burn_meta out = a->in_meta[0];
    burn_value *y = as_matrix(b, a->in[0], &a->in_meta[0], a->in_meta[1].dims[0]);
    y = burn_b_matmul(b, y, a->in[1]);
    if (a->n_in > 2 && a->in[2] != NULL) {
        y = burn_b_add(b, y, a->in[2]);
    }
    out.dims[out.rank - 1] = a->in_meta[1].dims[1];
    a->out[0] = out.rank == 2 ? y : burni_b_reshape_to(b, y, &out);
    return BURN_OK;
}

static int32_t eval_linear(const burn_eval *a)
{
    const burn_meta *w = &a->in[1].meta;
    uint64_t inner = (uint64_t)w->dims[0];
    uint64_t n = (uint64_t)w->dims[1];
    int bias = has_bias(a->n_in, a->n_in > 2 ? &a->in[2].meta : NULL);
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        dot(&a->out[0], k, &a->in[0], k / n * inner, &a->in[1], k % n, inner, n);
        if (bias) {
            a->out[0].f[k] += a->in[2].f[k % n];
        }
    }
    return BURN_OK;
}

static const product_sample linear_rows[] = {
    {"batch", {2, 2, 1}, {{3, 5}, {5, 7}, {7}}, 0},
    {"no bias", {2, 2}, {{4, 3}, {3, 2}}, 0},
    {"sequence", {3, 2, 1}, {{2, 3, 5}, {5, 4}, {4}}, 0},
    {"a vector", {1, 2, 1}, {{5}, {5, 3}, {3}}, 0},
    {"one of all", {2, 2, 1}, {{1, 1}, {1, 1}, {1}}, 0},
    {"no rows", {2, 2, 1}, {{0, 5}, {5, 3}, {3}}, 0},
    {"no inputs", {2, 2, 1}, {{2, 0}, {0, 3}, {3}}, 0},
    {"no outputs", {2, 2, 1}, {{2, 3}, {3, 0}, {0}}, 0},
    {"large", {3, 2, 1}, {{3, 45, 1027}, {1027, 131}, {131}}, BURNI_LARGE},
    {"non-finite", {2, 2, 1}, {{11, 5}, {5, 17}, {17}}, BURNI_NONFINITE},
    {"sizes differ", {2, 2, 1}, {{3, 5}, {4, 7}, {7}}, BURN_E_SHAPE},
    {"bias of the wrong size", {2, 2, 1}, {{3, 5}, {5, 7}, {5}}, BURN_E_SHAPE},
    {"weight of rank 3", {2, 3, 1}, {{3, 5}, {1, 5, 7}, {7}}, BURN_E_SHAPE},
    {"x of rank 0", {0, 2, 1}, {{0}, {1, 7}, {7}}, BURN_E_SHAPE},
};

static int32_t samples_linear(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(linear_rows) / sizeof(linear_rows[0])) {
        return BURN_E_END;
    }
    const product_sample *row = &linear_rows[i];
    burni_sample_begin(out, row->name, product_tolerance(row), 1024.0);
    for (uint32_t k = 0; k < 2; k++) {
        burni_sample_tensor(out, k, 0, BURN_FILL_NORMAL, row->rank[k], row->dims[k]);
    }
    burni_sample_absent(out, 2);
    if (row->rank[2] > 0) {
        burni_sample_tensor(out, 2, 0, BURN_FILL_NORMAL, row->rank[2], row->dims[2]);
    }
    finish_sample(out, row->error);
    return BURN_OK;
}

static const burn_role linear_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("weight", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("bias", BURN_ROLE_OPTIONAL, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
};

static const uint32_t linear_saves[] = {BURN_SAVE_IN(1), BURN_SAVE_IN(0), 0};

const burn_op_def burn_op_def_linear = {
    BURNI_DEF(LINEAR, linear),
    .summary = "x @ weight + bias, the weight as [in_features, out_features]",
    .n_in = 3,
    .n_out = 1,
    .roles = linear_roles,
    .fuse = BURN_FUSE_EPILOGUE_HOST,
    .infer = infer_linear,
    .vjp = vjp_linear,
    .vjp_saves = linear_saves,
    .decompose = decompose_linear,
    .eval = eval_linear,
    .samples = samples_linear,
    .flops = flops_matmul,
};
