/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * error.h - writing errors into a caller's sink, for libburn-train.
 *
 * The library stands on the public API only, so it cannot use the core's writer; the rules are the
 * same: the sink may be NULL, text is cut to fit, nothing is allocated, and the code is returned so
 * that `return burni_train_fail(...)` reads well. [any]
 */
#ifndef BURN_TRAIN_BASE_ERROR_H
#define BURN_TRAIN_BASE_ERROR_H

#include <burn/status.h>

int32_t burni_train_fail(burn_err *err, int32_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * The sink of a public call: the caller's, or `spare` when there is none or it holds an error
 * already, so that the first error of many calls stays.
 */
static inline burn_err *burni_train_first(burn_err *err, burn_err *spare)
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

#endif /* BURN_TRAIN_BASE_ERROR_H */
