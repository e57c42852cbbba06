/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * byte_stream.c - the bytes of a file or of memory, unpacked on the way when they are gzip'ed.
 *
 * `z.next_in` and `z.avail_in` always describe what of `chunk` is not used yet, also for plain
 * bytes, so there is one way to refill. Output goes straight into the caller's memory.
 */
#include "train/data/byte_stream.h"

#include "train/base/error.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum { NAME_SHOWN = 72, GZIP_WINDOW = 15 + 16 };

static const char *end_of_name(const char *name)
{
    size_t length = strlen(name);
    return length > NAME_SHOWN ? name + (length - NAME_SHOWN) : name;
}

/* Fills `chunk` when it is used up; at the end of the source avail_in stays 0. */
static int32_t refill(burni_byte_stream *s, burn_err *err)
{
    if (s->z.avail_in > 0) {
        return BURN_OK;
    }
    size_t got;
    if (s->file != NULL) {
        errno = 0;
        got = fread(s->chunk, 1, sizeof(s->chunk), s->file);
        if (got == 0 && ferror(s->file)) {
            return burni_train_fail(err, BURN_E_IO, "%s: reading failed at offset %llu: %s",
                                    s->name, (unsigned long long)s->raw_read, strerror(errno));
        }
    } else {
        got = s->memory_left < sizeof(s->chunk) ? (size_t)s->memory_left : sizeof(s->chunk);
        if (got > 0) {
            memcpy(s->chunk, s->memory, got);
            s->memory += got;
        }
        s->memory_left -= got;
    }
    s->raw_read += got;
    s->z.next_in = s->chunk;
    s->z.avail_in = (uInt)got;
    return BURN_OK;
}

static uint64_t raw_offset(const burni_byte_stream *s)
{
    return s->raw_read - s->z.avail_in;
}

/* Looks at the first bytes and prepares for what they are. */
static int32_t begin(burni_byte_stream *s, burn_err *err)
{
    int32_t code = refill(s, err);
    if (code != BURN_OK) {
        return code;
    }
    s->gzip = s->z.avail_in >= 2 && s->chunk[0] == 0x1f && s->chunk[1] == 0x8b;
    if (s->gzip && inflateInit2(&s->z, GZIP_WINDOW) != Z_OK) {
        s->gzip = 0;
        return burni_train_fail(err, BURN_E_NO_MEMORY, "%s: no memory to unpack it", s->name);
    }
    return BURN_OK;
}

int32_t burni_byte_stream_open(burni_byte_stream *stream, const char *path, burn_err *err)
{
    memset(stream, 0, sizeof(*stream));
    stream->name = end_of_name(path);
    stream->file = fopen(path, "rb");
    if (stream->file == NULL) {
        return burni_train_fail(err, errno == ENOENT ? BURN_E_NOT_FOUND : BURN_E_IO,
                                "%s: cannot be opened: %s", stream->name, strerror(errno));
    }
    int32_t code = begin(stream, err);
    if (code != BURN_OK) {
        burni_byte_stream_close(stream);
    }
    return code;
}

int32_t burni_byte_stream_open_memory(burni_byte_stream *stream, const void *bytes, uint64_t size,
                                      const char *name, burn_err *err)
{
    memset(stream, 0, sizeof(*stream));
    stream->name = end_of_name(name);
    stream->memory = bytes;
    stream->memory_left = size;
    int32_t code = begin(stream, err);
    if (code != BURN_OK) {
        burni_byte_stream_close(stream);
    }
    return code;
}

void burni_byte_stream_close(burni_byte_stream *stream)
{
    if (stream->gzip) {
        (void)inflateEnd(&stream->z);
        stream->gzip = 0;
    }
    if (stream->file != NULL) {
        (void)fclose(stream->file);
        stream->file = NULL;
    }
}

static int32_t read_plain(burni_byte_stream *s, unsigned char *out, size_t want, size_t *out_got,
                          burn_err *err)
{
    size_t got = 0;
    while (got < want) {
        int32_t code = refill(s, err);
        if (code != BURN_OK) {
            return code;
        }
        if (s->z.avail_in == 0) {
            break;
        }
        size_t n = want - got < s->z.avail_in ? want - got : s->z.avail_in;
        memcpy(out + got, s->z.next_in, n);
        s->z.next_in += n;
        s->z.avail_in -= (uInt)n;
        got += n;
    }
    *out_got = got;
    return BURN_OK;
}

/* Between two members: the next one begins here, or nothing may follow. */
static int32_t next_member(burni_byte_stream *s, burn_err *err)
{
    if (s->z.next_in[0] != 0x1f || inflateReset(&s->z) != Z_OK) {
        return burni_train_fail(err, BURN_E_FORMAT,
                                "%s: bytes that are no gzip data follow at offset %llu; the file "
                                "was changed or joined with another",
                                s->name, (unsigned long long)raw_offset(s));
    }
    s->member_done = 0;
    return BURN_OK;
}

static int32_t inflate_some(burni_byte_stream *s, burn_err *err)
{
    int result = inflate(&s->z, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
        s->member_done = 1;
        return BURN_OK;
    }
    if (result == Z_OK || result == Z_BUF_ERROR) {
        return BURN_OK;
    }
    if (result == Z_MEM_ERROR) {
        return burni_train_fail(err, BURN_E_NO_MEMORY, "%s: no memory to unpack it", s->name);
    }
    return burni_train_fail(err, BURN_E_FORMAT, "%s: gzip data is damaged at offset %llu (%s)",
                            s->name, (unsigned long long)raw_offset(s),
                            s->z.msg != NULL ? s->z.msg : "no details");
}

static int32_t read_gzip(burni_byte_stream *s, unsigned char *out, size_t want, size_t *out_got,
                         burn_err *err)
{
    size_t got = 0;
    while (got < want) {
        int32_t code = refill(s, err);
        if (code == BURN_OK && s->z.avail_in == 0) {
            if (s->member_done) {
                break;
            }
            code = burni_train_fail(err, BURN_E_FORMAT,
                                    "%s: gzip data ends early, at offset %llu; fetch it again",
                                    s->name, (unsigned long long)s->raw_read);
        } else if (code == BURN_OK && s->member_done) {
            code = next_member(s, err);
        }
        if (code != BURN_OK) {
            return code;
        }
        size_t room = want - got < INT_MAX ? want - got : INT_MAX;
        s->z.next_out = out + got;
        s->z.avail_out = (uInt)room;
        code = inflate_some(s, err);
        if (code != BURN_OK) {
            return code;
        }
        got += room - s->z.avail_out;
    }
    *out_got = got;
    return BURN_OK;
}

int32_t burni_byte_stream_read(burni_byte_stream *stream, void *out, size_t want, size_t *out_got,
                               burn_err *err)
{
    *out_got = 0;
    return stream->gzip ? read_gzip(stream, out, want, out_got, err)
                        : read_plain(stream, out, want, out_got, err);
}
