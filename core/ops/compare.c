/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * compare.c - comparisons of two tensors of one dtype, element by element, to bool (ids 60 to 65).
 *
 * All are false where an operand is NaN but not_equal, which is true. false is less than true.
 * Each op is a row of COMPARE_OPS; `equal` and `less` are primitive, the others are made of them.
 * To add one: a relation, an eval function, a decomposition and a row.
 */
#include "ops/pointwise.h"

/* ---- meaning --------------------------------------------------------------------------------- */

/* Which of the orders less, equal, greater make the comparison true. */
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };

static uint32_t order_f(double x, double y)
{
    if (x < y) {
        return LESS;
    }
    if (x > y) {
        return GREATER;
    }
    return x == y ? EQUAL : UNORDERED;
}

static uint32_t order_of(const burn_eval_operand *x, uint64_t j, const burn_eval_operand *y,
                         uint64_t k)
{
    uint32_t klass = burn_dtype_class(x->meta.dtype);
    if (klass == BURN_CLASS_FLOAT) {
        return order_f(x->f[j], y->f[k]);
    }
    if (klass == BURN_CLASS_UINT) {
        return x->u[j] < y->u[k] ? LESS : x->u[j] > y->u[k] ? GREATER : EQUAL;
    }
    return x->i[j] < y->i[k] ? LESS : x->i[j] > y->i[k] ? GREATER : EQUAL;
}

static int32_t compare(const burn_eval *a, uint32_t orders)
{
    burni_walk w;
    for (int more = burni_walk_begin(&w, a); more; more = burni_walk_next(&w)) {
        uint32_t order = order_of(&a->in[0], w.at[0], &a->in[1], w.at[1]);
        a->out[0].i[w.k] = (orders & order) != 0;
    }
    return BURN_OK;
}

static int32_t eval_equal(const burn_eval *a)
{
    return compare(a, EQUAL);
}

static int32_t eval_not_equal(const burn_eval *a)
{
    return compare(a, LESS | GREATER | UNORDERED);
}

static int32_t eval_less(const burn_eval *a)
{
    return compare(a, LESS);
}

static int32_t eval_less_equal(const burn_eval *a)
{
    return compare(a, LESS | EQUAL);
}

static int32_t eval_greater(const burn_eval *a)
{
    return compare(a, GREATER);
}

static int32_t eval_greater_equal(const burn_eval *a)
{
    return compare(a, GREATER | EQUAL);
}

/* ---- decompositions -------------------------------------------------------------------------- */

static int32_t expand_not_equal(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_equal_num(b, burn_b_equal(b, a->in[0], a->in[1]), 0.0);
    return BURN_OK;
}

/* less or equal: the negation of greater would be true for NaN */
static burn_value *not_above(const burn_builder *b, burn_value *x, burn_value *y)
{
    burn_value *yes = b->immediate(b->ctx, BURN_BOOL, 1.0);
    return burn_b_where(b, burn_b_less(b, x, y), yes, burn_b_equal(b, x, y));
}

static int32_t expand_less_equal(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = not_above(b, a->in[0], a->in[1]);
    return BURN_OK;
}

static int32_t expand_greater(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_less(b, a->in[1], a->in[0]);
    return BURN_OK;
}

static int32_t expand_greater_equal(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = not_above(b, a->in[1], a->in[0]);
    return BURN_OK;
}

/* ---- samples and definitions ----------------------------------------------------------------- */

static const double left[] = {1.0, 2.0, 0.0, -0.0, 3.0, -1.0, 255.0, 100.0};
static const double right[] = {1.0, 1.0, -0.0, 0.0, 4.0, -1.0, 1.0, 100.0};

/* clang-format off */
static const burni_domain domain_order = {
    .fill = BURN_FILL_NORMAL, .fill_y = BURN_FILL_NORMAL, .number = 1.0, .special = BURN_SET_ANY,
    .n_points = sizeof(left) / sizeof(left[0]), .points = left, .points_y = right};
/* clang-format on */

static int32_t samples_order(uint32_t i, burn_sample *out)
{
    return burni_samples_binary(i, out, &domain_order);
}

static const burn_role roles_compare[3] = {
    BURNI_ROLE("x", BURN_ROLE_IMMEDIATE, BURN_SET_ANY),
    BURNI_ROLE_LIKE("y", BURN_ROLE_IMMEDIATE, 0, BURN_SET_ANY),
    BURNI_ROLE("z", BURN_ROLE_NO_GRAD, BURN_BIT(BOOL))};

#define MINIMAL (BURN_OP_MINIMAL | BURN_OP_PRIMITIVE)

/* X(NAME, name, flags, decompose, summary) */
#define COMPARE_OPS(X)                                                                             \
    X(EQUAL, equal, MINIMAL, NULL, "x == y; false with NaN")                                       \
    X(NOT_EQUAL, not_equal, 0, expand_not_equal, "x != y; true with NaN")                          \
    X(LESS, less, MINIMAL, NULL, "x < y; false with NaN")                                          \
    X(LESS_EQUAL, less_equal, 0, expand_less_equal, "x <= y; false with NaN")                      \
    X(GREATER, greater, 0, expand_greater, "x > y; false with NaN")                                \
    X(GREATER_EQUAL, greater_equal, 0, expand_greater_equal, "x >= y; false with NaN")

#define COMPARE_DEF(NAME, name_, bits_, expand, text)                                              \
    const burn_op_def burn_op_def_##name_ = {                                                      \
        BURNI_DEF(NAME, name_),                                                                    \
        .flags = (bits_),                                                                          \
        .n_in = 2,                                                                                 \
        .n_out = 1,                                                                                \
        .summary = text,                                                                           \
        .roles = roles_compare,                                                                    \
        .fuse = BURN_FUSE_POINTWISE,                                                               \
        .fuse_opcode = BURN_OP_##NAME,                                                             \
        .no_vjp = "the result is true or false, which carries no gradient",                        \
        .decompose = expand,                                                                       \
        .eval = eval_##name_,                                                                      \
        .samples = samples_order,                                                                  \
    };
COMPARE_OPS(COMPARE_DEF)
