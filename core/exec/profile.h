/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * profile.h - takes the times of launches and places; what it keeps has the form of
 * <burn/profile.h>.
 *
 * stream.c calls it around the launches of streams whose `way` has BURNI_WAY_MEASURED, and only
 * then: others pay nothing, not even a test, since `way` is what tells them how to launch anyway.
 * A lane is written by whoever runs its stream. On an asynchronous device times arrive later, and
 * anybody who waits collects them; such a lane has a lock. No memory is allocated at a launch.
 */
#ifndef BURN_CORE_EXEC_PROFILE_H
#define BURN_CORE_EXEC_PROFILE_H

#include "exec/stream.h"

typedef struct burni_lane burni_lane;

/* One launch between the two calls below; they are on one thread. */
typedef struct burni_measure {
    burni_lane *lane; /* NULL: not measured */
    uint64_t start_ns;
    uint32_t entry;
    uint32_t slot; /* of the device's clock */
    int32_t begun; /* the clock took the slot */
    uint32_t zero;
} burni_measure;

/* 1 while times are taken. */
extern _Atomic uint32_t burni_profile_on;

/* Begins when BURN_PROFILE asks for it. Once; later calls answer the same. */
int32_t burni_profile_start(burn_err *err);
/* A stream was made: it is measured when others are. */
void burni_profile_stream(burni_stream *stream);

/* Just before and after a kernel's launch; `operands` are bound. Only launches that answered
 * BURN_OK count. */
void burni_profile_before(burni_stream *stream, const burni_launch *launch,
                          const burn_operand *operands, burni_measure *out);
void burni_profile_after(burni_stream *stream, const burni_measure *m, int32_t rc);
/* The queue of a measured stream was waited for. */
void burni_profile_collect(const burni_stream *stream);
/* The queue ends: waits for it, takes what is left, and measures no more. */
void burni_profile_leave(burni_stream *stream);

/* A tag began, or is about to end; when burni_profile_on. */
void burni_profile_place_begin(burni_thread *thread);
void burni_profile_place_end(burni_thread *thread);
/* The thread's lane of places waits for another thread. */
void burni_profile_thread_exit(burni_thread *thread);

#endif /* BURN_CORE_EXEC_PROFILE_H */
