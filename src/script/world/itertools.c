/* itertools.c - Python's itertools. What they give is known, so each makes a list at once, and an
 * iterator of it: there are no endless ones but count. */
#include "world_impl.h"

/* An iterator of a list, which is let go of; NULL is handed on. */
static cfx_object *over(cfxi_world *w, cfx_object *list, cfx_error *err)
{
    cfx_object *made = list ? cfxi_world_iterate(w, list, err) : NULL;
    cfxi_world_unref(list);
    return made;
}

static cfx_object *empty_list(cfxi_world *w, cfx_error *err)
{
    return cfxi_world_seq_object(w, CFXI_TYPE_LIST, NULL, 0, err);
}

/* Appends an item that is let go of, or NULL, which is a failure of before. */
static bool take(cfx_object *list, cfx_object *item, cfx_error *err)
{
    const bool good = item && cfxi_world_list_append(list, item, err) == CFX_OK;
    cfxi_world_unref(item);
    return good;
}

/* ---- one behind the other ------------------------------------------------------------------ */

static cfx_object *chained(cfxi_world *w, cfx_object *const *parts, size_t n, cfx_error *err)
{
    cfx_object *all = empty_list(w, err);
    for (size_t i = 0; all && i < n; i++) {
        cfx_object *same = cfxi_world_binary(w, CFX_SIGN_ADD, all, parts[i], true, err);
        cfxi_world_unref(same);
        if (!same)
            cfxi_world_clear(&all);
    }
    return over(w, all, err);
}

CFXI_BUILTIN(chain) { return chained(w, a->args, a->n, err); }

CFXI_BUILTIN(from_iterable)
{
    cfx_object *in[1];
    if (cfxi_world_args(w, a, "from_iterable", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    cfx_object *parts = cfxi_world_collect(w, CFXI_TYPE_LIST, in[0], err);
    cfx_object *made = parts ? chained(w, parts->as.seq.items, parts->as.seq.n, err) : NULL;
    cfxi_world_unref(parts);
    return made;
}

CFXI_BUILTIN(repeat)
{
    static const char *const names[] = {"object", "times"};
    cfx_object *in[2];
    int64_t n = 0;
    if (cfxi_world_args(w, a, "repeat", names, 1, 2, in, err) != CFX_OK)
        return NULL;
    if (!in[1])
        return cfxi_world_raise(w, err, CFXI_NotImplementedError,
                                "repeat() without 'times' is endless; give the number of times");
    if (cfxi_world_index_of(w, in[1], "the number of times", &n, err) != CFX_OK)
        return NULL;
    cfx_object *one = cfxi_world_seq_object(w, CFXI_TYPE_LIST, in, 1, err);
    cfx_object *all = one ? cfxi_world_repeat(w, one, n, err) : NULL;
    cfxi_world_unref(one);
    return over(w, all, err);
}

/* Numbers without an end: as many as there are. */
CFXI_BUILTIN(count)
{
    static const char *const names[] = {"start", "step"};
    cfx_object *in[2];
    int64_t start = 0;
    int64_t step = 1;
    if (cfxi_world_args(w, a, "count", names, 0, 2, in, err) != CFX_OK ||
        (in[0] && cfxi_world_index_of(w, in[0], "the start", &start, err) != CFX_OK) ||
        (in[1] && cfxi_world_index_of(w, in[1], "the step", &step, err) != CFX_OK))
        return NULL;
    cfx_object *all =
        cfxi_world_range_object(w, start, step < 0 ? INT64_MIN / 2 : INT64_MAX / 2, step, err);
    return over(w, all, err);
}

CFXI_BUILTIN(islice)
{
    cfx_object *in[4];
    int64_t at[3] = {0, INT64_MAX, 1};
    if (cfxi_world_args(w, a, "islice", NULL, 2, 4, in, err) != CFX_OK)
        return NULL;
    for (size_t i = 1; i < 4; i++)
        if (in[i] && in[i]->type != CFXI_TYPE_NONE &&
            cfxi_world_index_of(w, in[i], "islice() argument", &at[in[2] ? i - 1 : 1], err) !=
                CFX_OK)
            return NULL;
    if (at[0] < 0 || at[1] < 0 || at[2] < 1)
        return cfxi_world_raise(w, err, CFXI_ValueError, "islice() takes non-negative indices and "
                                "a step of at least 1");
    cfx_object *all = empty_list(w, err);
    cfx_object *from = all ? cfxi_world_iterate(w, in[0], err) : NULL;
    bool good = from != NULL;
    err->status = good ? CFX_OK : err->status;
    int64_t next = at[0];
    for (int64_t i = 0; good && i < at[1]; i++) {
        cfx_object *x = cfxi_world_next(w, from, err);
        if (!x)
            break;
        if (i == next) {
            next = next > INT64_MAX - at[2] ? INT64_MAX : next + at[2];
            good = take(all, x, err);
        } else {
            cfxi_world_unref(x);
        }
    }
    cfxi_world_unref(from);
    if (!good || err->status != CFX_OK)
        cfxi_world_clear(&all);
    return over(w, all, err);
}

/* ---- sums and tests ------------------------------------------------------------------------ */

CFXI_BUILTIN(accumulate)
{
    static const char *const names[] = {"iterable", "func", "*initial"};
    cfx_object *in[3];
    if (cfxi_world_args(w, a, "accumulate", names, 1, 3, in, err) != CFX_OK)
        return NULL;
    cfx_object *items = cfxi_world_collect(w, CFXI_TYPE_LIST, in[0], err);
    cfx_object *all = items ? empty_list(w, err) : NULL;
    cfx_object *sum = in[2] && in[2]->type != CFXI_TYPE_NONE ? cfxi_world_ref(in[2]) : NULL;
    bool good = all != NULL && (!sum || cfxi_world_list_append(all, sum, err) == CFX_OK);
    const bool plain = !in[1] || in[1]->type == CFXI_TYPE_NONE;
    for (size_t i = 0; good && i < items->as.seq.n; i++) {
        cfx_object *both[] = {sum, items->as.seq.items[i]};
        cfx_object *next = !sum    ? cfxi_world_ref(both[1])
                           : plain ? cfxi_world_binary(w, CFX_SIGN_ADD, sum, both[1], false, err)
                                   : cfxi_world_call_with(w, in[1], both, 2, err);
        cfxi_world_unref(sum);
        sum = next;
        good = sum && cfxi_world_list_append(all, sum, err) == CFX_OK;
    }
    cfxi_world_unref(sum);
    cfxi_world_unref(items);
    if (!good)
        cfxi_world_clear(&all);
    return over(w, all, err);
}

/* takewhile: items until one fails the test; dropwhile: those from there on. */
static cfx_object *by_test(cfxi_world *w, const cfx_call_args *a, const char *name, bool before,
                           cfx_error *err)
{
    cfx_object *in[2];
    if (cfxi_world_args(w, a, name, NULL, 2, 2, in, err) != CFX_OK)
        return NULL;
    cfx_object *items = cfxi_world_collect(w, CFXI_TYPE_LIST, in[1], err);
    cfx_object *all = items ? empty_list(w, err) : NULL;
    bool good = all != NULL;
    bool passed = true;
    for (size_t i = 0; good && i < items->as.seq.n; i++) {
        cfx_object *item = items->as.seq.items[i];
        cfx_object *answer = passed ? cfxi_world_call_with(w, in[0], &item, 1, err) : NULL;
        const int truth = !passed ? 0 : answer ? cfxi_world_truth_of(w, answer, err) : -1;
        cfxi_world_unref(answer);
        good = truth >= 0;
        passed = truth == 1;
        if (good && passed == before)
            good = cfxi_world_list_append(all, item, err) == CFX_OK;
    }
    cfxi_world_unref(items);
    if (!good)
        cfxi_world_clear(&all);
    return over(w, all, err);
}

CFXI_BUILTIN(take_while) { return by_test(w, a, "takewhile", true, err); }
CFXI_BUILTIN(drop_while) { return by_test(w, a, "dropwhile", false, err); }

CFXI_BUILTIN(star_map)
{
    cfx_object *in[2];
    if (cfxi_world_args(w, a, "starmap", NULL, 2, 2, in, err) != CFX_OK)
        return NULL;
    cfx_object *items = cfxi_world_collect(w, CFXI_TYPE_LIST, in[1], err);
    cfx_object *all = items ? empty_list(w, err) : NULL;
    for (size_t i = 0; all && i < items->as.seq.n; i++) {
        cfx_object *args = cfxi_world_collect(w, CFXI_TYPE_TUPLE, items->as.seq.items[i], err);
        cfx_object *made = args ? cfxi_world_call_with(w, in[0], args->as.seq.items, args->as.seq.n,
                                                       err) : NULL;
        cfxi_world_unref(args);
        if (!take(all, made, err))
            cfxi_world_clear(&all);
    }
    cfxi_world_unref(items);
    return over(w, all, err);
}

/* ---- side by side -------------------------------------------------------------------------- */

CFXI_BUILTIN(pairwise)
{
    cfx_object *in[1];
    if (cfxi_world_args(w, a, "pairwise", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    cfx_object *items = cfxi_world_collect(w, CFXI_TYPE_LIST, in[0], err);
    cfx_object *all = items ? empty_list(w, err) : NULL;
    for (size_t i = 0; all && i + 1 < items->as.seq.n; i++)
        if (!take(all, cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, items->as.seq.items + i, 2, err),
                  err))
            cfxi_world_clear(&all);
    cfxi_world_unref(items);
    return over(w, all, err);
}

enum { MOST_PLACES = 32 };

/* The arguments as lists; *longest of them. false: it failed, and they are to be let go of. */
static bool collect_all(cfxi_world *w, cfx_object *const *from, size_t n, cfx_object **lists,
                        size_t *longest, cfx_error *err)
{
    *longest = 0;
    if (n > MOST_PLACES) {
        cfxi_world_raise(w, err, CFXI_ValueError, "this function takes at most "
                         "%d iterables", MOST_PLACES);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        lists[i] = cfxi_world_collect(w, CFXI_TYPE_LIST, from[i], err);
        if (!lists[i])
            return false;
        *longest = lists[i]->as.seq.n > *longest ? lists[i]->as.seq.n : *longest;
    }
    return true;
}

CFXI_BUILTIN(zip_longest)
{
    cfx_object *lists[MOST_PLACES] = {NULL};
    cfx_object *row[MOST_PLACES];
    const size_t n = a->n - a->n_named;
    cfx_object *fill = a->n_named ? a->args[n] : w->none;
    size_t longest;
    if (a->n_named > 1 || (a->n_named == 1 && strcmp(a->names[0], "fillvalue") != 0))
        return cfxi_world_raise(w, err, CFXI_TypeError,
                                "zip_longest() takes only the keyword argument 'fillvalue'");
    cfx_object *all = collect_all(w, a->args, n, lists, &longest, err) ? empty_list(w, err) : NULL;
    for (size_t i = 0; all && i < longest; i++) {
        for (size_t k = 0; k < n; k++)
            row[k] = i < lists[k]->as.seq.n ? lists[k]->as.seq.items[i] : fill;
        if (!take(all, cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, row, n, err), err))
            cfxi_world_clear(&all);
    }
    for (size_t k = 0; k < MOST_PLACES; k++)
        cfxi_world_unref(lists[k]);
    return over(w, all, err);
}

/* ---- arrangements -------------------------------------------------------------------------- */

typedef enum arrangement { PRODUCT, COMBINATIONS, COMBINATIONS_AGAIN, PERMUTATIONS } arrangement;

static bool among(const size_t *at, size_t n, size_t i)
{
    for (size_t k = 0; k < n; k++)
        if (at[k] == i)
            return true;
    return false;
}

/* The first number from `from` on that is not among the first n. */
static size_t unused(const size_t *at, size_t n, size_t from)
{
    while (among(at, n, from))
        from++;
    return from;
}

/* The first that may stand at a place, by those before it. */
static size_t first_at(arrangement kind, const size_t *at, size_t i)
{
    if (kind == PERMUTATIONS)
        return unused(at, i, 0);
    if (i == 0 || kind == PRODUCT)
        return 0;
    return at[i - 1] + (kind == COMBINATIONS);
}

/* The next arrangement of r numbers below n (PRODUCT: below sizes[i]), in Python's order. */
static bool advance(arrangement kind, size_t *at, size_t r, cfx_object *const *lists)
{
    for (size_t i = r; i-- > 0;) {
        const size_t next = kind == PERMUTATIONS ? unused(at, i, at[i] + 1) : at[i] + 1;
        const size_t n = lists[kind == PRODUCT ? i : 0]->as.seq.n;
        if (next >= (kind == COMBINATIONS ? n - (r - 1 - i) : n))
            continue;
        at[i] = next;
        for (size_t k = i + 1; k < r; k++)
            at[k] = first_at(kind, at, k);
        return true;
    }
    return false;
}

static cfx_object *arranged(cfxi_world *w, arrangement kind, cfx_object *const *lists, size_t r,
                            cfx_error *err)
{
    size_t at[MOST_PLACES];
    cfx_object *row[MOST_PLACES];
    cfx_object *all = empty_list(w, err);
    bool more = true;
    for (size_t i = 0; i < r; i++) {
        const size_t n = lists[kind == PRODUCT ? i : 0]->as.seq.n;
        at[i] = first_at(kind, at, i);
        more = more && at[i] < n;
    }
    while (all && more) {
        for (size_t i = 0; i < r; i++)
            row[i] = lists[kind == PRODUCT ? i : 0]->as.seq.items[at[i]];
        if (!take(all, cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, row, r, err), err))
            cfxi_world_clear(&all);
        more = advance(kind, at, r, lists);
    }
    return over(w, all, err);
}

static cfx_object *choose(cfxi_world *w, const cfx_call_args *a, const char *name, arrangement kind,
                          cfx_error *err)
{
    static const char *const names[] = {"iterable", "r"};
    cfx_object *in[2];
    int64_t r = 0;
    if (cfxi_world_args(w, a, name, names, kind == PERMUTATIONS ? 1 : 2, 2, in, err) != CFX_OK)
        return NULL;
    cfx_object *list = cfxi_world_collect(w, CFXI_TYPE_LIST, in[0], err);
    cfx_object *made = NULL;
    const bool all = !in[1] || (kind == PERMUTATIONS && in[1]->type == CFXI_TYPE_NONE);
    if (!list || (!all && cfxi_world_index_of(w, in[1], "r", &r, err) != CFX_OK))
        goto done;
    if (all)
        r = (int64_t)list->as.seq.n;
    if (r < 0)
        cfxi_world_raise(w, err, CFXI_ValueError, "r must be non-negative");
    else if (r > MOST_PLACES)
        cfxi_world_raise(w, err, CFXI_ValueError, "%s() does not support r "
                         "larger than %d", name, MOST_PLACES);
    else if ((size_t)r > list->as.seq.n && kind != COMBINATIONS_AGAIN)
        made = over(w, empty_list(w, err), err);
    else
        made = arranged(w, kind, &list, (size_t)r, err);
done:
    cfxi_world_unref(list);
    return made;
}

CFXI_BUILTIN(combinations) { return choose(w, a, "combinations", COMBINATIONS, err); }
CFXI_BUILTIN(permutations) { return choose(w, a, "permutations", PERMUTATIONS, err); }
CFXI_BUILTIN(combinations_again)
{
    return choose(w, a, "combinations_with_replacement", COMBINATIONS_AGAIN, err);
}

CFXI_BUILTIN(product)
{
    cfx_object *lists[MOST_PLACES] = {NULL};
    const size_t n = a->n - a->n_named;
    int64_t times = 1;
    size_t longest;
    cfx_object *made = NULL;
    if (a->n_named > 1 || (a->n_named == 1 && strcmp(a->names[0], "repeat") != 0))
        return cfxi_world_raise(w, err, CFXI_TypeError, "product() takes only the keyword argument "
                                "'repeat'");
    if (a->n_named && cfxi_world_index_of(w, a->args[n], "repeat", &times, err) != CFX_OK)
        return NULL;
    if (times < 0 || (n > 0 && times > MOST_PLACES / (int64_t)n))
        return cfxi_world_raise(w, err, CFXI_ValueError,
                                "product() takes 0 to %d iterables, "
                                "counting 'repeat'", MOST_PLACES);
    if (collect_all(w, a->args, n, lists, &longest, err)) {
        const size_t r = n * (size_t)times;
        for (size_t i = n; i < r; i++)
            lists[i] = cfxi_world_ref(lists[i - n]);
        made = arranged(w, PRODUCT, lists, r, err);
    }
    for (size_t k = 0; k < MOST_PLACES; k++)
        cfxi_world_unref(lists[k]);
    return made;
}

cfx_object *cfxi_world_itertools(cfxi_world *w, const char *name, const char *full, cfx_error *err)
{
    static const cfxi_builtin functions[] = {
        {"accumulate", accumulate}, {"chain", chain}, {"combinations", combinations},
        {"combinations_with_replacement", combinations_again}, {"count", count},
        {"dropwhile", drop_while}, {"islice", islice}, {"pairwise", pairwise},
        {"permutations", permutations}, {"product", product},
        {"repeat", repeat}, {"starmap", star_map}, {"takewhile", take_while},
        {"zip_longest", zip_longest}, {NULL, NULL}};
    const cfxi_builtin *row = cfxi_world_row_find(functions, name);
    cfx_object *made = row ? cfxi_world_builtin_object(w, full, row->fn, CFX_OPID_NONE, err) : NULL;
    if (!made || row->fn != chain)
        return made;
    cfx_object *of = cfxi_world_builtin_object(w, "itertools.chain.from_iterable", from_iterable,
                                               CFX_OPID_NONE, err);
    made->attrs = of ? cfxi_world_dict_object(w, CFXI_TYPE_DICT, err) : NULL;
    if (!made->attrs || cfxi_world_dict_put(made->attrs, "from_iterable", of, err) != CFX_OK)
        cfxi_world_clear(&made);
    cfxi_world_unref(of);
    return made;
}
