/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_trace.c - where calls come from: tags, lines of calls, math modes, and what is said
 * when a root scope grows or an argument is no list.
 */
#define BURN_TRACE_CALLS
#include "core_test.h"

#include "tensor/tensor.h"

#include <burn/plugin.h>
#include <burn/trace.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void check_tag(const char *wanted)
{
    char text[160];
    assert_int_equal(burn_tag_text(burn_tag(), text, sizeof(text)), strlen(wanted));
    assert_string_equal(text, wanted);
}

static void tags__nest_and_are_equal_for_equal_places(void **state)
{
    (void)state;
    assert_int_equal(burn_tag(), 0);
    burn_tag_begin("encoder");
    uint64_t encoder = burn_tag();
    burn_tag_begin("0");
    uint64_t first = burn_tag();
    check_tag("encoder.0");
    burn_tag_end();
    assert_int_equal(burn_tag(), encoder);
    burn_tag_begin("0");
    assert_int_equal(burn_tag(), first);
    burn_tag_end();
    burn_tag_begin("1\x1b[2J");
    check_tag("encoder.1?[2J");
    burn_tag_end();
    burn_tag_end();
    assert_int_equal(burn_tag(), 0);
    burn_tag_end(); /* one too many is no harm */
    burn_tag_begin(NULL);
    check_tag("");
    burn_tag_end();
    char text[8];
    assert_int_equal(burn_tag_text(encoder, text, 4), 7);
    assert_string_equal(text, "enc");
    assert_int_equal(burn_tag_text(UINT64_MAX, text, sizeof(text)), 0);
}

static void tags__deeper_than_there_is_room_are_counted(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        burn_tag_begin("d");
    }
    for (int i = 0; i < 199; i++) {
        burn_tag_end();
    }
    check_tag("d");
    burn_tag_end();
    assert_int_equal(burn_tag(), 0);
}

static void tags__modules_are_places(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *m = burn_module_create(dev, &err);
    burn_module *encoder = burn_module_child(m, "encoder", &err);
    assert_non_null(burn_nn_linear(encoder, "out", 4, 2, 1, &err));
    burn_tensor *y = burn_forward(m, VEC(1, 2, 3));
    check_failed(y, BURN_E_SHAPE, "[at encoder.out]", NULL);
    burn_module_free(m);
}

/* A call inside of the arguments of another, on a line of its own. */
static burn_tensor *negative(void)
{
    return burn_neg(VEC(1, 2));
}

static void lines__each_call_has_its_own(void **state)
{
    (void)state;
    char place[64];
    burn_tag_begin("step");
    int line = __LINE__ + 1;
    burn_tensor *y = burn_sub(negative(), VEC(1, 2, 3));
    check_tag("step");
    burn_tag_end();
    (void)snprintf(place, sizeof(place), "[at step (test_core_trace.c:%d)]", line);
    check_failed(y, BURN_E_SHAPE, "sub:", place, NULL);
    /* What depends on it keeps the first place. */
    check_failed(burn_neg(burn_neg(y)), BURN_E_SHAPE, place, NULL);
    CHECK(burn_add(VEC(1), VEC(2)), 3);
}

static void lines__failures_that_come_late_have_it_too(void **state)
{
    (void)state;
    char place[64];
    int line = __LINE__ + 1;
    burn_tensor *y = burn_select(VEC(1, 2, 3), index_vec(1, (const int64_t[]){7}), 0);
    (void)snprintf(place, sizeof(place), "[at test_core_trace.c:%d]", line);
    check_read_fails(y, BURN_E_DATA, "7", place, NULL);
}

static void math__begins_and_ends(void **state)
{
    (void)state;
    const burni_thread *thread = burni_thread_get();
    assert_int_equal(thread->math, 0);
    burn_math_begin(BURN_MATH_REDUCED);
    burn_math_begin(0);
    assert_int_equal(thread->math, 0);
    burn_math_end();
    assert_int_equal(thread->math, BURN_MATH_REDUCED);
    const float values[4] = {1, 2, 3, 4};
    CHECK_NEAR(burn_matmul(mat(2, 2, values), mat(2, 2, values)), 1e-2, 7, 10, 15, 22);
    CHECK(burn_add(VEC(1), VEC(2)), 3);
    burn_math_end();
    burn_math_end();
    assert_int_equal(thread->math, 0);
}

static int warnings;

static void BURN_CALL count_warnings(void *user, int32_t level, const char *source,
                                     const char *text)
{
    (void)user;
    warnings += level == BURN_LOG_WARN && strcmp(source, "scope") == 0 &&
                strstr(text, "burn_scope_begin") != NULL;
}

static void hold_scalars(int n)
{
    for (int i = 0; i < n; i++) {
        (void)burn_scalar(1.0);
    }
}

/* docs/modes.md: more than 65,536; the list may have grown to that within a scope before. */
static void *grow_root_scope(void *counts)
{
    int *told = counts;
    burn_scope_begin();
    hold_scalars(70000);
    burn_scope_end();
    told[0] = warnings;
    hold_scalars(65536);
    told[1] = warnings;
    hold_scalars(1);
    told[2] = warnings;
    burn_scope_flush();
    hold_scalars(200000);
    burn_scope_flush();
    return NULL;
}

/* On a thread of its own, whose list nothing has grown. */
static void root_scope__that_grows_is_told_of_once(void **state)
{
    (void)state;
    pthread_t thread;
    int told[3] = {-1, -1, -1};
    warnings = 0;
    burn_log_set(count_warnings, NULL, BURN_LOG_WARN);
    assert_int_equal(pthread_create(&thread, NULL, grow_root_scope, told), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    burn_log_set(NULL, NULL, 0);
    assert_int_equal(told[0], 0);
    assert_int_equal(told[1], 0);
    assert_int_equal(told[2], 1);
    assert_int_equal(warnings, 1);
}

static void messages__say_which_argument_is_no_list(void **state)
{
    (void)state;
    float data[4] = {0};
    check_failed(burn_tensor_from_data(dev, BURN_F32, 2, NULL, data), BURN_E_INVALID,
                 "dims is NULL", NULL);
    check_failed(burn_zeros(dev, BURN_F32, 2, NULL), BURN_E_INVALID, "dims is NULL", NULL);
    check_failed(burn_reshape(VEC(1), 1, NULL), BURN_E_INVALID, "dims is NULL", NULL);
    check_failed(burn_permute(VEC(1), 1, NULL), BURN_E_INVALID, "axes is NULL", NULL);
    check_failed(burn_zeros(dev, BURN_F32, 9, DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1)), BURN_E_SHAPE,
                 "9 numbers", "0 to 8", NULL);
    check_failed(burn_to_device(burn_scalar(1.0), dev), BURN_E_INVALID, "a scalar", NULL);
    check_failed(burn_to_device(NULL, dev), BURN_E_INVALID, "the tensor is NULL", NULL);
    check_failed(burn_to_device(VEC(1), NULL), BURN_E_INVALID, "the device is NULL", NULL);
    burn_tensor *w = burn_zeros(dev, BURN_F32, 4, DIMS(1, 1, 1, 1));
    check_failed(burn_conv2d(VEC(1, 2), w, NULL, NULL), BURN_E_SHAPE, "x is [2] of rank 1",
                 "must have rank 4", NULL);
}

static void text__of_a_large_tensor_reads_what_it_shows(void **state)
{
    (void)state;
    char text[256];
    burn_tensor *x = burn_transpose(count_up(dev, 2, DIMS(5, 100), 0.0), 0, 1);
    (void)burn_tensor_text(burn_slice(x, 1, 1, 3, 1), text, sizeof(text));
    assert_string_equal(text, "f32[100,2] {{100, 200}, {101, 201}, {102, 202}, ..., {197, 297}, "
                              "{198, 298}, {199, 299}}");
    (void)burn_tensor_text(burn_arange(dev, BURN_I64, 1000000, 0.0, 1.0), text, sizeof(text));
    assert_string_equal(text, "i64[1000000] {0, 1, 2, ..., 999997, 999998, 999999}");
    (void)burn_tensor_text(count_up(dev, 1, DIMS(8), 0.0), text, sizeof(text));
    assert_string_equal(text, "f32[8] {0, 1, 2, 3, 4, 5, 6, 7}");
    (void)burn_tensor_text(burn_zeros(dev, BURN_F32, 2, DIMS(0, 20)), text, sizeof(text));
    assert_string_equal(text, "f32[0,20] {}");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(tags__nest_and_are_equal_for_equal_places),
        CORE_TEST(tags__deeper_than_there_is_room_are_counted),
        CORE_TEST(tags__modules_are_places),
        CORE_TEST(lines__each_call_has_its_own),
        CORE_TEST(lines__failures_that_come_late_have_it_too),
        CORE_TEST(math__begins_and_ends),
        CORE_TEST(root_scope__that_grows_is_told_of_once),
        CORE_TEST(messages__say_which_argument_is_no_list),
        CORE_TEST(text__of_a_large_tensor_reads_what_it_shows),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
