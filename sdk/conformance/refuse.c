/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * refuse.c - each rule of an op's roles, broken once: the call must fail, and its text must say
 * which operand and what was wrong with it.
 *
 * The rules: an operand's dtypes, its tie to another operand's dtype, its presence, tensor or
 * scalar, how many operands there are, and sizes. Which sizes fit is an op's own rule: each size of
 * each operand is changed, and where `infer` refuses that, so must the device, naming the values.
 * To add a rule of roles: a function that breaks it, a row in `breakers`.
 */
#include "conformance.h"

/* What a broken call must be answered with. */
typedef struct refusal {
    int32_t code;         /* 0: any */
    const char *words[2]; /* each must be in the text; NULL: none */
} refusal;

/* Breaks a rule of operand i in c; 0 when that rule cannot be broken there. */
typedef int (*breaker_fn)(conf_case *c, uint32_t i, refusal *out);

static int has_dtype(const burn_role *role, uint8_t dtype)
{
    return (role->dtypes[0] >> dtype & 1) != 0;
}

/* Gives operand i another dtype, with values of its own. */
static void set_dtype(conf_case *c, uint32_t i, uint8_t dtype)
{
    burn_sample_operand ones = {.kind = BURN_TENSOR, .fill = BURN_FILL_BOOL};
    burn_meta meta = c->in[i].meta;
    memset(&c->in[i], 0, sizeof(c->in[i]));
    c->in[i].meta = meta;
    c->in[i].meta.dtype = dtype;
    conf_value_alloc(c->arena, &c->in[i]);
    conf_fill(&c->in[i], &ones, c->seed, i);
}

static int is_plain_tensor(const conf_case *c, uint32_t i)
{
    return c->in[i].meta.kind == BURN_TENSOR;
}

static int refused_dtype(conf_case *c, uint32_t i, refusal *out)
{
    const burn_role *role = conf_role_in(c->def, i);
    for (uint8_t dtype = 1; dtype < 64 && is_plain_tensor(c, i) && role->dtypes[0] != 0; dtype++) {
        if (burn_element_size(dtype) > 0 && !has_dtype(role, dtype)) {
            set_dtype(c, i, dtype);
            out->code = BURN_E_DTYPE;
            out->words[1] = burn_element_name(dtype);
            return 1;
        }
    }
    return 0;
}

static int untied_dtype(conf_case *c, uint32_t i, refusal *out)
{
    const burn_role *role = conf_role_in(c->def, i);
    uint32_t tie = role->same_dtype_as;
    if (!is_plain_tensor(c, i) || tie == 0 || tie > c->n_in || tie - 1 == i ||
        !is_plain_tensor(c, tie - 1)) {
        return 0;
    }
    for (uint8_t dtype = 1; dtype < 64; dtype++) {
        if (has_dtype(role, dtype) && dtype != c->in[tie - 1].meta.dtype) {
            set_dtype(c, i, dtype);
            out->code = BURN_E_DTYPE;
            out->words[1] = burn_element_name(dtype);
            return 1;
        }
    }
    return 0;
}

static int missing(conf_case *c, uint32_t i, refusal *out)
{
    if ((conf_role_in(c->def, i)->flags & BURN_ROLE_OPTIONAL) != 0) {
        return 0;
    }
    memset(&c->in[i], 0, sizeof(c->in[i]));
    out->code = BURN_E_INVALID;
    out->words[1] = "missing";
    return 1;
}

static int scalar_for_tensor(conf_case *c, uint32_t i, refusal *out)
{
    const uint32_t takes = BURN_ROLE_IMMEDIATE | BURN_ROLE_ONLY_IMMEDIATE | BURN_ROLE_STATE;
    if (!is_plain_tensor(c, i) || (conf_role_in(c->def, i)->flags & takes) != 0) {
        return 0;
    }
    uint8_t dtype = c->in[i].meta.dtype;
    memset(&c->in[i], 0, sizeof(c->in[i]));
    c->in[i].meta.kind = BURN_IMMEDIATE;
    c->in[i].meta.dtype = dtype;
    conf_value_alloc(c->arena, &c->in[i]);
    out->code = BURN_E_INVALID;
    out->words[1] = "scalar";
    return 1;
}

static int tensor_for_scalar(conf_case *c, uint32_t i, refusal *out)
{
    if ((conf_role_in(c->def, i)->flags & BURN_ROLE_ONLY_IMMEDIATE) == 0 ||
        c->in[i].meta.kind != BURN_IMMEDIATE) {
        return 0;
    }
    c->in[i].meta.kind = BURN_TENSOR;
    c->in[i].meta.rank = 0;
    out->code = BURN_E_INVALID;
    out->words[1] = "scalar";
    return 1;
}

/* Tried with the last operand only. */
static int one_too_many(conf_case *c, uint32_t i, refusal *out)
{
    if (i + 1 != c->n_in || c->n_in != c->def->n_in || c->n_in >= CONF_MAX_IN ||
        (conf_role_in(c->def, i)->flags & (BURN_ROLE_VARIADIC | BURN_ROLE_STATE)) != 0) {
        return 0;
    }
    c->in[c->n_in] = c->in[i];
    c->n_in++;
    out->code = BURN_E_INVALID;
    out->words[0] = NULL; /* it has no role */
    return 1;
}

typedef struct breaker {
    const char *name;
    breaker_fn broken;
} breaker;

static const breaker breakers[] = {
    {"dtype", refused_dtype},      {"tied dtype", untied_dtype},  {"missing", missing},
    {"scalar", scalar_for_tensor}, {"tensor", tensor_for_scalar}, {"count", one_too_many},
};

static void expect_refusal(conf_report *report, conf_runner *runner, const conf_case *c,
                           const char *name, const refusal *expected)
{
    conf_value got[CONF_MAX_OUT];
    burn_err err = BURN_ERR_INIT;
    memset(got, 0, sizeof(got));
    int32_t code = conf_run(runner, c, got, &err);
    runner->reset(runner);
    if (code != expected->code) {
        conf_result(report, c, "refuse", name, CONF_FAIL, "code %d (%s), expected %d", (int)code,
                    code == BURN_OK ? "no error" : err.text, (int)expected->code);
        return;
    }
    const char *const words[] = {c->def->name, expected->words[0], expected->words[1]};
    for (uint32_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
        if (words[w] != NULL && strstr(err.text, words[w]) == NULL) {
            conf_result(report, c, "refuse", name, CONF_FAIL, "\"%s\" does not say \"%s\"",
                        err.text, words[w]);
            return;
        }
    }
    conf_result(report, c, "refuse", name, CONF_PASS, "%s", err.text);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Gives operand i of c another shape, with zeros in it. */
static void reshape(conf_case *c, uint32_t i, const burn_meta *meta)
{
    memset(&c->in[i], 0, sizeof(c->in[i]));
    c->in[i].meta = *meta;
    conf_value_alloc(c->arena, &c->in[i]);
}

/* "[2,3]": the shape of an operand of c that stands in the definition's own text, or NULL. */
static const char *shape_in_text(const conf_case *c, const char *text, char *out, size_t size)
{
    for (uint32_t i = 0; i < c->n_in; i++) {
        char meta[100];
        const char *shape = strchr(conf_meta_text(meta, sizeof(meta), &c->in[i].meta), '[');
        (void)snprintf(out, size, "%s", shape != NULL ? shape : "");
        if (out[0] != '\0' && strstr(text, out) != NULL) {
            return out;
        }
    }
    return NULL;
}

/* When infer refuses the operands of c, so must the device; the text must name what does not fit:
 * the changed size, or the shape of an operand. */
static void expect_shape_refusal(conf_report *report, conf_runner *runner, conf_case *c,
                                 int64_t number)
{
    burn_err err = BURN_ERR_INIT;
    refusal expected;
    char size[24];
    char shape[100];
    memset(&expected, 0, sizeof(expected));
    expected.code = conf_evaluate(c->arena, c->def, c->sample.attrs, c->sample.attrs_size, c->in,
                                  c->n_in, c->out, c->n_out, &err);
    if (expected.code == BURN_E_SHAPE) {
        (void)snprintf(size, sizeof(size), "%lld", (long long)number);
        const char *known = shape_in_text(c, err.text, shape, sizeof(shape));
        expected.words[1] = known != NULL ? known : size;
        expect_refusal(report, runner, c, "size", &expected);
    }
}

static void break_sizes(conf_report *report, conf_runner *runner, const conf_case *c)
{
    static conf_case broken; /* large */
    for (uint32_t i = 0; i < c->n_in; i++) {
        uint32_t rank = c->in[i].meta.kind == BURN_TENSOR ? c->in[i].meta.rank : 0;
        for (uint32_t d = 0; d < rank; d++) {
            burn_meta meta = c->in[i].meta;
            meta.dims[d] += 1;
            broken = *c;
            reshape(&broken, i, &meta);
            expect_shape_refusal(report, runner, &broken, meta.dims[d]);
        }
        if (rank > 0 && rank < BURN_MAX_RANK) {
            burn_meta meta = c->in[i].meta;
            meta.dims[meta.rank++] = 2;
            broken = *c;
            reshape(&broken, i, &meta);
            expect_shape_refusal(report, runner, &broken, 2);
        }
    }
}

void conf_check_refusals(conf_report *report, conf_runner *runner, conf_case *c)
{
    static conf_case broken; /* large */
    for (uint32_t b = 0; b < sizeof(breakers) / sizeof(breakers[0]); b++) {
        for (uint32_t i = 0; i < c->n_in && c->def->n_in > 0; i++) {
            refusal expected;
            memset(&expected, 0, sizeof(expected));
            expected.words[0] = conf_role_in(c->def, i)->name;
            broken = *c;
            if (breakers[b].broken(&broken, i, &expected)) {
                expect_refusal(report, runner, &broken, breakers[b].name, &expected);
            }
        }
    }
    break_sizes(report, runner, c);
}
