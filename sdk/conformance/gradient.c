/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gradient.c - gradients against central differences of eval in double, with random cotangents.
 *
 * Each element is differentiated with several steps; the two neighbouring steps that agree best
 * give the number and its own error, so no step has to suit every op. An element where no two agree
 * sits on a kink and is left out; a check in which every element is left out fails. Of large
 * operands a random part of the elements is tried.
 */
#include "conformance.h"

#include <math.h>

#define MAX_ELEMENTS 24
#define LARGE 4096
#define FEWER_ELEMENTS 8
#define KINK 1e-4

static const double steps[] = {1e-2, 2e-3, 4e-4, 8e-5, 1.6e-5};
#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

/* sum over the outputs of cotangent * value; NaN when eval fails. */
static double weighted(const conf_case *c, const conf_value *cotangents)
{
    conf_arena arena = {NULL};
    conf_value out[CONF_MAX_OUT];
    burn_err err = BURN_ERR_INIT;
    double total = 0.0;
    int32_t code = conf_evaluate_exact(&arena, c->def, c->sample.attrs, c->sample.attrs_size,
                                       c->in, c->n_in, out, c->n_out, &err);
    for (uint32_t j = 0; j < c->n_out && code == BURN_OK; j++) {
        for (uint64_t k = 0; k < cotangents[j].n; k++) {
            total += cotangents[j].f[k] * out[j].f[k];
        }
    }
    conf_arena_free(&arena);
    return code == BURN_OK ? total : (double)NAN;
}

/* Fourth-order central difference by element k of input i. */
static double difference(conf_case *c, const conf_value *cotangents, uint32_t i, uint64_t k,
                         double step)
{
    double *x = &c->in[i].f[k];
    double kept = *x;
    double h = step * fmax(1.0, fabs(kept));
    *x = kept + h;
    double a = weighted(c, cotangents);
    *x = kept - h;
    double b = weighted(c, cotangents);
    *x = kept + 2.0 * h;
    double far_a = weighted(c, cotangents);
    *x = kept - 2.0 * h;
    double far_b = weighted(c, cotangents);
    *x = kept;
    return (8.0 * (a - b) - (far_a - far_b)) / (12.0 * h);
}

/* The best estimate and how far it can be trusted. */
static double derivative(conf_case *c, const conf_value *cotangents, uint32_t i, uint64_t k,
                         double *out_error)
{
    double best = (double)NAN;
    double previous = difference(c, cotangents, i, k, steps[0]);
    *out_error = (double)INFINITY;
    for (uint32_t s = 1; s < N_STEPS; s++) {
        double here = difference(c, cotangents, i, k, steps[s]);
        double apart = fabs(here - previous);
        if (apart < *out_error) {
            *out_error = apart;
            best = here;
        }
        if (*out_error <= 1e-11 * fmax(1.0, fabs(best))) {
            break;
        }
        previous = here;
    }
    return best;
}

static int carries_gradient(const burn_role *role, const conf_value *value)
{
    const uint32_t none = BURN_ROLE_NO_GRAD | BURN_ROLE_STATE | BURN_ROLE_ONLY_IMMEDIATE;
    return value->meta.kind == BURN_TENSOR && conf_is_float(value->meta.dtype) && value->n > 0 &&
           (role->flags & none) == 0;
}

int conf_gradient_prepare(conf_case *c, uint8_t *wanted, conf_value *cotangents)
{
    int any_in = 0;
    int any_out = 0;
    if ((c->sample.flags & BURN_SAMPLE_NO_GRAD) != 0 || c->def->no_vjp != NULL ||
        c->def->effect == BURN_EFFECT_STATE) {
        return 0;
    }
    memset(cotangents, 0, CONF_MAX_OUT * sizeof(*cotangents));
    for (uint32_t i = 0; i < c->n_in; i++) {
        wanted[i] = (uint8_t)carries_gradient(conf_role_in(c->def, i), &c->in[i]);
        any_in |= wanted[i];
    }
    for (uint32_t j = 0; j < c->n_out; j++) {
        if (!carries_gradient(conf_role_out(c->def, j), &c->out[j])) {
            continue;
        }
        cotangents[j].meta = c->out[j].meta;
        conf_value_alloc(c->arena, &cotangents[j]);
        for (uint64_t k = 0; k < cotangents[j].n && k < CONF_LARGE; k++) {
            double u = conf_uniform(c->seed + 17, (uint64_t)(j + 1) << 32 | k);
            conf_set(&cotangents[j], k, u < 0.5 ? -1.0 + u : u);
        }
        for (uint64_t k = CONF_LARGE; k < cotangents[j].n; k++) {
            conf_move(&cotangents[j], k, &cotangents[j], k - CONF_TILE);
        }
        any_out = 1;
    }
    return any_in && any_out;
}

typedef struct tally {
    uint64_t checked;
    uint64_t left_out;
    char text[300];
} tally;

/* Whether the expected number is beyond the dtype, and got is that infinity. */
static int both_overflow(double got, double expected, uint8_t dtype)
{
    unsigned char bytes[8] = {0};
    burn_store_f64(bytes, dtype, expected);
    return isinf(got) && burn_load_f64(bytes, dtype) == got;
}

/* One element; 0 when the gradient is wrong. */
static int check_element(conf_case *c, const conf_value *cotangents, const conf_value *grad,
                         uint32_t i, uint64_t k, tally *t)
{
    double error = 0.0;
    double expected = derivative(c, cotangents, i, k, &error);
    double got = grad->meta.kind == BURN_TENSOR ? grad->f[k] : 0.0;
    double scale = fmax(1.0, fabs(expected));
    if (!isfinite(expected) || error > KINK * scale) {
        t->left_out++;
        return 1;
    }
    t->checked++;
    double tolerance = fmax(4.0, c->sample.grad_tolerance);
    double slack = 4.0 * error + 1e-9 * scale;
    if (conf_close(got, expected, tolerance, c->in[i].meta.dtype, slack) ||
        both_overflow(got, expected, c->in[i].meta.dtype)) {
        return 1;
    }
    (void)snprintf(t->text, sizeof(t->text),
                   "by %s, element %llu: %.9g, expected %.9g (+- %.2g; tolerance %g eps)",
                   conf_role_in(c->def, i)->name, (unsigned long long)k, got, expected, error,
                   tolerance);
    return 0;
}

static int check_input(conf_case *c, const conf_value *cotangents, const conf_value *grad,
                       uint32_t i, tally *t)
{
    uint64_t n = c->in[i].n;
    uint64_t total = 0;
    if (grad->meta.kind == BURN_TENSOR && !conf_same_shape(&grad->meta, &c->in[i].meta)) {
        char a[100];
        char b[100];
        (void)snprintf(t->text, sizeof(t->text), "by %s is %s, the operand %s",
                       conf_role_in(c->def, i)->name, conf_meta_text(a, sizeof(a), &grad->meta),
                       conf_meta_text(b, sizeof(b), &c->in[i].meta));
        return 0;
    }
    for (uint32_t k = 0; k < c->n_in; k++) {
        total += c->in[k].n;
    }
    uint64_t most = total + c->out[0].n > LARGE ? FEWER_ELEMENTS : MAX_ELEMENTS;
    for (uint64_t k = 0; k < n && k < most; k++) {
        uint64_t at = n <= most ? k : (uint64_t)(conf_uniform(c->seed + i, k) * (double)n);
        if (!check_element(c, cotangents, grad, i, at, t)) {
            return 0;
        }
    }
    return 1;
}

/* Whether the gradient by input i is the same when nobody asks for the others. */
static int same_alone(conf_runner *runner, conf_case *c, const conf_value *cotangents,
                      const conf_value *grads, uint32_t i, tally *t)
{
    const char *name = conf_role_in(c->def, i)->name;
    uint8_t wanted[CONF_MAX_IN] = {0};
    conf_value alone[CONF_MAX_IN];
    burn_err err = BURN_ERR_INIT;
    memset(alone, 0, sizeof(alone));
    wanted[i] = 1;
    int32_t code = runner->gradient(runner, c, cotangents, wanted, alone, &err);
    if (code != BURN_OK) {
        (void)snprintf(t->text, sizeof(t->text),
                       "by %s, when no other gradient is asked for: %.200s; does vjp_saves name "
                       "all that it reads?",
                       name, err.text);
        return 0;
    }
    if (grads[i].meta.kind != BURN_TENSOR || alone[i].meta.kind != BURN_TENSOR) {
        return grads[i].meta.kind == alone[i].meta.kind;
    }
    double tolerance = fmax(4.0, c->sample.grad_tolerance);
    for (uint64_t k = 0; k < grads[i].n && k < alone[i].n; k++) {
        double got = alone[i].f[k];
        if (conf_close(got, grads[i].f[k], tolerance, c->in[i].meta.dtype, 0.0)) {
            continue;
        }
        (void)snprintf(t->text, sizeof(t->text),
                       "by %s, element %llu: %.9g when no other gradient is asked for, else %.9g",
                       name, (unsigned long long)k, got, grads[i].f[k]);
        return 0;
    }
    t->checked++;
    return 1;
}

/* An operand that is not tracked is saved only where the definition says so. */
static void check_alone(conf_report *report, conf_runner *runner, conf_case *c,
                        const uint8_t *wanted, const conf_value *cotangents,
                        const conf_value *grads)
{
    tally t;
    uint32_t n = 0;
    memset(&t, 0, sizeof(t));
    for (uint32_t i = 0; i < c->n_in; i++) {
        n += wanted[i] != 0;
    }
    for (uint32_t i = 0; n > 1 && i < c->n_in; i++) {
        if (wanted[i] != 0 && !same_alone(runner, c, cotangents, grads, i, &t)) {
            conf_result(report, c, "gradient alone", conf_layout_detail(c), CONF_FAIL, "%s",
                        t.text);
            return;
        }
    }
    if (n > 1) {
        conf_result(report, c, "gradient alone", conf_layout_detail(c), CONF_PASS,
                    "by %llu operands, one at a time", (unsigned long long)t.checked);
    }
}

void conf_check_gradient(conf_report *report, conf_runner *runner, conf_case *c)
{
    uint8_t wanted[CONF_MAX_IN] = {0};
    conf_value cotangents[CONF_MAX_OUT];
    conf_value grads[CONF_MAX_IN];
    burn_err err = BURN_ERR_INIT;
    tally t;
    memset(grads, 0, sizeof(grads));
    memset(&t, 0, sizeof(t));
    if (!conf_gradient_prepare(c, wanted, cotangents)) {
        return;
    }
    int32_t code = runner->gradient(runner, c, cotangents, wanted, grads, &err);
    if (code == BURN_E_END) {
        return;
    }
    if (code != BURN_OK) {
        conf_failed(report, c, "gradient", conf_layout_detail(c), code, err.text);
        return;
    }
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (wanted[i] != 0 && !check_input(c, cotangents, &grads[i], i, &t)) {
            conf_result(report, c, "gradient", conf_layout_detail(c), CONF_FAIL, "%s", t.text);
            return;
        }
    }
    if (t.checked == 0) {
        conf_result(report, c, "gradient", conf_layout_detail(c), CONF_FAIL,
                    "no element could be checked (%llu sit on a kink); flag the sample NO_GRAD",
                    (unsigned long long)t.left_out);
        return;
    }
    conf_result(report, c, "gradient", conf_layout_detail(c), CONF_PASS,
                "%llu elements, %llu left out", (unsigned long long)t.checked,
                (unsigned long long)t.left_out);
    check_alone(report, runner, c, wanted, cotangents, grads);
}
