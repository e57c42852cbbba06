/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * idx.c - the reader for IDX files, the format of MNIST and its kin.
 *
 * Layout: two zero bytes, a type code, the rank, then one big-endian u32 per dim, then the
 * elements, big-endian. The header is not trusted: its product is checked for overflow and against
 * the cap, memory grows as data arrive, and the data must end exactly where the header says. To
 * take one more element type, add a row to `types`.
 */
#include "train/data/idx.h"

#include "train/base/error.h"
#include "train/data/byte_stream.h"

#include <burn/dtype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK = 65536, HEADER_FIXED = 4 };
static const uint64_t default_max_bytes = UINT64_C(4) << 30;

typedef struct idx_type {
    uint8_t code;
    uint8_t dtype;
    uint8_t size;
} idx_type;

static const idx_type types[] = {
    {0x08, BURN_U8, 1},  {0x09, BURN_I8, 1},  {0x0b, BURN_I16, 2},
    {0x0c, BURN_I32, 4}, {0x0d, BURN_F32, 4}, {0x0e, BURN_F64, 8},
};

static const idx_type *find_type(unsigned char code)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].code == code) {
            return &types[i];
        }
    }
    return NULL;
}

/* "[60000,28,28]" for error texts. */
static const char *dims_text(const burn_idx *idx, char *text, size_t size)
{
    size_t at = 0;
    for (uint32_t i = 0; i < idx->rank && at < size; i++) {
        int n = snprintf(text + at, size - at, "%s%lld", i == 0 ? "[" : ",",
                         (long long)idx->dims[i]);
        at += n > 0 ? (size_t)n : 0;
    }
    if (at < size) {
        (void)snprintf(text + at, size - at, "]");
    }
    return text;
}

/* Reads exactly `want` bytes of the header. */
static int32_t read_header_part(burni_byte_stream *stream, unsigned char *out, size_t want,
                                uint64_t offset, burn_err *err)
{
    size_t got;
    int32_t code = burni_byte_stream_read(stream, out, want, &got, err);
    if (code == BURN_OK && got < want) {
        code = burni_train_fail(err, BURN_E_FORMAT,
                                "idx: %s: the header ends at offset %llu, expected %llu more bytes "
                                "there; the file is cut short",
                                stream->name, (unsigned long long)(offset + got),
                                (unsigned long long)(want - got));
    }
    return code;
}

static int32_t read_magic(burni_byte_stream *stream, burn_idx *idx, burn_err *err)
{
    unsigned char head[HEADER_FIXED];
    int32_t code = read_header_part(stream, head, sizeof(head), 0, err);
    if (code != BURN_OK) {
        return code;
    }
    const idx_type *type = find_type(head[2]);
    if (head[0] != 0 || head[1] != 0 || type == NULL) {
        return burni_train_fail(err, BURN_E_FORMAT,
                                "idx: %s: bytes %02x %02x %02x %02x at offset 0 are no IDX magic "
                                "number, expected 00 00, a type of 08 09 0b 0c 0d 0e, and the rank",
                                stream->name, head[0], head[1], head[2], head[3]);
    }
    if (head[3] == 0 || head[3] > BURNI_IDX_MAX_RANK) {
        return burni_train_fail(err, BURN_E_FORMAT,
                                "idx: %s: rank %u at offset 3, expected 1 to %d", stream->name,
                                (unsigned)head[3], (int)BURNI_IDX_MAX_RANK);
    }
    idx->dtype = type->dtype;
    idx->item_size = type->size;
    idx->rank = head[3];
    return BURN_OK;
}

/* The dims; their product in bytes must fit the cap. A zero dim is fine: no elements. */
static int32_t read_dims(burni_byte_stream *stream, burn_idx *idx, uint64_t max_bytes,
                         burn_err *err)
{
    unsigned char raw[4 * BURNI_IDX_MAX_RANK];
    int32_t code = read_header_part(stream, raw, (size_t)4 * idx->rank, HEADER_FIXED, err);
    if (code != BURN_OK) {
        return code;
    }
    int empty = 0;
    for (uint32_t i = 0; i < idx->rank; i++) {
        const unsigned char *b = raw + (size_t)4 * i;
        idx->dims[i] = (int64_t)(((uint32_t)b[0] << 24) | ((uint32_t)b[1] << 16) |
                                 ((uint32_t)b[2] << 8) | (uint32_t)b[3]);
        empty |= idx->dims[i] == 0;
    }
    uint64_t max_elements = max_bytes / idx->item_size;
    idx->n = empty ? 0 : 1;
    for (uint32_t i = 0; i < idx->rank && !empty; i++) {
        if (idx->n > max_elements / (uint64_t)idx->dims[i]) {
            char text[128];
            return burni_train_fail(err, BURN_E_LIMIT,
                                    "idx: %s: dims %s at offset 4 ask for more than the limit of "
                                    "%llu bytes; raise max_bytes if that is right",
                                    stream->name, dims_text(idx, text, sizeof(text)),
                                    (unsigned long long)max_bytes);
        }
        idx->n *= (uint64_t)idx->dims[i];
    }
    return BURN_OK;
}

/* Memory doubles as data arrive, so a header that lies costs at most twice the real data. */
static int32_t read_elements(burni_byte_stream *stream, burn_idx *idx, burn_err *err)
{
    uint64_t total = idx->n * idx->item_size;
    uint64_t size = 0;
    uint64_t cap = 0;
    while (size < total || idx->data == NULL) {
        uint64_t grown = cap == 0 ? FIRST_BLOCK : cap * 2;
        cap = grown < total ? grown : total;
        unsigned char *data = realloc(idx->data, cap > 0 ? (size_t)cap : 1);
        if (data == NULL) {
            return burni_train_fail(err, BURN_E_NO_MEMORY, "idx: %s: no memory for %llu bytes",
                                    stream->name, (unsigned long long)cap);
        }
        idx->data = data;
        size_t got;
        int32_t code = burni_byte_stream_read(stream, data + size, (size_t)(cap - size), &got, err);
        if (code != BURN_OK) {
            return code;
        }
        size += got;
        if (size < cap) {
            char text[128];
            return burni_train_fail(
                err, BURN_E_FORMAT,
                "idx: %s: dims %s promise %llu bytes of elements, found %llu; data end at offset "
                "%llu",
                stream->name, dims_text(idx, text, sizeof(text)), (unsigned long long)total,
                (unsigned long long)size,
                (unsigned long long)(HEADER_FIXED + 4u * idx->rank + size));
        }
    }
    return BURN_OK;
}

static int32_t expect_end(burni_byte_stream *stream, const burn_idx *idx, burn_err *err)
{
    unsigned char extra;
    size_t got;
    int32_t code = burni_byte_stream_read(stream, &extra, 1, &got, err);
    if (code == BURN_OK && got != 0) {
        char text[128];
        uint64_t end = HEADER_FIXED + 4u * (uint64_t)idx->rank + idx->n * idx->item_size;
        code = burni_train_fail(err, BURN_E_FORMAT,
                                "idx: %s: bytes follow at offset %llu, where dims %s say that the "
                                "data end",
                                stream->name, (unsigned long long)end,
                                dims_text(idx, text, sizeof(text)));
    }
    return code;
}

static void swap_elements(burn_idx *idx)
{
    const uint16_t one = 1;
    unsigned char low;
    memcpy(&low, &one, 1);
    if (low == 0 || idx->item_size == 1) {
        return; /* the machine has the file's byte order already */
    }
    for (uint64_t i = 0; i < idx->n; i++) {
        unsigned char *b = idx->data + i * idx->item_size;
        for (uint32_t k = 0; k < idx->item_size / 2; k++) {
            unsigned char other = b[idx->item_size - 1 - k];
            b[idx->item_size - 1 - k] = b[k];
            b[k] = other;
        }
    }
}

static int32_t read_all(burni_byte_stream *stream, uint64_t max_bytes, burn_idx *idx, burn_err *err)
{
    int32_t code = read_magic(stream, idx, err);
    if (code == BURN_OK) {
        code = read_dims(stream, idx, max_bytes == 0 ? default_max_bytes : max_bytes, err);
    }
    if (code == BURN_OK) {
        code = read_elements(stream, idx, err);
    }
    if (code == BURN_OK) {
        code = expect_end(stream, idx, err);
    }
    if (code == BURN_OK) {
        swap_elements(idx);
    }
    return code;
}

/* Takes the open stream over: closes it in any case. */
static int32_t read_stream(burni_byte_stream *stream, uint64_t max_bytes, burn_idx **out,
                           burn_err *err)
{
    burn_idx *idx = calloc(1, sizeof(*idx));
    int32_t code;
    if (idx == NULL) {
        code = burni_train_fail(err, BURN_E_NO_MEMORY, "idx: %s: no memory", stream->name);
    } else {
        code = read_all(stream, max_bytes, idx, err);
    }
    burni_byte_stream_close(stream);
    if (code != BURN_OK) {
        burn_idx_close(idx);
        return code;
    }
    *out = idx;
    return BURN_OK;
}

int32_t burn_idx_open(const char *path, uint64_t max_bytes, burn_idx **out, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    if (out != NULL) {
        *out = NULL;
    }
    if (out == NULL || path == NULL || path[0] == '\0') {
        return burni_train_fail(err, BURN_E_INVALID,
                                "idx: a path and a place for the result are needed");
    }
    burni_byte_stream *stream = malloc(sizeof(*stream));
    if (stream == NULL) {
        return burni_train_fail(err, BURN_E_NO_MEMORY, "idx: no memory to read %s", path);
    }
    int32_t code = burni_byte_stream_open(stream, path, err);
    if (code == BURN_OK) {
        code = read_stream(stream, max_bytes, out, err);
    }
    free(stream);
    return code;
}

int32_t burn_idx_parse(const void *bytes, uint64_t size, const char *name, uint64_t max_bytes,
                       burn_idx **out, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    if (out != NULL) {
        *out = NULL;
    }
    if (out == NULL || (bytes == NULL && size > 0)) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "idx: bytes and a place for the result are needed");
    }
    burni_byte_stream *stream = malloc(sizeof(*stream));
    if (stream == NULL) {
        return burni_train_fail(err, BURN_E_NO_MEMORY, "idx: no memory to read from memory");
    }
    const char *shown = name != NULL ? name : "memory";
    int32_t code = burni_byte_stream_open_memory(stream, bytes, size, shown, err);
    if (code == BURN_OK) {
        code = read_stream(stream, max_bytes, out, err);
    }
    free(stream);
    return code;
}

void burn_idx_close(burn_idx *idx)
{
    if (idx != NULL) {
        free(idx->data);
        free(idx);
    }
}

uint32_t burn_idx_rank(const burn_idx *idx)
{
    return idx->rank;
}

int64_t burn_idx_dim(const burn_idx *idx, uint32_t axis)
{
    return axis < idx->rank ? idx->dims[axis] : 0;
}

uint8_t burn_idx_dtype(const burn_idx *idx)
{
    return idx->dtype;
}

const void *burn_idx_data(const burn_idx *idx)
{
    return idx->data;
}
