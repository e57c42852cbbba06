/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cast.c - the row of `cast` and the choice of the conversion.
 *
 * Every pair of dtypes is one loop of cast_tmpl.c, except that f16 and bf16 are read and written
 * through f32 by the job (tiles.h), tile by tile. A cast between equal dtypes is a copy.
 */
#include "cast.h"

#include "copy_nd.h"
#include "rows.h"
#include "tiles.h"

#define ENTRY(NAME, name) [BURN_##NAME] = &flex_cast_from_##name,
static const flex_cast_row *const rows_by_source[16] = {FLEX_FOREACH_WIDE_TYPE(ENTRY)};
#undef ENTRY

static int is_half(uint8_t dtype)
{
    return dtype == BURN_F16 || dtype == BURN_BF16;
}

flex_convert_fn flex_cast_loop(uint8_t from, uint8_t to)
{
    const flex_cast_row *row = rows_by_source[is_half(from) ? (uint8_t)BURN_F32 : from];
    return is_half(to) ? row->odd : row->to[to];
}

static uint64_t cast_loop(const flex_job *job, void *out, const void *const *in, uint64_t n,
                          uint32_t mode)
{
    flex_convert_fn fn = *(const flex_convert_fn *)job->fn;
    (void)mode;
    fn(out, in[0], n);
    return n;
}

static int32_t launch_cast(const burn_call *call)
{
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *z = flex_out(call, 0);
    if (x->dtype == z->dtype && x->dtype != BURN_BOOL) {
        int64_t strides[BURN_MAX_RANK];
        flex_dense_strides(z->rank, z->dims, strides);
        flex_copy_nd(flex_size(z->dtype), z->rank, z->dims, z->data, strides, x->data, x->strides);
        return BURN_OK;
    }
    flex_job job;
    flex_job_start(&job, z, 1);
    flex_job_source(&job, 0, x, 1);
    if (job.src[0].scalar && job.n > 1) {
        job.src[0].scalar = 0;
        job.all_dense = 0;
    }
    flex_convert_fn fn = flex_cast_loop(x->dtype, z->dtype);
    job.fn = &fn;
    job.loop = cast_loop;
    (void)flex_job_run(&job);
    return BURN_OK;
}

/* clang-format off */
static const burn_slot slots_cast[] = {
    FLEX_SLOT(BURN_SET_ANY, BURN_LAYOUT_ANY, 0, 0), FLEX_SLOT(BURN_SET_ANY, FLEX_LAYOUT_OUT, 0, 0)};

const burn_row flex_rows_cast[] = {
    FLEX_ROW(BURN_OP_CAST, slots_cast, 0, 0, "flex.cast", launch_cast),
};
/* clang-format on */
const uint32_t flex_rows_cast_count = FLEX_COUNT(flex_rows_cast);
