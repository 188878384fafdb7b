/* export_index.c - reading and writing elements by index.
 *
 * Numbers and slices are Gather and Slice. Tensors of places are Gather where there is one, else
 * GatherND over the dimensions that have one, moved to the front. A mask is the places where it is
 * true.
 */
#include "export_impl.h"

#include <math.h>

/* ---- one dimension ------------------------------------------------------------------------- */

static cfxi_ev *gather(cfxi_export_call *c, cfxi_ev *x, cfxi_ev *index, int64_t axis)
{
    cfxi_ev *made = NODE("Gather", x, index);
    SET_INT("axis", axis);
    return made;
}

cfxi_ev *cfxi_export_select(cfxi_export_call *c)
{
    return gather(c, ARG(0), ARG(2), cfxi_export_dim(c, 1, c->args[0]->rank));
}

cfxi_ev *cfxi_export_narrow(cfxi_export_call *c)
{
    const int64_t dim = cfxi_export_dim(c, 1, c->args[0]->rank);
    cfxi_ev *start = ARG(2);
    cfxi_ev *length = ARG(3);
    if (cfxi_export_is_known(start) && start->datum.as.i >= 0 && cfxi_export_is_known(length))
        return cfxi_export_slice(c, ARG(0), dim, start,
                                 INT(start->datum.as.i + length->datum.as.i), 1);
    start = NODE("Where", NODE("Less", start, INT(0)),
                 NODE("Add", start, SIZE(c->args[0], dim)), start);
    return cfxi_export_slice(c, ARG(0), dim, start, NODE("Add", start, length), 1);
}

cfxi_ev *cfxi_export_slice_row(cfxi_export_call *c)
{
    cfxi_ev *start = cfxi_export_given(c, 2) ? ARG(2) : INT(0);
    return cfxi_export_slice(c, ARG(0), cfxi_export_dim(c, 1, c->args[0]->rank), start, ARG(3),
                             cfxi_export_int(c, 4));
}

cfxi_ev *cfxi_export_index_select(cfxi_export_call *c)
{
    cfxi_ev *index = ARG(2);
    if (index->rank == 0)
        index = NODE("Reshape", index, INTS(1));
    if (c->args[0]->rank == 0)
        return NODE("Reshape", ARG(0), cfxi_export_const_ints(c->x, NULL, 0));
    return gather(c, ARG(0), index, cfxi_export_dim(c, 1, c->args[0]->rank));
}

cfxi_ev *cfxi_export_embedding(cfxi_export_call *c) { return gather(c, ARG(0), ARG(1), 0); }

enum { BAG_WEIGHT, BAG_INDICES, BAG_OFFSETS, BAG_MODE = 4, BAG_SAMPLES = 6, BAG_LAST, BAG_PADDING };
enum { BAG_SUM, BAG_MEAN, BAG_MAX };

/* The bag of each index as [n, 1]: how many bags begin up to its place, less one. */
static cfxi_ev *bag_of_each(cfxi_export_call *c)
{
    const int64_t axis = 0;
    cfxi_ev *place = cfxi_export_range(c, SIZE(c->args[BAG_INDICES], 0));
    cfxi_ev *begins = cfxi_export_unsqueeze(c, CAST(ARG(BAG_OFFSETS), CFX_DTYPE_INT64), 1);
    cfxi_ev *begun = CAST(NODE("LessOrEqual", begins, place), CFX_DTYPE_INT64);
    cfxi_ev *count = cfxi_export_reduce(c, "ReduceSum", begun, &axis, 1, false);
    return cfxi_export_unsqueeze(c, NODE("Sub", count, INT(1)), 1);
}

/* A row for each offset, of `width` elements: those of `rows` of the same bag, added up, or the
 * greatest. */
static cfxi_ev *gathered(cfxi_export_call *c, cfxi_ev *bag, cfxi_ev *rows, cfxi_ev *width,
                         double first, const char *reduction)
{
    cfxi_ev *sizes[] = {SIZE(c->args[BAG_OFFSETS], 0), width};
    cfxi_ev *start = cfxi_export_filled(c, cfxi_export_shape_of(c->x, sizes, 2),
                                        cfxi_export_result_dtype(c), first);
    cfxi_ev *made = NODE("ScatterND", start, bag, rows);
    SET_TEXT("reduction", reduction);
    return made;
}

/* Bags of any length. One without indices is zero. */
static cfxi_ev *uneven_bags(cfxi_export_call *c, cfxi_ev *rows, int64_t mode)
{
    cfxi_ev *bag = bag_of_each(c);
    cfxi_ev *width = SIZE(c->args[BAG_WEIGHT], 1);
    cfxi_ev *one = cfxi_export_of_datum(c->x, cfx_datum_int(1));
    cfxi_ev *ones = cfxi_export_filled(c, NODE("Shape", bag), cfxi_export_result_dtype(c), 1);
    cfxi_ev *count = mode == BAG_SUM ? NULL : gathered(c, bag, ones, one, 0, "add");
    cfxi_ev *made = mode == BAG_MAX ? gathered(c, bag, rows, width, -INFINITY, "max")
                                    : gathered(c, bag, rows, width, 0, "add");
    if (mode == BAG_MEAN)
        made = NODE("Div", made, NODE("Max", count, LIKE(count, 1)));
    if (mode == BAG_MAX)
        made = NODE("Where", NODE("Equal", count, LIKE(count, 0)), LIKE(made, 0), made);
    return cfxi_export_bool(c, BAG_LAST) ? cfxi_export_slice(c, made, 0, INT(0), INT(-1), 1) : made;
}

cfxi_ev *cfxi_export_embedding_bag(cfxi_export_call *c)
{
    static const char *const modes[] = {"ReduceSum", "ReduceMean", "ReduceMax"};
    const int64_t axis = 1;
    const int64_t mode = cfxi_export_int(c, BAG_MODE);
    if (mode < BAG_SUM || mode > BAG_MAX || cfxi_export_given(c, BAG_PADDING))
        return cfxi_export_refuse(c, "embedding_bag is written without padding_idx; leave those "
                                  "indices out");
    cfxi_ev *rows = gather(c, ARG(BAG_WEIGHT), ARG(BAG_INDICES), 0);
    if (cfxi_export_given(c, BAG_SAMPLES))
        rows = NODE("Mul", rows, cfxi_export_unsqueeze(c, ARG(BAG_SAMPLES), -1));
    cfxi_ev *made = c->args[BAG_INDICES]->rank == 2
                        ? cfxi_export_reduce(c, modes[mode], rows, &axis, 1, false)
                        : uneven_bags(c, rows, mode);
    cfxi_ev *none = &c->x->broken;  /* what only training uses */
    return cfxi_export_list(c->x, CFXI_EVS(made, none, none, none), 4);
}

cfxi_ev *cfxi_export_one_hot(cfxi_export_call *c)
{
    cfxi_ev *count = ARG(1);
    cfxi_ev *x = CAST(ARG(0), CFX_DTYPE_INT64);
    if (cfxi_export_is_known(count) && count->datum.as.i < 0)
        count = NODE("Add", cfxi_export_reduce(c, "ReduceMax", x, NULL, 0, false), INT(1));
    return NODE("OneHot", x, count, INTS(0, 1));
}

cfxi_ev *cfxi_export_take(cfxi_export_call *c)
{
    return gather(c, NODE("Reshape", ARG(0), INTS(-1)), ARG(1), 0);
}

/* ---- an index for each element ------------------------------------------------------------- */

static cfxi_ev *gather_elements(cfxi_export_call *c, cfxi_ev *x, cfxi_ev *index, int64_t dim)
{
    cfxi_ev *made = NODE("GatherElements", x, index);
    SET_INT("axis", dim);
    return made;
}

cfxi_ev *cfxi_export_gather(cfxi_export_call *c)
{
    if (c->args[0]->rank == 0)
        return ARG(0);
    return gather_elements(c, ARG(0), ARG(2), cfxi_export_dim(c, 1, c->args[0]->rank));
}

/* Both have the sizes of each other, but for the dimension. */
cfxi_ev *cfxi_export_take_along_dim(cfxi_export_call *c)
{
    const int rank = c->args[0]->rank;
    if (!cfxi_export_given(c, 2))
        return gather_elements(c, NODE("Reshape", ARG(0), INTS(-1)),
                               NODE("Reshape", ARG(1), INTS(-1)), 0);
    const int64_t dim = cfxi_export_dim(c, 2, rank);
    cfxi_ev *data[CFX_MAX_DIMS];
    cfxi_ev *index[CFX_MAX_DIMS];
    for (int i = 0; i < rank; i++) {
        cfxi_ev *one = cfxi_export_of_datum(c->x, cfx_datum_int(1));
        data[i] = i == dim ? one : SIZE(c->args[1], i);
        index[i] = i == dim ? one : SIZE(c->args[0], i);
    }
    return gather_elements(
        c, NODE("Expand", ARG(0), cfxi_export_shape_of(c->x, data, (size_t)rank)),
        NODE("Expand", ARG(1), cfxi_export_shape_of(c->x, index, (size_t)rank)), dim);
}

/* `src` as large as the index: what is beyond it is not used. */
static cfxi_ev *cut_to(cfxi_export_call *c, cfxi_ev *src, size_t i, size_t index)
{
    const cfxi_ev *v = c->args[i];
    for (int d = 0; d < v->rank; d++) {
        const int64_t have = cfxi_export_known_size(c->x, v, d);
        const int64_t want = cfxi_export_known_size(c->x, c->args[index], d);
        if (have != want || have < 0)
            src = cfxi_export_slice(c, src, d, INT(0), SIZE(c->args[index], d), 1);
    }
    return src;
}

static cfxi_ev *scatter_elements(cfxi_export_call *c, cfxi_ev *x, cfxi_ev *index, cfxi_ev *src,
                                 int64_t dim, const char *reduction)
{
    cfxi_ev *made = NODE("ScatterElements", x, index, src);
    SET_INT("axis", dim);
    if (reduction)
        SET_TEXT("reduction", reduction);
    return made;
}

static cfxi_ev *scatter_of(cfxi_export_call *c, const char *reduction)
{
    cfxi_ev *src = IN(3);
    const bool number = cfxi_export_is_number(c->args[3]) || c->args[3]->rank == 0;
    if (c->args[0]->rank == 0)
        return reduction ? NODE(strcmp(reduction, "add") == 0 ? "Add" : "Mul", IN(0), src) : src;
    src = number ? NODE("Expand", src, SHAPE(c->args[2])) : cut_to(c, src, 3, 2);
    return scatter_elements(c, IN(0), ARG(2), src, cfxi_export_dim(c, 1, c->args[0]->rank),
                            reduction);
}

cfxi_ev *cfxi_export_scatter(cfxi_export_call *c)
{
    return scatter_of(c, !cfxi_export_given(c, 4) ? NULL
                         : cfxi_export_is(c, 4, "add") ? "add" : "mul");
}

cfxi_ev *cfxi_export_scatter_add(cfxi_export_call *c) { return scatter_of(c, "add"); }

typedef struct scattering {
    const char *word;     /* PyTorch's, and ONNX's */
    const char *onnx;
    double nothing;       /* what it begins with */
} scattering;

/* How many elements go to each place. */
static cfxi_ev *count_scattered(cfxi_export_call *c, int64_t dim, double before)
{
    cfxi_ev *x = IN(0);
    const cfx_dtype dtype = cfxi_export_dtype(x);
    cfxi_ev *ones = cfxi_export_filled(c, SHAPE(c->args[2]), dtype, 1);
    return scatter_elements(c, cfxi_export_filled(c, SHAPE(c->args[0]), dtype, before), ARG(2),
                            ones, dim, "add");
}

/* Without itself, a place that something goes to begins with nothing. */
static cfxi_ev *reduce_apart(cfxi_export_call *c, const scattering *r)
{
    cfxi_ev *x = IN(0);
    const int rank = c->args[0]->rank;
    const bool self = cfxi_export_bool(c, 5);
    const bool mean = strcmp(r->word, "mean") == 0;
    if (rank == 0 || !cfx_dtype_is_float(cfxi_export_dtype(x)))
        return cfxi_export_refuse(c, "a mean, or a reduction without what is there, is written for "
                                  "floats with dimensions");
    const int64_t dim = cfxi_export_dim(c, 1, rank);
    cfxi_ev *count = count_scattered(c, dim, self ? 1 : 0);
    cfxi_ev *begin = self ? x : NODE("Where", NODE("Greater", count, LIKE(count, 0)),
                                     LIKE(x, r->nothing), x);
    cfxi_ev *made = scatter_elements(c, begin, ARG(2), cut_to(c, IN(3), 3, 2), dim, r->onnx);
    return mean ? NODE("Div", made, NODE("Max", count, LIKE(count, 1))) : made;
}

cfxi_ev *cfxi_export_scatter_reduce(cfxi_export_call *c)
{
    static const scattering all[] = {{"sum", "add", 0}, {"mean", "add", 0}, {"prod", "mul", 1},
                                    {"amax", "max", -INFINITY}, {"amin", "min", INFINITY}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (cfxi_export_is(c, 4, all[i].word))
            return cfxi_export_bool(c, 5) && i != 1 ? scatter_of(c, all[i].onnx)
                                                    : reduce_apart(c, &all[i]);
    return cfxi_export_refuse(c, "ONNX has no such reduction");
}

/* A list of places as an index for each element of `source`. */
static cfxi_ev *spread_index(cfxi_export_call *c, cfxi_ev *index, int64_t dim, cfxi_ev *shape)
{
    int64_t sizes[CFX_MAX_DIMS];
    const int rank = c->args[0]->rank;
    for (int i = 0; i < rank; i++)
        sizes[i] = i == dim ? -1 : 1;
    return NODE("Expand", cfxi_export_reshape(c, index, sizes, (size_t)rank), shape);
}

static cfxi_ev *index_write(cfxi_export_call *c, cfxi_ev *source, cfxi_ev *shape,
                            const char *reduction)
{
    const int64_t dim = cfxi_export_dim(c, 1, c->args[0]->rank);
    return scatter_elements(c, IN(0), spread_index(c, ARG(2), dim, shape), source, dim, reduction);
}

cfxi_ev *cfxi_export_index_add(cfxi_export_call *c)
{
    cfxi_ev *source = IN(3);
    if (cfxi_export_float(c, 4) != 1)
        source = NODE("Mul", source, LIKE(source, cfxi_export_float(c, 4)));
    return index_write(c, source, SHAPE(c->args[3]), "add");
}

cfxi_ev *cfxi_export_index_copy(cfxi_export_call *c)
{
    return index_write(c, IN(3), SHAPE(c->args[3]), NULL);
}

/* The sizes of x, with that of a dimension replaced. */
static cfxi_ev *shape_with(cfxi_export_call *c, int64_t dim, cfxi_ev *size)
{
    cfxi_ev *items[CFX_MAX_DIMS];
    const int rank = c->args[0]->rank;
    for (int i = 0; i < rank; i++)
        items[i] = i == dim ? size : SIZE(c->args[0], i);
    return cfxi_export_shape_of(c->x, items, (size_t)rank);
}

cfxi_ev *cfxi_export_index_fill(cfxi_export_call *c)
{
    const int64_t dim = cfxi_export_dim(c, 1, c->args[0]->rank);
    cfxi_ev *shape = shape_with(c, dim, NODE("Size", ARG(2)));
    return index_write(c, NODE("Expand", IN(3), shape), shape, NULL);
}

cfxi_ev *cfxi_export_select_scatter(cfxi_export_call *c)
{
    const int64_t dim = cfxi_export_dim(c, 2, c->args[0]->rank);
    cfxi_ev *src = cfxi_export_unsqueeze(c, IN(1), dim);
    cfxi_ev *shape = shape_with(c, dim, cfxi_export_of_datum(c->x, cfx_datum_int(1)));
    cfxi_ev *index = NODE("Expand", CAST(ARG(3), CFX_DTYPE_INT64), shape);
    return scatter_elements(c, IN(0), index, src, dim, NULL);
}

cfxi_ev *cfxi_export_slice_scatter(cfxi_export_call *c)
{
    const int64_t dim = cfxi_export_dim(c, 2, c->args[0]->rank);
    cfxi_ev *start = cfxi_export_given(c, 3) ? ARG(3) : INT(0);
    cfxi_ev *all = cfxi_export_range(c, SIZE(c->args[0], dim));
    cfxi_ev *places = cfxi_export_slice(c, all, 0, start, ARG(4), cfxi_export_int(c, 5));
    cfxi_ev *src = IN(1);
    return scatter_elements(c, IN(0), spread_index(c, places, dim, SHAPE(c->args[1])), src, dim,
                            NULL);
}

/* ---- masks --------------------------------------------------------------------------------- */

cfxi_ev *cfxi_export_masked_select(cfxi_export_call *c)
{
    const int64_t perm[] = {1, 0};
    cfxi_ev *both = NODE("Add", CAST(ARG(0), CFX_DTYPE_INT32), CAST(ARG(1), CFX_DTYPE_INT32));
    cfxi_ev *shape = NODE("Shape", both);
    cfxi_ev *places = NODE("NonZero", NODE("Expand", ARG(1), shape));
    return NODE("GatherND", NODE("Expand", ARG(0), shape),
                cfxi_export_transpose(c, places, perm, 2));
}

/* The k-th true place takes the k-th element of the source. */
cfxi_ev *cfxi_export_masked_scatter(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    cfxi_ev *mask = NODE("Expand", ARG(1), SHAPE(c->args[0]));
    cfxi_ev *flat = CAST(NODE("Reshape", mask, INTS(-1)), CFX_DTYPE_INT64);
    cfxi_ev *nth = NODE("Sub", NODE("CumSum", flat, INT(0)), INT(1));
    nth = NODE("Max", nth, INT(0));
    cfxi_ev *from = gather(c, NODE("Reshape", IN(2), INTS(-1)), nth, 0);
    return NODE("Where", mask, NODE("Reshape", from, SHAPE(c->args[0])), x);
}

/* ---- tensors as indices -------------------------------------------------------------------- */

/* Which dimensions have an index, and the indices, which are broadcast together. */
typedef struct places {
    int64_t axis[CFX_MAX_DIMS];
    cfxi_ev *index[CFX_MAX_DIMS];
    size_t n;
    int rank;         /* of the indices together */
    bool adjacent;    /* so that the result has them where the dimensions were */
} places;

static void add_place(places *p, int64_t axis, cfxi_ev *index, int rank)
{
    p->axis[p->n] = axis;
    p->index[p->n++] = index;
    p->rank = rank > p->rank ? rank : p->rank;
}

static bool is_mask(const cfxi_ev *v)
{
    return v->datum.kind == CFX_DATUM_TENSOR &&
           (v->dtype == CFX_DTYPE_BOOL || v->dtype == CFX_DTYPE_UINT8);
}

/* Indices from dimension 0 on; None leaves a dimension as it is. */
static bool find_places(cfxi_export_call *c, cfxi_ev *const *index, size_t n, places *p)
{
    int64_t axis = 0;
    *p = (places){.adjacent = true};
    for (size_t i = 0; i < n; i++) {
        cfxi_ev *v = index[i];
        if (cfxi_export_is_none(v)) {
            axis++;
            continue;
        }
        if (!is_mask(v)) {
            add_place(p, axis++, CAST(cfxi_export_fresh(c->x, v), CFX_DTYPE_INT64), v->rank);
            continue;
        }
        cfxi_ev *found = NODE("NonZero", v);
        for (int d = 0; d < v->rank && p->n < CFX_MAX_DIMS; d++)
            add_place(p, axis++, gather(c, found, INT(d), 0), 1);
    }
    for (size_t i = 1; i < p->n; i++)
        p->adjacent = p->adjacent && p->axis[i] == p->axis[i - 1] + 1;
    return p->n > 0;
}

/* The indexed dimensions first, then the others. */
static void front_order(const places *p, int rank, int64_t *perm)
{
    size_t k = 0;
    for (size_t i = 0; i < p->n; i++)
        perm[k++] = p->axis[i];
    for (int d = 0; d < rank; d++) {
        bool used = false;
        for (size_t i = 0; i < p->n; i++)
            used = used || p->axis[i] == d;
        if (!used)
            perm[k++] = d;
    }
}

/* (..., n): the index of each dimension beside those of the others. */
static cfxi_ev *joined_index(cfxi_export_call *c, const places *p, cfxi_ev **shape)
{
    cfxi_ev *parts[CFX_MAX_DIMS];
    cfxi_ev *all = p->index[0];
    for (size_t i = 1; i < p->n; i++)
        all = NODE("Add", all, p->index[i]);
    *shape = NODE("Shape", all);
    for (size_t i = 0; i < p->n; i++) {
        cfxi_ev *one = p->n > 1 ? NODE("Expand", p->index[i], *shape) : p->index[i];
        parts[i] = cfxi_export_unsqueeze(c, one, -1);
    }
    return cfxi_export_concat(c, parts, p->n, -1);
}

/* The order that brings the dimensions of the indices, `rank` of them and now in front, to where
 * the first indexed dimension was. */
static void back_order(const places *p, int total, int64_t *perm)
{
    const int64_t first = p->adjacent ? p->axis[0] : 0;
    for (int64_t i = 0; i < total; i++)
        perm[i] = i < first ? i + p->rank : i < first + p->rank ? i - first : i;
}

cfxi_ev *cfxi_export_index(cfxi_export_call *c, cfxi_ev *x, cfxi_ev *const *index, size_t n)
{
    places p;
    int64_t perm[CFX_MAX_DIMS];
    const int rank = x->rank;
    cfxi_ev *shape;
    if (!find_places(c, index, n, &p))
        return x;
    if (p.n == 1 && !is_mask(index[p.axis[0] < (int64_t)n ? (size_t)p.axis[0] : 0]))
        return gather(c, x, p.index[0], p.axis[0]);
    front_order(&p, rank, perm);
    cfxi_ev *front = cfxi_export_transpose(c, x, perm, (size_t)rank);
    cfxi_ev *made = NODE("GatherND", front, joined_index(c, &p, &shape));
    const int total = p.rank + rank - (int)p.n;
    if (total > CFX_MAX_DIMS)
        return cfxi_export_refuse(c, "the result has more than %d dimensions", CFX_MAX_DIMS);
    back_order(&p, total, perm);
    return cfxi_export_transpose(c, made, perm, (size_t)total);
}

cfxi_ev *cfxi_export_index_row(cfxi_export_call *c)
{
    return cfxi_export_index(c, ARG(0), c->args[1]->items, c->args[1]->n);
}

/* ---- writing by tensors -------------------------------------------------------------------- */

/* `values` in the shape of what the index reads, with the dimensions of the index in front. */
static cfxi_ev *updates_of(cfxi_export_call *c, const places *p, cfxi_ev *values, cfxi_ev *shape)
{
    cfxi_ev *parts[CFX_MAX_DIMS + 1];
    int64_t perm[CFX_MAX_DIMS];
    const int rank = c->args[0]->rank;
    const int64_t first = p->adjacent ? p->axis[0] : 0;
    const int total = p->rank + rank - (int)p->n;
    size_t k = 0;
    front_order(p, rank, perm);  /* the dimensions without an index come last, in order */
    for (int64_t i = 0; i <= rank - (int64_t)p->n; i++) {
        if (i == first)
            parts[k++] = shape;
        if (i < rank - (int64_t)p->n)
            parts[k++] = cfxi_export_one(c->x, SIZE(c->args[0], perm[(size_t)i + p->n]));
    }
    values = NODE("Expand", values, cfxi_export_concat(c, parts, k, 0));
    for (int64_t i = 0; i < total; i++)
        perm[i] = i < p->rank ? i + first : i < p->rank + first ? i - p->rank : i;
    return cfxi_export_transpose(c, values, perm, (size_t)total);
}

cfxi_ev *cfxi_export_index_put(cfxi_export_call *c)
{
    places p;
    int64_t perm[CFX_MAX_DIMS];
    int64_t back[CFX_MAX_DIMS];
    cfxi_ev *const *index = c->args[1]->items;
    const int rank = c->args[0]->rank;
    const bool accumulate = cfxi_export_bool(c, 3);
    const bool number = cfxi_export_is_number(c->args[2]) || c->args[2]->rank == 0;
    cfxi_ev *shape;
    if (c->args[1]->n == 1 && is_mask(index[0]) && number && !accumulate) {
        cfxi_ev *mask = CAST(cfxi_export_fresh(c->x, index[0]), CFX_DTYPE_BOOL);
        for (int i = index[0]->rank; i < rank; i++)
            mask = cfxi_export_unsqueeze(c, mask, -1);
        return NODE("Where", mask, IN(2), IN(0));
    }
    if (!find_places(c, index, c->args[1]->n, &p))
        return IN(2);
    front_order(&p, rank, perm);
    cfxi_ev *front = cfxi_export_transpose(c, IN(0), perm, (size_t)rank);
    cfxi_ev *where = joined_index(c, &p, &shape);
    cfxi_ev *made = NODE("ScatterND", front, where, updates_of(c, &p, IN(2), shape));
    if (accumulate)
        SET_TEXT("reduction", "add");
    for (int i = 0; i < rank; i++)
        back[perm[i]] = i;
    return cfxi_export_transpose(c, made, back, (size_t)rank);
}
