/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pool.h - device memory: blocks cut from pages of the backend, kept per stream.
 *
 * Bookkeeping is outside the memory (which may be opaque). A block freed on the stream that owns it
 * is reused at once, in queue order; one freed elsewhere, or used by several streams, waits in the
 * device's shared list until every stream has passed what it had submitted by then. Sizes come in
 * four steps per power of two, so at most a quarter is wasted. Blocks above BURNI_MEDIUM_BLOCK are
 * pages of their own; smaller ones share pages, which are as large as a huge page of a CPU, since a
 * matrix in small pages costs a product a tenth. A piece is a page of its own in which somebody
 * else gives places (arena.h); a cache keeps one, as large as it was needed so far. Nothing here
 * synchronises with the device, but for trimming and for a piece that grows.
 */
#ifndef BURN_CORE_MEMORY_POOL_H
#define BURN_CORE_MEMORY_POOL_H

#include <burn/backend.h>
#include <burn/device.h>
#include <pthread.h>
#include <stdatomic.h>

#define BURNI_N_CLASSES    160
#define BURNI_SMALL_BLOCK  (256u * 1024u)
#define BURNI_MEDIUM_BLOCK (1024u * 1024u)
#define BURNI_PAGE         (2u * 1024u * 1024u)
#define BURNI_PLACE        UINT32_MAX       /* class of a part of a piece: nobody's to give back */
#define BURNI_DRY          (UINT32_MAX - 1) /* class of a block without memory, in a dry run */

typedef struct burni_page {
    burn_buffer *buffer;
    char *host; /* NULL when the host cannot reach it */
    uint64_t bytes;
    uint64_t used;   /* bytes handed out so far, for pages that are cut */
    uint32_t blocks; /* cut so far */
    uint32_t idle;   /* while trimming: how many of them lie in free lists */
    uint32_t open;   /* a cache still cuts from it */
    uint32_t zero;
    struct burni_page *next;
} burni_page;

typedef struct burni_block {
    burni_page *page;
    uint64_t offset;
    uint64_t bytes;
    uint32_t klass;
    uint32_t shared; /* a place that an input and an output have */
    uint64_t ready;  /* in the shared list: index of the snapshot that must pass; of a piece in use:
                        bytes of it that are needed; without memory: bytes of its value */
    struct burni_cache *owner; /* whose counters hold it while it is in use */
    union {
        struct burni_block *next;
        uint64_t serial; /* without memory: of which dry run */
    };
} burni_block;

/* What would be in use, of a cache whose blocks have no memory. */
typedef struct burni_dry_memory {
    _Atomic int64_t taken; /* bytes of blocks */
    _Atomic int64_t live;  /* bytes of values */
    int64_t peak_taken;
    int64_t peak_live;
    uint64_t serial; /* which dry run */
} burni_dry_memory;

/* A stream's own free blocks and counters; written by its thread (or under its lock) only, but for
 * `given_back`: bytes of this cache that were freed elsewhere. In use is in_use - given_back. */
typedef struct burni_cache {
    burni_block *free[BURNI_N_CLASSES];
    burni_page *open_pages[2]; /* the pages that small and medium blocks are cut from */
    burni_block *piece;        /* the one that nobody uses now */
    burni_block *workspace;    /* of the next launch, where it has a place in a piece */
    burni_dry_memory *dry;     /* blocks are counted here and have no memory; NULL: they have */
    _Atomic int64_t in_use;
    _Atomic int64_t peak;
    _Atomic int64_t given_back;
} burni_cache;

typedef struct burni_pool {
    const burn_device_api *api;
    const char *backend; /* its name, for errors */
    burn_backend_device *device;
    burn_limits limits;
    pthread_mutex_t lock; /* pages and shared lists */
    burni_page *pages;
    burni_block *shared[BURNI_N_CLASSES];
    _Atomic uint64_t reserved;
    _Atomic uint64_t peak_reserved;
    _Atomic uint64_t n_allocations;
    _Atomic uint64_t limit;
    uint32_t n_pages;
    uint32_t zero;
    /* Says whether every stream has passed what snapshot `ready` recorded. */
    int (*passed)(void *user, uint64_t ready);
    /* Waits for the queue of the stream that owns the cache, so that its free blocks are idle. */
    void (*quiesce)(void *user, burni_cache *cache);
    void *user;
} burni_pool;

int32_t burni_pool_init(burni_pool *pool, const burn_device_api *api, burn_backend_device *device,
                        const burn_limits *limits);
/* A block of at least `bytes`. NULL and an error when the device has no more. [queue] */
burni_block *burni_pool_take(burni_pool *pool, burni_cache *cache, uint64_t bytes, burn_err *err);
/* Gives a block back to the list that it was taken through. [queue] */
void burni_pool_give(burni_cache *cache, burni_block *block);
/* A number for a dry run. [any] */
uint64_t burni_pool_dry_serial(void);
/* A block of class BURNI_PLACE or BURNI_DRY is used no more. [any] */
void burni_pool_forget(burni_block *block);
/* Gives a block to the shared list, to be reused when snapshot `ready` has passed. [any] */
void burni_pool_give_shared(burni_pool *pool, burni_block *block, uint64_t ready);
/* A page of its own with room for `bytes`, of which only these count as in use; at most `live` of
 * them hold values at once. NULL when the device has no more. [queue] */
burni_block *burni_pool_take_piece(burni_pool *pool, burni_cache *cache, uint64_t bytes,
                                   uint64_t live);
void burni_pool_give_piece(burni_pool *pool, burni_cache *cache, burni_block *piece);
/* Returns pages of which nothing is in use and no cache holds a block to the backend. */
void burni_pool_trim(burni_pool *pool, burni_cache *cache);
uint64_t burni_pool_class_bytes(uint32_t klass);
uint32_t burni_pool_class_of(uint64_t bytes);

#endif /* BURN_CORE_MEMORY_POOL_H */
