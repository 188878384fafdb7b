/* exception.c - exceptions: their classes, raising them, and what cfx's errors are among them. */
#include "world_impl.h"

#include <cfx/embed/base.h>

#include <stdio.h>

static const char *const exception_name[CFXI_EXCEPTIONS] = {
#define CFX_EXCEPTION(name, base) #name,
#include "exception.def"
#undef CFX_EXCEPTION
};

static const uint8_t exception_base[CFXI_EXCEPTIONS] = {
#define CFX_EXCEPTION(name, base) CFXI_##base,
#include "exception.def"
#undef CFX_EXCEPTION
};

cfxi_exception cfxi_world_exception_named(const char *name)
{
    int i = 0;
    while (i < CFXI_EXCEPTIONS && strcmp(exception_name[i], name) != 0)
        i++;
    return (cfxi_exception)i;
}

/* BaseException.__init__: the arguments are kept. */
CFXI_BUILTIN(init)
{
    cfx_object *args = cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, a->args, a->n - a->n_named, err);
    cfx_status status = args ? cfxi_world_set(w, self, "args", args, err) : err->status;
    cfxi_world_unref(args);
    return cfxi_world_done(w, status);
}

cfx_object *cfxi_world_exception_class(cfxi_world *w, cfxi_exception kind, cfx_error *err)
{
    if (w->exceptions[kind])
        return cfxi_world_ref(w->exceptions[kind]);
    const bool first = kind == CFXI_BaseException;
    cfx_object *base =
        first ? cfxi_world_type_class(w, CFXI_TYPE_INSTANCE, err)
              : cfxi_world_exception_class(w, (cfxi_exception)exception_base[kind], err);
    cfx_object *cls = base ? cfxi_world_builtin_class(w, exception_name[kind], base,
                                                      CFXI_TYPE_INSTANCE, NULL, err) : NULL;
    cfxi_world_unref(base);
    if (!cls)
        return NULL;
    cls->as.cls.exception = (int16_t)kind;
    if (first && cfxi_world_add_method(w, cls, "__init__", init, err) != CFX_OK) {
        cfxi_world_unref(cls);
        return NULL;
    }
    w->exceptions[kind] = cls;
    return cfxi_world_ref(cls);
}

static cfx_object *new_exception(cfxi_world *w, cfx_object *cls, cfx_object *args, cfx_error *err)
{
    cfx_object *o = cfxi_world_make(w, cls, err);
    if (o && cfxi_world_set(w, o, "args", args, err) != CFX_OK)
        cfxi_world_clear(&o);
    return o;
}

/* An exception of that class, with one argument. */
static cfx_object *make(cfxi_world *w, cfxi_exception kind, cfx_object *arg, cfx_error *err)
{
    cfx_object *cls = cfxi_world_exception_class(w, kind, err);
    cfx_object *args = cls ? cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, &arg, 1, err) : NULL;
    cfx_object *o = args ? new_exception(w, cls, args, err) : NULL;
    cfxi_world_unref(args);
    cfxi_world_unref(cls);
    return o;
}

static cfx_status throw_text(cfxi_world *w, cfxi_exception kind, const char *text, cfx_error *err)
{
    cfx_error why = {0};
    cfx_object *word = cfxi_world_str(w, text, &why);
    cfx_object *o = word ? make(w, kind, word, &why) : NULL;
    cfxi_world_unref(word);
    if (!o) {
        if (why.status == CFX_OK)
            cfxi_base_nomem(&why);
        *err = why;
        return why.status;
    }
    cfxi_world_unref(w->pending);
    w->pending = o;
    return cfx_error_set(err, CFX_E_HOST, "%s: %s", exception_name[kind], text);
}

static cfx_status throw_format(cfxi_world *w, cfxi_exception kind, const char *format, va_list args,
                               cfx_error *err)
{
    char text[400];
    vsnprintf(text, sizeof text, format, args);
    cfxi_base_utf8_clean(text);
    return throw_text(w, kind, text, err);
}

cfx_status cfxi_world_throw(cfxi_world *w, cfx_error *err, cfxi_exception kind, const char *format,
                            ...)
{
    va_list args;
    va_start(args, format);
    const cfx_status status = throw_format(w, kind, format, args, err);
    va_end(args);
    return status;
}

cfx_object *cfxi_world_raise(cfxi_world *w, cfx_error *err, cfxi_exception kind, const char *format,
                             ...)
{
    va_list args;
    va_start(args, format);
    throw_format(w, kind, format, args, err);
    va_end(args);
    return NULL;
}

cfx_status cfxi_world_throw_key(cfxi_world *w, cfx_object *key, cfx_error *err)
{
    cfx_buffer text;
    cfx_object *o = make(w, CFXI_KeyError, key, err);
    if (!o)
        return err->status;
    cfxi_world_unref(w->pending);
    w->pending = o;
    cfx_buffer_init(&text, w->allocator);
    cfx_status status = cfxi_world_repr(w, key, &text, err);
    if (status == CFX_OK)
        status = cfx_error_set(err, CFX_E_HOST, "KeyError: %.300s", text.data);
    cfx_buffer_free(&text);
    return status;
}

cfx_status cfxi_world_throw_error(cfxi_world *w, const cfx_error *why, cfx_error *err)
{
    const char *name = cfx_status_exception(why->status);
    if (why->status == CFX_E_HOST || why->status == CFX_E_NOMEM || why->status == CFX_E_LIMIT ||
        why->status == CFX_E_INTERRUPTED || !name) {
        if (why != err)
            *err = *why;
        return err->status;
    }
    const cfx_error copy = *why;
    const cfxi_exception kind = cfxi_world_exception_named(name);
    return throw_text(w, kind != CFXI_EXCEPTIONS ? kind : CFXI_RuntimeError, copy.message, err);
}

bool cfxi_world_catch(cfxi_world *w, cfxi_exception kind, cfx_error *err)
{
    if (err->status != CFX_E_HOST || !w->pending || !w->exceptions[kind] ||
        !cfxi_world_is_subclass(w->pending->cls, w->exceptions[kind]))
        return false;
    cfxi_world_clear(&w->pending);
    err->status = CFX_OK;
    return true;
}
