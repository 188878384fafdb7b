/* parse_expr.c - Python's expressions: operators by precedence, conditionals, lambdas, tuples. */
#include "parse_impl.h"


/* ---- operators ----------------------------------------------------------------------------- */

typedef struct binary_row {
    uint8_t precedence; /* 0: no binary operator, or `**`, which is read with its base */
    uint8_t op;         /* cfxi_ast_kind */
} binary_row;

static const binary_row binaries[CFXI_TOK_COUNT] = {
#define CFX_SIGN_BINARY(id, sign, function, in_place, method, precedence, place, token, ast)       \
    [CFXI_TOK_##token] = {precedence, CFXI_AST_##ast},
#include <cfx/embed/sign.def>
};

_Static_assert(CFXI_AST_COUNT <= 256, "an operator is a byte of binary_row");

static cfxi_ast *unary(parser *p);

/* At '**', behind the base. */
static cfxi_ast *power(parser *p, cfxi_ast *base, place from)
{
    take(p);
    if (!enter(p))
        return NULL;
    cfxi_ast *exponent = unary(p);
    cfxi_BinOp *node = exponent ? NEW(p, BinOp, from) : NULL;
    if (!node)
        return NULL;
    leave(p);
    node->left = base;
    node->op = CFXI_AST_Pow;
    node->right = exponent;
    return &node->ast;
}

static cfxi_ast *await_primary(parser *p)
{
    const place from = here(p);
    if (!accept(p, CFXI_TOK_await))
        return cfxi_syntax_primary(p);
    cfxi_ast *value = cfxi_syntax_primary(p);
    cfxi_Await *node = value ? NEW(p, Await, from) : NULL;
    if (!node)
        return NULL;
    node->value = value;
    return &node->ast;
}

static cfxi_ast *signed_operand(parser *p, cfxi_ast_kind op)
{
    const place from = here(p);
    take(p);
    if (!enter(p))
        return NULL;
    cfxi_ast *operand = unary(p);
    cfxi_UnaryOp *node = operand ? NEW(p, UnaryOp, from) : NULL;
    if (!node)
        return NULL;
    leave(p);
    node->op = op;
    node->operand = operand;
    return &node->ast;
}

static cfxi_ast *unary(parser *p)
{
    const place from = here(p);
    if (next_is(p, CFXI_TOK_MINUS))
        return signed_operand(p, CFXI_AST_USub);
    if (next_is(p, CFXI_TOK_PLUS))
        return signed_operand(p, CFXI_AST_UAdd);
    if (next_is(p, CFXI_TOK_TILDE))
        return signed_operand(p, CFXI_AST_Invert);
    cfxi_ast *node = await_primary(p);
    return node && next_is(p, CFXI_TOK_DOUBLE_STAR) ? power(p, node, from) : node;
}

/* Operators that bind at least as tightly as `least`. A chain grows to the left without recursion,
 * so its height is counted. */
static cfxi_ast *binary(parser *p, unsigned least)
{
    const place from = here(p);
    const unsigned before = p->height;
    p->height = 0;
    cfxi_ast *left = unary(p);
    unsigned height = p->height;
    while (left) {
        const binary_row row = binaries[peek(p)];
        if (row.precedence < least)
            break;
        take(p);
        p->height = 0;
        cfxi_ast *right = binary(p, row.precedence + 1u);
        cfxi_BinOp *node = right ? NEW(p, BinOp, from) : NULL;
        if (!node)
            return NULL;
        node->left = left;
        node->op = (cfxi_ast_kind)row.op;
        node->right = right;
        left = &node->ast;
        height = (height > p->height ? height : p->height) + 1;
        if (height > CFXI_SCRIPT_HEIGHT)
            return cfxi_syntax_fail_deep(p);
    }
    p->height = height > before ? height : before;
    return left;
}

cfxi_ast *cfxi_syntax_bitwise_or(parser *p) { return binary(p, 1); }

/* ---- comparisons --------------------------------------------------------------------------- */

/* Takes a comparison's operator; CFXI_AST_COUNT if there is none. */
static cfxi_ast_kind accept_comparison(parser *p)
{
    cfxi_ast_kind op;
    switch (peek(p)) {
#define CFX_SIGN_COMPARE(id, sign, function, token, ast)                                           \
    case CFXI_TOK_##token: op = CFXI_AST_##ast; break;
#include <cfx/embed/sign.def>
    case CFXI_TOK_in: op = CFXI_AST_In; break;
    case CFXI_TOK_is:
        take(p);
        return accept(p, CFXI_TOK_not) ? CFXI_AST_IsNot : CFXI_AST_Is;
    case CFXI_TOK_not:
        if (peek_second(p) != CFXI_TOK_in)
            return CFXI_AST_COUNT;
        take(p);
        op = CFXI_AST_NotIn;
        break;
    default:
        return CFXI_AST_COUNT;
    }
    take(p);
    return op;
}

/* The operators lie on the same stack as the operands, before each. */
static bool split_operators(parser *p, size_t mark, cfxi_Compare *node)
{
    const size_t n = (p->n_stack - mark) / 2;
    cfxi_ast_kind *ops = cfxi_base_arena_alloc(p->arena, n * sizeof *ops);
    cfxi_ast **operands = cfxi_base_arena_alloc(p->arena, n * sizeof *operands);
    if (!ops || !operands)
        return cfxi_syntax_fail_nomem(p);
    for (size_t i = 0; i < n; i++) {
        ops[i] = (cfxi_ast_kind)(uintptr_t)p->stack[mark + 2 * i];
        operands[i] = p->stack[mark + 2 * i + 1];
    }
    p->n_stack = mark;
    node->ops = (cfxi_op_list){ops, n};
    node->comparators = (cfxi_ast_list){operands, n};
    return true;
}

static cfxi_ast *comparison(parser *p)
{
    const place from = here(p);
    const size_t mark = p->n_stack;
    cfxi_ast *left = cfxi_syntax_bitwise_or(p);
    cfxi_ast_kind op;
    while (left && (op = accept_comparison(p)) != CFXI_AST_COUNT) {
        cfxi_ast *right = cfxi_syntax_bitwise_or(p);
        if (!right || !push(p, (void *)(uintptr_t)op) || !push(p, right))
            return NULL;
    }
    if (!left || p->n_stack == mark)
        return left;
    cfxi_Compare *node = NEW(p, Compare, from);
    if (!node || !split_operators(p, mark, node))
        return NULL;
    node->left = left;
    return &node->ast;
}

static cfxi_ast *inversion(parser *p)
{
    const place from = here(p);
    if (!accept(p, CFXI_TOK_not))
        return comparison(p);
    if (!enter(p))
        return NULL;
    cfxi_ast *operand = inversion(p);
    cfxi_UnaryOp *node = operand ? NEW(p, UnaryOp, from) : NULL;
    if (!node)
        return NULL;
    leave(p);
    node->op = CFXI_AST_Not;
    node->operand = operand;
    return &node->ast;
}

/* ---- and, or ------------------------------------------------------------------------------- */

/* The rest of a chain of `word`, behind its first operand. */
static cfxi_ast *bool_op(parser *p, cfxi_ast *first, place from, cfxi_token_kind word,
                         cfxi_ast_kind op, cfxi_ast *(*operand)(parser *))
{
    const size_t mark = p->n_stack;
    if (!push(p, first))
        return NULL;
    while (accept(p, word)) {
        cfxi_ast *next = operand(p);
        if (!next || !push(p, next))
            return NULL;
    }
    cfxi_BoolOp *node = NEW(p, BoolOp, from);
    if (!node || !cfxi_syntax_pop_list(p, mark, &node->values))
        return NULL;
    node->op = op;
    return &node->ast;
}

static cfxi_ast *conjunction(parser *p)
{
    const place from = here(p);
    cfxi_ast *first = inversion(p);
    if (!first || !next_is(p, CFXI_TOK_and))
        return first;
    return bool_op(p, first, from, CFXI_TOK_and, CFXI_AST_And, inversion);
}

cfxi_ast *cfxi_syntax_disjunction(parser *p)
{
    const place from = here(p);
    cfxi_ast *first = conjunction(p);
    if (!first || !next_is(p, CFXI_TOK_or))
        return first;
    return bool_op(p, first, from, CFXI_TOK_or, CFXI_AST_Or, conjunction);
}

/* ---- conditionals, lambdas, names ---------------------------------------------------------- */

static cfxi_ast *lambda(parser *p)
{
    const place from = here(p);
    take(p);
    cfxi_ast *args = cfxi_syntax_parameters(p, CFXI_TOK_COLON);
    if (!args || !cfxi_syntax_expect(p, CFXI_TOK_COLON) || !enter(p))
        return NULL;
    cfxi_ast *body = cfxi_syntax_expression(p);
    cfxi_Lambda *node = body ? NEW(p, Lambda, from) : NULL;
    if (!node)
        return NULL;
    leave(p);
    node->args = args;
    node->body = body;
    return &node->ast;
}

/* At `if`, behind the body. */
static cfxi_ast *conditional(parser *p, cfxi_ast *body, place from)
{
    take(p);
    cfxi_ast *test = cfxi_syntax_disjunction(p);
    if (!test)
        return NULL;
    if (!next_is(p, CFXI_TOK_else))
        return cfxi_syntax_fail_expected(p, "'else' after 'if' expression");
    take(p);
    if (!enter(p))
        return NULL;
    cfxi_ast *orelse = cfxi_syntax_expression(p);
    cfxi_IfExp *node = orelse ? NEW(p, IfExp, from) : NULL;
    if (!node)
        return NULL;
    leave(p);
    node->test = test;
    node->body = body;
    node->orelse = orelse;
    return &node->ast;
}

cfxi_ast *cfxi_syntax_expression(parser *p)
{
    const place from = here(p);
    if (next_is(p, CFXI_TOK_lambda))
        return lambda(p);
    cfxi_ast *node = cfxi_syntax_disjunction(p);
    return node && next_is(p, CFXI_TOK_if) ? conditional(p, node, from) : node;
}

static cfxi_ast *walrus(parser *p)
{
    const place from = here(p);
    const char *id = name_of(p, take(p));
    cfxi_Name *target = NEW(p, Name, from);
    if (!target)
        return NULL;
    target->id = id;
    target->ctx = CFXI_AST_Store;
    take(p);
    cfxi_ast *value = cfxi_syntax_expression(p);
    cfxi_NamedExpr *node = value ? NEW(p, NamedExpr, from) : NULL;
    if (!node)
        return NULL;
    node->target = &target->ast;
    node->value = value;
    return &node->ast;
}

cfxi_ast *cfxi_syntax_named_expression(parser *p)
{
    if (at_walrus(p))
        return walrus(p);
    cfxi_ast *node = cfxi_syntax_expression(p);
    if (node && next_is(p, CFXI_TOK_WALRUS))
        return cfxi_syntax_fail_node(p, node,
                                     "cannot use ':=' with %s; its target must be a name",
                                     cfxi_syntax_expression_text(node));
    return node;
}

/* ---- stars, tuples, yield ------------------------------------------------------------------ */

cfxi_ast *cfxi_syntax_starred(parser *p, cfxi_ast *(*of)(parser *p))
{
    const place from = here(p);
    take(p);
    cfxi_ast *value = of(p);
    cfxi_Starred *node = value ? NEW(p, Starred, from) : NULL;
    if (!node)
        return NULL;
    node->value = value;
    node->ctx = CFXI_AST_Load;
    return &node->ast;
}

cfxi_ast *cfxi_syntax_star_expression(parser *p)
{
    return next_is(p, CFXI_TOK_STAR) ? cfxi_syntax_starred(p, cfxi_syntax_bitwise_or)
                                     : cfxi_syntax_expression(p);
}

cfxi_ast *cfxi_syntax_star_named(parser *p)
{
    return next_is(p, CFXI_TOK_STAR) ? cfxi_syntax_starred(p, cfxi_syntax_bitwise_or)
                                     : cfxi_syntax_named_expression(p);
}

bool cfxi_syntax_starts_expression(cfxi_token_kind kind)
{
    switch (kind) {
    case CFXI_TOK_NAME:
    case CFXI_TOK_NUMBER:
    case CFXI_TOK_STRING:
    case CFXI_TOK_FSTART:
    case CFXI_TOK_LPAR:
    case CFXI_TOK_LSQB:
    case CFXI_TOK_LBRACE:
    case CFXI_TOK_ELLIPSIS:
    case CFXI_TOK_TILDE:
    case CFXI_TOK_PLUS:
    case CFXI_TOK_MINUS:
    case CFXI_TOK_STAR:
    case CFXI_TOK_False:
    case CFXI_TOK_None:
    case CFXI_TOK_True:
    case CFXI_TOK_await:
    case CFXI_TOK_lambda:
    case CFXI_TOK_not:
        return true;
    default:
        return false;
    }
}

cfxi_ast *cfxi_syntax_tuple_rest(parser *p, cfxi_ast *first, place from,
                                 cfxi_ast *(*item)(parser *))
{
    const size_t mark = p->n_stack;
    if (!push(p, first))
        return NULL;
    while (accept(p, CFXI_TOK_COMMA) && cfxi_syntax_starts_expression(peek(p))) {
        cfxi_ast *next = item(p);
        if (!next || !push(p, next))
            return NULL;
    }
    cfxi_Tuple *node = NEW(p, Tuple, from);
    if (!node || !cfxi_syntax_pop_list(p, mark, &node->elts))
        return NULL;
    node->ctx = CFXI_AST_Load;
    return &node->ast;
}

cfxi_ast *cfxi_syntax_star_expressions(parser *p)
{
    const place from = here(p);
    cfxi_ast *first = cfxi_syntax_star_expression(p);
    if (!first || !next_is(p, CFXI_TOK_COMMA))
        return first;
    return cfxi_syntax_tuple_rest(p, first, from, cfxi_syntax_star_expression);
}

static cfxi_ast *yield_from(parser *p, place from)
{
    take(p);
    cfxi_ast *value = cfxi_syntax_expression(p);
    cfxi_YieldFrom *node = value ? NEW(p, YieldFrom, from) : NULL;
    if (!node)
        return NULL;
    node->value = value;
    return &node->ast;
}

cfxi_ast *cfxi_syntax_yield_expression(parser *p)
{
    const place from = here(p);
    cfxi_ast *value = NULL;
    take(p);
    if (next_is(p, CFXI_TOK_from))
        return yield_from(p, from);
    if (cfxi_syntax_starts_expression(peek(p)) && !(value = cfxi_syntax_star_expressions(p)))
        return NULL;
    cfxi_Yield *node = NEW(p, Yield, from);
    if (!node)
        return NULL;
    node->value = value;
    return &node->ast;
}

cfxi_ast *cfxi_syntax_yield_or_star(parser *p)
{
    return next_is(p, CFXI_TOK_yield) ? cfxi_syntax_yield_expression(p)
                                      : cfxi_syntax_star_expressions(p);
}
