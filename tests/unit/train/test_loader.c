/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_loader.c - the batch loader: order, ends, early breaks, failures, memory, threads. Runs
 * under the thread sanitizer too (suite `threads`).
 *
 * The dataset of these tests makes item i out of i: two floats {i, -i} and the label 10 * i, and
 * can be told to fail at an item or to be slow. It counts how many threads are inside `get`.
 */
#define _POSIX_C_SOURCE 200809L

#include "train_test.h"

#include <burn/data.h>
#include <burn/dtype.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct numbers {
    int64_t fail_at; /* -1: never */
    int64_t fail_too;
    int silent; /* fails without a text */
    int slow;
    atomic_int inside;
    atomic_int most_inside;
} numbers;

static const burn_field fields[] = {
    {"pair", BURN_F32, 1, {0}, {2}},
    {"label", BURN_I64, 0, {0}, {0}},
};

static void pause_briefly(void)
{
    const struct timespec wait = {0, 200000};
    (void)nanosleep(&wait, NULL);
}

static int32_t BURN_CALL get_number(void *ctx, int64_t index, void *const *out, burn_err *err)
{
    numbers *n = ctx;
    int inside = atomic_fetch_add(&n->inside, 1) + 1;
    int most = atomic_load(&n->most_inside);
    while (inside > most && !atomic_compare_exchange_weak(&n->most_inside, &most, inside)) {
    }
    if (n->slow) {
        pause_briefly();
    }
    (void)atomic_fetch_sub(&n->inside, 1);
    if (index == n->fail_at || index == n->fail_too) {
        if (!n->silent) {
            err->code = BURN_E_IO;
            (void)snprintf(err->text, sizeof(err->text), "file %lld.png is damaged",
                           (long long)index);
        }
        return BURN_E_IO;
    }
    float *pair = out[0];
    pair[0] = (float)index;
    pair[1] = -(float)index;
    int64_t label = 10 * index;
    memcpy(out[1], &label, sizeof(label));
    return BURN_OK;
}

static numbers plain_numbers(void)
{
    numbers n;
    memset(&n, 0, sizeof(n));
    n.fail_at = -1;
    n.fail_too = -1;
    return n;
}

static burn_loader *make(numbers *n, int64_t count, int64_t batch, uint32_t workers,
                         uint32_t flags)
{
    burn_dataset data;
    BURN_INIT(&data, burn_dataset);
    data.n_fields = 2;
    data.fields = fields;
    data.field_stride = sizeof(fields[0]);
    data.count = count;
    data.ctx = n;
    data.get = get_number;
    burn_loader_opts opts;
    BURN_INIT(&opts, burn_loader_opts);
    opts.batch_size = batch;
    opts.workers = workers;
    opts.flags = flags;
    opts.seed = 99;
    burn_loader *loader;
    burn_err err = BURN_ERR_INIT;
    if (burn_loader_create(&data, &opts, &loader, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    return loader;
}

/* Reads to the end, checks every value, stores the order; returns the number of items. */
static int64_t read_epoch(burn_loader *loader, int64_t *order, int64_t *out_batches)
{
    burn_batch batch;
    BURN_INIT(&batch, burn_batch);
    int64_t n = 0;
    int64_t batches = 0;
    int32_t code;
    while ((code = burn_loader_next(loader, &batch, NULL)) == BURN_OK) {
        const float *pairs = batch.data[0];
        const int64_t *labels = batch.data[1];
        assert_int_equal(batch.n_fields, 2);
        assert_null(batch.data[2]);
        for (int64_t i = 0; i < batch.n_items; i++) {
            assert_true(pairs[2 * i] == (float)batch.indices[i]);
            assert_true(pairs[2 * i + 1] == -(float)batch.indices[i]);
            assert_int_equal(labels[i], 10 * batch.indices[i]);
            order[n++] = batch.indices[i];
        }
        batches++;
    }
    assert_int_equal(code, BURN_E_END);
    assert_int_equal(burn_loader_next(loader, &batch, NULL), BURN_E_END);
    if (out_batches != NULL) {
        *out_batches = batches;
    }
    return n;
}

static void plain__keeps_the_order(void **state)
{
    (void)state;
    numbers n = plain_numbers();
    for (uint32_t workers = 0; workers < 4; workers++) {
        burn_loader *loader = make(&n, 10, 4, workers, 0);
        int64_t order[10];
        int64_t batches;
        assert_int_equal(burn_loader_batches(loader), 3);
        assert_int_equal(read_epoch(loader, order, &batches), 10);
        assert_int_equal(batches, 3);
        for (int64_t i = 0; i < 10; i++) {
            assert_int_equal(order[i], i);
        }
        burn_loader_destroy(loader);
    }
}

static void B222_last_short_batch__is_kept_or_dropped(void **state)
{
    (void)state;
    numbers n = plain_numbers();
    int64_t order[10];
    burn_loader *loader = make(&n, 10, 4, 2, BURN_LOADER_DROP_LAST);
    assert_int_equal(burn_loader_batches(loader), 2);
    assert_int_equal(read_epoch(loader, order, NULL), 8);
    burn_loader_destroy(loader);
    loader = make(&n, 8, 4, 2, BURN_LOADER_DROP_LAST);
    assert_int_equal(read_epoch(loader, order, NULL), 8);
    burn_loader_destroy(loader);
    loader = make(&n, 8, 4, 2, 0);
    assert_int_equal(burn_loader_batches(loader), 2);
    burn_loader_destroy(loader);
}

static void B222_small_dataset__is_one_short_batch(void **state)
{
    (void)state;
    numbers n = plain_numbers();
    int64_t order[3];
    for (uint32_t workers = 0; workers < 5; workers += 4) {
        burn_loader *loader = make(&n, 3, 64, workers, BURN_LOADER_SHUFFLE);
        int64_t batches;
        assert_int_equal(read_epoch(loader, order, &batches), 3);
        assert_int_equal(batches, 1);
        burn_loader_destroy(loader);
        loader = make(&n, 3, 64, workers, BURN_LOADER_DROP_LAST);
        assert_int_equal(burn_loader_batches(loader), 0);
        assert_int_equal(read_epoch(loader, order, NULL), 0);
        burn_loader_destroy(loader);
    }
}

static void B222_empty_dataset__ends_at_once(void **state)
{
    (void)state;
    numbers n = plain_numbers();
    for (uint32_t workers = 0; workers < 5; workers += 4) {
        burn_loader *loader = make(&n, 0, 4, workers, BURN_LOADER_SHUFFLE);
        int64_t order[1];
        assert_int_equal(burn_loader_batches(loader), 0);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            assert_int_equal(burn_loader_begin(loader, epoch, 0, NULL), BURN_OK);
            assert_int_equal(read_epoch(loader, order, NULL), 0);
        }
        burn_loader_destroy(loader);
    }
}

static void B222_order__is_the_same_for_any_number_of_workers(void **state)
{
    (void)state;
    enum { N = 103, EPOCHS = 3 };
    numbers n = plain_numbers();
    int64_t expected[EPOCHS][N];
    int64_t order[N];
    for (uint32_t workers = 0; workers <= 5; workers++) {
        burn_loader *loader = make(&n, N, 8, workers, BURN_LOADER_SHUFFLE);
        for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
            assert_int_equal(burn_loader_begin(loader, epoch, 0, NULL), BURN_OK);
            assert_int_equal(read_epoch(loader, workers == 0 ? expected[epoch] : order, NULL), N);
            if (workers > 0) {
                assert_memory_equal(order, expected[epoch], sizeof(order));
            }
        }
        burn_loader_destroy(loader);
    }
    assert_memory_not_equal(expected[0], expected[1], sizeof(order));
}

static void begin__resumes_in_the_middle(void **state)
{
    (void)state;
    enum { N = 50, BATCH = 8, FIRST = 3 };
    numbers n = plain_numbers();
    int64_t all[N];
    int64_t rest[N];
    burn_loader *loader = make(&n, N, BATCH, 3, BURN_LOADER_SHUFFLE);
    assert_int_equal(burn_loader_begin(loader, 7, 0, NULL), BURN_OK);
    assert_int_equal(read_epoch(loader, all, NULL), N);
    assert_int_equal(burn_loader_begin(loader, 7, FIRST, NULL), BURN_OK);
    assert_int_equal(read_epoch(loader, rest, NULL), N - FIRST * BATCH);
    assert_memory_equal(rest, all + FIRST * BATCH, sizeof(int64_t) * (N - FIRST * BATCH));
    assert_int_equal(burn_loader_begin(loader, 7, 7, NULL), BURN_OK);
    assert_int_equal(read_epoch(loader, rest, NULL), 0);
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_loader_begin(loader, 7, 8, &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "7 batches"));
    burn_loader_destroy(loader);
}

static void next__keeps_the_last_batch_whole_until_the_next_call(void **state)
{
    (void)state;
    numbers n = plain_numbers();
    burn_loader *loader = make(&n, 64, 2, 4, 0);
    burn_batch batch;
    BURN_INIT(&batch, burn_batch);
    for (int64_t b = 0; b < 32; b++) {
        assert_int_equal(burn_loader_next(loader, &batch, NULL), BURN_OK);
        pause_briefly(); /* the workers run on as far as they may */
        assert_int_equal(batch.position, b);
        assert_true(((const float *)batch.data[0])[2] == (float)(2 * b + 1));
    }
    burn_loader_destroy(loader);
}

/* 4 workers, 50 epochs, an early break in epoch 3 (and others), flat memory, no hang. */
static void B222_epochs__leave_memory_flat(void **state)
{
    (void)state;
    enum { N = 200, EPOCHS = 50, WARM = 5 };
    numbers n = plain_numbers();
    burn_loader *loader = make(&n, N, 16, 4, BURN_LOADER_SHUFFLE);
    int64_t order[N];
    size_t after_warm_up = 0;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        assert_int_equal(burn_loader_begin(loader, epoch, 0, NULL), BURN_OK);
        if (epoch == 3 || epoch % 10 == 9) {
            burn_batch batch;
            BURN_INIT(&batch, burn_batch);
            assert_int_equal(burn_loader_next(loader, &batch, NULL), BURN_OK);
        } else {
            assert_int_equal(read_epoch(loader, order, NULL), N);
        }
        size_t used = mallinfo2().uordblks;
        if (epoch == WARM) {
            after_warm_up = used;
        } else if (epoch > WARM) {
            assert_true(used <= after_warm_up + 1024);
        }
    }
    burn_loader_destroy(loader);
}

static void destroy__is_fine_at_any_time(void **state)
{
    (void)state;
    numbers n = plain_numbers();
    n.slow = 1;
    for (int taken = 0; taken < 6; taken++) {
        burn_loader *loader = make(&n, 100, 4, 4, BURN_LOADER_SHUFFLE);
        burn_batch batch;
        BURN_INIT(&batch, burn_batch);
        for (int i = 0; i < taken; i++) {
            assert_int_equal(burn_loader_next(loader, &batch, NULL), BURN_OK);
        }
        burn_loader_destroy(loader);
        assert_int_equal(atomic_load(&n.inside), 0);
    }
    burn_loader_destroy(NULL);
}

static void B222_failing_item__is_named(void **state)
{
    (void)state;
    for (uint32_t workers = 0; workers <= 4; workers += 2) {
        numbers n = plain_numbers();
        n.fail_at = 6;
        n.fail_too = 7; /* in the same batch: the first one is told, whoever made the batch */
        burn_loader *loader = make(&n, 20, 4, workers, 0);
        burn_batch batch;
        BURN_INIT(&batch, burn_batch);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            burn_err err = BURN_ERR_INIT;
            assert_int_equal(burn_loader_begin(loader, epoch, 0, NULL), BURN_OK);
            assert_int_equal(burn_loader_next(loader, &batch, &err), BURN_OK);
            assert_int_equal(burn_loader_next(loader, &batch, &err), BURN_E_IO);
            assert_int_equal(err.code, BURN_E_IO);
            assert_string_equal(err.text, "loader: item 6 failed: file 6.png is damaged");
            assert_int_equal(burn_loader_next(loader, &batch, &err), BURN_OK);
            assert_int_equal(batch.position, 2);
            assert_int_equal(batch.indices[0], 8);
        }
        n.silent = workers == 0;
        if (n.silent) {
            burn_err err = BURN_ERR_INIT;
            assert_int_equal(burn_loader_begin(loader, 9, 1, NULL), BURN_OK);
            assert_int_equal(burn_loader_next(loader, &batch, &err), BURN_E_IO);
            assert_string_equal(err.text, "loader: item 6 failed: input or output failed");
        }
        burn_loader_destroy(loader);
    }
}

static void workers__really_work_side_by_side(void **state)
{
    (void)state;
    numbers n = plain_numbers();
    n.slow = 1;
    int64_t order[200];
    burn_loader *loader = make(&n, 200, 5, 4, 0);
    assert_int_equal(read_epoch(loader, order, NULL), 200);
    assert_true(atomic_load(&n.most_inside) >= 2);
    burn_loader_destroy(loader);
}

static void B222_no_memory__is_an_error_wherever_it_happens(void **state)
{
    (void)state;
    numbers n = plain_numbers();
    burn_dataset data = {sizeof(data), 2, fields, sizeof(fields[0]), 0, 50, &n, get_number};
    burn_loader_opts opts = {sizeof(opts), BURN_LOADER_SHUFFLE, 8, 1, 2, 3};
    int failures = 0;
    for (int64_t i = 1; i < 40; i++) {
        burn_loader *loader;
        fail_allocation(i);
        int32_t code = burn_loader_create(&data, &opts, &loader, NULL);
        int happened = allocation_failed();
        fail_allocation(0);
        assert_int_equal(code, happened ? BURN_E_NO_MEMORY : BURN_OK);
        assert_true(happened == (loader == NULL));
        failures += happened;
        burn_loader_destroy(loader);
    }
    assert_true(failures >= 10);
}

/* The thread after `threads_left` more is refused by the system; negative: none is. */
static int threads_left = -1;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *arg)
{
    if (threads_left == 0) {
        return EAGAIN;
    }
    threads_left -= threads_left > 0;
    return __real_pthread_create(thread, attr, start, arg);
}

static void B222_missing_thread__is_an_error_and_ends_the_others(void **state)
{
    (void)state;
    numbers n = plain_numbers();
    burn_dataset data = {sizeof(data), 2, fields, sizeof(fields[0]), 0, 50, &n, get_number};
    burn_loader_opts opts = {sizeof(opts), 0, 8, 1, 3, 0};
    for (int i = 0; i < 3; i++) {
        burn_loader *loader;
        burn_err err = BURN_ERR_INIT;
        threads_left = i;
        assert_int_equal(burn_loader_create(&data, &opts, &loader, &err), BURN_E_LIMIT);
        threads_left = -1;
        assert_null(loader);
        assert_non_null(strstr(err.text, "of 3 worker threads"));
        assert_int_equal(atomic_load(&n.inside), 0);
    }
}

static void expect_refused(const burn_dataset *data, const burn_loader_opts *opts, int32_t code,
                           const char *text)
{
    burn_err err = BURN_ERR_INIT;
    burn_loader *loader;
    assert_int_equal(burn_loader_create(data, opts, &loader, &err), code);
    assert_null(loader);
    if (strstr(err.text, text) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", err.text, text);
    }
}

static void create__refuses_what_makes_no_sense(void **state)
{
    (void)state;
    numbers n = plain_numbers();
    const burn_dataset good = {sizeof(good), 2, fields, sizeof(fields[0]), 0, 50, &n, get_number};
    const burn_loader_opts good_opts = {sizeof(good_opts), 0, 8, 1, 2, 0};
    burn_loader_opts opts = good_opts;
    burn_dataset data = good;
    opts.batch_size = 0;
    expect_refused(&good, &opts, BURN_E_INVALID, "batch_size is 0; use 1 or more");
    opts = good_opts;
    opts.workers = 1000;
    expect_refused(&good, &opts, BURN_E_INVALID, "workers is 1000; at most");
    opts = good_opts;
    opts.ahead = 100000;
    expect_refused(&good, &opts, BURN_E_INVALID, "ahead is 100000; at most");
    opts = good_opts;
    opts.flags = 64;
    expect_refused(&good, &opts, BURN_E_INVALID, "0x40");
    opts = good_opts;
    opts.struct_size = 8;
    expect_refused(&good, &opts, BURN_E_INVALID, "BURN_INIT");
    data.count = -1;
    expect_refused(&data, &good_opts, BURN_E_INVALID, "count is -1");
    data = good;
    data.n_fields = 9;
    expect_refused(&data, &good_opts, BURN_E_INVALID, "9 fields");
    data = good;
    data.get = NULL;
    expect_refused(&data, &good_opts, BURN_E_INVALID, "get");
    data = good;
    const burn_field huge = {"huge", BURN_F32, 3, {0}, {INT64_MAX, INT64_MAX, 4}};
    data.fields = &huge;
    data.n_fields = 1;
    expect_refused(&data, &good_opts, BURN_E_LIMIT, "field 0");
    const burn_field odd = {"odd", 77, 0, {0}, {0}};
    data.fields = &odd;
    expect_refused(&data, &good_opts, BURN_E_INVALID, "dtype code 77");
    data = good;
    data.count = INT64_MAX;
    opts = good_opts;
    opts.batch_size = INT64_MAX;
    expect_refused(&data, &opts, BURN_E_LIMIT, "batches smaller");
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_loader_create(&good, &good_opts, NULL, &err), BURN_E_INVALID);
    assert_int_equal(burn_loader_next(NULL, NULL, &err), BURN_E_INVALID);
    assert_int_equal(burn_loader_begin(NULL, 0, 0, &err), BURN_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain__keeps_the_order),
        cmocka_unit_test(B222_last_short_batch__is_kept_or_dropped),
        cmocka_unit_test(B222_small_dataset__is_one_short_batch),
        cmocka_unit_test(B222_empty_dataset__ends_at_once),
        cmocka_unit_test(B222_order__is_the_same_for_any_number_of_workers),
        cmocka_unit_test(begin__resumes_in_the_middle),
        cmocka_unit_test(next__keeps_the_last_batch_whole_until_the_next_call),
        cmocka_unit_test(B222_epochs__leave_memory_flat),
        cmocka_unit_test(destroy__is_fine_at_any_time),
        cmocka_unit_test(B222_failing_item__is_named),
        cmocka_unit_test(workers__really_work_side_by_side),
        cmocka_unit_test(B222_no_memory__is_an_error_wherever_it_happens),
        cmocka_unit_test(B222_missing_thread__is_an_error_and_ends_the_others),
        cmocka_unit_test(create__refuses_what_makes_no_sense),
    };
    return cmocka_run_group_tests_name("loader", tests, NULL, NULL);
}
