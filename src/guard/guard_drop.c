/* guard_drop.c - erases numbers of a captured graph that nobody uses.
 *
 *     before                                     after
 *     %x = placeholder[target=x]()               %x = placeholder[target=x]()
 *     %n = call_method[target=size](%x, 0)       output(%x)
 *     %m = call_function[target=operator.mul](%n, 2)
 *     output(%x)
 *
 * A program asks for sizes, computes with them and compares; where the answer is a guard that is
 * checked before the graph runs, the nodes are of no use. Calls of other functions stay, used or
 * not: dead-code elimination is the user's to ask for. Linear in nodes and edges.
 */
#include "guard_impl.h"

#include <cfx/embed/copy.h>

/* The question that a method asks of a tensor gives a number. */
static bool asks_for_number(const cfx_node *n)
{
    static const char *const methods[] = {"size", "item", "stride", "storage_offset"};
    const char *name = cfx_node_op(n) == CFX_OP_CALL_METHOD ? cfx_node_target(n, NULL, NULL) : NULL;
    for (size_t i = 0; name && i < sizeof methods / sizeof *methods; i++)
        if (strcmp(name, methods[i]) == 0)
            return true;
    return cfx_node_operator(n) == CFX_OPID_len;
}

/* Whether a node is a function of numbers alone. */
static bool is_of_numbers(const cfx_node *n, const cfx_node_map *numbers)
{
    if (cfxi_guard_function_of(n) == CFXI_GUARD_NUMBER)
        return false;
    for (size_t i = 0; i < cfx_node_num_inputs(n); i++)
        if (cfx_node_map_get(numbers, cfx_node_input(n, i)).kind == CFX_KIND_INVALID)
            return false;
    return true;
}

static cfx_status find_numbers(cfx_graph *g, const bool *inputs, cfx_node_map *numbers,
                               cfx_error *err)
{
    size_t input = 0;
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        const bool given = cfx_node_op(n) == CFX_OP_PLACEHOLDER && inputs && inputs[input];
        input += cfx_node_op(n) == CFX_OP_PLACEHOLDER;
        if (given || asks_for_number(n) || is_of_numbers(n, numbers))
            CFX_TRY(cfx_node_map_set(numbers, n, cfx_value_bool(true), err));
    }
    return CFX_OK;
}

cfx_status cfx_graph_drop_numbers(cfx_graph *g, const bool *inputs, bool *changed, cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    cfx_node_map *numbers = cfx_node_map_new(cfx_graph_allocator(g), err);
    cfx_status status = numbers ? find_numbers(g, inputs, numbers, err) : CFX_E_NOMEM;
    cfx_node *before;
    *changed = false;
    for (cfx_node *n = cfx_graph_last(g); status == CFX_OK && n; n = before) {
        const cfx_opcode op = cfx_node_op(n);
        before = cfx_node_prev(n);
        if (cfx_node_num_users(n) > 0 || op == CFX_OP_PLACEHOLDER)
            continue;
        if (op != CFX_OP_GET_ATTR && cfx_node_map_get(numbers, n).kind == CFX_KIND_INVALID)
            continue;
        status = cfx_graph_erase(g, n, err);
        *changed = true;
    }
    cfx_node_map_free(numbers);
    return status;
}
