/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn_rig.c - the fake host and the hand-made calls of nn_rig.h.
 *
 * Owns no test. Row search follows the rules of the core as far as these tests need them: dtype,
 * layout class, rank and absence of each operand, by priority, then in order.
 */
#include "nn_rig.h"

#include <burn_sdk/half.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t budget;

static void *host_alloc(uint64_t bytes)
{
    return malloc((size_t)bytes);
}

static void host_free(void *memory)
{
    free(memory);
}

static void host_log(int32_t level, const char *plugin, const char *text)
{
    (void)level;
    (void)plugin;
    (void)text;
}

static const char *gemm_option;
static const char *isa_option;
static int lacks_isa;

static const char *host_option(const char *name)
{
    if (strcmp(name, "FLEX_ISA") == 0) {
        return isa_option;
    }
    return strcmp(name, "FLEX_GEMM") == 0 ? gemm_option : NULL;
}

void rig_isa_option(const char *name)
{
    isa_option = name;
}

int rig_lacks_isa(void)
{
    return lacks_isa;
}

void rig_gemm_option(const char *value)
{
    gemm_option = value;
}

static uint32_t host_budget(void)
{
    return budget;
}

static const void *host_service(const char *id)
{
    (void)id;
    return NULL;
}

static const burn_host host = {
    .struct_size = (uint32_t)sizeof(burn_host),
    .abi = BURN_ABI_CURRENT,
    .alloc = host_alloc,
    .free = host_free,
    .log = host_log,
    .option = host_option,
    .thread_budget = host_budget,
    .service = host_service,
};

/* A copy of the file under another name is another instance. */
static int copy_file(const char *path, char *to)
{
    FILE *in = fopen(path, "rb");
    int fd = mkstemp(to);
    FILE *out = fd >= 0 ? fdopen(fd, "wb") : NULL;
    char buffer[65536];
    size_t n = 0;
    while (in != NULL && out != NULL && (n = fread(buffer, 1, sizeof(buffer), in)) > 0) {
        fwrite(buffer, 1, n, out);
    }
    int ok = in != NULL && out != NULL;
    if (in != NULL) {
        fclose(in);
    }
    if (out != NULL) {
        fclose(out);
    }
    return ok;
}

const burn_plugin *rig_plugin(const char *path, uint32_t threads)
{
    char name[] = "/tmp/burn-rig-XXXXXX";
    if (!copy_file(path, name)) {
        printf("rig: cannot copy %s\n", path);
        return NULL;
    }
    void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    unlink(name);
    if (lib == NULL) {
        printf("rig: %s\n", dlerror());
        return NULL;
    }
    burn_plugin_query_fn query = NULL;
    void *symbol = dlsym(lib, BURN_PLUGIN_SYMBOL);
    memcpy(&query, &symbol, sizeof(query));
    burn_err err = BURN_ERR_INIT;
    budget = threads;
    const burn_plugin *plugin = query(BURN_ABI_OLDEST, BURN_ABI_CURRENT, &host, &err);
    lacks_isa = plugin == NULL && err.code == BURN_E_UNSUPPORTED;
    if (plugin == NULL) {
        printf("rig: %s\n", err.text);
    }
    return plugin;
}

static uint32_t element_size(uint8_t dtype)
{
    static const uint8_t sizes[] = {0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
    return sizes[dtype];
}

int64_t rig_numel(const rig_tensor *t)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        n *= t->dims[i];
    }
    return n;
}

rig_tensor rig_new(uint8_t dtype, uint32_t rank, const int64_t *dims)
{
    rig_tensor t;
    memset(&t, 0, sizeof(t));
    t.dtype = dtype;
    t.rank = (uint8_t)rank;
    int64_t step = 1;
    for (uint32_t i = rank; i-- > 0;) {
        t.dims[i] = dims[i];
        t.strides[i] = step;
        step *= dims[i];
    }
    size_t bytes = (size_t)step * element_size(dtype);
    t.memory = malloc(bytes + 64);
    t.data = t.memory;
    memset(t.memory, 0xff, bytes + 64); /* NaN in every float type */
    return t;
}

void rig_set(rig_tensor *t, int64_t position, double value)
{
    int64_t offset = 0;
    for (uint32_t i = t->rank; i-- > 0;) {
        offset += (position % t->dims[i]) * t->strides[i];
        position /= t->dims[i];
    }
    char *p = (char *)t->data + offset * (int64_t)element_size(t->dtype);
    float f = (float)value;
    int64_t whole = t->dtype < BURN_F16 ? (int64_t)value : 0;
    uint16_t half = t->dtype == BURN_BF16 ? burn_float_to_bfloat(f) : burn_float_to_half(f);
    if (t->dtype == BURN_F64) {
        memcpy(p, &value, 8);
    } else if (t->dtype == BURN_F32) {
        memcpy(p, &f, 4);
    } else if (t->dtype >= BURN_F16) {
        memcpy(p, &half, 2);
    } else {
        memcpy(p, &whole, element_size(t->dtype));
    }
}

double rig_at(const rig_tensor *t, int64_t position)
{
    int64_t offset = 0;
    for (uint32_t i = t->rank; i-- > 0;) {
        offset += (position % t->dims[i]) * t->strides[i];
        position /= t->dims[i];
    }
    const char *p = (const char *)t->data + offset * (int64_t)element_size(t->dtype);
    double wide = 0;
    float f = 0;
    uint16_t half = 0;
    if (t->dtype == BURN_F64) {
        memcpy(&wide, p, 8);
        return wide;
    }
    if (t->dtype == BURN_F32) {
        memcpy(&f, p, 4);
        return (double)f;
    }
    if (t->dtype >= BURN_F16) {
        memcpy(&half, p, 2);
        return (double)(t->dtype == BURN_F16 ? burn_half_to_float(half)
                                             : burn_bfloat_to_float(half));
    }
    int64_t whole = 0;
    memcpy(&whole, p, element_size(t->dtype));
    int is_signed = t->dtype == BURN_I8 || t->dtype == BURN_I16 || t->dtype == BURN_I32;
    uint32_t shift = 64 - 8 * element_size(t->dtype);
    if (is_signed) {
        whole = (int64_t)((uint64_t)whole << shift) >> shift;
    }
    return (double)whole;
}

rig_tensor rig_random(uint8_t dtype, uint32_t rank, const int64_t *dims, uint32_t seed)
{
    rig_tensor t = rig_new(dtype, rank, dims);
    uint32_t state = seed * 2654435761u + 12345u;
    int64_t n = rig_numel(&t);
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        double unit = (double)(state >> 8) / 8388608.0 - 1.0;
        rig_set(&t, i, dtype < BURN_F16 ? floor(unit * 9) : unit);
    }
    return t;
}

rig_tensor rig_values(uint32_t rank, const int64_t *dims, const float *values)
{
    rig_tensor t = rig_new(BURN_F32, rank, dims);
    memcpy(t.data, values, (size_t)rig_numel(&t) * sizeof(float));
    return t;
}

rig_tensor rig_absent(void)
{
    rig_tensor t;
    memset(&t, 0, sizeof(t));
    return t;
}

rig_tensor rig_f64(double value)
{
    rig_tensor t;
    memset(&t, 0, sizeof(t));
    t.dtype = BURN_F64;
    t.immediate = 1;
    memcpy(t.bits, &value, 8);
    return t;
}

void rig_free(rig_tensor *t)
{
    free(t->memory);
    t->memory = NULL;
    t->data = NULL;
}

rig_tensor rig_swapped(const rig_tensor *t, uint32_t a, uint32_t b)
{
    rig_tensor s = *t;
    s.memory = NULL;
    s.dims[a] = t->dims[b];
    s.dims[b] = t->dims[a];
    s.strides[a] = t->strides[b];
    s.strides[b] = t->strides[a];
    return s;
}

static uint8_t layout_of(const rig_tensor *t)
{
    int64_t step = 1;
    int is_dense = 1;
    int is_scalar = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        is_dense = is_dense && (t->dims[i] == 1 || t->strides[i] == step);
        is_scalar = is_scalar && t->strides[i] == 0;
        step *= t->dims[i];
    }
    if (is_dense) {
        return BURN_LAYOUT_CONTIGUOUS;
    }
    if (is_scalar) {
        return BURN_LAYOUT_SCALAR;
    }
    return t->strides[t->rank - 1] == 1 ? BURN_LAYOUT_ROWS : BURN_LAYOUT_STRIDED;
}

static int slot_takes(const burn_slot *slot, const burn_operand *x)
{
    if (x->kind == BURN_ABSENT) {
        return slot->may_be_absent;
    }
    if (x->kind == BURN_IMMEDIATE && !slot->immediate_ok) {
        return 0;
    }
    if ((slot->dtypes[0] >> x->dtype & 1) == 0) {
        return 0;
    }
    if (x->kind == BURN_TENSOR && (slot->layouts & x->layout) == 0) {
        return 0;
    }
    return x->rank >= slot->rank_min && x->rank <= slot->rank_max;
}

static int row_takes(const burn_row *row, const burn_call *call)
{
    uint32_t n = call->n_in + call->n_out;
    if (row->n_slots != n) {
        return 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        const burn_slot *slot = &row->slots[i];
        const burn_operand *x = burn_call_operand(call, i);
        if (!slot_takes(slot, x)) {
            return 0;
        }
        if (slot->same_dtype_as != 0 && x->kind != BURN_ABSENT &&
            x->dtype != burn_call_operand(call, slot->same_dtype_as - 1u)->dtype) {
            return 0;
        }
    }
    return row->check == NULL || row->check(call) == BURN_OK;
}

static const burn_row *find_row(const burn_plugin *plugin, uint64_t op, const burn_call *call)
{
    const burn_row *best = NULL;
    for (uint32_t s = 0; s < plugin->n_row_sets; s++) {
        const burn_row_set *set = &plugin->row_sets[s];
        for (uint32_t r = 0; r < set->n_rows; r++) {
            const burn_row *row = &set->rows[r];
            if (row->op == op && row_takes(row, call) &&
                (best == NULL || row->priority > best->priority)) {
                best = row;
            }
        }
    }
    return best;
}

static void fill_operand(burn_operand *x, rig_tensor *t)
{
    memset(x, 0, sizeof(*x));
    if (t == NULL || t->dtype == BURN_DTYPE_NONE) {
        return;
    }
    x->kind = t->immediate ? BURN_IMMEDIATE : BURN_TENSOR;
    x->dtype = t->dtype;
    x->rank = t->rank;
    x->dims = t->dims;
    x->strides = t->strides;
    x->data = t->immediate ? (void *)t->bits : t->data;
    x->layout = t->immediate ? BURN_LAYOUT_SCALAR : layout_of(t);
}

int32_t rig_run(const burn_plugin *plugin, const rig_call *c, burn_err *err)
{
    burn_operand operands[2 * RIG_MAX];
    burn_call call;
    burn_fault fault;
    burn_operand fault_operand;
    memset(&fault, 0, sizeof(fault));
    memset(&fault_operand, 0, sizeof(fault_operand));
    memset(&call, 0, sizeof(call));
    fault_operand.kind = BURN_TENSOR;
    fault_operand.data = &fault;
    call.struct_size = (uint32_t)sizeof(call);
    call.operand_stride = (uint32_t)sizeof(burn_operand);
    call.n_in = c->n_in;
    call.n_out = c->n_out;
    call.operands = operands;
    call.attrs = c->attrs;
    call.attrs_size = c->attrs_size;
    call.attrs_revision = 1;
    call.fault = &fault_operand;
    call.err = err;
    for (uint32_t i = 0; i < c->n_in; i++) {
        fill_operand(&operands[i], c->in[i]);
    }
    for (uint32_t i = 0; i < c->n_out; i++) {
        fill_operand(&operands[c->n_in + i], c->out[i]);
    }
    const burn_row *row = find_row(plugin, c->op, &call);
    if (row == NULL) {
        snprintf(err->text, sizeof(err->text), "no row takes op %d", (int)c->op);
        return BURN_E_UNSUPPORTED;
    }
    burn_prepared prepared;
    memset(&prepared, 0, sizeof(prepared));
    prepared.struct_size = (uint32_t)sizeof(prepared);
    int32_t code = row->prepare != NULL ? row->prepare(&call, &prepared) : BURN_OK;
    if (code != BURN_OK) {
        return code;
    }
    burn_operand workspace;
    memset(&workspace, 0, sizeof(workspace));
    size_t bytes = ((size_t)prepared.workspace_bytes + 63) / 64 * 64;
    void *memory = bytes > 0 ? aligned_alloc(64, bytes) : NULL;
    if (memory != NULL) {
        memset(memory, 0xff, bytes);
        workspace.kind = BURN_TENSOR;
        workspace.data = memory;
        call.workspace = &workspace;
    }
    call.state = prepared.state;
    code = row->launch(&call);
    free(memory);
    return code != BURN_OK ? code : fault.code;
}
