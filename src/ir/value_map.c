/* value_map.c - rebuilding a value with its nodes replaced, in the same graph or another.
 *
 * The walk enters a container, maps its items one after the other onto a stack of values, and
 * replaces them there by the new container when it leaves.
 */
#include "walk_impl.h"

enum { FEW = 16 };  /* items that need no memory of their own: most arguments */

typedef struct mapper {
    cfx_graph *dst;
    cfx_graph *src;
    cfx_map_fn *fn;
    void *ctx;
    cfx_error *err;
    bool move;          /* regions are handed over, not copied */
    bool bare;          /* nodes and regions become None */
    cfxi_walk walk;     /* a frame's mark: where its new items begin; mode: its depth */
    cfx_value *values;  /* the new items of all containers that are half done */
    uint32_t n, room;
    cfx_value few[FEW];
} mapper;

cfx_ref *cfxi_ir_ref_copy(cfx_graph *dst, cfx_graph *src, cfx_ref *ref, cfx_error *err)
{
    if (dst->host == src->host && ref->kind == CFXI_REF_OBJECT)
        return cfxi_ir_ref_object(dst, ref->object, err);
    if (dst->host == src->host)
        return cfxi_ir_ref_name(dst, ref->name->data, ref->name->size, err);
    const cfx_str *name = cfxi_ir_ref_qualified_name(src, ref, err);
    if (!name)
        return NULL;
    cfx_value v = cfx_value_name(dst, name->data, name->size, err);
    return v.kind == CFX_KIND_HOST ? v.as.ref : NULL;
}

static cfx_value map_host(const mapper *m, cfx_value v)
{
    if (m->dst == m->src)
        return v;
    cfx_ref *ref = cfxi_ir_ref_copy(m->dst, m->src, v.as.ref, m->err);
    if (!ref)
        return cfx_value_invalid();
    v.as.ref = ref;
    return v;
}

static cfx_value move_region(const mapper *m, cfx_graph *region)
{
    cfx_graph *parent = region->parent;
    region->parent = NULL;
    const cfx_value v = cfx_value_region(m->dst, region, m->err);
    if (v.kind == CFX_KIND_INVALID)
        region->parent = parent;
    return v;
}

static cfx_value map_region(const mapper *m, cfx_value v)
{
    if (m->dst == m->src)
        return v;
    if (m->move)
        return move_region(m, v.as.ref->region);
    cfx_graph *copy = cfx_graph_clone(v.as.ref->region, NULL, m->err);
    if (!copy)
        return cfx_value_invalid();
    v = cfx_value_region(m->dst, copy, m->err);
    cfx_graph_release(copy);  /* `dst` holds it now */
    return v;
}

static cfx_value map_str(const mapper *m, cfx_value v)
{
    if (m->dst == m->src)
        return v;
    v.as.str = cfxi_ir_str_new(&m->dst->arena, v.as.str->data, v.as.str->size);
    if (v.as.str)
        return v;
    cfxi_base_nomem(m->err);
    return cfx_value_invalid();
}

/* What is not a container. */
static cfx_value map_leaf(const mapper *m, cfx_value v)
{
    if (m->bare && (v.kind == CFX_KIND_NODE || v.kind == CFX_KIND_GRAPH))
        return cfx_value_none();
    if (v.kind == CFX_KIND_NODE)
        return m->fn(m->ctx, v.as.node, m->err);
    if (cfxi_ir_is_str(v))
        return map_str(m, v);
    if (v.kind == CFX_KIND_HOST)
        return map_host(m, v);
    if (v.kind == CFX_KIND_GRAPH)
        return map_region(m, v);
    return v;
}

/* ---- containers ---------------------------------------------------------------------------- */

/* Makes room for `more` values. */
static bool reserve(mapper *m, uint32_t more)
{
    if (more <= m->room - m->n)
        return true;
    const uint64_t room = 2 * ((uint64_t)m->n + more);
    size_t bytes;
    cfx_value *values = NULL;
    if (room <= UINT32_MAX && cfxi_base_mul_size((size_t)room, sizeof *values, 0, &bytes))
        values = cfxi_base_alloc(m->dst->allocator, bytes);
    if (!values) {
        cfxi_base_nomem(m->err);
        return false;
    }
    memcpy(values, m->values, m->n * sizeof *values);
    if (m->values != m->few)
        cfxi_base_free(m->dst->allocator, m->values, m->room * sizeof *values);
    m->values = values;
    m->room = (uint32_t)room;
    return true;
}

/* Whether `to`, which item `from` was mapped to, was made here and nobody has it yet. What `fn`
 * answered is the caller's. */
static bool is_made_here(cfx_value from, cfx_value to)
{
    return from.kind != CFX_KIND_NODE && to.as.seq != from.as.seq &&
           (cfxi_ir_is_seq(to) || cfxi_ir_is_str(to));
}

/* Takes back what has been made for the first items of a container: values `first`, ... */
static void discard_items(mapper *m, const cfx_value *items, uint32_t first)
{
    for (uint32_t i = first; i < m->n; i++)
        if (is_made_here(items[i - first], m->values[i]))
            cfx_value_discard(m->dst, m->values[i]);
    m->n = first;
}

/* Maps items *i, ... up to a container. */
static bool map_flat(mapper *m, const cfx_value *items, uint32_t n, uint32_t *i)
{
    for (; *i < n && !cfxi_ir_is_seq(items[*i]); ++*i) {
        const cfx_value v = map_leaf(m, items[*i]);
        if (v.kind == CFX_KIND_INVALID)
            return false;
        m->values[m->n++] = v;
    }
    return true;
}

/* The container that values `first`, ... make: `v` itself if none has changed. */
static cfx_value rebuild(const mapper *m, cfx_value v, uint32_t first)
{
    const cfx_value *to = m->values + first;
    const uint32_t n = m->n - first;
    bool changed = m->dst != m->src;
    for (uint32_t i = 0; i < n && !changed; i++) {
        const cfx_value from = v.as.seq->items[i];
        changed = to[i].kind != from.kind || to[i].as.i != from.as.i;
    }
    return changed ? cfx_value_seq(m->dst, (cfx_kind)v.kind, to, n, m->err) : v;
}

/* There is room for all that a container's items become, and for what it becomes itself. */
static bool enter(mapper *m, cfx_value v, uint32_t first, uint32_t i)
{
    cfxi_walk_frame *f = cfxi_ir_walk_into(&m->walk, v);
    if (!f)
        return false;
    f->i = i;
    f->mark = first;
    f->mode = (uint16_t)v.pad;
    f->own.data = v.as.seq;
    return reserve(m, f->n + 1);
}

/* Goes on with the innermost container: to an inner one, or to its end. */
static bool step(mapper *m)
{
    cfxi_walk_frame *f = cfxi_ir_walk_top(&m->walk);
    if (!map_flat(m, f->items, f->n, &f->i))
        return false;
    if (f->i < f->n)
        return enter(m, f->items[f->i++], m->n, 0);
    const cfx_value old = cfxi_ir_seq_value((cfx_kind)f->kind, f->own.data, f->mode);
    const cfx_value v = rebuild(m, old, f->mark);
    if (v.kind == CFX_KIND_INVALID)
        return false;
    cfxi_ir_walk_pop(&m->walk);
    m->n = f->mark;
    m->values[m->n++] = v;
    return true;
}

/* A container with others inside, of which the first `i` items are mapped. */
static cfx_value map_deep(mapper *m, cfx_value v, uint32_t i)
{
    cfxi_ir_walk_begin(&m->walk, m->dst->allocator);
    bool good = enter(m, v, 0, i);
    while (good && m->walk.depth > 0)
        good = step(m);
    while (m->walk.depth > 0) {  /* it has failed */
        const cfxi_walk_frame *f = cfxi_ir_walk_pop(&m->walk);
        discard_items(m, f->items, f->mark);
    }
    cfxi_ir_walk_end(&m->walk, m->err);
    return good ? m->values[0] : cfx_value_invalid();
}

static cfx_value map_seq(mapper *m, cfx_value v)
{
    const uint32_t n = v.as.seq ? v.as.seq->size : 0;
    const cfx_value *items = n ? v.as.seq->items : NULL;
    cfx_value result = cfx_value_invalid();
    uint32_t i = 0;
    m->values = m->few;
    m->room = FEW;
    m->n = 0;
    if (!reserve(m, n))
        return result;
    const bool good = map_flat(m, items, n, &i);
    if (good && i < n)
        result = map_deep(m, v, i);
    else if (good)
        result = rebuild(m, v, 0);
    if (result.kind == CFX_KIND_INVALID)
        discard_items(m, items, 0);
    if (m->values != m->few)
        cfxi_base_free(m->dst->allocator, m->values, m->room * sizeof *m->values);
    return result;
}

cfx_value cfx_value_map(cfx_graph *dst, cfx_graph *src, cfx_value v, cfx_map_fn *fn, void *ctx,
                        cfx_error *err)
{
    return cfxi_ir_value_map(dst, src, v, false, fn, ctx, err);
}

cfx_value cfxi_ir_value_map(cfx_graph *dst, cfx_graph *src, cfx_value v, bool move, cfx_map_fn *fn,
                            void *ctx, cfx_error *err)
{
    if (v.kind == CFX_KIND_INVALID || v.kind >= CFX_KIND_COUNT) {
        cfx_error_set(err, CFX_E_VALUE, "an invalid value cannot be mapped; check the call that "
                      "created it");
        return cfx_value_invalid();
    }
    mapper m;  /* an initialiser would clear the stacks, which is most of the work */
    m.dst = dst;
    m.src = src;
    m.fn = fn;
    m.ctx = ctx;
    m.err = err;
    m.move = move;
    m.bare = false;
    return cfxi_ir_is_seq(v) ? map_seq(&m, v) : map_leaf(&m, v);
}

cfx_value cfxi_ir_value_bare(cfx_graph *g, cfx_value v, cfx_error *err)
{
    mapper m;
    m.dst = m.src = g;
    m.err = err;
    m.bare = true;
    return map_seq(&m, v);
}
