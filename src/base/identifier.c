/* identifier.c - what may be a name: identifiers of ASCII and of Python, and Python's keywords. */
#include "base_impl.h"

#include <stdlib.h>

size_t cfxi_base_identifier_size(const char *text, size_t size)
{
    size_t n = 0;
    if (size > 0 && cfxi_base_is_ident_start(text[0]))
        while (n < size && cfxi_base_is_ident(text[n]))
            n++;
    return n;
}

bool cfxi_base_is_identifier(const char *text, size_t size)
{
    return size > 0 && cfxi_base_identifier_size(text, size) == size;
}

/* ---- beyond ASCII -------------------------------------------------------------------------- */

/* Unicode's tables are large, so both are approximations: the first refuses only what is certainly
 * not a letter, the second takes only what certainly is one. */

bool cfxi_base_may_be_letter(uint32_t code)
{
    /* Blocks in which no letters, marks or digits are, or next to none. */
    static const uint32_t blocks[][2] = {
        {0x80, 0xa9},       {0xab, 0xb4},       {0xb6, 0xb6},       {0xb8, 0xb9},
        {0xbb, 0xbf},       {0xd7, 0xd7},       {0xf7, 0xf7},       {0x2000, 0x203e},
        {0x2041, 0x2053},   {0x2055, 0x2070},   {0x2072, 0x207e},   {0x2080, 0x208f},
        {0x20a0, 0x20cf},   {0x2190, 0x2bff},   {0x2e00, 0x2e7f},   {0x3000, 0x3004},
        {0x3008, 0x3020},   {0xd800, 0xf8ff},   {0xfe10, 0xfe1f},   {0xfe35, 0xfe4c},
        {0xfe50, 0xfe6f},   {0xfeff, 0xff0f},   {0xff1a, 0xff20},   {0xfff0, 0xffff},
        {0x1f000, 0x1faff}, {0xe0000, 0xe00ff}, {0xe01f0, 0x10ffff},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        if (code >= blocks[i][0] && code <= blocks[i][1])
            return false;
    }
    return true;
}

/* Letters that may begin a name, of scripts that names are written in, without those that Python
 * replaces by others when it reads a name (NFKC): it takes \u00aa for `a`. */
bool cfxi_base_is_letter(uint32_t code)
{
    static const uint32_t blocks[][2] = {
        {0xc0, 0xd6},     {0xd8, 0xf6},     {0xf8, 0x131},    {0x134, 0x13e},   {0x141, 0x148},
        {0x14a, 0x17e},   {0x180, 0x1c3},   {0x1cd, 0x1f0},   {0x1f4, 0x2af},   {0x386, 0x386},
        {0x388, 0x38a},   {0x38e, 0x3a1},   {0x3a3, 0x3ce},   {0x400, 0x481},   {0x48a, 0x52f},
        {0x531, 0x556},   {0x561, 0x586},   {0x5d0, 0x5ea},   {0x620, 0x64a},   {0x904, 0x939},
        {0xe01, 0xe30},   {0x3041, 0x3096}, {0x30a1, 0x30fa}, {0x3400, 0x4dbf}, {0x4e00, 0x9fef},
        {0xac00, 0xd7a3}, {0x20000, 0x2a6d6},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        if (code >= blocks[i][0] && code <= blocks[i][1])
            return true;
    }
    return false;
}

bool cfxi_base_is_python_identifier(const char *text, size_t size)
{
    if (size == 0 || cfxi_base_is_digit(text[0]))
        return false;
    for (size_t i = 0; i < size;) {
        if ((unsigned char)text[i] < 0x80) {
            if (!cfxi_base_is_ident(text[i++]))
                return false;
            continue;
        }
        uint32_t code;
        size_t length = cfxi_base_utf8_decode(text + i, size - i, &code);
        if (length == 0 || !cfxi_base_is_letter(code))
            return false;
        i += length;
    }
    return true;
}

bool cfxi_base_is_python_name(const char *text, size_t size)
{
    static const char constant[] = "__debug__";  /* the one name that Python never assigns */
    return cfxi_base_is_python_identifier(text, size) && !cfxi_base_is_keyword(text, size) &&
           !(size == sizeof constant - 1 && memcmp(text, constant, size) == 0);
}

bool cfxi_base_is_python_path(const char *text, size_t size)
{
    const char *end = text + size;
    for (const char *part = text;; part++) {
        const char *dot = memchr(part, '.', (size_t)(end - part));
        const size_t length = (size_t)((dot ? dot : end) - part);
        if (!cfxi_base_is_python_identifier(part, length) ||
            (part == text && cfxi_base_is_keyword(part, length)))
            return false;
        if (!dot)
            return true;
        part = dot;
    }
}

bool cfxi_base_is_python_parameter(const char *text, size_t size)
{
    size_t stars = 0;
    while (stars < size && stars < 2 && text[stars] == '*')
        stars++;
    return cfxi_base_is_python_name(text + stars, size - stars);
}

/* ---- words --------------------------------------------------------------------------------- */

typedef struct word_key {
    const char *text;
    size_t size;
} word_key;

/* Most words differ in the first letter, so no length is computed first. */
static int compare_word(const void *key, const void *row)
{
    const word_key *k = key;
    const unsigned char *word = *(const unsigned char *const *)row;
    for (size_t i = 0; i < k->size; i++) {
        const int order = (unsigned char)k->text[i] - word[i];
        if (order != 0 || word[i] == '\0')
            return order ? order : 1;
    }
    return word[k->size] == '\0' ? 0 : -1;
}

bool cfxi_base_is_word_of(const char *const *words, size_t n, const char *text, size_t size)
{
    const word_key key = {text, size};
    return bsearch(&key, words, n, sizeof *words, compare_word) != NULL;
}

bool cfxi_base_is_keyword(const char *text, size_t size)
{
    static const char *const keywords[] = {
#define KEYWORD(word) #word,
#define SOFT(word)
#include "keyword.def"
#undef KEYWORD
#undef SOFT
    };
    enum { SHORTEST = 2, LONGEST = 8 };
    return size >= SHORTEST && size <= LONGEST &&
           cfxi_base_is_word_of(keywords, sizeof keywords / sizeof *keywords, text, size);
}
