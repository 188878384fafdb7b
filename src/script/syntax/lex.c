/* lex.c - Python's tokens: lines and indentation, names, operators, brackets. */
#include "lex.h"

#include "ir/text_lex_impl.h"

#include <stdio.h>

/* ---- set-up -------------------------------------------------------------------------------- */

void cfxi_syntax_lex_init(cfxi_pylex *lex, const char *text, size_t size, cfxi_names *names,
                          const cfx_allocator *allocator)
{
    lex->text = lex->at = lex->line_start = text;
    lex->end = text + size;
    lex->line = 1;
    lex->tokens = NULL;
    lex->count = lex->capacity = 0;
    lex->names = names;
    lex->allocator = allocator;
    lex->nomem = lex->unclosed = false;
    lex->error.status = CFX_OK;
    lex->n_indents = lex->n_brackets = lex->n_modes = 0;
    lex->indents[0] = lex->alt_indents[0] = 0;
}

void cfxi_syntax_lex_free(cfxi_pylex *lex)
{
    if (lex->tokens)
        cfxi_base_free(lex->allocator, lex->tokens, lex->capacity * sizeof *lex->tokens);
    lex->tokens = NULL;
}

cfxi_token *cfxi_syntax_lex_grow(cfxi_pylex *lex)
{
    const size_t capacity = lex->capacity ? lex->capacity * 2 : 256;
    size_t bytes;
    cfxi_token *tokens = cfxi_base_mul_size(capacity, sizeof *tokens, 0, &bytes)
                             ? cfxi_base_alloc(lex->allocator, bytes) : NULL;
    if (!tokens) {
        lex->nomem = true;
        return NULL;
    }
    if (lex->count)
        memcpy(tokens, lex->tokens, lex->count * sizeof *tokens);
    cfxi_syntax_lex_free(lex);
    lex->tokens = tokens;
    lex->capacity = capacity;
    return &tokens[lex->count];
}

/* ---- messages ------------------------------------------------------------------------------ */

bool cfxi_syntax_lex_fail(cfxi_pylex *lex, const char *at, const char *format, ...)
{
    char what[160];
    va_list args;
    cfxi_lexer place = {.text = lex->text, .size = (size_t)(lex->end - lex->text),
                        .err = &lex->error};
    if (lex->error.status != CFX_OK)
        return false;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    cfxi_ir_lex_error(&place, (size_t)(at - lex->text), CFX_E_SYNTAX, "%s", what);
    return false;
}

/* The character at `at`, in words: "'x'", "'\u201c' (U+201C)". */
static const char *char_text(const char *at, const char *end, char out[CFXI_TOKEN_TEXT])
{
    uint32_t code = 0;
    const size_t n = cfxi_base_utf8_decode(at, (size_t)(end - at), &code);
    if (n > 0 && code >= 0x80)
        snprintf(out, CFXI_TOKEN_TEXT, "'%.*s' (U+%04X)", cfxi_base_is_printable(code) ? (int)n : 0,
                 at, (unsigned)code);
    else if (code >= 0x20)
        snprintf(out, CFXI_TOKEN_TEXT, "'%c'", (char)code);
    else
        snprintf(out, CFXI_TOKEN_TEXT, "0x%02x", (unsigned)code);
    return out;
}

const char *cfxi_syntax_token_text(cfxi_token_kind kind, char out[CFXI_TOKEN_TEXT])
{
    static const char texts[][32] = {
#define TOKEN(id, text) text,
#define KEYWORD(word) #word,
#define SOFT(word)
#include "token.def"
#undef TOKEN
#undef KEYWORD
#undef SOFT
    };
    const bool words = kind <= CFXI_TOK_FEND;
    snprintf(out, CFXI_TOKEN_TEXT, words ? "%s" : "'%s'", texts[kind]);
    return out;
}

/* ---- characters ---------------------------------------------------------------------------- */

enum { C_BAD, C_BLANK, C_LINE, C_NAME, C_DIGIT, C_QUOTE, C_SIGN, C_HASH, C_JOIN, C_ZERO };

/* What a token that begins with the byte can be. */
static const uint8_t classes[256] = {
    [0] = C_ZERO, ['\t'] = C_BLANK, ['\n'] = C_LINE, ['\f'] = C_BLANK, [' '] = C_BLANK,
    ['!'] = C_SIGN, ['"'] = C_QUOTE, ['#'] = C_HASH, ['%'] = C_SIGN, ['&'] = C_SIGN,
    ['\''] = C_QUOTE, ['('] = C_SIGN, [')'] = C_SIGN, ['*'] = C_SIGN, ['+'] = C_SIGN,
    [','] = C_SIGN, ['-'] = C_SIGN, ['.'] = C_SIGN, ['/'] = C_SIGN, ['0' ... '9'] = C_DIGIT,
    [':'] = C_SIGN, [';'] = C_SIGN, ['<'] = C_SIGN, ['='] = C_SIGN, ['>'] = C_SIGN, ['@'] = C_SIGN,
    ['A' ... 'Z'] = C_NAME, ['['] = C_SIGN, ['\\'] = C_JOIN, [']'] = C_SIGN, ['^'] = C_SIGN,
    ['_'] = C_NAME, ['a' ... 'z'] = C_NAME, ['{'] = C_SIGN, ['|'] = C_SIGN, ['}'] = C_SIGN,
    ['~'] = C_SIGN, [0x80 ... 0xff] = C_NAME,
};

static bool is_name_char(char c)
{
    const uint8_t class = classes[(unsigned char)c];
    return class == C_NAME || class == C_DIGIT;
}

/* Fails if a character of the name, which is not all ASCII, cannot stand in one. */
static bool check_name(cfxi_pylex *lex, const char *at, const char *end)
{
    char text[CFXI_TOKEN_TEXT];
    while (at < end) {
        uint32_t code = 0;
        const size_t n = cfxi_base_utf8_decode(at, (size_t)(end - at), &code);
        if (n == 0 || (code >= 0x80 && !cfxi_base_may_be_letter(code)))
            return cfxi_syntax_lex_fail(lex, at, "invalid character %s",
                                        char_text(at, end, text));
        at += n;
    }
    return true;
}

/* ---- names --------------------------------------------------------------------------------- */

/* Whether the one or two letters before a quote are a string's prefix: rbuf in either case. */
static bool is_prefix(const char *at, size_t n)
{
    const char a = (char)(at[0] | 32);
    const char b = (char)(at[n - 1] | 32);
    if (n == 1)
        return a == 'r' || a == 'b' || a == 'f' || a == 'u';
    return (a == 'r' && (b == 'b' || b == 'f')) || (b == 'r' && (a == 'b' || a == 'f'));
}

static bool lex_name(cfxi_pylex *lex)
{
    const char *start = lex->at;
    const char *end = start;
    unsigned char bits = 0;
    for (; is_name_char(*end); end++)
        bits |= (unsigned char)*end;
    const size_t n = (size_t)(end - start);
    if (n <= 2 && (*end == '"' || *end == '\'') && is_prefix(start, n))
        return cfxi_syntax_lex_string(lex, end);
    if (bits >= 0x80 && !check_name(lex, start, end))
        return false;
    const uint32_t number = cfxi_syntax_names_add(lex->names, start, n);
    if (number == UINT32_MAX) {
        lex->nomem = true;
        return false;
    }
    cfxi_token *t = cfxi_syntax_lex_emit(lex, number < CFXI_KEYWORDS
                                        ? (cfxi_token_kind)(CFXI_FIRST_KEYWORD + number)
                                        : CFXI_TOK_NAME, start, end);
    if (!t)
        return false;
    t->value = number;
    lex->at = end;
    return true;
}

/* ---- operators ----------------------------------------------------------------------------- */

/* The token at `s` that has most characters, and how many it has. */
static cfxi_token_kind operator_at(const char *s, size_t *n)
{
#define THREE(kind) return *n = 3, CFXI_TOK_##kind
#define TWO(kind) return *n = 2, CFXI_TOK_##kind
#define OR_IS(kind) return s[1] == '=' ? (*n = 2, CFXI_TOK_##kind##_IS) : CFXI_TOK_##kind
#define DOUBLED(one, two)                                                                          \
    if (s[1] == s[0])                                                                              \
        return s[2] == '=' ? (*n = 3, CFXI_TOK_##two##_IS) : (*n = 2, CFXI_TOK_##two);
    *n = 1;
    switch (s[0]) {
    case '(': return CFXI_TOK_LPAR;
    case ')': return CFXI_TOK_RPAR;
    case '[': return CFXI_TOK_LSQB;
    case ']': return CFXI_TOK_RSQB;
    case '{': return CFXI_TOK_LBRACE;
    case '}': return CFXI_TOK_RBRACE;
    case ',': return CFXI_TOK_COMMA;
    case ';': return CFXI_TOK_SEMI;
    case '~': return CFXI_TOK_TILDE;
    case ':':
        if (s[1] == '=')
            TWO(WALRUS);
        return CFXI_TOK_COLON;
    case '.':
        if (s[1] == '.' && s[2] == '.')
            THREE(ELLIPSIS);
        return CFXI_TOK_DOT;
    case '=':
        if (s[1] == '=')
            TWO(EQ);
        return CFXI_TOK_ASSIGN;
    case '!':
        if (s[1] == '=')
            TWO(NOT_EQ);
        return CFXI_TOK_BANG;
    case '-':
        if (s[1] == '>')
            TWO(ARROW);
        OR_IS(MINUS);
    case '+': OR_IS(PLUS);
    case '%': OR_IS(PERCENT);
    case '@': OR_IS(AT);
    case '&': OR_IS(AMPER);
    case '|': OR_IS(VBAR);
    case '^': OR_IS(CARET);
    case '*':
        DOUBLED(STAR, DOUBLE_STAR)
        OR_IS(STAR);
    case '/':
        DOUBLED(SLASH, DOUBLE_SLASH)
        OR_IS(SLASH);
    case '<':
        DOUBLED(LESS, LSHIFT)
        if (s[1] == '=')
            TWO(LESS_EQ);
        return CFXI_TOK_LESS;
    default: /* '>' */
        DOUBLED(GREATER, RSHIFT)
        if (s[1] == '=')
            TWO(GREATER_EQ);
        return CFXI_TOK_GREATER;
    }
#undef THREE
#undef TWO
#undef OR_IS
#undef DOUBLED
}

static cfxi_mode *field_mode(cfxi_pylex *lex)
{
    cfxi_mode *top = lex->n_modes ? &lex->modes[lex->n_modes - 1] : NULL;
    return top && top->kind == CFXI_MODE_FIELD && top->brackets == lex->n_brackets ? top : NULL;
}

static bool open_bracket(cfxi_pylex *lex)
{
    if (lex->n_brackets == CFXI_MAX_BRACKETS)
        return cfxi_syntax_lex_fail(lex, lex->at, "too many nested brackets (more than %d)",
                                    CFXI_MAX_BRACKETS);
    lex->brackets[lex->n_brackets++] =
        (cfxi_bracket){(uint32_t)(lex->at - lex->text), *lex->at};
    return true;
}

static bool close_bracket(cfxi_pylex *lex)
{
    const char closer = *lex->at;
    const uint32_t outer = lex->n_modes ? lex->modes[lex->n_modes - 1].brackets : 0;
    if (field_mode(lex) && closer == '}') {
        lex->n_modes--;
        return true;
    }
    if (lex->n_brackets == outer)
        return cfxi_syntax_lex_fail(lex, lex->at, "%sunmatched '%c'",
                                    lex->n_modes ? "f-string: " : "", closer);
    const char opener = lex->brackets[lex->n_brackets - 1].opener;
    if (closer != (opener == '(' ? ')' : opener == '[' ? ']' : '}'))
        return cfxi_syntax_lex_fail(lex, lex->at, "closing '%c' does not match opening '%c'",
                                    closer, opener);
    lex->n_brackets--;
    return true;
}

/* The ':' of a field begins its format; "!=" stays an operator. */
static bool begin_spec(cfxi_pylex *lex, const cfxi_mode *field)
{
    if (lex->n_modes == CFXI_MAX_MODES)
        return cfxi_syntax_lex_fail(lex, lex->at, "f-strings are nested too deeply here");
    if (!cfxi_syntax_lex_emit(lex, CFXI_TOK_COLON, lex->at, lex->at + 1))
        return false;
    cfxi_mode spec = *field;
    spec.kind = CFXI_MODE_SPEC;
    lex->modes[lex->n_modes++] = spec;
    lex->at++;
    return true;
}

static bool lex_sign(cfxi_pylex *lex)
{
    size_t n;
    const cfxi_token_kind kind = operator_at(lex->at, &n);
    const cfxi_mode *field = lex->n_modes ? field_mode(lex) : NULL;
    if (kind == CFXI_TOK_LPAR || kind == CFXI_TOK_LSQB || kind == CFXI_TOK_LBRACE) {
        if (!open_bracket(lex))
            return false;
    } else if (kind == CFXI_TOK_RPAR || kind == CFXI_TOK_RSQB || kind == CFXI_TOK_RBRACE) {
        if (!close_bracket(lex))
            return false;
    } else if (field && *lex->at == ':') {
        return begin_spec(lex, field);
    } else if (kind == CFXI_TOK_DOT && cfxi_base_is_digit(lex->at[1])) {
        return cfxi_syntax_lex_number(lex);
    } else if (kind == CFXI_TOK_BANG && !field) {
        return cfxi_syntax_lex_fail(lex, lex->at,
                                    "'!' is not a Python operator; use 'not' or '!='");
    }
    if (!cfxi_syntax_lex_emit(lex, kind, lex->at, lex->at + n))
        return false;
    lex->at += n;
    return true;
}

/* ---- lines --------------------------------------------------------------------------------- */

static void skip_comment(cfxi_pylex *lex)
{
    lex->at = memchr(lex->at, '\n', (size_t)(lex->end - lex->at) + 1);
    if (!lex->at)  /* cannot be: a source ends with a line end */
        lex->at = lex->end;
}

static void next_line(cfxi_pylex *lex)
{
    lex->at++;
    lex->line++;
    lex->line_start = lex->at;
}

static bool join_lines(cfxi_pylex *lex)
{
    if (lex->at[1] != '\n')
        return cfxi_syntax_lex_fail(lex, lex->at + 1, "unexpected character after line "
                                    "continuation character");
    lex->at++;
    next_line(lex);
    if (lex->at == lex->end)
        return cfxi_syntax_lex_fail(lex, lex->at - 2,
                                    "unexpected end of file after line continuation character");
    return true;
}

/* Tells the indentation of the next line that is not blank, in both ways of counting. */
static bool measure(cfxi_pylex *lex, uint32_t *column, uint32_t *alt)
{
    bool joined = false;
    *column = *alt = 0;
    for (;;) {
        const char c = *lex->at;
        if (c == '#')
            skip_comment(lex);
        if (*lex->at == '\n') {
            next_line(lex);
            *column = *alt = 0;
            joined = false;
            continue;
        }
        if (c == '\\') {
            if (!join_lines(lex))
                return false;
            joined = joined || *column > 0;  /* the indentation is that of the first line */
            continue;
        }
        if (c != ' ' && c != '\t' && c != '\f')
            return true;
        if (c == '\f')
            *column = *alt = 0;
        else if (!joined) {
            *column = c == '\t' ? (*column / 8 + 1) * 8 : *column + 1;
            ++*alt;
        }
        lex->at++;
    }
}

static bool inconsistent(cfxi_pylex *lex)
{
    return cfxi_syntax_lex_fail(lex, lex->at, "inconsistent use of tabs and spaces in indentation");
}

static bool emit_here(cfxi_pylex *lex, cfxi_token_kind kind)
{
    return cfxi_syntax_lex_emit(lex, kind, lex->at, lex->at) != NULL;
}

static bool dedent(cfxi_pylex *lex, uint32_t column, uint32_t alt)
{
    while (lex->n_indents && column < lex->indents[lex->n_indents]) {
        lex->n_indents--;
        if (!emit_here(lex, CFXI_TOK_DEDENT))
            return false;
    }
    if (column != lex->indents[lex->n_indents])
        return cfxi_syntax_lex_fail(lex, lex->at,
                                    "unindent does not match any outer indentation level");
    return alt == lex->alt_indents[lex->n_indents] || inconsistent(lex);
}

static bool indentation(cfxi_pylex *lex)
{
    uint32_t column, alt;
    if (!measure(lex, &column, &alt))
        return false;
    if (lex->at >= lex->end)
        return dedent(lex, 0, 0) && emit_here(lex, CFXI_TOK_END);
    const uint32_t top = lex->indents[lex->n_indents];
    const uint32_t alt_top = lex->alt_indents[lex->n_indents];
    if (column == top)
        return alt == alt_top || inconsistent(lex);
    if (column < top)
        return dedent(lex, column, alt);
    if (alt <= alt_top)
        return inconsistent(lex);
    if (lex->n_indents == CFXI_MAX_INDENTS)
        return cfxi_syntax_lex_fail(lex, lex->at, "too many levels of indentation (more than %d)",
                                    CFXI_MAX_INDENTS);
    lex->indents[++lex->n_indents] = column;
    lex->alt_indents[lex->n_indents] = alt;
    return emit_here(lex, CFXI_TOK_INDENT);
}

static bool unfinished(cfxi_pylex *lex)
{
    if (lex->n_modes) {
        const cfxi_mode *top = &lex->modes[lex->n_modes - 1];
        return cfxi_syntax_lex_fail(lex, lex->text + top->start, top->kind == CFXI_MODE_FIELD
                                    ? "f-string: '{' was never closed" : "unterminated f-string");
    }
    const cfxi_bracket *open = &lex->brackets[lex->n_brackets - 1];
    lex->unclosed = true;
    return cfxi_syntax_lex_fail(lex, lex->text + open->start, "'%c' was never closed",
                                open->opener);
}

/* Tokens up to the end of the logical line. */
static bool line_tokens(cfxi_pylex *lex)
{
    for (;;) {
        char text[CFXI_TOKEN_TEXT];
        bool ok = true;
        if (lex->n_modes && lex->modes[lex->n_modes - 1].kind != CFXI_MODE_FIELD) {
            if (!cfxi_syntax_lex_ftext(lex))
                return false;
            continue;
        }
        switch (classes[(unsigned char)*lex->at]) {
        case C_BLANK:
            lex->at++;
            break;
        case C_NAME:
            ok = lex_name(lex);
            break;
        case C_SIGN:
            ok = lex_sign(lex);
            break;
        case C_DIGIT:
            ok = cfxi_syntax_lex_number(lex);
            break;
        case C_QUOTE:
            ok = cfxi_syntax_lex_string(lex, lex->at);
            break;
        case C_HASH:
            skip_comment(lex);
            break;
        case C_LINE:
            if (lex->n_brackets == 0 && lex->n_modes == 0) {
                ok = cfxi_syntax_lex_emit(lex, CFXI_TOK_NEWLINE, lex->at, lex->at + 1) != NULL;
                next_line(lex);
                return ok;
            }
            next_line(lex);
            break;
        case C_JOIN:
            ok = join_lines(lex);
            break;
        case C_ZERO:  /* inside brackets: else the line had ended */
            return unfinished(lex);
        default:
            return cfxi_syntax_lex_fail(lex, lex->at, "invalid character %s",
                                        char_text(lex->at, lex->end, text));
        }
        if (!ok)
            return false;
    }
}

bool cfxi_syntax_lex_line(cfxi_pylex *lex)
{
    bool ok = lex->error.status == CFX_OK;
    lex->count = 0;
    ok = ok && indentation(lex);
    if (ok && (lex->count == 0 || lex->tokens[lex->count - 1].kind != CFXI_TOK_END))
        ok = line_tokens(lex);
    if (!ok && !lex->nomem)
        emit_here(lex, CFXI_TOK_ERROR);
    return !lex->nomem;
}
