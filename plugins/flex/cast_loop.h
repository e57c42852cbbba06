/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cast_loop.h - the conversion from S to the integer type D as the function to_<D_NAME>.
 *
 * Undefines D, D_NAME, D_MIN and D_MAX; included once per pair of types. No include guard.
 */
static void PASTE(to_, D_NAME)(void *out, const void *in, uint64_t n)
{
    D *z = out;
    const S *x = in;
#if S_FLOAT
    /* Both bounds are powers of two (or zero), which floats hold exactly. */
    const S low = (S)D_MIN;
    const S high = (S)2 * (S)(D_MAX / 2 + 1);
    for (uint64_t i = 0; i < n; i++) {
        S c = x[i] == x[i] ? x[i] : (S)0;
        c = c < low ? low : c;
        int over = c >= high;
        c = over ? (S)0 : c;
        D whole = (D)c;
        z[i] = over ? (D)D_MAX : whole;
    }
#else
    for (uint64_t i = 0; i < n; i++) {
        z[i] = (D)VALUE(x[i]);
    }
#endif
}
#undef D
#undef D_NAME
#undef D_MIN
#undef D_MAX
