/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_checks.c - runners that answer wrongly, and the check that must see each of them.
 *
 * What no plugin can do wrong, since the core does it for all of them (dtypes that are tied,
 * operands that are missing), and what few ops have (several results), is tried with runners: the
 * one of `eval`, which is right, but for one thing. A check that a healthy runner fails is no
 * proof, so each is also tried with that. To add a lie: a field of `lies`, what it changes in the
 * functions below, and a test.
 */
#include "conformance/conformance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct lie {
    int takes_all;     /* calls that break a rule succeed */
    int says_less;     /* texts of failures are empty */
    int other_code;    /* of failures */
    int wrong_last;    /* the last result, where there are several, is wrong, */
    int from_launch;   /* from that launch on, */
    int when_moved;    /* and after an operand was moved */
    int wrong_parts;   /* the third value that is read is wrong */
    int when_kept;     /* the last result is wrong in a replay */
    int when_together; /* ... of the last update, of those that run as one */
} lie;

static conf_runner right;
static lie told;
static int launches;
static int moved;
static int n_read;
static burn_value *lasts[64]; /* results that are read with another value */
static uint32_t n_lasts;

/* ---- the runner ------------------------------------------------------------------------------ */

static int is_wrong_now(void)
{
    return told.wrong_last && launches >= told.from_launch && (moved || !told.when_moved);
}

static int32_t emit(void *ctx, uint64_t op, const void *attrs, uint32_t attrs_size,
                    burn_value *const *in, uint32_t n_in, burn_value **out, uint32_t n_out)
{
    int32_t code = right.builder.emit(ctx, op, attrs, attrs_size, in, n_in, out, n_out);
    launches++;
    if (n_out > 1 && is_wrong_now()) {
        lasts[n_lasts++ % 64] = out[n_out - 1];
    }
    return code;
}

static void spoil(conf_value *value)
{
    for (uint64_t k = 0; k < value->n; k++) {
        conf_set(value, k, conf_get(value, k) + 1.0);
    }
}

/* A copy that outlives the runner's memory, and that may be changed. */
static void keep(conf_arena *arena, conf_value *value)
{
    conf_value copy = *value;
    if (value->meta.kind != BURN_ABSENT) {
        conf_value_alloc(arena, &copy);
        for (uint64_t k = 0; k < copy.n; k++) {
            conf_move(&copy, k, value, k);
        }
        *value = copy;
    }
}

static int32_t read_value(conf_runner *runner, burn_value *value, conf_arena *arena,
                          conf_value *out, burn_err *err)
{
    int32_t code = right.read(runner, value, arena, out, err);
    if (code == BURN_OK) {
        keep(arena, out);
    }
    for (uint32_t i = 0; i < n_lasts && i < 64 && code == BURN_OK; i++) {
        if (lasts[i] == value) {
            spoil(out);
        }
    }
    if (told.wrong_parts && ++n_read == 3) {
        spoil(out);
    }
    if (code == BURN_OK) {
        return BURN_OK;
    }
    if (told.says_less) {
        err->text[0] = '\0';
    }
    if (told.takes_all) {
        return BURN_OK;
    }
    return told.other_code ? BURN_E_INTERNAL : code;
}

/* The memory of values is used again. */
static void reset(conf_runner *runner)
{
    n_lasts = 0;
    right.reset(runner);
}

static burn_value *move(conf_runner *runner, burn_value *value, burn_value **twin)
{
    (void)runner;
    moved = 1;
    if (twin != NULL) {
        *twin = value;
    }
    return value;
}

static int32_t update(conf_runner *runner, const conf_case *c, uint32_t times, conf_value *out,
                      burn_err *err)
{
    int32_t code = right.update(runner, c, times, out, err);
    if (is_wrong_now() && code == BURN_OK) {
        spoil(&out[c->n_out - 1]);
    }
    return code;
}

static int32_t update_together(conf_runner *runner, const conf_case *cases, uint32_t bad,
                               conf_value (*out)[CONF_MAX_OUT], int32_t *codes,
                               uint32_t *out_launches, burn_err *err)
{
    *out_launches = 1;
    for (uint32_t k = 0; k < CONF_TOGETHER; k++) {
        codes[k] = k == bad ? BURN_E_DATA : right.update(runner, &cases[k], 1, out[k], err);
    }
    if (told.when_together) {
        spoil(&out[CONF_TOGETHER - 1][cases[0].n_out - 1]);
    }
    return BURN_OK;
}

static int32_t replay(conf_runner *runner, const conf_case *kept, const conf_case *c,
                      conf_value *out, burn_err *err)
{
    (void)kept;
    int32_t code = conf_run(runner, c, out, err);
    if (told.when_kept && code == BURN_OK) {
        spoil(&out[c->n_out - 1]);
    }
    return code;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* The op's main sample in f32, or the first dtype. */
static void begin_case(conf_case *c, conf_arena *arena, const char *op)
{
    burn_err err = BURN_ERR_INIT;
    uint32_t variant = 0;
    memset(c, 0, sizeof(*c));
    c->def = burn_op_find(op);
    assert_non_null(c->def);
    c->arena = arena;
    c->sample_index = conf_main_sample(c->def);
    c->sample.struct_size = (uint32_t)sizeof(c->sample);
    assert_int_equal(c->def->samples(c->sample_index, &c->sample), BURN_OK);
    uint32_t n = conf_variants(c->def, &c->sample);
    do {
        conf_case_dtypes(c, variant);
    } while (c->dtype != BURN_F32 && ++variant < n);
    conf_case_inputs(c);
    c->support = BURN_SUPPORT_NATIVE;
    assert_int_equal(conf_evaluate(arena, c->def, c->sample.attrs, c->sample.attrs_size, c->in,
                                   c->n_in, c->out, c->n_out, &err),
                     BURN_OK);
}

typedef void (*check_fn)(conf_report *report, conf_runner *runner, conf_case *c);

/* What the results of a check are, as a report has them. */
static char results[1 << 20];

static void keep_results(const conf_report *report)
{
    char path[] = "/tmp/burn-checks-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_true(conf_write_json(report, path));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    results[fread(results, 1, sizeof(results) - 1, file)] = '\0';
    (void)fclose(file);
    (void)unlink(path);
}

enum { EITHER = -1 };

static uint64_t n_failed;

/* One check of an op by the lying runner: how many results it has, all of one outcome. */
static uint64_t run_check(check_fn check, const char *op, const lie *l, int outcome)
{
    static conf_case c; /* large */
    conf_arena arena = {NULL};
    conf_runner runner;
    conf_report report;
    burn_err err = BURN_ERR_INIT;
    memset(&report, 0, sizeof(report));
    report.device = "liar";
    assert_int_equal(conf_eval_runner(&right, &err), BURN_OK);
    assert_int_equal(conf_eval_runner(&runner, &err), BURN_OK); /* its builder points into it */
    runner.builder.emit = emit;
    runner.read = read_value;
    runner.move = move;
    runner.update = update;
    runner.update_together = update_together;
    runner.replay = replay;
    runner.reset = reset;
    begin_case(&c, &arena, op);
    told = *l;
    launches = 0;
    moved = 0;
    n_read = 0;
    n_lasts = 0;
    check(&report, &runner, &c);
    runner.reset(&runner);
    keep_results(&report);
    uint64_t n = report.n_passed + report.n_failed;
    n_failed = report.n_failed;
    if (outcome != EITHER && n != (outcome == CONF_FAIL ? report.n_failed : report.n_passed)) {
        fail_msg("%s: %s", op, results);
    }
    conf_arena_free(&arena);
    conf_report_free(&report);
    return n;
}

static const lie truth;

/* ---- tests ----------------------------------------------------------------------------------- */

/* Each rule of refuse.c, with an op that has it. */
static void rules_of_operands(void **state)
{
    (void)state;
    static const char *const rules[][2] = {
        {"add", "refuse dtype"},   {"add", "refuse tied dtype"}, {"matmul", "refuse tied dtype"},
        {"add", "refuse missing"}, {"sum", "refuse scalar"},     {"add", "refuse count"},
        {"matmul", "refuse size"}, {"where", "refuse tied dtype"}, {"fill", "refuse tensor"},
    };
    const lie liars[] = {{.takes_all = 1}, {.says_less = 1}, {.other_code = 1}};
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        (void)run_check(conf_check_refusals, rules[i][0], &truth, CONF_PASS);
        for (size_t k = 0; k < sizeof(liars) / sizeof(liars[0]); k++) {
            char wanted[80];
            (void)snprintf(wanted, sizeof(wanted), "\"check\": \"%s\"", rules[i][1]);
            (void)run_check(conf_check_refusals, rules[i][0], &liars[k], CONF_FAIL);
            if (strstr(results, wanted) == NULL) {
                fail_msg("%s of %s was not tried: %s", rules[i][1], rules[i][0], results);
            }
        }
    }
}

/* A check that looks at the first result alone would pass each of these. */
static void all_results(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        check_fn check;
        const char *op;
        lie l;
    } rows[] = {
        {"forward", conf_check_forward, "attention_grad", {.wrong_last = 1}},
        {"forward of updates", conf_check_forward, "adam_step", {.wrong_last = 1}},
        {"same operand", conf_check_same_operand, "batch_norm_grad", {.wrong_last = 1}},
        {"same operand", conf_check_same_operand, "layer_norm_grad", {.wrong_last = 1}},
        {"repeat", conf_check_repeat, "attention_grad", {.wrong_last = 1, .from_launch = 2}},
        {"replay", conf_check_replay, "attention_grad", {.when_kept = 1}},
        {"moved", conf_check_moved, "attention_grad", {.wrong_last = 1, .when_moved = 1}},
        {"together", conf_check_together, "adam_step", {.when_together = 1}},
        {"decompose", conf_check_decompose, "attention_grad", {.wrong_parts = 1}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t n = run_check(rows[i].check, rows[i].op, &truth, CONF_PASS);
        if (n == 0 || run_check(rows[i].check, rows[i].op, &rows[i].l, CONF_FAIL) != n) {
            fail_msg("%s of %s: no results, or others", rows[i].name, rows[i].op);
        }
        assert_non_null(strstr(results, "output "));
        assert_null(strstr(results, "output 0"));
    }
}

/* The sweep of an op with several results: sizes that are wrong in the last one. */
static void all_results_of_a_sweep(void **state)
{
    (void)state;
    const lie l = {.wrong_last = 1};
    uint64_t n = run_check(conf_check_sweep, "layer_norm_grad", &truth, CONF_PASS);
    (void)run_check(conf_check_sweep, "layer_norm_grad", &l, EITHER);
    assert_true(n > 10);
    assert_true(n_failed > n / 2); /* nothing can be wrong in those without elements */
}

/* Sizes that only an attribute has are replaced, too. */
static void sizes_of_attributes(void **state)
{
    (void)state;
    static const char *const ops[] = {"fill", "arange", "random_uniform", "random_normal",
                                      "bernoulli", "expand"};
    static const int sizes[] = {0, 1, 15, 16, 17, 63, 64, 65, 127, 129, 513};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        (void)run_check(conf_check_sweep, ops[i], &truth, CONF_PASS);
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            char wanted[60];
            (void)snprintf(wanted, sizeof(wanted), "\"check\": \"sweep %d for ", sizes[k]);
            if (strstr(results, wanted) == NULL) {
                fail_msg("%s: no %s in %s", ops[i], wanted, results);
            }
        }
    }
}

/* Large cases have all results, too. */
static void large_cases(void **state)
{
    (void)state;
    static const char *const ops[] = {"layer_norm_grad", "attention_grad", "max_pool2d"};
    const lie l = {.wrong_last = 1};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        uint64_t n = run_check(conf_check_large, ops[i], &truth, CONF_PASS);
        assert_true(n > 2);
        assert_int_equal(run_check(conf_check_large, ops[i], &l, CONF_FAIL), n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_of_operands),
        cmocka_unit_test(all_results),
        cmocka_unit_test(all_results_of_a_sweep),
        cmocka_unit_test(sizes_of_attributes),
        cmocka_unit_test(large_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
