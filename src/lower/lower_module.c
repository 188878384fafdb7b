/* lower_module.c - calls of modules of torch.nn as calls of rows: what is not passed is an
 * attribute of the module, by the name that the class has for it (ops.def) or the row's. */
#include "lower_impl.h"

#include <stdio.h>

/* ---- attributes ---------------------------------------------------------------------------- */

const char *cfxi_lower_path(cfxi_lower *l, const char *path)
{
    const cfx_module_tree *m = l->modules;
    const void *id = l->options.join_tied && m->identity ? m->identity(m->ctx, path) : NULL;
    const char *first = id ? cfxi_base_pointers_get(&l->tied, id) : path;
    const size_t size = strlen(path) + 1;
    if (first)
        return first;
    char *copy = cfxi_base_alloc(l->g->allocator, size);
    if (copy && cfxi_base_pointers_set(&l->tied, id, copy, l->g->allocator))
        return memcpy(copy, path, size);
    cfxi_base_free(l->g->allocator, copy, size);
    cfxi_base_nomem(l->err);
    return NULL;
}

void cfxi_lower_paths_free(cfxi_lower *l)
{
    size_t at = 0;
    for (char *path; (path = cfxi_base_pointers_next(&l->tied, &at)) != NULL;)
        cfxi_base_free(l->g->allocator, path, strlen(path) + 1);
    cfxi_base_pointers_free(&l->tied, l->g->allocator);
}

cfx_value cfxi_lower_attribute(cfxi_lower *l, cfx_node *n, const char *name)
{
    const char *path = n->callee->ref->name->data;
    cfx_value v;
    cfx_value dtype;
    char full[512];
    if (cfxi_ops_module_attr(l->modules, l->g, path, name, &v, l->err) != CFX_OK)
        return cfx_value_invalid();
    if (v.kind != CFX_KIND_HOST)
        return v;
    if (snprintf(full, sizeof full, "%s%s%s", path, path[0] ? "." : "", name) >= (int)sizeof full)
        return v;
    if (cfxi_ops_module_attr(l->modules, l->g, full, "dtype", &dtype, l->err) != CFX_OK ||
        dtype.kind != CFX_KIND_DTYPE)
        return v;
    cfx_value_discard(l->g, v);
    const char *first = cfxi_lower_path(l, full);
    cfx_node *reader = first ? cfxi_analysis_add_reader(n, first, l->err) : NULL;
    if (!reader || cfxi_lower_note(l, reader) != CFX_OK)
        return cfx_value_invalid();
    return cfx_value_node(reader);
}

/* ---- the row of a class -------------------------------------------------------------------- */

enum { MOST_PAIRS = CFXI_MOST_PARAMS + 4 };

typedef struct pairs {
    cfx_value items[2 * MOST_PAIRS];  /* keyword, value */
    size_t n;
} pairs;

static void add_pair(cfxi_lower *l, pairs *p, cfx_schema_text name, cfx_value v)
{
    if (p->n + 2 > 2 * MOST_PAIRS)
        return;
    p->items[p->n++] = cfx_value_str(l->g, name.text, name.size, l->err);
    p->items[p->n++] = v;
}

static bool is_passed(const cfx_node *n, cfx_schema_text name)
{
    for (uint32_t i = 0; n->kwargs && i + 1 < n->kwargs->size; i += 2)
        if (cfxi_ops_text_is(name, n->kwargs->items[i].as.str->data,
                             n->kwargs->items[i].as.str->size))
            return true;
    return false;
}

/* Adds the attribute of this name, if the module has it. */
static cfx_status add_attribute(cfxi_lower *l, cfx_node *n, cfx_schema_text name, pairs *p)
{
    char text[CFX_SPELLING_SIZE];
    snprintf(text, sizeof text, "%.*s", (int)name.size, name.text);
    cfx_value v = cfxi_lower_attribute(l, n, strcmp(text, "train") == 0 ? "training" : text);
    CFX_TRY(l->err->status);
    if (v.kind != CFX_KIND_INVALID)
        add_pair(l, p, name, v);
    return CFX_OK;
}

/* What the call does not pass, as keywords: then it is bound as a function's is. */
static cfx_status add_attributes(cfxi_lower *l, cfx_node *n, cfx_operator op, const char *list)
{
    static const char *const switches[] = {"inplace", "return_indices"};
    cfxi_spelled_param param;
    pairs p = {.n = 0};
    for (uint32_t i = 0; n->kwargs && i < n->kwargs->size && i < 2 * MOST_PAIRS; i++)
        p.items[p.n++] = n->kwargs->items[i];
    for (size_t i = cfx_node_num_args(n); cfxi_ops_listed_param(op, list, i, &param); i++)
        if (!is_passed(n, param.name) && !cfxi_ops_text_is(param.name, "self", 4))
            CFX_TRY(add_attribute(l, n, param.name, &p));
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (cfx_operator_find_param(op, switches[i]) == SIZE_MAX)
            CFX_TRY(add_attribute(l, n, (cfx_schema_text){switches[i], strlen(switches[i])}, &p));
    cfx_value kwargs = cfx_value_seq(l->g, CFX_KIND_DICT, p.items, p.n, l->err);
    if (kwargs.kind == CFX_KIND_INVALID)
        return l->err->status;
    cfx_status status = cfx_node_set_kwargs(n, kwargs, l->err);
    if (status != CFX_OK)
        cfx_value_discard(l->g, kwargs);
    return status;
}

cfx_status cfxi_lower_as(cfxi_lower *l, cfx_node *n, cfx_operator op, const char *list)
{
    cfxi_lowered c;
    CFX_TRY(add_attributes(l, n, op, list));
    if (!cfxi_lower_bind(l, n, op, list, false, &c)) {
        CFX_TRY(l->err->status);
        return cfxi_lower_refuse(l, n, "%s", c.why);
    }
    return cfxi_lower_write(l, n, &c);
}

/* Notes what a call that stays gives: what the row of its class does; if it has none, anything. */
static cfx_status keep_call(cfxi_lower *l, const cfx_node *n, const char *class_name)
{
    const cfx_operator op = cfxi_ops_of_class(class_name);
    const size_t results = cfx_operator_num_results(op);
    const cfxi_what what = results == 1  ? CFXI_WHAT_TENSOR
                           : results > 1 ? CFXI_WHAT_TENSORS : CFXI_WHAT_ANY;
    return cfx_node_map_set(l->what, n, cfx_value_int(what), l->err);
}

cfx_status cfxi_lower_module(cfxi_lower *l, cfx_node *n)
{
    const char *path = n->callee->ref->name->data;
    cfx_buffer name;
    bool done = false;
    cfx_buffer_init(&name, l->g->allocator);
    cfx_status status = cfxi_ops_module_class(l->modules, path, &name, l->err);
    if (status == CFX_OK && name.size == 0) {
        status = l->modules
                     ? cfxi_lower_refuse(l, n, "the module '%.100s' has hooks or its own forward, "
                                         "so it cannot be lowered by its class", path)
                     : cfxi_lower_refuse(l, n, "the module '%.100s' is not known here; lower the "
                                         "graph with its modules before saving it as text",
                                         path);
        done = true;
    }
    if (status == CFX_OK && !done && l->options.keep &&
        l->options.keep(l->options.ctx, n, name.data)) {
        status = keep_call(l, n, name.data);
        done = true;
    }
    if (status == CFX_OK && !done)
        status = cfxi_lower_special(l, n, name.data, &done);
    if (status == CFX_OK && !done) {
        const cfxi_op_name found = cfxi_ops_op_lookup(name.data, name.size);
        if (cfxi_ops_of_class(name.data))
            status = cfxi_lower_as(l, n, found.op, cfxi_ops_spelling_list(found.spelling));
        else
            status = cfxi_lower_refuse(l, n, "the class %.100s is not in the operator table",
                                       name.data);
    }
    cfx_buffer_free(&name);
    return status;
}
