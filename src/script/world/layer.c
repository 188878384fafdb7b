/* layer.c - nn.Module: a module of capture.h behind each object; attributes, children, parameters.
 *
 * What is a module or a tensor is a member of the cfx_module; the object that the program set is in
 * `attrs`, too, so that it is the same one when it is read. Everything else is in `attrs` alone.
 */
#include "world_impl.h"

#include <cfx/layers.h>

#include <stdio.h>

/* ---- classes and objects ------------------------------------------------------------------- */

cfx_object *cfxi_world_layer_class(cfxi_world *w, cfx_nn nn, cfx_error *err)
{
    char key[64];
    if (nn == CFX_NN_NONE && w->classes[CFXI_TYPE_MODULE])
        return cfxi_world_ref(w->classes[CFXI_TYPE_MODULE]);
    snprintf(key, sizeof key, "torch.nn.%s", nn ? cfxi_ops_nn_name(nn) : "Module");
    cfx_object *cls = cfxi_world_dict_get(w->builtins, key);
    if (cls)
        return cfxi_world_ref(cls);
    cfx_object *base = nn ? cfxi_world_layer_class(w, CFX_NN_NONE, err)
                          : cfxi_world_type_class(w, CFXI_TYPE_INSTANCE, err);
    cls = base ? cfxi_world_builtin_class(w, key + 9, base, CFXI_TYPE_MODULE, NULL, err) : NULL;
    cfxi_world_unref(base);
    if (!cls)
        return NULL;
    cls->as.cls.nn = nn;
    if (nn == CFX_NN_NONE) {
        w->classes[CFXI_TYPE_MODULE] = cls;
        return cfxi_world_ref(cls);
    }
    if (cfxi_world_dict_put(w->builtins, key, cls, err) != CFX_OK)
        cfxi_world_clear(&cls);
    return cls;
}

cfx_object *cfxi_world_layer_object(cfxi_world *w, cfx_module *m, cfx_error *err)
{
    cfx_object *cls = cfxi_world_layer_class(w, m->nn, err);
    cfx_object *o = cls ? cfxi_world_object_new(w, CFXI_TYPE_MODULE, err) : NULL;
    if (o) {
        o->cls = cfxi_world_ref(cls);
        o->as.module = cfx_module_retain(m);
        o->attrs = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
        o->flag = m->nn != CFX_NN_NONE;
        if (!o->attrs)
            cfxi_world_clear(&o);
    }
    cfxi_world_unref(cls);
    return o;
}

cfx_status cfxi_world_scope_failed(cfxi_world *w, cfx_error *err)
{
    const cfx_error why = *cfx_scope_error(w->scope);
    cfx_scope_clear_error(w->scope);
    return cfxi_world_throw_error(w, &why, err);
}

/* ---- attributes ---------------------------------------------------------------------------- */

/* A member that no object stands for yet; NULL without an error if there is none. */
cfx_object *cfxi_world_layer_get(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err)
{
    cfx_module *m = o->as.module;
    if (strcmp(name, "training") == 0)
        return cfxi_world_truth_object(w, m->training);
    const cfxi_member *e = cfxi_capture_module_find(m, name, strlen(name));
    if (!e)
        return NULL;
    cfx_object *made = e->kind == CFXI_MEMBER_CHILD ? cfxi_world_layer_object(w, e->child, err)
                                                    : cfxi_world_from_datum(w, e->value, err);
    if (!made)
        return NULL;
    if (made->type == CFXI_TYPE_TENSOR)
        made->flag = e->kind == CFXI_MEMBER_PARAMETER;
    const bool keep = made->type == CFXI_TYPE_TENSOR || made->type == CFXI_TYPE_MODULE;
    if (keep && cfxi_world_dict_put(o->attrs, name, made, err) != CFX_OK)
        cfxi_world_clear(&made);
    return made;
}

cfx_status cfxi_world_layer_put(cfxi_world *w, cfx_object *o, const char *name, cfx_object *v,
                                cfxi_member_kind kind, cfx_error *err)
{
    const bool child = v->type == CFXI_TYPE_MODULE;
    cfx_error why = {0};
    cfx_datum d = child ? cfx_datum_invalid() : cfxi_world_to_datum(w, v, err);
    if (!child && d.kind == CFX_DATUM_INVALID)
        return err->status;
    if (child) {  /* of which it may not be a part itself */
        const cfxi_member *old = cfxi_capture_module_find(o->as.module, name, strlen(name));
        if (old && old->kind != CFXI_MEMBER_CHILD)
            cfxi_capture_module_drop(o->as.module, name, strlen(name));
    }
    cfx_status status = cfxi_capture_module_put(o->as.module, name, strlen(name),
                                                child ? CFXI_MEMBER_CHILD : kind,
                                                child ? v->as.module : NULL, d, &why);
    cfx_datum_release(d);
    return status == CFX_OK ? CFX_OK : cfxi_world_throw_error(w, &why, err);
}

/* Whether one module is, or contains, another. */
static cfx_status is_module(void *ctx, cfx_module *m, const char *path, cfx_error *err)
{
    (void)path;
    (void)err;
    return m == ctx ? CFX_E_VALUE : CFX_OK;
}

static cfx_status put_child(cfxi_world *w, cfx_object *o, const char *name, cfx_object *v,
                            cfx_error *err)
{
    cfx_error why = {0};
    const cfx_status status = cfxi_capture_module_each(v->as.module, is_module, o->as.module, &why);
    if (status == CFX_E_VALUE)
        return cfxi_world_throw(w, err, CFXI_ValueError, "cannot assign '%s': the module would "
                                "contain itself", name);
    if (status != CFX_OK)
        return cfxi_world_throw_error(w, &why, err);
    return cfxi_world_layer_put(w, o, name, v, CFXI_MEMBER_CHILD, err);
}

/* A plain value in the place of a member: of torch.nn's own attributes it is the new value, and a
 * module or a tensor goes. */
static cfx_status replace_member(cfxi_world *w, cfx_object *o, const char *name, cfx_object *v,
                                 cfx_error *err)
{
    const size_t size = strlen(name);
    const cfxi_member *e = cfxi_capture_module_find(o->as.module, name, size);
    if (!e)
        return CFX_OK;
    const bool tensor = e->kind == CFXI_MEMBER_PARAMETER || e->kind == CFXI_MEMBER_BUFFER;
    if (v && (e->kind == CFXI_MEMBER_ATTRIBUTE || (tensor && v->type == CFXI_TYPE_NONE)))
        return cfxi_world_layer_put(w, o, name, v, e->kind, err);
    cfxi_capture_module_drop(o->as.module, name, size);
    return CFX_OK;
}

static cfx_status forget(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err)
{
    const bool member = cfxi_capture_module_drop(o->as.module, name, strlen(name));
    bool there;
    CFX_TRY(cfxi_world_dict_drop(o->attrs, name, &there, err));
    if (!there && !member)
        cfxi_world_no_attribute(w, o, name, err);
    return there || member ? CFX_OK : err->status;
}

cfx_status cfxi_world_layer_set(cfxi_world *w, cfx_object *o, const char *name, cfx_object *v,
                                cfx_error *err)
{
    const size_t size = strlen(name);
    o->changed = o->changed || w->recording;
    if (!v)
        return forget(w, o, name, err);
    const bool part = v->type == CFXI_TYPE_MODULE || (v->type == CFXI_TYPE_TENSOR && v->flag);
    if (part && !o->flag)
        return cfxi_world_throw(w, err, CFXI_AttributeError, "cannot assign %s before "
                                "Module.__init__() call", v->type == CFXI_TYPE_MODULE ? "module"
                                                                                  : "parameters");
    if (strcmp(name, "training") == 0) {
        const int t = cfxi_world_truth_of(w, v, err);
        if (t < 0)
            return err->status;
        o->as.module->training = t;
        return CFX_OK;
    }
    const cfxi_member *e = cfxi_capture_module_find(o->as.module, name, size);
    if (v->type == CFXI_TYPE_MODULE)
        CFX_TRY(put_child(w, o, name, v, err));
    else if (v->type == CFXI_TYPE_TENSOR)
        CFX_TRY(cfxi_world_layer_put(w, o, name, v,
                                     v->flag ? CFXI_MEMBER_PARAMETER : CFXI_MEMBER_BUFFER, err));
    else if (e)
        CFX_TRY(replace_member(w, o, name, v, err));
    return cfxi_world_dict_put(o->attrs, name, v, err);
}

/* ---- parameters ---------------------------------------------------------------------------- */

cfx_object *cfxi_world_parameter(cfxi_world *w, cfx_object *self, const cfx_call_args *a,
                                 cfx_error *err)
{
    static const char *const names[] = {"data", "requires_grad"};
    cfx_object *in[2];
    (void)self;
    if (cfxi_world_args(w, a, "Parameter", names, 1, 2, in, err) != CFX_OK)
        return NULL;
    if (in[0]->type != CFXI_TYPE_TENSOR)
        return cfxi_world_raise(w, err, CFXI_TypeError,
                                "Parameter() takes a tensor with known "
                                "values, not '%s'", cfxi_world_type_name(in[0]));
    cfx_object *o = cfxi_world_tensor_object(w, in[0]->as.tensor, err);
    if (o)
        o->flag = true;
    return o;
}

/* ---- calls --------------------------------------------------------------------------------- */

/* Computed, where nothing is captured. */
static cfx_object *run_module(cfxi_world *w, cfx_object *o, const cfx_call_args *a, cfx_error *err)
{
    enum { MOST_INPUTS = 32 };
    cfx_var in[MOST_INPUTS];
    const size_t mark = cfx_scope_mark(w->scope);
    cfx_object *made = NULL;
    if (a->n_named > 0 || a->n > MOST_INPUTS)
        return cfxi_world_raise(w, err, CFXI_TypeError, "%s takes only positional inputs here",
                                cfxi_world_type_name(o));
    for (size_t i = 0; i < a->n; i++) {
        cfx_datum d = cfxi_world_to_datum(w, a->args[i], err);
        if (d.kind == CFX_DATUM_INVALID)
            return NULL;
        in[i] = cfx_var_from_datum_at(cfxi_world_here(w), d);
        cfx_datum_release(d);
    }
    const cfx_var v = cfx_call_at(cfxi_world_here(w), o->as.module, cfx_vars_make(in, a->n));
    cfx_datum d =
        cfx_scope_ok(w->scope) ? cfx_var_datum_at(cfxi_world_here(w), v) : cfx_datum_invalid();
    if (cfx_scope_ok(w->scope))
        made = cfxi_world_from_datum(w, d, err);
    else
        cfxi_world_scope_failed(w, err);
    cfx_datum_release(d);
    cfx_scope_reset(w->scope, mark, cfx_var_empty());
    return made;
}

cfx_object *cfxi_world_call_module(cfxi_world *w, cfx_object *o, const cfx_call_args *a,
                                   cfx_error *err)
{
    if (!w->recording && !cfxi_world_any_value(a, false))
        return run_module(w, o, a, err);
    const cfxi_path *p = cfxi_capture_places_find(&w->places, o->as.module);
    if (o->changed) {
        cfx_error_set(err, CFX_E_UNSUPPORTED, "an attribute of this %.60s is assigned in forward, "
                      "and a call of the layer would not see it; call the function of "
                      "torch.nn.functional with the new value instead", cfxi_world_type_name(o));
        return NULL;
    }
    if (p)
        return cfxi_world_record(w, CFX_OP_CALL_MODULE, p->path, a, err);
    return cfxi_world_raise(w, err, CFXI_NameError,
                            "this %s is not part of the model; assign it to an attribute in "
                            "__init__, or put it into an nn.ModuleList", cfxi_world_type_name(o));
}
