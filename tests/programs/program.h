/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * program.h - random programs of ops: what they are made of, and what the files here share.
 *
 * A program is a list of steps, made from a seed without running anything: shapes come from the
 * ops' own rules. It is run on a device by one or more threads, in any window, with or without
 * looking at each result. A run writes down what its reads saw; runs of one device must agree bit
 * by bit, each single op must agree with its `eval`. Steps can be dropped, which drops what depends
 * on them; so a failing program shrinks. To add a kind of step: a row in STEP_KINDS, a maker in
 * generate.c, a runner in execute.c.
 */
#ifndef BURN_TESTS_PROGRAMS_PROGRAM_H
#define BURN_TESTS_PROGRAMS_PROGRAM_H

#include "conformance/conformance.h"

#include <burn/build.h>
#include <burn/device.h>
#include <burn/grad.h>
#include <burn/ops.h>
#include <burn/registry.h>

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

#define MAX_STEPS   400
#define MAX_VALUES  512
#define MAX_VARS    8
#define MAX_THREADS 3
#define MAX_USES    24
#define MAX_OUTS    8
#define MAX_DEPTH   6
#define NO_VALUE    (-1)

#define STEP_KINDS(X)                                                                              \
    X(CONST, "const")                                                                              \
    X(OP, "op")                                                                                    \
    X(BEGIN, "scope_begin")                                                                        \
    X(END, "scope_end")                                                                            \
    X(KEEP, "keep")                                                                                \
    X(RELEASE, "release")                                                                          \
    X(READ, "read")                                                                                \
    X(SYNC, "sync")                                                                                \
    X(LEAF, "require_grad")                                                                        \
    X(DETACH, "detach")                                                                            \
    X(BACKWARD, "backward")                                                                        \
    X(VAR_NEW, "var_create")                                                                       \
    X(VAR_GET, "var_get")                                                                          \
    X(VAR_SET, "var_assign")                                                                       \
    X(VAR_STEP, "sgd_step")                                                                        \
    X(VAR_END, "var_release")

enum {
#define STEP_ENUM(name, text) STEP_##name,
    STEP_KINDS(STEP_ENUM)
#undef STEP_ENUM
        N_STEP_KINDS
};
extern const char *const step_names[N_STEP_KINDS];

/* One call. Which fields count depends on the kind. A backward pass takes its root, the leaves of
 * its outputs, and a seed when there is one operand more. */
typedef struct step {
    uint8_t kind;
    uint8_t thread;
    uint8_t dropped;
    uint8_t loose;  /* operands are not the sample's: results may be compared loosely */
    uint32_t moved; /* bit i: operand i is handed over */
    uint32_t n_in;
    uint32_t n_out;
    int32_t in[MAX_USES];  /* values; NO_VALUE: absent */
    int32_t out[MAX_OUTS]; /* values that it makes */
    int32_t var;
    int32_t pair; /* BEGIN and END: the other one */
    double tolerance;
    const burn_op_def *def;
    uint32_t attrs_size;
    uint32_t retain;
    unsigned char attrs[BURN_MAX_ATTRS];
    int32_t waits[MAX_THREADS];  /* the last step of each other thread that it depends on */
    int32_t before[MAX_THREADS]; /* the last step of each other thread that stands before it */
} step;

typedef struct value {
    conf_value host; /* of constants and scalars: the elements; of all: the meta */
    uint8_t known;   /* 0: its call is expected to fail, so it has no meta */
    uint8_t constant;
    uint8_t tracked;
    uint8_t alive;
    uint8_t thread;
    int8_t depth;   /* the scope that holds it; -1: kept */
    uint8_t absent; /* a gradient: there may be none, so ops do not use it */
    uint8_t leaf;    /* a handle of a leaf */
    uint64_t leaves; /* bit per leaf or variable that it is made from, where it is tracked */
} value;

typedef struct program {
    uint64_t seed;
    uint32_t n_threads;
    uint32_t n_steps;
    uint32_t n_values;
    uint32_t n_vars;
    step steps[MAX_STEPS];
    value values[MAX_VALUES];
    conf_arena arena;
} program;

/* ---- generate.c ----------------------------------------------------------------------------- */

/* Makes the program of a seed. */
void program_make(program *p, uint64_t seed);
void program_free(program *p);

/* ---- order.c -------------------------------------------------------------------------------- */

/* Drops a step (and the other end of a scope) and what depends on it. */
void program_drop(program *p, uint32_t at);
/* Who must wait for whom; again after steps were dropped. */
void program_order(program *p);
/* Writes the steps that are left. */
void program_print(const program *p);

/* ---- execute.c ------------------------------------------------------------------------------ */

/* What one read saw. */
typedef struct seen {
    int32_t done;
    int32_t code;
    conf_value value; /* of code BURN_OK */
    char text[256];   /* of other codes */
} seen;

/* What a checked run compared, and what it could not. */
typedef struct tally {
    uint64_t values;    /* elements of results of ops */
    uint64_t decided;   /* of those: they differ where a rounding on the way decides */
    uint64_t gradients; /* sums over a gradient's elements */
    uint64_t zero;      /* of those: nothing flows */
    uint64_t no_pass;   /* not there, since their pass failed */
    uint64_t at_kinks;  /* gradients not compared: a step of theirs has no derivative there, */
    uint64_t infinite;  /* or numbers that are not finite, */
    uint64_t too_wide;  /* or rounding may change them altogether */
    uint64_t through[4]; /* ops whose gradient was part of one that is not zero: bit per op */
} tally;

typedef struct run {
    const program *program;
    burn_device *device;
    int check;            /* one call at a time over all threads, each compared with eval */
    int replay;           /* steps are kept in stretches and run again */
    uint32_t n_kept;      /* stretches that were, and that could not be */
    uint32_t n_refused;
    seen seen[MAX_STEPS]; /* of step i */
    tally count; /* of a checked run */
    conf_arena arena;
    char failure[600]; /* "" when all was as it should be */
} run;

/* Whether tanh, sigmoid and sin of f32 lie, by a ten-thousandth in their values or a thousandth in
 * their gradients: so that the tests know that a checked run sees it. */
enum { LIE_NONE = 0, LIE_KERNEL = 1, LIE_VJP = 2 };
extern int execute_lie;

/* How a program is run. */
enum { RUN_PLAIN = 0, RUN_CHECK = 1, RUN_REPLAY = 2 };
/* Runs the program with that window; frees what an earlier use of `r` left. */
void run_program(run *r, const program *p, burn_device *device, uint32_t window, int how);
void run_free(run *r);
/* Compares two runs of one device; what differs goes to `text`. */
int runs_agree(const run *a, const run *b, char *text, size_t size);

/* ---- check.c -------------------------------------------------------------------------------- */

/* Compares the results of one op with eval; what differs goes to `text`. */
int check_op(conf_arena *arena, burn_device *device, const step *s, const conf_value *in,
             const int32_t *in_codes, const conf_value *out, const int32_t *out_codes,
             tally *count, char *text, size_t size);
/* How exact an op's kernels must be, in units of its dtype's epsilon: what its samples say. */
double check_tolerance(const burn_op_def *def);
/* The smallest number of a float dtype: what may get lost where numbers underflow. */
double check_tiny(uint8_t dtype);
#endif /* BURN_TESTS_PROGRAMS_PROGRAM_H */
