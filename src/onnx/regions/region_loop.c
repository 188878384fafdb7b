/* region_loop.c - Loop, and what all loops have in common: their state, a round, their results. */
#include "regions_impl.h"

/* ---- a round ------------------------------------------------------------------------------- */

/* Whether the limit is a part of the state, too, after the others: only a run knows it. */
static bool passes_limit(const cfxi_looping *l)
{
    return (!l->counts || l->masks) && l->limit.kind == CFX_VAR_VALUE;
}

/* What a round reads of `x`, sliced input i. */
cfx_var cfxi_import_slice_of(const cfxi_looping *l, size_t i, cfx_var x, cfx_var round,
                             const cfx_var *in)
{
    cfx_scope *s = l->c->scope;
    cfx_var at = round;
    if (l->sequences)
        return l->sequences[i] ? cfx_getitem(s, x, cfxi_import_unknown(l->c, round)) : x;
    if (l->turned && l->turned[i])  /* below 0 is from the end: there, rounds that do not count */
        at = cfx_sub(s, l->masks ? cfx_item(s, in[cfxi_import_state_size(l)]) : cfx_v(0),
                     cfx_add(s, round, 1));
    return cfx_select(s, x, l->axes ? l->axes[i] : 0, cfxi_import_unknown(l->c, at));
}

/* The inputs of the body: Loop has the round and the condition before what is carried. */
static bool define_inputs(const cfxi_looping *l, cfxi_import_frame *f, cfx_var round,
                          const cfx_var *in)
{
    cfxi_import *m = l->c->import;
    cfx_scope *s = m->trace;
    const cfxi_onnx_graph *g = l->body;
    const bool is_scan = l->sliced > 0;
    const size_t first = is_scan ? 0 : 2;
    if (g->inputs.n != first + l->carried + l->sliced)
        return cfxi_import_fail(l->c, CFX_E_VALUE, "the body has %zu inputs; it must have %zu",
                                g->inputs.n, first + l->carried + l->sliced), false;
    if (!is_scan) {
        const cfx_var i = cfx_tensor_row(s, round, .dtype = cfx_var_dtype(CFX_DTYPE_INT64));
        const cfx_var go_on = l->counts
                                  ? cfx_tensor_row(s, cfx_var_bool(true),
                                                   .dtype = cfx_var_dtype(CFX_DTYPE_BOOL))
                                  : in[1];
        if (!cfxi_import_region_define(m, f, g->inputs.items[0].name, i) ||
            !cfxi_import_region_define(m, f, g->inputs.items[1].name, go_on))
            return false;
    }
    for (size_t i = 0; i < l->carried; i++) {
        const cfx_var x = in[cfxi_import_at_carried(l) + i];
        if (!cfxi_import_region_define(m, f, g->inputs.items[first + i].name, x))
            return false;
    }
    for (size_t i = 0; i < l->sliced; i++) {
        const cfx_var x = cfxi_import_slice_of(l, i, in[cfxi_import_at_sliced(l) + i], round, in);
        if (!cfxi_import_region_define(m, f, g->inputs.items[first + l->carried + i].name, x))
            return false;
    }
    return true;
}

/* The type of what each round gives for list `i`, if the body declares it with all sizes: then
 * there is a result after no rounds, too. NULL if it does not. */
static const cfxi_onnx_tensor_type *row_type(const cfxi_looping *l, size_t i)
{
    const size_t first = l->sliced > 0 ? 0 : 1;
    if (l->any_rows)
        return NULL;
    const cfxi_onnx_type *type = l->body->outputs.items[first + l->carried + i].type;
    const cfxi_onnx_tensor_type *t = type ? type->tensor : NULL;
    if (!t || !t->shape || t->shape->dims.n >= CFX_MAX_DIMS ||
        cfxi_onnx_dtype(t->dtype) == CFX_DTYPE_COUNT || cfxi_onnx_narrow_bits(t->dtype))
        return NULL;
    for (size_t k = 0; k < t->shape->dims.n; k++)
        if (!CFXI_ONNX_HAS(&t->shape->dims.items[k], dim, size) || t->shape->dims.items[k].size < 0)
            return NULL;
    return t;
}

/* What a list has before the first round: nothing, or no rows. */
static cfx_var first_list(const cfxi_looping *l, size_t i)
{
    cfx_scope *s = l->c->scope;
    int64_t sizes[CFX_MAX_DIMS] = {0};
    const cfxi_onnx_tensor_type *t = row_type(l, i);
    for (size_t k = 0; t && k < t->shape->dims.n; k++)
        sizes[k + 1] = t->shape->dims.items[k].size;
    if (!t)
        return cfx_list(s);
    return cfx_list(s, cfx_full(s, cfx_var_ints(s, sizes, t->shape->dims.n + 1), cfx_v(0),
                                .dtype = cfx_var_dtype(cfxi_onnx_dtype(t->dtype))));
}

/* The rows of a list as one tensor, along a new dimension. */
static cfx_var join_rows(const cfxi_looping *l, size_t i, cfx_var list, int64_t axis)
{
    cfx_scope *s = l->c->scope;
    if (!row_type(l, i))
        return cfx_stack(s, list, .dim = cfx_v(axis));
    const cfx_var rows = cfx_cat(s, list);
    return axis == 0 ? rows : cfx_movedim(s, rows, 0, axis);
}

/* A list after a round that gave `x` for it. */
cfx_var cfxi_import_add_row(const cfxi_looping *l, size_t i, cfx_var list, cfx_var x)
{
    cfx_scope *s = l->c->scope;
    l->row_dtypes[i] = cfxi_import_dtype_of(s, x);
    l->row_ranks[i] = cfxi_import_rank_of(s, x);
    const cfx_var row = row_type(l, i) ? cfx_unsqueeze(s, x, 0) : x;
    return cfx_operator_concat(s, list, cfx_list(s, row));
}

/* What a round gives if it counts; else what was there before: nothing, zeros. */
static cfx_var if_counted(const cfxi_looping *l, cfx_var round, const cfx_var *in, cfx_var x,
                          cfx_var before)
{
    cfx_scope *s = l->c->scope;
    if (!l->masks)
        return x;
    const cfx_var i = cfx_tensor_row(s, round, .dtype = cfx_var_dtype(CFX_DTYPE_INT64));
    const cfx_var was = before.kind == CFX_VAR_EMPTY ? cfx_zeros_like(s, x) : before;
    return cfx_where(s, cfx_lt(s, i, in[cfxi_import_state_size(l)]), x, was);
}

/* The state after a round. */
static cfx_var next_state(const cfxi_looping *l, const cfxi_imported *const *out, cfx_var round,
                             const cfx_var *in)
{
    cfxi_import *m = l->c->import;
    cfx_scope *s = m->trace;
    size_t n = cfxi_import_state_size(l);
    const size_t first = l->sliced > 0 ? 0 : 1;
    cfx_var *state = cfxi_import_room(l->c, n + 1);
    if (!state)
        return cfx_var_empty();
    if (!l->counts) {
        state[0] = cfx_add(s, round, 1);
        state[1] = cfxi_import_var(m, (cfxi_imported *)out[0]);
    }
    for (size_t i = 0; i < l->carried; i++) {
        const size_t at = cfxi_import_at_carried(l) + i;
        const cfx_var x = cfxi_import_var(m, (cfxi_imported *)out[first + i]);
        state[at] = if_counted(l, round, in, x, in[at]);
    }
    for (size_t i = cfxi_import_at_sliced(l); i < cfxi_import_at_lists(l); i++)
        state[i] = in[i];
    for (size_t i = 0; i < l->lists; i++) {
        const cfx_var x = cfxi_import_var(m, (cfxi_imported *)out[first + l->carried + i]);
        const cfx_var row = if_counted(l, round, in, x, cfx_var_empty());
        const size_t at = cfxi_import_at_lists(l) + i;
        state[at] = cfxi_import_add_row(l, i, in[at], row);
    }
    if (passes_limit(l)) {
        state[n] = in[n];
        n++;
    }
    return n == 1 ? state[0] : cfxi_import_tuple(s, state, n);
}

static cfx_var run_round(cfxi_looping *l, cfx_var round, const cfx_var *in)
{
    cfxi_import *m = l->c->import;
    cfxi_import_frame passed = cfxi_import_region_frame(l->c, l->c->frame, l->body);
    cfxi_import_frame f = cfxi_import_region_frame(l->c, &passed, l->body);
    cfx_var result = cfx_var_empty();
    if (cfxi_import_outer_bind(&l->captured, &passed, in + cfxi_import_at_captured(l)) &&
        define_inputs(l, &f, round, in)) {
        const cfxi_imported **out = cfxi_import_region_run(m, &f, l->body);
        if (out)
            result = next_state(l, out, round, in);
    }
    cfxi_import_frame_free(m, &f);
    cfxi_import_frame_free(m, &passed);
    return result;
}

cfx_var cfxi_import_counted_round(cfx_scope *s, void *ctx, cfx_var i, const cfx_var *in)
{
    (void)s;
    return run_round(ctx, i, in);
}

static cfx_var while_round(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)s;
    return run_round(ctx, in[0], in);
}

static cfx_var while_test(cfx_scope *s, void *ctx, const cfx_var *in)
{
    const cfxi_looping *l = ctx;
    const cfx_var go_on = cfx_reshape(s, in[1], cfx_var_ints(s, NULL, 0));
    if (l->limit.kind == CFX_VAR_EMPTY)
        return go_on;
    const cfx_var limit = l->limit.kind == CFX_VAR_INT ? l->limit : in[cfxi_import_state_size(l)];
    const cfx_var round = cfx_tensor_row(s, in[0], .dtype = cfx_var_dtype(CFX_DTYPE_INT64));
    return cfx_logical_and(s, go_on, cfx_lt(s, round, limit));
}

/* ---- Loop ---------------------------------------------------------------------------------- */

/* Whether a message has the one element True. */
static bool is_true(const cfxi_onnx_tensor *t)
{
    return t && (t->raw.size == 1 ? t->raw.data[0] != 0
                                  : t->int32s.n == 1 && t->int32s.items[0] != 0);
}

/* Whether the body always says that the loop goes on. */
static bool always_goes_on(const cfxi_onnx_graph *g)
{
    cfxi_text name = g->outputs.n > 0 ? g->outputs.items[0].name : (cfxi_text){0};
    for (size_t i = g->nodes.n; i-- > 0;) {
        const cfxi_onnx_node *n = &g->nodes.items[i];
        if (n->outputs.n == 0 || !cfxi_onnx_same(n->outputs.items[0], name))
            continue;
        if (cfxi_onnx_is(n->op, "Identity") && n->inputs.n == 1)
            name = n->inputs.items[0];
        else if (cfxi_onnx_is(n->op, "Constant") && n->attributes.n == 1)
            return is_true(n->attributes.items[0].t);
        else
            return false;
    }
    return g->inputs.n > 1 && cfxi_onnx_same(name, g->inputs.items[1].name);
}

/* A list of what the rounds gave as an output: a tensor with a new dimension, or a sequence. */
static cfx_var list_result(const cfxi_looping *l, size_t i, cfx_var list, int64_t axis, bool turned)
{
    cfx_scope *s = l->c->scope;
    if (l->sequences)
        return list;
    cfx_var stacked = join_rows(l, i, list, axis);
    if (l->row_ranks[i] >= 0)
        stacked = cfxi_import_assume(l->c, stacked, l->row_dtypes[i], l->row_ranks[i] + 1);
    return turned ? cfx_flip(s, stacked, cfx_ints(s, axis)) : stacked;
}

/* What `all`, the state of n parts after the last round, gives: what was carried, then the lists.
 * NULL, and the scope fails, if memory is out. */
cfx_var *cfxi_import_loop_results(const cfxi_looping *l, cfx_var all, size_t n, const int64_t *axes,
                           const int64_t *turned)
{
    cfx_scope *s = l->c->scope;
    cfx_var *results = cfxi_import_room(l->c, l->carried + l->lists);
    for (size_t i = 0; results && i < l->carried + l->lists; i++) {
        const size_t list = i - l->carried;  /* not of what is carried */
        const size_t at = i < l->carried ? cfxi_import_at_carried(l) + i
                                         : cfxi_import_at_lists(l) + list;
        const cfx_var v = n == 1 ? all : cfx_getitem(s, all, at);
        results[i] = i < l->carried ? v : list_result(l, list, v, axes ? axes[list] : 0,
                                                      turned && turned[list]);
    }
    return results;
}

void cfxi_import_set_results(const cfxi_looping *l, const cfx_var *results)
{
    for (size_t i = 0; results && i < l->carried + l->lists; i++)
        cfxi_import_set(l->c, i, results[i]);
}

/* Inputs of the node, from one on. */
cfx_var *cfxi_import_inputs_from(cfxi_import_call *c, size_t from)
{
    const size_t n = c->node->inputs.n > from ? c->node->inputs.n - from : 0;
    cfx_var *in = cfxi_import_room(c, n);
    for (size_t i = 0; in && i < n; i++)
        in[i] = cfxi_import_in(c, from + i);
    return in;
}

/* The state before the first round; *n of them. `inputs`: what is carried, and what is sliced. */
cfx_var *cfxi_import_first_state(cfxi_looping *l, const cfx_var *inputs, cfx_var go_on, size_t *n)
{
    cfxi_import_call *c = l->c;
    *n = cfxi_import_state_size(l);
    cfx_var *state = cfxi_import_room(c, *n + 1);
    l->row_dtypes = cfxi_base_arena_zeros(&c->import->arena, l->lists, sizeof *l->row_dtypes);
    l->row_ranks = cfxi_base_arena_zeros(&c->import->arena, l->lists, sizeof *l->row_ranks);
    if (!inputs || !state || !l->row_dtypes || !l->row_ranks)
        return NULL;
    if (!l->counts) {
        state[0] = cfx_v(0);
        state[1] = go_on;
    }
    for (size_t i = 0; i < l->carried + l->sliced; i++)
        state[cfxi_import_at_carried(l) + i] = inputs[i];
    for (size_t i = 0; i < l->captured.vars.size; i++)
        state[cfxi_import_at_captured(l) + i] = ((cfx_var *)l->captured.vars.data)[i];
    for (size_t i = 0; i < l->lists; i++)
        state[cfxi_import_at_lists(l) + i] = first_list(l, i);
    if (passes_limit(l))
        state[(*n)++] = l->limit;
    return state;
}

cfx_var cfxi_import_loop(cfxi_import_call *c)
{
    const cfx_at at = {.scope = c->scope};
    if (cfxi_import_later(c))
        return cfx_var_empty();
    cfxi_looping l = {.c = c, .captured = {.m = c->import, .outer = c->frame},
                 .body = cfxi_import_region_of(c, "body")};
    size_t n;
    if (!l.body)
        return cfx_var_empty();
    l.carried = c->node->inputs.n > 2 ? c->node->inputs.n - 2 : 0;
    if (l.body->outputs.n < 1 + l.carried)
        return cfxi_import_fail(c, CFX_E_VALUE, "the body has %zu outputs; it must have %zu",
                                l.body->outputs.n, 1 + l.carried);
    l.lists = l.body->outputs.n - 1 - l.carried;
    const cfx_tensor *first = cfxi_import_known(c, 1);
    const bool begins = !cfxi_import_has(c, 1) ||
                        (first && cfx_tensor_numel(first) == 1 && *(char *)cfx_tensor_data(first));
    l.limit = cfxi_import_number(c, 0);
    l.counts = begins && l.limit.kind != CFX_VAR_EMPTY && always_goes_on(l.body);
    if (!cfxi_import_outer_use(&l.captured, l.body))
        cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    const cfx_var go_on = !l.counts && cfxi_import_has(c, 1)
                              ? cfxi_import_in(c, 1)
                              : cfx_tensor_row(c->scope, cfx_var_bool(true),
                                               .dtype = cfx_var_dtype(CFX_DTYPE_BOOL));
    const cfx_var *state = cfxi_import_first_state(&l, cfxi_import_inputs_from(c, 2), go_on, &n);
    if (state && cfx_scope_ok(c->scope)) {
        const cfx_vars in = cfx_vars_make(state, n);
        const cfx_var all = l.counts ? cfx_for_at(at, l.limit, cfxi_import_counted_round, &l, in)
                                     : cfx_while_at(at, while_test, while_round, &l, in);
        cfxi_import_set_results(&l, cfxi_import_loop_results(&l, all, n, NULL, NULL));
    }
    cfxi_import_outer_free(&l.captured);
    return cfx_var_empty();
}
