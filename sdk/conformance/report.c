/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * report.c - results: failing lines as they happen, and the JSON and JUnit files at the end.
 *
 * A failing line says what was compared, and a second one how to run it alone. Entries are kept for
 * the files only as short texts. Text in files is escaped; control bytes become spaces.
 */
#include "conformance.h"

#include <burn/device.h>
#include <burn/plugins.h>
#include <burn/registry.h>
#include <burn/version.h>
#include <stdarg.h>
#include <stdlib.h>

struct conf_entry {
    char op[48];
    char dtype[8];
    char check[32];
    char sample[48];
    uint32_t sample_index;
    int outcome;
    const char *row; /* that was preferred, or NULL */
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

static void append(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(out + used, size - used, format, args);
    va_end(args);
}

void conf_rerun_text(char *out, size_t size, const conf_report *report, const char *check,
                     const char *op, const char *dtype, uint32_t sample_index)
{
    out[0] = '\0';
    append(out, size, "burn-conformance --device %s", report->device);
    /* What a mode did as a whole is no op's. */
    if (strncmp(check, "same bits", 9) != 0 || strcmp(dtype, "none") != 0) {
        append(out, size, " --op %s", op);
    }
    if (report->extension != NULL) {
        append(out, size, " --extension %.60s", report->extension);
    }
    if (sample_index != CONF_NO_SAMPLE) {
        if (strcmp(dtype, "none") != 0) {
            append(out, size, " --dtype %.8s", dtype);
        }
        append(out, size, " --sample %u", (unsigned)sample_index);
    }
    if (report->row != NULL) {
        append(out, size, " --row %.95s", report->row);
    }
    if (report->claims != NULL && strcmp(check, "claims") == 0) {
        append(out, size, " --claims %.200s", report->claims);
    }
    append(out, size, "%s%s --seed %llu", report->smoke ? " --smoke" : "",
           report->unguarded ? " --unguarded" : "", (unsigned long long)report->seed);
}

static void rerun_entry(char *out, size_t size, const conf_report *report,
                        const struct conf_entry *entry)
{
    conf_report then = *report;
    then.row = entry->row;
    conf_rerun_text(out, size, &then, entry->check, entry->op, entry->dtype, entry->sample_index);
}

/* "sample 2 (rows), row flex.matmul.f32" */
static void place_text(char *out, size_t size, const struct conf_entry *entry)
{
    out[0] = '\0';
    if (entry->sample_index != CONF_NO_SAMPLE) {
        append(out, size, ", sample %u (%s)", (unsigned)entry->sample_index, entry->sample);
    }
    if (entry->row != NULL) {
        append(out, size, ", row %.95s", entry->row);
    }
}

static void print_failure(const conf_report *report, const struct conf_entry *entry)
{
    char rerun[640];
    char place[200];
    rerun_entry(rerun, sizeof(rerun), report, entry);
    place_text(place, sizeof(place), entry);
    (void)printf("FAIL %s %s %s%s: %s\n     rerun: %s\n", entry->op, entry->dtype, entry->check,
                 place, entry->text, rerun);
    (void)fflush(stdout);
}

/* What a check that passed compared, where it says no more itself. By the beginning of its name. */
static const char *const compared[][2] = {
    {"definition", "what every definition must have"},
    {"forward", "the result with eval"},
    {"gradient", "the tape's gradients with differences of eval"},
    {"second", "the gradient's gradients with differences of the gradient"},
    {"decompose", "the decomposition with eval"},
    {"repeat", "the bits of two runs"},
    {"replay", "the bits of a step that was kept with those of the call"},
    {"same operand", "one tensor as two operands with eval"},
    {"moved", "operands that were handed over: the bits, and everybody else's values"},
    {"step", "the op as the step of a program with the op alone"},
    {"refuse", "the answers to operands that break a rule"},
    {"together", "updates in one launch with updates one by one"},
    {"sweep", "results at other sizes with eval"},
    {"error", "the code and the text of a call that must fail"},
    {"same bits", "all bits with those of other modes"},
};

static void say_compared(struct conf_entry *entry)
{
    for (size_t i = 0; i < sizeof(compared) / sizeof(compared[0]) && entry->text[0] == '\0'; i++) {
        if (strncmp(entry->check, compared[i][0], strlen(compared[i][0])) == 0) {
            (void)snprintf(entry->text, sizeof(entry->text), "%s", compared[i][1]);
        }
    }
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
    entry->sample_index = c->sample.struct_size != 0 ? c->sample_index : CONF_NO_SAMPLE;
    entry->row = report->row;
    entry->outcome = outcome;
    va_start(args, format);
    (void)vsnprintf(entry->text, sizeof(entry->text), format, args);
    va_end(args);
    if (outcome == CONF_PASS) {
        say_compared(entry);
    }
    if (outcome == CONF_FAIL) {
        print_failure(report, entry);
    } else if (report->verbose) {
        char place[200];
        place_text(place, sizeof(place), entry);
        (void)printf("%s %s %s %s%s: %s\n", outcome_names[outcome], entry->op, entry->dtype,
                     entry->check, place, entry->text);
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

/* ---- about the device ------------------------------------------------------------------------ */

static const char *const about_names[] = {"library", "abi", "plugin", "isa"};
enum { N_ABOUT = sizeof(about_names) / sizeof(about_names[0]) };

static void find_plugin(char *out, size_t size, const char *device)
{
    size_t length = strcspn(device, ":");
    for (uint32_t i = 0; i < burn_plugins_count(); i++) {
        burn_plugin_info info;
        BURN_INIT(&info, burn_plugin_info);
        if (burn_plugins_at(i, 0, &info, NULL) == BURN_OK && info.id != NULL &&
            strlen(info.id) == length && strncmp(info.id, device, length) == 0) {
            (void)snprintf(out, size, "%.60s %.60s", info.id,
                           info.version != NULL ? info.version : "");
        }
    }
}

void conf_report_about(conf_report *report, burn_device *device)
{
    burn_device_info info;
    BURN_INIT(&info, burn_device_info);
    (void)snprintf(report->about[0], sizeof(report->about[0]), "%.100s", burn_version());
    (void)snprintf(report->about[1], sizeof(report->about[1]), "%d.%d", BURN_ABI_MAJOR,
                   BURN_ABI_MINOR);
    if (device != NULL) {
        find_plugin(report->about[2], sizeof(report->about[2]), report->device);
    }
    if (device != NULL && burn_device_describe(device, &info, NULL) == BURN_OK) {
        (void)snprintf(report->about[3], sizeof(report->about[3]), "%s", info.isa);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

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
    for (int k = 0; k < N_ABOUT; k++) {
        put_json_field(file, about_names[k], report->about[k], ", ");
    }
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
        if (entry->sample_index != CONF_NO_SAMPLE) {
            (void)fprintf(file, "\"sample\": %u, ", (unsigned)entry->sample_index);
            put_json_field(file, "name", entry->sample, ", ");
        }
        if (entry->row != NULL) {
            put_json_field(file, "row", entry->row, ", ");
        }
        if (entry->outcome == CONF_FAIL) {
            char rerun[640];
            rerun_entry(rerun, sizeof(rerun), report, entry);
            put_json_field(file, "rerun", rerun, ", ");
        }
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

static void put_properties(FILE *file, const conf_report *report)
{
    (void)fputs("  <properties>\n", file);
    for (int k = 0; k < N_ABOUT; k++) {
        (void)fprintf(file, "    <property name=\"%s\" value=\"", about_names[k]);
        put_xml(file, report->about[k]);
        (void)fputs("\"/>\n", file);
    }
    (void)fputs("  </properties>\n", file);
}

static void put_testcase(FILE *file, const conf_report *report, const struct conf_entry *entry)
{
    static const char *const tags[] = {"system-out", "failure", "skipped"};
    char place[200];
    place_text(place, sizeof(place), entry);
    (void)fprintf(file, "  <testcase classname=\"%s\" name=\"%s %s", entry->op, entry->dtype,
                  entry->check);
    put_xml(file, place);
    if (entry->outcome == CONF_PASS) {
        (void)fprintf(file, "\"><%s>", tags[entry->outcome]);
        put_xml(file, entry->text);
        (void)fprintf(file, "</%s></testcase>\n", tags[entry->outcome]);
        return;
    }
    (void)fprintf(file, "\"><%s message=\"", tags[entry->outcome]);
    put_xml(file, entry->text);
    (void)fputs("\">", file);
    if (entry->outcome == CONF_FAIL) {
        char rerun[640];
        rerun_entry(rerun, sizeof(rerun), report, entry);
        (void)fputs("rerun: ", file);
        put_xml(file, rerun);
    }
    (void)fprintf(file, "</%s></testcase>\n", tags[entry->outcome]);
}

int conf_write_junit(const conf_report *report, const char *path)
{
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
    put_properties(file, report);
    for (uint64_t i = 0; i < report->n_entries; i++) {
        put_testcase(file, report, &report->entries[i]);
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
