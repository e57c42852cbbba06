/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cmd_plugins.c - `burn plugins`: what was found, how far each plugin got, and what to do about
 * those that cannot be used.
 *
 * Known, loadable and usable are three answers. Manifests only are read, unless it is asked to open
 * the plugins; `burn doctor` (cmd_doctor.c) opens all of them. A damaged library may end the
 * process that opens it, in dlopen itself, so a child opens each of them first.
 */
#include "cli.h"

#include <burn/plugins.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Opening a plugin takes a few ms; more delays every program that uses it. */
#define SLOW_MS 100.0

static const char *state_name(int32_t state)
{
    static const char *const names[] = {"unknown", "known",  "loadable",
                                        "usable",  "broken", "disabled",
                                        "hidden"};
    return state >= 0 && state <= BURN_PLUGIN_HIDDEN ? names[state] : names[0];
}

static json_t *describe(const burn_plugin_info *p)
{
    json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:s}", "id", cli_json_text(p->id), "name",
                          cli_json_text(p->name), "kind", cli_json_text(p->kind), "version",
                          cli_json_text(p->version), "license", cli_json_text(p->license), "state",
                          state_name(p->state));
    (void)json_object_set_new(o, "manifest", cli_json_text(p->manifest));
    (void)json_object_set_new(o, "path", cli_json_text(p->library));
    (void)json_object_set_new(o, "priority", json_integer(p->priority));
    (void)json_object_set_new(o, "devices", json_integer(p->n_devices));
    (void)json_object_set_new(o, "open_ms", json_real(p->open_ms));
    (void)json_object_set_new(o, "slow", json_boolean(p->open_ms > SLOW_MS));
    (void)json_object_set_new(o, "reason", cli_json_text(p->reason));
    (void)json_object_set_new(o, "remedy", cli_json_text(p->remedy));
    (void)json_object_set_new(o, "build_id", cli_json_text(p->build_id));
    (void)json_object_set_new(o, "warning", cli_json_text(p->warning));
    (void)json_object_set_new(o, "warning_remedy", cli_json_text(p->warning_remedy));
    return o;
}

static void print(const burn_plugin_info *p)
{
    char text[sizeof(p->reason)];
    printf("%-10s  %-8s  %-9s  %-8s", p->id, state_name(p->state), p->kind,
           cli_clean(text, sizeof(text), p->version));
    if (p->open_ms > 0) {
        printf("  opened in %.1f ms%s", p->open_ms, p->open_ms > SLOW_MS ? ", which is slow" : "");
    }
    int by_manifest = p->library[0] == '\0' || p->state == BURN_PLUGIN_HIDDEN;
    printf("\n            %s\n",
           cli_clean(text, sizeof(text), by_manifest ? p->manifest : p->library));
    if (p->build_id[0] != '\0') {
        printf("            build %s\n", p->build_id);
    }
    if (p->reason[0] != '\0') {
        printf("            why: %s\n", cli_clean(text, sizeof(text), p->reason));
    }
    if (p->remedy[0] != '\0') {
        printf("            remedy: %s\n", cli_clean(text, sizeof(text), p->remedy));
    }
    if (p->warning[0] != '\0') {
        printf("            warning: %s\n", cli_clean(text, sizeof(text), p->warning));
        printf("            remedy: %s\n", cli_clean(text, sizeof(text), p->warning_remedy));
    }
}

/* The signal that ends a process which opens plugin i, -1 for another end; 0: it lives. */
static int crashes(uint32_t i)
{
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        /* Whatever it has to say is told by the parent, but for its last words in a crash. */
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(nowhere, STDOUT_FILENO);
        (void)dup2(nowhere, STDERR_FILENO);
        burn_plugin_info p;
        BURN_INIT(&p, burn_plugin_info);
        (void)burn_plugins_at(i, 1, &p, NULL);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return 0;
    }
    if (WIFSIGNALED(status)) {
        return WTERMSIG(status);
    }
    return WEXITSTATUS(status) != 0 ? -1 : 0;
}

static void tell_crash(burn_plugin_info *p, int signal)
{
    p->state = BURN_PLUGIN_BROKEN;
    (void)snprintf(p->reason, sizeof(p->reason), "opening its library ends the program%s%s",
                   signal > 0 ? ": " : "", signal > 0 ? strsignal(signal) : "");
    (void)snprintf(p->remedy, sizeof(p->remedy),
                   "the file is damaged, or its code fails as it is loaded: install it again");
}

uint32_t cli_list_plugins(json_t *json, int open, uint32_t *crashed)
{
    uint32_t usable = 0;
    burn_plugin_info p;
    BURN_INIT(&p, burn_plugin_info);
    *crashed = 0;
    for (uint32_t i = 0; burn_plugins_at(i, 0, &p, NULL) == BURN_OK; i++) {
        int signal = open ? crashes(i) : 0;
        if (signal != 0) {
            tell_crash(&p, signal);
            *crashed += 1;
        } else if (open) {
            (void)burn_plugins_at(i, 1, &p, NULL);
        }
        usable += p.state == BURN_PLUGIN_USABLE;
        if (json != NULL) {
            (void)json_array_append_new(json, describe(&p));
        } else {
            print(&p);
        }
    }
    return usable;
}

void cli_list_folders(json_t *json)
{
    char text[512];
    const char *folder = NULL;
    for (uint32_t i = 0; (folder = burn_plugins_searched(i)) != NULL; i++) {
        if (json != NULL) {
            (void)json_array_append_new(json, cli_json_text(folder));
        } else {
            printf("%s%s\n", i == 0 ? "searched:   " : "            ",
                   cli_clean(text, sizeof(text), folder));
        }
    }
}

json_t *cli_plugins_json(int open, uint32_t *crashed)
{
    json_t *plugins = json_array();
    json_t *folders = json_array();
    (void)cli_list_plugins(plugins, open, crashed);
    cli_list_folders(folders);
    return json_pack("{s:o, s:o}", "plugins", plugins, "searched", folders);
}

int cli_plugins(cli *c)
{
    int open = 0;
    uint32_t crashed = 0;
    const cli_option options[] = {{"--open", NULL, &open, 0}};
    int status = cli_parse(c, options, 1, NULL);
    if (status >= 0) {
        return status;
    }
    status = burn_plugins_count() > 0 ? CLI_FINE : CLI_WRONG;
    if (c->json) {
        return cli_print_json(cli_plugins_json(open, &crashed), status);
    }
    if (status != CLI_FINE) {
        printf("no plugin was found; set BURN_PLUGIN_PATH to the folder of one\n");
    }
    (void)cli_list_plugins(NULL, open, &crashed);
    cli_list_folders(NULL);
    return status;
}
