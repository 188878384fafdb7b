/* matrices.c - products with matrices of the model are linear layers.
 *
 *     before                                         after
 *     %w = get_attr[target=w]()                      %w = get_attr[target=w]()
 *     %y = call_function[target=torch.addmm](        %w_t = call_function[target=torch.t](%w)
 *         %b, %x, %w)                                %y = call_function[target=...linear](
 *                                                        %x, %w_t, %b)
 *
 * So write GPT-2 of transformers (its Conv1D), models that come from ONNX, and heads that are tied
 * to an embedding (x @ words.weight.T, which reads the weight as it is).
 */
#include "prepare_impl.h"

/* What a node is of a matrix: the matrix itself (a get_attr), and whether it is transposed. */
typedef struct matrix {
    cfx_node *reader;
    bool transposed;
} matrix;

static bool is_int(cfx_value v, int64_t i) { return v.kind == CFX_KIND_INT && v.as.i == i; }

static bool swaps_both(const cfx_node *n)
{
    const cfx_value a = cfx_node_operand(n, "dim0"), b = cfx_node_operand(n, "dim1");
    const bool first = is_int(a, 0) || is_int(a, -2), second = is_int(b, 1) || is_int(b, -1);
    return (first && second) ||
           ((is_int(a, 1) || is_int(a, -1)) && (is_int(b, 0) || is_int(b, -2)));
}

static bool is_attribute_T(const cfx_node *n)
{
    const char *name = cfx_value_text(cfx_node_arg(n, 1), NULL);
    return name && (strcmp(name, "T") == 0 || strcmp(name, "mT") == 0);
}

cfx_node *cfxi_quantize_transposed(const cfx_node *n)
{
    const cfx_operator op = cfx_node_operator(n);
    const cfx_value v = op == CFX_OPID_getattr ? cfx_node_arg(n, 0) : cfx_node_operand(n, "self");
    const bool is = op == CFX_OPID_t || op == CFX_OPID_mT || op == CFX_OPID_numpy_T ||
                    (op == CFX_OPID_transpose && swaps_both(n)) ||
                    (op == CFX_OPID_getattr && is_attribute_T(n));
    return is && v.kind == CFX_KIND_NODE && v.as.node->op == CFX_OP_GET_ATTR ? v.as.node : NULL;
}

/* The sizes of what a get_attr reads: how many, up to 2; -1 if they are more, or not known. */
static int sizes_of(const cfxi_prepare *p, const cfx_node *reader, int64_t sizes[2])
{
    cfx_error why = {.status = CFX_OK};
    cfx_value shape;
    size_t n = 0;
    if (cfxi_ops_module_attr(p->modules, p->g, cfxi_quantize_path(reader), "shape", &shape,
                             &why) != CFX_OK)
        return -1;
    const cfx_value *items = cfx_value_items(shape, &n);
    const bool known = shape.kind == CFX_KIND_TUPLE || shape.kind == CFX_KIND_LIST;
    int rank = known && n <= 2 ? (int)n : -1;
    for (int i = 0; i < rank; i++) {
        sizes[i] = items[i].kind == CFX_KIND_INT ? items[i].as.i : -1;
        rank = sizes[i] < 0 ? -1 : rank;
    }
    cfx_value_discard(p->g, shape);
    return rank;
}

static bool find_matrix(const cfxi_prepare *p, cfx_value v, matrix *m, int64_t *columns)
{
    int64_t sizes[2];
    cfx_node *n = v.kind == CFX_KIND_NODE ? v.as.node : NULL;
    cfx_node *of = n ? cfxi_quantize_transposed(n) : NULL;
    *m = (matrix){of ? of : n, of != NULL};
    if (!m->reader || m->reader->op != CFX_OP_GET_ATTR || sizes_of(p, m->reader, sizes) != 2)
        return false;
    *columns = sizes[of ? 0 : 1];
    return true;
}

static bool is_one(cfx_value v)
{
    return v.kind == CFX_KIND_INVALID || is_int(v, 1) || (v.kind == CFX_KIND_FLOAT && v.as.f == 1);
}

/* Whether the first operand of an addmm is the bias of a layer with so many outputs. */
static bool is_bias(const cfxi_prepare *p, const cfx_node *n, cfx_value bias, int64_t columns)
{
    int64_t sizes[2];
    return bias.kind == CFX_KIND_NODE && bias.as.node->op == CFX_OP_GET_ATTR &&
           sizes_of(p, bias.as.node, sizes) == 1 && sizes[0] == columns &&
           is_one(cfx_node_operand(n, "beta")) && is_one(cfx_node_operand(n, "alpha"));
}

typedef struct product {
    cfx_value x, bias;
    cfx_value right;  /* the matrix, as the product reads it */
    matrix weight;
} product;

static bool find_product(const cfxi_prepare *p, const cfx_node *n, cfx_operator op, product *out)
{
    int64_t columns;
    const bool add = op == CFX_OPID_addmm;
    if (!cfxi_ir_is_call(n) || n->op == CFX_OP_CALL_MODULE ||
        (!add && op != CFX_OPID_mm && op != CFX_OPID_matmul))
        return false;
    *out = (product){
        .x = cfx_node_operand(n, add ? "mat1" : "self"),
        .bias = add ? cfx_node_operand(n, "self") : cfx_value_none(),
        .right = cfx_node_operand(n, op == CFX_OPID_matmul ? "other" : "mat2"),
    };
    return out->x.kind == CFX_KIND_NODE && out->x.as.node->op != CFX_OP_GET_ATTR &&
           find_matrix(p, out->right, &out->weight, &columns) &&
           (!add || is_bias(p, n, out->bias, columns));
}

bool cfxi_quantize_is_layer(const cfxi_prepare *p, const cfx_node *n, cfx_operator op)
{
    product found;
    return find_product(p, n, op, &found);
}

/* torch.t of the matrix, behind it. */
static cfx_node *add_transposed(cfxi_prepare *p, cfx_node *reader)
{
    const cfx_insert_point old = cfx_graph_insert_point(p->g);
    const cfx_value arg = cfx_value_node(reader);
    cfx_node *t = NULL;
    if (cfx_graph_set_insert_point(p->g, (cfx_insert_point){reader, true}, p->err) == CFX_OK)
        t = cfxi_analysis_add_function(p->g, "torch.t", &arg, 1, p->err);
    cfx_graph_set_insert_point(p->g, old, NULL);
    if (t)
        cfxi_analysis_place_like(t, reader);
    return t;
}

cfx_status cfxi_quantize_make_layer(cfxi_prepare *p, cfx_node *n)
{
    product found;
    if (!find_product(p, n, cfx_node_operator(n), &found))
        return CFX_OK;
    cfx_node *weight = found.weight.reader;
    if (!found.weight.transposed)
        weight = add_transposed(p, weight);
    if (!weight)
        return cfxi_base_failed(p->err, p->err->status);
    const cfx_value args[] = {found.x, cfx_value_node(weight), found.bias};
    CFX_TRY(cfxi_quantize_set_call(n, "torch.nn.functional.linear", args, 3, p->err));
    cfx_node *right = found.right.as.node;
    const bool unread = right->n_users == 0 && right->op != CFX_OP_GET_ATTR;
    return unread ? cfx_graph_erase(p->g, right, p->err) : CFX_OK;
}
