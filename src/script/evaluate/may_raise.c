/* may_raise.c - what the nodes of a try statement or `with` block may raise when the graph runs.
 *
 * A handler that was there during capture is not there when the graph runs, and neither is what
 * `finally` or `__exit__` does after an exception. So a handler is refused where a node may raise
 * what it catches, and an effect of `finally` or `__exit__` where a node may raise anything.
 */
#include "graph_control_impl.h"

#include "ops/ops_impl.h"

#include <cfx/effect.h>
#include <cfx/embed/context.h>

/* Builtin classes, and bits for them. */
#define RAISED(X)                                                                                  \
    X(RUNTIME, RuntimeError) X(VALUE, ValueError) X(TYPE, TypeError) X(INDEX, IndexError)          \
    X(KEY, KeyError) X(ATTRIBUTE, AttributeError) X(ASSERTION, AssertionError)                     \
    X(ZERO, ZeroDivisionError) X(OVERFLOW, OverflowError) X(ANY, Exception)

enum {
#define X(id, name) NUMBER_##id,
    RAISED(X)
#undef X
};
enum {
#define X(id, name) id = 1 << NUMBER_##id,
    RAISED(X)
#undef X
    TORCH = RUNTIME | VALUE | TYPE | INDEX | ASSERTION | OVERFLOW,
    SIGN = RUNTIME | TYPE | OVERFLOW
};

/* ---- one node ------------------------------------------------------------------------------ */

static bool is_one_of(const char *name, const char *words)
{
    const size_t size = strlen(name);
    for (const char *at = strstr(words, name); at; at = strstr(at + 1, name))
        if ((at == words || at[-1] == ' ') && (at[size] == ' ' || at[size] == '\0'))
            return true;
    return false;
}

static bool is_number(cfx_object_kind kind)
{
    return kind == CFX_OBJECT_BOOL || kind == CFX_OBJECT_INT || kind == CFX_OBJECT_FLOAT;
}

/* What is known of all arguments: numbers, of which some are floats; a tensor among them. */
typedef struct kinds {
    bool numbers, floats, tensor;
} kinds;

static kinds kinds_of(cfx_evaluator *ev, const cfx_node *n)
{
    kinds k = {.numbers = true};
    for (size_t i = 0; i < cfx_node_num_args(n); i++) {
        const cfx_object_kind kind = cfxi_eval_value_kind(ev, cfx_node_arg(n, i));
        k.numbers = k.numbers && is_number(kind);
        k.floats = k.floats || kind == CFX_OBJECT_FLOAT;
        k.tensor = k.tensor || kind == CFX_OBJECT_TENSOR;
    }
    return k;
}

static unsigned item_raises(cfx_object_kind of)
{
    const bool list = of == CFX_OBJECT_TENSOR || of == CFX_OBJECT_TUPLE || of == CFX_OBJECT_LIST ||
                      of == CFX_OBJECT_STR;
    return RUNTIME | VALUE | TYPE | INDEX | (list ? 0 : KEY);
}

static unsigned operator_raises(cfx_evaluator *ev, const cfx_node *n, const char *name)
{
    const kinds k = kinds_of(ev, n);
    if (is_one_of(name, "is_ is_not"))
        return 0;
    if (strcmp(name, "getitem") == 0)
        return item_raises(cfxi_eval_value_kind(ev, cfx_node_arg(n, 0)));
    if (is_one_of(name, "setitem delitem contains indexOf countOf concat"))
        return TORCH | KEY;
    if (!k.numbers && is_one_of(name, "truediv floordiv mod pow itruediv ifloordiv imod ipow"))
        return k.tensor ? SIGN : SIGN | VALUE | ZERO | KEY;  /* "%(name)s" % dict */
    if (!k.numbers)
        return is_one_of(name, "lshift rshift ilshift irshift") ? SIGN | VALUE : SIGN;
    if (is_one_of(name, "eq ne lt le gt ge not_ truth neg pos invert abs and_ or_ xor"))
        return 0;
    if (is_one_of(name, "add sub mul iadd isub imul"))
        return k.floats ? OVERFLOW : 0;
    return ZERO | OVERFLOW | VALUE | TYPE;
}

static unsigned builtin_raises(cfx_evaluator *ev, const cfx_node *n, const char *name)
{
    const kinds k = kinds_of(ev, n);
    if (is_one_of(name, "isinstance callable hasattr id type str repr print"))
        return 0;
    if (strcmp(name, "getattr") == 0)
        return cfx_node_num_args(n) > 2 ? 0
               : cfxi_eval_value_kind(ev, cfx_node_arg(n, 0)) == CFX_OBJECT_TENSOR &&
                       cfxi_eval_is_attribute(ev, n)
                   ? 0
                   : RUNTIME | ATTRIBUTE | TYPE;
    if (k.numbers && is_one_of(name, "abs bool min max"))
        return 0;
    if (k.numbers && is_one_of(name, "int float round"))
        return k.floats ? VALUE | OVERFLOW : OVERFLOW;
    return is_one_of(name, "divmod pow") ? TORCH | ZERO : TORCH;
}

static unsigned method_raises(cfx_evaluator *ev, const cfx_node *n)
{
    cfx_error ignored = {0};
    const char *name = cfx_node_target(n, NULL, &ignored);
    const bool looks_up = name && is_one_of(name, "pop popitem remove format format_map "
                                                  "move_to_end __getitem__ __delitem__");
    const bool tensor = cfxi_eval_value_kind(ev, cfx_node_arg(n, 0)) == CFX_OBJECT_TENSOR;
    return tensor ? TORCH : TORCH | ATTRIBUTE | (looks_up ? KEY : 0);
}

/* What a call of a function of this qualified name raises, if it is Python's or PyTorch's. */
static unsigned function_raises(cfx_evaluator *ev, const cfx_node *n, const char *target)
{
    static const char modes[] = "is_grad_enabled is_inference_mode_enabled get_default_dtype "
                                "is_autocast_enabled get_autocast_dtype";
    if (strncmp(target, "operator.", 9) == 0 || strncmp(target, "_operator.", 10) == 0)
        return operator_raises(ev, n, strchr(target, '.') + 1);
    if (strncmp(target, "builtins.", 9) == 0)
        return builtin_raises(ev, n, target + 9);
    if (strncmp(target, "math.", 5) == 0)
        return VALUE | TYPE | OVERFLOW | ZERO;
    if (strncmp(target, "torch.", 6) == 0 && is_one_of(target + 6, modes))
        return 0;
    if (strcmp(target, "torch._C._set_grad_enabled") == 0 || cfx_node_leaves_context(n, NULL))
        return 0;
    if (strncmp(target, "torch.ops.profiler.", 19) == 0)
        return 0;
    if (strcmp(target, "cfx.check_length") == 0)
        return VALUE | TYPE;
    if (strcmp(target, "cfx.check_buffer") == 0)
        return RUNTIME;
    if (strcmp(target, "torch._assert") == 0)
        return ASSERTION | RUNTIME;  /* the truth of a tensor with several elements */
    if (strncmp(target, "torch.", 6) == 0 || strncmp(target, "cfx.ops.", 8) == 0)
        return TORCH;
    return ANY;
}

/* Whether it is what a `raise` of the program's became. */
static bool is_fail(const char *target)
{
    return strcmp(target, "cfx.fail") == 0 || strcmp(target, "cfx.ops.fail") == 0;
}

static unsigned graph_raises(cfx_evaluator *ev, const cfx_node *first, bool own);

static unsigned regions_raise(cfx_evaluator *ev, const cfx_node *n, bool own)
{
    unsigned raised = 0;
    for (size_t i = 0; i < cfx_node_num_args(n); i++) {
        const cfx_graph *region = cfx_value_graph(cfx_node_arg(n, i));
        if (region)
            raised |= graph_raises(ev, cfx_graph_first(region), own);
    }
    return raised;
}

static unsigned node_raises(cfx_evaluator *ev, const cfx_node *n, bool own)
{
    cfx_error ignored = {0};
    switch (cfx_node_op(n)) {
    case CFX_OP_PLACEHOLDER:
    case CFX_OP_GET_ATTR:
    case CFX_OP_OUTPUT:
    case CFX_OPCODE_COUNT:
        return 0;
    case CFX_OP_CALL_MODULE:
        return ANY;
    case CFX_OP_CALL_METHOD:
        return method_raises(ev, n);
    case CFX_OP_CALL_FUNCTION:
        break;
    }
    if (cfxi_ir_node_form(n))
        return regions_raise(ev, n, own) | RUNTIME;  /* the truth, as above */
    const char *target = cfx_node_target(n, NULL, &ignored);
    if (target && !own && is_fail(target))
        return 0;
    return target ? function_raises(ev, n, target) : ANY;
}

static unsigned graph_raises(cfx_evaluator *ev, const cfx_node *first, bool own)
{
    unsigned raised = 0;
    for (const cfx_node *n = first; n; n = cfx_node_next(n))
        raised |= node_raises(ev, n, own);
    return raised;
}

/* ---- questions ----------------------------------------------------------------------------- */

static const cfx_node *behind(cfx_evaluator *ev, const cfx_node *last)
{
    return last ? cfx_node_next(last) : cfx_graph_first(ev->g);
}

unsigned cfxi_eval_raised_since(cfx_evaluator *ev, const cfx_node *last, bool own)
{
    return graph_raises(ev, behind(ev, last), own);
}

int cfxi_eval_would_catch(cfx_evaluator *ev, cfx_object *classes, unsigned raised)
{
    static const char *const names[] = {
#define X(id, name) #name,
        RAISED(X)
#undef X
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!(raised >> i & 1))
            continue;
        const int catches =
            ev->w->would_catch(ev->w->ctx, classes, names[i], (raised & ANY) != 0, ev->err);
        if (catches != 0)
            return catches;
    }
    return 0;
}

/* Whether the program uses a value as a tensor or list: it calls a method or module with it, or a
 * function of PyTorch's that takes a tensor there. */
static bool seems_mutable(cfx_evaluator *ev, cfx_node *n)
{
    const cfx_object_kind kind = cfxi_eval_value_kind(ev, cfx_value_node(n));
    if (kind == CFX_OBJECT_TENSOR || kind == CFX_OBJECT_LIST)
        return true;
    if (kind != CFX_OBJECT_OTHER)
        return false;
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use)) {
        const cfx_node *user = cfx_use_user(use);
        const cfx_value first = cfx_node_arg(user, 0);
        const cfx_operator op = cfx_node_operator(user);
        cfx_schema_param param;
        cfx_error ignored = {0};
        const char *target = cfx_node_target(user, NULL, &ignored);
        if (first.kind != CFX_KIND_NODE || first.as.node != n)
            continue;
        if (cfx_node_op(user) != CFX_OP_CALL_FUNCTION || op == CFX_OPID_getattr ||
            (target && strncmp(target, "torch.", 6) == 0 && cfx_operator_param(op, 0, &param) &&
             strcmp(param.type, "Tensor") == 0))
            return true;
    }
    return false;
}

/* `n += 1` of a number: it changes a variable only. What is not known to be a number is taken for
 * one unless the program uses it as something else. */
static bool is_local(cfx_evaluator *ev, const cfx_node *n, const char *target)
{
    static const char signs[] =
        "iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift";
    const char *name = target ? strrchr(target, '.') : NULL;
    while (name && is_one_of(name + 1, signs)) {
        const cfx_value of = cfx_node_arg(n, 0);
        cfx_error ignored = {0};
        if (of.kind != CFX_KIND_NODE)
            return true;
        if (seems_mutable(ev, of.as.node))
            return false;
        n = of.as.node;
        target = cfx_node_target(n, NULL, &ignored);
        name = target ? strrchr(target, '.') : NULL;
        if (!name || !is_one_of(name + 1, signs))
            return true;
    }
    return false;
}

bool cfxi_eval_has_effect_since(cfx_evaluator *ev, const cfx_node *last, bool *has)
{
    *has = false;
    for (const cfx_node *n = behind(ev, last); n && !*has; n = cfx_node_next(n)) {
        cfx_effect effect = CFX_EFFECT_NONE;
        cfx_error ignored = {0};
        const char *target = cfx_node_target(n, NULL, &ignored);
        if (cfx_node_op(n) == CFX_OP_PLACEHOLDER || cfx_node_leaves_context(n, NULL) ||
            is_local(ev, n, target) ||
            (target && strncmp(target, "torch.ops.profiler.", 19) == 0))
            continue;
        if (cfx_node_effect((cfx_node *)(uintptr_t)n, NULL, &effect, ev->err) != CFX_OK)
            return false;
        *has = effect != CFX_EFFECT_NONE;
    }
    return true;
}

/* ---- what a manager catches ---------------------------------------------------------------- */

static bool is_falsy(const cfxi_ast *value)
{
    if (!value)
        return true;
    if (value->kind != CFXI_AST_Constant)
        return false;
    const cfxi_constant *c = &cfxi_syntax_as_Constant(value)->value;
    return c->kind == CFXI_CONST_NONE || c->kind == CFXI_CONST_FALSE;
}

static bool returns_true_in(cfxi_ast_list block);

/* Whether a statement of an __exit__ may return something true. */
static bool returns_true(const cfxi_ast *s)
{
    switch ((unsigned)s->kind) {
    case CFXI_AST_Return:
        return !is_falsy(cfxi_syntax_as_Return(s)->value);
    case CFXI_AST_If:
        return returns_true_in(cfxi_syntax_as_If(s)->body) ||
               returns_true_in(cfxi_syntax_as_If(s)->orelse);
    case CFXI_AST_While:
        return returns_true_in(cfxi_syntax_as_While(s)->body) ||
               returns_true_in(cfxi_syntax_as_While(s)->orelse);
    case CFXI_AST_For:
        return returns_true_in(cfxi_syntax_as_For(s)->body) ||
               returns_true_in(cfxi_syntax_as_For(s)->orelse);
    case CFXI_AST_With:
        return returns_true_in(cfxi_syntax_as_With(s)->body);
    case CFXI_AST_ExceptHandler:
        return returns_true_in(cfxi_syntax_as_ExceptHandler(s)->body);
    case CFXI_AST_match_case:
        return returns_true_in(cfxi_syntax_as_match_case(s)->body);
    case CFXI_AST_Match:
        return returns_true_in(cfxi_syntax_as_Match(s)->cases);
    case CFXI_AST_Try: {
        const cfxi_Try *t = cfxi_syntax_as_Try(s);
        return returns_true_in(t->body) || returns_true_in(t->handlers) ||
               returns_true_in(t->orelse) || returns_true_in(t->finalbody);
    }
    }
    return false;
}

static bool returns_true_in(cfxi_ast_list block)
{
    for (size_t i = 0; i < block.count; i++)
        if (returns_true(block.items[i]))
            return true;
    return false;
}

/* The def of a function that has a source, or NULL. */
static const cfx_script_def *def_of(cfx_evaluator *ev, cfx_object *f)
{
    cfx_script_callee c = {.kind = CFX_CALLEE_DIRECT};
    if (ev->w->callee(ev->w->ctx, f, &c, ev->err) != CFX_OK)
        return NULL;
    const cfx_script_def *def = c.kind == CFX_CALLEE_SOURCE ? c.def
                                : c.kind == CFX_CALLEE_OWN  ? c.own->def : NULL;
    return def && def->kind == CFXI_DEF_FUNCTION ? def : NULL;
}

bool cfxi_eval_has_source(cfx_evaluator *ev, cfx_object *f)
{
    const bool has = def_of(ev, f) != NULL;
    cfxi_eval_forget_failure(ev);
    return has;
}

bool cfxi_eval_manager_catches(cfx_evaluator *ev, cfx_object *manager, cfx_object *exit,
                               cfxi_catcher *out)
{
    const cfx_world *w = ev->w;
    const cfx_script_def *def = def_of(ev, exit);
    *out = (cfxi_catcher){0};
    if (def) {
        out->all = returns_true_in(((const cfxi_FunctionDef *)def->ast)->body);
        return true;
    }
    if (ev->err->status != CFX_OK)
        return false;
    cfx_object *classes = NULL;
    const int catches = w->manager_catches ? w->manager_catches(w->ctx, manager, &classes, ev->err)
                                           : 0;
    out->classes = cfxi_eval_pool(ev, classes);
    out->all = catches > 0;
    return catches >= 0;
}

/* ---- what a raise meets on its way out ----------------------------------------------------- */

static bool fail_caught(cfx_evaluator *ev, const cfxi_ast *at)
{
    return cfxi_eval_fail(
        ev, at, CFX_E_UNSUPPORTED,
        "this may raise depending on data, inside a try statement that might catch it; test the "
        "condition with `if` instead, or raise outside of the try");
}

/* 1, 0, or -1 with ev->err set: whether the exception ends at a guard. */
static int is_caught(cfx_evaluator *ev, const cfxi_guard *g, cfx_object *exc)
{
    int caught = g->catches.all && !g->exit;
    if (!caught && g->catches.classes && !g->exit)
        caught = ev->w->matches(ev->w->ctx, exc, g->catches.classes, ev->err);
    for (size_t i = 0; caught == 0 && g->handlers && i < g->handlers->handlers.count; i++)
        caught = cfxi_eval_handles(
            ev, cfxi_syntax_as_ExceptHandler(g->handlers->handlers.items[i]), exc);
    return caught;
}

static bool fail_ending(cfx_evaluator *ev, const cfxi_ast *at)
{
    return cfxi_eval_fail(
        ev, at, CFX_E_UNSUPPORTED,
        "this may raise depending on data, and `finally` or __exit__ around it then leaves in "
        "another way, or catches it; test the condition with `if`, or raise outside of the block");
}

/* Runs what is written behind the exception. */
static bool run_guard(cfx_evaluator *ev, const cfxi_guard *g, const cfxi_ast *at, cfx_object *exc)
{
    const size_t base = cfxi_eval_pendings(ev);
    cfxi_flow flow = CFXI_FLOW_ON;
    if (g->final)
        flow = cfxi_eval_exec_block(ev, g->final->finalbody);
    if (g->exit) {
        cfx_object *answer = cfxi_eval_call_exit(ev, g->exit, exc);
        const cfxi_eval_truth truth = answer ? cfxi_eval_truth_of(ev, &answer) : CFXI_TRUTH_FAIL;
        flow = truth == CFXI_FALSE        ? CFXI_FLOW_ON
               : truth == CFXI_TRUTH_FAIL ? cfxi_eval_failed_flow(ev) : CFXI_FLOW_RETURN;
    }
    if (flow == CFXI_FLOW_ON && cfxi_eval_pendings(ev) == base)
        return true;
    if (flow != CFXI_FLOW_FAIL)
        cfxi_eval_forget_failure(ev);
    return fail_ending(ev, at);
}

/* What the exception does at one guard; false: it is caught, or failed. */
static bool pass_guard(cfx_evaluator *ev, const cfxi_guard *g, const cfxi_ast *at, cfx_object *exc,
                       bool run)
{
    cfxi_frame *here = ev->frame;
    const cfxi_ast *was = g->frame->at;
    ev->frame = g->frame;
    const int caught = is_caught(ev, g, exc);
    const bool fine = caught == 0 && (!run || run_guard(ev, g, at, exc));
    g->frame->at = was;
    ev->frame = here;
    return caught > 0 ? fail_caught(ev, at) : fine;
}

static bool pass_all(cfx_evaluator *ev, const cfxi_ast *at, cfx_object *exc, bool run)
{
    const cfxi_guard *all = ev->guards;
    bool fine = true;
    for (const cfxi_guard *g = all; g && fine; g = g->outer) {
        ev->guards = g->outer;
        fine = pass_guard(ev, g, at, exc, run);
    }
    ev->guards = all;
    return fine;
}

bool cfxi_eval_pass_guards(cfx_evaluator *ev, const cfxi_ast *at, cfx_object *exc)
{
    return pass_all(ev, at, exc, true);
}

bool cfxi_eval_leaves_nothing(cfx_evaluator *ev)
{
    for (const cfxi_guard *g = ev->guards; g; g = g->outer)
        if (g->final || g->exit)
            return false;
    return !cfxi_eval_has_changes(ev);
}

bool cfxi_eval_check_uncaught(cfx_evaluator *ev, const cfxi_ast *at, const char *name)
{
    cfx_object *class = ev->guards ? cfxi_eval_builtin(ev, name) : NULL;
    if (!class)
        return true;
    cfx_object *exc = cfxi_eval_world_call(ev, class, cfxi_eval_args(NULL, 0));
    return exc && pass_all(ev, at, exc, false);
}
