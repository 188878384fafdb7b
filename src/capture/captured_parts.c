/* captured_parts.c - what a captured module has: the parts of the original that its graph names.
 *
 * They are the same modules and tensors, at the same paths. A user's module that is called as one
 * node is captured in turn: its graph is all that is known of it where there is no `forward`.
 */
#include "capture_impl.h"
#include "ir/walk_impl.h"

typedef struct graft {
    cfx_at at;
    cfx_module *to;
    const cfx_module *from;
    cfx_trace_options options;  /* for what is captured in turn */
    bool missing;               /* only what `to` has nothing for */
} graft;

/* The module in `to` for the first size characters of `path`; a plain one is made if need be. */
static cfx_module *step(cfx_module *to, const cfx_module *source, const char *path, size_t size,
                        cfx_error *err)
{
    const cfx_datum none = cfx_datum_invalid();
    const cfxi_member *child = cfxi_capture_module_find(to, path, size);
    if (child)
        return child->child;
    cfx_module *made = cfxi_capture_module_make(to->allocator, err);
    if (!made)
        return NULL;
    made->training = source->training;
    cfx_status status = cfxi_capture_module_put(to, path, size, CFXI_MEMBER_CHILD, made, none, err);
    cfx_module_release(made);  /* its parent has it */
    return status == CFX_OK ? made : NULL;
}

/* What is to stand in the place of a child: itself, or a user's module captured. Borrowed. */
static cfx_module *as_part(const graft *g, cfx_module *child, cfx_error *err)
{
    if (!child || !child->type)
        return child;
    cfx_module *captured = cfx_trace_at(g->at, child, g->options);
    if (!captured)
        *err = *cfx_scope_error(g->at.scope);
    return captured;
}

/* Puts what is at `path` below `from` there below `to`. What is not in `from` is a constant that
 * the trace has put there already. */
static cfx_status bring(const graft *g, const char *path, cfx_error *err)
{
    const cfxi_member *e = cfxi_capture_module_at(g->from, path);
    const cfx_module *from = g->from;
    cfx_module *to = g->to;
    const char *dot;
    if (!e || (g->missing && cfxi_capture_module_at(to, path)))
        return CFX_OK;
    while ((dot = strchr(path, '.')) != NULL) {
        const size_t size = (size_t)(dot - path);
        const cfx_module *source = cfxi_capture_module_find(from, path, size)->child;
        to = step(to, source, path, size, err);
        if (!to)
            return CFX_E_NOMEM;
        if (to == source)
            return CFX_OK;  /* it was brought as a whole */
        from = source;
        path = dot + 1;
    }
    const cfxi_member *there = cfxi_capture_module_find(to, path, strlen(path));
    if (there && there->child && there->child->graph)
        return CFX_OK;  /* captured by an earlier call */
    cfx_module *part = as_part(g, e->child, err);
    if (e->child && !part)
        return err->status;
    const cfx_status status = cfxi_capture_module_put(to, path, strlen(path), e->kind, part,
                                                      e->value, err);
    if (part != e->child)
        cfx_module_drop_at(g->at, part);  /* `to` has it */
    return status;
}

/* What the regions of a node read. */
static cfx_status bring_all(cfx_graph *graph, void *ctx, cfx_error *err)
{
    graft *g = ctx;
    for (cfx_node *n = cfx_graph_first(graph); n; n = cfx_node_next(n)) {
        if (n->op == CFX_OP_GET_ATTR || n->op == CFX_OP_CALL_MODULE)
            CFX_TRY(bring(g, cfx_node_target(n, NULL, NULL), err));
        CFX_TRY(cfxi_ir_each_region(cfx_node_args(n), bring_all, g, err));
        CFX_TRY(cfxi_ir_each_region(cfx_node_kwargs(n), bring_all, g, err));
    }
    return CFX_OK;
}

cfx_status cfxi_capture_graft(cfx_at at, cfx_module *to, const cfx_module *from, cfx_graph *graph,
                              const cfx_trace_options *options, cfx_error *err)
{
    graft g = {.at = at, .to = to, .from = from};
    if (options)
        g.options = (cfx_trace_options){.is_leaf = options->is_leaf, .ctx = options->ctx};
    return bring_all(graph, &g, err);
}

cfx_status cfxi_capture_graft_missing(cfx_at at, cfx_module *to, const cfx_module *from,
                                      cfx_graph *graph, cfx_error *err)
{
    graft g = {.at = at, .to = to, .from = from, .missing = true};
    return bring_all(graph, &g, err);
}

/* ---- parts that a program brings along ----------------------------------------------------- */

/* The module for all names of `path` but the last, which *last becomes; NULL if one of them is a
 * tensor's, or memory is out. */
static cfx_module *owner_of(cfx_module *m, const char *path, const char **last, cfx_error *err)
{
    const char *dot;
    while (m && (dot = strchr(path, '.')) != NULL) {
        m = step(m, m, path, (size_t)(dot - path), err);
        path = dot + 1;
    }
    *last = path;
    return m;
}

bool cfxi_capture_trace_adopt(cfx_at at, const char *path, cfx_tensor *t, cfxi_member_kind kind)
{
    cfxi_trace *trace = at.scope->trace;
    cfx_error err = {0};
    const char *last;
    cfx_module *owner = owner_of(trace->root, path, &last, &err);
    if (err.status == CFX_OK &&
        (!owner || cfxi_capture_module_find(owner, last, strlen(last)) != NULL))
        return false;
    if (err.status == CFX_OK)
        cfxi_capture_module_put(owner, last, strlen(last), kind, NULL, cfx_datum_tensor(t), &err);
    if (err.status == CFX_OK)
        cfxi_capture_places_add(&trace->places, t, path, "", &err);
    if (err.status != CFX_OK)
        cfxi_capture_scope_take(at, &err);
    return true;
}
