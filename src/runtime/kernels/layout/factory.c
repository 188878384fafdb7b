/* factory.c - new tensors: filled, counted, or made of Python's numbers. */
#include "runtime/python_impl.h"
#include "runtime/view_impl.h"

#include <math.h>

/* ---- numbers as elements ------------------------------------------------------------------- */

/* The type that a number has as a tensor by itself. */
static cfx_dtype default_dtype(cfx_datum d)
{
    switch (d.kind) {
    case CFX_DATUM_BOOL: return CFX_DTYPE_BOOL;
    case CFX_DATUM_INT: return CFX_DTYPE_INT64;
    case CFX_DATUM_COMPLEX: return CFX_DTYPE_COMPLEX64;
    default: return CFX_DTYPE_FLOAT32;
    }
}

/* Whether `f` is within what `dtype` holds, fractions apart. */
static bool in_range(cfx_dtype dtype, double f)
{
    int bits = 8 * (int)cfx_dtype_size(dtype);
    if (dtype == CFX_DTYPE_BOOL || cfx_dtype_is_complex(dtype))
        return true;
    if (dtype == CFX_DTYPE_FLOAT16)
        return !isfinite(f) || fabs(f) <= 65504;
    if (cfx_dtype_is_float(dtype))
        return !isfinite(f) || dtype == CFX_DTYPE_FLOAT64 || fabs(f) <= 0x1.fffffep127;
    if (cfxi_tensor_dtype_is_unsigned(dtype))  /* negative numbers count from the end */
        return f > -ldexp(1, bits) && f < ldexp(1, bits);
    return f > -ldexp(1, bits - 1) - 1 && f < ldexp(1, bits - 1);
}

/* Writes a number as an element of that type; CFX_E_SHAPE if it cannot hold it. */
static cfx_status store_number(cfxi_call *c, cfx_dtype dtype, void *at, cfx_datum d)
{
    bool imaginary = d.kind == CFX_DATUM_COMPLEX && d.as.c[1] != 0 &&
                     !cfx_dtype_is_complex(dtype) && dtype != CFX_DTYPE_BOOL;
    double f = d.kind == CFX_DATUM_BOOL    ? (double)d.as.b
               : d.kind == CFX_DATUM_INT   ? (double)d.as.i
               : d.kind == CFX_DATUM_FLOAT ? d.as.f
                                           : d.as.c[0];
    bool exact = d.kind == CFX_DATUM_INT && dtype == CFX_DTYPE_INT64;
    if (imaginary || (!exact && !in_range(dtype, f)))
        return cfxi_fail(c, CFX_E_SHAPE, "value cannot be converted to type %s without overflow",
                         cfx_dtype_name(dtype));
    if (d.kind == CFX_DATUM_COMPLEX)
        cfxi_tensor_store_complex(dtype, at, d.as.c);
    else if (d.kind == CFX_DATUM_INT)
        cfxi_tensor_store_int(dtype, at, d.as.i);
    else
        cfxi_tensor_store_float(dtype, at, f);
    return CFX_OK;
}

/* Fills memory of `size` bytes with copies of its first `item`. */
static void spread(char *data, size_t size, size_t item)
{
    enum { BLOCK = 1 << 15 };
    size_t done = item;
    while (done < size) {  /* doubling, then by blocks that stay in the cache */
        size_t next = done < BLOCK ? done : BLOCK / item * item;
        next = next < size - done ? next : size - done;
        memcpy(data + done, data, next);
        done += next;
    }
}

static cfx_status fill(cfxi_call *c, cfx_tensor *y, cfx_datum value)
{
    size_t item = cfxi_tensor_itemsize(y);
    size_t size = (size_t)cfxi_tensor_numel(y) * item;
    char element[16] = {0};
    CFX_TRY(store_number(c, (cfx_dtype)y->dtype, element, value));
    bool zero = true;
    for (size_t i = 0; i < item; i++)
        zero = zero && element[i] == 0;
    if (zero) {
        memset(y->data, 0, size);
    } else if (size > 0) {
        memcpy(y->data, element, item);
        spread(y->data, size, item);
    }
    return CFX_OK;
}

/* ---- of given sizes ------------------------------------------------------------------------ */

/* Result 0 has the sizes of argument `size_arg`; the device is the third argument from `dtype_arg`.
 * */
static cfx_status sized(cfxi_call *c, size_t size_arg, size_t dtype_arg, cfx_dtype otherwise)
{
    char text[CFXI_SIZES_TEXT];
    int64_t sizes[CFX_MAX_DIMS];
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, size_arg, sizes, &n));
    CFX_TRY(cfxi_rt_check_device(c, dtype_arg + 2));
    for (size_t i = 0; i < n; i++)
        if (sizes[i] < 0 && !cfx_dim_is_symbol(sizes[i]) && !c->infer)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "Trying to create tensor with negative dimension %lld: %s",
                             (long long)sizes[i], cfxi_rt_sizes_text(sizes, n, text));
    return cfxi_rt_result(c, 0, cfxi_rt_dtype_or(c, dtype_arg, otherwise), sizes, n);
}

cfx_status cfxi_rule_zeros(cfxi_call *c) { return sized(c, 0, 1, CFX_DTYPE_FLOAT32); }

cfx_status cfxi_rule_full(cfxi_call *c)
{
    cfx_datum value = c->args[1];
    cfx_dtype dtype = value.kind == CFX_DATUM_TENSOR ? (cfx_dtype)value.as.tensor->dtype
                                                     : default_dtype(value);
    return sized(c, 0, 2, dtype);
}

cfx_status cfxi_rule_empty(cfxi_call *c)
{
    cfx_memory_format format;
    CFX_TRY(sized(c, 0, 1, CFX_DTYPE_FLOAT32));
    CFX_TRY(cfxi_rt_memory_format(c, 5, cfxi_rt_result_at(c, 0)->ndim, &format));
    if (format >= CFX_MEMORY_FORMAT_CHANNELS_LAST && !c->infer)
        cfxi_rt_channels_last_strides(cfxi_rt_result_at(c, 0));
    return CFX_OK;
}

cfx_status cfxi_rule_new_zeros(cfxi_call *c)
{
    return sized(c, 1, 2, (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype);
}
cfx_status cfxi_rule_new_full(cfxi_call *c)
{
    return sized(c, 1, 3, (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype);
}

/* As argument 0, with dtype and the others from argument `first`. */
static cfx_status like(cfxi_call *c, size_t first)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_memory_format format;
    CFX_TRY(cfxi_rt_check_device(c, first + 2));
    CFX_TRY(cfxi_rt_memory_format(c, first + 4, x->ndim, &format));
    return cfxi_rt_result_format(c, 0, cfxi_rt_dtype_or(c, first, (cfx_dtype)x->dtype), x,
                                          format);
}
cfx_status cfxi_rule_zeros_like(cfxi_call *c) { return like(c, 1); }
cfx_status cfxi_rule_full_like(cfxi_call *c) { return like(c, 2); }

static cfx_status fill_number(cfxi_call *c, int64_t i)
{
    return fill(c, cfxi_rt_result_at(c, 0), cfx_datum_int(i));
}

/* By argument i, a number or a tensor of one. */
static cfx_status fill_argument(cfxi_call *c, size_t i)
{
    cfx_datum value;
    CFX_TRY(cfxi_rt_python_number(c, c->args[i], &value));
    return fill(c, cfxi_rt_result_at(c, 0), value);
}

cfx_status cfxi_kernel_zeros(cfxi_call *c) { return fill_number(c, 0); }
cfx_status cfxi_kernel_ones(cfxi_call *c) { return fill_number(c, 1); }
cfx_status cfxi_kernel_empty(cfxi_call *c) { return fill_number(c, 0); }
cfx_status cfxi_kernel_full(cfxi_call *c) { return fill_argument(c, 1); }
cfx_status cfxi_kernel_new_zeros(cfxi_call *c) { return fill_number(c, 0); }
cfx_status cfxi_kernel_new_ones(cfxi_call *c) { return fill_number(c, 1); }
cfx_status cfxi_kernel_new_empty(cfxi_call *c) { return fill_number(c, 0); }
cfx_status cfxi_kernel_new_full(cfxi_call *c) { return fill_argument(c, 2); }
cfx_status cfxi_kernel_zeros_like(cfxi_call *c) { return fill_number(c, 0); }
cfx_status cfxi_kernel_ones_like(cfxi_call *c) { return fill_number(c, 1); }
cfx_status cfxi_kernel_empty_like(cfxi_call *c) { return fill_number(c, 0); }
cfx_status cfxi_kernel_full_like(cfxi_call *c) { return fill_argument(c, 1); }

cfx_status cfxi_rule_scalar_tensor(cfxi_call *c)
{
    CFX_TRY(cfxi_rt_check_device(c, 3));
    return cfxi_rt_result(c, 0, cfxi_rt_dtype_or(c, 1, CFX_DTYPE_FLOAT32), NULL, 0);
}
cfx_status cfxi_kernel_scalar_tensor(cfxi_call *c) { return fill_argument(c, 0); }

cfx_status cfxi_rule_eye(cfxi_call *c)
{
    int64_t sizes[2] = {cfxi_rt_int(c, 0),
                        cfxi_rt_is_none(c, 1) ? cfxi_rt_int(c, 0) : cfxi_rt_int(c, 1)};
    CFX_TRY(cfxi_rt_check_device(c, 4));
    for (size_t i = 0; i < 2; i++)
        if (sizes[i] < 0 && !cfx_dim_is_symbol(sizes[i]))
            return cfxi_fail(c, CFX_E_SHAPE, "%c must be greater or equal to 0, got %lld",
                             i ? 'm' : 'n', (long long)sizes[i]);
    return cfxi_rt_result(c, 0, cfxi_rt_dtype_or(c, 2, CFX_DTYPE_FLOAT32), sizes, 2);
}

cfx_status cfxi_kernel_eye(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    size_t item = cfxi_tensor_itemsize(y);
    memset(y->data, 0, (size_t)cfxi_tensor_numel(y) * item);
    for (int64_t i = 0; i < y->size[0] && i < y->size[1]; i++)
        cfxi_tensor_store_int((cfx_dtype)y->dtype, y->data + i * (y->stride[0] + y->stride[1]), 1);
    return CFX_OK;
}

/* ---- from nested lists --------------------------------------------------------------------- */

enum { NO_TYPE = CFX_DTYPE_COUNT };

/* The type of all numbers below `d` together, and the sizes along the first items. */
static cfx_status survey(cfxi_call *c, cfx_datum d, size_t depth, int *dtype, int64_t *sizes,
                         size_t *ndim)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    if (d.kind == CFX_DATUM_LIST || d.kind == CFX_DATUM_TUPLE) {
        if (depth == CFX_MAX_DIMS)
            return cfxi_fail(c, CFX_E_SHAPE, "lists nest more than %d deep", CFX_MAX_DIMS);
        if (*ndim == SIZE_MAX || depth < *ndim)  /* seen before: the same length, then */
            sizes[depth] = *ndim == SIZE_MAX ? (int64_t)n : sizes[depth];
        if (*ndim != SIZE_MAX && (depth >= *ndim || sizes[depth] != (int64_t)n))
            return cfxi_fail(c, CFX_E_VALUE,
                             "expected sequence of length %lld at dim %zu (got %zu)",
                             depth < *ndim ? (long long)sizes[depth] : 0, depth, n);
        if (n == 0 && *ndim == SIZE_MAX)
            *ndim = depth + 1;
        for (size_t i = 0; i < n; i++)
            CFX_TRY(survey(c, items[i], depth + 1, dtype, sizes, ndim));
        return CFX_OK;
    }
    if (!cfxi_rt_is_number(d) && d.kind != CFX_DATUM_TENSOR)
        return cfxi_fail(c, CFX_E_TYPE, "new(): invalid data type '%s'",
                         cfx_datum_kind_name((cfx_datum_kind)d.kind));
    if (d.kind == CFX_DATUM_TENSOR && d.as.tensor->storage && cfxi_tensor_numel(d.as.tensor) != 1)
        return cfxi_fail(c, CFX_E_VALUE,
                         "only one element tensors can be converted to Python scalars");
    if (*ndim != SIZE_MAX && depth != *ndim)
        return cfxi_fail(c, CFX_E_TYPE, "not a sequence");
    *ndim = depth;
    cfx_dtype own = d.kind == CFX_DATUM_TENSOR ? (cfx_dtype)d.as.tensor->dtype : default_dtype(d);
    *dtype = *dtype == NO_TYPE ? (int)own : (int)cfxi_tensor_promote_types((cfx_dtype)*dtype, own);
    return CFX_OK;
}

static cfx_status from_data(cfxi_call *c, cfx_datum data, int dtype)
{
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim = SIZE_MAX;
    int found = NO_TYPE;
    CFX_TRY(survey(c, data, 0, &found, sizes, &ndim));
    if (dtype == NO_TYPE)
        dtype = found == NO_TYPE ? CFX_DTYPE_FLOAT32 : found;
    return cfxi_rt_result(c, 0, (cfx_dtype)dtype, sizes, ndim);
}

/* Writes the numbers below `d` one after the other. */
static cfx_status write_data(cfxi_call *c, cfx_datum d, cfx_dtype dtype, char **at)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    if (items) {
        for (size_t i = 0; i < n; i++)
            CFX_TRY(write_data(c, items[i], dtype, at));
        return CFX_OK;
    }
    cfx_datum number;
    CFX_TRY(cfxi_rt_python_number(c, d, &number));
    CFX_TRY(store_number(c, dtype, *at, number));
    *at += cfx_dtype_size(dtype);
    return CFX_OK;
}

/* A tensor for argument `arg` (a tensor, a number or lists of them). */
static cfx_status made_of(cfxi_call *c, size_t arg, int dtype)
{
    cfx_datum data = c->args[arg];
    if (data.kind != CFX_DATUM_TENSOR)
        return from_data(c, data, dtype);
    cfx_dtype own = (cfx_dtype)data.as.tensor->dtype;
    return cfxi_rt_result_like(c, 0, dtype == NO_TYPE ? own : (cfx_dtype)dtype, data.as.tensor);
}

static cfx_status write_result(cfxi_call *c, size_t arg)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    char *at = y->data;
    if (c->args[arg].kind == CFX_DATUM_TENSOR)
        return cfxi_rt_copy(c->rt, y, c->args[arg].as.tensor, c->err);
    return write_data(c, c->args[arg], (cfx_dtype)y->dtype, &at);
}

static int dtype_given(const cfxi_call *c, size_t i)
{
    return c->args[i].kind == CFX_DATUM_DTYPE ? (int)c->args[i].as.i : (int)NO_TYPE;
}

cfx_status cfxi_rule_tensor(cfxi_call *c)
{
    CFX_TRY(cfxi_rt_check_device(c, 2));
    return made_of(c, 0, dtype_given(c, 1));
}
cfx_status cfxi_kernel_tensor(cfxi_call *c) { return write_result(c, 0); }

cfx_status cfxi_rule_new_tensor(cfxi_call *c)
{
    int dtype = dtype_given(c, 2);
    CFX_TRY(cfxi_rt_check_device(c, 3));
    return made_of(c, 1, dtype == NO_TYPE ? cfxi_rt_tensor(c, 0)->dtype : dtype);
}
cfx_status cfxi_kernel_new_tensor(cfxi_call *c) { return write_result(c, 1); }

/* A tensor that has the type already is given back itself. */
cfx_status cfxi_rule_as_tensor(cfxi_call *c)
{
    int dtype = dtype_given(c, 1);
    CFX_TRY(cfxi_rt_check_device(c, 2));
    if (c->args[0].kind != CFX_DATUM_TENSOR ||
        (dtype != NO_TYPE && dtype != c->args[0].as.tensor->dtype))
        return made_of(c, 0, dtype);
    cfxi_rt_result_datum(c, 0, cfx_datum_retain(c->args[0]));
    return CFX_OK;
}

cfx_status cfxi_kernel_as_tensor(cfxi_call *c)
{
    if (cfxi_rt_result_at(c, 0) == cfxi_rt_tensor(c, 0))
        return CFX_OK;
    CFX_TRY(cfxi_rt_result_allocate(c, 0));
    return write_result(c, 0);
}
