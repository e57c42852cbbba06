/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fuzz_idx.c - the IDX reader on arbitrary bytes, plain or gzip'ed. What it accepts must be
 * consistent: every element is there to be read, and an array in plain form has exactly the size
 * that its dims say. The cap keeps unpacked bombs small.
 */
#include "fuzz.h"

#include <burn/data.h>
#include <burn/dtype.h>
#include <stdlib.h>

static volatile uint8_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    burn_err err = BURN_ERR_INIT;
    burn_idx *idx;
    if (burn_idx_parse(bytes, size, "fuzz", 1u << 20, &idx, &err) != BURN_OK) {
        if (idx != NULL || err.text[0] == '\0' || err.code >= 0) {
            abort(); /* an error without cause, or with a result */
        }
        return 0;
    }
    uint64_t total = burn_dtype_size(burn_idx_dtype(idx));
    for (uint32_t i = 0; i < burn_idx_rank(idx); i++) {
        total *= (uint64_t)burn_idx_dim(idx, i);
    }
    const uint8_t *data = burn_idx_data(idx);
    for (uint64_t i = 0; i < total; i++) {
        sink = data[i];
    }
    if (bytes[0] == 0 && total + 4 + (uint64_t)4 * burn_idx_rank(idx) != size) {
        abort(); /* more or less was read than the file has */
    }
    burn_idx_close(idx);
    return 0;
}
