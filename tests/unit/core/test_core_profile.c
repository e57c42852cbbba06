/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_profile.c - what burn_profile_begin and _end collect: launches with their kernels,
 * sizes, places and times, places by themselves, threads; nothing when it is off.
 *
 * Times are compared with each other and with the host's clock, never with numbers.
 */
#include "core_test.h"

#include "exec/device.h"
#include "exec/stream.h"

#include <burn/profile.h>
#include <burn/trace.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

static uint64_t now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* The entry of an op at a place, in any lane; *lane is its. NULL when there is none. */
static const burn_profile_entry *find(const char *op, const char *place, const char *shapes,
                                      const burn_profile_lane **lane)
{
    for (uint32_t i = 0; burn_profile_at(i) != NULL; i++) {
        const burn_profile_lane *l = burn_profile_at(i);
        for (uint32_t k = 0; k < l->n_entries; k++) {
            const burn_profile_entry *e = burn_profile_entry_at(l, k);
            if (strcmp(e->op, op) == 0 && strcmp(e->place, place) == 0 &&
                strstr(e->shapes, shapes) != NULL) {
                *lane = l;
                return e;
            }
        }
    }
    return NULL;
}

static uint64_t count_events(void)
{
    uint64_t n = 0;
    for (uint32_t i = 0; burn_profile_at(i) != NULL; i++) {
        n += burn_profile_at(i)->n_events;
    }
    return n;
}

static void nothing__is_collected_before_begin(void **state)
{
    (void)state;
    burn_tag_begin("before");
    CHECK(burn_add(VEC(1, 2), VEC(3, 4)), 4, 6);
    burn_tag_end();
    assert_null(burn_profile_at(0));
}

static void launches__have_kernel_sizes_place_and_time(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    const float values[6] = {1, 2, 3, 4, 5, 6};
    burn_tensor *x = mat(2, 3, values);
    burn_tensor *y = mat(3, 2, values);
    burn_tensor *z = VEC(1, 2, 3, 4, 5);
    (void)burn_sync(dev, NULL);
    uint64_t start = now();
    assert_int_equal(burn_profile_begin(&err), BURN_OK);
    burn_tag_begin("head");
    for (int i = 0; i < 7; i++) {
        CHECK(burn_matmul(x, y), 22, 28, 49, 64);
    }
    burn_tag_end();
    CHECK(burn_mul(z, burn_scalar(2)), 2, 4, 6, 8, 10);
    burn_profile_end();
    uint64_t end = now();
    const burn_profile_lane *lane = NULL;
    const burn_profile_entry *e = find("matmul", "head", "", &lane);
    assert_non_null(e);
    assert_int_equal(e->calls, 7);
    assert_int_equal(e->flops, 2 * 2 * 2 * 3);
    assert_int_equal(e->bytes, 4 * (6 + 6 + 4));
    assert_string_equal(e->shapes, "f32[2,3], f32[3,2] -> f32[2,2]");
    assert_non_null(strstr(e->row, on_mock ? "mock.matmul" : "flex.matmul"));
    assert_true(e->min_ns <= e->ns / 7 && e->ns / 7 <= e->max_ns);
    assert_true(e->ns <= end - start);
    assert_int_equal(lane->kind, BURN_PROFILE_LAUNCHES);
    assert_int_equal(lane->clock, on_mock ? BURN_PROFILE_DEVICE : BURN_PROFILE_HOST);
    assert_string_equal(lane->device, burn_device_name(dev));
    assert_true(lane->first_ns >= start && lane->last_ns <= end);
    e = find("mul", "", "f32[5], f32 scalar -> f32[5]", &lane);
    assert_non_null(e);
    assert_int_equal(e->calls, 1);
    assert_int_equal(e->bytes, 2 * 5 * 4);
}

static void events__are_in_order_and_sum_up(void **state)
{
    (void)state;
    assert_int_equal(burn_profile_begin(NULL), BURN_OK);
    /* Products: calls that may wait are not made one. */
    const float values[1] = {1};
    burn_tensor *x = mat(1, 1, values);
    for (int i = 0; i < 50; i++) {
        x = burn_matmul(x, x);
    }
    CHECK(x, 1);
    burn_profile_end();
    const burn_profile_lane *lane = NULL;
    assert_non_null(find("matmul", "", "f32[1,1], f32[1,1]", &lane));
    uint64_t sum = 0;
    uint64_t previous = 0;
    assert_true(lane->n_events >= 50);
    for (uint64_t k = 0; k < lane->n_events; k++) {
        const burn_profile_event *event = burn_profile_event_at(lane, k);
        assert_non_null(event);
        assert_true(event->start_ns >= previous);
        previous = event->start_ns + event->ns;
        sum += event->ns;
        assert_true(event->entry < lane->n_entries);
        assert_int_equal(event->thread, lane->thread);
    }
    assert_int_equal(sum, lane->busy_ns);
    assert_null(burn_profile_event_at(lane, lane->n_events));
    uint64_t calls = 0;
    for (uint32_t i = 0; i < lane->n_entries; i++) {
        calls += burn_profile_entry_at(lane, i)->calls;
    }
    assert_int_equal(calls, lane->n_events);
    assert_int_equal(lane->untimed, 0);
    assert_int_equal(lane->homeless, 0);
}

/* Bounded: old events go, totals stay. */
static void many_events__keep_the_last_and_all_totals(void **state)
{
    (void)state;
    const burn_profile_lane *lane = NULL;
    const int rounds = 700;
    const float one[4] = {1, 0, 0, 1};
    assert_int_equal(burn_profile_begin(NULL), BURN_OK);
    for (int i = 0; i < rounds; i++) {
        burn_scope_begin();
        burn_tensor *x = mat(2, 2, one);
        for (int k = 0; k < 100; k++) {
            x = burn_matmul(x, x);
        }
        CHECK(x, 1, 0, 0, 1);
        burn_scope_end();
    }
    burn_profile_end();
    const burn_profile_entry *e = find("matmul", "", "f32[2,2], f32[2,2]", &lane);
    assert_non_null(e);
    assert_int_equal(e->calls, rounds * 100);
    assert_true(lane->n_events > lane->cap_events);
    assert_null(burn_profile_event_at(lane, lane->n_events - lane->cap_events - 1));
    assert_non_null(burn_profile_event_at(lane, lane->n_events - lane->cap_events));
    assert_int_equal(lane->untimed, 0);
}

static void places__nest_and_hold_what_is_inside(void **state)
{
    (void)state;
    const burn_profile_lane *lane = NULL;
    assert_int_equal(burn_profile_begin(NULL), BURN_OK);
    for (int i = 0; i < 3; i++) {
        burn_tag_begin("outer");
        burn_tag_begin("inner");
        CHECK(burn_add(VEC(1, 2), VEC(3, 4)), 4, 6);
        burn_tag_end();
        burn_tag_begin(""); /* no place of its own */
        burn_tag_end();
        burn_trace_begin("file.c", 7); /* a line is none, either */
        (void)burn_trace_end(NULL);
        burn_tag_end();
    }
    burn_profile_end();
    const burn_profile_entry *outer = find("", "outer", "", &lane);
    const burn_profile_entry *inner = find("", "outer.inner", "", &lane);
    assert_non_null(outer);
    assert_non_null(inner);
    assert_int_equal(lane->kind, BURN_PROFILE_PLACES);
    assert_int_equal(outer->calls, 3);
    assert_int_equal(inner->calls, 3);
    assert_true(outer->ns >= inner->ns);
    assert_null(find("", "outer (file.c:7)", "", &lane));
    assert_non_null(find("add", "outer.inner", "f32[2]", &lane));
}

static void end__stops_it(void **state)
{
    (void)state;
    uint64_t events = count_events();
    burn_tag_begin("after");
    CHECK(burn_add(VEC(1, 2), VEC(3, 4)), 4, 6);
    burn_tag_end();
    assert_int_equal(count_events(), events);
    /* A place that began outside of it is none. */
    burn_tag_begin("across");
    assert_int_equal(burn_profile_begin(NULL), BURN_OK);
    burn_tag_end();
    burn_profile_end();
    const burn_profile_lane *lane = NULL;
    assert_null(find("", "across", "", &lane));
}

static void *work(void *argument)
{
    (void)argument;
    burn_tag_begin("worker");
    const float values[4] = {1, 0, 0, 1};
    burn_tensor *x = mat(2, 2, values);
    for (int i = 0; i < 20; i++) {
        x = burn_matmul(x, x);
    }
    /* Of a transposed view, so that the sum joins no product. */
    double seen = burn_item(burn_sum(burn_transpose(x, 0, 1), 0, NULL, 0), NULL);
    burn_tag_end();
    burn_scope_flush();
    return seen > 0 ? NULL : argument;
}

static void threads__have_lanes_of_their_own(void **state)
{
    (void)state;
    pthread_t threads[3];
    assert_int_equal(burn_profile_begin(NULL), BURN_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, threads), 0);
    }
    for (int i = 0; i < 3; i++) {
        void *result = threads;
        (void)pthread_join(threads[i], &result);
        assert_null(result);
    }
    burn_profile_end();
    uint64_t launches = 0;
    uint64_t places = 0;
    for (uint32_t i = 0; burn_profile_at(i) != NULL; i++) {
        const burn_profile_lane *l = burn_profile_at(i);
        for (uint32_t k = 0; k < l->n_entries; k++) {
            const burn_profile_entry *e = burn_profile_entry_at(l, k);
            if (strcmp(e->place, "worker") == 0) {
                launches += strcmp(e->op, "matmul") == 0 ? e->calls : 0;
                places += e->op[0] == '\0' ? e->calls : 0;
            }
        }
    }
    assert_int_equal(launches, 60);
    assert_int_equal(places, 3);
}

static void *work_without_a_clock(void *argument)
{
    burni_device *core = dev->core;
    const burn_profile_clock *clock = core->clock;
    core->clock = NULL;
    void *result = work(argument);
    core->clock = clock;
    return result;
}

/* A backend that offers no clock: times are from the submission to the point, and said to be. */
static void without_a_clock__points_tell(void **state)
{
    (void)state;
    if (!on_mock) {
        return; /* its launches have finished when they return */
    }
    pthread_t thread;
    void *result = NULL;
    const burn_profile_lane *lane = NULL;
    /* Streams of threads that ended are used again: a second device has none yet. */
    burn_device *own = dev;
    dev = burn_device_open("mock:1", NULL);
    assert_non_null(dev);
    assert_int_equal(burn_profile_begin(NULL), BURN_OK);
    assert_int_equal(pthread_create(&thread, NULL, work_without_a_clock, dev), 0);
    (void)pthread_join(thread, &result);
    burn_profile_end();
    dev = own;
    assert_null(result);
    for (uint32_t i = 0; burn_profile_at(i) != NULL; i++) {
        lane = strcmp(burn_profile_at(i)->device, "mock:1") == 0 ? burn_profile_at(i) : lane;
    }
    assert_non_null(lane);
    assert_int_equal(lane->clock, BURN_PROFILE_POINTS);
    assert_true(lane->n_events >= 21);
    uint64_t previous = 0;
    for (uint64_t k = 0; k < lane->n_events; k++) {
        const burn_profile_event *event = burn_profile_event_at(lane, k);
        assert_true(event->start_ns >= previous);
        previous = event->start_ns + event->ns;
    }
}

/* What fails at its call or its launch is no event; what follows is. */
static void failures__are_not_counted(void **state)
{
    (void)state;
    const float values[6] = {1, 2, 3, 4, 5, 6};
    const burn_profile_lane *lane = NULL;
    assert_int_equal(burn_profile_begin(NULL), BURN_OK);
    burn_tag_begin("wrong");
    assert_false(burn_ok(burn_matmul(mat(2, 3, values), mat(2, 3, values))));
    burn_tag_end();
    burn_profile_end();
    assert_null(find("matmul", "wrong", "", &lane));
    assert_non_null(find("", "wrong", "", &lane));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(nothing__is_collected_before_begin),
        CORE_TEST(launches__have_kernel_sizes_place_and_time),
        CORE_TEST(events__are_in_order_and_sum_up),
        CORE_TEST(many_events__keep_the_last_and_all_totals),
        CORE_TEST(places__nest_and_hold_what_is_inside),
        CORE_TEST(end__stops_it),
        CORE_TEST(threads__have_lanes_of_their_own),
        CORE_TEST(without_a_clock__points_tell),
        CORE_TEST(failures__are_not_counted),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
