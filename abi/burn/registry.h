/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * registry.h - walking the op definitions, and calling any op by id or name.
 *
 * What the documentation, the support matrix, bindings and the conformance tool are made of. The
 * definitions live as long as the process; extensions add to them when they are loaded. [any]
 */
#ifndef BURN_REGISTRY_H
#define BURN_REGISTRY_H

#include <burn/op_def.h>
#include <burn/op_list.h>
#include <burn/tensor.h>

BURN_BEGIN_DECLS

BURN_API uint32_t burn_op_count(void);
BURN_API const burn_op_def *burn_op_at(uint32_t i);
/* NULL when there is none. */
BURN_API const burn_op_def *burn_op_find(const char *name);
BURN_API const burn_op_def *burn_op_find_id(uint64_t id);

/* How a device serves an op. */
enum { BURN_SUPPORT_NONE = 0, BURN_SUPPORT_DECOMPOSED = 1, BURN_SUPPORT_NATIVE = 2,
       BURN_SUPPORT_VIEW = 3 };
/* For operands of `dtype` (where a role admits it); the best of the device's rows. */
BURN_API int32_t burn_op_support(burn_device *device, uint64_t op, uint8_t dtype);
/* Name of row i of an op on a device, NULL after the last. */
BURN_API const char *burn_op_row(burn_device *device, uint64_t op, uint32_t i);

/*
 * Calls an op. `in` may hold NULL for absent operands; `device` is needed where no input is a
 * tensor. Writes n_out tensors, failed ones on failure; returns their code.
 */
BURN_API int32_t burn_op_call(burn_device *device, uint64_t op, const void *attrs,
                              uint32_t attrs_size, burn_tensor *const *in, uint32_t n_in,
                              burn_tensor **out, uint32_t n_out);

BURN_END_DECLS

#endif /* BURN_REGISTRY_H */
