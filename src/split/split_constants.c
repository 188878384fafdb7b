/* split_constants.c - cuts off what can be computed beforehand.
 *
 *     before                                       constants
 *     %x = placeholder[target=x]()                 %w = get_attr[target=w]()
 *     %w = get_attr[target=w]()                    %add = call_function[target=operator.add](%w, 1)
 *     %add = call_function[target=operator.add]    output(%add)
 *         (%w, 1)
 *     %mul = call_function[target=operator.mul]    rest
 *         (%x, %add)                               %x = placeholder[target=x]()
 *     output(%mul)                                 %folded = get_attr[target=folded]()
 *                                                  %mul = call_function[target=operator.mul]
 *                                                      (%x, %folded)
 *                                                  output(%mul)
 *
 * Needs: nodes in topological order.
 * Keeps: the graph as it is; names, types, locations and scopes of calls in both parts.
 *
 * One walk finds the constants; a map has them, because the host is asked on the way. Linear.
 */
#include "analysis/alias_impl.h"
#include "split_impl.h"

typedef struct folder {
    cfx_graph *g;
    const cfx_constants_options *what;
    cfxi_effect_model model;
    cfxi_aliases aliases;    /* what shares memory with what is written to is no constant */
    cfx_node_map *known;     /* constants */
    cfxi_vec constants;      /* of cfx_node *: calls, and before them the attributes they read */
    cfxi_vec outputs;        /* of cfx_node *: calls that others read */
    size_t calls;
    cfx_error *err;          /* never NULL */
} folder;

/* ---- what is constant ---------------------------------------------------------------------- */

static cfx_status push(folder *f, cfxi_vec *nodes, cfx_node *n)
{
    return cfxi_analysis_nodes_push(nodes, n, f->g->allocator, f->err);
}

static bool is_constant(const folder *f, const cfx_node *n)
{
    return cfx_node_map_get(f->known, n).kind != CFX_KIND_INVALID;
}

/* Whether computing `n` once is as good as computing it each time. */
static cfx_status is_repeatable(folder *f, cfx_node *n, bool *repeatable)
{
    unsigned does;
    CFX_TRY(cfxi_analysis_does(&f->model, n, &does, f->err));
    *repeatable = (does & ~(unsigned)CFXI_UNKNOWN) == 0;
    return CFX_OK;
}

static bool is_written(const folder *f, const cfx_node *n)
{
    return cfxi_analysis_alias_set(&f->aliases, n)->written;
}

static bool has_constant_inputs(const folder *f, const cfx_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (!is_constant(f, n->inputs[i].def))
            return false;
    return true;
}

static cfx_status judge(folder *f, cfx_node *n, bool *constant)
{
    *constant = (cfxi_ir_is_call(n) || n->op == CFX_OP_GET_ATTR) && !cfxi_ir_is_flag(n) &&
                !is_written(f, n) && has_constant_inputs(f, n);
    if (*constant)
        CFX_TRY(is_repeatable(f, n, constant));
    if (!*constant || !f->what->skip)
        return CFX_OK;
    int skip = f->what->skip(f->what->ctx, n);
    *constant = skip == 0;
    return skip < 0 ? cfx_error_set(f->err, CFX_E_HOST, "could not tell whether to skip node %%%s",
                                    n->name->data) : CFX_OK;
}

/* Whether any call depends on attributes and literals only: most graphs have none, and what they
 * write to need not be found out. */
static bool has_candidates(cfx_graph *g)
{
    const uint32_t constant = cfxi_ir_graph_stamp(g, 1);
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        bool fits = cfxi_ir_is_call(n) || (n->op == CFX_OP_GET_ATTR && !cfxi_ir_is_flag(n));
        for (uint32_t i = 0; fits && i < n->n_inputs; i++)
            fits = n->inputs[i].def->mark == constant;
        if (fits && cfxi_ir_is_call(n))
            return true;
        if (fits)
            n->mark = constant;
    }
    return false;
}

static cfx_status find_constants(folder *f)
{
    if (!has_candidates(f->g))
        return CFX_OK;
    CFX_TRY(cfxi_analysis_aliases_begin(&f->aliases, f->g, &f->model, CFXI_USES_ALL, f->err));
    CFX_TRY(cfxi_analysis_aliases_note_writes(&f->aliases, f->err));
    for (cfx_node *n = f->g->root.next; n != &f->g->root; n = n->next) {
        bool constant;
        CFX_TRY(judge(f, n, &constant));
        if (!constant)
            continue;
        CFX_TRY(cfx_node_map_set(f->known, n, cfx_value_int(1), f->err));
        f->calls += cfxi_ir_is_call(n);
    }
    return CFX_OK;
}

/* ---- the lists ----------------------------------------------------------------------------- */

enum { TAKEN = 2 };  /* what the map has for a constant that is on its list */

static cfx_status take(folder *f, cfxi_vec *list, cfx_node *n)
{
    if (cfx_node_map_get(f->known, n).as.i == TAKEN)
        return CFX_OK;
    CFX_TRY(cfx_node_map_set(f->known, n, cfx_value_int(TAKEN), f->err));
    return push(f, list, n);
}

/* Attributes go along where calls read them; results, in the order in which they are read. */
static cfx_status list_constants(folder *f)
{
    for (cfx_node *n = f->g->root.next; n != &f->g->root; n = n->next) {
        bool constant = is_constant(f, n);
        for (uint32_t i = 0; i < n->n_inputs; i++) {
            cfx_node *def = n->inputs[i].def;
            if (constant && def->op == CFX_OP_GET_ATTR)
                CFX_TRY(take(f, &f->constants, def));
            else if (!constant && cfxi_ir_is_call(def) && is_constant(f, def))
                CFX_TRY(take(f, &f->outputs, def));
        }
        if (constant && cfxi_ir_is_call(n))
            CFX_TRY(push(f, &f->constants, n));
    }
    return CFX_OK;
}

static cfx_status build_constants(folder *f, cfx_subgraph *constants, cfx_node_map *map)
{
    const cfxi_part_plan plan = {
        .body = f->constants.data,
        .n_body = f->constants.size,
        .outputs = f->outputs.data,
        .n_outputs = f->outputs.size,
        .flags = CFX_PART_FLAT_PATHS,
        .map = map,
    };
    return cfxi_split_part_build(f->g, &plan, constants, f->err);
}

/* ---- the rest ------------------------------------------------------------------------------ */

typedef struct rest_builder {
    folder *f;
    cfx_subgraph *part;
    cfx_node_map *map;
    cfxi_flat_paths paths;
    size_t room;
} rest_builder;

static bool is_read_by_rest(const folder *f, const cfx_node *n)
{
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (!is_constant(f, use->user))
            return true;
    return false;
}

static bool is_wanted(const folder *f, const cfx_node *n, cfx_opcode op)
{
    if (op == CFX_OP_GET_ATTR)
        return n->op == op && is_read_by_rest(f, n);
    return op == CFX_OP_PLACEHOLDER ? n->op == op : cfxi_ir_is_call(n) && !is_constant(f, n);
}

/* Adds what stands for `origin`, which may be NULL. */
static cfx_status add(rest_builder *b, cfx_node *origin, cfx_node *made)
{
    if (!made)
        return b->f->err->status;
    b->part->origins[b->part->n_origins++] = origin;
    return origin ? cfx_node_map_set(b->map, origin, cfx_value_node(made), b->f->err) : CFX_OK;
}

static cfx_status copy_all(rest_builder *b, cfx_opcode op)
{
    folder *f = b->f;
    for (cfx_node *n = f->g->root.next; n != &f->g->root; n = n->next) {
        cfxi_copy_as as = {.name = n->op == CFX_OP_GET_ATTR ? NULL : n->name->data};
        if (!is_wanted(f, n, op))
            continue;
        CFX_TRY(cfxi_split_flat_path(&b->paths, n, &as.path, f->err));
        CFX_TRY(add(
            b, n,
            cfxi_ir_graph_copy_as(b->part->graph, n, &as, cfxi_split_map_look_up, b->map, f->err)));
    }
    return CFX_OK;
}

static cfx_status add_results(rest_builder *b)
{
    folder *f = b->f;
    cfx_node *const *outputs = f->outputs.data;
    bool alone = f->outputs.size == 1;
    cfx_node *all = cfx_graph_get_attr(b->part->graph, f->what->path, f->err);
    CFX_TRY(add(b, alone ? outputs[0] : NULL, all));
    for (size_t i = 0; !alone && i < f->outputs.size; i++)
        CFX_TRY(add(b, outputs[i], cfxi_analysis_add_getitem(b->part->graph, all, i, f->err)));
    return CFX_OK;
}

static cfx_status add_output(rest_builder *b)
{
    cfx_graph *graph = b->part->graph;
    cfx_node *n = b->f->g->root.next;
    while (n != &b->f->g->root && n->op != CFX_OP_OUTPUT)
        n = n->next;
    if (n == &b->f->g->root)
        return CFX_OK;
    const cfxi_copy_as as = {.name = n->name->data};
    cfx_node *copy =
        cfxi_ir_graph_copy_as(graph, n, &as, cfxi_split_map_look_up, b->map, b->f->err);
    return add(b, NULL, copy);
}

static cfx_status prepare(rest_builder *b)
{
    folder *f = b->f;
    b->room = f->g->size + f->outputs.size + 1;
    b->part->graph = cfx_graph_new(f->g->allocator, f->g->host, f->err);
    if (!b->part->graph)
        return CFX_E_NOMEM;
    b->part->origins = cfxi_base_alloc(f->g->allocator, b->room * sizeof(cfx_node *));
    return b->part->origins ? cfxi_split_flat_paths_init(&b->paths, f->g, f->err)
                            : cfxi_base_nomem(f->err);
}

static cfx_status build_rest(folder *f, cfx_subgraph *rest, cfx_node_map *map)
{
    rest_builder b = {.f = f, .part = rest, .map = map};
    cfx_status status = prepare(&b);
    if (status == CFX_OK)
        status = copy_all(&b, CFX_OP_PLACEHOLDER);
    if (status == CFX_OK)
        status = copy_all(&b, CFX_OP_GET_ATTR);
    if (status == CFX_OK)
        status = add_results(&b);
    if (status == CFX_OK)
        status = copy_all(&b, CFX_OP_CALL_FUNCTION);
    if (status == CFX_OK)
        status = add_output(&b);
    for (; rest->origins && rest->n_origins < b.room; rest->n_origins++)
        rest->origins[rest->n_origins] = NULL;  /* so that the size is known again */
    cfxi_split_flat_paths_free(&b.paths);
    return status;
}

/* ---- both ---------------------------------------------------------------------------------- */

static cfx_status split(folder *f, cfx_subgraph *constants, cfx_subgraph *rest)
{
    f->known = cfx_node_map_new(f->g->allocator, f->err);
    if (!f->known)
        return CFX_E_NOMEM;
    CFX_TRY(find_constants(f));
    if (f->calls == 0)
        return CFX_OK;
    CFX_TRY(list_constants(f));
    if (f->outputs.size == 0)
        return CFX_OK;
    cfx_node_map *map = cfx_node_map_new(f->g->allocator, f->err);
    cfx_status status = map ? build_constants(f, constants, map) : CFX_E_NOMEM;
    if (status == CFX_OK)
        status = build_rest(f, rest, map);
    cfx_node_map_free(map);
    return status;
}

cfx_status cfx_graph_split_constants(cfx_graph *g, const cfx_constants_options *what,
                                     cfx_subgraph *constants, cfx_subgraph *rest, cfx_error *err)
{
    cfx_error own;
    folder f = {.g = g, .what = what, .err = cfxi_base_error_or(err, &own),
                .model = {.modules = what->modules, .strict = what->strict}};
    *constants = *rest = (cfx_subgraph){0};
    cfxi_ir_graph_freeze(g);
    cfx_status status = split(&f, constants, rest);
    cfxi_ir_graph_thaw(g);
    if (status != CFX_OK) {
        cfx_subgraph_free(constants);
        cfx_subgraph_free(rest);
    }
    if (f.aliases.graph)
        cfxi_analysis_aliases_end(&f.aliases);
    cfxi_analysis_model_end(&f.model);
    cfx_node_map_free(f.known);
    cfxi_base_vec_free(&f.constants, sizeof(cfx_node *), g->allocator);
    cfxi_base_vec_free(&f.outputs, sizeof(cfx_node *), g->allocator);
    return status;
}
