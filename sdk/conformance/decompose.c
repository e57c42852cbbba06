/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * decompose.c - an op's decomposition, run op by op on the runner, against eval.
 *
 * The decomposition is called with the runner's own builder, so it is tried even where the device
 * has a kernel for the op. It rounds at each op's border, hence the wider tolerance.
 */
#include "conformance.h"

#define DECOMPOSE_FACTOR 4.0

static int32_t expand(conf_runner *runner, const conf_case *c, burn_value **out)
{
    burn_value *in[CONF_MAX_IN] = {NULL};
    burn_meta metas[CONF_MAX_IN];
    for (uint32_t i = 0; i < c->n_in; i++) {
        in[i] = conf_make_in(runner, &c->in[i], c->layout, i);
        metas[i] = c->in[i].meta;
    }
    burn_expand a;
    BURN_INIT(&a, burn_expand);
    a.n_in = c->n_in;
    a.n_out = c->n_out;
    a.attrs_size = c->sample.attrs_size;
    a.in = in;
    a.in_meta = metas;
    a.out = out;
    a.attrs = c->sample.attrs;
    return c->def->decompose(&runner->builder, &a);
}

void conf_check_decompose(conf_report *report, conf_runner *runner, conf_case *c)
{
    burn_value *out[CONF_MAX_OUT] = {NULL};
    burn_err err = BURN_ERR_INIT;
    conf_value got;
    char text[300];
    if (c->def->decompose == NULL) {
        return;
    }
    int32_t code = expand(runner, c, out);
    if (code != BURN_OK) {
        conf_result(report, c, "decompose", conf_layout_detail(c), CONF_FAIL,
                    "decompose returned %d (%s): %s", (int)code, burn_status_name(code),
                    runner->said.text[0] != '\0' ? runner->said.text
                                                 : "it told no reason (b->fail)");
        return;
    }
    for (uint32_t j = 0; j < c->n_out; j++) {
        if (c->def->effect == BURN_EFFECT_STATE && out[j] == NULL) {
            continue;
        }
        code = runner->read(runner, out[j], c->arena, &got, &err);
        if (code != BURN_OK) {
            conf_failed(report, c, "decompose", conf_layout_detail(c), code, err.text);
            return;
        }
        if (!conf_compare_output(c, j, &got, DECOMPOSE_FACTOR, text, sizeof(text))) {
            conf_result(report, c, "decompose", conf_layout_detail(c), CONF_FAIL, "output %u %s",
                        (unsigned)j, text);
            return;
        }
    }
    conf_result(report, c, "decompose", conf_layout_detail(c), CONF_PASS, "%u outputs with eval",
                (unsigned)c->n_out);
}
