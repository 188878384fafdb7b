/* pass_kept.c - runs a pass and checks that it kept what its row says, for debug builds.
 *
 * Names, order, locations, targets, types, nodes and inputs of the top graph can be compared. The
 * other flags say things that no comparison of two graphs can decide.
 */
#include "pass_kept_impl.h"

/* A node as it was. An open iterator holds back its memory, so the pointer stays good. */
typedef struct was {
    const cfx_node *node;
    const cfxi_name *name;
    const cfxi_callee *callee;
    uint32_t location;
    bool is_input;
    bool has_type;
} was;

static void note_nodes(const cfx_graph *g, was *all)
{
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n))
        *all++ = (was){.node = n, .name = n->name, .callee = n->callee, .location = n->location,
                       .is_input = n->op == CFX_OP_PLACEHOLDER,
                       .has_type = cfx_node_type(n).kind != CFX_KIND_INVALID};
}

/* What of `w` is not kept; NULL if all is. */
static const char *lost_of_node(const was *w, unsigned keeps)
{
    const cfx_node *n = w->node;
    if (cfxi_ir_node_erased(n)) {
        if (keeps & CFX_PASS_KEEPS_NODES)
            return "every node";
        return w->is_input && keeps & CFX_PASS_KEEPS_INPUTS ? "the inputs" : NULL;
    }
    if (keeps & CFX_PASS_KEEPS_NAMES && n->name != w->name)
        return "names";
    if (keeps & CFX_PASS_KEEPS_LOCATIONS && w->location && n->location != w->location)
        return "locations";
    if (keeps & CFX_PASS_KEEPS_TARGETS && n->callee != w->callee)
        return "targets";
    if (keeps & CFX_PASS_KEEPS_TYPES && w->has_type && cfx_node_type(n).kind == CFX_KIND_INVALID)
        return "types";
    return NULL;
}

static cfx_status compare(const cfx_pass *pass, const was *all, size_t n, cfx_error *err)
{
    const cfx_node *last = NULL;
    for (size_t i = 0; i < n; i++) {
        const char *lost = lost_of_node(&all[i], pass->keeps);
        const cfx_node *now = all[i].node;
        const bool stays = !cfxi_ir_node_erased(now);
        const bool ordered = pass->keeps & CFX_PASS_KEEPS_ORDER;
        if (!lost && stays && last && ordered && now->order < last->order)
            lost = "the order";
        if (lost)
            return cfx_error_set(err, CFX_E_GRAPH, "the pass %s did not keep %s, as its row in "
                                 "pass.def says (node %%%s)", pass->name, lost,
                                 all[i].name->data);
        last = stays ? now : last;
    }
    return CFX_OK;
}

static cfx_status run_verified(const cfx_pass *pass, cfx_graph *g, const cfx_module_tree *modules,
                               const void *opts, bool *changed, cfx_error *err)
{
    const bool good = cfx_graph_verify(g, NULL, NULL, NULL) == CFX_OK;
    CFX_TRY(pass->run(g, modules, opts, changed, err));
    cfx_error why = {.status = CFX_OK};
    if (!good || cfx_graph_verify(g, NULL, NULL, &why) == CFX_OK)
        return CFX_OK;
    return cfx_error_set(err, why.status, "after the pass %s: %s", pass->name, why.message);
}

cfx_status cfxi_pass_run_checked(const cfx_pass *pass, cfx_graph *g, const cfx_module_tree *modules,
                                 const void *opts, bool *changed, cfx_error *err)
{
    const size_t n = cfx_graph_size(g);
    was *all = n ? cfxi_base_alloc(g->allocator, n * sizeof *all) : NULL;
    cfx_iter hold;
    if (!all) /* nothing to compare, or no memory for it */
        return run_verified(pass, g, modules, opts, changed, err);
    note_nodes(g, all);
    cfx_iter_begin(&hold, g, false);
    cfx_status status = run_verified(pass, g, modules, opts, changed, err);
    if (status == CFX_OK)
        status = compare(pass, all, n, err);
    cfx_iter_end(&hold);
    cfxi_base_free(g->allocator, all, n * sizeof *all);
    return status;
}
