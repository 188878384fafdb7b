/* match_effects.c - whether the nodes of a match can stand in one place: nothing that they would
 * have to pass writes to what they read, or touches what they write.
 *
 * Once for a graph: values that may share memory are put into classes (alias.c; all that something
 * outside may hold is one), and for each class the places of the calls that write to it and of
 * those that touch it at all are listed. A match then looks up the next of them behind each of its
 * nodes, which takes the logarithm of the graph's size, not the stretch that it covers.
 */
#include "analysis/alias_impl.h"
#include "match_impl.h"

#include <stdlib.h>

/* For each class the places of some of its nodes, in order. */
typedef struct listing {
    uint32_t *start;  /* by class: where its places begin; one more at the end */
    uint32_t *places;
    size_t n_places;
} listing;

struct cfxi_effects {
    const cfx_allocator *allocator;
    size_t n;             /* nodes; also the number of the class of what comes from outside */
    cfx_node **nodes;     /* by place */
    uint16_t *ops;        /* their operators */
    uint8_t *kinds;       /* their cfx_effects */
    uint32_t *writes;     /* how many calls before this place write; one more at the end */
    cfxi_aliases aliases;
    listing writers, touchers;
};

/* ---- what a node touches ------------------------------------------------------------------- */

static uint32_t class_of(const cfxi_effects *e, const cfx_node *n)
{
    const cfxi_alias *set = cfxi_analysis_alias_set(&e->aliases, n);
    return set->outside ? (uint32_t)e->n : (uint32_t)(set - e->aliases.sets);
}

/* Told the classes that a node touches; false ends it. */
typedef bool class_fn(void *ctx, uint32_t class, bool writes);

typedef struct class_job {
    const cfxi_effects *e;
    class_fn *fn;
    void *ctx;
} class_job;

static cfx_status tell_class(void *ctx, cfx_node *input, unsigned touch)
{
    const class_job *job = ctx;
    return job->fn(job->ctx, class_of(job->e, input), touch & CFX_TOUCH_WRITES) ? CFX_OK
                                                                                 : CFX_E_VALUE;
}

static bool each_class(const cfxi_effects *e, uint32_t place, class_fn *fn, void *ctx)
{
    cfx_node *n = e->nodes[place];
    class_job job = {e, fn, ctx};
    const cfx_operator op = (cfx_operator)e->ops[place];
    const cfx_effect kind = (cfx_effect)e->kinds[place];
    if (n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_GET_ATTR || n->op == CFX_OP_OUTPUT)
        return true;
    if (cfxi_analysis_node_touches(n, op, NULL, kind, tell_class, &job) != CFX_OK)
        return false;
    return !cfxi_analysis_is_opaque(n, op, NULL, kind) ||
           fn(ctx, (uint32_t)e->n, kind == CFX_EFFECT_WRITES);
}

/* ---- the lists ----------------------------------------------------------------------------- */

typedef struct fill_job {
    cfxi_effects *e;
    uint32_t place;
} fill_job;

static bool count_one(void *ctx, uint32_t class, bool writes)
{
    const fill_job *job = ctx;
    job->e->touchers.start[class + 1]++;
    job->e->writers.start[class + 1] += writes;
    return true;
}

/* Until all are in, the start of a class is where its next place goes. */
static bool add_one(void *ctx, uint32_t class, bool writes)
{
    const fill_job *job = ctx;
    job->e->touchers.places[job->e->touchers.start[class]++] = job->place;
    if (writes)
        job->e->writers.places[job->e->writers.start[class]++] = job->place;
    return true;
}

static bool make_room(cfxi_effects *e, listing *l)
{
    for (size_t i = 0; i < e->n + 1; i++)
        l->start[i + 1] += l->start[i];
    l->n_places = l->start[e->n + 1];
    l->places = cfxi_base_alloc(e->allocator, (l->n_places + 1) * sizeof *l->places);
    return l->places != NULL;
}

/* Each start has moved to the next one's. */
static void move_back(const cfxi_effects *e, listing *l)
{
    memmove(l->start + 1, l->start, (e->n + 1) * sizeof *l->start);
    l->start[0] = 0;
}

static cfx_status fill_lists(cfxi_effects *e, cfx_error *err)
{
    fill_job job = {.e = e};
    for (; job.place < e->n; job.place++)
        each_class(e, job.place, count_one, &job);
    if (!make_room(e, &e->writers) || !make_room(e, &e->touchers))
        return cfxi_base_nomem(err);
    for (job.place = 0; job.place < e->n; job.place++)
        each_class(e, job.place, add_one, &job);
    move_back(e, &e->writers);
    move_back(e, &e->touchers);
    return CFX_OK;
}

/* ---- making it ----------------------------------------------------------------------------- */

static void *zeros(const cfxi_effects *e, size_t size)
{
    void *block = cfxi_base_alloc(e->allocator, (e->n + 2) * size);
    if (block)
        memset(block, 0, (e->n + 2) * size);
    return block;
}

static void drop(const cfxi_effects *e, void *block, size_t size)
{
    cfxi_base_free(e->allocator, block, (e->n + 2) * size);
}

void cfxi_match_effects_free(cfxi_effects *e)
{
    if (!e)
        return;
    listing *lists[] = {&e->writers, &e->touchers};
    for (size_t i = 0; i < 2; i++) {
        drop(e, lists[i]->start, sizeof(uint32_t));
        cfxi_base_free(e->allocator, lists[i]->places, (lists[i]->n_places + 1) * sizeof(uint32_t));
    }
    if (e->aliases.graph)
        cfxi_analysis_aliases_end(&e->aliases);
    drop(e, e->nodes, sizeof *e->nodes);
    drop(e, e->ops, sizeof *e->ops);
    drop(e, e->kinds, sizeof *e->kinds);
    drop(e, e->writes, sizeof *e->writes);
    cfxi_base_free(e->allocator, e, sizeof *e);
}

static cfx_status look_at_nodes(cfxi_effects *e, cfx_graph *g, const cfx_module_tree *modules,
                                cfx_error *err)
{
    uint32_t at = 0;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next, at++) {
        cfx_operator op;
        cfx_effect kind;
        CFX_TRY(cfx_node_effect(n, modules, &kind, err));
        CFX_TRY(cfx_node_operator_of(n, modules, &op, err));
        e->nodes[at] = n;
        e->ops[at] = (uint16_t)op;
        e->kinds[at] = (uint8_t)kind;
        e->writes[at + 1] = e->writes[at] + (kind == CFX_EFFECT_WRITES);
    }
    return CFX_OK;
}

static cfx_status fill(cfxi_effects *e, cfx_graph *g, const cfx_module_tree *modules,
                       cfx_error *err)
{
    e->nodes = zeros(e, sizeof *e->nodes);
    e->ops = zeros(e, sizeof *e->ops);
    e->kinds = zeros(e, sizeof *e->kinds);
    e->writes = zeros(e, sizeof *e->writes);
    if (!e->nodes || !e->ops || !e->kinds || !e->writes)
        return cfxi_base_nomem(err);
    CFX_TRY(look_at_nodes(e, g, modules, err));
    if (e->writes[e->n] == 0)
        return CFX_OK;
    e->writers.start = zeros(e, sizeof(uint32_t));
    e->touchers.start = zeros(e, sizeof(uint32_t));
    if (!e->writers.start || !e->touchers.start)
        return cfxi_base_nomem(err);
    CFX_TRY(cfxi_analysis_aliases_begin(&e->aliases, g, modules, CFXI_USES_ALL, err));
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next)
        CFX_TRY(cfxi_analysis_alias_join(&e->aliases, n, err));
    return fill_lists(e, err);
}

cfx_status cfxi_match_effects_new(cfx_graph *g, const cfx_module_tree *modules,
                                  cfxi_effects **effects, cfx_error *err)
{
    *effects = NULL;
    cfxi_effects *e = cfxi_base_alloc(g->allocator, sizeof *e);
    if (!e)
        return cfxi_base_nomem(err);
    *e = (cfxi_effects){.allocator = g->allocator, .n = g->size};
    cfx_status status = fill(e, g, modules, err);
    if (status == CFX_OK && e->writes[e->n] > 0)
        *effects = e;
    else
        cfxi_match_effects_free(e);
    return status;
}

/* ---- looking at a match -------------------------------------------------------------------- */

typedef struct pass_job {
    cfxi_search *s;
    const cfxi_effects *e;
    size_t in_pattern;      /* the node of the match that is looked at: its place there, */
    uint32_t place;         /* and in the graph */
    uint32_t from, to;      /* what it has to pass: the places from, ..., to - 1 */
    uint32_t class;         /* for finding it among those that another node touches */
} pass_job;

/* The first node outside of the match in a range of a list, or NULL. */
static const cfx_node *first_in(const pass_job *job, const listing *l, uint32_t class)
{
    size_t low = l->start[class];
    size_t high = l->start[class + 1];
    const size_t end = high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->places[middle] < job->from)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < end && l->places[low] < job->to; low++) {
        job->s->result->steps++;
        if (!cfxi_match_search_inside(job->s, job->e->nodes[l->places[low]]))
            return job->e->nodes[l->places[low]];
    }
    return NULL;
}

static bool is_other(void *ctx, uint32_t class, bool writes)
{
    (void)writes;
    return class != ((const pass_job *)ctx)->class;
}

/* A node of the match that writes must stand before and behind the same ones of those that touch
 * what it writes to as it does in the pattern. */
static bool keeps_order(pass_job *job, uint32_t class)
{
    cfxi_search *s = job->s;
    job->class = class;
    for (size_t i = 0; i < s->trail.size; i++) {
        size_t in_pattern = ((size_t *)s->trail.data)[i];
        const cfx_node *n = s->bound[in_pattern].as.node;
        if (cfxi_match_is_input(s->pattern, in_pattern))
            continue;
        const uint32_t place = cfxi_analysis_alias_place(&job->e->aliases, n);
        if ((place < job->place) == (in_pattern < job->in_pattern))
            continue;
        if (place != job->place && !each_class(job->e, place, is_other, job))
            return cfxi_match_miss_way(s, n, "it comes %s %%%s, which writes to a tensor it uses; "
                                  "the pattern has the other order",
                                  place < job->place ? "before" : "after",
                                  job->e->nodes[job->place]->name->data);
    }
    return true;
}

static bool can_pass(void *ctx, uint32_t class, bool writes)
{
    pass_job *job = ctx;
    const cfx_node *n = first_in(job, writes ? &job->e->touchers : &job->e->writers, class);
    if (n && writes)
        return cfxi_match_miss_way(job->s, n, "it lies between the nodes of the match and may use "
                              "a tensor that %%%s writes to",
                              job->e->nodes[job->place]->name->data);
    if (n)
        return cfxi_match_miss_way(job->s, n, "it lies between the nodes of the match and may "
                              "write to a tensor that %%%s reads",
                              job->e->nodes[job->place]->name->data);
    return !writes || keeps_order(job, class);
}

bool cfxi_match_search_keeps_effects(cfxi_search *s, const cfxi_match_span *span)
{
    const cfxi_effects *e = s->effects;
    uint32_t here = cfxi_analysis_alias_place(&e->aliases, span->last) + 1;
    pass_job job = {.s = s, .e = e};
    if (cfxi_match_is_early(span))
        here = cfxi_analysis_alias_place(&e->aliases, span->first_user);
    if (span->last_input &&
        e->writes[cfxi_analysis_alias_place(&e->aliases, span->last_input) + 1] > e->writes[here] &&
        cfxi_analysis_alias_place(&e->aliases, span->last_input) >= here)
        return cfxi_match_miss_way(s, span->last_input, "it is computed after the first use of a "
                              "result, and a node in between writes to a tensor");
    for (size_t i = 0; i < s->trail.size; i++) {
        job.in_pattern = ((size_t *)s->trail.data)[i];
        if (cfxi_match_is_input(s->pattern, job.in_pattern))
            continue;
        job.place = cfxi_analysis_alias_place(&e->aliases, s->bound[job.in_pattern].as.node);
        job.from = job.place < here ? job.place + 1 : here;
        job.to = job.place < here ? here : job.place;
        if (!each_class(e, job.place, can_pass, &job))
            return false;
    }
    return true;
}
