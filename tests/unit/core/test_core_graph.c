/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_graph.c - captures: what is written down, how it is printed, checked and run again;
 * bytes that were altered are refused or harmless.
 */
#include "core_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static burn_graph *end(burn_tensor *const *outputs, uint32_t n, burn_module *states)
{
    burn_err err = BURN_ERR_INIT;
    burn_graph *graph = burn_capture_end(outputs, n, states, &err);
    if (graph == NULL) {
        fail_msg("capture: %s", err.text);
    }
    size_t size = 0;
    const burn_window *w = burn_graph_window(graph, &size);
    assert_int_equal(burn_window_check(w, size, &err), BURN_OK);
    return graph;
}

static void begin(void)
{
    assert_int_equal(burn_capture_begin(NULL), BURN_OK);
}

static void run(const burn_graph *graph, burn_tensor *const *in, uint32_t n_in, burn_tensor **out,
                uint32_t n_out)
{
    burn_err err = BURN_ERR_INIT;
    if (burn_graph_run(graph, dev, in, n_in, NULL, NULL, out, n_out, &err) != BURN_OK) {
        fail_msg("run: %s", err.text);
    }
}

static burn_graph *sample_graph(void)
{
    burn_tensor *c = VEC(10, 20);
    begin();
    burn_tensor *x = burn_capture_input(VEC(1, 2), "x");
    burn_tensor *y = burn_softmax(burn_add(burn_mul(x, burn_scalar(2.0)), c), 0);
    (void)burn_exp(x); /* nobody needs it */
    burn_graph *graph = end(&y, 1, NULL);
    return graph;
}

static void test_a_graph_runs_again(void **state)
{
    (void)state;
    burn_graph *graph = sample_graph();
    burn_tensor *in = VEC(3, -4);
    burn_tensor *out = NULL;
    run(graph, &in, 1, &out, 1);
    check_same(out, burn_softmax(burn_add(burn_mul(in, burn_scalar(2.0)), VEC(10, 20)), 0));
    assert_int_equal(burn_graph_n_inputs(graph), 1);
    assert_int_equal(burn_graph_n_outputs(graph), 1);
    uint8_t dtype;
    uint32_t rank;
    int64_t dims[BURN_MAX_RANK];
    assert_string_equal(burn_graph_input(graph, 0, &dtype, &rank, dims), "x");
    assert_int_equal(dtype, BURN_F32);
    assert_int_equal(rank, 1);
    assert_int_equal(dims[0], 2);
    assert_null(burn_graph_input(graph, 1, &dtype, &rank, dims));
    burn_graph_free(graph);
}

/* The kind of an input is compared before anything runs, by name. */
static void test_inputs_of_another_kind(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_graph *graph = sample_graph();
    burn_tensor *out = NULL;
    const struct {
        burn_tensor *given;
        const char *text;
    } rows[] = {
        {burn_cast(VEC(1, 2), BURN_I32), "is f32[2], given is i32[2]; cast or reshape it"},
        {burn_cast(VEC(1, 2), BURN_F64), "is f32[2], given is f64[2]; cast or reshape it"},
        {mat(1, 2, (const float[]){1, 2}), "is f32[2], given is f32[1,2]; cast or reshape it"},
        {burn_scalar(1.0), "is f32[2], given is f64 by value; cast or reshape it"},
        {NULL, "graph: input 0 is NULL"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(burn_graph_run(graph, dev, &rows[i].given, 1, NULL, NULL, &out, 1, &err),
                         BURN_E_INVALID);
        check_failed(out, BURN_E_INVALID, "graph: input 0", rows[i].text, NULL);
    }
    burn_graph_free(graph);
}

static void test_composites_stay_whole_and_print(void **state)
{
    (void)state;
    burn_graph *graph = sample_graph();
    char text[1024];
    size_t need = burn_graph_text(graph, text, sizeof(text));
    assert_true(need < sizeof(text));
    assert_non_null(strstr(text, "mul(%x"));
    assert_non_null(strstr(text, "softmax("));
    assert_non_null(strstr(text, "f32[2] output"));
    assert_null(strstr(text, "exp"));
    assert_int_equal(burn_graph_text(graph, NULL, 0), need);
    char cut[16];
    assert_int_equal(burn_graph_text(graph, cut, sizeof(cut)), need);
    assert_int_equal(strlen(cut), sizeof(cut) - 1);
    burn_graph_free(graph);
}

/* Inputs and outputs come back as they were listed, also doubled ones and inputs passed through. */
static void test_order_of_inputs_and_outputs(void **state)
{
    (void)state;
    begin();
    burn_tensor *a = VEC(1);
    burn_tensor *b = VEC(2);
    burn_tensor *c = VEC(3);
    burn_tensor *early = burn_add(c, b); /* c and b are used before they are declared */
    (void)burn_capture_input(a, "a");
    (void)burn_capture_input(b, "b");
    (void)burn_capture_input(c, "c");
    burn_tensor *late = burn_mul(a, burn_scalar(10.0));
    burn_tensor *constant = VEC(42);
    burn_tensor *outputs[] = {late, early, b, late, constant, burn_detach(early)};
    burn_graph *graph = end(outputs, 6, NULL);
    assert_int_equal(burn_graph_n_inputs(graph), 3);
    assert_int_equal(burn_graph_n_outputs(graph), 6);
    uint8_t dtype;
    uint32_t rank;
    int64_t dims[BURN_MAX_RANK];
    assert_string_equal(burn_graph_input(graph, 0, &dtype, &rank, dims), "a");
    assert_string_equal(burn_graph_input(graph, 2, &dtype, &rank, dims), "c");
    burn_tensor *in[] = {VEC(5), VEC(6), VEC(7)};
    burn_tensor *out[6];
    run(graph, in, 3, out, 6);
    const double want[6] = {50, 13, 6, 50, 42, 13};
    for (int i = 0; i < 6; i++) {
        check_values(__LINE__, out[i], 1, &want[i], 0);
        burn_release(out[i]);
    }
    CHECK(in[1], 6);
    burn_graph_free(graph);
}

static burn_tensor *state_of(void *user, const char *name)
{
    burn_var *v = burn_module_var(user, name);
    return v != NULL ? burn_var_get(v) : NULL;
}

static void test_states_have_names(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *root = burn_module_create(ad, &err);
    (void)burn_nn_linear(root, "layer", 2, 3, 1, &err);
    burn_tensor *x = VEC(1, 2);
    x = burn_reshape(x, 2, DIMS(1, 2));
    begin();
    (void)burn_capture_input(x, "x");
    burn_tensor *y = burn_forward(root, x);
    burn_graph *graph = end(&y, 1, root);
    char text[512];
    (void)burn_graph_text(graph, text, sizeof(text));
    assert_non_null(strstr(text, "@layer.weight"));
    assert_non_null(strstr(text, "@layer.bias"));
    burn_var *bias = burn_module_var(root, "layer.bias");
    assert_int_equal(burn_var_assign(bias, VEC(100, 200, 300), &err), BURN_OK);
    burn_tensor *out = NULL;
    int32_t rc = burn_graph_run(graph, dev, &x, 1, state_of, root, &out, 1, &err);
    assert_int_equal(rc, BURN_OK);
    check_same(out, burn_forward(root, x));
    rc = burn_graph_run(graph, dev, &x, 1, NULL, NULL, &out, 1, &err);
    assert_int_equal(rc, BURN_E_NOT_FOUND);
    check_failed(out, BURN_E_NOT_FOUND, "layer", NULL);
    /* Without the module nobody knows the name. */
    begin();
    y = burn_forward(root, x);
    assert_null(burn_capture_end(&y, 1, NULL, &err));
    assert_int_equal(err.code, BURN_E_NOT_FOUND);
    burn_graph_free(graph);
    burn_module_free(root);
}

/* Gradients are ops like others: a graph of them gives new gradients for new inputs. */
static void test_gradients_are_captured(void **state)
{
    (void)state;
    begin();
    burn_tensor *x = burn_capture_input(VEC(1, 2, 3), "x");
    burn_tensor *leaf = burn_require_grad(ad, x);
    burn_tensor *y = burn_sum(burn_mul(burn_mul(leaf, leaf), leaf), 0, NULL, 0);
    burn_grads *grads = burn_backward(y, NULL, 0, NULL);
    assert_non_null(grads);
    burn_tensor *outputs[] = {y, burn_grads_get(grads, leaf)};
    burn_graph *graph = end(outputs, 2, NULL);
    burn_grads_free(grads);
    burn_tensor *in = VEC(2, 0, -1);
    burn_tensor *out[2];
    run(graph, &in, 1, out, 2);
    CHECK(out[0], 7);
    CHECK(out[1], 12, 0, 3);
    burn_graph_free(graph);
}

/* A run could only overwrite what others still read, so it is refused. */
static void test_graphs_that_write_variables_do_not_run(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *root = burn_module_create(dev, &err);
    burn_var *v = burn_module_add(root, "v", VEC(1, 2), 0, &err);
    assert_non_null(v);
    burn_scope_begin();
    burn_tensor *x = VEC(3, 4);
    begin();
    (void)burn_capture_input(x, "x");
    assert_int_equal(burn_var_assign(v, burn_mul(x, x), &err), BURN_OK);
    burn_tensor *y = burn_neg(x);
    burn_graph *graph = end(&y, 1, root);
    burn_tensor *kept = burn_var_get(v);
    burn_tensor *out = NULL;
    burn_tensor *in = VEC(5, 6);
    int32_t rc = burn_graph_run(graph, dev, &in, 1, state_of, root, &out, 1, &err);
    assert_int_equal(rc, BURN_E_UNSUPPORTED);
    check_failed(out, BURN_E_UNSUPPORTED, "assign", NULL);
    CHECK(kept, 9, 16);
    CHECK(burn_var_get(v), 9, 16);
    burn_graph_free(graph);
    burn_scope_end();
    burn_module_free(root);
}

static void test_misuse(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = VEC(1, 2);
    assert_null(burn_capture_end(&x, 1, NULL, &err));
    assert_int_equal(err.code, BURN_E_STATE);
    begin();
    assert_int_equal(burn_capture_begin(&err), BURN_E_STATE);
    burn_tensor *bad = burn_add(x, VEC(1, 2, 3));
    err.code = BURN_OK;
    assert_null(burn_capture_end(&bad, 1, NULL, &err));
    assert_int_equal(err.code, BURN_E_SHAPE);
    begin();
    burn_tensor *scalar = burn_scalar(1.0);
    err.code = BURN_OK;
    assert_null(burn_capture_end(&scalar, 1, NULL, &err));
    assert_int_equal(err.code, BURN_E_INVALID);
    begin();
    assert_null(burn_capture_end(NULL, 3, NULL, &err));
    assert_int_equal(err.code, BURN_E_INVALID);
    burn_graph *graph = sample_graph();
    burn_tensor *out[2];
    assert_int_equal(burn_graph_run(graph, dev, NULL, 1, NULL, NULL, out, 1, &err), BURN_E_INVALID);
    assert_int_equal(burn_graph_run(graph, dev, &x, 1, NULL, NULL, NULL, 1, &err), BURN_E_INVALID);
    assert_int_equal(burn_graph_run(graph, dev, NULL, 0, NULL, NULL, out, 1, &err), BURN_E_INVALID);
    check_failed(out[0], BURN_E_INVALID, "inputs", NULL);
    assert_int_equal(burn_graph_run(graph, dev, &x, 1, NULL, NULL, out, 2, &err), BURN_E_INVALID);
    check_failed(out[1], BURN_E_INVALID, "outputs", NULL);
    assert_ptr_not_equal(out[0], out[1]);
    assert_int_equal(burn_graph_run(graph, dev, &bad, 1, NULL, NULL, out, 1, &err), BURN_E_SHAPE);
    burn_tensor *wrong = VEC(1, 2, 3);
    assert_int_equal(burn_graph_run(graph, dev, &wrong, 1, NULL, NULL, out, 1, &err), BURN_E_SHAPE);
    check_failed(out[0], BURN_E_SHAPE, "add", NULL);
    /* Sizes may differ, so an op found out; the input that began it stands in front. */
    check_failed(out[0], BURN_E_SHAPE, "graph: input 0 \"x\" is f32[2], given is f32[3]: ", NULL);
    burn_graph_free(graph);
    burn_graph_free(NULL);
}

static void test_equal_programs_have_equal_bytes(void **state)
{
    (void)state;
    burn_graph *a = sample_graph();
    burn_graph *b = sample_graph();
    size_t n_a;
    size_t n_b;
    const burn_window *x = burn_graph_window(a, &n_a);
    const burn_window *y = burn_graph_window(b, &n_b);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(x, y, n_a);
    assert_int_equal(x->hash_absolute, y->hash_absolute);
    begin();
    burn_tensor *in = burn_capture_input(VEC(1, 2), "x");
    burn_tensor *out = burn_softmax(burn_add(burn_mul(in, burn_scalar(3.0)), VEC(10, 20)), 0);
    burn_graph *c = end(&out, 1, NULL);
    const burn_window *z = burn_graph_window(c, NULL);
    assert_int_equal(z->hash_relative, x->hash_relative);
    assert_int_not_equal(z->hash_absolute, x->hash_absolute);
    burn_graph *copy = burn_graph_from_bytes(x, n_a, NULL);
    assert_non_null(copy);
    burn_tensor *one = VEC(3, -4);
    burn_tensor *r[2];
    run(a, &one, 1, &r[0], 1);
    run(copy, &one, 1, &r[1], 1);
    check_same(r[0], r[1]);
    burn_graph_free(copy);
    burn_graph_free(a);
    burn_graph_free(b);
    burn_graph_free(c);
}

/* FNV-1a of what stands behind the head, as window.h's hash_absolute. */
static void put_hash_right(unsigned char *bytes, size_t size)
{
    burn_window *w = (burn_window *)(void *)bytes;
    w->hash_absolute = UINT64_C(14695981039346656037);
    for (size_t i = sizeof(*w); i < size; i++) {
        w->hash_absolute = (w->hash_absolute ^ bytes[i]) * UINT64_C(1099511628211);
    }
}

/* Every byte takes every single-bit error. With its old hash a window is refused; with a new one it
 * is refused, or safe to print and to run. */
static void test_altered_bytes(void **state)
{
    (void)state;
    burn_graph *graph = sample_graph();
    size_t size;
    const burn_window *w = burn_graph_window(graph, &size);
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    burn_err err = BURN_ERR_INIT;
    for (size_t n = 0; n < size; n += 3) {
        unsigned char *cut = malloc(n + 1);
        assert_non_null(cut);
        memcpy(cut, w, n);
        assert_int_not_equal(burn_window_check(cut, n, &err), BURN_OK);
        free(cut);
    }
    uint32_t refused = 0;
    burn_memory_limit(dev, UINT64_C(64) << 20);
    for (size_t i = 0; i < size * 8; i++) {
        memcpy(bytes, w, size);
        bytes[i / 8] ^= (unsigned char)(1u << (i % 8));
        if (i >= sizeof(*w) * 8) {
            assert_int_not_equal(burn_window_check(bytes, size, &err), BURN_OK);
        }
        put_hash_right(bytes, size);
        err = (burn_err)BURN_ERR_INIT;
        burn_graph *altered = burn_graph_from_bytes(bytes, size, &err);
        if (altered == NULL) {
            assert_true(err.code < 0 && err.text[0] != '\0');
            refused++;
            continue;
        }
        burn_scope_begin();
        char text[256];
        (void)burn_graph_text(altered, text, sizeof(text));
        burn_tensor *in = VEC(1, 2);
        burn_tensor *out = NULL;
        if (burn_graph_run(altered, dev, &in, 1, NULL, NULL, &out, 1, &err) == BURN_OK) {
            double values[64];
            int64_t n = burn_numel(out) < 64 ? burn_numel(out) : 0;
            (void)burn_read_f64(out, values, n, &err);
        }
        burn_scope_end();
        burn_graph_free(altered);
    }
    burn_memory_limit(dev, 0);
    assert_in_range(refused, size, size * 8 - size);
    free(bytes);
    burn_graph_free(graph);
    (void)burn_sync(dev, NULL);
    CHECK(burn_add(VEC(1), VEC(2)), 3);
}

/* A constant that was handed to its op is written down with the values that the op read. */
static void test_a_moved_constant(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *in = VEC(0, 0, 0);
    burn_tensor *x = burn_keep(burn_add(VEC(4, 9, 16), burn_scalar(0.0)));
    assert_int_equal(burn_capture_begin(&err), BURN_OK);
    (void)burn_capture_input(in, "in");
    burn_tensor *y = burn_add(burn_sqrt(burn_move(x)), in);
    burn_graph *graph = burn_capture_end(&y, 1, NULL, &err);
    assert_non_null(graph);
    CHECK(y, 2, 3, 4);
    burn_tensor *out = NULL;
    assert_int_equal(burn_graph_run(graph, dev, &in, 1, NULL, NULL, &out, 1, &err), BURN_OK);
    CHECK(out, 2, 3, 4);
    burn_graph_free(graph);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_a_graph_runs_again),
        CORE_TEST(test_inputs_of_another_kind),
        CORE_TEST(test_composites_stay_whole_and_print),
        CORE_TEST(test_order_of_inputs_and_outputs),
        CORE_TEST(test_states_have_names),
        CORE_TEST(test_gradients_are_captured),
        CORE_TEST(test_graphs_that_write_variables_do_not_run),
        CORE_TEST(test_a_moved_constant),
        CORE_TEST(test_misuse),
        CORE_TEST(test_equal_programs_have_equal_bytes),
        CORE_TEST(test_altered_bytes),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
