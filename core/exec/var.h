/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * var.h - variables: the only values that are ever overwritten.
 */
#ifndef BURN_CORE_EXEC_VAR_H
#define BURN_CORE_EXEC_VAR_H

#include "exec/stream.h"

struct burn_var {
    _Atomic uint32_t refs;
    _Atomic uint32_t tracked;
    uint64_t id;
    burn_device *device;
    burn_tensor *value; /* kept; its storage has a fixed address */
    burni_node *leaf;   /* identity of the variable on the tape */
    pthread_mutex_t lock;
};

/* Makes the variable's storage safe to overwrite by the calling thread, which holds its lock: so
 * there will be no new readers, and those without a handle have at most records that wait. */
int32_t burni_var_prepare_write(burni_thread *thread, burn_var *var, burn_err *err);

#endif /* BURN_CORE_EXEC_VAR_H */
