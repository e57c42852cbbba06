/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * where_loop.h - `where` for elements of type W, as the function WHERE. Moves bits, so one function
 * serves every dtype of that size. Undefines both names; included once per size. No include guard.
 */
static void WHERE(void *out, const void *cond, const void *in, const void *other, uint64_t n,
                  uint32_t mode)
{
    W *z = out;
    const uint8_t *c = cond;
    const W *x = in;
    const W *y = other;
    const size_t step_x = (mode & FLEX_MODE_X_SCALAR) != 0 ? 0 : 1;
    const size_t step_y = (mode & FLEX_MODE_Y_SCALAR) != 0 ? 0 : 1;
    const size_t step_c = (mode & FLEX_MODE_COND_SCALAR) != 0 ? 0 : 1;
    if (mode == FLEX_MODE_DENSE) {
        FLEX_INDEPENDENT
        for (uint64_t i = 0; i < n; i++) {
            W a = x[i];
            W b = y[i];
            z[i] = c[i] != 0 ? a : b;
        }
        return;
    }
    /* The gradients of relu and its like: one side is a number. */
    if (mode == FLEX_MODE_Y_SCALAR) {
        const W b = y[0];
        FLEX_INDEPENDENT
        for (uint64_t i = 0; i < n; i++) {
            W a = x[i];
            z[i] = c[i] != 0 ? a : b;
        }
        return;
    }
    if (mode == FLEX_MODE_X_SCALAR) {
        const W a = x[0];
        FLEX_INDEPENDENT
        for (uint64_t i = 0; i < n; i++) {
            W b = y[i];
            z[i] = c[i] != 0 ? a : b;
        }
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        W a = x[i * step_x];
        W b = y[i * step_y];
        z[i] = c[i * step_c] != 0 ? a : b;
    }
}
#undef W
#undef WHERE
