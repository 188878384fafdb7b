/* export_control.c - branches and loops: If and Loop, whose graphs use values of outside.
 *
 * What a region returns is written leaf by leaf. Numbers of the state of a loop are scalars, of
 * which nothing is known inside: another time around they are others.
 */
#include "dim/dim_impl.h"
#include "export_impl.h"

enum { MOST_LEAVES = 256 };

typedef struct leaves {
    cfxi_ev *at[MOST_LEAVES];
    size_t n;
} leaves;

/* Tensors and numbers of a value, in order; false if there is anything else. */
static bool collect(cfxi_ev *v, leaves *out)
{
    size_t n;
    if (cfx_datum_items(v->datum, &n) || v->items) {
        const size_t step = v->datum.kind == CFX_DATUM_DICT ? 2 : 1;
        for (size_t i = step - 1; i < v->n; i += step)
            if (!collect(v->items[i], out))
                return false;
        return true;
    }
    if (v->datum.kind == CFX_DATUM_NONE)
        return true;
    if (out->n == MOST_LEAVES || (v->datum.kind != CFX_DATUM_TENSOR && !cfxi_export_is_number(v)))
        return false;
    out->at[out->n++] = v;
    return true;
}

static cfxi_text text_of(const char *text) { return (cfxi_text){text, strlen(text)}; }

/* ---- what is known of two ways ------------------------------------------------------------- */

static cfx_datum unknown_like(cfxi_exporter *x, cfx_datum d)
{
    d.symbolic = 1;
    if (d.kind == CFX_DATUM_INT)
        d.as.i = cfxi_dim_fresh_number(x->dims, x->err);
    return d;
}

/* A value that is either of two; the sizes that differ are not known. */
static cfx_datum either(cfxi_export_call *c, const cfxi_ev *a, const cfxi_ev *b)
{
    int64_t sizes[CFX_MAX_DIMS];
    cfxi_exporter *x = c->x;
    if (cfxi_export_is_number(a) && cfxi_export_is_number(b) && a->datum.kind == b->datum.kind)
        return unknown_like(x, a->datum);
    if (a->datum.kind != CFX_DATUM_TENSOR || b->datum.kind != CFX_DATUM_TENSOR ||
        a->rank != b->rank || a->dtype != b->dtype) {
        cfxi_export_refuse(c, "its ways give values of different types or ranks; return tensors of "
                           "one type and rank from each");
        return cfx_datum_none();
    }
    for (int i = 0; i < a->rank; i++)
        sizes[i] = cfx_dim_compare_eq(x->dims, a->sizes[i], b->sizes[i]) == 1
                       ? a->sizes[i] : cfxi_dim_fresh(x->dims, x->err);
    return cfxi_export_own(x, cfx_datum_tensor(cfx_tensor_new_abstract(
        a->dtype, sizes, (size_t)a->rank, x->allocator, x->err)));
}

/* The structure of `like`, with these values as its leaves. */
static cfxi_ev *rebuild(cfxi_exporter *x, const cfxi_ev *like, cfxi_ev *const *values, size_t *at)
{
    size_t n;
    if (!like->items && !cfx_datum_items(like->datum, &n))
        return like->datum.kind == CFX_DATUM_NONE ? (cfxi_ev *)(uintptr_t)like : values[(*at)++];
    const bool dict = like->datum.kind == CFX_DATUM_DICT;
    cfxi_ev **items = cfxi_export_room(x, like->n, sizeof *items);
    cfx_datum *data = cfxi_export_room(x, like->n, sizeof *data);
    for (size_t i = 0; items && data && i < like->n; i++) {
        items[i] = dict && i % 2 == 0 ? like->items[i] : rebuild(x, like->items[i], values, at);
        data[i] = items[i]->datum;
    }
    cfxi_ev *made = items && data ? cfxi_export_list(x, items, like->n) : &x->broken;
    if (!made->broken)
        made->datum = cfxi_export_own(x, cfx_datum_seq(
            like->datum.kind ? (cfx_datum_kind)like->datum.kind : CFX_DATUM_TUPLE, data, like->n,
            x->allocator, x->err));
    return made;
}

/* Outputs of a graph, under names of its own: a value of outside cannot be one. */
static void set_outputs(cfxi_export_call *c, cfxi_onnx_value *outputs, cfxi_ev *const *values,
                        size_t n)
{
    for (size_t i = 0; i < n; i++) {
        cfxi_ev *own = NODE("Identity", values[i]);
        if (own->broken)
            return;
        outputs[i].name = text_of(own->name);
        outputs[i].type = cfxi_export_type(c->x, values[i], false);
    }
}

/* ---- branches ------------------------------------------------------------------------------ */

static cfxi_onnx_graph *branch(cfxi_export_call *c, cfx_graph *region, const cfxi_ev *operands,
                               const char *name, cfxi_ev **result, leaves *found)
{
    cfxi_exporter *x = c->x;
    cfxi_export_scope scope;
    cfxi_export_scope_begin(x, &scope);
    *result = cfxi_export_region(x, region, operands->items, operands->n);
    found->n = 0;
    if ((*result)->broken && !x->failed)
        c->refused = x->findings > 0;
    else if (!collect(*result, found))
        cfxi_export_refuse(c, "a branch returns something that is neither a tensor nor a number");
    cfxi_onnx_value *outputs = cfxi_export_room(x, found->n, sizeof *outputs);
    if (outputs)
        set_outputs(c, outputs, found->at, found->n);
    cfxi_onnx_graph *g = cfxi_export_scope_end(x, name);
    if (g) {
        g->outputs.items = outputs;
        g->outputs.n = found->n;
    }
    return g;
}

/* A branch that is known to be taken is part of the graph around it. */
static cfxi_ev *known_branch(cfxi_export_call *c, bool yes)
{
    const cfxi_ev *operands = c->args[3];
    return cfxi_export_region(c->x, c->args[yes ? 1 : 2]->graph, operands->items, operands->n);
}

static cfxi_ev *join_results(cfxi_export_call *c, cfxi_ev *like, leaves *a, const leaves *b,
                             cfxi_ev **outputs)
{
    size_t at = 0;
    for (size_t i = 0; i < a->n; i++) {
        cfxi_ev *v = cfxi_export_of_datum(c->x, either(c, a->at[i], b->at[i]));
        if (v->broken || c->refused)
            return &c->x->broken;
        v->name = outputs[i]->name;
        v->scope = outputs[i]->scope;
        a->at[i] = v;
    }
    return rebuild(c->x, like, a->at, &at);
}

cfxi_ev *cfxi_export_cond(cfxi_export_call *c)
{
    cfxi_exporter *x = c->x;
    static const cfxi_ev nothing = {.n = 0};
    const cfxi_ev *operands = c->n > 3 ? c->args[3] : &nothing;
    cfxi_ev *pred = c->args[0];
    cfxi_ev *results[2];
    leaves *found = cfxi_export_room(x, 2, sizeof *found);
    if (!found)
        return &x->broken;
    if (cfxi_export_is_known(pred) && c->n > 3)
        return known_branch(c, pred->datum.kind == CFX_DATUM_BOOL ? pred->datum.as.b
                                                                  : pred->datum.as.i != 0);
    cfxi_ev *test = CAST(pred, CFX_DTYPE_BOOL);
    if (!cfxi_export_is_number(pred) && pred->rank != 0)
        test = NODE("Reshape", test, cfxi_export_const_ints(x, NULL, 0));
    cfxi_onnx_graph *yes = branch(c, c->args[1]->graph, operands, "then", &results[0], &found[0]);
    cfxi_onnx_graph *no = branch(c, c->args[2]->graph, operands, "otherwise", &results[1],
                                 &found[1]);
    if (c->refused || x->failed || results[0]->broken || results[1]->broken)
        return &x->broken;
    if (found[0].n != found[1].n)
        return cfxi_export_refuse(c, "one branch returns %zu values, the other %zu; return the "
                                  "same from both", found[0].n, found[1].n);
    cfxi_ev **outputs = cfxi_export_room(x, found[0].n, sizeof *outputs);
    if (!outputs || found[0].n == 0)
        return results[0];
    cfxi_export_nodes(x, "If", &test, 1, outputs, found[0].n);
    cfxi_export_set_graph(x, "then_branch", yes);
    cfxi_export_set_graph(x, "else_branch", no);
    return join_results(c, results[0], &found[0], &found[1], outputs);
}

/* ---- loops --------------------------------------------------------------------------------- */

/* The state as the body sees it: of numbers and sizes nothing is known. */
static cfxi_ev *inner_value(cfxi_export_call *c, const cfxi_ev *v, bool keep_sizes)
{
    cfxi_exporter *x = c->x;
    int64_t sizes[CFX_MAX_DIMS];
    cfx_datum d = v->datum;
    if (v->datum.kind == CFX_DATUM_TENSOR) {
        for (int i = 0; i < v->rank; i++)
            sizes[i] = keep_sizes ? v->sizes[i] : cfxi_dim_fresh(x->dims, x->err);
        d = cfxi_export_own(x, cfx_datum_tensor(cfx_tensor_new_abstract(
            v->dtype, sizes, (size_t)v->rank, x->allocator, x->err)));
    } else {
        d = unknown_like(x, d);
    }
    cfxi_ev *made = cfxi_export_of_datum(x, d);
    if (made->broken)
        return made;
    made->name = cfxi_export_unique(x, cfxi_export_text(x, "%s/state",
                                                        cfx_node_name(c->node, NULL)));
    made->scope = x->scope;
    return made;
}

typedef struct loop {
    cfx_graph *test;        /* of while_loop; or NULL */
    cfx_graph *body;
    cfxi_ev *state;
    leaves first;           /* of the state */
    leaves inner;
    leaves next;
    bool keep_sizes;
} loop;

static void add_input(cfxi_export_call *c, cfxi_onnx_value *to, const cfxi_ev *v)
{
    to->name = text_of(v->name);
    to->type = cfxi_export_type(c->x, v, false);
}

static cfxi_ev *truth(cfxi_export_call *c, cfxi_ev *v)
{
    cfxi_ev *made = CAST(v, CFX_DTYPE_BOOL);
    if (!cfxi_export_is_number(v) && v->rank != 0)
        made = NODE("Reshape", made, cfxi_export_const_ints(c->x, NULL, 0));
    return made;
}

/* The new state of one time around; whether it has the sizes that the old one has. */
static bool same_sizes(const cfxi_exporter *x, const loop *l)
{
    for (size_t i = 0; i < l->next.n; i++)
        for (int d = 0; d < l->next.at[i]->rank && l->next.at[i]->rank == l->inner.at[i]->rank; d++)
            if (cfx_dim_compare_eq(x->dims, l->next.at[i]->sizes[d], l->inner.at[i]->sizes[d]) != 1)
                return false;
    return true;
}

static bool fits(cfxi_export_call *c, loop *l)
{
    if (l->next.n != l->first.n) {
        cfxi_export_refuse(c, "the body of the loop returns %zu values for a state of %zu",
                           l->next.n, l->first.n);
        return false;
    }
    for (size_t i = 0; i < l->next.n; i++) {
        const cfxi_ev *a = l->inner.at[i];
        const cfxi_ev *b = l->next.at[i];
        const bool tensors = a->datum.kind == CFX_DATUM_TENSOR && b->datum.kind == CFX_DATUM_TENSOR;
        if (a->datum.kind != b->datum.kind || (tensors && (a->rank != b->rank ||
                                                           a->dtype != b->dtype))) {
            cfxi_export_refuse(c, "the loop changes the type or the rank of its state; ONNX keeps "
                               "both from one time around to the next");
            return false;
        }
    }
    return true;
}

static cfxi_onnx_graph *loop_graph(cfxi_export_call *c, loop *l)
{
    cfxi_exporter *x = c->x;
    cfxi_export_scope scope;
    size_t at = 0;
    cfxi_export_scope_begin(x, &scope);
    const size_t n = l->first.n;
    cfxi_onnx_value *inputs = cfxi_export_room(x, n + 2, sizeof *inputs);
    cfxi_onnx_value *outputs = cfxi_export_room(x, n + 1, sizeof *outputs);
    cfxi_ev *index = inner_value(c, cfxi_export_of_datum(x, cfx_datum_int(0)), true);
    cfxi_ev *going = inner_value(c, cfxi_export_of_datum(x, cfx_datum_bool(true)), true);
    l->inner.n = n;
    for (size_t i = 0; i < n; i++)
        l->inner.at[i] = inner_value(c, l->first.at[i], l->keep_sizes);
    cfxi_ev *state = rebuild(x, l->state, l->inner.at, &at);
    if (inputs && outputs && !x->failed) {
        add_input(c, &inputs[0], index);
        add_input(c, &inputs[1], going);
        for (size_t i = 0; i < n; i++)
            add_input(c, &inputs[i + 2], l->inner.at[i]);
        cfxi_ev **args = cfxi_export_room(x, state->n + 1, sizeof *args);
        for (size_t i = 0; args && i < state->n; i++)
            args[i + 1] = state->items[i];
        if (args)
            args[0] = index;
        cfxi_ev *next = !args ? &x->broken
                        : l->test ? cfxi_export_region(x, l->body, args + 1, state->n)
                                  : cfxi_export_region(x, l->body, args, state->n + 1);
        l->next.n = 0;
        if (next->broken)
            c->refused = true;
        else if (!collect(next, &l->next))
            cfxi_export_refuse(c, "the loop returns something that is neither a tensor nor a "
                               "number");
        else if (fits(c, l)) {
            cfxi_ev *again = going;
            if (l->test) {
                cfxi_ev *const *items = next->items ? next->items : &next;
                again = truth(c, cfxi_export_region(x, l->test, items,
                                                    next->items ? next->n : 1));
            }
            set_outputs(c, outputs, &again, 1);
            set_outputs(c, outputs + 1, l->next.at, n);
        }
    }
    cfxi_onnx_graph *g = cfxi_export_scope_end(x, "body");
    if (g) {
        g->inputs.items = inputs;
        g->inputs.n = n + 2;
        g->outputs.items = outputs;
        g->outputs.n = n + 1;
    }
    return g;
}

static cfxi_ev *finish_loop(cfxi_export_call *c, loop *l, cfxi_ev **outputs)
{
    size_t at = 0;
    for (size_t i = 0; i < l->first.n; i++) {
        cfxi_ev *v = cfxi_export_of_datum(c->x, either(c, l->first.at[i], l->next.at[i]));
        if (v->broken || c->refused)
            return &c->x->broken;
        v->name = outputs[i]->name;
        v->scope = outputs[i]->scope;
        l->first.at[i] = v;
    }
    return rebuild(c->x, l->state, l->first.at, &at);
}

static cfxi_ev *run_loop(cfxi_export_call *c, loop *l, cfxi_ev *count)
{
    cfxi_exporter *x = c->x;
    if (!collect(l->state, &l->first))
        return cfxi_export_refuse(c, "the state of the loop has something that is neither a tensor "
                                  "nor a number");
    cfxi_ev *first = NULL;
    if (l->test)
        first = truth(c, cfxi_export_region(x, l->test, l->state->items, l->state->n));
    l->keep_sizes = true;
    cfxi_onnx_graph *body = loop_graph(c, l);
    if (!c->refused && !x->failed && !same_sizes(x, l)) {  /* once more, of unknown sizes */
        l->keep_sizes = false;
        body = loop_graph(c, l);
    }
    if (c->refused || x->failed)
        return &x->broken;
    const size_t n = l->first.n;
    cfxi_ev **inputs = cfxi_export_room(x, n + 2, sizeof *inputs);
    cfxi_ev **outputs = cfxi_export_room(x, n + 1, sizeof *outputs);
    if (!inputs || !outputs)
        return &x->broken;
    inputs[0] = count;
    inputs[1] = first;
    for (size_t i = 0; i < n; i++)
        inputs[i + 2] = l->first.at[i];
    cfxi_export_nodes(x, "Loop", inputs, n + 2, outputs, n);
    cfxi_export_set_graph(x, "body", body);
    return finish_loop(c, l, outputs);
}

cfxi_ev *cfxi_export_while_loop(cfxi_export_call *c)
{
    loop *l = cfxi_export_room(c->x, 1, sizeof *l);
    if (!l)
        return &c->x->broken;
    l->test = c->args[0]->graph;
    l->body = c->args[1]->graph;
    l->state = c->args[2];
    return run_loop(c, l, NULL);
}

cfxi_ev *cfxi_export_for_loop(cfxi_export_call *c)
{
    loop *l = cfxi_export_room(c->x, 1, sizeof *l);
    if (!l)
        return &c->x->broken;
    l->body = c->args[1]->graph;
    l->state = c->args[2];
    return run_loop(c, l, CAST(c->args[0], CFX_DTYPE_INT64));
}
