/* search.c - places in sorted sequences, counts in bins: searchsorted, bucketize, histc, bincount,
 * isin. */
#include "sort_impl.h"

#include <math.h>

/* ---- searchsorted -------------------------------------------------------------------------- */

typedef struct search {
    const cfx_tensor *sequence;  /* contiguous, of type `type` */
    const cfx_tensor *values;    /* likewise */
    const int64_t *sorter;       /* NULL: it is sorted as it lies */
    cfx_tensor *out;
    cfxi_run_type type;
    bool right;
    int64_t length;              /* of a sequence */
    int64_t each;                /* values for each sequence; all of them if there is one */
} search;

static bool goes_after(const search *s, int64_t at, int64_t value)
{
    const void *x = s->sequence->data;
    const void *v = s->values->data;
#define GOES(type)                                                                                 \
    (s->right ? !(((const type *)x)[at] > ((const type *)v)[value])                                \
              : !(((const type *)x)[at] >= ((const type *)v)[value]))
    switch (s->type) {
    case CFXI_F32: return GOES(float);
    case CFXI_F64: return GOES(double);
    case CFXI_I64:
    case CFXI_C128: break;
    }
    return GOES(int64_t);
}

static void search_some(void *ctx, int64_t begin, int64_t end)
{
    const search *s = ctx;
    cfx_dtype dtype = (cfx_dtype)s->out->dtype;
    size_t size = cfx_dtype_size(dtype);
    for (int64_t i = begin; i < end; i++) {
        int64_t base = i / s->each * s->length;
        int64_t low = 0;
        int64_t high = s->length;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            int64_t at = s->sorter ? s->sorter[base + middle] : middle;
            if (goes_after(s, base + at, i))
                low = middle + 1;
            else
                high = middle;
        }
        cfxi_tensor_store_int(dtype, s->out->data + (size_t)i * size, low);
    }
}

static cfx_status check_sorter(cfxi_call *c, const cfx_tensor *sorter, int64_t length)
{
    const int64_t *at = (const int64_t *)sorter->data;
    for (int64_t i = 0, n = cfxi_tensor_numel(sorter); i < n; i++)
        if (at[i] < 0 || at[i] >= length)
            return cfxi_fail(c, CFX_E_SHAPE, "sorter index out of range");
    return CFX_OK;
}

static cfx_status search_run(cfxi_call *c, const cfx_tensor *sequence, const cfx_tensor *values,
                             const cfx_tensor *sorter, bool right)
{
    cfx_tensor *out = cfxi_rt_result_at(c, 0);
    cfx_dtype common =
        cfxi_tensor_promote_types((cfx_dtype)sequence->dtype, (cfx_dtype)values->dtype);
    search s = {.out = out, .type = cfxi_reduce_run_type_of(common), .right = right};
    cfx_dtype dtype = cfxi_reduce_run_dtype(s.type);
    cfx_status status = CFX_OK;
    cfx_tensor *order = NULL;
    cfx_tensor *x = cfxi_rt_contiguous(c, sequence, dtype);
    cfx_tensor *v = cfxi_rt_contiguous(c, values, dtype);
    if (sorter)
        order = cfxi_rt_contiguous(c, sorter, CFX_DTYPE_INT64);
    if (!x || !v || (sorter && !order)) {
        status = c->err->status;
        goto done;
    }
    int64_t n = cfxi_tensor_numel(v);
    s.sequence = x;
    s.values = v;
    s.length = x->ndim ? x->size[x->ndim - 1] : 1;
    s.each = x->ndim == 1 || v->ndim == 0 ? (n ? n : 1) : v->size[v->ndim - 1];
    if (order) {
        status = check_sorter(c, order, s.length);
        s.sorter = (const int64_t *)order->data;
    }
    if (status == CFX_OK)
        cfxi_rt_parallel(c->rt, n, 1024, search_some, &s);
done:
    cfx_tensor_release(x);
    cfx_tensor_release(v);
    cfx_tensor_release(order);
    return status;
}

static cfx_status check_search(cfxi_call *c, const cfx_tensor *sequence, const cfx_tensor *values)
{
    if (cfx_dtype_is_complex((cfx_dtype)sequence->dtype) ||
        cfx_dtype_is_complex((cfx_dtype)values->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for complex numbers");
    if (!values->number && sequence->dtype != values->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "boundary tensor and input tensor should have same dtype, "
                         "but got boundary tensor dtype %s and input tensor dtype %s",
                         cfx_dtype_name((cfx_dtype)sequence->dtype),
                         cfx_dtype_name((cfx_dtype)values->dtype));
    if (values->ndim == 0 && sequence->ndim != 1)
        return cfxi_fail(c, CFX_E_SHAPE, "input value can be a scalar only when boundaries tensor "
                         "dimension is 1");
    if (sequence->ndim == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "boundaries tensor should have positive dimension");
    if (sequence->ndim == 1)
        return CFX_OK;
    bool same = sequence->ndim == values->ndim;
    for (size_t d = 0; same && d + 1 < sequence->ndim; d++)
        same = cfxi_rt_same_size(c, sequence->size[d], values->size[d]);
    if (!same)
        return cfxi_fail(c, CFX_E_SHAPE, "boundaries tensor should be 1 dimension or the first N-1 "
                         "dimensions of boundaries tensor and input value tensor must match");
    return CFX_OK;
}

/* (sorted_sequence, self, out_int32, right, side, sorter) */
cfx_status cfxi_rule_searchsorted(cfxi_call *c)
{
    const cfx_tensor *values = cfxi_rt_tensor(c, 1);
    const cfx_tensor *sorter = cfxi_rt_tensor(c, 5);
    const cfx_tensor *sequence = cfxi_rt_tensor(c, 0);
    const char *side = cfxi_rt_str(c, 4);
    CFX_TRY(check_search(c, sequence, values));
    if (side && strcmp(side, "left") != 0 && strcmp(side, "right") != 0)
        return cfxi_fail(c, CFX_E_SHAPE, "side can only be 'left' or 'right' but got %s", side);
    if (side && cfxi_rt_bool(c, 3) && strcmp(side, "left") == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "side and right can't be set to opposites, got side of "
                         "left while right was True");
    bool fits = !sorter || sorter->ndim == sequence->ndim;
    for (size_t d = 0; sorter && fits && d < sequence->ndim; d++)
        fits = cfxi_rt_same_size(c, sorter->size[d], sequence->size[d]);
    if (!fits)
        return cfxi_fail(c, CFX_E_SHAPE, "boundary and sorter must have the same size");
    if (sorter && sorter->dtype != CFX_DTYPE_INT64)
        return cfxi_fail(c, CFX_E_SHAPE, "sorter must be a tensor of long dtype but got dtype %s",
                         cfx_dtype_name((cfx_dtype)sorter->dtype));
    return cfxi_rt_result(c, 0, cfxi_rt_bool(c, 2) ? CFX_DTYPE_INT32 : CFX_DTYPE_INT64,
                          values->size, values->ndim);
}

cfx_status cfxi_kernel_searchsorted(cfxi_call *c)
{
    const char *side = cfxi_rt_str(c, 4);
    bool right = cfxi_rt_bool(c, 3) || (side && strcmp(side, "right") == 0);
    return search_run(c, cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1), cfxi_rt_tensor(c, 5), right);
}

/* (self, boundaries, out_int32, right) */
cfx_status cfxi_rule_bucketize(cfxi_call *c)
{
    const cfx_tensor *values = cfxi_rt_tensor(c, 0);
    const cfx_tensor *boundaries = cfxi_rt_tensor(c, 1);
    if (boundaries->ndim != 1)
        return cfxi_fail(c, CFX_E_SHAPE, "boundaries tensor must be 1 dimension, but got dim(%u)",
                         boundaries->ndim);
    CFX_TRY(check_search(c, boundaries, values));
    return cfxi_rt_result(c, 0, cfxi_rt_bool(c, 2) ? CFX_DTYPE_INT32 : CFX_DTYPE_INT64,
                          values->size, values->ndim);
}

cfx_status cfxi_kernel_bucketize(cfxi_call *c)
{
    return search_run(c, cfxi_rt_tensor(c, 1), cfxi_rt_tensor(c, 0), NULL, cfxi_rt_bool(c, 3));
}

/* ---- histc --------------------------------------------------------------------------------- */

/* (self, bins, min, max) */
cfx_status cfxi_rule_histc(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t bins;
    CFX_TRY(cfxi_rt_number(c, 1, &bins));
    if (cfx_dtype_is_complex((cfx_dtype)x->dtype) || x->dtype == CFX_DTYPE_BOOL)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s",
                         cfx_dtype_name((cfx_dtype)x->dtype));
    if (bins <= 0)
        return cfxi_fail(c, CFX_E_SHAPE, "torch.histc(): bins must be > 0");
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, &bins, 1);
}

/* The range of the elements where none is given. */
static void histc_range(const double *x, int64_t n, double *low, double *high)
{
    if (*low == *high && n) {
        *low = *high = x[0];
        for (int64_t i = 1; i < n; i++) {
            *low = x[i] < *low || x[i] != x[i] ? x[i] : *low;
            *high = x[i] > *high || x[i] != x[i] ? x[i] : *high;
        }
    }
    if (*low == *high) {
        *low -= 1;
        *high += 1;
    }
}

static cfx_status histc_count(cfxi_call *c, const double *x, int64_t n)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    double low = cfxi_rt_scalar(c, 2);
    double high = cfxi_rt_scalar(c, 3);
    int64_t bins = y->size[0];
    histc_range(x, n, &low, &high);
    if (!isfinite(low) || !isfinite(high))
        return cfxi_fail(c, CFX_E_SHAPE, "torch.histc: range of [%g, %g] is not finite", low, high);
    if (low > high)
        return cfxi_fail(c, CFX_E_SHAPE, "torch.histc: max must be larger than min");
    int64_t *count = cfxi_rt_scratch(c->rt, (size_t)bins * sizeof *count);
    if (!count)
        return cfxi_base_nomem(c->err);
    memset(count, 0, (size_t)bins * sizeof *count);
    for (int64_t i = 0; i < n; i++) {
        if (!(x[i] >= low && x[i] <= high))
            continue;
        const double place = (x[i] - low) / (high - low) * (double)bins;
        count[place < (double)bins ? (int64_t)place : bins - 1]++;  /* the last if not a number */
    }
    cfxi_reduce_store_run(c->rt->isa, CFXI_I64, count, (cfx_dtype)y->dtype, y->data,
                          (int64_t)cfxi_tensor_itemsize(y), bins);
    cfxi_rt_scratch_free(c->rt, count);
    return CFX_OK;
}

cfx_status cfxi_kernel_histc(cfxi_call *c)
{
    cfx_tensor *x = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 0), CFX_DTYPE_FLOAT64);
    if (!x)
        return c->err->status;
    cfx_status status = histc_count(c, (const double *)x->data, cfxi_tensor_numel(x));
    cfx_tensor_release(x);
    return status;
}

/* ---- bincount ------------------------------------------------------------------------------ */

/* (self, weights, minlength) */
cfx_status cfxi_rule_bincount(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *weights = cfxi_rt_tensor(c, 1);
    int64_t size = cfxi_rt_fresh(c);
    if (x->ndim != 1 || !cfx_dtype_is_integer((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "bincount only supports 1-d non-negative integral inputs.");
    if (weights && (weights->ndim != 1 || !cfxi_rt_same_size(c, weights->size[0], x->size[0])))
        return cfxi_fail(c, CFX_E_SHAPE, "weights should be 1-d and have the same length as input");
    if (cfxi_rt_int(c, 2) < 0)
        return cfxi_fail(c, CFX_E_SHAPE, "minlength should be >= 0");
    cfx_dtype dtype = !weights                               ? CFX_DTYPE_INT64
                      : weights->dtype == CFX_DTYPE_FLOAT32  ? CFX_DTYPE_FLOAT32
                                                             : CFX_DTYPE_FLOAT64;
    return cfxi_rt_result(c, 0, dtype, &size, 1);
}

static cfx_status count_bins(cfxi_call *c, const int64_t *x, int64_t n, const double *weights)
{
    int64_t size = 0;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] < 0 || x[i] == INT64_MAX)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "bincount only supports 1-d non-negative integral inputs.");
        size = x[i] >= size ? x[i] + 1 : size;
    }
    size = size < cfxi_rt_int(c, 2) ? cfxi_rt_int(c, 2) : size;
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)cfxi_rt_result_at(c, 0)->dtype, &size, 1));
    CFX_TRY(cfxi_rt_result_allocate(c, 0));
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    memset(y->data, 0, (size_t)size * cfxi_tensor_itemsize(y));
    for (int64_t i = 0; i < n; i++) {
        if (!weights)
            ((int64_t *)y->data)[x[i]]++;
        else if (y->dtype == CFX_DTYPE_FLOAT32)
            ((float *)y->data)[x[i]] += (float)weights[i];
        else
            ((double *)y->data)[x[i]] += weights[i];
    }
    return CFX_OK;
}

cfx_status cfxi_kernel_bincount(cfxi_call *c)
{
    const cfx_tensor *w = cfxi_rt_tensor(c, 1);
    cfx_tensor *x = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 0), CFX_DTYPE_INT64);
    cfx_tensor *weights = x && w ? cfxi_rt_contiguous(c, w, CFX_DTYPE_FLOAT64) : NULL;
    cfx_status status = x && (weights || !w) ? CFX_OK : c->err->status;
    if (status == CFX_OK)
        status = count_bins(c, (const int64_t *)x->data, x->size[0],
                            weights ? (const double *)weights->data : NULL);
    cfx_tensor_release(x);
    cfx_tensor_release(weights);
    return status;
}
