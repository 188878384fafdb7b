/* prelude.c - functions of Python's library that the evaluator runs itself: prelude.py.
 *
 * The position of an iterator of the world can be neither read nor restored. Those of the prelude
 * are objects of classes that are evaluated like the user's: their position is an attribute. The
 * source is read when it is first needed. Its calls are not shown to the user: what happens in
 * them happens in the line that called them.
 */
#include "graph_control_impl.h"

static const char source[] = {
#include "prelude.inc"  /* generated */
};

/* ---- reading it ---------------------------------------------------------------------------- */

static const cfx_script_def *main_function(const cfx_script *script)
{
    for (size_t i = 0; i < script->n_defs; i++)
        if (strcmp(script->defs[i]->name, "prelude") == 0)
            return script->defs[i];
    return NULL;
}

/* All its classes are iterators, except all_of_tee and their base. */
static bool note_classes(cfx_evaluator *ev, cfx_object *names)
{
    cfx_object **items;
    size_t n;
    if (!cfxi_eval_contents(ev, names, &items, &n))
        return false;
    for (size_t i = 1; i < n; i += 2)
        if (ev->w->kind(ev->w->ctx, items[i]) == CFX_OBJECT_CLASS &&
            !cfxi_base_pointers_set(&ev->iterators, items[i], items[i], ev->allocator)) {
            cfxi_base_nomem(ev->err);
            return false;
        }
    return true;
}

static bool load(cfx_evaluator *ev)
{
    if (ev->prelude_names)
        return true;
    cfx_object *globals = cfxi_eval_build(ev, CFX_BUILD_DICT, NULL, 0);
    if (globals && !ev->prelude)
        ev->prelude = cfx_script_parse(source, sizeof source - 1, "prelude.py", true,
                                       ev->allocator, ev->err);
    if (!globals || !ev->prelude)
        return false;
    const cfxi_ast *at = ev->frame ? ev->frame->at : NULL;
    if (!cfxi_eval_frame_push(ev, main_function(ev->prelude), NULL, globals))
        return false;
    ev->frame->at = at;
    cfx_object *names = cfxi_eval_run_function(ev);
    if (!names || !note_classes(ev, names))
        return false;
    ev->prelude_names = names;
    return true;
}

cfx_object *cfxi_eval_call_prelude(cfx_evaluator *ev, const char *name, cfx_call_args args)
{
    cfx_object *key = load(ev) ? cfxi_eval_str(ev, name) : NULL;
    cfx_object *f = key ? cfxi_eval_item(ev, ev->prelude_names, key) : NULL;
    return f ? cfxi_eval_call(ev, f, args) : NULL;
}

bool cfxi_eval_is_prelude(const cfx_evaluator *ev, const cfxi_frame *f)
{
    return f && ev->prelude && f->def->script == ev->prelude;
}

/* ---- by the number of the function --------------------------------------------------------- */

/* The name of a function in prelude.py: what stands behind the module, with _ for dots. */
static void prelude_name(cfx_script_special which, char *out, size_t size)
{
    static const char *const names[CFX_SPECIALS] = {
#define CFX_SPECIAL(id, text) text,
#include <cfx/embed/special.def>
#undef CFX_SPECIAL
    };
    const char *dot = strchr(names[which], '.');
    size_t n = 0;
    for (const char *at = dot + 1; *at && n + 1 < size; at++)
        out[n++] = *at == '.' ? '_' : *at;
    out[n] = '\0';
}

cfx_object *cfxi_eval_call_evaluated(cfx_evaluator *ev, cfx_script_special which,
                                     cfx_call_args args)
{
    char name[40];
    prelude_name(which, name, sizeof name);
    return cfxi_eval_call_prelude(ev, name, args);
}

/* Whether it is an object of the prelude that stands for one of that class: map, zip. */
static bool stands_for(cfx_evaluator *ev, cfx_object *o, cfx_object *class)
{
    char name[40];
    cfx_script_callee callee = {.kind = CFX_CALLEE_DIRECT};
    if (!ev->prelude_names || ev->w->kind(ev->w->ctx, o) != CFX_OBJECT_INSTANCE ||
        ev->w->kind(ev->w->ctx, class) != CFX_OBJECT_CLASS ||
        ev->w->callee(ev->w->ctx, class, &callee, ev->err) != CFX_OK ||
        callee.kind != CFX_CALLEE_SPECIAL)
        return false;
    prelude_name(callee.special, name, sizeof name);
    return strcmp(ev->w->type_name(ev->w->ctx, o), name) == 0;
}

bool cfxi_eval_stands_for(cfx_evaluator *ev, cfx_object *o, cfx_object *classes)
{
    cfx_object **items;
    size_t n;
    if (ev->w->kind(ev->w->ctx, classes) != CFX_OBJECT_TUPLE)
        return stands_for(ev, o, classes);
    if (!cfxi_eval_contents(ev, classes, &items, &n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (stands_for(ev, o, items[i]))
            return true;
    return false;
}

/* ---- what it cannot say itself ------------------------------------------------------------- */

static cfx_object *known(cfx_evaluator *ev, cfx_call_args args)
{
    size_t size = 0;
    cfx_object *test = args.args[0];
    switch (cfxi_eval_truth_of(ev, &test)) {
    case CFXI_TRUTH_FAIL:
        return NULL;
    case CFXI_FALSE:
        return ev->false_;
    case CFXI_TRUE:
        return ev->true_;
    case CFXI_TRUTH_GRAPH:
        break;
    }
    const char *what = ev->w->text(ev->w->ctx, args.args[1], &size);
    return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                          "%.*s depends on data; use a for loop that appends to a list, or "
                          "torch.where", (int)size, what ? what : "");
}

/* The items that an iterator of the world has given so far. */
typedef struct log {
    cfxi_objects seen;
    bool over;
} log;

static log *log_of(cfx_evaluator *ev, cfx_object *iterator)
{
    log *l = cfxi_base_pointers_get(&ev->pulled, iterator);
    if (l || !(l = cfxi_eval_ev_alloc(ev, sizeof *l)))
        return l;
    if (cfxi_base_pointers_set(&ev->pulled, iterator, l, ev->allocator))
        return l;
    cfxi_base_nomem(ev->err);
    return NULL;
}

static cfx_object *pull(cfx_evaluator *ev, cfx_call_args args)
{
    int64_t i = 0;
    log *l = log_of(ev, args.args[0]);
    if (cfxi_eval_node(ev, args.args[1]))
        return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                              "the position of this iterator depends on data; collect its items in "
                              "a list first (list(...)), and iterate over that");
    if (!l || !ev->w->integer(ev->w->ctx, args.args[1], &i))
        return NULL;
    while (!l->over && l->seen.n <= (size_t)i) {
        cfx_object *item = cfxi_eval_pool(ev, ev->w->next(ev->w->ctx, args.args[0], ev->err));
        l->over = !item;
        if (!item && ev->err->status != CFX_OK)
            return NULL;
        if (item && !cfxi_eval_push(ev, &l->seen, item))
            return NULL;
    }
    return cfxi_eval_tuple(ev, l->seen.items + i, l->seen.n > (size_t)i);
}

cfx_object *cfxi_eval_prelude_own(cfx_evaluator *ev, const cfx_script_def *def, cfx_call_args args,
                                  bool *done)
{
    const bool inner = ev->prelude && def->script == ev->prelude && def->outer &&
                       strcmp(def->outer->name, "prelude") == 0 && args.n == 2;
    *done = inner && (strcmp(def->name, "known") == 0 || strcmp(def->name, "pull") == 0);
    if (!*done)
        return NULL;
    return def->name[0] == 'k' ? known(ev, args) : pull(ev, args);
}

/* ---- iterators ----------------------------------------------------------------------------- */

/* Whether objects of the type do nothing but give items: a file has other methods, too. */
static bool only_iterates(const char *type)
{
    static const char names[][32] = {
        "generator", "map", "filter", "zip", "enumerate", "reversed", "accumulate", "batched",
        "combinations", "combinations_with_replacement", "permutations", "product", "chain",
        "count", "cycle", "repeat", "islice", "zip_longest", "pairwise", "starmap", "takewhile",
        "dropwhile", "filterfalse", "compress"};
    const size_t size = strlen(type);
    if (size >= 8 && strcmp(type + size - 8, "iterator") == 0)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], type) == 0)
            return true;
    return false;
}

cfx_object *cfxi_eval_kept_iterator(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object *owner = o;
    if (!o || cfxi_eval_node(ev, o) ||
        cfxi_eval_change(ev, &owner) != CFX_CHANGE_ITERATOR ||
        !cfxi_base_pointers_get(&ev->births, o) || !only_iterates(ev->w->type_name(ev->w->ctx, o)))
        return o;
    return log_of(ev, o) ? cfxi_eval_call_prelude(ev, "pulled", cfxi_eval_args(&o, 1)) : NULL;
}

/* Whether items by index are what its iterator gives. */
static bool is_indexed(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object *owner = o;
    switch (ev->w->kind(ev->w->ctx, o)) {
    case CFX_OBJECT_LIST:
    case CFX_OBJECT_TUPLE:
    case CFX_OBJECT_NAMED_TUPLE:
    case CFX_OBJECT_STR:
        return true;
    case CFX_OBJECT_DICT:
    case CFX_OBJECT_SET:
        return false;
    default:
        return cfxi_eval_change(ev, &owner) == CFX_CHANGE_ITEMS;  /* a deque */
    }
}

/* Whether all that it gives is there already. */
static bool is_collection(cfx_evaluator *ev, cfx_object *o)
{
    static const char names[][12] = {"range", "dict_keys", "dict_values", "dict_items",
                                     "frozenset", "bytes"};
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, o);
    const char *type = ev->w->type_name(ev->w->ctx, o);
    if (kind == CFX_OBJECT_DICT || kind == CFX_OBJECT_SET)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], type) == 0)
            return true;
    return false;
}

/* The world's iterator, of which the program sees what was pulled only. */
static cfx_object *iterate(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object *raw = cfxi_eval_pool(ev, ev->w->iterate(ev->w->ctx, o, ev->err));
    if (raw == o)
        return cfxi_eval_kept_iterator(ev, o);
    if (!raw || cfxi_eval_node(ev, raw) ||
        ev->w->kind(ev->w->ctx, raw) == CFX_OBJECT_INSTANCE)
        return raw;
    return log_of(ev, raw) ? cfxi_eval_call_prelude(ev, "pulled", cfxi_eval_args(&raw, 1)) : NULL;
}

cfx_object *cfxi_eval_iter(cfx_evaluator *ev, cfx_object *o)
{
    bool missing = false;
    const char *part;
    cfx_object *dict = cfxi_eval_view_owner(ev, o, &part);
    if (!dict && !cfxi_eval_node(ev, o) && ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_DICT)
        dict = o;
    if (!(o = cfxi_eval_shown(ev, o)))
        return NULL;
    if (cfxi_eval_node(ev, o))
        return cfxi_eval_fail_count(ev, o);
    if (dict || is_collection(ev, o)) {
        cfx_object **items;
        size_t n;
        o = cfxi_eval_items(ev, o, &items, &n) ? cfxi_eval_tuple(ev, items, n) : NULL;
        cfx_object *both[2] = {o, dict};
        if (o && dict)
            return cfxi_eval_call_prelude(ev, "keyed", cfxi_eval_args(both, 2));
    }
    if (!o || is_indexed(ev, o))
        return o ? cfxi_eval_call_prelude(ev, "iterator", cfxi_eval_args(&o, 1)) : NULL;
    if (ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_INSTANCE) {
        cfx_object *method = cfxi_eval_try_get(ev, o, "__iter__", &missing);
        if (!missing)
            return method ? cfxi_eval_call(ev, method, cfxi_eval_args(NULL, 0)) : NULL;
    }
    return iterate(ev, o);
}

cfx_object *cfxi_eval_next(cfx_evaluator *ev, cfx_object *o, cfx_object *otherwise)
{
    cfx_object *both[2] = {o, otherwise};
    if (otherwise)
        return cfxi_eval_call_prelude(ev, "next_or", cfxi_eval_args(both, 2));
    return cfxi_eval_call_method(ev, o, "__next__", cfxi_eval_args(NULL, 0));
}

bool cfxi_eval_ends_by_data(const cfx_evaluator *ev)
{
    const cfxi_frame *f = ev->frame;
    while (f && f->caller && f->caller != ev->entered)
        f = f->caller;
    return f && ev->entered && f->caller == ev->entered && strcmp(f->def->name, "__next__") == 0;
}
