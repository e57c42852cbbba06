/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tuner.c - gathers the candidates of a call, runs them, keeps what won. See tuner.h.
 *
 * The key has everything that changes the kernel: op, attributes, math mode, and dtype, layout and
 * dims of each operand; with it goes a hash of the candidates' names and revisions, so that a newer
 * kernel is measured anew. How fast the device can be is measured by tuner_scratch.c. What fails on
 * the way (memory, a queue) leaves the row that would serve anyway.
 */
#include "exec/tuner.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/printer.h"
#include "exec/match.h"
#include "exec/tuner_scratch.h"
#include "loader/entry.h"
#include "ops/rules.h"
#include "tune/environment.h"
#include "tune/race.h"

#include <burn/dtype.h>
#include <stdio.h>
#include <string.h>

#define BUDGET 0.1 /* seconds of a race */

/* Races disturb each other. Never held while another lock is taken that a launch may want. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static const char *_Atomic forced;

void burni_tuner_force(const char *row)
{
    atomic_store(&forced, row);
}

/* ---- identity -------------------------------------------------------------------------------- */

static uint64_t hash_name(uint64_t hash, const burn_row *row)
{
    for (const char *at = row->name; *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    }
    for (uint32_t i = 0; i < 4; i++) {
        hash = (hash ^ (row->name_revision >> (8 * i) & 255)) * UINT64_C(1099511628211);
    }
    return hash;
}

#define HASH_START UINT64_C(14695981039346656037)

/* Of the backend's own rows; those of extensions may come and go. */
static uint64_t hash_rows(const burn_plugin *plugin, const char *backend)
{
    uint64_t hash = HASH_START;
    for (uint32_t s = 0; s < plugin->n_row_sets; s++) {
        const burn_row_set *set =
            (const burn_row_set *)(const void *)((const char *)plugin->row_sets +
                                                 (size_t)s * plugin->row_set_stride);
        for (uint32_t i = 0; strcmp(set->backend, backend) == 0 && i < set->n_rows; i++) {
            hash = hash_name(hash, (const burn_row *)(const void *)((const char *)set->rows +
                                                                    (size_t)i * set->row_stride));
        }
    }
    return hash;
}

void burni_tuner_know(burni_device *device)
{
    burn_device_info info;
    burni_identity id;
    if (burni_environment_on() == 0 || burni_environment_knows(device->name)) {
        return;
    }
    BURN_INIT(&info, burn_device_info);
    memset(&id, 0, sizeof(id));
    if (burni_loader_device_info(device->backend, device->ordinal, &info, NULL) != BURN_OK) {
        return;
    }
    const burn_plugin *plugin = device->plugin;
    burni_text_clean(id.backend, sizeof(id.backend), device->backend);
    burni_text_clean(id.hardware, sizeof(id.hardware), info.name);
    burni_text_clean(id.isa, sizeof(id.isa), info.isa);
    burni_text_clean(id.driver, sizeof(id.driver), info.driver);
    const char *version = plugin->version != NULL ? plugin->version : "";
    burni_text_clean(id.version, sizeof(id.version), version);
    id.units = info.units;
    id.abi = BURN_ABI_CURRENT;
    id.layout = BURN_LAYOUT_HASH;
    id.rows = hash_rows(plugin, device->backend);
    burni_environment_device(device->name, &id);
}

void burni_tuner_changed(void)
{
    burni_device *device = NULL;
    for (uint32_t i = 0; (device = burni_device_at(i)) != NULL; i++) {
        burni_tuner_know(device);
        (void)atomic_fetch_add_explicit(&device->rows_version, 1, memory_order_release);
    }
}

/* ---- keys ------------------------------------------------------------------------------------ */

typedef struct key_bytes {
    unsigned char bytes[BURNI_BENV_MAX_KEY];
    uint32_t size;
    int fits;
} key_bytes;

static void key_number(key_bytes *k, uint64_t value, uint32_t n)
{
    if (!k->fits || k->size + n > sizeof(k->bytes)) {
        k->fits = 0;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        k->bytes[k->size++] = (unsigned char)(value >> (8 * i));
    }
}

static void make_key(key_bytes *k, const burni_op *op, const burn_call *call)
{
    k->size = 0;
    k->fits = 1;
    key_number(k, op->def.id, 8);
    key_number(k, op->def.revision, 4);
    key_number(k, call->flags, 4);
    key_number(k, call->n_in, 2);
    key_number(k, call->n_out, 2);
    for (uint32_t i = 0; i < call->n_in + call->n_out; i++) {
        const burn_operand *o = &call->operands[i];
        key_number(k, o->kind, 1);
        key_number(k, o->dtype, 1);
        key_number(k, o->rank, 1);
        key_number(k, o->layout, 1);
        for (uint32_t d = 0; o->kind == BURN_TENSOR && d < o->rank; d++) {
            key_number(k, (uint64_t)o->dims[d], 8);
        }
    }
    key_number(k, call->attrs_size, 4);
    for (uint32_t i = 0; i < call->attrs_size; i++) {
        key_number(k, ((const unsigned char *)call->attrs)[i], 1);
    }
}

/* Whole numbers only: they are what tells convolutions apart. "stride[0]", "stride[1]" are printed
 * as "stride 1x1". */
static void print_attrs(burni_printer *p, const burn_op_def *def, const burn_call *call)
{
    for (uint32_t a = 0; a < def->n_attrs; a++) {
        const burn_attr *attr = &def->attrs[a];
        int64_t value;
        if (attr->type != BURN_ATTR_I64 || attr->offset + sizeof(value) > call->attrs_size) {
            continue;
        }
        memcpy(&value, (const char *)call->attrs + attr->offset, sizeof(value));
        const char *index = strchr(attr->name, '[');
        if (index != NULL && strcmp(index, "[0]") != 0) {
            burni_print(p, "x%lld", (long long)value);
        } else {
            int n = index != NULL ? (int)(index - attr->name) : 32;
            burni_print(p, ", %.*s %lld", n, attr->name, (long long)value);
        }
    }
}

static void print_call(char *out, size_t size, const burni_op *op, const burn_call *call)
{
    burni_printer p = {out, size, 0};
    burni_print(&p, "%.64s(", op->def.name);
    for (uint32_t i = 0; i < call->n_in && p.used < size / 2; i++) {
        const burn_operand *o = &call->operands[i];
        char dims[192];
        if (o->kind != BURN_TENSOR) {
            burni_print(&p, "%s-", i > 0 ? ", " : "");
            continue;
        }
        burni_print(&p, "%s%s%s", i > 0 ? ", " : "", burn_dtype_name(o->dtype),
                    burni_shape_text(dims, sizeof(dims), o->rank, o->dims));
        if (o->layout != BURN_LAYOUT_CONTIGUOUS) {
            burni_print(&p, " ");
            burni_print_layouts(&p, o->layout);
        }
    }
    print_attrs(&p, &op->def, call);
    burni_print(&p, ")");
}

/* ---- candidates ------------------------------------------------------------------------------ */

static int is_candidate(const burni_resolved *r, const burn_row *row, const burn_call *call)
{
    uint32_t mask = 0;
    const uint32_t never = BURN_ROW_FAULTS; /* scratch numbers may be out of its range */
    return (row->flags & BURN_ROW_TUNABLE) != 0 && (row->flags & never) == 0 &&
           row->name != NULL && strlen(row->name) < BURNI_BENV_NAME &&
           burni_match_row(r->op, row, call, &mask, NULL) && mask == r->copy_mask;
}

static void gather(burni_field *f, const burni_resolved *r, const burni_rows *rows,
                   const burn_call *call)
{
    f->n = 0;
    f->call = call;
    /* What serves anyway comes first; it is prepared again, so that losers are released alike. */
    if (is_candidate(r, r->row, call) &&
        burni_accept_row(r->row, call, &f->prepared[0], NULL) == BURN_OK) {
        f->rows[f->n++] = r->row;
    }
    for (uint32_t i = 0; f->n > 0 && i < rows->count && f->n < BURNI_RACE_MAX; i++) {
        if (rows->rows[i] != r->row && is_candidate(r, rows->rows[i], call) &&
            burni_accept_row(rows->rows[i], call, &f->prepared[f->n], NULL) == BURN_OK) {
            f->rows[f->n++] = rows->rows[i];
        }
    }
}

static uint64_t hash_candidates(const burni_field *f)
{
    uint64_t hash = HASH_START;
    for (uint32_t i = 0; i < f->n; i++) {
        hash = hash_name(hash, f->rows[i]);
    }
    return hash;
}

static void release_state(const burn_row *row, const void *state)
{
    if (row->release != NULL && state != NULL) {
        row->release(state);
    }
}

/* ---- choosing -------------------------------------------------------------------------------- */

static uint32_t find_row(const burni_field *f, const char *name)
{
    uint32_t at = 0;
    while (at < f->n && strcmp(f->rows[at]->name, name) != 0) {
        at++;
    }
    return at;
}

static void apply(burni_resolved *r, burni_field *f, uint32_t winner, const burni_choice *c)
{
    const burn_prepared *p = &f->prepared[winner];
    release_state(r->row, r->state);
    r->row = f->rows[winner];
    r->state = p->state;
    r->workspace_bytes = p->workspace_bytes;
    r->in_place_mask = p->in_place_mask;
    f->prepared[winner].state = NULL; /* it is in use now */
    r->tuned = BURNI_TUNED | ((c->flags & BURNI_CHOICE_AT_ROOF) != 0 ? BURNI_TUNED_AT_ROOF : 0u);
    uint32_t rival = find_row(f, c->rival);
    r->rival = rival < f->n ? f->rows[rival] : NULL;
    r->gain = c->seconds > 0.0 ? (float)(c->rival_seconds / c->seconds) : 0.0F;
}

static void fill_choice(burni_choice *c, const burni_field *f, const burni_race *race)
{
    c->n_candidates = f->n;
    c->flags = race->at_roof ? BURNI_CHOICE_AT_ROOF : 0u;
    c->seconds = race->seconds[race->winner];
    c->revision = f->rows[race->winner]->name_revision;
    (void)snprintf(c->row, sizeof(c->row), "%s", f->rows[race->winner]->name);
    if (race->rival < f->n) {
        c->rival_seconds = race->seconds[race->rival];
        (void)snprintf(c->rival, sizeof(c->rival), "%s", f->rows[race->rival]->name);
    }
}

static void tell(const burni_device *device, const burni_field *f, const burni_race *race,
                 const char *text)
{
    char line[512];
    burni_printer p = {line, sizeof(line), 0};
    for (uint32_t i = 0; i < f->n; i++) {
        burni_print(&p, "%s%s ", i > 0 ? ", " : "", f->rows[i]->name);
        if (race->seconds[i] > 0.0) {
            burni_print(&p, "%.1f us", race->seconds[i] * 1e6);
        } else {
            burni_print(&p, race->seconds[i] < 0.0 ? "failed" : "not run");
        }
    }
    burni_log(BURN_LOG_DEBUG, "tuner", "%s on %s: %s; %s%s", text, device->name, line,
              f->rows[race->winner]->name,
              race->at_roof ? ", nothing better is possible" : "");
}

/* Measures; 0 when that could not be done. */
static int measure(burni_device *device, burni_field *f, burni_choice *c, const char *text)
{
    burni_race race;
    memset(&race, 0, sizeof(race));
    race.n = f->n;
    race.budget = BUDGET;
    if (!burni_field_open(f, device)) {
        return 0;
    }
    race.run = burni_field_run;
    race.user = f;
    race.bound = burni_field_bound(f);
    int ran = burni_race_run(&race);
    burni_field_close(f);
    if (ran) {
        fill_choice(c, f, &race);
        burni_field_raise(f, c->seconds, race.winner);
        if (burni_log_wants(BURN_LOG_DEBUG)) {
            tell(device, f, &race, text);
        }
    }
    return ran;
}

/* Under `turn`: of two threads that ask for one key, the second finds what the first measured. */
static void choose(burni_resolved *r, burni_device *device, burni_field *f, const key_bytes *key)
{
    burni_choice c;
    char text[400];
    uint64_t candidates = hash_candidates(f);
    if (burni_environment_find(device->name, key->bytes, key->size, candidates, &c)) {
        uint32_t winner = find_row(f, c.row);
        if (winner < f->n && f->rows[winner]->name_revision == c.revision) {
            apply(r, f, winner, &c);
            return;
        }
    }
    memset(&c, 0, sizeof(c));
    print_call(text, sizeof(text), r->op, f->call);
    c.text = text;
    if (!measure(device, f, &c, text)) {
        return;
    }
    c.candidates = candidates;
    c.key_size = key->size;
    c.key = (unsigned char *)(uintptr_t)key->bytes;
    burni_environment_keep(device->name, &c);
    apply(r, f, find_row(f, c.row), &c);
}

void burni_tuner_choose(burni_resolved *r, burni_device *device, const burni_rows *rows,
                        const burn_call *call)
{
    burni_field field;
    key_bytes key;
    if (r->op->def.effect != BURN_EFFECT_PURE || atomic_load(&device->closed)) {
        return;
    }
    memset(&field, 0, sizeof(field));
    gather(&field, r, rows, call);
    make_key(&key, r->op, call);
    if (field.n > 1 && key.fits) {
        const char *wanted = atomic_load(&forced);
        burni_choice c;
        memset(&c, 0, sizeof(c));
        burni_tuner_know(device);
        (void)pthread_mutex_lock(&turn);
        if (wanted == NULL) {
            choose(r, device, &field, &key);
        } else if (find_row(&field, wanted) < field.n) {
            apply(r, &field, find_row(&field, wanted), &c);
        }
        (void)pthread_mutex_unlock(&turn);
    }
    for (uint32_t i = 0; i < field.n; i++) {
        release_state(field.rows[i], field.prepared[i].state);
    }
}

void burni_tuner_print(const burni_resolved *r, char *out, size_t size)
{
    burni_printer p = {out, size, 0};
    burni_print(&p, "tuned: row %.64s", r->row->name);
    if (r->rival != NULL && r->gain > 0.0F) {
        burni_print(&p, ", %.*fx of row %.64s", r->gain < 10.0F ? 2 : 0, (double)r->gain,
                    r->rival->name);
    }
    if ((r->tuned & BURNI_TUNED_AT_ROOF) != 0) {
        burni_print(&p, ", nothing better is possible");
    }
}
