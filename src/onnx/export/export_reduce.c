/* export_reduce.c - sums, means, extremes, moments, norms. */
#include "export_control_impl.h"

#include <math.h>

cfxi_ev *cfxi_export_reduce(cfxi_export_call *c, const char *op, cfxi_ev *x, const int64_t *axes,
                            size_t n, bool keepdim)
{
    cfxi_ev *made = NODE(op, x, n ? cfxi_export_const_ints(c->x, axes, n) : NULL);
    SET_INT("keepdims", keepdim);
    return made;
}

/* The call's own dimensions: x, dim and keepdim are the first three parameters. */
typedef struct over {
    int64_t axes[CFX_MAX_DIMS * 2];
    size_t n;
    bool keepdim;
} over;

static over dims_of(cfxi_export_call *c, size_t dim, size_t keepdim)
{
    over o = {.keepdim = cfxi_export_bool(c, keepdim)};
    o.n = cfxi_export_axes(c, dim, c->args[0]->rank, o.axes);
    return o;
}

/* Without dimensions there is nothing to reduce. */
static cfxi_ev *reduced(cfxi_export_call *c, const char *op, cfxi_ev *x, const over *o)
{
    if (c->args[0]->rank == 0)
        return x;
    return cfxi_export_reduce(c, op, x, o->axes, o->n, o->keepdim);
}

static cfxi_ev *reduce_row(cfxi_export_call *c, const char *op)
{
    const over o = dims_of(c, 1, 2);
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_result_dtype(c));
    return reduced(c, op, CAST(ARG(0), dtype), &o);
}

cfxi_ev *cfxi_export_sum(cfxi_export_call *c) { return reduce_row(c, "ReduceSum"); }
cfxi_ev *cfxi_export_mean(cfxi_export_call *c) { return reduce_row(c, "ReduceMean"); }
cfxi_ev *cfxi_export_prod(cfxi_export_call *c) { return reduce_row(c, "ReduceProd"); }
cfxi_ev *cfxi_export_amax(cfxi_export_call *c) { return reduce_row(c, "ReduceMax"); }
cfxi_ev *cfxi_export_amin(cfxi_export_call *c) { return reduce_row(c, "ReduceMin"); }
cfxi_ev *cfxi_export_logsumexp(cfxi_export_call *c) { return reduce_row(c, "ReduceLogSumExp"); }

static cfxi_ev *without_nan(cfxi_export_call *c, cfxi_ev *x)
{
    return NODE("Where", NODE("IsNaN", x), LIKE(x, 0), x);
}

cfxi_ev *cfxi_export_nansum(cfxi_export_call *c)
{
    const over o = dims_of(c, 1, 2);
    cfxi_ev *x = IN(0);
    return reduced(c, "ReduceSum", cfx_dtype_is_float(x->dtype) ? without_nan(c, x) : x, &o);
}

cfxi_ev *cfxi_export_nanmean(cfxi_export_call *c)
{
    const over o = dims_of(c, 1, 2);
    cfxi_ev *x = IN(0);
    cfxi_ev *count = CAST(NODE("Not", NODE("IsNaN", x)), cfxi_export_result_dtype(c));
    return NODE("Div", reduced(c, "ReduceSum", without_nan(c, x), &o),
                reduced(c, "ReduceSum", count, &o));
}

static cfxi_ev *truth_of(cfxi_export_call *c, const char *op)
{
    const over o = dims_of(c, 1, 2);
    cfxi_ev *x = CAST(CAST(ARG(0), CFX_DTYPE_BOOL), CFX_DTYPE_INT32);
    return CAST(reduced(c, op, x, &o), CFX_DTYPE_BOOL);
}

cfxi_ev *cfxi_export_any(cfxi_export_call *c) { return truth_of(c, "ReduceMax"); }
cfxi_ev *cfxi_export_all(cfxi_export_call *c) { return truth_of(c, "ReduceMin"); }

cfxi_ev *cfxi_export_count_nonzero(cfxi_export_call *c)
{
    over o = dims_of(c, 1, SIZE_MAX);
    return reduced(c, "ReduceSum", CAST(CAST(ARG(0), CFX_DTYPE_BOOL), CFX_DTYPE_INT64), &o);
}

/* ---- extremes ------------------------------------------------------------------------------ */

static cfxi_ev *computed(cfxi_export_call *c)
{
    return CAST(ARG(0), cfxi_export_computes(cfxi_export_dtype(c->args[0])));
}

cfxi_ev *cfxi_export_max(cfxi_export_call *c)
{
    return cfxi_export_reduce(c, "ReduceMax", computed(c), NULL, 0, false);
}
cfxi_ev *cfxi_export_min(cfxi_export_call *c)
{
    return cfxi_export_reduce(c, "ReduceMin", computed(c), NULL, 0, false);
}

static cfxi_ev *arg_of(cfxi_export_call *c, const char *op, cfxi_ev *x, int64_t dim, bool keepdim)
{
    cfxi_ev *made = NODE(op, x);
    SET_INT("axis", dim);
    SET_INT("keepdims", keepdim);
    return made;
}

static cfxi_ev *with_places(cfxi_export_call *c, const char *op, const char *arg)
{
    const int rank = c->args[0]->rank;
    const int64_t dim = cfxi_export_dim(c, 1, rank);
    const bool keepdim = cfxi_export_bool(c, 2);
    cfxi_ev *x = computed(c);
    if (rank == 0)
        return cfxi_export_list(c->x, CFXI_EVS(x, INT(0)), 2);
    cfxi_ev *parts[] = {cfxi_export_reduce(c, op, x, &dim, 1, keepdim),
                        arg_of(c, arg, x, dim, keepdim)};
    return cfxi_export_list(c->x, parts, 2);
}

cfxi_ev *cfxi_export_max_dim(cfxi_export_call *c) { return with_places(c, "ReduceMax", "ArgMax"); }
cfxi_ev *cfxi_export_min_dim(cfxi_export_call *c) { return with_places(c, "ReduceMin", "ArgMin"); }

static cfxi_ev *place_of(cfxi_export_call *c, const char *op)
{
    int64_t ones[CFX_MAX_DIMS];
    const int rank = c->args[0]->rank;
    cfxi_ev *x = computed(c);
    if (rank == 0)
        return NODE("Reshape", INT(0), cfxi_export_const_ints(c->x, NULL, 0));
    if (cfxi_export_given(c, 1))
        return arg_of(c, op, x, cfxi_export_dim(c, 1, rank), cfxi_export_bool(c, 2));
    cfxi_ev *made = arg_of(c, op, NODE("Reshape", x, INTS(-1)), 0, false);
    for (int i = 0; i < rank; i++)
        ones[i] = 1;
    return cfxi_export_bool(c, 2) ? cfxi_export_reshape(c, made, ones, (size_t)rank) : made;
}

cfxi_ev *cfxi_export_argmax(cfxi_export_call *c) { return place_of(c, "ArgMax"); }
cfxi_ev *cfxi_export_argmin(cfxi_export_call *c) { return place_of(c, "ArgMin"); }

cfxi_ev *cfxi_export_aminmax(cfxi_export_call *c)
{
    const over o = dims_of(c, 1, 2);
    cfxi_ev *x = computed(c);
    cfxi_ev *parts[] = {reduced(c, "ReduceMin", x, &o), reduced(c, "ReduceMax", x, &o)};
    return cfxi_export_list(c->x, parts, 2);
}

/* ---- moments ------------------------------------------------------------------------------- */

/* How many elements each result is of, less `correction`, in the type of x. */
static cfxi_ev *count_of(cfxi_export_call *c, cfxi_ev *x, const over *o, double correction)
{
    double known = 1;
    bool is_known = true;
    cfxi_ev *count = INT(1);
    for (size_t i = 0; i < o->n; i++) {
        const int64_t size = cfxi_export_known_size(c->x, c->args[0], o->axes[i]);
        is_known = is_known && size >= 0;
        known *= (double)size;
    }
    if (is_known)
        return LIKE(x, known - correction > 0 ? known - correction : 0);
    for (size_t i = 0; i < o->n; i++)
        count = NODE("Mul", count, SIZE(c->args[0], o->axes[i]));
    count = NODE("Sub", CAST(count, cfxi_export_dtype(x)), LIKE(x, correction));
    return NODE("Max", count, LIKE(x, 0));
}

static cfxi_ev *variance(cfxi_export_call *c, const over *o, double correction, cfxi_ev **mean)
{
    cfxi_ev *x = IN(0);
    *mean = cfxi_export_reduce(c, "ReduceMean", x, o->axes, o->n, true);
    cfxi_ev *apart = NODE("Sub", x, *mean);
    cfxi_ev *sum = cfxi_export_reduce(c, "ReduceSum", NODE("Mul", apart, apart), o->axes, o->n,
                                      o->keepdim);
    return NODE("Div", sum, count_of(c, x, o, correction));
}

/* correction, or what `unbiased` says: 1 unless it is False. */
static double correction_of(cfxi_export_call *c, size_t unbiased, size_t correction)
{
    if (correction < c->n && cfxi_export_given(c, correction))
        return cfxi_export_float(c, correction);
    return !cfxi_export_given(c, unbiased) || cfxi_export_bool(c, unbiased) ? 1 : 0;
}

static cfxi_ev *spread(cfxi_export_call *c, bool root, bool with_mean)
{
    const over o = dims_of(c, 1, 3);
    cfxi_ev *mean;
    cfxi_ev *made = variance(c, &o, correction_of(c, 2, 4), &mean);
    if (root)
        made = NODE("Sqrt", made);
    if (!with_mean)
        return made;
    if (!o.keepdim && o.n > 0)
        mean = NODE("Squeeze", mean, cfxi_export_const_ints(c->x, o.axes, o.n));
    return cfxi_export_list(c->x, CFXI_EVS(made, mean), 2);
}

cfxi_ev *cfxi_export_std(cfxi_export_call *c) { return spread(c, true, false); }
cfxi_ev *cfxi_export_var(cfxi_export_call *c) { return spread(c, false, false); }
cfxi_ev *cfxi_export_std_mean(cfxi_export_call *c) { return spread(c, true, true); }
cfxi_ev *cfxi_export_var_mean(cfxi_export_call *c) { return spread(c, false, true); }

/* ---- norms --------------------------------------------------------------------------------- */

static cfxi_ev *norm_of(cfxi_export_call *c, cfxi_ev *x, double p, const over *o)
{
    if (p == 2)
        return reduced(c, "ReduceL2", x, o);
    cfxi_ev *size = NODE("Abs", x);
    if (c->args[0]->rank == 0)
        return p == 0 ? CAST(CAST(x, CFX_DTYPE_BOOL), x->dtype) : size;
    if (p == 1)
        return reduced(c, "ReduceL1", x, o);
    if (isinf(p))
        return reduced(c, p > 0 ? "ReduceMax" : "ReduceMin", size, o);
    if (p == 0)
        return reduced(c, "ReduceSum", CAST(CAST(x, CFX_DTYPE_BOOL), cfxi_export_dtype(x)), o);
    cfxi_ev *sum = reduced(c, "ReduceSum", NODE("Pow", size, LIKE(x, p)), o);
    return NODE("Pow", sum, LIKE(x, 1 / p));
}

/* p as a number; "fro" and None are 2. */
static double order_of(cfxi_export_call *c, size_t i)
{
    const char *word = cfxi_export_str(c, i);
    if (!cfxi_export_given(c, i) || (word && strcmp(word, "fro") == 0))
        return 2;
    if (word) {
        cfxi_export_refuse(c, "the norm '%s' has no counterpart in ONNX", word);
        return 2;
    }
    return cfxi_export_float(c, i);
}

cfxi_ev *cfxi_export_norm(cfxi_export_call *c)
{
    const over o = dims_of(c, 2, 3);
    return norm_of(c, IN(0), order_of(c, 1), &o);
}

/* Of a matrix, only the norm of its elements is a reduction. */
cfxi_ev *cfxi_export_matrix_norm(cfxi_export_call *c)
{
    const over o = dims_of(c, 2, 3);
    const bool matrix = cfxi_export_given(c, 1) && !cfxi_export_is(c, 1, "fro") &&
                        (c->op == CFX_OPID_linalg_matrix_norm || o.n == 2);
    if (matrix)
        return cfxi_export_refuse(c, "ONNX has no such norm of matrices; use the Frobenius norm");
    return norm_of(c, IN(0), order_of(c, 1), &o);
}

cfxi_ev *cfxi_export_normalize(cfxi_export_call *c)
{
    over o = {.n = 1, .keepdim = true};
    o.axes[0] = cfxi_export_dim(c, 2, c->args[0]->rank);
    cfxi_ev *x = IN(0);
    cfxi_ev *size = norm_of(c, x, cfxi_export_float(c, 1), &o);
    return NODE("Div", x, NODE("Max", size, LIKE(x, cfxi_export_float(c, 3))));
}

cfxi_ev *cfxi_export_cosine_similarity(cfxi_export_call *c)
{
    over o = {.n = 1};
    const cfx_tensor *t = cfxi_export_result(c, 0);
    o.axes[0] = cfxi_export_dim(c, 2, (int)cfx_tensor_ndim(t) + 1);
    cfxi_ev *a = IN(0);
    cfxi_ev *b = IN(1);
    cfxi_ev *least = LIKE(a, cfxi_export_float(c, 3));
    cfxi_ev *x = NODE("Max", reduced(c, "ReduceL2", a, &o), least);
    cfxi_ev *y = NODE("Max", reduced(c, "ReduceL2", b, &o), least);
    return NODE("Div", reduced(c, "ReduceSum", NODE("Mul", a, b), &o), NODE("Mul", x, y));
}

cfxi_ev *cfxi_export_pairwise_distance(cfxi_export_call *c)
{
    over o = {.n = 1, .keepdim = cfxi_export_bool(c, 4)};
    o.axes[0] = -1;
    cfxi_ev *a = IN(0);
    cfxi_ev *apart = NODE("Add", NODE("Sub", a, IN(1)), LIKE(a, cfxi_export_float(c, 3)));
    return norm_of(c, apart, cfxi_export_float(c, 2), &o);
}

cfxi_ev *cfxi_export_dist(cfxi_export_call *c)
{
    return APPLY(linalg_vector_norm, APPLY(sub, c->args[0], c->args[1]), c->args[2]);
}

/* ---- running sums -------------------------------------------------------------------------- */

static cfxi_ev *running(cfxi_export_call *c, const char *op, cfxi_ev *x)
{
    const int rank = c->args[0]->rank;
    if (rank == 0)
        return x;
    return NODE(op, x, INT(cfxi_export_dim(c, 1, rank)));
}

cfxi_ev *cfxi_export_cumsum(cfxi_export_call *c)
{
    return running(c, "CumSum", CAST(ARG(0), cfxi_export_computes(cfxi_export_result_dtype(c))));
}

/* The product so far, at each place along the dimension: what a Scan carries, and gives. */
static cfxi_onnx_graph *product_body(cfxi_export_call *c, const cfxi_ev *slice)
{
    cfxi_exporter *x = c->x;
    cfxi_export_scope *scope = cfxi_export_room(x, 1, sizeof *scope);
    cfxi_onnx_value *values = cfxi_export_room(x, 4, sizeof *values);
    if (!scope || !values)
        return NULL;
    cfxi_export_scope_begin(x, scope);
    cfxi_ev *so_far = cfxi_export_inner_value(c, slice);
    cfxi_ev *next = cfxi_export_inner_value(c, slice);
    cfxi_ev *made = NODE("Mul", so_far, next);
    cfxi_ev *all[] = {so_far, next, made, NODE("Identity", made)};
    for (size_t i = 0; i < 4; i++) {
        const char *name = cfxi_export_name(x, all[i]);
        values[i] = (cfxi_onnx_value){.name = {name, strlen(name)},
                                      .type = cfxi_export_type(x, slice, false)};
    }
    cfxi_onnx_graph *g = cfxi_export_scope_end(x, "product");
    if (!g)
        return NULL;
    g->inputs.items = values;
    g->outputs.items = values + 2;
    g->inputs.n = g->outputs.n = 2;
    return g;
}

cfxi_ev *cfxi_export_cumprod(cfxi_export_call *c)
{
    int64_t sizes[CFX_MAX_DIMS];
    cfxi_ev *shape[CFX_MAX_DIMS];
    cfxi_ev *outputs[2];
    const int rank = c->args[0]->rank;
    cfxi_ev *x = IN(0);
    if (rank <= 0)
        return x;
    const int64_t dim = cfxi_export_dim(c, 1, rank);
    size_t n = 0;
    for (int i = 0; i < rank; i++)
        if (i != dim) {
            shape[n] = SIZE(c->args[0], i);
            sizes[n++] = c->args[0]->sizes[i];
        }
    const cfx_dtype dtype = cfxi_export_computes(cfxi_export_dtype(x));
    const cfxi_ev *slice = cfxi_export_of_datum(c->x, cfxi_export_abstract(c->x, dtype, sizes,
                                                                           (int)n));
    cfxi_ev *ones = cfxi_export_filled(c, cfxi_export_shape_of(c->x, shape, n), dtype, 1);
    cfxi_onnx_graph *body = product_body(c, slice);
    if (!body || !cfxi_export_nodes(c->x, "Scan", CFXI_EVS(ones, CAST(x, dtype)), 2, outputs, 2))
        return &c->x->broken;
    SET_INT("num_scan_inputs", 1);
    SET_INTS("scan_input_axes", &dim, 1);
    SET_INTS("scan_output_axes", &dim, 1);
    cfxi_export_set_graph(c->x, "body", body);
    return outputs[1];
}

cfxi_ev *cfxi_export_cumprod_26(cfxi_export_call *c) { return running(c, "CumProd", IN(0)); }

cfxi_ev *cfxi_export_logcumsumexp(cfxi_export_call *c)
{
    const int64_t dim = cfxi_export_dim(c, 1, c->args[0]->rank);
    cfxi_ev *x = IN(0);
    if (c->args[0]->rank == 0)
        return x;
    cfxi_ev *most = cfxi_export_reduce(c, "ReduceMax", x, &dim, 1, true);
    cfxi_ev *sums = running(c, "CumSum", NODE("Exp", NODE("Sub", x, most)));
    return NODE("Add", NODE("Log", sums), most);
}

cfxi_ev *cfxi_export_diff(cfxi_export_call *c)
{
    const int64_t dim = cfxi_export_dim(c, 2, c->args[0]->rank);
    cfxi_ev *x = IN(0);
    if (cfxi_export_given(c, 3))
        x = cfxi_export_concat(c, CFXI_EVS(IN(3), x), 2, dim);
    if (cfxi_export_given(c, 4))
        x = cfxi_export_concat(c, CFXI_EVS(x, IN(4)), 2, dim);
    const bool logic = cfxi_export_result_dtype(c) == CFX_DTYPE_BOOL;
    for (int64_t i = cfxi_export_int(c, 1); i > 0; i--)
        x = NODE(logic ? "Xor" : "Sub", cfxi_export_slice(c, x, dim, INT(1), NULL, 1),
                 cfxi_export_slice(c, x, dim, INT(0), INT(-1), 1));
    return x;
}
