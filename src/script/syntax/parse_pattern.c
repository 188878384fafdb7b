/* parse_pattern.c - Python's match statement, whose keywords are names elsewhere, and patterns. */
#include "parse_impl.h"

/* ---- which it is --------------------------------------------------------------------------- */

/* Whether the logical line ends with ':'. */
static bool ends_with_colon(const parser *p)
{
    const cfxi_token *t = p->tok;
    while (t->kind != CFXI_TOK_NEWLINE && t->kind != CFXI_TOK_END && t->kind != CFXI_TOK_ERROR)
        t++;
    return t->kind == CFXI_TOK_NEWLINE && t[-1].kind == CFXI_TOK_COLON;
}

/* No expression begins with two operands side by side, and none that begins with a name ends with
 * ':' and has nothing behind it. */
bool cfxi_syntax_is_match_statement(const parser *p)
{
    if (!at_soft(p, CFXI_SOFT_match))
        return false;
    switch (peek_second(p)) {
    case CFXI_TOK_NAME:
    case CFXI_TOK_NUMBER:
    case CFXI_TOK_STRING:
    case CFXI_TOK_FSTART:
    case CFXI_TOK_LBRACE:
    case CFXI_TOK_TILDE:
    case CFXI_TOK_None:
    case CFXI_TOK_True:
    case CFXI_TOK_False:
    case CFXI_TOK_await:
    case CFXI_TOK_lambda:
        return true;
    case CFXI_TOK_not:
        return p->tok[2].kind != CFXI_TOK_in;
    case CFXI_TOK_LPAR:
    case CFXI_TOK_LSQB:
    case CFXI_TOK_MINUS:
    case CFXI_TOK_PLUS:
    case CFXI_TOK_STAR:
    case CFXI_TOK_ELLIPSIS:
        return ends_with_colon(p);
    default:
        return false;
    }
}

/* ---- values -------------------------------------------------------------------------------- */

static cfxi_ast *pattern(parser *p);

static cfxi_ast *value_pattern(parser *p, cfxi_ast *value, place from)
{
    cfxi_MatchValue *node = value ? NEW(p, MatchValue, from) : NULL;
    if (!node)
        return NULL;
    node->value = value;
    return &node->ast;
}

static cfxi_ast *singleton(parser *p, cfxi_constant_kind kind)
{
    const place from = here(p);
    take(p);
    cfxi_MatchSingleton *node = NEW(p, MatchSingleton, from);
    if (!node)
        return NULL;
    node->value.kind = kind;
    return &node->ast;
}

static cfxi_ast *plain_number(parser *p)
{
    return next_is(p, CFXI_TOK_NUMBER) ? cfxi_syntax_number(p)
                                       : cfxi_syntax_fail_expected(p, "a number");
}

/* -1 */
static cfxi_ast *signed_number(parser *p)
{
    const place from = here(p);
    if (!accept(p, CFXI_TOK_MINUS))
        return plain_number(p);
    cfxi_ast *operand = plain_number(p);
    cfxi_UnaryOp *node = operand ? NEW(p, UnaryOp, from) : NULL;
    if (!node)
        return NULL;
    node->op = CFXI_AST_USub;
    node->operand = operand;
    return &node->ast;
}

/* -1 + 2j */
static cfxi_ast *number_value(parser *p)
{
    const place from = here(p);
    cfxi_ast *left = signed_number(p);
    if (!left || !(next_is(p, CFXI_TOK_PLUS) || next_is(p, CFXI_TOK_MINUS)))
        return left;
    const bool plus = take(p)->kind == CFXI_TOK_PLUS;
    if (next_is(p, CFXI_TOK_NUMBER) && !(p->tok->flags & CFXI_NUM_IMAGINARY))
        return cfxi_syntax_fail_at(p, p->tok, "imaginary number required in complex literal");
    cfxi_ast *right = plain_number(p);
    cfxi_BinOp *node = right ? NEW(p, BinOp, from) : NULL;
    if (!node)
        return NULL;
    node->left = left;
    node->op = plus ? CFXI_AST_Add : CFXI_AST_Sub;
    node->right = right;
    return &node->ast;
}

static cfxi_ast *string_value(parser *p)
{
    cfxi_ast *node = cfxi_syntax_strings(p);
    if (node && node->kind == CFXI_AST_JoinedStr)
        return cfxi_syntax_fail_node(p, node,
                                     "patterns may only match literals and attribute lookups");
    return node;
}

/* a.b.c: a name, or attributes of it. */
static cfxi_ast *name_or_attribute(parser *p)
{
    const place from = here(p);
    const char *id = cfxi_syntax_expect_name(p);
    cfxi_Name *name = id ? NEW(p, Name, from) : NULL;
    if (!name)
        return NULL;
    name->id = id;
    name->ctx = CFXI_AST_Load;
    cfxi_ast *node = &name->ast;
    for (unsigned n = 0; accept(p, CFXI_TOK_DOT); n++) {
        const char *attr =
            n < CFXI_SCRIPT_HEIGHT ? cfxi_syntax_expect_name(p) : cfxi_syntax_fail_deep(p);
        cfxi_Attribute *next = attr ? NEW(p, Attribute, from) : NULL;
        if (!next)
            return NULL;
        next->value = node;
        next->attr = attr;
        next->ctx = CFXI_AST_Load;
        node = &next->ast;
    }
    return node;
}

/* ---- sequences ----------------------------------------------------------------------------- */

static const char *capture_name(parser *p)
{
    const bool wildcard = at_soft(p, CFXI_SOFT__);
    const char *name = cfxi_syntax_expect_name(p);
    return wildcard ? NULL : name;
}

static cfxi_ast *star_pattern(parser *p)
{
    const place from = here(p);
    take(p);
    if (!next_is(p, CFXI_TOK_NAME))
        return cfxi_syntax_fail_expected(p, "a name");
    const char *name = capture_name(p);
    cfxi_MatchStar *node = NEW(p, MatchStar, from);
    if (!node)
        return NULL;
    node->name = name;
    return &node->ast;
}

static cfxi_ast *maybe_star(parser *p)
{
    return next_is(p, CFXI_TOK_STAR) ? star_pattern(p) : pattern(p);
}

static bool ends_patterns(const parser *p)
{
    return next_is(p, CFXI_TOK_COLON) || next_is(p, CFXI_TOK_if) || next_is(p, CFXI_TOK_RPAR) ||
           next_is(p, CFXI_TOK_RSQB);
}

/* Pushes patterns with ',' between them. */
static bool pattern_items(parser *p)
{
    while (!ends_patterns(p)) {
        cfxi_ast *node = maybe_star(p);
        if (!node || !push(p, node))
            return false;
        if (!accept(p, CFXI_TOK_COMMA))
            break;
    }
    return true;
}

static cfxi_ast *sequence_node(parser *p, size_t mark, place from)
{
    cfxi_MatchSequence *node = NEW(p, MatchSequence, from);
    return node && cfxi_syntax_pop_list(p, mark, &node->patterns) ? &node->ast : NULL;
}

/* (a) is a itself; (a,), (a, b), () and [a] are sequences. */
static cfxi_ast *bracketed_pattern(parser *p)
{
    const place from = here(p);
    const size_t mark = p->n_stack;
    const bool group = take(p)->kind == CFXI_TOK_LPAR;
    if (!enter(p) || !pattern_items(p))
        return NULL;
    leave(p);
    const bool comma = p->last->kind == CFXI_TOK_COMMA;
    if (!cfxi_syntax_expect(p, group ? CFXI_TOK_RPAR : CFXI_TOK_RSQB))
        return NULL;
    if (group && !comma && p->n_stack == mark + 1 &&
        p->stack[mark]->kind != CFXI_AST_MatchStar) {
        p->n_stack = mark;
        return p->stack[mark];
    }
    if (group && !comma && p->n_stack == mark + 1)
        return cfxi_syntax_fail_node(p, p->stack[mark],
                                     "a starred pattern needs a sequence; add a ','");
    return sequence_node(p, mark, from);
}

/* ---- mappings ------------------------------------------------------------------------------ */

static cfxi_ast *mapping_key(parser *p)
{
    switch (peek(p)) {
    case CFXI_TOK_None: return cfxi_syntax_constant(p, CFXI_CONST_NONE);
    case CFXI_TOK_True: return cfxi_syntax_constant(p, CFXI_CONST_TRUE);
    case CFXI_TOK_False: return cfxi_syntax_constant(p, CFXI_CONST_FALSE);
    case CFXI_TOK_STRING:
    case CFXI_TOK_FSTART: return string_value(p);
    case CFXI_TOK_NUMBER:
    case CFXI_TOK_MINUS: return number_value(p);
    default: break;
    }
    cfxi_ast *node = name_or_attribute(p);
    if (node && node->kind == CFXI_AST_Name)
        return cfxi_syntax_fail_node(
            p, node, "a key of a mapping pattern must be a literal or an attribute");
    return node;
}

static cfxi_ast *mapping_pattern(parser *p)
{
    const place from = here(p);
    const size_t mark = p->n_stack;
    const char *rest = NULL;
    take(p);
    if (!enter(p))
        return NULL;
    while (!next_is(p, CFXI_TOK_RBRACE) && !rest) {
        if (accept(p, CFXI_TOK_DOUBLE_STAR)) {
            if (at_soft(p, CFXI_SOFT__))
                return cfxi_syntax_fail_at(p, p->tok, "cannot use '_' after ** in a "
                                           "mapping pattern");
            rest = cfxi_syntax_expect_name(p);
            if (!rest)
                return NULL;
        } else {
            cfxi_ast *key = mapping_key(p);
            if (!key || !cfxi_syntax_expect(p, CFXI_TOK_COLON))
                return NULL;
            cfxi_ast *value = pattern(p);
            if (!value || !push(p, key) || !push(p, value))
                return NULL;
        }
        if (!accept(p, CFXI_TOK_COMMA))
            break;
    }
    if (!cfxi_syntax_expect(p, CFXI_TOK_RBRACE))
        return NULL;
    leave(p);
    cfxi_MatchMapping *node = NEW(p, MatchMapping, from);
    if (!node || !cfxi_syntax_pop_pairs(p, mark, &node->keys, &node->patterns))
        return NULL;
    node->rest = rest;
    return &node->ast;
}

/* ---- classes ------------------------------------------------------------------------------- */

/* a=pattern: pushes the name and the pattern. */
static bool keyword_pattern(parser *p)
{
    const char *name = name_of(p, take(p));
    take(p);
    cfxi_ast *node = pattern(p);
    return node && push(p, (void *)name) && push(p, node);
}

static bool class_keywords(parser *p, size_t mark, cfxi_MatchClass *node)
{
    const size_t n = (p->n_stack - mark) / 2;
    cfxi_ast **patterns = n ? cfxi_base_arena_alloc(p->arena, n * sizeof *patterns) : NULL;
    const char **names = n ? cfxi_base_arena_alloc(p->arena, n * sizeof *names) : NULL;
    if (n && (!patterns || !names))
        return cfxi_syntax_fail_nomem(p);
    for (size_t i = 0; i < n; i++) {
        names[i] = (const char *)p->stack[mark + 2 * i];
        patterns[i] = p->stack[mark + 2 * i + 1];
    }
    p->n_stack = mark;
    node->kwd_attrs = (cfxi_name_list){names, n};
    node->kwd_patterns = (cfxi_ast_list){patterns, n};
    return true;
}

static bool at_keyword(const parser *p)
{
    return next_is(p, CFXI_TOK_NAME) && peek_second(p) == CFXI_TOK_ASSIGN;
}

static cfxi_ast *class_pattern(parser *p, cfxi_ast *class, place from)
{
    const size_t mark = p->n_stack;
    size_t first_keyword = SIZE_MAX;
    take(p);
    if (!enter(p))
        return NULL;
    while (!next_is(p, CFXI_TOK_RPAR)) {
        if (at_keyword(p)) {
            first_keyword = first_keyword < p->n_stack ? first_keyword : p->n_stack;
            if (!keyword_pattern(p))
                return NULL;
        } else {
            cfxi_ast *node = first_keyword == SIZE_MAX ? pattern(p) : cfxi_syntax_fail_at(p, p->tok,
                "positional patterns follow keyword patterns");
            if (!node || !push(p, node))
                return NULL;
        }
        if (!accept(p, CFXI_TOK_COMMA))
            break;
    }
    if (!cfxi_syntax_expect(p, CFXI_TOK_RPAR))
        return NULL;
    leave(p);
    cfxi_MatchClass *node = NEW(p, MatchClass, from);
    if (!node)
        return NULL;
    node->cls = class;
    return (first_keyword == SIZE_MAX || class_keywords(p, first_keyword, node)) &&
           cfxi_syntax_pop_list(p, mark, &node->patterns) ? &node->ast : NULL;
}

/* ---- patterns ------------------------------------------------------------------------------ */

static cfxi_ast *as_node(parser *p, cfxi_ast *inner, const char *name, place from)
{
    cfxi_MatchAs *node = NEW(p, MatchAs, from);
    if (!node)
        return NULL;
    node->pattern = inner;
    node->name = name;
    return &node->ast;
}

static cfxi_ast *named_pattern(parser *p)
{
    const place from = here(p);
    const cfxi_token_kind next = peek_second(p);
    if (at_soft(p, CFXI_SOFT__) || (next != CFXI_TOK_DOT && next != CFXI_TOK_LPAR)) {
        const char *name = capture_name(p);
        return as_node(p, NULL, name, from);
    }
    cfxi_ast *value = name_or_attribute(p);
    if (value && next_is(p, CFXI_TOK_LPAR))
        return class_pattern(p, value, from);
    return value_pattern(p, value, from);
}

static cfxi_ast *closed_pattern(parser *p)
{
    const place from = here(p);
    switch (peek(p)) {
    case CFXI_TOK_None: return singleton(p, CFXI_CONST_NONE);
    case CFXI_TOK_True: return singleton(p, CFXI_CONST_TRUE);
    case CFXI_TOK_False: return singleton(p, CFXI_CONST_FALSE);
    case CFXI_TOK_NUMBER:
    case CFXI_TOK_MINUS: return value_pattern(p, number_value(p), from);
    case CFXI_TOK_STRING:
    case CFXI_TOK_FSTART: return value_pattern(p, string_value(p), from);
    case CFXI_TOK_NAME: return named_pattern(p);
    case CFXI_TOK_LPAR:
    case CFXI_TOK_LSQB: return bracketed_pattern(p);
    case CFXI_TOK_LBRACE: return mapping_pattern(p);
    default: return cfxi_syntax_fail_expected(p, "a pattern");
    }
}

static cfxi_ast *or_pattern(parser *p)
{
    const place from = here(p);
    const size_t mark = p->n_stack;
    cfxi_ast *first = closed_pattern(p);
    if (!first || !next_is(p, CFXI_TOK_VBAR))
        return first;
    if (!push(p, first))
        return NULL;
    while (accept(p, CFXI_TOK_VBAR)) {
        cfxi_ast *next = closed_pattern(p);
        if (!next || !push(p, next))
            return NULL;
    }
    cfxi_MatchOr *node = NEW(p, MatchOr, from);
    return node && cfxi_syntax_pop_list(p, mark, &node->patterns) ? &node->ast : NULL;
}

static cfxi_ast *pattern(parser *p)
{
    const place from = here(p);
    cfxi_ast *node = or_pattern(p);
    if (!node || !accept(p, CFXI_TOK_as))
        return node;
    if (at_soft(p, CFXI_SOFT__))
        return cfxi_syntax_fail_at(p, p->tok, "cannot use '_' as a target");
    const char *name = cfxi_syntax_expect_name(p);
    return name ? as_node(p, node, name, from) : NULL;
}

/* ---- the statement ------------------------------------------------------------------------- */

/* What stands behind `case`: with ',' it is a sequence without brackets. */
static cfxi_ast *case_pattern(parser *p)
{
    const place from = here(p);
    const size_t mark = p->n_stack;
    cfxi_ast *first = maybe_star(p);
    if (!first)
        return NULL;
    if (!next_is(p, CFXI_TOK_COMMA)) {
        if (first->kind == CFXI_AST_MatchStar)
            return cfxi_syntax_fail_node(p, first, "a starred pattern needs a sequence; add a ','");
        return first;
    }
    take(p);
    if (!push(p, first) || !pattern_items(p))
        return NULL;
    return sequence_node(p, mark, from);
}

static cfxi_ast *case_block(parser *p)
{
    cfxi_ast *guard = NULL;
    cfxi_ast_list body;
    if (!at_soft(p, CFXI_SOFT_case))
        return cfxi_syntax_fail_expected(p, "'case'");
    take(p);
    cfxi_ast *what = case_pattern(p);
    if (!what || (accept(p, CFXI_TOK_if) && !(guard = cfxi_syntax_named_expression(p))) ||
        !cfxi_syntax_block(p, &body))
        return NULL;
    cfxi_match_case *node = NEW_BARE(p, match_case);
    if (!node)
        return NULL;
    node->pattern = what;
    node->guard = guard;
    node->body = body;
    return &node->ast;
}

static cfxi_ast *subject(parser *p)
{
    const place from = here(p);
    cfxi_ast *node = cfxi_syntax_star_named(p);
    if (node && next_is(p, CFXI_TOK_COMMA))
        return cfxi_syntax_tuple_rest(p, node, from, cfxi_syntax_star_named);
    if (node && node->kind == CFXI_AST_Starred)
        return cfxi_syntax_fail_node(p, node,
                                     "cannot use starred expression here; add a ',' for a tuple");
    return node;
}

cfxi_ast *cfxi_syntax_match_statement(parser *p)
{
    const place from = here(p);
    const size_t mark = p->n_stack;
    take(p);
    cfxi_ast *value = subject(p);
    if (!value || !cfxi_syntax_expect(p, CFXI_TOK_COLON) || !cfxi_syntax_end_line(p))
        return NULL;
    if (!next_is(p, CFXI_TOK_INDENT))
        return cfxi_syntax_fail_expected(p, "an indented block");
    p->tok++;
    while (!next_is(p, CFXI_TOK_DEDENT)) {
        cfxi_ast *node = case_block(p);
        if (!node || !push(p, node))
            return NULL;
    }
    p->tok++;
    cfxi_Match *node = NEW(p, Match, from);
    if (!node || !cfxi_syntax_pop_list(p, mark, &node->cases))
        return NULL;
    node->subject = value;
    return &node->ast;
}
