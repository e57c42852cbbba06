/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fuzz_op.c - op records: any op with any attribute bytes and any operands, on the device that
 * BURN_DEVICE names. Each call has an answer: outputs of the shape that was inferred, which can be
 * read, or a failure with a code and a text; the same for its gradient.
 *
 * The bytes are a little program: op, switches, operands (dtype, dims, view, fill), attributes. A
 * record may be right (attributes within small ranges) or wrong in any way. What a record may cost
 * is bounded by the device's memory limit and by small dims. The corpus has one seed per family.
 */
#include "fuzz.h"

#include <burn/grad.h>
#include <burn/op_attrs.h>
#include <burn/registry.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IN = 6, MAX_OUT = 8, MAX_ELEMENTS = 512, MAX_READ = 1 << 16 };
enum { TAPED = 1, RAW_ATTRS = 2, ODD_COUNT = 4, WRONG_SIZE = 8, TWICE = 16 };

typedef struct program {
    const uint8_t *at;
    size_t left;
} program;

static burn_device *device;

static uint8_t next(program *p)
{
    if (p->left == 0) {
        return 0;
    }
    p->left--;
    return *p->at++;
}

/* Small numbers around zero mostly, and now and then what overflows. */
static int64_t number(program *p)
{
    static const int64_t edges[] = {INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, INT64_C(1) << 40};
    uint8_t b = next(p);
    if (b >= 251) {
        return edges[b - 251];
    }
    return b < 192 ? b % 8 : -(int64_t)(b % 8);
}

static burn_device *need_device(void)
{
    if (device == NULL) {
        burn_err err = BURN_ERR_INIT;
        burn_device *plain = burn_device_open(NULL, &err);
        if (plain == NULL) {
            abort(); /* BURN_PLUGIN_PATH or BURN_DEVICE is wrong: nothing would be tested */
        }
        burn_memory_limit(plain, UINT64_C(64) << 20);
        device = burn_device_autodiff(plain);
    }
    return device;
}

static burn_tensor *make_view(program *p, burn_tensor *x, uint32_t rank)
{
    uint8_t how = next(p) % 4;
    if (rank == 0 || how == 0) {
        return x;
    }
    if (how == 1) {
        burn_attrs_permute a;
        memset(&a, 0, sizeof(a));
        a.head.size = (uint32_t)sizeof(a);
        a.head.revision = 1;
        a.n_axes = rank;
        for (uint32_t i = 0; i < rank; i++) {
            a.perm[i] = (int64_t)(rank - 1 - i);
        }
        (void)burn_op_call(NULL, BURN_OP_PERMUTE, &a, (uint32_t)sizeof(a), &x, 1, &x, 1);
        return x;
    }
    burn_attrs_slice a;
    memset(&a, 0, sizeof(a));
    a.head.size = (uint32_t)sizeof(a);
    a.head.revision = 1;
    a.axis = next(p) % rank;
    a.size = number(p);
    a.step = how == 2 ? 1 : -1;
    burn_tensor *in[2] = {x, burn_scalar_int(number(p))};
    (void)burn_op_call(NULL, BURN_OP_SLICE, &a, (uint32_t)sizeof(a), in, 2, &x, 1);
    return x;
}

static burn_tensor *make_tensor(program *p, int taped)
{
    static const uint8_t dtypes[] = {BURN_F32, BURN_F32, BURN_F32, BURN_F64, BURN_F16, BURN_BF16,
                                     BURN_I64, BURN_I32, BURN_BOOL, BURN_U8, BURN_I8, BURN_U64};
    uint8_t dtype = dtypes[next(p) % sizeof(dtypes)];
    uint32_t rank = next(p) % 6;
    int64_t dims[BURN_MAX_RANK];
    int64_t n = 1;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = next(p) % 9;
        dims[i] = n * dims[i] > MAX_ELEMENTS ? 1 : dims[i];
        n *= dims[i];
    }
    double values[MAX_ELEMENTS];
    double first = (double)number(p);
    double step = (double)(next(p) % 5) / 4.0;
    for (int64_t i = 0; i < n; i++) {
        values[i] = first + step * (double)(i % 7);
    }
    burn_tensor *x = burn_tensor_from_f64(need_device(), dtype, rank, dims, values);
    int is_float = burn_dtype_class(dtype) == BURN_CLASS_FLOAT;
    if (taped && is_float && burn_ok(x)) {
        x = burn_require_grad(need_device(), x);
    }
    return make_view(p, x, rank);
}

static burn_tensor *make_operand(program *p, int taped)
{
    uint8_t kind = next(p) % 8;
    if (kind == 0) {
        return NULL;
    }
    if (kind == 1) {
        return burn_scalar_int(number(p));
    }
    if (kind == 2) {
        return burn_scalar((double)number(p) / 2.0);
    }
    return make_tensor(p, taped);
}

/* Attributes by the op's schema; with RAW_ATTRS any bytes behind the head. */
static uint32_t make_attrs(program *p, const burn_op_def *op, uint8_t flags, uint8_t *out)
{
    memset(out, 0, BURN_MAX_ATTRS);
    uint32_t size = op->attrs_size;
    burn_attrs_head head = {size, 1};
    if (size == 0 || size > BURN_MAX_ATTRS) {
        return 0;
    }
    memcpy(out, &head, sizeof(head));
    for (uint32_t i = (uint32_t)sizeof(head); (flags & RAW_ATTRS) && i < size; i++) {
        out[i] = next(p);
    }
    for (uint32_t i = 0; !(flags & RAW_ATTRS) && i < op->n_attrs; i++) {
        const burn_attr *a = &op->attrs[i];
        for (uint32_t at = 0; at < a->size; at += 8) {
            int64_t value = number(p);
            double real = (double)value / 4.0;
            const void *from = a->type == BURN_ATTR_F64 ? (const void *)&real : &value;
            memcpy(out + a->offset + at, from, a->size - at < 8 ? a->size - at : 8);
        }
    }
    if (flags & WRONG_SIZE) {
        size = next(p);
        head.size = next(p) % 2 == 0 ? size : head.size;
        memcpy(out, &head, sizeof(head));
    }
    return size;
}

static void check_output(burn_tensor *t)
{
    static uint8_t bytes[MAX_READ];
    burn_err err = BURN_ERR_INIT;
    if (t == NULL) {
        abort(); /* an output that is not there */
    }
    if (!burn_ok(t)) {
        if (burn_tensor_error(t, &err) >= 0 || err.code < BURN_E_END || err.text[0] == '\0') {
            abort(); /* a failure without cause */
        }
        return;
    }
    int64_t n = burn_numel(t);
    if (n < 0 || burn_rank(t) > BURN_MAX_RANK || burn_dtype_size(burn_dtype_of(t)) == 0) {
        abort();
    }
    int64_t size = n * (int64_t)burn_dtype_size(burn_dtype_of(t));
    if (size <= MAX_READ && burn_read(t, bytes, (size_t)size, &err) < 0 && err.text[0] == '\0') {
        abort();
    }
}

static void check_gradient(burn_tensor *t, burn_tensor *const *in, uint32_t n_in)
{
    burn_err err = BURN_ERR_INIT;
    if (!burn_ok(t) || !burn_is_tracked(t) || burn_numel(t) > MAX_READ) {
        return;
    }
    burn_grads *grads = burn_backward(t, NULL, 0, &err);
    if (grads == NULL) {
        if (err.code >= 0 || err.text[0] == '\0') {
            abort(); /* no gradient, and no cause */
        }
        return;
    }
    for (uint32_t i = 0; i < n_in; i++) {
        burn_tensor *g = in[i] != NULL && burn_ok(in[i]) ? burn_grads_get(grads, in[i]) : NULL;
        if (g != NULL) {
            check_output(g);
        }
    }
    burn_grads_free(grads);
}

static void run(program *p, const burn_op_def *op, uint8_t flags)
{
    burn_tensor *in[MAX_IN] = {NULL};
    burn_tensor *out[MAX_OUT] = {NULL};
    _Alignas(8) uint8_t attrs[BURN_MAX_ATTRS];
    uint32_t n_in = op->n_in;
    uint32_t n_out = op->n_out;
    if (flags & ODD_COUNT) {
        n_in = next(p) % (MAX_IN + 1);
        n_out = next(p) % 4;
    }
    n_in = n_in > MAX_IN ? MAX_IN : n_in;
    n_out = n_out > MAX_OUT ? MAX_OUT : n_out;
    for (uint32_t i = 0; i < n_in; i++) {
        in[i] = make_operand(p, flags & TAPED);
    }
    uint32_t size = make_attrs(p, op, flags, attrs);
    for (int round = 0; round < ((flags & TWICE) ? 2 : 1); round++) {
        int32_t code = burn_op_call(need_device(), op->id, size > 0 ? attrs : NULL, size, in, n_in,
                                    out, n_out);
        for (uint32_t j = 0; j < n_out; j++) {
            check_output(out[j]);
            if (code != BURN_OK && burn_ok(out[j])) {
                abort(); /* the call failed, its output did not */
            }
        }
    }
    if ((flags & TAPED) && n_out > 0) {
        check_gradient(out[0], in, n_in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    program p = {bytes, size};
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    /* A few records in a row: what one leaves behind is the next one's trouble. */
    for (int i = 0; i < 3 && p.left > 2; i++) {
        const burn_op_def *op = burn_op_at(next(&p) % burn_op_count());
        run(&p, op, next(&p));
    }
    burn_scope_end();
    (void)burn_sync(need_device(), &err);
    return 0;
}
