/* layer.c - nn.Module: a module of capture.h behind each object; attributes, children, parameters.
 *
 * What is a module or a tensor is a member of the cfx_module; the object that the program set is in
 * `attrs`, too, so that it is the same one when it is read. Everything else is in `attrs` alone.
 */
#include "world_impl.h"

#include <cfx/layers.h>

#include <stdio.h>

/* ---- classes and objects ------------------------------------------------------------------- */

cfx_object *cfxi_w_layer_class(cfxi_world *w, cfx_nn nn, cfx_error *err)
{
    char key[64];
    if (nn == CFX_NN_NONE && w->classes[CFXI_TYPE_MODULE])
        return cfxi_w_ref(w->classes[CFXI_TYPE_MODULE]);
    snprintf(key, sizeof key, "torch.nn.%s", nn ? cfx_nn_name(nn) : "Module");
    cfx_object *cls = cfxi_w_dict_get(w->builtins, key);
    if (cls)
        return cfxi_w_ref(cls);
    cfx_object *base = nn ? cfxi_w_layer_class(w, CFX_NN_NONE, err)
                          : cfxi_w_type_class(w, CFXI_TYPE_INSTANCE, err);
    cls = base ? cfxi_w_builtin_class(w, key + 9, base, CFXI_TYPE_MODULE, NULL, err) : NULL;
    cfxi_w_unref(base);
    if (!cls)
        return NULL;
    cls->as.cls.nn = nn;
    if (nn == CFX_NN_NONE) {
        w->classes[CFXI_TYPE_MODULE] = cls;
        return cfxi_w_ref(cls);
    }
    if (cfxi_w_dict_put(w->builtins, key, cls, err) != CFX_OK)
        cfxi_w_clear(&cls);
    return cls;
}

cfx_object *cfxi_w_layer_object(cfxi_world *w, cfx_module *m, cfx_error *err)
{
    cfx_object *cls = cfxi_w_layer_class(w, m->nn, err);
    cfx_object *o = cls ? cfxi_w_object_new(w, CFXI_TYPE_MODULE, err) : NULL;
    if (o) {
        o->cls = cfxi_w_ref(cls);
        o->as.module = cfx_module_retain(m);
        o->attrs = cfxi_w_dict_object(w, CFXI_TYPE_DICT, err);
        o->flag = m->nn != CFX_NN_NONE;
        if (!o->attrs)
            cfxi_w_clear(&o);
    }
    cfxi_w_unref(cls);
    return o;
}

static bool is_named(const cfx_object *cls, const char *name)
{
    const cfx_object *mro = cls->as.cls.mro;
    for (size_t i = 0; i < mro->as.seq.n; i++)
        if (!mro->as.seq.items[i]->as.cls.own &&
            strcmp(mro->as.seq.items[i]->as.cls.name, name) == 0)
            return true;
    return false;
}

/* nn.ParameterList and nn.ParameterDict: their items are parameters of theirs. */
static bool holds_parameters(const cfx_object *cls)
{
    return is_named(cls, "ParameterList") || is_named(cls, "ParameterDict");
}

/* What makes modules says nothing of places: the evaluator does. */
static cfx_at here(cfxi_world *w) { return cfx_at_make(w->scope, NULL, 0); }

/* What made the scope fail, as an exception; the scope goes on. */
static cfx_status failed(cfxi_world *w, cfx_error *err)
{
    const cfx_error why = *cfx_scope_error(w->scope);
    cfx_scope_forgive(w->scope);
    return cfxi_w_throw_error(w, &why, err);
}

/* ---- attributes ---------------------------------------------------------------------------- */

/* A member that no object stands for yet; NULL without an error if there is none. */
cfx_object *cfxi_w_layer_get(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err)
{
    cfx_module *m = o->as.module;
    if (strcmp(name, "training") == 0)
        return cfxi_w_truth_object(w, m->training);
    const cfxi_member *e = cfxi_module_find(m, name, strlen(name));
    if (!e)
        return NULL;
    cfx_object *made = e->kind == CFXI_MEMBER_CHILD ? cfxi_w_layer_object(w, e->child, err)
                                                    : cfxi_w_from_datum(w, e->value, err);
    if (!made)
        return NULL;
    if (made->type == CFXI_TYPE_TENSOR)
        made->flag = e->kind == CFXI_MEMBER_PARAMETER;
    const bool keep = made->type == CFXI_TYPE_TENSOR || made->type == CFXI_TYPE_MODULE;
    if (keep && cfxi_w_dict_put(o->attrs, name, made, err) != CFX_OK)
        cfxi_w_clear(&made);
    return made;
}

static cfx_status put_member(cfxi_world *w, cfx_object *o, const char *name, cfx_object *v,
                             cfxi_member_kind kind, cfx_error *err)
{
    const bool child = v->type == CFXI_TYPE_MODULE;
    cfx_error why = {0};
    cfx_datum d = child ? cfx_datum_invalid() : cfxi_w_to_datum(w, v, err);
    if (!child && d.kind == CFX_DATUM_INVALID)
        return err->status;
    if (child) {  /* of which it may not be a part itself */
        const cfxi_member *old = cfxi_module_find(o->as.module, name, strlen(name));
        if (old && old->kind != CFXI_MEMBER_CHILD)
            cfxi_module_drop(o->as.module, name, strlen(name));
    }
    cfx_status status = cfxi_module_put(o->as.module, name, strlen(name),
                                        child ? CFXI_MEMBER_CHILD : kind,
                                        child ? v->as.module : NULL, d, &why);
    cfx_datum_release(d);
    return status == CFX_OK ? CFX_OK : cfxi_w_throw_error(w, &why, err);
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
    const cfx_status status = cfxi_module_each(v->as.module, is_module, o->as.module, &why);
    if (status == CFX_E_VALUE)
        return cfxi_w_throw(w, err, CFXI_ValueError, "'%s' would be a part of itself", name);
    if (status != CFX_OK)
        return cfxi_w_throw_error(w, &why, err);
    return put_member(w, o, name, v, CFXI_MEMBER_CHILD, err);
}

/* A plain value in the place of a member: of torch.nn's own attributes it is the new value, and a
 * module or a tensor goes. */
static cfx_status replace_member(cfxi_world *w, cfx_object *o, const char *name, cfx_object *v,
                                 cfx_error *err)
{
    const size_t size = strlen(name);
    const cfxi_member *e = cfxi_module_find(o->as.module, name, size);
    if (!e)
        return CFX_OK;
    const bool tensor = e->kind == CFXI_MEMBER_PARAMETER || e->kind == CFXI_MEMBER_BUFFER;
    if (v && (e->kind == CFXI_MEMBER_ATTRIBUTE || (tensor && v->type == CFXI_TYPE_NONE)))
        return put_member(w, o, name, v, e->kind, err);
    cfxi_module_drop(o->as.module, name, size);
    return CFX_OK;
}

static cfx_status forget(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err)
{
    cfx_object *key = cfxi_w_str(w, name, err);
    cfx_object *old = NULL;
    const bool member = cfxi_module_drop(o->as.module, name, strlen(name));
    cfx_status status = key ? cfxi_w_dict_remove(o->attrs, key, &old, err) : err->status;
    cfxi_w_unref(key);
    if (status == CFX_OK && !old && !member)
        status = cfxi_w_throw(w, err, CFXI_AttributeError, "'%s' object has no attribute '%s'",
                              cfxi_w_type_name(w, o), name);
    cfxi_w_unref(old);
    return status;
}

cfx_status cfxi_w_layer_set(cfxi_world *w, cfx_object *o, const char *name, cfx_object *v,
                            cfx_error *err)
{
    const size_t size = strlen(name);
    if (!v)
        return forget(w, o, name, err);
    const bool part = v->type == CFXI_TYPE_MODULE || (v->type == CFXI_TYPE_TENSOR && v->flag);
    if (part && !o->flag)
        return cfxi_w_throw(w, err, CFXI_AttributeError, "cannot assign %s before "
                            "Module.__init__() call", v->type == CFXI_TYPE_MODULE ? "module"
                                                                                  : "parameters");
    if (strcmp(name, "training") == 0) {
        const int t = cfxi_w_truth_of(w, v, err);
        if (t < 0)
            return err->status;
        o->as.module->training = t;
        return CFX_OK;
    }
    const cfxi_member *e = cfxi_module_find(o->as.module, name, size);
    if (v->type == CFXI_TYPE_MODULE)
        CFX_TRY(put_child(w, o, name, v, err));
    else if (v->type == CFXI_TYPE_TENSOR)
        CFX_TRY(put_member(w, o, name, v, v->flag ? CFXI_MEMBER_PARAMETER : CFXI_MEMBER_BUFFER,
                           err));
    else if (e)
        CFX_TRY(replace_member(w, o, name, v, err));
    return cfxi_w_dict_put(o->attrs, name, v, err);
}

/* ---- constructors -------------------------------------------------------------------------- */

/* The i-th parameter that an argument is for; SIZE_MAX if there is none. */
static size_t param_of(cfx_nn nn, const char *name)
{
    cfx_param p;
    for (size_t i = 0; cfx_nn_param(nn, i, &p); i++)
        if (cfxi_text_is_word(p.name, name))
            return i;
    return SIZE_MAX;
}

static cfx_status nn_args(cfxi_world *w, cfx_nn nn, const cfx_call_args *a, cfx_var *out, size_t *n,
                          cfx_error *err)
{
    const size_t plain = a->n - a->n_named;
    cfx_param p;
    *n = 0;
    for (size_t i = 0; i < a->n; i++) {
        const char *name = i < plain ? NULL : a->names[i - plain];
        if (name && strcmp(name, "device") == 0)
            continue;
        const size_t at = name ? param_of(nn, name) : i;
        if (at >= CFXI_MOST_NN_PARAMS || !cfx_nn_param(nn, at, &p) || (!name && p.keyword_only))
            return name ? cfxi_w_throw(w, err, CFXI_TypeError, "torch.nn.%s() got an unexpected "
                                       "keyword argument '%s'", cfx_nn_name(nn), name)
                        : cfxi_w_throw(w, err, CFXI_TypeError, "torch.nn.%s() takes %zu positional "
                                       "arguments but %zu were given", cfx_nn_name(nn), i, plain);
        if (out[at].kind != CFX_VAR_EMPTY)
            return cfxi_w_throw(w, err, CFXI_TypeError, "torch.nn.%s() got multiple values for "
                                "argument '%s'", cfx_nn_name(nn), name);
        cfx_datum d = cfxi_w_to_datum(w, a->args[i], err);
        if (d.kind == CFX_DATUM_INVALID)
            return err->status;
        out[at] = cfx_from_datum_at(here(w), d);
        cfx_datum_release(d);
        if (!cfx_ok(w->scope))
            return failed(w, err);
        *n = at + 1 > *n ? at + 1 : *n;
    }
    return CFX_OK;
}

/* A module of torch.nn by its arguments: borrowed from the scope. */
static cfx_module *make_nn(cfxi_world *w, cfx_nn nn, const cfx_call_args *a, cfx_error *err)
{
    cfx_var args[CFXI_MOST_NN_PARAMS] = {0};
    const size_t mark = cfx_scope_mark(w->scope);
    size_t n;
    cfx_module *m = NULL;
    if (nn_args(w, nn, a, args, &n, err) == CFX_OK) {
        m = cfx_nn_make_at(here(w), nn, args, n);
        if (!m)
            failed(w, err);
    }
    cfx_scope_return(w->scope, mark, cfx_var_empty());
    return m;
}

static cfx_status add_numbered(cfxi_world *w, cfx_object *o, size_t i, cfx_object *v,
                               cfx_error *err)
{
    char name[24];
    snprintf(name, sizeof name, "%zu", i);
    return cfxi_w_layer_set(w, o, name, v, err);
}

/* Adds those of a dict by their keys, those of anything else by numbers from `first` on. */
static cfx_status add_all(cfxi_world *w, cfx_object *o, cfx_object *from, size_t first,
                          cfx_error *err)
{
    cfx_object *key;
    cfx_object *value;
    if (from->type == CFXI_TYPE_DICT) {
        for (size_t at = 0; cfxi_w_dict_next(from, &at, &key, &value);) {
            if (key->type != CFXI_TYPE_STR)
                return cfxi_w_throw(w, err, CFXI_TypeError, "the keys of modules must be str");
            CFX_TRY(cfxi_w_layer_set(w, o, key->as.text.data, value, err));
        }
        return CFX_OK;
    }
    cfx_object *items = cfxi_w_collect(w, CFXI_TYPE_LIST, from, err);
    cfx_status status = items ? CFX_OK : err->status;
    for (size_t i = 0; status == CFX_OK && i < items->as.seq.n; i++)
        status = add_numbered(w, o, first + i, items->as.seq.items[i], err);
    cfxi_w_unref(items);
    return status;
}

/* nn.TransformerEncoder(layer, num_layers): copies of the layer. */
static cfx_status init_stack(cfxi_world *w, cfx_object *o, const cfx_call_args *a, cfx_error *err)
{
    static const char *const names[] = {"encoder_layer", "num_layers", "norm",
                                        "enable_nested_tensor", "mask_check"};
    static const char *const decoder[] = {"decoder_layer", "num_layers", "norm"};
    const bool encoder = o->as.module->nn == CFX_NN_TransformerEncoder;
    cfx_object *in[5];
    int64_t n;
    CFX_TRY(cfxi_w_args(w, a, "Transformer", encoder ? names : decoder, 2, encoder ? 5 : 3, in,
                        err));
    CFX_TRY(cfxi_w_index_of(w, in[1], "num_layers", &n, err));
    if (in[0]->type != CFXI_TYPE_MODULE || n < 0 || n > 10000)
        return cfxi_w_throw(w, err, CFXI_TypeError, "it takes a layer and how many there shall be");
    cfx_module *m = cfxi_nn_new(here(w), CFX_NN_ModuleList);
    cfx_object *layers = m ? cfxi_w_layer_object(w, m, err) : NULL;
    cfx_module_release(m);
    cfx_status status = layers ? CFX_OK : cfxi_nomem(err);
    for (size_t i = 0; status == CFX_OK && i < (size_t)n; i++) {
        cfx_object *copy = cfxi_w_deep_copy(w, in[0], err);
        status = copy ? add_numbered(w, layers, i, copy, err) : err->status;
        cfxi_w_unref(copy);
    }
    if (status == CFX_OK)
        status = cfxi_w_layer_set(w, o, "layers", layers, err);
    cfxi_w_unref(layers);
    if (status == CFX_OK)
        status = put_member(w, o, "num_layers", in[1], CFXI_MEMBER_ATTRIBUTE, err);
    for (size_t i = 3; status == CFX_OK && encoder && i < 5; i++)
        status = put_member(w, o, names[i], in[i] ? in[i] : w->truths[1], CFXI_MEMBER_ATTRIBUTE,
                            err);
    if (status == CFX_OK && in[2] && in[2]->type == CFXI_TYPE_MODULE)
        status = cfxi_w_layer_set(w, o, "norm", in[2], err);
    else if (status == CFX_OK)
        status = put_member(w, o, "norm", w->none, CFXI_MEMBER_ATTRIBUTE, err);
    return status;
}

/* The object gets what the constructor of torch.nn makes. */
static cfx_status adopt(cfxi_world *w, cfx_object *o, cfx_nn nn, const cfx_call_args *a,
                        cfx_error *err)
{
    static const cfx_call_args none = {0};
    const bool container = nn >= CFX_NN_Sequential && nn <= CFX_NN_ModuleDict;
    const bool stack = nn == CFX_NN_TransformerEncoder || nn == CFX_NN_TransformerDecoder;
    cfx_module *m;
    if (stack) {
        m = cfxi_nn_new(here(w), nn);
    } else {
        m = cfx_module_retain(make_nn(w, nn, container ? &none : a, err));
    }
    if (!m)
        return stack ? failed(w, err) : err->status;
    cfx_module_release(o->as.module);
    o->as.module = m;
    if (stack)
        return init_stack(w, o, a, err);
    if (!container || a->n == 0)
        return CFX_OK;
    const bool many = nn == CFX_NN_Sequential && a->args[0]->type != CFXI_TYPE_DICT;
    for (size_t i = 0; many && i < a->n; i++) {
        if (a->args[i]->type != CFXI_TYPE_MODULE)
            return cfxi_w_throw(w, err, CFXI_TypeError, "'%s' is not a Module subclass",
                                cfxi_w_type_name(w, a->args[i]));
        CFX_TRY(add_numbered(w, o, i, a->args[i], err));
    }
    return many ? CFX_OK : add_all(w, o, a->args[0], 0, err);
}

#define METHOD(name)                                                                               \
    static cfx_object *name(cfxi_world *w, cfx_object *self, const cfx_call_args *a, cfx_error *err)

static cfx_object *done(cfxi_world *w, cfx_status status)
{
    return status == CFX_OK ? cfxi_w_none(w) : NULL;
}

METHOD(init)
{
    const cfx_nn nn = self->cls->as.cls.nn;
    self->flag = true;
    if (nn != CFX_NN_NONE)
        return done(w, adopt(w, self, nn, a, err));
    if (a->n == 1 && holds_parameters(self->cls))
        return done(w, add_all(w, self, a->args[0], 0, err));
    if (a->n > 0)
        return cfxi_w_raise(w, err, CFXI_TypeError, "Module.__init__() takes 1 positional argument "
                            "but %zu were given", a->n + 1);
    return cfxi_w_none(w);
}

/* ---- parameters ---------------------------------------------------------------------------- */

cfx_object *cfxi_w_parameter(cfxi_world *w, cfx_object *self, const cfx_call_args *a,
                             cfx_error *err)
{
    static const char *const names[] = {"data", "requires_grad"};
    cfx_object *in[2];
    (void)self;
    if (cfxi_w_args(w, a, "Parameter", names, 1, 2, in, err) != CFX_OK)
        return NULL;
    if (in[0]->type != CFXI_TYPE_TENSOR)
        return cfxi_w_raise(w, err, CFXI_TypeError,
                            "a parameter is made of a tensor that is known, "
                            "not of '%s'", cfxi_w_type_name(w, in[0]));
    cfx_object *o = cfxi_w_tensor_object(w, in[0]->as.tensor, err);
    if (o)
        o->flag = true;
    return o;
}

/* register_buffer, register_parameter, add_module: name and value. */
static cfx_object *add_named(cfxi_world *w, cfx_object *self, const cfx_call_args *a,
                             const char *method, cfxi_member_kind kind, cfx_error *err)
{
    static const char *const names[] = {"name", "tensor", "persistent"};
    static const char *const others[] = {"name", "param"};
    static const char *const children[] = {"name", "module"};
    cfx_object *in[3];
    const bool buffer = kind == CFXI_MEMBER_BUFFER;
    if (cfxi_w_args(w, a, method, buffer ? names : kind == CFXI_MEMBER_CHILD ? children : others, 2,
                    buffer ? 3 : 2, in, err) != CFX_OK)
        return NULL;
    if (in[0]->type != CFXI_TYPE_STR)
        return cfxi_w_raise(w, err, CFXI_TypeError, "the name must be a str, not '%s'",
                            cfxi_w_type_name(w, in[0]));
    const bool none = in[1]->type == CFXI_TYPE_NONE;
    const bool fits = kind == CFXI_MEMBER_CHILD ? in[1]->type == CFXI_TYPE_MODULE
                                                : in[1]->type == CFXI_TYPE_TENSOR;
    if (!none && !fits)
        return cfxi_w_raise(w, err, CFXI_TypeError, "%s cannot take an object of the class '%s'",
                            method, cfxi_w_type_name(w, in[1]));
    const char *name = in[0]->as.text.data;
    if (kind != CFXI_MEMBER_CHILD && put_member(w, self, name, in[1], kind, err) != CFX_OK)
        return NULL;
    return done(w, none ? cfxi_w_dict_put(self->attrs, name, in[1], err)
                        : cfxi_w_layer_set(w, self, name, in[1], err));
}

METHOD(register_buffer)
{
    return add_named(w, self, a, "register_buffer", CFXI_MEMBER_BUFFER, err);
}

METHOD(register_parameter)
{
    return add_named(w, self, a, "register_parameter", CFXI_MEMBER_PARAMETER, err);
}

METHOD(add_module) { return add_named(w, self, a, "add_module", CFXI_MEMBER_CHILD, err); }

/* ---- walking ------------------------------------------------------------------------------- */

typedef struct walk {
    cfx_object *list;
    bool named;
    int kind;   /* a cfxi_member_kind; -1: modules */
} walk;

static cfx_status add_found(cfxi_world *w, const walk *k, const char *path, const char *name,
                            cfx_object *o, cfx_error *err)
{
    char full[200];
    if (!k->named)
        return cfxi_w_list_append(k->list, o, err);
    snprintf(full, sizeof full, "%s%s%s", path, path[0] && name[0] ? "." : "", name);
    cfx_object *both[] = {cfxi_w_str(w, full, err), cfxi_w_ref(o)};
    cfx_object *pair = cfxi_w_seq_take(w, CFXI_TYPE_TUPLE, both, 2, err);
    cfx_status status = pair ? cfxi_w_list_append(k->list, pair, err) : err->status;
    cfxi_w_unref(pair);
    return status;
}

/* Tensors of the module and of those below it, or the modules themselves; parents first. Each once,
 * by the first path. */
static cfx_status walk_module(cfxi_world *w, const walk *k, cfx_object *o, const char *path,
                              cfx_object *seen, cfx_error *err)
{
    cfx_object *there;
    char below[200];
    CFX_TRY(cfxi_w_dict_find(seen, o, &there, err));
    if (there)
        return CFX_OK;
    CFX_TRY(cfxi_w_dict_set(seen, o, w->none, err));
    if (k->kind < 0)
        CFX_TRY(add_found(w, k, path, "", o, err));
    cfx_module *m = o->as.module;
    for (int children = 0; children < 2; children++)
        for (size_t i = 0; i < m->members.size; i++) {
            const cfxi_member *e = cfxi_member_at(m, i);
            const bool child = e->kind == CFXI_MEMBER_CHILD;
            if (child != (children == 1) || (!child && ((int)e->kind != k->kind ||
                                                        e->value.kind != CFX_DATUM_TENSOR)))
                continue;
            cfx_object *found = cfxi_w_get(w, o, e->name, err);
            if (!found)
                return err->status;
            snprintf(below, sizeof below, "%s%s%s", path, path[0] ? "." : "", e->name);
            cfx_status status;
            if (child) {
                status = cfxi_w_deeper(w, err);
                if (status == CFX_OK) {
                    status = walk_module(w, k, found, below, seen, err);
                    w->depth--;
                }
            } else {
                status = add_found(w, k, path, e->name, found, err);
            }
            cfxi_w_unref(found);
            CFX_TRY(status);
        }
    return CFX_OK;
}

static cfx_object *walked(cfxi_world *w, cfx_object *self, int kind, bool named, cfx_error *err)
{
    walk k = {cfxi_w_seq_object(w, CFXI_TYPE_LIST, NULL, 0, err), named, kind};
    cfx_object *seen = k.list ? cfxi_w_dict_object(w, CFXI_TYPE_DICT, err) : NULL;
    cfx_status status = seen ? walk_module(w, &k, self, "", seen, err) : err->status;
    cfxi_w_unref(seen);
    cfx_object *it = status == CFX_OK ? cfxi_w_iterate(w, k.list, err) : NULL;
    cfxi_w_unref(k.list);
    return it;
}

METHOD(parameters) { (void)a; return walked(w, self, CFXI_MEMBER_PARAMETER, false, err); }
METHOD(named_parameters) { (void)a; return walked(w, self, CFXI_MEMBER_PARAMETER, true, err); }
METHOD(buffers) { (void)a; return walked(w, self, CFXI_MEMBER_BUFFER, false, err); }
METHOD(named_buffers) { (void)a; return walked(w, self, CFXI_MEMBER_BUFFER, true, err); }
METHOD(modules) { (void)a; return walked(w, self, -1, false, err); }
METHOD(named_modules) { (void)a; return walked(w, self, -1, true, err); }

/* Children, or pairs of their names and them; keys of a ModuleDict. 'c', 'n', 'k'. */
static cfx_object *child_list(cfxi_world *w, cfx_object *o, char what, cfx_error *err)
{
    cfx_object *list = cfxi_w_seq_object(w, CFXI_TYPE_LIST, NULL, 0, err);
    const cfx_module *m = o->as.module;
    const bool parameters_too = holds_parameters(o->cls);
    for (size_t i = 0; list && i < m->members.size; i++) {
        const cfxi_member *e = cfxi_member_at(m, i);
        if (e->kind != CFXI_MEMBER_CHILD && !(parameters_too && e->kind == CFXI_MEMBER_PARAMETER))
            continue;
        cfx_object *found = what == 'k' ? NULL : cfxi_w_get(w, o, e->name, err);
        cfx_object *name = what == 'c' ? NULL : cfxi_w_str(w, e->name, err);
        cfx_object *both[] = {name, found};
        cfx_object *row = what == 'c' ? cfxi_w_ref(found) : what == 'k' ? cfxi_w_ref(name)
                          : name && found ? cfxi_w_seq_object(w, CFXI_TYPE_TUPLE, both, 2, err)
                                          : NULL;
        if (!row || cfxi_w_list_append(list, row, err) != CFX_OK)
            cfxi_w_clear(&list);
        cfxi_w_unref(row);
        cfxi_w_unref(name);
        cfxi_w_unref(found);
    }
    return list;
}

cfx_object *cfxi_w_layer_children(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    if (o->as.module->nn == CFX_NN_NONE && !holds_parameters(o->cls))
        return cfxi_w_raise(w, err, CFXI_TypeError, "'%s' object is not iterable",
                            cfxi_w_type_name(w, o));
    const bool keys = o->as.module->nn == CFX_NN_ModuleDict || is_named(o->cls, "ParameterDict");
    return child_list(w, o, keys ? 'k' : 'c', err);
}

METHOD(children) { (void)a; return child_list(w, self, 'c', err); }
METHOD(named_children) { (void)a; return child_list(w, self, 'n', err); }
METHOD(keys) { (void)a; return child_list(w, self, 'k', err); }

/* ---- containers ---------------------------------------------------------------------------- */

int64_t cfxi_w_layer_length(const cfx_object *o)
{
    const cfx_module *m = o->as.module;
    const bool parameters_too = holds_parameters(o->cls);
    int64_t n = (int64_t)cfx_module_num_children(m);
    if (!parameters_too && !(m->nn >= CFX_NN_Sequential && m->nn <= CFX_NN_ModuleDict))
        return -1;
    for (size_t i = 0; parameters_too && i < m->members.size; i++)
        n += cfxi_member_at(m, i)->kind == CFXI_MEMBER_PARAMETER;
    return n;
}

static cfx_object *sliced(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_error *err)
{
    cfx_object *list = child_list(w, o, 'c', err);
    cfx_object *part = list ? cfxi_w_item(w, list, key, err) : NULL;
    cfx_object *cls = part ? cfxi_w_layer_class(w, o->as.module->nn, err) : NULL;
    cfx_object *made = cls ? cfxi_w_make(w, cls, err) : NULL;
    if (made) {
        made->flag = true;
        const cfx_call_args none = {0};
        if (adopt(w, made, o->as.module->nn, &none, err) != CFX_OK ||
            add_all(w, made, part, 0, err) != CFX_OK)
            cfxi_w_clear(&made);
    }
    cfxi_w_unref(cls);
    cfxi_w_unref(part);
    cfxi_w_unref(list);
    return made;
}

cfx_object *cfxi_w_layer_item(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_error *err)
{
    const cfx_nn nn = o->as.module->nn;
    const bool list = nn == CFX_NN_Sequential || nn == CFX_NN_ModuleList ||
                      is_named(o->cls, "ParameterList");
    if (list && key->type == CFXI_TYPE_SLICE && nn != CFX_NN_NONE)
        return sliced(w, o, key, err);
    if (list) {
        cfx_object *all = child_list(w, o, 'c', err);
        cfx_object *made = all ? cfxi_w_item(w, all, key, err) : NULL;
        cfxi_w_unref(all);
        return made;
    }
    if (key->type == CFXI_TYPE_STR && (nn == CFX_NN_ModuleDict ||
                                       is_named(o->cls, "ParameterDict"))) {
        cfx_object *made = cfxi_module_find(o->as.module, key->as.text.data, key->as.text.size)
                               ? cfxi_w_get(w, o, key->as.text.data, err) : NULL;
        return made || err->status != CFX_OK
                   ? made : (cfxi_w_throw_key(w, key, err), (cfx_object *)NULL);
    }
    return cfxi_w_raise(w, err, CFXI_TypeError, "'%s' object is not subscriptable with '%s'",
                        cfxi_w_type_name(w, o), cfxi_w_type_name(w, key));
}

METHOD(append)
{
    cfx_object *in[1];
    if (cfxi_w_args(w, a, "append", NULL, 1, 1, in, err) != CFX_OK ||
        add_numbered(w, self, (size_t)cfxi_w_layer_length(self), in[0], err) != CFX_OK)
        return NULL;
    return cfxi_w_ref(self);
}

METHOD(extend)
{
    cfx_object *in[1];
    if (cfxi_w_args(w, a, "extend", NULL, 1, 1, in, err) != CFX_OK ||
        add_all(w, self, in[0], (size_t)cfxi_w_layer_length(self), err) != CFX_OK)
        return NULL;
    return cfxi_w_ref(self);
}

METHOD(update)
{
    cfx_object *in[1];
    return cfxi_w_args(w, a, "update", NULL, 1, 1, in, err) == CFX_OK
               ? done(w, add_all(w, self, in[0], 0, err)) : NULL;
}

/* ---- modes --------------------------------------------------------------------------------- */

METHOD(train)
{
    cfx_object *in[1];
    static const char *const names[] = {"mode"};
    if (cfxi_w_args(w, a, "train", names, 0, 1, in, err) != CFX_OK)
        return NULL;
    const int t = in[0] ? cfxi_w_truth_of(w, in[0], err) : 1;
    if (t < 0)
        return NULL;
    cfx_module_train(self->as.module, t);
    return cfxi_w_ref(self);
}

METHOD(eval)
{
    (void)w;
    (void)a;
    (void)err;
    cfx_module_train(self->as.module, false);
    return cfxi_w_ref(self);
}

/* What changes nothing here: there is one device, and nothing is trained. */
METHOD(itself)
{
    (void)w;
    (void)a;
    (void)err;
    return cfxi_w_ref(self);
}

METHOD(to)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->args[i]->type == CFXI_TYPE_DTYPE && a->args[i]->as.i != CFX_DTYPE_FLOAT32)
            return cfxi_w_raise(w, err, CFXI_NotImplementedError, "weights of another type: give "
                                "`dtype` to the modules");
    return cfxi_w_ref(self);
}

METHOD(apply)
{
    cfx_object *in[1];
    if (cfxi_w_args(w, a, "apply", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    cfx_object *all = child_list(w, self, 'c', err);
    bool good = all != NULL;
    for (size_t i = 0; good && i < all->as.seq.n; i++) {
        good = cfxi_w_deeper(w, err) == CFX_OK;
        if (!good)
            break;
        cfx_object *same = all->as.seq.items[i]->type == CFXI_TYPE_MODULE
                               ? apply(w, all->as.seq.items[i], a, err) : cfxi_w_none(w);
        w->depth--;
        good = same != NULL;
        cfxi_w_unref(same);
    }
    cfxi_w_unref(all);
    cfx_object *result = good ? cfxi_w_call_with(w, in[0], &self, 1, err) : NULL;
    cfxi_w_unref(result);
    return result ? cfxi_w_ref(self) : NULL;
}

/* forward of torch.nn's own class: as calling it. */
METHOD(forward)
{
    if (self->as.module->nn == CFX_NN_NONE)
        return cfxi_w_raise(w, err, CFXI_NotImplementedError, "Module [%s] is missing the required "
                            "\"forward\" function", cfxi_w_type_name(w, self));
    return cfxi_w_call_module(w, self, a, err);
}

static const cfxi_builtin methods[] = {
    {"__init__", init}, {"register_buffer", register_buffer},
    {"register_parameter", register_parameter}, {"add_module", add_module},
    {"register_module", add_module}, {"parameters", parameters},
    {"named_parameters", named_parameters}, {"buffers", buffers}, {"named_buffers", named_buffers},
    {"modules", modules}, {"named_modules", named_modules}, {"children", children},
    {"named_children", named_children}, {"train", train}, {"eval", eval}, {"to", to},
    {"cpu", itself}, {"cuda", itself}, {"float", itself}, {"requires_grad_", itself},
    {"zero_grad", itself}, {"apply", apply}, {"forward", forward}, {NULL, NULL},
};

static const cfxi_builtin container_methods[] = {
    {"append", append}, {"extend", extend}, {"update", update}, {"keys", keys},
    {"values", children}, {"items", named_children}, {NULL, NULL},
};

const cfxi_builtin *cfxi_w_layer_method(cfx_nn nn, const char *name)
{
    const cfxi_builtin *row = cfxi_w_row_find(methods, name);
    if (!row && nn >= CFX_NN_Sequential && nn <= CFX_NN_ModuleDict)
        row = cfxi_w_row_find(container_methods, name);
    return row;
}

cfx_object *cfxi_w_parameter_class(cfxi_world *w, const char *name, cfx_error *err)
{
    cfx_object *base = cfxi_w_layer_class(w, CFX_NN_NONE, err);
    cfx_object *cls = base ? cfxi_w_builtin_class(w, name, base, CFXI_TYPE_MODULE, NULL, err)
                           : NULL;
    cfxi_w_unref(base);
    if (cls && cfxi_w_add_methods(w, cls, container_methods, err) != CFX_OK)
        cfxi_w_clear(&cls);
    return cls;
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
        return cfxi_w_raise(w, err, CFXI_TypeError, "%s takes its inputs by position here",
                            cfxi_w_type_name(w, o));
    for (size_t i = 0; i < a->n; i++) {
        cfx_datum d = cfxi_w_to_datum(w, a->args[i], err);
        if (d.kind == CFX_DATUM_INVALID)
            return NULL;
        in[i] = cfx_from_datum_at(here(w), d);
        cfx_datum_release(d);
    }
    const cfx_var v = cfx_call_at(here(w), o->as.module, cfx_vars_make(in, a->n));
    cfx_datum d = cfx_ok(w->scope) ? cfx_var_datum_at(here(w), v) : cfx_datum_invalid();
    if (cfx_ok(w->scope))
        made = cfxi_w_from_datum(w, d, err);
    else
        failed(w, err);
    cfx_datum_release(d);
    cfx_scope_return(w->scope, mark, cfx_var_empty());
    return made;
}

cfx_object *cfxi_w_call_module(cfxi_world *w, cfx_object *o, const cfx_call_args *a, cfx_error *err)
{
    if (!w->recording && !cfxi_w_any_value(a, false))
        return run_module(w, o, a, err);
    const cfxi_place *p = cfxi_places_find(&w->places, o->as.module);
    if (p)
        return cfxi_w_record(w, CFX_OP_CALL_MODULE, p->path, a, err);
    return cfxi_w_raise(w, err, CFXI_NameError,
                        "a %s is called that is no part of the model: assign "
                        "it to an attribute of a module in __init__, or put it into an "
                        "nn.ModuleList", cfxi_w_type_name(w, o));
}

/* ---- copies -------------------------------------------------------------------------------- */

static cfx_object *copy_module(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    cfx_object *key;
    cfx_object *value;
    cfx_module *m = cfxi_module_copy(o->as.module, err);
    cfx_object *made = m ? cfxi_w_layer_object(w, m, err) : NULL;
    cfx_module_release(m);
    if (!made)
        return NULL;
    cfx_object *cls = made->cls;
    made->cls = cfxi_w_ref(o->cls);
    cfxi_w_unref(cls);
    made->flag = o->flag;
    for (size_t at = 0; made && cfxi_w_dict_next(o->attrs, &at, &key, &value);) {
        cfx_object *copy = cfxi_w_deep_copy(w, value, err);
        if (!copy || cfxi_w_layer_set(w, made, key->as.text.data, copy, err) != CFX_OK)
            cfxi_w_clear(&made);
        cfxi_w_unref(copy);
    }
    for (size_t i = 0; made && i < made->as.module->members.size; i++) {
        const cfxi_member *e = cfxi_member_at(made->as.module, i);
        const bool part = e->kind == CFXI_MEMBER_CHILD || e->value.kind == CFX_DATUM_TENSOR;
        if (!part || cfxi_w_dict_get(made->attrs, e->name))
            continue;
        cfx_object *part_of = cfxi_w_get(w, o, e->name, err);
        cfx_object *copy = part_of ? cfxi_w_deep_copy(w, part_of, err) : NULL;
        if (!copy || cfxi_w_layer_set(w, made, e->name, copy, err) != CFX_OK)
            cfxi_w_clear(&made);
        cfxi_w_unref(copy);
        cfxi_w_unref(part_of);
    }
    return made;
}

static cfx_object *copy_items(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    cfx_object *key;
    cfx_object *value;
    const bool dict = o->type == CFXI_TYPE_DICT;
    cfx_object *made = cfxi_w_object_new(w, (cfxi_type)o->type, err);
    if (made)
        made->cls = cfxi_w_ref(o->cls);
    for (size_t at = 0; made && dict && cfxi_w_dict_next(o, &at, &key, &value);) {
        cfx_object *copy = cfxi_w_deep_copy(w, value, err);
        if (!copy || cfxi_w_dict_set(made, key, copy, err) != CFX_OK)
            cfxi_w_clear(&made);
        cfxi_w_unref(copy);
    }
    for (size_t i = 0; made && !dict && i < o->as.seq.n; i++) {
        cfx_object *copy = cfxi_w_deep_copy(w, o->as.seq.items[i], err);
        if (!copy || cfxi_w_list_append(made, copy, err) != CFX_OK)
            cfxi_w_clear(&made);
        cfxi_w_unref(copy);
    }
    return made;
}

cfx_object *cfxi_w_deep_copy(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    cfx_object *made;
    if (cfxi_w_deeper(w, err) != CFX_OK)
        return NULL;
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_MODULE: made = copy_module(w, o, err); break;
    case CFXI_TYPE_LIST:
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_DICT: made = copy_items(w, o, err); break;
    case CFXI_TYPE_TENSOR:
        made = cfxi_w_compute(w, CFX_OP_CALL_METHOD, "clone",
                              &(cfx_call_args){.args = &o, .n = 1}, err);
        if (made)
            made->flag = o->flag;
        break;
    default: made = cfxi_w_ref(o); break;
    }
    w->depth--;
    return made;
}
