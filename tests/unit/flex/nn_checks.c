/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn_checks.c - assertions of nn_checks.h.
 *
 * Owns the two instances of the plugin and the comparison of their bits. The plugin's path comes
 * from BURN_TEST_FLEX.
 */
#include "nn_checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const burn_plugin *check_plugins[2];

static const char *plugin_path(void)
{
    const char *path = getenv("BURN_TEST_FLEX");
    return path != NULL ? path : "flex.so";
}

int check_load(int argc, char **argv)
{
    rig_isa_option(argc > 1 ? argv[1] : NULL);
    for (uint32_t i = 0; i < 2; i++) {
        check_plugins[i] = rig_plugin(plugin_path(), i + 1);
        if (check_plugins[i] == NULL) {
            return rig_lacks_isa() ? 77 : 1;
        }
    }
    return 0;
}

/* Runs with one thread, then with two into a second output; both must have equal bits. */
void check_both(rig_call *c)
{
    burn_err err = BURN_ERR_INIT;
    int32_t code = rig_run(check_plugins[0], c, &err);
    if (code != BURN_OK) {
        print_message("op %d: %s\n", (int)c->op, err.text);
    }
    assert_int_equal(code, BURN_OK);
    for (uint32_t i = 0; i < c->n_out; i++) {
        rig_tensor *first = c->out[i];
        rig_call again = *c;
        rig_tensor spare[RIG_MAX];
        for (uint32_t j = 0; j < c->n_out; j++) {
            spare[j] = rig_new(c->out[j]->dtype, c->out[j]->rank, c->out[j]->dims);
            again.out[j] = &spare[j];
        }
        assert_int_equal(rig_run(check_plugins[1], &again, &err), BURN_OK);
        int64_t n = rig_numel(first);
        for (int64_t k = 0; k < n; k++) {
            double a = rig_at(first, k);
            double b = rig_at(&spare[i], k);
            if (memcmp(&a, &b, sizeof(a)) != 0) {
                fail_msg("op %d output %u: element %lld is %a with 1 thread, %a with 2",
                         (int)c->op, i, (long long)k, a, b);
            }
        }
        for (uint32_t j = 0; j < c->n_out; j++) {
            rig_free(&spare[j]);
        }
    }
}

void check_close(double got, double want, double tolerance, const char *what, int64_t at)
{
    int near = got == want || fabs(got - want) <= tolerance; /* equal infinities, too */
    if (isnan(want) ? !isnan(got) : !near) {
        fail_msg("%s: element %lld is %.9g, not %.9g", what, (long long)at, got, want);
    }
}

void check_all(const rig_tensor *got, const double *want, double tolerance, const char *what)
{
    for (int64_t i = 0; i < rig_numel(got); i++) {
        check_close(rig_at(got, i), want[i], tolerance, what, i);
    }
}

void check_table(const rig_tensor *got, const float *want, double tolerance, const char *what)
{
    for (int64_t i = 0; i < rig_numel(got); i++) {
        check_close(rig_at(got, i), (double)want[i], tolerance, what, i);
    }
}
