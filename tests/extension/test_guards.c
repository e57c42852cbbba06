/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_guards.c - functions of an extension that write past what they are given (stub_guard.c), and
 * functions in C++ that throw (throws.cc): at load, at a call, in backward, and where results are
 * compared with eval.
 *
 * usage: test_guards DEVICE past|throws. A row names the defect, the code and the words of its
 * message. After each one the healthy extension still works. Built with sanitizers this also shows
 * that nothing of the host was overwritten.
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

/* Returns the code of the failure, BURN_OK where the call itself succeeds. */
typedef int32_t (*provoke)(const char *id, char *text, size_t cap);

typedef struct expectation {
    const char *id;
    provoke how;
    int32_t code;
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

static int32_t at_load(const char *id, char *text, size_t cap)
{
    burn_err err = BURN_ERR_INIT;
    int32_t rc = burn_extension_load(id, &err);
    (void)snprintf(text, cap, "%s", err.text);
    return rc;
}

static int32_t at_call(const char *id, char *text, size_t cap)
{
    burn_err err = BURN_ERR_INIT;
    float out[3];
    load(id);
    int32_t rc = burn_read(call(id, three()), out, sizeof(out), &err);
    (void)snprintf(text, cap, "%s", err.text);
    return rc;
}

static int32_t in_backward(const char *id, char *text, size_t cap)
{
    burn_err err = BURN_ERR_INIT;
    load(id);
    burn_tensor *x = burn_require_grad(burn_device_autodiff(device), three());
    assert_null(burn_backward(call(id, x), NULL, 0, &err));
    (void)snprintf(text, cap, "%s", err.text);
    return err.code;
}

/* The result is right, and eval is not to be trusted: that is logged. */
static int32_t in_comparison(const char *id, char *text, size_t cap)
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
    return BURN_OK;
}

#define PAST(entry, what) entry " wrote " what
static const expectation past[] = {
    {"samples_past", at_load, BURN_E_ABI,
     PAST("samples of samples_past.op", "48 bytes past the end of burn_sample")},
    {"infer_past", at_call, BURN_E_ABI,
     PAST("infer of infer_past.op", "24 bytes past the end of its outputs' metas")},
    {"infer_err_past", at_call, BURN_E_ABI,
     PAST("infer of infer_err_past.op", "8 bytes past the end of burn_err")},
    {"view_past", at_call, BURN_E_ABI,
     PAST("view of view_past.op", "16 bytes past the end of out_strides")},
    {"view_offset_past", at_call, BURN_E_ABI,
     PAST("view of view_offset_past.op", "40 bytes past the end of out_offset")},
    {"view_err_past", at_call, BURN_E_ABI,
     PAST("view of view_err_past.op", "12 bytes past the end of burn_err")},
    {"decompose_past", at_call, BURN_E_ABI,
     PAST("decompose of decompose_past.op", "32 bytes past the end of its list of values")},
    {"vjp_past", in_backward, BURN_E_ABI,
     PAST("vjp of vjp_past.op", "8 bytes past the end of its list of values")},
    {"eval_past", in_comparison, BURN_OK,
     PAST("eval of eval_past.op", "24 bytes past the end of the elements of an output")},
    {"eval_outputs_past", in_comparison, BURN_OK,
     PAST("eval of eval_outputs_past.op", "56 bytes past the end of its outputs")},
    {"eval_err_past", in_comparison, BURN_OK,
     PAST("eval of eval_err_past.op", "16 bytes past the end of burn_err")},
};

#define GAVE_UP "exception: the vendor's library gave up"
static const expectation thrown[] = {
    {"throws_samples", at_load, BURN_E_ABI, "op throws_samples.op: it has no sample"},
    {"throws_infer", at_call, BURN_E_INTERNAL, GAVE_UP},
    {"throws_infer_memory", at_call, BURN_E_NO_MEMORY, "out of host memory"},
    {"throws_infer_number", at_call, BURN_E_INTERNAL, "exception of unknown type"},
    {"throws_decompose", at_call, BURN_E_INTERNAL, "its decomposition failed: internal error"},
    {"throws_vjp", in_backward, BURN_E_INTERNAL, "its gradient failed: internal error"},
    {"throws_vjp_memory", in_backward, BURN_E_NO_MEMORY, "its gradient failed: out of memory"},
    {"throws_eval", in_comparison, BURN_OK, "was not compared: " GAVE_UP},
    {"throws_check", at_call, BURN_E_UNSUPPORTED, "throws.row: " GAVE_UP},
    {"throws_prepare", at_call, BURN_E_UNSUPPORTED, "throws.row: " GAVE_UP},
    {"throws_launch", at_call, BURN_E_INTERNAL, "throws_launch.op: " GAVE_UP},
    {"throws_launch_memory", at_call, BURN_E_NO_MEMORY, "out of host memory"},
    {"throws_launch_number", at_call, BURN_E_INTERNAL, "exception of unknown type"},
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

static void try_all(const expectation *table, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[1024] = "";
        burn_scope_begin();
        int32_t rc = table[i].how(table[i].id, text, sizeof(text));
        if (rc != table[i].code || strstr(text, table[i].words) == NULL) {
            fail_msg("%s: code %d, not %d, or \"%s\" does not hold \"%s\"", table[i].id, rc,
                     table[i].code, text, table[i].words);
        }
        burn_scope_end();
        (void)burn_sync(device, NULL);
        burn_scope_begin();
        expect_works("healthy");
        burn_scope_end();
    }
}

static void b240_what_is_written_past_an_array_is_an_error(void **state)
{
    (void)state;
    try_all(past, COUNT(past));
}

static void b240_what_functions_and_kernels_throw_is_an_error(void **state)
{
    (void)state;
    try_all(thrown, COUNT(thrown));
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

/* The stubs of a table, and healthy ones. */
static int make_world(const expectation *table, size_t n)
{
    const char *names[32] = {"healthy", "view"};
    for (size_t i = 0; i < n; i++) {
        names[i + 2] = table[i].id;
    }
    return stub_world_make(names, n + 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest past_tests[] = {
        cmocka_unit_test(b240_what_is_written_past_an_array_is_an_error),
        cmocka_unit_test(a_healthy_one_is_compared_and_views),
    };
    const struct CMUnitTest throw_tests[] = {
        cmocka_unit_test(b240_what_functions_and_kernels_throw_is_an_error),
    };
    int throws = argc == 3 && strcmp(argv[2], "throws") == 0;
    if (argc != 3 ||
        !(throws ? make_world(thrown, COUNT(thrown)) : make_world(past, COUNT(past)))) {
        (void)fprintf(stderr, "usage: test_guards DEVICE past|throws, with STUB_SO set\n");
        return 1;
    }
    burn_log_set(keep_line, NULL, BURN_LOG_INFO);
    device = burn_device_open(argv[1], NULL);
    int failed = 1;
    if (device != NULL) {
        failed = throws ? cmocka_run_group_tests(throw_tests, NULL, NULL)
                        : cmocka_run_group_tests(past_tests, NULL, NULL);
    }
    burn_shutdown();
    stub_world_remove();
    return failed;
}
