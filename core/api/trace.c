/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * trace.c - the public functions of <burn/trace.h>: tags, lines and math modes of a thread.
 */
#include "base/tag.h"
#include "exec/profile.h"
#include "tensor/tensor.h"

#include <burn/trace.h>

/* ---- tags ------------------------------------------------------------------------------------ */

static void push(burni_thread *thread, uint64_t tag)
{
    if (thread->n_tags < BURNI_MAX_TAGS) {
        thread->tags[thread->n_tags] = thread->tag;
        thread->tag = tag;
    }
    thread->n_tags++;
}

void burn_tag_begin(const char *name)
{
    burni_thread *thread = burni_thread_get();
    if (thread != NULL) {
        push(thread, burni_tag_child(thread->tag, name));
        if (atomic_load_explicit(&burni_profile_on, memory_order_relaxed) != 0) {
            burni_profile_place_begin(thread);
        }
    }
}

void burn_tag_end(void)
{
    burni_thread *thread = burni_thread_current;
    if (thread == NULL || thread->n_tags == 0) {
        return;
    }
    if (atomic_load_explicit(&burni_profile_on, memory_order_relaxed) != 0) {
        burni_profile_place_end(thread);
    }
    thread->n_tags--;
    if (thread->n_tags < BURNI_MAX_TAGS) {
        thread->tag = thread->tags[thread->n_tags];
    }
}

uint64_t burn_tag(void)
{
    return burni_thread_current != NULL ? burni_thread_current->tag : 0;
}

size_t burn_tag_text(uint64_t tag, char *out, size_t size)
{
    return burni_tag_text(tag, out, out != NULL ? size : 0);
}

void burn_trace_begin(const char *file, uint32_t line)
{
    burni_thread *thread = burni_thread_get();
    if (thread != NULL) {
        push(thread, burni_tag_at(thread->tag, file, line));
    }
}

burn_tensor *burn_trace_end(burn_tensor *result)
{
    burn_tag_end();
    return result;
}

/* ---- math modes ------------------------------------------------------------------------------ */

void burn_math_begin(uint32_t mode)
{
    burni_thread *thread = burni_thread_get();
    if (thread == NULL) {
        return;
    }
    if (thread->n_maths < BURNI_MAX_MATHS) {
        thread->maths[thread->n_maths] = thread->math;
        thread->math = mode & (uint32_t)BURN_MATH_REDUCED;
    }
    thread->n_maths++;
}

void burn_math_end(void)
{
    burni_thread *thread = burni_thread_current;
    if (thread == NULL || thread->n_maths == 0) {
        return;
    }
    thread->n_maths--;
    if (thread->n_maths < BURNI_MAX_MATHS) {
        thread->math = thread->maths[thread->n_maths];
    }
}
