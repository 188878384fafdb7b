/* import_index.c - reading and writing elements at given places. */
#include "import_impl.h"

/* ---- indices ------------------------------------------------------------------------------- */

/* The indices of input i as int64. */
static cfx_var indices(cfxi_import_call *c, size_t i)
{
    const cfx_var index = cfxi_import_in(c, i);
    return cfxi_import_dtype(c, i) == CFX_DTYPE_INT64
               ? index : cfx_to(c->scope, index, cfx_var_dtype(CFX_DTYPE_INT64));
}

/* Likewise, with negative ones counted from the end of a dimension of input 0. */
static cfx_var from_the_start(cfxi_import_call *c, size_t i, int axis)
{
    cfx_scope *s = c->scope;
    const cfx_var index = indices(c, i);
    const cfx_var size = cfxi_import_size(c, 0, axis);
    return cfx_where(s, cfx_lt(s, index, 0), cfx_add(s, index, size), index);
}

static cfx_var tuple(cfx_scope *s, const cfx_var *items, size_t n)
{
    const cfx_at at = {.scope = s};
    return cfx_var_seq_at(at, CFX_DATUM_TUPLE, cfx_vars_make(items, n));
}

static cfx_var list(cfx_scope *s, const cfx_var *items, size_t n)
{
    const cfx_at at = {.scope = s};
    return cfx_var_seq_at(at, CFX_DATUM_LIST, cfx_vars_make(items, n));
}

/* ---- Gather -------------------------------------------------------------------------------- */

cfx_var cfxi_import_gather(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfx_var each[CFX_MAX_DIMS];
    cfxi_items l;
    const int rank = cfxi_import_need_rank(c, 0);
    const int axis = cfxi_import_axis(c, cfxi_import_int(c, "axis", 0), rank);
    if (axis < 0)
        return cfx_var_empty();
    cfxi_import_set_type(c, 0, cfxi_import_type(c, 0));
    if (cfxi_import_items(c, 1, &l) && l.is_scalar)
        return cfx_select(s, cfxi_import_in(c, 0), axis, l.items[0]);
    for (int i = 0; i < axis; i++)
        each[i] = cfx_var_none();
    each[axis] = indices(c, 1);
    return cfx_index(s, cfxi_import_in(c, 0), list(s, each, (size_t)axis + 1));
}

cfx_var cfxi_import_gather_elements(cfxi_import_call *c)
{
    const int rank = cfxi_import_need_rank(c, 0);
    const int axis = cfxi_import_axis(c, cfxi_import_int(c, "axis", 0), rank);
    if (axis < 0)
        return cfx_var_empty();
    return cfx_gather(c->scope, cfxi_import_in(c, 0), axis, from_the_start(c, 1, axis));
}

/* The last dimension of the indices, as a number; -1, and the scope fails, if it is not known. */
static int depth_of(cfxi_import_call *c, int *rank)
{
    *rank = cfxi_import_need_rank(c, 1);
    const cfx_var depth = *rank > 0 ? cfxi_import_size(c, 1, *rank - 1) : cfx_var_none();
    if (depth.kind == CFX_VAR_INT && depth.as.i <= CFX_MAX_DIMS)
        return (int)depth.as.i;
    if (cfx_scope_ok(c->scope))
        cfxi_import_fail(c, CFX_E_UNSUPPORTED, "the last size of the indices must be known");
    return -1;
}

/* One tensor of indices for each of the first dimensions that they are for. */
static void split_indices(cfx_scope *s, cfx_var index, int depth, cfx_var *each)
{
    for (int i = 0; i < depth; i++)
        each[i] = cfx_select(s, index, -1, i);
}

/* With batch dimensions: they are made one, which counts along. */
static cfx_var gather_batched(cfxi_import_call *c, int batch, int depth, int rank)
{
    cfx_scope *s = c->scope;
    cfx_var each[CFX_MAX_DIMS + 1];
    cfx_var shape[2 * CFX_MAX_DIMS];
    int64_t ones[CFX_MAX_DIMS];
    const int data_rank = cfxi_import_need_rank(c, 0);
    const cfx_var x = cfx_flatten(s, cfxi_import_in(c, 0), .end_dim = cfx_v(batch - 1));
    const cfx_var index = cfx_flatten(s, indices(c, 1), .end_dim = cfx_v(batch - 1));
    size_t n = 0;
    for (int i = 0; i < rank - 1 - batch + 1; i++)
        ones[i] = i == 0 ? -1 : 1;
    const cfx_var count = cfx_arange(s, cfx_size(s, x, .dim = cfx_v(0)));
    each[0] = cfx_reshape(s, count, cfx_var_ints(s, ones, (size_t)(rank - batch)));
    split_indices(s, index, depth, each + 1);
    const cfx_var found = cfx_index(s, x, list(s, each, (size_t)depth + 1));
    for (int i = 0; i < rank - 1; i++)
        shape[n++] = cfxi_import_size(c, 1, i);
    for (int i = batch + depth; i < data_rank; i++)
        shape[n++] = cfxi_import_size(c, 0, i);
    return cfx_reshape(s, found, tuple(s, shape, n));
}

cfx_var cfxi_import_gather_nd(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfx_var each[CFX_MAX_DIMS];
    int rank;
    const int64_t batch = cfxi_import_int(c, "batch_dims", 0);
    const int depth = depth_of(c, &rank);
    if (depth < 0)
        return cfx_var_empty();
    if (batch < 0 || batch >= rank || batch + depth > CFX_MAX_DIMS)
        return cfxi_import_fail(c, CFX_E_VALUE, "batch_dims is out of range");
    if (batch > 0)
        return gather_batched(c, (int)batch, depth, rank);
    split_indices(s, indices(c, 1), depth, each);
    return cfx_index(s, cfxi_import_in(c, 0), list(s, each, (size_t)depth));
}

/* ---- Scatter ------------------------------------------------------------------------------- */

/* PyTorch's word for a reduction; NULL for "none". */
static const char *reduction(cfxi_import_call *c)
{
    static const char *const words[][2] = {
        {"add", "sum"}, {"mul", "prod"}, {"max", "amax"}, {"min", "amin"}};
    for (size_t i = 0; i < 4; i++)
        if (cfxi_import_is(c, "reduction", "none", words[i][0]))
            return words[i][1];
    if (!cfxi_import_is(c, "reduction", "none", "none"))
        cfxi_import_fail(c, CFX_E_UNSUPPORTED, "this reduction is not known");
    return NULL;
}

cfx_var cfxi_import_scatter_elements(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_need_rank(c, 0);
    const int axis = cfxi_import_axis(c, cfxi_import_int(c, "axis", 0), rank);
    const char *how = reduction(c);
    if (axis < 0)
        return cfx_var_empty();
    const cfx_var x = cfxi_import_in(c, 0);
    const cfx_var index = from_the_start(c, 1, axis);
    const cfx_var updates = cfxi_import_in(c, 2);
    return how ? cfx_scatter_reduce(s, x, axis, index, updates, how)
               : cfx_scatter(s, x, axis, index, updates);
}

/* Rows of a matrix: the dimensions that are indexed are one, and so are the others. */
static cfx_var scatter_rows(cfxi_import_call *c, const char *how, int depth)
{
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_need_rank(c, 0);
    const cfx_var x = cfxi_import_in(c, 0);
    const cfx_var index = indices(c, 1);
    cfx_var row = cfx_v(0);
    cfx_var rows = cfx_v(1);
    cfx_var inner = cfx_v(1);
    for (int i = 0; i < rank; i++) {
        const cfx_var size = cfxi_import_size(c, 0, i);
        if (i >= depth) {
            inner = cfx_mul(s, inner, size);
            continue;
        }
        const cfx_var one = cfx_select(s, index, -1, i);
        const cfx_var at = cfx_where(s, cfx_lt(s, one, 0), cfx_add(s, one, size), one);
        row = i == 0 ? at : cfx_add(s, cfx_mul(s, row, size), at);
        rows = cfx_mul(s, rows, size);
    }
    const cfx_var matrix = cfx_reshape(s, x, cfx_tuple(s, rows, inner));
    const cfx_var updates = cfx_reshape(s, cfxi_import_in(c, 2), cfx_tuple(s, cfx_v(-1), inner));
    const cfx_var places = cfx_expand_as(s, cfx_reshape(s, row, cfx_ints(s, -1, 1)), updates);
    return cfx_reshape_as(s, cfx_scatter_reduce(s, matrix, 0, places, updates, how), x);
}

cfx_var cfxi_import_scatter_nd(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfx_var each[CFX_MAX_DIMS];
    int rank;
    const char *how = reduction(c);
    const int depth = depth_of(c, &rank);
    if (depth < 0)
        return cfx_var_empty();
    if (how)
        return scatter_rows(c, how, depth);
    split_indices(s, indices(c, 1), depth, each);
    return cfx_index_put(s, cfxi_import_in(c, 0), list(s, each, (size_t)depth),
                         cfxi_import_in(c, 2));
}

/* ---- masks and order ----------------------------------------------------------------------- */

cfx_var cfxi_import_non_zero(cfxi_import_call *c)
{
    return cfx_t(c->scope, cfx_nonzero(c->scope, cfxi_import_in(c, 0)));
}

cfx_var cfxi_import_compress(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var at = cfx_reshape(s, cfx_nonzero(s, cfxi_import_in(c, 1)), cfx_ints(s, -1));
    const bool flat = !cfxi_import_attribute(c, "axis");
    cfx_var x = cfxi_import_in(c, 0);
    if (flat)
        x = cfx_reshape(s, x, cfx_ints(s, -1));
    return cfx_index_select(s, x, flat ? 0 : cfxi_import_int(c, "axis", 0), at);
}

cfx_var cfxi_import_top_k(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var k = c->opset < 10 ? cfx_v(cfxi_import_int(c, "k", 0)) : cfxi_import_number(c, 1);
    const cfx_var both = cfx_topk(s, cfxi_import_in(c, 0), k,
                                  .dim = cfx_v(cfxi_import_int(c, "axis", -1)),
                                  .largest = cfx_v(cfxi_import_int(c, "largest", 1) != 0),
                                  .sorted = cfx_v(true));
    cfxi_import_set(c, 1, cfx_getitem(s, both, 1));
    return cfx_getitem(s, both, 0);
}

/* Elements in the order of their first appearance: `first` says where that is. */
static void unsort(cfx_scope *s, cfx_var *values, cfx_var *first, cfx_var *inverse, cfx_var *counts,
                   int64_t axis)
{
    const cfx_var order = cfx_argsort(s, *first);
    *values = cfx_index_select(s, *values, axis, order);
    *first = cfx_index_select(s, *first, 0, order);
    *counts = cfx_index_select(s, *counts, 0, order);
    *inverse = cfx_index_select(s, cfx_argsort(s, order), 0, *inverse);
}

cfx_var cfxi_import_unique(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const bool flat = !cfxi_import_attribute(c, "axis");
    const int64_t axis = cfxi_import_int(c, "axis", 0);
    cfx_var x = cfxi_import_in(c, 0);
    if (flat)
        x = cfx_reshape(s, x, cfx_ints(s, -1));
    const cfx_var all = cfx_unique(s, x, .return_inverse = cfx_v(true),
                                   .return_counts = cfx_v(true), .dim = cfx_v(axis));
    cfx_var values = cfx_getitem(s, all, 0);
    cfx_var inverse = cfx_getitem(s, all, 1);
    cfx_var counts = cfx_getitem(s, all, 2);
    const cfx_var n = cfx_size(s, x, .dim = cfx_v(axis));
    const cfx_var places = cfx_arange(s, n, .dtype = cfx_var_dtype(CFX_DTYPE_INT64));
    cfx_var first = cfx_scatter_reduce(s, cfx_mul(s, cfx_ones_like(s, counts), n), 0, inverse,
                                       places, "amin");
    if (!cfxi_import_int(c, "sorted", 1))
        unsort(s, &values, &first, &inverse, &counts, axis);
    cfxi_import_set(c, 1, first);
    cfxi_import_set(c, 2, inverse);
    cfxi_import_set(c, 3, counts);
    return values;
}

/* The first elements of each sequence turn around, as many as it has. */
cfx_var cfxi_import_reverse_sequence(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_need_rank(c, 0);
    const bool time_first = cfxi_import_int(c, "time_axis", 0) == 0;
    const cfx_var x = cfxi_import_in(c, 0);
    if (rank < 2)
        return cfxi_import_fail(c, CFX_E_VALUE, "the input must have two dimensions");
    const cfx_var lengths = cfx_unsqueeze(s, indices(c, 1), time_first ? 0 : 1);
    cfx_var t = cfx_arange(s, cfxi_import_size(c, 0, time_first ? 0 : 1));
    t = cfx_unsqueeze(s, t, time_first ? 1 : 0);
    cfx_var at = cfx_where(s, cfx_lt(s, t, lengths), cfx_sub(s, cfx_sub(s, lengths, 1), t), t);
    for (int i = 2; i < rank; i++)
        at = cfx_unsqueeze(s, at, -1);
    return cfx_gather(s, x, time_first ? 0 : 1, cfx_expand_as(s, at, x));
}

/* ---- one-hot ------------------------------------------------------------------------------- */

cfx_var cfxi_import_one_hot(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    int64_t shape[CFX_MAX_DIMS];
    const int rank = cfxi_import_need_rank(c, 0) + 1;
    const int axis = cfxi_import_axis(c, cfxi_import_int(c, "axis", -1), rank);
    if (axis < 0 || rank > CFX_MAX_DIMS)
        return cfx_var_empty();
    const cfx_var depth = cfx_to(s, cfx_reshape(s, cfxi_import_in(c, 1), cfx_ints(s, -1)),
                                 cfx_var_dtype(CFX_DTYPE_INT64));
    const cfx_var n = cfxi_import_known(c, 1) ? cfxi_import_number(c, 1)
                                              : cfx_item(s, depth);
    const cfx_var index = cfx_to(s, cfxi_import_in(c, 0), cfx_var_dtype(CFX_DTYPE_INT64));
    const cfx_var wrapped = cfx_where(s, cfx_lt(s, index, 0), cfx_add(s, index, depth), index);
    for (int i = 0; i < rank; i++)
        shape[i] = i == axis ? -1 : 1;
    const cfx_var count = cfx_reshape(s, cfx_arange(s, cfx_int(s, .x = n)),
                                      cfx_var_ints(s, shape, (size_t)rank));
    const cfx_var hot = cfx_eq(s, cfx_unsqueeze(s, wrapped, axis), count);
    const cfx_var values = cfxi_import_in(c, 2);
    return cfx_where(s, hot, cfx_select(s, values, 0, 1), cfx_select(s, values, 0, 0));
}
