/* parse_stmt.c - Python's simple statements. */
#include "parse_impl.h"


/* ---- assignment ---------------------------------------------------------------------------- */

/* The operator of "+=" and its like; CFXI_AST_COUNT for other tokens. */
static cfxi_ast_kind augmented_op(cfxi_token_kind kind)
{
    switch ((unsigned)kind) {
#define CFX_SIGN_BINARY(id, sign, function, in_place, method, precedence, place, token, ast)       \
    case CFXI_TOK_##token##_IS: return CFXI_AST_##ast;
#include <cfx/embed/sign.def>
    }
    return CFXI_AST_COUNT;
}

static bool is_single_target(const cfxi_ast *node)
{
    return node->kind == CFXI_AST_Name || node->kind == CFXI_AST_Attribute ||
           node->kind == CFXI_AST_Subscript;
}

static cfxi_ast *augmented(parser *p, cfxi_ast *target, cfxi_ast_kind op, place from)
{
    if (!is_single_target(target))
        return cfxi_syntax_fail_node(p, target,
                                     "'%s' is an illegal expression for augmented assignment",
                         cfxi_syntax_expression_text(target));
    cfxi_syntax_set_context(p, target, CFXI_AST_Store);
    take(p);
    cfxi_ast *value = cfxi_syntax_yield_or_star(p);
    cfxi_AugAssign *node = value ? NEW(p, AugAssign, from) : NULL;
    if (!node)
        return NULL;
    node->target = target;
    node->op = op;
    node->value = value;
    return &node->ast;
}

/* At ':', behind the target; `simple`: it is a name without brackets. */
static cfxi_ast *annotated(parser *p, cfxi_ast *target, bool simple, place from)
{
    cfxi_ast *value = NULL;
    if (target->kind == CFXI_AST_Tuple || target->kind == CFXI_AST_List)
        return cfxi_syntax_fail_node(p, target, "only single target (not %s) can be annotated",
                         cfxi_syntax_expression_text(target));
    if (!is_single_target(target))
        return cfxi_syntax_fail_node(p, target, "illegal target for annotation");
    cfxi_syntax_set_context(p, target, CFXI_AST_Store);
    take(p);
    cfxi_ast *annotation = cfxi_syntax_expression(p);
    if (!annotation || (accept(p, CFXI_TOK_ASSIGN) && !(value = cfxi_syntax_yield_or_star(p))))
        return NULL;
    cfxi_AnnAssign *node = NEW(p, AnnAssign, from);
    if (!node)
        return NULL;
    node->target = target;
    node->annotation = annotation;
    node->value = value;
    node->simple = simple;
    return &node->ast;
}

/* At the first '='. All but the last expression of the chain are targets. */
static cfxi_ast *assignment(parser *p, cfxi_ast *first, place from)
{
    const size_t mark = p->n_stack;
    cfxi_ast *value = first;
    while (next_is(p, CFXI_TOK_ASSIGN)) {
        if (!cfxi_syntax_set_context(p, value, CFXI_AST_Store) || !push(p, value))
            return NULL;
        take(p);
        value = cfxi_syntax_yield_or_star(p);
        if (!value)
            return NULL;
    }
    cfxi_Assign *node = NEW(p, Assign, from);
    if (!node || !cfxi_syntax_pop_list(p, mark, &node->targets))
        return NULL;
    node->value = value;
    return &node->ast;
}

/* "print x", as Python 2 had it. */
static bool is_old_print(const parser *p, const cfxi_ast *node)
{
    if (node->kind != CFXI_AST_Name || p->last->kind != CFXI_TOK_NAME)
        return false;
    return (p->last->value == CFXI_SOFT_print || p->last->value == CFXI_SOFT_exec) &&
           cfxi_syntax_starts_expression(peek(p));
}

static cfxi_ast *expression_statement(parser *p)
{
    const place from = here(p);
    const bool bracket = next_is(p, CFXI_TOK_LPAR);
    cfxi_ast *value = cfxi_syntax_yield_or_star(p);
    if (!value)
        return NULL;
    if (next_is(p, CFXI_TOK_ASSIGN))
        return assignment(p, value, from);
    if (next_is(p, CFXI_TOK_COLON))
        return annotated(p, value, value->kind == CFXI_AST_Name && !bracket, from);
    const cfxi_ast_kind op = augmented_op(peek(p));
    if (op != CFXI_AST_COUNT)
        return augmented(p, value, op, from);
    if (is_old_print(p, value))
        return cfxi_syntax_fail_node(p, value, "missing parentheses in call to '%s': write %s(...)",
                         cfxi_syntax_as_Name(value)->id, cfxi_syntax_as_Name(value)->id);
    cfxi_Expr *node = NEW(p, Expr, from);
    if (!node)
        return NULL;
    node->value = value;
    return &node->ast;
}

/* ---- statements of a keyword --------------------------------------------------------------- */

static cfxi_ast *keyword_alone(parser *p, cfxi_ast_kind kind)
{
    const place from = here(p);
    take(p);
    return cfxi_syntax_node(p, kind, sizeof(cfxi_Pass), from);
}

static cfxi_ast *return_statement(parser *p)
{
    const place from = here(p);
    cfxi_ast *value = NULL;
    take(p);
    if (cfxi_syntax_starts_expression(peek(p)) && !(value = cfxi_syntax_star_expressions(p)))
        return NULL;
    cfxi_Return *node = NEW(p, Return, from);
    if (!node)
        return NULL;
    node->value = value;
    return &node->ast;
}

static cfxi_ast *raise_statement(parser *p)
{
    const place from = here(p);
    cfxi_ast *exc = NULL;
    cfxi_ast *cause = NULL;
    take(p);
    if (cfxi_syntax_starts_expression(peek(p))) {
        exc = cfxi_syntax_expression(p);
        if (!exc || (accept(p, CFXI_TOK_from) && !(cause = cfxi_syntax_expression(p))))
            return NULL;
    }
    cfxi_Raise *node = NEW(p, Raise, from);
    if (!node)
        return NULL;
    node->exc = exc;
    node->cause = cause;
    return &node->ast;
}

static cfxi_ast *assert_statement(parser *p)
{
    const place from = here(p);
    cfxi_ast *msg = NULL;
    take(p);
    cfxi_ast *test = cfxi_syntax_expression(p);
    if (!test || (accept(p, CFXI_TOK_COMMA) && !(msg = cfxi_syntax_expression(p))))
        return NULL;
    cfxi_Assert *node = NEW(p, Assert, from);
    if (!node)
        return NULL;
    node->test = test;
    node->msg = msg;
    return &node->ast;
}

static cfxi_ast *delete_statement(parser *p)
{
    const place from = here(p);
    const size_t mark = p->n_stack;
    take(p);
    do {
        cfxi_ast *target = cfxi_syntax_star_expression(p);
        if (!target || !cfxi_syntax_set_context(p, target, CFXI_AST_Del) || !push(p, target))
            return NULL;
    } while (accept(p, CFXI_TOK_COMMA) && cfxi_syntax_starts_expression(peek(p)));
    cfxi_Delete *node = NEW(p, Delete, from);
    return node && cfxi_syntax_pop_list(p, mark, &node->targets) ? &node->ast : NULL;
}

/* global, nonlocal: both have the fields of a Global. */
static cfxi_ast *names_statement(parser *p, cfxi_ast_kind kind)
{
    const place from = here(p);
    const size_t mark = p->n_stack;
    take(p);
    do {
        const char *name = cfxi_syntax_expect_name(p);
        if (!name || !push(p, (void *)name))
            return NULL;
    } while (accept(p, CFXI_TOK_COMMA));
    cfxi_Global *node = cfxi_syntax_node(p, kind, sizeof *node, from);
    return node && cfxi_syntax_pop_names(p, mark, &node->names) ? &node->ast : NULL;
}

/* ---- import -------------------------------------------------------------------------------- */

/* "a.b.c" as one name. */
static const char *dotted_name(parser *p)
{
    const size_t start = p->text.size;
    const cfxi_token *first = p->tok;
    if (!cfxi_syntax_expect_name(p))
        return NULL;
    if (!next_is(p, CFXI_TOK_DOT))
        return name_of(p, first);
    for (const cfxi_token *t = first;; t = p->last) {
        if (cfx_buffer_append(&p->text, text_of(p, t), t->size) != CFX_OK)
            return cfxi_syntax_fail_nomem(p);
        if (!accept(p, CFXI_TOK_DOT))
            break;
        if (cfx_buffer_append(&p->text, ".", 1) != CFX_OK)
            return cfxi_syntax_fail_nomem(p);
        if (!cfxi_syntax_expect_name(p))
            return NULL;
    }
    const uint32_t number = cfxi_syntax_names_add(&p->script->names, p->text.data + start,
                                                  p->text.size - start);
    p->text.size = start;
    return number == UINT32_MAX ? cfxi_syntax_fail_nomem(p) : p->script->names.entries[number].text;
}

static cfxi_ast *alias(parser *p, bool dotted)
{
    const place from = here(p);
    const char *asname = NULL;
    const char *name = dotted ? dotted_name(p) : cfxi_syntax_expect_name(p);
    if (!name || (accept(p, CFXI_TOK_as) && !(asname = cfxi_syntax_expect_name(p))))
        return NULL;
    cfxi_alias *node = NEW(p, alias, from);
    if (!node)
        return NULL;
    node->name = name;
    node->asname = asname;
    return &node->ast;
}

static cfxi_ast *import_statement(parser *p)
{
    const place from = here(p);
    const size_t mark = p->n_stack;
    take(p);
    do {
        cfxi_ast *node = alias(p, true);
        if (!node || !push(p, node))
            return NULL;
    } while (accept(p, CFXI_TOK_COMMA));
    cfxi_Import *node = NEW(p, Import, from);
    return node && cfxi_syntax_pop_list(p, mark, &node->names) ? &node->ast : NULL;
}

/* "*", "a, b as c", "(a, b,)". */
static bool imported_names(parser *p)
{
    const place from = here(p);
    if (accept(p, CFXI_TOK_STAR)) {
        cfxi_alias *all = NEW(p, alias, from);
        if (all)
            all->name = "*";
        return all && push(p, all);
    }
    const bool bracket = accept(p, CFXI_TOK_LPAR);
    do {
        if (bracket && next_is(p, CFXI_TOK_RPAR) && p->last->kind == CFXI_TOK_COMMA)
            break;
        if (next_is(p, CFXI_TOK_NEWLINE) && p->last->kind == CFXI_TOK_COMMA)
            return cfxi_syntax_fail_at(
                p, p->tok, "trailing comma not allowed without surrounding parentheses");
        cfxi_ast *node = alias(p, false);
        if (!node || !push(p, node))
            return false;
    } while (accept(p, CFXI_TOK_COMMA));
    return !bracket || cfxi_syntax_expect(p, CFXI_TOK_RPAR);
}

static cfxi_ast *import_from(parser *p)
{
    const place from = here(p);
    const size_t mark = p->n_stack;
    const char *module = NULL;
    int level = 0;
    take(p);
    for (; next_is(p, CFXI_TOK_DOT) || next_is(p, CFXI_TOK_ELLIPSIS); take(p))
        level += next_is(p, CFXI_TOK_DOT) ? 1 : 3;
    if ((level == 0 || next_is(p, CFXI_TOK_NAME)) && !(module = dotted_name(p)))
        return NULL;
    if (!cfxi_syntax_expect(p, CFXI_TOK_import) || !imported_names(p))
        return NULL;
    cfxi_ImportFrom *node = NEW(p, ImportFrom, from);
    if (!node || !cfxi_syntax_pop_list(p, mark, &node->names))
        return NULL;
    node->module = module;
    node->level = level;
    return &node->ast;
}

/* ---- type aliases -------------------------------------------------------------------------- */

static bool is_type_alias(const parser *p)
{
    if (!at_soft(p, CFXI_SOFT_type) || peek_second(p) != CFXI_TOK_NAME)
        return false;
    return p->tok[2].kind == CFXI_TOK_ASSIGN || p->tok[2].kind == CFXI_TOK_LSQB;
}

static cfxi_ast *type_alias(parser *p)
{
    const place from = here(p);
    cfxi_ast_list params;
    take(p);
    const place at_name = here(p);
    const char *id = name_of(p, take(p));
    cfxi_Name *name = NEW(p, Name, at_name);
    if (!name || !cfxi_syntax_type_parameters(p, &params) ||
        !cfxi_syntax_expect(p, CFXI_TOK_ASSIGN))
        return NULL;
    cfxi_ast *value = cfxi_syntax_expression(p);
    cfxi_TypeAlias *node = value ? NEW(p, TypeAlias, from) : NULL;
    if (!node)
        return NULL;
    name->id = id;
    name->ctx = CFXI_AST_Store;
    node->name = &name->ast;
    node->type_params = params;
    node->value = value;
    return &node->ast;
}

cfxi_ast *cfxi_syntax_simple_statement(parser *p)
{
    switch (peek(p)) {
    case CFXI_TOK_pass: return keyword_alone(p, CFXI_AST_Pass);
    case CFXI_TOK_break: return keyword_alone(p, CFXI_AST_Break);
    case CFXI_TOK_continue: return keyword_alone(p, CFXI_AST_Continue);
    case CFXI_TOK_return: return return_statement(p);
    case CFXI_TOK_raise: return raise_statement(p);
    case CFXI_TOK_assert: return assert_statement(p);
    case CFXI_TOK_del: return delete_statement(p);
    case CFXI_TOK_global: return names_statement(p, CFXI_AST_Global);
    case CFXI_TOK_nonlocal: return names_statement(p, CFXI_AST_Nonlocal);
    case CFXI_TOK_import: return import_statement(p);
    case CFXI_TOK_from: return import_from(p);
    case CFXI_TOK_else:
    case CFXI_TOK_elif:
    case CFXI_TOK_except:
    case CFXI_TOK_finally:
        return cfxi_syntax_fail_at(p, p->tok, "'%.*s' does not belong to any statement here; check "
                                   "the indentation", (int)p->tok->size, text_of(p, p->tok));
    default: return is_type_alias(p) ? type_alias(p) : expression_statement(p);
    }
}
