/* module_query.c - what passes ask the tree of modules: the class and the attributes of what is at
 * a path, and what operator a call of it is.
 *
 * What is not there is an answer; what fails in the host, or for want of memory, is an error.
 */
#include "ir/graph_impl.h"
#include "ops_impl.h"

static cfx_status answer_or_error(const cfx_error *why, cfx_status status, cfx_error *err)
{
    if (status == CFX_OK || status == CFX_E_KEY)
        return CFX_OK;
    if (why->status == status && err)
        *err = *why;
    return cfxi_base_failed(err, status);
}

cfx_status cfxi_ops_module_class(const cfx_module_tree *modules, const char *path, cfx_buffer *name,
                                 cfx_error *err)
{
    cfx_error why = {.status = CFX_OK};
    if (!modules || !modules->class_name)
        return CFX_OK;
    cfx_status status = modules->class_name(modules->ctx, path, cfx_buffer_sink(name), &why);
    return answer_or_error(&why, status, err);
}

cfx_status cfxi_ops_module_attr(const cfx_module_tree *modules, cfx_graph *g, const char *path,
                                const char *name, cfx_value *v, cfx_error *err)
{
    cfx_error why = {.status = CFX_OK};
    cfx_buffer full;
    *v = cfx_value_invalid();
    if (!modules || !modules->get)
        return CFX_OK;
    cfx_buffer_init(&full, g->allocator);
    if (cfx_buffer_append(&full, path, strlen(path)) != CFX_OK ||
        cfx_buffer_append(&full, ".", path[0] && name[0]) != CFX_OK ||
        cfx_buffer_append(&full, name, strlen(name)) != CFX_OK)
        cfxi_base_nomem(&why);
    else
        *v = modules->get(modules->ctx, g, full.data, &why);
    cfx_buffer_free(&full);
    return v->kind == CFX_KIND_INVALID ? answer_or_error(&why, why.status, err) : CFX_OK;
}

cfx_status cfx_node_operator_of(const cfx_node *n, const cfx_module_tree *modules, cfx_operator *op,
                                cfx_error *err)
{
    cfx_buffer name;
    *op = cfx_node_operator(n);
    if (n->op != CFX_OP_CALL_MODULE)
        return CFX_OK;
    cfx_buffer_init(&name, n->graph->allocator);
    cfx_status status = cfxi_ops_module_class(modules, n->callee->ref->name->data, &name, err);
    if (status == CFX_OK)
        *op = cfxi_ops_of_class(name.data);
    cfx_buffer_free(&name);
    return status;
}

/* Only for operators that can be in place, or that nothing is known of: most modules have no such
 * attribute, and asking for what is not there is slow in Python. */
cfx_status cfxi_ops_module_writes(const cfx_node *n, const cfx_module_tree *modules, bool *writes,
                                  cfx_error *err)
{
    cfx_operator op;
    cfx_value v;
    *writes = false;
    CFX_TRY(cfx_node_operator_of(n, modules, &op, err));
    if (op && !cfx_operator_in_place(op))
        return CFX_OK;
    CFX_TRY(
        cfxi_ops_module_attr(modules, n->graph, n->callee->ref->name->data, "inplace", &v, err));
    *writes = v.kind != CFX_KIND_INVALID && !(v.kind == CFX_KIND_BOOL && !v.as.b);
    cfx_value_discard(n->graph, v);
    return CFX_OK;
}
