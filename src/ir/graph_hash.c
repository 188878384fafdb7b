/* graph_hash.c - a hash of values and graphs that agrees with equal.c.
 *
 * Nodes count by their position, which their marks hold meanwhile. Each frame of the walk has its
 * hash so far as its own number; flat arguments need no frame.
 */
#include "walk_impl.h"

enum { NAMELESS = 0x6e6f6e65 };  /* stands for host objects without a qualified name */

static uint64_t hash_str(uint64_t h, const cfx_str *str)
{
    return cfxi_base_hash_mix(h, str ? cfxi_base_hash_bytes(str->data, str->size) : 0);
}

uint64_t cfxi_ir_hash_ref(cfxi_hasher *c, uint64_t h, cfx_ref *ref)
{
    cfx_error why = {.status = CFX_OK};
    const cfx_str *name = cfxi_ir_ref_qualified_name(c->graph, ref, &why);
    if (name)
        return hash_str(h, name);
    if (why.status != CFX_E_KEY && c->status == CFX_OK) {
        c->status = why.status;
        if (c->err)
            *c->err = why;
    }
    return cfxi_base_hash_mix(h, c->by_identity ? (uintptr_t)ref->object : NAMELESS);
}

/* A value that holds no others. */
static uint64_t hash_leaf(cfxi_hasher *c, cfx_value v)
{
    uint64_t h = cfxi_base_hash_mix(0, v.kind);
    if (cfxi_ir_is_str(v))
        return hash_str(h, v.as.str);
    switch (v.kind) {
    case CFX_KIND_INVALID:
    case CFX_KIND_NONE:
    case CFX_KIND_ELLIPSIS:
        return h;
    case CFX_KIND_BOOL:
        return cfxi_base_hash_mix(h, v.as.b);
    case CFX_KIND_FLOAT:
        return cfxi_base_hash_mix(h, v.as.f != v.as.f ? 1 : (uint64_t)v.as.i);
    case CFX_KIND_NODE:
        return cfxi_base_hash_mix(h, c->node(c, v.as.node));
    case CFX_KIND_HOST:
        return cfxi_ir_hash_ref(c, h, v.as.ref);
    default:
        return cfxi_base_hash_mix(h, (uint64_t)v.as.i);
    }
}

static bool has_depth(cfx_value v) { return cfxi_ir_is_seq(v) || v.kind == CFX_KIND_GRAPH; }

/* A frame's own number is its hash so far. */
typedef struct hash_walk {
    cfxi_walk walk;
    cfxi_hasher *given;  /* for what is outside of every graph that the walk has entered */
    cfxi_hasher inner;   /* for what is inside */
    uint32_t stamp;      /* the first mark of the innermost graph */
} hash_walk;

enum { HASH_CONTAINER, HASH_ARGS };  /* the mode of a frame of items */

static cfxi_hasher *hasher_of(hash_walk *w) { return w->walk.graph ? &w->inner : w->given; }

static uint64_t hash_place(const cfxi_hasher *c, const cfx_node *n)
{
    return cfxi_ir_position(c->graph, *(const uint32_t *)c->ctx, n);
}

/* The innermost graph is `f`'s now. */
static void settle_in(hash_walk *w, const cfxi_walk_frame *f)
{
    w->inner.graph = f->node->graph;
    w->inner.region = f->kind;
    w->inner.scope = 0;
    w->inner.scope_hash = 0;
    w->stamp = f->mark;
}

static void enter_graph(hash_walk *w, cfx_graph *g, bool region)
{
    cfxi_walk_frame *f = cfxi_ir_walk_nodes(&w->walk, g);
    if (!f)
        return;
    f->node = g->root.next;
    f->kind = region;
    f->mark = cfxi_ir_graph_number(g);
    f->own.number = cfxi_base_hash_mix(0, g->size);
    settle_in(w, f);
}

/* A container or a region. */
static void enter_value(hash_walk *w, cfx_value v)
{
    if (v.kind == CFX_KIND_GRAPH) {
        enter_graph(w, v.as.ref->region, w->inner.shape_only);
        return;
    }
    cfxi_walk_frame *f = cfxi_ir_walk_into(&w->walk, v);
    if (!f)
        return;
    const bool set = v.kind == CFX_KIND_SET || v.kind == CFX_KIND_FROZENSET;
    f->own.number = set ? f->n : cfxi_base_hash_mix(cfxi_base_hash_mix(0, v.kind), f->n);
}

/* Adds items *i, ... to `h`, up to one with others inside. The order of a set does not count. */
static inline uint64_t hash_flat(cfxi_hasher *c, uint64_t h, const cfx_value *items, uint32_t n,
                                 bool set, uint32_t *i)
{
    for (; *i < n && !has_depth(items[*i]); ++*i) {
        const uint64_t x = hash_leaf(c, items[*i]);
        h = set ? h + x : cfxi_base_hash_mix(h, x);
    }
    return h;
}

static void enter_args(hash_walk *w, const cfx_seq *seq, uint64_t h, uint32_t i)
{
    cfxi_walk_frame *f = cfxi_ir_walk_items(&w->walk, CFX_KIND_TUPLE, seq->items, seq->size);
    if (!f)
        return;
    f->i = i;
    f->mode = HASH_ARGS;
    f->own.number = h;
}

/* The arguments of a node, unless they are flat, become a frame. */
static void hash_args(hash_walk *w, cfxi_walk_frame *f, const cfx_seq *seq)
{
    const uint32_t n = seq ? seq->size : 0;
    uint32_t i = 0;
    uint64_t h = cfxi_base_hash_mix(f->own.number, n);
    if (n)
        h = hash_flat(&w->inner, h, seq->items, n, false, &i);
    f->own.number = h;
    if (i < n)
        enter_args(w, seq, h, i);
}

static uint64_t hash_scope(cfxi_hasher *c, uint32_t scope)
{
    if (scope == c->scope)
        return c->scope_hash;
    uint64_t h = 0;
    for (uint32_t at = scope; at; at = cfxi_ir_scope_at(c->graph, at)->parent) {
        h = hash_str(h, cfxi_ir_scope_at(c->graph, at)->path);
        h = hash_str(h, cfxi_ir_scope_at(c->graph, at)->type);
    }
    c->scope = scope;
    c->scope_hash = h;
    return h;
}

/* The fields of a node, in the order in which they count. */
enum { FIELD_ARGS, FIELD_KWARGS, FIELD_TYPE, FIELD_TAIL };

static uint64_t hash_head(cfxi_hasher *c, uint64_t h, const cfx_node *n)
{
    h = cfxi_base_hash_mix(h, n->op);
    return c->region && cfxi_ir_is_plain_input(n) ? h : cfxi_ir_hash_ref(c, h, n->callee->ref);
}

static uint64_t hash_tail(cfxi_hasher *c, uint64_t h, const cfx_node *n)
{
    if (c->shape_only)
        return h;
    const cfxi_location *where = cfxi_ir_location_of(n);
    h = cfxi_base_hash_mix(h, cfxi_base_hash_bytes(n->name->data, n->name->size));
    if (where)
        h = cfxi_base_hash_mix(hash_str(h, where->file), where->line);
    return cfxi_base_hash_mix(h, hash_scope(c, n->scope));
}

static void hash_field(hash_walk *w, cfxi_walk_frame *f)
{
    const cfx_node *n = f->node;
    const cfx_value type = cfx_node_type(n);
    switch (f->i++) {
    case FIELD_ARGS:
        f->own.number = hash_head(&w->inner, f->own.number, n);
        hash_args(w, f, n->args);
        break;
    case FIELD_KWARGS:
        hash_args(w, f, n->kwargs);
        break;
    case FIELD_TYPE:
        if (has_depth(type))
            enter_value(w, type);
        else
            f->own.number = cfxi_base_hash_mix(f->own.number, hash_leaf(&w->inner, type));
        break;
    default:
        f->own.number = hash_tail(&w->inner, f->own.number, n);
        f->node = n->next;
        f->i = 0;
        break;
    }
}

/* Adds what is done to the frame that it is part of; returns its hash. */
static uint64_t leave_frame(hash_walk *w)
{
    const cfxi_walk_frame *f = cfxi_ir_walk_pop(&w->walk);
    cfxi_walk_frame *outer = cfxi_ir_walk_top(&w->walk);
    uint64_t h = f->own.number;
    const bool args = f->what == CFXI_WALK_ITEMS && f->mode == HASH_ARGS;
    if (f->what == CFXI_WALK_NODES && cfxi_ir_walk_graph(&w->walk))
        settle_in(w, cfxi_ir_walk_graph(&w->walk));
    if (!outer || args) {
        if (outer)
            outer->own.number = h;
        return h;
    }
    if (f->what == CFXI_WALK_NODES)
        h = cfxi_base_hash_mix(cfxi_base_hash_mix(0, CFX_KIND_GRAPH), h);
    else if (f->kind == CFX_KIND_SET || f->kind == CFX_KIND_FROZENSET)
        h = cfxi_base_hash_mix(cfxi_base_hash_mix(0, f->kind), h);
    const bool set = outer->what == CFXI_WALK_ITEMS &&
                     (outer->kind == CFX_KIND_SET || outer->kind == CFX_KIND_FROZENSET);
    outer->own.number = set ? outer->own.number + h : cfxi_base_hash_mix(outer->own.number, h);
    return h;
}

/* The next piece of the innermost frame; *h is the hash of each that is left, at last of all. */
static void hash_step(hash_walk *w, uint64_t *h)
{
    cfxi_walk_frame *f = cfxi_ir_walk_top(&w->walk);
    if (f->what == CFXI_WALK_NODES) {
        if (cfxi_ir_node_is_root(f->node))
            *h = leave_frame(w);
        else
            hash_field(w, f);
        return;
    }
    const bool set = f->kind == CFX_KIND_SET || f->kind == CFX_KIND_FROZENSET;
    f->own.number = hash_flat(hasher_of(w), f->own.number, f->items, f->n, set, &f->i);
    if (f->i < f->n)
        enter_value(w, f->items[f->i++]);
    else
        *h = leave_frame(w);
}

static void hash_begin(hash_walk *w, cfxi_hasher *c)
{
    cfxi_ir_walk_begin(&w->walk, c->graph->allocator);
    w->given = c;
    w->inner = (cfxi_hasher){.graph = c->graph, .err = c->err, .node = hash_place,
                             .ctx = &w->stamp, .shape_only = c->shape_only};
}

/* To the end, or to the first failure, which the given hasher has then. */
static uint64_t hash_run(hash_walk *w)
{
    cfxi_hasher *c = w->given;
    uint64_t h = 0;
    while (w->walk.depth > 0 && w->walk.status == CFX_OK && c->status == CFX_OK &&
           w->inner.status == CFX_OK)
        hash_step(w, &h);
    const cfx_status failed = c->status != CFX_OK ? c->status : w->inner.status;
    const cfx_status walked = cfxi_ir_walk_end(&w->walk, failed == CFX_OK ? c->err : NULL);
    c->status = failed != CFX_OK ? failed : walked;
    return h;
}

uint64_t cfxi_ir_hash_items(cfxi_hasher *c, uint64_t h, const cfx_seq *seq)
{
    const uint32_t n = seq ? seq->size : 0;
    uint32_t i = 0;
    h = cfxi_base_hash_mix(h, n);
    if (n)
        h = hash_flat(c, h, seq->items, n, false, &i);
    if (i == n || c->status != CFX_OK)
        return h;
    hash_walk w;
    hash_begin(&w, c);
    enter_args(&w, seq, h, i);
    return hash_run(&w);
}

static cfx_status hash_graph(cfx_graph *g, bool shape_only, bool region, uint64_t *hash,
                             cfx_error *err)
{
    cfxi_hasher c = {.graph = g, .err = err, .shape_only = shape_only};
    hash_walk w;
    hash_begin(&w, &c);
    cfxi_ir_graph_freeze(g);
    enter_graph(&w, g, region);
    const uint64_t h = hash_run(&w);
    cfxi_ir_graph_thaw(g);
    if (c.status == CFX_OK)
        *hash = h;
    return c.status;
}

cfx_status cfx_graph_hash(cfx_graph *g, bool shape_only, uint64_t *hash, cfx_error *err)
{
    return hash_graph(g, shape_only, false, hash, err);
}

cfx_status cfxi_ir_region_hash(cfx_graph *region, uint64_t *hash, cfx_error *err)
{
    return hash_graph(region, true, true, hash, err);
}
