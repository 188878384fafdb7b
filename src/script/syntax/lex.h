/* lex.h - Python source to tokens, a logical line at a time.
 *
 * What is decided here, where Python leaves a choice or needs tables:
 *   - f-strings are read as Python 3.12 does (any quotes and comments inside a field), which takes
 *     all that earlier versions take;
 *   - names keep their spelling: Python would normalise them (NFKC), which matters for ligatures
 *     and the like only; of other characters than ASCII, those are refused that lie in blocks of
 *     punctuation and symbols;
 *   - \N{...} is refused (literal.c): it needs Unicode's table of names;
 *   - sources are UTF-8, ASCII or Latin-1; other encodings are refused.
 */
#ifndef CFXI_SCRIPT_LEX_H
#define CFXI_SCRIPT_LEX_H

#include "base/base_impl.h"

typedef enum cfxi_token_kind {
#define TOKEN(id, text) CFXI_TOK_##id,
#define KEYWORD(word) CFXI_TOK_##word,
#define SOFT(word)
#include "token.def"
#undef TOKEN
#undef KEYWORD
#undef SOFT
    CFXI_TOK_COUNT
} cfxi_token_kind;

/* Where a table of names begins: keywords, soft keywords, then what the source has. */
enum {
    CFXI_FIRST_KEYWORD = CFXI_TOK_False,
    CFXI_KEYWORDS = CFXI_TOK_COUNT - CFXI_FIRST_KEYWORD
};
typedef enum cfxi_soft_keyword {
    CFXI_SOFT_before_first = CFXI_KEYWORDS - 1,
#define KEYWORD(word)
#define SOFT(word) CFXI_SOFT_##word,
#include "base/keyword.def"
#undef KEYWORD
#undef SOFT
    CFXI_SOFT_end
} cfxi_soft_keyword;

enum {
    /* of STRING, FSTART, FTEXT */
    CFXI_STR_RAW = 1,
    CFXI_STR_BYTES = 2,
    CFXI_STR_UNICODE = 4, /* u"..." */
    CFXI_STR_FORMAT = 8,
    CFXI_STR_TRIPLE = 16,
    CFXI_STR_ESCAPES = 32, /* a backslash is in it, or in an FTEXT a doubled brace */
    CFXI_STR_WIDE = 64,    /* a byte over 127 is in it */
    /* of NUMBER */
    CFXI_NUM_FLOAT = 1,
    CFXI_NUM_IMAGINARY = 2,
    CFXI_NUM_BASED = 4,  /* 0x, 0o, 0b */
    CFXI_NUM_SPACED = 8  /* '_' is in it */
};

typedef struct cfxi_token {
    uint32_t start, size;   /* bytes of the source */
    uint32_t line, column;  /* of its first byte: lines from 1, columns from 0 */
    uint32_t value;         /* NAME and keywords: the name's number; STRING, FTEXT: its last line */
    uint8_t kind;           /* cfxi_token_kind */
    uint8_t flags;          /* CFXI_STR_*, CFXI_NUM_* */
    uint8_t prefix;         /* STRING: bytes before the quote */
} cfxi_token;

/* The value of a digit of any base up to 16; the byte must be one. */
static inline unsigned cfxi_syntax_digit_value(char c)
{
    return cfxi_base_is_digit(c) ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a') + 10;
}

/* How a token is called in messages: "':'", "a name". */
enum { CFXI_TOKEN_TEXT = 32 };
const char *cfxi_syntax_token_text(cfxi_token_kind kind, char out[CFXI_TOKEN_TEXT]);

/* ---- names (name_set.c) -------------------------------------------------------------------- */

typedef struct cfxi_name_entry {
    const char *text; /* terminated */
    uint32_t size;
    uint32_t hash;
} cfxi_name_entry;

/* A set of names; each has a number, and one terminated text in the arena. */
typedef struct cfxi_names {
    cfxi_arena *arena;
    cfxi_name_entry *entries;
    uint32_t count;
    uint32_t capacity;    /* of `entries` */
    cfxi_hash_set numbers;  /* of entries */
} cfxi_names;

/* Puts the keywords in; false if memory is out. The tables belong to the arena's allocator until
 * cfxi_syntax_names_free; the texts stay in the arena. */
bool cfxi_syntax_names_init(cfxi_names *names, cfxi_arena *arena);
void cfxi_syntax_names_free(cfxi_names *names);
/* The number of the name, which is added if need be; UINT32_MAX if memory is out. */
uint32_t cfxi_syntax_names_add(cfxi_names *names, const char *text, size_t size);
/* The name's own text; NULL if it is not there. */
const char *cfxi_syntax_names_find(const cfxi_names *names, const char *text, size_t size);

/* ---- the source (source_text.c) ------------------------------------------------------------ */

/* Zero bytes behind the source, so that the lexer may look ahead without counting. */
enum { CFXI_SOURCE_PAD = 16 };

/* Copies a source into the arena as the lexer wants it: UTF-8, no byte order mark, '\n' at the end
 * of each line, and zero bytes behind it. `is_text` says that it is UTF-8 whatever a coding comment
 * says, as a str of Python is. CFX_E_SYNTAX for a zero byte or bytes that are no UTF-8,
 * CFX_E_UNSUPPORTED for other encodings, CFX_E_LIMIT for 4 GiB and more. */
cfx_status cfxi_syntax_source_copy(cfxi_arena *arena, const char *source, size_t size, bool is_text,
                                   const char **text, size_t *text_size, cfx_error *err);

/* ---- the lexer (lex.c, lex_number.c, lex_string.c) ----------------------------------------- */

/* Python's own limits are 200 brackets, 100 levels of indentation, 150 f-strings. */
enum { CFXI_MAX_BRACKETS = 250, CFXI_MAX_INDENTS = 150, CFXI_MAX_MODES = 450 };

typedef struct cfxi_bracket {
    uint32_t start;
    char opener;
} cfxi_bracket;

/* Inside an f-string: its text, a field between braces, the format behind a field's colon. */
typedef enum cfxi_mode_kind {
    CFXI_MODE_TEXT,
    CFXI_MODE_FIELD,
    CFXI_MODE_SPEC
} cfxi_mode_kind;
typedef struct cfxi_mode {
    uint32_t start;    /* of the f-string or the brace */
    uint16_t brackets; /* that were open before it */
    uint8_t kind;      /* cfxi_mode_kind */
    uint8_t flags;     /* of the f-string: CFXI_STR_* */
    char quote;        /* of the f-string */
} cfxi_mode;

typedef struct cfxi_pylex {
    const char *text;       /* from cfxi_syntax_source_copy */
    const char *end;
    const char *at;
    const char *line_start;
    uint32_t line;
    cfxi_token *tokens;     /* of this logical line */
    size_t count;
    size_t capacity;
    cfxi_names *names;
    const cfx_allocator *allocator;
    bool nomem;
    bool unclosed;          /* the error is a bracket without an end */
    cfx_error error;        /* what an ERROR token stands for */
    uint32_t n_indents;
    uint32_t n_brackets;
    uint32_t n_modes;
    uint32_t indents[CFXI_MAX_INDENTS + 1];      /* columns, tabs to multiples of 8 */
    uint32_t alt_indents[CFXI_MAX_INDENTS + 1];  /* columns, a tab as one: to find mixed tabs */
    cfxi_bracket brackets[CFXI_MAX_BRACKETS];
    cfxi_mode modes[CFXI_MAX_MODES];
} cfxi_pylex;

/* `text` and `names` outlive the lexer. */
void cfxi_syntax_lex_init(cfxi_pylex *lex, const char *text, size_t size, cfxi_names *names,
                          const cfx_allocator *allocator);
void cfxi_syntax_lex_free(cfxi_pylex *lex);

/* Replaces lex->tokens by those of the next logical line: INDENT or DEDENTs first, NEWLINE last.
 * The last line is the DEDENTs that are open, and END; it comes again and again. Where the source
 * is wrong, the line ends with ERROR, and lex->error says why. False if memory is out. */
bool cfxi_syntax_lex_line(cfxi_pylex *lex);

/* ---- shared by its files ------------------------------------------------------------------- */

/* Notes the error at `at`, of which the first counts, and returns false. */
bool cfxi_syntax_lex_fail(cfxi_pylex *lex, const char *at, const char *format, ...)
    CFX_PRINTF(3, 4);

cfxi_token *cfxi_syntax_lex_grow(cfxi_pylex *lex);  /* NULL: memory is out */

/* A token that begins at `start`, which is in the present line, and ends before `end`. */
static inline cfxi_token *cfxi_syntax_lex_emit(cfxi_pylex *lex, cfxi_token_kind kind,
                                               const char *start, const char *end)
{
    cfxi_token *t =
        lex->count < lex->capacity ? &lex->tokens[lex->count] : cfxi_syntax_lex_grow(lex);
    if (!t)
        return NULL;
    lex->count++;
    t->start = (uint32_t)(start - lex->text);
    t->size = (uint32_t)(end - start);
    t->line = lex->line;
    t->column = (uint32_t)(start - lex->line_start);
    t->value = lex->line;
    t->kind = (uint8_t)kind;
    t->flags = 0;
    t->prefix = 0;
    return t;
}

/* The number that begins at lex->at. */
bool cfxi_syntax_lex_number(cfxi_pylex *lex);
/* The string whose prefix begins at lex->at and whose quote is at `quote`. */
bool cfxi_syntax_lex_string(cfxi_pylex *lex, const char *quote);
/* The text of the f-string or format that we are in, up to what ends it. */
bool cfxi_syntax_lex_ftext(cfxi_pylex *lex);

#endif
