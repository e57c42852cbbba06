/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * image.c - PNG files to gray pixels, and resizing by area.
 *
 * libpng's simplified interface does the decoding: it returns on errors, and it makes every colour
 * type gray and alpha. Dimensions are limited before memory is taken for them.
 */
#include "image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef BURN_CLI_PNG
#include <png.h>
#endif

#define MAX_PIXELS (INT64_C(64) << 20)

static int32_t fail(burn_err *err, int32_t code, const char *path, const char *why)
{
    size_t n = strlen(path);
    (void)snprintf(err->text, sizeof(err->text), "%s: %.120s", n > 90 ? path + n - 90 : path, why);
    err->code = code;
    return code;
}

#ifdef BURN_CLI_PNG

/* Gray and alpha to gray: what shines through is the opposite of what is drawn. */
static void flatten(const uint8_t *pairs, cli_image *image)
{
    int64_t n = image->width * image->height;
    double drawn = 0;
    double weight = 0;
    for (int64_t i = 0; i < n; i++) {
        drawn += (double)pairs[2 * i] * (double)pairs[2 * i + 1];
        weight += (double)pairs[2 * i + 1];
    }
    uint32_t behind = weight > 0 && drawn / weight > 127.5 ? 0 : 255;
    for (int64_t i = 0; i < n; i++) {
        uint32_t alpha = pairs[2 * i + 1];
        uint32_t mixed = pairs[2 * i] * alpha + behind * (255 - alpha);
        image->pixels[i] = (uint8_t)((mixed + 127) / 255);
    }
}

/* libpng calls a file that was cut short a "Read Error". */
static int32_t refuse_file(burn_err *err, const char *path, const png_image *png, FILE *file)
{
    return fail(err, BURN_E_FORMAT, path,
                feof(file) ? "it ends before the image does" : png->message);
}

static int32_t decode(png_image *png, const char *path, FILE *file, cli_image *out, burn_err *err)
{
    int64_t n = (int64_t)png->width * (int64_t)png->height;
    if (n > MAX_PIXELS) {
        return fail(err, BURN_E_LIMIT, path, "it has more than 64 Mi pixels");
    }
    png->format = PNG_FORMAT_GA;
    uint8_t *pairs = malloc((size_t)n * 2 + 1);
    out->pixels = malloc((size_t)n + 1);
    int32_t rc = BURN_OK;
    if (pairs == NULL || out->pixels == NULL) {
        rc = fail(err, BURN_E_NO_MEMORY, path, "out of memory for its pixels");
    } else if (png_image_finish_read(png, NULL, pairs, 0, NULL) == 0) {
        rc = refuse_file(err, path, png, file);
    } else {
        out->width = png->width;
        out->height = png->height;
        flatten(pairs, out);
    }
    free(pairs);
    if (rc != BURN_OK) {
        free(out->pixels);
        out->pixels = NULL;
    }
    return rc;
}

int32_t cli_image_read_png(const char *path, cli_image *out, burn_err *err)
{
    png_image png;
    memset(&png, 0, sizeof(png));
    memset(out, 0, sizeof(*out));
    png.version = PNG_IMAGE_VERSION;
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return fail(err, BURN_E_NOT_FOUND, path, "it cannot be opened");
    }
    int32_t rc = png_image_begin_read_from_stdio(&png, file) != 0
                     ? decode(&png, path, file, out, err)
                     : refuse_file(err, path, &png, file);
    png_image_free(&png);
    (void)fclose(file);
    return rc;
}

#else

int32_t cli_image_read_png(const char *path, cli_image *out, burn_err *err)
{
    memset(out, 0, sizeof(*out));
    return fail(err, BURN_E_UNSUPPORTED, path,
                "this program was built without PNG; build it with -Dpng=enabled (libpng), or "
                "give --idx");
}

#endif

void cli_image_invert_paper(cli_image *image)
{
    int64_t w = image->width;
    int64_t h = image->height;
    int64_t sum = 0;
    int64_t n = 0;
    for (int64_t y = 0; y < h; y++) {
        int64_t step = y == 0 || y == h - 1 || w < 2 ? 1 : w - 1; /* the border only */
        for (int64_t x = 0; x < w; x += step) {
            sum += image->pixels[y * w + x];
            n++;
        }
    }
    image->inverted = n > 0 && sum > 127 * n;
    for (int64_t i = 0; image->inverted && i < w * h; i++) {
        image->pixels[i] = (uint8_t)(255 - image->pixels[i]);
    }
}

/* The mean of the rectangle x0..x1, y0..y1, whose edges may cut through pixels. */
static double area_mean(const cli_image *image, double x0, double x1, double y0, double y1)
{
    double sum = 0;
    double weight = 0;
    for (int64_t y = (int64_t)y0; y < image->height && (double)y < y1; y++) {
        double top = (double)y > y0 ? (double)y : y0;
        double bottom = (double)(y + 1) < y1 ? (double)(y + 1) : y1;
        for (int64_t x = (int64_t)x0; x < image->width && (double)x < x1; x++) {
            double left = (double)x > x0 ? (double)x : x0;
            double right = (double)(x + 1) < x1 ? (double)(x + 1) : x1;
            double part = (bottom - top) * (right - left);
            sum += part * (double)image->pixels[y * image->width + x];
            weight += part;
        }
    }
    return weight > 0 ? sum / weight : 0;
}

void cli_image_resize(const cli_image *image, int64_t width, int64_t height, uint8_t *out)
{
    double sx = (double)image->width / (double)width;
    double sy = (double)image->height / (double)height;
    for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x++) {
            double mean = area_mean(image, (double)x * sx, (double)(x + 1) * sx, (double)y * sy,
                                    (double)(y + 1) * sy);
            out[y * width + x] = (uint8_t)(mean + 0.5);
        }
    }
}
