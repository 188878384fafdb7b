/* value_map.c - rebuilding a value with its nodes replaced, in the same graph or another. */
#include "graph_impl.h"

typedef struct mapper {
    cfx_graph *dst;
    cfx_graph *src;
    cfx_map_fn *fn;
    void *ctx;
    cfx_error *err;
    bool move;               /* regions are handed over, not copied */
} mapper;

static cfx_value map_value(const mapper *m, cfx_value v);

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

/* What a failed container leaves behind: its first `n` items, as far as they were made here. What
 * `fn` answered is the caller's. */
static void discard_items(const mapper *m, const cfx_value *from, const cfx_value *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool made = from[i].kind != CFX_KIND_NODE && to[i].as.seq != from[i].as.seq;
        if (made && (cfxi_ir_is_seq(to[i]) || cfxi_ir_is_str(to[i])))
            cfx_value_discard(m->dst, to[i]);
    }
}

/* Maps `n` items into `to`. *changed tells whether any differs. */
static bool map_items(const mapper *m, const cfx_value *from, cfx_value *to, size_t n,
                      bool *changed)
{
    *changed = m->dst != m->src;
    for (size_t i = 0; i < n; i++) {
        to[i] = map_value(m, from[i]);
        if (to[i].kind == CFX_KIND_INVALID) {
            discard_items(m, from, to, i);
            return false;
        }
        *changed = *changed || to[i].kind != from[i].kind || to[i].as.i != from[i].as.i;
    }
    return true;
}

enum { FEW = 8 };  /* most containers fit into an array on the stack */

static cfx_value map_seq(const mapper *m, cfx_value v)
{
    size_t n = v.as.seq ? v.as.seq->size : 0;
    const cfx_value *from = v.as.seq ? v.as.seq->items : NULL;
    cfx_value few[FEW];
    cfx_value *to = few;
    if (n > FEW && !(to = cfxi_base_alloc(m->dst->allocator, n * sizeof *to))) {
        cfxi_base_nomem(m->err);
        return cfx_value_invalid();
    }
    bool changed;
    cfx_value result = cfx_value_invalid();
    if (map_items(m, from, to, n, &changed)) {
        result = changed ? cfx_value_seq(m->dst, (cfx_kind)v.kind, to, n, m->err) : v;
        if (result.kind == CFX_KIND_INVALID)
            discard_items(m, from, to, n);
    }
    if (to != few)
        cfxi_base_free(m->dst->allocator, to, n * sizeof *to);
    return result;
}

static cfx_value map_value(const mapper *m, cfx_value v)
{
    if (v.kind == CFX_KIND_NODE)
        return m->fn(m->ctx, v.as.node, m->err);
    if (cfxi_ir_is_seq(v))
        return map_seq(m, v);
    if (cfxi_ir_is_str(v))
        return map_str(m, v);
    if (v.kind == CFX_KIND_HOST)
        return map_host(m, v);
    if (v.kind == CFX_KIND_GRAPH)
        return map_region(m, v);
    return v;
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
        cfx_error_set(err, CFX_E_VALUE, "an invalid value cannot be mapped; check the constructor "
                      "that made it");
        return cfx_value_invalid();
    }
    const mapper m = {dst, src, fn, ctx, err, move};
    return map_value(&m, v);
}
