/* import_attributes.c - the attributes of a node, with references to those of a function's call. */
#include "engine_impl.h"

static const cfxi_onnx_attribute *named(const cfxi_onnx_attribute *all, size_t n, cfxi_text name)
{
    for (size_t i = 0; i < n; i++)
        if (cfxi_onnx_same(all[i].name, name))
            return &all[i];
    return NULL;
}

/* What a reference in the body of a function stands for. */
static const cfxi_onnx_attribute *referred(const cfxi_import_call *c, cfxi_text name)
{
    const cfxi_import_frame *f = c->frame;
    const cfxi_import_call *call = f ? f->call : NULL;
    if (!call)
        return NULL;
    const cfxi_onnx_attribute *a =
        named(call->node->attributes.items, call->node->attributes.n, name);
    if (a && a->refers.size > 0)
        return referred(call, a->refers);
    return a ? a : named(f->function->defaults.items, f->function->defaults.n, name);
}

const cfxi_onnx_attribute *cfxi_import_attribute(const cfxi_import_call *c, const char *name)
{
    const cfxi_text text = {name, strlen(name)};
    const cfxi_onnx_attribute *a =
        named(c->node->attributes.items, c->node->attributes.n, text);
    return a && a->refers.size > 0 ? referred(c, a->refers) : a;
}

/* Whether it has a kind that the rule can read. (Files of the first versions have no kinds.) */
static bool is_kind(cfxi_import_call *c, const cfxi_onnx_attribute *a,
                    cfxi_onnx_attribute_kind kind, const char *name, const char *what)
{
    if (!a || a->kind == (int64_t)kind || a->kind == 0)
        return a != NULL;
    cfxi_import_fail(c, CFX_E_VALUE, "the attribute '%s' must be %s", name, what);
    return false;
}

int64_t cfxi_import_int(cfxi_import_call *c, const char *name, int64_t otherwise)
{
    const cfxi_onnx_attribute *a = cfxi_import_attribute(c, name);
    return is_kind(c, a, CFXI_ONNX_ATTR_INT, name, "an integer") ? a->i : otherwise;
}

double cfxi_import_float(cfxi_import_call *c, const char *name, double otherwise)
{
    const cfxi_onnx_attribute *a = cfxi_import_attribute(c, name);
    if (a && a->kind == CFXI_ONNX_ATTR_INT)
        return (double)a->i;
    return is_kind(c, a, CFXI_ONNX_ATTR_FLOAT, name, "a float") ? (double)a->f : otherwise;
}

bool cfxi_import_is(cfxi_import_call *c, const char *name, const char *otherwise, const char *word)
{
    const cfxi_onnx_attribute *a = cfxi_import_attribute(c, name);
    if (is_kind(c, a, CFXI_ONNX_ATTR_TEXT, name, "a string"))
        return cfxi_onnx_is(a->s, word);
    return strcmp(otherwise, word) == 0;
}

cfx_var cfxi_import_str(cfxi_import_call *c, const char *name, const char *otherwise)
{
    const cfxi_onnx_attribute *a = cfxi_import_attribute(c, name);
    if (!is_kind(c, a, CFXI_ONNX_ATTR_TEXT, name, "a string"))
        return otherwise ? cfx_var_str(otherwise) : cfx_var_empty();
    char *text = cfxi_base_arena_zeros(&c->import->arena, a->s.size + 1, 1);
    if (!text)
        return cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    if (a->s.size > 0)
        memcpy(text, a->s.data, a->s.size);
    cfxi_base_utf8_clean(text);
    return cfx_var_str(text);
}

const int64_t *cfxi_import_ints(cfxi_import_call *c, const char *name, size_t *n)
{
    const cfxi_onnx_attribute *a = cfxi_import_attribute(c, name);
    *n = 0;
    if (!is_kind(c, a, CFXI_ONNX_ATTR_INTS, name, "a list of integers"))
        return NULL;
    *n = a->ints.n;
    return a->ints.items;
}

cfx_tensor *cfxi_import_tensor_attribute(cfxi_import_call *c, const char *name)
{
    cfx_error err = {0};
    const cfxi_onnx_attribute *a = cfxi_import_attribute(c, name);
    if (!is_kind(c, a, CFXI_ONNX_ATTR_TENSOR, name, "a tensor") || !a->t)
        return NULL;
    cfx_tensor *t = cfxi_onnx_tensor_of(&c->import->source, a->t, &err);
    if (!t)
        cfxi_import_fail(c, err.status, "%s", err.message);
    return t;
}
