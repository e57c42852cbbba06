/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * together.c - updates that run as one launch (burn.many/1): the bits of updates one by one, also
 * when the operand of one of them has failed, which is then left out.
 *
 * The calls are the op's samples over and over, each with its own numbers and, in turn, its own
 * sizes, so that a kernel that mixes up calls, sizes, attributes or scalars gives other bits. They
 * run in a replay, which plans in every mode. Where a backend has no such kernel there is nothing
 * to compare, and no result.
 */
#include "conformance.h"

/* Sizes that take the place of a sample's first one, in turn; 0: it stays. */
static const int64_t sizes[] = {0, 1, 17, 0, 1025, 3};

enum { N_SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* One set of calls, with what they give one by one. */
typedef struct calls {
    conf_case cases[CONF_TOGETHER];
    conf_value alone[CONF_TOGETHER][CONF_MAX_OUT];
    conf_value got[CONF_TOGETHER][CONF_MAX_OUT];
    int32_t codes[CONF_TOGETHER];
} calls;

static int fits(const conf_case *c)
{
    burn_meta out[CONF_MAX_OUT];
    burn_err err = BURN_ERR_INIT;
    return conf_infer(c->def, c->sample.attrs, c->sample.attrs_size, c->in, c->n_in, out, c->n_out,
                      &err) == BURN_OK;
}

/* Sample i in the dtypes of `like`; 0: there is none, or it is meant to fail or has other ones. */
static int take_sample(conf_case *to, const conf_case *like, uint32_t i)
{
    memset(to, 0, sizeof(*to));
    to->def = like->def;
    to->arena = like->arena;
    to->sample_index = i;
    to->sample.struct_size = (uint32_t)sizeof(to->sample);
    if (to->def->samples(i, &to->sample) != BURN_OK) {
        return 0;
    }
    conf_case_dtypes(to, like->variant);
    return (to->sample.flags & BURN_SAMPLE_ERROR) == 0 && to->dtype == like->dtype;
}

static uint32_t count_samples(const conf_case *like)
{
    static burn_sample sample; /* large */
    uint32_t n = 0;
    do {
        memset(&sample, 0, sizeof(sample));
        sample.struct_size = (uint32_t)sizeof(sample);
    } while (like->def->samples(n, &sample) == BURN_OK && ++n < 64);
    return n;
}

static void make_calls(const conf_case *like, calls *all)
{
    uint32_t n = count_samples(like);
    uint32_t at = 0;
    for (uint32_t k = 0; k < CONF_TOGETHER; k++) {
        conf_case *c = &all->cases[k];
        /* The first and the last are those that are forgotten easily: never an empty sample. */
        at = k == 0 || k + 1 == CONF_TOGETHER ? like->sample_index : at + 1;
        while (!take_sample(c, like, at % n)) {
            at++; /* that of `like` is among them */
        }
        conf_case kept = *c;
        int64_t from = conf_first_size(c);
        if (sizes[k % N_SIZES] > 0 && from > 1) {
            conf_resize(c, from, sizes[k % N_SIZES]);
        }
        if (!fits(c)) {
            *c = kept;
        }
        c->seed = like->seed + k;
        conf_case_inputs(c);
    }
}

/* `bad` < CONF_TOGETHER: that call was to fail, the others not. */
static void compare(conf_report *report, const conf_case *c, const calls *all, uint32_t bad,
                    uint32_t launches)
{
    const char *detail = bad < CONF_TOGETHER ? "but for one" : "";
    for (uint32_t k = 0; k < CONF_TOGETHER; k++) {
        if ((all->codes[k] != BURN_OK) != (k == bad)) {
            conf_result(report, c, "together", detail, CONF_FAIL,
                        "update %u of %d ended with %d (%s)", (unsigned)k, CONF_TOGETHER,
                        (int)all->codes[k], burn_status_name(all->codes[k]));
            return;
        }
        for (uint32_t j = 0; j < all->cases[k].n_out && k != bad; j++) {
            if (!conf_same_bits(c->arena, &all->got[k][j], &all->alone[k][j])) {
                conf_result(report, c, "together", detail, CONF_FAIL,
                            "update %u of %d, sample %u: output %u has other bits than by itself",
                            (unsigned)k, CONF_TOGETHER, (unsigned)all->cases[k].sample_index,
                            (unsigned)j);
                return;
            }
        }
    }
    conf_result(report, c, "together", detail, CONF_PASS, "%d updates in %u launches",
                CONF_TOGETHER, (unsigned)launches);
}

/* A call in the middle that has elements, so that they can fail; CONF_TOGETHER: there is none. */
static uint32_t choose_bad(const calls *all)
{
    uint32_t bad = CONF_TOGETHER / 2;
    while (bad < CONF_TOGETHER && conf_count(&all->cases[bad].in[0].meta) == 0) {
        bad++;
    }
    return bad;
}

void conf_check_together(conf_report *report, conf_runner *runner, conf_case *c)
{
    static calls all; /* large */
    burn_err err = BURN_ERR_INIT;
    uint32_t launches = 0;
    if (c->def->effect != BURN_EFFECT_STATE || runner->update_together == NULL) {
        return;
    }
    memset(&all, 0, sizeof(all));
    make_calls(c, &all);
    for (uint32_t k = 0; k < CONF_TOGETHER; k++) {
        int32_t code = runner->update(runner, &all.cases[k], 1, all.alone[k], &err);
        if (code != BURN_OK) {
            conf_failed(report, c, "together", "one by one", code, err.text);
            return;
        }
    }
    for (uint32_t way = 0; way < 2; way++) {
        uint32_t bad = way == 0 ? CONF_TOGETHER : choose_bad(&all);
        memset(all.got, 0, sizeof(all.got));
        int32_t code = runner->update_together(runner, all.cases, bad, all.got, all.codes,
                                               &launches, &err);
        runner->reset(runner);
        if (code == BURN_E_END || (way == 1 && bad == CONF_TOGETHER)) {
            return;
        }
        if (code != BURN_OK) {
            conf_failed(report, c, "together", "", code, err.text);
            return;
        }
        compare(report, c, &all, bad, launches);
    }
}
