/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * create.c - functions that make tensors: filled, counted, random; and dropout, which draws.
 *
 * Random numbers are counter-based. The public function reserves the range of counters and passes
 * seed and counter on as operands, so kernels, decompositions and gradients use the same numbers.
 */
#include "api/call.h"

#include "base/alloc.h"
#include "base/printer.h"
#include "exec/transfer.h"
#include "ops/rules.h"

#include <string.h>

static int shape_attrs(burn_attrs_shape *a, uint8_t dtype, uint32_t rank, const int64_t *dims)
{
    burn_attrs_init(a, sizeof(*a));
    if (rank > BURN_MAX_RANK || (rank > 0 && dims == NULL)) {
        return 0;
    }
    a->n_dims = rank;
    a->dtype = dtype;
    for (uint32_t d = 0; d < rank; d++) {
        a->dims[d] = dims[d];
    }
    return 1;
}

burn_tensor *burn_full(burn_device *device, uint8_t dtype, uint32_t rank, const int64_t *dims,
                       burn_tensor *scalar)
{
    burn_attrs_shape a;
    if (!shape_attrs(&a, dtype, rank, dims)) {
        return burni_call_bad_dims(BURN_OP_FILL, rank, "dims");
    }
    return burni_call(device, BURN_OP_FILL, &a, &scalar, 1);
}

burn_tensor *burn_zeros(burn_device *device, uint8_t dtype, uint32_t rank, const int64_t *dims)
{
    return burn_full(device, dtype, rank, dims, burn_scalar_int(0));
}

burn_tensor *burn_ones(burn_device *device, uint8_t dtype, uint32_t rank, const int64_t *dims)
{
    return burn_full(device, dtype, rank, dims, burn_scalar_int(1));
}

burn_tensor *burn_arange(burn_device *device, uint8_t dtype, int64_t n, double start, double step)
{
    burn_attrs_shape a;
    (void)shape_attrs(&a, dtype, 1, &n);
    burn_tensor *const in[2] = {burn_scalar(start), burn_scalar(step)};
    return burni_call(device, BURN_OP_ARANGE, &a, in, 2);
}

/* ---- random ---------------------------------------------------------------------------------- */

void burn_seed(uint64_t seed)
{
    burni_thread *thread = burni_thread_get();
    if (thread != NULL) {
        thread->rng_seed = seed;
        thread->rng_counter = 0;
    }
}

uint64_t burn_random_reserve(uint64_t blocks, uint64_t *out_seed)
{
    burni_thread *thread = burni_thread_get();
    if (thread == NULL) {
        *out_seed = 0;
        return 0;
    }
    uint64_t counter = thread->rng_counter;
    thread->rng_counter += blocks;
    *out_seed = thread->rng_seed;
    return counter;
}

/* Counters for n elements of a dtype; normals round n up to a pair. */
static void reserve(uint8_t dtype, int64_t n, burn_tensor **seed, burn_tensor **counter)
{
    uint64_t pairs = n > 0 ? ((uint64_t)n + 1) / 2 * 2 : 0;
    uint64_t per_block = dtype == BURN_F64 ? 2 : 4;
    uint64_t value = 0;
    uint64_t first = burn_random_reserve((pairs + per_block - 1) / per_block, &value);
    *seed = burn_scalar_u64(value);
    *counter = burn_scalar_u64(first);
}

static burn_tensor *draw(burn_device *device, uint64_t op, uint8_t dtype, uint32_t rank,
                         const int64_t *dims)
{
    burn_attrs_shape a;
    if (!shape_attrs(&a, dtype, rank, dims)) {
        return burni_call_bad_dims(op, rank, "dims");
    }
    burn_tensor *in[2];
    reserve(dtype, burni_numel(rank, dims), &in[0], &in[1]);
    return burni_call(device, op, &a, in, 2);
}

burn_tensor *burn_random_uniform(burn_device *device, uint8_t dtype, uint32_t rank,
                                 const int64_t *dims)
{
    return draw(device, BURN_OP_RANDOM_UNIFORM, dtype, rank, dims);
}

burn_tensor *burn_random_normal(burn_device *device, uint8_t dtype, uint32_t rank,
                                const int64_t *dims)
{
    return draw(device, BURN_OP_RANDOM_NORMAL, dtype, rank, dims);
}

burn_tensor *burn_bernoulli(burn_device *device, uint8_t dtype, uint32_t rank, const int64_t *dims,
                            double p)
{
    burn_attrs_shape a;
    if (!shape_attrs(&a, dtype, rank, dims)) {
        return burni_call_bad_dims(BURN_OP_BERNOULLI, rank, "dims");
    }
    if (!(p >= 0.0 && p <= 1.0)) {
        return burni_call_fail(BURN_OP_BERNOULLI, BURN_E_INVALID,
                               "bernoulli: the probability %g is not in 0..1", burni_shown(p));
    }
    burn_tensor *in[3] = {burn_scalar(p), NULL, NULL};
    reserve(BURN_F64, burni_numel(rank, dims), &in[1], &in[2]);
    return burni_call(device, BURN_OP_BERNOULLI, &a, in, 3);
}

burn_tensor *burn_dropout(burn_tensor *x, double p)
{
    if (!(p >= 0.0 && p <= 1.0)) {
        return burni_call_fail(BURN_OP_DROPOUT, BURN_E_INVALID,
                               "dropout: the probability %g is not in 0..1", burni_shown(p));
    }
    burn_tensor *in[4] = {x, burn_scalar(p), NULL, NULL};
    reserve(BURN_F32, burn_numel(x), &in[2], &in[3]);
    return burni_call(NULL, BURN_OP_DROPOUT, NULL, in, 4);
}

/* ---- other devices --------------------------------------------------------------------------- */

burn_tensor *burn_to_device(burn_tensor *x, burn_device *device)
{
    burni_thread *thread = burni_thread_get();
    if (x != NULL && x->cause != NULL) {
        return burni_handle_failed(thread, x->cause);
    }
    if (x == NULL || device == NULL) {
        return burni_call_fail(0, BURN_E_INVALID, "to_device: %s is NULL",
                               x == NULL ? "the tensor" : "the device");
    }
    if (x->kind != BURN_TENSOR) {
        return burni_call_fail(
            0, BURN_E_INVALID,
            "to_device: a scalar is on no device; give it to the op as it is, or "
            "make a tensor of it with burn_full");
    }
    if (x->device->core == device->core) {
        burn_tensor *same = burni_handle_alias(thread, x, 1);
        return same != NULL ? same : burni_handle_failed(NULL, &burni_cause_no_memory);
    }
    /* Through the host: every pair of backends can do that. */
    uint64_t bytes = (uint64_t)x->numel * burn_dtype_size(x->dtype);
    burn_err err = BURN_ERR_INIT;
    void *host = burni_alloc(bytes);
    if (host == NULL) {
        return burni_call_fail(0, BURN_E_NO_MEMORY, "to_device: out of host memory");
    }
    burn_tensor *out = NULL;
    if (burni_download(thread, x, host, bytes, &err) == BURN_OK) {
        out = burni_upload(thread, device, x->dtype, x->rank, x->dims, host);
    } else {
        out = burni_call_fail(0, err.code, "to_device: %s", err.text);
    }
    burni_free(host);
    return out;
}
