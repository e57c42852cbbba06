/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * starter_plugin.h - what the files of the extension starter share; not for applications.
 *
 * Definitions know nothing of kernels and kernels nothing of definitions: both meet in plugin.c.
 */
#ifndef BURN_SDK_TEMPLATE_EXTENSION_STARTER_PLUGIN_H
#define BURN_SDK_TEMPLATE_EXTENSION_STARTER_PLUGIN_H

#include "starter.h"

#include <burn/op_def.h>
#include <burn_sdk/plugin.h>
#include <burn_sdk/slots.h>
#include <string.h>

/* All of these stand in the manifest, too; the loader refuses a plugin where they differ. */
#define STARTER_ID "starter"
#define STARTER_VERSION "0.1.0"
#define STARTER_LICENSE "MIT OR Apache-2.0"

/* op_rms_norm.c */
extern const burn_op_def starter_op_rms_norm;

/* kernels.c */
int32_t starter_rms_norm_f32(const burn_call *call);

#endif /* BURN_SDK_TEMPLATE_EXTENSION_STARTER_PLUGIN_H */
