/* lower_mode.c - fixes the modes of modules: what computes here has none.
 *
 *     before                                          after, if the module is not training
 *     %t = get_attr[target=training]()                %relu = ...
 *     %c = call_function[target=cfx.cond](%t,         output(%relu)
 *         graph { ... dropout ... },
 *         graph { ... relu ... }, (%x,))
 *     output(%c)
 *
 * What reads `training` becomes the present mode, and a branch on it the one that is taken, so that
 * the other need not be known here. Without modules, as in a file, that is eval mode. A call that
 * leaves a module in the mode that it is in goes.
 */
#include "lower_impl.h"
#include "pass/resolve_impl.h"

typedef struct mode_job {
    const cfx_module_tree *modules;
    bool any;
} mode_job;

/* Whether the module at a path, of which `size` bytes count, is training. */
static cfx_status mode_of(const mode_job *job, cfx_graph *g, const char *path, size_t size,
                          cfx_value *mode, cfx_error *err)
{
    *mode = cfx_value_bool(false);
    if (!job->modules)
        return CFX_OK;
    char *copy = cfxi_base_alloc(g->allocator, size + 1);
    if (!copy)
        return cfxi_base_nomem(err);
    memcpy(copy, path, size);
    copy[size] = '\0';
    cfx_value found = cfx_value_invalid();
    const cfx_status status = cfxi_ops_module_attr(job->modules, g, copy, "training", &found, err);
    cfxi_base_free(g->allocator, copy, size + 1);
    if (status == CFX_OK && found.kind == CFX_KIND_BOOL)
        *mode = found;
    else if (status == CFX_OK)
        cfx_value_discard(g, found);
    return status;
}

/* How many bytes of a flag's path are the module's: of "block.training", those of "block". */
static size_t module_size(const cfx_node *flag)
{
    size_t size = 0;
    cfx_node_target(flag, &size, NULL);
    const size_t name = strlen("training");
    return size > name ? size - name - 1 : 0;
}

static cfx_status fix_modes(cfx_graph *g, void *ctx, cfx_error *err)
{
    mode_job *job = ctx;
    cfx_iter it;  /* the host is asked for attributes, and may run any code */
    cfx_status status = CFX_OK;
    cfx_iter_begin(&it, g, false);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;) {
        cfx_value mode;
        if (!cfxi_ir_is_flag(n))
            continue;
        status = mode_of(job, g, n->callee->ref->name->data, module_size(n), &mode, err);
        if (status == CFX_OK)
            status = cfx_node_replace_uses(n, mode, NULL, NULL, NULL, err);
        if (status == CFX_OK)
            status = cfx_graph_erase(g, n, err);
        job->any = true;
    }
    cfx_iter_end(&it);
    return status == CFX_OK ? cfxi_analysis_each_region(g, fix_modes, ctx, err) : status;
}

static cfx_status take_branches(cfx_graph *g, void *resolver, cfx_error *err)
{
    cfxi_resolver *r = resolver;
    do {
        r->spliced = false;
        CFX_TRY(cfxi_pass_resolve(r, g, err));
    } while (r->spliced);
    return cfxi_analysis_each_region(g, take_branches, r, err);
}

/* setattr(module, "training", mode): the module, or NULL if it is something else. */
static cfx_node *set_module(const cfx_node *n)
{
    size_t size = 0;
    cfx_error ignored = {0};
    const char *target = n->op == CFX_OP_CALL_FUNCTION ? cfx_node_target(n, NULL, &ignored) : NULL;
    const cfx_value of = cfx_node_arg(n, 0);
    const cfx_value name = cfx_node_arg(n, 1);
    if (!target || strcmp(target, "builtins.setattr") != 0 || name.kind != CFX_KIND_STR ||
        of.kind != CFX_KIND_NODE || of.as.node->op != CFX_OP_GET_ATTR)
        return NULL;
    const char *text = cfx_value_text(name, &size);
    return size == strlen("training") && memcmp(text, "training", size) == 0 ? of.as.node : NULL;
}

/* One that is left in another mode stays, and is refused with all that has no row. */
static cfx_status drop_settings(const mode_job *job, cfx_graph *g, cfx_error *err)
{
    for (cfx_node *n = cfx_graph_last(g), *before; n; n = before) {
        before = cfx_node_prev(n);
        cfx_node *module = set_module(n);
        const cfx_value wanted = cfx_node_arg(n, 2);
        cfx_value mode = cfx_value_invalid();
        if (module && wanted.kind == CFX_KIND_BOOL) {
            size_t size = 0;
            const char *path = cfx_node_target(module, &size, err);
            CFX_TRY(path ? mode_of(job, g, path, size, &mode, err) : CFX_E_NOMEM);
        }
        if (mode.kind != CFX_KIND_BOOL || mode.as.b != wanted.as.b || n->n_users > 0)
            continue;
        CFX_TRY(cfx_graph_erase(g, n, err));
        if (module->n_users == 0) {
            before = before == module ? cfx_node_prev(module) : before;
            CFX_TRY(cfx_graph_erase(g, module, err));
        }
    }
    return CFX_OK;
}

cfx_status cfxi_lower_modes(cfx_graph *g, const cfx_module_tree *modules, cfx_error *err)
{
    mode_job job = {.modules = modules};
    CFX_TRY(fix_modes(g, &job, err));
    CFX_TRY(drop_settings(&job, g, err));
    if (!job.any)
        return CFX_OK;
    cfxi_effect_model model = {.modules = modules};
    cfxi_resolver resolver = {.model = &model, .truths = cfx_node_map_new(g->allocator, err)};
    if (!resolver.truths)
        return CFX_E_NOMEM;
    const cfx_status status = take_branches(g, &resolver, err);
    cfx_node_map_free(resolver.truths);
    cfxi_analysis_model_end(&model);
    return status;
}
