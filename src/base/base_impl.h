/* base_impl.h - what the rooms share: sizes, arena, growing arrays, maps, text output. */
#ifndef CFXI_BASE_IMPL_H
#define CFXI_BASE_IMPL_H

#include "map_impl.h"

#include <cfx/base.h>

#include <stdarg.h>
#include <string.h>

/* Hands a failing status up; only where nothing needs cleaning up. */
#define CFX_TRY(expr)                                                                              \
    do {                                                                                           \
        cfx_status try_status_ = (expr);                                                           \
        if (try_status_ != CFX_OK)                                                                 \
            return try_status_;                                                                    \
    } while (0)

/* ---- memory (alloc.c) ---------------------------------------------------------------------- */

/* `a * b + c`, or false if it does not fit: the one place where sizes are checked. */
static inline bool cfxi_base_mul_size(size_t a, size_t b, size_t c, size_t *out)
{
    size_t product;
    return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(product, c, out);
}

/* The greatest common divisor of `a` and |b|; of two zeros it is 0. */
static inline uint64_t cfxi_base_gcd(uint64_t a, int64_t b)
{
    for (uint64_t other = b < 0 ? 0 - (uint64_t)b : (uint64_t)b; other;) {
        const uint64_t rest = a % other;
        a = other;
        other = rest;
    }
    return a;
}

const cfx_allocator *cfxi_base_allocator(const cfx_allocator *allocator);  /* malloc's for NULL */
void *cfxi_base_alloc(const cfx_allocator *allocator, size_t size);   /* NULL if it fails */
void cfxi_base_free(const cfx_allocator *allocator, void *ptr, size_t size);
/* Advises the system to take large pages for memory that is fresh: fewer faults to fill it, and
 * fewer misses in tables of pages to read it. */
void cfxi_base_prefer_large_pages(void *block, size_t size);

/* Sets CFX_E_NOMEM and returns it. */
cfx_status cfxi_base_nomem(cfx_error *err);

/* For what an earlier call should have made: CFX_OK if it is there. If it is NULL, the reason that
 * *err has stays, so that a chain of calls reports the first; else it is CFX_E_VALUE. */
cfx_status cfxi_base_expect(const void *given, const char *what, cfx_error *err);

/* For a callback that failed with `status`: fills *err if the callback has not. */
cfx_status cfxi_base_failed(cfx_error *err, cfx_status status);

/* Where a function that must know why something failed lets it be said: `own` if the caller does
 * not ask. */
static inline cfx_error *cfxi_base_error_or(cfx_error *err, cfx_error *own)
{
    own->status = CFX_OK;
    return err ? err : own;
}

/* A growing array of fixed-size items. */
typedef struct cfxi_vec {
    void *data;
    size_t size;
    size_t capacity;
} cfxi_vec;

/* Makes room for `more` further items of `item_size`; false if memory is out. */
bool cfxi_base_vec_reserve(cfxi_vec *vec, size_t more, size_t item_size,
                           const cfx_allocator *allocator);
void cfxi_base_vec_free(cfxi_vec *vec, size_t item_size, const cfx_allocator *allocator);

/* ---- arena (arena.c) ----------------------------------------------------------------------- */

/* Bump allocation in chunks, with a free list per size class: a freed block is handed out again
 * for the same class, so editing in place leaves memory flat. Blocks are 8-byte aligned. Blocks
 * over CFXI_ARENA_LARGE go to the allocator directly. */
enum {
    CFXI_ARENA_CHUNK = 64 * 1024,
    CFXI_ARENA_LARGE = 8 * 1024,
    CFXI_ARENA_FINE = 512,  /* up to here a class for each multiple of 8 */
    CFXI_ARENA_CLASSES = 124
};

typedef struct cfxi_arena {
    const cfx_allocator *allocator;
    struct cfxi_chunk *chunks;
    struct cfxi_large *large;
    char *next;
    char *end;
    size_t bytes;                           /* held from the allocator */
    void *free_lists[CFXI_ARENA_CLASSES];
} cfxi_arena;

void cfxi_base_arena_init(cfxi_arena *arena, const cfx_allocator *allocator);
void cfxi_base_arena_release(cfxi_arena *arena);                  /* frees everything */
void cfxi_base_arena_free(cfxi_arena *arena, void *ptr, size_t size);  /* NULL is allowed */
void *cfxi_base_arena_alloc_slowly(cfxi_arena *arena, size_t size);

/* A zeroed array of `n` items, at least one byte; NULL if memory is out. */
void *cfxi_base_arena_zeros(cfxi_arena *arena, size_t n, size_t item_size);

/* An allocator that takes blocks from the arena and gives them back to it. */
cfx_allocator cfxi_base_arena_allocator(cfxi_arena *arena);

/* NULL if memory is out. Most blocks are small and come off the current chunk. */
static inline void *cfxi_base_arena_alloc(cfxi_arena *arena, size_t size)
{
    size_t units = (size + 7) / 8;
    if (size - 1 >= CFXI_ARENA_FINE || arena->free_lists[units - 1] ||
        (size_t)(arena->end - arena->next) < units * 8)
        return cfxi_base_arena_alloc_slowly(arena, size);
    void *block = arena->next;
    arena->next += units * 8;
    return block;
}

/* ---- text output (sink.c) ------------------------------------------------------------------ */

/* Buffered output to a sink. The first failure sticks: later writes do nothing, so a printer
 * checks once, at cfxi_base_out_end. */
typedef struct cfxi_out {
    cfx_sink sink;
    cfx_status status;
    size_t used;
    char buffer[4096];
} cfxi_out;

/* Writes to a sink whoever made it: CFX_E_VALUE for one without a function. */
cfx_status cfxi_base_sink_write(cfx_sink sink, const char *data, size_t size);

void cfxi_base_out_begin(cfxi_out *out, cfx_sink sink);
void cfxi_base_out_write_long(cfxi_out *out, const char *data, size_t size);
void cfxi_base_out_printf(cfxi_out *out, const char *format, ...) CFX_PRINTF(2, 3);
cfx_status cfxi_base_out_end(cfxi_out *out, cfx_error *err);  /* flushes; sets *err if it failed */
cfx_sink cfxi_base_out_sink(cfxi_out *out);              /* a sink that writes to `out` */
void cfxi_base_out_spaces(cfxi_out *out, size_t n);

/* Inline, so that a literal is copied by a move or two. */
static inline void cfxi_base_out_write(cfxi_out *out, const char *data, size_t size)
{
    if (size > sizeof out->buffer || size > sizeof out->buffer - out->used) {
        cfxi_base_out_write_long(out, data, size);
        return;
    }
    if (size > 0)
        memcpy(out->buffer + out->used, data, size);
    out->used += size;
}
static inline void cfxi_base_out_char(cfxi_out *out, char c)
{
    if (out->used < sizeof out->buffer)
        out->buffer[out->used++] = c;
    else
        cfxi_base_out_write_long(out, &c, 1);
}
static inline void cfxi_base_out_str(cfxi_out *out, const char *text)
{
    cfxi_base_out_write(out, text, strlen(text));
}

/* ---- numbers and characters (number.c, format_spec.c, utf8.c) ------------------------------ */

enum { CFXI_NUMBER_SIZE = 32 };

/* Decimal digits of `i`; the shortest digits that read back as `f`, as Python's repr spells them
 * ("1.0", "1e-05", "inf", "nan", "-0.0"). Both return the length; `out` is terminated. Neither
 * looks at the locale. */
size_t cfxi_base_format_int(int64_t i, char out[CFXI_NUMBER_SIZE]);
size_t cfxi_base_format_float(double f, char out[CFXI_NUMBER_SIZE]);

/* Reads a float of Python's spelling (digits, '.', exponent, "inf", "nan", a sign), exactly `size`
 * bytes; false if it is none. */
bool cfxi_base_parse_float(const char *text, size_t size, double *f);
bool cfxi_base_parse_int(const char *text, size_t size, int64_t *i);  /* false if it does not fit */

/* Python's little language of formats (format_spec.c): ">8.2f". */
typedef struct cfxi_spec {
    char fill[4];
    size_t fill_size;
    char align;      /* 0: the type's own */
    char sign;
    char group;      /* ',', '_' or 0 */
    char type;       /* 0: none */
    bool alternate, zero;
    int width;
    int precision;   /* -1: none */
} cfxi_spec;

bool cfxi_base_spec_read(const char *text, size_t size, cfxi_spec *s);  /* false: it is none */
/* A number of it: false if it is larger than any sane program has it. */
bool cfxi_base_spec_digits(const char **at, const char *end, int *n);
/* Each appends; fails with CFX_E_VALUE, in Python's words, or CFX_E_NOMEM. */
cfx_status cfxi_base_spec_int(const cfxi_spec *s, int64_t i, cfx_buffer *out, cfx_error *err);
cfx_status cfxi_base_spec_float(const cfxi_spec *s, double f, cfx_buffer *out, cfx_error *err);
cfx_status cfxi_base_spec_text(const cfxi_spec *s, const char *text, size_t size, cfx_buffer *out,
                               cfx_error *err);

/* Decodes one UTF-8 character (surrogates allowed, overlong forms not); 0 if it is invalid. */
size_t cfxi_base_utf8_decode(const char *text, size_t size, uint32_t *code);
size_t cfxi_base_utf8_encode(uint32_t code, char out[4]);
bool cfxi_base_utf8_valid(const char *text, size_t size);
/* Replaces every byte that is not UTF-8 by '?', in place. */
void cfxi_base_utf8_clean(char *text);
/* Whether Python's repr shows the character as it is. */
bool cfxi_base_is_printable(uint32_t code);
/* Columns that a terminal needs for valid UTF-8 text: one for each character. */
size_t cfxi_base_text_width(const char *text, size_t size);

/* Writes `text` as Python's repr would write the str (or bytes, with the b prefix). */
void cfxi_base_out_repr_str(cfxi_out *out, const char *text, size_t size);
void cfxi_base_out_repr_bytes(cfxi_out *out, const char *data, size_t size);
/* The same escapes between quotes of the caller's choice. */
void cfxi_base_out_quoted(cfxi_out *out, const char *text, size_t size, char quote);
void cfxi_base_out_quoted_bytes(cfxi_out *out, const char *data, size_t size, char quote);

/* ---- names (identifier.c) ------------------------------------------------------------------ */

static inline bool cfxi_base_is_ident_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static inline bool cfxi_base_is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool cfxi_base_is_ident(char c)
{
    return cfxi_base_is_ident_start(c) || cfxi_base_is_digit(c);
}
/* The bytes of the identifier that `text` begins with; 0 if there is none. */
size_t cfxi_base_identifier_size(const char *text, size_t size);
/* An identifier of ASCII, as C and names of nodes have it. Keywords count. */
bool cfxi_base_is_identifier(const char *text, size_t size);
/* The gate for text that becomes part of generated Python. Whatever passes is one name to Python,
 * and this very name: no character ends it, turns it around or is replaced by another one. An
 * identifier, with letters of other scripts, too; keywords count. */
bool cfxi_base_is_python_identifier(const char *text, size_t size);
/* Likewise, but not a keyword: what a variable or a keyword argument may be called. */
bool cfxi_base_is_python_name(const char *text, size_t size);
/* `torch.ops.aten.random.from`: identifiers with dots between them. A keyword may not come first;
 * who writes the path must take one further on with getattr. */
bool cfxi_base_is_python_path(const char *text, size_t size);
/* `x`, `*args`, `**kwargs` */
bool cfxi_base_is_python_parameter(const char *text, size_t size);
/* Whether Python surely takes a character beyond ASCII in a name, and whether it may. */
bool cfxi_base_is_letter(uint32_t code);
bool cfxi_base_may_be_letter(uint32_t code);
/* A keyword of Python wherever it stands: `match` is none. */
bool cfxi_base_is_keyword(const char *text, size_t size);
/* Whether the text is one of the `n` words, which are sorted. */
bool cfxi_base_is_word_of(const char *const *words, size_t n, const char *text, size_t size);

/* ---- sorting (python_sort.c) --------------------------------------------------------------- */

/* Whether the item that was at `a` is less than that at `b`: 1, 0, or -1 if it fails. */
typedef int cfxi_less_fn(void *ctx, size_t a, size_t b);
/* From so many items on, what is no order (NaN) gives another result than in Python. */
enum { CFXI_SHORT_SORT = 64 };
/* order[i] becomes the number of the item that comes i-th, as after Python's list.sort; `room` has
 * n places, too. False if `less` failed. */
bool cfxi_base_sort(size_t *order, size_t *room, size_t n, bool reverse, cfxi_less_fn *less,
                    void *ctx);

#endif
