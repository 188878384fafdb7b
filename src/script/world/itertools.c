/* itertools.c - Python's itertools: arrangements. What they give is known, so each makes a list at
 * once, and an iterator of it. The others are in special.def. */
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

enum { MOST_PLACES = 32 };

/* The arguments as lists. false: it failed, and they are to be let go of. */
static bool collect_all(cfxi_world *w, cfx_object *const *from, size_t n, cfx_object **lists,
                        cfx_error *err)
{
    if (n > MOST_PLACES) {
        cfxi_world_raise(w, err, CFXI_ValueError, "this function takes at most "
                         "%d iterables", MOST_PLACES);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        lists[i] = cfxi_world_collect(w, CFXI_TYPE_LIST, from[i], err);
        if (!lists[i])
            return false;
    }
    return true;
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
    if (collect_all(w, a->args, n, lists, err)) {
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
        {"combinations", combinations}, {"combinations_with_replacement", combinations_again},
        {"permutations", permutations}, {"product", product}, {NULL, NULL}};
    const cfxi_builtin *row = cfxi_world_row_find(functions, name);
    if (row)
        return cfxi_world_builtin_object(w, full, row->fn, CFX_OPID_NONE, err);
    if (strcmp(name, "chain") != 0)
        return NULL;
    cfx_object *made = cfxi_world_builtin_object(w, full, NULL, CFX_OPID_NONE, err);
    if (!made)
        return NULL;
    cfx_object *of = cfxi_world_builtin_object(w, "itertools.chain.from_iterable", NULL,
                                               CFX_OPID_NONE, err);
    made->attrs = of ? cfxi_world_dict_object(w, CFXI_TYPE_DICT, err) : NULL;
    if (!made->attrs || cfxi_world_dict_put(made->attrs, "from_iterable", of, err) != CFX_OK)
        cfxi_world_clear(&made);
    cfxi_world_unref(of);
    return made;
}
