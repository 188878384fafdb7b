/* equal.c - whether two values or graphs are the same, and a hash that agrees with it.
 *
 * Nodes of two graphs correspond by their position, which their marks hold during the walk.
 */
#include "graph_impl.h"

/* ---- comparing ----------------------------------------------------------------------------- */

/* Two graphs under comparison. */
typedef struct compare {
    cfxi_same how;              /* its ctx is this struct */
    const cfx_graph *a, *b;
    uint32_t stamp_a, stamp_b;
    uint32_t scope_a, scope_b;  /* the last scopes found to be the same */
    bool shape_only;
    bool regions;               /* what their inputs are called is seen by nobody */
} compare;

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

/* A node's place in its graph; UINT32_MAX for one that is not on the list. */
static uint32_t position(const cfx_graph *g, uint32_t stamp, const cfx_node *n)
{
    if (n->graph != g || n->mark < stamp || n->mark - stamp >= g->size)
        return UINT32_MAX;
    return n->mark - stamp;
}

static bool same_place(const void *ctx, const cfx_node *a, const cfx_node *b)
{
    const compare *c = ctx;
    uint32_t at = position(c->a, c->stamp_a, a);
    return at == position(c->b, c->stamp_b, b) && (at != UINT32_MAX || a == b);
}

/* The items of a set come in any order: each as often in `b` as there are equal ones before and
 * behind it. Quadratic, but only for sets whose order differs. */
static bool same_set(const cfxi_same *how, const cfx_seq *a, const cfx_seq *b)
{
    for (uint32_t i = 0; i < a->size; i++) {
        size_t in_a = 0;
        size_t in_b = 0;
        for (uint32_t k = 0; k < a->size; k++)
            in_a += k == i || cfx_value_equal(a->items[i], a->items[k]);
        for (uint32_t k = 0; k < b->size; k++)
            in_b += cfxi_ir_same_value(how, a->items[i], b->items[k]);
        if (in_a != in_b)
            return false;
    }
    return true;
}

bool cfxi_ir_same_items(const cfxi_same *how, const cfx_seq *a, const cfx_seq *b)
{
    uint32_t size = a ? a->size : 0;
    if (size != (b ? b->size : 0))
        return false;
    for (uint32_t i = 0; i < size; i++)
        if (!cfxi_ir_same_value(how, a->items[i], b->items[i]))
            return false;
    return true;
}

static bool same_seq(const cfxi_same *how, cfx_value a, cfx_value b)
{
    if (cfxi_ir_same_items(how, a.as.seq, b.as.seq))
        return true;
    bool set = a.kind == CFX_KIND_SET || a.kind == CFX_KIND_FROZENSET;
    return set && !how->exact && a.as.seq && b.as.seq && a.as.seq->size == b.as.seq->size &&
           same_set(how, a.as.seq, b.as.seq);
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
        if (how->regions_apart || how->exact)
            return how->regions_apart || a.as.ref == b.as.ref;
        return how->shape_only ? cfxi_ir_region_equal(a.as.ref->region, b.as.ref->region)
                               : cfx_graph_equal(a.as.ref->region, b.as.ref->region, false);
    default:
        return a.as.i == b.as.i;
    }
}

bool cfxi_ir_same_value(const cfxi_same *how, cfx_value a, cfx_value b)
{
    if (a.kind != b.kind)
        return how->numbers && is_number(a) && is_number(b) && same_number(a, b);
    if (cfxi_ir_is_seq(a))
        return same_seq(how, a, b);
    return cfxi_ir_is_str(a) ? same_str(a.as.str, b.as.str) : same_leaf(how, a, b);
}

bool cfx_value_equal(cfx_value a, cfx_value b)
{
    const cfxi_same how = {.floats = CFXI_FLOATS_TEXT};
    return cfxi_ir_same_value(&how, a, b);
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
static bool same_scope(compare *c, uint32_t a, uint32_t b)
{
    uint32_t x = a;
    uint32_t y = b;
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
    c->scope_a = a;
    c->scope_b = b;
    return true;
}

/* Of one value: not "*args". */
static bool is_plain_input(const cfx_node *n)
{
    const cfx_str *name = n->callee->ref->name;
    return n->op == CFX_OP_PLACEHOLDER && name && name->data[0] != '*';
}

static bool same_node(compare *c, const cfx_node *a, const cfx_node *b)
{
    const bool input = c->regions && is_plain_input(a) && is_plain_input(b);
    if (a->op != b->op || (!input && !cfxi_ir_same_ref(a->callee->ref, b->callee->ref)))
        return false;
    if (!cfxi_ir_same_items(&c->how, a->args, b->args) ||
        !cfxi_ir_same_items(&c->how, a->kwargs, b->kwargs))
        return false;
    if (!cfxi_ir_same_value(&c->how, cfx_node_type(a), cfx_node_type(b)))
        return false;
    if (c->shape_only)
        return true;
    return a->name->size == b->name->size &&
           memcmp(a->name->data, b->name->data, a->name->size) == 0 && same_location(a, b) &&
           same_scope(c, a->scope, b->scope);
}

uint32_t cfxi_ir_graph_number(cfx_graph *g)
{
    uint32_t stamp = cfxi_ir_graph_stamp(g, (uint32_t)g->size);
    uint32_t mark = stamp;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next)
        n->mark = mark++;
    return stamp;
}

static bool same_graph(const cfx_graph *a, const cfx_graph *b, bool shape_only, bool regions)
{
    if (a == b)
        return true;
    if (a->size != b->size)
        return false;
    /* Numbering changes only marks, which nobody reads between calls. */
    compare c = {.a = a, .b = b, .shape_only = shape_only, .regions = regions};
    c.how = (cfxi_same){.node = same_place, .ctx = &c, .floats = CFXI_FLOATS_TEXT,
                        .shape_only = shape_only};
    c.stamp_a = cfxi_ir_graph_number((cfx_graph *)(uintptr_t)a);
    c.stamp_b = cfxi_ir_graph_number((cfx_graph *)(uintptr_t)b);
    const cfx_node *x = a->root.next;
    const cfx_node *y = b->root.next;
    cfxi_ir_graph_freeze(a);
    cfxi_ir_graph_freeze(b);
    while (x != &a->root && same_node(&c, x, y)) {
        x = x->next;
        y = y->next;
    }
    cfxi_ir_graph_thaw(b);
    cfxi_ir_graph_thaw(a);
    return x == &a->root;
}

bool cfx_graph_equal(const cfx_graph *a, const cfx_graph *b, bool shape_only)
{
    return same_graph(a, b, shape_only, false);
}

bool cfxi_ir_region_equal(const cfx_graph *a, const cfx_graph *b)
{
    return same_graph(a, b, true, true);
}

/* ---- hashing ------------------------------------------------------------------------------- */

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

static uint64_t hash_region(cfxi_hasher *c, uint64_t h, cfx_graph *region)
{
    uint64_t inner = 0;
    if (c->status == CFX_OK)
        c->status = c->shape_only ? cfxi_ir_region_hash(region, &inner, c->err)
                                  : cfx_graph_hash(region, false, &inner, c->err);
    return cfxi_base_hash_mix(h, inner);
}

static uint64_t hash_value(cfxi_hasher *c, cfx_value v);

uint64_t cfxi_ir_hash_items(cfxi_hasher *c, uint64_t h, const cfx_seq *seq)
{
    uint32_t size = seq ? seq->size : 0;
    h = cfxi_base_hash_mix(h, size);
    for (uint32_t i = 0; i < size; i++)
        h = cfxi_base_hash_mix(h, hash_value(c, seq->items[i]));
    return h;
}

static uint64_t hash_set(cfxi_hasher *c, uint64_t h, const cfx_seq *seq)
{
    uint64_t sum = seq->size;
    for (uint32_t i = 0; i < seq->size; i++)
        sum += hash_value(c, seq->items[i]);
    return cfxi_base_hash_mix(h, sum);
}

static uint64_t hash_value(cfxi_hasher *c, cfx_value v)
{
    uint64_t h = cfxi_base_hash_mix(0, v.kind);
    if (cfxi_ir_is_str(v))
        return hash_str(h, v.as.str);
    if (v.kind == CFX_KIND_SET || v.kind == CFX_KIND_FROZENSET)
        return hash_set(c, h, v.as.seq);
    if (cfxi_ir_is_seq(v))
        return cfxi_ir_hash_items(c, h, v.as.seq);
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
    case CFX_KIND_GRAPH:
        return hash_region(c, h, v.as.ref->region);
    default:
        return cfxi_base_hash_mix(h, (uint64_t)v.as.i);
    }
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

static uint64_t hash_node(cfxi_hasher *c, uint64_t h, const cfx_node *n)
{
    h = cfxi_base_hash_mix(h, n->op);
    if (!c->region || !is_plain_input(n))
        h = cfxi_ir_hash_ref(c, h, n->callee->ref);
    h = cfxi_ir_hash_items(c, h, n->args);
    h = cfxi_ir_hash_items(c, h, n->kwargs);
    h = cfxi_base_hash_mix(h, hash_value(c, cfx_node_type(n)));
    if (c->shape_only)
        return h;
    const cfxi_location *where = cfxi_ir_location_of(n);
    h = cfxi_base_hash_mix(h, cfxi_base_hash_bytes(n->name->data, n->name->size));
    if (where)
        h = cfxi_base_hash_mix(hash_str(h, where->file), where->line);
    return cfxi_base_hash_mix(h, hash_scope(c, n->scope));
}

static uint64_t hash_place(const cfxi_hasher *c, const cfx_node *n)
{
    return position(c->graph, *(const uint32_t *)c->ctx, n);
}

static cfx_status hash_graph(cfx_graph *g, bool shape_only, bool region, uint64_t *hash,
                             cfx_error *err)
{
    const uint32_t stamp = cfxi_ir_graph_number(g);
    cfxi_hasher c = {.graph = g, .err = err, .node = hash_place, .ctx = &stamp,
                     .shape_only = shape_only, .region = region};
    uint64_t h = cfxi_base_hash_mix(0, g->size);
    cfxi_ir_graph_freeze(g);
    for (const cfx_node *n = g->root.next; n != &g->root && c.status == CFX_OK; n = n->next)
        h = hash_node(&c, h, n);
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
