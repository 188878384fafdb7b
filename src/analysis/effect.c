/* effect.c - what a call does besides returning its result (effects_impl.h).
 *
 * The operator table knows (its schemas say what is written to, its flags what is random); the
 * lists here are for names that are in no row, and err on the safe side. Modules are looked up in
 * the tree (module_effect.c). A function that is in none of them does what the host says of it.
 */
#include "effects_impl.h"
#include "ops/ops_impl.h"
#include "runtime/library_rows.h"

#include <stdlib.h>

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

static const char *const reporters[] = {"builtins.input"};

/* Functions without a row that draw random numbers. */
static const char *const random_functions[] = {
    "torch.nn.functional.fractional_max_pool3d",
    "torch.nn.functional.fractional_max_pool3d_with_indices",
};

/* What sets or reads the state of a random generator, as a method or a function of torch and of
 * Python's random: between two draws it changes the second, or tells of the first. */
static const char *const generator_calls[] = {
    "default_rng", "fork_rng", "get_offset", "get_rng_state", "get_rng_state_all", "get_state",
    "getstate", "graphsafe_get_state", "graphsafe_set_state", "initial_seed", "manual_seed",
    "manual_seed_all", "seed", "seed_all", "set_offset", "set_rng_state", "set_rng_state_all",
    "set_state", "setstate",
};

/* The same for torch.ops.aten, and for torch itself. */
static const char *const random_packets[] = {
    "_cudnn_rnn", "_efficient_attention_forward", "_flash_attention_forward", "_fused_dropout",
    "_fused_sdp_choice", "_sample_dirichlet", "_scaled_dot_product_attention_math",
    "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention", "_standard_gamma", "binomial", "fractional_max_pool2d",
    "fractional_max_pool3d", "miopen_rnn", "rrelu_with_noise", "rrelu_with_noise_functional",
};

/* Overloads that update statistics. */
static const char *const statistics_packets[] = {"cudnn_batch_norm", "miopen_batch_norm"};

static const char row_prefix[] = "cfx.ops.";  /* what a lowered graph calls */

enum { ASKED = 128 };  /* the answer that a callee keeps is there */

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* ---- lists --------------------------------------------------------------------------------- */

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

/* ---- by name ------------------------------------------------------------------------------- */

/* "add_", "__iadd__", "__setitem__"; but not "__add__". */
static bool writes_by_spelling(const char *name, size_t size)
{
    if (size > 4 && memcmp(name, "__", 2) == 0 && memcmp(name + size - 2, "__", 2) == 0)
        return cfxi_analysis_operator_writes(cfxi_ops_of_method(name, size)) ||
               cfxi_analysis_is_listed(name + 2, size - 4, ROWS(writers));
    return size > 1 && name[size - 1] == '_' && name[size - 2] != '_';
}

static unsigned method_name_does(const char *name, size_t size)
{
    bool writes = writes_by_spelling(name, size) ||
                  cfxi_analysis_is_listed(name, size, ROWS(writing_methods));
    const bool seeds = cfxi_analysis_is_listed(name, size, ROWS(generator_calls));
    return CFXI_UNKNOWN | (writes ? CFXI_WRITES_ARGUMENTS : 0) |
           (seeds ? CFXI_WRITES_ARGUMENTS | CFXI_DRAWS : 0);
}

/* Whether a name of torch.ops stands for an overload that writes to an argument: "add_.Tensor", or
 * one with an "out". */
static bool overload_writes(const char *name)
{
    size_t size = strcspn(name, ".");
    const char *overload = name[size] ? name + size + 1 : "";
    bool dunder = size > 2 && memcmp(name + size - 2, "__", 2) == 0;
    bool in_place = size > 1 && name[size - 1] == '_' && !dunder;
    size_t last = strlen(overload);
    return in_place || (last >= 3 && strcmp(overload + last - 3, "out") == 0);
}

/* `name` is "add_.Tensor" of "torch.ops.aten.add_.Tensor". */
static unsigned overload_does(const char *name)
{
    const size_t size = strcspn(name, ".");
    unsigned does = overload_writes(name) ? CFXI_WRITES_ARGUMENTS | CFXI_KEPT : 0;
    if (cfxi_analysis_is_listed(name, size, ROWS(random_packets)))
        does |= CFXI_DRAWS;
    if (cfxi_analysis_is_listed(name, size, ROWS(statistics_packets)))
        does |= CFXI_WRITES_ARGUMENTS | CFXI_KEPT;
    return does;
}

/* Functions of Python and torch compute, unless they are in a list above. Those of torch that call
 * what they are given are elsewhere: torch.func, torch.utils. */
static bool is_computing(const char *name)
{
    static const char *const spaces[] = {
        "_operator.", "builtins.", "cfx.ops.", "math.", "operator.", "torch.Tensor.", "torch._C.",
        "torch.fft.", "torch.functional.", "torch.linalg.", "torch.nn.functional.",
        "torch.special.",
    };
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (has_prefix(name, spaces[i]))
            return true;
    return has_prefix(name, "torch.") && !strchr(name + strlen("torch."), '.');
}

/* Whether all that a function does is to set or read a generator: torch.manual_seed,
 * torch.cuda.manual_seed, random.seed. */
static bool is_of_generator(const char *name, const char *last, size_t size)
{
    static const char *const spaces[] = {"torch.", "random.", "numpy.random."};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (has_prefix(name, spaces[i]))
            return cfxi_analysis_is_listed(last, size, ROWS(generator_calls));
    return false;
}

static unsigned name_does(const cfx_str *name)
{
    const char *dot = strrchr(name->data, '.');
    const char *last = dot ? dot + 1 : name->data;
    const size_t size = name->size - (size_t)(last - name->data);
    const bool aten = has_prefix(name->data, "torch.ops.aten.");
    const unsigned known = aten || is_computing(name->data) ? 0 : CFXI_UNKNOWN;
    if (has_prefix(name->data, "torch.ops.")) {
        const char *space = strchr(name->data + strlen("torch.ops."), '.');
        return known | (space ? overload_does(space + 1) : 0);
    }
    if (cfxi_analysis_is_listed(name->data, name->size, ROWS(reporters)))
        return CFXI_REPORTS;
    if (is_of_generator(name->data, last, size))
        return CFXI_DRAWS;
    if (cfx_name_runs_code(name->data, name->size))  /* breakpoint, os.system: nobody knows what */
        return CFXI_UNKNOWN | CFXI_REPORTS;
    if (cfxi_analysis_is_listed(name->data, name->size, ROWS(random_functions)) ||
        (last == name->data + strlen("torch.") && has_prefix(name->data, "torch.") &&
         cfxi_analysis_is_listed(last, size, ROWS(random_packets))))
        return CFXI_DRAWS;
    bool plain = has_prefix(name->data, "operator.") || has_prefix(name->data, "_operator.") ||
                 has_prefix(name->data, "builtins.");
    bool writes =
        plain ? cfxi_analysis_is_listed(last, size, ROWS(writers)) /* operator.and_ does not */
              : writes_by_spelling(last, size);
    return known | (writes ? CFXI_WRITES_ARGUMENTS : 0);
}

/* ---- by row -------------------------------------------------------------------------------- */

bool cfxi_analysis_operator_writes(cfx_operator op)
{
    const char *schema = cfx_operator_schema(op);
    return schema && strchr(schema, '!') != NULL;
}

/* Statistics are among the arguments; `refine` looks whether they are there. */
static unsigned flags_do(unsigned flags, bool writes)
{
    return (writes || (flags & CFX_OPERATOR_STATE) ? CFXI_WRITES_ARGUMENTS : 0) |
           (flags & CFX_OPERATOR_GLOBAL ? CFXI_WRITES_ALL : 0) |
           (flags & CFX_OPERATOR_RANDOM ? CFXI_DRAWS : 0) |
           (flags & CFX_OPERATOR_CHECKS ? CFXI_REPORTS : 0);
}

static unsigned row_does(cfx_operator op)
{
    return flags_do(cfx_operator_flags(op), cfxi_analysis_operator_writes(op));
}

/* torch.fx keeps every overload that writes, whatever its arguments, and operator.setitem. A row
 * itself, which torch.fx does not know, is as good as an overload. */
static bool torch_fx_keeps(const cfx_str *name, cfx_operator op)
{
    if (has_prefix(name->data, row_prefix) || has_prefix(name->data, "torch.ops."))
        return cfxi_analysis_operator_writes(op);
    return op == CFX_OPID_setitem && (has_prefix(name->data, "operator.") ||
                                       has_prefix(name->data, "_operator."));
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

static bool is_switched_off(const cfx_node *n, cfx_operator op)
{
    static const char *const switches[] = {"train", "training", "use_input_stats", "p", "dropout_p",
                                           "dropout"};
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (is_off(n, op, switches[i]))
            return true;
    return false;
}

/* What a row's flags mean for these arguments: dropout does nothing but in training, batch_norm
 * then writes to its statistics, if it is given any. */
static unsigned refine(const cfx_node *n, cfx_operator op, unsigned does)
{
    const unsigned flags = cfx_operator_flags(op);
    if (!(flags & (CFX_OPERATOR_RANDOM | CFX_OPERATOR_STATE)))
        return does;
    const bool off = is_switched_off(n, op);
    if (off)
        does &= ~(unsigned)CFXI_DRAWS;
    if (!(flags & CFX_OPERATOR_STATE) || cfxi_analysis_operator_writes(op))
        return does;
    const cfx_kind mean = cfx_node_operand(n, "running_mean").kind;
    const bool none = mean == CFX_KIND_INVALID || mean == CFX_KIND_NONE;
    return off || none ? does & ~(unsigned)CFXI_WRITES_ARGUMENTS : does | CFXI_KEPT;
}

/* ---- by the host --------------------------------------------------------------------------- */

static cfx_status ask_host(cfx_node *n, bool *impure, cfx_error *err)
{
    const cfx_host *host = n->graph->host;
    const int answer = host && host->is_impure ? host->is_impure(host->ctx, n) : 0;
    *impure = answer > 0;
    if (answer < 0)
        return cfx_error_set(err, CFX_E_HOST, "could not tell whether node %%%s has an effect",
                             n->name->data);
    return CFX_OK;
}

/* An unknown function of the host may do anything. A function with a schema that the host can
 * read is known. */
static cfx_status add_host(cfx_node *n, const cfx_str *name, unsigned *does, cfx_error *err)
{
    bool impure;
    if (n->callee->ref->kind != CFXI_REF_OBJECT || (name && has_prefix(name->data, row_prefix)))
        return CFX_OK;
    CFX_TRY(ask_host(n, &impure, err));
    if (name && has_prefix(name->data, "torch.ops."))
        *does &= ~(unsigned)CFXI_UNKNOWN;
    if (impure && !(*does & ~(unsigned)CFXI_UNKNOWN))
        *does = CFXI_WRITES_ALL;
    if (impure)
        *does |= CFXI_KEPT;
    return CFX_OK;
}

/* What the target says, whatever the arguments; kept with the callee. */
static cfx_status callee_does(cfx_node *n, unsigned *does, cfx_error *err)
{
    cfxi_callee *callee = n->callee;
    cfx_error why = {.status = CFX_OK};
    *does = callee->does & ~(unsigned)ASKED;
    if (callee->does)
        return CFX_OK;
    const cfx_str *name = cfxi_ir_ref_qualified_name(n->graph, callee->ref, &why);
    if (!name && why.status != CFX_E_KEY) {  /* objects without a name are all right */
        if (err)
            *err = why;
        return why.status;
    }
    const cfx_operator op = cfx_node_operator(n);
    *does = op ? row_does(op) : name ? name_does(name) : CFXI_UNKNOWN;
    if (name && torch_fx_keeps(name, op))
        *does |= CFXI_KEPT;
    CFX_TRY(add_host(n, name, does, err));
    callee->does = (uint8_t)(ASKED | *does);
    return CFX_OK;
}

/* A library's row says it all; but its host may know better that it has an effect. The answer hangs
 * on the library, so that it is not kept. */
static cfx_status custom_does(cfx_node *n, const cfx_custom_operator *f, unsigned *does,
                              cfx_error *err)
{
    *does = flags_do(f->flags, cfxi_ops_schema_writes(f->schema));
    return add_host(n, NULL, does, err);
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

static cfx_status node_does(cfxi_effect_model *m, cfx_node *n, unsigned *does, cfx_error *err);

static cfx_status region_does(cfxi_effect_model *m, const cfx_graph *g, unsigned *does,
                              cfx_error *err)
{
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        unsigned one = 0;
        if (n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT)
            continue;
        CFX_TRY(node_does(m, n, &one, err));
        *does |= n->op == CFX_OP_CALL_MODULE ? one : one & ~(unsigned)CFXI_UNKNOWN;
    }
    return CFX_OK;
}

static cfx_status items_do(cfxi_effect_model *m, const cfx_seq *seq, unsigned *does,
                           cfx_error *err)
{
    for (uint32_t i = 0; seq && i < seq->size; i++) {
        const cfx_graph *region = cfx_value_graph(seq->items[i]);
        if (region)
            CFX_TRY(region_does(m, region, does, err));
    }
    return CFX_OK;
}

/* What a region writes to is not followed to the operands. */
static cfx_status regions_do(cfxi_effect_model *m, const cfx_node *n, unsigned *does,
                             cfx_error *err)
{
    *does = 0;
    CFX_TRY(items_do(m, n->args, does, err));
    CFX_TRY(items_do(m, n->kwargs, does, err));
    if (*does & CFXI_WRITES_ANY)
        *does |= CFXI_WRITES_ALL;
    return CFX_OK;
}

static cfx_status function_does(cfxi_effect_model *m, cfx_node *n, unsigned *does, cfx_error *err)
{
    const cfx_operator op = cfx_node_operator(n);
    if (cfx_operator_regions(op) > 0)
        return regions_do(m, n, does, err);
    const cfx_custom_operator *custom = cfxi_rt_node_custom(n, cfxi_analysis_model_library(m));
    CFX_TRY(custom ? custom_does(n, custom, does, err) : callee_does(n, does, err));
    *does = refine(n, op, *does);
    if (cfxi_analysis_arguments_write(n))
        *does |= CFXI_WRITES_ARGUMENTS | (scales_weight(n) ? CFXI_KEPT : 0);
    return CFX_OK;
}

static unsigned method_does(const cfx_node *n)
{
    const cfx_str *name = n->callee->ref->name;
    const cfx_operator op = cfx_node_operator(n);
    const unsigned does = op ? refine(n, op, row_does(op))
                             : method_name_does(name->data, name->size);
    return cfxi_analysis_arguments_write(n) ? does | CFXI_WRITES_ARGUMENTS : does;
}

/* Without a tree the host is asked, which may know what the modules are. */
static cfx_status module_does(cfxi_effect_model *m, cfx_node *n, unsigned *does, cfx_error *err)
{
    bool impure;
    if (cfxi_analysis_modules_or_null(m->modules)) {
        const cfxi_module_facts *facts;
        CFX_TRY(cfxi_analysis_module_facts(m, n->graph, n->callee->ref->name->data, &facts, err));
        *does = facts->does;
        return CFX_OK;
    }
    CFX_TRY(ask_host(n, &impure, err));
    *does = CFXI_UNKNOWN | (impure ? CFXI_WRITES_ALL | CFXI_KEPT : 0);
    return CFX_OK;
}

static cfx_status node_does(cfxi_effect_model *m, cfx_node *n, unsigned *does, cfx_error *err)
{
    *does = 0;
    switch ((cfx_opcode)n->op) {
    case CFX_OP_CALL_FUNCTION:
        CFX_TRY(function_does(m, n, does, err));
        break;
    case CFX_OP_CALL_METHOD:
        *does = method_does(n);
        break;
    case CFX_OP_CALL_MODULE:
        CFX_TRY(module_does(m, n, does, err));
        break;
    case CFX_OP_PLACEHOLDER:
    case CFX_OP_OUTPUT:
        *does = CFXI_REPORTS;
        break;
    case CFX_OP_GET_ATTR:
    case CFX_OPCODE_COUNT:
        break;
    }
    if (m->strict && (*does & CFXI_UNKNOWN))
        *does |= CFXI_WRITES_ALL;
    return CFX_OK;
}

cfx_status cfxi_analysis_does(cfxi_effect_model *m, cfx_node *n, unsigned *does, cfx_error *err)
{
    cfxi_ir_graph_freeze(n->graph);  /* the host may run any code */
    const cfx_status status = node_does(m, n, does, err);
    cfxi_ir_graph_thaw(n->graph);
    return status;
}

/* A module that nothing is known about may have state. */
cfx_effect cfxi_analysis_kind(const cfx_node *n, unsigned does)
{
    if (does & CFXI_WRITES_ANY)
        return CFX_EFFECT_WRITES;
    if (does & (CFXI_DRAWS | CFXI_REPORTS))
        return CFX_EFFECT_ALONE;
    const bool module = n->op == CFX_OP_CALL_MODULE || cfx_operator_regions(cfx_node_operator(n));
    return module && (does & CFXI_UNKNOWN) ? CFX_EFFECT_ALONE : CFX_EFFECT_NONE;
}

cfx_status cfxi_analysis_effect(cfxi_effect_model *m, cfx_node *n, cfx_effect *effect,
                                cfx_error *err)
{
    unsigned does = 0;
    const cfx_status status = cfxi_analysis_does(m, n, &does, err);
    *effect = status == CFX_OK ? cfxi_analysis_kind(n, does) : CFX_EFFECT_WRITES;
    return status;
}

bool cfxi_analysis_must_stay(unsigned does, bool like_torch_fx)
{
    unsigned kept = CFXI_DRAWS | CFXI_REPORTS | CFXI_WRITES_STATE | CFXI_WRITES_ALL | CFXI_KEPT;
    if (!like_torch_fx)
        kept |= CFXI_WRITES_ARGUMENTS;
    return does & kept;
}

cfx_status cfxi_analysis_model_operator(cfxi_effect_model *m, const cfx_node *n, cfx_operator *op,
                                        cfx_error *err)
{
    *op = cfx_node_operator(n);
    if (n->op != CFX_OP_CALL_MODULE || !cfxi_analysis_modules_or_null(m->modules))
        return CFX_OK;
    const cfxi_module_facts *facts;
    CFX_TRY(cfxi_analysis_module_facts(m, n->graph, n->callee->ref->name->data, &facts, err));
    *op = facts->op;
    return CFX_OK;
}

/* ---- what others ask ----------------------------------------------------------------------- */

cfx_status cfx_node_effect(cfx_node *n, const cfx_module_tree *modules, cfx_effect *effect,
                           cfx_error *err)
{
    cfxi_effect_model m = {.modules = modules};
    const cfx_status status = cfxi_analysis_effect(&m, n, effect, err);
    cfxi_analysis_model_end(&m);
    return status;
}

int cfx_node_is_impure(cfx_node *n)
{
    cfxi_effect_model m = {.modules = NULL};
    unsigned does = 0;
    const cfx_status status = cfxi_analysis_does(&m, n, &does, NULL);
    cfxi_analysis_model_end(&m);
    return status == CFX_OK ? cfxi_analysis_must_stay(does, false) : -1;
}
