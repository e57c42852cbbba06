/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fuzz_burnpack.c - the burnpack reader on arbitrary bytes. What it accepts must be consistent:
 * names ascend, every tensor lies within the bytes at a multiple of 256, all of it can be read, and
 * nothing follows the last one.
 */
#include "fuzz.h"

#include "store/burnpack.h"

#include <stdlib.h>
#include <string.h>

/* Raises `end` to where the tensor ends. */
static void check_tensor(const burni_bpk_reader *r, uint32_t i, size_t size, uint64_t *end)
{
    burn_err err = BURN_ERR_INIT;
    const burni_bpk_tensor *t = burni_bpk_tensor_at(r, i);
    if (t->nbytes > size || t->position % BURNI_BPK_ALIGN != 0 || t->rank > BURN_MAX_RANK) {
        abort(); /* out of the file, or out of its place */
    }
    *end = t->position + t->nbytes > *end ? t->position + t->nbytes : *end;
    if (i > 0 && strcmp(burni_bpk_tensor_at(r, i - 1)->name, t->name) >= 0) {
        abort(); /* out of order, or twice */
    }
    if (burni_bpk_tensor_find(r, t->name) != t) {
        abort(); /* not to be found */
    }
    void *to = malloc(t->nbytes + 1);
    if (to == NULL || burni_bpk_read(r, t, 0, t->nbytes, to, &err) != BURN_OK) {
        abort(); /* accepted, but not to be read */
    }
    free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    burn_err err = BURN_ERR_INIT;
    burni_bpk_reader *r;
    if (burni_bpk_open_bytes(bytes, size, "fuzz", &r, &err) != BURN_OK) {
        if (r != NULL || err.text[0] == '\0' || err.code >= 0) {
            abort(); /* an error without cause, or with a result */
        }
        return 0;
    }
    uint64_t end = 0;
    for (uint32_t i = 0; i < burni_bpk_tensor_count(r); i++) {
        check_tensor(r, i, size, &end);
    }
    if (end > 0 && size > end) {
        abort(); /* something follows that nobody reads */
    }
    for (uint32_t i = 0; i < burni_bpk_metadata_count(r); i++) {
        (void)strlen(burni_bpk_metadata_at(r, i)->key);
        (void)strlen(burni_bpk_metadata_at(r, i)->value);
    }
    for (uint32_t i = 0; i < burni_bpk_scalar_count(r); i++) {
        (void)strlen(burni_bpk_scalar_at(r, i)->name);
    }
    burni_bpk_close(r);
    return 0;
}
