/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * data.h - datasets, the reader for IDX files (MNIST) and the batch loader, all in libburn-train.
 *
 * Everything here is plain host memory: no tensors, no device. A dataset is a table of functions
 * that writes one item into memory of the caller; the loader calls it from worker threads, puts
 * items side by side into batches, and hands those out in an order that depends on seed and epoch
 * only, never on the number of workers. To feed another kind of file, fill a burn_dataset.
 */
#ifndef BURN_DATA_H
#define BURN_DATA_H

#include <burn/base.h>
#include <burn/status.h>

BURN_BEGIN_DECLS

/* ---- datasets ------------------------------------------------------------------------------ */

#define BURN_MAX_FIELDS 8

/* One part of an item ("image", "label"): dtype and dims of a single item, without the batch. */
typedef struct burn_field {
    const char *name;
    uint8_t dtype; /* BURN_F32, ... */
    uint8_t rank;  /* 0: one number */
    uint8_t zero[6];
    int64_t dims[BURN_MAX_RANK];
} burn_field;

/*
 * A dataset, in the caller's memory. It must stay valid and unchanged while a loader uses it; the
 * loader never frees `ctx`. Arrays of fields carry a stride so that a field can grow.
 */
typedef struct burn_dataset {
    uint32_t struct_size;
    uint32_t n_fields; /* 1 .. BURN_MAX_FIELDS */
    const burn_field *fields;
    uint32_t field_stride;
    uint32_t zero;
    int64_t count; /* number of items, 0 or more */
    void *ctx;
    /*
     * Writes field f of item `index` to out[f], dense and row-major. Returns BURN_OK or a code with
     * its reason in `err`. Several threads call it at once, each with its own `out`. [any]
     */
    int32_t(BURN_CALL *get)(void *ctx, int64_t index, void *const *out, burn_err *err);
} burn_dataset;

/* ---- IDX files ----------------------------------------------------------------------------- */

/*
 * An array of an IDX file, read whole, in this machine's byte order. Read-only, so any number of
 * threads may use it; the pointer and everything reached through it live until burn_idx_close.
 */
typedef struct burn_idx burn_idx;

/*
 * Reads a file, plain or gzip'ed (told by its content, not by its name). The file is taken as
 * hostile: magic number, dims against the size that is really there, truncation, trailing bytes
 * and checksum are checked, and memory grows with the data read, never with what the header claims.
 * Errors name file, offset, expected and found: BURN_E_IO, BURN_E_FORMAT, BURN_E_LIMIT (more than
 * `max_bytes` of elements; 0 = 4 GiB), BURN_E_NO_MEMORY. On failure *out is NULL. [any]
 */
BURN_API int32_t burn_idx_open(const char *path, uint64_t max_bytes, burn_idx **out, burn_err *err);

/* The same for bytes in memory, which are copied; `name` stands in error texts. [any] */
BURN_API int32_t burn_idx_parse(const void *bytes, uint64_t size, const char *name,
                                uint64_t max_bytes, burn_idx **out, burn_err *err);

BURN_API void burn_idx_close(burn_idx *idx); /* NULL is fine. [any] */

/* Rank (1 to 8), size of an axis (0 when there is no such axis), dtype, elements. [any] */
BURN_API uint32_t burn_idx_rank(const burn_idx *idx);
BURN_API int64_t burn_idx_dim(const burn_idx *idx, uint32_t axis);
BURN_API uint8_t burn_idx_dtype(const burn_idx *idx);
BURN_API const void *burn_idx_data(const burn_idx *idx);

/* ---- MNIST --------------------------------------------------------------------------------- */

/* Flags of burn_mnist_open. */
enum {
    BURN_MNIST_TEST = 1,     /* the 10,000 images for testing; else the 60,000 for training */
    BURN_MNIST_NORMALIZE = 2 /* (pixel / 255 - 0.1307) / 0.3081; else pixel / 255 */
};

typedef struct burn_mnist burn_mnist;

/*
 * Opens images and labels in `folder` under their usual names, with or without ".gz", and checks
 * that they belong together: [n,28,28] bytes, n labels from 0 to 9. [any]
 */
BURN_API int32_t burn_mnist_open(const char *folder, uint32_t flags, burn_mnist **out,
                                 burn_err *err);
BURN_API void burn_mnist_close(burn_mnist *mnist); /* NULL is fine; no loader may use it. [any] */

/* Fields "image" (f32 [1,28,28]) and "label" (i64); lives until burn_mnist_close. [any] */
BURN_API const burn_dataset *burn_mnist_dataset(const burn_mnist *mnist);

/* ---- the batch loader ---------------------------------------------------------------------- */

/* burn_loader_opts.flags */
enum {
    BURN_LOADER_SHUFFLE = 1,  /* another order in each epoch, given by seed and epoch */
    BURN_LOADER_DROP_LAST = 2 /* leaves out the last batch when it is short; else it is kept */
};

typedef struct burn_loader_opts {
    uint32_t struct_size;
    uint32_t flags;
    int64_t batch_size; /* 1 or more */
    uint64_t seed;
    uint32_t workers; /* threads; 0: the calling thread reads the items itself. At most 256 */
    uint32_t ahead;   /* batches made ahead, 0 = two per worker. At most 4096 */
} burn_loader_opts;

/* A batch: data[f] holds n_items items of field f, one after the other. */
typedef struct burn_batch {
    uint32_t struct_size;
    uint32_t n_fields;
    int64_t n_items;        /* batch_size, or less in the last batch */
    int64_t position;       /* number of this batch in its epoch, from 0 */
    const int64_t *indices; /* which items of the dataset these are */
    void *data[BURN_MAX_FIELDS];
} burn_batch;

typedef struct burn_loader burn_loader;

/*
 * Makes a loader, its worker threads and all memory it will ever use, and begins epoch 0. The
 * dataset table is copied; its `fields` and `ctx` must outlive the loader. [any]
 */
BURN_API int32_t burn_loader_create(const burn_dataset *dataset, const burn_loader_opts *opts,
                                    burn_loader **out, burn_err *err);

/* Stops the workers (each ends the item it is at) and frees everything; NULL is fine. [queue] */
BURN_API void burn_loader_destroy(burn_loader *loader);

/*
 * Begins an epoch at one of its batches (0: the start), whatever state the last one is in: after
 * its end, in the middle (an early break), or after a failure. `first_batch` resumes a run that was
 * stopped; the batches that follow are those of a run that was not. [queue]
 */
BURN_API int32_t burn_loader_begin(burn_loader *loader, uint64_t epoch, int64_t first_batch,
                                   burn_err *err);

/*
 * The next batch; valid until the next call on this loader. BURN_E_END (no error text) after the
 * last one, again and again until burn_loader_begin. A failing item fails its batch with the
 * dataset's code and a text that names the item; the call after that goes on with the next batch.
 * Begin with BURN_INIT(batch, burn_batch), which states its size. [queue]
 */
BURN_API int32_t burn_loader_next(burn_loader *loader, burn_batch *batch, burn_err *err);

/* Batches in one epoch: 0 for an empty dataset. [any] */
BURN_API int64_t burn_loader_batches(const burn_loader *loader);

BURN_END_DECLS

#endif /* BURN_DATA_H */
