/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused.h - a program of `burn.fused` (burn/fused.h) as flex runs it.
 *
 * fused_compile.c turns a program into values and steps: a value is what an operand or a result is
 * in a tile, with its buffer; a step is one vector loop over them, the very loop of the single op.
 * Steps of f32 that take each other's results are also made into strands (fused_strand.c).
 * Halves have two values, the stored one and the f32 that loops take, and steps between them, so
 * every result is rounded as the single op rounds it. fused_run.c runs the steps tile by tile,
 * fused.c holds the rows. A compiled program is constant and serves every shape; runs keep all that
 * changes on their stacks. To add a kind of op: its function in fused_compile.c.
 */
#ifndef BURN_PLUGINS_FLEX_FUSED_H
#define BURN_PLUGINS_FLEX_FUSED_H

#include "flex.h"
#include "fused_lines.h"
#include "kernels.h"
#include "random.h"
#include "reduce.h"
#include "strand.h"

#include <burn/fused.h>

/* Programs that need more are refused; the core then runs their ops one by one. */
enum {
    FLEX_FUSED_VALUES = 320,
    FLEX_FUSED_STEPS = 384,
    FLEX_FUSED_ROW_SLOTS = 64,
    FLEX_FUSED_FOLDS = 8,
    FLEX_FUSED_COLUMNS = 4,
    FLEX_FUSED_PASSES = 8
};

/* Elements of the longest tile, which is one run of a reduction; rows of one tile; bytes of all
 * buffers of a task, and how many they should be, so that operands find room in the cache too. */
enum {
    FLEX_FUSED_TILE = FLEX_REDUCE_RUN,
    FLEX_FUSED_LEAST_TILE = 256,
    FLEX_FUSED_MOST_TILE = 1024, /* where it need not hold whole rows */
    FLEX_FUSED_ROWS = 128,
    FLEX_FUSED_BYTES = 256 << 10,
    FLEX_FUSED_CACHE = 24 << 10
};

#define FLEX_FUSED_NO_SLOT UINT16_MAX

/* Operands of a call, and behind them the result of the product that a program may begin with. */
#define FLEX_FUSED_OPERANDS (BURN_MAX_OPERANDS + 1)

typedef struct flex_fused flex_fused;
typedef struct flex_fused_step flex_fused_step;
typedef struct flex_fused_tile flex_fused_tile;

/* Where a value lies: in an operand that is dense, or in a buffer. */
typedef struct flex_fused_value {
    uint8_t dtype;
    uint8_t size;
    uint8_t space;    /* BURN_FUSED_* */
    uint8_t in_place; /* 1: in operand `slot`; else in buffer `slot` */
    uint16_t slot;
    uint8_t inner;    /* 1: only the steps of its strand see it */
    uint8_t zero;
} flex_fused_value;

/* Which values lie where, apart from results that are made in place. */
typedef struct flex_fused_place {
    uint16_t value;
    uint16_t slot;
    uint8_t by_row; /* in an operand: its pointer moves with rows, not positions */
    uint8_t zero[3];
} flex_fused_place;

/* The groups of places, one behind the other. */
enum {
    FLEX_FUSED_IN_OPERANDS,
    FLEX_FUSED_IN_SCALARS, /* operands that are one value */
    FLEX_FUSED_IN_ONES,
    FLEX_FUSED_IN_TILES,
    FLEX_FUSED_IN_ROWS,
    FLEX_FUSED_IN_STRANDS, /* FULL values that only their strand sees */
    FLEX_FUSED_N_GROUPS
};

/* Does a step for the tile; 0: an element has no answer. */
typedef int (*flex_fused_exec)(const flex_fused_step *step, flex_fused_tile *tile);
/* The vector loop behind a map. Bit i of `mode`: argument i is one value. */
typedef uint64_t (*flex_fused_loop)(const flex_fused_step *step, void *out, const void *const *in,
                                    uint64_t n, uint32_t mode);

struct flex_fused_step {
    flex_fused_exec exec;
    flex_fused_loop loop;
    union {
        flex_unary_fn unary;
        flex_binary_fn binary;
        flex_where_fn where;
        flex_convert_fn convert;
        const flex_random_kind *random;
        const flex_line_op *line;
    } fn;
    uint16_t out; /* value; of a store: which output */
    /* Of a generator: the tensor or nothing, seed, counter; over lines: full ones, then lines. */
    uint16_t in[3];
    uint8_t n_in;
    uint8_t space;    /* of what it works over */
    uint8_t mode;     /* arguments that are ONE */
    uint8_t row_mask; /* arguments that are ROW where the step is FULL */
    uint8_t reuse;    /* 1: the result may take an argument's buffer */
    uint8_t level;    /* ROW: the pass before which it can be done */
    uint16_t index;   /* load: operand; fold: which fold; generator: value of the probability;
                       * strand: which; over lines: bit i: operand i is there */
    uint16_t attrs;   /* over lines: where they are in the program */
    uint32_t passes;  /* FULL: bit k: pass k needs it */
};

typedef struct flex_fused_fold {
    flex_reducer how;
    flex_fold_fn fold;
    flex_fold_fn first; /* of reductions that look twice, else NULL */
    uint16_t out;
    uint16_t x;     /* what it reduces */
    uint8_t level;  /* the pass that feeds it */
    uint8_t keeps;  /* 1: a mean that leaves its sums in the tile, for a variance of the same */
    uint8_t shares; /* 1: the variance that begins with them */
    uint8_t zero;
} flex_fused_fold;

/* A reduction over the rows (fused_columns.h). */
typedef struct flex_fused_column {
    uint16_t value; /* its result's, which lies nowhere but in the output */
    uint16_t out;   /* which output */
    uint8_t kind;   /* FLEX_R_* */
    uint8_t zero[3];
} flex_fused_column;

/* A link of a strand (strand.h), with the value that it needs. */
typedef struct flex_fused_link {
    flex_link_fn run;
    uint16_t value;
    uint16_t zero[3];
} flex_fused_link;

/* Steps that are run together, block by block. */
typedef struct flex_fused_strand {
    uint16_t step; /* the first */
    uint16_t n_steps;
    uint16_t link; /* the first */
    uint16_t n_links;
} flex_fused_strand;

typedef struct flex_fused_out {
    uint16_t value;
    uint16_t def;       /* the step that makes it; FLEX_FUSED_STEPS: none, it is copied */
    uint8_t space;
    uint8_t apart; /* 1: the step that makes it reads its operands again afterwards */
    uint8_t zero[2];
} flex_fused_out;

struct flex_fused {
    uint16_t n_in;
    uint16_t n_out;
    uint16_t n_values;
    uint16_t n_steps;
    uint16_t n_ones; /* steps over ONE values, done once per launch: the first of `steps` */
    uint16_t n_walk;
    uint16_t n_strands;
    uint16_t n_folds;
    uint16_t n_columns;
    uint16_t n_slots;
    uint16_t n_row_slots;
    uint16_t n_one_slots;
    uint16_t n_passes;  /* over rows that are longer than a tile */
    uint16_t n_levels;
    uint16_t row_input; /* or BURN_FUSED_NONE */
    uint16_t full;      /* an operand that has all positions */
    uint16_t cut;       /* an operand whose runs tiles should not cross, or BURN_FUSED_NONE */
    uint8_t slot_size;  /* bytes of the largest element in a buffer */
    uint8_t looks_twice;
    uint8_t has_lines;  /* tiles are whole rows, however long */
    uint8_t stops;      /* a step may have no answer */
    uint8_t scratch;    /* the product lies in the workspace */
    uint8_t has_rows;   /* rows must be whole: there is a value per row, or lines */
    uint32_t in_place_mask;
    uint32_t grain;
    uint32_t tile; /* elements of one that need not hold whole rows */
    uint16_t group_end[FLEX_FUSED_N_GROUPS]; /* of `places` */
    uint8_t size[FLEX_FUSED_OPERANDS];       /* bytes of an element of each operand */
    const flex_fused_value *values;
    const flex_fused_step *steps;
    const flex_fused_step *walk; /* the others, with one in place of those of each strand */
    const flex_fused_strand *strands;
    const flex_fused_link *links;
    const flex_fused_fold *folds;
    const flex_fused_out *outs;
    const flex_fused_place *places;
    const uint16_t *last_use; /* of each operand: the last step that reads its memory; 0: none */
    const burn_row *product;  /* the row of the product that it begins with, or NULL */
    uint64_t product_bytes;   /* of the workspace: the product's part, which is the first */
    uint16_t made;            /* the value that the product is */
    uint8_t hot;              /* the rest of the program follows it piece by piece */
    uint8_t passes_on;        /* and it never lies anywhere as a whole */
    uint64_t workspace_bytes;
    flex_fused_column columns[FLEX_FUSED_COLUMNS];
};

/* Compiles the program of a call for its dtypes, layouts and ranks; one that begins with a product
 * for its dims, too. NULL with the reason in
 * call->err. To be given to flex_fused_free. [any] */
const flex_fused *flex_fused_compile(const burn_call *call);
void flex_fused_free(const flex_fused *program);

/* Runs one. BURN_E_UNSUPPORTED before anything was written; BURN_E_DATA without a position. */
int32_t flex_fused_run(const flex_fused *program, const burn_call *call);

/* Where the result of the product is, seen as an operand. */
static inline uint32_t flex_fused_extra(const flex_fused *f)
{
    return (uint32_t)f->n_in + f->n_out;
}

/* What steps are made of (fused_run.c). */
int flex_fused_map(const flex_fused_step *step, flex_fused_tile *tile);
int flex_fused_map_rows(const flex_fused_step *step, flex_fused_tile *tile);
int flex_fused_generate(const flex_fused_step *step, flex_fused_tile *tile);
int flex_fused_load(const flex_fused_step *step, flex_fused_tile *tile);
int flex_fused_store(const flex_fused_step *step, flex_fused_tile *tile);
int flex_fused_reduce(const flex_fused_step *step, flex_fused_tile *tile);
int flex_fused_lines(const flex_fused_step *step, flex_fused_tile *tile);
int flex_fused_reduce_columns(const flex_fused_step *step, flex_fused_tile *tile);
int flex_fused_run_strand(const flex_fused_step *step, flex_fused_tile *tile);

/* Fills `walk`, which has room for the steps that are not over ONE values, `strands`, for half as
 * many, and `links`, for three times as many; marks inner values (fused_strand.c). */
void flex_fused_find_strands(flex_fused *f, flex_fused_step *walk, flex_fused_strand *strands,
                             flex_fused_link *links, flex_fused_value *values);

#endif /* BURN_PLUGINS_FLEX_FUSED_H */
