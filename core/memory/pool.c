/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pool.c - blocks and pages. See pool.h for the rules.
 */
#include "memory/pool.h"

#include "base/alloc.h"
#include "base/error.h"
#include "loader/ask.h"

#include <string.h>

/* Class c holds blocks of (4 + c % 4) << (4 + c / 4) bytes: 64, 80, 96, 112, 128, 160, ... */
uint64_t burni_pool_class_bytes(uint32_t klass)
{
    return (uint64_t)(4 + klass % 4) << (4 + klass / 4);
}

uint32_t burni_pool_class_of(uint64_t bytes)
{
    if (bytes <= 64) {
        return 0;
    }
    uint32_t log = 63u - (uint32_t)__builtin_clzll(bytes - 1);
    uint64_t quarter = UINT64_C(1) << (log - 2);
    uint32_t step = (uint32_t)((bytes - (UINT64_C(1) << log) + quarter - 1) >> (log - 2));
    return (log - 6) * 4 + step;
}

int32_t burni_pool_init(burni_pool *pool, const burn_device_api *api, burn_backend_device *device,
                        const burn_limits *limits)
{
    pool->api = api;
    pool->device = device;
    pool->limits = *limits;
    return pthread_mutex_init(&pool->lock, NULL) == 0 ? BURN_OK : BURN_E_NO_MEMORY;
}

/* ---- pages --------------------------------------------------------------------------------- */

static int reserve(burni_pool *pool, uint64_t bytes)
{
    uint64_t limit = atomic_load(&pool->limit);
    uint64_t now = atomic_fetch_add(&pool->reserved, bytes) + bytes;
    if (limit != 0 && now > limit) {
        atomic_fetch_sub(&pool->reserved, bytes);
        return 0;
    }
    uint64_t peak = atomic_load(&pool->peak_reserved);
    while (now > peak && !atomic_compare_exchange_weak(&pool->peak_reserved, &peak, now)) {
    }
    return 1;
}

/* A page in the list, not yet cut. `open`: a cache will go on cutting from it. */
static int32_t ask_backend(burni_pool *pool, uint64_t bytes, burni_page *page, burn_err *err)
{
    void *host = NULL;
    int32_t rc = burni_ask_alloc(pool->api, pool->device, bytes, pool->backend, &page->buffer,
                                 &host, err);
    if (rc == BURN_OK && (pool->limits.flags & BURN_LIMIT_HOST_MEMORY) != 0 && host == NULL) {
        pool->api->free(pool->device, page->buffer);
        rc = burni_fail(err, BURN_E_INTERNAL,
                        "%s: alloc of %llu bytes succeeded but gave no host address",
                        pool->backend, (unsigned long long)bytes);
    }
    page->host = host;
    return rc;
}

static burni_page *page_new(burni_pool *pool, uint64_t bytes, uint32_t open, burn_err *err)
{
    if (!reserve(pool, bytes)) {
        (void)burni_fail(err, BURN_E_NO_MEMORY,
                         "out of device memory: %llu more bytes would exceed the limit of %llu",
                         (unsigned long long)bytes, (unsigned long long)atomic_load(&pool->limit));
        return NULL;
    }
    burni_page *page = burni_calloc(1, sizeof(*page));
    int32_t rc = page == NULL ? burni_fail(err, BURN_E_NO_MEMORY, "out of host memory")
                              : ask_backend(pool, bytes, page, err);
    if (rc != BURN_OK) {
        atomic_fetch_sub(&pool->reserved, bytes);
        burni_free(page);
        return NULL;
    }
    page->bytes = bytes;
    page->open = open;
    atomic_fetch_add(&pool->n_allocations, 1);
    (void)pthread_mutex_lock(&pool->lock);
    page->next = pool->pages;
    pool->pages = page;
    pool->n_pages++;
    (void)pthread_mutex_unlock(&pool->lock);
    return page;
}

/* A block without memory: made first, so that a page is never left without blocks. */
static burni_block *block_new(uint32_t klass, uint64_t bytes, burn_err *err)
{
    burni_block *block = burni_calloc(1, sizeof(*block));
    if (block == NULL) {
        (void)burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
        return NULL;
    }
    block->bytes = bytes;
    block->klass = klass;
    return block;
}

/* Under the lock, since a trim by another thread looks at the page's counts. */
static void cut(burni_pool *pool, burni_page *page, burni_block *block)
{
    (void)pthread_mutex_lock(&pool->lock);
    block->page = page;
    block->offset = page->used;
    page->used += block->bytes;
    page->blocks++;
    (void)pthread_mutex_unlock(&pool->lock);
}

/* Small and medium blocks are cut from pages of their own: a few scalars would halve a page. */
static burni_page **open_page_for(burni_cache *cache, uint64_t bytes)
{
    return &cache->open_pages[bytes > BURNI_SMALL_BLOCK];
}

static burni_block *cut_block(burni_pool *pool, burni_cache *cache, uint32_t klass, burn_err *err)
{
    uint64_t align = pool->limits.suballoc_align > 64 ? pool->limits.suballoc_align : 64;
    uint64_t bytes = (burni_pool_class_bytes(klass) + align - 1) & ~(align - 1);
    burni_block *block = block_new(klass, bytes, err);
    if (block == NULL) {
        return NULL;
    }
    burni_page **open = open_page_for(cache, burni_pool_class_bytes(klass));
    burni_page *page = *open;
    if (page == NULL || page->used + bytes > page->bytes) {
        page = page_new(pool, BURNI_PAGE, 1, err);
        if (page == NULL) {
            burni_free(block);
            return NULL;
        }
        (void)pthread_mutex_lock(&pool->lock);
        if (*open != NULL) {
            (*open)->open = 0;
        }
        *open = page;
        (void)pthread_mutex_unlock(&pool->lock);
    }
    cut(pool, page, block);
    return block;
}

static burni_block *whole_page(burni_pool *pool, uint32_t klass, burn_err *err)
{
    uint64_t bytes = burni_pool_class_bytes(klass);
    burni_block *block = block_new(klass, bytes, err);
    if (block == NULL) {
        return NULL;
    }
    burni_page *page = page_new(pool, bytes, 0, err);
    if (page == NULL) {
        burni_free(block);
        return NULL;
    }
    cut(pool, page, block);
    return block;
}

/* ---- blocks --------------------------------------------------------------------------------- */

static burni_block *from_shared(burni_pool *pool, uint32_t klass)
{
    burni_block *found = NULL;
    (void)pthread_mutex_lock(&pool->lock);
    for (burni_block **link = &pool->shared[klass]; *link != NULL; link = &(*link)->next) {
        if (pool->passed(pool->user, (*link)->ready)) {
            found = *link;
            *link = found->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return found;
}

static burni_block *take_slow(burni_pool *pool, burni_cache *cache, uint32_t klass, burn_err *err)
{
    burni_block *block = from_shared(pool, klass);
    if (block != NULL) {
        return block;
    }
    int is_cut =
        burni_pool_class_bytes(klass) <= BURNI_MEDIUM_BLOCK && pool->limits.suballoc_align != 0;
    /* A first failure is no error yet, so the caller's sink stays untouched. */
    burn_err first = BURN_ERR_INIT;
    block = is_cut ? cut_block(pool, cache, klass, &first) : whole_page(pool, klass, &first);
    if (block == NULL) {
        /* Trim and try once more before the tensor fails. */
        burni_pool_trim(pool, cache);
        block = is_cut ? cut_block(pool, cache, klass, err) : whole_page(pool, klass, err);
    }
    return block;
}

static void count_in(burni_cache *cache, uint64_t bytes)
{
    int64_t now = atomic_load_explicit(&cache->in_use, memory_order_relaxed) + (int64_t)bytes;
    atomic_store_explicit(&cache->in_use, now, memory_order_relaxed);
    now -= atomic_load_explicit(&cache->given_back, memory_order_relaxed);
    if (now > atomic_load_explicit(&cache->peak, memory_order_relaxed)) {
        atomic_store_explicit(&cache->peak, now, memory_order_relaxed);
    }
}

static void count_out(burni_cache *cache, uint64_t bytes)
{
    int64_t now = atomic_load_explicit(&cache->in_use, memory_order_relaxed) - (int64_t)bytes;
    atomic_store_explicit(&cache->in_use, now, memory_order_relaxed);
}

/* ---- dry runs -------------------------------------------------------------------------------- */

static burni_page no_page; /* of all blocks without memory */
static _Atomic uint64_t n_dry_runs;

uint64_t burni_pool_dry_serial(void)
{
    return atomic_fetch_add(&n_dry_runs, 1) + 1;
}

static burni_block *take_dry(burni_cache *cache, uint64_t taken, uint64_t live)
{
    burn_err err = BURN_ERR_INIT;
    burni_dry_memory *dry = cache->dry;
    burni_block *block = block_new(BURNI_DRY, taken, &err);
    if (block == NULL) {
        return NULL;
    }
    block->page = &no_page;
    block->ready = live;
    block->offset = 0;
    block->serial = dry->serial;
    block->owner = cache;
    int64_t now = atomic_fetch_add(&dry->taken, (int64_t)taken) + (int64_t)taken;
    dry->peak_taken = now > dry->peak_taken ? now : dry->peak_taken;
    now = atomic_fetch_add(&dry->live, (int64_t)live) + (int64_t)live;
    dry->peak_live = now > dry->peak_live ? now : dry->peak_live;
    return block;
}

/* Those that outlive their dry run are counted nowhere. */
void burni_pool_forget(burni_block *block)
{
    if (block->klass != BURNI_DRY) {
        return;
    }
    burni_dry_memory *dry = block->owner->dry;
    if (dry != NULL && dry->serial == block->serial) {
        atomic_fetch_sub(&dry->taken, (int64_t)block->bytes);
        atomic_fetch_sub(&dry->live, (int64_t)block->ready);
    }
    burni_free(block);
}

burni_block *burni_pool_take(burni_pool *pool, burni_cache *cache, uint64_t bytes, burn_err *err)
{
    uint32_t klass = burni_pool_class_of(bytes);
    if (klass >= BURNI_N_CLASSES && bytes <= pool->limits.max_binding) {
        (void)burni_fail(err, BURN_E_NO_MEMORY,
                         "a tensor of %llu bytes is larger than any memory",
                         (unsigned long long)bytes);
        return NULL;
    }
    if (bytes > pool->limits.max_binding) {
        (void)burni_fail(err, BURN_E_NO_MEMORY,
                         "a tensor of %llu bytes is larger than the device's limit of %llu",
                         (unsigned long long)bytes, (unsigned long long)pool->limits.max_binding);
        return NULL;
    }
    burni_block *block = cache->free[klass];
    if (__builtin_expect(cache->dry != NULL, 0)) {
        return take_dry(cache, burni_pool_class_bytes(klass), bytes);
    }
    if (__builtin_expect(block != NULL, 1)) {
        cache->free[klass] = block->next;
    } else {
        block = take_slow(pool, cache, klass, err);
        if (block == NULL) {
            return NULL;
        }
    }
    block->owner = cache;
    count_in(cache, block->bytes);
    return block;
}

void burni_pool_give(burni_cache *cache, burni_block *block)
{
    if (__builtin_expect(block->klass >= BURNI_N_CLASSES, 0)) {
        burni_pool_forget(block);
        return;
    }
    block->next = cache->free[block->klass];
    cache->free[block->klass] = block;
    count_out(cache, block->bytes);
}

void burni_pool_give_shared(burni_pool *pool, burni_block *block, uint64_t ready)
{
    block->ready = ready;
    atomic_fetch_add_explicit(&block->owner->given_back, (int64_t)block->bytes,
                              memory_order_relaxed);
    (void)pthread_mutex_lock(&pool->lock);
    block->next = pool->shared[block->klass];
    pool->shared[block->klass] = block;
    (void)pthread_mutex_unlock(&pool->lock);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* The page of a block that is alone on it goes back to the backend. Its queue has passed. */
static void drop_page(burni_pool *pool, burni_block *block)
{
    (void)pthread_mutex_lock(&pool->lock);
    burni_page **link = &pool->pages;
    while (*link != block->page) {
        link = &(*link)->next;
    }
    *link = block->page->next;
    pool->n_pages--;
    (void)pthread_mutex_unlock(&pool->lock);
    atomic_fetch_sub(&pool->reserved, block->page->bytes);
    pool->api->free(pool->device, block->page->buffer);
    burni_free(block->page);
    burni_free(block);
}

static void drop_piece(burni_pool *pool, burni_cache *cache)
{
    burni_block *piece = cache->piece;
    if (piece != NULL) {
        cache->piece = NULL;
        pool->quiesce(pool->user, cache);
        drop_page(pool, piece);
    }
}

burni_block *burni_pool_take_piece(burni_pool *pool, burni_cache *cache, uint64_t bytes,
                                   uint64_t live)
{
    if (cache->dry != NULL) {
        return take_dry(cache, bytes, live);
    }
    burni_block *piece = cache->piece;
    if (piece == NULL || piece->bytes < bytes) {
        burn_err err = BURN_ERR_INIT;
        drop_piece(pool, cache);
        uint64_t size = (bytes + BURNI_PAGE - 1) / BURNI_PAGE * BURNI_PAGE;
        if (size > BURNI_PAGE) {
            burni_pool_trim(pool, cache); /* what is in it now had blocks of its own before */
        }
        piece = block_new(BURNI_PLACE, size, &err);
        burni_page *page = piece != NULL ? page_new(pool, size, 0, &err) : NULL;
        if (page == NULL) {
            burni_free(piece);
            return NULL;
        }
        cut(pool, page, piece);
    }
    cache->piece = NULL;
    piece->owner = cache;
    piece->ready = bytes;
    count_in(cache, bytes);
    return piece;
}

void burni_pool_give_piece(burni_pool *pool, burni_cache *cache, burni_block *piece)
{
    if (piece->klass == BURNI_DRY) {
        burni_pool_forget(piece);
        return;
    }
    count_out(cache, piece->ready);
    drop_piece(pool, cache);
    cache->piece = piece;
}

/* ---- trim ------------------------------------------------------------------------------------ */

/* A pass over one free list: count idle blocks per page, or unlink those of fully idle pages. */
static void visit(burni_pool *pool, burni_block **link, int shared, int unlink)
{
    while (*link != NULL) {
        burni_block *block = *link;
        int idle = !shared || pool->passed(pool->user, block->ready);
        if (idle && !unlink) {
            block->page->idle++;
        }
        if (idle && unlink && block->page->idle == block->page->blocks && !block->page->open) {
            *link = block->next;
            burni_free(block);
        } else {
            link = &block->next;
        }
    }
}

static void visit_all(burni_pool *pool, burni_cache *cache, int unlink)
{
    for (uint32_t c = 0; c < BURNI_N_CLASSES; c++) {
        visit(pool, &cache->free[c], 0, unlink);
        visit(pool, &pool->shared[c], 1, unlink);
    }
}

void burni_pool_trim(burni_pool *pool, burni_cache *cache)
{
    pool->quiesce(pool->user, cache);
    drop_piece(pool, cache);
    (void)pthread_mutex_lock(&pool->lock);
    for (burni_page *p = pool->pages; p != NULL; p = p->next) {
        p->idle = 0;
    }
    visit_all(pool, cache, 0);
    /* An open page stays open while something on it is in use: its rest would be lost. */
    for (int i = 0; i < 2; i++) {
        burni_page *open = cache->open_pages[i];
        if (open != NULL && open->idle == open->blocks) {
            open->open = 0;
            cache->open_pages[i] = NULL;
        }
    }
    visit_all(pool, cache, 1);
    for (burni_page **link = &pool->pages; *link != NULL;) {
        burni_page *page = *link;
        if (page->blocks > 0 && page->idle == page->blocks && !page->open) {
            *link = page->next;
            pool->n_pages--;
            atomic_fetch_sub(&pool->reserved, page->bytes);
            pool->api->free(pool->device, page->buffer);
            burni_free(page);
        } else {
            link = &page->next;
        }
    }
    (void)pthread_mutex_unlock(&pool->lock);
}
