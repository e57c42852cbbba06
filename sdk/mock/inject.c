/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * inject.c - failures on demand: late work, a kernel that fails, a device that is lost.
 *
 * README.md lists the options. A failing kernel reports through the fault word like any other; a
 * lost device stays lost. Counters belong to the device and are shared by its queues' workers.
 */
#include "inject.h"

#include "mock.h"

#include <sched.h>
#include <time.h>

/* "<op id>:<n>" */
static int32_t read_fail_op(mock_inject *inject, burn_err *err)
{
    const char *text = mock_host->option("MOCK_FAIL_OP");
    const char *rest = NULL;
    if (text == NULL) {
        return BURN_OK;
    }
    if (!mock_parse_number(text, ':', &inject->fail_op, &rest) || *rest != ':' ||
        !mock_parse_number(rest + 1, '\0', &inject->fail_at, &rest)) {
        return burn_plugin_fail(err, BURN_E_INVALID,
                                "mock: option MOCK_FAIL_OP is \"%.60s\"; write <op id>:<n>", text);
    }
    return BURN_OK;
}

int32_t mock_inject_read(mock_inject *inject, burn_err *err)
{
    atomic_init(&inject->launches, 0);
    atomic_init(&inject->fail_launches, 0);
    int32_t code = mock_number_option("MOCK_DELAY_US", &inject->delay_us, err);
    if (code == BURN_OK) {
        code = mock_number_option("MOCK_LOSE_AFTER", &inject->lose_after, err);
    }
    return code == BURN_OK ? read_fail_op(inject, err) : code;
}

static int is_key(const char *name, const char *key, size_t length)
{
    return strlen(name) == length && memcmp(name, key, length) == 0;
}

uint64_t *mock_inject_option(mock_inject *inject, const char *key, size_t length)
{
    if (is_key("delay_us", key, length)) {
        return &inject->delay_us;
    }
    return is_key("lose_after", key, length) ? &inject->lose_after : NULL;
}

void mock_inject_delay(const burn_backend_device *dev)
{
    uint64_t microseconds = dev->inject.delay_us;
    if (microseconds == 0) {
        (void)sched_yield();
        return;
    }
    struct timespec pause = {(time_t)(microseconds / 1000000),
                             (long)(microseconds % 1000000) * 1000};
    (void)nanosleep(&pause, NULL);
}

int mock_inject_failure(mock_item *item)
{
    burn_backend_device *dev = mock_queue_device(item->queue);
    mock_inject *inject = &dev->inject;
    if (item->op == 0) {
        return 0;
    }
    if (inject->lose_after != 0 &&
        atomic_fetch_add(&inject->launches, 1) + 1 == inject->lose_after) {
        mock_device_lose(dev);
        return 1;
    }
    if (item->op == inject->fail_op && inject->fail_at != 0 &&
        atomic_fetch_add(&inject->fail_launches, 1) + 1 == inject->fail_at) {
        mock_fault(item, BURN_E_INTERNAL, 0, 0, 0, 0);
        return 1;
    }
    return 0;
}
