/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * profile_lanes.c - reads the lanes of a profile, and sums their entries. See profile.h.
 *
 * A file may be cut or half written, since its process can end at any time; what does not fit is
 * left out. Lists are short (a few thousand entries), so they are searched from front to back.
 */
#include "profile.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading --------------------------------------------------------------------------------- */

static int is_whole(const burn_profile_lane *lane, size_t size)
{
    return size >= sizeof(*lane) && lane->magic == BURN_PROFILE_MAGIC &&
           lane->head_size == sizeof(*lane) && lane->entry_size == sizeof(burn_profile_entry) &&
           lane->event_size == sizeof(burn_profile_event) && lane->cap_entries <= 1u << 20 &&
           lane->cap_events <= 1u << 28 && lane->cap_events > 0 &&
           lane->n_entries <= lane->cap_entries &&
           size >= sizeof(*lane) + (size_t)lane->cap_entries * lane->entry_size +
                       (size_t)lane->cap_events * lane->event_size;
}

static void clean(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (char *c = text; *c != '\0'; c++) {
        *c = (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
    }
}

static void clean_lane(burn_profile_lane *lane)
{
    burn_profile_entry *entries = (burn_profile_entry *)(void *)(lane + 1);
    clean(lane->device, sizeof(lane->device));
    clean(lane->program, sizeof(lane->program));
    for (uint32_t i = 0; i < lane->n_entries; i++) {
        clean(entries[i].op, sizeof(entries[i].op));
        clean(entries[i].row, sizeof(entries[i].row));
        clean(entries[i].place, sizeof(entries[i].place));
        clean(entries[i].shapes, sizeof(entries[i].shapes));
    }
}

/* The whole file in fresh memory; NULL when it cannot be read. */
static void *read_file(const char *path, size_t *out_size)
{
    struct stat info;
    char *bytes = NULL;
    size_t size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0) {
        bytes = malloc((size_t)info.st_size);
        ssize_t n = bytes != NULL ? 1 : 0;
        while (n > 0 && size < (size_t)info.st_size) {
            n = read(fd, bytes + size, (size_t)info.st_size - size);
            size += n > 0 ? (size_t)n : 0;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    *out_size = size;
    return bytes;
}

void cli_lanes_read(void *user, const char *path)
{
    cli_lanes *to = user;
    size_t size = 0;
    burn_profile_lane *lane = read_file(path, &size);
    if (lane == NULL || !is_whole(lane, size)) {
        free(lane);
        return;
    }
    burn_profile_lane **more = realloc(to->lanes, (to->n + 1) * sizeof(burn_profile_lane *));
    if (more == NULL) {
        to->failed = 1;
        free(lane);
        return;
    }
    clean_lane(lane);
    to->lanes = more;
    to->lanes[to->n++] = lane;
}

void cli_lanes_free(cli_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->n; i++) {
        free(lanes->lanes[i]);
    }
    free(lanes->lanes);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* A fresh sum at the end of the list; NULL when memory is short. */
static cli_sum *add_sum(cli_sums *list)
{
    if ((list->n & (list->n - 1)) == 0) {
        size_t cap = list->n > 0 ? 2 * (size_t)list->n : 1;
        cli_sum *more = realloc(list->sums, cap * sizeof(*more));
        if (more == NULL) {
            return NULL;
        }
        list->sums = more;
    }
    cli_sum *s = &list->sums[list->n++];
    memset(s, 0, sizeof(*s));
    return s;
}

static cli_sum *op_sum(cli_sums *list, const burn_profile_entry *e, int by)
{
    for (uint32_t i = 0; i < list->n; i++) {
        cli_sum *s = &list->sums[i];
        if (strcmp(s->op, e->op) == 0 && strcmp(s->row, e->row) == 0 &&
            (by != CLI_BY_SHAPES || strcmp(s->shapes, e->shapes) == 0)) {
            return s;
        }
    }
    cli_sum *s = add_sum(list);
    if (s != NULL) {
        s->op = e->op;
        s->row = e->row;
        s->shapes = by == CLI_BY_SHAPES ? e->shapes : NULL;
    }
    return s;
}

/* Without the line that a call came from: "encoder.0 (main.c:42)". */
static void place_name(char *out, size_t size, const char *place)
{
    (void)snprintf(out, size, "%s", place);
    char *line = strstr(out, " (");
    if (line != NULL) {
        *line = '\0';
    }
}

static cli_sum *place_sum(cli_sums *list, const char *place)
{
    char name[sizeof(list->sums->place)];
    place_name(name, sizeof(name), place);
    for (uint32_t i = 0; i < list->n; i++) {
        if (strcmp(list->sums[i].place, name) == 0) {
            return &list->sums[i];
        }
    }
    cli_sum *s = add_sum(list);
    if (s != NULL) {
        memcpy(s->place, name, sizeof(name));
    }
    return s;
}

static void count(cli_sum *s, const burn_profile_entry *e)
{
    s->min_ns = s->calls == 0 || e->min_ns < s->min_ns ? e->min_ns : s->min_ns;
    s->max_ns = e->max_ns > s->max_ns ? e->max_ns : s->max_ns;
    s->calls += e->calls;
    s->ns += e->ns;
    s->bytes += (double)e->bytes * (double)e->calls;
    if (e->flops > 0) {
        s->flops += (double)e->flops * (double)e->calls;
        s->flops_ns += e->ns;
    }
}

static int by_time(const void *a, const void *b)
{
    const cli_sum *x = a;
    const cli_sum *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : strcmp(x->op, y->op);
}

static int by_place(const void *a, const void *b)
{
    return strcmp(((const cli_sum *)a)->place, ((const cli_sum *)b)->place);
}

int cli_sum_ops(const cli_lanes *lanes, uint32_t from, uint32_t to, int by, cli_sums *out)
{
    for (uint32_t l = from; l < to; l++) {
        const burn_profile_lane *lane = lanes->lanes[l];
        for (uint32_t i = 0; lane->kind == BURN_PROFILE_LAUNCHES && i < lane->n_entries; i++) {
            const burn_profile_entry *e = burn_profile_entry_at(lane, i);
            cli_sum *s = e->calls > 0 ? op_sum(out, e, by) : NULL;
            if (s != NULL) {
                count(s, e);
            } else if (e->calls > 0) {
                return 0;
            }
        }
    }
    if (out->n > 0) {
        qsort(out->sums, out->n, sizeof(*out->sums), by_time);
    }
    return 1;
}

static int is_below(const char *place, const char *outer)
{
    size_t n = strlen(outer);
    return n > 0 && strncmp(place, outer, n) == 0 && (place[n] == '\0' || place[n] == '.');
}

int cli_sum_places(const cli_lanes *lanes, uint32_t from, uint32_t to, cli_sums *out)
{
    for (uint32_t l = from; l < to; l++) {
        const burn_profile_lane *lane = lanes->lanes[l];
        for (uint32_t i = 0; i < lane->n_entries; i++) {
            const burn_profile_entry *e = burn_profile_entry_at(lane, i);
            cli_sum *s = place_sum(out, e->place);
            if (s == NULL) {
                return 0;
            }
            if (lane->kind == BURN_PROFILE_PLACES) {
                s->times += e->calls;
                s->wall_ns += e->ns;
            } else {
                count(s, e);
            }
        }
    }
    if (out->n > 0) {
        qsort(out->sums, out->n, sizeof(*out->sums), by_place);
    }
    for (uint32_t i = 0; i < out->n; i++) {
        for (uint32_t k = 0; k < out->n; k++) {
            const cli_sum *part = &out->sums[k];
            out->sums[i].inner_ns += k == i || is_below(part->place, out->sums[i].place) ? part->ns
                                                                                         : 0;
        }
    }
    return 1;
}
