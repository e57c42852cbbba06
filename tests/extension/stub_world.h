/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stub_world.h - a folder of extensions that are copies of stub.so, each under the name of a
 * defect.
 *
 * To be made once, before anything of the library is called: plugins are listed once per process.
 * The folder is removed at the end. STUB_SO names the library that is copied.
 */
#ifndef BURN_TESTS_EXTENSION_STUB_WORLD_H
#define BURN_TESTS_EXTENSION_STUB_WORLD_H

#include <stddef.h>

/* Copies the stub to each name, and puts the folder before BURN_PLUGIN_PATH. 0 on failure. */
int stub_world_make(const char *const *names, size_t n);
void stub_world_remove(void);

#endif /* BURN_TESTS_EXTENSION_STUB_WORLD_H */
