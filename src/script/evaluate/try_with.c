/* try_with.c - try, with, raise and assert.
 *
 * What the world raised (CFX_E_HOST) and what `raise` raised (ev->raised) can be caught. What cfx
 * cannot capture is not an exception of the program: no handler catches it. `with` and `finally`
 * still clean up.
 */
#include "graph_control_impl.h"

/* ---- exceptions under way ------------------------------------------------------------------ */

/* What a block ended with that did not go well, put aside while something else is run. */
typedef struct aside {
    cfx_object *exc;        /* NULL: an error that is not an exception of the program */
    cfx_object *cause;
    const cfxi_ast *at;
    cfxi_frame *in;
    bool raised;            /* by `raise`, not by the world */
    cfx_error err;
    bool failed;
} aside;

static aside put_aside(cfx_evaluator *ev, cfxi_flow flow)
{
    aside a = {.at = ev->raised_at, .in = ev->raised_in, .cause = ev->raised_cause,
               .err = *ev->err, .failed = ev->failed};
    if (flow == CFXI_FLOW_RAISE) {
        a.exc = ev->raised;
        a.raised = true;
        if (a.cause) {  /* the world notes it in the exception */
            ev->w->raise(ev->w->ctx, a.exc, a.cause, ev->err);
            a.exc = cfxi_eval_pool(ev, ev->w->caught(ev->w->ctx));
        }
    } else if (ev->err->status == CFX_E_HOST) {
        a.exc = cfxi_eval_pool(ev, ev->w->caught(ev->w->ctx));
    }
    cfxi_eval_forget_failure(ev);
    return a;
}

/* Goes on with it. The trace is then of this place. */
static cfxi_flow take_up(cfx_evaluator *ev, const aside *a)
{
    if (a->raised) {
        ev->raised = a->exc;
        ev->raised_cause = a->cause;
        ev->raised_at = a->at;
        ev->raised_in = a->in;
        return CFXI_FLOW_RAISE;
    }
    if (a->exc) {
        ev->w->raise(ev->w->ctx, a->exc, a->cause, ev->err);
    } else {
        *ev->err = a->err;
        ev->failed = a->failed;
    }
    return CFXI_FLOW_FAIL;
}

static bool is_bad(cfxi_flow flow) { return flow == CFXI_FLOW_FAIL || flow == CFXI_FLOW_RAISE; }

/* ---- raise --------------------------------------------------------------------------------- */

/* `raise` alone: what is being handled, once more. */
static cfxi_flow raise_again(cfx_evaluator *ev, const cfxi_Raise *r)
{
    if (!ev->handled) {
        cfxi_eval_fail_as(ev, &r->ast, CFX_E_VALUE, "RuntimeError",
                          "No active exception to reraise");
        return cfxi_eval_failed_flow(ev);
    }
    ev->raised = ev->handled;
    ev->raised_cause = NULL;
    return CFXI_FLOW_RAISE;
}

static cfx_object *eval_exception(cfx_evaluator *ev, const cfxi_ast *expr)
{
    cfx_object *exc = cfxi_eval(ev, expr);
    if (!exc)
        return NULL;
    if (cfxi_eval_node(ev, exc))
        return cfxi_eval_fail_as(ev, expr, CFX_E_TYPE, "TypeError", "exceptions must derive from "
                                 "BaseException");
    return ev->w->kind(ev->w->ctx, exc) == CFX_OBJECT_CLASS
               ? cfxi_eval_call(ev, exc, cfxi_eval_args(NULL, 0))
               : exc;
}

cfxi_flow cfxi_eval_raise(cfx_evaluator *ev, const cfxi_Raise *r)
{
    ev->raised_at = &r->ast;
    ev->raised_in = ev->frame;
    if (!r->exc)
        return raise_again(ev, r);
    cfx_object *exc = eval_exception(ev, r->exc);
    cfx_object *cause = exc && r->cause ? cfxi_eval(ev, r->cause) : NULL;
    if (!exc || (r->cause && !cause))
        return cfxi_eval_failed_flow(ev);
    cfxi_eval_at(ev, &r->ast);
    ev->raised = exc;
    ev->raised_cause = cause;
    ev->raised_at = &r->ast;
    ev->raised_in = ev->frame;
    return CFXI_FLOW_RAISE;
}

/* ---- assert -------------------------------------------------------------------------------- */

static cfxi_flow assert_failed(cfx_evaluator *ev, const cfxi_Assert *a)
{
    cfx_object *message = a->msg ? cfxi_eval(ev, a->msg) : NULL;
    if (a->msg && !message)
        return cfxi_eval_failed_flow(ev);
    cfx_object *class = cfxi_eval_builtin(ev, "AssertionError");
    if (!class) {
        cfxi_eval_fail(ev, &a->ast, CFX_E_VALUE, "the assertion does not hold");
        return CFXI_FLOW_FAIL;
    }
    cfxi_eval_at(ev, &a->ast);
    cfx_object *exc = cfxi_eval_world_call(ev, class, cfxi_eval_args(&message, message != NULL));
    if (!exc)
        return cfxi_eval_failed_flow(ev);
    ev->raised = exc;
    ev->raised_cause = NULL;
    ev->raised_at = &a->ast;
    ev->raised_in = ev->frame;
    return CFXI_FLOW_RAISE;
}

static cfxi_flow way_fails(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    (void)value;
    return assert_failed(ev, ctx);
}

/* The message, if it is known: "" if there is none. NULL without an error: it depends on data,
 * or whether it can be made, and nothing has happened. */
static cfx_object *known_message(cfx_evaluator *ev, const cfxi_Assert *a)
{
    if (!a->msg)
        return cfxi_eval_str(ev, "");
    const cfxi_region *r = cfxi_eval_region_open(ev);
    if (!r)
        return NULL;
    cfx_object *message = cfxi_eval(ev, a->msg);
    const bool pure = r->n == 0 && !cfx_node_next(r->marker);
    if (message && pure && cfxi_eval_kind(ev, message) == CFX_OBJECT_STR)
        return cfxi_eval_region_commit(ev) ? message : NULL;
    if (message || ev->raised)
        cfxi_eval_region_discard(ev);
    if (ev->raised) {
        ev->raised = NULL;
        cfxi_eval_forget_failure(ev);
    }
    return NULL;
}

/* A condition on a graph value is checked when the program runs. What the message is then, is asked
 * only if it fails. */
static cfxi_flow assert_later(cfx_evaluator *ev, const cfxi_Assert *a, cfx_object *test)
{
    cfx_object *args[] = {test, known_message(ev, a)};
    if (!args[1] && ev->err->status != CFX_OK)
        return cfxi_eval_failed_flow(ev);
    cfxi_eval_at(ev, &a->ast);
    if (!cfxi_eval_check_uncaught(ev, &a->ast, "AssertionError"))
        return CFXI_FLOW_FAIL;
    if (!args[1] || !cfxi_eval_leaves_nothing(ev))
        return cfxi_eval_branch(ev, test, cfxi_eval_way_on, way_fails, (void *)a, NULL);
    return cfxi_eval_record(ev, "torch._assert", args, 2) ? CFXI_FLOW_ON
                                                          : cfxi_eval_failed_flow(ev);
}

cfxi_flow cfxi_eval_assert(cfx_evaluator *ev, const cfxi_Assert *a)
{
    cfx_object *test = cfxi_eval(ev, a->test);
    if (!test)
        return cfxi_eval_failed_flow(ev);
    switch (cfxi_eval_truth_of(ev, &test)) {
    case CFXI_TRUTH_FAIL:
        return cfxi_eval_failed_flow(ev);
    case CFXI_TRUE:
        return CFXI_FLOW_ON;
    case CFXI_FALSE:
        return assert_failed(ev, a);
    case CFXI_TRUTH_GRAPH:
        break;
    }
    return assert_later(ev, a, test);
}

/* ---- try ----------------------------------------------------------------------------------- */

int cfxi_eval_handles(cfx_evaluator *ev, const cfxi_ExceptHandler *h, cfx_object *exc)
{
    if (!h->type)
        return 1;
    cfx_object *classes = cfxi_eval(ev, h->type);
    return classes ? ev->w->matches(ev->w->ctx, exc, classes, ev->err) : -1;
}

/* The name of the exception is unbound at the end, whatever happens. */
static cfxi_flow run_handler(cfx_evaluator *ev, const cfxi_ExceptHandler *h, cfx_object *exc)
{
    cfx_object *outer = ev->handled;
    if (h->name && !cfxi_eval_bind_name(ev, h->name, exc))
        return cfxi_eval_failed_flow(ev);
    ev->handled = exc;
    const cfxi_flow flow = cfxi_eval_exec_block(ev, h->body);
    ev->handled = outer;
    const uint32_t slot = h->name ? cfxi_eval_def_slot(ev->frame->def, h->name) : CFXI_NO_SLOT;
    if (slot != CFXI_NO_SLOT && ev->frame->slots[slot].value && !is_bad(flow) &&
        !cfxi_eval_bind_name(ev, h->name, NULL))
        return cfxi_eval_failed_flow(ev);
    return flow;
}

/* 1, 0, or -1 with ev->err set: whether a handler is for what nodes may raise when they run. */
static int handles_later(cfx_evaluator *ev, const cfxi_ExceptHandler *h, unsigned raised)
{
    if (!h->type)
        return 1;
    cfx_object *classes = cfxi_eval(ev, h->type);
    return classes ? cfxi_eval_would_catch(ev, classes, raised) : -1;
}

/* What the graph raises when it runs is not caught by a handler that was there when it was
 * captured: that is said, rather than left out. `last` was the last node before the body. */
static bool check_handlers(cfx_evaluator *ev, const cfxi_Try *t, const cfx_node *last)
{
    const unsigned raised = cfxi_eval_raised_since(ev, last, false);
    for (size_t i = 0; raised && i < t->handlers.count; i++) {
        const cfxi_ExceptHandler *h = cfxi_syntax_as_ExceptHandler(t->handlers.items[i]);
        cfxi_eval_at(ev, &h->ast);
        const int catches = handles_later(ev, h, raised);
        if (catches < 0)
            return false;
        if (catches > 0)
            return cfxi_eval_fail(
                ev, &h->ast, CFX_E_UNSUPPORTED,
                "`except` cannot be captured here: a call in the `try` block may raise this "
                "exception while the graph runs. Check the condition with `if` before the call, or "
                "cfx.wrap the function that has the `try`");
    }
    return true;
}

static cfxi_flow catch(cfx_evaluator *ev, const cfxi_Try *t, const cfx_node *last, cfxi_flow flow)
{
    const aside a = put_aside(ev, flow);
    if (a.exc && !check_handlers(ev, t, last))
        return cfxi_eval_failed_flow(ev);
    for (size_t i = 0; a.exc && i < t->handlers.count; i++) {
        const cfxi_ExceptHandler *h = cfxi_syntax_as_ExceptHandler(t->handlers.items[i]);
        cfxi_eval_at(ev, &h->ast);
        const int matches = cfxi_eval_handles(ev, h, a.exc);
        if (matches < 0)
            return cfxi_eval_failed_flow(ev);
        if (matches > 0)
            return run_handler(ev, h, a.exc);
    }
    return take_up(ev, &a);
}

/* The body, its handlers and `else`, without `finally`. */
static cfxi_flow run_guarded(cfx_evaluator *ev, const cfxi_Try *t)
{
    const size_t base = cfxi_eval_pendings(ev);
    if (t->handlers.count == 0)
        return cfxi_eval_exec_block(ev, t->body);
    const cfx_node *last = cfx_graph_last(ev->g);
    const cfxi_guard guard = {.outer = ev->guards, .frame = ev->frame, .handlers = t};
    ev->guards = &guard;
    cfxi_flow flow = cfxi_eval_exec_block(ev, t->body);
    ev->guards = guard.outer;
    if (flow != CFXI_FLOW_FAIL && cfxi_eval_pendings(ev) > base) {
        cfxi_eval_fail(
            ev, &t->ast, CFX_E_UNSUPPORTED,
            "this try statement is left early (return, break, continue) depending on data, which "
            "cannot be captured together with `except`; move the exit after the try statement");
        return CFXI_FLOW_FAIL;
    }
    if (is_bad(flow))
        return catch(ev, t, last, flow);
    if (!check_handlers(ev, t, last))
        return cfxi_eval_failed_flow(ev);
    return flow == CFXI_FLOW_ON ? cfxi_eval_exec_block(ev, t->orelse) : flow;
}

/* What is run at the end of a statement, also after an exception: of `finally`, or an __exit__. */
typedef struct ending {
    const cfxi_ast *at;
    const cfxi_Try *final;  /* or NULL */
    cfx_object *exit;
    unsigned raised;        /* what nodes before it may raise when they run */
    const cfxi_guard *guards;  /* what is around the statement */
} ending;

cfx_object *cfxi_eval_call_exit(cfx_evaluator *ev, cfx_object *exit, cfx_object *exc)
{
    cfx_object *args[] = {ev->none, ev->none, ev->none};
    if (exc) {
        args[0] = cfxi_eval_get(ev, exc, "__class__");
        args[1] = exc;
    }
    return args[0] ? cfxi_eval_call(ev, exit, cfxi_eval_args(args, 3)) : NULL;
}

static cfxi_flow run_ending(cfx_evaluator *ev, const ending *e, cfx_object *exc)
{
    if (e->final)
        return cfxi_eval_exec_block(ev, e->final->finalbody);
    return cfxi_eval_call_exit(ev, e->exit, exc) ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

static cfxi_flow fail_ending(cfx_evaluator *ev, const ending *e)
{
    if (e->final)
        cfxi_eval_fail(ev, e->at, CFX_E_UNSUPPORTED,
                       "`finally` cannot be captured here: a call in the `try` block may raise "
                       "while the graph runs, and the graph would then skip this effect. Move it "
                       "after the try statement, or cfx.wrap the function that has the `try`");
    else
        cfxi_eval_fail(ev, e->at, CFX_E_UNSUPPORTED,
                       "this context manager cannot be captured here: a call in its block may "
                       "raise while the graph runs, and the graph would then skip the effect of "
                       "__exit__. Put the effect after the block, or cfx.wrap the function that "
                       "has the `with`");
    return CFXI_FLOW_FAIL;
}

/* Whether the nodes behind `last`, and assignments since there were `writes`, have an effect. */
static bool had_effect(cfx_evaluator *ev, const cfx_node *last, size_t writes, bool *had)
{
    return cfxi_eval_has_effect_since(ev, last, had) && (*had = *had || ev->writes != writes, true);
}

/* Whether an __exit__ that is told of an exception does what it does not do otherwise. Nothing of
 * it stays. */
static bool exit_differs(cfx_evaluator *ev, const ending *e, bool *differs)
{
    cfx_object *class = cfxi_eval_builtin(ev, "RuntimeError");
    cfx_object *exc =
        class ? cfxi_eval_world_call(ev, class, cfxi_eval_args(NULL, 0)) : NULL;
    const cfxi_region *r = exc ? cfxi_eval_region_open(ev) : NULL;
    const size_t writes = ev->writes;
    if (!r)
        return false;
    const cfxi_flow flow = run_ending(ev, e, exc);
    if (flow == CFXI_FLOW_FAIL)
        return false;
    *differs = flow != CFXI_FLOW_ON;
    if (ev->raised) {
        ev->raised = NULL;
        cfxi_eval_forget_failure(ev);
    }
    return (*differs || had_effect(ev, r->marker, writes, differs)) &&
           cfxi_eval_region_discard(ev);
}

static cfxi_flow way_end(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    const ending *e = ctx;
    const cfx_node *last = cfx_graph_last(ev->g);
    const size_t writes = ev->writes;
    bool had = false;
    (void)value;
    ev->guards = e->guards;
    if (e->raised && e->exit && cfxi_eval_has_source(ev, e->exit) && !exit_differs(ev, e, &had))
        return cfxi_eval_failed_flow(ev);
    const cfxi_flow flow = had ? fail_ending(ev, e) : run_ending(ev, e, NULL);
    if (!e->raised || is_bad(flow))
        return flow;
    if (!had_effect(ev, last, writes, &had))
        return CFXI_FLOW_FAIL;
    return had || flow != CFXI_FLOW_ON ? fail_ending(ev, e) : flow;
}

/* Whether what is run at the end of a statement has ways to run for: not if all have raised. */
static bool is_left(cfx_evaluator *ev, size_t base, cfxi_flow flow)
{
    return !is_bad(flow) || (flow == CFXI_FLOW_RAISE && cfxi_eval_pendings(ev) > base);
}

static cfxi_flow run_final(cfx_evaluator *ev, const cfxi_Try *t)
{
    const size_t base = cfxi_eval_pendings(ev);
    const cfx_node *before = cfx_graph_last(ev->g);
    const cfxi_guard guard = {.outer = ev->guards, .frame = ev->frame, .final = t};
    ev->guards = &guard;
    const cfxi_flow flow = run_guarded(ev, t);
    if (is_left(ev, base, flow)) {  /* if one way raises, it meets the guard when it is recorded */
        ending e = {&t->ast, t, NULL, cfxi_eval_raised_since(ev, before, false), guard.outer};
        if (t->finalbody.count > 0)
            e.at = t->finalbody.items[0];
        const cfxi_flow last = cfxi_eval_finally(ev, base, flow, way_end, &e);
        ev->guards = guard.outer;
        return last;
    }
    ev->guards = guard.outer;
    const aside a = put_aside(ev, flow);
    const cfxi_flow last = cfxi_eval_exec_block(ev, t->finalbody);
    if (last == CFXI_FLOW_ON || !a.exc) {
        cfxi_eval_forget_failure(ev);
        return take_up(ev, &a);
    }
    return last;
}

cfxi_flow cfxi_eval_try(cfx_evaluator *ev, const cfxi_Try *t)
{
    cfxi_frame *frame = ev->frame;
    if (t->finalbody.count == 0)
        return run_guarded(ev, t);
    frame->finals++;
    const cfxi_flow flow = run_final(ev, t);
    frame->finals--;
    return flow;
}

/* ---- with ---------------------------------------------------------------------------------- */

static cfxi_flow with_from(cfx_evaluator *ev, const cfxi_With *w, size_t i);

/* The block failed: __exit__ is told why, and may say that all is well. */
static cfxi_flow leave_failed(cfx_evaluator *ev, cfx_object *exit, cfxi_flow flow)
{
    const aside a = put_aside(ev, flow);
    cfx_object *answer = cfxi_eval_call_exit(ev, exit, a.exc);
    if (!a.exc) {
        if (!answer && ev->err->status == CFX_E_HOST)
            cfxi_eval_pool(ev, ev->w->caught(ev->w->ctx));
        cfxi_eval_forget_failure(ev);
        return take_up(ev, &a);
    }
    if (!answer)
        return cfxi_eval_failed_flow(ev);
    switch (cfxi_eval_truth_of(ev, &answer)) {
    case CFXI_TRUTH_FAIL:
        return cfxi_eval_failed_flow(ev);
    case CFXI_TRUE:
        return CFXI_FLOW_ON;
    case CFXI_FALSE:
    case CFXI_TRUTH_GRAPH:
        break;
    }
    return take_up(ev, &a);
}

/* Whether a manager would catch what nodes may raise when they run; false: it would, or failed. */
static bool check_manager(cfx_evaluator *ev, const cfxi_ast *at, const cfxi_catcher *c,
                          unsigned raised)
{
    const int catches = !raised || (!c->all && !c->classes) ? 0
                        : c->all ? 1 : cfxi_eval_would_catch(ev, c->classes, raised);
    if (catches <= 0)
        return catches == 0;
    return cfxi_eval_fail(
        ev, at, CFX_E_UNSUPPORTED,
        "this context manager cannot be captured here: it may catch an exception that a call in "
        "its block raises while the graph runs. Check the condition with `if` before the call, or "
        "cfx.wrap the function that has the `with`");
}

typedef struct manager {
    cfx_object *object, *exit;
    cfxi_catcher catches;   /* before it was entered */
} manager;

/* The block has been run, with `flow`; `before` was the last node before it. */
static cfxi_flow end_with_block(cfx_evaluator *ev, const manager *m, const cfxi_ast *at,
                                size_t base, const cfx_node *before, cfxi_flow flow)
{
    const cfxi_guard *guard = ev->guards;
    const unsigned raised = cfxi_eval_raised_since(ev, before, false);
    ending e = {at, NULL, m->exit, guard->exit ? raised : cfxi_eval_raised_since(ev, before, true),
                guard->outer};
    cfxi_catcher now;
    const bool raises = flow == CFXI_FLOW_RAISE;  /* one way has: a failure here is another thing */
    aside a = raises ? put_aside(ev, flow) : (aside){0};
    if (!cfxi_eval_manager_catches(ev, m->object, m->exit, &now) ||
        !check_manager(ev, at, &m->catches, raised) || !check_manager(ev, at, &now, raised))
        return cfxi_eval_failed_flow(ev);
    if (raises)
        take_up(ev, &a);
    return cfxi_eval_finally(ev, base, flow, way_end, &e);
}

/* What the manager has given is bound, and the block run. */
static cfxi_flow run_with_block(cfx_evaluator *ev, const cfxi_With *w, size_t i,
                                const manager *m, cfx_object *v)
{
    const cfxi_withitem *item = cfxi_syntax_as_withitem(w->items.items[i]);
    const size_t base = cfxi_eval_pendings(ev);
    const cfx_node *before = cfx_graph_last(ev->g);
    cfxi_flow flow = CFXI_FLOW_ON;
    const cfxi_guard guard = {.outer = ev->guards, .frame = ev->frame, .catches = m->catches,
                              .exit = cfxi_eval_has_source(ev, m->exit) ? m->exit : NULL};
    ev->guards = &guard;
    if (item->optional_vars && !cfxi_eval_assign(ev, item->optional_vars, v))
        flow = cfxi_eval_failed_flow(ev);
    if (flow == CFXI_FLOW_ON)
        flow = with_from(ev, w, i + 1);
    const bool left = is_left(ev, base, flow);
    if (left)
        flow = end_with_block(ev, m, item->context_expr, base, before, flow);
    ev->guards = guard.outer;
    return left ? flow : leave_failed(ev, m->exit, flow);
}

static cfxi_flow run_with_item(cfx_evaluator *ev, const cfxi_With *w, size_t i)
{
    const cfxi_withitem *item = cfxi_syntax_as_withitem(w->items.items[i]);
    manager m = {.object = cfxi_eval(ev, item->context_expr)};
    if (!m.object)
        return cfxi_eval_failed_flow(ev);
    cfxi_eval_at(ev, item->context_expr);
    if (cfxi_eval_node(ev, m.object)) {
        cfxi_eval_fail(ev, item->context_expr, CFX_E_UNSUPPORTED,
                       "a graph value cannot be used as a context manager");
        return CFXI_FLOW_FAIL;
    }
    cfx_object *v = NULL;
    m.exit = cfxi_eval_get(ev, m.object, "__exit__");
    if (m.exit && cfxi_eval_manager_catches(ev, m.object, m.exit, &m.catches))
        v = cfxi_eval_call_method(ev, m.object, "__enter__", cfxi_eval_args(NULL, 0));
    return v ? run_with_block(ev, w, i, &m, v) : cfxi_eval_failed_flow(ev);
}

static cfxi_flow with_from(cfx_evaluator *ev, const cfxi_With *w, size_t i)
{
    return i < w->items.count ? run_with_item(ev, w, i) : cfxi_eval_exec_block(ev, w->body);
}

cfxi_flow cfxi_eval_with(cfx_evaluator *ev, const cfxi_With *w) { return with_from(ev, w, 0); }
