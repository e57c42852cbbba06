/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * device_string.c - the grammar of device strings. Nothing is looked up here (resolve.c does).
 *
 *   list    = device *("," device)                      only in BURN_DEVICE
 *   device  = ("auto" / name [":" ordinal] ["?" key "=" value *("&" key "=" value)]) ["+autodiff"]
 *   name    = [a-z][a-z0-9_-]*      ordinal = "0" / [1-9][0-9]{0,3}
 *   key     = [a-z][a-z0-9_]*       value   = 1*[A-Za-z0-9._:/@%~=-]
 *
 * Strict: the first thing that is wrong makes an error with its position, and nothing is guessed.
 * Keeps no state. [any]
 */
#include "base/error.h"
#include "loader/entry.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct parser {
    const char *text;
    const char *at;
    burn_err *err;
} parser;

static int32_t fail_at(const parser *p, const char *where, int32_t code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int32_t fail_at(const parser *p, const char *where, int32_t code, const char *format, ...)
{
    char why[200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    char shown[72];
    burni_text_clean(shown, sizeof(shown), p->text);
    return burni_fail(p->err, code, "device \"%s\", position %u: %s", shown,
                      (unsigned)(where - p->text) + 1, why);
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static int is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static int is_name_char(char c)
{
    return is_lower(c) || is_upper(c) || is_digit(c) || c == '_' || c == '-';
}

static int is_value_char(char c)
{
    int is_mark = c != '\0' && strchr("._:/@%~=-", c) != NULL;
    return is_lower(c) || is_upper(c) || is_digit(c) || is_mark;
}

static int32_t unexpected(const parser *p, const char *expected)
{
    char c = *p->at;
    if (c == '\0') {
        return fail_at(p, p->at, BURN_E_INVALID, "it ends where %s is expected", expected);
    }
    if (c == ' ' || c == '\t') {
        return fail_at(p, p->at, BURN_E_INVALID, "blanks are not allowed; expected is %s",
                       expected);
    }
    if ((unsigned char)c < 0x20 || (unsigned char)c >= 0x7f) {
        return fail_at(p, p->at, BURN_E_INVALID, "byte 0x%02x where %s is expected",
                       (unsigned char)c, expected);
    }
    return fail_at(p, p->at, BURN_E_INVALID, "'%c' where %s is expected", c, expected);
}

static int32_t parse_name(parser *p, burni_device_term *out)
{
    const char *start = p->at;
    size_t n = 0;
    int upper = 0;
    while (is_name_char(start[n])) {
        upper |= is_upper(start[n]);
        n++;
    }
    if (n == 0) {
        return unexpected(p, "a device name");
    }
    if (n >= sizeof(out->id)) {
        return fail_at(p, start, BURN_E_INVALID, "the name has %zu bytes; at most %zu are allowed",
                       n, sizeof(out->id) - 1);
    }
    char lower[sizeof(out->id)];
    for (size_t i = 0; i < n; i++) {
        lower[i] = is_upper(start[i]) ? (char)(start[i] - 'A' + 'a') : start[i];
    }
    lower[n] = '\0';
    if (!burni_is_name(lower, n)) {
        return fail_at(p, start, BURN_E_INVALID, "a name starts with a letter, not with '%c'",
                       start[0]);
    }
    if (upper) {
        return fail_at(p, start, BURN_E_INVALID, "names are lower-case; did you mean \"%s\"?",
                       lower);
    }
    memcpy(out->id, lower, n + 1);
    out->is_auto = strcmp(lower, "auto") == 0;
    p->at = start + n;
    return BURN_OK;
}

static int32_t parse_ordinal(parser *p, burni_device_term *out)
{
    const char *start = p->at;
    if (out->is_auto) {
        return fail_at(p, start - 1, BURN_E_INVALID,
                       "\"auto\" takes no ordinal; name the backend instead");
    }
    size_t n = 0;
    uint32_t number = 0;
    while (is_digit(start[n]) && n < 5) {
        number = number * 10 + (uint32_t)(start[n] - '0');
        n++;
    }
    if (n == 0) {
        return unexpected(p, "an ordinal (0, 1, ...)");
    }
    if (n > 4) {
        return fail_at(p, start, BURN_E_INVALID, "an ordinal has at most 4 digits");
    }
    if (n > 1 && start[0] == '0') {
        return fail_at(p, start, BURN_E_INVALID, "an ordinal has no leading zero; did you mean %u?",
                       number);
    }
    out->has_ordinal = 1;
    out->ordinal = number;
    p->at = start + n;
    return BURN_OK;
}

/* 1 when the options so far have that key. `options` is well-formed. */
static int has_key(const char *options, const char *key, size_t n)
{
    for (const char *at = options; *at != '\0';) {
        if (strncmp(at, key, n) == 0 && at[n] == '=') {
            return 1;
        }
        at += strcspn(at, "&");
        at += *at == '&';
    }
    return 0;
}

static int32_t parse_option(parser *p, burni_device_term *out)
{
    const char *start = p->at;
    size_t n = 0;
    while (is_lower(start[n]) || (n > 0 && (is_digit(start[n]) || start[n] == '_'))) {
        n++;
    }
    if (n == 0) {
        return unexpected(p, "an option's name (lower-case)");
    }
    p->at = start + n;
    if (*p->at != '=') {
        return unexpected(p, "'=' and a value");
    }
    p->at++;
    if (!is_value_char(*p->at)) {
        return unexpected(p, "an option's value");
    }
    while (is_value_char(*p->at)) {
        p->at++;
    }
    if (has_key(out->options, start, n)) {
        return fail_at(p, start, BURN_E_INVALID, "option \"%.*s\" was given before", (int)n, start);
    }
    size_t used = strlen(out->options);
    size_t size = (size_t)(p->at - start);
    if (used + size + 2 > sizeof(out->options)) {
        return fail_at(p, start, BURN_E_LIMIT, "options have more than %zu bytes",
                       sizeof(out->options) - 1);
    }
    if (used > 0) {
        out->options[used] = '&';
        used++;
    }
    memcpy(out->options + used, start, size);
    out->options[used + size] = '\0';
    return BURN_OK;
}

static int32_t parse_options(parser *p, burni_device_term *out)
{
    if (out->is_auto) {
        return fail_at(p, p->at - 1, BURN_E_INVALID,
                       "\"auto\" takes no options; name the backend instead");
    }
    for (;;) {
        int32_t code = parse_option(p, out);
        if (code != BURN_OK || *p->at != '&') {
            return code;
        }
        p->at++;
    }
}

static int32_t parse_suffix(parser *p, burni_device_term *out)
{
    static const char word[] = "autodiff";
    size_t n = sizeof(word) - 1;
    if (strncmp(p->at, word, n) != 0) {
        return fail_at(p, p->at - 1, BURN_E_INVALID, "the only suffix is \"+autodiff\"");
    }
    out->autodiff = 1;
    p->at += n;
    if (*p->at == '?' || *p->at == ':') {
        return fail_at(p, p->at, BURN_E_INVALID,
                       "\"+autodiff\" comes last, behind \":\" and \"?\"");
    }
    if (*p->at != '\0' && *p->at != ',') {
        return unexpected(p, "the end");
    }
    return BURN_OK;
}

static int32_t parse_term(parser *p, burni_device_term *out)
{
    memset(out, 0, sizeof(*out));
    out->column = (uint32_t)(p->at - p->text) + 1;
    int32_t code = parse_name(p, out);
    if (code == BURN_OK && *p->at == ':') {
        p->at++;
        code = parse_ordinal(p, out);
    }
    if (code == BURN_OK && *p->at == '?') {
        p->at++;
        code = parse_options(p, out);
    }
    if (code == BURN_OK && *p->at == '+') {
        p->at++;
        code = parse_suffix(p, out);
    }
    if (code == BURN_OK && *p->at != '\0' && *p->at != ',') {
        const char *next = out->options[0] != '\0' ? "'&', \"+autodiff\" or the end"
                           : out->has_ordinal      ? "'?', \"+autodiff\" or the end"
                                                   : "':', '?', \"+autodiff\" or the end";
        code = unexpected(p, next);
    }
    return code;
}

int32_t burni_device_parse(const char *text, uint32_t list, burni_device_term *out, uint32_t *n_out,
                           burn_err *err)
{
    parser p = {text, text, err};
    *n_out = 0;
    if (text[0] == '\0') {
        return burni_fail(err, BURN_E_INVALID,
                          "%s is empty; use \"auto\" or a backend's name%s",
                          list ? "BURN_DEVICE" : "the device string",
                          list ? ", or unset it" : ", or NULL for BURN_DEVICE");
    }
    if (strnlen(text, BURNI_DEVICE_BYTES + 1) > BURNI_DEVICE_BYTES) {
        return burni_fail(err, BURN_E_LIMIT, "the device string has more than %d bytes",
                          BURNI_DEVICE_BYTES);
    }
    for (;;) {
        if (*n_out == BURNI_DEVICE_TERMS) {
            return fail_at(&p, p.at, BURN_E_LIMIT, "more than %d devices", BURNI_DEVICE_TERMS);
        }
        int32_t code = parse_term(&p, &out[*n_out]);
        if (code != BURN_OK) {
            return code;
        }
        (*n_out)++;
        if (*p.at == '\0') {
            return BURN_OK;
        }
        if (!list) {
            return fail_at(&p, p.at, BURN_E_INVALID,
                           "one device is taken here; a list can only stand in BURN_DEVICE");
        }
        p.at++;
    }
}
