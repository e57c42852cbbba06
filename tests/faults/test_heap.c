/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_heap.c - each call of malloc and its like fails once, whoever makes it: the core,
 * libburn-train with its loader and optimizers, the plugin. test_alloc.c does so for the core.
 *
 * A round makes a model, an optimizer and a loader with a worker, trains with each of its batches,
 * and frees all, in a thread of its own. What must hold: an error with a text, or the losses of a
 * round that never failed; nothing left in use on the device; the next round is right, and no block
 * of the heap is left. To try more: `build` and `train`.
 */
#include "heap.h"
#include "inject.h"

#include <burn/data.h>
#include <burn/optim.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = 10, WIDTH = 3, BATCH = 4, BATCHES = 3, MAX_ROUNDS = 20000 };
enum { MAX_KEPT = 32 }; /* a queue's words and blocks, which later rounds use again */

/* ---- what is trained ------------------------------------------------------------------------- */

static int32_t get_item(void *ctx, int64_t index, void *const *out, burn_err *err)
{
    (void)ctx;
    (void)err;
    float x[WIDTH];
    int64_t target = index % 2;
    for (int64_t i = 0; i < WIDTH; i++) {
        x[i] = (float)(index - i) / ITEMS;
    }
    memcpy(out[0], x, sizeof(x));
    memcpy(out[1], &target, sizeof(target));
    return BURN_OK;
}

typedef struct round {
    int64_t fail_at;
    int64_t made;
    int32_t code;
    int silent; /* it failed without a text */
    double losses[BATCHES];
} round_state;

typedef struct parts {
    burn_module *root;
    burn_optimizer *optimizer;
    burn_loader *loader;
} parts;

static int32_t build(parts *p, burn_err *err)
{
    const burn_field fields[2] = {
        {.name = "x", .dtype = BURN_F32, .rank = 1, .dims = {WIDTH}},
        {.name = "y", .dtype = BURN_I64},
    };
    const burn_dataset dataset = {.struct_size = sizeof(dataset), .n_fields = 2, .fields = fields,
                                  .field_stride = sizeof(fields[0]), .count = ITEMS,
                                  .get = get_item};
    const burn_loader_opts opts = {.struct_size = sizeof(opts), .flags = BURN_LOADER_SHUFFLE,
                                   .batch_size = BATCH, .seed = 3, .workers = 1};
    p->root = burn_module_create(ad, err);
    if (p->root == NULL || burn_nn_linear(p->root, "a", WIDTH, 2, 1, err) == NULL) {
        return err->code != BURN_OK ? err->code : BURN_E_INTERNAL;
    }
    p->optimizer = burn_optimizer_adam(p->root, NULL, err);
    if (p->optimizer == NULL) {
        return err->code != BURN_OK ? err->code : BURN_E_INTERNAL;
    }
    return burn_loader_create(&dataset, &opts, &p->loader, err);
}

static int32_t step(const parts *p, const burn_batch *batch, double *loss_value, burn_err *err)
{
    burn_scope_begin();
    burn_tensor *x = burn_tensor_from_data(dev, BURN_F32, 2, DIMS(batch->n_items, WIDTH),
                                           batch->data[0]);
    burn_tensor *y =
        burn_tensor_from_data(dev, BURN_I64, 1, DIMS(batch->n_items), batch->data[1]);
    burn_tensor *loss = burn_cross_entropy(burn_forward(p->root, x), y, NULL, NULL);
    burn_grads *grads = burn_backward(loss, NULL, 0, err);
    int32_t rc = grads != NULL ? burn_optimizer_step(p->optimizer, grads, 0.1, err) : err->code;
    burn_grads_free(grads);
    if (rc == BURN_OK) {
        rc = burn_read_f64(loss, loss_value, 1, err);
    }
    burn_scope_end();
    return rc;
}

static int32_t train(const parts *p, double *losses, burn_err *err)
{
    for (int b = 0; b < BATCHES; b++) {
        burn_batch batch;
        memset(&batch, 0, sizeof(batch));
        batch.struct_size = sizeof(batch);
        int32_t rc = burn_loader_next(p->loader, &batch, err);
        if (rc == BURN_OK) {
            rc = step(p, &batch, &losses[b], err);
        }
        if (rc != BURN_OK) {
            return rc;
        }
    }
    return BURN_OK;
}

static void *run_round(void *arg)
{
    round_state *r = arg;
    burn_err err = BURN_ERR_INIT;
    burn_err late = BURN_ERR_INIT;
    parts p = {NULL, NULL, NULL};
    burn_seed(5); /* it has no way to say that the thread has no state */
    burn_scope_begin();
    burn_memory_trim(dev);
    if (r->fail_at != 0) {
        heap_fail(r->fail_at);
    }
    r->code = build(&p, &err);
    if (r->code == BURN_OK) {
        r->code = train(&p, r->losses, &err);
    }
    r->silent = r->code != BURN_OK && err.text[0] == '\0';
    burn_loader_destroy(p.loader);
    burn_optimizer_free(p.optimizer);
    burn_module_free(p.root);
    burn_scope_end();
    int32_t synced = burn_sync(dev, &late);
    r->code = r->code == BURN_OK ? synced : r->code;
    r->silent |= synced != BURN_OK && late.text[0] == '\0';
    r->made = heap_count();
    heap_fail(0);
    (void)burn_sync(dev, NULL);
    burn_memory_trim(dev); /* how much waits in the pool depends on how far the device was behind */
    return NULL;
}

static round_state run(int64_t fail_at)
{
    round_state r;
    pthread_t thread;
    memset(&r, 0, sizeof(r));
    r.fail_at = fail_at;
    assert_int_equal(pthread_create(&thread, NULL, run_round, &r), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return r;
}

/* ---- the test -------------------------------------------------------------------------------- */

static void check_right(const round_state *r, const round_state *want, int64_t n, const char *when)
{
    if (r->code != BURN_OK || memcmp(r->losses, want->losses, sizeof(want->losses)) != 0) {
        fail_msg("call %lld, %s: %s, losses %g %g %g", (long long)n, when,
                 burn_status_name(r->code), r->losses[0], r->losses[1], r->losses[2]);
    }
}

static void test_each_call_of_the_heap_fails(void **state)
{
    (void)state;
    if (!heap_is_ours()) {
        skip();
    }
    round_state want = run(0);
    for (int i = 0; i < 4; i++) {
        round_state again = run(0);
        check_right(&again, &want, 0, "at first");
    }
    uint64_t before = in_use();
    int64_t blocks = heap_blocks();
    int64_t by = on_mock && window != 1 ? 7 : 1; /* many calls */
    int64_t failures = 0;
    int64_t of_plugin = 0;
    int64_t n = 1 - by;
    int quiet = 0;
    while (quiet < 2 && n < MAX_ROUNDS) {
        n += by;
        round_state r = run(n);
        of_plugin += heap_count_of(on_mock ? "mock.so" : "flex.so");
        quiet = r.made < n ? quiet + 1 : 0;
        failures += r.code != BURN_OK;
        if (r.silent) {
            fail_msg("call %lld: an error without a text", (long long)n);
        }
        if (r.code == BURN_OK) {
            check_right(&r, &want, n, "which failed");
        }
        round_state next = run(0);
        check_right(&next, &want, n, "the next round");
        assert_int_equal(in_use(), before);
        /* The first failure makes what stays; calls that wait are kept as plans, failed or not. */
        blocks = n == 1 ? heap_blocks() : blocks;
        if (window == 1 && heap_blocks() > blocks + (on_mock ? MAX_KEPT : 0)) {
            fail_msg("call %lld: %lld blocks of the heap are left", (long long)n,
                     (long long)(heap_blocks() - blocks));
        }
    }
    assert_int_equal(quiet, 2);
    assert_true(failures > 10 && of_plugin > 0);
    print_message("%lld calls, %lld rounds failed\n", (long long)(n - quiet), (long long)failures);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_each_call_of_the_heap_fails),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
