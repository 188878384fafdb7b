/* object_text.c - objects as text: repr, str, format with its little language, and %. */
#include "world_impl.h"

#include <math.h>
#include <stdio.h>

cfx_status cfxi_world_put(cfx_buffer *out, const char *text, cfx_error *err)
{
    return cfx_buffer_append(out, text, strlen(text)) == CFX_OK ? CFX_OK : cfxi_base_nomem(err);
}

static cfx_status put_text(cfx_buffer *out, const char *text, size_t size, cfx_error *err)
{
    return cfx_buffer_append(out, text, size) == CFX_OK ? CFX_OK : cfxi_base_nomem(err);
}

/* ---- repr ---------------------------------------------------------------------------------- */

static cfx_status put_quoted(cfx_buffer *to, const cfx_object *o, cfx_error *err)
{
    cfxi_out out;
    cfxi_base_out_begin(&out, cfx_buffer_sink(to));
    if (o->type == CFXI_TYPE_STR)
        cfxi_base_out_repr_str(&out, o->as.text.data, o->as.text.size);
    else
        cfxi_base_out_repr_bytes(&out, o->as.text.data, o->as.text.size);
    return cfxi_base_out_end(&out, err);
}

static cfx_status put_float(cfx_buffer *out, double f, cfx_error *err)
{
    char digits[CFXI_NUMBER_SIZE];
    cfxi_base_format_float(f, digits);
    return cfxi_world_put(out, digits, err);
}

static cfx_status put_complex(cfx_buffer *out, const double *c, cfx_error *err)
{
    char text[2][CFXI_NUMBER_SIZE];
    for (int i = 0; i < 2; i++) {
        size_t n = cfxi_base_format_float(c[i], text[i]);
        if (n > 2 && strcmp(text[i] + n - 2, ".0") == 0)
            text[i][n - 2] = '\0';
    }
    if (c[0] == 0 && !signbit(c[0])) {
        CFX_TRY(cfxi_world_put(out, text[1], err));
        return cfxi_world_put(out, "j", err);
    }
    CFX_TRY(cfxi_world_put(out, "(", err));
    CFX_TRY(cfxi_world_put(out, text[0], err));
    CFX_TRY(cfxi_world_put(out, text[1][0] == '-' ? "" : "+", err));
    CFX_TRY(cfxi_world_put(out, text[1], err));
    return cfxi_world_put(out, "j)", err);
}

static cfx_status put_items(cfxi_world *w, const cfx_object *o, cfx_buffer *out, cfx_error *err)
{
    const bool tuple = o->type == CFXI_TYPE_TUPLE;
    const cfx_object *fields = cfxi_world_named_fields(o->cls);
    if (fields)
        CFX_TRY(cfxi_world_put(out, o->cls->as.cls.name, err));
    CFX_TRY(cfxi_world_put(out, tuple ? "(" : "[", err));
    for (size_t i = 0; i < o->as.seq.n; i++) {
        CFX_TRY(cfxi_world_put(out, i ? ", " : "", err));
        if (fields && i < fields->as.seq.n) {
            CFX_TRY(cfxi_world_put(out, fields->as.seq.items[i]->as.text.data, err));
            CFX_TRY(cfxi_world_put(out, "=", err));
        }
        CFX_TRY(cfxi_world_repr(w, o->as.seq.items[i], out, err));
    }
    return cfxi_world_put(out, !tuple ? "]" : o->as.seq.n == 1 && !fields ? ",)" : ")", err);
}

static cfx_status put_entries(cfxi_world *w, const cfx_object *o, cfx_buffer *out, cfx_error *err)
{
    cfx_object *key;
    cfx_object *value;
    const bool set = o->type != CFXI_TYPE_DICT;
    bool first = true;
    if (set && o->as.dict.n == 0)
        return cfxi_world_put(out, o->type == CFXI_TYPE_SET ? "set()" : "frozenset()", err);
    CFX_TRY(cfxi_world_put(out, o->type == CFXI_TYPE_FROZENSET ? "frozenset({" : "{", err));
    for (size_t at = 0; cfxi_world_dict_next(o, &at, &key, &value); first = false) {
        CFX_TRY(cfxi_world_put(out, first ? "" : ", ", err));
        CFX_TRY(cfxi_world_repr(w, key, out, err));
        if (!set) {
            CFX_TRY(cfxi_world_put(out, ": ", err));
            CFX_TRY(cfxi_world_repr(w, value, out, err));
        }
    }
    return cfxi_world_put(out, o->type == CFXI_TYPE_FROZENSET ? "})" : "}", err);
}

static cfx_status put_words(cfx_buffer *out, cfx_error *err, const char *format, ...)
    CFX_PRINTF(3, 4);
static cfx_status put_words(cfx_buffer *out, cfx_error *err, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cfxi_base_utf8_clean(text);
    return cfxi_world_put(out, text, err);
}

static cfx_status put_slice(cfxi_world *w, const cfx_object *o, cfx_buffer *out, cfx_error *err)
{
    for (int i = 0; i < 3; i++) {
        CFX_TRY(cfxi_world_put(out, i ? ", " : "slice(", err));
        CFX_TRY(cfxi_world_repr(w, o->as.seq.items[i], out, err));
    }
    return cfxi_world_put(out, ")", err);
}

static cfx_status put_range(const cfx_object *o, cfx_buffer *out, cfx_error *err)
{
    const long long start = o->as.range.start;
    const long long step = o->as.range.step;
    const long long stop = start + o->as.range.n * step;
    return step == 1 ? put_words(out, err, "range(%lld, %lld)", start, stop)
                     : put_words(out, err, "range(%lld, %lld, %lld)", start, stop, step);
}

/* An exception as ValueError('no'). */
static cfx_status put_instance(cfxi_world *w, cfx_object *o, cfx_buffer *out, cfx_error *err)
{
    cfx_object *args = o->attrs ? cfxi_world_dict_get(o->attrs, "args") : NULL;
    if (o->cls && o->cls->as.cls.exception >= 0 && args && args->type == CFXI_TYPE_TUPLE) {
        CFX_TRY(cfxi_world_put(out, o->cls->as.cls.name, err));
        if (args->as.seq.n != 1)
            return cfxi_world_repr(w, args, out, err);
        CFX_TRY(cfxi_world_put(out, "(", err));
        CFX_TRY(cfxi_world_repr(w, args->as.seq.items[0], out, err));
        return cfxi_world_put(out, ")", err);
    }
    return put_words(out, err, "<%s object>", cfxi_world_type_name(o));
}

static cfx_status repr_plain(cfxi_world *w, cfx_object *o, cfx_buffer *out, cfx_error *err)
{
    char digits[CFXI_NUMBER_SIZE];
    CFX_TRY(cfxi_world_check_known(o, err));
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_NONE: return cfxi_world_put(out, "None", err);
    case CFXI_TYPE_ELLIPSIS: return cfxi_world_put(out, "Ellipsis", err);
    case CFXI_TYPE_NOT_IMPLEMENTED: return cfxi_world_put(out, "NotImplemented", err);
    case CFXI_TYPE_BOOL: return cfxi_world_put(out, o->as.b ? "True" : "False", err);
    case CFXI_TYPE_INT:
        cfxi_base_format_int(o->as.i, digits);
        return cfxi_world_put(out, digits, err);
    case CFXI_TYPE_FLOAT: return put_float(out, o->as.f, err);
    case CFXI_TYPE_COMPLEX: return put_complex(out, o->as.c, err);
    case CFXI_TYPE_STR:
    case CFXI_TYPE_BYTES: return put_quoted(out, o, err);
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_LIST: return put_items(w, o, out, err);
    case CFXI_TYPE_DICT:
    case CFXI_TYPE_SET:
    case CFXI_TYPE_FROZENSET: return put_entries(w, o, out, err);
    case CFXI_TYPE_SLICE: return put_slice(w, o, out, err);
    case CFXI_TYPE_RANGE: return put_range(o, out, err);
    case CFXI_TYPE_CLASS: return put_words(out, err, "<class '%s'>", o->as.cls.name);
    case CFXI_TYPE_FUNCTION:
        return put_words(out, err, "<function %s>", cfx_script_function_name(o->as.function));
    case CFXI_TYPE_BUILTIN: return put_words(out, err, "<built-in function %s>",
                                             o->as.builtin.name);
    case CFXI_TYPE_NAMESPACE: return put_words(out, err, "<module '%s'>", o->as.text.data);
    case CFXI_TYPE_DTYPE:
        return put_words(out, err, "torch.%s", cfx_dtype_name((cfx_dtype)o->as.i));
    case CFXI_TYPE_LAYOUT:
        return put_words(out, err, "torch.%s", cfx_layout_name((cfx_layout)o->as.i));
    case CFXI_TYPE_MEMORY_FORMAT:
        return put_words(out, err, "torch.%s",
                         cfx_memory_format_name((cfx_memory_format)o->as.i));
    case CFXI_TYPE_DEVICE: return put_words(out, err, "device(type='%s')", o->as.text.data);
    case CFXI_TYPE_TENSOR: return cfx_tensor_print(o->as.tensor, cfx_buffer_sink(out), err);
    case CFXI_TYPE_VALUE:
        if (!w->printing)
            return cfx_error_set(
                err, CFX_E_UNSUPPORTED,
                "cannot convert this object to text: it holds a graph value; format its values "
                "instead: f\"{o.x}\"");
        return put_words(out, err, "Proxy(%s)", cfx_node_name(o->as.node, NULL));
    case CFXI_TYPE_MODULE: return put_words(out, err, "%s()", cfxi_world_type_name(o));
    case CFXI_TYPE_INSTANCE: return put_instance(w, o, out, err);
    default: return put_words(out, err, "<%s>", cfxi_world_type_name(o));
    }
}

/* What a method of the user's gives, which must be a str. */
static cfx_status put_special(cfxi_world *w, cfx_object *o, const char *name, cfx_buffer *out,
                              bool *found, cfx_error *err)
{
    cfx_object *made = cfxi_world_special(w, o, name, NULL, 0, found, err);
    if (!*found || !made)
        return *found ? err->status : CFX_OK;
    cfx_status status = made->type == CFXI_TYPE_STR
                            ? put_text(out, made->as.text.data, made->as.text.size, err)
                            : cfxi_world_throw(w, err, CFXI_TypeError,
                                               "%s returned non-string (type "
                                               "%s)",
                                               name, cfxi_world_type_name(made));
    cfxi_world_unref(made);
    return status;
}

cfx_status cfxi_world_repr(cfxi_world *w, cfx_object *o, cfx_buffer *out, cfx_error *err)
{
    bool found = false;
    CFX_TRY(cfxi_world_deeper(w, err));
    if (out->size > w->most_bytes) {
        w->depth--;
        return cfx_error_set(err, CFX_E_NOMEM, "the string is longer "
                             "than %zu MB", w->most_bytes >> 20);
    }
    cfx_status status = o->cls ? put_special(w, o, "__repr__", out, &found, err) : CFX_OK;
    if (!found)
        status = repr_plain(w, o, out, err);
    w->depth--;
    return status;
}

cfx_status cfxi_world_show(cfxi_world *w, cfx_object *o, cfx_buffer *out, cfx_error *err)
{
    bool found = false;
    if (o->cls) {
        cfx_status status = put_special(w, o, "__str__", out, &found, err);
        if (found)
            return status;
    }
    if (o->type == CFXI_TYPE_STR || o->type == CFXI_TYPE_DEVICE)
        return put_text(out, o->as.text.data, o->as.text.size, err);
    cfx_object *args = o->cls && o->cls->as.cls.exception >= 0 && o->attrs
                           ? cfxi_world_dict_get(o->attrs, "args") : NULL;
    if (!args || args->type != CFXI_TYPE_TUPLE)
        return cfxi_world_repr(w, o, out, err);
    if (args->as.seq.n == 0)
        return CFX_OK;
    if (args->as.seq.n > 1)
        return cfxi_world_repr(w, args, out, err);
    return o->cls->as.cls.exception == CFXI_KeyError
               ? cfxi_world_repr(w, args->as.seq.items[0], out, err)
               : cfxi_world_show(w, args->as.seq.items[0], out, err);
}

cfx_object *cfxi_world_shown(cfxi_world *w, cfx_object *o, bool repr, cfx_error *err)
{
    cfx_buffer text;
    cfx_buffer_init(&text, w->allocator);
    const cfx_status status =
        repr ? cfxi_world_repr(w, o, &text, err) : cfxi_world_show(w, o, &text, err);
    return cfxi_world_text_made(w, status, &text, err);
}

/* ---- the little language ------------------------------------------------------------------- */

/* What base says of a format, as the exception that it is. */
static cfx_status thrown(cfxi_world *w, cfx_status status, cfx_error *err)
{
    return status == CFX_OK ? CFX_OK : cfxi_world_throw_error(w, err, err);
}

static cfx_status format_text(cfxi_world *w, const cfxi_spec *s, const cfx_object *o,
                              cfx_buffer *out, cfx_error *err)
{
    return thrown(w, cfxi_base_spec_text(s, o->as.text.data, o->as.text.size, out, err), err);
}

/* A member of an enum that is not a number: as its text. */
static cfx_status format_member(cfxi_world *w, cfx_object *o, const char *text, size_t size,
                                cfx_buffer *out, cfx_error *err)
{
    cfx_buffer shown;
    cfx_buffer_init(&shown, w->allocator);
    cfx_object *word = cfxi_world_text_made(w, cfxi_world_show(w, o, &shown, err), &shown, err);
    const cfx_status status = word ? cfxi_world_format(w, word, text, size, out, err) : err->status;
    cfxi_world_unref(word);
    return status;
}

cfx_status cfxi_world_format(cfxi_world *w, cfx_object *o, const char *text, size_t size,
                             cfx_buffer *out, cfx_error *err)
{
    cfxi_spec s;
    if (size == 0)
        return cfxi_world_show(w, o, out, err);
    if (o->cls && o->cls->cls && o->type != CFXI_TYPE_INT)
        return format_member(w, o, text, size, out, err);
    if (!cfxi_base_spec_read(text, size, &s))
        return cfxi_world_throw(w, err, CFXI_ValueError,
                                "Invalid format specifier '%.*s' for object of "
                                "type '%s'", (int)(size < 60 ? size : 60), text,
                                cfxi_world_type_name(o));
    if (o->type == CFXI_TYPE_STR)
        return format_text(w, &s, o, out, err);
    if (!cfxi_world_is_real(o))
        return cfxi_world_throw(w, err, CFXI_TypeError, "unsupported format string passed to "
                                "%s.__format__", cfxi_world_type_name(o));
    return thrown(w,
                  cfxi_world_is_whole(o) ? cfxi_base_spec_int(&s, cfxi_world_whole(o), out, err)
                                         : cfxi_base_spec_float(&s, cfxi_world_real(o), out, err),
                  err);
}

cfx_object *cfxi_world_formatted(cfxi_world *w, cfx_object *o, const cfx_object *how,
                                 cfx_error *err)
{
    cfx_buffer text;
    const bool given = how && how->type == CFXI_TYPE_STR;
    cfx_buffer_init(&text, w->allocator);
    const cfx_status status = cfxi_world_format(w, o, given ? how->as.text.data : "",
                                                given ? how->as.text.size : 0, &text, err);
    return cfxi_world_text_made(w, status, &text, err);
}

/* ---- str.format ---------------------------------------------------------------------------- */

typedef struct filler {
    cfxi_world *w;
    const cfx_call_args *a;
    size_t next;
    cfx_buffer *out;
} filler;

/* What stands before the first '.' or '['; a new reference. */
static cfx_object *named_arg(filler *f, const char *name, size_t size, cfx_error *err)
{
    const size_t plain = f->a->n - f->a->n_named;
    int64_t i = (int64_t)f->next;
    if (size == 0)
        f->next++;
    if (size == 0 || cfxi_base_parse_int(name, size, &i)) {
        if (i >= 0 && (size_t)i < plain)
            return cfxi_world_ref(f->a->args[i]);
        return cfxi_world_raise(f->w, err, CFXI_IndexError,
                                "Replacement index %lld out of range for "
                                "positional args tuple",
                                (long long)i);
    }
    for (i = 0; i < (int64_t)f->a->n_named; i++)
        if (strlen(f->a->names[i]) == size && memcmp(f->a->names[i], name, size) == 0)
            return cfxi_world_ref(f->a->args[plain + (size_t)i]);
    return cfxi_world_raise(f->w, err, CFXI_KeyError, "'%.*s'", (int)size, name);
}

/* ".name" and "[key]" after it. */
static cfx_object *field_value(filler *f, const char *at, size_t size, cfx_error *err)
{
    const char *end = at + size;
    const char *stop = at;
    while (stop < end && *stop != '.' && *stop != '[')
        stop++;
    cfx_object *o = named_arg(f, at, (size_t)(stop - at), err);
    while (o && stop < end) {
        const bool key = *stop++ == '[';
        const char *from = stop;
        while (stop < end && (key ? *stop != ']' : *stop != '.' && *stop != '['))
            stop++;
        int64_t i;
        cfx_object *name = key && cfxi_base_parse_int(from, (size_t)(stop - from), &i)
                               ? cfxi_world_int_object(f->w, i, err)
                               : cfxi_world_text_object(f->w, CFXI_TYPE_STR, from,
                                                        (size_t)(stop - from), err);
        cfx_object *next = !name ? NULL : key ? cfxi_world_item(f->w, o, name, err)
                                              : cfxi_world_get(f->w, o, name->as.text.data, err);
        cfxi_world_unref(name);
        cfxi_world_unref(o);
        o = next;
        stop += key && stop < end;
    }
    return o;
}

static cfx_status fill(filler *f, const char *at, const char *end, int depth, cfx_error *err);

/* "name!r:spec". */
static cfx_status fill_field(filler *f, const char *at, const char *end, int depth, cfx_error *err)
{
    const char *stop = at;
    while (stop < end && *stop != '!' && *stop != ':')
        stop++;
    cfx_object *o = field_value(f, at, (size_t)(stop - at), err);
    cfx_buffer spec_text;
    cfx_status status = o ? CFX_OK : err->status;
    if (status == CFX_OK && stop + 1 < end && *stop == '!') {
        cfx_buffer text;
        cfx_buffer_init(&text, f->w->allocator);
        status = stop[1] == 's' ? cfxi_world_show(f->w, o, &text, err)
                                : cfxi_world_repr(f->w, o, &text, err);
        cfxi_world_unref(o);
        o = status == CFX_OK
                ? cfxi_world_text_object(f->w, CFXI_TYPE_STR, text.data, text.size, err)
                : NULL;
        status = o ? CFX_OK : err->status;
        cfx_buffer_free(&text);
        stop += 2;
    }
    cfx_buffer_init(&spec_text, f->w->allocator);
    if (status == CFX_OK && stop < end) {
        filler inner = *f;
        inner.out = &spec_text;
        status = fill(&inner, stop + 1, end, depth + 1, err);
        f->next = inner.next;
    }
    if (status == CFX_OK)
        status = cfxi_world_format(f->w, o, spec_text.data, spec_text.size, f->out, err);
    cfx_buffer_free(&spec_text);
    cfxi_world_unref(o);
    return status;
}

static cfx_status fill(filler *f, const char *at, const char *end, int depth, cfx_error *err)
{
    if (depth > 2)
        return cfxi_world_throw(f->w, err, CFXI_ValueError, "Max string recursion exceeded");
    while (at < end) {
        const char *from = at;
        while (at < end && *at != '{' && *at != '}')
            at++;
        CFX_TRY(put_text(f->out, from, (size_t)(at - from), err));
        if (at == end)
            break;
        if (at + 1 < end && at[1] == *at) {
            CFX_TRY(put_text(f->out, at, 1, err));
            at += 2;
            continue;
        }
        int open = 1;
        from = at + 1;
        for (at = from; *from && at < end && open > 0 && from[-1] == '{'; at++)
            open += *at == '{' ? 1 : *at == '}' ? -1 : 0;
        if (open > 0)
            return cfxi_world_throw(f->w, err, CFXI_ValueError, "Single '%c' encountered in format "
                                    "string", from[-1]);
        CFX_TRY(fill_field(f, from, at - 1, depth, err));
    }
    return CFX_OK;
}

cfx_object *cfxi_world_str_format(cfxi_world *w, cfx_object *self, const cfx_call_args *a,
                                  cfx_error *err)
{
    cfx_buffer text;
    filler f = {.w = w, .a = a, .out = &text};
    if (cfxi_world_any_value(a, false)) {
        cfx_object *args[CFXI_MOST_ARGS];
        if (a->n + 1 > CFXI_MOST_ARGS)
            return cfxi_world_raise(w, err, CFXI_TypeError, "format() has too many arguments");
        args[0] = self;
        for (size_t i = 0; i < a->n; i++)
            args[i + 1] = a->args[i];
        const cfx_call_args all = {args, a->n + 1, a->names, a->n_named};
        return cfxi_world_record(w, CFX_OP_CALL_METHOD, "format", &all, err);
    }
    cfx_buffer_init(&text, w->allocator);
    const char *at = self->as.text.data;
    return cfxi_world_text_made(w, fill(&f, at, at + self->as.text.size, 0, err), &text, err);
}

/* ---- % ------------------------------------------------------------------------------------- */

typedef struct percent {
    cfxi_world *w;
    cfx_object *args;
    size_t next;
} percent;

static cfx_object *next_arg(percent *p, cfx_error *err)  /* borrowed */
{
    const bool tuple = p->args->type == CFXI_TYPE_TUPLE;
    const size_t n = tuple ? p->args->as.seq.n : 1;
    if (p->next < n)
        return tuple ? p->args->as.seq.items[p->next++] : (p->next++, p->args);
    return cfxi_world_raise(p->w, err, CFXI_TypeError, "not enough arguments for format string");
}

/* Flags, width and precision in printf's order, as the little language's spec. */
static cfx_status percent_spec(percent *p, const char **at, const char *end, cfxi_spec *s,
                               cfx_error *err)
{
    *s = (cfxi_spec){.fill = " ", .fill_size = 1, .precision = -1, .align = '>'};
    bool left = false;
    for (; *at < end && strchr("-+ #0", **at); ++*at) {
        left = left || **at == '-';
        s->alternate = s->alternate || **at == '#';
        s->zero = s->zero || **at == '0';
        if (**at == '+' || (**at == ' ' && !s->sign))
            s->sign = **at;
    }
    for (int part = 0; part < 2; part++) {
        int *to = part ? &s->precision : &s->width;
        if (part && (*at == end || **at != '.'))
            break;
        *at += part;
        if (*at < end && **at == '*') {
            int64_t i;
            cfx_object *o = next_arg(p, err);
            if (!o || cfxi_world_index_of(p->w, o, "* width", &i, err) != CFX_OK)
                return err->status;
            left = left || (!part && i < 0);
            *to = (int)(i < 0 ? (part ? 0 : i < -10000 ? 10000 : -i) : i > 10000 ? 10000 : i);
            ++*at;
        } else if (!cfxi_base_spec_digits(at, end, to)) {
            return cfxi_world_throw(p->w, err, CFXI_ValueError, "width too big");
        }
    }
    if (left)
        s->align = '<';
    return CFX_OK;
}

static cfx_status percent_text(percent *p, char type, cfxi_spec *s, cfx_object *o, cfx_buffer *out,
                               cfx_error *err)
{
    cfx_buffer text;
    cfx_buffer_init(&text, p->w->allocator);
    cfx_status status = type == 's' ? cfxi_world_show(p->w, o, &text, err)
                                    : cfxi_world_repr(p->w, o, &text, err);
    cfx_object *shown = status == CFX_OK ? cfxi_world_text_object(p->w, CFXI_TYPE_STR, text.data,
                                                                  text.size, err) : NULL;
    s->type = s->sign = 0;
    s->zero = false;
    status = shown ? format_text(p->w, s, shown, out, err) : err->status;
    cfxi_world_unref(shown);
    cfx_buffer_free(&text);
    return status;
}

static cfx_status percent_one(percent *p, const char **at, const char *end, cfx_buffer *out,
                              cfx_error *err)
{
    cfxi_spec s;
    cfx_object *own = p->args;
    cfx_object *o = NULL;
    if (*at < end && **at == '(') {
        const char *from = ++*at;
        while (*at < end && **at != ')')
            ++*at;
        cfx_object *key =
            cfxi_world_text_object(p->w, CFXI_TYPE_STR, from, (size_t)(*at - from), err);
        o = key ? cfxi_world_item(p->w, own, key, err) : NULL;
        cfxi_world_unref(key);
        if (!o)
            return err->status;
        cfxi_world_unref(o);  /* the dict holds it */
        *at += *at < end;
        p->next = 1;
    }
    CFX_TRY(percent_spec(p, at, end, &s, err));
    if (*at == end)
        return cfxi_world_throw(p->w, err, CFXI_ValueError, "incomplete format");
    const char type = *(*at)++;
    if (type == '%')
        return put_text(out, "%", 1, err);
    if (!o)
        o = next_arg(p, err);
    if (!o)
        return err->status;
    if (strchr("sra", type))
        return percent_text(p, type, &s, o, out, err);
    if (s.zero && s.align != '<') {
        s.align = '=';
        s.fill[0] = '0';
    }
    s.type = type == 'i' || type == 'u' ? 'd' : type;
    if (!strchr("dxXoeEfFgGc", s.type))
        return cfxi_world_throw(p->w, err, CFXI_ValueError, "unsupported format character '%c'",
                                type);
    if (s.type == 'c' && o->type == CFXI_TYPE_STR && cfxi_world_text_length(o) == 1)
        return percent_text(p, 's', &s, o, out, err);
    if (!cfxi_world_is_real(o))
        return cfxi_world_throw(p->w, err, CFXI_TypeError,
                                "%%%c format: a real number is required, not "
                                "%s", type, cfxi_world_type_name(o));
    if (strchr("dxXoc", s.type)) {
        s.precision = -1;
        const double f = cfxi_world_real(o);
        if (!cfxi_world_is_whole(o) && !(fabs(f) < 0x1p63))
            return cfxi_world_throw(p->w, err, CFXI_OverflowError,
                                    "cannot convert float to integer");
        const int64_t i = cfxi_world_is_whole(o) ? cfxi_world_whole(o) : (int64_t)f;
        return thrown(p->w, cfxi_base_spec_int(&s, i, out, err), err);
    }
    return thrown(p->w, cfxi_base_spec_float(&s, cfxi_world_real(o), out, err), err);
}

cfx_object *cfxi_world_percent(cfxi_world *w, cfx_object *text, cfx_object *args, cfx_error *err)
{
    percent p = {.w = w, .args = args};
    cfx_buffer out;
    const char *at = text->as.text.data;
    const char *end = at + text->as.text.size;
    cfx_status status = CFX_OK;
    cfx_buffer_init(&out, w->allocator);
    while (status == CFX_OK && at < end) {
        const char *from = at;
        while (at < end && *at != '%')
            at++;
        status = put_text(&out, from, (size_t)(at - from), err);
        if (status == CFX_OK && at < end) {
            at++;
            status = percent_one(&p, &at, end, &out, err);
        }
    }
    if (status == CFX_OK && args->type == CFXI_TYPE_TUPLE ? p.next < args->as.seq.n
        : status == CFX_OK && p.next == 0 && args->type != CFXI_TYPE_DICT &&
              args->type != CFXI_TYPE_LIST)
        status = cfxi_world_throw(w, err, CFXI_TypeError,
                                  "not all arguments converted during string "
                                  "formatting");
    return cfxi_world_text_made(w, status, &out, err);
}
