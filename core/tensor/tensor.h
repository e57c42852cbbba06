/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tensor.h - handles, storages, causes, tape nodes and the per-thread state that owns them.
 *
 * A handle is a view (dtype, dims, strides, offset) of a storage; many handles may share one. A
 * storage may have no memory yet. Counts: a handle counts its users, its scope slot, tape nodes and
 * live calls together; a storage counts handles in the low half of `refs` and pending records in
 * the high half, so that "somebody can still read it" and "somebody still runs on it" are told
 * apart. Handles, storages and nodes come from free lists of the thread; nothing is zeroed that is
 * not read. What runs work (devices, streams, pools) lives above and is reached through the hooks.
 */
#ifndef BURN_CORE_TENSOR_TENSOR_H
#define BURN_CORE_TENSOR_TENSOR_H

#include <burn/call.h>
#include <burn/grad.h>
#include <burn/op_def.h>
#include <burn/tensor.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

struct burni_device;
struct burni_stream;
struct burni_block;
struct burni_fault;
struct burni_op;

struct burn_device {
    struct burni_device *core;
    uint32_t autodiff;
};

/* The first cause of a failure, shared by everything that depends on it. */
typedef struct burni_cause {
    _Atomic uint32_t refs; /* UINT32_MAX: immortal */
    int32_t code;
    uint64_t op;
    char text[232];
} burni_cause;

burni_cause *burni_cause_new(const burn_err *err);
burni_cause *burni_cause_ref(burni_cause *cause);
void burni_cause_unref(burni_cause *cause);
void burni_cause_write(const burni_cause *cause, burn_err *err);
/* What a tensor carries when not even a cause could be allocated. */
extern burni_cause burni_cause_no_memory;
/* What a storage carries that was made in a dry run (exec/dry.h). */
extern burni_cause burni_cause_dry;

/* "Has memory" (block or host address) and "ready" are different things. */
enum {
    BURNI_NONE = 0,      /* not launched */
    BURNI_PENDING = 1,   /* a record of `writer` will write it */
    BURNI_SUBMITTED = 2, /* launched: written when `writer`'s queue reaches `write_point` */
    BURNI_FAILED = 3,    /* `cause` */
    BURNI_UNRUN = 4      /* `unrun` makes it when it is asked for (exec/unrun.h) */
};

/* References of the failed handle that stands in when memory is short. */
#define BURNI_IMMORTAL (1u << 30)

#define BURNI_RECORD_REF (UINT64_C(1) << 32)
#define BURNI_HANDLES(refs) ((uint32_t)(refs))

typedef struct burni_storage {
    _Atomic uint64_t refs;
    _Atomic int32_t state;
    _Atomic uint32_t is_var; /* the current storage of a variable */
    struct burni_device *device;
    struct burni_stream *_Atomic writer; /* set before the state, read at any time */
    _Atomic uint64_t write_point;
    void *host; /* address of byte 0, NULL: none or no memory yet */
    burn_buffer *buffer;
    uint64_t buffer_offset;
    struct burni_block *block;
    uint64_t bytes;
    burni_cause *cause;
    struct burni_fault *fault; /* faults that may still surface, NULL: none */
    struct burn_var *var;      /* whose storage it is, where `is_var` says so */
    struct burni_unrun *unrun; /* in state BURNI_UNRUN, else NULL */
    struct burni_link *_Atomic left; /* of a variable: what reads it when it runs (exec/unrun.h) */
    _Atomic uint32_t foreign;  /* another stream used it: reuse needs a device-wide snapshot */
    _Atomic uint32_t readers;  /* of a variable: launches that have bound its memory (guard.h) */
    _Atomic uint32_t writes;   /* records that will write it; a variable may have several */
    uint32_t serial;           /* tells it from earlier ones at its address */
    uint32_t slot;             /* in the sequence of `home`, if that agrees (exec/sequence.h) */
    const struct burni_thread *home; /* that made it; not more than a number elsewhere */
    struct burni_storage *next; /* free list */
} burni_storage;

typedef struct burni_node burni_node;

enum {
    BURNI_CONTIGUOUS = 1, /* dense and row-major */
    BURNI_MOVED = 2,      /* burn_move: the next call consumes it */
    BURNI_RECIPE = 4      /* `recipe` says how it is made again: the tape need not keep it */
};

struct burn_tensor {
    _Atomic uint32_t refs;
    uint32_t scope_slot; /* 1 + index in the thread's scope stack, 0 = none */
    uint8_t kind;        /* BURN_TENSOR or BURN_IMMEDIATE */
    uint8_t dtype;
    uint8_t rank;
    uint8_t flags;
    uint32_t out_index; /* which output of `node` */
    burn_device *device;
    burni_storage *storage;
    int64_t offset; /* elements */
    int64_t numel;
    burni_node *node;   /* NULL: not tracked */
    burni_cause *cause; /* not NULL: failed at the call */
    int64_t dims[BURN_MAX_RANK];
    union {
        int64_t strides[BURN_MAX_RANK];
        uint64_t immediate[2]; /* kind BURN_IMMEDIATE: the bits, in `dtype` */
        burn_tensor *next;     /* free list */
    };
    struct burni_recipe *recipe; /* where BURNI_RECIPE is set (recipe.h) */
};

/* ---- tape ------------------------------------------------------------------------------- */

typedef struct burni_edge {
    burni_node *node; /* NULL: this input is not tracked */
    uint32_t out_index;
    uint32_t zero;
} burni_edge;

/* One recorded op, or a leaf (op NULL). Followed in memory by edges, saved values, metas, attrs. */
struct burni_node {
    _Atomic uint32_t refs;
    uint32_t depth; /* 1 + the deepest input; a leaf has 0 */
    const struct burni_op *op;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t attrs_size;
    uint32_t size_class;
    _Atomic uint32_t used; /* passes inside, and whether one uses it up (grad/backward.c) */
    uint32_t zero;
    uint64_t leaf_id;
    uint64_t tag; /* of the call; its gradient has the same */
    burni_edge *edges;      /* n_in */
    burn_tensor **saved_in; /* n_in */
    burn_tensor **saved_out;
    burn_meta *in_meta;  /* n_in */
    burn_meta *out_meta; /* n_out */
    void *attrs;
    burni_node *next; /* work list of the release */
};

/* A node with room for those counts; NULL when memory is short. refs is 1. */
burni_node *burni_node_new(const struct burni_op *op, uint32_t n_in, uint32_t n_out,
                           uint32_t attrs_size);
/* The same in parts, for who knows the counts when it is compiled: so much memory, NULL when it is
 * short, and what it holds before anything is recorded. */
burni_node *burni_node_memory(size_t size);
static inline size_t burni_node_size(uint32_t n_in, uint32_t n_out, uint32_t attrs_size)
{
    return sizeof(burni_node) + n_in * (sizeof(burni_edge) + sizeof(burn_tensor *)) +
           n_out * sizeof(burn_tensor *) + ((size_t)n_in + n_out) * sizeof(burn_meta) +
           attrs_size + 8;
}
static inline void burni_node_begin(burni_node *node, const struct burni_op *op, uint32_t n_in,
                                    uint32_t n_out, uint32_t attrs_size)
{
    atomic_store_explicit(&node->refs, 1, memory_order_relaxed);
    atomic_store_explicit(&node->used, 0, memory_order_relaxed);
    node->depth = 0;
    node->op = op;
    node->n_in = n_in;
    node->n_out = n_out;
    node->attrs_size = attrs_size;
    node->leaf_id = 0;
    char *p = (char *)(node + 1);
    node->edges = (burni_edge *)(void *)p;
    p += n_in * sizeof(burni_edge);
    node->saved_in = (burn_tensor **)(void *)p;
    p += n_in * sizeof(burn_tensor *);
    node->saved_out = (burn_tensor **)(void *)p;
    p += n_out * sizeof(burn_tensor *);
    node->in_meta = (burn_meta *)(void *)p;
    p += n_in * sizeof(burn_meta);
    node->out_meta = (burn_meta *)(void *)p;
    p += n_out * sizeof(burn_meta);
    node->attrs = attrs_size > 0 ? p : NULL;
    for (uint32_t i = 0; i < n_in; i++) {
        node->edges[i].node = NULL;
        node->saved_in[i] = NULL;
    }
    for (uint32_t j = 0; j < n_out; j++) {
        node->saved_out[j] = NULL;
    }
}
burni_node *burni_node_ref(burni_node *node);
/* Releases without recursion, however long the chain. */
void burni_node_unref(burni_node *node);
/* Drops saved values only. */
void burni_node_drop_saved(burni_node *node);

/* ---- per thread --------------------------------------------------------------------------- */

#define BURNI_MAX_DEVICES 64
#define BURNI_MAX_TAGS 64
#define BURNI_MAX_MATHS 15

/* Why calls of a thread are looked at. */
enum {
    BURNI_WATCH_DECOMPOSE = 1, /* decompositions are taken where there are rows (tests) */
    BURNI_WATCH_DISPATCH = 2,  /* exec/explain.h */
    BURNI_WATCH_NAN = 4,       /* exec/check.h */
    BURNI_WATCH_COMPARE = 8,
    BURNI_WATCH_RECOMPUTE = 16 /* within burn_recompute_begin and _end: results get recipes */
};
/* What threads that start later watch. */
extern _Atomic uint32_t burni_watch_all;

typedef struct burni_thread {
    burn_tensor *free_handles;
    burni_storage *free_storages;
    burni_node *free_nodes;
    burn_tensor **scope_items;
    uint32_t n_items;
    uint32_t stop_items; /* at so many the next one takes the long way; at most cap_items */
    uint32_t cap_items;
    uint32_t *scope_marks;
    uint32_t n_marks;
    uint32_t cap_marks;
    uint32_t lost_marks; /* scopes that could not be opened; they end without effect */
    struct burni_stream *holding; /* the stream whose lock this thread has, NULL: none */
    struct burni_stream *direct;  /* the stream that a record's decomposition runs in, or NULL */
    uint32_t no_grad;
    uint32_t depth; /* > 0: inside a decomposition or vjp; captures see depth 0 only */
    uint32_t nested;      /* decompositions inside each other */
    uint32_t recompute;   /* burn_recompute_begin without its end */
    uint32_t remaking;    /* what is called makes values again that were not kept */
    struct burni_origin *origin; /* the call that the outermost of them belongs to, or NULL */
    burni_cause *endless; /* they were too many: what is emitted fails until the outermost ends */
    uint32_t watch; /* BURNI_WATCH_*; not 0: pointwise ops take the long way, where it is looked */
    uint32_t math;  /* BURN_MATH_*, for calls from here on */
    uint32_t n_tags;
    uint64_t tag; /* where calls come from (base/tag.h), 0: nowhere in particular */
    uint64_t tags[BURNI_MAX_TAGS]; /* what to return to; deeper ones are counted only */
    uint32_t maths[BURNI_MAX_MATHS];
    uint32_t n_maths;
    uint64_t rng_seed;
    uint64_t rng_counter;
    struct burni_capture *capture;
    struct burn_replay *recording; /* of the step that is being kept (exec/recording.h), or NULL */
    struct burni_frame *frame; /* what calls belong to, when they are watched (exec/emit.h) */
    struct burni_stream *streams[BURNI_MAX_DEVICES];
    uint64_t open_sequences; /* bit i: streams[i] has seen calls since its last cut */
    uint32_t storage_serial; /* of the last storage made */
    uint32_t zero;
    struct burni_lane *places; /* where times of its tags go (exec/profile.h), or NULL */
} burni_thread;

extern _Thread_local burni_thread *burni_thread_current
    __attribute__((tls_model("initial-exec")));
/* Makes the thread's state; NULL when memory is short. */
burni_thread *burni_thread_make(void);

static inline burni_thread *burni_thread_get(void)
{
    burni_thread *t = burni_thread_current;
    return __builtin_expect(t != NULL, 1) ? t : burni_thread_make();
}

/* ---- hooks of the layers above -------------------------------------------------------------- */

typedef struct burni_hooks {
    void (*storage_dead)(burni_storage *storage); /* gives its memory back */
    void (*thread_exit)(burni_thread *thread);    /* flushes and returns streams */
    void (*scopes_ended)(burni_thread *thread);   /* the outermost scope's temporaries are gone */
    void (*wanted)(burni_storage *storage);       /* kept, while its value has not been made */
} burni_hooks;
extern burni_hooks burni_hooks_table;

/* As burn_scope_end_with, for a scope within one call: it is not where a sequence of calls ends,
 * also when the caller has no scope open. */
void burni_scope_end_inside(burn_tensor *const *results, uint32_t n);

/* ---- handles and storages ---------------------------------------------------------------- */

/* A handle with refs 1, in the innermost scope (`scoped`) or in none. NULL: no memory. Fields other
 * than refs, scope_slot, node, cause, flags and device are the caller's to fill. */
burn_tensor *burni_handle_new(burni_thread *thread, int scoped);
/* The same for a result, on a storage of its own; NULL: no memory, and nothing is left. */
burn_tensor *burni_result_new(burni_thread *thread, burn_device *device,
                              struct burni_device *core, uint64_t bytes);
/* A failed handle; never NULL (an immortal one when memory is short). Takes over no reference. */
burn_tensor *burni_handle_failed(burni_thread *thread, burni_cause *cause);
burn_tensor *burni_handle_fail(burni_thread *thread, int32_t code, uint64_t op,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Another handle on the same storage, no history. */
burn_tensor *burni_handle_alias(burni_thread *thread, const burn_tensor *of, int scoped);
void burni_handle_free(burn_tensor *t);
void burni_scope_remove(burni_thread *thread, burn_tensor *t);

static inline burn_tensor *burni_handle_ref(burn_tensor *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

static inline void burni_handle_unref(burn_tensor *t)
{
    if (t == NULL) {
        return;
    }
    if (atomic_load_explicit(&t->refs, memory_order_acquire) == 1 ||
        atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1) {
        burni_handle_free(t);
    }
}

/* A storage with one handle reference and no memory. NULL: no memory for it. */
burni_storage *burni_storage_new(burni_thread *thread, struct burni_device *device,
                                 uint64_t bytes);
void burni_storage_free(burni_storage *storage);

static inline void burni_storage_ref(burni_storage *s, uint64_t kind)
{
    atomic_fetch_add_explicit(&s->refs, kind, memory_order_relaxed);
}

static inline void burni_storage_unref(burni_storage *s, uint64_t kind)
{
    if (atomic_load_explicit(&s->refs, memory_order_acquire) == kind ||
        atomic_fetch_sub_explicit(&s->refs, kind, memory_order_acq_rel) == kind) {
        burni_storage_free(s);
    }
}

static inline void burni_handle_meta(const burn_tensor *t, burn_meta *meta)
{
    meta->flags = 0;
    meta->kind = t->kind;
    meta->dtype = t->dtype;
    meta->rank = t->rank;
    meta->zero = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        meta->dims[i] = t->dims[i];
    }
}

/* Kind, dtype, rank and flags of a handle, as one number. */
static inline uint32_t burni_handle_head(const burn_tensor *t)
{
    uint32_t head;
    _Static_assert(offsetof(burn_tensor, flags) == offsetof(burn_tensor, kind) + 3, "one word");
    memcpy(&head, &t->kind, sizeof(head));
    return head;
}

static inline void burni_handle_set_head(burn_tensor *t, uint32_t head)
{
    memcpy(&t->kind, &head, sizeof(head));
}

/* Fills dense strides, numel and the contiguous flag from dtype, rank and dims. */
void burni_handle_dense(burn_tensor *t);
/* 1 when dims and strides describe a dense row-major block. */
int burni_is_dense(uint32_t rank, const int64_t *dims, const int64_t *strides);

#endif /* BURN_CORE_TENSOR_TENSOR_H */
