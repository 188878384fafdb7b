/* lift_params.c - passes what a graph reads from its module as inputs.
 *
 *     before                                       after (paths: "fc.weight")
 *     %x = placeholder[target=x]()                 %w = placeholder[target=w]()
 *     %w = get_attr[target=fc.weight]()            %x = placeholder[target=x]()
 *     %w_1 = get_attr[target=fc.weight]()          %mul = call_method[target=mul](%x, %w)
 *     %mul = call_method[target=mul](%x, %w)       %add = call_method[target=add](%mul, %w)
 *     %add = call_method[target=add](%mul, %w_1)   output(%add)
 *     output(%add)
 *
 * Needs: the modules, to tell tensors from other attributes.
 * Keeps: nodes are changed in place, so names, locations, users and whatever is bound to them stay.
 * The new inputs come first: inputs with defaults or for any number of arguments can follow.
 *
 * Linear in nodes and edges.
 */
#include "transform_impl.h"

/* 1 if a tensor is at `path`, 0 if not, -1 with *err set. */
static int is_tensor(cfx_graph *g, const cfx_modules *modules, const char *path, cfx_error *err)
{
    cfx_buffer name;
    cfx_error why = {.status = CFX_OK};
    cfx_value dtype = cfx_invalid();
    cfx_buffer_init(&name, g->allocator);
    if (cfx_buffer_append(&name, path, strlen(path)) != CFX_OK ||
        cfx_buffer_append(&name, ".dtype", strlen(".dtype")) != CFX_OK)
        cfxi_nomem(&why);
    else
        dtype = modules->get(modules->ctx, g, name.data, &why);
    cfx_buffer_free(&name);
    cfx_value_discard(g, dtype);
    if (dtype.kind != CFX_KIND_INVALID || why.status == CFX_E_KEY)
        return dtype.kind == CFX_KIND_DTYPE;
    if (err)
        *err = why;
    return -1;
}

/* Collects the first reader of each path that leads to a tensor. */
static cfx_status find_readers(cfx_graph *g, const cfx_modules *modules, cfxi_vec *readers,
                               cfx_error *err)
{
    cfx_status status = CFX_OK;
    uint32_t seen = cfxi_graph_stamp(g, 1);
    cfxi_graph_freeze(g);  /* the host may run any code */
    for (cfx_node *n = g->root.next; n != &g->root && status == CFX_OK; n = n->next) {
        if (n->op != CFX_OP_GET_ATTR || n->mark == seen)
            continue;
        int tensor = is_tensor(g, modules, n->callee->ref->name->data, err);
        if (tensor < 0 || !cfxi_vec_reserve(readers, 1, sizeof n, g->allocator))
            status = tensor < 0 ? (err ? err->status : CFX_E_HOST) : cfxi_nomem(err);
        else if (tensor)
            ((cfx_node **)readers->data)[readers->size++] = n;
        for (cfx_node *same = n; same->mark != seen; same = same->same_next)
            same->mark = seen;
    }
    cfxi_graph_thaw(g);
    return status;
}

/* Makes all other readers of the same path use `n`, which stands before them. */
static cfx_status merge_readers(cfx_node *n, cfx_error *err)
{
    while (n->same_next != n) {
        cfx_node *other = n->same_next;
        CFX_TRY(cfx_node_replace_uses(other, cfx_from_node(n), NULL, NULL, NULL, err));
        CFX_TRY(cfx_graph_erase(n->graph, other, err));
    }
    return CFX_OK;
}

/* Makes `n` an input behind `last`, or the first one if that is NULL. */
static cfx_status make_input(cfx_node *n, cfx_node *last, cfx_error *err)
{
    const cfx_target target = {.name = n->name->data, .size = n->name->size};
    CFX_TRY(last ? cfx_node_move_after(last, n, err)
                 : cfx_node_move_before(n->graph->root.next, n, err));
    CFX_TRY(merge_readers(n, err));
    CFX_TRY(cfx_node_set_op(n, CFX_OP_PLACEHOLDER, err));
    return cfx_node_set_target(n, target, err);
}

static cfx_status tell(const cfx_lift_params_options *opts, const cfxi_vec *readers, cfx_error *err)
{
    for (size_t i = 0; opts && opts->lifted && i < readers->size; i++) {
        const cfx_node *n = ((cfx_node **)readers->data)[i];
        cfx_status status = opts->lifted(opts->ctx, n->callee->ref->name->data, err);
        if (status != CFX_OK)
            return cfxi_failed(err, status);
    }
    return CFX_OK;
}

static cfx_status lift(cfx_graph *g, const cfxi_vec *readers, cfx_error *err)
{
    cfx_status status = CFX_OK;
    cfx_node *last = NULL;
    cfx_iter pin;  /* hooks may erase what is still to be lifted: that fails then */
    cfx_iter_begin(&pin, g, false);
    for (size_t i = 0; i < readers->size && status == CFX_OK; i++) {
        cfx_node *n = ((cfx_node **)readers->data)[i];
        status = make_input(n, last, err);
        last = n;
    }
    cfx_iter_end(&pin);
    return status;
}

cfx_status cfx_pass_lift_params(cfx_graph *g, const cfx_modules *modules, const void *opts,
                                bool *changed, cfx_error *err)
{
    cfxi_vec readers = {0};
    bool any = false;
    cfx_status status = CFX_OK;
    if (modules)
        status = cfx_pass_lift_attrs(g, modules, NULL, &any, err);
    if (modules && status == CFX_OK)
        status = find_readers(g, modules, &readers, err);
    if (status == CFX_OK)
        status = tell(opts, &readers, err);
    any = any || readers.size > 0;
    if (status == CFX_OK)
        status = lift(g, &readers, err);
    cfxi_vec_free(&readers, sizeof(cfx_node *), g->allocator);
    if (changed)
        *changed = any;
    return status;
}
