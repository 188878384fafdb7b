/* object_change.c - how objects can change, and which were there before the capture. */
#include "world_impl.h"

#include <stdio.h>

static cfx_script_change change(void *ctx, cfx_object **o)
{
    (void)ctx;
    switch ((cfxi_type)(*o)->type) {
    case CFXI_TYPE_LIST:
    case CFXI_TYPE_DICT:
    case CFXI_TYPE_SET: return CFX_CHANGE_ITEMS;
    case CFXI_TYPE_INSTANCE: return CFX_CHANGE_ATTRIBUTES;
    case CFXI_TYPE_ITERATOR: return CFX_CHANGE_ITERATOR;
    default: return CFX_CHANGE_NEVER;
    }
}

void cfxi_world_freeze(cfxi_world *w)
{
    for (cfx_object *o = w->ring.prev; o != &w->ring && o != w->last; o = o->prev)
        o->outside = true;
}

static bool is_outside(void *ctx, cfx_object *o)
{
    (void)ctx;
    return o->outside;
}

static bool is_new(void *ctx, cfx_object *o)
{
    (void)ctx;
    return o->refs == 1;
}

static bool item_adds(void *ctx, cfx_object *o, cfx_object *key)
{
    cfx_object *found = NULL;
    cfx_error err = {0};
    const bool may = o->type == CFXI_TYPE_DICT && key->type != CFXI_TYPE_VALUE &&
                     (o->attrs || (o->cls && cfxi_world_class_find(o->cls, "__missing__")));
    if (may && cfxi_world_dict_find(o, key, &found, &err) != CFX_OK) {
        cfxi_world_catch(ctx, CFXI_TypeError, &err);  /* what cannot be a key is added nowhere */
        return false;
    }
    return may && !found;
}

static bool call_name(void *ctx, cfx_object *f, char *name, size_t size, cfx_object **self)
{
    (void)ctx;
    while (f->type == CFXI_TYPE_PARTIAL)
        f = f->as.parts.a;
    *self = f->type == CFXI_TYPE_METHOD ? f->as.parts.b : NULL;
    if (f->type == CFXI_TYPE_METHOD)
        f = f->as.parts.a;
    switch ((cfxi_type)f->type) {
    case CFXI_TYPE_BUILTIN:
        if (f->as.builtin.home)
            snprintf(name, size, "%s.%s", f->as.builtin.home->as.cls.name, f->as.builtin.name);
        else
            snprintf(name, size, "%s", f->as.builtin.name);
        return true;
    case CFXI_TYPE_CLASS:
        snprintf(name, size, "builtins.%s", f->as.cls.name);
        return !f->as.cls.own;
    case CFXI_TYPE_MODULE:
    case CFXI_TYPE_ATTRIBUTE:
        snprintf(name, size, "torch.nn");
        return true;
    default: return false;
    }
}

static cfx_object *view_of(void *ctx, cfx_object *o, const char **method)
{
    (void)ctx;
    if (o->type != CFXI_TYPE_LIST || !o->as.seq.of)
        return NULL;
    *method = o->as.seq.part == 'k' ? "keys" : o->as.seq.part == 'v' ? "values" : "items";
    return o->as.seq.of;
}

void cfxi_world_change_entries(cfx_world *table)
{
    table->view_of = view_of;
    table->change = change;
    table->is_outside = is_outside;
    table->is_new = is_new;
    table->item_adds = item_adds;
    table->call_name = call_name;
}
