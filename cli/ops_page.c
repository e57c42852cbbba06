/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ops_page.c - `burn ops --markdown`: all ops as one page, from their definitions alone.
 *
 * docs/ops.md is what it prints; a test compares them and `./dev golden` writes the page anew. It
 * knows no op by name. To show one more property of a definition, add a column here.
 */
#include "ops.h"

#include <burn/registry.h>
#include <stdio.h>
#include <string.h>

/* ---- dtypes ---------------------------------------------------------------------------------- */

typedef struct dtype_set {
    const char *name;
    uint32_t classes; /* bit BURN_CLASS_* */
} dtype_set;

#define CLASS_BIT(c) (1u << (c))
#define INTS         (CLASS_BIT(BURN_CLASS_INT) | CLASS_BIT(BURN_CLASS_UINT))

static const dtype_set sets[] = {
    {"any", INTS | CLASS_BIT(BURN_CLASS_FLOAT) | CLASS_BIT(BURN_CLASS_BOOL)},
    {"number", INTS | CLASS_BIT(BURN_CLASS_FLOAT)},
    {"float", CLASS_BIT(BURN_CLASS_FLOAT)},
    {"int", INTS},
    {"bool or float", CLASS_BIT(BURN_CLASS_FLOAT) | CLASS_BIT(BURN_CLASS_BOOL)},
    {"int or bool", INTS | CLASS_BIT(BURN_CLASS_BOOL)},
};

static const uint8_t dtypes[] = {
#define DTYPE_CODE(code, NAME, name, bytes, klass) BURN_##NAME,
    BURN_FOREACH_DTYPE(DTYPE_CODE)
#undef DTYPE_CODE
};

enum { N_DTYPES = sizeof(dtypes) / sizeof(dtypes[0]), N_SETS = sizeof(sets) / sizeof(sets[0]) };

static uint64_t mask_of(uint32_t classes)
{
    uint64_t mask = 0;
    for (size_t k = 0; k < N_DTYPES; k++) {
        if ((classes & CLASS_BIT(burn_dtype_class(dtypes[k]))) != 0) {
            mask |= UINT64_C(1) << dtypes[k];
        }
    }
    return mask;
}

/* The name of the set, or the dtypes one by one. */
static void print_dtypes(uint64_t mask)
{
    for (size_t s = 0; s < N_SETS; s++) {
        if (mask_of(sets[s].classes) == mask) {
            printf("%s", sets[s].name);
            return;
        }
    }
    const char *between = "";
    for (size_t k = 0; k < N_DTYPES; k++) {
        if ((mask >> dtypes[k] & 1) != 0) {
            printf("%s%s", between, burn_dtype_name(dtypes[k]));
            between = " ";
        }
    }
}

/* ---- one row --------------------------------------------------------------------------------- */

/* `x float`, `bias? float`, `xs... any`, `lo float by value`; equal sets are told once. */
static void print_roles(const burn_op_def *def, uint32_t first, uint32_t n)
{
    for (uint32_t i = first; i < first + n; i++) {
        const burn_role *role = cli_role_at(def, i);
        uint64_t next = i + 1 < first + n ? cli_role_at(def, i + 1)->dtypes[0] : 0;
        printf("%s`%s%s%s`", i > first ? ", " : "", role->name,
               (role->flags & BURN_ROLE_OPTIONAL) != 0 ? "?" : "",
               (role->flags & BURN_ROLE_VARIADIC) != 0 ? "..." : "");
        if ((role->flags & BURN_ROLE_ONLY_IMMEDIATE) != 0) {
            printf(" by value");
        }
        if (next != role->dtypes[0]) {
            printf(" ");
            print_dtypes(role->dtypes[0]);
        }
    }
}

static void print_attrs(const burn_op_def *def)
{
    for (uint32_t i = 0; i < def->n_attrs; i++) {
        printf("%s`%s`", i > 0 ? ", " : "", cli_attr_at(def, i)->name);
    }
}

static const char *gradient_of(const burn_op_def *def)
{
    if (def->vjp != NULL) {
        return "yes";
    }
    return def->no_vjp != NULL || def->decompose == NULL ? "no" : "of its parts";
}

static const char *fallback_of(const burn_op_def *def)
{
    if (def->view != NULL) {
        return "a view";
    }
    if (def->decompose != NULL) {
        return "its parts";
    }
    return (def->flags & BURN_OP_MINIMAL) != 0 ? "needed, minimal" : "needed";
}

/* A bar would end the cell. */
static void print_summary(const char *text)
{
    for (; *text != '\0'; text++) {
        printf("%s%c", *text == '|' ? "\\" : "", *text);
    }
}

static void print_row(const burn_op_def *def)
{
    printf("| `%s` | ", def->name);
    print_summary(def->summary != NULL ? def->summary : "");
    printf(" | ");
    print_roles(def, 0, def->n_in);
    printf(" | ");
    print_roles(def, def->n_in, def->n_out);
    printf(" | ");
    print_attrs(def);
    printf(" | %s | %s |\n", gradient_of(def), fallback_of(def));
}

/* ---- the page -------------------------------------------------------------------------------- */

static const char head[] =
    "# Ops\n"
    "\n"
    "Written by `burn ops --markdown` from the definitions (`core/ops/`); `./dev golden` writes it "
    "anew.\n"
    "In C an op is `burn_<name>` (`burn/ops.h`, which tells shapes), or `burn_op_call` with its "
    "id.\n"
    "`burn ops NAME` shows one with its kernels, `burn ops` what a device does with each dtype.\n"
    "`docs/semantics.md` says what the numbers are.\n"
    "\n"
    "`x?` may be left out, `x...` is one or more. `by value`: a scalar, not a tensor.\n"
    "Operands that are told one dtype set share their dtype unless the header says otherwise.\n"
    "Float: f16, bf16, f32, f64. **Kernel**: what a backend without one does; *its parts*: the "
    "ops\n"
    "that it is made of run instead; *minimal*: enough to train an MLP and a CNN.\n"
    "\n"
    "| op | what | inputs | outputs | attributes | gradient | kernel |\n"
    "| --- | --- | --- | --- | --- | --- | --- |\n";

int cli_ops_page(void)
{
    uint32_t n_needed = 0;
    uint32_t n_minimal = 0;
    printf("%s", head);
    for (uint32_t i = 0; i < burn_op_count(); i++) {
        const burn_op_def *def = burn_op_at(i);
        print_row(def);
        int needed = def->view == NULL && def->decompose == NULL;
        n_needed += (uint32_t)needed;
        n_minimal += (uint32_t)(needed && (def->flags & BURN_OP_MINIMAL) != 0);
    }
    printf("\n%u ops; %u need a kernel, %u of them are minimal.\n", burn_op_count(), n_needed,
           n_minimal);
    return CLI_FINE;
}
