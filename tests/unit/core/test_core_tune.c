/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_tune.c - named environments: the file, what is kept and what is not used.
 *
 * No test asks which kernel is faster: files are made with choices that nobody would make, and what
 * a call took is read from the table of explain. Each test has its own folder for environments.
 */
#include "core_test.h"

#include "core/base/alloc.h"
#include "core/exec/tuner.h"
#include "core/tune/environment.h"
#include "core/tune/place.h"

#include <burn/environment.h>
#include <burn/explain.h>
#include <burn/store.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[] = "/tmp/burn-tune-XXXXXX";
static char folder[64];
static char log_text[8192];

/* ---- help ------------------------------------------------------------------------------------ */

static void BURN_CALL take_log(void *user, int32_t level, const char *source, const char *text)
{
    (void)user;
    (void)level;
    (void)source;
    size_t used = strlen(log_text);
    (void)snprintf(log_text + used, sizeof(log_text) - used, "%s\n", text);
}

static int begin(void **state)
{
    static int n;
    (void)snprintf(folder, sizeof(folder), "%s/%d", root, n++);
    log_text[0] = '\0';
    burn_log_set(take_log, NULL, 3);
    return setenv("BURN_ENVIRONMENT_PATH", folder, 1) == 0 ? core_setup(state) : -1;
}

static int end(void **state)
{
    burn_log_set(NULL, NULL, 0);
    burni_tuner_force(NULL);
    return burn_environment_load(NULL, NULL) == BURN_OK ? core_teardown(state) : -1;
}
#define TUNE_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

static void fill_identity(burni_identity *id, const char *hardware)
{
    memset(id, 0, sizeof(*id));
    (void)snprintf(id->backend, sizeof(id->backend), "flex");
    (void)snprintf(id->hardware, sizeof(id->hardware), "%s", hardware);
    id->units = 2;
    id->rows = 77;
}

static void add_choice(burni_benv_device *d, const char *key, const char *row, double seconds)
{
    burni_choice c;
    memset(&c, 0, sizeof(c));
    c.key = (unsigned char *)(uintptr_t)key;
    c.key_size = (uint32_t)strlen(key);
    c.text = (char *)(uintptr_t)"matmul(f32[2,3], f32[3,4])";
    c.seconds = seconds;
    c.candidates = 5;
    c.n_candidates = 2;
    c.rival_seconds = 2 * seconds;
    (void)snprintf(c.row, sizeof(c.row), "%s", row);
    (void)snprintf(c.rival, sizeof(c.rival), "other");
    assert_int_equal(burni_benv_set_choice(d, &c), BURN_OK);
}

static burni_benv *small_one(void)
{
    burni_identity id;
    burni_benv *env = burni_benv_new();
    assert_non_null(env);
    fill_identity(&id, "A processor");
    assert_int_equal(burni_benv_need(env, &id), 0);
    burni_benv_device *d = &env->devices[0];
    add_choice(d, "bb", "row.b", 2e-3);
    add_choice(d, "a", "row.a", 1e-3);
    add_choice(d, "b", "row.c", 3e-3);
    assert_int_equal(burni_benv_set_roof(d, BURNI_ROOF_BYTES, 1e10), BURN_OK);
    assert_int_equal(burni_benv_set_roof(d, 3, 2e11), BURN_OK);
    assert_int_equal(burni_benv_set_plan(d, 9, "plan nine", 9), BURN_OK);
    assert_int_equal(burni_benv_set_plan(d, 4, "", 0), BURN_OK);
    fill_identity(&id, "Another");
    assert_int_equal(burni_benv_need(env, &id), 1);
    return env;
}

static void file_of(const char *name, char *path, size_t size)
{
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burni_place_file(name, path, size, &err), BURN_OK);
}

static burni_benv *read_environment(const char *name)
{
    char path[BURNI_PLACE_BYTES];
    burni_benv *env = NULL;
    uint64_t size = 0;
    burn_err err = BURN_ERR_INIT;
    file_of(name, path, sizeof(path));
    if (burni_place_read(path, &env, &size, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    return env;
}

static void write_environment(const char *name, burni_benv *env)
{
    char path[BURNI_PLACE_BYTES];
    uint64_t size = 0;
    burn_err err = BURN_ERR_INIT;
    file_of(name, path, sizeof(path));
    assert_int_equal(burni_place_make(&err), BURN_OK);
    unsigned char *bytes = burni_benv_encode(env, &size);
    assert_non_null(bytes);
    assert_int_equal(burni_place_write(path, bytes, size, &err), BURN_OK);
    burni_free(bytes);
    burni_benv_free(env);
}

/* ---- the bytes ------------------------------------------------------------------------------- */

static void a_file__comes_back_as_it_was(void **state)
{
    (void)state;
    uint64_t size = 0;
    uint64_t again = 0;
    burn_err err = BURN_ERR_INIT;
    burni_benv *env = small_one();
    unsigned char *bytes = burni_benv_encode(env, &size);
    burni_benv *read = NULL;
    assert_int_equal(burni_benv_decode(bytes, size, &read, &err), BURN_OK);
    assert_int_equal(read->n_devices, 2);
    const burni_benv_device *d = &read->devices[0];
    assert_int_equal(d->n_choices, 3);
    const burni_choice *c = burni_benv_choice(d, "bb", 2);
    assert_non_null(c);
    assert_string_equal(c->row, "row.b");
    assert_string_equal(c->text, "matmul(f32[2,3], f32[3,4])");
    assert_true(c->seconds == 2e-3 && c->rival_seconds == 4e-3);
    assert_null(burni_benv_choice(d, "c", 1));
    assert_true(burni_benv_roof(d, BURNI_ROOF_BYTES) == 1e10);
    assert_true(burni_benv_roof(d, 2) == 0.0);
    assert_int_equal(burni_benv_plan(d, 9)->size, 9);
    assert_memory_equal(burni_benv_plan(d, 9)->bytes, "plan nine", 9);
    assert_null(burni_benv_plan(d, 5));
    unsigned char *same = burni_benv_encode(read, &again);
    assert_int_equal(again, size);
    assert_memory_equal(same, bytes, size);
    burni_free(same);
    burni_free(bytes);
    burni_benv_free(read);
    burni_benv_free(env);
}

static void a_damaged_file__is_refused_wherever_it_is_damaged(void **state)
{
    (void)state;
    uint64_t size = 0;
    burni_benv *env = small_one();
    unsigned char *bytes = burni_benv_encode(env, &size);
    burni_benv_free(env);
    for (uint64_t i = 0; i < size; i++) {
        burni_benv *read = NULL;
        burn_err err = BURN_ERR_INIT;
        bytes[i] ^= 0x41;
        assert_int_equal(burni_benv_decode(bytes, size, &read, &err), BURN_E_FORMAT);
        assert_null(read);
        assert_true(strncmp(err.text, "offset ", 7) == 0);
        bytes[i] ^= 0x41;
        burn_err cut = BURN_ERR_INIT;
        assert_int_equal(burni_benv_decode(bytes, i, &read, &cut), BURN_E_FORMAT);
    }
    burni_free(bytes);
}

static void a_damaged_file__is_not_loaded_and_nothing_changes(void **state)
{
    (void)state;
    char path[BURNI_PLACE_BYTES];
    burn_err err = BURN_ERR_INIT;
    write_environment("broken", small_one());
    file_of("broken", path, sizeof(path));
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0 && pwrite(fd, "X", 1, 60) == 1);
    assert_int_equal(close(fd), 0);
    assert_int_equal(burn_environment_load("good", &err), BURN_OK);
    assert_int_equal(burn_environment_load("broken", &err), BURN_E_FORMAT);
    assert_non_null(strstr(err.text, "broken.benv: offset 24: the checksum"));
    assert_string_equal(burn_environment_name(), "good");
    burn_environment_info info;
    BURN_INIT(&info, burn_environment_info);
    assert_int_equal(burn_environment_list(0, &info, NULL), BURN_OK);
    assert_string_equal(info.name, "broken");
    assert_int_equal(info.code, BURN_E_FORMAT);
}

/* ---- names and files ------------------------------------------------------------------------- */

static void names_and_folders__are_checked(void **state)
{
    (void)state;
    const char *const bad[] = {"", "A", "a b", "../x", "a.b", "a/b", "\xc3\xa4",
                               "a2345678901234567890123456789012345678901234567890123456789012345"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        burn_err err = BURN_ERR_INIT;
        assert_int_equal(burn_environment_load(bad[i], &err), BURN_E_INVALID);
        assert_non_null(strstr(err.text, "a-z 0-9 _ -"));
        assert_int_equal(burn_environment_clear(bad[i], NULL), BURN_E_INVALID);
    }
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(setenv("BURN_ENVIRONMENT_PATH", "relative/folder", 1), 0);
    assert_int_equal(burn_environment_load("fine", &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "BURN_ENVIRONMENT_PATH"));
    assert_int_equal(setenv("BURN_ENVIRONMENT_PATH", folder, 1), 0);
    assert_int_equal(burn_environment_clear("nothing", NULL), BURN_E_NOT_FOUND);
    assert_null(burn_environment_open("nothing", NULL));
}

static void a_file_that_everybody_may_write__is_refused(void **state)
{
    (void)state;
    char path[BURNI_PLACE_BYTES];
    burn_err err = BURN_ERR_INIT;
    write_environment("open", small_one());
    file_of("open", path, sizeof(path));
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(burn_environment_load("open", &err), BURN_E_DENIED);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(burn_environment_load("open", NULL), BURN_OK);
}

static void files__are_exported_imported_listed_and_cleared(void **state)
{
    (void)state;
    char path[128];
    burn_err err = BURN_ERR_INIT;
    burn_environment_info info;
    (void)snprintf(path, sizeof(path), "%s.shipped", folder);
    write_environment("one", small_one());
    assert_int_equal(burn_environment_export("one", path, &err), BURN_OK);
    assert_int_equal(burn_environment_import("two", path, &err), BURN_OK);
    burni_benv *two = read_environment("two");
    assert_int_equal(two->devices[0].n_choices, 3);
    burni_benv_free(two);
    BURN_INIT(&info, burn_environment_info);
    assert_int_equal(burn_environment_list(1, &info, &err), BURN_OK);
    assert_string_equal(info.name, "two");
    assert_int_equal(info.n_choices, 3);
    assert_int_equal(info.n_plans, 2);
    assert_int_equal(burn_environment_list(2, &info, NULL), BURN_E_NOT_FOUND);
    burn_environment *env = burn_environment_open("two", &err);
    burn_environment_choice_info choice;
    BURN_INIT(&choice, burn_environment_choice_info);
    assert_int_equal(burn_environment_choice(env, 0, 2, &choice, &err), BURN_OK);
    assert_string_equal(choice.row, "row.b");
    assert_int_equal(burn_environment_choice(env, 0, 3, &choice, NULL), BURN_E_NOT_FOUND);
    assert_int_equal(burn_environment_choice(env, 2, 0, &choice, NULL), BURN_E_NOT_FOUND);
    burn_environment_close(env);
    assert_int_equal(burn_environment_load("two", &err), BURN_OK);
    assert_int_equal(burn_environment_import("two", path, &err), BURN_E_STATE);
    assert_int_equal(burn_environment_clear("two", NULL), BURN_OK);
    assert_string_equal(burn_environment_name(), "two");
    assert_int_equal(burn_environment_list(1, &info, NULL), BURN_E_NOT_FOUND);
    assert_int_equal(unlink(path), 0);
}

/* Each child learns other things about one device, again and again, and saves each time. */
static void learn(const char *name, int child)
{
    burni_identity id;
    char key[32];
    int bad = burn_environment_load(name, NULL) != BURN_OK;
    fill_identity(&id, "Shared");
    burni_environment_device("flex:9", &id);
    for (int i = 0; i < 20 && !bad; i++) {
        burni_choice c;
        memset(&c, 0, sizeof(c));
        (void)snprintf(key, sizeof(key), "%d of %d", i, child);
        (void)snprintf(c.row, sizeof(c.row), "row");
        c.key = (unsigned char *)key;
        c.key_size = (uint32_t)strlen(key);
        burni_environment_keep("flex:9", &c);
        bad = burn_environment_save(NULL) != BURN_OK;
    }
    _exit(bad);
}

static void two_processes__lose_nothing(void **state)
{
    (void)state;
    pid_t children[3];
    for (int k = 0; k < 3; k++) {
        children[k] = fork();
        if (children[k] == 0) {
            learn("shared", k);
        }
        assert_true(children[k] > 0);
    }
    for (int k = 0; k < 3; k++) {
        int status = -1;
        assert_int_equal(waitpid(children[k], &status, 0), children[k]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    burni_benv *env = read_environment("shared");
    assert_int_equal(env->n_devices, 1);
    assert_int_equal(env->devices[0].n_choices, 60);
    burni_benv_free(env);
}

static void plans__are_kept_under_their_device(void **state)
{
    (void)state;
    size_t size = 1;
    assert_null(burni_environment_plan_get("flex:9", 1, &size));
    assert_int_equal(size, 0);
    burni_environment_plan_put("flex:9", 1, "lost", 4); /* no environment */
    for (int round = 0; round < 2; round++) {
        burni_identity id;
        assert_int_equal(burn_environment_load("plans", NULL), BURN_OK);
        assert_null(burni_environment_plan_get("flex:9", 1, &size)); /* the device is not known */
        fill_identity(&id, "Mine");
        burni_environment_device("flex:9", &id);
        if (round == 0) {
            burni_environment_plan_put("flex:9", 1, "first", 5);
            burni_environment_plan_put("flex:9", 1, "second", 6);
        }
        unsigned char *bytes = burni_environment_plan_get("flex:9", 1, &size);
        assert_non_null(bytes);
        assert_int_equal(size, 6);
        assert_memory_equal(bytes, "second", 6);
        burni_free(bytes);
        assert_int_equal(burn_environment_load(NULL, NULL), BURN_OK);
    }
}

static void entries_for_other_hardware__are_carried_along_and_not_used(void **state)
{
    (void)state;
    burni_identity mine;
    burni_choice c;
    write_environment("mixed", small_one());
    assert_int_equal(burn_environment_load("mixed", NULL), BURN_OK);
    fill_identity(&mine, "A processor");
    mine.rows = 78; /* a newer build: what was measured is of no use */
    burni_environment_device("flex:9", &mine);
    assert_non_null(strstr(log_text, "5 entries are not used: made for another set of "
                                     "kernels (A processor)"));
    assert_int_equal(burni_environment_find("flex:9", "bb", 2, 5, &c), 0);
    burni_environment_raise("flex:9", 3, 1e9);
    assert_int_equal(burn_environment_save(NULL), BURN_OK);
    burni_benv *env = read_environment("mixed");
    assert_int_equal(env->n_devices, 2); /* the other machine's, and the newer one of this */
    assert_string_equal(env->devices[0].id.hardware, "Another");
    assert_int_equal(env->devices[1].id.rows, 78);
    burni_benv_free(env);
}

/* Another processor, number of threads, build: whatever differs, no entry of the file serves. */
static void an_identity_that_differs_in_anything__has_no_entries(void **state)
{
    (void)state;
    static const struct {
        size_t at; /* a byte of the identity */
        const char *told;
    } fields[] = {
        {offsetof(burni_identity, hardware), "another hardware"},
        {offsetof(burni_identity, isa), "another instruction set"},
        {offsetof(burni_identity, units), "another number of threads"},
        {offsetof(burni_identity, driver), "another driver"},
        {offsetof(burni_identity, version), "another plugin version"},
        {offsetof(burni_identity, abi), "another plugin ABI"},
        {offsetof(burni_identity, layout), "another plugin ABI"},
        {offsetof(burni_identity, rows), "another set of kernels"},
        {offsetof(burni_identity, backend), ""},
    };
    write_environment("fields", small_one());
    for (size_t i = 0; i < COUNT(fields); i++) {
        burni_identity mine;
        burni_choice c;
        size_t size = 1;
        assert_int_equal(burn_environment_load("fields", NULL), BURN_OK);
        fill_identity(&mine, "A processor");
        ((unsigned char *)&mine)[fields[i].at] ^= 1;
        log_text[0] = '\0';
        burni_environment_device("flex:9", &mine);
        assert_int_equal(burni_environment_find("flex:9", "bb", 2, 5, &c), 0);
        assert_null(burni_environment_plan_get("flex:9", 9, &size));
        assert_int_equal(size, 0);
        assert_true(burni_environment_roof("flex:9", 3) == 0.0);
        if (strstr(log_text, fields[i].told) == NULL) {
            fail_msg("no \"%s\" in: %s", fields[i].told, log_text);
        }
    }
}

static void other_candidates__make_a_choice_stale(void **state)
{
    (void)state;
    burni_identity mine;
    burni_choice c;
    write_environment("stale", small_one());
    assert_int_equal(burn_environment_load("stale", NULL), BURN_OK);
    fill_identity(&mine, "A processor");
    burni_environment_device("flex:9", &mine);
    assert_int_equal(burni_environment_find("flex:9", "bb", 2, 5, &c), 1);
    assert_string_equal(c.row, "row.b");
    assert_int_equal(burni_environment_find("flex:9", "bb", 2, 6, &c), 0);
}

/* ---- rows of a device ------------------------------------------------------------------------ */

static const burn_explain_entry *newest(const char *op, const char *operands)
{
    const burn_explain_head *t = burn_explain_table();
    const burn_explain_entry *found = NULL;
    for (uint32_t i = 0; t != NULL && i < t->n_entries; i++) {
        const burn_explain_entry *e = burn_explain_at(t, i);
        if (strcmp(e->op, op) == 0 && strstr(e->operands, operands) != NULL) {
            found = e;
        }
    }
    return found;
}

static burn_tensor *product(int64_t m, int64_t k, int64_t n)
{
    burn_tensor *x = burn_mul(count_up(dev, 2, DIMS(m, k), -3.0), burn_scalar(0.01));
    burn_tensor *y = burn_mul(count_up(dev, 2, DIMS(k, n), 5.0), burn_scalar(0.02));
    return burn_matmul(x, y);
}

static void without_an_environment__nothing_is_measured(void **state)
{
    (void)state;
    assert_true(burn_ok(product(65, 17, 9)));
    check_clean();
    const burn_explain_entry *e = newest("matmul", "f32[65,17], f32[17,9]");
    assert_non_null(e);
    assert_string_equal(e->served, on_mock ? "mock.matmul" : "flex.matmul.f32");
    assert_null(strstr(e->why, "tuned"));
    assert_int_equal(access(folder, F_OK), -1);
    assert_true(burn_ok(product(33, 17, 9)));
    check_clean();
    e = newest("matmul", "f32[33,17], f32[17,9]");
    assert_non_null(e);
    assert_string_equal(e->served, on_mock ? "mock.matmul" : "flex.matmul.f32.small");
}

static void a_shape__is_measured_once_and_then_found(void **state)
{
    (void)state;
    assert_int_equal(burn_environment_load("once", NULL), BURN_OK);
    assert_true(burn_ok(product(34, 17, 9)));
    check_clean();
    assert_int_equal(burn_environment_save(NULL), BURN_OK);
    if (on_mock) {
        assert_int_equal(access(folder, F_OK), -1); /* one row: nothing to choose from */
        return;
    }
    burni_benv *env = read_environment("once");
    assert_int_equal(env->devices[0].n_choices, 1);
    burni_choice *c = &env->devices[0].choices[0];
    assert_string_equal(c->text, "matmul(f32[34,17], f32[17,9])");
    assert_true(strncmp(c->row, "flex.matmul.f32", 15) == 0 && c->seconds > 0.0);
    /* A choice that only a file can make: it is taken as it stands. */
    int other = strcmp(c->row, "flex.matmul.f32") == 0;
    (void)snprintf(c->row, sizeof(c->row), "flex.matmul.f32%s", other ? ".blas" : "");
    (void)snprintf(c->rival, sizeof(c->rival), "flex.matmul.f32%s", other ? "" : ".blas");
    c->flags = 0;
    c->seconds = 1.0;
    c->rival_seconds = 5.0;
    char wanted[256];
    (void)snprintf(wanted, sizeof(wanted), "tuned: row %s, 5.00x of row %s", c->row, c->rival);
    assert_int_equal(burn_environment_load(NULL, NULL), BURN_OK);
    write_environment("once", env);
    assert_int_equal(burn_environment_load("once", NULL), BURN_OK);
    assert_true(burn_ok(product(34, 17, 9)));
    check_clean();
    int told = 0;
    for (uint32_t i = 0; i < burn_explain_table()->n_entries; i++) {
        told += strcmp(burn_explain_at(burn_explain_table(), i)->why, wanted) == 0;
    }
    assert_int_equal(told, 1);
}

static void a_newer_row__is_measured_again(void **state)
{
    (void)state;
    if (on_mock) {
        return;
    }
    assert_int_equal(burn_environment_load("again", NULL), BURN_OK);
    assert_true(burn_ok(product(35, 17, 9)));
    check_clean();
    assert_int_equal(burn_environment_load(NULL, NULL), BURN_OK);
    burni_benv *env = read_environment("again");
    burni_choice *c = &env->devices[0].choices[0];
    uint64_t candidates = c->candidates;
    c->candidates ^= 1; /* as if a row had had another revision */
    (void)snprintf(c->row, sizeof(c->row), "flex.gone");
    write_environment("again", env);
    assert_int_equal(burn_environment_load("again", NULL), BURN_OK);
    assert_true(burn_ok(product(35, 17, 9)));
    check_clean();
    assert_int_equal(burn_environment_load(NULL, NULL), BURN_OK);
    env = read_environment("again");
    assert_int_equal(env->devices[0].n_choices, 1);
    assert_true(env->devices[0].choices[0].candidates == candidates);
    assert_string_not_equal(env->devices[0].choices[0].row, "flex.gone");
    burni_benv_free(env);
}

static int served_by(const char *row)
{
    int served = 0;
    for (uint32_t i = 0; i < burn_explain_table()->n_entries; i++) {
        const burn_explain_entry *e = burn_explain_at(burn_explain_table(), i);
        served += strcmp(e->served, row) == 0 && strstr(e->why, "tuned: row") != NULL;
    }
    return served;
}

/* The same call with a row and with the one that serves without an environment. */
static void compare_rows(const char *row, burn_tensor *(*call)(void))
{
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_environment_load(NULL, NULL), BURN_OK);
    burn_tensor *plain = call();
    int64_t n = burn_numel(plain);
    double *a = calloc((size_t)n, sizeof(*a));
    double *b = calloc((size_t)n, sizeof(*b));
    assert_int_equal(burn_read_f64(plain, a, n, &err), BURN_OK);
    assert_int_equal(burn_environment_load("compared", NULL), BURN_OK);
    burni_tuner_force(row);
    assert_int_equal(burn_read_f64(call(), b, n, &err), BURN_OK);
    burni_tuner_force(NULL);
    double largest = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double size = a[i] < 0.0 ? -a[i] : a[i];
        largest = size > largest ? size : largest;
    }
    for (int64_t i = 0; i < n; i++) {
        double d = a[i] - b[i];
        if (!((d < 0.0 ? -d : d) <= 2e-5 * largest)) {
            fail_msg("%s: element %lld is %.9g, not %.9g", row, (long long)i, b[i], a[i]);
        }
    }
    free(a);
    free(b);
}

static burn_tensor *small_product(void)
{
    return product(21, 33, 48);
}

static burn_tensor *plain_product(void)
{
    return product(65, 33, 47);
}

static burn_tensor *turned_product(void)
{
    burn_tensor *x = burn_transpose(count_up(dev, 3, DIMS(3, 40, 21), -9.0), 1, 2);
    burn_tensor *y = burn_transpose(count_up(dev, 3, DIMS(3, 30, 40), 1.0), 1, 2);
    return burn_matmul(x, y);
}

static burn_tensor *wide_product(void)
{
    burn_tensor *x = burn_reshape(burn_arange(dev, BURN_F64, 20 * 30, -9.0, 0.5), 2, DIMS(20, 30));
    burn_tensor *y = burn_reshape(burn_arange(dev, BURN_F64, 30 * 8, 3.0, 0.25), 2, DIMS(30, 8));
    return burn_matmul(x, y);
}

static burn_tensor *layer(void)
{
    return burn_linear(count_up(dev, 2, DIMS(11, 70), -9.0), count_up(dev, 2, DIMS(70, 600), -5.0),
                       count_up(dev, 1, DIMS(600), 1000.0));
}

/* An image so narrow that products serve it, and one of three rows that go straight. */
static burn_tensor *convolve(int64_t size)
{
    burn_conv_opts opts;
    BURN_INIT(&opts, burn_conv_opts);
    opts.padding[0] = opts.padding[1] = 2;
    opts.stride[0] = opts.stride[1] = 1;
    opts.dilation[0] = opts.dilation[1] = 1;
    opts.groups = 1;
    burn_tensor *x = count_up(dev, 4, DIMS(2, 3, size, size), -40.0);
    burn_tensor *w = count_up(dev, 4, DIMS(5, 3, 5, 5), -100.0);
    return burn_conv2d(x, w, count_up(dev, 1, DIMS(5), 7.0), &opts);
}

static burn_tensor *narrow_convolution(void)
{
    return convolve(3);
}

static burn_tensor *usual_convolution(void)
{
    return convolve(14);
}

static int has_row(const char *op, const char *row)
{
    const burn_op_def *def = burn_op_find(op);
    const char *name = NULL;
    for (uint32_t i = 0; (name = burn_op_row(dev, def->id, i)) != NULL; i++) {
        if (strcmp(name, row) == 0) {
            return 1;
        }
    }
    return 0;
}

static void check_row(const char *row, burn_tensor *(*call)(void))
{
    compare_rows(row, call);
    if (served_by(row) == 0) {
        fail_msg("%s did not serve", row);
    }
}

static const int64_t around_tiles[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 129};
static int64_t rows_now;
static int64_t columns_now;

static burn_tensor *product_now(void)
{
    return product(rows_now, 17, columns_now);
}

static burn_tensor *long_product_now(void)
{
    return burn_matmul(count_up(dev, 2, DIMS(3, rows_now * 10), 1.0),
                       count_up(dev, 2, DIMS(rows_now * 10, columns_now), 2.0));
}

static burn_tensor *convolution_now(void)
{
    return convolve(rows_now);
}

/* Loss of a convolution; its gradients by candidates as well. */
static burn_tensor *gradient_now(void)
{
    burn_tensor *x = burn_require_grad(ad, count_up(ad, 4, DIMS(2, 3, rows_now, rows_now), -9.0));
    burn_tensor *w = burn_require_grad(ad, count_up(ad, 4, DIMS(4, 3, 3, 3), -50.0));
    burn_conv_opts opts;
    BURN_INIT(&opts, burn_conv_opts);
    opts.padding[0] = opts.padding[1] = 1;
    opts.stride[0] = opts.stride[1] = 1;
    opts.dilation[0] = opts.dilation[1] = 1;
    opts.groups = 1;
    burn_grads *grads = burn_backward(burn_conv2d(x, w, NULL, &opts), NULL, 0, NULL);
    burn_tensor *sum = burn_add(burn_sum(burn_grads_get(grads, x), 0, NULL, 0),
                                burn_sum(burn_grads_get(grads, w), 0, NULL, 0));
    burn_grads_free(grads);
    return sum;
}

static void B252_results_do_not_depend_on_the_row_that_won(void **state)
{
    (void)state;
    if (on_mock) {
        return;
    }
    for (size_t i = 0; i < COUNT(around_tiles); i++) {
        rows_now = around_tiles[i];
        for (size_t k = 0; k < COUNT(around_tiles); k++) {
            columns_now = around_tiles[k];
            compare_rows("flex.matmul.f32.blas", product_now);
            compare_rows("flex.matmul.f32.blas", long_product_now);
        }
        compare_rows("flex.conv2d.direct", convolution_now);
        compare_rows("flex.conv2d.product", convolution_now);
        compare_rows("flex.conv2d_grad_input.direct", gradient_now);
        compare_rows("flex.conv2d_grad_input.product", gradient_now);
        compare_rows("flex.conv2d_grad_weight.direct", gradient_now);
        compare_rows("flex.conv2d_grad_weight.product", gradient_now);
        burn_scope_flush();
    }
    assert_true(served_by("flex.conv2d.direct") > 0 && served_by("flex.conv2d.product") > 0);
    assert_true(served_by("flex.conv2d_grad_input.product") > 0);
    assert_true(served_by("flex.conv2d_grad_weight.product") > 0);
}

static void *multiply_often(void *seen)
{
    for (int i = 0; i < 12; i++) {
        burn_scope_begin();
        burn_err err = BURN_ERR_INIT;
        double value = 0.0;
        burn_tensor *x = burn_full(dev, BURN_F32, 2, DIMS(8 + i % 4, 16), burn_scalar(0.5));
        burn_tensor *y = burn_full(dev, BURN_F32, 2, DIMS(16, 24), burn_scalar(2.0));
        y = burn_matmul(x, y);
        int bad = burn_read_f64(burn_max(y, 0, NULL, 0), &value, 1, &err) != BURN_OK;
        *(int *)seen += bad || value != 16.0;
        burn_scope_end();
    }
    return NULL;
}

static void threads__share_what_is_measured(void **state)
{
    (void)state;
    pthread_t threads[4];
    int wrong[4] = {0};
    assert_int_equal(burn_environment_load("threads", NULL), BURN_OK);
    for (int k = 0; k < 4; k++) {
        assert_int_equal(pthread_create(&threads[k], NULL, multiply_often, &wrong[k]), 0);
    }
    /* Meanwhile the answers are thrown away, and the file is written. */
    for (int k = 0; k < 5; k++) {
        assert_int_equal(burn_environment_save(NULL), BURN_OK);
        burni_tuner_changed();
    }
    for (int k = 0; k < 4; k++) {
        assert_int_equal(pthread_join(threads[k], NULL), 0);
        assert_int_equal(wrong[k], 0);
    }
    assert_int_equal(burn_environment_load(NULL, NULL), BURN_OK);
    if (!on_mock) {
        burni_benv *env = read_environment("threads");
        assert_int_equal(env->devices[0].n_choices, 4);
        burni_benv_free(env);
    }
}

static void without_memory__nothing_is_lost_and_nothing_half(void **state)
{
    (void)state;
    uint64_t size = 0;
    burni_benv *env = small_one();
    unsigned char *bytes = burni_benv_encode(env, &size);
    int failed = 0;
    for (int64_t n = 1; n < 40; n++) {
        uint64_t again = 0;
        burni_benv *read = NULL;
        burni_alloc_fail_after(n);
        int32_t rc = burni_benv_decode(bytes, size, &read, NULL);
        unsigned char *copy = rc == BURN_OK ? burni_benv_encode(read, &again) : NULL;
        burni_alloc_fail_after(0);
        assert_true((rc == BURN_OK) == (read != NULL));
        failed += rc != BURN_OK;
        assert_true(copy == NULL || (again == size && memcmp(copy, bytes, size) == 0));
        burni_free(copy);
        burni_benv_free(read);
    }
    assert_true(failed > 5 && failed < 39);
    burni_free(bytes);
    burni_benv_free(env);
}

static void candidates__compute_the_same(void **state)
{
    (void)state;
    if (on_mock) {
        assert_false(has_row("matmul", "flex.matmul.f32.blas"));
        return;
    }
    check_row("flex.matmul.f32", small_product);
    check_row("flex.matmul.f32.small", small_product);
    check_row("flex.matmul.f32.blas", small_product);
    check_row("flex.matmul.f32.blas", plain_product);
    check_row("flex.matmul.f32.blas", turned_product);
    check_row("flex.matmul.f64.blas", wide_product);
    check_row("flex.linear.f32.blas", layer);
    check_row("flex.conv2d.direct", narrow_convolution);
    check_row("flex.conv2d.product", usual_convolution);
}

static void a_saved_model__names_the_environment(void **state)
{
    (void)state;
    char path[128];
    const char *value = NULL;
    burn_err err = BURN_ERR_INIT;
    (void)snprintf(path, sizeof(path), "%s.bpk", folder);
    burn_module *m = burn_module_create(dev, &err);
    assert_non_null(m);
    assert_int_equal(burn_environment_load("named", NULL), BURN_OK);
    assert_int_equal(burn_save(m, path, NULL, &err), BURN_OK);
    burn_file *file = burn_file_open(path, &err);
    assert_int_equal(burn_file_n_metadata(file), 1);
    assert_string_equal(burn_file_metadata(file, 0, &value), "burn.environment");
    assert_string_equal(value, "named");
    burn_file_close(file);
    assert_int_equal(burn_load(m, path, 0, NULL, &err), BURN_OK);
    assert_null(strstr(log_text, "was written with"));
    assert_int_equal(burn_environment_load(NULL, NULL), BURN_OK);
    assert_int_equal(burn_load(m, path, 0, NULL, &err), BURN_OK);
    assert_non_null(strstr(log_text, "with environment \"named\", this process has \"\""));
    burn_module_free(m);
    assert_int_equal(unlink(path), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TUNE_TEST(a_file__comes_back_as_it_was),
        TUNE_TEST(a_damaged_file__is_refused_wherever_it_is_damaged),
        TUNE_TEST(a_damaged_file__is_not_loaded_and_nothing_changes),
        TUNE_TEST(names_and_folders__are_checked),
        TUNE_TEST(a_file_that_everybody_may_write__is_refused),
        TUNE_TEST(files__are_exported_imported_listed_and_cleared),
        TUNE_TEST(two_processes__lose_nothing),
        TUNE_TEST(plans__are_kept_under_their_device),
        TUNE_TEST(entries_for_other_hardware__are_carried_along_and_not_used),
        TUNE_TEST(an_identity_that_differs_in_anything__has_no_entries),
        TUNE_TEST(other_candidates__make_a_choice_stale),
        TUNE_TEST(without_an_environment__nothing_is_measured),
        TUNE_TEST(a_shape__is_measured_once_and_then_found),
        TUNE_TEST(a_newer_row__is_measured_again),
        TUNE_TEST(candidates__compute_the_same),
        TUNE_TEST(B252_results_do_not_depend_on_the_row_that_won),
        TUNE_TEST(threads__share_what_is_measured),
        TUNE_TEST(without_memory__nothing_is_lost_and_nothing_half),
        TUNE_TEST(a_saved_model__names_the_environment),
    };
    if (mkdtemp(root) == NULL || setenv("BURN_EXPLAIN", root, 1) != 0) {
        return 1;
    }
    int rc = core_test_main(argc, argv, tests, COUNT(tests));
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command) == 0 ? rc : 1;
}
