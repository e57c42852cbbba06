/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ask.h - the functions of a definition, called so that what they fill ends in guard bytes.
 *
 * A definition may come from a plugin: its functions write into arrays of the host, whose lengths
 * they know from the call only. Those of a plugin get arrays of this file's own, with a guard right
 * behind what they may write, and a sink of their own for errors; what they wrote is taken over
 * when the guards are whole. Those of the core are called as they are, so its ops pay one
 * comparison. To ask a further function: here, never by itself elsewhere. Keeps no state. [any]
 */
#ifndef BURN_CORE_OPS_ASK_H
#define BURN_CORE_OPS_ASK_H

#include "ops/registry.h"

/*
 * What the function answered, with its text in `a->err` (`err` where there is none); codes that do
 * not exist become BURN_E_INTERNAL, and a failure without a text gets one. BURN_E_ABI: it wrote
 * past what it was given, and nothing of that is taken over.
 */
int32_t burni_ask_infer(const burni_op *op, const burn_infer *a);
int32_t burni_ask_view(const burni_op *op, const burn_view *a);
int32_t burni_ask_vjp(const burni_op *op, const burn_builder *b, const burn_vjp *a, burn_err *err);
int32_t burni_ask_decompose(const burni_op *op, const burn_builder *b, const burn_expand *a,
                            burn_err *err);
/* Also BURN_E_NO_MEMORY. */
int32_t burni_ask_eval(const burni_op *op, const burn_eval *a);

/* Sample i, into a zeroed struct; another code than BURN_OK and BURN_E_ABI says that there is none.
 * `plugin` is NULL for the core's. */
int32_t burni_ask_sample(const char *plugin, const burn_op_def *def, uint32_t i, burn_sample *out,
                         burn_err *err);

#endif /* BURN_CORE_OPS_ASK_H */
