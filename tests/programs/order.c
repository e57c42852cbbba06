/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * order.c - which steps depend on which: for threads, for dropping steps, and in print.
 *
 * A thread runs its own steps in order, so it is enough to name, per other thread, the last step
 * that must have been called. Values are immutable: only giving one up waits for its users.
 * Variables are read by many and written by one; backward passes use up history, so they keep their
 * order. Everything else may overlap in any way.
 */
#include "program.h"

#include <inttypes.h>
#include <stdio.h>

#define STEP_TEXT(name, text) text,
const char *const step_names[N_STEP_KINDS] = {STEP_KINDS(STEP_TEXT)};
#undef STEP_TEXT

/* Per value or variable: its last change and its last use, per thread. */
typedef struct history {
    int32_t change[MAX_THREADS];
    int32_t use[MAX_THREADS];
} history;

static void later(int32_t *waits, const int32_t *than)
{
    for (uint32_t t = 0; t < MAX_THREADS; t++) {
        waits[t] = than[t] > waits[t] ? than[t] : waits[t];
    }
}

static int changes_var(const step *s)
{
    return s->kind != STEP_VAR_GET;
}

static void order_values(step *s, int32_t i, history *values)
{
    int gives_up = s->kind == STEP_RELEASE || s->kind == STEP_END || s->kind == STEP_KEEP;
    for (uint32_t k = 0; k < s->n_in; k++) {
        if (s->in[k] == NO_VALUE) {
            continue;
        }
        history *h = &values[s->in[k]];
        int moved = s->kind == STEP_OP && k < 32 && (s->moved >> k & 1) != 0;
        later(s->waits, h->change);
        if (gives_up || moved) {
            later(s->waits, h->use);
            h->change[s->thread] = i;
        }
        h->use[s->thread] = i;
    }
    for (uint32_t j = 0; j < s->n_out; j++) {
        values[s->out[j]].change[s->thread] = i;
    }
}

void program_order(program *p)
{
    history values[MAX_VALUES];
    history vars[MAX_VARS];
    history passes;
    int32_t last[MAX_THREADS];
    memset(values, 0xff, sizeof(values));
    memset(vars, 0xff, sizeof(vars));
    memset(&passes, 0xff, sizeof(passes));
    memset(last, 0xff, sizeof(last));
    for (int32_t i = 0; i < (int32_t)p->n_steps; i++) {
        step *s = &p->steps[i];
        if (s->dropped) {
            continue;
        }
        memset(s->waits, 0xff, sizeof(s->waits));
        memcpy(s->before, last, sizeof(last));
        last[s->thread] = i;
        order_values(s, i, values);
        if (s->var >= 0) {
            history *h = &vars[s->var];
            later(s->waits, h->change);
            if (changes_var(s)) {
                later(s->waits, h->use);
                h->change[s->thread] = i;
            }
            h->use[s->thread] = i;
        }
        if (s->kind == STEP_BACKWARD) {
            later(s->waits, passes.change);
            passes.change[s->thread] = i;
        }
    }
}

static int depends(const step *s, const uint8_t *gone, const uint8_t *var_gone)
{
    for (uint32_t k = 0; k < s->n_in && s->kind != STEP_END; k++) {
        if (s->in[k] != NO_VALUE && gone[s->in[k]]) {
            return 1;
        }
    }
    return s->var >= 0 && s->kind != STEP_VAR_NEW && var_gone[s->var];
}

void program_drop(program *p, uint32_t at)
{
    uint8_t gone[MAX_VALUES] = {0};
    uint8_t var_gone[MAX_VARS] = {0};
    p->steps[at].dropped = 1;
    if (p->steps[at].pair >= 0) {
        p->steps[p->steps[at].pair].dropped = 1;
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        step *s = &p->steps[i];
        s->dropped |= (uint8_t)depends(s, gone, var_gone);
        for (uint32_t j = 0; j < s->n_out && s->dropped; j++) {
            gone[s->out[j]] = 1;
        }
        if (s->kind == STEP_VAR_NEW && s->dropped) {
            var_gone[s->var] = 1;
        }
    }
}

static void print_value(const program *p, int32_t id)
{
    char text[160];
    if (id == NO_VALUE) {
        (void)printf(" -");
        return;
    }
    const value *v = &p->values[id];
    if (v->host.meta.kind == BURN_IMMEDIATE) {
        (void)printf(" %.9g", conf_get(&v->host, 0));
        return;
    }
    (void)printf(" v%d:%s", id,
                 v->known ? conf_meta_text(text, sizeof(text), &v->host.meta) : "failed");
}

void program_print(const program *p)
{
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const step *s = &p->steps[i];
        if (s->dropped) {
            continue;
        }
        (void)printf("  %3u  thread %u  %s", i, s->thread,
                     s->kind == STEP_OP ? s->def->name : step_names[s->kind]);
        if (s->var >= 0) {
            (void)printf(" var%d", s->var);
        }
        for (uint32_t k = 0; k < s->n_in; k++) {
            print_value(p, s->in[k]);
            (void)printf("%s", k < 32 && (s->moved >> k & 1) != 0 ? " (moved)" : "");
        }
        for (uint32_t j = 0; j < s->n_out; j++) {
            (void)printf("%s", j == 0 ? " ->" : "");
            print_value(p, s->out[j]);
        }
        for (uint32_t b = 8; b + 8 <= s->attrs_size; b += 8) {
            int64_t word;
            memcpy(&word, s->attrs + b, sizeof(word));
            (void)printf("%s%" PRId64, b == 8 ? "  attrs " : ",", word);
        }
        (void)printf("\n");
    }
}
