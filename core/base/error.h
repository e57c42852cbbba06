/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * error.h - writing errors into a caller's sink. Every layer reports through these. [any]
 */
#ifndef BURN_CORE_BASE_ERROR_H
#define BURN_CORE_BASE_ERROR_H

#include <burn/status.h>
#include <stdarg.h>

/* Writes code and formatted text into the sink (NULL allowed, text cut); returns the code. */
int32_t burni_fail(burn_err *err, int32_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int32_t burni_vfail(burn_err *err, int32_t code, const char *format, va_list args);

/* Puts "prefix: " before the text that is there. */
void burni_prefix(burn_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* BURN_CORE_BASE_ERROR_H */
