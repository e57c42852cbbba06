/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * idx.h - what the rest of libburn-train may know of the IDX reader beyond <burn/data.h>. [any]
 */
#ifndef BURN_TRAIN_DATA_IDX_H
#define BURN_TRAIN_DATA_IDX_H

#include <burn/data.h>

enum { BURNI_IDX_MAX_RANK = 8 };

struct burn_idx {
    uint8_t dtype;
    uint8_t rank;
    uint32_t item_size; /* bytes of one element */
    uint64_t n;         /* elements */
    int64_t dims[BURNI_IDX_MAX_RANK];
    unsigned char *data;
};

#endif /* BURN_TRAIN_DATA_IDX_H */
