/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_guards.c - functions of an extension that write past what they are given (stub_guard.c): at
 * load, at a call, in backward, and where results are compared with eval.
 *
 * usage: test_guards DEVICE. A row names the defect and the words of its message, which says who
 * wrote how many bytes past what. After each one the healthy extension still works. Built with
 * sanitizers this also shows that nothing of the host was overwritten.
 */
#include "stub_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <burn/device.h>
#include <burn/grad.h>
#include <burn/ops.h>
#include <burn/plugin.h>
#include <burn/registry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*provoke)(const char *id, char *text, size_t cap);

typedef struct expectation {
    const char *id;
    provoke how;
    const char *words;
} expectation;

static burn_device *device;
static char logged[1024];

static void keep_line(void *user, int32_t level, const char *source, const char *text)
{
    (void)user;
    (void)level;
    (void)source;
    size_t used = strlen(logged);
    (void)snprintf(logged + used, sizeof(logged) - used, "%s\n", text);
}

static burn_tensor *three(void)
{
    return burn_tensor_from_data(device, BURN_F32, 1, (const int64_t[]){3},
                                 (const float[]){1, 2, 3});
}

static void load(const char *id)
{
    burn_err err = BURN_ERR_INIT;
    if (burn_extension_load(id, &err) != BURN_OK) {
        fail_msg("%s does not load: %s", id, err.text);
    }
}

static burn_tensor *call(const char *id, burn_tensor *x)
{
    char name[96];
    (void)snprintf(name, sizeof(name), "%s.op", id);
    const burn_op_def *def = burn_op_find(name);
    assert_non_null(def);
    burn_tensor *const in[2] = {x, three()};
    burn_tensor *z = NULL;
    (void)burn_op_call(device, def->id, NULL, 0, in, def->n_in, &z, 1);
    return z;
}

/* ---- where a defect shows -------------------------------------------------------------------- */

static void at_load(const char *id, char *text, size_t cap)
{
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_extension_load(id, &err), BURN_E_ABI);
    (void)snprintf(text, cap, "%s", err.text);
}

static void at_call(const char *id, char *text, size_t cap)
{
    burn_err err = BURN_ERR_INIT;
    float out[3];
    load(id);
    assert_int_equal(burn_read(call(id, three()), out, sizeof(out), &err), BURN_E_ABI);
    (void)snprintf(text, cap, "%s", err.text);
}

static void in_backward(const char *id, char *text, size_t cap)
{
    burn_err err = BURN_ERR_INIT;
    load(id);
    burn_tensor *x = burn_require_grad(burn_device_autodiff(device), three());
    assert_null(burn_backward(call(id, x), NULL, 0, &err));
    assert_int_equal(err.code, BURN_E_ABI);
    (void)snprintf(text, cap, "%s", err.text);
}

/* The result is right, and eval is not to be trusted: that is logged. */
static void in_comparison(const char *id, char *text, size_t cap)
{
    float out[3] = {0, 0, 0};
    load(id);
    logged[0] = '\0';
    assert_int_equal(burn_option_set("CHECK", "compare", NULL), BURN_OK);
    burn_tensor *x = three();
    assert_int_equal(burn_read(call(id, x), out, sizeof(out), NULL), BURN_OK);
    assert_int_equal(burn_sync(device, NULL), BURN_OK);
    assert_int_equal(burn_option_set("CHECK", NULL, NULL), BURN_OK);
    assert_true(out[0] == 2.0F && out[1] == 4.0F && out[2] == 6.0F);
    (void)snprintf(text, cap, "%s", logged);
}

static const expectation table[] = {
    {"samples_past", at_load, "samples of samples_past.op wrote 48 bytes past the end of burn_sam"},
    {"infer_past", at_call, "infer of infer_past.op wrote 24 bytes past the end of its outputs' m"},
    {"infer_err_past", at_call, "infer of infer_err_past.op wrote 8 bytes past the end of burn_er"},
    {"view_past", at_call, "view of view_past.op wrote 16 bytes past the end of out_strides"},
    {"view_offset_past", at_call, "view_offset_past.op wrote 40 bytes past the end of out_offset"},
    {"view_err_past", at_call, "view of view_err_past.op wrote 12 bytes past the end of burn_err"},
    {"decompose_past", at_call, "decompose of decompose_past.op wrote 32 bytes past the end of it"},
    {"vjp_past", in_backward, "vjp of vjp_past.op wrote 8 bytes past the end of its list of value"},
    {"eval_past", in_comparison, "eval of eval_past.op wrote 24 bytes past the end of the element"},
    {"eval_outputs_past", in_comparison, "eval_outputs_past.op wrote 56 bytes past the end of its"},
    {"eval_err_past", in_comparison, "eval_err_past.op wrote 16 bytes past the end of burn_err"},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void expect_works(const char *id)
{
    burn_err err = BURN_ERR_INIT;
    float out[3] = {0, 0, 0};
    float g[3] = {0, 0, 0};
    load(id);
    burn_tensor *x = burn_require_grad(burn_device_autodiff(device), three());
    burn_tensor *z = call(id, x);
    if (burn_read(z, out, sizeof(out), &err) != BURN_OK) {
        fail_msg("%s: %s", id, err.text);
    }
    assert_true(out[0] == 2.0F && out[1] == 4.0F && out[2] == 6.0F);
    burn_grads *grads = burn_backward(z, NULL, 0, &err);
    assert_non_null(grads);
    assert_int_equal(burn_read(burn_grads_get(grads, x), g, sizeof(g), &err), BURN_OK);
    assert_true(g[0] == 1.0F && g[2] == 1.0F);
    burn_grads_free(grads);
}

static void b240_what_is_written_past_an_array_is_an_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        char text[1024] = "";
        burn_scope_begin();
        table[i].how(table[i].id, text, sizeof(text));
        if (strstr(text, table[i].words) == NULL) {
            fail_msg("%s: \"%s\" does not hold \"%s\"", table[i].id, text, table[i].words);
        }
        burn_scope_end();
        (void)burn_sync(device, NULL);
        burn_scope_begin();
        expect_works("healthy");
        burn_scope_end();
    }
}

static void a_healthy_one_is_compared_and_views(void **state)
{
    (void)state;
    char text[1024] = "";
    float out[3] = {0, 0, 0};
    burn_scope_begin();
    in_comparison("healthy", text, sizeof(text));
    assert_null(strstr(text, "past the end"));
    assert_null(strstr(text, "not compared"));
    load("view");
    assert_int_equal(burn_read(call("view", three()), out, sizeof(out), NULL), BURN_OK);
    assert_true(out[0] == 1.0F && out[2] == 3.0F);
    burn_scope_end();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b240_what_is_written_past_an_array_is_an_error),
        cmocka_unit_test(a_healthy_one_is_compared_and_views),
    };
    const char *names[COUNT(table) + 2] = {"healthy", "view"};
    for (size_t i = 0; i < COUNT(table); i++) {
        names[i + 2] = table[i].id;
    }
    if (argc != 2 || !stub_world_make(names, COUNT(names))) {
        (void)fprintf(stderr, "usage: test_guards DEVICE, with STUB_SO set\n");
        return 1;
    }
    burn_log_set(keep_line, NULL, BURN_LOG_INFO);
    device = burn_device_open(argv[1], NULL);
    int failed =
        device == NULL ? 1 : cmocka_run_group_tests_name("extension/guards", tests, NULL, NULL);
    burn_shutdown();
    stub_world_remove();
    return failed;
}
