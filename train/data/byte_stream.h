/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * byte_stream.h - the bytes of a file or of memory, unpacked on the way when they are gzip'ed.
 *
 * Knows nothing of what the bytes mean. Whether they are gzip'ed is told by their first two bytes;
 * concatenated gzip members are one stream, as gzip has it. Errors name the source and the offset
 * in it. One thread at a time per stream; everything is in the struct but zlib's own state, which
 * burni_byte_stream_close frees.
 */
#ifndef BURN_TRAIN_DATA_BYTE_STREAM_H
#define BURN_TRAIN_DATA_BYTE_STREAM_H

#include <burn/status.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

typedef struct burni_byte_stream {
    const char *name; /* for error texts, cut at its front when it is long */
    FILE *file;       /* NULL: bytes in memory */
    const unsigned char *memory;
    uint64_t memory_left;
    uint64_t raw_read; /* bytes taken from the source so far */
    int gzip;
    int member_done; /* between two gzip members */
    z_stream z;      /* next_in and avail_in are used for plain bytes too */
    unsigned char chunk[16384];
} burni_byte_stream;

/* On failure nothing is left open. The memory and the name stay the caller's. [any] */
int32_t burni_byte_stream_open(burni_byte_stream *stream, const char *path, burn_err *err);
int32_t burni_byte_stream_open_memory(burni_byte_stream *stream, const void *bytes, uint64_t size,
                                      const char *name, burn_err *err);
void burni_byte_stream_close(burni_byte_stream *stream);

/*
 * Reads `want` bytes; *out_got is less only at the end of the data. The end of gzip'ed data is the
 * end of the last member with its checksum right and nothing behind it.
 */
int32_t burni_byte_stream_read(burni_byte_stream *stream, void *out, size_t want, size_t *out_got,
                               burn_err *err);

#endif /* BURN_TRAIN_DATA_BYTE_STREAM_H */
