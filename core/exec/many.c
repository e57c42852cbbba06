/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * many.c - which steps of a plan are one launch, and their run. See many.h.
 *
 * Updates of the same row wait for the next one as long as what runs in between touches nothing of
 * theirs: gradients live a little longer, which they would anyway until the last is there. Another
 * sort of step could join that makes values; its places must then be looked at as one step's.
 */
#include "exec/many.h"

#include "exec/explain.h"
#include "exec/launch.h"

#include <stdio.h>
#include <string.h>

/* So many steps may lie between two of a launch. */
enum { MAX_BETWEEN = 48 };

/* It makes nothing new: each output is the variable that an input is. */
static int only_overwrites(const burn_op_def *d)
{
    uint32_t seen = 0;
    for (uint32_t k = 0; k < d->n_aliases; k++) {
        const burn_alias *a = (const burn_alias *)(const void *)((const char *)d->aliases +
                                                                 (size_t)k * d->alias_stride);
        seen += a->kind == BURN_ALIAS_MUST;
    }
    return d->effect == BURN_EFFECT_STATE && seen == d->n_out;
}

/* What takes many calls of the row; NULL: nothing does. */
static const burn_many_kernel *kernel_of(const burni_stream *stream, const burn_row *row)
{
    const burn_many *many = stream->device->many;
    for (uint32_t k = 0; many != NULL && row != NULL && k < many->n_kernels; k++) {
        const char *at = (const char *)many->kernels + (size_t)k * many->kernel_stride;
        const burn_many_kernel *kernel = (const burn_many_kernel *)(const void *)at;
        if (kernel->launch == row->launch && kernel->launch_many != NULL) {
            return kernel;
        }
    }
    return NULL;
}

/* The row whose kernel takes the step's call with others; NULL: none does. */
static const burn_row *row_for_many(const burni_stream *stream, const burni_batch *batch,
                                    const burni_step *step)
{
    const burni_launch *launch = &batch->records[step->record]->launch;
    const burn_row *row = launch->resolved->row;
    int fits = step->group == NULL && kernel_of(stream, row) != NULL &&
               launch->resolved->workspace_bytes == 0 && launch->resolved->copy_mask == 0 &&
               launch->n_in + launch->n_out <= BURNI_MANY_OPERANDS &&
               only_overwrites(&launch->op->def);
    return fits ? row : NULL;
}

/* ---- who touches what ------------------------------------------------------------------------ */

/* Does a write what b touches? */
static int writes_of(const burni_record *a, const burni_record *b)
{
    int found = 0;
    for (uint32_t j = a->launch.n_in; j < a->launch.n_in + a->launch.n_out; j++) {
        found |= a->slots[j] != BURNI_SLOT_NONE && burni_record_touches(b, a->slots[j]);
    }
    return found;
}

static int apart(const burni_record *a, const burni_record *b)
{
    return !writes_of(a, b) && !writes_of(b, a);
}

/* Is what the step does apart from record r? */
static int step_apart(const burni_batch *batch, const burni_step *step, const burni_record *r)
{
    if (step->group == NULL) {
        return apart(batch->records[step->record], r);
    }
    int fine = 1;
    for (uint32_t m = 0; m < step->group->n_members; m++) {
        fine &= apart(batch->records[step->group->members[m].record], r);
    }
    return fine;
}

/* ---- gathering ------------------------------------------------------------------------------- */

/* From step `first` on: which steps join it, as many as there may be. Returns their number. */
static uint32_t find_others(const burni_stream *stream, const burni_batch *batch,
                            const burni_step *steps, uint32_t first, uint32_t n, uint32_t *found)
{
    const burn_row *row = row_for_many(stream, batch, &steps[first]);
    uint32_t count = 1;
    found[0] = first;
    for (uint32_t k = first + 1; row != NULL && k < n && count < BURNI_MANY; k++) {
        int fine = k - found[count - 1] <= MAX_BETWEEN;
        for (uint32_t i = 0; i < count && fine; i++) {
            fine = step_apart(batch, &steps[k], batch->records[steps[found[i]].record]);
        }
        if (!fine) {
            break;
        }
        if (row_for_many(stream, batch, &steps[k]) == row) {
            found[count++] = k;
        }
    }
    return count;
}

/* Those found come behind each other, where the last of them is; returns where the first is. */
static uint32_t move_together(burni_step *steps, const uint32_t *found, uint32_t count)
{
    burni_step moved[BURNI_MANY];
    uint32_t to = found[0];
    uint32_t next = 0;
    for (uint32_t k = found[0]; k <= found[count - 1]; k++) {
        if (k == found[next]) {
            moved[next++] = steps[k];
        } else {
            steps[to++] = steps[k];
        }
    }
    memcpy(&steps[to], moved, count * sizeof(moved[0]));
    return to;
}

void burni_many_gather(const burni_stream *stream, const burni_batch *batch, burni_step *steps,
                       uint32_t n)
{
    uint32_t found[BURNI_MANY];
    uint32_t k = 0;
    while (k < n) {
        if (steps[k].many > 0) {
            k += steps[k].many;
            continue;
        }
        uint32_t count = find_others(stream, batch, steps, k, n, found);
        if (count == 1) {
            k++;
            continue;
        }
        /* What lay between them stands at k now, and is looked at next. */
        steps[move_together(steps, found, count)].many = count;
    }
}

uint32_t burni_many_count(const burni_step *steps, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < n; k += steps[k].many > 0 ? steps[k].many : 1) {
        count++;
    }
    return count;
}

/* ---- running --------------------------------------------------------------------------------- */

static void tell(const burni_launch *launch, uint32_t n)
{
    char text[80];
    burni_thread *thread = burni_thread_current;
    if (__builtin_expect(thread == NULL || (thread->watch & BURNI_WATCH_DISPATCH) == 0, 1)) {
        return;
    }
    (void)snprintf(text, sizeof(text), "%u times %.40s", n, launch->op->def.name);
    burni_explain_fused(thread, "together", text, launch->resolved->row->name, "");
}

/* Times and notes are of single calls; and another size may have another row. */
static int run_apart(const burni_stream *stream, const burni_batch *batch,
                     const burni_step *steps)
{
    const burn_row *row = batch->records[steps->record]->launch.resolved->row;
    const uint32_t singly = BURNI_WAY_MEASURED | BURNI_WAY_DRY;
    int apart_is_wanted = (burni_stream_way(stream) & singly) != 0;
    for (uint32_t k = 0; k < steps->many; k++) {
        const burni_launch *launch = &batch->records[steps[k].record]->launch;
        apart_is_wanted |= launch->resolved->row != row || launch->check != NULL ||
                           launch->resolved->workspace_bytes > 0;
    }
    return apart_is_wanted;
}

void burni_many_run(burni_stream *stream, const burni_batch *batch, const burni_step *steps)
{
    burn_operand copies[BURNI_MANY][BURNI_MANY_OPERANDS];
    burn_operand *operands[BURNI_MANY];
    burni_launch *launches[BURNI_MANY];
    const burn_many_kernel *kernel =
        kernel_of(stream, batch->records[steps->record]->launch.resolved->row);
    if (kernel == NULL || run_apart(stream, batch, steps)) {
        for (uint32_t k = 0; k < steps->many; k++) {
            burni_stream_runs(stream, steps[k].record);
            burni_record_run(stream, batch->slots, batch->records[steps[k].record]);
        }
        return;
    }
    for (uint32_t k = 0; k < steps->many; k++) {
        burni_record *r = batch->records[steps[k].record];
        launches[k] = &r->launch;
        launches[k]->dying = 0;
        operands[k] = copies[k];
        /* A launch binds its operands to memory, a record keeps its own as they are. */
        memcpy(copies[k], r->launch.operands,
               (r->launch.n_in + r->launch.n_out) * sizeof(copies[k][0]));
    }
    tell(launches[0], steps->many);
    burni_launch_many(stream, kernel, launches, operands, steps->many);
    for (uint32_t k = 0; k < steps->many; k++) {
        burni_record_done(batch->slots, batch->records[steps[k].record]);
    }
}
