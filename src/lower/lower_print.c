/* lower_print.c - print(a, b, sep=", "): one text of the values, and a call that writes it.
 *
 *     before                                         after
 *     %p = call_function[target=builtins.print]      %t = call_function[target=cfx.ops.str_format]
 *         (%a, 2, sep=", ")                              ("{}, {}\n", [%a, 2])
 *                                                    %p = call_function[target=
 *                                                         cfx.ops.builtin_print](%t)
 */
#include "lower_impl.h"

/* A text in the making, with "{}" for each value that is not a text. */
typedef struct format {
    cfx_buffer text;
    bool fields;  /* there are some: then braces of the text itself are doubled */
} format;

static cfx_status put_plain(format *f, const char *text, size_t size)
{
    if (!f->fields)
        return cfx_buffer_append(&f->text, text, size);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '{' || text[i] == '}')
            CFX_TRY(cfx_buffer_append(&f->text, &text[i], 1));
        CFX_TRY(cfx_buffer_append(&f->text, &text[i], 1));
    }
    return CFX_OK;
}

/* Whether a node surely gives a tensor: an input may be a number, and so may what is computed with
 * signs. */
static bool is_tensor(const cfxi_lower *l, const cfx_node *n)
{
    const cfxi_what what = cfxi_lower_what(l, cfx_value_node((cfx_node *)n));
    return (what == CFXI_WHAT_TENSOR || what == CFXI_WHAT_TENSORS) &&
           n->op != CFX_OP_PLACEHOLDER &&
           !(cfx_operator_flags(cfx_node_operator(n)) & CFX_OPERATOR_ELEMENTWISE);
}

/* Why a value has another text here than in Python; NULL if it has the same, or only a run can
 * tell. */
static const char *why_not(const cfxi_lower *l, cfx_value v)
{
    size_t n = 0;
    const cfx_value *items = NULL;
    switch ((cfx_kind)v.kind) {
    case CFX_KIND_NODE:
        if (cfxi_lower_what(l, v) == CFXI_WHAT_NUMBERS)
            return "a shape; print list(x.shape)";
        return is_tensor(l, v.as.node) ? "a tensor; print its numbers: x.item(), x.tolist()"
                                       : NULL;
    case CFX_KIND_LIST:
    case CFX_KIND_TUPLE:
    case CFX_KIND_DICT:
        items = cfx_value_items(v, &n);
        for (size_t i = 0; i < n; i++) {
            const char *why = why_not(l, items[i]);
            if (why)
                return why;
        }
        return NULL;
    case CFX_KIND_NONE:
    case CFX_KIND_BOOL:
    case CFX_KIND_INT:
    case CFX_KIND_FLOAT:
    case CFX_KIND_STR:
    case CFX_KIND_DTYPE: return NULL;
    default: return "this value; print a text or a number";
    }
}

/* The keyword's text; `usual` if it is absent or None, NULL if it is not known. */
static const char *text_of(const cfx_node *n, const char *name, const char *usual, size_t *size)
{
    const cfx_value v = cfx_node_kwarg(n, name);
    *size = strlen(usual);
    if (cfxi_lower_value_is_none(v))
        return usual;
    return v.kind == CFX_KIND_STR ? cfx_value_text(v, size) : NULL;
}

static bool is_text(cfx_value v) { return v.kind == CFX_KIND_STR; }

/* All values, what is between them, and the end: texts as they are. */
static cfx_status put_all(format *f, const cfx_node *n, const char *sep, size_t sep_size,
                          const char *end, size_t end_size)
{
    for (size_t i = 0; i < cfx_node_num_args(n); i++) {
        size_t size = 0;
        const cfx_value v = cfx_node_arg(n, i);
        const char *text = is_text(v) ? cfx_value_text(v, &size) : NULL;
        if (i > 0)
            CFX_TRY(put_plain(f, sep, sep_size));
        CFX_TRY(text ? put_plain(f, text, size) : cfx_buffer_append(&f->text, "{}", 2));
    }
    return put_plain(f, end, end_size);
}

/* The values that the fields are for, as a list. */
static cfx_value field_values(cfxi_lower *l, const cfx_node *n)
{
    const size_t count = cfx_node_num_args(n);
    size_t used = 0;
    cfx_value *values = cfxi_base_alloc(l->g->allocator, (count + 1) * sizeof *values);
    if (!values) {
        cfxi_base_nomem(l->err);
        return cfx_value_invalid();
    }
    for (size_t i = 0; i < count; i++)
        if (!is_text(cfx_node_arg(n, i)))
            values[used++] = cfx_node_arg(n, i);
    const cfx_value list = cfx_value_list(l->g, values, used, l->err);
    cfxi_base_free(l->g->allocator, values, (count + 1) * sizeof *values);
    return list;
}

static cfx_status write_print(cfxi_lower *l, cfx_node *n, const format *f)
{
    const cfx_value text = cfx_value_str(l->g, f->text.data, f->text.size, l->err);
    if (!f->fields)
        return cfxi_lower_finish(l, n, CFX_OPID_builtin_print, &text, 1);
    const cfx_value args[] = {text, field_values(l, n)};
    const cfx_value made = cfxi_lower_row(l, n, CFX_OPID_str_format, args, 2);
    return cfxi_lower_finish(l, n, CFX_OPID_builtin_print, &made, 1);
}

cfx_status cfxi_lower_print(cfxi_lower *l, cfx_node *n)
{
    size_t sep_size = 0;
    size_t end_size = 0;
    const char *sep = text_of(n, "sep", " ", &sep_size);
    const char *end = text_of(n, "end", "\n", &end_size);
    format f = {.fields = false};
    for (size_t i = 0; i < cfx_node_num_args(n); i++) {
        const char *why = why_not(l, cfx_node_arg(n, i));
        if (why)
            return cfxi_lower_refuse(l, n, "print cannot show %s", why);
        f.fields = f.fields || !is_text(cfx_node_arg(n, i));
    }
    if (!cfxi_lower_value_is_none(cfx_node_kwarg(n, "file")))
        return cfxi_lower_refuse(l, n, "print cannot write to a file here; leave file= out");
    if (!sep || !end)
        return cfxi_lower_refuse(l, n, "sep and end of print must be texts that are known");
    cfx_buffer_init(&f.text, l->g->allocator);
    cfx_status status = put_all(&f, n, sep, sep_size, end, end_size);
    status = status == CFX_OK ? write_print(l, n, &f) : cfxi_base_nomem(l->err);
    cfx_buffer_free(&f.text);
    return status;
}
