/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * explain.c - the table behind `burn explain`. See explain.h and <burn/explain.h>.
 *
 * A call is hashed (op, what it belongs to, dtypes, layouts, ranks, sizes to a factor of 4, the
 * row); the first of its kind writes an entry with all texts, the others count. One lock around the
 * table: this is a mode for looking, not for speed. Rows are asked, and the log is written, outside
 * of it. Nothing is freed: the table is read at the end. A forked child lets go of its parent's
 * table, and makes its own at its first call.
 */
#include "exec/explain.h"

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/printer.h"
#include "base/tag.h"
#include "exec/check.h"
#include "exec/match.h"
#include "exec/rows.h"
#include "exec/tuner.h"
#include "loader/lent.h"
#include "ops/rules.h"

#include <burn/explain.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CAPACITY   4096u
#define N_SLOTS    8192u /* a power of two */
#define N_REFUSALS 4

typedef struct slot {
    uint64_t hash;
    uint32_t index; /* 1 + the entry's */
    uint32_t zero;
} slot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static burn_explain_head *_Atomic table;
static slot *slots;
static _Atomic int log_wanted;
static int finished;
static int forks_known;
static int is_mapped;            /* the table is a file */
static _Atomic int wanted_again; /* a child's table is still to be made */

/* ---- the table ------------------------------------------------------------------------------- */

static size_t table_size(void)
{
    return sizeof(burn_explain_head) + CAPACITY * sizeof(burn_explain_entry);
}

static void *map_file(const char *folder, burn_err *err)
{
    char path[512];
    int n = snprintf(path, sizeof(path), "%s/%ld.burn", folder, (long)getpid());
    if (folder[0] != '/' || n < 0 || (size_t)n >= sizeof(path)) {
        (void)burni_fail(err, BURN_E_INVALID, "BURN_EXPLAIN=\"%.100s\": not an absolute folder",
                         folder);
        return NULL;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    void *memory = MAP_FAILED;
    int why = fd < 0 ? errno : 0;
    /* Blocks are reserved now, so that a full disk cannot end the process later. */
    if (fd >= 0) {
        why = posix_fallocate(fd, 0, (off_t)table_size());
    }
    if (fd >= 0 && why == 0) {
        memory = mmap(NULL, table_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        why = errno;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (memory == MAP_FAILED) {
        if (fd >= 0) {
            (void)unlink(path);
        }
        (void)burni_fail(err, BURN_E_IO, "BURN_EXPLAIN: %s cannot be made: %s", path,
                         strerror(why));
        return NULL;
    }
    return memory;
}

static void drop_table(burn_explain_head *head, int mapped)
{
    if (mapped) {
        (void)munmap(head, table_size());
    } else {
        burni_free(head);
    }
}

static void before_fork(void)
{
    (void)pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    (void)pthread_mutex_unlock(&lock);
}

/* The file stays the parent's: a child that went on with the memory would write into it. Entries
 * that its calls are at stay valid: other memory takes the same place. */
static void in_child(void)
{
    burn_explain_head *head = atomic_load(&table);
    if (head != NULL && is_mapped) {
        atomic_store(&table, NULL);
        atomic_store(&wanted_again, 1);
        if (mmap(head, table_size(), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
            atomic_store(&wanted_again, 0);
        }
    }
    (void)pthread_mutex_unlock(&lock);
}

static int32_t make_table(const char *folder, burn_err *err)
{
    burn_explain_head *head =
        folder != NULL ? map_file(folder, err) : burni_calloc(1, table_size());
    if (head == NULL && folder != NULL) {
        return err->code;
    }
    slots = head != NULL ? burni_calloc(N_SLOTS, sizeof(*slots)) : NULL;
    if (slots == NULL) {
        drop_table(head, folder != NULL);
        return burni_fail(err, BURN_E_NO_MEMORY, "explain: out of host memory");
    }
    is_mapped = folder != NULL;
    if (!forks_known) {
        forks_known = pthread_atfork(before_fork, after_fork, in_child) == 0;
    }
    head->magic = BURN_EXPLAIN_MAGIC;
    head->entry_size = sizeof(burn_explain_entry);
    head->capacity = CAPACITY;
    head->pid = (uint32_t)getpid();
    atomic_store(&table, head);
    atomic_fetch_or(&burni_watch_all, BURNI_WATCH_DISPATCH);
    return BURN_OK;
}

int32_t burni_explain_start(burn_err *err)
{
    const char *folder = burni_env("EXPLAIN");
    int32_t rc = BURN_OK;
    (void)pthread_mutex_lock(&lock);
    log_wanted = burni_log_wants_dispatch();
    if (atomic_load(&table) == NULL && (folder != NULL || log_wanted)) {
        rc = make_table(folder, err);
    }
    (void)pthread_mutex_unlock(&lock);
    return rc;
}

/* Once in a child. */
static int make_again(void)
{
    burn_err err = BURN_ERR_INIT;
    int32_t rc = BURN_OK;
    (void)pthread_mutex_lock(&lock);
    if (atomic_exchange(&wanted_again, 0) != 0) {
        burni_free(slots);
        slots = NULL;
        rc = make_table(burni_env("EXPLAIN"), &err);
    }
    (void)pthread_mutex_unlock(&lock);
    if (rc != BURN_OK) {
        burni_log(BURN_LOG_WARN, "dispatch", "nothing is told of a forked child: %s", err.text);
    }
    return atomic_load(&table) != NULL;
}

const burn_explain_head *burn_explain_table(void)
{
    return atomic_load(&table);
}

static burn_explain_entry *entry_at(burn_explain_head *head, uint32_t i)
{
    return (burn_explain_entry *)(void *)(head + 1) + i;
}

/* The entry of a hash, a new one when there is none; NULL when the table is full. */
static burn_explain_entry *find_entry(burn_explain_head *head, uint64_t hash)
{
    for (uint32_t at = (uint32_t)hash & (N_SLOTS - 1);; at = (at + 1) & (N_SLOTS - 1)) {
        slot *s = &slots[at];
        if (s->index != 0 && s->hash != hash) {
            continue;
        }
        if (s->index == 0 && head->n_entries == head->capacity) {
            return NULL;
        }
        if (s->index == 0) {
            s->hash = hash;
            s->index = ++head->n_entries;
        }
        return entry_at(head, s->index - 1);
    }
}

/* ---- texts ----------------------------------------------------------------------------------- */

static burni_printer into(char *out, size_t size)
{
    burni_printer p = {out, size, 0};
    return p;
}

static void print_operand(burni_printer *p, const burn_meta *meta, uint8_t layout)
{
    char shape[192];
    if (meta->kind == BURN_ABSENT) {
        burni_print(p, "-");
        return;
    }
    if (meta->kind == BURN_IMMEDIATE) {
        burni_print(p, "%s scalar", burn_dtype_name(meta->dtype));
        return;
    }
    burni_print(p, "%s%s", burn_dtype_name(meta->dtype),
                burni_shape_text(shape, sizeof(shape), meta->rank, meta->dims));
    if (layout != BURN_LAYOUT_CONTIGUOUS) {
        burni_print(p, " ");
        burni_print_layouts(p, layout);
    }
}

/* As a row sees it; `call` is NULL when no row was asked. */
static uint8_t layout_of(const burni_emission *e, const burn_call *call, uint32_t i)
{
    const burn_tensor *t = i < e->n_in ? e->in[i] : NULL;
    if (call != NULL) {
        return call->operands[i].layout;
    }
    if (t == NULL || t->kind != BURN_TENSOR || (t->flags & BURNI_CONTIGUOUS) != 0) {
        return BURN_LAYOUT_CONTIGUOUS;
    }
    return burni_layout_of(t->rank, t->dims, t->strides);
}

/* It makes tensors of none: what it makes tells more than its scalars. */
static int makes(const burni_emission *e)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_in; i++) {
        n += e->meta[i].kind == BURN_TENSOR;
    }
    return n == 0;
}

static void print_operands(burn_explain_entry *entry, const burni_emission *e,
                           const burn_call *call)
{
    burni_printer p = into(entry->operands, sizeof(entry->operands));
    for (uint32_t i = 0; i < e->n_in; i++) {
        burni_print(&p, "%s", i > 0 ? ", " : "");
        print_operand(&p, &e->meta[i], layout_of(e, call, i));
    }
    for (uint32_t j = 0; j < e->n_out && makes(e); j++) {
        burni_print(&p, "%s-> ", p.used > 0 ? " " : "");
        print_operand(&p, &e->out_meta[j], BURN_LAYOUT_CONTIGUOUS);
    }
}

/* What a row's own functions say; they are pure. The lock is not held. */
static void print_check(burni_printer *p, const burn_row *row, const burn_call *call,
                        const burni_resolved *r)
{
    burni_sink sink;
    burn_err err = BURN_ERR_INIT;
    burn_call probe = *call;
    burni_sink_begin(&sink);
    probe.err = &sink.err;
    if (row->check != NULL &&
        burni_sink_end(&sink, row->name, "check", row->check(&probe), &err) != BURN_OK) {
        burni_print(p, "its check says: %s", err.text);
    } else {
        burni_print(p, "its preparation failed%s%s", r->why[0] != '\0' ? ": " : "", r->why);
    }
}

static void print_copies(burni_printer *p, const burni_op *op, const burn_call *call, uint32_t mask,
                         const burn_row *row)
{
    for (uint32_t i = 0; i < call->n_in && i < 32; i++) {
        if ((mask >> i & 1) == 0) {
            continue;
        }
        burni_print(p, " %s is ", burni_operand_name(op, i, call->n_in));
        burni_print_layouts(p, call->operands[i].layout);
        burni_print(p, ", it takes ");
        burni_print_layouts(p, burni_row_slot(op, row, i, call->n_in, call->n_out)->layouts);
    }
}

/* Why a row of higher priority does not serve. */
static void print_refusal(burni_printer *p, const burni_emission *e, const burn_row *row,
                          const burn_call *call, const burni_resolved *r)
{
    char text[160] = "";
    burni_printer why = into(text, sizeof(text));
    uint32_t mask = 0;
    int fits = burni_match_row(e->op, row, call, &mask, &why);
    burni_print(p, "%s%s: ", p->used > 0 ? "; " : "", row->name);
    if (!fits) {
        burni_print(p, "%s", text);
    } else if (mask != 0) {
        burni_print(p, "wants a copy:");
        print_copies(p, e->op, call, mask, row);
    } else {
        print_check(p, row, call, r);
    }
}

static void print_why(char *out, size_t size, const burni_emission *e, const burn_call *call,
                      const burni_resolved *r)
{
    const burni_rows *rows = burni_rows_of(e->device->core, e->op);
    burni_printer p = into(out, size);
    uint32_t said = 0;
    uint32_t refused = 0;
    if (r->row != NULL && r->copy_mask != 0) {
        burni_print(&p, "copied first:");
        print_copies(&p, e->op, call, r->copy_mask, r->row);
    }
    if (r->tuned != 0) {
        char text[200];
        burni_tuner_print(r, text, sizeof(text));
        burni_print(&p, "%s%s", p.used > 0 ? "; " : "", text);
        return; /* rows of higher priority were not refused: they lost */
    }
    for (uint32_t i = 0; i < rows->count && rows->rows[i] != r->row; i++) {
        refused++;
        if (said < N_REFUSALS) {
            print_refusal(&p, e, rows->rows[i], call, r);
            said++;
        }
    }
    if (refused > said) {
        burni_print(&p, "; and %u more row%s", refused - said, burni_s(refused - said));
    }
    if (rows->count == 0) {
        burni_print(&p, "%s has no row for it", e->device->core->name);
    }
}

/* ---- recording ------------------------------------------------------------------------------- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) {
        hash = burni_mix(hash, *text);
    }
    return hash ^ (hash >> 29);
}

/* Sizes are told apart by a factor of 4. */
static uint32_t size_class(const burn_meta *meta)
{
    int64_t n = meta->kind == BURN_TENSOR ? burni_numel(meta->rank, meta->dims) : 1;
    uint32_t class = 0;
    while (n > 1) {
        n /= 4;
        class ++;
    }
    return class + (n == 0 ? 64u : 0u);
}

static uint64_t hash_call(const burni_emission *e, const burn_call *call, uint32_t kind,
                          const burni_resolved *r, const char *why)
{
    const burni_frame *frame = e->thread->frame;
    uint64_t hash = burni_mix(e->op->def.id + 1, kind);
    hash = burni_mix(hash, (uintptr_t)e->device);
    hash = hash_text(hash, frame != NULL ? frame->label : "");
    hash = hash_text(hash, why != NULL ? why : "");
    hash = burni_mix(hash, r != NULL ? (uintptr_t)r->row : 0);
    hash = burni_mix(hash, r != NULL ? r->copy_mask | (uint64_t)r->tuned << 32 : 0);
    for (uint32_t i = 0; i < e->n_in; i++) {
        const burn_meta *m = &e->meta[i];
        hash = burni_mix(hash, m->kind | m->dtype << 8 | m->rank << 16);
        hash = burni_mix(hash, layout_of(e, call, i) | size_class(m) << 8);
        hash ^= hash >> 31;
    }
    for (uint32_t j = 0; j < e->n_out && makes(e); j++) {
        hash = burni_mix(hash, e->out_meta[j].dtype | size_class(&e->out_meta[j]) << 8);
    }
    return hash ^ (hash >> 32);
}

/* Others may add to it meanwhile. */
static void log_entry(const burn_explain_entry *entry)
{
    static const char *const kinds[] = {"?", "by", "made of", "a view", "failed", "in one pass by"};
    (void)pthread_mutex_lock(&lock);
    const burn_explain_entry e = *entry;
    (void)pthread_mutex_unlock(&lock);
    burni_log_dispatch("%s%s%s(%s) %s%s%s%s%s%s%s", e.within, e.within[0] ? ": " : "", e.op,
                       e.operands, kinds[e.kind], e.served[0] ? " " : "", e.served,
                       e.why[0] ? "; " : "", e.why, e.tag[0] ? "; at " : "", e.tag);
}

static void count(burn_explain_head *head, uint32_t kind)
{
    head->calls++;
    head->rows += kind == BURN_EXPLAIN_ROW;
    head->decomposed += kind == BURN_EXPLAIN_DECOMPOSED;
    head->views += kind == BURN_EXPLAIN_VIEW;
    head->failed += kind == BURN_EXPLAIN_FAILED;
}

/* Counts the call; sets e->entry. 1 when it is the first of its kind: texts are wanted. The lock is
 * held. */
static int record(burni_emission *e, const burn_call *call, uint32_t kind, const burni_resolved *r,
                  const char *why)
{
    burn_explain_head *head = atomic_load(&table);
    burn_explain_entry *entry = find_entry(head, hash_call(e, call, kind, r, why));
    count(head, kind);
    e->entry = entry;
    if (entry == NULL) {
        head->lost++;
        return 0;
    }
    entry->calls++;
    if (entry->calls != 1) {
        return 0;
    }
    entry->kind = kind;
    (void)snprintf(entry->op, sizeof(entry->op), "%s", e->op->def.name);
    if (e->thread->frame != NULL) {
        (void)snprintf(entry->within, sizeof(entry->within), "%s", e->thread->frame->label);
    }
    (void)burni_tag_text(e->thread->tag, entry->tag, sizeof(entry->tag));
    return 1;
}

static int watched(const burni_thread *thread)
{
    if ((thread->watch & BURNI_WATCH_DISPATCH) == 0) {
        return 0;
    }
    return atomic_load(&table) != NULL || (atomic_load(&wanted_again) != 0 && make_again());
}

void burni_explain_kernel(burni_emission *e, const burn_call *call, const burni_resolved *r)
{
    if (!watched(e->thread)) {
        return;
    }
    uint32_t kind = r->row != NULL                 ? BURN_EXPLAIN_ROW
                    : e->op->def.decompose != NULL ? BURN_EXPLAIN_DECOMPOSED
                                                   : BURN_EXPLAIN_FAILED;
    if (kind == BURN_EXPLAIN_FAILED) {
        return; /* the failure is told with its text */
    }
    (void)pthread_mutex_lock(&lock);
    int first = record(e, call, kind, r, NULL);
    burn_explain_entry *entry = e->entry;
    if (first) {
        (void)snprintf(entry->served, sizeof(entry->served), "%s",
                       r->row != NULL ? r->row->name : "");
        print_operands(entry, e, call);
    }
    (void)pthread_mutex_unlock(&lock);
    if (first) {
        char why[sizeof(entry->why)] = "";
        print_why(why, sizeof(why), e, call, r);
        (void)pthread_mutex_lock(&lock);
        memcpy(entry->why, why, sizeof(why));
        (void)pthread_mutex_unlock(&lock);
    }
    e->entry_is_new = (uint32_t)first;
    if (first && log_wanted && kind == BURN_EXPLAIN_ROW) {
        log_entry(entry);
    }
}

void burni_explain_decomposed(burni_emission *e, const char *why)
{
    if (!watched(e->thread)) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    int first = record(e, NULL, BURN_EXPLAIN_DECOMPOSED, NULL, why);
    burn_explain_entry *entry = e->entry;
    if (first) {
        (void)snprintf(entry->why, sizeof(entry->why), "%s", why);
        print_operands(entry, e, NULL);
    }
    (void)pthread_mutex_unlock(&lock);
    e->entry_is_new = (uint32_t)first;
}

void burni_explain_view(burni_emission *e)
{
    if (!watched(e->thread)) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    burn_explain_entry *copied = e->entry; /* burni_explain_copy may have made it already */
    int first = copied == NULL && record(e, NULL, BURN_EXPLAIN_VIEW, NULL, NULL);
    burn_explain_entry *entry = e->entry;
    if (first) {
        print_operands(entry, e, NULL);
    }
    (void)pthread_mutex_unlock(&lock);
    if (first && log_wanted) {
        log_entry(entry);
    }
}

void burni_explain_failed(burni_emission *e, const burn_err *err)
{
    if (!watched(e->thread)) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    /* Operands may not have been taken yet: they are told by the text. */
    uint32_t n_in = e->n_in;
    e->n_in = 0;
    uint32_t n_out = e->n_out;
    e->n_out = 0;
    int first = record(e, NULL, BURN_EXPLAIN_FAILED, NULL, err->text);
    e->n_in = n_in;
    e->n_out = n_out;
    burn_explain_entry *entry = e->entry;
    if (first) {
        (void)snprintf(entry->why, sizeof(entry->why), "%s", err->text);
    }
    (void)pthread_mutex_unlock(&lock);
    if (first && log_wanted) {
        log_entry(entry);
    }
}

void burni_explain_copy(burni_emission *e, const burn_tensor *t)
{
    burn_explain_head *head = atomic_load(&table);
    if (head == NULL) {
        return; /* a child's first call makes it one call later */
    }
    uint64_t bytes = (uint64_t)t->numel * burn_dtype_size(t->dtype);
    (void)pthread_mutex_lock(&lock);
    head->copies++;
    head->copy_bytes += bytes;
    if (e != NULL && e->entry == NULL && e->op->view &&
        record(e, NULL, BURN_EXPLAIN_VIEW, NULL, "copy")) {
        burn_explain_entry *entry = e->entry;
        print_operands(entry, e, NULL);
        (void)snprintf(entry->why, sizeof(entry->why),
                       "copied first: these strides cannot be seen in that shape");
    }
    if (e != NULL && e->entry != NULL) {
        burn_explain_entry *entry = e->entry;
        entry->copies++;
        entry->copy_bytes += bytes;
    }
    (void)pthread_mutex_unlock(&lock);
}

/* ---- frames ---------------------------------------------------------------------------------- */

void burni_frame_open(burni_thread *thread, burni_frame *frame, const char *what, const char *op)
{
    frame->outer = thread->frame;
    frame->entry = NULL;
    (void)snprintf(frame->label, sizeof(frame->label), "%s%s", what, op);
    thread->frame = frame;
}

void burni_frame_close(burni_thread *thread, burni_frame *frame)
{
    thread->frame = frame->outer;
    if (frame->entry != NULL && log_wanted) {
        log_entry(frame->entry);
    }
}

void burni_explain_fused(burni_thread *thread, const char *op, const char *names,
                         const char *served, const char *why)
{
    if (!watched(thread)) {
        return;
    }
    uint64_t hash = hash_text(hash_text(hash_text(BURN_EXPLAIN_FUSED, op), names), served);
    (void)pthread_mutex_lock(&lock);
    burn_explain_head *head = atomic_load(&table);
    burn_explain_entry *entry = find_entry(head, hash_text(hash, why));
    int first = 0;
    if (entry == NULL) {
        head->lost++;
    } else {
        first = entry->calls++ == 0;
        entry->kind = BURN_EXPLAIN_FUSED;
        (void)snprintf(entry->op, sizeof(entry->op), "%s", op);
        (void)snprintf(entry->operands, sizeof(entry->operands), "%s", names);
        (void)snprintf(entry->served, sizeof(entry->served), "%s", served);
        (void)snprintf(entry->why, sizeof(entry->why), "%s", why);
    }
    (void)pthread_mutex_unlock(&lock);
    if (first && log_wanted) {
        log_entry(entry);
    }
}

void burni_explain_part(burni_thread *thread, const burni_op *op)
{
    const burni_frame *frame = thread->frame;
    if (frame == NULL || frame->entry == NULL || !watched(thread)) {
        return;
    }
    burn_explain_entry *entry = frame->entry;
    const char *name = op->def.name;
    (void)pthread_mutex_lock(&lock);
    size_t n = strlen(name);
    const char *at = entry->served;
    /* Each name once: the parts have entries of their own. */
    while ((at = strstr(at, name)) != NULL &&
           ((at > entry->served && at[-1] != ' ') || (at[n] != '\0' && at[n] != ','))) {
        at += n;
    }
    size_t used = strlen(entry->served);
    if (at == NULL && used + n + 3 < sizeof(entry->served)) {
        (void)snprintf(entry->served + used, sizeof(entry->served) - used, "%s%s",
                       used > 0 ? ", " : "", name);
    }
    (void)pthread_mutex_unlock(&lock);
}

/* ---- the end --------------------------------------------------------------------------------- */

void burni_explain_finish(void)
{
    const burn_explain_head *head = atomic_load(&table);
    (void)pthread_mutex_lock(&lock);
    int wanted = log_wanted && head != NULL && !finished;
    finished = 1;
    (void)pthread_mutex_unlock(&lock);
    if (!wanted) {
        return;
    }
    burni_log_dispatch("total: %llu call%s: %llu by rows, %llu decomposed, %llu view%s, "
                       "%llu failed",
                       (unsigned long long)head->calls, burni_s(head->calls),
                       (unsigned long long)head->rows, (unsigned long long)head->decomposed,
                       (unsigned long long)head->views, burni_s(head->views),
                       (unsigned long long)head->failed);
    burni_log_dispatch("total: %llu layout cop%s of %llu bytes, host fallbacks: none",
                       (unsigned long long)head->copies, head->copies == 1 ? "y" : "ies",
                       (unsigned long long)head->copy_bytes);
}

/* A program that never shuts down gets its totals as well, unless the log is its own: at this time
 * its callback may be gone. */
__attribute__((destructor)) static void at_exit(void)
{
    if (burni_log_is_stderr()) {
        burni_explain_finish();
        burni_check_finish();
    }
}
