/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ops_help.h - what test_ops_movement.c and test_ops_conv.c share: running an op by its eval or its
 * decomposition, its gradient by its vjp, and comparing with numbers. Include after cmocka.h.
 */
#ifndef BURN_TESTS_UNIT_OPS_OPS_HELP_H
#define BURN_TESTS_UNIT_OPS_OPS_HELP_H

#include "eval_builder.h"
#include "ops/rules.h"

#include <burn/build.h>
#include <burn/call.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define HEAD(type) {(uint32_t)sizeof(type), 1}

enum { BY_EVAL = 0, BY_DECOMPOSITION = 1 };

/* The formula of tests/data/make_conv_values.py. */
static inline burn_value *salted(eval_builder *e, uint32_t salt, uint32_t rank, const int64_t *dims)
{
    int64_t n = burni_numel(rank, dims);
    double *numbers = calloc((size_t)n + 1, sizeof(double));
    for (int64_t k = 0; k < n; k++) {
        numbers[k] = (double)((k * 7 + salt * 3) % 11 - 5);
    }
    burn_value *v = eval_tensor(e, BURN_F64, rank, dims, numbers);
    free(numbers);
    return v;
}

static inline burn_value *salted_like(eval_builder *e, uint32_t salt, const burn_value *like)
{
    return salted(e, salt, eval_of(like)->x.meta.rank, eval_of(like)->x.meta.dims);
}

static inline void expect_values(const burn_value *v, const double *wanted, size_t n)
{
    assert_non_null(v);
    if (eval_of(v)->code != BURN_OK) {
        print_error("%s\n", eval_of(v)->text);
    }
    assert_int_equal(eval_of(v)->code, BURN_OK);
    assert_int_equal(eval_of(v)->x.n, n);
    for (size_t k = 0; k < n; k++) {
        double got = eval_at(v, k);
        if (isnan(wanted[k]) != isnan(got) ||
            (got != wanted[k] && !(fabs(got - wanted[k]) <= 1e-12 * fmax(1.0, fabs(wanted[k]))) &&
             !isnan(got))) {
            print_error("element %zu is %.17g, wanted %.17g\n", k, got, wanted[k]);
            fail();
        }
    }
}

#define EXPECT(v, wanted) expect_values(v, wanted, COUNT(wanted))

static inline void expect_dims(const burn_value *v, uint32_t rank, const int64_t *dims)
{
    assert_int_equal(eval_of(v)->code, BURN_OK);
    assert_int_equal(eval_of(v)->x.meta.rank, rank);
    for (uint32_t i = 0; i < rank; i++) {
        assert_int_equal(eval_of(v)->x.meta.dims[i], dims[i]);
    }
}

static inline int32_t run(eval_builder *e, int how, const burn_op_def *def, const void *attrs,
                          burn_value *const *in, uint32_t n_in, burn_value **out)
{
    uint32_t size = attrs != NULL ? ((const burn_attrs_head *)attrs)->size : 0;
    if (how == BY_DECOMPOSITION && def->decompose != NULL) {
        return eval_expand(e, def, attrs, size, in, n_in, out);
    }
    return eval_run(e, def, attrs, size, in, n_in, out);
}

/* Gradients of the inputs in the mask `wanted`; the vjp gets what vjp_saves names, no more. */
static inline void gradients(eval_builder *e, const burn_op_def *def, const void *attrs,
                             burn_value *const *in, uint32_t n_in, burn_value *const *out,
                             burn_value *g, uint32_t wanted, burn_value **grads)
{
    burn_builder b = eval_builder_of(e);
    burn_value *saved_in[BURN_MAX_OPERANDS] = {NULL};
    burn_value *saved_out[2] = {NULL, NULL};
    burn_value *seeds[2] = {g, NULL};
    burn_meta metas[BURN_MAX_OPERANDS];
    uint8_t mask[BURN_MAX_OPERANDS] = {0};
    uint32_t saves = 0;
    memset(metas, 0, sizeof(metas));
    for (uint32_t i = 0; i < n_in; i++) {
        mask[i] = (uint8_t)((wanted >> i) & 1u);
        grads[i] = NULL;
        saves |= mask[i] ? def->vjp_saves[i] : 0;
        if (in[i] != NULL) {
            metas[i] = eval_of(in[i])->x.meta;
        }
    }
    for (uint32_t i = 0; i < n_in && i < 16; i++) {
        saved_in[i] = (saves & BURN_SAVE_IN(i)) != 0 ? in[i] : NULL;
    }
    for (uint32_t j = 0; j < def->n_out; j++) {
        saved_out[j] = (saves & BURN_SAVE_OUT(j)) != 0 ? out[j] : NULL;
    }
    burn_vjp a = {0};
    a.struct_size = (uint32_t)sizeof(a);
    a.n_in = n_in;
    a.n_out = def->n_out;
    a.attrs_size = attrs != NULL ? ((const burn_attrs_head *)attrs)->size : 0;
    a.in = saved_in;
    a.out = saved_out;
    a.grad_out = seeds;
    a.wanted = mask;
    a.in_meta = metas;
    a.grad_in = grads;
    a.attrs = attrs;
    assert_int_equal(def->vjp(&b, &a), BURN_OK);
}

#endif /* BURN_TESTS_UNIT_OPS_OPS_HELP_H */
