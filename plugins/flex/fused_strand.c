/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_strand.c - runs of steps whose results stay in registers (strand.h).
 *
 * Steps that follow one another, each taking the result of the one before it, become a strand: a
 * block of elements goes through all of them before the next block. A result in between is written
 * to its buffer only where another step reads it. What does not fill a block goes through the
 * steps' own loops, so the buffers stay as they were planned. Blocks are positions in order and no
 * step looks at another position, so in place is as good as it was. An op joins as soon as
 * strand_tmpl.c has links for it.
 */
#include "fused_tile.h"

#include <stddef.h>

/* A strand that is longer goes on in another one. */
enum { MOST_STEPS = 24, MOST_LINKS = 2 * MOST_STEPS + 1 };

/* ---- finding them ---------------------------------------------------------------------------- */

/* Is it an op that has links? Those for its forms, in order, or the only one. */
static const flex_link_fn *links_of(const flex_fused_step *s)
{
    const flex_pointwise_table *loops = flex_isa_kernels->f32;
    const flex_strand_table *table = flex_isa_kernels->strand;
    if (s->exec != flex_fused_map || s->space != BURN_FUSED_FULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < FLEX_N_UNARY && s->n_in == 1; i++) {
        if (s->fn.unary == loops->unary[i] && table->unary[i] != NULL) {
            return &table->unary[i];
        }
    }
    for (uint32_t i = 0; i < FLEX_N_BINARY && s->n_in == 2; i++) {
        if (s->fn.binary == loops->binary[i] && table->binary[i][0] != NULL) {
            return table->binary[i];
        }
    }
    return NULL;
}

static int reads(const flex_fused_step *s, uint16_t value)
{
    return (s->n_in > 0 && s->in[0] == value) || (s->n_in > 1 && s->in[1] == value) ||
           (s->n_in > 2 && s->in[2] == value);
}

/* Does another step than the one behind it read the result of step s? */
static int is_kept(const flex_fused *f, uint32_t s)
{
    for (uint32_t k = s + 2; k < f->n_steps; k++) {
        if (reads(&f->steps[k], f->steps[s].out)) {
            return 1;
        }
    }
    return 0;
}

static uint32_t length_from(const flex_fused *f, uint32_t first)
{
    uint32_t n = links_of(&f->steps[first]) != NULL;
    while (n > 0 && n < MOST_STEPS && first + n < f->n_steps &&
           reads(&f->steps[first + n], f->steps[first + n - 1].out) &&
           links_of(&f->steps[first + n]) != NULL) {
        n++;
    }
    return n;
}

static flex_fused_link link_to(flex_link_fn run, uint16_t value)
{
    flex_fused_link l = {run, value, {0}};
    return l;
}

/* The link of a step that finds `value` in the registers. */
static flex_fused_link link_of(const flex_fused_step *s, uint16_t value)
{
    const flex_link_fn *forms = links_of(s);
    if (s->n_in == 1) {
        return link_to(forms[0], value);
    }
    if (s->in[0] == value && s->in[1] == value) {
        return link_to(forms[FLEX_LINK_WITH_SELF], value);
    }
    if (s->in[0] == value) {
        int one = (s->mode & FLEX_MODE_Y_SCALAR) != 0;
        return link_to(forms[one ? FLEX_LINK_WITH_ONE : FLEX_LINK_WITH_ARRAY], s->in[1]);
    }
    int one = (s->mode & FLEX_MODE_X_SCALAR) != 0;
    return link_to(forms[one ? FLEX_LINK_ONE_WITH : FLEX_LINK_ARRAY_WITH], s->in[0]);
}

static uint16_t make_links(const flex_fused *f, uint32_t first, uint32_t n, flex_fused_link *links,
                           flex_fused_value *values)
{
    const flex_strand_table *table = flex_isa_kernels->strand;
    const flex_fused_step *s = &f->steps[first];
    uint16_t value = (s->mode & FLEX_MODE_X_SCALAR) != 0 ? s->in[1] : s->in[0];
    uint16_t to = 0;
    links[to++] = link_to(NULL, value);
    for (uint32_t k = 0; k < n; k++) {
        links[to++] = link_of(&s[k], value);
        value = s[k].out;
        if (k + 1 == n) {
            links[to++] = link_to(table->finish, value);
        } else if (is_kept(f, first + k)) {
            links[to++] = link_to(table->store, value);
        } else {
            values[value].inner = 1;
        }
    }
    return to;
}

void flex_fused_find_strands(flex_fused *f, flex_fused_step *walk, flex_fused_strand *strands,
                             flex_fused_link *links, flex_fused_value *values)
{
    uint16_t n_links = 0;
    f->walk = walk;
    f->strands = strands;
    f->links = links;
    for (uint32_t s = f->n_ones; s < f->n_steps;) {
        uint32_t n = length_from(f, s);
        walk[f->n_walk] = f->steps[s];
        if (n >= 2) {
            flex_fused_strand *strand = &strands[f->n_strands];
            strand->step = (uint16_t)s;
            strand->n_steps = (uint16_t)n;
            strand->link = n_links;
            strand->n_links = make_links(f, s, n, links + n_links, values);
            n_links = (uint16_t)(n_links + strand->n_links);
            walk[f->n_walk].exec = flex_fused_run_strand;
            walk[f->n_walk].index = f->n_strands++;
        }
        f->n_walk++;
        s += n >= 2 ? n : 1;
    }
}

/* ---- running one ----------------------------------------------------------------------------- */

/* The elements from `at` on, by the steps themselves. */
static void run_rest(const flex_fused_strand *strand, flex_fused_tile *t, uint64_t at)
{
    const flex_fused *f = t->job->f;
    const flex_fused_step *s = f->steps + strand->step;
    const uint64_t skip = at * sizeof(float);
    for (uint32_t k = 0; k < strand->n_steps; k++) {
        if (f->values[s[k].out].inner) {
            t->ptr[s[k].out] = t->full + f->values[s[k].out].slot * t->job->tile * f->slot_size;
        }
    }
    for (uint32_t k = 0; k < strand->n_steps; k++) {
        const char *x = t->ptr[s[k].in[0]] + ((s[k].mode & FLEX_MODE_X_SCALAR) != 0 ? 0 : skip);
        const char *y = t->ptr[s[k].in[1]] + ((s[k].mode & FLEX_MODE_Y_SCALAR) != 0 ? 0 : skip);
        const void *in[3] = {x, y, NULL};
        (void)s[k].loop(&s[k], t->ptr[s[k].out] + skip, in, t->n - at, s[k].mode);
    }
}

int flex_fused_run_strand(const flex_fused_step *s, flex_fused_tile *t)
{
    const flex_fused *f = t->job->f;
    const flex_fused_strand *strand = &f->strands[s->index];
    const flex_fused_link *from = f->links + strand->link;
    flex_link links[MOST_LINKS];
    for (uint32_t k = 0; k < strand->n_links; k++) {
        links[k].run = from[k].run;
        links[k].data = t->ptr[from[k].value];
    }
    uint64_t done = flex_isa_kernels->strand->run(links, t->n);
    if (done < t->n) {
        run_rest(strand, t, done);
    }
    return 1;
}
