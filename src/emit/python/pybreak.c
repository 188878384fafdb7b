/* pybreak.c - loops that a turn can leave, written with `break`.
 *
 * A graph says with values which way a turn took: whether there is another one is part of the
 * state (`go`), and a branch at the end of the body gives, beside the rest of the state, the number
 * 0 or, where it leaves, 2. This is what cfx.script makes of `break`.
 *
 *     go = True
 *     while go:                                        while True:
 *         if x.sum() > 10:                                 if x.sum() > 10:
 *             code = 2                                         break
 *         else:                                            x = x + 1
 *             x = x + 1
 *             code = 0
 *         if code >= 2:
 *             go = False
 *         else:
 *             go = True
 *
 * Such a loop is recognised if nobody else reads these numbers, and if the test that is asked at
 * the end of a turn is also what the loop begins with: `while test:`, `for i in range(n):`. Any
 * other is written with its variables.
 */
#include "pyregion_impl.h"

enum { LEAVES = 2 };  /* the least number that says so */

/* ---- small questions ----------------------------------------------------------------------- */

static bool is_int(cfx_value v, int64_t i) { return v.kind == CFX_KIND_INT && v.as.i == i; }

static bool is_bool(cfx_value v, bool b) { return v.kind == CFX_KIND_BOOL && v.as.b == b; }

static bool is_used_once(const cfx_node *n) { return n->n_users == 1 && n->users->count == 1; }

static cfx_node *node_of(cfx_value v, const cfx_graph *g)
{
    return cfxi_emit_py_is_node_of(v, g) ? v.as.node : NULL;
}

/* Whether `n` is a call of the operator with two arguments. */
static bool is_call_of(const cfx_node *n, cfx_operator op)
{
    return n && n->op == CFX_OP_CALL_FUNCTION && n->args && n->args->size == 2 && !n->kwargs &&
           cfx_node_operator(n) == op && !cfxi_emit_py_has_type(n);
}

/* A cond whose regions and operands are there to see. */
static bool is_cond(const cfx_node *n)
{
    return n && n->op == CFX_OP_CALL_FUNCTION && cfx_node_operator(n) == CFX_OPID_cond &&
           cfxi_emit_py_has_regions(n) && !cfxi_emit_py_has_type(n) &&
           cfxi_emit_py_is_sequence(cfxi_emit_py_operands(n)) &&
           cfxi_emit_py_output_of(cfxi_emit_py_region(n, 1)) &&
           cfxi_emit_py_output_of(cfxi_emit_py_region(n, 2));
}

/* Whether a region does nothing but give something. */
static bool is_empty(const cfx_graph *region)
{
    const cfx_node *n = region->root.next;
    while (n != &region->root && n->op == CFX_OP_PLACEHOLDER)
        n = n->next;
    return n != &region->root && n->op == CFX_OP_OUTPUT;
}

/* The number of an input of a region; SIZE_MAX: it is not one. */
static size_t input_number(const cfx_graph *region, cfx_value v)
{
    size_t k = 0;
    for (const cfx_node *in = cfxi_ir_next_input(region, NULL); in;
         in = cfxi_ir_next_input(region, in), k++)
        if (v.kind == CFX_KIND_NODE && v.as.node == in)
            return k;
    return SIZE_MAX;
}

static cfx_node *input_at(const cfx_graph *region, size_t k)
{
    cfx_node *in = cfxi_ir_next_input(region, NULL);
    while (in && k-- > 0)
        in = cfxi_ir_next_input(region, in);
    return in;
}

static cfx_value item_of(cfx_value sequence, size_t k)
{
    size_t n;
    const cfx_value *items = cfx_value_items(sequence, &n);
    return k < n ? items[k] : cfx_value_invalid();
}

/* ---- the branch that leaves ---------------------------------------------------------------- */

/* The cond that gives `code`, as item *item or as a whole (SIZE_MAX). It is read there alone. */
static cfx_node *cond_of(cfx_node *code, size_t *item)
{
    *item = SIZE_MAX;
    if (!code || !is_used_once(code))
        return NULL;
    if (is_call_of(code, CFX_OPID_getitem) && code->args->items[1].kind == CFX_KIND_INT &&
        code->args->items[1].as.i >= 0 && code->args->items[0].kind == CFX_KIND_NODE) {
        *item = (size_t)code->args->items[1].as.i;
        code = code->args->items[0].as.node;
    }
    return is_cond(code) ? code : NULL;
}

/* Whether all that reads a cond takes an item of it, each but once, right behind it. *last is the
 * last of them, or the cond. */
static bool has_items(cfx_node *cond, size_t item, cfx_node **last)
{
    uint32_t readers = 0;
    int64_t before = -1;
    *last = cond;
    for (cfx_node *n = cond->next; item != SIZE_MAX && is_call_of(n, CFX_OPID_getitem) &&
                                   n->args->items[0].kind == CFX_KIND_NODE &&
                                   n->args->items[0].as.node == cond; n = n->next, readers++) {
        const cfx_value i = n->args->items[1];
        if (i.kind != CFX_KIND_INT || i.as.i <= before)
            return false;
        before = i.as.i;
        *last = n;
    }
    return item == SIZE_MAX || readers == cond->n_users;
}

/* What a branch gives as the number. */
static cfx_value code_in(const cfx_graph *region, size_t item)
{
    const cfx_value given = cfxi_emit_py_output_value(region);
    return item == SIZE_MAX ? given
           : cfxi_emit_py_is_sequence(given) ? item_of(given, item) : cfx_value_invalid();
}

cfx_node *cfxi_emit_py_next_leaving(const cfx_graph *region, size_t item, size_t *inner)
{
    cfx_node *last;
    cfx_node *cond = cond_of(node_of(code_in(region, item), region), inner);
    return cond && has_items(cond, *inner, &last) && last->next->op == CFX_OP_OUTPUT ? cond : NULL;
}

cfxi_py_leaving cfxi_emit_py_leaves(const cfx_graph *region, size_t item)
{
    size_t inner;
    const cfx_value code = code_in(region, item);
    if (code.kind == CFX_KIND_INT)
        return code.as.i >= LEAVES ? CFXI_PY_LEAVES : is_int(code, 0) ? CFXI_PY_STAYS
                                                                      : CFXI_PY_UNKNOWN;
    const cfx_node *cond = cfxi_emit_py_next_leaving(region, item, &inner);
    if (!cond || cfxi_emit_py_region(cond, 1) == cfxi_emit_py_region(cond, 2))
        return CFXI_PY_UNKNOWN;
    for (size_t i = 1; i <= 2; i++)
        if (cfxi_emit_py_leaves(cfxi_emit_py_region(cond, i), inner) == CFXI_PY_UNKNOWN)
            return CFXI_PY_UNKNOWN;
    return CFXI_PY_MAY_LEAVE;
}

/* ---- the test ------------------------------------------------------------------------------ */

/* A loop, and what is found of it. */
typedef struct search {
    cfx_node *node;
    cfx_graph *body;
    cfx_value state, after;
    size_t size;
    cfx_node *turn;          /* the cond behind the branch that leaves: whether there is another */
    cfx_node *counter;       /* i + 1, or NULL */
    size_t found;            /* nodes before the loop that are the test */
} search;

/* Whether a value before the loop and one in the test at the end of a turn are alike: the values of
 * one part of the state, or computed alike from such. */
static bool is_alike(const void *ctx, const cfx_node *before, const cfx_node *in_test)
{
    search *s = (search *)(uintptr_t)ctx;
    const cfx_graph *test = cfxi_emit_py_region(s->turn, 2);
    const cfxi_same how = {.node = is_alike, .ctx = ctx};
    if (in_test->op != CFX_OP_PLACEHOLDER) {
        s->found++;
        return before->op == in_test->op && before->op != CFX_OP_PLACEHOLDER &&
               is_used_once(before) && is_used_once(in_test) &&
               !cfxi_emit_py_has_type(before) && !cfxi_emit_py_has_type(in_test) &&
               cfxi_ir_same_ref(before->callee->ref, in_test->callee->ref) &&
               cfxi_ir_same_items(&how, before->args, in_test->args) &&
               cfxi_ir_same_items(&how, before->kwargs, in_test->kwargs);
    }
    const cfx_value at_end =
        item_of(cfxi_emit_py_operands(s->turn),
                input_number(test, cfx_value_node((cfx_node *)(uintptr_t)in_test)));
    for (size_t k = 0; k < s->size; k++) {
        const cfx_value first = item_of(s->state, k);
        if (first.kind == CFX_KIND_NODE && first.as.node == before &&
            cfx_value_equal(item_of(s->after, k), at_end))
            return true;
    }
    return false;
}

/* `while test:`: the test at the end of a turn is the one that the loop begins with, right before
 * it. */
static bool is_same_test(search *s, size_t go)
{
    const cfx_graph *test = cfxi_emit_py_region(s->turn, 2);
    const cfx_value last = cfxi_emit_py_output_value(test), first = item_of(s->state, go);
    const cfxi_same how = {.node = is_alike, .ctx = s};
    if (last.kind != CFX_KIND_NODE || first.kind != CFX_KIND_NODE ||
        !cfxi_ir_same_value(&how, first, last))
        return false;
    size_t in_test = 0, before = 0;
    for (const cfx_node *n = test->root.next; n->op != CFX_OP_OUTPUT; n = n->next)
        in_test += n->op != CFX_OP_PLACEHOLDER;
    /* each is used once, by the next: so they are right before the loop if as many are */
    const cfx_node *n = s->node->prev;
    for (; n != &s->node->graph->root && before < s->found && is_used_once(n) &&
           n->op != CFX_OP_PLACEHOLDER; n = n->prev)
        before++;
    return in_test == s->found && before == s->found;
}

/* `for i in range(n):`: the test is i + 1 < n, and the loop begins with 0 and 0 < n. */
static bool is_counted(const search *s, size_t go, cfxi_py_exit *e)
{
    const cfx_graph *test = cfxi_emit_py_region(s->turn, 2);
    const cfx_node *lt = node_of(cfxi_emit_py_output_value(test), test);
    const cfx_value first = item_of(s->state, go), operands = cfxi_emit_py_operands(s->turn);
    if (!s->counter || !is_call_of(lt, CFX_OPID_lt) || lt->prev->op != CFX_OP_PLACEHOLDER ||
        lt->next->op != CFX_OP_OUTPUT)
        return false;
    const cfx_value next = item_of(operands, input_number(test, lt->args->items[0]));
    e->index = input_number(s->body, s->counter->args->items[0]);
    if (next.kind != CFX_KIND_NODE || next.as.node != s->counter || e->index >= s->size ||
        !is_int(item_of(s->state, e->index), 0) || s->counter->n_users != 2 ||
        !cfx_value_equal(item_of(s->after, e->index), next))
        return false;
    e->count = lt->args->items[1];
    if (e->count.kind == CFX_KIND_INT)
        return e->count.as.i > 0 && is_bool(first, true);
    e->count = item_of(operands, input_number(test, e->count));
    const size_t k = input_number(s->body, e->count);
    const cfx_node *gt = first.kind == CFX_KIND_NODE ? first.as.node : NULL;
    return k < s->size && cfx_value_equal(item_of(s->after, k), e->count) &&
           is_call_of(gt, CFX_OPID_gt) && is_used_once(gt) && gt->next == s->node &&
           is_int(gt->args->items[1], 0) &&
           cfx_value_equal(gt->args->items[0], item_of(s->state, k));
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* The end of the body: code >= 2, and a cond that gives False or asks the test. */
static bool find_turn(search *s, size_t go, cfxi_py_exit *e)
{
    cfx_node *last;
    s->turn = node_of(item_of(s->after, go), s->body);
    if (!is_cond(s->turn) || !is_used_once(s->turn) || s->turn->next->op != CFX_OP_OUTPUT ||
        !is_empty(cfxi_emit_py_region(s->turn, 1)) ||
        !is_bool(cfxi_emit_py_output_value(cfxi_emit_py_region(s->turn, 1)), false))
        return false;
    const cfx_node *ge = node_of(cfxi_emit_py_parameter(s->turn, 0), s->body);
    if (!is_call_of(ge, CFX_OPID_ge) || ge != s->turn->prev || !is_used_once(ge) ||
        !is_int(ge->args->items[1], LEAVES))
        return false;
    e->cond = cond_of(node_of(ge->args->items[0], s->body), &e->item);
    if (!e->cond || !has_items(e->cond, e->item, &last) ||
        cfxi_emit_py_region(e->cond, 1) == cfxi_emit_py_region(e->cond, 2))
        return false;
    if (last->next != ge && is_call_of(last->next, CFX_OPID_add) && last->next->next == ge &&
        is_int(last->next->args->items[1], 1))
        s->counter = last->next;
    return s->counter || last->next == ge;
}

/* Whether every way through the branch says if it leaves, and one does, and one does not. */
static bool is_leaving(const cfxi_py_exit *e)
{
    const cfxi_py_leaving a = cfxi_emit_py_leaves(cfxi_emit_py_region(e->cond, 1), e->item);
    const cfxi_py_leaving b = cfxi_emit_py_leaves(cfxi_emit_py_region(e->cond, 2), e->item);
    return a != CFXI_PY_UNKNOWN && b != CFXI_PY_UNKNOWN &&
           (a == CFXI_PY_MAY_LEAVE || b == CFXI_PY_MAY_LEAVE || a != b);
}

/* Whether the state is read behind the loop item by item, and neither `go` nor the counter is. */
static cfx_status reads_rest(cfx_pycode *gen, const search *s, const cfxi_py_exit *e, bool *fine,
                             cfx_error *err)
{
    size_t k;
    *fine = true;
    for (const cfx_use *use = s->node->users; *fine && use; use = cfx_use_next(use)) {
        CFX_TRY(cfxi_emit_py_takes_item(gen, use, s->size, &k, fine, err));
        *fine = *fine && k != e->go && k != e->index;
    }
    return CFX_OK;
}

static cfxi_py_head head_of(search *s, cfxi_py_exit *e)
{
    const cfx_graph *test = cfxi_emit_py_region(s->turn, 2);
    e->index = SIZE_MAX;
    if (!s->counter && is_empty(test) && is_bool(cfxi_emit_py_output_value(test), true) &&
        is_bool(item_of(s->state, e->go), true))
        return CFXI_PY_HEAD_TRUE;
    if (s->counter)
        return is_counted(s, e->go, e) ? CFXI_PY_HEAD_RANGE : CFXI_PY_HEAD_NONE;
    return is_same_test(s, e->go) ? CFXI_PY_HEAD_TEST : CFXI_PY_HEAD_NONE;
}

/* The nodes of the test must be an expression where the loop asks it. */
static cfx_status take_test(cfx_pycode *gen, const cfxi_py_exit *e, bool *fine, cfx_error *err)
{
    const cfx_node *output = cfxi_emit_py_output_of(e->test);
    CFX_TRY(cfxi_emit_py_take_in(gen, output->args->items[0], (cfx_node *)(uintptr_t)output, true,
                                 err));
    *fine = cfxi_emit_py_is_expression(gen, e->test);
    return *fine ? CFX_OK : cfxi_emit_py_give_back(gen, e->test, err);
}

cfx_status cfxi_emit_py_find_exit(cfx_pycode *gen, cfx_node *n, cfxi_py_exit *e, cfx_error *err)
{
    bool fine = true;
    const cfx_graph *test = cfxi_emit_py_region(n, 0);
    search s = {.node = n, .body = cfxi_emit_py_region(n, 1), .state = cfxi_emit_py_operands(n)};
    *e = (cfxi_py_exit){.head = CFXI_PY_HEAD_NONE, .index = SIZE_MAX};
    s.after = cfxi_emit_py_output_value(s.body);
    s.size = cfxi_emit_py_count_inputs(s.body);
    size_t n_state, n_after;
    cfx_value_items(s.state, &n_state);
    cfx_value_items(s.after, &n_after);
    if (gen->options->record_func || !is_empty(test) || cfxi_emit_py_has_type(n) ||
        !cfxi_emit_py_is_sequence(s.state) || !cfxi_emit_py_is_sequence(s.after) ||
        n_state != s.size || n_after != s.size || cfxi_emit_py_count_inputs(test) != s.size)
        return CFX_OK;
    e->go = input_number(test, cfxi_emit_py_output_value(test));
    if (e->go >= s.size || input_at(s.body, e->go)->n_users > 0 || !find_turn(&s, e->go, e) ||
        !is_leaving(e))
        return CFX_OK;
    const cfxi_py_head head = head_of(&s, e);
    CFX_TRY(reads_rest(gen, &s, e, &fine, err));
    e->turn = s.turn;
    e->test = cfxi_emit_py_region(s.turn, 2);
    e->n_before = head == CFXI_PY_HEAD_TEST ? s.found
                  : head == CFXI_PY_HEAD_RANGE && e->count.kind == CFX_KIND_NODE;
    if (fine && head == CFXI_PY_HEAD_TEST)
        CFX_TRY(take_test(gen, e, &fine, err));
    e->head = fine ? head : CFXI_PY_HEAD_NONE;
    return CFX_OK;
}
