/* layer_method.c - methods of nn.Module. */
#include "world_impl.h"

#include <stdio.h>

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
    if (kind != CFXI_MEMBER_CHILD && cfxi_w_layer_put(w, self, name, in[1], kind, err) != CFX_OK)
        return NULL;
    return cfxi_w_done(w, none ? cfxi_w_dict_put(self->attrs, name, in[1], err)
                               : cfxi_w_layer_set(w, self, name, in[1], err));
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

CFXI_BUILTIN(parameters) { return walked(w, self, CFXI_MEMBER_PARAMETER, false, err); }
CFXI_BUILTIN(named_parameters) { return walked(w, self, CFXI_MEMBER_PARAMETER, true, err); }
CFXI_BUILTIN(buffers) { return walked(w, self, CFXI_MEMBER_BUFFER, false, err); }
CFXI_BUILTIN(named_buffers) { return walked(w, self, CFXI_MEMBER_BUFFER, true, err); }
CFXI_BUILTIN(modules) { return walked(w, self, -1, false, err); }
CFXI_BUILTIN(named_modules) { return walked(w, self, -1, true, err); }

/* ---- modes --------------------------------------------------------------------------------- */

CFXI_BUILTIN(train)
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

CFXI_BUILTIN(eval)
{
    cfx_module_train(self->as.module, false);
    return cfxi_w_ref(self);
}

/* What changes nothing here: there is one device, and nothing is trained. */
CFXI_BUILTIN(itself) { return cfxi_w_ref(self); }

CFXI_BUILTIN(to)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->args[i]->type == CFXI_TYPE_DTYPE && a->args[i]->as.i != CFX_DTYPE_FLOAT32)
            return cfxi_w_raise(w, err, CFXI_NotImplementedError, "weights of another type: give "
                                "`dtype` to the modules");
    return cfxi_w_ref(self);
}

CFXI_BUILTIN(apply)
{
    cfx_object *in[1];
    if (cfxi_w_args(w, a, "apply", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    cfx_object *all = cfxi_w_layer_list(w, self, 'c', err);
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
CFXI_BUILTIN(forward)
{
    if (self->as.module->nn == CFX_NN_NONE)
        return cfxi_w_raise(w, err, CFXI_NotImplementedError, "Module [%s] is missing the required "
                            "\"forward\" function", cfxi_w_type_name(w, self));
    return cfxi_w_call_module(w, self, a, err);
}

static const cfxi_builtin methods[] = {
    {"__init__", cfxi_w_layer_init}, {"register_buffer", register_buffer},
    {"register_parameter", register_parameter}, {"add_module", add_module},
    {"register_module", add_module}, {"parameters", parameters},
    {"named_parameters", named_parameters}, {"buffers", buffers}, {"named_buffers", named_buffers},
    {"modules", modules}, {"named_modules", named_modules}, {"train", train}, {"eval", eval},
    {"to", to}, {"cpu", itself}, {"cuda", itself}, {"float", itself}, {"requires_grad_", itself},
    {"zero_grad", itself}, {"apply", apply}, {"forward", forward}, {NULL, NULL},
};

const cfxi_builtin *cfxi_w_layer_method(cfx_nn nn, const char *name)
{
    const cfxi_builtin *row = cfxi_w_row_find(methods, name);
    return row ? row : cfxi_w_list_method(nn, name);
}
