/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_mock.c - the mock backend behind a fake host: entry, memory, queues, kernels, faults.
 *
 * Opens mock.so as the loader would (MOCK_PLUGIN is its path) and drives the device table and rows
 * directly, without the core. Each test opens its own device. To test one more kernel: build its
 * operands with `tensor`, call `launch`, read back with `read_f64`.
 */
#include <burn/op_attrs.h>
#include <burn/op_list.h>
#include <burn/plugin.h>
#include <burn_sdk/element.h>
#include <burn_sdk/loop.h>
#include <burn_sdk/philox.h>

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOREVER UINT64_MAX
#define NOT_A_NUMBER ((double)NAN)
#define INFINITE ((double)INFINITY)

static const burn_plugin *plugin;
static const burn_device_api *api;
static burn_plugin_query_fn query;

/* The fake host. */
static const char *option_name;
static const char *option_value;

static void *host_alloc(uint64_t bytes)
{
    return malloc((size_t)bytes);
}

static void host_free(void *memory)
{
    free(memory);
}

static void host_log(int32_t level, const char *source, const char *text)
{
    (void)level;
    (void)source;
    (void)text;
}

static const char *host_option(const char *name)
{
    return option_name != NULL && strcmp(name, option_name) == 0 ? option_value : NULL;
}

static uint32_t host_threads(void)
{
    return 2;
}

static const void *host_service(const char *id)
{
    (void)id;
    return NULL;
}

static const burn_host host = {
    .struct_size = (uint32_t)sizeof(burn_host),
    .abi = BURN_ABI_CURRENT,
    .alloc = host_alloc,
    .free = host_free,
    .log = host_log,
    .option = host_option,
    .thread_budget = host_threads,
    .service = host_service,
};

/* One open device with one queue. */
typedef struct bench {
    burn_backend_device *dev;
    burn_queue *queue;
    uint64_t point;
    burn_buffer *fault;
} bench;

static void check_ok(int32_t code, const burn_err *err)
{
    if (code != BURN_OK) {
        fail_msg("code %d: %s", (int)code, err->text);
    }
}

static void finish_code(bench *b, int32_t expected, const char *text)
{
    burn_err err = BURN_ERR_INIT;
    check_ok(api->signal(b->queue, ++b->point, &err), &err);
    int32_t code = api->host_wait(b->queue, b->point, FOREVER, &err);
    assert_int_equal(code, expected);
    if (text != NULL) {
        assert_non_null(strstr(err.text, text));
    }
}

static void finish(bench *b)
{
    finish_code(b, BURN_OK, NULL);
}

static void setup(bench *b, uint32_t ordinal, const char *options)
{
    burn_err err = BURN_ERR_INIT;
    memset(b, 0, sizeof(*b));
    check_ok(api->open(ordinal, options, &b->dev, &err), &err);
    check_ok(api->queue_create(b->dev, &b->queue, &err), &err);
    check_ok(api->alloc(b->dev, BURN_MEMORY_DEVICE, sizeof(burn_fault), &b->fault, NULL, &err),
             &err);
    check_ok(api->fill(b->queue, b->fault, 0, sizeof(burn_fault), 0, &err), &err);
}

static void teardown(bench *b)
{
    api->queue_destroy(b->queue);
    api->free(b->dev, b->fault);
    api->close(b->dev);
}

static burn_buffer *buffer_of(bench *b, uint64_t bytes)
{
    burn_err err = BURN_ERR_INIT;
    burn_buffer *buffer = NULL;
    check_ok(api->alloc(b->dev, BURN_MEMORY_DEVICE, bytes, &buffer, NULL, &err), &err);
    return buffer;
}

/* Operands of a call under construction. */
typedef struct operands {
    burn_operand list[8];
    int64_t dims[8][BURN_MAX_RANK];
    int64_t strides[8][BURN_MAX_RANK];
    unsigned char immediates[8][16];
    uint32_t n;
} operands;

/* Appends a dense tensor; `values` NULL leaves the memory as allocated. */
static burn_operand *tensor(bench *b, operands *o, uint8_t dtype, uint32_t rank,
                            const int64_t *dims, const double *values)
{
    burn_operand *operand = &o->list[o->n];
    burn_err err = BURN_ERR_INIT;
    int64_t count = burn_dims_count(rank, dims);
    uint64_t size = burn_element_size(dtype);
    memset(operand, 0, sizeof(*operand));
    for (uint32_t i = 0; i < rank; i++) {
        o->dims[o->n][i] = dims[i];
    }
    burn_dims_strides(rank, dims, o->strides[o->n]);
    operand->dims = o->dims[o->n];
    operand->strides = o->strides[o->n];
    operand->kind = BURN_TENSOR;
    operand->dtype = dtype;
    operand->rank = (uint8_t)rank;
    operand->layout = BURN_LAYOUT_CONTIGUOUS;
    operand->buffer = buffer_of(b, (uint64_t)(count > 0 ? count : 1) * size);
    if (values != NULL) {
        unsigned char *bytes = (unsigned char *)calloc((size_t)count + 1, size);
        assert_non_null(bytes);
        for (int64_t i = 0; i < count; i++) {
            burn_store_f64(bytes + i * (int64_t)size, dtype, values[i]);
        }
        check_ok(api->copy_in(b->queue, operand->buffer, 0, bytes, (uint64_t)count * size, &err),
                 &err);
        free(bytes);
    }
    o->n++;
    return operand;
}

static void immediate(operands *o, uint8_t dtype, double value)
{
    static const int64_t ones[BURN_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const int64_t zeros[BURN_MAX_RANK] = {0};
    burn_operand *operand = &o->list[o->n];
    memset(operand, 0, sizeof(*operand));
    burn_store_f64(o->immediates[o->n], dtype, value);
    operand->data = o->immediates[o->n];
    operand->kind = BURN_IMMEDIATE;
    operand->dtype = dtype;
    operand->dims = ones;
    operand->strides = zeros;
    operand->layout = BURN_LAYOUT_SCALAR;
    o->n++;
}

static const burn_row *row_of(uint64_t op)
{
    const burn_row_set *set = plugin->row_sets;
    for (uint32_t i = 0; i < set->n_rows; i++) {
        if (set->rows[i].op == op) {
            return &set->rows[i];
        }
    }
    fail_msg("no row for op %llu", (unsigned long long)op);
    return NULL;
}

static int32_t launch_code(bench *b, operands *o, uint64_t op, const void *attrs, burn_err *err)
{
    burn_operand fault;
    burn_call call;
    memset(&fault, 0, sizeof(fault));
    fault.buffer = b->fault;
    fault.kind = BURN_TENSOR;
    memset(&call, 0, sizeof(call));
    call.struct_size = (uint32_t)sizeof(call);
    call.operand_stride = (uint32_t)sizeof(burn_operand);
    call.n_out = 1;
    call.n_in = o->n - 1;
    call.queue = b->queue;
    call.operands = o->list;
    call.attrs = attrs;
    call.attrs_size = attrs != NULL ? ((const burn_attrs_head *)attrs)->size : 0;
    call.fault = &fault;
    call.err = err;
    return row_of(op)->launch(&call);
}

static void launch(bench *b, operands *o, uint64_t op, const void *attrs)
{
    burn_err err = BURN_ERR_INIT;
    check_ok(launch_code(b, o, op, attrs, &err), &err);
}

/* Reads the last operand. */
static void read_f64(bench *b, const operands *o, double *out)
{
    const burn_operand *operand = &o->list[o->n - 1];
    burn_err err = BURN_ERR_INIT;
    int64_t count = burn_dims_count(operand->rank, operand->dims);
    uint32_t size = burn_element_size(operand->dtype);
    unsigned char *bytes = (unsigned char *)calloc((size_t)count + 1, size);
    assert_non_null(bytes);
    check_ok(api->copy_out(b->queue, bytes, operand->buffer, operand->offset,
                           (uint64_t)count * size, &err),
             &err);
    finish(b);
    for (int64_t i = 0; i < count; i++) {
        out[i] = burn_load_f64(bytes + i * (int64_t)size, operand->dtype);
    }
    free(bytes);
}

static void check_values(bench *b, const operands *o, const double *expected)
{
    const burn_operand *operand = &o->list[o->n - 1];
    int64_t count = burn_dims_count(operand->rank, operand->dims);
    double values[64];
    assert_true(count <= 64);
    read_f64(b, o, values);
    for (int64_t i = 0; i < count; i++) {
        if (values[i] != expected[i] && !(isnan(values[i]) && isnan(expected[i]))) {
            fail_msg("element %d is %g, not %g", (int)i, values[i], expected[i]);
        }
    }
}

static burn_fault read_fault(bench *b)
{
    burn_fault fault;
    burn_err err = BURN_ERR_INIT;
    check_ok(api->copy_out(b->queue, &fault, b->fault, 0, sizeof(fault), &err), &err);
    finish(b);
    return fault;
}

static void release(bench *b, operands *o)
{
    finish(b);
    for (uint32_t i = 0; i < o->n; i++) {
        if (o->list[i].kind == BURN_TENSOR) {
            api->free(b->dev, o->list[i].buffer);
        }
    }
    o->n = 0;
}

static void test_entry(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    assert_null(query(BURN_ABI_VERSION(7, 0), BURN_ABI_VERSION(7, 3), &host, &err));
    assert_int_equal(err.code, BURN_E_ABI);
    assert_non_null(strstr(err.text, "7.3"));
    assert_null(query(BURN_ABI_VERSION(0, 9), BURN_ABI_VERSION(0, 9), &host, &err));
    assert_null(query(BURN_ABI_OLDEST, BURN_ABI_CURRENT, NULL, &err));
    assert_string_equal(plugin->id, "mock");
    assert_true(plugin->magic.layout_hash == BURN_LAYOUT_HASH);
    assert_int_equal(plugin->n_row_sets, 1);
    assert_int_equal(plugin->row_sets[0].n_rows, 29);
}

static void test_devices(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    uint32_t count = 0;
    burn_device_info info;
    burn_limits limits;
    burn_backend_device *dev = NULL;
    BURN_INIT(&info, burn_device_info);
    BURN_INIT(&limits, burn_limits);
    check_ok(api->count(&count, &err), &err);
    assert_int_equal(count, 2);
    check_ok(api->probe(1, &info, &err), &err);
    assert_int_equal(info.kind, BURN_DEVICE_VIRTUAL);
    assert_int_equal(api->probe(2, &info, &err), BURN_E_NOT_FOUND);
    assert_int_equal(api->open(0, "speed=9", &dev, &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "speed=9"));
    assert_int_equal(api->open(0, "delay_us=x", &dev, &err), BURN_E_INVALID);
    check_ok(api->open(0, "delay_us=1&memory=4096", &dev, &err), &err);
    check_ok(api->limits(dev, &limits, &err), &err);
    assert_int_equal(limits.flags & (BURN_LIMIT_SYNCHRONOUS | BURN_LIMIT_HOST_MEMORY), 0);
    api->close(dev);
}

static void test_memory(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    bench b;
    setup(&b, 0, "memory=4096");
    burn_buffer *buffer = NULL;
    void *address = &b;
    uint64_t free_bytes = 0;
    uint64_t total = 0;
    check_ok(api->alloc(b.dev, BURN_MEMORY_DEVICE, 1000, &buffer, &address, &err), &err);
    assert_null(address);
    check_ok(api->memory_info(b.dev, &free_bytes, &total, &err), &err);
    assert_int_equal(total - free_bytes, 1000 + sizeof(burn_fault));
    burn_buffer *other = NULL;
    assert_int_equal(api->alloc(b.dev, BURN_MEMORY_DEVICE, 4000, &other, NULL, &err),
                     BURN_E_NO_MEMORY);
    assert_int_equal(api->alloc(b.dev, BURN_MEMORY_PINNED, 8, &other, NULL, &err),
                     BURN_E_UNSUPPORTED);
    unsigned char bytes[16] = {0};
    check_ok(api->copy_out(b.queue, bytes, buffer, 3, 16, &err), &err);
    finish(&b);
    assert_int_equal(bytes[0], 0xFB);
    assert_int_equal(api->copy_in(b.queue, buffer, 999, bytes, 2, &err), BURN_E_INVALID);
    assert_int_equal(api->fill(b.queue, buffer, 1001, 1, 0, &err), BURN_E_INVALID);
    api->free(b.dev, buffer);
    assert_int_equal(api->copy_out(b.queue, bytes, buffer, 0, 1, &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "not allocated"));
    burn_buffer *again = buffer_of(&b, 1000);
    assert_true(again != buffer);
    api->free(b.dev, again);
    teardown(&b);
}

/* A buffer that is freed while the queue still needs it is told, not read. */
static void test_free_too_early(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    bench b;
    unsigned char bytes[8];
    setup(&b, 0, "delay_us=3000");
    burn_buffer *buffer = buffer_of(&b, 8);
    check_ok(api->fill(b.queue, buffer, 0, 8, 7, &err), &err);
    check_ok(api->copy_out(b.queue, bytes, buffer, 0, 8, &err), &err);
    api->free(b.dev, buffer);
    finish_code(&b, BURN_E_INTERNAL, "freed while");
    finish(&b);
    teardown(&b);
}

static void test_copies(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    bench a;
    bench b;
    setup(&a, 0, NULL);
    setup(&b, 1, NULL);
    char text[] = "0123456789";
    char back[11] = "";
    burn_buffer *x = buffer_of(&a, 10);
    burn_buffer *y = buffer_of(&b, 10);
    check_ok(api->copy_in(a.queue, x, 0, text, 10, &err), &err);
    memset(text, 'x', 10); /* the source was read */
    check_ok(api->copy_within(a.queue, x, 2, x, 0, 8, &err), &err);
    check_ok(api->signal(a.queue, 1, &err), &err);
    check_ok(api->wait(b.queue, a.queue, 1, &err), &err);
    check_ok(api->copy_peer(b.queue, y, 0, a.dev, x, 0, 10, &err), &err);
    check_ok(api->fill(b.queue, y, 9, 1, 'z', &err), &err);
    check_ok(api->copy_out(b.queue, back, y, 0, 10, &err), &err);
    finish(&b);
    assert_string_equal(back, "010123456z");
    assert_int_equal(api->copy_within(b.queue, y, 0, x, 0, 1, &err), BURN_E_DEVICE);
    api->free(a.dev, x);
    api->free(b.dev, y);
    teardown(&a);
    teardown(&b);
}

static void test_timeline(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    bench b;
    uint64_t reached = 99;
    setup(&b, 0, "delay_us=20000");
    check_ok(api->signal(b.queue, 5, &err), &err);
    assert_int_equal(api->host_wait(b.queue, 5, 1000, &err), BURN_E_STATE);
    check_ok(api->reached(b.queue, &reached, &err), &err);
    assert_int_equal(reached, 0);
    check_ok(api->host_wait(b.queue, 5, FOREVER, &err), &err);
    check_ok(api->reached(b.queue, &reached, &err), &err);
    assert_int_equal(reached, 5);
    assert_int_equal(api->signal(b.queue, 5, &err), BURN_E_INVALID);
    teardown(&b);
}

/* Destroying a queue finishes its work. */
static void test_destroy_drains(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    bench b;
    unsigned char bytes[4] = {0};
    setup(&b, 0, "delay_us=2000");
    burn_buffer *buffer = buffer_of(&b, 4);
    check_ok(api->fill(b.queue, buffer, 0, 4, 9, &err), &err);
    check_ok(api->copy_out(b.queue, bytes, buffer, 0, 4, &err), &err);
    api->queue_destroy(b.queue);
    assert_int_equal(bytes[3], 9);
    api->free(b.dev, buffer);
    api->free(b.dev, b.fault);
    api->close(b.dev);
}

static void test_add_strided(void **state)
{
    (void)state;
    bench b;
    operands o = {0};
    const double x[6] = {1, 2, 3, 4, 5, 6};
    const double expected[6] = {16, 25, 34, 13, 22, 31};
    setup(&b, 0, NULL);
    /* x transposed and flipped: dims [2,3] from storage [3,2]; plus 10 by value. */
    burn_operand *in = tensor(&b, &o, BURN_F32, 2, (const int64_t[]){2, 3}, x);
    o.strides[0][0] = -3;
    o.strides[0][1] = 1;
    in->offset = 3 * sizeof(float);
    tensor(&b, &o, BURN_F32, 2, (const int64_t[]){2, 3}, (const double[]){12, 20, 28, 12, 20, 28});
    tensor(&b, &o, BURN_F32, 2, (const int64_t[]){2, 3}, NULL);
    launch(&b, &o, BURN_OP_ADD, NULL);
    check_values(&b, &o, expected);
    release(&b, &o);
    tensor(&b, &o, BURN_I8, 1, (const int64_t[]){2}, (const double[]){127, -5});
    immediate(&o, BURN_I8, 1);
    tensor(&b, &o, BURN_I8, 1, (const int64_t[]){2}, NULL);
    launch(&b, &o, BURN_OP_ADD, NULL);
    check_values(&b, &o, (const double[]){-128, -4});
    release(&b, &o);
    teardown(&b);
}

/* What the call points at may change as soon as the launch has returned. */
static void test_call_is_copied(void **state)
{
    (void)state;
    bench b;
    operands o = {0};
    setup(&b, 0, "delay_us=3000");
    tensor(&b, &o, BURN_F32, 1, (const int64_t[]){2}, (const double[]){3, 4});
    immediate(&o, BURN_F32, 2);
    tensor(&b, &o, BURN_F32, 1, (const int64_t[]){2}, NULL);
    launch(&b, &o, BURN_OP_MUL, NULL);
    operands saved = o;
    memset(o.immediates, 0x55, sizeof(o.immediates));
    memset(o.strides, 0x55, sizeof(o.strides));
    memset(o.list, 0x55, sizeof(o.list));
    for (uint32_t i = 0; i < saved.n; i++) {
        saved.list[i].dims = saved.dims[i];
        saved.list[i].strides = saved.strides[i];
    }
    check_values(&b, &saved, (const double[]){6, 8});
    release(&b, &saved);
    teardown(&b);
}

/* B001, B003, B005: NaN wins, the first one; ties take the lowest index. */
static void test_max_B001_B003_B005(void **state)
{
    (void)state;
    bench b;
    operands o = {0};
    burn_attrs_axis axis = {{(uint32_t)sizeof(burn_attrs_axis), 1}, 1, 0, 0};
    burn_attrs_axes axes;
    const double x[16] = {1, NOT_A_NUMBER, 3, 2, 1, 4, 3, 2, 3, 3, -2, -2,
                          NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER};
    memset(&axes, 0, sizeof(axes));
    axes.head.size = (uint32_t)sizeof(axes);
    axes.head.revision = 1;
    axes.n_axes = 1;
    axes.axes[0] = 1;
    setup(&b, 0, NULL);
    tensor(&b, &o, BURN_F16, 2, (const int64_t[]){4, 4}, x);
    tensor(&b, &o, BURN_F16, 1, (const int64_t[]){4}, NULL);
    launch(&b, &o, BURN_OP_MAX, &axes);
    check_values(&b, &o, (const double[]){NOT_A_NUMBER, 4, 3, NOT_A_NUMBER});
    release(&b, &o);
    tensor(&b, &o, BURN_F64, 2, (const int64_t[]){4, 4}, x);
    tensor(&b, &o, BURN_I64, 1, (const int64_t[]){4}, NULL);
    launch(&b, &o, BURN_OP_ARGMAX, &axis);
    check_values(&b, &o, (const double[]){1, 1, 0, 0});
    release(&b, &o);
    teardown(&b);
}

static void test_sum_matmul(void **state)
{
    (void)state;
    bench b;
    operands o = {0};
    burn_attrs_axes axes;
    memset(&axes, 0, sizeof(axes));
    axes.head.size = (uint32_t)sizeof(axes);
    setup(&b, 0, NULL);
    tensor(&b, &o, BURN_I32, 2, (const int64_t[]){2, 2}, (const double[]){1, 2, 3, -9});
    tensor(&b, &o, BURN_I32, 0, NULL, NULL);
    launch(&b, &o, BURN_OP_SUM, &axes);
    check_values(&b, &o, (const double[]){-3});
    release(&b, &o);
    tensor(&b, &o, BURN_F32, 3, (const int64_t[]){2, 1, 2}, (const double[]){1, 2, 3, 4});
    tensor(&b, &o, BURN_F32, 2, (const int64_t[]){2, 2}, (const double[]){1, 10, 100, 1000});
    tensor(&b, &o, BURN_F32, 3, (const int64_t[]){2, 1, 2}, NULL);
    launch(&b, &o, BURN_OP_MATMUL, NULL);
    check_values(&b, &o, (const double[]){201, 2010, 403, 4030});
    release(&b, &o);
    teardown(&b);
}

/* B048: with duplicates, add sums them and assign keeps the last. */
static void test_scatter_gather_B048(void **state)
{
    (void)state;
    bench b;
    operands o = {0};
    burn_attrs_scatter scatter = {{(uint32_t)sizeof(scatter), 1}, 0, BURN_SCATTER_ADD, 0};
    burn_attrs_axis axis = {{(uint32_t)sizeof(burn_attrs_axis), 1}, 1, 0, 0};
    setup(&b, 0, NULL);
    for (uint32_t mode = BURN_SCATTER_ASSIGN; mode <= BURN_SCATTER_ADD; mode++) {
        scatter.mode = mode;
        tensor(&b, &o, BURN_F32, 1, (const int64_t[]){3}, (const double[]){0, 0, 0});
        tensor(&b, &o, BURN_I64, 1, (const int64_t[]){3}, (const double[]){1, 1, 1});
        tensor(&b, &o, BURN_F32, 1, (const int64_t[]){3}, (const double[]){1, 2, 3});
        tensor(&b, &o, BURN_F32, 1, (const int64_t[]){3}, NULL);
        launch(&b, &o, BURN_OP_SCATTER, &scatter);
        check_values(&b, &o, (const double[]){0, mode == BURN_SCATTER_ADD ? 6 : 3, 0});
        release(&b, &o);
    }
    tensor(&b, &o, BURN_U8, 2, (const int64_t[]){2, 2}, (const double[]){1, 2, 3, 4});
    tensor(&b, &o, BURN_I32, 2, (const int64_t[]){2, 3}, (const double[]){1, 0, 1, 0, 0, 1});
    tensor(&b, &o, BURN_U8, 2, (const int64_t[]){2, 3}, NULL);
    launch(&b, &o, BURN_OP_GATHER, &axis);
    check_values(&b, &o, (const double[]){2, 1, 2, 3, 3, 4});
    assert_int_equal(read_fault(&b).code, 0);
    release(&b, &o);
    teardown(&b);
}

static void test_slice_assign(void **state)
{
    (void)state;
    bench b;
    operands o = {0};
    burn_attrs_slice slice = {{(uint32_t)sizeof(slice), 1}, 1, 2, -2};
    setup(&b, 0, NULL);
    tensor(&b, &o, BURN_I16, 2, (const int64_t[]){2, 4}, (const double[]){0, 1, 2, 3, 4, 5, 6, 7});
    tensor(&b, &o, BURN_I16, 2, (const int64_t[]){2, 2}, (const double[]){-1, -2, -3, -4});
    immediate(&o, BURN_I64, 3);
    tensor(&b, &o, BURN_I16, 2, (const int64_t[]){2, 4}, NULL);
    launch(&b, &o, BURN_OP_SLICE_ASSIGN, &slice);
    check_values(&b, &o, (const double[]){0, -2, 2, -1, 4, -4, 6, -3});
    release(&b, &o);
    teardown(&b);
}

static void test_create(void **state)
{
    (void)state;
    bench b;
    operands o = {0};
    uint32_t words[4];
    setup(&b, 0, NULL);
    immediate(&o, BURN_BF16, 0.5);
    tensor(&b, &o, BURN_BF16, 1, (const int64_t[]){3}, NULL);
    launch(&b, &o, BURN_OP_FILL, NULL);
    check_values(&b, &o, (const double[]){0.5, 0.5, 0.5});
    release(&b, &o);
    immediate(&o, BURN_U8, 250);
    immediate(&o, BURN_U8, 3);
    tensor(&b, &o, BURN_U8, 1, (const int64_t[]){3}, NULL);
    launch(&b, &o, BURN_OP_ARANGE, NULL);
    check_values(&b, &o, (const double[]){250, 253, 0});
    release(&b, &o);
    immediate(&o, BURN_U64, 42);
    immediate(&o, BURN_U64, 7);
    tensor(&b, &o, BURN_U32, 1, (const int64_t[]){5}, NULL);
    launch(&b, &o, BURN_OP_RANDOM_BITS, NULL);
    double values[5];
    read_f64(&b, &o, values);
    burn_philox(42, 7, words);
    assert_true(values[3] == (double)words[3]);
    burn_philox(42, 8, words);
    assert_true(values[4] == (double)words[0]);
    release(&b, &o);
    teardown(&b);
}

static void test_cast_where(void **state)
{
    (void)state;
    bench b;
    operands o = {0};
    const double x[5] = {300.9, -1, NOT_A_NUMBER, INFINITE, 2.5};
    setup(&b, 0, NULL);
    tensor(&b, &o, BURN_F32, 1, (const int64_t[]){5}, x);
    tensor(&b, &o, BURN_U8, 1, (const int64_t[]){5}, NULL);
    launch(&b, &o, BURN_OP_CAST, NULL);
    check_values(&b, &o, (const double[]){255, 0, 0, 255, 2});
    release(&b, &o);
    tensor(&b, &o, BURN_BOOL, 1, (const int64_t[]){5}, (const double[]){1, 0, 0, 1, 1});
    tensor(&b, &o, BURN_F32, 1, (const int64_t[]){5}, x);
    immediate(&o, BURN_F32, -4);
    tensor(&b, &o, BURN_F32, 1, (const int64_t[]){5}, NULL);
    launch(&b, &o, BURN_OP_WHERE, NULL);
    check_values(&b, &o, (const double[]){(double)300.9f, -4, -4, INFINITE, 2.5});
    release(&b, &o);
    teardown(&b);
}

static void test_faults(void **state)
{
    (void)state;
    bench b;
    operands o = {0};
    burn_attrs_axis axis = {{(uint32_t)sizeof(burn_attrs_axis), 1}, 0, 0, 0};
    setup(&b, 0, NULL);
    tensor(&b, &o, BURN_F32, 1, (const int64_t[]){4}, (const double[]){1, 2, 3, 4});
    tensor(&b, &o, BURN_I64, 1, (const int64_t[]){3}, (const double[]){0, 7, -3});
    tensor(&b, &o, BURN_F32, 1, (const int64_t[]){3}, NULL);
    launch(&b, &o, BURN_OP_GATHER, &axis);
    burn_fault fault = read_fault(&b);
    assert_int_equal(fault.code, BURN_E_DATA);
    assert_int_equal(fault.operand, 1);
    assert_int_equal(fault.value, 7);
    assert_int_equal(fault.position, 1);
    assert_int_equal(fault.bound, 4);
    release(&b, &o);
    /* The first fault stays. */
    tensor(&b, &o, BURN_I32, 1, (const int64_t[]){2}, (const double[]){1, -2147483648.0});
    tensor(&b, &o, BURN_I32, 1, (const int64_t[]){2}, (const double[]){0, -1});
    tensor(&b, &o, BURN_I32, 1, (const int64_t[]){2}, NULL);
    launch(&b, &o, BURN_OP_DIV, NULL);
    assert_int_equal(read_fault(&b).value, 7);
    check_values(&b, &o, (const double[]){0, -2147483648.0});
    release(&b, &o);
    teardown(&b);
}

static void test_misuse(void **state)
{
    (void)state;
    bench b;
    operands o = {0};
    burn_err err = BURN_ERR_INIT;
    setup(&b, 0, NULL);
    burn_operand *x = tensor(&b, &o, BURN_F32, 1, (const int64_t[]){4}, NULL);
    tensor(&b, &o, BURN_F32, 1, (const int64_t[]){4}, NULL);
    x->offset = 4;
    assert_int_equal(launch_code(&b, &o, BURN_OP_EXP, NULL, &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "operand 0"));
    x->offset = 0;
    o.strides[0][0] = -1;
    assert_int_equal(launch_code(&b, &o, BURN_OP_EXP, NULL, &err), BURN_E_INVALID);
    o.strides[0][0] = 1;
    o.dims[0][0] = 3;
    assert_int_equal(launch_code(&b, &o, BURN_OP_EXP, NULL, &err), BURN_E_INTERNAL);
    assert_non_null(strstr(err.text, "broadcast"));
    o.dims[0][0] = 4;
    x->data = &b;
    assert_int_equal(launch_code(&b, &o, BURN_OP_EXP, NULL, &err), BURN_E_INTERNAL);
    x->data = NULL;
    burn_buffer *mine = x->buffer;
    x->buffer = o.list[1].buffer;
    assert_int_equal(launch_code(&b, &o, BURN_OP_EXP, NULL, &err), BURN_E_INTERNAL);
    assert_non_null(strstr(err.text, "storage"));
    x->buffer = mine;
    release(&b, &o);
    teardown(&b);
}

static void test_fail_op(void **state)
{
    (void)state;
    bench b;
    operands o = {0};
    burn_err err = BURN_ERR_INIT;
    burn_backend_device *dev = NULL;
    option_name = "MOCK_FAIL_OP";
    option_value = "4";
    assert_int_equal(api->open(0, NULL, &dev, &err), BURN_E_INVALID);
    option_value = "4:2";
    setup(&b, 0, NULL);
    option_name = NULL;
    for (int i = 1; i <= 3; i++) {
        tensor(&b, &o, BURN_F32, 1, (const int64_t[]){1}, (const double[]){0});
        tensor(&b, &o, BURN_F32, 1, (const int64_t[]){1}, NULL);
        launch(&b, &o, BURN_OP_EXP, NULL);
        assert_int_equal(read_fault(&b).code, i >= 2 ? BURN_E_INTERNAL : 0);
        release(&b, &o);
    }
    teardown(&b);
}

static void test_lose_device(void **state)
{
    (void)state;
    bench b;
    operands o = {0};
    burn_err err = BURN_ERR_INIT;
    setup(&b, 0, "lose_after=1");
    tensor(&b, &o, BURN_F32, 1, (const int64_t[]){1}, (const double[]){0});
    tensor(&b, &o, BURN_F32, 1, (const int64_t[]){1}, NULL);
    finish(&b);
    assert_int_equal(api->lost(b.dev), 0);
    launch(&b, &o, BURN_OP_EXP, NULL);
    int32_t code = api->signal(b.queue, ++b.point, &err);
    assert_true(code == BURN_OK || code == BURN_E_DEVICE_LOST);
    assert_int_equal(api->host_wait(b.queue, b.point, FOREVER, &err), BURN_E_DEVICE_LOST);
    assert_int_equal(api->lost(b.dev), 1);
    assert_int_equal(launch_code(&b, &o, BURN_OP_EXP, NULL, &err), BURN_E_DEVICE_LOST);
    api->free(b.dev, o.list[0].buffer);
    api->free(b.dev, o.list[1].buffer);
    teardown(&b);
}

static int open_plugin(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    void *library = dlopen(MOCK_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return -1;
    }
    void *symbol = dlsym(library, BURN_PLUGIN_SYMBOL);
    memcpy(&query, &symbol, sizeof(symbol));
    if (symbol == NULL) {
        return -1;
    }
    plugin = query(BURN_ABI_OLDEST, BURN_ABI_CURRENT, &host, &err);
    if (plugin == NULL) {
        (void)fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    api = plugin->device;
    return 0;
}

static int close_plugin(void **state)
{
    (void)state;
    plugin->shutdown();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entry),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_free_too_early),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_timeline),
        cmocka_unit_test(test_destroy_drains),
        cmocka_unit_test(test_add_strided),
        cmocka_unit_test(test_call_is_copied),
        cmocka_unit_test(test_max_B001_B003_B005),
        cmocka_unit_test(test_sum_matmul),
        cmocka_unit_test(test_scatter_gather_B048),
        cmocka_unit_test(test_slice_assign),
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_cast_where),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_fail_op),
        cmocka_unit_test(test_lose_device),
    };
    return cmocka_run_group_tests(tests, open_plugin, close_plugin);
}
