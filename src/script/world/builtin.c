/* builtin.c - arguments of builtin functions, those on objects and attributes, and the tables. */
#include "world_impl.h"

#include <stdio.h>

/* ---- arguments ----------------------------------------------------------------------------- */

cfx_status cfxi_world_args(cfxi_world *w, const cfx_call_args *a, const char *function,
                           const char *const *names, size_t least, size_t most, cfx_object **out,
                           cfx_error *err)
{
    const size_t plain = a->n - a->n_named;
    for (size_t i = 0; i < most; i++)
        out[i] = NULL;
    if (plain > most)
        return cfxi_world_throw(w, err, CFXI_TypeError,
                                "%s() takes at most %zu arguments (%zu given)", function, most,
                                plain);
    for (size_t i = 0; i < plain; i++) {
        if (names && names[i] && names[i][0] == '*')
            return cfxi_world_throw(w, err, CFXI_TypeError, "%s() takes '%s' only as a keyword "
                                    "argument",
                                    function, names[i] + 1);
        out[i] = a->args[i];
    }
    for (size_t k = 0; k < a->n_named; k++) {
        size_t i = 0;
        while (names && i < most && (!names[i] || strcmp(names[i] + (names[i][0] == '*'),
                                                         a->names[k]) != 0))
            i++;
        if (!names || i == most)
            return cfxi_world_throw(w, err, CFXI_TypeError,
                                    "%s() got an unexpected keyword argument "
                                    "'%s'",
                                    function, a->names[k]);
        if (out[i])
            return cfxi_world_throw(w, err, CFXI_TypeError, "%s() got multiple values for argument "
                                    "'%s'", function, a->names[k]);
        out[i] = a->args[plain + k];
    }
    for (size_t i = 0; i < least; i++)
        if (!out[i])
            return cfxi_world_throw(w, err, CFXI_TypeError, "%s() is missing argument %zu",
                                    function,
                                    i + 1);
    return CFX_OK;
}

cfx_object *cfxi_world_builtin_object(cfxi_world *w, const char *name, cfxi_builtin_fn *fn,
                                      cfx_operator op, cfx_error *err)
{
    const size_t size = strlen(name) + 1;
    cfx_object *o = cfxi_world_object_new(w, CFXI_TYPE_BUILTIN, err);
    char *copy = o ? cfxi_world_alloc(w, size, err) : NULL;
    if (!copy) {
        cfxi_world_unref(o);
        return NULL;
    }
    memcpy(copy, name, size);
    o->as.builtin.name = copy;
    o->as.builtin.fn = fn;
    o->as.builtin.op = op;
    o->flag = op != CFX_OPID_NONE;
    return o;
}

/* ---- objects ------------------------------------------------------------------------------- */

CFXI_BUILTIN(b_getattr)
{
    cfx_object *in[3];
    if (cfxi_world_args(w, a, "getattr", NULL, 2, 3, in, err) != CFX_OK)
        return NULL;
    if (in[1]->type != CFXI_TYPE_STR)
        return cfxi_world_raise(w, err, CFXI_TypeError, "attribute name must be string, not '%s'",
                                cfxi_world_type_name(in[1]));
    cfx_object *made = cfxi_world_get(w, in[0], in[1]->as.text.data, err);
    if (!made && in[2] && cfxi_world_catch(w, CFXI_AttributeError, err))
        return cfxi_world_ref(in[2]);
    return made;
}

CFXI_BUILTIN(b_hasattr)
{
    cfx_object *in[2];
    if (cfxi_world_args(w, a, "hasattr", NULL, 2, 2, in, err) != CFX_OK)
        return NULL;
    if (in[1]->type != CFXI_TYPE_STR)
        return cfxi_world_raise(w, err, CFXI_TypeError, "attribute name must be string");
    cfx_object *made = cfxi_world_get(w, in[0], in[1]->as.text.data, err);
    cfxi_world_unref(made);
    if (!made && !cfxi_world_catch(w, CFXI_AttributeError, err))
        return NULL;
    return cfxi_world_truth_object(w, made != NULL);
}

static cfx_object *set_or_delete(cfxi_world *w, const cfx_call_args *a, bool set, cfx_error *err)
{
    cfx_object *in[3];
    if (cfxi_world_args(w, a, set ? "setattr" : "delattr", NULL, set ? 3 : 2, set ? 3 : 2, in,
                        err) != CFX_OK)
        return NULL;
    if (in[1]->type != CFXI_TYPE_STR)
        return cfxi_world_raise(w, err, CFXI_TypeError, "attribute name must be string");
    return cfxi_world_done(w,
                           cfxi_world_set(w, in[0], in[1]->as.text.data, set ? in[2] : NULL, err));
}

CFXI_BUILTIN(b_setattr) { return set_or_delete(w, a, true, err); }
CFXI_BUILTIN(b_delattr) { return set_or_delete(w, a, false, err); }

CFXI_BUILTIN(b_isinstance)
{
    cfx_object *in[2];
    if (cfxi_world_args(w, a, "isinstance", NULL, 2, 2, in, err) != CFX_OK)
        return NULL;
    const int t = cfxi_world_is_instance(w, in[0], in[1], err);
    return t < 0 ? NULL : cfxi_world_truth_object(w, t);
}

CFXI_BUILTIN(b_issubclass)
{
    cfx_object *in[2];
    if (cfxi_world_args(w, a, "issubclass", NULL, 2, 2, in, err) != CFX_OK)
        return NULL;
    if (in[0]->type != CFXI_TYPE_CLASS)
        return cfxi_world_raise(w, err, CFXI_TypeError, "issubclass() arg 1 must be a class");
    const int t = cfxi_world_is_one_of(w, in[0], in[1], "issubclass", err);
    return t < 0 ? NULL : cfxi_world_truth_object(w, t);
}

CFXI_BUILTIN(b_callable)
{
    cfx_object *in[1];
    cfx_script_callee how;
    if (cfxi_world_args(w, a, "callable", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    const bool can = cfxi_world_callee(w, in[0], &how, err) == CFX_OK;
    if (!can && !cfxi_world_catch(w, CFXI_TypeError, err))
        return NULL;
    return cfxi_world_truth_object(w, can);
}

CFXI_BUILTIN(make_type)
{
    cfx_object *in[1];
    return cfxi_world_args(w, a, "type", NULL, 1, 1, in, err) == CFX_OK
               ? cfxi_world_class_of(w, in[0], err) : NULL;
}

CFXI_BUILTIN(b_id)
{
    cfx_object *in[1];
    return cfxi_world_args(w, a, "id", NULL, 1, 1, in, err) == CFX_OK
               ? cfxi_world_int_object(w, (int64_t)((uintptr_t)in[0] >> 1), err) : NULL;
}

CFXI_BUILTIN(b_hash)
{
    cfx_object *in[1];
    uint32_t hash;
    if (cfxi_world_args(w, a, "hash", NULL, 1, 1, in, err) != CFX_OK ||
        cfxi_world_hash(w, in[0], &hash, err) != CFX_OK)
        return NULL;
    return cfxi_world_int_object(w, hash, err);
}

CFXI_BUILTIN(make_object)
{
    return cfxi_world_object_new(w, CFXI_TYPE_INSTANCE, err);
}

static cfx_object *wrapper(cfxi_world *w, cfxi_type type, const cfx_call_args *a, cfx_error *err)
{
    static const char *const names[] = {"fget", "fset", "fdel"};
    cfx_object *in[3];
    const size_t most = type == CFXI_TYPE_PROPERTY ? 3 : 1;
    if (cfxi_world_args(w, a, "property", names, most == 1, most, in, err) != CFX_OK)
        return NULL;
    return cfxi_world_parts_object(w, type, in[0], most > 1 ? in[1] : NULL, NULL, err);
}

CFXI_BUILTIN(make_property) { return wrapper(w, CFXI_TYPE_PROPERTY, a, err); }
CFXI_BUILTIN(make_static) { return wrapper(w, CFXI_TYPE_STATIC_METHOD, a, err); }
CFXI_BUILTIN(make_class_method) { return wrapper(w, CFXI_TYPE_CLASS_METHOD, a, err); }

/* property.setter and its like: a property with another function. */
CFXI_BUILTIN(p_setter)
{
    cfx_object *in[1];
    return cfxi_world_args(w, a, "setter", NULL, 1, 1, in, err) == CFX_OK
               ? cfxi_world_parts_object(w, CFXI_TYPE_PROPERTY, self->as.parts.a, in[0], NULL, err)
               : NULL;
}

CFXI_BUILTIN(p_getter)
{
    cfx_object *in[1];
    return cfxi_world_args(w, a, "getter", NULL, 1, 1, in, err) == CFX_OK
               ? cfxi_world_parts_object(w, CFXI_TYPE_PROPERTY, in[0], self->as.parts.b, NULL, err)
               : NULL;
}

/* ---- the tables ---------------------------------------------------------------------------- */

static const cfxi_builtin object_builtins[] = {
    {"callable", b_callable}, {"classmethod", make_class_method}, {"delattr", b_delattr},
    {"getattr", b_getattr}, {"hasattr", b_hasattr}, {"hash", b_hash}, {"id", b_id},
    {"isinstance", b_isinstance}, {"issubclass", b_issubclass}, {"object", make_object},
    {"property", make_property}, {"setattr", b_setattr}, {"staticmethod", make_static},
    {"type", make_type}, {" setter", p_setter}, {" getter", p_getter}, {NULL, NULL},
};

cfxi_builtin_fn *cfxi_world_builtin_function(const char *name)
{
    static const cfxi_builtin *const tables[] = {object_builtins, cfxi_world_number_builtins,
                                                 cfxi_world_items_builtins,
                                                 cfxi_world_text_builtins};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const cfxi_builtin *row = cfxi_world_row_find(tables[i], name);
        if (row)
            return row->fn;
    }
    return NULL;
}

/* Names of exceptions, and of builtin classes. */
static cfx_object *builtin_class(cfxi_world *w, const char *name, cfx_error *err)
{
    const cfxi_type type = cfxi_world_type_named(name);
    const cfxi_exception exception = cfxi_world_exception_named(name);
    if (type != CFXI_TYPES)
        return cfxi_world_type_class(w, type, err);
    return exception != CFXI_EXCEPTIONS ? cfxi_world_exception_class(w, exception, err) : NULL;
}

/* A function, or a constant. */
static cfx_object *builtin_object(cfxi_world *w, const char *name, cfx_error *err)
{
    char full[64];
    cfxi_builtin_fn *fn = cfxi_world_builtin_function(name);
    if (strcmp(name, "NotImplemented") == 0)
        return cfxi_world_ref(w->not_implemented);
    if (strcmp(name, "Ellipsis") == 0)
        return cfxi_world_ref(w->ellipsis);
    if (strcmp(name, "__debug__") == 0)
        return cfxi_world_truth_object(w, true);
    if (!fn && strcmp(name, "globals") != 0 && strcmp(name, "locals") != 0)
        return NULL;
    snprintf(full, sizeof full, "builtins.%.40s", name);
    return cfxi_world_builtin_object(w, full, fn, CFX_OPID_NONE, err);
}

cfx_object *cfxi_world_builtin_get(cfxi_world *w, const char *name, cfx_error *err)
{
    cfx_object *made = cfxi_world_dict_get(w->builtins, name);
    err->status = CFX_OK;
    if (made)
        return cfxi_world_ref(made);
    made = builtin_class(w, name, err);
    if (!made && err->status == CFX_OK)
        made = builtin_object(w, name, err);
    if (made && cfxi_world_dict_put(w->builtins, name, made, err) != CFX_OK)
        cfxi_world_clear(&made);
    return made;
}
