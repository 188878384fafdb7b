/* toposort.c - brings the nodes into an order in which everything is defined before it is used.
 *
 *     before                                          after
 *     %b = call_function[target=torch.abs](%a)        %x = placeholder[target=x]()
 *     %x = placeholder[target=x]()                    %a = call_function[target=torch.neg](%x)
 *     %a = call_function[target=torch.neg](%x)        %b = call_function[target=torch.abs](%a)
 *     output(%b)                                      output(%b)
 *
 * Needs: no cycle. A graph with one, in whatever region, is an error that names its nodes, and
 * nothing is changed.
 * Keeps: names, arguments and locations of all nodes; the order of users; and as much of the order
 * as can be: of the nodes that could be next, always the one that stood first. Effects of calls do
 * not count: only arguments do.
 *
 * Kahn's algorithm. Which of the nodes that are ready stood first is asked of a set of positions
 * with one bit for each, and above it one bit for each word that has any, up to a single word: four
 * levels for 16 million nodes, so a step is as good as constant. Linear in nodes and edges but for
 * that, and a graph that is in order is only read. With `breadth_first` nodes come in the order in
 * which they become ready.
 */
#include "analysis/analysis_impl.h"
#include "pass_impl.h"

#include <stdio.h>

enum { LEVELS = 11, BITS = 6, WORD = 64 };

/* A position: the node that has it, the one that shall, and how many inputs are not placed yet. */
typedef struct place {
    cfx_node *node;
    cfx_node *next;
    uint32_t missing;
} place;

typedef struct sort_job {
    cfx_graph *graph;
    bool breadth_first;
    size_t n;
    place *places;
    size_t placed, taken;    /* breadth first: those before `taken` have told their users */
    uint64_t *ready;         /* the words of all levels */
    size_t words;
    uint64_t *level[LEVELS];
    size_t levels;
    uint32_t stamp;
} sort_job;

static place *place_of(const sort_job *job, const cfx_node *n)
{
    return &job->places[n->mark - job->stamp];
}

/* ---- the set of positions that are ready --------------------------------------------------- */

static size_t count_words(size_t n, size_t *levels)
{
    size_t words = 0;
    *levels = 0;
    do {
        n = (n + WORD - 1) / WORD;
        words += n;
        ++*levels;
    } while (n > 1);
    return words;
}

static void add_ready(sort_job *job, size_t at)
{
    for (size_t i = 0; i < job->levels; i++) {
        job->level[i][at >> BITS] |= (uint64_t)1 << (at % WORD);
        at >>= BITS;
    }
}

/* The lowest position, taken out; false if there is none. */
static bool take_ready(sort_job *job, size_t *at)
{
    *at = 0;
    if (job->level[job->levels - 1][0] == 0)
        return false;
    for (size_t i = job->levels; i-- > 0;)
        *at = *at << BITS | (unsigned)__builtin_ctzll(job->level[i][*at]);
    size_t rest = *at;
    for (size_t i = 0; i < job->levels; i++) {
        uint64_t *word = &job->level[i][rest >> BITS];
        *word &= ~((uint64_t)1 << (rest % WORD));
        if (*word != 0)
            break;
        rest >>= BITS;
    }
    return true;
}

/* ---- the order ----------------------------------------------------------------------------- */

static void become_ready(sort_job *job, cfx_node *n)
{
    if (job->breadth_first)
        job->places[job->placed++].next = n;
    else
        add_ready(job, n->mark - job->stamp);
}

static cfx_node *next_ready(sort_job *job)
{
    size_t at;
    if (job->breadth_first)
        return job->taken < job->placed ? job->places[job->taken++].next : NULL;
    return take_ready(job, &at) ? job->places[job->placed++].next = job->places[at].node : NULL;
}

static void find_order(sort_job *job)
{
    size_t at = 0;
    cfx_graph *g = job->graph;
    job->stamp = cfxi_ir_graph_number(g);
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next)
        job->places[at++] = (place){.node = n, .missing = n->n_inputs};
    for (size_t i = 0; i < job->n; i++)
        if (job->places[i].missing == 0)
            become_ready(job, job->places[i].node);
    for (cfx_node *n; (n = next_ready(job)) != NULL;)
        for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
            if (--place_of(job, use->user)->missing == 0)
                become_ready(job, use->user);
}

static bool in_order(const cfx_graph *g)
{
    for (const cfx_node *n = g->root.next; n != &g->root; n = n->next)
        for (uint32_t i = 0; i < n->n_inputs; i++)
            if (!cfx_node_before(n->inputs[i].def, n))
                return false;
    return true;
}

/* ---- cycles -------------------------------------------------------------------------------- */

/* An input that could not be placed: every node that could not has one. */
static cfx_node *missing_input(const sort_job *job, const cfx_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (place_of(job, n->inputs[i].def)->missing > 0)
            return n->inputs[i].def;
    return NULL;
}

/* "%a (model.py:3) uses %b (model.py:4) uses %a". */
static cfx_status describe_cycle(const sort_job *job, cfx_node *start, cfx_error *err)
{
    char text[200];
    size_t used = 0;
    const cfx_node *n = start;
    do {
        char where[CFXI_WHERE_SIZE];
        char one[160];
        int size = snprintf(one, sizeof one, "%%%.40s%s uses ", n->name->data,
                            cfxi_ir_where(n, where));
        if (used + (size_t)size + 50 > sizeof text) {
            used += (size_t)snprintf(text + used, sizeof text - used, "... uses ");
            break;
        }
        memcpy(text + used, one, (size_t)size + 1);
        used += (size_t)size;
        n = missing_input(job, n);
    } while (n != start);
    return cfx_error_set(err, CFX_E_GRAPH, "Input graph has cycles: %s%%%.40s; change an argument "
                         "of one of them to break the cycle", text, start->name->data);
}

enum { SEEN = UINT32_MAX };  /* inputs that are missing: a node has fewer */

/* From any node that could not be placed, back along such inputs until one comes again. Each is
 * looked at once, so that nodes with many inputs do not make this slow. */
static cfx_status cycle_error(sort_job *job, cfx_error *err)
{
    place *p = job->places;
    while (p->missing == 0)
        p++;
    for (; p->missing != SEEN; p = place_of(job, missing_input(job, p->node)))
        p->missing = SEEN;
    cfx_node *first = p->node;
    for (cfx_node *n = missing_input(job, first); n != p->node; n = missing_input(job, n))
        first = n->mark < first->mark ? n : first;
    return describe_cycle(job, first, err);
}

/* ---- one graph ----------------------------------------------------------------------------- */

static cfx_status begin(sort_job *job, cfx_error *err)
{
    const cfx_allocator *a = job->graph->allocator;
    job->n = job->graph->size;
    job->words = count_words(job->n, &job->levels);
    job->places = cfxi_base_alloc(a, job->n * sizeof *job->places);
    job->ready = cfxi_base_alloc(a, job->words * sizeof *job->ready);
    if (!job->places || !job->ready)
        return cfxi_base_nomem(err);
    memset(job->ready, 0, job->words * sizeof *job->ready);
    uint64_t *at = job->ready;
    for (size_t i = 0, n = job->n; i < job->levels; i++) {
        n = (n + WORD - 1) / WORD;
        job->level[i] = at;
        at += n;
    }
    return CFX_OK;
}

static void end(sort_job *job)
{
    const cfx_allocator *a = job->graph->allocator;
    cfxi_base_free(a, job->places, job->n * sizeof *job->places);
    cfxi_base_free(a, job->ready, job->words * sizeof *job->ready);
}

/* Only what is not in its place is moved. */
static cfx_status apply(const sort_job *job, cfx_error *err)
{
    cfx_node *at = job->graph->root.next;
    for (size_t i = 0; i < job->n; i++) {
        cfx_node *n = job->places[i].next;
        if (n == at)
            at = at->next;
        else
            CFX_TRY(cfx_node_prepend(at, n, err));
    }
    return CFX_OK;
}

typedef struct walk {
    bool breadth_first;
    bool move;     /* or look for cycles only */
    bool changed;
} walk;

static cfx_status sort_one(cfx_graph *g, walk *w, cfx_error *err)
{
    sort_job job = {.graph = g, .breadth_first = w->breadth_first};
    const uint64_t version = g->version;
    cfx_status status = begin(&job, err);
    if (status == CFX_OK) {
        find_order(&job);
        if (job.placed < job.n)
            status = cycle_error(&job, err);
        else if (w->move)
            status = apply(&job, err);
    }
    w->changed = w->changed || g->version != version;
    end(&job);
    return status;
}

static cfx_status sort_all(cfx_graph *g, void *ctx, cfx_error *err)
{
    walk *w = ctx;
    if (g->size > 0 && (w->breadth_first || !in_order(g)))
        CFX_TRY(sort_one(g, w, err));
    return cfxi_analysis_each_region(g, sort_all, ctx, err);
}

cfx_status cfxi_pass_toposort(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                              bool *changed, cfx_error *err)
{
    (void)modules;
    const cfx_toposort_options *options = opts;
    walk w = {.breadth_first = options && options->breadth_first};
    CFX_TRY(sort_all(g, &w, err));
    w.move = true;
    cfx_status status = sort_all(g, &w, err);
    if (changed)
        *changed = w.changed;
    return status;
}
