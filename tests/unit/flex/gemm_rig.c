/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_rig.c - see gemm_rig.h.
 *
 * Owns memory and strides of the layouts, and the checks of what an epilogue is told. Rules: where
 * an operand's rows or columns are dense, its last element is the last that may be touched.
 */
#include "gemm_rig.h"

#include "guarded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0xA5 };

static float next_number(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / 8388608.0F - 1.0F;
}

float *rig_numbers(int64_t n, uint32_t seed)
{
    float *x = guarded_new((size_t)n * sizeof(float));
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) {
        x[i] = next_number(&seed);
    }
    return x;
}

typedef struct matrix {
    float *base;
    float *first;
    int64_t rs;
    int64_t cs;
} matrix;

static matrix make_matrix(int64_t rows, int64_t columns, int lies, uint32_t seed)
{
    enum { SPREAD = 3 };
    int64_t last = rows * columns - 1; /* where the last element lies */
    matrix x = {.rs = columns, .cs = 1};
    if (lies == LIES_TURNED) {
        x.rs = 1;
        x.cs = rows;
    } else if (lies == LIES_SPREAD) {
        x.rs *= SPREAD;
        x.cs *= SPREAD;
        last *= SPREAD;
    } else if (lies == LIES_BACKWARDS) {
        x.rs = -x.rs;
        x.cs = -x.cs;
    } else if (lies == LIES_UPSIDE_DOWN) {
        x.rs = -x.rs;
    }
    x.base = guarded_new((size_t)(last + 1) * sizeof(float));
    assert_non_null(x.base);
    x.first = x.base;
    if (lies == LIES_BACKWARDS && last > 0) {
        x.first += last;
    } else if (lies == LIES_UPSIDE_DOWN && rows > 0) {
        x.first += (rows - 1) * columns;
    }
    for (int64_t i = 0; i < rows * columns; i++) {
        x.first[i / columns * x.rs + i % columns * x.cs] = next_number(&seed);
    }
    return x;
}

gemm_rig rig_new(gemm_size size, int a_lies, int b_lies, uint32_t threads)
{
    matrix a = make_matrix(size.m, size.k, a_lies, 1);
    matrix b = make_matrix(size.k, size.n, b_lies, 2);
    matrix c = make_matrix(size.m, size.n, LIES_DENSE, 3);
    gemm_rig p = {.a = a.base, .b = b.base, .c = c.base};
    p.init = rig_numbers(size.m + size.n, 4);
    p.g = (flex_gemm){.m = size.m,
                      .n = size.n,
                      .k = size.k,
                      .rows = size.rows,
                      .a = a.first,
                      .ars = a.rs,
                      .acs = a.cs,
                      .b = b.first,
                      .brs = b.rs,
                      .bcs = b.cs,
                      .c = c.first,
                      .crs = size.n,
                      .init = p.init};
    for (int64_t i = 0; i < size.m * size.n; i++) {
        p.c[i] = NAN;
    }
    p.bytes = flex_gemm_bytes(&p.g, threads);
    void *memory = NULL;
    assert_int_equal(posix_memalign(&memory, 64, (size_t)p.bytes + GUARD), 0);
    p.memory = memory;
    memset(p.memory + p.bytes, GUARD_BYTE, GUARD);
    return p;
}

void rig_run(gemm_rig *p, uint32_t threads)
{
    assert_true(flex_gemm_bytes(&p->g, threads) <= p->bytes);
    flex_gemm_parallel(&p->g, p->memory, threads);
}

void rig_drop(gemm_rig *p)
{
    for (int i = 0; i < GUARD; i++) {
        assert_int_equal(p->memory[p->bytes + (uint64_t)i], GUARD_BYTE);
    }
    guarded_free(p->a);
    guarded_free(p->b);
    guarded_free(p->c);
    guarded_free(p->init);
    free(p->memory);
}

float *rig_a(const gemm_rig *p, int64_t i, int64_t k)
{
    return p->a + (p->g.a - p->a) + i * p->g.ars + k * p->g.acs;
}

float *rig_b(const gemm_rig *p, int64_t k, int64_t j)
{
    return p->b + (p->g.b - p->b) + k * p->g.brs + j * p->g.bcs;
}

double rig_expected(const flex_gemm *g, int64_t i, int64_t j, double *out_magnitudes)
{
    double sum = g->mode == FLEX_INIT_COL   ? (double)g->init[j]
                 : g->mode == FLEX_INIT_ROW ? (double)g->init[i]
                                            : 0.0;
    double magnitudes = fabs(sum);
    for (int64_t k = 0; k < g->k; k++) {
        double x = (double)g->a[i * g->ars + k * g->acs] * (double)g->b[k * g->brs + j * g->bcs];
        sum += x;
        magnitudes += fabs(x);
    }
    if (out_magnitudes != NULL) {
        *out_magnitudes = magnitudes;
    }
    return sum;
}

void rig_same_bits(const gemm_rig *x, const gemm_rig *y)
{
    assert_int_equal(x->g.m, y->g.m);
    assert_int_equal(x->g.n, y->g.n);
    assert_memory_equal(x->c, y->c, (size_t)(x->g.m * x->g.n) * sizeof(float));
}

void rig_twice(void *user, const flex_block *b)
{
    rig_seen *s = user;
    const flex_gemm *g = s->g;
    int64_t at = b->at - RIG_AT;
    int bad = b->batch != 7 || b->step != g->crs || b->row < 0 || b->col < 0 || b->rows < 1 ||
              b->cols < 1 || b->row + b->rows > g->m || b->col + b->cols > g->n ||
              at != b->row * g->crs + b->col ||
              (!g->passes && (b->c != g->c + at || b->ldc != b->step));
    if (bad) {
        atomic_store(&s->wrong, 1);
        return;
    }
    for (int64_t i = 0; i < b->rows; i++) {
        for (int64_t j = 0; j < b->cols; j++) {
            s->to[at + i * b->step + j] = 2.0F * b->c[i * b->ldc + j];
        }
    }
    atomic_fetch_add(&s->elements, b->rows * b->cols);
}

void rig_watch(gemm_rig *p, rig_seen *seen, int passes)
{
    memset(seen, 0, sizeof(*seen));
    seen->g = &p->g;
    seen->to = p->c;
    p->g.epilogue = rig_twice;
    p->g.epilogue_user = seen;
    p->g.batch = 7;
    p->g.at0 = RIG_AT;
    p->g.passes = passes;
}
