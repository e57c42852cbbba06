/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * launch.c - from a call to a queued item, and the worker's side of a kernel.
 *
 * A launch copies everything that the call says (operands with dims and strides, immediates,
 * attributes), checks that each operand lies inside of a live buffer, and returns. The worker runs
 * the kernel later. A fault goes into the call's fault word; when the host gave none, it is kept as
 * misuse of the queue. To port: the launch function hands the operands to the driver at once.
 */
#include "mock.h"

static int32_t refuse(const burn_call *call, uint64_t op, uint32_t operand, const burn_err *cause)
{
    char text[232];
    (void)snprintf(text, sizeof(text), "%s", cause->text);
    return burn_plugin_fail(call->err, cause->code, "mock: op %llu, operand %u: %.180s",
                            (unsigned long long)op, (unsigned)operand, text);
}

static int32_t pin_operand(uint32_t ordinal, const burn_operand *from, mock_operand *to,
                           burn_err *err)
{
    int64_t low = 0;
    int64_t high = 0;
    int64_t size = to->size;
    if (from->data != NULL) {
        return burn_plugin_fail(err, BURN_E_INTERNAL, "has a host address; mock memory has none");
    }
    if (burn_dims_count(to->rank, to->dims) == 0) {
        return BURN_OK;
    }
    burn_dims_extent(to->rank, to->dims, to->strides, &low, &high);
    if (low < 0 && from->offset < (uint64_t)(-low * size)) {
        return burn_plugin_fail(err, BURN_E_INVALID,
                                "reaches %lld elements before its offset of %llu bytes",
                                (long long)-low, (unsigned long long)from->offset);
    }
    uint64_t first = from->offset - (uint64_t)(-low * size);
    uint64_t bytes = (uint64_t)((high - low + 1) * size);
    int32_t code = mock_pin_bytes(ordinal, from->buffer, first, bytes, &to->pin, err);
    if (code == BURN_OK) {
        to->data = to->pin.bytes - low * size;
    }
    return code;
}

static int32_t copy_operand(uint32_t ordinal, const burn_operand *from, mock_operand *to,
                            burn_err *err)
{
    to->kind = from->kind;
    to->dtype = from->dtype;
    to->rank = from->rank;
    to->size = (uint8_t)burn_element_size(from->dtype);
    if (from->kind == BURN_ABSENT) {
        return BURN_OK;
    }
    if (to->size == 0 || from->rank > BURN_MAX_RANK) {
        return burn_plugin_fail(err, BURN_E_INTERNAL, "dtype %u, rank %u", (unsigned)from->dtype,
                                (unsigned)from->rank);
    }
    if (from->kind == BURN_IMMEDIATE) {
        memcpy(to->immediate, from->data, sizeof(to->immediate));
        to->data = to->immediate;
        to->rank = 0; /* strides stay 0, so it serves any dims */
        return BURN_OK;
    }
    for (uint32_t i = 0; i < from->rank; i++) {
        to->dims[i] = from->dims[i];
        to->strides[i] = from->strides[i];
    }
    return pin_operand(ordinal, from, to, err);
}

/* Outputs are fresh memory, but for variables: no kernel here may work in place. */
static int32_t check_overlap(const mock_item *item, burn_err *err)
{
    for (uint32_t o = item->n_in; o < item->n_in + item->n_out; o++) {
        const mock_operand *out = &item->operands[o];
        for (uint32_t i = 0; i < item->n_in && out->pin.buffer != NULL; i++) {
            const mock_operand *in = &item->operands[i];
            if (in->pin.buffer == out->pin.buffer && in->data == out->data) {
                return burn_plugin_fail(err, BURN_E_INTERNAL,
                                        "shares its storage with input %u, which no row allows",
                                        (unsigned)i);
            }
        }
    }
    return BURN_OK;
}

static int32_t copy_operands(const burn_call *call, uint64_t op, mock_item *item)
{
    uint32_t ordinal = mock_queue_device(call->queue)->ordinal;
    burn_err cause = BURN_ERR_INIT;
    for (uint32_t i = 0; i < call->n_in + call->n_out; i++) {
        const burn_operand *operand = burn_call_operand(call, i);
        if (copy_operand(ordinal, operand, &item->operands[i], &cause) != BURN_OK) {
            return refuse(call, op, i, &cause);
        }
    }
    if (op != BURN_OP_ASSIGN && check_overlap(item, &cause) != BURN_OK) {
        return refuse(call, op, call->n_in, &cause);
    }
    if (call->fault == NULL) {
        return BURN_OK;
    }
    int32_t code = mock_pin_bytes(ordinal, call->fault->buffer, call->fault->offset,
                                  sizeof(burn_fault), &item->fault, &cause);
    return code == BURN_OK ? BURN_OK : refuse(call, op, call->n_in + call->n_out, &cause);
}

static int32_t make_item(const burn_call *call, uint64_t op, mock_run_fn run, const void *kernel,
                         mock_item **out)
{
    if (call->n_in + call->n_out > MOCK_OPERANDS || call->attrs_size > BURN_MAX_ATTRS) {
        return burn_plugin_fail(call->err, BURN_E_LIMIT,
                                "mock: op %llu has %u operands and %u attribute bytes",
                                (unsigned long long)op, (unsigned)(call->n_in + call->n_out),
                                (unsigned)call->attrs_size);
    }
    mock_item *item = NULL;
    int32_t code = mock_item_get(call->queue, &item, call->err);
    if (code != BURN_OK) {
        return code;
    }
    item->run = run;
    item->kernel = kernel;
    item->op = op;
    item->n_in = call->n_in;
    item->n_out = call->n_out;
    item->attrs_size = call->attrs_size;
    if (call->attrs_size > 0 && call->attrs != NULL) {
        memcpy(item->attrs, call->attrs, call->attrs_size);
    }
    code = copy_operands(call, op, item);
    if (code != BURN_OK) {
        mock_item_drop(item);
        return code;
    }
    *out = item;
    return BURN_OK;
}

int32_t mock_launch(const burn_call *call, uint64_t op, mock_run_fn run, const void *kernel)
{
    mock_item *item = NULL;
    int32_t code = make_item(call, op, run, kernel, &item);
    if (code == BURN_OK) {
        mock_item_push(item);
    }
    return code;
}

static int same_dims(const mock_operand *a, const mock_operand *b)
{
    if (a->rank != b->rank) {
        return 0;
    }
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i]) {
            return 0;
        }
    }
    return 1;
}

int32_t mock_launch_pointwise(const burn_call *call, uint64_t op, mock_run_fn run,
                              const void *kernel)
{
    mock_item *item = NULL;
    int32_t code = make_item(call, op, run, kernel, &item);
    if (code != BURN_OK) {
        return code;
    }
    for (uint32_t i = 0; i < item->n_in; i++) {
        const mock_operand *in = &item->operands[i];
        if (in->kind == BURN_TENSOR && !same_dims(in, mock_out(item))) {
            mock_item_drop(item);
            return burn_plugin_fail(call->err, BURN_E_INTERNAL,
                                    "mock: op %llu, operand %u was not broadcast to the output",
                                    (unsigned long long)op, (unsigned)i);
        }
    }
    mock_item_push(item);
    return BURN_OK;
}

int32_t mock_launch_many(const burn_call *calls, uint32_t n, uint32_t stride, uint64_t op,
                         mock_run_fn run)
{
    enum { MOST = 64 };
    mock_item *items[MOST];
    uint32_t made = 0;
    int32_t code = BURN_OK;
    if (n > MOST) {
        return burn_plugin_fail(calls->err, BURN_E_LIMIT, "mock: %u calls at once", (unsigned)n);
    }
    while (made < n && code == BURN_OK) {
        code = make_item(burn_call_at(calls, made, stride), op, run, NULL, &items[made]);
        made += code == BURN_OK;
    }
    for (uint32_t k = 0; k < made; k++) {
        int runs = code == BURN_OK;
#ifdef MOCK_INJECT
        runs = runs && !mock_inject_lost(items[k], k, made);
#endif /* MOCK_INJECT */
        if (runs) {
            mock_item_push(items[k]);
        } else {
            mock_item_drop(items[k]);
        }
    }
    return code;
}

void mock_fault(mock_item *item, int32_t code, uint32_t operand, int64_t value, int64_t position,
                int64_t bound)
{
    if (item->faulted != 0) {
        return;
    }
    item->faulted = 1;
    if (item->fault.buffer == NULL) {
        char text[120];
        (void)snprintf(text, sizeof(text), "op %llu, operand %u, value %lld: no fault word given",
                       (unsigned long long)item->op, (unsigned)operand, (long long)value);
        mock_queue_misuse(item->queue, code, text);
        return;
    }
    burn_backend_device *dev = mock_queue_device(item->queue);
    burn_fault fault;
    (void)pthread_mutex_lock(&dev->fault_lock);
    memcpy(&fault, item->fault.bytes, sizeof(fault));
    if (fault.code == 0) {
        fault.code = code;
        fault.operand = operand;
        fault.value = value;
        fault.position = position;
        fault.bound = bound;
        memcpy(item->fault.bytes, &fault, sizeof(fault));
    }
    (void)pthread_mutex_unlock(&dev->fault_lock);
}
