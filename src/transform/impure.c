/* impure.c - whether a call has an effect beyond its result.
 *
 * The host knows best, and is asked once for each function. Functions known by their name alone
 * (there is no host, or it does not know them) are told by the tables below, which agree with what
 * torch.fx 2.13 answers for those functions.
 */
#include "transform_impl.h"

#include <cfx/ops.h>

#include <stdlib.h>

/* Plain functions; sorted. */
static const char *const functions[] = {
    "_operator.setitem", "operator.setitem", "torch._C._set_grad_enabled", "torch._assert",
    "torch._assert_async", "torch.bernoulli", "torch.multinomial", "torch.normal", "torch.poisson",
    "torch.rand", "torch.rand_like", "torch.randint", "torch.randint_like", "torch.randn",
    "torch.randn_like", "torch.randperm",
};

/* Overloads of torch.ops.aten that draw random numbers or check something; sorted. Those that
 * write to an argument are told by their names: "add_", or an overload with an "out". */
static const char *const packets[] = {
    "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "_fused_dropout", "_print",
    "_standard_gamma", "alpha_dropout", "bernoulli", "cauchy", "dropout", "exponential",
    "geometric", "gru", "log_normal", "lstm", "multinomial", "native_dropout", "normal", "poisson",
    "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "rnn_relu",
    "rnn_tanh", "rrelu_with_noise", "sym_constrain_range", "sym_constrain_range_for_size",
    "uniform",
};

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

bool cfxi_is_listed(const char *name, size_t size, const char *const *rows, size_t n)
{
    const part key = {name, size};
    return bsearch(&key, rows, n, sizeof *rows, compare_row) != NULL;
}

bool cfxi_overload_writes(const char *name)
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
    return cfxi_overload_writes(name) ||
           cfxi_is_listed(name, strcspn(name, "."), packets, sizeof packets / sizeof *packets);
}

bool cfxi_name_is_impure(const cfx_str *name)
{
    static const char ops[] = "torch.ops.";
    if (strncmp(name->data, ops, sizeof ops - 1) == 0) {
        const char *dot = strchr(name->data + sizeof ops - 1, '.');
        return dot && is_impure_overload(dot + 1);
    }
    return cfxi_is_listed(name->data, name->size, functions, sizeof functions / sizeof *functions);
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
    int answer = callee->ref->kind == CFXI_REF_OBJECT ? ask_host(n)
                                                       : cfxi_name_is_impure(callee->ref->name);
    if (answer >= 0)
        callee->impure = (int8_t)(answer > 0);
    return answer > 0 ? 1 : answer;
}

static int region_is_impure(const cfx_graph *g)
{
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        bool edge = n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT;
        int answer = edge ? 0 : cfx_node_is_impure(n);
        if (answer != 0)
            return answer;
    }
    return 0;
}

static int items_are_impure(const cfx_seq *seq)
{
    for (uint32_t i = 0; seq && i < seq->size; i++) {
        cfx_graph *region = cfx_value_graph(seq->items[i]);
        int answer = region ? region_is_impure(region) : 0;
        if (answer != 0)
            return answer;
    }
    return 0;
}

static int call_is_impure(cfx_node *n)
{
    if (cfx_operator_regions(cfx_node_operator(n)) == 0)
        return function_is_impure(n);
    int answer = items_are_impure(n->args);
    return answer ? answer : items_are_impure(n->kwargs);
}

int cfx_node_is_impure(cfx_node *n)
{
    switch ((cfx_opcode)n->op) {
    case CFX_OP_PLACEHOLDER:
    case CFX_OP_OUTPUT:
        return 1;
    case CFX_OP_CALL_FUNCTION:
        return call_is_impure(n);
    case CFX_OP_CALL_MODULE:
        return ask_host(n);
    case CFX_OP_GET_ATTR:
    case CFX_OP_CALL_METHOD:
    case CFX_OPCODE_COUNT:
        break;
    }
    return 0;
}
