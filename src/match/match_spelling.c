/* match_spelling.c - calls of one operator that are spelled differently: torch.sum(x, 1),
 * x.sum(dim=1).
 *
 * The operator table says which calls mean the same, and which argument is which parameter. Of a
 * module the first parameter is what it is called with, the others are its attributes.
 */
#include "ops/ops_impl.h"
#include "match_impl.h"

static bool is_call(const cfx_node *n)
{
    return n->op == CFX_OP_CALL_FUNCTION || n->op == CFX_OP_CALL_METHOD;
}

cfx_operator cfxi_match_same_operator(cfxi_search *s, const cfx_node *p, const cfx_node *n)
{
    cfx_operator op = s->opts->any_spelling && is_call(p) ? cfx_node_operator(p) : CFX_OPID_NONE;
    cfx_operator other = CFX_OPID_NONE;
    if (op == CFX_OPID_NONE || (!is_call(n) && n->op != CFX_OP_CALL_MODULE))
        return CFX_OPID_NONE;
    s->status = cfx_node_operator_of(n, s->opts->modules, &other, s->err);
    return s->status == CFX_OK && op == other ? op : CFX_OPID_NONE;
}

/* ---- defaults ------------------------------------------------------------------------------ */

static bool is_text(cfx_schema_text t, const char *text)
{
    return t.size == strlen(text) && memcmp(t.text, text, t.size) == 0;
}

/* A default that is one word or number; INVALID for others, which then count as different. */
static cfx_value default_of(const cfx_schema_param *param)
{
    const cfx_schema_text t = param->value;
    int64_t i;
    double f;
    if (!t.text)
        return cfx_value_invalid();
    if (is_text(t, "None"))
        return cfx_value_none();
    if (is_text(t, "True") || is_text(t, "False"))
        return cfx_value_bool(t.text[0] == 'T');
    if (cfxi_base_parse_int(t.text, t.size, &i))
        return cfx_value_int(i);
    return cfxi_base_parse_float(t.text, t.size, &f) ? cfx_value_float(f) : cfx_value_invalid();
}

/* ---- modules ------------------------------------------------------------------------------- */

static bool stop(cfxi_search *s, cfx_status status)
{
    s->status = status;
    return false;
}

/* An attribute of the module that `n` calls; INVALID if it has none. False: see the status. */
static bool attribute(cfxi_search *s, const cfx_node *n, const char *name, cfx_value *v)
{
    s->status = cfxi_ops_module_attr(s->opts->modules, s->graph, n->callee->ref->name->data, name,
                                     v, s->err);
    if (v->kind != CFX_KIND_INVALID)
        s->status = cfxi_match_search_keep(s, s->graph, *v);
    return s->status == CFX_OK;
}

/* A call of a module of which the row and its attributes say all. */
static bool module_is_known(cfxi_search *s, const cfx_node *pn, const cfx_node *gn,
                            cfx_operator op)
{
    static const char *const other[] = {"inplace", "return_indices"};
    const size_t n = cfx_node_num_args(gn) + (gn->kwargs ? gn->kwargs->size / 2 : 0);
    cfx_value v;
    if (n != 1 || (cfx_operator_flags(op) & CFX_OPERATOR_STATE))
        return cfxi_match_miss_node(s, pn, gn,
                                    n != 1 ? "a module must be called with one argument to match a "
                                             "function"
                                           : "a module with state does not match a function");
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        if (!attribute(s, gn, other[i], &v))
            return false;
        if (v.kind != CFX_KIND_INVALID && (v.kind != CFX_KIND_BOOL || v.as.b) &&
            cfx_operator_find_param(op, other[i]) == SIZE_MAX)
            return cfxi_match_miss_node(s, pn, gn, "the module has %s=True", other[i]);
    }
    return true;
}

static bool module_operand(cfxi_search *s, const cfx_node *pn, const cfx_node *gn, size_t i,
                           const char *name, cfx_value *v)
{
    if (i == 0) {
        *v = cfx_node_num_args(gn) ? cfx_node_arg(gn, 0) : gn->kwargs->items[1];
        return true;
    }
    if (!attribute(s, gn, strcmp(name, "train") == 0 ? "training" : name, v))
        return false;
    return v->kind != CFX_KIND_HOST ||
           cfxi_match_miss_node(s, pn, gn,
                                "the module has its own %s; a module with weights does not match a "
                                "function",
                                name);
}

/* ---- operands ------------------------------------------------------------------------------ */

enum { NAME_SIZE = 64 };

/* False if the name is too long. */
static bool name_of(const cfx_schema_param *param, char name[NAME_SIZE])
{
    if (param->name.size >= NAME_SIZE)
        return false;
    memcpy(name, param->name.text, param->name.size);
    name[param->name.size] = '\0';
    return true;
}

static cfx_value operand(const cfx_node *n, const cfx_schema_param *param)
{
    char name[NAME_SIZE];
    return name_of(param, name) ? cfx_node_operand(n, name) : cfx_value_invalid();
}

/* An argument that asks for nothing: F.relu(x, inplace=False). */
static bool is_off(cfx_value v)
{
    return v.kind == CFX_KIND_NONE || (v.kind == CFX_KIND_BOOL && !v.as.b);
}

static bool has_name(const cfx_node *n, cfx_operator op, const char *keyword)
{
    return cfx_operator_find_param(op, keyword) != SIZE_MAX ||
           (strcmp(keyword, "input") == 0 && cfxi_ops_node_param_of(n, 0, keyword) == 0);
}

/* How many keywords that are no names of the row ask for something. */
static size_t count_on(const cfx_node *n, cfx_operator op)
{
    size_t on = 0;
    for (uint32_t i = 0; n->kwargs && i < n->kwargs->size; i += 2) {
        const cfx_value *pair = &n->kwargs->items[i];
        on += !has_name(n, op, pair[0].as.str->data) && !is_off(pair[1]);
    }
    return on;
}

/* Whether parameter `i` is passed under another name than the row's: training=True for `train`. */
static bool is_renamed(const cfx_node *n, size_t i, const cfx_schema_param *param)
{
    char name[NAME_SIZE];
    for (size_t k = 0; k < cfx_node_num_args(n); k++)
        if (cfxi_ops_node_param_of(n, k, NULL) == i)
            return false;
    return name_of(param, name) && cfx_node_kwarg(n, name).kind == CFX_KIND_INVALID &&
           (i > 0 || cfx_node_kwarg(n, "input").kind == CFX_KIND_INVALID);
}

/* Whether the row knows all arguments, but for keywords that ask for nothing: of others nobody can
 * say what they mean. */
static bool knows_all(const cfx_node *n, cfx_operator op)
{
    size_t on = count_on(n, op);
    size_t known = 0;
    cfx_schema_param param;
    for (size_t i = 0; cfx_operator_param(op, i, &param); i++) {
        if (param.variadic)
            return false;
        cfx_value v = operand(n, &param);
        if (v.kind != CFX_KIND_INVALID && is_renamed(n, i, &param))
            on -= !is_off(v);
    }
    for (size_t k = 0; k < cfx_node_num_args(n); k++)
        known += cfx_operator_param(op, cfxi_ops_node_param_of(n, k, NULL), &param) &&
                 operand(n, &param).kind != CFX_KIND_INVALID;
    return on == 0 && known == cfx_node_num_args(n);
}

static bool is_known(cfxi_search *s, const cfx_node *pn, const cfx_node *gn, cfx_operator op)
{
    const bool module = gn->op == CFX_OP_CALL_MODULE;
    if (!knows_all(pn, op) || (!module && !knows_all(gn, op)))
        return cfxi_match_miss_node(s, pn, gn,
                                    "it has arguments that the operator %s does not have",
                                    cfx_operator_name(op));
    return !module || module_is_known(s, pn, gn, op);
}

static bool operand_of(cfxi_search *s, const cfx_node *pn, const cfx_node *n,
                       const cfx_schema_param *param, size_t i, cfx_value *v)
{
    char name[NAME_SIZE];
    if (n->op == CFX_OP_CALL_MODULE && name_of(param, name))
        return module_operand(s, pn, n, i, name, v);
    *v = operand(n, param);
    return true;
}

/* ---- one form for what can be said in two -------------------------------------------------- */

/* What an operand that is left out is: a pooling moves on by its kernel_size. */
static bool complete(cfxi_search *s, const cfx_node *pn, const cfx_node *n, cfx_operator op,
                     const cfx_schema_param *param, cfx_value *v)
{
    cfx_schema_param kernel;
    size_t i = cfx_operator_find_param(op, "kernel_size");
    if (is_text(param->name, "stride") && cfx_operator_param(op, i, &kernel) &&
        (v->kind == CFX_KIND_INVALID || v->kind == CFX_KIND_NONE))
        return operand_of(s, pn, n, &kernel, i, v);
    if (v->kind == CFX_KIND_INVALID)
        *v = default_of(param);
    return true;
}

static bool is_list(cfx_value v) { return v.kind == CFX_KIND_LIST || v.kind == CFX_KIND_TUPLE; }

/* 2 as (2, 2) if the row takes two of them and the other call has a list. */
static bool spread(cfxi_search *s, const cfx_schema_param *param, cfx_value other, cfx_graph *g,
                   cfx_value *v)
{
    const char *bracket = strchr(param->type, '[');  /* "int[2]", "int?[2]" */
    const bool several = strncmp(param->type, "int", 3) == 0 && bracket && bracket[1] >= '1' &&
                         bracket[1] <= '9';
    const cfx_value all[] = {*v, *v, *v, *v, *v, *v, *v, *v, *v};
    if (!several || v->kind != CFX_KIND_INT || !is_list(other))
        return true;
    *v = cfx_value_tuple(g, all, (size_t)(bracket[1] - '0'), s->err);
    if (v->kind == CFX_KIND_INVALID)
        return stop(s, CFX_E_NOMEM);
    return (s->status = cfxi_match_search_keep(s, g, *v)) == CFX_OK;
}

/* 20 as 20.0 if the other is one: where the row takes a float, or has just said the default. */
static void as_float(cfx_value *v, cfx_value other)
{
    if (v->kind == CFX_KIND_INT && other.kind == CFX_KIND_FLOAT)
        *v = cfx_value_float((double)v->as.i);
}

bool cfxi_match_push_operands(cfxi_search *s, int32_t *list, cfx_node *pn, cfx_node *gn,
                              cfx_operator op)
{
    cfx_schema_param param;
    if (!is_known(s, pn, gn, op))
        return false;
    for (size_t i = cfx_operator_num_params(op); i-- > 0;) {
        cfx_operator_param(op, i, &param);
        cfxi_goal goal = {.pn = pn, .gn = gn, .parent = CFXI_GOAL_OPERAND, .index = (uint32_t)i};
        if (!operand_of(s, pn, pn, &param, i, &goal.p) ||
            !operand_of(s, pn, gn, &param, i, &goal.g))
            return false;
        if (goal.p.kind == CFX_KIND_INVALID && goal.g.kind == CFX_KIND_INVALID)
            continue;
        const bool number = strncmp(param.type, "float", 5) == 0 ||
                            goal.p.kind == CFX_KIND_INVALID || goal.g.kind == CFX_KIND_INVALID;
        if (!complete(s, pn, pn, op, &param, &goal.p) || !complete(s, pn, gn, op, &param, &goal.g))
            return false;
        if (goal.p.kind == CFX_KIND_INVALID || goal.g.kind == CFX_KIND_INVALID)
            return cfxi_match_miss_node(s, pn, gn, "only one of the two passes %.*s",
                                        (int)param.name.size, param.name.text);
        if (number) {
            as_float(&goal.p, goal.g);
            as_float(&goal.g, goal.p);
        }
        if (!spread(s, &param, goal.g, pn->graph, &goal.p) ||
            !spread(s, &param, goal.p, gn->graph, &goal.g) ||
            !cfxi_match_search_push(s, list, goal))
            return false;
    }
    return true;
}
