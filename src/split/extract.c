/* extract.c - a new graph from a set of nodes.
 *
 *     before, {%mul, %relu} of                       after
 *     %x = placeholder[target=x]()                   %x = placeholder[target=x]()
 *     %w = get_attr[target=w]()                      %w = placeholder[target=w]()
 *     %mul = call_method[target=mul](%x, %w)         %mul = call_method[target=mul](%x, %w)
 *     %relu = call_function[target=torch.relu](%mul) %relu = call_function[target=torch.relu](%mul)
 *     output((%mul, %relu))                          output((%mul, %relu))
 *
 * Needs: nothing of the graph but that the nodes stand behind what they read.
 * Keeps: the graph as it is; of the nodes the order, types, locations and scopes, and the names
 * unless told otherwise.
 *
 * Marks tell inside from outside while the boundary is looked for, when no code of the host can
 * run; while the copies are made, it can, and a map has them. Linear in the nodes and their edges.
 */
#include "split_impl.h"

#include <stdio.h>

/* ---- flat paths ---------------------------------------------------------------------------- */

cfx_status cfxi_split_flat_paths_init(cfxi_flat_paths *paths, cfx_graph *g, cfx_error *err)
{
    paths->taken = cfx_namespace_new(g->allocator, err);
    paths->known = paths->taken ? cfx_node_map_new(g->allocator, err) : NULL;
    return paths->known ? CFX_OK : CFX_E_NOMEM;
}

void cfxi_split_flat_paths_free(cfxi_flat_paths *paths)
{
    cfx_node_map_free(paths->known);
    cfx_namespace_free(paths->taken);
}

/* "a.b" to "a_b", or to "a_b_1" where another module is called that. */
static const char *new_flat_path(cfx_namespace *taken, const cfx_node *n, cfx_error *err)
{
    const cfx_str *path = n->callee->ref->name;
    cfx_buffer text;
    const char *found = NULL;
    size_t size = path->size;
    cfx_buffer_init(&text, n->graph->allocator);
    if (cfx_buffer_reserve(&text, size + 24) != CFX_OK) {
        cfxi_base_nomem(err);
        return NULL;
    }
    memcpy(text.data, path->data, size + 1);
    for (size_t i = 0; i < size; i++)
        if (text.data[i] == '.')
            text.data[i] = '_';
    for (size_t i = 1; cfx_namespace_has(taken, text.data, size); i++)
        size = path->size + (size_t)snprintf(text.data + path->size, 24, "_%zu", i);
    if (cfx_namespace_add(taken, text.data, size, err) == CFX_OK)
        found = cfxi_ir_namespace_find(taken, text.data, size)->data;
    cfx_buffer_free(&text);
    return found;
}

cfx_status cfxi_split_flat_path(cfxi_flat_paths *paths, const cfx_node *n, const char **path,
                                cfx_error *err)
{
    const cfx_node *key = (const cfx_node *)n->callee;
    *path = NULL;
    if (!paths->known || n->op != CFX_OP_CALL_MODULE)
        return CFX_OK;
    cfx_value known = cfx_node_map_get(paths->known, key);
    if (known.kind != CFX_KIND_INVALID) {
        *path = (const char *)(intptr_t)known.as.i;
        return CFX_OK;
    }
    *path = new_flat_path(paths->taken, n, err);
    return *path ? cfx_node_map_set(paths->known, key, cfx_value_int((intptr_t)*path), err)
                 : CFX_E_NOMEM;
}

/* ---- making a part ------------------------------------------------------------------------- */

typedef struct builder {
    cfx_graph *src;
    const cfxi_part_plan *plan;
    cfx_subgraph *part;
    cfxi_flat_paths paths;
    cfx_error *err;
} builder;

cfx_node **cfxi_split_nodes_copy(const cfx_graph *g, cfx_node *const *nodes, size_t n)
{
    cfx_node **copy = cfxi_base_alloc(g->allocator, n * sizeof *copy);
    if (copy && n > 0)
        memcpy(copy, nodes, n * sizeof *copy);
    return copy;
}

cfx_value cfxi_split_map_look_up(void *map, cfx_node *n, cfx_error *err)
{
    cfx_value v = cfx_node_map_get(map, n);
    if (v.kind == CFX_KIND_INVALID)
        cfx_error_set(err, CFX_E_GRAPH, "node %%%s is used before it is defined; lint the graph to "
                      "find where", n->name->data);
    return v;
}

static cfx_status add_copy(builder *b, cfx_node *n, const cfxi_copy_as *as)
{
    cfx_node *copy =
        cfxi_ir_graph_copy_as(b->part->graph, n, as, cfxi_split_map_look_up, b->plan->map, b->err);
    if (!copy)
        return b->err->status;
    b->part->origins[b->part->n_origins++] = n;
    return cfx_node_map_set(b->plan->map, n, cfx_value_node(copy), b->err);
}

static cfx_status add_inputs(builder *b)
{
    char number[32];
    for (size_t i = 0; i < b->plan->n_inputs; i++) {
        cfx_node *n = b->plan->inputs[i];
        snprintf(number, sizeof number, "arg_%zu", i);
        bool numbered = b->plan->flags & CFX_PART_NUMBER_INPUTS;
        const cfxi_copy_as as = {.path = numbered ? number : n->name->data, .placeholder = true};
        CFX_TRY(add_copy(b, n, &as));
    }
    return CFX_OK;
}

static cfx_status add_body(builder *b)
{
    bool rename = b->plan->flags & CFX_PART_NAME_BY_TARGET;
    for (size_t i = 0; i < b->plan->n_body; i++) {
        cfx_node *n = b->plan->body[i];
        cfxi_copy_as as = {.name = rename ? NULL : n->name->data};
        CFX_TRY(cfxi_split_flat_path(&b->paths, n, &as.path, b->err));
        CFX_TRY(add_copy(b, n, &as));
    }
    return CFX_OK;
}

/* One value as it is, several as a tuple, none as (). */
static cfx_status add_output(builder *b)
{
    const cfxi_part_plan *plan = b->plan;
    cfx_graph *graph = b->part->graph;
    cfx_value *items = cfxi_base_alloc(graph->allocator, plan->n_outputs * sizeof *items);
    if (!items)
        return cfxi_base_nomem(b->err);
    for (size_t i = 0; i < plan->n_outputs; i++)
        items[i] = cfx_node_map_get(plan->map, plan->outputs[i]);
    bool alone = plan->n_outputs == 1 && !(plan->flags & CFX_PART_TUPLE);
    cfx_value result = alone ? items[0] : cfx_value_tuple(graph, items, plan->n_outputs, b->err);
    cfxi_base_free(graph->allocator, items, plan->n_outputs * sizeof *items);
    if (result.kind == CFX_KIND_INVALID)
        return CFX_E_NOMEM;
    if (!cfx_graph_output(graph, result, b->err)) {
        cfx_value_discard(graph, result);
        return b->err->status;
    }
    b->part->origins[b->part->n_origins++] = NULL;
    return CFX_OK;
}

static cfx_status build(builder *b)
{
    if (b->plan->flags & CFX_PART_FLAT_PATHS)
        CFX_TRY(cfxi_split_flat_paths_init(&b->paths, b->src, b->err));
    CFX_TRY(add_inputs(b));
    CFX_TRY(add_body(b));
    return add_output(b);
}

/* The arrays that the part is to have; n_origins is counted up later, to this number. */
static bool prepare(cfx_subgraph *part, cfx_graph *g, const cfxi_part_plan *plan, cfx_error *err)
{
    size_t n = plan->n_inputs + plan->n_body + 1;
    *part = (cfx_subgraph){.n_inputs = plan->n_inputs, .n_outputs = plan->n_outputs};
    part->graph = cfx_graph_new(g->allocator, g->host, err);
    if (!part->graph)
        return false;
    part->inputs = cfxi_split_nodes_copy(g, plan->inputs, plan->n_inputs);
    part->outputs = cfxi_split_nodes_copy(g, plan->outputs, plan->n_outputs);
    part->origins = cfxi_base_alloc(g->allocator, n * sizeof *part->origins);
    if (part->inputs && part->outputs && part->origins)
        return true;
    cfxi_base_nomem(err);
    return false;
}

cfx_status cfxi_split_part_build(cfx_graph *g, const cfxi_part_plan *plan, cfx_subgraph *part,
                                 cfx_error *err)
{
    const size_t n = plan->n_inputs + plan->n_body + 1;
    cfx_error own;
    builder b = {.src = g, .plan = plan, .part = part, .err = cfxi_base_error_or(err, &own)};
    cfx_status status = prepare(part, g, plan, err) ? build(&b) : CFX_E_NOMEM;
    cfxi_split_flat_paths_free(&b.paths);
    if (status == CFX_OK)
        return CFX_OK;
    part->n_origins = n;  /* what the array has room for */
    cfx_subgraph_free(part);
    return status;
}

void cfx_subgraph_free(cfx_subgraph *part)
{
    const cfx_allocator *a = part->graph ? part->graph->allocator : NULL;
    if (part->graph) {
        cfxi_base_free(a, part->inputs, part->n_inputs * sizeof *part->inputs);
        cfxi_base_free(a, part->outputs, part->n_outputs * sizeof *part->outputs);
        cfxi_base_free(a, part->origins, part->n_origins * sizeof *part->origins);
        cfx_graph_release(part->graph);
    }
    *part = (cfx_subgraph){0};
}

/* ---- its boundary -------------------------------------------------------------------------- */

enum { MEMBER, INPUT, MARKS };

typedef struct boundary {
    cfx_graph *g;
    const cfx_extract_options *what;
    uint32_t stamp;
    cfxi_vec inputs, outputs;  /* of cfx_node *, as found */
    cfx_error *err;
} boundary;

static bool is(const boundary *b, const cfx_node *n, uint32_t mark)
{
    return n->mark == b->stamp + mark;
}

/* Marks say nothing of the nodes of another graph. */
static bool is_here(const boundary *b, const cfx_node *n)
{
    return n->graph == b->g && !cfxi_ir_node_erased(n) && !cfxi_ir_node_is_root(n);
}

static cfx_status bad(const boundary *b, const cfx_node *n, const char *what)
{
    return cfx_error_set(b->err, CFX_E_GRAPH, "node %%%s %s", n->name ? n->name->data : "?", what);
}

static cfx_status mark_members(boundary *b)
{
    const cfx_extract_options *what = b->what;
    for (size_t i = 0; i < what->n; i++) {
        cfx_node *n = what->nodes[i];
        if (!is_here(b, n))
            return bad(b, n, "is not in this graph");
        if (n->op == CFX_OP_OUTPUT)
            return bad(b, n, "is an output and cannot be extracted; pass the nodes it returns");
        if (i > 0 && !cfx_node_before(what->nodes[i - 1], n))
            return bad(b, n, "does not come after the previous node of the list; pass each node "
                       "once, in graph order");
        n->mark = b->stamp + MEMBER;
    }
    for (size_t i = 0; what->inputs && i < what->n_inputs; i++) {
        if (!is_here(b, what->inputs[i]) || is(b, what->inputs[i], MEMBER))
            return bad(b, what->inputs[i], "cannot be an input: it is one of the nodes, or not in "
                       "this graph");
        what->inputs[i]->mark = b->stamp + INPUT;
    }
    return CFX_OK;
}

static cfx_status find_inputs(boundary *b)
{
    for (size_t i = 0; i < b->what->n; i++) {
        const cfx_node *n = b->what->nodes[i];
        for (uint32_t k = 0; k < n->n_inputs; k++) {
            cfx_node *def = n->inputs[k].def;
            if (is(b, def, MEMBER) || is(b, def, INPUT))
                continue;
            if (b->what->inputs)
                return cfx_error_set(b->err, CFX_E_GRAPH, "node %%%s reads %%%s, which is neither "
                                     "among the nodes nor among the inputs; add it to one of them",
                                     n->name->data, def->name->data);
            def->mark = b->stamp + INPUT;
            CFX_TRY(cfxi_analysis_nodes_push(&b->inputs, def, b->g->allocator, b->err));
        }
    }
    return CFX_OK;
}

static bool is_used_outside(const boundary *b, const cfx_node *n)
{
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (!is(b, use->user, MEMBER))
            return true;
    return false;
}

static cfx_status find_outputs(boundary *b)
{
    for (size_t i = 0; b->what->outputs && i < b->what->n_outputs; i++)
        if (!is_here(b, b->what->outputs[i]) ||
            (!is(b, b->what->outputs[i], MEMBER) && !is(b, b->what->outputs[i], INPUT)))
            return bad(b, b->what->outputs[i], "cannot be an output: it is not among the nodes");
    for (size_t i = 0; !b->what->outputs && i < b->what->n; i++)
        if (is_used_outside(b, b->what->nodes[i]))
            CFX_TRY(
                cfxi_analysis_nodes_push(&b->outputs, b->what->nodes[i], b->g->allocator, b->err));
    return CFX_OK;
}

static cfx_status build_found(const boundary *b, cfx_node_map *map, cfx_subgraph *part)
{
    const cfx_extract_options *what = b->what;
    const cfxi_part_plan plan = {
        .inputs = what->inputs ? what->inputs : b->inputs.data,
        .n_inputs = what->inputs ? what->n_inputs : b->inputs.size,
        .outputs = what->outputs ? what->outputs : b->outputs.data,
        .n_outputs = what->outputs ? what->n_outputs : b->outputs.size,
        .body = what->nodes,
        .n_body = what->n,
        .flags = what->flags,
        .map = map,
    };
    cfxi_ir_graph_freeze(b->g);
    cfx_status status = cfxi_split_part_build(b->g, &plan, part, b->err);
    cfxi_ir_graph_thaw(b->g);
    return status;
}

cfx_status cfx_graph_extract(cfx_graph *g, const cfx_extract_options *what, cfx_subgraph *part,
                             cfx_error *err)
{
    *part = (cfx_subgraph){0};
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    boundary b = {.g = g, .what = what, .stamp = cfxi_ir_graph_stamp(g, MARKS), .err = err};
    cfx_node_map *map = what->map ? what->map : cfx_node_map_new(g->allocator, err);
    cfx_status status = map ? mark_members(&b) : CFX_E_NOMEM;
    if (status == CFX_OK)
        status = find_inputs(&b);
    if (status == CFX_OK)
        status = find_outputs(&b);
    if (status == CFX_OK)
        status = build_found(&b, map, part);
    if (map != what->map)
        cfx_node_map_free(map);
    cfxi_base_vec_free(&b.inputs, sizeof(cfx_node *), g->allocator);
    cfxi_base_vec_free(&b.outputs, sizeof(cfx_node *), g->allocator);
    return status;
}
