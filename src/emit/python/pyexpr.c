/* pyexpr.c - Python expressions: literals that read back, attribute paths, calls.
 *
 * torch.fx formats lists, tuples, slices and the type of a named tuple itself, and leaves all that
 * is inside a dict, a set or a named tuple to Python's repr; so does this file (`plain`).
 */
#include "emit/named_members.h"
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
    return cfxi_base_is_python_identifier(text, size) && !cfxi_base_is_keyword(text, size) &&
           !private;
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

/* An attribute's name in double quotes, as torch.fx writes it. */
static void put_attribute_name(cfx_pycode *gen, const char *text, size_t size)
{
    bool simple = true;
    for (size_t i = 0; i < size; i++)
        simple = simple && text[i] != '"' && text[i] != '\\' && (unsigned char)text[i] >= ' ';
    if (!simple) {
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
            CFXI_PY_LIT(gen, "getattr(");
            if (!gen->nomem) {
                char *text = gen->body.data + start;
                memmove(text + 8, text, gen->body.size - 8 - start);
                memcpy(text, "getattr(", 8);
            }
            CFXI_PY_LIT(gen, ", ");
            put_attribute_name(gen, atom, length);
            cfxi_emit_py_char(gen, ')');
        }
        if (!dot)
            return;
        atom = dot;
    }
}

/* ---- literals ------------------------------------------------------------------------------ */

static cfx_status put_value(cfx_pycode *gen, cfx_value v, const cfx_node *n, bool plain,
                            cfx_error *err);

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
        CFXI_PY_LIT(gen, ", index=");
        cfxi_emit_py_put(gen, colon + 1, size - type_size - 1);
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

/* ---- containers ---------------------------------------------------------------------------- */

static cfx_status put_items(cfx_pycode *gen, const cfx_value *items, size_t n_items,
                            const cfx_node *n, bool plain, cfx_error *err)
{
    for (size_t i = 0; i < n_items; i++) {
        if (i > 0)
            CFXI_PY_LIT(gen, ", ");
        CFX_TRY(put_value(gen, items[i], n, plain, err));
    }
    return CFX_OK;
}

static cfx_status put_tuple(cfx_pycode *gen, const cfx_value *items, size_t n_items,
                            const cfx_node *n, bool plain, cfx_error *err)
{
    cfxi_emit_py_char(gen, '(');
    CFX_TRY(put_items(gen, items, n_items, n, plain, err));
    if (n_items == 1)
        cfxi_emit_py_char(gen, ',');
    cfxi_emit_py_char(gen, ')');
    return CFX_OK;
}

static cfx_status put_set(cfx_pycode *gen, cfx_value v, const cfx_node *n, cfx_error *err)
{
    bool frozen = v.kind == CFX_KIND_FROZENSET;
    if (!v.as.seq || v.as.seq->size == 0) {
        if (frozen)
            CFXI_PY_LIT(gen, "frozenset()");
        else
            CFXI_PY_LIT(gen, "set()");
        return CFX_OK;
    }
    if (frozen)
        CFXI_PY_LIT(gen, "frozenset(");
    cfxi_emit_py_char(gen, '{');
    CFX_TRY(put_items(gen, v.as.seq->items, v.as.seq->size, n, true, err));
    cfxi_emit_py_char(gen, '}');
    if (frozen)
        cfxi_emit_py_char(gen, ')');
    return CFX_OK;
}

static cfx_status put_dict(cfx_pycode *gen, const cfx_value *items, size_t n_items,
                           const cfx_node *n, cfx_error *err)
{
    cfxi_emit_py_char(gen, '{');
    for (size_t i = 0; i + 1 < n_items; i += 2) {
        if (i > 0)
            CFXI_PY_LIT(gen, ", ");
        CFX_TRY(put_value(gen, items[i], n, true, err));
        CFXI_PY_LIT(gen, ": ");
        CFX_TRY(put_value(gen, items[i + 1], n, true, err));
    }
    cfxi_emit_py_char(gen, '}');
    return CFX_OK;
}

static cfx_status put_range(cfx_pycode *gen, const cfx_value *parts, const cfx_node *n,
                            cfx_error *err)
{
    bool step = parts[2].kind != CFX_KIND_INT || parts[2].as.i != 1;
    CFXI_PY_LIT(gen, "range(");
    CFX_TRY(put_items(gen, parts, step ? 3 : 2, n, true, err));
    cfxi_emit_py_char(gen, ')');
    return CFX_OK;
}

static cfx_graph *graph_of(const cfx_pycode *gen, const cfx_node *n)
{
    return n ? n->graph : gen->graph;
}

/* repr of a named tuple: the class's own name, and the fields. */
static cfx_status put_namedtuple_repr(cfx_pycode *gen, const cfx_value *items, size_t n_items,
                                      const cfx_node *n, cfx_error *err)
{
    const cfx_str *name = cfxi_ir_ref_qualified_name(graph_of(gen, n), items[0].as.ref, err);
    if (!name)
        return err ? err->status : CFX_E_KEY;
    const char *dot = strrchr(name->data, '.');
    const char *last = dot ? dot + 1 : name->data;
    size_t n_fields;
    const cfx_value *fields = cfx_value_items(items[1], &n_fields);
    cfxi_emit_py_put(gen, last, strlen(last));
    cfxi_emit_py_char(gen, '(');
    for (size_t i = 0; i + 2 < n_items && i < n_fields; i++) {
        if (i > 0)
            CFXI_PY_LIT(gen, ", ");
        cfxi_emit_py_put(gen, fields[i].as.str->data, fields[i].as.str->size);
        cfxi_emit_py_char(gen, '=');
        CFX_TRY(put_value(gen, items[i + 2], n, true, err));
    }
    cfxi_emit_py_char(gen, ')');
    return CFX_OK;
}

static cfx_status put_namedtuple(cfx_pycode *gen, const cfx_value *items, size_t n_items,
                                 const cfx_node *n, bool plain, cfx_error *err)
{
    if (plain)
        return put_namedtuple_repr(gen, items, n_items, n, err);
    cfx_pycode_text type;
    CFX_TRY(cfxi_emit_py_ref_text(gen, graph_of(gen, n), items[0].as.ref, n, &type, err));
    cfxi_emit_py_put(gen, type.data, type.size);
    return put_tuple(gen, items + 2, n_items - 2, n, true, err);
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

static bool has_ref(cfx_value v, const cfx_ref *ref)
{
    size_t n = 0;
    const cfx_value *items = v.kind == CFX_KIND_TUPLE ? cfx_value_items(v, &n) : NULL;
    bool found = v.kind == CFX_KIND_HOST && v.as.ref == ref;
    for (size_t i = 0; i < n && !found; i++)
        found = has_ref(items[i], ref);
    return found;
}

/* Whether a host object is a class that a node asks for, as in isinstance(x, C): torch.fx writes
 * its repr, which is no Python, but has no such nodes either. */
static bool is_asked_for(const cfx_node *n, const cfx_ref *ref)
{
    const char *target = n && n->op == CFX_OP_CALL_FUNCTION ? cfx_node_target(n, NULL, NULL) : NULL;
    size_t n_args = 0;
    if (!target || (strcmp(target, "builtins.isinstance") != 0 &&
                    strcmp(target, "builtins.issubclass") != 0))
        return false;
    cfx_value_items(cfx_node_args(n), &n_args);
    return n_args == 2 && has_ref(cfx_node_arg(n, 1), ref);
}

static cfx_status put_host(cfx_pycode *gen, cfx_ref *ref, const cfx_node *n, bool plain,
                           cfx_error *err)
{
    const cfx_pycode_options *options = gen->options;
    cfx_graph *g = graph_of(gen, n);
    if (ref->kind == CFXI_REF_NAME || gen->names_only || is_asked_for(n, ref)) {
        cfx_pycode_text text;
        CFX_TRY(cfxi_emit_py_ref_text(gen, g, ref, n, &text, err));
        cfxi_emit_py_put(gen, text.data, text.size);
        return CFX_OK;
    }
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
    case CFX_KIND_RANGE:
        return put_range(gen, v.as.seq->items, n, err);
    case CFX_KIND_SET:
    case CFX_KIND_FROZENSET:
        return put_set(gen, v, n, err);
    case CFX_KIND_DICT:
        return put_dict(gen, v.as.seq ? v.as.seq->items : NULL, v.as.seq ? v.as.seq->size : 0, n,
                        err);
    case CFX_KIND_INVALID:
    case CFX_KIND_SLICE:
    case CFX_KIND_LIST:
    case CFX_KIND_TUPLE:
    case CFX_KIND_NAMEDTUPLE:
    case CFX_KIND_NODE:
    case CFX_KIND_GRAPH:
    case CFX_KIND_HOST:
    case CFX_KIND_COUNT:
        break;
    }
    return cfxi_emit_py_fail(n, CFX_E_UNSUPPORTED, err, "a %s is no Python expression",
                             cfx_kind_name((cfx_kind)v.kind));
}

/* A name; or what stands for it, in graphs with regions. */
static cfx_status put_node(cfx_pycode *gen, cfx_node *node, const cfx_node *n, bool plain,
                           cfx_error *err)
{
    const cfx_value *instead = cfxi_base_pointers_get(&gen->instead, node);
    if (instead)
        return put_value(gen, *instead, n, plain, err);
    if (cfxi_emit_py_placed(gen, node) == CFXI_PY_INLINE)
        return cfxi_emit_py_put_inline(gen, node, err);
    cfxi_emit_py_put_name(gen, node);
    return CFX_OK;
}

static cfx_status put_value(cfx_pycode *gen, cfx_value v, const cfx_node *n, bool plain,
                            cfx_error *err)
{
    size_t n_items = 0;
    const cfx_value *items = cfxi_ir_is_seq(v) ? cfx_value_items(v, &n_items) : NULL;
    if (v.kind == CFX_KIND_NODE) {
        CFX_TRY(put_node(gen, v.as.node, n, plain, err));
    } else if (v.kind == CFX_KIND_TUPLE) {
        CFX_TRY(put_tuple(gen, items, n_items, n, plain, err));
    } else if (v.kind == CFX_KIND_LIST) {
        cfxi_emit_py_char(gen, '[');
        CFX_TRY(put_items(gen, items, n_items, n, plain, err));
        cfxi_emit_py_char(gen, ']');
    } else if (v.kind == CFX_KIND_SLICE) {
        CFXI_PY_LIT(gen, "slice(");
        CFX_TRY(put_items(gen, items, n_items, n, plain, err));
        cfxi_emit_py_char(gen, ')');
    } else if (v.kind == CFX_KIND_NAMEDTUPLE) {
        CFX_TRY(put_namedtuple(gen, items, n_items, n, plain, err));
    } else if (v.kind == CFX_KIND_HOST) {
        CFX_TRY(put_host(gen, v.as.ref, n, plain, err));
    } else if (plain || !gen->options->colored) {
        CFX_TRY(put_leaf(gen, v, n, err));
    } else {
        color_on(gen);
        CFX_TRY(put_leaf(gen, v, n, err));
        color_off(gen);
    }
    return CFX_OK;
}

cfx_status cfxi_emit_py_value(cfx_pycode *gen, cfx_value v, const cfx_node *n, cfx_error *err)
{
    return put_value(gen, v, n, false, err);
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

/* What is written for a value: in a region an input may be a literal. */
static cfx_value written(const cfx_pycode *gen, cfx_value v)
{
    const cfx_value *instead = v.kind == CFX_KIND_NODE
                                   ? cfxi_base_pointers_get(&gen->instead, v.as.node)
                                   : NULL;
    return instead ? written(gen, *instead) : v;
}

static cfx_status put_receiver(cfx_pycode *gen, cfx_value v, const cfx_node *n, cfx_error *err)
{
    v = written(gen, v);
    bool number = v.kind == CFX_KIND_INT || v.kind == CFX_KIND_BIGINT || is_negative(v);
    return put_operand(gen, v, number || cfxi_emit_py_is_compound(gen, v), n, err);
}

/* "a, b, k = c)" */
static cfx_status put_arguments(cfx_pycode *gen, const cfx_node *n, size_t first, cfx_error *err)
{
    size_t n_args = n->args ? n->args->size : 0;
    const char *comma = ", ";
    size_t comma_size = 0;
    for (size_t i = first; i < n_args; i++, comma_size = 2) {
        cfxi_emit_py_put(gen, comma, comma_size);
        CFX_TRY(put_value(gen, n->args->items[i], n, false, err));
    }
    for (size_t i = 0; n->kwargs && i < n->kwargs->size; i += 2, comma_size = 2) {
        const cfx_value *pair = &n->kwargs->items[i];
        cfxi_emit_py_put(gen, comma, comma_size);
        cfxi_emit_py_put(gen, pair[0].as.str->data, pair[0].as.str->size);
        CFXI_PY_LIT(gen, " = ");
        CFX_TRY(put_value(gen, pair[1], n, false, err));
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
