/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nearest.c - which name was meant, where a command or an op of that name is not there.
 *
 * Names are compared by how many letters would have to be typed otherwise (insert, delete, replace,
 * swap of neighbours). Keeps nothing but what the caller holds. [any]
 */
#include "cli.h"

#include <string.h>

enum { LONGEST = 63, NEAR = 2 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment, three rows at a time. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][LONGEST + 1];
    size_t n = strlen(a);
    size_t m = strlen(b);
    if (n > LONGEST || m > LONGEST) {
        return LONGEST;
    }
    for (size_t j = 0; j <= m; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3];
        const size_t *up = rows[(i + 2) % 3];
        const size_t *up2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = smaller(up[j - 1] + (a[i - 1] != b[j - 1]), smaller(up[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = smaller(row[j], up2[j - 2] + 1);
            }
        }
    }
    return rows[n % 3][m];
}

void cli_nearest_try(cli_nearest *n, const char *candidate)
{
    size_t d = distance(n->wanted, candidate);
    /* Of a short word not every letter may differ. */
    if (d <= NEAR && d < strlen(n->wanted) && (n->best == NULL || d < n->distance)) {
        n->best = candidate;
        n->distance = d;
    }
}
