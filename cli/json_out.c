/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * json_out.c - output of all commands: errors in both forms, JSON, text that is safe to print.
 *
 * With --json an error is the object {"error": {"code": ..., "text": ...}} on standard output, so
 * that a program reads one place only; for people it is a line on standard error.
 */
#include "cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *cli_clean(char *out, size_t size, const char *text)
{
    size_t n = 0;
    for (; n + 1 < size && text[n] != '\0'; n++) {
        unsigned char c = (unsigned char)text[n];
        out[n] = c < 0x20 || c == 0x7f ? '?' : text[n];
    }
    out[n] = '\0';
    return out;
}

json_t *cli_json_text(const char *text)
{
    json_t *json = json_string(text);
    if (json != NULL) {
        return json;
    }
    char plain[1024];
    size_t n = 0;
    for (; n + 1 < sizeof(plain) && text[n] != '\0'; n++) {
        plain[n] = (unsigned char)text[n] < 0x80 ? text[n] : '?';
    }
    plain[n] = '\0';
    return json_string(plain);
}

json_t *cli_json_error(const burn_err *err)
{
    return json_pack("{s:s, s:o}", "code", burn_status_name(err->code), "text",
                     cli_json_text(err->text));
}

int cli_print_json(json_t *object, int status)
{
    if (object == NULL || json_dumpf(object, stdout, JSON_INDENT(2)) != 0) {
        (void)fprintf(stderr, "burn: out of memory for the output\n");
        status = CLI_WRONG;
    }
    json_decref(object);
    printf("\n");
    return status;
}

static void print_error(const cli *c, const burn_err *err)
{
    char clean[sizeof(err->text)];
    if (c->json) {
        (void)cli_print_json(json_pack("{s:o}", "error", cli_json_error(err)), 0);
        return;
    }
    (void)fprintf(stderr, "burn %s: %s\n", c->command->name,
                  cli_clean(clean, sizeof(clean), err->text));
}

int cli_fail(const cli *c, const burn_err *err)
{
    print_error(c, err);
    return CLI_WRONG;
}

int cli_error(const cli *c, int32_t code, const char *format, ...)
{
    burn_err err = BURN_ERR_INIT;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err.text, sizeof(err.text), format, args);
    va_end(args);
    err.code = code;
    print_error(c, &err);
    return CLI_WRONG;
}

int cli_usage(const cli *c, const char *format, ...)
{
    burn_err err = BURN_ERR_INIT;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err.text, sizeof(err.text), format, args);
    va_end(args);
    err.code = BURN_E_INVALID;
    print_error(c, &err);
    if (!c->json) {
        (void)fprintf(stderr, "`burn %s --help` has options and examples\n", c->command->name);
    }
    return CLI_USAGE;
}

json_t *cli_json_dims(uint32_t rank, const int64_t *dims)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < rank; i++) {
        (void)json_array_append_new(list, json_integer(dims[i]));
    }
    return list;
}

const char *cli_bytes(char *out, size_t size, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1024) {
        (void)snprintf(out, size, "%llu byte%s", (unsigned long long)bytes, cli_s(bytes));
        return out;
    }
    double value = (double)bytes / 1024.0;
    size_t unit = 0;
    while (value >= 1024.0 && unit < 3) {
        value /= 1024.0;
        unit++;
    }
    (void)snprintf(out, size, "%.1f %s", value, units[unit]);
    return out;
}

const char *cli_dims(char *out, size_t size, uint32_t rank, const int64_t *dims)
{
    size_t used = 0;
    (void)snprintf(out, size, "[");
    for (uint32_t i = 0; i < rank; i++) {
        used = strlen(out);
        (void)snprintf(out + used, size - used, "%s%lld", i > 0 ? "," : "", (long long)dims[i]);
    }
    used = strlen(out);
    (void)snprintf(out + used, size - used, "]");
    return out;
}
