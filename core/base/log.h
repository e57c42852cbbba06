/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * log.h - one line of log to the application's callback. The library prints nothing by itself; with
 * no callback set, lines are dropped unless BURN_LOG=error|warn|info|debug sends them to stderr.
 */
#ifndef BURN_CORE_BASE_LOG_H
#define BURN_CORE_BASE_LOG_H

#include <stdint.h>

typedef void (*burni_log_fn)(void *user, int32_t level, const char *source, const char *text);

/* Sets the callback (NULL: none) and the most detailed level that it gets. [any] */
void burni_log_set(burni_log_fn fn, void *user, int32_t level);
/* 1 when a line of that level (BURN_LOG_*) would go anywhere. */
int burni_log_wants(int32_t level);
void burni_log(int32_t level, const char *source, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif /* BURN_CORE_BASE_LOG_H */
