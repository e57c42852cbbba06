/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * strand.h - several elementwise ops of f32 on a block of elements that stays in registers.
 *
 * A strand is a list of links: the first names an array, each further one applies an op to the
 * running values of a block (with another array, or one value, as the other operand) or writes them
 * to an array, the last one does so and is done. A link passes the running values on to the next in
 * vector registers, so that an op costs its arithmetic and at most one load. Each op does to an
 * element what the loop of kernels.h does. Tables exist once per ISA (strand_tmpl.c); which steps
 * of a program become strands is for fused_strand.c.
 */
#ifndef BURN_PLUGINS_FLEX_STRAND_H
#define BURN_PLUGINS_FLEX_STRAND_H

#include "kernels.h"

/* Takes vectors, so its true type is known to the templates only. */
typedef void (*flex_link_fn)(void);

typedef struct flex_link {
    flex_link_fn run;
    char *data; /* of the block at position 0; or the one value */
} flex_link;

/* Which operands of a binary op are the running values, an array, or one value. */
enum {
    FLEX_LINK_WITH_ARRAY,
    FLEX_LINK_ARRAY_WITH,
    FLEX_LINK_WITH_ONE,
    FLEX_LINK_ONE_WITH,
    FLEX_LINK_WITH_SELF,
    FLEX_N_LINK_FORMS
};

struct flex_strand_table {
    flex_link_fn store;
    flex_link_fn finish; /* stores, too */
    /* NULL: not among them. */
    flex_link_fn unary[FLEX_N_UNARY];
    flex_link_fn binary[FLEX_N_BINARY][FLEX_N_LINK_FORMS];
    /* Runs all whole blocks of n elements and returns how many elements these are; the rest is the
     * caller's. Of the first link only `data` counts, the last is `finish`. */
    uint64_t (*run)(const flex_link *links, uint64_t n);
};

extern const flex_strand_table flex_strand_table_baseline;
extern const flex_strand_table flex_strand_table_avx2;
extern const flex_strand_table flex_strand_table_avx512;

#endif /* BURN_PLUGINS_FLEX_STRAND_H */
