/* split_views.c - one tensor as several views, and several as views of one size. */
#include "runtime/view_impl.h"

/* A result that is a tuple under construction: items[0..n) are filled as they come. */
static cfx_status begin_tuple(cfxi_call *c, size_t n, cfx_datum **items)
{
    size_t size;
    if (!cfxi_base_mul_size(n + 1, sizeof **items, 0, &size))
        return cfxi_base_nomem(c->err);
    cfx_datum *nothing = cfxi_rt_scratch(c->rt, size);
    if (!nothing)
        return cfxi_base_nomem(c->err);
    for (size_t i = 0; i < n; i++)
        nothing[i] = cfx_datum_none();
    cfxi_rt_result_datum(c, 0,
                         cfx_datum_seq(CFX_DATUM_TUPLE, nothing, n, c->rt->allocator, c->err));
    cfxi_rt_scratch_free(c->rt, nothing);
    *items = cfx_datum_items(c->results[0], &n);
    return *items ? CFX_OK : c->err->status;
}

static cfx_status set_view(cfxi_call *c, cfx_datum *item, const cfx_tensor *base,
                           const cfxi_view *v)
{
    cfx_tensor *t = cfxi_rt_view_tensor(c, base, v);
    if (!t)
        return c->err->status;
    *item = cfx_datum_tensor(t);
    return CFX_OK;
}

/* ---- splits -------------------------------------------------------------------------------- */

/* The part of `x` along `dim` that begins at `start`; a size that does not fit is refused by the
 * callers. */
static cfx_status set_part(cfxi_call *c, cfx_datum *item, const cfx_tensor *x, size_t dim,
                           int64_t start, int64_t length)
{
    cfxi_view v = cfxi_rt_view_of(x);
    v.offset = cfxi_rt_wrap_mul(start, v.stride[dim]);
    v.size[dim] = length;
    return set_view(c, item, x, &v);
}

/* `n` parts of `length` each, the last with what remains. */
static cfx_status equal_parts(cfxi_call *c, size_t dim, int64_t n, int64_t length)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_datum *items;
    CFX_TRY(begin_tuple(c, (size_t)n, &items));
    int64_t start = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = cfx_dim_sub(c->dims, x->size[dim], start, c->err);
        CFX_TRY(set_part(c, &items[i], x, dim, start, i == n - 1 ? rest : length));
        start = cfx_dim_add(c->dims, start, length, c->err);
    }
    return c->err->status;
}

static cfx_status splittable(cfxi_call *c, const char *what, size_t dim_arg, size_t *dim)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (x->ndim == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "%s expects at least a 1-dimensional tensor", what);
    return cfxi_rt_dim(c, cfxi_rt_int(c, dim_arg), x->ndim, dim);
}

cfx_status cfxi_rule_split(cfxi_call *c)
{
    int64_t length = cfxi_rt_int(c, 1);
    size_t dim;
    CFX_TRY(splittable(c, "split", 2, &dim));
    int64_t size = cfxi_rt_tensor(c, 0)->size[dim];
    if (cfx_dim_is_symbol(size) || cfx_dim_is_symbol(length)) {
        int64_t n = cfx_dim_div(c->dims, size, length, c->err);
        if (cfx_dim_is_symbol(n) || n < 1)
            return cfxi_fail(c, CFX_E_VALUE, "the number of parts of a split must be known");
        return equal_parts(c, dim, n, length);
    }
    if (length < 0)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "split expects split_size be non-negative, but got split_size=%lld",
                         (long long)length);
    if (length == 0 && size != 0)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "split_size can only be 0 if dimension size is 0, but got dimension size "
                         "of %lld", (long long)size);
    int64_t n = length == 0 || size == 0 ? 1 : (size - 1) / length + 1;
    return equal_parts(c, dim, n, length);
}

cfx_status cfxi_rule_chunk(cfxi_call *c)
{
    int64_t n;
    size_t dim;
    CFX_TRY(cfxi_rt_number(c, 1, &n));
    CFX_TRY(splittable(c, "chunk", 2, &dim));
    if (n <= 0)
        return cfxi_fail(c, CFX_E_SHAPE, "chunk expects `chunks` to be greater than 0, got: %lld",
                         (long long)n);
    int64_t size = cfxi_rt_tensor(c, 0)->size[dim];
    if (cfx_dim_is_symbol(size)) {
        int64_t up = cfx_dim_add(c->dims, size, n - 1, c->err);
        return equal_parts(c, dim, n, cfx_dim_div(c->dims, up, n, c->err));
    }
    int64_t length = size > 0 ? (size - 1) / n + 1 : 0;
    return equal_parts(c, dim, length ? (size - 1) / length + 1 : n, length);
}

cfx_status cfxi_rule_split_with_sizes(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t n;
    const cfx_datum *sizes = cfxi_rt_list(c, 1, &n);
    cfx_datum *items;
    int64_t start = 0;
    size_t dim;
    CFX_TRY(splittable(c, "split", 2, &dim));
    for (size_t i = 0; i < n; i++) {
        if (sizes[i].as.i < 0 && !sizes[i].symbolic)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "split_with_sizes expects split_sizes have only non-negative entries");
        start = cfx_dim_add(c->dims, start, sizes[i].as.i, c->err);
    }
    if (!cfxi_rt_same_size(c, start, x->size[dim]))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "split_with_sizes expects split_sizes to sum exactly to %lld (input "
                         "tensor's size at dimension %zu), but they sum to %lld",
                         (long long)x->size[dim], dim, (long long)start);
    CFX_TRY(begin_tuple(c, n, &items));
    start = 0;
    for (size_t i = 0; i < n; i++) {
        CFX_TRY(set_part(c, &items[i], x, dim, start, sizes[i].as.i));
        start = cfx_dim_add(c->dims, start, sizes[i].as.i, c->err);
    }
    return c->err->status;
}

/* ---- tensor_split -------------------------------------------------------------------------- */

/* `n` parts, the first ones longer by one. */
static cfx_status even_parts(cfxi_call *c, size_t dim, int64_t n)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_datum *items;
    if (n <= 0)
        return cfxi_fail(c, CFX_E_SHAPE, "number of sections must be larger than 0, got %lld",
                         (long long)n);
    int64_t each = cfx_dim_div(c->dims, x->size[dim], n, c->err);
    int64_t longer = cfx_dim_is_symbol(each) ? 0 : x->size[dim] - each * n;
    int64_t start = 0;
    CFX_TRY(begin_tuple(c, (size_t)n, &items));
    for (int64_t i = 0; i < n; i++) {
        int64_t length = i < longer ? each + 1 : each;
        CFX_TRY(set_part(c, &items[i], x, dim, start, length));
        start = cfx_dim_add(c->dims, start, length, c->err);
    }
    return c->err->status;
}

/* Parts between the indices, as slices have them. */
static cfx_status parts_between(cfxi_call *c, size_t dim, const int64_t *at, size_t n)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_datum *items;
    CFX_TRY(begin_tuple(c, n + 1, &items));
    for (size_t i = 0; i <= n; i++) {
        cfxi_view v = cfxi_rt_view_of(x);
        CFX_TRY(cfxi_rt_view_slice(c, &v, dim, i ? at[i - 1] : 0, i < n ? at[i] : INT64_MAX, 1));
        CFX_TRY(set_view(c, &items[i], x, &v));
    }
    return CFX_OK;
}

/* Indices of a list of numbers or of a tensor; `out` is scratch. */
static cfx_status read_indices(cfxi_call *c, cfx_datum d, int64_t **out, size_t *n)
{
    const cfx_tensor *t = d.kind == CFX_DATUM_TENSOR ? d.as.tensor : NULL;
    const cfx_datum *items = cfx_datum_items(d, n);
    if (t)
        *n = (size_t)t->size[0];
    else if (d.kind != CFX_DATUM_LIST && d.kind != CFX_DATUM_TUPLE)
        return cfxi_fail(c, CFX_E_TYPE, "tensor_split takes a number, a list of numbers or a "
                         "tensor, not %s", cfx_datum_kind_name((cfx_datum_kind)d.kind));
    for (size_t i = 0; items && i < *n; i++)
        if (items[i].kind != CFX_DATUM_INT)
            return cfxi_fail(c, CFX_E_TYPE, "indices must be integers, not %s",
                             cfx_datum_kind_name((cfx_datum_kind)items[i].kind));
    size_t size;
    *out = cfxi_base_mul_size(*n + 1, sizeof **out, 0, &size) ? cfxi_rt_scratch(c->rt, size) : NULL;
    if (!*out)
        return cfxi_base_nomem(c->err);
    for (size_t i = 0; i < *n; i++)
        (*out)[i] =
            cfxi_rt_index_of(t ? cfx_datum_load((cfx_dtype)t->dtype,
                                                t->data + (int64_t)i * t->stride[0])
                               : items[i]);
    return CFX_OK;
}

cfx_status cfxi_rule_tensor_split(cfxi_call *c)
{
    cfx_datum how = c->args[1];
    const cfx_tensor *t = how.kind == CFX_DATUM_TENSOR ? how.as.tensor : NULL;
    int64_t *at = NULL;
    size_t n;
    size_t dim;
    if (cfxi_rt_tensor(c, 0)->ndim == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "tensor_split expected at least a 1-dimensional tensor, "
                         "but got a tensor with 0 dims");
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), cfxi_rt_tensor(c, 0)->ndim, &dim));
    if (t && (t->dtype != CFX_DTYPE_INT64 || t->ndim > 1 || !cfxi_rt_can_read(t)))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "tensor_split expected tensor_indices_or_sections to be a "
                         "zero-dimensional or one-dimensional int64 tensor whose elements are "
                         "known");
    if (how.kind == CFX_DATUM_INT)
        return even_parts(c, dim, how.as.i);
    if (t && t->ndim == 0)
        return even_parts(c, dim, cfxi_tensor_load_int(CFX_DTYPE_INT64, t->data));
    CFX_TRY(read_indices(c, how, &at, &n));
    cfx_status status = parts_between(c, dim, at, n);
    cfxi_rt_scratch_free(c->rt, at);
    return status;
}

cfx_status cfxi_rule_unbind(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_datum *items;
    size_t dim;
    if (x->ndim == 0)
        return cfxi_fail(c, CFX_E_INDEX, "Dimension specified as %lld but tensor has no dimensions",
                         (long long)cfxi_rt_int(c, 1));
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), x->ndim, &dim));
    if (x->size[dim] < 0)
        return cfxi_fail(c, CFX_E_VALUE, "unbind needs a known size in that dimension");
    CFX_TRY(begin_tuple(c, (size_t)x->size[dim], &items));
    for (int64_t i = 0; i < x->size[dim]; i++) {
        cfxi_view v = cfxi_rt_view_of(x);
        CFX_TRY(cfxi_rt_view_select(c, &v, dim, i));
        CFX_TRY(set_view(c, &items[i], x, &v));
    }
    return CFX_OK;
}

/* ---- several tensors ----------------------------------------------------------------------- */

cfx_status cfxi_rule_broadcast_tensors(cfxi_call *c)
{
    size_t n;
    const cfx_datum *given = cfxi_rt_list(c, 0, &n);
    int64_t sizes[CFX_MAX_DIMS] = {0};
    size_t ndim = 0;
    cfx_datum *items;
    for (size_t i = 0; i < n; i++) {  /* one after the other: any number of them */
        cfx_tensor so_far = {.ndim = (uint8_t)ndim};
        const cfx_tensor *both[2] = {&so_far, given[i].as.tensor};
        memcpy(so_far.size, sizes, sizeof sizes);
        CFX_TRY(cfxi_rt_broadcast(c, i ? both : both + 1, i ? 2 : 1, sizes, &ndim));
    }
    CFX_TRY(begin_tuple(c, n, &items));
    for (size_t i = 0; i < n; i++) {
        cfxi_view v = cfxi_rt_view_of(given[i].as.tensor);
        CFX_TRY(cfxi_rt_view_expand(c, &v, sizes, ndim));
        CFX_TRY(set_view(c, &items[i], given[i].as.tensor, &v));
    }
    return CFX_OK;
}

/* atleast_1d and its kin of several tensors. */
cfx_status cfxi_rule_atleast_each(cfxi_call *c)
{
    const cfx_operator one = c->op == CFX_OPID_atleast_1d_each   ? CFX_OPID_atleast_1d
                             : c->op == CFX_OPID_atleast_2d_each ? CFX_OPID_atleast_2d
                                                                 : CFX_OPID_atleast_3d;
    size_t n;
    const cfx_datum *given = cfxi_rt_list(c, 0, &n);
    cfx_datum *items;
    CFX_TRY(begin_tuple(c, n, &items));
    for (size_t i = 0; i < n; i++) {
        items[i] = cfxi_rt_sub(c, one, &given[i], 1);
        if (items[i].kind == CFX_DATUM_INVALID)
            return c->err->status;
    }
    return CFX_OK;
}

cfx_status cfxi_rule_meshgrid(cfxi_call *c)
{
    size_t n;
    const cfx_datum *given = cfxi_rt_list(c, 0, &n);
    const char *indexing = cfxi_rt_str(c, 1);
    cfx_datum *items;
    if (n == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "meshgrid expects a non-empty TensorList");
    if (n > CFX_MAX_DIMS)
        return cfxi_fail(c, CFX_E_SHAPE, "the tensor would have %zu dimensions; cfx supports up to "
                         "%d", n,
                         CFX_MAX_DIMS);
    bool swap = indexing && strcmp(indexing, "xy") == 0;
    if (!swap && indexing && strcmp(indexing, "ij") != 0)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: "
                         "%.40s", indexing);
    cfxi_view all = {.ndim = n};
    for (size_t i = 0; i < n; i++) {
        const cfx_tensor *t = given[i].as.tensor;
        if (t->ndim > 1)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                             "a tensor of %u dimensions", t->ndim);
        if (t->dtype != given[0].as.tensor->dtype)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "torch.meshgrid expects all tensors to have the same dtype");
        all.size[i] = t->ndim ? t->size[0] : 1;
    }
    CFX_TRY(begin_tuple(c, n, &items));
    for (size_t i = 0; i < n; i++) {
        const cfx_tensor *t = given[i].as.tensor;
        cfxi_view v = all;
        v.dtype = (cfx_dtype)t->dtype;
        v.stride[i] = t->ndim ? t->stride[0] : 0;
        if (swap && n > 1)
            cfxi_rt_view_swap(&v, 0, 1);
        CFX_TRY(set_view(c, &items[i], t, &v));
    }
    return CFX_OK;
}
