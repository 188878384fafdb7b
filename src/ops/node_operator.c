/* node_operator.c - which operator a node calls, and what it passes for a parameter. */
#include "ir/graph_impl.h"
#include "ops_impl.h"

/* ---- the operator -------------------------------------------------------------------------- */

static cfxi_op_name name_of(const cfx_node *n)
{
    const cfxi_op_name none = {CFX_OPID_NONE, NULL};
    const cfxi_callee *callee = n->callee;
    if (n->op == CFX_OP_CALL_METHOD)
        return cfxi_ops_op_lookup_method(callee->ref->name->data, callee->ref->name->size);
    const cfx_str *name = cfxi_ir_ref_qualified_name(n->graph, callee->ref, NULL);
    cfxi_op_name found = name ? cfxi_ops_op_lookup(name->data, name->size) : none;
    return found.spelling ? found : none;
}

/* The answer is kept with the callee: 1 + the row; 0 says that nobody has asked yet. */
cfx_operator cfx_node_operator(const cfx_node *n)
{
    cfxi_callee *callee = n->callee;
    if (n->op != CFX_OP_CALL_FUNCTION && n->op != CFX_OP_CALL_METHOD)
        return CFX_OPID_NONE;
    if (!callee->row)
        callee->row = (uint16_t)(1 + name_of(n).op);
    return (cfx_operator)(callee->row - 1);
}

/* ---- operands ------------------------------------------------------------------------------ */

static bool is_param(const cfx_schema_param *param, const char *name, size_t size)
{
    return param->name.size == size && memcmp(param->name.text, name, size) == 0;
}

static bool has_own_params(const char *spelling)
{
    return spelling[strcspn(spelling, " (")] == '(';
}

/* An item of a spelling's own list: "train:training=True" is the parameter `train`, called
 * `training`, True if it is not given. */
typedef struct own_param {
    cfx_schema_text name;
    cfx_schema_text keyword;
    cfx_schema_text value;
} own_param;

static bool own_at(const char *list, size_t i, own_param *out)
{
    cfx_schema_text item = cfxi_ops_schema_next(&list);
    for (; i > 0 && item.size > 0; i--)
        item = cfxi_ops_schema_next(&list);
    const char *equals = item.size ? memchr(item.text, '=', item.size) : NULL;
    const size_t size = equals ? (size_t)(equals - item.text) : item.size;
    const char *colon = size ? memchr(item.text, ':', size) : NULL;
    out->name = (cfx_schema_text){item.text, colon ? (size_t)(colon - item.text) : size};
    out->keyword = out->name;
    if (colon)
        out->keyword = (cfx_schema_text){colon + 1, size - out->name.size - 1};
    out->value = equals ? (cfx_schema_text){equals + 1, item.size - size - 1}
                        : (cfx_schema_text){NULL, 0};
    return item.size > 0;
}

static const char *own_list(const char *spelling)
{
    return spelling + strcspn(spelling, "(") + 1;
}

/* Where a spelling with parameters of its own ("F.embedding(indices:input,weight)") takes `name`;
 * SIZE_MAX if it has none. *keyword is what it is called there. */
static size_t own_place(const char *spelling, const char *name, cfx_schema_text *keyword)
{
    own_param own;
    for (size_t i = 0; own_at(own_list(spelling), i, &own); i++)
        if (cfxi_ops_text_is(own.name, name, strlen(name))) {
            *keyword = own.keyword;
            return i;
        }
    return SIZE_MAX;
}

static cfx_value find_kwarg(const cfx_node *n, const char *name, size_t size)
{
    const cfx_seq *kwargs = n->kwargs;
    for (uint32_t i = 0; kwargs && i + 1 < kwargs->size; i += 2) {
        const cfx_str *key = kwargs->items[i].as.str;
        if (key->size == size && memcmp(key->data, name, size) == 0)
            return kwargs->items[i + 1];
    }
    return cfx_value_invalid();
}

/* x.view(2, 3) passes a list as loose numbers: then no argument is the list. */
static bool is_loose(cfx_value v, const cfx_schema_param *param)
{
    return v.kind == CFX_KIND_INT && strcmp(param->type, "int[]") == 0;
}

static cfx_value argument_at(const cfx_node *n, size_t place, cfx_schema_text keyword)
{
    cfx_value v = place == SIZE_MAX ? cfx_value_invalid() : cfx_node_arg(n, place);
    return v.kind == CFX_KIND_INVALID ? find_kwarg(n, keyword.text, keyword.size) : v;
}

cfx_value cfx_node_operand(const cfx_node *n, const char *name)
{
    cfx_operator op = cfx_node_operator(n);
    cfx_schema_param param;
    cfx_schema_text keyword = {name, strlen(name)};
    size_t place = cfx_operator_find_param(op, name);
    const bool known = cfx_operator_param(op, place, &param);
    const char *spelling = op ? name_of(n).spelling : NULL;
    const bool own = spelling && has_own_params(spelling);
    if (own)
        place = own_place(spelling, name, &keyword);
    if (own ? place == SIZE_MAX : !known)
        return cfx_value_invalid();
    cfx_value v = argument_at(n, place, keyword);
    if (v.kind == CFX_KIND_INVALID && known && is_param(&param, "self", 4))
        v = find_kwarg(n, "input", 5);
    return known && is_loose(v, &param) ? cfx_value_invalid() : v;
}

static size_t param_named(cfx_operator op, cfx_schema_text text)
{
    char name[CFX_SPELLING_SIZE];
    if (text.size >= sizeof name)
        return SIZE_MAX;
    memcpy(name, text.text, text.size);
    name[text.size] = '\0';
    return cfx_operator_find_param(op, name);
}

size_t cfxi_ops_node_param_of(const cfx_node *n, size_t place, const char *keyword)
{
    cfx_operator op = cfx_node_operator(n);
    const char *spelling = op ? name_of(n).spelling : NULL;
    if (keyword)
        return strcmp(keyword, "input") == 0 && cfx_operator_find_param(op, "input") == SIZE_MAX
                   ? 0 : cfx_operator_find_param(op, keyword);
    if (!spelling || !has_own_params(spelling))
        return place < cfx_operator_num_params(op) ? place : SIZE_MAX;
    own_param own;
    return own_at(own_list(spelling), place, &own) ? param_named(op, own.name) : SIZE_MAX;
}

bool cfxi_ops_listed_param(cfx_operator op, const char *list, size_t i, cfxi_spelled_param *out)
{
    own_param own;
    cfx_schema_param param;
    if (list) {
        if (!own_at(list, i, &own))
            return false;
        *out = (cfxi_spelled_param){own.keyword, param_named(op, own.name), false, own.value};
        return true;
    }
    if (!op || !cfx_operator_param(op, i, &param))
        return false;
    *out = (cfxi_spelled_param){param.name, i, param.keyword_only, param.value};
    return true;
}

const char *cfxi_ops_spelling_list(const char *spelling)
{
    return spelling && has_own_params(spelling) ? own_list(spelling) : NULL;
}

const char *cfxi_ops_node_spelling(const cfx_node *n)
{
    return cfx_node_operator(n) ? name_of(n).spelling : NULL;
}

bool cfxi_ops_node_spelled_param(const cfx_node *n, size_t i, cfxi_spelled_param *out, bool *own)
{
    const char *list = cfxi_ops_spelling_list(cfxi_ops_node_spelling(n));
    if (own)
        *own = list != NULL;
    return cfxi_ops_listed_param(cfx_node_operator(n), list, i, out);
}

bool cfxi_ops_spelling_has_params(const char *name)
{
    const char *spelling = cfxi_ops_op_lookup(name, strlen(name)).spelling;
    return spelling && has_own_params(spelling);
}
