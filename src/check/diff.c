/* diff.c - what differs between two graphs, node by node.
 *
 *     a                                                b
 *     %a = call_function[target=torch.neg](%x)   same  %n = call_function[target=torch.neg](%x)
 *     %b = call_function[target=torch.exp](%a)   gone
 *                                                new   %c = call_function[target=torch.sin](%x)
 *     output(%b)                                 args  output(%n)
 *
 * Needs: nothing. Keeps: everything.
 *
 * Partners are those of correspond.c. What moved: the longest sequence of pairs that stand in the
 * same order in both graphs is taken to have stayed, the other pairs moved.
 */
#include "correspond_impl.h"

const char *cfx_change_flag_name(unsigned bit)
{
    static const char *const names[] = {"name", "opcode", "target", "args", "kwargs", "type",
                                        "moved"};
    return bit < sizeof names / sizeof *names ? names[bit] : NULL;
}

/* One comparison, of graphs or of two regions. */
typedef struct comparison {
    cfx_change_fn *fn;
    void *ctx;
    cfx_error *err;
    unsigned depth;
    cfx_node *owner;
    size_t region;
    const cfxi_twins *a, *b;
    size_t told;  /* how many nodes of `b` it has passed */
} comparison;

/* ---- what moved ---------------------------------------------------------------------------- */

enum { STAYED, MOVED };  /* an entry's key from here on */

/* How many of the `n` sequences end before `e`; the ends are sorted. */
static size_t longest_before(cfxi_twin *const *ends, size_t n, const cfxi_twin *e)
{
    size_t low = 0;
    if (n > 0 && ends[n - 1]->twin < e->twin)
        return n;
    while (low < n) {
        const size_t middle = low + (n - low) / 2;
        if (ends[middle]->twin < e->twin)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* ends[k] ends a sequence of k + 1 pairs, `next` leads back along it. */
static cfx_status mark_moved(const cfxi_twins *a, cfx_error *err)
{
    size_t n = 0;
    const size_t bytes = (a->n + 1) * sizeof(cfxi_twin *);  /* less than the entries take */
    cfxi_twin **ends = cfxi_base_alloc(a->graph->allocator, bytes);
    if (!ends)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < a->n; i++) {
        cfxi_twin *e = &a->entries[i];
        e->key = MOVED;
        if (!cfxi_check_has_twin(e))
            continue;
        const size_t k = longest_before(ends, n, e);
        e->next = k > 0 ? ends[k - 1] : NULL;
        ends[k] = e;
        n = k == n ? n + 1 : n;
    }
    for (cfxi_twin *e = n > 0 ? ends[n - 1] : NULL; e; e = e->next)
        e->key = STAYED;
    cfxi_base_free(a->graph->allocator, ends, bytes);
    return CFX_OK;
}

/* ---- what else differs --------------------------------------------------------------------- */

static bool are_twins(const void *ctx, const cfx_node *x, const cfx_node *y)
{
    const comparison *c = ctx;
    const cfxi_twin *e = cfxi_check_twin_of(c->a, x);
    return e && cfxi_check_has_twin(e) && e->twin->node == y;
}

static unsigned compare_nodes(const comparison *c, const cfx_node *a, const cfx_node *b)
{
    const cfxi_same how = {.node = are_twins, .ctx = c, .floats = CFXI_FLOATS_TEXT,
                           .regions_apart = cfxi_check_twin_regions(a, b) > 0};
    unsigned flags = 0;
    if (a->name->size != b->name->size || memcmp(a->name->data, b->name->data, a->name->size) != 0)
        flags |= CFX_CHANGE_NAME;
    if (a->op != b->op)
        flags |= CFX_CHANGE_OPCODE;
    if (!cfxi_ir_same_ref(a->callee->ref, b->callee->ref))
        flags |= CFX_CHANGE_TARGET;
    if (!cfxi_ir_same_items(&how, a->args, b->args))
        flags |= CFX_CHANGE_ARGS;
    if (!cfxi_ir_same_items(&how, a->kwargs, b->kwargs))
        flags |= CFX_CHANGE_KWARGS;
    if (!cfxi_ir_same_value(&how, cfx_node_type(a), cfx_node_type(b)))
        flags |= CFX_CHANGE_TYPE;
    return flags;
}

/* ---- telling ------------------------------------------------------------------------------- */

static cfx_status tell(const comparison *c, cfx_node *a, cfx_node *b, unsigned flags)
{
    const cfx_change change = {a, b, flags, c->depth, c->owner, c->region};
    cfx_status status = c->fn(c->ctx, &change);
    return status == CFX_OK ? CFX_OK : cfxi_base_failed(c->err, status);
}

/* The new ones among the nodes of `b` up to number `end`. */
static cfx_status tell_new(comparison *c, size_t end)
{
    for (; c->told < end; c->told++)
        if (!c->b->entries[c->told].twin)
            CFX_TRY(tell(c, NULL, c->b->entries[c->told].node, 0));
    return CFX_OK;
}

static cfx_status compare_graphs(void *ctx, cfxi_twins *a, cfxi_twins *b);

static cfx_status tell_regions(const comparison *c, cfx_node *a, const cfx_node *b)
{
    const size_t n = cfxi_check_twin_regions(a, b);
    for (size_t i = 0; i < n; i++) {
        comparison inner = {.fn = c->fn, .ctx = c->ctx, .err = c->err, .depth = c->depth + 1,
                            .owner = a, .region = i};
        CFX_TRY(cfxi_check_pair_graphs(cfxi_check_twin_region(a, i), cfxi_check_twin_region(b, i),
                                       compare_graphs, &inner, c->err));
    }
    return CFX_OK;
}

static cfx_status compare_graphs(void *ctx, cfxi_twins *a, cfxi_twins *b)
{
    comparison *c = ctx;
    c->a = a;
    c->b = b;
    CFX_TRY(mark_moved(a, c->err));
    for (size_t i = 0; i < a->n; i++) {
        const cfxi_twin *e = &a->entries[i];
        if (!cfxi_check_has_twin(e)) {
            CFX_TRY(tell(c, e->node, NULL, 0));
            continue;
        }
        unsigned flags = compare_nodes(c, e->node, e->twin->node);
        if (e->key == STAYED)
            CFX_TRY(tell_new(c, (size_t)(e->twin - b->entries)));
        else
            flags |= CFX_CHANGE_MOVED;
        CFX_TRY(tell(c, e->node, e->twin->node, flags));
        CFX_TRY(tell_regions(c, e->node, e->twin->node));
    }
    return tell_new(c, b->n);
}

cfx_status cfx_graph_diff(cfx_graph *a, cfx_graph *b, cfx_change_fn *fn, void *ctx, cfx_error *err)
{
    comparison c = {.fn = fn, .ctx = ctx, .err = err};
    CFX_TRY(cfxi_base_expect(a, "graph", err));
    CFX_TRY(cfxi_base_expect(b, "graph", err));
    return cfxi_check_pair_graphs(a, b, compare_graphs, &c, err);
}
