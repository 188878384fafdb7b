/* ast_dump.c - a tree as Python's ast.dump writes it; one walk for all classes, over ast.def. */
#include "parse.h"

typedef struct dumper {
    cfxi_out out;
    const cfxi_dump_style *style;
    bool in_joined;  /* inside an f-string */
} dumper;

static void dump(dumper *d, const cfxi_ast *node);

/* ---- constants ----------------------------------------------------------------------------- */

/* Hexadecimal digits by the million are not worth a faster algorithm. */
enum { LIMB = 1000000000, MAX_LIMBS = 4300 / 9 + 1 };

/* An integer that no int64 holds, in decimal digits; as it is spelled if it has more than Python
 * shows. */
static void dump_big(dumper *d, const cfxi_constant *value)
{
    uint32_t limbs[MAX_LIMBS];
    size_t n = 0;
    const char letter = (char)(value->text[1] | 32);
    const unsigned base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    for (size_t i = base == 10 ? 0 : 2; i < value->size; i++) {
        uint64_t carry = cfxi_syntax_digit_value(value->text[i]);
        for (size_t k = 0; k < n; k++) {
            carry += (uint64_t)limbs[k] * base;
            limbs[k] = (uint32_t)(carry % LIMB);
            carry /= LIMB;
        }
        if (carry && n == MAX_LIMBS) {
            cfxi_base_out_write(&d->out, value->text, value->size);
            return;
        }
        if (carry)
            limbs[n++] = (uint32_t)carry;
    }
    cfxi_base_out_printf(&d->out, "%u", (unsigned)limbs[n - 1]);
    for (size_t k = n - 1; k-- > 0;)
        cfxi_base_out_printf(&d->out, "%09u", (unsigned)limbs[k]);
}

static void dump_float(dumper *d, const cfxi_constant *value)
{
    char text[CFXI_NUMBER_SIZE];
    size_t n = cfxi_base_format_float(value->f, text);
    const bool complex = value->kind == CFXI_CONST_COMPLEX;
    if (complex && n > 2 && text[n - 2] == '.' && text[n - 1] == '0')
        n -= 2;
    cfxi_base_out_write(&d->out, text, n);
    if (complex)
        cfxi_base_out_char(&d->out, 'j');
}

static void dump_int(dumper *d, int64_t i)
{
    char text[CFXI_NUMBER_SIZE];
    cfxi_base_out_write(&d->out, text, cfxi_base_format_int(i, text));
}

static void dump_constant(dumper *d, const cfxi_constant *value)
{
    switch (value->kind) {
    case CFXI_CONST_NONE:
        cfxi_base_out_str(&d->out, "None");
        break;
    case CFXI_CONST_FALSE:
        cfxi_base_out_str(&d->out, "False");
        break;
    case CFXI_CONST_TRUE:
        cfxi_base_out_str(&d->out, "True");
        break;
    case CFXI_CONST_ELLIPSIS:
        cfxi_base_out_str(&d->out, "Ellipsis");
        break;
    case CFXI_CONST_INT:
        if (value->fits)
            dump_int(d, value->i);
        else
            dump_big(d, value);
        break;
    case CFXI_CONST_FLOAT:
    case CFXI_CONST_COMPLEX:
        dump_float(d, value);
        break;
    case CFXI_CONST_STR:
        cfxi_base_out_repr_str(&d->out, value->text, value->size);
        break;
    case CFXI_CONST_BYTES:
        cfxi_base_out_repr_bytes(&d->out, value->text, value->size);
        break;
    }
}

/* ---- fields -------------------------------------------------------------------------------- */

static void dump_name(dumper *d, const char *name)
{
    cfxi_base_out_repr_str(&d->out, name, strlen(name));
}

static void dump_op(dumper *d, cfxi_ast_kind op)
{
    cfxi_base_out_str(&d->out, cfxi_syntax_ast_name(op));
    cfxi_base_out_write(&d->out, "()", 2);
}

static void dump_list(dumper *d, const cfxi_ast_list *list)
{
    cfxi_base_out_char(&d->out, '[');
    for (size_t i = 0; i < list->count; i++) {
        if (i)
            cfxi_base_out_write(&d->out, ", ", 2);
        if (list->items[i])
            dump(d, list->items[i]);
        else
            cfxi_base_out_write(&d->out, "None", 4);
    }
    cfxi_base_out_char(&d->out, ']');
}

static void dump_ops(dumper *d, const cfxi_op_list *list)
{
    cfxi_base_out_char(&d->out, '[');
    for (size_t i = 0; i < list->count; i++) {
        if (i)
            cfxi_base_out_write(&d->out, ", ", 2);
        dump_op(d, list->items[i]);
    }
    cfxi_base_out_char(&d->out, ']');
}

static void dump_names(dumper *d, const cfxi_name_list *list)
{
    cfxi_base_out_char(&d->out, '[');
    for (size_t i = 0; i < list->count; i++) {
        if (i)
            cfxi_base_out_write(&d->out, ", ", 2);
        dump_name(d, list->items[i]);
    }
    cfxi_base_out_char(&d->out, ']');
}

/* What Python leaves out: an optional field that is None; from 3.13 on an empty list. */
static bool is_left_out(const dumper *d, const cfxi_ast *node, const cfxi_ast_field *field)
{
    const void *at = cfxi_syntax_ast_get(node, field);
    switch ((cfxi_field_kind)field->kind) {
    case CFXI_FIELD_OPT:
        return !*(cfxi_ast *const *)at;
    case CFXI_FIELD_OPTNAME:
        return !*(const char *const *)at;
    case CFXI_FIELD_LIST:
        if (d->style->python < 12 && strcmp(field->name, "type_params") == 0)
            return true;
        return d->style->python >= 13 && ((const cfxi_ast_list *)at)->count == 0;
    case CFXI_FIELD_NAMES:
        return d->style->python >= 13 && ((const cfxi_name_list *)at)->count == 0;
    default:
        return false;
    }
}

static void dump_field(dumper *d, const cfxi_ast *node, const cfxi_ast_field *field)
{
    const void *at = cfxi_syntax_ast_get(node, field);
    switch ((cfxi_field_kind)field->kind) {
    case CFXI_FIELD_NODE:
    case CFXI_FIELD_OPT:
        dump(d, *(cfxi_ast *const *)at);
        break;
    case CFXI_FIELD_LIST:
        dump_list(d, at);
        break;
    case CFXI_FIELD_OP:
        dump_op(d, *(const cfxi_ast_kind *)at);
        break;
    case CFXI_FIELD_OPS:
        dump_ops(d, at);
        break;
    case CFXI_FIELD_NAME:
    case CFXI_FIELD_OPTNAME:
        dump_name(d, *(const char *const *)at);
        break;
    case CFXI_FIELD_NAMES:
        dump_names(d, at);
        break;
    case CFXI_FIELD_INT:
        dump_int(d, *(const int *)at);
        break;
    case CFXI_FIELD_VALUE:
        dump_constant(d, at);
        break;
    }
}

static const char *separator(bool *first)
{
    const char *text = *first ? "" : ", ";
    *first = false;
    return text;
}

static void dump_places(dumper *d, const cfxi_ast *node, bool *first)
{
    const struct {
        const char *name;
        uint32_t value;
    } places[] = {{"lineno=", node->line}, {"col_offset=", node->column},
                  {"end_lineno=", node->end_line}, {"end_col_offset=", node->end_column}};
    for (size_t i = 0; i < 4; i++) {
        cfxi_base_out_str(&d->out, separator(first));
        cfxi_base_out_str(&d->out, places[i].name);
        dump_int(d, places[i].value);
    }
}

static void dump(dumper *d, const cfxi_ast *node)
{
    size_t n;
    const cfxi_ast_field *fields = cfxi_syntax_ast_fields(node->kind, &n);
    const bool around = d->in_joined;
    const bool places = d->style->attributes && cfxi_syntax_ast_located(node->kind) &&
                        (d->style->joined || !around);
    bool first = true;
    d->in_joined = around || node->kind == CFXI_AST_JoinedStr;
    cfxi_base_out_str(&d->out, cfxi_syntax_ast_name(node->kind));
    cfxi_base_out_char(&d->out, '(');
    for (size_t i = 0; i < n; i++) {
        if (is_left_out(d, node, &fields[i]))
            continue;
        cfxi_base_out_str(&d->out, separator(&first));
        cfxi_base_out_str(&d->out, fields[i].name);
        cfxi_base_out_char(&d->out, '=');
        dump_field(d, node, &fields[i]);
    }
    if (places)
        dump_places(d, node, &first);
    cfxi_base_out_char(&d->out, ')');
    d->in_joined = around;
}

cfx_status cfxi_syntax_ast_dump(const cfxi_ast *node, const cfxi_dump_style *style, cfx_sink sink,
                                cfx_error *err)
{
    dumper d;
    cfxi_base_out_begin(&d.out, sink);
    d.style = style;
    d.in_joined = false;
    dump(&d, node);
    return cfxi_base_out_end(&d.out, err);
}
