/* special_builtins.c - builtin functions that need the evaluator: see special.def. */
#include "evaluate_impl.h"

static bool has_graph_value(cfx_evaluator *ev, cfx_call_args args)
{
    for (size_t i = 0; i < args.n; i++) {
        if (cfxi_eval_node(ev, cfxi_eval_current(ev, args.args[i])))
            return true;
    }
    return false;
}

/* The argument of that number or name, or NULL. */
static cfx_object *argument(cfx_call_args args, size_t i, const char *name)
{
    const size_t first = args.n - args.n_named;
    if (i < first)
        return args.args[i];
    for (size_t k = 0; k < args.n_named; k++) {
        if (strcmp(args.names[k], name) == 0)
            return args.args[first + k];
    }
    return NULL;
}

/* ---- the place of the call ----------------------------------------------------------------- */

static const cfxi_frame *function_frame(const cfx_evaluator *ev)
{
    const cfxi_frame *f = ev->frame;
    while (f && f->def->kind == CFXI_DEF_COMPREHENSION)
        f = f->outer;
    return f;
}

static cfx_object *call_super(cfx_evaluator *ev, cfx_object *f, cfx_call_args args)
{
    const cfxi_frame *frame = function_frame(ev);
    cfx_object *class = args.n > 0 ? args.args[0] : frame ? frame->class_cell : NULL;
    cfx_object *self = args.n > 1 ? args.args[1] : NULL;
    if (args.n == 1 || args.n > 2 || args.n_named > 0)
        return cfxi_eval_world_call(ev, f, args);
    if (args.n == 0 && frame && frame->def->n_params > 0)
        self = frame->slots[0].value;
    if (!class || !self)
        return cfxi_eval_fail_as(ev, NULL, CFX_E_VALUE, "RuntimeError",
                                 "super(): no arguments; call it inside a method of a class");
    return cfxi_eval_pool(ev, ev->w->super(ev->w->ctx, class, self, ev->err));
}

static cfx_object *call_locals(cfx_evaluator *ev)
{
    const cfxi_frame *f = function_frame(ev);
    cfxi_objects items = {0};
    if (!f || f->def->kind == CFXI_DEF_MODULE)
        return ev->frame->globals;
    for (uint32_t i = 0; i < f->def->n_locals; i++) {
        if (f->slots[i].value &&
            (!cfxi_eval_push(ev, &items, cfxi_eval_str(ev, f->def->locals[i])) ||
             !cfxi_eval_push(ev, &items, f->slots[i].value)))
            return NULL;
    }
    return cfxi_eval_build(ev, CFX_BUILD_DICT, items.items, items.n);
}

/* operator.setitem(o, key, v), operator.delitem(o, key): as the statement does it. */
static cfx_object *call_setitem(cfx_evaluator *ev, cfx_object *f, cfx_call_args args, size_t n)
{
    if (args.n != n || args.n_named > 0)
        return cfxi_eval_world_call(ev, f, args);
    return cfxi_eval_set_item(ev, args.args[0], args.args[1], n == 3 ? args.args[2] : NULL)
               ? ev->none : NULL;
}

/* ---- sequences ----------------------------------------------------------------------------- */

/* reversed(o) of what has its own way: a dict, a set of keys, an object with __reversed__. */
static bool is_reversed_by_world(cfx_evaluator *ev, cfx_object *o)
{
    switch (ev->w->kind(ev->w->ctx, o)) {
    case CFX_OBJECT_LIST:
    case CFX_OBJECT_TUPLE:
    case CFX_OBJECT_NAMED_TUPLE:
    case CFX_OBJECT_STR:
        return false;
    default:
        return true;
    }
}

static cfx_object *call_lazy(cfx_evaluator *ev, cfx_script_special which, cfx_object *f,
                             cfx_call_args args)
{
    if (has_graph_value(ev, args))
        return cfxi_eval_lazy_sequence(ev, which, args);
    if (which == CFX_SPECIAL_RANGE)
        return cfxi_eval_world_call(ev, f, args);
    if (which == CFX_SPECIAL_REVERSED && (args.n != 1 || is_reversed_by_world(ev, args.args[0])))
        return cfxi_eval_kept_iterator(ev, cfxi_eval_world_call(ev, f, args));
    return cfxi_eval_call_evaluated(ev, which, args);
}

static cfx_object *call_iter(cfx_evaluator *ev, cfx_object *f, cfx_call_args args)
{
    if (args.n_named > 0 || args.n < 1 || args.n > 2)
        return cfxi_eval_world_call(ev, f, args);
    return args.n == 2 ? cfxi_eval_call_prelude(ev, "until", args)
                       : cfxi_eval_iter(ev, args.args[0]);
}

/* any() and all() from the i-th item on: the first item whose truth is `decides` ends it. */
typedef struct question {
    cfx_object **items;
    size_t n, i;
    bool decides;
} question;

static cfx_object *ask(cfx_evaluator *ev, question q);

static cfxi_flow way_decided(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    *value = cfxi_eval_bool(ev, ((const question *)ctx)->decides);
    return CFXI_FLOW_ON;
}

static cfxi_flow way_asked(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    *value = ask(ev, *(const question *)ctx);
    return *value ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

static cfx_object *ask(cfx_evaluator *ev, question q)
{
    cfx_object *value = NULL;
    for (; q.i < q.n; q.i++) {
        cfx_object *item = q.items[q.i];
        const cfxi_eval_truth truth = cfxi_eval_truth_of(ev, &item);
        if (truth == CFXI_TRUTH_FAIL)
            return NULL;
        if (truth == CFXI_TRUTH_GRAPH) {
            q.i++;
            const cfxi_flow flow =
                cfxi_eval_branch(ev, item, q.decides ? way_decided : way_asked,
                                 q.decides ? way_asked : way_decided, &q, &value);
            return flow == CFXI_FLOW_ON ? value : NULL;
        }
        if ((truth == CFXI_TRUE) == q.decides)
            return cfxi_eval_bool(ev, q.decides);
    }
    return cfxi_eval_bool(ev, !q.decides);
}

static cfx_object *call_any(cfx_evaluator *ev, cfx_object *f, cfx_call_args args, bool decides)
{
    question q = {.decides = decides};
    if (args.n != 1 || args.n_named > 0)
        return cfxi_eval_world_call(ev, f, args);
    cfx_object *o = cfxi_eval_drained(ev, args.args[0]);
    if (!o)
        return NULL;
    if (cfxi_eval_node(ev, o))
        return cfxi_eval_record(ev, decides ? "builtins.any" : "builtins.all", &o, 1);
    if (ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_INSTANCE)  /* an iterator, perhaps */
        return cfxi_eval_call_prelude(ev, decides ? "any" : "all", cfxi_eval_args(&o, 1));
    return cfxi_eval_items(ev, o, &q.items, &q.n) ? ask(ev, q) : NULL;
}

static cfx_object *call_next(cfx_evaluator *ev, cfx_object *f, cfx_call_args args)
{
    bool missing = true;
    cfx_object *o = args.n > 0 ? cfxi_eval_keep_generator(ev, args.args[0]) : NULL;
    if (args.n > 0 && !o)
        return NULL;
    if (o && args.n < 3 && args.n_named == 0 && !cfxi_eval_node(ev, cfxi_eval_current(ev, o)) &&
        ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_INSTANCE &&
        !cfxi_eval_try_get(ev, o, "__next__", &missing) && !missing)
        return NULL;
    return missing ? cfxi_eval_world_call(ev, f, args)
                   : cfxi_eval_next(ev, o, args.n == 2 ? args.args[1] : NULL);
}

static cfx_object *call_list(cfx_evaluator *ev, cfx_script_special which, cfx_object *f,
                             cfx_call_args args)
{
    const bool is_list = which == CFX_SPECIAL_LIST;
    cfx_object **items;
    size_t n;
    if (args.n != 1 || args.n_named > 0)
        return cfxi_eval_world_call(ev, f, args);
    cfx_object *o = cfxi_eval_drained(ev, args.args[0]);
    if (!o)
        return NULL;
    if (cfxi_eval_node(ev, o))
        return cfxi_eval_record(ev, is_list ? "builtins.list" : "builtins.tuple", &o, 1);
    if (!cfxi_eval_items(ev, o, &items, &n))
        return NULL;
    return is_list ? cfxi_eval_new_list(ev, items, n) : cfxi_eval_tuple(ev, items, n);
}

/* Whether it is a graph value, or a tuple or list with one in it. */
static bool has_value_in(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object **items;
    size_t n;
    o = cfxi_eval_current(ev, o);
    if (cfxi_eval_node(ev, o))
        return true;
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, o);
    if ((kind != CFX_OBJECT_TUPLE && kind != CFX_OBJECT_NAMED_TUPLE && kind != CFX_OBJECT_LIST) ||
        !cfxi_eval_contents(ev, o, &items, &n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (has_value_in(ev, items[i]))
            return true;
    return false;
}

/* ---- sorted -------------------------------------------------------------------------------- */

/* Pairs of a key and a number that tells equal keys apart, in the order that keeps them. *later: a
 * key is a graph value. */
static cfx_object *key_pairs(cfx_evaluator *ev, cfx_object *key, cfx_object **items, size_t n,
                             bool reverse, bool *later)
{
    cfxi_objects pairs = {0};
    for (size_t i = 0; i < n; i++) {
        cfx_object *pair[2];
        pair[0] = cfxi_eval_call(ev, key, cfxi_eval_args(&items[i], 1));
        if (!pair[0])
            return NULL;
        *later = *later || has_value_in(ev, pair[0]);
        pair[1] = cfxi_eval_int(ev, reverse ? -(int64_t)i : (int64_t)i);
        if (!pair[1] || !cfxi_eval_push(ev, &pairs, cfxi_eval_tuple(ev, pair, 2)))
            return NULL;
    }
    return cfxi_eval_new_list(ev, pairs.items, pairs.n);
}

/* Sorted by pairs when the program runs. */
static cfx_object *take_by_pairs(cfx_evaluator *ev, cfx_object *pairs, cfx_object **items, size_t n,
                                 bool reverse)
{
    cfx_object *list = cfxi_eval_new_list(ev, items, n);
    cfx_object *args[] = {list, pairs, cfxi_eval_bool(ev, reverse)};
    return list ? cfxi_eval_call_prelude(ev, "sorted_pairs", cfxi_eval_args(args, 3)) : NULL;
}

static cfx_object *sort_by_key(cfx_evaluator *ev, cfx_object *f, cfx_object *key,
                               cfx_object **items, size_t n, cfx_object *reverse)
{
    static const char *const names[] = {"reverse"};
    cfx_object *given[2] = {NULL, reverse ? reverse : ev->false_};
    const int backwards = ev->w->truth(ev->w->ctx, given[1], ev->err);
    bool later = false;
    cfxi_objects made = {0};
    cfx_object **order;
    size_t count;
    given[0] = backwards < 0 ? NULL : key_pairs(ev, key, items, n, backwards, &later);
    if (!given[0])
        return NULL;
    if (later)
        return take_by_pairs(ev, given[0], items, n, backwards);
    cfx_object *sorted = cfxi_eval_world_call(ev, f, (cfx_call_args){given, 2, names, 1});
    if (!sorted || !cfxi_eval_items(ev, sorted, &order, &count))
        return NULL;
    for (size_t i = 0; i < count; i++) {
        cfx_object **pair;
        size_t two;
        int64_t at = 0;
        if (!cfxi_eval_contents(ev, order[i], &pair, &two) || two != 2 ||
            !ev->w->integer(ev->w->ctx, pair[1], &at))
            return NULL;
        if (!cfxi_eval_push(ev, &made, items[at < 0 ? -at : at]))
            return NULL;
    }
    return cfxi_eval_new_list(ev, made.items, made.n);
}

/* l[::-1] */
static cfx_object *turned_round(cfx_evaluator *ev, cfx_object *list)
{
    cfx_object *bounds[] = {ev->none, ev->none, cfxi_eval_int(ev, -1)};
    cfx_object *slice = bounds[2] ? cfxi_eval_build(ev, CFX_BUILD_SLICE, bounds, 3) : NULL;
    return slice ? cfxi_eval_item(ev, list, slice) : NULL;
}

/* Sorted when the program runs. With `reverse` equal items keep their order, as they do if the list
 * is turned round before and after. */
static cfx_object *sort_later(cfx_evaluator *ev, cfx_object *list, cfx_object *reverse)
{
    const int backwards = reverse ? ev->w->truth(ev->w->ctx, reverse, ev->err) : 0;
    if (backwards > 0)
        list = turned_round(ev, list);
    cfx_object *sorted = backwards < 0 || !list ? NULL
                                                : cfxi_eval_record(ev, "builtins.sorted", &list, 1);
    return sorted && backwards ? turned_round(ev, sorted) : sorted;
}

static cfx_object *call_sorted(cfx_evaluator *ev, cfx_object *f, cfx_call_args args)
{
    cfx_object *key = argument(args, args.n, "key");
    cfx_object **items;
    size_t n;
    if (args.n == args.n_named)
        return cfxi_eval_world_call(ev, f, args);
    cfx_object *o = cfxi_eval_drained(ev, args.args[0]);
    if (!o)
        return NULL;
    cfx_object *reverse = argument(args, args.n, "reverse");
    if (cfxi_eval_node(ev, o) && (!key || key == ev->none) &&
        !(reverse && cfxi_eval_node(ev, reverse))) {
        if (reverse && cfxi_eval_kind(ev, o) != CFX_OBJECT_LIST) /* it may be a tensor, or a dict */
            o = cfxi_eval_record(ev, "builtins.list", &o, 1);
        return o ? sort_later(ev, o, reverse) : NULL;
    }
    if (cfxi_eval_node(ev, o) && key && !(reverse && cfxi_eval_node(ev, reverse))) {
        cfx_object *given[] = {o, key, reverse ? reverse : ev->false_};
        if (cfxi_eval_kind(ev, o) != CFX_OBJECT_LIST)
            given[0] = cfxi_eval_record(ev, "builtins.list", &o, 1);
        return given[0] ? cfxi_eval_call_prelude(ev, "sorted_by", cfxi_eval_args(given, 3)) : NULL;
    }
    if (!cfxi_eval_items(ev, o, &items, &n))
        return NULL;
    if (key && key != ev->none)
        return sort_by_key(ev, f, key, items, n, reverse);
    if (!(o = cfxi_eval_new_list(ev, items, n)))
        return NULL;
    if (has_value_in(ev, o))
        return sort_later(ev, o, reverse);
    cfx_object **given = cfxi_eval_ev_alloc(ev, args.n * sizeof *given);
    if (!given)
        return NULL;
    memcpy(given, args.args, args.n * sizeof *given);
    given[0] = o;  /* an iterator has none left */
    args.args = given;
    return cfxi_eval_world_call(ev, f, args);
}

/* max(items, key=f) and min: the keys may be graph values, so a loop looks for it. */
static cfx_object *call_extreme(cfx_evaluator *ev, cfx_object *f, cfx_call_args args, bool larger)
{
    cfx_object *key = argument(args, args.n, "key");
    cfx_object **items;
    size_t n;
    if (args.n != 2 || args.n_named != 1 || !key || key == ev->none)
        return cfxi_eval_world_call(ev, f, args);
    cfx_object *given[] = {cfxi_eval_drained(ev, args.args[0]), key};
    if (!given[0])
        return NULL;
    if (!cfxi_eval_node(ev, given[0]))
        given[0] = cfxi_eval_items(ev, given[0], &items, &n) ? cfxi_eval_new_list(ev, items, n)
                                                             : NULL;
    else if (cfxi_eval_kind(ev, given[0]) != CFX_OBJECT_LIST)
        given[0] = cfxi_eval_record(ev, "builtins.list", &given[0], 1);
    return given[0] ? cfxi_eval_call_prelude(ev, larger ? "max_by" : "min_by",
                                             cfxi_eval_args(given, 2)) : NULL;
}

/* ---- torch.cond and torch.while_loop ------------------------------------------------------- */

typedef struct choice {
    cfx_object *then;
    cfx_object *otherwise;
    cfx_call_args operands;
} choice;

static cfxi_flow call_way(cfx_evaluator *ev, cfx_object *f, const choice *c, cfx_object **value)
{
    *value = cfxi_eval_call(ev, f, c->operands);
    return *value ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

static cfxi_flow way_then(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    return call_way(ev, ((const choice *)ctx)->then, ctx, value);
}

static cfxi_flow way_otherwise(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    return call_way(ev, ((const choice *)ctx)->otherwise, ctx, value);
}

static cfx_object *call_cond(cfx_evaluator *ev, cfx_call_args args)
{
    cfx_object *pred = argument(args, 0, "pred");
    cfx_object *operands = argument(args, 3, "operands");
    choice c = {argument(args, 1, "true_fn"), argument(args, 2, "false_fn"), {0}};
    cfx_object **items = NULL;
    cfx_object *value = NULL;
    if (!pred || !c.then || !c.otherwise)
        return cfxi_eval_fail_as(ev, NULL, CFX_E_TYPE, "TypeError",
                                 "torch.cond() takes a predicate and "
                                 "two functions: torch.cond(pred, true_fn, false_fn, operands)");
    if (operands && !cfxi_eval_items(ev, operands, &items, &c.operands.n))
        return NULL;
    c.operands.args = items;
    switch (cfxi_eval_truth_of(ev, &pred)) {
    case CFXI_TRUTH_FAIL:
        return NULL;
    case CFXI_TRUE:
        return cfxi_eval_call(ev, c.then, c.operands);
    case CFXI_FALSE:
        return cfxi_eval_call(ev, c.otherwise, c.operands);
    case CFXI_TRUTH_GRAPH:
        break;
    }
    const cfxi_flow flow = cfxi_eval_branch(ev, pred, way_then, way_otherwise, &c, &value);
    return flow == CFXI_FLOW_ON ? value : NULL;
}

static cfx_object *call_while(cfx_evaluator *ev, cfx_call_args args)
{
    cfx_object *test = argument(args, 0, "cond_fn");
    cfx_object *body = argument(args, 1, "body_fn");
    cfx_object *carried = argument(args, 2, "carried_inputs");
    if (!test || !body || !carried || args.n != 3)
        return cfxi_eval_fail_as(ev, NULL, CFX_E_TYPE, "TypeError", "torch.while_loop() takes two "
                                 "functions and a tuple here: torch.while_loop(cond_fn, body_fn, "
                                 "carried_inputs)");
    return cfxi_eval_while_call(ev, test, body, carried);
}

/* ---- all ----------------------------------------------------------------------------------- */

cfx_object *cfxi_eval_call_special(cfx_evaluator *ev, cfx_script_special which, cfx_object *f,
                                   cfx_call_args args)
{
    switch (which) {
    case CFX_SPECIAL_SUPER:
        return call_super(ev, f, args);
    case CFX_SPECIAL_GLOBALS:
        return ev->frame && args.n == 0 ? ev->frame->globals : cfxi_eval_world_call(ev, f, args);
    case CFX_SPECIAL_LOCALS:
        return ev->frame && args.n == 0 ? call_locals(ev) : cfxi_eval_world_call(ev, f, args);
    case CFX_SPECIAL_ISINSTANCE:
        return cfxi_eval_call_isinstance(ev, f, args);
    case CFX_SPECIAL_CALLABLE:
        return cfxi_eval_call_callable(ev, f, args);
    case CFX_SPECIAL_TYPE:
        return cfxi_eval_call_type(ev, f, args);
    case CFX_SPECIAL_GETATTR:
        return cfxi_eval_call_getattr(ev, f, args);
    case CFX_SPECIAL_HASATTR:
        return cfxi_eval_call_hasattr(ev, f, args);
    case CFX_SPECIAL_SETATTR:
        return cfxi_eval_call_setattr(ev, f, args, 3);
    case CFX_SPECIAL_DELATTR:
        return cfxi_eval_call_setattr(ev, f, args, 2);
    case CFX_SPECIAL_SETITEM:
        return call_setitem(ev, f, args, 3);
    case CFX_SPECIAL_DELITEM:
        return call_setitem(ev, f, args, 2);
    case CFX_SPECIAL_RANGE:
    case CFX_SPECIAL_ENUMERATE:
    case CFX_SPECIAL_ZIP:
    case CFX_SPECIAL_REVERSED:
        return call_lazy(ev, which, f, args);
    case CFX_SPECIAL_ITER:
        return call_iter(ev, f, args);
    case CFX_SPECIAL_NEXT:
        return call_next(ev, f, args);
    case CFX_SPECIAL_ANY:
    case CFX_SPECIAL_ALL:
        return call_any(ev, f, args, which == CFX_SPECIAL_ANY);
    case CFX_SPECIAL_LIST:
    case CFX_SPECIAL_TUPLE:
        return call_list(ev, which, f, args);
    case CFX_SPECIAL_DICT:
        return cfxi_eval_call_dict(ev, f, args);
    case CFX_SPECIAL_SORTED:
        return call_sorted(ev, f, args);
    case CFX_SPECIAL_MAX:
    case CFX_SPECIAL_MIN:
        return call_extreme(ev, f, args, which == CFX_SPECIAL_MAX);
    case CFX_SPECIAL_COND:
        return call_cond(ev, args);
    case CFX_SPECIAL_WHILE_LOOP:
        return call_while(ev, args);
    case CFX_SPECIALS:
        break;
    default:  /* written in Python */
        return cfxi_eval_call_evaluated(ev, which, args);
    }
    return cfxi_eval_world_call(ev, f, args);
}
