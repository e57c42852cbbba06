/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * benv.h - what a tuning environment holds, and its bytes.
 *
 * Owns the model in memory (devices with roofs, choices of kernels and plans) and the one encoding
 * of it; the reader takes every byte as hostile and reads all or nothing. It knows no files, no
 * threads and no device. Lists are sorted by key, so that equal contents have equal bytes. Objects
 * belong to one thread at a time. To keep one more kind of thing: a list here, its record in
 * benv_bytes.c, and a new BURNI_BENV_VERSION.
 */
#ifndef BURN_CORE_TUNE_BENV_H
#define BURN_CORE_TUNE_BENV_H

#include <burn/base.h>
#include <burn/status.h>

#define BURNI_BENV_VERSION 1u
#define BURNI_BENV_MAX_BYTES (UINT64_C(64) << 20)
#define BURNI_BENV_MAX_DEVICES 256u
#define BURNI_BENV_MAX_ENTRIES 65536u /* of one kind, of one device */
#define BURNI_BENV_MAX_KEY 8192u
#define BURNI_BENV_MAX_PLANS 256u /* of one device; one more takes the place of another */
#define BURNI_BENV_MAX_PLAN 16384u /* bytes */
#define BURNI_BENV_NAME 96 /* of a row; its end included */

/* What results of a device hold for; when any of it differs they are of no use. */
typedef struct burni_identity {
    char backend[64];
    char hardware[96];
    char isa[96];
    char driver[64];
    char version[64]; /* the plugin's */
    uint32_t units;   /* threads, compute units */
    uint32_t abi;
    uint64_t layout; /* hash of the ABI's structs */
    uint64_t rows;   /* hash of names and revisions of the backend's rows */
} burni_identity;

/* Throughput that the device was seen to reach: operations per second by dtype and math mode, or
 * bytes per second. */
#define BURNI_ROOF_BYTES UINT32_C(0xffffffff)
typedef struct burni_roof {
    uint32_t what; /* dtype | math mode << 8, or BURNI_ROOF_BYTES */
    uint32_t zero;
    double per_second;
} burni_roof;

/* burni_choice.flags */
enum { BURNI_CHOICE_AT_ROOF = 1 /* stopped early: nothing better is possible */ };

/* Which row serves a call. */
typedef struct burni_choice {
    uint64_t candidates; /* hash of names and revisions of all rows that were to choose from */
    uint32_t revision;
    uint32_t n_candidates;
    uint32_t flags;
    uint32_t key_size;
    double seconds;
    double rival_seconds; /* 0: no other row was measured */
    char row[BURNI_BENV_NAME];
    char rival[BURNI_BENV_NAME]; /* the row of the highest priority, else the next best; "" */
    char *text;                  /* "matmul(f32[2,3], f32[3,4])", for people */
    unsigned char *key;
} burni_choice;

typedef struct burni_plan_entry {
    uint64_t key;
    uint64_t size;
    unsigned char *bytes;
} burni_plan_entry;

typedef struct burni_benv_device {
    burni_identity id;
    uint32_t n_roofs;
    uint32_t n_choices;
    uint32_t n_plans;
    uint32_t room_roofs;
    uint32_t room_choices;
    uint32_t room_plans;
    burni_roof *roofs;
    burni_choice *choices;
    burni_plan_entry *plans;
} burni_benv_device;

typedef struct burni_benv {
    burni_benv_device *devices;
    uint32_t n_devices;
    uint32_t room;
} burni_benv;

/* ---- the model (benv.c) ---- */

burni_benv *burni_benv_new(void);
void burni_benv_free(burni_benv *env);

int burni_identity_same(const burni_identity *a, const burni_identity *b);
/* The same machine, whatever the software. */
int burni_identity_same_hardware(const burni_identity *a, const burni_identity *b);

/* Index of the device; UINT32_MAX when there is none. */
uint32_t burni_benv_find(const burni_benv *env, const burni_identity *id);
/* The same, added when it is not there; UINT32_MAX: no memory or too many. */
uint32_t burni_benv_need(burni_benv *env, const burni_identity *id);
void burni_benv_drop(burni_benv *env, uint32_t device);

/* NULL or 0 when there is none. Pointers are valid until the device changes. */
double burni_benv_roof(const burni_benv_device *d, uint32_t what);
const burni_choice *burni_benv_choice(const burni_benv_device *d, const void *key, uint32_t size);
const burni_plan_entry *burni_benv_plan(const burni_benv_device *d, uint64_t key);

/* Copies take the place of what has the same key. BURN_E_NO_MEMORY, BURN_E_LIMIT. */
int32_t burni_benv_set_roof(burni_benv_device *d, uint32_t what, double per_second);
int32_t burni_benv_set_choice(burni_benv_device *d, const burni_choice *choice);
int32_t burni_benv_set_plan(burni_benv_device *d, uint64_t key, const void *bytes, uint64_t size);

/* Adds what `from` has and `to` lacks; with `replace` also what both have. Higher roofs win. */
int32_t burni_benv_merge(burni_benv *to, const burni_benv *from, int replace);

/* ---- the bytes (benv_bytes.c) ---- */

/* A block to be freed with burni_free; NULL when memory is short or there is too much. */
unsigned char *burni_benv_encode(const burni_benv *env, uint64_t *size);
/* All of it or nothing: errors name the offset and what is wrong there. */
int32_t burni_benv_decode(const void *bytes, uint64_t size, burni_benv **out, burn_err *err);

#endif /* BURN_CORE_TUNE_BENV_H */
