/* lower.c - from what a program says to what computes: every call becomes a call of a row.
 *
 *     before                                    after
 *     %x = placeholder[target=x]()              %x = placeholder[target=x]()
 *     %a = call_method[target=max](%x, dim=1)   %a = call_function[target=cfx.ops.max_dim](%x, 1)
 *     %fc = call_module[target=fc](%x)          %fc_weight = get_attr[target=fc.weight]()
 *     output((%a, %fc))                         %fc_bias = get_attr[target=fc.bias]()
 *                                               %fc = call_function[target=cfx.ops.linear](...)
 *                                               output((%a, %fc))
 *
 * Needs: the modules, where the graph calls or reads some.
 * Keeps: names, order, users and locations of all nodes but calls of captured modules (inline).
 *
 * The mode of modules (training or not) is fixed to the present one: lower_mode.c.
 * It is tried on a copy first, so that all that is in the way can be said before anything changes.
 * Linear in nodes and edges.
 */
#include "lower_impl.h"
#include "pass/pass_impl.h"
#include "runtime/library_rows.h"

#include <cfx/runtime.h>

/* ---- attributes ---------------------------------------------------------------------------- */

/* `v` for all uses of a node, which goes. */
static cfx_status replace_node(cfxi_lower *l, cfx_node *n, cfx_value v)
{
    const cfx_status status = cfx_node_replace_uses(n, v, NULL, NULL, NULL, l->err);
    return status == CFX_OK ? cfx_graph_erase(l->g, n, l->err) : status;
}

static cfx_status read_first(cfxi_lower *l, cfx_node *n, const char *path)
{
    const char *first = cfxi_lower_path(l, path);
    if (!first)
        return l->err->status;
    const cfx_target target = {.name = first, .size = strlen(first)};
    return strcmp(first, path) == 0 ? CFX_OK : cfx_node_set_target(n, target, l->err);
}

/* A number that is read becomes the number; the node goes, and `*gone` says so. */
static cfx_status lower_attribute(cfxi_lower *l, cfx_node *n)
{
    const char *path = n->callee->ref->name->data;
    cfx_value v;
    cfx_value dtype;
    if (!l->modules)
        return cfxi_lower_note(l, n);
    CFX_TRY(cfxi_ops_module_attr(l->modules, l->g, path, "", &v, l->err));
    if (v.kind == CFX_KIND_INVALID)
        return cfxi_lower_refuse(l, n, "the module has no attribute '%.100s'", path);
    if (v.kind == CFX_KIND_HOST) {
        cfx_value_discard(l->g, v);
        CFX_TRY(cfxi_ops_module_attr(l->modules, l->g, path, "dtype", &dtype, l->err));
        if (dtype.kind == CFX_KIND_DTYPE)
            CFX_TRY(read_first(l, n, path));
        if (dtype.kind == CFX_KIND_DTYPE || n->n_users == 0)
            return cfxi_lower_note(l, n);
        return cfxi_lower_refuse(l, n, "the attribute '%.100s' is not a tensor", path);
    }
    const cfx_status status = replace_node(l, n, v);
    cfx_value_discard(l->g, v);
    return status;
}

/* ---- calls --------------------------------------------------------------------------------- */

/* torch.finfo(dtype).max: what is read of limits is an item of theirs. */
static bool reads_limits(const cfxi_lower *l, const cfx_node *n)
{
    return cfx_node_operator(n) == CFX_OPID_getattr &&
           cfxi_lower_what(l, cfx_node_arg(n, 0)) == CFXI_WHAT_LIMITS;
}

/* What switches gradients off and on, or tells a profiler: nothing here has gradients, or is
 * watched by one. Its value is then `gone`. */
static bool is_switch(const cfx_node *n, const char *target, cfx_value *gone)
{
    static const char *const switches[] = {
        "torch.autograd.grad_mode._enter_inference_mode",
        "torch.autograd.grad_mode._exit_inference_mode",
        "cfx._glue.contexts.enter_kernels",  /* of attention: there is one */
        "cfx._glue.contexts.exit_kernels",
        "torch.ops.profiler._record_function_enter_new",
        "torch.ops.profiler._record_function_exit._RecordFunction",
    };
    *gone = cfx_value_none();
    if (cfx_node_operator(n))
        return cfx_node_operator(n) == CFX_OPID_set_grad_enabled;
    for (size_t i = 0; target && i < sizeof switches / sizeof *switches; i++)
        if (strcmp(target, switches[i]) == 0)
            return true;
    *gone = cfx_value_bool(false);
    return target && strcmp(target, "torch.is_grad_enabled") == 0;
}

/* What autocast changes is not computed here; one that is switched off changes nothing. */
static bool is_idle_autocast(const cfx_node *n, const char *target)
{
    static const char home[] = "torch.amp.autocast_mode.";
    if (!target || strncmp(target, home, sizeof home - 1) != 0)
        return false;
    target += sizeof home - 1;
    if (strcmp(target, "_exit_autocast") == 0)  /* of what has gone */
        return cfxi_lower_argument(n, 0, "mode").kind == CFX_KIND_NONE;
    const cfx_value enabled = cfxi_lower_argument(n, 2, "enabled");
    return strcmp(target, "_enter_autocast") == 0 && enabled.kind == CFX_KIND_BOOL &&
           !enabled.as.b;
}

/* setattr(x, "requires_grad", flag) of a tensor. */
static bool switches_gradients(const cfx_node *n)
{
    const cfx_value of = cfx_node_arg(n, 0);
    const cfx_value name = cfx_node_arg(n, 1);
    return cfx_node_operator(n) == CFX_OPID_setattr && of.kind == CFX_KIND_NODE &&
           name.kind == CFX_KIND_STR && strcmp(cfx_value_text(name, NULL), "requires_grad") == 0;
}

/* x.requires_grad and its like. */
static bool asks_for_gradients(const cfx_node *n)
{
    static const char *const names[] = {"requires_grad", "grad", "grad_fn", "is_leaf",
                                        "retains_grad"};
    const cfx_value of = cfx_node_arg(n, 0);
    const cfx_value name = cfx_node_arg(n, 1);
    if (cfx_node_operator(n) != CFX_OPID_getattr || name.kind != CFX_KIND_STR ||
        of.kind != CFX_KIND_NODE)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(cfx_value_text(name, NULL), names[i]) == 0)
            return true;
    return false;
}

/* getattr(x, name, None): the row cannot tell this default from none at all. */
static bool defaults_to_none(const cfx_node *n)
{
    return cfx_node_operator(n) == CFX_OPID_getattr && cfx_node_num_args(n) == 3 &&
           cfx_node_arg(n, 0).kind == CFX_KIND_NODE && cfx_node_arg(n, 2).kind == CFX_KIND_NONE;
}

/* `a in [1, a]` is true in Python even if `a` is NaN, which equals nothing: it is the same object.
 * Numbers do not tell when the program runs. */
static bool contains_itself(const cfxi_lower *l, const cfx_node *n)
{
    size_t count = 0;
    const cfx_value in = cfx_node_arg(n, 0);
    const cfx_value item = cfx_node_arg(n, 1);
    if (cfx_node_operator(n) != CFX_OPID_contains || item.kind != CFX_KIND_NODE ||
        (in.kind != CFX_KIND_LIST && in.kind != CFX_KIND_TUPLE))
        return false;
    const cfx_value *items = cfx_value_items(in, &count);
    for (size_t i = 0; i < count; i++) {
        if (items[i].kind == CFX_KIND_NODE && items[i].as.node == item.as.node)
            return true;
        if (cfxi_lower_what(l, items[i]) != CFXI_WHAT_NUMBER ||
            cfxi_lower_what(l, item) != CFXI_WHAT_NUMBER)
            return false;  /* comparing them may fail */
    }
    return false;
}

static cfx_status lower_call(cfxi_lower *l, cfx_node *n)
{
    cfxi_lowered c;
    cfx_error host = {0};
    cfx_value gone;
    const char *target = cfx_node_operator(n) ? NULL : cfx_node_target(n, NULL, &host);
    if (is_switch(n, target, &gone))
        return replace_node(l, n, gone);
    if (is_idle_autocast(n, target) || switches_gradients(n))
        return replace_node(l, n, cfx_value_none());
    bool done;
    CFX_TRY(cfxi_lower_list_method(l, n, &done));
    if (done)
        return CFX_OK;
    if (!cfx_node_operator(n)) {
        if (target && strncmp(target, "torch.amp.autocast_mode._", 25) == 0)
            return cfxi_lower_refuse(l, n, "a program in C computes in the types of its tensors, "
                                     "not in those that autocast picks; convert tensors where "
                                     "they change, or switch autocast off");
        const cfx_custom_operator *custom = cfxi_rt_node_custom(n, l->library);
        if (custom)
            return cfxi_lower_custom(l, n, custom);
        return cfxi_lower_refuse(l, n, "'%.100s' is not in the operator table%s",
                                 target ? target : "(unnamed function)",
                                 l->library ? " or the library" : "");
    }
    CFX_TRY(cfxi_lower_check_view(l, n, &done));
    if (done)
        return CFX_OK;
    if (asks_for_gradients(n))
        return cfxi_lower_refuse(l, n, "a program in C has no gradients, and cannot tell whether "
                                 "its inputs have; leave the question out, or pass the answer as "
                                 "an argument");
    if (defaults_to_none(n))
        return cfxi_lower_refuse(l, n, "getattr of a graph value with the default None is not "
                                 "supported in C; use another default");
    if (contains_itself(l, n))
        return replace_node(l, n, cfx_value_bool(true));
    if (cfx_node_operator(n) == CFX_OPID_builtin_print && !cfxi_lower_calls_row(n))
        return cfxi_lower_print(l, n);
    if (!cfxi_lower_choose(l, n, &c)) {
        CFX_TRY(l->err->status);
        return cfxi_lower_refuse(l, n, "%s", c.why);
    }
    if (reads_limits(l, n))
        c.op = CFX_OPID_getitem;
    return cfxi_lower_write(l, n, &c);
}

static cfx_status lower_node(cfxi_lower *l, cfx_node *n)
{
    switch ((cfx_opcode)n->op) {
    case CFX_OP_PLACEHOLDER: return cfxi_lower_note(l, n);
    case CFX_OP_GET_ATTR: return lower_attribute(l, n);
    case CFX_OP_CALL_FUNCTION:
    case CFX_OP_CALL_METHOD: return lower_call(l, n);
    case CFX_OP_CALL_MODULE: return cfxi_lower_module(l, n);
    case CFX_OP_OUTPUT:
    case CFX_OPCODE_COUNT: break;
    }
    return CFX_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static cfx_status lower_graph(cfx_graph *g, void *ctx, cfx_error *err);

/* A node with its regions, which come first: what they give tells what the node gives. */
static cfx_status lower_with_regions(cfxi_lower *l, cfx_node *n)
{
    size_t n_values;
    const char *why = l->options.stay ? l->options.stay(l->options.ctx, n) : NULL;
    if (why)
        return cfxi_lower_refuse(l, n, "%s", why);
    if (cfx_operator_regions(cfx_node_operator(n)) == 0)
        return lower_node(l, n);
    CFX_TRY(cfxi_lower_note_inputs(l, n));
    const cfx_value all[] = {cfx_node_args(n), cfx_node_kwargs(n)};
    for (size_t k = 0; k < 2; k++) {
        const cfx_value *values = cfx_value_items(all[k], &n_values);
        for (size_t i = 0; i < n_values; i++)
            if (values[i].kind == CFX_KIND_GRAPH)
                CFX_TRY(lower_graph(cfx_value_graph(values[i]), l, l->err));
    }
    return lower_node(l, n);
}

/* A region that was lowered already, with the node that holds it or as another's, has an entry for
 * its last node. */
static cfx_status lower_graph(cfx_graph *g, void *ctx, cfx_error *err)
{
    cfxi_lower *l = ctx;
    cfx_graph *outer = l->g;
    cfx_iter it;  /* the host is asked for attributes, and may run any code */
    cfx_status status = CFX_OK;
    const cfx_node *last = cfx_graph_last(g);
    if (!last || cfx_node_map_get(l->what, last).kind != CFX_KIND_INVALID)
        return CFX_OK;
    l->g = g;
    cfx_iter_begin(&it, g, false);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;)
        if (cfx_node_map_get(l->what, n).kind == CFX_KIND_INVALID)  /* else it is new, and ready */
            status = lower_with_regions(l, n);
    cfx_iter_end(&it);
    if (status == CFX_OK)
        status = cfxi_analysis_each_region(g, lower_graph, l, err);
    last = cfx_graph_last(g);
    if (status == CFX_OK && last)
        status = cfx_node_map_set(l->what, last, cfx_value_int(CFXI_WHAT_ANY), err);
    l->g = outer;
    return status;
}

static cfx_status lower_all(cfxi_lower *l, cfx_graph *g)
{
    l->g = g;
    l->what = cfx_node_map_new(g->allocator, l->err);
    cfx_status status = l->what ? CFX_OK : CFX_E_NOMEM;
    if (status == CFX_OK && l->modules)
        status = cfxi_pass_inline(g, l->modules, NULL, NULL, l->err);
    if (status == CFX_OK)
        status = cfxi_lower_modes(g, l->modules, l->err);
    if (status == CFX_OK)
        status = lower_graph(g, l, l->err);
    cfxi_lower_paths_free(l);
    cfx_node_map_free(l->what);
    return status;
}

cfx_status cfx_graph_lower(cfx_graph *g, const cfx_module_tree *modules,
                           const cfx_lower_options *options, cfx_error *err)
{
    cfx_error own;
    cfxi_lower trial = {.library = modules ? modules->library : NULL,
                        .options = options ? *options : (cfx_lower_options){0}};
    cfxi_lower real = trial;
    real.options.each = NULL;
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    trial.modules = real.modules = cfxi_analysis_modules_or_null(modules);
    err = cfxi_base_error_or(err, &own);
    *err = (cfx_error){0};
    trial.err = real.err = err;
    if (trial.options.partial)
        return lower_all(&trial, g);
    cfx_graph *copy = cfx_graph_clone(g, NULL, err);
    if (!copy)
        return err->status;
    cfx_status status = lower_all(&trial, copy);
    cfx_graph_release(copy);
    CFX_TRY(status);
    if (trial.refused > 1)
        return cfx_error_set(err, CFX_E_TYPE, "%.440s; and %zu more", trial.first.message,
                             trial.refused - 1);
    if (trial.refused == 1) {
        *err = trial.first;
        return CFX_E_TYPE;
    }
    return lower_all(&real, g);
}

cfx_status cfxi_pass_lower(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                           bool *changed, cfx_error *err)
{
    const uint64_t before = cfx_graph_version(g);
    (void)opts;
    cfx_status status = cfx_graph_lower(g, modules, NULL, err);
    if (changed)
        *changed = cfx_graph_version(g) != before;
    return status;
}
