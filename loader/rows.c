/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rows.c - checks and copies the kernel rows of a plugin, with their slots and guards.
 *
 * After this every row has a launch function, a name, slots and guards that can be read without a
 * check, and strides of this library's own structs. A row that claims something impossible makes
 * the plugin unusable as a whole: half a backend would be a silent change of what it can do. Runs
 * without the loader's lock. [init]
 */
#include "loader/entry.h"

#include <stdio.h>
#include <string.h>

#define MAX_ROW_SETS 64
#define MAX_ROWS 65536
#define MAX_GUARDS 64

#define ROW_SET_FLOOR (offsetof(burn_row_set, row_stride) + sizeof(uint32_t))
#define ROW_FLOOR (offsetof(burn_row, launch) + sizeof(void *))
#define SLOT_FLOOR (offsetof(burn_slot, zero) + sizeof(((burn_slot *)0)->zero))
#define GUARD_FLOOR (offsetof(burn_guard, max) + sizeof(int64_t))

#define REMEDY "correct the plugin's rows"

/* Copies `n` items of one struct into an array of `size` bytes each, whatever the stride. */
static void *copy_items(burni_entry *e, const void *from, uint32_t n, uint32_t stride, size_t size)
{
    unsigned char *copy = burni_entry_alloc(e, n, size);
    for (uint32_t i = 0; copy != NULL && i < n; i++) {
        const unsigned char *item = (const unsigned char *)from + (size_t)i * stride;
        memcpy(copy + (size_t)i * size, item, stride < size ? stride : size);
    }
    return copy;
}

static int32_t check_slot(burni_entry *e, const char *where, const burn_row *row, uint32_t i)
{
    const burn_slot *slot = &row->slots[i];
    if (slot->rank_min > slot->rank_max || slot->rank_max > BURN_MAX_RANK) {
        return burni_entry_fail(e, BURN_E_ABI, REMEDY, "%s: slot %u takes ranks %u to %u; 0 to %d "
                                "are possible", where, i, slot->rank_min, slot->rank_max,
                                BURN_MAX_RANK);
    }
    if (slot->same_dtype_as > row->n_slots) {
        return burni_entry_fail(e, BURN_E_ABI, REMEDY,
                                "%s: slot %u has the dtype of operand %u, but there are %u slots",
                                where, i, slot->same_dtype_as - 1u, row->n_slots);
    }
    if (slot->align_log2 > 16) {
        return burni_entry_fail(e, BURN_E_ABI, REMEDY,
                                "%s: slot %u wants an alignment of 2^%u bytes; 2^16 is the most",
                                where, i, slot->align_log2);
    }
    return BURN_OK;
}

static int32_t copy_slots(burni_entry *e, const char *where, burn_row *row)
{
    char what[160];
    (void)snprintf(what, sizeof(what), "%s: slots", where);
    int32_t code = burni_check_array(e, what, row->slots, row->n_slots, BURN_MAX_OPERANDS,
                                     row->slot_stride, SLOT_FLOOR);
    if (code != BURN_OK || row->n_slots == 0) {
        return code;
    }
    row->slots = copy_items(e, row->slots, row->n_slots, row->slot_stride, sizeof(burn_slot));
    if (row->slots == NULL) {
        return BURN_E_NO_MEMORY;
    }
    row->slot_stride = (uint32_t)sizeof(burn_slot);
    for (uint32_t i = 0; code == BURN_OK && i < row->n_slots; i++) {
        code = check_slot(e, where, row, i);
    }
    return code;
}

static int32_t copy_guards(burni_entry *e, const char *where, burn_row *row)
{
    char what[160];
    (void)snprintf(what, sizeof(what), "%s: guards", where);
    int32_t code = burni_check_array(e, what, row->guards, row->n_guards, MAX_GUARDS,
                                     row->guard_stride, GUARD_FLOOR);
    if (code != BURN_OK || row->n_guards == 0) {
        return code;
    }
    row->guards = copy_items(e, row->guards, row->n_guards, row->guard_stride, sizeof(burn_guard));
    if (row->guards == NULL) {
        return BURN_E_NO_MEMORY;
    }
    row->guard_stride = (uint32_t)sizeof(burn_guard);
    for (uint32_t i = 0; i < row->n_guards; i++) {
        const burn_guard *g = &row->guards[i];
        int dim_fits = g->dim >= -BURN_MAX_RANK && g->dim < BURN_MAX_RANK;
        if (g->operand >= row->n_slots || !dim_fits || g->multiple_of < 0) {
            return burni_entry_fail(e, BURN_E_ABI, REMEDY,
                                    "%s: guard %u speaks of operand %u, dim %d, multiple of %lld; "
                                    "the row has %u slots",
                                    where, i, g->operand, g->dim, (long long)g->multiple_of,
                                    row->n_slots);
        }
    }
    return BURN_OK;
}

#define KNOWN_FLAGS                                                                                \
    (BURN_ROW_DETERMINISTIC | BURN_ROW_CAPTURE_SAFE | BURN_ROW_ANY_DIMS | BURN_ROW_INDEX64 |       \
     BURN_ROW_FAULTS | BURN_ROW_EPILOGUE | BURN_ROW_TUNABLE | BURN_ROW_TUNED_ONLY |                \
     BURN_ROW_LINES | BURN_ROW_COLUMNS)

/* A flag is a promise, or asks for something: what this library does not know it cannot keep. */
static int32_t check_flags(burni_entry *e, const char *where, const burn_row *row)
{
    uint32_t unknown = row->flags & ~(uint32_t)KNOWN_FLAGS;
    if (unknown == 0) {
        return BURN_OK;
    }
    return burni_entry_fail(e, BURN_E_ABI, "update this library, or clear the flag",
                            "%s has the flags 0x%x, of which this library does not know 0x%x",
                            where, row->flags, unknown);
}

static int32_t check_row(burni_entry *e, const char *where, const burn_row *row)
{
    if (row->name == NULL || row->name[0] == '\0') {
        return burni_entry_fail(e, BURN_E_ABI, REMEDY, "%s has no name", where);
    }
    if (row->op == 0) {
        return burni_entry_fail(e, BURN_E_ABI, REMEDY, "%s serves no op (id 0)", where);
    }
    if (row->launch == NULL) {
        return burni_entry_fail(e, BURN_E_ABI, REMEDY, "%s has no launch function", where);
    }
    if (row->revision_min > row->revision_max) {
        return burni_entry_fail(e, BURN_E_ABI, REMEDY, "%s serves revisions %u to %u", where,
                                row->revision_min, row->revision_max);
    }
    return check_flags(e, where, row);
}

static int32_t copy_row(burni_entry *e, const char *set, const unsigned char *at, uint32_t stride,
                        uint32_t index, burn_row *out)
{
    char where[128];
    (void)snprintf(where, sizeof(where), "row %u of %s", index, set);
    uint32_t size = ((const burn_row *)(const void *)at)->struct_size;
    int32_t code = burni_check_size(e, where, size, ROW_FLOOR, stride);
    if (code != BURN_OK) {
        return code;
    }
    memcpy(out, at, size < sizeof(*out) ? size : sizeof(*out));
    out->struct_size = (uint32_t)sizeof(*out);
    if (out->name != NULL && out->name[0] != '\0') {
        char name[64];
        burni_text_clean(name, sizeof(name), out->name);
        (void)snprintf(where, sizeof(where), "row %u (\"%s\") of %.40s", index, name, set);
    }
    code = check_row(e, where, out);
    if (code == BURN_OK) {
        code = copy_slots(e, where, out);
    }
    return code == BURN_OK ? copy_guards(e, where, out) : code;
}

/* A backend speaks for itself only; an extension may bring rows for each backend. */
static int32_t check_backend(burni_entry *e, const burn_row_set *set, const burn_plugin *copy,
                             uint32_t index)
{
    if (set->backend == NULL || !burni_is_name(set->backend, strnlen(set->backend, 64))) {
        return burni_entry_fail(e, BURN_E_ABI, REMEDY, "row set %u names no backend", index);
    }
    if (copy->device != NULL && strcmp(set->backend, e->manifest.id) != 0) {
        return burni_entry_fail(e, BURN_E_ABI, "put rows for other backends into an extension",
                                "row set %u of the backend \"%s\" is for \"%s\"", index,
                                e->manifest.id, set->backend);
    }
    return BURN_OK;
}

static int32_t copy_row_set(burni_entry *e, const burn_plugin *copy, uint32_t index,
                            burn_row_set *set)
{
    char where[64];
    (void)snprintf(where, sizeof(where), "row set %u", index);
    int32_t code = check_backend(e, set, copy, index);
    if (code == BURN_OK) {
        code = burni_check_array(e, where, set->rows, set->n_rows, MAX_ROWS, set->row_stride,
                                 ROW_FLOOR);
    }
    if (code != BURN_OK || set->n_rows == 0) {
        return code;
    }
    burn_row *rows = burni_entry_alloc(e, set->n_rows, sizeof(*rows));
    if (rows == NULL) {
        return BURN_E_NO_MEMORY;
    }
    const unsigned char *from = (const unsigned char *)set->rows;
    for (uint32_t i = 0; code == BURN_OK && i < set->n_rows; i++) {
        code = copy_row(e, where, from + (size_t)i * set->row_stride, set->row_stride, i, &rows[i]);
    }
    set->rows = rows;
    set->row_stride = (uint32_t)sizeof(*rows);
    return code;
}

int32_t burni_copy_row_sets(burni_entry *e, const burn_plugin *raw, burn_plugin *copy)
{
    int32_t code = burni_check_array(e, "its list of row sets", raw->row_sets, raw->n_row_sets,
                                     MAX_ROW_SETS, raw->row_set_stride, ROW_SET_FLOOR);
    if (code != BURN_OK || raw->n_row_sets == 0) {
        return code;
    }
    burn_row_set *sets = burni_entry_alloc(e, raw->n_row_sets, sizeof(*sets));
    if (sets == NULL) {
        return BURN_E_NO_MEMORY;
    }
    const unsigned char *from = (const unsigned char *)raw->row_sets;
    for (uint32_t i = 0; code == BURN_OK && i < raw->n_row_sets; i++) {
        const burn_row_set *set =
            (const burn_row_set *)(const void *)(from + (size_t)i * raw->row_set_stride);
        code = burni_check_size(e, "a row set", set->struct_size, ROW_SET_FLOOR,
                                raw->row_set_stride);
        if (code == BURN_OK) {
            size_t size = set->struct_size < sizeof(*set) ? set->struct_size : sizeof(*set);
            memcpy(&sets[i], set, size);
            sets[i].struct_size = (uint32_t)sizeof(*set);
            code = copy_row_set(e, copy, i, &sets[i]);
        }
    }
    copy->row_sets = sets;
    copy->row_set_stride = (uint32_t)sizeof(*sets);
    return code;
}
