/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * profile_lane.c - blocks of profiles, and counting in them. See profile_lane.h.
 *
 * The size of a block is fixed when it is made: 2,048 entries, 65,536 events. The blocks of a file
 * are reserved at once, so that a full disk cannot end the process later.
 */
#include "exec/profile_lane.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CAP_ENTRIES 2048u
#define CAP_EVENTS  65536u
#define N_SLOTS     4096u /* a power of two */

static size_t block_size(void)
{
    return sizeof(burn_profile_lane) + CAP_ENTRIES * sizeof(burn_profile_entry) +
           CAP_EVENTS * sizeof(burn_profile_event);
}

static void *map_file(const char *folder, uint32_t number, burn_err *err)
{
    char path[512];
    int n = snprintf(path, sizeof(path), "%s/%ld-%u.burn", folder, (long)getpid(), number);
    if (n < 0 || (size_t)n >= sizeof(path)) {
        (void)burni_fail(err, BURN_E_INVALID, "BURN_PROFILE: the folder's name is too long");
        return NULL;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    void *memory = MAP_FAILED;
    int why = fd < 0 ? errno : 0;
    if (fd >= 0) {
        why = posix_fallocate(fd, 0, (off_t)block_size());
    }
    if (fd >= 0 && why == 0) {
        memory = mmap(NULL, block_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        why = errno;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (memory == MAP_FAILED) {
        if (fd >= 0) {
            (void)unlink(path);
        }
        (void)burni_fail(err, BURN_E_IO, "BURN_PROFILE: %s cannot be made: %s", path,
                         strerror(why));
        return NULL;
    }
    return memory;
}

static void fill_head(burn_profile_lane *head, uint32_t kind, uint32_t clock)
{
    head->head_size = sizeof(burn_profile_lane);
    head->entry_size = sizeof(burn_profile_entry);
    head->event_size = sizeof(burn_profile_event);
    head->cap_entries = CAP_ENTRIES;
    head->cap_events = CAP_EVENTS;
    head->kind = kind;
    head->clock = clock;
    head->pid = (uint32_t)getpid();
    (void)snprintf(head->program, sizeof(head->program), "%s", program_invocation_short_name);
    head->magic = BURN_PROFILE_MAGIC;
}

burni_lane *burni_lane_new(const char *folder, uint32_t number, uint32_t kind, uint32_t clock,
                           uint32_t n_open, burn_err *err)
{
    burni_lane *lane = burni_calloc(1, sizeof(*lane));
    burni_lane_slot *slots = burni_calloc(N_SLOTS, sizeof(*slots));
    burni_open_launch *open_launches =
        n_open > 0 ? burni_calloc(n_open, sizeof(*open_launches)) : NULL;
    int fine = lane != NULL && slots != NULL && (n_open == 0 || open_launches != NULL);
    if (!fine) {
        (void)burni_fail(err, BURN_E_NO_MEMORY, "profile: out of host memory");
    }
    burn_profile_lane *head = NULL;
    if (fine && folder != NULL) {
        head = map_file(folder, number, err);
    } else if (fine) {
        head = burni_calloc(1, block_size());
        (void)(head == NULL &&
               burni_fail(err, BURN_E_NO_MEMORY, "profile: out of host memory") != BURN_OK);
    }
    if (head == NULL || pthread_mutex_init(&lane->lock, NULL) != 0) {
        burni_free(lane);
        burni_free(slots);
        burni_free(open_launches);
        return NULL;
    }
    fill_head(head, kind, clock);
    lane->head = head;
    lane->entries = (burn_profile_entry *)(void *)(head + 1);
    lane->events = (burn_profile_event *)(void *)(lane->entries + CAP_ENTRIES);
    lane->slots = slots;
    lane->open = open_launches;
    lane->n_open = n_open;
    return lane;
}

uint32_t burni_lane_entry(burni_lane *lane, uint64_t hash, int *is_new)
{
    for (uint32_t at = (uint32_t)hash & (N_SLOTS - 1);; at = (at + 1) & (N_SLOTS - 1)) {
        burni_lane_slot *s = &lane->slots[at];
        if (s->entry != 0 && s->hash == hash) {
            *is_new = 0;
            return s->entry - 1;
        }
        if (s->entry == 0) {
            if (lane->head->n_entries == CAP_ENTRIES) {
                *is_new = 0;
                return BURNI_NO_ENTRY;
            }
            s->hash = hash;
            s->entry = ++lane->head->n_entries;
            *is_new = 1;
            return s->entry - 1;
        }
    }
}

static void count(burn_profile_entry *e, uint64_t ns)
{
    e->min_ns = e->calls == 0 || ns < e->min_ns ? ns : e->min_ns;
    e->max_ns = ns > e->max_ns ? ns : e->max_ns;
    e->ns += ns;
    e->calls++;
}

void burni_lane_add(burni_lane *lane, uint32_t entry, uint32_t thread, uint64_t start_ns,
                    uint64_t end_ns)
{
    burn_profile_lane *head = lane->head;
    uint64_t ns = end_ns > start_ns ? end_ns - start_ns : 0;
    head->busy_ns += ns;
    head->first_ns = head->first_ns == 0 || start_ns < head->first_ns ? start_ns : head->first_ns;
    head->last_ns = end_ns > head->last_ns ? end_ns : head->last_ns;
    head->thread = thread;
    if (entry == BURNI_NO_ENTRY) {
        head->homeless++;
        return;
    }
    count(&lane->entries[entry], ns);
    burn_profile_event *event = &lane->events[head->n_events % CAP_EVENTS];
    event->start_ns = start_ns;
    event->ns = ns;
    event->entry = entry;
    event->thread = thread;
    head->n_events++;
}
