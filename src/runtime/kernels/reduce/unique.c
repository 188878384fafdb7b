/* unique.c - the different elements of a tensor, or its different slices along a dimension; where
 * each element's is, and how many there are of each.
 *
 * One tensor, or a tuple of two or three, as the flags ask. NaN differs from everything.
 * unique_consecutive leaves everything where it is: what is as the one before it goes. */
#include "sort_impl.h"

/* (input, sorted, return_inverse, return_counts, dim); unique_consecutive has no `sorted`. */
enum { INPUT, SORTED, INVERSE, COUNTS, DIM };

static bool keeps_order(const cfxi_call *c) { return c->op == CFX_OPID_unique_consecutive; }

static size_t number_of(const cfxi_call *c, size_t param)
{
    return param - (keeps_order(c) && param > SORTED);
}

static bool wants(const cfxi_call *c, size_t param)
{
    return cfxi_rt_bool(c, number_of(c, param));
}

static bool has_dim(const cfxi_call *c) { return !cfxi_rt_is_none(c, number_of(c, DIM)); }

static cfx_status dim_of(cfxi_call *c, size_t *dim)
{
    return cfxi_rt_dim(c, cfxi_rt_int(c, number_of(c, DIM)), cfxi_rt_tensor(c, INPUT)->ndim, dim);
}

static cfx_status give(cfxi_call *c, cfx_tensor *const parts[3])
{
    cfx_datum items[3];
    size_t n = 0;
    for (size_t i = 0; i < 3; i++)
        if (parts[i])
            items[n++] = cfx_datum_tensor(parts[i]);
    if (n == 1) {
        cfxi_rt_result_datum(c, 0, cfx_datum_retain(items[0]));
        return CFX_OK;
    }
    cfx_datum all = cfx_datum_seq(CFX_DATUM_TUPLE, items, n, c->rt->allocator, c->err);
    if (all.kind == CFX_DATUM_INVALID)
        return CFX_E_NOMEM;
    cfxi_rt_result_datum(c, 0, all);
    return CFX_OK;
}

/* Slices lie one after the other in memory, as PyTorch has them. */
static cfx_tensor *slices_new(cfxi_call *c, const cfx_tensor *x, const int64_t *sizes, size_t dim)
{
    int64_t strides[CFX_MAX_DIMS];
    uint8_t order[CFX_MAX_DIMS] = {(uint8_t)dim};
    for (size_t d = 0, n = 1; d < x->ndim; d++)
        if (d != dim)
            order[n++] = (uint8_t)d;
    cfxi_tensor_ordered_strides(sizes, x->ndim, cfxi_tensor_itemsize(x), order, strides);
    return cfx_tensor_new_strided((cfx_dtype)x->dtype, sizes, strides, x->ndim, c->rt->allocator,
                                  c->err);
}

/* Sizes of the three results; `count` different ones. */
static cfx_status make_parts(cfxi_call *c, int64_t count, bool abstract, cfx_tensor *parts[3])
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    bool whole = !has_dim(c);
    int64_t sizes[CFX_MAX_DIMS];
    size_t dim = 0;
    cfx_tensor *(*make)(cfx_dtype, const int64_t *, size_t, const cfx_allocator *, cfx_error *) =
        abstract ? cfx_tensor_new_abstract : cfx_tensor_new;
    if (!whole)
        CFX_TRY(dim_of(c, &dim));
    memcpy(sizes, x->size, sizeof sizes);
    sizes[dim] = count;
    if (whole || abstract)
        parts[0] = make((cfx_dtype)x->dtype, sizes, whole ? 1 : x->ndim, c->rt->allocator, c->err);
    else
        parts[0] = slices_new(c, x, sizes, dim);
    if (wants(c, INVERSE))
        parts[1] = make(CFX_DTYPE_INT64, whole ? x->size : x->size + dim, whole ? x->ndim : 1,
                        c->rt->allocator, c->err);
    if (wants(c, COUNTS))
        parts[2] = make(CFX_DTYPE_INT64, &count, 1, c->rt->allocator, c->err);
    bool short_of = !parts[0] || (wants(c, INVERSE) && !parts[1]) ||
                    (wants(c, COUNTS) && !parts[2]);
    return short_of ? c->err->status : CFX_OK;
}

static void drop_parts(cfx_tensor *parts[3])
{
    for (size_t i = 0; i < 3; i++)
        cfx_tensor_release(parts[i]);
}

cfx_status cfxi_rule_unique(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    cfx_tensor *parts[3] = {NULL};
    size_t dim;
    if (cfx_dtype_is_complex((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for complex numbers");
    if (has_dim(c)) {
        CFX_TRY(dim_of(c, &dim));
        for (size_t d = 0; d < x->ndim; d++)
            if (d != dim && x->size[d] == 0 && x->size[dim] != 0)
                return cfxi_fail(c, CFX_E_SHAPE, "There are 0 sized dimensions, and they aren't "
                                 "selected, so unique cannot be applied");
    }
    if (!c->infer)
        return CFX_OK;  /* the kernel makes the results */
    cfx_status status = make_parts(c, cfxi_rt_fresh(c), true, parts);
    if (status == CFX_OK)
        status = give(c, parts);
    drop_parts(parts);
    return status;
}

/* ---- finding ------------------------------------------------------------------------------- */

/* `order` are the n things sorted, same[i] whether the i-th is as the one before. */
static cfx_status fill(cfxi_call *c, const cfxi_ranked *order, const bool *same, int64_t n,
                       cfx_tensor *parts[3])
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += !same[i];
    CFX_TRY(make_parts(c, count, false, parts));
    if (parts[2])
        memset(parts[2]->data, 0, (size_t)count * sizeof(int64_t));
    for (int64_t i = 0, at = -1; i < n; i++) {
        at += !same[i];
        if (parts[1])
            ((int64_t *)parts[1]->data)[order[i].index] = at;
        if (parts[2])
            ((int64_t *)parts[2]->data)[at]++;
    }
    return CFX_OK;
}

/* The elements, or slices of `size` bytes, that are first of their kind. */
static void copy_firsts(cfx_tensor *to, const char *from, size_t size, const cfxi_ranked *order,
                        const bool *same, int64_t n)
{
    char *at = to->data;
    for (int64_t i = 0; i < n; i++) {
        if (same[i])
            continue;
        memcpy(at, from + (size_t)order[i].index * size, size);
        at += size;
    }
}

static cfx_status unique_elements(cfxi_call *c, const cfx_tensor *x, cfx_tensor *parts[3])
{
    cfx_dtype dtype = (cfx_dtype)x->dtype;
    int64_t n = cfxi_tensor_numel(x);
    size_t size;
    if (!cfxi_base_mul_size((size_t)n, 2 * sizeof(cfxi_ranked) + sizeof(bool), 0, &size))
        return cfxi_base_nomem(c->err);
    cfxi_ranked *scratch = cfxi_rt_scratch(c->rt, size);
    if (!scratch)
        return cfxi_base_nomem(c->err);
    bool *same = (bool *)(scratch + 2 * n);
    cfxi_reduce_rank(c->rt, scratch, dtype, x->data, (int64_t)cfxi_tensor_itemsize(x), n, false);
    cfxi_ranked *order =
        keeps_order(c) ? scratch : cfxi_reduce_sort_ranked(scratch, scratch + n, n);
    for (int64_t i = 0; i < n; i++)
        same[i] =
            i && order[i].key == order[i - 1].key && !cfxi_reduce_key_is_nan(dtype, order[i].key);
    cfx_status status = fill(c, order, same, n, parts);
    if (status == CFX_OK)
        copy_firsts(parts[0], x->data, cfxi_tensor_itemsize(x), order, same, n);
    cfxi_rt_scratch_free(c->rt, scratch);
    return status;
}

/* ---- slices -------------------------------------------------------------------------------- */

static int compare_slices(const cfxi_ranked *a, const cfxi_ranked *b, int64_t width)
{
    for (int64_t i = 0; i < width; i++)
        if (a[i].key != b[i].key)
            return a[i].key < b[i].key ? -1 : 1;
    return 0;
}

/* Merges sorted halves, again and again: stable, and few comparisons, which are dear. */
static int64_t *sort_slices(const cfxi_ranked *keys, int64_t width, int64_t *x, int64_t *spare,
                            int64_t n)
{
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * run) {
            int64_t middle = begin + run < n ? begin + run : n;
            int64_t end = middle + run < n ? middle + run : n;
            int64_t a = begin;
            int64_t b = middle;
            for (int64_t i = begin; i < end; i++) {
                bool first = b == end || (a < middle && compare_slices(keys + x[a] * width,
                                                                       keys + x[b] * width,
                                                                       width) <= 0);
                spare[i] = first ? x[a++] : x[b++];
            }
        }
        int64_t *swap = x;
        x = spare;
        spare = swap;
    }
    return x;
}

static bool has_nan(cfx_dtype dtype, const cfxi_ranked *keys, int64_t width)
{
    for (int64_t i = 0; i < width; i++)
        if (cfxi_reduce_key_is_nan(dtype, keys[i].key))
            return true;
    return false;
}

/* rows: [n][width], contiguous. The different ones come into *firsts, likewise. */
static cfx_status unique_slices(cfxi_call *c, const cfx_tensor *rows, int64_t n, int64_t width,
                                cfx_tensor *parts[3], cfx_tensor **firsts)
{
    cfx_dtype dtype = (cfx_dtype)rows->dtype;
    size_t cells;
    size_t size;
    if (!cfxi_base_mul_size((size_t)n, (size_t)width, (size_t)n, &cells) ||
        !cfxi_base_mul_size(cells, sizeof(cfxi_ranked),
                            (size_t)n * (2 * sizeof(int64_t) + sizeof(bool)), &size))
        return cfxi_base_nomem(c->err);
    cfxi_ranked *keys = cfxi_rt_scratch(c->rt, size);
    if (!keys)
        return cfxi_base_nomem(c->err);
    cfxi_ranked *order = keys + n * width;
    int64_t *indices = (int64_t *)(order + n);
    bool *same = (bool *)(indices + 2 * n);
    cfxi_reduce_rank(c->rt, keys, dtype, rows->data, (int64_t)cfxi_tensor_itemsize(rows), n * width,
                     false);
    for (int64_t i = 0; i < n; i++)
        indices[i] = i;
    if (!keeps_order(c))
        indices = sort_slices(keys, width, indices, indices + n, n);
    for (int64_t i = 0; i < n; i++) {
        const cfxi_ranked *row = keys + indices[i] * width;
        order[i].index = indices[i];
        same[i] = i && compare_slices(keys + indices[i - 1] * width, row, width) == 0 &&
                  !has_nan(dtype, row, width);
    }
    cfx_status status = fill(c, order, same, n, parts);
    if (status == CFX_OK) {
        int64_t sizes[] = {0, width};
        for (int64_t i = 0; i < n; i++)
            sizes[0] += !same[i];
        *firsts = cfx_tensor_new(dtype, sizes, 2, c->rt->allocator, c->err);
        status = *firsts ? CFX_OK : c->err->status;
    }
    if (status == CFX_OK)
        copy_firsts(*firsts, rows->data, (size_t)width * cfxi_tensor_itemsize(rows), order, same,
                    n);
    cfxi_rt_scratch_free(c->rt, keys);
    return status;
}

/* A header over t's memory with dimension `dim` first. */
static cfx_tensor moved_first(const cfx_tensor *t, size_t dim)
{
    cfx_tensor m = *t;
    for (size_t d = dim; d > 0; d--) {
        m.size[d] = t->size[d - 1];
        m.stride[d] = t->stride[d - 1];
    }
    m.size[0] = t->size[dim];
    m.stride[0] = t->stride[dim];
    return m;
}

static cfx_status unique_along(cfxi_call *c, const cfx_tensor *x, cfx_tensor *parts[3])
{
    size_t dim;
    CFX_TRY(dim_of(c, &dim));
    int64_t n = x->ndim ? x->size[dim] : 1;
    cfx_tensor *firsts = NULL;
    cfx_tensor moved = moved_first(x, dim);
    cfx_tensor *rows = cfx_tensor_new((cfx_dtype)x->dtype, moved.size, x->ndim, c->rt->allocator,
                                      c->err);
    cfx_status status = rows ? cfxi_rt_copy(c->rt, rows, &moved, c->err) : c->err->status;
    if (status == CFX_OK)
        status = unique_slices(c, rows, n, n ? cfxi_tensor_numel(x) / n : 0, parts, &firsts);
    if (status == CFX_OK) {
        cfx_tensor to = moved_first(parts[0], dim);
        cfx_tensor from = *firsts;
        from.ndim = to.ndim;
        memcpy(from.size, to.size, sizeof to.size);
        cfxi_tensor_contiguous_strides(from.size, from.ndim, cfxi_tensor_itemsize(x), from.stride);
        status = cfxi_rt_copy(c->rt, &to, &from, c->err);
    }
    cfx_tensor_release(rows);
    cfx_tensor_release(firsts);
    return status;
}

cfx_status cfxi_kernel_unique(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    cfx_tensor *parts[3] = {NULL};
    cfx_tensor *dense = cfxi_rt_contiguous(c, x, (cfx_dtype)x->dtype);
    if (!dense)
        return c->err->status;
    cfx_status status =
        has_dim(c) ? unique_along(c, dense, parts) : unique_elements(c, dense, parts);
    if (status == CFX_OK)
        status = give(c, parts);
    drop_parts(parts);
    cfx_tensor_release(dense);
    return status;
}
cfx_status cfxi_kernel_unique_consecutive(cfxi_call *c) { return cfxi_kernel_unique(c); }
