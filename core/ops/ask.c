/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ask.c - see ask.h. A function of a plugin works on copies: of the outputs' metas, of a view's
 * strides, of the lists of gradients and results, of the elements that eval fills. They are short,
 * but for those of eval, which runs where somebody compares (BURN_CHECK) and not on the way of a
 * call.
 */
#include "ops/ask.h"

#include "base/alloc.h"
#include "base/error.h"
#include "loader/lent.h"
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

/* A plugin's function that is being asked: who it is, and its sink. */
typedef struct question {
    const burni_op *op;
    burni_sink sink;
    char entry[96]; /* "infer of acme.square" */
    const char *rule; /* "its shape rule" */
} question;

static void begin(question *q, const burni_op *op, const char *entry, const char *rule)
{
    q->op = op;
    q->rule = rule;
    (void)snprintf(q->entry, sizeof(q->entry), "%s of %s", entry, op->def.name);
    burni_sink_begin(&q->sink);
}

static int32_t check_guard(const question *q, const void *guard, const char *type, burn_err *err)
{
    return burni_lent_check(guard, q->op->plugin, q->entry, type, err);
}

/* Its code, and its text in `err`. The sink is looked at after a failure only. */
static int32_t end(question *q, int32_t rc, burn_err *err)
{
    if (rc == BURN_OK) {
        return BURN_OK;
    }
    int32_t code = burni_lent_check(q->sink.guard, q->op->plugin, q->entry, "burn_err", err);
    if (code == BURN_OK && q->sink.err.text[0] == '\0') {
        code = burni_plugin_code(rc);
        return burni_fail(err, code, "%s: op %s: %s failed without a text: %s", q->op->plugin,
                          q->op->def.name, q->rule, burn_status_text(code));
    }
    return code == BURN_OK ? burni_sink_end(&q->sink, q->op->plugin, q->entry, rc, err) : code;
}

int32_t burni_ask_infer(const burni_op *op, const burn_infer *a)
{
    if (op->plugin == NULL) {
        return op->def.infer(a);
    }
    burn_meta out[BURN_MAX_OPERANDS + BURNI_GUARD_ITEMS(burn_meta)];
    question q;
    begin(&q, op, "infer", "its shape rule");
    memcpy(out, a->out, a->n_out * sizeof(out[0]));
    burni_lend(&out[a->n_out]);
    burn_infer lent = *a;
    lent.out = out;
    lent.err = &q.sink.err;
    int32_t rc = op->def.infer(&lent);
    int32_t whole = check_guard(&q, &out[a->n_out], "its outputs' metas", a->err);
    rc = whole == BURN_OK ? end(&q, rc, a->err) : whole;
    if (rc == BURN_OK) {
        memcpy(a->out, out, a->n_out * sizeof(out[0]));
    }
    return rc;
}

int32_t burni_ask_view(const burni_op *op, const burn_view *a)
{
    if (op->plugin == NULL) {
        return op->def.view(a);
    }
    int64_t strides[BURN_MAX_RANK + BURNI_GUARD_ITEMS(int64_t)] = {0};
    BURNI_LENT(int64_t) offset = {*a->out_offset, {0}};
    question q;
    begin(&q, op, "view", "its view rule");
    burni_lend(&strides[a->out->rank]);
    burni_lend(offset.guard);
    burn_view lent = *a;
    lent.out_strides = strides;
    lent.out_offset = &offset.it;
    lent.err = &q.sink.err;
    int32_t rc = op->def.view(&lent);
    int32_t whole = check_guard(&q, &strides[a->out->rank], "out_strides", a->err);
    whole = whole == BURN_OK ? check_guard(&q, offset.guard, "out_offset", a->err) : whole;
    if (whole == BURN_OK && rc == BURN_E_UNSUPPORTED &&
        !burni_is_dense(a->in->rank, a->in->dims, a->in_strides)) {
        return rc; /* no failure: the caller makes the operand dense and asks again */
    }
    rc = whole == BURN_OK ? end(&q, rc, a->err) : whole;
    if (rc == BURN_OK) {
        memcpy(a->out_strides, strides, a->out->rank * sizeof(strides[0]));
        *a->out_offset = offset.it;
    }
    return rc;
}

/* A gradient's or a decomposition's failure; both have no sink. */
static int32_t failed(const burni_op *op, const char *rule, int32_t rc, burn_err *err)
{
    if (rc == BURN_OK) {
        return BURN_OK;
    }
    rc = burni_plugin_code(rc);
    return burni_fail(err, rc, "%s: %s failed: %s", op->def.name, rule, burn_status_text(rc));
}

/* A list of values that is lent: NULL at first, taken over when its guard is whole. After a failure
 * too: a failed value knows more of it than the code does. */
typedef burn_value *values[BURN_MAX_OPERANDS + BURNI_GUARD_ITEMS(burn_value *)];

static int32_t take_values(const question *q, int32_t rc, burn_value **lent, uint32_t n,
                           burn_value **out, burn_err *err)
{
    int32_t whole = check_guard(q, &lent[n], "its list of values", err);
    if (whole != BURN_OK) {
        return whole;
    }
    memcpy(out, lent, n * sizeof(lent[0]));
    return failed(q->op, q->rule, rc, err);
}

int32_t burni_ask_vjp(const burni_op *op, const burn_builder *b, const burn_vjp *a, burn_err *err)
{
    if (op->plugin == NULL) {
        return failed(op, "its gradient", op->def.vjp(b, a), err);
    }
    values grad_in = {NULL};
    question q;
    begin(&q, op, "vjp", "its gradient");
    burni_lend(&grad_in[a->n_in]);
    burn_vjp lent = *a;
    lent.grad_in = grad_in;
    int32_t rc = op->def.vjp(b, &lent);
    return take_values(&q, rc, grad_in, a->n_in, a->grad_in, err);
}

int32_t burni_ask_decompose(const burni_op *op, const burn_builder *b, const burn_expand *a,
                            burn_err *err)
{
    if (op->plugin == NULL) {
        return failed(op, "its decomposition", op->def.decompose(b, a), err);
    }
    values out = {NULL};
    question q;
    begin(&q, op, "decompose", "its decomposition");
    burni_lend(&out[a->n_out]);
    burn_expand lent = *a;
    lent.out = out;
    int32_t rc = op->def.decompose(b, &lent);
    return take_values(&q, rc, out, a->n_out, a->out, err);
}

/* ---- eval ------------------------------------------------------------------------------------ */

/* Elements of eval's operands have 8 bytes. Which of the three lists it is, is the dtype's. */
static void *elements(const burn_eval_operand *x)
{
    return x->f != NULL ? (void *)x->f : x->i != NULL ? (void *)x->i : (void *)x->u;
}

/* Elements with a guard behind them. 0: no memory. */
static int lend_elements(burn_eval_operand *x)
{
    const void *from = elements(x);
    if (from == NULL) {
        return 1;
    }
    unsigned char *bytes = burni_alloc(x->n * 8 + BURNI_GUARD_BYTES);
    if (bytes != NULL) {
        memcpy(bytes, from, x->n * 8);
        burni_lend(bytes + x->n * 8);
    }
    x->f = x->f != NULL ? (double *)(void *)bytes : NULL;
    x->i = x->i != NULL ? (int64_t *)(void *)bytes : NULL;
    x->u = x->u != NULL ? (uint64_t *)(void *)bytes : NULL;
    return bytes != NULL;
}

/* By the addresses that were lent: the function may have changed those that it saw. */
static int32_t take_elements(const question *q, const burn_eval_operand *lent, uint64_t n,
                             burn_err *err)
{
    const unsigned char *bytes = elements(lent);
    return bytes != NULL ? check_guard(q, bytes + n * 8, "the elements of an output", err)
                         : BURN_OK;
}

int32_t burni_ask_eval(const burni_op *op, const burn_eval *a)
{
    if (op->plugin == NULL) {
        return op->def.eval(a);
    }
    burn_eval_operand mine[BURN_MAX_OPERANDS];
    burn_eval_operand out[BURN_MAX_OPERANDS + BURNI_GUARD_ITEMS(burn_eval_operand)];
    question q;
    begin(&q, op, "eval", "its eval");
    int32_t rc = BURN_OK;
    for (uint32_t j = 0; j < a->n_out; j++) {
        mine[j] = a->out[j];
        if (!lend_elements(&mine[j])) {
            rc = BURN_E_NO_MEMORY;
        }
        out[j] = mine[j];
    }
    burni_lend(&out[a->n_out]);
    burn_eval lent = *a;
    lent.out = out;
    lent.err = &q.sink.err;
    rc = rc == BURN_OK ? op->def.eval(&lent) : burni_fail(&q.sink.err, rc, "out of host memory");
    int32_t whole = check_guard(&q, &out[a->n_out], "its outputs", a->err);
    for (uint32_t j = 0; j < a->n_out && whole == BURN_OK; j++) {
        whole = take_elements(&q, &mine[j], a->out[j].n, a->err);
    }
    rc = whole == BURN_OK ? end(&q, rc, a->err) : whole;
    for (uint32_t j = 0; j < a->n_out; j++) {
        if (rc == BURN_OK && elements(&mine[j]) != NULL) {
            memcpy(elements(&a->out[j]), elements(&mine[j]), a->out[j].n * 8);
        }
        burni_free(elements(&mine[j]));
    }
    return rc;
}

/* ---- samples --------------------------------------------------------------------------------- */

int32_t burni_ask_sample(const char *plugin, const burn_op_def *def, uint32_t i, burn_sample *out,
                         burn_err *err)
{
    memset(out, 0, sizeof(*out));
    out->struct_size = (uint32_t)sizeof(*out);
    if (plugin == NULL) {
        return def->samples(i, out);
    }
    BURNI_LENT(burn_sample) lent;
    char entry[96];
    (void)snprintf(entry, sizeof(entry), "samples of %s", def->name);
    lent.it = *out;
    burni_lend(lent.guard);
    int32_t rc = def->samples(i, &lent.it);
    int32_t whole = burni_lent_check(lent.guard, plugin, entry, "burn_sample", err);
    *out = lent.it;
    return whole != BURN_OK || rc == BURN_OK ? whole : BURN_E_END;
}
