/* lex_number.c - Python's numbers: where they end, and which are wrong. */
#include "lex.h"

static bool is_digit_of(char c, int base)
{
    if (base == 16)
        return cfxi_base_is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
    return c >= '0' && c < '0' + base;
}

/* Digits with single '_' between them; NULL with an error noted if a '_' is not followed by one.
 * What follows need not begin with a digit: then it is `at`. */
static const char *skip_digits(cfxi_pylex *lex, const char *at, int base, const char *what,
                               uint8_t *flags)
{
    if (!is_digit_of(*at, base))
        return at;
    for (;;) {
        while (is_digit_of(*at, base))
            at++;
        if (*at != '_')
            return at;
        *flags |= CFXI_NUM_SPACED;
        if (!is_digit_of(*++at, base)) {
            cfxi_syntax_lex_fail(lex, at, "invalid %s literal", what);
            return NULL;
        }
    }
}

static bool is_word_char(char c) { return cfxi_base_is_ident(c) || (unsigned char)c >= 0x80; }

/* "1if x else y" is Python, so keywords that can follow a number may touch it. */
static bool keyword_follows(const char *at)
{
    static const char words[][5] = {"and", "else", "for", "if", "in", "is", "not", "or"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);
        if (strncmp(at, words[i], n) == 0)
            return true;
    }
    return false;
}

static bool finish(cfxi_pylex *lex, const char *end, const char *what, uint8_t flags)
{
    if (is_word_char(*end) && !keyword_follows(end))
        return cfxi_syntax_lex_fail(lex, end, "invalid %s literal", what);
    cfxi_token *t = cfxi_syntax_lex_emit(lex, CFXI_TOK_NUMBER, lex->at, end);
    if (!t)
        return false;
    t->flags = flags;
    lex->at = end;
    return true;
}

/* "0x1f", "0o17", "0b11": at the letter. */
static bool based(cfxi_pylex *lex, const char *at)
{
    const char letter = (char)(*at | 32);
    const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : 2;
    const char *what = base == 16 ? "hexadecimal" : base == 8 ? "octal" : "binary";
    uint8_t flags = CFXI_NUM_BASED;
    at++;
    if (*at == '_') {
        flags |= CFXI_NUM_SPACED;
        at++;
    }
    if (!is_digit_of(*at, base))
        return cfxi_syntax_lex_fail(lex, at, "invalid %s literal", what);
    at = skip_digits(lex, at, base, what, &flags);
    if (at && cfxi_base_is_digit(*at))
        return cfxi_syntax_lex_fail(lex, at, "invalid digit '%c' in %s literal", *at, what);
    return at && finish(lex, at, what, flags);
}

/* "e-12", if a digit follows the 'e'; else `at`. */
static const char *skip_exponent(cfxi_pylex *lex, const char *at, uint8_t *flags)
{
    if ((*at | 32) != 'e')
        return at;
    const char *digits = at + 1;
    digits += *digits == '+' || *digits == '-';
    if (!cfxi_base_is_digit(*digits))
        return at;
    *flags |= CFXI_NUM_FLOAT;
    return skip_digits(lex, digits, 10, "decimal", flags);
}

static bool leading_zeros(const char *at, const char *end)
{
    if (*at != '0')
        return false;
    for (; at < end; at++) {
        if (*at != '0' && *at != '_')
            return true;
    }
    return false;
}

bool cfxi_syntax_lex_number(cfxi_pylex *lex)
{
    const char *at = lex->at;
    const char second = (char)(at[1] | 32);
    uint8_t flags = 0;
    if (*at == '0' && (second == 'x' || second == 'o' || second == 'b'))
        return based(lex, at + 1);
    at = skip_digits(lex, at, 10, "decimal", &flags);
    const char *whole = at;
    if (at && *at == '.') {
        flags |= CFXI_NUM_FLOAT;
        at = skip_digits(lex, at + 1, 10, "decimal", &flags);
    }
    at = at ? skip_exponent(lex, at, &flags) : NULL;
    if (!at)
        return false;
    if ((*at | 32) == 'j')
        return finish(lex, at + 1, "imaginary", flags | CFXI_NUM_IMAGINARY);
    if (!(flags & CFXI_NUM_FLOAT) && leading_zeros(lex->at, whole))
        return cfxi_syntax_lex_fail(lex, lex->at,
                                    "leading zeros in decimal integer literals are not "
                                    "permitted; use an 0o prefix for octal integers");
    return finish(lex, at, "decimal", flags);
}
