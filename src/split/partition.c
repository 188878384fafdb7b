/* partition.c - the fewest parts of supported nodes such that each can become one call.
 *
 *     %x = placeholder[target=x]()
 *     %a = call_function[target=torch.add](%x, 1)       supported, level 1
 *     %b = call_function[target=torch.add](%a, 1)       supported, level 1
 *     %c = call_function[target=torch.relu](%b)
 *     %d = call_function[target=torch.add](%a, %c)      supported, level 0
 *     %e = call_function[target=torch.add](%x, 2)       supported, level 0
 *     output((%d, %e))                                  parts: {d, e}, {a, b}
 *
 * A supported node has the level of its highest user; a use by an unsupported node counts one more
 * if a supported node comes after that. So values pass from higher levels to lower ones, and all
 * that leaves the supported nodes of a level and comes back to supported ones has left the level
 * for good: each level can be one node. Between two neighbouring levels lies an unsupported node,
 * on a single path through all of them: with fewer parts two of those would be one, and a cycle.
 *
 * torch.fx tries to merge each node with every part it has and looks for a cycle each time; what
 * that gives is the same, on every graph compared. One walk backwards, linear in nodes and edges.
 */
#include "partition_impl.h"

/* ---- levels -------------------------------------------------------------------------------- */

static cfx_status ask_all(cfxi_partition *job, const cfx_partition_options *opts, cfx_error *err)
{
    cfx_graph *g = job->graph;
    cfx_status status = CFX_OK;
    cfxi_ir_graph_freeze(g);
    size_t i = job->n;
    for (cfx_node *n = g->root.prev; status == CFX_OK && n != &g->root; n = n->prev) {
        int answer = opts->supported(opts->ctx, n);
        job->supported[--i] = answer > 0;
        /* an index that is a node may need the part of the value: such a call stays where it is */
        job->takes_item[i] = n->n_inputs == 1 && cfxi_analysis_is_getitem(n);
        if (answer < 0)
            status = cfx_error_set(err, CFX_E_HOST, "could not tell whether node %%%s is supported",
                                   n->name->data);
    }
    cfxi_ir_graph_thaw(g);
    return status;
}

static cfx_status find_levels(cfxi_partition *job, cfx_error *err)
{
    cfx_graph *g = job->graph;
    size_t i = job->n;
    for (cfx_node *n = g->root.prev; n != &g->root; n = n->prev) {
        uint32_t level = 0;
        i--;
        for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use)) {
            size_t user = cfxi_split_partition_at(job, use->user);
            if (user <= i)
                return cfx_error_set(err, CFX_E_GRAPH, "node %%%s comes before %%%s, which it "
                                     "uses; run the toposort pass first",
                                     use->user->name->data, n->name->data);
            uint32_t least = job->level[user] + (job->supported[user] && !job->supported[i]);
            level = least > level ? least : level;
        }
        job->level[i] = level;
    }
    return CFX_OK;
}

/* ---- groups -------------------------------------------------------------------------------- */

uint32_t cfxi_split_partition_root(cfxi_partition *job, uint32_t i)
{
    while (job->parent[i] != i) {
        job->parent[i] = job->parent[job->parent[i]];
        i = job->parent[i];
    }
    return i;
}

/* The root of a group is the node that torch.fx would number it after: of the larger group, or of
 * the one begun later, which stands further in front. */
void cfxi_split_partition_join(cfxi_partition *job, uint32_t a, uint32_t b)
{
    a = cfxi_split_partition_root(job, a);
    b = cfxi_split_partition_root(job, b);
    if (a == b)
        return;
    if (job->size[a] < job->size[b] || (job->size[a] == job->size[b] && a > b)) {
        uint32_t other = a;
        a = b;
        b = other;
    }
    job->parent[b] = a;
    job->size[a] += job->size[b];
}

static void join_levels(cfxi_partition *job)
{
    uint32_t *first = job->scratch;  /* a node of each level */
    for (size_t i = 0; i < job->n; i++)
        first[i] = CFX_NO_PART;
    for (size_t i = job->n; i-- > 0;) {
        if (!job->supported[i])
            continue;
        uint32_t *one = &first[job->level[i]];
        if (*one == CFX_NO_PART)
            *one = (uint32_t)i;
        else
            cfxi_split_partition_join(job, *one, (uint32_t)i);
    }
}

/* Nodes that follow each other; what has no inputs can stand anywhere before its users. */
static void join_runs(cfxi_partition *job)
{
    uint32_t last = CFX_NO_PART;  /* of the run */
    uint32_t i = 0;
    cfx_graph *g = job->graph;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next, i++) {
        if (job->supported[i] && last != CFX_NO_PART)
            cfxi_split_partition_join(job, last, i);
        if (job->supported[i])
            last = i;
        else if (n->op != CFX_OP_PLACEHOLDER && n->op != CFX_OP_GET_ATTR)
            last = CFX_NO_PART;
    }
}

/* ---- items of values ----------------------------------------------------------------------- */

static bool is_used_for_items(const cfxi_partition *job, const cfx_node *n)
{
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (!job->takes_item[cfxi_split_partition_at(job, use->user)])
            return false;
    return true;
}

static void move_items(const cfxi_partition *job, uint32_t *parts)
{
    size_t i = 0;
    cfx_graph *g = job->graph;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next, i++)
        if (is_used_for_items(job, n))
            for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
                parts[cfxi_split_partition_at(job, use->user)] = parts[i];
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* From the last root to the first. */
static void number_groups(cfxi_partition *job, uint32_t *parts)
{
    uint32_t *number = job->scratch;
    uint32_t next = 0;
    for (size_t i = job->n; i-- > 0;)
        number[i] = job->supported[i] && job->parent[i] == i ? next++ : CFX_NO_PART;
    for (size_t i = 0; i < job->n; i++)
        parts[i] =
            job->supported[i] ? number[cfxi_split_partition_root(job, (uint32_t)i)] : CFX_NO_PART;
}

/* Parts that lost all their nodes have no number. */
static size_t close_gaps(cfxi_partition *job, uint32_t *parts)
{
    uint32_t *number = job->scratch;
    uint32_t next = 0;
    for (size_t i = 0; i < job->n; i++)
        number[i] = 0;
    for (size_t i = 0; i < job->n; i++)
        if (parts[i] != CFX_NO_PART)
            number[parts[i]] = 1;
    for (size_t i = 0; i < job->n; i++)
        number[i] = number[i] ? next++ : CFX_NO_PART;
    for (size_t i = 0; i < job->n; i++)
        if (parts[i] != CFX_NO_PART)
            parts[i] = number[parts[i]];
    return next;
}

/* ---- all of it ----------------------------------------------------------------------------- */

enum { ARRAYS = 4 };

static cfx_status propose(cfxi_partition *job, const cfx_partition_options *opts, uint32_t *parts,
                          size_t *n, cfx_error *err)
{
    CFX_TRY(ask_all(job, opts, err));
    job->stamp = cfxi_ir_graph_number(job->graph);
    CFX_TRY(find_levels(job, err));
    for (size_t i = 0; i < job->n; i++) {
        job->parent[i] = (uint32_t)i;
        job->size[i] = 1;
    }
    if (opts->in_order)
        join_runs(job);
    else if (opts->connected)
        CFX_TRY(cfxi_split_partition_connected(job, err));
    else
        join_levels(job);
    number_groups(job, parts);
    move_items(job, parts);
    *n = close_gaps(job, parts);
    return CFX_OK;
}

cfx_status cfx_graph_partition(cfx_graph *g, const cfx_partition_options *opts, uint32_t *parts,
                               size_t *n, cfx_error *err)
{
    const size_t size = g->size;
    *n = 0;
    if (size == 0)
        return CFX_OK;
    uint32_t *arrays = cfxi_base_alloc(g->allocator, size * ARRAYS * sizeof *arrays);
    bool *flags = cfxi_base_alloc(g->allocator, size * 2);
    cfxi_partition job = {.graph = g, .n = size};
    cfx_status status = arrays && flags ? CFX_OK : cfxi_base_nomem(err);
    if (status == CFX_OK) {
        job.supported = flags;
        job.takes_item = flags + size;
        job.level = arrays;
        job.parent = arrays + size;
        job.size = arrays + 2 * size;
        job.scratch = arrays + 3 * size;
        status = propose(&job, opts, parts, n, err);
    }
    cfxi_base_free(g->allocator, arrays, size * ARRAYS * sizeof *arrays);
    cfxi_base_free(g->allocator, flags, size * 2);
    return status;
}
