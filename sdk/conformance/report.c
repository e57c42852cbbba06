/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * report.c - results: failing lines as they happen, and the JSON and JUnit files at the end.
 *
 * A failing line says what was compared, and a second one how to run it alone. Entries are kept for
 * the files only as short texts. Text in files is escaped; control bytes become spaces.
 */
#include "conformance.h"

#include <burn/registry.h>
#include <stdarg.h>
#include <stdlib.h>

struct conf_entry {
    char op[48];
    char dtype[8];
    char check[32];
    char sample[48];
    uint32_t sample_index;
    int outcome;
    char text[320];
};

static const char *const outcome_names[] = {"pass", "fail", "skip"};

static struct conf_entry *next_entry(conf_report *report)
{
    if (report->n_entries == report->room) {
        uint64_t room = report->room == 0 ? 1024 : report->room * 2;
        void *bigger = realloc(report->entries, (size_t)room * sizeof(struct conf_entry));
        if (bigger == NULL) {
            (void)fprintf(stderr, "burn-conformance: no memory for the report\n");
            exit(2);
        }
        report->entries = (struct conf_entry *)bigger;
        report->room = room;
    }
    struct conf_entry *entry = &report->entries[report->n_entries];
    report->n_entries++;
    memset(entry, 0, sizeof(*entry));
    return entry;
}

void conf_rerun_text(char *out, size_t size, const conf_report *report, const char *op,
                     const char *dtype, uint32_t sample_index)
{
    char extension[80] = "";
    char one[48] = "";
    if (report->extension != NULL) {
        (void)snprintf(extension, sizeof(extension), " --extension %.60s", report->extension);
    }
    if (strcmp(dtype, "none") != 0) {
        (void)snprintf(one, sizeof(one), " --dtype %.8s --sample %u", dtype,
                       (unsigned)sample_index);
    }
    (void)snprintf(out, size, "burn-conformance --device %s --op %s%s%s --seed %llu",
                   report->device, op, extension, one, (unsigned long long)report->seed);
}

static void print_failure(const conf_report *report, const struct conf_entry *entry)
{
    char rerun[400];
    conf_rerun_text(rerun, sizeof(rerun), report, entry->op, entry->dtype, entry->sample_index);
    (void)printf("FAIL %s %s %s, sample %u (%s): %s\n     rerun: %s\n", entry->op, entry->dtype,
                 entry->check, (unsigned)entry->sample_index, entry->sample, entry->text, rerun);
    (void)fflush(stdout);
}

void conf_result(conf_report *report, const conf_case *c, const char *check, const char *detail,
                 int outcome, const char *format, ...)
{
    struct conf_entry *entry = next_entry(report);
    uint64_t *const counters[] = {&report->n_passed, &report->n_failed, &report->n_skipped};
    va_list args;
    (*counters[outcome])++;
    (void)snprintf(entry->op, sizeof(entry->op), "%s", c->def->name);
    (void)snprintf(entry->dtype, sizeof(entry->dtype), "%s", burn_element_name(c->dtype));
    (void)snprintf(entry->check, sizeof(entry->check), "%s%s%s", check,
                   detail[0] != '\0' ? " " : "", detail);
    (void)snprintf(entry->sample, sizeof(entry->sample), "%s",
                   c->sample.name != NULL ? c->sample.name : "");
    entry->sample_index = c->sample_index;
    entry->outcome = outcome;
    va_start(args, format);
    (void)vsnprintf(entry->text, sizeof(entry->text), format, args);
    va_end(args);
    if (outcome == CONF_FAIL) {
        print_failure(report, entry);
    } else if (report->verbose) {
        (void)printf("%s %s %s %s, sample %u (%s) %s\n", outcome_names[outcome], entry->op,
                     entry->dtype, entry->check, (unsigned)entry->sample_index, entry->sample,
                     entry->text);
    }
}

void conf_failed(conf_report *report, const conf_case *c, const char *check, const char *detail,
                 int32_t code, const char *text)
{
    int skip = code == BURN_E_UNSUPPORTED && c->support != BURN_SUPPORT_NATIVE;
    conf_result(report, c, check, detail, skip ? CONF_SKIP : CONF_FAIL, "failed with %d (%s): %s",
                (int)code, burn_status_name(code), text[0] != '\0' ? text : "(no text)");
}

int conf_was_tried(const conf_report *report, const char *op, const char *dtype)
{
    for (uint64_t i = 0; i < report->n_entries; i++) {
        const struct conf_entry *entry = &report->entries[i];
        if (entry->outcome != CONF_SKIP && strncmp(entry->check, "forward", 7) == 0 &&
            strcmp(entry->op, op) == 0 && strcmp(entry->dtype, dtype) == 0) {
            return 1;
        }
    }
    return 0;
}

void conf_digest(conf_report *report, conf_arena *arena, const conf_value *value)
{
    if (value->meta.kind == BURN_ABSENT) {
        return;
    }
    const unsigned char *bytes = conf_bytes(arena, value);
    uint64_t size = value->n * burn_element_size(value->meta.dtype);
    for (uint64_t i = 0; i < size; i++) {
        report->digest = (report->digest ^ bytes[i]) * UINT64_C(1099511628211);
    }
}

static void put_json(FILE *file, const char *text)
{
    (void)fputc('"', file);
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') {
            (void)fputc('\\', file);
        }
        (void)fputc((unsigned char)*p < 0x20 ? ' ' : *p, file);
    }
    (void)fputc('"', file);
}

static void put_json_field(FILE *file, const char *key, const char *text, const char *end)
{
    (void)fprintf(file, "\"%s\": ", key);
    put_json(file, text);
    (void)fputs(end, file);
}

static int close_file(FILE *file, const char *path)
{
    int bad = ferror(file);
    if (fclose(file) != 0 || bad) {
        (void)fprintf(stderr, "burn-conformance: cannot write %s\n", path);
        return 0;
    }
    return 1;
}

int conf_write_json(const conf_report *report, const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        (void)fprintf(stderr, "burn-conformance: cannot open %s\n", path);
        return 0;
    }
    (void)fputs("{\n  ", file);
    put_json_field(file, "device", report->device, ",\n  ");
    (void)fprintf(file,
                  "\"seed\": %llu, \"passed\": %llu, \"failed\": %llu, \"skipped\": %llu,\n"
                  "  \"results\": [",
                  (unsigned long long)report->seed, (unsigned long long)report->n_passed,
                  (unsigned long long)report->n_failed, (unsigned long long)report->n_skipped);
    for (uint64_t i = 0; i < report->n_entries; i++) {
        const struct conf_entry *entry = &report->entries[i];
        (void)fputs(i == 0 ? "\n    {" : ",\n    {", file);
        put_json_field(file, "op", entry->op, ", ");
        put_json_field(file, "dtype", entry->dtype, ", ");
        put_json_field(file, "check", entry->check, ", ");
        (void)fprintf(file, "\"sample\": %u, ", (unsigned)entry->sample_index);
        put_json_field(file, "name", entry->sample, ", ");
        put_json_field(file, "outcome", outcome_names[entry->outcome], ", ");
        put_json_field(file, "text", entry->text, "}");
    }
    (void)fputs("\n  ]\n}\n", file);
    return close_file(file, path);
}

static void put_xml(FILE *file, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        switch (*p) {
        case '<':
            (void)fputs("&lt;", file);
            break;
        case '>':
            (void)fputs("&gt;", file);
            break;
        case '&':
            (void)fputs("&amp;", file);
            break;
        case '"':
            (void)fputs("&quot;", file);
            break;
        default:
            (void)fputc((unsigned char)*p < 0x20 ? ' ' : *p, file);
            break;
        }
    }
}

int conf_write_junit(const conf_report *report, const char *path)
{
    static const char *const tags[] = {NULL, "failure", "skipped"};
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        (void)fprintf(stderr, "burn-conformance: cannot open %s\n", path);
        return 0;
    }
    (void)fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"conformance ", file);
    put_xml(file, report->device);
    (void)fprintf(file, "\" tests=\"%llu\" failures=\"%llu\" skipped=\"%llu\">\n",
                  (unsigned long long)report->n_entries, (unsigned long long)report->n_failed,
                  (unsigned long long)report->n_skipped);
    for (uint64_t i = 0; i < report->n_entries; i++) {
        const struct conf_entry *entry = &report->entries[i];
        (void)fprintf(file, "  <testcase classname=\"%s\" name=\"%s %s sample %u ", entry->op,
                      entry->dtype, entry->check, (unsigned)entry->sample_index);
        put_xml(file, entry->sample);
        if (tags[entry->outcome] == NULL) {
            (void)fputs("\"/>\n", file);
        } else {
            (void)fprintf(file, "\"><%s message=\"", tags[entry->outcome]);
            put_xml(file, entry->text);
            (void)fputs("\"/></testcase>\n", file);
        }
    }
    (void)fputs("</testsuite>\n", file);
    return close_file(file, path);
}

void conf_report_free(conf_report *report)
{
    free(report->entries);
    report->entries = NULL;
    report->n_entries = 0;
}
