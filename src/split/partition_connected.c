/* partition_connected.c - parts of supported nodes that pass each other values, as large as can be.
 *
 *     %a = call_function[target=torch.add](%x, 1)
 *     %b = call_function[target=torch.add](%a, 1)
 *     %c = call_function[target=torch.relu](%a)
 *     %d = call_function[target=torch.add](%c, 1)
 *     output((%b, %d))                               parts: {d}, {a, b}
 *
 * From the last node to the first, each joins the parts of its users, one after the other, unless
 * that would make a cycle: as torch.fx does. Parts and other nodes ("units") are kept in an order
 * in which values only go forward. Joining X and Y, X before Y, makes a cycle if another way leads
 * from X to Y; all units on it lie between both. So the search goes forward from X to what lies
 * before Y, or backward from Y, whichever has fewer members; and if it finds no way, the units it
 * has seen move out of between: behind Y, or before X.
 *
 * A unit's members are looked at when it is the smaller of two that are joined, so O(log n) times;
 * a search sees what lies between two units that use each other, which in networks is little. But
 * there are graphs in which it is not: the searches of one graph may take EFFORT steps for each
 * node and edge, and after that units that use each other stay apart.
 */
#include "partition_impl.h"

#include <stdlib.h>

enum { EFFORT = 64 };
#define GAP ((uint64_t)1 << 20)
#define NONE UINT32_MAX

typedef struct unit {
    uint64_t label;       /* grows along the order of units; at the root */
    uint32_t prev, next;  /* in that order */
    uint32_t member;      /* the next node of the same group, circular; for every node */
    uint32_t seen;        /* the last search that came by */
} unit;

typedef struct seen_unit {
    uint64_t label;
    uint32_t unit;
} seen_unit;

typedef struct connect_job {
    cfxi_partition *base;
    cfx_node **nodes;
    unit *units;
    seen_unit *seen;    /* of the current search, which goes on from each in turn */
    size_t n_seen;
    uint32_t head, tail;
    uint32_t first;     /* the node that is being joined: those before it are no units yet */
    uint32_t search;
    uint64_t steps;     /* that may still be done */
} connect_job;

/* ---- the order of units -------------------------------------------------------------------- */

static void link_between(connect_job *job, uint32_t prev, uint32_t u, uint32_t next)
{
    job->units[u].prev = prev;
    job->units[u].next = next;
    *(prev == NONE ? &job->head : &job->units[prev].next) = u;
    *(next == NONE ? &job->tail : &job->units[next].prev) = u;
}

static void take_off(connect_job *job, uint32_t u)
{
    const unit *it = &job->units[u];
    *(it->prev == NONE ? &job->head : &job->units[it->prev].next) = it->next;
    *(it->next == NONE ? &job->tail : &job->units[it->next].prev) = it->prev;
}

static void relabel_all(connect_job *job)
{
    uint64_t label = (uint64_t)1 << 63;
    for (uint32_t u = job->tail; u != NONE; u = job->units[u].prev) {
        job->units[u].label = label -= GAP;
        job->steps -= job->steps > 0;
    }
}

static int by_label(const void *a, const void *b)
{
    const seen_unit *one = a, *other = b;
    return one->label < other->label ? -1 : one->label > other->label;
}

/* Moves what the search has seen, in its order, directly behind `at` or before it. */
static void move_seen(connect_job *job, uint32_t at, bool behind)
{
    if (job->n_seen == 0)
        return;
    qsort(job->seen, job->n_seen, sizeof *job->seen, by_label);
    for (size_t i = 0; i < job->n_seen; i++)
        take_off(job, job->seen[i].unit);
    uint32_t last = behind ? at : job->units[at].prev;
    const uint32_t end = behind ? job->units[at].next : at;
    const uint64_t low = last == NONE ? job->units[end].label - GAP * (job->n_seen + 1)
                                      : job->units[last].label;
    const uint64_t high = end == NONE ? low + GAP * (job->n_seen + 1) : job->units[end].label;
    const uint64_t gap = (high - low) / (job->n_seen + 1);
    for (size_t i = 0; i < job->n_seen; i++) {
        uint32_t u = job->seen[i].unit;
        link_between(job, last, u, end);
        job->units[u].label = low + gap * (i + 1);
        last = u;
    }
    if (gap == 0)
        relabel_all(job);
}

/* ---- looking for another way --------------------------------------------------------------- */

typedef struct way {
    uint32_t from, to;  /* where the search begins, and where it must not come out */
    bool forward;
} way;

/* False if this is the way that must not be. */
static bool see(connect_job *job, const way *w, uint32_t at, const cfx_node *neighbour)
{
    uint32_t i = cfxi_split_partition_at(job->base, neighbour);
    job->steps -= job->steps > 0;
    if (i < job->first)
        return true;
    uint32_t u = cfxi_split_partition_root(job->base, i);
    if (u == w->to)
        return at == w->from;
    const uint64_t label = job->units[u].label, end = job->units[w->to].label;
    if (u == w->from || job->units[u].seen == job->search || (w->forward ? label > end
                                                                        : label < end))
        return true;
    job->units[u].seen = job->search;
    job->seen[job->n_seen++] = (seen_unit){label, u};
    return true;
}

static bool see_around(connect_job *job, const way *w, uint32_t u)
{
    uint32_t i = u;
    do {
        const cfx_node *n = job->nodes[i];
        if (w->forward) {
            for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
                if (!see(job, w, u, use->user))
                    return false;
        } else {
            for (uint32_t k = 0; k < n->n_inputs; k++)
                if (!see(job, w, u, n->inputs[k].def))
                    return false;
        }
        i = job->units[i].member;
    } while (i != u && job->steps > 0);
    return job->steps > 0;
}

static bool is_only_way(connect_job *job, const way *w)
{
    job->search++;
    job->n_seen = 0;
    if (!see_around(job, w, w->from))
        return false;
    for (size_t i = 0; i < job->n_seen; i++)
        if (!see_around(job, w, job->seen[i].unit))
            return false;
    return true;
}

/* ---- joining ------------------------------------------------------------------------------- */

static void join(connect_job *job, uint32_t stays, uint32_t goes)
{
    unit *a = &job->units[stays], *b = &job->units[goes];
    const unit place = *a;
    take_off(job, goes);
    uint32_t prev = a->prev, next = a->next;
    take_off(job, stays);
    uint32_t member = a->member;
    a->member = b->member;
    b->member = member;
    cfxi_split_partition_join(job->base, stays, goes);
    uint32_t root = cfxi_split_partition_root(job->base, stays);
    link_between(job, prev, root, next);
    job->units[root].label = place.label;
    job->units[root].seen = 0;
}

static void try_join(connect_job *job, uint32_t a, uint32_t b)
{
    if (a == b)
        return;
    const bool ordered = job->units[a].label < job->units[b].label;
    const uint32_t x = ordered ? a : b, y = ordered ? b : a;
    const bool forward = job->base->size[x] <= job->base->size[y];
    const way w = {forward ? x : y, forward ? y : x, forward};
    if (!is_only_way(job, &w))
        return;
    move_seen(job, w.to, forward);
    join(job, w.to, w.from);
}

static void add_unit(connect_job *job, uint32_t i)
{
    const uint32_t head = job->head;
    job->first = i;
    job->units[i] = (unit){.member = i};
    link_between(job, NONE, i, head);
    job->units[i].label = head == NONE ? (uint64_t)1 << 63 : job->units[head].label - GAP;
    if (!job->base->supported[i])
        return;
    for (const cfx_use *use = cfx_node_first_use(job->nodes[i]); use; use = cfx_use_next(use)) {
        uint32_t user = cfxi_split_partition_at(job->base, use->user);
        if (job->base->supported[user])
            try_join(job, cfxi_split_partition_root(job->base, i),
                     cfxi_split_partition_root(job->base, user));
    }
}

static void connect(connect_job *job)
{
    const cfx_graph *g = job->base->graph;
    size_t i = 0;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        job->nodes[i++] = n;
        job->steps += EFFORT * (1 + (uint64_t)n->n_inputs);
    }
    while (i-- > 0)
        add_unit(job, (uint32_t)i);
}

cfx_status cfxi_split_partition_connected(cfxi_partition *base, cfx_error *err)
{
    const cfx_allocator *a = base->graph->allocator;
    connect_job job = {.base = base, .head = NONE, .tail = NONE};
    job.nodes = cfxi_base_alloc(a, base->n * sizeof *job.nodes);
    job.units = cfxi_base_alloc(a, base->n * sizeof *job.units);
    job.seen = cfxi_base_alloc(a, base->n * sizeof *job.seen);
    const bool made = job.nodes && job.units && job.seen;
    if (made)
        connect(&job);
    cfxi_base_free(a, job.nodes, base->n * sizeof *job.nodes);
    cfxi_base_free(a, job.units, base->n * sizeof *job.units);
    cfxi_base_free(a, job.seen, base->n * sizeof *job.seen);
    return made ? CFX_OK : cfxi_base_nomem(err);
}
