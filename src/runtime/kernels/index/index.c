/* index.c - x[i, j] with tensors of indices: index, index_put. */
#include "picked_slices_impl.h"

/* ---- what the indices mean ----------------------------------------------------------------- */

/* The indices of a call by dimension of the tensor. */
typedef struct indexing {
    const cfx_tensor *x;
    cfx_tensor *by_dim[CFX_MAX_DIMS];  /* int64 or int32; NULL: all of the dimension */
    bool owned[CFX_MAX_DIMS];          /* made here of a mask */
    int64_t sizes[CFX_MAX_DIMS];       /* of all of them together */
    size_t ndim;
    size_t first;                      /* the first dimension that has one */
    size_t count;                      /* how many have */
    bool adjacent;                     /* else the picked dimensions come first in the result */
} indexing;

static bool is_mask(const cfx_tensor *t)
{
    return t->dtype == CFX_DTYPE_BOOL || t->dtype == CFX_DTYPE_UINT8;
}

static void indexing_free(indexing *ix)
{
    for (size_t i = 0; i < CFX_MAX_DIMS; i++)
        if (ix->owned[i])
            cfx_tensor_release(ix->by_dim[i]);
}

static cfx_status check_mask(cfxi_call *c, const cfx_tensor *x, const cfx_tensor *mask, size_t at)
{
    char a[CFXI_SIZES_TEXT];
    char b[CFXI_SIZES_TEXT];
    for (size_t i = 0; i < mask->ndim; i++)
        if (!cfxi_rt_same_size(c, mask->size[i], x->size[at + i]))
            return cfxi_fail(c, CFX_E_INDEX,
                             "The shape of the mask %s at index %zu does not match the shape of "
                             "the indexed tensor %s at index %zu",
                             cfxi_rt_sizes_text(mask->size, mask->ndim, a), i,
                             cfxi_rt_sizes_text(x->size, x->ndim, b), at + i);
    return CFX_OK;
}

/* A mask as one list of indices for each of its dimensions: what is not zero. When only the rule
 * is asked, lists of a length that nobody knows. */
static cfx_status add_mask(cfxi_call *c, indexing *ix, cfx_tensor *mask, size_t at)
{
    cfx_tensor *found = NULL;
    int64_t sizes[2] = {0, mask->ndim};
    if (c->infer || !cfxi_rt_can_read(mask)) {
        sizes[0] = cfxi_rt_fresh(c);
        found = cfxi_tensor_header(CFX_DTYPE_INT64, sizes, 2, c->rt->allocator, c->err);
    } else {
        cfx_datum given = cfx_datum_tensor(cfx_tensor_retain(mask));
        found = cfxi_rt_sub_tensor(c, CFX_OPID_nonzero, &given, 1);
        cfx_datum_release(given);
    }
    if (!found)
        return c->err->status;
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && i < mask->ndim; i++) {
        cfxi_view v = cfxi_rt_view_of(found);
        status = cfxi_rt_view_select(c, &v, 1, (int64_t)i);
        if (status == CFX_OK)
            ix->by_dim[at + i] = cfxi_rt_view_tensor(c, found, &v);
        ix->owned[at + i] = true;
        if (!ix->by_dim[at + i])
            status = c->err->status;
    }
    cfx_tensor_release(found);
    return status;
}

static cfx_status add_index(cfxi_call *c, indexing *ix, cfx_tensor *index, size_t *at)
{
    size_t dims = is_mask(index) ? index->ndim : 1;
    bool fits = is_mask(index) || index->dtype == CFX_DTYPE_INT64 ||
                index->dtype == CFX_DTYPE_INT32;
    if (!fits)
        return cfxi_fail(c, CFX_E_INDEX,
                         "tensors used as indices must be long, int, byte or bool tensors");
    if (*at + dims > ix->x->ndim)
        return cfxi_fail(c, CFX_E_INDEX, "too many indices for tensor of dimension %u (got %zu)",
                         ix->x->ndim, *at + dims);
    if (is_mask(index)) {
        CFX_TRY(check_mask(c, ix->x, index, *at));
        CFX_TRY(add_mask(c, ix, index, *at));
    } else {
        ix->by_dim[*at] = index;
    }
    *at += dims;
    return CFX_OK;
}

static cfx_status broadcast_indices(cfxi_call *c, indexing *ix)
{
    const cfx_tensor *all[CFX_MAX_DIMS];
    size_t last = 0;
    for (size_t i = ix->x->ndim; i-- > 0;)
        if (ix->by_dim[i])
            ix->first = i;
    for (size_t i = 0; i < ix->x->ndim; i++)
        if (ix->by_dim[i]) {
            all[ix->count++] = ix->by_dim[i];
            last = i;
        }
    ix->adjacent = last - ix->first + 1 == ix->count;
    if (cfxi_rt_broadcast(c, all, ix->count, ix->sizes, &ix->ndim) != CFX_OK)
        return cfxi_fail(c, CFX_E_INDEX,
                         "shape mismatch: indexing tensors could not be broadcast together");
    return CFX_OK;
}

/* Reads argument `arg`, a Tensor?[]; the caller frees it also if it fails. */
static cfx_status read_indices(cfxi_call *c, indexing *ix, const cfx_tensor *x, size_t arg)
{
    size_t n;
    const cfx_datum *items = cfxi_rt_list(c, arg, &n);
    size_t at = 0;
    *ix = (indexing){.x = x};
    for (size_t i = 0; i < n; i++) {
        if (items[i].kind == CFX_DATUM_NONE)
            at++;
        else
            CFX_TRY(add_index(c, ix, items[i].as.tensor, &at));
    }
    if (at > x->ndim)
        return cfxi_fail(c, CFX_E_INDEX, "too many indices for tensor of dimension %u (got %zu)",
                         x->ndim, at);
    return broadcast_indices(c, ix);
}

/* The sizes of x[indices]; *picked is where the picked dimensions begin. */
static cfx_status picked_sizes(cfxi_call *c, const indexing *ix, cfxi_view *v, size_t *picked)
{
    const cfx_tensor *x = ix->x;
    *picked = ix->adjacent ? ix->first : 0;
    *v = (cfxi_view){.dtype = (cfx_dtype)x->dtype};
    for (size_t i = 0; i < x->ndim; i++)
        if (!ix->by_dim[i])
            v->size[v->ndim++] = x->size[i];
    for (size_t i = 0; i < ix->ndim; i++)
        CFX_TRY(cfxi_rt_view_insert(c, v, *picked + i, ix->sizes[i], 0));
    return CFX_OK;
}

/* ---- slices -------------------------------------------------------------------------------- */

/* Where each picked slice of x begins: the sum over the indexed dimensions. */
static cfx_status locate(cfxi_call *c, const indexing *ix, cfxi_picks *p)
{
    cfx_tensor *all = cfx_tensor_new(CFX_DTYPE_INT64, ix->sizes, ix->ndim, c->rt->allocator,
                                     c->err);
    if (!all)
        return c->err->status;
    cfx_status status = CFX_OK;
    p->n = cfxi_tensor_numel(all);
    size_t bytes = (size_t)p->n * sizeof *p->at;
    p->at = cfxi_rt_scratch(c->rt, bytes + 8);
    if (!p->at)
        status = cfxi_base_nomem(c->err);
    else
        memset(p->at, 0, bytes);
    for (size_t i = 0; status == CFX_OK && i < ix->x->ndim; i++) {
        if (!ix->by_dim[i])
            continue;
        status = cfxi_rt_copy(c->rt, all, ix->by_dim[i], c->err);
        if (status == CFX_OK)
            status = cfxi_index_pick_along(c, p, ix->x, i, (const int64_t *)(void *)all->data, true,
                                           CFX_E_INDEX);
    }
    cfx_tensor_release(all);
    return status;
}

/* The dimensions that are not picked, beside those of `other`, which has the sizes of x[indices];
 * false if the slices of `other` lie at no one distance. */
static bool lay_out(const indexing *ix, const cfx_tensor *other, size_t picked, cfxi_picks *p)
{
    int64_t reach = -1;  /* elements of the picked dimensions inside this one */
    p->dtype = (cfx_dtype)ix->x->dtype;
    p->step = 0;
    for (size_t i = ix->ndim; i-- > 0;) {
        int64_t size = other->size[picked + i];
        int64_t stride = other->stride[picked + i];
        if (size == 1)
            continue;
        if (reach < 0) {
            p->step = stride;
            reach = 1;
        } else if (stride != reach * p->step) {
            return false;
        }
        reach *= size;
    }
    size_t at = 0;
    for (size_t i = 0; i < ix->x->ndim; i++) {
        if (ix->by_dim[i])
            continue;
        bool outer = ix->adjacent && i < ix->first;
        size_t there = outer ? at : at + ix->ndim;
        cfxi_index_walk_add(outer ? &p->outer : &p->inner, ix->x->size[i], ix->x->stride[i],
                            other->stride[there]);
        at++;
    }
    return true;
}

/* ---- index --------------------------------------------------------------------------------- */

/* The layout of PyTorch's result: that of an element-wise function of x, which does not move along
 * the picked dimensions, and the indices, which move along these alone. */
static cfx_status picked_layout(cfxi_call *c, const indexing *ix, const cfxi_view *v, size_t picked)
{
    cfx_tensor shown[CFX_MAX_DIMS + 1];
    const cfx_tensor *all[CFX_MAX_DIMS + 1];
    size_t n = 1;
    cfxi_view own = *v;
    for (size_t i = 0, at = 0; i < ix->x->ndim; i++)
        if (!ix->by_dim[i]) {
            own.stride[at < picked ? at : at + ix->ndim] = ix->x->stride[i];
            at++;
        }
    cfxi_rt_view_borrow(&shown[0], ix->x, &own);
    for (size_t i = 0; i < ix->x->ndim; i++) {
        const cfx_tensor *index = ix->by_dim[i];
        if (!index)
            continue;
        cfxi_view spread = cfxi_rt_view_of(index);
        CFX_TRY(cfxi_rt_view_expand(c, &spread, ix->sizes, ix->ndim));
        cfxi_view moves = *v;
        memset(moves.stride, 0, sizeof moves.stride);
        for (size_t d = 0; d < ix->ndim; d++)
            moves.stride[picked + d] = spread.stride[d];
        cfxi_rt_view_borrow(&shown[n++], ix->x, &moves);
    }
    for (size_t i = 0; i < n; i++)
        all[i] = &shown[i];
    return cfxi_rt_result_broadcast(c, 0, v->dtype, all, n);
}

/* The slices one after the other into `y`, by way of a dense tensor where they lie at no one
 * distance. */
static cfx_status gather_into(cfxi_call *c, const indexing *ix, cfxi_picks *p, cfx_tensor *y)
{
    size_t picked = ix->adjacent ? ix->first : 0;
    if (lay_out(ix, y, picked, p)) {
        cfxi_index_picks_run(c->rt, p, CFXI_PICK_GET, ix->x->data, y->data);
        return CFX_OK;
    }
    cfx_tensor *dense = cfx_tensor_new((cfx_dtype)y->dtype, y->size, y->ndim, c->rt->allocator,
                                       c->err);
    if (!dense)
        return c->err->status;
    lay_out(ix, dense, picked, p);
    cfxi_index_picks_run(c->rt, p, CFXI_PICK_GET, ix->x->data, dense->data);
    cfx_status status = cfxi_rt_copy(c->rt, y, dense, c->err);
    cfx_tensor_release(dense);
    return status;
}

static cfx_status gather_picks(cfxi_call *c, const indexing *ix)
{
    cfxi_picks p = {.n = 0};
    cfx_status status = locate(c, ix, &p);
    if (status == CFX_OK)
        status = gather_into(c, ix, &p, cfxi_rt_result_at(c, 0));
    cfxi_rt_scratch_free(c->rt, p.at);
    return status;
}

/* The rule alone: how many elements a mask picks is known once it is read, and once is enough. */
cfx_status cfxi_rule_index(cfxi_call *c)
{
    indexing ix;
    cfxi_view v;
    size_t picked;
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_status status = read_indices(c, &ix, x, 1);
    if (status == CFX_OK)
        status = picked_sizes(c, &ix, &v, &picked);
    if (status == CFX_OK && c->infer)
        status = cfxi_rt_result(c, 0, v.dtype, v.size, v.ndim);
    else if (status == CFX_OK)
        status = picked_layout(c, &ix, &v, picked);
    if (status == CFX_OK && cfxi_rt_computes(c))
        status = cfxi_rt_result_allocate(c, 0);
    if (status == CFX_OK && cfxi_rt_computes(c))
        status = ix.count ? gather_picks(c, &ix)
                          : cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), x, c->err);
    indexing_free(&ix);
    return status;
}

/* ---- index_put ----------------------------------------------------------------------------- */

/* Whether one value goes where one mask is set: that is masked_fill, which converts it. */
static bool fills_mask(const cfxi_call *c)
{
    size_t n;
    const cfx_datum *items = cfxi_rt_list(c, 1, &n);
    const cfx_tensor *values = cfxi_rt_tensor(c, 2);
    size_t masks = 0;
    for (size_t i = 0; i < n; i++) {
        if (items[i].kind != CFX_DATUM_TENSOR)
            continue;
        if (!is_mask(items[i].as.tensor))
            return false;
        masks++;
    }
    for (size_t i = 0; i < values->ndim; i++)
        if (values->size[i] != 1)
            return false;
    return masks == 1 && !cfxi_rt_bool(c, 3);
}

cfx_status cfxi_rule_index_put(cfxi_call *c)
{
    indexing ix;
    cfxi_view v;
    size_t picked;
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *values = cfxi_rt_tensor(c, 2);
    if (c->infer) {  /* else the kernel checks the indices, before it writes */
        cfx_status status = read_indices(c, &ix, x, 1);
        if (status == CFX_OK)
            status = picked_sizes(c, &ix, &v, &picked);
        indexing_free(&ix);
        CFX_TRY(status);
    }
    if (values->dtype != x->dtype && !values->number && !fills_mask(c))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "Index put requires the source and destination dtypes match, got %s for "
                         "the destination and %s for the source.",
                         cfx_dtype_name((cfx_dtype)x->dtype),
                         cfx_dtype_name((cfx_dtype)values->dtype));
    return cfxi_rt_result_like(c, 0, (cfx_dtype)x->dtype, x);
}

/* `values` with the sizes of x[indices] and of x's type: a view if its slices lie at one distance,
 * else a copy. */
static cfx_tensor *spread_values(cfxi_call *c, const indexing *ix, const cfx_tensor *values,
                                 cfxi_picks *p)
{
    char a[CFXI_SIZES_TEXT];
    char b[CFXI_SIZES_TEXT];
    cfxi_view wanted;
    size_t picked;
    cfxi_view v = cfxi_rt_view_of(values);
    if (picked_sizes(c, ix, &wanted, &picked) != CFX_OK)
        return NULL;
    while (v.ndim > wanted.ndim && v.size[0] == 1)
        cfxi_rt_view_remove(&v, 0);
    if (cfxi_rt_view_expand(c, &v, wanted.size, wanted.ndim) != CFX_OK) {
        cfxi_fail(c, CFX_E_SHAPE,
                  "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result "
                  "of shape %s", cfxi_rt_sizes_text(values->size, values->ndim, a),
                  cfxi_rt_sizes_text(wanted.size, wanted.ndim, b));
        return NULL;
    }
    cfx_tensor *spread = cfxi_rt_view_tensor(c, values, &v);
    if (spread && spread->dtype == ix->x->dtype && lay_out(ix, spread, picked, p))
        return spread;
    cfx_tensor *copy = spread ? cfx_tensor_new((cfx_dtype)ix->x->dtype, wanted.size, wanted.ndim,
                                               c->rt->allocator, c->err) : NULL;
    if (copy && cfxi_rt_copy(c->rt, copy, spread, c->err) != CFX_OK) {
        cfx_tensor_release(copy);
        copy = NULL;
    }
    cfx_tensor_release(spread);
    p->outer.n = p->inner.n = 0;
    if (copy)
        lay_out(ix, copy, picked, p);
    return copy;
}

cfx_status cfxi_index_begin_from_self(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    return y->data == x->data ? CFX_OK : cfxi_rt_copy(c->rt, y, x, c->err);
}

cfx_status cfxi_kernel_index_put(cfxi_call *c)
{
    indexing ix;
    cfxi_picks p = {.n = 0};
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    CFX_TRY(cfxi_index_begin_from_self(c));
    cfx_status status = read_indices(c, &ix, y, 1);
    cfx_tensor *values = NULL;
    if (status == CFX_OK && ix.count == 0) {
        status = cfxi_rt_copy(c->rt, y, cfxi_rt_tensor(c, 2), c->err);
    } else if (status == CFX_OK) {
        status = locate(c, &ix, &p);
        values = status == CFX_OK ? spread_values(c, &ix, cfxi_rt_tensor(c, 2), &p) : NULL;
        if (status == CFX_OK && !values)
            status = c->err->status;
    }
    if (values)
        cfxi_index_picks_run(c->rt, &p, cfxi_rt_bool(c, 3) ? CFXI_PICK_ADD : CFXI_PICK_PUT, y->data,
                             values->data);
    cfx_tensor_release(values);
    cfxi_rt_scratch_free(c->rt, p.at);
    indexing_free(&ix);
    return status;
}
