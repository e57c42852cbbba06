/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cmd_plugins.c - `burn plugins`: what was found, how far each plugin got, and what to do about
 * those that cannot be used.
 *
 * Known, loadable and usable are three answers. Manifests only are read, unless it is asked to open
 * the plugins; `burn doctor` (cmd_doctor.c) opens all of them.
 */
#include "cli.h"

#include <burn/plugins.h>
#include <stdio.h>

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

uint32_t cli_list_plugins(json_t *json, int open)
{
    uint32_t usable = 0;
    burn_plugin_info p;
    BURN_INIT(&p, burn_plugin_info);
    for (uint32_t i = 0; burn_plugins_at(i, open, &p, NULL) == BURN_OK; i++) {
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

json_t *cli_plugins_json(int open, uint32_t *usable)
{
    json_t *plugins = json_array();
    json_t *folders = json_array();
    *usable = cli_list_plugins(plugins, open);
    cli_list_folders(folders);
    return json_pack("{s:o, s:o}", "plugins", plugins, "searched", folders);
}

int cli_plugins(cli *c)
{
    int open = 0;
    uint32_t usable = 0;
    const cli_option options[] = {{"--open", NULL, &open, 0}};
    int status = cli_parse(c, options, 1, NULL);
    if (status >= 0) {
        return status;
    }
    status = burn_plugins_count() > 0 ? CLI_FINE : CLI_WRONG;
    if (c->json) {
        return cli_print_json(cli_plugins_json(open, &usable), status);
    }
    if (status != CLI_FINE) {
        printf("no plugin was found; set BURN_PLUGIN_PATH to the folder of one\n");
    }
    (void)cli_list_plugins(NULL, open);
    cli_list_folders(NULL);
    return status;
}
