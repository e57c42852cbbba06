/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_mnist.c - MNIST as a dataset: the project's own copy of the files (its folder is argument
 * 1), and folders whose two files do not belong together.
 *
 * The facts about the files (label counts, first labels) are those that MNIST is known by.
 */
#define _POSIX_C_SOURCE 200809L

#include "train_test.h"

#include <burn/data.h>
#include <burn/dtype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIXELS = 784 };
static const char *folder;

static void train__has_the_known_labels(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_mnist *mnist;
    if (burn_mnist_open(folder, 0, &mnist, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    const burn_dataset *data = burn_mnist_dataset(mnist);
    assert_int_equal(data->count, 60000);
    static const int64_t first[] = {5, 0, 4, 1, 9, 2, 1, 3, 1, 4};
    static const int64_t expected[] = {5923, 6742, 5958, 6131, 5842,
                                       5421, 5918, 6265, 5851, 5949};
    int64_t counts[10] = {0};
    float image[PIXELS];
    double sum = 0.0;
    for (int64_t i = 0; i < data->count; i++) {
        int64_t label = -1;
        void *const out[] = {image, &label};
        assert_int_equal(data->get(data->ctx, i, out, NULL), BURN_OK);
        assert_in_range(label, 0, 9);
        counts[label]++;
        if (i < 10) {
            assert_int_equal(label, first[i]);
        }
        for (int p = 0; p < PIXELS; p++) {
            sum += (double)image[p];
        }
    }
    assert_memory_equal(counts, expected, sizeof(counts));
    assert_true(fabs(sum / (60000.0 * PIXELS) - 0.1307) < 1e-4);
    burn_mnist_close(mnist);
}

static void test__is_normalized_on_request(void **state)
{
    (void)state;
    burn_mnist *mnist;
    assert_int_equal(burn_mnist_open(folder, BURN_MNIST_TEST | BURN_MNIST_NORMALIZE, &mnist, NULL),
                     BURN_OK);
    const burn_dataset *data = burn_mnist_dataset(mnist);
    assert_int_equal(data->count, 10000);
    assert_int_equal(data->n_fields, 2);
    assert_int_equal(data->fields[0].dtype, BURN_F32);
    assert_int_equal(data->fields[1].dtype, BURN_I64);
    float image[PIXELS];
    int64_t label;
    void *const out[] = {image, &label};
    assert_int_equal(data->get(data->ctx, 0, out, NULL), BURN_OK);
    assert_int_equal(label, 7);
    assert_true(image[0] == (0.0F - 0.1307F) / 0.3081F);
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(data->get(data->ctx, 10000, out, &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "10000"));
    assert_int_equal(data->get(data->ctx, -1, out, &err), BURN_E_INVALID);
    burn_mnist_close(mnist);
}

static void write_file(const char *dir, const char *name, const unsigned char *head, size_t n_head,
                       size_t n_zero, int last)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(head, 1, n_head, file), n_head);
    for (size_t i = 0; i + 1 < n_zero; i++) {
        assert_int_equal(fputc(0, file), 0);
    }
    assert_int_equal(fputc(last, file), last);
    assert_int_equal(fclose(file), 0);
}

static void expect_refused(const char *dir, int32_t code, const char *text)
{
    burn_err err = BURN_ERR_INIT;
    burn_mnist *mnist;
    assert_int_equal(burn_mnist_open(dir, 0, &mnist, &err), code);
    assert_null(mnist);
    if (strstr(err.text, text) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", err.text, text);
    }
}

static void folders__that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const unsigned char two[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28};
    static const unsigned char odd[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 27};
    static const unsigned char two_labels[] = {0, 0, 8, 1, 0, 0, 0, 2};
    static const unsigned char three_labels[] = {0, 0, 8, 1, 0, 0, 0, 3};
    char dir[] = "mnist_test_XXXXXX";
    assert_non_null(mkdtemp(dir));
    expect_refused(dir, BURN_E_NOT_FOUND, "train-images-idx3-ubyte.gz");
    write_file(dir, "train-images-idx3-ubyte", two, sizeof(two), (size_t)2 * PIXELS, 0);
    expect_refused(dir, BURN_E_NOT_FOUND, "train-labels-idx1-ubyte");
    write_file(dir, "train-labels-idx1-ubyte", three_labels, sizeof(three_labels), 3, 0);
    expect_refused(dir, BURN_E_FORMAT, "with 3 items; expected u8 [2]");
    write_file(dir, "train-labels-idx1-ubyte", two_labels, sizeof(two_labels), 2, 10);
    expect_refused(dir, BURN_E_FORMAT, "label 10 of item 1");
    write_file(dir, "train-labels-idx1-ubyte", two_labels, sizeof(two_labels), 2, 9);
    burn_mnist *mnist;
    assert_int_equal(burn_mnist_open(dir, 0, &mnist, NULL), BURN_OK);
    burn_mnist_close(mnist);
    write_file(dir, "train-images-idx3-ubyte", odd, sizeof(odd), (size_t)2 * 28 * 27, 0);
    expect_refused(dir, BURN_E_FORMAT, "[2,28,27]");
    expect_refused(NULL, BURN_E_INVALID, "mnist: the folder is NULL; is the variable set");
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/train-images-idx3-ubyte", dir);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof(path), "%s/train-labels-idx1-ubyte", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    burn_mnist_close(NULL);
    assert_null(burn_mnist_dataset(NULL));
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: test_mnist FOLDER\n");
        return 2;
    }
    folder = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train__has_the_known_labels),
        cmocka_unit_test(test__is_normalized_on_request),
        cmocka_unit_test(folders__that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests_name("mnist", tests, NULL, NULL);
}
