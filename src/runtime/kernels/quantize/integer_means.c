/* integer_means.c - the mean over dimensions, and average pooling. */
#include "byte_rows.h"

#include "runtime/kernels/reduce/reduce_impl.h"

/* ---- mean ---------------------------------------------------------------------------------- */

enum { SELF, DIM = 3, KEEPDIM, MEAN_RESULT };

cfx_status cfxi_rule_integer_mean(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, SELF);
    uint32_t mask;
    CFX_TRY(cfxi_integer_check_operand(c, SELF, "self"));
    CFX_TRY(cfxi_integer_check_result(c, MEAN_RESULT, false));
    CFX_TRY(cfxi_reduce_reduced_dims(c, DIM, x->ndim, true, &mask));
    return cfxi_reduce_reduced_result(c, 0, cfxi_rt_dtype_or(c, MEAN_RESULT + 4, CFX_DTYPE_UINT8),
                                      x, mask, cfxi_rt_bool(c, KEEPDIM));
}

typedef struct mean {
    const cfxi_integer_rows *rows;  /* or NULL */
    size_t ndim;  /* of what is summed up */
    int64_t size[CFX_MAX_DIMS];
    int64_t stride[CFX_MAX_DIMS];
    bool is_signed;
    int32_t zero;
    float factor;
    cfxi_integer_range range;
} mean;

enum {
    MOST_TERMS = INT32_MAX / 255,  /* that 32 bits can sum up, as vectors do */
    BLOCK = 512,           /* sums at a time */
    LEAST = 8,             /* elements that are worth a vector */
    WORK = 1 << 13,        /* elements that are worth another thread, */
    VECTOR_WORK = 1 << 17  /* by vectors */
};

static cfxi_integer_bytes bytes_at(const mean *m, const char *x)
{
    return (cfxi_integer_bytes){(const uint8_t *)x, m->is_signed, m->zero, m->factor};
}

/* sum of (x - zero) over dimensions `d` and on. */
static int64_t sum_from(const mean *m, const char *x, size_t d)
{
    int64_t sum = 0;
    if (d == m->ndim)
        return cfxi_integer_load(m->is_signed, x) - m->zero;
    for (int64_t i = 0; i < m->size[d]; i++)
        sum += sum_from(m, x + i * m->stride[d], d + 1);
    return sum;
}

/* Adds to n sums, whose elements lie side by side, what dimensions `d` and on have. */
static void add_from(const mean *m, const char *x, size_t d, int64_t n, int32_t *sums)
{
    const cfxi_integer_bytes b = bytes_at(m, x);
    if (d + 1 >= m->ndim)
        m->rows->add_rows(n, &b, d < m->ndim ? m->size[d] : 1, d < m->ndim ? m->stride[d] : 0,
                          sums);
    for (int64_t i = 0; d + 1 < m->ndim && i < m->size[d]; i++)
        add_from(m, x + i * m->stride[d], d + 1, n, sums);
}

static void means_side_by_side(const mean *m, int64_t n, const char *x, char *y)
{
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t some = n - i < BLOCK ? n - i : BLOCK;
        int32_t sums[BLOCK] = {0};
        add_from(m, x + i, 0, some, sums);
        m->rows->finish(some, sums, m->factor, m->range, (uint8_t *)y + i);
    }
}

static void mean_row(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    const mean *m = ctx;
    if (m->rows && n >= LEAST && step[0] == 1 && step[1] == 1) {
        means_side_by_side(m, n, at[1], at[0]);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const float r = (float)sum_from(m, at[1] + i * step[1], 0) * m->factor;
        *(uint8_t *)(at[0] + i * step[0]) = (uint8_t)cfxi_integer_of(r, m->range);
    }
}

/* The first element of each sum, as a tensor of the result's sizes. */
static void show_firsts(const cfx_tensor *x, uint32_t mask, const cfx_tensor *y, cfx_tensor *first)
{
    memcpy(first, y, sizeof *first);
    first->dtype = x->dtype;
    first->data = x->data;
    const bool keeps = y->ndim == x->ndim;
    for (size_t d = 0, to = 0; d < x->ndim; d++)
        if (!(mask & 1u << d) || keeps)
            first->stride[to++] = mask & 1u << d ? 0 : x->stride[d];
}

/* One with the dimension before it, if its elements follow each other as well. */
static void add_dimension(mean *m, int64_t size, int64_t stride)
{
    if (m->ndim > 0 && m->stride[m->ndim - 1] == size * stride)
        m->size[--m->ndim] *= size;
    else
        m->size[m->ndim] = size;
    m->stride[m->ndim++] = stride;
}

cfx_status cfxi_kernel_integer_mean(cfxi_call *c)
{
    const cfxi_integer_operand in = cfxi_integer_operand_of(c, SELF);
    const cfx_tensor *x = in.t;
    cfx_tensor first;
    uint32_t mask;
    CFX_TRY(cfxi_reduce_reduced_dims(c, DIM, x->ndim, true, &mask));
    mean m = {.rows = c->rt->reference ? NULL : cfxi_integer_rows_of(c->rt->isa),
              .is_signed = cfxi_integer_is_signed(x), .zero = in.zero,
              .range = cfxi_integer_range_of(c, MEAN_RESULT)};
    int64_t count = 1;
    for (size_t d = 0; d < x->ndim; d++)
        if (mask & 1u << d) {
            count *= x->size[d];
            add_dimension(&m, x->size[d], x->stride[d]);
        }
    if (count > MOST_TERMS)
        m.rows = NULL;
    m.factor = (float)(in.scale / (cfxi_rt_float(c, MEAN_RESULT) * (double)count));
    show_firsts(x, mask, cfxi_rt_result_at(c, 0), &first);
    const cfx_tensor *operands[] = {cfxi_rt_result_at(c, 0), &first};
    const int64_t work = m.rows ? VECTOR_WORK : WORK;
    cfxi_rt_loop(c->rt, operands, 2, work / (count > 0 && count < work ? count : work), mean_row,
                 &m);
    return CFX_OK;
}

/* ---- average pooling ----------------------------------------------------------------------- */

enum { KERNEL = 3, STRIDE, PADDING, CEIL, INCLUDE_PAD, DIVISOR, POOL_RESULT };

/* The dimensions of a plane: as many as kernel_size has. */
static size_t plane_dims(const cfxi_call *c)
{
    size_t n;
    cfx_datum_items(c->args[KERNEL], &n);
    return n;
}

cfx_status cfxi_rule_integer_avg_pool(cfxi_call *c)
{
    static const uint16_t by_dims[] = {CFX_OPID_avg_pool1d, CFX_OPID_avg_pool2d,
                                       CFX_OPID_avg_pool3d};
    const cfx_tensor *x = cfxi_rt_tensor(c, SELF);
    const size_t n = plane_dims(c);
    CFX_TRY(cfxi_integer_check_operand(c, SELF, "self"));
    CFX_TRY(cfxi_integer_check_result(c, POOL_RESULT, false));
    if (n < 1 || n > CFXI_SPATIAL)
        return cfxi_fail(c, CFX_E_SHAPE, "kernel_size must have 1, 2 or 3 numbers, not %zu", n);
    if (!cfxi_rt_is_none(c, DIVISOR) && c->args[DIVISOR].as.i == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "divisor must be not zero");
    cfx_tensor *stand_in = cfxi_integer_stand_in(c, x, CFX_DTYPE_FLOAT32);
    if (!stand_in)
        return c->err->status;
    const cfx_datum args[] = {cfx_datum_tensor(stand_in), c->args[KERNEL], c->args[STRIDE],
                              c->args[PADDING], c->args[CEIL], c->args[INCLUDE_PAD]};
    const cfx_status status = cfxi_integer_result_as(
        c, cfxi_rt_dtype_or(c, POOL_RESULT + 4, CFX_DTYPE_UINT8), (cfx_operator)by_dims[n - 1],
        args, 6, x);
    cfx_tensor_release(stand_in);
    return status;
}

/* The elements of an axis that a window holds, and how many count. */
typedef struct window {
    int64_t first, past, count;
} window;

typedef struct pool {
    const cfxi_integer_rows *rows;  /* or NULL */
    size_t n;
    int64_t in[CFXI_SPATIAL], out[CFXI_SPATIAL];
    int64_t kernel[CFXI_SPATIAL], stride[CFXI_SPATIAL], pad[CFXI_SPATIAL];
    int64_t xs[CFXI_SPATIAL], ys[CFXI_SPATIAL];
    bool include_pad;
    bool has_divisor;
    int64_t divisor;
    bool is_signed;
    int32_t zero;
    double in_scale, out_scale;
    cfxi_integer_range range;
} pool;

static window window_at(const pool *p, size_t d, int64_t o)
{
    const int64_t lo = o * p->stride[d] - p->pad[d];
    const int64_t hi = lo + p->kernel[d];
    const int64_t end = p->in[d] + p->pad[d];
    window w = {lo > 0 ? lo : 0, hi < p->in[d] ? hi : p->in[d], 0};
    w.past = w.past > w.first ? w.past : w.first;
    w.count = p->include_pad ? (hi < end ? hi : end) - lo : w.past - w.first;
    return w;
}

static float factor_of(const pool *p, const window w[CFXI_SPATIAL])
{
    const int64_t count =
        p->has_divisor ? p->divisor : w[0].count * w[1].count * w[2].count;
    return (float)(p->in_scale / (p->out_scale * (double)count));
}

static float pool_at(const pool *p, const char *x, const window w[CFXI_SPATIAL])
{
    int64_t sum = 0;
    for (int64_t a = w[0].first; a < w[0].past; a++)
        for (int64_t b = w[1].first; b < w[1].past; b++)
            for (int64_t e = w[2].first; e < w[2].past; e++)
                sum += cfxi_integer_load(p->is_signed, x + a * p->xs[0] + b * p->xs[1] +
                                         e * p->xs[2]) - p->zero;
    return (float)sum * factor_of(p, w);
}

/* A pixel of n planes that lie side by side. */
static void pool_side_by_side(const pool *p, int64_t n, const char *x, char *y,
                              const window w[CFXI_SPATIAL])
{
    const float factor = factor_of(p, w);
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t some = n - i < BLOCK ? n - i : BLOCK;
        int32_t sums[BLOCK] = {0};
        for (int64_t a = w[0].first; a < w[0].past; a++)
            for (int64_t b = w[1].first; b < w[1].past; b++) {
                const char *at = x + i + a * p->xs[0] + b * p->xs[1] + w[2].first * p->xs[2];
                const cfxi_integer_bytes pixel = {(const uint8_t *)at, p->is_signed, p->zero,
                                                  factor};
                p->rows->add_rows(some, &pixel, w[2].past - w[2].first, p->xs[2], sums);
            }
        p->rows->finish(some, sums, factor, p->range, (uint8_t *)y + i);
    }
}

static void pool_one(const pool *p, int64_t n, char *const *at, const int64_t *step, int64_t place,
                     const window w[CFXI_SPATIAL])
{
    if (p->rows && n >= LEAST && step[0] == 1 && step[1] == 1)
        pool_side_by_side(p, n, at[1], at[0] + place, w);
    else
        for (int64_t i = 0; i < n; i++)
            *(uint8_t *)(at[0] + i * step[0] + place) =
                (uint8_t)cfxi_integer_of(pool_at(p, at[1] + i * step[1], w), p->range);
}

/* at[0]: the first pixel of a plane of the result, at[1]: of the image. */
static void pool_planes(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    const pool *p = ctx;
    window w[CFXI_SPATIAL];
    for (int64_t a = 0; a < p->out[0]; a++) {
        w[0] = window_at(p, 0, a);
        for (int64_t b = 0; b < p->out[1]; b++) {
            w[1] = window_at(p, 1, b);
            for (int64_t e = 0; e < p->out[2]; e++) {
                w[2] = window_at(p, 2, e);
                pool_one(p, n, at, step, a * p->ys[0] + b * p->ys[1] + e * p->ys[2], w);
            }
        }
    }
}

static cfx_status read_pool(cfxi_call *c, pool *p)
{
    const cfxi_integer_operand in = cfxi_integer_operand_of(c, SELF);
    const cfx_tensor *y = cfxi_rt_result_at(c, 0);
    const size_t n = plane_dims(c);
    *p = (pool){.rows = c->rt->reference ? NULL : cfxi_integer_rows_of(c->rt->isa),
                .n = n, .include_pad = cfxi_rt_bool(c, INCLUDE_PAD),
                .has_divisor = !cfxi_rt_is_none(c, DIVISOR), .divisor = c->args[DIVISOR].as.i,
                .is_signed = cfxi_integer_is_signed(in.t), .zero = in.zero, .in_scale = in.scale,
                .out_scale = cfxi_rt_float(c, POOL_RESULT),
                .range = cfxi_integer_range_of(c, POOL_RESULT)};
    CFX_TRY(cfxi_rt_window_ints(c, KERNEL, n, 1, NULL, "kernel_size", p->kernel));
    CFX_TRY(cfxi_rt_window_ints(c, STRIDE, n, 1, p->kernel, "stride", p->stride));
    CFX_TRY(cfxi_rt_window_ints(c, PADDING, n, 0, NULL, "padding", p->pad));
    if ((double)p->kernel[0] * (double)p->kernel[1] * (double)p->kernel[2] > MOST_TERMS)
        p->rows = NULL;
    for (size_t d = 0; d < CFXI_SPATIAL; d++) {
        const bool is_there = d + n >= CFXI_SPATIAL;
        const size_t at = in.t->ndim + d - CFXI_SPATIAL;
        p->in[d] = is_there ? in.t->size[at] : 1;
        p->out[d] = is_there ? y->size[at] : 1;
        p->xs[d] = is_there ? in.t->stride[at] : 0;
        p->ys[d] = is_there ? y->stride[at] : 0;
    }
    return CFX_OK;
}

cfx_status cfxi_kernel_integer_avg_pool(cfxi_call *c)
{
    pool p;
    cfx_tensor x, y;
    CFX_TRY(read_pool(c, &p));
    if (cfxi_tensor_numel(cfxi_rt_result_at(c, 0)) == 0)
        return CFX_OK;
    memcpy(&x, cfxi_rt_tensor(c, SELF), sizeof x);
    memcpy(&y, cfxi_rt_result_at(c, 0), sizeof y);
    x.ndim = y.ndim = (uint8_t)(y.ndim - p.n);
    const cfx_tensor *operands[] = {&y, &x};
    cfxi_rt_loop(c->rt, operands, 2, 1, pool_planes, &p);
    return CFX_OK;
}
