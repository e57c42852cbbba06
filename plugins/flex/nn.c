/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn.c - loops and conversions that the neural-network kernel files share.
 *
 * Owns the sharing out of items to slots and of ranges to tasks, and the widening of f16, bf16 and
 * f64 to f32 and back. Rules: how work is cut depends on its size only. To add a storage format:
 * one case in each of flex_widen and flex_narrow.
 */
#include "nn.h"

#include <string.h>

typedef struct share {
    int64_t n;
    flex_item_fn fn;
    void *ctx;
    atomic_llong next;
} share;

static void share_slot(void *ctx, uint32_t slot)
{
    share *s = ctx;
    for (;;) {
        int64_t item = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
        if (item >= s->n) {
            return;
        }
        s->fn(s->ctx, item, slot);
    }
}

/* One item for each slot, so that the same thread gets the same data from call to call. */
static void share_one(void *ctx, uint32_t slot)
{
    const share *s = ctx;
    s->fn(s->ctx, slot, slot);
}

void flex_share(int64_t n_items, uint32_t slots, flex_item_fn fn, void *ctx)
{
    slots = (int64_t)slots > n_items ? (uint32_t)(n_items > 0 ? n_items : 0) : slots;
    if (slots <= 1) {
        for (int64_t i = 0; i < n_items; i++) {
            fn(ctx, i, 0);
        }
        return;
    }
    share s = {.n = n_items, .fn = fn, .ctx = ctx};
    atomic_init(&s.next, 0);
    flex_parallel(slots, n_items == (int64_t)slots ? share_one : share_slot, &s);
}

typedef struct ranges {
    int64_t n;
    int64_t grain;
    flex_range_fn fn;
    void *ctx;
} ranges;

static void range_item(void *ctx, int64_t item, uint32_t slot)
{
    (void)slot;
    const ranges *r = ctx;
    int64_t begin = item * r->grain;
    r->fn(r->ctx, begin, flex_min(begin + r->grain, r->n));
}

void flex_ranges(int64_t n, int64_t grain, flex_range_fn fn, void *ctx)
{
    grain = grain > 0 ? grain : 1;
    ranges r = {n, grain, fn, ctx};
    int64_t items = (n + grain - 1) / grain;
    flex_share(items, flex_slots(items), range_item, &r);
}

void flex_widen(float *dst, const void *src, uint8_t dtype, int64_t stride, int64_t n)
{
    if (dtype == BURN_F32) {
        const float *s = src;
        for (int64_t i = 0; i < n; i++) {
            dst[i] = s[i * stride];
        }
    } else if (dtype == BURN_F16) {
        const uint16_t *s = src;
        for (int64_t i = 0; i < n; i++) {
            dst[i] = burn_half_to_float(s[i * stride]);
        }
    } else if (dtype == BURN_BF16) {
        const uint16_t *s = src;
        for (int64_t i = 0; i < n; i++) {
            dst[i] = burn_bfloat_to_float(s[i * stride]);
        }
    } else {
        const double *s = src;
        for (int64_t i = 0; i < n; i++) {
            dst[i] = (float)s[i * stride];
        }
    }
}

void flex_narrow(void *dst, uint8_t dtype, const float *src, int64_t n)
{
    if (dtype == BURN_F32) {
        memcpy(dst, src, (size_t)n * sizeof(float));
    } else if (dtype == BURN_F16) {
        uint16_t *d = dst;
        for (int64_t i = 0; i < n; i++) {
            d[i] = burn_float_to_half(src[i]);
        }
    } else if (dtype == BURN_BF16) {
        uint16_t *d = dst;
        for (int64_t i = 0; i < n; i++) {
            d[i] = burn_float_to_bfloat(src[i]);
        }
    } else {
        double *d = dst;
        for (int64_t i = 0; i < n; i++) {
            d[i] = (double)src[i];
        }
    }
}

void flex_gather_f32(float *dst, const burn_operand *x)
{
    int64_t index[BURN_MAX_RANK] = {0};
    int64_t offset = 0;
    const int64_t *strides = x->strides;
    if (flex_numel(x) == 0) {
        return;
    }
    uint32_t outer = x->rank > 0 ? x->rank - 1u : 0;
    int64_t n = x->rank > 0 ? x->dims[outer] : 1;
    int64_t step = x->rank > 0 ? x->strides[outer] : 1;
    uint32_t size = flex_size(x->dtype);
    do {
        flex_widen(dst, (const char *)x->data + offset * (int64_t)size, x->dtype, step, n);
        dst += n;
    } while (flex_step(outer, x->dims, index, 1, &strides, &offset));
}

const void *flex_line_get(uint8_t dtype, const burn_operand *x, int64_t offset, int64_t step,
                          int64_t n, void *scratch)
{
    const char *data = (const char *)x->data + offset * (int64_t)flex_size(x->dtype);
    if (x->dtype == dtype && step == 1) {
        return data;
    }
    if (dtype == BURN_F32) {
        flex_widen(scratch, data, x->dtype, step, n);
        return scratch;
    }
    double *line = scratch;
    for (int64_t i = 0; i < n; i++) {
        line[i] = flex_load_f64(data, i * step, x->dtype);
    }
    return scratch;
}

void *flex_line_open(uint8_t dtype, const burn_operand *x, int64_t offset, int64_t step,
                     void *scratch)
{
    if (x->dtype == dtype && step == 1) {
        return (char *)x->data + offset * (int64_t)flex_size(x->dtype);
    }
    return scratch;
}

void flex_line_put(uint8_t dtype, const burn_operand *x, int64_t offset, int64_t step, int64_t n,
                   const void *line)
{
    char *data = (char *)x->data + offset * (int64_t)flex_size(x->dtype);
    if (x->dtype == dtype && step == 1) {
        return; /* written in place */
    }
    if (dtype == BURN_F32 && step == 1) {
        flex_narrow(data, x->dtype, line, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double value = flex_load_f64(line, i, dtype);
        flex_store_f64(data, i * step, x->dtype, value);
    }
}
