/* text_parse_value.c - the values of the IR text: scalars, names, and what opens a container. */
#include "text_parse_impl.h"

/* ---- failing ------------------------------------------------------------------------------- */

cfx_status cfxi_ir_parse_nomem(cfxi_parser *p) { return cfxi_base_nomem(p->lex.err); }

/* Hands on what the core reported, with the place in the text. */
cfx_status cfxi_ir_parse_core_failed(cfxi_parser *p, size_t at)
{
    const cfx_error why = p->core;
    if (why.status == CFX_E_NOMEM)
        return cfxi_ir_parse_nomem(p);
    if (why.status == CFX_E_LIMIT || why.status == CFX_E_HOST)
        return cfxi_ir_lex_error(&p->lex, at, why.status, "%.190s", why.message);
    return cfxi_ir_lex_error(&p->lex, at, CFX_E_SYNTAX, "%.190s", why.message);
}

cfx_status cfxi_ir_parse_unexpected(cfxi_parser *p, const char *wanted)
{
    char found[CFXI_FOUND_SIZE];
    const char *what = cfxi_ir_lex_found(&p->lex, found);
    return cfxi_ir_lex_error(&p->lex, p->lex.at, CFX_E_SYNTAX, "expected %s, found %s", wanted,
                             what);
}

/* ---- the stacks ---------------------------------------------------------------------------- */

cfx_status cfxi_ir_parse_push(cfxi_parser *p, cfxi_frame_kind kind, uint32_t depth, size_t at)
{
    if (depth > CFX_MAX_DEPTH)
        return cfxi_ir_lex_error(&p->lex, at, CFX_E_LIMIT,
                                 "containers nest more than %d deep here; move the inner ones into "
                                 "separate nodes",
                                 CFX_MAX_DEPTH);
    if (!cfxi_base_vec_reserve(&p->frames, 1, sizeof(cfxi_text_frame), p->allocator))
        return cfxi_ir_parse_nomem(p);
    p->frames.size++;
    *cfxi_ir_parse_top(p) =
        (cfxi_text_frame){.kind = kind, .depth = depth, .at = at, .base = p->values.size};
    return CFX_OK;
}

/* A finished value; INVALID hands on why it could not be made. */
cfx_status cfxi_ir_parse_push_value(cfxi_parser *p, cfx_value v, size_t at)
{
    if (v.kind == CFX_KIND_INVALID)
        return cfxi_ir_parse_core_failed(p, at);
    if (!cfxi_base_vec_reserve(&p->values, 1, sizeof v, p->allocator))
        return cfxi_ir_parse_nomem(p);
    ((cfx_value *)p->values.data)[p->values.size++] = v;
    return CFX_OK;
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* A node that has a name and can be referred to, but is not on the list yet. */
static cfx_node *declare(cfxi_parser *p, cfxi_name *name)
{
    cfx_node *n = cfxi_base_arena_alloc(&p->graph->arena, sizeof *n);
    if (!n)
        return NULL;
    memset(n, 0, sizeof *n);
    n->graph = p->graph;
    n->name = name;
    name->owner = n;
    return n;
}

static bool is_named(const cfx_node *n, const cfx_graph *g, cfxi_slice text)
{
    return n && n->graph == g && n->name->size == text.size &&
           memcmp(n->name->data, text.data, text.size) == 0;
}

cfx_status cfxi_ir_parse_find_node(cfxi_parser *p, cfxi_slice text, cfx_node **n, bool *is_new)
{
    cfx_node **recent = &p->recent[cfxi_base_hash_bytes(text.data, text.size) % CFXI_PARSE_RECENT];
    *is_new = false;
    *n = *recent;
    if (is_named(*n, p->graph, text))
        return CFX_OK;
    cfxi_name *name = cfxi_ir_namespace_exact(&p->graph->names, text.data, text.size, &p->core);
    if (!name)
        return cfxi_ir_parse_nomem(p);
    *is_new = !name->owner;
    *n = name->owner ? name->owner : declare(p, name);
    *recent = *n;
    return *n ? CFX_OK : cfxi_ir_parse_nomem(p);
}

/* "%name" with the '%' taken: bare or quoted. */
cfx_status cfxi_ir_parse_node_name(cfxi_parser *p, cfxi_slice *name)
{
    cfxi_lexer *lex = &p->lex;
    if (lex->at < lex->size && lex->text[lex->at] == '"')
        return cfxi_ir_lex_quoted(lex, false, name);
    *name = cfxi_ir_lex_run(lex, CFXI_CHAR_NAME);
    return name->size ? CFX_OK : cfxi_ir_parse_unexpected(p, "the name of a node after '%'");
}

static cfx_status read_node_value(cfxi_parser *p)
{
    const size_t at = p->lex.at++;
    cfxi_slice name;
    cfx_node *n;
    bool is_new;
    CFX_TRY(cfxi_ir_parse_node_name(p, &name));
    CFX_TRY(cfxi_ir_parse_find_node(p, name, &n, &is_new));
    if (is_new) {
        if (!cfxi_base_vec_reserve(&p->pending, 1, sizeof(cfxi_text_pending), p->allocator))
            return cfxi_ir_parse_nomem(p);
        ((cfxi_text_pending *)p->pending.data)[p->pending.size++] = (cfxi_text_pending){n, at};
    }
    return cfxi_ir_parse_push_value(p, cfx_value_node(n), at);
}

/* ---- scalars ------------------------------------------------------------------------------- */

static cfx_status read_number(cfxi_parser *p)
{
    const size_t at = p->lex.at;
    const cfxi_slice s = cfxi_ir_lex_run(&p->lex, CFXI_CHAR_NUMBER);
    size_t digits = s.data[0] == '-';
    double f;
    while (digits < s.size && cfxi_base_is_digit(s.data[digits]))
        digits++;
    if (digits == s.size && cfxi_base_is_digit(s.data[s.size - 1]))
        return cfxi_ir_parse_push_value(p, cfx_value_integer(p->graph, s.data, s.size, &p->core),
                                        at);
    if (s.data[0] != '+' && cfxi_base_parse_float(s.data, s.size, &f) && f == f)
        return cfxi_ir_parse_push_value(p, cfx_value_float(f), at);
    return cfxi_ir_lex_error(&p->lex, at, CFX_E_SYNTAX, "'%.*s' is not a number; write 12, -1.5, "
                             "1e-05, inf or nan", s.size > 40 ? 40 : (int)s.size, s.data);
}

/* "nan", or "nan(0x7ff8000000000001)" with the bits of one that is not the usual. */
static cfx_status read_nan(cfxi_parser *p, size_t at)
{
    uint64_t bits = 0x7ff8000000000000u;
    double f;
    if (p->lex.at < p->lex.size && p->lex.text[p->lex.at] == '(') {
        p->lex.at++;
        const cfxi_slice s = cfxi_ir_lex_run(&p->lex, CFXI_CHAR_NAME);
        bool good = s.size == 18 && memcmp(s.data, "0x", 2) == 0;
        bits = 0;
        for (size_t i = 2; good && i < s.size; i++) {
            static const char digits[] = "0123456789abcdef";
            const char *digit = strchr(digits, s.data[i]);
            good = digit != NULL;
            bits = bits << 4 | (uint64_t)(digit ? digit - digits : 0);
        }
        memcpy(&f, &bits, sizeof f);
        if (!good || f == f)
            return cfxi_ir_lex_error(&p->lex, at, CFX_E_SYNTAX,
                                     "the bits of a nan are 16 hexadecimal digits, as in "
                                     "nan(0x7ff8000000000001)");
        CFX_TRY(cfxi_ir_lex_expect(&p->lex, ')', "after the bits of a nan"));
    }
    memcpy(&f, &bits, sizeof f);
    return cfxi_ir_parse_push_value(p, cfx_value_float(f), at);
}

static cfx_status read_string(cfxi_parser *p)
{
    const size_t at = p->lex.at;
    cfxi_slice s;
    CFX_TRY(cfxi_ir_lex_quoted(&p->lex, false, &s));
    return cfxi_ir_parse_push_value(p, cfx_value_str(p->graph, s.data, s.size, &p->core), at);
}

static cfx_status read_bytes(cfxi_parser *p)
{
    const size_t at = p->lex.at++;
    cfxi_slice s;
    CFX_TRY(cfxi_ir_lex_quoted(&p->lex, true, &s));
    return cfxi_ir_parse_push_value(p, cfx_value_bytes(p->graph, s.data, s.size, &p->core), at);
}

/* A word of the class, or quoted text. */
cfx_status cfxi_ir_parse_word(cfxi_parser *p, cfxi_char_class class, const char *wanted,
                              cfxi_slice *s)
{
    if (cfxi_ir_lex_peek(&p->lex) == '"')
        return cfxi_ir_lex_quoted(&p->lex, false, s);
    *s = cfxi_ir_lex_run(&p->lex, class);
    return s->size ? CFX_OK : cfxi_ir_parse_unexpected(p, wanted);
}

static cfx_status read_host(cfxi_parser *p)
{
    const size_t at = p->lex.at++;
    cfxi_slice s;
    CFX_TRY(cfxi_ir_parse_word(p, CFXI_CHAR_DOTTED, "a qualified name after '&'", &s));
    return cfxi_ir_parse_push_value(p, cfx_value_name(p->graph, s.data, s.size, &p->core), at);
}

static cfx_status read_device(cfxi_parser *p, size_t at)
{
    cfxi_slice s;
    CFX_TRY(cfxi_ir_lex_expect(&p->lex, '(', "after device"));
    if (cfxi_ir_lex_peek(&p->lex) != '"')
        return cfxi_ir_parse_unexpected(p, "a quoted device, as in device(\"cuda:0\")");
    CFX_TRY(cfxi_ir_lex_quoted(&p->lex, false, &s));
    CFX_TRY(cfxi_ir_parse_push_value(p, cfx_value_device(p->graph, s.data, s.size, &p->core), at));
    return cfxi_ir_lex_expect(&p->lex, ')', "after the device");
}

/* ---- words --------------------------------------------------------------------------------- */

typedef struct word_row {
    const char *word;
    cfx_value value;
} word_row;

#define SCALAR(kind_, i_) {.kind = CFX_KIND_##kind_, .as = {.i = i_}}
static const word_row constants[] = {
    {"None", SCALAR(NONE, 0)},
    {"True", SCALAR(BOOL, 1)},
    {"False", SCALAR(BOOL, 0)},
#define CFX_DTYPE(id, name, size, brief) {"torch." name, SCALAR(DTYPE, CFX_DTYPE_##id)},
#include <cfx/dtype.def>
#undef CFX_DTYPE
#define CFX_LAYOUT(id, name) {"torch." name, SCALAR(LAYOUT, CFX_LAYOUT_##id)},
#define CFX_MEMORY_FORMAT(id, name)                                                                \
    {"torch." name, SCALAR(MEMORY_FORMAT, CFX_MEMORY_FORMAT_##id)},
#include <cfx/layout.def>
#undef CFX_LAYOUT
#undef CFX_MEMORY_FORMAT
};
#undef SCALAR

/* Containers that are written as a call of their kind's name. */
static const cfx_kind calls[] = {CFX_KIND_COMPLEX, CFX_KIND_SLICE, CFX_KIND_RANGE, CFX_KIND_SET,
                                 CFX_KIND_FROZENSET, CFX_KIND_NAMEDTUPLE};

static cfx_status open_seq(cfxi_parser *p, cfx_kind kind, size_t at)
{
    CFX_TRY(cfxi_ir_parse_push(p, CFXI_FRAME_SEQ, cfxi_ir_parse_top(p)->depth + 1, at));
    cfxi_ir_parse_top(p)->seq = kind;
    return CFX_OK;
}

cfx_status cfxi_ir_parse_open_graph(cfxi_parser *p, size_t at)
{
    if (p->regions > CFX_MAX_REGION_DEPTH)
        return cfxi_ir_lex_error(&p->lex, at, CFX_E_LIMIT, "regions nest more than %d deep here",
                                 CFX_MAX_REGION_DEPTH);
    CFX_TRY(cfxi_ir_parse_push(p, CFXI_FRAME_GRAPH, 0, at));
    cfxi_text_frame *f = cfxi_ir_parse_top(p);
    f->base = p->pending.size;
    f->graph = cfx_graph_new(p->allocator, p->host, &p->core);
    if (!f->graph)
        return cfxi_ir_parse_nomem(p);
    p->graph = f->graph;
    p->regions++;
    return CFX_OK;
}

static cfx_status unknown_word(cfxi_parser *p, cfxi_slice s, size_t at)
{
    const int n = s.size > 40 ? 40 : (int)s.size;
    return cfxi_ir_lex_error(&p->lex, at, CFX_E_SYNTAX,
                             "'%.*s' is not a value; a string is \"%.*s\", "
                             "a node %%%.*s, a function or class &%.*s",
                             n, s.data, n, s.data, n, s.data, n, s.data);
}

static cfx_status read_word_value(cfxi_parser *p)
{
    cfxi_lexer *lex = &p->lex;
    const size_t at = lex->at;
    const cfxi_slice s = cfxi_ir_lex_run(lex, CFXI_CHAR_DOTTED);
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        if (cfxi_ir_slice_is(s, constants[i].word))
            return cfxi_ir_parse_push_value(p, constants[i].value, at);
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (!cfxi_ir_slice_is(s, cfx_kind_name(calls[i])))
            continue;
        CFX_TRY(cfxi_ir_lex_expect(lex, '(', "here"));
        return open_seq(p, calls[i], at);
    }
    if (cfxi_ir_slice_is(s, "..."))
        return cfxi_ir_parse_push_value(p, cfx_value_ellipsis(), at);
    if (cfxi_ir_slice_is(s, "nan"))
        return read_nan(p, at);
    if (cfxi_ir_slice_is(s, "device"))
        return read_device(p, at);
    if (cfxi_ir_slice_is(s, "graph")) {
        CFX_TRY(cfxi_ir_lex_expect(lex, '{', "after graph"));
        return cfxi_ir_parse_open_graph(p, at);
    }
    lex->at = at;
    if (cfxi_ir_slice_is(s, "inf") || s.data[0] == '.')
        return read_number(p);
    return unknown_word(p, s, at);
}

/* Reads a scalar, or opens a container or a region. */
cfx_status cfxi_ir_parse_value(cfxi_parser *p)
{
    cfxi_lexer *lex = &p->lex;
    const int c = cfxi_ir_lex_peek(lex);
    const size_t at = lex->at;
    switch (c) {
    case '%':
        return read_node_value(p);
    case '&':
        return read_host(p);
    case '"':
        return read_string(p);
    case '[':
        lex->at++;
        return open_seq(p, CFX_KIND_LIST, at);
    case '(':
        lex->at++;
        return open_seq(p, CFX_KIND_TUPLE, at);
    case '{':
        lex->at++;
        return open_seq(p, CFX_KIND_DICT, at);
    case '\'':
        return cfxi_ir_lex_error(lex, at, CFX_E_SYNTAX, "strings need double quotes");
    case 'b':
        if (at + 1 < lex->size && lex->text[at + 1] == '"')
            return read_bytes(p);
        return read_word_value(p);
    case '-':
    case '+':
        return read_number(p);
    default:
        if (c >= '0' && c <= '9')
            return read_number(p);
        return c >= 0 && cfxi_ir_is_char(CFXI_CHAR_DOTTED, (char)c)
                   ? read_word_value(p) : cfxi_ir_parse_unexpected(p, "a value");
    }
}
