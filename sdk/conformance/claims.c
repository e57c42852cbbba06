/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * claims.c - what a device claims: was each claim tried, and is the list the one that is expected?
 *
 * A claim is a line `op dtype native|decomposed|view`, or `op row NAME`. After a full run every
 * native claim must have been tried by a forward check. A stored list (--claims) is compared line
 * by line, so that a kernel that silently got lost, or a new one, shows as a difference; the list
 * is written with --write-claims.
 */
#include "conformance.h"

#include <burn/registry.h>
#include <stdlib.h>

static const char *const support_names[] = {"none", "decomposed", "native", "view"};

/* A growing text. */
typedef struct text {
    char *at;
    size_t size;
    size_t room;
} text;

static void put_line(text *t, const char *op, const char *what, const char *how)
{
    char line[256];
    int n = snprintf(line, sizeof(line), "%s %s %s\n", op, what, how);
    size_t length = n > 0 && (size_t)n < sizeof(line) ? (size_t)n : 0;
    if (t->size + length + 1 > t->room) {
        size_t room = 2 * t->room + 4096;
        char *bigger = realloc(t->at, room);
        if (bigger == NULL) {
            (void)fprintf(stderr, "burn-conformance: no memory for the list of claims\n");
            exit(2);
        }
        t->at = bigger;
        t->room = room;
    }
    memcpy(t->at + t->size, line, length);
    t->size += length;
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

static void list_op(text *t, burn_device *device, const burn_op_def *def)
{
    uint64_t set = claimed_dtypes(def);
    for (uint8_t dtype = 1; dtype < 64; dtype++) {
        if ((set >> dtype & 1) != 0) {
            int32_t support = burn_op_support(device, def->id, dtype);
            put_line(t, def->name, burn_element_name(dtype), support_names[support]);
        }
    }
    for (uint32_t i = 0; burn_op_row(device, def->id, i) != NULL; i++) {
        put_line(t, def->name, "row", burn_op_row(device, def->id, i));
    }
}

static text list_all(burn_device *device)
{
    text t = {NULL, 0, 0};
    put_line(&t, "#", "claims of a backend, one a line:", "op, dtype or row, how");
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
    static conf_case c; /* large */
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
        memset(&c, 0, sizeof(c));
        c.def = burn_op_at(0);
        c.sample.name = "all";
        conf_result(report, &c, "claims", "", CONF_PASS, "%llu claims as in the list",
                    (unsigned long long)n);
    }
    free(stored);
    free(now.at);
    return 1;
}

void conf_check_claims_tried(conf_report *report, burn_device *device, uint32_t first_op)
{
    static conf_case c; /* large */
    for (uint32_t i = first_op; i < burn_op_count(); i++) {
        const burn_op_def *def = burn_op_at(i);
        uint64_t set = claimed_dtypes(def);
        for (uint8_t dtype = 1; dtype < 64; dtype++) {
            if ((set >> dtype & 1) == 0 ||
                burn_op_support(device, def->id, dtype) != BURN_SUPPORT_NATIVE) {
                continue;
            }
            int tried = conf_was_tried(report, def->name, burn_element_name(dtype));
            memset(&c, 0, sizeof(c));
            c.def = def;
            c.dtype = dtype;
            conf_result(report, &c, "claim tried", "", tried ? CONF_PASS : CONF_FAIL, "%s",
                        tried ? "" : "a kernel is claimed, but no sample tried it");
        }
    }
}
