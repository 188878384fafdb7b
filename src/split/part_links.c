/* part_links.c - what the parts of a graph need, pass each other, and how long they take. */
#include "placement_impl.h"

#include <math.h>

/* ---- the graph as flat arrays -------------------------------------------------------------- */

static int kind_of(const cfx_node *n)
{
    switch (n->op) {
    case CFX_OP_PLACEHOLDER:
    case CFX_OP_GET_ATTR:
        return CFXI_LEAF;
    case CFX_OP_CALL_FUNCTION:
    case CFX_OP_CALL_METHOD:
    case CFX_OP_CALL_MODULE:
        return CFXI_CALL;
    case CFX_OP_OUTPUT:
    case CFX_OPCODE_COUNT:
        break;
    }
    return CFXI_OTHER;
}

static bool allocate(cfxi_placer *p)
{
    const size_t n = p->n, e = p->n_edges;
#define ARRAY(member, size)                                                                        \
    ((p->member = cfxi_split_new_array(&p->arena, size, sizeof *p->member)) != NULL)
    return ARRAY(nodes, n) && ARRAY(kind, n) && ARRAY(reads, e) && ARRAY(first, n + 1) &&
           ARRAY(sizes, n) && ARRAY(latencies, n) && ARRAY(shared, e) && ARRAY(moved, e) &&
           ARRAY(leaf, e) && ARRAY(leaves, n + 1) && ARRAY(members, n) && ARRAY(starts, n + 1) &&
           ARRAY(seen, n) && ARRAY(slot, n) && ARRAY(far, n) && ARRAY(weights, n) &&
           ARRAY(costs, n + e) && ARRAY(trial, n) && ARRAY(trial_devices, n) &&
           cfxi_split_link_room_init(&p->room, &p->arena, n, e, p->what->n_devices);
#undef ARRAY
}

cfx_status cfxi_split_placer_init(cfxi_placer *p, cfx_graph *g, const cfx_place_options *what,
                                  cfx_error *err)
{
    *p = (cfxi_placer){.g = g, .what = what, .n = g->size};
    cfxi_base_arena_init(&p->arena, g->allocator);
    for (const cfx_node *n = g->root.next; n != &g->root; n = n->next)
        p->n_edges += n->n_inputs;
    if (!allocate(p))
        return cfxi_base_nomem(err);
    const uint32_t stamp = cfxi_ir_graph_number(g);
    uint32_t i = 0, edge = 0;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next, i++) {
        p->nodes[i] = n;
        p->kind[i] = (unsigned char)kind_of(n);
        p->first[i] = edge;
        for (uint32_t k = 0; k < n->n_inputs; k++) {
            const cfx_node *def = n->inputs[k].def;
            if (def->mark - stamp >= i)
                return cfx_error_set(err, CFX_E_GRAPH, "node %%%s comes before %%%s, which it "
                                     "uses; run the toposort pass first", n->name->data,
                                     def->name->data);
            p->reads[edge++] = def->mark - stamp;
        }
    }
    p->first[i] = edge;
    return CFX_OK;
}

void cfxi_split_placer_done(cfxi_placer *p) { cfxi_base_arena_release(&p->arena); }

/* ---- parts --------------------------------------------------------------------------------- */

/* Calls by their part, in their order. */
static void group_calls(cfxi_placer *p, const uint32_t *parts)
{
    for (size_t i = 0; i <= p->n_parts; i++)
        p->starts[i] = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->kind[i] == CFXI_CALL)
            p->starts[parts[i] + 1]++;
    for (size_t i = 0; i < p->n_parts; i++) {
        p->starts[i + 1] += p->starts[i];
        p->slot[i] = p->starts[i];
    }
    for (size_t i = 0; i < p->n; i++)
        if (p->kind[i] == CFXI_CALL)
            p->members[p->slot[parts[i]]++] = (uint32_t)i;
}

/* A call of part `to` reads `def`, a call of part `from`. p->slot has the last link from each part:
 * one before `begin` leads to another part. */
static void add_link(cfxi_placer *p, uint32_t begin, uint32_t from, uint32_t to, uint32_t def)
{
    uint32_t link = p->slot[from];
    const double size = p->what->outputs[def];
    if (link < begin || link >= p->n_links || p->shared[link].from != from) {
        link = (uint32_t)p->n_links++;
        p->slot[from] = link;
        p->shared[link] = p->moved[link] = (cfx_link){from, to, 0};
    }
    p->sizes[to] += size;
    p->shared[link].weight += size;
    if (p->seen[def] != to) {
        p->seen[def] = to;
        p->moved[link].weight += size;
    }
}

static uint32_t survey_part(cfxi_placer *p, const uint32_t *parts, uint32_t part, uint32_t n_leaves)
{
    const uint32_t begin = (uint32_t)p->n_links;
    p->leaves[part] = n_leaves;
    for (uint32_t m = p->starts[part]; m < p->starts[part + 1]; m++) {
        const uint32_t i = p->members[m];
        p->sizes[part] += p->what->totals[i];
        for (uint32_t k = p->first[i]; k < p->first[i + 1]; k++) {
            const uint32_t def = p->reads[k];
            if (p->kind[def] == CFXI_CALL && parts[def] != part)
                add_link(p, begin, parts[def], part, def);
            else if (p->kind[def] == CFXI_LEAF && p->seen[def] != part) {
                p->seen[def] = part;
                p->sizes[part] += p->what->totals[def];
                p->leaf[n_leaves++] = def;
            }
        }
    }
    return n_leaves;
}

/* Leaves that both parts of a link hold pass, too, if they are on two devices. */
static void add_leaves(cfxi_placer *p)
{
    uint32_t marked = CFX_NO_PART;
    for (size_t i = 0; i < p->n; i++)
        p->seen[i] = CFX_NO_PART;
    for (size_t k = 0; k < p->n_links; k++) {
        const uint32_t from = p->moved[k].from, to = p->moved[k].to;
        if (marked != to)
            for (uint32_t l = p->leaves[to]; l < p->leaves[to + 1]; l++)
                p->seen[p->leaf[l]] = to;
        marked = to;
        for (uint32_t l = p->leaves[from]; l < p->leaves[from + 1]; l++)
            if (p->seen[p->leaf[l]] == to)
                p->moved[k].weight += p->what->outputs[p->leaf[l]];
    }
}

/* The longest way inside of each part. */
static void find_latencies(cfxi_placer *p, const uint32_t *parts)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->kind[i] != CFXI_CALL)
            continue;
        double longest = 0;
        for (uint32_t k = p->first[i]; k < p->first[i + 1]; k++) {
            const uint32_t def = p->reads[k];
            if (p->kind[def] == CFXI_CALL && parts[def] == parts[i] && p->far[def] > longest)
                longest = p->far[def];
        }
        p->far[i] = longest + p->what->latencies[i];
        if (p->far[i] > p->latencies[parts[i]])
            p->latencies[parts[i]] = p->far[i];
    }
}

void cfxi_split_survey_parts(cfxi_placer *p, const uint32_t *parts, size_t n)
{
    uint32_t n_leaves = 0;
    p->n_parts = n;
    p->n_links = 0;
    group_calls(p, parts);
    for (size_t i = 0; i < p->n; i++)
        p->seen[i] = CFX_NO_PART;
    for (size_t i = 0; i < n; i++) {
        p->slot[i] = CFX_NO_PART;
        p->sizes[i] = p->latencies[i] = 0;
    }
    for (size_t i = 0; i < n; i++)
        n_leaves = survey_part(p, parts, (uint32_t)i, n_leaves);
    p->leaves[n] = n_leaves;
    if (p->what->latencies) {
        add_leaves(p);
        find_latencies(p, parts);
    }
}

bool cfxi_split_part_levels(cfxi_placer *p)
{
    for (size_t i = 0; i < p->n_parts; i++)
        p->weights[i] = 0;
    for (size_t k = 0; k < p->n_links; k++)
        p->costs[k] = (cfx_link){p->shared[k].from, p->shared[k].to, 1};
    return cfxi_split_longest_ways(p->n_parts, p->weights, p->costs, p->n_links, p->far, NULL,
                                   &p->room);
}

bool cfxi_split_map_parts(cfxi_placer *p, uint32_t *devices)
{
    const cfx_fit_options fit = {p->what->memory, p->what->n_devices, p->sizes, p->n_parts,
                                 p->shared, p->n_links, NULL, 0};
    return cfxi_split_fit_parts(&fit, devices, &p->room);
}

double cfxi_split_parts_latency(cfxi_placer *p, const uint32_t *devices)
{
    double longest = 0;
    for (size_t k = 0; k < p->n_links; k++) {
        const uint32_t from = p->moved[k].from, to = p->moved[k].to;
        const bool near = devices[from] != CFX_NO_PART && devices[from] == devices[to];
        p->costs[k] = (cfx_link){from, to, near ? 0 : p->moved[k].weight / p->what->rate};
    }
    if (!cfxi_split_longest_ways(p->n_parts, p->latencies, p->costs, p->n_links, p->far, NULL,
                                 &p->room))
        return INFINITY;
    for (size_t i = 0; i < p->n_parts; i++)
        longest = p->far[i] > longest ? p->far[i] : longest;
    return longest;
}

void cfxi_split_join_parts(const cfxi_placer *p, const uint32_t *parts, size_t n, uint32_t a,
                           uint32_t b, uint32_t *joined)
{
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t part = parts[i];
        if (part == a || part == b)
            joined[i] = (uint32_t)n - 2;
        else
            joined[i] = part == CFX_NO_PART ? part : part - (part > a) - (part > b);
    }
}
