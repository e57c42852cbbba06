/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * alias.c - storage that is shared or given away: the same tensor as two operands, and operands
 * that are moved, so that the kernel may write over them.
 *
 * Moving must not change a bit of the results, nor anything that somebody else still reads: each
 * moved operand has a twin handle on the same storage in one of the two runs. State ops are left
 * out: their storage is a variable's.
 */
#include "conformance.h"

/* ---- one tensor, two operands ---------------------------------------------------------------- */

static int same_kind(const conf_value *a, const conf_value *b)
{
    return a->meta.kind == BURN_TENSOR && b->meta.kind == BURN_TENSOR &&
           a->meta.dtype == b->meta.dtype && conf_same_shape(&a->meta, &b->meta);
}

/* The first two operands that may be one tensor; 0 when there are none. */
static int find_pair(const conf_case *c, uint32_t *first, uint32_t *second)
{
    for (uint32_t i = 0; i < c->n_in; i++) {
        for (uint32_t k = i + 1; k < c->n_in; k++) {
            if (same_kind(&c->in[i], &c->in[k])) {
                *first = i;
                *second = k;
                return 1;
            }
        }
    }
    return 0;
}

void conf_check_same_operand(conf_report *report, conf_runner *runner, conf_case *c)
{
    static conf_case shared; /* large */
    conf_value got[CONF_MAX_OUT];
    burn_value *in[CONF_MAX_IN] = {NULL};
    burn_value *results[CONF_MAX_OUT] = {NULL};
    burn_err err = BURN_ERR_INIT;
    char text[300];
    uint32_t first = 0;
    uint32_t second = 0;
    if (c->def->effect == BURN_EFFECT_STATE || !find_pair(c, &first, &second)) {
        return;
    }
    shared = *c;
    shared.in[first] = c->in[second];
    if (conf_evaluate(c->arena, c->def, c->sample.attrs, c->sample.attrs_size, shared.in, c->n_in,
                      shared.out, c->n_out, &err) != BURN_OK) {
        return; /* such values do not fit this operand */
    }
    for (uint32_t i = 0; i < c->n_in; i++) {
        in[i] = i == second ? in[first] : conf_make_in(runner, &shared.in[i], c->layout, i);
    }
    (void)runner->builder.emit(runner->builder.ctx, c->def->id, c->sample.attrs,
                               c->sample.attrs_size, in, c->n_in, results, c->n_out);
    for (uint32_t j = 0; j < c->n_out; j++) {
        int32_t code = runner->read(runner, results[j], c->arena, &got[j], &err);
        if (code != BURN_OK) {
            conf_failed(report, c, "same operand", conf_layout_detail(c), code, err.text);
            return;
        }
        if (!conf_compare_output(&shared, j, &got[j], 1.0, text, sizeof(text))) {
            conf_result(report, c, "same operand", conf_layout_detail(c), CONF_FAIL,
                        "%s is %s: output %u %s", conf_role_in(c->def, first)->name,
                        conf_role_in(c->def, second)->name, (unsigned)j, text);
            return;
        }
    }
    conf_result(report, c, "same operand", conf_layout_detail(c), CONF_PASS, "%s is %s",
                conf_role_in(c->def, first)->name, conf_role_in(c->def, second)->name);
}

/* ---- moved operands -------------------------------------------------------------------------- */

/* Runs with every tensor moved; `twins` also holds each of them, else nobody does. */
static int32_t run_moved(conf_runner *runner, const conf_case *c, int with_twins,
                         burn_value **twins, conf_value *out, burn_err *err)
{
    burn_value *in[CONF_MAX_IN] = {NULL};
    burn_value *results[CONF_MAX_OUT] = {NULL};
    for (uint32_t i = 0; i < c->n_in; i++) {
        in[i] = conf_make_in(runner, &c->in[i], c->layout, i);
        if (c->in[i].meta.kind == BURN_TENSOR) {
            in[i] = runner->move(runner, in[i], with_twins ? &twins[i] : NULL);
        }
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

/* Reads the twins: a kernel that wrote over a shared operand shows here. */
static int twins_are_whole(conf_report *report, conf_runner *runner, const conf_case *c,
                           burn_value *const *twins)
{
    burn_err err = BURN_ERR_INIT;
    conf_value now;
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (twins[i] == NULL) {
            continue;
        }
        int32_t code = runner->read(runner, twins[i], c->arena, &now, &err);
        if (code != BURN_OK || !conf_same_bits(c->arena, &now, &c->in[i])) {
            conf_result(report, c, "moved", conf_layout_detail(c), CONF_FAIL,
                        "%s was moved while another handle held it, and has changed%s%s",
                        conf_role_in(c->def, i)->name, code != BURN_OK ? ": " : "",
                        code != BURN_OK ? err.text : "");
            return 0;
        }
    }
    return 1;
}

void conf_check_moved(conf_report *report, conf_runner *runner, conf_case *c)
{
    burn_value *twins[CONF_MAX_IN] = {NULL};
    conf_value plain[CONF_MAX_OUT];
    conf_value alone[CONF_MAX_OUT];
    conf_value shared[CONF_MAX_OUT];
    burn_err err = BURN_ERR_INIT;
    if (runner->move == NULL || c->def->effect == BURN_EFFECT_STATE) {
        return;
    }
    int32_t code = conf_run(runner, c, plain, &err);
    if (code == BURN_OK) {
        code = run_moved(runner, c, 0, twins, alone, &err);
    }
    if (code == BURN_OK) {
        code = run_moved(runner, c, 1, twins, shared, &err);
    }
    if (code != BURN_OK) {
        conf_failed(report, c, "moved", conf_layout_detail(c), code, err.text);
        return;
    }
    for (uint32_t j = 0; j < c->n_out; j++) {
        if (!conf_same_bits(c->arena, &plain[j], &alone[j]) ||
            !conf_same_bits(c->arena, &plain[j], &shared[j])) {
            conf_result(report, c, "moved", conf_layout_detail(c), CONF_FAIL,
                        "output %u has other bits when the operands are moved", (unsigned)j);
            return;
        }
    }
    if (twins_are_whole(report, runner, c, twins)) {
        conf_result(report, c, "moved", conf_layout_detail(c), CONF_PASS,
                    "the bits of operands that are kept; what others hold is whole");
    }
}
