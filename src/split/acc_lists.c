/* acc_lists.c - the nodes of a graph by position, with a list of positions for each. */
#include "acc_impl.h"

cfx_status cfxi_split_acc_init(cfxi_acc *acc, cfx_graph *g, cfx_error *err)
{
    *acc = (cfxi_acc){.g = g, .n = g->size, .err = err};
    cfxi_base_arena_init(&acc->arena, g->allocator);
    acc->nodes = cfxi_base_arena_zeros(&acc->arena, acc->n, sizeof *acc->nodes);
    acc->head = cfxi_base_arena_zeros(&acc->arena, acc->n, sizeof *acc->head);
    acc->tail = cfxi_base_arena_zeros(&acc->arena, acc->n, sizeof *acc->tail);
    if (!acc->nodes || !acc->head || !acc->tail)
        return cfxi_base_nomem(err);
    size_t i = 0;
    acc->stamp = cfxi_ir_graph_number(g);
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next, i++) {
        acc->nodes[i] = n;
        acc->head[i] = acc->tail[i] = CFX_NO_PART;
    }
    return CFX_OK;
}

void cfxi_split_acc_done(cfxi_acc *acc)
{
    cfxi_base_vec_free(&acc->cells, sizeof(cfxi_acc_cell), acc->g->allocator);
    cfxi_base_arena_release(&acc->arena);
}

cfx_status cfxi_split_acc_add(cfxi_acc *acc, uint32_t of, uint32_t to)
{
    if (acc->cells.size >= CFX_NO_PART ||
        !cfxi_base_vec_reserve(&acc->cells, 1, sizeof(cfxi_acc_cell), acc->g->allocator))
        return cfxi_base_nomem(acc->err);
    cfxi_acc_cell *cells = acc->cells.data;
    const uint32_t last = (uint32_t)acc->cells.size++;
    cells[last] = (cfxi_acc_cell){to, CFX_NO_PART};
    if (acc->head[of] == CFX_NO_PART)
        acc->head[of] = last;
    else
        cells[acc->tail[of]].next = last;
    acc->tail[of] = last;
    return CFX_OK;
}

static cfx_status add_pair(cfxi_acc *acc, const cfx_node *a, const cfx_node *b, bool backwards)
{
    const uint32_t of = cfxi_split_acc_at(acc, backwards ? b : a);
    const uint32_t to = cfxi_split_acc_at(acc, backwards ? a : b);
    return of == CFX_NO_PART || to == CFX_NO_PART ? CFX_OK : cfxi_split_acc_add(acc, of, to);
}

cfx_status cfxi_split_acc_load(cfxi_acc *acc, const cfx_need *pairs, size_t n, bool backwards)
{
    for (size_t i = 0; pairs && i < n; i++)
        CFX_TRY(add_pair(acc, pairs[i].node, pairs[i].needs, backwards));
    for (size_t i = 0; !pairs && i < acc->n; i++) {
        const cfx_node *node = acc->nodes[i];
        for (uint32_t k = 0; cfxi_ir_is_call(node) && k < node->n_inputs; k++)
            if (cfxi_ir_is_call(node->inputs[k].def))
                CFX_TRY(add_pair(acc, node, node->inputs[k].def, backwards));
    }
    return CFX_OK;
}
