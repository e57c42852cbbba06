/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * kept_plan.c - the bytes of a kept plan. See kept_plan.h.
 *
 * Little-endian: version (4), number of records (4), refusals (4), 0 (4), then for each record its
 * chain (8), then for each its group (2). Each plan has one form: what is read is written again as
 * the same bytes. Another version is refused, and planned anew.
 */
#include "tune/kept_plan.h"

enum { VERSION = 1, HEAD = 16, RECORD = 10 };

static unsigned char *put(unsigned char *at, uint64_t value, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        *at++ = (unsigned char)(value >> (8 * i));
    }
    return at;
}

static uint64_t get(const unsigned char *at, uint32_t n)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < n; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

uint32_t burni_kept_plan_encode(const burni_kept_plan *plan, unsigned char *out)
{
    unsigned char *at = put(out, VERSION, 4);
    at = put(at, plan->n, 4);
    at = put(at, plan->refusals, 4);
    at = put(at, 0, 4);
    for (uint32_t i = 0; i < plan->n; i++) {
        at = put(at, plan->chains[i], 8);
    }
    for (uint32_t i = 0; i < plan->n; i++) {
        at = put(at, plan->groups[i], 2);
    }
    return (uint32_t)(at - out);
}

/* A group is called by its first record, which runs. */
static int is_group(const burni_kept_plan *plan, uint32_t i)
{
    uint16_t group = plan->groups[i];
    return group == BURNI_KEPT_UNUSED || (group <= i && plan->groups[group] == group);
}

int32_t burni_kept_plan_decode(const void *bytes, size_t size, burni_kept_plan *out)
{
    const unsigned char *at = bytes;
    if (size < HEAD || get(at, 4) != VERSION || get(at + 12, 4) != 0) {
        return BURN_E_FORMAT;
    }
    out->n = (uint32_t)get(at + 4, 4);
    out->refusals = (uint32_t)get(at + 8, 4);
    if (out->n == 0 || out->n > BURNI_KEPT_RECORDS || size != HEAD + (size_t)RECORD * out->n) {
        return BURN_E_FORMAT;
    }
    at += HEAD;
    for (uint32_t i = 0; i < out->n; i++, at += 8) {
        out->chains[i] = get(at, 8);
    }
    for (uint32_t i = 0; i < out->n; i++, at += 2) {
        out->groups[i] = (uint16_t)get(at, 2);
        if (!is_group(out, i)) {
            return BURN_E_FORMAT;
        }
    }
    return BURN_OK;
}
