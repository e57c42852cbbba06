/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * error.h - writing errors into a caller's sink. Every layer reports through these. [any]
 */
#ifndef BURN_CORE_BASE_ERROR_H
#define BURN_CORE_BASE_ERROR_H

#include <burn/status.h>
#include <stdarg.h>
#include <stddef.h>

/* Writes code and formatted text into the sink (NULL allowed, text cut); returns the code. */
int32_t burni_fail(burn_err *err, int32_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int32_t burni_vfail(burn_err *err, int32_t code, const char *format, va_list args);

/*
 * The sink of a public call: the caller's, or `spare` when there is none or it holds an error
 * already. The first error of many calls stays, and the call may read what it wrote. Every public
 * function with a burn_err begins with this.
 */
static inline burn_err *burni_first(burn_err *err, burn_err *spare)
{
    if (err != NULL && err->code == BURN_OK) {
        return err;
    }
    spare->struct_size = (uint32_t)sizeof(*spare);
    spare->code = BURN_OK;
    spare->op = 0;
    spare->backend_code = 0;
    spare->cap = (uint32_t)sizeof(spare->text);
    spare->text[0] = '\0';
    return spare;
}

/* A struct that a caller lends starts with its size: there, and of `needed` bytes or more? The text
 * begins with `what`. */
int32_t burni_check_output(const char *what, const void *out, size_t needed, burn_err *err);

/* Puts "prefix: " before the text that is there. */
void burni_prefix(burn_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* BURN_CORE_BASE_ERROR_H */
