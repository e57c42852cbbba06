/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * forward.c - an op's results against eval, in each layout; twice the same bits, and in a replay.
 * Ops that overwrite variables are compared through their variables.
 */
#include "conformance.h"

#include <stdlib.h>

int32_t conf_run(conf_runner *runner, const conf_case *c, conf_value *out, burn_err *err)
{
    burn_value *in[CONF_MAX_IN] = {NULL};
    burn_value *results[CONF_MAX_OUT] = {NULL};
    if (c->def->effect == BURN_EFFECT_STATE) {
        return runner->update(runner, c, 1, out, err);
    }
    for (uint32_t i = 0; i < c->n_in; i++) {
        in[i] = conf_make_in(runner, &c->in[i], c->layout, i);
    }
    (void)runner->builder.emit(runner->builder.ctx, c->def->id, c->sample.attrs,
                               c->sample.attrs_size, in, c->n_in, results, c->n_out);
    for (uint32_t j = 0; j < c->n_out; j++) {
        int32_t code = runner->read(runner, results[j], c->arena, &out[j], err);
        if (code != BURN_OK) {
            return code;
        }
    }
    return BURN_OK;
}

/*
 * Repeated values are the worst case of normalisation: the variance is 0 and rounding noise is
 * divided by sqrt(eps), in eval as well. Wrong strides are much further off.
 */
static double layout_factor(const conf_case *c, uint8_t dtype)
{
    if (c->layout != CONF_STRIDE0 || c->def->fuse == BURN_FUSE_POINTWISE) {
        return 1.0;
    }
    return dtype == BURN_F64 ? 4096.0 : dtype == BURN_F32 ? 64.0 : 1.0;
}

void conf_check_forward(conf_report *report, conf_runner *runner, conf_case *c)
{
    const char *detail = conf_layout_names[c->layout];
    conf_value got[CONF_MAX_OUT];
    burn_err err = BURN_ERR_INIT;
    char text[300];
    memset(got, 0, sizeof(got));
    int32_t code = conf_run(runner, c, got, &err);
    if (code != BURN_OK) {
        conf_failed(report, c, "forward", detail, code, err.text);
        return;
    }
    for (uint32_t j = 0; j < c->n_out; j++) {
        conf_digest(report, c->arena, &got[j]);
        int unread = c->def->effect == BURN_EFFECT_STATE && got[j].meta.kind == BURN_ABSENT;
        double factor = layout_factor(c, c->out[j].meta.dtype);
        if (!unread && !conf_compare_output(c, j, &got[j], factor, text, sizeof(text))) {
            conf_result(report, c, "forward", detail, CONF_FAIL, "output %u %s", (unsigned)j,
                        text);
            return;
        }
    }
    conf_result(report, c, "forward", detail, CONF_PASS, "%s", "");
}

/* Results of two runs of the case; both codes are BURN_OK. */
static void compare_bits(conf_report *report, const conf_case *c, const char *check,
                         const conf_value *first, const conf_value *second, const char *where)
{
    for (uint32_t j = 0; j < c->n_out; j++) {
        if (!conf_same_bits(c->arena, &first[j], &second[j])) {
            conf_result(report, c, check, "", CONF_FAIL, "output %u has other bits in %s",
                        (unsigned)j, where);
            return;
        }
    }
    conf_result(report, c, check, "", CONF_PASS, "%s", "");
}

void conf_check_repeat(conf_report *report, conf_runner *runner, conf_case *c)
{
    conf_value first[CONF_MAX_OUT];
    conf_value second[CONF_MAX_OUT];
    burn_err err = BURN_ERR_INIT;
    memset(first, 0, sizeof(first));
    memset(second, 0, sizeof(second));
    int32_t code = conf_run(runner, c, first, &err);
    if (code == BURN_OK) {
        code = conf_run(runner, c, second, &err);
    }
    if (code != BURN_OK) {
        conf_failed(report, c, "repeat", "", code, err.text);
        return;
    }
    compare_bits(report, c, "repeat", first, second, "a second run");
}

/* Kept with other numbers than it runs with: what stays of them shows. Scalars without a name are
 * part of the step. */
void conf_check_replay(conf_report *report, conf_runner *runner, conf_case *c)
{
    static conf_case kept; /* large */
    conf_value called[CONF_MAX_OUT];
    conf_value replayed[CONF_MAX_OUT];
    burn_err err = BURN_ERR_INIT;
    if (runner->replay == NULL || c->def->effect == BURN_EFFECT_STATE) {
        return;
    }
    kept = *c;
    kept.seed++;
    conf_case_inputs(&kept);
    for (uint32_t i = 0; i < c->n_in; i++) {
        kept.in[i] = c->in[i].meta.kind == BURN_TENSOR ? kept.in[i] : c->in[i];
    }
    memset(called, 0, sizeof(called));
    memset(replayed, 0, sizeof(replayed));
    int32_t code = conf_run(runner, c, called, &err);
    if (code == BURN_OK) {
        code = runner->replay(runner, &kept, c, replayed, &err);
    }
    if (code != BURN_OK) {
        conf_failed(report, c, "replay", "", code, err.text);
        return;
    }
    compare_bits(report, c, "replay", called, replayed, "a replay");
}
