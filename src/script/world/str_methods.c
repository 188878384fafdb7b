/* str_methods.c - characters, slices and methods of str. */
#include "world_impl.h"

#include <stdio.h>

/* ---- characters ---------------------------------------------------------------------------- */

static bool is_start(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

size_t cfxi_world_text_length(const cfx_object *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->as.text.size; i++)
        n += is_start(s->as.text.data[i]);
    return n;
}

/* Where the i-th character begins. */
static size_t offset(const cfx_object *s, int64_t i)
{
    size_t at = 0;
    if (s->type == CFXI_TYPE_BYTES)
        return (size_t)i;
    for (int64_t k = 0; at < s->as.text.size && k < i; k++)
        for (at++; at < s->as.text.size && !is_start(s->as.text.data[at]);)
            at++;
    return at;
}

cfx_object *cfxi_world_text_at(cfxi_world *w, cfx_object *s, int64_t i, cfx_error *err)
{
    return cfxi_world_text_slice(w, s, i, 1, 1, err);
}

cfx_object *cfxi_world_text_slice(cfxi_world *w, cfx_object *s, int64_t start, int64_t step,
                                  int64_t n, cfx_error *err)
{
    cfx_buffer text;
    if (step == 1 || n == 0) {
        const size_t from = offset(s, start);
        const size_t to = n == 0 ? from : offset(s, start + n);
        return cfxi_world_text_object(w, (cfxi_type)s->type, s->as.text.data + from, to - from,
                                      err);
    }
    cfx_buffer_init(&text, w->allocator);
    cfx_status status = CFX_OK;
    for (int64_t i = 0; status == CFX_OK && i < n; i++) {
        const size_t from = offset(s, start + i * step);
        const size_t to = offset(s, start + i * step + 1);
        status = cfx_buffer_append(&text, s->as.text.data + from, to - from);
    }
    cfx_object *made = status == CFX_OK ? cfxi_world_text_object(w, (cfxi_type)s->type, text.data,
                                                                 text.size, err) : NULL;
    if (status != CFX_OK)
        cfxi_base_nomem(err);
    cfx_buffer_free(&text);
    return made;
}

/* ---- methods ------------------------------------------------------------------------------- */

/* The i-th argument as a text; NULL with a TypeError if it is something else. */
static cfx_object *text_arg(cfxi_world *w, const cfx_call_args *a, size_t i, const char *method,
                            cfx_error *err)
{
    if (i < a->n && a->args[i]->type == CFXI_TYPE_STR)
        return a->args[i];
    if (i < a->n)
        cfxi_world_raise(w, err, CFXI_TypeError, "%s() takes a str, not '%s'", method,
                         cfxi_world_type_name(a->args[i]));
    else
        cfxi_world_raise(w, err, CFXI_TypeError, "%s() takes %zu arguments (%zu given)", method,
                         i + 1, a->n);
    return NULL;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static cfx_object *piece(cfxi_world *w, const char *text, size_t size, cfx_error *err)
{
    return cfxi_world_text_object(w, CFXI_TYPE_STR, text, size, err);
}

static cfx_status add_piece(cfx_object *list, const char *text, size_t size, cfx_error *err)
{
    cfx_object *o = piece(list->world, text, size, err);
    cfx_status status = o ? cfxi_world_list_append(list, o, err) : err->status;
    cfxi_world_unref(o);
    return status;
}

size_t cfxi_world_text_find(const cfx_object *text, const cfx_object *part, size_t from)
{
    const size_t n = part->as.text.size;
    for (size_t i = from; i + n <= text->as.text.size; i++)
        if (memcmp(text->as.text.data + i, part->as.text.data, n) == 0)
            return i;
    return SIZE_MAX;
}

CFXI_BUILTIN(str_join)
{
    cfx_buffer text;
    if (a->n != 1)
        return cfxi_world_raise(w, err, CFXI_TypeError, "join() takes one argument (%zu given)",
                                a->n);
    cfx_object *items = cfxi_world_collect(w, CFXI_TYPE_LIST, a->args[0], err);
    cfx_buffer_init(&text, w->allocator);
    cfx_status status = items ? CFX_OK : err->status;
    for (size_t i = 0; status == CFX_OK && i < items->as.seq.n; i++) {
        const cfx_object *item = items->as.seq.items[i];
        if (item->type != CFXI_TYPE_STR)
            status = cfxi_world_throw(w, err, CFXI_TypeError,
                                      "sequence item %zu: expected str instance, "
                                      "%s found", i, cfxi_world_type_name(item));
        else if ((i > 0 && cfx_buffer_append(&text, self->as.text.data, self->as.text.size)) ||
                 cfx_buffer_append(&text, item->as.text.data, item->as.text.size))
            status = cfxi_base_nomem(err);
    }
    cfxi_world_unref(items);
    return cfxi_world_text_made(w, status, &text, err);
}

/* At runs of white space. */
static cfx_status split_words(cfx_object *list, const cfx_object *s, int64_t most, cfx_error *err)
{
    const char *at = s->as.text.data;
    const char *end = at + s->as.text.size;
    for (;;) {
        while (at < end && is_space(*at))
            at++;
        if (at == end)
            return CFX_OK;
        const char *from = at;
        while (at < end && (!is_space(*at) || most == 0))
            at++;
        const char *to = at;
        while (most == 0 && to > from && is_space(to[-1]))
            to--;
        CFX_TRY(add_piece(list, from, (size_t)(to - from), err));
        most--;
    }
}

CFXI_BUILTIN(str_split)
{
    static const char *const names[] = {"sep", "maxsplit"};
    cfx_object *in[2];
    int64_t most = -1;
    if (cfxi_world_args(w, a, "split", names, 0, 2, in, err) != CFX_OK ||
        (in[1] && cfxi_world_index_of(w, in[1], "maxsplit", &most, err) != CFX_OK))
        return NULL;
    cfx_object *list = cfxi_world_seq_object(w, CFXI_TYPE_LIST, NULL, 0, err);
    cfx_status status = list ? CFX_OK : err->status;
    if (status == CFX_OK && (!in[0] || in[0]->type == CFXI_TYPE_NONE)) {
        status = split_words(list, self, most, err);
    } else if (status == CFX_OK && (in[0]->type != CFXI_TYPE_STR || in[0]->as.text.size == 0)) {
        status = cfxi_world_throw(w, err, in[0]->type == CFXI_TYPE_STR ? CFXI_ValueError
                                                                    : CFXI_TypeError,
                                  in[0]->type == CFXI_TYPE_STR ? "empty separator"
                                                           : "must be str or None");
    } else if (status == CFX_OK) {
        const cfx_object *sep = in[0];
        size_t from = 0;
        for (size_t at; status == CFX_OK && most != 0 &&
             (at = cfxi_world_text_find(self, sep, from)) != SIZE_MAX; most--) {
            status = add_piece(list, self->as.text.data + from, at - from, err);
            from = at + sep->as.text.size;
        }
        if (status == CFX_OK)
            status = add_piece(list, self->as.text.data + from, self->as.text.size - from, err);
    }
    if (status != CFX_OK)
        cfxi_world_clear(&list);
    return list;
}

/* Which ends: 1 the left, 2 the right, 3 both. */
static cfx_object *strip(cfxi_world *w, cfx_object *self, const cfx_call_args *a, int ends,
                         cfx_error *err)
{
    const char *from = self->as.text.data;
    const char *to = from + self->as.text.size;
    const bool given = a->n > 0 && a->args[0]->type != CFXI_TYPE_NONE;
    const cfx_object *set = given ? text_arg(w, a, 0, "strip", err) : NULL;
    if (given && !set)
        return NULL;
#define IN_SET(c) (set ? memchr(set->as.text.data, c, set->as.text.size) != NULL : is_space(c))
    while ((ends & 1) && from < to && IN_SET(*from))
        from++;
    while ((ends & 2) && from < to && IN_SET(to[-1]))
        to--;
#undef IN_SET
    return piece(w, from, (size_t)(to - from), err);
}

CFXI_BUILTIN(str_strip) { return strip(w, self, a, 3, err); }
CFXI_BUILTIN(str_lstrip) { return strip(w, self, a, 1, err); }
CFXI_BUILTIN(str_rstrip) { return strip(w, self, a, 2, err); }

/* Whether it begins (or ends) with a text, or one of a tuple. */
static cfx_object *has_end(cfxi_world *w, cfx_object *self, const cfx_call_args *a, bool first,
                           cfx_error *err)
{
    const bool several = a->n == 1 && a->args[0]->type == CFXI_TYPE_TUPLE;
    if (!several && !text_arg(w, a, 0, first ? "startswith" : "endswith", err))
        return NULL;
    const size_t n = several ? a->args[0]->as.seq.n : 1;
    for (size_t i = 0; i < n; i++) {
        const cfx_object *part = several ? a->args[0]->as.seq.items[i] : a->args[0];
        if (part->type != CFXI_TYPE_STR || part->as.text.size > self->as.text.size)
            continue;
        const size_t from = first ? 0 : self->as.text.size - part->as.text.size;
        if (memcmp(self->as.text.data + from, part->as.text.data, part->as.text.size) == 0)
            return cfxi_world_truth_object(w, true);
    }
    return cfxi_world_truth_object(w, false);
}

CFXI_BUILTIN(str_startswith) { return has_end(w, self, a, true, err); }
CFXI_BUILTIN(str_endswith) { return has_end(w, self, a, false, err); }

/* Of ASCII letters: those of other alphabets stay. How: 'l'ower, 'u'pper, 't'itle, 'c'apitalize. */
static cfx_object *cased(cfxi_world *w, cfx_object *self, char how, cfx_error *err)
{
    cfx_object *made = piece(w, self->as.text.data, self->as.text.size, err);
    bool first = true;
    for (size_t i = 0; made && i < made->as.text.size; i++) {
        char *c = &made->as.text.data[i];
        const bool upper = *c >= 'A' && *c <= 'Z';
        const bool lower = *c >= 'a' && *c <= 'z';
        const bool up = how == 'u' || (how == 't' && first) || (how == 'c' && i == 0);
        if (up ? lower : upper)
            *c = (char)(*c ^ 0x20);
        first = !(upper || lower);
    }
    return made;
}

CFXI_BUILTIN(str_lower) { return cased(w, self, 'l', err); }
CFXI_BUILTIN(str_upper) { return cased(w, self, 'u', err); }
CFXI_BUILTIN(str_title) { return cased(w, self, 't', err); }
CFXI_BUILTIN(str_capitalize) { return cased(w, self, 'c', err); }

CFXI_BUILTIN(str_replace)
{
    const cfx_object *old = text_arg(w, a, 0, "replace", err);
    const cfx_object *with = old ? text_arg(w, a, 1, "replace", err) : NULL;
    int64_t most = -1;
    cfx_buffer text;
    if (!with || (a->n > 2 && cfxi_world_index_of(w, a->args[2], "count", &most, err) != CFX_OK))
        return NULL;
    cfx_buffer_init(&text, w->allocator);
    const char *data = self->as.text.data;
    const size_t n = old->as.text.size;
    size_t from = 0;
    cfx_status status = CFX_OK;
    while (status == CFX_OK && most-- != 0) {
        const size_t at = cfxi_world_text_find(self, old, from);
        if (at == SIZE_MAX)
            break;
        status = cfx_buffer_append(&text, data + from, at - from);
        if (status == CFX_OK)
            status = cfx_buffer_append(&text, with->as.text.data, with->as.text.size);
        from = at + n;
        if (n == 0 && status == CFX_OK && at < self->as.text.size)
            status = cfx_buffer_append(&text, data + from++, 1);
        else if (n == 0)
            break;
    }
    if (status == CFX_OK)
        status = cfx_buffer_append(&text, data + from, self->as.text.size - from);
    return cfxi_world_text_made(w, status == CFX_OK ? CFX_OK : cfxi_base_nomem(err), &text, err);
}

static int64_t characters(const cfx_object *s, size_t bytes)
{
    int64_t n = 0;
    for (size_t i = 0; i < bytes; i++)
        n += is_start(s->as.text.data[i]);
    return n;
}

CFXI_BUILTIN(str_find)
{
    const cfx_object *part = text_arg(w, a, 0, "find", err);
    if (!part)
        return NULL;
    const size_t at = cfxi_world_text_find(self, part, 0);
    return cfxi_world_int_object(w, at == SIZE_MAX ? -1 : characters(self, at), err);
}

CFXI_BUILTIN(str_index)
{
    cfx_object *at = str_find(w, self, a, err);
    if (!at || at->as.i >= 0)
        return at;
    cfxi_world_unref(at);
    return cfxi_world_raise(w, err, CFXI_ValueError, "substring not found");
}

CFXI_BUILTIN(str_count)
{
    const cfx_object *part = text_arg(w, a, 0, "count", err);
    int64_t n = 0;
    if (!part)
        return NULL;
    if (part->as.text.size == 0)
        return cfxi_world_int_object(w, (int64_t)cfxi_world_text_length(self) + 1, err);
    for (size_t at = 0; (at = cfxi_world_text_find(self, part, at)) != SIZE_MAX;
         at += part->as.text.size)
        n++;
    return cfxi_world_int_object(w, n, err);
}

/* Whether all characters are of a class, and there is one: 'd'igits, 'a'lphabetic, 'n' either,
 * 's'pace. */
static cfx_object *all_are(cfxi_world *w, const cfx_object *self, char what)
{
    bool all = self->as.text.size > 0;
    for (size_t i = 0; all && i < self->as.text.size; i++) {
        const char c = self->as.text.data[i];
        const bool alpha = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c & 0x80);
        all = what == 's' ? is_space(c)
                          : (what != 'd' && alpha) || (what != 'a' && cfxi_base_is_digit(c));
    }
    return cfxi_world_truth_object(w, all);
}

CFXI_BUILTIN(str_isdigit) { return all_are(w, self, 'd'); }
CFXI_BUILTIN(str_isalpha) { return all_are(w, self, 'a'); }
CFXI_BUILTIN(str_isalnum) { return all_are(w, self, 'n'); }
CFXI_BUILTIN(str_isspace) { return all_are(w, self, 's'); }

CFXI_BUILTIN(str_removeprefix)
{
    const cfx_object *part = text_arg(w, a, 0, "removeprefix", err);
    if (!part)
        return NULL;
    const size_t n = part->as.text.size;
    const bool there = n <= self->as.text.size &&
                       memcmp(self->as.text.data, part->as.text.data, n) == 0;
    return piece(w, self->as.text.data + (there ? n : 0), self->as.text.size - (there ? n : 0),
                 err);
}

/* By the rules of format(): '<', '>' or '^' and the width. */
static cfx_object *justify(cfxi_world *w, cfx_object *self, const cfx_call_args *a, char how,
                           cfx_error *err)
{
    char spec[48];
    int64_t width;
    if (a->n < 1 || cfxi_world_index_of(w, a->args[0], "width", &width, err) != CFX_OK) {
        if (a->n < 1)
            cfxi_world_raise(w, err, CFXI_TypeError, "expected at least 1 argument, got 0");
        return NULL;
    }
    const cfx_object *fill = a->n > 1 ? text_arg(w, a, 1, "just", err) : NULL;
    if (a->n > 1 && !fill)
        return NULL;
    if (width <= 0)
        return cfxi_world_ref(self);
    const size_t n = (size_t)snprintf(spec, sizeof spec, "%.4s%c%lld",
                                      fill ? fill->as.text.data : "", how, (long long)width);
    cfx_buffer text;
    cfx_buffer_init(&text, w->allocator);
    return cfxi_world_text_made(w, cfxi_world_format(w, self, spec, n, &text, err), &text, err);
}

CFXI_BUILTIN(str_ljust) { return justify(w, self, a, '<', err); }
CFXI_BUILTIN(str_rjust) { return justify(w, self, a, '>', err); }
CFXI_BUILTIN(str_center) { return justify(w, self, a, '^', err); }

static const cfxi_builtin str_methods[] = {
    {"join", str_join}, {"split", str_split}, {"strip", str_strip}, {"lstrip", str_lstrip},
    {"rstrip", str_rstrip}, {"startswith", str_startswith}, {"endswith", str_endswith},
    {"lower", str_lower}, {"upper", str_upper}, {"title", str_title},
    {"capitalize", str_capitalize}, {"replace", str_replace}, {"find", str_find},
    {"index", str_index}, {"count", str_count}, {"isdigit", str_isdigit},
    {"isalpha", str_isalpha}, {"isalnum", str_isalnum}, {"isspace", str_isspace},
    {"format", cfxi_world_str_format}, {"removeprefix", str_removeprefix}, {"ljust", str_ljust},
    {"rjust", str_rjust}, {"center", str_center}, {NULL, NULL},
};

const cfxi_builtin *cfxi_world_text_method(cfxi_type type, const char *name)
{
    return type == CFXI_TYPE_STR ? cfxi_world_row_find(str_methods, name) : NULL;
}
