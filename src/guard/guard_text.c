/* guard_text.c - guards as text: as users read them, and as files have them.
 *
 * An input is written by its name. Where that would not read back (a name that is no path of names,
 * attributes and items; two that could be meant), it is written by its number: @3.shape[0].
 */
#include "guard_impl.h"

#include "ir/text_lex_impl.h"

#include <math.h>

enum { LOOSE = 1, PREFIXED = 7, POWER = 8, TIGHT = 9, PARSE_DEPTH = 100 };
enum { MOST_DIMS = 64 };  /* of a tensor of torch's */

/* ---- names --------------------------------------------------------------------------------- */

static bool is_name_byte(char c) { return cfxi_base_is_ident(c) || (unsigned char)c >= 0x80; }

static size_t name_size(const char *text, size_t size)
{
    size_t n = 0;
    if (size == 0 || cfxi_base_is_digit(text[0]))
        return 0;
    while (n < size && is_name_byte(text[n]))
        n++;
    return n;
}

/* The bytes of "[...]", brackets and quoted texts inside included; 0 if it does not end. */
static size_t item_size(const char *text, size_t size)
{
    size_t depth = 0;
    char quote = 0;
    for (size_t i = 0; i < size; i++) {
        const char c = text[i];
        if ((unsigned char)c < ' ')
            return 0;
        if (quote) {
            i += c == '\\';
            quote = c == quote ? 0 : quote;
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == '[') {
            depth++;
        } else if (c == ']' && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

/* The bytes of a path: x.cache[0]['key']; 0 if there is none. */
static size_t path_size(const char *text, size_t size)
{
    size_t at = name_size(text, size);
    for (size_t more = at; more > 0; at += more) {
        more = 0;
        if (at < size && text[at] == '[')
            more = item_size(text + at, size - at);
        else if (at < size && text[at] == '.' && name_size(text + at + 1, size - at - 1))
            more = 1 + name_size(text + at + 1, size - at - 1);
    }
    return at;
}

static bool find_input(const cfx_guards *g, const char *name, size_t size, size_t *input)
{
    for (*input = 0; *input < g->num_inputs; ++*input)
        if (strlen(g->names[*input]) == size && memcmp(g->names[*input], name, size) == 0)
            return true;
    return false;
}

/* Splits "x.shape[1]"; false if the path does not end so. */
static bool split_size(const char *path, size_t size, size_t *before, size_t *dim)
{
    static const char middle[] = ".shape[";
    const size_t length = sizeof middle - 1;
    int64_t number;
    size_t at = size ? size - 1 : 0;
    if (size == 0 || path[at] != ']')
        return false;
    while (at > 0 && cfxi_base_is_digit(path[at - 1]))
        at--;
    if (at < length || memcmp(path + at - length, middle, length) != 0 ||
        !cfxi_base_parse_int(path + at, size - 1 - at, &number) || number >= MOST_DIMS)
        return false;
    *before = at - length;
    *dim = (size_t)number;
    return true;
}

/* Which term a path is; false if it is none. */
static bool read_path(const cfx_guards *g, const char *path, size_t size, cfxi_guard_term *out)
{
    size_t before;
    out->dim = CFX_GUARD_NUMBER;
    if (find_input(g, path, size, &out->input))
        return true;
    return split_size(path, size, &before, &out->dim) && find_input(g, path, before, &out->input);
}

/* ---- writing ------------------------------------------------------------------------------- */

static void write_term(const cfx_guards *g, const cfxi_guard_term *t, cfxi_out *out)
{
    char path[256];
    cfxi_guard_term found;
    const char *name = g->names[t->input];
    size_t size = strlen(name);
    bool plain = path_size(name, size) == size;
    if (plain && t->dim != CFX_GUARD_NUMBER && size < sizeof path - 32) {
        memcpy(path, name, size);
        memcpy(path + size, ".shape[", 7);
        size += 7 + cfxi_base_format_int((int64_t)t->dim, path + size + 7);
        path[size++] = ']';
        plain = read_path(g, path, size, &found) && found.input == t->input && found.dim == t->dim;
    }
    if (plain)
        cfxi_base_out_str(out, name);
    else
        cfxi_base_out_printf(out, "@%zu", t->input);
    if (t->dim != CFX_GUARD_NUMBER)
        cfxi_base_out_printf(out, ".shape[%zu]", t->dim);
}

static void write_number(cfx_datum d, cfxi_out *out)
{
    char text[CFXI_NUMBER_SIZE];
    if (d.kind == CFX_DATUM_BOOL) {
        cfxi_base_out_str(out, d.as.b ? "True" : "False");
    } else if (d.kind == CFX_DATUM_INT) {
        cfxi_base_out_write(out, text, cfxi_base_format_int(d.as.i, text));
    } else if (isfinite(d.as.f)) {
        cfxi_base_out_write(out, text, cfxi_base_format_float(d.as.f, text));
    } else {
        cfxi_base_out_printf(out, "%sfloat(\"%s\")", d.as.f < 0 ? "-" : "",
                             isnan(d.as.f) ? "nan" : "inf");
    }
}

/* Where the operand begins that ends with this item. */
static size_t first_of(const cfxi_guard_item *items, size_t last)
{
    size_t missing = 1;
    for (;; last--) {
        missing += cfxi_guard_functions[items[last].op].operands;
        if (--missing == 0)
            return last;
    }
}

static bool is_negative(cfx_datum d)
{
    return d.kind == CFX_DATUM_INT ? d.as.i < 0 : signbit(d.as.f) && !isnan(d.as.f);
}

static int binding_of(const cfxi_guard_item *item)
{
    if (item->op == CFXI_GUARD_NUMBER)
        return is_negative(item->number) ? PREFIXED : TIGHT;
    return item->op == CFXI_GUARD_TERM ? TIGHT : cfxi_guard_functions[item->op].binding;
}

/* What ends with this item, in parentheses if it binds less tightly than `least`. As deep as
 * expressions nest: at most CFXI_GUARD_ITEMS. */
static void write_operand(const cfx_guards *g, const cfxi_guard_item *items, size_t last, int least,
                          cfxi_out *out)
{
    const cfxi_guard_item *item = &items[last];
    const cfxi_guard_function *f = &cfxi_guard_functions[item->op];
    const int binding = binding_of(item);
    const size_t middle = f->operands == 2 ? first_of(items, last - 1) : 0;
    if (binding < least)
        cfxi_base_out_char(out, '(');
    switch ((cfxi_guard_form)f->form) {
    case CFXI_GUARD_OPERAND:
        if (item->op == CFXI_GUARD_NUMBER)
            write_number(item->number, out);
        else
            write_term(g, &cfxi_guard_terms(g)[item->term], out);
        break;
    case CFXI_GUARD_INFIX:
        write_operand(g, items, middle - 1, binding == POWER ? TIGHT : binding, out);
        cfxi_base_out_printf(out, " %s ", f->text);
        write_operand(g, items, last - 1, binding == POWER ? PREFIXED : binding + 1, out);
        break;
    case CFXI_GUARD_PREFIX:
        cfxi_base_out_str(out, f->text);
        write_operand(g, items, last - 1, binding, out);
        break;
    case CFXI_GUARD_CALL:
        cfxi_base_out_printf(out, "%s(", f->text);
        if (f->operands == 2) {
            write_operand(g, items, middle - 1, LOOSE, out);
            cfxi_base_out_str(out, ", ");
        }
        write_operand(g, items, last - 1, LOOSE, out);
        cfxi_base_out_char(out, ')');
        break;
    }
    if (binding < least)
        cfxi_base_out_char(out, ')');
}

static void write_question(const cfx_guards *g, const cfxi_guard_row *row, cfxi_out *out)
{
    write_operand(g, cfxi_guard_items(g, row, false), row->left - 1, LOOSE, out);
    if (row->guard.value.kind != CFX_DATUM_BOOL)
        return;
    cfxi_base_out_printf(out, " %s ", cfxi_guard_signs[row->relation]);
    write_operand(g, cfxi_guard_items(g, row, true), row->right - 1, LOOSE, out);
}

cfx_status cfx_guards_print_question(const cfx_guards *g, size_t i, cfx_sink sink, cfx_error *err)
{
    cfxi_out out;
    if (i >= g->rows.size)
        return cfx_error_set(err, CFX_E_INDEX, "there is no guard %zu: the set has %zu", i,
                             g->rows.size);
    cfxi_base_out_begin(&out, sink);
    write_question(g, cfxi_guard_at(g, i), &out);
    return cfxi_base_out_end(&out, err);
}

cfx_status cfx_guards_print(const cfx_guards *g, cfx_sink sink, cfx_error *err)
{
    cfxi_out out;
    cfxi_base_out_begin(&out, sink);
    for (size_t i = 0; i < g->rows.size; i++) {
        const cfxi_guard_row *row = cfxi_guard_at(g, i);
        cfxi_base_out_printf(&out, "%s %s ", cfxi_guard_kinds[row->guard.kind],
                             cfxi_guard_askers[row->guard.asker]);
        cfxi_base_out_quoted(&out, row->guard.line, strlen(row->guard.line), '"');
        cfxi_base_out_str(&out, ": ");
        write_question(g, row, &out);
        cfxi_base_out_str(&out, " is ");
        write_number(row->guard.value, &out);
        cfxi_base_out_char(&out, '\n');
    }
    return cfxi_base_out_end(&out, err);
}

/* ---- reading ------------------------------------------------------------------------------- */

typedef struct reader {
    cfx_guards *g;
    cfxi_lexer lex;  /* its `size` is the end of the line */
    int depth;
    cfxi_guard_code *code;  /* of the expression that is being read */
} reader;

static cfx_status fail(reader *r, const char *what)
{
    return cfxi_ir_lex_error(&r->lex, r->lex.at, CFX_E_SYNTAX, "%s", what);
}

static cfx_status fail_limit(reader *r)
{
    return cfxi_ir_lex_error(&r->lex, r->lex.at, CFX_E_LIMIT, "the expression is too long or nests "
                             "too deeply");
}

static void skip(reader *r)
{
    while (r->lex.at < r->lex.size && r->lex.text[r->lex.at] == ' ')
        r->lex.at++;
}

static const char *rest(const reader *r) { return r->lex.text + r->lex.at; }
static size_t rest_size(const reader *r) { return r->lex.size - r->lex.at; }

static bool next_is(reader *r, const char *text)
{
    skip(r);
    const size_t size = strlen(text);
    return rest_size(r) >= size && memcmp(rest(r), text, size) == 0;
}

static bool take(reader *r, const char *text)
{
    const bool found = next_is(r, text);
    r->lex.at += found ? strlen(text) : 0;
    return found;
}

/* A word that ends there. */
static bool take_word(reader *r, const char *word)
{
    const bool found = next_is(r, word) && name_size(rest(r), rest_size(r)) == strlen(word);
    r->lex.at += found ? strlen(word) : 0;
    return found;
}

static cfx_status parse_binary(reader *r, int least);
static cfx_status parse_unary(reader *r);

static cfx_status push_function(reader *r, cfxi_guard_op op)
{
    return cfxi_guard_push_function(r->code, op) ? CFX_OK : fail_limit(r);
}

/* The bytes of a number, without a sign. */
static size_t number_size(const char *text, size_t size)
{
    size_t n = 0;
    if (size == 0 || !cfxi_base_is_digit(text[0]))
        return 0;
    while (n < size && (cfxi_base_is_ident(text[n]) || text[n] == '.' ||
                        ((text[n] == '-' || text[n] == '+') && text[n - 1] == 'e')))
        n++;
    return n;
}

static bool number_from(const char *text, size_t size, cfx_datum *out)
{
    int64_t i;
    double f;
    if (cfxi_base_parse_int(text, size, &i)) {
        *out = cfx_datum_int(i);
        return true;
    }
    if (!memchr(text, '.', size) && !memchr(text, 'e', size))
        return false;  /* an integer that does not fit must not become a float */
    if (!cfxi_base_parse_float(text, size, &f) || !isfinite(f))
        return false;
    *out = cfx_datum_float(f);
    return true;
}

/* float("inf") */
static bool take_special(reader *r, cfx_datum *out)
{
    if (take(r, "float(\"inf\")"))
        *out = cfx_datum_float(INFINITY);
    else if (take(r, "float(\"nan\")"))
        *out = cfx_datum_float(NAN);
    else
        return false;
    return true;
}

/* A number with its sign; *found is false if there is none here. */
static cfx_status parse_number(reader *r, bool *found, cfx_datum *out)
{
    skip(r);
    const size_t from = r->lex.at;
    const bool minus = rest_size(r) > 0 && rest(r)[0] == '-';
    r->lex.at += minus;
    *found = true;
    if (take_special(r, out)) {
        out->as.f = minus ? -out->as.f : out->as.f;
        return CFX_OK;
    }
    const size_t size = number_size(rest(r), rest_size(r));
    r->lex.at = from;
    *found = size > 0;
    if (size == 0)
        return CFX_OK;
    if (!number_from(rest(r), size + minus, out))
        return fail(r, "not a number of 64 bits");
    r->lex.at += size + minus;
    return CFX_OK;
}

static cfx_status parse_term(reader *r)
{
    cfxi_guard_term t = {0, CFX_GUARD_NUMBER};
    uint32_t term;
    size_t size = path_size(rest(r), rest_size(r));
    bool good = size > 0 && read_path(r->g, rest(r), size, &t);
    if (size == 0 && take(r, "@")) {
        int64_t input = -1;
        size_t digits = 0;
        while (digits < rest_size(r) && cfxi_base_is_digit(rest(r)[digits]))
            digits++;
        size = digits;
        if (digits < rest_size(r) && rest(r)[digits] == '.') {
            size += 1 + name_size(rest(r) + digits + 1, rest_size(r) - digits - 1);
            size += size < rest_size(r) ? item_size(rest(r) + size, rest_size(r) - size) : 0;
        }
        good = cfxi_base_parse_int(rest(r), digits, &input) && input >= 0 &&
               (size_t)input < r->g->num_inputs;
        size_t before = digits;
        if (good && size > digits)
            good = split_size(rest(r), size, &before, &t.dim) && before == digits;
        t.input = good ? (size_t)input : 0;
    }
    if (!good)
        return fail(r, size ? "this is not an input, or a size of one" : "expected a number");
    r->lex.at += size;
    if (!cfxi_guard_term_of(r->g, t.input, t.dim, &term))
        return cfxi_base_nomem(r->lex.err);
    return cfxi_guard_push_term(r->code, term) ? CFX_OK : fail_limit(r);
}

static cfx_status parse_call(reader *r, cfxi_guard_op op)
{
    size_t n = 0;
    r->lex.at += strlen(cfxi_guard_functions[op].text) + 1;
    do {
        CFX_TRY(parse_binary(r, LOOSE));
        if (++n > 1)
            CFX_TRY(cfxi_guard_functions[op].operands == 2 ? push_function(r, op)
                                                           : fail(r, "expected ')'"));
    } while (take(r, ","));
    if (n < cfxi_guard_functions[op].operands)
        return fail(r, "expected another number");
    if (cfxi_guard_functions[op].operands == 1)
        CFX_TRY(push_function(r, op));
    return take(r, ")") ? CFX_OK : fail(r, "expected ')'");
}

/* The function that is called here; NUMBER: none. */
static cfxi_guard_op called(const reader *r)
{
    const size_t size = name_size(rest(r), rest_size(r));
    if (size == 0 || size >= rest_size(r) || rest(r)[size] != '(')
        return CFXI_GUARD_NUMBER;
    for (int op = 0; op < CFXI_GUARD_OP_COUNT; op++)
        if (cfxi_guard_functions[op].form == CFXI_GUARD_CALL &&
            strlen(cfxi_guard_functions[op].text) == size &&
            memcmp(cfxi_guard_functions[op].text, rest(r), size) == 0)
            return (cfxi_guard_op)op;
    return CFXI_GUARD_NUMBER;
}

static cfx_status parse_primary(reader *r)
{
    cfx_datum number;
    bool found;
    if (take(r, "(")) {
        CFX_TRY(parse_binary(r, LOOSE));
        return take(r, ")") ? CFX_OK : fail(r, "expected ')'");
    }
    if (next_is(r, "-"))
        return fail(r, "expected a number");
    CFX_TRY(parse_number(r, &found, &number));
    if (found)
        return cfxi_guard_push_number(r->code, number) ? CFX_OK : fail_limit(r);
    const cfxi_guard_op op = called(r);
    return op == CFXI_GUARD_NUMBER ? parse_term(r) : parse_call(r, op);
}

static cfx_status parse_power(reader *r)
{
    CFX_TRY(parse_primary(r));
    if (!take(r, "**"))
        return CFX_OK;
    CFX_TRY(parse_unary(r));
    return push_function(r, CFXI_GUARD_POW);
}

/* The smallest integer has no positive one that its sign could be put before. */
static cfx_status parse_negative(reader *r)
{
    const size_t from = r->lex.at;
    cfx_datum number;
    bool found;
    CFX_TRY(parse_number(r, &found, &number));
    if (found && !next_is(r, "**"))
        return cfxi_guard_push_number(r->code, number) ? CFX_OK : fail_limit(r);
    r->lex.at = from;
    take(r, "-");
    CFX_TRY(parse_unary(r));
    return push_function(r, CFXI_GUARD_NEG);
}

static cfx_status parse_unary(reader *r)
{
    cfx_status status;
    if (++r->depth > PARSE_DEPTH)
        return fail_limit(r);
    if (next_is(r, "-")) {
        status = parse_negative(r);
    } else if (take(r, "~")) {
        status = parse_unary(r);
        if (status == CFX_OK)
            status = push_function(r, CFXI_GUARD_INVERT);
    } else {
        status = parse_power(r);
    }
    r->depth--;
    return status;
}

/* The infix function that is next and binds so tightly; NUMBER: none. */
static cfxi_guard_op infix(reader *r, int least)
{
    for (int op = 0; op < CFXI_GUARD_OP_COUNT; op++) {
        const cfxi_guard_function *f = &cfxi_guard_functions[op];
        if (f->form == CFXI_GUARD_INFIX && f->binding != POWER && f->binding >= least &&
            next_is(r, f->text) && !(op == CFXI_GUARD_TRUE_DIV && next_is(r, "//")))
            return (cfxi_guard_op)op;
    }
    return CFXI_GUARD_NUMBER;
}

static cfx_status parse_binary(reader *r, int least)
{
    cfxi_guard_op op;
    CFX_TRY(parse_unary(r));
    while ((op = infix(r, least)) != CFXI_GUARD_NUMBER) {
        take(r, cfxi_guard_functions[op].text);
        CFX_TRY(parse_binary(r, cfxi_guard_functions[op].binding + 1));
        CFX_TRY(push_function(r, op));
    }
    return CFX_OK;
}

static cfx_status parse_expression(reader *r, cfxi_guard_code *code)
{
    code->n = code->depth = 0;
    r->code = code;
    r->depth = 0;
    return parse_binary(r, LOOSE);
}

/* One of the words; their number if it is none. */
static size_t take_one(reader *r, const char *const *words, size_t n)
{
    size_t i = 0;
    while (i < n && !take_word(r, words[i]))
        i++;
    return i;
}

static cfx_guard_relation take_relation(reader *r)
{
    int i = 0;  /* "<=" is not "<" */
    for (; i < CFX_GUARD_RELATION_COUNT; i++)
        if (next_is(r, cfxi_guard_signs[i]) &&
            !(cfxi_guard_signs[i][1] == '\0' && rest_size(r) > 1 && rest(r)[1] == '='))
            break;
    if (i < CFX_GUARD_RELATION_COUNT)
        take(r, cfxi_guard_signs[i]);
    return (cfx_guard_relation)i;
}

static cfx_status parse_value(reader *r, cfx_datum *out)
{
    bool found;
    if (take_word(r, "True"))
        *out = cfx_datum_bool(true);
    else if (take_word(r, "False"))
        *out = cfx_datum_bool(false);
    else {
        CFX_TRY(parse_number(r, &found, out));
        return found ? CFX_OK : fail(r, "expected True, False or a number");
    }
    return CFX_OK;
}

static cfx_status parse_head(reader *r, cfx_guard *guard, cfxi_slice *line)
{
    guard->kind = (cfx_guard_kind)take_one(r, cfxi_guard_kinds, CFX_GUARD_KIND_COUNT);
    if (guard->kind == CFX_GUARD_KIND_COUNT)
        return fail(r, "expected size, data, layout or grad");
    guard->asker = (cfx_guard_asker)take_one(r, cfxi_guard_askers, CFX_GUARD_ASKER_COUNT);
    if (guard->asker == CFX_GUARD_ASKER_COUNT)
        return fail(r, "expected program or torch");
    if (!next_is(r, "\""))
        return fail(r, "expected the line that asked, in quotes");
    CFX_TRY(cfxi_ir_lex_quoted(&r->lex, false, line));
    if (memchr(line->data, '\0', line->size))
        return fail(r, "a line cannot contain the character 0");
    return take(r, ":") ? CFX_OK : fail(r, "expected ':'");
}

/* An expression that was a number: it is again if it equals the number; nan equals nothing. */
static cfx_guard_relation equals(cfxi_guard_code *left, cfxi_guard_code *right, cfx_datum value)
{
    if (value.kind == CFX_DATUM_FLOAT && isnan(value.as.f)) {
        *right = *left;
        return CFX_GUARD_NE;
    }
    right->n = right->depth = 0;
    cfxi_guard_push_number(right, value);
    return CFX_GUARD_EQ;
}

static cfx_status parse_guard(reader *r)
{
    cfxi_guard_code left;
    cfxi_guard_code right;
    cfx_guard guard = {.value = cfx_datum_invalid()};
    cfxi_slice line;
    char *copy;
    CFX_TRY(parse_head(r, &guard, &line));
    if (!(copy = cfxi_base_arena_alloc(&r->g->arena, line.size + 1)))
        return cfxi_base_nomem(r->lex.err);
    memcpy(copy, line.data, line.size);
    copy[line.size] = '\0';
    guard.line = copy;
    CFX_TRY(parse_expression(r, &left));
    cfx_guard_relation relation = take_relation(r);
    const bool compares = relation != CFX_GUARD_RELATION_COUNT;
    if (compares)
        CFX_TRY(parse_expression(r, &right));
    if (!take_word(r, "is"))
        return fail(r, compares ? "expected 'is' and the answer" : "expected a comparison or 'is'");
    CFX_TRY(parse_value(r, &guard.value));
    if (compares != (guard.value.kind == CFX_DATUM_BOOL))
        return fail(r, compares ? "a comparison is True or False" : "expected a number");
    if (!compares)
        relation = equals(&left, &right, guard.value);
    const bool truth = !compares || guard.value.as.b;
    if (skip(r), rest_size(r) > 0)
        return fail(r, "unexpected text");
    return cfxi_guard_add(r->g, &guard, relation, truth, &left, &right, r->lex.err);
}

cfx_status cfx_guards_parse(cfx_guards *g, const char *text, size_t size, cfx_error *err)
{
    cfx_error own = {0};
    const size_t before = g->rows.size;
    const size_t terms = g->terms.size;
    reader r = {.g = g, .lex = {.text = text, .size = size, .err = &own}};
    cfx_buffer_init(&r.lex.scratch, g->allocator);
    cfx_status status = cfxi_ir_lex_check(&r.lex);
    while (status == CFX_OK && r.lex.at < size) {
        const char *end = memchr(text + r.lex.at, '\n', size - r.lex.at);
        r.lex.size = end ? (size_t)(end - text) : size;
        if (skip(&r), rest_size(&r) > 0)
            status = parse_guard(&r);
        r.lex.at = r.lex.size + 1;
    }
    cfx_buffer_free(&r.lex.scratch);
    if (status == CFX_OK)
        return CFX_OK;
    cfxi_guard_cut(g, before);
    g->terms.size = terms;
    if (err)
        *err = own;
    return status;
}
