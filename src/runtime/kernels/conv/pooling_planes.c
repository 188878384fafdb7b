/* pooling_planes.c - maxima and means of windows, a plane at a time.
 *
 * Without indices a window's rows are combined first, a whole row of the plane at once, and then
 * the columns: a 3x3 window costs three row operations and two of single elements. */
#include "pooling_impl.h"
#include "runtime/kernels/reduce/reduce_impl.h"

#include <math.h>

static int64_t elements_of(const cfxi_pooling *p, bool out)
{
    int64_t n = 1;
    for (size_t d = 0; d < CFXI_SPATIAL; d++)
        n *= out ? p->axes[d].out : p->axes[d].in;
    return n;
}

/* ---- combining ----------------------------------------------------------------------------- */

/* What is not a number wins. */
#define LARGER(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))

static void max_row_float(const cfxi_pooling *p, float *to, const float *from, int64_t n)
{
    cfxi_reduce_floats_of(p->rt->isa)->most_row(to, from, n);
}

static void add_row_float(const cfxi_pooling *p, float *to, const float *from, int64_t n)
{
    cfxi_reduce_floats_of(p->rt->isa)->rows.add(to, from, n);
}

/* Sums and means: integers wrap. */
#define PLUS_float(a, b) ((a) + (b))
#define PLUS_double(a, b) ((a) + (b))
#define PLUS_int64_t(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define OVER_float(a, n) ((a) / (float)(n))
#define OVER_double(a, n) ((a) / (double)(n))
#define OVER_int64_t(a, n) ((n) == -1 ? (int64_t)(0 - (uint64_t)(a)) : (a) / (n))

#define ROWS(type)                                                                                 \
    static void max_row_##type(const cfxi_pooling *p, type *to, const type *from, int64_t n)       \
    {                                                                                              \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = LARGER(from[i], to[i]);                                                        \
    }                                                                                              \
    static void add_row_##type(const cfxi_pooling *p, type *to, const type *from, int64_t n)       \
    {                                                                                              \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = PLUS_##type(to[i], from[i]);                                                   \
    }
ROWS(double)
ROWS(int64_t)

/* ---- planes -------------------------------------------------------------------------------- */

/* All rows of the window (z, y) into row[]: the place and its neighbours above and below. */
#define COMBINE_ROWS(type, combine)                                                                \
    static void combine##_rows_##type(const cfxi_pooling *p, const type *x, int64_t z, int64_t y,  \
                                      type *row)                                                   \
    {                                                                                              \
        const cfxi_pool_axis *az = &p->axes[0];                                                    \
        const cfxi_pool_axis *ay = &p->axes[1];                                                    \
        int64_t wide = p->axes[2].in;                                                              \
        bool first = true;                                                                         \
        for (int64_t i = az->lo[z]; i < az->hi[z]; i += az->step)                                  \
            for (int64_t j = ay->lo[y]; j < ay->hi[y]; j += ay->step, first = false) {             \
                const type *from = x + (i * ay->in + j) * wide;                                    \
                if (first)                                                                         \
                    memcpy(row, from, (size_t)wide * sizeof *row);                                 \
                else                                                                               \
                    combine##_row_##type(p, row, from, wide);                                      \
            }                                                                                      \
        if (first)                                                                                 \
            memset(row, 0, (size_t)wide * sizeof *row);                                            \
    }

static bool is_hollow(const cfxi_pooling *p)
{
    return p->axes[0].hollow || p->axes[1].hollow || p->axes[2].hollow;
}

/* Whether the window at these places has no element of the image. */
static bool is_outside(const cfxi_pooling *p, const int64_t at[3])
{
    for (size_t d = 0; d < CFXI_SPATIAL; d++)
        if (p->axes[d].lo[at[d]] >= p->axes[d].hi[at[d]])
            return true;
    return false;
}

#define LOWEST_float(p) (-INFINITY)
#define LOWEST_double(p) (-INFINITY)
#define LOWEST_int64_t(p) ((p)->lowest)

#define PLANES(type)                                                                               \
    COMBINE_ROWS(type, max)                                                                        \
    COMBINE_ROWS(type, add)                                                                        \
    static void max_plane_##type(const cfxi_pooling *p, const type *x, type *y, type *row)         \
    {                                                                                              \
        const cfxi_pool_axis *a = &p->axes[2];                                                     \
        for (int64_t i = 0; i < p->axes[0].out; i++)                                               \
            for (int64_t j = 0; j < p->axes[1].out; j++) {                                         \
                max_rows_##type(p, x, i, j, row);                                                  \
                for (int64_t o = 0; o < a->out; o++) {                                             \
                    type best = row[a->lo[o]];                                                     \
                    for (int64_t k = a->lo[o] + a->step; k < a->hi[o]; k += a->step)               \
                        best = LARGER(row[k], best);                                               \
                    *y++ = best;                                                                   \
                }                                                                                  \
            }                                                                                      \
    }                                                                                              \
    static void mean_plane_##type(const cfxi_pooling *p, const type *x, type *y, type *row)        \
    {                                                                                              \
        const cfxi_pool_axis *a = &p->axes[2];                                                     \
        for (int64_t i = 0; i < p->axes[0].out; i++)                                               \
            for (int64_t j = 0; j < p->axes[1].out; j++) {                                         \
                int64_t count = p->axes[0].count[i] * p->axes[1].count[j];                         \
                add_rows_##type(p, x, i, j, row);                                                  \
                for (int64_t o = 0; o < a->out; o++) {                                             \
                    type sum = 0;                                                                  \
                    for (int64_t k = a->lo[o]; k < a->hi[o]; k += a->step)                         \
                        sum = PLUS_##type(sum, row[k]);                                            \
                    int64_t by = p->divisor ? p->divisor : count * a->count[o];                    \
                    *y++ = a->hi[o] > a->lo[o] ? OVER_##type(sum, by) : 0;                         \
                }                                                                                  \
            }                                                                                      \
    }                                                                                              \
    /* The first of equal ones, in the order of memory; the last that is not a number. */          \
    static int64_t find_##type(const cfxi_pooling *p, const type *x, const int64_t at[3])          \
    {                                                                                              \
        const cfxi_pool_axis *a = p->axes;                                                         \
        int64_t best = (a[0].lo[at[0]] * a[1].in + a[1].lo[at[1]]) * a[2].in + a[2].lo[at[2]];     \
        for (int64_t i = a[0].lo[at[0]]; i < a[0].hi[at[0]]; i += a[0].step)                       \
            for (int64_t j = a[1].lo[at[1]]; j < a[1].hi[at[1]]; j += a[1].step)                   \
                for (int64_t k = a[2].lo[at[2]]; k < a[2].hi[at[2]]; k += a[2].step) {             \
                    int64_t here = (i * a[1].in + j) * a[2].in + k;                                \
                    if (x[here] > x[best] || x[here] != x[here])                                   \
                        best = here;                                                               \
                }                                                                                  \
        return best;                                                                               \
    }                                                                                              \
    static void index_plane_##type(const cfxi_pooling *p, const type *x, type *y, int64_t *index)  \
    {                                                                                              \
        int64_t at[3];                                                                             \
        const bool hollow = is_hollow(p);                                                          \
        for (at[0] = 0; at[0] < p->axes[0].out; at[0]++)                                           \
            for (at[1] = 0; at[1] < p->axes[1].out; at[1]++)                                       \
                for (at[2] = 0; at[2] < p->axes[2].out; at[2]++) {                                 \
                    int64_t best = find_##type(p, x, at);                                          \
                    *y++ = hollow && is_outside(p, at) ? LOWEST_##type(p) : x[best];               \
                    if (index)                                                                     \
                        *index++ = best;                                                           \
                }                                                                                  \
    }
PLANES(float)
PLANES(double)
PLANES(int64_t)

/* ---- all planes ---------------------------------------------------------------------------- */

/* The pooling of plane i: of random windows, its own. */
static cfxi_pooling of_plane(const cfxi_pooling *p, int64_t i)
{
    cfxi_pooling one = *p;
    for (size_t d = 0; p->axes_step && d < CFXI_SPATIAL; d++) {
        one.axes[d].lo += i * one.axes[d].out;
        one.axes[d].hi += i * one.axes[d].out;
    }
    return one;
}

/* Whether the only window is the whole plane. */
static bool is_global(const cfxi_pooling *p)
{
    bool whole = !p->axes_step;
    for (size_t d = 0; whole && d < CFXI_SPATIAL; d++) {
        const cfxi_pool_axis *a = &p->axes[d];
        whole = a->out == 1 && a->step == 1 && a->lo[0] == 0 && a->hi[0] == a->in;
    }
    return whole;
}

/* The mean of a plane of floats. */
static void mean_whole(const cfxi_pooling *p, const float *x, float *y)
{
    const int64_t count = p->axes[0].count[0] * p->axes[1].count[0] * p->axes[2].count[0];
    const cfxi_floats *loops = cfxi_reduce_floats_of(p->rt->isa);
    const double sum = loops->rows.sum(x, elements_of(p, false));
    *y = (float)(sum / (double)(p->divisor ? p->divisor : count));
}

typedef enum what { MAX, MEAN } what;

static void one_plane(const cfxi_pooling *p, what kind, int64_t i, void *row)
{
    int64_t item = (int64_t)cfx_dtype_size(p->type);
    int64_t in = elements_of(p, false);
    int64_t out = elements_of(p, true);
    const void *x = (const char *)p->x + i * in * item;
    void *y = (char *)p->y + i * out * item;
    int64_t *index = p->index ? p->index + i * out : NULL;
    const bool each = index || is_hollow(p);  /* else rows are combined first */
    if (p->type == CFX_DTYPE_FLOAT32 && kind == MEAN && is_global(p))
        mean_whole(p, x, y);
    else if (p->type == CFX_DTYPE_FLOAT32)
        kind == MEAN ? mean_plane_float(p, x, y, row)
        : each       ? index_plane_float(p, x, y, index)
                     : max_plane_float(p, x, y, row);
    else if (p->type == CFX_DTYPE_FLOAT64)
        kind == MEAN ? mean_plane_double(p, x, y, row)
        : each       ? index_plane_double(p, x, y, index)
                     : max_plane_double(p, x, y, row);
    else
        kind == MEAN ? mean_plane_int64_t(p, x, y, row)
        : each       ? index_plane_int64_t(p, x, y, index)
                     : max_plane_int64_t(p, x, y, row);
}

static void planes(cfxi_pooling *p, what kind, int64_t begin, int64_t end)
{
    void *row = cfxi_rt_scratch(p->rt, (size_t)(p->axes[2].in + 1) * cfx_dtype_size(p->type));
    if (!row)
        atomic_store(&p->failed, true);
    for (int64_t i = begin; row && i < end; i++) {
        if (p->axes_step) {
            cfxi_pooling one = of_plane(p, i);
            one_plane(&one, kind, i, row);
        } else {
            one_plane(p, kind, i, row);
        }
    }
    cfxi_rt_scratch_free(p->rt, row);
}

static void max_planes(void *ctx, int64_t begin, int64_t end) { planes(ctx, MAX, begin, end); }
static void mean_planes(void *ctx, int64_t begin, int64_t end) { planes(ctx, MEAN, begin, end); }

static cfx_status all_planes(cfxi_pooling *p, cfxi_range_fn *fn, cfx_error *err)
{
    int64_t work = elements_of(p, false) + elements_of(p, true);
    cfxi_rt_parallel(p->rt, p->planes, 1 + 16384 / (work + 1), fn, p);
    return atomic_load(&p->failed) ? cfxi_base_nomem(err) : CFX_OK;
}

cfx_status cfxi_conv_pool_max(cfxi_pooling *p, cfx_error *err)
{
    return all_planes(p, max_planes, err);
}
cfx_status cfxi_conv_pool_mean(cfxi_pooling *p, cfx_error *err)
{
    return all_planes(p, mean_planes, err);
}
