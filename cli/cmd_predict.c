/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cmd_predict.c - `burn predict`: one image through the graph in a model file.
 *
 * Nothing here knows a model. The graph says what it takes: one gray image of bytes (or of f32 from
 * 0 to 1), whatever axes of size 1 stand before its height and width. Its first output has one
 * number per class: probabilities, or anything else, of which the softmax is taken.
 */
#include "cli.h"
#include "image.h"

#include <burn/data.h>
#include <burn/store.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct prediction {
    burn_file *file;
    burn_device *device;
    uint8_t dtype; /* of the input */
    uint32_t rank;
    int64_t dims[BURN_MAX_RANK];
    int64_t width;
    int64_t height;
    cli_image image;
    int64_t n; /* classes */
    double *probability;
    int is_softmax; /* taken here */
} prediction;

static int32_t refuse(burn_err *err, int32_t code, const char *text)
{
    (void)snprintf(err->text, sizeof(err->text), "%s", text);
    err->code = code;
    return code;
}

/* ---- the graph's input ----------------------------------------------------------------------- */

static int32_t check_input(prediction *p, const burn_graph *graph, burn_err *err)
{
    char shape[200];
    const char *name = burn_graph_input(graph, 0, &p->dtype, &p->rank, p->dims);
    if (name == NULL || burn_graph_n_inputs(graph) != 1 || burn_graph_n_outputs(graph) == 0) {
        (void)snprintf(err->text, sizeof(err->text),
                       "the graph has %u input%s and %u output%s; one image in, one output is "
                       "needed",
                       burn_graph_n_inputs(graph), cli_s(burn_graph_n_inputs(graph)),
                       burn_graph_n_outputs(graph), cli_s(burn_graph_n_outputs(graph)));
        err->code = BURN_E_UNSUPPORTED;
        return err->code;
    }
    int fits = p->rank >= 2 && (p->dtype == BURN_U8 || p->dtype == BURN_F32);
    for (uint32_t i = 0; i + 2 < p->rank; i++) {
        fits = fits && p->dims[i] == 1;
    }
    p->height = fits ? p->dims[p->rank - 2] : 0;
    p->width = fits ? p->dims[p->rank - 1] : 0;
    if (p->width < 1 || p->height < 1 || p->width > 8192 || p->height > 8192) {
        (void)snprintf(err->text, sizeof(err->text),
                       "the graph takes %s%s; needed is one gray image, u8 or f32 [1,...,H,W]",
                       burn_dtype_name(p->dtype), cli_dims(shape, sizeof(shape), p->rank, p->dims));
        err->code = BURN_E_UNSUPPORTED;
        return err->code;
    }
    return BURN_OK;
}

static int32_t open_model(prediction *p, const char *path, burn_err *err)
{
    p->file = burn_file_open(path, err);
    burn_graph *graph = p->file != NULL ? burn_file_graph(p->file, err) : NULL;
    if (graph == NULL) {
        return err->code;
    }
    int32_t rc = check_input(p, graph, err);
    burn_graph_free(graph);
    return rc;
}

/* ---- the image ------------------------------------------------------------------------------- */

static int32_t read_idx(prediction *p, const char *path, int64_t index, burn_err *err)
{
    burn_idx *idx = NULL;
    int32_t rc = burn_idx_open(path, 0, &idx, err);
    if (rc != BURN_OK) {
        return rc;
    }
    int64_t n = burn_idx_dim(idx, 0);
    cli_image *image = &p->image;
    image->height = burn_idx_dim(idx, 1);
    image->width = burn_idx_dim(idx, 2);
    size_t size = (size_t)(image->height * image->width);
    if (burn_idx_rank(idx) != 3 || burn_idx_dtype(idx) != BURN_U8 || size == 0) {
        rc = refuse(err, BURN_E_SHAPE, "--idx: the file holds no images: needed are bytes [n,H,W]");
    } else if (index >= n) {
        (void)snprintf(err->text, sizeof(err->text), "--index: there is no image %lld of %lld",
                       (long long)index, (long long)n);
        err->code = BURN_E_NOT_FOUND;
        rc = err->code;
    } else if ((image->pixels = malloc(size)) == NULL) {
        rc = refuse(err, BURN_E_NO_MEMORY, "out of memory for the image");
    } else {
        memcpy(image->pixels, (const uint8_t *)burn_idx_data(idx) + (size_t)index * size, size);
    }
    burn_idx_close(idx);
    return rc;
}

/* The input tensor, in the innermost scope; NULL when memory is short. */
static burn_tensor *make_input(const prediction *p)
{
    size_t n = (size_t)(p->width * p->height);
    uint8_t *bytes = malloc(n);
    float *floats = malloc(n * sizeof(*floats));
    burn_tensor *t = NULL;
    if (bytes != NULL && floats != NULL) {
        cli_image_resize(&p->image, p->width, p->height, bytes);
        for (size_t i = 0; i < n; i++) {
            floats[i] = (float)bytes[i] / 255.0f;
        }
        const void *data = p->dtype == BURN_U8 ? (const void *)bytes : floats;
        t = burn_tensor_from_data(p->device, p->dtype, p->rank, p->dims, data);
    }
    free(bytes);
    free(floats);
    return t;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Makes probabilities of numbers that are none. */
static int32_t normalize(prediction *p, burn_err *err)
{
    double sum = 0;
    double largest = -HUGE_VAL;
    int fine = 1;
    for (int64_t i = 0; i < p->n; i++) {
        double v = p->probability[i];
        if (!isfinite(v)) {
            return refuse(err, BURN_E_DATA, "the graph's output is not finite");
        }
        sum += v;
        largest = v > largest ? v : largest;
        fine = fine && v >= 0;
    }
    if (fine && fabs(sum - 1.0) < 1e-3) {
        return BURN_OK;
    }
    p->is_softmax = 1;
    sum = 0;
    for (int64_t i = 0; i < p->n; i++) {
        p->probability[i] = exp(p->probability[i] - largest);
        sum += p->probability[i];
    }
    for (int64_t i = 0; i < p->n; i++) {
        p->probability[i] /= sum;
    }
    return BURN_OK;
}

static int32_t run(prediction *p, burn_err *err)
{
    burn_tensor *output = NULL;
    burn_tensor *input = make_input(p);
    if (input == NULL) {
        return refuse(err, BURN_E_NO_MEMORY, "out of memory for the image");
    }
    int32_t rc = burn_file_run(p->file, p->device, &input, 1, &output, 1, err);
    if (rc != BURN_OK) {
        return rc;
    }
    p->n = burn_numel(output);
    if (p->n < 1 || p->n > 1000000) {
        return refuse(err, BURN_E_SHAPE, "the graph's output has no classes, or too many");
    }
    p->probability = malloc((size_t)p->n * sizeof(*p->probability));
    if (p->probability == NULL) {
        return refuse(err, BURN_E_NO_MEMORY, "out of memory for the output");
    }
    rc = burn_read_f64(output, p->probability, p->n, err);
    return rc == BURN_OK ? normalize(p, err) : rc;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* The most likely class after `last` (-1: of all); of equal ones the smaller number comes first. */
static int64_t next_best(const prediction *p, int64_t last)
{
    int64_t best = -1;
    for (int64_t i = 0; i < p->n; i++) {
        double v = p->probability[i];
        int after = last < 0 || v < p->probability[last] || (v == p->probability[last] && i > last);
        if (after && (best < 0 || v > p->probability[best])) {
            best = i;
        }
    }
    return best;
}

static int print_json(const prediction *p, int64_t top)
{
    json_t *list = json_array();
    int64_t k = -1;
    for (int64_t i = 0; i < top && i < p->n; i++) {
        k = next_best(p, k);
        (void)json_array_append_new(
            list, json_pack("{s:I, s:f}", "class", (json_int_t)k, "probability",
                            p->probability[k]));
    }
    return cli_print_json(
        json_pack("{s:I, s:f, s:o, s:s, s:b, s:b, s:o}", "class", (json_int_t)next_best(p, -1),
                  "probability", p->probability[next_best(p, -1)], "top", list, "device",
                  burn_device_name(p->device), "inverted", p->image.inverted, "softmax",
                  p->is_softmax, "image_size",
                  json_pack("[I, I]", (json_int_t)p->image.width, (json_int_t)p->image.height)),
        CLI_FINE);
}

static int print_text(const prediction *p, int64_t top)
{
    if (p->image.inverted) {
        printf("The image is dark on white; it was inverted.\n");
    }
    if (p->image.width != p->width || p->image.height != p->height) {
        printf("The image was resized from %lldx%lld to %lldx%lld.\n", (long long)p->image.width,
               (long long)p->image.height, (long long)p->width, (long long)p->height);
    }
    int64_t k = -1;
    for (int64_t i = 0; i < top && i < p->n; i++) {
        k = next_best(p, k);
        if (i == 0) {
            printf("class %lld%s\n", (long long)k,
                   p->is_softmax ? " (softmax of the output)" : "");
        }
        printf("  %-6lld  %6.2f %%\n", (long long)k, 100.0 * p->probability[k]);
    }
    return CLI_FINE;
}

static int32_t predict(prediction *p, const char *model, const char *png, const char *idx,
                       int64_t index, const char *device, burn_err *err)
{
    int32_t rc = open_model(p, model, err);
    if (rc == BURN_OK) {
        rc = png != NULL ? cli_image_read_png(png, &p->image, err) : read_idx(p, idx, index, err);
    }
    if (rc == BURN_OK && png != NULL) {
        cli_image_invert_paper(&p->image);
    }
    if (rc == BURN_OK) {
        p->device = burn_device_open(device, err);
        rc = p->device != NULL ? run(p, err) : err->code;
    }
    return rc;
}

int cli_predict(cli *c)
{
    const char *model = NULL;
    const char *png = NULL;
    const char *idx = NULL;
    const char *index_text = "0";
    const char *top_text = "3";
    const char *device = NULL;
    const cli_option options[] = {{"--image", &png, NULL, 0},      {"--idx", &idx, NULL, 0},
                                  {"--index", &index_text, NULL, 0}, {"--top", &top_text, NULL, 0},
                                  {"--device", &device, NULL, 0}};
    int64_t index = 0;
    int64_t top = 0;
    int status = cli_parse(c, options, sizeof(options) / sizeof(options[0]), &model);
    if (status >= 0) {
        return status;
    }
    if (model == NULL || (png == NULL) == (idx == NULL)) {
        return cli_usage(c, "a model FILE is needed, and one of --image PNG and --idx FILE");
    }
    if (!cli_number(c, "--index", index_text, 0, INT64_MAX, &index) ||
        !cli_number(c, "--top", top_text, 1, 1000, &top)) {
        return CLI_USAGE;
    }
    burn_err err = BURN_ERR_INIT;
    prediction p;
    memset(&p, 0, sizeof(p));
    burn_scope_begin();
    if (predict(&p, model, png, idx, index, device, &err) != BURN_OK) {
        status = cli_fail(c, &err);
    } else {
        status = c->json ? print_json(&p, top) : print_text(&p, top);
    }
    burn_scope_end();
    burn_file_close(p.file);
    free(p.image.pixels);
    free(p.probability);
    return status;
}
