/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * version.h - the library's version and the version of the plugin ABI.
 *
 * An ABI version is major << 16 | minor. Host and plugin use the smaller of their two minors; they
 * refuse each other when the majors differ. While the major is 0, every minor also has a layout
 * hash (plugin.h), so that two builds that laid a struct out differently never meet.
 */
#ifndef BURN_VERSION_H
#define BURN_VERSION_H

#include <burn/base.h>

#define BURN_VERSION "0.1.0"

#define BURN_ABI_MAJOR 0
#define BURN_ABI_MINOR 1

#define BURN_ABI_VERSION(major, minor) (((uint32_t)(major) << 16) | (uint32_t)(minor))
#define BURN_ABI_CURRENT BURN_ABI_VERSION(BURN_ABI_MAJOR, BURN_ABI_MINOR)
#define BURN_ABI_OLDEST BURN_ABI_VERSION(0, 1)

/* The version of the library that is loaded; may differ from BURN_VERSION. [any] */
BURN_BEGIN_DECLS
BURN_API const char *burn_version(void);
BURN_END_DECLS

#endif /* BURN_VERSION_H */
