/* parse_impl.h - what the files of the parser share.
 *
 * A function that parses returns what it made, or NULL (false) once it has failed; then p->err says
 * why, and everybody returns. Nothing is freed on the way: all nodes lie in the script's arena.
 */
#ifndef CFXI_SCRIPT_PARSE_IMPL_H
#define CFXI_SCRIPT_PARSE_IMPL_H

#include "parse.h"

/* Where a node begins. */
typedef struct place {
    uint32_t line, column;
} place;

typedef struct parser {
    cfxi_pylex lex;
    cfxi_script *script;
    cfxi_arena *arena;
    const cfxi_token *tok;   /* the next token */
    const cfxi_token *last;  /* the last one taken that was no NEWLINE, INDENT or DEDENT */
    cfxi_token saved;        /* where `last` points to after the end of a line */
    cfx_error *err;
    cfxi_ast **stack;        /* items of lists that are being read */
    size_t n_stack;
    size_t stack_capacity;
    cfx_buffer text;         /* decoded strings, stacked likewise */
    unsigned depth;          /* of recursion */
    unsigned height;         /* of what was parsed since somebody set it to 0: see cfxi_chain */
} parser;

/* ---- failing (parse.c) --------------------------------------------------------------------- */

/* Fails at an offset of the source. Returns NULL, as all of these do. */
void *cfxi_syntax_fail_offset(parser *p, size_t offset, cfx_status status, const char *what);
/* Fails at a token; the message is `format`. */
void *cfxi_syntax_fail_at(parser *p, const cfxi_token *at, const char *format, ...)
    CFX_PRINTF(3, 4);
/* Fails at the beginning of a node. */
void *cfxi_syntax_fail_node(parser *p, const cfxi_ast *node, const char *format, ...)
    CFX_PRINTF(3, 4);
/* Fails at the next token, unless the lexer found an error or a bracket was left open: then that is
 * the reason. `expected` may be NULL. */
void *cfxi_syntax_fail_expected(parser *p, const char *expected);
void *cfxi_syntax_fail_nomem(parser *p);
void *cfxi_syntax_fail_deep(parser *p);

/* ---- tokens -------------------------------------------------------------------------------- */

static inline cfxi_token_kind peek(const parser *p) { return (cfxi_token_kind)p->tok->kind; }
static inline bool next_is(const parser *p, cfxi_token_kind kind) { return p->tok->kind == kind; }
/* What comes after the next token, which must not be NEWLINE, END or ERROR. */
static inline cfxi_token_kind peek_second(const parser *p)
{
    return (cfxi_token_kind)p->tok[1].kind;
}
static inline place here(const parser *p) { return (place){p->tok->line, p->tok->column}; }
static inline place start_of(const cfxi_ast *n) { return (place){n->line, n->column}; }

/* Takes the next token, which must not be NEWLINE, END or ERROR. */
static inline const cfxi_token *take(parser *p)
{
    p->last = p->tok;
    return p->tok++;
}
static inline bool accept(parser *p, cfxi_token_kind kind)
{
    if (!next_is(p, kind))
        return false;
    take(p);
    return true;
}
static inline bool at_soft(const parser *p, cfxi_soft_keyword word)
{
    return p->tok->kind == CFXI_TOK_NAME && p->tok->value == (uint32_t)word;
}
static inline bool at_walrus(const parser *p)
{
    return next_is(p, CFXI_TOK_NAME) && peek_second(p) == CFXI_TOK_WALRUS;
}
/* Takes the token or fails: "expected ':'". */
bool cfxi_syntax_expect(parser *p, cfxi_token_kind kind);
/* Takes a name; NULL if there is none. */
const char *cfxi_syntax_expect_name(parser *p);
/* Takes the end of a line, after which the next line's tokens are there. */
bool cfxi_syntax_end_line(parser *p);

static inline const char *name_of(const parser *p, const cfxi_token *t)
{
    return p->script->names.entries[t->value].text;
}
static inline const char *text_of(const parser *p, const cfxi_token *t)
{
    return p->script->text + t->start;
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* Where a token ends. */
void cfxi_syntax_end_of(const parser *p, const cfxi_token *t, uint32_t *line, uint32_t *column);

/* A zeroed node that begins at `from` and ends with the last token taken. */
void *cfxi_syntax_node(parser *p, cfxi_ast_kind kind, size_t size, place from);
#define NEW(p, class, from)                                                                        \
    ((cfxi_##class *)cfxi_syntax_node(p, CFXI_AST_##class, sizeof(cfxi_##class), from))

/* The same for classes that have no place. */
void *cfxi_syntax_bare(parser *p, cfxi_ast_kind kind, size_t size);
#define NEW_BARE(p, class)                                                                         \
    ((cfxi_##class *)cfxi_syntax_bare(p, CFXI_AST_##class, sizeof(cfxi_##class)))

bool cfxi_syntax_grow_stack(parser *p);
static inline bool push(parser *p, void *node)
{
    if (p->n_stack == p->stack_capacity && !cfxi_syntax_grow_stack(p))
        return false;
    p->stack[p->n_stack++] = node;
    return true;
}
/* Moves what was pushed since `mark` into a list. */
bool cfxi_syntax_pop_list(parser *p, size_t mark, cfxi_ast_list *list);
/* The same for what was pushed in turn, as keys and values are. */
bool cfxi_syntax_pop_pairs(parser *p, size_t mark, cfxi_ast_list *firsts, cfxi_ast_list *seconds);
/* The same for names, which are pushed as they are. */
bool cfxi_syntax_pop_names(parser *p, size_t mark, cfxi_name_list *list);

/* ---- depth --------------------------------------------------------------------------------- */

static inline bool enter(parser *p)
{
    return p->depth < CFXI_SCRIPT_DEPTH ? (p->depth++, true) : (cfxi_syntax_fail_deep(p), false);
}
static inline void leave(parser *p)
{
    p->depth--;
    p->height++;
}

/* ---- expressions --------------------------------------------------------------------------- */

cfxi_ast *cfxi_syntax_expression(parser *p);    /* a conditional, a lambda, or less */
cfxi_ast *cfxi_syntax_named_expression(parser *p);  /* that, or NAME := expression */
cfxi_ast *cfxi_syntax_disjunction(parser *p);   /* no conditional, no lambda */
cfxi_ast *cfxi_syntax_bitwise_or(parser *p);    /* no comparison */
cfxi_ast *cfxi_syntax_starred(parser *p, cfxi_ast *(*of)(parser *p));  /* at '*': what `of` reads */
cfxi_ast *cfxi_syntax_star_expression(parser *p);  /* *bitwise_or, or an expression */
cfxi_ast *cfxi_syntax_star_named(parser *p);    /* *bitwise_or, or a named expression */
cfxi_ast *cfxi_syntax_star_expressions(parser *p);  /* with commas a tuple */
bool cfxi_syntax_starts_expression(cfxi_token_kind kind);
/* The tuple whose first item was read, at the ','. */
cfxi_ast *cfxi_syntax_tuple_rest(parser *p, cfxi_ast *first, place from,
                                 cfxi_ast *(*item)(parser *));
cfxi_ast *cfxi_syntax_yield_expression(parser *p);  /* at `yield` */
cfxi_ast *cfxi_syntax_yield_or_star(parser *p);  /* the right side of an assignment */
cfxi_ast *cfxi_syntax_primary(parser *p);       /* parse_atom.c: an atom with calls, ... */
cfxi_ast *cfxi_syntax_constant(parser *p,
                               cfxi_constant_kind kind); /* at None, ..., which it takes */
cfxi_ast *cfxi_syntax_strings(parser *p);       /* parse_string.c: at STRING or FSTART */
cfxi_ast *cfxi_syntax_number(parser *p);        /* literal.c: at NUMBER */

/* Decodes a string's text to the end of p->text (literal.c). */
bool cfxi_syntax_decode_text(parser *p, const cfxi_token *t, const char *text, size_t size,
                             unsigned flags);

/* for ... in ... if ... (parse_atom.c), at `for` or `async`. */
bool cfxi_syntax_comprehensions(parser *p, cfxi_ast_list *out);
static inline bool at_comprehension(const parser *p)
{
    return next_is(p, CFXI_TOK_for) ||
           (next_is(p, CFXI_TOK_async) && peek_second(p) == CFXI_TOK_for);
}

/* What stands between the brackets of a call or behind a class's name (parse_args.c), including the
 * closing one; `genexp`: whether a generator may stand there alone. */
bool cfxi_syntax_call_arguments(parser *p, bool genexp, place open, cfxi_ast_list *args,
                    cfxi_ast_list *keywords);
/* Parameters up to `end`, which is not taken: ')' or, for a lambda, ':'. */
cfxi_ast *cfxi_syntax_parameters(parser *p, cfxi_token_kind end);
/* [T, *Ts, **P], if it is there. */
bool cfxi_syntax_type_parameters(parser *p, cfxi_ast_list *out);

/* ---- targets (parse_target.c) -------------------------------------------------------------- */

/* Makes an expression a target: Store or Del. */
bool cfxi_syntax_set_context(parser *p, cfxi_ast *node, cfxi_ast_kind ctx);
/* The targets of `for`, up to `in`, which is not taken. */
cfxi_ast *cfxi_syntax_for_targets(parser *p);
/* What an expression is called in messages: "function call". */
const char *cfxi_syntax_expression_text(const cfxi_ast *node);

/* ---- statements ---------------------------------------------------------------------------- */

/* Pushes the statements of a line, or one compound statement. */
bool cfxi_syntax_statement(parser *p);
cfxi_ast *cfxi_syntax_simple_statement(parser *p);  /* parse_stmt.c */
cfxi_ast *cfxi_syntax_compound_statement(parser *p);  /* parse_block.c: if is_compound */
cfxi_ast *cfxi_syntax_match_statement(parser *p);  /* parse_pattern.c: at `match` */
bool cfxi_syntax_is_match_statement(const parser *p);
bool cfxi_syntax_block(parser *p, cfxi_ast_list *out);  /* from ':' on */
bool cfxi_syntax_is_compound(const parser *p);

#endif
