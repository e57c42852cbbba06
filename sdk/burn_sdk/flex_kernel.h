/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * flex_kernel.h - what the CPU backend offers to kernels of extensions: its threads, its f32 matrix
 * product with an epilogue, and what it knows of the CPU.
 *
 * An extension fetches the table with burn_flex_kernel_of(host) where a row is prepared, never in
 * its query: plugins are opened in any order. It states BURN_FLEX_KERNEL_CONTRACT in the `contract`
 * field of its row set for "flex". The table lives as long as the process. Fields are only
 * appended; what is newer than revision 1 is read through BURN_HAS.
 */
#ifndef BURN_SDK_FLEX_KERNEL_H
#define BURN_SDK_FLEX_KERNEL_H

#include <burn/base.h>
#include <burn/plugin.h>
#include <burn/status.h>

BURN_BEGIN_DECLS

#define BURN_FLEX_KERNEL_ID "flex.kernel/1"
#define BURN_FLEX_KERNEL_CONTRACT 1

/* Vector instructions that the backend uses; an option may have lowered them. A matrix unit beside
 * them, as of AMX, is no level of its own: `isa_name` has it. */
enum {
    BURN_FLEX_ISA_BASELINE = 0, /* what every CPU of the architecture has */
    BURN_FLEX_ISA_AVX2 = 1,     /* AVX2, FMA, F16C */
    BURN_FLEX_ISA_AVX512 = 2    /* AVX-512 F, BW, DQ, VL, and those of AVX2 */
};

/* Elements begin .. end-1 of a loop. Runs on any thread; other pieces run at the same time. */
typedef void(BURN_CALL *burn_flex_range_fn)(void *user, int64_t begin, int64_t end);

/*
 * Rows row .. row+rows-1, columns col .. col+cols-1 of the product are final; `c` is the first of
 * them, rows are `ldc` elements apart, columns dense. Every element comes in exactly one call. The
 * caller is the thread that made the block, while others work on theirs: touch only this block and
 * what is your own. How a product is cut depends on the machine, so results must not.
 */
typedef void(BURN_CALL *burn_flex_epilogue_fn)(void *user, float *c, int64_t ldc, int64_t row,
                                               int64_t col, int64_t rows, int64_t cols);

/* C = A B + bias: A is m x k, B is k x n, C is m x n. Strides count elements. */
typedef struct burn_flex_gemm {
    uint32_t struct_size;
    uint32_t zero;
    int64_t m;
    int64_t n;
    int64_t k;
    const float *a; /* A(i, p) = a[i * a_row + p * a_col]; any strides, 0 and negative ones too */
    int64_t a_row;
    int64_t a_col;
    const float *b; /* B(p, j) = b[p * b_row + j * b_col] */
    int64_t b_row;
    int64_t b_col;
    float *c; /* C(i, j) = c[i * c_row + j]; written only, no overlap with A, B or bias */
    int64_t c_row;
    const float *bias; /* n values, dense, added to each row; NULL: none */
    burn_flex_epilogue_fn epilogue; /* NULL: none; also called when k is 0 */
    void *user;                     /* for the epilogue */
} burn_flex_gemm;

typedef struct burn_flex_kernel {
    burn_service service; /* first: revisions, see <burn/plugin.h> */
    uint32_t isa;         /* BURN_FLEX_ISA_* in use; constant */
    uint32_t vector_bytes;
    const char *isa_name; /* "avx2"; "amx": isa is that of AVX-512, and gemm_f32 has the unit */
    /* How many threads a loop may use, the caller among them; at least 1. [any] */
    uint32_t(BURN_CALL *thread_count)(void);
    /*
     * Calls fn for pieces of [0, n), each of `grain` elements but the last, in any order, on the
     * calling thread and the pool; returns when all are done. The cut depends on n and grain only,
     * so results can be the same for any number of threads. A call from inside a piece, or while
     * another thread's loop runs, does its pieces one after the other. [any]
     */
    void(BURN_CALL *parallel_for)(int64_t n, int64_t grain, burn_flex_range_fn fn, void *user);
    /*
     * Bytes of workspace that gemm_f32 needs for these sizes and strides; addresses are not looked
     * at. Ask in `prepare` and put it into burn_prepared.workspace_bytes, alignment 64. [any]
     */
    uint64_t(BURN_CALL *gemm_f32_bytes)(const burn_flex_gemm *g);
    /*
     * Computes the product on all threads. The same bits for any number of threads and any strides.
     * Not from inside parallel_for. BURN_E_INVALID with a text when a size is negative or the
     * workspace too small. [queue]
     */
    int32_t(BURN_CALL *gemm_f32)(const burn_flex_gemm *g, void *workspace,
                                 uint64_t workspace_bytes, burn_err *err);
} burn_flex_kernel;

/* The table, or NULL when flex is not open or serves other revisions. [any] */
static inline const burn_flex_kernel *burn_flex_kernel_of(const burn_host *host)
{
    const burn_flex_kernel *k = (const burn_flex_kernel *)host->service(BURN_FLEX_KERNEL_ID);
    if (k == NULL || k->service.struct_size < sizeof(*k) ||
        k->service.contract < BURN_FLEX_KERNEL_CONTRACT ||
        k->service.contract_oldest > BURN_FLEX_KERNEL_CONTRACT) {
        return NULL;
    }
    return k;
}

BURN_END_DECLS

#endif /* BURN_SDK_FLEX_KERNEL_H */
