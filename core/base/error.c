/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * error.c - writing errors into a caller's sink, and the texts of status codes. Allocates nothing.
 */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

static size_t sink_capacity(const burn_err *err)
{
    size_t room = err->struct_size > offsetof(burn_err, text)
                      ? err->struct_size - offsetof(burn_err, text)
                      : 0;
    return err->cap < room ? err->cap : room;
}

int32_t burni_vfail(burn_err *err, int32_t code, const char *format, va_list args)
{
    if (err == NULL) {
        return code;
    }
    err->code = code;
    size_t cap = sink_capacity(err);
    if (cap > 0) {
        (void)vsnprintf(err->text, cap, format, args);
    }
    return code;
}

int32_t burni_fail(burn_err *err, int32_t code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)burni_vfail(err, code, format, args);
    va_end(args);
    return code;
}

void burni_prefix(burn_err *err, const char *format, ...)
{
    if (err == NULL || sink_capacity(err) == 0) {
        return;
    }
    char prefix[sizeof(err->text)];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(prefix, sizeof(prefix), format, args);
    va_end(args);
    char joined[2 * sizeof(err->text) + 4];
    (void)snprintf(joined, sizeof(joined), "%s: %s", prefix, err->text);
    (void)snprintf(err->text, sink_capacity(err), "%.*s", (int)sizeof(err->text) - 1, joined);
}

const char *burn_status_name(int32_t code)
{
    switch (code) {
    case BURN_OK:
        return "OK";
#define STATUS_NAME(number, name, text)                                                            \
    case number:                                                                                   \
        return #name;
        BURN_FOREACH_STATUS(STATUS_NAME)
#undef STATUS_NAME
    default:
        return "E_UNKNOWN";
    }
}

int32_t burni_check_output(const char *what, const void *out, size_t needed, burn_err *err)
{
    uint32_t size = 0;
    if (out == NULL) {
        return burni_fail(err, BURN_E_INVALID, "%s: the output is NULL", what);
    }
    memcpy(&size, out, sizeof(size));
    if (size < needed) {
        return burni_fail(err, BURN_E_INVALID,
                          "%s: struct_size of the output is %u, %u are needed (BURN_INIT)", what,
                          (unsigned)size, (unsigned)needed);
    }
    return BURN_OK;
}

const char *burn_status_text(int32_t code)
{
    switch (code) {
    case BURN_OK:
        return "no error";
#define STATUS_TEXT(number, name, text)                                                            \
    case number:                                                                                   \
        return text;
        BURN_FOREACH_STATUS(STATUS_TEXT)
#undef STATUS_TEXT
    default:
        return "unknown error";
    }
}
