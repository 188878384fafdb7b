/* region_build.c - nodes at the end of the graph that become regions of a cond or a loop.
 *
 * What a region reads of the nodes before it comes in as an operand. The nodes are copied into a
 * graph of their own, and erased where they were.
 */
#include "buffer_copies_impl.h"
#include "graph_control_impl.h"

/* ---- nodes --------------------------------------------------------------------------------- */

static bool failed(cfx_status status) { return status != CFX_OK; }

cfx_node *cfxi_eval_stand_in(cfx_evaluator *ev, const char *name)
{
    return cfx_graph_placeholder(ev->g, name, ev->err);
}

/* Where the program is. */
static bool put_place(cfx_evaluator *ev, cfx_node *n)
{
    const cfxi_frame *f = cfxi_eval_visible_frame(ev, ev->frame);
    if (ev->w->module_stack)
        cfx_node_set_module_stack(n, ev->w->module_stack(ev->w->ctx));
    return !f || !f->at || f->at->line == 0 ||
           cfx_node_set_location(n, f->def->script->file, f->at->line, ev->err) == CFX_OK;
}

/* A call of a function, where the program is. */
static cfx_node *call_node(cfx_evaluator *ev, const char *target, const cfx_value *args, size_t n)
{
    cfx_node *call = cfxi_ir_call_by_name(ev->g, target, args, n, NULL, ev->err);
    return call && put_place(ev, call) ? call : NULL;
}

static bool value_of(cfx_evaluator *ev, cfx_object *o, cfx_value *v)
{
    *v = cfx_value_none();
    if (!o)
        return true;
    o = cfxi_eval_current_deep(ev, o);
    return o && ev->w->value(ev->w->ctx, o, v, ev->err) == CFX_OK;
}

/* Names that generated code makes up: with a number, as another value has the plain one; or what
 * states and results of branches and loops are called that have no name in the program. */
static bool is_made_up(const char *name)
{
    static const char *const words[] = {"assigned", "cond", "for_loop", "getitem", "go", "i",
                                        "items", "left", "result", "state", "while_loop"};
    const size_t size = strlen(name);
    return cfxi_ir_base_size(name, size) < size ||
           cfxi_base_is_word_of(words, sizeof words / sizeof *words, name, size);
}

/* Whether it is what a branch or loop gives: generated code assigns that in the branches. */
static bool is_of_control(const cfx_node *n)
{
    const cfx_value of = cfx_node_arg(n, 0);
    return cfxi_ir_node_form(n) || (of.kind == CFX_KIND_NODE && cfxi_ir_node_form(of.as.node));
}

bool cfxi_eval_name_after(cfx_evaluator *ev, cfx_object *v, const char *name)
{
    cfx_node *n = cfxi_eval_node(ev, v);
    if (!n || !cfxi_ir_is_call(n) || is_of_control(n) || name[0] == '_' ||
        strcmp(name, "self") == 0 || is_made_up(name) ||
        !cfxi_ir_name_is_legal(name, strlen(name)))
        return true;
    return !failed(cfx_node_set_name(n, name, strlen(name), ev->err));
}

enum { FEW = 8 };

cfx_object *cfxi_eval_record(cfx_evaluator *ev, const char *target, cfx_object *const *args,
                             size_t n)
{
    cfx_value values[FEW];
    assert(n <= FEW);
    for (size_t i = 0; i < n; i++) {
        if (value_of(ev, args[i], &values[i]))
            continue;
        while (i-- > 0)
            cfx_value_discard(ev->g, values[i]);
        return NULL;
    }
    cfx_node *call = call_node(ev, target, values, n);
    return call ? cfxi_eval_proxy(ev, call) : NULL;
}

/* From behind, so that users go before what they use. */
static bool erase_span(cfx_evaluator *ev, cfx_node *first, cfx_node *end)
{
    for (cfx_node *n = end ? cfx_node_prev(end) : cfx_graph_last(ev->g); n;) {
        cfx_node *before = n == first ? NULL : cfx_node_prev(n);
        if (failed(cfx_graph_erase(ev->g, n, ev->err)))
            return false;
        n = before;
    }
    return true;
}

bool cfxi_eval_erase_from(cfx_evaluator *ev, cfx_node *first)
{
    return erase_span(ev, first, NULL);
}

/* ---- what a region reads ------------------------------------------------------------------- */

typedef struct cutter {
    cfx_evaluator *ev;
    const cfx_node *start;   /* what lies before it comes in */
    cfx_node_map *map;       /* nodes of the graph to nodes of the region that is being made */
    cfx_node **operands;     /* what comes in, in the order of its first use */
    size_t n, capacity;
    cfx_node_map *seen;
} cutter;

static cfx_status note_operand(void *ctx, cfx_node *n)
{
    cutter *c = ctx;
    cfx_evaluator *ev = c->ev;
    if (!cfx_node_before(n, c->start) ||
        cfx_node_map_get(c->seen, n).kind != CFX_KIND_INVALID)
        return CFX_OK;
    if (c->n == c->capacity) {
        const size_t capacity = c->capacity ? 2 * c->capacity : 16;
        cfx_node **more = cfxi_eval_ev_alloc(ev, capacity * sizeof *more);
        if (!more)
            return CFX_E_NOMEM;
        if (c->n > 0)
            memcpy(more, c->operands, c->n * sizeof *more);
        c->operands = more;
        c->capacity = capacity;
    }
    c->operands[c->n++] = n;
    return cfx_node_map_set(c->seen, n, cfx_value_bool(true), ev->err);
}

/* A span and the values that it gives, in terms of the graph. */
typedef struct cut_span {
    const cfxi_span *span;
    size_t n_inputs;
    cfx_value *results;      /* floating */
    size_t n_results;
    cfx_graph *made;
} cut_span;

static cfx_node *after(const cut_span *s) { return cfx_node_next(s->span->first); }

static bool note_operands(cutter *c, const cut_span *s)
{
    for (cfx_node *n = after(s); n && n != s->span->last; n = cfx_node_next(n))
        for (size_t i = 0; i < cfx_node_num_inputs(n); i++)
            if (failed(note_operand(c, cfx_node_input(n, i))))
                return false;
    for (size_t i = 0; i < s->n_results; i++)
        if (failed(cfx_value_each_node(s->results[i], note_operand, c)))
            return false;
    return true;
}

/* The values that a span gives. What has to be recorded for that is recorded in the span. */
static bool take_results(cfx_evaluator *ev, cut_span *s, size_t n)
{
    const cfx_insert_point end = {.node = s->span->last};
    const cfx_insert_point was = cfx_graph_insert_point(ev->g);
    s->results = cfxi_eval_ev_alloc(ev, (n + 1) * sizeof *s->results);
    if (!s->results || failed(cfx_graph_set_insert_point(ev->g, end, ev->err)))
        return false;
    bool fine = true;
    for (size_t i = 0; i < n && fine; i++) {
        fine = value_of(ev, s->span->results[i], &s->results[i]);
        s->n_results += fine;
    }
    cfx_error ignored;
    const cfx_status back = cfx_graph_set_insert_point(ev->g, was, &ignored);
    return fine && !failed(back);
}

/* ---- making a region ----------------------------------------------------------------------- */

static cfx_value look_up(void *ctx, cfx_node *n, cfx_error *err)
{
    const cutter *c = ctx;
    cfx_value v = cfx_node_map_get(c->map, n);
    if (v.kind == CFX_KIND_INVALID)
        cfx_error_set(err, CFX_E_GRAPH, "a value computed in one branch is used in another; "
                      "objects that keep graph values across branches cannot be captured");
    return v;
}

/* A variable's name without a number that generated code has given it: "x" of "x_3". */
static const char *plain_name(cfx_evaluator *ev, const char *name)
{
    const size_t size = name ? cfxi_ir_base_size(name, strlen(name)) : 0;
    if (!name || !name[size])
        return name;
    char *plain = cfxi_eval_ev_alloc(ev, size + 1);
    if (plain)
        memcpy(plain, name, size);
    return plain;
}

/* An input of the region for a node. A stand-in is called as the variable; what comes in from
 * outside will be called as it is there (tidy.c), which is not known yet. */
static bool add_input(cutter *c, cfx_graph *g, cfx_node *n)
{
    const bool own = !cfx_node_before(n, c->start);
    const char *name = own ? plain_name(c->ev, cfx_node_target(n, NULL, c->ev->err)) : "_";
    const cfxi_copy_as as = {.path = name, .placeholder = true};
    if (!name)
        return false;
    cfx_node *copy = cfxi_ir_graph_copy_as(g, n, &as, look_up, c, c->ev->err);
    return copy && !failed(cfx_node_map_set(c->map, n, cfx_value_node(copy), c->ev->err));
}

static bool copy_nodes(cutter *c, cfx_graph *g, const cut_span *s)
{
    for (cfx_node *n = after(s); n && n != s->span->last; n = cfx_node_next(n)) {
        if (cfx_node_map_get(c->map, n).kind != CFX_KIND_INVALID)
            continue;  /* it is an input */
        const cfxi_copy_as as = {.move = true};  /* a name by what it calls, counted anew */
        cfx_node *copy = cfxi_ir_graph_copy_as(g, n, &as, look_up, c, c->ev->err);
        if (!copy || failed(cfx_node_map_set(c->map, n, cfx_value_node(copy), c->ev->err)))
            return false;
    }
    return true;
}

/* The output: the results, and behind them (in a loop) what came in, unchanged. */
static bool add_output(cutter *c, cfx_graph *g, const cut_span *s, bool plain, bool hand_on)
{
    const size_t more = hand_on ? c->n : 0;
    cfx_value *items = cfxi_eval_ev_alloc(c->ev, (s->n_results + more + 1) * sizeof *items);
    if (!items)
        return false;
    for (size_t i = 0; i < s->n_results; i++) {
        items[i] = cfx_value_map(g, c->ev->g, s->results[i], look_up, c, c->ev->err);
        if (items[i].kind == CFX_KIND_INVALID)
            return false;
    }
    for (size_t i = 0; i < more; i++)
        items[s->n_results + i] = cfx_node_map_get(c->map, c->operands[i]);
    const size_t n = s->n_results + more;
    cfx_value all =
        plain ? (n ? items[0] : cfx_value_none()) : cfx_value_tuple(g, items, n, c->ev->err);
    return all.kind != CFX_KIND_INVALID && cfx_graph_output(g, all, c->ev->err);
}

/* Makes s->made. `plain`: it gives one value, not a tuple. */
static bool make_region(cutter *c, cut_span *s, cfx_node *const *inputs, size_t n_inputs,
                        bool plain, bool hand_on)
{
    cfx_graph *g = c->ev->g;
    s->made = cfx_graph_new(cfx_graph_allocator(g), cfx_graph_host(g), c->ev->err);
    const bool named = !s->made || cfxi_ir_graph_defer_names(s->made, c->ev->err) != CFX_OK;
    c->map = !named ? cfx_node_map_new(c->ev->allocator, c->ev->err) : NULL;
    bool fine = c->map != NULL;
    for (size_t i = 0; fine && i < n_inputs; i++)
        fine = add_input(c, s->made, inputs[i]);
    for (size_t i = 0; fine && i < c->n; i++)
        fine = add_input(c, s->made, c->operands[i]);
    fine = fine && copy_nodes(c, s->made, s) && add_output(c, s->made, s, plain, hand_on);
    cfx_node_map_free(c->map);
    c->map = NULL;
    return fine;
}

static void drop_results(cfx_evaluator *ev, cut_span *s)
{
    for (size_t i = 0; i < s->n_results; i++)
        cfx_value_discard(ev->g, s->results[i]);
    s->n_results = 0;
}

static void drop_span(cfx_evaluator *ev, cut_span *s)
{
    drop_results(ev, s);
    cfx_graph_release(s->made);
    s->made = NULL;
}

static bool cutter_begin(cutter *c, cfx_evaluator *ev, const cfx_node *start)
{
    *c = (cutter){.ev = ev, .start = start};
    c->seen = cfx_node_map_new(ev->allocator, ev->err);
    return c->seen != NULL;
}

/* The states of a loop, and what comes in. */
static bool operand_tuple(cutter *c, const cfx_value *state, size_t n, cfx_value *out)
{
    cfx_value *items = cfxi_eval_ev_alloc(c->ev, (n + c->n + 1) * sizeof *items);
    if (!items)
        return false;
    for (size_t i = 0; i < n; i++)
        items[i] = state[i];
    for (size_t i = 0; i < c->n; i++)
        items[n + i] = cfx_value_node(c->operands[i]);
    *out = cfx_value_tuple(c->ev->g, items, n + c->n, c->ev->err);
    return out->kind != CFX_KIND_INVALID;
}

static bool region_value(cfx_evaluator *ev, cut_span *s, cfx_value *v)
{
    *v = cfx_value_region(ev->g, s->made, ev->err);
    return v->kind != CFX_KIND_INVALID;
}

/* ---- results ------------------------------------------------------------------------------- */

/* Reads items of a node's result. */
static bool take_apart(cfx_evaluator *ev, cfx_node *n, size_t count, cfx_object **out)
{
    cfx_object *whole = cfxi_eval_proxy(ev, n);
    for (size_t i = 0; whole && i < count; i++) {
        cfx_object *in[2] = {whole, cfxi_eval_int(ev, (int64_t)i)};
        out[i] = in[1] ? cfxi_eval_record(ev, "operator.getitem", in, 2) : NULL;
        if (!out[i])
            return false;
    }
    return whole != NULL;
}

/* Puts results into the order that they are to have. */
static bool put_in_order(cfx_evaluator *ev, cut_span *s, const size_t *order)
{
    cfx_value *sorted = cfxi_eval_ev_alloc(ev, (s->n_results + 1) * sizeof *sorted);
    for (size_t i = 0; sorted && i < s->n_results; i++)
        sorted[i] = s->results[order[i]];
    if (sorted)
        s->results = sorted;
    return sorted != NULL;
}

/* Reads the results, which have been put into another order. */
static bool take_in_order(cfx_evaluator *ev, cfx_node *n, const size_t *order, size_t count,
                          cfx_object **out)
{
    cfx_object **items = cfxi_eval_ev_alloc(ev, (count + 1) * sizeof *items);
    if (!items || !take_apart(ev, n, count, items))
        return false;
    for (size_t i = 0; i < count; i++)
        out[order[i]] = items[i];
    return true;
}

/* What both sides of a branch give, in order, and what they read. */
static bool take_sides(cutter *c, cut_span *sides, size_t n, size_t **order)
{
    cfx_evaluator *ev = c->ev;
    if (!take_results(ev, &sides[0], n) || !take_results(ev, &sides[1], n))
        return false;
    const cfxi_span *const spans[2] = {sides[0].span, sides[1].span};
    cfx_value *const results[2] = {sides[0].results, sides[1].results};
    return cfxi_eval_order_results(ev, spans, results, n, order) &&
           put_in_order(ev, &sides[0], *order) && put_in_order(ev, &sides[1], *order) &&
           note_operands(c, &sides[0]) && note_operands(c, &sides[1]);
}

/* Whether a single result needs no tuple around it: it is not a tuple itself. */
static bool is_plain(const cut_span *s)
{
    return s->n_results == 1 && s->results[0].kind != CFX_KIND_TUPLE &&
           s->results[0].kind != CFX_KIND_LIST;
}

bool cfxi_eval_make_cond(cfx_evaluator *ev, cfx_object *pred, const cfxi_span *then,
                         const cfxi_span *otherwise, size_t n, cfx_object **out)
{
    cut_span sides[2] = {{.span = then}, {.span = otherwise}};
    cfx_value args[4] = {cfx_value_invalid(), cfx_value_invalid(), cfx_value_invalid(),
                         cfx_value_invalid()};
    const bool in_order = cfx_node_before(then->first, otherwise->first);
    cfx_node *start = in_order ? then->first : otherwise->first;
    const cfx_insert_point here = {.node = in_order ? otherwise->last : then->last};
    cutter c = {0};
    size_t *order = NULL;
    bool fine = cutter_begin(&c, ev, start) && take_sides(&c, sides, n, &order);
    const bool plain = n == 0 || (n == 1 && is_plain(&sides[0]) && is_plain(&sides[1]));
    for (size_t i = 0; fine && i < 2; i++)
        fine = make_region(&c, &sides[i], NULL, 0, plain, false);
    drop_results(ev, &sides[0]);
    drop_results(ev, &sides[1]);
    fine = fine && erase_span(ev, start, here.node);
    const cfx_insert_point was = cfx_graph_insert_point(ev->g);
    fine = fine && !failed(cfx_graph_set_insert_point(ev->g, here, ev->err)) &&
           value_of(ev, pred, &args[0]) && region_value(ev, &sides[0], &args[1]) &&
           region_value(ev, &sides[1], &args[2]) && operand_tuple(&c, NULL, 0, &args[3]);
    cfx_node *cond = fine ? call_node(ev, "cfx.cond", args, 4) : NULL;
    drop_span(ev, &sides[0]);
    drop_span(ev, &sides[1]);
    cfx_node_map_free(c.seen);
    if (cond && n == 1 && plain)
        out[0] = cfxi_eval_proxy(ev, cond);
    fine = cond && (plain ? n == 0 || out[0] : take_in_order(ev, cond, order, n, out));
    cfx_error ignored;
    return !failed(cfx_graph_set_insert_point(ev->g, was, &ignored)) && fine;
}

/* The values that a loop begins with. */
static bool begin_values(cfx_evaluator *ev, cfx_object *const *state, const size_t *order, size_t n,
                         cfx_value **out)
{
    *out = cfxi_eval_ev_alloc(ev, (n + 1) * sizeof **out);
    for (size_t i = 0; *out && i < n; i++)
        if (!value_of(ev, state[order[i]], &(*out)[i]))
            return false;
    return *out != NULL;
}

/* The parts of a loop: what they give and read, and the inputs that stand for the state, all in
 * order. */
static bool take_parts(cutter *c, cut_span *parts, size_t n, cfx_node ***inputs, size_t **order)
{
    cfx_evaluator *ev = c->ev;
    const cfxi_span *test = parts[0].span, *body = parts[1].span;
    const size_t extra = !test;  /* the index of a for comes first */
    if ((test && !take_results(ev, &parts[0], 1)) || !take_results(ev, &parts[1], n) ||
        !cfxi_eval_order_state(ev, test, body, body->inputs + extra, parts[1].results, n, order) ||
        !put_in_order(ev, &parts[1], *order))
        return false;
    *inputs = cfxi_eval_ev_alloc(ev, (n + 1) * sizeof **inputs);
    if (!*inputs)
        return false;
    if (extra)
        (*inputs)[0] = body->inputs[0];
    for (size_t i = 0; i < n; i++)
        (*inputs)[i + extra] = body->inputs[(*order)[i] + extra];
    return (!test || note_operands(c, &parts[0])) && note_operands(c, &parts[1]);
}

bool cfxi_eval_make_loop(cfx_evaluator *ev, cfx_object *count, const cfxi_span *test,
                         const cfxi_span *body, cfx_object *const *state, size_t n,
                         cfx_object **out)
{
    cut_span parts[2] = {{.span = test}, {.span = body}};
    cfx_value args[3] = {cfx_value_invalid(), cfx_value_invalid(), cfx_value_invalid()};
    cfx_node *first = test ? test->first : body->first;
    cfx_value *begin = NULL;
    cfx_node **inputs = NULL;
    size_t *order = NULL;
    cutter c = {0};
    bool fine = cutter_begin(&c, ev, first) && take_parts(&c, parts, n, &inputs, &order);
    if (fine && test)
        fine = make_region(&c, &parts[0], inputs, n, true, false);
    fine = fine && make_region(&c, &parts[1], inputs, n + !test, false, true);
    drop_results(ev, &parts[0]);
    drop_results(ev, &parts[1]);
    fine = fine && cfxi_eval_erase_from(ev, first) && begin_values(ev, state, order, n, &begin) &&
           (test ? region_value(ev, &parts[0], &args[0]) : value_of(ev, count, &args[0])) &&
           region_value(ev, &parts[1], &args[1]) && operand_tuple(&c, begin, n, &args[2]);
    cfx_node *loop = fine ? call_node(ev, test ? "cfx.while_loop" : "cfx.for_loop", args, 3) : NULL;
    drop_span(ev, &parts[0]);
    drop_span(ev, &parts[1]);
    cfx_node_map_free(c.seen);
    return loop && take_in_order(ev, loop, order, n, out);
}
