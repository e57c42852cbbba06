// SPDX-License-Identifier: MIT OR Apache-2.0
//
// throws.cc - an extension in C++ whose functions and kernel throw, behind the SDK's guard. What is
// thrown must come out as an error (test_guards.c). Which function throws, and what, is chosen by
// the name of the library's own file: throws_<function>[_memory|_number].
//
// It is written with the SDK's helpers for definitions and rows, so it also shows that these work
// in C++. To add a function: its body between the guards, a row in test_guards.c.
#include "../loader/own_id.h"

#include <burn_sdk/op.h>
#include <burn_sdk/slots.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>

namespace {

char own_id[64];
char name[80];
const burn_host *kept_host;

bool is(const char *function, const char *what)
{
    char wanted[80];
    std::snprintf(wanted, sizeof(wanted), "throws_%s%s", function, what);
    return std::strcmp(own_id, wanted) == 0;
}

void maybe_throw(const char *function)
{
    if (is(function, "")) {
        throw std::runtime_error("the vendor's library gave up");
    }
    if (is(function, "_memory")) {
        throw std::bad_alloc();
    }
    if (is(function, "_number")) {
        throw 42;
    }
}

int32_t infer(const burn_infer *a)
{
    BURN_PLUGIN_GUARD_BEGIN
    maybe_throw("infer");
    burn_meta_copy_shape(&a->out[0], a->in[0]);
    return burn_check_same_shape(name, "x", a->in[0], "y", a->in[1], a->err);
    BURN_PLUGIN_GUARD_END(a->err)
}

int32_t vjp(const burn_builder *, const burn_vjp *a)
{
    BURN_PLUGIN_GUARD_BEGIN
    maybe_throw("vjp");
    for (uint32_t i = 0; i < a->n_in; i++) {
        a->grad_in[i] = a->wanted[i] != 0 ? a->grad_out[0] : nullptr;
    }
    return BURN_OK;
    BURN_PLUGIN_GUARD_END(nullptr)
}

int32_t decompose(const burn_builder *b, const burn_expand *a)
{
    BURN_PLUGIN_GUARD_BEGIN
    maybe_throw("decompose");
    a->out[0] = burn_b_add(b, a->in[0], a->in[1]);
    return BURN_OK;
    BURN_PLUGIN_GUARD_END(nullptr)
}

int32_t eval(const burn_eval *a)
{
    BURN_PLUGIN_GUARD_BEGIN
    maybe_throw("eval");
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        a->out[0].f[k] = a->in[0].f[k] + a->in[1].f[k];
    }
    return BURN_OK;
    BURN_PLUGIN_GUARD_END(a->err)
}

int32_t samples(uint32_t i, burn_sample *out)
{
    BURN_PLUGIN_GUARD_BEGIN
    maybe_throw("samples");
    const int64_t dims[1] = {3};
    if (i > 0) {
        return BURN_E_END;
    }
    burn_sample_begin(out, "vector", 2.0, 64.0);
    burn_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, 1, dims);
    burn_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, 1, dims);
    return BURN_OK;
    BURN_PLUGIN_GUARD_END(nullptr)
}

int32_t BURN_CALL check(const burn_call *call)
{
    BURN_PLUGIN_GUARD_BEGIN
    maybe_throw("check");
    return BURN_OK;
    BURN_PLUGIN_GUARD_END(call->err)
}

int32_t BURN_CALL prepare(const burn_call *call, burn_prepared *)
{
    BURN_PLUGIN_GUARD_BEGIN
    maybe_throw("prepare");
    return BURN_OK;
    BURN_PLUGIN_GUARD_END(call->err)
}

int32_t BURN_CALL launch(const burn_call *call)
{
    BURN_PLUGIN_GUARD_BEGIN
    maybe_throw("launch");
    const burn_operand *z = burn_call_operand(call, 2);
    const float *x = static_cast<const float *>(burn_call_operand(call, 0)->data);
    const float *y = static_cast<const float *>(burn_call_operand(call, 1)->data);
    for (int64_t k = 0; k < z->dims[0]; k++) {
        static_cast<float *>(z->data)[k] = x[k] + y[k];
    }
    return BURN_OK;
    BURN_PLUGIN_GUARD_END(call->err)
}

burn_role roles[] = {
    BURN_ROLE("x", 0, BURN_SET_FLOAT),
    BURN_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
    BURN_ROLE_LIKE("z", 0, 0, BURN_SET_FLOAT),
};
uint32_t saves[2];
const burn_slot slots[] = {
    BURN_SLOT(BURN_BIT(F32), BURN_LAYOUT_CONTIGUOUS),
    BURN_SLOT(BURN_BIT(F32), BURN_LAYOUT_CONTIGUOUS),
    BURN_SLOT(BURN_BIT(F32), BURN_LAYOUT_CONTIGUOUS),
};
burn_row rows[] = {BURN_ROW(0, "throws.row", BURN_ROW_DETERMINISTIC, slots, launch)};
const burn_row_set row_sets[] = {BURN_ROW_SET("flex", rows)};
burn_op_def def;
burn_plugin plugin;

// Where the row's own functions throw, nothing else serves the op; elsewhere decomposition does.
void build()
{
    static const burn_magic magic = BURN_MAGIC_INIT;
    const bool by_row = is("check", "") || is("prepare", "") || std::strstr(own_id, "launch");
    std::snprintf(name, sizeof(name), "%s.op", own_id);
    BURN_INIT(&def, burn_op_def);
    def.name = name;
    def.n_in = 2;
    def.n_out = 1;
    def.roles = roles;
    def.infer = infer;
    def.vjp = vjp;
    def.vjp_saves = saves;
    def.decompose = by_row ? nullptr : decompose;
    def.eval = eval;
    def.samples = samples;
    burn_op_finish(&def);
    rows[0].op = def.id;
    rows[0].check = check;
    rows[0].prepare = prepare;
    BURN_INIT(&plugin, burn_plugin);
    plugin.magic = magic;
    plugin.id = own_id;
    plugin.version = "1.2.3";
    plugin.ops = &def;
    plugin.n_ops = 1;
    plugin.op_stride = sizeof(burn_op_def);
    plugin.row_sets = row_sets;
    plugin.n_row_sets = by_row || std::strstr(own_id, "healthy") ? 1 : 0;
    plugin.row_set_stride = sizeof(burn_row_set);
}

} // namespace

BURN_PLUGIN_ENTRY(host_oldest, host_newest, host, err)
{
    find_own_id(own_id, sizeof(own_id));
    build();
    return burn_plugin_answer(host_oldest, host_newest, host, &kept_host, &plugin, err);
}
