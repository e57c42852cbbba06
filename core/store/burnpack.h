/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * burnpack.h - the burnpack container (.bpk): named tensors, text metadata and scalars in one file.
 *
 * Owns the bytes only: nothing here knows a device or a tensor handle. The file is a 10-byte
 * header, a CBOR map and the tensors' bytes, each at a multiple of 256; it ends with the last of
 * them. A reader treats its file as hostile: every size is checked against the file before it is
 * used, and memory grows with what the file really holds. A writer never leaves a partial file at
 * its path. Paths are taken as given; adding ".bpk" is the caller's business. Objects belong to one
 * thread at a time, except that burni_bpk_read on an open reader is free for all.
 */
#ifndef BURN_CORE_STORE_BURNPACK_H
#define BURN_CORE_STORE_BURNPACK_H

#include <burn/base.h>
#include <burn/dtype.h>
#include <burn/status.h>

#define BURNI_BPK_MAGIC 0x4255524Eu
#define BURNI_BPK_VERSION 1
#define BURNI_BPK_HEADER 10u
#define BURNI_BPK_ALIGN 256u
#define BURNI_BPK_MAX_METADATA (UINT64_C(100) << 20)
#define BURNI_BPK_MAX_TENSORS 100000u
#define BURNI_BPK_MAX_TENSOR (UINT64_C(10) << 30)
#define BURNI_BPK_MAX_FILE (UINT64_C(100) << 30)
#define BURNI_BPK_MAX_NESTING 128u
#define BURNI_BPK_CHUNK ((size_t)8 << 20)

/*
 * How a tensor's elements lie in the file. BOOL_U32: four bytes each, dtype BURN_BOOL. FLEX32:
 * f32 by another name. QUANTIZED: packed values and scales, dtype BURN_DTYPE_NONE.
 */
enum {
    BURNI_BPK_PLAIN = 0,
    BURNI_BPK_BOOL_U32 = 1,
    BURNI_BPK_FLEX32 = 2,
    BURNI_BPK_QUANTIZED = 3
};

typedef struct burni_bpk_tensor {
    const char *name; /* UTF-8 without NUL */
    uint8_t dtype;
    uint8_t encoding;
    uint8_t rank;
    uint8_t has_param_id;
    uint32_t element_bytes; /* 0 when quantized */
    int64_t dims[BURN_MAX_RANK];
    uint64_t param_id;
    uint64_t nbytes;
    uint64_t position; /* of its bytes, from the start of the file */
} burni_bpk_tensor;

enum { BURNI_BPK_INT = 0, BURNI_BPK_UINT = 1, BURNI_BPK_FLOAT = 2, BURNI_BPK_BOOL = 3 };

typedef struct burni_bpk_scalar {
    const char *name;
    uint32_t kind;
    uint32_t zero;
    union {
        int64_t i;
        uint64_t u; /* also a bool: 0 or 1 */
        double f;
    } value;
} burni_bpk_scalar;

typedef struct burni_bpk_pair {
    const char *key;
    const char *value;
} burni_bpk_pair;

/* ---- reading ---- */

typedef struct burni_bpk_reader burni_bpk_reader;

/* Opens and checks a regular file; reads its metadata only. */
int32_t burni_bpk_open(const char *path, burni_bpk_reader **out, burn_err *err);
/* The same over bytes that stay where they are; `name` stands in error texts. */
int32_t burni_bpk_open_bytes(const void *bytes, uint64_t size, const char *name,
                             burni_bpk_reader **out, burn_err *err);
void burni_bpk_close(burni_bpk_reader *reader);

/* Sorted by name. They live as long as the reader. */
uint32_t burni_bpk_tensor_count(const burni_bpk_reader *reader);
const burni_bpk_tensor *burni_bpk_tensor_at(const burni_bpk_reader *reader, uint32_t i);
const burni_bpk_tensor *burni_bpk_tensor_find(const burni_bpk_reader *reader, const char *name);
uint32_t burni_bpk_metadata_count(const burni_bpk_reader *reader);
const burni_bpk_pair *burni_bpk_metadata_at(const burni_bpk_reader *reader, uint32_t i);
uint32_t burni_bpk_scalar_count(const burni_bpk_reader *reader);
const burni_bpk_scalar *burni_bpk_scalar_at(const burni_bpk_reader *reader, uint32_t i);

/* Copies n of the tensor's bytes from `offset` on. [any] */
int32_t burni_bpk_read(const burni_bpk_reader *reader, const burni_bpk_tensor *tensor,
                       uint64_t offset, uint64_t n, void *to, burn_err *err);

/* ---- writing ---- */

typedef struct burni_bpk_writer burni_bpk_writer;

/*
 * Fills `to` with `bytes` bytes of a tensor from `offset` on. Called in order, without gaps, for at
 * most BURNI_BPK_CHUNK bytes each. An error ends the save.
 */
typedef int32_t (*burni_bpk_produce_fn)(void *user, uint64_t offset, uint64_t bytes, void *to,
                                        burn_err *err);

typedef struct burni_bpk_source {
    const char *name;
    uint8_t dtype; /* bool, an integer or a float of BURN_FOREACH_DTYPE */
    uint8_t rank;
    uint8_t has_param_id;
    uint8_t zero[5];
    int64_t dims[BURN_MAX_RANK];
    uint64_t nbytes;
    uint64_t param_id;
    burni_bpk_produce_fn produce;
    void *user;
} burni_bpk_source;

/* NULL when out of memory. */
burni_bpk_writer *burni_bpk_writer_new(void);
void burni_bpk_writer_free(burni_bpk_writer *writer);

/* Tensors lie in the file in the order of these calls. Names are copied. */
int32_t burni_bpk_add_tensor(burni_bpk_writer *writer, const burni_bpk_source *source,
                             burn_err *err);
/* A key or name given twice keeps its last value. */
int32_t burni_bpk_add_metadata(burni_bpk_writer *writer, const char *key, const char *value,
                               burn_err *err);
int32_t burni_bpk_add_scalar(burni_bpk_writer *writer, const burni_bpk_scalar *scalar,
                             burn_err *err);

/* Size of the file. */
int32_t burni_bpk_size(burni_bpk_writer *writer, uint64_t *size, burn_err *err);

/*
 * The file that a save to `path` replaces, to be freed: `path`, or what its symbolic link names.
 * What exists and is no regular file is an error.
 */
int32_t burni_bpk_target(const char *path, char **out, burn_err *err);

/*
 * Writes a scratch file beside `path` (`<name>.<pid>-<counter>.tmp`), syncs it, renames it over
 * `path` and syncs the folder. On failure the scratch file is removed and `path` is as it was. A
 * full disk or a file size limit is an ordinary error.
 */
int32_t burni_bpk_write_file(burni_bpk_writer *writer, const char *path, burn_err *err);

/* ---- shared by the two ---- */

/* Is this UTF-8 (no surrogates, no overlong forms) without NUL? */
int burni_bpk_is_text(const unsigned char *bytes, uint64_t n);
/* numel * element_bytes; 0 when that overflows or a dim is negative (then *ok is 0). */
uint64_t burni_bpk_bytes_of(uint32_t rank, const int64_t *dims, uint32_t element_bytes, int *ok);
/* The text for a dtype in the file ("F32"); NULL for a bool and what has no text. */
const char *burni_bpk_dtype_text(uint8_t dtype);
uint8_t burni_bpk_dtype_from_text(const char *text, uint64_t n);
/* The end of a path, short enough to stand in an error text. */
const char *burni_bpk_short_path(const char *path);

#endif /* BURN_CORE_STORE_BURNPACK_H */
