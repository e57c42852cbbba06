/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * start.c - what starting costs, measured from within a fresh process, which then ends.
 *
 * Both print "took SECONDS". Libraries that the program itself needs are loaded before the clock
 * starts; start.first_result has those too.
 */
#include "clock.h"
#include "worker.h"

#include <burn/plugins.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANIFESTS = 10 };

static void manifest_path(char *out, size_t size, const char *folder, int i)
{
    (void)snprintf(out, size, "%.80s/device%d.json", folder, i);
}

static int write_manifest(const char *folder, int i)
{
    char path[128];
    manifest_path(path, sizeof(path), folder, i);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        return -1;
    }
    fprintf(file,
            "{ \"format\": 1, \"id\": \"device%d\", \"name\": \"Device\", \"kind\": \"backend\",\n"
            "  \"file\": \"device%d.so\", \"version\": \"0.1.0\", \"license\": \"MIT\",\n"
            "  \"abi\": { \"oldest\": \"0.1\", \"newest\": \"0.1\" }, \"priority\": %d,\n"
            "  \"needs\": [{ \"library\": \"libdevice.so.1\", \"hint\": \"install it\" }],\n"
            "  \"devices\": \"gpu\" }\n",
            i, i, i);
    return fclose(file);
}

/* Ten manifests, and whatever else is installed. */
int bench_list10(void)
{
    char folder[] = "/tmp/burn-bench-XXXXXX";
    char path[128];
    int status = mkdtemp(folder) != NULL ? 0 : 1;
    for (int i = 0; i < MANIFESTS && status == 0; i++) {
        status = write_manifest(folder, i);
    }
    (void)setenv("BURN_PLUGIN_PATH", folder, 1);
    double start = bench_now();
    uint32_t count = burn_plugins_count();
    double took = bench_now() - start;
    for (int i = 0; i < MANIFESTS; i++) {
        manifest_path(path, sizeof(path), folder, i);
        (void)unlink(path);
    }
    (void)rmdir(folder);
    if (status != 0 || count < MANIFESTS) {
        fprintf(stderr, "burn-bench: %u of %d manifests were listed\n", count, (int)MANIFESTS);
        return 1;
    }
    printf("took %.9f\n", took);
    fflush(stdout);
    return 0;
}

/* dlopen, its checks and the count of its devices; the list of plugins was read before. */
int bench_load_flex(void)
{
    burn_err err = BURN_ERR_INIT;
    burn_plugin_info info;
    BURN_INIT(&info, burn_plugin_info);
    uint32_t n = burn_plugins_count();
    for (uint32_t i = 0; i < n; i++) {
        if (burn_plugins_at(i, 0, &info, &err) != BURN_OK || strcmp(info.id, "flex") != 0) {
            continue;
        }
        double start = bench_now();
        int32_t code = burn_plugins_at(i, 1, &info, &err);
        double took = bench_now() - start;
        if (code == BURN_OK && info.state == BURN_PLUGIN_USABLE) {
            printf("took %.9f\n", took);
            fflush(stdout);
            return 0;
        }
    }
    fprintf(stderr, "burn-bench: flex is not usable: %s\n", info.reason);
    return 1;
}
