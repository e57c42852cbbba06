/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * explain.h - collects which row, decomposition or copy each call took, and why not another.
 *
 * Called by emit.c and its parts for threads that watch dispatch (BURNI_WATCH_DISPATCH); others pay
 * nothing. The table is one per process, in a file that is mapped when BURN_EXPLAIN names
 * a folder; its form is <burn/explain.h>. All functions: [any], any thread.
 */
#ifndef BURN_CORE_EXEC_EXPLAIN_H
#define BURN_CORE_EXEC_EXPLAIN_H

#include "exec/emit_private.h"

/* Makes the table when BURN_LOG=dispatch or BURN_EXPLAIN ask for it; the threads that are to watch
 * are told (burni_watch_all). Once; later calls answer the same. */
int32_t burni_explain_start(burn_err *err);
/* Writes the totals to the log, once. */
void burni_explain_finish(void);

/* A row serves the call (after copies, when `resolved` asks for them), or none does and it is
 * decomposed or fails. */
void burni_explain_kernel(burni_emission *e, const burn_call *call, const burni_resolved *resolved);
/* It is decomposed although a row may serve it. */
void burni_explain_decomposed(burni_emission *e, const char *why);
void burni_explain_view(burni_emission *e);
void burni_explain_failed(burni_emission *e, const burn_err *err);
/* An operand of the innermost frame's op, or of `e`, is made dense. */
void burni_explain_copy(burni_emission *e, const burn_tensor *t);
/* An op was emitted while a frame is open: what it belongs to may want to name it. */
void burni_explain_part(burni_thread *thread, const burni_op *op);

/* Calls of these names ran as one, which is called `op`, by the row `served`, or did not ("" and
 * why). */
void burni_explain_fused(burni_thread *thread, const char *op, const char *names,
                         const char *served, const char *why);

#endif /* BURN_CORE_EXEC_EXPLAIN_H */
