/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * log.c - one line of log to the application's callback, or to stderr when BURN_LOG asks for it.
 */
#include "base/log.h"

#include "base/env.h"
#include "base/error.h"

#include <burn/plugin.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static burni_log_fn callback;
static void *callback_user;
static _Atomic int32_t max_level;
static int dispatch;
static int malformed;

static void to_stderr(void *user, int32_t level, const char *source, const char *text)
{
    static const char *const names[] = {"", "error", "warn", "info", "debug"};
    (void)user;
    (void)fprintf(stderr, "burn %s %s: %s\n", names[level], source, text);
}

static void read_env(void)
{
    const char *wanted = burni_env("LOG");
    if (wanted == NULL) {
        return;
    }
    static const char *const names[] = {"", "error", "warn", "info", "debug", "dispatch"};
    malformed = 1;
    for (int32_t i = 1; i < 6; i++) {
        if (strcmp(wanted, names[i]) != 0) {
            continue;
        }
        malformed = 0;
        dispatch = i == 5;
        callback = to_stderr;
        max_level = i == 5 ? BURN_LOG_WARN : i;
    }
}

int32_t burni_log_check(burn_err *err)
{
    (void)pthread_once(&once, read_env);
    if (!malformed) {
        return BURN_OK;
    }
    return burni_fail(err, BURN_E_INVALID,
                      "BURN_LOG=\"%.32s\": expected error, warn, info, debug or dispatch",
                      burni_env("LOG"));
}

void burni_log_set(burni_log_fn fn, void *user, int32_t level)
{
    (void)pthread_once(&once, read_env);
    (void)pthread_mutex_lock(&lock);
    callback = fn;
    callback_user = user;
    max_level = fn != NULL ? level : 0;
    (void)pthread_mutex_unlock(&lock);
}

int burni_log_wants(int32_t level)
{
    (void)pthread_once(&once, read_env);
    return level >= BURN_LOG_ERROR && level <= max_level;
}

int burni_log_wants_dispatch(void)
{
    (void)pthread_once(&once, read_env);
    return dispatch;
}

int burni_log_is_stderr(void)
{
    (void)pthread_mutex_lock(&lock);
    int is_stderr = callback == to_stderr;
    (void)pthread_mutex_unlock(&lock);
    return is_stderr;
}

static void send(int32_t level, const char *source, const char *format, va_list args)
{
    char text[1024];
    (void)vsnprintf(text, sizeof(text), format, args);
    (void)pthread_mutex_lock(&lock);
    burni_log_fn fn = callback;
    void *user = callback_user;
    (void)pthread_mutex_unlock(&lock);
    if (fn != NULL) {
        fn(user, level, source, text);
    }
}

void burni_log(int32_t level, const char *source, const char *format, ...)
{
    if (!burni_log_wants(level)) {
        return;
    }
    va_list args;
    va_start(args, format);
    send(level, source, format, args);
    va_end(args);
}

void burni_log_dispatch(const char *format, ...)
{
    if (!burni_log_wants_dispatch()) {
        return;
    }
    va_list args;
    va_start(args, format);
    send(BURN_LOG_INFO, "dispatch", format, args);
    va_end(args);
}
