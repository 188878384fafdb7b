/* display.c - tuples, lists, sets and dicts as they are written, with what stands behind stars.
 *
 * A star before a graph value makes the whole a graph value: what is known is put together, and
 * operator.add joins the pieces:
 *
 *     (1, 2, *x, y)      operator.add(operator.add((1, 2), tuple(x)), (y,))
 */
#include "evaluate_impl.h"

bool cfxi_eval_push(cfx_evaluator *ev, cfxi_objects *list, cfx_object *o)
{
    if (list->n == list->capacity) {
        const size_t capacity = list->capacity ? 2 * list->capacity : 8;
        cfx_object **more = cfxi_eval_ev_alloc(ev, capacity * sizeof *more);
        if (!more)
            return false;
        if (list->n > 0)
            memcpy(more, list->items, list->n * sizeof *more);
        cfxi_base_arena_free(&ev->arena, list->items, list->capacity * sizeof *more);
        list->items = more;
        list->capacity = capacity;
    }
    list->items[list->n++] = o;
    return o != NULL;
}

static bool push_all(cfx_evaluator *ev, cfxi_objects *list, cfx_object **items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!cfxi_eval_push(ev, list, items[i]))
            return false;
    }
    return true;
}

/* ---- joining ------------------------------------------------------------------------------- */

/* Something that is written piece by piece, of which a piece may be a graph value. */
typedef struct pieces {
    cfx_script_build what;
    const char *join;      /* the function that joins two */
    cfxi_objects known;    /* since the last graph value */
    cfx_object *joined;    /* what was before that; NULL: nothing, and all is known so far */
} pieces;

static bool join(cfx_evaluator *ev, pieces *p, cfx_object *piece)
{
    cfx_object *both[] = {p->joined, piece};
    if (piece)
        p->joined = p->joined ? cfxi_eval_record(ev, p->join, both, 2) : piece;
    return piece && p->joined;
}

/* What is known becomes a piece. */
static bool flush(cfx_evaluator *ev, pieces *p)
{
    if (p->known.n == 0)
        return true;
    const bool done = join(ev, p, cfxi_eval_build(ev, p->what, p->known.items, p->known.n));
    p->known = (cfxi_objects){0};
    return done;
}

static cfx_object *finish(cfx_evaluator *ev, pieces *p)
{
    if (!p->joined)
        return cfxi_eval_build(ev, p->what, p->known.items, p->known.n);
    return flush(ev, p) ? p->joined : NULL;
}

/* ---- items --------------------------------------------------------------------------------- */

static bool add_star(cfx_evaluator *ev, pieces *p, const cfxi_ast *value)
{
    cfx_object *v = cfxi_eval(ev, value);
    cfx_object **items;
    size_t n;
    if (!v)
        return false;
    cfxi_eval_at(ev, value);
    if (!(v = cfxi_eval_drained(ev, v)))
        return false;
    if (cfxi_eval_node(ev, v) && p->join) {
        const char *make = p->what == CFX_BUILD_LIST ? "builtins.list" : "builtins.tuple";
        return flush(ev, p) && join(ev, p, cfxi_eval_record(ev, make, &v, 1));
    }
    return cfxi_eval_items(ev, v, &items, &n) && push_all(ev, &p->known, items, n);
}

/* Containers hold what the program put in: a list that is growing stays itself in them. `args`: a
 * generator among them is consumed by the call. */
static bool add_items(cfx_evaluator *ev, pieces *p, cfxi_ast_list list, bool args)
{
    for (size_t i = 0; i < list.count; i++) {
        const cfxi_ast *item = list.items[i];
        const bool fine = item->kind == CFXI_AST_Starred
                              ? add_star(ev, p, cfxi_syntax_as_Starred(item)->value)
                          : args && item->kind == CFXI_AST_GeneratorExp
                              ? cfxi_eval_push(ev, &p->known, cfxi_eval_comprehend(ev, item))
                              : cfxi_eval_push(ev, &p->known, cfxi_eval_raw(ev, item));
        if (!fine)
            return false;
    }
    return true;
}

bool cfxi_eval_list(cfx_evaluator *ev, cfxi_ast_list list, bool may_join, cfxi_objects *out)
{
    pieces p = {.what = CFX_BUILD_TUPLE, .join = may_join ? "operator.add" : NULL};
    if (!add_items(ev, &p, list, true))
        return false;
    *out = p.known;
    if (!p.joined)
        return true;
    if (!flush(ev, &p))
        return false;
    *out = (cfxi_objects){0};
    return cfxi_eval_push(ev, out, p.joined);
}

cfx_object *cfxi_eval_display(cfx_evaluator *ev, const cfxi_ast *node, cfxi_ast_list elts,
                              cfx_script_build what)
{
    pieces p = {.what = what, .join = what == CFX_BUILD_SET ? NULL : "operator.add"};
    if (!add_items(ev, &p, elts, false))
        return NULL;
    cfxi_eval_at(ev, node);
    return finish(ev, &p);
}

/* ---- dicts --------------------------------------------------------------------------------- */

bool cfxi_eval_mapping(cfx_evaluator *ev, cfx_object *o, cfxi_objects *out)
{
    cfx_object **items;
    size_t n;
    o = cfxi_eval_current(ev, o);
    if (cfxi_eval_node(ev, o))
        return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                              "cannot unpack with **: the keys of this graph value depend on data; "
                              "pass a dict with known keys");
    if (ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_DICT)
        return cfxi_eval_contents(ev, o, &items, &n) && push_all(ev, out, items, n);
    cfx_object *keys = cfxi_eval_call_method(ev, o, "keys", cfxi_eval_args(NULL, 0));
    if (!keys || !cfxi_eval_items(ev, keys, &items, &n))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!cfxi_eval_push(ev, out, items[i]) ||
            !cfxi_eval_push(ev, out, cfxi_eval_item(ev, o, items[i])))
            return false;
    }
    return true;
}

static bool add_mapping(cfx_evaluator *ev, pieces *p, const cfxi_ast *value)
{
    cfx_object *v = cfxi_eval(ev, value);
    if (!v)
        return false;
    cfxi_eval_at(ev, value);
    if (cfxi_eval_node(ev, v))
        return flush(ev, p) && join(ev, p, cfxi_eval_record(ev, "builtins.dict", &v, 1));
    return cfxi_eval_mapping(ev, v, &p->known);
}

/* A key that data choose makes a graph value of all; not a tensor, which is a key by identity. */
static bool add_pair(cfx_evaluator *ev, pieces *p, const cfxi_ast *key, const cfxi_ast *value)
{
    cfx_object *k = cfxi_eval(ev, key);
    cfx_object *v = k ? cfxi_eval_raw(ev, value) : NULL;
    if (v && cfxi_eval_is_chosen(ev, k))
        return flush(ev, p) && join(ev, p, cfxi_eval_one_key(ev, k, v));
    return v && cfxi_eval_push(ev, &p->known, k) && cfxi_eval_push(ev, &p->known, v);
}

cfx_object *cfxi_eval_display_dict(cfx_evaluator *ev, const cfxi_Dict *d)
{
    pieces p = {.what = CFX_BUILD_DICT, .join = "operator.or_"};
    for (size_t i = 0; i < d->values.count; i++) {
        const cfxi_ast *key = d->keys.items[i];
        if (!(key ? add_pair(ev, &p, key, d->values.items[i])
                  : add_mapping(ev, &p, d->values.items[i])))
            return NULL;
    }
    cfxi_eval_at(ev, &d->ast);
    return p.joined ? cfxi_eval_adopt_dict(ev, finish(ev, &p)) : finish(ev, &p);
}
