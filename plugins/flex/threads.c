/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * threads.c - the thread pool behind threads.h.
 *
 * A job is told by one number, `news`: its serial number and how many tasks it has. Its tasks are
 * cut into a share for each thread, and each share is a counter of its own: what was taken of it by
 * which job. A thread takes its own share first, so that the same part of the data goes to the same
 * core from call to call, whose caches may still hold it; what a late thread has not begun, another
 * one takes. A job's function is read only after one of its tasks was taken: as long as a task is
 * out the job cannot end, so the function cannot change. A worker that comes late finds that the
 * job's shares are used up, or belong to a later job, and touches nothing.
 *
 * What one thread writes and others read lies in a line of its own: a line that two cores want
 * takes 50 to 100 ns on its way, and a job may be over in a few microseconds. Idle workers look for
 * news for a moment, then sleep on a condition.
 */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/* Pauses before a thread sleeps, and looks before each: a pause takes 40 ns on some CPUs, which
 * shows in jobs of a few microseconds. Two lines, since some CPUs fetch them in pairs. */
enum {
    POOL_MAX = 256,
    SPIN_WORKER = 2500,
    SPIN_CALLER = 5000,
    LOOKS = 16,
    MOMENT = 64, /* looks before another thread's share is looked at */
    LINES = 128
};

/* A serial number in the upper half, what is counted in the lower one. */
typedef struct line {
    _Alignas(LINES) _Atomic uint64_t word;
} line;

static struct {
    line shares[POOL_MAX + 1]; /* the last job that a share was used by, and what it took */
    line finished[POOL_MAX + 1]; /* the last job that a thread worked for, and what it finished */
    /* The job: all in one line, which goes to each worker once. */
    _Alignas(LINES) _Atomic uint64_t news;
    flex_task_fn fn;
    void *ctx;
    uint32_t job;
    /* Rarely changed. */
    _Alignas(LINES) _Atomic uint32_t sleepers;
    _Atomic uint32_t waiting; /* 1: the caller sleeps on `done` */
    _Atomic uint32_t stop;
    uint32_t budget;
    uint32_t n_workers;
    uint32_t started;
    uint32_t fork_handlers;
    pthread_mutex_t lock; /* guards the two conditions */
    pthread_cond_t wake;  /* workers: there is a job, or the end */
    pthread_cond_t done;  /* the caller: the last task is done */
    pthread_t workers[POOL_MAX];
    uint32_t slots[POOL_MAX];
    uint64_t old_news; /* what was there before the workers were */
    _Alignas(LINES) pthread_mutex_t submit; /* held while a job runs */
} pool = {
    .submit = PTHREAD_MUTEX_INITIALIZER,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .wake = PTHREAD_COND_INITIALIZER,
    .done = PTHREAD_COND_INITIALIZER,
    .budget = 1,
};

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

static uint32_t job_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static uint64_t word_of(uint32_t job, uint32_t count)
{
    return (uint64_t)job << 32 | count;
}

/* The first task, of n, of a share; the end of the last one is n. */
static uint32_t share_start(uint32_t share, uint32_t n)
{
    return (uint32_t)((uint64_t)share * n / pool.budget);
}

/* Takes a task of the job from a share; 0 when none is left. */
static int take_from(uint32_t share, uint64_t news, uint32_t *out_task)
{
    _Atomic uint64_t *word = &pool.shares[share].word;
    uint32_t job = job_of(news);
    uint32_t start = share_start(share, (uint32_t)news);
    uint32_t length = share_start(share + 1, (uint32_t)news) - start;
    uint64_t seen = atomic_load_explicit(word, memory_order_acquire);
    for (;;) {
        uint32_t taken = job_of(seen) == job ? (uint32_t)seen : 0;
        int is_later = (int32_t)(job_of(seen) - job) > 0;
        if (is_later || taken >= length) {
            return 0;
        }
        if (atomic_compare_exchange_weak_explicit(word, &seen, word_of(job, taken + 1),
                                                  memory_order_acq_rel, memory_order_acquire)) {
            *out_task = start + taken;
            return 1;
        }
    }
}

static int is_over(uint64_t news)
{
    uint32_t done = 0;
    for (uint32_t slot = 0; slot < pool.budget; slot++) {
        uint64_t word = atomic_load(&pool.finished[slot].word);
        done += job_of(word) == job_of(news) ? (uint32_t)word : 0;
    }
    return done == (uint32_t)news;
}

/*
 * A look at another thread's share costs that thread its line, and where each has but one task they
 * will all have begun: so they get a moment. 0: meanwhile the job is over, for the caller, or there
 * is another one.
 */
static int is_worth_a_look(uint32_t slot, uint64_t news)
{
    if ((uint32_t)news > pool.budget) {
        return 1;
    }
    for (uint32_t look = 0; look < MOMENT; look++) {
        if (slot == 0 ? is_over(news) : atomic_load(&pool.news) != news) {
            return 0;
        }
    }
    return 1;
}

/* Takes a task of the job, of the thread's own share if there is one left. */
static int take_one(uint32_t slot, uint64_t news, uint32_t *out_task)
{
    if (take_from(slot, news, out_task)) {
        return 1;
    }
    if (!is_worth_a_look(slot, news)) {
        return 0;
    }
    for (uint32_t i = 1; i < pool.budget; i++) {
        uint32_t share = slot + i < pool.budget ? slot + i : slot + i - pool.budget;
        if (take_from(share, news, out_task)) {
            return 1;
        }
    }
    return 0;
}

/* Runs tasks of the job until none is left, and tells after each that it is done. */
static void work(uint32_t slot, uint64_t news)
{
    uint32_t done = 0;
    uint32_t task = 0;
    /* Nothing is done yet; but now the line comes here while nobody waits for it. */
    atomic_store_explicit(&pool.finished[slot].word, word_of(job_of(news), 0),
                          memory_order_relaxed);
    while (take_one(slot, news, &task)) {
        in_task = 1;
        pool.fn(pool.ctx, task);
        in_task = 0;
        done++;
        atomic_store(&pool.finished[slot].word, word_of(job_of(news), done));
        if (atomic_load(&pool.waiting) != 0) {
            pthread_mutex_lock(&pool.lock);
            pthread_cond_signal(&pool.done);
            pthread_mutex_unlock(&pool.lock);
        }
    }
}

static void worker_sleep(uint64_t seen)
{
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add(&pool.sleepers, 1);
    while (atomic_load(&pool.news) == seen && atomic_load(&pool.stop) == 0) {
        pthread_cond_wait(&pool.wake, &pool.lock);
    }
    atomic_fetch_sub(&pool.sleepers, 1);
    pthread_mutex_unlock(&pool.lock);
}

/* `own` points at the worker's slot: 1 and up, the caller's is 0. */
static void *worker_main(void *own)
{
    uint32_t slot = *(const uint32_t *)own;
    /* An earlier job's shares were others, if the number of threads has changed. */
    uint64_t seen = pool.old_news;
    uint32_t idle = 0;
    while (atomic_load_explicit(&pool.stop, memory_order_acquire) == 0) {
        uint64_t news = seen;
        for (uint32_t look = 0; look < LOOKS && news == seen; look++) {
            news = atomic_load_explicit(&pool.news, memory_order_acquire);
        }
        if (news != seen) {
            work(slot, news);
            seen = news;
            idle = 0;
        } else if (idle < SPIN_WORKER) {
            idle++;
            spin_pause();
        } else {
            worker_sleep(seen);
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
    pool.old_news = atomic_load(&pool.news);
    if (pool.fork_handlers == 0) {
        pool.fork_handlers = 1;
        (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
    }
    atomic_store(&pool.stop, 0);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    while (pool.n_workers < pool.budget - 1) {
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

/*
 * A worker that goes to sleep in this moment may be overlooked, since nobody waits for the news to
 * arrive before looking: then the others do its share, and it is woken by the next job.
 */
static void wake_workers(uint32_t n_tasks)
{
    if (atomic_load_explicit(&pool.sleepers, memory_order_relaxed) == 0) {
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

static void wait_for_tasks(uint64_t news)
{
    for (uint32_t i = 0; i < SPIN_CALLER; i++) {
        for (uint32_t look = 0; look < LOOKS; look++) {
            if (is_over(news)) {
                return;
            }
        }
        spin_pause();
    }
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.waiting, 1);
    while (!is_over(news)) {
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
    pool.job++;
    uint64_t news = word_of(pool.job, n_tasks);
    atomic_store_explicit(&pool.news, news, memory_order_release);
    wake_workers(n_tasks);
    work(0, news);
    wait_for_tasks(news);
    pthread_mutex_unlock(&pool.submit);
}

uint32_t flex_thread_count(void)
{
    return pool.budget;
}

void flex_threads_init(uint32_t budget)
{
    uint32_t most = POOL_MAX + 1;
    pool.budget = budget < 1 ? 1 : budget > most ? most : budget;
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
