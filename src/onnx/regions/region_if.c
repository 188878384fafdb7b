/* region_if.c - If: two graphs become the branches of a cond, or one of them is there at once. */
#include "regions_impl.h"

typedef struct branches {
    cfxi_import_call *c;
    cfxi_outer captured;
    const cfxi_onnx_graph *graphs[2];  /* otherwise, then */
} branches;

static cfx_var run_branch(cfx_scope *s, branches *b, const cfxi_onnx_graph *g, const cfx_var *in)
{
    cfxi_import *m = b->c->import;
    cfxi_import_frame passed = cfxi_import_region_frame(b->c, b->c->frame, g);
    cfxi_import_frame f = cfxi_import_region_frame(b->c, &passed, g);
    cfx_var result = cfx_var_empty();
    cfx_var *vars = cfxi_import_room(b->c, g->outputs.n);
    const bool bound = vars && cfxi_import_outer_bind(&b->captured, &passed, in);
    const cfxi_imported **out = bound ? cfxi_import_region_run(m, &f, g) : NULL;
    for (size_t i = 0; out && i < g->outputs.n; i++)
        vars[i] = cfxi_import_var(m, (cfxi_imported *)out[i]);
    if (out && cfx_scope_ok(s))
        result = g->outputs.n == 1 ? vars[0] : cfxi_import_tuple(s, vars, g->outputs.n);
    cfxi_import_frame_free(m, &f);
    cfxi_import_frame_free(m, &passed);
    return result;
}

static cfx_var run_then(cfx_scope *s, void *ctx, const cfx_var *in)
{
    return run_branch(s, ctx, ((branches *)ctx)->graphs[1], in);
}

static cfx_var run_otherwise(cfx_scope *s, void *ctx, const cfx_var *in)
{
    return run_branch(s, ctx, ((branches *)ctx)->graphs[0], in);
}

/* The branch that is always taken, in the place of the node. */
static void inline_branch(cfxi_import_call *c, const cfxi_onnx_graph *g)
{
    cfxi_import_frame f = cfxi_import_region_frame(c, c->frame, g);
    const cfxi_imported **out = cfxi_import_region_run(c->import, &f, g);
    for (size_t i = 0; out && i < c->node->outputs.n; i++) {
        const cfxi_imported own = c->outputs[i];
        if (i >= g->outputs.n)
            break;
        c->outputs[i] = *out[i];
        c->outputs[i].name = own.name;
        c->outputs[i].hash = own.hash;
    }
    cfxi_import_frame_free(c->import, &f);
}

/* Sets the outputs of a node that gives one value, or a tuple of several. */
static void spread(cfxi_import_call *c, cfx_var result, size_t n)
{
    for (size_t i = 0; i < n && i < c->node->outputs.n; i++)
        cfxi_import_set(c, i, n == 1 ? result : cfx_getitem(c->scope, result, i));
}

cfx_var cfxi_import_if_else(cfxi_import_call *c)
{
    if (cfxi_import_later(c))
        return cfx_var_empty();
    branches b = {.c = c, .captured = {.m = c->import, .outer = c->frame}};
    b.graphs[0] = cfxi_import_region_of(c, "else_branch");
    b.graphs[1] = cfxi_import_region_of(c, "then_branch");
    if (!b.graphs[0] || !b.graphs[1])
        return cfx_var_empty();
    const cfx_tensor *known = cfxi_import_known(c, 0);
    if (known && cfx_tensor_numel(known) == 1) {
        inline_branch(c, b.graphs[*(const char *)cfx_tensor_data(known) != 0]);
        return cfx_var_empty();
    }
    if (!cfxi_import_outer_use(&b.captured, b.graphs[0]) ||
        !cfxi_import_outer_use(&b.captured, b.graphs[1]))
        cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    const cfx_at at = {.scope = c->scope};
    const cfx_var result = cfx_if_at(at, cfxi_import_in(c, 0), run_then, run_otherwise, &b,
                                     cfx_vars_make(b.captured.vars.data, b.captured.vars.size));
    spread(c, result, b.graphs[1]->outputs.n);
    cfxi_import_outer_free(&b.captured);
    return cfx_var_empty();
}
