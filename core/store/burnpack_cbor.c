/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * burnpack_cbor.c - see burnpack_cbor.h.
 *
 * libcbor's streaming decoder hands one item to one callback; `next` turns that into a struct, and
 * the functions below read the map with it as plain code. Keys that are not known are skipped, as
 * the format demands; keys that come twice are refused. To read a further key: a row in the table
 * of its map and a function for its value.
 */
#include "store/burnpack_cbor.h"

#include "base/alloc.h"
#include "base/error.h"

#include <cbor.h>
#include <string.h>

/* ---- one item -------------------------------------------------------------------------------- */

enum {
    ITEM_NONE,
    ITEM_UINT,
    ITEM_NEGATIVE, /* -1 - u */
    ITEM_BYTES,
    ITEM_TEXT,
    ITEM_CHUNKS, /* start of bytes or text of unknown length */
    ITEM_ARRAY,
    ITEM_MAP,
    ITEM_TAG,
    ITEM_FLOAT,
    ITEM_BOOL,
    ITEM_NULL,
    ITEM_BREAK
};

#define UNTIL_BREAK UINT64_MAX

typedef struct item {
    uint32_t kind;
    uint32_t zero;
    uint64_t u; /* number, bool, or count of an array or map (UNTIL_BREAK: not told) */
    double f;
    const unsigned char *text;
    uint64_t length;
} item;

typedef struct parser {
    const unsigned char *bytes;
    uint64_t size;
    uint64_t at;
    burni_bpk_contents *out;
    burn_err *err;
} parser;

static void got(void *context, uint32_t kind, uint64_t u)
{
    item *it = context;
    it->kind = kind;
    it->u = u;
}

static void got_span(void *context, uint32_t kind, cbor_data data, uint64_t length)
{
    item *it = context;
    it->kind = kind;
    it->text = data;
    it->length = length;
}

static void got_float(void *context, double value)
{
    item *it = context;
    it->kind = ITEM_FLOAT;
    it->f = value;
}

static void on_uint8(void *c, uint8_t v)
{
    got(c, ITEM_UINT, v);
}

static void on_uint16(void *c, uint16_t v)
{
    got(c, ITEM_UINT, v);
}

static void on_uint32(void *c, uint32_t v)
{
    got(c, ITEM_UINT, v);
}

static void on_uint64(void *c, uint64_t v)
{
    got(c, ITEM_UINT, v);
}

static void on_negative8(void *c, uint8_t v)
{
    got(c, ITEM_NEGATIVE, v);
}

static void on_negative16(void *c, uint16_t v)
{
    got(c, ITEM_NEGATIVE, v);
}

static void on_negative32(void *c, uint32_t v)
{
    got(c, ITEM_NEGATIVE, v);
}

static void on_negative64(void *c, uint64_t v)
{
    got(c, ITEM_NEGATIVE, v);
}

static void on_bytes(void *c, cbor_data data, size_t length)
{
    got_span(c, ITEM_BYTES, data, length);
}

static void on_text(void *c, cbor_data data, size_t length)
{
    got_span(c, ITEM_TEXT, data, length);
}

static void on_chunks(void *c)
{
    got(c, ITEM_CHUNKS, 0);
}

static void on_array(void *c, size_t count)
{
    got(c, ITEM_ARRAY, count);
}

static void on_open_array(void *c)
{
    got(c, ITEM_ARRAY, UNTIL_BREAK);
}

static void on_map(void *c, size_t count)
{
    got(c, ITEM_MAP, count);
}

static void on_open_map(void *c)
{
    got(c, ITEM_MAP, UNTIL_BREAK);
}

static void on_tag(void *c, uint64_t v)
{
    got(c, ITEM_TAG, v);
}

static void on_float(void *c, float v)
{
    got_float(c, (double)v);
}

static void on_double(void *c, double v)
{
    got_float(c, v);
}

static void on_null(void *c)
{
    got(c, ITEM_NULL, 0);
}

static void on_bool(void *c, bool v)
{
    got(c, ITEM_BOOL, v ? 1 : 0);
}

static void on_break(void *c)
{
    got(c, ITEM_BREAK, 0);
}

static const struct cbor_callbacks callbacks = {
    .uint8 = on_uint8,
    .uint16 = on_uint16,
    .uint32 = on_uint32,
    .uint64 = on_uint64,
    .negint8 = on_negative8,
    .negint16 = on_negative16,
    .negint32 = on_negative32,
    .negint64 = on_negative64,
    .byte_string_start = on_chunks,
    .byte_string = on_bytes,
    .string = on_text,
    .string_start = on_chunks,
    .indef_array_start = on_open_array,
    .array_start = on_array,
    .indef_map_start = on_open_map,
    .map_start = on_map,
    .tag = on_tag,
    .float2 = on_float,
    .float4 = on_float,
    .float8 = on_double,
    .undefined = on_null,
    .null = on_null,
    .boolean = on_bool,
    .indef_break = on_break,
};

static int32_t malformed(const parser *p, const char *what)
{
    return burni_fail(p->err, BURN_E_FORMAT, "metadata at byte %llu: %s",
                      (unsigned long long)(p->at + BURNI_BPK_HEADER), what);
}

static int32_t next(parser *p, item *it)
{
    memset(it, 0, sizeof(*it));
    struct cbor_decoder_result result =
        cbor_stream_decode(p->bytes + p->at, p->size - p->at, &callbacks, it);
    if (result.status == CBOR_DECODER_NEDATA) {
        return malformed(p, "it ends within an item; the file is truncated or damaged");
    }
    if (result.status != CBOR_DECODER_FINISHED || it->kind == ITEM_NONE || result.read == 0) {
        return malformed(p, "not CBOR");
    }
    p->at += result.read;
    return BURN_OK;
}

static int32_t expect(parser *p, item *it, uint32_t kind, const char *what)
{
    int32_t code = next(p, it);
    if (code == BURN_OK && it->kind != kind) {
        code = malformed(p, what);
    }
    return code;
}

/* ---- maps and skipping ----------------------------------------------------------------------- */

/* Is there another entry? Takes the break of an open map or array. -1: an error. */
static int more(parser *p, uint64_t *left)
{
    if (*left != UNTIL_BREAK) {
        return (*left)-- > 0;
    }
    uint64_t before = p->at;
    item it;
    if (next(p, &it) != BURN_OK) {
        return -1;
    }
    if (it.kind == ITEM_BREAK) {
        return 0;
    }
    p->at = before;
    return 1;
}

/* How many items follow within one; 0 for a leaf. */
static uint64_t items_within(const item *it)
{
    switch (it->kind) {
    case ITEM_ARRAY:
        return it->u;
    case ITEM_MAP:
        return it->u > UINT64_MAX / 2 ? UNTIL_BREAK : 2 * it->u;
    case ITEM_CHUNKS:
        return UNTIL_BREAK;
    case ITEM_TAG:
        return 1;
    default:
        return 0;
    }
}

/* Skips one value of any form. */
static int32_t skip(parser *p)
{
    uint64_t left[BURNI_BPK_MAX_NESTING];
    uint32_t depth = 0;
    do {
        item it;
        int32_t code = next(p, &it);
        if (code != BURN_OK) {
            return code;
        }
        if (it.kind == ITEM_BREAK) {
            if (depth == 0 || left[depth - 1] != UNTIL_BREAK) {
                return malformed(p, "a break outside of anything open");
            }
            depth--;
        } else if (depth > 0 && left[depth - 1] != UNTIL_BREAK) {
            left[depth - 1]--;
        }
        uint64_t within = items_within(&it);
        if (within > 0) {
            if (depth + 8 >= BURNI_BPK_MAX_NESTING) {
                return malformed(p, "nested more than 128 deep");
            }
            left[depth++] = within;
        }
        while (depth > 0 && left[depth - 1] == 0) {
            depth--;
        }
    } while (depth > 0);
    return BURN_OK;
}

static int is_text(const item *it, const char *text)
{
    return it->length == strlen(text) && memcmp(it->text, text, it->length) == 0;
}

/* A key as a terminated string that the contents own. */
static int32_t keep_text(parser *p, const item *it, const char **out)
{
    burni_bpk_contents *c = p->out;
    if (!burni_bpk_is_text(it->text, it->length)) {
        return malformed(p, "a text that is not UTF-8, or holds a NUL");
    }
    if (it->length + 1 > c->text_room - c->text_used) {
        return malformed(p, "more text than there are bytes"); /* cannot be */
    }
    char *to = c->text + c->text_used;
    memcpy(to, it->text, it->length);
    to[it->length] = '\0';
    c->text_used += it->length + 1;
    *out = to;
    return BURN_OK;
}

/* Room for one more element of the list whose pointer lies at `list`; it doubles. */
static int32_t grow(const parser *p, void *list, uint32_t used, uint32_t *room, size_t size)
{
    void *memory;
    if (used == BURNI_BPK_MAX_TENSORS) {
        return burni_fail(p->err, BURN_E_LIMIT, "more than %u tensors, texts or scalars",
                          BURNI_BPK_MAX_TENSORS);
    }
    if (used < *room) {
        return BURN_OK;
    }
    memcpy(&memory, list, sizeof(memory));
    uint32_t wanted = *room == 0 ? 16 : 2 * *room;
    memory = burni_realloc(memory, wanted * size);
    if (memory == NULL) {
        return burni_fail(p->err, BURN_E_NO_MEMORY, "out of memory for %u entries",
                          (unsigned)wanted);
    }
    memcpy(list, &memory, sizeof(memory));
    *room = wanted;
    return BURN_OK;
}

/* ---- maps with known keys -------------------------------------------------------------------- */

typedef int32_t (*value_fn)(parser *p, void *target);

typedef struct known_key {
    const char *name;
    value_fn read;
} known_key;

/* Reads a map; keys it does not know are skipped. *seen gets a bit per known key. */
static int32_t read_map(parser *p, const known_key *keys, uint32_t n_keys, void *target,
                        uint32_t *seen, const char *what)
{
    item it;
    int32_t code = expect(p, &it, ITEM_MAP, what);
    uint64_t left = it.u;
    int another = 0;
    *seen = 0;
    while (code == BURN_OK && (another = more(p, &left)) > 0) {
        item key;
        code = expect(p, &key, ITEM_TEXT, "a key that is no text");
        uint32_t k = 0;
        while (code == BURN_OK && k < n_keys && !is_text(&key, keys[k].name)) {
            k++;
        }
        if (code == BURN_OK && k < n_keys) {
            int again = (*seen >> k & 1u) != 0;
            *seen |= 1u << k;
            code = again ? malformed(p, "a key given twice") : keys[k].read(p, target);
        } else if (code == BURN_OK) {
            code = skip(p);
        }
    }
    return code == BURN_OK && another < 0 ? BURN_E_FORMAT : code;
}

/* Reads a map from any name to a value. */
static int32_t read_named(parser *p, int32_t (*entry)(parser *p, const char *name),
                          const char *what)
{
    item it;
    int32_t code = expect(p, &it, ITEM_MAP, what);
    uint64_t left = it.u;
    int another = 0;
    while (code == BURN_OK && (another = more(p, &left)) > 0) {
        item key;
        const char *name = NULL;
        code = expect(p, &key, ITEM_TEXT, "a name that is no text");
        if (code == BURN_OK) {
            code = keep_text(p, &key, &name);
        }
        if (code == BURN_OK) {
            code = entry(p, name);
        }
    }
    return code == BURN_OK && another < 0 ? BURN_E_FORMAT : code;
}

/* ---- tensors --------------------------------------------------------------------------------- */

typedef struct descriptor {
    burni_bpk_tensor tensor;
    uint64_t end;
} descriptor;

static int32_t read_bool_store(parser *p, void *target)
{
    burni_bpk_tensor *t = &((descriptor *)target)->tensor;
    item it;
    int32_t code = expect(p, &it, ITEM_TEXT, "a bool's storage is no text");
    if (code != BURN_OK) {
        return code;
    }
    t->dtype = BURN_BOOL;
    t->element_bytes = 1;
    if (is_text(&it, "U32")) {
        t->element_bytes = 4;
        t->encoding = BURNI_BPK_BOOL_U32;
    } else if (!is_text(&it, "Native") && !is_text(&it, "U8")) {
        return malformed(p, "an unknown storage of bools (known: Native, U8, U32)");
    }
    return BURN_OK;
}

static int32_t read_quantized(parser *p, void *target)
{
    burni_bpk_tensor *t = &((descriptor *)target)->tensor;
    t->dtype = BURN_DTYPE_NONE;
    t->element_bytes = 0;
    t->encoding = BURNI_BPK_QUANTIZED;
    return skip(p);
}

static int32_t read_dtype(parser *p, void *target)
{
    static const known_key forms[] = {{"Bool", read_bool_store}, {"QFloat", read_quantized}};
    burni_bpk_tensor *t = &((descriptor *)target)->tensor;
    uint64_t before = p->at;
    uint32_t seen = 0;
    item it;
    int32_t code = next(p, &it);
    if (code != BURN_OK) {
        return code;
    }
    if (it.kind == ITEM_MAP && it.u == 1) {
        p->at = before;
        code = read_map(p, forms, 2, target, &seen, "a dtype");
        return code == BURN_OK && seen == 0 ? malformed(p, "an unknown dtype") : code;
    }
    if (it.kind != ITEM_TEXT) {
        return malformed(p, "a dtype that is neither text nor a map of one entry");
    }
    if (is_text(&it, "Flex32")) {
        t->dtype = BURN_F32;
        t->encoding = BURNI_BPK_FLEX32;
    } else {
        t->dtype = burni_bpk_dtype_from_text((const char *)it.text, it.length);
    }
    t->element_bytes = burn_dtype_size(t->dtype);
    return t->dtype == BURN_DTYPE_NONE ? malformed(p, "an unknown dtype") : BURN_OK;
}

static int32_t read_shape(parser *p, void *target)
{
    burni_bpk_tensor *t = &((descriptor *)target)->tensor;
    item it;
    int32_t code = expect(p, &it, ITEM_ARRAY, "a shape that is no array");
    uint64_t left = it.u;
    int another = 0;
    while (code == BURN_OK && (another = more(p, &left)) > 0) {
        item dim;
        code = expect(p, &dim, ITEM_UINT, "a size in a shape that is no unsigned integer");
        if (code == BURN_OK && t->rank == BURN_MAX_RANK) {
            code = malformed(p, "a shape of more than 8 axes");
        } else if (code == BURN_OK && dim.u > (uint64_t)INT64_MAX) {
            code = malformed(p, "a size in a shape above 2^63 - 1");
        } else if (code == BURN_OK) {
            t->dims[t->rank++] = (int64_t)dim.u;
        }
    }
    return code == BURN_OK && another < 0 ? BURN_E_FORMAT : code;
}

static int32_t read_offsets(parser *p, void *target)
{
    descriptor *d = target;
    uint64_t ends[2] = {0, 0};
    uint32_t n = 0;
    item it;
    int32_t code = expect(p, &it, ITEM_ARRAY, "data_offsets that are no array");
    uint64_t left = it.u;
    int another = 0;
    while (code == BURN_OK && (another = more(p, &left)) > 0) {
        item offset;
        code = expect(p, &offset, ITEM_UINT, "an offset that is no unsigned integer");
        if (code == BURN_OK && n == 2) {
            code = malformed(p, "data_offsets of more than two numbers");
        } else if (code == BURN_OK) {
            ends[n++] = offset.u;
        }
    }
    if (code == BURN_OK && another < 0) {
        return BURN_E_FORMAT;
    }
    if (code == BURN_OK && n != 2) {
        code = malformed(p, "data_offsets of less than two numbers");
    }
    d->tensor.position = ends[0];
    d->end = ends[1];
    return code;
}

static int32_t read_param_id(parser *p, void *target)
{
    burni_bpk_tensor *t = &((descriptor *)target)->tensor;
    item it;
    int32_t code = next(p, &it);
    if (code == BURN_OK && it.kind == ITEM_UINT) {
        t->has_param_id = 1;
        t->param_id = it.u;
    } else if (code == BURN_OK && it.kind != ITEM_NULL) {
        code = malformed(p, "a param_id that is no unsigned integer");
    }
    return code;
}

/* What can be said of a descriptor alone. */
static int32_t check_descriptor(const parser *p, descriptor *d)
{
    burni_bpk_tensor *t = &d->tensor;
    unsigned long long start = (unsigned long long)t->position;
    unsigned long long end = (unsigned long long)d->end;
    if (d->end < t->position) {
        return burni_fail(p->err, BURN_E_FORMAT, "tensor '%.64s': data ends at %llu, before its "
                          "start %llu", t->name, end, start);
    }
    t->nbytes = d->end - t->position;
    if (t->nbytes > BURNI_BPK_MAX_TENSOR) {
        return burni_fail(p->err, BURN_E_LIMIT, "tensor '%.64s': %llu bytes are more than 10 GiB",
                          t->name, (unsigned long long)t->nbytes);
    }
    if (t->position % BURNI_BPK_ALIGN != 0) {
        return burni_fail(p->err, BURN_E_FORMAT, "tensor '%.64s': data starts at %llu, which is "
                          "no multiple of 256", t->name, start);
    }
    int ok = 1;
    uint64_t wanted = burni_bpk_bytes_of(t->rank, t->dims, t->element_bytes, &ok);
    if (t->encoding != BURNI_BPK_QUANTIZED && (!ok || wanted != t->nbytes)) {
        return burni_fail(p->err, BURN_E_FORMAT,
                          "tensor '%.64s': its shape and dtype %s need %llu bytes%s, its data has "
                          "%llu", t->name, burn_dtype_name(t->dtype), (unsigned long long)wanted,
                          ok ? "" : " (too many to count)", (unsigned long long)t->nbytes);
    }
    return BURN_OK;
}

static int32_t read_tensor(parser *p, const char *name)
{
    static const known_key keys[] = {
        {"dtype", read_dtype},
        {"shape", read_shape},
        {"data_offsets", read_offsets},
        {"param_id", read_param_id},
    };
    descriptor d;
    uint32_t seen = 0;
    memset(&d, 0, sizeof(d));
    d.tensor.name = name;
    int32_t code = read_map(p, keys, 4, &d, &seen, "a tensor's description that is no map");
    if (code == BURN_OK && (seen & 7u) != 7u) {
        code = burni_fail(p->err, BURN_E_FORMAT,
                          "tensor '%.64s': dtype, shape or data_offsets is missing", name);
    } else if (code != BURN_OK) {
        burni_prefix(p->err, "tensor '%.64s'", name);
    } else {
        code = check_descriptor(p, &d);
    }
    if (code == BURN_OK) {
        code = grow(p, &p->out->tensors, p->out->n_tensors, &p->out->tensor_room,
                    sizeof(d.tensor));
    }
    if (code == BURN_OK) {
        p->out->tensors[p->out->n_tensors++] = d.tensor;
    }
    return code;
}

/* ---- metadata and scalars -------------------------------------------------------------------- */

static int32_t read_pair(parser *p, const char *key)
{
    burni_bpk_pair pair = {key, NULL};
    item it;
    int32_t code = expect(p, &it, ITEM_TEXT, "a metadata value that is no text");
    if (code == BURN_OK) {
        code = keep_text(p, &it, &pair.value);
    }
    if (code == BURN_OK) {
        code = grow(p, &p->out->metadata, p->out->n_metadata, &p->out->metadata_room,
                    sizeof(pair));
    }
    if (code == BURN_OK) {
        p->out->metadata[p->out->n_metadata++] = pair;
    }
    return code;
}

static int32_t read_int(parser *p, void *target)
{
    burni_bpk_scalar *s = target;
    item it;
    int32_t code = next(p, &it);
    if (code != BURN_OK) {
        return code;
    }
    if ((it.kind != ITEM_UINT && it.kind != ITEM_NEGATIVE) || it.u > (uint64_t)INT64_MAX) {
        return malformed(p, "an Int that is no integer of 64 bits");
    }
    s->kind = BURNI_BPK_INT;
    s->value.i = it.kind == ITEM_UINT ? (int64_t)it.u : -1 - (int64_t)it.u;
    return BURN_OK;
}

static int32_t read_uint(parser *p, void *target)
{
    burni_bpk_scalar *s = target;
    item it;
    int32_t code = expect(p, &it, ITEM_UINT, "a UInt that is no unsigned integer");
    s->kind = BURNI_BPK_UINT;
    s->value.u = it.u;
    return code;
}

static int32_t read_float(parser *p, void *target)
{
    burni_bpk_scalar *s = target;
    item it;
    int32_t code = expect(p, &it, ITEM_FLOAT, "a Float that is no floating-point number");
    s->kind = BURNI_BPK_FLOAT;
    s->value.f = it.f;
    return code;
}

static int32_t read_bool(parser *p, void *target)
{
    burni_bpk_scalar *s = target;
    item it;
    int32_t code = expect(p, &it, ITEM_BOOL, "a Bool that is neither true nor false");
    s->kind = BURNI_BPK_BOOL;
    s->value.u = it.u;
    return code;
}

static int32_t read_scalar(parser *p, const char *name)
{
    static const known_key kinds[] = {
        {"Int", read_int},
        {"UInt", read_uint},
        {"Float", read_float},
        {"Bool", read_bool},
    };
    burni_bpk_scalar s;
    uint32_t seen = 0;
    memset(&s, 0, sizeof(s));
    s.name = name;
    int32_t code = read_map(p, kinds, 4, &s, &seen, "a scalar that is no map");
    if (code == BURN_OK && (seen == 0 || (seen & (seen - 1)) != 0)) {
        code = malformed(p, "a scalar without exactly one of Int, UInt, Float, Bool");
    }
    if (code == BURN_OK) {
        code = grow(p, &p->out->scalars, p->out->n_scalars, &p->out->scalar_room, sizeof(s));
    }
    if (code == BURN_OK) {
        p->out->scalars[p->out->n_scalars++] = s;
    }
    return code;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int32_t read_tensors(parser *p, void *target)
{
    (void)target;
    return read_named(p, read_tensor, "\"tensors\" that is no map");
}

static int32_t read_metadata(parser *p, void *target)
{
    (void)target;
    return read_named(p, read_pair, "\"metadata\" that is no map");
}

static int32_t read_scalars(parser *p, void *target)
{
    (void)target;
    return read_named(p, read_scalar, "\"scalars\" that is no map");
}

int32_t burni_bpk_parse(const unsigned char *bytes, uint64_t size, burni_bpk_contents *out,
                        burn_err *err)
{
    static const known_key keys[] = {
        {"tensors", read_tensors},
        {"metadata", read_metadata},
        {"scalars", read_scalars},
    };
    parser p = {bytes, size, 0, out, err};
    uint32_t seen = 0;
    /* A text of n bytes takes at least n + 1 in CBOR, so all of them fit. */
    out->text_room = size + 1;
    out->text = burni_alloc(out->text_room);
    if (out->text == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "out of memory for %llu bytes of names",
                          (unsigned long long)size);
    }
    int32_t code = read_map(&p, keys, 3, NULL, &seen, "it is no map");
    if (code == BURN_OK && (seen & 1u) == 0) {
        code = malformed(&p, "there is no \"tensors\"");
    }
    if (code == BURN_OK && p.at != size) {
        code = malformed(&p, "bytes after its end");
    }
    return code;
}

void burni_bpk_contents_free(burni_bpk_contents *contents)
{
    burni_free(contents->tensors);
    burni_free(contents->metadata);
    burni_free(contents->scalars);
    burni_free(contents->text);
    memset(contents, 0, sizeof(*contents));
}
