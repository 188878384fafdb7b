/* quantile.c - quantiles of lanes, with every interpolation that PyTorch has. */
#include "sort_impl.h"

#include <math.h>

static const char *const interpolations[] = {"linear", "lower", "higher", "midpoint", "nearest"};
enum { LINEAR, LOWER, HIGHER, MIDPOINT, NEAREST, INTERPOLATIONS };

/* (self, q, dim, keepdim, interpolation) */
static int interpolation_of(const cfxi_call *c)
{
    int i = 0;
    while (i < INTERPOLATIONS && strcmp(cfxi_rt_str(c, 4), interpolations[i]) != 0)
        i++;
    return i;
}

/* With several q their dimension comes first, but changes fastest in memory. */
cfx_status cfxi_rule_quantile(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *q = cfxi_rt_tensor(c, 1);
    int64_t sizes[CFX_MAX_DIMS + 1];
    uint32_t mask;
    size_t n = 0;
    if (x->dtype != CFX_DTYPE_FLOAT32 && x->dtype != CFX_DTYPE_FLOAT64)
        return cfxi_fail(c, CFX_E_SHAPE, "input tensor must be either float or double dtype");
    if (!q->number && q->dtype != x->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "q tensor must be same dtype as the input tensor");
    if (q->ndim > 1)
        return cfxi_fail(c, CFX_E_SHAPE, "q must be a scalar or 1D tensor");
    if (interpolation_of(c) == INTERPOLATIONS)
        return cfxi_fail(c, CFX_E_SHAPE, "interpolation must be one of linear, lower, higher, "
                         "midpoint or nearest, but got %s", cfxi_rt_str(c, 4));
    CFX_TRY(cfxi_reduce_reduced_dims(c, 2, x->ndim, false, &mask));
    for (size_t d = 0; d < x->ndim; d++)
        if (mask & 1u << d && x->size[d] == 0)
            return cfxi_fail(c, CFX_E_SHAPE, "input tensor must be non-empty");
    if (q->ndim)
        sizes[n++] = q->size[0];
    for (size_t d = 0; d < x->ndim; d++) {
        if (!(mask & 1u << d))
            sizes[n++] = x->size[d];
        else if (cfxi_rt_bool(c, 3))
            sizes[n++] = 1;
    }
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, n));
    if (q->ndim && !c->infer) {
        uint8_t outermost[CFX_MAX_DIMS];
        for (size_t d = 0; d < n; d++)
            outermost[d] = (uint8_t)((d + 1) % n);
        cfxi_tensor_ordered_strides(sizes, n, cfxi_tensor_itemsize(x), outermost,
                                    cfxi_rt_result_at(c, 0)->stride);
    }
    return CFX_OK;
}

typedef struct quantile {
    cfx_runtime *rt;
    cfx_dtype dtype;
    const double *q;
    int64_t num_q;
    int interpolation;
    int64_t n;
    int64_t stride;
    char *out;       /* lanes one after the other, num_q each */
} quantile;

/* In float32 the rank of the last of many elements may be rounded up: there is none behind it. */
static double at_rank(const quantile *k, const char *lane, const cfxi_ranked *x, double rank)
{
    rank = rank < (double)(k->n - 1) ? rank : (double)(k->n - 1);
    int64_t below = (int64_t)rank;
    int64_t above = below + (rank > (double)below);
    double part = rank - (double)below;
    if (k->interpolation == NEAREST)
        below = above = (int64_t)nearbyint(rank);
    else if (k->interpolation == LOWER)
        above = below;
    else if (k->interpolation == HIGHER)
        below = above;
    double a = cfxi_tensor_load_float(k->dtype, lane + x[below].index * k->stride);
    double b = cfxi_tensor_load_float(k->dtype, lane + x[above].index * k->stride);
    if (below == above)
        return a;
    if (k->interpolation == MIDPOINT)
        part = 0.5;
    return part < 0.5 ? a + part * (b - a) : b - (b - a) * (1 - part);
}

static void quantile_lane(void *ctx, char *const at[], void *scratch, int64_t lane)
{
    const quantile *k = ctx;
    cfxi_ranked *x = scratch;
    size_t size = cfx_dtype_size(k->dtype);
    cfxi_reduce_rank(k->rt, x, k->dtype, at[0], k->stride, k->n, false);
    x = cfxi_reduce_sort_ranked(x, x + k->n, k->n);
    bool nan = cfxi_reduce_key_is_nan(k->dtype, x[k->n - 1].key);
    for (int64_t i = 0; i < k->num_q; i++) {
        double rank = k->q[i] * (double)(k->n - 1);
        if (k->dtype == CFX_DTYPE_FLOAT32)
            rank = (float)k->q[i] * (float)(k->n - 1);
        double value = nan || rank != rank ? NAN : at_rank(k, at[0], x, rank);
        cfxi_tensor_store_float(k->dtype, k->out + (size_t)(lane * k->num_q + i) * size, value);
    }
}

/* x is contiguous if all of it is one lane. */
static cfx_status quantile_run(cfxi_call *c, const cfx_tensor *x, const cfx_tensor *q)
{
    quantile k = {.rt = c->rt, .dtype = (cfx_dtype)x->dtype, .q = (const double *)q->data,
                  .num_q = cfxi_tensor_numel(q), .interpolation = interpolation_of(c),
                  .out = cfxi_rt_result_at(c, 0)->data};
    cfx_tensor view = *x;
    size_t dim = 0;
    size_t scratch;
    for (int64_t i = 0; i < k.num_q; i++)
        if (!(k.q[i] >= 0 && k.q[i] <= 1) && k.q[i] == k.q[i])
            return cfxi_fail(c, CFX_E_SHAPE, "q must be in the range [0, 1] but got %g", k.q[i]);
    if (cfxi_rt_is_none(c, 2) || x->ndim == 0) {
        view.ndim = 1;
        view.size[0] = cfxi_tensor_numel(x);
        view.stride[0] = (int64_t)cfxi_tensor_itemsize(x);
    } else {
        CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), x->ndim, &dim));
    }
    cfx_tensor *all[] = {&view};
    k.n = view.size[dim];
    k.stride = view.stride[dim];
    if (!cfxi_reduce_ranked_size(k.n, &scratch))
        return cfxi_base_nomem(c->err);
    return cfxi_reduce_lanes(c, all, 1, dim, 32 * k.n, scratch, quantile_lane, &k);
}

cfx_status cfxi_kernel_quantile(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_dtype dtype = (cfx_dtype)x->dtype;
    bool all = cfxi_rt_is_none(c, 2);
    cfx_tensor *q = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 1), CFX_DTYPE_FLOAT64);
    cfx_tensor *dense = all ? cfxi_rt_contiguous(c, x, dtype) : cfx_tensor_retain((cfx_tensor *)x);
    cfx_status status = q && dense ? quantile_run(c, dense, q) : c->err->status;
    cfx_tensor_release(q);
    cfx_tensor_release(dense);
    return status;
}
