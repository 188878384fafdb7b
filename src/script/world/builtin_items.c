/* builtin_items.c - builtin functions over many: len, min, sum, sorted, zip; list, dict, range. */
#include "world_impl.h"

#include <stdio.h>

/* ---- of several ---------------------------------------------------------------------------- */

CFXI_BUILTIN(b_len)
{
    cfx_object *in[1];
    int64_t n;
    if (cfxi_world_args(w, a, "len", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    if (in[0]->type == CFXI_TYPE_TENSOR && cfx_tensor_ndim(in[0]->as.tensor) > 0)
        return cfxi_world_int_object(w, cfx_tensor_sizes(in[0]->as.tensor)[0], err);
    if (cfxi_world_is_value(in[0]))
        return cfxi_world_perform_on(w, "builtins.len", in[0], NULL, err);
    bool found = false;
    cfx_object *own = in[0]->type == CFXI_TYPE_INSTANCE
                          ? cfxi_world_special(w, in[0], "__len__", NULL, 0, &found, err) : NULL;
    if (found && own && !cfxi_world_is_value(own) && own->type != CFXI_TYPE_INT) {
        cfxi_world_clear(&own);
        cfxi_world_throw(w, err, CFXI_TypeError, "__len__ must return an integer");
    }
    if (found)
        return own;
    return cfxi_world_length(w, in[0], &n, err) == CFX_OK ? cfxi_world_int_object(w, n, err) : NULL;
}

/* The first item with the least or the greatest key: NULL if comparing failed. Borrowed. */
static cfx_object *choose(cfxi_world *w, const cfx_object *items, cfx_object *key, bool larger,
                          cfx_error *err)
{
    cfx_object *best = NULL;
    cfx_object *most = NULL;  /* its key */
    int better = 1;
    for (size_t i = 0; better >= 0 && i < items->as.seq.n; i++) {
        cfx_object *item = items->as.seq.items[i];
        cfx_object *k = key ? cfxi_world_call_with(w, key, &item, 1, err) : cfxi_world_ref(item);
        better = !k ? -1 : !most ? 1 : larger ? cfxi_world_less(w, most, k, err)
                                              : cfxi_world_less(w, k, most, err);
        if (better > 0) {
            cfx_object *old = most;
            most = k;
            k = old;
            best = item;
        }
        cfxi_world_unref(k);
    }
    cfxi_world_unref(most);
    return better < 0 ? NULL : best;
}

/* Which of values of the graph it is, the graph tells. */
static cfx_object *choose_value(cfxi_world *w, const cfx_object *items, bool larger, cfx_error *err)
{
    const cfx_call_args all = {.args = items->as.seq.items, .n = items->as.seq.n};
    return all.n == 1 ? cfxi_world_ref(all.args[0])
                      : cfxi_world_record(w, CFX_OP_CALL_FUNCTION,
                                          larger ? "builtins.max" : "builtins.min", &all, err);
}

static cfx_object *extreme(cfxi_world *w, const cfx_call_args *a, bool larger, cfx_error *err)
{
    const size_t plain = a->n - a->n_named;
    cfx_object *key = NULL;
    cfx_object *usual = NULL;
    for (size_t i = 0; i < a->n_named; i++)
        if (strcmp(a->names[i], "key") == 0 && a->args[plain + i]->type != CFXI_TYPE_NONE)
            key = a->args[plain + i];
        else if (strcmp(a->names[i], "default") == 0)
            usual = a->args[plain + i];
    if (plain == 1 && a->args[0]->type == CFXI_TYPE_VALUE)
        return cfxi_world_record(w, CFX_OP_CALL_FUNCTION, larger ? "builtins.max" : "builtins.min",
                                 a, err);
    cfx_object *items = plain == 1 ? cfxi_world_collect(w, CFXI_TYPE_LIST, a->args[0], err)
                                   : cfxi_world_seq_object(w, CFXI_TYPE_LIST, a->args, plain, err);
    if (!items)
        return NULL;
    cfx_object *made = NULL;
    if (items->as.seq.n == 0 && !usual)
        cfxi_world_raise(w, err, CFXI_ValueError, "%s() iterable argument is empty",
                         larger ? "max" : "min");
    else if (items->as.seq.n == 0)
        made = cfxi_world_ref(usual);
    else if (!key && items->as.seq.n > 1 && cfxi_world_has_value(items, false))
        made = choose_value(w, items, larger, err);
    else
        made = cfxi_world_ref(choose(w, items, key, larger, err));
    cfxi_world_unref(items);
    return made;
}

CFXI_BUILTIN(b_min) { return extreme(w, a, false, err); }
CFXI_BUILTIN(b_max) { return extreme(w, a, true, err); }

CFXI_BUILTIN(b_sum)
{
    static const char *const names[] = {"iterable", "start"};
    cfx_object *in[2];
    if (cfxi_world_args(w, a, "sum", names, 1, 2, in, err) != CFX_OK)
        return NULL;
    if (cfxi_world_is_value(in[0]))
        return cfxi_world_perform_on(w, "builtins.sum", in[0], in[1], err);
    cfx_object *items = cfxi_world_collect(w, CFXI_TYPE_LIST, in[0], err);
    cfx_object *sum = in[1] ? cfxi_world_ref(in[1]) : cfxi_world_int_object(w, 0, err);
    for (size_t i = 0; items && sum && i < items->as.seq.n; i++) {
        cfx_object *next =
            cfxi_world_binary(w, CFX_SIGN_ADD, sum, items->as.seq.items[i], false, err);
        cfxi_world_unref(sum);
        sum = next;
    }
    if (!items)
        cfxi_world_clear(&sum);
    cfxi_world_unref(items);
    return sum;
}

/* Whether one (or all) of them are true. */
static cfx_object *any_or_all(cfxi_world *w, const cfx_call_args *a, bool all, cfx_error *err)
{
    cfx_object *in[1];
    if (cfxi_world_args(w, a, all ? "all" : "any", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    cfx_object *it = cfxi_world_iterate(w, in[0], err);
    int t = all;
    if (!it)
        return NULL;
    err->status = CFX_OK;
    for (cfx_object *x; t == (int)all && (x = cfxi_world_next(w, it, err)) != NULL;
         cfxi_world_unref(x))
        t = cfxi_world_truth_of(w, x, err);
    cfxi_world_unref(it);
    return t < 0 || err->status != CFX_OK ? NULL : cfxi_world_truth_object(w, t);
}

CFXI_BUILTIN(b_any) { return any_or_all(w, a, false, err); }
CFXI_BUILTIN(b_all) { return any_or_all(w, a, true, err); }

/* What is new, once a method has changed it; NULL if that fails. */
static cfx_object *changed_by(cfxi_world *w, cfx_object *o, cfxi_type type, const char *method,
                              const cfx_call_args *a, cfx_error *err)
{
    cfx_object *none = cfxi_world_sequence_method(type, method)->fn(w, o, a, err);
    if (!none)
        cfxi_world_clear(&o);
    cfxi_world_unref(none);
    return o;
}

CFXI_BUILTIN(b_sorted)
{
    if (a->n == a->n_named)
        return cfxi_world_raise(w, err, CFXI_TypeError, "sorted expected 1 argument, got 0");
    cfx_object *list = cfxi_world_collect(w, CFXI_TYPE_LIST, a->args[0], err);
    if (!list)
        return NULL;
    const cfx_call_args rest = {a->args + 1, a->n - 1, a->names, a->n_named};
    return changed_by(w, list, CFXI_TYPE_LIST, "sort", &rest, err);
}

/* ---- iterators ----------------------------------------------------------------------------- */

CFXI_BUILTIN(b_iter)
{
    cfx_object *in[1];
    return cfxi_world_args(w, a, "iter", NULL, 1, 1, in, err) == CFX_OK
               ? cfxi_world_iterate(w, in[0], err)
               : NULL;
}

CFXI_BUILTIN(b_next)
{
    cfx_object *in[2];
    if (cfxi_world_args(w, a, "next", NULL, 1, 2, in, err) != CFX_OK)
        return NULL;
    cfx_object *made = cfxi_world_next(w, in[0], err);
    if (made || err->status != CFX_OK)
        return made;
    return in[1] ? cfxi_world_ref(in[1]) : cfxi_world_raise(w, err, CFXI_StopIteration, "%s", "");
}

CFXI_BUILTIN(b_enumerate)
{
    static const char *const names[] = {"iterable", "start"};
    cfx_object *in[2];
    int64_t start = 0;
    if (cfxi_world_args(w, a, "enumerate", names, 1, 2, in, err) != CFX_OK ||
        (in[1] && cfxi_world_index_of(w, in[1], "start", &start, err) != CFX_OK))
        return NULL;
    cfx_object *it = cfxi_world_iterate(w, in[0], err);
    cfx_object *made =
        it ? cfxi_world_iterator(w, CFXI_STEP_ENUMERATE, it, NULL, start, err) : NULL;
    cfxi_world_unref(it);
    return made;
}

/* A tuple of iterators over the arguments from `first` on. */
static cfx_object *iterators(cfxi_world *w, const cfx_call_args *a, size_t first, cfx_error *err)
{
    cfx_object *all = cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, NULL, 0, err);
    for (size_t i = first; all && i < a->n - a->n_named; i++) {
        cfx_object *it = cfxi_world_iterate(w, a->args[i], err);
        if (!it || cfxi_world_list_append(all, it, err) != CFX_OK)
            cfxi_world_clear(&all);
        cfxi_world_unref(it);
    }
    return all;
}

CFXI_BUILTIN(b_zip)
{
    cfx_object *all = iterators(w, a, 0, err);
    cfx_object *made = all ? cfxi_world_iterator(w, CFXI_STEP_ZIP, NULL, all, 0, err) : NULL;
    cfxi_world_unref(all);
    return made;
}

/* map and filter: the evaluator runs them itself. */
CFXI_BUILTIN(b_evaluated)
{
    return cfxi_world_raise(w, err, CFXI_TypeError,
                            "map() and filter() can only be called in a script");
}

CFXI_BUILTIN(b_reversed)
{
    cfx_object *in[1];
    int64_t n;
    if (cfxi_world_args(w, a, "reversed", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    cfx_object *seq = cfxi_world_ref(in[0]);
    if (seq->type == CFXI_TYPE_DICT) {
        cfxi_world_unref(seq);
        seq = cfxi_world_collect(w, CFXI_TYPE_LIST, in[0], err);
    }
    cfx_object *made = seq && cfxi_world_length(w, seq, &n, err) == CFX_OK
                           ? cfxi_world_iterator(w, CFXI_STEP_BACK, seq, NULL, n, err) : NULL;
    cfxi_world_unref(seq);
    return made;
}

/* ---- containers ---------------------------------------------------------------------------- */

static cfx_object *make_container(cfxi_world *w, cfxi_type type, const char *name,
                                  const cfx_call_args *a, cfx_error *err)
{
    cfx_object *in[1];
    if (cfxi_world_args(w, a, name, NULL, 0, 1, in, err) != CFX_OK)
        return NULL;
    if (in[0] && in[0]->type == CFXI_TYPE_VALUE) {
        char target[32];
        snprintf(target, sizeof target, "builtins.%s", name);
        return cfxi_world_record(w, CFX_OP_CALL_FUNCTION, target, a, err);
    }
    return in[0] ? cfxi_world_collect(w, type, in[0], err) : cfxi_world_object_new(w, type, err);
}

CFXI_BUILTIN(make_list) { return make_container(w, CFXI_TYPE_LIST, "list", a, err); }
CFXI_BUILTIN(make_tuple) { return make_container(w, CFXI_TYPE_TUPLE, "tuple", a, err); }
CFXI_BUILTIN(make_set) { return make_container(w, CFXI_TYPE_SET, "set", a, err); }
CFXI_BUILTIN(make_frozenset)
{
    return make_container(w, CFXI_TYPE_FROZENSET, "frozenset", a, err);
}

CFXI_BUILTIN(make_dict)
{
    cfx_object *d = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
    return d ? changed_by(w, d, CFXI_TYPE_DICT, "update", a, err) : NULL;
}

CFXI_BUILTIN(make_slice)
{
    cfx_object *in[3];
    if (cfxi_world_args(w, a, "slice", NULL, 1, 3, in, err) != CFX_OK)
        return NULL;
    cfx_object *part[] = {in[1] ? in[0] : w->none, in[1] ? in[1] : in[0], in[2] ? in[2] : w->none};
    return cfxi_world_seq_object(w, CFXI_TYPE_SLICE, part, 3, err);
}

CFXI_BUILTIN(make_range)
{
    cfx_object *in[3];
    int64_t i[3] = {0, 0, 1};
    if (cfxi_world_args(w, a, "range", NULL, 1, 3, in, err) != CFX_OK)
        return NULL;
    for (int k = 0; k < 3; k++)
        if (in[k] &&
            cfxi_world_index_of(w, in[k], "range() argument", &i[k], err) != CFX_OK)
            return NULL;
    return in[1] ? cfxi_world_range_object(w, i[0], i[1], i[2], err)
                 : cfxi_world_range_object(w, 0, i[0], 1, err);
}

const cfxi_builtin cfxi_world_items_builtins[] = {
    {"all", b_all}, {"any", b_any}, {"dict", make_dict}, {"enumerate", b_enumerate},
    {"filter", b_evaluated}, {"frozenset", make_frozenset}, {"iter", b_iter}, {"len", b_len},
    {"list", make_list}, {"map", b_evaluated}, {"max", b_max}, {"min", b_min}, {"next", b_next},
    {"range", make_range}, {"reversed", b_reversed}, {"set", make_set}, {"slice", make_slice},
    {"sorted", b_sorted}, {"sum", b_sum}, {"tuple", make_tuple}, {"zip", b_zip}, {NULL, NULL},
};
