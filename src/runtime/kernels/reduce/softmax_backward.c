/* softmax_backward.c - gradients of softmax and log_softmax, from their results.
 *
 * Lanes are computed as rows: a dimension that is not the last is brought there by a copy.
 */
#include "runtime/kernels/elementwise/elementwise_impl.h"
#include "float_rows.h"
#include "runtime/spatial.h"

#include <math.h>

enum { GRAD, OUTPUT, DIM, INPUT_DTYPE };
enum { PART = 256 };  /* elements that exp is computed of at a time */

cfx_status cfxi_rule_softmax_backward(cfxi_call *c)
{
    const cfx_tensor *g = cfxi_rt_tensor(c, GRAD);
    const cfx_tensor *y = cfxi_rt_tensor(c, OUTPUT);
    const cfx_dtype type = cfxi_rt_dtype_or(c, INPUT_DTYPE, (cfx_dtype)g->dtype);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, DIM), g->ndim, &dim));
    if (!cfx_dtype_is_float((cfx_dtype)g->dtype) || !cfx_dtype_is_float(type))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s",
                         cfx_dtype_name(cfx_dtype_is_float(type) ? (cfx_dtype)g->dtype : type));
    bool fits = g->ndim == y->ndim && g->dtype == y->dtype;
    for (size_t d = 0; fits && d < g->ndim; d++)
        fits = cfxi_rt_same_size(c, g->size[d], y->size[d]);
    if (!fits)
        return cfxi_fail(c, CFX_E_SHAPE, "the gradient must have the type and the sizes of the "
                         "output, [%s]", cfxi_rt_shape_of(y).text);
    return cfxi_rt_result(c, 0, type, g->size, g->ndim);
}

typedef struct lanes {
    cfxi_float_rows rows;
    bool log;
    int64_t n;
    int64_t item;
    const char *g;
    const char *y;
    char *dx;
} lanes;

/* g - exp(y) * sum */
static void log_lane(const lanes *s, char *dx, const char *g, const char *y, double sum)
{
    const cfxi_rows *rows = cfxi_reduce_rows(&s->rows);
    double room[PART];  /* for elements of either type */
    for (int64_t at = 0; at < s->n; at += PART) {
        const int64_t n = s->n - at < PART ? s->n - at : PART;
        const char *from = y + at * s->item;
        if (s->rows.type == CFX_DTYPE_FLOAT32)
            cfxi_elementwise_exp_f32(s->rows.rt, n, (const float *)from, (float *)room);
        else
            for (int64_t i = 0; i < n; i++)
                room[i] = exp(((const double *)from)[i]);
        rows->blend(dx + at * s->item, g + at * s->item, room, NULL, n, 0, 1, -sum, 0);
    }
}

static void some_lanes(void *ctx, int64_t begin, int64_t end)
{
    const lanes *s = ctx;
    const cfxi_rows *rows = cfxi_reduce_rows(&s->rows);
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = i * s->n * s->item;
        double sums[2] = {0, 0};
        rows->dots(s->g + at, s->y + at, NULL, s->n, 0, sums);
        if (s->log)
            log_lane(s, s->dx + at, s->g + at, s->y + at, sums[0]);
        else
            rows->affine(s->dx + at, s->g + at, s->n, sums[1], 1, s->y + at, NULL);
    }
}

/* With dimension `dim` as the last. */
static cfx_tensor turned(const cfx_tensor *t, size_t dim)
{
    cfx_tensor header = *t;  /* never released */
    for (size_t d = dim; d + 1 < t->ndim; d++) {
        header.size[d] = t->size[d + 1];
        header.stride[d] = t->stride[d + 1];
    }
    if (t->ndim) {
        header.size[t->ndim - 1] = t->size[dim];
        header.stride[t->ndim - 1] = t->stride[dim];
    }
    return header;
}

static cfx_status gradient(cfxi_call *c, bool log)
{
    cfx_tensor *result = cfxi_rt_result_at(c, 0);
    const cfx_tensor *like = cfxi_rt_tensor(c, GRAD);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, DIM), like->ndim, &dim));
    const cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)like->dtype);
    const cfx_tensor from[2] = {turned(like, dim), turned(cfxi_rt_tensor(c, OUTPUT), dim)};
    cfx_tensor to = turned(result, dim);
    const bool direct = result->dtype == type && dim + 1 >= like->ndim;
    lanes s = {.rows = {c->rt, type}, .log = log, .item = (int64_t)cfx_dtype_size(type),
               .n = like->ndim ? like->size[dim] : 1};
    cfx_tensor *g = cfxi_rt_contiguous(c, &from[0], type);
    cfx_tensor *y = g ? cfxi_rt_contiguous(c, &from[1], type) : NULL;
    cfx_tensor *dx = !y       ? NULL
                     : direct ? cfx_tensor_retain(result)
                              : cfx_tensor_new(type, to.size, to.ndim, c->rt->allocator, c->err);
    cfx_status status = dx ? CFX_OK : c->err->status;
    if (dx && s.n > 0) {
        s.g = g->data;
        s.y = y->data;
        s.dx = dx->data;
        cfxi_rt_parallel(c->rt, cfxi_tensor_numel(g) / s.n, 1 + 16384 / (s.n + 1), some_lanes, &s);
    }
    if (dx && !direct)
        status = cfxi_rt_copy(c->rt, &to, dx, c->err);
    cfx_tensor_release(dx);
    cfx_tensor_release(y);
    cfx_tensor_release(g);
    return status;
}

cfx_status cfxi_kernel__softmax_backward_data(cfxi_call *c) { return gradient(c, false); }
cfx_status cfxi_kernel__log_softmax_backward_data(cfxi_call *c) { return gradient(c, true); }
