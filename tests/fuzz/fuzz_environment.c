/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fuzz_environment.c - the reader of tuning environments on arbitrary bytes. Each input is tried as
 * it is and with size and checksum put right, so that mutations get behind them. What is accepted
 * must be written back byte for byte, found by its keys and merged into an empty one as the same.
 * Plans in it, and the input itself taken as one, are read or refused, and written back alike.
 */
#include "fuzz.h"

#include "core/base/alloc.h"
#include "core/tune/benv.h"
#include "core/tune/kept_plan.h"

#include <stdlib.h>
#include <string.h>

/* Groups are called by their first records, so that whoever makes them needs no more checks. */
static void try_plan(const void *bytes, size_t size)
{
    burni_kept_plan *plan = malloc(sizeof(*plan));
    unsigned char *again = malloc(BURNI_KEPT_BYTES);
    if (plan == NULL || again == NULL) {
        abort();
    }
    if (burni_kept_plan_decode(bytes, size, plan) == BURN_OK) {
        if (plan->n == 0 || plan->n > BURNI_KEPT_RECORDS) {
            abort();
        }
        if (burni_kept_plan_encode(plan, again) != size || memcmp(again, bytes, size) != 0) {
            abort();
        }
        for (uint32_t i = 0; i < plan->n; i++) {
            uint16_t group = plan->groups[i];
            if (group != BURNI_KEPT_UNUSED && (group > i || plan->groups[group] != group)) {
                abort();
            }
        }
    }
    free(again);
    free(plan);
}

static void look_up(const burni_benv_device *d)
{
    for (uint32_t i = 0; i < d->n_choices; i++) {
        const burni_choice *c = &d->choices[i];
        if (burni_benv_choice(d, c->key, c->key_size) != c || c->row[0] == '\0' ||
            strlen(c->row) >= sizeof(c->row) || c->text == NULL) {
            abort();
        }
    }
    for (uint32_t i = 0; i < d->n_plans; i++) {
        if (burni_benv_plan(d, d->plans[i].key) != &d->plans[i]) {
            abort();
        }
        try_plan(d->plans[i].bytes, (size_t)d->plans[i].size);
    }
    for (uint32_t i = 0; i < d->n_roofs; i++) {
        if (!(burni_benv_roof(d, d->roofs[i].what) >= 0.0)) {
            abort();
        }
    }
}

/* It is written as these bytes. */
static void check_bytes(const burni_benv *env, const uint8_t *bytes, size_t size)
{
    uint64_t again = 0;
    unsigned char *written = burni_benv_encode(env, &again);
    if (written == NULL || again != size || memcmp(written, bytes, size) != 0) {
        abort();
    }
    burni_free(written);
}

static void try_bytes(const uint8_t *bytes, size_t size)
{
    burn_err err = BURN_ERR_INIT;
    burni_benv *env = NULL;
    if (burni_benv_decode(bytes, size, &env, &err) != BURN_OK) {
        if (env != NULL || err.code >= 0 || strncmp(err.text, "offset ", 7) != 0) {
            abort(); /* half of it, or an error without a place */
        }
        return;
    }
    burni_benv *copy = burni_benv_new();
    for (uint32_t i = 0; i < env->n_devices; i++) {
        look_up(&env->devices[i]);
    }
    if (copy == NULL || burni_benv_merge(copy, env, 0) != BURN_OK) {
        abort();
    }
    check_bytes(env, bytes, size);
    burni_benv_free(copy);
    burni_benv_free(env);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    enum { HEAD = 40 };
    try_bytes(bytes, size);
    try_plan(bytes, size);
    uint8_t *copy = size >= HEAD ? malloc(size) : NULL;
    if (copy == NULL) {
        return 0;
    }
    memcpy(copy, bytes, size);
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = HEAD; i < size; i++) {
        hash = (hash ^ copy[i]) * UINT64_C(1099511628211);
    }
    for (uint32_t i = 0; i < 8; i++) {
        copy[16 + i] = (uint8_t)((uint64_t)size >> (8 * i));
        copy[24 + i] = (uint8_t)(hash >> (8 * i));
    }
    memset(copy + 32, 0, 8);
    try_bytes(copy, size);
    free(copy);
    return 0;
}
