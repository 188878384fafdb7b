/* equal.c - whether two values or graphs are the same.
 *
 * Nodes of two graphs correspond by their position, which their marks hold during the walk. Values
 * and regions are walked with a stack (walk_impl.h); flat arguments never touch it.
 */
#include "walk_impl.h"

/* ---- comparing ----------------------------------------------------------------------------- */

/* What counts as the same, at a point of the walk. */
enum {
    HOW_GIVEN,  /* as the caller says */
    HOW_PLAIN,  /* as cfx_value_equal says */
    HOW_NAMES,  /* inside of two graphs, whose names and locations count */
    HOW_SHAPE,  /* inside of two graphs that need only compute the same */
    HOWS,
    HOW_BITS = 3  /* of a frame's mode; the rest is a set's phase */
};

typedef struct comparer {
    cfxi_walk walk;
    cfxi_same hows[HOWS];       /* ctx of HOW_NAMES and HOW_SHAPE is this struct */
    const cfx_graph *a, *b;     /* the graphs of the scopes below */
    uint32_t scope_a, scope_b;  /* the last scopes found to be the same */
} comparer;

/* OPEN: it depends on the frame that is on top now. */
typedef enum answer { NO, YES, OPEN } answer;

static bool same_str(const cfx_str *a, const cfx_str *b)
{
    return a == b || (a && b && a->size == b->size && memcmp(a->data, b->data, a->size) == 0);
}

/* A name stands for the object that has it. */
bool cfxi_ir_same_ref(cfx_ref *a, cfx_ref *b)
{
    if (a == b)
        return true;
    if (a->kind == CFXI_REF_NAME || b->kind == CFXI_REF_NAME) {
        const cfx_str *name = cfxi_ir_ref_qualified_name(a->graph, a, NULL);
        return name && same_str(name, cfxi_ir_ref_qualified_name(b->graph, b, NULL));
    }
    if (a->object == b->object)
        return true;
    const cfx_host *host = a->graph->host;
    return host == b->graph->host && host->equal &&
           host->equal(host->ctx, a->object, b->object) == 1;
}

/* In a walk over two graphs: whether the nodes are at the same place. */
static bool same_place(const void *ctx, const cfx_node *a, const cfx_node *b)
{
    cfxi_walk *walk = &((comparer *)(uintptr_t)ctx)->walk;
    const cfxi_walk_frame *f = cfxi_ir_walk_graph(walk);
    uint32_t at = cfxi_ir_position(f->node->graph, f->mark, a);
    return at == cfxi_ir_position(f->twin->graph, (uint32_t)f->own.number, b) &&
           (at != UINT32_MAX || a == b);
}

static bool same_float(const cfxi_same *how, cfx_value a, cfx_value b)
{
    bool nans = a.as.f != a.as.f && b.as.f != b.as.f;
    switch (how->floats) {
    case CFXI_FLOATS_TEXT:
        return a.as.i == b.as.i || nans;
    case CFXI_FLOATS_BITS:
        return a.as.i == b.as.i && !nans;
    case CFXI_FLOATS_PYTHON:
        break;
    }
    return a.as.f == b.as.f;
}

static bool is_number(cfx_value v) { return v.kind >= CFX_KIND_BOOL && v.kind <= CFX_KIND_FLOAT; }

/* As Python compares True, 1 and 1.0. */
static bool same_number(cfx_value a, cfx_value b)
{
    int64_t i = a.kind == CFX_KIND_BOOL ? a.as.b : a.as.i;
    int64_t k = b.kind == CFX_KIND_BOOL ? b.as.b : b.as.i;
    if (a.kind != CFX_KIND_FLOAT && b.kind != CFX_KIND_FLOAT)
        return i == k;
    double x = a.kind == CFX_KIND_FLOAT ? a.as.f : (double)i;
    double y = b.kind == CFX_KIND_FLOAT ? b.as.f : (double)k;
    return x == y;
}

static bool same_leaf(const cfxi_same *how, cfx_value a, cfx_value b)
{
    if (cfxi_ir_is_str(a))
        return same_str(a.as.str, b.as.str);
    switch (a.kind) {
    case CFX_KIND_INVALID:
    case CFX_KIND_NONE:
    case CFX_KIND_ELLIPSIS:
        return true;
    case CFX_KIND_BOOL:
        return a.as.b == b.as.b;
    case CFX_KIND_FLOAT:
        return same_float(how, a, b);
    case CFX_KIND_NODE:
        return how->node ? how->node(how->ctx, a.as.node, b.as.node) : a.as.node == b.as.node;
    case CFX_KIND_HOST:
        return how->exact ? a.as.ref == b.as.ref : cfxi_ir_same_ref(a.as.ref, b.as.ref);
    case CFX_KIND_GRAPH:
        if (how->region)
            return how->region(how->ctx, a.as.ref, b.as.ref);
        return how->regions_apart || a.as.ref == b.as.ref;
    default:
        return a.as.i == b.as.i;
    }
}

/* Whether the answer needs a look inside of the two. */
static bool is_deep(const cfxi_same *how, cfx_value v)
{
    return cfxi_ir_is_seq(v) ||
           (v.kind == CFX_KIND_GRAPH && !how->region && !how->regions_apart && !how->exact);
}

static bool same_flat(const cfxi_same *how, cfx_value a, cfx_value b)
{
    if (a.kind == b.kind)
        return same_leaf(how, a, b);
    return how->numbers && is_number(a) && is_number(b) && same_number(a, b);
}

/* Goes on with items *i, ... of two arrays: YES at their end, OPEN at two that are deep. */
static inline answer flat_items(const cfxi_same *how, const cfx_value *a, const cfx_value *b,
                                uint32_t n, uint32_t *i)
{
    for (; *i < n; ++*i) {
        if (a[*i].kind == b[*i].kind && is_deep(how, a[*i]))
            return OPEN;
        if (!same_flat(how, a[*i], b[*i]))
            return NO;
    }
    return YES;
}

/* ---- entering and leaving ------------------------------------------------------------------ */

static unsigned how_of(const cfxi_walk_frame *f) { return f->mode & HOW_BITS; }

/* The phases of a set: its items in order; and if they differ, how often each is in `a`, in `b`. */
enum { IN_ORDER = 0, COUNT_A = 4, COUNT_B = 8 };

static bool is_set(const cfxi_walk_frame *f)
{
    return f->what == CFXI_WALK_ITEMS && f->n > 1 &&
           (f->kind == CFX_KIND_SET || f->kind == CFX_KIND_FROZENSET);
}

static answer open_items(comparer *c, unsigned how, uint32_t kind, const cfx_seq *a,
                         const cfx_seq *b)
{
    const uint32_t n = a ? a->size : 0;
    uint32_t i = 0;
    if (n != (b ? b->size : 0))
        return NO;
    answer found = n ? flat_items(&c->hows[how], a->items, b->items, n, &i) : YES;
    const bool set = (kind == CFX_KIND_SET || kind == CFX_KIND_FROZENSET) && n > 1 &&
                     !c->hows[how].exact;
    if (found == YES || (found == NO && !set))
        return found;
    cfxi_walk_frame *f = cfxi_ir_walk_pair(&c->walk, set ? kind : CFX_KIND_TUPLE, a->items,
                                           b->items, n);
    if (!f)
        return NO;
    f->i = found == NO ? 0 : i;
    f->mode = (uint16_t)(how | (found == NO ? COUNT_A : IN_ORDER));
    return OPEN;
}

/* `regions`: what their inputs are called is seen by nobody. */
static answer open_graphs(comparer *c, const cfx_graph *x, const cfx_graph *y, bool shape_only,
                          bool regions)
{
    cfx_graph *a = (cfx_graph *)(uintptr_t)x;  /* only marks change, which nobody reads later */
    cfx_graph *b = (cfx_graph *)(uintptr_t)y;
    if (a == b || a->size != b->size)
        return a == b ? YES : NO;
    cfxi_walk_frame *f = cfxi_ir_walk_nodes(&c->walk, a);
    if (!f)
        return NO;
    f->node = a->root.next;
    f->twin = b->root.next;
    f->mode = shape_only ? HOW_SHAPE : HOW_NAMES;
    f->kind = regions;
    f->mark = cfxi_ir_graph_number(a);
    f->own.number = cfxi_ir_graph_number(b);
    cfxi_ir_graph_freeze(a);
    cfxi_ir_graph_freeze(b);
    return OPEN;
}

static answer ask(comparer *c, unsigned how, cfx_value a, cfx_value b)
{
    const cfxi_same *same = &c->hows[how];
    if (a.kind != b.kind || !is_deep(same, a))
        return same_flat(same, a, b) ? YES : NO;
    if (cfxi_ir_is_seq(a))
        return open_items(c, how, a.kind, a.as.seq, b.as.seq);
    return open_graphs(c, a.as.ref->region, b.as.ref->region, same->shape_only, same->shape_only);
}

static void leave(comparer *c)
{
    const cfxi_walk_frame *f = cfxi_ir_walk_pop(&c->walk);
    if (f->what != CFXI_WALK_NODES)
        return;
    cfxi_ir_graph_thaw(f->twin->graph);
    cfxi_ir_graph_thaw(f->node->graph);
}

/* ---- the next piece ------------------------------------------------------------------------ */

/* NO leaves the frame where it is. */
static answer step_items(comparer *c)
{
    for (;;) {
        cfxi_walk_frame *f = cfxi_ir_walk_top(&c->walk);
        const unsigned how = how_of(f);
        answer found = flat_items(&c->hows[how], f->items, f->other, f->n, &f->i);
        if (found == YES)
            leave(c);
        if (found != OPEN)
            return found;
        const uint32_t i = f->i++;
        found = ask(c, how, f->items[i], f->other[i]);
        if (found != YES)
            return found;
    }
}

/* Whether all of an item's equals have been counted; begins with the next one then. */
static answer end_count(comparer *c, cfxi_walk_frame *f)
{
    f->mark = 0;
    if (f->mode & COUNT_A) {
        f->mode = (uint16_t)(how_of(f) | COUNT_B);
        return OPEN;
    }
    const bool as_often = (uint32_t)f->own.number == f->own.number >> 32;
    f->mode = (uint16_t)(how_of(f) | COUNT_A);
    f->own.number = 0;
    if (as_often && ++f->i < f->n)
        return OPEN;
    leave(c);
    return as_often ? YES : NO;
}

/* The items of a set come in any order: each must be as often in `b` as in `a`. Quadratic, but only
 * for sets whose order differs. `found` is the answer for the last pair, OPEN before the first. */
static answer step_count(comparer *c, answer found)
{
    cfxi_walk_frame *f = cfxi_ir_walk_top(&c->walk);
    for (;;) {
        const bool in_a = f->mode & COUNT_A;
        if (found != OPEN) {
            f->own.number += found == NO ? 0 : in_a ? 1 : (uint64_t)1 << 32;
            f->mark++;
        }
        if (f->mark == f->n) {
            found = end_count(c, f);
            if (found != OPEN)
                return found;
            continue;
        }
        const cfx_value item = f->items[f->i];
        if (in_a && f->mark == f->i)
            found = YES;
        else
            found = in_a ? ask(c, HOW_PLAIN, item, f->items[f->mark])
                         : ask(c, how_of(f), item, f->other[f->mark]);
        if (found == OPEN || c->walk.status != CFX_OK)
            return found;
    }
}

static answer step_set(comparer *c, answer found)
{
    cfxi_walk_frame *f = cfxi_ir_walk_top(&c->walk);
    const bool in_order = !(f->mode & (COUNT_A | COUNT_B));
    if (in_order && found != NO)
        return step_items(c);
    if (in_order) {
        f->i = 0;
        f->mode = (uint16_t)(how_of(f) | COUNT_A);
        found = OPEN;
    }
    return step_count(c, found);
}

static bool same_location(const cfx_node *a, const cfx_node *b)
{
    const cfxi_location *x = cfxi_ir_location_of(a);
    const cfxi_location *y = cfxi_ir_location_of(b);
    if (!x || !y)
        return x == y;
    return x->line == y->line && same_str(x->file, y->file);
}

/* Chains of scopes are compared up to the pair that was the same last time: neighbours on the list
 * mostly share their scope. */
static bool same_scope(comparer *c, const cfx_node *a, const cfx_node *b)
{
    uint32_t x = a->scope;
    uint32_t y = b->scope;
    if (c->a != a->graph || c->b != b->graph)
        c->scope_a = c->scope_b = 0;
    c->a = a->graph;
    c->b = b->graph;
    while (x && y && !(x == c->scope_a && y == c->scope_b)) {
        const cfxi_scope *s = cfxi_ir_scope_at(c->a, x);
        const cfxi_scope *t = cfxi_ir_scope_at(c->b, y);
        if (!same_str(s->path, t->path) || !same_str(s->type, t->type))
            return false;
        x = s->parent;
        y = t->parent;
    }
    if (!x != !y)
        return false;
    c->scope_a = a->scope;
    c->scope_b = b->scope;
    return true;
}

static bool same_head(const cfx_node *a, const cfx_node *b, bool regions)
{
    const bool input = regions && cfxi_ir_is_plain_input(a) && cfxi_ir_is_plain_input(b);
    return a->op == b->op && (input || cfxi_ir_same_ref(a->callee->ref, b->callee->ref));
}

static bool same_tail(comparer *c, const cfx_node *a, const cfx_node *b, bool shape_only)
{
    return shape_only || (a->name->size == b->name->size &&
                          memcmp(a->name->data, b->name->data, a->name->size) == 0 &&
                          same_location(a, b) && same_scope(c, a, b));
}

/* The fields of a node, in the order in which they are compared. */
enum { FIELD_ARGS, FIELD_KWARGS, FIELD_TYPE, FIELD_TAIL };

static answer ask_field(comparer *c, cfxi_walk_frame *f)
{
    const cfx_node *a = f->node;
    const cfx_node *b = f->twin;
    const unsigned how = how_of(f);
    switch (f->i++) {
    case FIELD_ARGS:
        if (!same_head(a, b, f->kind))
            return NO;
        return open_items(c, how, CFX_KIND_TUPLE, a->args, b->args);
    case FIELD_KWARGS:
        return open_items(c, how, CFX_KIND_TUPLE, a->kwargs, b->kwargs);
    case FIELD_TYPE:
        return ask(c, how, cfx_node_type(a), cfx_node_type(b));
    default:
        f->i = 0;
        f->node = a->next;
        f->twin = b->next;
        return same_tail(c, a, b, how == HOW_SHAPE) ? YES : NO;
    }
}

static answer step_nodes(comparer *c)
{
    cfxi_walk_frame *f = cfxi_ir_walk_top(&c->walk);
    answer found = YES;
    while (found == YES && !cfxi_ir_node_is_root(f->node))
        found = ask_field(c, f);
    if (found == YES)
        leave(c);
    return found;
}

static answer step(comparer *c, answer found)
{
    const cfxi_walk_frame *f = cfxi_ir_walk_top(&c->walk);
    if (is_set(f))
        return step_set(c, found);
    if (found == NO) {
        leave(c);
        return NO;
    }
    return f->what == CFXI_WALK_NODES ? step_nodes(c) : step_items(c);
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* The answer is a bool, which cannot tell that memory ran out: so the stack does not come from the
 * allocator of a graph, which may have a budget, but from malloc. */
static void comparer_begin(comparer *c, const cfxi_same *how)
{
    cfxi_ir_walk_begin(&c->walk, NULL);
    c->hows[HOW_GIVEN] = *how;
    c->hows[HOW_PLAIN] = (cfxi_same){.floats = CFXI_FLOATS_TEXT};
    c->hows[HOW_NAMES] = (cfxi_same){.node = same_place, .ctx = c, .floats = CFXI_FLOATS_TEXT};
    c->hows[HOW_SHAPE] = c->hows[HOW_NAMES];
    c->hows[HOW_SHAPE].shape_only = true;
    c->a = c->b = NULL;
}

static bool compare(comparer *c, answer found)
{
    while (c->walk.depth > 0 && c->walk.status == CFX_OK)
        found = step(c, found);
    while (c->walk.depth > 0)
        leave(c);
    return cfxi_ir_walk_end(&c->walk, NULL) == CFX_OK && found == YES;
}

bool cfxi_ir_same_value(const cfxi_same *how, cfx_value a, cfx_value b)
{
    if (a.kind != b.kind || !is_deep(how, a))
        return same_flat(how, a, b);
    comparer c;
    comparer_begin(&c, how);
    return compare(&c, ask(&c, HOW_GIVEN, a, b));
}

bool cfxi_ir_same_items(const cfxi_same *how, const cfx_seq *a, const cfx_seq *b)
{
    const uint32_t n = a ? a->size : 0;
    uint32_t i = 0;
    if (n != (b ? b->size : 0))
        return false;
    const answer found = n ? flat_items(how, a->items, b->items, n, &i) : YES;
    if (found != OPEN)
        return found == YES;
    comparer c;
    comparer_begin(&c, how);
    return compare(&c, open_items(&c, HOW_GIVEN, CFX_KIND_TUPLE, a, b));
}

bool cfx_value_equal(cfx_value a, cfx_value b)
{
    const cfxi_same how = {.floats = CFXI_FLOATS_TEXT};
    return cfxi_ir_same_value(&how, a, b);
}

static bool same_graph(const cfx_graph *a, const cfx_graph *b, bool shape_only, bool regions)
{
    const cfxi_same how = {.floats = CFXI_FLOATS_TEXT};
    comparer c;
    comparer_begin(&c, &how);
    return compare(&c, open_graphs(&c, a, b, shape_only, regions));
}

bool cfx_graph_equal(const cfx_graph *a, const cfx_graph *b, bool shape_only)
{
    return same_graph(a, b, shape_only, false);
}

bool cfxi_ir_region_equal(const cfx_graph *a, const cfx_graph *b)
{
    return same_graph(a, b, true, true);
}
