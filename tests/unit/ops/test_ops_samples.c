/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_ops_samples.c - tries every sample of every core op, without a device: see sample_check.h.
 * A new op is covered by being in the registry.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/registry.h"
#include "sample_check.h"

static void test_every_definition(void **state)
{
    (void)state;
    assert_true(burni_op_count() > 100);
    for (uint32_t i = 0; i < burni_op_count(); i++) {
        const burn_op_def *def = &burni_op_at(i)->def;
        assert_non_null(def->eval);
        assert_non_null(def->samples);
        assert_int_equal(check_samples(def), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
