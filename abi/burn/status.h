/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * status.h - error codes and the sink that carries an error's text.
 *
 * A function that can fail returns an int32_t: BURN_OK, or a negative code of the list below. The
 * text goes into a `burn_err` which belongs to the caller and is written on failure only, so a call
 * that succeeds never touches it. A sink that holds an error keeps it: one sink may be passed to
 * many calls and has the first error at the end; each call still returns its own code. To use a
 * sink again, set its `code` to BURN_OK. To add a code: append a row; numbers are never reused.
 */
#ifndef BURN_STATUS_H
#define BURN_STATUS_H

#include <burn/base.h>

BURN_BEGIN_DECLS

/* X(number, NAME, text) */
#define BURN_FOREACH_STATUS(X)                                                                     \
    X(-1, E_INVALID, "invalid argument")                                                           \
    X(-2, E_SHAPE, "shapes do not fit")                                                            \
    X(-3, E_DTYPE, "dtypes do not fit")                                                            \
    X(-4, E_DEVICE, "devices do not fit")                                                          \
    X(-5, E_UNSUPPORTED, "not supported")                                                          \
    X(-6, E_NO_MEMORY, "out of memory")                                                            \
    X(-7, E_NOT_FOUND, "not found")                                                                \
    X(-8, E_IO, "input or output failed")                                                          \
    X(-9, E_FORMAT, "malformed data")                                                              \
    X(-10, E_ABI, "plugin and host do not fit")                                                    \
    X(-11, E_DATA, "data out of range")                                                            \
    X(-12, E_DEVICE_LOST, "device lost")                                                           \
    X(-13, E_STATE, "not possible in this state")                                                  \
    X(-14, E_LIMIT, "a limit was exceeded")                                                        \
    X(-15, E_INTERNAL, "internal error")                                                           \
    X(-16, E_DENIED, "not allowed")                                                                \
    X(-17, E_END, "end reached")

enum {
    BURN_OK = 0,
#define BURN_STATUS_ROW(number, name, text) BURN_##name = (number),
    BURN_FOREACH_STATUS(BURN_STATUS_ROW)
#undef BURN_STATUS_ROW
};

/*
 * An error, in the caller's memory. `struct_size` is set by the caller (see BURN_ERR_INIT) and lets
 * the struct grow; `cap` is the size of `text`. `op` is the id of the op that failed, 0 when none;
 * `backend_code` is what the driver said, 0 when it said nothing.
 */
typedef struct burn_err {
    uint32_t struct_size;
    int32_t code;
    uint64_t op;
    int32_t backend_code;
    uint32_t cap;
    char text[232];
} burn_err;

/* clang-format off */
#define BURN_ERR_INIT { sizeof(burn_err), 0, 0, 0, 232, {0} }
/* clang-format on */

/* The name of a code ("E_SHAPE") and its short text; never NULL. [any] */
BURN_API const char *burn_status_name(int32_t code);
BURN_API const char *burn_status_text(int32_t code);

BURN_END_DECLS

#endif /* BURN_STATUS_H */
