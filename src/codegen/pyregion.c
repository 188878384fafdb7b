/* pyregion.c - control flow: cond, while_loop and for_loop as if, while and for.
 *
 * The nodes of a region become local statements under names that are free in the whole function.
 * An input of a region that is a value of the outer graph goes by that value's name; a loop's state
 * has names of its own, assigned together at the end of each turn. What a region has no more use
 * for is cleared as outside, except its inputs: they belong to the outer graph or to the next turn.
 *
 *     %cond = cfx.cond(%pred, then, else, (%x,))       if pred:
 *                                                          relu = torch.relu(x)
 *                                                          cond = relu;  relu = None
 *                                                      else:
 *                                                          cond = x
 */
#include "pycode_impl.h"

/* The parameters of an operator by position; any may be given by its name. */
static const char *parameter_name(cfxi_py_form form, size_t i)
{
    static const char *const cond_names[] = {"pred", "then", "otherwise", "operands"};
    static const char *const while_names[] = {"test", "body", "state"};
    static const char *const for_names[] = {"count", "body", "state"};
    if (form == CFXI_PY_COND)
        return cond_names[i];
    return form == CFXI_PY_WHILE ? while_names[i] : for_names[i];
}

static cfx_value parameter(const cfx_node *n, cfxi_py_form form, size_t i)
{
    cfx_value v = cfx_node_arg(n, i);
    return v.kind != CFX_KIND_INVALID ? v : cfx_node_kwarg(n, parameter_name(form, i));
}

static cfx_graph *region_of(const cfx_node *n, cfxi_py_form form, size_t i)
{
    return cfx_value_graph(parameter(n, form, i));
}

/* The values that the regions are called with; none if they are left out. */
static cfx_value operands_of(const cfx_node *n, cfxi_py_form form)
{
    cfx_value v = parameter(n, form, form == CFXI_PY_COND ? 3 : 2);
    return v.kind != CFX_KIND_INVALID ? v : cfxi_seq_value(CFX_KIND_TUPLE, NULL, 0);
}

bool cfxi_py_has_regions(const cfx_node *n, cfxi_py_form form)
{
    switch (form) {
    case CFXI_PY_COND:
        return region_of(n, form, 1) && region_of(n, form, 2);
    case CFXI_PY_WHILE:
        return region_of(n, form, 0) && region_of(n, form, 1);
    case CFXI_PY_FOR:
        return region_of(n, form, 1) != NULL;
    case CFXI_PY_CALL:
    case CFXI_PY_INFIX:
    case CFXI_PY_PREFIX:
    case CFXI_PY_INPLACE:
    case CFXI_PY_GETITEM:
    case CFXI_PY_SETITEM:
    case CFXI_PY_GETATTR:
        break;
    }
    return false;
}

/* ---- inputs -------------------------------------------------------------------------------- */

static size_t count_inputs(const cfx_graph *region)
{
    size_t count = 0;
    for (const cfx_node *n = cfxi_next_input(region, NULL); n; n = cfxi_next_input(region, n))
        count++;
    return count;
}

static bool is_sequence(cfx_value v)
{
    return v.kind == CFX_KIND_TUPLE || v.kind == CFX_KIND_LIST;
}

/* The values for the inputs of a region must be as many as those. */
static cfx_status check_count(const cfx_node *n, cfx_value values, size_t wanted, const char *what,
                              cfx_error *err)
{
    size_t given;
    cfx_value_items(values, &given);
    if (!is_sequence(values) || given == wanted)
        return CFX_OK;
    return cfxi_py_fail(n, CFX_E_GRAPH, err, "%s: the region has %zu, but %zu are given", what,
                        wanted, given);
}

/* "a, b" or, to be unpacked, "a,". */
static void put_input_names(cfx_pycode *gen, const cfx_node *first, bool unpack)
{
    const cfx_graph *region = first->graph;
    size_t count = 0;
    for (const cfx_node *n = first; n; n = cfxi_next_input(region, n), count++) {
        if (count > 0)
            CFXI_PY_LIT(gen, ", ");
        cfxi_py_put_name(gen, n);
    }
    if (unpack && count == 1)
        cfxi_py_char(gen, ',');
}

/* `a, b = 0, x`, or `a, b = state` where the values come in one. */
static cfx_status assign_inputs(cfx_pycode *gen, const cfx_node *first, cfx_value values,
                                const cfx_node *n, cfx_error *err)
{
    size_t count;
    const cfx_value *items = cfx_value_items(values, &count);
    bool unpack = !is_sequence(values);
    cfxi_py_begin_line(gen);
    put_input_names(gen, first, unpack);
    CFXI_PY_LIT(gen, " = ");
    if (unpack)
        CFX_TRY(cfxi_py_value(gen, values, n, err));
    for (size_t i = 0; !unpack && i < count; i++) {
        if (i > 0)
            CFXI_PY_LIT(gen, ", ");
        CFX_TRY(cfxi_py_value(gen, items[i], n, err));
    }
    cfxi_py_end_line(gen);
    return CFX_OK;
}

static cfx_status define_inputs(cfx_pycode *gen, cfx_node *first, cfx_error *err)
{
    for (cfx_node *n = first; n; n = cfxi_next_input(first->graph, n))
        CFX_TRY(cfxi_py_define_local(gen, n, err));
    return CFX_OK;
}

/* A branch's inputs: outer values keep their names, literals get one. */
static cfx_status bind_operands(cfx_pycode *gen, cfx_graph *region, cfx_value operands,
                                const cfx_node *n, cfx_error *err)
{
    size_t count;
    const cfx_value *items = cfx_value_items(operands, &count);
    cfx_node *first = cfxi_next_input(region, NULL);
    CFX_TRY(check_count(n, operands, count_inputs(region), "inputs of a branch", err));
    if (!first)
        return CFX_OK;
    if (!is_sequence(operands)) {
        CFX_TRY(define_inputs(gen, first, err));
        return assign_inputs(gen, first, operands, n, err);
    }
    for (cfx_node *input = first; input; input = cfxi_next_input(region, input), items++) {
        if (items->kind == CFX_KIND_NODE) {
            CFX_TRY(cfxi_py_alias(gen, input, cfxi_py_name(gen, items->as.node), err));
            continue;
        }
        CFX_TRY(cfxi_py_define_local(gen, input, err));
        cfxi_py_begin_line(gen);
        cfxi_py_put_name(gen, input);
        CFXI_PY_LIT(gen, " = ");
        CFX_TRY(cfxi_py_value(gen, *items, n, err));
        cfxi_py_end_line(gen);
    }
    return CFX_OK;
}

/* ---- bodies -------------------------------------------------------------------------------- */

/* The statements of a region up to its output, at which *frame then stands. */
static cfx_status region_body(cfx_pycode *gen, cfx_graph *region, const cfx_node *n,
                              cfxi_py_frame *frame, const cfx_node **output, cfx_error *err)
{
    *frame = cfxi_py_frame_of(region, true);
    for (cfx_node *at = region->root.next; at != &region->root; at = at->next, frame->index++) {
        if (at->op == CFX_OP_OUTPUT) {
            if (!at->args || at->args->size == 0)
                return cfxi_py_fail(at, CFX_E_INDEX, err, "the output has no value");
            *output = at;
            return CFX_OK;
        }
        if (at->op != CFX_OP_PLACEHOLDER)
            CFX_TRY(cfxi_py_statement(gen, frame, at, err));
        if (gen->nomem)
            return cfxi_nomem(err);
    }
    return cfxi_py_fail(n, CFX_E_GRAPH, err, "a region has no output");
}

static void put_line(cfx_pycode *gen, const char *text)
{
    cfxi_py_begin_line(gen);
    cfxi_py_put(gen, text, strlen(text));
    cfxi_py_end_line(gen);
}

/* `a = b = None` on a line of its own, after a block. */
static void clear_line(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *n)
{
    size_t start = gen->body.size;
    cfxi_py_begin_line(gen);
    if (cfxi_py_dead_names(gen, frame, n) == 0) {
        gen->body.size = gen->nomem ? gen->body.size : start;
        return;
    }
    CFXI_PY_LIT(gen, "None");
    cfxi_py_end_line(gen);
}

/* ---- cond ---------------------------------------------------------------------------------- */

static cfx_status branch(cfx_pycode *gen, cfx_node *n, cfx_graph *region, cfx_error *err)
{
    cfxi_py_frame frame;
    const cfx_node *output = NULL;
    gen->indent += 4;
    CFX_TRY(bind_operands(gen, region, operands_of(n, CFXI_PY_COND), n, err));
    CFX_TRY(region_body(gen, region, n, &frame, &output, err));
    CFX_TRY(cfxi_py_type_text(gen, n, err));
    cfxi_py_begin_line(gen);
    CFX_TRY(cfxi_py_assigned_name(gen, n, err));
    CFXI_PY_LIT(gen, " = ");
    CFX_TRY(cfxi_py_value(gen, output->args->items[0], output, err));
    cfxi_py_clear_dead(gen, &frame, output);
    cfxi_py_end_line(gen);
    gen->indent -= 4;
    return CFX_OK;
}

static cfx_status cond(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, cfx_error *err)
{
    cfxi_py_begin_line(gen);
    CFXI_PY_LIT(gen, "if ");
    CFX_TRY(cfxi_py_value(gen, parameter(n, CFXI_PY_COND, 0), n, err));
    cfxi_py_char(gen, ':');
    cfxi_py_end_line(gen);
    CFX_TRY(branch(gen, n, region_of(n, CFXI_PY_COND, 1), err));
    put_line(gen, "else:");
    CFX_TRY(branch(gen, n, region_of(n, CFXI_PY_COND, 2), err));
    clear_line(gen, frame, n);
    return CFX_OK;
}

/* ---- loops --------------------------------------------------------------------------------- */

/* Whether state number i, the input `state`, is handed to the next turn as it is. */
static bool is_kept(cfx_value v, const cfx_node *state)
{
    return v.kind == CFX_KIND_NODE && v.as.node == state;
}

/* `i, acc = add, mul`: all at once, since a new value may be made of an old one. */
static cfx_status next_state(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *first,
                             const cfx_node *output, cfx_error *err)
{
    cfx_value values = output->args->items[0];
    const cfx_graph *region = frame->graph;
    if (!is_sequence(values))
        return assign_inputs(gen, first, values, output, err);
    size_t count;
    const cfx_value *items = cfx_value_items(values, &count);
    size_t changed = 0;
    size_t start = gen->body.size;
    cfxi_py_begin_line(gen);
    const cfx_node *state = first;
    for (size_t i = 0; i < count; i++, state = cfxi_next_input(region, state)) {
        if (is_kept(items[i], state))
            continue;
        cfxi_py_put(gen, ", ", changed++ ? 2 : 0);
        cfxi_py_put_name(gen, state);
    }
    if (changed == 0) {
        gen->body.size = gen->nomem ? gen->body.size : start;
        return CFX_OK;
    }
    CFXI_PY_LIT(gen, " = ");
    state = first;
    for (size_t i = 0, done = 0; i < count; i++, state = cfxi_next_input(region, state)) {
        if (is_kept(items[i], state))
            continue;
        cfxi_py_put(gen, ", ", done++ ? 2 : 0);
        CFX_TRY(cfxi_py_value(gen, items[i], output, err));
    }
    cfxi_py_clear_dead(gen, frame, output);
    cfxi_py_end_line(gen);
    return CFX_OK;
}

/* The statements of one turn, and the state for the next one. */
static cfx_status loop_body(cfx_pycode *gen, const cfx_node *n, cfx_graph *region,
                            const cfx_node *first, size_t n_state, cfx_error *err)
{
    cfxi_py_frame frame;
    const cfx_node *output = NULL;
    size_t start = gen->body.size;
    CFX_TRY(region_body(gen, region, n, &frame, &output, err));
    CFX_TRY(check_count(n, output->args->items[0], n_state, "state of a loop", err));
    if (n_state > 0)
        CFX_TRY(next_state(gen, &frame, first, output, err));
    if (gen->body.size == start)
        put_line(gen, "pass");
    return CFX_OK;
}

/* `loop = (i, acc);  i = acc = x = None` */
static cfx_status loop_result(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                              const cfx_node *first, cfx_error *err)
{
    CFX_TRY(cfxi_py_type_text(gen, n, err));
    cfxi_py_begin_line(gen);
    CFX_TRY(cfxi_py_assigned_name(gen, n, err));
    CFXI_PY_LIT(gen, " = (");
    if (first)
        put_input_names(gen, first, true);
    CFXI_PY_LIT(gen, ")");
    cfxi_py_end_piece(gen);
    size_t start = gen->body.size;
    CFXI_PY_LIT(gen, ";  ");
    size_t dead = 0;
    for (const cfx_node *s = first; s; s = cfxi_next_input(s->graph, s), dead++) {
        cfxi_py_put_name(gen, s);
        CFXI_PY_LIT(gen, " = ");
    }
    dead += cfxi_py_dead_names(gen, frame, n);
    if (dead)
        CFXI_PY_LIT(gen, "None");
    else if (!gen->nomem)
        gen->body.size = start;
    cfxi_py_end_line(gen);
    return CFX_OK;
}

static cfx_status for_loop(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, cfx_error *err)
{
    cfx_graph *region = region_of(n, CFXI_PY_FOR, 1);
    cfx_node *index = cfxi_next_input(region, NULL);
    cfx_node *first = index ? cfxi_next_input(region, index) : NULL;
    cfx_value state = operands_of(n, CFXI_PY_FOR);
    size_t n_inputs = count_inputs(region);
    size_t n_state = n_inputs ? n_inputs - 1 : 0;
    CFX_TRY(check_count(n, state, n_state, "state of a loop", err));
    if (index)
        CFX_TRY(define_inputs(gen, index, err));
    if (first)
        CFX_TRY(assign_inputs(gen, first, state, n, err));
    cfxi_py_begin_line(gen);
    CFXI_PY_LIT(gen, "for ");
    if (index)
        cfxi_py_put_name(gen, index);
    else
        cfxi_py_char(gen, '_');
    CFXI_PY_LIT(gen, " in range(");
    CFX_TRY(cfxi_py_value(gen, parameter(n, CFXI_PY_FOR, 0), n, err));
    CFXI_PY_LIT(gen, "):");
    cfxi_py_end_line(gen);
    gen->indent += 4;
    CFX_TRY(loop_body(gen, n, region, first, n_state, err));
    gen->indent -= 4;
    return loop_result(gen, frame, n, first, err);
}

/* The one node that a test computes, if it can stand in the `while` line; *simple tells whether
 * the test can, with or without a node. */
static cfx_status simple_test(cfx_pycode *gen, cfx_graph *test, cfx_node **node,
                              const cfxi_py_callee **callee, bool *simple, cfx_error *err)
{
    *node = NULL;
    *simple = false;
    cfx_node *n = test->root.next;
    for (; n != &test->root && n->op != CFX_OP_OUTPUT; n = n->next) {
        if (n->op == CFX_OP_PLACEHOLDER)
            continue;
        if (*node)
            return CFX_OK;
        *node = n;
    }
    if (n == &test->root || !n->args || n->args->size == 0)
        return CFX_OK; /* region_body has the message */
    *simple = true;
    if (!*node)
        return CFX_OK;
    cfx_value value = n->args->items[0];
    *simple = value.kind == CFX_KIND_NODE && value.as.node == *node;
    if (!*simple || (*node)->op != CFX_OP_CALL_FUNCTION)
        return CFX_OK;
    CFX_TRY(cfxi_py_callee_of(gen, *node, callee, err));
    CFX_TRY(cfxi_py_wrap(gen, *node, *callee, err));
    *simple = (*callee)->form != CFXI_PY_INPLACE && (*callee)->form != CFXI_PY_SETITEM &&
              !cfxi_py_has_regions(*node, (*callee)->form);
    return CFX_OK;
}

static cfx_status while_line(cfx_pycode *gen, const cfx_node *n, cfx_graph *test, cfx_error *err)
{
    cfx_node *node;
    const cfxi_py_callee *callee = NULL;
    bool simple;
    CFX_TRY(simple_test(gen, test, &node, &callee, &simple, err));
    if (!simple) {
        cfxi_py_frame frame;
        const cfx_node *output = NULL;
        put_line(gen, "while True:");
        gen->indent += 4;
        CFX_TRY(region_body(gen, test, n, &frame, &output, err));
        cfxi_py_begin_line(gen);
        CFXI_PY_LIT(gen, "if not ");
        CFX_TRY(cfxi_py_value(gen, output->args->items[0], output, err));
        cfxi_py_char(gen, ':');
        cfxi_py_end_line(gen);
        gen->indent += 4;
        put_line(gen, "break");
        gen->indent -= 8;
        return CFX_OK;
    }
    const cfx_node *output = test->root.next;
    while (output->op != CFX_OP_OUTPUT)
        output = output->next;
    cfxi_py_begin_line(gen);
    CFXI_PY_LIT(gen, "while ");
    if (node)
        CFX_TRY(cfxi_py_rhs(gen, node, callee, err));
    else
        CFX_TRY(cfxi_py_value(gen, output->args->items[0], output, err));
    cfxi_py_char(gen, ':');
    cfxi_py_end_line(gen);
    return CFX_OK;
}

static cfx_status while_loop(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, cfx_error *err)
{
    cfx_graph *test = region_of(n, CFXI_PY_WHILE, 0);
    cfx_graph *body = region_of(n, CFXI_PY_WHILE, 1);
    cfx_node *first = cfxi_next_input(body, NULL);
    cfx_value state = operands_of(n, CFXI_PY_WHILE);
    size_t n_state = count_inputs(body);
    CFX_TRY(check_count(n, state, n_state, "state of a loop", err));
    if (count_inputs(test) != n_state)
        return cfxi_py_fail(n, CFX_E_GRAPH, err,
                            "the test of a loop has %zu inputs and the body %zu",
                            count_inputs(test), n_state);
    if (first) {
        CFX_TRY(define_inputs(gen, first, err));
        CFX_TRY(assign_inputs(gen, first, state, n, err));
    }
    cfx_node *input = cfxi_next_input(test, NULL);
    for (cfx_node *s = first; s; s = cfxi_next_input(body, s), input = cfxi_next_input(test, input))
        CFX_TRY(cfxi_py_alias(gen, input, cfxi_py_name(gen, s), err));
    CFX_TRY(while_line(gen, n, test, err));
    gen->indent += 4;
    CFX_TRY(loop_body(gen, n, body, first, n_state, err));
    gen->indent -= 4;
    return loop_result(gen, frame, n, first, err);
}

cfx_status cfxi_py_control_flow(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                                cfxi_py_form form, cfx_error *err)
{
    if (form == CFXI_PY_COND)
        return cond(gen, frame, n, err);
    return form == CFXI_PY_WHILE ? while_loop(gen, frame, n, err) : for_loop(gen, frame, n, err);
}
