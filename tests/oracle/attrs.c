/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * attrs.c - attributes of an op by name, from JSON into the struct that the op takes.
 *
 * The names and places come from the registry, so a new attribute needs nothing here. No state. To
 * add a type of attribute: a branch in set_field.
 */
#include "attrs.h"

#include <burn_sdk/element.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

double oracle_number(const json_t *value)
{
    const char *text = json_string_value(value);
    if (text != NULL) {
        double size = strstr(text, "inf") != NULL ? (double)INFINITY : (double)NAN;
        return text[0] == '-' ? -size : size;
    }
    return json_number_value(value);
}

static void set_field(unsigned char *field, const burn_attr *attr, const json_t *value)
{
    if (attr->type == BURN_ATTR_F64) {
        double number = oracle_number(value);
        memcpy(field, &number, sizeof(number));
    } else if (attr->type == BURN_ATTR_DTYPE) {
        uint32_t dtype = burn_dtype_from_name(json_string_value(value));
        memcpy(field, &dtype, sizeof(dtype));
    } else if (attr->type == BURN_ATTR_I64_LIST) {
        for (size_t i = 0; i < json_array_size(value) && i < BURN_MAX_RANK; i++) {
            int64_t number = json_integer_value(json_array_get(value, i));
            memcpy(field + i * sizeof(number), &number, sizeof(number));
        }
    } else {
        int64_t number = json_integer_value(value);
        memcpy(field, &number, attr->size < 8 ? attr->size : 8); /* little-endian, like the rest */
    }
}

static const burn_attr *find_attr(const burn_op_def *def, const char *name)
{
    for (uint32_t i = 0; i < def->n_attrs; i++) {
        const char *base = (const char *)def->attrs;
        const burn_attr *attr =
            (const burn_attr *)(const void *)(base + (size_t)i * def->attr_stride);
        if (strcmp(attr->name, name) == 0) {
            return attr;
        }
    }
    return NULL;
}

int oracle_attrs(const burn_op_def *def, json_t *json, unsigned char *attrs)
{
    burn_attrs_head head = {def->attrs_size, 1};
    const char *name;
    json_t *value;
    memset(attrs, 0, BURN_MAX_ATTRS);
    if (def->attrs_size > 0) {
        memcpy(attrs, &head, sizeof(head));
    }
    json_object_foreach(json, name, value) {
        const burn_attr *attr = find_attr(def, name);
        if (attr == NULL) {
            (void)printf("FAIL %s: it has no attribute %s\n", def->name, name);
            return 0;
        }
        set_field(attrs + attr->offset, attr, value);
    }
    return 1;
}
