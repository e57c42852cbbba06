/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * lent.h - structs that the host lends to a plugin's entry to be filled, error sinks among them.
 *
 * A plugin that was built with other headers, or is careless, writes past the end of what it was
 * given. So whatever is lent ends in guard bytes, large enough for a struct of a later minor, and
 * they are looked at when the entry has returned: the call then fails with a message that names
 * plugin, entry and struct, and nothing of the host was overwritten. What the plugin says is taken
 * over into the caller's own struct: codes out of range, text without an end and control bytes stop
 * here. A sink is looked at after a failure only, so a launch that succeeds pays nothing.
 *
 * Lent structs belong to one call (or, for [queue] entries, to one queue). Keeps no state. [any]
 */
#ifndef BURN_LOADER_LENT_H
#define BURN_LOADER_LENT_H

#include <burn/status.h>

#define BURNI_GUARD_BYTES 256

/* `type` and its guard: BURNI_LENT(burn_limits) limits; then burni_lend(limits.guard). */
#define BURNI_LENT(type)                                                                           \
    struct {                                                                                       \
        type it;                                                                                   \
        unsigned char guard[BURNI_GUARD_BYTES];                                                    \
    }

/* The guard in items of an array, whose guard stands right behind the n items that are lent:
 * burn_meta out[MOST + BURNI_GUARD_ITEMS(burn_meta)]; then burni_lend(&out[n]). */
#define BURNI_GUARD_ITEMS(type) ((BURNI_GUARD_BYTES + sizeof(type) - 1) / sizeof(type))

/* Writes the guard bytes. */
void burni_lend(void *guard);
/* BURN_OK, or BURN_E_ABI and a message when they are not what burni_lend wrote. */
int32_t burni_lent_check(const void *guard, const char *plugin, const char *entry,
                         const char *type, burn_err *err);

/* An error sink that is lent. */
typedef struct burni_sink {
    burn_err err;
    unsigned char guard[BURNI_GUARD_BYTES];
} burni_sink;

void burni_sink_begin(burni_sink *sink);
/*
 * What an entry answered: BURN_OK, or its code (in range) with its text in `err`, which names
 * plugin and entry where the plugin gave no text. Makes the sink ready for the next call.
 */
int32_t burni_sink_end(burni_sink *sink, const char *plugin, const char *entry, int32_t rc,
                       burn_err *err);
/* A code as it may be passed on: what is not on the list of status.h becomes BURN_E_INTERNAL. */
int32_t burni_plugin_code(int32_t rc);

#endif /* BURN_LOADER_LENT_H */
