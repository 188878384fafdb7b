/* export_views.c - rows that arrange elements anew: reshapes, transposes, joins, parts. */
#include "export_impl.h"

/* ---- sizes --------------------------------------------------------------------------------- */

static cfxi_ev *reshape_items(cfxi_export_call *c, cfxi_ev *x, cfxi_ev *const *items, size_t n)
{
    bool zero = false;
    for (size_t i = 0; i < n; i++)
        zero = zero || (cfxi_export_is_known(items[i]) && items[i]->datum.as.i == 0);
    cfxi_ev *made = NODE("Reshape", x, cfxi_export_shape_of(c->x, items, n));
    if (zero)  /* a size of 0, not "as it was" */
        SET_INT("allowzero", 1);
    return made;
}

cfxi_ev *cfxi_export_view(cfxi_export_call *c)
{
    cfxi_ev **items;
    const size_t n = cfxi_export_items(c, 1, &items);
    return reshape_items(c, ARG(0), items, n);
}

cfxi_ev *cfxi_export_view_as(cfxi_export_call *c)
{
    return NODE("Reshape", ARG(0), SHAPE(c->args[1]));
}

cfxi_ev *cfxi_export_ravel(cfxi_export_call *c) { return NODE("Reshape", ARG(0), INTS(-1)); }

/* The sizes of x, with those from `first` to `last` replaced. */
static cfxi_ev *replace_sizes(cfxi_export_call *c, int64_t first, int64_t last,
                              cfxi_ev *const *by, size_t n)
{
    const int rank = c->args[0]->rank;
    cfxi_ev *items[CFX_MAX_DIMS * 2];
    size_t k = 0;
    for (int64_t i = 0; i < first; i++)
        items[k++] = SIZE(c->args[0], i);
    for (size_t i = 0; i < n && k < CFX_MAX_DIMS; i++)
        items[k++] = by[i];
    for (int64_t i = last + 1; i < rank && k < CFX_MAX_DIMS * 2; i++)
        items[k++] = SIZE(c->args[0], i);
    return reshape_items(c, ARG(0), items, k);
}

cfxi_ev *cfxi_export_flatten(cfxi_export_call *c)
{
    const int rank = c->args[0]->rank;
    const int64_t first = cfxi_export_dim(c, 1, rank);
    const int64_t last = cfxi_export_dim(c, 2, rank);
    cfxi_ev *rest = cfxi_export_of_datum(c->x, cfx_datum_int(-1));
    if (rank == 0)
        return NODE("Reshape", ARG(0), INTS(1));
    return first == last ? ARG(0) : replace_sizes(c, first, last, &rest, 1);
}

cfxi_ev *cfxi_export_unflatten(cfxi_export_call *c)
{
    cfxi_ev **items;
    const int64_t dim = cfxi_export_dim(c, 1, c->args[0]->rank);
    const size_t n = cfxi_export_items(c, 2, &items);
    return replace_sizes(c, dim, dim, items, n);
}

/* Squeeze of dimensions that are known to be 1. */
static cfxi_ev *squeeze_known(cfxi_export_call *c, const int64_t *axes, size_t n)
{
    int64_t ones[CFX_MAX_DIMS];
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (cfxi_export_known_size(c->x, c->args[0], axes[i]) == 1)
            ones[k++] = axes[i];
    return k ? NODE("Squeeze", ARG(0), cfxi_export_const_ints(c->x, ones, k)) : ARG(0);
}

cfxi_ev *cfxi_export_squeeze_all(cfxi_export_call *c)
{
    int64_t axes[CFX_MAX_DIMS];
    const int rank = c->args[0]->rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    return squeeze_known(c, axes, (size_t)rank);
}

cfxi_ev *cfxi_export_squeeze_dim(cfxi_export_call *c)
{
    int64_t axes[CFX_MAX_DIMS * 2];
    const int rank = c->args[0]->rank;
    const size_t n = cfxi_export_ints(c, 1, axes);
    for (size_t i = 0; i < n; i++)
        axes[i] += axes[i] < 0 ? rank : 0;
    return rank == 0 ? ARG(0) : squeeze_known(c, axes, n);
}

cfxi_ev *cfxi_export_unsqueeze_row(cfxi_export_call *c)
{
    return cfxi_export_unsqueeze(c, ARG(0), cfxi_export_dim(c, 1, c->args[0]->rank + 1));
}

cfxi_ev *cfxi_export_atleast(cfxi_export_call *c)
{
    const cfx_tensor *t = cfxi_export_result(c, 0);
    const int rank = c->args[0]->rank;
    cfxi_ev *x = ARG(0);
    for (int i = rank; i < (int)cfx_tensor_ndim(t); i++)  /* (n) -> (1, n) -> (1, n, 1) */
        x = cfxi_export_unsqueeze(c, x, i == 2 ? 2 : 0);
    return x;
}

/* ---- order --------------------------------------------------------------------------------- */

cfxi_ev *cfxi_export_permute(cfxi_export_call *c)
{
    int64_t dims[CFX_MAX_DIMS * 2];
    const size_t n = cfxi_export_ints(c, 1, dims);
    for (size_t i = 0; i < n; i++)
        dims[i] += dims[i] < 0 ? (int64_t)n : 0;
    return cfxi_export_transpose(c, ARG(0), dims, n);
}

static cfxi_ev *swap_dims(cfxi_export_call *c, int64_t a, int64_t b)
{
    const int rank = c->args[0]->rank;
    if (rank < 2)
        return ARG(0);
    return cfxi_export_swap(c, ARG(0), (size_t)rank, (size_t)a, (size_t)b);
}

cfxi_ev *cfxi_export_transpose_row(cfxi_export_call *c)
{
    const int rank = c->args[0]->rank;
    return swap_dims(c, cfxi_export_dim(c, 1, rank), cfxi_export_dim(c, 2, rank));
}

cfxi_ev *cfxi_export_mT(cfxi_export_call *c)
{
    return swap_dims(c, c->args[0]->rank - 2, c->args[0]->rank - 1);
}

cfxi_ev *cfxi_export_numpy_T(cfxi_export_call *c)
{
    int64_t perm[CFX_MAX_DIMS];
    const int rank = c->args[0]->rank;
    for (int i = 0; i < rank; i++)
        perm[i] = rank - 1 - i;
    return cfxi_export_transpose(c, ARG(0), perm, (size_t)rank);
}

cfxi_ev *cfxi_export_movedim(cfxi_export_call *c)
{
    int64_t from[CFX_MAX_DIMS * 2];
    int64_t to[CFX_MAX_DIMS * 2];
    int64_t perm[CFX_MAX_DIMS];
    bool used[CFX_MAX_DIMS] = {false};
    const int rank = c->args[0]->rank;
    const size_t n = cfxi_export_ints(c, 1, from);
    cfxi_export_ints(c, 2, to);
    for (int i = 0; i < rank; i++)
        perm[i] = -1;
    for (size_t i = 0; i < n; i++) {
        from[i] += from[i] < 0 ? rank : 0;
        perm[to[i] + (to[i] < 0 ? rank : 0)] = from[i];
        used[from[i]] = true;
    }
    for (int i = 0, next = 0; i < rank; i++) {
        while (perm[i] < 0 && used[next])
            next++;
        perm[i] = perm[i] < 0 ? next++ : perm[i];
    }
    return cfxi_export_transpose(c, ARG(0), perm, (size_t)rank);
}

/* ---- repeating ----------------------------------------------------------------------------- */

/* ONNX keeps a size where the wanted one is 1. */
cfxi_ev *cfxi_export_expand(cfxi_export_call *c)
{
    cfxi_ev **items;
    cfxi_ev *sizes[CFX_MAX_DIMS * 2];
    const size_t n = cfxi_export_items(c, 1, &items);
    for (size_t i = 0; i < n; i++) {
        const bool keeps = cfxi_export_is_known(items[i]) && items[i]->datum.as.i == -1;
        sizes[i] = keeps ? cfxi_export_of_datum(c->x, cfx_datum_int(1)) : items[i];
    }
    return NODE("Expand", ARG(0), cfxi_export_shape_of(c->x, sizes, n));
}

cfxi_ev *cfxi_export_expand_as(cfxi_export_call *c)
{
    return NODE("Expand", ARG(0), SHAPE(c->args[1]));
}

/* x with dimensions of 1 in front, so that it has n. */
static cfxi_ev *with_rank(cfxi_export_call *c, cfxi_ev *x, int rank, int n)
{
    for (; rank < n; rank++)
        x = cfxi_export_unsqueeze(c, x, 0);
    return x;
}

cfxi_ev *cfxi_export_repeat(cfxi_export_call *c)
{
    cfxi_ev **items;
    cfxi_ev *times[CFX_MAX_DIMS * 2];
    const int rank = c->args[0]->rank;
    const size_t n = cfxi_export_items(c, 1, &items);
    size_t k = 0;
    for (; (int)(n + k) < rank; k++)  /* tile takes fewer than there are dimensions */
        times[k] = cfxi_export_of_datum(c->x, cfx_datum_int(1));
    for (size_t i = 0; i < n; i++)
        times[k + i] = items[i];
    cfxi_ev *x = with_rank(c, ARG(0), rank, (int)(n + k));
    return NODE("Tile", x, cfxi_export_shape_of(c->x, times, n + k));
}

/* Each element its own number of times: where the running sum of the numbers is not yet reached. */
static cfxi_ev *repeat_each(cfxi_export_call *c, cfxi_ev *x, cfxi_ev *times, int64_t dim)
{
    const int64_t last[] = {1};
    cfxi_ev *ends = NODE("CumSum", CAST(times, CFX_DTYPE_INT64), INT(0));
    cfxi_ev *all = cfxi_export_reduce(c, "ReduceSum", CAST(times, CFX_DTYPE_INT64), NULL, 0, false);
    cfxi_ev *places = cfxi_export_unsqueeze(c, cfxi_export_range(c, all), 1);
    cfxi_ev *before = NODE("LessOrEqual", cfxi_export_unsqueeze(c, ends, 0), places);
    cfxi_ev *index = cfxi_export_reduce(c, "ReduceSum", CAST(before, CFX_DTYPE_INT64), last, 1,
                                        false);
    cfxi_ev *made = NODE("Gather", x, index);
    SET_INT("axis", dim);
    return made;
}

cfxi_ev *cfxi_export_repeat_interleave(cfxi_export_call *c)
{
    const bool all = !cfxi_export_given(c, 2);
    const int64_t dim = all ? 0 : cfxi_export_dim(c, 2, c->args[0]->rank);
    cfxi_ev *x = all ? NODE("Reshape", ARG(0), INTS(-1)) : ARG(0);
    cfxi_ev *times = ARG(1);
    const int rank = cfxi_export_is_number(times) ? 0 : times->rank;
    if (rank == 1 && cfxi_export_known_size(c->x, times, 0) != 1)
        return repeat_each(c, x, times, dim);
    cfxi_ev *size = all ? NODE("Size", ARG(0)) : SIZE(c->args[0], dim);
    cfxi_ev *one = cfxi_export_one(c->x, times);
    return repeat_each(c, x, NODE("Expand", one, cfxi_export_one(c->x, size)), dim);
}

/* ---- joining ------------------------------------------------------------------------------- */

static bool is_left_out(const cfxi_export_call *c, const cfxi_ev *v)
{
    const cfx_tensor *t = cfxi_export_result(c, 0);
    return v->rank == 1 && cfx_tensor_ndim(t) > 1 && cfxi_export_known_size(c->x, v, 0) == 0;
}

static cfxi_ev *join(cfxi_export_call *c, int64_t dim, int new_axis)
{
    const cfxi_ev *list = c->args[0];
    cfxi_ev **parts = cfxi_export_room(c->x, list->n, sizeof *parts);
    size_t n = 0;
    for (size_t i = 0; parts && i < list->n; i++) {
        if (is_left_out(c, list->items[i]))
            continue;
        cfxi_ev *x = cfxi_export_fresh(c->x, list->items[i]);
        x = CAST(x, cfxi_export_result_dtype(c));
        parts[n++] = new_axis >= 0 ? cfxi_export_unsqueeze(c, x, new_axis) : x;
    }
    return parts && n ? cfxi_export_concat(c, parts, n, dim) : &c->x->broken;
}

cfxi_ev *cfxi_export_cat(cfxi_export_call *c)
{
    return join(c, cfxi_export_dim(c, 1, (int)cfx_tensor_ndim(cfxi_export_result(c, 0))), -1);
}

cfxi_ev *cfxi_export_stack(cfxi_export_call *c)
{
    const int64_t dim = cfxi_export_dim(c, 1, (int)cfx_tensor_ndim(cfxi_export_result(c, 0)));
    return join(c, dim, (int)dim);
}

/* hstack, vstack and dstack are cat of what has enough dimensions. */
static cfxi_ev *join_each(cfxi_export_call *c, cfx_operator atleast, int64_t dim)
{
    const cfxi_ev *list = c->args[0];
    cfxi_ev **parts = cfxi_export_room(c->x, list->n, sizeof *parts);
    for (size_t i = 0; parts && i < list->n; i++)
        parts[i] = CAST(cfxi_export_apply(c->x, c->node, atleast, &list->items[i], 1),
                        cfxi_export_result_dtype(c));
    return parts ? cfxi_export_concat(c, parts, list->n, dim) : &c->x->broken;
}

cfxi_ev *cfxi_export_hstack(cfxi_export_call *c)
{
    const bool flat = cfx_tensor_ndim(cfxi_export_result(c, 0)) == 1;
    return join_each(c, CFX_OPID_atleast_1d, flat ? 0 : 1);
}
cfxi_ev *cfxi_export_vstack(cfxi_export_call *c) { return join_each(c, CFX_OPID_atleast_2d, 0); }
cfxi_ev *cfxi_export_dstack(cfxi_export_call *c) { return join_each(c, CFX_OPID_atleast_3d, 2); }

/* ---- parts --------------------------------------------------------------------------------- */

static size_t num_results(const cfxi_export_call *c)
{
    size_t n;
    cfx_datum_items(c->result, &n);
    return n;
}

/* Parts of these lengths, one after the other. */
static cfxi_ev *split_by(cfxi_export_call *c, int64_t dim, cfxi_ev *lengths)
{
    const size_t n = num_results(c);
    cfxi_ev **parts = cfxi_export_room(c->x, n, sizeof *parts);
    cfxi_ev *inputs[] = {ARG(0), lengths};
    if (!parts)
        return &c->x->broken;
    cfxi_export_nodes(c->x, "Split", inputs, 2, parts, n);
    SET_INT("axis", dim);
    return cfxi_export_list(c->x, parts, n);
}

/* Parts of `size` each, the last one what is left: ends are cut to the size. */
static cfxi_ev *split_each(cfxi_export_call *c, int64_t dim, cfxi_ev *size)
{
    const size_t n = num_results(c);
    cfxi_ev **parts = cfxi_export_room(c->x, n, sizeof *parts);
    for (size_t i = 0; parts && i < n; i++) {
        cfxi_ev *start = NODE("Mul", size, INT((int64_t)i));
        cfxi_ev *end = NODE("Mul", size, INT((int64_t)i + 1));
        parts[i] = cfxi_export_slice(c, ARG(0), dim, start, end, 1);
    }
    return parts ? cfxi_export_list(c->x, parts, n) : &c->x->broken;
}

/* Split by what is known of the results; false if a length is not known. */
static bool split_known(cfxi_export_call *c, int64_t dim, cfxi_ev **made)
{
    const size_t n = num_results(c);
    int64_t *sizes = cfxi_export_room(c->x, n, sizeof *sizes);
    for (size_t i = 0; sizes && i < n; i++) {
        sizes[i] = cfx_tensor_sizes(cfxi_export_result(c, i))[dim];
        if (sizes[i] < 0)
            return false;
    }
    *made = sizes ? split_by(c, dim, cfxi_export_const_ints(c->x, sizes, n)) : &c->x->broken;
    return true;
}

cfxi_ev *cfxi_export_split(cfxi_export_call *c)
{
    cfxi_ev *made;
    const int64_t dim = cfxi_export_dim(c, 2, c->args[0]->rank);
    return split_known(c, dim, &made) ? made : split_each(c, dim, ARG(1));
}

cfxi_ev *cfxi_export_split_with_sizes(cfxi_export_call *c)
{
    cfxi_ev **items;
    const size_t n = cfxi_export_items(c, 1, &items);
    return split_by(c, cfxi_export_dim(c, 2, c->args[0]->rank),
                    cfxi_export_shape_of(c->x, items, n));
}

cfxi_ev *cfxi_export_chunk(cfxi_export_call *c)
{
    cfxi_ev *made;
    const int64_t dim = cfxi_export_dim(c, 2, c->args[0]->rank);
    const int64_t chunks = cfxi_export_int(c, 1);
    if (split_known(c, dim, &made))
        return made;
    cfxi_ev *all = NODE("Add", SIZE(c->args[0], dim), INT(chunks - 1));
    return split_each(c, dim, NODE("Div", all, INT(chunks)));
}

cfxi_ev *cfxi_export_tensor_split(cfxi_export_call *c)
{
    cfxi_ev *made;
    if (split_known(c, cfxi_export_dim(c, 2, c->args[0]->rank), &made))
        return made;
    return cfxi_export_refuse(c, "tensor_split of a dimension whose size is not known cannot be "
                              "written; use chunk or split");
}

cfxi_ev *cfxi_export_unbind(cfxi_export_call *c)
{
    const int64_t dim = cfxi_export_dim(c, 1, c->args[0]->rank);
    const size_t n = num_results(c);
    cfxi_ev **parts = cfxi_export_room(c->x, n, sizeof *parts);
    for (size_t i = 0; parts && i < n; i++) {
        parts[i] = NODE("Gather", ARG(0), INT((int64_t)i));
        SET_INT("axis", dim);
    }
    return parts ? cfxi_export_list(c->x, parts, n) : &c->x->broken;
}

/* The shape that tensors have together. */
cfxi_ev *cfxi_export_broadcast_tensors(cfxi_export_call *c)
{
    const cfxi_ev *list = c->args[0];
    cfxi_ev **parts = cfxi_export_room(c->x, list->n, sizeof *parts);
    cfxi_ev *all = INT(0);
    for (size_t i = 0; i < list->n; i++) {  /* a sum has that shape */
        cfxi_ev *one = CAST(cfxi_export_fresh(c->x, list->items[i]), CFX_DTYPE_INT64);
        all = NODE("Add", all, one);
    }
    cfxi_ev *shape = NODE("Shape", all);
    for (size_t i = 0; parts && i < list->n; i++)
        parts[i] = NODE("Expand", list->items[i], shape);
    return parts ? cfxi_export_list(c->x, parts, list->n) : &c->x->broken;
}

cfxi_ev *cfxi_export_meshgrid(cfxi_export_call *c)
{
    const cfxi_ev *list = c->args[0];
    const size_t n = list->n;
    const bool xy = cfxi_export_is(c, 1, "xy") && n > 1;
    cfxi_ev *sizes[CFX_MAX_DIMS];
    cfxi_ev *parts[CFX_MAX_DIMS];
    if (n > CFX_MAX_DIMS)
        return cfxi_export_refuse(c, "meshgrid of more than %d tensors", CFX_MAX_DIMS);
    for (size_t i = 0; i < n; i++) {
        const size_t at = xy && i < 2 ? 1 - i : i;
        sizes[at] = list->items[i]->rank == 0 ? cfxi_export_of_datum(c->x, cfx_datum_int(1))
                                              : SIZE(list->items[i], 0);
    }
    cfxi_ev *shape = cfxi_export_shape_of(c->x, sizes, n);
    for (size_t i = 0; i < n; i++) {
        int64_t ones[CFX_MAX_DIMS];
        for (size_t k = 0; k < n; k++)
            ones[k] = k == (xy && i < 2 ? 1 - i : i) ? -1 : 1;
        parts[i] = NODE("Expand", cfxi_export_reshape(c, list->items[i], ones, n), shape);
    }
    return cfxi_export_list(c->x, parts, n);
}

/* ---- turning ------------------------------------------------------------------------------- */

static cfxi_ev *flipped(cfxi_export_call *c, cfxi_ev *x, int64_t dim)
{
    return cfxi_export_slice(c, x, dim, INT(-1), NULL, -1);
}

cfxi_ev *cfxi_export_flip(cfxi_export_call *c)
{
    int64_t dims[CFX_MAX_DIMS * 2];
    const size_t n = cfxi_export_ints(c, 1, dims);
    cfxi_ev *x = ARG(0);
    for (size_t i = 0; i < n; i++)
        x = flipped(c, x, dims[i] + (dims[i] < 0 ? c->args[0]->rank : 0));
    return x;
}

static cfxi_ev *rolled(cfxi_export_call *c, cfxi_ev *x, int64_t dim, cfxi_ev *size, cfxi_ev *shift)
{
    cfxi_ev *by = NODE("Mod", shift, size);
    cfxi_ev *cut = NODE("Sub", size, by);
    cfxi_ev *parts[] = {cfxi_export_slice(c, x, dim, cut, NULL, 1),
                        cfxi_export_slice(c, x, dim, INT(0), cut, 1)};
    return cfxi_export_concat(c, parts, 2, dim);
}

cfxi_ev *cfxi_export_roll(cfxi_export_call *c)
{
    int64_t dims[CFX_MAX_DIMS * 2];
    cfxi_ev **shifts;
    const size_t num_shifts = cfxi_export_items(c, 1, &shifts);
    const size_t n = cfxi_export_ints(c, 2, dims);
    cfxi_ev *x = ARG(0);
    if (n == 0) {
        cfxi_ev *flat = NODE("Reshape", x, INTS(-1));
        return NODE("Reshape", rolled(c, flat, 0, NODE("Size", x), shifts[0]), SHAPE(c->args[0]));
    }
    for (size_t i = 0; i < n && i < num_shifts; i++) {
        const int64_t dim = dims[i] + (dims[i] < 0 ? c->args[0]->rank : 0);
        x = rolled(c, x, dim, SIZE(c->args[0], dim), shifts[i]);
    }
    return x;
}

cfxi_ev *cfxi_export_rot90(cfxi_export_call *c)
{
    int64_t dims[CFX_MAX_DIMS * 2];
    const int rank = c->args[0]->rank;
    const int64_t turns = (cfxi_export_int(c, 1) % 4 + 4) % 4;
    cfxi_export_ints(c, 2, dims);
    for (size_t i = 0; i < 2; i++)
        dims[i] += dims[i] < 0 ? rank : 0;
    cfxi_ev *x = ARG(0);
    if (turns == 2)
        return flipped(c, flipped(c, x, dims[0]), dims[1]);
    if (turns == 1)
        x = flipped(c, x, dims[1]);
    if (turns != 0)
        x = cfxi_export_swap(c, x, (size_t)rank, (size_t)dims[0], (size_t)dims[1]);
    return turns == 3 ? flipped(c, x, dims[1]) : x;
}

/* ---- windows ------------------------------------------------------------------------------- */

cfxi_ev *cfxi_export_unfold(cfxi_export_call *c)
{
    const int rank = c->args[0]->rank;
    const int64_t dim = cfxi_export_dim(c, 1, rank);
    const int64_t size = cfxi_export_int(c, 2);
    const int64_t step = cfxi_export_int(c, 3);
    cfxi_ev *room = NODE("Sub", SIZE(c->args[0], dim), INT(size));
    cfxi_ev *count = NODE("Add", NODE("Div", room, INT(step)), INT(1));
    cfxi_ev *starts = NODE("Mul", cfxi_export_range(c, count), INT(step));
    cfxi_ev *index = NODE("Add", cfxi_export_unsqueeze(c, starts, 1),
                          cfxi_export_range(c, INT(size)));
    cfxi_ev *made = NODE("Gather", ARG(0), index);
    SET_INT("axis", dim);
    int64_t perm[CFX_MAX_DIMS + 1];  /* the elements of a window come last */
    for (int i = 0; i <= rank; i++)
        perm[i] = i <= dim ? i : i < rank ? i + 1 : dim + 1;
    return cfxi_export_transpose(c, made, perm, (size_t)rank + 1);
}

cfxi_ev *cfxi_export_as_strided(cfxi_export_call *c)
{
    cfxi_ev **sizes;
    cfxi_ev **strides;
    const size_t n = cfxi_export_items(c, 1, &sizes);
    cfxi_export_items(c, 2, &strides);
    if (!cfx_tensor_is_contiguous(c->args[0]->datum.as.tensor))
        return cfxi_export_refuse(c, "as_strided of a tensor that is not contiguous depends on "
                                  "memory, which ONNX does not have; use views and slices");
    cfxi_ev *index = cfxi_export_given(c, 3) ? ARG(3) : INT(0);
    for (size_t i = 0; i < n; i++) {
        cfxi_ev *places = NODE("Mul", cfxi_export_range(c, sizes[i]), strides[i]);
        index = NODE("Add", cfxi_export_unsqueeze(c, index, -1), places);
    }
    return NODE("Gather", NODE("Reshape", ARG(0), INTS(-1)), index);
}

/* ---- padding and shuffles ------------------------------------------------------------------ */

/* Pairs from the last dimension on become all beginnings, then all ends. */
static cfxi_ev *pads_of(cfxi_export_call *c)
{
    cfxi_ev **items;
    cfxi_ev *pads[CFX_MAX_DIMS * 2];
    const size_t n = cfxi_export_items(c, 1, &items);
    const size_t rank = (size_t)c->args[0]->rank;
    for (size_t i = 0; i < rank * 2; i++)
        pads[i] = cfxi_export_of_datum(c->x, cfx_datum_int(0));
    for (size_t i = 0; i + 1 < n && i / 2 < rank; i += 2) {
        pads[rank - 1 - i / 2] = items[i];
        pads[rank * 2 - 1 - i / 2] = items[i + 1];
    }
    return cfxi_export_shape_of(c->x, pads, rank * 2);
}

static cfxi_ev *padded(cfxi_export_call *c, const char *mode, cfxi_ev *value)
{
    cfxi_ev *x = ARG(0);
    cfxi_ev *made = NODE("Pad", x, pads_of(c), value);
    SET_TEXT("mode", mode);
    return made;
}

cfxi_ev *cfxi_export_pad(cfxi_export_call *c)
{
    const char *mode = cfxi_export_str(c, 2);
    if (strcmp(mode, "circular") == 0 && c->x->opset < 19)
        return cfxi_export_refuse(c, "circular padding needs opset 19; save the model with "
                                  "opset=19 or later");
    if (strcmp(mode, "constant") != 0)
        return padded(c, strcmp(mode, "replicate") == 0 ? "edge"
                         : strcmp(mode, "circular") == 0 ? "wrap" : mode, NULL);
    return padded(c, mode, cfxi_export_given(c, 3) ? IN(3) : LIKE(c->args[0], 0));
}

cfxi_ev *cfxi_export_constant_pad(cfxi_export_call *c) { return padded(c, "constant", IN(2)); }

/* (n, c, h, w) as groups of its sizes, in another order, and together again. */
cfxi_ev *cfxi_export_pixel_shuffle(cfxi_export_call *c)
{
    if (c->args[0]->rank != 4)
        return cfxi_export_refuse(c, "pixel_shuffle is written for four dimensions; reshape the "
                                  "tensor to them");
    cfxi_ev *made = NODE("DepthToSpace", ARG(0));
    SET_INT("blocksize", cfxi_export_int(c, 1));
    SET_TEXT("mode", "CRD");
    return made;
}

cfxi_ev *cfxi_export_pixel_unshuffle(cfxi_export_call *c)
{
    const int64_t by = cfxi_export_int(c, 1);
    const int64_t perm[] = {0, 1, 3, 5, 2, 4};
    cfxi_ev *v = c->args[0];
    if (v->rank != 4)
        return cfxi_export_refuse(c, "pixel_unshuffle is written for four dimensions; reshape the "
                                  "tensor to them");
    cfxi_ev *f = cfxi_export_of_datum(c->x, cfx_datum_int(by));
    cfxi_ev *h = NODE("Div", SIZE(v, 2), INT(by));
    cfxi_ev *w = NODE("Div", SIZE(v, 3), INT(by));
    cfxi_ev *x = NODE("Reshape", ARG(0), cfxi_export_shape_of(
        c->x, CFXI_EVS(SIZE(v, 0), SIZE(v, 1), h, f, w, f), 6));
    x = cfxi_export_transpose(c, x, perm, 6);
    cfxi_ev *channels = NODE("Mul", SIZE(v, 1), INT(by * by));
    return NODE("Reshape", x, cfxi_export_shape_of(c->x, CFXI_EVS(SIZE(v, 0), channels, h, w), 4));
}

cfxi_ev *cfxi_export_channel_shuffle(cfxi_export_call *c)
{
    cfxi_ev *v = c->args[0];
    const int64_t groups = cfxi_export_int(c, 1);
    cfxi_ev *items[CFX_MAX_DIMS + 1];
    const int rank = v->rank;
    items[0] = SIZE(v, 0);
    items[1] = cfxi_export_of_datum(c->x, cfx_datum_int(groups));
    items[2] = NODE("Div", SIZE(v, 1), INT(groups));
    for (int i = 2; i < rank; i++)
        items[i + 1] = SIZE(v, i);
    cfxi_ev *x = NODE("Reshape", ARG(0), cfxi_export_shape_of(c->x, items, (size_t)rank + 1));
    return NODE("Reshape", cfxi_export_swap(c, x, (size_t)rank + 1, 1, 2), SHAPE(v));
}

/* ---- triangles and diagonals --------------------------------------------------------------- */

static cfxi_ev *triangle(cfxi_export_call *c, int64_t upper)
{
    const cfx_dtype dtype = cfxi_export_dtype(c->args[0]);
    const bool has = dtype == CFX_DTYPE_BOOL || dtype == CFX_DTYPE_INT64 ||
                     cfx_dtype_is_float(dtype);
    cfxi_ev *made = NODE("Trilu", CAST(ARG(0), has ? dtype : CFX_DTYPE_INT64), ARG(1));
    SET_INT("upper", upper);
    return made;
}

cfxi_ev *cfxi_export_tril(cfxi_export_call *c) { return triangle(c, 0); }
cfxi_ev *cfxi_export_triu(cfxi_export_call *c) { return triangle(c, 1); }

/* The diagonal of the last two dimensions (h, w): every w + 1 elements. */
static cfxi_ev *diagonal_of(cfxi_export_call *c, cfxi_ev *x, int rank, cfxi_ev *h, cfxi_ev *w,
                            int64_t offset)
{
    int64_t flat[CFX_MAX_DIMS];
    cfxi_ev *rows = offset < 0 ? NODE("Sub", h, INT(-offset)) : h;
    cfxi_ev *cols = offset > 0 ? NODE("Sub", w, INT(offset)) : w;
    cfxi_ev *count = NODE("Max", NODE("Min", rows, cols), INT(0));
    cfxi_ev *start = offset < 0 ? NODE("Mul", w, INT(-offset)) : INT(offset);
    cfxi_ev *steps = NODE("Mul", cfxi_export_range(c, count), NODE("Add", w, INT(1)));
    for (int i = 0; i < rank - 2; i++)
        flat[i] = 0;
    flat[rank - 2] = -1;
    cfxi_ev *made = NODE("Gather", cfxi_export_reshape(c, x, flat, (size_t)rank - 1),
                         NODE("Add", steps, start));
    SET_INT("axis", rank - 2);
    return made;
}

cfxi_ev *cfxi_export_diagonal(cfxi_export_call *c)
{
    int64_t perm[CFX_MAX_DIMS];
    const int rank = c->args[0]->rank;
    const int64_t a = cfxi_export_dim(c, 2, rank);
    const int64_t b = cfxi_export_dim(c, 3, rank);
    int k = 0;
    for (int i = 0; i < rank; i++)
        if (i != a && i != b)
            perm[k++] = i;
    perm[k] = a;
    perm[k + 1] = b;
    return diagonal_of(c, cfxi_export_transpose(c, ARG(0), perm, (size_t)rank), rank,
                       SIZE(c->args[0], a), SIZE(c->args[0], b), cfxi_export_int(c, 1));
}

/* Elements on a diagonal of zeros: kept where column - row is the offset. */
static cfxi_ev *on_diagonal(cfxi_export_call *c, cfxi_ev *size, int64_t offset)
{
    const int64_t more = offset < 0 ? -offset : offset;
    cfxi_ev *x = ARG(0);
    const int rank = c->args[0]->rank;
    cfxi_ev *n = NODE("Add", size, INT(more));
    cfxi_ev *places = cfxi_export_range(c, n);
    cfxi_ev *apart = NODE("Sub", places, cfxi_export_unsqueeze(c, places, 1));
    cfxi_ev *mask = NODE("Equal", apart, INT(offset));
    if (more > 0) {
        int64_t pads[CFX_MAX_DIMS * 2] = {0};
        pads[rank * 2 - 1] = more;
        x = NODE("Pad", x, cfxi_export_const_ints(c->x, pads, (size_t)rank * 2));
    }
    x = cfxi_export_unsqueeze(c, x, offset > 0 ? -1 : -2);
    return NODE("Where", mask, x, LIKE(c->args[0], 0));
}

cfxi_ev *cfxi_export_diag_embed(cfxi_export_call *c)
{
    const int rank = c->args[0]->rank;
    if (cfxi_export_dim(c, 2, rank + 1) != rank - 1 || cfxi_export_dim(c, 3, rank + 1) != rank)
        return cfxi_export_refuse(c, "diag_embed is written for the last two dimensions; permute "
                                  "its result instead");
    return on_diagonal(c, SIZE(c->args[0], -1), cfxi_export_int(c, 1));
}

cfxi_ev *cfxi_export_diag(cfxi_export_call *c)
{
    const int64_t offset = cfxi_export_int(c, 1);
    if (c->args[0]->rank == 1)
        return on_diagonal(c, SIZE(c->args[0], 0), offset);
    return diagonal_of(c, ARG(0), 2, SIZE(c->args[0], 0), SIZE(c->args[0], 1), offset);
}
