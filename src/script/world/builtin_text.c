/* builtin_text.c - str, repr, format, print. */
#include "world_impl.h"

/* ---- texts --------------------------------------------------------------------------------- */

CFXI_BUILTIN(make_str)
{
    cfx_object *in[1];
    if (cfxi_world_args(w, a, "str", NULL, 0, 1, in, err) != CFX_OK)
        return NULL;
    if (in[0] && cfxi_world_has_value(in[0], false))
        return cfxi_world_record(w, CFX_OP_CALL_FUNCTION, "builtins.str", a, err);
    return in[0] ? cfxi_world_shown(w, in[0], false, err) : cfxi_world_str(w, "", err);
}

CFXI_BUILTIN(b_repr)
{
    cfx_object *in[1];
    return cfxi_world_args(w, a, "repr", NULL, 1, 1, in, err) == CFX_OK
               ? cfxi_world_shown(w, in[0], true, err) : NULL;
}

CFXI_BUILTIN(b_format)
{
    cfx_object *in[2];
    return cfxi_world_args(w, a, "format", NULL, 1, 2, in, err) == CFX_OK
               ? cfxi_world_formatted(w, in[0], in[1], err) : NULL;
}

CFXI_BUILTIN(b_ord)
{
    cfx_object *in[1];
    uint32_t code;
    if (cfxi_world_args(w, a, "ord", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    if (in[0]->type != CFXI_TYPE_STR || in[0]->as.text.size == 0 ||
        cfxi_base_utf8_decode(in[0]->as.text.data, in[0]->as.text.size, &code) !=
            in[0]->as.text.size)
        return cfxi_world_raise(w, err, CFXI_TypeError, "ord() expected a character");
    return cfxi_world_int_object(w, code, err);
}

CFXI_BUILTIN(b_chr)
{
    cfx_object *in[1];
    int64_t code;
    char utf8[4];
    if (cfxi_world_args(w, a, "chr", NULL, 1, 1, in, err) != CFX_OK ||
        cfxi_world_index_of(w, in[0], "chr() argument", &code, err) != CFX_OK)
        return NULL;
    if (code < 0 || code > 0x10ffff)
        return cfxi_world_raise(w, err, CFXI_ValueError, "chr() arg not in range(0x110000)");
    return cfxi_world_text_object(w, CFXI_TYPE_STR, utf8,
                                  cfxi_base_utf8_encode((uint32_t)code, utf8), err);
}

/* The graph prints when it runs: values as they are then, of all else the text of now. */
static cfx_object *record_print(cfxi_world *w, const cfx_call_args *a, cfx_error *err)
{
    cfx_object *args[CFXI_MOST_ARGS];
    const size_t plain = a->n - a->n_named;
    size_t made = 0;
    if (a->n > CFXI_MOST_ARGS)
        return cfx_error_set(err, CFX_E_LIMIT, "calls with more than %d arguments are not "
                             "supported", CFXI_MOST_ARGS), NULL;
    for (; made < a->n; made++) {
        const bool text = made < plain && !cfxi_world_has_value(a->args[made], true);
        args[made] = text ? cfxi_world_shown(w, a->args[made], false, err)
                          : cfxi_world_ref(a->args[made]);
        if (!args[made])
            break;
    }
    const cfx_call_args all = {args, a->n, a->names, a->n_named};
    cfx_object *call = made == a->n ? cfxi_world_record(w, CFX_OP_CALL_FUNCTION, "builtins.print",
                                                        &all, err) : NULL;
    while (made > 0)
        cfxi_world_unref(args[--made]);
    cfxi_world_unref(call);
    return call ? cfxi_world_none(w) : NULL;
}

/* To where the caller wants it; nowhere if he does not. */
CFXI_BUILTIN(b_print)
{
    if (w->recording)
        return record_print(w, a, err);
    const size_t plain = a->n - a->n_named;
    const char *sep = " ";
    const char *end = "\n";
    cfx_buffer text;
    for (size_t i = 0; i < a->n_named; i++)
        if (a->args[plain + i]->type == CFXI_TYPE_STR) {
            sep = strcmp(a->names[i], "sep") == 0 ? a->args[plain + i]->as.text.data : sep;
            end = strcmp(a->names[i], "end") == 0 ? a->args[plain + i]->as.text.data : end;
        }
    cfx_buffer_init(&text, w->allocator);
    cfx_status status = CFX_OK;
    const bool was = w->printing;
    w->printing = true;
    for (size_t i = 0; status == CFX_OK && i < plain; i++) {
        status = i > 0 ? cfxi_world_put(&text, sep, err) : CFX_OK;
        if (status == CFX_OK)
            status = cfxi_world_show(w, a->args[i], &text, err);
    }
    w->printing = was;
    if (status == CFX_OK)
        status = cfxi_world_put(&text, end, err);
    if (status == CFX_OK && w->out.write)
        status = cfxi_base_failed(err, cfxi_base_sink_write(w->out, text.data, text.size));
    cfx_buffer_free(&text);
    return cfxi_world_done(w, status);
}

const cfxi_builtin cfxi_world_text_builtins[] = {
    {"chr", b_chr}, {"format", b_format}, {"ord", b_ord}, {"print", b_print}, {"repr", b_repr},
    {"str", make_str}, {NULL, NULL},
};
