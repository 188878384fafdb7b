/* rename.c - names for a graph that is finished.
 *
 * While a program is evaluated, nodes come and go: rounds of a loop are tried until it is known
 * what they carry, and what becomes a region is made outside first. Names would show how often, and
 * be others if the same program were written differently.
 */
#include "../../transform/control_impl.h"
#include "evaluate_impl.h"

/* What goes in, if a region has it unchanged: of a branch all; of a loop what the body hands on. */
static const cfx_node *comes_in(const cfxi_control *c, size_t k, const cfx_node *input)
{
    const cfx_value v = c->operands[k];
    const cfx_value next = cfxi_control_is_loop(c)
                           ? cfxi_control_result(c, cfxi_control_body(c), k) : cfx_invalid();
    if (v.kind != CFX_KIND_NODE ||
        (cfxi_control_is_loop(c) && (next.kind != CFX_KIND_NODE || next.as.node != input)))
        return NULL;
    return v.as.node;
}

/* What the inputs of region i are to be called; `body` is at those of the loop's body. */
static cfx_status wishes_of(const cfxi_control *c, size_t i, const char **wishes, cfx_error *err)
{
    const size_t extra = cfxi_control_extra(c);
    cfx_graph *last = c->regions[cfxi_control_body(c)];
    cfx_node *body = cfxi_next_input(last, NULL);
    size_t k = 0;
    for (cfx_node *n = cfxi_next_input(c->regions[i], NULL); n;
         n = cfxi_next_input(c->regions[i], n), body = cfxi_next_input(last, body), k++) {
        const cfx_node *from = k < extra ? NULL : comes_in(c, k - extra, body);
        if (from) {
            const cfx_target target = {.name = from->name->data, .size = from->name->size};
            CFX_TRY(cfx_node_set_target(n, target, err));
        }
        wishes[k] = cfx_node_target(n, NULL, err);
        if (!wishes[k])
            return CFX_E_NOMEM;
    }
    return CFX_OK;
}

static cfx_status name_inside(cfx_graph *g, cfx_error *err);

static cfx_status name_region(const cfxi_control *c, size_t i, cfx_error *err)
{
    const cfx_allocator *allocator = cfx_graph_allocator(c->node->graph);
    const size_t size = (c->n + 2) * sizeof(const char *);
    const char **wishes = cfxi_alloc(allocator, size);
    if (!wishes)
        return cfxi_nomem(err);
    cfx_status status = wishes_of(c, i, wishes, err);
    if (status == CFX_OK)
        status = cfxi_graph_name_anew(c->regions[i], wishes, err);
    cfxi_free(allocator, wishes, size);
    return status == CFX_OK ? name_inside(c->regions[i], err) : status;
}

static cfx_status name_inside(cfx_graph *g, cfx_error *err)
{
    cfxi_control c;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next)
        if (cfxi_control_of(n, &c))
            for (size_t i = 0; i < c.n_regions; i++)
                CFX_TRY(name_region(&c, i, err));
    return CFX_OK;
}

cfx_status cfxi_name_captured(cfx_graph *g, cfx_error *err)
{
    CFX_TRY(cfxi_graph_name_anew(g, NULL, err));
    return name_inside(g, err);
}
