/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tiles.h - runs an elementwise loop over operands of any layout.
 *
 * A job names up to three sources (all seen with the output's dims), the dense output and a loop
 * over dense arrays. Dense work goes to the loop in one piece; anything else is gathered tile by
 * tile into buffers that stay in the first-level cache, and half floats are converted there. Jobs
 * that fit the caches are cut into one part per thread, so that the next op finds each part where
 * this one left it; larger ones into chunks of a fixed size. Elements do not depend on the cut, but
 * for which NaN of two comes out.
 */
#ifndef BURN_PLUGINS_FLEX_TILES_H
#define BURN_PLUGINS_FLEX_TILES_H

#include "flex.h"
#include "kernels.h"

#include <stdatomic.h>

enum { FLEX_TILE = 512, FLEX_MAX_SOURCES = 3 };

typedef struct flex_source {
    const char *data;
    const int64_t *strides;
    flex_convert_fn convert; /* to float, for halves; else NULL */
    uint32_t size;           /* bytes of an element in memory */
    uint8_t dense;
    uint8_t scalar;
    uint8_t zero[2];
} flex_source;

typedef struct flex_job flex_job;
/* In the mode of a loop, behind a bit for each source: its function is job->past_fn. Only jobs that
 * have one see it. */
enum { FLEX_MODE_PAST = 1 << FLEX_MAX_SOURCES };
/* Bit i of `mode`: source i is one value. Returns as flex_unary_fn does. */
typedef uint64_t (*flex_tile_loop)(const flex_job *job, void *out, const void *const *in,
                                   uint64_t n, uint32_t mode);

struct flex_job {
    flex_tile_loop loop;
    const void *fn; /* the loop's own: points at a function pointer */
    const void *past_fn; /* NULL, or the same for whole lines past the caches (kernels.h) */
    flex_source src[FLEX_MAX_SOURCES];
    uint32_t n_src;
    uint32_t rank;
    const int64_t *dims;
    char *out;
    uint32_t out_size;
    uint8_t all_dense;
    uint8_t may_stop; /* the loop may stop early: positions must come in order */
    uint8_t stream;   /* results go past the caches (stream.h) */
    uint8_t zero;
    flex_convert_fn convert_out;
    uint64_t n;
    uint64_t grain;        /* elements per task */
    _Atomic uint64_t fault; /* the lowest position without an answer, or n */
};

/* What `fn` points at in this mode. */
static inline const void *flex_job_fn(const flex_job *job, uint32_t mode)
{
    return (mode & FLEX_MODE_PAST) != 0 ? job->past_fn : job->fn;
}

/* Source `i` from an operand; halves are converted when `widen`. */
void flex_job_source(flex_job *job, uint32_t i, const burn_operand *x, int widen);

/* The output, n, dims; sets everything else to a start. */
void flex_job_start(flex_job *job, const burn_operand *out, int narrow);

/* Runs it; returns n, or the lowest position that a loop stopped at. */
uint64_t flex_job_run(flex_job *job);

/*
 * Gathers elements first .. first + n - 1 (row-major over dims) of a strided array into `out`.
 */
void flex_gather(void *out, const void *data, uint32_t size, uint32_t rank, const int64_t *dims,
                 const int64_t *strides, int64_t first, int64_t n);

/* Copies n elements, `stride` apart, into a dense array. */
void flex_copy_run(void *out, const void *data, uint32_t size, int64_t stride, int64_t n);

/* One element, n times. */
void flex_spread(void *out, const void *value, uint32_t size, uint64_t n);

/*
 * The size of the parts that n things are cut into: `grain`, but one part per thread when that
 * makes only a few. The caller takes the first part and the workers the others, call after call, so
 * each core's cache keeps its part from op to op. Only for work whose bits do not depend on it.
 */
uint64_t flex_even_grain(uint64_t n, uint64_t grain, uint64_t multiple);

/* Offset (in elements) of the element at a row-major position. */
int64_t flex_offset_at(uint32_t rank, const int64_t *dims, const int64_t *strides,
                       int64_t position);

#endif /* BURN_PLUGINS_FLEX_TILES_H */
