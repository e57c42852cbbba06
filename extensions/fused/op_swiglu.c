/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * op_swiglu.c - fused.swiglu: gate * sigmoid(gate) * up, element by element.
 *
 * Owns the definition. It is pointwise, so the core broadcasts and sums gradients back, and a call
 * on dense tensors takes the same short way as an add does.
 */
#include "fused_plugin.h"

#include <math.h>

static int32_t decompose(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_mul(b, burn_b_silu(b, a->in[0]), a->in[1]);
    return BURN_OK;
}

/* d/dgate = up s (1 + gate (1 - s)) with s = sigmoid(gate); d/dup = gate s */
static int32_t vjp(const burn_builder *b, const burn_vjp *a)
{
    burn_value *g = a->grad_out[0];
    burn_value *gate = a->in[0];
    if (a->wanted[0]) {
        burn_value *s = burn_b_sigmoid(b, gate);
        burn_value *rest = burn_b_add_num(b, burn_b_neg(b, s), 1.0);
        burn_value *slope = burn_b_add_num(b, burn_b_mul(b, gate, rest), 1.0);
        a->grad_in[0] = burn_b_mul(b, burn_b_mul(b, g, a->in[1]), burn_b_mul(b, s, slope));
    }
    if (a->wanted[1]) {
        a->grad_in[1] = burn_b_mul(b, g, burn_b_silu(b, gate));
    }
    return BURN_OK;
}

/* Offset in an operand of element k of the output. */
static uint64_t offset_in(const burn_meta *x, const burn_meta *out, uint64_t k)
{
    uint64_t at = 0;
    uint64_t step = 1;
    for (uint32_t d = 0; d < out->rank; d++) {
        uint64_t size = (uint64_t)out->dims[out->rank - 1 - d];
        uint64_t index = k % size;
        k /= size;
        if (d < x->rank) {
            int64_t own = x->dims[x->rank - 1 - d];
            at += own == 1 ? 0 : index * step;
            step *= (uint64_t)own;
        }
    }
    return at;
}

static int32_t eval(const burn_eval *a)
{
    const burn_meta *out = &a->out[0].meta;
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        double gate = a->in[0].f[offset_in(&a->in[0].meta, out, k)];
        double up = a->in[1].f[offset_in(&a->in[1].meta, out, k)];
        a->out[0].f[k] = gate / (1.0 + exp(-gate)) * up;
    }
    return BURN_OK;
}

typedef struct swiglu_sample {
    const char *name;
    uint32_t rank[2];
    int64_t dims[2][3];
    uint32_t flags;
    int32_t error;
    uint32_t special; /* 1: NaN, infinities and the like; 2: where exp ends; 3: special ups */
} swiglu_sample;

static const swiglu_sample table[] = {
    {"matrix", {2, 2}, {{3, 5}, {3, 5}}, 0, 0, 0},
    {"vector", {1, 1}, {{17}, {17}}, 0, 0, 0},
    {"around a vector", {1, 1}, {{63}, {63}}, 0, 0, 0},
    {"several vectors", {2, 2}, {{5, 513}, {5, 513}}, BURN_SAMPLE_NO_GRAD, 0, 0},
    {"broadcast rows", {2, 1}, {{4, 6}, {6}}, 0, 0, 0},
    {"broadcast both", {3, 2}, {{2, 1, 3}, {4, 1}}, 0, 0, 0},
    {"scalars", {0, 0}, {{0}, {0}}, 0, 0, 0},
    {"empty", {2, 2}, {{0, 3}, {0, 3}}, 0, 0, 0},
    {"shapes differ", {1, 1}, {{3}, {4}}, 0, BURN_E_SHAPE, 0},
    {"special gates", {1, 1}, {{67}, {67}}, BURN_SAMPLE_NO_GRAD, 0, 1},
    {"large gates", {1, 1}, {{67}, {67}}, BURN_SAMPLE_NO_GRAD | BURN_SAMPLE_ABSOLUTE, 0, 2},
    {"special ups", {1, 1}, {{67}, {67}}, BURN_SAMPLE_NO_GRAD, 0, 3},
};

/* Where exp overflows or underflows, in f32 and in f64. */
static const double large[] = {-87.0, -89.0, -103.0, -105.0, -710.0, -746.0, -65504.0,
                               -1e30, 1e30,  89.0,   745.0,  65504.0, -30.0, 30.0};

static int32_t samples(uint32_t i, burn_sample *out)
{
    if (i >= BURN_COUNT(table)) {
        return BURN_E_END;
    }
    const swiglu_sample *s = &table[i];
    burn_sample_begin(out, s->name, 16.0, 1024.0);
    out->flags |= s->flags;
    const uint8_t gate = s->special == 1   ? BURN_FILL_SPECIAL
                         : s->special == 3 ? BURN_FILL_NONZERO
                                           : BURN_FILL_NORMAL;
    burn_sample_tensor(out, 0, 0, gate, s->rank[0], s->dims[0]);
    if (s->special == 2) {
        fused_sample_values(out, 0, (uint32_t)BURN_COUNT(large), large);
    }
    /* Never both special: a silu that underflows makes NaN of an infinity, in f32 before f64. */
    burn_sample_operand *up =
        burn_sample_tensor(out, 1, 0, s->special == 3 ? BURN_FILL_SPECIAL : BURN_FILL_UNIFORM,
                           s->rank[1], s->dims[1]);
    up->lo = -3.0;
    up->hi = 3.0;
    if (s->error != BURN_OK) {
        burn_sample_error(out, s->error);
    }
    return BURN_OK;
}

static const burn_role roles[] = {
    BURN_ROLE("gate", 0, BURN_SET_FLOAT),
    BURN_ROLE_LIKE("up", 0, 0, BURN_SET_FLOAT),
    BURN_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
};

static const uint32_t saves[] = {BURN_SAVE_IN(0) | BURN_SAVE_IN(1), BURN_SAVE_IN(0)};

const burn_op_def fused_def_swiglu = {
    .name = "fused.swiglu",
    .summary = "gate sigmoid(gate) up: the gated activation of transformers, in one pass",
    .n_in = 2,
    .n_out = 1,
    .roles = roles,
    .fuse = BURN_FUSE_POINTWISE,
    .vjp = vjp,
    .vjp_saves = saves,
    .decompose = decompose,
    .eval = eval,
    .samples = samples,
};
