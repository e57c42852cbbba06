/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rows.c - building and replacing the lists of rows.h, and the contract between an extension's
 * kernels and the backend whose services they use.
 */
#include "exec/rows.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

static const burni_rows no_rows;

const burni_rows *burni_rows_of(const burni_device *device, const burni_op *op)
{
    const burni_rows *rows = atomic_load_explicit(&device->rows[op->index], memory_order_acquire);
    return rows != NULL ? rows : &no_rows;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* A list of that length; struct and both arrays are one block. */
static burni_rows *list_new(uint32_t count)
{
    burni_rows *list = burni_calloc(1, sizeof(*list) + count * 2 * sizeof(void *));
    if (list != NULL) {
        list->count = count;
        list->rows = (const burn_row **)(void *)(list + 1);
        list->owners = (const char **)(void *)(list->rows + count);
    }
    return list;
}

static int goes_before(const burn_row *row, const char *owner, const burni_rows *list, uint32_t i)
{
    if (row->priority != list->rows[i]->priority) {
        return row->priority > list->rows[i]->priority;
    }
    return strcmp(owner, list->owners[i]) < 0;
}

static int depends_on_dims(const burn_row *row)
{
    /* Guards look at sizes: with those in the key, the first row that fits is always the one. */
    return (row->key_facts & BURN_FACT_DIMS) != 0 || row->n_guards > 0 ||
           (row->flags & BURN_ROW_TUNABLE) != 0 ||
           (row->prepare != NULL && (row->flags & BURN_ROW_ANY_DIMS) == 0);
}

/* The list with one more row; NULL: no memory. */
static burni_rows *list_with(const burni_rows *old, const burn_row *row, const char *owner)
{
    burni_rows *list = list_new(old->count + 1);
    if (list == NULL) {
        return NULL;
    }
    uint32_t at = 0;
    while (at < old->count && !goes_before(row, owner, old, at)) {
        at++;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t from = i > at ? i - 1 : i;
        list->rows[i] = i == at ? row : old->rows[from];
        list->owners[i] = i == at ? owner : old->owners[from];
    }
    list->key_dims = old->key_dims || depends_on_dims(row);
    return list;
}

/* ---- plans ----------------------------------------------------------------------------------- */

static int32_t check_row(const burni_op *op, const burn_row *row, const char *owner, burn_err *err)
{
    uint32_t n = (uint32_t)op->def.n_in + op->def.n_out;
    int concerned = op->def.revision >= row->revision_min && op->def.revision <= row->revision_max;
    /* A variadic op's last slot serves all further operands. */
    if (!concerned || row->n_slots == n || (op->variadic && row->n_slots > n)) {
        return BURN_OK;
    }
    return burni_fail(err, BURN_E_ABI, "%s: row %s has %u slots, op %s has %u operands", owner,
                      row->name, row->n_slots, op->def.name, n);
}

static int32_t plan_row(burni_row_plan *plan, const burn_row *row, const char *owner,
                        const burni_op_batch *staged, burn_err *err)
{
    const char *whose = owner[0] != '\0' ? owner : plan->device->backend;
    const burni_op *op = burni_op_find_staged(staged, row->op);
    if (op == NULL) {
        /* A newer plugin. The row is of no use here. */
        burni_log(BURN_LOG_INFO, "rows", "%s: row %s is for op %llu, which is not known here",
                  whose, row->name, (unsigned long long)row->op);
        return BURN_OK;
    }
    int32_t rc = check_row(op, row, whose, err);
    if (rc != BURN_OK) {
        return rc;
    }
    burni_rows **slot = &plan->lists[op->index];
    burni_rows *list =
        list_with(*slot != NULL ? *slot : burni_rows_of(plan->device, op), row, owner);
    if (list == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "%s: out of host memory", plan->device->name);
    }
    burni_free(*slot);
    *slot = list;
    return BURN_OK;
}

/* 1 when the backend serves the revision of its services that the set's kernels were written for.
 */
static int is_served(const burni_device *device, const burn_row_set *set, const char *owner,
                     char *note)
{
    if (set->contract == 0 || owner[0] == '\0') {
        return 1;
    }
    char id[80];
    (void)snprintf(id, sizeof(id), "%s.kernel/1", device->backend);
    const burn_service *service = device->service;
    if (service == NULL) {
        (void)snprintf(note, 256,
                       "its kernels for %.24s use revision %u of %.32s, which %.24s does not "
                       "offer: they are left out, decompositions serve",
                       device->backend, set->contract, id, device->backend);
    } else if (set->contract > service->contract || set->contract < service->contract_oldest) {
        (void)snprintf(note, 256,
                       "its kernels for %.24s use revision %u of %.32s, %.24s serves %u to %u: "
                       "they are left out, decompositions serve",
                       device->backend, set->contract, id, device->backend,
                       service->contract_oldest, service->contract);
    } else {
        return 1;
    }
    return 0;
}

static const burn_row *row_at(const burn_row_set *set, uint32_t i)
{
    return (const burn_row *)(const void *)((const char *)set->rows + (size_t)i * set->row_stride);
}

static const burn_row_set *set_at(const burn_plugin *table, uint32_t i)
{
    return (const burn_row_set *)(const void *)((const char *)table->row_sets +
                                                (size_t)i * table->row_set_stride);
}

int32_t burni_rows_check(const burn_plugin *table, const char *owner, const burni_op_batch *staged,
                         burn_err *err)
{
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < table->n_row_sets; i++) {
        const burn_row_set *set = set_at(table, i);
        for (uint32_t k = 0; k < set->n_rows && rc == BURN_OK; k++) {
            const burn_row *row = row_at(set, k);
            const burni_op *op = burni_op_find_staged(staged, row->op);
            rc = op != NULL ? check_row(op, row, owner, err) : BURN_OK;
        }
    }
    return rc;
}

static int32_t plan_set(burni_row_plan *plan, const burn_row_set *set, const char *owner,
                        const burni_op_batch *staged, char *note, burn_err *err)
{
    int32_t rc = BURN_OK;
    if (set->backend == NULL || strcmp(set->backend, plan->device->backend) != 0 ||
        !is_served(plan->device, set, owner, note)) {
        return BURN_OK;
    }
    for (uint32_t i = 0; i < set->n_rows && rc == BURN_OK; i++) {
        rc = plan_row(plan, row_at(set, i), owner, staged, err);
    }
    return rc;
}

int32_t burni_rows_plan(burni_device *device, const burn_plugin *table, const char *owner,
                        const burni_op_batch *staged, burni_row_plan **out, char *note,
                        burn_err *err)
{
    *out = NULL;
    burni_row_plan *plan = burni_calloc(1, sizeof(*plan));
    if (plan == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "%s: out of host memory", device->name);
    }
    plan->device = device;
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < table->n_row_sets && rc == BURN_OK; i++) {
        rc = plan_set(plan, set_at(table, i), owner, staged, note, err);
    }
    if (rc != BURN_OK) {
        burni_rows_drop(plan);
        return rc;
    }
    *out = plan;
    return BURN_OK;
}

void burni_rows_commit(burni_row_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    for (uint32_t i = 0; i < BURNI_MAX_OPS; i++) {
        burni_rows *list = plan->lists[i];
        if (list != NULL) {
            list->older = atomic_load_explicit(&plan->device->rows[i], memory_order_relaxed);
            atomic_store_explicit(&plan->device->rows[i], list, memory_order_release);
        }
    }
    (void)atomic_fetch_add_explicit(&plan->device->rows_version, 1, memory_order_release);
    burni_free(plan);
}

void burni_rows_drop(burni_row_plan *plan)
{
    for (uint32_t i = 0; plan != NULL && i < BURNI_MAX_OPS; i++) {
        burni_free(plan->lists[i]);
    }
    burni_free(plan);
}

void burni_rows_free(burni_device *device)
{
    for (uint32_t i = 0; i < BURNI_MAX_OPS; i++) {
        burni_rows *list = atomic_load_explicit(&device->rows[i], memory_order_relaxed);
        while (list != NULL) {
            burni_rows *older = list->older;
            burni_free(list);
            list = older;
        }
        atomic_store_explicit(&device->rows[i], NULL, memory_order_relaxed);
    }
}
