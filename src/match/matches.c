/* matches.c - searching graphs for patterns: the candidates for each anchor, and the result. */
#include "match_impl.h"

#include <stdlib.h>

/* ---- the result ---------------------------------------------------------------------------- */

size_t cfx_matches_size(const cfx_matches *matches) { return matches ? matches->items.size : 0; }

const cfx_match *cfx_matches_get(const cfx_matches *matches, size_t i)
{
    return i < matches->items.size ? &((cfx_match *)matches->items.data)[i] : NULL;
}

size_t cfxi_match_steps(const cfx_matches *matches) { return matches->steps; }

void cfx_matches_keep(cfx_matches *matches, const bool *keep)
{
    cfx_match *items = matches->items.data;
    size_t kept = 0;
    for (size_t i = 0; i < matches->items.size; i++)
        if (keep[i])
            items[kept++] = items[i];
    matches->items.size = kept;
}

static void release_held(cfxi_vec *held, size_t from)
{
    while (held->size > from) {
        cfxi_held *last = &((cfxi_held *)held->data)[--held->size];
        cfx_value_release(last->graph, last->value);
    }
}

void cfx_matches_free(cfx_matches *matches)
{
    if (!matches)
        return;
    const cfx_allocator *allocator = matches->allocator;
    release_held(&matches->held, 0);
    for (size_t i = 0; i < matches->searched.size; i++) {
        cfxi_searched *one = &((cfxi_searched *)matches->searched.data)[i];
        cfx_iter_end(&one->pin);
        cfx_graph_release(one->graph);
    }
    cfxi_base_vec_free(&matches->items, sizeof(cfx_match), allocator);
    cfxi_base_vec_free(&matches->searched, sizeof(cfxi_searched), allocator);
    cfxi_base_vec_free(&matches->held, sizeof(cfxi_held), allocator);
    cfx_node_map_free(matches->used);
    cfxi_base_arena_release(&matches->arena);
    cfxi_base_free(allocator, matches, sizeof *matches);
}

static cfx_matches *new_matches(const cfx_allocator *allocator, const cfx_match_options *opts,
                                cfx_error *err)
{
    cfx_matches *matches = cfxi_base_alloc(allocator, sizeof *matches);
    if (!matches) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *matches = (cfx_matches){.allocator = allocator};
    if (opts)
        matches->opts = *opts;
    cfxi_base_arena_init(&matches->arena, allocator);
    matches->used = cfx_node_map_new(allocator, err);
    if (matches->used)
        return matches;
    cfx_matches_free(matches);
    return NULL;
}

/* ---- adding a match ------------------------------------------------------------------------ */

/* Values that are no nodes are held: whose arguments they are may be erased. */
static cfx_status copy_bindings(cfxi_search *s, cfx_match_binding *bound)
{
    cfx_matches *m = s->result;
    for (size_t i = 0; i < s->trail.size; i++) {
        size_t place = ((size_t *)s->trail.data)[i];
        cfx_value v = s->bound[place];
        bound[i] = (cfx_match_binding){s->pattern->nodes[place], v};
        if (v.kind != CFX_KIND_NODE)
            ((cfxi_held *)m->held.data)[m->held.size++] =
                (cfxi_held){s->graph, cfx_value_retain(v)};
        else if (!s->opts->overlaps && !cfxi_match_is_input(s->pattern, place))
            CFX_TRY(cfx_node_map_set(m->used, v.as.node, cfx_value_int((int64_t)m->items.size),
                                     s->err));
    }
    return CFX_OK;
}

static cfx_status copy_inputs(cfxi_search *s, cfx_value *inputs)
{
    const cfxi_pattern *p = s->pattern;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (!cfxi_match_is_input(p, i))
            continue;
        if (s->bound[i].kind == CFX_KIND_INVALID)
            return cfx_error_set(s->err, CFX_E_KEY, "placeholder %%%s of the pattern is never "
                                 "used, so it matches nothing; use it or remove it",
                                 p->nodes[i]->name->data);
        inputs[n++] = s->bound[i];
    }
    return CFX_OK;
}

static cfx_status add_match(cfxi_search *s)
{
    cfx_matches *m = s->result;
    const cfxi_pattern *p = s->pattern;
    cfx_match_binding *bound =
        cfxi_base_arena_alloc(&m->arena, (s->trail.size + 1) * sizeof *bound);
    cfx_value *inputs = cfxi_base_arena_alloc(&m->arena, (p->n_inputs + 1) * sizeof *inputs);
    cfx_value *outputs = cfxi_base_arena_alloc(&m->arena, (p->n_outputs + 1) * sizeof *outputs);
    if (!bound || !inputs || !outputs ||
        !cfxi_base_vec_reserve(&m->items, 1, sizeof(cfx_match), m->allocator) ||
        !cfxi_base_vec_reserve(&m->held, s->trail.size, sizeof(cfxi_held), m->allocator))
        return cfxi_base_nomem(s->err);
    CFX_TRY(copy_inputs(s, inputs));
    CFX_TRY(copy_bindings(s, bound));
    for (size_t i = 0; i < p->n_outputs; i++)
        outputs[i] = s->bound[cfxi_match_pattern_place(p, p->outputs[i])];
    ((cfx_match *)m->items.data)[m->items.size++] =
        (cfx_match){.pattern = p->number, .graph = s->graph, .bound = bound,
                    .n_bound = s->trail.size, .inputs = inputs, .n_inputs = p->n_inputs,
                    .outputs = outputs, .n_outputs = p->n_outputs};
    return CFX_OK;
}

/* ---- candidates ---------------------------------------------------------------------------- */

typedef struct level {
    cfxi_vec nodes;  /* of cfx_node *: in the order of the graph */
    size_t next;
    size_t trail;    /* so much was bound before */
    size_t held;
} level;

static cfx_node *node_at(const cfxi_vec *nodes, size_t i) { return ((cfx_node **)nodes->data)[i]; }

static cfx_status add_node(cfxi_search *s, cfxi_vec *nodes, cfx_node *n)
{
    return cfxi_analysis_nodes_push(nodes, n, s->graph->allocator, s->err);
}

/* Mostly they are in order already. Each stays once. */
static void sort_nodes(cfxi_vec *nodes)
{
    cfx_node **all = nodes->data;
    size_t n = nodes->size;
    size_t kept = 0;
    bool sorted = true;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = all[i - 1]->order < all[i]->order;
    if (sorted)
        return;
    qsort(all, n, sizeof *all, cfxi_analysis_compare_order);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || all[i] != all[i - 1])
            all[kept++] = all[i];
    nodes->size = kept;
}

/* Nodes that share a callee fit or not together. */
static cfx_status add_callee(cfxi_search *s, const cfx_node *anchor, const cfxi_callee *callee,
                             cfxi_vec *nodes)
{
    cfx_node *first = callee->first;
    int fits = first ? cfxi_match_search_fits(s, anchor, first) : 0;
    if (fits <= 0)
        return s->status;
    cfx_node *n = first;
    do {
        CFX_TRY(add_node(s, nodes, n));
        n = n->same_next;
    } while (n != first);
    return CFX_OK;
}

static cfx_status add_by_callee(cfxi_search *s, const cfx_node *anchor, cfxi_vec *nodes)
{
    for (int op = 0; op < CFX_OPCODE_COUNT; op++)
        for (const cfxi_callee *c = s->graph->callees[op]; c; c = c->next)
            CFX_TRY(add_callee(s, anchor, c, nodes));
    return CFX_OK;
}

static cfx_status add_by_name(cfxi_search *s, cfxi_vec *nodes)
{
    const char *part = s->opts->node_name;
    for (cfx_node *n = s->graph->root.next; part && part[0] && n != &s->graph->root; n = n->next)
        if (strstr(n->name->data, part))
            CFX_TRY(add_node(s, nodes, n));
    return CFX_OK;
}

/* The users of the nodes so far that fit the next step. */
static cfx_status take_step(cfxi_search *s, const cfx_node *p, cfxi_vec *nodes, cfxi_vec *spare)
{
    spare->size = 0;
    for (size_t i = 0; i < nodes->size; i++) {
        for (const cfx_use *use = node_at(nodes, i)->users; use; use = cfx_use_next(use)) {
            if (cfxi_match_search_fits(s, p, use->user) > 0)
                CFX_TRY(add_node(s, spare, use->user));
            CFX_TRY(s->status);
        }
    }
    sort_nodes(spare);
    cfxi_vec old = *nodes;
    *nodes = *spare;
    *spare = old;
    return CFX_OK;
}

static cfx_status add_by_users(cfxi_search *s, const cfxi_trail_to *way, cfx_node *from,
                               cfxi_vec *nodes)
{
    cfxi_vec spare = {0};
    cfx_status status = add_node(s, nodes, from);
    for (size_t i = 1; i < way->n && status == CFX_OK; i++)
        status = take_step(s, way->steps[i], nodes, &spare);
    cfxi_base_vec_free(&spare, sizeof(cfx_node *), s->graph->allocator);
    return status;
}

static cfx_status find_candidates(cfxi_search *s, size_t anchor, cfxi_vec *nodes)
{
    const cfxi_trail_to *way = &s->pattern->ways[anchor];
    bool named = s->opts->node_name && s->opts->node_name[0];
    nodes->size = 0;
    if (way->n > 0 && !named && !s->opts->ignore_literals) {  /* then a literal does for a node */
        cfx_value v = s->bound[cfxi_match_pattern_place(s->pattern, way->steps[0])];
        if (v.kind == CFX_KIND_NODE)
            return add_by_users(s, way, v.as.node, nodes);
    }
    CFX_TRY(add_by_callee(s, s->pattern->anchors[anchor], nodes));
    CFX_TRY(add_by_name(s, nodes));
    sort_nodes(nodes);
    return CFX_OK;
}

/* ---- searching ----------------------------------------------------------------------------- */

/* Opens the level for an anchor: what is bound now stays so in it. */
static cfx_status open_level(cfxi_search *s, level *levels, size_t at)
{
    level *l = &levels[at];
    l->next = 0;
    l->trail = s->trail.size;
    l->held = s->held.size;
    CFX_TRY(find_candidates(s, at, &l->nodes));
    if (at == 0 && l->nodes.size == 0)
        cfxi_match_miss_none(s, s->pattern->anchors[0]);
    return s->status;
}

/* Tries the next candidate: whether it was one. */
static bool try_next(cfxi_search *s, level *l, size_t at)
{
    cfx_node *n = node_at(&l->nodes, l->next++);
    if (at == 0) {
        cfxi_match_miss_begin(s, n, false);
        s->steps = s->swaps = 0;
    }
    return cfxi_match_search_unify(s, s->pattern->anchors[at], n);
}

static cfx_status search_levels(cfxi_search *s, level *levels)
{
    size_t at = 0;
    CFX_TRY(open_level(s, levels, 0));
    for (;;) {
        level *l = &levels[at];
        cfxi_match_search_undo(s, l->trail);
        release_held(&s->held, l->held);
        if (l->next == l->nodes.size) {
            if (at-- == 0)
                return CFX_OK;
            continue;
        }
        bool found = try_next(s, l, at);
        CFX_TRY(s->status);
        if (found && at + 1 < s->pattern->n_anchors) {
            CFX_TRY(open_level(s, levels, ++at));
            continue;
        }
        found = found && cfxi_match_search_check(s);
        CFX_TRY(s->status);
        if (!found)
            continue;
        CFX_TRY(add_match(s));
        cfxi_match_miss_begin(s, NULL, true);
        if (!s->opts->overlaps)
            at = 0;  /* all others with this first anchor share it */
    }
}

/* Finds all matches of one pattern in one graph. */
static cfx_status run_search(cfxi_search *s)
{
    const cfx_allocator *allocator = s->graph->allocator;
    const size_t bytes = s->pattern->n_anchors * sizeof(level);
    if (s->pattern->n_anchors == 0)
        return CFX_OK;
    level *levels = cfxi_base_alloc(allocator, bytes);
    if (!levels)
        return cfxi_base_nomem(s->err);
    memset(levels, 0, bytes);
    cfx_status status = search_levels(s, levels);
    cfxi_match_miss_begin(s, NULL, false);
    for (size_t i = 0; i < s->pattern->n_anchors; i++)
        cfxi_base_vec_free(&levels[i].nodes, sizeof(cfx_node *), allocator);
    cfxi_base_free(allocator, levels, bytes);
    return status;
}

/* What a search needs beside its pattern. */
static cfx_status search_with(cfxi_search *s)
{
    const cfx_allocator *allocator = s->graph->allocator;
    const size_t n = s->pattern->n;
    s->bound = cfxi_base_alloc(allocator, n * sizeof *s->bound);
    cfx_status status = cfxi_base_nomem(NULL);
    if (s->bound && cfxi_base_map_reserve(&s->taken, n, sizeof(size_t), allocator) &&
        cfxi_base_vec_reserve(&s->trail, n, sizeof(size_t), allocator)) {
        memset(s->bound, 0, n * sizeof *s->bound);
        status = run_search(s);
    } else {
        cfxi_base_nomem(s->err);
    }
    release_held(&s->held, 0);
    cfxi_base_free(allocator, s->bound, n * sizeof *s->bound);
    cfxi_base_map_free(&s->taken, sizeof(size_t), allocator);
    cfxi_base_vec_free(&s->trail, sizeof(size_t), allocator);
    cfxi_base_vec_free(&s->goals, sizeof(cfxi_goal), allocator);
    cfxi_base_vec_free(&s->choices, sizeof(cfxi_choice), allocator);
    cfxi_base_vec_free(&s->held, sizeof(cfxi_held), allocator);
    return status;
}

/* ---- graphs and their regions -------------------------------------------------------------- */

/* What stays the same for a graph and its regions. */
typedef struct find_job {
    cfxi_pattern *patterns;
    size_t n;
    cfx_matches *result;
    cfx_miss *misses;
    size_t max_misses;
    size_t *n_misses;
} find_job;

static cfx_status pin(cfx_matches *m, cfx_graph *g, cfx_error *err)
{
    if (!cfxi_base_vec_reserve(&m->searched, 1, sizeof(cfxi_searched), m->allocator))
        return cfxi_base_nomem(err);
    cfxi_searched *one = &((cfxi_searched *)m->searched.data)[m->searched.size++];
    one->graph = cfx_graph_retain(g);
    cfx_iter_begin(&one->pin, g, false);
    return CFX_OK;
}

static cfx_status search_graph(cfx_graph *g, void *ctx, cfx_error *err)
{
    const find_job *job = ctx;
    const cfx_match_options *opts = &job->result->opts;
    cfxi_early early = {.first_user = UINT64_MAX};
    cfxi_effects *effects = NULL;
    cfx_status status = pin(job->result, g, err);
    cfxi_ir_graph_freeze(g);
    if (status == CFX_OK && opts->strict)
        status = cfxi_match_effects_new(g, opts->modules, &effects, err);
    for (size_t i = 0; i < job->n && status == CFX_OK; i++) {
        cfxi_search s = {.pattern = &job->patterns[i], .graph = g, .result = job->result,
                         .opts = opts, .err = err, .early = &early, .effects = effects,
                         .misses = job->misses, .max_misses = job->max_misses,
                         .n_misses = job->n_misses};
        status = search_with(&s);
    }
    cfxi_match_effects_free(effects);
    cfxi_ir_graph_thaw(g);
    if (status != CFX_OK || !opts->regions)
        return status;
    return cfxi_analysis_each_region(g, search_graph, ctx, err);
}

static cfx_status open_patterns(find_job *job, cfx_graph *const *patterns, size_t n,
                                cfx_error *err)
{
    for (; job->n < n; job->n++)
        CFX_TRY(cfxi_match_pattern_open(&job->patterns[job->n], patterns[job->n], job->n,
                                        &job->result->opts, err));
    return CFX_OK;
}

static cfx_matches *find(cfx_graph *g, cfx_graph *const *patterns, size_t n,
                         const cfx_match_options *opts, find_job *job, cfx_error *err)
{
    const size_t bytes = n * sizeof *job->patterns;
    if (cfxi_base_expect(g, "graph", err) != CFX_OK)
        return NULL;
    job->result = new_matches(g->allocator, opts, err);
    job->patterns = cfxi_base_alloc(g->allocator, bytes);
    cfx_status status = job->patterns ? CFX_OK : cfxi_base_nomem(err);
    if (status == CFX_OK && job->result)
        status = open_patterns(job, patterns, n, err);
    if (status == CFX_OK && job->result)
        status = search_graph(g, job, err);
    while (job->n > 0)
        cfxi_match_pattern_close(&job->patterns[--job->n]);
    cfxi_base_free(g->allocator, job->patterns, bytes);
    if (status == CFX_OK)
        return job->result;
    cfx_matches_free(job->result);
    return NULL;
}

cfx_matches *cfx_matches_find(cfx_graph *g, cfx_graph *const *patterns, size_t n,
                              const cfx_match_options *opts, cfx_error *err)
{
    find_job job = {.n = 0};
    return find(g, patterns, n, opts, &job, err);
}

cfx_status cfx_matches_explain(cfx_graph *g, cfx_graph *const *patterns, size_t n_patterns,
                               const cfx_match_options *opts, cfx_miss *misses, size_t max,
                               size_t *n, cfx_error *err)
{
    cfx_error own;
    find_job job = {.misses = misses, .max_misses = max, .n_misses = n};
    err = cfxi_base_error_or(err, &own);
    *n = 0;
    cfx_matches *found = find(g, patterns, n_patterns, opts, &job, err);
    cfx_matches_free(found);
    return found ? CFX_OK : err->status;
}
