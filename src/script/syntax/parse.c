/* parse.c - the parser's ground: tokens, nodes, lists, messages, and the whole of a source. */
#include "parse_impl.h"

#include "ir/text_lex_impl.h"

#include <stdio.h>

/* ---- failing ------------------------------------------------------------------------------- */

void *cfxi_syntax_fail_offset(parser *p, size_t offset, cfx_status status, const char *what)
{
    cfxi_lexer lex = {.text = p->script->text, .size = p->script->size, .err = p->err};
    if (offset == lex.size && offset > 0)
        offset--; /* what the file lacks is shown at the end of its last line */
    cfxi_ir_lex_error(&lex, offset, status, "%s", what);
    return NULL;
}

void *cfxi_syntax_fail_at(parser *p, const cfxi_token *at, const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return cfxi_syntax_fail_offset(p, at->start, CFX_E_SYNTAX, what);
}

/* Found by counting lines: this is for messages. */
size_t cfxi_syntax_script_offset(const cfxi_script *script, uint32_t line, uint32_t column)
{
    const char *at = script->text;
    const char *end = at + script->size;
    for (uint32_t i = 1; i < line && at < end; i++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        at = newline ? newline + 1 : end;
    }
    for (; column > 0 && at < end && *at != '\n'; column--)
        at++;
    return (size_t)(at - script->text);
}

void *cfxi_syntax_fail_node(parser *p, const cfxi_ast *node, const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const size_t offset = cfxi_syntax_script_offset(p->script, node->line, node->column);
    return cfxi_syntax_fail_offset(p, offset, CFX_E_SYNTAX, what);
}

void *cfxi_syntax_fail_expected(parser *p, const char *expected)
{
    char found[CFXI_TOKEN_TEXT];
    const cfxi_token_kind kind = peek(p);
    if (kind == CFXI_TOK_ERROR || p->lex.unclosed) {
        *p->err = p->lex.error;
        return NULL;
    }
    if (kind == CFXI_TOK_INDENT)
        return cfxi_syntax_fail_at(p, p->tok, "unexpected indent");
    if (kind == CFXI_TOK_DEDENT && !expected)
        return cfxi_syntax_fail_at(p, p->tok, "unexpected unindent");
    if (kind == CFXI_TOK_NAME || kind == CFXI_TOK_NUMBER)
        snprintf(found, sizeof found, "'%.*s'", p->tok->size < 24 ? (int)p->tok->size : 24,
                 text_of(p, p->tok));
    else
        cfxi_syntax_token_text(kind, found);
    if (expected)
        return cfxi_syntax_fail_at(p, p->tok, "expected %s, found %s", expected, found);
    return cfxi_syntax_fail_at(p, p->tok, "invalid syntax: unexpected %s", found);
}

void *cfxi_syntax_fail_nomem(parser *p)
{
    cfxi_base_nomem(p->err);
    return NULL;
}

void *cfxi_syntax_fail_deep(parser *p)
{
    return cfxi_syntax_fail_offset(p, p->tok->start, CFX_E_LIMIT,
                       "this is nested too deeply; split the expression or the statement");
}

/* ---- tokens -------------------------------------------------------------------------------- */

bool cfxi_syntax_expect(parser *p, cfxi_token_kind kind)
{
    char text[CFXI_TOKEN_TEXT];
    if (accept(p, kind))
        return true;
    return cfxi_syntax_fail_expected(p, cfxi_syntax_token_text(kind, text));
}

const char *cfxi_syntax_expect_name(parser *p)
{
    if (!next_is(p, CFXI_TOK_NAME))
        return cfxi_syntax_fail_expected(p, "a name");
    return name_of(p, take(p));
}

static bool refill(parser *p)
{
    if (!cfxi_syntax_lex_line(&p->lex))
        return cfxi_syntax_fail_nomem(p);
    p->tok = p->lex.tokens;
    return true;
}

bool cfxi_syntax_end_line(parser *p)
{
    if (!next_is(p, CFXI_TOK_NEWLINE))
        return cfxi_syntax_fail_expected(p, NULL);
    p->saved = *p->last;
    p->last = &p->saved;
    return refill(p);
}

/* ---- nodes --------------------------------------------------------------------------------- */

static void end_of_lines(const parser *p, const cfxi_token *t, uint32_t *line, uint32_t *column)
{
    const char *end = text_of(p, t) + t->size;
    const char *start = end;
    while (start > p->script->text && start[-1] != '\n')
        start--;
    *line = t->value;
    *column = (uint32_t)(end - start);
}

void cfxi_syntax_end_of(const parser *p, const cfxi_token *t, uint32_t *line, uint32_t *column)
{
    const bool spans = t->kind == CFXI_TOK_STRING || t->kind == CFXI_TOK_FTEXT;
    if (spans && t->value != t->line) {
        end_of_lines(p, t, line, column);
        return;
    }
    *line = t->line;
    *column = t->column + t->size;
}

void *cfxi_syntax_bare(parser *p, cfxi_ast_kind kind, size_t size)
{
    cfxi_ast *node = cfxi_base_arena_alloc(p->arena, size);
    if (!node)
        return cfxi_syntax_fail_nomem(p);
    memset(node, 0, size);
    node->kind = kind;
    p->script->node_count++;
    return node;
}

void *cfxi_syntax_node(parser *p, cfxi_ast_kind kind, size_t size, place from)
{
    cfxi_ast *node = cfxi_syntax_bare(p, kind, size);
    if (!node)
        return NULL;
    node->line = from.line;
    node->column = from.column;
    cfxi_syntax_end_of(p, p->last, &node->end_line, &node->end_column);
    return node;
}

bool cfxi_syntax_grow_stack(parser *p)
{
    cfxi_vec vec = {p->stack, p->n_stack, p->stack_capacity};
    if (!cfxi_base_vec_reserve(&vec, 1, sizeof *p->stack, p->script->allocator))
        return cfxi_syntax_fail_nomem(p);
    p->stack = vec.data;
    p->stack_capacity = vec.capacity;
    return true;
}

bool cfxi_syntax_pop_list(parser *p, size_t mark, cfxi_ast_list *list)
{
    const size_t n = p->n_stack - mark;
    p->n_stack = mark;
    list->count = n;
    list->items = NULL;
    if (n == 0)
        return true;
    list->items = cfxi_base_arena_alloc(p->arena, n * sizeof *list->items);
    if (!list->items)
        return cfxi_syntax_fail_nomem(p);
    memcpy(list->items, p->stack + mark, n * sizeof *list->items);
    return true;
}

bool cfxi_syntax_pop_pairs(parser *p, size_t mark, cfxi_ast_list *firsts, cfxi_ast_list *seconds)
{
    const size_t n = (p->n_stack - mark) / 2;
    cfxi_ast **items = n ? cfxi_base_arena_alloc(p->arena, 2 * n * sizeof *items) : NULL;
    if (n && !items)
        return cfxi_syntax_fail_nomem(p);
    for (size_t i = 0; i < n; i++) {
        items[i] = p->stack[mark + 2 * i];
        items[n + i] = p->stack[mark + 2 * i + 1];
    }
    p->n_stack = mark;
    *firsts = (cfxi_ast_list){items, n};
    *seconds = (cfxi_ast_list){n ? items + n : NULL, n};
    return true;
}

bool cfxi_syntax_pop_names(parser *p, size_t mark, cfxi_name_list *list)
{
    const size_t n = p->n_stack - mark;
    p->n_stack = mark;
    list->count = n;
    list->items = n ? cfxi_base_arena_alloc(p->arena, n * sizeof *list->items) : NULL;
    if (n && !list->items)
        return cfxi_syntax_fail_nomem(p);
    for (size_t i = 0; i < n; i++)
        list->items[i] = (const char *)p->stack[mark + i];
    return true;
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* The statements of a line: simple ones with ';' between them. */
static bool simple_line(parser *p)
{
    do {
        cfxi_ast *node = cfxi_syntax_simple_statement(p);
        if (!node || !push(p, node))
            return false;
    } while (accept(p, CFXI_TOK_SEMI) && !next_is(p, CFXI_TOK_NEWLINE));
    return cfxi_syntax_end_line(p);
}

bool cfxi_syntax_statement(parser *p)
{
    p->height = 0;
    if (next_is(p, CFXI_TOK_INDENT))
        return cfxi_syntax_fail_expected(p, NULL);
    if (!cfxi_syntax_is_compound(p))
        return simple_line(p);
    cfxi_ast *node = cfxi_syntax_compound_statement(p);
    return node && push(p, node);
}

static bool module(parser *p)
{
    if (!refill(p))
        return false;
    while (!next_is(p, CFXI_TOK_END)) {
        if (!cfxi_syntax_statement(p))
            return false;
    }
    cfxi_Module *m = NEW_BARE(p, Module);
    p->script->module = m;
    return m && cfxi_syntax_pop_list(p, 0, &m->body);
}

static void parser_free(parser *p)
{
    const cfx_allocator *allocator = p->script->allocator;
    cfxi_vec vec = {p->stack, p->n_stack, p->stack_capacity};
    cfxi_syntax_lex_free(&p->lex);
    cfxi_base_vec_free(&vec, sizeof *p->stack, allocator);
    cfx_buffer_free(&p->text);
    cfxi_base_free(allocator, p, sizeof *p);
}

static bool parse_script(cfxi_script *script, cfx_error *err)
{
    parser *p = cfxi_base_alloc(script->allocator, sizeof *p);
    if (!p) {
        cfxi_base_nomem(err);
        return false;
    }
    cfxi_syntax_lex_init(&p->lex, script->text, script->size, &script->names, script->allocator);
    p->script = script;
    p->arena = &script->arena;
    p->saved = (cfxi_token){.line = 1};
    p->last = &p->saved;
    p->err = err;
    p->stack = NULL;
    p->n_stack = p->stack_capacity = 0;
    p->depth = p->height = 0;
    cfx_buffer_init(&p->text, script->allocator);
    const bool ok = module(p);
    parser_free(p);
    return ok;
}

cfxi_script *cfxi_syntax_script_parse(const char *source, size_t size, bool is_text,
                                      const cfx_allocator *allocator, cfx_error *err)
{
    cfx_error own;
    allocator = cfxi_base_allocator(allocator);
    err = cfxi_base_error_or(err, &own);
    cfxi_script *script = cfxi_base_alloc(allocator, sizeof *script);
    if (!script) {
        cfxi_base_nomem(err);
        return NULL;
    }
    script->allocator = allocator;
    script->module = NULL;
    script->node_count = 0;
    cfxi_base_arena_init(&script->arena, allocator);
    bool ok = cfxi_syntax_names_init(&script->names, &script->arena);
    if (!ok)
        cfxi_base_nomem(err);
    ok = ok && cfxi_syntax_source_copy(&script->arena, source, size, is_text, &script->text,
                                       &script->size, err) == CFX_OK;
    if (ok && parse_script(script, err))
        return script;
    cfxi_syntax_script_free(script);
    return NULL;
}

void cfxi_syntax_script_free(cfxi_script *script)
{
    if (!script)
        return;
    cfxi_syntax_names_free(&script->names);
    cfxi_base_arena_release(&script->arena);
    cfxi_base_free(script->allocator, script, sizeof *script);
}
