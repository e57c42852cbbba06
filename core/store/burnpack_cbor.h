/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * burnpack_cbor.h - the metadata map of a burnpack file, taken apart.
 *
 * The parser pulls one CBOR item at a time, so nesting costs no stack and no count in the input is
 * trusted: lists grow as items really come. It knows the map's structure but no file: offsets are
 * checked against each other and against the shape here, against the file by the reader.
 */
#ifndef BURN_CORE_STORE_BURNPACK_CBOR_H
#define BURN_CORE_STORE_BURNPACK_CBOR_H

#include "store/burnpack.h"

/* What the map holds; everything is owned and freed by burni_bpk_contents_free. */
typedef struct burni_bpk_contents {
    burni_bpk_tensor *tensors; /* `position` is relative to the data section */
    burni_bpk_pair *metadata;
    burni_bpk_scalar *scalars;
    uint32_t n_tensors;
    uint32_t n_metadata;
    uint32_t n_scalars;
    uint32_t tensor_room;
    uint32_t metadata_room;
    uint32_t scalar_room;
    char *text; /* every name, NUL-terminated */
    uint64_t text_used;
    uint64_t text_room;
} burni_bpk_contents;

/* Fills *out (zeroed by the caller); on failure it may be partly filled and must still be freed. */
int32_t burni_bpk_parse(const unsigned char *bytes, uint64_t size, burni_bpk_contents *out,
                        burn_err *err);
void burni_bpk_contents_free(burni_bpk_contents *contents);

#endif /* BURN_CORE_STORE_BURNPACK_CBOR_H */
