/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * starter.h - the ops of the extension starter, for applications. Header-only: the extension is no
 * library to link with, it is loaded at run time.
 *
 * Call burn_extension_load("starter", &err) once, before the first op. Every function returns a
 * tensor that the innermost scope owns; it carries its failure like the result of any other op. To
 * add an op: its attributes and one function here, a definition in a file op_<name>.c, and a row in
 * plugin.c. [any]
 */
#ifndef BURN_SDK_TEMPLATE_EXTENSION_STARTER_H
#define BURN_SDK_TEMPLATE_EXTENSION_STARTER_H

#include <burn/build.h>
#include <burn/registry.h>

BURN_BEGIN_DECLS

#define STARTER_RMS_NORM "starter.rms_norm"

/* What selects code or a formula; numbers that change from step to step are operands. */
typedef struct starter_rms_norm_attrs {
    burn_attrs_head head;
    double eps;
} starter_rms_norm_attrs;

/*
 * y = x / sqrt(mean(x * x, last axis) + eps): every row gets a root mean square of about 1. x is a
 * float tensor with at least one axis; y has its shape and dtype. eps must be above 0.
 */
static inline burn_tensor *starter_rms_norm(burn_tensor *x, double eps)
{
    burn_tensor *y = NULL;
    starter_rms_norm_attrs attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.eps = eps;
    (void)burn_op_call(NULL, burn_op_id_from_name(STARTER_RMS_NORM), &attrs,
                       (uint32_t)sizeof(attrs), &x, 1, &y, 1);
    return y;
}

BURN_END_DECLS

/* With BURN_TRACE_CALLS a call says its file and line (<burn/trace.h>): one line per function. */
#ifdef BURN_TRACE_CALLS
#include <burn/ops.h>
#define starter_rms_norm(...) BURN_TRACED(starter_rms_norm(__VA_ARGS__))
#endif

#endif /* BURN_SDK_TEMPLATE_EXTENSION_STARTER_H */
