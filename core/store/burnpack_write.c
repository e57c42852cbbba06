/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * burnpack_write.c - writing a burnpack file: the metadata map and an atomic save.
 *
 * Sizes are planned before the first byte is written, so a save that cannot be right never starts.
 * Bytes go through one buffer of at most 8 MiB, which tensors fill themselves; memory does not grow
 * with the model. Until the rename everything happens in a scratch file, which is removed when
 * anything fails; a killed process leaves it behind, and the old file whole.
 */
#include "store/burnpack.h"

#include "base/alloc.h"
#include "base/error.h"

#include <burn_sdk/half.h>
#include <cbor.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A tensor to be written: the name is ours, and it knows its place. */
typedef struct entry {
    burni_bpk_source source;
    uint64_t start; /* from the start of the data section */
} entry;

/* Metadata or a scalar. */
typedef struct named {
    char *name;
    char *text; /* metadata */
    burni_bpk_scalar scalar;
    uint32_t order; /* of the call that added it */
} named;

typedef struct named_list {
    named *items;
    uint32_t n;
    uint32_t room;
} named_list;

struct burni_bpk_writer {
    entry *tensors;
    uint32_t n_tensors;
    uint32_t tensor_room;
    named_list metadata;
    named_list scalars;
};

/* ---- collecting ------------------------------------------------------------------------------ */

burni_bpk_writer *burni_bpk_writer_new(void)
{
    return burni_calloc(1, sizeof(burni_bpk_writer));
}

static void free_list(named_list *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        burni_free(list->items[i].name);
        burni_free(list->items[i].text);
    }
    burni_free(list->items);
}

void burni_bpk_writer_free(burni_bpk_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    for (uint32_t i = 0; i < writer->n_tensors; i++) {
        char *name;
        memcpy(&name, &writer->tensors[i].source.name, sizeof(name));
        burni_free(name);
    }
    burni_free(writer->tensors);
    free_list(&writer->metadata);
    free_list(&writer->scalars);
    burni_free(writer);
}

static int32_t no_memory(burn_err *err)
{
    return burni_fail(err, BURN_E_NO_MEMORY, "burnpack: out of memory");
}

static int32_t check_text(const char *text, const char *what, burn_err *err)
{
    if (text != NULL && burni_bpk_is_text((const unsigned char *)text, strlen(text))) {
        return BURN_OK;
    }
    return burni_fail(err, BURN_E_INVALID, "burnpack: a %s is not UTF-8 text", what);
}

static int32_t check_source(const burni_bpk_source *s, burn_err *err)
{
    int ok = 1;
    if (s->rank > BURN_MAX_RANK) {
        return burni_fail(err, BURN_E_SHAPE, "tensor '%.64s': rank %u is above 8", s->name,
                          (unsigned)s->rank);
    }
    if (s->dtype != BURN_BOOL && burni_bpk_dtype_text(s->dtype) == NULL) {
        return burni_fail(err, BURN_E_DTYPE, "tensor '%.64s': dtype %s cannot be stored", s->name,
                          burn_dtype_name(s->dtype));
    }
    uint64_t wanted = burni_bpk_bytes_of(s->rank, s->dims, burn_dtype_size(s->dtype), &ok);
    if (!ok || wanted != s->nbytes) {
        return burni_fail(err, BURN_E_SHAPE,
                          "tensor '%.64s': its shape and dtype %s need %llu bytes, given are %llu",
                          s->name, burn_dtype_name(s->dtype), (unsigned long long)wanted,
                          (unsigned long long)s->nbytes);
    }
    if (s->nbytes > BURNI_BPK_MAX_TENSOR) {
        return burni_fail(err, BURN_E_LIMIT, "tensor '%.64s': %llu bytes are more than 10 GiB",
                          s->name, (unsigned long long)s->nbytes);
    }
    if (s->nbytes > 0 && s->produce == NULL) {
        return burni_fail(err, BURN_E_INVALID, "tensor '%.64s': nothing produces its bytes",
                          s->name);
    }
    return BURN_OK;
}

int32_t burni_bpk_add_tensor(burni_bpk_writer *writer, const burni_bpk_source *source,
                             burn_err *err)
{
    int32_t code = check_text(source->name, "tensor's name", err);
    if (code == BURN_OK) {
        code = check_source(source, err);
    }
    if (code != BURN_OK) {
        return code;
    }
    if (writer->n_tensors == BURNI_BPK_MAX_TENSORS) {
        return burni_fail(err, BURN_E_LIMIT, "tensor '%.64s': a file holds at most %u tensors",
                          source->name, BURNI_BPK_MAX_TENSORS);
    }
    if (writer->n_tensors == writer->tensor_room) {
        uint32_t room = writer->tensor_room == 0 ? 16 : 2 * writer->tensor_room;
        entry *larger = burni_realloc(writer->tensors, room * sizeof(entry));
        if (larger == NULL) {
            return no_memory(err);
        }
        writer->tensors = larger;
        writer->tensor_room = room;
    }
    char *name = burni_strdup(source->name);
    if (name == NULL) {
        return no_memory(err);
    }
    entry *e = &writer->tensors[writer->n_tensors++];
    e->source = *source;
    e->source.name = name;
    e->start = 0;
    return BURN_OK;
}

/* A new element of that name; NULL: out of memory or over the limit. */
static named *element(named_list *list, const char *name)
{
    if (list->n == BURNI_BPK_MAX_TENSORS) {
        return NULL;
    }
    if (list->n == list->room) {
        uint32_t room = list->room == 0 ? 16 : 2 * list->room;
        named *larger = burni_realloc(list->items, room * sizeof(named));
        if (larger == NULL) {
            return NULL;
        }
        list->items = larger;
        list->room = room;
    }
    named *item = &list->items[list->n];
    memset(item, 0, sizeof(*item));
    item->name = burni_strdup(name);
    if (item->name == NULL) {
        return NULL;
    }
    item->order = list->n++;
    return item;
}

static int32_t list_full(const named_list *list, burn_err *err)
{
    if (list->n < BURNI_BPK_MAX_TENSORS) {
        return no_memory(err);
    }
    return burni_fail(err, BURN_E_LIMIT, "burnpack: a file holds at most %u texts or scalars",
                      BURNI_BPK_MAX_TENSORS);
}

int32_t burni_bpk_add_metadata(burni_bpk_writer *writer, const char *key, const char *value,
                               burn_err *err)
{
    int32_t code = check_text(key, "metadata key", err);
    if (code == BURN_OK) {
        code = check_text(value, "metadata value", err);
    }
    if (code != BURN_OK) {
        return code;
    }
    char *text = burni_strdup(value);
    named *item = text != NULL ? element(&writer->metadata, key) : NULL;
    if (item == NULL) {
        burni_free(text);
        return list_full(&writer->metadata, err);
    }
    item->text = text;
    return BURN_OK;
}

int32_t burni_bpk_add_scalar(burni_bpk_writer *writer, const burni_bpk_scalar *scalar,
                             burn_err *err)
{
    int32_t code = check_text(scalar->name, "scalar's name", err);
    if (code != BURN_OK) {
        return code;
    }
    if (scalar->kind > BURNI_BPK_BOOL) {
        return burni_fail(err, BURN_E_INVALID, "scalar '%.64s': unknown kind %u", scalar->name,
                          (unsigned)scalar->kind);
    }
    named *item = element(&writer->scalars, scalar->name);
    if (item == NULL) {
        return list_full(&writer->scalars, err);
    }
    item->scalar = *scalar;
    item->scalar.name = item->name;
    return BURN_OK;
}

/* ---- CBOR ------------------------------------------------------------------------------------ */

/* Bytes that grow; `failed` sticks. */
typedef struct blob {
    unsigned char *bytes;
    uint64_t n;
    uint64_t room;
    int failed;
} blob;

static void put(blob *b, const void *bytes, uint64_t n)
{
    if (b->failed) {
        return;
    }
    if (n > b->room - b->n) {
        uint64_t room = 2 * b->room + n + 1024;
        unsigned char *larger = burni_realloc(b->bytes, room);
        if (larger == NULL) {
            b->failed = 1;
            return;
        }
        b->bytes = larger;
        b->room = room;
    }
    memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
}

static void put_uint(blob *b, uint64_t value)
{
    unsigned char head[9];
    put(b, head, cbor_encode_uint(value, head, sizeof(head)));
}

static void put_int(blob *b, int64_t value)
{
    unsigned char head[9];
    if (value >= 0) {
        put_uint(b, (uint64_t)value);
        return;
    }
    put(b, head, cbor_encode_negint((uint64_t)(-1 - value), head, sizeof(head)));
}

static void put_text(blob *b, const char *text)
{
    unsigned char head[9];
    put(b, head, cbor_encode_string_start(strlen(text), head, sizeof(head)));
    put(b, text, strlen(text));
}

static void put_map(blob *b, uint64_t count)
{
    unsigned char head[9];
    put(b, head, cbor_encode_map_start(count, head, sizeof(head)));
}

static void put_array(blob *b, uint64_t count)
{
    unsigned char head[9];
    put(b, head, cbor_encode_array_start(count, head, sizeof(head)));
}

static int same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

/* The shortest of half, single and double that holds the very same bits. */
static void put_float(blob *b, double value)
{
    unsigned char head[9];
    uint16_t half = burn_float_to_half((float)value);
    if (same_bits((double)burn_half_to_float(half), value)) {
        const unsigned char bytes[3] = {0xF9, (unsigned char)(half >> 8), (unsigned char)half};
        put(b, bytes, sizeof(bytes));
    } else if (same_bits((double)(float)value, value)) {
        put(b, head, cbor_encode_single((float)value, head, sizeof(head)));
    } else {
        put(b, head, cbor_encode_double(value, head, sizeof(head)));
    }
}

static void put_tensor(blob *b, const entry *e)
{
    const burni_bpk_source *s = &e->source;
    put_text(b, s->name);
    put_map(b, s->has_param_id ? 4 : 3);
    put_text(b, "dtype");
    if (s->dtype == BURN_BOOL) {
        put_map(b, 1);
        put_text(b, "Bool");
        put_text(b, "Native");
    } else {
        put_text(b, burni_bpk_dtype_text(s->dtype));
    }
    put_text(b, "shape");
    put_array(b, s->rank);
    for (uint32_t i = 0; i < s->rank; i++) {
        put_uint(b, (uint64_t)s->dims[i]);
    }
    put_text(b, "data_offsets");
    put_array(b, 2);
    put_uint(b, e->start);
    put_uint(b, e->start + s->nbytes);
    if (s->has_param_id) {
        put_text(b, "param_id");
        put_uint(b, s->param_id);
    }
}

static void put_scalar(blob *b, const burni_bpk_scalar *s)
{
    static const char *const kinds[] = {"Int", "UInt", "Float", "Bool"};
    unsigned char byte;
    put_text(b, s->name);
    put_map(b, 1);
    put_text(b, kinds[s->kind]);
    if (s->kind == BURNI_BPK_INT) {
        put_int(b, s->value.i);
    } else if (s->kind == BURNI_BPK_UINT) {
        put_uint(b, s->value.u);
    } else if (s->kind == BURNI_BPK_FLOAT) {
        put_float(b, s->value.f);
    } else {
        put(b, &byte, cbor_encode_bool(s->value.u != 0, &byte, 1));
    }
}

/* ---- the plan -------------------------------------------------------------------------------- */

typedef struct plan {
    blob metadata;
    uint64_t data; /* where the data section starts */
    uint64_t size; /* of the file */
} plan;

static int by_entry_name(const void *a, const void *b)
{
    const entry *x = *(const entry *const *)a;
    const entry *y = *(const entry *const *)b;
    return strcmp(x->source.name, y->source.name);
}

static int by_named(const void *a, const void *b)
{
    const named *x = a;
    const named *y = b;
    int order = strcmp(x->name, y->name);
    if (order != 0) {
        return order;
    }
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Sorts by name; of several with one name the last stays. */
static void settle(named_list *list)
{
    uint32_t kept = 0;
    if (list->n > 1) {
        qsort(list->items, list->n, sizeof(named), by_named);
    }
    for (uint32_t i = 0; i < list->n; i++) {
        if (i + 1 < list->n && strcmp(list->items[i].name, list->items[i + 1].name) == 0) {
            burni_free(list->items[i].name);
            burni_free(list->items[i].text);
            continue;
        }
        list->items[kept] = list->items[i];
        list->items[kept].order = kept;
        kept++;
    }
    list->n = kept;
}

static uint64_t aligned(uint64_t at)
{
    return (at + BURNI_BPK_ALIGN - 1) / BURNI_BPK_ALIGN * BURNI_BPK_ALIGN;
}

/* Gives each tensor its place; returns the end of the last. Sizes are bounded, so nothing wraps. */
static uint64_t place_tensors(burni_bpk_writer *w)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < w->n_tensors; i++) {
        w->tensors[i].start = aligned(end);
        end = w->tensors[i].start + w->tensors[i].source.nbytes;
    }
    return end;
}

static int32_t put_tensors(burni_bpk_writer *w, blob *b, burn_err *err)
{
    const entry **order = burni_calloc(w->n_tensors + 1u, sizeof(*order));
    int32_t code = order != NULL ? BURN_OK : no_memory(err);
    for (uint32_t i = 0; code == BURN_OK && i < w->n_tensors; i++) {
        order[i] = &w->tensors[i];
    }
    if (code == BURN_OK && w->n_tensors > 1) {
        qsort(order, w->n_tensors, sizeof(order[0]), by_entry_name);
    }
    put_text(b, "tensors");
    put_map(b, w->n_tensors);
    for (uint32_t i = 0; code == BURN_OK && i < w->n_tensors; i++) {
        if (i > 0 && by_entry_name(&order[i - 1], &order[i]) == 0) {
            code = burni_fail(err, BURN_E_INVALID, "burnpack: tensor '%.64s' is there twice",
                              order[i]->source.name);
        }
        put_tensor(b, order[i]);
    }
    burni_free(order);
    return code;
}

static void put_lists(burni_bpk_writer *w, blob *b)
{
    if (w->metadata.n > 0) {
        put_text(b, "metadata");
        put_map(b, w->metadata.n);
    }
    for (uint32_t i = 0; i < w->metadata.n; i++) {
        put_text(b, w->metadata.items[i].name);
        put_text(b, w->metadata.items[i].text);
    }
    if (w->scalars.n > 0) {
        put_text(b, "scalars");
        put_map(b, w->scalars.n);
    }
    for (uint32_t i = 0; i < w->scalars.n; i++) {
        put_scalar(b, &w->scalars.items[i].scalar);
    }
}

static int32_t make_plan(burni_bpk_writer *w, plan *p, burn_err *err)
{
    memset(p, 0, sizeof(*p));
    uint64_t end = place_tensors(w);
    settle(&w->metadata);
    settle(&w->scalars);
    put_map(&p->metadata, 1u + (w->metadata.n > 0) + (w->scalars.n > 0));
    int32_t code = put_tensors(w, &p->metadata, err);
    put_lists(w, &p->metadata);
    if (code == BURN_OK && p->metadata.failed) {
        code = no_memory(err);
    }
    if (code == BURN_OK && p->metadata.n > BURNI_BPK_MAX_METADATA) {
        code = burni_fail(err, BURN_E_LIMIT, "burnpack: %llu bytes of metadata are more than "
                          "100 MiB", (unsigned long long)p->metadata.n);
    }
    p->data = aligned(BURNI_BPK_HEADER + p->metadata.n);
    p->size = p->data + end;
    if (code == BURN_OK && p->size > BURNI_BPK_MAX_FILE) {
        code = burni_fail(err, BURN_E_LIMIT, "burnpack: a file of %llu bytes is more than 100 GiB",
                          (unsigned long long)p->size);
    }
    if (code != BURN_OK) {
        burni_free(p->metadata.bytes);
        p->metadata.bytes = NULL;
    }
    return code;
}

int32_t burni_bpk_size(burni_bpk_writer *writer, uint64_t *size, burn_err *err)
{
    plan p;
    int32_t code = make_plan(writer, &p, err);
    if (code == BURN_OK) {
        *size = p.size;
        burni_free(p.metadata.bytes);
    }
    return code;
}

/* ---- the stream ------------------------------------------------------------------------------ */

typedef struct stream {
    int fd;
    const char *path; /* for texts */
    unsigned char *buffer;
    size_t room;
    size_t used;
    uint64_t at; /* in the file, with what is in the buffer */
    burn_err *err;
} stream;

static int32_t failed(const stream *s, const char *what)
{
    int cause = errno;
    return burni_fail(s->err, BURN_E_IO, "%s: %s failed: %s", burni_bpk_short_path(s->path), what,
                      strerror(cause));
}

static int32_t flush(stream *s)
{
    size_t done = 0;
    while (done < s->used) {
        ssize_t n = write(s->fd, s->buffer + done, s->used - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n == 0 ? ENOSPC : errno;
            return failed(s, "writing");
        }
        done += (size_t)n;
    }
    s->used = 0;
    return BURN_OK;
}

/* Where up to n bytes can be put (*n is cut to what fits); NULL: writing failed. */
static unsigned char *space(stream *s, uint64_t *n, int32_t *code)
{
    if (s->used == s->room) {
        *code = flush(s);
        if (*code != BURN_OK) {
            return NULL;
        }
    }
    uint64_t free_bytes = s->room - s->used;
    *n = *n < free_bytes ? *n : free_bytes;
    return s->buffer + s->used;
}

static void taken(stream *s, uint64_t n)
{
    s->used += (size_t)n;
    s->at += n;
}

/* Copies bytes; NULL means zeros. */
static int32_t stream_bytes(stream *s, const unsigned char *bytes, uint64_t n)
{
    int32_t code = BURN_OK;
    for (uint64_t done = 0; done < n;) {
        uint64_t part = n - done;
        unsigned char *to = space(s, &part, &code);
        if (to == NULL) {
            return code;
        }
        if (bytes != NULL) {
            memcpy(to, bytes + done, part);
        } else {
            memset(to, 0, part);
        }
        taken(s, part);
        done += part;
    }
    return BURN_OK;
}

static int32_t stream_tensor(stream *s, const burni_bpk_source *source)
{
    int32_t code = BURN_OK;
    for (uint64_t done = 0; done < source->nbytes;) {
        uint64_t part = source->nbytes - done;
        unsigned char *to = space(s, &part, &code);
        if (to == NULL) {
            return code;
        }
        code = source->produce(source->user, done, part, to, s->err);
        if (code != BURN_OK) {
            burni_prefix(s->err, "tensor '%.64s'", source->name);
            return code;
        }
        taken(s, part);
        done += part;
    }
    return BURN_OK;
}

static int32_t stream_file(const burni_bpk_writer *w, const plan *p, stream *s)
{
    unsigned char head[BURNI_BPK_HEADER] = {0x4E, 0x52, 0x55, 0x42, BURNI_BPK_VERSION, 0};
    for (uint32_t i = 0; i < 4; i++) {
        head[6 + i] = (unsigned char)(p->metadata.n >> (8 * i));
    }
    int32_t code = stream_bytes(s, head, sizeof(head));
    if (code == BURN_OK) {
        code = stream_bytes(s, p->metadata.bytes, p->metadata.n);
    }
    if (code == BURN_OK) {
        code = stream_bytes(s, NULL, p->data - s->at);
    }
    for (uint32_t i = 0; code == BURN_OK && i < w->n_tensors; i++) {
        code = stream_bytes(s, NULL, p->data + w->tensors[i].start - s->at);
        if (code == BURN_OK) {
            code = stream_tensor(s, &w->tensors[i].source);
        }
    }
    return code == BURN_OK ? flush(s) : code;
}

/* ---- the atomic save ------------------------------------------------------------------------- */

/* Opens a file beside `path` that nobody has; *scratch is its name. */
static int open_scratch(const char *path, char **scratch)
{
    static _Atomic uint32_t counter;
    size_t room = strlen(path) + 48;
    int fd = -1;
    *scratch = burni_alloc(room);
    if (*scratch == NULL) {
        errno = ENOMEM;
        return -1;
    }
    for (int attempt = 0; attempt < 1000; attempt++) {
        uint32_t number = atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
        (void)snprintf(*scratch, room, "%s.%ld-%lu.tmp", path, (long)getpid(),
                       (unsigned long)number);
        fd = open(*scratch, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) {
            break;
        }
    }
    return fd;
}

/* The folder of `path`, opened before the save begins: after the rename nothing may fail that could
 * have failed before it. */
static int open_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
    char *folder = burni_alloc(n + 1);
    if (folder == NULL) {
        errno = ENOMEM;
        return -1;
    }
    memcpy(folder, slash == NULL ? "." : path, n);
    folder[n] = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    burni_free(folder);
    return fd;
}

static int32_t sync_folder(const stream *s, int fd)
{
    int ok = fsync(fd) == 0 || errno == EINVAL; /* some file systems cannot */
    return ok ? BURN_OK : failed(s, "syncing its folder");
}

/*
 * A write beyond the file size limit raises SIGXFSZ, which would end the process. It is held back
 * in this thread while we write, and taken away if it came; the write itself returns EFBIG.
 */
typedef struct held_signal {
    sigset_t before;
    int pending; /* it was there already, and is not ours */
} held_signal;

static void hold_signal(held_signal *h)
{
    sigset_t set;
    sigset_t waiting;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGXFSZ);
    h->pending = sigpending(&waiting) == 0 && sigismember(&waiting, SIGXFSZ) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &set, &h->before);
}

static void release_signal(const held_signal *h)
{
    const struct timespec at_once = {0, 0};
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGXFSZ);
    while (!h->pending && sigtimedwait(&set, NULL, &at_once) == SIGXFSZ) {
    }
    (void)pthread_sigmask(SIG_SETMASK, &h->before, NULL);
}

static int32_t fill_scratch(const burni_bpk_writer *w, const plan *p, stream *s)
{
    held_signal held;
    s->room = p->size < BURNI_BPK_CHUNK ? (size_t)p->size : BURNI_BPK_CHUNK;
    s->buffer = burni_alloc(s->room);
    if (s->buffer == NULL) {
        return no_memory(s->err);
    }
    hold_signal(&held);
    int32_t code = stream_file(w, p, s);
    release_signal(&held);
    burni_free(s->buffer);
    if (code == BURN_OK && fsync(s->fd) != 0) {
        code = failed(s, "syncing");
    }
    return code;
}

/* Writes the scratch file and puts it in place; the folder is open. */
static int32_t write_scratch(burni_bpk_writer *writer, const plan *p, stream *s, int folder)
{
    char *scratch = NULL;
    int32_t code = BURN_OK;
    s->fd = open_scratch(s->path, &scratch);
    if (s->fd < 0) {
        code = failed(s, "creating a file beside it");
    } else {
        code = fill_scratch(writer, p, s);
        if (close(s->fd) != 0 && code == BURN_OK) {
            code = failed(s, "closing");
        }
        if (code == BURN_OK && rename(scratch, s->path) != 0) {
            code = failed(s, "renaming the new file over it");
        }
        if (code != BURN_OK) {
            (void)unlink(scratch);
        } else {
            code = sync_folder(s, folder);
        }
    }
    burni_free(scratch);
    return code;
}

static int32_t write_target(burni_bpk_writer *writer, const char *path, burn_err *err)
{
    plan p;
    stream s;
    memset(&s, 0, sizeof(s));
    s.path = path;
    s.err = err;
    int32_t code = make_plan(writer, &p, err);
    if (code != BURN_OK) {
        return code;
    }
    int folder = open_folder(path);
    if (folder < 0) {
        code = failed(&s, "opening its folder");
    } else {
        code = write_scratch(writer, &p, &s, folder);
        (void)close(folder);
    }
    burni_free(p.metadata.bytes);
    return code;
}

int32_t burni_bpk_write_file(burni_bpk_writer *writer, const char *path, burn_err *err)
{
    char *target = NULL;
    int32_t code = burni_bpk_target(path, &target, err);
    if (code == BURN_OK) {
        code = write_target(writer, target, err);
    }
    burni_free(target);
    return code;
}
