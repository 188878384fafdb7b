/* dataclass.c - @dataclass: __init__, __repr__ and __eq__ from the annotated names of a class; and
 * asdict, astuple, replace, fields. */
#include "world_impl.h"

static const char fields_name[] = "__dataclass_fields__";
static const char frozen_name[] = "__dataclass_frozen__";

/* What field(...) gives: an object with `default` or `default_factory`. */
CFXI_BUILTIN(new_field)
{
    static const char *const names[] = {"default", "default_factory", "init", "repr", "compare",
                                        "hash", "metadata", NULL};
    for (size_t i = 0; i < a->n_named; i++)
        if (!cfxi_world_is_word(a->names[i], names))
            return cfx_error_set(err, CFX_E_UNSUPPORTED, "field(%.60s=...) is not supported in "
                                 "scripts", a->names[i]), NULL;
    cfx_object *o = cfxi_world_object_new(w, CFXI_TYPE_INSTANCE, err);
    if (!o)
        return NULL;
    o->mark = true;  /* it is one */
    o->attrs = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
    for (size_t i = 0; o->attrs && i < a->n_named; i++)
        if (cfxi_world_dict_put(o->attrs, a->names[i], a->args[a->n - a->n_named + i], err) !=
            CFX_OK) {
            cfxi_world_unref(o);
            return NULL;
        }
    if (!o->attrs)
        cfxi_world_clear(&o);
    return o;
}

/* The default of a field, a new reference; NULL without an error if it has none. */
static cfx_object *default_of(cfxi_world *w, const cfx_object *cls, const char *name,
                              cfx_error *err)
{
    cfx_object *value = cfxi_world_class_find(cls, name);
    if (!value || value->type != CFXI_TYPE_INSTANCE || !value->mark)
        return cfxi_world_ref(value);
    cfx_object *factory = cfxi_world_dict_get(value->attrs, "default_factory");
    if (factory)
        return cfxi_world_call_with(w, factory, NULL, 0, err);
    return cfxi_world_ref(cfxi_world_dict_get(value->attrs, "default"));
}

/* Whether a field counts for that: not for "init" if it is field(init=False). */
static int field_is(cfxi_world *w, const cfx_object *cls, const char *name, const char *what,
                    cfx_error *err)
{
    const cfx_object *value = cfxi_world_class_find(cls, name);
    cfx_object *says = value && value->type == CFXI_TYPE_INSTANCE && value->mark
                           ? cfxi_world_dict_get(value->attrs, what) : NULL;
    return says ? cfxi_world_truth_of(w, says, err) : 1;
}

cfx_object *cfxi_world_given(const cfx_call_args *a, const char *name, size_t i, size_t *used)
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

/* The names of the fields of an object or a class, borrowed; NULL if it is not a dataclass. */
static const cfx_object *fields_of(const cfx_object *o)
{
    return cfxi_world_class_texts(o->type == CFXI_TYPE_CLASS ? o : o->cls, fields_name);
}

static const cfx_object *need_fields(cfxi_world *w, const cfx_object *o, const char *function,
                                     cfx_error *err)
{
    const cfx_object *fields = o->type == CFXI_TYPE_CLASS ? NULL : fields_of(o);
    if (!fields)
        cfxi_world_raise(w, err, CFXI_TypeError, "%s() should be called on dataclass instances",
                         function);
    return fields;
}

static cfx_object *field_value(const cfx_object *o, const char *name)
{
    return o->attrs ? cfxi_world_dict_get(o->attrs, name) : NULL;
}

CFXI_BUILTIN(init)
{
    const cfx_object *fields = need_fields(w, self, "__init__", err);
    if (!fields)
        return NULL;
    size_t used = 0;
    size_t place = 0;
    bool found = false;
    for (size_t i = 0; i < fields->as.seq.n; i++) {
        const char *name = fields->as.seq.items[i]->as.text.data;
        const int takes = field_is(w, self->cls, name, "init", err);
        if (takes < 0)
            return NULL;
        err->status = CFX_OK;
        cfx_object *value = takes ? cfxi_world_given(a, name, place++, &used) : NULL;
        value = value ? cfxi_world_ref(value) : default_of(w, self->cls, name, err);
        if (!value && !takes && err->status == CFX_OK)
            continue;  /* __post_init__ sets it */
        if (!value && err->status == CFX_OK)
            cfxi_world_raise(w, err, CFXI_TypeError, "%s.__init__() missing 1 required positional "
                             "argument: '%s'", cfxi_world_type_name(self), name);
        const cfx_status status = value ? cfxi_world_set(w, self, name, value, err) : err->status;
        cfxi_world_unref(value);
        if (status != CFX_OK)
            return NULL;
    }
    if (used < a->n)
        return cfxi_world_raise(w, err, CFXI_TypeError,
                                "%s.__init__() got unexpected arguments",
                                cfxi_world_type_name(self));
    cfx_object *made = cfxi_world_special(w, self, "__post_init__", NULL, 0, &found, err);
    cfxi_world_unref(made);
    return found && !made ? NULL : cfxi_world_none(w);
}

CFXI_BUILTIN(repr)
{
    const cfx_object *fields = need_fields(w, self, "__repr__", err);
    if (!fields)
        return NULL;
    cfx_buffer text;
    size_t shown = 0;
    cfx_buffer_init(&text, w->allocator);
    cfx_status status = cfxi_world_put(&text, cfxi_world_type_name(self), err);
    for (size_t i = 0; status == CFX_OK && i < fields->as.seq.n; i++) {
        const char *name = fields->as.seq.items[i]->as.text.data;
        cfx_object *value = field_value(self, name);
        const int is_shown = field_is(w, self->cls, name, "repr", err);
        if (is_shown == 0)
            continue;
        status = is_shown > 0 ? cfxi_world_put(&text, shown++ ? ", " : "(", err) : err->status;
        if (status == CFX_OK)
            status = cfxi_world_put(&text, name, err);
        if (status == CFX_OK)
            status = cfxi_world_put(&text, "=", err);
        if (status == CFX_OK)
            status = cfxi_world_repr(w, value ? value : w->none, &text, err);
    }
    if (status == CFX_OK)
        status = cfxi_world_put(&text, shown ? ")" : "()", err);
    return cfxi_world_text_made(w, status, &text, err);
}

CFXI_BUILTIN(equals)
{
    const cfx_object *fields = need_fields(w, self, "__eq__", err);
    if (!fields)
        return NULL;
    if (a->n != 1 || a->args[0]->cls != self->cls)
        return cfxi_world_ref(w->not_implemented);
    int same = 1;
    for (size_t i = 0; same == 1 && i < fields->as.seq.n; i++) {
        const char *name = fields->as.seq.items[i]->as.text.data;
        cfx_object *x = field_value(self, name);
        cfx_object *y = field_value(a->args[0], name);
        const int counts = field_is(w, self->cls, name, "compare", err);
        same = counts <= 0 ? (counts < 0 ? -1 : 1)
               : x && y    ? cfxi_world_equal(w, x, y, err)
                           : x == y;
    }
    return same < 0 ? NULL : cfxi_world_truth_object(w, same);
}

/* Those of the bases first; a name that comes again keeps its place. */
static cfx_object *all_fields(cfxi_world *w, const cfx_object *cls, cfx_error *err)
{
    cfx_object *all = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
    const cfx_object *mro = cls->as.cls.mro;
    cfx_status status = all ? CFX_OK : err->status;
    for (size_t i = mro->as.seq.n; i-- > 0 && status == CFX_OK;) {
        const cfx_object *names = cfxi_world_dict_get(mro->as.seq.items[i]->attrs,
                                                      i ? fields_name : "__annotations__");
        for (size_t k = 0; names && names->type == CFXI_TYPE_TUPLE && status == CFX_OK &&
             k < names->as.seq.n; k++)
            status = cfxi_world_dict_set(all, names->as.seq.items[k], w->none, err);
    }
    cfx_object *fields = status == CFX_OK ? cfxi_world_collect(w, CFXI_TYPE_TUPLE, all, err) : NULL;
    cfxi_world_unref(all);
    return fields;
}

/* That of a frozen one: of the tuple of its fields. */
CFXI_BUILTIN(hash)
{
    const cfx_object *fields = need_fields(w, self, "__hash__", err);
    cfx_object *values = fields ? cfxi_world_object_new(w, CFXI_TYPE_TUPLE, err) : NULL;
    cfx_status status = values ? CFX_OK : err->status;
    uint32_t number = 0;
    for (size_t i = 0; status == CFX_OK && i < fields->as.seq.n; i++) {
        const char *name = fields->as.seq.items[i]->as.text.data;
        cfx_object *value = field_value(self, name);
        const int counts = field_is(w, self->cls, name, "compare", err);
        if (counts != 0)
            status = counts < 0 ? err->status
                                : cfxi_world_list_append(values, value ? value : w->none, err);
    }
    if (status == CFX_OK)
        status = cfxi_world_hash(w, values, &number, err);
    cfxi_world_unref(values);
    return status == CFX_OK ? cfxi_world_int_object(w, number, err) : NULL;
}

typedef enum dataclass_option { INIT, REPR, EQ, FROZEN, OPTIONS } dataclass_option;

/* @dataclass(eq=False, frozen=True): which are on. Refuses what is not supported. */
static cfx_status read_options(const cfx_call_args *a, bool on[OPTIONS], cfx_error *err)
{
    static const char *const names[OPTIONS] = {"init", "repr", "eq", "frozen"};
    static const char *const harmless[] = {"slots", "match_args", "weakref_slot", NULL};
    for (size_t k = 0; k < a->n_named; k++) {
        const cfx_object *v = a->args[a->n - a->n_named + k];
        size_t i = 0;
        while (i < OPTIONS && strcmp(names[i], a->names[k]) != 0)
            i++;
        const bool known = v->type == CFXI_TYPE_BOOL &&
                           (i < OPTIONS || !v->as.b || cfxi_world_is_word(a->names[k], harmless));
        if (!known)
            return cfx_error_set(err, CFX_E_UNSUPPORTED, "dataclass(%.60s=...) is not supported in "
                                 "scripts", a->names[k]);
        if (i < OPTIONS)
            on[i] = v->as.b;
    }
    return CFX_OK;
}

static cfx_status add_dataclass_methods(cfxi_world *w, cfx_object *cls, const bool on[OPTIONS],
                                        cfx_error *err)
{
    cfxi_builtin rows[6];
    size_t n = 0;
    if (on[INIT])
        rows[n++] = (cfxi_builtin){"__init__", init};
    if (on[REPR])
        rows[n++] = (cfxi_builtin){"__repr__", repr};
    if (on[EQ])
        rows[n++] = (cfxi_builtin){"__eq__", equals};
    if (on[EQ] && on[FROZEN])
        rows[n++] = (cfxi_builtin){"__hash__", hash};
    rows[n] = (cfxi_builtin){NULL, NULL};
    CFX_TRY(cfxi_world_add_methods(w, cls, rows, err));
    return on[FROZEN] ? cfxi_world_dict_put(cls->attrs, frozen_name, w->truths[1], err) : CFX_OK;
}

bool cfxi_world_is_frozen(const cfx_object *o)
{
    return o->type == CFXI_TYPE_INSTANCE && o->cls && cfxi_world_class_find(o->cls, frozen_name);
}

CFXI_BUILTIN(dataclass)
{
    bool on[OPTIONS] = {[INIT] = true, [REPR] = true, [EQ] = true};
    if (a->n == a->n_named) {  /* @dataclass(frozen=True): what it gives is the decorator */
        cfx_object *self_again =
            cfxi_world_builtin_object(w, "dataclasses.dataclass", dataclass, CFX_OPID_NONE, err);
        cfx_object *named = self_again ? cfxi_world_dict_object(w, CFXI_TYPE_DICT, err) : NULL;
        cfx_status status = named ? CFX_OK : err->status;
        for (size_t i = 0; status == CFX_OK && i < a->n; i++)
            status = cfxi_world_dict_put(named, a->names[i], a->args[i], err);
        cfx_object *made = status == CFX_OK ? cfxi_world_parts_object(
            w, CFXI_TYPE_PARTIAL, self_again, w->empty, named, err) : NULL;
        cfxi_world_unref(named);
        cfxi_world_unref(self_again);
        return made;
    }
    cfx_object *cls = a->args[0];
    if (cls->type != CFXI_TYPE_CLASS)
        return cfxi_world_raise(w, err, CFXI_TypeError, "dataclass() takes a class, not '%s'",
                                cfxi_world_type_name(cls));
    if (read_options(a, on, err) != CFX_OK)
        return NULL;
    cfx_object *fields = all_fields(w, cls, err);
    cfx_status status = fields ? cfxi_world_dict_put(cls->attrs, fields_name, fields, err)
                               : err->status;
    cfxi_world_unref(fields);
    if (status == CFX_OK)
        status = add_dataclass_methods(w, cls, on, err);
    return status == CFX_OK ? cfxi_world_ref(cls) : NULL;
}

/* ---- asking them --------------------------------------------------------------------------- */

static cfx_object *plain_copy(cfxi_world *w, cfx_object *o, bool dict, cfx_error *err);

/* A dict, or a tuple, of the fields. */
static cfx_object *copy_fields(cfxi_world *w, cfx_object *o, const cfx_object *fields, bool dict,
                               cfx_error *err)
{
    cfx_object *made = dict ? cfxi_world_dict_object(w, CFXI_TYPE_DICT, err)
                            : cfxi_world_object_new(w, CFXI_TYPE_TUPLE, err);
    for (size_t i = 0; made && i < fields->as.seq.n; i++) {
        cfx_object *name = fields->as.seq.items[i];
        cfx_object *value = cfxi_world_get(w, o, name->as.text.data, err);
        cfx_object *copy = value ? plain_copy(w, value, dict, err) : NULL;
        const cfx_status status = !copy  ? err->status
                                  : dict ? cfxi_world_dict_set(made, name, copy, err)
                                         : cfxi_world_list_append(made, copy, err);
        cfxi_world_unref(copy);
        cfxi_world_unref(value);
        if (status != CFX_OK)
            cfxi_world_clear(&made);
    }
    return made;
}

/* Dataclasses in it, however deep, become dicts or tuples; all else is copied. */
static cfx_object *plain_copy(cfxi_world *w, cfx_object *o, bool dict, cfx_error *err)
{
    const cfx_object *fields = o->type == CFXI_TYPE_INSTANCE ? fields_of(o) : NULL;
    const bool list = o->type == CFXI_TYPE_LIST || o->type == CFXI_TYPE_TUPLE;
    cfx_object *key;
    cfx_object *value;
    if (!fields && !list && o->type != CFXI_TYPE_DICT)
        return cfxi_world_deep_copy(w, o, err);
    if (cfxi_world_deeper(w, err) != CFX_OK)
        return NULL;
    cfx_object *made = fields ? copy_fields(w, o, fields, dict, err)
                              : cfxi_world_object_new(w, (cfxi_type)o->type, err);
    if (made && !fields)
        made->cls = cfxi_world_ref(o->cls);
    for (size_t i = 0; made && list && i < o->as.seq.n; i++) {
        cfx_object *copy = plain_copy(w, o->as.seq.items[i], dict, err);
        if (!copy || cfxi_world_list_append(made, copy, err) != CFX_OK)
            cfxi_world_clear(&made);
        cfxi_world_unref(copy);
    }
    for (size_t at = 0; made && !fields && !list && cfxi_world_dict_next(o, &at, &key, &value);) {
        cfx_object *copy = plain_copy(w, value, dict, err);
        if (!copy || cfxi_world_dict_set(made, key, copy, err) != CFX_OK)
            cfxi_world_clear(&made);
        cfxi_world_unref(copy);
    }
    w->depth--;
    return made;
}

static cfx_object *as_plain(cfxi_world *w, const cfx_call_args *a, const char *name, bool dict,
                            cfx_error *err)
{
    cfx_object *in[1];
    if (cfxi_world_args(w, a, name, NULL, 1, 1, in, err) != CFX_OK ||
        !need_fields(w, in[0], name, err))
        return NULL;
    return plain_copy(w, in[0], dict, err);
}

CFXI_BUILTIN(as_dict) { return as_plain(w, a, "asdict", true, err); }
CFXI_BUILTIN(as_tuple) { return as_plain(w, a, "astuple", false, err); }

/* A new one with the fields of another, but for those that are given. */
CFXI_BUILTIN(replace)
{
    cfx_object *values[CFXI_MOST_ARGS];
    const char *names[CFXI_MOST_ARGS];
    const size_t plain = a->n - a->n_named;
    size_t n = a->n_named;
    const cfx_object *fields = plain == 1 ? need_fields(w, a->args[0], "replace", err) : NULL;
    if (plain != 1)
        return cfxi_world_raise(w, err, CFXI_TypeError, "replace() takes 1 positional argument but "
                                "%zu were given", plain);
    if (!fields || fields->as.seq.n + n > CFXI_MOST_ARGS)
        return fields ? cfxi_world_raise(w, err, CFXI_TypeError, "replace() does not support more "
                                         "than %d fields",
                                         CFXI_MOST_ARGS) : NULL;
    cfx_object *o = a->args[0];
    for (size_t i = 0; i < n; i++) {
        names[i] = a->names[i];
        values[i] = a->args[plain + i];
    }
    for (size_t i = 0; i < fields->as.seq.n; i++) {
        const char *name = fields->as.seq.items[i]->as.text.data;
        size_t used = 0;
        cfx_object *value = field_value(o, name);
        const int takes = field_is(w, o->cls, name, "init", err);
        if (takes < 0)
            return NULL;
        if (!takes || !value ||
            cfxi_world_given(&(cfx_call_args){values, n, names, n}, name, n, &used))
            continue;
        names[n] = name;
        values[n++] = value;
    }
    return cfxi_world_call_object(w, o->cls, (cfx_call_args){values, n, names, n}, err);
}

CFXI_BUILTIN(fields_function)
{
    cfx_object *in[1];
    if (cfxi_world_args(w, a, "fields", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    const cfx_object *names = in[0]->type == CFXI_TYPE_CLASS && fields_of(in[0])
                                  ? fields_of(in[0]) : need_fields(w, in[0], "fields", err);
    cfx_object *made = names ? cfxi_world_object_new(w, CFXI_TYPE_TUPLE, err) : NULL;
    for (size_t i = 0; made && i < names->as.seq.n; i++) {
        cfx_object *one = cfxi_world_object_new(w, CFXI_TYPE_INSTANCE, err);
        if (!one || cfxi_world_set(w, one, "name", names->as.seq.items[i], err) != CFX_OK ||
            cfxi_world_list_append(made, one, err) != CFX_OK)
            cfxi_world_clear(&made);
        cfxi_world_unref(one);
    }
    return made;
}

CFXI_BUILTIN(is_dataclass)
{
    cfx_object *in[1];
    return cfxi_world_args(w, a, "is_dataclass", NULL, 1, 1, in, err) == CFX_OK
               ? cfxi_world_truth_object(w, fields_of(in[0]) != NULL) : NULL;
}

const cfxi_builtin *cfxi_world_dataclass_function(const char *name)
{
    static const cfxi_builtin functions[] = {
        {"dataclass", dataclass}, {"field", new_field}, {"asdict", as_dict},
        {"astuple", as_tuple}, {"replace", replace}, {"fields", fields_function},
        {"is_dataclass", is_dataclass}, {NULL, NULL}};
    return cfxi_world_row_find(functions, name);
}
