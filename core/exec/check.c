/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * check.c - BURN_CHECK: are results finite, are they what the definition says? See check.h.
 *
 * Operands are read back and widened as `eval` wants them (floats to double). Nothing is watched
 * while a check works, so its own copies are neither explained nor checked. A composite is checked
 * after its parts; what a part failed is not told twice.
 */
#include "exec/check.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/printer.h"
#include "base/tag.h"
#include "exec/match.h"
#include "exec/transfer.h"
#include "loader/loader.h"
#include "ops/rules.h"

#include <burn/plugin.h>
#include <burn_sdk/half.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct burni_check {
    uint32_t watch;
    int32_t unread; /* an input that could not be read: nothing can be said */
    burn_eval_operand in[BURN_MAX_OPERANDS];
    burn_eval_operand out[BURN_MAX_OPERANDS]; /* as computed */
    burn_eval_operand expected[BURN_MAX_OPERANDS];
};

static _Atomic uint64_t n_looked_at;
static _Atomic uint64_t n_compared;
static _Atomic uint64_t n_skipped;
static _Atomic uint64_t n_wrong;
static _Atomic int finished;
static _Atomic int option_known; /* the environment has no more to say */

/* ---- the option ------------------------------------------------------------------------------ */

static int32_t parse(const char *value, uint32_t *bits, burn_err *err)
{
    const char *at = value;
    *bits = 0;
    if (value == NULL || value[0] == '\0' || strcmp(value, "off") == 0) {
        return BURN_OK;
    }
    for (;;) {
        size_t n = strcspn(at, ",");
        if (n == 3 && memcmp(at, "nan", n) == 0) {
            *bits |= BURNI_WATCH_NAN;
        } else if (n == 7 && memcmp(at, "compare", n) == 0) {
            *bits |= BURNI_WATCH_COMPARE;
        } else {
            return burni_fail(err, BURN_E_INVALID,
                              "BURN_CHECK=\"%.32s\": expected nan, compare, nan,compare or off",
                              value);
        }
        if (at[n] == '\0') {
            return BURN_OK;
        }
        at += n + 1;
    }
}

int32_t burni_check_set(burni_thread *thread, const char *value, burn_err *err)
{
    uint32_t bits = 0;
    int32_t rc = parse(value, &bits, err);
    if (rc == BURN_OK) {
        atomic_store(&option_known, 1);
        atomic_fetch_and(&burni_watch_all, ~BURNI_CHECKS);
        atomic_fetch_or(&burni_watch_all, bits);
        thread->watch = (thread->watch & ~BURNI_CHECKS) | bits;
    }
    return rc;
}

int32_t burni_check_option(burn_err *err)
{
    uint32_t bits = 0;
    return parse(burni_loader_option("CHECK"), &bits, err);
}

int32_t burni_check_start(burn_err *err)
{
    uint32_t bits = 0;
    int32_t rc = parse(burni_loader_option("CHECK"), &bits, err);
    if (rc == BURN_OK && atomic_exchange(&option_known, 1) == 0) {
        atomic_fetch_or(&burni_watch_all, bits);
    }
    return rc;
}

/* ---- operands on the host -------------------------------------------------------------------- */

static void operand_free(burn_eval_operand *x)
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

/* The elements of a tensor, which is waited for. */
static int32_t operand_read(burn_eval_operand *x, burni_thread *thread, const burn_tensor *t,
                            const burn_meta *meta, burn_err *err)
{
    uint32_t size = burn_dtype_size(meta->dtype);
    if (!operand_alloc(x, meta)) {
        return burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
    }
    unsigned char *bytes = burni_alloc(x->n * size + 1);
    int32_t rc = bytes == NULL ? burni_fail(err, BURN_E_NO_MEMORY, "out of host memory")
                               : burni_download(thread, t, bytes, x->n * size, err);
    for (uint64_t k = 0; rc == BURN_OK && k < x->n; k++) {
        set_bits(x, k, bytes + k * size);
    }
    burni_free(bytes);
    return rc;
}

static int32_t read_inputs(burni_check *check, const burni_emission *e, burn_err *err)
{
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < e->n_in && rc == BURN_OK; i++) {
        burn_eval_operand *x = &check->in[i];
        if (e->meta[i].kind == BURN_TENSOR) {
            rc = operand_read(x, e->thread, e->in[i], &e->meta[i], err);
        } else if (!operand_alloc(x, &e->meta[i])) {
            rc = burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
        } else if (e->meta[i].kind == BURN_IMMEDIATE) {
            set_bits(x, 0, e->immediates[i]);
        }
    }
    return rc;
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
    for (uint64_t k = 0; k < x->n; k++) {
        double value = burni_eval_get(x, k);
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    print_operand(p, &x->meta);
    if (x->n == 1) {
        burni_print(p, " = %.6g", low);
    } else if (x->n > 1) {
        burni_print(p, " from %.6g to %.6g", low, high);
    }
}

static void print_inputs(burni_printer *p, const burni_emission *e, const burni_check *check)
{
    for (uint32_t i = 0; i < e->n_in; i++) {
        if (e->meta[i].kind != BURN_ABSENT) {
            burni_print(p, "; %s ", burni_operand_name(e->op, i, e->n_in));
            print_range(p, &check->in[i]);
        }
    }
}

static void print_value(burni_printer *p, const burn_eval_operand *x, uint64_t k)
{
    if (x->f != NULL) {
        burni_print(p, "%.9g", x->f[k]);
    } else if (x->u != NULL) {
        burni_print(p, "%" PRIu64, x->u[k]);
    } else {
        burni_print(p, "%" PRId64, x->i[k]);
    }
}

/* "log", "log (in softmax)", with the output's name where there are several. */
static void print_op(burni_printer *p, const burni_emission *e)
{
    burni_print(p, "%s", e->op->def.name);
    if (e->thread->frame != NULL) {
        burni_print(p, " (in %s)", e->thread->frame->label);
    }
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* Everything that depends on this call's outputs fails, with this text. */
static void condemn(const burni_emission *e, burn_err *err)
{
    err->code = BURN_E_DATA;
    err->op = e->op->def.id;
    burni_tag_append(e->thread->tag, err);
    burni_cause *cause = burni_cause_new(err);
    for (uint32_t j = 0; j < e->n_out; j++) {
        if (e->out[j] != NULL && e->out[j]->storage != NULL) {
            burni_storage_fail(e->out[j]->storage, cause);
        }
    }
    burni_device_latch(e->device->core, cause);
    burni_cause_unref(cause);
    atomic_fetch_add(&n_wrong, 1);
}

static int is_finite(const burn_eval_operand *x, uint64_t *position)
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
static int check_finite(burni_check *check, burni_emission *e)
{
    uint64_t k = 0;
    uint32_t j = 0;
    burn_err err = BURN_ERR_INIT;
    atomic_fetch_add(&n_looked_at, 1);
    while (j < e->n_out && is_finite(&check->out[j], &k)) {
        j++;
    }
    if (j == e->n_out) {
        return 1;
    }
    /* State ops and comparisons have read them already. */
    int have = (check->watch & BURNI_WATCH_COMPARE) != 0 || e->op->def.effect == BURN_EFFECT_STATE;
    if (!have && read_inputs(check, e, &err) != BURN_OK) {
        return 1;
    }
    for (uint32_t i = 0; i < e->n_in; i++) {
        uint64_t where = 0;
        if (!is_finite(&check->in[i], &where)) {
            return 1;
        }
    }
    burni_printer p = {err.text, sizeof(err.text), 0};
    print_op(&p, e);
    burni_print(&p, ": output %s is ", burni_operand_name(e->op, e->n_in + j, e->n_in));
    print_value(&p, &check->out[j], k);
    burni_print(&p, " at ");
    print_position(&p, &check->out[j].meta, k);
    burni_print(&p, " of ");
    print_operand(&p, &check->out[j].meta);
    print_inputs(&p, e, check);
    condemn(e, &err);
    return 0;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static double epsilon(uint8_t dtype)
{
    switch (dtype) {
    case BURN_F16:
        return 0x1p-10;
    case BURN_BF16:
        return 0x1p-7;
    case BURN_F32:
        return 0x1p-23;
    default:
        return 0x1p-52;
    }
}

/* The largest tolerance that the op's samples ask for, in epsilons. */
static double sample_tolerance(const burni_op *op)
{
    double tolerance = 0.0;
    burn_sample *s = burni_calloc(1, sizeof(*s));
    for (uint32_t i = 0; s != NULL && op->def.samples != NULL; i++) {
        memset(s, 0, sizeof(*s));
        s->struct_size = sizeof(*s);
        if (op->def.samples(i, s) != BURN_OK) {
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
static double allowance(const burni_check *check, const burni_emission *e, double *largest)
{
    uint64_t n = 0;
    *largest = 1.0;
    for (uint32_t i = 0; i < e->n_in && !e->op->pointwise; i++) {
        const burn_eval_operand *x = &check->in[i];
        n = x->n > n ? x->n : n;
        for (uint64_t k = 0; x->f != NULL && k < x->n; k++) {
            *largest = fabs(x->f[k]) > *largest ? fabs(x->f[k]) : *largest;
        }
    }
    return sample_tolerance(e->op) * fmax(1.0, sqrt((double)n / 512.0));
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
        return is_close(got->f[k], expected->f[k], tolerance * epsilon(dtype) * size);
    }
    uint64_t a = got->u != NULL ? got->u[k] : (uint64_t)got->i[k];
    uint64_t b = got->u != NULL ? expected->u[k] : (uint64_t)expected->i[k];
    return a << shift == b << shift;
}

static int32_t evaluate(burni_check *check, const burni_emission *e, burn_err *err)
{
    for (uint32_t j = 0; j < e->n_out; j++) {
        if (!operand_alloc(&check->expected[j], &e->out_meta[j])) {
            return burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
        }
    }
    if (e->op->def.eval == NULL) {
        return burni_fail(err, BURN_E_UNSUPPORTED, "it has no eval");
    }
    burn_eval a = {sizeof(a), e->n_in,         e->n_out, e->attrs_size,
                   check->in, check->expected, e->attrs, err};
    return e->op->def.eval(&a);
}

static void say_difference(burni_check *check, const burni_emission *e, uint32_t j, uint64_t k,
                           double tolerance)
{
    burn_err err = BURN_ERR_INIT;
    burni_printer p = {err.text, sizeof(err.text), 0};
    const burn_eval_operand *got = &check->out[j];
    print_op(&p, e);
    burni_print(&p, ": output %s is ", burni_operand_name(e->op, e->n_in + j, e->n_in));
    print_value(&p, got, k);
    burni_print(&p, " at ");
    print_position(&p, &got->meta, k);
    burni_print(&p, " of ");
    print_operand(&p, &got->meta);
    burni_print(&p, ", its definition says ");
    print_value(&p, &check->expected[j], k);
    if (got->f != NULL) {
        burni_print(&p, " (tolerance %.3g eps)", tolerance);
    }
    burni_print(&p, " on %s", e->device->core->name);
    print_inputs(&p, e, check);
    condemn(e, &err);
}

static void compare(burni_check *check, burni_emission *e)
{
    burn_err err = BURN_ERR_INIT;
    if (evaluate(check, e, &err) != BURN_OK) {
        atomic_fetch_add(&n_skipped, 1);
        burni_log(BURN_LOG_INFO, "check", "%s was not compared: %s", e->op->def.name, err.text);
        return;
    }
    double largest = 1.0;
    double tolerance = allowance(check, e, &largest);
    atomic_fetch_add(&n_compared, 1);
    for (uint32_t j = 0; j < e->n_out; j++) {
        for (uint64_t k = 0; k < check->out[j].n; k++) {
            if (!element_agrees(&check->out[j], &check->expected[j], k, tolerance, largest)) {
                say_difference(check, e, j, k, tolerance);
                return;
            }
        }
    }
}

/* ---- around a call --------------------------------------------------------------------------- */

static void check_free(burni_check *check)
{
    for (uint32_t i = 0; i < BURN_MAX_OPERANDS; i++) {
        operand_free(&check->in[i]);
        operand_free(&check->out[i]);
        operand_free(&check->expected[i]);
    }
    burni_free(check);
}

burni_check *burni_check_begin(burni_emission *e)
{
    uint32_t watch = e->thread->watch;
    if ((watch & BURNI_CHECKS) == 0 || e->op->view) {
        return NULL;
    }
    burni_check *check = burni_calloc(1, sizeof(*check));
    if (check == NULL) {
        return NULL;
    }
    check->watch = watch;
    if ((watch & BURNI_WATCH_COMPARE) != 0 || e->op->def.effect == BURN_EFFECT_STATE) {
        burn_err err = BURN_ERR_INIT;
        e->thread->watch = 0;
        check->unread = read_inputs(check, e, &err);
        e->thread->watch = watch;
    }
    return check;
}

void burni_check_end(burni_check *check, burni_emission *e, int32_t rc)
{
    burn_err err = BURN_ERR_INIT;
    if (check == NULL) {
        return;
    }
    e->thread->watch = 0;
    for (uint32_t j = 0; j < e->n_out && rc == BURN_OK; j++) {
        rc = check->unread;
        if (rc == BURN_OK) {
            rc = operand_read(&check->out[j], e->thread, e->out[j], &e->out_meta[j], &err);
        }
    }
    /* What failed has a cause already. */
    if (rc == BURN_OK) {
        int fine = (check->watch & BURNI_WATCH_NAN) == 0 || check_finite(check, e);
        if (fine && (check->watch & BURNI_WATCH_COMPARE) != 0) {
            compare(check, e);
        }
    }
    e->thread->watch = check->watch;
    check_free(check);
}

burni_check_counts burni_check_report(void)
{
    burni_check_counts counts = {atomic_load(&n_looked_at), atomic_load(&n_compared),
                                 atomic_load(&n_skipped), atomic_load(&n_wrong)};
    return counts;
}

void burni_check_finish(void)
{
    burni_check_counts c = burni_check_report();
    if (c.looked_at + c.compared + c.skipped == 0 || atomic_exchange(&finished, 1) != 0) {
        return;
    }
    burni_log(BURN_LOG_INFO, "check",
              "%" PRIu64 " calls looked at for NaN and infinity, %" PRIu64
              " compared with their definition, %" PRIu64 " could not be, %" PRIu64 " wrong",
              c.looked_at, c.compared, c.skipped, c.wrong);
}
