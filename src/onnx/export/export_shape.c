/* export_shape.c - nodes that change shapes, as all rules use them. */
#include "export_impl.h"

cfxi_ev *cfxi_export_unsqueeze(cfxi_export_call *c, cfxi_ev *x, int64_t axis)
{
    return NODE("Unsqueeze", x, INTS(axis));
}

cfxi_ev *cfxi_export_squeeze(cfxi_export_call *c, cfxi_ev *x, int64_t axis)
{
    return NODE("Squeeze", x, INTS(axis));
}

cfxi_ev *cfxi_export_transpose(cfxi_export_call *c, cfxi_ev *x, const int64_t *perm, size_t n)
{
    bool same = true;
    for (size_t i = 0; i < n; i++)
        same = same && perm[i] == (int64_t)i;
    if (same)
        return x;
    cfxi_ev *made = NODE("Transpose", x);
    SET_INTS("perm", perm, n);
    return made;
}

cfxi_ev *cfxi_export_swap(cfxi_export_call *c, cfxi_ev *x, size_t n, size_t a, size_t b)
{
    int64_t perm[CFX_MAX_DIMS];
    for (size_t i = 0; i < n; i++)
        perm[i] = (int64_t)(i == a ? b : i == b ? a : i);
    return cfxi_export_transpose(c, x, perm, n);
}

cfxi_ev *cfxi_export_reshape(cfxi_export_call *c, cfxi_ev *x, const int64_t *sizes, size_t n)
{
    return NODE("Reshape", x, cfxi_export_const_ints(c->x, sizes, n));
}

cfxi_ev *cfxi_export_concat(cfxi_export_call *c, cfxi_ev *const *parts, size_t n, int64_t axis)
{
    if (n == 1)
        return parts[0];
    cfxi_ev *made = cfxi_export_node(c->x, "Concat", parts, n);
    SET_INT("axis", axis);
    return made;
}

cfxi_ev *cfxi_export_slice(cfxi_export_call *c, cfxi_ev *x, int64_t axis, cfxi_ev *start,
                           cfxi_ev *end, int64_t step)
{
    cfxi_exporter *e = c->x;
    cfxi_ev *last = end ? cfxi_export_one(e, end) : INTS(step > 0 ? INT64_MAX : INT64_MIN + 1);
    return NODE("Slice", x, cfxi_export_one(e, start), last, INTS(axis), INTS(step));
}

cfxi_ev *cfxi_export_range(cfxi_export_call *c, cfxi_ev *end)
{
    return NODE("Range", INT(0), CAST(end, CFX_DTYPE_INT64), INT(1));
}

cfxi_ev *cfxi_export_filled(cfxi_export_call *c, cfxi_ev *shape, cfx_dtype dtype, double value)
{
    return NODE("Expand", cfxi_export_number(c->x, dtype, cfx_datum_float(value)), shape);
}
