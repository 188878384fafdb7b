/* world_calls.c - what is asked of the world, and the pool of what it gave. */
#include "graph_control_impl.h"

/* ---- memory -------------------------------------------------------------------------------- */

void *cfxi_eval_ev_alloc(cfx_evaluator *ev, size_t size)
{
    void *block = cfxi_base_arena_zeros(&ev->arena, size, 1);
    if (!block)
        cfxi_base_nomem(ev->err);
    return block;
}

cfx_object *cfxi_eval_pool(cfx_evaluator *ev, cfx_object *o)
{
    if (!o)
        return NULL;
    if (!cfxi_base_vec_reserve(&ev->pool, 1, sizeof o, ev->allocator)) {
        ev->w->release(ev->w->ctx, o);
        cfxi_base_nomem(ev->err);
        return NULL;
    }
    ((cfx_object **)ev->pool.data)[ev->pool.size++] = o;
    return o;
}

/* ---- making objects ------------------------------------------------------------------------ */

bool cfxi_eval_born(cfx_evaluator *ev, cfx_object *o)
{
    const uintptr_t born = ev->starts ? ev->region->number - 1 : ev->regions;
    if (cfxi_base_pointers_set(&ev->births, o, (void *)born, ev->allocator) &&
        (!ev->starts || cfxi_base_pointers_set(ev->starts, o, o, ev->allocator)))
        return true;
    cfxi_base_nomem(ev->err);
    return false;
}

cfx_object *cfxi_eval_build(cfx_evaluator *ev, cfx_script_build what, cfx_object *const *items,
                            size_t n)
{
    cfx_object *o = cfxi_eval_pool(ev, ev->w->build(ev->w->ctx, what, items, n, ev->err));
    const bool can_change = what == CFX_BUILD_LIST || what == CFX_BUILD_DICT ||
                            what == CFX_BUILD_SET || what == CFX_BUILD_LIKE;
    return !o || !can_change || cfxi_eval_born(ev, o) ? o : NULL;
}

cfx_object *cfxi_eval_int(cfx_evaluator *ev, int64_t i)
{
    const cfx_script_literal literal = {.kind = CFX_OBJECT_INT, .i = i};
    return cfxi_eval_pool(ev, ev->w->literal(ev->w->ctx, &literal, ev->err));
}

cfx_object *cfxi_eval_str(cfx_evaluator *ev, const char *text)
{
    const cfx_script_literal literal = {.kind = CFX_OBJECT_STR, .text = text, .size = strlen(text)};
    return cfxi_eval_pool(ev, ev->w->literal(ev->w->ctx, &literal, ev->err));
}

cfx_object *cfxi_eval_bool(cfx_evaluator *ev, bool b) { return b ? ev->true_ : ev->false_; }

cfx_object *cfxi_eval_tuple(cfx_evaluator *ev, cfx_object *const *items, size_t n)
{
    return cfxi_eval_build(ev, CFX_BUILD_TUPLE, items, n);
}

cfx_object *cfxi_eval_new_list(cfx_evaluator *ev, cfx_object *const *items, size_t n)
{
    return cfxi_eval_build(ev, CFX_BUILD_LIST, items, n);
}

cfx_object *cfxi_eval_proxy(cfx_evaluator *ev, cfx_node *n)
{
    return cfxi_eval_pool(ev, ev->w->proxy(ev->w->ctx, n, ev->err));
}

/* ---- what is in them ----------------------------------------------------------------------- */

/* The references that the world gave go into the pool. */
bool cfxi_eval_contents(cfx_evaluator *ev, cfx_object *o, cfx_object ***items, size_t *n)
{
    const cfx_world *w = ev->w;
    cfx_object **given = NULL;
    size_t count = 0;
    if (w->contents(w->ctx, o, &given, &count, ev->err) != CFX_OK)
        return false;
    cfx_object **copy = cfxi_eval_ev_alloc(ev, (count + 1) * sizeof *copy);
    bool fine = copy != NULL;
    for (size_t i = 0; i < count && fine; i++) {
        w->retain(w->ctx, given[i]);
        copy[i] = cfxi_eval_pool(ev, given[i]);
        fine = copy[i] != NULL;
    }
    w->drop(w->ctx, given, count);
    *items = copy;
    *n = count;
    return fine;
}

static bool is_listed(cfx_object_kind kind)
{
    return kind == CFX_OBJECT_TUPLE || kind == CFX_OBJECT_NAMED_TUPLE || kind == CFX_OBJECT_LIST;
}

void *cfxi_eval_fail_count(cfx_evaluator *ev, cfx_object *o)
{
    return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                          "the number of items in this %s depends on data; index it (x[0], "
                          "x[1]), use a for loop, or call a torch function on the whole value",
                          cfxi_eval_kind_name(ev, o));
}

const char *cfxi_eval_text(cfx_evaluator *ev, cfx_object *o)
{
    size_t size = 0;
    const char *text = ev->w->text(ev->w->ctx, o, &size);
    char *copy = text ? cfxi_eval_ev_alloc(ev, size + 1) : NULL;
    return copy ? memcpy(copy, text, size) : NULL;
}

bool cfxi_eval_items(cfx_evaluator *ev, cfx_object *o, cfx_object ***items, size_t *n)
{
    const cfx_world *w = ev->w;
    cfxi_objects found = {0};
    cfx_object *item;
    o = cfxi_eval_current(ev, o);
    if (cfxi_eval_node(ev, o))
        return cfxi_eval_fail_count(ev, o);
    if (is_listed(w->kind(w->ctx, o)))
        return cfxi_eval_contents(ev, o, items, n);
    if (cfxi_eval_is_iterator(ev, o))
        return cfxi_eval_rest(ev, o, items, n);
    cfx_object *owner = o;
    if (cfxi_eval_change(ev, &owner) == CFX_CHANGE_ITERATOR && !cfxi_eval_will_change(ev, o))
        return false;
    cfx_object *iterator = cfxi_eval_pool(ev, w->iterate(w->ctx, o, ev->err));
    if (!iterator)
        return false;
    while ((item = w->next(w->ctx, iterator, ev->err)) != NULL) {
        if (!cfxi_eval_pool(ev, item) || !cfxi_eval_push(ev, &found, item))
            return false;
        if (found.n > ev->options.most_rounds)
            return cfxi_eval_fail(ev, NULL, CFX_E_LIMIT, "this iterable gives more than %u items; "
                                  "check that it ends", (unsigned)ev->options.most_rounds);
    }
    *items = found.items;
    *n = found.n;
    return ev->err->status == CFX_OK;
}

/* ---- operations ---------------------------------------------------------------------------- */

/* What the world gave. If it called back, and dealt itself with what failed there, that is over. */
static cfx_object *given(cfx_evaluator *ev, cfx_object *o)
{
    if (o && ev->traced && !ev->raised)
        cfxi_eval_forget_failure(ev);
    return cfxi_eval_note_new(ev, cfxi_eval_pool(ev, o));
}

cfx_object *cfxi_eval_unary(cfx_evaluator *ev, cfx_script_sign sign, cfx_object *a)
{
    return given(ev, ev->w->unary(ev->w->ctx, sign, cfxi_eval_current(ev, a), ev->err));
}

cfx_object *cfxi_eval_binary(cfx_evaluator *ev, cfx_script_sign sign, cfx_object *a, cfx_object *b)
{
    cfx_object *v = given(ev, ev->w->binary(ev->w->ctx, sign, cfxi_eval_current(ev, a),
                                            cfxi_eval_current(ev, b), false, ev->err));
    const bool is_list =
        v && !cfxi_eval_node(ev, v) && ev->w->kind(ev->w->ctx, v) == CFX_OBJECT_LIST;
    return !is_list || cfxi_eval_born(ev, v) ? v : NULL;  /* a + b, a * 3: always a new one */
}

cfx_object *cfxi_eval_compare(cfx_evaluator *ev, cfx_script_sign sign, cfx_object *a, cfx_object *b)
{
    cfx_object *owner = b;
    if ((sign == CFX_SIGN_IN || sign == CFX_SIGN_NOT_IN) && !cfxi_eval_node(ev, b) &&
        cfxi_eval_change(ev, &owner) == CFX_CHANGE_ITERATOR && !cfxi_eval_will_change(ev, b))
        return NULL;  /* it is advanced to the item */
    const bool is_identity = sign == CFX_SIGN_IS || sign == CFX_SIGN_IS_NOT;
    const bool by_key = (sign == CFX_SIGN_IN || sign == CFX_SIGN_NOT_IN) &&
                        cfxi_eval_kind(ev, b) == CFX_OBJECT_DICT;
    a = is_identity ? cfxi_eval_current(ev, a) : cfxi_eval_current_deep(ev, a);
    b = is_identity || by_key ? cfxi_eval_current(ev, b) : cfxi_eval_current_deep(ev, b);
    return a && b ? given(ev, ev->w->compare(ev->w->ctx, sign, a, b, ev->err)) : NULL;
}

cfx_object *cfxi_eval_get(cfx_evaluator *ev, cfx_object *o, const char *name)
{
    return given(ev, ev->w->get(ev->w->ctx, cfxi_eval_current(ev, o), name, ev->err));
}

cfx_object *cfxi_eval_get_method(cfx_evaluator *ev, cfx_object *o, const char *name)
{
    const cfx_world *w = ev->w;
    o = cfxi_eval_current(ev, o);
    return cfxi_eval_pool(ev, w->get_method ? w->get_method(w->ctx, o, name, ev->err)
                                       : w->get(w->ctx, o, name, ev->err));
}

cfx_object *cfxi_eval_item(cfx_evaluator *ev, cfx_object *o, cfx_object *key)
{
    const cfx_world *w = ev->w;
    if (w->item_adds && !cfxi_eval_node(ev, o) && w->item_adds(w->ctx, o, key) &&
        !cfxi_eval_will_change(ev, o))
        return NULL;
    return given(ev, ev->w->item(ev->w->ctx, cfxi_eval_current(ev, o), cfxi_eval_current(ev, key),
                                 ev->err));
}

/* What a function that takes all items of its arguments is given: lists. */
static bool list_iterators(cfx_evaluator *ev, cfx_object *f, cfx_call_args *args)
{
    cfx_object **lists = NULL;
    for (size_t i = 0; ev->prelude && i < args->n - args->n_named; i++) {
        cfx_object **items;
        size_t n;
        if (!cfxi_eval_is_iterator(ev, args->args[i]))
            continue;
        if (!lists && !cfxi_eval_takes_all(ev, f))
            return true;
        if (!lists && (lists = cfxi_eval_ev_alloc(ev, args->n * sizeof *lists)) != NULL)
            memcpy(lists, args->args, args->n * sizeof *lists);
        if (!lists || !cfxi_eval_rest(ev, args->args[i], &items, &n) ||
            !(lists[i] = cfxi_eval_new_list(ev, items, n)))
            return false;
    }
    if (lists)
        args->args = lists;
    return true;
}

/* ---- arguments that are growing ------------------------------------------------------------- */

/* What a function does with lists and dicts that it is given. */
typedef enum kept_kind {
    KEEPS_NOTHING,   /* or nobody knows: it gets their graph values */
    KEEPS_ITEMS,     /* copies what they hold: it gets their graph values, but what is in a known
                        one as it is */
    KEEPS_ARGUMENTS  /* puts them into a container: it gets them as they are */
} kept_kind;

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/* Whether objects of the class hold what they are made of: a named tuple, a dataclass; `o` is the
 * class, or one of them. */
static bool has_fields(cfx_evaluator *ev, cfx_object *o)
{
    static const char names[][24] = {"_fields", "__dataclass_fields__"};
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, o);
    for (size_t i = 0; i < 2 && (kind == CFX_OBJECT_CLASS || kind == CFX_OBJECT_INSTANCE); i++) {
        bool missing = false;
        if (cfxi_eval_try_get(ev, o, names[i], &missing))
            return true;
        if (!missing)
            cfxi_eval_forget_failure(ev);
    }
    return false;
}

/* Whether it is __init__, bound or with the object as its first argument. */
static bool is_init(const char *name)
{
    const size_t size = strlen(name), wanted = strlen("__init__");
    return size >= wanted && strcmp(name + size - wanted, "__init__") == 0;
}

/* *self: whose method it is, or NULL. */
static kept_kind what_it_keeps(cfx_evaluator *ev, cfx_object *f, cfx_call_args args,
                               cfx_object **self)
{
    static const char *const containers[] = {"list", "dict", "collections.deque",
                                             "collections.OrderedDict", NULL};
    static const char *const putting[] = {"append", "appendleft", "insert", "setdefault",
                                          "__setitem__", NULL};
    static const char *const reading[] = {"index", "count", "remove", "sort", NULL};
    static const char *const copying[] = {
        "builtins.list", "builtins.tuple", "builtins.dict", "builtins.zip", "builtins.enumerate",
        "builtins.reversed", "collections.deque", "collections.OrderedDict", NULL};
    static const char *const holding[] = {"functools.partial", "types.SimpleNamespace",
                                          "dataclasses.replace", NULL};
    char name[96];
    *self = NULL;
    if (ev->w->kind(ev->w->ctx, f) == CFX_OBJECT_CLASS && has_fields(ev, f))
        return KEEPS_ARGUMENTS;
    if (!ev->w->call_name || !ev->w->call_name(ev->w->ctx, f, name, sizeof name, self))
        return KEEPS_NOTHING;
    if (!*self && is_init(name) && args.n > 0)
        *self = args.args[0];
    if (*self && is_init(name) && has_fields(ev, *self))
        return KEEPS_ARGUMENTS;
    char *method = strrchr(name, '.');
    if (!*self || !method)
        return is_one_of(name, copying) ? KEEPS_ITEMS
               : is_one_of(name, holding) ? KEEPS_ARGUMENTS : KEEPS_NOTHING;
    *method++ = '\0';
    if (!is_one_of(name, containers) || is_one_of(method, reading))
        return KEEPS_NOTHING;
    return is_one_of(method, putting) ? KEEPS_ARGUMENTS : KEEPS_ITEMS;
}

/* The arguments as the world is to see them; *lent: some are graph values, which it may keep, also
 * in *self. */
static bool show_arguments(cfx_evaluator *ev, cfx_object *f, cfx_call_args *args, bool *lent,
                           cfx_object **self)
{
    const kept_kind kept = what_it_keeps(ev, f, *args, self);
    cfx_object **shown = cfxi_eval_ev_alloc(ev, args->n * sizeof *shown);
    for (size_t i = 0; shown && i < args->n; i++) {
        const bool as_it_is = kept == KEEPS_ARGUMENTS ||
                              (kept == KEEPS_ITEMS && i >= args->n - args->n_named);
        cfx_object *rest = as_it_is ? args->args[i] : cfxi_eval_drained(ev, args->args[i]);
        shown[i] = rest && kept == KEEPS_NOTHING ? cfxi_eval_current_deep(ev, rest) : rest;
        if (!shown[i])
            return false;
        *lent = *lent || shown[i] != args->args[i];
    }
    args->args = shown;
    return shown != NULL;
}

/* Whether what a call gave may hold its arguments. */
static bool may_hold(cfx_evaluator *ev, cfx_object *o)
{
    if (cfxi_eval_node(ev, o))
        return false;
    switch (ev->w->kind(ev->w->ctx, o)) {
    case CFX_OBJECT_NONE:
    case CFX_OBJECT_BOOL:
    case CFX_OBJECT_INT:
    case CFX_OBJECT_FLOAT:
    case CFX_OBJECT_STR:
    case CFX_OBJECT_TENSOR:
        return false;
    default:
        return true;
    }
}

/* The world keeps the graph values of these, as they are now: they may not change any more. */
static bool note_lent(cfx_evaluator *ev, cfx_call_args args, cfx_object *result, cfx_object *self)
{
    if (!may_hold(ev, result) && !(self && may_hold(ev, self)))
        return true;
    for (size_t i = 0; i < args.n; i++)
        if (!cfxi_eval_lend(ev, args.args[i]))
            return false;
    return true;
}

static cfx_object *call(cfx_evaluator *ev, cfx_object *f, cfx_call_args args, bool watched)
{
    bool lent = false;
    cfx_object *self = NULL;
    if (!list_iterators(ev, f, &args))
        return NULL;
    const cfx_call_args before = args;
    if (ev->growing.n > 0 && args.n > 0 && !show_arguments(ev, f, &args, &lent, &self))
        return NULL;
    const bool makes = ev->w->kind(ev->w->ctx, f) == CFX_OBJECT_CLASS;
    cfxi_watch watch = {0};
    cfx_object *result = !watched || cfxi_eval_watch_begin(ev, f, args, &watch)
                             ? given(ev, ev->w->call(ev->w->ctx, f, args, ev->err)) : NULL;
    if (!cfxi_eval_watch_end(ev, &watch) ||
        (result && lent && !note_lent(ev, before, result, self)))
        return NULL;
    return !result || !makes || cfxi_eval_born(ev, result) ? result : NULL;
}

cfx_object *cfxi_eval_world_call(cfx_evaluator *ev, cfx_object *f, cfx_call_args args)
{
    return call(ev, f, args, true);
}

cfx_object *cfxi_eval_world_call_bound(cfx_evaluator *ev, cfx_object *f, cfx_object *self,
                                       cfx_call_args args)
{
    return call(ev, f, args, !cfxi_eval_changes_own(ev, self, args));
}

/* bool(o): what __bool__ gives may be a graph value. */
static cfx_object *truth_of_instance(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object *f = cfxi_eval_builtin(ev, "bool");
    return f ? cfxi_eval_world_call(ev, f, cfxi_eval_args(&o, 1)) : NULL;
}

cfxi_eval_truth cfxi_eval_truth_of(cfx_evaluator *ev, cfx_object **o)
{
    const cfx_world *w = ev->w;
    *o = cfxi_eval_current(ev, *o);
    if (!cfxi_eval_node(ev, *o) && w->kind(w->ctx, *o) == CFX_OBJECT_INSTANCE &&
        !(*o = truth_of_instance(ev, *o)))
        return CFXI_TRUTH_FAIL;
    if (!cfxi_eval_node(ev, *o) && w->kind(w->ctx, *o) == CFX_OBJECT_TENSOR) {
        cfx_object *read = cfxi_eval_pool(ev, w->tensor(w->ctx, *o, ev->err));
        if (!read && ev->err->status != CFX_OK)
            return CFXI_TRUTH_FAIL;
        *o = read ? read : *o;
    }
    if (cfxi_eval_node(ev, *o))
        return cfxi_eval_kind(ev, *o) == CFX_OBJECT_NONE ? CFXI_FALSE : CFXI_TRUTH_GRAPH;
    const int truth = w->truth(w->ctx, *o, ev->err);
    return truth < 0 ? CFXI_TRUTH_FAIL : truth ? CFXI_TRUE : CFXI_FALSE;
}

cfx_object *cfxi_eval_builtin(cfx_evaluator *ev, const char *name)
{
    cfx_error ignored = {0};
    cfx_object *globals = ev->frame ? ev->frame->globals : NULL;
    cfx_object *found = cfxi_eval_pool(ev, ev->w->global(ev->w->ctx, globals, name, &ignored));
    if (!found && ignored.status == CFX_E_NOMEM)  /* it may be there */
        cfxi_base_nomem(ev->err);
    return found;
}
