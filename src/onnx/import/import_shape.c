/* import_shape.c - shapes: reading them, and giving tensors other ones. */
#include "rules_impl.h"

#include <stdlib.h>

/* ---- reading ------------------------------------------------------------------------------- */

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* A list of sizes; from opset 15 on a part of it. */
cfx_var cfxi_import_shape(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfx_var sizes[CFX_MAX_DIMS];
    const int rank = cfxi_import_rank(c, 0);
    const bool part = cfxi_import_attribute(c, "start") || cfxi_import_attribute(c, "end");
    if (rank < 0 && part)
        cfxi_import_need_rank(c, 0);
    if (rank < 0)
        return cfx_tensor_row(s, cfx_size(s, cfxi_import_in(c, 0)),
                              .dtype = cfx_var_dtype(CFX_DTYPE_INT64));
    int64_t start = cfxi_import_int(c, "start", 0);
    int64_t end = cfxi_import_int(c, "end", rank);
    start = clamp(start < 0 ? start + rank : start, 0, rank);
    end = clamp(end < 0 ? end + rank : end, start, rank);
    for (int64_t i = start; i < end; i++)
        sizes[i - start] = cfxi_import_size(c, 0, (int)i);
    cfxi_import_set_items(c, 0, sizes, (size_t)(end - start), false);
    return cfx_var_empty();
}

cfx_var cfxi_import_size_of(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_rank(c, 0);
    cfx_var all = cfx_v(1);
    bool known = rank >= 0;
    for (int i = 0; i < rank; i++) {
        const cfx_var size = cfxi_import_size(c, 0, i);
        int64_t x = 0;
        known = known && size.kind == CFX_VAR_INT && all.kind == CFX_VAR_INT &&
                !__builtin_mul_overflow(all.as.i, size.as.i, &x);
        if (known)
            all = cfx_v(x);
    }
    if (!known)
        all = cfx_numel(s, cfxi_import_in(c, 0));
    cfxi_import_set_items(c, 0, &all, 1, true);
    return cfx_var_empty();
}

/* ---- other shapes -------------------------------------------------------------------------- */

/* A 0 stands for the size that the input has there, unless allowzero is given. */
static cfx_var reshape_to(cfxi_import_call *c, const cfx_var *items, size_t n)
{
    cfx_scope *s = c->scope;
    const cfx_at at = {.scope = s};
    cfx_var sizes[CFX_MAX_DIMS];
    const bool zeros = cfxi_import_int(c, "allowzero", 0) != 0;
    if (n > CFX_MAX_DIMS)
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "the shape has %zu dimensions; cfx has at "
                                "most %d", n, CFX_MAX_DIMS);
    for (size_t i = 0; i < n; i++) {
        sizes[i] = items[i];
        if (items[i].kind == CFX_VAR_INT && items[i].as.i == 0 && !zeros)
            sizes[i] = cfxi_import_size(c, 0, (int)i);
    }
    return cfx_reshape(s, cfxi_import_in(c, 0),
                       cfx_var_seq_at(at, CFX_DATUM_TUPLE, cfx_vars_make(sizes, n)));
}

/* A shape that only a run knows: zeros are replaced then. */
static cfx_var reshape_later(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfx_var own[CFX_MAX_DIMS];
    cfx_var sizes[CFX_MAX_DIMS];
    const cfx_at at = {.scope = s};
    const int rank = cfxi_import_rank(c, 0);
    const cfx_var n = cfxi_import_rank(c, 1) == 1 ? cfxi_import_size(c, 1, 0) : cfx_var_none();
    if (cfxi_import_int(c, "allowzero", 0) || rank < 0 || n.kind != CFX_VAR_INT ||
        n.as.i > CFX_MAX_DIMS)
        return cfx_reshape(s, cfxi_import_in(c, 0), cfxi_import_ints_of(c, 1));
    for (int i = 0; i < n.as.i; i++)
        own[i] = i < rank ? cfxi_import_size(c, 0, i) : cfx_v(0);
    const cfx_var asked = cfxi_import_in(c, 1);
    const cfx_var here = cfx_tensor_row(s, cfx_var_seq_at(at, CFX_DATUM_LIST,
                                                          cfx_vars_make(own, (size_t)n.as.i)),
                                        .dtype = cfx_var_dtype(CFX_DTYPE_INT64));
    const cfx_var shape = cfx_where(s, cfx_eq(s, asked, 0), here, asked);
    for (int i = 0; i < n.as.i; i++)
        sizes[i] = cfx_item(s, cfx_select(s, shape, 0, i));
    return cfx_reshape(s, cfxi_import_in(c, 0),
                       cfx_var_seq_at(at, CFX_DATUM_TUPLE, cfx_vars_make(sizes, (size_t)n.as.i)));
}

cfx_var cfxi_import_reshape(cfxi_import_call *c)
{
    cfxi_items l;
    cfxi_import_set_type(c, 0, cfxi_import_type(c, 0));
    if (cfxi_import_items(c, 1, &l))
        return reshape_to(c, l.items, l.n);
    return reshape_later(c);
}

/* Two dimensions: those before the axis, and the rest. */
cfx_var cfxi_import_flatten(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_need_rank(c, 0);
    int64_t axis = cfxi_import_int(c, "axis", 1);
    const cfx_var x = cfxi_import_in(c, 0);
    if (axis < 0)
        axis += rank;
    if (axis < 0 || axis > rank)
        return cfxi_import_fail(c, CFX_E_VALUE, "axis %lld is out of range for %d dimensions",
                                (long long)axis, rank);
    if (axis == 0)
        return cfx_reshape(s, x, cfx_ints(s, 1, -1));
    if (axis == rank)
        return cfx_reshape(s, x, cfx_ints(s, -1, 1));
    cfx_var two = axis > 1 ? cfx_flatten(s, x, .end_dim = cfx_v(axis - 1)) : x;
    return rank > axis + 1 ? cfx_flatten(s, two, .start_dim = cfx_v(1)) : two;
}

cfx_var cfxi_import_transpose(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    size_t n;
    const int64_t *perm = cfxi_import_ints(c, "perm", &n);
    int64_t back[CFX_MAX_DIMS];
    cfxi_import_set_type(c, 0, cfxi_import_type(c, 0));
    if (perm)
        return cfx_permute(s, cfxi_import_in(c, 0), cfx_var_ints(s, perm, n));
    const int rank = cfxi_import_need_rank(c, 0);
    for (int i = 0; i < rank; i++)
        back[i] = rank - 1 - i;
    const cfx_var order = cfx_var_ints(s, back, (size_t)(rank < 0 ? 0 : rank));
    return cfx_permute(s, cfxi_import_in(c, 0), order);
}

/* All inputs have the same type and rank, so one of which they are known tells those of the result,
 * whatever the others are. */
cfx_var cfxi_import_concat(cfxi_import_call *c)
{
    const cfx_var all = cfxi_import_list(c, 0);
    cfx_var joined = cfx_cat(c->scope, all, .dim = cfx_v(cfxi_import_int(c, "axis", 0)));
    for (size_t i = 0; i < c->node->inputs.n && cfx_scope_ok(c->scope); i++)
        joined = cfxi_import_assume(c, joined, cfxi_import_dtype(c, i), cfxi_import_rank(c, i));
    return joined;
}

/* ---- dimensions of size 1 ------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    const int64_t x = ((const cfx_var *)a)->as.i;
    const int64_t y = ((const cfx_var *)b)->as.i;
    return (x > y) - (x < y);
}

/* Axes from 0 on, in order; those that only a run knows are sorted then. */
static void sort_axes(cfxi_import_call *c, cfx_var *axes, int n, int rank)
{
    cfx_scope *s = c->scope;
    bool known = true;
    for (int i = 0; i < n; i++)
        known = known && axes[i].kind == CFX_VAR_INT;
    if (!known) {
        const cfx_var given = cfxi_import_in(c, 1);
        const cfx_var at = cfx_where(s, cfx_lt(s, given, 0), cfx_add(s, given, rank), given);
        const cfx_var sorted = cfx_getitem(s, cfx_sort(s, at), 0);
        for (int i = 0; i < n; i++)
            axes[i] = cfxi_import_unknown(c, cfx_item(s, cfx_select(s, sorted, 0, i)));
        return;
    }
    for (int i = 0; i < n; i++)
        axes[i] = cfx_v(cfxi_import_axis(c, axes[i].as.i, rank));
    qsort(axes, (size_t)n, sizeof *axes, compare);
}

cfx_var cfxi_import_unsqueeze(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfx_var axes[CFX_MAX_DIMS];
    int n;
    cfx_var x = cfxi_import_in(c, 0);
    cfxi_import_set_type(c, 0, cfxi_import_type(c, 0));
    if (!cfxi_import_axes_of(c, 1, "axes", axes, CFX_MAX_DIMS, &n))
        return cfx_var_empty();
    if (n < 0)
        return cfxi_import_fail(c, CFX_E_VALUE, "the axes are missing");
    if (n > 1)
        sort_axes(c, axes, n, cfxi_import_need_rank(c, 0) + n);
    for (int i = 0; i < n; i++)
        x = cfx_unsqueeze(s, x, axes[i]);
    const int rank = cfxi_import_rank(c, 0);
    return cfxi_import_assume(c, x, cfxi_import_dtype(c, 0), rank < 0 ? rank : rank + n);
}

/* Without a dimension that has the size 1, or the file is wrong. squeeze would leave one whose size
 * is not known; a shape of the other sizes fails where it is not 1. */
static cfx_var without_axis(cfx_scope *s, cfx_var x, cfx_var axis)
{
    cfx_var sizes[CFX_MAX_DIMS];
    size_t n = 0;
    const int rank = cfxi_import_rank_of(s, x);
    if (axis.kind != CFX_VAR_INT || axis.as.i < -rank || axis.as.i >= rank)
        return cfx_squeeze_dim(s, x, axis);
    const int at = (int)(axis.as.i < 0 ? axis.as.i + rank : axis.as.i);
    if (cfxi_import_dim_of(s, x, at).kind == CFX_VAR_INT)
        return cfx_squeeze_dim(s, x, axis);
    for (int i = 0; i < rank; i++)
        if (i != at)
            sizes[n++] = cfxi_import_dim_of(s, x, i);
    return cfx_reshape(s, x, cfxi_import_tuple(s, sizes, n));
}

cfx_var cfxi_import_squeezed(cfxi_import_call *c, cfx_var x, cfx_var *axes, int n)
{
    if (n > 1)
        sort_axes(c, axes, n, cfxi_import_need_rank(c, 0));
    for (int i = n; i-- > 0;)
        x = without_axis(c->scope, x, axes[i]);
    return x;
}

cfx_var cfxi_import_squeeze(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfx_var axes[CFX_MAX_DIMS];
    int n;
    const cfx_var x = cfxi_import_in(c, 0);
    cfxi_import_set_type(c, 0, cfxi_import_type(c, 0));
    if (!cfxi_import_axes_of(c, 1, "axes", axes, CFX_MAX_DIMS, &n))
        return cfx_var_empty();
    if (n < 0)
        return cfx_squeeze(s, x);
    const cfx_var y = cfxi_import_squeezed(c, x, axes, n);
    return cfxi_import_assume(c, y, cfxi_import_dtype(c, 0), cfxi_import_rank(c, 0) - n);
}
