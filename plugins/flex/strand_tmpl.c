/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * strand_tmpl.c - the links of strands (strand.h), compiled once per ISA with ISA defined.
 *
 * Eight vectors are the running values: as many as calls pass in registers, and enough for each
 * op's latency. A link ends with the call of the next, which compilers turn into a jump; where they
 * do not, a strand is as deep as it is long. Ops give the bits of pointwise_float.h, whose order of
 * operands they keep. To add an op: its function on a vector, and a line in a list below.
 */
#include "strand.h"

#include <math.h>
#include <string.h>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)

#define OP static inline __attribute__((always_inline))

/* ---- vectors --------------------------------------------------------------------------------- */

#if defined(__AVX512F__)

enum { LANES = 16 };
typedef __m512 vec;

OP vec all(float x)
{
    return _mm512_set1_ps(x);
}

OP vec where_less(vec x, vec y, vec yes, vec no)
{
    return _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), yes);
}

OP vec vec_sqrt(vec x)
{
    return _mm512_sqrt_ps(x);
}

/* x > y ? x : y, which is the second for NaN and for zeros of both signs. */
OP vec greater_of(vec x, vec y)
{
    return _mm512_max_ps(x, y);
}

OP vec op_maximum(vec x, vec y)
{
    return _mm512_mask_max_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, y);
}

OP vec op_minimum(vec x, vec y)
{
    return _mm512_mask_min_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, y);
}

#elif defined(__AVX2__)

enum { LANES = 8 };
typedef __m256 vec;

OP vec all(float x)
{
    return _mm256_set1_ps(x);
}

OP vec where_less(vec x, vec y, vec yes, vec no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(x, y, _CMP_LT_OQ));
}

OP vec vec_sqrt(vec x)
{
    return _mm256_sqrt_ps(x);
}

/* x > y ? x : y, which is the second for NaN and for zeros of both signs. */
OP vec greater_of(vec x, vec y)
{
    return _mm256_max_ps(x, y);
}

OP vec op_maximum(vec x, vec y)
{
    return _mm256_blendv_ps(x, _mm256_max_ps(x, y), _mm256_cmp_ps(x, x, _CMP_ORD_Q));
}

OP vec op_minimum(vec x, vec y)
{
    return _mm256_blendv_ps(x, _mm256_min_ps(x, y), _mm256_cmp_ps(x, x, _CMP_ORD_Q));
}

#else

enum { LANES = 4 };
typedef float vec __attribute__((vector_size(16)));
typedef int32_t mask __attribute__((vector_size(16)));

OP vec all(float x)
{
    return (vec){x, x, x, x};
}

OP vec choose(mask m, vec yes, vec no)
{
    return (vec)((m & (mask)yes) | (~m & (mask)no));
}

OP vec where_less(vec x, vec y, vec yes, vec no)
{
    return choose(x < y, yes, no);
}

OP vec vec_sqrt(vec x)
{
    vec z;
    for (int i = 0; i < LANES; i++) {
        z[i] = sqrtf(x[i]);
    }
    return z;
}

OP vec greater_of(vec x, vec y)
{
    return choose(x > y, x, y);
}

/* NaN stays: the comparison with itself is false. */
OP vec op_maximum(vec x, vec y)
{
    return choose((x == x) & ~(x > y), y, x);
}

OP vec op_minimum(vec x, vec y)
{
    return choose((x == x) & ~(x < y), y, x);
}

#endif

enum { VECTORS = 8, BLOCK = VECTORS * LANES };

/* Links leave their results in wide registers, which slows down whoever uses narrow ones next. */
OP void leave(void)
{
#if defined(__AVX__)
    _mm256_zeroupper();
#endif
}

OP vec load(const void *from)
{
    vec x;
    memcpy(&x, from, sizeof(x));
    return x;
}

OP vec spread(const void *from)
{
    float x;
    memcpy(&x, from, sizeof(x));
    return all(x);
}

/* ---- ops ------------------------------------------------------------------------------------- */

OP vec op_neg(vec x)
{
    return -x;
}

OP vec op_abs(vec x)
{
    const int32_t magnitude = INT32_MAX;
    typedef int32_t words __attribute__((vector_size(sizeof(vec))));
    return (vec)((words)x & magnitude);
}

OP vec op_relu(vec x)
{
    return greater_of(all(0.0f), x);
}

OP vec op_sqrt(vec x)
{
    return vec_sqrt(x);
}

OP vec op_rsqrt(vec x)
{
    return all(1.0f) / vec_sqrt(x);
}

OP vec op_recip(vec x)
{
    return all(1.0f) / x;
}

OP vec op_add(vec x, vec y)
{
    return x + y;
}

OP vec op_sub(vec x, vec y)
{
    return x - y;
}

OP vec op_mul(vec x, vec y)
{
    return x * y;
}

OP vec op_div(vec x, vec y)
{
    return x / y;
}

OP vec op_relu_grad(vec y, vec g)
{
    return where_less(all(0.0f), y, g, all(0.0f));
}

/* X(NAME, name) */
#define FOREACH_UNARY(X)                                                                           \
    X(NEG, neg)                                                                                    \
    X(ABS, abs)                                                                                    \
    X(RELU, relu)                                                                                  \
    X(SQRT, sqrt)                                                                                  \
    X(RSQRT, rsqrt)                                                                                \
    X(RECIP, recip)

#define FOREACH_BINARY(X)                                                                          \
    X(ADD, add)                                                                                    \
    X(SUB, sub)                                                                                    \
    X(MUL, mul)                                                                                    \
    X(DIV, div)                                                                                    \
    X(MAXIMUM, maximum)                                                                            \
    X(MINIMUM, minimum)                                                                            \
    X(RELU_GRAD, relu_grad)

/* ---- links ----------------------------------------------------------------------------------- */

/* The running values as parameters and as arguments. */
#define VALUES vec a0, vec a1, vec a2, vec a3, vec a4, vec a5, vec a6, vec a7
#define ALL a0, a1, a2, a3, a4, a5, a6, a7

/* `at`: bytes from an array's first element to the block. */
typedef void (*link_fn)(const flex_link *link, uint64_t at, VALUES);

/* Vector k of an array's block. */
#define AT(array, k) load((array) + (k) * sizeof(vec))

OP void next(const flex_link *link, uint64_t at, VALUES)
{
    ((link_fn)link[1].run)(link + 1, at, ALL);
}

OP void begin(const flex_link *link, uint64_t at)
{
    const char *x = link->data + at;
    next(link, at, AT(x, 0), AT(x, 1), AT(x, 2), AT(x, 3), AT(x, 4), AT(x, 5), AT(x, 6), AT(x, 7));
}

OP void put(char *to, vec x)
{
    memcpy(to, &x, sizeof(x));
}

OP void store(char *to, VALUES)
{
    put(to, a0);
    put(to + sizeof(vec), a1);
    put(to + 2 * sizeof(vec), a2);
    put(to + 3 * sizeof(vec), a3);
    put(to + 4 * sizeof(vec), a4);
    put(to + 5 * sizeof(vec), a5);
    put(to + 6 * sizeof(vec), a6);
    put(to + 7 * sizeof(vec), a7);
}

OP void apply(const flex_link *link, uint64_t at, VALUES, vec (*f)(vec))
{
    next(link, at, f(a0), f(a1), f(a2), f(a3), f(a4), f(a5), f(a6), f(a7));
}

OP void with_array(const flex_link *link, uint64_t at, VALUES, vec (*f)(vec, vec))
{
    const char *y = link->data + at;
    next(link, at, f(a0, AT(y, 0)), f(a1, AT(y, 1)), f(a2, AT(y, 2)), f(a3, AT(y, 3)),
         f(a4, AT(y, 4)), f(a5, AT(y, 5)), f(a6, AT(y, 6)), f(a7, AT(y, 7)));
}

OP void array_with(const flex_link *link, uint64_t at, VALUES, vec (*f)(vec, vec))
{
    const char *x = link->data + at;
    next(link, at, f(AT(x, 0), a0), f(AT(x, 1), a1), f(AT(x, 2), a2), f(AT(x, 3), a3),
         f(AT(x, 4), a4), f(AT(x, 5), a5), f(AT(x, 6), a6), f(AT(x, 7), a7));
}

OP void with_one(const flex_link *link, uint64_t at, VALUES, vec (*f)(vec, vec))
{
    const vec y = spread(link->data);
    next(link, at, f(a0, y), f(a1, y), f(a2, y), f(a3, y), f(a4, y), f(a5, y), f(a6, y), f(a7, y));
}

OP void one_with(const flex_link *link, uint64_t at, VALUES, vec (*f)(vec, vec))
{
    const vec x = spread(link->data);
    next(link, at, f(x, a0), f(x, a1), f(x, a2), f(x, a3), f(x, a4), f(x, a5), f(x, a6), f(x, a7));
}

OP void with_self(const flex_link *link, uint64_t at, VALUES, vec (*f)(vec, vec))
{
    next(link, at, f(a0, a0), f(a1, a1), f(a2, a2), f(a3, a3), f(a4, a4), f(a5, a5), f(a6, a6),
         f(a7, a7));
}

static void link_store(const flex_link *link, uint64_t at, VALUES)
{
    store(link->data + at, ALL);
    next(link, at, ALL);
}

static void link_finish(const flex_link *link, uint64_t at, VALUES)
{
    store(link->data + at, ALL);
}

#define LINK_UNARY(NAME, name)                                                                     \
    static void link_##name(const flex_link *link, uint64_t at, VALUES)                            \
    {                                                                                              \
        apply(link, at, ALL, op_##name);                                                           \
    }
FOREACH_UNARY(LINK_UNARY)

#define LINK_FORM(form, name)                                                                      \
    static void link_##name##_##form(const flex_link *link, uint64_t at, VALUES)                   \
    {                                                                                              \
        form(link, at, ALL, op_##name);                                                            \
    }
#define LINK_BINARY(NAME, name)                                                                    \
    LINK_FORM(with_array, name)                                                                    \
    LINK_FORM(array_with, name)                                                                    \
    LINK_FORM(with_one, name)                                                                      \
    LINK_FORM(one_with, name)                                                                      \
    LINK_FORM(with_self, name)
FOREACH_BINARY(LINK_BINARY)

static uint64_t run(const flex_link *links, uint64_t n)
{
    n -= n % BLOCK;
    for (uint64_t i = 0; i < n; i += BLOCK) {
        begin(links, i * sizeof(float));
    }
    leave();
    return n;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define UNARY_ENTRY(NAME, name) [FLEX_U_##NAME] = (flex_link_fn)link_##name,
#define BINARY_ENTRY(NAME, name)                                                                   \
    [FLEX_B_##NAME] = {                                                                            \
        [FLEX_LINK_WITH_ARRAY] = (flex_link_fn)link_##name##_with_array,                           \
        [FLEX_LINK_ARRAY_WITH] = (flex_link_fn)link_##name##_array_with,                           \
        [FLEX_LINK_WITH_ONE] = (flex_link_fn)link_##name##_with_one,                               \
        [FLEX_LINK_ONE_WITH] = (flex_link_fn)link_##name##_one_with,                               \
        [FLEX_LINK_WITH_SELF] = (flex_link_fn)link_##name##_with_self,                             \
    },
#define TABLE PASTE(flex_strand_table_, ISA)
const flex_strand_table TABLE = {
    .store = (flex_link_fn)link_store,
    .finish = (flex_link_fn)link_finish,
    .unary = {FOREACH_UNARY(UNARY_ENTRY)},
    .binary = {FOREACH_BINARY(BINARY_ENTRY)},
    .run = run,
};
