/* spelling.c - calls of one operator that are spelled differently: torch.sum(x, 1), x.sum(dim=1).
 *
 * The operator table says which calls mean the same, and which argument is which parameter.
 */
#include "match_impl.h"

static bool is_call(const cfx_node *n)
{
    return n->op == CFX_OP_CALL_FUNCTION || n->op == CFX_OP_CALL_METHOD;
}

cfx_operator cfxi_same_operator(const cfxi_search *s, const cfx_node *p, const cfx_node *n)
{
    if (!s->opts->any_spelling || !is_call(p) || !is_call(n))
        return CFX_OPID_NONE;
    cfx_operator op = cfx_node_operator(p);
    return op != CFX_OPID_NONE && op == cfx_node_operator(n) ? op : CFX_OPID_NONE;
}

/* ---- defaults ------------------------------------------------------------------------------ */

static bool is_text(cfx_schema_text t, const char *text)
{
    return t.size == strlen(text) && memcmp(t.text, text, t.size) == 0;
}

/* A default that is one word or number; INVALID for others, which then count as different. */
static cfx_value default_of(const cfx_param *param)
{
    const cfx_schema_text t = param->value;
    int64_t i;
    double f;
    if (!t.text)
        return cfx_invalid();
    if (is_text(t, "None"))
        return cfx_none();
    if (is_text(t, "True") || is_text(t, "False"))
        return cfx_bool(t.text[0] == 'T');
    if (cfxi_parse_int(t.text, t.size, &i))
        return cfx_int(i);
    return cfxi_parse_float(t.text, t.size, &f) ? cfx_float(f) : cfx_invalid();
}

/* ---- operands ------------------------------------------------------------------------------ */

enum { NAME_SIZE = 64 };

static cfx_value operand(const cfx_node *n, const cfx_param *param)
{
    char name[NAME_SIZE];
    if (param->name.size >= sizeof name)
        return cfx_invalid();
    memcpy(name, param->name.text, param->name.size);
    name[param->name.size] = '\0';
    return cfx_node_operand(n, name);
}

/* How many keywords ask for nothing: F.relu(x, inplace=False). */
static size_t count_idle(const cfx_node *n, cfx_operator op)
{
    size_t idle = 0;
    for (uint32_t i = 0; n->kwargs && i < n->kwargs->size; i += 2) {
        const cfx_value v = n->kwargs->items[i + 1];
        bool off = v.kind == CFX_KIND_NONE || (v.kind == CFX_KIND_BOOL && !v.as.b);
        idle += off && cfx_operator_find_param(op, n->kwargs->items[i].as.str->data) == SIZE_MAX;
    }
    return idle;
}

/* Whether the row knows all arguments: of others nobody can say what they mean. */
static bool knows_all(const cfx_node *n, cfx_operator op)
{
    size_t given = cfx_node_num_args(n) + (n->kwargs ? n->kwargs->size / 2 : 0) -
                   count_idle(n, op);
    cfx_param param;
    for (size_t i = 0; cfx_operator_param(op, i, &param); i++) {
        if (param.variadic)
            return false;
        given -= operand(n, &param).kind != CFX_KIND_INVALID;
    }
    return given == 0;
}

bool cfxi_push_operands(cfxi_search *s, int32_t *list, cfx_node *pn, cfx_node *gn, cfx_operator op)
{
    cfx_param param;
    if (!knows_all(pn, op) || !knows_all(gn, op))
        return cfxi_miss_node(s, pn, gn, "it has arguments that the operator %s does not know",
                              cfx_operator_name(op));
    for (size_t i = cfx_operator_num_params(op); i-- > 0;) {
        cfx_operator_param(op, i, &param);
        cfxi_goal goal = {.p = operand(pn, &param), .g = operand(gn, &param), .pn = pn, .gn = gn,
                          .parent = -1, .index = (uint32_t)i};
        if (goal.p.kind == CFX_KIND_INVALID && goal.g.kind == CFX_KIND_INVALID)
            continue;
        if (goal.p.kind == CFX_KIND_INVALID)
            goal.p = default_of(&param);
        if (goal.g.kind == CFX_KIND_INVALID)
            goal.g = default_of(&param);
        if (goal.p.kind == CFX_KIND_INVALID || goal.g.kind == CFX_KIND_INVALID)
            return cfxi_miss_node(s, pn, gn, "only one of both gives %.*s", (int)param.name.size,
                                  param.name.text);
        if (!cfxi_search_push(s, list, goal))
            return false;
    }
    return true;
}
