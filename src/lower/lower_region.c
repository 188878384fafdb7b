/* lower_region.c - what values are in regions: inputs are what is passed, results what comes out.
 *
 * The state of a loop may be something else after a turn; so of a number or list that changes
 * nothing is said. A tensor is taken to stay one.
 */
#include "lower_impl.h"

/* An argument by the row's parameter; INVALID if it is not there. */
static cfx_value argument(const cfx_node *n, cfx_operator op, size_t i)
{
    cfx_schema_param param;
    char name[32];
    cfx_value v = cfx_node_arg(n, i);
    if (v.kind != CFX_KIND_INVALID || !cfx_operator_param(op, i, &param) ||
        param.name.size >= sizeof name)
        return v;
    memcpy(name, param.name.text, param.name.size);
    name[param.name.size] = '\0';
    return cfx_node_kwarg(n, name);
}

static bool is_items(cfx_value v) { return v.kind == CFX_KIND_TUPLE || v.kind == CFX_KIND_LIST; }

static cfx_value output_of(cfx_value region)
{
    const cfx_graph *g = cfx_value_graph(region);
    const cfx_node *last = g ? cfx_graph_last(g) : NULL;
    return last && last->op == CFX_OP_OUTPUT ? cfx_node_arg(last, 0) : cfx_value_invalid();
}

static cfx_value item_of(cfx_value v, size_t i)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    return is_items(v) && i < n ? items[i] : cfx_value_invalid();
}

/* Nothing is known of an empty list: anything may be added to it. */
static cfxi_what what_is(const cfxi_lower *l, cfx_value v)
{
    size_t n;
    cfx_value_items(v, &n);
    const cfxi_what what = is_items(v) && n == 0 ? CFXI_WHAT_ANY : cfxi_lower_what(l, v);
    return what == CFXI_WHAT_NONE ? CFXI_WHAT_ANY : what;
}

/* What input `i` of a loop's state is in every turn; `input` is the body's. */
static cfxi_what state_what(const cfxi_lower *l, cfx_value state, cfx_value body, size_t i,
                            const cfx_node *input)
{
    const cfx_value next = item_of(output_of(body), i);
    const cfxi_what what = what_is(l, item_of(state, i));
    const bool kept = next.kind == CFX_KIND_NODE && next.as.node == input;
    return kept || what == CFXI_WHAT_TENSOR ? what : CFXI_WHAT_ANY;
}

static const cfx_node *next_input(const cfx_graph *g, const cfx_node *n)
{
    n = n ? cfx_node_next(n) : cfx_graph_first(g);
    return n && n->op == CFX_OP_PLACEHOLDER ? n : NULL;
}

static cfx_status note(cfxi_lower *l, const cfx_node *n, cfxi_what what)
{
    return cfx_node_map_set(l->what, n, cfx_value_int(what), l->err);
}

static cfx_status note_branch(cfxi_lower *l, cfx_value region, cfx_value operands)
{
    const cfx_graph *g = cfx_value_graph(region);
    size_t i = 0;
    for (const cfx_node *in = g ? next_input(g, NULL) : NULL; in; in = next_input(g, in))
        CFX_TRY(note(l, in, what_is(l, item_of(operands, i++))));
    return CFX_OK;
}

/* The inputs of the body, and of the test, which are the same. */
static cfx_status note_loop(cfxi_lower *l, cfx_value test, cfx_value body, cfx_value state)
{
    const cfx_graph *g = cfx_value_graph(body);
    const cfx_graph *tested = cfx_value_graph(test);
    const cfx_node *in = g ? next_input(g, NULL) : NULL;
    const cfx_node *twin = tested ? next_input(tested, NULL) : NULL;
    if (in && !tested) {
        CFX_TRY(note(l, in, CFXI_WHAT_NUMBER));  /* the index */
        in = next_input(g, in);
    }
    for (size_t i = 0; in; i++, in = next_input(g, in)) {
        const cfxi_what what = state_what(l, state, body, i, in);
        CFX_TRY(note(l, in, what));
        if (twin)
            CFX_TRY(note(l, twin, what));
        twin = twin ? next_input(tested, twin) : NULL;
    }
    return CFX_OK;
}

cfx_status cfxi_lower_note_inputs(cfxi_lower *l, const cfx_node *n)
{
    const cfx_operator op = cfx_node_operator(n);
    if (op == CFX_OPID_cond) {
        const cfx_value operands = argument(n, op, 3);
        CFX_TRY(note_branch(l, argument(n, op, 1), operands));
        return note_branch(l, argument(n, op, 2), operands);
    }
    return note_loop(l, op == CFX_OPID_while_loop ? argument(n, op, 0) : cfx_value_invalid(),
                     argument(n, op, 1), argument(n, op, 2));
}

static cfxi_what either(cfxi_what a, cfxi_what b) { return a == b ? a : CFXI_WHAT_ANY; }

cfxi_what cfxi_lower_region_item(const cfxi_lower *l, const cfx_node *n, size_t i)
{
    const cfx_operator op = cfx_node_operator(n);
    const bool branches = op == CFX_OPID_cond;
    const cfx_value a = branches ? output_of(argument(n, op, 1)) : argument(n, op, 2);
    const cfx_value b = output_of(argument(n, op, branches ? 2 : 1));
    if (i == SIZE_MAX)
        return branches ? either(what_is(l, a), what_is(l, b)) : CFXI_WHAT_ANY;
    return either(what_is(l, item_of(a, i)), what_is(l, item_of(b, i)));
}
