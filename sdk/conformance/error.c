/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * error.c - samples that must fail: the code, and what the text says.
 *
 * A text begins with the op that was called, and names each value of an attribute that no sample
 * which can succeed has there: whoever reads it sees which number is the wrong one. So a sample
 * whose text relates two attributes should have a value of its own in both. Owns no case.
 */
#include "conformance.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const burn_attr *attr_at(const burn_op_def *def, uint32_t a)
{
    return (const burn_attr *)(const void *)((const char *)def->attrs +
                                             (size_t)a * def->attr_stride);
}

static uint32_t read_u32(const burn_sample *sample, uint32_t offset)
{
    uint32_t value = 0;
    memcpy(&value, sample->attrs + offset, sizeof(value));
    return value;
}

/* How many values attribute `a` has in the sample: of a list, what the field of its length says. */
static uint32_t count_values(const burn_op_def *def, const burn_sample *sample, uint32_t a)
{
    const burn_attr *list = attr_at(def, a);
    uint32_t n = 0;
    if (list->type != BURN_ATTR_I64_LIST) {
        return 1;
    }
    for (uint32_t k = 0; k < def->n_attrs; k++) {
        const burn_attr *other = attr_at(def, k);
        if (other->type == BURN_ATTR_U32 && strncmp(other->name, "n_", 2) == 0) {
            n = read_u32(sample, other->offset);
            if (strcmp(other->name + 2, list->name) == 0) {
                break;
            }
        }
    }
    return n <= BURN_MAX_RANK ? n : 0; /* more than it can hold: there are no such values */
}

/* Value k of an attribute as a text has it; 0 for truth values, which texts tell in words. */
static int value_text(const burn_op_def *def, const burn_sample *sample, uint32_t a, uint32_t k,
                      char *out, size_t size)
{
    const burn_attr *attr = attr_at(def, a);
    int64_t whole = 0;
    double number = 0.0;
    switch (attr->type) {
    case BURN_ATTR_I64:
    case BURN_ATTR_I64_LIST:
        memcpy(&whole, sample->attrs + attr->offset + k * sizeof(whole), sizeof(whole));
        (void)snprintf(out, size, "%lld", (long long)whole);
        return 1;
    case BURN_ATTR_F64:
        memcpy(&number, sample->attrs + attr->offset, sizeof(number));
        (void)snprintf(out, size, "%g", number);
        return 1;
    case BURN_ATTR_U32:
        (void)snprintf(out, size, "%u", read_u32(sample, attr->offset));
        return 1;
    case BURN_ATTR_DTYPE:
        (void)snprintf(out, size, "%u", read_u32(sample, attr->offset));
        if (read_u32(sample, attr->offset) - 1 < UINT8_MAX &&
            burn_dtype_size((uint8_t)read_u32(sample, attr->offset)) > 0) {
            const char *name = burn_dtype_name((uint8_t)read_u32(sample, attr->offset));
            (void)snprintf(out, size, "%s", name);
        }
        return 1;
    default:
        return 0;
    }
}

/* Is the number in the text, and not only within another one? */
static int stands_in(const char *text, const char *number)
{
    size_t n = strlen(number);
    for (const char *at = strstr(text, number); at != NULL; at = strstr(at + 1, number)) {
        int begins = at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '.' &&
                                    (at[-1] != '-' || number[0] == '-'));
        int ends = !isalnum((unsigned char)at[n]) &&
                   (at[n] != '.' || !isdigit((unsigned char)at[n + 1]));
        if (begins && ends) {
            return 1;
        }
    }
    return 0;
}

/* 1 when a sample that can succeed has that text as value k of the attribute. */
static int is_usual(const burn_op_def *def, uint32_t a, uint32_t k, const char *text)
{
    static burn_sample sample; /* large */
    for (uint32_t i = 0;; i++) {
        char other[40];
        memset(&sample, 0, sizeof(sample));
        sample.struct_size = (uint32_t)sizeof(sample);
        if (def->samples(i, &sample) != BURN_OK) {
            return 0;
        }
        if ((sample.flags & BURN_SAMPLE_ERROR) == 0 && k < count_values(def, &sample, a) &&
            value_text(def, &sample, a, k, other, sizeof(other)) && strcmp(other, text) == 0) {
            return 1;
        }
    }
}

/* The first value that no good sample has and the text does not name; NULL: there is none. */
static const burn_attr *unnamed_value(const conf_case *c, const char *text, char *out, size_t size)
{
    const burn_op_def *def = c->def;
    for (uint32_t a = 0; a < def->n_attrs; a++) {
        /* What is wrong about a dtype is no size. */
        int about = c->sample.error != BURN_E_DTYPE || attr_at(def, a)->type == BURN_ATTR_DTYPE;
        uint32_t n = about ? count_values(def, &c->sample, a) : 0;
        for (uint32_t k = 0; k < n; k++) {
            if (value_text(def, &c->sample, a, k, out, size) && !stands_in(text, out) &&
                !is_usual(def, a, k, out)) {
                return attr_at(def, a);
            }
        }
    }
    return NULL;
}

void conf_check_error(conf_report *report, conf_runner *runner, conf_case *c)
{
    conf_value got[CONF_MAX_OUT];
    char value[40];
    burn_err err = BURN_ERR_INIT;
    memset(got, 0, sizeof(got));
    int32_t code = conf_run(runner, c, got, &err);
    const burn_attr *unnamed = NULL;
    if (code == c->sample.error) {
        unnamed = unnamed_value(c, err.text, value, sizeof(value));
    }
    if (code == BURN_E_UNSUPPORTED && c->sample.error == BURN_E_DATA) {
        conf_failed(report, c, "error", "", code, err.text); /* nothing looked at the data */
    } else if (code != c->sample.error) {
        conf_result(report, c, "error", "", CONF_FAIL, "code %d (%s), expected %d", (int)code,
                    code == BURN_OK ? "no error" : err.text, (int)c->sample.error);
    } else if (strncmp(err.text, c->def->name, strlen(c->def->name)) != 0) {
        conf_result(report, c, "error", "", CONF_FAIL,
                    "the text \"%s\" does not begin with the op that was called", err.text);
    } else if (unnamed != NULL) {
        conf_result(report, c, "error", "", CONF_FAIL,
                    "the text \"%s\" does not name the value of %s, %s, which no sample that can "
                    "succeed has",
                    err.text, unnamed->name, value);
    } else {
        conf_result(report, c, "error", "", CONF_PASS, "%s", err.text);
    }
}
