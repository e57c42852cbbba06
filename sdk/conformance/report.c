/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * report.c - results: failing lines as they happen, and the JSON and JUnit files at the end.
 *
 * A failing line says what was compared, and a second one how to run it alone. One cause may fail
 * hundreds of cases: behind the first ones of an op and a check, lines are counted only, unless the
 * run is verbose or of one sample, as those that print a line again are; files have them all.
 * Entries are kept for the files only as short texts. Text in files is escaped; control bytes
 * become spaces.
 */
#include "conformance.h"

#include <burn/device.h>
#include <burn/plugins.h>
#include <burn/registry.h>
#include <burn/version.h>
#include <stdarg.h>
#include <stdlib.h>

/* Failures of one op and one check that are printed. */
enum { MOST_PRINTED = 20 };

struct conf_entry {
    char op[48];
    char dtype[8];
    char check[32];
    char sample[48];
    uint32_t sample_index;
    uint32_t check_length; /* of the check's name, without the detail */
    int outcome;
    uint32_t nth; /* failure of its op and check; 0: it passed */
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

static void append_extension(char *out, size_t size, const conf_report *report)
{
    if (report->extension != NULL) {
        append(out, size, " --extension %.60s", report->extension);
    }
}

/* Which ops: what the run was asked for where a check is about the run, none of them where it is
 * about the device, else the entry's own. */
static void append_ops(char *out, size_t size, const conf_report *report, const char *check,
                       const char *op, const char *dtype, uint32_t sample_index)
{
    int of_run = strcmp(op, CONF_DEVICE) == 0;
    if (strcmp(check, "claims") == 0 || (of_run && strncmp(check, "plugin", 6) == 0)) {
        append(out, size, " --no-ops");
        append_extension(out, size, report);
        return;
    }
    op = of_run ? report->op : op;
    dtype = of_run ? burn_element_name(report->dtype) : dtype;
    if (op != NULL) {
        append(out, size, " --op %.60s", op);
    }
    append_extension(out, size, report);
    if (of_run && report->sample >= 0) {
        sample_index = (uint32_t)report->sample;
    }
    if ((of_run || sample_index != CONF_NO_SAMPLE) && strcmp(dtype, "none") != 0) {
        append(out, size, " --dtype %.8s", dtype);
    }
    if (sample_index != CONF_NO_SAMPLE) {
        append(out, size, " --sample %u", (unsigned)sample_index);
    }
}

void conf_rerun_text(char *out, size_t size, const conf_report *report, const char *check,
                     const char *op, const char *dtype, uint32_t sample_index)
{
    out[0] = '\0';
    append(out, size, "burn-conformance --device %s", report->device);
    append_ops(out, size, report, check, op, dtype, sample_index);
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

static int is_alike(const struct conf_entry *a, const struct conf_entry *b)
{
    return a->nth > 0 && a->check_length == b->check_length && strcmp(a->op, b->op) == 0 &&
           memcmp(a->check, b->check, b->check_length) == 0;
}

/* How many failures of its op and check stand before entry `end`. */
static uint32_t count_alike(const conf_report *report, const struct conf_entry *entry, uint64_t end)
{
    for (uint64_t i = end; i > 0; i--) {
        if (is_alike(&report->entries[i - 1], entry)) {
            return report->entries[i - 1].nth;
        }
    }
    return 0;
}

static int prints_all(const conf_report *report)
{
    return report->verbose || report->sample >= 0;
}

void conf_print_unsaid(const conf_report *report)
{
    for (uint64_t i = 0; i < report->n_entries && !prints_all(report); i++) {
        const struct conf_entry *entry = &report->entries[i];
        if (entry->nth == MOST_PRINTED + 1) {
            uint32_t n = count_alike(report, entry, report->n_entries);
            (void)printf("and %u more of %s %.*s, which --verbose prints\n",
                         (unsigned)(n - MOST_PRINTED), entry->op, (int)entry->check_length,
                         entry->check);
        }
    }
}

/* The checks, by the beginning of their names: what one that passed compared, where it says no more
 * itself; and whether it runs the op, so that without any of them nothing was executed. */
typedef struct check_info {
    const char *name;
    const char *compared;
    int runs;
} check_info;

static const check_info checks[] = {
    {"definition", "what every definition must have", 0},
    {"eval", "", 1},
    {"forward", "the result with eval", 1},
    {"gradient", "the tape's gradients with differences of eval", 1},
    {"second", "the gradient's gradients with differences of the gradient", 1},
    {"decompose", "the decomposition with eval", 1},
    {"repeat", "the bits of two runs", 1},
    {"replay", "the bits of a step that was kept with those of the call", 1},
    {"same operand", "one tensor as two operands with eval", 1},
    {"moved", "operands that were handed over: the bits, and everybody else's values", 1},
    {"step", "the op as the step of a program with the op alone", 1},
    {"refuse", "the answers to operands that break a rule", 0},
    {"together", "updates in one launch with updates one by one", 1},
    {"sweep", "results at other sizes with eval", 1},
    {"large", "results at sizes that threads share with eval", 1},
    {"error", "the code and the text of a call that must fail", 0},
    {"same bits", "all bits with those of other modes", 0},
};

static const check_info *info_of(const char *check)
{
    static const check_info other = {"", "", 0};
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        if (strncmp(check, checks[i].name, strlen(checks[i].name)) == 0) {
            return &checks[i];
        }
    }
    return &other;
}

/* Counts what ran. Views need no kernel, so they say nothing of a backend that has none. */
static void count_run(conf_report *report, const burn_op_def *def, const struct conf_entry *entry)
{
    int is_view = def->fuse == BURN_FUSE_VIEW;
    if (!info_of(entry->check)->runs) {
        return;
    }
    if (entry->outcome != CONF_SKIP) {
        report->n_ran += !is_view;
        report->n_viewed += is_view;
    } else if (!is_view) {
        if (report->n_lacked == 0) {
            (void)snprintf(report->lacked, sizeof(report->lacked), "%s %s %s: %.200s", entry->op,
                           entry->dtype, entry->check, entry->text);
        }
        report->n_lacked++;
    }
}

static void put_result(conf_report *report, const conf_case *c, const char *check,
                       const char *detail, int outcome, const char *format, va_list args)
{
    struct conf_entry *entry = next_entry(report);
    uint64_t *const counters[] = {&report->n_passed, &report->n_failed, &report->n_skipped};
    (*counters[outcome])++;
    (void)snprintf(entry->op, sizeof(entry->op), "%s", c->def->name);
    (void)snprintf(entry->dtype, sizeof(entry->dtype), "%s", burn_element_name(c->dtype));
    (void)snprintf(entry->check, sizeof(entry->check), "%s%s%s", check,
                   detail[0] != '\0' ? " " : "", detail);
    size_t length = strlen(check);
    entry->check_length =
        (uint32_t)(length < sizeof(entry->check) ? length : sizeof(entry->check) - 1);
    (void)snprintf(entry->sample, sizeof(entry->sample), "%s",
                   c->sample.name != NULL ? c->sample.name : "");
    entry->sample_index = c->sample.struct_size != 0 ? c->sample_index : CONF_NO_SAMPLE;
    entry->row = report->row;
    entry->outcome = outcome;
    (void)vsnprintf(entry->text, sizeof(entry->text), format, args);
    count_run(report, c->def, entry);
    if (outcome == CONF_PASS && entry->text[0] == '\0') {
        (void)snprintf(entry->text, sizeof(entry->text), "%s", info_of(entry->check)->compared);
    }
    if (outcome == CONF_FAIL) {
        entry->nth = count_alike(report, entry, report->n_entries - 1) + 1;
    }
    if (outcome == CONF_FAIL && (prints_all(report) || entry->nth <= MOST_PRINTED)) {
        print_failure(report, entry);
    } else if (report->verbose) {
        char place[200];
        place_text(place, sizeof(place), entry);
        (void)printf("%s %s %s %s%s: %s\n", outcome_names[outcome], entry->op, entry->dtype,
                     entry->check, place, entry->text);
    }
}

void conf_result(conf_report *report, const conf_case *c, const char *check, const char *detail,
                 int outcome, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_result(report, c, check, detail, outcome, format, args);
    va_end(args);
}

void conf_device_result(conf_report *report, const char *check, const char *detail, int outcome,
                        const char *format, ...)
{
    static const burn_op_def device = {.name = CONF_DEVICE};
    static conf_case c; /* large */
    va_list args;
    c.def = &device;
    va_start(args, format);
    put_result(report, &c, check, detail, outcome, format, args);
    va_end(args);
}

void conf_failed(conf_report *report, const conf_case *c, const char *check, const char *detail,
                 int32_t code, const char *text)
{
    int skip = code == BURN_E_UNSUPPORTED && c->support != BURN_SUPPORT_NATIVE;
    conf_result(report, c, check, detail, skip ? CONF_SKIP : CONF_FAIL, "failed with %d (%s): %s",
                (int)code, burn_status_name(code), text[0] != '\0' ? text : "(no text)");
}

int conf_ran(const conf_report *report)
{
    return report->n_ran > 0 || (report->n_viewed > 0 && report->n_lacked == 0);
}

void conf_check_ran(conf_report *report)
{
    if (conf_ran(report)) {
        return;
    }
    if (report->n_lacked > 0) {
        conf_device_result(report, "executed", "", CONF_FAIL,
                           "nothing was executed: the device lacks what all %llu checks need; %s",
                           (unsigned long long)report->n_lacked, report->lacked);
    } else {
        conf_device_result(report, "executed", "", CONF_FAIL,
                           "nothing was executed: no sample fits what was asked for; --list tells "
                           "which there are");
    }
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
