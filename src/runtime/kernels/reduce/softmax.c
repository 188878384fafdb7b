/* softmax.c - softmax and log_softmax along any dimension.
 *
 * The argument is seen as [outer][n][inner]. Where inner is 1 a lane is computed as it lies in
 * memory; else WIDE lanes side by side, row by row. */
#include "runtime/kernels/elementwise/elementwise_impl.h"
#include "reduce_impl.h"

#include <math.h>

enum { WIDE = 64 };

typedef struct softmax {
    const cfx_tensor *x;  /* contiguous */
    cfx_tensor *y;        /* contiguous, of the same sizes */
    cfx_runtime *rt;
    const cfxi_floats *floats;
    cfxi_run_type type;   /* CFXI_F32 or CFXI_F64 */
    bool log;
    bool negative;        /* softmin: of -x */
    int64_t n;
    int64_t inner;
    int64_t tiles;        /* of WIDE lanes in `inner` */
} softmax;

/* ---- one lane ------------------------------------------------------------------------------ */

/* y may be x. NaN makes the sum one, and so all results. */
static void float_lane(const softmax *s, float *y, const float *x)
{
    const cfxi_floats *f = s->floats;
    const float most = f->peak(x, s->n);
    double sum = 0;
    for (int64_t at = 0; at < s->n; at += CFXI_RUN) {
        const int64_t n = s->n - at < CFXI_RUN ? s->n - at : CFXI_RUN;
        sum += f->exponentials(s->log ? NULL : y + at, x + at, n, 1, most);
    }
    if (!s->log) {
        f->rows.scale(y, y, s->n, 1 / sum, 0);
        return;
    }
    f->rows.scale(y, x, s->n, 1, -most);  /* not both at once: x and most may be large */
    f->rows.scale(y, y, s->n, 1, -log(sum));
}

static void double_lane(const softmax *s, double *y, const double *x)
{
    double most = x[0];
    double sum = 0;
    for (int64_t i = 1; i < s->n; i++)
        most = x[i] > most || x[i] != x[i] ? x[i] : most;
    for (int64_t i = 0; i < s->n; i++) {
        y[i] = x[i] - most;
        double e = exp(y[i]);
        sum += e;
        if (!s->log)
            y[i] = e;
    }
    double shift_by = log(sum);
    for (int64_t i = 0; i < s->n; i++)
        y[i] = s->log ? y[i] - shift_by : y[i] / sum;
}

static void negate(const softmax *s, void *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (s->type == CFXI_F32)
            ((float *)x)[i] = -((float *)x)[i];
        else
            ((double *)x)[i] = -((double *)x)[i];
    }
}

static void one_lane(const softmax *s, int64_t lane, void *buf)
{
    cfx_dtype from = (cfx_dtype)s->x->dtype;
    cfx_dtype to = (cfx_dtype)s->y->dtype;
    int64_t step = (int64_t)cfx_dtype_size(from);
    int64_t out_step = (int64_t)cfx_dtype_size(to);
    char *out = s->y->data + lane * s->n * out_step;
    void *y = to == cfxi_reduce_run_dtype(s->type) ? (void *)out : buf;
    const void *x = cfxi_reduce_read_run(s->rt->isa, s->type, buf, from,
                                         s->x->data + lane * s->n * step, step, s->n);
    if (s->negative) {
        if (x != buf)
            memcpy(buf, x, (size_t)s->n * cfxi_reduce_run_size(s->type));
        negate(s, buf, s->n);
        x = buf;
    }
    if (s->type == CFXI_F32)
        float_lane(s, y, x);
    else
        double_lane(s, y, x);
    if (y == buf)
        cfxi_reduce_store_run(s->rt->isa, s->type, y, to, out, out_step, s->n);
}

/* ---- lanes side by side -------------------------------------------------------------------- */

#define ROWS(x, i) ((x) + (i) * WIDE)

/* x is [n][WIDE]. */
static void float_rows(const softmax *s, float *x)
{
    const cfxi_floats *f = s->floats;
    float by[WIDE];
    float part[CFXI_RUN];
    double sum[WIDE] = {0};
    memcpy(by, x, sizeof by);
    for (int64_t i = 1; i < s->n; i++)
        f->most_row(by, ROWS(x, i), WIDE);
    for (int64_t i = 0; i < s->n; i++)
        f->shift_each(ROWS(x, i), by, WIDE);
    for (int64_t at = 0; at < s->n * WIDE; at += CFXI_RUN) {
        int64_t n = s->n * WIDE - at < CFXI_RUN ? s->n * WIDE - at : CFXI_RUN;
        float *to = s->log ? part : x + at;
        cfxi_elementwise_exp_f32(s->rt, n, x + at, to);
        for (int64_t i = 0; i < n; i += WIDE)
            f->add(sum, to + i, WIDE);
    }
    for (int j = 0; j < WIDE; j++)
        by[j] = (float)(s->log ? log(sum[j]) : 1 / sum[j]);
    for (int64_t i = 0; i < s->n; i++) {
        if (s->log)
            f->shift_each(ROWS(x, i), by, WIDE);
        else
            f->scale_each(ROWS(x, i), by, WIDE);
    }
}

static void double_rows(const softmax *s, double *x, double *lane)
{
    for (int j = 0; j < WIDE; j++) {
        for (int64_t i = 0; i < s->n; i++)
            lane[i] = ROWS(x, i)[j];
        double_lane(s, lane, lane);
        for (int64_t i = 0; i < s->n; i++)
            ROWS(x, i)[j] = lane[i];
    }
}

static void one_tile(const softmax *s, int64_t tile, char *buf)
{
    cfx_dtype from = (cfx_dtype)s->x->dtype;
    cfx_dtype to = (cfx_dtype)s->y->dtype;
    int64_t step = (int64_t)cfx_dtype_size(from);
    int64_t out_step = (int64_t)cfx_dtype_size(to);
    int64_t column = tile % s->tiles * WIDE;
    int64_t first = tile / s->tiles * s->n * s->inner + column;
    int64_t width = s->inner - column < WIDE ? s->inner - column : WIDE;
    size_t row = WIDE * cfxi_reduce_run_size(s->type);
    for (int64_t i = 0; i < s->n; i++) {
        char *to_row = buf + (size_t)i * row;
        if (width < WIDE)
            memset(to_row, 0, row);
        cfxi_reduce_load_run(s->rt->isa, s->type, to_row, from,
                             s->x->data + (first + i * s->inner) * step, step, width);
        if (s->negative)
            negate(s, to_row, width);
    }
    if (s->type == CFXI_F32)
        float_rows(s, (float *)buf);
    else
        double_rows(s, (double *)buf, (double *)(buf + (size_t)s->n * row));
    for (int64_t i = 0; i < s->n; i++)
        cfxi_reduce_store_run(s->rt->isa, s->type, buf + (size_t)i * row, to,
                              s->y->data + (first + i * s->inner) * out_step, out_step, width);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static void some_tiles(void *ctx, char *const at[], void *scratch, int64_t i)
{
    const softmax *s = ctx;
    (void)at;
    if (s->inner == 1)
        one_lane(s, i, scratch);
    else
        one_tile(s, i, scratch);
}

static cfx_status softmax_run(cfxi_call *c, const cfx_tensor *x, bool log, bool negative)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), x->ndim, &dim));
    softmax s = {.x = x, .y = y, .rt = c->rt, .floats = cfxi_reduce_floats_of(c->rt->isa),
                 .log = log, .negative = negative, .n = 1, .inner = 1,
                 .type = cfxi_reduce_run_type_of((cfx_dtype)y->dtype)};
    if (cfxi_tensor_numel(x) == 0)
        return CFX_OK;
    if (x->ndim) {
        s.n = x->size[dim];
        for (size_t d = dim + 1; d < x->ndim; d++)
            s.inner *= x->size[d];
    }
    s.tiles = s.inner == 1 ? 1 : (s.inner + WIDE - 1) / WIDE;
    int64_t width = s.inner == 1 ? 1 : WIDE;
    size_t scratch;
    if (!cfxi_base_mul_size((size_t)s.n, (size_t)(width + 1) * cfxi_reduce_run_size(s.type), 0,
                            &scratch))
        return cfxi_base_nomem(c->err);
    int64_t outer = cfxi_tensor_numel(x) / s.n / s.inner;
    /* Tiles are numbered, not placed: a header alone says how many there are. */
    cfx_tensor count = {.ndim = 1, .size = {outer * s.tiles}};
    cfx_tensor *counts[] = {&count};
    return cfxi_reduce_lanes(c, counts, 1, CFX_MAX_DIMS, 8 * s.n * width, scratch, some_tiles, &s);
}

static cfx_status softmax_kernel(cfxi_call *c, bool log, bool negative)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_dtype to = (cfx_dtype)cfxi_rt_result_at(c, 0)->dtype;
    bool as_it_is = cfx_dtype_is_float((cfx_dtype)x->dtype) && cfx_tensor_is_contiguous(x);
    cfx_tensor *dense =
        as_it_is ? cfx_tensor_retain((cfx_tensor *)x) : cfxi_rt_contiguous(c, x, to);
    if (!dense)
        return c->err->status;
    cfx_status status = softmax_run(c, dense, log, negative);
    cfx_tensor_release(dense);
    return status;
}

static cfx_status softmax_rule(cfxi_call *c, cfx_dtype dtype)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t dim;
    if (!cfx_dtype_is_float(dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s; pass a dtype",
                         cfx_dtype_name(dtype));
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), x->ndim, &dim));
    return cfxi_rt_result(c, 0, dtype, x->size, x->ndim);
}

/* (self, dim, dtype) */
cfx_status cfxi_rule_softmax(cfxi_call *c)
{
    return softmax_rule(c, cfxi_rt_dtype_or(c, 2, (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype));
}

/* (self, dim, half_to_float) */
cfx_status cfxi_rule__softmax(cfxi_call *c)
{
    cfx_dtype dtype = (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype;
    if (cfxi_rt_bool(c, 2))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "softmax with half to float conversion is not supported on CPU");
    return softmax_rule(c, dtype);
}

cfx_status cfxi_kernel_softmax(cfxi_call *c) { return softmax_kernel(c, false, false); }
cfx_status cfxi_kernel_log_softmax(cfxi_call *c) { return softmax_kernel(c, true, false); }
cfx_status cfxi_kernel__softmax(cfxi_call *c) { return softmax_kernel(c, false, false); }
cfx_status cfxi_kernel__log_softmax(cfxi_call *c) { return softmax_kernel(c, true, false); }

/* Integers are negated as such, and wrap around. */
cfx_status cfxi_kernel_softmin(cfxi_call *c)
{
    if (cfx_dtype_is_float(cfx_tensor_dtype(cfxi_rt_tensor(c, 0))))
        return softmax_kernel(c, false, true);
    cfx_tensor *less = cfxi_rt_sub_tensor(c, CFX_OPID_neg, c->args, 1);
    cfx_tensor *dense =
        less ? cfxi_rt_contiguous(c, less, cfx_tensor_dtype(cfxi_rt_result_at(c, 0))) : NULL;
    cfx_status status = dense ? softmax_run(c, dense, false, false) : c->err->status;
    cfx_tensor_release(less);
    cfx_tensor_release(dense);
    return status;
}
