/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_threads.c - the CPU plugin's thread pool, from within (threads.h).
 *
 * The plugin's objects are linked in; the number of threads is argument 1. Checked: each task runs
 * once and what it wrote is there, for jobs of fewer, as many and more tasks than threads, after
 * workers went to sleep, from several threads of the application, from within a task, in a child of
 * fork, and after the workers were ended, with another number of them. To add a check: a function
 * and a line in `tests`.
 */
#include "../../../plugins/flex/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 700 };

typedef struct job {
    uint32_t runs[MOST]; /* plain: each is one task's, and read when the job is over */
    atomic_uint total;
    uint32_t nested; /* tasks that each task starts */
    long pause;      /* nanoseconds */
} job;

static void count(void *ctx, uint32_t task)
{
    job *j = ctx;
    j->runs[task]++;
    atomic_fetch_add(&j->total, 1);
    if (j->pause > 0) {
        struct timespec t = {0, j->pause};
        (void)nanosleep(&t, NULL);
    }
    if (j->nested > 0) {
        job inner;
        memset(&inner, 0, sizeof(inner));
        flex_parallel(j->nested, count, &inner);
        atomic_fetch_add(&j->total, atomic_load(&inner.total));
    }
}

/* 1: each task ran once. */
static int runs_once(uint32_t n, uint32_t nested, long pause)
{
    job j;
    memset(&j, 0, sizeof(j));
    j.nested = nested;
    j.pause = pause;
    flex_parallel(n, count, &j);
    int fine = atomic_load(&j.total) == n * (1 + nested);
    for (uint32_t i = 0; i < MOST; i++) {
        fine &= j.runs[i] == (i < n);
    }
    return fine;
}

static void test_each_task_runs_once(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        for (uint32_t n = 0; n < MOST; n += n < 40 ? 1 : 37) {
            assert_true(runs_once(n, 0, 0));
        }
    }
}

static void test_a_task_may_start_a_job(void **state)
{
    (void)state;
    assert_true(runs_once(1, 5, 0));
    assert_true(runs_once(7, 5, 0));
}

/* Shorter than an idle worker waits awake, and longer; slow tasks, so that others are taken. */
static void test_workers_that_sleep_are_woken(void **state)
{
    (void)state;
    for (long pause = 1000; pause <= 10 * 1000 * 1000; pause *= 10) {
        struct timespec t = {0, pause};
        (void)nanosleep(&t, NULL);
        assert_true(runs_once(5, 0, pause));
        assert_true(runs_once(flex_thread_count(), 0, pause));
    }
}

static void *many_jobs(void *fine)
{
    for (uint32_t i = 0; i < 3000; i++) {
        if (!runs_once(i % 19, 0, 0)) {
            atomic_store((atomic_int *)fine, 0);
        }
    }
    return NULL;
}

static void test_threads_of_the_application_do_not_meet(void **state)
{
    (void)state;
    pthread_t threads[3];
    atomic_int fine = 1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, many_jobs, &fine), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&fine), 1);
}

/* TSan and qemu's user mode allow no threads in a child of fork. */
#if defined(__SANITIZE_THREAD__)
static int no_children = 1;
#else
static int no_children;
#endif

static void test_a_child_has_workers_of_its_own(void **state)
{
    (void)state;
    if (no_children) {
        skip();
    }
    assert_true(runs_once(9, 0, 0));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(runs_once(9, 0, 0) && runs_once(2, 0, 0) ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(runs_once(9, 0, 0));
}

static void test_ended_workers_start_again(void **state)
{
    (void)state;
    uint32_t budget = flex_thread_count();
    for (uint32_t i = 0; i < 50; i++) {
        for (uint32_t n = 1; n < 12; n++) {
            assert_true(runs_once(n, 0, 0));
        }
        flex_threads_shutdown();
        flex_threads_init(1 + i % 5); /* as tests do: other shares than those of the last job */
    }
    flex_threads_init(budget);
    assert_true(runs_once(9, 0, 0));
    flex_threads_shutdown();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_task_runs_once),
        cmocka_unit_test(test_a_task_may_start_a_job),
        cmocka_unit_test(test_workers_that_sleep_are_woken),
        cmocka_unit_test(test_threads_of_the_application_do_not_meet),
        cmocka_unit_test(test_a_child_has_workers_of_its_own),
        cmocka_unit_test(test_ended_workers_start_again),
    };
    flex_threads_init((uint32_t)strtoul(argc > 1 ? argv[1] : "2", NULL, 10));
    no_children |= getenv("BURN_TEST_EMULATED") != NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
