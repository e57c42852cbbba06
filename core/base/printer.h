/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * printer.h - formatted text into a buffer of the caller, cut to fit.
 *
 * `used` counts what the whole text needs, also beyond `size`: one pass writes and measures.
 * Nothing is allocated. [any]
 */
#ifndef BURN_CORE_BASE_PRINTER_H
#define BURN_CORE_BASE_PRINTER_H

#include <stddef.h>
#include <stdint.h>

typedef struct burni_printer {
    char *out;
    size_t size;
    size_t used;
} burni_printer;

void burni_print(burni_printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A number for "%g": a NaN loses its sign, which is chance and no part of its value. */
static inline double burni_shown(double value)
{
    return value != value ? __builtin_fabs(value) : value;
}

/* The end of a noun that is counted: "%u plan%s". */
static inline const char *burni_s(uint64_t n)
{
    return n == 1 ? "" : "s";
}

#endif /* BURN_CORE_BASE_PRINTER_H */
