/* class.c - classes: builtin ones, user-defined ones, and the method resolution order. */
#include "world_impl.h"

static const char *const type_names[CFXI_TYPES] = {
#define CFX_TYPE(id, name, builtin) name,
#include "type.def"
#undef CFX_TYPE
};

cfxi_type cfxi_world_type_named(const char *name)
{
    static const bool is_builtin[CFXI_TYPES] = {
#define CFX_TYPE(id, name, builtin) builtin,
#include "type.def"
#undef CFX_TYPE
    };
    int i = 0;
    while (i < CFXI_TYPES && !(is_builtin[i] && strcmp(type_names[i], name) == 0))
        i++;
    return (cfxi_type)i;
}

const char *cfxi_world_type_name(const cfx_object *o)
{
    if (o->cls && o->cls->as.cls.name)
        return o->cls->as.cls.name;
    if (o->type == CFXI_TYPE_TENSOR && o->flag)
        return "Parameter";
    return type_names[o->type];
}

/* ---- making classes ------------------------------------------------------------------------ */

static cfx_object *new_class(cfxi_world *w, const char *name, cfx_error *err)
{
    const size_t size = strlen(name) + 1;
    cfx_object *cls = cfxi_world_object_new(w, CFXI_TYPE_CLASS, err);
    char *copy = cls ? cfxi_world_alloc(w, size, err) : NULL;
    cfx_object *attrs = copy ? cfxi_world_dict_object(w, CFXI_TYPE_DICT, err) : NULL;
    if (!attrs) {
        cfxi_world_free(w, copy, size);
        cfxi_world_unref(cls);
        return NULL;
    }
    memcpy(copy, name, size);
    cls->as.cls.name = copy;
    cls->attrs = attrs;
    cls->as.cls.exception = -1;
    cls->as.cls.layout = CFXI_TYPE_INSTANCE;
    return cls;
}

/* What a class has from its bases beyond their attributes. */
static void inherit(cfx_object *cls)
{
    const cfx_object *mro = cls->as.cls.mro;
    for (size_t i = 1; i < mro->as.seq.n; i++) {
        const cfx_object *base = mro->as.seq.items[i];
        if (cls->as.cls.layout == CFXI_TYPE_INSTANCE)
            cls->as.cls.layout = base->as.cls.layout;
        if (!cls->as.cls.nn)
            cls->as.cls.nn = base->as.cls.nn;
        if (cls->as.cls.exception < 0)
            cls->as.cls.exception = base->as.cls.exception;
    }
}

/* Whether `cls` stands in the rest of a list of classes, behind its first. */
static bool in_tail(const cfx_object *list, size_t from, const cfx_object *cls)
{
    for (size_t i = from + 1; i < list->as.seq.n; i++)
        if (list->as.seq.items[i] == cls)
            return true;
    return false;
}

/* The next class: the first head that stands in no tail. NULL if there is none. */
static cfx_object *next_head(cfx_object *const *lists, const size_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (at[i] >= lists[i]->as.seq.n)
            continue;
        cfx_object *head = lists[i]->as.seq.items[at[i]];
        bool good = true;
        for (size_t k = 0; good && k < n; k++)
            good = !in_tail(lists[k], at[k], head);
        if (good)
            return head;
    }
    return NULL;
}

enum { MOST_BASES = 16 };

/* Python's C3: the orders of the bases, and their own order, merged. */
static cfx_status linearise(cfxi_world *w, cfx_object *cls, cfx_error *err)
{
    cfx_object *lists[MOST_BASES + 1];
    size_t at[MOST_BASES + 1] = {0};
    const cfx_object *bases = cls->as.cls.bases;
    const size_t n = bases->as.seq.n;
    cfx_object *mro = cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, &cls, 1, err);
    if (!mro)
        return err->status;
    cls->refs--;  /* it does not hold itself */
    for (size_t i = 0; i < n; i++)
        lists[i] = bases->as.seq.items[i]->as.cls.mro;
    lists[n] = cls->as.cls.bases;
    cls->as.cls.mro = mro;
    for (size_t i = 0; n == 1 && i < lists[0]->as.seq.n; i++)  /* nothing to merge */
        CFX_TRY(cfxi_world_list_append(mro, lists[0]->as.seq.items[i], err));
    if (n == 1)
        return CFX_OK;
    for (;;) {
        bool left = false;
        for (size_t i = 0; i <= n; i++)
            left = left || at[i] < lists[i]->as.seq.n;
        if (!left)
            return CFX_OK;
        cfx_object *head = next_head(lists, at, n + 1);
        if (!head)
            return cfxi_world_throw(w, err, CFXI_TypeError, "Cannot create a consistent method "
                                    "resolution order (MRO) for the bases of %s", cls->as.cls.name);
        CFX_TRY(cfxi_world_list_append(mro, head, err));
        for (size_t i = 0; i <= n; i++)
            at[i] += at[i] < lists[i]->as.seq.n && lists[i]->as.seq.items[at[i]] == head;
    }
}

static cfx_object *finish_class(cfxi_world *w, cfx_object *cls, cfx_object *const *bases, size_t n,
                                cfx_error *err)
{
    if (n > MOST_BASES)
        cfxi_world_raise(w, err, CFXI_TypeError, "classes with more than %d bases are "
                         "not supported", MOST_BASES);
    else
        cls->as.cls.bases = cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, bases, n, err);
    if (cls->as.cls.bases && linearise(w, cls, err) == CFX_OK) {
        inherit(cls);
        return cls;
    }
    cfxi_world_unref(cls);
    return NULL;
}

cfx_object *cfxi_world_builtin_class(cfxi_world *w, const char *name, cfx_object *base,
                                     cfxi_type layout, cfxi_builtin_fn *make, cfx_error *err)
{
    cfx_object *cls = new_class(w, name, err);
    cls = cls ? finish_class(w, cls, &base, base != NULL, err) : NULL;
    if (cls) {
        cls->as.cls.layout = (uint8_t)layout;
        cls->as.cls.make = make;
    }
    return cls;
}

cfx_object *cfxi_world_type_class(cfxi_world *w, cfxi_type type, cfx_error *err)
{
    if (type == CFXI_TYPE_VALUE)
        type = CFXI_TYPE_TENSOR;
    if (type == CFXI_TYPE_MODULE)
        return cfxi_world_layer_class(w, CFX_NN_NONE, err);
    if (w->classes[type])
        return cfxi_world_ref(w->classes[type]);
    const bool object = type == CFXI_TYPE_INSTANCE;
    cfx_object *base = object ? NULL
                              : cfxi_world_type_class(w, type == CFXI_TYPE_BOOL ? CFXI_TYPE_INT
                                                                            : CFXI_TYPE_INSTANCE,
                                                      err);
    const char *name = type_names[type];
    cfx_object *cls =
        object || base
            ? cfxi_world_builtin_class(w, name, base, type, cfxi_world_builtin_function(name), err)
            : NULL;
    cfxi_world_unref(base);
    w->classes[type] = cls;
    return cfxi_world_ref(cls);
}

cfx_object *cfxi_world_class_of(cfxi_world *w, const cfx_object *o, cfx_error *err)
{
    if (o->cls)
        return cfxi_world_ref(o->cls);
    return cfxi_world_type_class(w, (cfxi_type)o->type, err);
}

cfx_status cfxi_world_add_method(cfxi_world *w, cfx_object *cls, const char *name,
                                 cfxi_builtin_fn *fn, cfx_error *err)
{
    cfx_object *f = cfxi_world_builtin_object(w, name, fn, CFX_OPID_NONE, err);
    if (f) {
        f->mark = true;  /* it takes its object first */
        f->as.builtin.home = cfxi_world_ref(cls);
    }
    cfx_status status = f ? cfxi_world_dict_put(cls->attrs, name, f, err) : err->status;
    cfxi_world_unref(f);
    return status;
}

cfx_status cfxi_world_add_methods(cfxi_world *w, cfx_object *cls, const cfxi_builtin *rows,
                                  cfx_error *err)
{
    for (; rows->name; rows++)
        if (!cfxi_world_dict_get(cls->attrs, rows->name))
            CFX_TRY(cfxi_world_add_method(w, cls, rows->name, rows->fn, err));
    return CFX_OK;
}

/* ---- classes of the user's ----------------------------------------------------------------- */

/* A class whose base is typing.NamedTuple: its annotations are the fields. */
static cfx_object *typed_tuple(cfxi_world *w, cfx_object *cls, cfx_error *err)
{
    cfx_object *fields = cfxi_world_dict_get(cls->attrs, "__annotations__");
    cfx_object *defaults = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
    cfx_status status = defaults ? CFX_OK : err->status;
    for (size_t i = 0; fields && status == CFX_OK && i < fields->as.seq.n; i++) {
        const char *name = fields->as.seq.items[i]->as.text.data;
        cfx_object *value = cfxi_world_dict_get(cls->attrs, name);
        if (value)
            status = cfxi_world_dict_put(defaults, name, value, err);
        if (value && status == CFX_OK)
            status = cfxi_world_dict_remove(cls->attrs, fields->as.seq.items[i], NULL, err);
    }
    if (status == CFX_OK)
        status = cfxi_world_dict_put(cls->attrs, "_fields", fields ? fields : w->empty, err);
    if (status == CFX_OK)
        status = cfxi_world_dict_put(cls->attrs, "_field_defaults", defaults, err);
    if (status == CFX_OK)
        status = cfxi_world_add_methods(w, cls, cfxi_world_named_methods, err);
    cfxi_world_unref(defaults);
    return status == CFX_OK ? cls : (cfxi_world_unref(cls), (cfx_object *)NULL);
}

static bool is_typed_tuple(const cfx_object *cls)
{
    const cfx_object *bases = cls->as.cls.bases;
    for (size_t i = 0; i < bases->as.seq.n; i++)
        if (strcmp(bases->as.seq.items[i]->as.cls.name, "NamedTuple") == 0)
            return true;
    return false;
}

/* What the class of a class is that has an Enum among its bases; NULL if it has none. Borrowed. */
static cfx_object *meta_of(const cfx_object *cls)
{
    const cfx_object *mro = cls->as.cls.mro;
    for (size_t i = 1; i < mro->as.seq.n; i++)
        if (mro->as.seq.items[i]->cls)
            return mro->as.seq.items[i]->cls;
    return NULL;
}

/* Refuses what a class says and the objects here would not do: they would ignore it. */
static cfx_status check_member(const cfx_object *cls, const char *name, const cfx_object *value,
                               cfx_error *err)
{
    static const char *const hooks[] = {"__new__", "__setattr__", "__delattr__", "__getattribute__",
                                        "__init_subclass__", "__set_name__", "__instancecheck__",
                                        "__subclasscheck__", "__class_getitem__", NULL};
    static const char *const layers[] = {"_conv_forward", "_check_input_dim", "_output_padding",
                                         "reset_parameters", "_reset_parameters",
                                         "reset_running_stats", "check_input", "check_hidden_size",
                                         "check_forward_args", "_fill_padding_idx_with_zero", NULL};
    const bool descriptor = value->type == CFXI_TYPE_INSTANCE && value->cls &&
                            (cfxi_world_class_find(value->cls, "__get__") ||
                             cfxi_world_class_find(value->cls, "__set__"));
    const cfx_nn nn = cls->as.cls.layout == CFXI_TYPE_MODULE ? cls->as.cls.nn : CFX_NN_NONE;
    if (cfxi_world_is_word(name, hooks) && value->type == CFXI_TYPE_FUNCTION)
        return cfx_error_set(err, CFX_E_UNSUPPORTED,
                             "classes with %s are not supported in scripts", name);
    if (descriptor)
        return cfx_error_set(err, CFX_E_UNSUPPORTED,
                             "'%.60s' is a descriptor (__get__, __set__), which scripts do not "
                             "support; use property instead", name);
    if (nn != CFX_NN_NONE && !cfxi_world_is_container(nn) && cfxi_world_is_word(name, layers))
        return cfx_error_set(err, CFX_E_UNSUPPORTED,
                             "a class derived from torch.nn.%s cannot replace %s in a script: the "
                             "layer would not call it; write forward instead",
                             cfxi_ops_nn_name(nn), name);
    return CFX_OK;
}

/* A base that is for type checkers only: Generic[T], Protocol. */
static bool is_marker(const cfx_object *base)
{
    static const char *const names[] = {"typing.Generic", "typing.Protocol",
                                        "typing_extensions.Generic", "typing_extensions.Protocol",
                                        NULL};
    return base->type == CFXI_TYPE_NAMESPACE && cfxi_world_is_word(base->as.text.data, names);
}

cfx_object *cfxi_world_make_class(cfxi_world *w, const char *name, cfx_object *const *bases,
                                  size_t n, const char *const *names, cfx_object *const *values,
                                  size_t m, cfx_error *err)
{
    cfx_object *object = cfxi_world_type_class(w, CFXI_TYPE_INSTANCE, err);
    cfx_object *real[MOST_BASES];
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (bases[i]->type == CFXI_TYPE_CLASS && k < MOST_BASES)
            real[k++] = bases[i];
        else if (!is_marker(bases[i])) {
            cfxi_world_raise(w, err, CFXI_TypeError, "cannot derive a class from %s%s%s",
                             bases[i]->type == CFXI_TYPE_NAMESPACE ? bases[i]->as.text.data
                                                                   : "an object of type '",
                             bases[i]->type == CFXI_TYPE_NAMESPACE ? ""
                                                                   : cfxi_world_type_name(bases[i]),
                             bases[i]->type == CFXI_TYPE_NAMESPACE ? " in a script" : "'");
            cfxi_world_unref(object);
            return NULL;
        }
    }
    if (k == 0)
        real[k++] = object;
    cfx_object *cls = object ? new_class(w, name, err) : NULL;
    cls = cls ? finish_class(w, cls, real, k, err) : NULL;
    cfxi_world_unref(object);
    for (size_t i = 0; cls && i < m; i++)
        if (check_member(cls, names[i], values[i], err) != CFX_OK ||
            cfxi_world_dict_put(cls->attrs, names[i], values[i], err) != CFX_OK)
            cfxi_world_clear(&cls);
    if (!cls)
        return NULL;
    cls->as.cls.own = true;
    cfx_object *meta = meta_of(cls);
    if (meta && cfxi_world_enum_finish(w, cls, meta, err) != CFX_OK)
        cfxi_world_clear(&cls);
    if (meta)
        return cls;
    return is_typed_tuple(cls) ? typed_tuple(w, cls, err) : cls;
}

/* ---- asking classes ------------------------------------------------------------------------ */

bool cfxi_world_is_subclass(const cfx_object *cls, const cfx_object *of)
{
    const cfx_object *mro = cls ? cls->as.cls.mro : NULL;
    for (size_t i = 0; mro && i < mro->as.seq.n; i++)
        if (mro->as.seq.items[i] == of)
            return true;
    return false;
}

int cfxi_world_is_one_of(cfxi_world *w, const cfx_object *cls, cfx_object *classes,
                         const char *function, cfx_error *err)
{
    if (classes->type == CFXI_TYPE_CLASS)
        return cfxi_world_is_subclass(cls, classes);
    if (classes->type == CFXI_TYPE_TUPLE) {
        if (cfxi_world_deeper(w, err) != CFX_OK)
            return -1;
        int answer = 0;
        for (size_t i = 0; answer == 0 && i < classes->as.seq.n; i++)
            answer = cfxi_world_is_one_of(w, cls, classes->as.seq.items[i], function, err);
        w->depth--;
        return answer;
    }
    if (classes->type == CFXI_TYPE_NAMESPACE || classes->type == CFXI_TYPE_BUILTIN)
        return cfxi_world_is_abstract(cls, classes, function, err);
    cfxi_world_raise(w, err, CFXI_TypeError,
                     "%s() arg 2 must be a type, a tuple of types, or a union", function);
    return -1;
}

int cfxi_world_is_instance(cfxi_world *w, cfx_object *o, cfx_object *classes, cfx_error *err)
{
    cfx_object *cls = o->type == CFXI_TYPE_CLASS && classes->type == CFXI_TYPE_CLASS &&
                      !classes->as.cls.own ? cfxi_world_type_class(w, CFXI_TYPE_CLASS, err)
                                           : cfxi_world_class_of(w, o, err);
    const int answer = cls ? cfxi_world_is_one_of(w, cls, classes, "isinstance", err) : -1;
    cfxi_world_unref(cls);
    return answer;
}

cfx_object *cfxi_world_class_find(const cfx_object *cls, const char *name)
{
    const cfx_object *mro = cls->as.cls.mro;
    for (size_t i = 0; mro && i < mro->as.seq.n; i++) {
        const cfx_object *c = mro->as.seq.items[i];
        cfx_object *found = c->attrs ? cfxi_world_dict_get(c->attrs, name) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

const cfx_object *cfxi_world_class_texts(const cfx_object *cls, const char *name)
{
    const cfx_object *found = cls ? cfxi_world_class_find(cls, name) : NULL;
    bool texts = found && found->type == CFXI_TYPE_TUPLE;
    for (size_t i = 0; texts && i < found->as.seq.n; i++)
        texts = found->as.seq.items[i]->type == CFXI_TYPE_STR;
    return texts ? found : NULL;
}

const cfx_object *cfxi_world_named_fields(const cfx_object *cls)
{
    return cls && cls->as.cls.layout == CFXI_TYPE_TUPLE ? cfxi_world_class_texts(cls, "_fields")
                                                        : NULL;
}

/* ---- methods of builtin classes ------------------------------------------------------------ */

/* object.__init__, and that of containers: what the constructor would take. */
CFXI_BUILTIN(object_init)
{
    cfx_status status = CFX_OK;
    if (a->n > 0 && self->type == CFXI_TYPE_LIST) {
        cfx_object *same = cfxi_world_binary(w, CFX_SIGN_ADD, self, a->args[0], true, err);
        cfxi_world_unref(same);
        status = same ? CFX_OK : err->status;
    } else if (a->n > 0 && self->type == CFXI_TYPE_DICT) {
        cfx_object *done =
            cfxi_world_sequence_method(CFXI_TYPE_DICT, "update")->fn(w, self, a, err);
        cfxi_world_unref(done);
        status = done ? CFX_OK : err->status;
    } else if (a->n > 0) {
        status = cfxi_world_throw(w, err, CFXI_TypeError, "%s() takes no arguments",
                                  cfxi_world_type_name(self));
    }
    return cfxi_world_done(w, status);
}

CFXI_BUILTIN(object_setattr)
{
    if (a->n != 2 || a->args[0]->type != CFXI_TYPE_STR)
        return cfxi_world_raise(w, err, CFXI_TypeError, "__setattr__ takes a name and a value");
    return cfxi_world_done(w, cfxi_world_set(w, self, a->args[0]->as.text.data, a->args[1], err));
}

static const cfxi_builtin object_methods[] = {
    {"__init__", object_init}, {"__setattr__", object_setattr}, {NULL, NULL},
};

static const cfxi_builtin *builtin_method(const cfx_object *cls, const char *name)
{
    const cfxi_type layout = (cfxi_type)cls->as.cls.layout;
    const cfxi_builtin *row = cfxi_world_sequence_method(layout, name);
    if (!row)
        row = cfxi_world_text_method(layout, name);
    if (!row && layout == CFXI_TYPE_MODULE)
        row = cfxi_world_layer_method(cls->as.cls.nn, name);
    const bool plain = layout == CFXI_TYPE_INSTANCE || layout == CFXI_TYPE_LIST ||
                       layout == CFXI_TYPE_DICT || layout == CFXI_TYPE_SET;
    return !row && plain ? cfxi_world_row_find(object_methods, name) : row;
}

/* The first class in the order of `cls` that is not a user's class: it has the builtin methods. */
static cfx_object *builtin_base(const cfx_object *cls)
{
    const cfx_object *mro = cls->as.cls.mro;
    for (size_t i = 0; i < mro->as.seq.n; i++) {
        cfx_object *c = mro->as.seq.items[i];
        if (!c->as.cls.own && c->as.cls.layout == cls->as.cls.layout)
            return c;
    }
    return NULL;
}

cfx_status cfxi_world_class_get(cfxi_world *w, cfx_object *cls, const char *name,
                                cfx_object **found, cfx_error *err)
{
    *found = cfxi_world_class_find(cls, name);
    if (*found)
        return CFX_OK;
    const cfxi_builtin *row = builtin_method(cls, name);
    cfx_object *home = row ? builtin_base(cls) : NULL;
    if (!home)
        return CFX_OK;
    CFX_TRY(cfxi_world_add_method(w, home, name, row->fn, err));
    *found = cfxi_world_dict_get(home->attrs, name);
    return CFX_OK;
}
