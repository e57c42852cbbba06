/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * env_sizes.c - products and convolutions of given sizes, run so that the library measures them.
 *
 * A list is parts with a comma between, a part is shapes and options with colons between, a shape
 * is numbers with an x between. Everything is read before anything runs. Convolutions run with
 * their gradients, as training does. To add an op: a reader, a runner, a row of `makers`.
 */
#include "env_sizes.h"

#include <burn/device.h>
#include <burn/environment.h>
#include <burn/grad.h>
#include <burn/ops.h>
#include <burn/tensor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One call: two operands, and the options of a convolution. */
typedef struct sized_call {
    int64_t x[4];
    int64_t w[4];
    burn_conv_opts opts;
} sized_call;

typedef struct maker {
    const char *option;
    const char *form;
    uint32_t n_axes; /* of a convolution; 0: a product */
} maker;

enum { MATMUL, CONV1D, CONV2D, N_MAKERS };
static const maker makers[N_MAKERS] = {
    {"--matmul", "ROWSxINNERxCOLUMNS", 0},
    {"--conv1d", "BATCHxCHANNELSxLENGTH:OUTxKERNEL, then any of :sSTRIDE :pPADDING :dDILATION "
                 ":gGROUPS",
     1},
    {"--conv2d", "BATCHxCHANNELSxHEIGHTxWIDTH:OUTxKHxKW, then any of :sSTRIDE :pPADDING "
                 ":dDILATION :gGROUPS",
     2},
};

/* ---- reading --------------------------------------------------------------------------------- */

enum { LARGEST = 1 << 20 };

/* Reads a number from `least` to LARGEST and steps over it. 0: there is none. */
static int read_number(const char **at, int64_t least, int64_t *out)
{
    char *behind = NULL;
    int is_digit = **at >= '0' && **at <= '9';
    long long n = is_digit ? strtoll(*at, &behind, 10) : -1;
    if (n < least || n > LARGEST) {
        return 0;
    }
    *at = behind;
    *out = n;
    return 1;
}

/* n numbers with an x between them. */
static int read_shape(const char **at, uint32_t n, int64_t *out)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && *(*at)++ != 'x') {
            return 0;
        }
        if (!read_number(at, 1, &out[i])) {
            return 0;
        }
    }
    return 1;
}

/* One number for all axes, or one for each. */
static int read_pair(const char **at, uint32_t n_axes, int64_t least, int64_t out[2])
{
    if (!read_number(at, least, &out[0])) {
        return 0;
    }
    out[1] = out[0];
    if (n_axes == 2 && **at == 'x') {
        (*at)++;
        return read_number(at, least, &out[1]);
    }
    return 1;
}

/* Each letter once: `seen` has a bit for each of the alphabet. */
static int read_option(const char **at, uint32_t n_axes, uint32_t *seen, burn_conv_opts *opts)
{
    char letter = *(*at)++;
    uint32_t bit = letter >= 'a' && letter <= 'z' ? UINT32_C(1) << (letter - 'a') : 0;
    if ((*seen & bit) != 0) {
        return 0;
    }
    *seen |= bit;
    switch (letter) {
    case 's':
        return read_pair(at, n_axes, 1, opts->stride);
    case 'p':
        return read_pair(at, n_axes, 0, opts->padding);
    case 'd':
        return read_pair(at, n_axes, 1, opts->dilation);
    case 'g':
        return read_number(at, 1, &opts->groups);
    default:
        return 0;
    }
}

static int read_convolution(const char *text, uint32_t n_axes, sized_call *out)
{
    const char *at = text;
    uint32_t seen = 0;
    int64_t kernel[3];
    memset(out, 0, sizeof(*out));
    out->opts.struct_size = (uint32_t)sizeof(out->opts);
    out->opts.groups = 1;
    for (uint32_t i = 0; i < 2; i++) {
        out->opts.stride[i] = 1;
        out->opts.dilation[i] = 1;
    }
    if (!read_shape(&at, 2 + n_axes, out->x) || *at++ != ':' ||
        !read_shape(&at, 1 + n_axes, kernel)) {
        return 0;
    }
    while (*at == ':') {
        at++;
        if (!read_option(&at, n_axes, &seen, &out->opts)) {
            return 0;
        }
    }
    out->w[0] = kernel[0];
    out->w[1] = out->x[1] / out->opts.groups;
    for (uint32_t i = 0; i < n_axes; i++) {
        out->w[2 + i] = kernel[1 + i];
    }
    return *at == '\0';
}

static int read_product(const char *text, sized_call *out)
{
    int64_t sizes[3];
    const char *at = text;
    memset(out, 0, sizeof(*out));
    if (!read_shape(&at, 3, sizes) || *at != '\0') {
        return 0;
    }
    out->x[0] = sizes[0];
    out->x[1] = sizes[1];
    out->w[0] = sizes[1];
    out->w[1] = sizes[2];
    return 1;
}

/* ---- running --------------------------------------------------------------------------------- */

static int32_t run_product(burn_device *device, uint8_t dtype, const sized_call *s, burn_err *err)
{
    burn_tensor *x = burn_zeros(device, dtype, 2, s->x);
    burn_tensor *y = burn_zeros(device, dtype, 2, s->w);
    return burn_tensor_error(burn_matmul(x, y), err);
}

/* With the gradients by input and weight, as a step of training has them. */
static int32_t run_convolution(burn_device *device, uint8_t dtype, uint32_t n_axes,
                               const sized_call *s, burn_err *err)
{
    burn_device *autodiff = burn_device_autodiff(device);
    uint32_t rank = 2 + n_axes;
    int64_t dims[4];
    burn_tensor *x = burn_require_grad(autodiff, burn_zeros(device, dtype, rank, s->x));
    burn_tensor *w = burn_require_grad(autodiff, burn_zeros(device, dtype, rank, s->w));
    burn_tensor *y = n_axes == 1 ? burn_conv1d(x, w, NULL, &s->opts)
                                 : burn_conv2d(x, w, NULL, &s->opts);
    int32_t rc = burn_tensor_error(y, err);
    for (uint32_t d = 0; d < rank && rc == BURN_OK; d++) {
        dims[d] = burn_dim(y, d);
    }
    burn_grads *grads = NULL;
    if (rc == BURN_OK) {
        grads = burn_backward(y, burn_zeros(device, dtype, rank, dims), 0, err);
        rc = grads == NULL ? err->code : burn_sync(device, err);
    }
    burn_grads_free(grads);
    return rc;
}

static int run_one(const cli *c, burn_device *device, uint8_t dtype, const maker *m,
                   const sized_call *call)
{
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    int32_t rc = m->n_axes == 0 ? run_product(device, dtype, call, &err)
                                : run_convolution(device, dtype, m->n_axes, call, &err);
    if (rc == BURN_OK) {
        rc = burn_sync(device, &err);
    }
    burn_scope_end();
    return rc == BURN_OK ? CLI_FINE : cli_fail(c, &err);
}

/* Reads a list; runs it when there is a device. */
static int take_list(const cli *c, burn_device *device, uint8_t dtype, const maker *m,
                     const char *list)
{
    char parts[1024];
    int status = CLI_FINE;
    if (strlen(list) >= sizeof(parts)) {
        return cli_usage(c, "%s: the list is too long", m->option);
    }
    (void)snprintf(parts, sizeof(parts), "%s", list);
    char *rest = parts;
    while (rest != NULL && status == CLI_FINE) {
        const char *one = strsep(&rest, ","); /* which gives empty parts, too */
        sized_call call;
        int fine = m->n_axes == 0 ? read_product(one, &call)
                                  : read_convolution(one, m->n_axes, &call);
        if (!fine) {
            return cli_usage(c, "%s: '%s' is not %s, in numbers up to %d", m->option, one, m->form,
                             LARGEST);
        }
        status = device != NULL ? run_one(c, device, dtype, m, &call) : CLI_FINE;
    }
    return status;
}

static int take_all(const cli *c, burn_device *device, uint8_t dtype, const env_sizes *sizes)
{
    const char *const lists[N_MAKERS] = {sizes->matmul, sizes->conv1d, sizes->conv2d};
    int status = CLI_FINE;
    for (int i = 0; i < N_MAKERS && status == CLI_FINE; i++) {
        if (lists[i] != NULL) {
            status = take_list(c, device, dtype, &makers[i], lists[i]);
        }
    }
    return status;
}

int env_sizes_given(const env_sizes *sizes)
{
    return sizes->matmul != NULL || sizes->conv1d != NULL || sizes->conv2d != NULL;
}

int env_sizes_run(const cli *c, const env_sizes *sizes)
{
    burn_err err = BURN_ERR_INIT;
    uint8_t dtype = BURN_F32;
    if (sizes->dtype != NULL && strcmp(sizes->dtype, "f64") == 0) {
        dtype = BURN_F64;
    } else if (sizes->dtype != NULL && strcmp(sizes->dtype, "f32") != 0) {
        return cli_usage(c, "--dtype: '%s' is neither f32 nor f64", sizes->dtype);
    }
    int status = take_all(c, NULL, dtype, sizes);
    if (status != CLI_FINE) {
        return status;
    }
    burn_device *device = burn_device_open(sizes->device, &err);
    if (device == NULL) {
        return cli_fail(c, &err);
    }
    status = take_all(c, device, dtype, sizes);
    return status == CLI_FINE && burn_environment_save(&err) != BURN_OK ? cli_fail(c, &err)
                                                                        : status;
}
