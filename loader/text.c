/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * text.c - small text helpers of the loader: building messages in fixed buffers, cleaning text that
 * plugins and files wrote, names, edit distance, lists of strings.
 *
 * Nothing here keeps state. Messages are cut, never grown: a plugin must not decide how much memory
 * an error takes. [any]
 */
#include "base/alloc.h"
#include "loader/entry.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void burni_text_init(burni_text *t, char *buffer, size_t cap)
{
    t->at = buffer;
    t->cap = cap;
    t->used = 0;
    if (cap > 0) {
        buffer[0] = '\0';
    }
}

void burni_text_add(burni_text *t, const char *format, ...)
{
    if (t->used + 1 >= t->cap) {
        return;
    }
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at + t->used, t->cap - t->used, format, args);
    va_end(args);
    if (n < 0) {
        t->at[t->used] = '\0';
        return;
    }
    size_t room = t->cap - t->used - 1;
    t->used += (size_t)n < room ? (size_t)n : room;
}

void burni_text_clean(char *out, size_t cap, const char *text)
{
    size_t i = 0;
    for (; i + 1 < cap && text[i] != '\0'; i++) {
        unsigned char c = (unsigned char)text[i];
        out[i] = c < 0x20 || c == 0x7f ? '?' : text[i];
    }
    if (cap > 0) {
        out[i] = '\0';
    }
}

int burni_is_name(const char *text, size_t n)
{
    if (n == 0 || n > 63 || text[0] < 'a' || text[0] > 'z') {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        int fine = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        if (!fine) {
            return 0;
        }
    }
    return 1;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t burni_distance(const char *a, const char *b)
{
    size_t n = strlen(a);
    size_t m = strlen(b);
    if (n > 63 || m > 63) {
        return UINT32_MAX;
    }
    uint32_t rows[3][64] = {{0}};
    for (size_t j = 0; j <= m; j++) {
        rows[0][j] = (uint32_t)j;
    }
    for (size_t i = 1; i <= n; i++) {
        uint32_t *row = rows[i % 3];
        const uint32_t *up = rows[(i + 2) % 3];
        const uint32_t *up2 = rows[(i + 1) % 3];
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= m; j++) {
            uint32_t best = up[j - 1] + (a[i - 1] != b[j - 1] ? 1u : 0u);
            best = smaller(best, smaller(up[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                best = smaller(best, up2[j - 2] + 1);
            }
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

int32_t burni_strings_add(burni_strings *list, const char *text)
{
    if (list->n == list->cap) {
        uint32_t cap = list->cap > 0 ? list->cap * 2 : 8;
        char **grown = burni_realloc(list->at, cap * sizeof(*grown));
        if (grown == NULL) {
            return BURN_E_NO_MEMORY;
        }
        list->at = grown;
        list->cap = cap;
    }
    char *copy = burni_strdup(text);
    if (copy == NULL) {
        return BURN_E_NO_MEMORY;
    }
    list->at[list->n] = copy;
    list->n++;
    return BURN_OK;
}

static int compare_strings(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;
    return strcmp(*left, *right);
}

void burni_strings_sort(burni_strings *list)
{
    if (list->n > 1) {
        qsort(list->at, list->n, sizeof(*list->at), compare_strings);
    }
}

void burni_strings_free(burni_strings *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        burni_free(list->at[i]);
    }
    burni_free(list->at);
    list->at = NULL;
    list->n = 0;
    list->cap = 0;
}
