/* reference_keep.c - what stays float when a graph is converted: what was named, and what else has
 * no integers.
 *
 * A name is that of a node, in the graph or a region, or the path of a module: then all calls of it
 * and in it stay float. A name that stands for nothing is an error.
 */
#include "reference_impl.h"

#include <cfx/embed/base.h>

cfx_status cfxi_quantize_keep(cfxi_convert *c, cfx_node *n, const char *why)
{
    if (cfxi_base_pointers_get(&c->kept, n))
        return CFX_OK;
    if (c->opts->left && why)
        c->opts->left(c->opts->ctx, n, why);
    return cfxi_base_pointers_set(&c->kept, n, n, c->allocator) ? CFX_OK : cfxi_base_nomem(c->err);
}

/* ---- what counts as one --------------------------------------------------------------------- */

/* The call that alone reads `n`, and reads nothing else: if that is a ReLU with no observer between
 * them, they count as one. */
static cfx_node *tail_of(const cfx_node *n)
{
    cfx_node *user = cfxi_quantize_only_user(n);
    return user && cfxi_ir_is_call(user) && user->n_inputs == 1 ? user : NULL;
}

static cfx_status is_relu(const cfxi_convert *c, const cfx_node *n, bool *is)
{
    cfx_operator op = CFX_OPID_NONE;
    CFX_TRY(cfx_node_operator_of(n, c->modules, &op, c->err));
    *is = op == CFX_OPID_relu || op == CFX_OPID_relu_;
    return CFX_OK;
}

/* A node, and the ReLU that counts as one with it. */
static cfx_status keep_both(cfxi_convert *c, cfx_node *n)
{
    static const char why[] = "it was asked to stay float";
    cfx_node *tail = tail_of(n);
    cfx_node *head = n->n_inputs == 1 ? n->inputs[0].def : NULL;
    bool joined = false;
    CFX_TRY(cfxi_quantize_keep(c, n, why));
    if (tail)
        CFX_TRY(is_relu(c, tail, &joined));
    if (joined)
        CFX_TRY(cfxi_quantize_keep(c, tail, why));
    CFX_TRY(is_relu(c, n, &joined));
    if (joined && head && cfxi_ir_is_call(head) && tail_of(head) == n)
        return cfxi_quantize_keep(c, head, why);
    return CFX_OK;
}

/* Whether only observers read `n`, as the result of a call in integers. */
static cfx_status is_observed(const cfxi_convert *c, const cfx_node *n, bool *is)
{
    cfx_quantize_spec spec;
    *is = n->n_users > 0;
    for (const cfx_use *u = cfx_node_first_use(n); u && *is; u = cfx_use_next(u))
        CFX_TRY(cfxi_quantize_observer(c->host, cfx_use_user(u), is, &spec, c->err));
    return CFX_OK;
}

cfx_status cfxi_quantize_in_integers(const cfxi_convert *c, const cfx_node *n, bool *is)
{
    cfx_operator op = CFX_OPID_NONE;
    bool joined = false;
    *is = false;
    if (!cfxi_ir_is_call(n) || cfxi_base_pointers_get(&c->kept, n))
        return CFX_OK;
    CFX_TRY(cfx_node_operator_of(n, c->modules, &op, c->err));
    const cfxi_quantize_row *row = cfxi_quantize_find_row(op);
    const cfx_node *tail = tail_of(n);
    if (tail)
        CFX_TRY(is_relu(c, tail, &joined));
    return row && (row->modes & CFXI_QUANTIZE_STATIC) ? is_observed(c, joined ? tail : n, is)
                                                      : CFX_OK;
}

/* ---- names ---------------------------------------------------------------------------------- */

typedef struct naming {
    cfxi_convert *c;
    const char *name;
    bool modules;  /* it is the path of a module, not a node */
    size_t found;
    cfx_nearest near;
} naming;

/* Whether `path` is `module`, or something in it: "layer1.0@1" is in "layer1". */
static bool is_within(const char *path, const char *module)
{
    const size_t size = strlen(module);
    return path && strncmp(path, module, size) == 0 &&
           (path[size] == '\0' || path[size] == '.' || path[size] == '@');
}

static bool is_in_module(const cfx_node *n, const char *name)
{
    if (n->op == CFX_OP_CALL_MODULE && is_within(cfxi_quantize_path(n), name))
        return true;
    for (uint32_t s = cfxi_ir_is_call(n) ? n->scope : 0; s; s = cfx_graph_stack_outer(n->graph, s))
        if (is_within(cfx_graph_stack_path(n->graph, s), name))
            return true;
    return false;
}

static cfx_status name_in_graph(cfx_graph *g, void *ctx, cfx_error *err)
{
    naming *by = ctx;
    cfx_quantize_spec spec;
    bool observes;
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        CFX_TRY(cfxi_quantize_observer(by->c->host, n, &observes, &spec, by->c->err));
        if (observes || n->op == CFX_OP_OUTPUT)
            continue;
        if (by->modules)  /* no node has this name, and perhaps nothing has */
            cfx_nearest_add(&by->near, cfx_node_name(n, NULL));
        if (by->modules && n->op == CFX_OP_CALL_MODULE)
            cfx_nearest_add(&by->near, cfxi_quantize_path(n));
        if (by->modules ? !is_in_module(n, by->name)
                        : strcmp(cfx_node_name(n, NULL), by->name) != 0)
            continue;
        by->found++;
        CFX_TRY(keep_both(by->c, n));
    }
    return cfxi_analysis_each_region(g, name_in_graph, ctx, err);
}

cfx_status cfxi_quantize_keep_named(cfxi_convert *c, cfx_graph *g)
{
    for (size_t i = 0; i < c->opts->n_keep; i++) {
        naming by = {.c = c, .name = c->opts->keep[i]};
        cfx_nearest_begin(&by.near, by.name);
        CFX_TRY(name_in_graph(g, &by, c->err));
        by.modules = by.found == 0;
        if (by.modules)
            CFX_TRY(name_in_graph(g, &by, c->err));
        if (by.found == 0)
            return cfx_error_set(c->err, CFX_E_KEY, "to keep in float: the graph has no node or "
                                 "module '%.100s'%s%s%s", by.name,
                                 by.near.best ? "; did you mean '" : "",
                                 by.near.best ? by.near.best : "", by.near.best ? "'?" : "");
    }
    return CFX_OK;
}
