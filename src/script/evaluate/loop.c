/* loop.c - while and for: rounds that are known are run one by one, others are captured.
 *
 * A round of a known loop that may end it early, depending on data, leaves a branch pending, and
 * the rounds after it are nested in that. So a `while True` that data ends is captured as a loop,
 * and so is a long `for`.
 */
#include "graph_control_impl.h"

enum { FEW_ROUNDS = 16 };  /* that may be nested in one another */

/* ---- rounds that are known ----------------------------------------------------------------- */

/* Takes back branches that became pending since `base`, as if they had not been begun. */
static bool abandon(cfx_evaluator *ev, size_t base)
{
    while (cfxi_eval_pendings(ev) > base) {
        ev->pending.size--;
        if (!cfxi_eval_region_close(ev))
            return false;
    }
    return true;
}

/* Runs a round; with `trial`, one that data may end is taken back: *captures. */
static cfxi_flow known_round(cfx_evaluator *ev, const cfxi_loop *loop, cfx_object *item, bool trial,
                             bool *captures)
{
    const size_t base = cfxi_eval_pendings(ev);
    *captures = false;
    if (trial && !cfxi_eval_trial_open(ev))
        return CFXI_FLOW_FAIL;
    cfxi_flow flow = loop->round(ev, loop->ctx, item);
    if (flow == CFXI_FLOW_FAIL)
        return flow;
    flow = cfxi_eval_settle(ev, base, flow, CFXI_FLOW_CONTINUE);
    if (flow == CFXI_FLOW_FAIL || !trial)
        return flow;
    if (cfxi_eval_pendings(ev) == base)
        return cfxi_eval_region_commit(ev) ? flow : CFXI_FLOW_FAIL;
    *captures = true;
    ev->raised = NULL;
    return abandon(ev, base) && cfxi_eval_region_discard(ev) ? CFXI_FLOW_ON : CFXI_FLOW_FAIL;
}

static bool one_more(cfx_evaluator *ev, const cfxi_loop *loop, uint32_t *rounds)
{
    const uint32_t most = ev->options.most_rounds ? ev->options.most_rounds : 100000;
    if (++*rounds <= most)
        return true;
    cfxi_eval_fail(ev, loop->at, CFX_E_LIMIT,
                   "this loop was unrolled more than %u times during capture; check that it ends, "
                   "or let its end depend on a tensor, so that it stays a loop",
                   most);
    return false;
}

/* ---- ways out ------------------------------------------------------------------------------ */

enum {
    CONTINUES = 1u << CFXI_FLOW_CONTINUE,
    BREAKS = 1u << CFXI_FLOW_BREAK,
    RETURNS = 1u << CFXI_FLOW_RETURN
};

static uint32_t ways_of_block(cfxi_ast_list block);

/* How a statement may leave the round of the loop around it, as it is written. */
static uint32_t ways_out(const cfxi_ast *s)
{
    switch ((unsigned)s->kind) {
    case CFXI_AST_Break:
        return BREAKS;
    case CFXI_AST_Continue:
        return CONTINUES;
    case CFXI_AST_Return:
        return RETURNS;
    case CFXI_AST_If:
        return ways_of_block(cfxi_syntax_as_If(s)->body) |
               ways_of_block(cfxi_syntax_as_If(s)->orelse);
    case CFXI_AST_For:  /* a loop of its own, that its body leaves first */
        return (ways_of_block(cfxi_syntax_as_For(s)->body) & RETURNS) |
               ways_of_block(cfxi_syntax_as_For(s)->orelse);
    case CFXI_AST_While:
        return (ways_of_block(cfxi_syntax_as_While(s)->body) & RETURNS) |
               ways_of_block(cfxi_syntax_as_While(s)->orelse);
    case CFXI_AST_With:
        return ways_of_block(cfxi_syntax_as_With(s)->body);
    case CFXI_AST_Match:
        return ways_of_block(cfxi_syntax_as_Match(s)->cases);
    case CFXI_AST_match_case:
        return ways_of_block(cfxi_syntax_as_match_case(s)->body);
    case CFXI_AST_ExceptHandler:
        return ways_of_block(cfxi_syntax_as_ExceptHandler(s)->body);
    case CFXI_AST_Try:
        return ways_of_block(cfxi_syntax_as_Try(s)->body) |
               ways_of_block(cfxi_syntax_as_Try(s)->handlers) |
               ways_of_block(cfxi_syntax_as_Try(s)->orelse) |
               ways_of_block(cfxi_syntax_as_Try(s)->finalbody);
    }
    return 0;
}

static uint32_t ways_of_block(cfxi_ast_list block)
{
    uint32_t ways = 0;
    for (size_t i = 0; i < block.count; i++)
        ways |= ways_out(block.items[i]);
    return ways;
}

/* Whether a statement is `name = ...`. */
static bool assigns(const cfxi_ast *s, const char *name)
{
    const cfxi_Assign *a = s->kind == CFXI_AST_Assign ? cfxi_syntax_as_Assign(s) : NULL;
    const cfxi_ast *target = a && a->targets.count == 1 ? a->targets.items[0] : NULL;
    return target && target->kind == CFXI_AST_Name &&
           strcmp(cfxi_syntax_as_Name(target)->id, name) == 0;
}

bool cfxi_eval_slot_is_rewritten(const cfx_evaluator *ev, const cfxi_frame *f, uint32_t slot)
{
    const cfx_script_def *def = f->def;
    if (!f->block || f->captured || def->kind != CFXI_DEF_FUNCTION)
        return false;
    for (const cfxi_guard *g = ev->guards; g; g = g->outer)
        if (g->frame == f)
            return false;  /* a handler may read it */
    for (size_t i = f->statement; i < f->block->count; i++) {
        const cfxi_ast *s = f->block->items[i];
        if (i > f->statement && assigns(s, def->locals[slot]))
            return def->first_read[slot] > cfxi_eval_end_of(s);
        if (ways_out(s) != 0)
            return false;
    }
    return false;
}

/* Those that leave a loop with this body, whose first statements do not count. */
static uint32_t exits_of(cfxi_ast_list body, size_t first)
{
    body.items += first;
    body.count -= first;
    return ways_of_block(body) & (BREAKS | RETURNS);
}

/* ---- else ---------------------------------------------------------------------------------- */

static cfxi_flow way_else(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    (void)value;
    return cfxi_eval_exec_block(ev, *((const cfxi_loop *)ctx)->orelse);
}

/* The end of a loop: its else, which the ways that broke it do not take. What breaks in the else
 * leaves the loop around, so those ways are behind this one before it is run. */
static cfxi_flow end_of_loop(cfx_evaluator *ev, const cfxi_loop *loop, size_t base, cfxi_flow flow)
{
    if (flow == CFXI_FLOW_ON && loop->orelse &&
        ways_of_block(*loop->orelse) & (BREAKS | CONTINUES))
        return cfxi_eval_unless_left(ev, base, CFXI_FLOW_BREAK, way_else, (void *)loop);
    if (flow == CFXI_FLOW_ON && loop->orelse)
        flow = cfxi_eval_exec_block(ev, *loop->orelse);
    return cfxi_eval_settle(ev, base, flow, CFXI_FLOW_BREAK);
}

/* ---- while --------------------------------------------------------------------------------- */

/* Evaluates the test. If it is a graph value, nothing has happened. */
static cfxi_eval_truth ask(cfx_evaluator *ev, const cfxi_loop *loop)
{
    if (!cfxi_eval_trial_open(ev))
        return CFXI_TRUTH_FAIL;
    cfx_object *t = loop->test(ev, loop->ctx);
    const cfxi_eval_truth truth = t ? cfxi_eval_truth_of(ev, &t) : CFXI_TRUTH_FAIL;
    if (truth == CFXI_TRUTH_FAIL && !ev->raised)
        return truth;
    if (truth == CFXI_TRUTH_GRAPH)
        return cfxi_eval_region_discard(ev) ? truth : CFXI_TRUTH_FAIL;
    return cfxi_eval_region_commit(ev) ? truth : CFXI_TRUTH_FAIL;
}

/* The first round of a loop that goes on as long as a variable says so. If data decides that at its
 * end, the round is taken back: *captures. Otherwise it would stand before the loop once more. */
static cfxi_flow try_round(cfx_evaluator *ev, const cfxi_loop *loop, bool *captures)
{
    const size_t base = cfxi_eval_pendings(ev);
    *captures = false;
    if (!cfxi_eval_trial_open(ev))
        return CFXI_FLOW_FAIL;
    cfxi_flow flow = loop->round(ev, loop->ctx, NULL);
    if (flow == CFXI_FLOW_FAIL)
        return flow;
    flow = cfxi_eval_settle(ev, base, flow, CFXI_FLOW_CONTINUE);
    if (flow == CFXI_FLOW_FAIL)
        return flow;
    if (cfxi_eval_pendings(ev) > base) {  /* data may end it earlier: round by round, then */
        ev->raised = NULL;
        return abandon(ev, base) && cfxi_eval_region_discard(ev)
               ? known_round(ev, loop, NULL, false, captures) : CFXI_FLOW_FAIL;
    }
    const cfxi_eval_truth truth = flow == CFXI_FLOW_ON ? ask(ev, loop) : CFXI_TRUE;
    if (truth == CFXI_TRUTH_FAIL)
        return cfxi_eval_failed_flow(ev);
    *captures = truth == CFXI_TRUTH_GRAPH;
    if (*captures)
        return cfxi_eval_region_discard(ev) ? flow : CFXI_FLOW_FAIL;
    return cfxi_eval_region_commit(ev) ? flow : CFXI_FLOW_FAIL;
}

/* What the test of a loop is. */
typedef enum test_kind {
    TEST_ANY,
    TEST_CONSTANT,  /* `while True`: something else ends it */
    TEST_VARIABLE
} test_kind;

static test_kind kind_of_test(const cfxi_ast *test)
{
    return test->kind == CFXI_AST_Constant ? TEST_CONSTANT
           : test->kind == CFXI_AST_Name   ? TEST_VARIABLE : TEST_ANY;
}

static cfxi_flow run_while(cfx_evaluator *ev, cfxi_loop *loop, test_kind test)
{
    const size_t base = cfxi_eval_pendings(ev);
    uint32_t rounds = 0;
    bool captures = false;
    for (;;) {
        switch (ask(ev, loop)) {
        case CFXI_TRUTH_FAIL:
            return cfxi_eval_failed_flow(ev);
        case CFXI_FALSE:
            return end_of_loop(ev, loop, base, CFXI_FLOW_ON);
        case CFXI_TRUTH_GRAPH:
            captures = true;
            break;
        case CFXI_TRUE:
            break;
        }
        cfxi_flow flow = CFXI_FLOW_ON;
        if (!captures) {
            flow = test == TEST_VARIABLE && rounds == 0
                   ? try_round(ev, loop, &captures)
                   : known_round(ev, loop, NULL, test == TEST_CONSTANT, &captures);
            loop->runs = captures;
        }
        if (captures)
            return end_of_loop(ev, loop, base, cfxi_eval_loop_run(ev, loop));
        if (flow != CFXI_FLOW_ON)
            return end_of_loop(ev, loop, base, flow);
        if (!one_more(ev, loop, &rounds))
            return CFXI_FLOW_FAIL;
    }
}

static cfx_object *while_test(cfx_evaluator *ev, void *ctx)
{
    return cfxi_eval(ev, ((const cfxi_While *)ctx)->test);
}

static cfxi_flow while_round(cfx_evaluator *ev, void *ctx, cfx_object *item)
{
    (void)item;
    return cfxi_eval_exec_block(ev, ((const cfxi_While *)ctx)->body);
}

/* Notes that a loop runs in the frame, whose variables may be read again in its next round. */
static uint64_t enter(cfx_evaluator *ev, const cfxi_ast *at)
{
    const uint64_t was = ev->frame->loop;
    if (!was)
        ev->frame->loop = cfxi_eval_start_of(at);
    return was;
}

/* ---- tests that take statements ------------------------------------------------------------
 *
 *     while True:
 *         d = a - b              what only the test needs
 *         if not d.norm() > 1:
 *             break
 *         ...
 *
 * is a loop with a test, not one that is left in its middle. Generated code has this form, too,
 * where the test of a loop in a graph is not an expression. */

typedef struct loop_head {
    const cfxi_While *loop;
    size_t n;                 /* statements of the body before the one that breaks */
    const cfxi_ast *test;
    bool ends;                /* the loop ends if the test holds; else if it does not */
} loop_head;

/* `if p: break` or `if not p: break` */
static bool is_exit(const cfxi_ast *statement, loop_head *head)
{
    const cfxi_If *s = statement->kind == CFXI_AST_If ? cfxi_syntax_as_If(statement) : NULL;
    if (!s || s->orelse.count > 0 || s->body.count != 1 ||
        s->body.items[0]->kind != CFXI_AST_Break)
        return false;
    head->test = s->test;
    head->ends = true;
    if (s->test->kind == CFXI_AST_UnaryOp && cfxi_syntax_as_UnaryOp(s->test)->op == CFXI_AST_Not) {
        head->test = cfxi_syntax_as_UnaryOp(s->test)->operand;
        head->ends = false;
    }
    return true;
}

/* Whether a variable is read up to `end` only. */
static bool is_own_name(const cfx_script_def *def, const cfxi_ast *target, uint64_t end)
{
    if (target->kind != CFXI_AST_Name)
        return false;
    const uint32_t slot = cfxi_eval_def_slot(def, cfxi_syntax_as_Name(target)->id);
    return slot != CFXI_NO_SLOT && def->last_read[slot] < end;
}

static bool are_own(const cfx_script_def *def, cfxi_ast_list block, uint64_t end);

/* Whether a statement does no more than compute variables that are read up to `end` only. */
static bool is_own(const cfx_script_def *def, const cfxi_ast *statement, uint64_t end)
{
    if (statement->kind == CFXI_AST_If)
        return are_own(def, cfxi_syntax_as_If(statement)->body, end) &&
               are_own(def, cfxi_syntax_as_If(statement)->orelse, end);
    if (statement->kind != CFXI_AST_Assign)
        return false;
    const cfxi_ast_list targets = cfxi_syntax_as_Assign(statement)->targets;
    for (size_t i = 0; i < targets.count; i++)
        if (!is_own_name(def, targets.items[i], end))
            return false;
    return true;
}

static bool are_own(const cfx_script_def *def, cfxi_ast_list block, uint64_t end)
{
    for (size_t i = 0; i < block.count; i++)
        if (!is_own(def, block.items[i], end))
            return false;
    return true;
}

/* Whether the statements compute nothing but variables of the test's own. */
static bool find_head(const cfx_evaluator *ev, const cfxi_While *s, loop_head *head)
{
    const cfx_script_def *def = ev->frame->def;
    *head = (loop_head){.loop = s};
    if (s->test->kind != CFXI_AST_Constant || s->orelse.count > 0 ||
        def->kind != CFXI_DEF_FUNCTION || ev->frame->captured)
        return false;
    while (head->n < s->body.count && !is_exit(s->body.items[head->n], head))
        head->n++;
    if (head->n == 0 || head->n == s->body.count)
        return false;
    const cfxi_ast_list before = {s->body.items, head->n};
    return are_own(def, before, cfxi_eval_end_of(head->test));
}

static cfx_object *head_test(cfx_evaluator *ev, void *ctx)
{
    const loop_head *head = ctx;
    const cfxi_ast_list before = {head->loop->body.items, head->n};
    if (cfxi_eval_exec_block(ev, before) != CFXI_FLOW_ON)
        return NULL;
    cfx_object *value = cfxi_eval(ev, head->test);
    if (!value || !head->ends)
        return value;
    const cfxi_eval_truth truth = cfxi_eval_truth_of(ev, &value);
    if (truth == CFXI_TRUTH_FAIL)
        return NULL;
    return truth == CFXI_TRUTH_GRAPH ? cfxi_eval_unary(ev, CFX_SIGN_NOT, value)
                                     : cfxi_eval_bool(ev, truth == CFXI_FALSE);
}

static cfxi_flow head_round(cfx_evaluator *ev, void *ctx, cfx_object *item)
{
    const loop_head *head = ctx;
    const cfxi_ast_list body = head->loop->body;
    (void)item;
    return cfxi_eval_exec_block(
        ev, (cfxi_ast_list){body.items + head->n + 1, body.count - head->n - 1});
}

/* ---- the statement ------------------------------------------------------------------------- */

static bool holds(cfx_evaluator *ev, const cfxi_ast *constant)
{
    cfx_object *v = cfxi_eval(ev, constant);
    return v && cfxi_eval_truth_of(ev, &v) == CFXI_TRUE;
}

cfxi_flow cfxi_eval_while(cfx_evaluator *ev, const cfxi_While *s)
{
    cfxi_loop loop = {.at = &s->ast, .test = while_test, .round = while_round, .ctx = (void *)s,
                      .orelse = &s->orelse, .test_end = cfxi_eval_end_of(s->test),
                      .may_exit = exits_of(s->body, 0)};
    loop_head head;
    test_kind kind = kind_of_test(s->test);
    if (find_head(ev, s, &head) && holds(ev, s->test)) {
        loop.test = head_test;
        loop.round = head_round;
        loop.ctx = &head;
        loop.test_end = cfxi_eval_end_of(head.test);
        loop.may_exit = exits_of(s->body, head.n + 1);
        kind = TEST_ANY;
    }
    cfxi_frame *frame = ev->frame;
    const uint64_t was = enter(ev, &s->ast);
    const cfxi_flow flow = run_while(ev, &loop, kind);
    frame->loop = was;
    return flow;
}

/* ---- for ----------------------------------------------------------------------------------- */

/* zip(layers, x): how many rounds there are is known by one part. */
static bool known_length(cfx_evaluator *ev, const cfxi_sequence *s, size_t *n)
{
    cfx_object **items;
    bool found = false;
    if (s->kind == CFXI_SEQUENCE_RANGE)
        return false;
    if (s->kind == CFXI_SEQUENCE_ITEMS)
        return !s->graph && cfxi_eval_items(ev, s->object, &items, n);
    const size_t parts = s->kind == CFXI_SEQUENCE_ZIP ? s->n : 1;
    for (size_t i = 0; i < parts; i++) {
        size_t here;
        if (!known_length(ev, &s->parts[i], &here))
            continue;
        *n = found && *n < here ? *n : here;
        found = true;
    }
    return found;
}

/* The others must have as many: zip() would end earlier. */
static bool expect_length(cfx_evaluator *ev, const cfxi_sequence *s, size_t n)
{
    if (s->kind == CFXI_SEQUENCE_ITEMS && s->graph) {
        cfx_object *in[2] = {cfxi_eval_sequence_count(ev, s), cfxi_eval_int(ev, (int64_t)n)};
        cfx_object *check[2] = {in[0] && in[1] ? cfxi_eval_record(ev, "operator.ge", in, 2) : NULL,
                                cfxi_eval_str(ev, "zip() arguments have different lengths")};
        return check[0] && check[1] && cfxi_eval_record(ev, "torch._assert", check, 2);
    }
    for (size_t i = 0; s->kind == CFXI_SEQUENCE_ZIP && i < s->n; i++)
        if (!expect_length(ev, &s->parts[i], n))
            return false;
    return true;
}

/* The items of a sequence that is known, or of which it is known how many there are. */
typedef struct known_items {
    cfx_object *iterator;    /* set: what it gives, as long as it does; what a loop that ends early
                                leaves of it the program may still take */
    cfx_object **items;      /* NULL: by index */
    const cfxi_sequence *by_index;
    size_t n;
} known_items;

/* The next item; NULL at the end too, with nothing failed. */
static cfx_object *known_item(cfx_evaluator *ev, const known_items *k, size_t i)
{
    if (k->iterator)
        return cfxi_eval_pool(ev, ev->w->next(ev->w->ctx, k->iterator, ev->err));
    if (i >= k->n)
        return NULL;
    if (k->items)
        return k->items[i];
    cfx_object *index = cfxi_eval_int(ev, (int64_t)i);
    return index ? cfxi_eval_sequence_item(ev, k->by_index, index) : NULL;
}

static cfxi_flow run_known(cfx_evaluator *ev, cfxi_loop *loop, const cfxi_sequence *s,
                           const known_items *k)
{
    const size_t base = cfxi_eval_pendings(ev);
    uint32_t rounds = 0;
    bool captures = false;
    for (size_t i = 0;; i++) {
        cfx_object *item = known_item(ev, k, i);
        if (!item && !ev->raised && ev->err->status == CFX_OK)
            return end_of_loop(ev, loop, base, CFXI_FLOW_ON);
        const bool trial = i == 0 && k->n > FEW_ROUNDS && s->kind == CFXI_SEQUENCE_RANGE;
        if (!item || !one_more(ev, loop, &rounds))
            return cfxi_eval_failed_flow(ev);
        cfxi_eval_begin_round(ev, s);
        const cfxi_flow flow = known_round(ev, loop, item, trial, &captures);
        if (captures) {
            loop->over = s;
            loop->runs = true;
            return end_of_loop(ev, loop, base, cfxi_eval_loop_run(ev, loop));
        }
        if (flow != CFXI_FLOW_ON)
            return end_of_loop(ev, loop, base, flow);
        if (!cfxi_eval_check_known(ev, s))
            return CFXI_FLOW_FAIL;
    }
}

static cfxi_flow run_over(cfx_evaluator *ev, cfxi_loop *loop, const cfxi_sequence *s)
{
    const size_t base = cfxi_eval_pendings(ev);
    known_items known = {0};
    if (!s->graph) {
        if (s->kind == CFXI_SEQUENCE_RANGE
                ? !cfxi_eval_items(ev, s->object, &known.items, &known.n)
                : !(known.iterator =
                        cfxi_eval_pool(ev, ev->w->iterate(ev->w->ctx, s->object, ev->err))))
            return cfxi_eval_failed_flow(ev);
        return run_known(ev, loop, s, &known);
    }
    if (known_length(ev, s, &known.n)) {
        known.by_index = s;
        return expect_length(ev, s, known.n) ? run_known(ev, loop, s, &known) : CFXI_FLOW_FAIL;
    }
    loop->over = s;
    return end_of_loop(ev, loop, base, cfxi_eval_loop_run(ev, loop));
}

static cfxi_flow run_for(cfx_evaluator *ev, cfxi_loop *loop, const cfxi_ast *iterable)
{
    cfxi_sequence *s = cfxi_eval_ev_alloc(ev, sizeof *s);
    return s && cfxi_eval_sequence_of(ev, iterable, s) ? run_over(ev, loop, s)
                                                       : cfxi_eval_failed_flow(ev);
}

static cfxi_flow for_round(cfx_evaluator *ev, void *ctx, cfx_object *item)
{
    const cfxi_For *s = ctx;
    return cfxi_eval_assign(ev, s->target, item) ? cfxi_eval_exec_block(ev, s->body)
                                                 : cfxi_eval_failed_flow(ev);
}

cfxi_flow cfxi_eval_for(cfx_evaluator *ev, const cfxi_For *s)
{
    cfxi_loop loop = {.at = &s->ast, .round = for_round, .ctx = (void *)s, .orelse = &s->orelse,
                      .may_exit = exits_of(s->body, 0)};
    cfxi_frame *frame = ev->frame;
    const uint64_t was = enter(ev, &s->ast);
    const cfxi_flow flow = run_for(ev, &loop, s->iter);
    frame->loop = was;
    return flow;
}

cfxi_flow cfxi_eval_go_over(cfx_evaluator *ev, const cfxi_ast *at, const cfxi_sequence *s,
                            cfxi_round *round, void *ctx)
{
    cfxi_loop loop = {.at = at, .round = round, .ctx = ctx};
    cfxi_frame *frame = ev->frame;
    const uint64_t was = enter(ev, at);
    const cfxi_flow flow = run_over(ev, &loop, s);
    frame->loop = was;
    return flow;
}

cfxi_flow cfxi_eval_each(cfx_evaluator *ev, const cfxi_ast *iterable, cfxi_round *round, void *ctx)
{
    cfxi_sequence *s = cfxi_eval_ev_alloc(ev, sizeof *s);
    return s && cfxi_eval_sequence_of(ev, iterable, s)
               ? cfxi_eval_go_over(ev, iterable, s, round, ctx)
               : cfxi_eval_failed_flow(ev);
}

static cfxi_flow append_round(cfx_evaluator *ev, void *ctx, cfx_object *item)
{
    return cfxi_eval_call_method(ev, ctx, "append", cfxi_eval_args(&item, 1)) ? CFXI_FLOW_ON
                                                                    : cfxi_eval_failed_flow(ev);
}

cfx_object *cfxi_eval_listed(cfx_evaluator *ev, const cfxi_ast *iterable, bool *is_new)
{
    cfxi_sequence *s = cfxi_eval_ev_alloc(ev, sizeof *s);
    if (!s || !cfxi_eval_sequence_of(ev, iterable, s))
        return NULL;
    *is_new = s->graph;
    if (!s->graph)
        return s->object;
    cfx_object *list = cfxi_eval_new_list(ev, NULL, 0);
    const bool done =
        list && cfxi_eval_go_over(ev, iterable, s, append_round, list) == CFXI_FLOW_ON;
    return done ? list : NULL;
}

/* ---- torch.while_loop ---------------------------------------------------------------------- */

typedef struct while_call {
    cfx_object *test, *body;
    cfx_object *state;  /* a list */
} while_call;

static cfx_object *call_with_state(cfx_evaluator *ev, const while_call *w, cfx_object *f)
{
    cfx_object **items;
    size_t n;
    if (!cfxi_eval_contents(ev, w->state, &items, &n))
        return NULL;
    return cfxi_eval_call(ev, f, (cfx_call_args){.args = items, .n = n});
}

static cfx_object *call_test(cfx_evaluator *ev, void *ctx)
{
    const while_call *w = ctx;
    return call_with_state(ev, w, w->test);
}

static cfxi_flow call_round(cfx_evaluator *ev, void *ctx, cfx_object *item)
{
    const while_call *w = ctx;
    cfxi_state next = {0};
    const cfxi_place p = {.kind = CFXI_PLACE_CONTENTS, .object = w->state};
    (void)item;
    cfx_object *result = call_with_state(ev, w, w->body);
    if (!result)
        return cfxi_eval_failed_flow(ev);
    if (!cfxi_eval_items(ev, result, &next.items, &next.n) || !cfxi_eval_place_note(ev, &p) ||
        !cfxi_eval_place_write(ev, &p, &next))
        return CFXI_FLOW_FAIL;
    return CFXI_FLOW_ON;
}

cfx_object *cfxi_eval_while_call(cfx_evaluator *ev, cfx_object *test, cfx_object *body,
                                 cfx_object *carried)
{
    while_call w = {.test = test, .body = body};
    cfxi_loop loop = {.at = ev->frame->at, .test = call_test, .round = call_round, .ctx = &w};
    cfx_object **items;
    size_t n;
    if (!cfxi_eval_items(ev, carried, &items, &n) || !(w.state = cfxi_eval_new_list(ev, items, n)))
        return NULL;
    const uint64_t was = enter(ev, ev->frame->at);
    const cfxi_flow flow = run_while(ev, &loop, TEST_ANY);
    ev->frame->loop = was;
    if (flow != CFXI_FLOW_ON || !cfxi_eval_contents(ev, w.state, &items, &n))
        return NULL;
    return cfxi_eval_tuple(ev, items, n);
}
