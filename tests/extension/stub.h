/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stub.h - what the files of the stub extension share.
 *
 * stub.c has the ops that are right, what is wrong in definitions, and the query; other files have
 * further defects, each list for one subject. To add a file: its list here, and in `lists` of
 * stub.c. Filled by the query, before a defect is applied. One thread.
 */
#ifndef BURN_TESTS_EXTENSION_STUB_H
#define BURN_TESTS_EXTENSION_STUB_H

#include <burn_sdk/loop.h>
#include <burn_sdk/op.h>
#include <burn_sdk/slots.h>

/* A defect is applied in the library whose file has its name. */
typedef struct stub_defect {
    const char *name;
    void (*apply)(void);
} stub_defect;

#define STUB_DEFECT(name)                                                                          \
    {                                                                                              \
#        name, name                                                                                \
    }

/* The op that may be wrong: "<id>.op", z = x + y of floats of one shape. */
burn_op_def *stub_op(void);
/* The one row of the plugin, "stub.row": a kernel of `op` for that backend, f32, two inputs. */
burn_row *stub_row(const char *backend, uint64_t op);

/* Ends with a row without a name. */
extern const stub_defect stub_bounds_defects[];
extern const stub_defect stub_claims_defects[];

#endif /* BURN_TESTS_EXTENSION_STUB_H */
