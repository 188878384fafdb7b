/* memory.c - what a call reads and writes, as channels (alias_impl.h). */
#include "alias_impl.h"

typedef struct channel_job {
    const cfxi_aliases *a;
    cfxi_channel_fn *fn;
    void *ctx;
} channel_job;

static bool tell(const channel_job *job, cfxi_channel channel, bool writes)
{
    return job->fn(job->ctx, (uint32_t)job->a->n + channel, writes);
}

static uint32_t channel_of(const cfxi_aliases *a, const cfx_node *n)
{
    return (uint32_t)(cfxi_analysis_alias_set(a, n) - a->sets);
}

/* ---- one value ------------------------------------------------------------------------------ */

/* All that is outside. */
static bool tell_outside(const channel_job *job, bool writes)
{
    return tell(job, CFXI_CHANNEL_FOREIGN, writes) && tell(job, CFXI_CHANNEL_ATTRIBUTES, writes) &&
           tell(job, CFXI_CHANNEL_STATISTICS, writes) &&
           (!writes || tell(job, CFXI_CHANNEL_ANY, true));
}

/* An attribute is read by modules, too, and may be what an input is. */
static bool tell_attribute(const channel_job *job, bool writes)
{
    if (!writes)
        return tell(job, CFXI_CHANNEL_ANY, false);
    return tell(job, CFXI_CHANNEL_ATTRIBUTES, true) && tell(job, CFXI_CHANNEL_STATISTICS, true) &&
           tell(job, CFXI_CHANNEL_FOREIGN, true);
}

static bool tell_value(const channel_job *job, const cfx_node *n, bool writes)
{
    const cfxi_alias *set = cfxi_analysis_alias_set(job->a, n);
    if (!job->fn(job->ctx, channel_of(job->a, n), writes))
        return false;
    if (set->outside & CFXI_OUTSIDE_FOREIGN)
        return writes ? tell_outside(job, true) : tell(job, CFXI_CHANNEL_FOREIGN, false);
    return !set->outside || tell_attribute(job, writes);
}

static cfx_status tell_touch(void *ctx, cfx_node *input, unsigned touch)
{
    return tell_value(ctx, input, touch & CFX_TOUCH_WRITES) ? CFX_OK : CFX_E_VALUE;
}

/* ---- modules -------------------------------------------------------------------------------- */

/* A tensor that a module writes to: the set of the nodes that read it, if any do. */
static bool tell_state(const channel_job *job, const void *memory)
{
    cfx_node **reader =
        memory ? cfxi_base_map_find(&job->a->memories, memory, sizeof *reader) : NULL;
    return !reader || job->fn(job->ctx, channel_of(job->a, *reader), true);
}

static bool tell_module(const channel_job *job, const cfxi_module_facts *facts, unsigned does)
{
    const bool writes = does & CFXI_WRITES_STATE;
    if (facts->does & CFXI_UNKNOWN)
        return tell_outside(job, writes);
    if (!tell(job, CFXI_CHANNEL_ATTRIBUTES, false))
        return false;
    if (facts->statistics && !tell(job, CFXI_CHANNEL_STATISTICS, writes))
        return false;
    if (!writes)
        return true;
    if (facts->state_unnamed || !facts->statistics)
        return tell_outside(job, true);
    for (size_t i = 0; i < facts->memories.size; i++)
        if (!tell_state(job, ((const void **)facts->memories.data)[i]))
            return false;
    return tell(job, CFXI_CHANNEL_FOREIGN, true);
}

static bool tell_call_module(const channel_job *job, const cfx_node *n, unsigned does)
{
    const cfxi_module_facts *facts;
    cfxi_effect_model *m = job->a->model;
    if (!cfxi_analysis_modules_or_null(m->modules) ||
        cfxi_analysis_module_facts(m, n->graph, n->callee->ref->name->data, &facts, NULL) != CFX_OK)
        return tell_outside(job, does & CFXI_WRITES_ANY);
    return tell_module(job, facts, does);
}

/* ---- calls ---------------------------------------------------------------------------------- */

bool cfxi_analysis_each_channel(const cfxi_aliases *a, cfx_node *n, unsigned does,
                                cfxi_channel_fn *fn, void *ctx)
{
    channel_job job = {a, fn, ctx};
    const cfx_library *library = cfxi_analysis_model_library(a->model);
    cfx_operator op = CFX_OPID_NONE;
    if (n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_GET_ATTR || n->op == CFX_OP_OUTPUT)
        return true;
    (void)cfxi_analysis_model_operator(a->model, n, &op, NULL);
    if (cfxi_analysis_node_touches(n, op, library, does, tell_touch, &job) != CFX_OK)
        return false;
    if ((does & CFXI_DRAWS) && !tell(&job, CFXI_CHANNEL_RANDOM, true))
        return false;
    if (n->op == CFX_OP_CALL_MODULE && !tell_call_module(&job, n, does))
        return false;
    if (!cfxi_analysis_is_opaque(n, op, library, does))
        return true;
    const bool writes = does & (CFXI_WRITES_ALL | CFXI_WRITES_ARGUMENTS);
    return tell_outside(&job, writes) &&
           (!(does & CFXI_WRITES_ALL) || tell(&job, CFXI_CHANNEL_RANDOM, true));
}

/* ---- what is written to --------------------------------------------------------------------- */

bool cfxi_analysis_is_disturbed(const cfxi_aliases *a, const cfx_node *n, const bool *written)
{
    const cfxi_alias *set = cfxi_analysis_alias_set(a, n);
    if (written[set - a->sets])
        return true;
    if (set->outside & CFXI_OUTSIDE_FOREIGN)
        return written[a->n + CFXI_CHANNEL_FOREIGN];
    return set->outside && written[a->n + CFXI_CHANNEL_ANY];
}

static bool note_write(void *ctx, uint32_t channel, bool writes)
{
    bool *written = ctx;
    written[channel] = written[channel] || writes;
    return true;
}

static cfx_status note_all(cfxi_aliases *a, bool *written, cfx_error *err)
{
    cfx_graph *g = a->graph;
    bool any = false;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        unsigned does;
        CFX_TRY(cfxi_analysis_does(a->model, n, &does, err));
        any = any || (does & CFXI_WRITES_ANY);
        if (does & CFXI_WRITES_ANY)
            cfxi_analysis_each_channel(a, n, does, note_write, written);
    }
    for (cfx_node *n = g->root.next; any && n != &g->root; n = n->next)
        if (cfxi_analysis_is_disturbed(a, n, written))
            cfxi_analysis_alias_set(a, n)->written = true;
    return CFX_OK;
}

cfx_status cfxi_analysis_aliases_note_writes(cfxi_aliases *a, cfx_error *err)
{
    const size_t size = a->n + CFXI_CHANNEL_COUNT;
    CFX_TRY(cfxi_analysis_alias_join_all(a, err));
    bool *written = cfxi_base_alloc(a->graph->allocator, size);
    if (!written)
        return cfxi_base_nomem(err);
    memset(written, 0, size);
    cfx_status status = note_all(a, written, err);
    cfxi_base_free(a->graph->allocator, written, size);
    return status;
}

/* ---- captured modules ------------------------------------------------------------------------ */

/* What the functions of the graph write to that is outside of it. */
static cfx_status captured_does(cfxi_aliases *a, unsigned *does, cfx_error *err)
{
    cfx_graph *g = a->graph;
    const size_t size = a->n + CFXI_CHANNEL_COUNT;
    CFX_TRY(cfxi_analysis_alias_join_all(a, err));
    bool *written = cfxi_base_alloc(g->allocator, size);
    if (!written)
        return cfxi_base_nomem(err);
    memset(written, 0, size);
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        unsigned one = 0;
        if (n->op != CFX_OP_CALL_MODULE && cfxi_analysis_does(a->model, n, &one, NULL) == CFX_OK &&
            (one & CFXI_WRITES_ANY))
            cfxi_analysis_each_channel(a, n, one, note_write, written);
    }
    if (written[a->n + CFXI_CHANNEL_FOREIGN])
        *does |= CFXI_WRITES_ALL;
    cfxi_base_free(g->allocator, written, size);
    return CFX_OK;
}

enum { MOST_DEPTH = 8 };  /* of captured modules in captured modules */

cfx_status cfxi_analysis_graph_does(const cfxi_effect_model *outer, cfx_graph *g, const char *path,
                                    unsigned *does, cfx_error *err)
{
    cfxi_effect_model m = {.modules = outer->modules, .strict = outer->strict, .prefix = path,
                           .depth = outer->depth + 1};
    cfx_status status = CFX_OK;
    unsigned all = 0;
    *does = CFXI_UNKNOWN;
    if (m.depth > MOST_DEPTH)
        return CFX_OK;
    for (cfx_node *n = g->root.next; status == CFX_OK && n != &g->root; n = n->next) {
        unsigned one = 0;
        if (n->op == CFX_OP_CALL_FUNCTION || n->op == CFX_OP_CALL_METHOD)
            status = cfxi_analysis_does(&m, n, &one, err);
        all |= one;
    }
    *does = all & (CFXI_DRAWS | CFXI_REPORTS | CFXI_WRITES_ALL | CFXI_UNKNOWN);
    if (status == CFX_OK && (all & CFXI_WRITES_ARGUMENTS)) {
        cfxi_aliases a;
        status = cfxi_analysis_aliases_begin(&a, g, &m, CFXI_USES_ALL, err);
        if (status == CFX_OK)
            status = captured_does(&a, does, err);
        cfxi_analysis_aliases_end(&a);
    }
    cfxi_analysis_model_end(&m);
    return status;
}
