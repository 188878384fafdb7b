/* node.c - creating nodes and reading them. */
#include "callee_impl.h"

_Static_assert(sizeof(cfx_node) <= 136, "docs/benchmarks.md states what a node costs");

/* ---- creating ------------------------------------------------------------------------------ */

static cfx_value empty_if_none(const cfx_graph *g, cfx_value v, cfx_kind kind)
{
    return v.kind == CFX_KIND_INVALID ? cfxi_ir_seq_value(kind, g->empty, 0) : v;
}

static cfx_status refuse_node(void *ctx, cfx_node *n)
{
    return cfx_error_set(ctx, CFX_E_TYPE, "the type of a node cannot hold a node (%%%s)",
                         cfx_node_name(n, NULL));
}

/* Types have no use edges, so a node in one could be erased unnoticed. */
cfx_status cfxi_ir_type_check(const cfx_graph *g, cfx_value type, cfx_error *err)
{
    if (type.kind == CFX_KIND_INVALID)
        return CFX_OK;
    CFX_TRY(cfx_value_each_node(type, refuse_node, err));
    return cfxi_ir_value_check(g, type, err);
}

static bool make_ext(cfx_node *n)
{
    if (n->ext)
        return true;
    n->ext = cfxi_base_arena_alloc(&n->graph->arena, sizeof *n->ext);
    if (n->ext)
        n->ext->type = cfx_value_invalid();
    return n->ext != NULL;
}

bool cfxi_ir_node_set_type(cfx_node *n, cfx_value type)
{
    if (!n->ext && type.kind == CFX_KIND_INVALID)
        return true;
    if (!make_ext(n))
        return false;
    cfxi_ir_value_hold(type);
    cfxi_ir_value_drop(n->graph, n->ext->type);
    n->ext->type = type;
    return true;
}

/* All that can fail, so that what follows cannot. The name comes last: it cannot be given back. */
static cfx_status prepare(cfx_node *n, cfxi_callee *callee, const char *wish, bool typed,
                          cfxi_arg_change *change, cfx_value args, cfx_value kwargs,
                          cfx_error *err)
{
    cfx_graph *g = n->graph;
    CFX_TRY(cfxi_ir_args_prepare(change, n, args, kwargs, err));
    if (typed && !make_ext(n))
        cfxi_base_nomem(err);
    else if (wish)
        n->name = cfxi_ir_namespace_take(&g->names, wish, strlen(wish), false, err);
    else if (g->nameless)
        n->name = g->nameless;
    else
        n->name = cfxi_ir_callee_name(g, callee, err);
    if (n->name)
        return CFX_OK;
    cfxi_ir_args_abandon(change);
    cfxi_base_arena_free(&g->arena, n->ext, sizeof *n->ext);
    return CFX_E_NOMEM;
}

static cfx_node *create(cfx_graph *g, cfxi_callee *callee, cfx_value args, cfx_value kwargs,
                        const char *wish, cfx_value type, cfx_error *err)
{
    cfxi_arg_change change;
    cfx_node *n = cfxi_base_arena_alloc(&g->arena, sizeof *n);
    if (!n) {
        cfxi_base_nomem(err);
        return NULL;
    }
    memset(n, 0, sizeof *n);
    n->graph = g;
    if (prepare(n, callee, wish, type.kind != CFX_KIND_INVALID, &change,
                empty_if_none(g, args, CFX_KIND_TUPLE), empty_if_none(g, kwargs, CFX_KIND_DICT),
                err) != CFX_OK) {
        cfxi_base_arena_free(&g->arena, n, sizeof *n);
        return NULL;
    }
    if (!n->name->owner)
        n->name->owner = n;
    cfxi_ir_node_set_type(n, type);
    cfxi_ir_callee_add(callee, n);
    cfxi_ir_list_insert(cfxi_ir_insert_before(g), n);
    cfxi_ir_args_commit(&change);
    g->size++;
    return n;
}

static cfx_status check_create(cfx_graph *g, cfx_opcode op, cfx_target target, cfx_value type,
                               cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    if ((unsigned)op >= CFX_OPCODE_COUNT)
        return cfx_error_set(err, CFX_E_VALUE, "%d is not an opcode", (int)op);
    if (target.object && op != CFX_OP_CALL_FUNCTION)
        return cfx_error_set(err, CFX_E_VALUE, "the target of a %s must be a name, not an object",
                             cfx_opcode_name(op));
    CFX_TRY(cfxi_ir_graph_begin_edit(g, err));
    return cfxi_ir_type_check(g, type, err);
}

/* A hook did not want the node: whatever the hooks say to its end, it goes. */
static void take_back(cfx_graph *g, cfx_node *n)
{
    if (!cfxi_ir_node_erased(n))
        cfxi_ir_run_hooks(g, CFX_HOOK_ERASE, n, cfx_value_invalid(), NULL, NULL);
    if (!cfxi_ir_node_erased(n) && n->n_users == 0)
        cfxi_ir_node_erase(n);
}

/* Ends the creation of `n`, or of nothing. Hooks and the host may run any code, and erase it. */
static cfx_node *announce(cfx_graph *g, cfx_node *n, cfx_error *err)
{
    cfx_status status = CFX_OK;
    cfx_iter pin;  /* what is erased stays readable */
    cfx_iter_begin(&pin, g, false);
    if (n && g->hooks.size)
        status = cfxi_ir_run_hooks(g, CFX_HOOK_CREATE, n, cfx_value_invalid(), NULL, err);
    if (status != CFX_OK)
        take_back(g, n);
    cfxi_ir_graph_settle(g);
    if (status == CFX_OK && n && cfxi_ir_node_erased(n))
        status = cfx_error_set(err, CFX_E_GRAPH, "node %%%s was erased while it was being created",
                               n->name->data);
    if (!n || status != CFX_OK) {
        cfx_iter_end(&pin);
        return NULL;
    }
    g->open_iters--;  /* without recycling anything, which might run code again */
    return n;
}

/* The three values that the node was given stay even if it goes. */
static cfx_node *announce_holding(cfx_graph *g, cfx_node *n, const cfx_value given[3],
                                  cfx_error *err)
{
    for (size_t i = 0; i < 3; i++)
        cfxi_ir_value_hold(given[i]);
    n = announce(g, n, err);
    for (size_t i = 0; i < 3; i++)
        cfxi_ir_value_unhold(given[i]);
    return n;
}

cfx_node *cfx_graph_create(cfx_graph *g, cfx_opcode op, cfx_target target, cfx_value args,
                           cfx_value kwargs, const char *name, cfx_value type, cfx_error *err)
{
    if (check_create(g, op, target, type, err) != CFX_OK)
        return NULL;
    cfx_node *n = NULL;
    cfxi_callee *callee = cfxi_ir_callee_get(g, op, target, err);
    if (callee) {
        callee->count++;  /* keeps it while the host is asked */
        if (name || g->nameless || cfxi_ir_callee_ask(g, callee, err) == CFX_OK)
            n = create(g, callee, args, kwargs, name, type, err);
        callee->count--;
        cfxi_ir_callee_tidy(g, callee);
    }
    if (n && !g->hooks.size && !g->dead_refs)
        return n;
    return announce_holding(g, n, (const cfx_value[]){args, kwargs, type}, err);
}

static cfx_target by_name(const char *name)
{
    return (cfx_target){.name = name, .size = name ? strlen(name) : 0};
}

cfx_node *cfx_graph_placeholder(cfx_graph *g, const char *name, cfx_error *err)
{
    return cfx_graph_create(g, CFX_OP_PLACEHOLDER, by_name(name), cfx_value_invalid(),
                            cfx_value_invalid(), NULL, cfx_value_invalid(), err);
}

cfx_node *cfxi_ir_call_by_name(cfx_graph *g, const char *target, const cfx_value *args, size_t n,
                               const char *wish, cfx_error *err)
{
    const cfx_value tuple = cfx_value_tuple(g, args, n, err);
    const cfx_value name = tuple.kind == CFX_KIND_INVALID
                               ? tuple : cfx_value_name(g, target, strlen(target), err);
    cfx_node *call = NULL;
    if (name.kind != CFX_KIND_INVALID) {
        void *object = cfx_value_object(name);
        const cfx_target t = object ? (cfx_target){.object = object} : by_name(target);
        call = cfx_graph_create(g, CFX_OP_CALL_FUNCTION, t, tuple, cfx_value_invalid(), wish,
                                cfx_value_invalid(), err);
        cfx_value_discard(g, name);
    }
    if (!call && tuple.kind != CFX_KIND_INVALID)
        cfx_value_discard(g, tuple);
    for (size_t i = 0; !call && tuple.kind == CFX_KIND_INVALID && i < n; i++)
        cfx_value_discard(g, args[i]);
    return call;
}

bool cfxi_ir_is_flag(const cfx_node *n)
{
    static const char flag[] = "training";
    size_t size = 0;
    const char *path = n->op == CFX_OP_GET_ATTR ? cfx_node_target(n, &size, NULL) : NULL;
    const size_t behind = sizeof flag - 1;
    return path && size >= behind && strcmp(path + size - behind, flag) == 0 &&
           (size == behind || path[size - behind - 1] == '.');
}

cfx_node *cfx_graph_get_attr(cfx_graph *g, const char *path, cfx_error *err)
{
    return cfx_graph_create(g, CFX_OP_GET_ATTR, by_name(path), cfx_value_invalid(),
                            cfx_value_invalid(), NULL, cfx_value_invalid(), err);
}

/* A dict of keyword arguments, or INVALID with *err set. */
static cfx_value kwargs_value(cfx_graph *g, const cfx_kwarg *kwargs, size_t n, cfx_error *err)
{
    size_t bytes;
    cfx_value *items = NULL;
    if (cfxi_base_mul_size(n, 2 * sizeof *items, 0, &bytes))
        items = cfxi_base_alloc(g->allocator, bytes);
    if (!items) {
        cfxi_base_nomem(err);
        return cfx_value_invalid();
    }
    for (size_t i = 0; i < n; i++) {
        items[2 * i] = cfx_value_str(g, kwargs[i].name, strlen(kwargs[i].name), err);
        items[2 * i + 1] = kwargs[i].value;
    }
    cfx_value dict = cfx_value_seq(g, CFX_KIND_DICT, items, 2 * n, err);
    for (size_t i = 0; dict.kind == CFX_KIND_INVALID && i < n; i++)
        cfx_value_discard(g, items[2 * i]);
    cfxi_base_free(g->allocator, items, bytes);
    return dict;
}

static void each_given(const cfx_value *args, size_t n, const cfx_kwarg *kwargs, size_t n_kwargs,
                       void (*fn)(cfx_value v))
{
    for (size_t i = 0; i < n; i++)
        fn(args[i]);
    for (size_t i = 0; i < n_kwargs; i++)
        fn(kwargs[i].value);
}

cfx_node *cfx_graph_call(cfx_graph *g, cfx_opcode op, const char *target, const cfx_value *args,
                         size_t n, const cfx_kwarg *kwargs, size_t n_kwargs, cfx_error *err)
{
    if (cfxi_base_expect(g, "graph", err) != CFX_OK)
        return NULL;
    cfx_value tuple = cfx_value_tuple(g, args, n, err);
    if (tuple.kind == CFX_KIND_INVALID)
        return NULL;
    cfx_value dict = n_kwargs ? kwargs_value(g, kwargs, n_kwargs, err) : cfx_value_invalid();
    cfx_node *node = NULL;
    if (n_kwargs == 0 || dict.kind != CFX_KIND_INVALID)
        node =
            cfx_graph_create(g, op, by_name(target), tuple, dict, NULL, cfx_value_invalid(), err);
    if (node)
        return node;
    each_given(args, n, kwargs, n_kwargs, cfxi_ir_value_hold);  /* the caller's values stay */
    cfx_value_discard(g, tuple);
    cfx_value_discard(g, dict);
    each_given(args, n, kwargs, n_kwargs, cfxi_ir_value_unhold);
    return NULL;
}

cfx_node *cfx_graph_output(cfx_graph *g, cfx_value result, cfx_error *err)
{
    return cfx_graph_call(g, CFX_OP_OUTPUT, "output", &result, 1, NULL, 0, err);
}

/* ---- reading ------------------------------------------------------------------------------- */

cfx_graph *cfx_node_graph(const cfx_node *n) { return n->graph; }
cfx_opcode cfx_node_op(const cfx_node *n) { return (cfx_opcode)n->op; }
bool cfx_node_is_erased(const cfx_node *n) { return cfxi_ir_node_erased(n); }
void *cfx_node_binding(const cfx_node *n) { return n->binding; }
void cfx_node_set_binding(cfx_node *n, void *binding) { n->binding = binding; }
uint64_t cfx_node_order(const cfx_node *n) { return n->order; }
bool cfx_node_before(const cfx_node *a, const cfx_node *b) { return a->order < b->order; }

const char *cfx_node_name(const cfx_node *n, size_t *size)
{
    if (size)
        *size = n->name ? n->name->size : 4;
    return n->name ? n->name->data : "root";
}

const char *cfx_node_target(const cfx_node *n, size_t *size, cfx_error *err)
{
    if (!n->callee) {
        cfx_error_set(err, CFX_E_GRAPH, "the root of a graph has no target");
        return NULL;
    }
    const cfx_str *name = cfxi_ir_ref_qualified_name(n->graph, n->callee->ref, err);
    if (name && size)
        *size = name->size;
    return name ? name->data : NULL;
}

void *cfx_node_target_object(const cfx_node *n)
{
    return n->callee ? n->callee->ref->object : NULL;
}

bool cfx_node_same_target(const cfx_node *a, const cfx_node *b)
{
    return a->callee && b->callee && a->callee->ref == b->callee->ref;
}

cfx_value cfx_node_args(const cfx_node *n)
{
    return n->args ? cfxi_ir_seq_value(CFX_KIND_TUPLE, n->args, n->args_depth)
                   : cfxi_ir_seq_value(CFX_KIND_TUPLE, n->graph->empty, 1);
}

cfx_value cfx_node_kwargs(const cfx_node *n)
{
    return n->kwargs ? cfxi_ir_seq_value(CFX_KIND_DICT, n->kwargs, n->kwargs_depth)
                     : cfxi_ir_seq_value(CFX_KIND_DICT, n->graph->empty, 1);
}

cfx_value cfx_node_type(const cfx_node *n) { return n->ext ? n->ext->type : cfx_value_invalid(); }
size_t cfx_node_num_args(const cfx_node *n) { return n->args ? n->args->size : 0; }

cfx_value cfx_node_arg(const cfx_node *n, size_t i)
{
    return n->args && i < n->args->size ? n->args->items[i] : cfx_value_invalid();
}

cfx_value cfx_node_kwarg(const cfx_node *n, const char *key)
{
    return cfxi_ir_value_get(cfx_node_kwargs(n), key);
}
