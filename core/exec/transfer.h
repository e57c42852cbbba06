/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * transfer.h - bytes between the host and devices, and between devices.
 */
#ifndef BURN_CORE_EXEC_TRANSFER_H
#define BURN_CORE_EXEC_TRANSFER_H

#include "exec/stream.h"

/* A tensor with a copy of host bytes; a failed one on failure. */
burn_tensor *burni_upload(burni_thread *thread, burn_device *device, uint8_t dtype, uint32_t rank,
                          const int64_t *dims, const void *data);
/* Bytes of a storage that has been launched, whatever else waits: it ends no sequence. The stream
 * is the caller's own, or locked. */
int32_t burni_fetch(burni_stream *stream, burni_storage *s, uint64_t offset, void *out,
                    uint64_t bytes, burn_err *err);
/* Row-major bytes of a tensor into host memory. Runs and waits for what it needs. */
int32_t burni_download(burni_thread *thread, const burn_tensor *t, void *out, uint64_t bytes,
                       burn_err *err);

#endif /* BURN_CORE_EXEC_TRANSFER_H */
