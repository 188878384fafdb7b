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

cfx_object *cfxi_world_deep_copy(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    cfx_object *made;
    if (cfxi_world_deeper(w, err) != CFX_OK)
        return NULL;
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_MODULE: made = copy_module(w, o, err); break;
    case CFXI_TYPE_INSTANCE: made = cfxi_world_copy_instance(w, o, true, err); break;
    case CFXI_TYPE_LIST:
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_DICT: made = copy_items(w, o, err); break;
    case CFXI_TYPE_TENSOR:
        made = cfxi_world_compute(w, CFX_OP_CALL_METHOD, "clone",
                                  &(cfx_call_args){.args = &o, .n = 1}, err);
        if (made)
            made->flag = o->flag;
        break;
    default: made = cfxi_world_ref(o); break;
    }
    w->depth--;
    return made;
}
