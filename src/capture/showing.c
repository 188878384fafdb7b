/* showing.c - programs that show values while they run: to observers, or to a comparison.
 *
 *     before                                              after
 *     %x = placeholder[target=x]()                        %x = placeholder[target=x]()
 *     %o = call_module[target=observer_0](%x)             %show = call_function[
 *                                                             target=cfx.quantize.show](%x, 0)
 *     %y = call_function[target=torch.relu](%o)           %y = call_function[target=torch.relu](%x)
 *
 * `show` is a custom operator of a library of the program's own, which knows whom to tell. It
 * returns nothing that anyone reads; its flag keeps passes from dropping it.
 */
#include "observing_impl.h"

#include "analysis/analysis_impl.h"

static const char target_name[] = "cfx.quantize.show";

/* ---- the operator -------------------------------------------------------------------------- */

static cfx_status show_kernel(cfx_kernel_call *c)
{
    const cfxi_viewer *viewer = cfx_kernel_context(c);
    const cfx_datum place = cfx_kernel_arg(c, 1);
    CFX_TRY(viewer->show(viewer->ctx, (size_t)place.as.i, cfx_kernel_arg(c, 0),
                         cfx_kernel_error(c)));
    return cfx_kernel_set(c, 0, cfx_datum_int(0));
}

static cfx_status show_infer(cfx_kernel_call *c) { return cfx_kernel_set(c, 0, cfx_datum_int(0)); }

typedef struct viewing {
    cfxi_viewer viewer;
    const cfx_allocator *allocator;
} viewing;

static void end_viewing(void *ctx)
{
    viewing *v = ctx;
    if (v->viewer.release)
        v->viewer.release(v->viewer.ctx);
    cfxi_base_free(v->allocator, v, sizeof *v);
}

const cfx_library *cfxi_capture_viewing(const cfxi_viewer *viewer, const cfx_library *base,
                                        const cfx_allocator *allocator, cfx_error *err)
{
    viewing *v = cfxi_base_alloc(allocator, sizeof *v);
    if (!v) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *v = (viewing){*viewer, allocator};
    const cfx_custom_operator row = {
        .name = target_name, .schema = "(Any x, int place) -> int",
        .flags = CFX_OPERATOR_CHECKS, .infer = show_infer, .kernel = show_kernel, .ctx = v,
        .release = end_viewing,
    };
    const cfx_library *lib = cfx_library_new(&row, 1, base, allocator, err);
    if (!lib)
        cfxi_base_free(allocator, v, sizeof *v);
    return lib;
}

/* ---- in a graph ---------------------------------------------------------------------------- */

cfx_status cfxi_capture_show(cfx_node *n, size_t place, cfx_error *err)
{
    cfx_graph *g = cfx_node_graph(n);
    const cfx_insert_point old = cfx_graph_insert_point(g);
    const cfx_value args[] = {cfx_value_node(n), cfx_value_int((int64_t)place)};
    cfx_node *behind = n;
    while (n->op == CFX_OP_PLACEHOLDER && cfx_node_next(behind) &&
           cfx_node_op(cfx_node_next(behind)) == CFX_OP_PLACEHOLDER)
        behind = cfx_node_next(behind);  /* inputs come first */
    CFX_TRY(cfx_graph_set_insert_point(g, (cfx_insert_point){behind, true}, err));
    const cfx_node *call = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, target_name, args, 2, NULL, 0,
                                          err);
    cfx_graph_set_insert_point(g, old, NULL);
    return call ? CFX_OK : CFX_E_NOMEM;
}

/* ---- observers ----------------------------------------------------------------------------- */

/* The observers of a program. */
typedef struct observers {
    const cfx_allocator *allocator;
    const cfx_module *root;
    cfxi_vec items;  /* of cfxi_observing *, retained */
} observers;

static void release_observers(void *ctx)
{
    observers *w = ctx;
    while (w->items.size > 0)
        cfxi_capture_observing_release(((cfxi_observing **)w->items.data)[--w->items.size]);
    cfxi_base_vec_free(&w->items, sizeof(cfxi_observing *), w->allocator);
    cfxi_base_free(w->allocator, w, sizeof *w);
}

static cfx_status show_to_observer(void *ctx, size_t place, cfx_datum value, cfx_error *err)
{
    const observers *w = ctx;
    return cfxi_capture_observing_see(((cfxi_observing **)w->items.data)[place], value, err);
}

static cfx_status replace_observer(observers *w, cfx_node *n, cfxi_observing *observing,
                                   cfx_error *err)
{
    const cfx_value v = cfx_node_arg(n, 0);
    if (v.kind != CFX_KIND_NODE)
        return cfx_error_set(err, CFX_E_GRAPH, "the observer '%.100s' is not called with a node",
                             cfx_node_name(n, NULL));
    if (!cfxi_base_vec_reserve(&w->items, 1, sizeof observing, w->allocator))
        return cfxi_base_nomem(err);
    CFX_TRY(cfxi_capture_show(v.as.node, w->items.size, err));
    ((cfxi_observing **)w->items.data)[w->items.size++] = cfxi_capture_observing_retain(observing);
    CFX_TRY(cfx_node_replace_uses(n, v, NULL, NULL, NULL, err));
    return cfx_graph_erase(cfx_node_graph(n), n, err);
}

static cfx_status replace_all(cfx_graph *g, void *ctx, cfx_error *err)
{
    observers *w = ctx;
    cfx_iter it;
    cfx_status status = CFX_OK;
    cfx_iter_begin(&it, g, false);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;) {
        const char *path = n->op == CFX_OP_CALL_MODULE ? cfx_node_target(n, NULL, NULL) : NULL;
        const cfx_module *m = path ? cfx_module_child(w->root, path) : NULL;
        if (m && m->observing)
            status = replace_observer(w, n, m->observing, err);
    }
    cfx_iter_end(&it);
    return status == CFX_OK ? cfxi_analysis_each_region(g, replace_all, w, err) : status;
}

cfx_status cfxi_capture_show_observers(cfx_graph *g, const cfx_module *root,
                                       const cfx_library **library, cfx_error *err)
{
    const cfx_allocator *allocator = root->allocator;
    observers *w = cfxi_base_alloc(allocator, sizeof *w);
    if (!w)
        return cfxi_base_nomem(err);
    *w = (observers){.allocator = allocator, .root = root};
    cfx_status status = replace_all(g, w, err);
    const cfxi_viewer viewer = {show_to_observer, w, release_observers};
    const cfx_library *lib = status == CFX_OK && w->items.size > 0
                                 ? cfxi_capture_viewing(&viewer, *library, allocator, err) : NULL;
    if (status == CFX_OK && w->items.size > 0)
        status = lib ? CFX_OK : CFX_E_NOMEM;
    if (!lib)
        release_observers(w);
    else
        *library = lib;
    return status;
}
