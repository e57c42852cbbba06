/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_burnpack.c - the burnpack container: bytes against a golden file that a script made from the
 * format's description (tests/data/make_bpk.py), damaged and hostile files (B191), dtypes (B183),
 * and saves that end badly. The first argument is the folder of the golden file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "store/burnpack.h"

#include <cbor.h>
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *data_folder = ".";
static char folder[64];

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct bytes {
    unsigned char *p;
    uint64_t n;
} bytes;

static bytes load_file(const char *path)
{
    bytes b = {NULL, 0};
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        return b;
    }
    (void)fseek(f, 0, SEEK_END);
    b.n = (uint64_t)ftell(f);
    rewind(f);
    b.p = malloc(b.n + 1);
    assert_int_equal(fread(b.p, 1, b.n, f), b.n);
    (void)fclose(f);
    return b;
}

static void save_file(const char *path, const void *p, uint64_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    (void)fclose(f);
}

static const char *in_folder(const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static bytes golden(void)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/burnpack.bpk", data_folder);
    bytes b = load_file(path);
    assert_non_null(b.p);
    return b;
}

static int files_in_folder(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        n += e->d_name[0] != '.';
    }
    (void)closedir(d);
    return n;
}

static int setup(void **state)
{
    (void)state;
    (void)strcpy(folder, "/tmp/burnpack-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    DIR *d = opendir(folder);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (e->d_name[0] != '.') {
            (void)unlinkat(dirfd(d), e->d_name, 0);
        }
    }
    (void)closedir(d);
    return rmdir(folder);
}

/* ---- the golden contents --------------------------------------------------------------------- */

typedef struct block {
    const void *bytes;
} block;

static int32_t from_memory(void *user, uint64_t offset, uint64_t n, void *to, burn_err *err)
{
    (void)err;
    memcpy(to, (const char *)((const block *)user)->bytes + offset, n);
    return BURN_OK;
}

typedef struct golden_tensor {
    const char *name;
    uint8_t dtype;
    uint32_t rank;
    int64_t dims[2];
    block data;
    uint64_t param_id; /* 0: none */
} golden_tensor;

static const float fc_weight[] = {1, -2, 0.5f, 3.25f, 1e10f, -0.0f};
static const float fc_bias[] = {0.1f, -7};
static const double a_f64[] = {0.1};
static const uint16_t b_f16[] = {0x3C00, 0x4000, 0x3800, 0xBC00, 0x7BFF};
static const unsigned char c_bf16[] = {0x80, 0x3F, 0x00, 0x40};
static const unsigned char d_bool[] = {1, 0, 1};
static const int64_t e_i64[] = {-5};
static const int32_t f_i32[] = {-1, 70000};
static const int16_t g_i16[] = {-300};
static const int8_t h_i8[] = {-1, 2, -128};
static const uint64_t i_u64[] = {UINT64_MAX};
static const uint32_t j_u32[] = {UINT32_MAX};
static const uint16_t k_u16[] = {65535};
static unsigned char l_u8[300];

static golden_tensor golden_tensors[] = {
    {"fc.weight", BURN_F32, 2, {3, 2}, {fc_weight}, (UINT64_C(1) << 63) + 5},
    {"fc.bias", BURN_F32, 1, {2, 0}, {fc_bias}, 7},
    {"a.f64", BURN_F64, 0, {0, 0}, {a_f64}, 0},
    {"b.f16", BURN_F16, 1, {5, 0}, {b_f16}, 0},
    {"c.bf16", BURN_BF16, 2, {2, 1}, {c_bf16}, 300},
    {"d.bool", BURN_BOOL, 1, {3, 0}, {d_bool}, 0},
    {"e.i64", BURN_I64, 1, {1, 0}, {e_i64}, 0},
    {"empty", BURN_F32, 2, {0, 4}, {NULL}, 24},
    {"f.i32", BURN_I32, 1, {2, 0}, {f_i32}, 0},
    {"g.i16", BURN_I16, 1, {1, 0}, {g_i16}, 0},
    {"h.i8", BURN_I8, 1, {3, 0}, {h_i8}, 0},
    {"i.u64", BURN_U64, 1, {1, 0}, {i_u64}, 0},
    {"j.u32", BURN_U32, 1, {1, 0}, {j_u32}, 0},
    {"k.u16", BURN_U16, 1, {1, 0}, {k_u16}, 0},
    {"l.u8", BURN_U8, 1, {300, 0}, {l_u8}, 0},
};

static const burni_bpk_scalar golden_scalars[] = {
    {"step", BURNI_BPK_UINT, 0, {.u = 1000}},
    {"most", BURNI_BPK_UINT, 0, {.u = UINT64_MAX}},
    {"below", BURNI_BPK_INT, 0, {.i = -1000000}},
    {"least", BURNI_BPK_INT, 0, {.i = INT64_MIN}},
    {"on", BURNI_BPK_BOOL, 0, {.u = 1}},
    {"half", BURNI_BPK_FLOAT, 0, {.f = 1.5}},
    {"single", BURNI_BPK_FLOAT, 0, {.f = 50331652.0}},
    {"double", BURNI_BPK_FLOAT, 0, {.f = 0.1}},
    {"tiny", BURNI_BPK_FLOAT, 0, {.f = 0x1p-24}},
    {"infinite", BURNI_BPK_FLOAT, 0, {.f = -HUGE_VAL}},
};

static const burni_bpk_pair golden_pairs[] = {
    {"producer", "somebody else"},
    {"producer", "burn"},
    {"gr\xC3\xB6\xC3\x9F" "e", "ja"},
    {"format", "burnpack"},
};

static uint64_t size_of(const golden_tensor *t)
{
    uint64_t n = burn_dtype_size(t->dtype);
    for (uint32_t i = 0; i < t->rank; i++) {
        n *= (uint64_t)t->dims[i];
    }
    return n;
}

static burni_bpk_source source_of(golden_tensor *t)
{
    burni_bpk_source s;
    memset(&s, 0, sizeof(s));
    s.name = t->name;
    s.dtype = t->dtype;
    s.rank = (uint8_t)t->rank;
    s.dims[0] = t->dims[0];
    s.dims[1] = t->dims[1];
    s.nbytes = size_of(t);
    s.has_param_id = t->param_id != 0;
    s.param_id = t->param_id;
    s.produce = from_memory;
    s.user = &t->data;
    return s;
}

static int32_t write_golden(const char *path, burn_err *err)
{
    burni_bpk_writer *w = burni_bpk_writer_new();
    int32_t code = w != NULL ? BURN_OK : BURN_E_NO_MEMORY;
    for (size_t i = 0; i < COUNT(golden_tensors) && code == BURN_OK; i++) {
        burni_bpk_source s = source_of(&golden_tensors[i]);
        code = burni_bpk_add_tensor(w, &s, err);
    }
    for (size_t i = 0; i < COUNT(golden_pairs) && code == BURN_OK; i++) {
        code = burni_bpk_add_metadata(w, golden_pairs[i].key, golden_pairs[i].value, err);
    }
    for (size_t i = 0; i < COUNT(golden_scalars) && code == BURN_OK; i++) {
        code = burni_bpk_add_scalar(w, &golden_scalars[i], err);
    }
    if (code == BURN_OK) {
        code = burni_bpk_write_file(w, path, err);
    }
    burni_bpk_writer_free(w);
    return code;
}

static void check_golden(const burni_bpk_reader *r)
{
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burni_bpk_tensor_count(r), COUNT(golden_tensors));
    for (size_t i = 0; i < COUNT(golden_tensors); i++) {
        const golden_tensor *g = &golden_tensors[i];
        const burni_bpk_tensor *t = burni_bpk_tensor_find(r, g->name);
        unsigned char got[300];
        assert_non_null(t);
        assert_int_equal(t->dtype, g->dtype);
        assert_int_equal(t->rank, g->rank);
        assert_int_equal(t->has_param_id, g->param_id != 0);
        assert_int_equal(t->param_id, g->param_id);
        assert_int_equal(t->nbytes, size_of(g));
        assert_memory_equal(t->dims, g->dims, g->rank * sizeof(int64_t));
        assert_int_equal(burni_bpk_read(r, t, 0, t->nbytes, got, &err), BURN_OK);
        if (t->nbytes > 0) {
            assert_memory_equal(got, g->data.bytes, t->nbytes);
        }
    }
    assert_int_equal(burni_bpk_metadata_count(r), 3);
    assert_string_equal(burni_bpk_metadata_at(r, 2)->value, "burn");
    assert_int_equal(burni_bpk_scalar_count(r), COUNT(golden_scalars));
    for (uint32_t i = 0; i < COUNT(golden_scalars); i++) {
        const burni_bpk_scalar *s = burni_bpk_scalar_at(r, i);
        size_t k = 0;
        while (k < COUNT(golden_scalars) && strcmp(golden_scalars[k].name, s->name) != 0) {
            k++;
        }
        assert_true(k < COUNT(golden_scalars));
        assert_int_equal(s->kind, golden_scalars[k].kind);
        assert_memory_equal(&s->value, &golden_scalars[k].value, sizeof(s->value));
    }
}

static void test_bytes_of_the_golden_file(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    const char *path = in_folder("golden.bpk");
    bytes wanted = golden();
    assert_int_equal(write_golden(path, &err), BURN_OK);
    bytes got = load_file(path);
    assert_int_equal(got.n, wanted.n);
    assert_memory_equal(got.p, wanted.p, wanted.n);
    assert_int_equal(files_in_folder(), 1);
    free(got.p);
    free(wanted.p);
}

static void test_B183_every_dtype_comes_back(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burni_bpk_reader *r;
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/burnpack.bpk", data_folder);
    assert_int_equal(burni_bpk_open(path, &r, &err), BURN_OK);
    check_golden(r);
    assert_null(burni_bpk_tensor_find(r, "fc.weigh"));
    assert_string_equal(burni_bpk_tensor_at(r, 0)->name, "a.f64");
    assert_null(burni_bpk_tensor_at(r, 15));
    burni_bpk_close(r);
}

static void test_reading_a_part(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burni_bpk_reader *r;
    bytes file = golden();
    unsigned char got[4];
    assert_int_equal(burni_bpk_open_bytes(file.p, file.n, "memory", &r, &err), BURN_OK);
    const burni_bpk_tensor *t = burni_bpk_tensor_find(r, "l.u8");
    assert_int_equal(burni_bpk_read(r, t, 249, 4, got, &err), BURN_OK);
    assert_memory_equal(got, l_u8 + 249, 4);
    assert_int_equal(burni_bpk_read(r, t, 297, 4, got, &err), BURN_E_INVALID);
    assert_int_equal(burni_bpk_read(r, t, UINT64_MAX, 2, got, &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "l.u8"));
    burni_bpk_close(r);
    free(file.p);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void test_truncation_at_every_byte(void **state)
{
    (void)state;
    bytes file = golden();
    for (uint64_t n = 0; n < file.n; n++) {
        burn_err err = BURN_ERR_INIT;
        burni_bpk_reader *r;
        unsigned char *part = malloc(n + 1);
        memcpy(part, file.p, n);
        part = realloc(part, n > 0 ? n : 1);
        int32_t code = burni_bpk_open_bytes(part, n, "cut", &r, &err);
        assert_int_equal(code, BURN_E_FORMAT);
        assert_null(r);
        assert_int_equal(strncmp(err.text, "cut: ", 5), 0);
        free(part);
    }
    save_file(in_folder("cut.bpk"), file.p, file.n - 1);
    burn_err err = BURN_ERR_INIT;
    burni_bpk_reader *r;
    assert_int_equal(burni_bpk_open(in_folder("cut.bpk"), &r, &err), BURN_E_FORMAT);
    free(file.p);
}

/* Everything the reader hands out can be read. */
static void read_everything(const burni_bpk_reader *r)
{
    burn_err err = BURN_ERR_INIT;
    for (uint32_t i = 0; i < burni_bpk_tensor_count(r); i++) {
        const burni_bpk_tensor *t = burni_bpk_tensor_at(r, i);
        unsigned char *to = malloc(t->nbytes + 1);
        assert_int_equal(burni_bpk_read(r, t, 0, t->nbytes, to, &err), BURN_OK);
        free(to);
    }
}

static void test_bit_flips(void **state)
{
    (void)state;
    bytes file = golden();
    uint64_t metadata_end = 10u + file.p[6] + 256u * file.p[7];
    for (uint64_t bit = 0; bit < file.n * 8; bit++) {
        burn_err err = BURN_ERR_INIT;
        burni_bpk_reader *r;
        file.p[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        int32_t code = burni_bpk_open_bytes(file.p, file.n, "flipped", &r, &err);
        if (bit < 48) {
            assert_int_equal(code, BURN_E_FORMAT); /* magic and version */
        } else if (bit / 8 >= metadata_end) {
            assert_int_equal(code, BURN_OK); /* data and padding have no meaning here */
        }
        if (code == BURN_OK) {
            read_everything(r);
            burni_bpk_close(r);
        } else {
            assert_true(err.text[0] != '\0');
        }
        file.p[bit / 8] ^= (unsigned char)(1u << (bit % 8));
    }
    free(file.p);
}

/* ---- hostile files --------------------------------------------------------------------------- */

typedef struct maker {
    unsigned char *p;
    uint64_t n;
    uint64_t room;
} maker;

static void raw(maker *m, const void *p, uint64_t n)
{
    if (m->n + n > m->room) {
        m->room = 2 * m->room + n + 4096;
        m->p = realloc(m->p, m->room);
    }
    memcpy(m->p + m->n, p, n);
    m->n += n;
}

static void text(maker *m, const char *s)
{
    unsigned char head[9];
    raw(m, head, cbor_encode_string_start(strlen(s), head, 9));
    raw(m, s, strlen(s));
}

static void number(maker *m, uint64_t v)
{
    unsigned char head[9];
    raw(m, head, cbor_encode_uint(v, head, 9));
}

static void map(maker *m, uint64_t n)
{
    unsigned char head[9];
    raw(m, head, cbor_encode_map_start(n, head, 9));
}

static void array(maker *m, uint64_t n)
{
    unsigned char head[9];
    raw(m, head, cbor_encode_array_start(n, head, 9));
}

/* One tensor: f32 of one axis. */
static void tensor(maker *m, const char *name, uint64_t dim, uint64_t start, uint64_t end)
{
    text(m, name);
    map(m, 3);
    text(m, "dtype");
    text(m, "F32");
    text(m, "shape");
    array(m, 1);
    number(m, dim);
    text(m, "data_offsets");
    array(m, 2);
    number(m, start);
    number(m, end);
}

static maker begin(uint64_t n_tensors)
{
    maker m = {NULL, 0, 0};
    const unsigned char head[10] = {0x4E, 0x52, 0x55, 0x42, 1};
    raw(&m, head, 10);
    map(&m, 1);
    text(&m, "tensors");
    map(&m, n_tensors);
    return m;
}

/* Fills in the metadata's length and adds `data` bytes of data; opens; frees. */
static int32_t finish(maker *m, uint64_t data, burn_err *err)
{
    burni_bpk_reader *r;
    static const unsigned char zeros[4096];
    for (int i = 0; i < 4; i++) {
        m->p[6 + i] = (unsigned char)((m->n - 10) >> (8 * i));
    }
    raw(m, zeros, (256 - m->n % 256) % 256 + data);
    int32_t code = burni_bpk_open_bytes(m->p, m->n, "made", &r, err);
    if (code == BURN_OK) {
        read_everything(r);
        burni_bpk_close(r);
    }
    free(m->p);
    return code;
}

static void expect_refusal(maker *m, uint64_t data, int32_t code, const char *part)
{
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(finish(m, data, &err), code);
    if (strstr(err.text, part) == NULL) {
        print_error("no \"%s\" in: %s\n", part, err.text);
        fail();
    }
}

static void test_B191_places_of_tensors(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    maker m = begin(2);
    tensor(&m, "b", 2, 0, 8);
    tensor(&m, "a", 2, 256, 264);
    assert_int_equal(finish(&m, 264, &err), BURN_OK);
    m = begin(2);
    tensor(&m, "a", 100, 0, 400);
    tensor(&m, "b", 2, 256, 264);
    expect_refusal(&m, 512, BURN_E_FORMAT, "tensors 'a' and 'b' overlap");
    m = begin(1);
    tensor(&m, "a", 2, 4, 12);
    expect_refusal(&m, 256, BURN_E_FORMAT, "tensor 'a': data starts at 4");
    m = begin(1);
    tensor(&m, "a", 3, 0, 8);
    expect_refusal(&m, 256, BURN_E_FORMAT, "need 12 bytes, its data has 8");
    m = begin(1);
    tensor(&m, "a", 2, 256, 8);
    expect_refusal(&m, 512, BURN_E_FORMAT, "before its start");
    m = begin(1);
    tensor(&m, "a", 2, UINT64_MAX - 255, UINT64_MAX);
    expect_refusal(&m, 512, BURN_E_FORMAT, "tensor 'a'");
    m = begin(1);
    tensor(&m, "a", 64, UINT64_C(1) << 40, (UINT64_C(1) << 40) + 256);
    expect_refusal(&m, 512, BURN_E_FORMAT, "truncated or damaged");
    m = begin(1);
    tensor(&m, "a", UINT64_C(1) << 32, 0, UINT64_C(1) << 34);
    expect_refusal(&m, 512, BURN_E_LIMIT, "more than 10 GiB");
    m = begin(1);
    tensor(&m, "a", UINT64_C(0x4000000000000001), 0, 4);
    expect_refusal(&m, 512, BURN_E_FORMAT, "too many to count");
    m = begin(2);
    tensor(&m, "a", 2, 0, 8);
    tensor(&m, "a", 2, 256, 264);
    expect_refusal(&m, 512, BURN_E_FORMAT, "tensor 'a' is there twice");
}

/* The format ends with its last tensor. */
static void test_B191_bytes_behind_the_end(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    maker m = begin(2);
    tensor(&m, "b", 2, 0, 8);
    tensor(&m, "a", 2, 256, 264);
    expect_refusal(&m, 265, BURN_E_FORMAT, "1 bytes follow the end of its tensors at");
    m = begin(2);
    tensor(&m, "a", 2, 0, 8);
    tensor(&m, "b", 0, 256, 256); /* empty, behind all others */
    assert_int_equal(finish(&m, 256, &err), BURN_OK);
    m = begin(0);
    assert_int_equal(finish(&m, 0, &err), BURN_OK);
    m = begin(0);
    expect_refusal(&m, 7, BURN_E_FORMAT, "7 bytes follow the end of its tensors at");
    bytes file = golden();
    unsigned char *longer = calloc(1, file.n + 4096);
    memcpy(longer, file.p, file.n);
    burni_bpk_reader *r;
    assert_int_equal(burni_bpk_open_bytes(longer, file.n + 4096, "longer", &r, &err),
                     BURN_E_FORMAT);
    assert_non_null(strstr(err.text, "longer: 4096 bytes follow"));
    free(longer);
    free(file.p);
}

/* Peak of this process's memory in KiB. */
static long peak_memory(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* A file of 9 GiB, nearly all of it a hole: what is read is one tensor, in front and behind. */
static void test_B191_one_tensor_of_a_large_file(void **state)
{
    (void)state;
    const uint64_t large = UINT64_C(9) << 30;
    maker m = begin(3);
    tensor(&m, "a", 2, 0, 8);
    tensor(&m, "large", large / 4, 256, 256 + large);
    tensor(&m, "z", 2, 256 + large, 264 + large);
    for (int i = 0; i < 4; i++) {
        m.p[6 + i] = (unsigned char)((m.n - 10) >> (8 * i));
    }
    char path[] = "/tmp/burn-large-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    const float last[2] = {3, 4};
    const off_t data = (off_t)((m.n + 255) / 256 * 256);
    int written = write(file, m.p, m.n) == (ssize_t)m.n &&
                  pwrite(file, last, sizeof(last), data + 256 + (off_t)large) == sizeof(last);
    (void)close(file);
    free(m.p);
    burn_err err = BURN_ERR_INIT;
    burni_bpk_reader *r = NULL;
    float got[2][2] = {{7, 7}, {7, 7}};
    const long before = peak_memory();
    int32_t code = written ? burni_bpk_open(path, &r, &err) : BURN_E_IO;
    if (code == BURN_OK) {
        code = burni_bpk_read(r, burni_bpk_tensor_find(r, "a"), 0, 8, got[0], &err);
        int32_t second = burni_bpk_read(r, burni_bpk_tensor_find(r, "z"), 0, 8, got[1], &err);
        code = code != BURN_OK ? code : second;
        burni_bpk_close(r);
    }
    (void)unlink(path);
    if (code != BURN_OK) {
        fail_msg("written %d, code %d: %s", written, (int)code, err.text);
    }
    assert_true(peak_memory() - before < 64 * 1024);
    assert_true(got[0][0] == 0 && got[0][1] == 0);
    assert_memory_equal(got[1], last, sizeof(last));
}

static void test_B191_header(void **state)
{
    (void)state;
    bytes file = golden();
    const struct {
        uint32_t at;
        unsigned char value;
        const char *part;
    } cases[] = {
        {0, 0x4F, "not a burnpack file"},
        {4, 2, "version 2"},
        {8, 0x7F, "metadata of"},
        {7, 0xFF, "metadata of"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        burn_err err = BURN_ERR_INIT;
        burni_bpk_reader *r;
        unsigned char old = file.p[cases[i].at];
        file.p[cases[i].at] = cases[i].value;
        assert_int_equal(burni_bpk_open_bytes(file.p, file.n, "h", &r, &err), BURN_E_FORMAT);
        assert_non_null(strstr(err.text, cases[i].part));
        file.p[cases[i].at] = old;
    }
    free(file.p);
}

static void test_B191_counts_and_names(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    maker m = begin(1000000);
    for (int i = 0; i < 1000000; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "t%d", i);
        tensor(&m, name, 0, 0, 0);
    }
    expect_refusal(&m, 0, BURN_E_LIMIT, "more than 100000");
    m = begin(UINT64_C(1) << 60);
    tensor(&m, "a", 2, 0, 8);
    expect_refusal(&m, 256, BURN_E_FORMAT, "truncated or damaged");
    char *long_name = malloc((1u << 20) + 1);
    memset(long_name, 'x', 1u << 20);
    long_name[1u << 20] = '\0';
    m = begin(1);
    tensor(&m, long_name, 2, 0, 8);
    assert_int_equal(finish(&m, 8, &err), BURN_OK);
    m = begin(1);
    tensor(&m, long_name, 3, 0, 8);
    expect_refusal(&m, 256, BURN_E_FORMAT, "need 12 bytes");
    free(long_name);
    m = begin(1);
    tensor(&m, "\xC0\x80", 2, 0, 8);
    expect_refusal(&m, 256, BURN_E_FORMAT, "not UTF-8");
}

static void test_B191_nesting_and_unknown_keys(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    for (uint32_t depth = 10; depth <= 5000; depth *= 10) {
        maker m = {NULL, 0, 0};
        const unsigned char head[10] = {0x4E, 0x52, 0x55, 0x42, 1};
        raw(&m, head, 10);
        map(&m, 2);
        text(&m, "future");
        for (uint32_t i = 0; i < depth; i++) {
            array(&m, 1);
        }
        number(&m, 1);
        text(&m, "tensors");
        map(&m, 0);
        if (depth < 120) {
            assert_int_equal(finish(&m, 0, &err), BURN_OK);
        } else {
            expect_refusal(&m, 0, BURN_E_FORMAT, "128 deep");
        }
    }
    const unsigned char open_map[] = {0xBF, 0xFF, 0x00};
    maker m = begin(0);
    raw(&m, open_map + 2, 1);
    expect_refusal(&m, 0, BURN_E_FORMAT, "bytes after its end");
    maker open = {NULL, 0, 0};
    const unsigned char head[10] = {0x4E, 0x52, 0x55, 0x42, 1};
    raw(&open, head, 10);
    map(&open, 1);
    text(&open, "tensors");
    raw(&open, open_map, 2);
    assert_int_equal(finish(&open, 0, &err), BURN_OK);
}

/* ---- saving ---------------------------------------------------------------------------------- */

typedef struct stream_check {
    uint64_t next;
    uint64_t fail_at; /* 0: never */
    int kill_at_failure;
    uint32_t calls;
} stream_check;

static int32_t produce_checked(void *user, uint64_t offset, uint64_t n, void *to, burn_err *err)
{
    stream_check *c = user;
    c->calls++;
    assert_int_equal(offset, c->next);
    assert_true(n > 0 && n <= BURNI_BPK_CHUNK);
    c->next += n;
    if (c->fail_at != 0 && c->next > c->fail_at) {
        if (c->kill_at_failure) {
            (void)raise(SIGKILL);
        }
        err->code = BURN_E_DEVICE_LOST;
        (void)strcpy(err->text, "the device went away");
        return BURN_E_DEVICE_LOST;
    }
    for (uint64_t i = 0; i < n; i++) {
        ((unsigned char *)to)[i] = (unsigned char)((offset + i) * 7 % 253);
    }
    return BURN_OK;
}

static int32_t save_large(const char *path, uint64_t n, stream_check *check, burn_err *err)
{
    burni_bpk_writer *w = burni_bpk_writer_new();
    burni_bpk_source s;
    memset(&s, 0, sizeof(s));
    s.name = "large";
    s.dtype = BURN_U8;
    s.rank = 1;
    s.dims[0] = (int64_t)n;
    s.nbytes = n;
    s.produce = produce_checked;
    s.user = check;
    assert_int_equal(burni_bpk_add_tensor(w, &s, err), BURN_OK);
    int32_t code = burni_bpk_write_file(w, path, err);
    burni_bpk_writer_free(w);
    return code;
}

static void expect_old_file(int files)
{
    bytes wanted = golden();
    bytes got = load_file(in_folder("model.bpk"));
    assert_int_equal(got.n, wanted.n);
    assert_memory_equal(got.p, wanted.p, wanted.n);
    assert_int_equal(files_in_folder(), files);
    free(got.p);
    free(wanted.p);
}

static void test_a_large_tensor_is_streamed(void **state)
{
    (void)state;
    const uint64_t n = (UINT64_C(20) << 20) + 13;
    burn_err err = BURN_ERR_INIT;
    stream_check check = {0, 0, 0, 0};
    burni_bpk_reader *r;
    unsigned char got[1000];
    assert_int_equal(save_large(in_folder("model.bpk"), n, &check, &err), BURN_OK);
    assert_int_equal(check.next, n);
    assert_int_equal(check.calls, 3);
    assert_int_equal(burni_bpk_open(in_folder("model.bpk"), &r, &err), BURN_OK);
    const burni_bpk_tensor *t = burni_bpk_tensor_find(r, "large");
    assert_int_equal(burni_bpk_read(r, t, n - 1000, 1000, got, &err), BURN_OK);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(got[i], (unsigned char)((n - 1000 + i) * 7 % 253));
    }
    burni_bpk_close(r);
}

static void test_a_failing_producer_changes_nothing(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    stream_check check = {0, UINT64_C(9) << 20, 0, 0};
    assert_int_equal(write_golden(in_folder("model.bpk"), &err), BURN_OK);
    assert_int_equal(save_large(in_folder("model.bpk"), UINT64_C(20) << 20, &check, &err),
                     BURN_E_DEVICE_LOST);
    assert_string_equal(err.text, "tensor 'large': the device went away");
    expect_old_file(1);
}

static void test_kill_leaves_the_old_file(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(write_golden(in_folder("model.bpk"), &err), BURN_OK);
    pid_t child = fork();
    if (child == 0) {
        stream_check check = {0, UINT64_C(9) << 20, 1, 0};
        (void)save_large(in_folder("model.bpk"), UINT64_C(20) << 20, &check, &err);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    expect_old_file(2); /* the scratch file stays behind */
}

static void test_a_file_size_limit_is_an_error(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(write_golden(in_folder("model.bpk"), &err), BURN_OK);
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {65536, 65536};
        stream_check check = {0, 0, 0, 0};
        (void)signal(SIGXFSZ, SIG_DFL);
        (void)setrlimit(RLIMIT_FSIZE, &limit);
        int32_t code = save_large(in_folder("model.bpk"), UINT64_C(1) << 20, &check, &err);
        _exit(code == BURN_E_IO && strstr(err.text, "File too large") != NULL ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_old_file(1);
}

static void test_refused_saves(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burni_bpk_writer *w = burni_bpk_writer_new();
    burni_bpk_source s = source_of(&golden_tensors[1]);
    uint64_t size;
    s.nbytes++;
    assert_int_equal(burni_bpk_add_tensor(w, &s, &err), BURN_E_SHAPE);
    s.nbytes--;
    s.dtype = BURN_F8E5M2;
    assert_int_equal(burni_bpk_add_tensor(w, &s, &err), BURN_E_DTYPE);
    s.dtype = BURN_F32;
    s.name = "\xFF";
    assert_int_equal(burni_bpk_add_tensor(w, &s, &err), BURN_E_INVALID);
    s.name = "twice";
    assert_int_equal(burni_bpk_add_tensor(w, &s, &err), BURN_OK);
    assert_int_equal(burni_bpk_size(w, &size, &err), BURN_OK);
    assert_int_equal(size, 256 + 8);
    assert_int_equal(burni_bpk_write_file(w, in_folder("no/such/folder.bpk"), &err), BURN_E_IO);
    assert_int_equal(burni_bpk_add_tensor(w, &s, &err), BURN_OK);
    assert_int_equal(burni_bpk_write_file(w, in_folder("twice.bpk"), &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "'twice' is there twice"));
    assert_int_equal(files_in_folder(), 0);
    burni_bpk_writer_free(w);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    char path[128];
    (void)strcpy(path, in_folder("model.bpk"));
    int32_t code = BURN_E_NO_MEMORY;
    for (int64_t n = 1; code != BURN_OK; n++) {
        burn_err err = BURN_ERR_INIT;
        burni_alloc_fail_after(n);
        code = write_golden(path, &err);
        burni_alloc_fail_after(0);
        assert_true(code == BURN_OK || code == BURN_E_NO_MEMORY || code == BURN_E_IO);
        assert_true(n < 1000);
    }
    code = BURN_E_NO_MEMORY;
    for (int64_t n = 1; code != BURN_OK; n++) {
        burn_err err = BURN_ERR_INIT;
        burni_bpk_reader *r;
        burni_alloc_fail_after(n);
        code = burni_bpk_open(path, &r, &err);
        burni_alloc_fail_after(0);
        assert_true(code == BURN_OK || code == BURN_E_NO_MEMORY);
        burni_bpk_close(r);
        assert_true(n < 1000);
    }
    expect_old_file(1);
}

static void test_what_is_no_file(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burni_bpk_reader *r;
    assert_int_equal(burni_bpk_open(in_folder("absent.bpk"), &r, &err), BURN_E_NOT_FOUND);
    assert_int_equal(burni_bpk_open(folder, &r, &err), BURN_E_INVALID);
    assert_null(r);
    burni_bpk_close(NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bytes_of_the_golden_file, setup, teardown),
        cmocka_unit_test(test_B183_every_dtype_comes_back),
        cmocka_unit_test(test_reading_a_part),
        cmocka_unit_test_setup_teardown(test_truncation_at_every_byte, setup, teardown),
        cmocka_unit_test(test_bit_flips),
        cmocka_unit_test(test_B191_places_of_tensors),
        cmocka_unit_test(test_B191_bytes_behind_the_end),
        cmocka_unit_test(test_B191_header),
        cmocka_unit_test(test_B191_one_tensor_of_a_large_file),
        cmocka_unit_test(test_B191_counts_and_names),
        cmocka_unit_test(test_B191_nesting_and_unknown_keys),
        cmocka_unit_test_setup_teardown(test_a_large_tensor_is_streamed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_failing_producer_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kill_leaves_the_old_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_file_size_limit_is_an_error, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused_saves, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failing_allocations, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_file, setup, teardown),
    };
    data_folder = argc > 1 ? argv[1] : data_folder;
    for (size_t i = 0; i < sizeof(l_u8); i++) {
        l_u8[i] = (unsigned char)(i % 251);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
