/* spatial.c - what convolution, pooling, normalisation and resizing share. */
#include "spatial.h"

#include <stdio.h>

/* ---- types --------------------------------------------------------------------------------- */

cfx_dtype cfxi_rt_compute_dtype(cfx_dtype dtype)
{
    if (dtype == CFX_DTYPE_FLOAT64)
        return dtype;
    if (cfx_dtype_is_complex(dtype))
        return CFX_DTYPE_COMPLEX128;
    return cfx_dtype_is_float(dtype) ? CFX_DTYPE_FLOAT32 : CFX_DTYPE_INT64;
}

cfx_tensor *cfxi_rt_typed(cfxi_call *c, const cfx_tensor *t, cfx_dtype dtype)
{
    if (!t || (t->dtype == dtype && cfxi_tensor_has_whole_strides(t)))
        return cfx_tensor_retain((cfx_tensor *)t);
    return cfxi_rt_contiguous(c, t, dtype);
}

cfx_tensor *cfxi_rt_work(cfxi_call *c, size_t i, cfx_dtype dtype, bool contiguous)
{
    cfx_tensor *t = cfxi_rt_result_at(c, i);
    if (t->dtype == dtype && (!contiguous || cfx_tensor_is_contiguous(t)))
        return cfx_tensor_retain(t);
    return cfx_tensor_new(dtype, t->size, t->ndim, c->rt->allocator, c->err);
}

cfx_status cfxi_rt_work_done(cfxi_call *c, size_t i, cfx_tensor *work, cfx_status status)
{
    if (!work)
        return status != CFX_OK ? status : c->err->status;
    if (status == CFX_OK && work != cfxi_rt_result_at(c, i))
        status = cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, i), work, c->err);
    cfx_tensor_release(work);
    return status;
}

/* ---- layout -------------------------------------------------------------------------------- */

int64_t cfxi_rt_row_step(const cfx_tensor *t, size_t dim)
{
    const int64_t item = (int64_t)cfxi_tensor_itemsize(t);
    if (dim >= t->ndim || (t->size[dim] > 1 && t->stride[dim] != item))
        return 0;
    const int64_t length = t->size[dim] * item;
    int64_t row = 0;
    int64_t next = 0;  /* the stride that makes the dimensions so far one */
    for (size_t i = t->ndim; i-- > 0;) {
        if (i == dim || t->size[i] == 1)
            continue;
        if (t->stride[i] == 0 || (row > 0 && t->stride[i] != next))
            return 0;
        row = row > 0 ? row : t->stride[i];
        next = t->stride[i] * t->size[i];
    }
    return row == 0 ? length : row >= length ? row : 0;
}

/* Sizes of 1 decide by their strides, too: an image of one channel made by channels_last is such an
 * image, and one of a single pixel made row-major is not. */
bool cfxi_rt_prefers_channels_last(const cfx_tensor *t)
{
    static const uint8_t inner_first[2][5] = {{1, 3, 2, 0}, {1, 4, 3, 2, 0}};
    int64_t least = 0;
    if (!t || !t->storage || t->ndim < 4 || t->ndim > 5 || t->stride[1] == 0)
        return false;
    for (size_t i = 0; i < t->ndim; i++) {
        size_t d = inner_first[t->ndim - 4][i];
        if (t->size[d] == 0 || t->stride[d] < least)
            return false;
        if (d == 0 && least == t->stride[1])
            return false;
        least = t->stride[d] * (t->size[d] > 1 ? t->size[d] : 1);
    }
    return true;
}

void cfxi_rt_result_channels_last(cfxi_call *c, size_t i)
{
    static const uint8_t orders[2][5] = {{0, 2, 3, 1}, {0, 2, 3, 4, 1}};
    cfx_tensor *t = cfxi_rt_result_at(c, i);
    if (t->ndim == 4 || t->ndim == 5)
        cfxi_tensor_ordered_strides(t->size, t->ndim, cfxi_tensor_itemsize(t), orders[t->ndim - 4],
                                    t->stride);
}

/* ---- windows ------------------------------------------------------------------------------- */

cfx_status cfxi_rt_window_ints(cfxi_call *c, size_t i, size_t n, int64_t fill,
                               const int64_t *otherwise, const char *name,
                               int64_t out[CFXI_SPATIAL])
{
    int64_t given[CFX_MAX_DIMS];
    size_t count;
    CFX_TRY(cfxi_rt_ints(c, i, given, &count));
    for (size_t d = 0; d < CFXI_SPATIAL; d++)
        out[d] = fill;
    if (count == 0 && otherwise) {
        memcpy(out, otherwise, CFXI_SPATIAL * sizeof *out);
        return CFX_OK;
    }
    if (count != n && count != 1)
        return cfxi_fail(c, CFX_E_SHAPE, "expected %s to be a single integer value or a list of %zu"
                         " values, but got %s=[%s]", name, n, name,
                         cfxi_rt_shape_ints(given, count, ", ").text);
    for (size_t d = 0; d < n; d++) {
        const int64_t one = given[count == 1 ? 0 : d];
        if (one > CFX_DIM_UNKNOWN && (one > CFXI_WINDOW_MOST || one < -CFXI_WINDOW_MOST))
            return cfxi_fail(c, CFX_E_SHAPE, "%s is %lld; it must be at most %d", name,
                             (long long)one, CFXI_WINDOW_MOST);
        out[CFXI_SPATIAL - n + d] = one;
    }
    return CFX_OK;
}

cfxi_shape_text cfxi_rt_shape_ints(const int64_t *sizes, size_t n, const char *between)
{
    cfxi_shape_text s = {""};
    size_t at = 0;
    for (size_t i = 0; i < n && at + 32 < sizeof s.text; i++) {
        const char *gap = i ? between : "";
        if (cfx_dim_is_symbol(sizes[i]))
            at += (size_t)snprintf(s.text + at, sizeof s.text - at, "%s?", gap);
        else
            at += (size_t)snprintf(s.text + at, sizeof s.text - at, "%s%lld", gap,
                                   (long long)sizes[i]);
    }
    return s;
}

cfxi_shape_text cfxi_rt_shape_of(const cfx_tensor *t)
{
    return cfxi_rt_shape_ints(t->size, t->ndim, ", ");
}
