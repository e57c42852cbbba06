/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * kept_plan.h - a plan of waiting calls as bytes, for an environment's file.
 *
 * Holds which records run as one, and the chain of each record (exec/sequence.h), by which the
 * calls are known again; no program, size or address. What is read is hostile: the bytes are
 * checked here for their form, and by exec/plan.c against the records that they are to serve.
 * Other than that this knows nothing of plans. [any]
 */
#ifndef BURN_CORE_TUNE_KEPT_PLAN_H
#define BURN_CORE_TUNE_KEPT_PLAN_H

#include <burn/base.h>
#include <burn/status.h>
#include <stddef.h>

#define BURNI_KEPT_RECORDS 1024u
#define BURNI_KEPT_UNUSED  UINT16_MAX /* a record that nobody needs */
#define BURNI_KEPT_BYTES   (16u + 10u * BURNI_KEPT_RECORDS)

typedef struct burni_kept_plan {
    uint32_t n;        /* records */
    uint32_t refusals; /* how often what was kept under this key did not fit */
    uint64_t chains[BURNI_KEPT_RECORDS];
    uint16_t groups[BURNI_KEPT_RECORDS]; /* the first record of its group, which may be itself */
} burni_kept_plan;

/* Writes at most BURNI_KEPT_BYTES; how many. */
uint32_t burni_kept_plan_encode(const burni_kept_plan *plan, unsigned char *out);
/* BURN_E_FORMAT, and nothing is known of `out`, where these are not the bytes of a plan. */
int32_t burni_kept_plan_decode(const void *bytes, size_t size, burni_kept_plan *out);

#endif /* BURN_CORE_TUNE_KEPT_PLAN_H */
