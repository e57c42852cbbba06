/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reload.c - opens libburn-core with dlopen, computes on a device, closes it, many times.
 *
 * usage: reload LIBRARY DEVICE TIMES SHUTDOWN. Not linked to the library: it is here only between
 * dlopen and dlclose. Started by test_exit.c (B238). Exit status 0, or 1 and a reason on stderr.
 */
#include <burn/device.h>
#include <burn/ops.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;
static const char *missing;

/* A function's address, through a copy: C has no cast from void * to it. */
static void find(const char *name, void *out)
{
    void *found = dlsym(library, name);
    missing = found == NULL ? name : missing;
    memcpy(out, &found, sizeof(found));
}

static int failed(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    return 1;
}

static int use(const char *device_name, int shut)
{
    burn_device *(*device_open)(const char *, burn_err *);
    burn_tensor *(*ones)(burn_device *, uint8_t, uint32_t, const int64_t *);
    burn_tensor *(*add)(burn_tensor *, burn_tensor *);
    double (*item)(burn_tensor *, burn_err *);
    void (*shutdown)(void);
    find("burn_device_open", (void *)&device_open);
    find("burn_ones", (void *)&ones);
    find("burn_add", (void *)&add);
    find("burn_item", (void *)&item);
    find("burn_shutdown", (void *)&shutdown);
    if (missing != NULL) {
        return failed(missing, "not in the library");
    }
    burn_err err = BURN_ERR_INIT;
    burn_device *device = device_open(device_name, &err);
    if (device == NULL) {
        return failed(device_name, err.text);
    }
    burn_tensor *x = ones(device, BURN_F32, 0, NULL);
    double two = item(add(x, x), &err);
    if (!(two == 2.0)) {
        return failed("1 + 1", err.text);
    }
    if (shut) {
        shutdown();
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        return failed("usage", "reload LIBRARY DEVICE TIMES SHUTDOWN");
    }
    long times = strtol(argv[3], NULL, 10);
    for (long i = 0; i < times; i++) {
        library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            return failed("dlopen", dlerror());
        }
        if (use(argv[2], argv[4][0] == '1') != 0) {
            return 1;
        }
        (void)dlclose(library);
    }
    return 0;
}
