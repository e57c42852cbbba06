/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * digest.h - one number for the values of tensors, by which two processes compare what they
 * computed.
 *
 * It depends on every bit and on the order. Values that are not finite are an error: nothing was
 * measured then. Floats of 32 bits only. To add a dtype: another read in digest.c.
 */
#ifndef BENCH_DIGEST_H
#define BENCH_DIGEST_H

#include <burn/tensor.h>

/* Mixes the values of `t` into *digest, which starts as 0. Reads and waits. */
int32_t bench_digest(const burn_tensor *t, uint64_t *digest, burn_err *err);

#endif /* BENCH_DIGEST_H */
