/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sample_check.h - tries every sample of a definition, without a device: decomposition against
 * eval, gradient against difference quotients, and that error samples fail as they say.
 *
 * Findings are printed with op, sample, dtype and element; the functions return their number.
 */
#ifndef BURN_TESTS_UNIT_OPS_SAMPLE_CHECK_H
#define BURN_TESTS_UNIT_OPS_SAMPLE_CHECK_H

#include <burn/op_def.h>

int check_samples(const burn_op_def *def);

#endif /* BURN_TESTS_UNIT_OPS_SAMPLE_CHECK_H */
