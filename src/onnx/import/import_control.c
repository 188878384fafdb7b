/* import_control.c - If, Loop, Scan and SequenceMap: graphs in attributes become regions.
 *
 * A graph in an attribute may use names of the graphs around it. A region may not: what it uses of
 * them is passed to it. Constants need not be, they are attributes of the module.
 */
#include "engine_impl.h"

/* ---- what a graph uses of those around it -------------------------------------------------- */

/* Names that come from outside of a region, and the variables that are passed for them: one for
 * each item of a list of sizes. */
typedef struct captured {
    cfxi_import *m;
    cfxi_import_frame *outer;
    cfxi_hash_set seen;
    cfxi_vec values;  /* of cfxi_imported * of the frame around */
    cfxi_vec vars;    /* of cfx_var */
} captured;

static bool add_var(captured *k, cfx_var v)
{
    if (!cfxi_base_vec_reserve(&k->vars, 1, sizeof v, k->m->allocator))
        return false;
    ((cfx_var *)k->vars.data)[k->vars.size++] = v;
    return true;
}

static uint32_t hash_of(const void *item) { return ((const cfxi_imported *)item)->hash; }
static bool is_same(const void *item, const void *key, size_t size)
{
    (void)size;
    return item == key;
}

/* Notes a name, if it is a variable of a frame around. */
static bool use_name(captured *k, cfxi_text name)
{
    cfxi_imported *v = name.size > 0 ? cfxi_import_find(k->m, k->outer, name) : NULL;
    if (!v || (v->kind != CFXI_IMPORTED_VAR && v->kind != CFXI_IMPORTED_ITEMS) ||
        cfxi_base_set_find(&k->seen, v->hash, is_same, v, 0))
        return true;
    if (!cfxi_base_set_reserve(&k->seen, hash_of, k->m->allocator) ||
        !cfxi_base_vec_reserve(&k->values, 1, sizeof v, k->m->allocator))
        return false;
    cfxi_base_set_insert(&k->seen, v->hash, v);
    ((cfxi_imported **)k->values.data)[k->values.size++] = v;
    if (v->kind == CFXI_IMPORTED_VAR)
        return add_var(k, v->var);
    for (size_t i = 0; i < v->items.n; i++)
        if (v->items.items[i].kind == CFX_VAR_VALUE && !add_var(k, v->items.items[i]))
            return false;
    return true;
}

/* Names of the graph itself are noted, too, if there is one of the same name around: that passes
 * more than is needed, but nothing wrong. */
static bool use_graph(captured *k, const cfxi_onnx_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        const cfxi_onnx_node *n = &g->nodes.items[i];
        for (size_t j = 0; j < n->inputs.n; j++)
            if (!use_name(k, n->inputs.items[j]))
                return false;
        for (size_t j = 0; j < n->attributes.n; j++)
            if (n->attributes.items[j].g && !use_graph(k, n->attributes.items[j].g))
                return false;
    }
    for (size_t i = 0; i < g->outputs.n; i++)
        if (!use_name(k, g->outputs.items[i].name))
            return false;
    return true;
}

static void captured_free(captured *k)
{
    cfxi_base_set_free(&k->seen, k->m->allocator);
    cfxi_base_vec_free(&k->values, sizeof(cfxi_imported *), k->m->allocator);
    cfxi_base_vec_free(&k->vars, sizeof(cfx_var), k->m->allocator);
}

/* Gives a frame of the region the values that are passed: `in` are the variables inside. */
static bool bind_captured(const captured *k, cfxi_import_frame *f, const cfx_var *in)
{
    cfx_error err = {0};
    const cfx_at at = {.scope = k->m->trace};
    size_t next = 0;
    for (size_t i = 0; i < k->values.size; i++) {
        const cfxi_imported *from = ((cfxi_imported **)k->values.data)[i];
        cfxi_imported *v = cfxi_import_define(k->m, f, from->name, &err);
        cfx_var *items = v && from->kind == CFXI_IMPORTED_ITEMS
                             ? cfxi_base_arena_zeros(&k->m->arena, from->items.n, sizeof *items)
                             : NULL;
        if (!v || (from->kind == CFXI_IMPORTED_ITEMS && !items)) {
            cfxi_capture_scope_take(at, &err);
            return false;
        }
        const uint32_t hash = v->hash;
        *v = *from;
        v->hash = hash;
        v->graph = cfxi_capture_scope_graph(k->m->trace);
        if (from->kind == CFXI_IMPORTED_VAR) {
            v->var = in[next++];
            continue;
        }
        v->graph = NULL;
        for (size_t j = 0; j < from->items.n; j++)
            items[j] = from->items.items[j].kind == CFX_VAR_VALUE ? in[next++]
                                                                  : from->items.items[j];
        v->items.items = items;
    }
    return true;
}

/* ---- running a graph of an attribute ------------------------------------------------------- */

/* A frame for a graph in an attribute of the node. */
static cfxi_import_frame frame_for(cfxi_import_call *c, cfxi_import_frame *outer,
                                   const cfxi_onnx_graph *g)
{
    return (cfxi_import_frame){.outer = outer, .call = c->frame->call,
                               .function = c->frame->function, .opsets = c->frame->opsets,
                               .num_opsets = c->frame->num_opsets, .nodes = g->nodes.items,
                               .num_nodes = g->nodes.n, .graph = g};
}

static bool define_var(cfxi_import *m, cfxi_import_frame *f, cfxi_text name, cfx_var var)
{
    cfx_error err = {0};
    const cfx_at at = {.scope = m->trace};
    cfxi_imported *v = cfxi_import_define(m, f, name, &err);
    if (!v) {
        cfxi_capture_scope_take(at, &err);
        return false;
    }
    v->kind = CFXI_IMPORTED_VAR;
    v->var = var;
    v->graph = cfxi_capture_scope_graph(m->trace);
    return true;
}

/* Imports the graph in the frame, and gives its outputs, each by one; NULL, and the scope fails. */
static const cfxi_imported **run_graph(cfxi_import *m, cfxi_import_frame *f,
                                       const cfxi_onnx_graph *g)
{
    cfx_error err = {0};
    const cfx_at at = {.scope = m->trace};
    const cfxi_imported **out = cfxi_base_arena_zeros(&m->arena, g->outputs.n, sizeof *out);
    if (!out)
        cfxi_base_nomem(&err);
    if (m->depth >= CFXI_IMPORT_DEPTH)
        cfx_error_set(&err, CFX_E_LIMIT, "graphs are nested too deep");
    if (err.status == CFX_OK)
        cfxi_import_initializers(m, f, g, &err);
    if (err.status != CFX_OK) {
        cfxi_capture_scope_take(at, &err);
        return NULL;
    }
    m->depth++;
    const bool done = cfxi_import_nodes(m, f) && cfxi_import_outputs(m, f, g, out);
    m->depth--;
    return done ? out : NULL;
}

static cfx_var tuple(cfx_scope *s, const cfx_var *items, size_t n)
{
    const cfx_at at = {.scope = s};
    return cfx_var_seq_at(at, CFX_DATUM_TUPLE, cfx_vars_make(items, n));
}

static cfx_var *room(cfxi_import_call *c, size_t n)
{
    cfx_var *vars = cfxi_base_arena_zeros(&c->import->arena, n, sizeof *vars);
    if (!vars)
        cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    return vars;
}

static const cfxi_onnx_graph *graph_attribute(cfxi_import_call *c, const char *name)
{
    const cfxi_onnx_attribute *a = cfxi_import_attribute(c, name);
    if (!a || !a->g) {
        cfxi_import_fail(c, CFX_E_VALUE, "the graph '%s' is missing", name);
        return NULL;
    }
    return a->g;
}

/* ---- If ------------------------------------------------------------------------------------ */

typedef struct branches {
    cfxi_import_call *c;
    captured captured;
    const cfxi_onnx_graph *graphs[2];  /* otherwise, then */
} branches;

static cfx_var run_branch(cfx_scope *s, branches *b, const cfxi_onnx_graph *g, const cfx_var *in)
{
    cfxi_import *m = b->c->import;
    cfxi_import_frame passed = frame_for(b->c, b->c->frame, g);
    cfxi_import_frame f = frame_for(b->c, &passed, g);
    cfx_var result = cfx_var_empty();
    cfx_var *vars = room(b->c, g->outputs.n);
    const cfxi_imported **out =
        vars && bind_captured(&b->captured, &passed, in) ? run_graph(m, &f, g) : NULL;
    for (size_t i = 0; out && i < g->outputs.n; i++)
        vars[i] = cfxi_import_var(m, (cfxi_imported *)out[i]);
    if (out && cfx_scope_ok(s))
        result = g->outputs.n == 1 ? vars[0] : tuple(s, vars, g->outputs.n);
    cfxi_import_frame_free(m, &f);
    cfxi_import_frame_free(m, &passed);
    return result;
}

static cfx_var run_then(cfx_scope *s, void *ctx, const cfx_var *in)
{
    return run_branch(s, ctx, ((branches *)ctx)->graphs[1], in);
}

static cfx_var run_otherwise(cfx_scope *s, void *ctx, const cfx_var *in)
{
    return run_branch(s, ctx, ((branches *)ctx)->graphs[0], in);
}

/* The branch that is always taken, in the place of the node. */
static void inline_branch(cfxi_import_call *c, const cfxi_onnx_graph *g)
{
    cfxi_import_frame f = frame_for(c, c->frame, g);
    const cfxi_imported **out = run_graph(c->import, &f, g);
    for (size_t i = 0; out && i < c->node->outputs.n; i++) {
        const cfxi_imported own = c->outputs[i];
        if (i >= g->outputs.n)
            break;
        c->outputs[i] = *out[i];
        c->outputs[i].name = own.name;
        c->outputs[i].hash = own.hash;
    }
    cfxi_import_frame_free(c->import, &f);
}

/* Sets the outputs of a node that gives one value, or a tuple of several. */
static void spread(cfxi_import_call *c, cfx_var result, size_t n)
{
    for (size_t i = 0; i < n && i < c->node->outputs.n; i++)
        cfxi_import_set(c, i, n == 1 ? result : cfx_getitem(c->scope, result, i));
}

cfx_var cfxi_import_if_else(cfxi_import_call *c)
{
    if (cfxi_import_later(c))
        return cfx_var_empty();
    branches b = {.c = c, .captured = {.m = c->import, .outer = c->frame}};
    b.graphs[0] = graph_attribute(c, "else_branch");
    b.graphs[1] = graph_attribute(c, "then_branch");
    if (!b.graphs[0] || !b.graphs[1])
        return cfx_var_empty();
    const cfx_tensor *known = cfxi_import_known(c, 0);
    if (known && cfx_tensor_numel(known) == 1) {
        inline_branch(c, b.graphs[*(const char *)cfx_tensor_data(known) != 0]);
        return cfx_var_empty();
    }
    if (!use_graph(&b.captured, b.graphs[0]) || !use_graph(&b.captured, b.graphs[1]))
        cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    const cfx_at at = {.scope = c->scope};
    const cfx_var result = cfx_if_at(at, cfxi_import_in(c, 0), run_then, run_otherwise, &b,
                                     cfx_vars_make(b.captured.vars.data, b.captured.vars.size));
    spread(c, result, b.graphs[1]->outputs.n);
    captured_free(&b.captured);
    return cfx_var_empty();
}

/* ---- loops --------------------------------------------------------------------------------- */

/* A loop's variables: a counter and a condition (of a while loop), what it carries, what it reads a
 * part of in each round, what it uses of the graphs around, and lists of what each round gives. */
typedef struct looping {
    cfxi_import_call *c;
    captured captured;
    const cfxi_onnx_graph *body;
    bool counts;            /* a counted loop: no condition */
    bool masks;             /* one in which rounds from the limit on change nothing it carries */
    cfx_var limit;          /* of a while loop: how often at most; EMPTY: no limit */
    size_t carried;
    size_t sliced;          /* tensors of a Scan, inputs of a SequenceMap */
    const int64_t *axes;    /* of tensors: along which they are read; NULL: 0 */
    const int64_t *turned;  /* and whether from the end; NULL: they are not */
    const bool *sequences;  /* of a SequenceMap: which are lists; others are passed as they are */
    size_t lists;           /* of outputs of each round */
    bool any_rows;          /* the outputs of the body do not say what rows the lists have */
    cfx_dtype *row_dtypes;  /* for each list: what its rows are, once the body has been read */
    int *row_ranks;         /*   and how many dimensions they have; -1: not known */
} looping;

/* Where the parts of the state are. */
static size_t at_carried(const looping *l) { return l->counts ? 0 : 2; }
static size_t at_sliced(const looping *l) { return at_carried(l) + l->carried; }
static size_t at_captured(const looping *l) { return at_sliced(l) + l->sliced; }
static size_t at_lists(const looping *l) { return at_captured(l) + l->captured.vars.size; }
static size_t state_size(const looping *l) { return at_lists(l) + l->lists; }

/* Whether the limit is a part of the state, too, after the others: only a run knows it. */
static bool passes_limit(const looping *l)
{
    return (!l->counts || l->masks) && l->limit.kind == CFX_VAR_VALUE;
}

/* What a round reads of `x`, sliced input i. */
static cfx_var slice_of(const looping *l, size_t i, cfx_var x, cfx_var round, const cfx_var *in)
{
    cfx_scope *s = l->c->scope;
    cfx_var at = round;
    if (l->sequences)
        return l->sequences[i] ? cfx_getitem(s, x, cfxi_import_unknown(l->c, round)) : x;
    if (l->turned && l->turned[i])  /* below 0 is from the end: there, rounds that do not count */
        at = cfx_sub(s, l->masks ? cfx_item(s, in[state_size(l)]) : cfx_v(0), cfx_add(s, round, 1));
    return cfx_select(s, x, l->axes ? l->axes[i] : 0, cfxi_import_unknown(l->c, at));
}

/* The inputs of the body: Loop has the round and the condition before what is carried. */
static bool define_inputs(const looping *l, cfxi_import_frame *f, cfx_var round, const cfx_var *in)
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
        if (!define_var(m, f, g->inputs.items[0].name, i) ||
            !define_var(m, f, g->inputs.items[1].name, go_on))
            return false;
    }
    for (size_t i = 0; i < l->carried; i++)
        if (!define_var(m, f, g->inputs.items[first + i].name, in[at_carried(l) + i]))
            return false;
    for (size_t i = 0; i < l->sliced; i++) {
        const cfx_var x = slice_of(l, i, in[at_sliced(l) + i], round, in);
        if (!define_var(m, f, g->inputs.items[first + l->carried + i].name, x))
            return false;
    }
    return true;
}

/* The type of what each round gives for list `i`, if the body declares it with all sizes: then
 * there is a result after no rounds, too. NULL if it does not. */
static const cfxi_onnx_tensor_type *row_type(const looping *l, size_t i)
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
static cfx_var first_list(const looping *l, size_t i)
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
static cfx_var join_rows(const looping *l, size_t i, cfx_var list, int64_t axis)
{
    cfx_scope *s = l->c->scope;
    if (!row_type(l, i))
        return cfx_stack(s, list, .dim = cfx_v(axis));
    const cfx_var rows = cfx_cat(s, list);
    return axis == 0 ? rows : cfx_movedim(s, rows, 0, axis);
}

/* A list after a round that gave `x` for it. */
static cfx_var with_row(const looping *l, size_t i, cfx_var list, cfx_var x)
{
    cfx_scope *s = l->c->scope;
    l->row_dtypes[i] = cfxi_import_dtype_of(s, x);
    l->row_ranks[i] = cfxi_import_rank_of(s, x);
    const cfx_var row = row_type(l, i) ? cfx_unsqueeze(s, x, 0) : x;
    return cfx_operator_concat(s, list, cfx_list(s, row));
}

/* What a round gives if it counts; else what was there before: nothing, zeros. */
static cfx_var if_counted(const looping *l, cfx_var round, const cfx_var *in, cfx_var x,
                          cfx_var before)
{
    cfx_scope *s = l->c->scope;
    if (!l->masks)
        return x;
    const cfx_var i = cfx_tensor_row(s, round, .dtype = cfx_var_dtype(CFX_DTYPE_INT64));
    const cfx_var was = before.kind == CFX_VAR_EMPTY ? cfx_zeros_like(s, x) : before;
    return cfx_where(s, cfx_lt(s, i, in[state_size(l)]), x, was);
}

/* The state after a round. */
static cfx_var next_state(const looping *l, const cfxi_imported *const *out, cfx_var round,
                          const cfx_var *in)
{
    cfxi_import *m = l->c->import;
    cfx_scope *s = m->trace;
    size_t n = state_size(l);
    const size_t first = l->sliced > 0 ? 0 : 1;
    cfx_var *state = room(l->c, n + 1);
    if (!state)
        return cfx_var_empty();
    if (!l->counts) {
        state[0] = cfx_add(s, round, 1);
        state[1] = cfxi_import_var(m, (cfxi_imported *)out[0]);
    }
    for (size_t i = 0; i < l->carried; i++) {
        const size_t at = at_carried(l) + i;
        const cfx_var x = cfxi_import_var(m, (cfxi_imported *)out[first + i]);
        state[at] = if_counted(l, round, in, x, in[at]);
    }
    for (size_t i = at_sliced(l); i < at_lists(l); i++)
        state[i] = in[i];
    for (size_t i = 0; i < l->lists; i++) {
        const cfx_var x = cfxi_import_var(m, (cfxi_imported *)out[first + l->carried + i]);
        const cfx_var row = if_counted(l, round, in, x, cfx_var_empty());
        state[at_lists(l) + i] = with_row(l, i, in[at_lists(l) + i], row);
    }
    if (passes_limit(l)) {
        state[n] = in[n];
        n++;
    }
    return n == 1 ? state[0] : tuple(s, state, n);
}

static cfx_var run_round(looping *l, cfx_var round, const cfx_var *in)
{
    cfxi_import *m = l->c->import;
    cfxi_import_frame passed = frame_for(l->c, l->c->frame, l->body);
    cfxi_import_frame f = frame_for(l->c, &passed, l->body);
    cfx_var result = cfx_var_empty();
    if (bind_captured(&l->captured, &passed, in + at_captured(l)) &&
        define_inputs(l, &f, round, in)) {
        const cfxi_imported **out = run_graph(m, &f, l->body);
        if (out)
            result = next_state(l, out, round, in);
    }
    cfxi_import_frame_free(m, &f);
    cfxi_import_frame_free(m, &passed);
    return result;
}

static cfx_var counted_round(cfx_scope *s, void *ctx, cfx_var i, const cfx_var *in)
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
    const looping *l = ctx;
    const cfx_var go_on = cfx_reshape(s, in[1], cfx_var_ints(s, NULL, 0));
    if (l->limit.kind == CFX_VAR_EMPTY)
        return go_on;
    const cfx_var limit = l->limit.kind == CFX_VAR_INT ? l->limit : in[state_size(l)];
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
static cfx_var list_result(const looping *l, size_t i, cfx_var list, int64_t axis, bool turned)
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
static cfx_var *results_of(const looping *l, cfx_var all, size_t n, const int64_t *axes,
                           const int64_t *turned)
{
    cfx_scope *s = l->c->scope;
    cfx_var *results = room(l->c, l->carried + l->lists);
    for (size_t i = 0; results && i < l->carried + l->lists; i++) {
        const size_t list = i - l->carried;  /* not of what is carried */
        const size_t at = i < l->carried ? at_carried(l) + i : at_lists(l) + list;
        const cfx_var v = n == 1 ? all : cfx_getitem(s, all, at);
        results[i] = i < l->carried ? v : list_result(l, list, v, axes ? axes[list] : 0,
                                                      turned && turned[list]);
    }
    return results;
}

static void set_results(const looping *l, const cfx_var *results)
{
    for (size_t i = 0; results && i < l->carried + l->lists; i++)
        cfxi_import_set(l->c, i, results[i]);
}

/* Inputs of the node, from one on. */
static cfx_var *inputs_from(cfxi_import_call *c, size_t from)
{
    const size_t n = c->node->inputs.n > from ? c->node->inputs.n - from : 0;
    cfx_var *in = room(c, n);
    for (size_t i = 0; in && i < n; i++)
        in[i] = cfxi_import_in(c, from + i);
    return in;
}

/* The state before the first round; *n of them. `inputs`: what is carried, and what is sliced. */
static cfx_var *first_state(looping *l, const cfx_var *inputs, cfx_var go_on, size_t *n)
{
    cfxi_import_call *c = l->c;
    *n = state_size(l);
    cfx_var *state = room(c, *n + 1);
    l->row_dtypes = cfxi_base_arena_zeros(&c->import->arena, l->lists, sizeof *l->row_dtypes);
    l->row_ranks = cfxi_base_arena_zeros(&c->import->arena, l->lists, sizeof *l->row_ranks);
    if (!inputs || !state || !l->row_dtypes || !l->row_ranks)
        return NULL;
    if (!l->counts) {
        state[0] = cfx_v(0);
        state[1] = go_on;
    }
    for (size_t i = 0; i < l->carried + l->sliced; i++)
        state[at_carried(l) + i] = inputs[i];
    for (size_t i = 0; i < l->captured.vars.size; i++)
        state[at_captured(l) + i] = ((cfx_var *)l->captured.vars.data)[i];
    for (size_t i = 0; i < l->lists; i++)
        state[at_lists(l) + i] = first_list(l, i);
    if (passes_limit(l))
        state[(*n)++] = l->limit;
    return state;
}

cfx_var cfxi_import_loop(cfxi_import_call *c)
{
    const cfx_at at = {.scope = c->scope};
    if (cfxi_import_later(c))
        return cfx_var_empty();
    looping l = {.c = c, .captured = {.m = c->import, .outer = c->frame},
                 .body = graph_attribute(c, "body")};
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
    if (!use_graph(&l.captured, l.body))
        cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    const cfx_var go_on = !l.counts && cfxi_import_has(c, 1)
                              ? cfxi_import_in(c, 1)
                              : cfx_tensor_row(c->scope, cfx_var_bool(true),
                                               .dtype = cfx_var_dtype(CFX_DTYPE_BOOL));
    const cfx_var *state = first_state(&l, inputs_from(c, 2), go_on, &n);
    if (state && cfx_scope_ok(c->scope)) {
        const cfx_vars in = cfx_vars_make(state, n);
        const cfx_var all = l.counts ? cfx_for_at(at, l.limit, counted_round, &l, in)
                                     : cfx_while_at(at, while_test, while_round, &l, in);
        set_results(&l, results_of(&l, all, n, NULL, NULL));
    }
    captured_free(&l.captured);
    return cfx_var_empty();
}

/* ---- Scan ---------------------------------------------------------------------------------- */

/* Runs `length` rounds: their results, or NULL, and the scope fails. */
static cfx_var *count_rounds(looping *l, const cfx_var *inputs, cfx_var length,
                             const int64_t *axes, const int64_t *turned)
{
    const cfx_at at = {.scope = l->c->scope};
    size_t n;
    const cfx_var *state = first_state(l, inputs, cfx_var_empty(), &n);
    if (!state || !cfx_scope_ok(at.scope))
        return NULL;
    const cfx_vars in = cfx_vars_make(state, n);
    return results_of(l, cfx_for_at(at, length, counted_round, l, in), n, axes, turned);
}

/* The loop of a Scan whose inputs begin with input `first`; false, and the scope fails. */
static bool read_scan(looping *l, size_t first)
{
    cfxi_import_call *c = l->c;
    const int64_t scanned = cfxi_import_int(c, "num_scan_inputs", 0);
    l->counts = true;
    l->body = graph_attribute(c, "body");
    if (!l->body || scanned < 1 || c->node->inputs.n < first ||
        (size_t)scanned > c->node->inputs.n - first)
        return cfxi_import_fail(c, CFX_E_VALUE, "num_scan_inputs does not fit the inputs"), false;
    l->sliced = (size_t)scanned;
    l->carried = c->node->inputs.n - first - l->sliced;
    if (l->body->outputs.n < l->carried)
        return cfxi_import_fail(c, CFX_E_VALUE, "the body has too few outputs"), false;
    l->lists = l->body->outputs.n - l->carried;
    return true;
}

cfx_var cfxi_import_scan(cfxi_import_call *c)
{
    looping l = {.c = c, .captured = {.m = c->import, .outer = c->frame}};
    size_t n[4];
    if (cfxi_import_later(c) || !read_scan(&l, 0))
        return cfx_var_empty();
    l.axes = cfxi_import_ints(c, "scan_input_axes", &n[0]);
    l.turned = cfxi_import_ints(c, "scan_input_directions", &n[1]);
    const int64_t *axes = cfxi_import_ints(c, "scan_output_axes", &n[2]);
    const int64_t *turned = cfxi_import_ints(c, "scan_output_directions", &n[3]);
    if ((l.axes && n[0] != l.sliced) || (l.turned && n[1] != l.sliced) ||
        (axes && n[2] != l.lists) || (turned && n[3] != l.lists))
        return cfxi_import_fail(c, CFX_E_VALUE, "axes or directions do not fit the inputs");
    const int rank = cfxi_import_need_rank(c, l.carried);
    const int axis = cfxi_import_axis(c, l.axes ? l.axes[0] : 0, rank);
    if (axis >= 0 && use_graph(&l.captured, l.body)) {
        const cfx_var length = cfxi_import_size(c, l.carried, axis);
        set_results(&l, count_rounds(&l, inputs_from(c, 0), length, axes, turned));
    }
    captured_free(&l.captured);
    return cfx_var_empty();
}

/* Opset 8 has many sequences, along dimension 0 of everything, each scanned along the next: a loop
 * over the sequences around the one over items. All sequences are scanned to the end of the
 * longest; what is carried stays as it was at the end of each. */
typedef struct batch {
    looping over;    /* the sequences: they are its slices, and all results are its lists */
    looping one;     /* the items of one */
    cfx_var length;  /* of the longest; not a number: to be asked for */
} batch;

static cfx_var scan_sequence(cfx_scope *s, void *ctx, cfx_var round, const cfx_var *in)
{
    batch *b = ctx;
    const looping *over = &b->over;
    const size_t num_captured = over->captured.vars.size;
    cfx_var *state = room(over->c, state_size(over) + 1);
    cfx_var *inputs = room(over->c, over->sliced);
    cfx_var *outside = room(over->c, num_captured);
    if (!state || !inputs || !outside)
        return cfx_var_empty();
    for (size_t i = 0; i < over->sliced; i++)
        inputs[i] = slice_of(over, i, in[i], round, in);
    for (size_t i = 0; i < num_captured; i++)
        outside[i] = in[at_captured(over) + i];
    b->one.captured.vars = (cfxi_vec){.data = outside, .size = num_captured};
    const size_t end = state_size(over);
    if (over->masks)
        b->one.limit = cfx_select(s, in[end], 0, cfxi_import_unknown(over->c, round));
    const cfx_var length = b->length.kind == CFX_VAR_INT
                               ? b->length : cfx_size(s, inputs[b->one.carried], .dim = cfx_v(0));
    const cfx_var *rows = count_rounds(&b->one, inputs, length, NULL, NULL);
    if (!rows)
        return cfx_var_empty();
    for (size_t i = 0; i < at_lists(over); i++)
        state[i] = in[i];
    for (size_t i = 0; i < over->lists; i++)
        state[at_lists(over) + i] = with_row(over, i, in[at_lists(over) + i], rows[i]);
    state[end] = over->masks ? in[end] : cfx_var_none();
    return tuple(s, state, end + over->masks);
}

cfx_var cfxi_import_scan_batch(cfxi_import_call *c)
{
    const cfx_at at = {.scope = c->scope};
    batch b = {.one = {.c = c, .captured = {.m = c->import, .outer = c->frame}}};
    size_t n;
    if (cfxi_import_later(c) || !read_scan(&b.one, 1))
        return cfx_var_empty();
    b.one.turned = cfxi_import_ints(c, "directions", &n);
    if (b.one.turned && n != b.one.sliced)
        return cfxi_import_fail(c, CFX_E_VALUE, "directions do not fit the inputs");
    const int rank = cfxi_import_need_rank(c, 1 + b.one.carried);
    if (cfxi_import_axis(c, 1, rank) < 0)
        return cfx_var_empty();
    if (!use_graph(&b.one.captured, b.one.body))
        cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    b.one.masks = cfxi_import_has(c, 0);
    b.over = (looping){.c = c, .captured = b.one.captured, .counts = true, .any_rows = true,
                       .masks = b.one.masks, .limit = cfxi_import_optional(c, 0),
                       .sliced = b.one.carried + b.one.sliced,
                       .lists = b.one.carried + b.one.lists};
    b.length = cfxi_import_size(c, 1 + b.one.carried, 1);
    const cfx_var *state = first_state(&b.over, inputs_from(c, 1), cfx_var_empty(), &n);
    if (state && cfx_scope_ok(c->scope)) {
        const cfx_var sequences = cfxi_import_size(c, 1 + b.one.carried, 0);
        const cfx_var all = cfx_for_at(at, sequences, scan_sequence, &b, cfx_vars_make(state, n));
        set_results(&b.over, results_of(&b.over, all, n, NULL, NULL));
    }
    captured_free(&b.over.captured);
    return cfx_var_empty();
}

/* ---- SequenceMap --------------------------------------------------------------------------- */

cfx_var cfxi_import_sequence_map(cfxi_import_call *c)
{
    looping l = {.c = c, .captured = {.m = c->import, .outer = c->frame}, .counts = true,
                 .any_rows = true, .body = graph_attribute(c, "body"),
                 .sliced = c->node->inputs.n};
    bool *sequences = cfxi_base_arena_zeros(&c->import->arena, l.sliced, sizeof *sequences);
    if (!sequences)
        return cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    if (cfxi_import_later(c) || !l.body)
        return cfx_var_empty();
    l.lists = l.body->outputs.n;
    l.sequences = sequences;
    for (size_t i = 0; i < l.sliced; i++)
        sequences[i] = i == 0 || cfxi_import_is_sequence(c, i);
    if (!use_graph(&l.captured, l.body))
        cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    const cfx_var length = cfx_len(c->scope, cfxi_import_in(c, 0));
    set_results(&l, count_rounds(&l, inputs_from(c, 0), length, NULL, NULL));
    captured_free(&l.captured);
    return cfx_var_empty();
}
