/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * core_inside.c - what core_test.h declares for tests that look inside of the library, and are
 * linked with its objects. Tests that use the public API only do without this file.
 */
#include "core_test.h"

#include "exec/stream.h"

burni_stream *core_stream(void)
{
    burn_err err = BURN_ERR_INIT;
    burni_stream *s = burni_stream_get(burni_thread_get(), dev->core, &err);
    assert_non_null(s);
    return s;
}

void set_window(uint32_t n)
{
    (void)burn_sync(dev, NULL);
    core_stream()->window = n;
}

int restore_window(void **state)
{
    set_window(window);
    return core_teardown(state);
}
