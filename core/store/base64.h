/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * base64.h - bytes as text and back (RFC 4648, standard alphabet, padded, no line breaks).
 *
 * Model files hold text metadata only, so a graph is stored this way. Decoding is strict: one text
 * per bytes, so that altered files show. Keeps no state. [any]
 */
#ifndef BURN_CORE_STORE_BASE64_H
#define BURN_CORE_STORE_BASE64_H

#include <burn/base.h>

/* NUL-terminated text in memory of burni_alloc; NULL when there is none. */
char *burni_base64_encode(const void *bytes, size_t size);
/*
 * The bytes in memory of burni_alloc. On failure NULL: *out_bad is the position of what is wrong in
 * the text, or SIZE_MAX when memory is short.
 */
void *burni_base64_decode(const char *text, size_t *out_size, size_t *out_bad);

#endif /* BURN_CORE_STORE_BASE64_H */
