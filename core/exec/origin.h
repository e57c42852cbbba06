/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * origin.h - which call of the program a launch belongs to, when a decomposition made it.
 *
 * The outermost decomposition of a thread opens one; launches that are made until it ends carry it,
 * and so do their records and fault words, which may speak much later. Errors of parts then begin
 * with the op that was called and the shapes it was given. Counted, and never changed: any thread
 * may read one that it holds. To tell more of the call: keep it here when the origin is opened.
 */
#ifndef BURN_CORE_EXEC_ORIGIN_H
#define BURN_CORE_EXEC_ORIGIN_H

#include "ops/registry.h"

#include <burn/builder.h>
#include <stdatomic.h>

typedef struct burni_origin {
    _Atomic uint32_t refs;
    uint32_t n_in;
    const burni_op *op;
    burn_meta in[];
} burni_origin;

/* NULL when memory is short: errors then name the part only. */
burni_origin *burni_origin_new(const burni_op *op, const burn_meta *in, uint32_t n_in);

static inline burni_origin *burni_origin_ref(burni_origin *origin)
{
    if (origin != NULL) {
        (void)atomic_fetch_add_explicit(&origin->refs, 1, memory_order_relaxed);
    }
    return origin;
}

/* NULL is fine. */
void burni_origin_unref(burni_origin *origin);

/* Puts the call before an error of one of its parts, once; the error is the call's from then on.
 * NULL is fine. */
void burni_origin_tell(const burni_origin *origin, burn_err *err);

#endif /* BURN_CORE_EXEC_ORIGIN_H */
