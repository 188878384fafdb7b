/* float_types.c - what quantize and dequantize share. */
#include "float_types_impl.h"

bool cfxi_integer_limits(cfx_dtype dtype, int64_t *least, int64_t *most)
{
    static const struct { uint8_t dtype; int64_t least, most; } limits[] = {
        {CFX_DTYPE_UINT8, 0, UINT8_MAX},
        {CFX_DTYPE_INT8, INT8_MIN, INT8_MAX},
        {CFX_DTYPE_UINT16, 0, UINT16_MAX},
        {CFX_DTYPE_INT16, INT16_MIN, INT16_MAX},
        {CFX_DTYPE_INT32, INT32_MIN, INT32_MAX},
        {CFX_DTYPE_FLOAT8_E5M2, -57344, 57344},
        {CFX_DTYPE_FLOAT8_E4M3FN, -448, 448},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].dtype == dtype) {
            *least = limits[i].least;
            *most = limits[i].most;
            return true;
        }
    return false;
}

/* ---- arguments ----------------------------------------------------------------------------- */

cfx_status cfxi_integer_check_range(cfxi_call *c, cfx_dtype dtype, int64_t low, int64_t high)
{
    int64_t least, most;
    if (!cfxi_integer_limits(dtype, &least, &most))
        return cfxi_fail(c, CFX_E_VALUE, "Unsupported dtype: %s", cfx_dtype_name(dtype));
    if (low < least)
        return cfxi_fail(c, CFX_E_VALUE, "quant_min out of bounds for dtype, "
                         "quant_min_lower_bound: %lld quant_min: %lld", (long long)least,
                         (long long)low);
    if (high > most)
        return cfxi_fail(c, CFX_E_VALUE, "quant_max out of bounds for dtype, "
                         "quant_max_upper_bound: %lld quant_max: %lld", (long long)most,
                         (long long)high);
    return CFX_OK;
}

cfx_status cfxi_integer_check_limits(cfxi_call *c, size_t first)
{
    int64_t low, high;
    CFX_TRY(cfxi_rt_number(c, first, &low));
    CFX_TRY(cfxi_rt_number(c, first + 1, &high));
    return cfxi_integer_check_range(c, (cfx_dtype)c->args[first + 2].as.i, low, high);
}

cfx_status cfxi_integer_check_one(cfxi_call *c, size_t i, const char *name)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, i);
    bool one = true;
    for (size_t d = 0; d < t->ndim; d++)
        one = one && cfxi_rt_same_size(c, t->size[d], 1);
    if (!one)
        return cfxi_fail(c, CFX_E_SHAPE, "Expecting %s tensor to be one element, but received "
                         "sizes [%s]", name, cfxi_rt_shape_of(t).text);
    return CFX_OK;
}

/* ---- channels ------------------------------------------------------------------------------ */

enum { INPUT, SCALES, ZEROS, AXIS };

cfx_status cfxi_integer_check_channels(cfxi_call *c, size_t *axis)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_tensor *scales = cfxi_rt_tensor(c, SCALES);
    const cfx_tensor *zeros = cfxi_rt_tensor(c, ZEROS);
    int64_t dim;
    CFX_TRY(cfxi_rt_number(c, AXIS, &dim));
    if (x->ndim == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "Expecting axis to be < 0: the input has no dimensions");
    CFX_TRY(cfxi_rt_dim(c, dim, x->ndim, axis));
    if (!cfx_dtype_is_float((cfx_dtype)scales->dtype))
        return cfxi_fail(c, CFX_E_TYPE, "'scales' must be of floats, not %s",
                         cfx_dtype_name((cfx_dtype)scales->dtype));
    const int64_t n = scales->ndim == 1 ? scales->size[0] : -1;
    if (scales->ndim != 1 ||
        (n != 1 && !cfxi_rt_same_size(c, n, x->size[*axis])))
        return cfxi_fail(c, CFX_E_SHAPE, "'scales' must have one element for each channel, but has "
                         "sizes [%s]", cfxi_rt_shape_of(scales).text);
    if (zeros && (zeros->ndim != 1 || !cfxi_rt_same_size(c, zeros->size[0], n)))
        return cfxi_fail(c, CFX_E_SHAPE, "'zero_points' must have as many elements as 'scales', "
                         "but has sizes [%s]", cfxi_rt_shape_of(zeros).text);
    return CFX_OK;
}

/* n numbers along `axis` of a tensor with ndim. */
static cfx_tensor shown_along(float *values, int64_t n, size_t ndim, size_t axis)
{
    cfx_tensor t = {.dtype = CFX_DTYPE_FLOAT32, .ndim = (uint8_t)ndim, .data = (char *)values};
    for (size_t d = 0; d < ndim; d++) {
        t.size[d] = d == axis ? n : 1;
        t.stride[d] = sizeof(float);
    }
    return t;
}

cfx_status cfxi_integer_by_channel_new(cfxi_call *c, size_t axis, cfxi_integer_by_channel *by)
{
    const cfx_tensor *scales = cfxi_rt_tensor(c, SCALES);
    const cfx_tensor *zeros = cfxi_rt_tensor(c, ZEROS);
    const size_t ndim = cfxi_rt_tensor(c, INPUT)->ndim;
    size_t bytes;
    by->n = scales->size[0];
    if (!cfxi_base_mul_size((size_t)by->n, 2 * sizeof(float), 0, &bytes) ||
        !(by->scale = cfxi_rt_scratch(c->rt, bytes)))
        return cfxi_fail(c, CFX_E_NOMEM, "out of memory");
    by->zero = by->scale + by->n;
    for (int64_t i = 0; i < by->n; i++) {
        by->scale[i] = *(const float *)(scales->data + i * scales->stride[0]);
        by->zero[i] = zeros ? (float)cfxi_tensor_load_int((cfx_dtype)zeros->dtype,
                                                          zeros->data + i * zeros->stride[0]) : 0;
    }
    by->scales = shown_along(by->scale, by->n, ndim, axis);
    by->zeros = shown_along(by->zero, by->n, ndim, axis);
    return CFX_OK;
}

/* ---- rows made of others -------------------------------------------------------------------- */

cfx_tensor *cfxi_integer_along(cfxi_call *c, size_t i, size_t axis)
{
    int64_t sizes[CFX_MAX_DIMS];
    const size_t ndim = cfxi_rt_tensor(c, INPUT)->ndim;
    for (size_t d = 0; d < ndim; d++)
        sizes[d] = d == axis ? -1 : 1;
    return cfxi_rt_then_list(c, CFX_OPID_reshape, cfxi_rt_hold(c, i), sizes, ndim);
}

cfx_status cfxi_integer_give(cfxi_call *c, cfx_tensor *x)
{
    if (!x)
        return c->err->status;
    const cfx_status status = cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), x, c->err);
    cfx_tensor_release(x);
    return status;
}
