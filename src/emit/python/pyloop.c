/* pyloop.c - while_loop and for_loop as while and for.
 *
 * The state of a loop is in variables: that of the value it begins with, where nobody needs that
 * one any more, else new ones. What a turn does not change is no variable of the loop: it is the
 * value outside. What is read of the result is the variables.
 */
#include "pyregion_impl.h"

/* ---- loops --------------------------------------------------------------------------------- */

typedef struct loop {
    cfx_node *node;
    cfx_graph *test;      /* of a while loop, or NULL */
    cfx_graph *body;
    cfx_node *index;      /* of a for loop, or NULL */
    cfx_node *first;      /* the first input of the body that is state, or NULL */
    cfx_value state;      /* what it is at first, ... */
    cfx_value after;      /* ... and after a turn */
    size_t size;
    cfxi_py_exit exit;    /* how a turn leaves it */
    cfxi_py_assignment *start;    /* variables and their first values; no name for what has none */
    cfxi_py_assignment *next;     /* after a turn; no name for what does not change */
} loop;

static loop new_loop(cfx_node *n, cfxi_py_form form)
{
    loop l = {.node = n, .body = cfxi_emit_py_region(n, 1), .state = cfxi_emit_py_operands(n)};
    l.size = cfxi_emit_py_count_inputs(l.body);
    l.first = cfxi_ir_next_input(l.body, NULL);
    l.after = cfxi_emit_py_output_value(l.body);
    if (form == CFXI_PY_WHILE) {
        l.test = cfxi_emit_py_region(n, 0);
    } else if (l.first) {
        l.index = l.first;
        l.first = cfxi_ir_next_input(l.body, l.index);
        l.size--;
    }
    return l;
}

/* Whether a turn leaves a value of the state as it is. */
static bool is_kept(const loop *l, size_t k, const cfx_node *input)
{
    size_t n;
    const cfx_value *items = cfx_value_items(l->after, &n);
    return n == l->size && cfxi_emit_py_is_sequence(l->after) &&
           cfxi_emit_py_is_node_of(items[k], l->body) && items[k].as.node == input;
}

/* Whether the state that begins with `d` can have the variable of `d`. */
static bool can_go_on(cfx_pycode *gen, cfxi_py_frame *frame, const loop *l, const cfx_node *d,
                      const cfx_node *input)
{
    if (!cfxi_emit_py_may_take(gen, frame, d) ||
        !cfxi_emit_py_same_base(cfxi_emit_py_name(gen, d), input->name->data, input->name->size))
        return false;
    size_t n;
    const cfx_value *items = cfx_value_items(l->state, &n);
    const bool test = l->exit.head && items[l->exit.go].kind == CFX_KIND_NODE &&
                      items[l->exit.go].as.node == d;  /* that use has no variable */
    for (uint32_t i = 0; i < l->node->n_inputs; i++)
        if (l->node->inputs[i].def == d)
            return l->node->inputs[i].count == 1u + test;
    return false;
}

/* Finds the variable of one value of the state. */
static cfx_status bind_state(cfx_pycode *gen, cfxi_py_frame *frame, loop *l, size_t k,
                             cfx_node *input, const cfx_value *v, cfx_error *err)
{
    bool kept = is_kept(l, k, input);
    cfx_node *d = v->kind == CFX_KIND_NODE ? v->as.node : NULL;
    if (kept)
        CFX_TRY(cfxi_emit_py_bind_input(gen, input, v, err));
    else if (!cfxi_base_pointers_set(&gen->operands, input, NULL, gen->allocator) ||
             !cfxi_base_pointers_set(&gen->instead, input, NULL, gen->allocator))
        return cfxi_base_nomem(err);
    bool same = !kept && d && !cfxi_base_pointers_get(&gen->instead, d) &&
                can_go_on(gen, frame, l, d, input);
    if (same)
        CFX_TRY(cfxi_emit_py_alias(gen, input, cfxi_emit_py_name(gen, d), err));
    else if (kept && d && !cfxi_emit_py_holder(gen, cfxi_emit_py_name(gen, d)))
        CFX_TRY(cfxi_emit_py_hold(gen, cfxi_emit_py_name(gen, d), d, err));
    else if (!kept)
        CFX_TRY(cfxi_emit_py_define_local(gen, input, err));
    const cfxi_name *name = cfxi_emit_py_name(gen, input);
    bool silent = same || (kept && !cfxi_emit_py_has_variable(gen, input));
    l->start[k] = (cfxi_py_assignment){silent ? NULL : name, *v, NULL};
    l->next[k] = (cfxi_py_assignment){kept ? NULL : name, cfx_value_invalid(), NULL};
    return CFX_OK;
}

/* What the loop begins with: `i, acc = 0, x`. */
static cfx_status begin_loop(cfx_pycode *gen, cfxi_py_frame *frame, loop *l, cfx_error *err)
{
    size_t count;
    bool any;
    const cfx_value *items = cfx_value_items(l->state, &count);
    l->start = cfxi_emit_py_new_assignments(gen, l->size);
    l->next = cfxi_emit_py_new_assignments(gen, l->size);
    if (!l->start || !l->next)
        return cfxi_base_nomem(err);
    if (l->index)
        CFX_TRY(cfxi_emit_py_define_local(gen, l->index, err));
    cfx_node *input = l->first;
    for (size_t k = 0; k < l->size; k++, input = cfxi_ir_next_input(l->body, input)) {
        if (l->exit.head && (k == l->exit.go || k == l->exit.index)) {
            l->start[k] = l->next[k] = (cfxi_py_assignment){NULL, items[k], NULL};
            continue;
        }
        if (cfxi_emit_py_is_sequence(l->state)) {
            CFX_TRY(bind_state(gen, frame, l, k, input, &items[k], err));
            continue;
        }
        CFX_TRY(cfxi_emit_py_define_local(gen, input, err));
        l->start[k] =
            (cfxi_py_assignment){cfxi_emit_py_name(gen, input), cfx_value_invalid(), NULL};
        l->next[k] = l->start[k];
    }
    if (!cfxi_emit_py_is_sequence(l->state))
        return l->first ? cfxi_emit_py_unpack_inputs(gen, l->first, l->state, l->node, err)
                        : CFX_OK;
    CFX_TRY(cfxi_emit_py_put_assignment(gen, l->start, l->size, l->node, &any, err));
    if (any)
        cfxi_emit_py_end_line(gen);
    return CFX_OK;
}

/* The state after a turn. */
static cfx_status end_turn(cfx_pycode *gen, const loop *l, cfxi_py_run *run, cfx_error *err)
{
    if (cfxi_emit_py_is_sequence(l->after))
        return cfxi_emit_py_assign_results(gen, run, l->next, l->size, err);
    return l->size ? cfxi_emit_py_unpack_inputs(gen, l->first, l->after, run->output, err) : CFX_OK;
}

static bool is_used_once(const cfx_node *n) { return n->n_users == 1 && n->users->count == 1; }

/* Whether a call reads a dict, and what it gives does not show it later. */
static bool only_reads(const cfx_node *n)
{
    static const uint16_t rows[] = {CFX_OPID_getitem, CFX_OPID_contains, CFX_OPID_dict_get,
                                    CFX_OPID_len,     CFX_OPID_bool,     CFX_OPID_not,
                                    CFX_OPID_list,    CFX_OPID_tuple,    CFX_OPID_builtin_sorted};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (cfx_node_operator(n) == rows[i])
            return true;
    return false;
}

/* Whether `n`, which makes a new dict of a dict, is the last to use that. */
static bool is_last_use(const cfx_node *dict, const cfx_node *n)
{
    for (const cfx_use *use = cfx_node_first_use(dict); use; use = cfx_use_next(use))
        if (use->user != n && (use->user->graph != n->graph || !only_reads(use->user) ||
                               !cfx_node_before(use->user, n)))
            return false;
    return true;
}

/* Whether a value of the state, which begins with `first`, may be one list or dict that grows. */
static bool can_grow(cfx_value first, const cfx_node *input, const cfx_node *n)
{
    const cfx_value more = n->args->items[1];
    if (first.kind == CFX_KIND_LIST)
        return more.kind == CFX_KIND_LIST && is_used_once(input);
    return first.kind == CFX_KIND_DICT && is_last_use(input, n) &&
           (more.kind == CFX_KIND_DICT ||
            (more.kind == CFX_KIND_NODE && cfx_node_operator(more.as.node) == CFX_OPID_dict));
}

/* Notes whether the next value of a list in the state is that list and a few items more, and nobody
 * else can have it: it was made for the loop, and is used for nothing else. Then the items are
 * added to it, `out += [x]`, as a copy at each turn would take the square of the time. Likewise of
 * a dict, `d |= more`, which may be read before. */
static cfx_status note_growth(cfx_pycode *gen, const loop *l, size_t k, const cfx_node *input,
                              cfx_value next, cfx_error *err)
{
    size_t count;
    const cfxi_py_callee *callee;
    const cfx_value *first = cfx_value_items(l->state, &count);
    if (!cfxi_emit_py_is_node_of(next, l->body))
        return CFX_OK;
    cfx_node *n = next.as.node;
    bool grows = cfxi_emit_py_is_sequence(l->state) && k < count &&
                 n->op == CFX_OP_CALL_FUNCTION && n->args && n->args->size == 2 && !n->kwargs &&
                 n->args->items[0].kind == CFX_KIND_NODE && n->args->items[0].as.node == input &&
                 can_grow(first[k], input, n) && is_used_once(n) && !cfxi_emit_py_has_type(n);
    if (grows) {
        CFX_TRY(cfxi_emit_py_callee_of(gen, n, &callee, err));
        grows = callee->form == CFXI_PY_INFIX && callee->size == 3 &&
                callee->text[1] == (first[k].kind == CFX_KIND_LIST ? '+' : '|');
    }
    if (!cfxi_base_pointers_set(&gen->growing, n, grows ? n : NULL, gen->allocator))
        return cfxi_base_nomem(err);
    return CFX_OK;
}

/* The statements of a turn. Those behind the branch that leaves the loop only decide whether there
 * is another one, which the head of the loop does. */
static cfx_status turn_body(cfx_pycode *gen, const loop *l, cfxi_py_run *run, cfx_error *err)
{
    if (!l->exit.head)
        return cfxi_emit_py_region_body(gen, run, err);
    const cfx_node *output = run->output;
    const cfxi_py_way_out *outer = gen->way_out;
    const cfxi_py_way_out out = {.cond = l->exit.cond, .item = l->exit.item, .items = l->next,
                                 .n = l->size, .where = output};
    gen->way_out = &out;
    run->output = l->exit.cond->next;
    const cfx_status status = cfxi_emit_py_region_body(gen, run, err);
    run->output = output;
    gen->way_out = outer;
    CFX_TRY(status);
    for (const cfx_node *n = l->exit.cond->next; n != output; n = n->next, run->frame.index++)
        if (!cfxi_emit_py_placed(gen, n))
            CFX_TRY(cfxi_emit_py_place_node(gen, n, CFXI_PY_INLINE, err));
    return CFX_OK;
}

static cfx_status loop_body(cfx_pycode *gen, loop *l, cfx_error *err)
{
    cfxi_py_run run;
    size_t count;
    size_t start = gen->body.size;
    CFX_TRY(cfxi_emit_py_enter(gen, l->body, l->node, &run, err));
    cfx_value values = run.output->args->items[0];
    const cfx_value *items = cfx_value_items(values, &count);
    CFX_TRY(cfxi_emit_py_check_count(l->node, values, l->size, "state of a loop", err));
    if (l->index)
        CFX_TRY(cfxi_emit_py_lend(gen, &run, cfxi_emit_py_name(gen, l->index), l->index, err));
    cfx_node *input = l->first;
    for (size_t k = 0; k < l->size; k++, input = cfxi_ir_next_input(l->body, input)) {
        if (l->next[k].name)
            CFX_TRY(cfxi_emit_py_lend(gen, &run, l->next[k].name, input, err));
        if (l->exit.head && (k == l->exit.go || k == l->exit.index))
            continue;
        l->next[k].value = cfxi_emit_py_is_sequence(values) ? items[k] : cfx_value_invalid();
        CFX_TRY(note_growth(gen, l, k, input, l->next[k].value, err));
    }
    CFX_TRY(cfxi_emit_py_want_all(gen, &run, l->next, l->size, err));
    CFX_TRY(turn_body(gen, l, &run, err));
    CFX_TRY(end_turn(gen, l, &run, err));
    if (gen->body.size == start)
        cfxi_emit_py_put_line(gen, "pass");
    return cfxi_emit_py_leave(gen, &run, err);
}

/* What is read of the state afterwards stays in its variable. */
static cfx_status loop_items(cfx_pycode *gen, cfxi_py_frame *frame, const loop *l, cfx_error *err)
{
    cfx_node **by_item =
        cfxi_base_arena_alloc(&gen->memory->arena, (l->size + 1) * sizeof *by_item);
    if (!by_item)
        return cfxi_base_nomem(err);
    cfx_node *input = l->first;
    for (size_t k = 0; k < l->size; k++, input = cfxi_ir_next_input(l->body, input))
        by_item[k] = input;
    cfxi_emit_py_refresh(frame);
    for (const cfx_use *use = l->node->users; use; use = cfx_use_next(use)) {
        bool takes;
        size_t k;
        cfx_node *user = use->user;
        CFX_TRY(cfxi_emit_py_takes_item(gen, use, l->size, &k, &takes, err));
        CFX_TRY(cfxi_emit_py_place_node(gen, user, CFXI_PY_SHARED, err));
        const cfx_value *instead = cfxi_base_pointers_get(&gen->instead, by_item[k]);
        if (!cfxi_base_pointers_set(&gen->instead, user, (void *)(uintptr_t)instead,
                                    gen->allocator))
            return cfxi_base_nomem(err);
        if (user->n_users == 0 || instead)
            continue;
        const cfxi_name *name = cfxi_emit_py_name(gen, by_item[k]);
        CFX_TRY(cfxi_emit_py_alias(gen, user, name, err));
        CFX_TRY(cfxi_emit_py_hold_longest(gen, name, user, err));
    }
    return CFX_OK;
}

/* `loop = (i, acc);  i = acc = x = None`, or only what is used no more. */
static cfx_status loop_result(cfx_pycode *gen, cfxi_py_frame *frame, const loop *l, cfx_error *err)
{
    bool only = !cfxi_emit_py_has_type(l->node);
    if (only)
        CFX_TRY(cfxi_emit_py_only_items(gen, l->node, l->size, &only, err));
    if (only) {
        CFX_TRY(loop_items(gen, frame, l, err));
        cfxi_emit_py_clear_line(gen, frame, l->node, l->start, l->size);
        return CFX_OK;
    }
    if (frame->region)
        CFX_TRY(cfxi_emit_py_name_local(gen, frame, l->node, err));
    CFX_TRY(cfxi_emit_py_type_text(gen, l->node, err));
    cfxi_emit_py_begin_line(gen);
    CFX_TRY(cfxi_emit_py_assigned_name(gen, l->node, err));
    CFXI_PY_LIT(gen, " = (");
    cfx_node *input = l->first;
    for (size_t k = 0; k < l->size; k++, input = cfxi_ir_next_input(l->body, input)) {
        cfxi_emit_py_put(gen, ", ", k ? 2 : 0);
        CFX_TRY(cfxi_emit_py_value(gen, cfx_value_node(input), l->node, err));
    }
    if (l->size == 1)
        cfxi_emit_py_char(gen, ',');
    cfxi_emit_py_char(gen, ')');
    cfxi_emit_py_end_piece(gen);
    cfxi_py_text_mark start = cfxi_emit_py_mark_text(gen);
    CFXI_PY_LIT(gen, ";  ");
    if (cfxi_emit_py_put_dead(gen, frame, l->node, l->start, l->size))
        CFXI_PY_LIT(gen, "None");
    else
        cfxi_emit_py_go_back(gen, start);
    cfxi_emit_py_end_line(gen);
    return CFX_OK;
}

/* `for i in range(n):` */
static cfx_status for_line(cfx_pycode *gen, const loop *l, cfx_value count, cfx_error *err)
{
    cfxi_emit_py_begin_line(gen);
    CFXI_PY_LIT(gen, "for ");
    if (l->index)
        cfxi_emit_py_put_name(gen, l->index);
    else
        cfxi_emit_py_char(gen, '_');
    CFXI_PY_LIT(gen, " in range(");
    CFX_TRY(cfxi_emit_py_value(gen, count, l->node, err));
    CFXI_PY_LIT(gen, "):");
    cfxi_emit_py_end_line(gen);
    return CFX_OK;
}

cfx_status cfxi_emit_py_for_loop(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, cfx_error *err)
{
    loop l = new_loop(n, CFXI_PY_FOR);
    CFX_TRY(cfxi_emit_py_check_count(n, l.state, l.size, "state of a loop", err));
    CFX_TRY(begin_loop(gen, frame, &l, err));
    CFX_TRY(for_line(gen, &l, cfxi_emit_py_parameter(n, 0), err));
    gen->indent += 4;
    CFX_TRY(loop_body(gen, &l, err));
    gen->indent -= 4;
    return loop_result(gen, frame, &l, err);
}

/* The inputs of the test are those of the body. */
static cfx_status bind_test(cfx_pycode *gen, const loop *l, cfx_error *err)
{
    cfx_node *input = cfxi_ir_next_input(l->test, NULL);
    for (cfx_node *s = l->first; s; s = cfxi_ir_next_input(l->body, s)) {
        void *instead = cfxi_base_pointers_get(&gen->instead, s);
        CFX_TRY(cfxi_emit_py_alias(gen, input, cfxi_emit_py_name(gen, s), err));
        if (!cfxi_base_pointers_set(&gen->instead, input, instead, gen->allocator))
            return cfxi_base_nomem(err);
        input = cfxi_ir_next_input(l->test, input);
    }
    return CFX_OK;
}

/* `while i < 10:`; or, where that takes statements, `while True:` and `if not lt:` `break`. */
static cfx_status while_line(cfx_pycode *gen, const loop *l, cfx_error *err)
{
    cfxi_py_run run;
    CFX_TRY(bind_test(gen, l, err));
    CFX_TRY(cfxi_emit_py_enter(gen, l->test, l->node, &run, err));
    cfx_value value = run.output->args->items[0];
    cfx_node *before = (cfx_node *)(uintptr_t)run.output;
    CFX_TRY(cfxi_emit_py_take_in(gen, value, before, true, err));
    const bool simple = cfxi_emit_py_is_expression(gen, l->test);
    if (!simple) {
        CFX_TRY(cfxi_emit_py_give_back(gen, l->test, err));
        CFX_TRY(cfxi_emit_py_plan(gen, &run.frame, err));
        CFX_TRY(cfxi_emit_py_take_in(gen, value, before, false, err));
    }
    const bool parentheses = !simple && cfxi_emit_py_is_compound(gen, value);
    if (!simple) {
        cfxi_emit_py_put_line(gen, "while True:");
        gen->indent += 4;
        CFX_TRY(cfxi_emit_py_region_body(gen, &run, err));
    }
    cfxi_emit_py_begin_line(gen);
    if (simple)
        CFXI_PY_LIT(gen, "while ");
    else
        CFXI_PY_LIT(gen, "if not ");
    if (parentheses)
        cfxi_emit_py_char(gen, '(');
    CFX_TRY(cfxi_emit_py_value(gen, value, run.output, err));
    if (parentheses)
        cfxi_emit_py_char(gen, ')');
    cfxi_emit_py_char(gen, ':');
    cfxi_emit_py_end_line(gen);
    if (!simple) {
        gen->indent += 4;
        cfxi_emit_py_put_line(gen, "break");
        gen->indent -= 8;
    }
    return cfxi_emit_py_leave(gen, &run, err);
}

/* The state that begins or ends with a value; NULL: none does. */
static cfx_node *input_of(const loop *l, cfx_value v)
{
    size_t n;
    const cfx_value *after = cfx_value_items(l->after, &n);
    cfx_node *input = l->first;
    for (size_t k = 0; k < l->size; k++, input = cfxi_ir_next_input(l->body, input))
        if (cfx_value_equal(after[k], v))
            return input;
    return NULL;
}

/* `while test:`, of a loop whose turns ask it at their ends: of the state that they begin with. */
static cfx_status test_line(cfx_pycode *gen, const loop *l, cfx_error *err)
{
    size_t count;
    const cfx_value *operands = cfx_value_items(cfxi_emit_py_operands(l->exit.turn), &count);
    cfx_graph *test = l->exit.test;
    for (cfx_node *in = cfxi_ir_next_input(test, NULL); in;
         in = cfxi_ir_next_input(test, in), operands++) {
        const cfx_node *state = input_of(l, *operands);
        if (!state)
            continue;  /* it is not read */
        void *instead = cfxi_base_pointers_get(&gen->instead, state);
        CFX_TRY(cfxi_emit_py_alias(gen, in, cfxi_emit_py_name(gen, state), err));
        if (!cfxi_base_pointers_set(&gen->instead, in, instead, gen->allocator))
            return cfxi_base_nomem(err);
    }
    cfxi_emit_py_begin_line(gen);
    CFXI_PY_LIT(gen, "while ");
    CFX_TRY(cfxi_emit_py_value(gen, cfxi_emit_py_output_value(test), l->node, err));
    cfxi_emit_py_char(gen, ':');
    cfxi_emit_py_end_line(gen);
    return CFX_OK;
}

static cfx_status head_line(cfx_pycode *gen, const loop *l, cfx_error *err)
{
    switch (l->exit.head) {
    case CFXI_PY_HEAD_NONE: return while_line(gen, l, err);
    case CFXI_PY_HEAD_TRUE: cfxi_emit_py_put_line(gen, "while True:"); return CFX_OK;
    case CFXI_PY_HEAD_TEST: return test_line(gen, l, err);
    case CFXI_PY_HEAD_RANGE: return for_line(gen, l, l->exit.count, err);
    }
    return CFX_OK;
}

cfx_status cfxi_emit_py_while_loop(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                                   cfx_error *err)
{
    loop l = new_loop(n, CFXI_PY_WHILE);
    CFX_TRY(cfxi_emit_py_check_count(n, l.state, l.size, "state of a loop", err));
    if (cfxi_emit_py_count_inputs(l.test) != l.size)
        return cfxi_emit_py_fail(n, CFX_E_GRAPH, err,
                                 "the condition of a loop has %zu inputs, but the body has %zu",
                                 cfxi_emit_py_count_inputs(l.test), l.size);
    CFX_TRY(cfxi_emit_py_find_exit(gen, n, &l.exit, err));
    if (l.exit.head == CFXI_PY_HEAD_RANGE) {
        l.index = l.first;
        for (size_t k = 0; k < l.exit.index; k++)
            l.index = cfxi_ir_next_input(l.body, l.index);
    }
    CFX_TRY(begin_loop(gen, frame, &l, err));
    CFX_TRY(head_line(gen, &l, err));
    gen->indent += 4;
    CFX_TRY(loop_body(gen, &l, err));
    gen->indent -= 4;
    return loop_result(gen, frame, &l, err);
}

cfx_status cfxi_emit_py_plan_loop(cfx_pycode *gen, const cfxi_py_frame *frame, cfx_node *n,
                                  cfxi_py_form form, cfx_error *err)
{
    loop l = new_loop(n, form);
    size_t count;
    const cfx_value *items = cfx_value_items(l.state, &count);
    cfx_node *input = l.first;
    if (form == CFXI_PY_WHILE)
        CFX_TRY(cfxi_emit_py_find_exit(gen, n, &l.exit, err));
    for (cfx_node *at = n->prev; l.exit.head && l.exit.n_before > 0; at = at->prev) {
        CFX_TRY(cfxi_emit_py_place_node(gen, at, CFXI_PY_INLINE, err));  /* in the head */
        l.exit.n_before--;
    }
    for (size_t k = 0; cfxi_emit_py_is_sequence(l.state) && k < count && input;
         k++, input = cfxi_ir_next_input(l.body, input)) {
        if (!cfxi_emit_py_is_node_of(items[k], frame->graph))
            continue;
        const cfx_node *d = items[k].as.node;
        if (d->op == CFX_OP_PLACEHOLDER || d->mark != frame->stamp + frame->index ||
            is_kept(&l, k, input) || (l.exit.head && k == l.exit.go) ||
            !cfxi_ir_has_usual_name(d))
            continue;
        if (!cfxi_base_pointers_set(&gen->wishes, d, input, gen->allocator))
            return cfxi_base_nomem(err);
    }
    return CFX_OK;
}
