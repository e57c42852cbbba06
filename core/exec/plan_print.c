/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plan_print.c - the plans that a stream keeps as text. See plan.h.
 *
 * For people and for tools that show it to them: its form may change. Under the stream's lock.
 */
#include "exec/plan_private.h"

#include "base/alloc.h"

#include <burn/plans.h>
#include <inttypes.h>
#include <string.h>

enum { PROGRAM_TEXT = 16384 };

static void print_size(burni_printer *p, uint32_t i, const burn_plan_info *info)
{
    burni_print(p,
                "plan %u: %u call%s in %u launch%s (%u group%s of %u calls), used %" PRIu64
                " time%s again\n",
                i, info->n_calls, burni_s(info->n_calls), info->n_launches,
                info->n_launches == 1 ? "" : "es", info->n_groups, burni_s(info->n_groups),
                info->n_fused, info->hits, burni_s(info->hits));
    burni_print(p,
                "  memory: bound %" PRIu64 ", peak %" PRIu64 ", each value apart %" PRIu64
                ", largest value %" PRIu64 "\n",
                info->live_bytes, info->peak_bytes, info->apart_bytes, info->largest);
    if (info->piece_bytes > 0) {
        burni_print(p,
                    "  one piece of %" PRIu64 " (bound %" PRIu64
                    ") for %u value%s, %u more in the place of an input\n",
                    info->piece_bytes, info->piece_bound, info->n_places, burni_s(info->n_places),
                    info->n_reused);
    } else {
        burni_print(p, "  no common piece: it would not need less\n");
    }
}

static void print_lines(burni_printer *p, const char *text)
{
    while (*text != '\0') {
        int n = (int)strcspn(text, "\n");
        burni_print(p, "    %.*s\n", n, text);
        text += n + (text[n] == '\n');
    }
}

static void print_group(burni_printer *p, const burni_group *g, char *text)
{
    const char *more = g->is_refused ? g->apart : g->end;
    burni_print(p, g->is_refused ? "  %u calls one by one, not by %s%s%s:\n"
                                 : "  %u calls as one by %s%s%s:\n",
                g->n_members, g->resolved->row->name, more[0] != '\0' ? ", " : "", more);
    (void)burn_fused_text(g->program, text, PROGRAM_TEXT);
    print_lines(p, text);
}

void burni_plans_print(const burni_stream *stream, burni_printer *p)
{
    burn_plan_totals t;
    burn_plan_info info;
    char *text = burni_alloc(PROGRAM_TEXT);
    memset(&t, 0, sizeof(t));
    memset(&info, 0, sizeof(info));
    (void)burni_plans_count(stream, &t);
    for (uint32_t i = 0; burni_plan_kept(stream, i) != NULL; i++) {
        t.n_plans++;
    }
    burni_print(p,
                "%s: %u plan%s kept, %" PRIu64 " made, %" PRIu64 " run%s by one that was there; "
                "%" PRIu64 " launch%s, %" PRIu64 " call%s dropped\n",
                stream->device->name, t.n_plans, burni_s(t.n_plans), t.made, t.hits,
                burni_s(t.hits), stream->n_launched, stream->n_launched == 1 ? "" : "es",
                stream->n_dropped, burni_s(stream->n_dropped));
    if (t.found + t.refused > 0) {
        burni_print(p, "environment: %" PRIu64 " plan%s found, %" PRIu64 " refused\n", t.found,
                    burni_s(t.found), t.refused);
    }
    for (uint32_t i = 0; i < t.n_plans; i++) {
        const burni_plan *plan = burni_plan_kept(stream, i);
        memset(&info, 0, sizeof(info));
        (void)burni_plan_describe(stream, i, &info);
        print_size(p, i, &info);
        for (uint32_t k = 0; k < plan->n_steps && text != NULL; k++) {
            if (plan->steps[k].group != NULL) {
                print_group(p, plan->steps[k].group, text);
            }
        }
        for (const burni_group *g = plan->refused; g != NULL && text != NULL; g = g->next) {
            print_group(p, g, text);
        }
    }
    burni_free(text);
}
