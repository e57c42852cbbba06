/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * support.h - how a device serves an op: by a row, by its decomposition, or not at all.
 */
#ifndef BURN_CORE_EXEC_SUPPORT_H
#define BURN_CORE_EXEC_SUPPORT_H

#include "exec/device.h"

/* BURN_SUPPORT_*, for operands of that dtype, found by a dry run of the op's own samples. */
int32_t burni_support(burni_device *device, const burni_op *op, uint8_t dtype);

#endif /* BURN_CORE_EXEC_SUPPORT_H */
