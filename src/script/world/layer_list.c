/* layer_list.c - the children of modules, and the containers of torch.nn. */
#include "world_impl.h"

bool cfxi_world_is_named(const cfx_object *cls, const char *name)
{
    const cfx_object *mro = cls->as.cls.mro;
    for (size_t i = 0; i < mro->as.seq.n; i++)
        if (!mro->as.seq.items[i]->as.cls.own &&
            strcmp(mro->as.seq.items[i]->as.cls.name, name) == 0)
            return true;
    return false;
}

bool cfxi_world_holds_parameters(const cfx_object *cls)
{
    return cfxi_world_is_named(cls, "ParameterList") || cfxi_world_is_named(cls, "ParameterDict");
}

/* ---- children ------------------------------------------------------------------------------ */

/* A child, or one of a ParameterList or ParameterDict. */
static bool is_item(const cfx_object *o, const cfxi_member *e)
{
    return e->kind == CFXI_MEMBER_CHILD ||
           (e->kind == CFXI_MEMBER_PARAMETER && o->as.module->nn == CFX_NN_NONE &&
            cfxi_world_holds_parameters(o->cls));
}

int64_t cfxi_world_layer_length(const cfx_object *o)
{
    const cfx_module *m = o->as.module;
    int64_t n = 0;
    if (!cfxi_world_is_container(m->nn) && !cfxi_world_holds_parameters(o->cls))
        return -1;
    for (size_t i = 0; i < m->members.size; i++)
        n += is_item(o, cfxi_capture_member_at(m, i));
    return n;
}

cfx_object *cfxi_world_layer_list(cfxi_world *w, cfx_object *o, char what, bool once,
                                  cfx_error *err)
{
    cfx_object *list = cfxi_world_seq_object(w, CFXI_TYPE_LIST, NULL, 0, err);
    const cfx_module *m = o->as.module;
    cfxi_pointers seen = {0};
    for (size_t i = 0; list && i < m->members.size; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        if (!is_item(o, e) || (once && e->child && cfxi_base_pointers_get(&seen, e->child)))
            continue;
        if (once && e->child && !cfxi_base_pointers_set(&seen, e->child, e->child, w->allocator)) {
            cfxi_base_nomem(err);
            cfxi_world_clear(&list);
            break;
        }
        cfx_object *found = what == 'k' ? NULL : cfxi_world_get(w, o, e->name, err);
        cfx_object *name = what == 'c' ? NULL : cfxi_world_str(w, e->name, err);
        cfx_object *both[] = {name, found};
        cfx_object *row = what == 'c' ? cfxi_world_ref(found) : what == 'k' ? cfxi_world_ref(name)
                          : name && found ? cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, both, 2, err)
                                          : NULL;
        if (!row || cfxi_world_list_append(list, row, err) != CFX_OK)
            cfxi_world_clear(&list);
        cfxi_world_unref(row);
        cfxi_world_unref(name);
        cfxi_world_unref(found);
    }
    cfxi_base_pointers_free(&seen, w->allocator);
    return list;
}

cfx_object *cfxi_world_layer_children(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    if (o->as.module->nn == CFX_NN_NONE && !cfxi_world_holds_parameters(o->cls))
        return cfxi_world_raise(w, err, CFXI_TypeError, "'%s' object is not iterable",
                                cfxi_world_type_name(o));
    const bool keys = o->as.module->nn == CFX_NN_ModuleDict ||
                      cfxi_world_is_named(o->cls, "ParameterDict");
    return cfxi_world_layer_list(w, o, keys ? 'k' : 'c', false, err);
}

/* ---- containers ---------------------------------------------------------------------------- */

/* A new container of that kind with the items of `list`. */
static cfx_object *like(cfxi_world *w, const cfx_object *o, cfx_object *list, cfx_error *err)
{
    const cfx_call_args none = {0};
    cfx_object *cls = cfxi_world_layer_class(w, o->as.module->nn, err);
    cfx_object *made = cls ? cfxi_world_make(w, cls, err) : NULL;
    if (made) {
        made->flag = true;
        if (cfxi_world_layer_adopt(w, made, o->as.module->nn, &none, err) != CFX_OK ||
            cfxi_world_layer_add_all(w, made, list, 0, err) != CFX_OK)
            cfxi_world_clear(&made);
    }
    cfxi_world_unref(cls);
    return made;
}

static cfx_object *sliced(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_error *err)
{
    cfx_object *list = cfxi_world_layer_list(w, o, 'c', false, err);
    cfx_object *part = list ? cfxi_world_item(w, list, key, err) : NULL;
    cfx_object *made = part ? like(w, o, part, err) : NULL;
    cfxi_world_unref(part);
    cfxi_world_unref(list);
    return made;
}

static cfx_object *item_at(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_error *err)
{
    const cfx_module *m = o->as.module;
    int64_t at;
    if (cfxi_world_place_of(w, o, key, cfxi_world_layer_length(o), &at, err) != CFX_OK)
        return NULL;
    size_t i = 0;
    while (!is_item(o, cfxi_capture_member_at(m, i)) || at-- > 0)
        i++;
    return cfxi_world_get(w, o, cfxi_capture_member_at(m, i)->name, err);
}

static bool is_list(const cfx_object *o)
{
    const cfx_nn nn = o->as.module->nn;
    return nn == CFX_NN_Sequential || nn == CFX_NN_ModuleList ||
           cfxi_world_is_named(o->cls, "ParameterList");
}

cfx_object *cfxi_world_layer_item(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_error *err)
{
    const cfx_nn nn = o->as.module->nn;
    const bool list = is_list(o);
    if (list && key->type == CFXI_TYPE_SLICE && nn != CFX_NN_NONE)
        return sliced(w, o, key, err);
    if (list)
        return item_at(w, o, key, err);
    if (key->type == CFXI_TYPE_STR && (nn == CFX_NN_ModuleDict ||
                                       cfxi_world_is_named(o->cls, "ParameterDict"))) {
        cfx_object *made =
            cfxi_capture_module_find(o->as.module, key->as.text.data, key->as.text.size)
                ? cfxi_world_get(w, o, key->as.text.data, err)
                : NULL;
        return made || err->status != CFX_OK
                   ? made : (cfxi_world_throw_key(w, key, err), (cfx_object *)NULL);
    }
    return cfxi_world_raise(w, err, CFXI_TypeError, "'%s' object is not subscriptable with '%s'",
                            cfxi_world_type_name(o), cfxi_world_type_name(key));
}

/* The items of a list of modules are those of the other list now, by their new numbers. */
static cfx_status refill(cfxi_world *w, cfx_object *o, cfx_object *list, cfx_error *err)
{
    cfx_object *names = cfxi_world_layer_list(w, o, 'k', false, err);
    cfx_status status = names ? CFX_OK : err->status;
    for (size_t i = 0; status == CFX_OK && i < names->as.seq.n; i++)
        status = cfxi_world_layer_set(w, o, names->as.seq.items[i]->as.text.data, NULL, err);
    cfxi_world_unref(names);
    return status == CFX_OK ? cfxi_world_layer_add_all(w, o, list, 0, err) : status;
}

cfx_status cfxi_world_layer_set_item(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_object *v,
                                     cfx_error *err)
{
    CFX_TRY(cfxi_world_layer_check(w, o, err));
    if (!is_list(o) && key->type == CFXI_TYPE_STR && cfxi_world_layer_length(o) >= 0) {
        if (!v && !cfxi_capture_module_find(o->as.module, key->as.text.data, key->as.text.size))
            return cfxi_world_throw_key(w, key, err);
        return cfxi_world_layer_set(w, o, key->as.text.data, v, err);
    }
    if (!is_list(o))
        return cfxi_world_throw(w, err, CFXI_TypeError, "'%s' object does not support item %s",
                                cfxi_world_type_name(o), v ? "assignment" : "deletion");
    cfx_object *list = cfxi_world_layer_list(w, o, 'c', false, err);
    cfx_status status = list ? cfxi_world_set_item(w, list, key, v, err) : err->status;
    if (status == CFX_OK)
        status = refill(w, o, list, err);
    cfxi_world_unref(list);
    return status;
}

/* What the method of a list gives, which changes the list of modules as that would change. */
static cfx_object *as_list(cfxi_world *w, cfx_object *o, const char *method, const cfx_call_args *a,
                           cfx_error *err)
{
    if (cfxi_world_layer_check(w, o, err) != CFX_OK)
        return NULL;
    cfx_object *list = cfxi_world_layer_list(w, o, 'c', false, err);
    cfx_object *bound = list ? cfxi_world_get(w, list, method, err) : NULL;
    cfx_object *made = bound ? cfxi_world_call_object(w, bound, *a, err) : NULL;
    if (made && refill(w, o, list, err) != CFX_OK)
        cfxi_world_clear(&made);
    cfxi_world_unref(bound);
    cfxi_world_unref(list);
    return made;
}

CFXI_BUILTIN(insert)
{
    cfx_object *made = as_list(w, self, "insert", a, err);
    if (!made || self->as.module->nn != CFX_NN_Sequential)
        return made;
    cfxi_world_unref(made);
    return cfxi_world_ref(self);
}

CFXI_BUILTIN(pop)
{
    static const char *const names[] = {"key"};
    cfx_object *in[1];
    if (cfxi_world_args(w, a, "pop", names, 1, 1, in, err) != CFX_OK)
        return NULL;
    if (is_list(self))
        return as_list(w, self, "pop", &(cfx_call_args){.args = in, .n = 1}, err);
    cfx_object *found = cfxi_world_layer_item(w, self, in[0], err);
    if (found && cfxi_world_layer_set_item(w, self, in[0], NULL, err) != CFX_OK)
        cfxi_world_clear(&found);
    return found;
}

CFXI_BUILTIN(append)
{
    const size_t n = (size_t)cfxi_world_layer_length(self);
    cfx_object *in[1];
    if (cfxi_world_args(w, a, "append", NULL, 1, 1, in, err) != CFX_OK ||
        cfxi_world_layer_add_at(w, self, n, in[0], err) != CFX_OK)
        return NULL;
    return cfxi_world_ref(self);
}

CFXI_BUILTIN(extend)
{
    const size_t n = (size_t)cfxi_world_layer_length(self);
    cfx_object *in[1];
    if (cfxi_world_args(w, a, "extend", NULL, 1, 1, in, err) != CFX_OK ||
        cfxi_world_layer_add_all(w, self, in[0], n, err) != CFX_OK)
        return NULL;
    return cfxi_world_ref(self);
}

cfx_object *cfxi_world_layer_plus(cfxi_world *w, cfx_object *a, cfx_object *b, bool in_place,
                                  cfx_error *err)
{
    const cfx_call_args more = {.args = &b, .n = 1};
    if (!is_list(a) || (!in_place && a->as.module->nn == CFX_NN_NONE))
        return NULL;
    cfx_object *to = in_place ? cfxi_world_ref(a) : like(w, a, a, err);
    cfx_object *made = to ? extend(w, to, &more, err) : NULL;
    cfxi_world_unref(to);
    return made;
}

CFXI_BUILTIN(update)
{
    cfx_object *in[1];
    return cfxi_world_args(w, a, "update", NULL, 1, 1, in, err) == CFX_OK
               ? cfxi_world_done(w, cfxi_world_layer_add_all(w, self, in[0], 0, err)) : NULL;
}

CFXI_BUILTIN(children) { return cfxi_world_layer_list(w, self, 'c', true, err); }
CFXI_BUILTIN(named_children) { return cfxi_world_layer_list(w, self, 'n', true, err); }
CFXI_BUILTIN(keys) { return cfxi_world_layer_list(w, self, 'k', false, err); }
CFXI_BUILTIN(values) { return cfxi_world_layer_list(w, self, 'c', false, err); }
CFXI_BUILTIN(items) { return cfxi_world_layer_list(w, self, 'n', false, err); }

static const cfxi_builtin container_methods[] = {
    {"append", append}, {"extend", extend}, {"insert", insert}, {"pop", pop},
    {"update", update}, {"keys", keys},
    {"values", values}, {"items", items}, {NULL, NULL},
};

const cfxi_builtin *cfxi_world_list_method(cfx_nn nn, const char *name)
{
    static const cfxi_builtin methods[] = {  /* of every module */
        {"children", children}, {"named_children", named_children}, {NULL, NULL}};
    const cfxi_builtin *row = cfxi_world_row_find(methods, name);
    return row || !cfxi_world_is_container(nn) ? row : cfxi_world_row_find(container_methods, name);
}

cfx_object *cfxi_world_parameter_class(cfxi_world *w, const char *name, cfx_error *err)
{
    cfx_object *base = cfxi_world_layer_class(w, CFX_NN_NONE, err);
    cfx_object *cls = base ? cfxi_world_builtin_class(w, name, base, CFXI_TYPE_MODULE, NULL, err)
                           : NULL;
    cfxi_world_unref(base);
    if (cls && cfxi_world_add_methods(w, cls, container_methods, err) != CFX_OK)
        cfxi_world_clear(&cls);
    return cls;
}
