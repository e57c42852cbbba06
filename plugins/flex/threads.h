/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * threads.h - the backend's own thread pool.
 *
 * Workers start on the first parallel call that has more than one task, sleep when idle and end at
 * shutdown. One job runs at a time: a second application thread, or a task that calls
 * flex_parallel itself, runs its tasks inline. Split work by data (a fixed number of elements per
 * task), never by the number of threads, so that results do not depend on it.
 */
#ifndef BURN_PLUGINS_FLEX_THREADS_H
#define BURN_PLUGINS_FLEX_THREADS_H

#include <stdint.h>

typedef void (*flex_task_fn)(void *ctx, uint32_t task);

/*
 * Calls fn(ctx, 0) ... fn(ctx, n_tasks - 1), each once, in any order, on the calling thread and the
 * workers; returns when all are done. What tasks wrote is visible to the caller then. [any]
 */
void flex_parallel(uint32_t n_tasks, flex_task_fn fn, void *ctx);

/* How many threads a job may use, the caller among them; at least 1. [any] */
uint32_t flex_thread_count(void);

/* Sets the number of threads (1: no workers), before the first job. [init] */
void flex_threads_init(uint32_t budget);

/* Ends and joins the workers. Later jobs would start new ones. [init] */
void flex_threads_shutdown(void);

#endif /* BURN_PLUGINS_FLEX_THREADS_H */
