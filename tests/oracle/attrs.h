/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * attrs.h - what the programs of this folder share: numbers and attributes out of JSON.
 *
 * Pure functions over jansson values that the caller owns. To add one: attrs.c.
 */
#ifndef BURN_TESTS_ORACLE_ATTRS_H
#define BURN_TESTS_ORACLE_ATTRS_H

#include <burn/op_def.h>
#include <jansson.h>

/* A JSON number, or one of the strings "nan", "inf", "-inf". */
double oracle_number(const json_t *value);

/* Fills BURN_MAX_ATTRS bytes; 0, with a line on stdout: the op has no attribute of that name. */
int oracle_attrs(const burn_op_def *def, json_t *json, unsigned char *attrs);

#endif /* BURN_TESTS_ORACLE_ATTRS_H */
