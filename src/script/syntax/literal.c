/* literal.c - the values of Python's numbers and strings.
 *
 * \N{...} would need Unicode's table of names: it is refused, with the way out in the message.
 */
#include "parse_impl.h"

/* ---- numbers ------------------------------------------------------------------------------- */

/* Python's own limit for the conversion of decimal digits. */
enum { MAX_DECIMAL_DIGITS = 4300 };

/* Whether the digits fit into an int64, and then their value. */
static bool int_value(const char *digits, size_t n, unsigned base, int64_t *out)
{
    int64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (__builtin_mul_overflow(value, (int64_t)base, &value) ||
            __builtin_add_overflow(value, (int64_t)cfxi_syntax_digit_value(digits[i]), &value))
            return false;
    }
    *out = value;
    return true;
}

/* The token's text without '_'; NULL if memory is out. */
static const char *without_spaces(parser *p, const cfxi_token *t, size_t *size)
{
    const char *text = text_of(p, t);
    *size = t->size;
    if (!(t->flags & CFXI_NUM_SPACED))
        return text;
    char *copy = cfxi_base_arena_alloc(p->arena, t->size);
    if (!copy)
        return cfxi_syntax_fail_nomem(p);
    *size = 0;
    for (uint32_t i = 0; i < t->size; i++) {
        if (text[i] != '_')
            copy[(*size)++] = text[i];
    }
    return copy;
}

static bool read_int(parser *p, const cfxi_token *t, cfxi_constant *value)
{
    const bool based = (t->flags & CFXI_NUM_BASED) != 0;
    const char letter = (char)(value->text[value->size > 1] | 32);
    const unsigned base = !based ? 10 : letter == 'x' ? 16 : letter == 'o' ? 8 : 2;
    const size_t skip = based ? 2 : 0;
    if (!based && value->size > MAX_DECIMAL_DIGITS)
        return cfxi_syntax_fail_at(p, t,
                                   "this integer has more than %d digits; write it as hexadecimal",
                       MAX_DECIMAL_DIGITS);
    value->kind = CFXI_CONST_INT;
    value->fits = int_value(value->text + skip, value->size - skip, base, &value->i);
    return true;
}

cfxi_ast *cfxi_syntax_number(parser *p)
{
    const place from = here(p);
    const cfxi_token *t = take(p);
    cfxi_Constant *node = NEW(p, Constant, from);
    size_t size = 0;
    const char *text = node ? without_spaces(p, t, &size) : NULL;
    if (!text)
        return NULL;
    node->value.text = text;
    node->value.size = size;
    const bool imaginary = (t->flags & CFXI_NUM_IMAGINARY) != 0;
    if (!imaginary && !(t->flags & CFXI_NUM_FLOAT))
        return read_int(p, t, &node->value) ? &node->ast : NULL;
    node->value.kind = imaginary ? CFXI_CONST_COMPLEX : CFXI_CONST_FLOAT;
    if (!cfxi_base_parse_float(text, size - imaginary, &node->value.f))
        return cfxi_syntax_fail_at(p, t, "invalid decimal literal");
    return &node->ast;
}

/* ---- escapes ------------------------------------------------------------------------------- */

static bool append(parser *p, const char *data, size_t size)
{
    return cfx_buffer_append(&p->text, data, size) == CFX_OK || cfxi_syntax_fail_nomem(p);
}

static bool append_code(parser *p, uint32_t code, bool bytes)
{
    char encoded[4] = {(char)code};
    return append(p, encoded, bytes ? 1 : cfxi_base_utf8_encode(code, encoded));
}

static bool fail_escape(parser *p, const char *at, cfx_status status, const char *what)
{
    return cfxi_syntax_fail_offset(p, (size_t)(at - p->script->text), status, what);
}

static int hex_digit(char c)
{
    const bool digit = cfxi_base_is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
    return digit ? (int)cfxi_syntax_digit_value(c) : -1;
}

/* "\x41", "\u0041", "\U00000041": at the backslash; gives where it ends. */
static const char *hex_escape(parser *p, const char *at, const char *end, bool bytes)
{
    const char kind = at[1];
    const int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
    uint32_t code = 0;
    for (int i = 0; i < digits; i++) {
        const int digit = at + 2 + i < end ? hex_digit(at[2 + i]) : -1;
        if (digit < 0)
            return fail_escape(p, at, CFX_E_SYNTAX,
                               kind == 'x'   ? "'\\x' needs two hexadecimal digits"
                               : kind == 'u' ? "'\\u' needs four hexadecimal digits"
                                             : "'\\U' needs eight hexadecimal digits"), NULL;
        code = code << 4 | (uint32_t)digit;
    }
    if (code > 0x10ffff)
        return fail_escape(p, at, CFX_E_SYNTAX, "illegal Unicode character; the largest is "
                           "'\\U0010ffff'"), NULL;
    return append_code(p, code, bytes) ? at + 2 + digits : NULL;
}

/* "\101": one to three octal digits. */
static const char *octal_escape(parser *p, const char *at, const char *end, bool bytes)
{
    uint32_t code = 0;
    int n = 0;
    for (at++; n < 3 && at < end && *at >= '0' && *at <= '7'; n++)
        code = code * 8 + (uint32_t)(*at++ - '0');
    return append_code(p, code, bytes) ? at : NULL;
}

/* The escape at `at`, a backslash; gives where it ends, or NULL. One that Python does not know
 * stays as it is. */
static const char *escape(parser *p, const char *at, const char *end, bool bytes)
{
    static const char letters[] = "\\'\"abfnrtv";
    static const char meanings[] = "\\'\"\a\b\f\n\r\t\v";
    const char c = at + 1 < end ? at[1] : '\0';
    if (c == '\n')
        return at + 2;
    if (c >= '0' && c <= '7')
        return octal_escape(p, at, end, bytes);
    if (c == 'x' || (!bytes && (c == 'u' || c == 'U')))
        return hex_escape(p, at, end, bytes);
    if (c == 'N' && !bytes)
        return fail_escape(p, at, CFX_E_UNSUPPORTED, "character names ('\\N{...}') are not "
                           "supported; write '\\uXXXX' instead"), NULL;
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter)
        return append(p, &meanings[letter - letters], 1) ? at + 2 : NULL;
    return append(p, at, 1) ? at + 1 : NULL;
}

bool cfxi_syntax_decode_text(parser *p, const cfxi_token *t, const char *text, size_t size,
                             unsigned flags)
{
    const bool bytes = (flags & CFXI_STR_BYTES) != 0;
    const bool braces = (flags & CFXI_STR_FORMAT) != 0;
    const bool raw = (flags & CFXI_STR_RAW) != 0;
    const char *end = text + size;
    if (bytes && (flags & CFXI_STR_WIDE))
        return cfxi_syntax_fail_at(
            p, t,
            "bytes can only contain ASCII literal characters; write others as "
            "'\\xNN'");
    if (!(flags & CFXI_STR_ESCAPES) || (raw && !braces))
        return append(p, text, size);
    while (text < end) {
        const char *stop = text;
        while (stop < end && (*stop != '\\' || raw) && !(braces && (*stop == '{' || *stop == '}')))
            stop++;
        if (!append(p, text, (size_t)(stop - text)))
            return false;
        if (stop < end && *stop != '\\') { /* a doubled brace */
            if (!append(p, stop, 1))
                return false;
            stop += 2;
        } else if (stop < end) {
            stop = escape(p, stop, end, bytes);
            if (!stop)
                return false;
        }
        text = stop;
    }
    return true;
}
