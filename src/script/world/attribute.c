/* attribute.c - attributes: of instances, classes and modules; binding, super, and calls that the
 * world makes itself. */
#include "world_impl.h"

/* ---- calls --------------------------------------------------------------------------------- */

cfx_object *cfxi_world_call_object(cfxi_world *w, cfx_object *f, cfx_call_args a, cfx_error *err)
{
    const cfx_object *inner = f->type == CFXI_TYPE_METHOD ? f->as.parts.a : f;
    if (inner->type == CFXI_TYPE_BUILTIN)
        return cfxi_world_call_direct(w, f, &a, err);
    if (w->evaluator)
        return cfx_evaluator_call(w->evaluator, f, a, err);
    cfx_error_set(err, CFX_E_UNSUPPORTED, "cannot call an object of type '%s': no evaluator is "
                  "running",
                  cfxi_world_type_name(f));
    return NULL;
}

cfx_object *cfxi_world_call_with(cfxi_world *w, cfx_object *f, cfx_object *const *args, size_t n,
                                 cfx_error *err)
{
    return cfxi_world_call_object(w, f, (cfx_call_args){.args = args, .n = n}, err);
}

/* ---- binding ------------------------------------------------------------------------------- */

/* What an attribute of a class is when it is read through an object (NULL: through the class). */
static cfx_object *bind(cfxi_world *w, cfx_object *found, cfx_object *self, cfx_object *cls,
                        cfx_error *err)
{
    switch ((cfxi_type)found->type) {
    case CFXI_TYPE_FUNCTION:
        return self ? cfxi_world_parts_object(w, CFXI_TYPE_METHOD, found, self, NULL, err)
                    : cfxi_world_ref(found);
    case CFXI_TYPE_BUILTIN:  /* a function of torch that was put into a class is not bound */
        return self && !found->flag
                   ? cfxi_world_parts_object(w, CFXI_TYPE_METHOD, found, self, NULL, err)
                   : cfxi_world_ref(found);
    case CFXI_TYPE_STATIC_METHOD: return cfxi_world_ref(found->as.parts.a);
    case CFXI_TYPE_CLASS_METHOD:
        return cfxi_world_parts_object(w, CFXI_TYPE_METHOD, found->as.parts.a, cls, NULL, err);
    case CFXI_TYPE_PROPERTY:
        if (!self)
            return cfxi_world_ref(found);
        return cfxi_world_call_with(w, found->as.parts.a, &self, 1, err);
    default: return cfxi_world_ref(found);
    }
}

cfx_object *cfxi_world_special(cfxi_world *w, cfx_object *o, const char *name,
                               cfx_object *const *args, size_t n, bool *found, cfx_error *err)
{
    cfx_object *f = o->cls ? cfxi_world_class_find(o->cls, name) : NULL;
    *found = f != NULL && f->type != CFXI_TYPE_NONE;
    if (!*found)
        return NULL;
    cfx_object *bound = bind(w, f, o, o->cls, err);
    cfx_object *made = bound ? cfxi_world_call_with(w, bound, args, n, err) : NULL;
    cfxi_world_unref(bound);
    return made;
}

/* ---- reading ------------------------------------------------------------------------------- */

cfx_object *cfxi_world_no_attribute(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err)
{
    if (o->type == CFXI_TYPE_CLASS)
        return cfxi_world_raise(w, err, CFXI_AttributeError,
                                "type object '%s' has no attribute '%s'", o->as.cls.name, name);
    return cfxi_world_raise(w, err, CFXI_AttributeError, "'%s' object has no attribute '%s'",
                            cfxi_world_type_name(o), name);
}

/* __name__ and its like. NULL without an error: it has none of these. */
static cfx_object *common(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err)
{
    if (strcmp(name, "__class__") == 0)
        return cfxi_world_class_of(w, o, err);
    if (strcmp(name, "__dict__") == 0 && o->attrs)
        return cfxi_world_ref(o->attrs);
    if (strcmp(name, "__doc__") == 0)
        return cfxi_world_none(w);
    if (strcmp(name, "__name__") == 0 || strcmp(name, "__qualname__") == 0) {
        const char *text = o->type == CFXI_TYPE_CLASS ? o->as.cls.name
                           : o->type == CFXI_TYPE_FUNCTION
                               ? cfx_script_function_name(o->as.function)
                           : o->type == CFXI_TYPE_BUILTIN   ? strrchr(o->as.builtin.name, '.')
                           : o->type == CFXI_TYPE_NAMESPACE ? o->as.text.data
                                                            : NULL;
        if (o->type == CFXI_TYPE_BUILTIN)
            text = text ? text + 1 : o->as.builtin.name;
        return text ? cfxi_world_str(w, text, err) : NULL;
    }
    return NULL;
}

static cfx_object *get_from_class(cfxi_world *w, cfx_object *cls, const char *name, cfx_error *err)
{
    cfx_object *found;
    if (cfxi_world_class_get(w, cls, name, &found, err) != CFX_OK)
        return NULL;
    if (found)
        return bind(w, found, NULL, cls, err);
    if (strcmp(name, "__mro__") == 0)
        return cfxi_world_ref(cls->as.cls.mro);
    if (strcmp(name, "__bases__") == 0)
        return cfxi_world_ref(cls->as.cls.bases);
    err->status = CFX_OK;
    cfx_object *made = common(w, cls, name, err);
    return made || err->status != CFX_OK ? made : cfxi_world_no_attribute(w, cls, name, err);
}

/* The class in which super() goes on: that of the object, or the object if it is one itself. */
static cfx_object *get_super(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err)
{
    cfx_object *self = o->as.parts.b;
    cfx_object *of = self->type == CFXI_TYPE_CLASS ? self : self->cls;
    cfx_object *found = NULL;
    const cfx_object *mro = of ? of->as.cls.mro : NULL;
    size_t i = 0;
    while (mro && i < mro->as.seq.n && mro->as.seq.items[i] != o->as.parts.a)
        i++;
    for (i++; mro && !found && i < mro->as.seq.n; i++) {
        cfx_object *c = mro->as.seq.items[i];
        found = cfxi_world_dict_get(c->attrs, name);
        if (!found && !c->as.cls.own && c->as.cls.layout == of->as.cls.layout &&
            cfxi_world_class_get(w, c, name, &found, err) != CFX_OK)
            return NULL;
    }
    if (found)
        return bind(w, found, self->type == CFXI_TYPE_CLASS ? NULL : self, of, err);
    return cfxi_world_raise(w, err, CFXI_AttributeError, "'super' object has no attribute '%s'",
                            name);
}

/* The field of a named tuple: borrowed, or NULL. */
static cfx_object *field_of(const cfx_object *o, const char *name)
{
    const cfx_object *fields = o->type == CFXI_TYPE_TUPLE ? cfxi_world_named_fields(o->cls) : NULL;
    for (size_t i = 0; fields && i < fields->as.seq.n && i < o->as.seq.n; i++)
        if (strcmp(fields->as.seq.items[i]->as.text.data, name) == 0)
            return o->as.seq.items[i];
    return NULL;
}

/* real, imag of numbers; start, stop, step of slices and ranges; type of a device. */
static cfx_object *plain_attribute(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err)
{
    const bool complex = o->type == CFXI_TYPE_COMPLEX;
    if ((complex || cfxi_world_is_real(o)) && strcmp(name, "real") == 0)
        return complex ? cfxi_world_float_object(w, o->as.c[0], err) : cfxi_world_ref(o);
    if ((complex || cfxi_world_is_real(o)) && strcmp(name, "imag") == 0)
        return complex ? cfxi_world_float_object(w, o->as.c[1], err)
                       : cfxi_world_int_object(w, 0, err);
    static const char *const ends[] = {"start", "stop", "step"};
    for (size_t i = 0; i < 3; i++)
        if (strcmp(name, ends[i]) == 0 && o->type == CFXI_TYPE_SLICE)
            return cfxi_world_ref(o->as.seq.items[i]);
        else if (strcmp(name, ends[i]) == 0 && o->type == CFXI_TYPE_RANGE)
            return cfxi_world_int_object(w,
                                         i == 0 ? o->as.range.start
                                         : i == 2
                                             ? o->as.range.step
                                             : o->as.range.start + o->as.range.n * o->as.range.step,
                                         err);
    if (o->type == CFXI_TYPE_DEVICE && strcmp(name, "type") == 0)
        return cfxi_world_text_object(w, CFXI_TYPE_STR, o->as.text.data,
                                      strcspn(o->as.text.data, ":"), err);
    if (o->type == CFXI_TYPE_DEVICE && strcmp(name, "index") == 0)
        return cfxi_world_none(w);
    if (o->type == CFXI_TYPE_DTYPE && strcmp(name, "is_floating_point") == 0)
        return cfxi_world_truth_object(w, cfx_dtype_is_float((cfx_dtype)o->as.i));
    if (o->type == CFXI_TYPE_PROPERTY && (strcmp(name, "setter") == 0 ||
                                          strcmp(name, "getter") == 0)) {
        cfx_object *f = cfxi_world_builtin_get(w, name[0] == 's' ? " setter" : " getter", err);
        cfx_object *made = f ? cfxi_world_parts_object(w, CFXI_TYPE_METHOD, f, o, NULL, err) : NULL;
        cfxi_world_unref(f);
        return made;
    }
    return NULL;
}

/* By the class of the object, its own attributes, and what its layout has. */
static cfx_object *get_from_object(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err)
{
    cfx_object *cls = cfxi_world_class_of(w, o, err);
    cfx_object *found = NULL;
    cfx_object *made = NULL;
    bool has = false;
    if (!cls || cfxi_world_class_get(w, cls, name, &found, err) != CFX_OK)
        goto done;
    err->status = CFX_OK;
    cfx_object *own = o->attrs ? cfxi_world_dict_get(o->attrs, name) : NULL;
    if (!own)
        own = field_of(o, name);
    if (own && !(found && found->type == CFXI_TYPE_PROPERTY))
        made = cfxi_world_ref(own);
    else if (found)
        made = bind(w, found, o, cls, err);
    else if (o->type == CFXI_TYPE_MODULE)
        made = cfxi_world_layer_get(w, o, name, err);
    else
        made = plain_attribute(w, o, name, err);
    if (!made && err->status == CFX_OK)
        made = common(w, o, name, err);
    if (!made && err->status == CFX_OK && o->cls && strcmp(name, "__getattr__") != 0) {
        cfx_object *word = cfxi_world_str(w, name, err);
        made = word ? cfxi_world_special(w, o, "__getattr__", &word, 1, &has, err) : NULL;
        cfxi_world_unref(word);
    }
    if (!made && err->status == CFX_OK)
        cfxi_world_no_attribute(w, o, name, err);
done:
    cfxi_world_unref(cls);
    return made;
}

cfx_object *cfxi_world_get(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err)
{
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_VALUE:
    case CFXI_TYPE_ATTRIBUTE:
    case CFXI_TYPE_TENSOR: return cfxi_world_tensor_get(w, o, name, err);
    case CFXI_TYPE_NAMESPACE: return cfxi_world_namespace_get(w, o, name, err);
    case CFXI_TYPE_CLASS: return get_from_class(w, o, name, err);
    case CFXI_TYPE_SUPER: return get_super(w, o, name, err);
    case CFXI_TYPE_BUILTIN:
        if (o->flag) {  /* torch.ops.aten.add.Tensor */
            err->status = CFX_OK;
            cfx_object *made = cfxi_world_namespace_get(w, o, name, err);
            if (made || !cfxi_world_catch(w, CFXI_AttributeError, err))
                return made;
        }
        break;
    default: break;
    }
    return get_from_object(w, o, name, err);
}

/* ---- writing ------------------------------------------------------------------------------- */

static cfx_status put_attribute(cfxi_world *w, cfx_object *o, const char *name, cfx_object *v,
                                cfx_error *err)
{
    if (w->recording && o->outside)
        return cfx_error_set(err, CFX_E_UNSUPPORTED,
                             "cannot assign to attribute '%.60s' of %.60s, which comes from "
                             "outside the function: the assignment would happen once, during "
                             "capture, not in each call; return the new value, or keep tensors in "
                             "buffers of an nn.Module", name,
                             o->type == CFXI_TYPE_CLASS ? o->as.cls.name : cfxi_world_type_name(o));
    if (!o->attrs)
        o->attrs = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
    if (!o->attrs)
        return err->status;
    if (v)
        return cfxi_world_dict_put(o->attrs, name, v, err);
    bool there;
    CFX_TRY(cfxi_world_dict_drop(o->attrs, name, &there, err));
    if (!there)
        cfxi_world_no_attribute(w, o, name, err);
    return there ? CFX_OK : err->status;
}

cfx_status cfxi_world_set(cfxi_world *w, cfx_object *o, const char *name, cfx_object *v,
                          cfx_error *err)
{
    cfx_object *found = o->cls ? cfxi_world_class_find(o->cls, name) : NULL;
    if (found && found->type == CFXI_TYPE_PROPERTY) {
        cfx_object *args[] = {o, v};
        if (!found->as.parts.b || found->as.parts.b->type == CFXI_TYPE_NONE || !v)
            return cfxi_world_throw(w, err, CFXI_AttributeError,
                                    "property '%s' of '%s' object has no "
                                    "%s",
                                    name, cfxi_world_type_name(o), v ? "setter" : "deleter");
        cfx_object *made = cfxi_world_call_with(w, found->as.parts.b, args, 2, err);
        cfxi_world_unref(made);
        return made ? CFX_OK : err->status;
    }
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_MODULE: return cfxi_world_layer_set(w, o, name, v, err);
    case CFXI_TYPE_CLASS:
    case CFXI_TYPE_INSTANCE:
    case CFXI_TYPE_FUNCTION: return put_attribute(w, o, name, v, err);
    case CFXI_TYPE_TENSOR:
        if (strcmp(name, "requires_grad") == 0 || strcmp(name, "grad") == 0)
            return CFX_OK;  /* nothing is trained here */
        break;
    default:
        if (o->cls)
            return put_attribute(w, o, name, v, err);
        break;
    }
    return cfxi_world_throw(w, err, CFXI_AttributeError, "'%s' object attribute '%s' cannot be set",
                            cfxi_world_type_name(o), name);
}

/* ---- instances ----------------------------------------------------------------------------- */

cfx_object *cfxi_world_make(cfxi_world *w, cfx_object *cls, cfx_error *err)
{
    const cfxi_type layout = (cfxi_type)cls->as.cls.layout;
    cfx_object *o = NULL;
    cfx_module *m;
    switch (layout) {
    case CFXI_TYPE_INSTANCE:
    case CFXI_TYPE_LIST:
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_DICT:
    case CFXI_TYPE_SET:
    case CFXI_TYPE_FROZENSET: o = cfxi_world_object_new(w, layout, err); break;
    case CFXI_TYPE_MODULE:
        m = cfxi_capture_module_make(w->allocator, err);
        o = m ? cfxi_world_layer_object(w, m, err) : NULL;
        cfx_module_release(m);
        break;
    default:
        return cfxi_world_raise(w, err, CFXI_TypeError, "scripts do not support classes derived "
                                "from %s", cls->as.cls.bases->as.seq.items[0]->as.cls.name);
    }
    if (o) {
        cfx_object *old = o->cls;
        o->cls = cfxi_world_ref(cls);
        cfxi_world_unref(old);
    }
    return o;
}
