/* control_capture.c - branches and loops: run now on tensors, or captured as regions of a graph. */
#include "capture_impl.h"
#include "dim/dim_impl.h"

#include "runtime/python_impl.h"

#include <math.h>

/* A function for a region: one of both is set. */
typedef struct block {
    cfx_block *plain;
    cfx_loop_body *round;
    void *ctx;
    const char *what;  /* in messages: "the branch", "the body of the loop" */
} block;

static cfx_var run_block(cfx_scope *s, const block *b, cfx_var i, const cfx_var *in)
{
    return b->round ? b->round(s, b->ctx, i, in) : b->plain(s, b->ctx, in);
}

static bool can_begin(cfx_at at, bool has_blocks, cfx_vars in)
{
    if (!cfx_scope_ok(at.scope))
        return false;
    if (!has_blocks)
        cfx_scope_fail_at(at, CFX_E_VALUE, "a function of this branch or loop is NULL");
    for (size_t i = 0; i < in.n && cfx_scope_ok(at.scope); i++)
        if (in.items[i].kind == CFX_VAR_EMPTY)
            cfx_scope_fail_at(at, CFX_E_VALUE, "input %zu of the branch or loop is empty", i);
    return cfx_scope_ok(at.scope);
}

static void expect_result(cfx_at at, cfx_var result, const char *what)
{
    if (cfx_scope_ok(at.scope) && result.kind == CFX_VAR_EMPTY)
        cfx_scope_fail_at(at, CFX_E_VALUE, "%s returned nothing", what);
}

/* ---- on tensors ---------------------------------------------------------------------------- */

static bool is_true(cfx_at at, cfx_var v) { return cfx_var_number_at(at, v) != 0; }

static cfx_var run_if(cfx_at at, cfx_var pred, const block *then, const block *otherwise,
                      cfx_vars in)
{
    const bool yes = is_true(at, pred);
    if (!cfx_scope_ok(at.scope))
        return cfx_var_empty();
    const size_t mark = cfx_scope_mark(at.scope);
    cfx_var result = run_block(at.scope, yes ? then : otherwise, cfx_var_empty(), in.items);
    expect_result(at, result, "the branch");
    return cfx_scope_reset(at.scope, mark, result);
}

/* What the body returned as the next state, all else of this turn being gone; false, and the scope
 * fails, if they are not as many. */
static bool next_state(cfx_at at, size_t mark, cfx_var result, cfx_var *state, size_t n)
{
    cfx_datum whole = cfx_var_datum_at(at, result);
    size_t items = 1;
    const cfx_datum *each = &whole;
    if (whole.kind == CFX_DATUM_TUPLE)
        each = cfx_datum_items(whole, &items);
    if (cfx_scope_ok(at.scope) && items != n)
        cfx_scope_fail_at(at, CFX_E_VALUE,
                          "the loop body returns %zu values, but the loop has %zu variables",
                          items, n);
    if (cfx_scope_ok(at.scope))
        cfx_scope_reset(at.scope, mark, cfx_var_empty());
    for (size_t i = 0; i < n && cfx_scope_ok(at.scope); i++)
        state[i] = cfxi_capture_var_of_datum(at, cfx_datum_retain(each[i]));
    cfx_datum_release(whole);
    return cfx_scope_ok(at.scope);
}

/* One turn: false if it was the last, or the scope fails. */
static bool turn(cfx_at at, size_t mark, const block *body, cfx_var i, cfx_var *state, size_t n)
{
    cfx_error err = {0};
    if (cfxi_rt_go_on(at.scope->rt, &err) != CFX_OK) {
        cfxi_capture_scope_take(at, &err);
        return false;
    }
    cfx_var result = run_block(at.scope, body, i, state);
    expect_result(at, result, body->what);
    return cfx_scope_ok(at.scope) && next_state(at, mark, result, state, n);
}

/* The state after a loop: itself if it is one, else a tuple. */
static cfx_var after_loop(cfx_at at, size_t mark, const cfx_var *state, size_t n)
{
    if (!cfx_scope_ok(at.scope))
        return cfx_var_empty();
    cfx_var result = n == 1 ? state[0]
                            : cfx_var_seq_at(at, CFX_DATUM_TUPLE, cfx_vars_make(state, n));
    return cfx_scope_reset(at.scope, mark, result);
}

static cfx_var run_while(cfx_at at, const block *test, const block *body, cfx_var *state, size_t n)
{
    const size_t mark = cfx_scope_mark(at.scope);
    for (;;) {
        cfx_var go_on = run_block(at.scope, test, cfx_var_empty(), state);
        expect_result(at, go_on, test->what);
        if (!cfx_scope_ok(at.scope) || !is_true(at, go_on) ||
            !turn(at, mark, body, go_on, state, n))
            break;
    }
    return after_loop(at, mark, state, n);
}

/* How often a loop goes round: the operator that it becomes takes no other numbers, either. */
static int64_t whole_number(cfx_at at, cfx_var count)
{
    const double n = cfx_var_number_at(at, count);
    if (cfx_scope_ok(at.scope) && !(n == floor(n) && fabs(n) < 9e18))
        cfx_scope_fail_at(at, CFX_E_TYPE, "the loop count must be an integer, not %g", n);
    return cfx_scope_ok(at.scope) ? (int64_t)n : 0;
}

static cfx_var run_for(cfx_at at, cfx_var count, const block *body, cfx_var *state, size_t n)
{
    const size_t mark = cfx_scope_mark(at.scope);
    const int64_t rounds = whole_number(at, count);
    for (int64_t i = 0; cfx_scope_ok(at.scope) && i < rounds; i++)
        if (!turn(at, mark, body, cfx_var_int(i), state, n))
            break;
    return after_loop(at, mark, state, n);
}

/* A while loop if there is a test, else a counted one. */
static cfx_var run_loop(cfx_at at, const block *test, cfx_var count, const block *body, cfx_vars in)
{
    cfx_var here[CFXI_FEW];
    cfxi_room room = {.here = here, .fits = CFXI_FEW, .item = sizeof *here};
    cfx_var result = cfx_var_empty();
    cfx_var *state = cfxi_capture_room_for(at, &room, in.n);
    if (state) {
        for (size_t i = 0; i < in.n; i++)
            state[i] = in.items[i];
        result = test ? run_while(at, test, body, state, in.n)
                      : run_for(at, count, body, state, in.n);
    }
    cfxi_capture_room_free(at, &room);
    return result;
}

/* ---- regions ------------------------------------------------------------------------------- */

/* The scope of another graph's node, for nodes of `g`; 0 if there is none, or memory is out. */
static uint32_t same_scope(cfx_graph *g, const cfx_graph *from, uint32_t scope)
{
    if (scope == 0)
        return 0;
    const uint32_t parent = same_scope(g, from, cfx_graph_stack_outer(from, scope));
    return cfx_graph_intern_stack(g, parent, cfx_graph_stack_path(from, scope),
                                  cfx_graph_stack_type(from, scope), NULL, NULL);
}

static cfx_var add_input(cfx_at at, cfx_graph *g, const char *name, cfx_datum known)
{
    cfx_error err = {0};
    cfx_node *n = cfx_scope_ok(at.scope) ? cfx_graph_placeholder(g, name, &err) : NULL;
    if (n)
        return cfxi_capture_trace_node(at, n, known);
    cfx_datum_release(known);
    if (cfx_scope_ok(at.scope))
        cfxi_capture_scope_take(at, &err);
    return cfx_var_empty();
}

/* What is known of the index of a loop: a number. */
static cfx_datum unknown_index(cfx_at at)
{
    cfx_error err = {0};
    cfx_datum i = cfxi_rt_py_unknown(CFX_DATUM_INT);
    if (at.scope->trace->dims)
        i.as.i = cfxi_dim_fresh_number(at.scope->trace->dims, &err);
    if (err.status != CFX_OK)
        cfxi_capture_scope_take(at, &err);
    return i;
}

/* Inputs for the variables, by their names. */
static void add_inputs(cfx_at at, cfx_graph *g, cfx_vars in, cfx_var *inner)
{
    for (size_t i = 0; i < in.n && cfx_scope_ok(at.scope); i++) {
        const cfx_node *n = cfxi_capture_var_node(at.scope, in.items[i]);
        cfx_datum known = cfxi_capture_var_datum(at, in.items[i]);
        if (!at.scope->trace->dims && cfxi_rt_is_number(known))
            known = cfxi_capture_some_number();
        inner[i] = add_input(at, g, n ? n->name->data : "x", known);
    }
}

static size_t results_of(cfx_value v)
{
    size_t n = 1;
    if (v.kind == CFX_KIND_TUPLE || v.kind == CFX_KIND_LIST)
        cfx_value_items(v, &n);
    return n;
}

/* What a region gives: as many values as the loop has variables, in a tuple; or anything, for a
 * branch or a test (SIZE_MAX). */
static cfx_value region_result(cfx_at at, cfx_var result, size_t n)
{
    cfx_value v = cfxi_capture_var_value(at, result);
    cfx_error err = {0};
    if (v.kind == CFX_KIND_INVALID || n == SIZE_MAX)
        return v;
    const bool one = n == 1 && v.kind != CFX_KIND_TUPLE;
    if (!one && (v.kind != CFX_KIND_TUPLE || results_of(v) != n)) {
        cfx_scope_fail_at(at, CFX_E_VALUE,
                          "the loop body returns %zu values, but the loop has %zu variables; "
                          "return them as a cfx_tuple",
                          v.kind == CFX_KIND_TUPLE ? results_of(v) : 1, n);
        return cfx_value_invalid();
    }
    if (!one)
        return v;
    v = cfx_value_tuple(at.scope->trace->graph, &v, 1, &err);
    if (v.kind == CFX_KIND_INVALID)
        cfxi_capture_scope_take(at, &err);
    return v;
}

/* Runs the block for the region that is being made, and writes its output: *results values. */
static void fill_region(cfx_at at, const block *b, cfx_vars in, size_t n, size_t *results)
{
    cfx_graph *g = at.scope->trace->graph;
    cfx_var here[CFXI_FEW];
    cfxi_room room = {.here = here, .fits = CFXI_FEW, .item = sizeof *here};
    cfx_error err = {0};
    cfx_var i = b->round ? add_input(at, g, "i", unknown_index(at)) : cfx_var_empty();
    cfx_var *inner = cfx_scope_ok(at.scope) ? cfxi_capture_room_for(at, &room, in.n) : NULL;
    if (inner)
        add_inputs(at, g, in, inner);
    cfx_var result = cfx_scope_ok(at.scope) ? run_block(at.scope, b, i, inner) : cfx_var_empty();
    cfxi_capture_room_free(at, &room);
    expect_result(at, result, b->what);
    const cfx_value v = cfx_scope_ok(at.scope) ? region_result(at, result, n) : cfx_value_invalid();
    if (v.kind == CFX_KIND_INVALID)
        return;
    *results = v.kind == CFX_KIND_TUPLE ? results_of(v) : SIZE_MAX;
    if (!cfx_graph_output(g, v, &err))
        cfxi_capture_scope_take(at, &err);
}

/* Captures a block as a graph of its own, with *results values; NULL, and the scope fails. */
static cfx_graph *capture(cfx_at at, const block *b, cfx_vars in, size_t n, size_t *results)
{
    cfxi_trace *t = at.scope->trace;
    cfx_graph *outer = t->graph;
    const uint32_t scope = t->scope;
    const size_t mark = cfx_scope_mark(at.scope);
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_new(at.scope->allocator, &cfxi_capture_object_host, &err);
    if (!g) {
        cfxi_capture_scope_take(at, &err);
        return NULL;
    }
    cfx_iter open;  /* as in a trace: nodes of variables are not used for others */
    cfx_iter_begin(&open, g, false);
    t->graph = g;
    t->scope = same_scope(g, outer, scope);
    fill_region(at, b, in, n, results);
    t->graph = outer;
    t->scope = scope;
    cfx_scope_reset(at.scope, mark, cfx_var_empty());
    cfx_iter_end(&open);
    if (cfx_scope_ok(at.scope))
        return g;
    cfx_graph_release(g);
    return NULL;
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* The region as an argument: the graph is given away. */
static cfx_value region_value(cfx_at at, cfx_graph *sub)
{
    cfx_error err = {0};
    if (!sub)
        return cfx_value_invalid();
    cfx_value v = cfx_value_region(at.scope->trace->graph, sub, &err);
    cfx_graph_release(sub);
    if (v.kind == CFX_KIND_INVALID)
        cfxi_capture_scope_take(at, &err);
    return v;
}

static cfx_value operands(cfx_at at, cfx_vars in)
{
    cfx_value here[CFXI_FEW];
    cfxi_room room = {.here = here, .fits = CFXI_FEW, .item = sizeof *here};
    cfx_error err = {0};
    cfx_value all = cfx_value_invalid();
    cfx_value *items = cfxi_capture_room_for(at, &room, in.n);
    if (items && cfxi_capture_var_values(at, in, items)) {
        all = cfx_value_tuple(at.scope->trace->graph, items, in.n, &err);
        if (all.kind == CFX_KIND_INVALID)
            cfxi_capture_scope_take(at, &err);
    }
    cfxi_capture_room_free(at, &room);
    return all;
}

/* The call, and what is known of its result. */
static cfx_var note(cfx_at at, const char *target, const cfx_value *args, size_t n)
{
    cfx_graph *g = at.scope->trace->graph;
    cfx_error err = {0};
    cfx_node *call = NULL;
    if (cfx_scope_ok(at.scope)) {
        call = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, target, args, n, NULL, 0, &err);
        if (!call)
            cfxi_capture_scope_take(at, &err);
    }
    if (!call) {
        for (size_t i = 0; i < n; i++)
            cfx_value_discard(g, args[i]);
        return cfx_var_empty();
    }
    cfx_datum known =
        at.scope->trace->dims
            ? cfxi_capture_infer_node(at, call)
            : cfxi_capture_number_of_call(at.scope->trace, cfx_node_operator(call), call);
    if (cfx_scope_ok(at.scope))
        return cfxi_capture_trace_node(at, call, known);
    cfx_datum_release(known);
    return cfx_var_empty();
}

static cfx_var note_if(cfx_at at, cfx_var pred, const block *then, const block *otherwise,
                       cfx_vars in)
{
    size_t results[2];
    cfx_value args[4] = {cfxi_capture_var_value(at, pred)};
    for (size_t i = 0; i < 2; i++)
        args[i + 1] = !cfx_scope_ok(at.scope) ? cfx_value_invalid()
                      : region_value(at, capture(at, i ? otherwise : then, in, SIZE_MAX,
                                                 &results[i]));
    if (cfx_scope_ok(at.scope) && results[0] != results[1])
        cfx_scope_fail_at(at, CFX_E_VALUE, "one branch returns %zu values, the other %zu",
                          results[0] == SIZE_MAX ? 1 : results[0],
                          results[1] == SIZE_MAX ? 1 : results[1]);
    args[3] = cfx_scope_ok(at.scope) ? operands(at, in) : cfx_value_invalid();
    return note(at, "cfx.cond", args, 4);
}

/* A loop's result is a tuple: of one variable it is taken out. */
static cfx_var of_loop(cfx_at at, cfx_var loop, size_t n)
{
    const cfx_var args[] = {loop, cfx_var_int(0)};
    return n == 1 && cfx_scope_ok(at.scope) ? cfx_apply_at(at, CFX_OPID_getitem, args, 2) : loop;
}

static cfx_var note_while(cfx_at at, const block *test, const block *body, cfx_vars in)
{
    size_t results;
    cfx_value args[3];
    args[0] = region_value(at, capture(at, test, in, SIZE_MAX, &results));
    args[1] = cfx_scope_ok(at.scope) ? region_value(at, capture(at, body, in, in.n, &results))
                               : cfx_value_invalid();
    args[2] = cfx_scope_ok(at.scope) ? operands(at, in) : cfx_value_invalid();
    return of_loop(at, note(at, "cfx.while_loop", args, 3), in.n);
}

static cfx_var note_for(cfx_at at, cfx_var count, const block *body, cfx_vars in)
{
    size_t results;
    cfx_value args[3] = {cfxi_capture_var_value(at, count)};
    args[1] = cfx_scope_ok(at.scope) ? region_value(at, capture(at, body, in, in.n, &results))
                               : cfx_value_invalid();
    args[2] = cfx_scope_ok(at.scope) ? operands(at, in) : cfx_value_invalid();
    return of_loop(at, note(at, "cfx.for_loop", args, 3), in.n);
}

/* ---- both ---------------------------------------------------------------------------------- */

cfx_var cfx_if_at(cfx_at at, cfx_var pred, cfx_block *then, cfx_block *otherwise, void *ctx,
                  cfx_vars in)
{
    const block yes = {.plain = then, .ctx = ctx, .what = "the branch"};
    const block no = {.plain = otherwise, .ctx = ctx, .what = "the other branch"};
    if (!can_begin(at, then && otherwise, in))
        return cfx_var_empty();
    return at.scope->trace ? note_if(at, pred, &yes, &no, in) : run_if(at, pred, &yes, &no, in);
}

cfx_var cfx_while_at(cfx_at at, cfx_block *test, cfx_block *body, void *ctx, cfx_vars in)
{
    const block asks = {.plain = test, .ctx = ctx, .what = "the loop test"};
    const block does = {.plain = body, .ctx = ctx, .what = "the loop body"};
    if (!can_begin(at, test && body, in))
        return cfx_var_empty();
    return at.scope->trace ? note_while(at, &asks, &does, in)
                           : run_loop(at, &asks, cfx_var_empty(), &does, in);
}

cfx_var cfx_for_at(cfx_at at, cfx_var count, cfx_loop_body *body, void *ctx, cfx_vars in)
{
    const block does = {.round = body, .ctx = ctx, .what = "the loop body"};
    if (!can_begin(at, body != NULL, in))
        return cfx_var_empty();
    return at.scope->trace ? note_for(at, count, &does, in)
                           : run_loop(at, NULL, count, &does, in);
}
