/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * log.h - one line of log to the application's callback. The library prints nothing by itself; with
 * no callback set, lines are dropped unless BURN_LOG=error|warn|info|debug sends them to stderr.
 * BURN_LOG=dispatch is warn, and what exec/explain.h tells at whatever level.
 */
#ifndef BURN_CORE_BASE_LOG_H
#define BURN_CORE_BASE_LOG_H

#include <burn/status.h>
#include <stdint.h>

typedef void (*burni_log_fn)(void *user, int32_t level, const char *source, const char *text);

/* Sets the callback (NULL: none) and the most detailed level that it gets. [any] */
void burni_log_set(burni_log_fn fn, void *user, int32_t level);
/* 1 when a line of that level (BURN_LOG_*) would go anywhere. */
int burni_log_wants(int32_t level);
void burni_log(int32_t level, const char *source, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* 1 when BURN_LOG=dispatch; a line of that kind, to the callback or stderr. */
int burni_log_wants_dispatch(void);
void burni_log_dispatch(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* 1 when lines go to stderr, not to a callback of the application. */
int burni_log_is_stderr(void);
/* What is wrong with BURN_LOG, if anything. */
int32_t burni_log_check(burn_err *err);

#endif /* BURN_CORE_BASE_LOG_H */
