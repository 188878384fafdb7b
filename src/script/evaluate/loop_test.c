/* loop_test.c - loops whose test takes statements.
 *
 *     while True:
 *         d = a - b              what only the test needs
 *         if not d.norm() > 1:
 *             break
 *         ...
 *
 * is a loop with a test, not one that is left in its middle. Generated code has this form, too,
 * where the test of a loop in a graph is not an expression.
 */
#include "graph_control_impl.h"

/* `if p: break` or `if not p: break` */
static bool is_exit(const cfxi_ast *statement, cfxi_head *head)
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

bool cfxi_eval_find_head(const cfx_evaluator *ev, const cfxi_While *s, cfxi_head *head)
{
    const cfx_script_def *def = ev->frame->def;
    *head = (cfxi_head){.loop = s};
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

cfx_object *cfxi_eval_head_test(cfx_evaluator *ev, void *ctx)
{
    const cfxi_head *head = ctx;
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

cfxi_flow cfxi_eval_head_round(cfx_evaluator *ev, void *ctx, cfx_object *item)
{
    const cfxi_head *head = ctx;
    const cfxi_ast_list body = head->loop->body;
    (void)item;
    return cfxi_eval_exec_block(
        ev, (cfxi_ast_list){body.items + head->n + 1, body.count - head->n - 1});
}
