/* change.c - what a program may change while it is captured.
 *
 * Assignments and methods of lists note what they change beforehand. A function of the world's may
 * change anything that its arguments lead to: heapq.heappush(h, 3). So all of that is read before
 * the call and compared after it. What did change goes into the journal as it was before.
 */
#include "graph_control_impl.h"

#include <stdio.h>
#include <stdlib.h>

cfx_script_change cfxi_eval_change(cfx_evaluator *ev, cfx_object **o)
{
    const cfx_world *w = ev->w;
    if (w->change)
        return w->change(w->ctx, o);
    switch (w->kind(w->ctx, *o)) {
    case CFX_OBJECT_LIST:
    case CFX_OBJECT_DICT:
    case CFX_OBJECT_SET:
        return CFX_CHANGE_ITEMS;
    case CFX_OBJECT_INSTANCE:
        return CFX_CHANGE_ATTRIBUTES;
    default:
        return CFX_CHANGE_NEVER;
    }
}

static bool is_outside(cfx_evaluator *ev, cfx_object *o)
{
    return ev->w->is_outside && ev->w->is_outside(ev->w->ctx, o);
}

cfx_object *cfxi_eval_note_new(cfx_evaluator *ev, cfx_object *o)
{
    const cfx_world *w = ev->w;
    cfx_object *owner = o;
    if (!o || !w->is_new || !w->is_new(w->ctx, o) ||
        cfxi_eval_change(ev, &owner) == CFX_CHANGE_NEVER)
        return o;
    if (owner != o && !w->is_new(w->ctx, owner))  /* a view of one that others have */
        return o;
    return cfxi_eval_born(ev, owner) ? o : NULL;
}

/* ---- refusing ------------------------------------------------------------------------------ */

static bool fail_outside(cfx_evaluator *ev, cfx_object *o, cfx_script_change how)
{
    const char *type = ev->w->type_name(ev->w->ctx, o);
    if (how == CFX_CHANGE_ITERATOR)
        return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                              "cannot advance this %.60s, which comes from outside the function: "
                              "that would happen once, during capture, not in each call; make the "
                              "iterator in the function", type);
    return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                          "cannot change this %.60s, which comes from outside the function: the "
                          "change would happen once, during capture, not in each call; change a "
                          "copy (%.60s(...)), return the new value, or keep tensors in buffers",
                          type, type);
}

bool cfxi_eval_fail_stays(cfx_evaluator *ev, cfx_object *o)
{
    return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                          "this may change a %.60s, which cannot be put back, and both ways of a "
                          "branch that depends on data are evaluated (a loop several times); do it "
                          "before the branch or loop, or cfx.wrap a function that does it",
                          ev->w->type_name(ev->w->ctx, o));
}

/* Whether a change can stay: no region around it will be taken back. One that is only tried notes
 * that it cannot be. */
static bool may_stay(cfx_evaluator *ev, cfx_object *o)
{
    const uintptr_t born = (uintptr_t)cfxi_base_pointers_get(&ev->births, o);
    for (cfxi_region *r = ev->region; r->parent && born < r->number; r = r->parent) {
        if (!r->trial)
            return cfxi_eval_fail_stays(ev, o);
        r->stays = o;
    }
    return true;
}

/* A default that can change is one object for all calls, def f(x, seen={}); a graph has its own. */
static bool check_default(cfx_evaluator *ev, const cfx_node *n)
{
    if (cfx_node_op(n) != CFX_OP_PLACEHOLDER)
        return true;
    const cfx_kind kind = cfx_node_arg(n, 0).kind;
    if (kind != CFX_KIND_LIST && kind != CFX_KIND_DICT && kind != CFX_KIND_SET)
        return true;
    return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                          "cannot change this input, whose default is a %.20s that all calls of "
                          "the function share; make None the default, and a new %.20s in the "
                          "function", cfx_kind_name(kind), cfx_kind_name(kind));
}

bool cfxi_eval_will_change(cfx_evaluator *ev, cfx_object *o)
{
    const cfx_node *n = cfxi_eval_node(ev, o);
    if (n)
        return check_default(ev, n) && cfxi_eval_check_alias(ev, o);
    const cfx_script_change how = cfxi_eval_change(ev, &o);
    if (how == CFX_CHANGE_NEVER || how == CFX_CHANGE_ATTRIBUTES)
        return true;
    if (is_outside(ev, o))
        return fail_outside(ev, o, how);
    return how == CFX_CHANGE_ITEMS || how == CFX_CHANGE_WHOLE ? cfxi_eval_journal_contents(ev, o)
                                                              : may_stay(ev, o);
}

/* ---- what functions do to their arguments -------------------------------------------------- */

typedef enum effect {
    EFFECT_ANY,      /* it may change whatever its arguments lead to */
    EFFECT_OWN,      /* it may change its arguments, but not what they hold */
    EFFECT_READS,    /* it reads them: iterators among them are advanced */
    EFFECT_TAKES,    /* the same, and it takes all that an iterator gives */
    EFFECT_NONE,     /* it leaves even iterators alone */
    EFFECT_LATER     /* it is recorded, and changes its arguments when the graph runs */
} effect;

typedef struct effect_row {
    char name[32];
    uint8_t effect;
} effect_row;

static int compare_rows(const void *name, const void *row)
{
    return strcmp(name, ((const effect_row *)row)->name);
}

/* By qualified name, sorted; one that ends with a dot stands for all names of that module or
 * class. What is not here may do anything. */
static const effect_row *row_of(const char *name)
{
    static const effect_row rows[] = {
        {"_keep", EFFECT_NONE},  /* a cache of the C world's library: what it has, it keeps */
        {"array.array.", EFFECT_OWN}, {"builtins.", EFFECT_READS}, {"builtins.ascii", EFFECT_NONE},
        {"builtins.bool", EFFECT_NONE}, {"builtins.bytes", EFFECT_TAKES},
        {"builtins.callable", EFFECT_NONE}, {"builtins.delattr", EFFECT_ANY},
        {"builtins.dict", EFFECT_TAKES}, {"builtins.dir", EFFECT_NONE},
        {"builtins.eval", EFFECT_ANY}, {"builtins.exec", EFFECT_ANY},
        {"builtins.filter", EFFECT_ANY}, {"builtins.float", EFFECT_NONE},
        {"builtins.format", EFFECT_NONE}, {"builtins.frozenset", EFFECT_TAKES},
        {"builtins.hasattr", EFFECT_NONE}, {"builtins.hash", EFFECT_NONE},
        {"builtins.id", EFFECT_NONE}, {"builtins.int", EFFECT_NONE},
        {"builtins.isinstance", EFFECT_NONE}, {"builtins.issubclass", EFFECT_NONE},
        {"builtins.iter", EFFECT_NONE}, {"builtins.len", EFFECT_NONE},
        {"builtins.list", EFFECT_TAKES}, {"builtins.map", EFFECT_ANY},
        {"builtins.max", EFFECT_TAKES}, {"builtins.min", EFFECT_TAKES},
        {"builtins.next", EFFECT_ANY}, {"builtins.print", EFFECT_NONE},
        {"builtins.repr", EFFECT_NONE}, {"builtins.set", EFFECT_TAKES},
        {"builtins.setattr", EFFECT_ANY}, {"builtins.sorted", EFFECT_TAKES},
        {"builtins.str", EFFECT_NONE}, {"builtins.sum", EFFECT_TAKES},
        {"builtins.tuple", EFFECT_TAKES}, {"builtins.type", EFFECT_NONE},
        {"builtins.vars", EFFECT_NONE}, {"bytearray.", EFFECT_OWN}, {"bytes.", EFFECT_READS},
        {"cmath.", EFFECT_READS}, {"collections.Counter", EFFECT_TAKES},
        {"collections.OrderedDict", EFFECT_TAKES}, {"collections.OrderedDict.", EFFECT_OWN},
        {"collections.deque", EFFECT_TAKES}, {"collections.deque.", EFFECT_OWN},
        {"collections.deque.copy", EFFECT_NONE}, {"collections.deque.count", EFFECT_NONE},
        {"collections.deque.index", EFFECT_NONE}, {"contextlib.", EFFECT_NONE},
        {"contextlib._BaseExitStack.", EFFECT_OWN},
        {"copy.", EFFECT_READS}, {"dict.", EFFECT_OWN}, {"dict.__contains__", EFFECT_NONE},
        {"dict.__len__", EFFECT_NONE}, {"dict.copy", EFFECT_NONE}, {"dict.get", EFFECT_NONE},
        {"dict.items", EFFECT_NONE}, {"dict.keys", EFFECT_NONE}, {"dict.values", EFFECT_NONE},
        {"float.", EFFECT_NONE}, {"frozenset.", EFFECT_READS}, {"int.", EFFECT_NONE},
        {"list.", EFFECT_OWN}, {"list.__contains__", EFFECT_NONE},
        {"list.__getitem__", EFFECT_NONE}, {"list.__len__", EFFECT_NONE},
        {"list.copy", EFFECT_NONE}, {"list.count", EFFECT_NONE}, {"list.index", EFFECT_NONE},
        {"logging.", EFFECT_NONE}, {"math.", EFFECT_READS}, {"re.", EFFECT_READS},
        {"recorded.", EFFECT_READS}, {"recorded.shuffle", EFFECT_LATER},
        {"set.", EFFECT_OWN}, {"set.copy", EFFECT_NONE}, {"set.difference", EFFECT_READS},
        {"set.intersection", EFFECT_READS}, {"set.isdisjoint", EFFECT_READS},
        {"set.issubset", EFFECT_READS}, {"set.issuperset", EFFECT_READS},
        {"set.symmetric_difference", EFFECT_READS}, {"set.union", EFFECT_READS},
        {"str.", EFFECT_READS}, {"str.join", EFFECT_TAKES}, {"torch.", EFFECT_READS},
        {"tuple.", EFFECT_READS}, {"warnings.", EFFECT_NONE},
    };
    return bsearch(name, rows, sizeof rows / sizeof *rows, sizeof *rows, compare_rows);
}

static effect effect_of(const char *name)
{
    char prefix[96];
    const effect_row *row = row_of(name);
    snprintf(prefix, sizeof prefix, "%s", name);
    for (char *dot = strrchr(prefix, '.'); !row && dot; dot = strrchr(prefix, '.')) {
        dot[1] = '\0';
        row = row_of(prefix);
        *dot = '\0';
    }
    return row ? (effect)row->effect : EFFECT_ANY;
}

bool cfxi_eval_takes_all(cfx_evaluator *ev, cfx_object *f)
{
    char name[96];
    cfx_object *self = NULL;
    return ev->w->call_name && ev->w->call_name(ev->w->ctx, f, name, sizeof name, &self) &&
           effect_of(name) == EFFECT_TAKES;
}

/* ---- watching a call ----------------------------------------------------------------------- */

static bool is_old(cfx_evaluator *ev, cfx_object *o)
{
    return (uintptr_t)cfxi_base_pointers_get(&ev->births, o) < ev->region->number;
}

static bool nomem(cfx_evaluator *ev)
{
    cfxi_base_nomem(ev->err);
    return false;
}

static cfxi_watched *add(cfx_evaluator *ev, cfxi_watch *watch)
{
    if (watch->n == watch->capacity) {
        const size_t capacity = watch->capacity ? 2 * watch->capacity : 4;
        cfxi_watched *more = cfxi_eval_ev_alloc(ev, capacity * sizeof *more);
        if (!more)
            return NULL;
        if (watch->n > 0)
            memcpy(more, watch->all, watch->n * sizeof *more);
        watch->all = more;
        watch->capacity = capacity;
    }
    watch->all[watch->n] = (cfxi_watched){0};
    return &watch->all[watch->n++];
}

/* Whether the journal already has what it holds. */
static bool is_noted(cfx_evaluator *ev, cfx_object *o)
{
    const cfxi_place p = {.kind = CFXI_PLACE_CONTENTS, .object = o};
    return cfxi_eval_region_change(ev->region, &p) != NULL;
}

static bool look_at(cfx_evaluator *ev, cfxi_watch *watch, cfx_object *o, effect what);

static bool look_inside(cfx_evaluator *ev, cfxi_watch *watch, cfx_object *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!look_at(ev, watch, items[i], EFFECT_ANY))
            return false;
    return true;
}

/* One that can be put back. */
static bool look_at_contents(cfx_evaluator *ev, cfxi_watch *watch, cfx_object *o,
                             cfx_script_change how, effect what)
{
    const bool outside = is_outside(ev, o);
    const bool matters = outside || (ev->depth > 0 && is_old(ev, o) && !is_noted(ev, o));
    cfx_object **items;
    size_t n;
    if ((!matters && what != EFFECT_ANY) || cfxi_eval_current(ev, o) != o)
        return true;
    if (!cfxi_eval_contents(ev, o, &items, &n))
        return false;
    if (matters) {
        cfxi_watched *w = add(ev, watch);
        if (!w)
            return false;
        *w = (cfxi_watched){.object = o, .how = how, .outside = outside, .items = items, .n = n};
    }
    return what != EFFECT_ANY || how == CFX_CHANGE_WHOLE || look_inside(ev, watch, items, n);
}

static bool look_deeper(cfx_evaluator *ev, cfxi_watch *watch, cfx_object *o)
{
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, o);
    cfx_object **items;
    size_t n;
    if (kind != CFX_OBJECT_TUPLE && kind != CFX_OBJECT_NAMED_TUPLE)
        return true;
    return cfxi_eval_contents(ev, o, &items, &n) && look_inside(ev, watch, items, n);
}

static bool look_at(cfx_evaluator *ev, cfxi_watch *watch, cfx_object *o, effect what)
{
    cfx_object *owner = o;
    if (cfxi_eval_node(ev, o))
        return true;
    const cfx_script_change how = cfxi_eval_change(ev, &owner);
    if (how == CFX_CHANGE_NEVER)
        return what != EFFECT_ANY || look_deeper(ev, watch, o);
    if (what >= EFFECT_READS && how != CFX_CHANGE_ITERATOR)
        return true;
    if (cfxi_base_pointers_get(&watch->seen, owner) || cfxi_base_pointers_get(&ev->pulled, owner))
        return true;
    if (!cfxi_base_pointers_set(&watch->seen, owner, owner, ev->allocator))
        return nomem(ev);
    switch (how) {
    case CFX_CHANGE_ATTRIBUTES:
        if (ev->w->kind(ev->w->ctx, owner) != CFX_OBJECT_INSTANCE)
            return true;  /* a library's own object: it knows what it does */
        return look_at_contents(ev, watch, owner, how, what);
    case CFX_CHANGE_ITEMS:
    case CFX_CHANGE_WHOLE:
        return look_at_contents(ev, watch, owner, how, what);
    case CFX_CHANGE_ITERATOR:
        return is_outside(ev, owner) ? fail_outside(ev, owner, how) : may_stay(ev, owner);
    case CFX_CHANGE_UNKNOWN:
        return may_stay(ev, owner);
    case CFX_CHANGE_NEVER:
        break;
    }
    return true;
}

bool cfxi_eval_changes_own(cfx_evaluator *ev, cfx_object *self, cfx_call_args args)
{
    if (is_old(ev, self))
        return false;
    for (size_t i = 0; i < args.n; i++) {
        cfx_object *owner = args.args[i];
        if (!cfxi_eval_node(ev, owner) && cfxi_eval_change(ev, &owner) == CFX_CHANGE_ITERATOR)
            return false;
    }
    return true;
}

/* A call that is recorded gets a copy of what is known. */
static bool check_known(cfx_evaluator *ev, cfx_call_args args)
{
    for (size_t i = 0; i < args.n; i++) {
        cfx_object *o = args.args[i];
        if (!cfxi_eval_node(ev, o) && cfxi_eval_change(ev, &o) != CFX_CHANGE_NEVER)
            return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                                  "this call changes its argument when the graph runs, but the "
                                  "contents of this %.60s are known during capture; use a function "
                                  "that returns a new list, such as random.sample(l, len(l))",
                                  ev->w->type_name(ev->w->ctx, o));
    }
    return true;
}

bool cfxi_eval_watch_begin(cfx_evaluator *ev, cfx_object *f, cfx_call_args args, cfxi_watch *watch)
{
    char name[96];
    cfx_object *self = NULL;
    *watch = (cfxi_watch){0};
    if (ev->making || !ev->w->call_name)
        return true;
    const bool named = ev->w->call_name(ev->w->ctx, f, name, sizeof name, &self);
    const effect what = named ? effect_of(name) : EFFECT_ANY;
    if (what == EFFECT_NONE)
        return true;
    if (what == EFFECT_LATER)
        return check_known(ev, args);
    if (self && !look_at(ev, watch, self, what))
        return false;
    for (size_t i = 0; i < args.n; i++)
        if (!look_at(ev, watch, args.args[i], what))
            return false;
    return true;
}

bool cfxi_eval_watch_object(cfx_evaluator *ev, cfx_object *o, cfxi_watch *watch)
{
    cfx_object *owner = o;
    *watch = (cfxi_watch){0};
    return ev->making || cfxi_eval_node(ev, o) ||
           cfxi_eval_change(ev, &owner) != CFX_CHANGE_ATTRIBUTES ||
           look_at(ev, watch, owner, EFFECT_ANY);
}

/* ---- after it ------------------------------------------------------------------------------ */

/* The value that goes with a name among names and values; NULL: there is none. */
static cfx_object *value_of(cfx_evaluator *ev, cfx_object **items, size_t n, cfx_object *name)
{
    for (size_t i = 0; i + 1 < n; i += 2)
        if (items[i] == name || ev->w->equal(ev->w->ctx, items[i], name))
            return items[i + 1];
    return NULL;
}

/* Notes the attributes among `names` that had another value; `outside`: puts them back. */
static bool note_attributes(cfx_evaluator *ev, const cfxi_watched *w, cfx_object **names, size_t m,
                            cfx_object **now, size_t n, bool *changed)
{
    for (size_t i = 0; i + 1 < m; i += 2) {
        cfx_object *before = value_of(ev, w->items, w->n, names[i]);
        if (before == value_of(ev, now, n, names[i]))
            continue;
        const char *name = cfxi_eval_text(ev, names[i]);
        const cfxi_place p = {.kind = CFXI_PLACE_ATTRIBUTE, .object = w->object, .name = name,
                              .frame = ev->frame, .at = ev->frame ? ev->frame->at : NULL};
        const cfxi_state state = {.value = before};
        *changed = true;
        if (!name || !(w->outside ? cfxi_eval_place_write(ev, &p, &state)
                                  : cfxi_eval_place_note_late(ev, &p, &state)))
            return false;
    }
    return true;
}

static bool follow_attributes(cfx_evaluator *ev, const cfxi_watched *w, cfx_object **now, size_t n,
                              bool *changed)
{
    return note_attributes(ev, w, w->items, w->n, now, n, changed) &&
           note_attributes(ev, w, now, n, now, n, changed);
}

static bool follow_contents(cfx_evaluator *ev, const cfxi_watched *w, cfx_object **now, size_t n,
                            bool *changed)
{
    const cfxi_place p = {.kind = CFXI_PLACE_CONTENTS, .object = w->object, .frame = ev->frame,
                          .at = ev->frame ? ev->frame->at : NULL};
    const cfxi_state before = {.items = w->items, .n = w->n};
    const cfxi_state after = {.items = now, .n = n};
    if (cfxi_eval_current(ev, w->object) != w->object)
        return true;  /* the evaluator was called back, and has noted it */
    *changed = !cfxi_eval_state_is(ev, &p, &before, &after);
    if (!*changed)
        return true;
    return w->outside ? cfxi_eval_place_write(ev, &p, &before)
                      : cfxi_eval_check_alias(ev, w->object) &&
                            cfxi_eval_place_note_late(ev, &p, &before);
}

static bool follow(cfx_evaluator *ev, const cfxi_watched *w)
{
    cfx_object **now;
    size_t n;
    bool changed = false;
    if (!cfxi_eval_contents(ev, w->object, &now, &n))
        return false;
    if (n == w->n && (n == 0 || memcmp(now, w->items, n * sizeof *now) == 0))
        return true;
    if (!(w->how == CFX_CHANGE_ATTRIBUTES ? follow_attributes(ev, w, now, n, &changed)
                                          : follow_contents(ev, w, now, n, &changed)))
        return false;
    return !changed || !w->outside || fail_outside(ev, w->object, w->how);
}

bool cfxi_eval_watch_end(cfx_evaluator *ev, cfxi_watch *watch)
{
    bool fine = true;
    cfxi_base_pointers_free(&watch->seen, ev->allocator);
    if (watch->n == 0)
        return true;
    cfx_error *err = ev->err;  /* the call may have failed after it changed something */
    cfx_error own = {0};
    ev->err = &own;
    const bool failed = ev->failed;
    ev->failed = false;
    for (size_t i = 0; i < watch->n; i++)
        fine = follow(ev, &watch->all[i]) && fine;
    ev->err = err;
    if (!fine)
        *err = own;
    else
        ev->failed = failed;
    return fine;
}
