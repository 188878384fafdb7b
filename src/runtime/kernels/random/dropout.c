/* dropout.c - elements, or whole channels, replaced at random: dropout and its kin.
 *
 * Outside training, and where nothing is dropped, the result is the argument itself. Which elements
 * go depends on their place in the result's memory and the generator alone. */
#include "runtime/kernels/reduce/reduce_impl.h"

#include <math.h>

/* ---- rules --------------------------------------------------------------------------------- */

static cfx_status check_probability(cfxi_call *c)
{
    double p = cfxi_rt_float(c, 1);
    if (!(p >= 0 && p <= 1))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "dropout probability has to be between 0 and 1, but got %g", p);
    return CFX_OK;
}

static cfx_status check_float(cfxi_call *c, const cfx_tensor *x)
{
    if (cfx_dtype_is_float((cfx_dtype)x->dtype) || cfx_dtype_is_complex((cfx_dtype)x->dtype))
        return CFX_OK;
    return cfxi_fail(c, CFX_E_SHAPE,
                     "result type Float can't be cast to the desired output type %s",
                     cfx_dtype_name((cfx_dtype)x->dtype));
}

cfx_status cfxi_rule_dropout(cfxi_call *c)
{
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    CFX_TRY(check_probability(c));
    if (!cfxi_rt_bool(c, 2) || cfxi_rt_float(c, 1) == 0) {
        cfxi_rt_result_datum(c, 0, cfx_datum_tensor(cfx_tensor_retain(x)));
        return CFX_OK;
    }
    bool features = c->op == CFX_OPID_feature_dropout || c->op == CFX_OPID_feature_alpha_dropout;
    if (features && x->ndim < 2)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "Feature dropout requires at least 2 dimensions in the input");
    CFX_TRY(check_float(c, x));
    return cfxi_rt_result_like(c, 0, (cfx_dtype)x->dtype, x);
}

/* (input, p, train: None is true) -> (what is left, where) */
cfx_status cfxi_rule_native_dropout(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (cfxi_rt_is_none(c, 2) || cfxi_rt_bool(c, 2)) {
        CFX_TRY(check_probability(c));
        CFX_TRY(check_float(c, x));
    }
    CFX_TRY(cfxi_rt_result_like(c, 0, (cfx_dtype)x->dtype, x));
    return cfxi_rt_result_like(c, 1, CFX_DTYPE_BOOL, x);
}

/* ---- kernels ------------------------------------------------------------------------------- */

/* What is kept becomes x * scale + shift, what is dropped x * 0 * scale + other (so NaN stays). */
typedef struct dropping {
    cfx_tensor *y;       /* holds the argument */
    char *mask;          /* NULL, or receives what was kept, in the order of y's memory */
    cfxi_random random;
    double p;
    double scale;
    double shift;
    double other;
    int64_t inner;       /* elements that share a number, of a contiguous y */
} dropping;

static void drop_element(const dropping *d, int64_t i, bool keep)
{
    cfx_dtype dtype = (cfx_dtype)d->y->dtype;
    char *at = d->y->data + i * (int64_t)cfx_dtype_size(dtype);
    double v[2];
    cfxi_tensor_load_complex(dtype, at, v);
    double by = keep ? d->scale : 0;
    v[0] = v[0] * by + (keep ? d->shift : d->other);
    v[1] *= by;
    cfxi_tensor_store_complex(dtype, at, v);
}

static void drop_floats(const dropping *d, int64_t begin, int64_t end)
{
    float *y = (float *)d->y->data;
    for (int64_t i = begin; i < end; i++) {
        bool keep = cfxi_rt_random_uniform(d->random, i / d->inner) >= d->p;
        y[i] = y[i] * (keep ? (float)d->scale : 0) + (float)(keep ? d->shift : d->other);
        if (d->mask)
            d->mask[i] = keep;
    }
}

static void drop_some(void *ctx, int64_t begin, int64_t end)
{
    const dropping *d = ctx;
    if (d->y->dtype == CFX_DTYPE_FLOAT32) {
        drop_floats(d, begin, end);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        bool keep = cfxi_rt_random_uniform(d->random, i / d->inner) >= d->p;
        drop_element(d, i, keep);
        if (d->mask)
            d->mask[i] = keep;
    }
}

static cfx_status drop(cfxi_call *c, dropping *d)
{
    int64_t n = cfxi_tensor_numel(d->y);
    CFX_TRY(cfxi_rt_copy(c->rt, d->y, cfxi_rt_tensor(c, 0), c->err));
    d->random = cfxi_rt_random_reserve(c->rt, n);
    cfxi_rt_parallel(c->rt, n, 4096, drop_some, d);
    return CFX_OK;
}

/* Channels are numbered in the logical order: the result is contiguous while it is made. */
static cfx_status drop_features(cfxi_call *c, dropping *d)
{
    const cfx_tensor *y = d->y;
    cfx_tensor *dense = cfx_tensor_new((cfx_dtype)y->dtype, y->size, y->ndim, c->rt->allocator,
                                       c->err);
    if (!dense)
        return c->err->status;
    cfx_tensor *result = d->y;
    d->y = dense;
    d->inner = 1;
    for (size_t i = 2; i < y->ndim; i++)
        d->inner *= y->size[i];
    cfx_status status = d->inner ? drop(c, d) : CFX_OK;
    if (status == CFX_OK)
        status = cfxi_rt_copy(c->rt, result, dense, c->err);
    cfx_tensor_release(dense);
    return status;
}

static cfx_status dropout(cfxi_call *c, bool alpha, bool features)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    double p = cfxi_rt_float(c, 1);
    if (y == cfxi_rt_tensor(c, 0))
        return CFX_OK;
    CFX_TRY(cfxi_rt_result_allocate(c, 0));
    dropping d = {.y = y, .p = p, .scale = p < 1 ? 1 / (1 - p) : 0, .inner = 1};
    if (alpha && p < 1) {
        const double low = -1.7580993408473766;  /* SELU's limit to the left */
        double a = 1 / sqrt((low * low * p + 1) * (1 - p));
        d.scale = a;
        d.shift = -a * low * p;
        d.other = a * low + d.shift;
    }
    return features ? drop_features(c, &d) : drop(c, &d);
}

cfx_status cfxi_kernel_dropout(cfxi_call *c) { return dropout(c, false, false); }
cfx_status cfxi_kernel_alpha_dropout(cfxi_call *c) { return dropout(c, true, false); }
cfx_status cfxi_kernel_feature_dropout(cfxi_call *c) { return dropout(c, false, true); }
cfx_status cfxi_kernel_feature_alpha_dropout(cfxi_call *c) { return dropout(c, true, true); }

cfx_status cfxi_kernel_native_dropout(cfxi_call *c)
{
    cfx_tensor *mask = cfxi_rt_result_at(c, 1);
    bool train = cfxi_rt_is_none(c, 2) || cfxi_rt_bool(c, 2);
    double p = cfxi_rt_float(c, 1);
    if (!train) {
        memset(mask->data, 1, (size_t)cfxi_tensor_numel(mask));
        return cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), cfxi_rt_tensor(c, 0), c->err);
    }
    dropping d = {.y = cfxi_rt_result_at(c, 0), .mask = mask->data, .p = p,
                  .scale = p < 1 ? 1 / (1 - p) : 0, .inner = 1};
    return drop(c, &d);
}
