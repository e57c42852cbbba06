/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_minors.c - hosts and plugins of different minors of one major: each pair that negotiates
 * loads, and the plugin's row runs.
 *
 * Built twice: with today's headers and loader, and with those of a simulated next minor
 * (tests/abi/newer.py). The plugins are one source (hostile.c, healthy) built with the frozen
 * headers of the first minor, with today's and with the simulated ones. Also the comparison of
 * layout hashes alone, for more minors than there are.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "world.h"

#include <burn/dtype.h>
#include <burn/op_list.h>
#include <stdio.h>
#include <string.h>

#ifdef NEXT_HOST
_Static_assert(offsetof(burn_row, simulated_next_field) > offsetof(burn_row, launch),
               "this is the host of the next minor");
#endif

/* Adds two numbers with the plugin's row, as the core would. */
static void run_row(const burn_plugin *table)
{
    const burn_device_api *api = table->device;
    const burn_row *row = &table->row_sets[0].rows[0];
    burn_err err = BURN_ERR_INIT;
    burn_backend_device *device = NULL;
    burn_queue *queue = NULL;
    assert_int_equal(row->op, BURN_OP_ADD);
    assert_int_equal(api->open(0, NULL, &device, &err), BURN_OK);
    assert_int_equal(api->queue_create(device, &queue, &err), BURN_OK);
    static const int64_t dims[1] = {2};
    static const int64_t strides[1] = {1};
    static const float values[2] = {1.5f, 2.0f};
    burn_operand operands[3];
    memset(operands, 0, sizeof(operands));
    for (uint32_t i = 0; i < 3; i++) {
        void *host = NULL;
        burn_operand *o = &operands[i];
        assert_int_equal(api->alloc(device, BURN_MEMORY_DEVICE, 64, &o->buffer, &host, &err),
                         BURN_OK);
        assert_int_equal(api->copy_in(queue, o->buffer, 0, values, sizeof(values), &err), BURN_OK);
        o->data = host;
        o->dims = dims;
        o->strides = strides;
        o->kind = BURN_TENSOR;
        o->dtype = BURN_F32;
        o->rank = 1;
        o->layout = BURN_LAYOUT_CONTIGUOUS;
    }
    burn_call call;
    BURN_INIT(&call, burn_call);
    call.operand_stride = (uint32_t)sizeof(burn_operand);
    call.n_in = 2;
    call.n_out = 1;
    call.queue = queue;
    call.operands = operands;
    call.err = &err;
    assert_int_equal(row->launch(&call), BURN_OK);
    float sums[2] = {0.0f, 0.0f};
    assert_int_equal(api->copy_out(queue, sums, operands[2].buffer, 0, sizeof(sums), &err),
                     BURN_OK);
    assert_true(sums[0] == 3.0f && sums[1] == 4.0f);
    for (uint32_t i = 0; i < 3; i++) {
        api->free(device, operands[i].buffer);
    }
    api->queue_destroy(queue);
    api->close(device);
}

static void expect_runs(const char *library, const char *id, const char *newest)
{
    char name[80];
    (void)snprintf(name, sizeof(name), "%s.so", id);
    world_library(library, name);
    world_manifest(id, "backend", "cpu", 1, newest);
    burni_loader_forget();
    world_err e;
    const burni_plugin *p = NULL;
    if (burni_loader_open(id, &p, world_err_init(&e)) != BURN_OK) {
        fail_msg("%s: %s", id, e.err.text);
    }
    assert_int_equal(p->table->struct_size, sizeof(burn_plugin));
    assert_int_equal(p->table->device->struct_size, sizeof(burn_device_api));
    assert_int_equal(p->table->row_sets[0].rows[0].struct_size, sizeof(burn_row));
    run_row(p->table);
}

/* Rule 25: a plugin that was built long ago still loads and works. */
static void b232_a_plugin_of_the_first_minor_runs(void **state)
{
    (void)state;
    expect_runs("frozen_v0_1.so", "frozen", "0.1");
}

static void b232_a_plugin_of_this_minor_runs(void **state)
{
    (void)state;
    expect_runs("hostile.so", "healthy", "0.1");
}

static void b232_a_plugin_of_the_next_minor_runs(void **state)
{
    (void)state;
    expect_runs("newer.so", "newer", "0.2");
}

/* Its sizes and its version are right. */
static void a_plugin_with_swapped_fields_is_refused(void **state)
{
    (void)state;
    world_err e;
    world_library("swapped.so", "swapped.so");
    world_manifest("swapped", "backend", "cpu", 1, "0.1");
    burni_loader_forget();
    assert_int_equal(burni_loader_open("swapped", NULL, world_err_init(&e)), BURN_E_ABI);
    world_expect(e.err.text, "its structs are laid out differently: layout hash");
}

static int32_t compare(const burn_plugin *theirs, uint32_t minor, uint64_t ours)
{
    static burni_entry e;
    memset(&e, 0, sizeof(e));
    return burni_check_layout(&e, theirs, BURN_ABI_VERSION(0, minor), ours);
}

/* Both sides carry the hashes of all their minors; that of the negotiated one decides. */
static void hashes_of_the_negotiated_minor_decide(void **state)
{
    (void)state;
    static const uint64_t theirs[] = {0, 11, 22, 33};
    burn_plugin p;
    BURN_INIT(&p, burn_plugin);
    p.magic.abi_newest = BURN_ABI_VERSION(0, 3);
    p.magic.layout_hash = 33;
    p.layouts = theirs;
    p.n_layouts = 4;
    assert_int_equal(compare(&p, 1, 11), BURN_OK);
    assert_int_equal(compare(&p, 2, 22), BURN_OK);
    assert_int_equal(compare(&p, 3, 33), BURN_OK);
    assert_int_equal(compare(&p, 2, 23), BURN_E_ABI);
    assert_int_equal(compare(&p, 1, 22), BURN_E_ABI);
    /* A plugin of the first headers has the one hash of its own minor. */
    p.struct_size = (uint32_t)offsetof(burn_plugin, layouts);
    assert_int_equal(compare(&p, 3, 33), BURN_OK);
    assert_int_equal(compare(&p, 3, 34), BURN_E_ABI);
    assert_int_equal(compare(&p, 2, 22), BURN_E_ABI);
    /* The very first ones state sizes alone; nobody else may. */
    p.magic.abi_newest = BURN_ABI_VERSION(0, 1);
    p.magic.layout_hash = UINT64_C(0x3d8d48e03bc652e5);
    assert_int_equal(compare(&p, 1, 11), BURN_OK);
    assert_int_equal(compare(&p, 2, 22), BURN_E_ABI);
    p.magic.layout_hash++;
    assert_int_equal(compare(&p, 1, 11), BURN_E_ABI);
    p.struct_size = (uint32_t)sizeof(p);
    p.magic.layout_hash--;
    p.layouts = NULL;
    assert_int_equal(compare(&p, 1, 11), BURN_E_ABI);
    /* Garbage in the table is no address to read from. */
    p.struct_size = (uint32_t)sizeof(p);
    p.layouts = (const uint64_t *)(uintptr_t)3;
    assert_int_equal(compare(&p, 2, 22), BURN_E_ABI);
}

#define LOADER_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOADER_TEST(b232_a_plugin_of_the_first_minor_runs),
        LOADER_TEST(b232_a_plugin_of_this_minor_runs),
        LOADER_TEST(b232_a_plugin_of_the_next_minor_runs),
        LOADER_TEST(a_plugin_with_swapped_fields_is_refused),
        LOADER_TEST(hashes_of_the_negotiated_minor_decide),
    };
    int failed = cmocka_run_group_tests_name("loader/minors", tests, NULL, NULL);
    world_remove_all();
    return failed;
}
