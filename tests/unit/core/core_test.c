/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * core_test.c - what core_test.h declares. Failures of helpers name the tensor's text, so that a
 * red test tells what was seen.
 */
#include "core_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

burn_device *dev;
burn_device *ad;
int on_mock;
uint32_t window;

int core_test_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n)
{
    burn_err err = BURN_ERR_INIT;
    if (argc < 3) {
        (void)fprintf(stderr, "usage: %s DEVICE WINDOW\n", argv[0]);
        return 2;
    }
    window = (uint32_t)strtoul(argv[2], NULL, 10);
    if (burn_option_set("WINDOW", argv[2], &err) == BURN_OK) {
        dev = burn_device_open(argv[1], &err);
    }
    if (dev == NULL) {
        (void)fprintf(stderr, "%s: %s\n", argv[1], err.text);
        return 1;
    }
    ad = burn_device_autodiff(dev);
    on_mock = strncmp(argv[1], "mock", 4) == 0;
    int rc = _cmocka_run_group_tests(argv[0], tests, n, NULL, NULL);
    burn_shutdown();
    return rc;
}

int core_test_main_explained(int argc, char **argv, const struct CMUnitTest *tests, size_t n)
{
    char folder[] = "/tmp/burn-test-explain-XXXXXX";
    char path[96];
    if (mkdtemp(folder) == NULL || setenv("BURN_EXPLAIN", folder, 1) != 0) {
        return 1;
    }
    int rc = core_test_main(argc, argv, tests, n);
    (void)snprintf(path, sizeof(path), "%s/%ld.burn", folder, (long)getpid());
    (void)unlink(path);
    (void)rmdir(folder);
    return rc;
}

int core_setup(void **state)
{
    (void)state;
    burn_seed(1);
    return 0;
}

int core_teardown(void **state)
{
    (void)state;
    burn_scope_flush();
    (void)burn_sync(dev, NULL);
    return burn_grad_enabled() ? 0 : -1;
}

burn_tensor *vec(int64_t n, const float *values)
{
    return burn_tensor_from_data(dev, BURN_F32, 1, &n, values);
}

burn_tensor *mat(int64_t rows, int64_t columns, const float *values)
{
    return burn_tensor_from_data(dev, BURN_F32, 2, DIMS(rows, columns), values);
}

burn_tensor *count_up(burn_device *device, uint32_t rank, const int64_t *dims, double start)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < rank; d++) {
        n *= dims[d];
    }
    return burn_reshape(burn_arange(device, BURN_F32, n, start, 1.0), rank, dims);
}

burn_tensor *index_vec(int64_t n, const int64_t *values)
{
    return burn_tensor_from_data(dev, BURN_I64, 1, &n, values);
}

static void show(burn_tensor *t)
{
    char text[512];
    (void)burn_tensor_text(t, text, sizeof(text));
    print_error("seen: %s\n", text);
}

static int near(double seen, double want, double tolerance)
{
    if (isnan(want) || isnan(seen)) {
        return isnan(want) && isnan(seen);
    }
    if (seen == want) {
        return 1;
    }
    double scale = fabs(want) > 1.0 ? fabs(want) : 1.0;
    return fabs(seen - want) <= tolerance * scale;
}

void check_values(int line, burn_tensor *t, size_t n, const double *values, double tolerance)
{
    burn_err err = BURN_ERR_INIT;
    double *seen = calloc(n + 1, sizeof(*seen));
    assert_non_null(seen);
    int32_t rc = burn_read_f64(t, seen, (int64_t)n, &err);
    if (rc != BURN_OK) {
        free(seen);
        fail_msg("line %d: read: %s", line, err.text);
    }
    for (size_t i = 0; i < n; i++) {
        if (!near(seen[i], values[i], tolerance)) {
            double got = seen[i];
            free(seen);
            show(t);
            fail_msg("line %d: element %zu is %.9g, not %.9g", line, i, got, values[i]);
        }
    }
    free(seen);
}

void check_shape(const burn_tensor *t, uint32_t rank, const int64_t *dims)
{
    burn_err err = BURN_ERR_INIT;
    if (burn_tensor_error(t, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(burn_rank(t), rank);
    for (uint32_t d = 0; d < rank; d++) {
        assert_int_equal(burn_dim(t, d), dims[d]);
    }
}

static unsigned char *bytes_of(burn_tensor *t, size_t *size)
{
    burn_err err = BURN_ERR_INIT;
    *size = (size_t)burn_numel(t) * burn_dtype_size(burn_dtype_of(t));
    unsigned char *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    int32_t rc = burn_read(t, bytes, *size, &err);
    if (rc != BURN_OK) {
        free(bytes);
        fail_msg("read: %s", err.text);
    }
    return bytes;
}

void check_same_at(int line, burn_tensor *a, burn_tensor *b)
{
    size_t n_a;
    size_t n_b;
    unsigned char *x = bytes_of(a, &n_a);
    unsigned char *y = bytes_of(b, &n_b);
    int same = n_a == n_b && burn_dtype_of(a) == burn_dtype_of(b) && memcmp(x, y, n_a) == 0;
    free(x);
    free(y);
    if (!same) {
        show(a);
        show(b);
        fail_msg("line %d: the two differ", line);
    }
    assert_int_equal(burn_rank(a), burn_rank(b));
    for (uint32_t d = 0; d < burn_rank(a); d++) {
        assert_int_equal(burn_dim(a, d), burn_dim(b, d));
    }
}

static void check_words(int line, const burn_err *err, int32_t code, va_list words)
{
    if (err->code != code) {
        fail_msg("line %d: code %s, not %s: %s", line, burn_status_name(err->code),
                 burn_status_name(code), err->text);
    }
    const char *word = va_arg(words, const char *);
    while (word != NULL) {
        if (strstr(err->text, word) == NULL) {
            fail_msg("line %d: \"%s\" is not in: %s", line, word, err->text);
        }
        word = va_arg(words, const char *);
    }
}

void check_failed_at(int line, burn_tensor *t, int32_t code, ...)
{
    burn_err err = BURN_ERR_INIT;
    assert_non_null(t);
    if (burn_ok(t)) {
        fail_msg("line %d: the call did not fail", line);
    }
    int32_t rc = burn_tensor_error(t, &err);
    assert_int_equal(rc, err.code);
    va_list words;
    va_start(words, code);
    check_words(line, &err, code, words);
    va_end(words);
}

void check_read_fails_at(int line, burn_tensor *t, int32_t code, ...)
{
    burn_err err = BURN_ERR_INIT;
    double *values = calloc((size_t)burn_numel(t) + 1, sizeof(*values));
    assert_non_null(values);
    int32_t rc = burn_read_f64(t, values, burn_numel(t), &err);
    free(values);
    assert_int_equal(rc, err.code);
    va_list words;
    va_start(words, code);
    check_words(line, &err, code, words);
    va_end(words);
}

void check_clean(void)
{
    burn_err err = BURN_ERR_INIT;
    if (burn_sync(dev, &err) != BURN_OK) {
        fail_msg("the device reports: %s", err.text);
    }
}

uint64_t in_use(void)
{
    (void)burn_sync(dev, NULL); /* looks at fault words, which are memory too */
    burn_memory memory;
    BURN_INIT(&memory, burn_memory);
    assert_int_equal(burn_memory_report(dev, &memory, NULL), BURN_OK);
    return memory.in_use;
}

uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}
