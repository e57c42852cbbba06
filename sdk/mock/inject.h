/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * inject.h - failures on demand, so that tests can see what the core makes of them.
 *
 * Owns what belongs to that and nothing of the backend: options, counters, the failures. Where the
 * backend calls in here, an `#ifdef MOCK_INJECT` stands around it; `burn new backend` leaves these
 * parts out, and this file. To add a failure: a field, its option, and a place in inject.c.
 */
#ifndef BURN_SDK_MOCK_INJECT_H
#define BURN_SDK_MOCK_INJECT_H

#include <burn/status.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct mock_item;
struct burn_backend_device;

/* What option_place takes besides `memory`, for an error's text. */
#define MOCK_INJECT_KEYS ", delay_us=<n>, yield=0 or 1 and lose_after=<n>"

/* What a launch that writes behind its output writes there. */
#define MOCK_PAST_BYTES 3

/* Part of a device. Options are read when it is opened; 0 means never. */
typedef struct mock_inject {
    uint64_t delay_us;   /* the worker sleeps before each item; 0: it may yield only */
    uint64_t yield;      /* 0: a worker that has no delay goes on at once */
    uint64_t fail_op;    /* the id of an op ... */
    uint64_t fail_at;    /* ... whose n-th launch fails */
    uint64_t past_op;    /* the id of an op ... */
    uint64_t past_at;    /* ... whose n-th launch writes behind its first output */
    uint64_t wrong_op;   /* the id of an op ... */
    uint64_t wrong_at;   /* ... whose n-th launch computes its first element wrongly */
    uint64_t lose_after; /* the device is lost at its n-th launch */
    uint64_t lose_many;  /* not 0: the last one of calls that are launched at once does nothing */
    atomic_uint_fast64_t launches;
    atomic_uint_fast64_t fail_launches;
    atomic_uint_fast64_t past_launches;
    atomic_uint_fast64_t wrong_launches;
} mock_inject;

/* Reads the host's options. [init] */
int32_t mock_inject_read(mock_inject *inject, burn_err *err);
/* Where the value of a device string's key belongs; NULL when the key is not one of these. */
uint64_t *mock_inject_option(mock_inject *inject, const char *key, size_t length);
/* Lets the worker of a queue be late. [worker] */
void mock_inject_delay(const struct burn_backend_device *dev);
/* 1 when a failure came instead of the kernel. [worker] */
int mock_inject_failure(struct mock_item *item);

/* 1: call k of n that are launched at once is to do nothing. */
int mock_inject_lost(const struct mock_item *item, uint32_t k, uint32_t n);

/* After the kernel: spoils its result when that was asked for. [worker] */
void mock_inject_error(struct mock_item *item);

#endif /* BURN_SDK_MOCK_INJECT_H */
