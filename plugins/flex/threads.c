/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * threads.c - the thread pool behind threads.h.
 *
 * A job's tasks are handed out through one 64-bit ticket: job number << 32 | what is left of it. A
 * worker takes a task by changing the ticket, and reads the job's function only after that: as long
 * as a task is out, its job cannot end, so the fields cannot change. A worker that comes late finds
 * no tasks left and touches nothing. Idle workers spin for a moment, then sleep on a condition.
 *
 * Many tasks are a count. Few ones are a set of bits, and a thread takes those of its own share
 * first: the same part of the data goes to the same core from call to call, whose caches may still
 * hold it. What a late thread has not begun, another one takes.
 */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/* Pauses before a thread sleeps, and looks before each: a pause takes 40 ns on some CPUs, which
 * shows in jobs of a few microseconds. */
enum { POOL_MAX = 256, SPIN_WORKER = 2500, SPIN_CALLER = 5000, LOOKS = 16 };

static struct {
    pthread_mutex_t submit; /* held while a job runs */
    pthread_mutex_t lock;   /* guards the two conditions */
    pthread_cond_t wake;    /* workers: there is a job, or the end */
    pthread_cond_t done;    /* the caller: the last task is done */
    _Atomic uint64_t ticket;
    _Atomic uint32_t pending; /* tasks not finished */
    _Atomic uint32_t sleepers;
    _Atomic uint32_t waiting; /* 1: the caller sleeps on `done` */
    _Atomic uint32_t stop;
    flex_task_fn fn;
    void *ctx;
    uint32_t n_tasks;
    uint32_t job;
    uint32_t budget;
    uint32_t n_workers;
    uint32_t started;
    uint32_t fork_handlers;
    pthread_t workers[POOL_MAX];
    uint32_t slots[POOL_MAX];
} pool = {
    .submit = PTHREAD_MUTEX_INITIALIZER,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .wake = PTHREAD_COND_INITIALIZER,
    .done = PTHREAD_COND_INITIALIZER,
    .budget = 1,
};

/* In a ticket: its low half is a set of bits, not a count, and the next five bits say of how many
 * tasks. */
#define SET_OF_BITS (UINT64_C(1) << 63)
enum { MAX_SET = 31, SET_SIZE_SHIFT = 58 };

/* Set while this thread runs a task: a nested job runs inline. */
static _Thread_local int in_task;

static void spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The tasks, of n, that are in the shares of the threads before `slot`. */
static uint32_t first_tasks(uint32_t slot, uint32_t n)
{
    return (uint32_t)((UINT64_C(1) << (uint64_t)slot * n / pool.budget) - 1);
}

/* The ticket without one task: the first of the thread's share that is left, else of all. */
static uint64_t without_one(uint64_t ticket, uint32_t slot, uint32_t *bit)
{
    if ((ticket & SET_OF_BITS) == 0) {
        return ticket - 1;
    }
    uint32_t n = (uint32_t)(ticket >> SET_SIZE_SHIFT) & MAX_SET;
    uint32_t left = (uint32_t)ticket;
    uint32_t own = left & first_tasks(slot + 1, n) & ~first_tasks(slot, n);
    *bit = (uint32_t)__builtin_ctz(own != 0 ? own : left);
    return ticket & ~(UINT64_C(1) << *bit);
}

/* Takes one task of the current job and runs it; 0 when none is left. */
static int run_one(uint32_t slot)
{
    uint64_t ticket = atomic_load_explicit(&pool.ticket, memory_order_acquire);
    uint32_t bit = 0;
    do {
        if ((uint32_t)ticket == 0) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak_explicit(&pool.ticket, &ticket,
                                                    without_one(ticket, slot, &bit),
                                                    memory_order_acq_rel, memory_order_acquire));
    uint32_t task = (ticket & SET_OF_BITS) != 0 ? bit : pool.n_tasks - (uint32_t)ticket;
    in_task = 1;
    pool.fn(pool.ctx, task);
    in_task = 0;
    if (atomic_fetch_sub(&pool.pending, 1) == 1 && atomic_load(&pool.waiting) != 0) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_signal(&pool.done);
        pthread_mutex_unlock(&pool.lock);
    }
    return 1;
}

static int has_work(void)
{
    return (uint32_t)atomic_load(&pool.ticket) != 0;
}

static void worker_sleep(void)
{
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add(&pool.sleepers, 1);
    while (!has_work() && atomic_load(&pool.stop) == 0) {
        pthread_cond_wait(&pool.wake, &pool.lock);
    }
    atomic_fetch_sub(&pool.sleepers, 1);
    pthread_mutex_unlock(&pool.lock);
}

/* `own` points at the worker's slot: 1 and up, the caller's is 0. */
static void *worker_main(void *own)
{
    uint32_t slot = *(const uint32_t *)own;
    uint32_t idle = 0;
    while (atomic_load_explicit(&pool.stop, memory_order_acquire) == 0) {
        int ran = 0;
        for (uint32_t look = 0; look < LOOKS && ran == 0; look++) {
            ran = run_one(slot);
        }
        if (ran != 0) {
            idle = 0;
        } else if (idle < SPIN_WORKER) {
            idle++;
            spin_pause();
        } else {
            worker_sleep();
            idle = 0;
        }
    }
    return NULL;
}

/* A child of fork has no workers; the locks are ours, since `before_fork` took them. */
static void before_fork(void)
{
    if (in_task == 0) {
        pthread_mutex_lock(&pool.submit);
    }
    pthread_mutex_lock(&pool.lock);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&pool.lock);
    if (in_task == 0) {
        pthread_mutex_unlock(&pool.submit);
    }
}

static void after_fork_child(void)
{
    pool.started = 0;
    pool.n_workers = 0;
    atomic_store(&pool.sleepers, 0);
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.done, NULL);
    after_fork_parent();
}

/* Signals stay the application's: workers block all of them. */
static void start_workers(void)
{
    sigset_t all;
    sigset_t old;
    pool.started = 1;
    if (pool.fork_handlers == 0) {
        pool.fork_handlers = 1;
        (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
    }
    atomic_store(&pool.stop, 0);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    uint32_t wanted = pool.budget - 1 < POOL_MAX ? pool.budget - 1 : POOL_MAX;
    while (pool.n_workers < wanted) {
        pool.slots[pool.n_workers] = pool.n_workers + 1;
        if (pthread_create(&pool.workers[pool.n_workers], NULL, worker_main,
                           &pool.slots[pool.n_workers]) != 0) {
            break; /* fewer workers, same results */
        }
#if defined(__linux__)
        (void)pthread_setname_np(pool.workers[pool.n_workers], "burn-flex");
#endif
        pool.n_workers++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void wake_workers(uint32_t n_tasks)
{
    if (atomic_load(&pool.sleepers) == 0) {
        return;
    }
    pthread_mutex_lock(&pool.lock);
    if (n_tasks > pool.n_workers) {
        pthread_cond_broadcast(&pool.wake);
    } else {
        for (uint32_t i = 1; i < n_tasks; i++) {
            pthread_cond_signal(&pool.wake);
        }
    }
    pthread_mutex_unlock(&pool.lock);
}

static void wait_for_tasks(void)
{
    for (uint32_t i = 0; i < SPIN_CALLER; i++) {
        for (uint32_t look = 0; look < LOOKS; look++) {
            if (atomic_load_explicit(&pool.pending, memory_order_acquire) == 0) {
                return;
            }
        }
        spin_pause();
    }
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.waiting, 1);
    while (atomic_load(&pool.pending) != 0) {
        pthread_cond_wait(&pool.done, &pool.lock);
    }
    atomic_store(&pool.waiting, 0);
    pthread_mutex_unlock(&pool.lock);
}

static void run_inline(uint32_t n_tasks, flex_task_fn fn, void *ctx)
{
    for (uint32_t i = 0; i < n_tasks; i++) {
        fn(ctx, i);
    }
}

void flex_parallel(uint32_t n_tasks, flex_task_fn fn, void *ctx)
{
    if (n_tasks < 2 || pool.budget < 2 || in_task != 0 ||
        pthread_mutex_trylock(&pool.submit) != 0) {
        run_inline(n_tasks, fn, ctx);
        return;
    }
    if (pool.started == 0) {
        start_workers();
    }
    pool.fn = fn;
    pool.ctx = ctx;
    pool.n_tasks = n_tasks;
    pool.job++;
    atomic_store(&pool.pending, n_tasks);
    uint64_t job = (uint64_t)(pool.job & 0x3ffffffu) << 32;
    uint64_t left = n_tasks;
    if (n_tasks <= MAX_SET) {
        left = SET_OF_BITS | left << SET_SIZE_SHIFT | ((UINT64_C(1) << n_tasks) - 1);
    }
    atomic_store(&pool.ticket, job | left);
    wake_workers(n_tasks);
    while (run_one(0) != 0) {
    }
    wait_for_tasks();
    pthread_mutex_unlock(&pool.submit);
}

uint32_t flex_thread_count(void)
{
    return pool.budget;
}

void flex_threads_init(uint32_t budget)
{
    pool.budget = budget < 1 ? 1 : budget;
}

void flex_threads_shutdown(void)
{
    pthread_mutex_lock(&pool.submit);
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.stop, 1);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    for (uint32_t i = 0; i < pool.n_workers; i++) {
        (void)pthread_join(pool.workers[i], NULL);
    }
    pool.n_workers = 0;
    pool.started = 0;
    pthread_mutex_unlock(&pool.submit);
}
