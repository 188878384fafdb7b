/* expr.c - expressions.
 *
 * After its operands, a node is noted again as the place that is evaluated: what it records, and
 * what goes wrong with it, is where Python says that it is.
 */
#include "evaluate_impl.h"

#include "ops/ops_impl.h"

/* How deep evaluation may go in C: expressions, statements and calls together. */
enum { MOST_NESTING = 6000 };

/* ---- signs --------------------------------------------------------------------------------- */

cfx_script_sign cfxi_eval_sign_of(cfxi_ast_kind op)
{
    switch ((unsigned)op) {
#define CFX_SIGN_UNARY(id, sign, function, ast) case CFXI_AST_##ast: return CFX_SIGN_##id;
#define CFX_SIGN_BINARY(id, sign, function, in_place, method, precedence, place, token, ast)       \
    case CFXI_AST_##ast: return CFX_SIGN_##id;
#define CFX_SIGN_COMPARE(id, sign, function, token, ast)                                           \
    case CFXI_AST_##ast: return CFX_SIGN_##id;
#define CFX_SIGN_WORD(id, words, function, ast) case CFXI_AST_##ast: return CFX_SIGN_##id;
#include <cfx/embed/sign.def>
    }
    return CFX_SIGNS;
}

static cfx_object *eval_binary(cfx_evaluator *ev, const cfxi_BinOp *b)
{
    cfx_object *left = cfxi_eval(ev, b->left);
    cfx_object *right = left ? cfxi_eval(ev, b->right) : NULL;
    if (!right)
        return NULL;
    cfxi_eval_at(ev, &b->ast);
    if (b->op == CFXI_AST_Add && !cfxi_eval_join_lists(ev, &left, &right))
        return NULL;
    return cfxi_eval_binary(ev, cfxi_eval_sign_of(b->op), left, right);
}

static cfx_object *eval_unary(cfx_evaluator *ev, const cfxi_UnaryOp *u)
{
    cfx_object *operand = cfxi_eval(ev, u->operand);
    if (!operand)
        return NULL;
    cfxi_eval_at(ev, &u->ast);
    if (u->op != CFXI_AST_Not)
        return cfxi_eval_unary(ev, cfxi_eval_sign_of(u->op), operand);
    const cfxi_eval_truth truth = cfxi_eval_truth_of(ev, &operand);
    if (truth == CFXI_TRUTH_FAIL)
        return NULL;
    if (truth == CFXI_TRUTH_GRAPH)
        return cfxi_eval_unary(ev, CFX_SIGN_NOT, operand);
    return cfxi_eval_bool(ev, truth == CFXI_FALSE);
}

/* `a is b` where one is a graph value: what is known of their types may tell that they differ. */
static bool differ_in_kind(cfx_evaluator *ev, cfx_object *a, cfx_object *b)
{
    if (!cfxi_eval_node(ev, a) && !cfxi_eval_node(ev, b))
        return false;
    const cfx_object_kind kind_a = cfxi_eval_kind(ev, a);
    const cfx_object_kind kind_b = cfxi_eval_kind(ev, b);
    return kind_a != kind_b && kind_a != CFX_OBJECT_OTHER && kind_b != CFX_OBJECT_OTHER;
}

/* Whether a graph value is the result of what never gives None: arithmetic, torch's functions. */
static bool never_none(const cfx_node *n)
{
    const char *target = cfx_node_target(n, NULL, NULL);
    const cfx_opcode op = cfx_node_op(n);
    if (!target || op == CFX_OP_PLACEHOLDER || op == CFX_OP_CALL_MODULE)
        return false;
    const char *name = strchr(target, '.');
    if (name && (strncmp(target, "operator.", 9) == 0 || strncmp(target, "_operator.", 10) == 0))
        return strcmp(name, ".getitem") != 0;
    const char *schema = cfx_operator_schema(cfx_node_operator(n));
    return op == CFX_OP_GET_ATTR || (schema && strstr(schema, "-> Tensor"));
}

/* Whether one is None and the other a graph value that never is. */
static bool one_is_none(cfx_evaluator *ev, cfx_object *a, cfx_object *b)
{
    const cfx_node *n = cfxi_eval_node(ev, a) ? cfxi_eval_node(ev, a) : cfxi_eval_node(ev, b);
    return n && cfxi_eval_kind(ev, n == cfxi_eval_node(ev, a) ? b : a) == CFX_OBJECT_NONE &&
           never_none(n);
}

cfx_object *cfxi_eval_compare_sign(cfx_evaluator *ev, cfx_script_sign sign, cfx_object *a,
                                   cfx_object *b)
{
    if (sign != CFX_SIGN_IS && sign != CFX_SIGN_IS_NOT)
        return cfxi_eval_compare(ev, sign, a, b);
    if (a == b)
        return cfxi_eval_bool(ev, sign == CFX_SIGN_IS);
    a = cfxi_eval_current(ev, a);
    b = cfxi_eval_current(ev, b);
    if (differ_in_kind(ev, a, b) || one_is_none(ev, a, b))
        return cfxi_eval_bool(ev, sign == CFX_SIGN_IS_NOT);
    if (cfxi_eval_node(ev, a) && cfxi_eval_node(ev, a) == cfxi_eval_node(ev, b))
        return cfxi_eval_bool(ev, sign == CFX_SIGN_IS);
    return cfxi_eval_compare(ev, sign, a, b);
}

/* ---- and, or, comparisons ------------------------------------------------------------------ */

/* Operands of `and`, `or` or a chain of comparisons, from the i-th on. */
typedef struct rest {
    const cfxi_BoolOp *bool_op;
    const cfxi_Compare *compare;
    size_t i;
    cfx_object *left;     /* compare: the operand before */
    cfx_object *value;    /* what is the result if the rest is not looked at */
} rest;

static cfx_object *eval_bool_from(cfx_evaluator *ev, const cfxi_BoolOp *b, size_t i);
static cfx_object *eval_compare_from(cfx_evaluator *ev, const cfxi_Compare *c, size_t i,
                                     cfx_object *left);

static cfxi_flow way_rest(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    const rest *r = ctx;
    *value = r->bool_op ? eval_bool_from(ev, r->bool_op, r->i)
                        : eval_compare_from(ev, r->compare, r->i, r->left);
    return *value ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

static cfxi_flow way_value(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    (void)ev;
    *value = ((const rest *)ctx)->value;
    return CFXI_FLOW_ON;
}

/* The value so far if its truth is `decides`, else what the rest gives. */
static cfx_object *go_on(cfx_evaluator *ev, rest *r, bool decides)
{
    cfx_object *value = NULL, *pred = r->value;
    const cfxi_eval_truth truth = cfxi_eval_truth_of(ev, &pred);
    if (truth == CFXI_TRUTH_FAIL)
        return NULL;
    if (ev->w->kind(ev->w->ctx, r->value) == CFX_OBJECT_TENSOR)  /* what reads it */
        r->value = pred;
    if (truth != CFXI_TRUTH_GRAPH && (truth == CFXI_TRUE) == decides)
        return r->value;
    if (truth != CFXI_TRUTH_GRAPH)
        return way_rest(ev, r, &value) == CFXI_FLOW_ON ? value : NULL;
    const cfxi_flow flow = cfxi_eval_branch(ev, pred, decides ? way_value : way_rest,
                                            decides ? way_rest : way_value, r, &value);
    return flow == CFXI_FLOW_ON ? value : NULL;
}

static cfx_object *eval_bool_from(cfx_evaluator *ev, const cfxi_BoolOp *b, size_t i)
{
    cfx_object *value = cfxi_eval_raw(ev, b->values.items[i]);
    if (!value || i + 1 == b->values.count)
        return value;
    rest r = {.bool_op = b, .i = i + 1, .value = value};
    return go_on(ev, &r, b->op == CFXI_AST_Or);
}

static cfx_object *eval_compare_from(cfx_evaluator *ev, const cfxi_Compare *c, size_t i,
                                     cfx_object *left)
{
    cfx_object *right = cfxi_eval(ev, c->comparators.items[i]);
    if (!right)
        return NULL;
    cfxi_eval_at(ev, &c->ast);
    cfx_object *value = cfxi_eval_compare_sign(ev, cfxi_eval_sign_of(c->ops.items[i]), left, right);
    if (!value || i + 1 == c->ops.count)
        return value;
    rest r = {.compare = c, .i = i + 1, .left = right, .value = value};
    return go_on(ev, &r, false);
}

/* ---- literals and texts -------------------------------------------------------------------- */

cfx_object *cfxi_eval_constant_of(cfx_evaluator *ev, const cfxi_constant *c)
{
    cfx_script_literal l = {.text = c->text, .size = c->size};
    switch (c->kind) {
    case CFXI_CONST_NONE:
        return ev->none;
    case CFXI_CONST_FALSE:
    case CFXI_CONST_TRUE:
        return cfxi_eval_bool(ev, c->kind == CFXI_CONST_TRUE);
    case CFXI_CONST_ELLIPSIS:
        l.other = CFX_LITERAL_ELLIPSIS;
        break;
    case CFXI_CONST_INT:
        l.kind = CFX_OBJECT_INT;
        l.i = c->fits ? c->i : 0;
        if (c->fits)
            l.text = NULL;
        break;
    case CFXI_CONST_FLOAT:
    case CFXI_CONST_COMPLEX:
        l.kind = c->kind == CFXI_CONST_FLOAT ? CFX_OBJECT_FLOAT : CFX_OBJECT_COMPLEX;
        l.f = c->f;
        break;
    case CFXI_CONST_STR:
        l.kind = CFX_OBJECT_STR;
        break;
    case CFXI_CONST_BYTES:
        l.other = CFX_LITERAL_BYTES;
        break;
    }
    return cfxi_eval_pool(ev, ev->w->literal(ev->w->ctx, &l, ev->err));
}

static cfx_object *eval_field(cfx_evaluator *ev, const cfxi_FormattedValue *f)
{
    cfx_object *value = cfxi_eval(ev, f->value);
    cfx_object *spec = value && f->format_spec ? cfxi_eval(ev, f->format_spec) : NULL;
    if (!value || (f->format_spec && !spec))
        return NULL;
    cfxi_eval_at(ev, &f->ast);
    value = cfxi_eval_current_deep(ev, value);
    if (!value)
        return NULL;
    return cfxi_eval_pool(
        ev, ev->w->format(ev->w->ctx, value, f->conversion > 0 ? f->conversion : 0, spec, ev->err));
}

static cfx_object *eval_joined(cfx_evaluator *ev, const cfxi_JoinedStr *j)
{
    cfx_object **parts = cfxi_eval_ev_alloc(ev, (j->values.count + 1) * sizeof *parts);
    for (size_t i = 0; parts && i < j->values.count; i++) {
        parts[i] = cfxi_eval(ev, j->values.items[i]);
        if (!parts[i])
            return NULL;
    }
    if (!parts)
        return NULL;
    return cfxi_eval_build(ev, CFX_BUILD_TEXT, parts, j->values.count);
}

static cfx_object *eval_slice(cfx_evaluator *ev, const cfxi_Slice *s)
{
    const cfxi_ast *parts[] = {s->lower, s->upper, s->step};
    cfx_object *items[3];
    for (size_t i = 0; i < 3; i++) {
        items[i] = parts[i] ? cfxi_eval(ev, parts[i]) : ev->none;
        if (!items[i])
            return NULL;
    }
    return cfxi_eval_build(ev, CFX_BUILD_SLICE, items, 3);
}

/* ---- attributes and items ------------------------------------------------------------------ */

static cfx_object *eval_attribute(cfx_evaluator *ev, const cfxi_Attribute *a)
{
    cfx_object *o = cfxi_eval_raw(ev, a->value);
    const char *name = o ? cfxi_eval_mangle(ev, a->attr) : NULL;
    if (!name)
        return NULL;
    cfxi_eval_at(ev, &a->ast);
    if (cfxi_eval_current(ev, o) != o)  /* a method of the object, whatever it is when called */
        return cfxi_eval_pool(ev, ev->w->get(ev->w->ctx, o, name, ev->err));
    return (o = cfxi_eval_shown(ev, o)) ? cfxi_eval_get(ev, o, name) : NULL;
}

static cfx_object *eval_subscript(cfx_evaluator *ev, const cfxi_Subscript *s)
{
    cfx_object *o = cfxi_eval(ev, s->value);
    cfx_object *key = o ? cfxi_eval(ev, s->slice) : NULL;
    if (!key)
        return NULL;
    cfxi_eval_at(ev, &s->ast);
    return cfxi_eval_item(ev, o, key);
}

static cfx_object *eval_walrus(cfx_evaluator *ev, const cfxi_NamedExpr *n)
{
    cfx_object *v = cfxi_eval_raw(ev, n->value);
    if (!v)
        return NULL;
    cfxi_eval_at(ev, &n->ast);
    return cfxi_eval_bind_name(ev, cfxi_syntax_as_Name(n->target)->id, v) ? v : NULL;
}

/* ---- all ----------------------------------------------------------------------------------- */

static cfx_object *refuse(cfx_evaluator *ev, const cfxi_ast *e)
{
    switch ((unsigned)e->kind) {
    case CFXI_AST_Yield:
    case CFXI_AST_YieldFrom:
        return cfxi_eval_fail(ev, e, CFX_E_UNSUPPORTED, "a generator (yield) cannot be captured; "
                              "collect the values in a list and return it");
    case CFXI_AST_Await:
        return cfxi_eval_fail(ev, e, CFX_E_UNSUPPORTED, "'await' cannot be captured; write a plain "
                              "function");
    case CFXI_AST_Starred:
        return cfxi_eval_fail(ev, e, CFX_E_SYNTAX,
                              "cannot use starred expression here; put it into a tuple, list or "
                              "call");
    }
    return cfxi_eval_fail(ev, e, CFX_E_UNSUPPORTED, "%s cannot be evaluated",
                          cfxi_syntax_ast_name(e->kind));
}

static cfx_object *eval_node(cfx_evaluator *ev, const cfxi_ast *e)
{
    switch ((unsigned)e->kind) {
    case CFXI_AST_BoolOp:
        return eval_bool_from(ev, cfxi_syntax_as_BoolOp(e), 0);
    case CFXI_AST_NamedExpr:
        return eval_walrus(ev, cfxi_syntax_as_NamedExpr(e));
    case CFXI_AST_BinOp:
        return eval_binary(ev, cfxi_syntax_as_BinOp(e));
    case CFXI_AST_UnaryOp:
        return eval_unary(ev, cfxi_syntax_as_UnaryOp(e));
    case CFXI_AST_Lambda:
        return cfxi_eval_function(ev, e);
    case CFXI_AST_IfExp:
        return cfxi_eval_choose(ev, cfxi_syntax_as_IfExp(e));
    case CFXI_AST_Dict:
        return cfxi_eval_display_dict(ev, cfxi_syntax_as_Dict(e));
    case CFXI_AST_Set:
        return cfxi_eval_display(ev, e, cfxi_syntax_as_Set(e)->elts, CFX_BUILD_SET);
    case CFXI_AST_List:
        return cfxi_eval_display(ev, e, cfxi_syntax_as_List(e)->elts, CFX_BUILD_LIST);
    case CFXI_AST_Tuple:
        return cfxi_eval_display(ev, e, cfxi_syntax_as_Tuple(e)->elts, CFX_BUILD_TUPLE);
    case CFXI_AST_ListComp:
    case CFXI_AST_SetComp:
    case CFXI_AST_DictComp:
        return cfxi_eval_comprehend(ev, e);
    case CFXI_AST_GeneratorExp:
        return cfxi_eval_generator(ev, e);
    case CFXI_AST_Compare: {
        const cfxi_Compare *c = cfxi_syntax_as_Compare(e);
        cfx_object *left = cfxi_eval(ev, c->left);
        return left ? eval_compare_from(ev, c, 0, left) : NULL;
    }
    case CFXI_AST_Call:
        return cfxi_eval_call_expr(ev, cfxi_syntax_as_Call(e));
    case CFXI_AST_FormattedValue:
        return eval_field(ev, cfxi_syntax_as_FormattedValue(e));
    case CFXI_AST_JoinedStr:
        return eval_joined(ev, cfxi_syntax_as_JoinedStr(e));
    case CFXI_AST_Constant:
        return cfxi_eval_constant_of(ev, &cfxi_syntax_as_Constant(e)->value);
    case CFXI_AST_Attribute:
        return eval_attribute(ev, cfxi_syntax_as_Attribute(e));
    case CFXI_AST_Subscript:
        return eval_subscript(ev, cfxi_syntax_as_Subscript(e));
    case CFXI_AST_Name:
        return cfxi_eval_load(ev, cfxi_syntax_as_Name(e)->id);
    case CFXI_AST_Slice:
        return eval_slice(ev, cfxi_syntax_as_Slice(e));
    }
    return refuse(ev, e);
}

bool cfxi_eval_enter(cfx_evaluator *ev, const cfxi_ast *node)
{
    if (ev->nesting >= MOST_NESTING)
        return cfxi_eval_fail(ev, node, CFX_E_LIMIT,
                              "calls and expressions are nested too deeply here; "
                              "split the expression, or end the recursion earlier");
    ev->nesting++;
    cfxi_eval_at(ev, node);
    return true;
}

cfx_object *cfxi_eval_raw(cfx_evaluator *ev, const cfxi_ast *expr)
{
    if (!cfxi_eval_enter(ev, expr))
        return NULL;
    cfx_object *v = eval_node(ev, expr);
    ev->nesting--;
    if (!v)
        cfxi_eval_note_failure(ev);
    return v;
}

cfx_object *cfxi_eval(cfx_evaluator *ev, const cfxi_ast *expr)
{
    cfx_object *v = cfxi_eval_raw(ev, expr);
    return v && ev->growing.n > 0 ? cfxi_eval_shown(ev, v) : v;
}
