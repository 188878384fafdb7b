/* effect.c - what a call does to the world: nothing, something of its own, or to its arguments.
 *
 * impure.c answers what torch.fx asks: whether a call may be dropped. That is not enough to merge
 * two calls into one, where operator.iadd, x.add_(1) or a dropout matter too. The operator table
 * knows (its schemas say what is written to, its flags what is random); the lists here are for
 * names that are in no row, and err on the safe side. A function that is in none of them does what
 * the host says of it.
 */
#include "ops/ops_impl.h"
#include "analysis_impl.h"
#include "runtime/library_rows.h"

#define ROWS(table) (table), sizeof(table) / sizeof *(table)

/* Of the modules operator and builtins; as methods between two underscores on either side. Sorted,
 * as are all of these. */
static const char *const writers[] = {"delattr", "exec", "iconcat", "imatmul", "next"};

/* Methods that write though they do not end with '_': of lists, dicts and sets; the gradients. No
 * method of Tensor that only computes has one of these names. */
static const char *const writing_methods[] = {
    "append", "backward", "clear", "discard", "extend", "insert", "pop", "popitem", "remove",
    "reverse", "setdefault", "update",
};

/* Functions that draw random numbers, or keep statistics; dce need not keep them. */
static const char *const lone_functions[] = {
    "builtins.input", "builtins.print", "torch._standard_gamma", "torch.binomial",
    "torch.nn.functional.fractional_max_pool3d",
};

/* The same for torch.ops.aten. */
static const char *const lone_packets[] = {
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention", "binomial",
    "cudnn_batch_norm", "fractional_max_pool2d", "fractional_max_pool3d", "miopen_batch_norm",
};

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* ---- by name ------------------------------------------------------------------------------- */

/* "add_", "__iadd__", "__setitem__"; but not "__add__". */
static bool writes_by_spelling(const char *name, size_t size)
{
    if (size > 4 && memcmp(name, "__", 2) == 0 && memcmp(name + size - 2, "__", 2) == 0)
        return cfxi_analysis_operator_writes(cfxi_ops_of_method(name, size)) ||
               cfxi_analysis_is_listed(name + 2, size - 4, ROWS(writers));
    return size > 1 && name[size - 1] == '_' && name[size - 2] != '_';
}

static cfx_effect effect_of_method(const char *name, size_t size)
{
    bool writes = writes_by_spelling(name, size) ||
                  cfxi_analysis_is_listed(name, size, ROWS(writing_methods));
    return writes ? CFX_EFFECT_WRITES : CFX_EFFECT_NONE;
}

/* `name` is "add_.Tensor" of "torch.ops.aten.add_.Tensor". */
static cfx_effect effect_of_overload(const char *name)
{
    if (cfxi_analysis_overload_writes(name))
        return CFX_EFFECT_WRITES;
    return cfxi_analysis_is_listed(name, strcspn(name, "."), ROWS(lone_packets)) ? CFX_EFFECT_ALONE
                                                                      : CFX_EFFECT_NONE;
}

static cfx_effect effect_of_name(const cfx_str *name)
{
    const char *dot = strrchr(name->data, '.');
    const char *last = dot ? dot + 1 : name->data;
    const size_t size = name->size - (size_t)(last - name->data);
    if (has_prefix(name->data, "torch.ops.")) {
        const char *space = strchr(name->data + strlen("torch.ops."), '.');
        return space ? effect_of_overload(space + 1) : CFX_EFFECT_NONE;
    }
    if (cfxi_analysis_is_listed(name->data, name->size, ROWS(lone_functions)))
        return CFX_EFFECT_ALONE;
    bool plain = has_prefix(name->data, "operator.") || has_prefix(name->data, "_operator.") ||
                 has_prefix(name->data, "builtins.");
    bool writes =
        plain ? cfxi_analysis_is_listed(last, size, ROWS(writers)) /* operator.and_ does not */
              : writes_by_spelling(last, size);
    return writes ? CFX_EFFECT_WRITES : CFX_EFFECT_NONE;
}

/* ---- by row -------------------------------------------------------------------------------- */

static cfx_effect effect_of_flags(unsigned flags, bool writes)
{
    if ((flags & CFX_OPERATOR_GLOBAL) || writes)
        return CFX_EFFECT_WRITES;
    const unsigned lone = CFX_OPERATOR_RANDOM | CFX_OPERATOR_CHECKS | CFX_OPERATOR_STATE;
    return flags & lone ? CFX_EFFECT_ALONE : CFX_EFFECT_NONE;
}

static cfx_effect effect_of_row(cfx_operator op)
{
    return effect_of_flags(cfx_operator_flags(op), cfxi_analysis_operator_writes(op));
}

cfx_effect cfxi_analysis_custom_effect(const cfx_custom_operator *f)
{
    return effect_of_flags(f->flags, cfxi_ops_schema_writes(f->schema));
}

/* Whether the parameter `name`, if the operator has it, is certainly false or 0. */
static bool is_off(const cfx_node *n, cfx_operator op, const char *name)
{
    cfx_schema_param param;
    if (!cfx_operator_param(op, cfx_operator_find_param(op, name), &param))
        return false;
    cfx_value v = cfx_node_operand(n, name);
    switch (v.kind) {
    case CFX_KIND_BOOL:
        return !v.as.b;
    case CFX_KIND_INT:
        return v.as.i == 0;
    case CFX_KIND_FLOAT:
        return v.as.f == 0.0;
    case CFX_KIND_INVALID:
        return param.value.size > 0 && (param.value.text[0] == 'F' || param.value.text[0] == '0');
    default:
        return false;
    }
}

/* What a row's flags mean for these arguments: dropout does nothing but in training, batch_norm
 * then writes to its statistics. */
static cfx_effect refine(const cfx_node *n, cfx_operator op, cfx_effect effect)
{
    static const char *const switches[] = {"train", "training", "use_input_stats", "p", "dropout_p",
                                           "dropout"};
    const unsigned flags = cfx_operator_flags(op);
    if (effect != CFX_EFFECT_ALONE || !(flags & (CFX_OPERATOR_RANDOM | CFX_OPERATOR_STATE)))
        return effect;
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (is_off(n, op, switches[i]))
            return CFX_EFFECT_NONE;
    bool writes = (flags & CFX_OPERATOR_STATE) &&
                  cfx_node_operand(n, "running_mean").kind == CFX_KIND_NODE;
    return writes ? CFX_EFFECT_WRITES : effect;
}

/* What dce keeps is random, an assertion, or unknown: then it may write. */
static cfx_effect effect_of_impure(const cfx_str *name)
{
    return name && cfxi_analysis_name_is_impure(name, CFX_OPID_NONE) ? CFX_EFFECT_ALONE
                                                                     : CFX_EFFECT_WRITES;
}

static cfx_status unknown(const cfx_node *n, cfx_error *err)
{
    return cfx_error_set(err, CFX_E_HOST, "could not tell whether node %%%s has an effect",
                         n->name->data);
}

static cfx_status ask_impure(cfx_node *n, bool *impure, cfx_error *err)
{
    int answer = cfx_node_is_impure(n);
    if (answer < 0)
        return unknown(n, err);
    *impure = answer > 0;
    return CFX_OK;
}

static cfx_status callee_effect(cfx_node *n, cfx_effect *effect, cfx_error *err)
{
    cfxi_callee *callee = n->callee;
    cfx_error why = {.status = CFX_OK};
    bool impure = false;
    if (callee->effect > 0) {
        *effect = (cfx_effect)(callee->effect - 1);
        return CFX_OK;
    }
    const cfx_str *name = cfxi_ir_ref_qualified_name(n->graph, callee->ref, &why);
    if (!name && why.status != CFX_E_KEY) {  /* objects without a name are all right */
        if (err)
            *err = why;
        return why.status;
    }
    const cfx_operator op = cfx_node_operator(n);
    *effect = op ? effect_of_row(op) : name ? effect_of_name(name) : CFX_EFFECT_NONE;
    CFX_TRY(ask_impure(n, &impure, err));
    if (impure && *effect == CFX_EFFECT_NONE)
        *effect = effect_of_impure(name);
    callee->effect = (uint8_t)(1 + *effect);
    return CFX_OK;
}

/* A library's row says it all; but its host may know better that it has an effect. The answer hangs
 * on the library, so that it is not kept. */
static cfx_status custom_effect(cfx_node *n, const cfx_custom_operator *f, cfx_effect *effect,
                                cfx_error *err)
{
    bool impure = false;
    *effect = cfxi_analysis_custom_effect(f);
    CFX_TRY(ask_impure(n, &impure, err));
    if (impure && *effect == CFX_EFFECT_NONE)
        *effect = CFX_EFFECT_WRITES;
    return CFX_OK;
}

/* ---- by arguments -------------------------------------------------------------------------- */

static bool is_word(cfx_value v, const char *word)
{
    return v.kind == CFX_KIND_STR && strcmp(v.as.str->data, word) == 0;
}

static bool is_false(cfx_value v)
{
    return v.kind == CFX_KIND_NONE || (v.kind == CFX_KIND_BOOL && !v.as.b);
}

static bool is_true(cfx_value v) { return v.kind == CFX_KIND_BOOL && v.as.b; }

static bool has_true_kwarg(const cfx_node *n, const char *word)
{
    const cfx_seq *kwargs = n->kwargs;
    for (uint32_t i = 0; kwargs && i + 1 < kwargs->size; i += 2)
        if (is_word(kwargs->items[i], word) && !is_false(kwargs->items[i + 1]))
            return true;
    return false;
}

bool cfxi_analysis_has_out(const cfx_node *n) { return has_true_kwarg(n, "out"); }

/* A bare True in a call of torch.nn.functional may be its `inplace`; the table knows which. */
bool cfxi_analysis_is_in_place(const cfx_node *n)
{
    const cfx_str *name = n->callee->ref->name;
    bool any = false;
    if (has_true_kwarg(n, "inplace"))
        return true;
    if (n->op != CFX_OP_CALL_FUNCTION || !name || !has_prefix(name->data, "torch.nn.functional."))
        return false;
    for (uint32_t i = 0; n->args && i < n->args->size; i++)
        any = any || is_true(n->args->items[i]);
    return any && (!cfx_node_operator(n) || is_true(cfx_node_operand(n, "inplace")));
}

/* With a `max_norm`, the rows of an embedding's weight that are used are scaled in place. */
static bool scales_weight(const cfx_node *n)
{
    const cfx_operator op = cfx_node_operator(n);
    if (op != CFX_OPID_embedding && op != CFX_OPID_embedding_bag)
        return false;
    cfx_value norm = cfx_node_operand(n, "max_norm");
    return norm.kind != CFX_KIND_INVALID && norm.kind != CFX_KIND_NONE;
}

bool cfxi_analysis_arguments_write(const cfx_node *n)
{
    return cfxi_analysis_has_out(n) || cfxi_analysis_is_in_place(n) || scales_weight(n);
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* Who is asked beside the table and the host. */
typedef struct experts {
    const cfx_module_tree *modules;  /* or NULL */
    const cfx_effect_opinion *opts;    /* or NULL */
} experts;

static cfx_status effect_of(cfx_node *n, const experts *who, cfx_effect *effect, cfx_error *err);

static cfx_status region_effect(const cfx_graph *g, const experts *who, cfx_effect *effect,
                                cfx_error *err)
{
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        cfx_effect one;
        if (n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT)
            continue;
        CFX_TRY(effect_of(n, who, &one, err));
        if (one > *effect)
            *effect = one;
    }
    return CFX_OK;
}

static cfx_status items_effect(const cfx_seq *seq, const experts *who, cfx_effect *effect,
                               cfx_error *err)
{
    for (uint32_t i = 0; seq && i < seq->size; i++) {
        const cfx_graph *region = cfx_value_graph(seq->items[i]);
        if (region)
            CFX_TRY(region_effect(region, who, effect, err));
    }
    return CFX_OK;
}

static cfx_status function_effect(cfx_node *n, const experts *who, cfx_effect *effect,
                                  cfx_error *err)
{
    if (cfx_operator_regions(cfx_node_operator(n)) > 0) {
        *effect = CFX_EFFECT_NONE;
        CFX_TRY(items_effect(n->args, who, effect, err));
        return items_effect(n->kwargs, who, effect, err);
    }
    const cfx_custom_operator *custom =
        cfxi_rt_node_custom(n, cfxi_analysis_library_of(who->modules));
    CFX_TRY(custom ? custom_effect(n, custom, effect, err) : callee_effect(n, effect, err));
    *effect = cfxi_analysis_arguments_write(n) ? CFX_EFFECT_WRITES
                                      : refine(n, cfx_node_operator(n), *effect);
    return CFX_OK;
}

static cfx_effect method_effect(const cfx_node *n)
{
    const cfx_str *name = n->callee->ref->name;
    const cfx_operator op = cfx_node_operator(n);
    if (cfxi_analysis_arguments_write(n))
        return CFX_EFFECT_WRITES;
    return op ? refine(n, op, effect_of_row(op)) : effect_of_method(name->data, name->size);
}

/* Whether it has a state, `opts` knows better. */
static cfx_status module_effect(cfx_node *n, const experts *who, cfx_effect *effect, cfx_error *err)
{
    bool writes = false;
    if (!who->opts)
        CFX_TRY(ask_impure(n, &writes, err));
    if (!writes)
        CFX_TRY(cfxi_ops_module_writes(n, who->modules, &writes, err));
    *effect = writes ? CFX_EFFECT_WRITES : who->opts ? CFX_EFFECT_NONE : CFX_EFFECT_ALONE;
    return CFX_OK;
}

static cfx_status own_effect(cfx_node *n, const experts *who, cfx_effect *effect, cfx_error *err)
{
    *effect = CFX_EFFECT_NONE;
    switch ((cfx_opcode)n->op) {
    case CFX_OP_CALL_FUNCTION:
        return function_effect(n, who, effect, err);
    case CFX_OP_CALL_METHOD:
        *effect = method_effect(n);
        break;
    case CFX_OP_CALL_MODULE:
        return module_effect(n, who, effect, err);
    case CFX_OP_PLACEHOLDER:
    case CFX_OP_OUTPUT:
        *effect = CFX_EFFECT_ALONE;
        break;
    case CFX_OP_GET_ATTR:
    case CFX_OPCODE_COUNT:
        break;
    }
    return CFX_OK;
}

static cfx_status effect_of(cfx_node *n, const experts *who, cfx_effect *effect, cfx_error *err)
{
    CFX_TRY(own_effect(n, who, effect, err));
    if (!who->opts || n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT)
        return CFX_OK;
    int answer = who->opts->effect(who->opts->ctx, n);
    if (answer < 0)
        return unknown(n, err);
    if (answer > (int)*effect)
        *effect = answer == CFX_EFFECT_ALONE ? CFX_EFFECT_ALONE : CFX_EFFECT_WRITES;
    return CFX_OK;
}

cfx_status cfxi_analysis_node_effect(cfx_node *n, const cfx_module_tree *modules,
                                     const cfx_effect_opinion *opts, cfx_effect *effect,
                                     cfx_error *err)
{
    const experts who = {modules, opts && opts->effect ? opts : NULL};
    cfxi_ir_graph_freeze(n->graph);  /* the host may run any code */
    const cfx_status status = effect_of(n, &who, effect, err);
    cfxi_ir_graph_thaw(n->graph);
    return status;
}

cfx_status cfx_node_effect(cfx_node *n, const cfx_module_tree *modules, cfx_effect *effect,
                           cfx_error *err)
{
    return cfxi_analysis_node_effect(n, modules, NULL, effect, err);
}
