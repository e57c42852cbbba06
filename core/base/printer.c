/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * printer.c - formatted text into a buffer of the caller. See printer.h.
 */
#include "base/printer.h"

#include <stdarg.h>
#include <stdio.h>

void burni_print(burni_printer *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = p->used < p->size ? p->size - p->used : 0;
    int n = vsnprintf(room > 0 ? p->out + p->used : NULL, room, format, args);
    va_end(args);
    p->used += n > 0 ? (size_t)n : 0;
}
