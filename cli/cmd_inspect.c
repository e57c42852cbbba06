/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cmd_inspect.c - `burn inspect`: what a model file holds. No device is needed, and no tensor is
 * read: only the file's metadata.
 */
#include "cli.h"

#include <burn/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the graph is kept; it is shown as a graph instead. */
static int is_graph(const char *key)
{
    return strcmp(key, "burn.window") == 0;
}

static int64_t elements(uint32_t rank, const int64_t *dims)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < rank; i++) {
        n *= dims[i];
    }
    return n;
}

/* Text of a graph in fresh memory, NULL when memory is short. */
static char *graph_text(const burn_graph *graph)
{
    size_t size = burn_graph_text(graph, NULL, 0) + 1;
    char *text = malloc(size);
    if (text != NULL) {
        text[0] = '\0';
        (void)burn_graph_text(graph, text, size);
    }
    return text;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *graph_json(const burn_graph *graph)
{
    json_t *inputs = json_array();
    uint8_t dtype = 0;
    uint32_t rank = 0;
    int64_t dims[BURN_MAX_RANK] = {0};
    const char *name = NULL;
    for (uint32_t i = 0; (name = burn_graph_input(graph, i, &dtype, &rank, dims)) != NULL; i++) {
        (void)json_array_append_new(
            inputs, json_pack("{s:o, s:s, s:o}", "name", cli_json_text(name), "dtype",
                              burn_dtype_name(dtype), "shape", cli_json_dims(rank, dims)));
    }
    char *text = graph_text(graph);
    json_t *lines = cli_json_text(text != NULL ? text : "");
    free(text);
    return json_pack("{s:o, s:i, s:i, s:o}", "inputs", inputs, "n_outputs",
                     (int)burn_graph_n_outputs(graph), "n_ops",
                     (int)burn_graph_window(graph, NULL)->n_nodes, "text", lines);
}

static int inspect_json(const burn_file *file, const char *path, const burn_graph *graph)
{
    json_t *tensors = json_array();
    json_t *metadata = json_object();
    uint8_t dtype = 0;
    uint32_t rank = 0;
    int64_t dims[BURN_MAX_RANK] = {0};
    const char *name = NULL;
    for (uint32_t i = 0; (name = burn_file_tensor(file, i, &dtype, &rank, dims)) != NULL; i++) {
        const char *type = dtype != BURN_DTYPE_NONE ? burn_dtype_name(dtype) : "quantized";
        (void)json_array_append_new(tensors, json_pack("{s:o, s:s, s:o}", "name",
                                                       cli_json_text(name), "dtype", type, "shape",
                                                       cli_json_dims(rank, dims)));
    }
    const char *value = NULL;
    for (uint32_t i = 0; (name = burn_file_metadata(file, i, &value)) != NULL; i++) {
        if (!is_graph(name)) {
            (void)json_object_set_new(metadata, name, cli_json_text(value));
        }
    }
    return cli_print_json(json_pack("{s:o, s:I, s:o, s:o, s:o}", "file", cli_json_text(path),
                                    "size", (json_int_t)burn_file_size(file), "tensors", tensors,
                                    "metadata", metadata, "graph",
                                    graph != NULL ? graph_json(graph) : json_null()),
                          CLI_FINE);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_tensors(const burn_file *file)
{
    char clean[256];
    char shape[200];
    uint8_t dtype = 0;
    uint32_t rank = 0;
    int64_t dims[BURN_MAX_RANK] = {0};
    int64_t total = 0;
    const char *name = NULL;
    for (uint32_t i = 0; (name = burn_file_tensor(file, i, &dtype, &rank, dims)) != NULL; i++) {
        const char *type = dtype != BURN_DTYPE_NONE ? burn_dtype_name(dtype) : "quantized";
        printf("  %-32s  %s%s\n", cli_clean(clean, sizeof(clean), name), type,
               cli_dims(shape, sizeof(shape), rank, dims));
        total += elements(rank, dims);
    }
    uint32_t n = burn_file_n_tensors(file);
    printf("  %u tensor%s, %lld element%s\n", n, cli_s(n), (long long)total,
           cli_s((uint64_t)total));
}

/* Line by line: names in it come from the file. */
static void print_clean_lines(const char *text)
{
    while (*text != '\0') {
        char line[512];
        char clean[512];
        size_t n = strcspn(text, "\n");
        (void)snprintf(line, sizeof(line), "%.*s", (int)(n < 500 ? n : 500), text);
        printf("  %s\n", cli_clean(clean, sizeof(clean), line));
        text += n + (text[n] == '\n');
    }
}

static void print_graph(const burn_graph *graph, int whole)
{
    char clean[160];
    char shape[200];
    uint8_t dtype = 0;
    uint32_t rank = 0;
    int64_t dims[BURN_MAX_RANK] = {0};
    const char *name = NULL;
    uint32_t n_ops = burn_graph_window(graph, NULL)->n_nodes;
    uint32_t n_outputs = burn_graph_n_outputs(graph);
    printf("graph: %u op%s, %u output%s\n", n_ops, cli_s(n_ops), n_outputs, cli_s(n_outputs));
    for (uint32_t i = 0; (name = burn_graph_input(graph, i, &dtype, &rank, dims)) != NULL; i++) {
        printf("  input %-26s  %s%s\n", cli_clean(clean, sizeof(clean), name),
               burn_dtype_name(dtype), cli_dims(shape, sizeof(shape), rank, dims));
    }
    char *text = whole ? graph_text(graph) : NULL;
    if (text != NULL) {
        print_clean_lines(text);
    }
    free(text);
}

static int inspect_text(const burn_file *file, const char *path, const burn_graph *graph, int whole)
{
    char size[32];
    char clean[200];
    const char *key = NULL;
    const char *value = NULL;
    printf("%s: burnpack, %s\n", path, cli_bytes(size, sizeof(size), burn_file_size(file)));
    print_tensors(file);
    for (uint32_t i = 0; (key = burn_file_metadata(file, i, &value)) != NULL; i++) {
        if (!is_graph(key)) {
            printf("%s: ", cli_clean(clean, sizeof(clean), key));
            printf("%s\n", cli_clean(clean, sizeof(clean), value));
        }
    }
    if (graph != NULL) {
        print_graph(graph, whole);
    } else {
        printf("no graph\n");
    }
    return CLI_FINE;
}

int cli_inspect(cli *c)
{
    const char *path = NULL;
    int whole = 0;
    const cli_option options[] = {{"--graph", NULL, &whole, 0}};
    int status = cli_parse(c, options, 1, &path);
    if (status >= 0) {
        return status;
    }
    if (path == NULL) {
        return cli_usage(c, "FILE is missing");
    }
    burn_err err = BURN_ERR_INIT;
    burn_file *file = burn_file_open(path, &err);
    if (file == NULL) {
        return cli_fail(c, &err);
    }
    burn_graph *graph = burn_file_graph(file, &err);
    if (graph == NULL && err.code != BURN_E_NOT_FOUND) {
        status = cli_fail(c, &err);
    } else {
        status = c->json ? inspect_json(file, path, graph)
                         : inspect_text(file, path, graph, whole);
    }
    burn_graph_free(graph);
    burn_file_close(file);
    return status;
}
