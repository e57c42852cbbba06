/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * make_model.c - writes the model files that test_cli.py looks into: make_model FOLDER.
 *
 * bands.bpk: an image of 28x28 bytes; class k of 4 is how bright its columns 7k to 7k+6 are, so a
 * test knows the answer. raw.bpk: the same without softmax, from f32. plain.bpk: no graph, and
 * metadata that would steer a terminal. pair.bpk: a graph of two inputs.
 */
#include <burn/store.h>
#include <stdio.h>

static burn_module *make_bands(burn_device *device, burn_err *err)
{
    static float weight[28 * 28 * 4];
    for (int i = 0; i < 28 * 28; i++) {
        weight[i * 4 + i % 28 / 7] = 0.05f;
    }
    burn_module *m = burn_module_create(device, err);
    const int64_t dims[2] = {28 * 28, 4};
    (void)burn_module_add(m, "bands", burn_tensor_from_data(device, BURN_F32, 2, dims, weight), 1,
                          err);
    return m;
}

static burn_graph *capture(burn_module *m, uint8_t dtype, burn_err *err)
{
    static const float pixels[28 * 28] = {0};
    const int64_t dims[4] = {1, 1, 28, 28};
    uint32_t rank = dtype == BURN_U8 ? 4 : 2;
    burn_device *device = burn_module_device(m);
    burn_tensor *x = burn_tensor_from_data(device, dtype, rank, dims + (4 - rank), pixels);
    (void)burn_capture_begin(err);
    (void)burn_capture_input(x, "image");
    const int64_t flat[2] = {1, 28 * 28};
    burn_tensor *y = dtype == BURN_U8 ? burn_div(burn_cast(x, BURN_F32), burn_scalar(255.0)) : x;
    y = burn_matmul(burn_reshape(y, 2, flat), burn_var_get(burn_module_var(m, "bands")));
    y = dtype == BURN_U8 ? burn_softmax(y, 1) : y;
    return burn_capture_end(&y, 1, m, err);
}

static burn_graph *capture_pair(burn_device *device, burn_err *err)
{
    const float one[1] = {1};
    const int64_t dims[1] = {1};
    burn_tensor *x = burn_tensor_from_data(device, BURN_F32, 1, dims, one);
    burn_tensor *y = burn_tensor_from_data(device, BURN_F32, 1, dims, one);
    (void)burn_capture_begin(err);
    (void)burn_capture_input(x, "a");
    (void)burn_capture_input(y, "b");
    burn_tensor *z = burn_add(x, y);
    return burn_capture_end(&z, 1, NULL, err);
}

static int save(burn_module *m, const char *folder, const char *name, burn_graph *graph,
                burn_err *err)
{
    char path[512];
    const char *key = "note";
    const char *value = graph != NULL ? "bands" : "\033[2Jgone";
    const burn_save_opts opts = {sizeof(opts), 1, &key, &value, graph};
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    int failed = burn_save(m, path, &opts, err) != BURN_OK;
    burn_graph_free(graph);
    return failed;
}

int main(int argc, char **argv)
{
    burn_err err = BURN_ERR_INIT;
    burn_device *device = burn_device_open(NULL, &err);
    burn_module *m = device != NULL ? make_bands(device, &err) : NULL;
    int failed = argc != 2 || err.code != BURN_OK;
    failed = failed || save(m, argv[1], "bands.bpk", capture(m, BURN_U8, &err), &err);
    failed = failed || save(m, argv[1], "raw.bpk", capture(m, BURN_F32, &err), &err);
    failed = failed || save(m, argv[1], "pair.bpk", capture_pair(device, &err), &err);
    failed = failed || save(m, argv[1], "plain.bpk", NULL, &err);
    if (failed || err.code != BURN_OK) {
        (void)fprintf(stderr, "make_model: %s\n", err.text);
        return 1;
    }
    burn_module_free(m);
    return 0;
}
