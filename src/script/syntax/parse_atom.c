/* parse_atom.c - Python's atoms and displays, and what follows them: calls, subscripts. */
#include "parse_impl.h"

/* ---- comprehensions ------------------------------------------------------------------------ */

static cfxi_ast *comprehension(parser *p)
{
    const size_t mark = p->n_stack;
    const bool is_async = accept(p, CFXI_TOK_async);
    take(p);
    cfxi_ast *target = cfxi_syntax_for_targets(p);
    if (!target || !cfxi_syntax_expect(p, CFXI_TOK_in))
        return NULL;
    cfxi_ast *iter = cfxi_syntax_disjunction(p);
    if (!iter)
        return NULL;
    while (accept(p, CFXI_TOK_if)) {
        cfxi_ast *test = cfxi_syntax_disjunction(p);
        if (!test || !push(p, test))
            return NULL;
    }
    cfxi_comprehension *node = NEW_BARE(p, comprehension);
    if (!node || !cfxi_syntax_pop_list(p, mark, &node->ifs))
        return NULL;
    node->target = target;
    node->iter = iter;
    node->is_async = is_async;
    return &node->ast;
}

bool cfxi_syntax_comprehensions(parser *p, cfxi_ast_list *out)
{
    const size_t mark = p->n_stack;
    while (at_comprehension(p)) {
        cfxi_ast *node = comprehension(p);
        if (!node || !push(p, node))
            return false;
    }
    return cfxi_syntax_pop_list(p, mark, out);
}

/* [elt for ...], {elt for ...}, (elt for ...): all have the fields of a ListComp. */
static cfxi_ast *comprehension_of(parser *p, cfxi_ast_kind kind, cfxi_ast *elt, place from,
                                  cfxi_token_kind closer)
{
    cfxi_ast_list generators;
    if (elt->kind == CFXI_AST_Starred)
        return cfxi_syntax_fail_node(p, elt, "iterable unpacking cannot be used in comprehension");
    if (!cfxi_syntax_comprehensions(p, &generators) || !cfxi_syntax_expect(p, closer))
        return NULL;
    cfxi_ListComp *node = cfxi_syntax_node(p, kind, sizeof *node, from);
    if (!node)
        return NULL;
    node->elt = elt;
    node->generators = generators;
    return &node->ast;
}

static cfxi_ast *generator(parser *p, cfxi_ast *elt, place from)
{
    return comprehension_of(p, CFXI_AST_GeneratorExp, elt, from, CFXI_TOK_RPAR);
}

/* ---- displays ------------------------------------------------------------------------------ */

/* Items up to the closing bracket, which is taken; the first of them is pushed already. */
static bool rest_of_items(parser *p, cfxi_token_kind closer)
{
    char text[CFXI_TOKEN_TEXT];
    while (accept(p, CFXI_TOK_COMMA)) {
        if (next_is(p, closer))
            break;
        cfxi_ast *item = cfxi_syntax_star_named(p);
        if (!item || !push(p, item))
            return false;
    }
    if (accept(p, closer))
        return true;
    cfxi_syntax_token_text(closer, text);
    memcpy(text + strlen(text), " or ','", sizeof " or ','");
    return cfxi_syntax_fail_expected(p, text);
}

static cfxi_ast *list_node(parser *p, cfxi_ast_kind kind, size_t mark, place from)
{
    if (kind == CFXI_AST_Set) {
        cfxi_Set *set = NEW(p, Set, from);
        return set && cfxi_syntax_pop_list(p, mark, &set->elts) ? &set->ast : NULL;
    }
    cfxi_List *node =
        cfxi_syntax_node(p, kind, sizeof *node, from); /* a Tuple has the same fields */
    if (!node || !cfxi_syntax_pop_list(p, mark, &node->elts))
        return NULL;
    node->ctx = CFXI_AST_Load;
    return &node->ast;
}

static cfxi_ast *items_display(parser *p, cfxi_ast_kind kind, cfxi_ast *first, place from,
                               cfxi_token_kind closer)
{
    const size_t mark = p->n_stack;
    if (!push(p, first) || !rest_of_items(p, closer))
        return NULL;
    return list_node(p, kind, mark, from);
}

static cfxi_ast *group(parser *p, place from)
{
    if (accept(p, CFXI_TOK_RPAR))
        return list_node(p, CFXI_AST_Tuple, p->n_stack, from);
    if (next_is(p, CFXI_TOK_yield)) {
        cfxi_ast *node = cfxi_syntax_yield_expression(p);
        return node && cfxi_syntax_expect(p, CFXI_TOK_RPAR) ? node : NULL;
    }
    cfxi_ast *first = cfxi_syntax_star_named(p);
    if (!first)
        return NULL;
    if (at_comprehension(p))
        return generator(p, first, from);
    if (next_is(p, CFXI_TOK_COMMA))
        return items_display(p, CFXI_AST_Tuple, first, from, CFXI_TOK_RPAR);
    if (!next_is(p, CFXI_TOK_RPAR))
        return cfxi_syntax_fail_expected(p, "')' or ','");
    if (first->kind == CFXI_AST_Starred)
        return cfxi_syntax_fail_node(p, first,
                                     "cannot use starred expression here; add a ',' for a tuple");
    take(p);
    return first;
}

static cfxi_ast *list_display(parser *p, place from)
{
    if (accept(p, CFXI_TOK_RSQB))
        return list_node(p, CFXI_AST_List, p->n_stack, from);
    cfxi_ast *first = cfxi_syntax_star_named(p);
    if (!first)
        return NULL;
    if (at_comprehension(p))
        return comprehension_of(p, CFXI_AST_ListComp, first, from, CFXI_TOK_RSQB);
    return items_display(p, CFXI_AST_List, first, from, CFXI_TOK_RSQB);
}

/* Pushes a key and its value; for **x the key is NULL. */
static bool dict_item(parser *p)
{
    cfxi_ast *key = NULL;
    cfxi_ast *value;
    if (accept(p, CFXI_TOK_DOUBLE_STAR)) {
        value = cfxi_syntax_bitwise_or(p);
    } else {
        key = cfxi_syntax_expression(p);
        if (!key)
            return false;
        if (!next_is(p, CFXI_TOK_COLON))
            return cfxi_syntax_fail_expected(p, "':' after dictionary key");
        take(p);
        value = cfxi_syntax_expression(p);
    }
    return value && push(p, key) && push(p, value);
}

static cfxi_ast *dict_node(parser *p, size_t mark, place from)
{
    cfxi_Dict *node = NEW(p, Dict, from);
    return node && cfxi_syntax_pop_pairs(p, mark, &node->keys, &node->values) ? &node->ast : NULL;
}

static cfxi_ast *dict_comprehension(parser *p, size_t mark, place from)
{
    cfxi_ast *key = p->stack[mark];
    cfxi_ast *value = p->stack[mark + 1];
    cfxi_ast_list generators;
    p->n_stack = mark;
    if (!key)
        return cfxi_syntax_fail_node(p, value,
                                     "dict unpacking cannot be used in dict comprehension");
    if (!cfxi_syntax_comprehensions(p, &generators) || !cfxi_syntax_expect(p, CFXI_TOK_RBRACE))
        return NULL;
    cfxi_DictComp *node = NEW(p, DictComp, from);
    if (!node)
        return NULL;
    node->key = key;
    node->value = value;
    node->generators = generators;
    return &node->ast;
}

/* From the ':' behind the first key on, or from the first '**'. */
static cfxi_ast *dict_display(parser *p, cfxi_ast *key, place from)
{
    const size_t mark = p->n_stack;
    if (key) {
        take(p);
        cfxi_ast *value = cfxi_syntax_expression(p);
        if (!value || !push(p, key) || !push(p, value))
            return NULL;
    } else if (!dict_item(p)) {
        return NULL;
    }
    if (at_comprehension(p))
        return dict_comprehension(p, mark, from);
    while (accept(p, CFXI_TOK_COMMA)) {
        if (next_is(p, CFXI_TOK_RBRACE))
            break;
        if (!dict_item(p))
            return NULL;
    }
    if (!next_is(p, CFXI_TOK_RBRACE))
        return cfxi_syntax_fail_expected(p, "'}' or ','");
    take(p);
    return dict_node(p, mark, from);
}

static cfxi_ast *brace_display(parser *p, place from)
{
    if (accept(p, CFXI_TOK_RBRACE))
        return dict_node(p, p->n_stack, from);
    if (next_is(p, CFXI_TOK_DOUBLE_STAR))
        return dict_display(p, NULL, from);
    const bool no_key = next_is(p, CFXI_TOK_STAR) || at_walrus(p);
    cfxi_ast *first = cfxi_syntax_star_named(p);
    if (!first)
        return NULL;
    if (next_is(p, CFXI_TOK_COLON) && !no_key)
        return dict_display(p, first, from);
    if (at_comprehension(p))
        return comprehension_of(p, CFXI_AST_SetComp, first, from, CFXI_TOK_RBRACE);
    return items_display(p, CFXI_AST_Set, first, from, CFXI_TOK_RBRACE);
}

/* ---- atoms --------------------------------------------------------------------------------- */

static cfxi_ast *bracketed(parser *p, cfxi_ast *(*inside)(parser *, place))
{
    const place from = here(p);
    take(p);
    if (!enter(p))
        return NULL;
    cfxi_ast *node = inside(p, from);
    leave(p);
    return node;
}

cfxi_ast *cfxi_syntax_constant(parser *p, cfxi_constant_kind kind)
{
    const place from = here(p);
    take(p);
    cfxi_Constant *node = NEW(p, Constant, from);
    if (!node)
        return NULL;
    node->value.kind = kind;
    return &node->ast;
}

static cfxi_ast *name(parser *p)
{
    const place from = here(p);
    const cfxi_token *t = take(p);
    cfxi_Name *node = NEW(p, Name, from);
    if (!node)
        return NULL;
    node->id = name_of(p, t);
    node->ctx = CFXI_AST_Load;
    return &node->ast;
}

static cfxi_ast *atom(parser *p)
{
    switch (peek(p)) {
    case CFXI_TOK_NAME:
        return name(p);
    case CFXI_TOK_NUMBER:
        return cfxi_syntax_number(p);
    case CFXI_TOK_STRING:
    case CFXI_TOK_FSTART:
        return cfxi_syntax_strings(p);
    case CFXI_TOK_LPAR:
        return bracketed(p, group);
    case CFXI_TOK_LSQB:
        return bracketed(p, list_display);
    case CFXI_TOK_LBRACE:
        return bracketed(p, brace_display);
    case CFXI_TOK_None:
        return cfxi_syntax_constant(p, CFXI_CONST_NONE);
    case CFXI_TOK_True:
        return cfxi_syntax_constant(p, CFXI_CONST_TRUE);
    case CFXI_TOK_False:
        return cfxi_syntax_constant(p, CFXI_CONST_FALSE);
    case CFXI_TOK_ELLIPSIS:
        return cfxi_syntax_constant(p, CFXI_CONST_ELLIPSIS);
    default:
        return cfxi_syntax_fail_expected(p, "an expression");
    }
}

/* ---- what is put behind atoms -------------------------------------------------------------- */

static cfxi_ast *slice(parser *p)
{
    const place from = here(p);
    cfxi_ast *parts[3] = {NULL, NULL, NULL};
    if (next_is(p, CFXI_TOK_STAR))
        return cfxi_syntax_star_expression(p);
    if (!next_is(p, CFXI_TOK_COLON)) {
        const bool no_bound = at_walrus(p);
        parts[0] = cfxi_syntax_named_expression(p);
        if (!parts[0] || !next_is(p, CFXI_TOK_COLON) || no_bound)
            return parts[0];
    }
    for (int i = 1; i < 3 && accept(p, CFXI_TOK_COLON); i++) {
        if (!cfxi_syntax_starts_expression(peek(p)) || next_is(p, CFXI_TOK_STAR))
            continue;
        parts[i] = cfxi_syntax_expression(p);
        if (!parts[i])
            return NULL;
    }
    cfxi_Slice *node = NEW(p, Slice, from);
    if (!node)
        return NULL;
    node->lower = parts[0];
    node->upper = parts[1];
    node->step = parts[2];
    return &node->ast;
}

static cfxi_ast *slices(parser *p)
{
    const place from = here(p);
    const size_t mark = p->n_stack;
    cfxi_ast *first = slice(p);
    if (!first || (!next_is(p, CFXI_TOK_COMMA) && first->kind != CFXI_AST_Starred))
        return first;
    if (!push(p, first))
        return NULL;
    while (accept(p, CFXI_TOK_COMMA) && !next_is(p, CFXI_TOK_RSQB)) {
        cfxi_ast *next = slice(p);
        if (!next || !push(p, next))
            return NULL;
    }
    return list_node(p, CFXI_AST_Tuple, mark, from);
}

static cfxi_ast *subscript(parser *p, cfxi_ast *value, place from)
{
    take(p);
    if (!enter(p))
        return NULL;
    cfxi_ast *index = slices(p);
    if (!index)
        return NULL;
    if (!next_is(p, CFXI_TOK_RSQB))
        return cfxi_syntax_fail_expected(p, "']' or ','");
    take(p);
    cfxi_Subscript *node = NEW(p, Subscript, from);
    if (!node)
        return NULL;
    leave(p);
    node->value = value;
    node->slice = index;
    node->ctx = CFXI_AST_Load;
    return &node->ast;
}

static cfxi_ast *attribute(parser *p, cfxi_ast *value, place from)
{
    take(p);
    const char *attr = cfxi_syntax_expect_name(p);
    cfxi_Attribute *node = attr ? NEW(p, Attribute, from) : NULL;
    if (!node)
        return NULL;
    node->value = value;
    node->attr = attr;
    node->ctx = CFXI_AST_Load;
    return &node->ast;
}

static cfxi_ast *call(parser *p, cfxi_ast *func, place from)
{
    const place open = here(p);
    cfxi_ast_list args;
    cfxi_ast_list keywords;
    take(p);
    if (!enter(p) || !cfxi_syntax_call_arguments(p, true, open, &args, &keywords))
        return NULL;
    leave(p);
    cfxi_Call *node = NEW(p, Call, from);
    if (!node)
        return NULL;
    node->func = func;
    node->args = args;
    node->keywords = keywords;
    return &node->ast;
}

/* A chain like a.b(c)[d] grows without recursion, so its height is counted. */
cfxi_ast *cfxi_syntax_primary(parser *p)
{
    const place from = here(p);
    const unsigned before = p->height;
    p->height = 0;
    cfxi_ast *node = atom(p);
    unsigned height = p->height;
    while (node) {
        p->height = 0;
        if (next_is(p, CFXI_TOK_DOT))
            node = attribute(p, node, from);
        else if (next_is(p, CFXI_TOK_LPAR))
            node = call(p, node, from);
        else if (next_is(p, CFXI_TOK_LSQB))
            node = subscript(p, node, from);
        else
            break;
        height = (height > p->height ? height : p->height) + 1;
        if (node && height > CFXI_SCRIPT_HEIGHT)
            return cfxi_syntax_fail_deep(p);
    }
    p->height = height > before ? height : before;
    return node;
}
