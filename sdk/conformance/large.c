/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * large.c - values at sizes where kernels change their way: shared out among threads, cut into
 * blocks and tiles, copied into other layouts first.
 *
 * The result is compared with `eval`, which is slow: so the work of a case is limited, and a case
 * that is larger is made smaller. The sample that says most is tried in every dtype, each size of
 * it large by itself and all of them; the others in one dtype. Not in a smoke run. How much nearer
 * a sum must be than its length allows: see growth.
 */
#include "conformance.h"

#include <math.h>

static const conf_extent of_main = {INT64_C(1) << 17, 4e7};
static const conf_extent of_others = {INT64_C(1) << 16, 4e7};
/* Of what is reduced to one number: long rows are cut into parts that are large themselves. */
static const conf_extent of_one = {INT64_C(1) << 20, 4e7};

static int64_t elements_of(const conf_case *c)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < c->n_in; i++) {
        int64_t own = c->in[i].meta.kind == BURN_TENSOR ? conf_count(&c->in[i].meta) : 0;
        n = own > n ? own : n;
    }
    return n;
}

/* Of sums of any length, in units of epsilon of the largest result: what adding up one by one needs
 * for some 100,000 numbers. */
#define MOST_TOLERANCE 256.0

/*
 * How much wider the tolerance is than that of the sample: errors of sums grow like the root of
 * their length. Half precision is added up in f32, so that only its last rounding shows. In f64
 * `eval` itself adds up one by one.
 */
static double growth(const conf_case *large, const conf_case *c, uint8_t dtype)
{
    if (c->def->fuse == BURN_FUSE_POINTWISE || c->sample.tolerance <= 0.0) {
        return 1.0;
    }
    if (dtype == BURN_F16 || dtype == BURN_BF16) {
        return 2.0;
    }
    double grown = sqrt((double)elements_of(large) / (double)elements_of(c));
    double most = dtype == BURN_F64 ? grown : MOST_TOLERANCE / c->sample.tolerance;
    return fmax(1.0, fmin(grown, most));
}

static void compare(conf_report *report, conf_runner *runner, const conf_case *large,
                    const conf_case *c, const char *detail)
{
    conf_value got[CONF_MAX_OUT];
    burn_err err = BURN_ERR_INIT;
    char text[300];
    memset(got, 0, sizeof(got));
    conf_crash_case(report, large, "large", detail);
    int32_t code = conf_run(runner, large, got, &err);
    runner->reset(runner);
    if (code == BURN_E_NO_MEMORY && large->support != BURN_SUPPORT_NATIVE) {
        conf_result(report, large, "large", detail, CONF_SKIP, "made of other ops: %s", err.text);
        return;
    }
    if (code != BURN_OK) {
        conf_failed(report, large, "large", detail, code, err.text);
        return;
    }
    for (uint32_t j = 0; j < large->n_out; j++) {
        int unread = large->def->effect == BURN_EFFECT_STATE && got[j].meta.kind == BURN_ABSENT;
        double factor = growth(large, c, large->out[j].meta.dtype);
        if (!unread && !conf_compare_large(large, j, &got[j], factor, text, sizeof(text))) {
            conf_result(report, large, "large", detail, CONF_FAIL, "%s: output %u %s",
                        conf_layout_names[large->layout], (unsigned)j, text);
            return;
        }
    }
    conf_result(report, large, "large", detail, CONF_PASS, "%s", conf_layout_names[large->layout]);
}

/* 0: the case has no such form. */
static int try_form(conf_report *report, conf_runner *runner, const conf_case *c, uint32_t form,
                    const conf_extent *most)
{
    static conf_case large; /* large */
    conf_arena arena = {NULL};
    burn_err err = BURN_ERR_INIT;
    char detail[24];
    int64_t found[BURN_MAX_RANK];
    uint32_t n = conf_distinct_sizes(c, found);
    if (form > n || !conf_enlarge(&large, c, form, most)) {
        return 0;
    }
    if (form < n) {
        (void)snprintf(detail, sizeof(detail), "size %lld", (long long)found[form]);
    } else {
        (void)snprintf(detail, sizeof(detail), "sizes");
    }
    large.arena = &arena;
    conf_case_inputs(&large);
    conf_crash_case(report, &large, "large", detail);
    int32_t code = conf_evaluate(&arena, large.def, large.sample.attrs, large.sample.attrs_size,
                                 large.in, large.n_in, large.out, large.n_out, &err);
    if (code == BURN_OK) {
        compare(report, runner, &large, c, detail);
        if (form == n && conf_layout_applies(&large, CONF_SLICED)) {
            large.layout = conf_layout_applies(&large, CONF_MIXED) ? CONF_MIXED : CONF_SLICED;
            compare(report, runner, &large, c, detail);
        }
    }
    conf_arena_free(&arena);
    return code == BURN_OK;
}

/* The first sample of its op, of those tried, that makes one number of many. */
static int is_first_of_one(const conf_case *c)
{
    static const burn_op_def *last;
    static uint32_t first;
    int makes_one = c->n_out == 1 && c->out[0].n == 1 && elements_of(c) > 1 &&
                    c->def->effect != BURN_EFFECT_STATE;
    if (makes_one && (last != c->def || c->sample_index < first)) {
        last = c->def;
        first = c->sample_index;
    }
    return makes_one && c->sample_index == first;
}

/* Where numbers are added up, what is infinite, or the largest that there is, makes the result
 * depend on their order. */
static int is_special(const conf_case *c)
{
    int special = 0;
    for (uint32_t i = 0; i < c->n_in && c->def->fuse != BURN_FUSE_POINTWISE; i++) {
        const burn_sample_operand *how = &c->sample.in[i];
        uint64_t n = how->fill == BURN_FILL_VALUES ? how->n_values : 0;
        special |= how->fill == BURN_FILL_SPECIAL;
        for (uint64_t k = 0; k < n; k++) {
            special |= !(fabs(how->values[k]) < 1e30);
        }
    }
    return special;
}

void conf_check_large(conf_report *report, conf_runner *runner, conf_case *c)
{
    int64_t found[BURN_MAX_RANK];
    uint32_t n = conf_distinct_sizes(c, found);
    int is_one = is_first_of_one(c);
    int is_main = c->sample_index == conf_main_sample(c->def);
    int in_full = c->variant == conf_main_variant(c, conf_variants(c->def, &c->sample));
    const conf_extent *most = is_one ? &of_one : is_main ? &of_main : &of_others;
    if ((!is_main && !is_one && !in_full) || is_special(c)) {
        return;
    }
    int tried = try_form(report, runner, c, n, most);
    for (uint32_t form = 0; form < n && form < CONF_FORMS; form++) {
        int is_turn = is_main ? in_full || form == c->variant % n : !tried;
        if (is_turn) {
            tried |= try_form(report, runner, c, form, most);
        }
    }
}
