/* parse_string.c - Python's strings: those that stand side by side are one, f-strings among them.
 *
 * Pieces of text are gathered at the end of p->text, from `start` on; a field of an f-string can
 * hold strings of its own, which are gathered behind them and gone when the field ends.
 */
#include "parse_impl.h"

typedef struct gathered {
    size_t start;     /* in p->text */
    size_t mark;      /* of p->stack: the values of a JoinedStr */
    bool any;         /* a piece of text is open, even if it is empty */
    bool unicode;     /* its first piece was u"..." */
    place from;       /* where it begins */
    uint32_t end_line, end_column;
} gathered;

/* The text inside the quotes. */
static const char *inside(const parser *p, const cfxi_token *t, size_t *size)
{
    const size_t quotes = t->flags & CFXI_STR_TRIPLE ? 3 : 1;
    *size = t->size - t->prefix - 2 * quotes;
    return text_of(p, t) + t->prefix + quotes;
}

static const char *copy_text(parser *p, size_t start, size_t *size)
{
    *size = p->text.size - start;
    char *copy = cfxi_base_arena_alloc(p->arena, *size ? *size : 1);
    if (!copy)
        return cfxi_syntax_fail_nomem(p);
    memcpy(copy, p->text.data + start, *size);
    p->text.size = start;
    return copy;
}

static cfxi_ast *text_constant(parser *p, place from, bool bytes, bool unicode, const char *text,
                               size_t size)
{
    cfxi_Constant *node = text ? NEW(p, Constant, from) : NULL;
    if (!node)
        return NULL;
    node->value.kind = bytes ? CFXI_CONST_BYTES : CFXI_CONST_STR;
    node->value.text = text;
    node->value.size = size;
    node->kind = unicode ? "u" : NULL;
    return &node->ast;
}

/* ---- gathering ----------------------------------------------------------------------------- */

static void note_piece(gathered *g, place from, bool unicode)
{
    if (g->any)
        return;
    g->any = true;
    g->unicode = unicode;
    g->from = from;
}

static bool add_piece(parser *p, gathered *g, const cfxi_token *t, const char *text, size_t size)
{
    note_piece(g, (place){t->line, t->column}, (t->flags & CFXI_STR_UNICODE) != 0);
    cfxi_syntax_end_of(p, t, &g->end_line, &g->end_column);
    return cfxi_syntax_decode_text(p, t, text, size, t->flags);
}

/* Ends the open piece of text: pushes it, unless it is empty. */
static bool flush(parser *p, gathered *g)
{
    size_t size;
    if (!g->any || p->text.size == g->start) {
        g->any = false;
        return true;
    }
    const char *text = copy_text(p, g->start, &size);
    cfxi_ast *node = text_constant(p, g->from, false, g->unicode, text, size);
    if (!node)
        return false;
    node->end_line = g->end_line;
    node->end_column = g->end_column;
    g->any = false;
    return push(p, node);
}

/* ---- f-strings ----------------------------------------------------------------------------- */

static bool pieces(parser *p, gathered *g, cfxi_token_kind end);

/* Behind ':', up to the field's '}'. */
static cfxi_ast *format_spec(parser *p)
{
    const place from = here(p);
    take(p);
    gathered g = {.start = p->text.size, .mark = p->n_stack};
    if (!enter(p) || !pieces(p, &g, CFXI_TOK_RBRACE))
        return NULL;
    leave(p);
    cfxi_JoinedStr *node = NEW(p, JoinedStr, from);
    return node && cfxi_syntax_pop_list(p, g.mark, &node->values) ? &node->ast : NULL;
}

/* Behind '!': 's', 'r' or 'a'. */
static bool conversion(parser *p, int *out)
{
    const cfxi_token *bang = take(p);
    const cfxi_token *t = p->tok;
    if (t->kind != CFXI_TOK_NAME || t->start != bang->start + 1)
        return cfxi_syntax_fail_at(p, bang,
                                   "f-string: '!' must be followed directly by 's', 'r' or 'a'");
    *out = *text_of(p, t);
    if (t->size != 1 || (*out != 's' && *out != 'r' && *out != 'a'))
        return cfxi_syntax_fail_at(p, t,
                                   "f-string: invalid conversion '%.*s': expected 's', 'r', or 'a'",
                       (int)(t->size < 20 ? t->size : 20), text_of(p, t));
    take(p);
    return true;
}

/* What stands between two tokens, without comments. */
static bool add_gap(parser *p, uint32_t from, uint32_t to)
{
    const char *text = p->script->text;
    while (from < to) {
        const char *comment = memchr(text + from, '#', to - from);
        const uint32_t stop = comment ? (uint32_t)(comment - text) : to;
        if (cfx_buffer_append(&p->text, text + from, stop - from) != CFX_OK)
            return cfxi_syntax_fail_nomem(p);
        for (from = stop; from < to && text[from] != '\n'; from++)
            continue;
    }
    return true;
}

/* "{x = }": the text between the brace and what follows the '=' is shown before the value. */
static bool debug_text(parser *p, gathered *g, const cfxi_token *brace)
{
    note_piece(g, (place){brace->line, brace->column + 1}, false);
    g->end_line = p->tok->line;
    g->end_column = p->tok->column;
    for (const cfxi_token *t = brace; t < p->tok; t++) {
        const bool inner = t > brace;
        if ((inner && cfx_buffer_append(&p->text, text_of(p, t), t->size) != CFX_OK) ||
            !add_gap(p, t->start + t->size, t[1].start))
            return cfxi_syntax_fail_nomem(p);
    }
    return true;
}

static cfxi_ast *field_value(parser *p)
{
    if (next_is(p, CFXI_TOK_RBRACE) || next_is(p, CFXI_TOK_BANG) || next_is(p, CFXI_TOK_COLON) ||
        next_is(p, CFXI_TOK_ASSIGN))
        return cfxi_syntax_fail_at(p, p->tok, "f-string: an expression is needed before '%c'",
                       *text_of(p, p->tok));
    return cfxi_syntax_yield_or_star(p);
}

/* Pushes the value of a field, at its '{'. */
static bool field(parser *p, gathered *g)
{
    const place from = here(p);
    const cfxi_token *brace = take(p);
    int converted = -1;
    cfxi_ast *spec = NULL;
    if (!enter(p))
        return false;
    cfxi_ast *value = field_value(p);
    if (!value)
        return false;
    const bool debug = accept(p, CFXI_TOK_ASSIGN);
    if (debug && !debug_text(p, g, brace))
        return false;
    if (next_is(p, CFXI_TOK_BANG) && !conversion(p, &converted))
        return false;
    if (debug && converted < 0 && !next_is(p, CFXI_TOK_COLON))
        converted = 'r';
    if (!flush(p, g) || (next_is(p, CFXI_TOK_COLON) && !(spec = format_spec(p))))
        return false;
    if (!next_is(p, CFXI_TOK_RBRACE))
        return cfxi_syntax_fail_expected(p, "'}' at the end of the f-string's field");
    take(p);
    leave(p);
    cfxi_FormattedValue *node = NEW(p, FormattedValue, from);
    if (!node)
        return false;
    node->value = value;
    node->conversion = converted;
    node->format_spec = spec;
    return push(p, node);
}

/* Text and fields up to `end`, which is not taken. A format's text is flushed. */
static bool pieces(parser *p, gathered *g, cfxi_token_kind end)
{
    while (!next_is(p, end)) {
        if (next_is(p, CFXI_TOK_FTEXT)) {
            const cfxi_token *t = take(p);
            if (!add_piece(p, g, t, text_of(p, t), t->size))
                return false;
        } else if (next_is(p, CFXI_TOK_LBRACE)) {
            if (!field(p, g))
                return false;
        } else {
            return cfxi_syntax_fail_expected(p, NULL);
        }
    }
    return end == CFXI_TOK_FEND || flush(p, g);
}

/* ---- strings side by side ------------------------------------------------------------------ */

static cfxi_ast *plain_string(parser *p, place from)
{
    const cfxi_token *t = take(p);
    const bool bytes = (t->flags & CFXI_STR_BYTES) != 0;
    const size_t start = p->text.size;
    size_t size;
    const char *text = inside(p, t, &size);
    if ((t->flags & CFXI_STR_ESCAPES && !(t->flags & CFXI_STR_RAW)) ||
        (bytes && t->flags & CFXI_STR_WIDE)) {
        if (!cfxi_syntax_decode_text(p, t, text, size, t->flags))
            return NULL;
        text = copy_text(p, start, &size);
    }
    return text_constant(p, from, bytes, (t->flags & CFXI_STR_UNICODE) != 0, text, size);
}

static bool at_string(const parser *p)
{
    return next_is(p, CFXI_TOK_STRING) || next_is(p, CFXI_TOK_FSTART);
}

/* One string of several. */
static bool one_string(parser *p, gathered *g)
{
    size_t size;
    const cfxi_token *t = take(p);
    if (t->kind == CFXI_TOK_STRING) {
        const char *text = inside(p, t, &size);
        return add_piece(p, g, t, text, size);
    }
    return pieces(p, g, CFXI_TOK_FEND) && (take(p), true);
}

static cfxi_ast *joined(parser *p, gathered *g, place from)
{
    if (!flush(p, g))
        return NULL;
    cfxi_JoinedStr *node = NEW(p, JoinedStr, from);
    return node && cfxi_syntax_pop_list(p, g->mark, &node->values) ? &node->ast : NULL;
}

static cfxi_ast *several_strings(parser *p, place from)
{
    const bool bytes = (p->tok->flags & CFXI_STR_BYTES) != 0;
    const bool unicode = (p->tok->flags & CFXI_STR_UNICODE) != 0;
    gathered g = {.start = p->text.size, .mark = p->n_stack};
    bool format = false;
    size_t size;
    for (; at_string(p); format = format || p->last->kind == CFXI_TOK_FEND) {
        if (((p->tok->flags & CFXI_STR_BYTES) != 0) != bytes)
            return cfxi_syntax_fail_at(p, p->tok, "cannot mix bytes and nonbytes literals");
        if (!one_string(p, &g))
            return NULL;
    }
    if (format)
        return joined(p, &g, from);
    const char *text = copy_text(p, g.start, &size);
    return text_constant(p, from, bytes, unicode, text, size);
}

cfxi_ast *cfxi_syntax_strings(parser *p)
{
    const place from = here(p);
    const cfxi_token_kind next = next_is(p, CFXI_TOK_STRING) ? peek_second(p) : CFXI_TOK_FSTART;
    if (next != CFXI_TOK_STRING && next != CFXI_TOK_FSTART)
        return plain_string(p, from);
    if (!enter(p))
        return NULL;
    cfxi_ast *node = several_strings(p, from);
    leave(p);
    return node;
}
