/* import_parts.c - parts of tensors, and tensors made larger: Slice, Split, Pad, Expand, Tile. */
#include "import_impl.h"

static cfx_var tuple(cfx_scope *s, const cfx_var *items, size_t n)
{
    const cfx_at at = {.scope = s};
    return cfx_var_seq_at(at, CFX_DATUM_TUPLE, cfx_vars_make(items, n));
}

/* ---- Slice --------------------------------------------------------------------------------- */

/* A number as a tensor without dimensions. */
static cfx_var scalar(cfx_scope *s, cfx_var v)
{
    return cfx_tensor_row(s, v, .dtype = cfx_var_dtype(CFX_DTYPE_INT64));
}

/* The places from start to end with a step that may be negative, as numbers of which only a run
 * knows all: a tensor of indices. */
static cfx_var places(cfxi_import_call *c, cfx_var size, cfx_var start, cfx_var end, cfx_var step)
{
    cfx_scope *s = c->scope;
    const cfx_var n = scalar(s, size);
    const cfx_var by = scalar(s, step);
    const cfx_var up = cfx_gt(s, by, 0);
    cfx_var from = scalar(s, start);
    cfx_var to = scalar(s, end);
    const cfx_var zero = cfx_zeros_like(s, n);
    const cfx_var last = cfx_sub(s, n, 1);
    from = cfx_where(s, cfx_lt(s, from, 0), cfx_add(s, from, n), from);
    to = cfx_where(s, cfx_lt(s, to, 0), cfx_add(s, to, n), to);
    from = cfx_minimum(s, cfx_maximum(s, from, zero), cfx_where(s, up, n, last));
    to = cfx_minimum(s, cfx_maximum(s, to, cfx_where(s, up, zero, cfx_sub(s, zero, 1))), n);
    to = cfx_where(s, up, cfx_maximum(s, to, from), cfx_minimum(s, to, from));
    return cfx_arange_start(s, cfxi_import_unknown(c, cfx_item(s, from)),
                            cfxi_import_unknown(c, cfx_item(s, to)), .step = step,
                            .dtype = cfx_var_dtype(CFX_DTYPE_INT64));
}

/* A slice with a known, negative step of a dimension. */
static cfx_var backwards(cfxi_import_call *c, cfx_var x, int64_t axis, cfx_var start, cfx_var end,
                         int64_t step)
{
    cfx_scope *s = c->scope;
    const cfx_var size = cfx_size(s, x, .dim = cfx_v(axis));
    const cfx_var at = places(c, size, start, end, cfx_v(step));
    return cfx_index_select(s, x, axis, at);
}

/* Far beyond every size: the end itself. */
static cfx_var near_end(cfx_var v)
{
    const int64_t far = INT64_C(1) << 62;
    if (v.kind != CFX_VAR_INT)
        return v;
    return cfx_var_int(v.as.i > far ? far : v.as.i < -far ? -far : v.as.i);
}

typedef struct slice_parts {
    cfx_var start[CFX_MAX_DIMS];
    cfx_var end[CFX_MAX_DIMS];
    cfx_var axis[CFX_MAX_DIMS];
    cfx_var step[CFX_MAX_DIMS];
    int n;
} slice_parts;

/* Item k of a list of numbers, or of a tensor that only a run knows. */
static bool read_slice(cfxi_import_call *c, slice_parts *p)
{
    int n[4];
    cfxi_items l;
    cfx_var *const lists[] = {p->start, p->end, p->axis, p->step};
    static const char *const names[] = {"starts", "ends", "axes", "steps"};
    for (size_t i = 0; i < 4; i++) {
        const char *name = c->opset < 10 ? names[i] : NULL;
        if (!name && cfxi_import_items(c, i + 1, &l) && l.n <= CFX_MAX_DIMS) {
            n[i] = (int)l.n;
            memcpy(lists[i], l.items, l.n * sizeof *l.items);
        } else if (!cfxi_import_axes_of(c, i + 1, name, lists[i], CFX_MAX_DIMS, &n[i])) {
            return false;
        }
    }
    p->n = n[0];
    for (int k = 0; k < p->n; k++) {
        if (n[2] < 0)
            p->axis[k] = cfx_v(k);
        if (n[3] < 0)
            p->step[k] = cfx_v(1);
        p->start[k] = near_end(p->start[k]);
        p->end[k] = near_end(p->end[k]);
    }
    if (n[0] < 0 || n[1] != n[0] || (n[2] >= 0 && n[2] != n[0]) || (n[3] >= 0 && n[3] != n[0]))
        cfxi_import_fail(c, CFX_E_VALUE, "starts, ends, axes and steps do not have the same "
                         "length");
    return cfx_scope_ok(c->scope);
}

cfx_var cfxi_import_slice(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    slice_parts p;
    cfx_var x = cfxi_import_in(c, 0);
    cfxi_import_set_type(c, 0, cfxi_import_type(c, 0));
    if (!read_slice(c, &p))
        return cfx_var_empty();
    for (int k = 0; k < p.n && cfx_scope_ok(s); k++) {
        const bool known = p.step[k].kind == CFX_VAR_INT;
        if (known && p.step[k].as.i == 0)
            return cfxi_import_fail(c, CFX_E_VALUE, "the step is 0");
        if (known && p.step[k].as.i > 0)
            x = cfx_slice(s, x, .dim = p.axis[k], .start = p.start[k], .end = p.end[k],
                          .step = p.step[k]);
        else if (known && p.axis[k].kind == CFX_VAR_INT)
            x = backwards(c, x, p.axis[k].as.i, p.start[k], p.end[k], p.step[k].as.i);
        else
            x = cfx_index_select(s, x, p.axis[k],
                                 places(c, cfx_size(s, x, .dim = p.axis[k]), p.start[k], p.end[k],
                                        p.step[k]));
    }
    return cfxi_import_assume(c, x, cfxi_import_dtype(c, 0), cfxi_import_rank(c, 0));
}

/* ---- Split --------------------------------------------------------------------------------- */

/* As many parts as there are outputs, of the same size but for the last. */
static cfx_var split_evenly(cfxi_import_call *c, int axis, int64_t parts)
{
    cfx_scope *s = c->scope;
    const cfx_var size = cfxi_import_size(c, 0, axis);
    const cfx_var x = cfxi_import_in(c, 0);
    if (parts < 1)
        return cfxi_import_fail(c, CFX_E_VALUE, "it has %lld parts", (long long)parts);
    if (size.kind == CFX_VAR_INT)
        return cfx_split(s, x, size.as.i / parts + (size.as.i % parts != 0), .dim = cfx_v(axis));
    return cfx_split(s, x, cfx_floor_divide(s, cfx_add(s, size, parts - 1), parts),
                     .dim = cfx_v(axis));
}

cfx_var cfxi_import_split(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_need_rank(c, 0);
    const int axis = cfxi_import_axis(c, cfxi_import_int(c, "axis", 0), rank);
    const size_t outputs = cfxi_import_num_outputs(c);
    size_t n;
    cfx_var parts;
    if (axis < 0)
        return cfx_var_empty();
    const int64_t *sizes = c->opset < 13 ? cfxi_import_ints(c, "split", &n) : NULL;
    if (sizes)
        parts = cfx_split_with_sizes(s, cfxi_import_in(c, 0), cfx_var_ints(s, sizes, n),
                                     .dim = cfx_v(axis));
    else if (cfxi_import_has(c, 1))
        parts = cfx_split_with_sizes(s, cfxi_import_in(c, 0), cfxi_import_ints_of(c, 1),
                                     .dim = cfx_v(axis));
    else
        parts = split_evenly(c, axis, cfxi_import_int(c, "num_outputs", (int64_t)outputs));
    for (size_t i = 0; i < outputs; i++) {
        cfxi_import_set_type(c, i, cfxi_import_type(c, 0));
        cfxi_import_set(c, i, cfx_getitem(s, parts, i));
    }
    return cfx_var_empty();
}

/* ---- Pad ----------------------------------------------------------------------------------- */

/* The places of a dimension that what is padded is taken from. */
static cfx_var sources(cfxi_import_call *c, cfx_var size, cfx_var before, cfx_var after)
{
    cfx_scope *s = c->scope;
    const cfx_var n = scalar(s, size);
    const cfx_var end = cfx_item(s, cfx_add(s, n, scalar(s, after)));
    const cfx_var start = cfx_item(s, cfx_neg(s, scalar(s, before)));
    const cfx_var at = cfx_arange_start(s, cfxi_import_unknown(c, start),
                                        cfxi_import_unknown(c, end),
                                        .dtype = cfx_var_dtype(CFX_DTYPE_INT64));
    if (cfxi_import_is(c, "mode", "constant", "edge"))
        return cfx_minimum(s, cfx_maximum(s, at, cfx_zeros_like(s, n)), cfx_sub(s, n, 1));
    if (cfxi_import_is(c, "mode", "constant", "wrap"))
        return cfx_remainder(s, at, n);
    const cfx_var last = cfx_maximum(s, cfx_sub(s, n, 1), cfx_ones_like(s, n));
    const cfx_var turn = cfx_remainder(s, at, cfx_mul(s, last, 2));
    return cfx_sub(s, last, cfx_abs(s, cfx_sub(s, turn, last)));
}

typedef struct pad_parts {
    cfx_var pads[2 * CFX_MAX_DIMS];  /* before each, then after each */
    cfx_var axis[CFX_MAX_DIMS];
    int n;
} pad_parts;

static bool read_pads(cfxi_import_call *c, pad_parts *p)
{
    cfxi_items l;
    int axes;
    int n;
    if (c->opset >= 11 && cfxi_import_items(c, 1, &l) && l.n <= 2 * CFX_MAX_DIMS) {
        n = (int)l.n;
        memcpy(p->pads, l.items, l.n * sizeof *l.items);
    } else if (!cfxi_import_axes_of(c, 1, c->opset < 11 ? "pads" : NULL, p->pads, 2 * CFX_MAX_DIMS,
                                    &n)) {
        return false;
    }
    if (!cfxi_import_axes_of(c, 3, NULL, p->axis, CFX_MAX_DIMS, &axes))
        return false;
    const int rank = axes < 0 ? cfxi_import_need_rank(c, 0) : axes;
    for (int i = 0; axes < 0 && i < rank; i++)
        p->axis[i] = cfx_v(i);
    p->n = rank;
    if (cfx_scope_ok(c->scope) && n != 2 * rank)
        cfxi_import_fail(c, CFX_E_VALUE, "it has %d pads for %d dimensions", n, rank);
    return cfx_scope_ok(c->scope);
}

/* All known axes at once; PyTorch lists the last dimension first. */
static cfx_var pad_constant(cfxi_import_call *c, const pad_parts *p, cfx_var value)
{
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_need_rank(c, 0);
    cfx_var pads[2 * CFX_MAX_DIMS];
    cfx_var x = cfxi_import_in(c, 0);
    bool known = true;
    for (int i = 0; i < 2 * rank; i++)
        pads[i] = cfx_v(0);
    for (int i = 0; i < p->n; i++) {
        known = known && p->axis[i].kind == CFX_VAR_INT;
        const int axis = known ? cfxi_import_axis(c, p->axis[i].as.i, rank) : -1;
        if (axis < 0)
            continue;
        pads[2 * (rank - 1 - axis)] = p->pads[i];
        pads[2 * (rank - 1 - axis) + 1] = p->pads[p->n + i];
    }
    if (known)
        x = cfx_constant_pad_nd(s, x, tuple(s, pads, 2 * (size_t)(rank < 0 ? 0 : rank)),
                                .value = value);
    for (int i = 0; !known && i < p->n; i++) {
        x = cfx_movedim(s, x, cfx_tuple(s, p->axis[i]), cfx_ints(s, -1));
        x = cfx_constant_pad_nd(s, x, cfx_tuple(s, p->pads[i], p->pads[p->n + i]), .value = value);
        x = cfx_movedim(s, x, cfx_ints(s, -1), cfx_tuple(s, p->axis[i]));
    }
    return cfxi_import_assume(c, x, cfxi_import_dtype(c, 0), rank);
}

cfx_var cfxi_import_pad(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    pad_parts p;
    if (!read_pads(c, &p))
        return cfx_var_empty();
    if (cfxi_import_is(c, "mode", "constant", "constant")) {
        const cfx_var value = c->opset < 11 ? cfx_v(cfxi_import_float(c, "value", 0))
                              : cfxi_import_has(c, 2) ? cfxi_import_number(c, 2) : cfx_v(0);
        return pad_constant(c, &p, value);
    }
    cfx_var x = cfxi_import_in(c, 0);
    for (int i = 0; i < p.n; i++) {
        const cfx_var before = p.pads[i];
        const cfx_var after = p.pads[p.n + i];
        if (before.kind == CFX_VAR_INT && after.kind == CFX_VAR_INT && !before.as.i && !after.as.i)
            continue;
        const cfx_var size = cfx_size(s, x, .dim = p.axis[i]);
        x = cfx_index_select(s, x, p.axis[i], sources(c, size, before, after));
    }
    return cfxi_import_assume(c, x, cfxi_import_dtype(c, 0), cfxi_import_rank(c, 0));
}

/* ---- Expand, Tile -------------------------------------------------------------------------- */

/* The shape and the tensor are broadcast to each other. */
cfx_var cfxi_import_expand(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    cfxi_items l;
    cfx_var sizes[CFX_MAX_DIMS];
    const int rank = cfxi_import_rank(c, 0);
    const cfx_var x = cfxi_import_in(c, 0);
    cfxi_import_set_type(c, 0, cfxi_import_type(c, 0));
    if (rank < 0 || !cfxi_import_items(c, 1, &l) || l.n > CFX_MAX_DIMS) {
        const cfx_var one = cfx_ones(s, cfx_var_ints(s, NULL, 0),
                                     .dtype = cfx_var_dtype(CFX_DTYPE_BOOL));
        return cfx_where(s, cfx_expand(s, one, cfxi_import_ints_of(c, 1)), x, x);
    }
    const int n = (int)l.n > rank ? (int)l.n : rank;
    for (int i = 0; i < n; i++) {
        const int own = i - (n - rank);
        const int asked = i - (n - (int)l.n);
        const cfx_var size = own >= 0 ? cfxi_import_size(c, 0, own) : cfx_v(1);
        const cfx_var wish = asked >= 0 ? l.items[asked] : cfx_v(1);
        const bool keeps = (wish.kind == CFX_VAR_INT && wish.as.i == 1) ||
                           (size.kind == CFX_VAR_INT && size.as.i != 1);
        sizes[i] = keeps ? size : wish;
    }
    return cfx_expand(s, x, tuple(s, sizes, (size_t)n));
}

cfx_var cfxi_import_tile(cfxi_import_call *c)
{
    return cfx_tile(c->scope, cfxi_import_in(c, 0), cfxi_import_ints_of(c, 1));
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* [n, c, h, w] as [n, ..., h, w]: the sizes of the new dimensions are known but for these. */
static cfx_var in_blocks(cfxi_import_call *c, cfx_var x, const cfx_var *sizes, size_t n,
                         const int64_t *order, const cfx_var *after)
{
    cfx_scope *s = c->scope;
    const cfx_var parts = cfx_reshape(s, x, tuple(s, sizes, n));
    return cfx_reshape(s, cfx_permute(s, parts, cfx_var_ints(s, order, n)), tuple(s, after, 4));
}

cfx_var cfxi_import_depth_to_space(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    static const int64_t dcr[] = {0, 3, 4, 1, 5, 2};
    static const int64_t crd[] = {0, 1, 4, 2, 5, 3};
    const int64_t b = cfxi_import_int(c, "blocksize", 1);
    const bool is_crd = cfxi_import_is(c, "mode", "DCR", "CRD");
    const int rank = cfxi_import_need_rank(c, 0);
    if (rank != 4 || b < 1)
        return cfxi_import_fail(c, CFX_E_VALUE, "the input must have four dimensions, and "
                                "blocksize must be positive");
    const cfx_var n = cfxi_import_size(c, 0, 0);
    const cfx_var h = cfxi_import_size(c, 0, 2);
    const cfx_var w = cfxi_import_size(c, 0, 3);
    const cfx_var depth = cfx_floor_divide(s, cfxi_import_size(c, 0, 1), b * b);
    const cfx_var block = cfx_v(b);
    const cfx_var sizes[] = {n, is_crd ? depth : block, block, is_crd ? block : depth, h, w};
    const cfx_var after[] = {n, depth, cfx_mul(s, h, b), cfx_mul(s, w, b)};
    return in_blocks(c, cfxi_import_in(c, 0), sizes, 6, is_crd ? crd : dcr, after);
}

cfx_var cfxi_import_space_to_depth(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    static const int64_t dcr[] = {0, 3, 5, 1, 2, 4};
    static const int64_t crd[] = {0, 1, 3, 5, 2, 4};
    const int64_t b = cfxi_import_int(c, "blocksize", 1);
    const int rank = cfxi_import_need_rank(c, 0);
    if (rank != 4 || b < 1)
        return cfxi_import_fail(c, CFX_E_VALUE, "the input must have four dimensions, and "
                                "blocksize must be positive");
    const cfx_var n = cfxi_import_size(c, 0, 0);
    const cfx_var depth = cfxi_import_size(c, 0, 1);
    const cfx_var h = cfx_floor_divide(s, cfxi_import_size(c, 0, 2), b);
    const cfx_var w = cfx_floor_divide(s, cfxi_import_size(c, 0, 3), b);
    const cfx_var sizes[] = {n, depth, h, cfx_v(b), w, cfx_v(b)};
    const cfx_var after[] = {n, cfx_mul(s, depth, b * b), h, w};
    return in_blocks(c, cfxi_import_in(c, 0), sizes, 6,
                     cfxi_import_is(c, "mode", "DCR", "CRD") ? crd : dcr, after);
}
