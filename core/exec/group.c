/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * group.c - the program of a group, its row, and its run. See group.h.
 *
 * The program is built once, from the members' ops and from which operand is whose result. At
 * each run operands are copied from the members' records, since these hold today's sizes, offsets
 * and scalars. To let another sort of op into groups: a sort of step in burn/fused.h, its place
 * here and in plan.c, where it is decided who may join whom.
 */
#include "exec/group.h"

#include "base/alloc.h"
#include "base/error.h"
#include "exec/check.h"
#include "exec/launch.h"
#include "exec/places.h"
#include "exec/walk.h"
#include "graph/fused.h"
#include "ops/registry.h"
#include "ops/rules.h"

#include <stdio.h>
#include <string.h>

/* ---- making ---------------------------------------------------------------------------------- */

typedef struct making {
    const burni_batch *batch;
    const burni_member *members;
    uint32_t n;
    uint32_t n_in;
    uint32_t n_row_uses;
    uint32_t n_twins;
    uint32_t is_full; /* there was no room for something */
    uint32_t may_stop;
    uint32_t has_full; /* an operand says how many positions there are */
    burni_group_input inputs[BURN_MAX_OPERANDS];
    uint16_t values[BURN_MAX_OPERANDS];             /* of the inputs, in the builder */
    uint16_t results[BURN_FUSED_MAX_STEPS];         /* of the members */
    burni_group_input row_uses[BURN_MAX_OPERANDS];
    burni_group_twin twins[BURN_MAX_OPERANDS];
    burni_fused_builder builder;
} making;

static const burni_record *record_of(const making *m, uint32_t member)
{
    return m->batch->records[m->members[member].record];
}

static uint32_t result_slot(const burni_record *r)
{
    return r->slots[r->launch.n_in];
}

/* Which member's result an operand is, or `n`. */
static uint32_t maker_of(const making *m, uint32_t before, uint32_t slot)
{
    for (uint32_t k = 0; k < before; k++) {
        if (result_slot(record_of(m, k)) == slot) {
            return k;
        }
    }
    return m->n;
}

static int same_view(const burn_operand *a, const burn_operand *b)
{
    size_t size = a->rank * sizeof(int64_t);
    return a->offset == b->offset && a->rank == b->rank && a->dtype == b->dtype &&
           a->layout == b->layout && memcmp(a->dims, b->dims, size) == 0 &&
           memcmp(a->strides, b->strides, size) == 0;
}

static const burn_operand *operand_of(const making *m, const burni_group_input *in)
{
    return &m->batch->records[in->record]->launch.operands[in->operand];
}

/* The value of input k, which the operand is as well. */
static uint16_t twin(making *m, uint32_t member, uint32_t i, uint32_t k)
{
    if (m->n_twins == BURN_MAX_OPERANDS) {
        m->is_full = 1;
        return BURN_FUSED_NONE;
    }
    burni_group_twin *t = &m->twins[m->n_twins++];
    t->record = m->members[member].record;
    t->operand = i;
    t->input = k;
    t->zero = 0;
    return m->values[k];
}

/* An operand that comes from outside, as a value of the program; each view of a storage once. */
static uint16_t outside(making *m, uint32_t member, uint32_t i, uint8_t space)
{
    const burni_record *r = record_of(m, member);
    const burn_operand *o = &r->launch.operands[i];
    int is_tensor = o->kind == BURN_TENSOR;
    for (uint32_t k = 0; k < m->n_in && is_tensor; k++) {
        const burni_record *other = m->batch->records[m->inputs[k].record];
        if (other->slots[m->inputs[k].operand] == r->slots[i] &&
            m->builder.inputs[k].space == space &&
            same_view(operand_of(m, &m->inputs[k]), o)) {
            return twin(m, member, i, k);
        }
    }
    if (m->n_in == BURN_MAX_OPERANDS) {
        m->is_full = 1;
        return BURN_FUSED_NONE;
    }
    m->has_full |= is_tensor && space == BURN_FUSED_FULL;
    uint16_t value = burni_fused_add_input(&m->builder, o->dtype,
                                           is_tensor ? space : (uint8_t)BURN_FUSED_ONE, !is_tensor);
    m->inputs[m->n_in].record = m->members[member].record;
    m->inputs[m->n_in].operand = i;
    m->inputs[m->n_in].slot_uses = 0;
    m->values[m->n_in++] = value;
    return value;
}

int burni_is_one_line(const burni_launch *launch, uint32_t i)
{
    return launch->op->def.fuse == BURN_FUSE_LINES &&
           (burni_op_role_in(launch->op, i)->flags & BURN_ROLE_LINE) != 0;
}

int64_t burni_line_of(const burni_launch *launch)
{
    const burn_operand *z = &launch->operands[launch->n_in];
    if (!burni_row_has_step(launch)) {
        return 0;
    }
    for (uint32_t i = 0; i < launch->n_in; i++) {
        const burn_operand *o = &launch->operands[i];
        int is_dense = o->layout == BURN_LAYOUT_CONTIGUOUS || burni_operand_numel(o) == 1;
        if (o->kind == BURN_ABSENT) {
            continue;
        }
        if (!is_dense || (!burni_is_one_line(launch, i) &&
                          burni_operand_numel(o) != burni_operand_numel(z))) {
            return 0;
        }
    }
    int64_t length = 1;
    uint32_t n = burni_line_axes(&launch->op->def, launch->attrs, z->rank);
    for (uint32_t k = 0; k < n; k++) {
        length *= z->dims[z->rank - 1 - k];
    }
    int fits = length <= BURN_FUSED_LINE_BYTES / (int64_t)burn_dtype_size(z->dtype);
    return n > 0 && fits ? length : 0;
}

static uint16_t argument(making *m, uint32_t member, uint32_t i)
{
    const burni_record *r = record_of(m, member);
    const burn_operand *o = &r->launch.operands[i];
    const burni_member *self = &m->members[member];
    uint8_t space = self->reduces ? (uint8_t)BURN_FUSED_FULL : self->space;
    if (self->produces || burni_is_one_line(&r->launch, i)) {
        space = BURN_FUSED_WHOLE;
    }
    if (o->kind == BURN_ABSENT) {
        return BURN_FUSED_NONE;
    }
    uint32_t maker = r->slots[i] == BURNI_SLOT_NONE ? m->n : maker_of(m, member, r->slots[i]);
    if (maker == m->n) {
        return outside(m, member, i, space);
    }
    if (m->members[maker].space == BURN_FUSED_ROW && space == BURN_FUSED_FULL) {
        if (m->n_row_uses == BURN_MAX_OPERANDS) {
            m->is_full = 1;
            return BURN_FUSED_NONE;
        }
        m->row_uses[m->n_row_uses].record = self->record;
        m->row_uses[m->n_row_uses++].operand = i;
    }
    return m->results[maker];
}

/* Integers may have no quotient. */
static uint32_t may_stop(const burni_launch *launch, uint32_t i)
{
    uint32_t klass = burn_dtype_class(launch->operands[i].dtype);
    return launch->op->def.fuse != BURN_FUSE_GENERATE && klass != BURN_CLASS_FLOAT &&
           klass != BURN_CLASS_BOOL;
}

static void add_member(making *m, uint32_t member)
{
    const burni_member *self = &m->members[member];
    const burni_launch *launch = &record_of(m, member)->launch;
    uint16_t args[BURN_FUSED_MAX_ARGS];
    burn_attrs_axes axes;
    burn_attrs_shape shapeless;
    uint64_t lines[BURN_MAX_ATTRS / sizeof(uint64_t)];
    const void *attrs = launch->attrs;
    uint32_t attrs_size = launch->attrs_size;
    for (uint32_t i = 0; i < launch->n_in; i++) {
        args[i] = argument(m, member, i);
        m->may_stop |= may_stop(launch, i);
    }
    if (self->reduces && !burni_is_loss(&launch->op->def)) {
        const burn_attrs_axes *given = launch->attrs;
        burni_fused_axes(&axes, self->space, given->correction);
        attrs = &axes;
        attrs_size = sizeof(axes);
    } else if (self->lines) {
        attrs_size = burni_fused_lines(launch->op, launch->attrs, lines);
        attrs = lines;
    } else if (launch->op->def.fuse == BURN_FUSE_GENERATE) {
        attrs_size = burni_fused_shapeless(launch->op, launch->attrs, &shapeless);
        attrs = &shapeless;
    }
    m->results[member] =
        burni_fused_add_step(&m->builder, launch->op->def.id, launch->operands[launch->n_in].dtype,
                             self->space, args, launch->n_in, attrs, attrs_size);
    if (self->written) {
        (void)burni_fused_add_output(&m->builder, m->results[member]);
    }
}

/* How many operands of members are the storage of each input. */
static void count_uses(making *m)
{
    for (uint32_t k = 0; k < m->n_in; k++) {
        uint32_t slot = m->batch->records[m->inputs[k].record]->slots[m->inputs[k].operand];
        for (uint32_t member = 0; member < m->n && slot != BURNI_SLOT_NONE; member++) {
            const burni_record *r = record_of(m, member);
            for (uint32_t i = 0; i < r->launch.n_in; i++) {
                m->inputs[k].slot_uses += r->slots[i] == slot;
            }
        }
    }
}

/* ---- the call -------------------------------------------------------------------------------- */

static const int64_t no_sizes[1] = {1};
static const int64_t no_strides[1] = {0};

static void bind_length(burn_operand *o, int64_t *value, int64_t length)
{
    memset(o, 0, sizeof(*o));
    value[0] = length;
    value[1] = 0;
    o->data = value;
    o->dims = no_sizes;
    o->strides = no_strides;
    o->kind = BURN_IMMEDIATE;
    o->dtype = BURN_I64;
    o->layout = BURN_LAYOUT_CONTIGUOUS;
}

/* The storages of the call, how many there are, and which of its inputs nobody else sees. */
static void bind_storages(const burni_batch *batch, const burni_group *g, burni_group_call *b)
{
    b->launch.dying = 0;
    for (uint32_t k = 0; k < g->n_in; k++) {
        const burni_group_input *in = &g->inputs[k];
        const burni_record *r = batch->records[in->record];
        b->storages[k] = r->launch.storages[in->operand];
        if (k < 32 && b->storages[k] != NULL && !g->may_stop) {
            const burni_slot *slot = &batch->slots[r->slots[in->operand]];
            b->launch.dying |= (uint32_t)burni_slot_dies(slot, in->slot_uses) << k;
        }
    }
    b->launch.n_in = g->n_in;
    b->launch.n_out = g->n_out;
    if (g->has_rows) {
        b->storages[b->launch.n_in++] = NULL;
    }
    for (uint32_t j = 0; j < g->n_out; j++) {
        const burni_launch *launch = &batch->records[g->outputs[j]]->launch;
        b->storages[b->launch.n_in + j] = launch->storages[launch->n_in];
    }
}

static void bind_operands(const burni_batch *batch, const burni_group *g, int64_t length,
                          burni_group_call *b)
{
    bind_storages(batch, g, b);
    for (uint32_t k = 0; k < g->n_in; k++) {
        const burni_group_input *in = &g->inputs[k];
        b->operands[k] = batch->records[in->record]->launch.operands[in->operand];
    }
    if (g->has_rows) {
        bind_length(&b->operands[g->n_in], b->length, length);
    }
    for (uint32_t j = 0; j < g->n_out; j++) {
        const burni_launch *launch = &batch->records[g->outputs[j]]->launch;
        b->operands[b->launch.n_in + j] = launch->operands[launch->n_in];
    }
}

/* The math mode is that of the product: nothing else has one. */
static uint32_t math_of(const burni_batch *batch, const burni_group *g)
{
    const burni_member *first = &g->members[0];
    return first->produces ? batch->records[first->record]->launch.math : 0;
}

static const burni_resolved *find_row(const burni_batch *batch, const burni_group *g,
                                      int64_t length)
{
    burni_stream *stream = g->stream;
    burni_group_call b;
    burn_call call;
    bind_operands(batch, g, length, &b);
    memset(&call, 0, sizeof(call));
    call.flags = math_of(batch, g);
    call.struct_size = sizeof(call);
    call.operand_stride = sizeof(burn_operand);
    call.n_in = b.launch.n_in;
    call.n_out = g->n_out;
    call.operands = b.operands;
    call.attrs = g->program;
    call.attrs_size = g->program_size;
    return burni_resolve(&stream->others, stream->device, burni_op_find(BURN_OP_FUSED), &call,
                         NULL);
}

/* Sizes of today: positions and, where there are rows, their length. 0: they do not fit. */
static int measure(const burni_batch *batch, const burni_group *g, int64_t *out_n,
                   int64_t *out_length)
{
    int64_t n = -1;
    int64_t length = 0;
    for (uint32_t k = 0; k < g->n_members; k++) {
        const burni_launch *launch = &batch->records[g->members[k].record]->launch;
        int64_t made = burni_operand_numel(&launch->operands[launch->n_in]);
        if (g->members[k].produces && !burni_may_produce(launch)) {
            return 0;
        }
        if (g->members[k].reduces && burni_is_loss(&launch->op->def) &&
            !burni_reduces_rows(launch)) {
            return 0;
        }
        if (g->members[k].reduces || g->members[k].lines) {
            int64_t taken = burni_operand_numel(&launch->operands[0]);
            int64_t each = made > 0 ? taken / made : 0;
            int64_t columns = each > 1 ? made : 0;
            int64_t own = g->members[k].lines                        ? burni_line_of(launch)
                          : g->members[k].space == BURN_FUSED_COLUMN ? columns
                                                                     : each;
            if (own == 0 || (length != 0 && own != length) || (n >= 0 && n != taken)) {
                return 0;
            }
            length = own;
            n = taken;
        } else if (g->members[k].space == BURN_FUSED_FULL) {
            if (n >= 0 && n != made) {
                return 0;
            }
            n = made;
        }
    }
    for (uint32_t k = 0; k < g->n_members; k++) {
        const burni_launch *launch = &batch->records[g->members[k].record]->launch;
        int64_t made = burni_operand_numel(&launch->operands[launch->n_in]);
        if (g->members[k].space == BURN_FUSED_ROW && (length == 0 || made != n / length)) {
            return 0;
        }
    }
    for (uint32_t k = 0; k < g->n_twins; k++) {
        const burni_group_twin *t = &g->twins[k];
        const burni_group_input *in = &g->inputs[t->input];
        if (!same_view(&batch->records[t->record]->launch.operands[t->operand],
                       &batch->records[in->record]->launch.operands[in->operand])) {
            return 0;
        }
    }
    for (uint32_t k = 0; k < g->n_row_uses; k++) {
        const burni_group_input *use = &g->row_uses[k];
        const burn_operand *o = &batch->records[use->record]->launch.operands[use->operand];
        if (!burni_reads_its_row(o, n, length)) {
            return 0;
        }
    }
    *out_n = n;
    *out_length = length;
    return n > 0;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* What the row of a group with a product was found for: the dims of the product's operands. */
struct burni_group_sizes {
    uint32_t math;
    uint32_t n;
    int64_t dims[BURN_FUSED_MAX_ARGS * BURN_MAX_RANK];
};

static void measure_product(const burni_batch *batch, const burni_group *g,
                            struct burni_group_sizes *out)
{
    const burni_launch *launch = &batch->records[g->members[0].record]->launch;
    memset(out, 0, sizeof(*out));
    out->math = launch->math;
    for (uint32_t i = 0; i < launch->n_in; i++) {
        const burn_operand *o = &launch->operands[i];
        for (uint32_t d = 0; d < o->rank; d++) {
            out->dims[out->n++] = o->dims[d];
        }
    }
}

static uint32_t count_operands(const making *m)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < m->n; k++) {
        n += record_of(m, k)->launch.n_in + record_of(m, k)->launch.n_out;
    }
    return n;
}

/* The program, and operands before it, begin at a multiple of 8 whatever stands in front. */
_Static_assert(sizeof(burni_member) % 8 == 0 && sizeof(struct burni_group_sizes) % 8 == 0 &&
                   sizeof(burni_group_input) % 8 == 0 && sizeof(burni_group_twin) % 8 == 0 &&
                   sizeof(burni_group_use) % 8 == 0 && sizeof(burn_operand) % 8 == 0,
               "parts of a group's memory");

static burni_group *group_memory(const making *m, uint32_t n_out, uint32_t program_size)
{
    uint32_t n_sizes = m->members[0].produces;
    size_t size = m->n * sizeof(burni_member) + n_sizes * sizeof(struct burni_group_sizes) +
                  (m->n_in + m->n_row_uses) * sizeof(burni_group_input) +
                  m->n_twins * sizeof(burni_group_twin) +
                  (n_out + 1u) / 2 * 2 * sizeof(uint32_t) +
                  count_operands(m) * sizeof(burni_group_use) +
                  (m->n_in + 1u + n_out) * sizeof(burn_operand) + program_size;
    burni_group *g = burni_calloc(1, sizeof(*g) + size);
    if (g == NULL) {
        return NULL;
    }
    char *p = (char *)g->memory;
    g->members = (burni_member *)(void *)p;
    p += m->n * sizeof(burni_member);
    g->sizes = n_sizes > 0 ? (struct burni_group_sizes *)(void *)p : NULL;
    p += n_sizes * sizeof(struct burni_group_sizes);
    g->inputs = (burni_group_input *)(void *)p;
    p += m->n_in * sizeof(burni_group_input);
    g->row_uses = (burni_group_input *)(void *)p;
    p += m->n_row_uses * sizeof(burni_group_input);
    g->twins = (burni_group_twin *)(void *)p;
    p += m->n_twins * sizeof(burni_group_twin);
    g->outputs = (uint32_t *)(void *)p;
    p += (n_out + 1u) / 2 * 2 * sizeof(uint32_t);
    g->uses = (burni_group_use *)(void *)p;
    p += count_operands(m) * sizeof(burni_group_use);
    g->bound = (burn_operand *)(void *)p;
    p += (m->n_in + 1u + n_out) * sizeof(burn_operand);
    g->program = p;
    return g;
}

static burni_group_use *use_of(burni_group *g, uint32_t slot)
{
    uint32_t k = 0;
    while (k < g->n_uses && g->uses[k].slot != slot) {
        k++;
    }
    if (k == g->n_uses) {
        g->uses[g->n_uses++].slot = slot;
    }
    return &g->uses[k];
}

static void sum_up_uses(const making *m, burni_group *g)
{
    for (uint32_t member = 0; member < m->n; member++) {
        const burni_record *r = record_of(m, member);
        for (uint32_t i = 0; i < r->launch.n_in + r->launch.n_out; i++) {
            if (r->slots[i] != BURNI_SLOT_NONE) {
                burni_group_use *use = use_of(g, r->slots[i]);
                use->uses++;
                use->writes += i >= r->launch.n_in;
                use->inner |= i >= r->launch.n_in && !m->members[member].written;
            }
        }
    }
}

static burni_group *freeze(making *m, char *why)
{
    _Alignas(8) char program[BURN_FUSED_MAX_BYTES];
    uint32_t size =
        m->is_full ? 0 : burni_fused_finish(&m->builder, program, sizeof(program));
    burni_group *g = size > 0 ? group_memory(m, m->n, size) : NULL;
    if (g == NULL) {
        (void)snprintf(why, BURNI_WHY_BYTES, size > 0 ? "no memory" : "too long for one program");
        return NULL;
    }
    g->n_members = m->n;
    g->n_in = m->n_in;
    g->n_row_uses = m->n_row_uses;
    g->n_twins = m->n_twins;
    g->may_stop = m->may_stop;
    for (uint32_t k = 0; k < m->n_in && k < 32; k++) {
        g->whole |= (uint32_t)(m->builder.inputs[k].space == BURN_FUSED_WHOLE) << k;
    }
    g->program_size = size;
    memcpy(g->members, m->members, m->n * sizeof(g->members[0]));
    memcpy(g->inputs, m->inputs, m->n_in * sizeof(g->inputs[0]));
    memcpy(g->twins, m->twins, m->n_twins * sizeof(g->twins[0]));
    memcpy(g->row_uses, m->row_uses, m->n_row_uses * sizeof(g->row_uses[0]));
    memcpy(g->program, program, size);
    for (uint32_t k = 0; k < m->n; k++) {
        g->has_rows |= m->members[k].space != BURN_FUSED_FULL || m->members[k].lines;
        if (m->members[k].written) {
            g->outputs[g->n_out++] = m->members[k].record;
        }
    }
    sum_up_uses(m, g);
    return g;
}

/* A group is run with other sizes than it was made with, without asking the row again. */
static int serves_all_sizes(const burn_row *row)
{
    return (row->flags & BURN_ROW_ANY_DIMS) != 0 && row->n_guards == 0 &&
           (row->key_facts & BURN_FACT_DIMS) == 0;
}

/* The row for today's sizes of the product. 0: there is none. */
static int follow_sizes(const burni_batch *batch, burni_group *g, int64_t length)
{
    struct burni_group_sizes now;
    if (g->sizes == NULL) {
        return 1;
    }
    measure_product(batch, g, &now);
    if (now.math == g->sizes->math && now.n == g->sizes->n &&
        memcmp(now.dims, g->sizes->dims, now.n * sizeof(now.dims[0])) == 0) {
        return 1;
    }
    const burni_resolved *row = find_row(batch, g, length);
    if (row == NULL || row->row == NULL || row->copy_mask != 0) {
        return 0;
    }
    burni_resolved_hold(row);
    burni_resolved_let_go(g->resolved);
    g->resolved = row;
    *g->sizes = now;
    return 1;
}

burni_group *burni_group_make(burni_stream *stream, const burni_batch *batch,
                              const burni_member *members, uint32_t n,
                              char why[BURNI_WHY_BYTES])
{
    making m;
    m.batch = batch;
    m.members = members;
    m.n = n;
    m.n_in = 0;
    m.n_row_uses = 0;
    m.n_twins = 0;
    m.is_full = 0;
    m.may_stop = 0;
    m.has_full = members[0].produces;
    burni_fused_begin(&m.builder);
    uint32_t has_rows = 0;
    for (uint32_t k = 0; k < n; k++) {
        add_member(&m, k);
        has_rows |= members[k].space != BURN_FUSED_FULL || members[k].lines;
    }
    if (has_rows) {
        burni_fused_set_row_input(&m.builder,
                                  burni_fused_add_input(&m.builder, BURN_I64, BURN_FUSED_ONE, 1));
    }
    if (!m.has_full) {
        (void)snprintf(why, BURNI_WHY_BYTES, "no operand has all elements");
        return NULL;
    }
    count_uses(&m);
    burni_group *g = freeze(&m, why);
    int64_t positions = 0;
    int64_t length = 0;
    if (g == NULL || !measure(batch, g, &positions, &length)) {
        burni_free(g);
        return NULL;
    }
    g->stream = stream;
    const burni_resolved *row = find_row(batch, g, length);
    int fits = row != NULL && row->row != NULL && row->copy_mask == 0;
    if (!fits || (g->sizes == NULL && !serves_all_sizes(row->row))) {
        (void)snprintf(why, BURNI_WHY_BYTES, "%s",
                       row == NULL ? "no memory"
                       : fits      ? "its row is not for sizes of all sorts"
                                   : row->why);
        burni_free(g);
        return NULL;
    }
    burni_resolved_hold(row);
    g->resolved = row;
    if (g->sizes != NULL) {
        measure_product(batch, g, g->sizes);
    }
    return g;
}

void burni_group_free(burni_group *group)
{
    if (group != NULL) {
        burni_resolved_let_go(group->resolved);
        burni_free(group);
    }
}

/* ---- running --------------------------------------------------------------------------------- */

/* The rest of the launch, once its storages are bound. */
static void fill_launch(const burni_batch *batch, const burni_group *g, burni_group_call *call)
{
    const burni_launch *last = &batch->records[g->members[g->n_members - 1].record]->launch;
    burni_launch launch = {.op = g->resolved->op,
                           .resolved = g->resolved,
                           .attrs = g->program,
                           .attrs_size = g->program_size,
                           .n_in = call->launch.n_in,
                           .n_out = call->launch.n_out,
                           .math = math_of(batch, g),
                           .dying = call->launch.dying,
                           .whole = g->whole,
                           .tag = last->tag,
                           .origin = last->origin,
                           .operands = call->operands,
                           .storages = call->storages};
    call->launch = launch;
}

uint64_t burni_group_workspace(const burni_batch *batch, burni_group *g)
{
    int64_t n = 0;
    int64_t length = 0;
    int fits = measure(batch, g, &n, &length) && follow_sizes(batch, g, length);
    return fits ? g->resolved->workspace_bytes : 0;
}

int burni_group_bind(const burni_batch *batch, burni_group *g, burni_group_call *call)
{
    int64_t n = 0;
    int64_t length = 0;
    if (!measure(batch, g, &n, &length) || !follow_sizes(batch, g, length)) {
        return 0;
    }
    bind_operands(batch, g, length, call);
    fill_launch(batch, g, call);
    return 1;
}

/* The operands are those of the last time: only memory differs. */
static void bind_again(const burni_batch *batch, const burni_group *g, burni_group_call *call)
{
    bind_storages(batch, g, call);
    memcpy(call->operands, g->bound, (call->launch.n_in + g->n_out) * sizeof(g->bound[0]));
    fill_launch(batch, g, call);
}

static void keep_bound(const burni_batch *batch, burni_group *g, const burni_group_call *call)
{
    memcpy(g->bound, call->operands, (call->launch.n_in + g->n_out) * sizeof(g->bound[0]));
    if (g->has_rows) {
        memcpy(g->length, call->length, sizeof(g->length));
        g->bound[g->n_in].data = g->length;
    }
    g->changed = batch->changed;
    g->is_bound = 1;
}

static int32_t run_fused(burni_stream *stream, const burni_batch *batch, burni_group *g,
                         burn_err *err)
{
    burni_group_call call;
    if (g->is_bound && batch->changed <= g->changed) {
        bind_again(batch, g, &call);
    } else if (burni_group_bind(batch, g, &call)) {
        keep_bound(batch, g, &call);
    } else {
        *err = (burn_err)BURN_ERR_INIT;
        return burni_fail(err, BURN_E_SHAPE, "its operands do not fit each other any more");
    }
    call.launch.dying = batch->checks ? 0 : call.launch.dying;
    return burni_launch_try(stream, &call.launch, call.operands, err);
}

/* Members that run one by one read inputs when an output of the group is written already. */
static void part_places(const burni_batch *batch, const burni_group *g)
{
    for (uint32_t j = 0; j < g->n_out; j++) {
        const burni_launch *launch = &batch->records[g->outputs[j]]->launch;
        burni_place_leave(launch->storages[launch->n_in]);
    }
}

/* As burni_record_done for each member. */
static void done(const burni_batch *batch, const burni_group *g)
{
    for (uint32_t k = 0; k < g->n_members && !batch->is_whole; k++) {
        burni_record_ran(batch->records[g->members[k].record]);
    }
    const burni_group_use *end = g->uses + g->n_uses;
    for (const burni_group_use *use = g->uses; use < end; use++) {
        if (use->inner && batch->keeps_inner) {
            continue;
        }
        burni_slot_let_go(&batch->slots[use->slot], use->uses, use->writes);
    }
}

int burni_group_run(burni_stream *stream, const burni_batch *batch, burni_group *group)
{
    burn_err err;
    int32_t rc = run_fused(stream, batch, group, &err);
    if (rc == BURN_OK) {
        if (__builtin_expect(batch->checks != 0, 0)) {
            burni_check_group(stream, batch, group);
        }
        done(batch, group);
        return BURNI_RAN_AS_ONE;
    }
    int refused = rc == BURN_E_UNSUPPORTED;
    (void)snprintf(group->apart, sizeof(group->apart), "ran apart: %.40s%s%.140s",
                   refused ? group->resolved->row->name : "", refused ? " refuses it: " : "",
                   err.text);
    group->is_bound = 0;
    part_places(batch, group);
    for (uint32_t k = 0; k < group->n_members; k++) {
        burni_stream_runs(stream, group->members[k].record);
        burni_record_run(stream, batch->slots, batch->records[group->members[k].record]);
    }
    return refused ? BURNI_REFUSED : BURNI_RAN_APART;
}
