/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_oracle.c - every op on a device against what other implementations computed.
 *
 * Reads data/<op>.json (made by make_oracle.py): operands, attributes by name, outputs, gradients.
 * Ops are called by name through the registry, so a new op needs a file, not code. Ops with state
 * go through variables. A file for an op that does not exist, an op without a file or with fewer
 * than three cases, and a directory without files are failures. With --extension, the ops of that
 * extension alone are tried; with --some, ops without a file are left out.
 */
#include "attrs.h"

#include <burn/grad.h>
#include <burn/registry.h>
#include <burn_sdk/element.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_IN = 16, MAX_OUT = 8, LEAST_CASES = 3 };

typedef struct oracle {
    burn_device *device;
    const burn_op_def *def;
    const char *name; /* of the case */
    uint64_t n_cases;
    uint64_t n_failed;
    uint64_t n_skipped;
    int some; /* ops without a file are left out */
} oracle;

/* ---- reading --------------------------------------------------------------------------------- */

/* Stores a number as an element: integers exactly, whatever their size. */
static void store(void *memory, uint8_t dtype, const json_t *value)
{
    if (burn_element_class(dtype) == BURN_CLASS_FLOAT) {
        burn_store_f64(memory, dtype, oracle_number(value));
    } else {
        int64_t whole = json_is_real(value) ? (int64_t)(uint64_t)json_real_value(value)
                                            : json_integer_value(value);
        burn_store_bits(memory, dtype, (uint64_t)whole);
    }
}

static burn_tensor *make_tensor(burn_device *device, const json_t *json)
{
    uint8_t dtype = burn_dtype_from_name(json_string_value(json_object_get(json, "dtype")));
    const json_t *dims = json_object_get(json, "dims");
    const json_t *values = json_object_get(json, "values");
    int64_t shape[BURN_MAX_RANK] = {0};
    size_t size = burn_element_size(dtype);
    size_t n = json_array_size(values);
    unsigned char *bytes = calloc(n + 1, size);
    for (size_t d = 0; d < json_array_size(dims); d++) {
        shape[d] = json_integer_value(json_array_get(dims, d));
    }
    for (size_t k = 0; k < n; k++) {
        store(bytes + k * size, dtype, json_array_get(values, k));
    }
    burn_tensor *t =
        burn_tensor_from_data(device, dtype, (uint32_t)json_array_size(dims), shape, bytes);
    free(bytes);
    return t;
}

static burn_tensor *make_scalar(const json_t *json)
{
    const json_t *value = json_object_get(json, "scalar");
    uint8_t dtype = burn_dtype_from_name(json_string_value(json_object_get(json, "dtype")));
    if (burn_element_class(dtype) == BURN_CLASS_FLOAT) {
        return burn_scalar(oracle_number(value));
    }
    return dtype == BURN_U64 ? burn_scalar_u64((uint64_t)json_integer_value(value))
                             : burn_scalar_int(json_integer_value(value));
}

static burn_tensor *make_operand(burn_device *device, const json_t *json)
{
    if (json == NULL || json_is_null(json)) {
        return NULL;
    }
    return json_object_get(json, "scalar") != NULL ? make_scalar(json) : make_tensor(device, json);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static double epsilon(uint8_t dtype)
{
    return dtype == BURN_F64 ? 0x1p-52 : dtype == BURN_F32 ? 0x1p-23 : dtype == BURN_F16 ? 0x1p-10
                                                                                        : 0x1p-7;
}

static int is_close(double got, double expected, double tolerance, uint8_t dtype)
{
    if (isnan(got) || isnan(expected)) {
        return isnan(got) && isnan(expected);
    }
    if (got == expected) {
        return 1;
    }
    double allowed = tolerance * epsilon(dtype) * fmax(1.0, fabs(expected));
    return isfinite(got) && isfinite(expected) && fabs(got - expected) <= allowed;
}

static int has_shape(const burn_tensor *t, const json_t *json)
{
    const json_t *dims = json_object_get(json, "dims");
    if (burn_rank(t) != json_array_size(dims)) {
        return 0;
    }
    for (size_t d = 0; d < json_array_size(dims); d++) {
        if (burn_dim(t, (int64_t)d) != json_integer_value(json_array_get(dims, d))) {
            return 0;
        }
    }
    return 1;
}

/* Does `got` say what the file says? Writes why not. */
static int agrees(const burn_tensor *got, const json_t *json, double tolerance, char *why,
                  size_t size)
{
    uint8_t dtype = burn_dtype_from_name(json_string_value(json_object_get(json, "dtype")));
    const json_t *values = json_object_get(json, "values");
    size_t width = burn_element_size(dtype);
    size_t n = json_array_size(values);
    burn_err err = BURN_ERR_INIT;
    unsigned char expected[8] = {0};
    if (got == NULL || burn_tensor_error(got, &err) != BURN_OK) {
        (void)snprintf(why, size, "%s", got == NULL ? "is missing" : err.text);
        return 0;
    }
    if (burn_dtype_of(got) != dtype || !has_shape(got, json)) {
        (void)burn_tensor_text(got, why, size);
        return 0;
    }
    unsigned char *bytes = calloc(n + 1, width);
    int ok = burn_read(got, bytes, n * width, &err) == BURN_OK;
    (void)snprintf(why, size, "%s", err.text);
    for (size_t k = 0; ok && k < n; k++) {
        store(expected, dtype, json_array_get(values, k));
        const unsigned char *element = bytes + k * width;
        ok = burn_element_class(dtype) == BURN_CLASS_FLOAT
                 ? is_close(burn_load_f64(element, dtype), burn_load_f64(expected, dtype),
                            tolerance, dtype)
                 : memcmp(element, expected, width) == 0;
        if (!ok) {
            (void)snprintf(why, size, "element %zu is %.17g, expected %.17g", k,
                           burn_load_f64(element, dtype), burn_load_f64(expected, dtype));
        }
    }
    free(bytes);
    return ok;
}

static void fail(oracle *o, const char *what, const char *why)
{
    o->n_failed++;
    (void)printf("FAIL %s case %s: %s: %s\n", o->def->name, o->name, what, why);
}

static void compare_outputs(oracle *o, json_t *outs, burn_tensor *const *out, double tolerance)
{
    char what[32];
    char why[256];
    for (size_t j = 0; j < json_array_size(outs); j++) {
        const json_t *expected = json_array_get(outs, j);
        if (!json_is_null(expected) && !agrees(out[j], expected, tolerance, why, sizeof(why))) {
            (void)snprintf(what, sizeof(what), "output %zu", j);
            fail(o, what, why);
        }
    }
}

/* A gradient that nothing flowed to is zero. */
static int is_zero(const json_t *json)
{
    const json_t *values = json_object_get(json, "values");
    for (size_t k = 0; k < json_array_size(values); k++) {
        if (oracle_number(json_array_get(values, k)) != 0.0) {
            return 0;
        }
    }
    return 1;
}

static void compare_gradients(oracle *o, json_t *json, burn_tensor *const *in, burn_tensor *y,
                              double tolerance)
{
    json_t *grads = json_object_get(json, "grad");
    burn_err err = BURN_ERR_INIT;
    char what[32];
    char why[256];
    burn_tensor *seed = make_operand(o->device, json_object_get(json, "seed"));
    burn_grads *found = burn_backward(y, seed, 0, &err);
    if (found == NULL) {
        fail(o, "backward", err.text);
        return;
    }
    for (size_t i = 0; i < json_array_size(grads); i++) {
        const json_t *expected = json_array_get(grads, i);
        if (json_is_null(expected)) {
            continue;
        }
        burn_tensor *grad = burn_grads_get(found, in[i]);
        if (grad == NULL ? !is_zero(expected)
                         : !agrees(grad, expected, tolerance, why, sizeof(why))) {
            (void)snprintf(what, sizeof(what), "gradient %zu", i);
            fail(o, what, grad != NULL ? why : "nothing flowed there");
        }
    }
    burn_grads_free(found);
}

/* ---- running --------------------------------------------------------------------------------- */

static const burn_role *role_in(const burn_op_def *def, size_t i)
{
    size_t index = i < def->n_in ? i : def->n_in - 1u;
    const char *base = (const char *)def->roles;
    return (const burn_role *)(const void *)(base + index * def->role_stride);
}

static int32_t run_state(oracle *o, json_t *ins, const unsigned char *attrs, burn_tensor **out,
                         burn_err *err)
{
    burn_var *vars[MAX_IN] = {NULL};
    burn_tensor *in[MAX_IN] = {NULL};
    uint32_t n = (uint32_t)json_array_size(ins);
    for (uint32_t i = 0; i < n; i++) {
        burn_tensor *t = make_operand(o->device, json_array_get(ins, i));
        int state = (role_in(o->def, i)->flags & BURN_ROLE_STATE) != 0;
        if (t != NULL && state) {
            vars[i] = burn_var_create(o->device, t, err);
        } else {
            in[i] = t;
        }
    }
    int32_t code = burn_var_update(o->def->id, o->def->attrs_size > 0 ? attrs : NULL,
                                   o->def->attrs_size, vars, in, n, err);
    for (uint32_t k = 0; k < o->def->n_aliases; k++) {
        const char *base = (const char *)o->def->aliases;
        const burn_alias *alias =
            (const burn_alias *)(const void *)(base + (size_t)k * o->def->alias_stride);
        if (vars[alias->in] != NULL) {
            out[alias->out] = burn_var_get(vars[alias->in]);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        burn_var_release(vars[i]);
    }
    return code;
}

static int32_t run_plain(oracle *o, json_t *json, const unsigned char *attrs, burn_tensor **in,
                         burn_tensor **out)
{
    json_t *ins = json_object_get(json, "in");
    json_t *grads = json_object_get(json, "grad");
    burn_device *autodiff = burn_device_autodiff(o->device);
    uint32_t n = (uint32_t)json_array_size(ins);
    for (uint32_t i = 0; i < n; i++) {
        in[i] = make_operand(o->device, json_array_get(ins, i));
        if (grads != NULL && !json_is_null(json_array_get(grads, i))) {
            in[i] = burn_require_grad(autodiff, in[i]);
        }
    }
    return burn_op_call(autodiff, o->def->id, o->def->attrs_size > 0 ? attrs : NULL,
                        o->def->attrs_size, in, n, out, o->def->n_out);
}

static void run_case(oracle *o, json_t *json)
{
    unsigned char attrs[BURN_MAX_ATTRS];
    burn_tensor *in[MAX_IN] = {NULL};
    burn_tensor *out[MAX_OUT] = {NULL};
    burn_err err = BURN_ERR_INIT;
    double tolerance = json_number_value(json_object_get(json, "tolerance"));
    o->n_cases++;
    if (!oracle_attrs(o->def, json_object_get(json, "attrs"), attrs)) {
        o->n_failed++;
        return;
    }
    burn_scope_begin();
    int32_t code = BURN_OK;
    if (o->def->effect == BURN_EFFECT_STATE) {
        code = run_state(o, json_object_get(json, "in"), attrs, out, &err);
    } else {
        code = run_plain(o, json, attrs, in, out);
        (void)burn_tensor_error(out[0], &err);
    }
    if (code == BURN_E_UNSUPPORTED) {
        o->n_skipped++;
    } else if (code != BURN_OK) {
        fail(o, "call", err.text);
    } else {
        compare_outputs(o, json_object_get(json, "out"), out, tolerance);
        if (json_object_get(json, "grad") != NULL) {
            compare_gradients(o, json, in, out[0], tolerance);
        }
    }
    burn_scope_end();
}

static void run_op(oracle *o, const char *folder)
{
    char path[1024];
    char name[24];
    json_error_t error;
    (void)snprintf(path, sizeof(path), "%s/%s.json", folder, o->def->name);
    if (o->some && access(path, F_OK) != 0) {
        return;
    }
    json_t *file = json_load_file(path, 0, &error);
    json_t *cases = json_object_get(file, "cases");
    if (json_array_size(cases) < LEAST_CASES) {
        (void)printf("FAIL %s: %s\n", path, file == NULL ? error.text : "too few cases");
        o->n_failed++;
    }
    for (size_t i = 0; i < json_array_size(cases); i++) {
        (void)snprintf(name, sizeof(name), "%zu", i);
        o->name = name;
        run_case(o, json_array_get(cases, i));
    }
    json_decref(file);
}

/* All ops without an extension, else that extension's: its ops begin with its id. A fused call is
 * what its steps are, and those are asked for. */
static int is_asked_for(const burn_op_def *op, const char *extension)
{
    size_t n = extension != NULL ? strlen(extension) : 0;
    int theirs = extension == NULL || (strncmp(op->name, extension, n) == 0 && op->name[n] == '.');
    return theirs && op->id != BURN_OP_FUSED;
}

int main(int argc, char **argv)
{
    burn_err err = BURN_ERR_INIT;
    oracle o;
    memset(&o, 0, sizeof(o));
    const char *extension = NULL;
    if (argc > 1 && strcmp(argv[1], "--some") == 0) {
        o.some = 1;
        argv++;
        argc--;
    }
    if (argc > 2 && strcmp(argv[1], "--extension") == 0) {
        extension = argv[2];
        argv += 2;
        argc -= 2;
    }
    if (argc < 3 || argc > 4) {
        (void)fprintf(stderr, "usage: test_oracle [--some] [--extension NAME] DEVICE FOLDER "
                              "[OP]\n");
        return 2;
    }
    if (extension != NULL && burn_extension_load(extension, &err) != BURN_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    o.device = burn_device_open(argv[1], &err);
    if (o.device == NULL) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    for (uint32_t i = 0; i < burn_op_count(); i++) {
        o.def = burn_op_at(i);
        int one = argc < 4 || strcmp(argv[3], o.def->name) == 0;
        if (one && is_asked_for(o.def, extension)) {
            run_op(&o, argv[2]);
        }
    }
    (void)printf("%llu cases, %llu failures, %llu without a kernel or a decomposition\n",
                 (unsigned long long)o.n_cases, (unsigned long long)o.n_failed,
                 (unsigned long long)o.n_skipped);
    burn_shutdown();
    return o.n_cases > o.n_skipped && o.n_failed == 0 ? 0 : 1;
}
