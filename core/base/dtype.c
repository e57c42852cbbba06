/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * dtype.c - names, sizes and classes of dtypes, from the list in <burn/dtype.h>.
 */
#include <burn/dtype.h>
#include <string.h>

typedef struct dtype_info {
    const char *name;
    uint32_t size;
    uint32_t klass;
} dtype_info;

static const dtype_info infos[256] = {
#define DTYPE_INFO(code, NAME, name, bytes, klass) [code] = {#name, bytes, BURN_CLASS_##klass},
    BURN_FOREACH_DTYPE(DTYPE_INFO)
#undef DTYPE_INFO
};

const char *burn_dtype_name(uint8_t dtype)
{
    return infos[dtype].name != NULL ? infos[dtype].name : "none";
}

uint32_t burn_dtype_size(uint8_t dtype)
{
    return infos[dtype].size;
}

uint32_t burn_dtype_class(uint8_t dtype)
{
    return infos[dtype].klass;
}

uint8_t burn_dtype_from_name(const char *name)
{
    for (uint32_t i = 0; name != NULL && i < 256; i++) {
        if (infos[i].name != NULL && strcmp(infos[i].name, name) == 0) {
            return (uint8_t)i;
        }
    }
    return BURN_DTYPE_NONE;
}
