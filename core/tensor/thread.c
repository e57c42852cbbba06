/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * thread.c - the state of a thread and its scopes.
 *
 * Made on first use, ended by the thread's exit: pending work is flushed by the hook, the scopes
 * release what they hold, free lists go back to the heap. Scope ends never flush work; they make
 * temporaries dead.
 */
#include "tensor/tensor.h"

#include "base/alloc.h"

#include <pthread.h>
#include <string.h>

_Thread_local burni_thread *burni_thread_current __attribute__((tls_model("initial-exec")));

_Atomic uint32_t burni_watch_all;

static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t thread_counter;

static void release_down_to(burni_thread *thread, uint32_t floor)
{
    while (thread->n_items > floor) {
        burn_tensor *t = thread->scope_items[--thread->n_items];
        if (t != NULL) {
            t->scope_slot = 0;
            burni_handle_unref(t);
        }
    }
}

static void free_lists(burni_thread *thread)
{
    while (thread->free_handles != NULL) {
        burn_tensor *t = thread->free_handles;
        thread->free_handles = t->next;
        burni_free(t);
    }
    while (thread->free_storages != NULL) {
        burni_storage *s = thread->free_storages;
        thread->free_storages = s->next;
        burni_free(s);
    }
    while (thread->free_nodes != NULL) {
        burni_node *n = thread->free_nodes;
        thread->free_nodes = n->next;
        burni_free(n);
    }
}

static void on_thread_exit(void *arg)
{
    burni_thread *thread = arg;
    burni_thread_current = thread;
    release_down_to(thread, 0);
    if (burni_hooks_table.thread_exit != NULL) {
        burni_hooks_table.thread_exit(thread);
    }
    burni_thread_current = NULL;
    free_lists(thread);
    burni_free(thread->scope_items);
    burni_free(thread->scope_marks);
    burni_free(thread);
}

static void make_key(void)
{
    (void)pthread_key_create(&exit_key, on_thread_exit);
}

burni_thread *burni_thread_make(void)
{
    (void)pthread_once(&exit_once, make_key);
    burni_thread *thread = burni_calloc(1, sizeof(*thread));
    if (thread == NULL) {
        return NULL;
    }
    if (pthread_setspecific(exit_key, thread) != 0) {
        burni_free(thread);
        return NULL;
    }
    /* Each thread has its own generator, told apart by its seed. */
    thread->rng_seed = atomic_fetch_add(&thread_counter, 1);
    thread->watch = atomic_load(&burni_watch_all);
    burni_thread_current = thread;
    return thread;
}

/* ---- scopes ------------------------------------------------------------------------------- */

void burn_scope_begin(void)
{
    burni_thread *thread = burni_thread_get();
    if (thread == NULL) {
        return;
    }
    if (thread->lost_marks > 0) {
        thread->lost_marks++;
        return;
    }
    if (thread->n_marks == thread->cap_marks) {
        uint32_t cap = thread->cap_marks > 0 ? 2 * thread->cap_marks : 32;
        uint32_t *marks = burni_realloc(thread->scope_marks, cap * sizeof(*marks));
        if (marks == NULL) {
            /* Its temporaries fall to the outer scope; its end must not end that one. */
            thread->lost_marks++;
            return;
        }
        thread->scope_marks = marks;
        thread->cap_marks = cap;
    }
    thread->scope_marks[thread->n_marks++] = thread->n_items;
}

void burni_scope_end_inside(burn_tensor *const *results, uint32_t n)
{
    burni_thread *thread = burni_thread_current;
    if (thread == NULL) {
        return;
    }
    if (thread->lost_marks > 0) {
        thread->lost_marks--;
        return;
    }
    if (thread->n_marks == 0) {
        return;
    }
    uint32_t floor = thread->scope_marks[thread->n_marks - 1];
    for (uint32_t i = 0; i < n; i++) {
        /* Only what this scope holds moves out; a result of an outer scope stays where it is. */
        if (results[i] != NULL && results[i]->scope_slot > floor &&
            results[i]->scope_slot <= thread->n_items &&
            thread->scope_items[results[i]->scope_slot - 1] == results[i]) {
            thread->scope_items[results[i]->scope_slot - 1] = NULL;
            results[i]->scope_slot = UINT32_MAX;
        }
    }
    release_down_to(thread, floor);
    thread->n_marks--;
    /* The slots that were just emptied are room enough: no allocation can fail here. */
    for (uint32_t i = 0; i < n; i++) {
        if (results[i] != NULL && results[i]->scope_slot == UINT32_MAX) {
            thread->scope_items[thread->n_items++] = results[i];
            results[i]->scope_slot = thread->n_items;
        }
    }
}

void burn_scope_end_with(burn_tensor *const *results, uint32_t n)
{
    burni_scope_end_inside(results, n);
    burni_thread *thread = burni_thread_current;
    if (thread != NULL && thread->n_marks == 0 && thread->open_sequences != 0) {
        burni_hooks_table.scopes_ended(thread);
    }
}

void burn_scope_end(void)
{
    burn_scope_end_with(NULL, 0);
}

burn_tensor *burn_scope_return(burn_tensor *result)
{
    burn_scope_end_with(&result, 1);
    return result;
}

void burn_scope_flush(void)
{
    burni_thread *thread = burni_thread_current;
    if (thread != NULL && thread->n_marks == 0) {
        release_down_to(thread, 0);
        if (thread->open_sequences != 0) {
            burni_hooks_table.scopes_ended(thread);
        }
    }
}

burn_tensor *burn_keep(burn_tensor *t)
{
    burni_thread *thread = burni_thread_current;
    if (t == NULL || thread == NULL) {
        return t;
    }
    if (t->storage != NULL && atomic_load_explicit(&t->storage->state, memory_order_acquire) ==
                                  BURNI_UNRUN) {
        burni_hooks_table.wanted(t->storage);
    }
    if (t->scope_slot != 0) {
        burni_scope_remove(thread, t);
    } else {
        (void)burni_handle_ref(t);
    }
    return t;
}

void burn_release(burn_tensor *t)
{
    /* A handle on a free list has no references: a second release of one is left alone. */
    if (t == NULL || atomic_load_explicit(&t->refs, memory_order_acquire) == 0) {
        return;
    }
    if (t->scope_slot != 0 && burni_thread_current != NULL) {
        burni_scope_remove(burni_thread_current, t);
    }
    burni_handle_unref(t);
}

burn_tensor *burn_move(burn_tensor *t)
{
    /* A failed tensor is handed over like any other, but for the immortal one that all share. */
    if (t != NULL && atomic_load_explicit(&t->refs, memory_order_relaxed) < BURNI_IMMORTAL / 2) {
        t->flags |= BURNI_MOVED;
    }
    return t;
}
