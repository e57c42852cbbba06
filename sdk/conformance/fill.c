/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fill.c - sample values: what each BURN_FILL_* means, for every dtype.
 *
 * A pure function of seed, counter and position, so a rerun with the same seed sees the same
 * numbers. Values are rounded to the dtype before anybody uses them. Unsigned integers take the
 * non-negative half of a range. Large operands repeat themselves. To add a fill: a case in
 * fill_element.
 */
#include "conformance.h"

#include <burn_sdk/philox.h>
#include <math.h>

double conf_uniform(uint64_t seed, uint64_t counter)
{
    uint32_t words[4];
    burn_philox(seed, counter, words);
    return burn_philox_uniform64(words[0] | (uint64_t)words[1] << 32);
}

/* About N(0,1), cut at 4. */
static double normal(uint64_t seed, uint64_t counter)
{
    double u = conf_uniform(seed, counter * 2);
    double v = conf_uniform(seed, counter * 2 + 1);
    double value = sqrt(-2.0 * log(1.0 - u)) * cos(6.283185307179586 * v);
    return fmax(-4.0, fmin(4.0, value));
}

static double whole_between(double low, double high, double u)
{
    double first = ceil(low);
    double last = floor(high);
    return fmin(last, first + floor(u * (last - first + 1.0)));
}

static double fill_normal(uint32_t klass, uint64_t seed, uint64_t counter)
{
    switch (klass) {
    case BURN_CLASS_FLOAT:
        return normal(seed, counter);
    case BURN_CLASS_BOOL:
        return whole_between(0.0, 1.0, conf_uniform(seed, counter));
    case BURN_CLASS_UINT:
        return whole_between(0.0, 9.0, conf_uniform(seed, counter));
    default:
        return whole_between(-9.0, 9.0, conf_uniform(seed, counter));
    }
}

/* Floats stay off the ends, so that rounding to a short dtype does not leave the range. */
static double fill_uniform(uint32_t klass, const burn_sample_operand *how, double u)
{
    double low = how->lo;
    if (klass == BURN_CLASS_FLOAT) {
        return low + (0.01 + 0.98 * u) * (how->hi - low);
    }
    if (klass == BURN_CLASS_UINT && low < 0.0) {
        low = 0.0;
    }
    return whole_between(low, how->hi, u);
}

static double fill_nonzero(uint32_t klass, uint64_t seed, uint64_t counter)
{
    double u = conf_uniform(seed, counter * 2);
    double sign = conf_uniform(seed, counter * 2 + 1) < 0.5 ? -1.0 : 1.0;
    if (klass == BURN_CLASS_BOOL) {
        return 1.0;
    }
    if (klass == BURN_CLASS_UINT) {
        return whole_between(1.0, 3.0, u);
    }
    return klass == BURN_CLASS_FLOAT ? sign * (0.5 + 1.5 * u) : sign * whole_between(1.0, 3.0, u);
}

/* Bits of the special values of each float dtype: subnormal, smallest normal, largest. */
typedef struct edge_row {
    uint8_t dtype;
    double subnormal;
    double normal;
    double largest;
} edge_row;

static const edge_row edges[] = {
    {BURN_F16, 0x1p-24, 0x1p-14, 65504.0},
    {BURN_BF16, 0x1p-133, 0x1p-126, 0x1.fep127},
    {BURN_F32, 0x1p-149, 0x1p-126, 0x1.fffffep127},
    {BURN_F64, 0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023},
};

/* Odd: steps of 2 visit all of them. */
enum { N_SPECIAL = 15 };

static double special_float(uint8_t dtype, uint64_t which)
{
    const edge_row *edge = &edges[0];
    for (uint32_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        if (edges[i].dtype == dtype) {
            edge = &edges[i];
        }
    }
    const double table[] = {
        (double)NAN, (double)INFINITY, -(double)INFINITY, 0.0, -0.0, edge->subnormal,
        -edge->subnormal, 0.75 * edge->normal, -0.5 * edge->normal, edge->normal, edge->largest,
        -edge->largest, 1.0, -1.0, 0.5,
    };
    _Static_assert(sizeof(table) / sizeof(table[0]) == N_SPECIAL, "pairs step through it");
    return table[which % N_SPECIAL];
}

/* Extremes of an integer dtype, written as elements (a double cannot hold all of them). */
static void special_whole(conf_value *value, uint64_t k, uint64_t which)
{
    uint8_t dtype = value->meta.dtype;
    int64_t low = burn_element_low(dtype);
    uint64_t high = burn_element_high(dtype);
    const uint64_t table[] = {(uint64_t)low, high, 0, 1, (uint64_t)(low + 1), high - 1,
                              value->i != NULL ? UINT64_MAX : 2};
    uint64_t bits = table[which % (sizeof(table) / sizeof(table[0]))];
    if (value->u != NULL) {
        value->u[k] = bits;
    } else {
        value->i[k] = burn_element_class(dtype) == BURN_CLASS_BOOL ? (int64_t)(bits & 1)
                                                                   : (int64_t)bits;
    }
}

/*
 * Every second element special, of further operands in twos, fours and so on: so ordinary numbers
 * meet special ones, and each special one meets each of another operand within 4 * N_SPECIAL^2.
 */
static void fill_special(conf_value *value, uint64_t k, uint64_t seed, uint64_t counter)
{
    uint64_t operand = (counter >> 40) - 1;
    uint64_t which = k / 2 + operand * (7 + k / (4 * N_SPECIAL));
    if ((k >> operand % 3 & 1) == 1) {
        conf_set(value, k, fill_normal(burn_element_class(value->meta.dtype), seed, counter + k));
    } else if (value->f != NULL) {
        value->f[k] = special_float(value->meta.dtype, which);
    } else {
        special_whole(value, k, which);
    }
}

/* All different: a shuffled ladder with steps of 1/16 (1 for integers), off zero. */
static void fill_distinct(conf_value *value, const burn_sample_operand *how, uint64_t seed,
                          uint64_t counter)
{
    uint32_t klass = burn_element_class(value->meta.dtype);
    double n = (double)value->n;
    double start = klass == BURN_CLASS_UINT ? 0.0 : -floor(n / 2.0);
    for (uint64_t k = 0; k < value->n; k++) {
        double rung = start + (double)k;
        if (klass == BURN_CLASS_FLOAT && how->hi > how->lo) {
            rung = how->lo + ((double)k + 0.5) / n * (how->hi - how->lo);
        } else if (klass == BURN_CLASS_FLOAT) {
            rung = (rung + 0.5) / 16.0;
        }
        conf_set(value, k, rung);
    }
    for (uint64_t k = value->n; k > 1; k--) {
        uint64_t j = (uint64_t)(conf_uniform(seed, counter + k) * (double)k);
        double a = conf_get(value, k - 1);
        conf_set(value, k - 1, conf_get(value, j));
        conf_set(value, j, a);
    }
}

static double fill_element(uint32_t klass, const burn_sample_operand *how, uint64_t k,
                           uint64_t seed, uint64_t counter)
{
    double u = conf_uniform(seed, counter + k);
    switch (how->fill) {
    case BURN_FILL_UNIFORM:
        return fill_uniform(klass, how, u);
    case BURN_FILL_INDEX:
        return fmin(how->hi - 1.0, floor(u * how->hi));
    case BURN_FILL_BOOL:
        return u < 0.5 ? 0.0 : 1.0;
    case BURN_FILL_VALUES:
        return how->n_values > 0 ? how->values[k % how->n_values] : 0.0;
    case BURN_FILL_NONZERO:
        return fill_nonzero(klass, seed, counter + k);
    default:
        return fill_normal(klass, seed, counter + k);
    }
}

/* The value of an immediate, as its dtype can hold it. */
static void fill_immediate(conf_value *value, double number)
{
    uint32_t klass = burn_element_class(value->meta.dtype);
    conf_set(value, 0, klass == BURN_CLASS_UINT ? fabs(number) : number);
}

/* Random numbers cost more than most ops: a large operand has CONF_TILE of them, over and over. */
static void fill_tiles(conf_value *value, const burn_sample_operand *how, uint64_t seed,
                       uint64_t counter)
{
    uint64_t n = value->n;
    value->n = CONF_TILE;
    conf_fill(value, how, seed, counter);
    value->n = n;
    for (uint64_t k = CONF_TILE; k < n; k++) {
        conf_move(value, k, value, k - CONF_TILE);
    }
}

void conf_fill(conf_value *value, const burn_sample_operand *how, uint64_t seed, uint64_t counter)
{
    if (value->n >= CONF_LARGE && how->fill != BURN_FILL_VALUES) {
        fill_tiles(value, how, seed, counter);
        return;
    }
    uint32_t klass = burn_element_class(value->meta.dtype);
    if (how->kind == BURN_IMMEDIATE) {
        fill_immediate(value, how->lo);
        return;
    }
    if (how->fill == BURN_FILL_DISTINCT) {
        fill_distinct(value, how, seed, counter);
        return;
    }
    for (uint64_t k = 0; k < value->n; k++) {
        if (how->fill == BURN_FILL_SPECIAL) {
            fill_special(value, k, seed, counter);
        } else {
            conf_set(value, k, fill_element(klass, how, k, seed, counter));
        }
    }
}
