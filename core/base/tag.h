/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tag.h - names of places: the path that a call belongs to, and the line that made it, as a number.
 *
 * A tag is an entry of one table of the process: a path ("encoder.0") below its parent, and maybe a
 * location ("main.c:42"). Equal places have equal tags; 0 is no place. Entries are never freed;
 * when the table is full, new places get the tag of what they are in. [any]
 */
#ifndef BURN_CORE_BASE_TAG_H
#define BURN_CORE_BASE_TAG_H

#include <burn/status.h>
#include <stddef.h>
#include <stdint.h>

/* The tag of `name` below `parent`; it keeps the parent's location. */
uint64_t burni_tag_child(uint64_t parent, const char *name);
/* The tag of the same path at another location. */
uint64_t burni_tag_at(uint64_t tag, const char *file, uint32_t line);
/* "encoder.0.attention (main.c:42)", cut to size; returns the needed length, 0 for tag 0. */
size_t burni_tag_text(uint64_t tag, char *out, size_t size);
/* Puts " [at encoder.0]" behind the text, once; a long text gives way. */
void burni_tag_append(uint64_t tag, burn_err *err);

#endif /* BURN_CORE_BASE_TAG_H */
