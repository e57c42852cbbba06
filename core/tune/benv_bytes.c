/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * benv_bytes.c - the file form of a tuning environment. See benv.h.
 *
 * A head of 40 bytes: "BURNENV" and a zero, version, number of devices, size of the whole, checksum
 * (FNV-1a) of all that follows the head, 8 zero bytes. Then per device: its identity, counts,
 * roofs, choices, plans. Numbers are little-endian, texts have a length of 16 bits and no end,
 * blobs one of 32. Lists ascend by key. Nothing is aligned; nothing is behind the last entry. The
 * reader checks each number before it is used and takes no memory that the bytes left could not
 * fill.
 */
#include "tune/benv.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum { HEAD = 40, CHECKSUM_AT = 24 };

/* Least bytes of an entry: counts beyond what is left can be refused before memory is taken. */
enum { ROOF_BYTES = 12, CHOICE_BYTES = 46, PLAN_BYTES = 12 };

static const char magic[8] = "BURNENV";

static uint64_t checksum(const unsigned char *bytes, uint64_t size)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (uint64_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Bytes that grow; after a failure nothing is added any more. */
typedef struct writer {
    unsigned char *bytes;
    uint64_t used;
    uint64_t room;
    int failed;
} writer;

static void put(writer *w, const void *bytes, uint64_t n)
{
    if (w->failed || n > BURNI_BENV_MAX_BYTES - w->used) {
        w->failed = 1;
        return;
    }
    if (w->used + n > w->room) {
        uint64_t room = 2 * (w->used + n) + 256;
        unsigned char *larger = burni_realloc(w->bytes, (size_t)room);
        if (larger == NULL) {
            w->failed = 1;
            return;
        }
        w->bytes = larger;
        w->room = room;
    }
    if (n > 0) {
        memcpy(w->bytes + w->used, bytes, (size_t)n);
    }
    w->used += n;
}

static void put_number(writer *w, uint64_t value, uint32_t n)
{
    unsigned char bytes[8];
    for (uint32_t i = 0; i < n; i++) {
        bytes[i] = (unsigned char)(value >> (8 * i));
    }
    put(w, bytes, n);
}

static void put_double(writer *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put_number(w, bits, 8);
}

static void put_text(writer *w, const char *text)
{
    size_t n = strlen(text);
    put_number(w, n, 2);
    put(w, text, n);
}

static void put_identity(writer *w, const burni_identity *id)
{
    put_text(w, id->backend);
    put_text(w, id->hardware);
    put_text(w, id->isa);
    put_text(w, id->driver);
    put_text(w, id->version);
    put_number(w, id->units, 4);
    put_number(w, id->abi, 4);
    put_number(w, id->layout, 8);
    put_number(w, id->rows, 8);
}

static void put_choice(writer *w, const burni_choice *c)
{
    put_number(w, c->key_size, 4);
    put(w, c->key, c->key_size);
    put_number(w, c->candidates, 8);
    put_number(w, c->revision, 4);
    put_number(w, c->n_candidates, 4);
    put_number(w, c->flags, 4);
    put_double(w, c->seconds);
    put_double(w, c->rival_seconds);
    put_text(w, c->row);
    put_text(w, c->rival);
    put_text(w, c->text);
}

static void put_device(writer *w, const burni_benv_device *d)
{
    put_identity(w, &d->id);
    put_number(w, d->n_roofs, 4);
    put_number(w, d->n_choices, 4);
    put_number(w, d->n_plans, 4);
    for (uint32_t i = 0; i < d->n_roofs; i++) {
        put_number(w, d->roofs[i].what, 4);
        put_double(w, d->roofs[i].per_second);
    }
    for (uint32_t i = 0; i < d->n_choices; i++) {
        put_choice(w, &d->choices[i]);
    }
    for (uint32_t i = 0; i < d->n_plans; i++) {
        put_number(w, d->plans[i].key, 8);
        put_number(w, d->plans[i].size, 4);
        put(w, d->plans[i].bytes, d->plans[i].size);
    }
}

static void put_back(unsigned char *at, uint64_t value)
{
    for (uint32_t i = 0; i < 8; i++) {
        at[i] = (unsigned char)(value >> (8 * i));
    }
}

unsigned char *burni_benv_encode(const burni_benv *env, uint64_t *size)
{
    writer w = {NULL, 0, 0, 0};
    put(&w, magic, sizeof(magic));
    put_number(&w, BURNI_BENV_VERSION, 4);
    put_number(&w, env->n_devices, 4);
    put_number(&w, 0, 8); /* the size, below */
    put_number(&w, 0, 8); /* the checksum */
    put_number(&w, 0, 8);
    for (uint32_t i = 0; i < env->n_devices; i++) {
        put_device(&w, &env->devices[i]);
    }
    if (w.failed) {
        burni_free(w.bytes);
        return NULL;
    }
    put_back(w.bytes + 16, w.used);
    put_back(w.bytes + CHECKSUM_AT, checksum(w.bytes + HEAD, w.used - HEAD));
    *size = w.used;
    return w.bytes;
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct reader {
    const unsigned char *bytes;
    uint64_t size;
    uint64_t at;
    burn_err *err;
    int32_t rc; /* of the first thing that was wrong; from then on everything reads as 0 */
} reader;

static void wrong(reader *r, const char *what)
{
    if (r->rc == BURN_OK) {
        r->rc = burni_fail(r->err, BURN_E_FORMAT, "offset %llu: %s", (unsigned long long)r->at,
                           what);
    }
}

static void out_of_memory(reader *r)
{
    if (r->rc == BURN_OK) {
        r->rc = burni_fail(r->err, BURN_E_NO_MEMORY, "out of host memory");
    }
}

/* The next n bytes; NULL when they are not there. */
static const unsigned char *take(reader *r, uint64_t n, const char *what)
{
    if (r->rc != BURN_OK) {
        return NULL;
    }
    if (n > r->size - r->at) {
        wrong(r, what);
        return NULL;
    }
    const unsigned char *bytes = r->bytes + r->at;
    r->at += n;
    return bytes;
}

static uint64_t number(reader *r, uint32_t n)
{
    const unsigned char *bytes = take(r, n, "it ends in the middle of a number");
    uint64_t value = 0;
    for (uint32_t i = 0; bytes != NULL && i < n; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

static double positive(reader *r, const char *what)
{
    uint64_t bits = number(r, 8);
    double value;
    memcpy(&value, &bits, sizeof(value));
    if (!isfinite(value) || value < 0.0) {
        r->at -= r->rc == BURN_OK ? 8 : 0;
        wrong(r, what);
        return 0.0;
    }
    return value;
}

/* A text of printable bytes into `out`. */
static void text(reader *r, char *out, size_t room)
{
    uint64_t start = r->at;
    uint64_t n = number(r, 2);
    if (r->rc == BURN_OK && n >= room) {
        r->at = start;
        wrong(r, "a text is longer than it may be");
    }
    const unsigned char *bytes = take(r, n, "it ends in the middle of a text");
    for (uint64_t i = 0; bytes != NULL && i < n; i++) {
        if (bytes[i] < 0x20 || bytes[i] == 0x7f) {
            r->at = start + 2 + i;
            wrong(r, "a text has a control byte");
            bytes = NULL;
        }
    }
    if (bytes == NULL) {
        out[0] = '\0';
        return;
    }
    memcpy(out, bytes, (size_t)n);
    out[n] = '\0';
}

static void read_identity(reader *r, burni_identity *id)
{
    text(r, id->backend, sizeof(id->backend));
    text(r, id->hardware, sizeof(id->hardware));
    text(r, id->isa, sizeof(id->isa));
    text(r, id->driver, sizeof(id->driver));
    text(r, id->version, sizeof(id->version));
    id->units = (uint32_t)number(r, 4);
    id->abi = (uint32_t)number(r, 4);
    id->layout = number(r, 8);
    id->rows = number(r, 8);
}

/* How many entries follow; as many as could be there at all. */
static uint32_t count(reader *r, uint32_t least)
{
    uint32_t n = (uint32_t)number(r, 4);
    if (r->rc == BURN_OK && (n > BURNI_BENV_MAX_ENTRIES || n > (r->size - r->at) / least)) {
        r->at -= 4;
        wrong(r, "more entries than there is room for");
    }
    return r->rc == BURN_OK ? n : 0;
}

static void read_roof(reader *r, burni_benv_device *d)
{
    uint64_t start = r->at;
    uint32_t what = (uint32_t)number(r, 4);
    double value = positive(r, "a throughput is no positive number");
    if (r->rc == BURN_OK && d->n_roofs > 0 && d->roofs[d->n_roofs - 1].what >= what) {
        r->at = start;
        wrong(r, "throughputs do not ascend");
    }
    if (r->rc == BURN_OK && burni_benv_set_roof(d, what, value) != BURN_OK) {
        out_of_memory(r);
    }
}

/* Keys ascend: the new one is behind the last. */
static int ascends(const burni_benv_device *d, const burni_choice *c)
{
    if (d->n_choices == 0) {
        return 1;
    }
    const burni_choice *last = &d->choices[d->n_choices - 1];
    uint32_t common = last->key_size < c->key_size ? last->key_size : c->key_size;
    int order = memcmp(last->key, c->key, common);
    return order < 0 || (order == 0 && last->key_size < c->key_size);
}

static void read_choice(reader *r, burni_benv_device *d)
{
    burni_choice c;
    char line[512];
    unsigned char key[BURNI_BENV_MAX_KEY];
    memset(&c, 0, sizeof(c));
    uint64_t start = r->at;
    c.key_size = (uint32_t)number(r, 4);
    if (r->rc == BURN_OK && (c.key_size == 0 || c.key_size > BURNI_BENV_MAX_KEY)) {
        r->at = start;
        wrong(r, "a key is empty or too long");
    }
    const unsigned char *bytes = take(r, c.key_size, "it ends in the middle of a key");
    if (bytes != NULL) {
        memcpy(key, bytes, c.key_size);
        c.key = key;
        if (!ascends(d, &c)) {
            r->at = start;
            wrong(r, "keys do not ascend");
        }
    }
    c.candidates = number(r, 8);
    c.revision = (uint32_t)number(r, 4);
    c.n_candidates = (uint32_t)number(r, 4);
    c.flags = (uint32_t)number(r, 4);
    c.seconds = positive(r, "a time is no positive number");
    c.rival_seconds = positive(r, "a time is no positive number");
    text(r, c.row, sizeof(c.row));
    uint32_t known_flags = BURNI_CHOICE_AT_ROOF;
    if (r->rc == BURN_OK && (c.row[0] == '\0' || (c.flags & ~known_flags) != 0)) {
        wrong(r, "a choice names no row, or its flags are not known");
    }
    text(r, c.rival, sizeof(c.rival));
    text(r, line, sizeof(line));
    c.text = line;
    if (r->rc == BURN_OK && burni_benv_set_choice(d, &c) != BURN_OK) {
        out_of_memory(r);
    }
}

static void read_plan(reader *r, burni_benv_device *d)
{
    uint64_t start = r->at;
    uint64_t key = number(r, 8);
    uint64_t size = number(r, 4);
    if (r->rc == BURN_OK && d->n_plans > 0 && d->plans[d->n_plans - 1].key >= key) {
        r->at = start;
        wrong(r, "plans do not ascend");
    }
    const unsigned char *bytes = take(r, size, "it ends in the middle of a plan");
    if (bytes == NULL) {
        return;
    }
    int32_t rc = burni_benv_set_plan(d, key, bytes, size);
    if (rc == BURN_E_LIMIT) {
        wrong(r, "a plan is larger than it may be");
    } else if (rc != BURN_OK) {
        out_of_memory(r);
    }
}

static void read_device(reader *r, burni_benv *env)
{
    uint64_t start = r->at;
    burni_identity id;
    memset(&id, 0, sizeof(id));
    read_identity(r, &id);
    uint32_t roofs = count(r, ROOF_BYTES);
    uint32_t choices = count(r, CHOICE_BYTES);
    uint32_t plans = count(r, PLAN_BYTES);
    if (r->rc == BURN_OK && plans > BURNI_BENV_MAX_PLANS) {
        wrong(r, "a device has more plans than it may have");
    }
    if (r->rc == BURN_OK && (id.backend[0] == '\0' || burni_benv_find(env, &id) != UINT32_MAX)) {
        r->at = start;
        wrong(r, "a device has no backend, or is there twice");
    }
    uint32_t at = r->rc == BURN_OK ? burni_benv_need(env, &id) : UINT32_MAX;
    if (at == UINT32_MAX) {
        out_of_memory(r);
        return;
    }
    burni_benv_device *d = &env->devices[at];
    for (uint32_t i = 0; i < roofs && r->rc == BURN_OK; i++) {
        read_roof(r, d);
    }
    for (uint32_t i = 0; i < choices && r->rc == BURN_OK; i++) {
        read_choice(r, d);
    }
    for (uint32_t i = 0; i < plans && r->rc == BURN_OK; i++) {
        read_plan(r, d);
    }
}

/* Number of devices. */
static uint32_t read_head(reader *r)
{
    const unsigned char *start = take(r, sizeof(magic), "it is shorter than its head");
    if (start != NULL && memcmp(start, magic, sizeof(magic)) != 0) {
        r->at = 0;
        wrong(r, "this is no environment of Burn-C");
    }
    uint64_t version = number(r, 4);
    if (r->rc == BURN_OK && version != BURNI_BENV_VERSION) {
        r->rc = burni_fail(r->err, BURN_E_FORMAT,
                           "offset 8: its version is %llu, this library reads %u",
                           (unsigned long long)version, BURNI_BENV_VERSION);
    }
    uint64_t devices = number(r, 4);
    if (r->rc == BURN_OK && devices > BURNI_BENV_MAX_DEVICES) {
        r->at -= 4;
        wrong(r, "more devices than there may be");
    }
    uint64_t size = number(r, 8);
    if (r->rc == BURN_OK && size != r->size) {
        r->rc = burni_fail(r->err, BURN_E_FORMAT,
                           "offset 16: it says that it has %llu bytes, there are %llu",
                           (unsigned long long)size, (unsigned long long)r->size);
    }
    uint64_t sum = number(r, 8);
    if (number(r, 8) != 0) {
        r->at -= 8;
        wrong(r, "bytes that must be 0 are not");
    }
    if (r->rc == BURN_OK && checksum(r->bytes + HEAD, r->size - HEAD) != sum) {
        r->at = CHECKSUM_AT;
        wrong(r, "the checksum is another one: the file is damaged");
    }
    return r->rc == BURN_OK ? (uint32_t)devices : 0;
}

int32_t burni_benv_decode(const void *bytes, uint64_t size, burni_benv **out, burn_err *err)
{
    reader r = {bytes, size, 0, err, BURN_OK};
    *out = NULL;
    if (size > BURNI_BENV_MAX_BYTES) {
        return burni_fail(err, BURN_E_FORMAT, "offset 0: %llu bytes are more than there may be",
                          (unsigned long long)size);
    }
    burni_benv *env = burni_benv_new();
    if (env == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
    }
    uint32_t devices = read_head(&r);
    for (uint32_t i = 0; i < devices && r.rc == BURN_OK; i++) {
        read_device(&r, env);
    }
    if (r.rc == BURN_OK && r.at != size) {
        wrong(&r, "bytes follow behind the last entry");
    }
    if (r.rc != BURN_OK) {
        burni_benv_free(env);
        return r.rc;
    }
    *out = env;
    return BURN_OK;
}
