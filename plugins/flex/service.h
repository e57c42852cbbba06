/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * service.h - the options that this plugin offers by id, for the plugin's table.
 */
#ifndef BURN_PLUGINS_FLEX_SERVICE_H
#define BURN_PLUGINS_FLEX_SERVICE_H

#include <burn/base.h>

/* Fills the tables; the ISA and the number of threads are known. [init] */
void flex_service_init(void);

/* As burn_plugin.extension. [any] */
const void *BURN_CALL flex_service(const char *id);

#endif /* BURN_PLUGINS_FLEX_SERVICE_H */
