/* import_sequence.c - sequences are lists of tensors; an optional is its value, or nothing. */
#include "import_impl.h"

#include <cfx/embed/tensor.h>

/* A position as a number from 0 on. */
static cfx_var position(cfxi_import_call *c, size_t i, cfx_var list)
{
    cfx_scope *s = c->scope;
    const cfx_var at = cfxi_import_number(c, i);
    if (at.kind == CFX_VAR_INT)
        return at.as.i >= 0 ? at : cfx_add(s, cfx_len(s, list), at);
    const cfx_var t = cfx_reshape(s, cfxi_import_in(c, i), cfx_var_ints(s, NULL, 0));
    const cfx_var from_end = cfx_add(s, t, cfx_len(s, list));
    return cfx_item(s, cfx_where(s, cfx_lt(s, t, 0), from_end, t));
}

cfx_var cfxi_import_sequence_empty(cfxi_import_call *c)
{
    return cfx_list(c->scope);
}

cfx_var cfxi_import_sequence_construct(cfxi_import_call *c) { return cfxi_import_list(c, 0); }

cfx_var cfxi_import_sequence_at(cfxi_import_call *c)
{
    const cfx_var list = cfxi_import_in(c, 0);
    return cfx_getitem(c->scope, list, cfxi_import_unknown(c, cfxi_import_number(c, 1)));
}

cfx_var cfxi_import_sequence_length(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    return cfx_tensor_row(s, cfx_len(s, cfxi_import_in(c, 0)),
                          .dtype = cfx_var_dtype(CFX_DTYPE_INT64));
}

/* Items from one on, or up to one. */
static cfx_var part(cfxi_import_call *c, cfx_var list, cfx_var start, cfx_var end)
{
    cfx_scope *s = c->scope;
    return cfx_getitem(s, list, cfx_slice_of(s, start, end, cfx_var_none()));
}

cfx_var cfxi_import_sequence_insert(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var list = cfxi_import_in(c, 0);
    const cfx_var one = cfx_list(s, cfxi_import_in(c, 1));
    if (!cfxi_import_has(c, 2))
        return cfx_operator_concat(s, list, one);
    const cfx_var at = cfxi_import_unknown(c, position(c, 2, list));
    const cfx_var before = cfx_operator_concat(s, part(c, list, cfx_var_none(), at), one);
    return cfx_operator_concat(s, before, part(c, list, at, cfx_var_none()));
}

cfx_var cfxi_import_sequence_erase(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var list = cfxi_import_in(c, 0);
    if (!cfxi_import_has(c, 1))
        return part(c, list, cfx_var_none(), cfx_v(-1));
    const cfx_var at = position(c, 1, list);
    const cfx_var next = cfxi_import_unknown(c, cfx_add(s, at, 1));
    const cfx_var before = part(c, list, cfx_var_none(), cfxi_import_unknown(c, at));
    return cfx_operator_concat(s, before, part(c, list, next, cfx_var_none()));
}

cfx_var cfxi_import_concat_from_sequence(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var list = cfxi_import_in(c, 0);
    const cfx_var axis = cfx_v(cfxi_import_int(c, "axis", 0));
    return cfxi_import_int(c, "new_axis", 0) ? cfx_stack(s, list, .dim = axis)
                                             : cfx_cat(s, list, .dim = axis);
}

/* The parts of a tensor. */
static cfx_var parts_of(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int64_t dim = cfxi_import_int(c, "axis", 0);
    const int rank = cfxi_import_rank(c, 0);
    const int from_start = rank < 0 ? -1 : cfxi_import_axis(c, dim, rank);
    const bool known = from_start >= 0 && cfxi_import_size(c, 0, from_start).kind == CFX_VAR_INT;
    const cfx_var in = cfxi_import_in(c, 0);
    const cfx_var x = known ? in : cfxi_import_unknown(c, in);  /* a list of any length */
    const cfx_var axis = cfx_v(dim);
    if (!cfxi_import_has(c, 1))
        return cfxi_import_int(c, "keepdims", 1) ? cfx_split(s, x, 1, .dim = axis)
                                                 : cfx_unbind(s, x, .dim = axis);
    if (cfxi_import_rank(c, 1) == 0) {
        const cfx_var size = cfxi_import_unknown(c, cfxi_import_number(c, 1));
        return cfx_split(s, x, size, .dim = axis);
    }
    return cfx_split_with_sizes(s, x, cfxi_import_ints_of(c, 1), .dim = axis);
}

cfx_var cfxi_import_split_to_sequence(cfxi_import_call *c)
{
    return cfx_list_row(c->scope, .iterable = parts_of(c));
}

/* ---- optionals ----------------------------------------------------------------------------- */

/* Without an input it is one without a value. */
cfx_var cfxi_import_optional_of(cfxi_import_call *c)
{
    return cfxi_import_has(c, 0) ? cfxi_import_in(c, 0) : cfx_var_none();
}

cfx_var cfxi_import_optional_get(cfxi_import_call *c) { return cfxi_import_in(c, 0); }

cfx_var cfxi_import_optional_has(cfxi_import_call *c)
{
    return cfx_tensor_row(c->scope, cfx_var_bool(cfxi_import_has(c, 0)),
                          .dtype = cfx_var_dtype(CFX_DTYPE_BOOL));
}
