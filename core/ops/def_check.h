/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * def_check.h - what a definition must keep, so that the core may rely on it without looking again.
 *
 * Everything that can be known without a call is checked here, once, when a plugin is loaded: its
 * texts name plugin, op and rule. What only a call shows (results of shape rules, gradients,
 * decompositions, views) is checked where they are used (exec/trust.h). Core definitions keep the
 * same rules; a test says so. To add a rule: a row in the table at the end of def_check.c.
 */
#ifndef BURN_CORE_OPS_DEF_CHECK_H
#define BURN_CORE_OPS_DEF_CHECK_H

#include <burn/op_def.h>

/* How many samples a definition may have. */
#define BURNI_MAX_SAMPLES 4096

/* BURN_E_ABI when a rule is broken. Calls `samples`. */
int32_t burni_def_check(const char *plugin, const burn_op_def *def, burn_err *err);

#endif /* BURN_CORE_OPS_DEF_CHECK_H */
