/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ops.h - what the two forms of `burn ops` share: steps through a definition's arrays.
 *
 * Items are stepped by the stride that the definition declares, since an extension's may be longer.
 */
#ifndef BURN_CLI_OPS_H
#define BURN_CLI_OPS_H

#include "cli.h"

#include <burn/op_def.h>

/* Inputs first, then outputs. */
static inline const burn_role *cli_role_at(const burn_op_def *def, uint32_t i)
{
    const char *at = (const char *)def->roles + (size_t)i * def->role_stride;
    return (const burn_role *)(const void *)at;
}

static inline const burn_attr *cli_attr_at(const burn_op_def *def, uint32_t i)
{
    const char *at = (const char *)def->attrs + (size_t)i * def->attr_stride;
    return (const burn_attr *)(const void *)at;
}

/* `burn ops --markdown` (ops_page.c): all definitions as one page. */
int cli_ops_page(void);

#endif /* BURN_CLI_OPS_H */
