/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reduce.c - sum, max and argmax.
 *
 * The output is walked element by element; for each one, a second loop walks the reduced axes of
 * the input. Sums of floats are kept in double and rounded once; integer sums wrap. NaN wins in max
 * and argmax, ties take the lowest index. An empty max is refused before it gets here. Runs on the
 * worker of a queue.
 */
#include "mock.h"
#include "mock_kernels.h"

/* The input's dims and strides, split into those that stay and those that are reduced. */
typedef struct reduction {
    uint32_t n_kept;
    uint32_t n_reduced;
    int64_t kept_dims[BURN_MAX_RANK];
    int64_t kept_strides[BURN_MAX_RANK];
    int64_t reduced_dims[BURN_MAX_RANK];
    int64_t reduced_strides[BURN_MAX_RANK];
} reduction;

static void split_axes(const mock_operand *in, const uint8_t *is_reduced, reduction *out)
{
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < in->rank; i++) {
        if (is_reduced[i] != 0) {
            out->reduced_dims[out->n_reduced] = in->dims[i];
            out->reduced_strides[out->n_reduced] = in->strides[i];
            out->n_reduced++;
        } else {
            out->kept_dims[out->n_kept] = in->dims[i];
            out->kept_strides[out->n_kept] = in->strides[i];
            out->n_kept++;
        }
    }
}

static void split_by_axes(const mock_item *item, reduction *out)
{
    burn_attrs_axes attrs;
    uint8_t is_reduced[BURN_MAX_RANK] = {0};
    memcpy(&attrs, item->attrs, sizeof(attrs));
    for (uint32_t i = 0; i < BURN_MAX_RANK && attrs.n_axes == 0; i++) {
        is_reduced[i] = 1;
    }
    for (uint32_t i = 0; i < attrs.n_axes; i++) {
        is_reduced[attrs.axes[i]] = 1;
    }
    split_axes(&item->operands[0], is_reduced, out);
}

static void begin_kept(burn_loop *loop, const reduction *r)
{
    const int64_t *strides[1] = {r->kept_strides};
    burn_loop_begin(loop, r->n_kept, r->kept_dims, 1, strides);
}

static void begin_reduced(burn_loop *loop, const reduction *r)
{
    const int64_t *strides[1] = {r->reduced_strides};
    burn_loop_begin(loop, r->n_reduced, r->reduced_dims, 1, strides);
}

static void sum_one(const mock_operand *in, const reduction *r, int64_t first, unsigned char *out,
                    uint8_t out_dtype)
{
    double floats = 0.0;
    uint64_t whole = 0;
    int is_float = burn_element_class(in->dtype) == BURN_CLASS_FLOAT;
    burn_loop loop;
    for (begin_reduced(&loop, r); burn_loop_more(&loop); burn_loop_next(&loop)) {
        const unsigned char *x = mock_at(in, first + loop.offset[0]);
        if (is_float) {
            floats += burn_load_f64(x, in->dtype);
        } else {
            whole += burn_load_u64(x, in->dtype);
        }
    }
    if (is_float) {
        burn_store_f64(out, out_dtype, floats);
    } else {
        burn_store_u64(out, out_dtype, whole);
    }
}

static void run_sum(mock_item *item)
{
    const mock_operand *in = &item->operands[0];
    mock_operand *out = mock_out(item);
    reduction r;
    split_by_axes(item, &r);
    burn_loop loop;
    for (begin_kept(&loop, &r); burn_loop_more(&loop); burn_loop_next(&loop)) {
        sum_one(in, &r, loop.offset[0], mock_at(out, loop.position), out->dtype);
    }
}

int32_t mock_launch_sum(const burn_call *call)
{
    return mock_launch(call, BURN_OP_SUM, run_sum, NULL);
}

/* Whether x goes before y as the maximum: larger, or the first NaN. */
static int is_larger(const unsigned char *x, const unsigned char *y, uint8_t dtype)
{
    uint32_t klass = burn_element_class(dtype);
    if (klass == BURN_CLASS_UINT) {
        return burn_load_u64(x, dtype) > burn_load_u64(y, dtype);
    }
    if (klass != BURN_CLASS_FLOAT) {
        return burn_load_i64(x, dtype) > burn_load_i64(y, dtype);
    }
    double a = burn_load_f64(x, dtype);
    double b = burn_load_f64(y, dtype);
    return b == b && (a != a || a > b);
}

/* Position among the reduced elements of the largest one; its offset goes to *out_offset. */
static int64_t find_largest(const mock_operand *in, const reduction *r, int64_t first,
                            int64_t *out_offset)
{
    int64_t best = 0;
    *out_offset = first;
    burn_loop loop;
    for (begin_reduced(&loop, r); burn_loop_more(&loop); burn_loop_next(&loop)) {
        int64_t here = first + loop.offset[0];
        if (is_larger(mock_at(in, here), mock_at(in, *out_offset), in->dtype)) {
            best = loop.position;
            *out_offset = here;
        }
    }
    return best;
}

static void run_max(mock_item *item)
{
    const mock_operand *in = &item->operands[0];
    mock_operand *out = mock_out(item);
    reduction r;
    split_by_axes(item, &r);
    burn_loop loop;
    for (begin_kept(&loop, &r); burn_loop_more(&loop); burn_loop_next(&loop)) {
        int64_t offset = 0;
        (void)find_largest(in, &r, loop.offset[0], &offset);
        memcpy(mock_at(out, loop.position), mock_at(in, offset), out->size);
    }
}

int32_t mock_launch_max(const burn_call *call)
{
    return mock_launch(call, BURN_OP_MAX, run_max, NULL);
}

static void run_argmax(mock_item *item)
{
    const mock_operand *in = &item->operands[0];
    mock_operand *out = mock_out(item);
    burn_attrs_axis attrs;
    uint8_t is_reduced[BURN_MAX_RANK] = {0};
    reduction r;
    memcpy(&attrs, item->attrs, sizeof(attrs));
    is_reduced[attrs.axis] = 1;
    split_axes(in, is_reduced, &r);
    burn_loop loop;
    for (begin_kept(&loop, &r); burn_loop_more(&loop); burn_loop_next(&loop)) {
        int64_t offset = 0;
        int64_t best = find_largest(in, &r, loop.offset[0], &offset);
        burn_store_i64(mock_at(out, loop.position), out->dtype, best);
    }
}

int32_t mock_launch_argmax(const burn_call *call)
{
    return mock_launch(call, BURN_OP_ARGMAX, run_argmax, NULL);
}
