/* unlift_params.c - reads inputs that stand for parameters and buffers from the module again.
 *
 *     before                                       after (paths: "fc.weight")
 *     %w = placeholder[target=w]()                 %x = placeholder[target=x]()
 *     %x = placeholder[target=x]()                 %w = get_attr[target=fc.weight]()
 *     %mul = call_method[target=mul](%x, %w)       %mul = call_method[target=mul](%x, %w)
 *     output(%mul)                                 output(%mul)
 *
 * Needs: the paths. The modules, if there are any, must have something at each.
 * Keeps: nodes are changed in place, so names, locations, users and whatever is bound to them stay.
 *
 * Linear in the nodes.
 */
#include "analysis/analysis_impl.h"
#include "pass_impl.h"

/* Whether the paths can be read, and there is an input for each; *end is the first node behind all
 * inputs. */
static cfx_status check_paths(cfx_graph *g, const cfx_module_tree *modules,
                              const cfx_unlift_params_options *opts, cfx_node **end, cfx_error *err)
{
    size_t inputs = 0;
    *end = g->root.next;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next)
        if (n->op == CFX_OP_PLACEHOLDER) {
            inputs++;
            *end = n->next;
        }
    if (inputs < opts->n)
        return cfx_error_set(err, CFX_E_VALUE, "%zu paths are given for the first inputs, but the "
                             "graph has %zu inputs; pass the paths that lift_params returned",
                             opts->n,
                             inputs);
    for (size_t i = 0; modules && i < opts->n; i++)
        if (!modules->identity(modules->ctx, opts->paths[i]))
            return cfx_error_set(err, CFX_E_VALUE, "the module has no attribute '%s', from which "
                                 "an input should be read", opts->paths[i]);
    return CFX_OK;
}

static cfx_status make_reader(cfx_node *n, const char *path, cfx_node *end, cfx_error *err)
{
    const cfx_target target = {.name = path, .size = strlen(path)};
    CFX_TRY(
        cfx_node_set_args(n, cfxi_ir_seq_value(CFX_KIND_TUPLE, NULL, 0), err)); /* its default */
    CFX_TRY(cfx_node_set_op(n, CFX_OP_GET_ATTR, err));
    CFX_TRY(cfx_node_set_target(n, target, err));
    return n->next == end ? CFX_OK : cfx_node_prepend(end, n, err);
}

cfx_status cfxi_pass_unlift_params(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                                   bool *changed, cfx_error *err)
{
    const cfx_unlift_params_options *o = opts;
    cfx_status status = CFX_OK;
    cfx_node *end;
    if (changed)
        *changed = o && o->n > 0;
    if (!o || o->n == 0)
        return CFX_OK;
    CFX_TRY(check_paths(g, cfxi_analysis_modules_or_null(modules), o, &end, err));
    cfx_iter pin;
    cfx_iter_begin(&pin, g, false);
    cfx_node *n = g->root.next;
    for (size_t i = 0; i < o->n && status == CFX_OK && n != end; i++) {
        while (n->op != CFX_OP_PLACEHOLDER && n != end)
            n = n->next;
        cfx_node *next = n->next;
        if (n != end)
            status = make_reader(n, o->paths[i], end, err);
        n = next;
    }
    cfx_iter_end(&pin);
    return status;
}
