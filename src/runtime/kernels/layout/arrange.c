/* arrange.c - copies of a tensor with its elements repeated, mirrored or moved. */
#include "runtime/view_impl.h"

/* ---- repeat -------------------------------------------------------------------------------- */

/* Sizes of `x` times `repeats`, which may be more than x has dimensions. */
static cfx_status repeated_sizes(cfxi_call *c, const cfx_tensor *x, const int64_t *repeats,
                                 size_t n, int64_t *sizes)
{
    char text[CFXI_SIZES_TEXT];
    size_t more = n - x->ndim;
    for (size_t i = 0; i < n; i++)
        sizes[i] = cfx_dim_mul(c->dims, repeats[i], i < more ? 1 : x->size[i - more], c->err);
    for (size_t i = 0; i < n; i++)
        if (repeats[i] < 0 && !cfx_dim_is_symbol(repeats[i]))
            return cfxi_fail(c, CFX_E_SHAPE,
                             "Trying to create tensor with negative dimension %lld: %s",
                             (long long)sizes[i], cfxi_rt_sizes_text(sizes, n, text));
    return c->err->status;
}

cfx_status cfxi_rule_repeat(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t repeats[CFX_MAX_DIMS];
    int64_t sizes[CFX_MAX_DIMS];
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, 1, repeats, &n));
    if (n < x->ndim)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "Number of dimensions of repeat dims can not be smaller than number of "
                         "dimensions of tensor");
    CFX_TRY(repeated_sizes(c, x, repeats, n, sizes));
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, n);
}

/* As repeat, with ones before too few repeats. */
cfx_status cfxi_rule_tile(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t given[CFX_MAX_DIMS];
    int64_t repeats[CFX_MAX_DIMS];
    int64_t sizes[CFX_MAX_DIMS];
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, 1, given, &n));
    size_t all = n > x->ndim ? n : x->ndim;
    for (size_t i = 0; i < all; i++)
        repeats[i] = i < all - n ? 1 : given[i - (all - n)];
    CFX_TRY(repeated_sizes(c, x, repeats, all, sizes));
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, all);
}

/* Fills y along `dim` with copies of its first `have` slices; v holds those, and of the dimensions
 * inside all. Twice as much each time. */
static cfx_status double_up(cfxi_call *c, cfx_tensor *y, cfxi_view *v, size_t dim)
{
    int64_t have = v->size[dim];
    while (have < y->size[dim]) {
        cfx_tensor from;
        cfx_tensor to;
        cfxi_view next = *v;
        int64_t rest = y->size[dim] - have;
        next.size[dim] = rest < have ? rest : have;
        cfxi_rt_view_borrow(&from, y, &next);
        next.offset += have * y->stride[dim];
        cfxi_rt_view_borrow(&to, y, &next);
        CFX_TRY(cfxi_rt_copy(c->rt, &to, &from, c->err));
        have += next.size[dim];
    }
    v->size[dim] = y->size[dim];
    return CFX_OK;
}

cfx_status cfxi_kernel_repeat(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfxi_view v = cfxi_rt_view_of(y);
    cfx_tensor first;
    size_t more = (size_t)(y->ndim - x->ndim);
    if (cfxi_tensor_numel(y) == 0)
        return CFX_OK;
    for (size_t i = more; i < y->ndim; i++)  /* sizes of 1 broadcast in the first copy */
        if (x->size[i - more] != 1)
            v.size[i] = x->size[i - more];
    cfxi_rt_view_borrow(&first, y, &v);
    CFX_TRY(cfxi_rt_copy(c->rt, &first, x, c->err));
    for (size_t i = y->ndim; i-- > more;)
        CFX_TRY(double_up(c, y, &v, i));
    return CFX_OK;
}
cfx_status cfxi_kernel_tile(cfxi_call *c) { return cfxi_kernel_repeat(c); }

/* ---- flip, roll ---------------------------------------------------------------------------- */

cfx_status cfxi_rule_flip(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t dims[CFX_MAX_DIMS];
    bool seen[CFX_MAX_DIMS] = {false};
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, 1, dims, &n));
    for (size_t i = 0; i < n; i++) {
        size_t d;
        CFX_TRY(cfxi_rt_dim(c, dims[i], x->ndim, &d));
        if (seen[d])
            return cfxi_fail(c, CFX_E_SHAPE, "dim %zu appears multiple times in the list of dims",
                             d);
        seen[d] = true;
    }
    return cfxi_rt_result_like(c, 0, (cfx_dtype)x->dtype, x);
}

cfx_status cfxi_kernel_flip(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    int64_t dims[CFX_MAX_DIMS];
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, 1, dims, &n));
    for (size_t i = 0; v.ndim > 0 && i < n; i++) {
        size_t d;
        CFX_TRY(cfxi_rt_dim(c, dims[i], v.ndim, &d));
        v.offset += (v.size[d] - 1) * v.stride[d];
        v.stride[d] = -v.stride[d];
    }
    cfx_tensor mirrored;
    if (cfxi_tensor_numel(x) == 0)
        return CFX_OK;
    cfxi_rt_view_borrow(&mirrored, x, &v);
    return cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), &mirrored, c->err);
}

static cfx_status roll_checks(cfxi_call *c, int64_t *shifts, int64_t *dims, size_t *n)
{
    size_t num_dims;
    CFX_TRY(cfxi_rt_ints(c, 1, shifts, n));
    CFX_TRY(cfxi_rt_ints(c, 2, dims, &num_dims));
    if (*n == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "`shifts` required");
    if (num_dims == 0 && *n == 1) {
        *n = 0;
        return CFX_OK;
    }
    if (num_dims != *n)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "shifts and dimensions must align. shifts: %zu, dims:%zu", *n, num_dims);
    if (cfxi_rt_tensor(c, 0)->ndim == 0)
        return cfxi_fail(c, CFX_E_INDEX, "Dimension specified as %lld but tensor has no dimensions",
                         (long long)dims[0]);
    for (size_t i = 0; i < num_dims; i++) {
        size_t d;
        CFX_TRY(cfxi_rt_dim(c, dims[i], cfxi_rt_tensor(c, 0)->ndim, &d));
        dims[i] = (int64_t)d;
    }
    return CFX_OK;
}

/* PyTorch joins two parts, which keeps channels last; where there is only one it makes a contiguous
 * copy. */
static bool rolls_each(const cfx_tensor *x, const int64_t *shifts, const int64_t *dims, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x->size[dims[i]] != 0 && shifts[i] % x->size[dims[i]] == 0)
            return false;
    return n > 0;
}

cfx_status cfxi_rule_roll(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t shifts[CFX_MAX_DIMS];
    int64_t dims[CFX_MAX_DIMS];
    size_t n;
    CFX_TRY(roll_checks(c, shifts, dims, &n));
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim));
    if (!c->infer && rolls_each(x, shifts, dims, n) && cfxi_tensor_is_channels_last(x) &&
        !cfx_tensor_is_contiguous(x))
        cfxi_rt_channels_last_strides(cfxi_rt_result_at(c, 0));
    return CFX_OK;
}

/* Along the i-th dimension of the list the two parts of `from` change places in `to`; what is
 * between, further dimensions do. */
static cfx_status roll_from(cfxi_call *c, const cfx_tensor *to, const cfx_tensor *from,
                            const int64_t *shifts, const int64_t *dims, size_t n)
{
    if (n == 0)
        return cfxi_rt_copy(c->rt, (cfx_tensor *)to, from, c->err);
    size_t d = (size_t)dims[0];
    int64_t size = to->size[d];
    int64_t head = shifts[0] % size;  /* elements that come from the end */
    head = head < 0 ? head + size : head;
    for (int half = 0; half < 2; half++) {
        cfxi_view a = cfxi_rt_view_of(to);
        cfxi_view b = cfxi_rt_view_of(from);
        cfx_tensor x;
        cfx_tensor y;
        a.size[d] = b.size[d] = half ? size - head : head;
        a.offset = half ? head * a.stride[d] : 0;
        b.offset = half ? 0 : (size - head) * b.stride[d];
        if (a.size[d] == 0)
            continue;
        cfxi_rt_view_borrow(&y, to, &a);
        cfxi_rt_view_borrow(&x, from, &b);
        CFX_TRY(roll_from(c, &y, &x, shifts + 1, dims + 1, n - 1));
    }
    return CFX_OK;
}

/* Rolls by the i-th shift as if the dimension had not been rolled before: a dimension that stands
 * twice in the list is rolled by the sum. */
static size_t join_shifts(const cfx_tensor *x, int64_t *shifts, int64_t *dims, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = 0;
        while (at < kept && dims[at] != dims[i])
            at++;
        int64_t shift = shifts[i] % x->size[dims[i]];
        if (at == kept) {
            dims[kept] = dims[i];
            shifts[kept++] = shift;
        } else {
            shifts[at] += shift;
        }
    }
    return kept;
}

cfx_status cfxi_kernel_roll(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    int64_t shifts[CFX_MAX_DIMS];
    int64_t dims[CFX_MAX_DIMS];
    size_t n;
    CFX_TRY(roll_checks(c, shifts, dims, &n));
    if (cfxi_tensor_numel(x) == 0)
        return CFX_OK;
    if (x->ndim == 0)
        return cfxi_rt_copy(c->rt, y, x, c->err);
    if (n > 0)
        return roll_from(c, y, x, shifts, dims, join_shifts(x, shifts, dims, n));
    cfx_tensor *flat = cfxi_rt_contiguous(c, x, (cfx_dtype)x->dtype);  /* all elements in a row */
    if (!flat)
        return c->err->status;
    cfxi_view v = {.dtype = (cfx_dtype)x->dtype, .ndim = 1, .size = {cfxi_tensor_numel(x)},
                   .stride = {(int64_t)cfxi_tensor_itemsize(x)}};
    cfx_tensor from;
    cfx_tensor to;
    cfxi_rt_view_borrow(&from, flat, &v);
    cfxi_rt_view_borrow(&to, y, &v);
    dims[0] = 0;
    cfx_status status = roll_from(c, &to, &from, shifts, dims, 1);
    cfx_tensor_release(flat);
    return status;
}

/* ---- rot90 --------------------------------------------------------------------------------- */

/* A flip and a transposition, whose elements are then put in order. */
cfx_status cfxi_rule_rot90(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t k;
    int64_t dims[CFX_MAX_DIMS];
    size_t d[2];
    size_t n;
    CFX_TRY(cfxi_rt_number(c, 1, &k));
    CFX_TRY(cfxi_rt_ints(c, 2, dims, &n));
    if (n != 2)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "expected total rotation dims == 2, but got dims = %zu", n);
    if (x->ndim < 2)
        return cfxi_fail(c, CFX_E_SHAPE, "expected total dims >= 2, but got total dims = %u",
                         x->ndim);
    CFX_TRY(cfxi_rt_dim(c, dims[0], x->ndim, &d[0]));
    CFX_TRY(cfxi_rt_dim(c, dims[1], x->ndim, &d[1]));
    if (d[0] == d[1])
        return cfxi_fail(c, CFX_E_SHAPE,
                         "expected rotation dims to be different, but got dim0 = %lld and dim1 = "
                         "%lld", (long long)dims[0], (long long)dims[1]);
    k = (k % 4 + 4) % 4;
    cfxi_view v = cfxi_rt_view_of(x);
    if (k % 2 == 1)
        cfxi_rt_view_swap(&v, d[0], d[1]);
    if (k == 2 || c->infer)
        return k == 2 ? cfxi_rt_result_like(c, 0, v.dtype, x)
                      : cfxi_rt_result(c, 0, v.dtype, v.size, v.ndim);
    if (k == 0)
        return cfxi_rt_result(c, 0, v.dtype, v.size, v.ndim);
    cfx_tensor like;  /* what the flip would be, seen transposed */
    cfxi_rt_view_borrow(&like, x, &v);
    return cfxi_rt_result_like(c, 0, v.dtype, &like);
}

cfx_status cfxi_kernel_rot90(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    int64_t dims[CFX_MAX_DIMS];
    size_t d[2];
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, 2, dims, &n));
    CFX_TRY(cfxi_rt_dim(c, dims[0], x->ndim, &d[0]));
    CFX_TRY(cfxi_rt_dim(c, dims[1], x->ndim, &d[1]));
    int64_t k = (cfxi_rt_int(c, 1) % 4 + 4) % 4;
    for (int which = 0; which < 2; which++) {
        if (k == 0 || (k == 1 && which == 0) || (k == 3 && which == 1))
            continue;
        v.offset += (v.size[d[which]] - 1) * v.stride[d[which]];
        v.stride[d[which]] = -v.stride[d[which]];
    }
    if (k % 2 == 1)
        cfxi_rt_view_swap(&v, d[0], d[1]);
    cfx_tensor turned;
    if (cfxi_tensor_numel(x) == 0)
        return CFX_OK;
    cfxi_rt_view_borrow(&turned, x, &v);
    return cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), &turned, c->err);
}
