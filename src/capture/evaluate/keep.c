/* keep.c - results that share the memory of a buffer which is assigned to.
 *
 *     old = self.state
 *     self.state = new               # is recorded as self.state.copy_(new), at the end
 *     return old
 *
 * In Python the attribute is another tensor afterwards, and `old` stays what it was. In a graph the
 * buffer is written to. So what is returned, or kept in another buffer, is copied before the first
 * of these writes if it may share the memory of one that is written to.
 */
#include "keep_impl.h"

#include "../../transform/alias_impl.h"
#include "../../transform/control_impl.h"

typedef struct keeper {
    cfx_graph *g;
    cfx_node *first;         /* the first of the writes */
    cfxi_aliases aliases;
    cfx_error *err;
} keeper;

/* Whether a node behind the first writes to a buffer: buffer.copy_(v). */
static bool is_keep(const cfx_node *n)
{
    const char *target = cfx_node_target(n, NULL, NULL);
    return n->op == CFX_OP_CALL_METHOD && target && strcmp(target, "copy_") == 0 &&
           cfx_node_arg(n, 0).kind == CFX_KIND_NODE && cfx_node_arg(n, 1).kind == CFX_KIND_NODE;
}

/* Whether a buffer is given the very tensor that it is: self.state += x. */
static bool is_itself(const cfx_node *keep)
{
    const cfx_node *buffer = cfx_node_arg(keep, 0).as.node;
    const cfx_node *n = cfx_node_arg(keep, 1).as.node;
    for (const cfx_node *written; (written = cfxi_written(n, NULL)) != NULL;)
        n = written;
    return n->op == CFX_OP_GET_ATTR && n->callee == buffer->callee;
}

/* Whether a region of a call, or one in it, reads an attribute: what comes out may be that. */
static bool reads_attribute(cfx_node *call)
{
    cfxi_control c;
    if (!cfxi_control_of(call, &c))
        return false;
    for (size_t i = 0; i < c.n_regions; i++)
        for (cfx_node *n = c.regions[i]->root.next; n != &c.regions[i]->root; n = n->next)
            if (n->op == CFX_OP_GET_ATTR || reads_attribute(n))
                return true;
    return false;
}

/* The sets of buffers that get another tensor's elements, and of what may be any of them. */
static cfx_status find_sets(keeper *k, bool *any)
{
    *any = false;
    for (cfx_node *n = k->g->root.next; n != &k->g->root; n = n->next)
        CFX_TRY(cfxi_alias_join(&k->aliases, n, k->err));
    for (cfx_node *n = k->first; n != &k->g->root; n = n->next) {
        if (!is_keep(n) || is_itself(n))
            continue;
        cfxi_alias_set(&k->aliases, cfx_node_arg(n, 0).as.node)->written = true;
        *any = true;
    }
    for (cfx_node *n = k->g->root.next; *any && n != k->first; n = n->next) {
        if (!reads_attribute(n))
            continue;
        cfxi_alias *set = cfxi_alias_set(&k->aliases, n);
        set->written = set->scattered = true;
    }
    return CFX_OK;
}

/* A copy of `n` before the first of the writes. An attribute may be read behind that: it is read
 * there once more. */
static cfx_node *copy_of(keeper *k, cfx_node *n)
{
    const char *path = n->op == CFX_OP_GET_ATTR ? cfx_node_target(n, NULL, NULL) : NULL;
    cfx_node *from = path ? cfx_graph_get_attr(k->g, path, k->err) : n;
    const cfx_value args[] = {from ? cfx_from_node(from) : cfx_invalid()};
    cfx_node *copy = from ? cfx_graph_call(k->g, CFX_OP_CALL_METHOD, "clone", args, 1, NULL, 0,
                                           k->err) : NULL;
    if (copy)
        copy->location = n->location;
    if (copy && from != n)
        from->location = n->location;
    return copy;
}

/* Makes `user` read a copy of `n`. */
static cfx_status copy_for(keeper *k, cfx_node *user, cfx_node *n)
{
    const cfx_insert_point was = cfx_graph_insert_point(k->g);
    const cfx_insert_point here = {.node = k->first};
    CFX_TRY(cfx_graph_set_insert_point(k->g, here, k->err));
    cfx_node *copy = copy_of(k, n);
    CFX_TRY(cfx_graph_set_insert_point(k->g, was, k->err));
    if (!copy)
        return k->err->status;
    CFX_TRY(cfx_node_replace_input(user, n, cfx_from_node(copy), k->err));
    const bool gone = n->op == CFX_OP_GET_ATTR && n->n_users == 0 && n != k->first;
    return gone ? cfx_graph_erase(k->g, n, k->err) : CFX_OK;
}

/* A view of the buffer itself, or what another one has lost. */
static bool is_endangered(const keeper *k, const cfx_node *keep)
{
    const cfx_node *buffer = cfx_node_arg(keep, 0).as.node;
    const cfx_node *n = cfx_node_arg(keep, 1).as.node;
    const cfxi_alias *set = cfxi_alias_set(&k->aliases, n);
    if (!set->written || is_itself(keep))
        return false;
    return cfxi_is_view(n) || set->scattered || set != cfxi_alias_set(&k->aliases, buffer);
}

static cfx_status copy_values(keeper *k)
{
    for (cfx_node *n = k->first; n != &k->g->root; n = n->next)
        if (is_keep(n) && is_endangered(k, n))
            CFX_TRY(copy_for(k, n, cfx_node_arg(n, 1).as.node));
    return CFX_OK;
}

static cfx_status copy_results(keeper *k)
{
    cfx_node *output = k->g->root.prev;
    const uint32_t n = output->op == CFX_OP_OUTPUT ? output->n_inputs : 0;
    cfx_node **results = cfxi_alloc(k->g->allocator, (n + (size_t)1) * sizeof *results);
    cfx_status status = results ? CFX_OK : cfxi_nomem(k->err);
    for (uint32_t i = 0; results && i < n; i++)  /* they change */
        results[i] = output->inputs[i].def;
    for (uint32_t i = 0; status == CFX_OK && i < n; i++)
        if (cfxi_alias_set(&k->aliases, results[i])->written)
            status = copy_for(k, output, results[i]);
    cfxi_free(k->g->allocator, results, (n + (size_t)1) * sizeof *results);
    return status;
}

cfx_status cfxi_keep_apart(cfx_graph *g, cfx_error *err)
{
    keeper k = {.g = g, .first = g->kept, .err = err};
    bool any;
    g->kept = NULL;
    if (!k.first)
        return CFX_OK;
    cfx_status status = cfxi_aliases_begin(&k.aliases, g, NULL, CFXI_USES_ALL, err);
    if (status == CFX_OK)
        status = find_sets(&k, &any);
    if (status == CFX_OK && any)
        status = copy_values(&k);
    if (status == CFX_OK && any)
        status = copy_results(&k);
    cfxi_aliases_end(&k.aliases);
    return status;
}
