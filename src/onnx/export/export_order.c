/* export_order.c - sorting, and what is found by order. */
#include "export_impl.h"

/* The k largest or smallest along a dimension, in order, and where they were. */
static void top(cfxi_export_call *c, cfxi_ev *x, cfxi_ev *k, int64_t dim, bool largest,
                cfxi_ev *parts[2])
{
    cfxi_export_nodes(c->x, "TopK", CFXI_EVS(x, cfxi_export_one(c->x, k)), 2, parts, 2);
    SET_INT("axis", dim);
    SET_INT("largest", largest);
    SET_INT("sorted", 1);
    if (!parts[1]->broken)
        parts[1]->dtype = CFX_DTYPE_INT64;
}

static cfxi_ev *computed(cfxi_export_call *c)
{
    return CAST(ARG(0), cfxi_export_computes(cfxi_export_dtype(c->args[0])));
}

/* A tensor without dimensions is in order. */
static bool sorted(cfxi_export_call *c, int64_t dim, bool descending, cfxi_ev *parts[2])
{
    if (c->args[0]->rank == 0) {
        parts[0] = ARG(0);
        parts[1] = INT(0);
        return true;
    }
    top(c, computed(c), SIZE(c->args[0], dim), dim, descending, parts);
    return true;
}

cfxi_ev *cfxi_export_sort(cfxi_export_call *c)
{
    cfxi_ev *parts[2];
    sorted(c, cfxi_export_dim(c, 1, c->args[0]->rank), cfxi_export_bool(c, 2), parts);
    return cfxi_export_list(c->x, parts, 2);
}

cfxi_ev *cfxi_export_sort_stable(cfxi_export_call *c)
{
    cfxi_ev *parts[2];
    sorted(c, cfxi_export_dim(c, 2, c->args[0]->rank), cfxi_export_bool(c, 3), parts);
    return cfxi_export_list(c->x, parts, 2);
}

cfxi_ev *cfxi_export_argsort(cfxi_export_call *c)
{
    cfxi_ev *parts[2];
    sorted(c, cfxi_export_dim(c, 1, c->args[0]->rank), cfxi_export_bool(c, 2), parts);
    return parts[1];
}

cfxi_ev *cfxi_export_argsort_stable(cfxi_export_call *c)
{
    cfxi_ev *parts[2];
    sorted(c, cfxi_export_dim(c, 2, c->args[0]->rank), cfxi_export_bool(c, 3), parts);
    return parts[1];
}

cfxi_ev *cfxi_export_topk(cfxi_export_call *c)
{
    cfxi_ev *parts[2];
    if (c->args[0]->rank == 0)
        return cfxi_export_refuse(c, "topk of a tensor without dimensions; reshape it to (1,)");
    top(c, computed(c), ARG(1), cfxi_export_dim(c, 2, c->args[0]->rank), cfxi_export_bool(c, 3),
        parts);
    return cfxi_export_list(c->x, parts, 2);
}

/* The k-th of a sorted dimension, which goes away unless it is kept. */
static cfxi_ev *pick(cfxi_export_call *c, cfxi_ev *parts[2], cfxi_ev *place, int64_t dim,
                     bool keepdim)
{
    for (size_t i = 0; i < 2; i++) {
        parts[i] = NODE("Gather", parts[i], keepdim ? cfxi_export_one(c->x, place) : place);
        SET_INT("axis", dim);
    }
    return cfxi_export_list(c->x, parts, 2);
}

cfxi_ev *cfxi_export_kthvalue(cfxi_export_call *c)
{
    cfxi_ev *parts[2];
    const int64_t dim = cfxi_export_dim(c, 2, c->args[0]->rank);
    top(c, computed(c), ARG(1), dim, false, parts);
    return pick(c, parts, INT(-1), dim, cfxi_export_bool(c, 3));
}

/* The lower one of the two in the middle. */
static cfxi_ev *middle(cfxi_export_call *c, cfxi_ev *size)
{
    return NODE("Div", NODE("Sub", size, INT(1)), INT(2));
}

cfxi_ev *cfxi_export_median_dim(cfxi_export_call *c)
{
    cfxi_ev *parts[2];
    const int64_t dim = cfxi_export_dim(c, 1, c->args[0]->rank);
    cfxi_ev *size = SIZE(c->args[0], dim);
    top(c, computed(c), size, dim, false, parts);
    return pick(c, parts, middle(c, size), dim, cfxi_export_bool(c, 2));
}

cfxi_ev *cfxi_export_median(cfxi_export_call *c)
{
    cfxi_ev *parts[2];
    cfxi_ev *flat = NODE("Reshape", computed(c), INTS(-1));
    cfxi_ev *size = NODE("Size", flat);
    top(c, flat, size, 0, false, parts);
    return NODE("Gather", parts[0], middle(c, size));
}

/* ---- places -------------------------------------------------------------------------------- */

cfxi_ev *cfxi_export_nonzero(cfxi_export_call *c)
{
    const int64_t perm[] = {1, 0};
    return cfxi_export_transpose(c, NODE("NonZero", ARG(0)), perm, 2);
}

cfxi_ev *cfxi_export_where_nonzero(cfxi_export_call *c)
{
    const int rank = c->args[0]->rank;
    cfxi_ev *places = NODE("NonZero", ARG(0));
    cfxi_ev *parts[CFX_MAX_DIMS];
    for (int i = 0; i < rank; i++) {
        parts[i] = NODE("Gather", places, INT(i));
        SET_INT("axis", 0);
    }
    return cfxi_export_list(c->x, parts, (size_t)rank);
}

cfxi_ev *cfxi_export_unique_row(cfxi_export_call *c)
{
    const bool inverse = cfxi_export_bool(c, 2);
    const bool counts = cfxi_export_bool(c, 3);
    cfxi_ev *parts[4];
    cfxi_ev *results[3];
    size_t n = 0;
    cfxi_export_nodes(c->x, "Unique", CFXI_EVS(computed(c)), 1, parts, 4);
    SET_INT("sorted", 1);
    if (cfxi_export_given(c, 4))
        SET_INT("axis", cfxi_export_dim(c, 4, c->args[0]->rank));
    for (size_t i = 1; i < 4; i++)
        if (!parts[i]->broken)
            parts[i]->dtype = CFX_DTYPE_INT64;
    results[n++] = parts[0];
    if (inverse)
        results[n++] = cfxi_export_given(c, 4) ? parts[2]
                                               : NODE("Reshape", parts[2], SHAPE(c->args[0]));
    if (counts)
        results[n++] = parts[3];
    return n == 1 ? results[0] : cfxi_export_list(c->x, results, n);
}

/* How many boundaries are before each value. */
static cfxi_ev *count_before(cfxi_export_call *c, cfxi_ev *sorted_ones, int rank, cfxi_ev *values,
                             bool right)
{
    const int64_t last[] = {-1};
    if (rank > 1)
        sorted_ones = cfxi_export_unsqueeze(c, sorted_ones, -2);
    cfxi_ev *before = NODE(right ? "LessOrEqual" : "Less", sorted_ones,
                           cfxi_export_unsqueeze(c, values, -1));
    return cfxi_export_reduce(c, "ReduceSum", CAST(before, CFX_DTYPE_INT64), last, 1, false);
}

cfxi_ev *cfxi_export_bucketize(cfxi_export_call *c)
{
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_common(c, 0, 1));
    return count_before(c, CAST(ARG(1), dtype), 1, CAST(ARG(0), dtype), cfxi_export_bool(c, 3));
}

cfxi_ev *cfxi_export_searchsorted(cfxi_export_call *c)
{
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_common(c, 0, 1));
    const bool right = cfxi_export_bool(c, 3) || cfxi_export_is(c, 4, "right");
    cfxi_ev *all = CAST(ARG(0), dtype);
    if (cfxi_export_given(c, 5)) {
        all = NODE("GatherElements", all, ARG(5));
        SET_INT("axis", -1);
    }
    return count_before(c, all, c->args[0]->rank, CAST(ARG(1), dtype), right);
}

/* How often each number from 0 on is there: ones, or weights, added up at their places. */
cfxi_ev *cfxi_export_bincount(cfxi_export_call *c)
{
    cfxi_ev *x = CAST(ARG(0), CFX_DTYPE_INT64);
    const cfx_dtype dtype = cfxi_export_result_dtype(c);
    cfxi_ev *most = cfxi_export_reduce(c, "ReduceMax", cfxi_export_concat(c, CFXI_EVS(x, INTS(-1)),
                                                                         2, 0), NULL, 0, false);
    cfxi_ev *n = NODE("Max", NODE("Add", most, INT(1)), CAST(ARG(2), CFX_DTYPE_INT64));
    cfxi_ev *zeros = cfxi_export_filled(c, cfxi_export_one(c->x, n), dtype, 0);
    cfxi_ev *more = cfxi_export_given(c, 1) ? CAST(ARG(1), dtype)
                                            : cfxi_export_filled(c, NODE("Shape", x), dtype, 1);
    cfxi_ev *made = NODE("ScatterElements", zeros, x, more);
    SET_INT("axis", 0);
    SET_TEXT("reduction", "add");
    return made;
}

/* How many elements are in each bin from `min` to `max`, which belongs to the last. */
cfxi_ev *cfxi_export_histc(cfxi_export_call *c)
{
    enum { BINS = 1, MIN, MAX };
    const int64_t bins = cfxi_export_int(c, BINS);
    const double least = cfxi_export_float(c, MIN);
    const double most = cfxi_export_float(c, MAX);
    if (least >= most)
        return cfxi_export_refuse(c, "histc is written with a range that is given; pass min and "
                                  "max");
    cfxi_ev *x = NODE("Reshape", CAST(ARG(0), CFX_DTYPE_FLOAT64), INTS(-1));
    cfxi_ev *inside = NODE("And", NODE("GreaterOrEqual", x, LIKE(x, least)),
                           NODE("LessOrEqual", x, LIKE(x, most)));
    cfxi_ev *part = NODE("Div", NODE("Sub", x, LIKE(x, least)), LIKE(x, most - least));
    cfxi_ev *place = NODE("Min", NODE("Mul", part, LIKE(x, (double)bins)),
                          LIKE(x, (double)bins - 1));
    cfxi_ev *bin = CAST(NODE("Where", inside, place, LIKE(x, 0)), CFX_DTYPE_INT64);
    cfxi_ev *zeros = cfxi_export_filled(c, INTS(bins), CFX_DTYPE_INT64, 0);
    cfxi_ev *made = NODE("ScatterElements", zeros, bin, CAST(inside, CFX_DTYPE_INT64));
    SET_INT("axis", 0);
    SET_TEXT("reduction", "add");
    return made;
}

/* ---- lists --------------------------------------------------------------------------------- */

/* sorted() of a list of known length: its numbers, or tensors of one element, as one tensor. */
cfxi_ev *cfxi_export_builtin_sorted(cfxi_export_call *c)
{
    cfxi_exporter *x = c->x;
    const cfxi_ev *list = c->args[0];
    cfxi_ev **items = cfxi_export_room(x, list->n, sizeof *items);
    cfxi_ev *parts[2];
    cfxi_ev *element = list->n > 0 && items ? cfxi_export_item_type(c, list) : NULL;
    if (!element || (!cfxi_export_is_number(element) && element->rank != 0))
        return cfxi_export_refuse(c, "sorted is written for numbers, and tensors without "
                                  "dimensions");
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_dtype(element));
    for (size_t i = 0; i < list->n; i++)
        items[i] = NODE("Reshape", CAST(cfxi_export_fresh(x, list->items[i]), dtype), INTS(1));
    cfxi_ev *all = cfxi_export_concat(c, items, list->n, 0);
    top(c, all, INT((int64_t)list->n), 0, cfxi_export_bool(c, 1), parts);
    for (size_t i = 0; i < list->n; i++) {
        items[i] = NODE("Gather", parts[0], INT((int64_t)i));
        SET_INT("axis", 0);
    }
    return cfxi_export_list(x, items, list->n);
}
