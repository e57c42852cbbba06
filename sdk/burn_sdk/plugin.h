/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plugin.h - what every plugin's entry does: negotiate, remember the host, and report errors.
 *
 * Owns the error text helper, the negotiation, the head of the entry and the guard that keeps C++
 * exceptions inside. Rules for the entry: it is called once, starts no threads and opens no device;
 * the table it answers with lives as long as the process. A plugin that needs a newer host says so
 * in the error text instead of failing later. Plain C11 and C++17. [init] unless said otherwise
 */
#ifndef BURN_SDK_PLUGIN_H
#define BURN_SDK_PLUGIN_H

#include <burn/plugin.h>
#include <stdarg.h>
#include <stdio.h>

#ifdef __cplusplus
#include <exception>
#include <new>
#endif

#if defined(__GNUC__)
#define BURN_PLUGIN_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define BURN_PLUGIN_PRINTF(text, first)
#endif

static inline int32_t burn_plugin_fail(burn_err *err, int32_t code, const char *format, ...)
    BURN_PLUGIN_PRINTF(3, 4);

/* Writes code and text into the sink (NULL allowed; text is cut to fit), returns the code. [any] */
static inline int32_t burn_plugin_fail(burn_err *err, int32_t code, const char *format, ...)
{
    if (err == NULL) {
        return code;
    }
    err->code = code;
    uint32_t cap = err->cap < sizeof(err->text) ? err->cap : (uint32_t)sizeof(err->text);
    if (cap > 0) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(err->text, cap, format, args);
        va_end(args);
    }
    return code;
}

/*
 * The version that host and this build agree on: the smaller of the two newest, when both know it.
 * BURN_OK, or BURN_E_ABI with a text that says which side is too old.
 */
static inline int32_t burn_plugin_negotiate(uint32_t host_oldest, uint32_t host_newest,
                                            uint32_t *out_abi, burn_err *err)
{
    uint32_t newest = host_newest < BURN_ABI_CURRENT ? host_newest : BURN_ABI_CURRENT;
    if ((host_newest >> 16) != BURN_ABI_MAJOR) {
        return burn_plugin_fail(err, BURN_E_ABI,
                                "host speaks ABI %u.%u, plugin %u.%u: majors differ; rebuild the "
                                "plugin with the host's headers",
                                (unsigned)(host_newest >> 16), (unsigned)(host_newest & 0xffffu),
                                (unsigned)BURN_ABI_MAJOR, (unsigned)BURN_ABI_MINOR);
    }
    if (newest < BURN_ABI_OLDEST) {
        return burn_plugin_fail(err, BURN_E_ABI,
                                "host speaks ABI up to %u.%u, plugin needs at least %u.%u; update "
                                "libburn-core",
                                (unsigned)(host_newest >> 16), (unsigned)(host_newest & 0xffffu),
                                (unsigned)(BURN_ABI_OLDEST >> 16),
                                (unsigned)(BURN_ABI_OLDEST & 0xffffu));
    }
    if (newest < host_oldest) {
        return burn_plugin_fail(err, BURN_E_ABI,
                                "host needs at least ABI %u.%u, plugin speaks %u.%u; update the "
                                "plugin",
                                (unsigned)(host_oldest >> 16), (unsigned)(host_oldest & 0xffffu),
                                (unsigned)BURN_ABI_MAJOR, (unsigned)BURN_ABI_MINOR);
    }
    *out_abi = newest;
    return BURN_OK;
}

/*
 * The body of burn_plugin_query for most plugins: negotiates, keeps `host` in `*keep_host`, and
 * answers with `table`.
 */
static inline const burn_plugin *burn_plugin_answer(uint32_t host_oldest, uint32_t host_newest,
                                                    const burn_host *host,
                                                    const burn_host **keep_host,
                                                    const burn_plugin *table, burn_err *err)
{
    uint32_t abi = 0;
    if (burn_plugin_negotiate(host_oldest, host_newest, &abi, err) != BURN_OK) {
        return NULL;
    }
    if (host == NULL || !BURN_HAS(host, burn_host, service)) {
        (void)burn_plugin_fail(err, BURN_E_ABI, "the host's table is missing or too short");
        return NULL;
    }
    *keep_host = host;
    return table;
}

/*
 * No exception may cross the border. A C++ entry wraps its body:
 *
 *     int32_t BURN_CALL launch(const burn_call *call)
 *     {
 *         BURN_PLUGIN_GUARD_BEGIN
 *         ... return BURN_OK;
 *         BURN_PLUGIN_GUARD_END(call->err)
 *     }
 */
#ifdef __cplusplus
#define BURN_PLUGIN_GUARD_BEGIN try {
#define BURN_PLUGIN_GUARD_END(err)                                                                 \
    }                                                                                              \
    catch (const std::bad_alloc &)                                                                 \
    {                                                                                              \
        return burn_plugin_fail((err), BURN_E_NO_MEMORY, "out of host memory");                    \
    }                                                                                              \
    catch (const std::exception &exception)                                                        \
    {                                                                                              \
        return burn_plugin_fail((err), BURN_E_INTERNAL, "exception: %s", exception.what());        \
    }                                                                                              \
    catch (...)                                                                                    \
    {                                                                                              \
        return burn_plugin_fail((err), BURN_E_INTERNAL, "exception of unknown type");              \
    }
#else
#define BURN_PLUGIN_GUARD_BEGIN {
#define BURN_PLUGIN_GUARD_END(err) }
#endif

/*
 * The head of burn_plugin_query, with its four arguments under the names given; its body follows.
 * In C++ what the body throws is caught and becomes the refusal's text:
 *
 *     BURN_PLUGIN_ENTRY(oldest, newest, host, err)
 *     {
 *         return burn_plugin_answer(oldest, newest, host, &kept, &table, err);
 *     }
 */
#ifdef __cplusplus
static inline int32_t burn_plugin_guarded(burn_plugin_query_fn body, uint32_t oldest,
                                          uint32_t newest, const burn_host *host, burn_err *err,
                                          const burn_plugin **out)
{
    BURN_PLUGIN_GUARD_BEGIN
    *out = body(oldest, newest, host, err);
    return BURN_OK;
    BURN_PLUGIN_GUARD_END(err)
}

#define BURN_PLUGIN_ENTRY(oldest, newest, host, err)                                               \
    static const burn_plugin *burn_plugin_entry(uint32_t, uint32_t, const burn_host *,             \
                                                burn_err *);                                       \
    extern "C" BURN_API const burn_plugin *BURN_CALL burn_plugin_query(                            \
        uint32_t host_oldest, uint32_t host_newest, const burn_host *given, burn_err *sink)        \
    {                                                                                              \
        const burn_plugin *table = NULL;                                                           \
        (void)burn_plugin_guarded(burn_plugin_entry, host_oldest, host_newest, given, sink,        \
                                  &table);                                                         \
        return table;                                                                              \
    }                                                                                              \
    static const burn_plugin *burn_plugin_entry(uint32_t oldest, uint32_t newest,                  \
                                                const burn_host *host, burn_err *err)
#else
#define BURN_PLUGIN_ENTRY(oldest, newest, host, err)                                               \
    BURN_API const burn_plugin *BURN_CALL burn_plugin_query(uint32_t oldest, uint32_t newest,      \
                                                            const burn_host *host, burn_err *err)
#endif

#endif /* BURN_SDK_PLUGIN_H */
