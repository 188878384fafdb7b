/* utf8.c - UTF-8 with lone surrogates, and text as CPython's repr shows it. */
#include "base_impl.h"

/* ---- coding -------------------------------------------------------------------------------- */

static bool is_continuation(unsigned char c) { return (c & 0xc0) == 0x80; }

size_t cfxi_base_utf8_decode(const char *text, size_t size, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    if (size == 0)
        return 0;
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    const size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    if (n == 0 || n > size || s[0] > 0xf4)
        return 0;
    uint32_t c = s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (!is_continuation(s[i]))
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[n] || c > 0x10ffff)
        return 0;
    *code = c;
    return n;
}

size_t cfxi_base_utf8_encode(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)((0xf00u >> n & 0xffu) | code);
    return n;
}

bool cfxi_base_utf8_valid(const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        uint32_t code;
        uint64_t eight;
        if (size - at >= sizeof eight) { /* ASCII is what most text is */
            memcpy(&eight, text + at, sizeof eight);
            if ((eight & 0x8080808080808080u) == 0) {
                at += sizeof eight;
                continue;
            }
        }
        const size_t n = cfxi_base_utf8_decode(text + at, size - at, &code);
        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

void cfxi_base_utf8_clean(char *text)
{
    const size_t size = strlen(text);
    for (size_t at = 0; at < size;) {
        uint32_t code;
        const size_t n = cfxi_base_utf8_decode(text + at, size - at, &code);
        if (n == 0)
            text[at] = '?';
        at += n ? n : 1;
    }
}

size_t cfxi_base_text_width(const char *text, size_t size)
{
    size_t width = 0;
    for (size_t i = 0; i < size; i++)
        width += !is_continuation((unsigned char)text[i]);
    return width;
}

/* ---- repr ---------------------------------------------------------------------------------- */

static const uint32_t turns[] = {
#include "printable.def"
};

bool cfxi_base_is_printable(uint32_t code)
{
    if (code < 0x7f)
        return code >= 0x20;
    /* How many turns lie at or before `code`: an even number means printable. */
    size_t low = 0;
    size_t high = sizeof turns / sizeof *turns;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (turns[middle] <= code)
            low = middle + 1;
        else
            high = middle;
    }
    return low % 2 == 0;
}

/* Single quotes, unless only double ones spare an escape. */
static char choose_quote(const char *text, size_t size)
{
    return size && memchr(text, '\'', size) && !memchr(text, '"', size) ? '"' : '\'';
}

static void out_escape(cfxi_out *out, uint32_t code)
{
    switch (code) {
    case '\t':
        cfxi_base_out_write(out, "\\t", 2);
        return;
    case '\n':
        cfxi_base_out_write(out, "\\n", 2);
        return;
    case '\r':
        cfxi_base_out_write(out, "\\r", 2);
        return;
    default:
        cfxi_base_out_printf(out, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x",
                             (unsigned)code);
    }
}

/* Writes the plain ASCII stretch from `at` on and returns where it ends. */
static size_t out_plain(cfxi_out *out, const char *text, size_t size, size_t at, char quote)
{
    const size_t first = at;
    while (at < size && text[at] >= 0x20 && text[at] < 0x7f && text[at] != quote &&
           text[at] != '\\')
        at++;
    cfxi_base_out_write(out, text + first, at - first);
    return at;
}

void cfxi_base_out_quoted(cfxi_out *out, const char *text, size_t size, char quote)
{
    cfxi_base_out_char(out, quote);
    for (size_t at = 0; (at = out_plain(out, text, size, at, quote)) < size;) {
        uint32_t code = (unsigned char)text[at];
        const size_t n = cfxi_base_utf8_decode(text + at, size - at, &code);
        if (code == (unsigned char)quote || code == '\\') {
            cfxi_base_out_char(out, '\\');
            cfxi_base_out_char(out, (char)code);
        } else if (n && cfxi_base_is_printable(code)) {
            cfxi_base_out_write(out, text + at, n);
        } else {
            out_escape(out, code);
        }
        at += n ? n : 1;
    }
    cfxi_base_out_char(out, quote);
}

void cfxi_base_out_quoted_bytes(cfxi_out *out, const char *data, size_t size, char quote)
{
    cfxi_base_out_char(out, 'b');
    cfxi_base_out_char(out, quote);
    for (size_t at = 0; (at = out_plain(out, data, size, at, quote)) < size; at++) {
        const unsigned char c = (unsigned char)data[at];
        if (c == (unsigned char)quote || c == '\\') {
            cfxi_base_out_char(out, '\\');
            cfxi_base_out_char(out, (char)c);
        } else {
            out_escape(out, c);
        }
    }
    cfxi_base_out_char(out, quote);
}

void cfxi_base_out_repr_str(cfxi_out *out, const char *text, size_t size)
{
    cfxi_base_out_quoted(out, text, size, choose_quote(text, size));
}

void cfxi_base_out_repr_bytes(cfxi_out *out, const char *data, size_t size)
{
    cfxi_base_out_quoted_bytes(out, data, size, choose_quote(data, size));
}
