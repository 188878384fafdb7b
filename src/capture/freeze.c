/* freeze.c - simplifies a lowered graph whose weights are constants, and compiles it.
 *
 * Passes want modules, but a lowered graph has only the tensors that it reads: they become the
 * attributes of a module of their own, to which constants that were computed are added.
 */
#include "capture_impl.h"

#include <cfx/embed/copy.h>
#include <cfx/embed/pass.h>
#include <cfx/freeze.h>

/* A graph that is being simplified. */
typedef struct freezing {
    const cfx_allocator *allocator;
    const cfx_library *library;
    cfx_graph *graph;    /* a copy */
    cfx_module *root;
    cfx_state *state;    /* what the copy reads in the end */
} freezing;

/* What is returned belongs to the caller, who may write to one result and not to another. */
static int is_returned(void *ctx, cfx_node *n)
{
    (void)ctx;
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (cfx_node_op(cfx_use_user(use)) == CFX_OP_OUTPUT)
            return 1;
    return 0;
}

/* The passes, in order. What is quantized has to be seen before its weights are folded. Calls that
 * nothing is known about stay where they are. */
static cfx_status run_passes(cfx_graph *g, const cfx_module_tree *modules, cfx_error *err)
{
    static const cfx_const_fold_options fold = {.strict = true};
    static const cfx_collapse_reshapes_options collapse = {.strict = true};
    static const cfx_cse_options cse = {.keep = is_returned, .strict = true};
    static const cfx_dce_options dce = {.strict = true};
    static const struct { const char *name; const void *options; } passes[] = {
        {"remove_dropout", NULL}, {"integers", NULL}, {"const_fold", &fold},
        {"collapse_reshapes", &collapse}, {"cse", &cse}, {"dce", &dce},
    };
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        CFX_TRY(cfx_pass_run(cfx_pass_find(passes[i].name), g, modules, passes[i].options, NULL,
                             err));
    return CFX_OK;
}

/* A copy that can hold tensors, whatever language `g` belongs to. */
static cfx_status copy_graph(freezing *f, cfx_graph *g, cfx_error *err)
{
    cfx_value result = cfx_value_invalid();
    cfx_node *output = NULL;
    f->graph = cfx_graph_new(f->allocator, &cfxi_capture_object_host, err);
    cfx_node_map *map = f->graph ? cfx_node_map_new(f->allocator, err) : NULL;
    cfx_status status =
        map ? cfx_graph_copy_from(f->graph, g, map, &result, &output, err) : CFX_E_NOMEM;
    if (status == CFX_OK && output && !cfx_graph_output(f->graph, result, err)) {
        cfx_value_discard(f->graph, result);
        status = CFX_E_NOMEM;
    }
    cfx_node_map_free(map);
    return status;
}

static cfx_status make_module(freezing *f, const cfx_state *state, cfx_error *err)
{
    const char *name;
    cfx_tensor *t;
    f->root = cfxi_capture_module_make(f->allocator, err);
    if (!f->root)
        return CFX_E_NOMEM;
    f->root->training = false;
    const cfx_module_tree tree = cfx_module_as_tree(f->root);
    for (size_t i = 0; state && (name = cfx_state_entry(state, i, &t)) != NULL; i++) {
        const cfx_value v = cfxi_capture_value_from_datum(f->graph, cfx_datum_tensor(t), err);
        if (v.kind == CFX_KIND_INVALID)
            return CFX_E_NOMEM;
        const cfx_status status = tree.set(tree.ctx, f->graph, name, v, err);
        cfx_value_discard(f->graph, v);
        CFX_TRY(status);
    }
    return CFX_OK;
}

static cfx_status simplify(freezing *f, cfx_graph *g, const cfx_state *state, cfx_error *err)
{
    CFX_TRY(copy_graph(f, g, err));
    CFX_TRY(make_module(f, state, err));
    cfx_module_tree tree = cfx_module_as_tree(f->root);
    tree.library = f->library;
    CFX_TRY(run_passes(f->graph, &tree, err));
    f->state = cfxi_capture_state_read(f->graph, f->root, err);
    return f->state ? CFX_OK : CFX_E_NOMEM;
}

cfx_program *cfx_program_freeze(cfx_graph *g, const cfx_state *state,
                                const cfx_program_options *options,
                                const cfx_compile_options *compile, cfx_error *err)
{
    cfx_error own;
    cfx_error why = {0};
    err = cfxi_base_error_or(err, &own);
    if (cfxi_base_expect(g, "graph", err) != CFX_OK)
        return NULL;
    freezing f = {.allocator = options ? options->allocator : NULL,
                  .library = options ? options->library : NULL};
    cfx_program *p = NULL;
    f.allocator = cfxi_base_allocator(f.allocator);
    if (simplify(&f, g, state, &why) == CFX_OK)
        p = cfx_program_new(f.graph, f.state, options, &why);
    if (!p && why.status == CFX_E_NOMEM)
        cfxi_base_nomem(err);
    else if (!p)
        p = cfx_program_new(g, state, options, err);
    cfx_state_free(f.state);
    cfx_graph_release(f.graph);
    cfx_module_release(f.root);
    if (p && cfx_program_compile(p, compile, err) == CFX_OK)
        return p;
    cfx_program_free(p);
    return NULL;
}
