/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pool_plane_tmpl.h - pooling of one plane, for element type T; functions get the suffix S.
 *
 * Included by pool.c once for float and once for double. A plane is done output row by output row;
 * a window is cut to the plane first, so that its loop tests no border. Maxima with an index are
 * pool.c's own. To add a kind of pool: one function.
 */

#define POOL_FN2(name, s) name##_##s
#define POOL_FN1(name, s) POOL_FN2(name, s)
#define POOL_FN(name) POOL_FN1(name, S)

static void POOL_FN(average_row)(const flex_window *v, const T *plane, int64_t oy, T *y)
{
    int64_t y0 = 0;
    int64_t ny = 0;
    window_span(v, 0, oy, &y0, &ny);
    for (int64_t x = 0; x < v->out[1]; x++) {
        int64_t x0 = 0;
        int64_t nx = 0;
        window_span(v, 1, x, &x0, &nx);
        T sum = 0;
        for (int64_t ky = 0; ky < ny; ky++) {
            const T *row = plane + (y0 + ky * v->dilation[0]) * v->in[1] + x0;
            for (int64_t kx = 0; kx < nx; kx++) {
                sum += row[kx * v->dilation[1]];
            }
        }
        y[x] = sum / (T)window_count(v, oy, x, ny * nx);
    }
}

/* One adaptive window each: [floor(i n / m), ceil((i + 1) n / m)). */
static void POOL_FN(adaptive_row)(const flex_window *v, const T *plane, int64_t oy, int max, T *y)
{
    int64_t y0 = oy * v->in[0] / v->out[0];
    int64_t y1 = ((oy + 1) * v->in[0] + v->out[0] - 1) / v->out[0];
    for (int64_t x = 0; x < v->out[1]; x++) {
        int64_t x0 = x * v->in[1] / v->out[1];
        int64_t x1 = ((x + 1) * v->in[1] + v->out[1] - 1) / v->out[1];
        T sum = 0;
        T best = (T)-INFINITY;
        for (int64_t ky = y0; ky < y1; ky++) {
            for (int64_t kx = x0; kx < x1; kx++) {
                T value = plane[ky * v->in[1] + kx];
                sum += value;
                best = !(value <= best) && best == best ? value : best;
            }
        }
        y[x] = max ? best : sum / (T)((y1 - y0) * (x1 - x0));
    }
}

#undef POOL_FN
#undef POOL_FN1
#undef POOL_FN2
