/* cast.c - copies in another type or layout, and elements as numbers. */
#include "runtime/view_impl.h"

/* ---- layouts ------------------------------------------------------------------------------- */

static bool has_format(const cfx_tensor *t, cfx_memory_format format)
{
    if (format == CFX_MEMORY_FORMAT_PRESERVE || !t->storage || cfxi_tensor_numel(t) == 0)
        return true;
    return format == CFX_MEMORY_FORMAT_CONTIGUOUS ? cfx_tensor_is_contiguous(t)
                                                  : cfxi_tensor_is_channels_last(t);
}

/* Of an abstract tensor as of a dense one. */
cfx_status cfxi_rule_is_contiguous(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_memory_format format;
    CFX_TRY(cfxi_rt_memory_format(c, 1, x->ndim, &format));
    if (format == CFX_MEMORY_FORMAT_PRESERVE)
        return cfxi_fail(c, CFX_E_SHAPE, "preserve memory format is unsupported by is_contiguous");
    cfxi_rt_result_datum(c, 0, cfx_datum_bool(x->storage ? has_format(x, format)
                                                      : format == CFX_MEMORY_FORMAT_CONTIGUOUS));
    return CFX_OK;
}

/* ---- casts --------------------------------------------------------------------------------- */

/* Whether the channels vary fastest, then the places from the last dimension on, then the batch;
 * there may be gaps. */
static bool in_channel_order(const cfx_tensor *t)
{
    static const uint8_t orders[2][5] = {{0, 2, 3, 1}, {0, 2, 3, 4, 1}};
    int64_t least = 1;
    if (t->ndim < 4 || t->ndim > 5)
        return false;
    for (size_t i = t->ndim; i-- > 0;) {
        size_t d = orders[t->ndim - 4][i];
        if (t->stride[d] < least || (d == 0 && least == t->stride[1]))  /* the latter: in any */
            return false;
        least = t->stride[d] * t->size[d];
    }
    return true;
}

/* As a cast sees it, there are two formats only, and strides may have gaps in both. */
static bool is_laid_out(const cfx_tensor *t, cfx_memory_format format)
{
    if (format == CFX_MEMORY_FORMAT_PRESERVE || !t->storage || cfxi_tensor_numel(t) == 0)
        return true;
    return in_channel_order(t) == (format != CFX_MEMORY_FORMAT_CONTIGUOUS);
}

/* Argument 0 as `dtype` in a format: itself if it is so already and no copy is asked for. */
static cfx_status cast(cfxi_call *c, cfx_dtype dtype, bool copy, size_t format_arg)
{
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_memory_format format;
    CFX_TRY(cfxi_rt_memory_format(c, format_arg, x->ndim, &format));
    bool fits = c->op == CFX_OPID_contiguous ? has_format(x, format) : is_laid_out(x, format);
    if (copy || x->dtype != dtype || !fits)
        return cfxi_rt_result_format(c, 0, dtype, x, format);
    cfxi_rt_result_datum(c, 0, cfx_datum_tensor(cfx_tensor_retain(x)));
    return CFX_OK;
}

/* For all rows of this part: the copy, unless the rule gave the argument itself. */
cfx_status cfxi_kernel_to(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    if (y == cfxi_rt_tensor(c, 0))
        return CFX_OK;
    if (!y->storage)
        CFX_TRY(cfxi_rt_result_allocate(c, 0));
    return cfxi_rt_copy(c->rt, y, cfxi_rt_tensor(c, 0), c->err);
}
cfx_status cfxi_kernel_to_device(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_to_layout(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_to_other(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel__to_copy(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_type_as(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_cast_float(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_cast_half(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_cast_bfloat16(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_cast_double(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_cast_int(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_cast_long(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_cast_bool(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_cast_short(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_cast_char(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_cast_byte(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_cast_cfloat(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_cast_cdouble(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_cpu(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_contiguous(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_clone(cfxi_call *c) { return cfxi_kernel_to(c); }
cfx_status cfxi_kernel_lift_fresh_copy(cfxi_call *c) { return cfxi_kernel_to(c); }

static cfx_dtype own_dtype(cfxi_call *c) { return (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype; }

cfx_status cfxi_rule_to(cfxi_call *c)
{
    return cast(c, cfxi_rt_dtype_or(c, 1, own_dtype(c)), cfxi_rt_bool(c, 3), 4);
}

cfx_status cfxi_rule_to_device(cfxi_call *c)
{
    CFX_TRY(cfxi_rt_check_device(c, 1));
    return cast(c, cfxi_rt_dtype_or(c, 2, own_dtype(c)), cfxi_rt_bool(c, 4), 5);
}

cfx_status cfxi_rule_to_layout(cfxi_call *c)
{
    CFX_TRY(cfxi_rt_check_device(c, 3));
    return cast(c, cfxi_rt_dtype_or(c, 1, own_dtype(c)), cfxi_rt_bool(c, 6), 7);
}

cfx_status cfxi_rule_to_other(cfxi_call *c)
{
    return cast(c, (cfx_dtype)cfxi_rt_tensor(c, 1)->dtype, cfxi_rt_bool(c, 3), 4);
}

cfx_status cfxi_rule__to_copy(cfxi_call *c)
{
    CFX_TRY(cfxi_rt_check_device(c, 3));
    return cast(c, cfxi_rt_dtype_or(c, 1, own_dtype(c)), true, 6);
}

cfx_status cfxi_rule_type_as(cfxi_call *c)
{
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_dtype dtype = (cfx_dtype)cfxi_rt_tensor(c, 1)->dtype;
    if (x->dtype != dtype)
        return cfxi_rt_result_like(c, 0, dtype, x);
    cfxi_rt_result_datum(c, 0, cfx_datum_tensor(cfx_tensor_retain(x)));
    return CFX_OK;
}

cfx_status cfxi_rule_cast_float(cfxi_call *c) { return cast(c, CFX_DTYPE_FLOAT32, false, 1); }
cfx_status cfxi_rule_cast_half(cfxi_call *c) { return cast(c, CFX_DTYPE_FLOAT16, false, 1); }
cfx_status cfxi_rule_cast_bfloat16(cfxi_call *c) { return cast(c, CFX_DTYPE_BFLOAT16, false, 1); }
cfx_status cfxi_rule_cast_double(cfxi_call *c) { return cast(c, CFX_DTYPE_FLOAT64, false, 1); }
cfx_status cfxi_rule_cast_int(cfxi_call *c) { return cast(c, CFX_DTYPE_INT32, false, 1); }
cfx_status cfxi_rule_cast_long(cfxi_call *c) { return cast(c, CFX_DTYPE_INT64, false, 1); }
cfx_status cfxi_rule_cast_bool(cfxi_call *c) { return cast(c, CFX_DTYPE_BOOL, false, 1); }
cfx_status cfxi_rule_cast_short(cfxi_call *c) { return cast(c, CFX_DTYPE_INT16, false, 1); }
cfx_status cfxi_rule_cast_char(cfxi_call *c) { return cast(c, CFX_DTYPE_INT8, false, 1); }
cfx_status cfxi_rule_cast_byte(cfxi_call *c) { return cast(c, CFX_DTYPE_UINT8, false, 1); }
cfx_status cfxi_rule_cast_cfloat(cfxi_call *c) { return cast(c, CFX_DTYPE_COMPLEX64, false, 1); }
cfx_status cfxi_rule_cast_cdouble(cfxi_call *c) { return cast(c, CFX_DTYPE_COMPLEX128, false, 1); }
cfx_status cfxi_rule_cpu(cfxi_call *c) { return cast(c, own_dtype(c), false, 1); }

cfx_status cfxi_rule_contiguous(cfxi_call *c)
{
    if (!cfxi_rt_is_none(c, 1) && c->args[1].as.i == CFX_MEMORY_FORMAT_PRESERVE)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "preserve memory format is unsupported by the contiguous operator");
    return cast(c, own_dtype(c), false, 1);
}

cfx_status cfxi_rule_clone(cfxi_call *c) { return cast(c, own_dtype(c), true, 1); }

cfx_status cfxi_rule_lift_fresh_copy(cfxi_call *c)
{
    return cfxi_rt_result_like(c, 0, own_dtype(c), cfxi_rt_tensor(c, 0));
}

/* The argument itself: rows that change nothing here. */
cfx_status cfxi_rule_itself(cfxi_call *c)
{
    cfxi_rt_result_datum(c, 0, cfx_datum_retain(c->args[0]));
    return CFX_OK;
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* The element at `at` as a number of Python's. */
static cfx_datum element_at(cfx_dtype dtype, const void *at)
{
    if (dtype == CFX_DTYPE_BOOL)
        return cfx_datum_bool(cfxi_tensor_load_int(dtype, at) != 0);
    if (cfx_dtype_is_integer(dtype))
        return cfx_datum_int(cfxi_tensor_load_int(dtype, at));
    if (cfx_dtype_is_float(dtype))
        return cfx_datum_float(cfxi_tensor_load_float(dtype, at));
    double both[2];
    cfxi_tensor_load_complex(dtype, at, both);
    return cfx_datum_complex(both[0], both[1]);
}

/* A number of that type which nobody knows before computing. */
static cfx_datum unknown_number(cfxi_call *c, cfx_dtype dtype)
{
    static const char zero[16];
    cfx_datum d = element_at(dtype, zero);
    if (d.kind == CFX_DATUM_INT)
        return cfxi_rt_unknown_int(c);
    d.symbolic = 1;
    return d;
}

cfx_status cfxi_rule_item(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t n = cfxi_rt_numel_dim(c, x->size, x->ndim);
    if (n != CFX_DIM_UNKNOWN && !cfxi_rt_same_size(c, n, 1))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "a Tensor with %lld elements cannot be converted to Scalar",
                         (long long)n);
    if (c->infer || !x->storage)
        cfxi_rt_result_datum(c, 0, unknown_number(c, (cfx_dtype)x->dtype));
    return CFX_OK;
}

cfx_status cfxi_kernel_item(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_rt_result_datum(c, 0, element_at((cfx_dtype)x->dtype, x->data));
    return CFX_OK;
}

/* The elements from `at` on, dimension `d` and those inside it. */
static cfx_datum list_of(cfxi_call *c, const cfx_tensor *x, const char *at, size_t d)
{
    cfx_datum none = cfx_datum_none();
    if (d == x->ndim)
        return element_at((cfx_dtype)x->dtype, at);
    size_t n = (size_t)x->size[d];
    cfx_datum *room = cfxi_rt_scratch(c->rt, (n + 1) * sizeof *room);
    if (!room) {
        cfxi_base_nomem(c->err);
        return cfx_datum_invalid();
    }
    for (size_t i = 0; i < n; i++)
        room[i] = none;
    cfx_datum list = cfx_datum_seq(CFX_DATUM_LIST, room, n, c->rt->allocator, c->err);
    cfxi_rt_scratch_free(c->rt, room);
    cfx_datum *items = cfx_datum_items(list, &n);
    for (size_t i = 0; i < n; i++) {
        cfx_datum item = list_of(c, x, at + (int64_t)i * x->stride[d], d + 1);
        if (item.kind == CFX_DATUM_INVALID) {
            cfx_datum_release(list);
            return item;
        }
        items[i] = item;
    }
    return list;
}

cfx_status cfxi_rule_tolist(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (!c->infer)
        return CFX_OK;
    for (size_t i = 0; i < x->ndim; i++)
        if (x->size[i] < 0)
            return cfxi_fail(c, CFX_E_VALUE, "the length of the list is not known: the tensor has "
                             "a symbolic size");
    if (x->ndim > 0)
        return cfxi_fail(c, CFX_E_VALUE, "the elements of the list are not known without running "
                         "the graph");
    cfxi_rt_result_datum(c, 0, unknown_number(c, (cfx_dtype)x->dtype));
    return CFX_OK;
}

cfx_status cfxi_kernel_tolist(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_datum list = list_of(c, x, x->data, 0);
    if (list.kind == CFX_DATUM_INVALID)
        return c->err->status;
    cfxi_rt_result_datum(c, 0, list);
    return CFX_OK;
}
