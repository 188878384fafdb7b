/* object_call.c - how objects are called: which the evaluator runs, and the calls of the others. */
#include "world_impl.h"

#include <stdio.h>

/* ---- how ----------------------------------------------------------------------------------- */

/* Whether a method of a builtin class changes its object, a list, dict or set. */
static bool changes_self(const cfx_object *f, const cfx_object *self)
{
    const bool can = self->type == CFXI_TYPE_LIST || self->type == CFXI_TYPE_DICT ||
                     self->type == CFXI_TYPE_SET;
    return can && f->type == CFXI_TYPE_BUILTIN && f->mark &&
           cfx_script_method_mutates(f->as.builtin.name);
}

/* Functions that the evaluator carries out itself. */
static bool find_special(const char *full, cfx_script_callee *out)
{
    char name[64];
    const bool cfx = strncmp(full, "cfx.", 4) == 0;  /* cfx.cond, cfx.ops.cond: as torch.cond */
    const char *last = strrchr(full, '.');
    snprintf(name, sizeof name, "%s%.50s", cfx ? "torch" : "", cfx && last ? last : full);
    static const char *const names[CFX_SPECIALS] = {
#define CFX_SPECIAL(id, text) text,
#include <cfx/embed/special.def>
#undef CFX_SPECIAL
    };
    for (int i = 0; i < CFX_SPECIALS; i++)
        if (strcmp(names[i], name) == 0) {
            out->kind = CFX_CALLEE_SPECIAL;
            out->special = (cfx_script_special)i;
            return true;
        }
    return false;
}

bool cfxi_world_is_special(const char *full)
{
    cfx_script_callee ignored;
    return find_special(full, &ignored);
}

cfx_status cfxi_world_lend(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    cfx_status status = o ? cfxi_world_list_append(w->kept, o, err) : err->status;
    cfxi_world_unref(o);
    return status;
}

static cfx_status class_callee(cfxi_world *w, cfx_object *cls, cfx_script_callee *out,
                               cfx_error *err)
{
    char name[64];
    snprintf(name, sizeof name, "builtins.%.40s", cls->as.cls.name);
    if (!cls->as.cls.own && cls->as.cls.layout != CFXI_TYPE_MODULE && find_special(name, out))
        return CFX_OK;
    if (!cls->as.cls.own || cls->cls || cfxi_world_named_fields(cls))
        return CFX_OK;
    out->kind = CFX_CALLEE_CLASS;
    return cfxi_world_class_get(w, cls, "__init__", &out->function, err);
}

/* The forward of a user's class, bound; a Sequential calls its parts. */
static cfx_status module_callee(cfxi_world *w, cfx_object *m, cfx_script_callee *out,
                                cfx_error *err)
{
    cfx_object *own = m->attrs ? cfxi_world_dict_get(m->attrs, "forward") : NULL;
    cfx_object *found = cfxi_world_class_find(m->cls, "forward");
    if (own || (found && found->type != CFXI_TYPE_BUILTIN)) {
        cfx_object *bound = own ? cfxi_world_ref(own)
                                : cfxi_world_parts_object(w, CFXI_TYPE_METHOD, found, m, NULL, err);
        out->kind = CFX_CALLEE_MODULE;
        out->function = bound;
        return cfxi_world_lend(w, bound, err);
    }
    if (m->as.module->nn != CFX_NN_Sequential)
        return m->as.module->nn != CFX_NN_NONE ? CFX_OK
                                               : cfxi_world_throw(w, err, CFXI_NotImplementedError,
                                                                  "Module [%s] is missing the "
                                                                  "required \"forward\" function",
                                                                  cfxi_world_type_name(m));
    cfx_object *parts = cfxi_world_layer_children(w, m, err);
    if (!parts)
        return err->status;
    out->kind = CFX_CALLEE_CHAIN;
    out->parts = parts->as.seq.items;
    out->n_parts = parts->as.seq.n;
    return cfxi_world_lend(w, parts, err);
}

static cfx_status not_callable(cfxi_world *w, cfx_object *f, cfx_error *err)
{
    return cfxi_world_throw(w, err, CFXI_TypeError, "'%s' object is not callable",
                            cfxi_world_type_name(f));
}

static cfx_status instance_callee(cfxi_world *w, cfx_object *f, cfx_script_callee *out,
                                  cfx_error *err)
{
    cfx_object *found = f->cls ? cfxi_world_class_find(f->cls, "__call__") : NULL;
    if (!found)
        return not_callable(w, f, err);
    if (found->type == CFXI_TYPE_FUNCTION) {
        out->kind = CFX_CALLEE_OWN;
        out->own = found->as.function;
        out->self = f;
    }
    return CFX_OK;
}

cfx_status cfxi_world_callee(cfxi_world *w, cfx_object *f, cfx_script_callee *out, cfx_error *err)
{
    *out = (cfx_script_callee){.kind = CFX_CALLEE_DIRECT};
    switch ((cfxi_type)f->type) {
    case CFXI_TYPE_FUNCTION:
        out->kind = CFX_CALLEE_OWN;
        out->own = f->as.function;
        return CFX_OK;
    case CFXI_TYPE_METHOD:
        if (f->as.parts.a->type != CFXI_TYPE_FUNCTION) {
            if (changes_self(f->as.parts.a, f->as.parts.b))
                out->self = f->as.parts.b;
            return CFX_OK;
        }
        out->kind = CFX_CALLEE_OWN;
        out->own = f->as.parts.a->as.function;
        out->self = f->as.parts.b;
        return CFX_OK;
    case CFXI_TYPE_STATIC_METHOD: return cfxi_world_callee(w, f->as.parts.a, out, err);
    case CFXI_TYPE_BUILTIN:
        find_special(f->as.builtin.name, out);
        return CFX_OK;
    case CFXI_TYPE_CLASS: return class_callee(w, f, out, err);
    case CFXI_TYPE_MODULE: return module_callee(w, f, out, err);
    case CFXI_TYPE_PARTIAL:
        out->kind = CFX_CALLEE_PARTIAL;
        out->function = f->as.parts.a;
        out->parts = f->as.parts.b->as.seq.items;
        out->n_parts = f->as.parts.b->as.seq.n;
        out->named = f->as.parts.c;
        return CFX_OK;
    case CFXI_TYPE_ATTRIBUTE:
    case CFXI_TYPE_NAMESPACE: return CFX_OK;
    case CFXI_TYPE_VALUE:
        return cfxi_world_throw(w, err, CFXI_TypeError, "a graph value cannot be called");
    default: return instance_callee(w, f, out, err);
    }
}

/* ---- calling ------------------------------------------------------------------------------- */

/* The fields of a named tuple from the arguments. */
static cfx_object *make_named(cfxi_world *w, cfx_object *cls, const cfx_object *fields,
                              const cfx_call_args *a, cfx_error *err)
{
    cfx_object *defaults = cfxi_world_class_find(cls, "_field_defaults");
    cfx_object *made = cfxi_world_object_new(w, CFXI_TYPE_TUPLE, err);
    size_t used = 0;
    if (made)
        made->cls = cfxi_world_ref(cls);
    for (size_t i = 0; made && i < fields->as.seq.n; i++) {
        const char *name = fields->as.seq.items[i]->as.text.data;
        cfx_object *v = cfxi_world_given(a, name, i, &used);
        if (!v && defaults && defaults->type == CFXI_TYPE_DICT)
            v = cfxi_world_dict_get(defaults, name);
        if (!v)
            cfxi_world_raise(w, err, CFXI_TypeError, "%s.__new__() missing 1 required positional "
                             "argument: '%s'", cls->as.cls.name, name);
        if (!v || cfxi_world_list_append(made, v, err) != CFX_OK)
            cfxi_world_clear(&made);
    }
    if (made && used < a->n) {
        cfxi_world_raise(w, err, CFXI_TypeError,
                         "%s.__new__() takes %zu arguments but %zu were given", cls->as.cls.name,
                         fields->as.seq.n, a->n);
        cfxi_world_clear(&made);
    }
    return made;
}

static bool is_item(const cfx_object *o, bool or_tensor)
{
    return cfxi_world_is_value(o) && (or_tensor || o->type != CFXI_TYPE_TENSOR);
}

/* Whether the call is recorded, as policy.def says: of functions that the operator table has. For
 * others, the function here knows what to do. */
static bool is_recorded(const cfxi_world *w, const char *name, const cfx_call_args *a)
{
    if (!w->recording)  /* then there are no graph values */
        return false;
    if (strcmp(name, "builtins.print") == 0)  /* it makes texts of what is known first */
        return false;
    const cfx_script_rule rule = cfx_script_rule_of(name);
    if (rule == CFX_RULE_NEVER || cfx_operator_find(name, strlen(name)) == CFX_OPID_NONE)
        return false;
    if (rule == CFX_RULE_DEEP)
        return cfxi_world_any_value(a, true);  /* a tensor of the program becomes one */
    for (size_t i = 0; i < a->n; i++)
        if (is_item(a->args[i], rule == CFX_RULE_ITEM))
            return true;
    return rule == CFX_RULE_ALWAYS;
}

static cfx_object *call_class(cfxi_world *w, cfx_object *cls, const cfx_call_args *a,
                              cfx_error *err)
{
    const cfx_object *fields = cfxi_world_named_fields(cls);
    cfx_object *found;
    if (fields)
        return make_named(w, cls, fields, a, err);
    if (cls->cls) {  /* Color("red") */
        bool has;
        return cfxi_world_special(w, cls, "__call__", a->args, a->n, &has, err);
    }
    char name[64];
    snprintf(name, sizeof name, "builtins.%.40s", cls->as.cls.name);
    if (cls->as.cls.make && is_recorded(w, name, a))
        return cfxi_world_record(w, CFX_OP_CALL_FUNCTION, name, a, err);
    if (cls->as.cls.make)
        return cls->as.cls.make(w, NULL, a, err);
    cfx_object *o = cfxi_world_make(w, cls, err);
    if (!o || cfxi_world_class_get(w, cls, "__init__", &found, err) != CFX_OK) {
        cfxi_world_unref(o);
        return NULL;
    }
    if (!found)
        return o;
    cfx_object *bound = cfxi_world_parts_object(w, CFXI_TYPE_METHOD, found, o, NULL, err);
    cfx_object *none = bound ? cfxi_world_call_object(w, bound, *a, err) : NULL;
    cfxi_world_unref(bound);
    cfxi_world_unref(none);
    if (!none)
        cfxi_world_clear(&o);
    return o;
}

/* Whether an object is one that a method is for: a program can call list.append(3, 4), or put it
 * into a class of its own. */
static bool can_be_self(cfxi_world *w, const cfx_object *f, const cfx_object *self, cfx_error *err)
{
    cfx_object *home = f->as.builtin.home;
    cfx_object *cls = home ? cfxi_world_class_of(w, self, err) : NULL;
    const bool can = !home || (cls && cfxi_world_is_subclass(cls, home));
    if (cls && !can)
        cfxi_world_raise(w, err, CFXI_TypeError,
                         "descriptor '%s' for '%s' objects doesn't apply to a '%s' object",
                         f->as.builtin.name, home->as.cls.name, cls->as.cls.name);
    cfxi_world_unref(cls);
    return can;
}

/* list.append(x, 1) as x.append(1): the evaluator notes what changes. */
static cfx_object *call_bound(cfxi_world *w, cfx_object *f, cfx_object *self,
                              const cfx_call_args *rest, cfx_error *err)
{
    cfx_object *bound = cfxi_world_parts_object(w, CFXI_TYPE_METHOD, f, self, NULL, err);
    cfx_object *made = bound ? cfx_evaluator_call(w->evaluator, bound, *rest, err) : NULL;
    cfxi_world_unref(bound);
    return made;
}

static cfx_object *call_builtin(cfxi_world *w, cfx_object *f, cfx_object *self,
                                const cfx_call_args *a, cfx_error *err)
{
    cfx_call_args rest = *a;
    bool known = false;
    if (!self && is_recorded(w, f->as.builtin.name, a))
        return cfxi_world_record(w, CFX_OP_CALL_FUNCTION, f->as.builtin.name, a, err);
    if (f->flag && strncmp(f->as.builtin.name, "operator.", 9) == 0 &&
        !cfxi_world_any_value(a, true)) {
        cfx_object *made = cfxi_world_operator(w, f->as.builtin.name + 9, a, &known, err);
        if (known)
            return made;
    }
    if (f->flag)
        return cfxi_world_perform(w, CFX_OP_CALL_FUNCTION, f->as.builtin.name, a, err);
    if (!f->as.builtin.fn)
        return cfxi_world_raise(w, err, CFXI_TypeError, "%s cannot be called in a script",
                                f->as.builtin.name);
    if (!f->mark)
        return f->as.builtin.fn(w, self, a, err);
    if (self)
        return can_be_self(w, f, self, err) ? f->as.builtin.fn(w, self, a, err) : NULL;
    if (a->n == a->n_named)
        return cfxi_world_raise(w, err, CFXI_TypeError,
                                "unbound method %s() needs an object as its "
                                "first argument", f->as.builtin.name);
    rest.args++;
    rest.n--;
    if (changes_self(f, a->args[0]) && w->evaluator)
        return call_bound(w, f, a->args[0], &rest, err);
    return can_be_self(w, f, a->args[0], err) ? f->as.builtin.fn(w, a->args[0], &rest, err) : NULL;
}

static cfx_object *call_method(cfxi_world *w, cfx_object *f, const cfx_call_args *a, cfx_error *err)
{
    cfx_object *args[CFXI_MOST_ARGS];
    cfx_object *self = f->as.parts.a;
    const char *name = f->as.parts.b->as.text.data;
    if (a->n + 1 > CFXI_MOST_ARGS)
        return cfxi_world_raise(w, err, CFXI_TypeError, "calls with more than %d arguments are not "
                                "supported",
                                CFXI_MOST_ARGS - 1);
    args[0] = self;
    for (size_t i = 0; i < a->n; i++)
        args[i + 1] = a->args[i];
    const cfx_call_args all = {args, a->n + 1, a->names, a->n_named};
    if (self->type == CFXI_TYPE_TENSOR && (strcmp(name, "requires_grad_") == 0 ||
                                           strcmp(name, "cpu") == 0 || strcmp(name, "cuda") == 0))
        return cfxi_world_ref(self);
    if (self->type == CFXI_TYPE_TENSOR && cfx_script_is_fact(name) &&
        !cfxi_world_any_value(a, true))
        return cfxi_world_compute(w, CFX_OP_CALL_METHOD, name, &all, err);
    return cfxi_world_perform(w, CFX_OP_CALL_METHOD, name, &all, err);
}

cfx_object *cfxi_world_call_direct(cfxi_world *w, cfx_object *f, const cfx_call_args *a,
                                   cfx_error *err)
{
    const size_t plain = a->n - a->n_named;
    switch ((cfxi_type)f->type) {
    case CFXI_TYPE_BUILTIN: return call_builtin(w, f, NULL, a, err);
    case CFXI_TYPE_METHOD:
        if (f->as.parts.a->type == CFXI_TYPE_BUILTIN)
            return call_builtin(w, f->as.parts.a, f->as.parts.b, a, err);
        break;
    case CFXI_TYPE_CLASS: return call_class(w, f, a, err);
    case CFXI_TYPE_MODULE: return cfxi_world_call_module(w, f, a, err);
    case CFXI_TYPE_ATTRIBUTE: return call_method(w, f, a, err);
    case CFXI_TYPE_NAMESPACE:  /* TypeVar("T"): a type like any other */
        return cfxi_world_ref(plain ? f : w->none);
    case CFXI_TYPE_INSTANCE: {
        bool found = false;
        cfx_object *made = a->n_named == 0
                               ? cfxi_world_special(w, f, "__call__", a->args, a->n, &found, err)
                               : NULL;
        if (found)
            return made;
        break;
    }
    case CFXI_TYPE_FUNCTION:
    case CFXI_TYPE_PARTIAL: return cfxi_world_call_object(w, f, *a, err);
    default: break;
    }
    if (f->type == CFXI_TYPE_METHOD && w->evaluator)
        return cfxi_world_call_object(w, f->as.parts.a, *a, err);
    not_callable(w, f, err);
    return NULL;
}
