/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * explain.h - which kernel each op got, what was copied or decomposed, and why not otherwise.
 *
 * The table exists when the process was started with BURN_LOG=dispatch (lines in the log, totals at
 * the end) or with BURN_EXPLAIN=<absolute folder>: then it is the file <folder>/<pid>.burn, mapped,
 * so that it also survives a crash; `burn explain -- PROGRAM` reads it. The file is a head, then
 * `capacity` entries of `entry_size` bytes, of which `n_entries` are used. Texts end with 0. Calls
 * are counted under one entry when op, dtypes, layouts, ranks, sizes (to a factor of 4) and the
 * answer are the same.
 */
#ifndef BURN_EXPLAIN_H
#define BURN_EXPLAIN_H

#include <burn/base.h>

BURN_BEGIN_DECLS

#define BURN_EXPLAIN_MAGIC UINT64_C(0x31302d6c70786e42) /* "Bnxpl-01" */

/* What became of a call. */
enum {
    BURN_EXPLAIN_ROW = 1,        /* a kernel: `served` is its name */
    BURN_EXPLAIN_DECOMPOSED = 2, /* other ops: `served` are their names */
    BURN_EXPLAIN_VIEW = 3,       /* no work */
    BURN_EXPLAIN_FAILED = 4,     /* an error at the call: `why` */
    /* Calls that waited and ran as one: `operands` are their names, `served` is the kernel; or they
     * ran one by one although they fit each other, `served` is "" and `why` says it. These calls
     * were counted before, each as its own. */
    BURN_EXPLAIN_FUSED = 5
};

typedef struct burn_explain_entry {
    uint64_t calls;
    uint64_t copies;     /* operands that were made dense first, because of their layout */
    uint64_t copy_bytes; /* bytes of those copies */
    uint32_t kind;       /* BURN_EXPLAIN_* */
    uint32_t zero;
    char op[48];
    char within[64];    /* "softmax", "gradient of mul", "layout copy for sum", "" */
    char operands[224]; /* as they were in the first call: "f32[2,3] contiguous, f32 scalar" */
    char served[144];
    char why[352]; /* why rows of higher priority were refused, or the decomposition was taken */
    char tag[112]; /* where the first call came from */
    char reserved[48];
} burn_explain_entry;

typedef struct burn_explain_head {
    uint64_t magic;
    uint32_t entry_size;
    uint32_t capacity;
    uint32_t n_entries;
    uint32_t pid;
    uint64_t calls;
    uint64_t rows;
    uint64_t decomposed;
    uint64_t views;
    uint64_t failed;
    uint64_t copies; /* of all entries, and of reads and views that needed one */
    uint64_t copy_bytes;
    uint64_t lost; /* calls that found no room in the table */
    uint64_t reserved[4];
} burn_explain_head;

/* The process's table, the entries behind it; NULL when nothing is collected. It may change while
 * it is read, when other threads call ops. [any] */
BURN_API const burn_explain_head *burn_explain_table(void);

/* Entry i of a table, or NULL. */
static inline const burn_explain_entry *burn_explain_at(const burn_explain_head *head, uint32_t i)
{
    const char *base = (const char *)(head + 1);
    return i < head->n_entries
               ? (const burn_explain_entry *)(const void *)(base + (size_t)i * head->entry_size)
               : NULL;
}

BURN_END_DECLS

#endif /* BURN_EXPLAIN_H */
