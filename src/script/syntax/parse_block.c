/* parse_block.c - Python's compound statements, except match. */
#include "parse_impl.h"

bool cfxi_syntax_is_compound(const parser *p)
{
    switch (peek(p)) {
    case CFXI_TOK_if:
    case CFXI_TOK_for:
    case CFXI_TOK_while:
    case CFXI_TOK_try:
    case CFXI_TOK_with:
    case CFXI_TOK_def:
    case CFXI_TOK_class:
    case CFXI_TOK_async:
    case CFXI_TOK_AT:
        return true;
    default:
        return cfxi_syntax_is_match_statement(p);
    }
}

/* The indented lines, or what stands behind the ':' on its line. */
bool cfxi_syntax_block(parser *p, cfxi_ast_list *out)
{
    const size_t mark = p->n_stack;
    if (!cfxi_syntax_expect(p, CFXI_TOK_COLON))
        return false;
    if (!next_is(p, CFXI_TOK_NEWLINE)) {
        if (cfxi_syntax_is_compound(p))
            return cfxi_syntax_fail_expected(p, NULL);
        return cfxi_syntax_statement(p) && cfxi_syntax_pop_list(p, mark, out);
    }
    if (!cfxi_syntax_end_line(p))
        return false;
    if (!next_is(p, CFXI_TOK_INDENT))
        return cfxi_syntax_fail_expected(p, "an indented block");
    p->tok++;
    while (!next_is(p, CFXI_TOK_DEDENT)) {
        if (next_is(p, CFXI_TOK_END) || !cfxi_syntax_statement(p))
            return next_is(p, CFXI_TOK_END) ? cfxi_syntax_fail_expected(p, NULL) : false;
    }
    p->tok++;
    return cfxi_syntax_pop_list(p, mark, out);
}

/* "else:", if it is there. */
static bool else_block(parser *p, cfxi_ast_list *out)
{
    *out = (cfxi_ast_list){NULL, 0};
    return !accept(p, CFXI_TOK_else) || cfxi_syntax_block(p, out);
}

/* ---- if, while, for ------------------------------------------------------------------------ */

/* The test and the body, at `if` or `elif`. */
static cfxi_If *if_head(parser *p)
{
    const place from = here(p);
    cfxi_ast_list body;
    take(p);
    cfxi_ast *test = cfxi_syntax_named_expression(p);
    if (test && next_is(p, CFXI_TOK_ASSIGN))
        return cfxi_syntax_fail_at(p, p->tok,
                                   "invalid syntax; maybe you meant '==' or ':=' instead of '='?");
    if (!test || !cfxi_syntax_block(p, &body))
        return NULL;
    cfxi_If *node = NEW(p, If, from);
    if (!node)
        return NULL;
    node->test = test;
    node->body = body;
    return node;
}

/* All of a chain end where its last part ends. A chain of elif is deep but needs no recursion: the
 * Ifs wait on the stack. */
static cfxi_ast *if_statement(parser *p)
{
    const size_t mark = p->n_stack;
    cfxi_If *last = if_head(p);
    if (!last || !push(p, last))
        return NULL;
    while (next_is(p, CFXI_TOK_elif)) {
        cfxi_If *next =
            p->n_stack - mark < CFXI_SCRIPT_HEIGHT ? if_head(p) : cfxi_syntax_fail_deep(p);
        if (!next || !push(p, next))
            return NULL;
        last->orelse.items = cfxi_base_arena_alloc(p->arena, sizeof(cfxi_ast *));
        if (!last->orelse.items)
            return cfxi_syntax_fail_nomem(p);
        last->orelse.items[0] = &next->ast;
        last->orelse.count = 1;
        last = next;
    }
    if (!else_block(p, &last->orelse))
        return NULL;
    uint32_t line, column;
    cfxi_syntax_end_of(p, p->last, &line, &column);
    cfxi_ast *first = p->stack[mark];
    for (; p->n_stack > mark; p->n_stack--) {
        p->stack[p->n_stack - 1]->end_line = line;
        p->stack[p->n_stack - 1]->end_column = column;
    }
    return first;
}

static cfxi_ast *while_statement(parser *p)
{
    const place from = here(p);
    cfxi_ast_list body;
    cfxi_ast_list orelse;
    take(p);
    cfxi_ast *test = cfxi_syntax_named_expression(p);
    if (!test || !cfxi_syntax_block(p, &body) || !else_block(p, &orelse))
        return NULL;
    cfxi_While *node = NEW(p, While, from);
    if (!node)
        return NULL;
    node->test = test;
    node->body = body;
    node->orelse = orelse;
    return &node->ast;
}

/* For and AsyncFor have the same fields; so have the other pairs below. */
static cfxi_ast *for_statement(parser *p, bool is_async, place from)
{
    cfxi_ast_list body;
    cfxi_ast_list orelse;
    take(p);
    cfxi_ast *target = cfxi_syntax_for_targets(p);
    if (!target || !cfxi_syntax_expect(p, CFXI_TOK_in))
        return NULL;
    cfxi_ast *iter = cfxi_syntax_star_expressions(p);
    if (!iter || !cfxi_syntax_block(p, &body) || !else_block(p, &orelse))
        return NULL;
    const cfxi_ast_kind kind = is_async ? CFXI_AST_AsyncFor : CFXI_AST_For;
    cfxi_For *node = cfxi_syntax_node(p, kind, sizeof *node, from);
    if (!node)
        return NULL;
    node->target = target;
    node->iter = iter;
    node->body = body;
    node->orelse = orelse;
    return &node->ast;
}

/* ---- with ---------------------------------------------------------------------------------- */

static cfxi_ast *with_item(parser *p)
{
    cfxi_ast *vars = NULL;
    cfxi_ast *context = cfxi_syntax_expression(p);
    if (!context)
        return NULL;
    if (accept(p, CFXI_TOK_as)) {
        vars =
            next_is(p, CFXI_TOK_STAR) ? cfxi_syntax_star_expression(p) : cfxi_syntax_bitwise_or(p);
        if (!vars || !cfxi_syntax_set_context(p, vars, CFXI_AST_Store))
            return NULL;
    }
    cfxi_withitem *node = NEW_BARE(p, withitem);
    if (!node)
        return NULL;
    node->context_expr = context;
    node->optional_vars = vars;
    return &node->ast;
}

/* Whether '(' opens a list of items rather than an expression: ':' follows its ')', and inside, not
 * in further brackets, stands nothing that only an expression can have. */
static bool has_bracketed_items(const parser *p)
{
    const cfxi_token *t = p->tok;
    unsigned depth = 0;
    bool lambda = false;
    if (t->kind != CFXI_TOK_LPAR || t[1].kind == CFXI_TOK_RPAR)
        return false;
    for (;; t++) {
        switch (t->kind) {
        case CFXI_TOK_LPAR:
        case CFXI_TOK_LSQB:
        case CFXI_TOK_LBRACE:
        case CFXI_TOK_FSTART:
            depth++;
            break;
        case CFXI_TOK_RPAR:
        case CFXI_TOK_RSQB:
        case CFXI_TOK_RBRACE:
        case CFXI_TOK_FEND:
            if (--depth == 0)
                return t[1].kind == CFXI_TOK_COLON;
            break;
        case CFXI_TOK_NEWLINE:
        case CFXI_TOK_END:
        case CFXI_TOK_ERROR:
            return false;
        case CFXI_TOK_lambda:
            lambda = lambda || depth == 1;
            break;
        case CFXI_TOK_COLON:
            lambda = lambda && depth != 1;
            break;
        case CFXI_TOK_STAR:
            if (depth == 1 && !lambda && (t[-1].kind == CFXI_TOK_LPAR ||
                                          t[-1].kind == CFXI_TOK_COMMA))
                return false;
            break;
        case CFXI_TOK_WALRUS:
        case CFXI_TOK_for:
        case CFXI_TOK_yield:
            if (depth == 1)
                return false;
            break;
        default:
            break;
        }
    }
}

/* Pushes the items. */
static bool with_items(parser *p)
{
    const bool bracket = has_bracketed_items(p);
    if (bracket)
        take(p);
    do {
        if (bracket && next_is(p, CFXI_TOK_RPAR))
            break;
        cfxi_ast *item = with_item(p);
        if (!item || !push(p, item))
            return false;
    } while (accept(p, CFXI_TOK_COMMA));
    return !bracket || cfxi_syntax_expect(p, CFXI_TOK_RPAR);
}

static cfxi_ast *with_statement(parser *p, bool is_async, place from)
{
    const size_t mark = p->n_stack;
    cfxi_ast_list items;
    cfxi_ast_list body;
    take(p);
    if (!with_items(p) || !cfxi_syntax_pop_list(p, mark, &items) || !cfxi_syntax_block(p, &body))
        return NULL;
    const cfxi_ast_kind kind = is_async ? CFXI_AST_AsyncWith : CFXI_AST_With;
    cfxi_With *node = cfxi_syntax_node(p, kind, sizeof *node, from);
    if (!node)
        return NULL;
    node->items = items;
    node->body = body;
    return &node->ast;
}

/* ---- try ----------------------------------------------------------------------------------- */

static cfxi_ast *handler(parser *p, bool *star)
{
    const place from = here(p);
    const char *name = NULL;
    cfxi_ast *type = NULL;
    cfxi_ast_list body;
    take(p);
    *star = accept(p, CFXI_TOK_STAR);
    if (!next_is(p, CFXI_TOK_COLON)) {
        type = cfxi_syntax_expression(p);
        if (!type || (accept(p, CFXI_TOK_as) && !(name = cfxi_syntax_expect_name(p))))
            return NULL;
        if (next_is(p, CFXI_TOK_COMMA))
            return cfxi_syntax_fail_node(p, type, "multiple exception types must be parenthesized");
    } else if (*star) {
        return cfxi_syntax_fail_expected(p, "one or more exception types");
    }
    if (!cfxi_syntax_block(p, &body))
        return NULL;
    cfxi_ExceptHandler *node = NEW(p, ExceptHandler, from);
    if (!node)
        return NULL;
    node->type = type;
    node->name = name;
    node->body = body;
    return &node->ast;
}

static bool handlers(parser *p, cfxi_ast_list *out, bool *star)
{
    const size_t mark = p->n_stack;
    while (next_is(p, CFXI_TOK_except)) {
        const cfxi_token first = *p->tok;
        bool is_star;
        cfxi_ast *node = handler(p, &is_star);
        if (!node || !push(p, node))
            return false;
        if (p->n_stack > mark + 1 && is_star != *star)
            return cfxi_syntax_fail_at(p, &first,
                                       "cannot have both 'except' and 'except*' on the same 'try'");
        *star = is_star;
    }
    return cfxi_syntax_pop_list(p, mark, out);
}

static cfxi_ast *try_statement(parser *p)
{
    const place from = here(p);
    cfxi_Try parts = {.finalbody = {NULL, 0}};
    bool star = false;
    take(p);
    if (!cfxi_syntax_block(p, &parts.body) || !handlers(p, &parts.handlers, &star))
        return NULL;
    if (parts.handlers.count && !else_block(p, &parts.orelse))
        return NULL;
    if (accept(p, CFXI_TOK_finally)) {
        if (!cfxi_syntax_block(p, &parts.finalbody))
            return NULL;
    } else if (parts.handlers.count == 0) {
        return cfxi_syntax_fail_expected(p, "'except' or 'finally' block");
    }
    cfxi_Try *node =
        cfxi_syntax_node(p, star ? CFXI_AST_TryStar : CFXI_AST_Try, sizeof *node, from);
    if (!node)
        return NULL;
    parts.ast = node->ast;
    *node = parts;
    return &node->ast;
}

/* ---- def, class ---------------------------------------------------------------------------- */

static cfxi_ast *function(parser *p, bool is_async, cfxi_ast_list decorators, place from)
{
    cfxi_FunctionDef parts = {.decorator_list = decorators};
    take(p);
    parts.name = cfxi_syntax_expect_name(p);
    if (!parts.name || !cfxi_syntax_type_parameters(p, &parts.type_params) ||
        !cfxi_syntax_expect(p, CFXI_TOK_LPAR))
        return NULL;
    parts.args = cfxi_syntax_parameters(p, CFXI_TOK_RPAR);
    if (!parts.args || !cfxi_syntax_expect(p, CFXI_TOK_RPAR) ||
        (accept(p, CFXI_TOK_ARROW) && !(parts.returns = cfxi_syntax_expression(p))) ||
        !cfxi_syntax_block(p, &parts.body))
        return NULL;
    const cfxi_ast_kind kind = is_async ? CFXI_AST_AsyncFunctionDef : CFXI_AST_FunctionDef;
    cfxi_FunctionDef *node = cfxi_syntax_node(p, kind, sizeof *node, from);
    if (!node)
        return NULL;
    parts.ast = node->ast;
    *node = parts;
    return &node->ast;
}

static cfxi_ast *class_statement(parser *p, cfxi_ast_list decorators)
{
    const place from = here(p);
    cfxi_ClassDef parts = {.decorator_list = decorators};
    take(p);
    parts.name = cfxi_syntax_expect_name(p);
    if (!parts.name || !cfxi_syntax_type_parameters(p, &parts.type_params))
        return NULL;
    if (accept(p, CFXI_TOK_LPAR) &&
        !cfxi_syntax_call_arguments(p, false, from, &parts.bases, &parts.keywords))
        return NULL;
    if (!cfxi_syntax_block(p, &parts.body))
        return NULL;
    cfxi_ClassDef *node = NEW(p, ClassDef, from);
    if (!node)
        return NULL;
    parts.ast = node->ast;
    *node = parts;
    return &node->ast;
}

static cfxi_ast *async_statement(parser *p, cfxi_ast_list decorators)
{
    const place from = here(p);
    take(p);
    if (next_is(p, CFXI_TOK_def))
        return function(p, true, decorators, from);
    if (next_is(p, CFXI_TOK_for) && decorators.count == 0)
        return for_statement(p, true, from);
    if (next_is(p, CFXI_TOK_with) && decorators.count == 0)
        return with_statement(p, true, from);
    return cfxi_syntax_fail_expected(p, decorators.count ? "'def'" : "'def', 'for' or 'with'");
}

static cfxi_ast *decorated(parser *p)
{
    const size_t mark = p->n_stack;
    cfxi_ast_list decorators;
    while (accept(p, CFXI_TOK_AT)) {
        cfxi_ast *node = cfxi_syntax_named_expression(p);
        if (!node || !push(p, node) || !cfxi_syntax_end_line(p))
            return NULL;
    }
    if (!cfxi_syntax_pop_list(p, mark, &decorators))
        return NULL;
    if (next_is(p, CFXI_TOK_class))
        return class_statement(p, decorators);
    if (next_is(p, CFXI_TOK_async))
        return async_statement(p, decorators);
    if (next_is(p, CFXI_TOK_def))
        return function(p, false, decorators, here(p));
    return cfxi_syntax_fail_expected(p, "a function or class after the decorator");
}

cfxi_ast *cfxi_syntax_compound_statement(parser *p)
{
    const cfxi_ast_list none = {NULL, 0};
    switch (peek(p)) {
    case CFXI_TOK_if: return if_statement(p);
    case CFXI_TOK_for: return for_statement(p, false, here(p));
    case CFXI_TOK_while: return while_statement(p);
    case CFXI_TOK_try: return try_statement(p);
    case CFXI_TOK_with: return with_statement(p, false, here(p));
    case CFXI_TOK_def: return function(p, false, none, here(p));
    case CFXI_TOK_class: return class_statement(p, none);
    case CFXI_TOK_async: return async_statement(p, none);
    case CFXI_TOK_AT: return decorated(p);
    default: return cfxi_syntax_match_statement(p);
    }
}
