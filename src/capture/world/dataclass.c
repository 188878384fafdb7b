/* dataclass.c - @dataclass: __init__, __repr__ and __eq__ from the annotated names of a class. */
#include "world_impl.h"

static const char fields_name[] = "__dataclass_fields__";

/* What field(...) gives: an object with `default` or `default_factory`. */
cfx_object *cfxi_w_field(cfxi_world *w, cfx_object *self, const cfx_call_args *a, cfx_error *err)
{
    cfx_object *o = cfxi_w_object_new(w, CFXI_TYPE_INSTANCE, err);
    (void)self;
    if (!o)
        return NULL;
    o->mark = true;  /* it is one */
    o->attrs = cfxi_w_dict_object(w, CFXI_TYPE_DICT, err);
    for (size_t i = 0; o->attrs && i < a->n_named; i++)
        if (cfxi_w_dict_put(o->attrs, a->names[i], a->args[a->n - a->n_named + i], err) != CFX_OK) {
            cfxi_w_unref(o);
            return NULL;
        }
    if (!o->attrs)
        cfxi_w_clear(&o);
    return o;
}

/* The default of a field, a new reference; NULL without an error if it has none. */
static cfx_object *default_of(cfxi_world *w, const cfx_object *cls, const char *name,
                              cfx_error *err)
{
    cfx_object *value = cfxi_w_class_find(cls, name);
    if (!value || value->type != CFXI_TYPE_INSTANCE || !value->mark)
        return cfxi_w_ref(value);
    cfx_object *factory = cfxi_w_dict_get(value->attrs, "default_factory");
    if (factory)
        return cfxi_w_call_with(w, factory, NULL, 0, err);
    return cfxi_w_ref(cfxi_w_dict_get(value->attrs, "default"));
}

cfx_object *cfxi_w_given(const cfx_call_args *a, const char *name, size_t i, size_t *used)
{
    const size_t plain = a->n - a->n_named;
    if (i < plain) {
        ++*used;
        return a->args[i];
    }
    for (size_t k = 0; k < a->n_named; k++)
        if (strcmp(a->names[k], name) == 0) {
            ++*used;
            return a->args[plain + k];
        }
    return NULL;
}

CFXI_BUILTIN(init)
{
    const cfx_object *fields = cfxi_w_class_find(self->cls, fields_name);
    size_t used = 0;
    bool found = false;
    for (size_t i = 0; i < fields->as.seq.n; i++) {
        const char *name = fields->as.seq.items[i]->as.text.data;
        err->status = CFX_OK;
        cfx_object *value = cfxi_w_given(a, name, i, &used);
        value = value ? cfxi_w_ref(value) : default_of(w, self->cls, name, err);
        if (!value && err->status == CFX_OK)
            cfxi_w_raise(w, err, CFXI_TypeError, "%s.__init__() missing 1 required positional "
                         "argument: '%s'", cfxi_w_type_name(w, self), name);
        const cfx_status status = value ? cfxi_w_set(w, self, name, value, err) : err->status;
        cfxi_w_unref(value);
        if (status != CFX_OK)
            return NULL;
    }
    if (used < a->n)
        return cfxi_w_raise(w, err, CFXI_TypeError, "%s.__init__() got arguments that it has no "
                            "fields for", cfxi_w_type_name(w, self));
    cfx_object *made = cfxi_w_special(w, self, "__post_init__", NULL, 0, &found, err);
    cfxi_w_unref(made);
    return found && !made ? NULL : cfxi_w_none(w);
}

CFXI_BUILTIN(repr)
{
    const cfx_object *fields = cfxi_w_class_find(self->cls, fields_name);
    cfx_buffer text;
    cfx_buffer_init(&text, w->allocator);
    cfx_status status = cfxi_w_put(&text, cfxi_w_type_name(w, self), err);
    for (size_t i = 0; status == CFX_OK && i < fields->as.seq.n; i++) {
        const char *name = fields->as.seq.items[i]->as.text.data;
        cfx_object *value = self->attrs ? cfxi_w_dict_get(self->attrs, name) : NULL;
        status = cfxi_w_put(&text, i ? ", " : "(", err);
        if (status == CFX_OK)
            status = cfxi_w_put(&text, name, err);
        if (status == CFX_OK)
            status = cfxi_w_put(&text, "=", err);
        if (status == CFX_OK)
            status = cfxi_w_repr(w, value ? value : w->none, &text, err);
    }
    if (status == CFX_OK)
        status = cfxi_w_put(&text, fields->as.seq.n ? ")" : "()", err);
    return cfxi_w_text_made(w, status, &text, err);
}

CFXI_BUILTIN(equals)
{
    const cfx_object *fields = cfxi_w_class_find(self->cls, fields_name);
    if (a->n != 1 || a->args[0]->cls != self->cls)
        return cfxi_w_ref(w->not_implemented);
    int same = 1;
    for (size_t i = 0; same == 1 && i < fields->as.seq.n; i++) {
        const char *name = fields->as.seq.items[i]->as.text.data;
        cfx_object *x = cfxi_w_dict_get(self->attrs, name);
        cfx_object *y = cfxi_w_dict_get(a->args[0]->attrs, name);
        same = x && y ? cfxi_w_equal(w, x, y, err) : x == y;
    }
    return same < 0 ? NULL : cfxi_w_truth_object(w, same);
}

/* Those of the bases first; a name that comes again keeps its place. */
static cfx_object *all_fields(cfxi_world *w, const cfx_object *cls, cfx_error *err)
{
    cfx_object *all = cfxi_w_dict_object(w, CFXI_TYPE_DICT, err);
    const cfx_object *mro = cls->as.cls.mro;
    cfx_status status = all ? CFX_OK : err->status;
    for (size_t i = mro->as.seq.n; i-- > 0 && status == CFX_OK;) {
        const cfx_object *names = cfxi_w_dict_get(mro->as.seq.items[i]->attrs,
                                                  i ? fields_name : "__annotations__");
        for (size_t k = 0; names && names->type == CFXI_TYPE_TUPLE && status == CFX_OK &&
             k < names->as.seq.n; k++)
            status = cfxi_w_dict_set(all, names->as.seq.items[k], w->none, err);
    }
    cfx_object *fields = status == CFX_OK ? cfxi_w_collect(w, CFXI_TYPE_TUPLE, all, err) : NULL;
    cfxi_w_unref(all);
    return fields;
}

/* Unless the user has written one. */
static cfx_status add_method(cfxi_world *w, cfx_object *cls, const char *name, cfxi_builtin_fn *fn,
                             cfx_error *err)
{
    return cfxi_w_dict_get(cls->attrs, name) ? CFX_OK : cfxi_w_add_method(w, cls, name, fn, err);
}

cfx_object *cfxi_w_dataclass(cfxi_world *w, cfx_object *self, const cfx_call_args *a,
                             cfx_error *err)
{
    (void)self;
    if (a->n == a->n_named)  /* @dataclass(frozen=True): what it gives is the decorator */
        return cfxi_w_builtin_object(w, "dataclasses.dataclass", cfxi_w_dataclass, CFX_OPID_NONE,
                                     err);
    cfx_object *cls = a->args[0];
    if (cls->type != CFXI_TYPE_CLASS)
        return cfxi_w_raise(w, err, CFXI_TypeError, "dataclass() takes a class, not '%s'",
                            cfxi_w_type_name(w, cls));
    cfx_object *fields = all_fields(w, cls, err);
    cfx_status status = fields ? cfxi_w_dict_put(cls->attrs, fields_name, fields, err)
                               : err->status;
    cfxi_w_unref(fields);
    if (status == CFX_OK)
        status = add_method(w, cls, "__init__", init, err);
    if (status == CFX_OK)
        status = add_method(w, cls, "__repr__", repr, err);
    if (status == CFX_OK)
        status = add_method(w, cls, "__eq__", equals, err);
    return status == CFX_OK ? cfxi_w_ref(cls) : NULL;
}
