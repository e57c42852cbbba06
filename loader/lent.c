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

/* Differs from byte to byte, so that neither memset nor a copy of a neighbour looks right. */
static unsigned char guard_byte(uint32_t i)
{
    return (unsigned char)(0xa5u ^ (i * 29u));
}

void burni_lend(unsigned char *guard)
{
    for (uint32_t i = 0; i < BURNI_GUARD_BYTES; i++) {
        guard[i] = guard_byte(i);
    }
}

/* One more than the place of the last guard byte that is wrong; 0 when all are right. */
static uint32_t damage(const unsigned char *guard)
{
    for (uint32_t i = BURNI_GUARD_BYTES; i > 0; i--) {
        if (guard[i - 1] != guard_byte(i - 1)) {
            return i;
        }
    }
    return 0;
}

int32_t burni_lent_check(const unsigned char *guard, const char *plugin, const char *entry,
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
