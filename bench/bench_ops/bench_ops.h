/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * bench_ops.h - what the files of this extension share: its ops exist to be measured.
 *
 * add.c is a call that costs what a call costs; product.c runs flex's product for kernels. To add
 * an op: a definition and a row in a file of its own, and their lines in plugin.c.
 */
#ifndef BURN_BENCH_BENCH_OPS_H
#define BURN_BENCH_BENCH_OPS_H

#include <burn_sdk/op.h>
#include <burn_sdk/slots.h>

/* Set by the query, constant from then on. */
extern const burn_host *bench_ops_host;

/* Of both: x and y make z, dense f32. */
extern const burn_slot bench_ops_slots[3];
extern const burn_role bench_ops_roles[3];

extern const burn_op_def bench_ops_add;
extern const burn_op_def bench_ops_product;

/* Their rows for flex; the ids of ops are filled in by the query. */
extern burn_row bench_ops_rows_add[1];
extern burn_row bench_ops_rows_product[1];

/* What flex asks before a product is run. [queue] */
int32_t bench_ops_prepare_product(const burn_call *call, burn_prepared *out);

/* Picks the loop of add for this CPU. [init] */
void bench_ops_pick_loop(void);

#endif /* BURN_BENCH_BENCH_OPS_H */
