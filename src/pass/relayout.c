/* relayout.c - lets stretches of a graph compute in another memory layout.
 *
 *     before                                     after, if conv and relu support the layout
 *     %x = placeholder[target=x]()               %x = placeholder[target=x]()
 *     %c = call_module[target=conv](%x)          %e = call_method[target=to_mkldnn](%x)
 *     %r = call_function[target=torch.relu](%c)  %c = call_module[target=conv](%e)
 *     %t = call_function[target=torch.tanh](%r)  %r = call_function[target=torch.relu](%c)
 *     output(%t)                                 %l = call_method[target=to_dense](%r)
 *                                                %t = call_function[target=torch.tanh](%l)
 *                                                output(%t)
 *
 * Needs: somebody who knows which nodes support the layout. Regions are left alone.
 * Keeps: names, order and locations of all other nodes.
 *
 * Conversions stand only where a value comes into a part or leaves it. Parts are what hangs
 * together by values, or by calls of the same module, since that can have one layout only: found by
 * joining sets. A part that is not chosen loses its conversions again. As good as linear in nodes
 * and edges, but for nodes with many arguments that cross: each takes time for all of them.
 */
#include "analysis/analysis_impl.h"

#include <cfx/embed/pass.h>
#include <cfx/pass.h>

enum { NODES, STARTS, ENDS, KINDS };

/* A node, by its place in the graph, or a conversion. */
typedef struct entry {
    cfx_node *node;
    int support;                   /* what is known of it */
    struct entry *set;             /* towards the entry that stands for the part; NULL: in none */
    struct entry *next;            /* of its kind in the part */
    cfx_node *converted;           /* its value for users outside, once there are any */
    struct entry *first[KINDS];    /* of the part, if it stands for one */
    struct entry **last[KINDS];
} entry;

/* A value that is used on the other side. */
typedef struct crossing {
    entry *def, *user;
} crossing;

typedef struct layout_job {
    const cfx_relayout_options *how;
    cfx_graph *g;
    entry *entries;
    size_t n;
    uint32_t stamp;      /* nodes are numbered by their marks */
    cfxi_vec crossings;  /* of crossing */
    cfxi_vec made;       /* of entry *: conversions */
    bool changed;
    cfx_error *err;
} layout_job;

static entry *entry_of(const layout_job *job, const cfx_node *n)
{
    return &job->entries[n->mark - job->stamp];
}

/* ---- parts --------------------------------------------------------------------------------- */

static entry *root_of(entry *e)
{
    while (e->set != e) {
        e->set = e->set->set;
        e = e->set;
    }
    return e;
}

/* The earlier one stands for both. */
static void join(entry *a, entry *b)
{
    a = root_of(a);
    b = root_of(b);
    if (a < b)
        b->set = a;
    else
        a->set = b;
}

static void join_inputs(const layout_job *job, entry *e)
{
    for (uint32_t i = 0; i < e->node->n_inputs; i++) {
        entry *input = entry_of(job, e->node->inputs[i].def);
        if (input->set)
            join(input, e);
    }
    if (e->node->op == CFX_OP_CALL_MODULE && e->node->same_next != e->node) {
        entry *same = entry_of(job, e->node->same_next);
        if (same->set)
            join(same, e);
    }
}

static bool has_input_inside(const layout_job *job, const cfx_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (entry_of(job, n->inputs[i].def)->set)
            return true;
    return false;
}

/* The host may run any code, so the graph is frozen meanwhile. */
static cfx_status ask_all(layout_job *job)
{
    cfx_status status = CFX_OK;
    entry *e = job->entries;
    cfxi_ir_graph_freeze(job->g);
    for (cfx_node *n = job->g->root.next; n != &job->g->root && status == CFX_OK; n = n->next) {
        *e = (entry){.node = n};
        if (cfxi_ir_is_call(n))
            e->support = job->how->supports(job->how->ctx, n);
        if (e++->support < 0)
            status = cfx_error_set(job->err, CFX_E_HOST, "could not tell whether node %%%s "
                                   "supports the layout", n->name->data);
    }
    cfxi_ir_graph_thaw(job->g);
    return status;
}

static void find_parts(layout_job *job)
{
    job->stamp = cfxi_ir_graph_number(job->g);
    for (size_t i = 0; i < job->n; i++) {
        entry *e = &job->entries[i];
        if (e->support == 1 || (e->support > 1 && has_input_inside(job, e->node)))
            e->set = e;
    }
    for (size_t i = 0; i < job->n; i++)
        if (job->entries[i].set)
            join_inputs(job, &job->entries[i]);
}

static void add_to_part(entry *part, entry *e, int kind)
{
    *part->last[kind] = e;
    part->last[kind] = &e->next;
}

static void list_nodes(layout_job *job)
{
    for (size_t i = 0; i < job->n; i++)
        for (int k = 0; k < KINDS; k++)
            job->entries[i].last[k] = &job->entries[i].first[k];
    for (size_t i = 0; i < job->n; i++)
        if (job->entries[i].set)
            add_to_part(root_of(&job->entries[i]), &job->entries[i], NODES);
}

/* ---- conversions --------------------------------------------------------------------------- */

/* A conversion of `n`, before or directly after `at`. */
static cfx_node *convert(layout_job *job, entry *part, int kind, cfx_node *n, cfx_insert_point at)
{
    const char *method = kind == STARTS ? job->how->enter : job->how->leave;
    const cfx_value arg = cfx_value_node(n);
    entry *e = cfxi_base_vec_reserve(&job->made, 1, sizeof e, job->g->allocator)
                   ? cfxi_base_alloc(job->g->allocator, sizeof *e) : NULL;
    if (!e) {
        cfxi_base_nomem(job->err);
        return NULL;
    }
    *e = (entry){0};
    ((entry **)job->made.data)[job->made.size++] = e;
    if (cfx_graph_set_insert_point(job->g, at, job->err) != CFX_OK)
        return NULL;
    e->node = cfx_graph_call(job->g, CFX_OP_CALL_METHOD, method, &arg, 1, NULL, 0, job->err);
    if (!e->node)
        return NULL;
    cfxi_analysis_place_like(e->node, at.node);
    add_to_part(part, e, kind);
    return e->node;
}

/* Notes where values come into the parts or leave them: edits use the marks of nodes, too. */
static cfx_status find_crossings(layout_job *job, int kind)
{
    for (size_t i = 0; i < job->n; i++) {
        const cfx_node *user = job->entries[i].node;
        if ((job->entries[i].set != NULL) != (kind == STARTS))
            continue;
        for (uint32_t k = 0; k < user->n_inputs; k++) {
            cfx_node *def = user->inputs[k].def;
            entry *e = entry_of(job, def);
            if ((e->set != NULL) == (kind == STARTS))
                continue;
            if (!cfxi_base_vec_reserve(&job->crossings, 1, sizeof(crossing), job->g->allocator))
                return cfxi_base_nomem(job->err);
            ((crossing *)job->crossings.data)[job->crossings.size++] =
                (crossing){e, &job->entries[i]};
        }
    }
    return CFX_OK;
}

/* What comes in is converted for each user; what leaves, once. */
static cfx_status cross(layout_job *job, const crossing *c)
{
    const bool enters = c->user->set != NULL;
    cfx_node *def = c->def->node;
    cfx_node *user = c->user->node;
    cfx_node *made = c->def->converted;
    if (enters)
        made = convert(job, root_of(c->user), STARTS, def, (cfx_insert_point){user, false});
    else if (!made)
        made = convert(job, root_of(c->def), ENDS, def, (cfx_insert_point){def, true});
    if (!made)
        return job->err->status;
    if (!enters)
        c->def->converted = made;
    return cfx_node_replace_input(user, def, cfx_value_node(made), job->err);
}

static cfx_status undo(layout_job *job, entry *const first[KINDS])
{
    for (int kind = STARTS; kind < KINDS; kind++)
        for (const entry *e = first[kind]; e; e = e->next) {
            cfx_value input = cfx_node_arg(e->node, 0);
            CFX_TRY(cfx_node_replace_uses(e->node, input, NULL, NULL, NULL, job->err));
            CFX_TRY(cfx_graph_erase(job->g, e->node, job->err));
        }
    return CFX_OK;
}

/* ---- choosing ------------------------------------------------------------------------------ */

static size_t count(const entry *e)
{
    size_t n = 0;
    for (; e; e = e->next)
        n++;
    return n;
}

/* 1 the part is chosen, 0 not, -1 failed. */
static int ask(layout_job *job, entry *const first[KINDS])
{
    size_t n[KINDS];
    size_t all = 0;
    for (int k = 0; k < KINDS; k++)
        all += n[k] = count(first[k]);
    cfx_node **nodes = cfxi_base_alloc(job->g->allocator, all * sizeof *nodes);
    cfx_node **at = nodes;
    if (!nodes) {
        cfxi_base_nomem(job->err);
        return -1;
    }
    for (int k = 0; k < KINDS; k++)
        for (const entry *e = first[k]; e; e = e->next)
            *at++ = e->node;
    const cfx_layout_part part = {nodes, nodes + n[NODES], nodes + n[NODES] + n[STARTS],
                                  n[NODES], n[STARTS], n[ENDS]};
    cfxi_ir_graph_freeze(job->g);
    int answer = job->how->choose(job->how->ctx, &part);
    cfxi_ir_graph_thaw(job->g);
    cfxi_base_free(job->g->allocator, nodes, all * sizeof *nodes);
    if (answer < 0)
        cfx_error_set(job->err, CFX_E_HOST, "could not tell whether to convert a part");
    return answer;
}

static cfx_status choose(layout_job *job)
{
    for (size_t i = 0; i < job->n; i++) {
        entry *e = &job->entries[i];
        if (!e->set || root_of(e) != e)
            continue;
        int answer = ask(job, e->first);
        job->changed = job->changed || answer > 0;
        if (answer <= 0)
            CFX_TRY(undo(job, e->first));
        if (answer < 0)
            return job->err->status;
    }
    return CFX_OK;
}

static cfx_status convert_parts(layout_job *job)
{
    CFX_TRY(ask_all(job));
    find_parts(job);
    list_nodes(job);
    CFX_TRY(find_crossings(job, STARTS));
    CFX_TRY(find_crossings(job, ENDS));
    for (size_t i = 0; i < job->crossings.size; i++)
        CFX_TRY(cross(job, &((crossing *)job->crossings.data)[i]));
    return choose(job);
}

cfx_status cfx_graph_relayout(cfx_graph *g, const cfx_relayout_options *how, bool *changed,
                              cfx_error *err)
{
    cfx_error own;
    layout_job job = {.how = how, .g = g, .n = g->size, .err = cfxi_base_error_or(err, &own)};
    const size_t bytes = job.n * sizeof *job.entries;
    const cfx_insert_point old = cfx_graph_insert_point(g);
    job.entries = job.n ? cfxi_base_alloc(g->allocator, bytes) : NULL;
    if (job.n && !job.entries)
        return cfxi_base_nomem(err);
    cfx_iter pin;
    cfx_iter_begin(&pin, g, false);
    cfx_status status = convert_parts(&job);
    cfx_graph_set_insert_point(g, old, NULL);
    cfx_iter_end(&pin);
    for (size_t i = 0; i < job.made.size; i++)
        cfxi_base_free(g->allocator, ((entry **)job.made.data)[i], sizeof(entry));
    cfxi_base_vec_free(&job.made, sizeof(entry *), g->allocator);
    cfxi_base_vec_free(&job.crossings, sizeof(crossing), g->allocator);
    cfxi_base_free(g->allocator, job.entries, bytes);
    if (changed)
        *changed = job.changed;
    return status;
}
