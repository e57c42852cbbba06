/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sweep.c - the sizes and values at which kernels go wrong: around vector widths and tiles, one,
 * none; NaN, infinities, zeros of both signs, subnormals, extremes of integers.
 *
 * Derived from a sample, so that every op is swept, an extension's too: each size that occurs in it
 * is replaced, wherever it occurs, by each size of the list; operands with ordinary values get
 * special ones. What the op's own rules refuse then is left out. A sweep compares with `eval`,
 * contiguous and sliced.
 */
#include "conformance.h"

static const int64_t sizes[] = {0, 1, 15, 16, 17, 63, 64, 65, 127, 129, 513};

/* A case larger than this says nothing new, and `eval` is slow. */
#define MAX_ELEMENTS (1 << 16)
#define MAX_WORK     2e6

static int is_small(const conf_case *c)
{
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (c->in[i].meta.kind != BURN_ABSENT && conf_count(&c->in[i].meta) > MAX_ELEMENTS) {
            return 0;
        }
    }
    burn_meta out[CONF_MAX_OUT];
    double flops = 0.0;
    if (c->def->flops == NULL) {
        return 1;
    }
    int32_t code = conf_work(c, out, &flops);
    if (code != BURN_OK) {
        return code == BURN_E_INTERNAL; /* a wrong answer is tried, so that it is reported */
    }
    return flops <= MAX_WORK;
}

static int any_output_is_large(const conf_case *c)
{
    for (uint32_t j = 0; j < c->n_out; j++) {
        if (c->out[j].n > MAX_ELEMENTS) {
            return 1;
        }
    }
    return 0;
}

/* `factor`: how much longer sums may be than those that the sample's tolerance is meant for. */
static void compare(conf_report *report, conf_runner *runner, const conf_case *c, double factor,
                    const char *detail)
{
    conf_value got[CONF_MAX_OUT];
    burn_err err = BURN_ERR_INIT;
    char text[300];
    memset(got, 0, sizeof(got));
    int32_t code = conf_run(runner, c, got, &err);
    runner->reset(runner);
    if (code != BURN_OK) {
        conf_failed(report, c, "sweep", detail, code, err.text);
        return;
    }
    for (uint32_t j = 0; j < c->n_out; j++) {
        int unread = c->def->effect == BURN_EFFECT_STATE && got[j].meta.kind == BURN_ABSENT;
        if (!unread && !conf_compare_output(c, j, &got[j], factor, text, sizeof(text))) {
            conf_result(report, c, "sweep", detail, CONF_FAIL, "%s: output %u %s",
                        conf_layout_names[c->layout], (unsigned)j, text);
            return;
        }
    }
    conf_result(report, c, "sweep", detail, CONF_PASS, "%s", conf_layout_names[c->layout]);
}

/* Fills, evaluates and compares; a case that the op refuses is left out, a wrong answer is not. */
static void try_case(conf_report *report, conf_runner *runner, conf_case *c, double factor,
                     const char *detail)
{
    conf_arena arena = {NULL};
    conf_arena *outer = c->arena;
    burn_err err = BURN_ERR_INIT;
    c->arena = &arena;
    conf_case_inputs(c);
    conf_crash_case(report, c, "sweep", detail);
    int32_t code = conf_evaluate(c->arena, c->def, c->sample.attrs, c->sample.attrs_size, c->in,
                                 c->n_in, c->out, c->n_out, &err);
    if (code == BURN_E_INTERNAL) {
        conf_failed(report, c, "sweep", detail, code, err.text);
    } else if (code == BURN_OK && !any_output_is_large(c)) {
        compare(report, runner, c, factor, detail);
        if (conf_layout_applies(c, CONF_SLICED)) {
            c->layout = CONF_SLICED;
            compare(report, runner, c, factor, detail);
            c->layout = CONF_CONTIGUOUS;
        }
    }
    conf_arena_free(&arena);
    c->arena = outer;
}

/* How much longer sums become with `to` for `from`; a pointwise op has none. */
static double growth(const conf_case *c, int64_t from, int64_t to)
{
    return to > from && c->def->fuse != BURN_FUSE_POINTWISE ? (double)to / (double)from : 1.0;
}

static void sweep_sizes(conf_report *report, conf_runner *runner, const conf_case *c)
{
    static conf_case swept; /* large */
    int64_t found[BURN_MAX_RANK];
    char detail[24];
    uint32_t n = conf_distinct_sizes(c, found);
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            swept = *c;
            conf_resize(&swept, found[k], sizes[s]);
            if (is_small(&swept)) {
                (void)snprintf(detail, sizeof(detail), "%lld for %lld", (long long)sizes[s],
                               (long long)found[k]);
                try_case(report, runner, &swept, growth(c, found[k], sizes[s]), detail);
            }
        }
    }
}

/* Does the operand hold ordinary numbers, so that special ones say something? */
static int takes_special(const conf_case *c, uint32_t i)
{
    uint8_t fill = c->sample.in[i].fill;
    return c->in[i].meta.kind == BURN_TENSOR &&
           (fill == BURN_FILL_NORMAL || fill == BURN_FILL_DISTINCT);
}

/* Pointwise ops alone: where numbers are added up, the order decides between inf and NaN. */
static void sweep_values(conf_report *report, conf_runner *runner, const conf_case *c)
{
    static conf_case special; /* large */
    int any = 0;
    special = *c;
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (takes_special(c, i)) {
            special.sample.in[i].fill = BURN_FILL_SPECIAL;
            any = 1;
        }
    }
    if (any && c->def->fuse == BURN_FUSE_POINTWISE) {
        /* The rest of what cancelled is multiplied by the largest numbers there are. */
        double factor = (c->sample.flags & BURN_SAMPLE_ABSOLUTE) != 0 ? 64.0 : 1.0;
        try_case(report, runner, &special, factor, "special values");
    }
}

void conf_check_sweep(conf_report *report, conf_runner *runner, conf_case *c)
{
    /* The main sample in every dtype; the others in one, since eval is slow. */
    if (c->variant == 0 || c->dtype == BURN_F32 ||
        c->sample_index == conf_main_sample(c->def)) {
        sweep_sizes(report, runner, c);
    }
    sweep_values(report, runner, c);
}
