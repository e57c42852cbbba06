/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tuner_scratch.h - running the rows of a race, and how fast the device can be at most.
 *
 * A field has the candidates of one call. Opened, it has a queue and memory of its own, straight
 * from the backend: the pools, peaks and streams of the program do not see it. Inputs hold small
 * numbers. One field is open at a time (tuner.c has the lock).
 */
#ifndef BURN_CORE_EXEC_TUNER_SCRATCH_H
#define BURN_CORE_EXEC_TUNER_SCRATCH_H

#include "exec/device.h"
#include "tune/race.h"

typedef struct burni_field {
    uint32_t n;
    uint32_t n_buffers;
    const burn_row *rows[BURNI_RACE_MAX];
    burn_prepared prepared[BURNI_RACE_MAX];
    const burn_call *call; /* as it was described; its memory is not touched */
    /* While it is open. */
    burni_device *device;
    burn_queue *queue;
    uint64_t point;
    burn_operand *operands;
    int64_t *strides; /* of operands that are made dense first */
    burn_operand workspace;
    burn_buffer *buffers[BURN_MAX_OPERANDS + 1];
} burni_field;

/* 0 when there is no queue or memory for it; then it is closed. */
int burni_field_open(burni_field *f, burni_device *device);
void burni_field_close(burni_field *f);

/* burni_race.run; `user` is an open field. */
double burni_field_run(void *user, uint32_t candidate, uint32_t repeats);

/* Seconds that no kernel can beat, by what the rows say that the call takes and what the device was
 * seen to reach, which is measured when the environment does not know it; 0: not known. */
double burni_field_bound(const burni_field *f);
/* A candidate took that long for one run: what it reached may be more than was known. */
void burni_field_raise(const burni_field *f, double seconds, uint32_t candidate);

#endif /* BURN_CORE_EXEC_TUNER_SCRATCH_H */
