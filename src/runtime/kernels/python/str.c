/* str.c - values as texts: str(x), format(x, ".2f"), "{} of {}".format(a, b); methods of texts. */
#include "runtime/python_impl.h"

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
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "a %s%s cannot be converted to text",
                         cfx_datum_kind_name((cfx_datum_kind)d.kind),
                         inside ? " inside another value" : "");
    if (inside && cfx_datum_row(d) == CFX_OPID_size)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "the sizes of a tensor inside another value cannot "
                         "be converted to text; write tuple(...) of them");
    *known = *known && !d.symbolic && d.kind != CFX_DATUM_TENSOR;
    for (size_t i = 0; items && i < n; i++)
        CFX_TRY(check(c, items[i], true, known));
    return CFX_OK;
}

/* "torch.Size([2, 3])" */
static cfx_status put_sizes(cfxi_call *c, cfx_datum d, cfx_buffer *out)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    CFX_TRY(cfx_buffer_append(out, "torch.Size([", 12));
    for (size_t i = 0; i < n; i++) {
        CFX_TRY(cfx_buffer_append(out, ", ", i ? 2 : 0));
        CFX_TRY(cfx_datum_print(items[i], NULL, cfx_buffer_sink(out), c->err));
    }
    return cfx_buffer_append(out, "])", 2);
}

/* str(d) or repr(d); a type has its whole name, as PyTorch writes it. */
static cfx_status put(cfxi_call *c, cfx_datum d, bool repr, cfx_buffer *out)
{
    size_t size;
    const char *text = d.kind == CFX_DATUM_STR || d.kind == CFX_DATUM_DEVICE
                           ? cfx_datum_text(d, &size) : NULL;
    if (text && !repr)
        return cfx_buffer_append(out, text, size);
    if (text && d.kind == CFX_DATUM_DEVICE)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "repr() of a device is not supported");
    if (cfx_datum_row(d) == CFX_OPID_size)
        return put_sizes(c, d, out);
    if (d.kind == CFX_DATUM_DTYPE)
        CFX_TRY(cfx_buffer_append(out, "torch.", 6));
    return cfx_datum_print(d, NULL, cfx_buffer_sink(out), c->err);
}

/* Result 0 is what is in the buffer, which is freed. */
static cfx_status give_text(cfxi_call *c, cfx_buffer *text, cfx_status status)
{
    if (status == CFX_E_NOMEM)
        cfxi_base_nomem(c->err);
    if (status == CFX_OK) {
        cfx_datum d = cfx_datum_from_text(CFX_DATUM_STR, text->data ? text->data : "", text->size,
                                          c->rt->allocator, c->err);
        status = d.kind == CFX_DATUM_INVALID ? c->err->status : CFX_OK;
        if (status == CFX_OK)
            cfxi_rt_result_datum(c, 0, d);
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
    return give_text(c, &text, known ? put(c, c->args[0], c->op == CFX_OPID_repr, &text) : CFX_OK);
}

/* ---- formats ------------------------------------------------------------------------------- */

static cfx_status bad_spec(cfxi_call *c, const char *how, size_t size, const char *type)
{
    return cfxi_fail(c, CFX_E_VALUE, "Invalid format specifier '%.*s' for object of type '%s'",
                     (int)(size < 60 ? size : 60), how, type);
}

/* format(d, how), which is known. */
static cfx_status put_formatted(cfxi_call *c, cfx_datum d, const char *how, size_t size,
                                cfx_buffer *out)
{
    cfxi_spec s;
    size_t n;
    if (size == 0)
        return put(c, d, false, out);
    if (d.kind != CFX_DATUM_STR && d.kind != CFX_DATUM_FLOAT && !cfxi_rt_py_is_integral(d))
        return cfxi_fail(c, CFX_E_TYPE, "unsupported format string passed to %s.__format__",
                         cfx_datum_kind_name((cfx_datum_kind)d.kind));
    if (!cfxi_base_spec_read(how, size, &s))
        return bad_spec(c, how, size, cfx_datum_kind_name((cfx_datum_kind)d.kind));
    if (d.kind == CFX_DATUM_FLOAT)
        return cfxi_base_spec_float(&s, d.as.f, out, c->err);
    if (d.kind != CFX_DATUM_STR)
        return cfxi_base_spec_int(&s, cfxi_rt_py_int(d), out, c->err);
    const char *text = cfx_datum_text(d, &n);
    return cfxi_base_spec_text(&s, text, n, out, c->err);
}

/* format(repr(d), how), or of str(d) */
static cfx_status put_as_text(cfxi_call *c, cfx_datum d, bool repr, const char *how, size_t size,
                              cfx_buffer *out)
{
    cfxi_spec s;
    cfx_buffer text;
    if (size == 0)
        return put(c, d, repr, out);
    if (!cfxi_base_spec_read(how, size, &s))
        return bad_spec(c, how, size, "str");
    cfx_buffer_init(&text, c->rt->allocator);
    cfx_status status = put(c, d, repr, &text);
    if (status == CFX_OK)
        status = cfxi_base_spec_text(&s, text.data ? text.data : "", text.size, out, c->err);
    cfx_buffer_free(&text);
    return status;
}

/* A tensor without dimensions is formatted as its number. */
cfx_status cfxi_rule_format(cfxi_call *c)
{
    cfx_buffer text;
    cfx_datum d = c->args[0];
    bool known = true;
    size_t size;
    const char *how = cfx_datum_text(c->args[1], &size);
    if (d.kind == CFX_DATUM_TENSOR && d.as.tensor->ndim == 0)
        CFX_TRY(cfxi_rt_python_number(c, d, &d));
    CFX_TRY(check(c, d, false, &known));
    cfx_buffer_init(&text, c->rt->allocator);
    return give_text(c, &text, known ? put_formatted(c, d, how, size, &text) : CFX_OK);
}

/* A field, of which the opening brace has been read: {}, {!r}, {:>8}. They are filled one argument
 * after the other. *at becomes the closing brace. */
static cfx_status put_field(cfxi_call *c, const char **at, const char *end, cfx_datum d,
                            cfx_buffer *out)
{
    const char *from = *at;
    const bool repr = end - from > 1 && from[0] == '!' && from[1] == 'r';
    const bool turned = repr || (end - from > 1 && from[0] == '!' && from[1] == 's');
    from += turned ? 2 : 0;
    const bool formatted = from < end && *from == ':';
    from += formatted;
    *at = from;
    while (*at < end && **at != '}' && **at != '{')
        ++*at;
    if (*at == end || **at == '{' || (!formatted && *at > from))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "only unnamed fields such as {}, {!r} and {:>8} are "
                         "supported");
    const size_t size = (size_t)(*at - from);
    return turned ? put_as_text(c, d, repr, from, size, out)
                  : put_formatted(c, d, from, size, out);
}

static cfx_status put_all(cfxi_call *c, const cfx_datum *args, size_t n, cfx_buffer *out)
{
    size_t size;
    size_t used = 0;
    const char *at = cfx_datum_text(c->args[0], &size);
    for (const char *end = at + size; at < end; at++) {
        const char next = at + 1 < end ? at[1] : '\0';
        if ((*at == '{' || *at == '}') && next == *at) {
            CFX_TRY(cfx_buffer_append(out, at++, 1));
        } else if (*at == '{') {
            if (used == n)
                return cfxi_fail(c, CFX_E_INDEX, "Replacement index %zu out of range for "
                                 "positional args tuple", n);
            at++;
            CFX_TRY(put_field(c, &at, end, args[used++], out));
        } else if (*at == '}') {
            return cfxi_fail(c, CFX_E_VALUE, "Single '}' encountered in format string");
        } else {
            CFX_TRY(cfx_buffer_append(out, at, 1));
        }
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

/* The text as it is, at once, to where the runtime's owner wants it. */
cfx_status cfxi_rule_builtin_print(cfxi_call *c)
{
    size_t size;
    const char *text = cfx_datum_text(c->args[0], &size);
    if (c->infer)
        return CFX_OK;
    if (!c->rt->print.write)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "this runtime has nowhere to print to; set "
                         "cfx_runtime_options.print");
    return cfxi_base_failed(c->err, cfxi_base_sink_write(c->rt->print, text, size));
}

/* ---- methods of texts ---------------------------------------------------------------------- */

static cfx_status check_text(cfxi_call *c)
{
    if (c->args[0].kind == CFX_DATUM_STR)
        return CFX_OK;
    return cfxi_fail(c, CFX_E_TYPE, "this is a method of str, not of %s",
                     cfx_datum_kind_name((cfx_datum_kind)c->args[0].kind));
}

static bool ends_with(cfx_datum whole, cfx_datum part, bool front)
{
    size_t n;
    size_t m;
    const char *text = cfx_datum_text(whole, &n);
    const char *end = cfx_datum_text(part, &m);
    return m <= n && memcmp(text + (front ? 0 : n - m), end, m) == 0;
}

/* startswith and endswith: one text, or one of a tuple. */
cfx_status cfxi_rule_str_ends(cfxi_call *c)
{
    const bool front = c->op == CFX_OPID_str_startswith;
    size_t n = 1;
    const bool tuple = c->args[1].kind == CFX_DATUM_TUPLE;
    const cfx_datum *ends = tuple ? cfx_datum_items(c->args[1], &n) : &c->args[1];
    bool found = false;
    CFX_TRY(check_text(c));
    for (size_t i = 0; i < n; i++) {
        if (ends[i].kind != CFX_DATUM_STR)
            return cfxi_fail(c, CFX_E_TYPE, "%s first arg must be str or a tuple of str, not %s",
                             front ? "startswith" : "endswith",
                             cfx_datum_kind_name((cfx_datum_kind)ends[i].kind));
        found = found || ends_with(c->args[0], ends[i], front);
    }
    cfxi_rt_result_datum(c, 0, cfx_datum_bool(found));
    return CFX_OK;
}

/* lower and upper, of the letters that every machine agrees about. */
cfx_status cfxi_rule_str_case(cfxi_call *c)
{
    const bool lower = c->op == CFX_OPID_str_lower;
    const char first = lower ? 'A' : 'a';
    size_t n;
    const char *from = cfx_datum_text(c->args[0], &n);
    cfx_buffer text;
    cfx_status status = check_text(c);
    cfx_buffer_init(&text, c->rt->allocator);
    for (size_t i = 0; status == CFX_OK && i < n; i++) {
        const bool other = from[i] >= first && from[i] < first + 26;
        const char letter = (char)(other ? from[i] ^ 0x20 : from[i]);
        status = (unsigned char)from[i] < 0x80
                     ? cfx_buffer_append(&text, &letter, 1)
                     : cfxi_fail(c, CFX_E_UNSUPPORTED, "only ASCII text is supported");
    }
    return give_text(c, &text, status);
}
