/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stub_guard.c - an extension whose functions write past what they are given, chosen by the name of
 * its own file: <function>_past. Any other name is a healthy extension.
 *
 * As stub.c, but each defect is one line in the function that it is about. What is written past is
 * short enough to stay within what the host guards, so a host without guards is not ended by it; it
 * just does not notice. To add a function: its defect here, a row in test_guards.c.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "../loader/own_id.h"

#include <burn_sdk/op.h>

static char own_id[64];
static char name[80];
static burn_op_def def;
static burn_role roles[3];
static uint32_t saves[2];
static burn_plugin plugin;
static const burn_host *host;

static int is(const char *defect)
{
    return strcmp(own_id, defect) == 0;
}

/* `n` bytes behind what ends at `end`. */
static void overrun(void *end, size_t n)
{
    memset(end, 0x42, n);
}

static int32_t infer(const burn_infer *a)
{
    burn_meta_copy_shape(&a->out[0], a->in[0]);
    if (is("infer_past")) {
        overrun(&a->out[a->n_out], 24);
    }
    if (is("infer_err_past")) {
        overrun(a->err + 1, 8);
        return BURN_E_SHAPE;
    }
    return BURN_OK;
}

static int32_t view(const burn_view *a)
{
    for (uint32_t d = 0; d < a->out->rank; d++) {
        a->out_strides[d] = a->in_strides[d];
    }
    if (is("view_past")) {
        overrun(&a->out_strides[a->out->rank], 16);
    }
    if (is("view_offset_past")) {
        overrun(a->out_offset + 1, 40);
    }
    if (is("view_err_past")) {
        overrun(a->err + 1, 12);
        return BURN_E_INVALID;
    }
    return BURN_OK;
}

static int32_t vjp(const burn_builder *b, const burn_vjp *a)
{
    (void)b;
    for (uint32_t i = 0; i < a->n_in; i++) {
        a->grad_in[i] = a->wanted[i] ? a->grad_out[0] : NULL;
    }
    if (is("vjp_past")) {
        overrun(&a->grad_in[a->n_in], 8);
    }
    return BURN_OK;
}

static int32_t decompose(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_add(b, a->in[0], a->in[1]);
    if (is("decompose_past")) {
        overrun(&a->out[a->n_out], 32);
    }
    return BURN_OK;
}

static int32_t eval(const burn_eval *a)
{
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        a->out[0].f[k] = a->in[0].f[k] + a->in[1].f[k];
    }
    if (is("eval_past")) {
        overrun(&a->out[0].f[a->out[0].n], 24);
    }
    if (is("eval_outputs_past")) {
        overrun(&a->out[a->n_out], 56);
    }
    if (is("eval_err_past")) {
        overrun(a->err + 1, 16);
        return BURN_E_DATA;
    }
    return BURN_OK;
}

static int32_t samples(uint32_t i, burn_sample *out)
{
    const int64_t dims[1] = {3};
    if (i > 1) {
        return BURN_E_END;
    }
    uint8_t fill = i == 0 ? BURN_FILL_NORMAL : BURN_FILL_SPECIAL;
    burn_sample_begin(out, i == 0 ? "vector" : "special values", 2.0, 64.0);
    burn_sample_tensor(out, 0, 0, fill, 1, dims);
    burn_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, 1, dims);
    if (is("samples_past")) {
        overrun(out + 1, 48);
    }
    out->flags |= i == 0 ? 0 : BURN_SAMPLE_NO_GRAD;
    return BURN_OK;
}

static void build_op(void)
{
    static const char *const role_names[] = {"x", "y", "z"};
    for (uint32_t i = 0; i < 3; i++) {
        roles[i].name = role_names[i];
        roles[i].dtypes[0] = BURN_SET_FLOAT;
        roles[i].same_dtype_as = i > 0;
    }
    (void)snprintf(name, sizeof(name), "%s.op", own_id);
    BURN_INIT(&def, burn_op_def);
    def.name = name;
    def.id = burn_op_id_from_name(name);
    def.revision = 1;
    def.n_in = 2;
    def.n_out = 1;
    def.roles = roles;
    def.role_stride = (uint32_t)sizeof(burn_role);
    def.infer = infer;
    def.vjp = vjp;
    def.vjp_saves = saves;
    def.decompose = decompose;
    def.eval = eval;
    def.samples = samples;
}

/* A view of x alone. */
static void build_view(void)
{
    def.n_in = 1;
    roles[1] = roles[2];
    def.fuse = BURN_FUSE_VIEW;
    def.view = view;
    def.vjp = NULL;
    def.decompose = NULL;
    def.no_vjp = "its author had no time";
}

__attribute__((visibility("default"))) const burn_plugin *BURN_CALL
burn_plugin_query(uint32_t host_oldest, uint32_t host_newest, const burn_host *given, burn_err *err)
{
    static const burn_magic magic = BURN_MAGIC_INIT;
    find_own_id(own_id, sizeof(own_id));
    build_op();
    if (strncmp(own_id, "view", 4) == 0) {
        build_view();
    }
    BURN_INIT(&plugin, burn_plugin);
    plugin.magic = magic;
    plugin.id = own_id;
    plugin.version = "1.2.3";
    plugin.ops = &def;
    plugin.n_ops = 1;
    plugin.op_stride = (uint32_t)sizeof(burn_op_def);
    return burn_plugin_answer(host_oldest, host_newest, given, &host, &plugin, err);
}
