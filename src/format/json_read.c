/* json_read.c - a strict reader of JSON: what the headers of files need of it.
 *
 * The caller walks the shape it expects, so nothing nests deeper than the caller's code does.
 */
#include "format_impl.h"

cfx_status cfxi_format_json_complain(cfxi_json *j, cfx_status status, const char *what)
{
    if (j->status == CFX_OK)
        j->status = cfx_error_set(j->err, status, "%s, byte %zu: %s", j->what, j->at, what);
    return j->status;
}

static void skip_space(cfxi_json *j)
{
    while (j->at < j->size && (j->text[j->at] == ' ' || j->text[j->at] == '\t' ||
                               j->text[j->at] == '\n' || j->text[j->at] == '\r'))
        j->at++;
}

static bool take(cfxi_json *j, char c)
{
    skip_space(j);
    if (j->status != CFX_OK || j->at >= j->size || j->text[j->at] != c)
        return false;
    j->at++;
    return true;
}

static cfx_status expect(cfxi_json *j, char c)
{
    char what[] = "expected '?'";
    what[10] = c;
    return take(j, c) ? CFX_OK : cfxi_format_json_complain(j, CFX_E_VALUE, what);
}

bool cfxi_format_json_open(cfxi_json *j, char open)
{
    expect(j, open);
    return true;
}

bool cfxi_format_json_more(cfxi_json *j, char close, bool *first)
{
    bool was_first = *first;
    *first = false;
    if (j->status != CFX_OK || take(j, close))
        return false;
    if (!was_first)
        expect(j, ',');
    return j->status == CFX_OK;
}

/* Four hexadecimal digits. */
static cfx_status read_unit(cfxi_json *j, uint32_t *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        char c = j->at < j->size ? j->text[j->at] : '\0';
        uint32_t digit = cfxi_base_is_digit(c)           ? (uint32_t)(c - '0')
                         : (c >= 'a' && c <= 'f')   ? (uint32_t)(c - 'a') + 10
                         : (c >= 'A' && c <= 'F')   ? (uint32_t)(c - 'A') + 10
                                                    : 16;
        if (digit == 16)
            return cfxi_format_json_complain(j, CFX_E_VALUE, "expected four hexadecimal digits");
        *unit = *unit * 16 + digit;
        j->at++;
    }
    return CFX_OK;
}

/* After "\u": two units can make one character. */
static cfx_status read_code(cfxi_json *j, cfx_buffer *out)
{
    char bytes[4];
    uint32_t code;
    uint32_t low;
    CFX_TRY(read_unit(j, &code));
    if (code >= 0xd800 && code < 0xdc00) {
        if (j->size - j->at < 2 || memcmp(j->text + j->at, "\\u", 2) != 0)
            return cfxi_format_json_complain(j, CFX_E_VALUE, "unpaired surrogate");
        j->at += 2;
        CFX_TRY(read_unit(j, &low));
        if (low < 0xdc00 || low > 0xdfff)
            return cfxi_format_json_complain(j, CFX_E_VALUE, "unpaired surrogate");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
        return cfxi_format_json_complain(j, CFX_E_VALUE, "unpaired surrogate");
    }
    if (code == 0)
        return cfxi_format_json_complain(j, CFX_E_VALUE, "a name contains a NUL character");
    if (cfx_buffer_append(out, bytes, cfxi_base_utf8_encode(code, bytes)) != CFX_OK)
        return j->status = cfxi_base_nomem(j->err);
    return CFX_OK;
}

static cfx_status read_escape(cfxi_json *j, cfx_buffer *out)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    char c = j->at < j->size ? j->text[j->at] : '\0';
    if (c == 'u') {
        j->at++;
        return read_code(j, out);
    }
    const char *found = c ? strchr(from, c) : NULL;
    if (!found)
        return cfxi_format_json_complain(j, CFX_E_VALUE, "unknown escape in a string");
    j->at++;
    if (cfx_buffer_append(out, &to[found - from], 1) != CFX_OK)
        return j->status = cfxi_base_nomem(j->err);
    return CFX_OK;
}

cfx_status cfxi_format_json_string(cfxi_json *j, cfx_buffer *out)
{
    CFX_TRY(expect(j, '"'));
    out->size = 0;
    if (out->capacity)  /* else it is the empty string of every buffer */
        out->data[0] = '\0';
    for (;;) {
        size_t from = j->at;
        while (j->at < j->size && (unsigned char)j->text[j->at] >= 0x20 &&
               j->text[j->at] != '"' && j->text[j->at] != '\\')
            j->at++;
        if (!cfxi_base_utf8_valid(j->text + from, j->at - from)) {
            j->at = from;
            return cfxi_format_json_complain(j, CFX_E_VALUE, "a string is not UTF-8");
        }
        if (cfx_buffer_append(out, j->text + from, j->at - from) != CFX_OK)
            return j->status = cfxi_base_nomem(j->err);
        if (j->at == j->size || (unsigned char)j->text[j->at] < 0x20)
            return cfxi_format_json_complain(j, CFX_E_VALUE, "unterminated string");
        if (j->text[j->at++] == '"')
            return CFX_OK;
        CFX_TRY(read_escape(j, out));
    }
}

cfx_status cfxi_format_json_key(cfxi_json *j, cfx_buffer *out)
{
    CFX_TRY(cfxi_format_json_string(j, out));
    return expect(j, ':');
}

cfx_status cfxi_format_json_size(cfxi_json *j, int64_t *out)
{
    skip_space(j);
    size_t from = j->at;
    while (j->at < j->size && cfxi_base_is_digit(j->text[j->at]))
        j->at++;
    size_t digits = j->at - from;
    if (digits == 0 || (digits > 1 && j->text[from] == '0') ||
        !cfxi_base_parse_int(j->text + from, digits, out)) {
        j->at = from;
        return cfxi_format_json_complain(j, CFX_E_VALUE, "expected a non-negative integer");
    }
    return j->status;
}

/* A number, true, false or null, by its characters. */
static cfx_status skip_word(cfxi_json *j)
{
    const size_t from = j->at;
    while (j->at < j->size && (cfxi_base_is_digit(j->text[j->at]) ||
                               (j->text[j->at] && strchr("+-.eEtrufalsn", j->text[j->at]))))
        j->at++;
    return j->at > from ? CFX_OK : cfxi_format_json_complain(j, CFX_E_VALUE, "expected a value");
}

cfx_status cfxi_format_json_skip(cfxi_json *j, cfx_buffer *scratch)
{
    char open[CFXI_JSON_DEPTH];
    bool first[CFXI_JSON_DEPTH];
    size_t depth = 0;
    do {
        if (depth && !cfxi_format_json_more(j, open[depth - 1] == '{' ? '}' : ']',
                                            &first[depth - 1])) {
            depth--;
            continue;
        }
        if (depth && open[depth - 1] == '{')
            CFX_TRY(cfxi_format_json_key(j, scratch));
        skip_space(j);
        const char c = j->at < j->size ? j->text[j->at] : '\0';
        if (c == '{' || c == '[') {
            if (depth == CFXI_JSON_DEPTH)
                return cfxi_format_json_complain(j, CFX_E_LIMIT, "it is nested too deep");
            open[depth] = c;
            first[depth++] = cfxi_format_json_open(j, c);
        } else {
            CFX_TRY(c == '"' ? cfxi_format_json_string(j, scratch) : skip_word(j));
        }
    } while (depth && j->status == CFX_OK);
    return j->status;
}

cfx_status cfxi_format_json_end(cfxi_json *j)
{
    skip_space(j);
    if (j->at < j->size)
        cfxi_format_json_complain(j, CFX_E_VALUE, "unexpected text after the end");
    return j->status;
}
