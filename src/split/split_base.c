/* split_base.c - the graph that calls the parts of a split: inputs and attributes first, as they
 * stood, then a call_module for each part, and operator.getitem for each value of a tuple. If the
 * order is to be kept, attributes stand before the first part that needs them, as in torch.fx.
 */
#include "split_impl.h"

typedef struct base {
    cfxi_splitter *s;
    cfx_subgraph *part;
    cfx_node_map *map;   /* what stands for a node of the source here */
    size_t room;         /* for origins */
} base;

static bool is_tuple(const base *b, size_t part)
{
    const size_t *starts = b->s->outputs.starts;
    return starts[part + 1] - starts[part] != 1 || (b->s->what->flags & CFX_PART_TUPLE);
}

/* Whether the base reads an attribute: all of them, or those that the graph returns. */
static bool is_read(const base *b, const cfx_node *n)
{
    if (n->op != CFX_OP_GET_ATTR)
        return false;
    if (!(b->s->what->flags & CFX_SPLIT_COPY_ATTRS))
        return true;
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (use->user->op == CFX_OP_OUTPUT)
            return true;
    return false;
}

static cfx_status prepare(base *b)
{
    const cfxi_splitter *s = b->s;
    b->room = s->parts + 1;
    for (size_t i = 0; i < s->n; i++)
        b->room += s->nodes[i]->op == CFX_OP_PLACEHOLDER || is_read(b, s->nodes[i]);
    for (size_t i = 0; i < s->parts; i++)
        b->room += is_tuple(b, i) ? s->outputs.starts[i + 1] - s->outputs.starts[i] : 0;
    b->part->graph = cfx_graph_new(s->g->allocator, s->g->host, s->err);
    if (!b->part->graph)
        return CFX_E_NOMEM;
    b->part->inputs = cfxi_split_nodes_copy(s->g, NULL, 0);
    b->part->outputs = cfxi_split_nodes_copy(s->g, NULL, 0);
    b->part->origins = cfxi_base_alloc(s->g->allocator, b->room * sizeof(cfx_node *));
    return b->part->origins ? CFX_OK : cfxi_base_nomem(s->err);
}

static cfx_status add_given(base *b, cfx_node *n)
{
    cfx_error *err = b->s->err;
    /* As in torch.fx, an input or attribute is called after its target here. */
    const cfxi_copy_as as = {.name = NULL};
    cfx_node *copy =
        cfxi_ir_graph_copy_as(b->part->graph, n, &as, cfxi_split_map_look_up, b->map, err);
    if (!copy)
        return err->status;
    b->part->origins[b->part->n_origins++] = n;
    return cfx_node_map_set(b->map, n, cfx_value_node(copy), err);
}

static cfx_status add_inputs(base *b)
{
    for (size_t i = 0; i < b->s->n; i++)
        if (b->s->nodes[i]->op == CFX_OP_PLACEHOLDER)
            CFX_TRY(add_given(b, b->s->nodes[i]));
    return CFX_OK;
}

/* Whether an attribute has been copied into the base; the parts have left other copies behind. */
static bool is_here(const base *b, const cfx_node *n)
{
    cfx_value v = cfx_node_map_get(b->map, n);
    return v.kind == CFX_KIND_NODE && v.as.node->graph == b->part->graph;
}

static cfx_status add_attrs(base *b)
{
    for (size_t i = 0; i < b->s->n; i++)
        if (is_read(b, b->s->nodes[i]) && !is_here(b, b->s->nodes[i]))
            CFX_TRY(add_given(b, b->s->nodes[i]));
    return CFX_OK;
}

/* Those that a part reads, if they are to stand no earlier than they must. */
static cfx_status add_attrs_of(base *b, const cfx_subgraph *part)
{
    if (!(b->s->what->flags & CFX_SPLIT_KEEP_ORDER))
        return CFX_OK;
    for (size_t i = 0; i < part->n_inputs; i++)
        if (part->inputs[i]->op == CFX_OP_GET_ATTR && !is_here(b, part->inputs[i]))
            CFX_TRY(add_given(b, part->inputs[i]));
    return CFX_OK;
}

static cfx_node *call_part(base *b, size_t number)
{
    cfxi_splitter *s = b->s;
    const cfx_subgraph *part = &s->result->parts[number];
    const char *name = s->what->names[number];
    cfx_value *args = cfxi_base_alloc(s->g->allocator, part->n_inputs * sizeof *args);
    if (!args) {
        cfxi_base_nomem(s->err);
        return NULL;
    }
    for (size_t i = 0; i < part->n_inputs; i++)
        args[i] = cfx_node_map_get(b->map, part->inputs[i]);
    const cfx_target target = {.name = name, .size = strlen(name)};
    cfx_node *call = cfxi_analysis_add_call(b->part->graph, CFX_OP_CALL_MODULE, target, args,
                                            part->n_inputs, s->err);
    cfxi_base_free(s->g->allocator, args, part->n_inputs * sizeof *args);
    if (call)
        b->part->origins[b->part->n_origins++] = NULL;
    return call;
}

static cfx_status add_part(base *b, size_t number)
{
    const cfx_subgraph *part = &b->s->result->parts[number];
    CFX_TRY(add_attrs_of(b, part));
    cfx_node *call = call_part(b, number);
    for (size_t i = 0; call && i < part->n_outputs; i++) {
        bool item = is_tuple(b, number);
        cfx_node *value =
            item ? cfxi_analysis_add_getitem(b->part->graph, call, i, b->s->err) : call;
        if (!value)
            return b->s->err->status;
        if (item)
            b->part->origins[b->part->n_origins++] = NULL;
        CFX_TRY(cfx_node_map_set(b->map, part->outputs[i], cfx_value_node(value), b->s->err));
    }
    return call ? CFX_OK : b->s->err->status;
}

static cfx_status add_output(base *b)
{
    const cfxi_splitter *s = b->s;
    const cfxi_lists *members = &s->members;
    if (members->starts[s->parts] == members->starts[s->parts + 1])
        return CFX_OK;  /* the graph has none, and so has the base */
    cfx_graph *graph = b->part->graph;
    cfx_value v = cfx_node_arg(members->items[members->starts[s->parts]], 0);
    v = v.kind == CFX_KIND_INVALID ? cfx_value_none()
                                   : cfx_value_map(graph, s->g, v, cfxi_split_map_look_up, b->map,
                                                   s->err);
    if (v.kind == CFX_KIND_INVALID)
        return s->err->status;
    if (!cfx_graph_output(graph, v, s->err)) {
        cfx_value_discard(graph, v);
        return s->err->status;
    }
    b->part->origins[b->part->n_origins++] = NULL;
    return CFX_OK;
}

static cfx_status build(base *b)
{
    bool late = b->s->what->flags & CFX_SPLIT_KEEP_ORDER;
    CFX_TRY(add_inputs(b));
    if (!late)
        CFX_TRY(add_attrs(b));
    for (size_t i = 0; i < b->s->parts; i++)
        CFX_TRY(add_part(b, b->s->result->order[i]));
    if (late)
        CFX_TRY(add_attrs(b));
    return add_output(b);
}

cfx_status cfxi_split_build_base(cfxi_splitter *s, cfx_node_map *map)
{
    base b = {.s = s, .part = &s->result->base, .map = map};
    cfx_status status = prepare(&b);
    if (status == CFX_OK)
        status = build(&b);
    for (; b.part->origins && b.part->n_origins < b.room; b.part->n_origins++)
        b.part->origins[b.part->n_origins] = NULL;  /* a graph without an output, or a failure */
    return status;
}
