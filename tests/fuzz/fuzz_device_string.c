/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fuzz_device_string.c - any text as a device string, alone and as a list. What is accepted has
 * names and ordinals in range, or the target traps.
 */
#include "fuzz.h"
#include "loader/entry.h"

#include <string.h>

static void try_text(const char *text, uint32_t list)
{
    burni_device_term terms[BURNI_DEVICE_TERMS];
    uint32_t n = 0;
    burn_err err = BURN_ERR_INIT;
    int32_t code = burni_device_parse(text, list, terms, &n, &err);
    if (code != BURN_OK) {
        if (err.code != code || err.text[0] == '\0') {
            __builtin_trap();
        }
        return;
    }
    if (n == 0 || (!list && n != 1)) {
        __builtin_trap();
    }
    for (uint32_t i = 0; i < n; i++) {
        const burni_device_term *t = &terms[i];
        if (!burni_is_name(t->id, strlen(t->id)) || t->ordinal > 9999 ||
            strnlen(t->options, sizeof(t->options)) == sizeof(t->options)) {
            __builtin_trap();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[1024];
    if (size >= sizeof(text)) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    try_text(text, 0);
    try_text(text, 1);
    (void)burni_distance(text, "vulkan");
    return 0;
}
