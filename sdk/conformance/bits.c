/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * bits.c - what a run with --bits writes: one line with a hash for everything whose bits must not
 * depend on how work is deferred or on the number of threads.
 *
 * Each case by itself, three times over; in a chain, so that a window has several ops in it, before
 * and behind this one; its gradients; and each sample in one dtype at sizes that are large enough
 * to be shared out among threads; of the one that says most, each size in turn, in different
 * dtypes, and all of them, not dense. What is compared with what is in modes.c. To add something: a
 * function that runs it, and a line of conf_write_bits.
 */
#include "conformance.h"

#include <burn/build.h>
#include <math.h>

/* How large: what backends keep on one thread is smaller than each of these. */
static const conf_extent of_main = {INT64_C(1) << 18, 1e8};
static const conf_extent of_others = {INT64_C(1) << 17, 4e7};
static const conf_extent of_smoke = {INT64_C(1) << 16, 2e7};

enum { ROUNDS = 3, UPDATES = 3, FORMS = CONF_FORMS };

static uint64_t mix(uint64_t hash, uint64_t number)
{
    return (hash ^ number) * UINT64_C(1099511628211);
}

static uint64_t hash_values(conf_arena *arena, uint64_t hash, const conf_value *values, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) {
        hash = mix(hash, values[j].meta.kind);
        if (values[j].meta.kind == BURN_ABSENT) {
            continue;
        }
        const unsigned char *bytes = conf_bytes(arena, &values[j]);
        uint64_t size = values[j].n * burn_element_size(values[j].meta.dtype);
        uint64_t width = burn_element_size(values[j].meta.dtype);
        for (uint64_t i = 0; i < size; i++) {
            /* All NaNs are one: nobody promises their sign and payload. */
            int is_nan = values[j].f != NULL && isnan(values[j].f[i / width]);
            hash = mix(hash, is_nan ? 256 : bytes[i]);
        }
    }
    return hash;
}

/* What was run, how it ended, and the bits of what it gave. */
typedef struct line {
    FILE *file;
    conf_runner *runner;
    const char *what;
    uint64_t hash;
    int32_t code;
} line;

static line begin_line(FILE *file, conf_runner *runner, const char *what)
{
    line l = {file, runner, what, UINT64_C(14695981039346656037), BURN_OK};
    return l;
}

static void end_line(const line *l, const conf_case *c)
{
    (void)fprintf(l->file, "%s %s %u %u %s %d %016llx\n", c->def->name, burn_element_name(c->dtype),
                  (unsigned)c->sample_index, (unsigned)c->variant, l->what, (int)l->code,
                  l->code == BURN_OK ? (unsigned long long)l->hash : 0ULL);
    l->runner->reset(l->runner);
}

static void put_values(line *l, const conf_case *c, const conf_value *values, uint32_t n)
{
    if (l->code == BURN_OK) {
        l->hash = hash_values(c->arena, l->hash, values, n);
    }
}

/* ---- what is run ----------------------------------------------------------------------------- */

static void run_alone(line *l, const conf_case *c)
{
    conf_value out[CONF_MAX_OUT];
    burn_err err = BURN_ERR_INIT;
    memset(out, 0, sizeof(out));
    l->code = conf_run(l->runner, c, out, &err);
    put_values(l, c, out, c->n_out);
}

/* Two ops after which a value is what it was, short of overflow. */
static burn_value *before(const burn_builder *b, burn_value *x, uint8_t dtype)
{
    return conf_is_float(dtype) ? burn_b_mul_num(b, burn_b_add(b, x, x), 0.5)
                                : burn_b_bit_not(b, burn_b_bit_not(b, x));
}

/* What reads both results, and whose bits tell whether a product and a sum were rounded apart. */
static burn_value *behind(const burn_builder *b, burn_value *y, burn_value *z)
{
    if (!conf_is_float(burn_b_meta(b, y).dtype)) {
        return burn_b_equal(b, burn_b_bit_not(b, y), z);
    }
    return burn_b_add(b, burn_b_add_num(b, burn_b_mul_num(b, y, 1.7), 0.3), z);
}

static void read_all(line *l, const conf_case *c, burn_value *const *values)
{
    conf_value out[CONF_MAX_OUT];
    burn_err err = BURN_ERR_INIT;
    memset(out, 0, sizeof(out));
    for (uint32_t j = 0; j < c->n_out && l->code == BURN_OK; j++) {
        l->code = l->runner->read(l->runner, values[j], c->arena, &out[j], &err);
    }
    put_values(l, c, out, c->n_out);
}

/* The op twice, with ops before and behind it, and nothing is read until all are called. */
static void run_chained(line *l, const conf_case *c)
{
    conf_value state[CONF_MAX_OUT];
    burn_value *in[CONF_MAX_IN] = {NULL};
    burn_value *worked[CONF_MAX_IN] = {NULL};
    burn_value *first[CONF_MAX_OUT] = {NULL};
    burn_value *second[CONF_MAX_OUT] = {NULL};
    burn_value *last[CONF_MAX_OUT] = {NULL};
    burn_err err = BURN_ERR_INIT;
    const burn_builder *b = &l->runner->builder;
    if (c->def->effect == BURN_EFFECT_STATE) {
        memset(state, 0, sizeof(state));
        l->code = l->runner->update(l->runner, c, UPDATES, state, &err);
        put_values(l, c, state, c->n_out);
        return;
    }
    for (uint32_t i = 0; i < c->n_in; i++) {
        int is_tensor = c->in[i].meta.kind == BURN_TENSOR;
        in[i] = conf_make_in(l->runner, &c->in[i], c->layout, i);
        worked[i] = is_tensor ? before(b, in[i], c->in[i].meta.dtype) : in[i];
    }
    (void)b->emit(b->ctx, c->def->id, c->sample.attrs, c->sample.attrs_size, in, c->n_in, first,
                  c->n_out);
    (void)b->emit(b->ctx, c->def->id, c->sample.attrs, c->sample.attrs_size, worked, c->n_in,
                  second, c->n_out);
    for (uint32_t j = 0; j < c->n_out; j++) {
        last[j] = behind(b, second[j], first[j]);
    }
    read_all(l, c, last);
    read_all(l, c, first);
}

static void run_gradient(line *l, conf_case *c)
{
    uint8_t wanted[CONF_MAX_IN] = {0};
    conf_value cotangents[CONF_MAX_OUT];
    conf_value grads[CONF_MAX_IN];
    burn_err err = BURN_ERR_INIT;
    memset(grads, 0, sizeof(grads));
    if (conf_gradient_prepare(c, wanted, cotangents)) {
        l->code = l->runner->gradient(l->runner, c, cotangents, wanted, grads, &err);
        put_values(l, c, grads, c->n_in);
    }
}

static int has_gradient(conf_case *c)
{
    uint8_t wanted[CONF_MAX_IN] = {0};
    conf_value cotangents[CONF_MAX_OUT];
    return conf_gradient_prepare(c, wanted, cotangents);
}

/* ---- sizes that are shared out --------------------------------------------------------------- */

/* Does this dtype try the form? The first and the last are tried in the main one, those between in
 * the next ones. */
static int is_tried(const conf_case *c, uint32_t form)
{
    uint32_t n = conf_variants(c->def, &c->sample);
    return c->variant == (conf_main_variant(c, n) + form % FORMS) % n;
}

/* Form FORMS are all sizes; 0: the case has no such form. */
static int write_form(FILE *file, conf_runner *runner, const conf_case *c, uint32_t form,
                      const conf_extent *most)
{
    static conf_case large; /* large */
    static const char *const names[FORMS + 1] = {"large_1st", "large_2nd", "large_3rd", "large_4th",
                                                 "large_all"};
    int64_t found[BURN_MAX_RANK];
    uint32_t n = conf_distinct_sizes(c, found);
    conf_arena arena = {NULL};
    if ((form < FORMS && form >= n) || !conf_enlarge(&large, c, form < FORMS ? form : n, most)) {
        return 0;
    }
    large.arena = &arena;
    conf_case_inputs(&large);
    line l = begin_line(file, runner, names[form]);
    run_chained(&l, &large);
    runner->reset(runner);
    if (l.code == BURN_OK && has_gradient(&large)) {
        run_gradient(&l, &large);
    }
    end_line(&l, &large);
    conf_arena_free(&arena);
    return 1;
}

/* Of the main sample each form, the last one not dense; of the others one. */
static void write_large(FILE *file, conf_runner *runner, conf_case *c, int smoke)
{
    int is_main = c->sample_index == conf_main_sample(c->def);
    const conf_extent *most = smoke ? &of_smoke : is_main ? &of_main : &of_others;
    int enough = smoke && !is_main;
    for (uint32_t k = 0; k <= FORMS && !enough; k++) {
        uint32_t form = is_main ? k : FORMS - k;
        c->layout = is_main && form == FORMS ? CONF_MIXED : CONF_CONTIGUOUS;
        int written = is_tried(c, is_main ? form : 0) && write_form(file, runner, c, form, most);
        enough = written && (smoke || !is_main);
    }
    c->layout = CONF_CONTIGUOUS;
}

/* ---- all of it ------------------------------------------------------------------------------- */

void conf_write_bits(FILE *file, conf_runner *runner, conf_case *c, int smoke)
{
    /* With window auto the first round learns, the second waits, the third has a plan. */
    line alone = begin_line(file, runner, "alone");
    line chained = begin_line(file, runner, "chained");
    for (int round = 0; round < ROUNDS; round++) {
        alone = begin_line(file, runner, alone.what);
        run_alone(&alone, c);
        runner->reset(runner);
    }
    end_line(&alone, c);
    for (int round = 0; round < ROUNDS; round++) {
        chained = begin_line(file, runner, chained.what);
        run_chained(&chained, c);
        runner->reset(runner);
    }
    end_line(&chained, c);
    if (has_gradient(c)) {
        line l = begin_line(file, runner, "gradient");
        run_gradient(&l, c);
        end_line(&l, c);
    }
    write_large(file, runner, c, smoke);
}

void conf_end_bits(FILE *file, uint64_t n_cases)
{
    (void)fprintf(file, "end %llu\n", (unsigned long long)n_cases);
}
