/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * lent.c - guard bytes behind what plugins fill, and the way of their errors to the caller. See
 * lent.h. Allocates nothing, keeps no state. [any]
 */
#include "loader/lent.h"

#include "base/error.h"
#include "base/log.h"
#include "loader/entry.h"

#include <string.h>

/* 16 of them in a row, from guard byte n on. */
#define BYTE(i) (unsigned char)(0xa5u ^ (((i) * 29u) & 0xffu))
#define BYTES(n)                                                                                   \
    BYTE(n), BYTE(n + 1), BYTE(n + 2), BYTE(n + 3), BYTE(n + 4), BYTE(n + 5), BYTE(n + 6),         \
        BYTE(n + 7), BYTE(n + 8), BYTE(n + 9), BYTE(n + 10), BYTE(n + 11), BYTE(n + 12),           \
        BYTE(n + 13), BYTE(n + 14), BYTE(n + 15)

/* Differs from byte to byte, so that neither memset nor a copy of a neighbour looks right. */
static const unsigned char pattern[BURNI_GUARD_BYTES] = {
    BYTES(0u),   BYTES(16u),  BYTES(32u),  BYTES(48u),  BYTES(64u),  BYTES(80u),
    BYTES(96u),  BYTES(112u), BYTES(128u), BYTES(144u), BYTES(160u), BYTES(176u),
    BYTES(192u), BYTES(208u), BYTES(224u), BYTES(240u),
};

void burni_lend(void *guard)
{
    memcpy(guard, pattern, sizeof(pattern));
}

/* One more than the place of the last guard byte that is wrong; 0 when all are right. */
static uint32_t damage(const unsigned char *guard)
{
    uint32_t n = memcmp(guard, pattern, sizeof(pattern)) != 0 ? BURNI_GUARD_BYTES : 0;
    while (n > 0 && guard[n - 1] == pattern[n - 1]) {
        n--;
    }
    return n;
}

int32_t burni_lent_check(const void *guard, const char *plugin, const char *entry,
                         const char *type, burn_err *err)
{
    uint32_t n = damage(guard);
    if (n == 0) {
        return BURN_OK;
    }
    burni_log(BURN_LOG_ERROR, "loader", "%s: %s wrote %u bytes past the end of %s", plugin, entry,
              n, type);
    return burni_fail(err, BURN_E_ABI,
                      "%s: %.60s wrote %u bytes past the end of %s; rebuild the plugin with this "
                      "library's headers, it must not write beyond struct_size",
                      plugin, entry, n, type);
}

int32_t burni_plugin_code(int32_t rc)
{
    return rc == BURN_OK || (rc < 0 && rc >= BURN_E_END) ? rc : BURN_E_INTERNAL;
}

void burni_sink_begin(burni_sink *sink)
{
    static const burn_err fresh = BURN_ERR_INIT;
    sink->err = fresh;
    burni_lend(sink->guard);
}

static int32_t pass_on(burni_sink *sink, const char *plugin, const char *entry, int32_t rc,
                       burn_err *err)
{
    int32_t code = burni_plugin_code(rc);
    char text[sizeof(sink->err.text)];
    sink->err.text[sizeof(sink->err.text) - 1] = '\0';
    burni_text_clean(text, sizeof(text), sink->err.text);
    if (text[0] != '\0') {
        (void)burni_fail(err, code, "%s", text);
    } else if (code != rc) {
        (void)burni_fail(err, code, "%s: %.60s answered %d, which is no status code", plugin,
                         entry, rc);
    } else {
        (void)burni_fail(err, code, "%s: %.60s failed without a reason (%s)", plugin, entry,
                         burn_status_name(code));
    }
    if (err != NULL) {
        err->op = sink->err.op != 0 ? sink->err.op : err->op;
        err->backend_code = sink->err.backend_code;
    }
    return code;
}

int32_t burni_sink_end(burni_sink *sink, const char *plugin, const char *entry, int32_t rc,
                       burn_err *err)
{
    if (rc == BURN_OK) {
        return BURN_OK;
    }
    int32_t code = burni_lent_check(sink->guard, plugin, entry, "burn_err", err);
    if (code == BURN_OK) {
        code = pass_on(sink, plugin, entry, rc, err);
    }
    burni_sink_begin(sink);
    return code;
}
