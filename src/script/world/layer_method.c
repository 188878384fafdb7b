/* layer_method.c - methods of nn.Module. */
#include "world_impl.h"

/* register_buffer, register_parameter, add_module: name and value. */
static cfx_object *add_named(cfxi_world *w, cfx_object *self, const cfx_call_args *a,
                             const char *method, cfxi_member_kind kind, cfx_error *err)
{
    static const char *const names[] = {"name", "tensor", "persistent"};
    static const char *const others[] = {"name", "param"};
    static const char *const children[] = {"name", "module"};
    cfx_object *in[3];
    const bool buffer = kind == CFXI_MEMBER_BUFFER;
    if (cfxi_world_args(w, a, method,
                        buffer                      ? names
                        : kind == CFXI_MEMBER_CHILD ? children
                                                    : others,
                        2, buffer ? 3 : 2, in, err) != CFX_OK)
        return NULL;
    if (in[0]->type != CFXI_TYPE_STR)
        return cfxi_world_raise(w, err, CFXI_TypeError, "the name must be a str, not '%s'",
                                cfxi_world_type_name(in[0]));
    const bool none = in[1]->type == CFXI_TYPE_NONE;
    const bool fits = kind == CFXI_MEMBER_CHILD ? in[1]->type == CFXI_TYPE_MODULE
                                                : in[1]->type == CFXI_TYPE_TENSOR;
    if (!none && !fits)
        return cfxi_world_raise(w, err, CFXI_TypeError,
                                "%s() does not accept an object of type '%s'", method,
                                cfxi_world_type_name(in[1]));
    if (cfxi_world_layer_check(w, self, err) != CFX_OK)
        return NULL;
    const char *name = in[0]->as.text.data;
    if (kind != CFXI_MEMBER_CHILD &&
        cfxi_world_layer_put(w, self, name, in[1], kind, err) != CFX_OK)
        return NULL;
    return cfxi_world_done(w, none ? cfxi_world_dict_put(self->attrs, name, in[1], err)
                               : cfxi_world_layer_set(w, self, name, in[1], err));
}

CFXI_BUILTIN(register_buffer)
{
    return add_named(w, self, a, "register_buffer", CFXI_MEMBER_BUFFER, err);
}

CFXI_BUILTIN(register_parameter)
{
    return add_named(w, self, a, "register_parameter", CFXI_MEMBER_PARAMETER, err);
}

CFXI_BUILTIN(add_module) { return add_named(w, self, a, "add_module", CFXI_MEMBER_CHILD, err); }

/* ---- walking ------------------------------------------------------------------------------- */

typedef struct walk {
    cfxi_world *w;
    cfx_object *list;
    bool named;
    int kind;            /* a cfxi_member_kind; -1: modules */
    cfx_buffer path;
    cfxi_pointers seen;  /* modules and tensors: each comes once, by the first path */
} walk;

static cfx_status add_found(walk *k, cfx_object *o, cfx_error *err)
{
    cfxi_world *w = k->w;
    if (!k->named)
        return cfxi_world_list_append(k->list, o, err);
    cfx_object *both[] = {cfxi_world_text_object(w, CFXI_TYPE_STR, k->path.data, k->path.size, err),
                          cfxi_world_ref(o)};
    cfx_object *pair = cfxi_world_seq_take(w, CFXI_TYPE_TUPLE, both, 2, err);
    cfx_status status = pair ? cfxi_world_list_append(k->list, pair, err) : err->status;
    cfxi_world_unref(pair);
    return status;
}

static cfx_status walk_members(walk *k, cfx_object *o, bool children, cfx_error *err);

/* The tensors of a module and of those below it, or the modules themselves; parents first. */
static cfx_status walk_object(walk *k, cfx_object *o, cfx_error *err)
{
    const bool module = o->type == CFXI_TYPE_MODULE;
    void *key = module ? (void *)o->as.module : (void *)o->as.tensor;
    if (cfxi_base_pointers_get(&k->seen, key))
        return CFX_OK;
    if (!cfxi_base_pointers_set(&k->seen, key, key, k->w->allocator))
        return cfxi_base_nomem(err);
    if (module == (k->kind < 0))
        CFX_TRY(add_found(k, o, err));
    if (!module)
        return CFX_OK;
    CFX_TRY(cfxi_world_deeper(k->w, err));
    cfx_status status = walk_members(k, o, false, err);
    if (status == CFX_OK)
        status = walk_members(k, o, true, err);
    k->w->depth--;
    return status;
}

static cfx_status walk_member(walk *k, cfx_object *o, const char *name, cfx_error *err)
{
    const size_t size = k->path.size;
    if (cfx_buffer_append(&k->path, ".", size > 0) != CFX_OK)
        return cfxi_base_nomem(err);
    CFX_TRY(cfxi_world_put(&k->path, name, err));
    cfx_object *found = cfxi_world_get(k->w, o, name, err);
    cfx_status status = found ? CFX_OK : err->status;
    if (found && (found->type == CFXI_TYPE_MODULE || found->type == CFXI_TYPE_TENSOR))
        status = walk_object(k, found, err);
    cfxi_world_unref(found);
    k->path.size = size;
    return status;
}

static cfx_status walk_members(walk *k, cfx_object *o, bool children, cfx_error *err)
{
    const cfx_module *m = o->as.module;
    for (size_t i = 0; i < m->members.size; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        if (children ? e->kind == CFXI_MEMBER_CHILD
                     : (int)e->kind == k->kind && e->value.kind == CFX_DATUM_TENSOR)
            CFX_TRY(walk_member(k, o, e->name, err));
    }
    return CFX_OK;
}

static cfx_object *walked(cfxi_world *w, cfx_object *self, int kind, bool named, cfx_error *err)
{
    walk k = {.w = w,
              .list = cfxi_world_seq_object(w, CFXI_TYPE_LIST, NULL, 0, err),
              .named = named,
              .kind = kind};
    cfx_buffer_init(&k.path, w->allocator);
    cfx_object *it = k.list && walk_object(&k, self, err) == CFX_OK
                         ? cfxi_world_iterate(w, k.list, err) : NULL;
    cfxi_base_pointers_free(&k.seen, w->allocator);
    cfx_buffer_free(&k.path);
    cfxi_world_unref(k.list);
    return it;
}

CFXI_BUILTIN(parameters) { return walked(w, self, CFXI_MEMBER_PARAMETER, false, err); }
CFXI_BUILTIN(named_parameters) { return walked(w, self, CFXI_MEMBER_PARAMETER, true, err); }
CFXI_BUILTIN(buffers) { return walked(w, self, CFXI_MEMBER_BUFFER, false, err); }
CFXI_BUILTIN(named_buffers) { return walked(w, self, CFXI_MEMBER_BUFFER, true, err); }
CFXI_BUILTIN(modules) { return walked(w, self, -1, false, err); }
CFXI_BUILTIN(named_modules) { return walked(w, self, -1, true, err); }

/* ---- modes --------------------------------------------------------------------------------- */

static cfx_object *switch_mode(cfxi_world *w, cfx_object *self, bool mode, cfx_error *err)
{
    if (w->recording)
        return cfx_error_set(err, CFX_E_UNSUPPORTED,
                             "cannot switch the mode of this %.60s in forward: the switch would "
                             "happen once, during capture, not in each call; pass training= to "
                             "the functions of torch.nn.functional instead",
                             cfxi_world_type_name(self)), NULL;
    cfx_module_train(self->as.module, mode);
    return cfxi_world_ref(self);
}

CFXI_BUILTIN(train)
{
    cfx_object *in[1];
    static const char *const names[] = {"mode"};
    if (cfxi_world_args(w, a, "train", names, 0, 1, in, err) != CFX_OK)
        return NULL;
    const int t = in[0] ? cfxi_world_truth_of(w, in[0], err) : 1;
    return t < 0 ? NULL : switch_mode(w, self, t, err);
}

CFXI_BUILTIN(eval) { return switch_mode(w, self, false, err); }

/* What changes nothing here: there is one device, and nothing is trained. */
CFXI_BUILTIN(itself) { return cfxi_world_ref(self); }

/* Whether all weights are of that dtype, as far as they are floating: then it changes nothing. */
static bool has_dtype(const cfx_module *m, cfx_dtype dtype, int depth)
{
    for (size_t i = 0; i < m->members.size && depth < CFXI_DEEPEST; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        if (e->kind == CFXI_MEMBER_CHILD && e->child && !has_dtype(e->child, dtype, depth + 1))
            return false;
        const cfx_dtype own = e->value.kind == CFX_DATUM_TENSOR
                                  ? cfx_tensor_dtype(e->value.as.tensor) : CFX_DTYPE_BOOL;
        if (cfx_dtype_is_float(own) && own != dtype)
            return false;
    }
    return depth < CFXI_DEEPEST;
}

static cfx_object *with_dtype(cfx_object *self, cfx_dtype dtype, cfx_error *err)
{
    if (has_dtype(self->as.module, dtype, 0))
        return cfxi_world_ref(self);
    return cfx_error_set(err, CFX_E_UNSUPPORTED, "to() cannot change the dtype of weights here; "
                         "pass `dtype` when you create the modules"), NULL;
}

CFXI_BUILTIN(to)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->args[i]->type == CFXI_TYPE_DTYPE)
            return with_dtype(self, (cfx_dtype)a->args[i]->as.i, err);
    return cfxi_world_ref(self);
}

CFXI_BUILTIN(to_float) { return with_dtype(self, CFX_DTYPE_FLOAT32, err); }

CFXI_BUILTIN(apply)
{
    cfx_object *in[1];
    if (cfxi_world_args(w, a, "apply", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    cfx_object *all = cfxi_world_layer_list(w, self, 'c', true, err);
    bool good = all != NULL;
    for (size_t i = 0; good && i < all->as.seq.n; i++) {
        good = cfxi_world_deeper(w, err) == CFX_OK;
        if (!good)
            break;
        cfx_object *same = all->as.seq.items[i]->type == CFXI_TYPE_MODULE
                               ? apply(w, all->as.seq.items[i], a, err) : cfxi_world_none(w);
        w->depth--;
        good = same != NULL;
        cfxi_world_unref(same);
    }
    cfxi_world_unref(all);
    cfx_object *result = good ? cfxi_world_call_with(w, in[0], &self, 1, err) : NULL;
    cfxi_world_unref(result);
    return result ? cfxi_world_ref(self) : NULL;
}

/* forward of torch.nn's own class: as calling it. */
CFXI_BUILTIN(forward)
{
    if (self->as.module->nn == CFX_NN_NONE)
        return cfxi_world_raise(w, err, CFXI_NotImplementedError,
                                "Module [%s] is missing the required "
                                "\"forward\" function",
                                cfxi_world_type_name(self));
    return cfxi_world_call_module(w, self, a, err);
}

static const cfxi_builtin methods[] = {
    {"__init__", cfxi_world_layer_init}, {"register_buffer", register_buffer},
    {"register_parameter", register_parameter}, {"add_module", add_module},
    {"register_module", add_module}, {"parameters", parameters},
    {"named_parameters", named_parameters}, {"buffers", buffers}, {"named_buffers", named_buffers},
    {"modules", modules}, {"named_modules", named_modules}, {"train", train}, {"eval", eval},
    {"to", to}, {"cpu", itself}, {"cuda", itself}, {"float", to_float}, {"requires_grad_", itself},
    {"zero_grad", itself}, {"apply", apply}, {"forward", forward}, {NULL, NULL},
};

const cfxi_builtin *cfxi_world_layer_method(cfx_nn nn, const char *name)
{
    const cfxi_builtin *row = cfxi_world_row_find(methods, name);
    return row ? row : cfxi_world_list_method(nn, name);
}
