/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fuzz_png.c - the PNG input of `burn predict` on arbitrary bytes: read from a file, inverted when
 * it is dark on white, brought to the size of a graph. What it accepts has all its pixels. The
 * decoder is libpng, which refuses nearly every altered file by a chunk's checksum; so each input
 * is tried a second time with checksums put right.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fuzz.h"

#include "cli/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

enum { SIDE = 28, MAX_FILE = 1 << 16 };

static volatile uint8_t sink;

static void look_at(cli_image *image)
{
    uint8_t small[SIDE * SIDE];
    if (image->pixels == NULL || image->width <= 0 || image->height <= 0) {
        abort(); /* accepted, without pixels */
    }
    for (int64_t i = 0; i < image->width * image->height; i++) {
        sink = image->pixels[i];
    }
    if (image->width * image->height > 1 << 20) {
        return; /* right, but slow under sanitizers */
    }
    cli_image_invert_paper(image);
    cli_image_resize(image, SIDE, SIDE, small);
    sink = small[SIDE * SIDE - 1];
}

/* A file without a folder; the path is what the program would be given. */
static int make_file(const uint8_t *bytes, size_t size, char *path, size_t cap)
{
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("fuzz.png", MFD_CLOEXEC);
    }
    (void)snprintf(path, cap, "/proc/self/fd/%d", fd);
    return fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size;
}

/* Length, kind, data, checksum of kind and data; numbers are big-endian. */
static void repair(uint8_t *bytes, size_t size)
{
    size_t at = 8;
    while (at + 12 <= size) {
        size_t n = (size_t)bytes[at] << 24 | (size_t)bytes[at + 1] << 16 |
                   (size_t)bytes[at + 2] << 8 | bytes[at + 3];
        if (n > size - at - 12) {
            return;
        }
        uint32_t sum = (uint32_t)crc32(0, bytes + at + 4, (uInt)(n + 4));
        for (size_t i = 0; i < 4; i++) {
            bytes[at + 8 + n + i] = (uint8_t)(sum >> (24 - 8 * i));
        }
        at += n + 12;
    }
}

static void try_bytes(const uint8_t *bytes, size_t size)
{
    char path[64];
    cli_image image;
    burn_err err = BURN_ERR_INIT;
    if (!make_file(bytes, size, path, sizeof(path))) {
        abort(); /* nothing would be tested */
    }
    int32_t rc = cli_image_read_png(path, &image, &err);
    if (rc != BURN_OK) {
        if (image.pixels != NULL || err.code != rc || rc >= 0 || err.text[0] == '\0') {
            abort(); /* an error without cause, or with a result */
        }
        return;
    }
    look_at(&image);
    free(image.pixels);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size > MAX_FILE) {
        return 0;
    }
    try_bytes(bytes, size);
    uint8_t *copy = malloc(size + 1);
    if (copy != NULL) {
        memcpy(copy, bytes, size);
        repair(copy, size);
        try_bytes(copy, size);
    }
    free(copy);
    return 0;
}
