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
#include <burn/row.h>
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

/* What a row claims (row.h), and how often it was launched. Name and slots are the plugin's, which
 * is never unloaded. */
typedef struct burn_row_info {
    uint32_t struct_size;
    uint32_t flags; /* BURN_ROW_* */
    int32_t priority;
    uint32_t in_place_mask; /* of a row without `prepare` */
    uint32_t n_slots;       /* inputs, then outputs, slot_stride bytes apart */
    uint32_t slot_stride;
    const burn_slot *slots;
    const char *name;
    uint64_t n_guarded; /* launches under BURN_CHECK=bounds; others are not counted */
    /* What its check said when it answered BURN_E_STATE (row.h); NULL: it never did. Lives as long
     * as the process. */
    const char *why_off;
} burn_row_info;

/* Describes row i of an op on a device. BURN_E_NOT_FOUND behind the last, and when there is no such
 * op; BURN_E_INVALID when device or out is NULL or out states no size. */
BURN_API int32_t burn_op_row_describe(burn_device *device, uint64_t op, uint32_t i,
                                      burn_row_info *out, burn_err *err);

/*
 * Calls an op. `in` may hold NULL for absent operands; `device` is needed where no input is a
 * tensor. Writes n_out tensors, failed ones on failure; returns their code.
 */
BURN_API int32_t burn_op_call(burn_device *device, uint64_t op, const void *attrs,
                              uint32_t attrs_size, burn_tensor *const *in, uint32_t n_in,
                              burn_tensor **out, uint32_t n_out);

BURN_END_DECLS

#endif /* BURN_REGISTRY_H */
