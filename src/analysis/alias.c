/* alias.c - which values may share memory. See alias_impl.h. */
#include "ops/ops_impl.h"
#include "alias_impl.h"

/* ---- sets ---------------------------------------------------------------------------------- */

static uint32_t find(const cfxi_aliases *a, uint32_t at)
{
    while (a->sets[at].parent != at) {
        a->sets[at].parent = a->sets[a->sets[at].parent].parent;
        at = a->sets[at].parent;
    }
    return at;
}

cfxi_alias *cfxi_analysis_alias_set(const cfxi_aliases *a, const cfx_node *n)
{
    return &a->sets[find(a, cfxi_analysis_alias_place(a, n))];
}

static uint32_t greatest(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* Merges the last uses: two lists of two, in which the owners may be the same. */
static void merge_last(cfxi_alias *x, const cfxi_alias *y)
{
    if (y->owner == x->owner) {
        x->last = greatest(x->last, y->last);
        x->second = greatest(x->second, y->second);
    } else if (y->last > x->last) {
        x->second = greatest(x->last, y->second);
        x->last = y->last;
        x->owner = y->owner;
    } else {
        x->second = greatest(x->second, y->last);
    }
}

void cfxi_analysis_alias_union(cfxi_aliases *a, const cfx_node *m, const cfx_node *n)
{
    cfxi_alias *x = cfxi_analysis_alias_set(a, m);
    cfxi_alias *y = cfxi_analysis_alias_set(a, n);
    if (x == y)
        return;
    const uint32_t next = x->next;
    x->next = y->next;
    y->next = next;
    y->parent = (uint32_t)(x - a->sets);
    x->outside |= y->outside;
    x->scattered = x->scattered || y->scattered;
    merge_last(x, y);
}

/* Called before `n` joins another set. */
static void alias_same(cfxi_aliases *a, const cfx_node *n, const cfx_node *x)
{
    cfxi_alias *own = &a->sets[cfxi_analysis_alias_place(a, n)];
    own->object = own->owner = a->sets[cfxi_analysis_alias_place(a, x)].object;
    cfxi_analysis_alias_union(a, n, x);
}

uint32_t cfxi_analysis_alias_last_other(const cfxi_aliases *a, const cfx_node *n)
{
    const cfxi_alias *set = cfxi_analysis_alias_set(a, n);
    return set->owner == a->sets[cfxi_analysis_alias_place(a, n)].object ? set->second : set->last;
}

/* ---- what a call shares -------------------------------------------------------------------- */

typedef struct sharing {
    cfxi_aliases *aliases;
    cfx_node *node;
} sharing;

static cfx_status share(void *ctx, cfx_node *operand, unsigned touch)
{
    const sharing *s = ctx;
    if (touch & CFX_TOUCH_SHARES)
        cfxi_analysis_alias_union(s->aliases, s->node, operand);
    return CFX_OK;
}

static void share_unknown(cfxi_aliases *a, cfx_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++)
        cfxi_analysis_alias_union(a, n, n->inputs[i].def);
    cfxi_analysis_alias_set(a, n)->outside |= CFXI_OUTSIDE_FOREIGN;
}

static cfx_status join_call(cfxi_aliases *a, cfx_node *n, cfx_error *err)
{
    cfx_operator op;
    unsigned does;
    const cfx_library *library = cfxi_analysis_model_library(a->model);
    const cfx_node *written = cfxi_analysis_written(n, NULL);
    sharing s = {a, n};
    CFX_TRY(cfxi_analysis_does(a->model, n, &does, err));
    CFX_TRY(cfxi_analysis_model_operator(a->model, n, &op, err));
    if (cfxi_analysis_is_opaque(n, op, library, does))
        share_unknown(a, n);
    else if (written)
        alias_same(a, n, written);
    else
        (void)cfxi_analysis_node_touches(n, op, library, does, share, &s);
    return CFX_OK;
}

/* An attribute is the same object each time it is read; two may be one memory. */
static cfx_status join_attribute(cfxi_aliases *a, cfx_node *n, cfx_error *err)
{
    cfx_node *first = n->callee->first;
    if (first != n) {
        cfxi_analysis_alias_union(a, first, n);
        if (cfxi_analysis_alias_set(a, n)->outside)
            return CFX_OK;
    }
    const void *memory = cfxi_analysis_memory_at(a->model, n->callee->ref->name->data);
    cfxi_analysis_alias_set(a, n)->outside |=
        memory ? CFXI_OUTSIDE_ATTRIBUTE : CFXI_OUTSIDE_FOREIGN;
    if (!memory)
        return CFX_OK;
    cfx_node **other =
        cfxi_base_map_add(&a->memories, memory, sizeof *other, a->graph->allocator);
    if (!other)
        return cfxi_base_nomem(err);
    if (*other)
        cfxi_analysis_alias_union(a, *other, n);
    else
        *other = n;
    return CFX_OK;
}

cfx_status cfxi_analysis_alias_join(cfxi_aliases *a, cfx_node *n, cfx_error *err)
{
    if (n->op == CFX_OP_OUTPUT)
        return CFX_OK;
    if (n->op == CFX_OP_PLACEHOLDER) {
        cfxi_analysis_alias_set(a, n)->outside |= CFXI_OUTSIDE_FOREIGN;
        return CFX_OK;
    }
    cfxi_ir_graph_freeze(a->graph);  /* the host is asked for classes, and may run any code */
    cfx_status status =
        n->op == CFX_OP_GET_ATTR ? join_attribute(a, n, err) : join_call(a, n, err);
    cfxi_ir_graph_thaw(a->graph);
    return status;
}

cfx_status cfxi_analysis_alias_join_all(cfxi_aliases *a, cfx_error *err)
{
    for (cfx_node *n = a->graph->root.next; n != &a->graph->root; n = n->next)
        CFX_TRY(cfxi_analysis_alias_join(a, n, err));
    return CFX_OK;
}

/* ---- kinds of calls ------------------------------------------------------------------------ */

static bool is_true(cfx_value v) { return v.kind == CFX_KIND_BOOL && v.as.b; }

cfx_node *cfxi_analysis_written(const cfx_node *n, cfx_operator *op)
{
    cfx_schema_param param;
    const cfx_operator row = cfx_node_operator(n);
    if (!row || n->op == CFX_OP_CALL_MODULE || !cfx_operator_param(row, 0, &param) ||
        cfx_node_kwarg(n, "out").kind != CFX_KIND_INVALID)
        return NULL;
    cfx_operator functional = param.writes ? cfx_operator_functional(row) : row;
    if (!functional || (!param.writes && !is_true(cfx_node_operand(n, "inplace"))))
        return NULL;
    cfx_value x = cfx_node_arg(n, 0);
    if (op)
        *op = functional;
    return x.kind == CFX_KIND_NODE ? x.as.node : NULL;
}

bool cfxi_analysis_is_view(const cfx_node *n)
{
    cfx_schema_param param;
    cfx_schema_param result;
    const cfx_operator op = cfx_node_operator(n);
    return op && cfx_operator_regions(op) == 0 &&
           !(cfx_operator_flags(op) & CFX_OPERATOR_GLOBAL) && cfx_operator_param(op, 0, &param) &&
           cfx_operator_result(op, 0, &result) && param.alias && !param.writes &&
           param.alias == result.alias && !cfxi_analysis_arguments_write(n);
}

cfx_operator cfxi_analysis_is_scatter(const cfx_node *n)
{
    switch (cfx_node_operator(n)) {
    case CFX_OPID_select_scatter:
        return CFX_OPID_select;
    case CFX_OPID_slice_scatter:
        return CFX_OPID_slice;
    case CFX_OPID_diagonal_scatter:
        return CFX_OPID_diagonal;
    case CFX_OPID_as_strided_scatter:
        return CFX_OPID_as_strided;
    default:
        return CFX_OPID_NONE;
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

static bool is_base(const cfx_node *scatter, const cfx_node *n)
{
    const cfx_use *use = cfx_node_find_use(scatter, n);
    cfx_value base = cfx_node_arg(scatter, 0);
    return cfxi_analysis_is_scatter(scatter) && use && use->count == 1 &&
           base.kind == CFX_KIND_NODE && base.as.node == n;
}

static void find_last_use(const cfxi_aliases *a, const cfx_node *n, cfxi_alias_uses uses)
{
    cfxi_alias *set = &a->sets[cfxi_analysis_alias_place(a, n)];
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use)) {
        bool base = uses == CFXI_USES_REAL && is_base(use->user, n);
        set->scattered = set->scattered || base;
        if (uses == CFXI_USES_ALL || !(base || cfxi_analysis_is_view(use->user)))
            set->last = greatest(set->last, 1 + cfxi_analysis_alias_place(a, use->user));
    }
}

cfx_status cfxi_analysis_aliases_begin(cfxi_aliases *a, cfx_graph *g, cfxi_effect_model *model,
                                       cfxi_alias_uses uses, cfx_error *err)
{
    *a = (cfxi_aliases){.graph = g, .model = model, .n = g->size};
    a->sets = cfxi_base_alloc(g->allocator, a->n * sizeof *a->sets);
    a->places = cfx_node_map_new(g->allocator, err);
    if (!a->sets || !a->places || !cfxi_ir_node_map_reserve(a->places, a->n))
        return cfxi_base_nomem(err);
    uint32_t at = 0;
    cfxi_ir_graph_freeze(g);  /* the host is asked for names */
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        (void)cfx_node_operator(n);
        (void)cfx_node_map_set(a->places, n, cfx_value_int(at++), NULL);  /* there is room */
    }
    cfxi_ir_graph_thaw(g);
    at = 0;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next, at++) {
        a->sets[at] = (cfxi_alias){.parent = at, .next = at, .object = at, .owner = at};
        find_last_use(a, n, uses);
    }
    return CFX_OK;
}

void cfxi_analysis_aliases_end(cfxi_aliases *a)
{
    cfx_node_map_free(a->places);
    cfxi_base_map_free(&a->memories, sizeof(cfx_node *), a->graph->allocator);
    cfxi_base_free(a->graph->allocator, a->sets, a->n * sizeof *a->sets);
}
