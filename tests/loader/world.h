/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * world.h - what the loader's tests share: a fresh folder of plugins per test, and the loader made
 * to forget what it knew. Folders are removed at the end of the program, not before: a new file
 * with the inode of a library that is still mapped would be taken for it.
 */
#ifndef BURN_TESTS_LOADER_WORLD_H
#define BURN_TESTS_LOADER_WORLD_H

#include "loader/entry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The plugin folder of the running test. */
extern char world_dir[256];

/* A sink that is large enough for any message. */
typedef struct world_err {
    burn_err err;
    char more[1024];
} world_err;

burn_err *world_err_init(world_err *e);

int world_setup(void **state);
int world_teardown(void **state);
/* To be called once, after all tests. */
void world_remove_all(void);

void world_write(const char *name, const void *bytes, size_t n);
/* Copies a library that the build made into the folder. */
void world_library(const char *from, const char *to);
/* Writes <id>.json for <id>.so. */
void world_manifest(const char *id, const char *kind, const char *devices, int priority,
                    const char *abi_newest);
/* Manifest and stub library of a backend, or of an extension when the id starts with "ext". */
void world_plugin(const char *id);
void world_backend(const char *id, const char *devices, int priority);
/* A folder beside that of the plugins. */
void world_folder(const char *name, char *out, size_t cap);

void world_expect(const char *text, const char *part);

#endif /* BURN_TESTS_LOADER_WORLD_H */
