/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * extension.h - plugins whose ops are registered and whose rows serve devices.
 *
 * Loading one is one step: its ops and its rows for all open devices are planned first, then made
 * visible together, or nothing is. Devices that are opened later take its rows then, so before and
 * after make no difference. What is loaded stays for the life of the process.
 */
#ifndef BURN_CORE_EXEC_EXTENSION_H
#define BURN_CORE_EXEC_EXTENSION_H

#include "exec/device.h"

/* Opens and registers a plugin of kind extension; does nothing when that was done. [any] */
int32_t burni_extension_load(const char *id, burn_err *err);

/* What is to be said of an extension: why it was refused, or which of its kernels are left out and
 * why; "" when nothing is wrong. `out` has 256 bytes. [any] */
void burni_extension_note(const char *id, char *out);

/* Adds the rows of all extensions to a device that is being opened. Those of an extension that
 * cannot be used are left out, its note says why: it never keeps a device from opening. Under
 * burni_devices_lock. */
void burni_extensions_serve(burni_device *device);
/* Logs the notes that were not logged before. Without the lock: a log callback may call anything.
 */
void burni_extensions_tell(void);

#endif /* BURN_CORE_EXEC_EXTENSION_H */
