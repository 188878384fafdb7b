/* export_loops.c - loops: Loop, whose body is followed until the types of its state stay.
 *
 * A tensor of outside that the body writes to is one more part of the state.
 */
#include "export_control_impl.h"

#include "dim/dim_impl.h"

typedef struct loop {
    cfx_graph *test;        /* of while_loop; or NULL */
    cfx_graph *body;
    cfxi_ev *state;
    cfxi_ev *like;          /* its structure, with sequences where it has lists that grow */
    cfxi_export_leaves first;           /* of the state */
    cfxi_export_leaves type;            /* what is known of them in every time around */
    cfxi_export_leaves inner;           /* as the body sees them, */
    const char *names[CFXI_MOST_LEAVES];  /* under these names until it writes to them */
    cfxi_export_leaves next;            /* what it returns */
    unsigned loose[CFXI_MOST_LEAVES];   /* bit d: size d of that leaf differs from time to time */
    cfxi_ev *written[CFXI_MOST_LEAVES]; /* tensors of outside that the body writes to, */
    const char *entering[CFXI_MOST_LEAVES];  /* under these names in it */
    size_t num_written;
    const cfxi_export_scope *inside;    /* of the body */
} loop;

static cfxi_text text_of(const char *text) { return (cfxi_text){text, strlen(text)}; }

static void add_input(cfxi_export_call *c, cfxi_onnx_value *to, const char *name, const cfxi_ev *v)
{
    to->name = text_of(name);
    to->type = cfxi_export_type(c->x, v, false);
}

/* What the body gives for its state. */
static cfxi_ev *run_body(cfxi_export_call *c, loop *l, cfxi_ev *index)
{
    cfxi_exporter *x = c->x;
    size_t at = 0;
    for (size_t i = 0; i < l->first.n; i++)
        l->names[i] = (l->inner.at[i] = cfxi_export_inner_value(c, l->type.at[i]))->name;
    l->inner.n = l->first.n;
    cfxi_ev *state = cfxi_export_rebuild(x, l->like, l->inner.at, &at);
    cfxi_ev **args = cfxi_export_room(x, state->n + 1, sizeof *args);
    if (!args)
        return &x->broken;
    args[0] = index;
    for (size_t i = 0; i < state->n; i++)
        args[i + 1] = state->items[i];
    cfxi_ev *next = l->test ? cfxi_export_region(x, l->body, args + 1, state->n)
                            : cfxi_export_region(x, l->body, args, state->n + 1);
    if (next->broken)
        c->refused = true;
    return next;
}

/* The leaves of what the body gives; lists of the state that grow are sequences from now on. False:
 * there were such lists. */
static bool take_next(cfxi_export_call *c, loop *l, cfxi_ev *next)
{
    cfxi_ev *wider = cfxi_export_widen(c, l->like, next);
    const bool same = wider == l->like;
    l->next.n = 0;
    if (c->refused)
        return false;
    if (!cfxi_export_collect(wider, next, &l->next)) {
        cfxi_export_refuse(c, "the body of the loop returns something else than its state is, or "
                           "what is neither a tensor nor a number");
        return false;
    }
    l->like = wider;
    if (same)
        return true;
    l->first.n = 0;
    if (!cfxi_export_collect(wider, l->state, &l->first))
        cfxi_export_refuse(c, "the body of the loop returns something else than its state is");
    else
        cfxi_export_join(c, &l->first, &l->next, &l->type);
    return false;
}

/* Whether the sizes of leaf `i` stay; those that do not are loose from then on, whatever they
 * become another time. */
static bool same_sizes(const cfxi_exporter *x, loop *l, size_t i, const cfxi_ev *a,
                       const cfxi_ev *b)
{
    unsigned differ = 0;
    for (int d = 0; a->datum.kind == CFX_DATUM_TENSOR && d < a->rank; d++)
        if (cfx_dim_compare_eq(x->dims, a->sizes[d], b->sizes[d]) != 1)
            differ |= 1u << d;
    const bool same = (differ & ~l->loose[i]) == 0;
    l->loose[i] |= differ;
    return same;
}

/* Whether nothing more is known of one type than of the other. */
static bool same_type(const cfxi_exporter *x, loop *l, size_t i, const cfxi_ev *a, const cfxi_ev *b)
{
    if (a->element || b->element)
        return a->element && b->element && same_type(x, l, i, a->element, b->element);
    return a->datum.kind == b->datum.kind && a->maybe_none == b->maybe_none &&
           same_sizes(x, l, i, a, b);
}

/* Whether the types hold for what comes next; else they are made wider. */
static bool settle(cfxi_export_call *c, loop *l)
{
    bool same = true;
    cfxi_export_leaves *wider = cfxi_export_room(c->x, 1, sizeof *wider);
    if (!wider || !cfxi_export_join(c, &l->type, &l->next, wider))
        return false;
    for (size_t i = 0; i < l->first.n; i++)
        same = same_type(c->x, l, i, l->type.at[i], wider->at[i]) && same;
    if (!same)
        l->type = *wider;
    return same;
}

/* ---- what the body writes to of outside ---------------------------------------------------- */

/* In the body such a tensor is an input of it. */
static void enter_written(cfxi_export_call *c, loop *l)
{
    for (size_t i = 0; i < l->num_written; i++) {
        cfxi_ev *root = l->written[i];
        cfxi_ev *inner = cfxi_export_inner_value(c, root);
        cfxi_export_note_written(c->x, root);
        cfxi_export_rename(root, inner);
        root->version++;
        l->entering[i] = inner->name;
    }
}

/* Whether there are no more of them than before. */
static bool find_written(cfxi_export_call *c, loop *l)
{
    const cfxi_vec *all = &c->x->scope->written;
    const size_t before = l->num_written;
    for (size_t i = before; i < all->size; i++) {
        if (l->num_written == CFXI_MOST_LEAVES)
            return cfxi_export_refuse(c, "it writes to more than %d tensors", CFXI_MOST_LEAVES),
                   false;
        l->written[l->num_written++] = ((const cfxi_export_written *)all->data)[i].root;
    }
    return l->num_written == before;
}

/* A result may be what the state began with, or anything of outside that the body returns. */
static void note_partners(cfxi_exporter *x, const loop *l)
{
    cfxi_export_note_partners(x, l->inside, &l->next, &l->type);
    for (size_t i = 0; i < l->first.n; i++) {
        if (l->first.at[i]->datum.kind != CFX_DATUM_TENSOR)
            continue;
        for (size_t k = 0; k < l->first.n; k++)
            if (k == i || (l->next.at[k]->datum.kind == CFX_DATUM_TENSOR &&
                           cfxi_export_root(l->next.at[k]) == l->inner.at[i]))
                cfxi_export_partner_with(x, l->type.at[k], l->first.at[i]);
    }
}

/* ---- the node ------------------------------------------------------------------------------ */

/* State that the body writes to is the caller's own: one leaf, and what it gives is that leaf. */
static void check_written(cfxi_export_call *c, const loop *l)
{
    for (size_t i = 0; i < l->inner.n; i++) {
        if (l->inner.at[i]->version == 0)
            continue;
        if (l->inner.at[i]->shared)
            cfxi_export_refuse(c, "the loop writes to a tensor that it keeps in a list; append a "
                               "copy");
        if (l->next.at[i] != l->inner.at[i])
            cfxi_export_refuse(c, "the loop writes to a tensor of its state and then takes another "
                               "in its place; write to a copy");
        for (size_t k = 0; k < l->first.n; k++)
            if (k != i && l->first.at[k]->datum.kind == CFX_DATUM_TENSOR &&
                cfxi_export_root(l->first.at[k]) == cfxi_export_root(l->first.at[i]))
                cfxi_export_refuse(c, "the loop writes to a tensor that shares memory with "
                                   "another one of its state; use copies");
    }
}

static cfxi_onnx_graph *loop_graph(cfxi_export_call *c, loop *l, bool *settled)
{
    cfxi_exporter *x = c->x;
    cfxi_export_scope *scope = cfxi_export_room(x, 1, sizeof *scope);  /* one for each time: values
                                                                           remember theirs */
    if (!scope)
        return NULL;
    cfxi_export_scope_begin(x, scope);
    const size_t n = l->first.n;
    const size_t most = n + l->num_written + 2;
    cfxi_onnx_value *inputs = cfxi_export_room(x, most, sizeof *inputs);
    cfxi_onnx_value *outputs = cfxi_export_room(x, most, sizeof *outputs);
    const cfxi_dim_state before = cfxi_dim_mark(x->dims);
    l->inside = scope;
    enter_written(c, l);
    cfxi_ev *index = cfxi_export_inner_value(c, cfxi_export_of_datum(x, cfx_datum_int(0)));
    cfxi_ev *going = cfxi_export_inner_value(c, cfxi_export_of_datum(x, cfx_datum_bool(true)));
    size_t k = 2;
    size_t num_outputs = 0;
    cfxi_ev *next = inputs && outputs ? run_body(c, l, index) : &x->broken;
    const bool same = find_written(c, l);
    *settled = !next->broken && take_next(c, l, next) && settle(c, l) && same;
    if (*settled && !x->failed) {
        check_written(c, l);
        add_input(c, &inputs[0], index->name, index);
        add_input(c, &inputs[1], going->name, going);
        for (size_t i = 0; i < n; i++)
            if (l->inner.at[i]->datum.kind != CFX_DATUM_NONE)
                add_input(c, &inputs[k++], l->names[i], l->inner.at[i]);
        for (size_t i = 0; i < l->num_written; i++)
            add_input(c, &inputs[k++], l->entering[i], l->written[i]);
        cfxi_ev *again = going;
        if (l->test)
            again = cfxi_export_condition(c, cfxi_export_region(
                x, l->test, next->items ? next->items : &next, next->items ? next->n : 1));
        num_outputs = cfxi_export_set_outputs(c, outputs, &again, &going, 1);
        num_outputs += cfxi_export_set_outputs(c, outputs + 1, l->next.at, l->type.at, n);
        num_outputs += cfxi_export_set_outputs(c, outputs + num_outputs, l->written, l->written,
                                               l->num_written);
    }
    cfxi_export_restore(x);
    cfxi_dim_undo(x->dims, before);
    cfxi_onnx_graph *g = cfxi_export_scope_end(x, "body");
    if (g) {
        g->inputs.items = inputs;
        g->inputs.n = k;
        g->outputs.items = outputs;
        g->outputs.n = num_outputs;
    }
    return g;
}

/* What the body has written to, the state of outside has, too. */
static void write_state(cfxi_export_call *c, const loop *l, const cfxi_export_leaves *results)
{
    for (size_t i = 0; i < l->inner.n; i++)
        if (l->inner.at[i]->version > 0 && !c->refused)
            cfxi_export_write(c, l->first.at[i], results->at[i]);
}

/* The tensors of outside that the body writes to have these values from then on. */
static void write_outer(cfxi_export_call *c, const loop *l, cfxi_ev *const *outputs)
{
    for (size_t i = 0; i < l->num_written; i++) {
        cfxi_ev *now = cfxi_export_of_datum(c->x, l->written[i]->datum);
        if (now->broken)
            return;
        now->name = outputs[i]->name;
        now->scope = outputs[i]->scope;
        cfxi_export_write(c, l->written[i], now);
    }
}

static cfxi_ev *make_loop(cfxi_export_call *c, loop *l, cfxi_ev *count, cfxi_ev *first,
                          cfxi_onnx_graph *body)
{
    cfxi_exporter *x = c->x;
    const size_t num_state = cfxi_export_count_outputs(&l->type);
    const size_t n = num_state + l->num_written;
    cfxi_ev **inputs = cfxi_export_room(x, n + 2, sizeof *inputs);
    cfxi_ev **outputs = cfxi_export_room(x, n + 1, sizeof *outputs);
    size_t k = 2;
    if (!inputs || !outputs)
        return &x->broken;
    inputs[0] = count;
    inputs[1] = first;
    for (size_t i = 0; i < l->first.n; i++) {
        if (l->type.at[i]->datum.kind == CFX_DATUM_NONE)
            continue;
        inputs[k++] = cfxi_export_in_type(c, l->first.at[i], l->type.at[i]);
    }
    for (size_t i = 0; i < l->num_written; i++)
        inputs[k++] = l->written[i];
    if (n == 0)
        return l->state;
    cfxi_export_nodes(x, "Loop", inputs, k, outputs, n);
    cfxi_export_set_graph(x, "body", body);
    cfxi_ev *result = cfxi_export_take_outputs(c, l->like, &l->type, outputs);
    write_state(c, l, &l->type);
    write_outer(c, l, outputs + num_state);
    note_partners(x, l);
    return c->refused ? &x->broken : result;
}

/* The types of the state are found by following the body until they stay. */
static cfxi_ev *run_loop(cfxi_export_call *c, loop *l, cfxi_ev *count)
{
    enum { MOST_TIMES = 6 };
    cfxi_exporter *x = c->x;
    cfxi_onnx_graph *body = NULL;
    bool settled = false;
    if (!cfxi_export_collect(l->state, l->state, &l->first))
        return cfxi_export_refuse(c, "the state of the loop has something that is neither a tensor "
                                  "nor a number");
    if (!cfxi_export_join(c, &l->first, &l->first, &l->type))  /* sizes are known, numbers not */
        return &x->broken;
    cfxi_ev *first = NULL;
    if (l->test)
        first = cfxi_export_condition(c, cfxi_export_region(x, l->test, l->state->items,
                                                            l->state->n));
    for (int i = 0; i < MOST_TIMES && !settled && !c->refused && !x->failed; i++)
        body = loop_graph(c, l, &settled);
    if (!settled && !c->refused)
        cfxi_export_refuse(c, "the types of the loop's state do not settle");
    if (c->refused || x->failed)
        return &x->broken;
    return make_loop(c, l, count, first, body);
}

static cfxi_ev *new_loop(cfxi_export_call *c, cfx_graph *test, cfx_graph *body, cfxi_ev *state,
                         cfxi_ev *count)
{
    loop *l = cfxi_export_room(c->x, 1, sizeof *l);
    if (!l)
        return &c->x->broken;
    l->test = test;
    l->body = body;
    l->state = state;
    l->like = state;
    return run_loop(c, l, count);
}

cfxi_ev *cfxi_export_while_loop(cfxi_export_call *c)
{
    return new_loop(c, c->args[0]->graph, c->args[1]->graph, c->args[2], NULL);
}

cfxi_ev *cfxi_export_for_loop(cfxi_export_call *c)
{
    return new_loop(c, NULL, c->args[1]->graph, c->args[2], CAST(c->args[0], CFX_DTYPE_INT64));
}
