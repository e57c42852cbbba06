/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fixture.c - see fixture.h.
 */
#include "fixture.h"

#include <burn_sdk/half.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const burn_plugin *plugin;
static void *library;
static burn_plugin_query_fn query;
static const char *wanted_isa;
static uint32_t n_threads = 4;
_Thread_local burn_err fixture_error = BURN_ERR_INIT;

static void *host_alloc(uint64_t bytes)
{
    return malloc(bytes);
}

static void host_free(void *memory)
{
    free(memory);
}

static void host_log(int32_t level, const char *who, const char *text)
{
    (void)level;
    (void)who;
    (void)text;
}

static const char *host_option(const char *name)
{
    return strcmp(name, "FLEX_ISA") == 0 ? wanted_isa : NULL;
}

static uint32_t host_threads(void)
{
    return n_threads;
}

static const void *host_service(const char *id)
{
    (void)id;
    return NULL;
}

static const burn_host host = {(uint32_t)sizeof(burn_host), BURN_ABI_CURRENT, host_alloc,
                               host_free, host_log, host_option, host_threads, host_service};

/* 0, or what main returns. */
static int open_plugin(const char *path, const char *isa)
{
    wanted_isa = isa;
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void *symbol = dlsym(library, BURN_PLUGIN_SYMBOL);
    memcpy(&query, &symbol, sizeof(query));
    plugin = query(BURN_ABI_OLDEST, BURN_ABI_CURRENT, &host, &fixture_error);
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", fixture_error.text);
        return fixture_error.code == BURN_E_UNSUPPORTED ? 77 : 1;
    }
    return 0;
}

int fixture_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n_tests)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s FLEX_SO [ISA]\n", argv[0]);
        return 1;
    }
    int refused = open_plugin(argv[1], argc > 2 ? argv[2] : NULL);
    if (refused != 0) {
        return refused;
    }
    int failed = _cmocka_run_group_tests("tests", tests, n_tests, NULL, NULL);
    plugin->shutdown();
    return failed;
}

const burn_plugin *fixture_plugin(void)
{
    return plugin;
}

void fixture_threads(uint32_t n)
{
    plugin->shutdown();
    n_threads = n;
    plugin = query(BURN_ABI_OLDEST, BURN_ABI_CURRENT, &host, &fixture_error);
    assert_non_null(plugin);
}

#define SIZE(code, NAME, name, bytes, klass) [code] = bytes,
static const uint8_t sizes[16] = {BURN_FOREACH_DTYPE(SIZE)};
#undef SIZE

uint32_t dtype_size(uint8_t dtype)
{
    return sizes[dtype];
}

int64_t numel(const tensor *t)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < t->o.rank; i++) {
        n *= t->dims[i];
    }
    return n;
}

void make(tensor *t, uint8_t dtype, uint32_t rank, const int64_t *dims)
{
    memset(t, 0, sizeof(*t));
    t->o.kind = BURN_TENSOR;
    t->o.dtype = dtype;
    t->o.rank = (uint8_t)rank;
    t->o.layout = BURN_LAYOUT_CONTIGUOUS;
    t->o.dims = t->dims;
    t->o.strides = t->strides;
    int64_t step = 1;
    for (uint32_t i = rank; i-- > 0;) {
        t->dims[i] = dims[i];
        t->strides[i] = step;
        step *= dims[i];
    }
    size_t bytes = (size_t)numel(t) * sizes[dtype];
    t->memory = malloc(bytes + 1);
    memset(t->memory, 0x5a, bytes);
    t->o.data = t->memory;
}

void make1(tensor *t, uint8_t dtype, int64_t n)
{
    make(t, dtype, 1, &n);
}

void make_values(tensor *t, uint8_t dtype, int64_t n, const double *values)
{
    make1(t, dtype, n);
    for (int64_t i = 0; i < n; i++) {
        put(t, i, values[i]);
    }
}

void make_imm(tensor *t, uint8_t dtype, double value)
{
    int64_t one = 1;
    make(t, dtype, 1, &one);
    put(t, 0, value);
    memcpy(t->immediate, t->memory, sizes[dtype]);
    t->o.kind = BURN_IMMEDIATE;
    t->o.layout = BURN_LAYOUT_SCALAR;
    t->o.data = t->immediate;
    t->strides[0] = 0;
}

void make_imm_u64(tensor *t, uint64_t value)
{
    make_imm(t, BURN_U64, 0.0);
    t->immediate[0] = value;
}

void make_absent(tensor *t)
{
    memset(t, 0, sizeof(*t));
    t->o.kind = BURN_ABSENT;
}

void unmake(tensor *t)
{
    free(t->memory);
    t->memory = NULL;
}

static int64_t place(const tensor *t, int64_t k)
{
    int64_t offset = 0;
    for (uint32_t i = t->o.rank; i-- > 0;) {
        offset += k % t->dims[i] * t->strides[i];
        k /= t->dims[i];
    }
    return offset;
}

double get(const tensor *t, int64_t k)
{
    const unsigned char *p = t->o.data;
    p += place(t, k) * (int64_t)sizes[t->o.dtype];
    uint64_t bits = 0;
    memcpy(&bits, p, sizes[t->o.dtype]);
    double d;
    switch (t->o.dtype) {
    case BURN_F64:
        memcpy(&d, p, sizeof(d));
        return d;
    case BURN_F32:
        return (double)burn_float_from_bits((uint32_t)bits);
    case BURN_F16:
        return (double)burn_half_to_float((uint16_t)bits);
    case BURN_BF16:
        return (double)burn_bfloat_to_float((uint16_t)bits);
    case BURN_I8:
        return (double)(int8_t)bits;
    case BURN_I16:
        return (double)(int16_t)bits;
    case BURN_I32:
        return (double)(int32_t)bits;
    case BURN_I64:
        return (double)(int64_t)bits;
    default:
        return (double)bits;
    }
}

void put(tensor *t, int64_t k, double value)
{
    unsigned char *p = t->o.data;
    p += place(t, k) * (int64_t)sizes[t->o.dtype];
    uint64_t bits = 0;
    float single = (float)value;
    if (t->o.dtype == BURN_F64) {
        memcpy(&bits, &value, sizeof(bits));
    } else if (t->o.dtype == BURN_F32) {
        memcpy(&bits, &single, sizeof(single));
    } else if (t->o.dtype == BURN_F16) {
        bits = burn_float_to_half(single);
    } else if (t->o.dtype == BURN_BF16) {
        bits = burn_float_to_bfloat(single);
    } else if (t->o.dtype == BURN_U64 && value > 0.0) {
        bits = (uint64_t)value;
    } else {
        bits = (uint64_t)(int64_t)value;
    }
    memcpy(p, &bits, sizes[t->o.dtype]);
}

void restride(tensor *t, int64_t step)
{
    tensor wide;
    int64_t dims[BURN_MAX_RANK];
    uint32_t last = t->o.rank - 1u;
    int64_t spread = step < 0 ? -step : step;
    memcpy(dims, t->dims, sizeof(dims));
    dims[last] *= spread;
    make(&wide, t->o.dtype, t->o.rank, dims);
    memcpy(wide.dims, t->dims, sizeof(dims));
    wide.strides[last] = step;
    if (step < 0 && numel(t) > 0) {
        wide.o.data = wide.memory +
                      (t->dims[last] - 1) * spread * (int64_t)sizes[t->o.dtype];
    }
    for (int64_t k = 0; k < numel(t); k++) {
        memcpy((unsigned char *)wide.o.data + place(&wide, k) * (int64_t)sizes[t->o.dtype],
               (unsigned char *)t->o.data + place(t, k) * (int64_t)sizes[t->o.dtype],
               sizes[t->o.dtype]);
    }
    unmake(t);
    *t = wide;
    t->o.dims = t->dims;
    t->o.strides = t->strides;
    t->o.layout = BURN_LAYOUT_STRIDED;
}

void swap_axes(tensor *t, uint32_t a, uint32_t b)
{
    int64_t dim = t->dims[a];
    int64_t stride = t->strides[a];
    t->dims[a] = t->dims[b];
    t->strides[a] = t->strides[b];
    t->dims[b] = dim;
    t->strides[b] = stride;
    t->o.layout = BURN_LAYOUT_STRIDED;
}

void stretch(tensor *t, uint32_t axis, int64_t n)
{
    t->dims[axis] = n;
    t->strides[axis] = 0;
    t->o.layout = BURN_LAYOUT_STRIDED;
}

static const burn_row *find_row(uint64_t op)
{
    for (uint32_t s = 0; s < plugin->n_row_sets; s++) {
        const burn_row_set *set = &plugin->row_sets[s];
        for (uint32_t i = 0; i < set->n_rows; i++) {
            if (set->rows[i].op == op) {
                return &set->rows[i];
            }
        }
    }
    return NULL;
}

/* Launches, after `prepare` where the row has one, with the workspace that it asks for. */
static int32_t launch(const burn_row *row, burn_call *call)
{
    burn_prepared prepared;
    burn_operand workspace;
    BURN_INIT(&prepared, burn_prepared);
    memset(&workspace, 0, sizeof(workspace));
    int32_t rc = row->prepare != NULL ? row->prepare(call, &prepared) : BURN_OK;
    if (rc != BURN_OK) {
        return rc;
    }
    size_t bytes = (prepared.workspace_bytes + 63) / 64 * 64;
    workspace.data = bytes > 0 ? aligned_alloc(64, bytes) : NULL;
    call->state = prepared.state;
    call->workspace = bytes > 0 ? &workspace : NULL;
    rc = row->launch(call);
    free(workspace.data);
    if (row->release != NULL && prepared.state != NULL) {
        row->release(prepared.state);
    }
    return rc;
}

int32_t run(uint64_t op, const void *attrs, uint32_t n_in, tensor **in, uint32_t n_out,
            tensor **out)
{
    burn_operand operands[16];
    burn_call call;
    const burn_row *row = find_row(op);
    assert_non_null(row);
    for (uint32_t i = 0; i < n_in; i++) {
        in[i]->o.dims = in[i]->dims;
        in[i]->o.strides = in[i]->strides;
        operands[i] = in[i]->o;
    }
    for (uint32_t j = 0; j < n_out; j++) {
        out[j]->o.dims = out[j]->dims;
        out[j]->o.strides = out[j]->strides;
        operands[n_in + j] = out[j]->o;
    }
    memset(&call, 0, sizeof(call));
    call.struct_size = (uint32_t)sizeof(call);
    call.operand_stride = (uint32_t)sizeof(burn_operand);
    call.n_in = n_in;
    call.n_out = n_out;
    call.operands = operands;
    call.attrs = attrs;
    call.attrs_size = attrs != NULL ? ((const burn_attrs_head *)attrs)->size : 0;
    call.err = &fixture_error;
    fixture_error.text[0] = '\0';
    return launch(row, &call);
}

int32_t run1(uint64_t op, const void *attrs, tensor *x, tensor *z)
{
    return run(op, attrs, 1, &x, 1, &z);
}

int32_t run2(uint64_t op, const void *attrs, tensor *x, tensor *y, tensor *z)
{
    tensor *in[2] = {x, y};
    return run(op, attrs, 2, in, 1, &z);
}

double ulp_f32(float got, double want)
{
    float near = (float)want;
    if (isnan(want) || isnan(got)) {
        return isnan(want) && isnan(got) ? 0.0 : (double)INFINITY;
    }
    if (isinf(near) || isinf(got)) {
        return near == got ? 0.0 : (double)INFINITY;
    }
    float up = nextafterf(fabsf(near), INFINITY) - fabsf(near);
    return fabs((double)got - want) / (double)up;
}

double next_random(double lo, double hi)
{
    static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return lo + (hi - lo) * ((double)(state >> 11) * 0x1p-53);
}
