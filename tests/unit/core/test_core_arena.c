/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_arena.c - memory of plans: the same bits as of calls that run one by one, less memory
 * than these, close to the bound that the plan states, flat, and a way out when it is short.
 *
 * Three networks make a step of training each: a perceptron, LeNet, a transformer block. What is
 * measured is the highest use since the last reset, so the first step, which is new in window auto
 * and runs call by call, gives the peak to compare with. To add a network: a row of `nets`.
 */
#include "core_test.h"

#include <burn/plans.h>
#include <string.h>

enum { WIDTH = 32, HEADS = 2, LENGTH = 16 };

/* ---- networks -------------------------------------------------------------------------------- */

static burn_module *make_mlp(burn_err *err)
{
    burn_module *m = burn_module_create(ad, err);
    (void)burn_nn_linear(m, "fc1", 64, 128, 1, err);
    (void)burn_nn_activation(m, "act1", BURN_RELU, err);
    (void)burn_nn_linear(m, "fc2", 128, 96, 1, err);
    (void)burn_nn_activation(m, "act2", BURN_TANH, err);
    (void)burn_nn_linear(m, "fc3", 96, 10, 1, err);
    return m;
}

static burn_module *make_lenet(burn_err *err)
{
    burn_conv_opts pad2;
    BURN_INIT(&pad2, burn_conv_opts);
    pad2.padding[0] = 2;
    pad2.padding[1] = 2;
    burn_module *m = burn_module_create(ad, err);
    (void)burn_nn_conv2d(m, "conv1", 1, 6, 5, &pad2, err);
    (void)burn_nn_activation(m, "act1", BURN_RELU, err);
    (void)burn_nn_max_pool2d(m, "pool1", 2, 2, err);
    (void)burn_nn_conv2d(m, "conv2", 6, 16, 5, NULL, err);
    (void)burn_nn_activation(m, "act2", BURN_RELU, err);
    (void)burn_nn_max_pool2d(m, "pool2", 2, 2, err);
    (void)burn_nn_flatten(m, "flat", err);
    (void)burn_nn_linear(m, "fc1", 400, 120, 1, err);
    (void)burn_nn_activation(m, "act3", BURN_RELU, err);
    (void)burn_nn_linear(m, "fc2", 120, 10, 1, err);
    return m;
}

/* Part `which` (0 query, 1 key, 2 value) of [b, s, 3 d] as [b, heads, s, d / heads]. */
static burn_tensor *head_part(burn_tensor *qkv, int64_t which)
{
    burn_tensor *part = burn_slice(qkv, 2, which * WIDTH, (which + 1) * WIDTH, 1);
    part = burn_reshape(part, 4, DIMS(burn_dim(qkv, 0), LENGTH, HEADS, WIDTH / HEADS));
    return burn_transpose(part, 1, 2);
}

static burn_tensor *BURN_CALL block_forward(burn_module *m, void *user, burn_tensor *x)
{
    (void)user;
    burn_tensor *qkv = burn_forward(burn_module_find(m, "qkv"),
                                    burn_forward(burn_module_find(m, "norm1"), x));
    burn_tensor *mixed =
        burn_attention(head_part(qkv, 0), head_part(qkv, 1), head_part(qkv, 2), NULL, 1, 0);
    mixed = burn_reshape(burn_transpose(mixed, 1, 2), 3, DIMS(burn_dim(x, 0), LENGTH, WIDTH));
    x = burn_add(x, burn_forward(burn_module_find(m, "proj"), mixed));
    burn_tensor *h = burn_forward(burn_module_find(m, "norm2"), x);
    h = burn_forward(burn_module_find(m, "fc1"), h);
    h = burn_forward(burn_module_find(m, "fc2"), burn_gelu(h, 0));
    return burn_add(x, h);
}

static burn_module *make_block(burn_err *err)
{
    burn_module *root = burn_module_create(ad, err);
    burn_module *m = burn_nn_custom(root, "block", block_forward, NULL, err);
    (void)burn_nn_layer_norm(m, "norm1", WIDTH, err);
    (void)burn_nn_linear(m, "qkv", WIDTH, 3 * WIDTH, 1, err);
    (void)burn_nn_linear(m, "proj", WIDTH, WIDTH, 1, err);
    (void)burn_nn_layer_norm(m, "norm2", WIDTH, err);
    (void)burn_nn_linear(m, "fc1", WIDTH, 4 * WIDTH, 1, err);
    (void)burn_nn_linear(m, "fc2", 4 * WIDTH, WIDTH, 1, err);
    return root;
}

static const struct {
    const char *name;
    burn_module *(*make)(burn_err *err);
    uint32_t rank;
    int64_t dims[4]; /* of one example */
    int32_t classes; /* or a value to come close to */
} nets[] = {
    {"perceptron", make_mlp, 2, {0, 64}, 1},
    {"LeNet", make_lenet, 4, {0, 1, 28, 28}, 1},
    {"block", make_block, 3, {0, LENGTH, WIDTH}, 0},
};

static burn_module *model;
static burn_tensor *xs;
static burn_tensor *ys;
static uint32_t net;

static void make(uint32_t which, int64_t batch)
{
    burn_err err = BURN_ERR_INIT;
    int64_t dims[4];
    burn_seed(3);
    net = which;
    model = nets[which].make(&err);
    assert_int_equal(err.code, BURN_OK);
    memcpy(dims, nets[which].dims, sizeof(dims));
    dims[0] = batch;
    burn_scope_begin();
    xs = burn_keep(burn_random_normal(dev, BURN_F32, nets[which].rank, dims));
    ys = nets[which].classes
             ? burn_cast(burn_mul(burn_random_uniform(dev, BURN_F32, 1, dims), burn_scalar(9.9)),
                         BURN_I64)
             : burn_random_normal(dev, BURN_F32, nets[which].rank, dims);
    ys = burn_keep(ys);
    burn_scope_end();
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
}

static void drop(void)
{
    burn_module_free(model);
    burn_release(xs);
    burn_release(ys);
    (void)burn_sync(dev, NULL);
}

/* Gradient descent without a state of its own, so that the first step is as the others. `each`:
 * in parts, each of which has run before the next begins. */
static int32_t step(int each, burn_err *err)
{
    burn_scope_begin();
    burn_tensor *out = burn_forward(model, xs);
    int32_t rc = each ? burn_sync(dev, err) : BURN_OK;
    burn_tensor *loss = nets[net].classes ? burn_cross_entropy(out, ys, NULL, NULL)
                                          : burn_mse_loss(out, ys, BURN_REDUCTION_MEAN);
    burn_grads *grads = rc == BURN_OK ? burn_backward(loss, NULL, 0, err) : NULL;
    rc = grads != NULL ? rc : err->code;
    burn_attrs_sgd a;
    burn_attrs_init(&a, sizeof(a));
    burn_var *v;
    for (uint32_t i = 0; rc == BURN_OK && (v = burn_module_var_at(model, i, NULL, NULL)) != NULL;
         i++) {
        burn_var *const vars[] = {v, NULL, NULL, NULL};
        burn_tensor *const in[] = {NULL, burn_grads_get_var(grads, v), NULL, burn_scalar(0.05)};
        rc = each ? burn_sync(dev, err) : BURN_OK;
        rc = rc == BURN_OK
                 ? burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, err)
                 : rc;
    }
    burn_grads_free(grads);
    burn_scope_end();
    return rc;
}

static void steps_of(uint32_t n, int each)
{
    for (uint32_t i = 0; i < n; i++) {
        burn_err err = BURN_ERR_INIT;
        if (step(each, &err) != BURN_OK || burn_sync(dev, &err) != BURN_OK) {
            fail_msg("%s: %s", nets[net].name, err.text);
        }
    }
}

static void steps(uint32_t n)
{
    steps_of(n, 0);
}

static burn_memory memory(void)
{
    burn_memory m;
    BURN_INIT(&m, burn_memory);
    assert_int_equal(burn_memory_report(dev, &m, NULL), BURN_OK);
    return m;
}

static burn_plan_totals plans(void)
{
    burn_plan_totals t;
    BURN_INIT(&t, burn_plan_totals);
    assert_int_equal(burn_plan_report(dev, &t, NULL), BURN_OK);
    return t;
}

/* ---- peaks ----------------------------------------------------------------------------------- */

static void peak_of(uint32_t which, int64_t batch)
{
    make(which, batch);
    burn_memory_peak_reset(dev);
    steps(1);
    uint64_t eager = memory().peak_in_use;
    steps(3);
    burn_memory_peak_reset(dev);
    uint64_t before = memory().in_use;
    assert_int_equal(memory().peak_in_use, before);
    steps(3);
    uint64_t peak = memory().peak_in_use;
    burn_plan_totals t = plans();
    if (window == 0) {
        /* The plan of the step was used last, and the device holds nothing else. */
        print_message("%s: eager %llu, planned %llu, bound %llu, piece %llu of %u values\n",
                      nets[which].name, (unsigned long long)eager, (unsigned long long)peak,
                      (unsigned long long)t.last.live_bytes, (unsigned long long)t.last.piece_bytes,
                      t.last.n_places);
        /* Without fused kernels little is left out, and another order may cost a little. */
        assert_true(on_mock ? peak < eager + eager / 16 : peak < eager);
        assert_true(t.last.live_bytes > before / 2);
        assert_true(peak >= t.last.live_bytes);
        assert_true(peak * 10 <= t.last.live_bytes * 11);
        /* A piece where it needs no more than values apart; all that is left is to share. */
        assert_true(t.last.piece_bytes >= t.last.piece_bound);
        assert_true(t.last.peak_bytes <= t.last.apart_bytes);
        assert_true(t.last.piece_bytes > 0 ? t.last.n_places > 10
                                           : t.last.peak_bytes == t.last.apart_bytes);
        assert_true(on_mock || which == 2 || t.last.piece_bytes > 0);
        assert_true(t.hits > 0);
    }
    assert_int_equal(memory().in_use, before);
    drop();
}

static void arena__a_step_stays_close_to_its_bound(void **state)
{
    (void)state;
    peak_of(0, 64);
    peak_of(1, 16);
    peak_of(2, 8);
}

static void arena__memory_is_flat(void **state)
{
    (void)state;
    make(0, 32);
    steps(10);
    burn_memory first = memory();
    for (uint32_t i = 0; i < 100; i++) {
        steps(1);
        burn_memory now = memory();
        assert_int_equal(now.in_use, first.in_use);
        assert_int_equal(now.reserved, first.reserved);
        assert_int_equal(now.n_allocations, first.n_allocations);
    }
    drop();
}

/* ---- values ---------------------------------------------------------------------------------- */

static void settle(int each)
{
    if (each) {
        assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    }
}

/* Values that die early and late, one that is kept from the middle, in-place candidates, two
 * results of one input. `each`: every call runs before the next is made. */
static void chain(burn_tensor *x, burn_tensor *w, int each, burn_tensor **out)
{
    burn_scope_begin();
    burn_tensor *h = burn_matmul(x, w);
    settle(each);
    burn_tensor *a = burn_relu(h);
    settle(each);
    burn_tensor *b = burn_matmul(a, w);
    settle(each);
    burn_tensor *c = burn_exp(burn_neg(burn_abs(b)));
    settle(each);
    burn_tensor *d = burn_softmax(burn_matmul(c, w), -1);
    settle(each);
    burn_tensor *e = burn_add(burn_matmul(d, w), h);
    settle(each);
    burn_tensor *f = burn_sum(burn_mul(e, c), 1, DIMS(1), 1);
    settle(each);
    burn_tensor *g = burn_sub(e, f);
    settle(each);
    out[0] = burn_keep(b);
    out[1] = burn_keep(burn_matmul(g, w));
    settle(each);
    burn_scope_end();
}

static void compare_chains(int64_t rows)
{
    burn_tensor *want[2];
    burn_tensor *got[2];
    burn_scope_begin();
    burn_tensor *x = burn_random_normal(dev, BURN_F32, 2, DIMS(rows, 48));
    burn_tensor *w = burn_mul(burn_random_normal(dev, BURN_F32, 2, DIMS(48, 48)), burn_scalar(0.1));
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    chain(x, w, 1, want);
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    chain(x, w, 0, got);
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    /* What is kept is no part of the piece: the next run writes the same places. */
    burn_tensor *other[2];
    chain(burn_neg(x), w, 0, other);
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    for (uint32_t i = 0; i < 2; i++) {
        check_same(want[i], got[i]);
        burn_release(want[i]);
        burn_release(got[i]);
        burn_release(other[i]);
    }
    burn_scope_end();
}

static void arena__bits_are_those_of_single_calls(void **state)
{
    (void)state;
    uint64_t before = in_use();
    for (uint32_t round = 0; round < 6; round++) {
        compare_chains(40);
    }
    assert_int_equal(in_use(), before);
}

static void arena__other_sizes_get_other_places(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 24; round++) {
        compare_chains(round < 12 ? 16 + 16 * (round % 3) : 16 + 5 * round);
    }
}

/* A result that lies on its operand, while that is a view from its memory's first byte on; then the
 * same calls with a view from further behind. Threads that write at the front would be faster than
 * others that read. */
enum { WHOLE = 1 << 20, PART = 3 << 18 };

static void overlapping(burn_tensor *x, int64_t from, int each, burn_tensor **out)
{
    burn_scope_begin();
    burn_tensor *y = burn_exp(x);
    settle(each);
    burn_tensor *z = burn_neg(burn_slice(y, 0, from, from + PART, 1));
    settle(each);
    out[0] = burn_keep(burn_copy(burn_flip(z, 1, DIMS(0))));
    settle(each);
    burn_tensor *root = burn_sqrt(burn_abs(x));
    settle(each);
    out[1] = burn_keep(burn_copy(burn_flip(root, 1, DIMS(0))));
    settle(each);
    burn_scope_end();
}

static void arena__a_view_that_moves_shares_no_memory(void **state)
{
    (void)state;
    burn_scope_begin();
    burn_tensor *x = burn_random_normal(dev, BURN_F32, 1, DIMS(WHOLE));
    for (int64_t round = 0; round < 6; round++) {
        int64_t from = round < 4 ? 0 : WHOLE - PART;
        burn_tensor *want[2];
        burn_tensor *got[2];
        overlapping(x, from, 0, got);
        assert_int_equal(burn_sync(dev, NULL), BURN_OK);
        overlapping(x, from, 1, want);
        assert_int_equal(burn_sync(dev, NULL), BURN_OK);
        for (uint32_t i = 0; i < 2; i++) {
            check_same(want[i], got[i]);
            burn_release(want[i]);
            burn_release(got[i]);
        }
    }
    burn_scope_end();
}

/* The same training, as a whole and in parts. */
static void arena__training_gives_the_same_bits(void **state)
{
    (void)state;
    static const char *const looked_at[] = {"fc1.weight", "conv1.weight", "block.fc1.weight"};
    for (uint32_t which = 0; which < COUNT(nets); which++) {
        burn_tensor *trained[2];
        for (int each = 0; each < 2; each++) {
            make(which, 4);
            steps_of(5, each);
            burn_var *v = burn_module_var(model, looked_at[which]);
            burn_scope_begin();
            trained[each] = burn_keep(burn_copy(burn_var_get(v)));
            burn_scope_end();
            drop();
        }
        check_same(trained[0], trained[1]);
        burn_release(trained[0]);
        burn_release(trained[1]);
    }
}

/* ---- when memory is short -------------------------------------------------------------------- */

static void arena__without_a_piece_values_have_blocks(void **state)
{
    (void)state;
    burn_tensor *want[2];
    burn_tensor *got[2];
    burn_scope_begin();
    burn_tensor *x = burn_random_normal(dev, BURN_F32, 2, DIMS(70, 48));
    burn_tensor *w = burn_mul(burn_random_normal(dev, BURN_F32, 2, DIMS(48, 48)), burn_scalar(0.1));
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    chain(x, w, 1, want);
    burn_memory_trim(dev);
    burn_memory_limit(dev, memory().reserved);
    for (uint32_t round = 0; round < 4; round++) {
        chain(x, w, 0, got);
        assert_int_equal(burn_sync(dev, NULL), BURN_OK);
        check_same(want[0], got[0]);
        check_same(want[1], got[1]);
        burn_release(got[0]);
        burn_release(got[1]);
    }
    if (window == 0) {
        assert_int_equal(plans().last.piece_bytes, 0);
    }
    burn_memory_limit(dev, 0);
    burn_release(want[0]);
    burn_release(want[1]);
    burn_scope_end();
    check_clean();
}

static void arena__a_step_that_finds_no_memory_fails_and_the_next_does_not(void **state)
{
    (void)state;
    enum { ROWS = 4096 };
    burn_scope_begin();
    burn_tensor *x = burn_random_normal(dev, BURN_F32, 2, DIMS(ROWS, 256));
    burn_tensor *w = burn_random_normal(dev, BURN_F32, 2, DIMS(256, 256));
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    burn_memory_trim(dev);
    uint64_t reserved = memory().reserved;
    for (uint32_t round = 0; round < 6; round++) {
        int is_short = round == 3;
        burn_memory_limit(dev, is_short ? reserved + 1024 : 0);
        burn_scope_begin();
        burn_tensor *y = burn_matmul(burn_relu(burn_matmul(burn_relu(burn_matmul(x, w)), w)), w);
        burn_tensor *sum = burn_mean(burn_abs(y), 0, NULL, 0);
        if (is_short) {
            check_read_fails(sum, BURN_E_NO_MEMORY, "memory", NULL);
        } else {
            burn_err err = BURN_ERR_INIT;
            assert_true(burn_item(sum, &err) > 0);
            assert_int_equal(err.code, BURN_OK);
        }
        burn_scope_end();
        (void)burn_sync(dev, NULL);
        burn_memory_trim(dev);
    }
    burn_memory_limit(dev, 0);
    burn_scope_end();
    check_clean();
}

/* ---- the report ------------------------------------------------------------------------------ */

static void arena__the_report_tells_each_plan(void **state)
{
    (void)state;
    make(0, 8);
    steps(4);
    burn_err err = BURN_ERR_INIT;
    burn_plan_totals t = plans();
    burn_plan_info info;
    BURN_INIT(&info, burn_plan_info);
    for (uint32_t i = 0; i < t.n_plans; i++) {
        assert_int_equal(burn_plan_at(dev, i, &info, &err), BURN_OK);
        assert_true(info.n_launches > 0 && info.n_launches <= info.n_calls);
        assert_true(info.n_fused >= 2 * info.n_groups);
        assert_true(info.peak_bytes <= t.largest.peak_bytes);
        assert_true(info.live_bytes <= info.apart_bytes);
    }
    assert_int_equal(burn_plan_at(dev, t.n_plans, &info, &err), BURN_E_NOT_FOUND);
    assert_int_equal(burn_plan_report(NULL, &t, &err), BURN_E_INVALID);
    assert_int_equal(burn_plan_at(dev, 0, NULL, &err), BURN_E_INVALID);
    static char text[64 * 1024];
    size_t length = burn_plan_text(dev, NULL, 0);
    assert_true(length > 0 && length < sizeof(text));
    assert_int_equal(burn_plan_text(dev, text, sizeof(text)), length);
    assert_int_equal(strlen(text), length);
    assert_non_null(strstr(text, " kept, "));
    assert_int_equal(strstr(text, "plan 0:") != NULL, t.n_plans > 0);
    char little[8];
    assert_int_equal(burn_plan_text(dev, little, sizeof(little)), length);
    assert_int_equal(strlen(little), sizeof(little) - 1);
    drop();
}

/* ---- dry runs -------------------------------------------------------------------------------- */

static burn_dry_run end_dry(void)
{
    burn_err err = BURN_ERR_INIT;
    burn_dry_run r;
    BURN_INIT(&r, burn_dry_run);
    if (burn_dry_run_end(&r, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    return r;
}

/* Model, data and steps in a dry run, then in earnest. */
static void foretell(uint32_t which, int64_t batch)
{
    burn_err err = BURN_ERR_INIT;
    burn_memory_trim(dev);
    uint64_t reserved = memory().reserved;
    uint64_t before = in_use();
    burn_memory_peak_reset(dev);
    assert_int_equal(burn_dry_run_begin(dev, &err), BURN_OK);
    make(which, batch);
    steps(2);
    drop();
    burn_dry_run told = end_dry();
    assert_int_equal(in_use(), before);
    assert_int_equal(memory().reserved, reserved);
    assert_int_equal(memory().peak_in_use, before);
    make(which, batch);
    steps(3);
    uint64_t kept = in_use() - before;
    burn_memory_peak_reset(dev);
    steps(2);
    uint64_t peak = memory().peak_in_use - before;
    uint64_t of_variables = 0;
    burn_var *v;
    for (uint32_t i = 0; (v = burn_module_var_at(model, i, NULL, NULL)) != NULL; i++) {
        burn_scope_begin();
        of_variables += 4 * (uint64_t)burn_numel(burn_var_get(v));
        burn_scope_end();
    }
    drop();
    print_message("%s: told %llu (bound %llu), was %llu\n", nets[which].name,
                  (unsigned long long)told.peak_bytes, (unsigned long long)told.live_bytes,
                  (unsigned long long)peak);
    assert_int_equal(told.before, before);
    assert_int_equal(told.variable_bytes, of_variables);
    assert_true(told.n_variables > 0);
    assert_true(told.live_bytes <= told.peak_bytes);
    assert_true(told.live_bytes > of_variables && told.peak_bytes > kept);
    /* Plans may give values other places in one of the two; blocks are rounded up. */
    assert_true(told.peak_bytes >= peak - peak / 16);
    assert_true(told.peak_bytes <= peak + peak / 16);
    assert_true(told.launches > 0 && told.launches <= told.calls);
    assert_true(told.largest > 0 && told.largest_op[0] != '\0');
    check_clean();
}

static void dry_run__tells_the_peak_of_the_steps_to_come(void **state)
{
    (void)state;
    foretell(1, 16);
    foretell(2, 8);
}

static void dry_run__gives_shapes_and_no_values(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    uint64_t before = in_use();
    burn_scope_begin();
    burn_var *old = burn_var_create(dev, VEC(1, 2, 3), &err);
    assert_non_null(old);
    burn_seed(11);
    burn_tensor *want = burn_random_uniform(dev, BURN_F32, 1, DIMS(4));
    (void)burn_sync(dev, NULL);
    burn_seed(11);
    assert_int_equal(burn_dry_run_begin(dev, &err), BURN_OK);
    burn_tensor *x = burn_exp(VEC(1, 2, 3));
    burn_tensor *y = burn_add(burn_var_get(old), x);
    (void)burn_random_uniform(dev, BURN_F32, 1, DIMS(9));
    check_shape(y, 1, DIMS(3));
    check_read_fails(y, BURN_E_STATE, "dry run", NULL);
    burn_var *fresh = burn_var_create(dev, y, &err);
    assert_non_null(fresh);
    assert_int_equal(burn_var_assign(old, y, &err), BURN_OK);
    assert_int_equal(burn_var_assign(fresh, x, &err), BURN_OK);
    burn_dry_run told = end_dry();
    assert_int_equal(told.n_variables, 1);
    assert_int_equal(told.variable_bytes, 12);
    /* What was there is as it was; what was made in it has no value, nor has what is made of it. */
    CHECK(burn_var_get(old), 1, 2, 3);
    check_read_fails(x, BURN_E_STATE, "dry run", NULL);
    check_read_fails(burn_neg(y), BURN_E_STATE, "dry run", NULL);
    check_read_fails(burn_var_get(fresh), BURN_E_STATE, "dry run", NULL);
    check_same(burn_random_uniform(dev, BURN_F32, 1, DIMS(4)), want);
    /* A new value heals the variable. */
    assert_int_equal(burn_var_assign(fresh, VEC(7, 8, 9), &err), BURN_OK);
    (void)burn_sync(dev, NULL);
    burn_scope_end();
    burn_scope_begin();
    burn_err later = BURN_ERR_INIT;
    assert_int_equal(burn_var_assign(old, VEC(4, 5, 6), &later), BURN_OK);
    CHECK(burn_var_get(old), 4, 5, 6);
    burn_scope_end();
    burn_var_release(old);
    burn_var_release(fresh);
    (void)burn_sync(dev, NULL);
    assert_int_equal(in_use(), before);
    check_clean();
}

static void dry_run__is_one_at_a_time(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_dry_run r;
    BURN_INIT(&r, burn_dry_run);
    assert_int_equal(burn_dry_run_end(&r, &err), BURN_E_STATE);
    assert_non_null(strstr(err.text, "burn_dry_run_begin"));
    assert_int_equal(burn_dry_run_begin(NULL, &err), BURN_E_INVALID);
    assert_int_equal(burn_dry_run_begin(dev, &err), BURN_OK);
    assert_int_equal(burn_dry_run_begin(dev, &err), BURN_E_STATE);
    assert_int_equal(burn_dry_run_end(NULL, &err), BURN_E_INVALID);
    r = end_dry();
    assert_int_equal(r.calls, 0);
    assert_int_equal(r.peak_bytes, 0);
    burn_scope_begin();
    CHECK(burn_neg(VEC(1, 2)), -1, -2);
    burn_scope_end();
}

/* More than there is: the bound of the device counts, its memory does not. */
static void dry_run__may_need_more_than_there_is(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_memory_limit(dev, memory().reserved + 1024);
    assert_int_equal(burn_dry_run_begin(dev, &err), BURN_OK);
    burn_scope_begin();
    burn_tensor *x = burn_zeros(dev, BURN_F32, 2, DIMS(20000, 20000));
    burn_tensor *y = burn_keep(burn_add(x, burn_exp(x)));
    burn_scope_end();
    burn_dry_run r = end_dry();
    burn_memory_limit(dev, 0);
    burn_release(y);
    assert_true(r.peak_bytes >= UINT64_C(1600000000));
    assert_int_equal(r.largest, UINT64_C(1600000000));
    assert_int_equal(r.largest_rank, 2);
    assert_int_equal(r.largest_dims[1], 20000);
    check_clean();
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CORE_TEST(arena__a_step_stays_close_to_its_bound),
        CORE_TEST(arena__memory_is_flat),
        CORE_TEST(arena__bits_are_those_of_single_calls),
        CORE_TEST(arena__other_sizes_get_other_places),
        CORE_TEST(arena__a_view_that_moves_shares_no_memory),
        CORE_TEST(arena__training_gives_the_same_bits),
        CORE_TEST(arena__without_a_piece_values_have_blocks),
        CORE_TEST(arena__a_step_that_finds_no_memory_fails_and_the_next_does_not),
        CORE_TEST(arena__the_report_tells_each_plan),
        CORE_TEST(dry_run__tells_the_peak_of_the_steps_to_come),
        CORE_TEST(dry_run__gives_shapes_and_no_values),
        CORE_TEST(dry_run__is_one_at_a_time),
        CORE_TEST(dry_run__may_need_more_than_there_is),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
