/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plans.h - what was made of the calls that waited, what memory it needs, and what it would need.
 *
 * Calls of a sequence that comes again wait and are run by a plan (BURN_WINDOW): some are left out,
 * some run as one, and values that live within the plan only share one piece of memory. The report
 * tells what the calling thread's plans do; a dry run tells what a program would need, without
 * running it. Bytes are those of values unless it says otherwise.
 */
#ifndef BURN_PLANS_H
#define BURN_PLANS_H

#include <burn/device.h>

BURN_BEGIN_DECLS

/* One plan. */
typedef struct burn_plan_info {
    uint32_t struct_size;
    uint32_t n_calls;    /* that waited, those included that nobody needed */
    uint32_t n_launches; /* that it makes */
    uint32_t n_groups;   /* of them, each several calls as one */
    uint32_t n_fused;    /* calls in groups */
    uint32_t n_places;   /* values and workspaces that share the piece of memory */
    uint32_t n_reused;   /* values that overwrite an input and need no place of their own */
    uint32_t zero;
    uint64_t hits;        /* runs after the first */
    uint64_t live_bytes;  /* the bound: most that is alive at once of all that the plan uses */
    uint64_t peak_bytes;  /* most that is taken at once for it, blocks of the pool and the piece */
    uint64_t apart_bytes; /* the same if each value had a block of its own */
    uint64_t piece_bytes; /* the piece; 0: there is none, since it would not need less */
    uint64_t piece_bound; /* most that is alive at once of what shares the piece */
    uint64_t largest;     /* value */
} burn_plan_info;

/* Of the calling thread's stream on a device. */
typedef struct burn_plan_totals {
    uint32_t struct_size;
    uint32_t n_plans;  /* kept now; the ones used last, at most 64 */
    uint64_t made;     /* so far */
    uint64_t hits;     /* runs by a plan that was there */
    uint64_t launches; /* kernels, with and without a plan */
    uint64_t dropped;  /* calls that waited until nobody needed them */
    burn_plan_info last;    /* used; zeros when there is none */
    burn_plan_info largest; /* by peak_bytes */
    uint64_t found;    /* in the named environment (burn/environment.h), so they were not made */
    uint64_t refused;  /* of what was there, since it did not fit */
} burn_plan_totals;

/* BURN_E_INVALID for NULL or a struct without its size. Does not run what waits. [any] */
BURN_API int32_t burn_plan_report(burn_device *device, burn_plan_totals *out, burn_err *err);
/* Plan i of those that are kept; BURN_E_NOT_FOUND behind the last. [any] */
BURN_API int32_t burn_plan_at(burn_device *device, uint32_t i, burn_plan_info *out, burn_err *err);
/* All of it as lines of text, cut to fit, with a 0 at the end when size > 0; the length of the
 * whole text. NULL and 0 measure. [any] */
BURN_API size_t burn_plan_text(burn_device *device, char *text, size_t size);

/* ---- dry runs ---- */

/* What a program would need. Bytes of memory are the calling thread's on that device. */
typedef struct burn_dry_run {
    uint32_t struct_size;
    uint32_t n_variables;   /* made in it */
    uint64_t calls;         /* that would have waited or run */
    uint64_t launches;      /* that would have been made of them */
    uint64_t before;        /* bytes in use when it began */
    uint64_t peak_bytes;    /* most that would have been taken beyond these */
    uint64_t live_bytes;    /* the bound: most that values would have held at once */
    uint64_t variable_bytes; /* of the variables made in it */
    uint64_t largest;       /* bytes of the largest result */
    int64_t largest_dims[BURN_MAX_RANK];
    uint8_t largest_dtype;
    uint8_t largest_rank;
    uint8_t zero[6];
    char largest_op[48];    /* that makes it; "" when there is none */
} burn_dry_run;

/*
 * From here on the calling thread's calls on the device are looked at and planned as ever, but
 * nothing is computed or uploaded and no memory is taken. Tensors and variables have shapes and no
 * values: reading one is BURN_E_STATE, at any time. In window auto all calls wait, as they do the
 * second time; what was seen in it is known afterwards. Variables from before keep their values,
 * whatever updates them; what the program itself counts (steps of an optimizer) goes on.
 * BURN_E_STATE in a dry run or while a step is kept (burn/replay.h).
 */
BURN_API int32_t burn_dry_run_begin(burn_device *device, burn_err *err);
/* Ends it and tells. What was made in it stays without a value; random numbers go on as before it.
 * BURN_E_STATE without a begin on this thread; BURN_E_INVALID for a struct without its size, then
 * it goes on. */
BURN_API int32_t burn_dry_run_end(burn_dry_run *out, burn_err *err);

/* From now on `peak_in_use` and `peak_reserved` of burn_memory_report are the highest since this
 * call. [any] */
BURN_API void burn_memory_peak_reset(burn_device *device);

BURN_END_DECLS

#endif /* BURN_PLANS_H */
