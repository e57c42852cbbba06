/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * profile_trace.c - a profile as Chrome trace events, which Perfetto and chrome://tracing open.
 *
 * The form: {"traceEvents": [...]}, complete events (ph X) in microseconds from the first one, and
 * metadata (ph M) with names. Host times are drawn on the thread that launched, inside of the
 * places that it was in; a device's queue has a line of its own, since it runs beside the thread.
 */
#include "profile.h"

#include <inttypes.h>
#include <stdlib.h>

/* Above what the system gives to threads. */
#define FIRST_QUEUE 100000000u

typedef struct writer {
    FILE *file;
    uint64_t base_ns;
    int any; /* an event was written */
} writer;

static void begin_event(writer *w)
{
    (void)fputs(w->any ? ",\n" : "\n", w->file);
    w->any = 1;
}

/* Gives the value up. */
static void write_json(writer *w, json_t *value)
{
    begin_event(w);
    if (value != NULL) {
        (void)json_dumpf(value, w->file, JSON_COMPACT);
    }
    json_decref(value);
}

static void write_name(writer *w, const char *what, uint32_t pid, uint32_t tid, const char *name)
{
    write_json(w, json_pack("{s:s, s:s, s:I, s:I, s:{s:o}}", "ph", "M", "name", what, "pid",
                            (json_int_t)pid, "tid", (json_int_t)tid, "args", "name",
                            cli_json_text(name)));
}

static const char *clock_name(uint32_t clock)
{
    return clock == BURN_PROFILE_HOST     ? "host"
           : clock == BURN_PROFILE_DEVICE ? "device"
                                          : "points";
}

/* All of an event that its entry knows: "name", "cat", "args". NULL when memory is short. */
static char *entry_text(const burn_profile_lane *lane, const burn_profile_entry *e)
{
    json_t *o = NULL;
    if (lane->kind == BURN_PROFILE_PLACES) {
        o = json_pack("{s:o, s:s, s:{}}", "name", cli_json_text(e->place), "cat", "place", "args");
    } else {
        o = json_pack("{s:o, s:s, s:{s:o, s:o, s:o, s:I, s:I, s:s, s:s}}", "name",
                      cli_json_text(e->op), "cat", "op", "args", "kernel", cli_json_text(e->row),
                      "shapes", cli_json_text(e->shapes), "place", cli_json_text(e->place), "flops",
                      (json_int_t)e->flops, "bytes", (json_int_t)e->bytes, "device", lane->device,
                      "clock", clock_name(lane->clock));
    }
    char *text = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return text;
}

static uint32_t line_of(const burn_profile_lane *lane, uint32_t l, uint32_t thread)
{
    return lane->clock == BURN_PROFILE_HOST ? thread : FIRST_QUEUE + l;
}

static void write_event(writer *w, const burn_profile_lane *lane, uint32_t l,
                        const burn_profile_event *e, const char *text)
{
    uint64_t ts = e->start_ns - w->base_ns;
    begin_event(w);
    /* `text` is an object: what follows its first brace is put behind ours. */
    (void)fprintf(w->file,
                  "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64
                  ".%03u,%s",
                  lane->pid, line_of(lane, l, e->thread), ts / 1000, (unsigned)(ts % 1000),
                  e->ns / 1000, (unsigned)(e->ns % 1000), text + 1);
}

static int write_events(writer *w, const burn_profile_lane *lane, uint32_t l)
{
    char **texts = calloc(lane->n_entries + 1u, sizeof(*texts));
    uint64_t first = lane->n_events > lane->cap_events ? lane->n_events - lane->cap_events : 0;
    int fine = texts != NULL;
    for (uint32_t i = 0; fine && i < lane->n_entries; i++) {
        texts[i] = entry_text(lane, burn_profile_entry_at(lane, i));
        fine = texts[i] != NULL;
    }
    for (uint64_t k = first; fine && k < lane->n_events; k++) {
        const burn_profile_event *e = burn_profile_event_at(lane, k);
        if (e->entry < lane->n_entries && e->start_ns >= w->base_ns) {
            write_event(w, lane, l, e, texts[e->entry]);
        }
    }
    for (uint32_t i = 0; texts != NULL && i < lane->n_entries; i++) {
        free(texts[i]);
    }
    free(texts);
    return fine;
}

static void write_names(writer *w, const cli_lanes *lanes, uint32_t l)
{
    const burn_profile_lane *lane = lanes->lanes[l];
    char name[sizeof(lane->device) + 48];
    if (l == 0 || lanes->lanes[l - 1]->pid != lane->pid) {
        write_name(w, "process_name", lane->pid, 0, lane->program);
    }
    if (lane->clock != BURN_PROFILE_HOST) {
        (void)snprintf(name, sizeof(name), "%s, queue of thread %u", lane->device, lane->thread);
    } else {
        (void)snprintf(name, sizeof(name), "thread %u", lane->thread);
    }
    write_name(w, "thread_name", lane->pid, line_of(lane, l, lane->thread), name);
}

int cli_profile_trace(const cli_lanes *lanes, const char *path)
{
    writer w = {fopen(path, "we"), UINT64_MAX, 0};
    if (w.file == NULL) {
        return 0;
    }
    for (uint32_t l = 0; l < lanes->n; l++) {
        uint64_t first = lanes->lanes[l]->first_ns;
        w.base_ns = first > 0 && first < w.base_ns ? first : w.base_ns;
    }
    (void)fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", w.file);
    int fine = 1;
    for (uint32_t l = 0; l < lanes->n && fine; l++) {
        write_names(&w, lanes, l);
        fine = write_events(&w, lanes->lanes[l], l);
    }
    (void)fputs("\n]}\n", w.file);
    fine = fine && ferror(w.file) == 0;
    return fclose(w.file) == 0 && fine;
}
