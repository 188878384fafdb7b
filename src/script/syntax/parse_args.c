/* parse_args.c - the arguments of calls, the parameters of functions, type parameters. */
#include "parse_impl.h"

/* ---- arguments ----------------------------------------------------------------------------- */

/* What has come before an argument. */
typedef struct seen {
    bool any;
    bool keyword;
    bool unpacked;  /* **x */
} seen;

static cfxi_ast *keyword_node(parser *p, const char *arg, place from)
{
    cfxi_ast *value = cfxi_syntax_expression(p);
    cfxi_keyword *node = value ? NEW(p, keyword, from) : NULL;
    if (!node)
        return NULL;
    node->arg = arg;
    node->value = value;
    return &node->ast;
}

static cfxi_ast *starred_argument(parser *p, const seen *s)
{
    if (s->unpacked)
        return cfxi_syntax_fail_at(
            p, p->tok, "iterable argument unpacking follows keyword argument unpacking");
    return cfxi_syntax_starred(p, cfxi_syntax_expression);
}

static cfxi_ast *positional(parser *p, const seen *s)
{
    const cfxi_token *t = p->tok;
    if ((t->kind == CFXI_TOK_True || t->kind == CFXI_TOK_False || t->kind == CFXI_TOK_None) &&
        peek_second(p) == CFXI_TOK_ASSIGN)
        return cfxi_syntax_fail_at(p, t, "cannot assign to %.*s", (int)t->size, text_of(p, t));
    cfxi_ast *node = cfxi_syntax_named_expression(p);
    if (!node)
        return NULL;
    if (next_is(p, CFXI_TOK_ASSIGN))
        return cfxi_syntax_fail_node(p, node,
                                     "expression cannot contain assignment, perhaps you meant "
                                     "\"==\"?");
    if (at_comprehension(p))
        return node;  /* the caller's matter */
    if (s->unpacked || s->keyword)
        return cfxi_syntax_fail_node(p, node, "positional argument follows keyword argument%s",
                         s->unpacked ? " unpacking" : "");
    return node;
}

static cfxi_ast *argument(parser *p, seen *s)
{
    const place from = here(p);
    if (next_is(p, CFXI_TOK_STAR))
        return starred_argument(p, s);
    if (accept(p, CFXI_TOK_DOUBLE_STAR)) {
        s->unpacked = true;
        return keyword_node(p, NULL, from);
    }
    if (next_is(p, CFXI_TOK_NAME) && peek_second(p) == CFXI_TOK_ASSIGN) {
        const char *arg = name_of(p, take(p));
        take(p);
        s->keyword = true;
        return keyword_node(p, arg, from);
    }
    return positional(p, s);
}

/* Keywords and others lie mixed on the stack. */
static bool split_arguments(parser *p, size_t mark, cfxi_ast_list *args, cfxi_ast_list *keywords)
{
    const size_t n = p->n_stack - mark;
    size_t n_keywords = 0;
    for (size_t i = 0; i < n; i++)
        n_keywords += p->stack[mark + i]->kind == CFXI_AST_keyword;
    *args = *keywords = (cfxi_ast_list){NULL, 0};
    if (n == 0)
        return true;
    cfxi_ast **items = cfxi_base_arena_alloc(p->arena, n * sizeof *items);
    if (!items)
        return cfxi_syntax_fail_nomem(p);
    args->items = n > n_keywords ? items : NULL;
    keywords->items = n_keywords ? items + (n - n_keywords) : NULL;
    for (size_t i = 0; i < n; i++) {
        cfxi_ast_list *list = p->stack[mark + i]->kind == CFXI_AST_keyword ? keywords : args;
        list->items[list->count++] = p->stack[mark + i];
    }
    p->n_stack = mark;
    return true;
}

/* f(x for x in y): at `for`, behind the element. */
static bool lone_generator(parser *p, const cfxi_ast *elt, bool allowed, place open, const seen *s,
                           cfxi_ast_list *args)
{
    if (!allowed)
        return cfxi_syntax_fail_expected(p, "')' or ','");
    if (s->any)
        return cfxi_syntax_fail_node(p, elt, "Generator expression must be parenthesized");
    cfxi_ast_list generators;
    if (!cfxi_syntax_comprehensions(p, &generators))
        return false;
    if (next_is(p, CFXI_TOK_COMMA))
        return cfxi_syntax_fail_node(p, elt, "Generator expression must be parenthesized");
    if (!cfxi_syntax_expect(p, CFXI_TOK_RPAR))
        return false;
    cfxi_GeneratorExp *node = NEW(p, GeneratorExp, open);
    if (!node)
        return false;
    node->elt = (cfxi_ast *)elt;
    node->generators = generators;
    const size_t mark = p->n_stack;
    return push(p, node) && cfxi_syntax_pop_list(p, mark, args);
}

bool cfxi_syntax_call_arguments(parser *p, bool genexp, place open, cfxi_ast_list *args,
                    cfxi_ast_list *keywords)
{
    const size_t mark = p->n_stack;
    seen s = {false, false, false};
    *keywords = (cfxi_ast_list){NULL, 0};
    while (!next_is(p, CFXI_TOK_RPAR)) {
        cfxi_ast *node = argument(p, &s);
        if (!node)
            return false;
        if (at_comprehension(p))
            return lone_generator(p, node, genexp, open, &s, args);
        if (!push(p, node))
            return false;
        s.any = true;
        if (!accept(p, CFXI_TOK_COMMA) && !next_is(p, CFXI_TOK_RPAR))
            return cfxi_syntax_fail_expected(p, "')' or ','");
    }
    take(p);
    return split_arguments(p, mark, args, keywords);
}

/* ---- parameters ---------------------------------------------------------------------------- */

/* On the stack lie a parameter and its default (or NULL) in turn. */
typedef struct signature {
    size_t mark;
    size_t positional_only;  /* how many lie before '/' */
    size_t before_star;      /* how many lie before '*' */
    bool slash, star, defaults;
    cfxi_ast *vararg;
    cfxi_ast *kwarg;
} signature;

static size_t parameter_count(const parser *p, const signature *s)
{
    return (p->n_stack - s->mark) / 2;
}

/* NAME [: annotation]; a lambda's has no annotation, *args: *Ts can have a star in it. */
static cfxi_ast *parameter(parser *p, bool annotated, bool star)
{
    const place from = here(p);
    cfxi_ast *annotation = NULL;
    const char *name = cfxi_syntax_expect_name(p);
    if (!name)
        return NULL;
    if (annotated && accept(p, CFXI_TOK_COLON)) {
        annotation = star ? cfxi_syntax_star_expression(p) : cfxi_syntax_expression(p);
        if (!annotation)
            return NULL;
    }
    cfxi_arg *node = NEW(p, arg, from);
    if (!node)
        return NULL;
    node->arg = name;
    node->annotation = annotation;
    return &node->ast;
}

static bool plain_parameter(parser *p, signature *s, bool annotated)
{
    const cfxi_token *first = p->tok;
    cfxi_ast *value = NULL;
    cfxi_ast *node = parameter(p, annotated, false);
    if (!node)
        return false;
    if (accept(p, CFXI_TOK_ASSIGN)) {
        value = cfxi_syntax_expression(p);
        if (!value)
            return false;
    }
    if (!s->star && s->defaults && !value)
        return cfxi_syntax_fail_at(p, first,
                                   "parameter without a default follows parameter with a default");
    s->defaults = s->defaults || value;
    return push(p, node) && push(p, value);
}

static bool slash(parser *p, signature *s)
{
    if (s->slash)
        return cfxi_syntax_fail_at(p, p->tok, "/ may appear only once");
    if (s->star)
        return cfxi_syntax_fail_at(p, p->tok, "/ must be ahead of *");
    if (parameter_count(p, s) == 0)
        return cfxi_syntax_fail_at(p, p->tok, "at least one parameter must precede /");
    take(p);
    s->slash = true;
    s->positional_only = parameter_count(p, s);
    return true;
}

static bool star(parser *p, signature *s, cfxi_token_kind end, bool annotated)
{
    const cfxi_token *t = p->tok;
    if (s->star)
        return cfxi_syntax_fail_at(p, t, "* may appear only once");
    take(p);
    s->star = true;
    s->before_star = parameter_count(p, s);
    if (next_is(p, CFXI_TOK_NAME)) {
        s->vararg = parameter(p, annotated, true);
        if (s->vararg && next_is(p, CFXI_TOK_ASSIGN))
            return cfxi_syntax_fail_at(p, p->tok,
                                       "the * parameter cannot have a default value");
        return s->vararg != NULL;
    }
    if (next_is(p, end) || (next_is(p, CFXI_TOK_COMMA) &&
                            (peek_second(p) == end || peek_second(p) == CFXI_TOK_DOUBLE_STAR)))
        return cfxi_syntax_fail_at(p, t, "named parameters must follow bare *");
    return next_is(p, CFXI_TOK_COMMA) || cfxi_syntax_fail_expected(p, "a name or ','");
}

static bool starts_parameter(cfxi_token_kind kind)
{
    return kind == CFXI_TOK_NAME || kind == CFXI_TOK_STAR || kind == CFXI_TOK_DOUBLE_STAR ||
           kind == CFXI_TOK_SLASH;
}

static bool double_star(parser *p, signature *s, bool annotated)
{
    take(p);
    s->kwarg = parameter(p, annotated, false);
    if (!s->kwarg)
        return false;
    if (next_is(p, CFXI_TOK_ASSIGN))
        return cfxi_syntax_fail_at(p, p->tok,
                                   "the ** parameter cannot have a default value");
    if (next_is(p, CFXI_TOK_COMMA) && starts_parameter(peek_second(p)))
        return cfxi_syntax_fail_at(p, p->tok + 1, "parameters cannot follow the ** parameter");
    return true;
}

/* Items from..to of the stack's pairs: `which` 0 for parameters, 1 for defaults. */
static bool pick(parser *p, const signature *s, size_t from, size_t to, int which, bool all,
                 cfxi_ast_list *out)
{
    out->count = 0;
    out->items =
        to > from ? cfxi_base_arena_alloc(p->arena, (to - from) * sizeof *out->items) : NULL;
    if (to > from && !out->items)
        return cfxi_syntax_fail_nomem(p);
    for (size_t i = from; i < to; i++) {
        cfxi_ast *item = p->stack[s->mark + 2 * i + which];
        if (item || all)
            out->items[out->count++] = item;
    }
    return true;
}

static cfxi_ast *arguments_node(parser *p, const signature *s)
{
    const size_t n = parameter_count(p, s);
    const size_t named = s->star ? s->before_star : n;
    cfxi_arguments *a = NEW_BARE(p, arguments);
    if (!a || !pick(p, s, 0, s->positional_only, 0, true, &a->posonlyargs) ||
        !pick(p, s, s->positional_only, named, 0, true, &a->args) ||
        !pick(p, s, named, n, 0, true, &a->kwonlyargs) ||
        !pick(p, s, named, n, 1, true, &a->kw_defaults) ||
        !(s->defaults ? pick(p, s, 0, named, 1, false, &a->defaults) : true))
        return NULL;
    p->n_stack = s->mark;
    a->vararg = s->vararg;
    a->kwarg = s->kwarg;
    return &a->ast;
}

cfxi_ast *cfxi_syntax_parameters(parser *p, cfxi_token_kind end)
{
    signature s = {.mark = p->n_stack};
    const bool annotated = end != CFXI_TOK_COLON;
    while (!next_is(p, end)) {
        const bool ok = next_is(p, CFXI_TOK_SLASH)         ? slash(p, &s)
                        : next_is(p, CFXI_TOK_STAR)        ? star(p, &s, end, annotated)
                        : next_is(p, CFXI_TOK_DOUBLE_STAR) ? double_star(p, &s, annotated)
                                                           : plain_parameter(p, &s, annotated);
        if (!ok)
            return NULL;
        if (!accept(p, CFXI_TOK_COMMA) && !next_is(p, end))
            return cfxi_syntax_fail_expected(p, end == CFXI_TOK_RPAR ? "')' or ','" : "':' or ','");
    }
    return arguments_node(p, &s);
}

/* ---- type parameters ----------------------------------------------------------------------- */

static bool type_default(parser *p, bool star, cfxi_ast **out)
{
    *out = NULL;
    if (!accept(p, CFXI_TOK_ASSIGN))
        return true;
    *out = star ? cfxi_syntax_star_expression(p) : cfxi_syntax_expression(p);
    return *out != NULL;
}

/* *Ts and **P: both have the fields of a ParamSpec. */
static cfxi_ast *starred_type(parser *p, cfxi_ast_kind kind)
{
    const place from = here(p);
    cfxi_ast *value;
    take(p);
    const char *name = cfxi_syntax_expect_name(p);
    if (!name || !type_default(p, kind == CFXI_AST_TypeVarTuple, &value))
        return NULL;
    cfxi_ParamSpec *node = cfxi_syntax_node(p, kind, sizeof *node, from);
    if (!node)
        return NULL;
    node->name = name;
    node->default_value = value;
    return &node->ast;
}

static cfxi_ast *type_variable(parser *p)
{
    const place from = here(p);
    cfxi_ast *bound = NULL;
    cfxi_ast *value;
    const char *name = cfxi_syntax_expect_name(p);
    if (!name || (accept(p, CFXI_TOK_COLON) && !(bound = cfxi_syntax_expression(p))) ||
        !type_default(p, false, &value))
        return NULL;
    cfxi_TypeVar *node = NEW(p, TypeVar, from);
    if (!node)
        return NULL;
    node->name = name;
    node->bound = bound;
    node->default_value = value;
    return &node->ast;
}

bool cfxi_syntax_type_parameters(parser *p, cfxi_ast_list *out)
{
    const size_t mark = p->n_stack;
    *out = (cfxi_ast_list){NULL, 0};
    if (!accept(p, CFXI_TOK_LSQB))
        return true;
    do {
        if (next_is(p, CFXI_TOK_RSQB) && p->n_stack > mark)
            break;
        cfxi_ast *node = next_is(p, CFXI_TOK_STAR) ? starred_type(p, CFXI_AST_TypeVarTuple)
                         : next_is(p, CFXI_TOK_DOUBLE_STAR) ? starred_type(p, CFXI_AST_ParamSpec)
                                                            : type_variable(p);
        if (!node || !push(p, node))
            return false;
    } while (accept(p, CFXI_TOK_COMMA));
    return cfxi_syntax_expect(p, CFXI_TOK_RSQB) && cfxi_syntax_pop_list(p, mark, out);
}
