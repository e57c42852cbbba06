/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * burnpack.c - what the burnpack reader and writer share: dtype names, text and size checks.
 *
 * Owns no state. burnpack_read.c and burnpack_write.c are the two directions, burnpack_cbor.c takes
 * the metadata apart. To add a dtype to the format: a row of the table below.
 */
#include "store/burnpack.h"

#include <string.h>

typedef struct dtype_row {
    uint8_t dtype;
    const char *text;
} dtype_row;

static const dtype_row dtype_rows[] = {
    {BURN_F64, "F64"}, {BURN_F32, "F32"}, {BURN_F16, "F16"}, {BURN_BF16, "BF16"},
    {BURN_I64, "I64"}, {BURN_I32, "I32"}, {BURN_I16, "I16"}, {BURN_I8, "I8"},
    {BURN_U64, "U64"}, {BURN_U32, "U32"}, {BURN_U16, "U16"}, {BURN_U8, "U8"},
};

const char *burni_bpk_dtype_text(uint8_t dtype)
{
    for (size_t i = 0; i < sizeof(dtype_rows) / sizeof(dtype_rows[0]); i++) {
        if (dtype_rows[i].dtype == dtype) {
            return dtype_rows[i].text;
        }
    }
    return NULL;
}

uint8_t burni_bpk_dtype_from_text(const char *text, uint64_t n)
{
    for (size_t i = 0; i < sizeof(dtype_rows) / sizeof(dtype_rows[0]); i++) {
        if (strlen(dtype_rows[i].text) == n && memcmp(dtype_rows[i].text, text, n) == 0) {
            return dtype_rows[i].dtype;
        }
    }
    return BURN_DTYPE_NONE;
}

/* Length of the UTF-8 sequence at p, 0 when it is none. */
static uint64_t sequence_length(const unsigned char *p, uint64_t n)
{
    unsigned char c = p[0];
    uint64_t length = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3
                      : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    if (length == 0 || length > n || c == 0) {
        return 0;
    }
    for (uint64_t i = 1; i < length; i++) {
        if ((p[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    int overlong = (c == 0xE0 && p[1] < 0xA0) || (c == 0xF0 && p[1] < 0x90);
    int surrogate = c == 0xED && p[1] > 0x9F;
    int beyond = c == 0xF4 && p[1] > 0x8F;
    return overlong || surrogate || beyond ? 0 : length;
}

int burni_bpk_is_text(const unsigned char *bytes, uint64_t n)
{
    for (uint64_t i = 0; i < n;) {
        uint64_t length = sequence_length(bytes + i, n - i);
        if (length == 0) {
            return 0;
        }
        i += length;
    }
    return 1;
}

uint64_t burni_bpk_bytes_of(uint32_t rank, const int64_t *dims, uint32_t element_bytes, int *ok)
{
    uint64_t total = element_bytes;
    int empty = 0;
    *ok = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] < 0) {
            *ok = 0;
        } else if (dims[i] == 0) {
            empty = 1;
        } else if (__builtin_mul_overflow(total, (uint64_t)dims[i], &total)) {
            *ok = 0;
            total = element_bytes;
        }
    }
    return *ok && !empty ? total : 0;
}

const char *burni_bpk_short_path(const char *path)
{
    const size_t longest = 72;
    size_t n = strlen(path);
    return n > longest ? path + (n - longest) : path;
}
