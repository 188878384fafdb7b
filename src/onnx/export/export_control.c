/* export_control.c - branches and loops: If and Loop, whose graphs use values of outside.
 *
 * What a region returns is written leaf by leaf. Numbers of the state of a loop are scalars, of
 * which nothing is known inside: another time around they are others. What is None on one way and
 * something on another has a value in ONNX that nobody uses.
 */
#include "dim/dim_impl.h"
#include "export_impl.h"

enum { MOST_LEAVES = 256 };

typedef struct leaves {
    cfxi_ev *at[MOST_LEAVES];
    size_t n;
} leaves;

/* Tensors, numbers, None and sequences in a value, in the order in which `like`, a value of the
 * same structure, has them; false if there is anything else. */
static bool collect(const cfxi_ev *like, cfxi_ev *v, leaves *out)
{
    size_t n;
    if (!like->element && (cfx_datum_items(like->datum, &n) || like->items)) {
        const size_t step = like->datum.kind == CFX_DATUM_DICT ? 2 : 1;
        if (v->n != like->n)
            return false;
        for (size_t i = step - 1; i < like->n; i += step) {
            cfxi_ev *twin = cfxi_export_twin(like, i, v);
            if (!twin || !collect(like->items[i], twin, out))
                return false;
        }
        return true;
    }
    const bool fits = like->element ? cfxi_export_is_list(v)
                                    : v->datum.kind == CFX_DATUM_TENSOR ||
                                          v->datum.kind == CFX_DATUM_NONE ||
                                          cfxi_export_is_number(v);
    if (out->n == MOST_LEAVES || !fits)
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

static cfx_datum abstract(cfxi_exporter *x, cfx_dtype dtype, const int64_t *sizes, int rank)
{
    return cfxi_export_own(x, cfx_datum_tensor(cfx_tensor_new_abstract(
        dtype, sizes, (size_t)rank, x->allocator, x->err)));
}

/* Two numbers: the wider kind. */
static cfx_datum either_number(cfxi_exporter *x, cfx_datum a, cfx_datum b)
{
    const bool first = a.kind == b.kind || a.kind == CFX_DATUM_FLOAT || b.kind == CFX_DATUM_BOOL;
    return unknown_like(x, first ? a : b);
}

/* Whether an element of that type can be the number. */
static bool holds_number(cfx_dtype dtype, cfx_datum number)
{
    return cfx_dtype_is_float(dtype) || number.kind == CFX_DATUM_BOOL ||
           (number.kind == CFX_DATUM_INT && cfx_dtype_is_integer(dtype));
}

/* A number beside a tensor without dimensions is a tensor; what is None on one way is what it is on
 * the other. */
cfx_datum cfxi_export_either(cfxi_export_call *c, const cfxi_ev *a, const cfxi_ev *b)
{
    int64_t sizes[CFX_MAX_DIMS];
    cfxi_exporter *x = c->x;
    if (a->datum.kind == CFX_DATUM_NONE || b->datum.kind == CFX_DATUM_NONE) {
        const cfxi_ev *one = a->datum.kind == CFX_DATUM_NONE ? b : a;
        return cfxi_export_is_number(one) ? unknown_like(x, one->datum) : one->datum;
    }
    if (cfxi_export_is_number(a) && cfxi_export_is_number(b))
        return either_number(x, a->datum, b->datum);
    const cfxi_ev *t = cfxi_export_is_number(a) ? b : a;
    const cfxi_ev *other = t == a ? b : a;
    if (cfxi_export_is_number(other) && t->rank == 0 && holds_number(t->dtype, other->datum))
        return abstract(x, t->dtype, NULL, 0);
    if (cfxi_export_is_number(other) || a->rank != b->rank || a->dtype != b->dtype) {
        cfxi_export_refuse(c, "its ways give values of different types or ranks; return tensors of "
                           "one type and rank from each");
        return cfx_datum_none();
    }
    for (int i = 0; i < a->rank; i++)
        sizes[i] = cfx_dim_compare_eq(x->dims, a->sizes[i], b->sizes[i]) == 1
                       ? a->sizes[i] : cfxi_dim_fresh(x->dims, x->err);
    return abstract(x, a->dtype, sizes, a->rank);
}

/* What is known of each leaf on both ways. */
static bool join(cfxi_export_call *c, const leaves *a, const leaves *b, leaves *both)
{
    both->n = a->n;
    for (size_t i = 0; i < a->n; i++) {
        const bool list = cfxi_export_is_list(a->at[i]);
        cfxi_ev *v = list ? cfxi_export_either_list(c, a->at[i], b->at[i])
                          : cfxi_export_of_datum(c->x, cfxi_export_either(c, a->at[i], b->at[i]));
        if (c->refused || v->broken)
            return false;
        v->maybe_none = !list && v->datum.kind != CFX_DATUM_NONE &&
                        (a->at[i]->datum.kind == CFX_DATUM_NONE ||
                         b->at[i]->datum.kind == CFX_DATUM_NONE || a->at[i]->maybe_none ||
                         b->at[i]->maybe_none);
        both->at[i] = v;
    }
    return true;
}

/* The structure of `like`, with these values as its leaves. */
static cfxi_ev *rebuild(cfxi_exporter *x, const cfxi_ev *like, cfxi_ev *const *values, size_t *at)
{
    size_t n;
    if (like->element || (!like->items && !cfx_datum_items(like->datum, &n)))
        return values[(*at)++];
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

/* Something of the type of `like`, for a way on which nobody uses it. */
static cfxi_ev *stand_in(cfxi_export_call *c, const cfxi_ev *like)
{
    int64_t ones[CFX_MAX_DIMS];
    for (int i = 0; i < CFX_MAX_DIMS; i++)
        ones[i] = 1;
    const size_t rank = cfxi_export_is_number(like) ? 0 : (size_t)like->rank;
    return cfxi_export_filled(c, cfxi_export_const_ints(c->x, ones, rank), cfxi_export_dtype(like),
                              0);
}

/* A value in the type of `like`. */
static cfxi_ev *in_type(cfxi_export_call *c, cfxi_ev *v, const cfxi_ev *like)
{
    if (like->element)
        return cfxi_export_as_sequence(c, v, like->element);
    return v->datum.kind == CFX_DATUM_NONE
               ? stand_in(c, like)
               : CAST(cfxi_export_fresh(c->x, v), cfxi_export_dtype(like));
}

/* Outputs of a graph in the types of `like`, under names of its own: a value of outside cannot be
 * one. None is not an output. */
static size_t set_outputs(cfxi_export_call *c, cfxi_onnx_value *outputs, cfxi_ev *const *values,
                          cfxi_ev *const *like, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (like[i]->datum.kind == CFX_DATUM_NONE)
            continue;
        cfxi_ev *v = in_type(c, values[i], like[i]);
        cfxi_ev *own = NODE("Identity", v);
        if (own->broken)
            return 0;
        outputs[k].name = text_of(own->name);
        outputs[k++].type = cfxi_export_type(c->x, like[i], false);
    }
    return k;
}

/* Values in the place of the outputs of a node; None stays. */
static cfxi_ev *take_outputs(cfxi_export_call *c, const cfxi_ev *like, leaves *both,
                             cfxi_ev *const *outputs)
{
    size_t at = 0;
    size_t k = 0;
    for (size_t i = 0; i < both->n; i++) {
        if (both->at[i]->datum.kind == CFX_DATUM_NONE)
            continue;
        both->at[i]->source = c->node;
        both->at[i]->name = outputs[k]->name;
        both->at[i]->scope = outputs[k++]->scope;
    }
    return rebuild(c->x, like, both->at, &at);
}

static size_t count_outputs(const leaves *both)
{
    size_t n = 0;
    for (size_t i = 0; i < both->n; i++)
        n += both->at[i]->datum.kind != CFX_DATUM_NONE;
    return n;
}

/* ---- branches ------------------------------------------------------------------------------ */

typedef struct branch {
    cfxi_export_scope scope;
    cfxi_ev *result;
    leaves found;
} branch;

/* A tensor of outside that a branch returns may be any of several from then on. */
static void note_shared(const cfxi_exporter *x, leaves *found, leaves *both)
{
    for (size_t i = 0; i < found->n; i++) {
        cfxi_ev *v = found->at[i];
        if (v->datum.kind != CFX_DATUM_TENSOR || cfxi_export_root(v)->scope == x->scope)
            continue;
        cfxi_export_root(v)->shared = true;
        if (both)
            both->at[i]->shared = true;
    }
}

/* `if returned: value = result`: what a branch gives beside its flag is there where the flag says
 * so. The other way is the one on which it is None. */
static void trust_flag(const cfxi_export_call *c, const cfxi_ev *pred, leaves *found)
{
    for (size_t i = 0; i < found->n; i++) {
        cfxi_ev *v = found->at[i];
        if (!v->maybe_none || !pred->source || v->source != pred->source)
            continue;
        cfxi_ev *own = cfxi_export_room(c->x, 1, sizeof *own);
        if (!own)
            return;
        *own = *v;
        own->maybe_none = false;
        found->at[i] = own;
    }
}

static void run_branch(cfxi_export_call *c, cfx_graph *region, const cfxi_ev *operands, branch *b)
{
    cfxi_exporter *x = c->x;
    cfxi_export_scope_begin(x, &b->scope);
    b->result = cfxi_export_region(x, region, operands->items, operands->n);
    if (b->result->broken)
        c->refused = true;
    x->scope = b->scope.outer;  /* outputs follow when the other branch is known */
}

static cfxi_onnx_graph *end_branch(cfxi_export_call *c, branch *b, leaves *both, const char *name)
{
    cfxi_exporter *x = c->x;
    x->scope = &b->scope;
    cfxi_onnx_value *outputs = cfxi_export_room(x, b->found.n, sizeof *outputs);
    size_t n = 0;
    if (outputs && both && !c->refused) {
        note_shared(x, &b->found, both);
        n = set_outputs(c, outputs, b->found.at, both->at, both->n);
    }
    cfxi_onnx_graph *g = cfxi_export_scope_end(x, name);
    if (g) {
        g->outputs.items = outputs;
        g->outputs.n = n;
    }
    return g;
}

/* A branch that is known to be taken is part of the graph around it. */
static cfxi_ev *known_branch(cfxi_export_call *c, bool yes, const cfxi_ev *operands)
{
    return cfxi_export_region(c->x, c->args[yes ? 1 : 2]->graph, operands->items, operands->n);
}

static cfxi_ev *truth(cfxi_export_call *c, cfxi_ev *v)
{
    if (v->element)
        return APPLY(bool, v);
    cfxi_ev *made = CAST(v, CFX_DTYPE_BOOL);
    if (!cfxi_export_is_number(v) && v->rank != 0)
        made = cfxi_export_scalar(c, made, v);
    return made;
}

static cfxi_ev *make_if(cfxi_export_call *c, cfxi_ev *test, branch *b, leaves *both)
{
    cfxi_exporter *x = c->x;
    const cfxi_ev *like = c->refused ? &x->broken
                                     : cfxi_export_widen(c, b[0].result, b[1].result);
    for (int i = 0; i < 2 && !c->refused; i++) {
        if (!collect(like, b[i].result, &b[i].found))
            cfxi_export_refuse(c, "its ways return different things, or something that is neither "
                               "a tensor nor a number; return the same from both");
        trust_flag(c, c->args[0], &b[i].found);
    }
    const bool good = !c->refused && join(c, &b[0].found, &b[1].found, both);
    cfxi_onnx_graph *yes = end_branch(c, &b[0], good ? both : NULL, "then");
    cfxi_onnx_graph *no = end_branch(c, &b[1], good ? both : NULL, "otherwise");
    if (!good || c->refused || x->failed)
        return &x->broken;
    const size_t n = count_outputs(both);
    cfxi_ev **outputs = cfxi_export_room(x, n, sizeof *outputs);
    if (!outputs || n == 0)
        return b[0].result;
    cfxi_export_nodes(x, "If", &test, 1, outputs, n);
    cfxi_export_set_graph(x, "then_branch", yes);
    cfxi_export_set_graph(x, "else_branch", no);
    return take_outputs(c, like, both, outputs);
}

cfxi_ev *cfxi_export_cond(cfxi_export_call *c)
{
    cfxi_exporter *x = c->x;
    static const cfxi_ev nothing = {.n = 0};
    const cfxi_ev *operands = c->n > 3 ? c->args[3] : &nothing;
    const cfxi_ev *pred = c->args[0];
    branch *b = cfxi_export_room(x, 2, sizeof *b);
    leaves *both = cfxi_export_room(x, 1, sizeof *both);
    if (!b || !both)
        return &x->broken;
    if (pred->datum.kind == CFX_DATUM_NONE || cfxi_export_is_known(pred))
        return known_branch(c, pred->datum.kind == CFX_DATUM_BOOL ? pred->datum.as.b
                               : pred->datum.kind == CFX_DATUM_FLOAT ? pred->datum.as.f != 0
                               : pred->datum.kind == CFX_DATUM_INT && pred->datum.as.i != 0,
                            operands);
    if (pred->items || pred->maybe_none)
        return cfxi_export_refuse(c, "a branch depends on a value that is neither a tensor nor a "
                                  "number");
    cfxi_ev *test = truth(c, c->args[0]);
    run_branch(c, c->args[1]->graph, operands, &b[0]);
    run_branch(c, c->args[2]->graph, operands, &b[1]);
    return make_if(c, test, b, both);
}

/* ---- loops --------------------------------------------------------------------------------- */

typedef struct loop {
    cfx_graph *test;        /* of while_loop; or NULL */
    cfx_graph *body;
    cfxi_ev *state;
    cfxi_ev *like;          /* its structure, with sequences where it has lists that grow */
    leaves first;           /* of the state */
    leaves type;            /* what is known of them in every time around */
    leaves inner;           /* as the body sees them, */
    const char *names[MOST_LEAVES];  /* under these names until it writes to them */
    leaves next;            /* what it returns */
} loop;

/* A value of the body's own, of which no more is known than the type. */
static cfxi_ev *inner_value(cfxi_export_call *c, const cfxi_ev *like)
{
    cfxi_exporter *x = c->x;
    cfxi_ev *list = like->element ? cfxi_export_new_sequence(x, like->element, NULL) : NULL;
    const cfx_datum d = like->datum.kind == CFX_DATUM_TENSOR
                            ? abstract(x, like->dtype, like->sizes, like->rank)
                        : list || like->datum.kind == CFX_DATUM_NONE
                            ? like->datum : unknown_like(x, like->datum);
    cfxi_ev *made = list ? list : cfxi_export_of_datum(x, d);
    if (made->broken || d.kind == CFX_DATUM_NONE)
        return made;
    made->name = cfxi_export_unique(x, cfxi_export_text(x, "%s/state",
                                                        cfx_node_name(c->node, NULL)));
    made->scope = x->scope;
    made->maybe_none = like->maybe_none;
    return made;
}

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
        l->names[i] = (l->inner.at[i] = inner_value(c, l->type.at[i]))->name;
    l->inner.n = l->first.n;
    cfxi_ev *state = rebuild(x, l->like, l->inner.at, &at);
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
    if (!collect(wider, next, &l->next)) {
        cfxi_export_refuse(c, "the body of the loop returns something else than its state is, or "
                           "what is neither a tensor nor a number");
        return false;
    }
    l->like = wider;
    if (same)
        return true;
    l->first.n = 0;
    if (!collect(wider, l->state, &l->first))
        cfxi_export_refuse(c, "the body of the loop returns something else than its state is");
    else
        join(c, &l->first, &l->next, &l->type);
    return false;
}

/* Whether nothing more is known of one than of the other. */
static bool same_type(const cfxi_exporter *x, const cfxi_ev *a, const cfxi_ev *b)
{
    if (a->element || b->element)
        return a->element && b->element && same_type(x, a->element, b->element);
    if (a->datum.kind != b->datum.kind || a->maybe_none != b->maybe_none)
        return false;
    for (int i = 0; a->datum.kind == CFX_DATUM_TENSOR && i < a->rank; i++)
        if (cfx_dim_compare_eq(x->dims, a->sizes[i], b->sizes[i]) != 1)
            return false;
    return true;
}

/* Whether the types hold for what comes next; else they are made wider. */
static bool settle(cfxi_export_call *c, loop *l)
{
    bool same = true;
    leaves *wider = cfxi_export_room(c->x, 1, sizeof *wider);
    if (!wider || !join(c, &l->type, &l->next, wider))
        return false;
    for (size_t i = 0; i < l->first.n; i++)
        same = same && same_type(c->x, l->type.at[i], wider->at[i]);
    if (!same)
        l->type = *wider;
    return same;
}

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
    cfxi_onnx_value *inputs = cfxi_export_room(x, n + 2, sizeof *inputs);
    cfxi_onnx_value *outputs = cfxi_export_room(x, n + 1, sizeof *outputs);
    cfxi_ev *index = inner_value(c, cfxi_export_of_datum(x, cfx_datum_int(0)));
    cfxi_ev *going = inner_value(c, cfxi_export_of_datum(x, cfx_datum_bool(true)));
    size_t k = 2;
    size_t num_outputs = 0;
    cfxi_ev *next = inputs && outputs ? run_body(c, l, index) : &x->broken;
    *settled = !next->broken && take_next(c, l, next) && settle(c, l);
    if (*settled && !x->failed) {
        check_written(c, l);
        add_input(c, &inputs[0], index->name, index);
        add_input(c, &inputs[1], going->name, going);
        for (size_t i = 0; i < n; i++)
            if (l->inner.at[i]->datum.kind != CFX_DATUM_NONE)
                add_input(c, &inputs[k++], l->names[i], l->inner.at[i]);
        cfxi_ev *again = going;
        if (l->test)
            again = truth(c, cfxi_export_region(x, l->test, next->items ? next->items : &next,
                                                next->items ? next->n : 1));
        note_shared(x, &l->next, NULL);
        num_outputs = set_outputs(c, outputs, &again, &going, 1);
        num_outputs += set_outputs(c, outputs + 1, l->next.at, l->type.at, n);
    }
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
static void write_state(cfxi_export_call *c, const loop *l, const leaves *results)
{
    for (size_t i = 0; i < l->inner.n; i++)
        if (l->inner.at[i]->version > 0 && !c->refused)
            cfxi_export_write(c, l->first.at[i], results->at[i]);
}

static cfxi_ev *make_loop(cfxi_export_call *c, loop *l, cfxi_ev *count, cfxi_ev *first,
                          cfxi_onnx_graph *body)
{
    cfxi_exporter *x = c->x;
    const size_t n = count_outputs(&l->type);
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
        inputs[k++] = in_type(c, l->first.at[i], l->type.at[i]);
    }
    if (n == 0)
        return l->state;
    cfxi_export_nodes(x, "Loop", inputs, k, outputs, n);
    cfxi_export_set_graph(x, "body", body);
    cfxi_ev *result = take_outputs(c, l->like, &l->type, outputs);
    write_state(c, l, &l->type);
    return c->refused ? &x->broken : result;
}

/* The types of the state are found by following the body until they stay. */
static cfxi_ev *run_loop(cfxi_export_call *c, loop *l, cfxi_ev *count)
{
    enum { MOST_TIMES = 6 };
    cfxi_exporter *x = c->x;
    cfxi_onnx_graph *body = NULL;
    bool settled = false;
    if (!collect(l->state, l->state, &l->first))
        return cfxi_export_refuse(c, "the state of the loop has something that is neither a tensor "
                                  "nor a number");
    if (!join(c, &l->first, &l->first, &l->type))  /* numbers are not known, sizes are */
        return &x->broken;
    cfxi_ev *first = NULL;
    if (l->test)
        first = truth(c, cfxi_export_region(x, l->test, l->state->items, l->state->n));
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
