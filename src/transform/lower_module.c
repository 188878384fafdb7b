/* lower_module.c - calls of modules of torch.nn as calls of rows: what is not passed is an
 * attribute of the module, by the name that the class has for it (ops.def) or the row's. */
#include "lower_impl.h"

#include <stdio.h>

cfx_value cfxi_lower_attribute(cfxi_lower *l, cfx_node *n, const char *name)
{
    const char *path = n->callee->ref->name->data;
    cfx_value v;
    cfx_value dtype;
    char full[512];
    if (cfxi_module_attr(l->modules, l->g, path, name, &v, l->err) != CFX_OK)
        return cfx_invalid();
    if (v.kind != CFX_KIND_HOST)
        return v;
    if (snprintf(full, sizeof full, "%s%s%s", path, path[0] ? "." : "", name) >= (int)sizeof full)
        return v;
    if (cfxi_module_attr(l->modules, l->g, full, "dtype", &dtype, l->err) != CFX_OK ||
        dtype.kind != CFX_KIND_DTYPE)
        return v;
    cfx_value_discard(l->g, v);
    cfx_node *reader = cfxi_add_reader(n, full, l->err);
    if (!reader || cfxi_lower_note(l, reader) != CFX_OK)
        return cfx_invalid();
    return cfx_from_node(reader);
}

/* What the call does not pass. */
static cfx_status fill_in(cfxi_lower *l, cfx_node *n, const char *list, cfxi_lowered *c)
{
    cfxi_spelled_param param;
    char name[CFX_SPELLING_SIZE];
    const size_t passed = cfx_node_num_args(n);
    for (size_t i = passed; cfxi_listed_param(c->op, list, i, &param); i++) {
        if ((param.param < c->n && c->args[param.param].kind != CFX_KIND_INVALID) ||
            cfxi_text_is(param.name, "self", 4) || param.name.size >= sizeof name)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)param.name.size, param.name.text);
        cfx_value v = cfxi_lower_attribute(l, n, strcmp(name, "train") == 0 ? "training" : name);
        CFX_TRY(l->err->status);
        if (v.kind != CFX_KIND_INVALID && param.param < c->n)
            c->args[param.param] = v;
    }
    return CFX_OK;
}

/* inplace=True, return_indices=True: attributes that are no parameters of the row. */
static cfx_status ask_switches(cfxi_lower *l, cfx_node *n, bool *in_place, bool *indices)
{
    const cfx_value a = cfxi_lower_attribute(l, n, "inplace");
    CFX_TRY(l->err->status);
    const cfx_value b = cfxi_lower_attribute(l, n, "return_indices");
    CFX_TRY(l->err->status);
    *in_place = a.kind == CFX_KIND_BOOL && a.as.b;
    *indices = b.kind == CFX_KIND_BOOL && b.as.b;
    return CFX_OK;
}

/* The same call with its attributes as keywords: a call_module that is bound like a function. */
static cfx_status set_keywords(cfxi_lower *l, cfx_node *n, const char *list, cfxi_lowered *c,
                               bool in_place, bool indices)
{
    cfx_value pairs[2 * CFXI_MOST_PARAMS + 4];
    size_t k = 0;
    cfxi_spelled_param param;
    for (size_t i = cfx_node_num_args(n); cfxi_listed_param(c->op, list, i, &param); i++) {
        if (param.param >= c->n || c->args[param.param].kind == CFX_KIND_INVALID)
            continue;
        pairs[k++] = cfx_value_str(l->g, param.name.text, param.name.size, l->err);
        pairs[k++] = c->args[param.param];
    }
    for (uint32_t i = 0; n->kwargs && i + 1 < n->kwargs->size && k < 2 * CFXI_MOST_PARAMS; i += 2) {
        pairs[k++] = n->kwargs->items[i];
        pairs[k++] = n->kwargs->items[i + 1];
    }
    if (in_place) {
        pairs[k++] = cfx_value_str(l->g, "inplace", 7, l->err);
        pairs[k++] = cfx_bool(true);
    }
    if (indices && cfx_operator_find_param(c->op, "return_indices") == SIZE_MAX) {
        pairs[k++] = cfx_value_str(l->g, "return_indices", 14, l->err);
        pairs[k++] = cfx_bool(true);
    }
    cfx_value kwargs = cfx_value_seq(l->g, CFX_KIND_DICT, pairs, k, l->err);
    if (kwargs.kind == CFX_KIND_INVALID)
        return l->err->status;
    cfx_status status = cfx_node_set_kwargs(n, kwargs, l->err);
    if (status != CFX_OK)
        cfx_value_discard(l->g, kwargs);
    return status;
}

static cfx_status lower_as(cfxi_lower *l, cfx_node *n, cfx_operator op, const char *list)
{
    cfxi_lowered c;
    bool in_place = false;
    bool indices = false;
    cfxi_lowered_begin(&c, op);
    for (uint32_t i = 0; n->kwargs && i + 1 < n->kwargs->size; i += 2) {  /* no need to ask */
        cfxi_spelled_param param;
        const cfx_str *key = n->kwargs->items[i].as.str;
        for (size_t k = 0; cfxi_listed_param(op, list, k, &param); k++)
            if (cfxi_text_is(param.name, key->data, key->size) && param.param < c.n)
                c.args[param.param] = n->kwargs->items[i + 1];
    }
    cfxi_lowered given = c;
    CFX_TRY(fill_in(l, n, list, &c));
    CFX_TRY(ask_switches(l, n, &in_place, &indices));
    for (size_t i = 0; i < c.n; i++)  /* what is passed by keyword stays one */
        if (given.args[i].kind != CFX_KIND_INVALID)
            c.args[i] = cfx_invalid();
    CFX_TRY(set_keywords(l, n, list, &c, in_place, indices));
    if (!cfxi_lower_bind(l, n, op, list, false, &c)) {
        CFX_TRY(l->err->status);
        return cfxi_lower_refuse(l, n, "%s", c.why);
    }
    return cfxi_lower_write(l, n, &c);
}

cfx_status cfxi_lower_module(cfxi_lower *l, cfx_node *n)
{
    const char *path = n->callee->ref->name->data;
    cfx_buffer name;
    bool done = false;
    cfx_buffer_init(&name, l->g->allocator);
    cfx_status status = cfxi_module_class(l->modules, path, &name, l->err);
    if (status == CFX_OK && name.size == 0) {
        status = cfxi_lower_refuse(l, n, "'%.100s' is no module whose class says what it computes",
                                   path);
        done = true;
    }
    if (status == CFX_OK && !done)
        status = cfxi_lower_special(l, n, name.data, &done);
    if (status == CFX_OK && !done) {
        const cfxi_op_name found = cfxi_op_lookup(name.data, name.size);
        if (cfx_operator_of_class(name.data))
            status = lower_as(l, n, found.op, cfxi_spelling_list(found.spelling));
        else
            status = cfxi_lower_refuse(l, n, "the class %.100s is not in the operator table",
                                       name.data);
    }
    cfx_buffer_free(&name);
    return status;
}
