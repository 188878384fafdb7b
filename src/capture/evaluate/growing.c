/* growing.c - lists that have become graph values.
 *
 * A list whose length depends on data (it was appended to in a loop, or in one branch only) cannot
 * be known any more. The object stays what it is, so that all who have it still mean the same list,
 * and ev->growing says which graph value it is now; methods that change it make a new one:
 *     out.append(y)                      out = out + [y]
 */
#include "control_impl.h"

cfx_object *cfxi_current(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object *now = ev->growing.n ? cfxi_pointers_get(&ev->growing, o) : NULL;
    return now ? now : o;
}

cfx_object *cfxi_current_deep(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object *now = cfxi_current(ev, o);
    cfx_object **items;
    size_t n;
    if (ev->growing.n == 0 || now != o || cfxi_node(ev, o))
        return now;
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, o);
    if (kind != CFX_OBJECT_TUPLE && kind != CFX_OBJECT_LIST && kind != CFX_OBJECT_DICT &&
        kind != CFX_OBJECT_NAMED_TUPLE)
        return o;
    if (!cfxi_contents(ev, o, &items, &n))
        return NULL;
    cfx_object **all = cfxi_ev_alloc(ev, (n + 1) * sizeof *all);
    if (!all)
        return NULL;
    bool same = true;
    all[0] = o;
    for (size_t i = 0; i < n; i++) {
        all[i + 1] = cfxi_current_deep(ev, items[i]);
        if (!all[i + 1])
            return NULL;
        same = same && all[i + 1] == items[i];
    }
    return same ? o : cfxi_build(ev, CFX_BUILD_LIKE, all, n + 1);
}

/* ---- parts of a list that is a graph value ------------------------------------------------- */

static cfx_object *part(cfx_evaluator *ev, cfx_object *list, cfx_object *from, cfx_object *to)
{
    cfx_object *in[3] = {from ? from : ev->none, to ? to : ev->none, ev->none};
    cfx_object *slice = cfxi_build(ev, CFX_BUILD_SLICE, in, 3);
    return slice ? cfxi_item(ev, list, slice) : NULL;
}

static cfx_object *joined(cfx_evaluator *ev, cfx_object *a, cfx_object *b)
{
    return a && b ? cfxi_binary(ev, CFX_SIGN_ADD, a, b) : NULL;
}

bool cfxi_grow_from(cfx_evaluator *ev, cfx_object *o, cfx_object *now)
{
    if (!cfxi_note_kind(ev, cfxi_node(ev, now), CFX_OBJECT_LIST))
        return false;
    if (cfxi_pointers_set(&ev->growing, o, now, ev->allocator))
        return true;
    cfxi_nomem(ev->err);
    return false;
}

static bool become(cfx_evaluator *ev, cfx_object *o, cfx_object *now)
{
    return now && cfxi_journal_contents(ev, o) && cfxi_grow_from(ev, o, now);
}

/* An index counted from the start: graph values may be negative. */
static cfx_object *from_start(cfx_evaluator *ev, cfx_object *list, cfx_object *i)
{
    int64_t known;
    if (!cfxi_node(ev, i) && ev->w->integer(ev->w->ctx, i, &known) && known >= 0)
        return i;
    cfx_object *size = cfxi_record(ev, "builtins.len", &list, 1);
    return size ? cfxi_binary(ev, CFX_SIGN_MOD, i, size) : NULL;
}

static cfx_object *behind(cfx_evaluator *ev, cfx_object *i)
{
    cfx_object *one = cfxi_int(ev, 1);
    return one ? cfxi_binary(ev, CFX_SIGN_ADD, i, one) : NULL;
}

/* The list without items i to i + 1 - before, and `middle` there instead (NULL: nothing). */
static cfx_object *replaced(cfx_evaluator *ev, cfx_object *list, cfx_object *i, cfx_object *middle,
                            bool insert)
{
    cfx_object *next = insert ? i : behind(ev, i);
    cfx_object *head = next ? part(ev, list, NULL, i) : NULL;
    cfx_object *tail = head ? part(ev, list, next, NULL) : NULL;
    if (middle && tail) {
        cfx_object *one = cfxi_list(ev, &middle, 1);
        head = joined(ev, head, one);
    }
    return joined(ev, head, tail);
}

/* ---- methods ------------------------------------------------------------------------------- */

static cfx_object *pop(cfx_evaluator *ev, cfx_object *o, cfx_object *list, cfx_call_args args)
{
    cfx_object *last = cfxi_int(ev, -1);
    if (!last)
        return NULL;
    if (args.n == 0) {
        cfx_object *v = cfxi_item(ev, list, last);
        return v && become(ev, o, part(ev, list, NULL, last)) ? v : NULL;
    }
    cfx_object *i = from_start(ev, list, args.args[0]);
    cfx_object *v = i ? cfxi_item(ev, list, i) : NULL;
    return v && become(ev, o, replaced(ev, list, i, NULL, false)) ? v : NULL;
}

static cfx_object *clear(cfx_evaluator *ev, cfx_object *o)
{
    const cfxi_place p = {.kind = CFXI_PLACE_CONTENTS, .object = o};
    const cfxi_state empty = {0};
    return cfxi_journal_contents(ev, o) && cfxi_place_write(ev, &p, &empty) ? ev->none : NULL;
}

static cfx_object *as_list(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object *now = cfxi_current_deep(ev, o);
    if (now && cfxi_kind(ev, now) != CFX_OBJECT_LIST)
        now = cfxi_node(ev, now) ? cfxi_record(ev, "builtins.list", &now, 1) : now;
    if (!now || cfxi_kind(ev, now) == CFX_OBJECT_LIST)
        return now;
    cfx_object **items;
    size_t n;
    return cfxi_items(ev, now, &items, &n) ? cfxi_list(ev, items, n) : NULL;
}

static cfx_object *backwards(cfx_evaluator *ev, cfx_object *list)
{
    cfx_object *in[3] = {ev->none, ev->none, cfxi_int(ev, -1)};
    cfx_object *slice = in[2] ? cfxi_build(ev, CFX_BUILD_SLICE, in, 3) : NULL;
    return slice ? cfxi_item(ev, list, slice) : NULL;
}

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

cfx_object *cfxi_growing_method(cfx_evaluator *ev, cfx_object *o, const char *name,
                                cfx_call_args args, bool *done)
{
    cfx_object *list = cfxi_current(ev, o);
    cfx_object *now = NULL;
    *done = list != o;
    if (!*done)
        return NULL;
    cfx_object *first = args.n > 0 ? args.args[0] : NULL;
    if (is(name, "pop"))
        return pop(ev, o, list, args);
    if (is(name, "clear"))
        return clear(ev, o);
    if (is(name, "append") && args.n == 1)
        now = joined(ev, list, cfxi_list(ev, &first, 1));
    else if (is(name, "extend") && args.n == 1)
        now = joined(ev, list, as_list(ev, first));
    else if (is(name, "insert") && args.n == 2)
        now = replaced(ev, list, from_start(ev, list, first), args.args[1], true);
    else if (is(name, "sort") && args.n == 0)
        now = cfxi_record(ev, "builtins.sorted", &list, 1);
    else if (is(name, "reverse") && args.n == 0)
        now = backwards(ev, list);
    else if (is(name, "remove") || is(name, "reverse") || is(name, "sort"))
        return cfxi_fail(ev, NULL, CFX_E_UNSUPPORTED, "'%s' on a list whose length depends on "
                         "data; make a new list instead", name);
    else {
        cfx_object *method = cfxi_get(ev, list, name);
        return method ? cfxi_world_call(ev, method, args) : NULL;
    }
    return become(ev, o, now) ? ev->none : NULL;
}

bool cfxi_growing_set_item(cfx_evaluator *ev, cfx_object *o, cfx_object *key, cfx_object *v,
                           bool *done)
{
    cfx_object *list = cfxi_current(ev, o);
    *done = list != o;
    if (!*done)
        return true;
    cfx_object *i = from_start(ev, list, key);
    return i && become(ev, o, replaced(ev, list, i, v, false));
}
