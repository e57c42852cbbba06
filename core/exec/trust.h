/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * trust.h - what functions of a definition answered, looked at before it is relied on.
 *
 * Definitions come from plugins too. A shape rule, a view rule or a decomposition that breaks its
 * promise is an error of the call, which names plugin, op and rule; memory is never taken or
 * touched on its word alone. What can be known without a call is checked at load (ops/def_check.h);
 * gradients are checked where they are summed (grad/backward.c), codes, texts and what was written
 * past an array where the functions are called (ops/ask.h). [any]
 */
#ifndef BURN_CORE_EXEC_TRUST_H
#define BURN_CORE_EXEC_TRUST_H

#include "exec/emit_private.h"

/* How deep decompositions may be nested: one that ends up in itself has no end. */
#define BURNI_MAX_NESTED 16

/* Shapes and dtypes of the outputs, as the shape rule left them in out_meta. */
int32_t burni_trust_infer(const burni_emission *e, burn_err *err);

/* An output that lies in storage with those dims (out_meta[0]), strides and offset in elements. */
int32_t burni_trust_view(const burni_emission *e, const burni_storage *storage,
                         const int64_t *strides, int64_t offset, burn_err *err);

/* The outputs that a decomposition made, against out_meta. */
int32_t burni_trust_expand(const burni_emission *e, burn_err *err);

#endif /* BURN_CORE_EXEC_TRUST_H */
