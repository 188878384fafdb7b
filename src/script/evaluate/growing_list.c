/* growing_list.c - lists that have become graph values; growing_dict.c has what is of dicts alone.
 *
 * A list whose length depends on data (it was appended to in a loop, or in one branch only) cannot
 * be known any more. The object stays what it is, so that all who have it still mean the same list,
 * and ev->growing says which graph value it is now; methods that change it make a new one:
 *     out.append(y)                      out = out + [y]
 */
#include "graph_control_impl.h"

cfx_object *cfxi_eval_current(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object *now = ev->growing.n ? cfxi_base_pointers_get(&ev->growing, o) : NULL;
    return now ? now : o;
}

cfx_object *cfxi_eval_current_deep(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object *now = cfxi_eval_shown(ev, o);
    cfx_object **items;
    size_t n;
    if (ev->growing.n == 0 || now != o || cfxi_eval_node(ev, o))
        return now;
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, o);
    if (kind != CFX_OBJECT_TUPLE && kind != CFX_OBJECT_LIST && kind != CFX_OBJECT_DICT &&
        kind != CFX_OBJECT_NAMED_TUPLE)
        return o;
    if (!cfxi_eval_contents(ev, o, &items, &n))
        return NULL;
    cfx_object **all = cfxi_eval_ev_alloc(ev, (n + 1) * sizeof *all);
    if (!all)
        return NULL;
    bool same = true;
    all[0] = o;
    for (size_t i = 0; i < n; i++) {
        all[i + 1] = cfxi_eval_current_deep(ev, items[i]);
        if (!all[i + 1])
            return NULL;
        same = same && all[i + 1] == items[i];
    }
    return same ? o : cfxi_eval_build(ev, CFX_BUILD_LIKE, all, n + 1);
}

/* ---- parts of a list that is a graph value ------------------------------------------------- */

static cfx_object *part(cfx_evaluator *ev, cfx_object *list, cfx_object *from, cfx_object *to)
{
    cfx_object *in[3] = {from ? from : ev->none, to ? to : ev->none, ev->none};
    cfx_object *slice = cfxi_eval_build(ev, CFX_BUILD_SLICE, in, 3);
    return slice ? cfxi_eval_item(ev, list, slice) : NULL;
}

static cfx_object *joined(cfx_evaluator *ev, cfx_object *a, cfx_object *b)
{
    return a && b ? cfxi_eval_binary(ev, CFX_SIGN_ADD, a, b) : NULL;
}

bool cfxi_eval_can_grow(cfx_evaluator *ev, cfx_object *o)
{
    const cfx_object_kind kind =
        cfxi_eval_node(ev, o) ? CFX_OBJECT_OTHER : ev->w->kind(ev->w->ctx, o);
    return kind == CFX_OBJECT_LIST || (kind == CFX_OBJECT_DICT && cfxi_eval_is_plain_dict(ev, o));
}

bool cfxi_eval_grow_from(cfx_evaluator *ev, cfx_object *o, cfx_object *now)
{
    if (!cfxi_eval_note_kind(ev, cfxi_eval_node(ev, now), ev->w->kind(ev->w->ctx, o)))
        return false;
    if (cfxi_base_pointers_set(&ev->growing, o, now, ev->allocator))
        return true;
    cfxi_base_nomem(ev->err);
    return false;
}

bool cfxi_eval_become(cfx_evaluator *ev, cfx_object *o, cfx_object *now)
{
    return now && cfxi_eval_journal_contents(ev, o) && cfxi_eval_grow_from(ev, o, now);
}

/* ---- an index ------------------------------------------------------------------------------ */

/* What is raised if data say so. */
typedef struct mistake {
    const char *class, *words;
} mistake;

static cfxi_flow way_wrong(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    const mistake *m = ctx;
    cfx_object *class = cfxi_eval_builtin(ev, m->class);
    cfx_object *text = class ? cfxi_eval_str(ev, m->words) : NULL;
    cfx_object *exc = text ? cfxi_eval_world_call(ev, class, cfxi_eval_args(&text, 1)) : NULL;
    (void)value;
    if (!exc)
        return CFXI_FLOW_FAIL;
    ev->raised = exc;
    ev->raised_cause = NULL;
    ev->raised_at = ev->frame->at;
    ev->raised_in = ev->frame;
    return CFXI_FLOW_RAISE;
}

bool cfxi_eval_raise_if(cfx_evaluator *ev, cfx_object *wrong, const char *class, const char *words)
{
    mistake m = {class, words};
    return wrong && cfxi_eval_branch(ev, wrong, way_wrong, cfxi_eval_way_on, &m, NULL) ==
                        CFXI_FLOW_ON;
}

static cfx_object *length(cfx_evaluator *ev, cfx_object *list)
{
    cfx_object **items;
    size_t n;
    if (cfxi_eval_node(ev, list))
        return cfxi_eval_record(ev, "builtins.len", &list, 1);
    return cfxi_eval_contents(ev, list, &items, &n) ? cfxi_eval_int(ev, (int64_t)n) : NULL;
}

/* Whether no item has that index: a graph value, for it or the size is one. */
static cfx_object *is_wrong(cfx_evaluator *ev, cfx_object *i, cfx_object *size)
{
    int64_t known;
    if (!cfxi_eval_node(ev, i) && ev->w->integer(ev->w->ctx, i, &known) && known >= 0)
        return cfxi_eval_compare(ev, CFX_SIGN_LE, size, i);
    cfx_object *last = cfxi_eval_binary(ev, CFX_SIGN_ADD, i, size);
    cfx_object *zero = cfxi_eval_int(ev, 0);
    cfx_object *low = last && zero ? cfxi_eval_compare(ev, CFX_SIGN_LT, last, zero) : NULL;
    if (!cfxi_eval_node(ev, i))
        return low;
    cfx_object *high = low ? cfxi_eval_compare(ev, CFX_SIGN_LE, size, i) : NULL;
    return high ? cfxi_eval_binary(ev, CFX_SIGN_OR, low, high) : NULL;
}

/* The index counted from the start: graph values may be negative. One that no item has ends the run
 * as Python would: a slice behind the list would be empty, without a word. */
static cfx_object *from_start(cfx_evaluator *ev, cfx_object *list, cfx_object *i, const char *words)
{
    int64_t known = -1;
    if (!cfxi_eval_node(ev, i) && !ev->w->integer(ev->w->ctx, i, &known))
        return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                              "cannot change a slice of a list whose length depends on data; build "
                              "a new list instead");
    cfx_object *size = length(ev, list);
    cfx_object *wrong = size ? is_wrong(ev, i, size) : NULL;
    if (!cfxi_eval_raise_if(ev, wrong, "IndexError", words))
        return NULL;
    return known >= 0 ? i : cfxi_eval_binary(ev, CFX_SIGN_MOD, i, size);
}

static cfx_object *behind(cfx_evaluator *ev, cfx_object *i)
{
    cfx_object *one = cfxi_eval_int(ev, 1);
    return one ? cfxi_eval_binary(ev, CFX_SIGN_ADD, i, one) : NULL;
}

static cfx_object *anew(cfx_evaluator *ev, cfx_object *v);

/* A tuple of the items of a list, or of pairs of keys and values. */
static cfx_object *items_anew(cfx_evaluator *ev, cfx_object **items, size_t n, bool pairs)
{
    cfx_object **all = cfxi_eval_ev_alloc(ev, (n + 1) * sizeof *all);
    size_t made = 0;
    for (size_t i = 0; all && i < n; i++) {
        cfx_object *pair[2] = {items[i], pairs && i + 1 < n ? anew(ev, items[i + 1]) : NULL};
        all[made++] = pairs ? pair[1] ? cfxi_eval_tuple(ev, pair, 2) : NULL : anew(ev, items[i]);
        if (!all[made - 1])
            return NULL;
        i += pairs;
    }
    return all ? cfxi_eval_tuple(ev, all, made) : NULL;
}

/* What a graph value is to hold: lists and dicts in it are made whenever it is computed, not
 * once. */
static cfx_object *anew(cfx_evaluator *ev, cfx_object *v)
{
    cfx_object **items;
    size_t n;
    if (cfxi_eval_current(ev, v) != v || !cfxi_eval_can_grow(ev, v))
        return cfxi_eval_current_deep(ev, v);
    if (!cfxi_eval_contents(ev, v, &items, &n))
        return NULL;
    const bool pairs = ev->w->kind(ev->w->ctx, v) == CFX_OBJECT_DICT;
    cfx_object *tuple = items_anew(ev, items, n, pairs);
    return tuple ? cfxi_eval_record(ev, pairs ? "builtins.dict" : "builtins.list", &tuple, 1)
                 : NULL;
}

cfx_object *cfxi_eval_handed_over(cfx_evaluator *ev, cfx_object *v)
{
    return v && cfxi_eval_escape(ev, v, true) ? anew(ev, v) : NULL;
}

static cfx_object *list_of(cfx_evaluator *ev, cfx_object *v)
{
    cfx_object *item = cfxi_eval_handed_over(ev, v);
    return item ? cfxi_eval_new_list(ev, &item, 1) : NULL;
}

/* The list without items i to i + 1 - before, and `middle` there instead (NULL: nothing). */
static cfx_object *replaced(cfx_evaluator *ev, cfx_object *list, cfx_object *i, cfx_object *middle,
                            bool insert)
{
    cfx_object *next = insert ? i : behind(ev, i);
    cfx_object *head = next ? part(ev, list, NULL, i) : NULL;
    cfx_object *tail = head ? part(ev, list, next, NULL) : NULL;
    if (middle && tail)
        head = joined(ev, head, list_of(ev, middle));
    return joined(ev, head, tail);
}

/* ---- methods ------------------------------------------------------------------------------- */

static cfx_object *pop(cfx_evaluator *ev, cfx_object *o, cfx_object *list, cfx_call_args args)
{
    cfx_object *last = cfxi_eval_int(ev, -1);
    if (!last)
        return NULL;
    if (args.n == 0) {
        cfx_object *v = cfxi_eval_item(ev, list, last);
        return v && cfxi_eval_become(ev, o, part(ev, list, NULL, last)) ? v : NULL;
    }
    int64_t first = -1;
    const bool is_first = !cfxi_eval_node(ev, args.args[0]) &&
                          ev->w->integer(ev->w->ctx, args.args[0], &first) && first == 0;
    cfx_object *i = is_first ? args.args[0]  /* reading it says that there is none */
                             : from_start(ev, list, args.args[0], "pop index out of range");
    cfx_object *v = i ? cfxi_eval_item(ev, list, i) : NULL;
    return v && cfxi_eval_become(ev, o, replaced(ev, list, i, NULL, false)) ? v : NULL;
}

cfx_object *cfxi_eval_clear_contents(cfx_evaluator *ev, cfx_object *o)
{
    const cfxi_place p = {.kind = CFXI_PLACE_CONTENTS, .object = o};
    const cfxi_state empty = {0};
    return cfxi_eval_journal_contents(ev, o) && cfxi_eval_place_write(ev, &p, &empty) ? ev->none
                                                                                      : NULL;
}

static cfx_object *as_list(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object *now = cfxi_eval_current_deep(ev, o);
    if (now && cfxi_eval_kind(ev, now) != CFX_OBJECT_LIST)
        now = cfxi_eval_node(ev, now) ? cfxi_eval_record(ev, "builtins.list", &now, 1) : now;
    if (!now || cfxi_eval_kind(ev, now) == CFX_OBJECT_LIST)
        return now;
    cfx_object **items;
    size_t n;
    return cfxi_eval_items(ev, now, &items, &n) ? cfxi_eval_new_list(ev, items, n) : NULL;
}

/* Its items, to be held by another list. */
static cfx_object *items_of(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object *list = as_list(ev, o);
    cfx_object **items;
    size_t n;
    if (!list || cfxi_eval_node(ev, list))
        return list;
    if (!cfxi_eval_contents(ev, list, &items, &n))
        return NULL;
    cfx_object **all = cfxi_eval_ev_alloc(ev, (n + 1) * sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        if (!(all[i] = cfxi_eval_handed_over(ev, items[i])))
            return NULL;
    return all ? cfxi_eval_new_list(ev, all, n) : NULL;
}

bool cfxi_eval_join_lists(cfx_evaluator *ev, cfx_object **a, cfx_object **b)
{
    const bool left = cfxi_eval_node(ev, cfxi_eval_current(ev, *a)) != NULL;
    cfx_object **known = left ? b : a;
    if (left == (cfxi_eval_node(ev, cfxi_eval_current(ev, *b)) != NULL) ||
        ev->w->kind(ev->w->ctx, *known) != CFX_OBJECT_LIST)
        return true;
    return (*known = items_of(ev, *known)) != NULL;
}

static cfx_object *backwards(cfx_evaluator *ev, cfx_object *list)
{
    cfx_object *in[3] = {ev->none, ev->none, cfxi_eval_int(ev, -1)};
    cfx_object *slice = in[2] ? cfxi_eval_build(ev, CFX_BUILD_SLICE, in, 3) : NULL;
    return slice ? cfxi_eval_item(ev, list, slice) : NULL;
}

/* Whether data decide how o.sort(...) orders a known list, or may do so: there is a key. */
static bool is_sorted_by_data(cfx_evaluator *ev, cfx_object *o, cfx_call_args args)
{
    cfx_object **items;
    size_t n;
    bool found = args.n_named > 0;
    if (cfxi_eval_node(ev, o) || ev->w->kind(ev->w->ctx, o) != CFX_OBJECT_LIST ||
        args.n != args.n_named || !cfxi_base_pointers_get(&ev->births, o) ||
        !cfxi_eval_contents(ev, o, &items, &n))
        return false;
    for (size_t i = 0; !found && i < n; i++)
        found = cfxi_eval_node(ev, cfxi_eval_current(ev, items[i])) ||
                ev->w->kind(ev->w->ctx, items[i]) == CFX_OBJECT_TUPLE;
    return found;
}

/* o.sort(key=..., reverse=...) as o[:] = sorted(o, key=..., reverse=...) */
static cfx_object *sort(cfx_evaluator *ev, cfx_object *o, cfx_object *list, cfx_call_args args)
{
    cfx_object *f = cfxi_eval_builtin(ev, "sorted");
    cfx_object **all = f ? cfxi_eval_ev_alloc(ev, (args.n + 1) * sizeof *all) : NULL;
    if (!all)
        return NULL;
    all[0] = list;
    for (size_t i = 0; i < args.n; i++)
        all[i + 1] = args.args[i];
    cfx_object *sorted =
        cfxi_eval_call(ev, f, (cfx_call_args){all, args.n + 1, args.names, args.n_named});
    cfx_object *now = sorted ? cfxi_eval_current(ev, sorted) : NULL;
    if (!now)
        return NULL;
    if (cfxi_eval_node(ev, now))
        return cfxi_eval_become(ev, o, now) ? ev->none : NULL;
    const cfxi_place p = {.kind = CFXI_PLACE_CONTENTS, .object = o};
    cfxi_state state = {0};
    return cfxi_eval_contents(ev, now, &state.items, &state.n) &&
                   cfxi_eval_journal_contents(ev, o) && cfxi_eval_place_write(ev, &p, &state)
               ? ev->none : NULL;
}

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

/* Whether a change by that index makes a graph value of a list that is known: data choose where. */
static bool is_chosen_in(cfx_evaluator *ev, cfx_object *o, cfx_object *i)
{
    return cfxi_eval_node(ev, i) && !cfxi_eval_node(ev, o) &&
           ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_LIST && cfxi_base_pointers_get(&ev->births, o);
}

/* ---- all methods --------------------------------------------------------------------------- */

cfx_object *cfxi_eval_growing_method(cfx_evaluator *ev, cfx_object *o, const char *name,
                                     cfx_call_args args, bool *done)
{
    cfx_object *list = cfxi_eval_current(ev, o);
    cfx_object *now = NULL;
    cfx_object *first = args.n > 0 ? args.args[0] : NULL;
    *done = list != o || (is(name, "sort") && is_sorted_by_data(ev, o, args)) ||
            (first && (is(name, "pop") || is(name, "insert")) && is_chosen_in(ev, o, first));
    if (!cfxi_eval_node(ev, o) && ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_DICT)
        return cfxi_eval_dict_method(ev, o, name, args, done);
    if (!*done)
        return NULL;
    if (!cfxi_eval_check_owner(ev, o, name))
        return NULL;
    if (is(name, "pop"))
        return pop(ev, o, list, args);
    if (is(name, "clear"))
        return cfxi_eval_clear_contents(ev, o);
    if (is(name, "append") && args.n == 1)
        now = joined(ev, list, list_of(ev, first));
    else if (is(name, "extend") && args.n == 1)
        now = joined(ev, list, items_of(ev, first));
    else if (is(name, "insert") && args.n == 2)
        now = replaced(ev, list, first, args.args[1], true);
    else if (is(name, "sort") && args.n == args.n_named)
        return sort(ev, o, list, args);
    else if (is(name, "reverse") && args.n == 0)
        now = backwards(ev, list);
    else if (is(name, "remove") || is(name, "reverse") || is(name, "sort"))
        return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED, "cannot call '%s' on a list whose "
                              "length depends on data; build a new list instead", name);
    else {
        cfx_object *method = cfxi_eval_get_method(ev, list, name);
        return method ? cfxi_eval_world_call(ev, method, args) : NULL;
    }
    return cfxi_eval_become(ev, o, now) ? ev->none : NULL;
}

bool cfxi_eval_growing_set_item(cfx_evaluator *ev, cfx_object *o, cfx_object *key, cfx_object *v,
                                bool *done)
{
    cfx_object *list = cfxi_eval_current(ev, o);
    if (!cfxi_eval_node(ev, o) && ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_DICT)
        return cfxi_eval_dict_set_item(ev, o, key, v, done);
    *done = list != o || is_chosen_in(ev, o, key);
    if (!*done)
        return true;
    if (!v && !cfxi_eval_check_owner(ev, o, "__delitem__"))
        return false;
    cfx_object *i = from_start(ev, list, key, "list assignment index out of range");
    return i && cfxi_eval_become(ev, o, replaced(ev, list, i, v, false));
}
