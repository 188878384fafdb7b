/* source_text.c - a Python source as the lexer wants it: its encoding, its line ends. */
#include "ir/text_lex_impl.h"
#include "lex.h"

/* ---- the coding comment -------------------------------------------------------------------- */

typedef enum encoding { ENCODING_NONE, ENCODING_UTF8, ENCODING_LATIN1, ENCODING_OTHER } encoding;

static bool is_encoding_char(char c)
{
    return cfxi_base_is_ident(c) || c == '-' || c == '.';
}

/* Lower case, '_' as '-', and at most `size - 1` characters, as Python compares names of codecs. */
static void plain_name(const char *name, size_t n, char *out, size_t size)
{
    size_t i = 0;
    for (; i < n && i + 1 < size; i++)
        out[i] = name[i] == '_' ? '-' : (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 32
                                                                                : name[i]);
    out[i] = '\0';
}

static bool has_prefix(const char *name, const char *word)
{
    const size_t n = strlen(word);
    return strncmp(name, word, n) == 0 && (name[n] == '\0' || name[n] == '-');
}

static encoding encoding_of(cfxi_slice name)
{
    char plain[16];
    plain_name(name.data, name.size, plain, sizeof plain);
    if (has_prefix(plain, "utf-8") || strcmp(plain, "utf8") == 0 || strcmp(plain, "ascii") == 0 ||
        strcmp(plain, "us-ascii") == 0)
        return ENCODING_UTF8;
    if (has_prefix(plain, "latin-1") || has_prefix(plain, "iso-8859-1") ||
        has_prefix(plain, "iso-latin-1") || strcmp(plain, "latin1") == 0 ||
        strcmp(plain, "iso8859-1") == 0)
        return ENCODING_LATIN1;
    return ENCODING_OTHER;
}

/* "coding[:=] NAME" in a comment that is all of its line. */
static cfxi_slice find_coding(const char *line, const char *end)
{
    const cfxi_slice none = {NULL, 0};
    while (line < end && (*line == ' ' || *line == '\t' || *line == '\f'))
        line++;
    if (line == end || *line != '#')
        return none;
    for (; end - line > 7; line++) {
        if (memcmp(line, "coding", 6) != 0 || (line[6] != ':' && line[6] != '='))
            continue;
        const char *name = line + 7;
        while (name < end && (*name == ' ' || *name == '\t'))
            name++;
        const char *last = name;
        while (last < end && is_encoding_char(*last))
            last++;
        if (last > name)
            return (cfxi_slice){name, (size_t)(last - name)};
    }
    return none;
}

static bool is_blank(const char *line, const char *end)
{
    while (line < end && (*line == ' ' || *line == '\t' || *line == '\f'))
        line++;
    return line == end || *line == '#';
}

static const char *line_end(const char *at, const char *end)
{
    while (at < end && *at != '\n' && *at != '\r')
        at++;
    return at;
}

/* Only the first two lines count, and the second only if the first is blank or a comment. */
static encoding find_encoding(const char *source, const char *end, cfxi_slice *name)
{
    const char *first = line_end(source, end);
    *name = find_coding(source, first);
    if (!name->data && is_blank(source, first) && first < end) {
        const char *second = first + 1;
        second += *first == '\r' && second < end && *second == '\n';
        *name = find_coding(second, line_end(second, end));
    }
    return name->data ? encoding_of(*name) : ENCODING_NONE;
}

/* ---- copying ------------------------------------------------------------------------------- */

/* Line ends to '\n', and Latin-1 to UTF-8, which needs up to twice the room. */
static size_t copy_slowly(char *out, const char *from, const char *end, bool latin1)
{
    char *at = out;
    for (; from < end; from++) {
        if (*from == '\r') {
            *at++ = '\n';
            from += from + 1 < end && from[1] == '\n';
        } else if (latin1) {
            at += cfxi_base_utf8_encode((unsigned char)*from, at);
        } else {
            *at++ = *from;
        }
    }
    return (size_t)(at - out);
}

static cfx_status check_copy(const char *text, size_t size, bool has_zero, cfx_error *err)
{
    cfx_error own;
    cfxi_lexer lex = {.text = text, .size = size, .err = cfxi_base_error_or(err, &own)};
    if (has_zero)
        return cfxi_ir_lex_error(&lex, (size_t)((char *)memchr(text, 0, size) - text), CFX_E_SYNTAX,
                                 "Python source cannot contain null bytes");
    return cfxi_ir_lex_check(&lex);
}

cfx_status cfxi_syntax_source_copy(cfxi_arena *arena, const char *source, size_t size, bool is_text,
                                   const char **text, size_t *text_size, cfx_error *err)
{
    const bool mark = size >= 3 && memcmp(source, "\xef\xbb\xbf", 3) == 0;
    const char *from = mark ? source + 3 : source;
    const char *end = source + size;
    cfxi_slice name = {NULL, 0};
    const encoding coding = is_text || size == 0 ? ENCODING_NONE : find_encoding(from, end, &name);
    if (coding == ENCODING_OTHER || (mark && coding == ENCODING_LATIN1))
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "the source declares the encoding '%.*s', but "
                             "cfx reads only UTF-8 and Latin-1; save it as UTF-8",
                             (int)(name.size < 40 ? name.size : 40), name.data);
    if (size >= UINT32_MAX / 2 - CFXI_SOURCE_PAD)
        return cfx_error_set(err, CFX_E_LIMIT, "the source is longer than 2 GiB");
    const bool latin1 = coding == ENCODING_LATIN1;
    size_t n = (size_t)(end - from);
    char *copy = cfxi_base_arena_alloc(arena, (latin1 ? 2 * n : n) + 1 + CFXI_SOURCE_PAD);
    if (!copy)
        return cfxi_base_nomem(err);
    if (latin1 || (n && memchr(from, '\r', n)))
        n = copy_slowly(copy, from, end, latin1);
    else if (n)
        memcpy(copy, from, n);
    if (n && copy[n - 1] != '\n')
        copy[n++] = '\n';
    memset(copy + n, 0, CFXI_SOURCE_PAD);
    *text = copy;
    *text_size = n;
    const bool has_zero = n && memchr(copy, 0, n);
    return has_zero || !cfxi_base_utf8_valid(copy, n) ? check_copy(copy, n, has_zero, err) : CFX_OK;
}
