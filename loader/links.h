/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * links.h - what a plugin's file tells about how it was linked; for warnings and for `burn doctor`.
 *
 * A plugin exports one symbol and needs no library of ours: symbols of two plugins in one process
 * would else meet, and a second copy of the core might be loaded. That it does so is no reason to
 * refuse it, but one to tell. The build id names the build in reports of faults. [any]
 */
#ifndef BURN_LOADER_LINKS_H
#define BURN_LOADER_LINKS_H

#include <stdint.h>

#define BURNI_LINK_NAME  80
#define BURNI_LINK_NAMES 4 /* of so many exports the names are kept */

typedef struct burni_links {
    char build_id[65];           /* in hex, "" when there is none */
    char needed[BURNI_LINK_NAME]; /* a library of ours that it needs, "" when it needs none */
    char exports[BURNI_LINK_NAMES][BURNI_LINK_NAME];
    uint32_t n_exports; /* beside the entry, and what tools put into every library */
} burni_links;

/* Looks at an ELF file of this machine; what can't be read is left empty. */
void burni_links_look(int fd, burni_links *out);

#endif /* BURN_LOADER_LINKS_H */
