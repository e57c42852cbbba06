/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * check_value.c - BURN_CHECK: elements on the host, verdicts, and their texts. See check_private.h.
 *
 * Operands are fetched without ending a sequence of calls, and widened as `eval` wants them (floats
 * to double). To add a check: a step in burni_check_outputs.
 */
#include "exec/check_private.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/printer.h"
#include "base/tag.h"
#include "exec/fault.h"
#include "exec/guard.h"
#include "exec/match.h"
#include "exec/transfer.h"
#include "exec/unrun.h"
#include "ops/ask.h"
#include "ops/rules.h"

#include <burn_sdk/half.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- operands on the host -------------------------------------------------------------------- */

void burni_check_release(burn_eval_operand *x)
{
    burni_free(x->f);
    burni_free(x->i);
    burni_free(x->u);
    memset(x, 0, sizeof(*x));
}

static int operand_alloc(burn_eval_operand *x, const burn_meta *meta)
{
    memset(x, 0, sizeof(*x));
    x->meta = *meta;
    if (meta->kind == BURN_ABSENT) {
        return 1;
    }
    x->n = meta->kind == BURN_TENSOR ? (uint64_t)burni_numel(meta->rank, meta->dims) : 1;
    void *memory = burni_calloc(x->n > 0 ? x->n : 1, 8);
    switch (burn_dtype_class(meta->dtype)) {
    case BURN_CLASS_FLOAT:
        x->f = memory;
        break;
    case BURN_CLASS_UINT:
        x->u = memory;
        break;
    default:
        x->i = memory;
        break;
    }
    return memory != NULL;
}

static void set_bits(burn_eval_operand *x, uint64_t k, const void *bytes)
{
    uint64_t bits[2] = {0, 0};
    uint32_t size = burn_dtype_size(x->meta.dtype);
    uint32_t shift = 64 - 8 * size;
    memcpy(bits, bytes, size);
    if (x->f != NULL) {
        x->f[k] = burni_scalar_f64(x->meta.dtype, bits);
    } else if (x->u != NULL) {
        x->u[k] = bits[0];
    } else if (burn_dtype_class(x->meta.dtype) == BURN_CLASS_INT) {
        x->i[k] = (int64_t)(bits[0] << shift) >> shift;
    } else {
        x->i[k] = (int64_t)bits[0];
    }
}

/* Bytes of the storage from the lowest element that the operand sees to the end of the highest. */
static void find_range(const burni_noted *noted, int64_t *low, int64_t *high)
{
    int64_t size = burn_dtype_size(noted->meta.dtype);
    *low = noted->offset;
    *high = noted->offset + size;
    for (uint32_t d = 0; d < noted->meta.rank; d++) {
        int64_t reach = (noted->meta.dims[d] - 1) * noted->strides[d] * size;
        *low += reach < 0 ? reach : 0;
        *high += reach > 0 ? reach : 0;
    }
}

/* All elements in the order of the dims; `first` is where the one at [0,0,..] lies. */
static void walk(burn_eval_operand *x, const burni_noted *noted, const unsigned char *first)
{
    int64_t index[BURN_MAX_RANK] = {0};
    int64_t at = 0;
    int64_t size = burn_dtype_size(noted->meta.dtype);
    for (uint64_t k = 0; k < x->n; k++) {
        set_bits(x, k, first + at * size);
        for (uint32_t d = noted->meta.rank; d-- > 0;) {
            at += noted->strides[d];
            if (++index[d] < noted->meta.dims[d]) {
                break;
            }
            at -= noted->meta.dims[d] * noted->strides[d];
            index[d] = 0;
        }
    }
}

/* What only the data show has not been looked at yet. */
static int32_t look_for_failures(burni_stream *stream, burni_storage *s, burn_err *err)
{
    if (burni_is_unrun(s)) {
        burni_unrun_make(s);
    }
    if (s->fault != NULL) {
        int32_t rc = burni_fault_check_on(stream, s, err);
        if (rc != BURN_OK) {
            return rc;
        }
    }
    if (atomic_load_explicit(&s->state, memory_order_acquire) == BURNI_FAILED) {
        burni_cause_write(s->cause, err);
        return s->cause->code;
    }
    return BURN_OK;
}

int32_t burni_check_fetch(burn_eval_operand *x, burni_stream *stream, burni_storage *s,
                          const burni_noted *noted, burn_err *err)
{
    int64_t low = 0;
    int64_t high = 0;
    if (!operand_alloc(x, &noted->meta)) {
        return burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
    }
    int32_t rc = look_for_failures(stream, s, err);
    if (rc != BURN_OK || x->n == 0) {
        return rc;
    }
    find_range(noted, &low, &high);
    unsigned char *bytes = burni_alloc((uint64_t)(high - low));
    rc = bytes == NULL ? burni_fail(err, BURN_E_NO_MEMORY, "out of host memory")
                       : burni_fetch(stream, s, (uint64_t)low, bytes, (uint64_t)(high - low), err);
    if (rc == BURN_OK) {
        walk(x, noted, bytes + (noted->offset - low));
    }
    burni_free(bytes);
    return rc;
}

static int32_t read_inputs(burni_check *check, burn_err *err)
{
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < check->n_in && rc == BURN_OK; i++) {
        burn_eval_operand *x = &check->in[i];
        const burni_noted *noted = &check->note->operands[i];
        if (noted->meta.kind == BURN_TENSOR) {
            rc = burni_check_fetch(x, check->stream, check->storages[i], noted, err);
        } else if (!operand_alloc(x, &noted->meta)) {
            rc = burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
        } else if (noted->meta.kind == BURN_IMMEDIATE) {
            set_bits(x, 0, check->bits[i]);
        }
    }
    return rc;
}

void burni_check_read_inputs(burni_check *check)
{
    burn_err err = BURN_ERR_INIT;
    check->unread = read_inputs(check, &err);
    check->have_inputs = 1;
}

void burni_check_clear(burni_check *check)
{
    for (uint32_t i = 0; i < check->n_in; i++) {
        burni_check_release(&check->in[i]);
    }
    for (uint32_t j = 0; j < check->n_out; j++) {
        burni_check_release(&check->out[j]);
        burni_check_release(&check->expected[j]);
    }
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* "[3,1]" of element k. */
static void print_position(burni_printer *p, const burn_meta *meta, uint64_t k)
{
    int64_t index[BURN_MAX_RANK];
    for (uint32_t d = meta->rank; d-- > 0;) {
        index[d] = (int64_t)(k % (uint64_t)meta->dims[d]);
        k /= (uint64_t)meta->dims[d];
    }
    char text[192];
    burni_print(p, "%s", burni_shape_text(text, sizeof(text), meta->rank, index));
}

static void print_operand(burni_printer *p, const burn_meta *meta)
{
    char text[192];
    burni_print(p, "%s%s", burn_dtype_name(meta->dtype),
                meta->kind == BURN_TENSOR
                    ? burni_shape_text(text, sizeof(text), meta->rank, meta->dims)
                    : "");
}

/* "x f32[4] from -1 to 5". */
static void print_range(burni_printer *p, const burn_eval_operand *x)
{
    double low = (double)INFINITY;
    double high = -(double)INFINITY;
    uint64_t n_nan = 0;
    for (uint64_t k = 0; k < x->n; k++) {
        double value = burni_eval_get(x, k);
        n_nan += value != value;
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    print_operand(p, &x->meta);
    if (x->n == n_nan && x->n > 0) {
        burni_print(p, x->n == 1 ? " = nan" : " all nan");
    } else if (x->n == 1) {
        burni_print(p, " = %.6g", burni_shown(low));
    } else if (x->n > 1) {
        burni_print(p, n_nan > 0 ? " from %.6g to %.6g, and nan" : " from %.6g to %.6g", low, high);
    }
}

static void print_inputs(burni_printer *p, const burni_check *check)
{
    for (uint32_t i = 0; i < check->n_in; i++) {
        if (check->in[i].meta.kind != BURN_ABSENT) {
            burni_print(p, "; %s ", burni_operand_name(check->op, i, check->n_in));
            print_range(p, &check->in[i]);
        }
    }
}

static void print_value(burni_printer *p, const burn_eval_operand *x, uint64_t k)
{
    if (x->f != NULL) {
        burni_print(p, "%.9g", burni_shown(x->f[k]));
    } else if (x->u != NULL) {
        burni_print(p, "%" PRIu64, x->u[k]);
    } else {
        burni_print(p, "%" PRId64, x->i[k]);
    }
}

/* "log", "log (in softmax)", with the output's name, and which of its elements is what. */
static void print_output(burni_printer *p, const burni_check *check, uint32_t j, uint64_t k)
{
    const burn_eval_operand *got = &check->out[j];
    burni_print(p, "%s", check->op->def.name);
    if (check->note->part_of[0] != '\0') {
        burni_print(p, " (in %s)", check->note->part_of);
    }
    burni_print(p, ": output %s is ", burni_operand_name(check->op, check->n_in + j, check->n_in));
    print_value(p, got, k);
    burni_print(p, " at ");
    print_position(p, &got->meta, k);
    burni_print(p, " of ");
    print_operand(p, &got->meta);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* Everything that depends on these storages fails, with this text. */
static void condemn(burni_stream *stream, burn_err *err, const burni_op *op, uint64_t tag,
                    burni_storage *const *storages, uint32_t n)
{
    err->code = BURN_E_DATA;
    err->op = op->def.id;
    burni_tag_append(tag, err);
    burni_cause *cause = burni_cause_new(err);
    for (uint32_t j = 0; j < n; j++) {
        if (storages[j] != NULL) {
            burni_storage_fail(storages[j], cause);
        }
    }
    burni_device_latch(stream->device, cause, stream, burni_stream_age(stream));
    burni_cause_unref(cause);
    burni_check_add(BURNI_WRONG, 1);
}

static void condemn_outputs(const burni_check *check, burn_err *err)
{
    condemn(check->stream, err, check->op, check->tag, check->storages + check->n_in,
            check->n_out);
}

int burni_check_is_finite(const burn_eval_operand *x, uint64_t *position)
{
    for (uint64_t k = 0; x->f != NULL && k < x->n; k++) {
        if (!isfinite(x->f[k])) {
            *position = k;
            return 0;
        }
    }
    return 1;
}

/* 1 when the outputs may stay. */
static int check_finite(burni_check *check)
{
    uint64_t k = 0;
    uint32_t j = 0;
    burn_err err = BURN_ERR_INIT;
    burni_check_add(BURNI_LOOKED_AT, 1);
    while (j < check->n_out && burni_check_is_finite(&check->out[j], &k)) {
        j++;
    }
    if (j == check->n_out) {
        return 1;
    }
    if (!check->have_inputs) {
        burni_check_read_inputs(check);
    }
    if (check->unread != BURN_OK) {
        return 1;
    }
    for (uint32_t i = 0; i < check->n_in; i++) {
        uint64_t where = 0;
        if (!burni_check_is_finite(&check->in[i], &where)) {
            return 1;
        }
    }
    burni_printer p = {err.text, sizeof(err.text), 0};
    print_output(&p, check, j, k);
    print_inputs(&p, check);
    condemn_outputs(check, &err);
    return 0;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* The largest tolerance that the op's samples ask for, in epsilons. */
static double sample_tolerance(const burni_op *op)
{
    double tolerance = 0.0;
    burn_sample *s = burni_calloc(1, sizeof(*s));
    for (uint32_t i = 0; s != NULL && op->def.samples != NULL; i++) {
        if (burni_ask_sample(op->plugin, &op->def, i, s, NULL) != BURN_OK) {
            break;
        }
        if ((s->flags & BURN_SAMPLE_ERROR) == 0 && s->tolerance > tolerance) {
            tolerance = s->tolerance;
        }
    }
    burni_free(s);
    return tolerance;
}

/*
 * What a correct kernel may differ by, beside |expected|: samples are small, their values near 1.
 * An op that sums many values errs by the largest of them, and as the square root of their number.
 */
static double allowance(const burni_check *check, double *largest)
{
    uint64_t n = 0;
    *largest = 1.0;
    for (uint32_t i = 0; i < check->n_in && !check->op->pointwise; i++) {
        const burn_eval_operand *x = &check->in[i];
        n = x->n > n ? x->n : n;
        for (uint64_t k = 0; x->f != NULL && k < x->n; k++) {
            *largest = fabs(x->f[k]) > *largest ? fabs(x->f[k]) : *largest;
        }
    }
    return sample_tolerance(check->op) * fmax(1.0, sqrt((double)n / 512.0));
}

static double rounded(double value, uint8_t dtype)
{
    switch (dtype) {
    case BURN_F32:
        return (double)(float)value;
    case BURN_F16:
        return (double)burn_half_to_float(burn_float_to_half((float)value));
    case BURN_BF16:
        return (double)burn_bfloat_to_float(burn_float_to_bfloat((float)value));
    default:
        return value;
    }
}

static int is_close(double got, double expected, double allowed)
{
    if (isnan(got) || isnan(expected)) {
        return isnan(got) && isnan(expected);
    }
    return got == expected || (isfinite(got) && fabs(got - expected) <= allowed);
}

/* 1 when element k is what eval says; integers to the bit, in the width of their dtype. */
static int element_agrees(const burn_eval_operand *got, burn_eval_operand *expected, uint64_t k,
                          double tolerance, double largest)
{
    uint8_t dtype = got->meta.dtype;
    uint32_t shift = 64 - 8 * burn_dtype_size(dtype);
    if (got->f != NULL) {
        expected->f[k] = rounded(expected->f[k], dtype);
        double size = fmax(largest, fabs(expected->f[k]));
        return is_close(got->f[k], expected->f[k], tolerance * burn_epsilon(dtype) * size);
    }
    uint64_t a = got->u != NULL ? got->u[k] : (uint64_t)got->i[k];
    uint64_t b = got->u != NULL ? expected->u[k] : (uint64_t)expected->i[k];
    return a << shift == b << shift;
}

static int32_t evaluate(burni_check *check, burn_err *err)
{
    const burn_op_def *d = &check->op->def;
    for (uint32_t j = 0; j < check->n_out; j++) {
        if (!operand_alloc(&check->expected[j], &check->out[j].meta)) {
            return burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
        }
    }
    if (d->eval == NULL) {
        return burni_fail(err, BURN_E_UNSUPPORTED, "it has no eval");
    }
    burn_eval a = {sizeof(a), check->n_in,     check->n_out, check->attrs_size,
                   check->in, check->expected, check->attrs, err};
    return burni_ask_eval(check->op, &a);
}

static void say_difference(burni_check *check, uint32_t j, uint64_t k, double tolerance)
{
    burn_err err = BURN_ERR_INIT;
    burni_printer p = {err.text, sizeof(err.text), 0};
    print_output(&p, check, j, k);
    burni_print(&p, ", its definition says ");
    print_value(&p, &check->expected[j], k);
    if (check->out[j].f != NULL) {
        burni_print(&p, " (tolerance %.3g eps)", tolerance);
    }
    burni_print(&p, " on %s", check->stream->device->name);
    print_inputs(&p, check);
    condemn_outputs(check, &err);
}

static void compare(burni_check *check)
{
    burn_err err = BURN_ERR_INIT;
    if (evaluate(check, &err) != BURN_OK) {
        burni_check_add(BURNI_SKIPPED, 1);
        burni_log(BURN_LOG_INFO, "check", "%s was not compared: %s", check->op->def.name,
                  err.text);
        return;
    }
    double largest = 1.0;
    double tolerance = allowance(check, &largest);
    burni_check_add(BURNI_COMPARED, 1);
    for (uint32_t j = 0; j < check->n_out; j++) {
        for (uint64_t k = 0; k < check->out[j].n; k++) {
            if (!element_agrees(&check->out[j], &check->expected[j], k, tolerance, largest)) {
                say_difference(check, j, k, tolerance);
                return;
            }
        }
    }
}

void burni_check_outputs(burni_check *check)
{
    burn_err err = BURN_ERR_INIT;
    int32_t rc = check->unread;
    for (uint32_t j = 0; j < check->n_out && rc == BURN_OK; j++) {
        burni_storage *s = check->storages[check->n_in + j];
        const burni_noted *noted = &check->note->operands[check->n_in + j];
        if (s != NULL) {
            rc = burni_check_fetch(&check->out[j], check->stream, s, noted, &err);
        }
    }
    /* What failed has a cause already. */
    if (rc != BURN_OK) {
        return;
    }
    int fine = (check->note->watch & BURNI_WATCH_NAN) == 0 || check_finite(check);
    if (fine && (check->note->watch & BURNI_WATCH_COMPARE) != 0 && check->have_inputs) {
        compare(check);
    }
}

/* ---- groups ---------------------------------------------------------------------------------- */

int burni_check_is_same(const burn_eval_operand *a, const burn_eval_operand *b,
                        uint64_t *position)
{
    const void *x = a->f != NULL ? (const void *)a->f : a->u != NULL ? (const void *)a->u : a->i;
    const void *y = b->f != NULL ? (const void *)b->f : b->u != NULL ? (const void *)b->u : b->i;
    for (uint64_t k = 0; k < a->n; k++) {
        uint64_t p;
        uint64_t q;
        memcpy(&p, (const char *)x + k * sizeof(p), sizeof(p));
        memcpy(&q, (const char *)y + k * sizeof(q), sizeof(q));
        if (p != q && !(a->f != NULL && isnan(a->f[k]) && isnan(b->f[k]))) {
            *position = k;
            return 0;
        }
    }
    return 1;
}

void burni_check_blame_group(burni_stream *stream, const burni_launch *launch, const char *names,
                             burni_storage *storage, const burn_eval_operand *got,
                             const burn_eval_operand *expected, uint64_t position)
{
    burn_err err = BURN_ERR_INIT;
    burni_printer p = {err.text, sizeof(err.text), 0};
    burni_print(&p, "burn.fused(%s): the result of %s is ", names, launch->op->def.name);
    print_value(&p, got, position);
    burni_print(&p, " at ");
    print_position(&p, &got->meta, position);
    burni_print(&p, " of ");
    print_operand(&p, &got->meta);
    burni_print(&p, ", run by itself it is ");
    print_value(&p, expected, position);
    burni_print(&p, " on %s", stream->device->name);
    condemn(stream, &err, launch->op, launch->tag, &storage, 1);
}
