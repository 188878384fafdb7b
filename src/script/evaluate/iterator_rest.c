/* iterator_rest.c - the remaining items of an iterator of the prelude.
 *
 * Asked one by one, each item is a call that is evaluated. Where it is known what an iterator will
 * give, its items are taken at once, and its position is set behind them.
 */
#include "evaluate_impl.h"

bool cfxi_eval_is_iterator(cfx_evaluator *ev, cfx_object *o)
{
    if (!ev->prelude_names || cfxi_eval_node(ev, o) ||
        ev->w->kind(ev->w->ctx, o) != CFX_OBJECT_INSTANCE)
        return false;
    cfx_object *class = cfxi_eval_get(ev, o, "__class__");
    return class && cfxi_base_pointers_get(&ev->iterators, class);
}

static bool is(cfx_evaluator *ev, cfx_object *o, const char *class)
{
    return strcmp(ev->w->type_name(ev->w->ctx, o), class) == 0 && cfxi_eval_is_iterator(ev, o);
}

static bool known_int(cfx_evaluator *ev, cfx_object *o, int64_t *i)
{
    return o && !cfxi_eval_node(ev, o) && ev->w->integer(ev->w->ctx, o, i);
}

/* ---- of a list or tuple -------------------------------------------------------------------- */

typedef struct by_index {
    cfx_object *o;
    cfx_object **items;      /* those that are left */
    size_t n;
    int64_t at;
} by_index;

/* *done is false if it is another iterator, or if its position is unknown. */
static bool read(cfx_evaluator *ev, cfx_object *o, by_index *b, bool *done)
{
    *b = (by_index){.o = o};
    *done = false;
    if (!is(ev, o, "iterator"))
        return ev->err->status == CFX_OK;
    cfx_object *items = cfxi_eval_get(ev, o, "items");
    cfx_object *at = items ? cfxi_eval_get(ev, o, "at") : NULL;
    cfx_object *over = at ? cfxi_eval_get(ev, o, "over") : NULL;
    if (!over)
        return false;
    const cfx_object_kind kind =
        cfxi_eval_node(ev, cfxi_eval_current(ev, items)) ? CFX_OBJECT_OTHER
                                                         : ev->w->kind(ev->w->ctx, items);
    *done = (kind == CFX_OBJECT_LIST || kind == CFX_OBJECT_TUPLE) && over == ev->false_ &&
            known_int(ev, at, &b->at);
    if (!*done)
        return true;
    if (!cfxi_eval_contents(ev, items, &b->items, &b->n))
        return false;
    const size_t first = (size_t)b->at < b->n ? (size_t)b->at : b->n;
    b->items += first;
    b->n -= first;
    return true;
}

/* It has given n of them; one more was asked for: `over`. */
static bool advance(cfx_evaluator *ev, const by_index *b, size_t n, bool over)
{
    cfx_object *at = cfxi_eval_int(ev, b->at + (int64_t)n);
    return at && cfxi_eval_set(ev, b->o, "at", at) &&
           (!over || cfxi_eval_set(ev, b->o, "over", ev->true_));
}

static bool rest_by_index(cfx_evaluator *ev, cfx_object *o, cfxi_objects *out, bool *done)
{
    by_index b;
    if (!read(ev, o, &b, done) || !*done)
        return ev->err->status == CFX_OK;
    *out = (cfxi_objects){.items = b.items, .n = b.n, .capacity = b.n};
    return advance(ev, &b, b.n, true);
}

/* ---- of several ---------------------------------------------------------------------------- */

/* The only iterator that a map goes over; NULL: there are more. */
static cfx_object *single(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object *all = cfxi_eval_get(ev, o, "all");
    cfx_object **items;
    size_t n;
    return all && cfxi_eval_contents(ev, all, &items, &n) && n == 1 ? items[0] : NULL;
}

static bool rest_of_map(cfx_evaluator *ev, cfx_object *o, cfxi_objects *out, bool *done)
{
    cfxi_objects in = {0};
    cfx_object *inner = single(ev, o);
    cfx_object *f = inner ? cfxi_eval_get(ev, o, "function") : NULL;
    if (!f || !rest_by_index(ev, inner, &in, done) || !*done)
        return ev->err->status == CFX_OK;
    for (size_t i = 0; i < in.n; i++)
        if (!cfxi_eval_push(ev, out, cfxi_eval_call(ev, f, cfxi_eval_args(&in.items[i], 1))))
            return false;
    return true;
}

static bool rest_of_enumerate(cfx_evaluator *ev, cfx_object *o, cfxi_objects *out, bool *done)
{
    cfxi_objects in = {0};
    int64_t now = 0;
    cfx_object *inner = cfxi_eval_get(ev, o, "items");
    if (!inner || !known_int(ev, cfxi_eval_get(ev, o, "now"), &now) ||
        !rest_by_index(ev, inner, &in, done) || !*done)
        return ev->err->status == CFX_OK;
    for (size_t i = 0; i < in.n; i++) {
        cfx_object *pair[2] = {cfxi_eval_int(ev, now++), in.items[i]};
        if (!pair[0] || !cfxi_eval_push(ev, out, cfxi_eval_tuple(ev, pair, 2)))
            return false;
    }
    cfx_object *next = cfxi_eval_int(ev, now);
    return next && cfxi_eval_set(ev, o, "now", next);
}

enum { MOST = 8 };

/* The iterators that a zip goes over, if all of them are known and no two are the same. */
static bool read_all(cfx_evaluator *ev, cfx_object *o, by_index *all, size_t *n, bool *done)
{
    cfx_object **items;
    cfx_object *list = cfxi_eval_get(ev, o, "all");
    cfx_object *strict = list ? cfxi_eval_get(ev, o, "strict") : NULL;
    *done = false;
    if (!strict || !cfxi_eval_contents(ev, list, &items, n))
        return false;
    if (strict != ev->false_ || *n == 0 || *n > MOST)
        return true;
    for (size_t i = 0; i < *n; i++) {
        if (!read(ev, items[i], &all[i], done))
            return false;
        for (size_t k = 0; k < i; k++)
            *done = *done && items[k] != items[i];
        if (!*done)
            return true;
    }
    return true;
}

static bool rest_of_zip(cfx_evaluator *ev, cfx_object *o, cfxi_objects *out, bool *done)
{
    by_index all[MOST];
    cfx_object *row[MOST];
    size_t n;
    size_t first = 0;  /* the one that ends it */
    if (!read_all(ev, o, all, &n, done) || !*done)
        return ev->err->status == CFX_OK;
    for (size_t i = 1; i < n; i++)
        first = all[i].n < all[first].n ? i : first;
    for (size_t k = 0; k < all[first].n; k++) {
        for (size_t i = 0; i < n; i++)
            row[i] = all[i].items[k];
        if (!cfxi_eval_push(ev, out, cfxi_eval_tuple(ev, row, n)))
            return false;
    }
    for (size_t i = 0; i <= first || i < n; i++)  /* those before it have given one more */
        if (!advance(ev, &all[i], all[first].n + (i < first), i == first))
            return false;
    return true;
}

/* ---- any ----------------------------------------------------------------------------------- */

/* Whether a StopIteration ended the last call; if so, clears it. */
static bool has_ended(cfx_evaluator *ev)
{
    const cfx_world *w = ev->w;
    cfx_object *class = cfxi_eval_builtin(ev, "StopIteration");
    cfx_object *exc = ev->raised;
    const bool own = exc != NULL;
    if (!class || (!own && ev->err->status != CFX_E_HOST))
        return false;
    if (!own)
        exc = cfxi_eval_pool(ev, w->caught(w->ctx));
    cfx_error err = {0};
    const bool ended = exc && w->matches(w->ctx, exc, class, &err) > 0;
    if (ended)
        cfxi_eval_forget_failure(ev);
    else if (exc && !own)
        w->raise(w->ctx, exc, NULL, ev->err);
    return ended;
}

static bool one_by_one(cfx_evaluator *ev, cfx_object *o, cfxi_objects *out)
{
    cfx_object *method = cfxi_eval_get_method(ev, o, "__next__");
    const cfxi_frame *entered = ev->entered;
    cfx_object *item = NULL;
    ev->entered = ev->frame;  /* see cfxi_eval_ends_by_data */
    while (method && (item = cfxi_eval_call(ev, method, cfxi_eval_args(NULL, 0))) != NULL &&
           cfxi_eval_push(ev, out, item)) {
        if (out->n <= ev->options.most_rounds)
            continue;
        cfxi_eval_fail(ev, NULL, CFX_E_LIMIT, "this iterable gives more than %u items; check that "
                       "it ends", (unsigned)ev->options.most_rounds);
        break;
    }
    ev->entered = entered;
    return method && !item && has_ended(ev);
}

bool cfxi_eval_rest(cfx_evaluator *ev, cfx_object *o, cfx_object ***items, size_t *n)
{
    cfxi_objects out = {0};
    bool done = false;
    bool fine = rest_by_index(ev, o, &out, &done);
    if (fine && !done && is(ev, o, "map"))
        fine = rest_of_map(ev, o, &out, &done);
    else if (fine && !done && is(ev, o, "enumerate"))
        fine = rest_of_enumerate(ev, o, &out, &done);
    else if (fine && !done && is(ev, o, "zip"))
        fine = rest_of_zip(ev, o, &out, &done);
    if (fine && !done)
        fine = one_by_one(ev, o, &out);
    *items = out.items;
    *n = out.n;
    return fine;
}
