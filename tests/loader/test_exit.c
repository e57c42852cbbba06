/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_exit.c - a process that ends while work, tensors and devices are still there (B238).
 *
 * usage: test_exit DEVICE RELOAD LIBRARY. Each way to end runs in a process of its own: this
 * program again, with the way's name. It must end by itself, with status 0 and nothing on stderr,
 * where sanitizers report. RELOAD is a program that is not linked to LIBRARY and opens and closes
 * it. To add a way: a function and a row in `ways`.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <burn/device.h>
#include <burn/grad.h>
#include <burn/ops.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *device_name;
static const char *reload_program;
static const char *library;
static const char *own_path;

enum { MAX_ARGUMENTS = 8 };

/* ---- in the child ---------------------------------------------------------------------------- */

static burn_device *opened(void)
{
    burn_err err = BURN_ERR_INIT;
    burn_device *device = burn_device_open(device_name, &err);
    if (device == NULL) {
        (void)fprintf(stderr, "%s\n", err.text);
        _exit(1);
    }
    return device;
}

/* Known to the end, so that no sanitizer takes them for lost. */
static burn_var *kept[4];
static int n_kept;

/* Tensors, a variable and a tape that nobody releases, with work on its way. */
static burn_tensor *leave_work(burn_device *device)
{
    const int64_t dims[2] = {200, 200};
    burn_device *ad = burn_device_autodiff(device);
    burn_tensor *x = burn_ones(device, BURN_F32, 2, dims);
    burn_var *w = burn_var_create(ad, x, NULL);
    kept[n_kept++ % 4] = w;
    burn_tensor *y = burn_matmul(burn_var_get(w), x);
    for (int i = 0; i < 20; i++) {
        y = burn_relu(burn_add(burn_matmul(y, x), burn_scalar(0.5)));
        y = burn_mul(y, burn_scalar(0.001));
    }
    return y;
}

static int with_live_tensors(void)
{
    (void)leave_work(opened());
    return 0;
}

static int in_an_open_scope(void)
{
    burn_device *device = opened();
    burn_scope_begin();
    burn_scope_begin();
    burn_no_grad_begin();
    (void)leave_work(device);
    exit(0);
}

static int after_a_failure(void)
{
    burn_device *device = opened();
    burn_tensor *bad = burn_gather(burn_ones(device, BURN_F32, 1, (const int64_t[]){3}),
                                   burn_arange(device, BURN_I64, 5, 0.0, 1.0), 0);
    (void)burn_exp(bad);
    return 0;
}

static void *exit_here(void *arg)
{
    (void)leave_work(arg);
    exit(0);
}

static int from_a_thread(void)
{
    burn_device *device = opened();
    pthread_t thread;
    (void)leave_work(device);
    if (pthread_create(&thread, NULL, exit_here, device) == 0) {
        (void)pthread_join(thread, NULL);
    }
    return 1;
}

static void *work_and_return(void *arg)
{
    (void)leave_work(arg);
    return NULL;
}

/* The thread is gone, what it left is not. */
static int after_a_thread_ended(void)
{
    burn_device *device = opened();
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_and_return, device) != 0) {
        return 1;
    }
    (void)pthread_join(thread, NULL);
    return 0;
}

/* The leak checker asks this at exit: the copy has not the threads that hold the work. */
static int is_copy;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return is_copy;
}

/* The copy ends by exit, with all its handlers; the original works on. */
static int after_fork(void)
{
    burn_device *device = opened();
    burn_tensor *y = leave_work(device);
    pid_t child = fork();
    if (child == 0) {
        is_copy = 1;
        exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        return 2;
    }
    burn_err err = BURN_ERR_INIT;
    (void)burn_item(burn_sum(y, 0, NULL, 0), &err);
    return err.code == BURN_OK ? 0 : 3;
}

static int after_shutdown(void)
{
    (void)leave_work(opened());
    burn_shutdown();
    burn_shutdown();
    burn_err err = BURN_ERR_INIT;
    /* A device is not opened again, and that is said. */
    burn_device *again = burn_device_open(device_name, &err);
    return again == NULL && strstr(err.text, "shut down") != NULL ? 0 : 2;
}

static int with_shutdown_at_exit(void)
{
    if (atexit(burn_shutdown) != 0) {
        return 1;
    }
    (void)leave_work(opened());
    return 0;
}

/* The handler is older than the library's own ones, if there are any: it runs after them. */
static int with_shutdown_from_a_thread(void)
{
    if (atexit(burn_shutdown) != 0) {
        return 1;
    }
    return from_a_thread();
}

static const struct way {
    const char *name;
    int (*run)(void);
} ways[] = {
    {"with live tensors", with_live_tensors},
    {"in an open scope", in_an_open_scope},
    {"after a failure", after_a_failure},
    {"from a thread", from_a_thread},
    {"after a thread ended", after_a_thread_ended},
    {"after fork", after_fork},
    {"after shutdown", after_shutdown},
    {"with shutdown at exit", with_shutdown_at_exit},
    {"with shutdown at exit, from a thread", with_shutdown_from_a_thread},
};

/* ---- in the parent --------------------------------------------------------------------------- */

/* Runs a program to its end; what it wrote to stderr goes to `text`. The wait status. */
static int run(const char *const *argv, char *text, size_t size)
{
    int pipes[2];
    size_t n_arguments = 0;
    while (argv[n_arguments] != NULL) {
        n_arguments++;
    }
    assert_in_range(n_arguments, 1, MAX_ARGUMENTS);
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(60);
        (void)dup2(pipes[1], STDERR_FILENO);
        (void)close(pipes[0]);
        (void)close(pipes[1]);
        char *list[MAX_ARGUMENTS + 1] = {NULL}; /* execv takes no const, and changes nothing */
        memcpy(list, argv, n_arguments * sizeof(list[0]));
        (void)execv(list[0], list);
        _exit(99);
    }
    (void)close(pipes[1]);
    size_t n = 0;
    ssize_t got = 0;
    char rest[256];
    do {
        size_t room = size - 1 - n;
        got = read(pipes[0], room > 0 ? text + n : rest, room > 0 ? room : sizeof(rest));
        n += room > 0 && got > 0 ? (size_t)got : 0;
    } while (got > 0);
    text[n] = '\0';
    (void)close(pipes[0]);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void expect_quiet_end(const char *name, const char *const *argv)
{
    char text[4096];
    int status = run(argv, text, sizeof(text));
    if (status != 0 || text[0] != '\0') {
        fail_msg("%s: wait status %d: %s", name, status, text);
    }
}

static void b238_a_process_may_end_at_any_time(void **state)
{
    (void)state;
    static const char *const windows[] = {"1", "64"};
    for (size_t w = 0; w < 2; w++) {
        assert_int_equal(setenv("BURN_WINDOW", windows[w], 1), 0);
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
            const char *const argv[] = {own_path, device_name, "--way", ways[i].name, NULL};
            expect_quiet_end(ways[i].name, argv);
        }
    }
}

static void b238_the_library_is_opened_and_closed_again(void **state)
{
    (void)state;
    const char *const once[] = {reload_program, library, device_name, "100", "0", NULL};
    const char *const and_shut[] = {reload_program, library, device_name, "1", "1", NULL};
    expect_quiet_end("100 times", once);
    expect_quiet_end("with shutdown", and_shut);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        (void)fprintf(stderr, "usage: %s DEVICE RELOAD LIBRARY\n", argv[0]);
        return 2;
    }
    own_path = argv[0];
    device_name = argv[1];
    for (size_t i = 0; strcmp(argv[2], "--way") == 0 && i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (strcmp(argv[3], ways[i].name) == 0) {
            return ways[i].run();
        }
    }
    reload_program = argv[2];
    library = argv[3];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b238_a_process_may_end_at_any_time),
        cmocka_unit_test(b238_the_library_is_opened_and_closed_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
