/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stub_world.c - see stub_world.h. The folder is the process's own, so that nobody else may write.
 */
#include "stub_world.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[256];

static int copy(const char *from, const char *to)
{
    char bytes[65536];
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");
    int fine = in != NULL && out != NULL;
    size_t n = 0;
    while (fine && (n = fread(bytes, 1, sizeof(bytes), in)) > 0) {
        fine = fwrite(bytes, 1, n, out) == n;
    }
    fine = in != NULL && fclose(in) == 0 && fine;
    return out != NULL && fclose(out) == 0 && fine;
}

static int write_manifest(const char *id)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s.json", folder, id);
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        return 0;
    }
    (void)fprintf(out,
                  "{\"format\": 1, \"id\": \"%s\", \"name\": \"a stub\", \"kind\": \"extension\", "
                  "\"file\": \"%s.so\", \"version\": \"1.2.3\", \"license\": \"MIT\", "
                  "\"abi\": {\"oldest\": \"0.1\", \"newest\": \"0.1\"}}",
                  id, id);
    return fclose(out) == 0;
}

int stub_world_make(const char *const *names, size_t n)
{
    const char *temporary = getenv("TMPDIR");
    const char *stub = getenv("STUB_SO");
    (void)snprintf(folder, sizeof(folder), "%s/burn-stubs-XXXXXX",
                   temporary != NULL ? temporary : "/tmp");
    if (stub == NULL || mkdtemp(folder) == NULL) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        char path[512];
        (void)snprintf(path, sizeof(path), "%s/%s.so", folder, names[i]);
        if (!copy(stub, path) || !write_manifest(names[i])) {
            return 0;
        }
    }
    char path[4096];
    const char *others = getenv("BURN_PLUGIN_PATH");
    (void)snprintf(path, sizeof(path), "%s:%s", folder, others != NULL ? others : "");
    return setenv("BURN_PLUGIN_PATH", path, 1) == 0;
}

void stub_world_remove(void)
{
    DIR *dir = opendir(folder);
    struct dirent *entry = NULL;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char path[1024];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        (void)unlink(path);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    (void)rmdir(folder);
}
