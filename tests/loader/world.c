/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * world.c - see world.h. The folder of built stubs comes from STUB_DIR, set by the build.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "world.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char world_dir[256];
static char root[128];
static int n_worlds;

burn_err *world_err_init(world_err *e)
{
    memset(e, 0, sizeof(*e));
    e->err.struct_size = (uint32_t)sizeof(*e);
    e->err.cap = (uint32_t)(sizeof(*e) - offsetof(burn_err, text));
    return &e->err;
}

int world_setup(void **state)
{
    (void)state;
    if (root[0] == '\0') {
        (void)strcpy(root, "/tmp/burn-loader-XXXXXX");
        assert_non_null(mkdtemp(root));
    }
    n_worlds++;
    (void)snprintf(world_dir, sizeof(world_dir), "%s/%d", root, n_worlds);
    assert_int_equal(mkdir(world_dir, 0755), 0);
    assert_int_equal(setenv("BURN_PLUGIN_PATH", world_dir, 1), 0);
    (void)unsetenv("BURN_DEVICE");
    (void)unsetenv("BURN_BACKENDS");
    (void)unsetenv("BURN_THREADS");
    burni_loader_forget();
    return 0;
}

int world_teardown(void **state)
{
    (void)state;
    burni_loader_forget();
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void world_remove_all(void)
{
    if (root[0] != '\0') {
        (void)nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
}

void world_write(const char *name, const void *bytes, size_t n)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", world_dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0644), 0);
}

void world_library(const char *from, const char *to)
{
    const char *dir = getenv("STUB_DIR");
    assert_non_null(dir);
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, from);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    static char bytes[4 << 20];
    size_t n = fread(bytes, 1, sizeof(bytes), f);
    assert_true(n > 0 && n < sizeof(bytes));
    (void)fclose(f);
    world_write(to, bytes, n);
}

void world_manifest(const char *id, const char *kind, const char *devices, int priority,
                    const char *abi_newest)
{
    char text[1024];
    int n = snprintf(text, sizeof(text),
                     "{\"format\": 1, \"id\": \"%s\", \"name\": \"Stub %s\", \"kind\": \"%s\",\n"
                     " \"file\": \"%s.so\", \"version\": \"1.2.3\", \"license\": \"MIT\",\n"
                     " \"abi\": {\"oldest\": \"0.1\", \"newest\": \"%s\"}, \"priority\": %d,\n"
                     " \"needs\": [{\"library\": \"libdriver.so.1\", \"hint\": \"install the "
                     "driver\"}], \"devices\": \"%s\"}\n",
                     id, id, kind, id, abi_newest, priority, devices);
    char name[128];
    (void)snprintf(name, sizeof(name), "%s.json", id);
    world_write(name, text, (size_t)n);
}

void world_backend(const char *id, const char *devices, int priority)
{
    char name[128];
    (void)snprintf(name, sizeof(name), "%s.so", id);
    world_library("stub.so", name);
    const char *kind = strncmp(id, "ext", 3) == 0 ? "extension" : "backend";
    const char *newest = strncmp(id, "newer_minor", 11) == 0 ? "0.2" : "0.1";
    world_manifest(id, kind, devices, priority, newest);
}

void world_plugin(const char *id)
{
    world_backend(id, "cpu", 10);
}

void world_folder(const char *name, char *out, size_t cap)
{
    (void)snprintf(out, cap, "%s/%d-%s", root, n_worlds, name);
    assert_int_equal(mkdir(out, 0755), 0);
}

void world_expect(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" does not hold \"%s\"", text, part);
    }
}
