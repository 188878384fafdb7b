/* call_arguments.c - the arguments of a call by parameter, and which nodes give tensors. */
#include "call_arguments_impl.h"

/* ---- binding ------------------------------------------------------------------------------- */

static bool read_params(const cfx_node *n, cfxi_binding *b)
{
    cfxi_spelled_param param;
    for (b->n = 0; cfxi_ops_node_spelled_param(n, b->n, &param, &b->own); b->n++) {
        if (b->n == CFXI_MOST_PARAMS)
            return false;
        b->params[b->n] = param;
        b->values[b->n] = cfx_value_invalid();
    }
    return b->n > 0;
}

static bool is_keyword(const cfxi_spelled_param *param, cfx_schema_text key)
{
    return cfxi_ops_text_is(param->name, key.text, key.size) ||
           (cfxi_ops_text_is(param->name, "self", 4) && cfxi_ops_text_is(key, "input", 5));
}

static bool bind_kwargs(const cfx_node *n, cfxi_binding *b)
{
    for (uint32_t i = 0; n->kwargs && i + 1 < n->kwargs->size; i += 2) {
        const cfx_str *key = n->kwargs->items[i].as.str;
        size_t at = 0;
        while (at < b->n && !is_keyword(&b->params[at], (cfx_schema_text){key->data, key->size}))
            at++;
        if (at == b->n || b->values[at].kind != CFX_KIND_INVALID)
            return false;
        b->values[at] = n->kwargs->items[i + 1];
    }
    return true;
}

/* Whether a value can be what a parameter takes: not a number for a list or a tensor's dtype. */
static bool may_be(const cfx_node *n, const cfxi_binding *b, size_t i)
{
    cfx_schema_param param;
    if (!cfx_operator_param(cfx_node_operator(n), b->params[i].param, &param))
        return true;
    const bool number = b->values[i].kind == CFX_KIND_INT || b->values[i].kind == CFX_KIND_FLOAT;
    return !param.variadic && !(number && strcmp(param.type, "int[]") == 0) &&
           !(number && strcmp(param.type, "ScalarType") == 0);
}

bool cfxi_analysis_bind(const cfx_node *n, cfxi_binding *b)
{
    const size_t args = cfx_node_num_args(n);
    if (!cfx_node_operator(n) || !read_params(n, b) || args > b->n)
        return false;
    for (size_t i = 0; i < args; i++) {
        if (b->params[i].keyword_only)
            return false;
        b->values[i] = n->args->items[i];
    }
    if (!bind_kwargs(n, b))
        return false;
    for (size_t i = 0; i < b->n; i++)
        if (!may_be(n, b, i))
            return false;
    return true;
}

/* ---- tensors ------------------------------------------------------------------------------- */

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static cfx_status is_tensor_type(cfx_graph *g, cfx_value type, bool *tensor, cfx_error *err)
{
    cfx_error why = {.status = CFX_OK};
    const char *name = type.kind == CFX_KIND_HOST ? cfx_value_host_name(g, type, &why) : NULL;
    *tensor = name && strcmp(name, "torch.Tensor") == 0;
    if (why.status == CFX_OK || why.status == CFX_E_KEY)  /* a type without a name does not count */
        return CFX_OK;
    if (err)
        *err = why;
    return why.status;
}

bool cfxi_analysis_is_tensor(const cfxi_tensors *t, cfx_value v)
{
    return v.kind == CFX_KIND_NODE && cfx_node_map_get(t->known, v.as.node).kind == CFX_KIND_BOOL;
}

bool cfxi_analysis_is_torch_call(const cfxi_tensors *t, const cfx_node *n)
{
    const cfx_str *name = n->callee->ref->name;
    if (!cfx_node_operator(n))
        return false;
    if (n->op == CFX_OP_CALL_FUNCTION && name && has_prefix(name->data, "torch."))
        return true;
    return cfxi_analysis_is_tensor(t, cfx_node_arg(n, 0));
}

cfx_status cfxi_analysis_result_type(const cfxi_tensors *t, const cfx_node *n,
                                     cfx_schema_param *result, const char **type, cfx_error *err)
{
    cfxi_binding b;
    cfx_operator op;
    *type = NULL;
    CFX_TRY(cfx_node_operator_of(n, t->modules, &op, err));
    if (cfx_operator_num_results(op) == 1 && cfx_operator_result(op, 0, result) &&
        (n->op == CFX_OP_CALL_MODULE ||
         (cfxi_analysis_is_torch_call(t, n) && cfxi_analysis_bind(n, &b))))
        *type = result->type;
    return CFX_OK;
}

static cfx_status gives_tensor(const cfxi_tensors *t, cfx_node *n, bool *tensor, cfx_error *err)
{
    cfx_schema_param result;
    const char *type;
    CFX_TRY(is_tensor_type(n->graph, cfx_node_type(n), tensor, err));
    if (*tensor)
        return CFX_OK;
    if (n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_GET_ATTR) {
        *tensor = t->inputs && cfx_node_type(n).kind == CFX_KIND_INVALID;
        return CFX_OK;
    }
    CFX_TRY(cfxi_analysis_result_type(t, n, &result, &type, err));
    *tensor = type && strcmp(type, "Tensor") == 0;
    return CFX_OK;
}

cfx_status cfxi_analysis_tensors_note(cfxi_tensors *t, cfx_node *n, cfx_error *err)
{
    bool tensor = false;
    CFX_TRY(gives_tensor(t, n, &tensor, err));
    return tensor ? cfx_node_map_set(t->known, n, cfx_value_bool(true), err) : CFX_OK;
}

cfx_status cfxi_analysis_tensors_begin(cfxi_tensors *t, cfx_graph *g,
                                       const cfx_module_tree *modules, bool inputs, cfx_error *err)
{
    cfx_status status = CFX_OK;
    *t = (cfxi_tensors){cfx_node_map_new(g->allocator, err), modules, inputs};
    if (!t->known)
        return CFX_E_NOMEM;
    cfxi_ir_graph_freeze(g);  /* the host is asked for names */
    for (cfx_node *n = g->root.next; n != &g->root && status == CFX_OK; n = n->next)
        status = cfxi_analysis_tensors_note(t, n, err);
    cfxi_ir_graph_thaw(g);
    return status;
}

void cfxi_analysis_tensors_end(cfxi_tensors *t) { cfx_node_map_free(t->known); }
