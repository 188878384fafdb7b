/* rules_node.c - what a node calls and in which module, as the rules of rules.c ask for it. */
#include "quantize_impl.h"

#include "ops/ops_impl.h"

#include <cfx/embed/location.h>
#include <cfx/embed/quantize.h>

/* The texts that a call points to, while it is looked at. */
typedef struct texts {
    cfx_buffer path;   /* of the module around the call */
    cfx_buffer class_name;
} texts;

static cfx_status append(cfx_buffer *to, const char *text, size_t size, cfx_error *err)
{
    return cfx_buffer_append(to, text, size) == CFX_OK ? CFX_OK : cfxi_base_nomem(err);
}

/* The first is the module's own class. */
static cfx_status take_first(void *ctx, const char *name, cfx_error *err)
{
    cfx_buffer *to = ctx;
    return to->size == 0 ? append(to, name, strlen(name), err) : CFX_OK;
}

/* The class of a module, hooks or not: rules ask what it is, and not what it computes. */
static cfx_status class_of(const cfx_module_tree *modules, const char *path, cfx_buffer *to,
                           const char **name, cfx_error *err)
{
    cfx_error why = {0};
    if (modules && modules->each_class) {
        const cfx_status status = modules->each_class(modules->ctx, path, take_first, to, &why);
        if (status != CFX_OK && status != CFX_E_KEY) {
            if (err && why.status == status)
                *err = why;
            return cfxi_base_failed(err, status);
        }
    } else {
        CFX_TRY(cfxi_ops_module_class(modules, path, to, err));
    }
    *name = to->size > 0 ? to->data : NULL;
    return CFX_OK;
}

/* The module that a function or method is called in: of its second call, "fc@1", the path is the
 * same. */
static cfx_status read_caller(const cfx_node *n, texts *t, cfxi_quantize_call *call, cfx_error *err)
{
    const uint32_t stack = cfx_node_module_stack(n);
    if (!stack)
        return CFX_OK;
    const char *path = cfx_graph_stack_path(cfx_node_graph(n), stack);
    const char *again = strrchr(path, '@');
    CFX_TRY(append(&t->path, path, again ? (size_t)(again - path) : strlen(path), err));
    call->path = t->path.data;
    call->around = cfx_graph_stack_type(cfx_node_graph(n), stack);
    return CFX_OK;
}

/* The module that has the attribute. */
static cfx_status read_owner(const char *target, const cfx_module_tree *modules, texts *t,
                             cfxi_quantize_call *call, cfx_error *err)
{
    const char *dot = strrchr(target, '.');
    CFX_TRY(append(&t->path, target, dot ? (size_t)(dot - target) : 0, err));
    call->path = t->path.data;
    return class_of(modules, call->path, &t->class_name, &call->around, err);
}

static cfx_status read_call(const cfx_node *n, const cfx_module_tree *modules, texts *t,
                            cfxi_quantize_call *call, cfx_error *err)
{
    cfx_error why = {0};
    const char *target = cfx_node_target(n, NULL, &why);
    if (!target && why.status == CFX_E_NOMEM)
        return cfxi_base_nomem(err);
    if (call->op == CFX_OP_GET_ATTR)
        return read_owner(target ? target : "", modules, t, call, err);
    if (call->op != CFX_OP_CALL_MODULE) {
        call->type = target;  /* NULL: a function without a name */
        return read_caller(n, t, call, err);
    }
    call->path = target ? target : "";
    return class_of(modules, call->path, &t->class_name, &call->type, err);
}

cfx_status cfxi_quantize_rules_node(const cfx_qrules *r, const cfx_node *n, const char *like,
                                    const cfx_module_tree *modules, cfxi_quantize_order *order,
                                    const cfx_qconfig **config, cfx_error *err)
{
    cfxi_quantize_call call = {.op = cfx_node_op(n), .like = like, .path = ""};
    texts t;
    *config = NULL;
    if (call.op == CFX_OP_PLACEHOLDER || call.op == CFX_OP_OUTPUT)
        return CFX_OK;
    cfx_buffer_init(&t.path, order->allocator);
    cfx_buffer_init(&t.class_name, order->allocator);
    cfx_status status = read_call(n, modules, &t, &call, err);
    if (status == CFX_OK)
        status = cfxi_quantize_order_count(order, &call, err);
    if (status == CFX_OK)
        status = cfxi_quantize_rules_find(r, &call, config, err);
    cfx_buffer_free(&t.path);
    cfx_buffer_free(&t.class_name);
    return status;
}

cfx_status cfxi_quantize_rules_of_node(const cfx_qrules *r, const cfx_node *n,
                                       const cfx_module_tree *modules, bool *has,
                                       const cfx_qconfig **config, cfx_error *err)
{
    cfxi_quantize_call call = {.op = cfx_node_op(n), .path = ""};
    texts t;
    *has = false;
    *config = NULL;
    cfx_buffer_init(&t.path, n->graph->allocator);
    cfx_buffer_init(&t.class_name, n->graph->allocator);
    cfx_status status = read_call(n, modules, &t, &call, err);
    if (status == CFX_OK && call.type)
        status = cfxi_quantize_rules_of_type(r, call.type, has, config, err);
    cfx_buffer_free(&t.path);
    cfx_buffer_free(&t.class_name);
    return status;
}

cfx_status cfx_qrules_each(const cfx_qrules *r, const cfx_graph *g, const cfx_module_tree *modules,
                           cfx_qconfig_fn *fn, void *ctx, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(r, "rules", err));
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    cfxi_quantize_order order = cfxi_quantize_order_new(cfx_graph_allocator(g));
    cfx_status status = CFX_OK;
    for (const cfx_node *n = cfx_graph_first(g); n && status == CFX_OK; n = cfx_node_next(n)) {
        const cfx_qconfig *config;
        if (cfx_node_op(n) == CFX_OP_PLACEHOLDER || cfx_node_op(n) == CFX_OP_OUTPUT)
            continue;
        status = cfxi_quantize_rules_node(r, n, NULL, modules, &order, &config, err);
        if (status == CFX_OK)
            status = fn(ctx, n, config, err);
    }
    cfxi_quantize_order_free(&order);
    return status == CFX_OK ? CFX_OK : cfxi_base_failed(err, status);
}
