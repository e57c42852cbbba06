/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fault.c - fault words and snapshots. See fault.h.
 */
#include "exec/fault.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/tag.h"
#include "exec/match.h"
#include "exec/origin.h"
#include "loader/ask.h"

#include <string.h>

/* So many open words may stand behind one launch before it waits for a look at them. */
#define MAX_PARENTS 64
/* So many words may wait for a look before the stream pauses for one. */
#define MAX_OPEN_FAULTS 1024

/* ---- faults ---------------------------------------------------------------------------------- */

/* A fault that was looked at needs its parents no more; so chains stay short. */
static void drop_parents(burni_fault *f)
{
    for (uint32_t i = 0; i < f->n_parents; i++) {
        burni_fault_unref(f->parents[i]);
    }
    f->n_parents = 0;
}

burni_fault *burni_fault_ref(burni_fault *fault)
{
    if (fault != NULL) {
        atomic_fetch_add_explicit(&fault->refs, 1, memory_order_relaxed);
    }
    return fault;
}

void burni_fault_unref(burni_fault *fault)
{
    if (fault == NULL || atomic_fetch_sub_explicit(&fault->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    drop_parents(fault);
    if (fault->block != NULL) {
        burni_device *device = fault->stream->device;
        burni_pool_give_shared(&device->pool, fault->block, burni_snapshot_take(device));
    }
    burni_cause_unref(fault->cause);
    burni_origin_unref(fault->origin);
    burni_free(fault);
}

/* Faults found behind the inputs of a launch, with a reference each. */
typedef struct found {
    burni_fault *faults[MAX_PARENTS];
    uint32_t n;
    uint32_t full; /* there was no room for one */
} found;

static void note(found *list, burni_fault *f)
{
    if (atomic_load_explicit(&f->state, memory_order_acquire) == 1) {
        return;
    }
    for (uint32_t k = 0; k < list->n; k++) {
        if (list->faults[k] == f) {
            return;
        }
    }
    if (list->n == MAX_PARENTS) {
        list->full = 1;
        return;
    }
    atomic_fetch_add(&f->refs, 1);
    list->faults[list->n++] = f;
}

static void forget(found *list)
{
    for (uint32_t k = 0; k < list->n; k++) {
        burni_fault_unref(list->faults[k]);
    }
    list->n = 0;
}

/* Words behind the inputs that nobody looked at yet, or that failed, each once. A fault without a
 * word of its own only joins others: those are taken, so that joins never chain. What is
 * overwritten unread passes nothing on. */
static void collect(burni_device *device, const burni_launch *launch, found *list)
{
    list->n = 0;
    list->full = 0;
    for (uint32_t i = 0; i < launch->n_in; i++) {
        burni_storage *s = launch->storages[i];
        burni_fault *f =
            s != NULL && (i >= 32 || (launch->overwrite >> i & 1) == 0) ? s->fault : NULL;
        if (f == NULL) {
            continue;
        }
        if (f->block != NULL) {
            note(list, f);
            continue;
        }
        (void)pthread_mutex_lock(&device->fault_lock);
        for (uint32_t k = 0; k < f->n_parents; k++) {
            note(list, f->parents[k]);
        }
        (void)pthread_mutex_unlock(&device->fault_lock);
    }
}

static int32_t add_word(burni_stream *stream, burni_fault *f, burn_operand *word, burn_err *err)
{
    const burn_device_api *api = stream->device->api;
    f->block = burni_pool_take(&stream->device->pool, &stream->cache, sizeof(burn_fault), err);
    if (f->block == NULL) {
        return BURN_E_NO_MEMORY;
    }
    memset(word, 0, sizeof(*word));
    word->kind = BURN_TENSOR;
    word->dtype = BURN_U8;
    word->buffer = f->block->page->buffer;
    word->offset = f->block->offset;
    word->data = f->block->page->host != NULL ? f->block->page->host + f->block->offset : NULL;
    int32_t rc = api->fill(stream->queue, word->buffer, word->offset, sizeof(burn_fault), 0,
                           &stream->sink.err);
    return burni_stream_said(stream, "fill", rc, err);
}

static burni_cause *cause_from_word(const burni_fault *f, const burn_fault *word)
{
    burn_err err = BURN_ERR_INIT;
    const char *name = f->op->def.name;
    const char *operand = burni_operand_name(f->op, word->operand, UINT32_MAX);
    int is_value = word->code == BURN_E_DATA || word->code == BURN_E_INVALID;
    if (is_value && word->bound > 0) {
        (void)burni_fail(&err, word->code, "%s: %s %lld at position %lld is not in 0..%lld", name,
                         operand, (long long)word->value, (long long)word->position,
                         (long long)word->bound - 1);
    } else if (word->code == BURN_E_DATA) {
        (void)burni_fail(&err, word->code, "%s: bad value %lld at position %lld of %s", name,
                         (long long)word->value, (long long)word->position, operand);
    } else {
        (void)burni_fail(&err, word->code, "%s: the kernel failed: %s", name,
                         burn_status_text(word->code));
    }
    err.op = f->op->def.id;
    burni_origin_tell(f->origin, &err);
    burni_tag_append(f->tag, &err);
    return burni_cause_new(&err);
}

/* A copy into its word that nobody could wait for may still come. Under the fault lock. */
static void keep_for_good(burni_fault *f)
{
    burni_device *device = f->stream->device;
    atomic_fetch_add(&f->refs, 1);
    f->is_stuck = 1;
    f->next_stuck = device->stuck_faults;
    device->stuck_faults = f;
}

/* Looks at a fault and those it depends on, under the fault lock and the stream's. Returns the
 * first cause, NULL when all is well. */
static burni_cause *look(burni_stream *stream, burni_fault *f, burn_err *err, int32_t *rc)
{
    int32_t state = atomic_load_explicit(&f->state, memory_order_acquire);
    if (state != 0) {
        return state == 2 ? f->cause : NULL;
    }
    for (uint32_t i = 0; i < f->n_parents; i++) {
        burni_cause *cause = look(stream, f->parents[i], err, rc);
        if (cause != NULL) {
            f->cause = burni_cause_ref(cause);
            atomic_store_explicit(&f->state, 2, memory_order_release);
        }
        if (cause != NULL || *rc != BURN_OK) {
            return cause;
        }
    }
    drop_parents(f);
    if (f->block == NULL) {
        atomic_store_explicit(&f->state, 1, memory_order_release);
        return NULL;
    }
    const burn_device_api *api = stream->device->api;
    uint64_t point = 0;
    int is_queued = 0;
    burn_err *sink = &stream->sink.err;
    *rc = burni_stream_wait(f->stream, f->point, err);
    if (*rc == BURN_OK) {
        *rc = api->copy_out(stream->queue, &f->word, f->block->page->buffer, f->block->offset,
                            sizeof(f->word), sink);
        *rc = burni_stream_said(stream, "copy_out", *rc, err);
        is_queued = *rc == BURN_OK;
    }
    if (*rc == BURN_OK) {
        *rc = burni_stream_signal(stream, &point, err);
    }
    if (*rc == BURN_OK) {
        *rc = burni_stream_wait(stream, point, err);
    }
    if (is_queued && *rc != BURN_OK && !f->is_stuck) {
        keep_for_good(f);
    }
    if (*rc != BURN_OK || f->word.code == 0) {
        if (*rc == BURN_OK) {
            atomic_store_explicit(&f->state, 1, memory_order_release);
        }
        return NULL;
    }
    f->cause = cause_from_word(f, &f->word);
    burni_device_latch(stream->device, f->cause, f->stream, f->age);
    atomic_store_explicit(&f->state, 2, memory_order_release);
    return f->cause;
}

/* The words behind a launch, looked at first when there are too many of them. */
static int32_t collect_few(burni_stream *stream, const burni_launch *launch, found *list,
                           burn_err *err)
{
    burni_device *device = stream->device;
    int32_t rc = BURN_OK;
    if (stream->n_open_faults >= MAX_OPEN_FAULTS) {
        rc = burni_stream_look_at_faults(stream, err);
    }
    collect(device, launch, list);
    while (rc == BURN_OK && list->full) {
        burni_cause *cause = NULL;
        (void)pthread_mutex_lock(&device->fault_lock);
        for (uint32_t k = 0; k < list->n && rc == BURN_OK && cause == NULL; k++) {
            cause = look(stream, list->faults[k], err, &rc);
        }
        (void)pthread_mutex_unlock(&device->fault_lock);
        if (cause != NULL) {
            /* One failure is enough: the launch depends on it. */
            list->full = 0;
            return rc;
        }
        forget(list);
        collect(device, launch, list);
    }
    return rc;
}

static burni_fault *fault_new(burni_stream *stream, const burni_launch *launch, const found *list)
{
    burni_fault *f = burni_calloc(1, sizeof(*f) + list->n * sizeof(burni_fault *));
    if (f == NULL) {
        return NULL;
    }
    atomic_init(&f->refs, 1);
    f->stream = stream;
    f->op = launch->op;
    f->age = burni_stream_age(stream);
    f->tag = launch->tag;
    f->origin = burni_origin_ref(launch->origin);
    for (uint32_t i = 0; i < list->n; i++) {
        atomic_fetch_add(&list->faults[i]->refs, 1);
        f->parents[f->n_parents++] = list->faults[i];
    }
    return f;
}

static int32_t make_fault(burni_stream *stream, const burni_launch *launch, const found *list,
                          burni_fault **out, burn_operand *word, burn_err *err)
{
    int own = (launch->resolved->row->flags & BURN_ROW_FAULTS) != 0;
    if (!own && list->n == 0) {
        return BURN_OK;
    }
    if (!own && list->n == 1) {
        atomic_fetch_add(&list->faults[0]->refs, 1);
        *out = list->faults[0];
        return BURN_OK;
    }
    burni_fault *f = fault_new(stream, launch, list);
    if (f == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
    }
    if (own) {
        int32_t rc = add_word(stream, f, word, err);
        if (rc != BURN_OK) {
            burni_fault_unref(f);
            return rc;
        }
        atomic_fetch_add(&f->refs, 1);
        /* It is looked at late: what is called from here on must be younger. */
        stream->n_past += stream->at == 0;
        f->next_open = stream->open_faults;
        stream->open_faults = f;
        stream->n_open_faults++;
    }
    *out = f;
    return BURN_OK;
}

int32_t burni_fault_for_launch(burni_stream *stream, const burni_launch *launch, burni_fault **out,
                               burn_operand *word, burn_err *err)
{
    found list;
    *out = NULL;
    int32_t rc = collect_few(stream, launch, &list, err);
    if (rc == BURN_OK) {
        rc = make_fault(stream, launch, &list, out, word, err);
    }
    forget(&list);
    return rc;
}

void burni_fault_attach(const burni_launch *launch, burni_fault *fault, uint64_t point)
{
    if (fault != NULL && fault->block != NULL && fault->point == 0) {
        fault->point = point;
    }
    for (uint32_t j = 0; j < launch->n_out; j++) {
        burni_storage *s = launch->storages[launch->n_in + j];
        if (s == NULL || s->fault == fault) {
            continue;
        }
        burni_fault_unref(s->fault);
        s->fault = fault;
        if (fault != NULL) {
            atomic_fetch_add(&fault->refs, 1);
        }
    }
}

int32_t burni_fault_check_on(burni_stream *stream, burni_storage *s, burn_err *err)
{
    int32_t rc = BURN_OK;
    (void)pthread_mutex_lock(&s->device->fault_lock);
    burni_cause *cause = look(stream, s->fault, err, &rc);
    if (cause != NULL) {
        burni_storage_fail(s, cause);
        burni_cause_write(cause, err);
        rc = cause->code;
    }
    (void)pthread_mutex_unlock(&s->device->fault_lock);
    return rc;
}

int32_t burni_fault_check(burni_thread *thread, burni_storage *s, burn_err *err)
{
    burni_stream *stream = burni_stream_get(thread, s->device, err);
    if (stream == NULL) {
        return BURN_E_NO_MEMORY;
    }
    int locked = burni_stream_lock(stream);
    int32_t rc = burni_fault_check_on(stream, s, err);
    burni_stream_unlock(stream, locked);
    return rc;
}

/* They are added in front. */
static burni_fault *oldest_first(burni_fault *newest)
{
    burni_fault *turned = NULL;
    while (newest != NULL) {
        burni_fault *next = newest->next_open;
        newest->next_open = turned;
        turned = newest;
        newest = next;
    }
    return turned;
}

int32_t burni_stream_look_at_faults(burni_stream *stream, burn_err *err)
{
    int32_t rc = BURN_OK;
    int locked = burni_stream_lock(stream);
    burni_fault *open = oldest_first(stream->open_faults);
    stream->open_faults = NULL;
    stream->n_open_faults = 0;
    (void)pthread_mutex_lock(&stream->device->fault_lock);
    while (open != NULL) {
        burni_fault *f = open;
        open = f->next_open;
        /* A launch that failed before its point was signalled wrote no word. */
        if (f->point != 0 && rc == BURN_OK) {
            (void)look(stream, f, err, &rc);
        }
        burni_fault_unref(f);
    }
    (void)pthread_mutex_unlock(&stream->device->fault_lock);
    burni_stream_unlock(stream, locked);
    return rc;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

typedef struct burni_snapshot {
    uint64_t ticket;
    uint32_t n;
    uint32_t zero;
    struct burni_snapshot *next;
    struct {
        burni_stream *stream;
        uint64_t point;
    } at[];
} burni_snapshot;

uint64_t burni_snapshot_take(burni_device *device)
{
    if (device->synchronous) {
        return 0;
    }
    (void)pthread_mutex_lock(&device->lock);
    uint32_t n = 0;
    for (burni_stream *s = device->streams; s != NULL; s = s->next) {
        n++;
    }
    burni_snapshot *shot = burni_alloc(sizeof(*shot) + n * sizeof(shot->at[0]));
    /* Without memory for one, that of whoever takes the next: it is later, so it serves as well. */
    uint64_t ticket = device->next_snapshot + 1;
    if (shot != NULL) {
        device->next_snapshot = ticket;
        shot->ticket = ticket;
        shot->n = 0;
        for (burni_stream *s = device->streams; s != NULL; s = s->next) {
            shot->at[shot->n].stream = s;
            shot->at[shot->n++].point = atomic_load(&s->submitted);
        }
        shot->next = device->snapshots;
        device->snapshots = shot;
    }
    (void)pthread_mutex_unlock(&device->lock);
    return ticket;
}

/* A lost device uses no memory any more: what waits for it would only grow. */
static int reached(burni_device *device, const burni_snapshot *shot)
{
    for (uint32_t i = 0; i < shot->n; i++) {
        uint64_t value = 0;
        int32_t rc = burni_ask_reached(device->api, shot->at[i].stream->queue, device->backend,
                                       &value, NULL);
        if (rc != BURN_E_DEVICE_LOST && (rc != BURN_OK || value < shot->at[i].point)) {
            return 0;
        }
    }
    return 1;
}

int burni_snapshot_passed(void *user, uint64_t ticket)
{
    burni_device *device = user;
    if (ticket == 0) {
        return 1;
    }
    (void)pthread_mutex_lock(&device->lock);
    int passed = ticket <= device->next_snapshot;
    for (burni_snapshot **link = &device->snapshots; *link != NULL;) {
        burni_snapshot *shot = *link;
        if (shot->ticket > ticket) {
            link = &shot->next;
        } else if (reached(device, shot)) {
            /* Points only grow: whatever is older has passed as well. */
            *link = NULL;
            while (shot != NULL) {
                burni_snapshot *older = shot->next;
                burni_free(shot);
                shot = older;
            }
        } else {
            passed = shot->ticket != ticket && passed;
            link = &shot->next;
        }
    }
    (void)pthread_mutex_unlock(&device->lock);
    return passed;
}
