/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mnist.c - MNIST as a dataset: pairs the two IDX files and turns bytes into floats.
 *
 * Owns the two arrays. Checks at opening that they belong together, so that `get` cannot fail but
 * for an index out of range, and may run on any thread.
 */
#include "train/base/error.h"
#include "train/data/idx.h"

#include <burn/data.h>
#include <burn/dtype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10, PATH_SIZE = 4096 };

/* Mean and standard deviation of the training images, pixels from 0 to 1. */
static const float mean = 0.1307F;
static const float deviation = 0.3081F;

struct burn_mnist {
    burn_idx *images;
    burn_idx *labels;
    float value[256]; /* of a pixel */
    burn_dataset dataset;
};

static const burn_field fields[] = {
    {"image", BURN_F32, 3, {0}, {1, SIDE, SIDE}},
    {"label", BURN_I64, 0, {0}, {0}},
};

static int32_t BURN_CALL get_item(void *ctx, int64_t index, void *const *out, burn_err *err)
{
    const burn_mnist *mnist = ctx;
    if (index < 0 || index >= mnist->dataset.count) {
        return burni_train_fail(err, BURN_E_INVALID, "mnist: item %lld of %lld does not exist",
                                (long long)index, (long long)mnist->dataset.count);
    }
    const unsigned char *pixels = mnist->images->data + (size_t)index * PIXELS;
    float *image = out[0];
    for (size_t i = 0; i < PIXELS; i++) {
        image[i] = mnist->value[pixels[i]];
    }
    int64_t label = mnist->labels->data[index];
    memcpy(out[1], &label, sizeof(label));
    return BURN_OK;
}

/* Opens folder/name, or folder/name.gz when there is no such file. */
static int32_t open_part(const char *folder, const char *name, burn_idx **out, burn_err *err)
{
    static const char *const endings[] = {"", ".gz"};
    char path[PATH_SIZE];
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        int n = snprintf(path, sizeof(path), "%s/%s%s", folder, name, endings[i]);
        if (n < 0 || (size_t)n >= sizeof(path)) {
            return burni_train_fail(err, BURN_E_LIMIT, "mnist: the folder's path is too long");
        }
        /* The caller's sink is written on failure only, and a missing first file is none. */
        burn_err tried = BURN_ERR_INIT;
        int32_t code = burn_idx_open(path, 0, out, &tried);
        if (code == BURN_OK) {
            return BURN_OK;
        }
        if (code != BURN_E_NOT_FOUND) {
            return burni_train_fail(err, code, "%s", tried.text);
        }
    }
    size_t length = strlen(folder);
    return burni_train_fail(err, BURN_E_NOT_FOUND,
                            "mnist: neither %s nor %s.gz is in folder %s; name the folder that "
                            "holds the four IDX files",
                            name, name, length > 72 ? folder + (length - 72) : folder);
}

static int32_t check_parts(const burn_mnist *mnist, burn_err *err)
{
    const burn_idx *images = mnist->images;
    const burn_idx *labels = mnist->labels;
    if (images->dtype != BURN_U8 || images->rank != 3 || images->dims[1] != SIDE ||
        images->dims[2] != SIDE) {
        return burni_train_fail(
            err, BURN_E_FORMAT,
            "mnist: images are %s of rank %u, dims [%lld,%lld,%lld]; expected u8 [n,28,28]",
            burn_dtype_name(images->dtype), (unsigned)images->rank,
            (long long)burn_idx_dim(images, 0), (long long)burn_idx_dim(images, 1),
            (long long)burn_idx_dim(images, 2));
    }
    if (labels->dtype != BURN_U8 || labels->rank != 1 || labels->dims[0] != images->dims[0]) {
        return burni_train_fail(
            err, BURN_E_FORMAT,
            "mnist: labels are %s of rank %u with %lld items; expected u8 [%lld], one per image",
            burn_dtype_name(labels->dtype), (unsigned)labels->rank,
            (long long)burn_idx_dim(labels, 0), (long long)images->dims[0]);
    }
    for (int64_t i = 0; i < labels->dims[0]; i++) {
        if (labels->data[i] >= CLASSES) {
            return burni_train_fail(err, BURN_E_FORMAT,
                                    "mnist: label %u of item %lld, expected 0 to 9",
                                    (unsigned)labels->data[i], (long long)i);
        }
    }
    return BURN_OK;
}

static void fill_table(burn_mnist *mnist, uint32_t flags)
{
    for (int i = 0; i < 256; i++) {
        float value = (float)i / 255.0F;
        if ((flags & BURN_MNIST_NORMALIZE) != 0) {
            value = (value - mean) / deviation;
        }
        mnist->value[i] = value;
    }
    BURN_INIT(&mnist->dataset, burn_dataset);
    mnist->dataset.n_fields = 2;
    mnist->dataset.fields = fields;
    mnist->dataset.field_stride = sizeof(fields[0]);
    mnist->dataset.count = mnist->images->dims[0];
    mnist->dataset.ctx = mnist;
    mnist->dataset.get = get_item;
}

int32_t burn_mnist_open(const char *folder, uint32_t flags, burn_mnist **out, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    const uint32_t known = BURN_MNIST_TEST | BURN_MNIST_NORMALIZE;
    if (out != NULL) {
        *out = NULL;
    }
    if (folder == NULL || out == NULL) {
        return burni_train_fail(err, BURN_E_INVALID, "mnist: %s is NULL%s",
                                folder == NULL ? "the folder" : "the place for the result",
                                folder == NULL ? "; is the variable set that it comes from?" : "");
    }
    if ((flags & ~known) != 0) {
        return burni_train_fail(err, BURN_E_INVALID, "mnist: flags 0x%x, known are 0x%x",
                                (unsigned)flags, (unsigned)known);
    }
    burn_mnist *mnist = calloc(1, sizeof(*mnist));
    if (mnist == NULL) {
        return burni_train_fail(err, BURN_E_NO_MEMORY, "mnist: no memory");
    }
    int test = (flags & BURN_MNIST_TEST) != 0;
    int32_t code = open_part(folder, test ? "t10k-images-idx3-ubyte" : "train-images-idx3-ubyte",
                             &mnist->images, err);
    if (code == BURN_OK) {
        code = open_part(folder, test ? "t10k-labels-idx1-ubyte" : "train-labels-idx1-ubyte",
                         &mnist->labels, err);
    }
    if (code == BURN_OK) {
        code = check_parts(mnist, err);
    }
    if (code != BURN_OK) {
        burn_mnist_close(mnist);
        return code;
    }
    fill_table(mnist, flags);
    *out = mnist;
    return BURN_OK;
}

void burn_mnist_close(burn_mnist *mnist)
{
    if (mnist != NULL) {
        burn_idx_close(mnist->images);
        burn_idx_close(mnist->labels);
        free(mnist);
    }
}

const burn_dataset *burn_mnist_dataset(const burn_mnist *mnist)
{
    return mnist != NULL ? &mnist->dataset : NULL;
}
