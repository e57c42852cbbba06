/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_refusals.c - which calls are refused, judged from outside.
 *
 * Reads refusals.json (made by make_refusals.py): calls that PyTorch, or a decision of the project,
 * refuses or accepts. Each is run on a runner of burn-conformance: a device, or `eval`, which is
 * the definition alone. A refusal must name the op and one of the row's words; what is accepted
 * must run. An op without a row is a failure, unless it is in `has_no_judge`. To add a call: a line
 * in make_refusals.py.
 */
#include "attrs.h"
#include "conformance/conformance.h"

#include <burn/registry.h>
#include <stdlib.h>

typedef struct refusals {
    conf_runner runner;
    conf_arena arena;
    const burn_op_def *def;
    json_t *attrs;
    const char *what;
    uint64_t n_refused;
    uint64_t n_accepted;
    uint64_t n_skipped;
    uint64_t n_unread;
    uint64_t n_failed;
} refusals;

/* Ops that PyTorch has nothing like; test_core_fused* tries what the verifier refuses. */
static const char *const has_no_judge[] = {"fused"};

enum { REFUSED, WHAT, OPERANDS, CHANGED, WORDS };

/* ---- from a row to a case -------------------------------------------------------------------- */

static void set_all(conf_value *value, double number)
{
    for (uint64_t k = 0; k < value->n; k++) {
        conf_set(value, k, number);
    }
}

/* "f32[2,3]=0.5" or "f64:0.5"; 0 when it is neither. */
static int read_operand(refusals *r, const char *text, conf_value *out)
{
    char name[16] = "";
    size_t length = strcspn(text, "[:");
    const char *rest = text + length;
    memset(out, 0, sizeof(*out));
    (void)snprintf(name, sizeof(name), "%.*s", (int)length, text);
    out->meta.dtype = burn_dtype_from_name(name);
    if (*rest == ':') {
        out->meta.kind = BURN_IMMEDIATE;
        conf_value_alloc(&r->arena, out);
        conf_set(out, 0, strtod(rest + 1, NULL));
        conf_tell_number(out);
        return out->meta.dtype != BURN_DTYPE_NONE;
    }
    out->meta.kind = BURN_TENSOR;
    while (*rest != '\0' && *rest != ']') {
        char *end = NULL;
        int64_t size = strtoll(rest + 1, &end, 10);
        if (end == rest + 1) {
            break;
        }
        out->meta.dims[out->meta.rank++] = size;
        rest = end;
    }
    const char *fill = strchr(text, '=');
    conf_value_alloc(&r->arena, out);
    set_all(out, fill != NULL ? strtod(fill + 1, NULL) : 1.0);
    return out->meta.dtype != BURN_DTYPE_NONE;
}

static int read_case(refusals *r, const json_t *row, conf_case *c)
{
    const json_t *operands = json_array_get(row, OPERANDS);
    json_t *attrs = json_copy(r->attrs);
    memset(c, 0, sizeof(*c));
    c->def = r->def;
    c->arena = &r->arena;
    c->n_in = (uint32_t)json_array_size(operands);
    c->n_out = r->def->n_out;
    c->sample.attrs_size = r->def->attrs_size;
    (void)json_object_update(attrs, json_array_get(row, CHANGED));
    int ok = c->n_in <= CONF_MAX_IN && oracle_attrs(r->def, attrs, c->sample.attrs);
    json_decref(attrs);
    for (uint32_t i = 0; i < c->n_in && ok; i++) {
        const json_t *operand = json_array_get(operands, i);
        ok = json_is_null(operand) || read_operand(r, json_string_value(operand), &c->in[i]);
    }
    return ok;
}

/* ---- judging --------------------------------------------------------------------------------- */

/* The word stands in the text by itself: "4" is not in "[14]". */
static int has_word(const char *text, const char *word)
{
    static const char inside[] = "-.0123456789";
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        char before = at > text ? at[-1] : ' ';
        char after = at[strlen(word)];
        int starts = strchr("0123456789-.", word[0]) == NULL || strchr(inside, before) == NULL;
        int ends = after == '\0' || after == '.' || strchr(inside, after) == NULL ||
                   strchr(inside, word[strlen(word) - 1]) == NULL;
        if (starts && ends) {
            return 1;
        }
    }
    return 0;
}

static int has_some_word(const json_t *row, const char *text)
{
    const json_t *words = json_array_get(row, WORDS);
    for (size_t w = 0; w < json_array_size(words); w++) {
        if (has_word(text, json_string_value(json_array_get(words, w)))) {
            return 1;
        }
    }
    return 0;
}

static void fail(refusals *r, const json_t *row, const char *why, const char *text)
{
    char *operands = json_dumps(json_array_get(row, OPERANDS), JSON_ENCODE_ANY);
    char *changed = json_dumps(json_array_get(row, CHANGED), JSON_ENCODE_ANY);
    r->n_failed++;
    (void)printf("FAIL %s: %s: %s %s: %s%s%s\n", r->def->name, r->what, operands, changed, why,
                 text[0] != '\0' ? ": " : "", text);
    free(operands);
    free(changed);
}

static void judge(refusals *r, const json_t *row)
{
    static conf_case c; /* large */
    burn_err err = BURN_ERR_INIT;
    int refused = (int)json_integer_value(json_array_get(row, REFUSED));
    r->what = json_string_value(json_array_get(row, WHAT));
    if (!read_case(r, row, &c)) {
        r->n_unread++;
        fail(r, row, "this row cannot be read", "");
        return;
    }
    int32_t code = conf_run(&r->runner, &c, c.out, &err);
    r->runner.reset(&r->runner);
    if (code == BURN_E_UNSUPPORTED) {
        r->n_skipped++; /* shapes and dtypes passed; eval and other devices tell about the rest */
    } else if (refused && code == BURN_OK) {
        fail(r, row, "accepted, must be refused", "");
    } else if (!refused && code != BURN_OK) {
        fail(r, row, "refused, must be accepted", err.text);
    } else if (refused && strstr(err.text, r->def->name) == NULL) {
        fail(r, row, "the text does not name the op", err.text);
    } else if (refused && !has_some_word(row, err.text)) {
        char *words = json_dumps(json_array_get(row, WORDS), 0);
        fail(r, row, words, err.text);
        free(words);
    }
    r->n_refused += refused ? 1 : 0;
    r->n_accepted += refused ? 0 : 1;
    conf_arena_free(&r->arena);
}

static int run_group(refusals *r, json_t *group)
{
    const json_t *rows = json_object_get(group, "rows");
    const char *op = json_string_value(json_object_get(group, "op"));
    r->def = burn_op_find(op);
    r->attrs = json_object_get(group, "attrs");
    if (r->def == NULL) {
        (void)printf("FAIL there is no op %s\n", op);
        return 0;
    }
    for (size_t k = 0; k < json_array_size(rows); k++) {
        judge(r, json_array_get(rows, k));
    }
    return 1;
}

/* Every op of the registry stands in the file. */
static void check_complete(refusals *r, const json_t *groups)
{
    for (uint32_t i = 0; i < burn_op_count(); i++) {
        const char *name = burn_op_at(i)->name;
        size_t at = 0;
        while (at < json_array_size(groups) &&
               strcmp(name, json_string_value(
                                json_object_get(json_array_get(groups, at), "op"))) != 0) {
            at++;
        }
        int known = at < json_array_size(groups);
        for (size_t k = 0; k < sizeof(has_no_judge) / sizeof(has_no_judge[0]); k++) {
            known |= strcmp(name, has_no_judge[k]) == 0;
        }
        if (!known) {
            r->n_failed++;
            (void)printf("FAIL %s has no calls in the file\n", name);
        }
    }
}

int main(int argc, char **argv)
{
    burn_err err = BURN_ERR_INIT;
    json_error_t where;
    refusals r;
    memset(&r, 0, sizeof(r));
    int all = argc < 4;
    int wrong = argc >= 4 && strcmp(argv[3], "--wrong") == 0; /* each row must fail */
    json_t *groups = argc >= 3 ? json_load_file(argv[2], 0, &where) : NULL;
    if (groups == NULL) {
        (void)fprintf(stderr, "usage: test_refusals DEVICE|eval FILE [OP|--wrong]\n");
        return 2;
    }
    int32_t code = strcmp(argv[1], "eval") == 0 ? conf_eval_runner(&r.runner, &err)
                                                : conf_device_runner(argv[1], &r.runner, &err);
    if (code != BURN_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    for (size_t g = 0; g < json_array_size(groups); g++) {
        json_t *group = json_array_get(groups, g);
        const char *op = json_string_value(json_object_get(group, "op"));
        if ((all || wrong || strcmp(argv[3], op) == 0) && !run_group(&r, group)) {
            r.n_failed++;
        }
    }
    if (all) {
        check_complete(&r, groups);
    }
    (void)printf("%llu calls to refuse, %llu to accept, %llu failures, %llu unsupported\n",
                 (unsigned long long)r.n_refused, (unsigned long long)r.n_accepted,
                 (unsigned long long)r.n_failed, (unsigned long long)r.n_skipped);
    json_decref(groups);
    burn_shutdown();
    if (wrong) {
        return r.n_failed == r.n_refused + r.n_accepted + r.n_unread ? 0 : 1;
    }
    return r.n_refused > 0 && r.n_accepted > r.n_skipped && r.n_failed == 0 ? 0 : 1;
}
