/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * check_bounds.c - guarded copies of what a kernel may touch, and what it did to them. See
 * check_bounds.h.
 *
 * A region is the memory of one storage, once for all operands that lie in it, so a kernel that
 * works in place does so in the copy as well. Regions lie in one block, GUARD bytes before and
 * behind each, to the byte: the size class of a block hides nothing. Each gap is filled with a byte
 * of its own: a kernel that copies one guard onto another shows too. What is only written is filled
 * as well, so that an element that was left out is no leftover that happens to be right. To guard
 * one more kind of memory: add_extra.
 */
#include "exec/check_bounds.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/printer.h"
#include "base/tag.h"
#include "exec/check_private.h"
#include "exec/match.h"
#include "exec/origin.h"
#include "exec/row_notes.h"
#include "ops/rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    GUARD = 4096,
    UNWRITTEN = 0xFF, /* a NaN in each float */
    FIRST_GAP = 0xA5, /* bytes of gaps begin here, and go round in GAPS */
    GAPS = 64,
    WORKSPACE = BURN_MAX_OPERANDS, /* slots of what is no operand */
    WORD
};

typedef struct region {
    burn_buffer *buffer; /* where it is */
    uint64_t offset;
    char *host;
    uint64_t bytes;
    uint64_t at;  /* in the block */
    uint64_t low; /* bytes of it that may be written: none where low == high */
    uint64_t high;
    const burni_launch *launch; /* by which it is called: as an output, where it is one */
    const burn_operand *operand;
    uint32_t slot;
    uint32_t is_read; /* its values matter */
} region;

/* An operand that points at a copy, as it was. */
typedef struct moved {
    burn_operand *operand;
    burn_operand was;
    uint32_t region;
    uint32_t zero;
} moved;

struct burni_bounds {
    burni_stream *stream;
    const burni_launch *launch; /* the first */
    burni_block *block;
    unsigned char *image; /* of the block, as it was given to the kernel */
    unsigned char *after; /* as the kernel left it; NULL: where the host sees it */
    uint64_t total;
    uint32_t n_regions;
    uint32_t n_moved;
    uint32_t room;
    uint32_t zero;
    region *regions;
    moved moved[];
};

static _Atomic uint32_t is_on;

/* ---- the switch ------------------------------------------------------------------------------ */

static void guard(burni_stream *stream, int on)
{
    if (on) {
        atomic_fetch_or(&stream->way, BURNI_WAY_GUARDED);
    } else {
        atomic_fetch_and(&stream->way, ~(uint32_t)BURNI_WAY_GUARDED);
    }
}

void burni_bounds_set(burni_thread *thread, int on)
{
    atomic_store(&is_on, (uint32_t)on);
    for (uint32_t d = 0; thread != NULL && d < BURNI_MAX_DEVICES; d++) {
        if (thread->streams[d] != NULL) {
            guard(thread->streams[d], on);
        }
    }
}

void burni_bounds_stream(burni_stream *stream)
{
    guard(stream, atomic_load(&is_on) != 0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The host's addresses are those of the memory that kernels see, and nothing is under way. */
static int is_direct(const burni_bounds *b, const void *host)
{
    return host != NULL && b->stream->device->synchronous;
}

static int32_t take_out(burni_bounds *b, void *to, burn_buffer *buffer, uint64_t offset,
                        const void *host, uint64_t bytes, burn_err *err)
{
    burni_stream *s = b->stream;
    if (bytes == 0) {
        return BURN_OK;
    }
    if (is_direct(b, host)) {
        memcpy(to, host, bytes);
        return BURN_OK;
    }
    int32_t rc = s->device->api->copy_out(s->queue, to, buffer, offset, bytes, &s->sink.err);
    return burni_stream_said(s, "copy_out", rc, err);
}

static int32_t put_in(burni_bounds *b, burn_buffer *buffer, uint64_t offset, void *host,
                      const void *from, uint64_t bytes, burn_err *err)
{
    burni_stream *s = b->stream;
    if (bytes == 0) {
        return BURN_OK;
    }
    if (is_direct(b, host)) {
        memcpy(host, from, bytes);
        return BURN_OK;
    }
    int32_t rc = s->device->api->copy_in(s->queue, buffer, offset, from, bytes, &s->sink.err);
    return burni_stream_said(s, "copy_in", rc, err);
}

/* The queue has done all that it was given. */
static int32_t finish(burni_bounds *b, burn_err *err)
{
    uint64_t point = 0;
    if (b->stream->device->synchronous) {
        return BURN_OK;
    }
    int32_t rc = burni_stream_signal(b->stream, &point, err);
    return rc == BURN_OK ? burni_stream_wait(b->stream, point, err) : rc;
}

static char *block_host(const burni_bounds *b)
{
    return b->block->page->host != NULL ? b->block->page->host + b->block->offset : NULL;
}

static void release(burni_bounds *b)
{
    if (b->block != NULL) {
        burni_pool_give(&b->stream->cache, b->block);
    }
    burni_free(b->image);
    burni_free(b->after);
    burni_free(b->regions);
    burni_free(b);
}

/* ---- regions --------------------------------------------------------------------------------- */

static region *region_of(burni_bounds *b, burn_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    region *r = b->regions;
    while (r < b->regions + b->n_regions && (r->buffer != buffer || r->offset != offset)) {
        r++;
    }
    if (r == b->regions + b->n_regions) {
        b->n_regions++;
        memset(r, 0, sizeof(*r));
        r->buffer = buffer;
        r->offset = offset;
    }
    r->bytes = bytes > r->bytes ? bytes : r->bytes;
    return r;
}

static void name_region(region *r, const burni_launch *launch, const burn_operand *operand,
                        uint32_t slot)
{
    r->launch = launch;
    r->operand = operand;
    r->slot = slot;
}

static void note_moved(burni_bounds *b, burn_operand *operand, const region *r)
{
    moved *m = &b->moved[b->n_moved++];
    m->operand = operand;
    m->was = *operand;
    m->region = (uint32_t)(r - b->regions);
}

/* [low, high) of the region grows to hold all elements of the operand. */
static void may_write(region *r, const burn_operand *o)
{
    int64_t size = burn_dtype_size(o->dtype);
    int64_t low = (int64_t)(o->offset - r->offset);
    int64_t high = low + size;
    for (uint32_t d = 0; d < o->rank; d++) {
        int64_t reach = (o->dims[d] - 1) * o->strides[d] * size;
        if (o->dims[d] == 0) {
            return;
        }
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    int first = r->low == r->high;
    r->low = first || (uint64_t)low < r->low ? (uint64_t)low : r->low;
    r->high = first || (uint64_t)high > r->high ? (uint64_t)high : r->high;
}

static void add_launch(burni_bounds *b, const burni_launch *launch, burn_operand *operands)
{
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        const burni_storage *s = launch->storages[i];
        if (s == NULL || operands[i].kind != BURN_TENSOR) {
            continue;
        }
        region *r = region_of(b, s->buffer, s->buffer_offset, s->bytes);
        int is_output = i >= launch->n_in;
        r->host = s->host;
        r->is_read |= !is_output;
        if (r->launch == NULL || is_output) {
            name_region(r, launch, &operands[i], i);
        }
        if (is_output) {
            may_write(r, &operands[i]);
        }
        note_moved(b, &operands[i], r);
    }
}

/* A workspace, whose values nobody needs, or a fault word. */
static void add_extra(burni_bounds *b, const burni_launch *launch, burn_operand *o, uint64_t bytes,
                      uint32_t slot)
{
    if (o == NULL || o->kind == BURN_ABSENT) {
        return;
    }
    region *r = region_of(b, o->buffer, o->offset, bytes);
    r->host = o->data;
    r->is_read = slot == WORD;
    r->high = bytes;
    name_region(r, launch, o, slot);
    note_moved(b, o, r);
}

/* ---- before ---------------------------------------------------------------------------------- */

static burni_bounds *bounds_new(burni_stream *stream, const burni_launch *const *launches,
                                uint32_t n)
{
    uint32_t room = 1;
    for (uint32_t k = 0; k < n; k++) {
        room += launches[k]->n_in + launches[k]->n_out + 1;
    }
    burni_bounds *b = burni_calloc(1, sizeof(*b) + room * sizeof(b->moved[0]));
    region *regions = b != NULL ? burni_calloc(room, sizeof(*regions)) : NULL;
    if (regions == NULL) {
        burni_free(b);
        return NULL;
    }
    b->stream = stream;
    b->launch = launches[0];
    b->regions = regions;
    b->room = room;
    return b;
}

static uint64_t round_up(uint64_t bytes, uint64_t align)
{
    return (bytes + align - 1) & ~(align - 1);
}

static void place(burni_bounds *b)
{
    const burn_limits *limits = &b->stream->device->pool.limits;
    uint64_t align = limits->suballoc_align > 64 ? limits->suballoc_align : 64;
    align = limits->offset_align > align ? limits->offset_align : align;
    b->total = 0;
    for (uint32_t k = 0; k < b->n_regions; k++) {
        uint64_t room = k == 0 ? GUARD : 2 * (uint64_t)GUARD;
        b->regions[k].at = round_up(b->total + room, align);
        b->total = b->regions[k].at + b->regions[k].bytes;
    }
    b->total += GUARD;
}

/* Gaps, what is only written, and copies of all else. */
static int32_t make_image(burni_bounds *b, burn_err *err)
{
    int32_t rc = BURN_OK;
    uint64_t end = 0;
    for (uint32_t k = 0; k <= b->n_regions; k++) {
        const region *r = &b->regions[k];
        uint64_t next = k < b->n_regions ? r->at : b->total;
        memset(b->image + end, FIRST_GAP + (int)(k % GAPS), next - end);
        if (k == b->n_regions) {
            break;
        }
        if (r->is_read && rc == BURN_OK) {
            rc = take_out(b, b->image + r->at, r->buffer, r->offset, r->host, r->bytes, err);
        } else {
            memset(b->image + r->at, UNWRITTEN, r->bytes);
        }
        end = r->at + r->bytes;
    }
    return rc == BURN_OK ? finish(b, err) : rc;
}

static int32_t make_copies(burni_bounds *b, burn_err *err)
{
    burni_stream *s = b->stream;
    place(b);
    b->image = burni_alloc(b->total);
    b->block = b->image != NULL ? burni_pool_take(&s->device->pool, &s->cache, b->total, err)
                                : NULL;
    int copies = b->block != NULL && !is_direct(b, block_host(b));
    b->after = copies ? burni_alloc(b->total) : NULL;
    if (b->block == NULL || (copies && b->after == NULL)) {
        return BURN_E_NO_MEMORY;
    }
    int32_t rc = make_image(b, err);
    return rc == BURN_OK ? put_in(b, b->block->page->buffer, b->block->offset, block_host(b),
                                  b->image, b->total, err)
                         : rc;
}

static void redirect(burni_bounds *b)
{
    for (uint32_t k = 0; k < b->n_moved; k++) {
        const region *r = &b->regions[b->moved[k].region];
        burn_operand *o = b->moved[k].operand;
        uint64_t within = o->offset - r->offset;
        o->buffer = b->block->page->buffer;
        o->offset = b->block->offset + r->at + within;
        o->data = block_host(b) != NULL ? block_host(b) + r->at + within : NULL;
    }
}

static void restore(burni_bounds *b)
{
    for (uint32_t k = 0; k < b->n_moved; k++) {
        *b->moved[k].operand = b->moved[k].was;
    }
}

burni_bounds *burni_bounds_before(burni_stream *stream, const burni_launch *const *launches,
                                  burn_operand *const *operands, burn_operand *words,
                                  burn_operand *workspace, uint32_t n)
{
    burn_err err = BURN_ERR_INIT;
    int can_cut = stream->device->pool.limits.suballoc_align != 0;
    burni_bounds *b = can_cut ? bounds_new(stream, launches, n) : NULL;
    for (uint32_t k = 0; b != NULL && k < n; k++) {
        add_launch(b, launches[k], operands[k]);
        add_extra(b, launches[k], &words[k], sizeof(burn_fault), WORD);
    }
    if (b != NULL) {
        add_extra(b, launches[0], workspace, launches[0]->resolved->workspace_bytes, WORKSPACE);
    }
    if (b == NULL || make_copies(b, &err) != BURN_OK) {
        burni_check_add(BURNI_UNGUARDED, n);
        if (b != NULL) {
            release(b);
        }
        return NULL;
    }
    redirect(b);
    return b;
}

/* ---- what was written ------------------------------------------------------------------------ */

/* Bytes [from, to) of the block, from the first one that changed to the last. */
typedef struct change {
    uint64_t first;
    uint64_t end; /* behind the last; 0: nothing changed */
} change;

static change find_change(const unsigned char *was, const unsigned char *is, uint64_t from,
                          uint64_t to)
{
    change c = {0, 0};
    if (from >= to || memcmp(was + from, is + from, to - from) == 0) {
        return c;
    }
    c.first = from;
    while (was[c.first] == is[c.first]) {
        c.first++;
    }
    c.end = to;
    while (was[c.end - 1] == is[c.end - 1]) {
        c.end--;
    }
    return c;
}

/* "output z (f32[3], 12 bytes)" */
static void print_region(burni_printer *p, const region *r)
{
    char text[192];
    const burn_operand *o = r->operand;
    uint32_t n_in = r->launch->n_in;
    if (r->slot == WORKSPACE || r->slot == WORD) {
        burni_print(p, "%s (%" PRIu64 " bytes)",
                    r->slot == WORD ? "its fault word" : "its workspace", r->bytes);
        return;
    }
    burni_print(p, "%s %s (%s%s, %" PRIu64 " byte%s)", r->slot < n_in ? "input" : "output",
                burni_operand_name(r->launch->op, r->slot, n_in), burn_dtype_name(o->dtype),
                burni_shape_text(text, sizeof(text), o->rank, o->dims), r->bytes,
                burni_s(r->bytes));
}

/* What was found, as the failure of the launch. */
static void keep_verdict(burni_bounds *b, const region *r, const char *what, uint64_t n,
                         const char *where)
{
    burn_err err = BURN_ERR_INIT;
    const burni_launch *launch = r->launch;
    burni_printer p = {err.text, sizeof(err.text), 0};
    burni_print(&p, "%s: kernel %s wrote %s%" PRIu64 " byte%s %s ", launch->op->def.name,
                launch->resolved->row->name, what, n, burni_s(n), where);
    print_region(&p, r);
    burni_print(&p, " on %s", b->stream->device->name);
    err.code = BURN_E_INTERNAL;
    err.op = launch->op->def.id;
    burni_origin_tell(launch->origin, &err);
    burni_tag_append(launch->tag, &err);
    burni_cause_unref(b->stream->outside);
    b->stream->outside = burni_cause_new(&err);
}

/* Around the region; the gaps on both sides are its own as far as GUARD bytes. 1: found. */
static int look_around(burni_bounds *b, const unsigned char *after, uint32_t k)
{
    const region *r = &b->regions[k];
    uint64_t end = r->at + r->bytes;
    uint64_t begin = k == 0 ? 0 : b->regions[k - 1].at + b->regions[k - 1].bytes + GUARD;
    change behind = find_change(b->image, after, end, end + GUARD);
    if (behind.end != 0) {
        keep_verdict(b, r, behind.end == end + GUARD ? "at least " : "", behind.end - end,
                     "behind");
        return 1;
    }
    change before = find_change(b->image, after, begin, r->at);
    if (before.end != 0) {
        keep_verdict(b, r, before.first == begin ? "at least " : "", r->at - before.first,
                     "before");
        return 1;
    }
    return 0;
}

/* Within it, where it may not be written. */
static int look_inside(burni_bounds *b, const unsigned char *after, const region *r)
{
    int is_written = r->low < r->high;
    uint64_t low = is_written ? r->low : 0;
    uint64_t high = is_written ? r->high : 0;
    change c = find_change(b->image, after, r->at, r->at + low);
    if (c.end == 0) {
        c = find_change(b->image, after, r->at + high, r->at + r->bytes);
    }
    if (c.end != 0) {
        keep_verdict(b, r, "", c.end - c.first, is_written ? "beside the view of" : "of");
    }
    return c.end != 0;
}

static void look(burni_bounds *b, const unsigned char *after)
{
    for (uint32_t k = 0; k < b->n_regions; k++) {
        if (look_around(b, after, k) || look_inside(b, after, &b->regions[k])) {
            return;
        }
    }
}

/* ---- after ----------------------------------------------------------------------------------- */

static int32_t give_outputs(burni_bounds *b, const unsigned char *after, burn_err *err)
{
    int32_t rc = BURN_OK;
    for (uint32_t k = 0; k < b->n_regions && rc == BURN_OK; k++) {
        const region *r = &b->regions[k];
        if (r->low < r->high && r->slot != WORKSPACE) {
            rc = put_in(b, r->buffer, r->offset + r->low,
                        r->host != NULL ? r->host + r->low : NULL, after + r->at + r->low,
                        r->high - r->low, err);
        }
    }
    return rc;
}

/* Who takes a row without the flag to be right on any data, as races of the tuner do, is misled. On
 * a queue the kernel has no fault word then, and it may be the queue that says so. */
static int32_t judge_answer(const burni_bounds *b, int32_t rc, burn_err *err)
{
    const burn_row *row = b->launch->resolved->row;
    if (rc != BURN_E_DATA || (row->flags & BURN_ROW_FAULTS) != 0) {
        return rc;
    }
    burn_err said = *err;
    err->code = BURN_OK;
    burni_check_add(BURNI_WRONG, 1);
    return burni_fail(err, BURN_E_INTERNAL,
                      "%s: kernel %s reports a fault, and its row lacks BURN_ROW_FAULTS: %.100s",
                      b->launch->op->def.name, row->name, said.text);
}

int32_t burni_bounds_after(burni_bounds *b, int32_t rc, burn_err *err)
{
    if (b == NULL) {
        return rc;
    }
    restore(b);
    const unsigned char *after =
        b->after != NULL ? b->after : (const unsigned char *)block_host(b);
    if (rc == BURN_OK && b->after != NULL) {
        rc = take_out(b, b->after, b->block->page->buffer, b->block->offset, NULL, b->total, err);
        rc = rc == BURN_OK ? finish(b, err) : rc;
    }
    if (rc == BURN_OK) {
        burni_check_add(BURNI_GUARDED, 1);
        burni_row_count(b->launch->resolved->row);
        look(b, after);
        rc = give_outputs(b, after, err);
    }
    rc = judge_answer(b, rc, err);
    release(b);
    return rc;
}

void burni_bounds_judge(burni_stream *stream, const burni_launch *const *launches, uint32_t n,
                        int32_t rc)
{
    burni_cause *cause = stream->outside;
    if (cause == NULL) {
        return;
    }
    stream->outside = NULL;
    for (uint32_t k = 0; k < n && rc == BURN_OK; k++) {
        for (uint32_t j = 0; j < launches[k]->n_out; j++) {
            burni_storage *s = launches[k]->storages[launches[k]->n_in + j];
            if (s != NULL) {
                burni_storage_fail(s, cause);
            }
        }
    }
    if (rc == BURN_OK) {
        burni_device_latch(stream->device, cause, stream, burni_stream_age(stream));
        burni_check_add(BURNI_WRONG, 1);
    }
    burni_cause_unref(cause);
}
