/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * error.c - writing errors into a caller's sink, for libburn-train. It honours the size that the
 * caller stated, which may be that of an older or a newer burn_err. Allocates nothing. [any]
 */
#include "train/base/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

int32_t burni_train_fail(burn_err *err, int32_t code, const char *format, ...)
{
    if (err == NULL) {
        return code;
    }
    err->code = code;
    size_t room = 0;
    if (err->struct_size > offsetof(burn_err, text)) {
        room = err->struct_size - offsetof(burn_err, text);
    }
    if (room > err->cap) {
        room = err->cap;
    }
    if (room > 0) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(err->text, room, format, args);
        va_end(args);
    }
    return code;
}
