/* liveness.c - what of a graph and its regions anybody needs.
 *
 * Looking at users alone does not do for regions: a state that feeds only itself has one, and so
 * has a result that is made but not taken. So what is needed is followed from where needs begin,
 * the effects and the output of the graph, through results into regions and through inputs out of
 * them:
 *
 *     an item of a result          that item of the output of each branch, or of the body; of a
 *                                  loop also the state it began with
 *     an input of a region         the operand; of a loop also the result it comes back in
 *     a branch or loop at all      its predicate, its count, its test
 *
 * A loop is assumed to end: one without effects is dead if its result is not used.
 */
#include "liveness_impl.h"

/* ---- what has been found ------------------------------------------------------------------- */

static cfxi_live_control *control_at(const cfxi_live *live, const cfx_node *key)
{
    const cfx_value v = cfx_node_map_get(live->numbers, key);
    return v.kind == CFX_KIND_INT ? (cfxi_live_control *)live->controls.data + v.as.i : NULL;
}

const cfxi_live_control *cfxi_analysis_live_find(const cfxi_live *live, const cfx_node *n)
{
    return live->numbers ? control_at(live, n) : NULL;
}

static bool is_seen(const cfxi_live *live, const cfx_node *n)
{
    return cfx_node_map_get(live->seen, n).kind != CFX_KIND_INVALID;
}

static cfx_status put_off(cfxi_live *live, cfx_node *n, size_t result)
{
    if (!cfxi_base_vec_reserve(&live->todo, 1, sizeof(cfxi_need), live->allocator))
        return cfxi_base_nomem(live->err);
    ((cfxi_need *)live->todo.data)[live->todo.size++] = (cfxi_need){n, result};
    return CFX_OK;
}

static cfx_status need(cfxi_live *live, cfx_node *n)
{
    if (is_seen(live, n))
        return CFX_OK;
    CFX_TRY(cfx_node_map_set(live->seen, n, cfx_value_int(1), live->err));
    return put_off(live, n, SIZE_MAX);
}

static cfx_status need_result(cfxi_live *live, cfxi_live_control *lc, size_t k)
{
    if (lc->results[k])
        return CFX_OK;
    lc->results[k] = true;
    return put_off(live, lc->c.node, k);
}

/* ---- what follows from it ------------------------------------------------------------------ */

static cfx_status need_all(cfxi_live *live, cfxi_live_control *lc)
{
    for (size_t k = 0; k < lc->c.n_results; k++)
        CFX_TRY(need_result(live, lc, k));
    return CFX_OK;
}

/* A node that is read as a whole, not only one of its items. */
static cfx_status need_whole(void *ctx, cfx_node *n)
{
    cfxi_live *live = ctx;
    cfxi_live_control *lc = control_at(live, n);
    if (lc)
        CFX_TRY(need_all(live, lc));
    return need(live, n);
}

static cfx_status need_value(cfxi_live *live, cfx_value v)
{
    return cfx_value_each_node(v, need_whole, live);
}

static cfx_status follow_result(cfxi_live *live, const cfxi_live_control *lc, size_t k)
{
    const bool loop = cfxi_analysis_control_is_loop(&lc->c);
    if (loop)
        CFX_TRY(need_value(live, lc->c.operands[k]));
    for (size_t i = loop ? cfxi_analysis_control_body(&lc->c) : 0; i < lc->c.n_regions; i++)
        CFX_TRY(need_value(live, cfxi_analysis_control_result(&lc->c, i, k)));
    return CFX_OK;
}

static cfx_status need_input(cfxi_live *live, const cfx_node *n)
{
    cfxi_live_control *lc = control_at(live, &n->graph->root);
    if (!lc)
        return CFX_OK;
    const cfx_value at = cfx_node_map_get(live->inputs, n);
    if (at.kind != CFX_KIND_INT)  /* the index of a loop */
        return CFX_OK;
    if (cfxi_analysis_control_is_loop(&lc->c))
        return need_result(live, lc, (size_t)at.as.i);
    return need_value(live, lc->c.operands[at.as.i]);
}

/* A branch or loop is run: what it decides by. */
static cfx_status need_control(cfxi_live *live, const cfxi_live_control *lc)
{
    return need_value(live, lc->c.op == CFX_OPID_while_loop
                                ? cfxi_analysis_control_result(&lc->c, 0, 0)
                                : cfxi_analysis_control_subject(&lc->c));
}

static cfx_status follow(cfxi_live *live, cfx_node *n)
{
    const cfxi_live_control *own = control_at(live, n);
    if (n->op == CFX_OP_PLACEHOLDER)
        return need_input(live, n);
    if (own && own->c.node == n)
        return need_control(live, own);
    cfxi_live_control *of = n->n_inputs == 1 ? control_at(live, n->inputs[0].def) : NULL;
    const size_t k = of ? cfxi_analysis_control_taken(&of->c, n) : SIZE_MAX;
    if (k != SIZE_MAX) {
        CFX_TRY(need_result(live, of, k));
        return need(live, of->c.node);
    }
    CFX_TRY(need_value(live, cfx_node_args(n)));
    return need_value(live, cfx_node_kwargs(n));
}

/* ---- where it begins ----------------------------------------------------------------------- */

static cfx_status add_control(cfxi_live *live, cfx_node *n)
{
    cfxi_live_control lc = {0};
    if (!cfxi_analysis_control_of(n, &lc.c) || !cfxi_analysis_control_is_alone(&lc.c))
        return CFX_OK;
    const cfx_value number = cfx_value_int((int64_t)live->controls.size);
    if (!cfxi_base_vec_reserve(&live->controls, 1, sizeof lc, live->allocator))
        return cfxi_base_nomem(live->err);
    lc.results = cfxi_base_alloc(live->allocator, (lc.c.n_results + 1) * sizeof(bool));
    if (!lc.results)
        return cfxi_base_nomem(live->err);
    memset(lc.results, 0, (lc.c.n_results + 1) * sizeof(bool));
    ((cfxi_live_control *)live->controls.data)[live->controls.size++] = lc;
    CFX_TRY(cfx_node_map_set(live->numbers, n, number, live->err));
    for (size_t i = 0; i < lc.c.n_regions; i++)
        CFX_TRY(cfx_node_map_set(live->numbers, &lc.c.regions[i]->root, number, live->err));
    return cfxi_analysis_control_number_inputs(&lc.c, live->inputs, live->err);
}

typedef struct beginning {
    cfxi_live *live;
    cfxi_live_root_fn *root;
    void *ctx;
} beginning;

/* Nodes with an effect, and the nodes whose regions contain them. */
static cfx_status begin_at(const beginning *b, cfx_node *n)
{
    bool root = false;
    const bool end = n->graph->parent && (n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT);
    if (end && control_at(b->live, &n->graph->root))
        return CFX_OK;
    if (!end)
        CFX_TRY(b->root(b->ctx, n, &root, b->live->err));
    if (!root && !end)
        return CFX_OK;
    CFX_TRY(need(b->live, n));
    const cfxi_live_control *lc = control_at(b->live, &n->graph->root);
    return lc ? need(b->live, lc->c.node) : CFX_OK;
}

static cfx_status look_at(cfx_graph *g, void *ctx, cfx_error *err)
{
    const beginning *b = ctx;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next)
        CFX_TRY(add_control(b->live, n));
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next)
        CFX_TRY(begin_at(b, n));
    return cfxi_analysis_each_region(g, look_at, ctx, err);
}

cfx_status cfxi_analysis_live_begin(cfxi_live *live, cfx_graph *g, cfxi_live_root_fn *root,
                                    void *ctx, cfx_error *err)
{
    *live = (cfxi_live){.allocator = g->allocator, .err = err};
    beginning b = {live, root, ctx};
    live->seen = cfx_node_map_new(g->allocator, err);
    live->numbers = live->seen ? cfx_node_map_new(g->allocator, err) : NULL;
    live->inputs = live->numbers ? cfx_node_map_new(g->allocator, err) : NULL;
    if (!live->inputs)
        return CFX_E_NOMEM;
    cfxi_ir_graph_freeze(g);  /* the host may run any code */
    cfx_status status = look_at(g, &b, err);
    cfxi_ir_graph_thaw(g);
    CFX_TRY(status);
    while (live->todo.size > 0) {
        const cfxi_need next = ((cfxi_need *)live->todo.data)[--live->todo.size];
        CFX_TRY(next.result == SIZE_MAX
                    ? follow(live, next.node)
                    : follow_result(live, control_at(live, next.node), next.result));
    }
    return CFX_OK;
}

void cfxi_analysis_live_end(cfxi_live *live)
{
    cfxi_live_control *all = live->controls.data;
    for (size_t i = 0; i < live->controls.size; i++)
        cfxi_base_free(live->allocator, all[i].results, (all[i].c.n_results + 1) * sizeof(bool));
    cfxi_base_vec_free(&live->controls, sizeof *all, live->allocator);
    cfxi_base_vec_free(&live->todo, sizeof(cfxi_need), live->allocator);
    cfx_node_map_free(live->seen);
    cfx_node_map_free(live->numbers);
    cfx_node_map_free(live->inputs);
}
