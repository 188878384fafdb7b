/* known_values.c - what is known without running a graph: numbers, and whether something is
 * true. */
#include "known_values_impl.h"

/* ---- literals ------------------------------------------------------------------------------ */

static cfxi_truth3 truth(bool yes) { return yes ? CFXI_IS_TRUE : CFXI_IS_FALSE; }

cfxi_truth3 cfxi_analysis_known_truth(cfx_value v)
{
    size_t n;
    switch (v.kind) {
    case CFX_KIND_NONE:
        return CFXI_IS_FALSE;
    case CFX_KIND_BOOL:
        return truth(v.as.b);
    case CFX_KIND_INT:
        return truth(v.as.i != 0);
    case CFX_KIND_FLOAT:
        return truth(v.as.f != 0);
    case CFX_KIND_BIGINT:
        return CFXI_IS_TRUE;
    case CFX_KIND_STR:
        return truth(v.as.str->size > 0);
    case CFX_KIND_TUPLE:
    case CFX_KIND_LIST:
        cfx_value_items(v, &n);
        return truth(n > 0);
    default:
        return CFXI_NOT_KNOWN;
    }
}

bool cfxi_analysis_is_constant(cfx_value v)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    switch (v.kind) {
    case CFX_KIND_LIST:
    case CFX_KIND_DICT:
    case CFX_KIND_SET:
    case CFX_KIND_GRAPH:
    case CFX_KIND_INVALID:
        return false;
    default:
        break;
    }
    for (size_t i = 0; i < n; i++)
        if (!cfxi_analysis_is_constant(items[i]))
            return false;
    return true;
}

/* ---- calls --------------------------------------------------------------------------------- */

static bool is_number(cfx_value v)
{
    return v.kind == CFX_KIND_BOOL || v.kind == CFX_KIND_INT || v.kind == CFX_KIND_FLOAT;
}

enum { MOST_ARGS = 2 };

/* A number, or what is known of a node; INVALID if nothing is. */
static cfx_value known_value(const cfx_node_map *known, cfx_value v)
{
    if (v.kind == CFX_KIND_NODE)
        return known ? cfx_node_map_get(known, v.as.node) : cfx_value_invalid();
    return v;
}

/* What a call of a function of `operator` gives, with what is known of its arguments. */
static cfx_value call_with(const cfx_node *n, const cfx_node_map *known)
{
    cfx_value args[MOST_ARGS];
    const size_t count = cfx_node_num_args(n);
    if (n->op != CFX_OP_CALL_FUNCTION || n->kwargs || count == 0 || count > MOST_ARGS)
        return cfx_value_invalid();
    for (size_t i = 0; i < count; i++) {
        args[i] = known_value(known, cfx_node_arg(n, i));
        if (!is_number(args[i]))
            return cfx_value_invalid();
    }
    const char *name = cfx_node_target(n, NULL, NULL);
    return name ? cfxi_analysis_scalar_call(name, args, count) : cfx_value_invalid();
}

/* An item of a tuple that is written down. */
static cfx_value item_of(const cfx_node *n)
{
    const cfx_value of = cfx_node_arg(n, 0);
    const bool plain = of.kind == CFX_KIND_TUPLE && cfx_node_num_args(n) == 2 &&
                       cfxi_analysis_is_getitem(n) && !n->kwargs;
    return plain ? cfxi_ir_seq_item(of, cfx_node_arg(n, 1)) : cfx_value_invalid();
}

cfx_value cfxi_analysis_call_known(const cfx_node *n)
{
    const cfx_value v = call_with(n, NULL);
    return v.kind != CFX_KIND_INVALID ? v : item_of(n);
}

/* ---- regions ------------------------------------------------------------------------------- */

/* Fills `known` with what a region computes, from what `known` has of its inputs: numbers only. */
static cfx_status know_region(cfx_graph *region, cfx_node_map *known, cfx_error *err)
{
    for (cfx_node *n = region->root.next; n != &region->root; n = n->next) {
        const cfx_value v = call_with(n, known);
        if (n->op != CFX_OP_PLACEHOLDER)  /* what was known of an earlier turn may not be now */
            CFX_TRY(cfx_node_map_set(known, n, v, err));
    }
    return CFX_OK;
}

/* Notes the numbers among the values of the inputs of region i. */
static cfx_status note_inputs(const cfxi_control *c, size_t i, const cfx_value *values,
                              cfx_node_map *known, cfx_error *err)
{
    cfx_node *n = cfxi_analysis_control_input(c, i, 0);
    for (size_t k = 0; k < c->n; k++, n = cfxi_ir_next_input(c->regions[i], n))
        CFX_TRY(cfx_node_map_set(known, n, is_number(values[k]) ? values[k] : cfx_value_invalid(),
                                 err));
    return CFX_OK;
}

/* Runs the loop as far as numbers tell. `state` holds what is known of it. */
static cfx_status count_trips(const cfxi_control *c, cfx_value *state, size_t most, size_t *trips,
                              cfx_node_map *known, cfx_error *err)
{
    for (size_t done = 0; done <= most; done++) {
        CFX_TRY(note_inputs(c, 0, state, known, err));
        CFX_TRY(know_region(c->regions[0], known, err));
        const cfx_value test = known_value(known, cfxi_analysis_control_result(c, 0, 0));
        const cfxi_truth3 more = cfxi_analysis_known_truth(test);
        if (more != CFXI_IS_TRUE) {
            *trips = more == CFXI_IS_FALSE ? done : SIZE_MAX;
            return CFX_OK;
        }
        CFX_TRY(note_inputs(c, 1, state, known, err));
        CFX_TRY(know_region(c->regions[1], known, err));
        for (size_t k = 0; k < c->n; k++)
            state[k] = known_value(known, cfxi_analysis_control_result(c, 1, k));
    }
    return CFX_OK;
}

static cfx_status while_trips(const cfxi_control *c, size_t most, size_t *trips, cfx_error *err)
{
    const cfx_allocator *allocator = c->node->graph->allocator;
    const size_t bytes = (c->n + 1) * sizeof(cfx_value);
    cfx_value *state = cfxi_base_alloc(allocator, bytes);
    cfx_node_map *known = state ? cfx_node_map_new(allocator, err) : NULL;
    cfx_status status = known ? CFX_OK : cfxi_base_nomem(err);
    for (size_t k = 0; state && k < c->n; k++)
        state[k] = is_number(c->operands[k]) ? c->operands[k] : cfx_value_invalid();
    if (status == CFX_OK)
        status = count_trips(c, state, most, trips, known, err);
    cfx_node_map_free(known);
    cfxi_base_free(allocator, state, bytes);
    return status;
}

cfx_status cfxi_analysis_known_trips(const cfxi_control *c, size_t most, size_t *trips,
                                     cfx_error *err)
{
    *trips = SIZE_MAX;
    if (c->op == CFX_OPID_while_loop)
        return while_trips(c, most, trips, err);
    const cfx_value count = cfxi_analysis_control_subject(c);
    if (c->op == CFX_OPID_for_loop && count.kind == CFX_KIND_INT)
        *trips = count.as.i <= 0 ? 0 : (uint64_t)count.as.i <= most ? (size_t)count.as.i : SIZE_MAX;
    return CFX_OK;
}

cfx_status cfxi_analysis_known_first(const cfxi_control *c, bool *runs, cfx_error *err)
{
    cfx_node_map *known = cfx_node_map_new(c->node->graph->allocator, err);
    cfx_status status = known ? note_inputs(c, 0, c->operands, known, err) : CFX_E_NOMEM;
    if (status == CFX_OK)
        status = know_region(c->regions[0], known, err);
    *runs = false;
    if (status == CFX_OK) {
        const cfx_value test = known_value(known, cfxi_analysis_control_result(c, 0, 0));
        *runs = cfxi_analysis_known_truth(test) == CFXI_IS_TRUE;
    }
    cfx_node_map_free(known);
    return status;
}
