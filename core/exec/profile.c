/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * profile.c - when times are taken, and of what. See profile.h.
 *
 * Three clocks. A synchronous device: the host's, around the launch. One that offers
 * burn.profile/1: its own, read when it is done. Any other: from the submission until somebody
 * notices the launch's point. To measure something new: a kind of lane in <burn/profile.h>, and who
 * begins and ends it.
 */
#include "exec/profile.h"

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/printer.h"
#include "base/tag.h"
#include "exec/profile_lane.h"
#include "loader/ask.h"
#include "loader/lent.h"
#include "ops/rules.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_LANES  1024u
#define MAX_OPEN   4096u /* launches of a queue whose times are not known yet */
#define LET_PILE   64u   /* so many may wait before a launch asks the device's clock */
_Atomic uint32_t burni_profile_on;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* making lanes, on and off */
static burni_lane *_Atomic lanes[MAX_LANES];
static uint32_t n_lanes;
static const char *folder; /* NULL: lanes are in memory */
static int started;
static int forks_known;
static int warned;

static _Thread_local uint32_t thread_id;

static uint64_t now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static uint32_t me(void)
{
    if (__builtin_expect(thread_id == 0, 0)) {
        thread_id = (uint32_t)gettid();
    }
    return thread_id;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* The lock is held. */
static burni_lane *make_lane(uint32_t kind, uint32_t clock, uint32_t n_open, const char *device,
                             burn_err *err)
{
    if (n_lanes == MAX_LANES) {
        (void)burni_fail(err, BURN_E_LIMIT, "profile: more than %u lanes", MAX_LANES);
        return NULL;
    }
    burni_lane *lane = burni_lane_new(folder, n_lanes, kind, clock, n_open, err);
    if (lane != NULL) {
        (void)snprintf(lane->head->device, sizeof(lane->head->device), "%s", device);
        lane->head->thread = me();
        atomic_store_explicit(&lanes[n_lanes], lane, memory_order_release);
        n_lanes++;
    }
    return lane;
}

const burn_profile_lane *burn_profile_at(uint32_t i)
{
    const burni_lane *lane =
        i < MAX_LANES ? atomic_load_explicit(&lanes[i], memory_order_acquire) : NULL;
    return lane != NULL ? lane->head : NULL;
}

static uint32_t clock_of(const burni_device *device)
{
    if (device->synchronous) {
        return BURN_PROFILE_HOST;
    }
    return device->clock != NULL ? BURN_PROFILE_DEVICE : BURN_PROFILE_POINTS;
}

/* The lock is held. */
static int32_t measure(burni_stream *s, burn_err *err)
{
    const burni_device *device = s->device;
    if (atomic_load(&s->lane) == NULL) {
        uint32_t clock = clock_of(device);
        uint32_t n_open = clock == BURN_PROFILE_HOST ? 0 : MAX_OPEN;
        if (clock == BURN_PROFILE_DEVICE && device->clock->n_slots < n_open) {
            n_open = device->clock->n_slots;
        }
        burni_lane *lane = make_lane(BURN_PROFILE_LAUNCHES, clock, n_open, device->name, err);
        if (lane == NULL) {
            return err->code;
        }
        atomic_store_explicit(&s->lane, lane, memory_order_release);
    }
    atomic_fetch_or(&s->way, BURNI_WAY_MEASURED);
    return BURN_OK;
}

static burni_stream *first_stream(burni_device *device)
{
    (void)pthread_mutex_lock(&device->lock);
    burni_stream *s = device->streams;
    (void)pthread_mutex_unlock(&device->lock);
    return s;
}

/* No launch and no place from here on is measured. A child has no other threads, and may have locks
 * of threads that it has not. */
static void stop(int is_child)
{
    atomic_store(&burni_profile_on, 0);
    for (uint32_t d = 0; burni_device_at(d) != NULL; d++) {
        burni_device *device = burni_device_at(d);
        burni_stream *s = is_child ? device->streams : first_stream(device);
        for (; s != NULL; s = s->next) {
            atomic_fetch_and(&s->way, ~(uint32_t)BURNI_WAY_MEASURED);
        }
    }
}

/* The files stay the parent's: a child that goes on with its memory would write into them. */
static void forked(void)
{
    stop(1);
}

/* The lock is held. */
static int32_t begin(burn_err *err)
{
    int32_t rc = BURN_OK;
    if (!forks_known) {
        forks_known = pthread_atfork(NULL, NULL, forked) == 0;
    }
    atomic_store(&burni_profile_on, 1);
    for (uint32_t d = 0; burni_device_at(d) != NULL && rc == BURN_OK; d++) {
        burni_device *device = burni_device_at(d);
        burni_stream *s = atomic_load(&device->closed) ? NULL : first_stream(device);
        for (; s != NULL && rc == BURN_OK; s = s->next) {
            rc = measure(s, err);
        }
    }
    if (rc != BURN_OK) {
        stop(0);
    }
    return rc;
}

static void warn(const burn_err *err)
{
    if (!warned) {
        warned = 1;
        burni_log(BURN_LOG_WARN, "profile", "not everything is measured: %s", err->text);
    }
}

int32_t burn_profile_begin(burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    burn_err own = BURN_ERR_INIT;
    (void)pthread_mutex_lock(&lock);
    int32_t rc = begin(&own);
    (void)pthread_mutex_unlock(&lock);
    return rc == BURN_OK ? BURN_OK : burni_fail(err, rc, "%s", own.text);
}

void burn_profile_end(void)
{
    burni_thread *thread = burni_thread_current;
    for (uint32_t d = 0; burni_device_at(d) != NULL && thread != NULL; d++) {
        burni_stream *s = thread->streams[d];
        if (s != NULL && !atomic_load(&s->device->closed)) {
            (void)burni_stream_finish(s, NULL);
        }
    }
    (void)pthread_mutex_lock(&lock);
    stop(0);
    for (uint32_t d = 0; burni_device_at(d) != NULL; d++) {
        for (burni_stream *s = first_stream(burni_device_at(d)); s != NULL; s = s->next) {
            burni_profile_collect(s);
        }
    }
    (void)pthread_mutex_unlock(&lock);
}

int32_t burni_profile_start(burn_err *err)
{
    const char *wanted = burni_env("PROFILE");
    struct stat info;
    if (wanted == NULL) {
        return BURN_OK;
    }
    if (wanted[0] != '/' || stat(wanted, &info) != 0 || !S_ISDIR(info.st_mode)) {
        return burni_fail(err, BURN_E_INVALID, "BURN_PROFILE=\"%.100s\": %s", wanted,
                          wanted[0] != '/' ? "not an absolute folder"
                                           : "no folder is there; make it first");
    }
    int32_t rc = BURN_OK;
    (void)pthread_mutex_lock(&lock);
    if (!started) {
        folder = wanted;
        rc = begin(err);
        started = rc == BURN_OK;
        folder = started ? wanted : NULL;
    }
    (void)pthread_mutex_unlock(&lock);
    return rc;
}

void burni_profile_stream(burni_stream *stream)
{
    burn_err err = BURN_ERR_INIT;
    if (atomic_load(&burni_profile_on) == 0) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    if (atomic_load(&burni_profile_on) != 0 && measure(stream, &err) != BURN_OK) {
        warn(&err);
    }
    (void)pthread_mutex_unlock(&lock);
}

/* ---- entries --------------------------------------------------------------------------------- */

static uint64_t hash_launch(const burni_launch *launch, const burn_operand *operands)
{
    uint64_t hash = burni_mix((uintptr_t)launch->resolved->row, launch->tag);
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        const burn_operand *o = &operands[i];
        hash = burni_mix(hash, o->kind | o->dtype << 8 | o->rank << 16);
        for (uint32_t d = 0; o->kind == BURN_TENSOR && d < o->rank; d++) {
            hash = burni_mix(hash ^ hash >> 29, o->dims[d]);
        }
    }
    return hash ^ hash >> 32;
}

static void meta_of(const burn_operand *o, burn_meta *meta)
{
    memset(meta, 0, sizeof(*meta));
    meta->kind = o->kind;
    meta->dtype = o->dtype;
    if (o->kind == BURN_TENSOR) {
        meta->rank = o->rank;
        memcpy(meta->dims, o->dims, o->rank * sizeof(meta->dims[0]));
    }
}

static uint64_t flops_of(const burni_launch *launch, const burn_operand *operands)
{
    burn_meta metas[BURN_MAX_OPERANDS];
    const burn_meta *in[BURN_MAX_OPERANDS];
    if (launch->op->def.flops == NULL || launch->n_in + launch->n_out > BURN_MAX_OPERANDS) {
        return 0;
    }
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        meta_of(&operands[i], &metas[i]);
        in[i] = &metas[i];
    }
    burn_err err = BURN_ERR_INIT;
    burn_infer a = {.struct_size = sizeof(a),
                    .n_in = launch->n_in,
                    .n_out = launch->n_out,
                    .attrs_size = launch->attrs_size,
                    .in = in,
                    .out = &metas[launch->n_in],
                    .attrs = launch->attrs,
                    .err = &err};
    return launch->op->def.flops(&a);
}

/* Each element once, however often a broadcast one is read. */
static uint64_t bytes_of(const burni_launch *launch, const burn_operand *operands)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        const burn_operand *o = &operands[i];
        uint64_t n = burn_dtype_size(o->dtype);
        int skipped = i < 32 && i < launch->n_in && (launch->overwrite >> i & 1) != 0;
        for (uint32_t d = 0; d < o->rank && o->kind == BURN_TENSOR; d++) {
            n *= o->strides[d] != 0 ? (uint64_t)o->dims[d] : 1;
        }
        bytes += o->kind == BURN_TENSOR && !skipped ? n : 0;
    }
    return bytes;
}

static void print_shapes(burn_profile_entry *e, const burni_launch *launch,
                         const burn_operand *operands)
{
    burni_printer p = {e->shapes, sizeof(e->shapes), 0};
    char shape[192];
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        const burn_operand *o = &operands[i];
        const char *gap = i == launch->n_in ? " -> " : ", ";
        burni_print(&p, "%s", i == 0 ? (launch->n_in == 0 ? "-> " : "") : gap);
        if (o->kind == BURN_TENSOR) {
            burni_print(&p, "%s%s", burn_dtype_name(o->dtype),
                        burni_shape_text(shape, sizeof(shape), o->rank, o->dims));
        } else if (o->kind == BURN_IMMEDIATE) {
            burni_print(&p, "%s scalar", burn_dtype_name(o->dtype));
        } else {
            burni_print(&p, "-");
        }
    }
}

static uint32_t entry_of(burni_lane *lane, const burni_launch *launch, const burn_operand *operands)
{
    int is_new = 0;
    uint32_t index = burni_lane_entry(lane, hash_launch(launch, operands), &is_new);
    if (is_new) {
        burn_profile_entry *e = &lane->entries[index];
        (void)snprintf(e->op, sizeof(e->op), "%s", launch->op->def.name);
        (void)snprintf(e->row, sizeof(e->row), "%s", launch->resolved->row->name);
        (void)burni_tag_text(launch->tag, e->place, sizeof(e->place));
        print_shapes(e, launch, operands);
        e->flops = flops_of(launch, operands);
        e->bytes = bytes_of(launch, operands);
    }
    return index;
}

/* ---- times that come later ------------------------------------------------------------------- */

/* A launch whose times were written with more behind them has none. */
static int32_t read_clock(const burni_stream *stream, uint32_t slot, uint64_t *start,
                          uint64_t *end)
{
    const char *backend = stream->device->backend;
    BURNI_LENT(uint64_t) from = {0, {0}};
    BURNI_LENT(uint64_t) to = {0, {0}};
    burni_lend(from.guard);
    burni_lend(to.guard);
    int32_t rc = stream->device->clock->read(stream->queue, slot, &from.it, &to.it);
    if (burni_lent_check(from.guard, backend, "read", "out_start", NULL) != BURN_OK ||
        burni_lent_check(to.guard, backend, "read", "out_end", NULL) != BURN_OK) {
        return BURN_E_ABI;
    }
    *start = from.it;
    *end = to.it;
    return rc;
}

static void collect_clock(burni_lane *lane, const burni_stream *stream)
{
    while (lane->done < lane->taken) {
        const burni_open_launch *o = &lane->open[lane->done % lane->n_open];
        uint64_t start = 0;
        uint64_t end = 0;
        int32_t rc = read_clock(stream, (uint32_t)(lane->done % lane->n_open), &start, &end);
        if (rc == BURN_E_STATE) {
            return;
        }
        if (rc == BURN_OK && !o->failed) {
            burni_lane_add(lane, o->entry, o->thread, start, end);
        } else if (rc != BURN_OK) {
            lane->head->untimed++;
        }
        lane->done++;
    }
}

static void collect_points(burni_lane *lane, const burni_stream *stream)
{
    uint64_t reached = 0;
    if (lane->done == lane->taken ||
        burni_ask_reached(stream->device->api, stream->queue, stream->device->backend, &reached,
                          NULL) != BURN_OK) {
        return;
    }
    uint64_t end = now();
    while (lane->done < lane->taken) {
        const burni_open_launch *o = &lane->open[lane->done % lane->n_open];
        if (o->point > reached) {
            return;
        }
        /* A queue runs in order: it began after the one before it had ended. */
        uint64_t before = lane->head->last_ns;
        burni_lane_add(lane, o->entry, o->thread, o->start_ns > before ? o->start_ns : before, end);
        lane->done++;
    }
}

/* The lane's lock is held. */
static void collect(burni_lane *lane, const burni_stream *stream)
{
    if (lane->head->clock == BURN_PROFILE_DEVICE) {
        collect_clock(lane, stream);
    } else {
        collect_points(lane, stream);
    }
}

void burni_profile_collect(const burni_stream *stream)
{
    burni_lane *lane = atomic_load_explicit(&stream->lane, memory_order_acquire);
    if (lane == NULL || lane->n_open == 0) {
        return;
    }
    (void)pthread_mutex_lock(&lane->lock);
    if (!lane->ended) {
        collect(lane, stream);
    }
    (void)pthread_mutex_unlock(&lane->lock);
}

void burni_profile_leave(burni_stream *stream)
{
    burni_lane *lane = atomic_load_explicit(&stream->lane, memory_order_acquire);
    atomic_fetch_and(&stream->way, ~(uint32_t)BURNI_WAY_MEASURED);
    if (lane == NULL || lane->n_open == 0) {
        return;
    }
    uint64_t point = atomic_load_explicit(&stream->submitted, memory_order_acquire);
    if (point > 0) {
        (void)burni_stream_wait(stream, point, NULL);
    }
    (void)pthread_mutex_lock(&lane->lock);
    collect(lane, stream);
    lane->head->untimed += lane->taken - lane->done;
    lane->done = lane->taken;
    lane->ended = 1;
    (void)pthread_mutex_unlock(&lane->lock);
}

/* Room for one more; the lane's lock is not held. */
static int has_room(burni_lane *lane, const burni_stream *stream)
{
    (void)pthread_mutex_lock(&lane->lock);
    if (lane->head->clock == BURN_PROFILE_POINTS || lane->taken - lane->done >= LET_PILE) {
        collect(lane, stream);
    }
    int room = lane->taken - lane->done < lane->n_open;
    lane->head->untimed += room ? 0 : 1;
    (void)pthread_mutex_unlock(&lane->lock);
    return room;
}

static void keep_open(burni_lane *lane, const burni_stream *stream, const burni_measure *m,
                      int32_t rc)
{
    (void)pthread_mutex_lock(&lane->lock);
    burni_open_launch *o = &lane->open[lane->taken % lane->n_open];
    o->start_ns = m->start_ns;
    o->point = atomic_load_explicit(&stream->submitted, memory_order_relaxed) + 1;
    o->entry = m->entry;
    o->thread = me();
    o->failed = rc != BURN_OK;
    lane->taken++;
    (void)pthread_mutex_unlock(&lane->lock);
}

/* ---- around a launch ------------------------------------------------------------------------- */

void burni_profile_before(burni_stream *stream, const burni_launch *launch,
                          const burn_operand *operands, burni_measure *m)
{
    burni_lane *lane = atomic_load_explicit(&stream->lane, memory_order_acquire);
    m->lane = NULL;
    if (lane == NULL) {
        return;
    }
    m->entry = entry_of(lane, launch, operands);
    if (lane->n_open > 0 && !has_room(lane, stream)) {
        return;
    }
    m->lane = lane;
    if (lane->head->clock == BURN_PROFILE_DEVICE) {
        m->slot = (uint32_t)(lane->taken % lane->n_open);
        m->begun = stream->device->clock->begin(stream->queue, m->slot) == BURN_OK;
    }
    m->start_ns = now();
}

void burni_profile_after(burni_stream *stream, const burni_measure *m, int32_t rc)
{
    burni_lane *lane = m->lane;
    if (lane == NULL) {
        return;
    }
    if (lane->head->clock == BURN_PROFILE_HOST) {
        uint64_t end = now();
        if (rc == BURN_OK) {
            burni_lane_add(lane, m->entry, me(), m->start_ns, end);
        }
        return;
    }
    if (lane->head->clock == BURN_PROFILE_POINTS) {
        if (rc == BURN_OK) {
            keep_open(lane, stream, m, rc);
        }
        return;
    }
    if (m->begun && stream->device->clock->end(stream->queue, m->slot) == BURN_OK) {
        keep_open(lane, stream, m, rc);
    } else if (rc == BURN_OK) {
        (void)pthread_mutex_lock(&lane->lock);
        lane->head->untimed++;
        (void)pthread_mutex_unlock(&lane->lock);
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

static burni_lane *places_of(burni_thread *thread)
{
    burn_err err = BURN_ERR_INIT;
    if (thread->places != NULL) {
        return thread->places;
    }
    (void)pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n_lanes && thread->places == NULL; i++) {
        burni_lane *lane = atomic_load(&lanes[i]);
        if (lane->idle) {
            lane->idle = 0;
            thread->places = lane;
        }
    }
    if (thread->places == NULL) {
        thread->places = make_lane(BURN_PROFILE_PLACES, BURN_PROFILE_HOST, 0, "", &err);
    }
    if (thread->places == NULL) {
        warn(&err);
    }
    (void)pthread_mutex_unlock(&lock);
    return thread->places;
}

void burni_profile_place_begin(burni_thread *thread)
{
    burni_lane *lane = places_of(thread);
    uint32_t depth = thread->n_tags - 1;
    if (lane != NULL && depth < BURNI_MAX_TAGS) {
        /* Without a name, it is the place that it is in. */
        int is_new = thread->tag != thread->tags[depth];
        lane->begun[depth].tag = thread->tag;
        lane->begun[depth].start_ns = is_new ? now() : 0;
    }
}

void burni_profile_place_end(burni_thread *thread)
{
    burni_lane *lane = thread->places;
    uint32_t depth = thread->n_tags - 1;
    if (lane == NULL || depth >= BURNI_MAX_TAGS) {
        return;
    }
    /* Lines (burn_trace_begin) are on the same stack, and are no places. */
    burni_begun_place *b = &lane->begun[depth];
    if (b->start_ns == 0 || b->tag != thread->tag) {
        return;
    }
    int is_new = 0;
    uint32_t entry = burni_lane_entry(lane, burni_mix(1, b->tag), &is_new);
    if (is_new) {
        burn_profile_entry *e = &lane->entries[entry];
        (void)burni_tag_text(b->tag, e->place, sizeof(e->place));
    }
    burni_lane_add(lane, entry, me(), b->start_ns, now());
    b->start_ns = 0;
}

void burni_profile_thread_exit(burni_thread *thread)
{
    if (thread->places != NULL) {
        (void)pthread_mutex_lock(&lock);
        memset(thread->places->begun, 0, sizeof(thread->places->begun));
        thread->places->idle = 1;
        (void)pthread_mutex_unlock(&lock);
        thread->places = NULL;
    }
}

/* A program that never shuts down: what has ended by now is taken, the rest is not waited for. */
__attribute__((destructor)) static void at_exit(void)
{
    for (uint32_t d = 0; burni_device_at(d) != NULL; d++) {
        burni_device *device = burni_device_at(d);
        burni_stream *s = atomic_load(&device->closed) ? NULL : first_stream(device);
        for (; s != NULL; s = s->next) {
            burni_profile_collect(s);
        }
    }
}
