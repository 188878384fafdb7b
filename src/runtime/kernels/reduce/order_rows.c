/* order_rows.c - sort, argsort, topk, kthvalue, median, mode: what the order of a lane says. */
#include "sort_impl.h"

#include <math.h>

/* ---- what they share ----------------------------------------------------------------------- */

typedef struct order {
    cfx_runtime *rt;
    const cfx_tensor *x;
    cfx_tensor *values;   /* NULL: not wanted */
    cfx_tensor *indices;  /* likewise */
    int64_t n;
    int64_t k;
    bool descending;
    int64_t step[3];      /* bytes along the dimension: of x, values, indices */
} order;

static void put(const order *o, char *const at[], int64_t to, int64_t from)
{
    size_t size = cfxi_tensor_itemsize(o->x);
    if (o->values)
        memcpy(at[1] + to * o->step[1], at[0] + from * o->step[0], size);
    if (o->indices)
        memcpy(at[2] + to * o->step[2], &from, sizeof from);
}

static cfx_status order_run(cfxi_call *c, order *o, const cfx_tensor *x, size_t dim,
                            cfxi_lane_fn *fn)
{
    size_t scratch;
    o->rt = c->rt;
    o->x = x;
    o->n = x->ndim ? x->size[dim] : 1;
    /* A lane begins at the same number in each tensor; x stands in for one that is missing. */
    cfx_tensor *all[3] = {(cfx_tensor *)x, o->values, o->indices};
    for (size_t t = 0; t < 3; t++) {
        if (!all[t])
            all[t] = (cfx_tensor *)x;
        o->step[t] = x->ndim ? all[t]->stride[dim] : 0;
    }
    if (!cfxi_reduce_ranked_size(o->n, &scratch))
        return cfxi_base_nomem(c->err);
    return cfxi_reduce_lanes(c, all, 3, dim, 32 * o->n, scratch, fn, o);
}

static cfx_status no_order(cfxi_call *c, const cfx_tensor *x, bool bools_too)
{
    if (!cfx_dtype_is_complex((cfx_dtype)x->dtype) && !(bools_too && x->dtype == CFX_DTYPE_BOOL))
        return CFX_OK;
    return cfxi_fail(c, bools_too ? CFX_E_UNSUPPORTED : CFX_E_SHAPE, "does not support %s dtypes",
                     x->dtype == CFX_DTYPE_BOOL ? "bool" : "complex");
}

/* ---- sort ---------------------------------------------------------------------------------- */

static void sort_lane(void *ctx, char *const at[], void *scratch, int64_t lane)
{
    const order *o = ctx;
    cfxi_ranked *x = scratch;
    (void)lane;
    cfxi_reduce_rank(o->rt, x, (cfx_dtype)o->x->dtype, at[0], o->step[0], o->n, o->descending);
    x = cfxi_reduce_sort_ranked(x, x + o->n, o->n);
    for (int64_t i = 0; i < o->k; i++)
        put(o, at, i, x[i].index);
}

/* Where the rows have `dim`: sort_stable and argsort_stable take `stable` first. */
static size_t sort_dim_arg(const cfxi_call *c)
{
    return c->op == CFX_OPID_sort_stable || c->op == CFX_OPID_argsort_stable ? 2 : 1;
}

cfx_status cfxi_rule_sort(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t dim;
    CFX_TRY(no_order(c, x, false));
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, sort_dim_arg(c)), x->ndim, &dim));
    CFX_TRY(cfxi_rt_result_like(c, 0, (cfx_dtype)x->dtype, x));
    return cfxi_rt_result_like(c, 1, CFX_DTYPE_INT64, x);
}

cfx_status cfxi_rule_argsort(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t dim;
    CFX_TRY(no_order(c, x, false));
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, sort_dim_arg(c)), x->ndim, &dim));
    return cfxi_rt_result_like(c, 0, CFX_DTYPE_INT64, x);
}

static cfx_status sort_kernel(cfxi_call *c, bool values)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t arg = sort_dim_arg(c);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, arg), x->ndim, &dim));
    order o = {.values = values ? cfxi_rt_result_at(c, 0) : NULL,
               .indices = cfxi_rt_result_at(c, values ? 1 : 0),
               .k = x->ndim ? x->size[dim] : 1,
               .descending = cfxi_rt_bool(c, arg + 1)};
    return order_run(c, &o, x, dim, sort_lane);
}

cfx_status cfxi_kernel_sort(cfxi_call *c) { return sort_kernel(c, true); }
cfx_status cfxi_kernel_sort_stable(cfxi_call *c) { return sort_kernel(c, true); }
cfx_status cfxi_kernel_argsort(cfxi_call *c) { return sort_kernel(c, false); }
cfx_status cfxi_kernel_argsort_stable(cfxi_call *c) { return sort_kernel(c, false); }

/* ---- topk ---------------------------------------------------------------------------------- */

static bool after(const cfxi_ranked *a, const cfxi_ranked *b)
{
    return a->key > b->key || (a->key == b->key && a->index > b->index);
}

/* heap[0] is the last in order of n; lets heap[at] sink to its place. */
static void sink(cfxi_ranked *heap, int64_t n, int64_t at)
{
    cfxi_ranked one = heap[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && after(&heap[child + 1], &heap[child]))
            child++;
        if (!after(&heap[child], &one))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = one;
}

/* The k first in order move to the front, the others are lost. */
static void keep_first(cfxi_ranked *x, int64_t n, int64_t k)
{
    for (int64_t i = k / 2; i-- > 0;)
        sink(x, k, i);
    for (int64_t i = k; i < n; i++) {
        if (x[i].key >= x[0].key)
            continue;
        x[0] = x[i];
        sink(x, k, 0);
    }
    for (int64_t i = k - 1; i > 0; i--) {
        cfxi_ranked last = x[0];
        x[0] = x[i];
        x[i] = last;
        sink(x, i, 0);
    }
}

static void topk_lane(void *ctx, char *const at[], void *scratch, int64_t lane)
{
    const order *o = ctx;
    cfxi_ranked *x = scratch;
    if (o->k > o->n / 8) {
        sort_lane(ctx, at, scratch, lane);
        return;
    }
    if (o->k == 0)
        return;
    cfxi_reduce_rank(o->rt, x, (cfx_dtype)o->x->dtype, at[0], o->step[0], o->n, o->descending);
    keep_first(x, o->n, o->k);
    for (int64_t i = 0; i < o->k; i++)
        put(o, at, i, x[i].index);
}

cfx_status cfxi_rule_topk(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t sizes[CFX_MAX_DIMS];
    int64_t k = cfxi_rt_int(c, 1);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), x->ndim, &dim));
    int64_t n = x->ndim ? x->size[dim] : 1;
    if (!cfx_dim_is_symbol(k) && (k < 0 || (!cfx_dim_is_symbol(n) && k > n)))
        return cfxi_fail(c, CFX_E_SHAPE, "selected index k out of range");
    if (cfx_dtype_is_complex((cfx_dtype)x->dtype) || x->dtype == CFX_DTYPE_BOOL)
        return cfxi_fail(c, CFX_E_SHAPE, "topk does not support %s dtypes on CPU",
                         x->dtype == CFX_DTYPE_BOOL ? "bool" : "complex");
    memcpy(sizes, x->size, sizeof sizes);
    sizes[dim] = k;
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, x->ndim));
    return cfxi_rt_result(c, 1, CFX_DTYPE_INT64, sizes, x->ndim);
}

cfx_status cfxi_kernel_topk(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), x->ndim, &dim));
    order o = {.values = cfxi_rt_result_at(c, 0), .indices = cfxi_rt_result_at(c, 1),
               .k = x->ndim ? cfxi_rt_int(c, 1) : 1,  /* a single element is given for k=0, too */
               .descending = cfxi_rt_bool(c, 3)};
    return order_run(c, &o, x, dim, topk_lane);
}

/* ---- one of a lane ------------------------------------------------------------------------- */

/* The k-th (counted from 0), or the middle one (k < 0), which is NaN if there is one. */
static void nth_lane(void *ctx, char *const at[], void *scratch, int64_t lane)
{
    const order *o = ctx;
    cfx_dtype dtype = (cfx_dtype)o->x->dtype;
    cfxi_ranked *x = scratch;
    int64_t k = o->k < 0 ? (o->n - 1) / 2 : o->k;
    (void)lane;
    cfxi_reduce_rank(o->rt, x, dtype, at[0], o->step[0], o->n, false);
    x = cfxi_reduce_sort_ranked(x, x + o->n, o->n);
    if (o->k < 0 && cfxi_reduce_key_is_nan(dtype, x[o->n - 1].key))
        for (k = o->n - 1; k > 0 && cfxi_reduce_key_is_nan(dtype, x[k - 1].key);)
            k--;
    put(o, at, 0, x[k].index);
}

/* The value there are most of, the least of those, and where it is last. NaN is never equal. */
static void mode_lane(void *ctx, char *const at[], void *scratch, int64_t lane)
{
    const order *o = ctx;
    cfx_dtype dtype = (cfx_dtype)o->x->dtype;
    cfxi_ranked *x = scratch;
    int64_t best = 0;
    int64_t most = 0;
    int64_t run = 0;
    (void)lane;
    cfxi_reduce_rank(o->rt, x, dtype, at[0], o->step[0], o->n, false);
    x = cfxi_reduce_sort_ranked(x, x + o->n, o->n);
    for (int64_t i = 0; i < o->n; i++) {
        bool same = i && x[i].key == x[i - 1].key && !cfxi_reduce_key_is_nan(dtype, x[i].key);
        run = same ? run + 1 : 1;
        if (run > most) {
            most = run;
            best = i;
        }
    }
    put(o, at, 0, x[best].index);
}

/* (self, ..., dim, keepdim) -> (values, indices) */
static cfx_status one_of_lane(cfxi_call *c, size_t dim_arg, const char *name)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    CFX_TRY(cfxi_reduce_reduced_dims(c, dim_arg, x->ndim, false, &mask));
    CFX_TRY(cfxi_reduce_reduced_not_empty(c, x, mask, name));
    CFX_TRY(cfxi_reduce_reduced_result(c, 0, (cfx_dtype)x->dtype, x, mask,
                                       cfxi_rt_bool(c, dim_arg + 1)));
    return cfxi_reduce_reduced_result(c, 1, CFX_DTYPE_INT64, x, mask, cfxi_rt_bool(c, dim_arg + 1));
}

cfx_status cfxi_rule_median_dim(cfxi_call *c)
{
    CFX_TRY(no_order(c, cfxi_rt_tensor(c, 0), true));
    return one_of_lane(c, 1, "median");
}

cfx_status cfxi_rule_mode(cfxi_call *c)
{
    CFX_TRY(no_order(c, cfxi_rt_tensor(c, 0), false));
    return one_of_lane(c, 1, "mode");
}

cfx_status cfxi_rule_kthvalue(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t dim;
    CFX_TRY(no_order(c, x, true));
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), x->ndim, &dim));
    int64_t n = x->ndim ? x->size[dim] : 1;
    if (n == 0)
        return cfxi_reduce_reduced_not_empty(c, x, 1u << dim, "kthvalue");
    if (cfxi_rt_int(c, 1) < 1 || (!cfx_dim_is_symbol(n) && cfxi_rt_int(c, 1) > n))
        return cfxi_fail(c, CFX_E_SHAPE, "selected number k out of range for dimension %zu", dim);
    return one_of_lane(c, 2, "kthvalue");
}

/* The results may lack the dimension: it is put back for the lanes, with size 1. */
static cfx_status one_of_each(cfxi_call *c, size_t dim_arg, int64_t k, cfxi_lane_fn *fn)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, dim_arg), x->ndim, &dim));
    cfx_tensor results[2];
    for (size_t r = 0; r < 2; r++) {
        const cfx_tensor *t = cfxi_rt_result_at(c, r);
        results[r] = *t;
        results[r].ndim = x->ndim;
        memcpy(results[r].size, x->size, sizeof x->size);
        if (x->ndim)
            results[r].size[dim] = 1;
        cfxi_tensor_contiguous_strides(results[r].size, x->ndim, cfxi_tensor_itemsize(t),
                                       results[r].stride);
    }
    order o = {.values = &results[0], .indices = &results[1], .k = k};
    return order_run(c, &o, x, dim, fn);
}

cfx_status cfxi_kernel_median_dim(cfxi_call *c) { return one_of_each(c, 1, -1, nth_lane); }
cfx_status cfxi_kernel_mode(cfxi_call *c) { return one_of_each(c, 1, 0, mode_lane); }
cfx_status cfxi_kernel_kthvalue(cfxi_call *c)
{
    return one_of_each(c, 2, cfxi_rt_int(c, 1) - 1, nth_lane);
}

cfx_status cfxi_rule_median(cfxi_call *c)
{
    CFX_TRY(no_order(c, cfxi_rt_tensor(c, 0), true));
    return cfxi_rt_result(c, 0, (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype, NULL, 0);
}

cfx_status cfxi_kernel_median(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_dtype dtype = (cfx_dtype)x->dtype;
    int64_t n = cfxi_tensor_numel(x);
    if (n == 0) {
        cfxi_tensor_store_float(dtype, cfxi_rt_result_at(c, 0)->data, NAN);
        return CFX_OK;
    }
    cfx_tensor *dense = cfxi_rt_contiguous(c, x, dtype);
    if (!dense)
        return c->err->status;
    cfx_tensor flat = *dense;
    cfx_tensor result = *cfxi_rt_result_at(c, 0);
    flat.ndim = result.ndim = 1;
    flat.size[0] = n;
    flat.stride[0] = result.stride[0] = (int64_t)cfxi_tensor_itemsize(x);
    result.size[0] = 1;
    order o = {.values = &result, .k = -1};
    cfx_status status = order_run(c, &o, &flat, 0, nth_lane);
    cfx_tensor_release(dense);
    return status;
}
