/* text_lex.c - the characters of the IR text: blanks, words, quoted text, and messages with a
 * caret. */
#include "text_lex_impl.h"

#include <stdio.h>

/* ---- classes of characters ----------------------------------------------------------------- */

enum {
    F = CFXI_CHAR_FILE,
    N = CFXI_CHAR_NUMBER | F,
    D = CFXI_CHAR_DOTTED | N,
    W = CFXI_CHAR_NAME | D,
    B = CFXI_CHAR_BLANK
};

/* ASCII; all other bytes are in no class. */
const uint8_t cfxi_ir_char_classes[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, B, B, 0, 0, B, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    B, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, N, 0, N, D, F,  /* ! to / */
    W, W, W, W, W, W, W, W, W, W, 0, 0, 0, 0, 0, 0,  /* 0 to ? */
    0, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W,  /* @ to O */
    W, W, W, W, W, W, W, W, W, W, W, 0, 0, 0, 0, W,  /* P to _ */
    0, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W,  /* ` to o */
    W, W, W, W, W, W, W, W, W, W, W, 0, 0, 0, F, 0,  /* p to ~ */
};

bool cfxi_ir_is_run(cfxi_char_class class, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (!cfxi_ir_is_char(class, text[i]))
            return false;
    }
    return size > 0;
}

/* ---- messages ------------------------------------------------------------------------------ */

uint32_t cfxi_ir_lex_line(const cfxi_lexer *lex, size_t at)
{
    size_t line = 1;
    for (size_t i = 0; i < at && i < lex->size; i++)
        line += lex->text[i] == '\n';
    return line > UINT32_MAX ? UINT32_MAX : (uint32_t)line;
}

static bool is_line_end(const cfxi_lexer *lex, size_t at)
{
    return at >= lex->size || lex->text[at] == '\n';
}

/* The stretch of a line that a message shows; it is cut on both sides of the caret. */
typedef struct excerpt {
    size_t first;
    size_t end;
    bool cut_left;
    bool cut_right;
} excerpt;

/* The whole line if it fits into a terminal of 80 columns, else most of that width before `at`. */
static excerpt find_excerpt(const cfxi_lexer *lex, size_t at)
{
    enum { WIDTH = 74, BEFORE = 48 };
    size_t before = 0;
    size_t after = 0;
    while (before < WIDTH && before < at && lex->text[at - before - 1] != '\n')
        before++;
    while (after < WIDTH && !is_line_end(lex, at + after))
        after++;
    if (before + after > WIDTH) {
        if (before > BEFORE)
            before = after > WIDTH - BEFORE ? BEFORE : WIDTH - after;
        after = WIDTH - before;
    }
    const excerpt e = {at - before, at + after, before < at && lex->text[at - before - 1] != '\n',
                       !is_line_end(lex, at + after)};
    return e;
}

/* Copies what the excerpt shows, a '?' for what cannot be shown; returns how many characters
 * stand before `at`. */
static size_t copy_excerpt(const cfxi_lexer *lex, const excerpt *e, size_t at, char *out)
{
    size_t width = 0;
    size_t before = 0;
    for (size_t i = e->first, n; i < e->end; i += n) {
        uint32_t code;
        if (i <= at)
            before = width;
        n = cfxi_base_utf8_decode(lex->text + i, e->end - i, &code);
        if (n > 0 && cfxi_base_is_printable(code)) {
            memcpy(out, lex->text + i, n);
            out += n;
        } else {
            *out++ = n > 0 && (code == '\t' || code == '\r') ? ' ' : '?';
            n = n ? n : 1;
        }
        width++;
    }
    *out = '\0';
    return at >= e->end ? width : before;
}

void cfxi_ir_lex_show(const cfxi_lexer *lex, size_t at, char out[CFXI_SHOWN_SIZE])
{
    char shown[256];
    const excerpt e = find_excerpt(lex, at);
    const size_t before = copy_excerpt(lex, &e, at, shown) + (e.cut_left ? 3 : 0);
    snprintf(out, CFXI_SHOWN_SIZE, "  %s%s%s\n  %*s^", e.cut_left ? "..." : "", shown,
             e.cut_right ? "..." : "", (int)before, "");
}

cfx_status cfxi_ir_lex_error(cfxi_lexer *lex, size_t at, cfx_status status, const char *format, ...)
{
    char what[200];
    char shown[CFXI_SHOWN_SIZE];
    va_list args;
    size_t line_start = at;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    while (line_start > 0 && lex->text[line_start - 1] != '\n')
        line_start--;
    const uint32_t line = cfxi_ir_lex_line(lex, at);
    const uint32_t column = at - line_start >= UINT32_MAX ? UINT32_MAX
                                                          : (uint32_t)(at - line_start + 1);
    cfxi_ir_lex_show(lex, at, shown);
    cfx_error_set(lex->err, status, "line %u, column %u: %s\n%s", (unsigned)line,
                  (unsigned)column, what, shown);
    lex->err->line = line;
    lex->err->column = column;
    return status;
}

const char *cfxi_ir_lex_found(cfxi_lexer *lex, char out[CFXI_FOUND_SIZE])
{
    cfxi_ir_lex_skip(lex);
    const char *text = lex->text + lex->at;
    const size_t left = lex->size - lex->at;
    size_t n = 0;
    uint32_t code;
    if (left == 0)
        return "the end of the text";
    while (n < left && n < 24 && cfxi_ir_is_char(CFXI_CHAR_DOTTED, text[n]))
        n++;
    if (n == 0)
        n = cfxi_base_utf8_decode(text, left, &code);
    if (n == 0 || (unsigned char)text[0] < 0x20)
        snprintf(out, CFXI_FOUND_SIZE, "byte 0x%02x", (unsigned)(unsigned char)text[0]);
    else
        snprintf(out, CFXI_FOUND_SIZE, "'%.*s'", (int)n, text);
    return out;
}

void cfxi_ir_lex_skip_mark(cfxi_lexer *lex)
{
    static const char mark[] = "\xef\xbb\xbf";
    const size_t size = sizeof mark - 1;
    if (lex->size < size || memcmp(lex->text, mark, size) != 0)
        return;
    lex->text += size;
    lex->size -= size;
}

cfx_status cfxi_ir_lex_check(cfxi_lexer *lex)
{
    if (cfxi_base_utf8_valid(lex->text, lex->size))
        return CFX_OK;
    for (size_t at = 0; at < lex->size;) {
        uint32_t code;
        const size_t n = cfxi_base_utf8_decode(lex->text + at, lex->size - at, &code);
        if (n == 0)
            return cfxi_ir_lex_error(lex, at, CFX_E_SYNTAX, "the text is not UTF-8 (byte 0x%02x); "
                                     "write bytes as b\"\\x%02x\"",
                                     (unsigned)(unsigned char)lex->text[at],
                                     (unsigned)(unsigned char)lex->text[at]);
        at += n;
    }
    return CFX_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

void cfxi_ir_lex_skip(cfxi_lexer *lex)
{
    while (lex->at < lex->size) {
        const char c = lex->text[lex->at];
        if (cfxi_ir_is_char(CFXI_CHAR_BLANK, c)) {
            lex->at++;
        } else if (c == '#') {
            const char *end = memchr(lex->text + lex->at, '\n', lex->size - lex->at);
            lex->at = end ? (size_t)(end - lex->text) : lex->size;
        } else {
            return;
        }
    }
}

int cfxi_ir_lex_peek(cfxi_lexer *lex)
{
    cfxi_ir_lex_skip(lex);
    return lex->at < lex->size ? (unsigned char)lex->text[lex->at] : -1;
}

bool cfxi_ir_lex_accept(cfxi_lexer *lex, char c)
{
    if (cfxi_ir_lex_peek(lex) != (unsigned char)c)
        return false;
    lex->at++;
    return true;
}

cfx_status cfxi_ir_lex_expect(cfxi_lexer *lex, char c, const char *where)
{
    char found[CFXI_FOUND_SIZE];
    if (cfxi_ir_lex_accept(lex, c))
        return CFX_OK;
    return cfxi_ir_lex_error(lex, lex->at, CFX_E_SYNTAX, "expected '%c' %s, found %s", c, where,
                             cfxi_ir_lex_found(lex, found));
}

cfxi_slice cfxi_ir_lex_run(cfxi_lexer *lex, cfxi_char_class class)
{
    const size_t first = lex->at;
    size_t at = first;
    while (at < lex->size && cfxi_ir_is_char(class, lex->text[at]))
        at++;
    lex->at = at;
    return (cfxi_slice){lex->text + first, at - first};
}

/* ---- quoted text --------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (cfxi_base_is_digit(c))
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static cfx_status lex_nomem(cfxi_lexer *lex) { return cfxi_base_nomem(lex->err); }

/* The code point of "41" after "\x", "0041" after "\u". */
static cfx_status read_hex(cfxi_lexer *lex, size_t digits, uint32_t *code)
{
    const size_t first = lex->at;
    *code = 0;
    for (size_t i = 0; i < digits; i++, lex->at++) {
        const int digit = lex->at < lex->size ? hex_digit(lex->text[lex->at]) : -1;
        if (digit < 0)
            return cfxi_ir_lex_error(lex, first, CFX_E_SYNTAX,
                                     "expected %zu hexadecimal digits here", digits);
        *code = *code << 4 | (uint32_t)digit;
    }
    if (*code > 0x10ffff)
        return cfxi_ir_lex_error(lex, first, CFX_E_SYNTAX,
                                 "0x%x is not a Unicode code point; the last one is 0x10ffff",
                                 (unsigned)*code);
    return CFX_OK;
}

static cfx_status read_escape(cfxi_lexer *lex, bool bytes)
{
    static const char letters[] = "ntr\\\"'";
    static const char meanings[] = "\n\t\r\\\"'";
    const size_t first = lex->at++;
    const char c = lex->at < lex->size ? lex->text[lex->at++] : '\0';
    const char *letter = c ? strchr(letters, c) : NULL;
    char encoded[4];
    uint32_t code;
    if (letter)
        return cfx_buffer_append(&lex->scratch, &meanings[letter - letters], 1) == CFX_OK
                   ? CFX_OK : lex_nomem(lex);
    const size_t digits = c == 'x' ? 2 : c == 'u' && !bytes ? 4 : c == 'U' && !bytes ? 8 : 0;
    if (digits == 0)
        return cfxi_ir_lex_error(lex, first, CFX_E_SYNTAX,
                                 "unknown escape; use \\n \\t \\r \\\\ \\\" "
                                 "\\xNN%s",
                                 bytes ? "" : " \\uNNNN \\UNNNNNNNN");
    CFX_TRY(read_hex(lex, digits, &code));
    encoded[0] = (char)code;
    const size_t n = bytes ? 1 : cfxi_base_utf8_encode(code, encoded);
    return cfx_buffer_append(&lex->scratch, encoded, n) == CFX_OK ? CFX_OK : lex_nomem(lex);
}

/* Stops at the closing quote, an escape, or something that cannot stand there. */
static size_t plain_stretch(const cfxi_lexer *lex, bool bytes)
{
    size_t at = lex->at;
    while (at < lex->size && lex->text[at] != '"' && lex->text[at] != '\\' &&
           (unsigned char)lex->text[at] >= 0x20 &&
           !(bytes && (unsigned char)lex->text[at] >= 0x80))
        at++;
    return at - lex->at;
}

static cfx_status bad_character(cfxi_lexer *lex, size_t opened)
{
    if (lex->at >= lex->size || lex->text[lex->at] == '\n')
        return cfxi_ir_lex_error(lex, opened, CFX_E_SYNTAX, "this quote is not closed on its line; "
                                 "close it with '\"' and write line breaks as \\n");
    return cfxi_ir_lex_error(lex, lex->at, CFX_E_SYNTAX, "byte 0x%02x must be escaped; write it as "
                             "\\x%02x", (unsigned)(unsigned char)lex->text[lex->at],
                             (unsigned)(unsigned char)lex->text[lex->at]);
}

cfx_status cfxi_ir_lex_quoted(cfxi_lexer *lex, bool bytes, cfxi_slice *out)
{
    const size_t opened = lex->at++;
    size_t n = plain_stretch(lex, bytes);
    if (lex->at + n < lex->size && lex->text[lex->at + n] == '"') { /* no escapes: no copy */
        *out = (cfxi_slice){lex->text + lex->at, n};
        lex->at += n + 1;
        return CFX_OK;
    }
    lex->scratch.size = 0;
    for (;;) {
        n = plain_stretch(lex, bytes);
        if (cfx_buffer_append(&lex->scratch, lex->text + lex->at, n) != CFX_OK)
            return lex_nomem(lex);
        lex->at += n;
        if (lex->at < lex->size && lex->text[lex->at] == '"')
            break;
        if (lex->at >= lex->size || lex->text[lex->at] != '\\')
            return bad_character(lex, opened);
        CFX_TRY(read_escape(lex, bytes));
    }
    lex->at++;
    *out = (cfxi_slice){lex->scratch.data, lex->scratch.size};
    return CFX_OK;
}
