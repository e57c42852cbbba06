/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * replay.c - a driver for fuzz targets without libFuzzer: runs every file of a corpus folder, then
 * a number of seeded mutations of them. usage: TARGET CORPUS_FOLDER [ROUNDS [SEED [keep]]]
 *
 * Mutations: flip a bit, set an edge value, cut, grow, copy within, join two seeds. The same seed
 * makes the same inputs. With a fourth argument the input at hand is kept in the file crash-input.
 */
#define _DEFAULT_SOURCE

#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SEEDS = 256, MAX_SIZE = 65536 };

typedef struct input {
    size_t size;
    uint8_t bytes[MAX_SIZE];
} input;

static input *seeds[MAX_SEEDS];
static size_t n_seeds;
static uint64_t state;

static uint64_t next_random(void)
{
    state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = state;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static size_t below(size_t bound)
{
    return bound == 0 ? 0 : (size_t)(next_random() % bound);
}

static int load_seed(const char *path)
{
    FILE *file = fopen(path, "rb");
    input *seed = file != NULL ? malloc(sizeof(*seed)) : NULL;
    if (seed == NULL) {
        (void)fprintf(stderr, "cannot read %s\n", path);
        return 0;
    }
    seed->size = fread(seed->bytes, 1, MAX_SIZE, file);
    (void)fclose(file);
    seeds[n_seeds++] = seed;
    return 1;
}

static int load_corpus(const char *folder)
{
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        (void)fprintf(stderr, "cannot open the corpus %s\n", folder);
        return 0;
    }
    struct dirent *entry;
    int fine = 1;
    while (fine && n_seeds < MAX_SEEDS && (entry = readdir(dir)) != NULL) {
        char path[4096];
        if (entry->d_name[0] != '.') {
            (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
            fine = load_seed(path);
        }
    }
    (void)closedir(dir);
    return fine && n_seeds > 0;
}

static void mutate(input *in)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};
    size_t at = below(in->size);
    switch (below(6)) {
    case 0:
        if (in->size > 0) {
            in->bytes[at] ^= (uint8_t)(1u << below(8));
        }
        break;
    case 1:
        if (in->size > 0) {
            in->bytes[at] = edges[below(sizeof(edges))];
        }
        break;
    case 2:
        in->size = at;
        break;
    case 3:
        while (in->size < MAX_SIZE && below(4) != 0) {
            in->bytes[in->size++] = (uint8_t)next_random();
        }
        break;
    case 4:
        if (in->size > 1) {
            size_t from = below(in->size);
            size_t n = below(in->size - (from > at ? from : at));
            memmove(in->bytes + at, in->bytes + from, n);
        }
        break;
    default: {
        const input *other = seeds[below(n_seeds)];
        size_t n = below(other->size + 1);
        n = n < MAX_SIZE - in->size ? n : MAX_SIZE - in->size;
        memcpy(in->bytes + in->size, other->bytes, n);
        in->size += n;
        break;
    }
    }
}

/* Keeps the input on disk while it runs, so that a crash leaves it behind. */
static void run(const input *in, int keep)
{
    if (keep) {
        FILE *file = fopen("crash-input", "wb");
        if (file != NULL) {
            (void)fwrite(in->bytes, 1, in->size, file);
            (void)fclose(file);
        }
    }
    /* An exact copy, so that a sanitizer sees a read past its end. */
    uint8_t *bytes = malloc(in->size > 0 ? in->size : 1);
    if (bytes != NULL) {
        memcpy(bytes, in->bytes, in->size);
        (void)LLVMFuzzerTestOneInput(bytes, in->size);
        free(bytes);
    }
    if (keep) {
        (void)remove("crash-input");
    }
}

int main(int argc, char **argv)
{
    if (argc < 2 || !load_corpus(argv[1])) {
        (void)fprintf(stderr, "usage: %s CORPUS_FOLDER [ROUNDS [SEED [keep]]]\n", argv[0]);
        return 2;
    }
    long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 20000;
    state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    int keep = argc > 4;
    for (size_t i = 0; i < n_seeds; i++) {
        run(seeds[i], keep);
    }
    static input scratch;
    for (long r = 0; r < rounds; r++) {
        scratch = *seeds[below(n_seeds)];
        for (size_t m = below(6) + 1; m > 0; m--) {
            mutate(&scratch);
        }
        run(&scratch, keep);
    }
    (void)printf("%zu seeds, %ld mutations\n", n_seeds, rounds);
    for (size_t i = 0; i < n_seeds; i++) {
        free(seeds[i]);
    }
    return 0;
}
