/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * capture.h - writing down what a thread calls, and windows as checked bytes.
 *
 * A capture keeps handles of all operands, so that addresses tell values apart while it lasts. The
 * one converter from records to a window is burni_capture_finish; the other direction is
 * exec/replay.c.
 */
#ifndef BURN_CORE_GRAPH_CAPTURE_H
#define BURN_CORE_GRAPH_CAPTURE_H

#include "ops/registry.h"
#include "tensor/tensor.h"

#include <burn/window.h>

typedef struct burni_capture burni_capture;

burni_capture *burni_capture_new(void);
void burni_capture_free(burni_capture *capture);
/* One op with its operands; a lack of memory is remembered and fails the finish. */
void burni_capture_op(burni_capture *capture, const burni_op *op, const void *attrs,
                      uint32_t attrs_size, burn_tensor *const *in, uint32_t n_in,
                      burn_tensor *const *out, uint32_t n_out);
int32_t burni_capture_input(burni_capture *capture, burn_tensor *t, const char *name);

/* 1 + the number of the value that t is, when it is the result of a captured op and nothing else
 * (no input, variable or constant); else 0. */
uint32_t burni_capture_made(const burni_capture *capture, const burn_tensor *t);

/* Name of a variable's storage, and the bytes of a constant. */
typedef struct burni_capture_names {
    const char *(*state)(void *user, const burni_storage *storage);
    int32_t (*bytes)(void *user, const burn_tensor *t, void *out, uint64_t size, burn_err *err);
    void *user;
} burni_capture_names;

/* The window, in memory of burni_alloc; NULL and an error on failure. Outputs are distinct results
 * of captured ops. */
burn_window *burni_capture_finish(burni_capture *capture, burn_tensor *const *outputs, uint32_t n,
                                  const burni_capture_names *names, burn_err *err);

/* FNV-1a of everything behind the head; burni_window_check compares it with hash_absolute. */
uint64_t burni_window_hash(const burn_window *w);
int32_t burni_window_check(const void *bytes, size_t size, burn_err *err);
size_t burni_window_text(const burn_window *w, char *out, size_t size);

/* Parts of a checked window. */
const burn_window_value *burni_window_value(const burn_window *w, uint32_t i);
const burn_window_node *burni_window_node(const burn_window *w, uint32_t i);
const burn_window_use *burni_window_use(const burn_window *w, uint32_t i);
const burn_window_dim *burni_window_dim(const burn_window *w, uint32_t i);
const char *burni_window_bytes(const burn_window *w, uint32_t offset);

#endif /* BURN_CORE_GRAPH_CAPTURE_H */
