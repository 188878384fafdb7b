/* lex_string.c - where Python's strings end, and the pieces of f-strings. */
#include "lex.h"

static uint8_t prefix_flags(const char *at, const char *quote)
{
    uint8_t flags = 0;
    for (; at < quote; at++) {
        switch (*at | 32) {
        case 'r':
            flags |= CFXI_STR_RAW;
            break;
        case 'b':
            flags |= CFXI_STR_BYTES;
            break;
        case 'u':
            flags |= *at == 'u' ? CFXI_STR_UNICODE : 0;  /* Python's tree knows u"" alone */
            break;
        default:
            flags |= CFXI_STR_FORMAT;
        }
    }
    return flags;
}

static bool closes(const char *at, char quote, bool triple)
{
    return *at == quote && (!triple || (at[1] == quote && at[2] == quote));
}

static void count_line(cfxi_pylex *lex, const char *newline)
{
    lex->line++;
    lex->line_start = newline + 1;
}

static bool begin_fstring(cfxi_pylex *lex, const char *start, const char *body, char quote,
                          uint8_t flags)
{
    if (lex->n_modes == CFXI_MAX_MODES)
        return cfxi_syntax_lex_fail(lex, start, "f-strings are nested too deeply here");
    cfxi_token *t = cfxi_syntax_lex_emit(lex, CFXI_TOK_FSTART, start, body);
    if (!t)
        return false;
    t->flags = flags;
    lex->modes[lex->n_modes++] =
        (cfxi_mode){(uint32_t)(start - lex->text), (uint16_t)lex->n_brackets, CFXI_MODE_TEXT, flags,
                    quote};
    lex->at = body;
    return true;
}

static bool unterminated(cfxi_pylex *lex, const char *start, bool triple)
{
    if (triple)
        return cfxi_syntax_lex_fail(lex, start,
                                    "unterminated triple-quoted string literal (the file "
                                    "ends in line %u)",
                                    (unsigned)lex->line - 1);
    return cfxi_syntax_lex_fail(lex, start,
                                "unterminated string literal; close it on its line, or use "
                                "three quotes");
}

/* The closing quote of the string whose text begins at `at`; NULL with an error noted. Lines are
 * counted on the way. */
static const char *find_end(cfxi_pylex *lex, const char *at, char quote, uint8_t *flags)
{
    const bool triple = (*flags & CFXI_STR_TRIPLE) != 0;
    const char *start = lex->at;
    unsigned char bits = 0;
    for (;; at++) {
        const char c = *at;
        bits |= (unsigned char)c;
        if (c == quote) {
            if (closes(at, quote, triple))
                break;
        } else if (c == '\\') {
            *flags |= CFXI_STR_ESCAPES;
            at++;
            bits |= (unsigned char)*at;
            if (*at == '\n')
                count_line(lex, at);
        } else if (c == '\n') {
            if (!triple)
                return unterminated(lex, start, false), NULL;
            count_line(lex, at);
        }
        if (*at == '\0')
            return unterminated(lex, start, triple), NULL;
    }
    if (bits >= 0x80)
        *flags |= CFXI_STR_WIDE;
    return at;
}

bool cfxi_syntax_lex_string(cfxi_pylex *lex, const char *quote)
{
    const char *start = lex->at;
    const char q = *quote;
    const bool triple = quote[1] == q && quote[2] == q;
    uint8_t flags = prefix_flags(start, quote) | (triple ? CFXI_STR_TRIPLE : 0);
    if (flags & CFXI_STR_FORMAT)
        return begin_fstring(lex, start, quote + (triple ? 3 : 1), q, flags);
    cfxi_token *t = cfxi_syntax_lex_emit(lex, CFXI_TOK_STRING, start, quote);
    const char *end = t ? find_end(lex, quote + (triple ? 3 : 1), q, &flags) : NULL;
    if (!end) {
        lex->count -= t != NULL;
        return false;
    }
    end += triple ? 3 : 1;
    t->size = (uint32_t)(end - start);
    t->value = lex->line;
    t->flags = flags;
    t->prefix = (uint8_t)(quote - start);
    lex->at = end;
    return true;
}

/* ---- f-strings ----------------------------------------------------------------------------- */

static bool emit_text(cfxi_pylex *lex, const char *end, uint8_t flags, uint32_t line,
                      const char *line_start)
{
    if (end == lex->at)
        return true;
    cfxi_token *t = cfxi_syntax_lex_emit(lex, CFXI_TOK_FTEXT, lex->at, end);
    if (!t)
        return false;
    t->flags = flags;
    t->line = line;
    t->column = (uint32_t)(lex->at - line_start);
    lex->at = end;
    return true;
}

/* What ends a stretch of text. */
typedef enum text_end { TEXT_FAILED, TEXT_FIELD, TEXT_QUOTE, TEXT_BRACE } text_end;

static text_end text_failed(cfxi_pylex *lex, const char *at, const char *why)
{
    cfxi_syntax_lex_fail(lex, at, "%s", why);
    return TEXT_FAILED;
}

/* A backslash hides the character behind it, but no brace; "\N{...}" is one escape. */
static const char *skip_escape(cfxi_pylex *lex, const cfxi_mode *mode, const char *at)
{
    if (at[1] == '{' || at[1] == '}')
        return at;
    if (at[1] == 'N' && at[2] == '{' && !(mode->flags & CFXI_STR_RAW)) {
        const char *brace = at + 3;
        while (*brace && *brace != '}' && *brace != '\n' && *brace != mode->quote)
            brace++;
        return *brace == '}' ? brace : at + 1;
    }
    if (at[1] == '\n')
        count_line(lex, at + 1);
    return at + (at[1] != '\0');
}

static text_end scan_text(cfxi_pylex *lex, const cfxi_mode *mode, const char **end, uint8_t *flags)
{
    const bool triple = (mode->flags & CFXI_STR_TRIPLE) != 0;
    const bool spec = mode->kind == CFXI_MODE_SPEC;
    const char *opened = lex->text + mode->start;
    for (const char *at = lex->at;; at++) {
        *end = at;
        if (*at == mode->quote && closes(at, mode->quote, triple))
            return spec ? text_failed(lex, at, "f-string: expecting '}'") : TEXT_QUOTE;
        switch (*at) {
        case '{':
            if (spec || at[1] != '{')
                return TEXT_FIELD;
            *flags |= CFXI_STR_ESCAPES;
            at++;
            break;
        case '}':
            if (spec)
                return TEXT_BRACE;
            if (at[1] != '}')
                return text_failed(lex, at, "f-string: single '}' is not allowed");
            *flags |= CFXI_STR_ESCAPES;
            at++;
            break;
        case '\\':
            *flags |= CFXI_STR_ESCAPES;
            at = skip_escape(lex, mode, at);
            break;
        case '\n':
            if (!triple)
                return text_failed(lex, opened, "unterminated f-string literal");
            count_line(lex, at);
            break;
        case '\0':
            return text_failed(lex, opened, triple ? "unterminated triple-quoted f-string literal"
                                                   : "unterminated f-string literal");
        default:
            break;
        }
    }
}

static bool begin_field(cfxi_pylex *lex, const cfxi_mode *around)
{
    if (lex->n_modes == CFXI_MAX_MODES)
        return cfxi_syntax_lex_fail(lex, lex->at, "f-strings are nested too deeply here");
    if (!cfxi_syntax_lex_emit(lex, CFXI_TOK_LBRACE, lex->at, lex->at + 1))
        return false;
    cfxi_mode field = *around;
    field.kind = CFXI_MODE_FIELD;
    field.brackets = (uint16_t)lex->n_brackets;
    lex->modes[lex->n_modes++] = field;
    lex->at++;
    return true;
}

bool cfxi_syntax_lex_ftext(cfxi_pylex *lex)
{
    const cfxi_mode mode = lex->modes[lex->n_modes - 1];
    const uint32_t line = lex->line;
    const char *line_start = lex->line_start;
    const char *end;
    uint8_t flags = mode.flags & (CFXI_STR_RAW | CFXI_STR_FORMAT);
    const text_end how = scan_text(lex, &mode, &end, &flags);
    if (how == TEXT_FAILED || !emit_text(lex, end, flags, line, line_start))
        return false;
    if (how == TEXT_FIELD)
        return begin_field(lex, &mode);
    const size_t n = how == TEXT_QUOTE && (mode.flags & CFXI_STR_TRIPLE) ? 3 : 1;
    lex->n_modes -= how == TEXT_QUOTE ? 1 : 2;  /* a format ends with its field */
    if (!cfxi_syntax_lex_emit(lex, how == TEXT_QUOTE ? CFXI_TOK_FEND : CFXI_TOK_RBRACE, lex->at,
                              lex->at + n))
        return false;
    lex->at += n;
    return true;
}
