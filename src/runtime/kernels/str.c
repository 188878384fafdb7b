/* str.c - values as texts: str(x), "{} of {}".format(a, b). */
#include "../python_impl.h"

/* Whether all of it is known; fails if it has another text in Python than here, as tensors, and
 * types inside of lists, have. */
static cfx_status check(cfxi_call *c, cfx_datum d, bool inside, bool *known)
{
    const unsigned plain = 1u << CFX_DATUM_NONE | 1u << CFX_DATUM_BOOL | 1u << CFX_DATUM_INT |
                           1u << CFX_DATUM_FLOAT | 1u << CFX_DATUM_STR | 1u << CFX_DATUM_LIST |
                           1u << CFX_DATUM_TUPLE | 1u << CFX_DATUM_DICT;
    const unsigned outside = 1u << CFX_DATUM_DTYPE | 1u << CFX_DATUM_DEVICE;
    size_t n = 0;
    const cfx_datum *items = cfx_datum_items(d, &n);
    if (!((inside ? plain : plain | outside) >> d.kind & 1) &&
        !(c->infer && d.kind == CFX_DATUM_TENSOR))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "a %s%s cannot be written as text here",
                         cfx_datum_kind_name((cfx_datum_kind)d.kind),
                         inside ? " inside of another value" : "");
    *known = *known && !d.symbolic && d.kind != CFX_DATUM_TENSOR;
    for (size_t i = 0; items && i < n; i++)
        CFX_TRY(check(c, items[i], true, known));
    return CFX_OK;
}

/* str(d); a type has its whole name, as PyTorch writes it. */
static cfx_status put(cfxi_call *c, cfx_datum d, cfx_buffer *out)
{
    size_t size;
    const char *text = d.kind == CFX_DATUM_STR || d.kind == CFX_DATUM_DEVICE
                           ? cfx_datum_str(d, &size) : NULL;
    if (text)
        return cfx_buffer_append(out, text, size);
    if (d.kind == CFX_DATUM_DTYPE)
        CFX_TRY(cfx_buffer_append(out, "torch.", 6));
    return cfx_datum_print(d, NULL, cfx_buffer_sink(out), c->err);
}

/* Result 0 is what is in the buffer, which is freed. */
static cfx_status give_text(cfxi_call *c, cfx_buffer *text, cfx_status status)
{
    if (status == CFX_E_NOMEM)
        cfxi_nomem(c->err);
    if (status == CFX_OK) {
        cfx_datum d = cfx_datum_text(CFX_DATUM_STR, text->data ? text->data : "", text->size,
                                     c->rt->allocator, c->err);
        status = d.kind == CFX_DATUM_INVALID ? c->err->status : CFX_OK;
        if (status == CFX_OK)
            cfxi_result_datum(c, 0, d);
    }
    cfx_buffer_free(text);
    return status;
}

cfx_status cfxi_rule_str(cfxi_call *c)
{
    cfx_buffer text;
    bool known = true;
    CFX_TRY(check(c, c->args[0], false, &known));
    cfx_buffer_init(&text, c->rt->allocator);
    return give_text(c, &text, known ? put(c, c->args[0], &text) : CFX_OK);
}

/* One field, which ends at the brace: only {} is filled, one argument after the other. */
static cfx_status put_field(cfxi_call *c, char next, const cfx_datum *args, size_t n, size_t *used,
                            cfx_buffer *out)
{
    if (next != '}')
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "only the field {} can be filled here, without name "
                         "or format");
    if (*used == n)
        return cfxi_fail(c, CFX_E_INDEX, "Replacement index %zu out of range for positional args "
                         "tuple", n);
    return put(c, args[(*used)++], out);
}

static cfx_status put_all(cfxi_call *c, const cfx_datum *args, size_t n, cfx_buffer *out)
{
    size_t size;
    size_t used = 0;
    const char *text = cfx_datum_str(c->args[0], &size);
    for (size_t i = 0; i < size; i++) {
        const char next = i + 1 < size ? text[i + 1] : '\0';
        if ((text[i] == '{' || text[i] == '}') && next == text[i])
            CFX_TRY(cfx_buffer_append(out, &text[i++], 1));
        else if (text[i] == '{')
            CFX_TRY((i++, put_field(c, next, args, n, &used, out)));
        else if (text[i] == '}')
            return cfxi_fail(c, CFX_E_VALUE, "Single '}' encountered in format string");
        else
            CFX_TRY(cfx_buffer_append(out, &text[i], 1));
    }
    return CFX_OK;
}

/* Where only shapes are asked for, what nobody knows yet is left out. */
cfx_status cfxi_rule_str_format(cfxi_call *c)
{
    size_t n = 0;
    const cfx_datum *args = cfx_datum_items(c->args[1], &n);
    bool known = true;
    cfx_buffer text;
    for (size_t i = 0; args && i < n; i++)
        CFX_TRY(check(c, args[i], false, &known));
    cfx_buffer_init(&text, c->rt->allocator);
    return give_text(c, &text, known ? put_all(c, args, n, &text) : CFX_OK);
}
