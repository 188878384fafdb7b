/* layer_make.c - what the constructors of torch.nn make of their arguments. */
#include "world_impl.h"

#include <cfx/layers.h>

#include <stdio.h>

/* ---- constructors -------------------------------------------------------------------------- */

/* The i-th parameter that an argument is for; SIZE_MAX if there is none. */
static size_t param_of(cfx_nn nn, const char *name)
{
    cfx_schema_param p;
    for (size_t i = 0; cfxi_ops_nn_param(nn, i, &p); i++)
        if (cfxi_ops_text_is_word(p.name, name))
            return i;
    return SIZE_MAX;
}

static cfx_status nn_args(cfxi_world *w, cfx_nn nn, const cfx_call_args *a, cfx_var *out, size_t *n,
                          cfx_error *err)
{
    const size_t plain = a->n - a->n_named;
    cfx_schema_param p;
    *n = 0;
    for (size_t i = 0; i < a->n; i++) {
        const char *name = i < plain ? NULL : a->names[i - plain];
        if (name && strcmp(name, "device") == 0)
            continue;
        const size_t at = name ? param_of(nn, name) : i;
        if (at >= CFXI_MOST_NN_PARAMS || !cfxi_ops_nn_param(nn, at, &p) ||
            (!name && p.keyword_only))
            return name ? cfxi_world_throw(w, err, CFXI_TypeError,
                                           "torch.nn.%s() got an unexpected "
                                           "keyword argument '%s'",
                                           cfxi_ops_nn_name(nn), name)
                        : cfxi_world_throw(w, err, CFXI_TypeError,
                                           "torch.nn.%s() takes %zu positional "
                                           "arguments but %zu were given",
                                           cfxi_ops_nn_name(nn), i, plain);
        if (out[at].kind != CFX_VAR_EMPTY)
            return cfxi_world_throw(w, err, CFXI_TypeError, "torch.nn.%s() got multiple values for "
                                    "argument '%s'", cfxi_ops_nn_name(nn), name);
        cfx_datum d = cfxi_world_to_datum(w, a->args[i], err);
        if (d.kind == CFX_DATUM_INVALID)
            return err->status;
        out[at] = cfx_var_from_datum_at(cfxi_world_here(w), d);
        cfx_datum_release(d);
        if (!cfx_scope_ok(w->scope))
            return cfxi_world_scope_failed(w, err);
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
        m = cfx_nn_make_at(cfxi_world_here(w), nn, args, n);
        if (!m)
            cfxi_world_scope_failed(w, err);
    }
    cfx_scope_reset(w->scope, mark, cfx_var_empty());
    return m;
}

cfx_status cfxi_world_layer_check(const cfxi_world *w, const cfx_object *o, cfx_error *err)
{
    if (!w->recording || !o->outside)
        return CFX_OK;
    return cfx_error_set(err, CFX_E_UNSUPPORTED,
                         "cannot change the parts of this %.60s in forward: the change would "
                         "happen once, during capture, not in each call; do it in __init__",
                         cfxi_world_type_name(o));
}

cfx_status cfxi_world_layer_add_at(cfxi_world *w, cfx_object *o, size_t i, cfx_object *v,
                                   cfx_error *err)
{
    char name[24];
    CFX_TRY(cfxi_world_layer_check(w, o, err));
    snprintf(name, sizeof name, "%zu", i);
    return cfxi_world_layer_set(w, o, name, v, err);
}

cfx_status cfxi_world_layer_add_all(cfxi_world *w, cfx_object *o, cfx_object *from, size_t first,
                                    cfx_error *err)
{
    cfx_object *key;
    cfx_object *value;
    CFX_TRY(cfxi_world_layer_check(w, o, err));
    if (from->type == CFXI_TYPE_DICT) {
        for (size_t at = 0; cfxi_world_dict_next(from, &at, &key, &value);) {
            if (key->type != CFXI_TYPE_STR)
                return cfxi_world_throw(w, err, CFXI_TypeError, "module names must be str");
            CFX_TRY(cfxi_world_layer_set(w, o, key->as.text.data, value, err));
        }
        return CFX_OK;
    }
    cfx_object *items = cfxi_world_collect(w, CFXI_TYPE_LIST, from, err);
    cfx_status status = items ? CFX_OK : err->status;
    for (size_t i = 0; status == CFX_OK && i < items->as.seq.n; i++)
        status = cfxi_world_layer_add_at(w, o, first + i, items->as.seq.items[i], err);
    cfxi_world_unref(items);
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
    CFX_TRY(cfxi_world_args(w, a, "Transformer", encoder ? names : decoder, 2, encoder ? 5 : 3, in,
                            err));
    CFX_TRY(cfxi_world_index_of(w, in[1], "num_layers", &n, err));
    if (in[0]->type != CFXI_TYPE_MODULE || n < 0 || n > 10000)
        return cfxi_world_throw(w, err, CFXI_TypeError,
                                "expected a layer, and num_layers from 0 to 10000");
    cfx_module *m = cfxi_nn_new(cfxi_world_here(w), CFX_NN_ModuleList);
    cfx_object *layers = m ? cfxi_world_layer_object(w, m, err) : NULL;
    cfx_module_release(m);
    cfx_status status = layers ? CFX_OK : cfxi_base_nomem(err);
    for (size_t i = 0; status == CFX_OK && i < (size_t)n; i++) {
        cfx_object *copy = cfxi_world_deep_copy(w, in[0], err);
        status = copy ? cfxi_world_layer_add_at(w, layers, i, copy, err) : err->status;
        cfxi_world_unref(copy);
    }
    if (status == CFX_OK)
        status = cfxi_world_layer_set(w, o, "layers", layers, err);
    cfxi_world_unref(layers);
    if (status == CFX_OK)
        status = cfxi_world_layer_put(w, o, "num_layers", in[1], CFXI_MEMBER_ATTRIBUTE, err);
    for (size_t i = 3; status == CFX_OK && encoder && i < 5; i++)
        status = cfxi_world_layer_put(w, o, names[i], in[i] ? in[i] : w->truths[1],
                                      CFXI_MEMBER_ATTRIBUTE, err);
    if (status == CFX_OK && in[2] && in[2]->type == CFXI_TYPE_MODULE)
        status = cfxi_world_layer_set(w, o, "norm", in[2], err);
    else if (status == CFX_OK)
        status = cfxi_world_layer_put(w, o, "norm", w->none, CFXI_MEMBER_ATTRIBUTE, err);
    return status;
}

cfx_status cfxi_world_layer_adopt(cfxi_world *w, cfx_object *o, cfx_nn nn, const cfx_call_args *a,
                                  cfx_error *err)
{
    static const cfx_call_args none = {0};
    const bool container = cfxi_world_is_container(nn);
    const bool stack = nn == CFX_NN_TransformerEncoder || nn == CFX_NN_TransformerDecoder;
    cfx_module *m;
    if (stack) {
        m = cfxi_nn_new(cfxi_world_here(w), nn);
    } else {
        m = cfx_module_retain(make_nn(w, nn, container ? &none : a, err));
    }
    if (!m)
        return stack ? cfxi_world_scope_failed(w, err) : err->status;
    cfx_module_release(o->as.module);
    o->as.module = m;
    if (stack)
        return init_stack(w, o, a, err);
    if (!container || a->n == 0)
        return CFX_OK;
    const bool many = nn == CFX_NN_Sequential && a->args[0]->type != CFXI_TYPE_DICT;
    for (size_t i = 0; many && i < a->n; i++) {
        if (a->args[i]->type != CFXI_TYPE_MODULE)
            return cfxi_world_throw(w, err, CFXI_TypeError, "'%s' is not a Module subclass",
                                    cfxi_world_type_name(a->args[i]));
        CFX_TRY(cfxi_world_layer_add_at(w, o, i, a->args[i], err));
    }
    return many ? CFX_OK : cfxi_world_layer_add_all(w, o, a->args[0], 0, err);
}

cfx_object *cfxi_world_layer_init(cfxi_world *w, cfx_object *self, const cfx_call_args *a,
                                  cfx_error *err)
{
    const cfx_nn nn = self->cls->as.cls.nn;
    self->flag = true;
    if (nn != CFX_NN_NONE)
        return cfxi_world_done(w, cfxi_world_layer_adopt(w, self, nn, a, err));
    if (a->n == 1 && cfxi_world_holds_parameters(self->cls))
        return cfxi_world_done(w, cfxi_world_layer_add_all(w, self, a->args[0], 0, err));
    if (a->n > 0)
        return cfxi_world_raise(w, err, CFXI_TypeError,
                                "Module.__init__() takes 1 positional argument "
                                "but %zu were given",
                                a->n + 1);
    return cfxi_world_none(w);
}
