/* slices.c - whole slices by a list of indices, and copies in which a part is replaced. */
#include "picked_slices_impl.h"

#include <math.h>

/* ---- index_select, index_add, index_copy, index_fill --------------------------------------- */

static cfx_status check_index(cfxi_call *c, const cfx_tensor *index, bool wide_only)
{
    const char *name = cfx_operator_name(c->op);
    if (index->ndim > 1)
        return cfxi_fail(c, c->op == CFX_OPID_index_fill ? CFX_E_SHAPE : CFX_E_INDEX,
                         "%s(): Index is supposed to be a vector", name);
    if (index->dtype != CFX_DTYPE_INT64 && (wide_only || index->dtype != CFX_DTYPE_INT32))
        return cfxi_fail(c, c->op == CFX_OPID_index_fill ? CFX_E_INDEX : CFX_E_SHAPE,
                         "%s(): Expected dtype %s for index", name,
                         wide_only ? "int64" : "int32 or int64");
    return CFX_OK;
}

static int64_t length_of(const cfx_tensor *index) { return index->ndim ? index->size[0] : 1; }

cfx_status cfxi_rule_index_select(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *index = cfxi_rt_tensor(c, 2);
    cfxi_view v = cfxi_rt_view_of(x);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), x->ndim, &dim));
    CFX_TRY(check_index(c, index, false));
    if (x->ndim == 0 && !cfxi_rt_same_size(c, length_of(index), 1))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "index_select(): Index to scalar can have only 1 value, got %lld value(s)",
                         (long long)length_of(index));
    v.size[dim] = length_of(index);
    return cfxi_rt_result(c, 0, v.dtype, v.size, v.ndim);
}

/* Slices of `own` along `dim` by `index`, beside those of `other` in order. */
static cfx_status run_slices(cfxi_call *c, cfx_tensor *own, size_t dim, const cfx_tensor *index,
                             cfx_tensor *other, cfxi_pick_action action, bool wraps,
                             cfx_status refusal)
{
    cfxi_picks p = {.dtype = (cfx_dtype)own->dtype, .n = length_of(index)};
    cfx_tensor *dense = cfxi_rt_contiguous(c, index, CFX_DTYPE_INT64);
    if (!dense)
        return c->err->status;
    cfx_status status = CFX_OK;
    size_t bytes = (size_t)p.n * sizeof *p.at;
    p.at = cfxi_rt_scratch(c->rt, bytes + 8);
    if (p.at) {
        memset(p.at, 0, bytes);
        status = cfxi_index_pick_along(c, &p, own, dim, (const int64_t *)(void *)dense->data, wraps,
                                       refusal);
    } else {
        status = cfxi_base_nomem(c->err);
    }
    p.step = own->ndim && other->ndim == own->ndim ? other->stride[dim] : 0;
    for (size_t i = 0; i < own->ndim; i++)
        if (i != dim)
            cfxi_index_walk_add(i < dim ? &p.outer : &p.inner, own->size[i], own->stride[i],
                                other->ndim == own->ndim ? other->stride[i] : 0);
    if (status == CFX_OK)
        cfxi_index_picks_run(c->rt, &p, action, own->data, other->data);
    cfxi_rt_scratch_free(c->rt, p.at);
    cfx_tensor_release(dense);
    return status;
}

cfx_status cfxi_kernel_index_select(cfxi_call *c)
{
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), x->ndim, &dim));
    return run_slices(c, x, dim, cfxi_rt_tensor(c, 2), cfxi_rt_result_at(c, 0), CFXI_PICK_GET,
                      false, CFX_E_INDEX);
}

static cfx_status same_dtype(cfxi_call *c, const cfx_tensor *x, const cfx_tensor *source)
{
    if (x->dtype == source->dtype)
        return CFX_OK;
    return cfxi_fail(c, CFX_E_SHAPE, "%s(): self (%s) and source (%s) must have the same scalar "
                     "type", cfx_operator_name(c->op), cfx_dtype_name((cfx_dtype)x->dtype),
                     cfx_dtype_name((cfx_dtype)source->dtype));
}

/* Whether `source` has the sizes of x with as many slices along `dim` as there are indices. */
static cfx_status check_slices(cfxi_call *c, const cfx_tensor *x, size_t dim,
                               const cfx_tensor *index, const cfx_tensor *source)
{
    bool copies = c->op == CFX_OPID_index_copy;
    const char *name = cfx_operator_name(c->op);
    char a[CFXI_SIZES_TEXT];
    char b[CFXI_SIZES_TEXT];
    int64_t slices = source->ndim > dim ? source->size[dim] : 1;
    if (copies && source->ndim && x->ndim && source->ndim != x->ndim)
        return cfxi_fail(c, CFX_E_INDEX,
                         "index_copy_(): When source and destination are not scalars, their "
                         "dimensionality must match. Source dimensionality (%u), destination "
                         "dimensionality (%u)", source->ndim, x->ndim);
    if (!cfxi_rt_same_size(c, slices, length_of(index)))
        return cfxi_fail(c, copies ? CFX_E_INDEX : CFX_E_SHAPE,
                         "%s_(): Number of indices (%lld) should be equal to source.size(dim): "
                         "(%lld), for dim: %zu", name, (long long)length_of(index),
                         (long long)slices, dim);
    bool same = source->ndim == x->ndim || (copies && (!source->ndim || !x->ndim));
    for (size_t i = 0; same && i < x->ndim && i < source->ndim; i++)
        same = i == dim || cfxi_rt_same_size(c, x->size[i], source->size[i]);
    if (!same)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "source tensor shape must match self tensor shape, excluding the "
                         "specified dimension. Got self.shape = %s source.shape = %s",
                         cfxi_rt_sizes_text(x->size, x->ndim, a),
                         cfxi_rt_sizes_text(source->size, source->ndim, b));
    return CFX_OK;
}

/* For index_add and index_copy. */
cfx_status cfxi_rule_index_write(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *source = cfxi_rt_tensor(c, 3);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), x->ndim, &dim));
    CFX_TRY(check_index(c, cfxi_rt_tensor(c, 2), c->op == CFX_OPID_index_copy));
    CFX_TRY(same_dtype(c, x, source));
    CFX_TRY(check_slices(c, x, dim, cfxi_rt_tensor(c, 2), source));
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim);
}

cfx_status cfxi_kernel_index_copy(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), y->ndim, &dim));
    CFX_TRY(cfxi_index_begin_from_self(c));
    return run_slices(c, y, dim, cfxi_rt_tensor(c, 2), cfxi_rt_tensor(c, 3), CFXI_PICK_PUT, false,
                      CFX_E_INDEX);
}

/* `source` times alpha, converted to the source's type first, as PyTorch has it; owned. */
static cfx_tensor *scaled(cfxi_call *c, cfx_tensor *source, cfx_datum alpha)
{
    cfx_datum args[2] = {alpha, cfx_datum_dtype((cfx_dtype)source->dtype)};
    if (alpha.kind == CFX_DATUM_INT && alpha.as.i == 1)
        return cfx_tensor_retain(source);
    cfx_tensor *factor = cfxi_rt_sub_tensor(c, CFX_OPID_scalar_tensor, args, 2);
    if (!factor)
        return NULL;
    cfx_datum both[2] = {cfx_datum_tensor(cfx_tensor_retain(source)), cfx_datum_tensor(factor)};
    cfx_tensor *product = cfxi_rt_sub_tensor(c, CFX_OPID_mul, both, 2);
    cfx_datum_release(both[0]);
    cfx_datum_release(both[1]);
    return product;
}

cfx_status cfxi_kernel_index_add(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), y->ndim, &dim));
    cfx_tensor *source = scaled(c, cfxi_rt_tensor(c, 3), c->args[4]);
    cfx_status status = source ? cfxi_index_begin_from_self(c) : c->err->status;
    if (status == CFX_OK)
        status = run_slices(c, y, dim, cfxi_rt_tensor(c, 2), source, CFXI_PICK_ADD, false,
                            CFX_E_SHAPE);
    cfx_tensor_release(source);
    return status;
}

cfx_status cfxi_rule_index_fill(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *value = cfxi_rt_tensor(c, 3);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), x->ndim, &dim));
    CFX_TRY(check_index(c, cfxi_rt_tensor(c, 2), true));
    if (value && value->ndim > 0)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "index_fill_ only supports a 0-dimensional value tensor, but got tensor "
                         "with %u dimension(s).", value->ndim);
    if (c->args[3].kind == CFX_DATUM_COMPLEX && !cfx_dtype_is_complex((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "index_fill_(): Converting complex Scalar to non-complex type is not "
                         "supported");
    return cfxi_rt_result_like(c, 0, (cfx_dtype)x->dtype, x);
}

cfx_status cfxi_kernel_index_fill(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfx_datum args[2] = {c->args[3], cfx_datum_dtype((cfx_dtype)y->dtype)};
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), y->ndim, &dim));
    cfx_tensor *value = cfxi_rt_sub_tensor(c, CFX_OPID_scalar_tensor, args, 2);
    cfx_status status = value ? cfxi_index_begin_from_self(c) : c->err->status;
    if (status == CFX_OK)
        status =
            run_slices(c, y, dim, cfxi_rt_tensor(c, 2), value, CFXI_PICK_PUT, true, CFX_E_INDEX);
    cfx_tensor_release(value);
    return status;
}

/* ---- a copy in which a part is replaced ---------------------------------------------------- */

/* The part that the arguments from number 2 on name. */
static cfx_status part_of(cfxi_call *c, const cfx_tensor *x, cfxi_view *v)
{
    size_t dim;
    *v = cfxi_rt_view_of(x);
    if (c->op == CFX_OPID_diagonal_scatter)
        return cfxi_rt_view_diagonal(c, v, cfxi_rt_int(c, 2), cfxi_rt_int(c, 3),
                                         cfxi_rt_int(c, 4));
    if (c->op == CFX_OPID_as_strided_scatter)
        return cfxi_rt_view_strided(c, x, 2, v);
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), v->ndim, &dim));
    if (c->op == CFX_OPID_select_scatter)
        return cfxi_rt_view_select(c, v, dim, cfxi_rt_int(c, 3));
    int64_t step = cfxi_rt_int(c, 5);
    if (v->ndim == 0)
        return cfxi_fail(c, CFX_E_INDEX, "slice() cannot be applied to a 0-dim tensor.");
    if (step <= 0 && !cfx_dim_is_symbol(step))
        return cfxi_fail(c, CFX_E_SHAPE, "slice step must be positive");
    return cfxi_rt_view_slice(c, v, dim, cfxi_rt_is_none(c, 3) ? 0 : cfxi_rt_int(c, 3),
                              cfxi_rt_is_none(c, 4) ? INT64_MAX : cfxi_rt_int(c, 4), step);
}

cfx_status cfxi_rule_part_scatter(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *src = cfxi_rt_tensor(c, 1);
    cfxi_view v;
    char a[CFXI_SIZES_TEXT];
    char b[CFXI_SIZES_TEXT];
    CFX_TRY(part_of(c, x, &v));
    bool same = v.ndim == src->ndim;
    for (size_t i = 0; same && i < v.ndim; i++)
        same = cfxi_rt_same_size(c, v.size[i], src->size[i]);
    if (!same)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "expected src to have a size equal to the slice of self. src size = %s, "
                         "slice size = %s", cfxi_rt_sizes_text(src->size, src->ndim, a),
                         cfxi_rt_sizes_text(v.size, v.ndim, b));
    return cfxi_rt_result_like(c, 0, (cfx_dtype)x->dtype, x);
}

static cfx_status replace_part(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfxi_view v;
    cfx_tensor part;
    CFX_TRY(cfxi_rt_copy(c->rt, y, cfxi_rt_tensor(c, 0), c->err));
    CFX_TRY(part_of(c, y, &v));
    int64_t first = v.offset;
    int64_t last = v.offset;
    for (size_t i = 0; i < v.ndim; i++)
        last += (v.size[i] - 1) * v.stride[i];
    for (size_t i = 0; i < v.ndim; i++)
        if (v.size[i] == 0)
            return CFX_OK;
    if (first < 0 || last + (int64_t)cfxi_tensor_itemsize(y) > (int64_t)y->storage->size)
        return cfxi_fail(c, CFX_E_SHAPE, "the view lies outside the tensor's memory");
    cfxi_rt_view_borrow(&part, y, &v);
    return cfxi_rt_copy(c->rt, &part, cfxi_rt_tensor(c, 1), c->err);
}

cfx_status cfxi_kernel_select_scatter(cfxi_call *c) { return replace_part(c); }
cfx_status cfxi_kernel_slice_scatter(cfxi_call *c) { return replace_part(c); }
cfx_status cfxi_kernel_diagonal_scatter(cfxi_call *c) { return replace_part(c); }
cfx_status cfxi_kernel_as_strided_scatter(cfxi_call *c) { return replace_part(c); }

/* ---- repeat_interleave --------------------------------------------------------------------- */

/* How often all slices are repeated, if that is one number: else -1. */
static int64_t times_for_all(cfxi_call *c)
{
    const cfx_tensor *repeats = cfxi_rt_tensor(c, 1);
    if (!cfxi_rt_can_read(repeats) || (c->infer && !repeats->number))
        return -1;
    for (size_t i = 0; i < repeats->ndim; i++)
        if (repeats->size[i] != 1)
            return -1;
    int64_t n = cfxi_tensor_load_int((cfx_dtype)repeats->dtype, repeats->data);
    return n < 0 ? -2 : n;
}

cfx_status cfxi_rule_repeat_interleave(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *repeats = cfxi_rt_tensor(c, 1);
    cfxi_view v = cfxi_rt_view_of(x);
    size_t dim = 0;
    if (cfxi_rt_is_none(c, 2)) {
        v.size[0] = cfxi_rt_numel_dim(c, x->size, x->ndim);
        v.ndim = 1;
    } else {
        CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), v.ndim, &dim));
        if (v.ndim == 0)
            v.size[v.ndim++] = 1;
    }
    if (repeats->dtype != CFX_DTYPE_INT64 && repeats->dtype != CFX_DTYPE_INT32)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "\"repeat_interleave_cpu\" not implemented for '%s'",
                         cfx_dtype_name((cfx_dtype)repeats->dtype));
    if (repeats->ndim > 1)
        return cfxi_fail(c, CFX_E_SHAPE, "repeats must be 0-dim or 1-dim tensor");
    int64_t times = times_for_all(c);
    int64_t length = repeats->ndim ? repeats->size[0] : 1;
    if (times < 0 && length != 1 && !cfxi_rt_same_size(c, length, v.size[dim]))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "repeats must have the same size as input along dim, but got "
                         "repeats.size(0) = %lld and input.size(%zu) = %lld", (long long)length,
                         dim, (long long)v.size[dim]);
    if (times == -2)
        return cfxi_fail(c, CFX_E_SHAPE, "Repeats must be non-negative");
    bool told = !cfxi_rt_is_none(c, 3);
    v.size[dim] = times >= 0 ? cfx_dim_mul(c->dims, v.size[dim], times, c->err)
                  : told     ? cfxi_rt_int(c, 3)
                             : cfxi_rt_fresh(c);
    if (times >= 0 && told && !cfxi_rt_same_size(c, v.size[dim], cfxi_rt_int(c, 3)))
        return cfxi_fail(c, CFX_E_SHAPE, "allocated size does not match required size");
    return cfxi_rt_result(c, 0, v.dtype, v.size, v.ndim);
}

/* The index of the slice that each slice of the result is; NULL with c->err set. */
static cfx_tensor *source_slices(cfxi_call *c, const cfx_tensor *repeats, int64_t slices)
{
    int64_t total = 0;
    bool one = cfxi_tensor_numel(repeats) == 1;
    int64_t step = one ? 0 : repeats->stride[0];
    for (int64_t i = 0; i < slices; i++) {
        int64_t n = cfxi_tensor_load_int((cfx_dtype)repeats->dtype, repeats->data + i * step);
        if (n < 0 || __builtin_add_overflow(total, n, &total)) {
            cfxi_fail(c, CFX_E_SHAPE, n < 0 ? "repeats can not be negative" : "too many repeats");
            return NULL;
        }
    }
    cfx_tensor *index = cfx_tensor_new(CFX_DTYPE_INT64, &total, 1, c->rt->allocator, c->err);
    int64_t *to = index ? (int64_t *)(void *)index->data : NULL;
    for (int64_t i = 0; to && i < slices; i++)
        for (int64_t n = cfxi_tensor_load_int((cfx_dtype)repeats->dtype, repeats->data + i * step);
             n > 0; n--)
            *to++ = i;
    return index;
}

cfx_status cfxi_kernel_repeat_interleave(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t dim = 0;
    cfx_datum given = cfx_datum_tensor(cfx_tensor_retain(x));
    cfx_operator as = cfxi_rt_is_none(c, 2) ? CFX_OPID_ravel : CFX_OPID_atleast_1d;
    cfx_tensor *from = cfxi_rt_sub_tensor(c, as, &given, 1);
    cfx_datum_release(given);
    if (!from)
        return c->err->status;
    cfx_status status = CFX_OK;
    if (!cfxi_rt_is_none(c, 2))
        status = cfxi_rt_dim(c, cfxi_rt_int(c, 2), from->ndim, &dim);
    cfx_tensor *index = NULL;
    if (status == CFX_OK)
        index = source_slices(c, cfxi_rt_tensor(c, 1), from->size[dim]);
    if (status == CFX_OK && !index)
        status = c->err->status;
    if (status == CFX_OK && y->storage && y->size[dim] != index->size[0])
        status = cfxi_fail(c, CFX_E_SHAPE, "allocated size does not match required size");
    if (status == CFX_OK && !y->storage) {
        y->size[dim] = index->size[0];
        cfxi_tensor_contiguous_strides(y->size, y->ndim, cfxi_tensor_itemsize(y), y->stride);
        status = cfxi_rt_result_allocate(c, 0);
    }
    if (status == CFX_OK)
        status = run_slices(c, from, dim, index, y, CFXI_PICK_GET, false, CFX_E_INDEX);
    cfx_tensor_release(index);
    cfx_tensor_release(from);
    return status;
}
