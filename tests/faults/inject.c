/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * inject.c - the counting table and rows. See inject.h.
 *
 * A row's launch has no context, so there is a trampoline per row, and rows of one op at a time are
 * replaced, those for f32. Lists of rows are replaced as the core itself replaces them: a new list,
 * then a new version.
 */
#include "inject.h"

#include "base/error.h"
#include "exec/launch.h"
#include "exec/rows.h"
#include "exec/stream.h"

#define MAX_ROWS 8

typedef struct plan {
    _Atomic int64_t calls;
    _Atomic int64_t first; /* 0: none fails */
    _Atomic int64_t last;
    _Atomic int32_t code;
} plan;

static plan plans[N_INJECT];
static const burn_device_api *real;
static burn_device_api table;

#define INJECT_TEXT(name, text) text,
static const char *const names[N_INJECT] = {INJECT_ENTRIES(INJECT_TEXT)};
#undef INJECT_TEXT

static int32_t count(int entry, burn_err *err)
{
    plan *p = &plans[entry];
    int64_t now = atomic_fetch_add(&p->calls, 1) + 1;
    int64_t first = atomic_load(&p->first);
    if (first == 0 || now < first || now > atomic_load(&p->last)) {
        return BURN_OK;
    }
    return burni_fail(err, atomic_load(&p->code), "injected: %s %lld", names[entry],
                      (long long)now);
}

void inject_fail(int entry, int64_t n, int64_t more, int32_t code)
{
    plan *p = &plans[entry];
    atomic_store(&p->calls, 0);
    atomic_store(&p->code, code);
    atomic_store(&p->last, n + more);
    atomic_store(&p->first, n);
}

int64_t inject_count(int entry)
{
    return atomic_load(&plans[entry].calls);
}

/* ---- the table ------------------------------------------------------------------------------- */

static int32_t take(burn_backend_device *device, uint32_t kind, uint64_t bytes, burn_buffer **out,
                    void **out_host, burn_err *err)
{
    int32_t rc = count(INJECT_ALLOC, err);
    return rc != BURN_OK ? rc : real->alloc(device, kind, bytes, out, out_host, err);
}

static int32_t copy_in(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset, const void *src,
                       uint64_t bytes, burn_err *err)
{
    int32_t rc = count(INJECT_COPY_IN, err);
    return rc != BURN_OK ? rc : real->copy_in(queue, dst, dst_offset, src, bytes, err);
}

static int32_t copy_out(burn_queue *queue, void *dst, burn_buffer *src, uint64_t src_offset,
                        uint64_t bytes, burn_err *err)
{
    int32_t rc = count(INJECT_COPY_OUT, err);
    return rc != BURN_OK ? rc : real->copy_out(queue, dst, src, src_offset, bytes, err);
}

static int32_t fill(burn_queue *queue, burn_buffer *dst, uint64_t offset, uint64_t bytes,
                    uint8_t byte, burn_err *err)
{
    int32_t rc = count(INJECT_FILL, err);
    return rc != BURN_OK ? rc : real->fill(queue, dst, offset, bytes, byte, err);
}

static int32_t signal_point(burn_queue *queue, uint64_t value, burn_err *err)
{
    int32_t rc = count(INJECT_SIGNAL, err);
    return rc != BURN_OK ? rc : real->signal(queue, value, err);
}

static int32_t wait_point(burn_queue *queue, burn_queue *other, uint64_t value, burn_err *err)
{
    int32_t rc = count(INJECT_WAIT, err);
    return rc != BURN_OK ? rc : real->wait(queue, other, value, err);
}

void inject_into(burn_device *device)
{
    real = device->core->api;
    table = *real;
    table.alloc = take;
    table.copy_in = copy_in;
    table.copy_out = copy_out;
    table.fill = fill;
    table.signal = signal_point;
    table.wait = wait_point;
    device->core->api = &table;
    device->core->pool.api = &table;
}

void inject_no_pages(burn_device *device)
{
    device->core->pool.limits.suballoc_align = 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static burn_launch_fn launches[MAX_ROWS];
static burn_row copies[MAX_ROWS];

static int32_t launch_row(uint32_t row, const burn_call *call)
{
    int32_t rc = count(INJECT_LAUNCH, call->err);
    return rc != BURN_OK ? rc : launches[row](call);
}

static int32_t launch_0(const burn_call *call)
{
    return launch_row(0, call);
}

static int32_t launch_1(const burn_call *call)
{
    return launch_row(1, call);
}

static int32_t launch_2(const burn_call *call)
{
    return launch_row(2, call);
}

static int32_t launch_3(const burn_call *call)
{
    return launch_row(3, call);
}

static int32_t launch_4(const burn_call *call)
{
    return launch_row(4, call);
}

static int32_t launch_5(const burn_call *call)
{
    return launch_row(5, call);
}

static int32_t launch_6(const burn_call *call)
{
    return launch_row(6, call);
}

static int32_t launch_7(const burn_call *call)
{
    return launch_row(7, call);
}

static const burn_launch_fn trampolines[MAX_ROWS] = {launch_0, launch_1, launch_2, launch_3,
                                                     launch_4, launch_5, launch_6, launch_7};

/* The original rows, to be put back when the next op is taken. */
static const burni_op *taken;
static burni_rows *original;

static void put_list(burn_device *device, const burni_op *op, burni_rows *list)
{
    atomic_store(&device->core->rows[op->index], list);
    atomic_fetch_add(&device->core->rows_version, 1);
}

void inject_no_fusion(burn_device *device, int on)
{
    static burni_rows none;
    static burni_rows *rows;
    const burni_op *op = burni_op_find(BURN_OP_FUSED);
    burni_rows *now = atomic_load(&device->core->rows[op->index]);
    if (on && now != NULL && now != &none) {
        rows = now;
        put_list(device, op, &none);
    } else if (!on && now == &none) {
        put_list(device, op, rows);
    }
}

int inject_rows(burn_device *device, uint64_t op_id)
{
    static burni_rows fresh;
    static const burn_row *rows[MAX_ROWS];
    if (taken != NULL) {
        put_list(device, taken, original);
        taken = NULL;
    }
    const burni_op *op = burni_op_find(op_id);
    burni_rows *old = atomic_load(&device->core->rows[op->index]);
    if (old == NULL || old->count == 0) {
        return 0;
    }
    fresh = *old;
    fresh.rows = rows;
    fresh.count = 0;
    for (uint32_t i = 0; i < old->count && fresh.count < MAX_ROWS; i++) {
        uint32_t n = fresh.count;
        if (old->rows[i]->n_slots > 0 && (old->rows[i]->slots[0].dtypes[0] >> BURN_F32 & 1) != 0) {
            copies[n] = *old->rows[i];
            launches[n] = old->rows[i]->launch;
            copies[n].launch = trampolines[n];
            rows[fresh.count++] = &copies[n];
        }
    }
    if (fresh.count == 0) {
        return 0;
    }
    taken = op;
    original = old;
    put_list(device, op, &fresh);
    return 1;
}

/* ---- rows that work in place ----------------------------------------------------------------- */

enum { MAX_SHARED = 4096 };

static _Atomic int64_t n_shared;

static int32_t prepare_in_place(const burn_call *call, burn_prepared *out)
{
    (void)call;
    out->in_place_mask = 1;
    out->workspace_bytes = MAX_SHARED;
    out->workspace_align = 64;
    return BURN_OK;
}

/* The device's own kernel writes elsewhere, and the result is copied to where the input was. */
static int32_t launch_in_place(const burn_call *call)
{
    burn_operand operands[2] = {*burn_call_operand(call, 0), *burn_call_operand(call, 1)};
    burn_operand *out = &operands[1];
    if (operands[0].buffer != out->buffer || operands[0].offset != out->offset) {
        return launch_row(0, call);
    }
    atomic_fetch_add(&n_shared, 1);
    uint64_t bytes = (uint64_t)burni_operand_numel(out) * burn_dtype_size(out->dtype);
    burn_buffer *buffer = out->buffer;
    uint64_t offset = out->offset;
    out->buffer = call->workspace->buffer;
    out->offset = call->workspace->offset;
    out->data = call->workspace->data;
    burn_call elsewhere = *call;
    elsewhere.operands = operands;
    elsewhere.operand_stride = sizeof(operands[0]);
    int32_t rc = bytes <= MAX_SHARED ? launch_row(0, &elsewhere) : BURN_E_LIMIT;
    return rc != BURN_OK ? rc
                         : real->copy_within(call->queue, buffer, offset, out->buffer, out->offset,
                                             bytes, call->err);
}

int inject_in_place(burn_device *device, uint64_t op)
{
    if (!inject_rows(device, op) || copies[0].n_slots != 2 || copies[0].prepare != NULL) {
        return 0;
    }
    copies[0].prepare = prepare_in_place;
    copies[0].launch = launch_in_place;
    atomic_store(&n_shared, 0);
    return 1;
}

int64_t inject_shared(void)
{
    return atomic_load(&n_shared);
}

/* ---- looking at launches --------------------------------------------------------------------- */

static burn_row spy;
static burn_launch_fn spied_launch;
static int32_t (*spied_check)(const burn_call *call);
static int32_t (*extra_check)(const burn_call *call);
static const burni_op *spied_op;
static burni_rows *spied_rows;
static _Atomic int64_t n_spied;
static _Atomic uint32_t last_math;
static _Atomic uint64_t last_tag;

static int32_t launch_spy(const burn_call *call)
{
    atomic_store(&last_math, call->flags);
    atomic_store(&last_tag, call->tag);
    atomic_fetch_add(&n_spied, 1);
    return spied_launch(call);
}

static int32_t check_spy(const burn_call *call)
{
    int32_t rc = extra_check != NULL ? extra_check(call) : BURN_OK;
    return rc == BURN_OK && spied_check != NULL ? spied_check(call) : rc;
}

int64_t inject_spied(uint32_t *out_math, uint64_t *out_tag)
{
    *out_math = atomic_load(&last_math);
    *out_tag = atomic_load(&last_tag);
    return atomic_load(&n_spied);
}

int inject_spy(burn_device *device, uint64_t op_id, int32_t (*check)(const burn_call *call))
{
    static burni_rows fresh;
    static const burn_row *rows[MAX_ROWS + 1];
    if (spied_op != NULL) {
        put_list(device, spied_op, spied_rows);
        spied_op = NULL;
    }
    const burni_op *op = op_id != 0 ? burni_op_find(op_id) : NULL;
    burni_rows *old = op != NULL ? atomic_load(&device->core->rows[op->index]) : NULL;
    const burn_row *last = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; old != NULL && i < old->count && n < MAX_ROWS; i++) {
        int usual = (old->rows[i]->flags & BURN_ROW_TUNED_ONLY) == 0;
        if (usual && old->rows[i]->n_slots > 0 &&
            (old->rows[i]->slots[0].dtypes[0] >> BURN_F32 & 1) != 0) {
            last = old->rows[i];
            rows[++n] = old->rows[i];
        }
    }
    if (last == NULL) {
        return 0;
    }
    spy = *last;
    spied_launch = last->launch;
    spied_check = last->check;
    extra_check = check;
    spy.launch = launch_spy;
    spy.check = check_spy;
    rows[0] = &spy;
    fresh = *old;
    fresh.rows = rows;
    fresh.count = n + 1;
    spied_op = op;
    spied_rows = old;
    atomic_store(&n_spied, 0);
    put_list(device, op, &fresh);
    return 1;
}

void inject_forget_rows(burn_device *device)
{
    burni_stream *s = burni_stream_get(burni_thread_get(), device->core, NULL);
    if (s != NULL) {
        burni_again_forget(s);
        burni_resolver_clear(&s->resolver, device->core);
    }
}

int inject_setup(void **state)
{
    static int ready;
    (void)core_setup(state);
    if (!ready) {
        inject_into(dev);
        inject_no_pages(dev);
        ready = 1;
    }
    return 0;
}
