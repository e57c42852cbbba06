/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_stubs.c - extensions that are each wrong in one way: at load, at a call, in backward.
 *
 * usage: test_stubs DEVICE. Each row names the defect, when it is found, and words of the message,
 * which names the plugin and the op as well. None of the plugin's ops is there after a refusal. The
 * sanitizers' builds run this too: a lie never becomes a wrong access.
 */
#include "stub_world.h"

#include "ops/def_check.h"
#include "ops/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <burn/device.h>
#include <burn/grad.h>
#include <burn/ops.h>
#include <burn/plugin.h>
#include <burn/plugins.h>
#include <burn/registry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum when { AT_LOAD, AT_CALL, TAPED, IN_BACKWARD };

typedef struct expectation {
    const char *id;
    enum when when;
    const char *words;
} expectation;

static const expectation table[] = {
    {"role_flags", AT_LOAD, "unknown flags 0x400"},
    {"role_name", AT_LOAD, "role 2 has no name"},
    {"role_tie", AT_LOAD, "dtype of operand 8"},
    {"role_tie_out", AT_LOAD, "there are 2 inputs"},
    {"role_variadic_first", AT_LOAD, "not the last input or output"},
    {"role_variadic_out", AT_LOAD, "output z is variadic; such an op has a decomposition"},
    {"role_scalar_out", AT_LOAD, "output z is a state or a scalar"},
    {"role_stride", AT_LOAD, "8"},
    {"state_is_pure", AT_LOAD, "effect must be STATE"},
    {"saves_null", AT_LOAD, "save"},
    {"no_eval", AT_LOAD, "eval and samples are required"},
    {"no_samples", AT_LOAD, "eval and samples are required"},
    {"no_outputs", AT_LOAD, "at least one output"},
    {"many_inputs", AT_LOAD, "60"},
    {"unknown_flags", AT_LOAD, "flags 0x40"},
    {"unknown_effect", AT_LOAD, "effect 77"},
    {"unknown_fuse", AT_LOAD, "fuse 77"},
    {"revision_0", AT_LOAD, "revision 0"},
    {"view_null", AT_LOAD, "no view function"},
    {"attrs_head", AT_LOAD, "4 bytes of attributes"},
    {"bad_name", AT_LOAD, "[a-z][a-z0-9_.-]*"},
    {"clash_core", AT_LOAD, "the core"},
    {"foreign_prefix", AT_LOAD, "op healthy.more: its name must begin with its plugin's id"},
    {"longer_prefix", AT_LOAD, "and a dot, \"longer_prefix.\""},
    {"id_core", AT_LOAD, "id"},
    {"saves_range", AT_LOAD, "beyond its 2 inputs and 1 outputs"},
    {"no_way", AT_LOAD, "no reason"},
    {"pointwise_outputs", AT_LOAD, "pointwise and has 2 outputs"},
    {"attr_offset", AT_LOAD, "offset 200"},
    {"attr_type", AT_LOAD, "type 99"},
    {"attr_size", AT_LOAD, "4 bytes, which do not fit"},
    {"attr_overlap", AT_LOAD, "axis and more overlap"},
    {"attr_list", AT_LOAD, "the list axis has no length"},
    {"state_no_alias", AT_LOAD, "no output that is its new value"},
    {"alias_range", AT_LOAD, "alias 0 is {0, 7, 2}"},
    {"alias_kind", AT_LOAD, "alias 0 is {0, 0, 9}"},
    {"alias_twice", AT_LOAD, "that alias 0 has"},
    {"alias_not_state", AT_LOAD, "must be a state"},
    {"samples_endless", AT_LOAD, "do not end"},
    {"samples_rank", AT_LOAD, "rank 99"},
    {"samples_dims", AT_LOAD, "dim 0 is -3"},
    {"samples_operands", AT_LOAD, "99 operands"},
    {"samples_none", AT_LOAD, "no sample"},
    {"view_optional", AT_LOAD, "a view takes a tensor"},
    {"view_tensor", AT_LOAD, "ONLY_IMMEDIATE"},
    {"view_number_optional", AT_LOAD, "y of a view is OPTIONAL or VARIADIC"},
    {"view_numbers", AT_LOAD, "y of a view is OPTIONAL or VARIADIC"},
    {"infer_rank", AT_CALL, "rank 200"},
    {"infer_negative", AT_CALL, "dim 0 of size -1"},
    {"infer_huge", AT_CALL, "too large"},
    {"infer_dtype", AT_CALL, "dtype i32, which its role excludes"},
    {"infer_no_dtype", AT_CALL, "no dtype (250)"},
    {"infer_kind", AT_CALL, "kind 17"},
    {"infer_code", AT_CALL, "failed without a text"},
    {"infer_pointwise", AT_CALL, "[100000] where its inputs make [3]"},
    {"view_behind", AT_CALL, "from element 1 to 3 of a storage of 3"},
    {"view_before", AT_CALL, "from element -2 to 0"},
    {"view_far", AT_CALL, "its view rule reaches"},
    {"view_dtype", AT_CALL, "output z dtype f16, which is tied to x and must be f32"},
    {"infer_tied_dtype", AT_CALL, "output z dtype f16, which is tied to x and must be f32"},
    {"decompose_shape", AT_CALL, "[1,3], its shape rule says f32 [3]"},
    {"decompose_dtype", AT_CALL, "f64 [3], its shape rule says f32"},
    {"decompose_scalar", AT_CALL, "its decomposition made output z"},
    {"decompose_none", AT_CALL, "gave no output 0"},
    {"decompose_code", AT_CALL, "its decomposition failed"},
    {"decompose_self", AT_CALL, "nested deeper than 16"},
    {"decompose_twice", AT_CALL, "nested deeper than 16"},
    {"decompose_pair", AT_CALL, "nested deeper than 16"},
    {"taped_shape", TAPED, "its shape rule says f32 [3]"},
    {"no_gradient", TAPED, "its author had no time"},
    {"view_no_gradient", TAPED, "its author had no time"},
    {"vjp_shape", IN_BACKWARD, "gradient of x has size 5 where the operand has 3"},
    {"vjp_dtype", IN_BACKWARD, "gradient of x is f64, the operand f32"},
    {"vjp_scalar", IN_BACKWARD, "gradient of x is a bare scalar"},
    {"vjp_unwanted", IN_BACKWARD, "gradient of y was set, but nobody wants it"},
    {"vjp_code", IN_BACKWARD, "its gradient failed"},
    {"vjp_not_saved", IN_BACKWARD, "missing"},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Further stubs, with tests of their own. */
static const char *const others[] = {"healthy",     "owner",         "thief",
                                     "row_slots",   "contract",      "state_shape",
                                     "row_foreign", "only_by_parts", "talks"};

static burn_device *device;

static void expect_words(const expectation *e, const char *text)
{
    if (strstr(text, e->words) == NULL || strstr(text, e->id) == NULL) {
        fail_msg("%s: \"%s\" should have its name and \"%s\"", e->id, text, e->words);
    }
}

static const burn_op_def *op_of(const char *id, const char *op)
{
    char name[96];
    (void)snprintf(name, sizeof(name), "%s.%s", id, op);
    return burn_op_find(name);
}

static burn_tensor *call(const char *id, burn_tensor *x, burn_tensor *y)
{
    burn_tensor *const in[2] = {x, y};
    burn_tensor *z = NULL;
    const burn_op_def *def = op_of(id, "op");
    assert_non_null(def);
    (void)burn_op_call(device, def->id, NULL, 0, in, 2, &z, 1);
    return z;
}

static burn_tensor *three(void)
{
    return burn_tensor_from_data(device, BURN_F32, 1, (const int64_t[]){3},
                                 (const float[]){1, 2, 3});
}

static int is_view(const char *id)
{
    return strncmp(id, "view_", 5) == 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void at_load(const expectation *e)
{
    burn_err err = BURN_ERR_INIT;
    assert_int_not_equal(burn_extension_load(e->id, &err), BURN_OK);
    expect_words(e, err.text);
    assert_null(op_of(e->id, "op"));
    assert_null(op_of(e->id, "first"));
    burn_err again = BURN_ERR_INIT;
    assert_int_not_equal(burn_extension_load(e->id, &again), BURN_OK);
    expect_words(e, again.text);
}

static void at_call(const expectation *e)
{
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = three();
    if (e->when == TAPED) {
        x = burn_require_grad(burn_device_autodiff(device), x);
    }
    burn_tensor *z = call(e->id, x, is_view(e->id) ? burn_scalar_int(0) : three());
    int32_t rc = burn_tensor_error(z, &err);
    if (rc == BURN_OK) { /* in a window, or on another stream: at the read */
        float out[3];
        rc = burn_read(z, out, sizeof(out), &err);
    }
    assert_int_not_equal(rc, BURN_OK);
    assert_true(rc < 0 && rc >= BURN_E_END);
    expect_words(e, err.text);
}

static void in_backward(const expectation *e)
{
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = burn_require_grad(burn_device_autodiff(device), three());
    burn_tensor *z = call(e->id, x, three());
    assert_int_equal(burn_tensor_error(z, &err), BURN_OK);
    assert_null(burn_backward(z, NULL, 0, &err));
    expect_words(e, err.text);
}

static void each_lie_is_an_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        const expectation *e = &table[i];
        burn_err err = BURN_ERR_INIT;
        burn_scope_begin();
        if (e->when != AT_LOAD && burn_extension_load(e->id, &err) != BURN_OK) {
            fail_msg("%s does not load: %s", e->id, err.text);
        }
        if (e->when == AT_LOAD) {
            at_load(e);
        } else if (e->when == IN_BACKWARD) {
            in_backward(e);
        } else {
            at_call(e);
        }
        burn_scope_end();
        (void)burn_sync(device, NULL);
    }
}

/* What extensions are held to, the core's own definitions keep. */
static void core_definitions_keep_the_rules(void **state)
{
    (void)state;
    uint32_t n = 0;
    for (uint32_t i = 0; burni_op_at(i) != NULL; i++) {
        const burni_op *op = burni_op_at(i);
        burn_err err = BURN_ERR_INIT;
        if (op->plugin == NULL && burni_def_check(NULL, &op->def, &err) != BURN_OK) {
            fail_msg("%s", err.text);
        }
        n += op->plugin == NULL;
    }
    assert_true(n > 100);
}

/* ---- one by one ------------------------------------------------------------------------------ */

static void expect_sum(burn_tensor *z)
{
    burn_err err = BURN_ERR_INIT;
    float out[3] = {0, 0, 0};
    if (burn_read(z, out, sizeof(out), &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    assert_true(out[0] == 2.0F && out[1] == 4.0F && out[2] == 6.0F);
}

static void a_healthy_one_works_with_gradients(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    static const char *const healthy[] = {"healthy", "only_by_parts"};
    for (size_t i = 0; i < COUNT(healthy); i++) {
        assert_int_equal(burn_extension_load(healthy[i], &err), BURN_OK);
        assert_int_equal(burn_extension_load(healthy[i], &err), BURN_OK);
        uint32_t n = burn_op_count();
        assert_int_equal(burn_extension_load(healthy[i], &err), BURN_OK);
        assert_int_equal(burn_op_count(), n);
        burn_scope_begin();
        burn_tensor *x = burn_require_grad(burn_device_autodiff(device), three());
        burn_tensor *z = call(healthy[i], x, x);
        expect_sum(z);
        burn_grads *grads = burn_backward(z, NULL, 0, &err);
        assert_non_null(grads);
        float g[3] = {0, 0, 0};
        assert_int_equal(burn_read(burn_grads_get(grads, x), g, sizeof(g), &err), BURN_OK);
        assert_true(g[0] == 2.0F && g[1] == 2.0F && g[2] == 2.0F);
        burn_grads_free(grads);
        burn_scope_end();
    }
}

static void expect_no_thief(void)
{
    burn_err err = BURN_ERR_INIT;
    assert_int_not_equal(burn_extension_load("thief", &err), BURN_OK);
    assert_non_null(strstr(err.text, "thief: op owner.op"));
    assert_null(burn_op_find("thief.first"));
}

/* Who is refused keeps nothing: neither the name that it took, nor those of its other ops. */
static void a_name_is_its_owners_whoever_comes_first(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    uint32_t n = burn_op_count();
    expect_no_thief();
    assert_null(burn_op_find("owner.op"));
    assert_int_equal(burn_op_count(), n);
    if (burn_extension_load("owner", &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    burn_scope_begin();
    expect_sum(call("owner", three(), three()));
    burn_scope_end();
    expect_no_thief();
}

static void a_state_keeps_its_size(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_extension_load("state_shape", &err), BURN_OK);
    burn_scope_begin();
    burn_var *var = burn_var_create(device, three(), &err);
    burn_var *const vars[2] = {var, NULL};
    burn_tensor *const in[2] = {NULL, three()};
    assert_int_not_equal(
        burn_var_update(op_of("state_shape", "op")->id, NULL, 0, vars, in, 2, &err), BURN_OK);
    assert_non_null(strstr(err.text, "another shape or dtype than its variable x"));
    float out[3] = {0, 0, 0};
    assert_int_equal(burn_read(burn_var_get(var), out, sizeof(out), NULL), BURN_OK);
    assert_true(out[0] == 1.0F && out[2] == 3.0F);
    burn_var_release(var);
    burn_scope_end();
    (void)burn_sync(device, NULL);
}

static void a_row_has_a_slot_for_each_operand(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    /* Whatever is open, and whatever backend its rows are for. */
    assert_int_not_equal(burn_extension_load("row_slots", &err), BURN_OK);
    assert_non_null(strstr(err.text, "row stub.row has 2 slots, op row_slots.op has 3 operands"));
    assert_null(op_of("row_slots", "op"));
}

static void told(const char *id, char *out, size_t cap)
{
    burn_plugin_info info;
    BURN_INIT(&info, burn_plugin_info);
    for (uint32_t i = 0; burn_plugins_at(i, 0, &info, NULL) == BURN_OK; i++) {
        if (strcmp(info.id, id) == 0) {
            (void)snprintf(out, cap, "%s", info.reason);
        }
    }
}

/* Loaded before the op's extension and the device (EXTENSION_FIRST), its row meets the op when the
 * device is opened; loaded behind that op, it is refused. */
static void rows_that_do_not_fit_keep_no_device_shut(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    char reason[640] = "";
    int first = getenv("EXTENSION_FIRST") != NULL;
    int on_flex = strncmp(burn_device_name(device), "flex", 4) == 0;
    assert_int_equal(burn_extension_load("healthy", &err), BURN_OK);
    assert_int_equal(burn_extension_load("row_foreign", &err) == BURN_OK, first);
    assert_null(burn_op_row(device, op_of("healthy", "op")->id, 0));
    burn_scope_begin();
    expect_sum(call("healthy", three(), three()));
    burn_scope_end();
    told("row_foreign", reason, sizeof(reason));
    assert_int_equal(strstr(reason, "stub.row has 2 slots") != NULL, on_flex || !first);
}

static int n_told;

static void open_from_log(void *user, int32_t level, const char *source, const char *text)
{
    (void)user;
    (void)level;
    if (strcmp(source, "talks") == 0 && strstr(text, "samples are asked for") != NULL) {
        n_told += burn_device_open(burn_device_name(device), NULL) == device;
    }
}

static void what_samples_log_may_open_a_device(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_log_set(open_from_log, NULL, BURN_LOG_WARN);
    assert_int_equal(burn_extension_load("talks", &err), BURN_OK);
    burn_log_set(NULL, NULL, BURN_LOG_WARN);
    assert_true(n_told > 0);
}

static void a_contract_that_is_not_served_leaves_rows_out(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    char reason[640] = "";
    int on_flex = strncmp(burn_device_name(device), "flex", 4) == 0;
    assert_int_equal(burn_extension_load("contract", &err), BURN_OK);
    assert_null(burn_op_row(device, op_of("contract", "op")->id, 0));
    burn_scope_begin();
    expect_sum(call("contract", three(), three()));
    burn_scope_end();
    told("contract", reason, sizeof(reason));
    assert_int_equal(strstr(reason, "use revision 99 of flex.kernel/1") != NULL, on_flex);
}

static void a_backend_is_no_extension(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_extension_load("mock", &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "is a backend"));
    burn_err unknown = BURN_ERR_INIT;
    assert_int_equal(burn_extension_load("healthi", &unknown), BURN_E_NOT_FOUND);
    assert_non_null(strstr(unknown.text, "no plugin \"healthi\""));
}

int main(int argc, char **argv)
{
    const char *names[COUNT(table) + COUNT(others)];
    for (size_t i = 0; i < COUNT(table); i++) {
        names[i] = table[i].id;
    }
    memcpy(names + COUNT(table), others, sizeof(others));
    burn_err err = BURN_ERR_INIT;
    if (argc != 2 || !stub_world_make(names, COUNT(names))) {
        (void)fprintf(stderr, "usage: test_stubs DEVICE, with STUB_SO set\n");
        return 2;
    }
    if (getenv("EXTENSION_FIRST") != NULL) {
        (void)burn_extension_load("row_slots", &err);
        (void)burn_extension_load("row_foreign", &err);
        (void)burn_extension_load("healthy", &err);
    }
    device = burn_device_open(argv[1], &err);
    if (device == NULL) {
        (void)fprintf(stderr, "%s\n", err.text);
        stub_world_remove();
        return 2;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(core_definitions_keep_the_rules),
        cmocka_unit_test(each_lie_is_an_error),
        cmocka_unit_test(a_healthy_one_works_with_gradients),
        cmocka_unit_test(a_name_is_its_owners_whoever_comes_first),
        cmocka_unit_test(a_state_keeps_its_size),
        cmocka_unit_test(a_row_has_a_slot_for_each_operand),
        cmocka_unit_test(rows_that_do_not_fit_keep_no_device_shut),
        cmocka_unit_test(what_samples_log_may_open_a_device),
        cmocka_unit_test(a_contract_that_is_not_served_leaves_rows_out),
        cmocka_unit_test(a_backend_is_no_extension),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    burn_shutdown();
    stub_world_remove();
    return failed;
}
