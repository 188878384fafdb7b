/* growing_dict.c - dicts that have become graph values: data choose their keys.
 *
 * As for a list (growing_list.c), the object stays what it is, and what changes it makes a new
 * graph value:
 *     counts[k] = n                      counts = counts | dict([(k, n)])
 *     del counts[k]                      counts = dict(counts), of which operator.delitem takes k
 * A view (counts.keys()) stays the world's own: whoever looks at it sees the dict as it is then.
 */
#include "graph_control_impl.h"

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static bool is_dict(cfx_evaluator *ev, cfx_object *o)
{
    return !cfxi_eval_node(ev, o) && ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_DICT;
}

bool cfxi_eval_is_plain_dict(cfx_evaluator *ev, cfx_object *o)
{
    return is_dict(ev, o) && is(ev->w->type_name(ev->w->ctx, o), "dict");
}

/* ---- views --------------------------------------------------------------------------------- */

cfx_object *cfxi_eval_view_owner(cfx_evaluator *ev, cfx_object *o, const char **part)
{
    return ev->w->view_of && !cfxi_eval_node(ev, o) ? ev->w->view_of(ev->w->ctx, o, part) : NULL;
}

cfx_object *cfxi_eval_shown(cfx_evaluator *ev, cfx_object *o)
{
    const char *part = NULL;
    cfx_object *now = cfxi_eval_current(ev, o);
    if (now != o || ev->growing.n == 0)
        return now;
    cfx_object *dict = cfxi_eval_view_owner(ev, o, &part);
    if (!dict || cfxi_eval_current(ev, dict) == dict)
        return o;
    cfx_object *method = cfxi_eval_get_method(ev, dict, part);
    return method ? cfxi_eval_world_call(ev, method, cfxi_eval_args(NULL, 0)) : NULL;
}

/* ---- keys ---------------------------------------------------------------------------------- */

/* A tensor is a key by its identity: not here. */
bool cfxi_eval_is_chosen(cfx_evaluator *ev, cfx_object *key)
{
    cfx_object **items;
    size_t n;
    if (cfxi_eval_node(ev, key))
        return cfxi_eval_kind(ev, key) != CFX_OBJECT_TENSOR;
    if (ev->w->kind(ev->w->ctx, key) != CFX_OBJECT_TUPLE ||
        !cfxi_eval_contents(ev, key, &items, &n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (cfxi_eval_is_chosen(ev, items[i]))
            return true;
    return false;
}

/* Whether a change at that key makes a graph value of a dict that the program has made. */
static bool is_chosen_in(cfx_evaluator *ev, cfx_object *o, cfx_object *key)
{
    return cfxi_base_pointers_get(&ev->births, o) && cfxi_eval_is_chosen(ev, key);
}

/* Fails: one that has more to do than a dict when its keys change cannot become a graph value. */
static void *refuse_class(cfx_evaluator *ev, cfx_object *o)
{
    return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                          "a key of this %.60s depends on data, which only a plain dict can have; "
                          "use a dict, with d.get(k, default) or d.setdefault(k, default)",
                          ev->w->type_name(ev->w->ctx, o));
}

/* The dict as a graph value, or a new one that is known. */
static cfx_object *value_of(cfx_evaluator *ev, cfx_object *o)
{
    cfxi_state state = {0};
    cfx_object *now = cfxi_eval_current(ev, o);
    if (now != o)
        return now;
    cfx_object *whole = cfxi_eval_contents(ev, o, &state.items, &state.n)
                            ? cfxi_eval_whole(ev, &state, CFX_OBJECT_DICT) : NULL;
    return whole ? cfxi_eval_current_deep(ev, whole) : NULL;
}

cfx_object *cfxi_eval_one_key(cfx_evaluator *ev, cfx_object *key, cfx_object *v)
{
    cfx_object *pair[2] = {key, cfxi_eval_handed_over(ev, v)};
    if (!pair[1])
        return NULL;
    if (!cfxi_eval_is_chosen(ev, key))
        return cfxi_eval_build(ev, CFX_BUILD_DICT, pair, 2);
    cfx_object *tuple = cfxi_eval_tuple(ev, pair, 2);
    cfx_object *list = tuple ? cfxi_eval_new_list(ev, &tuple, 1) : NULL;
    return list ? cfxi_eval_record(ev, "builtins.dict", &list, 1) : NULL;
}

cfx_object *cfxi_eval_adopt_dict(cfx_evaluator *ev, cfx_object *value)
{
    cfx_object *made = value ? cfxi_eval_build(ev, CFX_BUILD_DICT, NULL, 0) : NULL;
    return made && cfxi_eval_grow_from(ev, made, value) ? made : NULL;
}

/* ---- dict() -------------------------------------------------------------------------------- */

/* Whether it is a list or tuple of pairs of which data choose a key. */
static bool has_chosen_keys(cfx_evaluator *ev, cfx_object *o)
{
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, o);
    cfx_object **items, **pair;
    size_t n, two;
    if ((kind != CFX_OBJECT_LIST && kind != CFX_OBJECT_TUPLE) ||
        !cfxi_eval_contents(ev, o, &items, &n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!cfxi_eval_node(ev, items[i]) &&
            ev->w->kind(ev->w->ctx, items[i]) == CFX_OBJECT_TUPLE &&
            cfxi_eval_contents(ev, items[i], &pair, &two) && two == 2 &&
            cfxi_eval_is_chosen(ev, pair[0]))
            return true;
    return false;
}

/* Its pairs, with what a graph value is to hold of them. NULL: failed. */
static cfx_object *pairs_of(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object **items, **pair;
    cfxi_objects pairs = {0};
    size_t n, two;
    if (!cfxi_eval_contents(ev, o, &items, &n))
        return NULL;
    for (size_t i = 0; i < n; i++) {
        cfx_object *item = cfxi_eval_current_deep(ev, items[i]);
        const bool is_pair = item && !cfxi_eval_node(ev, item) &&
                             ev->w->kind(ev->w->ctx, item) == CFX_OBJECT_TUPLE;
        if (is_pair && cfxi_eval_contents(ev, items[i], &pair, &two) && two == 2) {
            cfx_object *both[2] = {pair[0], cfxi_eval_handed_over(ev, pair[1])};
            item = both[1] ? cfxi_eval_tuple(ev, both, 2) : NULL;
        }
        if (!cfxi_eval_push(ev, &pairs, item))
            return NULL;
    }
    return cfxi_eval_new_list(ev, pairs.items, pairs.n);
}

/* dict(of, a=1, b=2): dict(of), and what has a name. */
static cfx_object *dict_with_names(cfx_evaluator *ev, cfx_object *f, cfx_call_args args)
{
    const size_t first = args.n - args.n_named;
    cfx_object *made = first == 0
                           ? cfxi_eval_build(ev, CFX_BUILD_DICT, NULL, 0)
                           : cfxi_eval_call_dict(ev, f, cfxi_eval_args(args.args, first));
    for (size_t i = first; made && i < args.n; i++) {
        cfx_object *name = cfxi_eval_str(ev, args.names[i - first]);
        if (!name || !cfxi_eval_set_item(ev, made, name, args.args[i]))
            return NULL;
    }
    return made;
}

cfx_object *cfxi_eval_call_dict(cfx_evaluator *ev, cfx_object *f, cfx_call_args args)
{
    if (args.n_named > 0 && args.n - args.n_named <= 1)
        return dict_with_names(ev, f, args);
    if (args.n != 1)
        return cfxi_eval_world_call(ev, f, args);
    cfx_object *o = cfxi_eval_drained(ev, args.args[0]);
    if (!o)
        return NULL;
    if (!cfxi_eval_node(ev, o) && has_chosen_keys(ev, o)) {
        cfx_object *pairs = pairs_of(ev, o);
        return pairs ? cfxi_eval_adopt_dict(ev, cfxi_eval_record(ev, "builtins.dict", &pairs, 1))
                     : NULL;
    }
    cfx_object *made = cfxi_eval_world_call(ev, f, args);
    return made && cfxi_eval_node(ev, made) ? cfxi_eval_adopt_dict(ev, made) : made;
}

/* ---- changes ------------------------------------------------------------------------------- */

/* Becomes one that has the items of `more`, too. */
static bool join(cfx_evaluator *ev, cfx_object *o, cfx_object *more)
{
    cfx_object **items;
    size_t n;
    const bool is_new = cfxi_eval_current(ev, o) == o;
    if (!more || (is_new && !cfxi_eval_contents(ev, o, &items, &n)))
        return false;
    if (is_new && n == 0 && cfxi_eval_node(ev, more))
        return cfxi_eval_become(ev, o, more);
    cfx_object *in[2] = {value_of(ev, o), more};
    return in[0] && cfxi_eval_become(ev, o, cfxi_eval_record(ev, "operator.or_", in, 2));
}

/* del o[key] */
static bool take_out(cfx_evaluator *ev, cfx_object *o, cfx_object *key)
{
    cfx_object *old = cfxi_eval_check_owner(ev, o, "__delitem__") ? value_of(ev, o) : NULL;
    cfx_object *in[2] = {old ? cfxi_eval_record(ev, "builtins.dict", &old, 1) : NULL, key};
    return in[0] && cfxi_eval_record(ev, "operator.delitem", in, 2) &&
           cfxi_eval_become(ev, o, in[0]);
}

bool cfxi_eval_dict_set_item(cfx_evaluator *ev, cfx_object *o, cfx_object *key, cfx_object *v,
                             bool *done)
{
    key = cfxi_eval_current_deep(ev, key);
    if (!key)
        return false;
    *done = cfxi_eval_current(ev, o) != o || is_chosen_in(ev, o, key);
    if (!*done)
        return true;
    if (!cfxi_eval_is_plain_dict(ev, o))
        return refuse_class(ev, o);
    if (!cfxi_eval_will_change(ev, o))
        return false;
    return v ? join(ev, o, cfxi_eval_one_key(ev, key, v)) : take_out(ev, o, key);
}

/* ---- methods ------------------------------------------------------------------------------- */

/* The items of a known dict, as a dict that will hold them; a graph value as a dict. */
static cfx_object *items_of(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object **items;
    size_t n;
    cfx_object *now = cfxi_eval_shown(ev, o);
    if (!now)
        return NULL;
    if (cfxi_eval_node(ev, now))
        return cfxi_eval_kind(ev, now) == CFX_OBJECT_DICT
                   ? now : cfxi_eval_record(ev, "builtins.dict", &now, 1);
    if (!is_dict(ev, now)) {
        cfx_object *f = cfxi_eval_builtin(ev, "dict");
        now = f ? cfxi_eval_call_dict(ev, f, cfxi_eval_args(&now, 1)) : NULL;
        now = now ? cfxi_eval_current(ev, now) : NULL;
    }
    if (!now || cfxi_eval_node(ev, now) || !cfxi_eval_contents(ev, now, &items, &n))
        return now && cfxi_eval_node(ev, now) ? now : NULL;
    cfx_object **all = cfxi_eval_ev_alloc(ev, (n + 1) * sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        if (!(all[i] = i % 2 ? cfxi_eval_handed_over(ev, items[i]) : items[i]))
            return NULL;
    return all ? cfxi_eval_build(ev, CFX_BUILD_DICT, all, n) : NULL;
}

static cfx_object *update(cfx_evaluator *ev, cfx_object *o, cfx_call_args args)
{
    const size_t first = args.n - args.n_named;
    if (!cfxi_eval_will_change(ev, o) ||
        (first == 1 && !join(ev, o, items_of(ev, args.args[0]))))
        return NULL;
    for (size_t i = first; i < args.n; i++) {
        cfx_object *name = cfxi_eval_str(ev, args.names[i - first]);
        if (!name || !join(ev, o, cfxi_eval_one_key(ev, name, args.args[i])))
            return NULL;
    }
    return ev->none;
}

static cfx_object *get(cfx_evaluator *ev, cfx_object *o, cfx_call_args args)
{
    cfx_object *in[2] = {cfxi_eval_current_deep(ev, args.args[0]),
                         args.n > 1 ? cfxi_eval_handed_over(ev, args.args[1]) : NULL};
    cfx_object *method =
        in[0] && (in[1] || args.n == 1) ? cfxi_eval_get_method(ev, o, "get") : NULL;
    return method ? cfxi_eval_world_call(ev, method, cfxi_eval_args(in, args.n)) : NULL;
}

/* A function of the prelude of the same name, of the dict and the arguments. */
static cfx_object *call_prelude(cfx_evaluator *ev, const char *name, cfx_object *o,
                                cfx_call_args args, size_t n)
{
    cfx_object *in[3] = {o, args.n > 0 ? args.args[0] : ev->none,
                         args.n > 1 ? args.args[1] : ev->none};
    return cfxi_eval_call_prelude(ev, name, cfxi_eval_args(in, n));
}

/* The view itself, which reads nothing. */
static cfx_object *view(cfx_evaluator *ev, cfx_object *o, const char *name)
{
    const cfx_world *w = ev->w;
    cfx_object *method = cfxi_eval_pool(ev, w->get(w->ctx, o, name, ev->err));
    return method ? cfxi_eval_pool(ev, w->call(w->ctx, method, cfxi_eval_args(NULL, 0), ev->err))
                  : NULL;
}

static cfx_object *call_method(cfx_evaluator *ev, cfx_object *o, const char *name,
                               cfx_call_args args)
{
    const bool plain = args.n_named == 0;
    if (plain && args.n == 0 && (is(name, "keys") || is(name, "values") || is(name, "items")))
        return view(ev, o, name);
    if (plain && args.n == 0 && is(name, "copy")) {
        cfx_object *now = cfxi_eval_current(ev, o);
        return cfxi_eval_adopt_dict(ev, cfxi_eval_record(ev, "builtins.dict", &now, 1));
    }
    if (plain && args.n == 0 && is(name, "clear"))
        return cfxi_eval_check_owner(ev, o, name) ? cfxi_eval_clear_contents(ev, o) : NULL;
    if (plain && args.n == 0 && is(name, "popitem"))
        return call_prelude(ev, name, o, args, 1);
    if (plain && (args.n == 1 || args.n == 2) && is(name, "get"))
        return get(ev, o, args);
    if (plain && (args.n == 1 || args.n == 2) && is(name, "setdefault"))
        return call_prelude(ev, name, o, args, 3);
    if (plain && (args.n == 1 || args.n == 2) && is(name, "pop"))
        return call_prelude(ev, args.n == 1 ? "pop" : "pop_or", o, args, args.n + 1);
    if (is(name, "update") && args.n - args.n_named <= 1)
        return update(ev, o, args);
    if (cfx_script_method_mutates(name))
        return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED, "cannot call '%s' on a dict whose keys "
                              "depend on data; build a new dict instead", name);
    cfx_object *method = cfxi_eval_get_method(ev, o, name);
    return method ? cfxi_eval_world_call(ev, method, args) : NULL;
}

cfx_object *cfxi_eval_dict_method(cfx_evaluator *ev, cfx_object *o, const char *name,
                                  cfx_call_args args, bool *done)
{
    cfx_object *first = args.n > args.n_named ? cfxi_eval_shown(ev, args.args[0]) : NULL;
    *done = true;
    if (args.n > args.n_named && !first)
        return NULL;
    const bool by_key = is(name, "setdefault") || is(name, "pop");
    *done = cfxi_eval_current(ev, o) != o ||
            (first && by_key && is_chosen_in(ev, o, first)) ||
            (first && is(name, "update") && cfxi_base_pointers_get(&ev->births, o) &&
             (cfxi_eval_node(ev, first) || has_chosen_keys(ev, first)));
    if (!*done)
        return NULL;
    return cfxi_eval_is_plain_dict(ev, o) ? call_method(ev, o, name, args) : refuse_class(ev, o);
}
