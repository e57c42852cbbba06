/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * device.h - the device table of the CPU backend, for plugin.c.
 */
#ifndef BURN_PLUGINS_FLEX_DEVICE_H
#define BURN_PLUGINS_FLEX_DEVICE_H

#include <burn/backend.h>

extern const burn_device_api flex_device_api;

#endif /* BURN_PLUGINS_FLEX_DEVICE_H */
