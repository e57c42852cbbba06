/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * create.c - ops that make tensors from numbers: fill, arange, random_bits.
 *
 * Their outputs are dense, so elements are counted, not stepped. Random bits follow the op's
 * definition: Philox block `counter + i` serves four u32 or two u64 elements, the same bits on
 * every backend. Runs on the worker of a queue.
 */
#include "mock.h"
#include "mock_kernels.h"

#include <burn_sdk/philox.h>

static int64_t out_count(mock_item *item)
{
    const mock_operand *out = mock_out(item);
    return burn_dims_count(out->rank, out->dims);
}

static void run_fill(mock_item *item)
{
    mock_operand *out = mock_out(item);
    int64_t count = out_count(item);
    for (int64_t i = 0; i < count; i++) {
        memcpy(mock_at(out, i), item->operands[0].data, out->size);
    }
}

int32_t mock_launch_fill(const burn_call *call)
{
    return mock_launch(call, BURN_OP_FILL, run_fill, NULL);
}

/* start + i * step, integers wrapping. */
static void run_arange(mock_item *item)
{
    mock_operand *out = mock_out(item);
    int64_t count = out_count(item);
    const unsigned char *start = item->operands[0].data;
    const unsigned char *step = item->operands[1].data;
    int is_float = burn_element_class(out->dtype) == BURN_CLASS_FLOAT;
    for (int64_t i = 0; i < count; i++) {
        if (is_float) {
            double first = burn_load_f64(start, out->dtype);
            double value = first + (double)i * burn_load_f64(step, out->dtype);
            burn_store_f64(mock_at(out, i), out->dtype, value);
        } else {
            uint64_t first = burn_load_u64(start, out->dtype);
            uint64_t value = first + (uint64_t)i * burn_load_u64(step, out->dtype);
            burn_store_u64(mock_at(out, i), out->dtype, value);
        }
    }
}

int32_t mock_launch_arange(const burn_call *call)
{
    return mock_launch(call, BURN_OP_ARANGE, run_arange, NULL);
}

static void run_random_bits(mock_item *item)
{
    mock_operand *out = mock_out(item);
    int64_t count = out_count(item);
    int64_t per_block = out->size == 8 ? 2 : 4;
    uint64_t seed = burn_load_u64(item->operands[0].data, BURN_U64);
    uint64_t counter = burn_load_u64(item->operands[1].data, BURN_U64);
    for (int64_t i = 0; i < count; i++) {
        uint32_t words[4];
        burn_philox(seed, counter + (uint64_t)(i / per_block), words);
        if (per_block == 4) {
            burn_store_u64(mock_at(out, i), BURN_U32, words[i % 4]);
        } else {
            int64_t first = (i % 2) * 2;
            uint64_t value = words[first] | (uint64_t)words[first + 1] << 32;
            burn_store_u64(mock_at(out, i), BURN_U64, value);
        }
    }
}

int32_t mock_launch_random_bits(const burn_call *call)
{
    return mock_launch(call, BURN_OP_RANDOM_BITS, run_random_bits, NULL);
}
