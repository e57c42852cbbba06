/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * random.c - random numbers from a counter: random_bits and what is made of it.
 *
 * The generator is Philox4x32-10: key = the seed's low and high word, counter words = low and high
 * word of (counter + block), 0, 0. So element k depends on seed, counter and k only, on any backend
 * and for any thread count. Uniforms and normals are defined in README.md. To add a distribution:
 * an element function here, a decomposition down to random_bits, an infer, samples.
 */
#include "ops/pointwise.h"

#include <math.h>

#define TWO_PI 6.283185307179586

/* ---- the generator --------------------------------------------------------------------------- */

static void philox(uint64_t seed, uint64_t block, uint32_t out[4])
{
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0, 0};
    uint32_t k0 = (uint32_t)seed;
    uint32_t k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)c[0] * 0xD2511F53u;
        uint64_t p1 = (uint64_t)c[2] * 0xCD9E8D57u;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[0] = n0;
        c[1] = (uint32_t)p1;
        c[2] = n2;
        c[3] = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++) {
        out[i] = c[i];
    }
}

uint32_t burni_random_u32(uint64_t seed, uint64_t counter, uint64_t k)
{
    uint32_t words[4];
    philox(seed, counter + k / 4, words);
    return words[k % 4];
}

uint64_t burni_random_u64(uint64_t seed, uint64_t counter, uint64_t k)
{
    uint32_t words[4];
    philox(seed, counter + k / 2, words);
    uint32_t low = 2 * (uint32_t)(k % 2);
    return (uint64_t)words[low] | (uint64_t)words[low + 1] << 32;
}

/* Significant bits of the dtypes that are narrower than the 24 bits drawn. */
static int short_digits(uint8_t dtype)
{
    if (dtype == BURN_F16) {
        return 11;
    }
    return dtype == BURN_BF16 ? 8 : 0;
}

double burni_random_uniform(uint64_t seed, uint64_t counter, uint64_t k, uint8_t dtype)
{
    if (dtype == BURN_F64) {
        return ldexp((double)(burni_random_u64(seed, counter, k) >> 11), -53);
    }
    double u = ldexp((double)(burni_random_u32(seed, counter, k) >> 8), -24);
    int digits = short_digits(dtype);
    if (digits > 0 && u > 0.0) {
        int exponent;
        (void)frexp(u, &exponent);
        u = ldexp(floor(ldexp(u, digits - exponent)), exponent - digits);
    }
    return u;
}

static double random_normal(uint64_t seed, uint64_t counter, uint64_t k, uint8_t dtype)
{
    uint8_t computing = dtype == BURN_F64 ? BURN_F64 : BURN_F32;
    double u0 = burni_random_uniform(seed, counter, k - k % 2, computing);
    double u1 = burni_random_uniform(seed, counter, k - k % 2 + 1, computing);
    double r = sqrt(-2.0 * log(1.0 - u0));
    return k % 2 == 0 ? r * cos(TWO_PI * u1) : r * sin(TWO_PI * u1);
}

/* ---- common parts of the definitions --------------------------------------------------------- */

#define NUMBER (BURN_ROLE_ONLY_IMMEDIATE | BURN_ROLE_NO_GRAD)
#define BITS (BURN_BIT(U32) | BURN_BIT(U64))

static const char no_vjp_random[] = "random numbers depend on no tensor";

static uint64_t seed_of(const burn_eval *a, uint32_t first)
{
    return (uint64_t)burni_eval_get_int(&a->in[first], 0);
}

/* Emits one of these ops in another shape and dtype with the same seed and counter. */
static burn_value *draw(const burn_builder *b, uint64_t op, uint32_t dtype, uint32_t rank,
                        const int64_t *dims, burn_value *const *seed_counter)
{
    burn_attrs_shape t;
    burn_attrs_init(&t, (uint32_t)sizeof(t));
    t.n_dims = rank;
    t.dtype = dtype;
    for (uint32_t i = 0; i < rank; i++) {
        t.dims[i] = dims[i];
    }
    return burn_b_emit(b, op, &t, seed_counter, 2);
}

typedef struct random_row {
    const char *name;
    uint32_t rank;
    int64_t dims[4];
    uint32_t seed;
    uint64_t counter;
    int32_t error;
} random_row;

static const random_row random_rows[] = {
    {"one element", 1, {1}, 1, 0, 0},
    {"odd", 1, {17}, 2, 5, 0},
    {"long", 1, {1025}, 3, 0, 0},
    {"matrix", 2, {65, 3}, 4, 77, 0},
    {"rank 0", 0, {0}, 5, 0, 0},
    {"empty", 2, {0, 4}, 6, 0, 0},
    {"counter across 32 bits", 1, {33}, 7, 4294967293u, 0},
    {"seed 0", 1, {7}, 0, 0, 0},
    {"negative dim", 1, {-2}, 1, 0, BURN_E_SHAPE},
};

enum { N_RANDOM_ROWS = sizeof(random_rows) / sizeof(random_rows[0]) };

/* Each row for each dtype, then one dtype that is refused. `first` is the place of the seed. */
static int32_t random_samples(uint32_t i, burn_sample *s, const uint8_t *dtypes, uint32_t n_dtypes,
                              uint32_t first, double tolerance)
{
    static const int64_t three[] = {3};
    if (i < N_RANDOM_ROWS * n_dtypes) {
        const random_row *row = &random_rows[i / n_dtypes];
        burni_sample_begin(s, row->name, tolerance, 0.0);
        burni_sample_immediate(s, first, BURN_U64, (double)row->seed);
        burni_sample_immediate(s, first + 1, BURN_U64, (double)row->counter);
        burni_sample_shape(s, dtypes[i % n_dtypes], row->rank, row->dims);
        s->flags = BURN_SAMPLE_NO_GRAD;
        if (row->error != BURN_OK) {
            burni_sample_error(s, row->error);
        }
        return BURN_OK;
    }
    if (i == N_RANDOM_ROWS * n_dtypes) {
        burni_sample_begin(s, "refused dtype", 0.0, 0.0);
        burni_sample_immediate(s, first, BURN_U64, 1.0);
        burni_sample_immediate(s, first + 1, BURN_U64, 0.0);
        burni_sample_shape(s, 250, 1, three);
        burni_sample_error(s, BURN_E_DTYPE);
        return BURN_OK;
    }
    return BURN_E_END;
}

#define RANDOM_DEF(NAME, name_)                                                                    \
    BURNI_DEF(NAME, name_), .n_out = 1, .attrs = burni_attrs_shape_rows,                           \
        .n_attrs = BURNI_N_ATTRS_SHAPE, .attrs_size = (uint32_t)sizeof(burn_attrs_shape),          \
        .effect = BURN_EFFECT_RANDOM, .fuse = BURN_FUSE_GENERATE, .no_vjp = no_vjp_random

/* ---- random_bits ----------------------------------------------------------------------------- */

static int32_t infer_random_bits(const burn_infer *a)
{
    return burni_infer_created("random_bits", a, BITS);
}

static int32_t eval_random_bits(const burn_eval *a)
{
    burn_eval_operand *y = &a->out[0];
    uint64_t seed = seed_of(a, 0);
    uint64_t counter = seed_of(a, 1);
    for (uint64_t k = 0; k < y->n; k++) {
        y->u[k] = y->meta.dtype == BURN_U64 ? burni_random_u64(seed, counter, k)
                                            : burni_random_u32(seed, counter, k);
    }
    return BURN_OK;
}

static int32_t samples_random_bits(uint32_t i, burn_sample *s)
{
    static const uint8_t dtypes[] = {BURN_U32, BURN_U64};
    return random_samples(i, s, dtypes, 2, 0, 0.0);
}

static const burn_role roles_bits[3] = {BURNI_ROLE("seed", NUMBER, BURN_BIT(U64)),
                                        BURNI_ROLE("counter", NUMBER, BURN_BIT(U64)),
                                        BURNI_ROLE("y", BURN_ROLE_NO_GRAD, BITS)};

const burn_op_def burn_op_def_random_bits = {
    RANDOM_DEF(RANDOM_BITS, random_bits),
    .flags = BURN_OP_MINIMAL | BURN_OP_PRIMITIVE,
    .n_in = 2,
    .summary = "Philox4x32-10 bits of seed and counter",
    .roles = roles_bits,
    .infer = infer_random_bits,
    .eval = eval_random_bits,
    .samples = samples_random_bits,
};

/* ---- random_uniform -------------------------------------------------------------------------- */

static int32_t infer_random_uniform(const burn_infer *a)
{
    return burni_infer_created("random_uniform", a, BURN_SET_FLOAT);
}

static int32_t eval_random_uniform(const burn_eval *a)
{
    burn_eval_operand *y = &a->out[0];
    for (uint64_t k = 0; k < y->n; k++) {
        y->f[k] = burni_random_uniform(seed_of(a, 0), seed_of(a, 1), k, y->meta.dtype);
    }
    return BURN_OK;
}

/*
 * Rounds a wide number in [0,1) down to f16 or bf16. Where the nearest value lies above, the one
 * below it is the nearest to itself times 1 - 2^-digits: that takes off half a step to one step.
 */
static burn_value *round_down(const burn_builder *b, burn_value *u, uint8_t dtype)
{
    burn_value *near = burn_b_cast(b, u, dtype);
    burn_value *wide = burn_b_cast(b, near, BURN_F32);
    burn_value *less = burn_b_mul_num(b, wide, 1.0 - ldexp(1.0, -short_digits(dtype)));
    return burn_b_where(b, burn_b_less(b, u, wide), burn_b_cast(b, less, dtype), near);
}

/* Top bits by division, since shifts are not minimal: exact for unsigned integers. */
static int32_t expand_random_uniform(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_shape *t = (const burn_attrs_shape *)a->attrs;
    int wide = t->dtype == BURN_F64;
    uint32_t bits_dtype = wide ? BURN_U64 : BURN_U32;
    burn_value *bits = draw(b, BURN_OP_RANDOM_BITS, bits_dtype, t->n_dims, t->dims, a->in);
    burn_value *top = burn_b_div_num(b, bits, wide ? 2048.0 : 256.0);
    burn_value *number = burn_b_cast(b, top, wide ? BURN_F64 : BURN_F32);
    burn_value *u = burn_b_mul_num(b, number, ldexp(1.0, wide ? -53 : -24));
    a->out[0] = short_digits((uint8_t)t->dtype) > 0 ? round_down(b, u, (uint8_t)t->dtype) : u;
    return BURN_OK;
}

static const uint8_t float_dtypes[] = {BURN_F32, BURN_F64, BURN_F16, BURN_BF16};

static int32_t samples_random_uniform(uint32_t i, burn_sample *s)
{
    return random_samples(i, s, float_dtypes, 4, 0, 0.0);
}

static const burn_role roles_float[3] = {BURNI_ROLE("seed", NUMBER, BURN_BIT(U64)),
                                         BURNI_ROLE("counter", NUMBER, BURN_BIT(U64)),
                                         BURNI_ROLE("y", BURN_ROLE_NO_GRAD, BURN_SET_FLOAT)};

const burn_op_def burn_op_def_random_uniform = {
    RANDOM_DEF(RANDOM_UNIFORM, random_uniform),
    .n_in = 2,
    .summary = "numbers in [0,1) of 24 random bits (53 for f64)",
    .roles = roles_float,
    .infer = infer_random_uniform,
    .decompose = expand_random_uniform,
    .eval = eval_random_uniform,
    .samples = samples_random_uniform,
};

/* ---- random_normal --------------------------------------------------------------------------- */

static int32_t infer_random_normal(const burn_infer *a)
{
    return burni_infer_created("random_normal", a, BURN_SET_FLOAT);
}

static int32_t eval_random_normal(const burn_eval *a)
{
    burn_eval_operand *y = &a->out[0];
    for (uint64_t k = 0; k < y->n; k++) {
        y->f[k] = random_normal(seed_of(a, 0), seed_of(a, 1), k, y->meta.dtype);
    }
    return BURN_OK;
}

/* Uniforms as pairs [m, 2], radius and angle [m, 1], both coordinates side by side, cut to n. */
static int32_t expand_random_normal(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_shape *t = (const burn_attrs_shape *)a->attrs;
    uint32_t computing = t->dtype == BURN_F64 ? BURN_F64 : BURN_F32;
    int64_t n = burni_numel(t->n_dims, t->dims);
    int64_t pairs[2] = {n / 2 + n % 2, 2};
    int64_t flat[1] = {2 * pairs[0]};
    burn_value *u = draw(b, BURN_OP_RANDOM_UNIFORM, computing, 2, pairs, a->in);
    burn_value *u0 = burn_b_slice(b, u, 1, 0, 1, 1);
    burn_value *angle = burn_b_mul_num(b, burn_b_slice(b, u, 1, 1, 1, 1), TWO_PI);
    burn_value *logs = burn_b_log(b, burn_b_sub(b, burn_b_num(b, u0, 1.0), u0));
    burn_value *r = burn_b_sqrt(b, burn_b_mul_num(b, logs, -2.0));
    burn_value *parts[2] = {burn_b_mul(b, r, burn_b_cos(b, angle)),
                            burn_b_mul(b, r, burn_b_sin(b, angle))};
    burn_attrs_axis side;
    burn_attrs_init(&side, (uint32_t)sizeof(side));
    side.axis = 1;
    burn_value *both = burn_b_emit(b, BURN_OP_CAT, &side, parts, 2);
    burn_value *all = burn_b_slice(b, burn_b_reshape(b, both, 1, flat), 0, 0, n, 1);
    burn_value *y = burn_b_reshape(b, all, t->n_dims, t->dims);
    a->out[0] = t->dtype == computing ? y : burn_b_cast(b, y, t->dtype);
    return BURN_OK;
}

static int32_t samples_random_normal(uint32_t i, burn_sample *s)
{
    return random_samples(i, s, float_dtypes, 4, 0, 16.0);
}

const burn_op_def burn_op_def_random_normal = {
    RANDOM_DEF(RANDOM_NORMAL, random_normal),
    .n_in = 2,
    .summary = "standard normal numbers by Box-Muller on pairs of uniforms",
    .roles = roles_float,
    .infer = infer_random_normal,
    .decompose = expand_random_normal,
    .eval = eval_random_normal,
    .samples = samples_random_normal,
};

/* ---- bernoulli ------------------------------------------------------------------------------- */

static int32_t infer_bernoulli(const burn_infer *a)
{
    return burni_infer_created("bernoulli", a, BURN_SET_ANY);
}

/* u < p with u and p in f32, whatever the dtype of the result. */
static int32_t eval_bernoulli(const burn_eval *a)
{
    burn_eval_operand *y = &a->out[0];
    float p = (float)burni_eval_get(&a->in[0], 0);
    for (uint64_t k = 0; k < y->n; k++) {
        double u = burni_random_uniform(seed_of(a, 1), seed_of(a, 2), k, BURN_F32);
        burni_eval_set(y, k, u < (double)p ? 1.0 : 0.0);
    }
    return BURN_OK;
}

static int32_t expand_bernoulli(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_shape *t = (const burn_attrs_shape *)a->attrs;
    burn_value *u =
        draw(b, BURN_OP_RANDOM_UNIFORM, BURN_F32, t->n_dims, t->dims, a->in + 1);
    burn_value *taken = burn_b_less(b, u, a->in[0]);
    a->out[0] = t->dtype == BURN_BOOL ? taken : burn_b_cast(b, taken, t->dtype);
    return BURN_OK;
}

static int32_t samples_bernoulli(uint32_t i, burn_sample *s)
{
    static const uint8_t dtypes[] = {BURN_F32, BURN_BOOL, BURN_F16, BURN_I64, BURN_BF16, BURN_F64,
                                     BURN_I8,  BURN_I16,  BURN_I32, BURN_U8,  BURN_U16,  BURN_U32,
                                     BURN_U64};
    static const double chances[] = {0.3, 0.0, 1.0, 0.5, 0.97};
    int32_t rc = random_samples(i, s, dtypes, sizeof(dtypes), 1, 0.0);
    if (rc == BURN_OK) {
        burni_sample_immediate(s, 0, BURN_F64, chances[i % 5]);
    }
    return rc;
}

static const burn_role roles_bernoulli[4] = {BURNI_ROLE("p", NUMBER, BURN_BIT(F64)),
                                             BURNI_ROLE("seed", NUMBER, BURN_BIT(U64)),
                                             BURNI_ROLE("counter", NUMBER, BURN_BIT(U64)),
                                             BURNI_ROLE("y", BURN_ROLE_NO_GRAD, BURN_SET_ANY)};

const burn_op_def burn_op_def_bernoulli = {
    RANDOM_DEF(BERNOULLI, bernoulli),
    .n_in = 3,
    .summary = "1 with probability p, else 0",
    .roles = roles_bernoulli,
    .infer = infer_bernoulli,
    .decompose = expand_bernoulli,
    .eval = eval_bernoulli,
    .samples = samples_bernoulli,
};
