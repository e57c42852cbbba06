/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * device_runner.c - the runner of an installed device, through the public API only.
 *
 * The builder's emit is burn_op_call, so decompositions run as ordinary ops on the device. Tensors
 * belong to a scope that `reset` ends. Gradients go through the tape; ops that overwrite variables
 * go through burn_var_update, several in one go through a replay. Any other op can be kept as a
 * step and run again.
 */
#include "conformance.h"

#include <burn/grad.h>
#include <burn/registry.h>
#include <burn/replay.h>
#include <burn_sdk/plugin.h>

/* What a burn_value is here; meta is kept for immediates only. */
typedef struct device_value {
    burn_tensor *tensor;
    burn_meta meta;
} device_value;

static burn_device *device_of(const conf_runner *runner)
{
    return (burn_device *)runner->context;
}

static burn_value *wrap(conf_runner *runner, burn_tensor *tensor)
{
    device_value *value = (device_value *)conf_alloc(&runner->arena, sizeof(*value));
    value->tensor = tensor;
    value->meta.kind = BURN_TENSOR;
    return (burn_value *)value;
}

static burn_tensor *tensor_of(const burn_value *value)
{
    return value != NULL ? ((const device_value *)value)->tensor : NULL;
}

static void tensor_meta(const burn_tensor *tensor, burn_meta *out)
{
    memset(out, 0, sizeof(*out));
    out->kind = BURN_TENSOR;
    out->dtype = burn_dtype_of(tensor);
    out->rank = (uint8_t)burn_rank(tensor);
    for (uint32_t i = 0; i < out->rank; i++) {
        out->dims[i] = burn_dim(tensor, (int64_t)i);
    }
}

static int32_t emit(void *ctx, uint64_t op, const void *attrs, uint32_t attrs_size,
                    burn_value *const *in, uint32_t n_in, burn_value **out, uint32_t n_out)
{
    conf_runner *runner = (conf_runner *)ctx;
    burn_tensor *operands[BURN_MAX_OPERANDS] = {NULL};
    burn_tensor *results[BURN_MAX_OPERANDS] = {NULL};
    for (uint32_t i = 0; i < n_in && i < BURN_MAX_OPERANDS; i++) {
        operands[i] = tensor_of(in[i]);
    }
    int32_t code = burn_op_call(device_of(runner), op, attrs, attrs_size, operands, n_in, results,
                                n_out);
    for (uint32_t j = 0; j < n_out && j < BURN_MAX_OPERANDS; j++) {
        out[j] = wrap(runner, results[j]);
    }
    return code;
}

static void meta_of(void *ctx, const burn_value *value, burn_meta *out)
{
    (void)ctx;
    const device_value *v = (const device_value *)value;
    memset(out, 0, sizeof(*out));
    if (v != NULL && v->meta.kind == BURN_IMMEDIATE) {
        *out = v->meta;
    } else if (v != NULL) {
        tensor_meta(v->tensor, out);
    }
}

static burn_value *wrap_immediate(conf_runner *runner, uint8_t dtype, burn_tensor *scalar)
{
    device_value *value = (device_value *)wrap(runner, scalar);
    value->meta.kind = BURN_IMMEDIATE;
    value->meta.dtype = dtype;
    return (burn_value *)value;
}

static burn_value *immediate(void *ctx, uint8_t dtype, double number)
{
    return wrap_immediate((conf_runner *)ctx, dtype, burn_scalar(number));
}

static burn_value *immediate_int(void *ctx, uint8_t dtype, int64_t number)
{
    int is_large = dtype == BURN_U64;
    burn_tensor *scalar = is_large ? burn_scalar_u64((uint64_t)number) : burn_scalar_int(number);
    return wrap_immediate((conf_runner *)ctx, dtype, scalar);
}

static burn_value *constant(void *ctx, uint8_t dtype, uint32_t rank, const int64_t *dims,
                            const void *bytes)
{
    conf_runner *runner = (conf_runner *)ctx;
    return wrap(runner, burn_tensor_from_data(device_of(runner), dtype, rank, dims, bytes));
}

/* There is no public way to make a failed tensor with a chosen code: an impossible call does. What
 * was said is kept, and told instead when such a tensor is read. */
static burn_value *fail(void *ctx, int32_t code, const char *text)
{
    conf_runner *runner = (conf_runner *)ctx;
    static const int64_t impossible[1] = {-1};
    if (runner->said.code == BURN_OK) {
        (void)burn_plugin_fail(&runner->said, code, "%s", text != NULL ? text : "");
    }
    return constant(ctx, BURN_F32, 1, impossible, NULL);
}

static burn_value *make(conf_runner *runner, const conf_value *value)
{
    const burn_meta *meta = &value->meta;
    if (meta->kind == BURN_TENSOR) {
        unsigned char *bytes = conf_bytes(&runner->arena, value);
        return constant(runner, meta->dtype, meta->rank, meta->dims, bytes);
    }
    if (value->f != NULL) {
        return immediate(runner, meta->dtype, value->f[0]);
    }
    int64_t number = value->u != NULL ? (int64_t)value->u[0] : value->i[0];
    return immediate_int(runner, meta->dtype, number);
}

/* Kernels count, compare and mask with these bytes: true is stored as 1, nothing else. */
static int32_t check_bools(const conf_value *value, const unsigned char *bytes, burn_err *err)
{
    for (uint64_t k = 0; value->meta.dtype == BURN_BOOL && k < value->n; k++) {
        if (bytes[k] > 1) {
            return burn_plugin_fail(err, BURN_E_INTERNAL,
                                    "element %llu of a bool result is stored as %u; store 0 or 1",
                                    (unsigned long long)k, (unsigned)bytes[k]);
        }
    }
    return BURN_OK;
}

static int32_t read_tensor(conf_runner *runner, const burn_tensor *tensor, conf_arena *arena,
                           conf_value *out, burn_err *err)
{
    memset(out, 0, sizeof(*out));
    if (tensor == NULL) {
        return burn_plugin_fail(err, BURN_E_INTERNAL, "the call gave no tensor");
    }
    int32_t code = burn_tensor_error(tensor, err);
    if (code != BURN_OK && runner->said.code != BURN_OK) {
        *err = runner->said;
        return runner->said.code;
    }
    if (code != BURN_OK) {
        return code;
    }
    tensor_meta(tensor, &out->meta);
    conf_value_alloc(arena, out);
    uint64_t size = out->n * burn_element_size(out->meta.dtype);
    unsigned char *bytes = (unsigned char *)conf_alloc(arena, size);
    code = burn_read(tensor, bytes, (size_t)size, err);
    if (code == BURN_OK) {
        code = check_bools(out, bytes, err);
        conf_from_bytes(out, bytes);
    }
    return code;
}

static int32_t read_value(conf_runner *runner, burn_value *value, conf_arena *arena,
                          conf_value *out, burn_err *err)
{
    return read_tensor(runner, tensor_of(value), arena, out, err);
}

/* sum(y * c) as a tensor of rank 0. */
static burn_tensor *weighted_sum(conf_runner *runner, burn_tensor *y, burn_tensor *c)
{
    burn_attrs_axes axes;
    burn_tensor *in[2] = {y, c};
    burn_tensor *product = NULL;
    burn_tensor *sum = NULL;
    memset(&axes, 0, sizeof(axes));
    axes.head.size = (uint32_t)sizeof(axes);
    axes.head.revision = 1;
    (void)burn_op_call(device_of(runner), BURN_OP_MUL, NULL, 0, in, 2, &product, 1);
    (void)burn_op_call(device_of(runner), BURN_OP_SUM, &axes, (uint32_t)sizeof(axes), &product, 1,
                       &sum, 1);
    return sum;
}

/* An output takes part when it has a cotangent and depends on an input at all. */
static int takes_part(const conf_value *cotangents, burn_tensor *const *out, uint32_t j)
{
    return cotangents[j].meta.kind == BURN_TENSOR && burn_is_tracked(out[j]);
}

/* In the case's layout, as if it were one more operand. */
static burn_tensor *seed_of(conf_runner *runner, const conf_case *c, const conf_value *cotangents,
                            uint32_t j)
{
    return tensor_of(conf_make_in(runner, &cotangents[j], c->layout, c->n_in + j));
}

/*
 * Walks back from the outputs: one output with its cotangent as the seed, several as one sum. NULL
 * without an error: no output depends on an input.
 */
static burn_grads *walk_back(conf_runner *runner, const conf_case *c, burn_tensor *const *out,
                             const conf_value *cotangents, uint32_t flags, burn_err *err)
{
    burn_tensor *total = NULL;
    uint32_t n = 0;
    uint32_t last = 0;
    for (uint32_t j = 0; j < c->n_out; j++) {
        if (takes_part(cotangents, out, j)) {
            n++;
            last = j;
        }
    }
    if (n == 0) {
        return NULL;
    }
    if (n == 1) {
        return burn_backward(out[last], seed_of(runner, c, cotangents, last), flags, err);
    }
    for (uint32_t j = 0; j < c->n_out; j++) {
        if (takes_part(cotangents, out, j)) {
            burn_tensor *seed = seed_of(runner, c, cotangents, j);
            burn_tensor *both[2] = {total, weighted_sum(runner, out[j], seed)};
            if (total == NULL) {
                total = both[1];
            } else {
                (void)burn_op_call(device_of(runner), BURN_OP_ADD, NULL, 0, both, 2, &total, 1);
            }
        }
    }
    return burn_backward(total, NULL, flags, err);
}

/* The op on tracked leaves: its outputs, and the first code that is not OK. */
static int32_t call_on_leaves(conf_runner *runner, const conf_case *c, const uint8_t *wanted,
                              burn_tensor **in, burn_tensor **out, burn_err *err)
{
    burn_device *autodiff = burn_device_autodiff(device_of(runner));
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (c->in[i].meta.kind != BURN_ABSENT) {
            in[i] = tensor_of(conf_make_in(runner, &c->in[i], c->layout, i));
        }
        if (wanted[i] != 0) {
            in[i] = burn_require_grad(autodiff, in[i]);
        }
    }
    int32_t code = burn_op_call(autodiff, c->def->id, c->sample.attrs, c->sample.attrs_size, in,
                                c->n_in, out, c->n_out);
    if (code != BURN_OK) {
        (void)burn_tensor_error(out[0], err);
    }
    return code;
}

static int32_t read_gradients(conf_runner *runner, const conf_case *c, burn_grads *found,
                              const uint8_t *wanted, burn_tensor *const *in, conf_value *grads,
                              burn_err *err)
{
    int32_t code = BURN_OK;
    for (uint32_t i = 0; i < c->n_in && code == BURN_OK; i++) {
        burn_tensor *grad = wanted[i] != 0 ? burn_grads_get(found, in[i]) : NULL;
        if (grad != NULL) {
            code = read_tensor(runner, grad, c->arena, &grads[i], err);
        }
    }
    return code;
}

static int32_t gradient(conf_runner *runner, const conf_case *c, const conf_value *cotangents,
                        const uint8_t *wanted, conf_value *grads, burn_err *err)
{
    burn_tensor *in[CONF_MAX_IN] = {NULL};
    burn_tensor *out[CONF_MAX_OUT] = {NULL};
    int32_t code = call_on_leaves(runner, c, wanted, in, out, err);
    if (code != BURN_OK) {
        return code;
    }
    burn_grads *found = walk_back(runner, c, out, cotangents, 0, err);
    if (found == NULL) {
        return err->code;
    }
    code = read_gradients(runner, c, found, wanted, in, grads, err);
    burn_grads_free(found);
    return code;
}

/* sum over the inputs of gradient * direction, of those gradients that are tracked themselves. */
static burn_tensor *directed_sum(conf_runner *runner, const conf_case *c, burn_grads *first,
                                 const uint8_t *wanted, burn_tensor *const *in,
                                 const conf_value *directions)
{
    burn_tensor *total = NULL;
    for (uint32_t i = 0; i < c->n_in; i++) {
        burn_tensor *grad = wanted[i] != 0 ? burn_grads_get(first, in[i]) : NULL;
        if (grad == NULL || !burn_is_tracked(grad)) {
            continue;
        }
        burn_tensor *term = weighted_sum(runner, grad, tensor_of(make(runner, &directions[i])));
        burn_tensor *both[2] = {total, term};
        if (total == NULL) {
            total = term;
        } else {
            (void)burn_op_call(device_of(runner), BURN_OP_ADD, NULL, 0, both, 2, &total, 1);
        }
    }
    return total;
}

static int32_t second(conf_runner *runner, const conf_case *c, const conf_value *cotangents,
                      const uint8_t *wanted, const conf_value *directions, conf_value *grads,
                      burn_err *err)
{
    burn_tensor *in[CONF_MAX_IN] = {NULL};
    burn_tensor *out[CONF_MAX_OUT] = {NULL};
    int32_t code = call_on_leaves(runner, c, wanted, in, out, err);
    if (code != BURN_OK) {
        return code;
    }
    burn_grads *first = walk_back(runner, c, out, cotangents, BURN_GRAD_CREATE, err);
    if (first == NULL) {
        return err->code;
    }
    burn_tensor *total = directed_sum(runner, c, first, wanted, in, directions);
    burn_grads *found = total != NULL ? burn_backward(total, NULL, 0, err) : NULL;
    if (found != NULL) {
        code = read_gradients(runner, c, found, wanted, in, grads, err);
    } else if (total != NULL) {
        code = err->code;
    }
    burn_grads_free(found);
    burn_grads_free(first);
    return code; /* no tracked gradient: the second derivatives are 0, as the caller assumes */
}

static burn_value *move(conf_runner *runner, burn_value *value, burn_value **twin)
{
    burn_tensor *tensor = tensor_of(value);
    if (twin != NULL) {
        *twin = wrap(runner, burn_detach(tensor));
    }
    return wrap(runner, burn_move(tensor));
}

static int32_t make_variables(conf_runner *runner, const conf_case *c, burn_var **vars,
                              burn_tensor **in, burn_err *err)
{
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (c->in[i].meta.kind == BURN_ABSENT) {
            continue;
        }
        burn_tensor *tensor = tensor_of(conf_make_in(runner, &c->in[i], c->layout, i));
        if ((conf_role_in(c->def, i)->flags & BURN_ROLE_STATE) == 0) {
            in[i] = tensor;
            continue;
        }
        vars[i] = burn_var_create(device_of(runner), tensor, err);
        if (vars[i] == NULL) {
            return err->code;
        }
    }
    return BURN_OK;
}

/* The new values of the variables. */
static int32_t read_variables(conf_runner *runner, const conf_case *c, burn_var *const *vars,
                              conf_value *out, burn_err *err)
{
    int32_t code = BURN_OK;
    for (uint32_t k = 0; k < c->def->n_aliases && code == BURN_OK; k++) {
        const char *base = (const char *)c->def->aliases;
        const burn_alias *alias =
            (const burn_alias *)(const void *)(base + (size_t)k * c->def->alias_stride);
        if (alias->in < c->n_in && vars[alias->in] != NULL && alias->out < c->n_out) {
            code = read_tensor(runner, burn_var_get(vars[alias->in]), c->arena, &out[alias->out],
                               err);
        }
    }
    return code;
}

static int32_t call_update(const conf_case *c, burn_var *const *vars, burn_tensor *const *in,
                           burn_err *err)
{
    return burn_var_update(c->def->id, c->sample.attrs, c->sample.attrs_size, vars, in, c->n_in,
                           err);
}

static void release_variables(burn_var *const *vars, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (vars[i] != NULL) {
            burn_var_release(vars[i]);
        }
    }
}

static int32_t update(conf_runner *runner, const conf_case *c, uint32_t times, conf_value *out,
                      burn_err *err)
{
    burn_var *vars[CONF_MAX_IN] = {NULL};
    burn_tensor *in[CONF_MAX_IN] = {NULL};
    int32_t code = make_variables(runner, c, vars, in, err);
    for (uint32_t k = 0; k < times && code == BURN_OK; k++) {
        code = call_update(c, vars, in, err);
    }
    code = code == BURN_OK ? read_variables(runner, c, vars, out, err) : code;
    release_variables(vars, c->n_in);
    return code;
}

/* ---- updates in one go ----------------------------------------------------------------------- */

/* The operands of all calls, and an operand that can be made to fail. */
typedef struct together {
    burn_var *vars[CONF_TOGETHER][CONF_MAX_IN];
    burn_tensor *in[CONF_TOGETHER][CONF_MAX_IN];
    burn_tensor *ones;
    burn_tensor *zeros; /* in the place of a port that was `ones`: 1 / 0 has no answer */
} together;

/* The first operand that is no variable and no number; n_in: there is none. */
static uint32_t plain_operand(const conf_case *c)
{
    uint32_t i = 0;
    while (i < c->n_in && (c->in[i].meta.kind != BURN_TENSOR ||
                           (conf_role_in(c->def, i)->flags & BURN_ROLE_STATE) != 0)) {
        i++;
    }
    return i;
}

static burn_tensor *integers(conf_runner *runner, const burn_meta *like, int64_t value)
{
    conf_value v;
    memset(&v, 0, sizeof(v));
    v.meta = *like;
    v.meta.dtype = BURN_I64;
    conf_value_alloc(&runner->arena, &v);
    for (uint64_t k = 0; k < v.n; k++) {
        v.i[k] = value;
    }
    return tensor_of(make(runner, &v));
}

/* The updates once, as a replay that is kept. */
static burn_replay *keep_updates(conf_runner *runner, const conf_case *cases, uint32_t bad,
                                 together *t, burn_err *err)
{
    burn_device *device = device_of(runner);
    int32_t code = burn_replay_begin(device, err);
    if (code != BURN_OK) {
        return NULL;
    }
    if (bad < CONF_TOGETHER) {
        uint32_t i = plain_operand(&cases[bad]);
        burn_tensor *both[2] = {t->ones, burn_replay_port(t->ones)};
        burn_attrs_cast cast;
        memset(&cast, 0, sizeof(cast));
        cast.head.size = (uint32_t)sizeof(cast);
        cast.head.revision = 1;
        cast.dtype = cases[bad].in[i].meta.dtype;
        burn_tensor *quotient = NULL;
        (void)burn_op_call(device, BURN_OP_DIV, NULL, 0, both, 2, &quotient, 1);
        (void)burn_op_call(device, BURN_OP_CAST, &cast, (uint32_t)sizeof(cast), &quotient, 1,
                           &t->in[bad][i], 1);
    }
    for (uint32_t k = 0; k < CONF_TOGETHER && code == BURN_OK; k++) {
        code = call_update(&cases[k], t->vars[k], t->in[k], err);
    }
    return burn_replay_end(NULL, 0, err);
}

/* The variables as they were, each by itself, then all updates at once. */
static int32_t run_updates(conf_runner *runner, const conf_case *cases, uint32_t bad, together *t,
                           burn_replay *replay, burn_err *err)
{
    int32_t code = BURN_OK;
    for (uint32_t k = 0; k < CONF_TOGETHER; k++) {
        for (uint32_t i = 0; i < cases[k].n_in && code == BURN_OK; i++) {
            if (t->vars[k][i] != NULL) {
                code = burn_var_assign(t->vars[k][i], tensor_of(make(runner, &cases[k].in[i])),
                                       err);
                code = code == BURN_OK ? burn_sync(device_of(runner), err) : code;
            }
        }
    }
    return code == BURN_OK ? burn_replay_run(replay, &t->zeros, bad < CONF_TOGETHER, NULL, 0, err)
                           : code;
}

static int32_t update_together(conf_runner *runner, const conf_case *cases, uint32_t bad,
                               conf_value (*out)[CONF_MAX_OUT], int32_t *codes,
                               uint32_t *out_launches, burn_err *err)
{
    static together t; /* large */
    uint32_t kept = 0;
    int32_t code = BURN_OK;
    memset(&t, 0, sizeof(t));
    (void)burn_sync(device_of(runner), NULL); /* what failed before is none of these */
    for (uint32_t k = 0; k < CONF_TOGETHER && code == BURN_OK; k++) {
        code = make_variables(runner, &cases[k], t.vars[k], t.in[k], err);
    }
    uint32_t plain = bad < CONF_TOGETHER ? plain_operand(&cases[bad]) : 0;
    if (bad < CONF_TOGETHER && plain < cases[bad].n_in) {
        t.ones = integers(runner, &cases[bad].in[plain].meta, 1);
        t.zeros = integers(runner, &cases[bad].in[plain].meta, 0);
    }
    int can_fail = bad == CONF_TOGETHER || t.ones != NULL;
    burn_replay *replay = code == BURN_OK && can_fail ? keep_updates(runner, cases, bad, &t, err)
                                                      : NULL;
    code = replay != NULL ? run_updates(runner, cases, bad, &t, replay, err) : code;
    burn_replay_size(replay, &kept, out_launches);
    for (uint32_t k = 0; k < CONF_TOGETHER && code == BURN_OK && replay != NULL; k++) {
        burn_err own = BURN_ERR_INIT;
        codes[k] = read_variables(runner, &cases[k], t.vars[k], out[k], &own);
    }
    (void)burn_sync(device_of(runner), NULL); /* what was made to fail is known */
    burn_replay_free(replay);
    for (uint32_t k = 0; k < CONF_TOGETHER; k++) {
        release_variables(t.vars[k], cases[k].n_in);
    }
    int is_together = replay != NULL && *out_launches < kept;
    return code == BURN_OK && !is_together ? BURN_E_END : code;
}

/* ---- kept and run again ---------------------------------------------------------------------- */

/* The call with its tensors as ports. NULL: it can't be kept, `err` says why. */
static burn_replay *keep_call(conf_runner *runner, const conf_case *c, burn_err *err)
{
    burn_tensor *in[CONF_MAX_IN] = {NULL};
    burn_tensor *results[CONF_MAX_OUT] = {NULL};
    for (uint32_t i = 0; i < c->n_in; i++) {
        in[i] = tensor_of(conf_make_in(runner, &c->in[i], c->layout, i));
    }
    (void)burn_sync(device_of(runner), NULL);
    if (burn_replay_begin(device_of(runner), err) != BURN_OK) {
        return NULL;
    }
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (c->in[i].meta.kind == BURN_TENSOR) {
            (void)burn_replay_port(in[i]);
        }
    }
    (void)burn_op_call(device_of(runner), c->def->id, c->sample.attrs, c->sample.attrs_size, in,
                       c->n_in, results, c->n_out);
    return burn_replay_end(results, c->n_out, err);
}

static int32_t replay(conf_runner *runner, const conf_case *kept, const conf_case *c,
                      conf_value *out, burn_err *err)
{
    enum { RUNS = 3 }; /* the first plans, the second prepares the short way, the third takes it */
    burn_tensor *ports[CONF_MAX_IN] = {NULL};
    burn_tensor *results[CONF_MAX_OUT] = {NULL};
    uint32_t n = 0;
    burn_replay *step = keep_call(runner, kept, err);
    if (step == NULL) {
        return err->code;
    }
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (c->in[i].meta.kind == BURN_TENSOR) {
            ports[n++] = tensor_of(make(runner, &c->in[i]));
        }
    }
    int32_t code = BURN_OK;
    for (int k = 0; k < RUNS && code == BURN_OK; k++) {
        code = burn_replay_run(step, ports, n, results, c->n_out, err);
    }
    for (uint32_t j = 0; j < c->n_out && code == BURN_OK; j++) {
        code = read_tensor(runner, results[j], c->arena, &out[j], err);
    }
    burn_replay_free(step);
    return code;
}

static uint32_t supports(conf_runner *runner, const burn_op_def *def, uint8_t dtype)
{
    return (uint32_t)burn_op_support(device_of(runner), def->id, dtype);
}

static void reset(conf_runner *runner)
{
    burn_scope_end();
    burn_scope_begin();
    conf_arena_free(&runner->arena);
    runner->said = (burn_err)BURN_ERR_INIT;
}

int32_t conf_device_runner(const char *device, conf_runner *out, burn_err *err)
{
    memset(out, 0, sizeof(*out));
    burn_device *opened = burn_device_open(device, err);
    if (opened == NULL) {
        return err->code != BURN_OK ? err->code : BURN_E_INTERNAL;
    }
    opened = burn_device_inner(opened);
    out->name = burn_device_name(opened);
    out->context = opened;
    out->said = (burn_err)BURN_ERR_INIT;
    out->builder.struct_size = (uint32_t)sizeof(burn_builder);
    out->builder.ctx = out;
    out->builder.emit = emit;
    out->builder.meta = meta_of;
    out->builder.immediate = immediate;
    out->builder.immediate_int = immediate_int;
    out->builder.constant = constant;
    out->builder.fail = fail;
    out->make = make;
    out->read = read_value;
    out->gradient = gradient;
    out->second = second;
    out->move = move;
    out->update = update;
    out->update_together = update_together;
    out->replay = replay;
    out->supports = supports;
    out->reset = reset;
    burn_scope_begin();
    return BURN_OK;
}
