/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * benv.c - the model of a tuning environment: sorted lists per device. See benv.h.
 *
 * Lists are small (a program has some hundred different products), so inserting moves what lies
 * behind; looking up is a binary search.
 */
#include "tune/benv.h"

#include "base/alloc.h"

#include <string.h>

/* ---- lists ----------------------------------------------------------------------------------- */

/* Room for one more item of `size` bytes at `at`; NULL: no memory or too many. */
static void *insert(void **items, uint32_t *n, uint32_t *room, size_t size, uint32_t at)
{
    if (*n >= BURNI_BENV_MAX_ENTRIES) {
        return NULL;
    }
    if (*n == *room) {
        uint32_t more = *room > 0 ? 2 * *room : 8;
        void *larger = burni_realloc(*items, more * size);
        if (larger == NULL) {
            return NULL;
        }
        *items = larger;
        *room = more;
    }
    char *place = (char *)*items + at * size;
    memmove(place + size, place, (*n - at) * size);
    memset(place, 0, size);
    (*n)++;
    return place;
}

static int compare_keys(const burni_choice *c, const void *key, uint32_t size)
{
    uint32_t common = c->key_size < size ? c->key_size : size;
    int order = common > 0 ? memcmp(c->key, key, common) : 0;
    if (order != 0) {
        return order;
    }
    return c->key_size < size ? -1 : c->key_size > size;
}

/* Where the key is, or would be. */
static uint32_t choice_place(const burni_benv_device *d, const void *key, uint32_t size)
{
    uint32_t low = 0;
    uint32_t high = d->n_choices;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_keys(&d->choices[middle], key, size) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint32_t plan_place(const burni_benv_device *d, uint64_t key)
{
    uint32_t low = 0;
    uint32_t high = d->n_plans;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (d->plans[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint32_t roof_place(const burni_benv_device *d, uint32_t what)
{
    uint32_t at = 0;
    while (at < d->n_roofs && d->roofs[at].what < what) {
        at++;
    }
    return at;
}

/* ---- life ------------------------------------------------------------------------------------ */

burni_benv *burni_benv_new(void)
{
    return burni_calloc(1, sizeof(burni_benv));
}

static void clear_device(burni_benv_device *d)
{
    for (uint32_t i = 0; i < d->n_choices; i++) {
        burni_free(d->choices[i].text);
        burni_free(d->choices[i].key);
    }
    for (uint32_t i = 0; i < d->n_plans; i++) {
        burni_free(d->plans[i].bytes);
    }
    burni_free(d->roofs);
    burni_free(d->choices);
    burni_free(d->plans);
}

void burni_benv_free(burni_benv *env)
{
    if (env == NULL) {
        return;
    }
    for (uint32_t i = 0; i < env->n_devices; i++) {
        clear_device(&env->devices[i]);
    }
    burni_free(env->devices);
    burni_free(env);
}

/* ---- devices --------------------------------------------------------------------------------- */

int burni_identity_same_hardware(const burni_identity *a, const burni_identity *b)
{
    return strcmp(a->backend, b->backend) == 0 && strcmp(a->hardware, b->hardware) == 0 &&
           strcmp(a->isa, b->isa) == 0 && a->units == b->units;
}

int burni_identity_same(const burni_identity *a, const burni_identity *b)
{
    return burni_identity_same_hardware(a, b) && strcmp(a->driver, b->driver) == 0 &&
           strcmp(a->version, b->version) == 0 && a->abi == b->abi && a->layout == b->layout &&
           a->rows == b->rows;
}

uint32_t burni_benv_find(const burni_benv *env, const burni_identity *id)
{
    for (uint32_t i = 0; i < env->n_devices; i++) {
        if (burni_identity_same(&env->devices[i].id, id)) {
            return i;
        }
    }
    return UINT32_MAX;
}

uint32_t burni_benv_need(burni_benv *env, const burni_identity *id)
{
    uint32_t at = burni_benv_find(env, id);
    if (at != UINT32_MAX || env->n_devices >= BURNI_BENV_MAX_DEVICES) {
        return at;
    }
    void *items = env->devices;
    burni_benv_device *d =
        insert(&items, &env->n_devices, &env->room, sizeof(*d), env->n_devices);
    env->devices = items;
    if (d == NULL) {
        return UINT32_MAX;
    }
    d->id = *id;
    return env->n_devices - 1;
}

void burni_benv_drop(burni_benv *env, uint32_t device)
{
    clear_device(&env->devices[device]);
    env->n_devices--;
    memmove(&env->devices[device], &env->devices[device + 1],
            (env->n_devices - device) * sizeof(env->devices[0]));
}

/* ---- entries --------------------------------------------------------------------------------- */

double burni_benv_roof(const burni_benv_device *d, uint32_t what)
{
    uint32_t at = roof_place(d, what);
    return at < d->n_roofs && d->roofs[at].what == what ? d->roofs[at].per_second : 0.0;
}

const burni_choice *burni_benv_choice(const burni_benv_device *d, const void *key, uint32_t size)
{
    uint32_t at = choice_place(d, key, size);
    int found = at < d->n_choices && compare_keys(&d->choices[at], key, size) == 0;
    return found ? &d->choices[at] : NULL;
}

const burni_plan_entry *burni_benv_plan(const burni_benv_device *d, uint64_t key)
{
    uint32_t at = plan_place(d, key);
    return at < d->n_plans && d->plans[at].key == key ? &d->plans[at] : NULL;
}

int32_t burni_benv_set_roof(burni_benv_device *d, uint32_t what, double per_second)
{
    uint32_t at = roof_place(d, what);
    if (at == d->n_roofs || d->roofs[at].what != what) {
        void *items = d->roofs;
        burni_roof *roof = insert(&items, &d->n_roofs, &d->room_roofs, sizeof(*roof), at);
        d->roofs = items;
        if (roof == NULL) {
            return BURN_E_NO_MEMORY;
        }
        roof->what = what;
    }
    d->roofs[at].per_second = per_second;
    return BURN_OK;
}

int32_t burni_benv_set_choice(burni_benv_device *d, const burni_choice *choice)
{
    unsigned char *key = burni_alloc(choice->key_size + 1u);
    char *text = burni_strdup(choice->text != NULL ? choice->text : "");
    uint32_t at = choice_place(d, choice->key, choice->key_size);
    int found = at < d->n_choices &&
                compare_keys(&d->choices[at], choice->key, choice->key_size) == 0;
    void *items = d->choices;
    burni_choice *c = NULL;
    if (key != NULL && text != NULL) {
        c = found ? &d->choices[at]
                  : insert(&items, &d->n_choices, &d->room_choices, sizeof(*c), at);
        d->choices = items;
    }
    if (c == NULL) {
        burni_free(key);
        burni_free(text);
        return BURN_E_NO_MEMORY;
    }
    memcpy(key, choice->key, choice->key_size);
    burni_free(c->key);
    burni_free(c->text);
    *c = *choice;
    c->key = key;
    c->text = text;
    return BURN_OK;
}

/* Keys are hashes, so the one behind is as good as any. */
static void make_room(burni_benv_device *d, uint64_t key)
{
    uint32_t at = plan_place(d, key);
    if (d->n_plans < BURNI_BENV_MAX_PLANS || (at < d->n_plans && d->plans[at].key == key)) {
        return;
    }
    at %= d->n_plans;
    burni_free(d->plans[at].bytes);
    d->n_plans--;
    memmove(&d->plans[at], &d->plans[at + 1], (d->n_plans - at) * sizeof(d->plans[0]));
}

int32_t burni_benv_set_plan(burni_benv_device *d, uint64_t key, const void *bytes, uint64_t size)
{
    if (size > BURNI_BENV_MAX_PLAN) {
        return BURN_E_LIMIT;
    }
    make_room(d, key);
    unsigned char *copy = burni_alloc((size_t)size + 1);
    uint32_t at = plan_place(d, key);
    int found = at < d->n_plans && d->plans[at].key == key;
    void *items = d->plans;
    burni_plan_entry *p = NULL;
    if (copy != NULL) {
        p = found ? &d->plans[at] : insert(&items, &d->n_plans, &d->room_plans, sizeof(*p), at);
        d->plans = items;
    }
    if (p == NULL) {
        burni_free(copy);
        return BURN_E_NO_MEMORY;
    }
    if (size > 0) {
        memcpy(copy, bytes, (size_t)size);
    }
    burni_free(p->bytes);
    p->key = key;
    p->size = size;
    p->bytes = copy;
    return BURN_OK;
}

/* ---- merging --------------------------------------------------------------------------------- */

static int32_t merge_device(burni_benv_device *to, const burni_benv_device *from, int replace)
{
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < from->n_roofs && rc == BURN_OK; i++) {
        const burni_roof *r = &from->roofs[i];
        if (burni_benv_roof(to, r->what) < r->per_second) {
            rc = burni_benv_set_roof(to, r->what, r->per_second);
        }
    }
    for (uint32_t i = 0; i < from->n_choices && rc == BURN_OK; i++) {
        const burni_choice *c = &from->choices[i];
        if (replace || burni_benv_choice(to, c->key, c->key_size) == NULL) {
            rc = burni_benv_set_choice(to, c);
        }
    }
    for (uint32_t i = 0; i < from->n_plans && rc == BURN_OK; i++) {
        const burni_plan_entry *p = &from->plans[i];
        if (replace || burni_benv_plan(to, p->key) == NULL) {
            rc = burni_benv_set_plan(to, p->key, p->bytes, p->size);
        }
    }
    return rc;
}

int32_t burni_benv_merge(burni_benv *to, const burni_benv *from, int replace)
{
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < from->n_devices && rc == BURN_OK; i++) {
        uint32_t at = burni_benv_need(to, &from->devices[i].id);
        rc = at != UINT32_MAX ? merge_device(&to->devices[at], &from->devices[i], replace)
                              : BURN_E_NO_MEMORY;
    }
    return rc;
}
