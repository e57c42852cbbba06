/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * main.c - burn-conformance: options, the walk over ops, samples and dtypes, and the verdict.
 *
 * Exit status 0: everything that ran passed; 1: something failed, or no op ran; 2: bad options,
 * the device cannot be opened, or a report cannot be written. With --device eval definitions are
 * tried by themselves, without a device.
 */
#include "conformance.h"

#include <burn/device.h>
#include <burn/registry.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

typedef struct options {
    const char *device; /* NULL: BURN_DEVICE, or auto */
    const char *op;
    const char *extension; /* its ops are tried, and no others unless --op names one */
    const char *json;
    const char *junit;
    const char *claims;
    const char *write_claims;
    const char *row; /* it is preferred, or NULL */
    const char *until; /* enough is tried when this row was launched; NULL: all of it */
    const char *bits;
    FILE *bits_file;
    uint64_t seed;
    int64_t sample; /* -1: all */
    uint32_t first_op;
    uint8_t dtype;  /* 0: all */
    uint8_t smoke;
    uint8_t list;
    uint8_t digest;
    uint8_t verbose;
    uint8_t no_modes;
    uint8_t no_ops;
    uint8_t unguarded;
    uint8_t forward_only;
    uint8_t all_variants; /* also in a smoke run */
} options;

static const char usage_text[] =
    "usage: burn-conformance [--device D] [--op O] [--dtype T] [--sample N] [--seed S]\n"
    "                        [--smoke] [--no-modes] [--no-ops] [--unguarded] [--list]\n"
    "                        [--verbose] [--digest] [--extension ID] [--row NAME]\n"
    "                        [--claims FILE] [--write-claims FILE]\n"
    "                        [--json FILE] [--junit FILE]\n"
    "\n"
    "Tries every op of the registry on a device: forward in six layouts, at awkward and large\n"
    "sizes, gradients and second ones, decompositions, shared and moved operands, errors,\n"
    "the same bits twice, in a replay and in every mode. --device eval tries the definitions by\n"
    "themselves.\n"
    "Large sizes end at 1 Mi elements and 4e7 operations, what kernels do beyond is not seen.\n"
    "--smoke: one dtype and two layouts per sample. --no-modes: this process only.\n"
    "--no-ops: only what is about the device as a whole, its plugin and its claims.\n"
    "--unguarded: kernels run on their operands, not on guarded copies.\n"
    "--extension loads one and tries its ops only, or the one that --op names. --row: calls that\n"
    "this row takes go to it, whatever others there are.\n"
    "--list: what would run. --claims: compares what the device claims with a list;\n"
    "--write-claims writes one. --digest: one number for the bits of all results.\n";

static int bad_option(const char *option, const char *why)
{
    (void)fprintf(stderr, "burn-conformance: %s: %s\n%s", option, why, usage_text);
    return 2;
}

static int parse_number(const char *text, uint64_t *out)
{
    char *end = NULL;
    if (text[0] < '0' || text[0] > '9') {
        return 0;
    }
    *out = strtoull(text, &end, 10);
    return *end == '\0';
}

/* An option that takes a value; 0 when it is fine, else the exit status. */
static int set_value(options *o, const char *name, const char *value)
{
    uint64_t number = 0;
    if (strcmp(name, "--device") == 0) {
        o->device = value;
    } else if (strcmp(name, "--op") == 0) {
        o->op = value;
    } else if (strcmp(name, "--extension") == 0) {
        o->extension = value;
    } else if (strcmp(name, "--row") == 0) {
        o->row = value;
    } else if (strcmp(name, "--json") == 0) {
        o->json = value;
    } else if (strcmp(name, "--junit") == 0) {
        o->junit = value;
    } else if (strcmp(name, "--claims") == 0) {
        o->claims = value;
    } else if (strcmp(name, "--write-claims") == 0) {
        o->write_claims = value;
    } else if (strcmp(name, "--bits") == 0) {
        o->bits = value;
    } else if (strcmp(name, "--dtype") == 0) {
        o->dtype = burn_dtype_from_name(value);
        return o->dtype == BURN_DTYPE_NONE ? bad_option(value, "no such dtype") : 0;
    } else if (strcmp(name, "--sample") == 0 && parse_number(value, &number)) {
        o->sample = (int64_t)number;
    } else if (strcmp(name, "--seed") == 0 && parse_number(value, &number)) {
        o->seed = number;
    } else {
        return bad_option(name, "unknown option, or its value is not a number");
    }
    return 0;
}

/* Ops of an extension come behind those that were there. 0, else the exit status. */
static int load_extension(options *o)
{
    burn_err err = BURN_ERR_INIT;
    if (o->extension == NULL) {
        return 0;
    }
    o->first_op = burn_op_count();
    if (burn_extension_load(o->extension, &err) != BURN_OK) {
        (void)fprintf(stderr, "burn-conformance: --extension %s: %s\n", o->extension, err.text);
        return 2;
    }
    return 0;
}

static int parse(int argc, char **argv, options *o)
{
    memset(o, 0, sizeof(*o));
    o->sample = -1;
    o->seed = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--smoke") == 0) {
            o->smoke = 1;
        } else if (strcmp(argv[i], "--list") == 0) {
            o->list = 1;
        } else if (strcmp(argv[i], "--verbose") == 0) {
            o->verbose = 1;
        } else if (strcmp(argv[i], "--digest") == 0) {
            o->digest = 1;
        } else if (strcmp(argv[i], "--no-modes") == 0) {
            o->no_modes = 1;
        } else if (strcmp(argv[i], "--no-ops") == 0) {
            o->no_ops = 1;
        } else if (strcmp(argv[i], "--unguarded") == 0) {
            o->unguarded = 1;
        } else if (i + 1 < argc) {
            int status = set_value(o, argv[i], argv[i + 1]);
            if (status != 0) {
                return status;
            }
            i++;
        } else {
            return bad_option(argv[i], "unknown option, or its value is missing");
        }
    }
    int code = load_extension(o);
    if (code != 0) {
        return code;
    }
    if (o->op != NULL && burn_op_find(o->op) == NULL) {
        return bad_option(o->op, "no such op");
    }
    return 0;
}

/* An op without tensors is known by what it makes. */
static void relabel(conf_case *c)
{
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (c->in[i].meta.kind == BURN_TENSOR) {
            return;
        }
    }
    if (c->n_out > 0 && c->out[0].meta.dtype != BURN_DTYPE_NONE) {
        c->dtype = c->out[0].meta.dtype;
    }
}

static int32_t evaluate(conf_case *c, burn_err *err)
{
    return conf_evaluate(c->arena, c->def, c->sample.attrs, c->sample.attrs_size, c->in, c->n_in,
                         c->out, c->n_out, err);
}

static void run_layouts(const options *o, conf_report *report, conf_runner *runner, conf_case *c)
{
    burn_err err = BURN_ERR_INIT;
    uint8_t n = o->smoke ? CONF_SLICED : CONF_LAYOUTS;
    for (uint8_t layout = 0; layout < n; layout++) {
        if (!conf_layout_applies(c, layout)) {
            continue;
        }
        c->layout = layout;
        conf_crash_case(report, c, "forward", conf_layout_names[layout]);
        if (layout == CONF_STRIDE0) {
            conf_layout_values(c, layout);
            int32_t code = evaluate(c, &err);
            if (code != BURN_OK) {
                conf_result(report, c, "forward", conf_layout_names[layout], CONF_FAIL,
                            "eval failed with %d (%s): %s", (int)code, burn_status_name(code),
                            err.text);
                continue;
            }
        }
        conf_check_forward(report, runner, c);
        runner->reset(runner);
    }
    c->layout = CONF_CONTIGUOUS;
}

typedef void (*check_fn)(conf_report *report, conf_runner *runner, conf_case *c);

static void run_check(conf_report *report, conf_runner *runner, conf_case *c, const char *name,
                      check_fn check)
{
    conf_crash_case(report, c, name, conf_layout_detail(c));
    check(report, runner, c);
    runner->reset(runner);
}

/* What is tried with another layout for each operand: one sample of each op and dtype. */
static void run_mixed(conf_report *report, conf_runner *runner, conf_case *c)
{
    if (!conf_layout_applies(c, CONF_TRANSPOSED)) {
        return;
    }
    c->layout = CONF_MIXED;
    run_check(report, runner, c, "gradient", conf_check_gradient);
    run_check(report, runner, c, "second", conf_check_second);
    run_check(report, runner, c, "decompose", conf_check_decompose);
    run_check(report, runner, c, "same operand", conf_check_same_operand);
    run_check(report, runner, c, "moved", conf_check_moved);
    c->layout = CONF_CONTIGUOUS;
}

static void run_checks(const options *o, conf_report *report, conf_runner *runner, conf_case *c)
{
    c->support = (uint8_t)runner->supports(runner, c->def, c->dtype);
    if ((c->sample.flags & BURN_SAMPLE_ERROR) != 0) {
        run_check(report, runner, c, "error", conf_check_error);
        report->n_ran += o->sample >= 0; /* it was asked for by its number */
        return;
    }
    report->n_cases += o->forward_only == 0; /* those that have bits to compare */
    if (o->forward_only) {
        run_check(report, runner, c, "sweep", conf_check_sweep);
        run_layouts(o, report, runner, c);
        return;
    }
    run_check(report, runner, c, "gradient", conf_check_gradient);
    run_check(report, runner, c, "decompose", conf_check_decompose);
    if (strcmp(runner->name, "eval") == 0) {
        report->n_ran++;
        return; /* its forward is what is compared with */
    }
    run_check(report, runner, c, "second", conf_check_second);
    run_check(report, runner, c, "repeat", conf_check_repeat);
    run_check(report, runner, c, "replay", conf_check_replay);
    run_check(report, runner, c, "same operand", conf_check_same_operand);
    run_check(report, runner, c, "moved", conf_check_moved);
    run_check(report, runner, c, "step", conf_check_lines);
    if ((o->smoke || c->variant == 0) && c->sample_index == conf_main_sample(c->def)) {
        run_check(report, runner, c, "refuse", conf_check_refusals);
    }
    if (c->sample_index == conf_main_sample(c->def)) {
        run_check(report, runner, c, "together", conf_check_together);
        run_mixed(report, runner, c);
    }
    if (!o->smoke) {
        run_check(report, runner, c, "sweep", conf_check_sweep);
        run_check(report, runner, c, "large", conf_check_large);
    }
    run_layouts(o, report, runner, c); /* last: it changes the inputs */
}

static void write_bits(const options *o, conf_report *report, conf_runner *runner, conf_case *c)
{
    report->n_passed++;
    if ((c->sample.flags & BURN_SAMPLE_ERROR) == 0) {
        conf_crash_case(report, c, "same bits", "");
        conf_write_bits(o->bits_file, runner, c, o->smoke);
        report->n_cases++;
    }
}

/* One variant; its memory is freed here. */
static void run_variant(const options *o, conf_report *report, conf_runner *runner, conf_case *c,
                        uint32_t variant)
{
    conf_arena arena = {NULL};
    burn_err err = BURN_ERR_INIT;
    c->arena = &arena;
    conf_case_dtypes(c, variant);
    conf_crash_case(report, c, "eval", "");
    conf_case_inputs(c);
    int32_t code = evaluate(c, &err);
    if (code == BURN_OK) {
        relabel(c);
    }
    if (o->dtype == BURN_DTYPE_NONE || o->dtype == c->dtype) {
        if (o->list) {
            (void)printf("%s %s sample %u (%s)\n", c->def->name, burn_element_name(c->dtype),
                         (unsigned)c->sample_index, c->sample.name);
            report->n_passed++;
        } else if (code != BURN_OK && (c->sample.flags & BURN_SAMPLE_ERROR) == 0) {
            conf_result(report, c, "eval", "", CONF_FAIL, "failed with %d (%s): %s",
                        (int)code, burn_status_name(code),
                        err.text[0] != '\0' ? err.text : "no text; set one with burn_plugin_fail");
        } else if (o->bits != NULL) {
            write_bits(o, report, runner, c);
        } else {
            run_checks(o, report, runner, c);
        }
    }
    conf_arena_free(&arena);
    conf_crash_case(report, NULL, "", "");
}

/* In a smoke run: the variant that is f32, else the first. */
static int is_smoke_variant(conf_case *c, uint32_t variant, uint32_t n)
{
    for (uint32_t v = 0; v < n; v++) {
        conf_case_dtypes(c, v);
        if (c->dtype == BURN_F32) {
            return v == variant;
        }
    }
    return variant == 0;
}

/* What was to be launched has been. */
static int is_enough(const options *o, const conf_runner *runner, const burn_op_def *def)
{
    burn_row_info row;
    int found = 0;
    for (uint32_t i = 0; o->until != NULL && !found &&
                         conf_row((burn_device *)runner->context, def, i, &row);
         i++) {
        found = row.n_guarded > 0 && strcmp(row.name, o->until) == 0;
    }
    return found;
}

static void run_samples(const options *o, conf_report *report, conf_runner *runner,
                        const burn_op_def *def)
{
    static conf_case c; /* large */
    for (uint32_t i = 0; def->samples != NULL; i++) {
        memset(&c, 0, sizeof(c));
        c.def = def;
        c.seed = o->seed;
        c.sample_index = i;
        c.sample.struct_size = (uint32_t)sizeof(c.sample);
        if (def->samples(i, &c.sample) != BURN_OK) {
            return;
        }
        if (o->sample >= 0 && o->sample != (int64_t)i) {
            continue;
        }
        uint32_t n = conf_variants(def, &c.sample);
        for (uint32_t variant = 0; variant < n; variant++) {
            if (is_enough(o, runner, def)) {
                return;
            }
            if (!o->smoke || o->all_variants || is_smoke_variant(&c, variant, n)) {
                run_variant(o, report, runner, &c, variant);
            }
        }
    }
}

/* Results by this row, wherever it fits. */
static void run_row(const options *o, conf_report *report, conf_runner *runner,
                    const burn_op_def *def, const char *row)
{
    options own = *o;
    burn_err err = BURN_ERR_INIT;
    own.forward_only = 1;
    own.all_variants = 1;
    own.until = o->smoke ? row : NULL;
    report->row = row;
    if (burn_option_set("ROW", row, &err) == BURN_OK) {
        run_samples(&own, report, runner, def);
    }
    (void)burn_option_set("ROW", NULL, &err);
    report->row = NULL;
}

/* Once more by each row that nothing went to so far, and by each that may win a race, since then
 * everything that it fits goes to it; in a smoke run those that nothing went to only. */
static void run_rows(const options *o, conf_report *report, conf_runner *runner,
                     const burn_op_def *def)
{
    burn_device *device = (burn_device *)runner->context;
    burn_row_info row;
    for (uint32_t i = 0; conf_row(device, def, i, &row); i++) {
        int races = (row.flags & (BURN_ROW_TUNABLE | BURN_ROW_TUNED_ONLY)) != 0 && !o->smoke;
        if (row.n_guarded == 0 || races) {
            run_row(o, report, runner, def, row.name);
        }
    }
    conf_check_claims_tried(report, device, def, o->smoke);
}

static void run_op(const options *o, conf_report *report, conf_runner *runner,
                   const burn_op_def *def)
{
    static conf_case c; /* large */
    int whole = o->sample < 0 && o->dtype == BURN_DTYPE_NONE && !o->list && o->bits == NULL;
    if (whole) {
        memset(&c, 0, sizeof(c));
        c.def = def;
        conf_crash_case(report, &c, "definition", "");
        conf_check_definition(report, &c);
    }
    run_samples(o, report, runner, def);
    if (whole && o->row == NULL && !o->unguarded && strcmp(runner->name, "eval") != 0) {
        run_rows(o, report, runner, def);
    }
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int finish(const options *o, conf_report *report)
{
    int status = report->n_failed > 0 ? 1 : 0;
    conf_print_unsaid(report);
    if (report->n_passed + report->n_failed == 0) {
        (void)printf("nothing was listed or tried\n");
        status = 1;
    }
    if (o->digest) {
        (void)printf("digest %016llx\n", (unsigned long long)report->digest);
    }
    if (!o->list && o->bits == NULL) {
        (void)printf("%llu passed, %llu failed, %llu skipped in %.1f s\n",
                     (unsigned long long)report->n_passed, (unsigned long long)report->n_failed,
                     (unsigned long long)report->n_skipped, seconds() - report->begun);
    }
    /* A run whose bits are compared is another one's: that one reports. */
    if (o->bits == NULL && o->json != NULL && !conf_write_json(report, o->json)) {
        status = 2;
    }
    if (o->bits == NULL && o->junit != NULL && !conf_write_junit(report, o->junit)) {
        status = 2;
    }
    conf_report_free(report);
    return status;
}

/* What concerns the device as a whole, after the walk. 0: a file could not be read or written. */
static int run_device_checks(const options *o, conf_report *report, conf_runner *runner, int argc,
                             char **argv)
{
    if (o->bits != NULL || o->list) {
        return 1;
    }
    if (!o->no_ops) {
        conf_check_ran(report);
    }
    if (strcmp(runner->name, "eval") == 0) {
        return 1;
    }
    if (!o->no_modes && !o->no_ops && conf_ran(report)) {
        conf_check_modes(report, argc, argv);
    }
    conf_check_linked(report, runner->name, o->extension);
    burn_device *device = (burn_device *)runner->context;
    return (o->claims == NULL || conf_check_claims(report, device, o->claims)) &&
           (o->write_claims == NULL || conf_write_claims(device, o->write_claims));
}

static void run_ops(const options *o, conf_report *report, conf_runner *runner)
{
    uint32_t first = o->op == NULL ? o->first_op : 0;
    for (uint32_t i = first; i < burn_op_count() && !o->no_ops; i++) {
        const burn_op_def *def = burn_op_at(i);
        if (o->op == NULL || strcmp(o->op, def->name) == 0) {
            run_op(o, report, runner, def);
        }
    }
}

/* Is there a row of that name, of an op that was asked for? Else a misspelled one looks proven. */
static int has_row(const options *o, burn_device *device)
{
    burn_row_info row;
    for (uint32_t i = 0; i < burn_op_count(); i++) {
        const burn_op_def *def = burn_op_at(i);
        int asked = o->op == NULL || strcmp(o->op, def->name) == 0;
        for (uint32_t k = 0; asked && conf_row(device, def, k, &row); k++) {
            if (strcmp(row.name, o->row) == 0) {
                return 1;
            }
        }
    }
    return 0;
}

/* Says what is wrong with --row; 0 when it is. */
static int check_row(const options *o, const conf_runner *runner, int definitions)
{
    if (o->row == NULL) {
        return 1;
    }
    if (definitions) {
        (void)bad_option("--row", "definitions have no rows; name a device");
        return 0;
    }
    if (has_row(o, (burn_device *)runner->context)) {
        return 1;
    }
    (void)fprintf(stderr, "burn-conformance: --row: %s has no row %s for %s; `burn ops OP --device "
                          "%s` names those of an op\n",
                  runner->name, o->row, o->op != NULL ? o->op : "any op", runner->name);
    return 0;
}

/* Minutes before it is needed. */
static int can_write(const char *option, const char *path)
{
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (path != NULL && file == NULL) {
        (void)fprintf(stderr, "burn-conformance: %s: cannot write %s: %s\n", option, path,
                      strerror(errno));
        return 0;
    }
    return file == NULL || fclose(file) == 0;
}

static int open_bits(options *o)
{
    o->bits_file = o->bits != NULL ? fopen(o->bits, "w") : NULL;
    if (o->bits != NULL && o->bits_file == NULL) {
        (void)fprintf(stderr, "burn-conformance: cannot write %s\n", o->bits);
        return 0;
    }
    return 1;
}

static int close_bits(const options *o, const conf_report *report)
{
    if (o->bits_file == NULL) {
        return 1;
    }
    conf_end_bits(o->bits_file, report->n_cases);
    return fclose(o->bits_file) == 0;
}

int main(int argc, char **argv)
{
    options o;
    conf_runner runner;
    conf_report report;
    burn_err err = BURN_ERR_INIT;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        (void)printf("%s", usage_text);
        return 0;
    }
    int status = parse(argc, argv, &o);
    if (status != 0) {
        return status;
    }
    if (!o.unguarded && o.bits == NULL) { /* modes are compared as they run in applications */
        (void)burn_option_set("CHECK", "bounds", &err);
    }
    if (burn_option_set("ROW", o.row, &err) != BURN_OK) {
        return bad_option("--row", err.text);
    }
    int definitions = o.list || (o.device != NULL && strcmp(o.device, "eval") == 0);
    int32_t code =
        definitions ? conf_eval_runner(&runner, &err) : conf_device_runner(o.device, &runner, &err);
    if (code != BURN_OK) {
        (void)fprintf(stderr, "burn-conformance: %s\n", err.text);
        return 2;
    }
    if (!check_row(&o, &runner, definitions) || !can_write("--json", o.json) ||
        !can_write("--junit", o.junit) || !open_bits(&o)) {
        return 2;
    }
    memset(&report, 0, sizeof(report));
    report.device = runner.name;
    report.seed = o.seed;
    report.digest = UINT64_C(14695981039346656037);
    report.verbose = o.verbose;
    report.extension = o.extension;
    report.row = o.row;
    report.claims = o.claims;
    report.op = o.op;
    report.sample = o.sample;
    report.dtype = o.dtype;
    report.smoke = o.smoke;
    report.unguarded = o.unguarded;
    report.begun = seconds();
    conf_report_about(&report, definitions ? NULL : (burn_device *)runner.context);
    conf_crash_install();
    run_ops(&o, &report, &runner);
    int written = run_device_checks(&o, &report, &runner, argc, argv) && close_bits(&o, &report);
    status = finish(&o, &report);
    runner.reset(&runner);
    burn_shutdown();
    return written ? status : 2;
}
