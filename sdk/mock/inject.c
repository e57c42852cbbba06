/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * inject.c - failures on demand: late work, a kernel that fails or computes wrongly, a device that
 * is lost.
 *
 * README.md lists the options. A failing kernel reports through the fault word like any other; a
 * lost device stays lost. Counters belong to the device and are shared by its queues' workers.
 */
#include "inject.h"

#include "mock.h"

#include <sched.h>
#include <time.h>

/* "<op id>:<n>" */
static int32_t read_launch(const char *name, uint64_t *op, uint64_t *at, burn_err *err)
{
    const char *text = mock_host->option(name);
    const char *rest = NULL;
    if (text == NULL) {
        return BURN_OK;
    }
    if (!mock_parse_number(text, ':', op, &rest) || *rest != ':' ||
        !mock_parse_number(rest + 1, '\0', at, &rest)) {
        return burn_plugin_fail(err, BURN_E_INVALID,
                                "mock: option %s is \"%.60s\"; write <op id>:<n>", name, text);
    }
    return BURN_OK;
}

int32_t mock_inject_read(mock_inject *inject, burn_err *err)
{
    atomic_init(&inject->launches, 0);
    atomic_init(&inject->fail_launches, 0);
    atomic_init(&inject->past_launches, 0);
    atomic_init(&inject->wrong_launches, 0);
    inject->yield = 1;
    int32_t code = mock_number_option("MOCK_DELAY_US", &inject->delay_us, err);
    if (code == BURN_OK) {
        code = mock_number_option("MOCK_YIELD", &inject->yield, err);
    }
    if (code == BURN_OK) {
        code = mock_number_option("MOCK_LOSE_AFTER", &inject->lose_after, err);
    }
    if (code == BURN_OK) {
        code = mock_number_option("MOCK_LOSE_MANY", &inject->lose_many, err);
    }
    if (code == BURN_OK) {
        code = read_launch("MOCK_FAIL_OP", &inject->fail_op, &inject->fail_at, err);
    }
    if (code == BURN_OK) {
        code = read_launch("MOCK_PAST_OP", &inject->past_op, &inject->past_at, err);
    }
    return code == BURN_OK ? read_launch("MOCK_WRONG_OP", &inject->wrong_op, &inject->wrong_at, err)
                           : code;
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
    if (is_key("yield", key, length)) {
        return &inject->yield;
    }
    return is_key("lose_after", key, length) ? &inject->lose_after : NULL;
}

void mock_inject_delay(const burn_backend_device *dev)
{
    uint64_t microseconds = dev->inject.delay_us;
    if (microseconds == 0) {
        if (dev->inject.yield != 0) {
            (void)sched_yield();
        }
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

int mock_inject_lost(const mock_item *item, uint32_t k, uint32_t n)
{
    return mock_queue_device(item->queue)->inject.lose_many != 0 && n > 1 && k + 1 == n;
}

/* As a loop that is rounded up would. */
static void write_past(mock_inject *inject, mock_item *item)
{
    const mock_operand *out = mock_out(item);
    if (item->op == inject->past_op && item->n_out > 0 &&
        atomic_fetch_add(&inject->past_launches, 1) + 1 == inject->past_at) {
        memset(mock_at(out, burn_dims_count(out->rank, out->dims)), 0, MOCK_PAST_BYTES);
    }
}

void mock_inject_error(mock_item *item)
{
    mock_inject *inject = &mock_queue_device(item->queue)->inject;
    const mock_operand *out = mock_out(item);
    if (item->op != 0) {
        write_past(inject, item);
    }
    if (item->op == 0 || item->op != inject->wrong_op || item->n_out == 0 ||
        atomic_fetch_add(&inject->wrong_launches, 1) + 1 != inject->wrong_at ||
        burn_dims_count(out->rank, out->dims) == 0) {
        return;
    }
    /* The exponent of a float, high bits of an integer: 1.0f becomes 8.5e37f. */
    out->data[out->size - 1] ^= 0x41;
}
