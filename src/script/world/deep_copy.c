/* deep_copy.c - deep copies of objects. */
#include "world_impl.h"

/* ---- copies -------------------------------------------------------------------------------- */

static cfx_object *copy_module(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    cfx_object *key;
    cfx_object *value;
    cfx_module *m = cfxi_capture_module_copy(o->as.module, err);
    cfx_object *made = m ? cfxi_world_layer_object(w, m, err) : NULL;
    cfx_module_release(m);
    if (!made)
        return NULL;
    cfx_object *cls = made->cls;
    made->cls = cfxi_world_ref(o->cls);
    cfxi_world_unref(cls);
    made->flag = o->flag;
    for (size_t at = 0; made && cfxi_world_dict_next(o->attrs, &at, &key, &value);) {
        cfx_object *copy = cfxi_world_deep_copy(w, value, err);
        if (!copy || cfxi_world_layer_set(w, made, key->as.text.data, copy, err) != CFX_OK)
            cfxi_world_clear(&made);
        cfxi_world_unref(copy);
    }
    for (size_t i = 0; made && i < made->as.module->members.size; i++) {
        const cfxi_member *e = cfxi_capture_member_at(made->as.module, i);
        const bool part = e->kind == CFXI_MEMBER_CHILD || e->value.kind == CFX_DATUM_TENSOR;
        if (!part || cfxi_world_dict_get(made->attrs, e->name))
            continue;
        cfx_object *part_of = cfxi_world_get(w, o, e->name, err);
        cfx_object *copy = part_of ? cfxi_world_deep_copy(w, part_of, err) : NULL;
        if (!copy || cfxi_world_layer_set(w, made, e->name, copy, err) != CFX_OK)
            cfxi_world_clear(&made);
        cfxi_world_unref(copy);
        cfxi_world_unref(part_of);
    }
    return made;
}

static cfx_object *copy_items(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    cfx_object *key;
    cfx_object *value;
    const bool dict = o->type == CFXI_TYPE_DICT;
    cfx_object *made = cfxi_world_object_new(w, (cfxi_type)o->type, err);
    if (made)
        made->cls = cfxi_world_ref(o->cls);
    for (size_t at = 0; made && dict && cfxi_world_dict_next(o, &at, &key, &value);) {
        cfx_object *copy = cfxi_world_deep_copy(w, value, err);
        if (!copy || cfxi_world_dict_set(made, key, copy, err) != CFX_OK)
            cfxi_world_clear(&made);
        cfxi_world_unref(copy);
    }
    for (size_t i = 0; made && !dict && i < o->as.seq.n; i++) {
        cfx_object *copy = cfxi_world_deep_copy(w, o->as.seq.items[i], err);
        if (!copy || cfxi_world_list_append(made, copy, err) != CFX_OK)
            cfxi_world_clear(&made);
        cfxi_world_unref(copy);
    }
    return made;
}

cfx_object *cfxi_world_copy_instance(cfxi_world *w, cfx_object *o, bool deep, cfx_error *err)
{
    /* Of an enum there is one. */
    const bool plain = !o->cls || !o->cls->as.cls.own || o->cls->cls;
    cfx_object *made =
        plain ? cfxi_world_ref(o) : cfxi_world_object_new(w, CFXI_TYPE_INSTANCE, err);
    if (plain || !made)
        return made;
    made->cls = cfxi_world_ref(o->cls);
    if (!o->attrs)
        return made;
    made->attrs = deep ? cfxi_world_deep_copy(w, o->attrs, err)
                       : cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
    if (!made->attrs || (!deep && cfxi_world_dict_update(made->attrs, o->attrs, err) != CFX_OK))
        cfxi_world_clear(&made);
    return made;
}

/* A tensor of the program is cloned now; what the graph computes, or may write to, by the graph. */
static cfx_object *copy_tensor(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    cfx_object *clone = o->type == CFXI_TYPE_VALUE
                            ? cfxi_world_library_function(w, "copy", "_clone") : NULL;
    if (clone)
        return cfxi_world_call_with(w, clone, &o, 1, err);
    const cfx_call_args a = {.args = &o, .n = 1};
    cfx_object *made = cfxi_world_perform(w, CFX_OP_CALL_METHOD, "clone", &a, err);
    if (made && made->type == CFXI_TYPE_TENSOR)
        made->flag = o->flag;
    return made;
}

static cfx_object *copy_object(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    cfx_object *made;
    bool found = false;
    if (cfxi_world_check_known(o, err) != CFX_OK || cfxi_world_deeper(w, err) != CFX_OK)
        return NULL;
    if (o->cls && cfxi_world_class_find(o->cls, "__deepcopy__")) {
        cfx_object *memo = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
        made = memo ? cfxi_world_special(w, o, "__deepcopy__", &memo, 1, &found, err) : NULL;
        cfxi_world_unref(memo);
        w->depth--;
        return made;
    }
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_MODULE: made = copy_module(w, o, err); break;
    case CFXI_TYPE_INSTANCE: made = cfxi_world_copy_instance(w, o, true, err); break;
    case CFXI_TYPE_LIST:
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_DICT: made = copy_items(w, o, err); break;
    case CFXI_TYPE_VALUE:
    case CFXI_TYPE_TENSOR: made = copy_tensor(w, o, err); break;
    default: made = cfxi_world_ref(o); break;
    }
    w->depth--;
    return made;
}

/* What was copied already stands for itself again: a list may hold an object twice. */
cfx_object *cfxi_world_deep_copy(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    const bool first = !w->copying;
    w->copying = true;
    cfx_object *made = cfxi_world_ref(cfxi_base_pointers_get(&w->copies, o));
    if (!made) {
        made = copy_object(w, o, err);
        if (made && !cfxi_base_pointers_set(&w->copies, o, made, w->allocator)) {
            cfxi_base_nomem(err);
            cfxi_world_clear(&made);
        }
    }
    if (first) {
        w->copying = false;
        cfxi_base_pointers_free(&w->copies, w->allocator);
        w->copies = (cfxi_pointers){0};
    }
    return made;
}
