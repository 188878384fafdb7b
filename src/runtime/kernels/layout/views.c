/* views.c - rows that look at the same elements through other sizes and strides. */
#include "runtime/view_impl.h"

#include <cfx/embed/dim.h>

/* The argument as it is, under a header of its own. */
cfx_status cfxi_rule_alias(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    return cfxi_rt_view_result(c, 0, x, &v);
}

/* ---- order of dimensions ------------------------------------------------------------------- */

/* v's dimensions in the order `order`. */
static void reorder(cfxi_view *v, const size_t *order)
{
    cfxi_view old = *v;
    for (size_t i = 0; i < v->ndim; i++) {
        v->size[i] = old.size[order[i]];
        v->stride[i] = old.stride[order[i]];
    }
}

cfx_status cfxi_rule_permute(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    int64_t dims[CFX_MAX_DIMS];
    size_t order[CFX_MAX_DIMS];
    bool seen[CFX_MAX_DIMS] = {false};
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, 1, dims, &n));
    if (n != v.ndim)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "number of dimensions in the tensor input does not match the length of "
                         "the desired ordering of dimensions i.e. input.dim() = %zu is not equal "
                         "to len(dims) = %zu", v.ndim, n);
    for (size_t i = 0; i < n; i++) {
        CFX_TRY(cfxi_rt_dim(c, dims[i], n, &order[i]));
        if (seen[order[i]])
            return cfxi_fail(c, CFX_E_SHAPE, "permute(): duplicate dims are not allowed.");
        seen[order[i]] = true;
    }
    reorder(&v, order);
    return cfxi_rt_view_result(c, 0, x, &v);
}

cfx_status cfxi_rule_transpose(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    size_t a;
    size_t b;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), v.ndim, &a));
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), v.ndim, &b));
    if (v.ndim > 0)
        cfxi_rt_view_swap(&v, a, b);
    return cfxi_rt_view_result(c, 0, x, &v);
}

cfx_status cfxi_rule_t(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    if (v.ndim > 2)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "t() expects a tensor with <= 2 dimensions, but self is %zuD", v.ndim);
    if (v.ndim == 2)
        cfxi_rt_view_swap(&v, 0, 1);
    return cfxi_rt_view_result(c, 0, x, &v);
}

/* x.T: the dimensions from last to first. */
cfx_status cfxi_rule_reversed(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    for (size_t i = 0; i < v.ndim / 2; i++)
        cfxi_rt_view_swap(&v, i, v.ndim - 1 - i);
    return cfxi_rt_view_result(c, 0, x, &v);
}

static cfx_status matrix_transposed(cfxi_call *c, const char *what, cfxi_view *v)
{
    if (v->ndim < 2)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "%s is only supported on matrices or batches of matrices. Got %zu-D "
                         "tensor.", what, v->ndim);
    cfxi_rt_view_swap(v, v->ndim - 2, v->ndim - 1);
    return CFX_OK;
}

cfx_status cfxi_rule_mT(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    CFX_TRY(matrix_transposed(c, "tensor.mT", &v));
    return cfxi_rt_view_result(c, 0, x, &v);
}

/* Of complex numbers a copy, as conj is. */
cfx_status cfxi_rule_adjoint(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    CFX_TRY(matrix_transposed(c, "tensor.adjoint()", &v));
    if (!cfx_dtype_is_complex(v.dtype))
        return cfxi_rt_view_result(c, 0, x, &v);
    cfx_datum view = cfx_datum_tensor(cfxi_rt_view_tensor(c, x, &v));
    if (view.kind == CFX_DATUM_INVALID)
        return c->err->status;
    cfxi_rt_result_datum(c, 0, cfxi_rt_sub(c, CFX_OPID_conj, &view, 1));
    cfx_datum_release(view);
    return c->results[0].kind == CFX_DATUM_INVALID ? c->err->status : CFX_OK;
}

/* Reads dimensions, each at most once. */
static cfx_status unique_dims(cfxi_call *c, size_t arg, size_t ndim, size_t dims[], size_t *n)
{
    int64_t given[CFX_MAX_DIMS];
    bool seen[CFX_MAX_DIMS] = {false};
    CFX_TRY(cfxi_rt_ints(c, arg, given, n));
    for (size_t i = 0; i < *n; i++) {
        CFX_TRY(cfxi_rt_dim(c, given[i], ndim, &dims[i]));
        if (seen[dims[i]])
            return cfxi_fail(c, CFX_E_SHAPE, "movedim: repeated dim in `%s`",
                             arg == 1 ? "source" : "destination");
        seen[dims[i]] = true;
    }
    return CFX_OK;
}

cfx_status cfxi_rule_movedim(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    size_t from[CFX_MAX_DIMS];
    size_t to[CFX_MAX_DIMS];
    size_t order[CFX_MAX_DIMS];
    bool moved[CFX_MAX_DIMS] = {false};
    bool taken[CFX_MAX_DIMS] = {false};
    size_t n;
    size_t m;
    CFX_TRY(unique_dims(c, 1, v.ndim, from, &n));
    CFX_TRY(unique_dims(c, 2, v.ndim, to, &m));
    if (n != m)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "movedim: Invalid source or destination dims: source has %zu dims, "
                         "destination %zu", n, m);
    for (size_t i = 0; i < n; i++) {
        order[to[i]] = from[i];
        taken[to[i]] = true;
        moved[from[i]] = true;
    }
    for (size_t i = 0, next = 0; i < v.ndim; i++) {
        if (taken[i])
            continue;
        while (moved[next])
            next++;
        order[i] = next++;
    }
    reorder(&v, order);
    return cfxi_rt_view_result(c, 0, x, &v);
}

/* ---- dimensions of size 1 ------------------------------------------------------------------ */

cfx_status cfxi_rule_squeeze(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    bool one;
    for (size_t i = v.ndim; i-- > 0;) {
        CFX_TRY(cfxi_rt_is_one(c, v.size[i], &one));
        if (one)
            cfxi_rt_view_remove(&v, i);
    }
    return cfxi_rt_view_result(c, 0, x, &v);
}

cfx_status cfxi_rule_squeeze_dim(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    int64_t dims[CFX_MAX_DIMS];
    bool asked[CFX_MAX_DIMS] = {false};
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, 1, dims, &n));
    for (size_t i = 0; i < n; i++) {
        size_t d;
        CFX_TRY(cfxi_rt_dim(c, dims[i], v.ndim, &d));
        if (asked[d])
            return cfxi_fail(c, CFX_E_SHAPE, "dim %zu appears multiple times in the list of dims",
                             d);
        asked[d] = true;
    }
    for (size_t i = v.ndim; i-- > 0;) {
        bool one = false;
        if (asked[i])
            CFX_TRY(cfxi_rt_is_one(c, v.size[i], &one));
        if (one)
            cfxi_rt_view_remove(&v, i);
    }
    return cfxi_rt_view_result(c, 0, x, &v);
}

cfx_status cfxi_rule_unsqueeze(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    size_t at;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), v.ndim + 1, &at));
    int64_t stride = at < v.ndim ? cfxi_rt_wrap_mul(v.size[at], v.stride[at])
                                 : (int64_t)cfxi_tensor_itemsize(x);
    CFX_TRY(cfxi_rt_view_insert(c, &v, at, 1, stride));
    return cfxi_rt_view_result(c, 0, x, &v);
}

/* At least 1, 2 or 3 dimensions, where NumPy's functions of these names put the new ones. */
static cfx_status at_least(cfxi_call *c, size_t n)
{
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    int64_t stride = (int64_t)cfxi_tensor_itemsize(x);
    if (v.ndim == 0)
        CFX_TRY(cfxi_rt_view_insert(c, &v, 0, 1, stride));
    if (v.ndim == 1 && n > 1)
        CFX_TRY(cfxi_rt_view_insert(c, &v, 0, 1, cfxi_rt_wrap_mul(v.size[0], v.stride[0])));
    if (v.ndim == 2 && n > 2)
        CFX_TRY(cfxi_rt_view_insert(c, &v, 2, 1, stride));
    if (v.ndim > x->ndim)
        return cfxi_rt_view_result(c, 0, x, &v);
    cfxi_rt_result_datum(c, 0, cfx_datum_tensor(cfx_tensor_retain(x)));
    return CFX_OK;
}
cfx_status cfxi_rule_atleast_1d(cfxi_call *c) { return at_least(c, 1); }
cfx_status cfxi_rule_atleast_2d(cfxi_call *c) { return at_least(c, 2); }
cfx_status cfxi_rule_atleast_3d(cfxi_call *c) { return at_least(c, 3); }

/* ---- expanding ----------------------------------------------------------------------------- */

cfx_status cfxi_rule_expand(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    int64_t sizes[CFX_MAX_DIMS];
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, 1, sizes, &n));
    CFX_TRY(cfxi_rt_view_expand(c, &v, sizes, n));
    return cfxi_rt_view_result(c, 0, x, &v);
}

cfx_status cfxi_rule_expand_as(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *other = cfxi_rt_tensor(c, 1);
    cfxi_view v = cfxi_rt_view_of(x);
    CFX_TRY(cfxi_rt_view_expand(c, &v, other->size, other->ndim));
    return cfxi_rt_view_result(c, 0, x, &v);
}

/* ---- parts --------------------------------------------------------------------------------- */

cfx_status cfxi_rule_select(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    size_t dim = 0;
    if (v.ndim > 0)
        CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), v.ndim, &dim));
    CFX_TRY(cfxi_rt_view_select(c, &v, dim, cfxi_rt_int(c, 2)));
    return cfxi_rt_view_result(c, 0, x, &v);
}

cfx_status cfxi_rule_slice(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    size_t dim;
    if (v.ndim == 0)
        return cfxi_fail(c, CFX_E_INDEX, "slice() cannot be applied to a 0-dim tensor.");
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), v.ndim, &dim));
    int64_t step = cfxi_rt_int(c, 4);
    if (step <= 0 && !cfx_dim_is_symbol(step))
        return cfxi_fail(c, CFX_E_SHAPE, "slice step must be positive");
    CFX_TRY(cfxi_rt_view_slice(c, &v, dim, cfxi_rt_is_none(c, 2) ? 0 : cfxi_rt_int(c, 2),
                               cfxi_rt_is_none(c, 3) ? INT64_MAX : cfxi_rt_int(c, 3), step));
    return cfxi_rt_view_result(c, 0, x, &v);
}

cfx_status cfxi_rule_narrow(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    int64_t start = cfxi_rt_int(c, 2);
    int64_t length = cfxi_rt_int(c, 3);
    size_t dim;
    if (v.ndim == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "narrow() cannot be applied to a 0-dim tensor.");
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), v.ndim, &dim));
    if (length < 0 && !cfx_dim_is_symbol(length))
        return cfxi_fail(c, CFX_E_SHAPE, "narrow(): length must be non-negative.");
    int64_t size = v.size[dim];
    if (!cfx_dim_is_symbol(start) && !cfx_dim_is_symbol(size) && size != CFX_DIM_UNKNOWN) {
        if (start < -size || start > size)
            return cfxi_fail(c, CFX_E_INDEX,
                             "start out of range (expected to be in range of [%lld, %lld], but got "
                             "%lld)", (long long)-size, (long long)size, (long long)start);
        start = start < 0 ? start + size : start;
    }
    int64_t end = cfx_dim_add(c->dims, start, length, c->err);
    bool known = !cfx_dim_is_symbol(end) && !cfx_dim_is_symbol(size);
    if (known ? end > size : !cfx_dim_expect_le(c->dims, end, size))
        return cfxi_fail(c, CFX_E_SHAPE, "start (%lld) + length (%lld) exceeds dimension size "
                         "(%lld).", (long long)start, (long long)length, (long long)size);
    v.offset = cfxi_rt_wrap_mul(start, v.stride[dim]);
    v.size[dim] = length;
    return cfxi_rt_view_result(c, 0, x, &v);
}

cfx_status cfxi_rule_diagonal(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    CFX_TRY(
        cfxi_rt_view_diagonal(c, &v, cfxi_rt_int(c, 1), cfxi_rt_int(c, 2), cfxi_rt_int(c, 3)));
    return cfxi_rt_view_result(c, 0, x, &v);
}

/* Windows of `size` elements, `step` apart: a new last dimension. */
cfx_status cfxi_rule_unfold(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    int64_t size = cfxi_rt_int(c, 2);
    int64_t step = cfxi_rt_int(c, 3);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), v.ndim, &dim));
    int64_t whole = v.ndim ? v.size[dim] : 1;
    if (size < 0)
        return cfxi_fail(c, CFX_E_SHAPE, "size is %lld but must be >= 0", (long long)size);
    if (step <= 0)
        return cfxi_fail(c, CFX_E_SHAPE, "step is %lld but must be > 0", (long long)step);
    if (cfx_dim_is_symbol(whole) ? !cfx_dim_expect_le(c->dims, size, whole) : size > whole)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "maximum size for tensor at dimension %zu is %lld but size is %lld", dim,
                         (long long)whole, (long long)size);
    int64_t stride = v.ndim ? v.stride[dim] : (int64_t)cfxi_tensor_itemsize(x);
    if (v.ndim > 0) {
        int64_t last = cfx_dim_div(c->dims, cfx_dim_sub(c->dims, whole, size, c->err), step,
                                   c->err);
        v.size[dim] = cfx_dim_add(c->dims, last, 1, c->err);
        v.stride[dim] = cfxi_rt_wrap_mul(stride, step);
    }
    CFX_TRY(cfxi_rt_view_insert(c, &v, v.ndim, size, stride));
    return cfxi_rt_view_result(c, 0, x, &v);
}

cfx_status cfxi_rule_as_strided(cfxi_call *c)
{
    cfxi_view v;
    CFX_TRY(cfxi_rt_view_strided(c, cfxi_rt_tensor(c, 0), 1, &v));
    return cfxi_rt_view_result(c, 0, cfxi_rt_tensor(c, 0), &v);
}
