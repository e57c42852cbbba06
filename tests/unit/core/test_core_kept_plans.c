/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_kept_plans.c - plans in the file of an environment: found by who comes next, refused
 * where they do not fit, and never the reason of another result.
 *
 * The next process is played by forgetting what the stream knows and loading the file again. To
 * add a test: a function, a row in the array.
 */
#include "core_test.h"

#include "core/base/alloc.h"
#include "core/tune/environment.h"
#include "core/tune/kept_plan.h"
#include "core/tune/place.h"
#include "exec/device.h"
#include "exec/plan.h"
#include "exec/tuner.h"

#include <burn/environment.h>
#include <burn/plans.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a round: what it begins with, up to the sync, and the rest. */
enum { PLANS = 2 };

static char root[] = "/tmp/burn-kept-XXXXXX";
static char folder[64];

static int begin(void **state)
{
    static int n;
    (void)snprintf(folder, sizeof(folder), "%s/%d", root, n++);
    return setenv("BURN_ENVIRONMENT_PATH", folder, 1) == 0 ? core_setup(state) : -1;
}

static int end(void **state)
{
    burni_tuner_force(NULL);
    set_window(window);
    return burn_environment_load(NULL, NULL) == BURN_OK ? core_teardown(state) : -1;
}
#define KEPT_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

static burni_stream *my_stream(void)
{
    return burni_thread_current->streams[dev->core->index];
}

static burn_plan_totals totals(void)
{
    burn_plan_totals t;
    BURN_INIT(&t, burn_plan_totals);
    assert_int_equal(burn_plan_report(dev, &t, NULL), BURN_OK);
    return t;
}

/* As if the process were a new one. */
static void start_anew(void)
{
    assert_int_equal(burn_environment_load(NULL, NULL), BURN_OK);
    burn_tensor *x = burn_add(VEC(1), VEC(2));
    CHECK(x, 3);
    burni_sequence *q = my_stream()->sequence;
    if (q != NULL) {
        memset(q->known, 0, sizeof(q->known));
        q->n_known = 0;
    }
    assert_int_equal(burn_environment_load("kept", NULL), BURN_OK);
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
}

/* One round; the sum of what it makes. How many calls waited before they were asked for. */
static double go_round(int k, uint32_t *waited)
{
    burn_scope_begin();
    burn_tensor *x = count_up(dev, 2, DIMS(3, 4), k);
    burn_tensor *w = count_up(dev, 2, DIMS(4, 5), 1);
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    burn_tensor *y = burn_matmul(burn_relu(burn_sub(x, burn_scalar(4.0))), w);
    burn_tensor *z = burn_exp(burn_mul(y, burn_scalar(-0.01)));
    burn_tensor *m = burn_max(z, 1, DIMS(1), 1);
    burn_tensor *s = burn_add(burn_sum(burn_div(z, m), 0, NULL, 0), burn_scalar(1.0));
    *waited = my_stream()->n_records;
    double sum = burn_item(s, NULL);
    burn_scope_end();
    return sum;
}

static void keep_plans(double *sums, int n)
{
    uint32_t waited = 0;
    assert_int_equal(burn_environment_load("kept", NULL), BURN_OK);
    for (int k = 0; k < n; k++) {
        sums[k] = go_round(k, &waited);
    }
    assert_int_equal(burn_environment_save(NULL), BURN_OK);
}

static burni_benv *read_file(char *path, size_t size)
{
    burni_benv *env = NULL;
    uint64_t bytes = 0;
    assert_int_equal(burni_place_file("kept", path, size, NULL), BURN_OK);
    assert_int_equal(burni_place_read(path, &env, &bytes, NULL), BURN_OK);
    return env;
}

/* Lets `change` alter the plan of the most groups in the file; how many groups it has. */
static uint32_t alter_file(void (*change)(burni_kept_plan *plan, uint64_t *seed), uint64_t *seed)
{
    char path[BURNI_PLACE_BYTES];
    burni_kept_plan *plan = malloc(sizeof(*plan));
    unsigned char *bytes = malloc(BURNI_KEPT_BYTES);
    burni_benv *env = read_file(path, sizeof(path));
    assert_true(plan != NULL && bytes != NULL && env->n_devices == 1);
    burni_benv_device *d = &env->devices[0];
    uint32_t longest = 0;
    for (uint32_t i = 1; i < d->n_plans; i++) {
        longest = d->plans[i].size > d->plans[longest].size ? i : longest;
    }
    assert_int_equal(burni_kept_plan_decode(d->plans[longest].bytes,
                                            (size_t)d->plans[longest].size, plan),
                     BURN_OK);
    uint32_t fused = 0;
    for (uint32_t i = 0; i < plan->n; i++) {
        fused += plan->groups[i] != i && plan->groups[i] != BURNI_KEPT_UNUSED;
    }
    change(plan, seed);
    uint32_t size = burni_kept_plan_encode(plan, bytes);
    assert_int_equal(burni_benv_set_plan(d, d->plans[longest].key, bytes, size), BURN_OK);
    uint64_t n = 0;
    unsigned char *file = burni_benv_encode(env, &n);
    assert_int_equal(burni_place_write(path, file, n, NULL), BURN_OK);
    burni_free(file);
    burni_benv_free(env);
    free(bytes);
    free(plan);
    return fused;
}

/* ---- found ----------------------------------------------------------------------------------- */

static void a_loop__waits_in_its_first_round_and_plans_nothing(void **state)
{
    (void)state;
    double sums[4];
    uint32_t waited = 0;
    keep_plans(sums, 4);
    start_anew();
    burn_plan_totals before = totals();
    for (int k = 0; k < 4; k++) {
        assert_true(go_round(k, &waited) == sums[k]);
        assert_int_equal(waited, window == 1 ? 0 : 9);
    }
    burn_plan_totals after = totals();
    assert_int_equal(after.made, before.made);
    assert_int_equal(after.refused, before.refused);
    assert_int_equal(after.found - before.found, window == 1 ? 0 : PLANS);
    assert_int_equal(after.hits - before.hits, window == 1 ? 0 : 3 * PLANS);
    assert_true(on_mock || window == 1 || after.last.n_groups > 0);
}

static void what_came_once__is_not_kept(void **state)
{
    (void)state;
    double sums[2];
    burn_environment_info info;
    BURN_INIT(&info, burn_environment_info);
    keep_plans(sums, 1);
    burn_environment *env = burn_environment_open("kept", NULL); /* it may hold choices */
    (void)burn_environment_describe(env, &info, NULL);
    assert_int_equal(info.n_plans, 0);
    burn_environment_close(env);
}

/* ---- refused --------------------------------------------------------------------------------- */

/* Other groups, of a form that can be read. */
static void shuffle(burni_kept_plan *plan, uint64_t *seed)
{
    for (int times = 0; times < 3; times++) {
        uint32_t i = next_random(seed) % plan->n;
        uint32_t to = next_random(seed) % (i + 1);
        for (uint32_t k = i + 1; k < plan->n; k++) {
            plan->groups[k] = plan->groups[k] == i ? (uint16_t)k : plan->groups[k];
        }
        plan->groups[i] = plan->groups[to] == to ? (uint16_t)to : (uint16_t)i;
    }
}

static void altered_groups__give_the_same_results(void **state)
{
    (void)state;
    double sums[4];
    uint64_t seed = 5;
    if (window == 1) {
        return;
    }
    keep_plans(sums, 4);
    burn_plan_totals before = totals();
    for (int times = 0; times < 60; times++) {
        uint32_t waited = 0;
        (void)alter_file(shuffle, &seed);
        start_anew();
        for (int k = 0; k < 3; k++) {
            assert_true(go_round(k, &waited) == sums[k]);
        }
        assert_int_equal(burn_environment_save(NULL), BURN_OK);
    }
    burn_plan_totals after = totals();
    assert_true(after.refused > before.refused);
    assert_int_equal(after.found + after.made - before.found - before.made, 60 * PLANS);
}

static void put_all_in_one(burni_kept_plan *plan, uint64_t *seed)
{
    (void)seed;
    memset(plan->groups, 0, sizeof(plan->groups));
}

static void a_refusal__is_counted_and_the_plan_is_made_anew(void **state)
{
    (void)state;
    double sums[4];
    uint32_t waited = 0;
    if (window == 1) {
        return;
    }
    keep_plans(sums, 4);
    uint32_t fused = alter_file(put_all_in_one, NULL);
    assert_true(on_mock ? fused == 0 : fused > 2);
    start_anew();
    burn_plan_totals before = totals();
    for (int k = 0; k < 3; k++) {
        assert_true(go_round(k, &waited) == sums[k]);
    }
    burn_plan_totals after = totals();
    assert_int_equal(after.refused - before.refused, 1);
    assert_int_equal(after.made - before.made, 1);
    assert_int_equal(burn_environment_save(NULL), BURN_OK);
    burn_environment_device_info info;
    BURN_INIT(&info, burn_environment_device_info);
    burn_environment *env = burn_environment_open("kept", NULL);
    assert_int_equal(burn_environment_device(env, 0, &info, NULL), BURN_OK);
    assert_int_equal(info.n_refused, 1);
    burn_environment_close(env);
    start_anew();
    before = totals();
    assert_true(go_round(0, &waited) == sums[0]);
    assert_int_equal(totals().found - before.found, PLANS);
}

/* ---- bounded --------------------------------------------------------------------------------- */

static void there_are_no_more_than__256_and_none_is_large(void **state)
{
    (void)state;
    burni_benv *env = burni_benv_new();
    burni_identity id;
    memset(&id, 0, sizeof(id));
    (void)snprintf(id.backend, sizeof(id.backend), "flex");
    uint32_t at = burni_benv_need(env, &id);
    burni_benv_device *d = &env->devices[at];
    uint64_t seed = 1;
    for (int i = 0; i < 1000; i++) {
        uint64_t key = next_random(&seed);
        assert_int_equal(burni_benv_set_plan(d, key, "x", 1), BURN_OK);
        assert_non_null(burni_benv_plan(d, key));
    }
    assert_int_equal(d->n_plans, BURNI_BENV_MAX_PLANS);
    for (uint32_t i = 1; i < d->n_plans; i++) {
        assert_true(d->plans[i - 1].key < d->plans[i].key);
    }
    static const unsigned char large[BURNI_BENV_MAX_PLAN + 1];
    assert_int_equal(burni_benv_set_plan(d, 1, large, sizeof(large)), BURN_E_LIMIT);
    assert_true(BURNI_KEPT_BYTES <= BURNI_BENV_MAX_PLAN);
    burni_benv_free(env);
}

static void bytes__that_are_no_plan_are_refused(void **state)
{
    (void)state;
    static burni_kept_plan plan;
    static burni_kept_plan read;
    static unsigned char bytes[BURNI_KEPT_BYTES];
    plan.n = 4;
    plan.groups[1] = 0;
    plan.groups[2] = BURNI_KEPT_UNUSED;
    plan.groups[3] = 3;
    uint32_t size = burni_kept_plan_encode(&plan, bytes);
    assert_int_equal(burni_kept_plan_decode(bytes, size, &read), BURN_OK);
    assert_memory_equal(&plan, &read, sizeof(plan));
    static const struct {
        uint32_t at;
        unsigned char value;
    } bad[] = {{0, 2},            /* version */
               {4, 5},            /* more records than bytes */
               {4, 0},            /* none */
               {12, 1},           /* what must be 0 */
               {16 + 32, 1},      /* a group that begins later */
               {16 + 32 + 6, 1}}; /* one of a record that is no first */
    for (size_t i = 0; i < COUNT(bad); i++) {
        unsigned char was = bytes[bad[i].at];
        bytes[bad[i].at] = bad[i].value;
        assert_int_equal(burni_kept_plan_decode(bytes, size, &read), BURN_E_FORMAT);
        bytes[bad[i].at] = was;
    }
    assert_int_equal(burni_kept_plan_decode(bytes, size - 1, &read), BURN_E_FORMAT);
    assert_int_equal(burni_kept_plan_decode(bytes, 3, &read), BURN_E_FORMAT);
}

/* ---- groups and the tuner -------------------------------------------------------------------- */

static burn_tensor *convolve(int k)
{
    burn_conv_opts opts;
    BURN_INIT(&opts, burn_conv_opts);
    opts.stride[0] = opts.stride[1] = 1;
    opts.dilation[0] = opts.dilation[1] = 1;
    opts.padding[0] = opts.padding[1] = 2;
    opts.groups = 1;
    burn_tensor *x = count_up(dev, 4, DIMS(2, 3, 14, 14), k - 40.0);
    burn_tensor *w = count_up(dev, 4, DIMS(5, 3, 5, 5), -100.0);
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    burn_tensor *y = burn_conv2d(x, w, count_up(dev, 1, DIMS(5), 7.0), &opts);
    return burn_mul(burn_relu(y), burn_scalar(0.5));
}

/* The loop of it; calls in groups of its plan. */
static uint32_t fused_calls(void)
{
    for (int k = 0; k < 4; k++) {
        burn_scope_begin();
        burn_tensor *y = burn_scope_return(convolve(k));
        assert_int_equal(burn_sync(dev, NULL), BURN_OK);
        set_window(1);
        check_same(y, convolve(k));
        set_window(window);
        burn_scope_end();
    }
    return totals().last.n_fused;
}

/* A group may not take a product away from the row that won: it begins behind it. */
static void a_product__of_another_row_is_in_no_group(void **state)
{
    (void)state;
    if (on_mock || window == 1) {
        return;
    }
    assert_int_equal(burn_environment_load("kept", NULL), BURN_OK);
    burni_tuner_force("flex.conv2d");
    assert_int_equal(fused_calls(), 3);
    assert_int_equal(burn_environment_load("other", NULL), BURN_OK);
    burni_tuner_force("flex.conv2d.product");
    assert_int_equal(fused_calls(), 2);
    burni_tuner_force(NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        KEPT_TEST(a_loop__waits_in_its_first_round_and_plans_nothing),
        KEPT_TEST(what_came_once__is_not_kept),
        KEPT_TEST(altered_groups__give_the_same_results),
        KEPT_TEST(a_refusal__is_counted_and_the_plan_is_made_anew),
        KEPT_TEST(there_are_no_more_than__256_and_none_is_large),
        KEPT_TEST(bytes__that_are_no_plan_are_refused),
        KEPT_TEST(a_product__of_another_row_is_in_no_group),
    };
    if (mkdtemp(root) == NULL) {
        return 1;
    }
    int rc = core_test_main(argc, argv, tests, COUNT(tests));
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command) == 0 ? rc : 1;
}
