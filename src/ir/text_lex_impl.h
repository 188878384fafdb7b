/* text_lex_impl.h - the characters of the IR text, for its writer and its parser (docs/ir.md). */
#ifndef CFXI_TEXT_LEX_IMPL_H
#define CFXI_TEXT_LEX_IMPL_H

#include "base/base_impl.h"

typedef struct cfxi_slice {
    const char *data;
    size_t size;
} cfxi_slice;

typedef struct cfxi_lexer {
    const char *text;
    size_t size;
    size_t at;
    cfx_error *err;      /* never NULL */
    cfx_buffer scratch;  /* the quoted text read last, if it had escapes */
} cfxi_lexer;

/* ---- classes of characters ----------------------------------------------------------------- */

typedef enum cfxi_char_class {
    CFXI_CHAR_NAME = 1,    /* of a node's name: letters, digits, '_' */
    CFXI_CHAR_DOTTED = 2,  /* of a target, a host's name, a scope: those and '.' */
    CFXI_CHAR_NUMBER = 4,  /* those and '+', '-' */
    CFXI_CHAR_FILE = 8,    /* those and '/', '~' */
    CFXI_CHAR_BLANK = 16   /* between words */
} cfxi_char_class;
extern const uint8_t cfxi_ir_char_classes[256];

static inline bool cfxi_ir_is_char(cfxi_char_class class, char c)
{
    return (cfxi_ir_char_classes[(unsigned char)c] & class) != 0;
}
/* Whether the text consists of such characters alone, at least one: then it needs no quotes. */
bool cfxi_ir_is_run(cfxi_char_class class, const char *text, size_t size);

/* ---- reading ------------------------------------------------------------------------------- */

/* Skips blanks, line breaks and comments. */
void cfxi_ir_lex_skip(cfxi_lexer *lex);
/* Skips, then tells the next byte without taking it; -1 at the end. */
int cfxi_ir_lex_peek(cfxi_lexer *lex);
/* Skips, then takes `c` if it is next. */
bool cfxi_ir_lex_accept(cfxi_lexer *lex, char c);
/* Takes `c` or fails: "expected 'c' <where>, found ...". */
cfx_status cfxi_ir_lex_expect(cfxi_lexer *lex, char c, const char *where);
/* Takes as many such characters as there are, without skipping first. */
cfxi_slice cfxi_ir_lex_run(cfxi_lexer *lex, cfxi_char_class class);
/* Takes the quoted text that begins here; valid until the next one is read. */
cfx_status cfxi_ir_lex_quoted(cfxi_lexer *lex, bool bytes, cfxi_slice *out);

static inline bool cfxi_ir_slice_is(cfxi_slice s, const char *word)
{
    return strlen(word) == s.size && memcmp(s.data, word, s.size) == 0;
}

/* ---- failing ------------------------------------------------------------------------------- */

/* Fills lex->err: line, column, the message, the line itself and a caret under offset `at`. */
cfx_status cfxi_ir_lex_error(cfxi_lexer *lex, size_t at, cfx_status status, const char *format, ...)
    CFX_PRINTF(4, 5);

/* The line that `at` is in, and a caret under it, without a line break at the end. */
enum { CFXI_SHOWN_SIZE = 400 };
void cfxi_ir_lex_show(const cfxi_lexer *lex, size_t at, char out[CFXI_SHOWN_SIZE]);

/* What stands at the next place, for messages: "'foo'", "the end of the text". */
enum { CFXI_FOUND_SIZE = 48 };
const char *cfxi_ir_lex_found(cfxi_lexer *lex, char out[CFXI_FOUND_SIZE]);

/* The line that the offset is in, from 1. */
uint32_t cfxi_ir_lex_line(const cfxi_lexer *lex, size_t at);

/* Drops the byte order mark that some editors put first; columns are counted from behind it. */
void cfxi_ir_lex_skip_mark(cfxi_lexer *lex);

/* Fails if the text is not UTF-8 throughout. */
cfx_status cfxi_ir_lex_check(cfxi_lexer *lex);

#endif
