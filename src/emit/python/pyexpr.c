/* pyexpr.c - Python expressions: literals that read back, attribute paths, calls.
 *
 * torch.fx formats lists, tuples, slices and the type of a named tuple itself, and leaves all that
 * is inside a dict, a set or a named tuple to Python's repr; so does this file (`plain`).
 */
#include "emit/named_members.h"
#include "ir/walk_impl.h"
#include "pycode_impl.h"

#include <math.h>
#include <stdio.h>

cfx_status cfxi_emit_py_fail(const cfx_node *n, cfx_status status, cfx_error *err,
                             const char *format, ...)
{
    char message[256];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (!n)
        return cfx_error_set(err, status, "%s", message);
    const char *file = cfx_node_file(n);
    if (!file)
        return cfx_error_set(err, status, "%s (node %%%s)", message, n->name->data);
    return cfx_error_set(err, status, "%s:%u: %s (node %%%s)", file, (unsigned)cfx_node_line(n),
                         message, n->name->data);
}

cfx_sink cfxi_emit_py_scratch(cfx_pycode *gen)
{
    gen->scratch.size = 0;
    return cfx_buffer_sink(&gen->scratch);
}

/* ---- identifiers and paths ----------------------------------------------------------------- */

bool cfxi_emit_py_is_plain(const char *text, size_t size)
{
    const bool private = size > 2 && text[0] == '_' && text[1] == '_' &&
                         !(text[size - 1] == '_' && text[size - 2] == '_');
    return cfxi_base_is_python_name(text, size) && !private;
}

/* Whether it follows a dot. torch.fx writes `self.class`; a file must be one that can be read. */
static bool is_dotted(const cfx_pycode *gen, const char *text, size_t size)
{
    return gen->names_only ? cfxi_emit_py_is_plain(text, size)
                           : cfxi_base_is_python_identifier(text, size);
}

static void put_repr_str(cfx_pycode *gen, const char *text, size_t size, bool bytes)
{
    cfxi_out out;
    cfxi_base_out_begin(&out, cfx_buffer_sink(&gen->body));
    if (bytes)
        cfxi_base_out_repr_bytes(&out, text, size);
    else
        cfxi_base_out_repr_str(&out, text, size);
    if (cfxi_base_out_end(&out, NULL))
        gen->nomem = true;
}

/* Whether text in double quotes needs no escapes. */
static bool is_quotable(const char *text, size_t size)
{
    uint32_t code;
    for (size_t i = 0, length; i < size; i += length) {
        length = cfxi_base_utf8_decode(text + i, size - i, &code);
        if (length == 0 || !cfxi_base_is_printable(code) || code == '"' || code == '\\')
            return false;
    }
    return true;
}

/* An attribute's name in double quotes, as torch.fx writes it. */
static void put_attribute_name(cfx_pycode *gen, const char *text, size_t size)
{
    if (!is_quotable(text, size)) {
        put_repr_str(gen, text, size, false);
        return;
    }
    cfxi_emit_py_char(gen, '"');
    cfxi_emit_py_put(gen, text, size);
    cfxi_emit_py_char(gen, '"');
}

/* The dictionary in which a part is to be found: `_modules`; NULL: it is an attribute. */
static const char *store_of(const cfxi_parts *parts, const char *path, size_t size)
{
    const cfxi_part *part = parts ? cfxi_emit_parts_find(parts, path, size) : NULL;
    return part ? part->store : NULL;
}

/* What was written from `start` of the body on -> `getattr(..., "name")` */
static void put_getattr_of(cfx_pycode *gen, size_t start, const char *name, size_t size)
{
    CFXI_PY_LIT(gen, "getattr(");
    if (!gen->nomem) {
        char *text = gen->body.data + start;
        memmove(text + 8, text, gen->body.size - 8 - start);
        memcpy(text, "getattr(", 8);
    }
    CFXI_PY_LIT(gen, ", ");
    put_attribute_name(gen, name, size);
    cfxi_emit_py_char(gen, ')');
}

void cfxi_emit_py_put_member(cfx_pycode *gen, size_t start, const char *name, size_t size,
                             bool inside)
{
    if (inside && !cfxi_base_is_python_name(name, size)) {
        put_getattr_of(gen, start, name, size);
        return;
    }
    if (inside)
        cfxi_emit_py_char(gen, '.');
    cfxi_emit_py_put(gen, name, size);
}

/* The text of a receiver, written at `start` of the body, with `path` below it:
 * `self.layers` -> `getattr(self.layers, "0").weight`. `parts` (may be NULL) are those below it. */
static void put_path(cfx_pycode *gen, size_t start, const cfxi_parts *parts, const char *path,
                     size_t size)
{
    const char *end = path + size;
    for (const char *atom = path;; atom++) {
        const char *dot = memchr(atom, '.', (size_t)(end - atom));
        size_t length = (size_t)((dot ? dot : end) - atom);
        const char *store = store_of(parts, path, (size_t)(atom - path) + length);
        if (store) {
            cfxi_emit_py_char(gen, '.');
            cfxi_emit_py_put(gen, store, strlen(store));
            cfxi_emit_py_char(gen, '[');
            put_attribute_name(gen, atom, length);
            cfxi_emit_py_char(gen, ']');
        } else if (is_dotted(gen, atom, length)) {
            cfxi_emit_py_char(gen, '.');
            cfxi_emit_py_put(gen, atom, length);
        } else {
            put_getattr_of(gen, start, atom, length);
        }
        if (!dot)
            return;
        atom = dot;
    }
}

/* ---- literals ------------------------------------------------------------------------------ */

static void put_int(cfx_pycode *gen, int64_t i)
{
    if (i >= 0 && i < 10) {
        cfxi_emit_py_char(gen, (char)('0' + i));
        return;
    }
    char digits[CFXI_NUMBER_SIZE];
    cfxi_emit_py_put(gen, digits, cfxi_base_format_int(i, digits));
}

static void put_float(cfx_pycode *gen, double f)
{
    if (isinf(f))
        gen->builtins |= CFX_PYCODE_INF;
    if (isnan(f))
        gen->builtins |= CFX_PYCODE_NAN;
    char digits[CFXI_NUMBER_SIZE];
    cfxi_emit_py_put(gen, digits, cfxi_base_format_float(f, digits));
}

/* A part of a complex number: without the ".0" of a whole number. */
static void put_part(cfx_pycode *gen, double f)
{
    char digits[CFXI_NUMBER_SIZE];
    size_t size = cfxi_base_format_float(f, digits);
    if (size > 2 && memcmp(digits + size - 2, ".0", 2) == 0)
        size -= 2;
    if (isnan(f))
        gen->builtins |= CFX_PYCODE_NAN;
    if (isinf(f))
        gen->builtins |= CFX_PYCODE_INF;
    cfxi_emit_py_put(gen, digits, size);
}

/* Whether the real part is left out; else the number comes in parentheses. */
static bool is_imaginary(const cfx_value *parts)
{
    return parts[0].as.f == 0 && !signbit(parts[0].as.f);
}

static void put_complex(cfx_pycode *gen, const cfx_value *parts)
{
    double re = parts[0].as.f;
    double im = parts[1].as.f;
    if (isnan(im) || isinf(im)) {
        /* repr says "nanj", which is no Python. */
        CFXI_PY_LIT(gen, "complex(");
        put_float(gen, re);
        CFXI_PY_LIT(gen, ", ");
        put_float(gen, im);
        cfxi_emit_py_char(gen, ')');
        return;
    }
    bool only_im = is_imaginary(parts);
    if (!only_im) {
        cfxi_emit_py_char(gen, '(');
        put_part(gen, re);
        if (!signbit(im))
            cfxi_emit_py_char(gen, '+');
    }
    put_part(gen, im);
    cfxi_emit_py_char(gen, 'j');
    if (!only_im)
        cfxi_emit_py_char(gen, ')');
}

static void put_device(cfx_pycode *gen, const char *text, size_t size)
{
    const char *colon = memchr(text, ':', size);
    size_t type_size = colon ? (size_t)(colon - text) : size;
    gen->builtins |= CFX_PYCODE_DEVICE;
    CFXI_PY_LIT(gen, "device(type='");
    cfxi_emit_py_put(gen, text, type_size);
    cfxi_emit_py_char(gen, '\'');
    if (colon) {
        const char *digits = colon + 1;
        while (digits + 1 < text + size && *digits == '0')  /* Python has no 01 */
            digits++;
        CFXI_PY_LIT(gen, ", index=");
        cfxi_emit_py_put(gen, digits, (size_t)(text + size - digits));
    }
    cfxi_emit_py_char(gen, ')');
}

static void put_word(cfx_pycode *gen, cfx_value v)
{
    const char *word = cfxi_ir_value_word(v);
    if (v.kind != CFX_KIND_NONE && v.kind != CFX_KIND_BOOL)
        gen->builtins |= CFX_PYCODE_TORCH;
    cfxi_emit_py_put(gen, word, strlen(word));
}

static cfx_graph *graph_of(const cfx_pycode *gen, const cfx_node *n)
{
    return n ? n->graph : gen->graph;
}

/* ---- values -------------------------------------------------------------------------------- */

static void color_on(cfx_pycode *gen)
{
    if (gen->options->colored)
        CFXI_PY_LIT(gen, "\033[34m");
}

static void color_off(cfx_pycode *gen)
{
    if (gen->options->colored)
        CFXI_PY_LIT(gen, "\033[0m");
}

/* Whether `v` is the object, or a tuple with it inside, however deep. */
static bool has_ref(const cfx_pycode *gen, cfx_value v, const cfx_ref *ref)
{
    bool found = false;
    cfxi_walk w;
    cfxi_walk_frame *f;
    cfxi_ir_walk_begin(&w, gen->allocator);
    cfxi_ir_walk_items(&w, CFX_KIND_TUPLE, &v, 1);
    for (cfxi_walk_event event;
         !found && (event = cfxi_ir_walk_next(&w, &f)) != CFXI_WALK_END;) {
        const cfx_value item = event == CFXI_WALK_NEXT ? f->items[f->i - 1] : cfx_value_none();
        found = item.kind == CFX_KIND_HOST && item.as.ref == ref;
        if (item.kind == CFX_KIND_TUPLE)
            cfxi_ir_walk_into(&w, item);
    }
    cfxi_ir_walk_end(&w, NULL);
    return found;
}

static cfx_status put_global(cfx_pycode *gen, cfx_ref *ref, const cfx_node *n, cfx_error *err)
{
    cfx_pycode_text text;
    CFX_TRY(cfxi_emit_py_ref_text(gen, graph_of(gen, n), ref, n, &text, err));
    cfxi_emit_py_put(gen, text.data, text.size);
    return CFX_OK;
}

/* Whether a host object is a class that a node asks for, as in isinstance(x, C): torch.fx writes
 * its repr, which is no Python, but has no such nodes either. */
static bool is_asked_for(const cfx_pycode *gen, const cfx_node *n, const cfx_ref *ref)
{
    const char *target = n && n->op == CFX_OP_CALL_FUNCTION ? cfx_node_target(n, NULL, NULL) : NULL;
    size_t n_args = 0;
    if (!target || (strcmp(target, "builtins.isinstance") != 0 &&
                    strcmp(target, "builtins.issubclass") != 0))
        return false;
    cfx_value_items(cfx_node_args(n), &n_args);
    return n_args == 2 && has_ref(gen, cfx_node_arg(n, 1), ref);
}

/* Whether a node comes from a program. Others get the text that torch.fx gives them, even where
 * that is not Python: <class 'C'>. */
static bool is_captured(const cfx_node *n) { return n && cfx_node_line(n) > 0; }

static cfx_status put_host(cfx_pycode *gen, cfx_ref *ref, const cfx_node *n, bool plain,
                           cfx_error *err)
{
    const cfx_pycode_options *options = gen->options;
    cfx_graph *g = graph_of(gen, n);
    if (ref->kind == CFXI_REF_NAME || gen->names_only || is_asked_for(gen, n, ref))
        return put_global(gen, ref, n, err);
    if (options->value && !plain) {
        cfx_sink out = cfxi_emit_py_scratch(gen);
        CFX_TRY(options->value(options->ctx, gen, ref->object, out, err));
        if (gen->scratch.size) {
            cfxi_emit_py_put_text(gen, gen->scratch.data, gen->scratch.size);
            return CFX_OK;
        }
    }
    cfx_sink out = cfxi_emit_py_scratch(gen);
    CFX_TRY(g->host->repr(g->host->ctx, ref->object, out, err));
    if (gen->scratch.size > 0 && gen->scratch.data[0] == '<' && is_captured(n))
        return put_global(gen, ref, n, err);
    if (!plain)
        color_on(gen);
    cfxi_emit_py_put_text(gen, gen->scratch.data, gen->scratch.size);
    if (!plain)
        color_off(gen);
    return CFX_OK;
}

/* What repr writes and torch.fx colours as one. */
static cfx_status put_leaf(cfx_pycode *gen, cfx_value v, const cfx_node *n, cfx_error *err)
{
    switch ((cfx_kind)v.kind) {
    case CFX_KIND_NONE:
    case CFX_KIND_BOOL:
    case CFX_KIND_DTYPE:
    case CFX_KIND_LAYOUT:
    case CFX_KIND_MEMORY_FORMAT:
        put_word(gen, v);
        return CFX_OK;
    case CFX_KIND_ELLIPSIS:
        CFXI_PY_LIT(gen, "Ellipsis");
        return CFX_OK;
    case CFX_KIND_INT:
        put_int(gen, v.as.i);
        return CFX_OK;
    case CFX_KIND_FLOAT:
        put_float(gen, v.as.f);
        return CFX_OK;
    case CFX_KIND_STR:
    case CFX_KIND_BYTES:
        put_repr_str(gen, v.as.str->data, v.as.str->size, v.kind == CFX_KIND_BYTES);
        return CFX_OK;
    case CFX_KIND_BIGINT:
        cfxi_emit_py_put(gen, v.as.str->data, v.as.str->size);
        return CFX_OK;
    case CFX_KIND_DEVICE:
        put_device(gen, v.as.str->data, v.as.str->size);
        return CFX_OK;
    case CFX_KIND_COMPLEX:
        put_complex(gen, v.as.seq->items);
        return CFX_OK;
    case CFX_KIND_INVALID:
    case CFX_KIND_SLICE:
    case CFX_KIND_RANGE:
    case CFX_KIND_LIST:
    case CFX_KIND_TUPLE:
    case CFX_KIND_SET:
    case CFX_KIND_FROZENSET:
    case CFX_KIND_DICT:
    case CFX_KIND_NAMEDTUPLE:
    case CFX_KIND_NODE:
    case CFX_KIND_GRAPH:
    case CFX_KIND_HOST:
    case CFX_KIND_COUNT:
        break;
    }
    return cfxi_emit_py_fail(n, CFX_E_UNSUPPORTED, err, "a value of kind %s cannot be written as a "
                             "Python expression",
                             cfx_kind_name((cfx_kind)v.kind));
}

/* ---- containers ---------------------------------------------------------------------------- */

/* The mode of a frame: its items are plain; its colour ends with it. */
enum { ITEMS_PLAIN = 1, ITEMS_COLORED = 2 };

/* What is being written: one value, and whose argument it is. */
typedef struct literal {
    cfx_pycode *gen;
    const cfx_node *node;  /* or NULL */
    cfx_error *err;
    cfxi_walk walk;
} literal;

static cfx_status enter(literal *l, cfx_kind kind, const cfx_value *items, size_t n, unsigned mode)
{
    cfxi_walk_frame *f = cfxi_ir_walk_items(&l->walk, kind, items, n);
    if (!f)
        return CFX_E_NOMEM;
    f->mode = (uint16_t)mode;
    return CFX_OK;
}

static bool has_plain_fields(cfx_value names)
{
    size_t n;
    const cfx_value *items = cfx_value_items(names, &n);
    for (size_t i = 0; i < n; i++)
        if (items[i].kind != CFX_KIND_STR ||
            !cfxi_base_is_python_name(items[i].as.str->data, items[i].as.str->size))
            return false;
    return true;
}

/* A named tuple in a dict or a set is its repr, the class's own name and the fields; elsewhere it
 * is a call of the class with a tuple's items. */
static cfx_status open_namedtuple(literal *l, const cfx_value *items, size_t n, bool plain)
{
    cfx_pycode *gen = l->gen;
    cfx_graph *g = graph_of(gen, l->node);
    if (!plain) {
        cfx_pycode_text type;
        CFX_TRY(cfxi_emit_py_ref_text(gen, g, items[0].as.ref, l->node, &type, l->err));
        cfxi_emit_py_put(gen, type.data, type.size);
        cfxi_emit_py_char(gen, '(');
        return enter(l, CFX_KIND_TUPLE, items + 2, n - 2, ITEMS_PLAIN);
    }
    const cfx_str *name = cfxi_ir_ref_qualified_name(g, items[0].as.ref, l->err);
    if (!name)
        return l->err ? l->err->status : CFX_E_KEY;
    const char *dot = strrchr(name->data, '.');
    const char *last = dot ? dot + 1 : name->data;
    /* what repr says is read back by its bare name: it must not be a builtin's */
    if (!cfxi_ir_name_is_legal(last, strlen(last)) || !has_plain_fields(items[1]))
        return cfxi_emit_py_fail(l->node, CFX_E_VALUE, l->err, "a named tuple of type '%.80s' "
                                 "cannot be written inside a dict or set; its class and its fields "
                                 "must have ordinary names", name->data);
    cfxi_emit_py_put(gen, last, strlen(last));
    cfxi_emit_py_char(gen, '(');
    CFX_TRY(enter(l, CFX_KIND_NAMEDTUPLE, items, n, ITEMS_PLAIN));
    cfxi_ir_walk_top(&l->walk)->i = 2;
    return CFX_OK;
}

/* Ranges, sets and dicts: what is inside is left to repr, and coloured as one. */
static cfx_status open_repr(literal *l, cfx_value v, bool plain)
{
    cfx_pycode *gen = l->gen;
    const bool colored = !plain && gen->options->colored;
    const unsigned mode = ITEMS_PLAIN | (colored ? ITEMS_COLORED : 0);
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    if (colored)
        color_on(gen);
    if (v.kind == CFX_KIND_DICT) {
        cfxi_emit_py_char(gen, '{');
    } else if (v.kind == CFX_KIND_RANGE) {
        CFXI_PY_LIT(gen, "range(");
        n = items[2].kind == CFX_KIND_INT && items[2].as.i == 1 ? 2 : 3;
    } else {
        if (v.kind == CFX_KIND_FROZENSET)
            CFXI_PY_LIT(gen, "frozenset(");
        else if (n == 0)
            CFXI_PY_LIT(gen, "set(");
        if (n > 0)
            cfxi_emit_py_char(gen, '{');
    }
    return enter(l, (cfx_kind)v.kind, items, n, mode);
}

static cfx_status open_seq(literal *l, cfx_value v, bool plain)
{
    cfx_pycode *gen = l->gen;
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    switch (v.kind) {
    case CFX_KIND_TUPLE:
        cfxi_emit_py_char(gen, '(');
        break;
    case CFX_KIND_LIST:
        cfxi_emit_py_char(gen, '[');
        break;
    case CFX_KIND_SLICE:
        CFXI_PY_LIT(gen, "slice(");
        break;
    case CFX_KIND_NAMEDTUPLE:
        return open_namedtuple(l, items, n, plain);
    default:
        return open_repr(l, v, plain);
    }
    return enter(l, (cfx_kind)v.kind, items, n, plain ? ITEMS_PLAIN : 0);
}

static void close_seq(cfx_pycode *gen, const cfxi_walk_frame *f)
{
    switch (f->kind) {
    case CFX_KIND_LIST:
        cfxi_emit_py_char(gen, ']');
        break;
    case CFX_KIND_DICT:
        cfxi_emit_py_char(gen, '}');
        break;
    case CFX_KIND_SET:
        cfxi_emit_py_char(gen, f->n ? '}' : ')');
        break;
    case CFX_KIND_FROZENSET:
        cfxi_emit_py_put(gen, f->n ? "})" : ")", f->n ? 2 : 1);
        break;
    default:
        if (f->kind == CFX_KIND_TUPLE && f->n == 1)
            cfxi_emit_py_char(gen, ',');
        cfxi_emit_py_char(gen, ')');
        break;
    }
    if (f->mode & ITEMS_COLORED)
        color_off(gen);
}

/* What stands before item i. */
static void separate(cfx_pycode *gen, const cfxi_walk_frame *f, uint32_t i)
{
    const bool named = f->kind == CFX_KIND_NAMEDTUPLE;
    if (f->kind == CFX_KIND_DICT && i % 2 == 1)
        CFXI_PY_LIT(gen, ": ");
    else if (i > (named ? 2 : 0))
        CFXI_PY_LIT(gen, ", ");
    if (!named)
        return;
    const cfx_str *field = f->items[1].as.seq->items[i - 2].as.str;
    cfxi_emit_py_put(gen, field->data, field->size);
    cfxi_emit_py_char(gen, '=');
}

/* ---- any value ----------------------------------------------------------------------------- */

static bool is_container(cfx_value v) { return cfxi_ir_is_seq(v) && v.kind != CFX_KIND_COMPLEX; }

/* What is written for a value: in a region an input may be a literal. */
static cfx_value written(const cfx_pycode *gen, cfx_value v)
{
    const cfx_value *instead;
    while (v.kind == CFX_KIND_NODE && (instead = cfxi_base_pointers_get(&gen->instead, v.as.node)))
        v = *instead;
    return v;
}

/* What is not a container. */
static cfx_status put_flat(cfx_pycode *gen, cfx_value v, const cfx_node *n, bool plain,
                           cfx_error *err)
{
    if (v.kind == CFX_KIND_NODE) {
        if (cfxi_emit_py_placed(gen, v.as.node) == CFXI_PY_INLINE)
            return cfxi_emit_py_put_inline(gen, v.as.node, err);
        cfxi_emit_py_put_name(gen, v.as.node);
        return CFX_OK;
    }
    if (v.kind == CFX_KIND_HOST)
        return put_host(gen, v.as.ref, n, plain, err);
    if (plain || !gen->options->colored)
        return put_leaf(gen, v, n, err);
    color_on(gen);
    CFX_TRY(put_leaf(gen, v, n, err));
    color_off(gen);
    return CFX_OK;
}

static cfx_status put_next(literal *l, const cfxi_walk_frame *f)
{
    const uint32_t i = f->i - 1;
    const bool plain = f->mode & ITEMS_PLAIN;
    separate(l->gen, f, i);
    const cfx_value v = written(l->gen, f->items[i]);
    return is_container(v) ? open_seq(l, v, plain) : put_flat(l->gen, v, l->node, plain, l->err);
}

static cfx_status put_seq(cfx_pycode *gen, cfx_value v, const cfx_node *n, cfx_error *err)
{
    literal l;
    l.gen = gen;
    l.node = n;
    l.err = err;
    cfxi_ir_walk_begin(&l.walk, gen->allocator);
    cfxi_walk_frame *f;
    cfx_status status = open_seq(&l, v, false);
    for (cfxi_walk_event event;
         status == CFX_OK && (event = cfxi_ir_walk_next(&l.walk, &f)) != CFXI_WALK_END;) {
        if (event == CFXI_WALK_NEXT)
            status = put_next(&l, f);
        else
            close_seq(gen, f);
    }
    const cfx_status walked = cfxi_ir_walk_end(&l.walk, err);
    return walked == CFX_OK ? status : walked;
}

static cfx_status put_value(cfx_pycode *gen, cfx_value v, const cfx_node *n, cfx_error *err)
{
    v = written(gen, v);
    return is_container(v) ? put_seq(gen, v, n, err) : put_flat(gen, v, n, false, err);
}

cfx_status cfxi_emit_py_value(cfx_pycode *gen, cfx_value v, const cfx_node *n, cfx_error *err)
{
    return put_value(gen, v, n, err);
}

cfx_status cfx_pycode_value(cfx_pycode *gen, cfx_value v, cfx_sink out, cfx_error *err)
{
    /* Written at the end of the body, handed over and taken back. The scratch buffer may be the
     * sink of the callback that asks, so it is set aside. */
    size_t start = gen->body.size;
    bool raw = gen->raw;
    cfx_buffer outer = gen->scratch;
    cfx_buffer_init(&gen->scratch, gen->allocator);
    gen->raw = true;
    cfx_status status = cfxi_emit_py_value(gen, v, NULL, err);
    gen->raw = raw;
    cfx_buffer_free(&gen->scratch);
    gen->scratch = outer;
    if (status == CFX_OK && gen->nomem)
        status = cfxi_base_nomem(err);
    if (status == CFX_OK)
        status = cfxi_base_sink_write(out, gen->body.data + start, gen->body.size - start);
    gen->body.size = start;
    return status;
}

/* ---- calls --------------------------------------------------------------------------------- */

static bool is_negative(cfx_value v)
{
    return (v.kind == CFX_KIND_INT && v.as.i < 0) ||
           (v.kind == CFX_KIND_FLOAT && signbit(v.as.f)) ||
           (v.kind == CFX_KIND_BIGINT && v.as.str->data[0] == '-') ||
           (v.kind == CFX_KIND_COMPLEX && is_imaginary(v.as.seq->items) &&
            signbit(v.as.seq->items[1].as.f));
}

/* An operand, in parentheses where the bare literal would mean something else: -2 ** x, 3.real. */
static cfx_status put_operand(cfx_pycode *gen, cfx_value v, bool parentheses, const cfx_node *n,
                              cfx_error *err)
{
    if (parentheses)
        cfxi_emit_py_char(gen, '(');
    CFX_TRY(cfxi_emit_py_value(gen, v, n, err));
    if (parentheses)
        cfxi_emit_py_char(gen, ')');
    return CFX_OK;
}

static cfx_status put_receiver(cfx_pycode *gen, cfx_value v, const cfx_node *n, cfx_error *err)
{
    v = written(gen, v);
    bool number = v.kind == CFX_KIND_INT || v.kind == CFX_KIND_BIGINT || is_negative(v);
    return put_operand(gen, v, number || cfxi_emit_py_is_compound(gen, v), n, err);
}

/* "k = c"; what is not a name in Python, or would be changed in a class: "**{'odd name': c}". */
static cfx_status put_keyword(cfx_pycode *gen, const cfx_value *pair, const cfx_node *n,
                              cfx_error *err)
{
    if (pair[0].kind != CFX_KIND_STR)
        return cfxi_emit_py_fail(n, CFX_E_TYPE, err, "a keyword argument is named by a %s; use a "
                                 "string", cfx_kind_name((cfx_kind)pair[0].kind));
    const cfx_str *key = pair[0].as.str;
    const bool plain = gen->names_only ? cfxi_emit_py_is_plain(key->data, key->size)
                                       : cfxi_base_is_python_name(key->data, key->size);
    if (plain) {
        cfxi_emit_py_put(gen, key->data, key->size);
        CFXI_PY_LIT(gen, " = ");
        return put_value(gen, pair[1], n, err);
    }
    CFXI_PY_LIT(gen, "**{");
    put_repr_str(gen, key->data, key->size, false);
    CFXI_PY_LIT(gen, ": ");
    CFX_TRY(put_value(gen, pair[1], n, err));
    cfxi_emit_py_char(gen, '}');
    return CFX_OK;
}

/* "a, b, k = c)" */
static cfx_status put_arguments(cfx_pycode *gen, const cfx_node *n, size_t first, cfx_error *err)
{
    size_t n_args = n->args ? n->args->size : 0;
    const char *comma = ", ";
    size_t comma_size = 0;
    for (size_t i = first; i < n_args; i++, comma_size = 2) {
        cfxi_emit_py_put(gen, comma, comma_size);
        CFX_TRY(put_value(gen, n->args->items[i], n, err));
    }
    for (size_t i = 0; n->kwargs && i < n->kwargs->size; i += 2, comma_size = 2) {
        cfxi_emit_py_put(gen, comma, comma_size);
        CFX_TRY(put_keyword(gen, &n->kwargs->items[i], n, err));
    }
    cfxi_emit_py_char(gen, ')');
    return CFX_OK;
}

static cfx_status need_args(const cfx_node *n, size_t wanted, cfx_error *err)
{
    size_t given = n->args ? n->args->size : 0;
    if (given >= wanted)
        return CFX_OK;
    return cfxi_emit_py_fail(n, CFX_E_INDEX, err, "%s needs %zu positional argument%s, got %zu",
                             n->callee->ref->name ? n->callee->ref->name->data : "the call", wanted,
                             wanted == 1 ? "" : "s", given);
}

bool cfxi_emit_py_is_attribute(const cfx_pycode *gen, const cfx_node *n)
{
    if (!n->args || n->args->size != 2 || n->args->items[1].kind != CFX_KIND_STR)
        return false;
    const cfx_str *name = n->args->items[1].as.str;
    return is_dotted(gen, name->data, name->size);
}

static cfx_status put_getattr(cfx_pycode *gen, const cfx_node *n, const cfxi_py_callee *callee,
                              cfx_error *err)
{
    CFX_TRY(need_args(n, 2, err));
    const cfx_value *args = n->args->items;
    if (!cfxi_emit_py_is_attribute(gen, n)) {
        cfxi_emit_py_put(gen, callee->text, callee->size);
        cfxi_emit_py_char(gen, '(');
        return put_arguments(gen, n, 0, err);
    }
    CFX_TRY(put_receiver(gen, args[0], n, err));
    cfxi_emit_py_char(gen, '.');
    cfxi_emit_py_put(gen, args[1].as.str->data, args[1].as.str->size);
    return CFX_OK;
}

/* torch.fx drops what an operator cannot take, but has formatted it first: what it refers to still
 * gets its global. */
static cfx_status drop_extra(cfx_pycode *gen, const cfx_node *n, size_t first, cfx_error *err)
{
    for (size_t i = first; i < n->args->size; i++) {
        size_t start = gen->body.size;
        CFX_TRY(cfxi_emit_py_value(gen, n->args->items[i], n, err));
        gen->body.size = start;
    }
    return CFX_OK;
}

static cfx_status put_infix(cfx_pycode *gen, const cfx_node *n, const cfxi_py_callee *callee,
                            cfx_error *err)
{
    CFX_TRY(need_args(n, 2, err));
    bool power = callee->size == 4 && callee->text[1] == '*';
    const cfx_value *args = n->args->items;
    bool first =
        (power && is_negative(written(gen, args[0]))) || cfxi_emit_py_is_compound(gen, args[0]);
    CFX_TRY(put_operand(gen, args[0], first, n, err));
    cfxi_emit_py_put(gen, callee->text, callee->size);
    CFX_TRY(put_operand(gen, args[1], cfxi_emit_py_is_compound(gen, args[1]), n, err));
    return drop_extra(gen, n, 2, err);
}

static cfx_status put_call(cfx_pycode *gen, const cfx_node *n, const cfxi_py_callee *callee,
                           cfx_error *err)
{
    switch (callee->form) {
    case CFXI_PY_INFIX:
        return put_infix(gen, n, callee, err);
    case CFXI_PY_PREFIX:
        CFX_TRY(need_args(n, 1, err));
        cfxi_emit_py_put(gen, callee->text, callee->size);
        CFX_TRY(put_operand(gen, n->args->items[0],
                            cfxi_emit_py_is_compound(gen, n->args->items[0]), n, err));
        return drop_extra(gen, n, 1, err);
    case CFXI_PY_GETITEM:
        CFX_TRY(need_args(n, 2, err));
        CFX_TRY(put_operand(gen, n->args->items[0],
                            cfxi_emit_py_is_compound(gen, n->args->items[0]), n, err));
        cfxi_emit_py_char(gen, '[');
        CFX_TRY(cfxi_emit_py_value(gen, n->args->items[1], n, err));
        cfxi_emit_py_char(gen, ']');
        return drop_extra(gen, n, 2, err);
    case CFXI_PY_GETATTR:
        return put_getattr(gen, n, callee, err);
    case CFXI_PY_CALL:
    case CFXI_PY_INPLACE:
    case CFXI_PY_SETITEM:
    case CFXI_PY_COND:
    case CFXI_PY_WHILE:
    case CFXI_PY_FOR:
        break;
    }
    cfxi_emit_py_put(gen, callee->text, callee->size);
    cfxi_emit_py_char(gen, '(');
    return put_arguments(gen, n, 0, err);
}

cfx_status cfxi_emit_py_inplace(cfx_pycode *gen, const cfx_node *n, const cfxi_py_callee *callee,
                                bool copy, cfx_error *err)
{
    bool item = callee->form == CFXI_PY_SETITEM;
    CFX_TRY(need_args(n, item ? 3 : 2, err));
    const cfx_value *args = n->args->items;
    if (copy)
        cfxi_emit_py_put_name(gen, n);
    else
        CFX_TRY(cfxi_emit_py_value(gen, args[0], n, err));
    if (!item) {
        cfxi_emit_py_put(gen, callee->text, callee->size);
        CFX_TRY(cfxi_emit_py_value(gen, args[1], n, err));
        return drop_extra(gen, n, 2, err);
    }
    cfxi_emit_py_char(gen, '[');
    CFX_TRY(cfxi_emit_py_value(gen, args[1], n, err));
    CFXI_PY_LIT(gen, "] = ");
    CFX_TRY(cfxi_emit_py_value(gen, args[2], n, err));
    return drop_extra(gen, n, 3, err);
}

cfx_status cfxi_emit_py_rhs(cfx_pycode *gen, cfx_node *n, const cfxi_py_callee *callee,
                            cfx_error *err)
{
    size_t start = gen->body.size;
    const cfx_str *target = n->callee->ref->name;
    if (n->op == CFX_OP_CALL_FUNCTION)
        return put_call(gen, n, callee, err);
    if (!target || n->callee->ref->kind != CFXI_REF_NAME)
        return cfxi_emit_py_fail(n, CFX_E_TYPE, err, "the target of %s must be a string",
                                 cfx_opcode_name((cfx_opcode)n->op));
    bool method = n->op == CFX_OP_CALL_METHOD;
    if (method) {
        CFX_TRY(need_args(n, 1, err));
        CFX_TRY(put_receiver(gen, n->args->items[0], n, err));
    } else {
        cfxi_emit_py_put(gen, gen->root, gen->root_size);
    }
    put_path(gen, start, method ? NULL : gen->parts, target->data, target->size);
    if (n->op == CFX_OP_GET_ATTR)
        return CFX_OK;
    cfxi_emit_py_char(gen, '(');
    return put_arguments(gen, n, method ? 1 : 0, err);
}
