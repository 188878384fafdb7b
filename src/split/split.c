/* split.c - cuts a graph into parts, and makes a base that calls them.
 *
 *     before, %mul in part "a", %neg in "b"          base
 *     %x = placeholder[target=x]()                   %x = placeholder[target=x]()
 *     %w = get_attr[target=w]()                      %w = get_attr[target=w]()
 *     %mul = call_method[target=mul](%x, %w)         %a = call_module[target=a](%x, %w)
 *     %neg = call_method[target=neg](%mul)           %b = call_module[target=b](%a)
 *     output(%neg)                                   output(%b)
 *
 *     a                                              b
 *     %x = placeholder[target=x]()                   %mul = placeholder[target=mul]()
 *     %w = placeholder[target=w]()                   %neg = call_method[target=neg](%mul)
 *     %mul = call_method[target=mul](%x, %w)         output(%neg)
 *     output(%mul)
 *
 * Needs: nodes in topological order, and parts that do not need each other's results.
 * Keeps: the graph as it is; types, locations and scopes of what is copied.
 *
 * Everything is found by position before anything is built, because building runs code of the host.
 * Lists are made by counting, so that nothing needs a hash table: linear in nodes and edges.
 */
#include "split_impl.h"

void *cfxi_split_array(cfxi_splitter *s, size_t n, size_t item_size)
{
    void *items = cfxi_base_arena_zeros(&s->arena, n, item_size);
    if (!items)
        cfxi_base_nomem(s->err);
    return items;
}

static cfx_status push_node(cfxi_splitter *s, cfxi_vec *nodes, cfx_node *n)
{
    return cfxi_analysis_nodes_push(nodes, n, s->g->allocator, s->err);
}

/* ---- members ------------------------------------------------------------------------------- */

/* Takes the nodes and their parts down by position. */
static cfx_status take_nodes(cfxi_splitter *s)
{
    s->n = s->g->size;
    s->nodes = cfxi_split_array(s, s->n, sizeof *s->nodes);
    s->part_of = s->nodes ? cfxi_split_array(s, s->n, sizeof *s->part_of) : NULL;
    if (!s->part_of)
        return CFX_E_NOMEM;
    size_t i = 0;
    for (cfx_node *n = s->g->root.next; n != &s->g->root; n = n->next, i++) {
        s->nodes[i] = n;
        s->part_of[i] = n->op == CFX_OP_OUTPUT ? s->parts : s->parts + 1;
        if (!cfxi_ir_is_call(n))
            continue;
        if (s->what->parts[i] >= s->parts)
            return cfx_error_set(s->err, CFX_E_INDEX, "node %%%s is in part %zu, but there are %zu "
                                 "parts", n->name->data, s->what->parts[i], s->parts);
        s->part_of[i] = s->what->parts[i];
    }
    return CFX_OK;
}

/* Counts that stand one place further on become starts. */
static void add_up(size_t *starts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        starts[i + 1] += starts[i];
}

static cfx_status list_members(cfxi_splitter *s)
{
    size_t *starts = cfxi_split_array(s, s->parts + 2, sizeof *starts);
    size_t *next = starts ? cfxi_split_array(s, s->parts + 2, sizeof *next) : NULL;
    cfx_node **items = next ? cfxi_split_array(s, s->n, sizeof *items) : NULL;
    if (!items)
        return CFX_E_NOMEM;
    for (size_t i = 0; i < s->n; i++)
        if (s->part_of[i] <= s->parts)
            starts[s->part_of[i] + 1]++;
    add_up(starts, s->parts + 1);
    memcpy(next, starts, (s->parts + 2) * sizeof *next);
    for (size_t i = 0; i < s->n; i++)
        if (s->part_of[i] <= s->parts)
            items[next[s->part_of[i]]++] = s->nodes[i];
    s->members = (cfxi_lists){starts, items};
    return CFX_OK;
}

/* ---- what crosses -------------------------------------------------------------------------- */

/* Leaving a stretch in another part than the one that entered it is seen to by copies. */
static bool is_span_edge(const cfxi_splitter *s, size_t user, size_t def)
{
    return s->roles && s->roles[user] == CFXI_SPAN_EXIT && s->roles[def] == CFXI_SPAN_ENTER;
}

/* What `n` reads from outside its part, each value once in a part: `seen` has part + 1. */
static cfx_status list_inputs(cfxi_splitter *s, cfx_node *n, size_t part, size_t *seen)
{
    bool copy_attrs = (s->what->flags & CFX_SPLIT_COPY_ATTRS) && part < s->parts;
    for (uint32_t k = 0; k < n->n_inputs; k++) {
        cfx_node *def = n->inputs[k].def;
        size_t at = cfxi_split_position(s, def);
        if (s->part_of[at] == part || seen[at] == part + 1 ||
            is_span_edge(s, cfxi_split_position(s, n), at))
            continue;
        seen[at] = part + 1;
        if (copy_attrs && def->op == CFX_OP_GET_ATTR) {
            CFX_TRY(push_node(s, &s->body, def));
            continue;
        }
        if (!cfxi_base_vec_reserve(&s->reads, 1, sizeof(cfxi_read), s->g->allocator))
            return cfxi_base_nomem(s->err);
        ((cfxi_read *)s->reads.data)[s->reads.size++] = (cfxi_read){def, cfxi_split_position(s, n)};
    }
    return CFX_OK;
}

static cfx_status push_copies(cfxi_splitter *s, const cfxi_ranges *copies, size_t part)
{
    if (!copies->starts)
        return CFX_OK;
    for (size_t i = copies->starts[part]; i < copies->ends[part]; i++)
        CFX_TRY(push_node(s, &s->body, copies->items[i]));
    return CFX_OK;
}

static cfx_status list_part(cfxi_splitter *s, size_t part, size_t *seen)
{
    if (part < s->parts)
        CFX_TRY(push_copies(s, &s->before, part));
    for (size_t i = s->members.starts[part]; i < s->members.starts[part + 1]; i++) {
        CFX_TRY(list_inputs(s, s->members.items[i], part, seen));
        if (part < s->parts)
            CFX_TRY(push_node(s, &s->body, s->members.items[i]));
    }
    return part < s->parts ? push_copies(s, &s->behind, part) : CFX_OK;
}

/* The bodies of the parts and what they read. */
static cfx_status list_parts(cfxi_splitter *s)
{
    size_t *seen = cfxi_split_array(s, s->n, sizeof *seen);
    s->read_starts = seen ? cfxi_split_array(s, s->parts + 2, sizeof(size_t)) : NULL;
    s->body_starts = s->read_starts ? cfxi_split_array(s, s->parts + 2, sizeof(size_t)) : NULL;
    if (!s->body_starts)
        return CFX_E_NOMEM;
    for (size_t part = 0; part <= s->parts; part++) {
        CFX_TRY(list_part(s, part, seen));
        s->read_starts[part + 1] = s->reads.size;
        s->body_starts[part + 1] = s->body.size;
    }
    return CFX_OK;
}

/* Adds the cut that the next value a part reads makes, unless it only passes through the base. */
static void add_cut(cfxi_splitter *s, const cfxi_read *read, size_t part)
{
    size_t from = s->part_of[cfxi_split_position(s, read->value)];
    if (from >= s->parts && part == s->parts)
        return;
    cfx_split_result *result = s->result;
    s->readers[result->n_cuts] = s->nodes[read->user];
    result->cuts[result->n_cuts++] = (cfx_cut){
        read->value, from < s->parts ? from : CFX_SPLIT_BASE,
        part < s->parts ? part : CFX_SPLIT_BASE,
    };
}

/* The cuts in the order of their first readers: each part has its own in that order already. */
static cfx_status list_cuts(cfxi_splitter *s)
{
    const cfxi_read *reads = s->reads.data;
    size_t *next = cfxi_split_array(s, s->parts + 2, sizeof *next);
    s->readers = next ? cfxi_split_array(s, s->reads.size, sizeof *s->readers) : NULL;
    s->result->cuts = cfxi_base_alloc(s->g->allocator, s->reads.size * sizeof *s->result->cuts);
    if (!s->readers || !s->result->cuts)
        return cfxi_base_nomem(s->err);
    memcpy(next, s->read_starts, (s->parts + 2) * sizeof *next);
    for (size_t i = 0; i < s->n; i++) {
        size_t part = s->part_of[i];
        if (part <= s->parts)
            for (; next[part] < s->read_starts[part + 1] && reads[next[part]].user == i;
                 next[part]++)
                add_cut(s, &reads[next[part]], part);
    }
    return CFX_OK;
}

/* What each part returns: the values of the cuts that leave it, each once. */
static cfx_status list_outputs(cfxi_splitter *s)
{
    const cfx_cut *cuts = s->result->cuts;
    size_t *starts = cfxi_split_array(s, s->parts + 2, sizeof *starts);
    size_t *next = starts ? cfxi_split_array(s, s->parts + 2, sizeof *next) : NULL;
    bool *known = next ? cfxi_split_array(s, s->n, sizeof *known) : NULL;
    cfx_node **items = known ? cfxi_split_array(s, s->result->n_cuts, sizeof *items) : NULL;
    if (!items)
        return CFX_E_NOMEM;
    for (int fill = 0; fill < 2; fill++) {  /* counts first */
        for (size_t i = 0; i < s->result->n_cuts; i++) {
            size_t at = cfxi_split_position(s, cuts[i].value);
            if (cuts[i].from == CFX_SPLIT_BASE || known[at] != fill)
                continue;
            known[at] = !fill;
            if (fill)
                items[next[cuts[i].from]++] = cuts[i].value;
            else
                starts[cuts[i].from + 1]++;
        }
        if (!fill) {
            add_up(starts, s->parts + 1);
            memcpy(next, starts, (s->parts + 2) * sizeof *next);
        }
    }
    s->outputs = (cfxi_lists){starts, items};
    return CFX_OK;
}

/* ---- building ------------------------------------------------------------------------------ */

static cfx_status build_part(cfxi_splitter *s, size_t part, cfx_node_map *map)
{
    size_t n = s->read_starts[part + 1] - s->read_starts[part];
    const cfxi_read *reads = (const cfxi_read *)s->reads.data + s->read_starts[part];
    cfx_node **inputs = cfxi_base_alloc(s->g->allocator, n * sizeof *inputs);
    if (!inputs)
        return cfxi_base_nomem(s->err);
    for (size_t i = 0; i < n; i++)
        inputs[i] = reads[i].value;
    const cfxi_part_plan plan = {
        .inputs = inputs,
        .n_inputs = n,
        .body = (cfx_node **)s->body.data + s->body_starts[part],
        .n_body = s->body_starts[part + 1] - s->body_starts[part],
        .outputs = s->outputs.items + s->outputs.starts[part],
        .n_outputs = s->outputs.starts[part + 1] - s->outputs.starts[part],
        .flags = s->what->flags,
        .map = map,
    };
    cfx_status status = cfxi_split_part_build(s->g, &plan, &s->result->parts[part], s->err);
    cfxi_base_free(s->g->allocator, inputs, n * sizeof *inputs);
    return status;
}

static cfx_status build_all(cfxi_splitter *s)
{
    cfx_node_map *map = cfx_node_map_new(s->g->allocator, s->err);
    cfx_status status = map ? CFX_OK : CFX_E_NOMEM;
    if (map && !cfxi_ir_node_map_reserve(map, s->n))
        status = cfxi_base_nomem(s->err);
    for (size_t part = 0; status == CFX_OK && part < s->parts; part++)
        status = build_part(s, part, map);
    if (status == CFX_OK)
        status = cfxi_split_build_base(s, map);
    cfx_node_map_free(map);
    return status;
}

static bool make_result(cfxi_splitter *s)
{
    cfx_split_result *result = s->result;
    result->n = s->parts;
    result->parts = cfxi_base_alloc(s->g->allocator, s->parts * sizeof *result->parts);
    for (size_t i = 0; result->parts && i < s->parts; i++)
        result->parts[i] = (cfx_subgraph){0};
    result->order = cfxi_base_alloc(s->g->allocator, s->parts * sizeof *result->order);
    if (result->parts && result->order)
        return true;
    cfxi_base_nomem(s->err);
    return false;
}

static void free_result(cfx_split_result *result, size_t n_reads, const cfx_allocator *a)
{
    for (size_t i = 0; result->parts && i < result->n; i++)
        cfx_subgraph_free(&result->parts[i]);
    cfxi_base_free(a, result->parts, result->n * sizeof *result->parts);
    cfxi_base_free(a, result->order, result->n * sizeof *result->order);
    cfxi_base_free(a, result->cuts, n_reads * sizeof *result->cuts);
    cfx_subgraph_free(&result->base);
    *result = (cfx_split_result){0};
}

/* The cuts in an array of just their size, so that freeing it needs no further number. */
static cfx_status trim_cuts(cfxi_splitter *s)
{
    cfx_split_result *result = s->result;
    size_t bytes = result->n_cuts * sizeof *result->cuts;
    cfx_cut *cuts = cfxi_base_alloc(s->g->allocator, bytes);
    if (!cuts)
        return cfxi_base_nomem(s->err);
    if (bytes > 0)
        memcpy(cuts, result->cuts, bytes);
    cfxi_base_free(s->g->allocator, result->cuts, s->reads.size * sizeof *result->cuts);
    result->cuts = cuts;
    return CFX_OK;
}

/* Until here nothing has been built, and from numbering on no code of the host has run. */
static cfx_status plan_all(cfxi_splitter *s)
{
    if (!make_result(s))
        return CFX_E_NOMEM;
    CFX_TRY(take_nodes(s));
    CFX_TRY(cfxi_split_find_roles(s));
    s->stamp = cfxi_ir_graph_number(s->g);
    CFX_TRY(list_members(s));
    CFX_TRY(cfxi_split_find_spans(s));
    CFX_TRY(list_parts(s));
    CFX_TRY(list_cuts(s));
    CFX_TRY(list_outputs(s));
    return cfxi_split_order(s);
}

cfx_status cfx_graph_split(cfx_graph *g, const cfx_split_options *what,
                           cfx_split_result *result, cfx_error *err)
{
    cfx_error own;
    cfxi_splitter s = {.g = g, .what = what, .result = result, .parts = what->n,
                       .err = cfxi_base_error_or(err, &own)};
    *result = (cfx_split_result){0};
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    cfxi_base_arena_init(&s.arena, g->allocator);
    cfxi_ir_graph_freeze(g);
    cfx_status status = plan_all(&s);
    size_t n_reads = s.reads.size;
    if (status == CFX_OK)
        status = trim_cuts(&s);
    if (status == CFX_OK) {
        n_reads = result->n_cuts;
        status = build_all(&s);
    }
    cfxi_ir_graph_thaw(g);
    if (status != CFX_OK)
        free_result(result, n_reads, g->allocator);
    cfxi_base_vec_free(&s.reads, sizeof(cfxi_read), g->allocator);
    cfxi_base_vec_free(&s.body, sizeof(cfx_node *), g->allocator);
    cfxi_base_arena_release(&s.arena);
    return status;
}

void cfx_split_result_free(cfx_split_result *result)
{
    const cfx_allocator *a = result->base.graph ? result->base.graph->allocator : NULL;
    free_result(result, result->n_cuts, a);
}
