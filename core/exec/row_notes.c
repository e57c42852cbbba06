/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * row_notes.c - what this process has seen of a row. See row_notes.h.
 *
 * Places in two tables, found by the row's address and never given back. A place of the first is
 * taken by an exchange and needs no lock. Texts are rare, so their table is small, has a lock, and
 * is searched from its beginning.
 */
#include "exec/row_notes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { COUNTED_ROWS = 2048, PROBES = 64, OFF_ROWS = 128 };

typedef struct counted {
    _Atomic uintptr_t row;
    _Atomic uint64_t n;
} counted;

typedef struct off_row {
    const burn_row *row;
    char why[232];
} off_row;

static counted counted_rows[COUNTED_ROWS];
static pthread_mutex_t off_lock = PTHREAD_MUTEX_INITIALIZER;
static off_row off_rows[OFF_ROWS];
static uint32_t n_off;

/* The place of a row, which it takes where it has none; NULL: there is none, or no room. */
static counted *count_of(const burn_row *row, int take)
{
    uintptr_t key = (uintptr_t)row;
    for (uint32_t i = 0; i < PROBES; i++) {
        counted *c = &counted_rows[((key >> 4) + i) % COUNTED_ROWS];
        uintptr_t found = atomic_load(&c->row);
        if (found == 0 && take && atomic_compare_exchange_strong(&c->row, &found, key)) {
            found = key;
        }
        if (found == key || found == 0) {
            return found == key ? c : NULL;
        }
    }
    return NULL;
}

uint64_t burni_row_counted(const burn_row *row)
{
    counted *c = count_of(row, 0);
    return c != NULL ? atomic_load(&c->n) : 0;
}

void burni_row_count(const burn_row *row)
{
    counted *c = count_of(row, 1);
    if (c != NULL) {
        atomic_fetch_add(&c->n, 1);
    }
}

/* Locked. NULL: nothing is noted of it. */
static off_row *find_off(const burn_row *row)
{
    for (uint32_t i = 0; i < n_off; i++) {
        if (off_rows[i].row == row) {
            return &off_rows[i];
        }
    }
    return NULL;
}

void burni_row_note_off(const burn_row *row, const char *why)
{
    (void)pthread_mutex_lock(&off_lock);
    if (find_off(row) == NULL && n_off < OFF_ROWS) {
        off_rows[n_off].row = row;
        (void)snprintf(off_rows[n_off].why, sizeof(off_rows[n_off].why), "%s", why);
        n_off++;
    }
    (void)pthread_mutex_unlock(&off_lock);
}

const char *burni_row_off(const burn_row *row)
{
    (void)pthread_mutex_lock(&off_lock);
    const off_row *found = find_off(row);
    (void)pthread_mutex_unlock(&off_lock);
    return found != NULL ? found->why : NULL;
}
