/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * claims.c - what a device claims: was each claim tried, and is the list the one that is expected?
 *
 * A claim is a line: `op dtype native|decomposed|view`, `op row NAME ...` with what the row says of
 * itself, and `op slot NAME k ...` for each of its operands. A native (op, dtype) must have been
 * tried by a forward check, and each row must have been launched, or its check must have said that
 * the row is switched off in this process (BURN_E_STATE): a skip, with what was said. A stored list
 * (--claims) is compared line by line, so that a kernel that silently got lost, takes less than it
 * did, or is new, shows as a difference; the list is written with --write-claims.
 */
#include "conformance.h"

#include <burn/registry.h>
#include <stdarg.h>
#include <stdlib.h>

static const char *const support_names[] = {"none", "decomposed", "native", "view"};

/* A growing text. */
typedef struct text {
    char *at;
    size_t size;
    size_t room;
} text;

static void put_line(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put_line(text *t, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    size_t length = n > 0 ? (size_t)n : 0;
    int fits = length < sizeof(line);
    if (fits && t->size + length + 2 > t->room) {
        size_t room = 2 * t->room + 4096;
        char *bigger = realloc(t->at, room);
        fits = bigger != NULL;
        t->at = fits ? bigger : t->at;
        t->room = fits ? room : t->room;
    }
    if (!fits) {
        (void)fprintf(stderr, "burn-conformance: no memory for the list of claims\n");
        exit(2);
    }
    memcpy(t->at + t->size, line, length);
    t->size += length;
    t->at[t->size++] = '\n';
    t->at[t->size] = '\0';
}

/* The dtypes that stand for an op in claims: of its first tensor, else of what it makes. */
static uint64_t claimed_dtypes(const burn_op_def *def)
{
    uint64_t set = 0;
    for (uint32_t i = 0; i < def->n_in && set == 0; i++) {
        const burn_role *role = conf_role_in(def, i);
        set = (role->flags & BURN_ROLE_ONLY_IMMEDIATE) == 0 ? role->dtypes[0] & BURN_SET_ANY : 0;
    }
    for (uint32_t j = 0; j < def->n_out && set == 0; j++) {
        set = conf_role_out(def, j)->dtypes[0] & BURN_SET_ANY;
    }
    return set != 0 ? set : BURN_SET_ANY;
}

int conf_row(burn_device *device, const burn_op_def *def, uint32_t i, burn_row_info *out)
{
    BURN_INIT(out, burn_row_info);
    return burn_op_row_describe(device, def->id, i, out, NULL) == BURN_OK;
}

/* Names of the bits of a set, with commas between; `text` holds them all. */
static void name_bits(char *out, size_t size, uint64_t set, const char *const *names, uint32_t n)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t k = 0; k < n && used < size; k++) {
        if ((set >> k & 1) != 0) {
            int more = snprintf(out + used, size - used, "%s%s", used > 0 ? "," : "", names[k]);
            used += more > 0 ? (size_t)more : 0;
        }
    }
}

static const char *const flag_names[] = {
    "deterministic", "capture-safe", "any-dims",   "index64", "faults",
    "epilogue",      "tunable",      "tuned-only", "lines",   "columns",
};
static const char *const layout_names[] = {"contiguous", "scalar", "vector", "rows", "strided"};

static void list_slot(text *t, const burn_op_def *def, const char *row, uint32_t k,
                      const burn_slot *slot)
{
    const char *dtype_names[64];
    char dtypes[256];
    char layouts[96];
    for (uint8_t d = 0; d < 64; d++) {
        dtype_names[d] = burn_element_name(d);
    }
    name_bits(dtypes, sizeof(dtypes), slot->dtypes[0], dtype_names, 64);
    name_bits(layouts, sizeof(layouts), slot->layouts, layout_names,
              sizeof(layout_names) / sizeof(layout_names[0]));
    put_line(t, "%s slot %s %u %s %s rank %u..%u%s%s as %u align %u", def->name, row, (unsigned)k,
             dtypes, layouts, slot->rank_min, slot->rank_max,
             slot->immediate_ok ? " immediate" : "", slot->may_be_absent ? " absent" : "",
             slot->same_dtype_as, slot->align_log2);
}

static void list_row(text *t, const burn_op_def *def, const burn_row_info *row)
{
    char flags[160];
    name_bits(flags, sizeof(flags), row->flags, flag_names,
              sizeof(flag_names) / sizeof(flag_names[0]));
    put_line(t, "%s row %s priority %d in-place 0x%x %s", def->name, row->name, (int)row->priority,
             (unsigned)row->in_place_mask, flags);
    for (uint32_t k = 0; k < row->n_slots; k++) {
        const char *base = (const char *)row->slots + (size_t)k * row->slot_stride;
        list_slot(t, def, row->name, k, (const burn_slot *)(const void *)base);
    }
}

static void list_op(text *t, burn_device *device, const burn_op_def *def)
{
    uint64_t set = claimed_dtypes(def);
    for (uint8_t dtype = 1; dtype < 64; dtype++) {
        if ((set >> dtype & 1) != 0) {
            int32_t support = burn_op_support(device, def->id, dtype);
            put_line(t, "%s %s %s", def->name, burn_element_name(dtype), support_names[support]);
        }
    }
    burn_row_info row;
    for (uint32_t i = 0; conf_row(device, def, i, &row); i++) {
        list_row(t, def, &row);
    }
}

static text list_all(burn_device *device)
{
    text t = {NULL, 0, 0};
    put_line(&t, "# claims of a backend, one a line: op, dtype or row or slot, how");
    for (uint32_t i = 0; i < burn_op_count(); i++) {
        list_op(&t, device, burn_op_at(i));
    }
    return t;
}

int conf_write_claims(burn_device *device, const char *path)
{
    text t = list_all(device);
    FILE *file = fopen(path, "w");
    int ok = file != NULL && fwrite(t.at, 1, t.size, file) == t.size;
    ok = file != NULL && fclose(file) == 0 && ok;
    free(t.at);
    if (!ok) {
        (void)fprintf(stderr, "burn-conformance: cannot write %s\n", path);
    }
    return ok;
}

/* Is `line` (without its end) one of the lines of `all`? */
static int has_line(const char *all, const char *line, size_t length)
{
    for (const char *p = all; p != NULL && *p != '\0';) {
        const char *end = strchr(p, '\n');
        size_t n = end != NULL ? (size_t)(end - p) : strlen(p);
        if (n == length && memcmp(p, line, n) == 0) {
            return 1;
        }
        p = end != NULL ? end + 1 : NULL;
    }
    return 0;
}

static const burn_op_def *def_of_line(const char *line, size_t length)
{
    char name[64];
    const char *space = memchr(line, ' ', length);
    size_t n = space != NULL ? (size_t)(space - line) : 0;
    if (n >= sizeof(name)) {
        n = 0;
    }
    memcpy(name, line, n);
    name[n] = '\0';
    return conf_named(name);
}

/* Reports the lines of `one` that `other` lacks; returns how many it has. */
static uint64_t report_lost(conf_report *report, const char *one, const char *other,
                            const char *what)
{
    static conf_case c; /* large */
    uint64_t n = 0;
    for (const char *p = one; p != NULL && *p != '\0';) {
        const char *end = strchr(p, '\n');
        size_t length = end != NULL ? (size_t)(end - p) : strlen(p);
        if (length > 0 && *p != '#') {
            n++;
            if (!has_line(other, p, length)) {
                memset(&c, 0, sizeof(c));
                c.def = def_of_line(p, length);
                conf_result(report, &c, "claims", "", CONF_FAIL, "%s: %.*s", what, (int)length, p);
            }
        }
        p = end != NULL ? end + 1 : NULL;
    }
    return n;
}

/* The whole file as text; NULL when it cannot be read. */
static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    long size = -1;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        size = ftell(file);
    }
    if (size >= 0 && fseek(file, 0, SEEK_SET) == 0) {
        bytes = calloc(1, (size_t)size + 1);
    }
    if (bytes != NULL && fread(bytes, 1, (size_t)size, file) != (size_t)size) {
        free(bytes);
        bytes = NULL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return bytes;
}

int conf_check_claims(conf_report *report, burn_device *device, const char *path)
{
    char *stored = read_file(path);
    if (stored == NULL) {
        (void)fprintf(stderr, "burn-conformance: cannot read %s\n", path);
        return 0;
    }
    text now = list_all(device);
    uint64_t before = report->n_failed;
    uint64_t n = report_lost(report, stored, now.at, "not claimed any more");
    (void)report_lost(report, now.at, stored, "new, not in the list");
    if (report->n_failed == before) {
        conf_device_result(report, "claims", "", CONF_PASS, "%llu claims as in the list",
                           (unsigned long long)n);
    }
    free(stored);
    free(now.at);
    return 1;
}

/* Does a row say that it takes the dtype as the operand that claimed_dtypes goes by? */
static int is_in_a_row(burn_device *device, const burn_op_def *def, uint8_t dtype)
{
    burn_row_info row;
    uint32_t k = 0;
    int found = 0;
    while (k < def->n_in && ((conf_role_in(def, k)->flags & BURN_ROLE_ONLY_IMMEDIATE) != 0 ||
                             (conf_role_in(def, k)->dtypes[0] & BURN_SET_ANY) == 0)) {
        k++;
    }
    for (uint32_t i = 0; !found && conf_row(device, def, i, &row); i++) {
        const char *slot = (const char *)row.slots + (size_t)k * row.slot_stride;
        found = k < row.n_slots &&
                (((const burn_slot *)(const void *)slot)->dtypes[0] >> dtype & 1) != 0;
    }
    return found;
}

static void check_dtypes(conf_report *report, burn_device *device, conf_case *c)
{
    const burn_op_def *def = c->def;
    uint64_t set = claimed_dtypes(def);
    for (uint8_t dtype = 1; dtype < 64; dtype++) {
        if ((set >> dtype & 1) == 0 ||
            (burn_op_support(device, def->id, dtype) != BURN_SUPPORT_NATIVE &&
             !is_in_a_row(device, def, dtype))) {
            continue;
        }
        c->dtype = dtype;
        if (conf_was_tried(report, def->name, burn_element_name(dtype))) {
            conf_result(report, c, "claim tried", "", CONF_PASS,
                        "some forward check has this dtype");
        } else {
            conf_result(report, c, "claim tried", "", CONF_FAIL,
                        "a kernel is claimed, but no sample tried it");
        }
    }
    c->dtype = BURN_DTYPE_NONE;
}

void conf_check_claims_tried(conf_report *report, burn_device *device, const burn_op_def *def,
                             int smoke)
{
    static conf_case c; /* large */
    burn_row_info row;
    memset(&c, 0, sizeof(c));
    c.def = def;
    if (!smoke) {
        check_dtypes(report, device, &c);
    }
    for (uint32_t i = 0; conf_row(device, def, i, &row); i++) {
        if (row.n_guarded > 0) {
            conf_result(report, &c, "claim tried", "", CONF_PASS, "row %s was launched", row.name);
        } else if (row.why_off != NULL) {
            conf_result(report, &c, "claim tried", "", CONF_SKIP, "row %s is switched off: %s",
                        row.name, row.why_off);
        } else {
            conf_result(report, &c, "claim tried", "", CONF_FAIL,
                        "row %s was never launched: no sample has operands that its slots, guards "
                        "and check take; add one, claim less, or let its check say (BURN_E_STATE) "
                        "that the row is switched off in this process",
                        row.name);
        }
    }
}
