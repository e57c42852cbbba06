/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * base64.c - bytes as text and back, RFC 4648 section 4.
 *
 * Three bytes are four letters of six bits each; a last group of one or two bytes is filled up with
 * '='. The bits of the last letter that no byte uses must be zero (section 3.5), which makes the
 * text of given bytes unique.
 */
#include "store/base64.h"

#include "base/alloc.h"

#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *burni_base64_encode(const void *bytes, size_t size)
{
    const unsigned char *in = bytes;
    if (size > SIZE_MAX / 4 * 3 - 8) {
        return NULL;
    }
    char *text = burni_alloc((size + 2) / 3 * 4 + 1);
    if (text == NULL) {
        return NULL;
    }
    char *to = text;
    for (size_t i = 0; i < size; i += 3) {
        size_t n = size - i < 3 ? size - i : 3;
        uint32_t bits = (uint32_t)in[i] << 16;
        bits |= n > 1 ? (uint32_t)in[i + 1] << 8 : 0;
        bits |= n > 2 ? (uint32_t)in[i + 2] : 0;
        to[0] = letters[bits >> 18 & 63];
        to[1] = letters[bits >> 12 & 63];
        to[2] = n > 1 ? letters[bits >> 6 & 63] : '=';
        to[3] = n > 2 ? letters[bits & 63] : '=';
        to += 4;
    }
    *to = '\0';
    return text;
}

static int value_of(char c)
{
    const char *at = c != '\0' ? strchr(letters, c) : NULL;
    return at != NULL ? (int)(at - letters) : -1;
}

/* Decodes one group of `n` letters (2 to 4); returns the position of a bad one, or 4. */
static size_t decode_group(const char *text, size_t n, unsigned char *out)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        int value = value_of(text[i]);
        if (value < 0) {
            return i;
        }
        bits |= (uint32_t)value << (18 - 6 * (uint32_t)i);
    }
    uint32_t unused = n == 2 ? 0xffff : n == 3 ? 0xff : 0;
    if ((bits & unused) != 0) {
        return n - 1;
    }
    for (size_t i = 0; i + 1 < n; i++) {
        out[i] = (unsigned char)(bits >> (16 - 8 * (uint32_t)i));
    }
    return 4;
}

void *burni_base64_decode(const char *text, size_t *out_size, size_t *out_bad)
{
    size_t length = strlen(text);
    *out_bad = length;
    if (length % 4 != 0) {
        return NULL;
    }
    size_t padding = 0;
    if (length > 0 && text[length - 1] == '=') {
        padding = text[length - 2] == '=' ? 2 : 1;
    }
    unsigned char *bytes = burni_alloc(length / 4 * 3);
    if (bytes == NULL) {
        *out_bad = SIZE_MAX;
        return NULL;
    }
    for (size_t i = 0; i < length; i += 4) {
        size_t n = i + 4 == length ? 4 - padding : 4;
        size_t bad = decode_group(text + i, n, bytes + i / 4 * 3);
        if (bad != 4) {
            *out_bad = i + bad;
            burni_free(bytes);
            return NULL;
        }
    }
    *out_size = length / 4 * 3 - padding;
    return bytes;
}
