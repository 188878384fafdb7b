/* pattern.c - a pattern made ready for searching: its anchors, outputs and the ways to them. */
#include "match_impl.h"

/* ---- checking ------------------------------------------------------------------------------ */

cfx_node *cfxi_match_pattern_output(const cfx_graph *g)
{
    for (cfx_node *n = g->root.prev; n != &g->root; n = n->prev)
        if (n->op == CFX_OP_OUTPUT)
            return n;
    return NULL;
}

cfx_status cfxi_match_check_pattern(cfx_graph *pattern, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(pattern, "pattern", err));
    if (pattern->size == 0)
        return cfx_error_set(err, CFX_E_VALUE, "SubgraphMatcher cannot be initialized with an "
                             "empty pattern");
    for (cfx_node *n = pattern->root.next; n != &pattern->root; n = n->next) {
        cfxi_ir_graph_freeze(pattern);  /* the host may run any code */
        int kept = n->n_users > 0 ? 1 : cfx_node_is_impure(n);
        cfxi_ir_graph_thaw(pattern);
        if (kept < 0)
            return cfx_error_set(err, CFX_E_HOST, "could not tell whether node %%%s has an effect",
                                 n->name->data);
        if (kept)
            continue;
        char where[CFXI_WHERE_SIZE];
        return cfx_error_set(err, CFX_E_GRAPH, "SubgraphMatcher cannot be initialized with an "
                             "pattern with dead code: node %%%s%s is unused; return it or remove "
                             "it", n->name->data, cfxi_ir_where(n, where));
    }
    if (!cfxi_match_pattern_output(pattern))
        return cfx_error_set(err, CFX_E_GRAPH, "the pattern returns nothing; add an output");
    return CFX_OK;
}

/* ---- making it ready ----------------------------------------------------------------------- */

bool cfxi_match_is_star(const cfx_node *n)
{
    return n->op == CFX_OP_PLACEHOLDER && n->callee->ref->kind == CFXI_REF_NAME &&
           n->callee->ref->name->data[0] == '*' && n->callee->ref->name->data[1] != '*';
}

static bool is_any_of(const cfx_node *n)
{
    if (n->op != CFX_OP_CALL_FUNCTION || cfx_node_arg(n, 0).kind != CFX_KIND_TUPLE)
        return false;
    const char *name = cfx_node_target(n, NULL, NULL);
    return name && strcmp(name, "cfx.any_of") == 0;
}

static void *take(cfxi_pattern *p, size_t n, size_t size)
{
    return cfxi_base_arena_zeros(&p->arena, n, size);
}

static cfx_status place_nodes(cfxi_pattern *p, const cfx_match_options *opts, cfx_error *err)
{
    size_t i = 0;
    if (!cfxi_ir_node_map_reserve(p->places, p->n))
        return cfxi_base_nomem(err);
    for (cfx_node *n = p->graph->root.next; n != &p->graph->root; n = n->next, i++) {
        p->nodes[i] = n;
        p->n_inputs += n->op == CFX_OP_PLACEHOLDER;
        p->flags[i] = (uint8_t)((is_any_of(n) ? CFXI_PAT_ANY_OF : 0) |
                                (opts->variadic && cfxi_match_is_star(n) ? CFXI_PAT_STAR : 0));
        CFX_TRY(cfx_node_map_set(p->places, n, cfx_value_int((int64_t)i), err));
    }
    return CFX_OK;
}

static void find_anchors(cfxi_pattern *p, const cfx_match_options *opts)
{
    for (uint32_t i = 0; i < p->output->n_inputs; i++) {
        cfx_node *n = p->output->inputs[i].def;
        p->flags[cfxi_match_pattern_place(p, n)] |= CFXI_PAT_RETURNED;
        p->outputs[p->n_outputs++] = n;
        if (!opts->match_output && n->n_users == 1)
            p->anchors[p->n_anchors++] = n;
    }
    if (opts->match_output)
        p->anchors[p->n_anchors++] = p->output;
}

/* ---- the ways to the anchors --------------------------------------------------------------- */

/* A walk from an anchor to what it depends on. */
typedef struct climb {
    cfxi_pattern *p;
    size_t *from;     /* by position: the position whose input it is, plus one; 0 if not seen */
    size_t *queue;
    uint8_t *known;   /* by position: an earlier anchor depends on it */
} climb;

static cfx_status write_way(climb *c, size_t anchor, size_t place, cfx_error *err)
{
    cfxi_trail_to *way = &c->p->ways[anchor];
    for (size_t at = place;; at = c->from[at] - 1, way->n++)
        if (c->from[at] == at + 1)
            break;
    way->steps = take(c->p, ++way->n, sizeof *way->steps);
    if (!way->steps)
        return cfxi_base_nomem(err);
    for (size_t i = 0, at = place; i < way->n; i++, at = c->from[at] - 1)
        way->steps[i] = c->p->nodes[at];
    return CFX_OK;
}

/* Breadth first; the nearest node that is known wins, but one that is no input if there is one. */
static cfx_status climb_from(climb *c, size_t anchor, cfx_error *err)
{
    cfxi_pattern *p = c->p;
    size_t start = cfxi_match_pattern_place(p, p->anchors[anchor]);
    size_t head = 0;
    size_t tail = 0;
    size_t found = SIZE_MAX;
    memset(c->from, 0, p->n * sizeof *c->from);
    c->from[start] = start + 1;
    c->queue[tail++] = start;
    while (head < tail) {
        size_t at = c->queue[head++];
        const cfx_node *n = p->nodes[at];
        if (c->known[at]) {
            if (found == SIZE_MAX || (cfxi_match_is_input(p, found) && !cfxi_match_is_input(p, at)))
                found = at;
            continue;
        }
        for (uint32_t i = 0; i < n->n_inputs; i++) {
            size_t input = cfxi_match_pattern_place(p, n->inputs[i].def);
            if (c->from[input])
                continue;
            c->from[input] = at + 1;
            c->queue[tail++] = input;
        }
    }
    for (size_t i = 0; i < tail; i++)
        c->known[c->queue[i]] = 1;
    return found == SIZE_MAX ? CFX_OK : write_way(c, anchor, found, err);
}

static cfx_status find_ways(cfxi_pattern *p, cfx_error *err)
{
    if (p->n_anchors < 2)
        return CFX_OK;
    climb c = {.p = p, .from = take(p, p->n, sizeof *c.from),
               .queue = take(p, p->n, sizeof *c.queue), .known = take(p, p->n, 1)};
    if (!c.from || !c.queue || !c.known)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < p->n_anchors; i++)
        CFX_TRY(climb_from(&c, i, err));
    return CFX_OK;
}

static cfx_status make_ready(cfxi_pattern *p, const cfx_match_options *opts, cfx_error *err)
{
    p->output = cfxi_match_pattern_output(p->graph);
    p->nodes = take(p, p->n, sizeof *p->nodes);
    p->flags = take(p, p->n, 1);
    p->anchors = take(p, p->output->n_inputs + 1, sizeof *p->anchors);
    p->outputs = take(p, p->output->n_inputs, sizeof *p->outputs);
    p->ways = take(p, p->output->n_inputs + 1, sizeof *p->ways);
    p->places = cfx_node_map_new(p->graph->allocator, err);
    if (!p->nodes || !p->flags || !p->anchors || !p->outputs || !p->ways || !p->places)
        return cfxi_base_nomem(err);
    CFX_TRY(place_nodes(p, opts, err));
    find_anchors(p, opts);
    return find_ways(p, err);
}

cfx_status cfxi_match_pattern_open(cfxi_pattern *p, cfx_graph *graph, size_t number,
                                   const cfx_match_options *opts, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(graph, "pattern", err));
    *p = (cfxi_pattern){.graph = graph, .number = number, .n = graph->size};
    cfxi_base_arena_init(&p->arena, graph->allocator);
    CFX_TRY(cfxi_match_check_pattern(graph, err));
    cfxi_ir_graph_freeze(graph);
    cfx_graph_retain(graph);
    cfx_status status = make_ready(p, opts, err);
    if (status != CFX_OK)
        cfxi_match_pattern_close(p);
    return status;
}

void cfxi_match_pattern_close(cfxi_pattern *p)
{
    cfx_node_map_free(p->places);
    cfxi_base_arena_release(&p->arena);
    cfxi_ir_graph_thaw(p->graph);
    cfx_graph_release(p->graph);
    *p = (cfxi_pattern){.n = 0};
}

cfx_status cfx_pattern_anchors(cfx_graph *pattern, const cfx_match_options *opts,
                               cfx_node **anchors, size_t max, size_t *n, cfx_error *err)
{
    static const cfx_match_options none;
    cfxi_pattern p;
    CFX_TRY(cfxi_match_pattern_open(&p, pattern, 0, opts ? opts : &none, err));
    *n = p.n_anchors;
    for (size_t i = 0; i < max && i < p.n_anchors; i++)
        anchors[i] = p.anchors[i];
    cfxi_match_pattern_close(&p);
    return CFX_OK;
}
