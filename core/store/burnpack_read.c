/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * burnpack_read.c - opening a burnpack file and reading its tensors' bytes.
 *
 * The file is never mapped: another process may cut it short, which is an error here and would be a
 * signal there. Opening reads header and metadata; bytes are read when they are asked for, straight
 * into the caller's memory. Every range is checked against the file at opening, so that reading has
 * only the disk to fear.
 */
#include "store/burnpack_cbor.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct burni_bpk_reader {
    int fd; /* -1: bytes */
    const unsigned char *bytes;
    uint64_t size;
    uint64_t data; /* where the data section starts */
    char *path;
    burni_bpk_contents contents;
};

/* ---- bytes ----------------------------------------------------------------------------------- */

static int32_t read_at(const burni_bpk_reader *r, uint64_t at, uint64_t n, void *to, burn_err *err)
{
    unsigned char *next = to;
    if (at > r->size || n > r->size - at) {
        return burni_fail(err, BURN_E_FORMAT, "%s: it ends at byte %llu, wanted are %llu from %llu",
                          burni_bpk_short_path(r->path), (unsigned long long)r->size,
                          (unsigned long long)n, (unsigned long long)at);
    }
    if (r->fd < 0) {
        memcpy(next, r->bytes + at, n);
        return BURN_OK;
    }
    while (n > 0) {
        size_t part = n > BURNI_BPK_CHUNK ? BURNI_BPK_CHUNK : (size_t)n;
        ssize_t got = pread(r->fd, next, part, (off_t)at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return burni_fail(err, BURN_E_IO, "%s: reading at byte %llu failed: %s",
                              burni_bpk_short_path(r->path), (unsigned long long)at,
                              got < 0 ? strerror(errno) : "the file was cut short meanwhile");
        }
        next += got;
        at += (uint64_t)got;
        n -= (uint64_t)got;
    }
    return BURN_OK;
}

static uint32_t little(const unsigned char *p, uint32_t n)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < n; i++) {
        value |= (uint32_t)p[i] << (8 * i);
    }
    return value;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int32_t check_header(burni_bpk_reader *r, uint64_t *metadata, burn_err *err)
{
    unsigned char head[BURNI_BPK_HEADER];
    const char *path = burni_bpk_short_path(r->path);
    if (r->size < sizeof(head)) {
        return burni_fail(err, BURN_E_FORMAT, "%s: %llu bytes are too few for a burnpack file",
                          path, (unsigned long long)r->size);
    }
    if (r->size > BURNI_BPK_MAX_FILE) {
        return burni_fail(err, BURN_E_LIMIT, "%s: %llu bytes are more than 100 GiB", path,
                          (unsigned long long)r->size);
    }
    int32_t code = read_at(r, 0, sizeof(head), head, err);
    if (code != BURN_OK) {
        return code;
    }
    if (little(head, 4) != BURNI_BPK_MAGIC) {
        return burni_fail(err, BURN_E_FORMAT,
                          "%s: not a burnpack file (it starts with %02x %02x %02x %02x)", path,
                          head[0], head[1], head[2], head[3]);
    }
    if (little(head + 4, 2) != BURNI_BPK_VERSION) {
        return burni_fail(err, BURN_E_FORMAT, "%s: burnpack version %u; this build reads 1", path,
                          (unsigned)little(head + 4, 2));
    }
    *metadata = little(head + 6, 4);
    if (*metadata > BURNI_BPK_MAX_METADATA || *metadata > r->size - sizeof(head)) {
        return burni_fail(err, BURN_E_FORMAT,
                          "%s: metadata of %llu bytes; the file has %llu, and 100 MiB is the limit",
                          path, (unsigned long long)*metadata,
                          (unsigned long long)(r->size - sizeof(head)));
    }
    return BURN_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const burni_bpk_tensor *)a)->name, ((const burni_bpk_tensor *)b)->name);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const burni_bpk_pair *)a)->key, ((const burni_bpk_pair *)b)->key);
}

static int by_scalar(const void *a, const void *b)
{
    return strcmp(((const burni_bpk_scalar *)a)->name, ((const burni_bpk_scalar *)b)->name);
}

static int by_position(const void *a, const void *b)
{
    const burni_bpk_tensor *x = *(const burni_bpk_tensor *const *)a;
    const burni_bpk_tensor *y = *(const burni_bpk_tensor *const *)b;
    if (x->position != y->position) {
        return x->position < y->position ? -1 : 1;
    }
    return x->nbytes < y->nbytes ? -1 : x->nbytes > y->nbytes;
}

/* Sorts a list and refuses neighbours with one name; the name is each element's first field. */
static int32_t sort_unique(const burni_bpk_reader *r, void *list, uint32_t n, size_t size,
                           int (*order)(const void *, const void *), const char *what,
                           burn_err *err)
{
    char *elements = list;
    if (n > 1) {
        qsort(list, n, size, order);
    }
    for (uint32_t i = 1; i < n; i++) {
        if (order(elements + (i - 1) * size, elements + i * size) == 0) {
            const char *name;
            memcpy(&name, elements + i * size, sizeof(name));
            return burni_fail(err, BURN_E_FORMAT, "%s: %s '%.64s' is there twice",
                              burni_bpk_short_path(r->path), what, name);
        }
    }
    return BURN_OK;
}

static int32_t sort_contents(burni_bpk_reader *r, burn_err *err)
{
    burni_bpk_contents *c = &r->contents;
    int32_t code = sort_unique(r, c->tensors, c->n_tensors, sizeof(c->tensors[0]), by_name,
                               "tensor", err);
    if (code == BURN_OK) {
        code = sort_unique(r, c->metadata, c->n_metadata, sizeof(c->metadata[0]), by_key,
                           "metadata", err);
    }
    if (code == BURN_OK) {
        code = sort_unique(r, c->scalars, c->n_scalars, sizeof(c->scalars[0]), by_scalar,
                           "scalar", err);
    }
    return code;
}

/* The file ends with its last tensor; without one, somewhere in the padding before the data. */
static int32_t check_end(const burni_bpk_reader *r, uint64_t end, burn_err *err)
{
    if (r->size <= r->data + end) {
        return BURN_OK;
    }
    return burni_fail(err, BURN_E_FORMAT,
                      "%s: %llu bytes follow the end of its tensors at %llu; the file is damaged, "
                      "or something was appended to it", burni_bpk_short_path(r->path),
                      (unsigned long long)(r->size - r->data - end),
                      (unsigned long long)(r->data + end));
}

/* Every tensor within the file, no two over each other. `order` has room for all of them. */
static int32_t check_layout(burni_bpk_reader *r, const burni_bpk_tensor **order, burn_err *err)
{
    burni_bpk_contents *c = &r->contents;
    uint64_t room = r->size > r->data ? r->size - r->data : 0;
    uint64_t end = 0;
    const burni_bpk_tensor *last = NULL;
    for (uint32_t i = 0; i < c->n_tensors; i++) {
        const burni_bpk_tensor *t = &c->tensors[i];
        if (t->position > room || t->nbytes > room - t->position) {
            return burni_fail(err, BURN_E_FORMAT,
                              "%s: tensor '%.64s' is at %llu to %llu of %llu bytes of data; the "
                              "file is truncated or damaged", burni_bpk_short_path(r->path),
                              t->name, (unsigned long long)t->position,
                              (unsigned long long)(t->position + t->nbytes),
                              (unsigned long long)room);
        }
        end = t->position + t->nbytes > end ? t->position + t->nbytes : end;
        order[i] = t;
    }
    if (c->n_tensors > 1) {
        qsort(order, c->n_tensors, sizeof(order[0]), by_position);
    }
    for (uint32_t i = 0; i < c->n_tensors; i++) {
        if (last != NULL && order[i]->nbytes > 0 &&
            order[i]->position < last->position + last->nbytes) {
            return burni_fail(err, BURN_E_FORMAT, "%s: tensors '%.48s' and '%.48s' overlap",
                              burni_bpk_short_path(r->path), last->name, order[i]->name);
        }
        last = order[i]->nbytes > 0 ? order[i] : last;
    }
    for (uint32_t i = 0; i < c->n_tensors; i++) {
        c->tensors[i].position += r->data;
    }
    return check_end(r, end, err);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int32_t parse_metadata(burni_bpk_reader *r, uint64_t size, burn_err *err)
{
    unsigned char *bytes = burni_alloc(size + 1);
    if (bytes == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "%s: out of memory for %llu bytes of metadata",
                          burni_bpk_short_path(r->path), (unsigned long long)size);
    }
    int32_t code = read_at(r, BURNI_BPK_HEADER, size, bytes, err);
    if (code == BURN_OK) {
        code = burni_bpk_parse(bytes, size, &r->contents, err);
        if (code != BURN_OK) {
            burni_prefix(err, "%s", burni_bpk_short_path(r->path));
        }
    }
    burni_free(bytes);
    return code;
}

static int32_t load(burni_bpk_reader *r, burn_err *err)
{
    uint64_t size = 0;
    int32_t code = check_header(r, &size, err);
    if (code == BURN_OK) {
        uint64_t end = BURNI_BPK_HEADER + size;
        r->data = (end + BURNI_BPK_ALIGN - 1) / BURNI_BPK_ALIGN * BURNI_BPK_ALIGN;
        code = parse_metadata(r, size, err);
    }
    if (code == BURN_OK) {
        code = sort_contents(r, err);
    }
    if (code != BURN_OK) {
        return code;
    }
    const burni_bpk_tensor **order = burni_calloc(r->contents.n_tensors + 1u, sizeof(*order));
    if (order == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "%s: out of memory for %u tensors",
                          burni_bpk_short_path(r->path), (unsigned)r->contents.n_tensors);
    }
    code = check_layout(r, order, err);
    burni_free(order);
    return code;
}

static int32_t finish(burni_bpk_reader *r, int32_t code, burni_bpk_reader **out, burn_err *err)
{
    if (code == BURN_OK) {
        code = load(r, err);
    }
    if (code != BURN_OK) {
        burni_bpk_close(r);
        return code;
    }
    *out = r;
    return BURN_OK;
}

static burni_bpk_reader *new_reader(const char *name, burn_err *err)
{
    burni_bpk_reader *r = burni_calloc(1, sizeof(*r));
    if (r != NULL) {
        r->fd = -1;
        r->path = burni_strdup(name);
    }
    if (r == NULL || r->path == NULL) {
        burni_free(r);
        (void)burni_fail(err, BURN_E_NO_MEMORY, "%s: out of memory", burni_bpk_short_path(name));
        return NULL;
    }
    return r;
}

static int32_t open_file(burni_bpk_reader *r, burn_err *err)
{
    struct stat st;
    const char *path = burni_bpk_short_path(r->path);
    r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hold us up */
    if (r->fd < 0) {
        int32_t code = errno == ENOENT ? BURN_E_NOT_FOUND : BURN_E_IO;
        return burni_fail(err, code, "%s: cannot open: %s", path, strerror(errno));
    }
    if (fstat(r->fd, &st) != 0) {
        return burni_fail(err, BURN_E_IO, "%s: cannot ask for its size: %s", path, strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return burni_fail(err, BURN_E_INVALID, "%s: not a regular file", path);
    }
    r->size = (uint64_t)st.st_size;
    return BURN_OK;
}

int32_t burni_bpk_open(const char *path, burni_bpk_reader **out, burn_err *err)
{
    *out = NULL;
    burni_bpk_reader *r = new_reader(path, err);
    return r == NULL ? BURN_E_NO_MEMORY : finish(r, open_file(r, err), out, err);
}

int32_t burni_bpk_open_bytes(const void *bytes, uint64_t size, const char *name,
                             burni_bpk_reader **out, burn_err *err)
{
    *out = NULL;
    burni_bpk_reader *r = new_reader(name, err);
    if (r == NULL) {
        return BURN_E_NO_MEMORY;
    }
    r->bytes = bytes;
    r->size = size;
    return finish(r, BURN_OK, out, err);
}

void burni_bpk_close(burni_bpk_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    if (reader->fd >= 0) {
        (void)close(reader->fd);
    }
    burni_bpk_contents_free(&reader->contents);
    burni_free(reader->path);
    burni_free(reader);
}

/* ---- asking ---------------------------------------------------------------------------------- */

uint32_t burni_bpk_tensor_count(const burni_bpk_reader *reader)
{
    return reader->contents.n_tensors;
}

const burni_bpk_tensor *burni_bpk_tensor_at(const burni_bpk_reader *reader, uint32_t i)
{
    return i < reader->contents.n_tensors ? &reader->contents.tensors[i] : NULL;
}

const burni_bpk_tensor *burni_bpk_tensor_find(const burni_bpk_reader *reader, const char *name)
{
    burni_bpk_tensor wanted;
    memset(&wanted, 0, sizeof(wanted));
    wanted.name = name;
    if (reader->contents.n_tensors == 0) {
        return NULL;
    }
    return bsearch(&wanted, reader->contents.tensors, reader->contents.n_tensors, sizeof(wanted),
                   by_name);
}

uint32_t burni_bpk_metadata_count(const burni_bpk_reader *reader)
{
    return reader->contents.n_metadata;
}

const burni_bpk_pair *burni_bpk_metadata_at(const burni_bpk_reader *reader, uint32_t i)
{
    return i < reader->contents.n_metadata ? &reader->contents.metadata[i] : NULL;
}

uint32_t burni_bpk_scalar_count(const burni_bpk_reader *reader)
{
    return reader->contents.n_scalars;
}

const burni_bpk_scalar *burni_bpk_scalar_at(const burni_bpk_reader *reader, uint32_t i)
{
    return i < reader->contents.n_scalars ? &reader->contents.scalars[i] : NULL;
}

int32_t burni_bpk_read(const burni_bpk_reader *reader, const burni_bpk_tensor *tensor,
                       uint64_t offset, uint64_t n, void *to, burn_err *err)
{
    if (offset > tensor->nbytes || n > tensor->nbytes - offset) {
        return burni_fail(err, BURN_E_INVALID,
                          "%s: tensor '%.64s' has %llu bytes, wanted are %llu from %llu",
                          burni_bpk_short_path(reader->path), tensor->name,
                          (unsigned long long)tensor->nbytes, (unsigned long long)n,
                          (unsigned long long)offset);
    }
    if (n == 0) {
        return BURN_OK;
    }
    return read_at(reader, tensor->position + offset, n, to, err);
}
