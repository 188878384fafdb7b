/* match_effects.c - whether the nodes of a match can stand in one place: nothing that they would
 * have to pass writes to what they read, or touches what they write.
 *
 * Once for a graph: for each channel (alias_impl.h: what shares memory, the state of modules,
 * random numbers) the places of the calls that write to it and of those that touch it at all are
 * listed. A match then looks up the next of them behind each of its nodes, which takes the
 * logarithm of the graph's size, not the stretch that it covers.
 */
#include "analysis/alias_impl.h"
#include "match_impl.h"

#include <stdlib.h>

/* For each channel the places of some of its nodes, in order. */
typedef struct listing {
    uint32_t *start;  /* by channel: where its places begin; one more at the end */
    uint32_t *places;
    size_t n_places;
} listing;

struct cfxi_effects {
    const cfx_allocator *allocator;
    size_t n;             /* nodes */
    size_t n_channels;
    cfxi_effect_model model;
    cfx_node **nodes;     /* by place */
    uint8_t *does;        /* what they do */
    bool any;             /* one writes, or draws random numbers */
    uint32_t *writes;     /* how many calls before this place write; one more at the end */
    cfxi_aliases aliases;
    listing writers, touchers;
};

/* ---- what a node touches ------------------------------------------------------------------- */

/* Calls `fn` with the channels of a node; false ends it. */
static bool each_channel(const cfxi_effects *e, uint32_t place, cfxi_channel_fn *fn, void *ctx)
{
    return cfxi_analysis_each_channel(&e->aliases, e->nodes[place], e->does[place], fn, ctx);
}

/* ---- the lists ----------------------------------------------------------------------------- */

typedef struct fill_job {
    cfxi_effects *e;
    uint32_t place;
} fill_job;

static bool count_one(void *ctx, uint32_t channel, bool writes)
{
    const fill_job *job = ctx;
    job->e->touchers.start[channel + 1]++;
    job->e->writers.start[channel + 1] += writes;
    return true;
}

/* Until all are in, the start of a channel is where its next place goes. */
static bool add_one(void *ctx, uint32_t channel, bool writes)
{
    const fill_job *job = ctx;
    job->e->touchers.places[job->e->touchers.start[channel]++] = job->place;
    if (writes)
        job->e->writers.places[job->e->writers.start[channel]++] = job->place;
    return true;
}

static bool make_room(cfxi_effects *e, listing *l)
{
    for (size_t i = 0; i < e->n_channels; i++)
        l->start[i + 1] += l->start[i];
    l->n_places = l->start[e->n_channels];
    l->places = cfxi_base_alloc(e->allocator, (l->n_places + 1) * sizeof *l->places);
    return l->places != NULL;
}

/* Each start has moved to the next one's. */
static void move_back(const cfxi_effects *e, listing *l)
{
    memmove(l->start + 1, l->start, e->n_channels * sizeof *l->start);
    l->start[0] = 0;
}

static cfx_status fill_lists(cfxi_effects *e, cfx_error *err)
{
    fill_job job = {.e = e};
    for (; job.place < e->n; job.place++)
        each_channel(e, job.place, count_one, &job);
    if (!make_room(e, &e->writers) || !make_room(e, &e->touchers))
        return cfxi_base_nomem(err);
    for (job.place = 0; job.place < e->n; job.place++)
        each_channel(e, job.place, add_one, &job);
    move_back(e, &e->writers);
    move_back(e, &e->touchers);
    return CFX_OK;
}

/* ---- making it ----------------------------------------------------------------------------- */

static void *zeros(const cfxi_effects *e, size_t size)
{
    void *block = cfxi_base_alloc(e->allocator, (e->n_channels + 1) * size);
    if (block)
        memset(block, 0, (e->n_channels + 1) * size);
    return block;
}

static void drop(const cfxi_effects *e, void *block, size_t size)
{
    cfxi_base_free(e->allocator, block, (e->n_channels + 1) * size);
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
    drop(e, e->does, sizeof *e->does);
    cfxi_analysis_model_end(&e->model);
    drop(e, e->writes, sizeof *e->writes);
    cfxi_base_free(e->allocator, e, sizeof *e);
}

static cfx_status look_at_nodes(cfxi_effects *e, cfx_graph *g, cfx_error *err)
{
    uint32_t at = 0;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next, at++) {
        unsigned does;
        CFX_TRY(cfxi_analysis_does(&e->model, n, &does, err));
        e->nodes[at] = n;
        e->does[at] = (uint8_t)does;
        e->writes[at + 1] = e->writes[at] + ((does & CFXI_WRITES_ANY) != 0);
        e->any = e->any || (does & (CFXI_WRITES_ANY | CFXI_DRAWS));
    }
    return CFX_OK;
}

static cfx_status fill(cfxi_effects *e, cfx_graph *g, cfx_error *err)
{
    e->nodes = zeros(e, sizeof *e->nodes);
    e->does = zeros(e, sizeof *e->does);
    e->writes = zeros(e, sizeof *e->writes);
    if (!e->nodes || !e->does || !e->writes)
        return cfxi_base_nomem(err);
    CFX_TRY(look_at_nodes(e, g, err));
    if (!e->any)
        return CFX_OK;
    e->writers.start = zeros(e, sizeof(uint32_t));
    e->touchers.start = zeros(e, sizeof(uint32_t));
    if (!e->writers.start || !e->touchers.start)
        return cfxi_base_nomem(err);
    CFX_TRY(cfxi_analysis_aliases_begin(&e->aliases, g, &e->model, CFXI_USES_ALL, err));
    CFX_TRY(cfxi_analysis_alias_join_all(&e->aliases, err));
    return fill_lists(e, err);
}

cfx_status cfxi_match_effects_new(cfx_graph *g, const cfx_module_tree *modules,
                                  cfxi_effects **effects, cfx_error *err)
{
    *effects = NULL;
    cfxi_effects *e = cfxi_base_alloc(g->allocator, sizeof *e);
    if (!e)
        return cfxi_base_nomem(err);
    *e = (cfxi_effects){.allocator = g->allocator, .n = g->size,
                        .n_channels = g->size + CFXI_CHANNEL_COUNT, .model = {.modules = modules}};
    cfx_status status = fill(e, g, err);
    if (status == CFX_OK && e->any)
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
    uint32_t channel;         /* for finding it among those that another node touches */
} pass_job;

/* The first node outside of the match in a range of a list, or NULL. */
static const cfx_node *first_in(const pass_job *job, const listing *l, uint32_t channel)
{
    size_t low = l->start[channel];
    size_t high = l->start[channel + 1];
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

static bool is_other(void *ctx, uint32_t channel, bool writes)
{
    (void)writes;
    return channel != ((const pass_job *)ctx)->channel;
}

/* A node of the match that writes must stand before and behind the same ones of those that touch
 * what it writes to as it does in the pattern. */
static bool keeps_order(pass_job *job, uint32_t channel)
{
    cfxi_search *s = job->s;
    job->channel = channel;
    for (size_t i = 0; i < s->trail.size; i++) {
        size_t in_pattern = ((size_t *)s->trail.data)[i];
        const cfx_node *n = s->bound[in_pattern].as.node;
        if (cfxi_match_is_input(s->pattern, in_pattern))
            continue;
        const uint32_t place = cfxi_analysis_alias_place(&job->e->aliases, n);
        if ((place < job->place) == (in_pattern < job->in_pattern))
            continue;
        if (place != job->place && !each_channel(job->e, place, is_other, job))
            return cfxi_match_miss_way(s, n, "it comes %s %%%s, which writes to a tensor it uses; "
                                  "the pattern has the other order",
                                  place < job->place ? "before" : "after",
                                  job->e->nodes[job->place]->name->data);
    }
    return true;
}

static bool can_pass(void *ctx, uint32_t channel, bool writes)
{
    pass_job *job = ctx;
    const cfx_node *n = first_in(job, writes ? &job->e->touchers : &job->e->writers, channel);
    if (n && channel == job->e->n + CFXI_CHANNEL_RANDOM)
        return cfxi_match_miss_way(job->s, n, "it lies between the nodes of the match and draws "
                              "random numbers, as %%%s does",
                              job->e->nodes[job->place]->name->data);
    if (n && writes)
        return cfxi_match_miss_way(job->s, n, "it lies between the nodes of the match and may use "
                              "a tensor that %%%s writes to",
                              job->e->nodes[job->place]->name->data);
    if (n)
        return cfxi_match_miss_way(job->s, n, "it lies between the nodes of the match and may "
                              "write to a tensor that %%%s reads",
                              job->e->nodes[job->place]->name->data);
    return !writes || keeps_order(job, channel);
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
        if (!each_channel(e, job.place, can_pass, &job))
            return false;
    }
    return true;
}
