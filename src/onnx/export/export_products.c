/* export_products.c - matrix products, linear layers and attention. */
#include "export_impl.h"

#include <math.h>

static cfxi_ev *product(cfxi_export_call *c, cfxi_ev *a, cfxi_ev *b)
{
    return NODE("MatMul", a, b);
}

cfxi_ev *cfxi_export_matmul(cfxi_export_call *c) { return product(c, IN(0), IN(1)); }

/* The rows of each group by its own matrix; those behind the last offset are zeros. */
cfxi_ev *cfxi_export_grouped_mm(cfxi_export_call *c)
{
    enum { A, B, OFFS, MOST_GROUPS = 1024 };
    cfxi_exporter *x = c->x;
    const int64_t groups = cfxi_export_known_size(x, c->args[B], 0);
    if (c->args[B]->rank == 3 && c->args[A]->rank == 3 && !cfxi_export_given(c, OFFS))
        return product(c, IN(A), IN(B));
    if (c->args[A]->rank != 2 || c->args[B]->rank != 3 || groups < 1 || groups > MOST_GROUPS)
        return cfxi_export_refuse(c, "products of groups are written for rows of one matrix and a "
                                  "known number of groups, at most %d", MOST_GROUPS);
    const size_t n = (size_t)groups;
    cfxi_ev **parts = cfxi_export_room(x, n + 1, sizeof *parts);
    cfxi_ev *ends = CAST(ARG(OFFS), CFX_DTYPE_INT64);
    cfxi_ev *all = cfxi_export_one(x, SIZE(c->args[A], 0));
    cfxi_ev *sizes = NODE("Sub", cfxi_export_concat(c, CFXI_EVS(ends, all), 2, 0),
                          cfxi_export_concat(c, CFXI_EVS(INTS(0), ends), 2, 0));
    cfxi_ev *inputs[] = {IN(A), sizes};
    if (!parts || !cfxi_export_nodes(x, "Split", inputs, 2, parts, n + 1))
        return &x->broken;
    SET_INT("axis", 0);
    cfxi_ev *weights = IN(B);
    for (size_t i = 0; i < n; i++) {
        cfxi_ev *own = NODE("Gather", weights, INT((int64_t)i));
        SET_INT("axis", 0);
        parts[i] = product(c, parts[i], own);
    }
    cfxi_ev *first = NODE("Gather", weights, INT(0));
    parts[n] = NODE("Mul", product(c, parts[n], first), LIKE(first, 0));
    return cfxi_export_concat(c, parts, n + 1, 0);
}

cfxi_ev *cfxi_export_outer(cfxi_export_call *c)
{
    return NODE("Mul", cfxi_export_unsqueeze(c, IN(0), 1), cfxi_export_unsqueeze(c, IN(1), 0));
}

static cfxi_ev *scaled(cfxi_export_call *c, cfxi_ev *x, size_t by)
{
    const double factor = cfxi_export_float(c, by);
    return factor == 1 ? x : NODE("Mul", x, LIKE(x, factor));
}

/* beta * self + alpha * product */
static cfxi_ev *added(cfxi_export_call *c, cfxi_ev *x)
{
    x = scaled(c, x, 4);
    return cfxi_export_float(c, 3) == 0 ? x : NODE("Add", scaled(c, IN(0), 3), x);
}

cfxi_ev *cfxi_export_addmm(cfxi_export_call *c)
{
    if (!cfx_dtype_is_float(cfxi_export_result_dtype(c)) || cfxi_export_float(c, 3) == 0)
        return added(c, product(c, IN(1), IN(2)));
    cfxi_ev *made = NODE("Gemm", IN(1), IN(2), IN(0));
    SET_FLOAT("alpha", cfxi_export_float(c, 4));
    SET_FLOAT("beta", cfxi_export_float(c, 3));
    return made;
}

cfxi_ev *cfxi_export_baddbmm(cfxi_export_call *c) { return added(c, product(c, IN(1), IN(2))); }

cfxi_ev *cfxi_export_addbmm(cfxi_export_call *c)
{
    const int64_t first[] = {0};
    return added(c, cfxi_export_reduce(c, "ReduceSum", product(c, IN(1), IN(2)), first, 1, false));
}

/* Whether argument i of the call comes from integers. */
static bool is_dequantized(const cfxi_export_call *c, size_t i)
{
    if (cfx_node_operator(c->node) != c->op || cfx_node_num_args(c->node) <= i)
        return false;
    const cfx_value v = cfx_node_arg(c->node, i);
    switch (v.kind == CFX_KIND_NODE ? (int)cfx_node_operator(v.as.node) : CFX_OPID_NONE) {
    case CFX_OPID_dequantize_per_tensor: case CFX_OPID_dequantize_per_channel:
    case CFX_OPID_dequantize_per_channel_group: return true;
    default: return false;
    }
}

/* The rows of all dimensions as one matrix: DequantizeLinear stays next to the product. */
static cfxi_ev *linear_of_rows(cfxi_export_call *c, cfxi_ev *x, cfxi_ev *w, cfxi_ev *b)
{
    cfxi_ev *sizes[CFX_MAX_DIMS];
    const int last = c->args[0]->rank - 1;
    const int64_t rows[] = {-1, cfxi_export_known_size(c->x, c->args[1], 1)};
    for (int d = 0; d < last; d++)
        sizes[d] = SIZE(c->args[0], d);
    sizes[last] = SIZE(c->args[1], 0);
    cfxi_ev *made = NODE("Gemm", cfxi_export_reshape(c, x, rows, 2), w, b);
    SET_INT("transB", 1);
    return NODE("Reshape", made, cfxi_export_shape_of(c->x, sizes, (size_t)last + 1));
}

/* x W^T + b */
static cfxi_ev *linear_of(cfxi_export_call *c, cfxi_ev *x, int rank, cfxi_ev *w, int w_rank,
                          cfxi_ev *b)
{
    if (rank == 2 && w_rank == 2 && cfx_dtype_is_float(cfxi_export_dtype(x))) {
        cfxi_ev *made = NODE("Gemm", x, w, b);
        SET_INT("transB", 1);
        return made;
    }
    if (w_rank == 2)
        w = cfxi_export_swap(c, w, 2, 0, 1);
    x = product(c, x, w);
    return b ? NODE("Add", x, b) : x;
}

cfxi_ev *cfxi_export_linear(cfxi_export_call *c)
{
    if (c->args[0]->rank > 2 && c->args[1]->rank == 2 && is_dequantized(c, 1) &&
        cfxi_export_known_size(c->x, c->args[1], 1) > 0)
        return linear_of_rows(c, IN(0), IN(1), IN(2));
    return linear_of(c, IN(0), c->args[0]->rank, IN(1), c->args[1]->rank, IN(2));
}

static cfxi_ev *einsum_of(cfxi_export_call *c, const char *equation, cfxi_ev *const *inputs,
                          size_t n)
{
    cfxi_ev *made = cfxi_export_node(c->x, "Einsum", inputs, n);
    SET_TEXT("equation", equation);
    return made;
}

cfxi_ev *cfxi_export_einsum(cfxi_export_call *c)
{
    const bool alone = c->args[1]->datum.kind == CFX_DATUM_TENSOR;  /* stands for a list of one */
    cfxi_ev *const *items = alone ? &c->args[1] : c->args[1]->items;
    const size_t n = alone ? 1 : c->args[1]->n;
    cfxi_ev **inputs = cfxi_export_room(c->x, n, sizeof *inputs);
    for (size_t i = 0; inputs && i < n; i++)
        inputs[i] = CAST(cfxi_export_fresh(c->x, items[i]), cfxi_export_result_dtype(c));
    return inputs ? einsum_of(c, cfxi_export_str(c, 0), inputs, n) : &c->x->broken;
}

cfxi_ev *cfxi_export_bilinear(cfxi_export_call *c)
{
    cfxi_ev *made = einsum_of(c, "...i,kij,...j->...k", CFXI_EVS(IN(0), IN(2), IN(1)), 3);
    return cfxi_export_given(c, 3) ? NODE("Add", made, IN(3)) : made;
}

/* Letters for the dimensions: those that are summed over are the same in both. */
cfxi_ev *cfxi_export_tensordot(cfxi_export_call *c)
{
    int64_t a[CFX_MAX_DIMS * 2];
    int64_t b[CFX_MAX_DIMS * 2];
    char left[CFX_MAX_DIMS + 1] = "";
    char right[CFX_MAX_DIMS + 1] = "";
    char out[CFX_MAX_DIMS * 2 + 1] = "";
    const int m = c->args[0]->rank;
    const int n = c->args[1]->rank;
    const size_t shared = cfxi_export_ints(c, 2, a);
    cfxi_export_ints(c, 3, b);
    for (int i = 0; i < m; i++)
        left[i] = (char)('a' + i);
    for (int i = 0; i < n; i++)
        right[i] = (char)('a' + CFX_MAX_DIMS + i);
    for (size_t k = 0; k < shared; k++)
        right[b[k] + (b[k] < 0 ? n : 0)] = left[a[k] + (a[k] < 0 ? m : 0)];
    for (int i = 0; i < m; i++)
        if (!memchr(right, left[i], (size_t)n))
            out[strlen(out)] = left[i];
    for (int i = 0; i < n; i++)
        if (right[i] >= 'a' + CFX_MAX_DIMS)
            out[strlen(out)] = right[i];
    return einsum_of(c, cfxi_export_text(c->x, "%s,%s->%s", left, right, out),
                     CFXI_EVS(IN(0), IN(1)), 2);
}

cfxi_ev *cfxi_export_chain_matmul(cfxi_export_call *c)
{
    const cfxi_ev *list = c->args[0];
    cfxi_ev *made = list->items[0];
    for (size_t i = 1; i < list->n; i++)
        made = product(c, made, list->items[i]);
    return made;
}

cfxi_ev *cfxi_export_trace(cfxi_export_call *c)
{
    cfxi_ev *made = APPLY(diagonal, c->args[0]);
    return cfxi_export_reduce(c, "ReduceSum", CAST(made, cfxi_export_result_dtype(c)), NULL, 0,
                              false);
}

/* a x b, by the two turns of the three components. */
static cfxi_ev *cross_of(cfxi_export_call *c, int64_t dim)
{
    cfxi_ev *turns[] = {INTS(1, 2, 0), INTS(2, 0, 1)};
    cfxi_ev *parts[2][2];
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++) {
            parts[i][k] = NODE("Gather", IN(i), turns[k]);
            SET_INT("axis", dim);
        }
    return NODE("Sub", NODE("Mul", parts[0][0], parts[1][1]),
                NODE("Mul", parts[0][1], parts[1][0]));
}

cfxi_ev *cfxi_export_cross(cfxi_export_call *c)
{
    const int rank = c->args[0]->rank;
    if (cfxi_export_given(c, 2))
        return cross_of(c, cfxi_export_dim(c, 2, rank) - rank);
    for (int i = 0; i < rank; i++)
        if (cfxi_export_known_size(c->x, c->args[0], i) == 3)
            return cross_of(c, i);
    return cfxi_export_refuse(c, "no dimension is known to have 3 elements; pass dim");
}

cfxi_ev *cfxi_export_cdist(cfxi_export_call *c)
{
    const int64_t last[] = {-1};
    const double p = cfxi_export_float(c, 2);
    cfxi_ev *apart = NODE("Sub", cfxi_export_unsqueeze(c, IN(0), -2),
                          cfxi_export_unsqueeze(c, IN(1), -3));
    if (p == 2)
        return cfxi_export_reduce(c, "ReduceL2", apart, last, 1, false);
    apart = NODE("Abs", apart);
    if (p == 1 || isinf(p))
        return cfxi_export_reduce(c, p == 1 ? "ReduceSum" : "ReduceMax", apart, last, 1, false);
    cfxi_ev *sum = cfxi_export_reduce(c, "ReduceSum", NODE("Pow", apart, LIKE(apart, p)), last, 1,
                                      false);
    return NODE("Pow", sum, LIKE(apart, 1 / p));
}

cfxi_ev *cfxi_export_det(cfxi_export_call *c) { return NODE("Det", IN(0)); }

/* ---- attention ----------------------------------------------------------------------------- */

/* Whether argument i is true, or only a run knows. */
static bool may_be_true(cfxi_export_call *c, size_t i)
{
    return !cfxi_export_is_known(c->args[i]) || cfxi_export_bool(c, i);
}

/* Keys after the query's own place are hidden if argument i is true: the mask has minus infinity
 * there. */
static cfxi_ev *causal_mask(cfxi_export_call *c, cfxi_ev *like, size_t i)
{
    cfxi_ev *query = cfxi_export_unsqueeze(c, cfxi_export_range(c, SIZE(c->args[0], -2)), 1);
    cfxi_ev *seen = NODE("LessOrEqual", cfxi_export_range(c, SIZE(c->args[1], -2)), query);
    if (!cfxi_export_is_known(c->args[i]))
        seen = NODE("Or", seen, NODE("Not", ARG(i)));
    return NODE("Where", seen, LIKE(like, 0), LIKE(like, -INFINITY));
}

/* A mask that is added to the scores. */
static cfxi_ev *as_added(cfxi_export_call *c, cfxi_ev *mask, cfxi_ev *like)
{
    if (cfxi_export_dtype(mask) != CFX_DTYPE_BOOL)
        return CAST(mask, cfxi_export_dtype(like));
    return NODE("Where", mask, LIKE(like, 0), LIKE(like, -INFINITY));
}

/* Keys and values of a group are those of each of its heads: head i has those of i/(size of a
 * group). */
static cfxi_ev *for_each_head(cfxi_export_call *c, cfxi_ev *x, size_t arg)
{
    cfxi_ev *heads = SIZE(c->args[0], -3);
    cfxi_ev *own = SIZE(c->args[arg], -3);
    if (cfxi_export_is_known(heads) && cfxi_export_is_known(own) &&
        heads->datum.as.i == own->datum.as.i)
        return x;
    cfxi_ev *index = NODE("Div", cfxi_export_range(c, heads), NODE("Div", heads, own));
    cfxi_ev *made = NODE("Gather", x, index);
    SET_INT("axis", c->args[arg]->rank - 3);
    return made;
}

/* 1/sqrt(size of a head), unless it is given; NULL if that is not known before a run. */
static cfxi_ev *scale_of(cfxi_export_call *c, cfxi_ev *q, size_t scale)
{
    const int64_t size = cfxi_export_known_size(c->x, c->args[0], -1);
    if (scale < c->n && cfxi_export_given(c, scale))
        return CAST(ARG(scale), cfxi_export_dtype(q));
    if (size > 0)
        return LIKE(q, 1 / sqrt((double)size));
    cfxi_ev *root = NODE("Sqrt", CAST(SIZE(c->args[0], -1), cfxi_export_dtype(q)));
    return NODE("Reciprocal", root);
}

/* Rows of a mask that hide everything give zeros, as PyTorch has it, not NaN. Argument `causal`
 * says whether later keys are hidden. */
static cfxi_ev *attention(cfxi_export_call *c, cfxi_ev *mask, size_t causal, size_t scale,
                          bool gqa)
{
    cfxi_ev *q = IN(0);
    cfxi_ev *k = gqa ? for_each_head(c, IN(1), 1) : IN(1);
    cfxi_ev *v = gqa ? for_each_head(c, IN(2), 2) : IN(2);
    const int rank = c->args[1]->rank;
    cfxi_ev *keys = cfxi_export_swap(c, k, (size_t)rank, (size_t)rank - 1, (size_t)rank - 2);
    cfxi_ev *scores = product(c, NODE("Mul", q, scale_of(c, q, scale)), keys);
    if (may_be_true(c, causal))
        scores = NODE("Add", scores, causal_mask(c, q, causal));
    if (mask)
        scores = NODE("Add", scores, as_added(c, mask, q));
    cfxi_ev *weights = NODE("Softmax", scores);
    SET_INT("axis", -1);
    if (mask && cfxi_export_dtype(mask) == CFX_DTYPE_BOOL)
        weights = NODE("Where", NODE("IsNaN", weights), LIKE(q, 0), weights);
    return product(c, weights, v);
}

static bool refuses_dropout(cfxi_export_call *c, size_t p)
{
    if (cfxi_export_float(c, p) == 0)
        return false;
    cfxi_export_refuse(c, "attention with dropout has no counterpart in ONNX; save the model "
                       "after model.eval()");
    return true;
}

cfxi_ev *cfxi_export_sdpa(cfxi_export_call *c)
{
    if (refuses_dropout(c, 4))
        return &c->x->broken;
    return attention(c, ARG(3), 5, 6, cfxi_export_bool(c, 7));
}

cfxi_ev *cfxi_export_sdpa_23(cfxi_export_call *c)
{
    cfxi_ev *mask = ARG(3);
    const bool gqa = cfxi_export_bool(c, 7);
    bool plain = cfxi_export_float(c, 4) == 0 && (!mask || mask->dtype != CFX_DTYPE_BOOL);
    for (size_t i = 0; i < 3; i++)
        plain = plain && c->args[i]->rank == 4;
    if (!plain || !cfxi_export_is_known(c->args[5]) || (mask && cfxi_export_bool(c, 5)) ||
        (cfxi_export_given(c, 6) && !cfxi_export_is_known(c->args[6])))
        return cfxi_export_sdpa(c);
    cfxi_ev *k = gqa ? for_each_head(c, IN(1), 1) : IN(1);
    cfxi_ev *v = gqa ? for_each_head(c, IN(2), 2) : IN(2);
    cfxi_ev *made = NODE("Attention", IN(0), k, v, mask ? CAST(mask, c->args[0]->dtype) : NULL);
    SET_INT("is_causal", cfxi_export_bool(c, 5));
    if (cfxi_export_given(c, 6))
        SET_FLOAT("scale", cfxi_export_float(c, 6));
    return made;
}

/* The second result, which only training uses, is not made. */
cfxi_ev *cfxi_export_flash(cfxi_export_call *c)
{
    if (refuses_dropout(c, 3))
        return &c->x->broken;
    cfxi_ev *made = attention(c, ARG(5), 4, 6, false);
    return cfxi_export_list(c->x, CFXI_EVS(made, &c->x->broken), 2);
}
