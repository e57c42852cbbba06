/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * index_pick.h - one step of a gather for elements of type W, as the function PICK. Undefines both
 * names; included once per element size. No include guard.
 */
static void PICK(char *out, const char *in, const int64_t *offset, const int64_t *at,
                 int64_t stride, int64_t n)
{
    W *z = (W *)(void *)out;
    const W *x = (const W *)(const void *)in;
    for (int64_t c = 0; c < n; c++) {
        z[c] = x[offset[c] + at[c] * stride];
    }
}
#undef W
#undef PICK
