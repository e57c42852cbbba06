/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * second.c - second derivatives: the gradient of the gradient, against differences of the gradient.
 *
 * With g(x) the gradient of sum(out * cotangent) and r a random direction, the runner
 * differentiates sum(g(x) * r) once more; that must be the change of g along r, (g(x + h r) - g(x -
 * h r)) / 2h. First gradients are checked in gradient.c, so the runner's own may serve here.
 * Several steps are tried, as in gradient.c. Tried in f64; where the op or the device has none, in
 * f32 with wider steps, since each gradient is off by some eps, and the difference by that over the
 * step. A check in which no element could be compared is a failure.
 */
#include "conformance.h"

#include <burn/registry.h>
#include <math.h>

enum { N_STEPS = 4 };

/* How a dtype is tried: steps; what a gradient may be off by, in parts of its scale. */
typedef struct way {
    double steps[N_STEPS];
    double noise;
    double doubt; /* beyond it an element sits on a kink, or is too steep to tell */
    double slack;
} way;

static const way way_f64 = {{1e-3, 1e-4, 1e-5, 1e-6}, 0.0, 1e-4, 1e-7};
static const way way_f32 = {{1e-1, 3e-2, 1e-2, 3e-3}, 4e-7, 3e-2, 1e-3};

/* What one case needs: directions, the second gradients, and room for the shifted ones. */
typedef struct second {
    uint8_t wanted[CONF_MAX_IN];
    conf_value cotangents[CONF_MAX_OUT];
    conf_value direction[CONF_MAX_IN];
    conf_value got[CONF_MAX_IN];
    double *estimate[CONF_MAX_IN]; /* best difference of each element */
    double *doubt[CONF_MAX_IN];    /* how far it can be trusted */
    const way *how;
} second;

static void fill_directions(conf_case *c, second *s)
{
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (s->wanted[i] == 0) {
            continue;
        }
        s->direction[i].meta = c->in[i].meta;
        conf_value_alloc(c->arena, &s->direction[i]);
        for (uint64_t k = 0; k < c->in[i].n; k++) {
            double u = conf_uniform(c->seed + 29, (uint64_t)(i + 1) << 32 | k);
            s->direction[i].f[k] = u < 0.5 ? -1.0 + u : u;
        }
    }
}

static void shift(conf_case *c, const second *s, double h)
{
    for (uint32_t i = 0; i < c->n_in; i++) {
        for (uint64_t k = 0; s->wanted[i] != 0 && k < c->in[i].n; k++) {
            c->in[i].f[k] += h * s->direction[i].f[k];
        }
    }
}

/* Gradients at x + h * direction; the inputs are as before when it returns. */
static int32_t gradient_at(conf_runner *runner, conf_case *c, const second *s, double h,
                           conf_value *grads, burn_err *err)
{
    double *kept[CONF_MAX_IN] = {NULL};
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (s->wanted[i] != 0) {
            kept[i] = conf_alloc(c->arena, c->in[i].n * sizeof(double));
            memcpy(kept[i], c->in[i].f, (size_t)c->in[i].n * sizeof(double));
        }
    }
    shift(c, s, h);
    memset(grads, 0, CONF_MAX_IN * sizeof(*grads));
    int32_t code = runner->gradient(runner, c, s->cotangents, s->wanted, grads, err);
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (kept[i] != NULL) {
            memcpy(c->in[i].f, kept[i], (size_t)c->in[i].n * sizeof(double));
        }
    }
    runner->reset(runner);
    return code;
}

static double element(const conf_value *grad, uint64_t k)
{
    return grad->meta.kind == BURN_TENSOR ? grad->f[k] : 0.0;
}

/* Keeps, per element, the difference that agrees best with that of the step before. */
static void improve(const conf_case *c, second *s, double **previous, const conf_value *up,
                    const conf_value *down, double h)
{
    for (uint32_t i = 0; i < c->n_in; i++) {
        for (uint64_t k = 0; s->wanted[i] != 0 && k < c->in[i].n; k++) {
            double a = element(&up[i], k);
            double b = element(&down[i], k);
            double here = (a - b) / (2.0 * h);
            double noise = s->how->noise * fmax(1.0, fmax(fabs(a), fabs(b))) / h;
            double apart = fabs(here - previous[i][k]) + noise;
            if (apart < s->doubt[i][k]) {
                s->doubt[i][k] = apart;
                s->estimate[i][k] = here;
            }
            previous[i][k] = here;
        }
    }
}

static int32_t differences(conf_runner *runner, conf_case *c, second *s, burn_err *err)
{
    conf_value up[CONF_MAX_IN];
    conf_value down[CONF_MAX_IN];
    double *previous[CONF_MAX_IN] = {NULL};
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (s->wanted[i] == 0) {
            continue;
        }
        previous[i] = conf_alloc(c->arena, c->in[i].n * sizeof(double));
        s->estimate[i] = conf_alloc(c->arena, c->in[i].n * sizeof(double));
        s->doubt[i] = conf_alloc(c->arena, c->in[i].n * sizeof(double));
        for (uint64_t k = 0; k < c->in[i].n; k++) {
            previous[i][k] = (double)NAN;
            s->doubt[i][k] = (double)INFINITY;
        }
    }
    for (uint32_t n = 0; n < N_STEPS; n++) {
        double h = s->how->steps[n];
        int32_t code = gradient_at(runner, c, s, h, up, err);
        if (code == BURN_OK) {
            code = gradient_at(runner, c, s, -h, down, err);
        }
        if (code != BURN_OK) {
            return code;
        }
        improve(c, s, previous, up, down, h);
    }
    return BURN_OK;
}

static void compare(conf_report *report, const conf_case *c, const second *s)
{
    uint64_t checked = 0;
    uint64_t left_out = 0;
    for (uint32_t i = 0; i < c->n_in; i++) {
        for (uint64_t k = 0; s->wanted[i] != 0 && k < c->in[i].n; k++) {
            double expected = s->estimate[i][k];
            double doubt = s->doubt[i][k];
            double scale = fmax(1.0, fabs(expected));
            if (!isfinite(expected) || doubt > s->how->doubt * scale) {
                left_out++;
                continue;
            }
            checked++;
            double got = element(&s->got[i], k);
            if (fabs(got - expected) > 4.0 * doubt + s->how->slack * scale) {
                conf_result(report, c, "second", conf_layout_detail(c), CONF_FAIL,
                            "by %s, element %llu: %.9g, expected %.9g (+- %.2g)",
                            conf_role_in(c->def, i)->name, (unsigned long long)k, got, expected,
                            doubt);
                return;
            }
        }
    }
    if (checked == 0) {
        conf_result(report, c, "second", conf_layout_detail(c), CONF_FAIL,
                    "no element could be checked (%llu are left out); flag the sample NO_GRAD",
                    (unsigned long long)left_out);
        return;
    }
    conf_result(report, c, "second", conf_layout_detail(c), CONF_PASS,
                "%llu elements, %llu left out", (unsigned long long)checked,
                (unsigned long long)left_out);
}

/* How the case is tried; NULL: not in this dtype. */
static const way *way_of(conf_runner *runner, const conf_case *c)
{
    int has_f64 = 0;
    for (uint32_t i = 0; i < c->n_in; i++) {
        const burn_role *role = conf_role_in(c->def, i);
        int stays = c->sample.in[i].dtype != 0 || (role->dtypes[0] & BURN_BIT(F64)) == 0;
        int is_float = conf_is_float(c->in[i].meta.dtype);
        has_f64 |= c->in[i].meta.kind == BURN_TENSOR && is_float && !stays;
    }
    has_f64 = has_f64 && runner->supports(runner, c->def, BURN_F64) != BURN_SUPPORT_NONE;
    if (c->dtype == BURN_F64) {
        return &way_f64;
    }
    return c->dtype == BURN_F32 && !has_f64 ? &way_f32 : NULL;
}

void conf_check_second(conf_report *report, conf_runner *runner, conf_case *c)
{
    second s;
    burn_err err = BURN_ERR_INIT;
    memset(&s, 0, sizeof(s));
    s.how = way_of(runner, c);
    if (runner->second == NULL || s.how == NULL ||
        !conf_gradient_prepare(c, s.wanted, s.cotangents)) {
        return;
    }
    fill_directions(c, &s);
    int32_t code = runner->second(runner, c, s.cotangents, s.wanted, s.direction, s.got, &err);
    runner->reset(runner);
    if (code == BURN_E_END) {
        return;
    }
    if (code == BURN_OK) {
        code = differences(runner, c, &s, &err);
    }
    if (code != BURN_OK) {
        conf_failed(report, c, "second", conf_layout_detail(c), code, err.text);
        return;
    }
    compare(report, c, &s);
}
