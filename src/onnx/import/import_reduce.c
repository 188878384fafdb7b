/* import_reduce.c - reductions, running sums, and the softmax family. */
#include "rules_impl.h"

#include <cfx/embed/tensor.h>

#include <math.h>

/* ---- which dimensions ---------------------------------------------------------------------- */

/* The axes of a reduction. */
typedef struct axes {
    cfx_var dims[CFX_MAX_DIMS];
    int n;        /* -1: all */
    bool none;    /* nothing is reduced */
    bool keep;    /* reduced dimensions stay, of size 1 */
    cfx_dtype dtype;
} axes;

static bool read_axes(cfxi_import_call *c, axes *a)
{
    *a = (axes){.keep = cfxi_import_int(c, "keepdims", 1) != 0, .dtype = cfxi_import_dtype(c, 0)};
    if (!cfxi_import_axes_of(c, 1, "axes", a->dims, CFX_MAX_DIMS, &a->n))
        return false;
    if (a->n == 0)
        a->n = -1;
    a->none = a->n < 0 && cfxi_import_int(c, "noop_with_empty_axes", 0) != 0;
    const int rank = a->n < 0 ? cfxi_import_rank(c, 0) : -1;
    if (a->n < 0 && rank >= 0) {
        a->n = rank;
        for (int i = 0; i < rank; i++)
            a->dims[i] = cfx_v(i);
    }
    return cfx_scope_ok(c->scope);
}

/* The dimensions as an argument; EMPTY: all of them. */
static cfx_var dims_of(cfx_scope *s, const axes *a)
{
    const cfx_at at = {.scope = s};
    return a->n < 0 ? cfx_var_empty()
                    : cfx_var_seq_at(at, CFX_DATUM_TUPLE, cfx_vars_make(a->dims, (size_t)a->n));
}

/* Whether a dimension that is reduced is known to be empty. */
static bool is_empty(cfxi_import_call *c, const axes *a)
{
    const int rank = cfxi_import_rank(c, 0);
    for (int i = 0; i < a->n; i++) {
        if (a->dims[i].kind != CFX_VAR_INT || rank < 0)
            continue;
        const int axis = cfxi_import_axis(c, a->dims[i].as.i, rank);
        const cfx_var size = axis < 0 ? cfx_v(1) : cfxi_import_size(c, 0, axis);
        if (size.kind == CFX_VAR_INT && size.as.i == 0)
            return true;
    }
    return false;
}

/* Sums of integers have the type of the elements. */
static cfx_var in_type(cfx_scope *s, cfx_var x, const axes *a)
{
    return a->dtype != CFX_DTYPE_COUNT && cfx_dtype_is_integer(a->dtype) &&
                   a->dtype != CFX_DTYPE_INT64
               ? cfx_to(s, x, cfx_var_dtype(a->dtype)) : x;
}

static cfx_var total(cfx_scope *s, cfx_var x, const axes *a)
{
    if (a->none || a->n == 0)
        return x;
    return in_type(s, cfx_sum(s, x, .dim = dims_of(s, a), .keepdim = cfx_v(a->keep)), a);
}

/* ---- reductions ---------------------------------------------------------------------------- */

cfx_var cfxi_import_reduce_sum(cfxi_import_call *c)
{
    axes a;
    return read_axes(c, &a) ? total(c->scope, cfxi_import_in(c, 0), &a) : cfx_var_empty();
}

cfx_var cfxi_import_reduce_sum_square(cfxi_import_call *c)
{
    axes a;
    const cfx_var x = cfxi_import_in(c, 0);
    return read_axes(c, &a) ? total(c->scope, cfx_mul(c->scope, x, x), &a) : cfx_var_empty();
}

cfx_var cfxi_import_reduce_l1(cfxi_import_call *c)
{
    axes a;
    return read_axes(c, &a) ? total(c->scope, cfx_abs(c->scope, cfxi_import_in(c, 0)), &a)
                            : cfx_var_empty();
}

cfx_var cfxi_import_reduce_l2(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var square = cfxi_import_reduce_sum_square(c);
    const cfx_dtype dtype = cfxi_import_dtype(c, 0);
    const cfx_var root = cfx_sqrt(s, square);
    return dtype != CFX_DTYPE_COUNT && cfx_dtype_is_integer(dtype)
               ? cfx_to(s, root, cfx_var_dtype(dtype)) : root;
}

cfx_var cfxi_import_reduce_log_sum(cfxi_import_call *c)
{
    return cfx_log(c->scope, cfxi_import_reduce_sum(c));
}

cfx_var cfxi_import_reduce_log_sum_exp(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    axes a;
    const cfx_var x = cfxi_import_in(c, 0);
    if (!read_axes(c, &a))
        return cfx_var_empty();
    if (a.none || a.n == 0)
        return x;
    if (a.n < 0 || is_empty(c, &a))
        return cfx_log(s, total(s, cfx_exp(s, x), &a));
    return cfx_logsumexp(s, x, dims_of(s, &a), .keepdim = cfx_v(a.keep));
}

cfx_var cfxi_import_reduce_mean(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    axes a;
    cfx_var x = cfxi_import_in(c, 0);
    if (!read_axes(c, &a))
        return cfx_var_empty();
    if (a.none || a.n == 0)
        return x;
    const bool whole = a.dtype != CFX_DTYPE_COUNT && cfx_dtype_is_integer(a.dtype);
    if (whole)
        x = cfx_to(s, x, cfx_var_dtype(CFX_DTYPE_FLOAT64));
    x = cfx_mean(s, x, .dim = dims_of(s, &a), .keepdim = cfx_v(a.keep));
    return whole ? cfx_to(s, x, cfx_var_dtype(a.dtype)) : x;
}

/* One dimension after the other. */
cfx_var cfxi_import_reduce_prod(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    axes a;
    cfx_var x = cfxi_import_in(c, 0);
    if (!read_axes(c, &a))
        return cfx_var_empty();
    if (a.none || a.n == 0)
        return x;
    if (a.n < 0 && !a.keep)
        return in_type(s, cfx_prod(s, x), &a);
    if (a.n < 0)
        cfxi_import_need_rank(c, 0);
    for (int i = 0; i < a.n; i++)
        x = cfx_prod(s, x, .dim = a.dims[i], .keepdim = cfx_v(true));
    return in_type(s, a.keep ? x : cfxi_import_squeezed(c, x, a.dims, a.n), &a);
}

/* What the largest or least of no elements is. */
static cfx_var of_nothing(cfxi_import_call *c, const axes *a, bool largest)
{
    cfx_scope *s = c->scope;
    const cfx_var shape = total(s, cfxi_import_in(c, 0), a);
    double limit = largest ? -INFINITY : INFINITY;
    if (a->dtype == CFX_DTYPE_BOOL)
        limit = largest ? 0 : 1;
    if (a->dtype != CFX_DTYPE_COUNT && cfx_dtype_is_integer(a->dtype)) {
        const int bits = 8 * (int)cfx_dtype_size(a->dtype);
        const bool has_sign = a->dtype >= CFX_DTYPE_INT8;
        const int64_t most = has_sign ? (int64_t)(~UINT64_C(0) >> (65 - bits))
                                      : (int64_t)(~UINT64_C(0) >> (64 - bits));
        return cfx_full_like(s, shape, largest ? (has_sign ? -most - 1 : 0) : most);
    }
    return cfx_full_like(s, shape, limit, .dtype = cfx_var_dtype(a->dtype));
}

/* Whether the tensor has no elements, and only a run knows the axis. */
static bool may_be_empty(cfxi_import_call *c, const axes *a)
{
    bool nothing = false;
    for (int i = 0; i < cfxi_import_rank(c, 0); i++) {
        const cfx_var size = cfxi_import_size(c, 0, i);
        nothing = nothing || (size.kind == CFX_VAR_INT && size.as.i == 0);
    }
    return nothing && a->n == 1 && a->dims[0].kind != CFX_VAR_INT;
}

static cfx_var extreme(cfxi_import_call *c, bool largest)
{
    cfx_scope *s = c->scope;
    axes a;
    cfx_var x = cfxi_import_in(c, 0);
    if (!read_axes(c, &a))
        return cfx_var_empty();
    if (a.none || a.n == 0)
        return x;
    if (is_empty(c, &a))
        return of_nothing(c, &a, largest);
    if (may_be_empty(c, &a)) {  /* then one element more, which gives way to all others */
        const axes kept = {.dims = {a.dims[0]}, .n = 1, .keep = true, .dtype = a.dtype};
        x = cfx_cat(s, cfx_list(s, x, of_nothing(c, &kept, largest)), .dim = a.dims[0]);
    }
    const cfx_var dims = dims_of(s, &a);
    return largest ? cfx_amax(s, x, .dim = dims, .keepdim = cfx_v(a.keep))
                   : cfx_amin(s, x, .dim = dims, .keepdim = cfx_v(a.keep));
}

cfx_var cfxi_import_reduce_max(cfxi_import_call *c) { return extreme(c, true); }
cfx_var cfxi_import_reduce_min(cfxi_import_call *c) { return extreme(c, false); }

/* ---- where the largest is ------------------------------------------------------------------ */

static cfx_var place_of(cfxi_import_call *c, bool largest)
{
    cfx_scope *s = c->scope;
    const int64_t axis = cfxi_import_int(c, "axis", 0);
    const cfx_var keep = cfx_v(cfxi_import_int(c, "keepdims", 1) != 0);
    const bool last = cfxi_import_int(c, "select_last_index", 0) != 0;
    cfx_var x = cfxi_import_in(c, 0);
    if (last)
        x = cfx_flip(s, x, cfx_ints(s, axis));
    const cfx_var at = largest ? cfx_argmax(s, x, .dim = cfx_v(axis), .keepdim = keep)
                               : cfx_argmin(s, x, .dim = cfx_v(axis), .keepdim = keep);
    if (!last)
        return at;
    return cfx_rsub(s, at, cfx_sub(s, cfx_size(s, x, .dim = cfx_v(axis)), 1));
}

cfx_var cfxi_import_arg_max(cfxi_import_call *c) { return place_of(c, true); }
cfx_var cfxi_import_arg_min(cfxi_import_call *c) { return place_of(c, false); }

/* ---- running sums -------------------------------------------------------------------------- */

/* `exclusive` leaves the element itself out: everything moves one on. */
static cfx_var running(cfxi_import_call *c, bool product)
{
    cfx_scope *s = c->scope;
    const cfx_at at = {.scope = s};
    const cfx_dtype dtype = cfxi_import_dtype(c, 0);
    cfx_var axis;
    int n;
    cfx_var x = cfxi_import_in(c, 0);
    if (!cfxi_import_axes_of(c, 1, NULL, &axis, 1, &n) || n != 1)
        return cfxi_import_fail(c, CFX_E_VALUE, "the axis is missing");
    const bool reverse = cfxi_import_int(c, "reverse", 0) != 0;
    const cfx_var dims = cfx_var_seq_at(at, CFX_DATUM_TUPLE, cfx_vars_make(&axis, 1));
    if (reverse)
        x = cfx_flip(s, x, dims);
    const cfx_var type = dtype == CFX_DTYPE_COUNT ? cfx_var_empty() : cfx_var_dtype(dtype);
    cfx_var y = product ? cfx_cumprod(s, x, axis, .dtype = type)
                        : cfx_cumsum(s, x, axis, .dtype = type);
    if (cfxi_import_int(c, "exclusive", 0)) {
        const cfx_var first = cfx_slice(s, x, .dim = axis, .end = cfx_v(1));
        const cfx_var rest = cfx_slice(s, y, .dim = axis, .end = cfx_v(-1));
        y = cfx_cat(s, cfx_list(s, product ? cfx_ones_like(s, first) : cfx_zeros_like(s, first),
                                rest), .dim = axis);
    }
    return reverse ? cfx_flip(s, y, dims) : y;
}

cfx_var cfxi_import_cum_sum(cfxi_import_call *c) { return running(c, false); }
cfx_var cfxi_import_cum_prod(cfxi_import_call *c) { return running(c, true); }

/* ---- the softmax family -------------------------------------------------------------------- */

typedef cfx_var along_fn(cfx_scope *s, cfx_var x, int64_t axis);

static cfx_var soft(cfx_scope *s, cfx_var x, int64_t axis) { return cfx_softmax(s, x, axis); }
static cfx_var log_soft(cfx_scope *s, cfx_var x, int64_t axis)
{
    return cfx_log_softmax(s, x, axis);
}

/* 1 at the first of the largest, 0 elsewhere. */
static cfx_var hard(cfx_scope *s, cfx_var x, int64_t axis)
{
    const cfx_var at = cfx_argmax(s, x, .dim = cfx_v(axis), .keepdim = cfx_v(true));
    const cfx_var one = cfx_ones_like(s, cfx_to(s, at, cfx_var_dtype(cfxi_import_dtype_of(s, x))));
    return cfx_scatter(s, cfx_zeros_like(s, x), axis, at, one);
}

/* Before opset 13 all dimensions from the axis on were one. */
static cfx_var flattened(cfxi_import_call *c, along_fn *fn)
{
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_need_rank(c, 0);
    const int axis = cfxi_import_axis(c, cfxi_import_int(c, "axis", 1), rank);
    const cfx_var x = cfxi_import_in(c, 0);
    if (axis < 0)
        return cfx_var_empty();
    if (axis == rank - 1)
        return fn(s, x, -1);
    const cfx_var flat = cfx_flatten(s, x, .start_dim = cfx_v(axis));
    return cfx_reshape_as(s, fn(s, flat, -1), x);
}

static cfx_var along(cfxi_import_call *c, along_fn *fn)
{
    return fn(c->scope, cfxi_import_in(c, 0), cfxi_import_int(c, "axis", -1));
}

cfx_var cfxi_import_softmax_flat(cfxi_import_call *c) { return flattened(c, soft); }
cfx_var cfxi_import_log_softmax_flat(cfxi_import_call *c) { return flattened(c, log_soft); }
cfx_var cfxi_import_hardmax_flat(cfxi_import_call *c) { return flattened(c, hard); }
cfx_var cfxi_import_softmax(cfxi_import_call *c) { return along(c, soft); }
cfx_var cfxi_import_log_softmax(cfxi_import_call *c) { return along(c, log_soft); }
cfx_var cfxi_import_hardmax(cfxi_import_call *c) { return along(c, hard); }
