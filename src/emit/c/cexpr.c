/* cexpr.c - C statements and expressions: calls of operators and modules, literals.
 *
 * What an operator must be given stands by its position, the rest by name, unless it is the
 * default.
 */
#include "ccode_impl.h"

#include "lower/lower_impl.h"

#include <stdarg.h>
#include <stdio.h>

enum { COLUMNS = 100, INDENT = 4, WIDEST_ALIGN = 60, MOST_OPEN = 32 };

/* ---- text ---------------------------------------------------------------------------------- */

void cfxi_emit_c_put(cfxi_ccode *c, cfx_buffer *to, const char *text, size_t size)
{
    if (!c->nomem && cfx_buffer_append(to, text, size) != CFX_OK)
        c->nomem = true;
}

void cfxi_emit_c_printf(cfxi_ccode *c, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cfxi_emit_c_text(c, text);
}

void cfxi_emit_c_refuse(cfxi_ccode *c, const cfx_node *n, const char *format, ...)
{
    char text[300];
    char where[160] = "";
    char node[80] = "";
    va_list args;
    const size_t used = strlen(c->why.message);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n && cfx_node_file(n))
        snprintf(where, sizeof where, "%.130s:%u: ", cfx_node_file(n), cfx_node_line(n));
    if (n)
        snprintf(node, sizeof node, " (node %%%.60s)", n->name->data);
    c->refused++;
    if (snprintf(c->why.message + used, sizeof c->why.message - used, "%s%s%s%s",
                 used ? "; " : "", where, text, node) < 0)
        c->why.message[used] = '\0';
    c->why.status = CFX_E_TYPE;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* Columns behind the parentheses that are open. */
typedef struct c_open {
    size_t columns[MOST_OPEN];
    size_t n;
    bool quoted;
} c_open;

/* Follows a word that begins at `column`. */
static void follow(c_open *o, const char *word, size_t size, size_t column)
{
    for (size_t i = 0; i < size; i++) {
        if (o->quoted && word[i] == '\\')
            i++;
        else if (word[i] == '"')
            o->quoted = !o->quoted;
        else if (!o->quoted && word[i] == '(' && o->n++ < MOST_OPEN)
            o->columns[o->n - 1] = column + i + 1;
        else if (!o->quoted && word[i] == ')' && o->n > 0)
            o->n--;
    }
}

/* Where the next line begins: behind the last parenthesis, if that is not too far to the right. */
static size_t align_of(const c_open *o)
{
    const bool known = o->n > 0 && o->n <= MOST_OPEN;
    return known && o->columns[o->n - 1] <= WIDEST_ALIGN ? o->columns[o->n - 1] : 3 * INDENT;
}

static void put_spaces(cfxi_ccode *c, size_t n)
{
    static const char spaces[] = "                                                            ";
    cfxi_emit_c_put(c, &c->body, spaces, n);
}

/* "  / * model.c:12 * /": the file's name cannot end the comment, nor begin one, nor turn text
 * around, as some characters do, of which compilers warn. */
static size_t comment_of(const cfx_node *n, char *out, size_t size)
{
    const char *file = cfx_node_file(n);
    const size_t used = (size_t)snprintf(out, size, "  /* %.120s:%u */", file, cfx_node_line(n));
    uint32_t code;
    cfxi_base_utf8_clean(out);  /* it may have been cut inside a character */
    for (size_t i = 5, length; i + 3 < used; i += length) {
        char *p = out + i;
        length = cfxi_base_utf8_decode(p, used - i, &code);
        if (!cfxi_base_is_printable(code) || (*p == '*' && p[1] == '/') ||
            (*p == '/' && p[1] == '*') || *p == '\\')
            memset(p, '?', length);
    }
    return used;
}

/* Breaks the line at gaps. */
static void put_wrapped(cfxi_ccode *c)
{
    const char *at = c->line.data;
    const char *end = at + c->line.size;
    c_open open = {.n = 0};
    size_t column = INDENT;
    put_spaces(c, INDENT);
    while (at < end) {
        const char *gap = memchr(at, CFXI_C_GAP, (size_t)(end - at));
        const size_t word = (size_t)((gap ? gap : end) - at);
        const bool first = at == c->line.data;
        if (!first && column + 1 + word > COLUMNS) {
            cfxi_emit_c_put(c, &c->body, "\n", 1);
            column = align_of(&open);
            put_spaces(c, column);
        } else if (!first) {
            cfxi_emit_c_put(c, &c->body, " ", 1);
            column++;
        }
        cfxi_emit_c_put(c, &c->body, at, word);
        follow(&open, at, word, column);
        column += word;
        at += word + (gap != NULL);
    }
}

void cfxi_emit_c_end_line(cfxi_ccode *c, const cfx_node *n)
{
    char comment[180];
    const bool new_place = n && n->location && n->location != c->location && cfx_node_file(n);
    const size_t size = new_place ? comment_of(n, comment, sizeof comment) : 0;
    const bool before = INDENT + c->line.size + size > COLUMNS;
    if (new_place && before) {
        put_spaces(c, INDENT);
        cfxi_emit_c_put(c, &c->body, comment + 2, size - 2);
        cfxi_emit_c_put(c, &c->body, "\n", 1);
    }
    put_wrapped(c);
    if (new_place && !before)
        cfxi_emit_c_put(c, &c->body, comment, size);
    cfxi_emit_c_put(c, &c->body, "\n", 1);
    if (n && n->location)
        c->location = n->location;
    c->line.size = 0;
}

/* ---- literals ------------------------------------------------------------------------------ */

void cfxi_emit_c_string(cfxi_ccode *c, const char *text, size_t size)
{
    cfxi_emit_c_text(c, "\"");
    for (size_t i = 0; i < size; i++) {
        const unsigned char byte = (unsigned char)text[i];
        char out[8];
        if (byte == '\n')
            snprintf(out, sizeof out, "\\n");
        else if (byte == '\t')
            snprintf(out, sizeof out, "\\t");
        else if (byte == '"' || byte == '\\' || (byte == '?' && i > 0 && text[i - 1] == '?'))
            snprintf(out, sizeof out, "\\%c", byte);  /* "??" could begin a trigraph */
        else if (byte < ' ' || byte > '~')
            snprintf(out, sizeof out, "\\%03o", byte);
        else
            snprintf(out, sizeof out, "%c", byte);
        cfxi_emit_c_text(c, out);
    }
    cfxi_emit_c_text(c, "\"");
}

static void put_float(cfxi_ccode *c, double f)
{
    char text[CFXI_NUMBER_SIZE];
    if (f != f) {
        c->math = true;
        cfxi_emit_c_text(c, "NAN");
    } else if (f - f != 0) {
        c->math = true;
        cfxi_emit_c_text(c, f > 0 ? "INFINITY" : "-INFINITY");
    } else {
        cfxi_emit_c_put(c, &c->line, text, cfxi_base_format_float(f, text));
    }
}

static void put_int(cfxi_ccode *c, int64_t i)
{
    char text[CFXI_NUMBER_SIZE];
    if (i == INT64_MIN)  /* the literal would be one too large, before its sign */
        cfxi_emit_c_text(c, "INT64_MIN");
    else
        cfxi_emit_c_put(c, &c->line, text, cfxi_base_format_int(i, text));
}

static void put_number(cfxi_ccode *c, cfx_value v)
{
    if (v.kind == CFX_KIND_INT)
        put_int(c, v.as.i);
    else
        put_float(c, v.as.f);
}

static const char *const dtypes[] = {
#define CFX_DTYPE(id, name, size, brief) "CFX_DTYPE_" #id,
#include <cfx/dtype.def>
#undef CFX_DTYPE
};

static const char *const layouts[] = {
#define CFX_LAYOUT(id, name) "CFX_LAYOUT_" #id,
#define CFX_MEMORY_FORMAT(id, name)
#include <cfx/layout.def>
#undef CFX_LAYOUT
#undef CFX_MEMORY_FORMAT
};

static const char *const memory_formats[] = {
#define CFX_LAYOUT(id, name)
#define CFX_MEMORY_FORMAT(id, name) "CFX_MEMORY_FORMAT_" #id,
#include <cfx/layout.def>
#undef CFX_LAYOUT
#undef CFX_MEMORY_FORMAT
};

/* ---- containers ---------------------------------------------------------------------------- */

static bool all_ints(cfx_value v)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    for (size_t i = 0; i < n; i++)
        if (items[i].kind != CFX_KIND_INT)
            return false;
    return true;
}

static void put_items(cfxi_ccode *c, const cfx_node *n, cfx_value v, bool first)
{
    size_t count;
    const cfx_value *items = cfx_value_items(v, &count);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 || !first)
            cfxi_emit_c_comma(c);
        if (first)
            put_int(c, items[i].as.i);
        else
            cfxi_emit_c_value(c, n, items[i], NULL, CFXI_C_VAR);
    }
}

static void put_seq(cfxi_ccode *c, const cfx_node *n, cfx_value v, const char *function)
{
    cfxi_emit_c_text(c, function);
    cfxi_emit_c_text(c, "(s");
    c->scope_used = true;
    put_items(c, n, v, false);
    cfxi_emit_c_text(c, ")");
}

/* Where integers are wanted, lists and tuples are the same; elsewhere cfx_ints is a tuple. */
static void put_list(cfxi_ccode *c, const cfx_node *n, cfx_value v, const char *type)
{
    const bool wants_ints = type && strncmp(type, "int[", 4) == 0;
    if (all_ints(v) && (wants_ints || (v.kind == CFX_KIND_TUPLE && v.as.seq->size > 0))) {
        cfxi_emit_c_text(c, "cfx_ints(s, ");
        c->scope_used = true;
        put_items(c, n, v, true);
        cfxi_emit_c_text(c, ")");
        return;
    }
    put_seq(c, n, v, v.kind == CFX_KIND_LIST ? "cfx_list" : "cfx_tuple");
}

static void put_slice(cfxi_ccode *c, const cfx_node *n, cfx_value v)
{
    const cfx_value *parts = cfx_value_items(v, &(size_t){0});
    cfxi_emit_c_text(c, "cfx_slice_of(s");
    c->scope_used = true;
    for (size_t i = 0; i < 3; i++) {
        cfxi_emit_c_comma(c);
        cfxi_emit_c_value(c, n, parts[i], NULL, CFXI_C_BARE);
    }
    cfxi_emit_c_text(c, ")");
}

static void put_complex(cfxi_ccode *c, cfx_value v)
{
    const cfx_value *parts = cfx_value_items(v, &(size_t){0});
    cfxi_emit_c_text(c, "cfx_var_from_datum(s, cfx_datum_complex(");
    c->scope_used = true;
    put_float(c, parts[0].as.f);
    cfxi_emit_c_text(c, ", ");
    put_float(c, parts[1].as.f);
    cfxi_emit_c_text(c, "))");
}

/* ---- values -------------------------------------------------------------------------------- */

static void put_node(cfxi_ccode *c, const cfx_node *n)
{
    const bool whole = cfxi_emit_c_is_single_loop(n);
    c->scope_used = c->scope_used || whole;
    cfxi_emit_c_text(c, whole ? "cfx_tuple(s, " : "");
    cfxi_emit_c_put(c, &c->line, n->name->data, n->name->size);
    cfxi_emit_c_text(c, whole ? ")" : "");
}

static void put_text(cfxi_ccode *c, const cfx_node *n, cfx_value v)
{
    size_t size;
    const char *text = cfx_value_text(v, &size);
    if (strlen(text) != size)
        cfxi_emit_c_refuse(c, n, "a string that contains a NUL cannot be written in C");
    cfxi_emit_c_string(c, text, size);
}

/* Numbers, texts: cfx_v(...) around them where a variable must be. */
static void put_simple(cfxi_ccode *c, const cfx_node *n, cfx_value v, const char *type,
                       cfxi_c_form form)
{
    const bool is_bool = v.kind == CFX_KIND_BOOL;
    const bool wants_bool = type && strncmp(type, "bool", 4) == 0 && !strchr(type, '[');
    if (is_bool && !wants_bool) {  /* in C `true` is 1 */
        cfxi_emit_c_text(c, v.as.b ? "cfx_var_bool(true)" : "cfx_var_bool(false)");
        return;
    }
    cfxi_emit_c_text(c, form == CFXI_C_VAR ? "cfx_v(" : "");
    if (is_bool)
        cfxi_emit_c_text(c, v.as.b ? "true" : "false");
    else if (v.kind == CFX_KIND_STR)
        put_text(c, n, v);
    else
        put_number(c, v);
    cfxi_emit_c_text(c, form == CFXI_C_VAR ? ")" : "");
}

void cfxi_emit_c_value(cfxi_ccode *c, const cfx_node *n, cfx_value v, const char *type,
                       cfxi_c_form form)
{
    switch ((cfx_kind)v.kind) {
    case CFX_KIND_INVALID: cfxi_emit_c_text(c, "cfx_var_empty()"); return;
    case CFX_KIND_NONE: cfxi_emit_c_text(c, "cfx_var_none()"); return;
    case CFX_KIND_ELLIPSIS: cfxi_emit_c_text(c, "cfx_var_ellipsis()"); return;
    case CFX_KIND_BOOL:
    case CFX_KIND_INT:
    case CFX_KIND_FLOAT:
    case CFX_KIND_STR: put_simple(c, n, v, type, form); return;
    case CFX_KIND_DTYPE: cfxi_emit_c_printf(c, "cfx_var_dtype(%s)", dtypes[v.as.i]); return;
    case CFX_KIND_LAYOUT: cfxi_emit_c_printf(c, "cfx_var_layout(%s)", layouts[v.as.i]); return;
    case CFX_KIND_MEMORY_FORMAT:
        cfxi_emit_c_printf(c, "cfx_var_memory_format(%s)", memory_formats[v.as.i]);
        return;
    case CFX_KIND_DEVICE:
        cfxi_emit_c_text(c, "cfx_var_device(");
        put_text(c, n, v);
        cfxi_emit_c_text(c, ")");
        return;
    case CFX_KIND_COMPLEX: put_complex(c, v); return;
    case CFX_KIND_SLICE: put_slice(c, n, v); return;
    case CFX_KIND_LIST:
    case CFX_KIND_TUPLE: put_list(c, n, v, type); return;
    case CFX_KIND_DICT: put_seq(c, n, v, "cfx_dict"); return;
    case CFX_KIND_NODE: put_node(c, v.as.node); return;
    case CFX_KIND_BYTES:
    case CFX_KIND_BIGINT:
    case CFX_KIND_RANGE:
    case CFX_KIND_SET:
    case CFX_KIND_FROZENSET:
    case CFX_KIND_NAMEDTUPLE:
    case CFX_KIND_GRAPH:
    case CFX_KIND_HOST:
    case CFX_KIND_COUNT: break;
    }
    cfxi_emit_c_refuse(c, n, "an argument of kind %s cannot be written in C",
                       cfx_kind_name((cfx_kind)v.kind));
}

void cfxi_emit_c_result(cfxi_ccode *c, const cfx_node *n, cfx_value v)
{
    if (v.kind == CFX_KIND_TUPLE)
        put_seq(c, n, v, "cfx_tuple");
    else
        cfxi_emit_c_value(c, n, v, NULL, CFXI_C_VAR);
}

/* ---- calls --------------------------------------------------------------------------------- */

/* Whether the argument is what is meant without it. */
static bool is_default(cfxi_ccode *c, const cfx_node *n, const cfx_schema_param *param, cfx_value v)
{
    if (v.kind == CFX_KIND_INVALID)
        return true;
    cfx_value usual = cfxi_lower_row_default(n->graph, param, param->value, NULL);
    if (usual.kind == CFX_KIND_INVALID)
        c->nomem = true;
    const bool same = cfx_value_equal(usual, v);
    cfx_value_discard(n->graph, usual);
    return same;
}

static void put_row(cfxi_ccode *c, const cfx_node *n, cfx_operator op)
{
    char name[CFX_SPELLING_SIZE];
    cfx_schema_param param;
    cfxi_emit_c_text(c, cfxi_ops_c_name(op, name));
    cfxi_emit_c_text(c, "(s");
    for (size_t i = 0; cfx_operator_param(op, i, &param); i++) {
        if (param.value.text)
            continue;
        cfxi_emit_c_comma(c);
        cfxi_emit_c_value(c, n, cfx_node_arg(n, i), param.type, CFXI_C_BARE);
    }
    for (size_t i = 0; i < cfx_node_num_args(n) && cfx_operator_param(op, i, &param); i++) {
        if (!param.value.text || is_default(c, n, &param, cfx_node_arg(n, i)))
            continue;
        cfxi_emit_c_comma(c);
        cfxi_emit_c_printf(c, ".%s = ", cfxi_ops_param_c_name(&param, name));
        cfxi_emit_c_value(c, n, cfx_node_arg(n, i), param.type, CFXI_C_VAR);
    }
    cfxi_emit_c_text(c, ")");
}

static void put_module_call(cfxi_ccode *c, const cfx_node *n)
{
    const cfx_str *path = n->callee->ref->name;
    cfxi_emit_c_text(c, "cfx_call(s, cfx_module_child(self, ");
    cfxi_emit_c_string(c, path->data, path->size);
    cfxi_emit_c_text(c, ")");
    for (size_t i = 0; i < cfx_node_num_args(n); i++) {
        cfxi_emit_c_comma(c);
        cfxi_emit_c_value(c, n, cfx_node_arg(n, i), NULL, CFXI_C_VAR);
    }
    cfxi_emit_c_text(c, ")");
    c->self_used = true;
}

/* An operator of a library: by its name, all by position. */
static void put_custom(cfxi_ccode *c, const cfx_node *n)
{
    const char *name = cfx_node_target(n, NULL, NULL);
    cfxi_emit_c_text(c, "cfx_apply_named(s, ");
    cfxi_emit_c_string(c, name ? name : "", name ? strlen(name) : 0);
    for (size_t i = 0; i < cfx_node_num_args(n); i++) {
        cfxi_emit_c_comma(c);
        cfxi_emit_c_value(c, n, cfx_node_arg(n, i), NULL, CFXI_C_VAR);
    }
    cfxi_emit_c_text(c, ")");
}

void cfxi_emit_c_call(cfxi_ccode *c, const cfx_node *n)
{
    const cfx_operator op = cfx_node_operator(n);
    c->scope_used = true;
    if (n->op == CFX_OP_GET_ATTR) {
        cfxi_emit_c_text(c, "cfx_module_param(s, self, ");
        cfxi_emit_c_string(c, n->callee->ref->name->data, n->callee->ref->name->size);
        cfxi_emit_c_text(c, ")");
        c->self_used = true;
    } else if (n->op == CFX_OP_CALL_MODULE) {
        put_module_call(c, n);
    } else if (cfx_operator_regions(op) > 0) {
        cfxi_emit_c_control(c, n);
    } else if (!op) {
        put_custom(c, n);
    } else {
        put_row(c, n, op);
    }
}
