/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_idx.c - the IDX reader on good and on hostile files, plain and gzip'ed. Files are made in
 * memory here, byte by byte, so that what is expected does not come from the reader itself.
 */
#define _POSIX_C_SOURCE 200809L

#include "train_test.h"

#include <burn/data.h>
#include <burn/dtype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* [2,3] u8: 1 .. 6 */
static const unsigned char good[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};

static void expect_error(const void *bytes, size_t size, uint64_t max_bytes, int32_t code,
                         const char *first, const char *second)
{
    burn_err err = BURN_ERR_INIT;
    burn_idx *idx = (burn_idx *)(uintptr_t)1;
    assert_int_equal(burn_idx_parse(bytes, size, "sample", max_bytes, &idx, &err), code);
    assert_null(idx);
    assert_int_equal(err.code, code);
    assert_non_null(strstr(err.text, "sample"));
    if (strstr(err.text, first) == NULL || strstr(err.text, second) == NULL) {
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", err.text, first, second);
    }
}

/* gzip'ed copy; the caller frees it. */
static unsigned char *pack(const void *bytes, size_t size, size_t *out_size)
{
    z_stream z;
    memset(&z, 0, sizeof(z));
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = size + 1024;
    unsigned char *packed = malloc(room);
    assert_non_null(packed);
    unsigned char *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    z.next_in = copy;
    z.avail_in = (uInt)size;
    z.next_out = packed;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *out_size = room - z.avail_out;
    assert_int_equal(deflateEnd(&z), Z_OK);
    free(copy);
    return packed;
}

static void expect_good(const void *bytes, size_t size)
{
    burn_err err = BURN_ERR_INIT;
    burn_idx *idx = NULL;
    if (burn_idx_parse(bytes, size, "sample", 0, &idx, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(burn_idx_rank(idx), 2);
    assert_int_equal(burn_idx_dim(idx, 0), 2);
    assert_int_equal(burn_idx_dim(idx, 1), 3);
    assert_int_equal(burn_idx_dim(idx, 2), 0);
    assert_int_equal(burn_idx_dtype(idx), BURN_U8);
    assert_memory_equal(burn_idx_data(idx), good + 12, 6);
    burn_idx_close(idx);
}

static void plain__reads_dims_and_elements(void **state)
{
    (void)state;
    expect_good(good, sizeof(good));
}

static void gzip__reads_the_same(void **state)
{
    (void)state;
    size_t size;
    unsigned char *packed = pack(good, sizeof(good), &size);
    expect_good(packed, size);
    free(packed);
}

static void gzip__joins_members(void **state)
{
    (void)state;
    size_t first;
    size_t second;
    unsigned char *a = pack(good, 7, &first);
    unsigned char *b = pack(good + 7, sizeof(good) - 7, &second);
    unsigned char *both = malloc(first + second);
    assert_non_null(both);
    memcpy(both, a, first);
    memcpy(both + first, b, second);
    expect_good(both, first + second);
    free(a);
    free(b);
    free(both);
}

static void types__come_in_this_machines_byte_order(void **state)
{
    (void)state;
    const unsigned char i16[] = {0, 0, 0x0b, 1, 0, 0, 0, 2, 0x12, 0x34, 0xff, 0xfe};
    const unsigned char i32[] = {0, 0, 0x0c, 1, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0x85};
    const unsigned char f32[] = {0, 0, 0x0d, 1, 0, 0, 0, 1, 0xc0, 0x20, 0, 0};
    const unsigned char f64[] = {0, 0, 0x0e, 1, 0, 0, 0, 1, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0};
    burn_idx *idx;
    assert_int_equal(burn_idx_parse(i16, sizeof(i16), "i16", 0, &idx, NULL), BURN_OK);
    assert_int_equal(burn_idx_dtype(idx), BURN_I16);
    assert_int_equal(((const int16_t *)burn_idx_data(idx))[0], 0x1234);
    assert_int_equal(((const int16_t *)burn_idx_data(idx))[1], -2);
    burn_idx_close(idx);
    assert_int_equal(burn_idx_parse(i32, sizeof(i32), "i32", 0, &idx, NULL), BURN_OK);
    assert_int_equal(*(const int32_t *)burn_idx_data(idx), -123);
    burn_idx_close(idx);
    assert_int_equal(burn_idx_parse(f32, sizeof(f32), "f32", 0, &idx, NULL), BURN_OK);
    assert_true(*(const float *)burn_idx_data(idx) == -2.5F);
    burn_idx_close(idx);
    assert_int_equal(burn_idx_parse(f64, sizeof(f64), "f64", 0, &idx, NULL), BURN_OK);
    assert_true(*(const double *)burn_idx_data(idx) == 1.5);
    burn_idx_close(idx);
}

static void zero_dim__is_no_elements(void **state)
{
    (void)state;
    const unsigned char bytes[] = {0, 0, 8, 2, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
    burn_idx *idx;
    assert_int_equal(burn_idx_parse(bytes, sizeof(bytes), "zero", 0, &idx, NULL), BURN_OK);
    assert_int_equal(burn_idx_dim(idx, 0), 0);
    assert_non_null(burn_idx_data(idx));
    burn_idx_close(idx);
}

static void magic__is_checked(void **state)
{
    (void)state;
    unsigned char bytes[sizeof(good)];
    memcpy(bytes, good, sizeof(good));
    bytes[0] = 1;
    expect_error(bytes, sizeof(bytes), 0, BURN_E_FORMAT, "offset 0", "01 00 08 02");
    memcpy(bytes, good, sizeof(good));
    bytes[2] = 0x0a;
    expect_error(bytes, sizeof(bytes), 0, BURN_E_FORMAT, "offset 0", "00 00 0a 02");
    memcpy(bytes, good, sizeof(good));
    bytes[3] = 0;
    expect_error(bytes, sizeof(bytes), 0, BURN_E_FORMAT, "rank 0", "1 to 8");
    bytes[3] = 9;
    expect_error(bytes, sizeof(bytes), 0, BURN_E_FORMAT, "rank 9", "1 to 8");
}

static void truncation__is_found_at_every_length(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(good); n++) {
        expect_error(good, n, 0, BURN_E_FORMAT, "offset", n < 12 ? "header" : "[2,3]");
    }
    size_t size;
    unsigned char *packed = pack(good, sizeof(good), &size);
    for (size_t n = 2; n < size; n++) {
        expect_error(packed, n, 0, BURN_E_FORMAT, "offset", "ends early");
    }
    free(packed);
}

static void trailing_bytes__are_an_error(void **state)
{
    (void)state;
    unsigned char longer[sizeof(good) + 1] = {0};
    memcpy(longer, good, sizeof(good));
    expect_error(longer, sizeof(longer), 0, BURN_E_FORMAT, "follow at offset 18", "[2,3]");
    size_t size;
    unsigned char *packed = pack(longer, sizeof(longer), &size);
    expect_error(packed, size, 0, BURN_E_FORMAT, "follow at offset 18", "[2,3]");
    free(packed);
    packed = pack(good, sizeof(good), &size);
    packed[size] = 0;
    expect_error(packed, size + 1, 0, BURN_E_FORMAT, "no gzip data", "offset");
    free(packed);
}

static void gzip__checksum_is_checked(void **state)
{
    (void)state;
    size_t size;
    unsigned char *packed = pack(good, sizeof(good), &size);
    packed[size - 8] ^= 1; /* of the CRC */
    expect_error(packed, size, 0, BURN_E_FORMAT, "damaged", "data check");
    free(packed);
}

static void dims__overflow_and_caps(void **state)
{
    (void)state;
    const unsigned char huge[] = {0,    0,    8,    3,    0xff, 0xff, 0xff, 0xff,
                                  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    expect_error(huge, sizeof(huge), 0, BURN_E_LIMIT, "4294967295", "limit");
    expect_error(huge, sizeof(huge), UINT64_MAX, BURN_E_LIMIT, "4294967295", "limit");
    expect_error(good, sizeof(good), 5, BURN_E_LIMIT, "[2,3]", "limit of 5 bytes");
    burn_idx *idx;
    assert_int_equal(burn_idx_parse(good, sizeof(good), "six", 6, &idx, NULL), BURN_OK);
    burn_idx_close(idx);
}

/* A header that promises 4 GiB costs no more memory than the bytes that are there justify. */
static void lying_header__costs_little(void **state)
{
    (void)state;
    const unsigned char lie[] = {0, 0, 8, 1, 0xff, 0xff, 0xff, 0xff, 1, 2, 3};
    fail_allocation(0);
    expect_error(lie, sizeof(lie), 0, BURN_E_FORMAT, "promise 4294967295", "found 3");
    assert_true(largest_allocation() <= 65536);
    const size_t real = 100000;
    unsigned char *longer = calloc(1, real);
    assert_non_null(longer);
    memcpy(longer, lie, sizeof(lie));
    fail_allocation(0);
    expect_error(longer, real, 0, BURN_E_FORMAT, "promise 4294967295", "found 99992");
    assert_true(largest_allocation() <= 2 * real);
    free(longer);
}

static void open__names_what_is_wrong(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_idx *idx;
    assert_int_equal(burn_idx_open("no/such/file", 0, &idx, &err), BURN_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "no/such/file"));
    assert_int_equal(burn_idx_open("/", 0, &idx, &err), BURN_E_IO);
    assert_int_equal(burn_idx_open("", 0, &idx, &err), BURN_E_INVALID);
    assert_int_equal(burn_idx_open(NULL, 0, &idx, &err), BURN_E_INVALID);
    assert_int_equal(burn_idx_open("x", 0, NULL, &err), BURN_E_INVALID);
    assert_int_equal(burn_idx_parse(NULL, 1, "x", 0, &idx, &err), BURN_E_INVALID);
    burn_idx_close(NULL);
}

static void open__reads_a_file(void **state)
{
    (void)state;
    char path[] = "idx_test_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, good, sizeof(good)), sizeof(good));
    assert_int_equal(close(fd), 0);
    burn_idx *idx;
    assert_int_equal(burn_idx_open(path, 0, &idx, NULL), BURN_OK);
    assert_memory_equal(burn_idx_data(idx), good + 12, 6);
    burn_idx_close(idx);
    assert_int_equal(unlink(path), 0);
}

/* More than one block, so that the memory grows and the stream refills. */
static void large__grows_and_stays_whole(void **state)
{
    (void)state;
    const size_t n = 300000;
    unsigned char *bytes = malloc(8 + n);
    assert_non_null(bytes);
    const unsigned char head[] = {0, 0, 8, 1, 0, 0x04, 0x93, 0xe0};
    memcpy(bytes, head, sizeof(head));
    for (size_t i = 0; i < n; i++) {
        bytes[8 + i] = (unsigned char)((i * 2654435761u) >> 7);
    }
    size_t size;
    unsigned char *packed = pack(bytes, 8 + n, &size);
    for (int gzip = 0; gzip < 2; gzip++) {
        burn_idx *idx;
        burn_err err = BURN_ERR_INIT;
        int32_t code = gzip ? burn_idx_parse(packed, size, "large", 0, &idx, &err)
                            : burn_idx_parse(bytes, 8 + n, "large", 0, &idx, &err);
        assert_int_equal(code, BURN_OK);
        assert_memory_equal(burn_idx_data(idx), bytes + 8, n);
        burn_idx_close(idx);
    }
    free(packed);
    free(bytes);
}

static void no_memory__is_an_error_wherever_it_happens(void **state)
{
    (void)state;
    size_t size;
    unsigned char *packed = pack(good, sizeof(good), &size);
    int failures = 0;
    for (int64_t n = 1; n < 64; n++) {
        burn_idx *idx = NULL;
        fail_allocation(n);
        int32_t code = burn_idx_parse(packed, size, "memory", 0, &idx, NULL);
        int happened = allocation_failed();
        fail_allocation(0);
        assert_int_equal(code, happened ? BURN_E_NO_MEMORY : BURN_OK);
        failures += happened;
        burn_idx_close(idx);
    }
    assert_true(failures >= 3);
    free(packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain__reads_dims_and_elements),
        cmocka_unit_test(gzip__reads_the_same),
        cmocka_unit_test(gzip__joins_members),
        cmocka_unit_test(types__come_in_this_machines_byte_order),
        cmocka_unit_test(zero_dim__is_no_elements),
        cmocka_unit_test(magic__is_checked),
        cmocka_unit_test(truncation__is_found_at_every_length),
        cmocka_unit_test(trailing_bytes__are_an_error),
        cmocka_unit_test(gzip__checksum_is_checked),
        cmocka_unit_test(dims__overflow_and_caps),
        cmocka_unit_test(lying_header__costs_little),
        cmocka_unit_test(open__names_what_is_wrong),
        cmocka_unit_test(open__reads_a_file),
        cmocka_unit_test(large__grows_and_stays_whole),
        cmocka_unit_test(no_memory__is_an_error_wherever_it_happens),
    };
    return cmocka_run_group_tests_name("idx", tests, NULL, NULL);
}
