/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pool.h - what the pooling definitions share: sizes, checks, windows and sample geometries. Pure.
 *
 * In ceil mode a last window that would start in the right padding is dropped, and at least one
 * window stays. To add a pool: resolve the sizes here, take the windows from burni_pool_windows.
 */
#ifndef BURN_CORE_OPS_POOL_H
#define BURN_CORE_OPS_POOL_H

#include "ops/parts.h"

typedef struct burni_pool {
    int64_t n, c, h, w;
    int64_t oh, ow;
    const burn_attrs_pool *attrs;
} burni_pool;

enum { BURNI_N_ATTRS_POOL = 12 };
extern const burn_attr burni_attrs_pool_rows[BURNI_N_ATTRS_POOL];

/* From n, c, h, w and attrs: oh, ow. Each window holds an element of x, else it is an error. */
int32_t burni_pool_resolve(const char *op, burni_pool *d, burn_err *err);
/* The same from the meta of x, which must have rank 4. */
int32_t burni_pool_of(const char *op, const burn_meta *x, const burn_attrs_pool *attrs,
                      burni_pool *d, burn_err *err);

/* How much right padding (axis 0: height, 1: width) the last window needs. */
int64_t burni_pool_right(const burni_pool *d, int axis);

/* x framed with `value` (an immediate; used where there is a frame): [n, c, oh, ow, kh, kw]. */
burn_value *burni_pool_windows(const burn_builder *b, burn_value *x, const burni_pool *d,
                               burn_value *value);

typedef struct burni_pool_sample {
    const char *name;
    uint32_t rank;
    int64_t x[4];
    burn_attrs_pool attrs;
    int32_t error;
} burni_pool_sample;
enum { BURNI_N_POOL_SAMPLES = 16 };
extern const burni_pool_sample burni_pool_samples[BURNI_N_POOL_SAMPLES];

#endif /* BURN_CORE_OPS_POOL_H */
