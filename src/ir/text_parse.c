/* text_parse.c - reads the IR text (docs/ir.md) back into a graph.
 *
 * One pass over the text, with a stack of what is open instead of recursion, so that no input can
 * exhaust the C stack. Finished values wait on a second stack until what holds them is closed.
 *
 * A node may be mentioned before the line that defines it (the graph is then not well formed, but
 * the text must keep it): such a node exists from its first mention on, and is put on the graph's
 * list when its line comes.
 */
#include "callee_impl.h"
#include "text_parse_impl.h"

#include <stdlib.h>

/* ---- locations ----------------------------------------------------------------------------- */

/* A terminated copy, for functions that take one. */
static cfx_status copy_word(cfxi_parser *p, size_t which, cfxi_slice s, size_t at)
{
    cfx_buffer *word = &p->words[which];
    if (s.size && memchr(s.data, '\0', s.size))
        return cfxi_ir_lex_error(&p->lex, at, CFX_E_SYNTAX,
                                 "the name of a file or scope cannot contain \\x00");
    word->size = 0;
    if (word->capacity)
        word->data[0] = '\0';
    return cfx_buffer_append(word, s.data, s.size) == CFX_OK ? CFX_OK : cfxi_ir_parse_nomem(p);
}

static cfx_status read_scopes(cfxi_parser *p, cfx_node *n)
{
    uint32_t scope = 0;
    do {
        cfxi_slice s;
        cfxi_ir_lex_skip(&p->lex);
        const size_t at = p->lex.at;
        CFX_TRY(cfxi_ir_parse_word(p, CFXI_CHAR_DOTTED, "the path of a module", &s));
        CFX_TRY(copy_word(p, 0, s, at));
        CFX_TRY(
            cfxi_ir_lex_expect(&p->lex, '(', "and the module's class, as in layers.0(nn.Linear)"));
        CFX_TRY(cfxi_ir_parse_word(p, CFXI_CHAR_DOTTED, "the module's class", &s));
        CFX_TRY(copy_word(p, 1, s, at));
        CFX_TRY(cfxi_ir_lex_expect(&p->lex, ')', "after the module's class"));
        scope = cfx_graph_intern_stack(p->graph, scope, p->words[0].data, p->words[1].data, NULL,
                                       &p->core);
        if (!scope)
            return cfxi_ir_parse_core_failed(p, at);
    } while (cfxi_ir_lex_accept(&p->lex, '>'));
    cfx_node_set_module_stack(n, scope);
    return CFX_OK;
}

/* ":12" after a file. */
static cfx_status read_line(cfxi_parser *p, cfx_node *n, size_t at)
{
    int64_t line;
    CFX_TRY(cfxi_ir_lex_expect(&p->lex, ':', "and a line number after the file"));
    cfxi_ir_lex_skip(&p->lex);
    const size_t number_at = p->lex.at;
    const cfxi_slice s = cfxi_ir_lex_run(&p->lex, CFXI_CHAR_NAME);
    if (s.size == 0 || !cfxi_base_parse_int(s.data, s.size, &line) || line > UINT32_MAX)
        return cfxi_ir_lex_error(&p->lex, number_at, CFX_E_SYNTAX,
                                 "expected a line number from 0 to 4294967295");
    if (cfx_node_set_location(n, p->words[0].data, (uint32_t)line, &p->core) != CFX_OK)
        return cfxi_ir_parse_core_failed(p, at);
    return CFX_OK;
}

static bool accept_in(cfxi_parser *p)
{
    cfxi_lexer *lex = &p->lex;
    cfxi_ir_lex_skip(lex);
    const size_t at = lex->at;
    if (cfxi_ir_slice_is(cfxi_ir_lex_run(lex, CFXI_CHAR_DOTTED), "in"))
        return true;
    lex->at = at;
    return false;
}

/* "@ file:line in scope(class) > scope(class)"; either half may be missing. */
static cfx_status read_location(cfxi_parser *p, cfx_node *n)
{
    cfxi_slice s;
    if (!cfxi_ir_lex_accept(&p->lex, '@'))
        return CFX_OK;
    if (accept_in(p))
        return read_scopes(p, n);
    const size_t at = p->lex.at;
    CFX_TRY(cfxi_ir_parse_word(p, CFXI_CHAR_FILE, "a file name (quoted if it contains spaces) or "
                               "'in'", &s));
    CFX_TRY(copy_word(p, 0, s, at));
    CFX_TRY(read_line(p, n, at));
    return accept_in(p) ? read_scopes(p, n) : CFX_OK;
}

/* ---- closing ------------------------------------------------------------------------------- */

/* [type, name, value, name, value, ...] on the stack becomes [type, (names), values...]. */
static cfx_status close_namedtuple(cfxi_parser *p, const cfxi_text_frame *f)
{
    const size_t n = (p->values.size - f->base) / 2;
    if (p->values.size == f->base)
        return cfxi_ir_lex_error(&p->lex, f->at, CFX_E_SYNTAX,
                                 "a named tuple begins with its type, "
                                 "as in namedtuple(&geometry.Point, x=1)");
    if (!cfxi_base_vec_reserve(&p->values, n + 2, sizeof(cfx_value), p->allocator))
        return cfxi_ir_parse_nomem(p);
    cfx_value *items = cfxi_ir_parse_at(p, f->base);
    cfx_value *copy = cfxi_ir_parse_at(p, p->values.size);
    for (size_t i = 0; i < n; i++)
        copy[i] = items[1 + 2 * i];
    const cfx_value names = cfx_value_tuple(p->graph, copy, n, &p->core);
    copy[0] = items[0];
    copy[1] = names;
    for (size_t i = 0; i < n; i++)
        copy[2 + i] = items[2 + 2 * i];
    const cfx_value v = cfx_value_seq(p->graph, CFX_KIND_NAMEDTUPLE, copy, n + 2, &p->core);
    p->values.size = f->base;
    return cfxi_ir_parse_push_value(p, v, f->at);
}

static cfx_status close_seq(cfxi_parser *p, size_t at)
{
    const cfxi_text_frame f = *cfxi_ir_parse_top(p);
    const size_t n = p->values.size - f.base;
    p->frames.size--;
    if (f.seq == CFX_KIND_TUPLE && n == 1 && !f.comma)
        return cfxi_ir_lex_error(&p->lex, at, CFX_E_SYNTAX, "a tuple with one item needs a comma: "
                                 "(x,)");
    if (f.seq == CFX_KIND_NAMEDTUPLE)
        return close_namedtuple(p, &f);
    const cfx_value *items = n ? cfxi_ir_parse_at(p, f.base) : NULL;
    const cfx_value v = cfx_value_seq(p->graph, f.seq, items, n, &p->core);
    p->values.size = f.base;
    return cfxi_ir_parse_push_value(p, v, f.at);
}

static int compare_keys(const void *a, const void *b)
{
    const cfx_str *x = *(cfx_str *const *)a;
    const cfx_str *y = *(cfx_str *const *)b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return memcmp(x->data, y->data, x->size);
}

/* Sorted, so that a long list of keywords costs no square. */
static cfx_status check_keywords(cfxi_parser *p, const cfxi_text_frame *f, const cfx_value *items,
                                 size_t n)
{
    cfx_str *few[16];
    const size_t bytes = n * sizeof(cfx_str *);
    cfx_str **keys = n <= 16 ? few : cfxi_base_alloc(p->allocator, bytes);
    cfx_status status = CFX_OK;
    if (!keys)
        return cfxi_ir_parse_nomem(p);
    for (size_t i = 0; i < n; i++)
        keys[i] = items[2 * i].as.str;
    qsort(keys, n, sizeof *keys, compare_keys);
    for (size_t i = 1; i < n && status == CFX_OK; i++) {
        if (compare_keys(&keys[i - 1], &keys[i]) == 0)
            status = cfxi_ir_lex_error(&p->lex, f->at, CFX_E_SYNTAX, "the keyword '%.40s' is given "
                                       "twice; remove one", keys[i]->data);
    }
    if (keys != few)
        cfxi_base_free(p->allocator, keys, bytes);
    return status;
}

/* The value of `n` items from `base` on. */
static cfx_value seq_value(cfxi_parser *p, cfx_kind kind, size_t base, size_t n)
{
    return cfx_value_seq(p->graph, kind, n ? cfxi_ir_parse_at(p, base) : NULL, n, &p->core);
}

static cfx_status close_call(cfxi_parser *p)
{
    const cfxi_text_frame f = *cfxi_ir_parse_top(p);
    const size_t n = p->values.size - f.base;
    const size_t positional = f.positional < n ? f.positional : n;
    const size_t keywords = n - positional;
    p->frames.size--;
    if (keywords > 2)
        CFX_TRY(check_keywords(p, &f, cfxi_ir_parse_at(p, f.base + positional), keywords / 2));
    const cfx_value args = seq_value(p, CFX_KIND_TUPLE, f.base, positional);
    const cfx_value kwargs = seq_value(p, CFX_KIND_DICT, f.base + positional, keywords);
    p->values.size = f.base;
    if (args.kind == CFX_KIND_INVALID || kwargs.kind == CFX_KIND_INVALID ||
        cfx_node_set_args_kwargs(f.node, args, kwargs, &p->core) != CFX_OK)
        return cfxi_ir_parse_core_failed(p, f.at);
    return read_location(p, f.node);
}

static bool is_defined(const cfx_node *n) { return n->callee != NULL; }

/* Every node that was mentioned must have been defined by now. */
static cfx_status check_pending(cfxi_parser *p, size_t base)
{
    const cfxi_text_pending *waiting = p->pending.data;
    for (size_t i = base; i < p->pending.size; i++) {
        const cfx_node *n = waiting[i].node;
        if (!is_defined(n))
            return cfxi_ir_lex_error(&p->lex, waiting[i].at, CFX_E_SYNTAX,
                                     "there is no node %%%.40s "
                                     "in this graph; define it, or correct the name",
                                     n->name->data);
    }
    p->pending.size = base;
    return CFX_OK;
}

static cfx_status close_graph(cfxi_parser *p)
{
    const cfxi_text_frame f = *cfxi_ir_parse_top(p);
    CFX_TRY(check_pending(p, f.base));
    p->frames.size--;
    p->regions--;
    if (p->frames.size == 0) {
        p->result = f.graph;
        return CFX_OK;
    }
    for (const cfxi_text_frame *up = cfxi_ir_parse_top(p);; up--) {
        if (up->kind != CFXI_FRAME_GRAPH)
            continue;
        p->graph = up->graph;
        break;
    }
    const cfx_value v = cfx_value_region(p->graph, f.graph, &p->core);
    cfx_graph_release(f.graph);
    return cfxi_ir_parse_push_value(p, v, f.at);
}

/* ---- items --------------------------------------------------------------------------------- */

static char closing_of(const cfxi_text_frame *f)
{
    return f->kind == CFXI_FRAME_CALL     ? ')'
           : f->seq == CFX_KIND_LIST ? ']'
           : f->seq == CFX_KIND_DICT ? '}'
                                     : ')';
}

static cfx_status close_item_frame(cfxi_parser *p, size_t at)
{
    return cfxi_ir_parse_top(p)->kind == CFXI_FRAME_CALL ? close_call(p) : close_seq(p, at);
}

static cfx_status not_closed(cfxi_parser *p, const cfxi_text_frame *f)
{
    char found[CFXI_FOUND_SIZE];
    const char close = closing_of(f);
    if (cfxi_ir_lex_peek(&p->lex) < 0)
        return cfxi_ir_lex_error(&p->lex, p->lex.at, CFX_E_SYNTAX,
                                 "the text ends before the bracket opened in line %u is closed; "
                                 "add '%c'",
                                 (unsigned)cfxi_ir_lex_line(&p->lex, f->at), close);
    return cfxi_ir_lex_error(&p->lex, p->lex.at, CFX_E_SYNTAX, "expected ',' or '%c', found %s",
                             close, cfxi_ir_lex_found(&p->lex, found));
}

/* Takes "key=" if that is next. A quoted text that is not followed by '=' is a value, and is read
 * as such afterwards. */
static cfx_status read_keyword(cfxi_parser *p, bool *found)
{
    cfxi_lexer *lex = &p->lex;
    const int c = cfxi_ir_lex_peek(lex);
    const size_t at = lex->at;
    cfxi_slice s = {NULL, 0};
    *found = false;
    if (c == '"')
        CFX_TRY(cfxi_ir_lex_quoted(lex, false, &s));
    else if (c >= 0 && cfxi_base_is_ident_start((char)c))
        s = cfxi_ir_lex_run(lex, CFXI_CHAR_NAME);
    else
        return CFX_OK;
    if (!cfxi_ir_lex_accept(lex, '=')) {
        lex->at = at;
        return CFX_OK;
    }
    *found = true;
    return cfxi_ir_parse_push_value(p, cfx_value_str(p->graph, s.data, s.size, &p->core), at);
}

/* The keyword of a call's argument or of a named tuple's field, where there is one. */
static cfx_status read_key(cfxi_parser *p)
{
    cfxi_text_frame *f = cfxi_ir_parse_top(p);
    const bool call = f->kind == CFXI_FRAME_CALL;
    const size_t n = p->values.size - f->base;
    bool found;
    if (!call && (f->seq != CFX_KIND_NAMEDTUPLE || n == 0))
        return CFX_OK;
    CFX_TRY(read_keyword(p, &found));
    if (call && found && n < f->positional)
        f->positional = n;
    if (!found && (!call || f->positional != SIZE_MAX))
        return cfxi_ir_parse_unexpected(p, call ? "a keyword (positional arguments come first)"
                                  : "a field and its value, as in x=1");
    return CFX_OK;
}

/* The next item of a container or an argument list, or its end. */
static cfx_status parse_item(cfxi_parser *p)
{
    cfxi_lexer *lex = &p->lex;
    cfxi_text_frame *f = cfxi_ir_parse_top(p);
    const size_t n = p->values.size - f->base;
    const bool colon = f->kind == CFXI_FRAME_SEQ && f->seq == CFX_KIND_DICT && n % 2 == 1;
    cfxi_ir_lex_skip(lex);
    const size_t at = lex->at;
    if (f->after && colon) {
        CFX_TRY(cfxi_ir_lex_expect(lex, ':', "between key and value"));
        return cfxi_ir_parse_value(p);
    }
    f->comma = f->after && cfxi_ir_lex_accept(lex, ',');
    if (cfxi_ir_lex_accept(lex, closing_of(f)))
        return close_item_frame(p, at);
    if ((f->after && !f->comma) || cfxi_ir_lex_peek(lex) < 0)
        return not_closed(p, f);
    f->after = true;
    CFX_TRY(read_key(p));
    return cfxi_ir_parse_value(p);
}

/* ---- statements ---------------------------------------------------------------------------- */

static void define(cfx_node *n, cfxi_callee *callee)
{
    cfx_graph *g = n->graph;
    cfxi_ir_callee_add(callee, n);
    cfxi_ir_list_insert(&g->root, n);
    g->size++;
    g->version++;
}

/* The host's object for a function's name, or the name itself. */
static cfxi_callee *function_callee(cfxi_parser *p, cfxi_slice name)
{
    cfxi_cached *c = &p->cache[cfxi_base_hash_bytes(name.data, name.size) % CFXI_PARSE_CACHE];
    if (c->graph == p->graph && c->name.size == name.size &&
        memcmp(c->name.data, name.data, name.size) == 0)
        return c->callee;
    const cfx_value v = cfx_value_name(p->graph, name.data, name.size, &p->core);
    if (v.kind == CFX_KIND_INVALID)
        return NULL;
    const cfx_target target = {cfx_value_object(v), name.data, name.size};
    cfxi_callee *callee = cfxi_ir_callee_get(p->graph, CFX_OP_CALL_FUNCTION, target, &p->core);
    if (callee && name.data != p->lex.scratch.data)
        *c = (cfxi_cached){p->graph, name, callee};
    return callee;
}

static cfx_status read_opcode(cfxi_parser *p, cfx_opcode *op)
{
    cfxi_lexer *lex = &p->lex;
    cfxi_ir_lex_skip(lex);
    const size_t at = lex->at;
    const cfxi_slice s = cfxi_ir_lex_run(lex, CFXI_CHAR_DOTTED);
    for (int i = 0; i < CFX_OPCODE_COUNT; i++) {
        if (cfxi_ir_slice_is(s, cfx_opcode_name((cfx_opcode)i))) {
            *op = (cfx_opcode)i;
            return CFX_OK;
        }
    }
    if (s.size == 0)
        return cfxi_ir_parse_unexpected(p, "an opcode");
    return cfxi_ir_lex_error(lex, at, CFX_E_SYNTAX, "'%.*s' is not an opcode; use placeholder, "
                             "get_attr, call_function, call_module, call_method or output",
                             s.size > 40 ? 40 : (int)s.size, s.data);
}

/* "[target=name]"; the target of an output may be left out. */
static cfx_status read_target(cfxi_parser *p, cfx_opcode op, cfxi_slice *target)
{
    cfxi_lexer *lex = &p->lex;
    if (op == CFX_OP_OUTPUT && cfxi_ir_lex_peek(lex) != '[') {
        *target = (cfxi_slice){"output", 6};
        return CFX_OK;
    }
    CFX_TRY(cfxi_ir_lex_expect(lex, '[', "and the target, as in get_attr[target=weight]"));
    cfxi_ir_lex_skip(lex);
    if (!cfxi_ir_slice_is(cfxi_ir_lex_run(lex, CFXI_CHAR_NAME), "target"))
        return cfxi_ir_lex_error(lex, lex->at, CFX_E_SYNTAX, "expected target=, as in "
                                 "get_attr[target=weight]");
    CFX_TRY(cfxi_ir_lex_expect(lex, '=', "after target"));
    cfxi_ir_lex_skip(lex);
    const size_t stars_at = lex->at;
    while (lex->at < lex->size && lex->text[lex->at] == '*')
        lex->at++;
    const size_t stars = lex->at - stars_at;
    if (stars == 0) {
        CFX_TRY(cfxi_ir_parse_word(p, CFXI_CHAR_DOTTED, "a target (quoted if it is not a dotted "
                                   "name)",
                          target));
    } else {
        *target = cfxi_ir_lex_run(lex, CFXI_CHAR_DOTTED);
        if (target->size == 0)
            return cfxi_ir_parse_unexpected(p, "a name after '*'");
        *target = (cfxi_slice){target->data - stars, target->size + stars};
    }
    return cfxi_ir_lex_expect(lex, ']', "after the target");
}

/* From the opcode to the opening parenthesis. `type` is INVALID if it has none. */
static cfx_status parse_head(cfxi_parser *p, cfx_node *n, cfx_value type)
{
    cfx_opcode op = CFX_OP_OUTPUT;
    cfxi_slice target;
    cfxi_ir_lex_skip(&p->lex);
    const size_t at = p->lex.at;
    CFX_TRY(read_opcode(p, &op));
    CFX_TRY(read_target(p, op, &target));
    const cfx_target name = {NULL, target.data, target.size};
    cfxi_callee *callee = op == CFX_OP_CALL_FUNCTION
                              ? function_callee(p, target)
                              : cfxi_ir_callee_get(p->graph, op, name, &p->core);
    if (!callee)
        return cfxi_ir_parse_core_failed(p, at);
    define(n, callee);
    if (type.kind != CFX_KIND_INVALID && cfx_node_set_type(n, type, &p->core) != CFX_OK)
        return cfxi_ir_parse_core_failed(p, at);
    cfxi_ir_lex_skip(&p->lex);
    const size_t opened = p->lex.at;
    CFX_TRY(cfxi_ir_lex_expect(&p->lex, '(', "and the arguments"));
    CFX_TRY(cfxi_ir_parse_push(p, CFXI_FRAME_CALL, 1, opened));
    cfxi_ir_parse_top(p)->node = n;
    cfxi_ir_parse_top(p)->positional = SIZE_MAX;
    return CFX_OK;
}

/* A line's own node: new, or mentioned before. */
static cfx_status begin_node(cfxi_parser *p, cfxi_slice name, size_t at, cfx_node **n)
{
    bool is_new;
    CFX_TRY(cfxi_ir_parse_find_node(p, name, n, &is_new));
    if (!is_new && is_defined(*n))
        return cfxi_ir_lex_error(&p->lex, at, CFX_E_SYNTAX,
                                 "node %%%.60s is already defined; give this one another name",
                                 (*n)->name->data);
    if (p->places && !cfxi_ir_places_add(p->places, *n, at))
        return cfxi_ir_parse_nomem(p);
    return CFX_OK;
}

/* "%x = ..." or "%x: type = ...". */
static cfx_status parse_named(cfxi_parser *p)
{
    cfxi_lexer *lex = &p->lex;
    const size_t at = lex->at++;
    cfxi_slice name;
    cfx_node *n;
    CFX_TRY(cfxi_ir_parse_node_name(p, &name));
    CFX_TRY(begin_node(p, name, at, &n));
    if (cfxi_ir_lex_accept(lex, ':')) {
        CFX_TRY(cfxi_ir_parse_push(p, CFXI_FRAME_TYPE, 0, at));
        cfxi_ir_parse_top(p)->node = n;
        return CFX_OK;
    }
    CFX_TRY(cfxi_ir_lex_expect(lex, '=', "after the node's name"));
    return parse_head(p, n, cfx_value_invalid());
}

/* The type first, then what follows it. */
static cfx_status parse_type(cfxi_parser *p)
{
    cfxi_text_frame *f = cfxi_ir_parse_top(p);
    if (!f->after) {
        f->after = true;
        return cfxi_ir_parse_value(p);
    }
    cfx_node *n = f->node;
    const cfx_value type = *cfxi_ir_parse_at(p, f->base);
    p->values.size = f->base;
    p->frames.size--;
    CFX_TRY(cfxi_ir_lex_expect(&p->lex, '=', "after the node's type"));
    return parse_head(p, n, type);
}

static cfx_status parse_statement(cfxi_parser *p)
{
    cfxi_lexer *lex = &p->lex;
    const bool region = p->frames.size > 1;
    const int c = cfxi_ir_lex_peek(lex);
    const size_t at = lex->at;
    cfx_node *n;
    if (c == '%')
        return parse_named(p);
    if (c == '}' && region) {
        lex->at++;
        return close_graph(p);
    }
    if (c < 0 && !region)
        return close_graph(p);
    if (c < 0)
        return cfxi_ir_lex_error(lex, at, CFX_E_SYNTAX, "the text ends before the region opened in "
                                 "line %u is closed; add '}'",
                                 (unsigned)cfxi_ir_lex_line(lex, cfxi_ir_parse_top(p)->at));
    if (!cfxi_ir_slice_is(cfxi_ir_lex_run(lex, CFXI_CHAR_NAME), "output")) {
        lex->at = at;
        return cfxi_ir_parse_unexpected(p, "a node, as in %x = placeholder[target=x](), or "
                                        "output(...)");
    }
    lex->at = at;
    CFX_TRY(begin_node(p, (cfxi_slice){"output", 6}, at, &n));
    return parse_head(p, n, cfx_value_invalid());
}

/* ---- the whole text ------------------------------------------------------------------------ */

static cfx_status parse_header(cfxi_parser *p)
{
    static const char form[] = "in the first line, which must be 'graph():'";
    cfxi_ir_lex_skip(&p->lex);
    if (!cfxi_ir_slice_is(cfxi_ir_lex_run(&p->lex, CFXI_CHAR_NAME), "graph")) {
        p->lex.at = 0;
        return cfxi_ir_parse_unexpected(p, "'graph():' in the first line");
    }
    CFX_TRY(cfxi_ir_lex_expect(&p->lex, '(', form));
    CFX_TRY(cfxi_ir_lex_expect(&p->lex, ')', form));
    return cfxi_ir_lex_expect(&p->lex, ':', form);
}

static cfx_status parse_text(cfxi_parser *p)
{
    cfxi_ir_lex_skip_mark(&p->lex);
    CFX_TRY(cfxi_ir_lex_check(&p->lex));
    CFX_TRY(parse_header(p));
    CFX_TRY(cfxi_ir_parse_open_graph(p, 0));
    while (p->frames.size > 0) {
        switch (cfxi_ir_parse_top(p)->kind) {
        case CFXI_FRAME_GRAPH:
            CFX_TRY(parse_statement(p));
            break;
        case CFXI_FRAME_TYPE:
            CFX_TRY(parse_type(p));
            break;
        case CFXI_FRAME_CALL:
        case CFXI_FRAME_SEQ:
            CFX_TRY(parse_item(p));
            break;
        }
    }
    return CFX_OK;
}

static void parser_free(cfxi_parser *p)
{
    const cfxi_text_frame *frames = p->frames.data;
    for (size_t i = p->frames.size; i > 0; i--) {
        if (frames[i - 1].kind == CFXI_FRAME_GRAPH)
            cfx_graph_release(frames[i - 1].graph);
    }
    cfxi_base_vec_free(&p->frames, sizeof(cfxi_text_frame), p->allocator);
    cfxi_base_vec_free(&p->values, sizeof(cfx_value), p->allocator);
    cfxi_base_vec_free(&p->pending, sizeof(cfxi_text_pending), p->allocator);
    cfx_buffer_free(&p->lex.scratch);
    cfx_buffer_free(&p->words[0]);
    cfx_buffer_free(&p->words[1]);
}

static cfx_graph *parse(const char *text, size_t size, const cfx_allocator *allocator,
                        const cfx_host *host, cfx_text_places *places, cfx_error *err)
{
    cfx_error why = {.status = CFX_OK};
    cfxi_parser p = {.lex = {.text = text, .size = size, .err = &why},
                .allocator = cfxi_base_allocator(allocator), .host = host, .places = places};
    cfx_buffer_init(&p.lex.scratch, p.allocator);
    cfx_buffer_init(&p.words[0], p.allocator);
    cfx_buffer_init(&p.words[1], p.allocator);
    const cfx_status status = parse_text(&p);
    parser_free(&p);
    if (status != CFX_OK && err)
        *err = why;
    return p.result;
}

cfx_graph *cfx_graph_parse(const char *text, size_t size, const cfx_allocator *allocator,
                           const cfx_host *host, cfx_error *err)
{
    return parse(text, size, allocator, host, NULL, err);
}

cfx_graph *cfx_graph_parse_places(const char *text, size_t size, const cfx_allocator *allocator,
                                  const cfx_host *host, cfx_text_places **places, cfx_error *err)
{
    *places = cfxi_ir_places_new(text, cfxi_base_allocator(allocator));
    if (!*places) {
        cfxi_base_nomem(err);
        return NULL;
    }
    cfx_graph *g = parse(text, size, allocator, host, *places, err);
    if (!g) {
        cfx_text_places_free(*places);
        *places = NULL;
    }
    return g;
}
