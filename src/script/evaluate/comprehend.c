/* comprehend.c - comprehensions.
 *
 * A comprehension has a frame of its own, in which all is evaluated but the first iterable. What it
 * makes is a list, set or dict that grows round by round, as a loop of the program would let it:
 * a comprehension over a graph value so becomes a captured loop like any other. A generator that
 * is consumed at once is a list; but if it stands in any(), all() or next(), then it is a call that
 * returns where that knows enough. One that is kept is an object of the prelude, which computes
 * its items one by one, or iterates over such a list if their number may depend on data.
 */
#include "graph_control_impl.h"

typedef struct comprehension {
    const cfxi_ast *ast;
    cfxi_ast_list generators;
    const cfxi_ast *key;       /* of a dict */
    const cfxi_ast *value;
    cfx_object *made;          /* the list, set or dict; NULL: it is asked */
    cfxi_ask ask;
    cfxi_frame *frame;
} comprehension;

/* What is to be done with an item of the i-th generator. */
typedef struct level {
    const comprehension *c;
    size_t i;
    size_t k;                  /* conditions that have let it pass */
} level;

static cfxi_flow run_level(cfx_evaluator *ev, const comprehension *c, size_t i);

/* Returns from the call that a generator is. */
static cfxi_flow give(cfx_evaluator *ev, cfx_object *result)
{
    ev->frame->result = result;
    return CFXI_FLOW_RETURN;
}

static cfxi_flow decided(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    (void)value;
    return give(ev, cfxi_eval_bool(ev, ((const comprehension *)ctx)->ask == CFXI_ASK_ANY));
}

/* Whether this item ends the question. */
static cfxi_flow ask_item(cfx_evaluator *ev, const comprehension *c)
{
    const bool any = c->ask == CFXI_ASK_ANY;
    cfx_object *v = cfxi_eval_raw(ev, c->value);
    if (!v)
        return cfxi_eval_failed_flow(ev);
    if (c->ask == CFXI_ASK_FIRST)
        return give(ev, v);
    const cfxi_eval_truth truth = cfxi_eval_truth_of(ev, &v);
    if (truth == CFXI_TRUTH_FAIL)
        return cfxi_eval_failed_flow(ev);
    if (truth == CFXI_TRUTH_GRAPH)
        return cfxi_eval_branch(ev, v, any ? decided : cfxi_eval_way_on,
                                any ? cfxi_eval_way_on : decided, (void *)c, NULL);
    return (truth == CFXI_TRUE) == any ? decided(ev, (void *)c, NULL) : CFXI_FLOW_ON;
}

static bool add(cfx_evaluator *ev, const comprehension *c)
{
    cfx_object *key = c->key ? cfxi_eval(ev, c->key) : NULL;
    if (c->key && !key)
        return false;
    cfx_object *v = cfxi_eval_raw(ev, c->value);
    if (!v)
        return false;
    if (key)
        return cfxi_eval_set_item(ev, c->made, key, v);
    const char *method = c->ast->kind == CFXI_AST_SetComp ? "add" : "append";
    return cfxi_eval_call_method(ev, c->made, method, cfxi_eval_args(&v, 1)) != NULL;
}

static cfxi_flow filter(cfx_evaluator *ev, const level *at);

static cfxi_flow filter_rest(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    (void)value;
    return filter(ev, ctx);
}

/* An item that conditions from the k-th on have to let pass. Where data decides, the list grows on
 * one way of a branch. */
static cfxi_flow filter(cfx_evaluator *ev, const level *at)
{
    const comprehension *c = at->c;
    const cfxi_comprehension *g = cfxi_syntax_as_comprehension(c->generators.items[at->i]);
    level rest = *at;
    while (rest.k < g->ifs.count) {
        cfx_object *test = cfxi_eval(ev, g->ifs.items[rest.k++]);
        if (!test)
            return cfxi_eval_failed_flow(ev);
        switch (cfxi_eval_truth_of(ev, &test)) {
        case CFXI_TRUTH_FAIL:
            return cfxi_eval_failed_flow(ev);
        case CFXI_FALSE:
            return CFXI_FLOW_ON;
        case CFXI_TRUTH_GRAPH:
            return cfxi_eval_branch(ev, test, filter_rest, cfxi_eval_way_on, &rest, NULL);
        case CFXI_TRUE:
            break;
        }
    }
    if (at->i + 1 < c->generators.count)
        return run_level(ev, c, at->i + 1);
    if (!c->made)
        return ask_item(ev, c);
    return add(ev, c) ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

static cfxi_flow round_in_frame(cfx_evaluator *ev, const level *at, cfx_object *item)
{
    const cfxi_comprehension *g = cfxi_syntax_as_comprehension(at->c->generators.items[at->i]);
    return cfxi_eval_assign(ev, g->target, item) ? filter(ev, at) : cfxi_eval_failed_flow(ev);
}

static cfxi_flow run_round(cfx_evaluator *ev, void *ctx, cfx_object *item)
{
    const level *at = ctx;
    cfxi_frame *outside = ev->frame;
    ev->frame = at->c->frame;
    const cfxi_flow flow = round_in_frame(ev, at, item);
    if (flow == CFXI_FLOW_FAIL || flow == CFXI_FLOW_RAISE)
        cfxi_eval_note_failure(ev);
    ev->frame = outside;
    return flow;
}

static cfxi_flow run_level(cfx_evaluator *ev, const comprehension *c, size_t i)
{
    level at = {.c = c, .i = i};
    return cfxi_eval_each(ev, cfxi_syntax_as_comprehension(c->generators.items[i])->iter, run_round,
                          &at);
}

static void take_apart(const cfxi_ast *ast, comprehension *c)
{
    c->ast = ast;
    switch ((unsigned)ast->kind) {
    case CFXI_AST_DictComp:
        c->key = cfxi_syntax_as_DictComp(ast)->key;
        c->value = cfxi_syntax_as_DictComp(ast)->value;
        c->generators = cfxi_syntax_as_DictComp(ast)->generators;
        return;
    case CFXI_AST_SetComp:
        c->value = cfxi_syntax_as_SetComp(ast)->elt;
        c->generators = cfxi_syntax_as_SetComp(ast)->generators;
        return;
    case CFXI_AST_GeneratorExp:
        c->value = cfxi_syntax_as_GeneratorExp(ast)->elt;
        c->generators = cfxi_syntax_as_GeneratorExp(ast)->generators;
        return;
    }
    c->value = cfxi_syntax_as_ListComp(ast)->elt;
    c->generators = cfxi_syntax_as_ListComp(ast)->generators;
}

/* An asynchronous one is refused. */
static bool is_plain(cfx_evaluator *ev, const cfx_script_def *def)
{
    return !def->yields || cfxi_eval_fail(ev, def->yields, CFX_E_UNSUPPORTED, "an asynchronous "
                                          "comprehension cannot be captured; write a plain one");
}

static bool begin(cfx_evaluator *ev, const cfxi_ast *ast, comprehension *c)
{
    const cfx_script_def *def = cfxi_eval_def_of(ev->frame->def->script, ast);
    const cfx_script_build what = ast->kind == CFXI_AST_DictComp  ? CFX_BUILD_DICT
                           : ast->kind == CFXI_AST_SetComp ? CFX_BUILD_SET
                                                           : CFX_BUILD_LIST;
    if (!is_plain(ev, def))
        return false;
    *c = (comprehension){.frame = cfxi_eval_frame_new(ev, def, ev->frame, ev->frame->globals)};
    take_apart(ast, c);
    c->made = cfxi_eval_build(ev, what, NULL, 0);
    return c->frame && c->made;
}

/* Notes that a list stands for a generator. */
static bool note_generator(cfx_evaluator *ev, cfx_object *o, cfx_object *list)
{
    if (cfxi_base_pointers_set(&ev->lazy, o, list, ev->allocator))
        return true;
    cfxi_base_nomem(ev->err);
    return false;
}

cfx_object *cfxi_eval_comprehend(cfx_evaluator *ev, const cfxi_ast *ast)
{
    comprehension c;
    if (!begin(ev, ast, &c) || run_level(ev, &c, 0) != CFXI_FLOW_ON)
        return NULL;
    return ast->kind != CFXI_AST_GeneratorExp || note_generator(ev, c.made, c.made) ? c.made : NULL;
}

/* ---- generators that are kept -------------------------------------------------------------- */

cfx_object *cfxi_eval_keep_generator(cfx_evaluator *ev, cfx_object *o)
{
    if (ev->lazy.n == 0 || cfxi_base_pointers_get(&ev->lazy, o) != o)
        return o;
    cfx_object *kept = note_generator(ev, o, NULL)  /* a list from now on */
                           ? cfxi_eval_call_prelude(ev, "iterator", cfxi_eval_args(&o, 1)) : NULL;
    return kept && note_generator(ev, kept, o) ? kept : NULL;
}

cfx_object *cfxi_eval_drained(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object *list = ev->lazy.n ? cfxi_base_pointers_get(&ev->lazy, o) : NULL;
    cfx_object *now = list && list != o ? cfxi_eval_current(ev, list) : NULL;
    int64_t at = 0;
    if (!now || !cfxi_eval_node(ev, now))
        return cfxi_eval_shown(ev, o);
    cfx_object *position = cfxi_eval_get(ev, o, "at");
    cfx_object *items = position ? cfxi_eval_get(ev, o, "items") : NULL;
    if (!items || items == ev->none || cfxi_eval_node(ev, position) ||
        !ev->w->integer(ev->w->ctx, position, &at) || at != 0)
        return items ? o : NULL;
    /* whoever asks for more, after a loop that ended early, is told so */
    return cfxi_eval_set(ev, o, "items", ev->none) ? now : NULL;
}

/* What its computation changes, it would change later, or never. */
static bool has_effects(const cfxi_region *r, const comprehension *c)
{
    for (size_t i = 0; i < r->n; i++) {
        const cfxi_place *p = &r->changes[i].place;
        if (p->kind == CFXI_PLACE_LOCAL ? p->frame != c->frame : p->object != c->made)
            return true;
    }
    return false;
}

/* All of its items, at once. */
static cfx_object *collect(cfx_evaluator *ev, const cfxi_ast *ast, const cfxi_sequence *first)
{
    comprehension c;
    const cfxi_region *r = cfxi_eval_region_open(ev);
    if (!r || !begin(ev, ast, &c))
        return NULL;
    level at = {.c = &c};
    if (cfxi_eval_go_over(ev, cfxi_syntax_as_comprehension(c.generators.items[0])->iter, first,
                          run_round, &at) != CFXI_FLOW_ON)
        return NULL;
    if (has_effects(r, &c))
        return cfxi_eval_fail(ev, ast, CFX_E_UNSUPPORTED,
                              "this generator changes something each time it computes an item, and "
                              "it is evaluated at once here; write a list comprehension, or a for "
                              "loop where the items are used");
    return cfxi_eval_region_commit(ev) && note_generator(ev, c.made, c.made) ? c.made : NULL;
}

/* One that computes an item when it is asked for it. */
static cfx_object *compute_later(cfx_evaluator *ev, const cfxi_ast *ast, const cfxi_sequence *first)
{
    cfx_object *in[2] = {first->object, NULL};
    if (first->function && first->kind == CFXI_SEQUENCE_ITEMS) {  /* zip(...) and its like */
        cfx_object **args = cfxi_eval_ev_alloc(ev, (first->n + 1) * sizeof *args);
        for (size_t i = 0; args && i < first->n; i++)
            args[i] = first->parts[i].object;
        in[0] = args ? cfxi_eval_call(ev, first->function,
                                      (cfx_call_args){.args = args, .n = first->n}) : NULL;
    }
    in[1] = in[0] ? cfxi_eval_function(ev, ast) : NULL;
    return in[1] ? cfxi_eval_call_prelude(ev, "generator", cfxi_eval_args(in, 2)) : NULL;
}

cfx_object *cfxi_eval_generator(cfx_evaluator *ev, const cfxi_ast *ast)
{
    const cfx_script_def *def = cfxi_eval_def_of(ev->frame->def->script, ast);
    const cfxi_ast_list levels = cfxi_syntax_as_GeneratorExp(ast)->generators;
    const cfxi_comprehension *g = cfxi_syntax_as_comprehension(levels.items[0]);
    cfxi_sequence *first = cfxi_eval_ev_alloc(ev, sizeof *first);
    if (!is_plain(ev, def) || !first || !cfxi_eval_sequence_of(ev, g->iter, first))
        return NULL;
    if (!first->graph && levels.count == 1 && g->ifs.count == 0)
        return compute_later(ev, ast, first);
    cfx_object *list = collect(ev, ast, first);
    return list ? cfxi_eval_keep_generator(ev, list) : NULL;
}

cfx_object *cfxi_eval_generator_step(cfx_evaluator *ev, const cfx_script_function *f,
                                     cfx_call_args args)
{
    const cfxi_GeneratorExp *e = cfxi_syntax_as_GeneratorExp(f->def->ast);
    const cfxi_comprehension *g = cfxi_syntax_as_comprehension(e->generators.items[0]);
    cfxi_frame *frame = cfxi_eval_frame_push(ev, f->def, f->outer, f->globals);
    if (!frame)
        return NULL;
    cfxi_eval_at(ev, e->elt);
    if (cfxi_eval_assign(ev, g->target, args.args[0]))
        frame->result = cfxi_eval_raw(ev, e->elt);
    cfxi_flow flow = frame->result ? CFXI_FLOW_RETURN : cfxi_eval_failed_flow(ev);
    if (flow != CFXI_FLOW_FAIL)
        flow = cfxi_eval_settle(ev, frame->pendings, flow, CFXI_FLOW_RETURN);
    cfxi_eval_frame_pop(ev);
    return flow == CFXI_FLOW_ON ? frame->result : NULL;
}

/* ---- generators that are asked ------------------------------------------------------------- */

/* The rounds of a generator that is asked, and what it gives in the end. */
static cfx_object *run_asked(cfx_evaluator *ev, comprehension *c, const cfxi_sequence *first,
                             cfx_object *otherwise)
{
    cfxi_frame *f = c->frame;
    level at = {.c = c};
    cfxi_flow flow = cfxi_eval_go_over(
        ev, cfxi_syntax_as_comprehension(c->generators.items[0])->iter, first, run_round, &at);
    if (flow == CFXI_FLOW_ON)
        flow = give(ev, otherwise);
    if (flow != CFXI_FLOW_FAIL)
        flow = cfxi_eval_settle(ev, f->pendings, flow, CFXI_FLOW_RETURN);
    return flow == CFXI_FLOW_ON ? f->result : NULL;
}

cfx_object *cfxi_eval_ask_generator(cfx_evaluator *ev, const cfxi_ast *ast, cfxi_ask what,
                                    cfx_object *otherwise)
{
    const cfx_script_def *def = cfxi_eval_def_of(ev->frame->def->script, ast);
    cfxi_frame *outside = ev->frame;
    const uint64_t loop = outside->loop;
    cfxi_sequence *first = cfxi_eval_ev_alloc(ev, sizeof *first);
    comprehension c = {.ask = what};
    take_apart(ast, &c);
    if (!is_plain(ev, def) || !first ||
        !cfxi_eval_sequence_of(ev, cfxi_syntax_as_comprehension(c.generators.items[0])->iter,
                               first))
        return NULL;
    if (!loop)  /* what it assigns outside may be read again in its next round */
        outside->loop = cfxi_eval_start_of(ast);
    c.frame = cfxi_eval_frame_push(ev, def, outside, outside->globals);
    cfx_object *result = c.frame ? run_asked(ev, &c, first, otherwise) : NULL;
    if (c.frame)
        cfxi_eval_frame_pop(ev);
    outside->loop = loop;
    return result;
}
