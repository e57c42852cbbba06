/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rules.h - shape rules, error text and small helpers that op definitions share.
 *
 * Owns no op. Everything here is pure: it reads metas and attributes and writes metas or an error.
 * Codes are BURN_OK or a negative status; on failure the burn_err names op, argument, shapes and
 * what to do. To add a rule: declare it here, define it in rules.c, name the ops that use it.
 */
#ifndef BURN_CORE_OPS_RULES_H
#define BURN_CORE_OPS_RULES_H

#include "base/error.h"

#include <burn/call.h>
#include <burn/op_attrs.h>
#include <burn/op_def.h>
#include <burn/op_list.h>

/* Every definition, so that each file's definition is checked against one declaration. */
#define BURNI_DECLARE_OP(id, NAME, name) extern const burn_op_def burn_op_def_##name;
BURN_FOREACH_OP(BURNI_DECLARE_OP)
#undef BURNI_DECLARE_OP

/* "[2,3,4]" into a buffer; returns the buffer. A buffer of 192 bytes holds every shape. */
const char *burni_shape_text(char *buffer, uint32_t size, uint32_t rank, const int64_t *dims);
/* "f32, f64" of the dtypes with a bit in `set`, cut where the buffer ends. */
const char *burni_dtypes_text(char *buffer, uint32_t size, uint64_t set);

/* Number of elements; -1 when it overflows int64_t or a dim is negative. */
int64_t burni_numel(uint32_t rank, const int64_t *dims);

/* NumPy broadcasting of two shapes into out (rank and dims only). `what` begins the error text. */
int32_t burni_broadcast(const char *what, const burn_meta *a, const burn_meta *b, burn_meta *out,
                        burn_err *err);

/* Checks 0 <= axis < rank; the error names the range. */
int32_t burni_check_axis(const char *op, int64_t axis, uint32_t rank, burn_err *err);

/* The same for each axis of a list, which must also be ascending and distinct. */
int32_t burni_check_axes(const char *op, const burn_attrs_axes *a, uint32_t rank, burn_err *err);

/* Is the axis reduced (n_axes 0 = all)? And how many elements are folded into one. */
int burni_is_reduced(const burn_attrs_axes *a, uint32_t axis);
int64_t burni_reduced_count(const burn_meta *in, const burn_attrs_axes *a);

/* Shape of a reduction of `in` under burn_attrs_axes (n_axes 0 = all). Sets out rank and dims. */
int32_t burni_reduced_shape(const char *op, const burn_meta *in, const burn_attrs_axes *a,
                            burn_meta *out, burn_err *err);

/* infer callbacks: the output 0 has the shape (and, when its role gives none, dtype) of input 0. */
int32_t burni_infer_same(const burn_infer *a);

/* Ops that make a tensor of burn_attrs_shape: sets shape and dtype, which must be in `set`. */
int32_t burni_infer_created(const char *op, const burn_infer *a, uint64_t set);

/* The error for BURNI_ATTRS giving NULL. */
int32_t burni_no_attrs(const char *op, burn_err *err);

/* Attribute struct of an infer/vjp/expand/eval argument, NULL when size or head do not fit. */
#define BURNI_ATTRS(a, type)                                                                       \
    ((const type *)((a)->attrs != NULL && (a)->attrs_size >= sizeof(type) ? (a)->attrs : NULL))

/* Role rows. BURNI_T0: same dtype as operand 0. */
/* clang-format off */
#define BURNI_ROLE(name, flags, set) { name, flags, 0, {0, 0, 0}, {set, 0, 0, 0} }
#define BURNI_ROLE_LIKE(name, flags, operand, set) \
    { name, flags, (operand) + 1, {0, 0, 0}, {set, 0, 0, 0} }
/* clang-format on */

/* Fixed fields of a definition: id, name, revision and strides. */
#define BURNI_DEF(NAME, name_)                                                                     \
    .struct_size = (uint32_t)sizeof(burn_op_def), .id = BURN_OP_##NAME, .revision = 1,             \
    .name = #name_, .role_stride = (uint32_t)sizeof(burn_role),                                    \
    .attr_stride = (uint32_t)sizeof(burn_attr), .alias_stride = (uint32_t)sizeof(burn_alias)

/* One attribute row; lists also need a row for their length, named n_<list>. */
#define BURNI_ATTR(type, field, kind, klass, doc)                                                  \
    {                                                                                              \
        #field, doc, kind, (uint16_t)offsetof(type, field),                                        \
            (uint16_t)sizeof(((const type *)0)->field), 1, klass, 0                                \
    }

/* Attribute rows of the structs that several families share. */
enum { BURNI_N_ATTRS_AXIS = 2, BURNI_N_ATTRS_AXES = 4, BURNI_N_ATTRS_SHAPE = 3 };
extern const burn_attr burni_attrs_axis_rows[BURNI_N_ATTRS_AXIS];
extern const burn_attr burni_attrs_axes_rows[BURNI_N_ATTRS_AXES];
extern const burn_attr burni_attrs_shape_rows[BURNI_N_ATTRS_SHAPE];

/* Ops over lines (BURN_FUSE_LINES). Does the definition say what a line is? */
int burni_goes_over_lines(const burn_op_def *d);
/* How many of the last axes are a line of a call on that rank; 0: lines go along other axes. */
uint32_t burni_line_axes(const burn_op_def *d, const void *attrs, uint32_t rank);
/* Is it a loss that reduces its operands to one number (BURN_FUSE_REDUCE)? */
int burni_is_loss(const burn_op_def *d);
/* Does a call of one with these attributes, or does it give all elements? */
int burni_loss_reduces(const burn_op_def *d, const void *attrs);
/* The attributes become those of a call on [rows, length]. */
void burni_set_line_axis(const burn_op_def *d, void *attrs);

/* Eval helpers: strides of a dense row-major shape, and stepping an index over dims. */
void burni_dense_strides(uint32_t rank, const int64_t *dims, int64_t *strides);
/* Next index in row-major order; 0 when past the end. */
int burni_next_index(uint32_t rank, const int64_t *dims, int64_t *index);
/* Strides of `in` (dense) seen as broadcast to out's dims. */
void burni_broadcast_strides(const burn_meta *in, const burn_meta *out, int64_t *strides);
/* Sum of index[i] * strides[i]. */
int64_t burni_offset(uint32_t rank, const int64_t *index, const int64_t *strides);
/* Element k of an eval operand as a double, whatever its class; and the reverse (cast rules). */
double burni_eval_get(const burn_eval_operand *x, uint64_t k);
void burni_eval_set(burn_eval_operand *x, uint64_t k, double value);
/* Element k as an integer (unsigned ones keep their bits). */
int64_t burni_eval_get_int(const burn_eval_operand *x, uint64_t k);
/* Truncates toward zero, saturates at the dtype's range; NaN gives 0. */
int64_t burni_saturate_int(double value, uint8_t dtype);
uint64_t burni_saturate_uint(double value, uint8_t dtype);
/* to[k] = from[j]; both operands have one dtype class. */
void burni_eval_move(burn_eval_operand *to, uint64_t k, const burn_eval_operand *from, uint64_t j);

/* Random numbers as README.md defines them (random.c). Element k of a call with that counter. */
uint32_t burni_random_u32(uint64_t seed, uint64_t counter, uint64_t k);
uint64_t burni_random_u64(uint64_t seed, uint64_t counter, uint64_t k);
double burni_random_uniform(uint64_t seed, uint64_t counter, uint64_t k, uint8_t dtype);

/*
 * Samples. burni_sample_begin zeroes the sample; the others fill operand i and raise n_in. A dtype
 * of 0 means: each dtype of the role in turn. burni_sample_range sets lo and hi of a tensor made
 * before, burni_sample_values its values. Both tolerances count epsilons of the dtype.
 */
void burni_sample_begin(burn_sample *s, const char *name, double tolerance, double grad_tolerance);
void burni_sample_absent(burn_sample *s, uint32_t i);
void burni_sample_range(burn_sample *s, uint32_t i, double lo, double hi);
void burni_sample_values(burn_sample *s, uint32_t i, uint32_t n, const double *values);
/* burn_attrs_shape. */
void burni_sample_shape(burn_sample *s, uint32_t dtype, uint32_t rank, const int64_t *dims);
/*
 * Gives tensor i, made before, whole numbers and few values that are NaN or infinite, others for an
 * even i than for an odd one. Sums of their products are the same in any order, so kernels of
 * products are held to them exactly. Rows of samples say BURNI_NONFINITE where an error code, which
 * is negative, may stand.
 */
enum { BURNI_NONFINITE = 1 };
void burni_sample_nonfinite(burn_sample *s, uint32_t i);
/*
 * Samples with NaN, infinities, zeros of both signs and subnormals (special.c). Operands in mask
 * `moved` get BURN_FILL_SPECIAL; those in `summed` floats whose sums do not depend on their order.
 * burni_samples_special: the samples of `rows`, and behind them, per entry, the one that is called
 * `like` once more, under another name.
 */
typedef int32_t (*burni_samples_fn)(uint32_t i, burn_sample *out);
typedef struct burni_special {
    const char *like;
    const char *name;
    uint32_t moved;
    uint32_t summed;
} burni_special;
void burni_sample_special(burn_sample *s, uint32_t moved, uint32_t summed);
int32_t burni_samples_special(uint32_t i, burn_sample *out, burni_samples_fn rows,
                              const burni_special *special, uint32_t n);
#define BURNI_N_SPECIAL(table) ((uint32_t)(sizeof(table) / sizeof((table)[0])))
/* The sample must fail with that code. */
void burni_sample_error(burn_sample *s, int32_t code);
void burni_sample_tensor(burn_sample *s, uint32_t i, uint8_t dtype, uint8_t fill, uint32_t rank,
                         const int64_t *dims);
void burni_sample_immediate(burn_sample *s, uint32_t i, uint8_t dtype, double value);
/* Copies an attribute struct (with its head) into the sample. */
void burni_sample_attrs(burn_sample *s, const void *attrs, uint32_t size);

#endif /* BURN_CORE_OPS_RULES_H */
