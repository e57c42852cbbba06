/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * image.h - gray images for `burn predict`: from PNG files, and to the size that a graph needs.
 *
 * 8 bits a pixel, row after row; 255 is white. A file is hostile until it was read.
 */
#ifndef BURN_CLI_IMAGE_H
#define BURN_CLI_IMAGE_H

#include <burn/status.h>

typedef struct cli_image {
    uint8_t *pixels; /* malloc */
    int64_t width;
    int64_t height;
    int inverted; /* it was dark on white */
} cli_image;

/* Reads a PNG file; transparent parts become background. */
int32_t cli_image_read_png(const char *path, cli_image *out, burn_err *err);
/* Turns dark on white into white on dark, which digits of data sets are. */
void cli_image_invert_paper(cli_image *image);
/* Writes `image` in another size: each new pixel is the mean of the area that it covers. */
void cli_image_resize(const cli_image *image, int64_t width, int64_t height, uint8_t *out);

#endif /* BURN_CLI_IMAGE_H */
