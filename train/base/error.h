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

#endif /* BURN_TRAIN_BASE_ERROR_H */
