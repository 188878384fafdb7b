/* branch.c - an `if` that a graph value decides: both ways are run, and merged now or later.
 *
 * A way ends with a flow: it goes on behind the branch, or leaves by continue, break or return. A
 * way that raises ends nowhere: a node in it raises, and its values do not matter.
 */
#include "graph_control_impl.h"

/* One way of a branch that has been run: its region is closed. */
typedef struct way {
    cfxi_region *region;
    cfxi_outcome out;
    cfx_object *value;   /* of an expression */
} way;

/* A branch one way of which has left, while evaluation goes on inside the other. */
struct cfxi_pending {
    cfx_object *pred;
    bool left_then;      /* the way that has left is the one for a true predicate */
    way left;
    cfxi_region *open;
};

static uint32_t bit(cfxi_flow flow) { return 1u << flow; }

static uint32_t bits_upto(cfxi_flow flow) { return (2u << flow) - 1; }

static cfxi_flow lowest(uint32_t mask)
{
    cfxi_flow flow = CFXI_FLOW_ON;
    while (!(mask & bit(flow)))
        flow++;
    return flow;
}

static bool is_single(uint32_t mask) { return (mask & (mask - 1)) == 0; }

size_t cfxi_eval_pendings(const cfx_evaluator *ev) { return ev->pending.size; }

void cfxi_eval_pending_free(cfx_evaluator *ev)
{
    cfxi_base_vec_free(&ev->pending, sizeof(cfxi_pending), ev->allocator);
}

static cfxi_pending *pending_at(const cfx_evaluator *ev, size_t i)
{
    return (cfxi_pending *)ev->pending.data + i;
}

/* ---- raising ------------------------------------------------------------------------------- */

bool cfxi_eval_record_raise(cfx_evaluator *ev)
{
    const char *kind;
    cfx_object *message;
    cfx_object *exc = ev->raised;
    const cfxi_ast *at = ev->raised_in == ev->frame ? ev->raised_at : NULL;
    const bool hidden = cfxi_eval_visible_frame(ev, ev->raised_in) != ev->raised_in;
    cfxi_eval_forget_failure(ev);
    if (!cfxi_eval_pass_guards(ev, at, exc))
        return false;
    if (ev->w->explain(ev->w->ctx, exc, &kind, &message, ev->err) != CFX_OK)
        return false;
    if (strcmp(kind, "StopIteration") == 0 && cfxi_eval_ends_by_data(ev))
        return cfxi_eval_fail(ev, at, CFX_E_UNSUPPORTED,
                              "whether this iterator has another item depends on data, so its "
                              "items cannot be counted during capture; use a while loop, or make a "
                              "new iterator after the branch");
    cfx_object *in[2] = {cfxi_eval_str(ev, kind), message};
    return in[0] && cfxi_eval_keep_early(ev, hidden) && cfxi_eval_record(ev, "cfx.fail", in, 2);
}

/* ---- merging two ways ---------------------------------------------------------------------- */

/* Which flow a way takes, as a number. */
static cfx_object *code_of(cfx_evaluator *ev, const cfxi_outcome *o)
{
    if (o->mask == 0)
        return NULL;
    return o->code ? o->code : cfxi_eval_int(ev, lowest(o->mask));
}

static bool merge_results(cfxi_merge *m, const way *a, const way *b, cfxi_form **form)
{
    cfx_evaluator *ev = m->ev;
    if (!a->out.result && !b->out.result)
        return true;
    const cfxi_merged done = cfxi_eval_merge_values(m, a->out.result, b->out.result, form);
    if (done == CFXI_MERGED_NOT)
        cfxi_eval_fail(ev, NULL, CFX_E_TYPE, "the function returns %s in one branch and %s in the "
                       "other, depending on data; return the same type in both branches",
                       m->why.type[0], m->why.type[1]);
    return done == CFXI_MERGED;
}

static bool merge_expression(cfxi_merge *m, const way *a, const way *b, cfxi_form **form)
{
    cfx_evaluator *ev = m->ev;
    if (!a->value && !b->value)
        return true;
    const cfxi_merged done = cfxi_eval_merge_values(m, a->value, b->value, form);
    if (done == CFXI_MERGED_NOT)
        cfxi_eval_fail(ev, NULL, CFX_E_TYPE,
                       "this has type %s or %s, depending on data; %s", m->why.type[0],
                       m->why.type[1],
                       cfxi_eval_kinds_advice(&m->why, "use the same type in both branches"));
    return done == CFXI_MERGED;
}

static bool has_nodes(const cfxi_span *s)
{
    return cfx_node_next(s->first) != s->last;
}

/* The node and its results, if there is anything to come out or to be done. */
static bool make_node(cfxi_merge *m, cfx_object *pred, const cfxi_region *then,
                      const cfxi_region *otherwise)
{
    cfx_evaluator *ev = m->ev;
    cfxi_outlet *outlets = m->outlets.data;
    const size_t n = m->outlets.size;
    cfxi_span a = {.first = then->marker}, b = {.first = otherwise->marker};
    cfx_object **out = cfxi_eval_ev_alloc(ev, 3 * (n + 1) * sizeof *out);
    if (!out)
        return false;
    a.results = out + n + 1;
    b.results = out + 2 * (n + 1);
    if (cfx_node_before(a.first, b.first))
        a.last = b.first;
    else
        b.last = a.first;
    for (size_t i = 0; i < n; i++) {
        a.results[i] = outlets[i].a;
        b.results[i] = outlets[i].b;
    }
    if (n == 0 && !has_nodes(&a) && !has_nodes(&b))
        return cfx_graph_erase(ev->g, a.first, ev->err) == CFX_OK &&
               cfx_graph_erase(ev->g, b.first, ev->err) == CFX_OK;
    if (!cfxi_eval_make_cond(ev, pred, &a, &b, n, out))
        return false;
    for (size_t i = 0; i < n; i++) {
        outlets[i].result = out[i];
        if (!cfxi_eval_note_kind(ev, cfxi_eval_node(ev, out[i]), outlets[i].kind))
            return false;
    }
    return true;
}

bool cfxi_eval_is_flag(const cfx_node *n)
{
    static const char opposite[] = "operator.not_";
    cfx_error ignored = {0};
    const char *target = n ? cfx_node_target(n, NULL, &ignored) : NULL;
    if (!target || n->op != CFX_OP_CALL_FUNCTION)
        return n && cfxi_ir_is_flag(n);
    target += *target == '_';  /* Python's own name for the module is _operator */
    return strcmp(target, opposite) == 0 && cfx_node_arg(n, 0).kind == CFX_KIND_NODE &&
           cfxi_ir_is_flag(cfx_node_arg(n, 0).as.node);
}

/* Makes a cond of two closed ways whose nodes are the last of the graph. */
static bool merge_ways(cfx_evaluator *ev, cfx_object *pred, const way *a, const way *b,
                       uint64_t here, cfxi_outcome *out, cfx_object **value)
{
    cfxi_merge m;
    cfxi_form *code = NULL, *result = NULL, *given = NULL;
    const uint32_t returns = bit(CFXI_FLOW_RETURN);
    const bool ends = ev->frame->finals == 0;
    const unsigned gone = ends ? (a->out.mask == returns) + 2u * (b->out.mask == returns) : 0;
    const unsigned dead = (a->out.mask == 0) + 2u * (b->out.mask == 0) + (gone < 3 ? 4 * gone : 0);
    cfxi_merged_places *places = NULL;
    *out = (cfxi_outcome){.mask = a->out.mask | b->out.mask};
    cfxi_eval_merge_begin(&m, ev);
    m.in_a = a->region;
    m.in_b = b->region;
    m.flag = cfxi_eval_is_flag(cfxi_eval_node(ev, pred)) ? pred : NULL;
    bool fine = true;
    if (!is_single(out->mask)) {
        code =
            cfxi_eval_merge_outlet(&m, code_of(ev, &a->out), code_of(ev, &b->out), CFX_OBJECT_INT);
        fine = code != NULL;
    }
    fine = fine && merge_results(&m, a, b, &result) && merge_expression(&m, a, b, &given) &&
           (places = cfxi_eval_merge_places(&m, a->region, b->region, dead, here)) != NULL &&
           make_node(&m, pred, a->region, b->region);
    if (fine && code)
        fine = (out->code = cfxi_eval_form_value(ev, &m, code)) != NULL;
    if (fine && result)
        fine = (out->result = cfxi_eval_form_value(ev, &m, result)) != NULL;
    if (fine && given)
        fine = (*value = cfxi_eval_form_value(ev, &m, given)) != NULL;
    fine = fine && cfxi_eval_write_places(&m, places);
    cfxi_eval_merge_end(&m);
    return fine;
}

/* ---- pending branches ---------------------------------------------------------------------- */

/* How evaluation that ends here with `flow` ends. In one that raises, a node does so. */
static bool outcome_of(cfx_evaluator *ev, cfxi_flow flow, cfxi_flow upto, cfxi_outcome *out)
{
    *out = (cfxi_outcome){0};
    if (flow == CFXI_FLOW_RAISE)
        return cfxi_eval_record_raise(ev);
    out->mask = bit(flow <= upto ? CFXI_FLOW_ON : flow);
    if (flow == CFXI_FLOW_RETURN)
        out->result = ev->frame->result;
    return true;
}

bool cfxi_eval_join(cfx_evaluator *ev, size_t base, cfxi_flow flow, cfxi_flow upto,
                    cfxi_outcome *out)
{
    const uint64_t here = upto == CFXI_FLOW_RETURN ? 0 : cfxi_eval_start_of(ev->frame->at);
    if (!outcome_of(ev, flow, upto, out))
        return false;
    while (ev->pending.size > base) {
        cfxi_pending p = *pending_at(ev, --ev->pending.size);
        way open = {.region = p.open, .out = *out};
        if (!cfxi_eval_region_close(ev))
            return false;
        if (is_single(p.left.out.mask) && (p.left.out.mask & bits_upto(upto)))
            p.left.out.mask = bit(CFXI_FLOW_ON);
        if (!merge_ways(ev, p.pred, p.left_then ? &p.left : &open, p.left_then ? &open : &p.left,
                        here, out, NULL))
            return false;
    }
    return true;
}

static bool push(cfx_evaluator *ev, const cfxi_pending *p)
{
    if (!cfxi_base_vec_reserve(&ev->pending, 1, sizeof *p, ev->allocator)) {
        cfxi_base_nomem(ev->err);
        return false;
    }
    *((cfxi_pending *)ev->pending.data + ev->pending.size++) = *p;
    return true;
}

cfxi_flow cfxi_eval_resume(cfx_evaluator *ev, const cfxi_outcome *out, cfxi_flow upto)
{
    return cfxi_eval_resume_with(ev, out, upto, NULL, NULL);
}

cfxi_flow cfxi_eval_resume_with(cfx_evaluator *ev, const cfxi_outcome *out, cfxi_flow upto,
                                cfxi_way *left, void *ctx)
{
    if (out->result)
        ev->frame->result = out->result;
    if ((out->mask & ~bits_upto(upto)) == 0)
        return CFXI_FLOW_ON;
    const cfxi_flow near = out->mask & bits_upto(upto) ? CFXI_FLOW_ON : lowest(out->mask);
    const uint32_t far = out->mask & ~bits_upto(near > upto ? near : upto);
    if (far == 0)
        return near;
    cfx_object *in[2] = {out->code, cfxi_eval_int(ev, lowest(far))};
    cfxi_pending p = {.left_then = true};
    p.pred = in[1] ? cfxi_eval_record(ev, "operator.ge", in, 2) : NULL;
    p.left.out = (cfxi_outcome){.mask = far, .code = is_single(far) ? NULL : out->code,
                                .result = out->result};
    if (!p.pred || !(p.left.region = cfxi_eval_region_open(ev)) ||
        (left && left(ev, ctx, NULL) != CFXI_FLOW_ON) || !cfxi_eval_region_close(ev) ||
        !(p.open = cfxi_eval_region_open(ev)) || !push(ev, &p))
        return CFXI_FLOW_FAIL;
    return near;
}

/* The first branch since `base` that a way has left no further than `upto`; at most their count. */
static size_t first_upto(const cfx_evaluator *ev, size_t base, cfxi_flow upto)
{
    while (base < ev->pending.size && !(pending_at(ev, base)->left.out.mask & bits_upto(upto)))
        base++;
    return base;
}

cfxi_flow cfxi_eval_settle(cfx_evaluator *ev, size_t base, cfxi_flow flow, cfxi_flow upto)
{
    cfxi_outcome out;
    if (flow == CFXI_FLOW_FAIL)
        return flow;
    if (upto == CFXI_FLOW_RETURN && flow == CFXI_FLOW_ON) {
        ev->frame->result = ev->none;
        flow = CFXI_FLOW_RETURN;
    }
    const size_t first = first_upto(ev, base, upto);
    if (first == ev->pending.size)
        return flow <= upto ? CFXI_FLOW_ON : flow;
    return cfxi_eval_join(ev, first, flow, upto, &out) ? cfxi_eval_resume(ev, &out, upto)
                                                       : CFXI_FLOW_FAIL;
}

cfxi_flow cfxi_eval_finally(cfx_evaluator *ev, size_t base, cfxi_flow flow, cfxi_way *last,
                            void *ctx)
{
    cfxi_outcome out = {0};
    cfx_object *ignored = NULL;
    cfx_object *result = ev->frame->result;
    const bool joins = ev->pending.size > base;
    if (joins && !cfxi_eval_join(ev, base, flow, CFXI_FLOW_ON, &out))
        return CFXI_FLOW_FAIL;
    const cfxi_flow then = last(ev, ctx, &ignored);
    if (then != CFXI_FLOW_ON)
        return then;
    if (joins)
        return cfxi_eval_resume(ev, &out, CFXI_FLOW_ON);
    ev->frame->result = result;
    return flow;
}

/* ---- both ways ----------------------------------------------------------------------------- */

/* Runs a way in a region of its own, and merges what is pending in it. */
static bool run_way(cfx_evaluator *ev, cfxi_way *run, void *ctx, way *w, bool *raises)
{
    const size_t base = ev->pending.size;
    *w = (way){.region = cfxi_eval_region_open(ev)};
    if (!w->region)
        return false;
    cfxi_flow flow = run(ev, ctx, &w->value);
    if (flow == CFXI_FLOW_FAIL)
        return false;
    *raises = flow == CFXI_FLOW_RAISE && ev->pending.size == base;
    if (*raises)
        return true;  /* the region is still open: the caller knows better what to make of it */
    return cfxi_eval_join(ev, base, flow, CFXI_FLOW_ON, &w->out) && cfxi_eval_region_close(ev);
}

/* Brings the nodes of `b`, which are the last, before those of `a`. */
static bool swap_nodes(cfx_evaluator *ev, const way *a, const way *b)
{
    for (cfx_node *n = b->region->marker, *next; n; n = next) {
        next = cfx_node_next(n);
        if (cfx_node_prepend(a->region->marker, n, ev->err) != CFX_OK)
            return false;
    }
    return true;
}

/* One way never ends: its nodes are a check before those of the other, which need no region. */
static cfxi_flow check_and_go_on(cfx_evaluator *ev, cfx_object *pred, way *dead, way *alive,
                                 bool dead_is_then, cfx_object **value)
{
    cfx_node *empty = NULL;
    const cfx_insert_point was = cfx_graph_insert_point(ev->g);
    const cfx_insert_point here = {.node = alive->region->marker};
    if (cfx_graph_set_insert_point(ev->g, here, ev->err) != CFX_OK)
        return CFXI_FLOW_FAIL;
    empty = cfxi_eval_stand_in(ev, "region");
    if (!empty || cfx_graph_set_insert_point(ev->g, was, ev->err) != CFX_OK)
        return CFXI_FLOW_FAIL;
    const cfxi_span check = {.first = dead->region->marker, .last = empty};
    const cfxi_span nothing = {.first = empty, .last = alive->region->marker};
    if (!cfxi_eval_make_cond(ev, pred, dead_is_then ? &check : &nothing,
                             dead_is_then ? &nothing : &check, 0, NULL) ||
        !cfxi_eval_region_reopen(ev, alive->region) || !cfxi_eval_region_commit(ev))
        return CFXI_FLOW_FAIL;
    if (value)
        *value = alive->value;
    return cfxi_eval_resume(ev, &alive->out, CFXI_FLOW_ON);
}

/* One way leaves, the other goes on: evaluation stays in it. */
static cfxi_flow stay(cfx_evaluator *ev, cfx_object *pred, const way *left, const way *open,
                      bool left_then)
{
    const cfxi_pending p = {.pred = pred, .left_then = left_then, .left = *left,
                            .open = open->region};
    if (!cfxi_eval_region_reopen(ev, open->region) || !push(ev, &p))
        return CFXI_FLOW_FAIL;
    return CFXI_FLOW_ON;
}

static cfxi_flow finish(cfx_evaluator *ev, cfx_object *pred, way *a, way *b, uint64_t here,
                        cfx_object **value)
{
    const uint32_t on = bit(CFXI_FLOW_ON);
    cfxi_outcome out;
    if (a->out.mask == 0)
        return check_and_go_on(ev, pred, a, b, true, value);
    if (b->out.mask == 0)
        return swap_nodes(ev, a, b) ? check_and_go_on(ev, pred, b, a, false, value)
                                    : CFXI_FLOW_FAIL;
    if (b->out.mask == on && !(a->out.mask & on))
        return stay(ev, pred, a, b, true);
    if (a->out.mask == on && !(b->out.mask & on))
        return swap_nodes(ev, a, b) ? stay(ev, pred, b, a, false) : CFXI_FLOW_FAIL;
    if (!merge_ways(ev, pred, a, b, here, &out, value))
        return CFXI_FLOW_FAIL;
    return cfxi_eval_resume(ev, &out, CFXI_FLOW_ON);
}

static cfxi_flow branch(cfx_evaluator *ev, cfx_object *pred, cfxi_way *then, cfxi_way *otherwise,
                        void *ctx, uint64_t here, cfx_object **value)
{
    way a, b;
    bool raises;
    if (!run_way(ev, then, ctx, &a, &raises))
        return CFXI_FLOW_FAIL;
    if (raises && (!cfxi_eval_record_raise(ev) || !cfxi_eval_region_close(ev)))
        return CFXI_FLOW_FAIL;
    if (!run_way(ev, otherwise, ctx, &b, &raises))
        return CFXI_FLOW_FAIL;
    if (raises && a.out.mask == 0) {  /* both do: it is raised behind the check for the first */
        cfx_object *exc = ev->raised;
        ev->raised = NULL;
        b.out.mask = bit(CFXI_FLOW_ON);
        if (!cfxi_eval_region_close(ev) || finish(ev, pred, &a, &b, here, value) == CFXI_FLOW_FAIL)
            return CFXI_FLOW_FAIL;
        ev->raised = exc;
        return CFXI_FLOW_RAISE;
    }
    if (raises && (!cfxi_eval_record_raise(ev) || !cfxi_eval_region_close(ev)))
        return CFXI_FLOW_FAIL;
    return finish(ev, pred, &a, &b, here, value);
}

cfxi_flow cfxi_eval_branch(cfx_evaluator *ev, cfx_object *pred, cfxi_way *then, cfxi_way *otherwise,
                           void *ctx, cfx_object **value)
{
    return branch(ev, pred, then, otherwise, ctx, cfxi_eval_start_of(ev->frame->at), value);
}

cfxi_flow cfxi_eval_way_on(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    (void)ev;
    (void)ctx;
    (void)value;
    return CFXI_FLOW_ON;
}

cfxi_flow cfxi_eval_way_false(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    (void)ctx;
    *value = ev->false_;
    return CFXI_FLOW_ON;
}

cfxi_flow cfxi_eval_unless_left(cfx_evaluator *ev, size_t base, cfxi_flow upto, cfxi_way *run,
                                void *ctx)
{
    cfx_object *ignored = NULL;
    cfxi_outcome out;
    const size_t first = first_upto(ev, base, upto);
    if (first == ev->pending.size)
        return run(ev, ctx, &ignored);
    if (!cfxi_eval_join(ev, first, CFXI_FLOW_ON, CFXI_FLOW_ON, &out) ||
        cfxi_eval_resume(ev, &out, upto) == CFXI_FLOW_FAIL)
        return CFXI_FLOW_FAIL;
    cfx_object *in[2] = {out.code, cfxi_eval_int(ev, CFXI_FLOW_ON)};
    cfx_object *left = in[1] ? cfxi_eval_record(ev, "operator.gt", in, 2) : NULL;
    return left ? cfxi_eval_branch(ev, left, cfxi_eval_way_on, run, ctx, NULL) : CFXI_FLOW_FAIL;
}

/* ---- conditions ---------------------------------------------------------------------------- */

/* `a not in b` is `not a in b`. */
static bool is_not_in(const cfxi_ast *test)
{
    const cfxi_Compare *c = test->kind == CFXI_AST_Compare ? cfxi_syntax_as_Compare(test) : NULL;
    return c && c->ops.count == 1 && c->ops.items[0] == CFXI_AST_NotIn;
}

static cfx_object *eval_in(cfx_evaluator *ev, const cfxi_Compare *c)
{
    cfx_object *left = cfxi_eval(ev, c->left);
    cfx_object *right = left ? cfxi_eval(ev, c->comparators.items[0]) : NULL;
    if (!right)
        return NULL;
    cfxi_eval_at(ev, &c->ast);
    return cfxi_eval_compare_sign(ev, CFX_SIGN_IN, left, right);
}

/* The truth of a condition. A graph value, in *pred, is the one without `not` before it: `swap`
 * tells that the ways change places. So `if not p` is a cond of p, as it is written again. */
static cfxi_eval_truth eval_condition(cfx_evaluator *ev, const cfxi_ast *test, cfx_object **pred,
                                      bool *swap)
{
    *swap = false;
    while (test->kind == CFXI_AST_UnaryOp && cfxi_syntax_as_UnaryOp(test)->op == CFXI_AST_Not) {
        test = cfxi_syntax_as_UnaryOp(test)->operand;
        *swap = !*swap;
    }
    const bool not_in = is_not_in(test);
    *swap = *swap != not_in;
    *pred = not_in ? eval_in(ev, cfxi_syntax_as_Compare(test)) : cfxi_eval(ev, test);
    const cfxi_eval_truth truth = *pred ? cfxi_eval_truth_of(ev, pred) : CFXI_TRUTH_FAIL;
    if (!*swap || truth == CFXI_TRUTH_FAIL || truth == CFXI_TRUTH_GRAPH)
        return truth;
    return truth == CFXI_TRUE ? CFXI_FALSE : CFXI_TRUE;
}

/* ---- expressions --------------------------------------------------------------------------- */

static cfxi_flow eval_way(cfx_evaluator *ev, const cfxi_ast *expr, cfx_object **value)
{
    *value = cfxi_eval_raw(ev, expr);
    return *value ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

static cfxi_flow choose_then(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    return eval_way(ev, ((const cfxi_IfExp *)ctx)->body, value);
}

static cfxi_flow choose_otherwise(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    return eval_way(ev, ((const cfxi_IfExp *)ctx)->orelse, value);
}

cfx_object *cfxi_eval_choose(cfx_evaluator *ev, const cfxi_IfExp *e)
{
    bool swap;
    cfx_object *pred, *value = NULL;
    const cfxi_eval_truth truth = eval_condition(ev, e->test, &pred, &swap);
    if (truth == CFXI_TRUTH_FAIL)
        return NULL;
    if (truth != CFXI_TRUTH_GRAPH)
        return cfxi_eval_raw(ev, truth == CFXI_TRUE ? e->body : e->orelse);
    cfxi_eval_at(ev, &e->ast);
    const cfxi_flow flow =
        cfxi_eval_branch(ev, pred, swap ? choose_otherwise : choose_then,
                         swap ? choose_then : choose_otherwise, (void *)e, &value);
    return flow == CFXI_FLOW_ON ? value : NULL;
}

/* ---- the statement ------------------------------------------------------------------------- */

static cfxi_flow if_then(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    (void)value;
    return cfxi_eval_exec_block(ev, ((const cfxi_If *)ctx)->body);
}

static cfxi_flow if_otherwise(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    (void)value;
    return cfxi_eval_exec_block(ev, ((const cfxi_If *)ctx)->orelse);
}

/* `if a and (m := b):`, from the i-th operand on. As one condition, m would have a value only where
 * a holds; but the block is run only where it has one. So each operand is a branch of its own:
 *     if a: if (m := b): block                               of `or`: if a: block else: if b: block
 */
typedef struct operands {
    const cfxi_If *s;
    const cfxi_BoolOp *test;
    size_t i;
    bool swap;
} operands;

/* How often one statement may be evaluated because blocks of such conditions are in each of their
 * branches. */
enum { MOST_COPIES = 16 };

static cfxi_flow if_operand(cfx_evaluator *ev, const operands *o);

/* What follows where an operand is `truth`. */
static cfxi_flow behind_operand(cfx_evaluator *ev, const operands *o, bool truth)
{
    const bool decides = o->test->op == CFXI_AST_Or;
    if (truth == decides || o->i + 1 == o->test->values.count)
        return cfxi_eval_exec_block(ev, truth != o->swap ? o->s->body : o->s->orelse);
    operands rest = *o;
    rest.i++;
    return if_operand(ev, &rest);
}

static cfxi_flow operand_holds(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    (void)value;
    return behind_operand(ev, ctx, true);
}

static cfxi_flow operand_fails(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    (void)value;
    return behind_operand(ev, ctx, false);
}

static cfxi_flow if_operand(cfx_evaluator *ev, const operands *o)
{
    bool swap;
    cfx_object *pred;
    const cfxi_eval_truth truth = eval_condition(ev, o->test->values.items[o->i], &pred, &swap);
    if (truth == CFXI_TRUTH_FAIL)
        return cfxi_eval_failed_flow(ev);
    if (truth != CFXI_TRUTH_GRAPH)
        return behind_operand(ev, o, truth == CFXI_TRUE);
    return branch(ev, pred, swap ? operand_fails : operand_holds,
                  swap ? operand_holds : operand_fails, (void *)o, cfxi_eval_end_of(&o->s->ast),
                  NULL);
}

/* Whether an operand behind the first assigns something: a condition that is taken apart. */
static bool find_operands(const cfx_evaluator *ev, const cfxi_If *s, operands *o)
{
    const cfxi_ast *test = s->test;
    *o = (operands){.s = s};
    while (test->kind == CFXI_AST_UnaryOp && cfxi_syntax_as_UnaryOp(test)->op == CFXI_AST_Not) {
        test = cfxi_syntax_as_UnaryOp(test)->operand;
        o->swap = !o->swap;
    }
    if (test->kind != CFXI_AST_BoolOp)
        return false;
    o->test = cfxi_syntax_as_BoolOp(test);
    const cfx_script_def *def = ev->frame->def;
    const size_t write = cfxi_eval_first_write(def, cfxi_eval_start_of(o->test->values.items[1]));
    return write < def->n_writes && def->writes[write].place < cfxi_eval_end_of(test) &&
           o->test->values.count * ev->copies <= MOST_COPIES;
}

cfxi_flow cfxi_eval_if(cfx_evaluator *ev, const cfxi_If *s)
{
    bool swap;
    cfx_object *pred;
    operands apart;
    if (find_operands(ev, s, &apart)) {
        const uint32_t copies = ev->copies;
        ev->copies *= (uint32_t)apart.test->values.count;
        const cfxi_flow flow = if_operand(ev, &apart);
        ev->copies = copies;
        return flow;
    }
    switch (eval_condition(ev, s->test, &pred, &swap)) {
    case CFXI_TRUTH_FAIL:
        return cfxi_eval_failed_flow(ev);
    case CFXI_FALSE:
        return cfxi_eval_exec_block(ev, s->orelse);
    case CFXI_TRUE:
        return cfxi_eval_exec_block(ev, s->body);
    case CFXI_TRUTH_GRAPH:
        break;
    }
    return branch(ev, pred, swap ? if_otherwise : if_then, swap ? if_then : if_otherwise, (void *)s,
                  cfxi_eval_end_of(&s->ast), NULL);
}
