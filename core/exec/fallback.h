/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fallback.h - a launch that a kernel refused, done by the op's decomposition instead.
 */
#ifndef BURN_CORE_EXEC_FALLBACK_H
#define BURN_CORE_EXEC_FALLBACK_H

#include "exec/stream.h"

/* Runs the decomposition of a record that its kernel answered with BURN_E_UNSUPPORTED, at once, in
 * the record's place; results and failures go to the record's storages. The op has a decomposition,
 * the stream's lock is held, the operands are as before they were bound. */
void burni_fallback(burni_stream *stream, const burni_launch *launch);

/* 1 while the calling thread runs a decomposition in the place of one of the stream's records: what
 * it emits there is launched, not kept. */
int burni_fallback_runs(const burni_stream *stream);

#endif /* BURN_CORE_EXEC_FALLBACK_H */
