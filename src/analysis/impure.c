/* impure.c - whether a call has an effect beyond its result.
 *
 * The host knows best, and is asked once for each function. Functions known by their name alone
 * (there is no host, or it does not know them) are told by the tables below, which agree with what
 * torch.fx 2.13 answers for those functions.
 */
#include "analysis_impl.h"
#include "runtime/library_rows.h"

#include <cfx/embed/ops.h>
#include <cfx/ops.h>

#include <stdlib.h>

/* Plain functions; sorted. */
static const char *const functions[] = {
    "_operator.setitem", "operator.setitem", "torch._C._set_grad_enabled", "torch._assert",
    "torch._assert_async", "torch.bernoulli", "torch.multinomial", "torch.normal", "torch.poisson",
    "torch.rand", "torch.rand_like", "torch.randint", "torch.randint_like", "torch.randn",
    "torch.randn_like", "torch.randperm",
};

/* Overloads of torch.ops.aten that are in no row of the operator table and draw random numbers;
 * sorted. Those that write to an argument are told by their names: "add_", or an overload with an
 * "out". */
static const char *const packets[] = {
    "_fused_dropout", "_print", "_standard_gamma", "rrelu_with_noise",
};

static const char row_prefix[] = "cfx.ops.";  /* what a lowered graph calls */

typedef struct part {
    const char *text;
    size_t size;
} part;

static int compare_row(const void *key, const void *row)
{
    const part *k = key;
    const char *word = *(const char *const *)row;
    int order = strncmp(k->text, word, k->size);
    return order ? order : -(word[k->size] != '\0');
}

bool cfxi_analysis_is_listed(const char *name, size_t size, const char *const *rows, size_t n)
{
    const part key = {name, size};
    return bsearch(&key, rows, n, sizeof *rows, compare_row) != NULL;
}

bool cfxi_analysis_overload_writes(const char *name)
{
    size_t size = strcspn(name, ".");
    const char *overload = name[size] ? name + size + 1 : "";
    bool dunder = size > 2 && memcmp(name + size - 2, "__", 2) == 0;
    bool in_place = size > 1 && name[size - 1] == '_' && !dunder;
    size_t last = strlen(overload);
    return in_place || (last >= 3 && strcmp(overload + last - 3, "out") == 0);
}

/* `name` is "add_.Tensor" of "torch.ops.aten.add_.Tensor". */
static bool is_impure_overload(const char *name)
{
    return cfxi_analysis_overload_writes(name) ||
           cfxi_analysis_is_listed(name, strcspn(name, "."), packets,
                                   sizeof packets / sizeof *packets);
}

static bool is_impure_row(cfx_operator op)
{
    const unsigned kept = CFX_OPERATOR_RANDOM | CFX_OPERATOR_CHECKS;
    return (cfx_operator_flags(op) & kept) || cfxi_analysis_operator_writes(op);
}

/* torch.fx keeps every overload that writes, draws random numbers or checks something, whatever
 * its arguments; of all other functions those listed above. A row itself, which torch.fx does not
 * know, is as good as an overload. */
bool cfxi_analysis_name_is_impure(const cfx_str *name, cfx_operator op)
{
    static const char ops[] = "torch.ops.";
    if (op && strncmp(name->data, row_prefix, sizeof row_prefix - 1) == 0)
        return is_impure_row(op);
    if (strncmp(name->data, ops, sizeof ops - 1) != 0)
        return cfxi_analysis_is_listed(name->data, name->size, functions,
                                       sizeof functions / sizeof *functions);
    if (op)
        return is_impure_row(op);
    const char *dot = strchr(name->data + sizeof ops - 1, '.');
    return dot && is_impure_overload(dot + 1);
}

bool cfxi_analysis_operator_writes(cfx_operator op)
{
    const char *schema = cfx_operator_schema(op);
    return schema && strchr(schema, '!') != NULL;
}

/* ---- calls --------------------------------------------------------------------------------- */

static int ask_host(cfx_node *n)
{
    const cfx_host *host = n->graph->host;
    return host && host->is_impure ? host->is_impure(host->ctx, n) : 0;
}

static int function_is_impure(cfx_node *n)
{
    cfxi_callee *callee = n->callee;
    if (callee->impure >= 0)
        return callee->impure;
    const cfx_operator op = cfx_node_operator(n);
    const char *name = op ? cfx_node_target(n, NULL, NULL) : NULL;
    const bool row = name && strncmp(name, row_prefix, sizeof row_prefix - 1) == 0;
    int answer = callee->ref->kind == CFXI_REF_OBJECT && !row
                     ? ask_host(n) : cfxi_analysis_name_is_impure(callee->ref->name, op);
    if (answer >= 0)
        callee->impure = (int8_t)(answer > 0);
    return answer > 0 ? 1 : answer;
}

static int region_is_impure(const cfx_graph *g, const cfx_library *library)
{
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        bool edge = n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT;
        int answer = edge ? 0 : cfxi_analysis_node_must_stay(n, library);
        if (answer != 0)
            return answer;
    }
    return 0;
}

static int items_are_impure(const cfx_seq *seq, const cfx_library *library)
{
    for (uint32_t i = 0; seq && i < seq->size; i++) {
        cfx_graph *region = cfx_value_graph(seq->items[i]);
        int answer = region ? region_is_impure(region, library) : 0;
        if (answer != 0)
            return answer;
    }
    return 0;
}

static int call_is_impure(cfx_node *n, const cfx_library *library)
{
    const cfx_custom_operator *custom = cfxi_rt_node_custom(n, library);
    if (custom && cfxi_analysis_custom_effect(custom) != CFX_EFFECT_NONE)
        return 1;
    if (cfx_operator_regions(cfx_node_operator(n)) == 0)
        return function_is_impure(n);
    int answer = items_are_impure(n->args, library);
    return answer ? answer : items_are_impure(n->kwargs, library);
}

int cfxi_analysis_node_must_stay(cfx_node *n, const cfx_library *library)
{
    switch ((cfx_opcode)n->op) {
    case CFX_OP_PLACEHOLDER:
    case CFX_OP_OUTPUT:
        return 1;
    case CFX_OP_CALL_FUNCTION:
        return call_is_impure(n, library);
    case CFX_OP_CALL_MODULE:
        return ask_host(n);
    case CFX_OP_GET_ATTR:
    case CFX_OP_CALL_METHOD:
    case CFX_OPCODE_COUNT:
        break;
    }
    return 0;
}

int cfx_node_is_impure(cfx_node *n) { return cfxi_analysis_node_must_stay(n, NULL); }
