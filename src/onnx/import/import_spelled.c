/* import_spelled.c - operators that are a row of ops.def: its spelling lists inputs and attributes.
 *
 *     onnx:LeakyRelu(self,negative_slope:alpha=0.01)
 *
 * Parameters that are tensors are the inputs, in order; the others are attributes. An attribute
 * that the list does not have is refused, so that nothing is read without its meaning.
 */
#include "engine_impl.h"

static bool is_tensor(const char *type) { return strncmp(type, "Tensor", 6) == 0; }
static bool is_list(const char *type) { return strchr(type, '[') != NULL; }

/* The text of a default in ops.def. */
static cfx_var parse_default(cfx_schema_text text)
{
    int64_t i;
    double f;
    if (!text.text || cfxi_ops_text_is_word(text, "None"))
        return cfx_var_empty();
    if (cfxi_ops_text_is_word(text, "True") || cfxi_ops_text_is_word(text, "False"))
        return cfx_var_bool(text.text[0] == 'T');
    if (cfxi_base_parse_int(text.text, text.size, &i))
        return cfx_var_int(i);
    return cfxi_base_parse_float(text.text, text.size, &f) ? cfx_var_float(f) : cfx_var_empty();
}

/* An attribute as the parameter wants it. */
static cfx_var read_attribute(cfxi_import_call *c, const cfxi_onnx_attribute *a, const char *name,
                              const char *type)
{
    size_t n;
    if (is_list(type)) {
        const int64_t *ints = cfxi_import_ints(c, name, &n);
        return cfx_var_ints(c->scope, ints, n);
    }
    if (a->kind == CFXI_ONNX_ATTR_INT)
        return strncmp(type, "bool", 4) == 0 ? cfx_var_bool(a->i != 0) : cfx_var_int(a->i);
    if (a->kind == CFXI_ONNX_ATTR_TEXT)
        return cfxi_import_str(c, name, NULL);
    return cfx_var_float(cfxi_import_float(c, name, 0));
}

/* Whether the list has an attribute. */
static bool is_listed(cfx_operator op, const char *list, cfxi_text name)
{
    cfxi_spelled_param param;
    for (size_t i = 0; list && cfxi_ops_listed_param(op, list, i, &param); i++)
        if (cfxi_ops_text_is(param.name, name.data, name.size))
            return true;
    return false;
}

static bool check_attributes(cfxi_import_call *c, cfx_operator op, const char *list)
{
    for (size_t i = 0; i < c->node->attributes.n; i++) {
        const cfxi_text name = c->node->attributes.items[i].name;
        if (is_listed(op, list, name) || cfxi_onnx_is(name, "consumed_inputs"))
            continue;
        cfxi_import_fail(c, CFX_E_UNSUPPORTED, "the attribute '%.*s' is not known",
                         (int)(name.size < 100 ? name.size : 100), name.data);
        return false;
    }
    return true;
}

/* The argument for one parameter; *next is the next input. */
static cfx_var argument(cfxi_import_call *c, const cfxi_spelled_param *spelled, const char *type,
                        bool own, size_t *next)
{
    char name[64];
    if (is_tensor(type) && is_list(type)) {
        const size_t from = *next;
        *next = c->node->inputs.n;
        return cfxi_import_list(c, from);
    }
    if (is_tensor(type)) {
        const size_t at = (*next)++;
        return strchr(type, '?') ? cfxi_import_optional(c, at) : cfxi_import_in(c, at);
    }
    if (!own || spelled->name.size >= sizeof name)
        return cfx_var_empty();
    memcpy(name, spelled->name.text, spelled->name.size);
    name[spelled->name.size] = '\0';
    const cfxi_onnx_attribute *a = cfxi_import_attribute(c, name);
    return a ? read_attribute(c, a, name, type) : parse_default(spelled->value);
}

cfx_var cfxi_import_spelled(cfxi_import_call *c)
{
    const cfx_at at = {.scope = c->scope};
    const char *list;
    const cfx_operator op = cfxi_import_spelling(c->node->op, &list);
    cfx_var args[CFXI_MOST_PARAMS] = {{0}};
    cfxi_spelled_param spelled;
    cfx_schema_param param;
    size_t n = 0;
    size_t next = 0;
    if (!check_attributes(c, op, list))
        return cfx_var_empty();
    for (size_t i = 0; cfxi_ops_listed_param(op, list, i, &spelled); i++) {
        if (spelled.param >= CFXI_MOST_PARAMS || !cfx_operator_param(op, spelled.param, &param))
            continue;
        args[spelled.param] = argument(c, &spelled, param.type, list != NULL, &next);
        if (spelled.param >= n)
            n = spelled.param + 1;
    }
    if (next < c->node->inputs.n)
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "it has %zu inputs; cfx knows %zu",
                                c->node->inputs.n, next);
    return cfx_apply_at(at, op, args, n);
}
