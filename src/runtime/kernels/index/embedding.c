/* embedding.c - rows of a table by number: embedding, bags of them, one_hot. */
#include "runtime/kernels/reduce/reduce_impl.h"

#include <math.h>

/* ---- embedding ----------------------------------------------------------------------------- */

static cfx_status check_indices(cfxi_call *c, const cfx_tensor *indices)
{
    if (indices->dtype == CFX_DTYPE_INT64 || indices->dtype == CFX_DTYPE_INT32)
        return CFX_OK;
    return cfxi_fail(c, CFX_E_SHAPE, "Expected tensor for argument 'indices' to have one of the "
                     "following scalar types: Long, Int; but got %s instead",
                     cfx_dtype_name((cfx_dtype)indices->dtype));
}

cfx_status cfxi_rule_embedding(cfxi_call *c)
{
    const cfx_tensor *weight = cfxi_rt_tensor(c, 0);
    const cfx_tensor *indices = cfxi_rt_tensor(c, 1);
    int64_t sizes[CFX_MAX_DIMS + 1];
    if (weight->ndim != 2)
        return cfxi_fail(c, CFX_E_SHAPE, "'weight' must be 2-D");
    CFX_TRY(check_indices(c, indices));
    if (indices->ndim == CFX_MAX_DIMS)
        return cfxi_fail(c, CFX_E_SHAPE, "the result would have more than %d dimensions",
                         CFX_MAX_DIMS);
    memcpy(sizes, indices->size, indices->ndim * sizeof *sizes);
    sizes[indices->ndim] = weight->size[1];
    return cfxi_rt_result(c, 0, (cfx_dtype)weight->dtype, sizes, (size_t)indices->ndim + 1);
}

typedef struct rows {
    const cfx_tensor *weight;
    const int64_t *indices;
    char *out;
    atomic_bool outside;
} rows;

static void copy_rows(void *ctx, int64_t begin, int64_t end)
{
    rows *r = ctx;
    const cfx_tensor *w = r->weight;
    size_t item = cfxi_tensor_itemsize(w);
    size_t row = (size_t)w->size[1] * item;
    bool dense = w->size[1] == 1 || w->stride[1] == (int64_t)item;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = r->indices[i];
        if (at < 0 || at >= w->size[0]) {
            atomic_store(&r->outside, true);
            return;
        }
        const char *from = w->data + at * w->stride[0];
        char *to = r->out + (size_t)i * row;
        if (dense) {
            memcpy(to, from, row);
            continue;
        }
        for (int64_t k = 0; k < w->size[1]; k++)
            memcpy(to + (size_t)k * item, from + k * w->stride[1], item);
    }
}

cfx_status cfxi_kernel_embedding(cfxi_call *c)
{
    rows r = {.weight = cfxi_rt_tensor(c, 0), .out = cfxi_rt_result_at(c, 0)->data};
    cfx_tensor *indices = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 1), CFX_DTYPE_INT64);
    if (!indices)
        return c->err->status;
    r.indices = (const int64_t *)indices->data;
    int64_t n = cfxi_tensor_numel(indices);
    cfxi_rt_parallel(c->rt, n, 1 + 65536 / (1 + r.weight->size[1]), copy_rows, &r);
    cfx_tensor_release(indices);
    return atomic_load(&r.outside) ? cfxi_fail(c, CFX_E_INDEX, "index out of range in self")
                                   : CFX_OK;
}

/* ---- renorm -------------------------------------------------------------------------------- */

/* (weight, indices, max_norm, norm_type): rows that are read are to be no longer than max_norm. */
cfx_status cfxi_rule_embedding_renorm(cfxi_call *c)
{
    const cfx_tensor *weight = cfxi_rt_tensor(c, 0);
    if (weight->ndim != 2)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected 2-dimensional tensor, but got %u-dimensional "
                         "tensor for argument #1 'self'", weight->ndim);
    if (!cfx_dtype_is_float((cfx_dtype)weight->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "row norms are not implemented for %s",
                         cfx_dtype_name((cfx_dtype)weight->dtype));
    CFX_TRY(check_indices(c, cfxi_rt_tensor(c, 1)));
    return cfxi_rt_result_like(c, 0, (cfx_dtype)weight->dtype, weight);
}

static double row_norm(const cfx_tensor *w, const char *row, double p)
{
    double sum = 0;
    for (int64_t i = 0; i < w->size[1]; i++) {
        const double x = fabs(cfxi_tensor_load_float((cfx_dtype)w->dtype, row + i * w->stride[1]));
        if (isinf(p))
            sum = x > sum || isnan(x) ? x : sum;
        else
            sum += p == 2 ? x * x : p == 1 ? x : p == 0 ? x != 0 : pow(x, p);
    }
    return isinf(p) || p == 1 || p == 0 ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / p);
}

cfx_status cfxi_kernel_embedding_renorm(cfxi_call *c)
{
    cfx_tensor *w = cfxi_rt_result_at(c, 0);
    const cfx_dtype dtype = (cfx_dtype)w->dtype;
    const double most = cfxi_rt_float(c, 2);
    cfx_status status = cfxi_rt_copy(c->rt, w, cfxi_rt_tensor(c, 0), c->err);
    cfx_tensor *indices = status == CFX_OK
                              ? cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 1), CFX_DTYPE_INT64) : NULL;
    bool *done = indices ? cfxi_rt_scratch(c->rt, (size_t)w->size[0] + 1) : NULL;
    if (!done) {
        cfx_tensor_release(indices);
        return indices ? cfxi_base_nomem(c->err) : c->err->status;
    }
    memset(done, 0, (size_t)w->size[0]);
    const int64_t n = cfxi_tensor_numel(indices);
    for (int64_t i = 0; i < n && status == CFX_OK; i++) {
        const int64_t at = ((const int64_t *)indices->data)[i];
        if (at < 0 || at >= w->size[0]) {
            status = cfxi_fail(c, CFX_E_INDEX, "index out of range in self");
            break;
        }
        char *row = w->data + at * w->stride[0];
        const double norm = done[at] ? 0 : row_norm(w, row, cfxi_rt_float(c, 3));
        done[at] = true;
        for (int64_t k = 0; norm > most && k < w->size[1]; k++) {
            char *x = row + k * w->stride[1];
            cfxi_tensor_store_float(dtype, x,
                                    cfxi_tensor_load_float(dtype, x) * (most / (norm + 1e-7)));
        }
    }
    cfxi_rt_scratch_free(c->rt, done);
    cfx_tensor_release(indices);
    return status;
}

/* ---- one_hot ------------------------------------------------------------------------------- */

cfx_status cfxi_rule_one_hot(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t sizes[CFX_MAX_DIMS + 1];
    int64_t classes = cfxi_rt_int(c, 1);
    if (x->dtype != CFX_DTYPE_INT64)
        return cfxi_fail(c, CFX_E_SHAPE, "one_hot is only applicable to index tensor of type "
                         "LongTensor.");
    if (x->ndim == CFX_MAX_DIMS)
        return cfxi_fail(c, CFX_E_SHAPE, "the result would have more than %d dimensions",
                         CFX_MAX_DIMS);
    bool empty = false;
    for (size_t d = 0; d < x->ndim; d++)
        empty = empty || x->size[d] == 0;
    if (empty && classes <= 0)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "Can not infer total number of classes from empty tensor.");
    memcpy(sizes, x->size, x->ndim * sizeof *sizes);
    sizes[x->ndim] = classes == -1 ? cfxi_rt_fresh(c) : classes;
    if (classes < -1 || classes == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "num_classes should be positive");
    return cfxi_rt_result(c, 0, CFX_DTYPE_INT64, sizes, (size_t)x->ndim + 1);
}

static cfx_status mark_ones(cfxi_call *c, const int64_t *x, int64_t n)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    int64_t *classes = &y->size[y->ndim - 1];
    int64_t most = -1;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] < 0)
            return cfxi_fail(c, CFX_E_SHAPE, "Class values must be non-negative.");
        most = x[i] > most ? x[i] : most;
    }
    if (*classes == CFX_DIM_UNKNOWN) {
        int64_t sizes[CFX_MAX_DIMS];
        memcpy(sizes, y->size, sizeof sizes);
        if (__builtin_add_overflow(most, 1, &sizes[y->ndim - 1]))
            return cfxi_fail(c, CFX_E_SHAPE, "a class value is too large");
        CFX_TRY(cfxi_rt_result(c, 0, CFX_DTYPE_INT64, sizes, y->ndim));
        CFX_TRY(cfxi_rt_result_allocate(c, 0));
        y = cfxi_rt_result_at(c, 0);
        classes = &y->size[y->ndim - 1];
    } else if (most >= *classes) {
        return cfxi_fail(c, CFX_E_SHAPE, "Class values must be smaller than num_classes.");
    }
    int64_t *out = (int64_t *)y->data;
    memset(out, 0, (size_t)cfxi_tensor_numel(y) * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        out[i * *classes + x[i]] = 1;
    return CFX_OK;
}

cfx_status cfxi_kernel_one_hot(cfxi_call *c)
{
    cfx_tensor *x = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 0), CFX_DTYPE_INT64);
    if (!x)
        return c->err->status;
    cfx_status status = mark_ones(c, (const int64_t *)x->data, cfxi_tensor_numel(x));
    cfx_tensor_release(x);
    return status;
}
