/* enum.c - enum.Enum, IntEnum and StrEnum: a class whose attributes are its members.
 *
 * What one does with such a class (iterate, len, C["RED"], C("red")) are methods of its own class,
 * as in Python: `EnumType`, which is the `cls` of the class, and of those derived from it.
 */
#include "world_impl.h"

static const char members_name[] = "__members__";

CFXI_BUILTIN(make_auto)
{
    cfx_object *o = cfxi_world_object_new(w, CFXI_TYPE_INSTANCE, err);
    if (o)
        o->flag = true;  /* it is one */
    return o;
}

/* ---- what a member does -------------------------------------------------------------------- */

static const char *word_of(const cfx_object *member, const char *attribute)
{
    const cfx_object *text = member->attrs ? cfxi_world_dict_get(member->attrs, attribute) : NULL;
    return text && text->type == CFXI_TYPE_STR ? text->as.text.data : "";
}

/* "Color.RED", or "<Color.RED: 1>". */
static cfx_object *shown(cfxi_world *w, cfx_object *self, bool whole, cfx_error *err)
{
    cfx_buffer text;
    cfx_object *value = cfxi_world_dict_get(self->attrs, "value");
    const char *const parts[] = {whole ? "<" : "", cfxi_world_type_name(self), ".",
                                 word_of(self, "name"), whole ? ": " : ""};
    cfx_status status = CFX_OK;
    cfx_buffer_init(&text, w->allocator);
    for (size_t i = 0; status == CFX_OK && i < sizeof parts / sizeof *parts; i++)
        status = cfxi_world_put(&text, parts[i], err);
    if (status == CFX_OK && whole)
        status = cfxi_world_repr(w, value, &text, err);
    if (status == CFX_OK && whole)
        status = cfxi_world_put(&text, ">", err);
    return cfxi_world_text_made(w, status, &text, err);
}

CFXI_BUILTIN(member_repr) { return shown(w, self, true, err); }
CFXI_BUILTIN(member_str) { return shown(w, self, false, err); }

/* IntEnum and StrEnum show what they are worth. */
CFXI_BUILTIN(value_str)
{
    cfx_buffer text;
    cfx_buffer_init(&text, w->allocator);
    return cfxi_world_text_made(
        w, cfxi_world_show(w, cfxi_world_dict_get(self->attrs, "value"), &text, err), &text, err);
}

/* ---- what the class does ------------------------------------------------------------------- */

/* The members, each once: a second name for a member is an alias. */
static cfx_object *all_members(cfxi_world *w, cfx_object *cls, cfx_error *err)
{
    cfx_object *list = cfxi_world_seq_object(w, CFXI_TYPE_LIST, NULL, 0, err);
    const cfx_object *members = cfxi_world_dict_get(cls->attrs, members_name);
    cfx_object *name;
    cfx_object *member;
    for (size_t at = 0; list && members && cfxi_world_dict_next(members, &at, &name, &member);)
        if (strcmp(word_of(member, "name"), name->as.text.data) == 0 &&
            cfxi_world_list_append(list, member, err) != CFX_OK)
            cfxi_world_clear(&list);
    return list;
}

CFXI_BUILTIN(class_iter)
{
    cfx_object *list = all_members(w, self, err);
    cfx_object *made = list ? cfxi_world_iterate(w, list, err) : NULL;
    cfxi_world_unref(list);
    return made;
}

CFXI_BUILTIN(class_len)
{
    cfx_object *list = all_members(w, self, err);
    cfx_object *made = list ? cfxi_world_int_object(w, (int64_t)list->as.seq.n, err) : NULL;
    cfxi_world_unref(list);
    return made;
}

CFXI_BUILTIN(class_item)
{
    cfx_object *members = cfxi_world_dict_get(self->attrs, members_name);
    return members ? cfxi_world_item(w, members, a->args[0], err) : cfxi_world_ref(self);
}

CFXI_BUILTIN(class_repr)
{
    cfx_buffer text;
    cfx_buffer_init(&text, w->allocator);
    cfx_status status = cfxi_world_put(&text, "<enum '", err);
    if (status == CFX_OK)
        status = cfxi_world_put(&text, self->as.cls.name, err);
    if (status == CFX_OK)
        status = cfxi_world_put(&text, "'>", err);
    return cfxi_world_text_made(w, status, &text, err);
}

/* The member of a value: borrowed; NULL without an error if there is none. */
static cfx_object *find_value(cfxi_world *w, cfx_object *cls, cfx_object *value, cfx_error *err)
{
    const cfx_object *members = cfxi_world_dict_get(cls->attrs, members_name);
    cfx_object *name;
    cfx_object *member;
    err->status = CFX_OK;
    for (size_t at = 0; members && cfxi_world_dict_next(members, &at, &name, &member);) {
        cfx_object *worth = cfxi_world_dict_get(member->attrs, "value");
        const int same = member == value ? 1 : cfxi_world_equal(w, worth, value, err);
        if (same != 0)
            return same > 0 ? member : NULL;
    }
    return NULL;
}

CFXI_BUILTIN(class_contains)
{
    cfx_object *found = find_value(w, self, a->args[0], err);
    return found || err->status == CFX_OK ? cfxi_world_truth_object(w, found == a->args[0]) : NULL;
}

CFXI_BUILTIN(class_call)
{
    cfx_object *in[1];
    cfx_buffer text;
    if (cfxi_world_args(w, a, self->as.cls.name, NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    cfx_object *found = find_value(w, self, in[0], err);
    if (found || err->status != CFX_OK)
        return cfxi_world_ref(found);
    cfx_buffer_init(&text, w->allocator);
    if (cfxi_world_repr(w, in[0], &text, err) == CFX_OK)
        cfxi_world_raise(w, err, CFXI_ValueError, "%.100s is not a valid %s", text.data,
                         self->as.cls.name);
    cfx_buffer_free(&text);
    return NULL;
}

/* ---- making the classes -------------------------------------------------------------------- */

static cfx_object *make_enum(cfxi_world *w, cfx_error *err)
{
    static const cfxi_builtin of_class[] = {
        {"__iter__", class_iter}, {"__len__", class_len}, {"__getitem__", class_item},
        {"__contains__", class_contains}, {"__call__", class_call}, {"__repr__", class_repr},
        {NULL, NULL}};
    static const cfxi_builtin of_member[] = {
        {"__repr__", member_repr}, {"__str__", member_str}, {NULL, NULL}};
    cfx_object *object = cfxi_world_type_class(w, CFXI_TYPE_INSTANCE, err);
    cfx_object *cls = object ? cfxi_world_builtin_class(w, "Enum", object, CFXI_TYPE_INSTANCE, NULL,
                                                        err) : NULL;
    cfx_object *meta = cls ? cfxi_world_builtin_class(w, "EnumType", object, CFXI_TYPE_CLASS, NULL,
                                                      err) : NULL;
    cfxi_world_unref(object);
    if (!meta || cfxi_world_add_methods(w, meta, of_class, err) != CFX_OK ||
        cfxi_world_add_methods(w, cls, of_member, err) != CFX_OK) {
        cfxi_world_unref(meta);
        cfxi_world_unref(cls);
        return NULL;
    }
    cls->cls = meta;
    return cls;
}

/* IntEnum and StrEnum. */
static cfx_object *make_mixed(cfxi_world *w, const char *name, cfxi_type type, cfx_error *err)
{
    static const cfxi_builtin of_member[] = {{"__str__", value_str}, {NULL, NULL}};
    cfx_object *space = cfxi_world_namespace(w, "enum", err);
    cfx_object *both[] = {
        space ? cfxi_world_type_class(w, type, err) : NULL,
        space ? cfxi_world_namespace_get(w, space, "Enum", err) : NULL};
    cfx_object *cls = both[0] && both[1]
                          ? cfxi_world_make_class(w, name, both, 2, NULL, NULL, 0, err) : NULL;
    if (cls)
        cls->as.cls.own = false;
    if (cls && cfxi_world_add_methods(w, cls, of_member, err) != CFX_OK)
        cfxi_world_clear(&cls);
    cfxi_world_unref(both[0]);
    cfxi_world_unref(both[1]);
    cfxi_world_unref(space);
    return cls;
}

cfx_object *cfxi_world_enum_get(cfxi_world *w, const char *name, cfx_error *err)
{
    if (strcmp(name, "Enum") == 0)
        return make_enum(w, err);
    if (strcmp(name, "IntEnum") == 0)
        return make_mixed(w, name, CFXI_TYPE_INT, err);
    if (strcmp(name, "StrEnum") == 0)
        return make_mixed(w, name, CFXI_TYPE_STR, err);
    return strcmp(name, "auto") == 0
               ? cfxi_world_builtin_object(w, "enum.auto", make_auto, CFX_OPID_NONE, err) : NULL;
}

/* ---- a class of the user's ----------------------------------------------------------------- */

/* What auto() stands for: the number behind the last, or the name of a StrEnum in small letters. */
static cfx_object *next_value(cfxi_world *w, const cfx_object *cls, cfx_object *name, int64_t last,
                              cfx_error *err)
{
    static const cfx_call_args none = {0};
    if (cfxi_world_is_named(cls, "StrEnum"))
        return cfxi_world_text_method(CFXI_TYPE_STR, "lower")->fn(w, name, &none, err);
    cfx_object *number = cfxi_world_int_object(w, last + 1, err);
    if (!number || cls->as.cls.layout != CFXI_TYPE_STR)
        return number;
    cfx_object *text = cfxi_world_shown(w, number, false, err);  /* of a class(str, Enum) */
    cfxi_world_unref(number);
    return text;
}

/* An object of the class's layout that is worth `value`. */
static cfx_object *bare_member(cfxi_world *w, const cfx_object *cls, cfx_object *value,
                               cfx_error *err)
{
    const cfxi_type layout = (cfxi_type)cls->as.cls.layout;
    if (layout == CFXI_TYPE_STR && value->type == CFXI_TYPE_STR)
        return cfxi_world_text_object(w, CFXI_TYPE_STR, value->as.text.data, value->as.text.size,
                                      err);
    if (layout != CFXI_TYPE_INSTANCE && !(layout == CFXI_TYPE_INT && cfxi_world_is_whole(value)))
        return cfxi_world_raise(w, err, CFXI_TypeError,
                                "a member of enum '%s' cannot have a '%s' value here",
                                cls->as.cls.name, cfxi_world_type_name(value));
    cfx_object *o = cfxi_world_object_new(w, layout, err);
    if (o && layout == CFXI_TYPE_INT)
        o->as.i = cfxi_world_whole(value);
    return o;
}

static cfx_object *new_member(cfxi_world *w, cfx_object *cls, cfx_object *name, cfx_object *value,
                              cfx_error *err)
{
    static const char *const names[] = {"name", "_name_", "value", "_value_"};
    cfx_object *o = bare_member(w, cls, value, err);
    cfx_status status = o ? CFX_OK : err->status;
    if (o) {
        o->cls = cfxi_world_ref(cls);
        o->attrs = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
        status = o->attrs ? CFX_OK : err->status;
    }
    for (size_t i = 0; status == CFX_OK && i < 4; i++)
        status = cfxi_world_dict_put(o->attrs, names[i], i < 2 ? name : value, err);
    const cfx_object *init = status == CFX_OK ? cfxi_world_class_find(cls, "__init__") : NULL;
    if (init && init->type == CFXI_TYPE_FUNCTION) {  /* EARTH = (5.97e24, 6.37e6) */
        const bool many = value->type == CFXI_TYPE_TUPLE;
        bool found;
        cfx_object *none = cfxi_world_special(w, o, "__init__", many ? value->as.seq.items : &value,
                                              many ? value->as.seq.n : 1, &found, err);
        status = none ? CFX_OK : err->status;
        cfxi_world_unref(none);
    }
    if (status != CFX_OK)
        cfxi_world_clear(&o);
    return o;
}

static bool is_member(const cfx_object *name, const cfx_object *value)
{
    const char *text = name->as.text.data;
    const size_t n = name->as.text.size;
    if (n == 0 || (text[0] == '_' && text[n - 1] == '_'))
        return false;
    return value->type != CFXI_TYPE_FUNCTION && value->type != CFXI_TYPE_PROPERTY &&
           value->type != CFXI_TYPE_STATIC_METHOD && value->type != CFXI_TYPE_CLASS_METHOD;
}

/* One attribute becomes a member, or a second name of one. *last: the last number. */
static cfx_status add_member(cfxi_world *w, cfx_object *cls, cfx_object *name, cfx_object *given,
                             int64_t *last, cfx_error *err)
{
    const bool next = given->type == CFXI_TYPE_INSTANCE && given->flag;
    cfx_object *value = next ? next_value(w, cls, name, *last, err) : cfxi_world_ref(given);
    cfx_object *found = value ? cfxi_world_ref(find_value(w, cls, value, err)) : NULL;
    cfx_object *member = found || !value || err->status != CFX_OK
                             ? found : new_member(w, cls, name, value, err);
    if (value && cfxi_world_is_whole(value))
        *last = cfxi_world_whole(value);
    cfx_status status = member ? cfxi_world_dict_set(cls->attrs, name, member, err) : err->status;
    if (status == CFX_OK)
        status =
            cfxi_world_dict_set(cfxi_world_dict_get(cls->attrs, members_name), name, member, err);
    cfxi_world_unref(member);
    cfxi_world_unref(value);
    return status;
}

cfx_status cfxi_world_enum_finish(cfxi_world *w, cfx_object *cls, cfx_object *meta, cfx_error *err)
{
    cfx_object *members = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
    cfx_object *names = members ? cfxi_world_collect(w, CFXI_TYPE_LIST, cls->attrs, err) : NULL;
    cfx_status status = names ? cfxi_world_dict_put(cls->attrs, members_name, members, err)
                              : err->status;
    int64_t last = 0;
    cls->cls = cfxi_world_ref(meta);
    for (size_t i = 0; status == CFX_OK && i < names->as.seq.n; i++) {
        cfx_object *name = names->as.seq.items[i];
        cfx_object *value = cfxi_world_dict_get(cls->attrs, name->as.text.data);
        if (is_member(name, value))
            status = add_member(w, cls, name, value, &last, err);
    }
    cfxi_world_unref(names);
    cfxi_world_unref(members);
    return status;
}
