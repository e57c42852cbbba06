/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plans.c - the report of burn/plans.h.
 *
 * Plans belong to a stream and are read under its lock, by the thread whose stream it is. A thread
 * that has made no call on the device has no stream, and no plans: zeros, no error.
 */
#include "api/call.h"
#include "base/error.h"
#include "base/printer.h"
#include "exec/plan.h"

#include <burn/plans.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* As large as the struct was at first. */
#define FIRST_TOTALS offsetof(burn_plan_totals, found)

static burni_stream *stream_of(burn_device *device)
{
    const burni_thread *thread = burni_thread_current;
    return thread != NULL ? thread->streams[device->core->index] : NULL;
}

/* Plan i, under the lock; 0: there is none. */
static int read_plan(burni_stream *stream, uint32_t i, burn_plan_info *out)
{
    memset(out, 0, sizeof(*out));
    out->struct_size = sizeof(*out);
    return burni_plan_describe(stream, i, out);
}

static void read_all(burni_stream *stream, burn_plan_totals *out)
{
    burn_plan_info info;
    uint32_t last = burni_plans_count(stream, out);
    out->launches = stream->n_launched;
    out->dropped = stream->n_dropped;
    (void)read_plan(stream, last, &out->last);
    (void)read_plan(stream, last, &out->largest);
    while (read_plan(stream, out->n_plans, &info)) {
        out->largest = info.peak_bytes > out->largest.peak_bytes ? info : out->largest;
        out->n_plans++;
    }
}

int32_t burn_plan_report(burn_device *device, burn_plan_totals *out, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (device == NULL) {
        return burni_fail(err, BURN_E_INVALID, "plans: the device is NULL");
    }
    if (burni_check_output("plans", out, FIRST_TOTALS, err) != BURN_OK) {
        return err->code;
    }
    burni_stream *stream = stream_of(device);
    burn_plan_totals totals;
    memset(&totals, 0, sizeof(totals));
    if (stream != NULL) {
        int locked = burni_stream_lock(stream);
        read_all(stream, &totals);
        burni_stream_unlock(stream, locked);
    }
    totals.struct_size = out->struct_size;
    memcpy(out, &totals,
           totals.struct_size < sizeof(totals) ? totals.struct_size : sizeof(totals));
    return BURN_OK;
}

int32_t burn_plan_at(burn_device *device, uint32_t i, burn_plan_info *out, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (device == NULL) {
        return burni_fail(err, BURN_E_INVALID, "plans: the device is NULL");
    }
    if (burni_check_output("plans", out, sizeof(*out), err) != BURN_OK) {
        return err->code;
    }
    burni_stream *stream = stream_of(device);
    int found = 0;
    if (stream != NULL) {
        int locked = burni_stream_lock(stream);
        found = read_plan(stream, i, out);
        burni_stream_unlock(stream, locked);
    }
    return found ? BURN_OK
                 : burni_fail(err, BURN_E_NOT_FOUND, "plans: there is no plan %u on %s", i,
                              device->core->name);
}

size_t burn_plan_text(burn_device *device, char *text, size_t size)
{
    burni_printer p = {text, text != NULL ? size : 0, 0};
    if (text != NULL && size > 0) {
        text[0] = '\0';
    }
    burni_stream *stream = device != NULL ? stream_of(device) : NULL;
    if (stream != NULL) {
        int locked = burni_stream_lock(stream);
        burni_plans_print(stream, &p);
        burni_stream_unlock(stream, locked);
    } else if (device != NULL) {
        burni_print(&p, "%s: this thread has made no calls\n", burn_device_name(device));
    }
    return p.used;
}

void burn_memory_peak_reset(burn_device *device)
{
    if (device == NULL) {
        return;
    }
    burni_device *core = device->core;
    (void)pthread_mutex_lock(&core->lock);
    for (burni_stream *s = core->streams; s != NULL; s = s->next) {
        int64_t now = atomic_load_explicit(&s->cache.in_use, memory_order_relaxed) -
                      atomic_load_explicit(&s->cache.given_back, memory_order_relaxed);
        atomic_store_explicit(&s->cache.peak, now, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&core->lock);
    atomic_store(&core->pool.peak_reserved, atomic_load(&core->pool.reserved));
}
