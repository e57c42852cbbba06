/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fuzz_manifest.c - any bytes as a manifest: an answer, never a crash. What is accepted must keep
 * the promises that the rest of the loader builds on, or the target traps.
 */
#include "fuzz.h"
#include "loader/entry.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    burni_manifest m;
    burn_err err = BURN_ERR_INIT;
    int32_t code = burni_manifest_parse((const char *)data, size, &m, &err);
    if (code != BURN_OK) {
        if (err.code != code || err.text[0] == '\0') {
            __builtin_trap();
        }
        return 0;
    }
    int fine = burni_is_name(m.id, strlen(m.id)) && m.file[0] != '\0' && m.file[0] != '/' &&
               strncmp(m.file, "../", 3) != 0 && strstr(m.file, "/../") == NULL &&
               m.n_needs <= BURNI_MANIFEST_NEEDS && m.abi_oldest <= m.abi_newest;
    if (!fine) {
        __builtin_trap();
    }
    return 0;
}
