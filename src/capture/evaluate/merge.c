/* merge.c - two values of which the program will have one or the other, as one.
 *
 * What is known and equal on both sides stays known. Tuples, lists, dicts and instances of the same
 * form are merged item by item, so that what they hold is known as well as can be; all else is a
 * graph value afterwards, and comes out of the branch by an outlet. Numbers merge with numbers and
 * with tensors, and None with all; apart from that two types do not mix, because the code behind
 * would have to ask which one it has.
 */
#include "control_impl.h"

#include <stdio.h>

typedef enum form_kind { FORM_KNOWN, FORM_OUTLET, FORM_BUILD } form_kind;

struct cfxi_form {
    form_kind kind;
    cfx_object *object;      /* KNOWN: itself; BUILD: what it is like */
    size_t outlet;
    cfxi_form **items;       /* BUILD: of its contents */
    size_t n;
};

void cfxi_merge_begin(cfxi_merge *m, cfx_evaluator *ev) { *m = (cfxi_merge){.ev = ev}; }

void cfxi_merge_end(cfxi_merge *m)
{
    cfxi_vec_free(&m->outlets, sizeof(cfxi_outlet), m->ev->allocator);
}

static cfxi_form *new_form(cfxi_merge *m, form_kind kind, cfx_object *object)
{
    cfxi_form *form = cfxi_ev_alloc(m->ev, sizeof *form);
    if (form) {
        form->kind = kind;
        form->object = object;
    }
    return form;
}

static cfxi_merged known(cfxi_merge *m, cfx_object *o, cfxi_form **form)
{
    *form = new_form(m, FORM_KNOWN, o);
    return *form ? CFXI_MERGED : CFXI_MERGED_FAIL;
}

cfxi_form *cfxi_merge_outlet(cfxi_merge *m, cfx_object *a, cfx_object *b, cfx_object_kind kind)
{
    cfxi_form *form = new_form(m, FORM_OUTLET, NULL);
    if (!form)
        return NULL;
    if (!cfxi_vec_reserve(&m->outlets, 1, sizeof(cfxi_outlet), m->ev->allocator)) {
        cfxi_nomem(m->ev->err);
        return NULL;
    }
    form->outlet = m->outlets.size++;
    ((cfxi_outlet *)m->outlets.data)[form->outlet] = (cfxi_outlet){.a = a, .b = b, .kind = kind};
    return form;
}

static cfxi_merged outlet(cfxi_merge *m, cfx_object *a, cfx_object *b, cfx_object_kind kind,
                          cfxi_form **form)
{
    *form = cfxi_merge_outlet(m, a, b, kind);
    return *form ? CFXI_MERGED : CFXI_MERGED_FAIL;
}

/* ---- kinds --------------------------------------------------------------------------------- */

static bool is_number(cfx_object_kind kind)
{
    return kind == CFX_OBJECT_BOOL || kind == CFX_OBJECT_INT || kind == CFX_OBJECT_FLOAT;
}

/* Whether a value of the kind can be an argument of a node at all. */
static bool can_be_value(cfx_evaluator *ev, cfx_object *o)
{
    if (cfxi_node(ev, o))
        return true;
    switch (ev->w->kind(ev->w->ctx, o)) {
    case CFX_OBJECT_CLASS:
    case CFX_OBJECT_MODULE:
    case CFX_OBJECT_INSTANCE:
        return false;
    default:
        return true;
    }
}

/* The kind of either; false if they do not mix. Numbers and tensors do: code that takes the one
 * takes the other. So does None with all: code asks for it. */
static bool join(cfx_object_kind a, cfx_object_kind b, bool both_known, cfx_object_kind *kind)
{
    *kind = a;
    if (a == b)
        return true;
    if (is_number(a) && is_number(b)) {
        *kind = a == CFX_OBJECT_FLOAT || b == CFX_OBJECT_FLOAT ? CFX_OBJECT_FLOAT : CFX_OBJECT_INT;
        return true;
    }
    *kind = CFX_OBJECT_OTHER;
    if ((is_number(a) || a == CFX_OBJECT_TENSOR) && (is_number(b) || b == CFX_OBJECT_TENSOR))
        return true;
    if (a == CFX_OBJECT_NONE || b == CFX_OBJECT_NONE)
        return true;
    return !both_known && (a == CFX_OBJECT_OTHER || b == CFX_OBJECT_OTHER);
}

static cfxi_merged refuse(cfxi_merge *m, cfx_object *a, cfx_object *b)
{
    snprintf(m->why.type[0], sizeof m->why.type[0], "%s", cfxi_kind_name(m->ev, a));
    snprintf(m->why.type[1], sizeof m->why.type[1], "%s", cfxi_kind_name(m->ev, b));
    return CFXI_MERGED_NOT;
}

/* ---- containers ---------------------------------------------------------------------------- */

static bool is_container(cfx_object_kind kind)
{
    return kind == CFX_OBJECT_TUPLE || kind == CFX_OBJECT_NAMED_TUPLE || kind == CFX_OBJECT_LIST ||
           kind == CFX_OBJECT_DICT || kind == CFX_OBJECT_INSTANCE;
}

static cfxi_merged merge_one(cfxi_merge *m, cfx_object *a, cfxi_form **form);

static cfxi_merged merge_items(cfxi_merge *m, cfx_object *like, cfx_object **a, cfx_object **b,
                               size_t n, bool keyed, cfxi_form **form)
{
    cfxi_form *built = new_form(m, FORM_BUILD, like);
    if (built)
        built->items = cfxi_ev_alloc(m->ev, (n + 1) * sizeof *built->items);
    if (!built || !built->items)
        return CFXI_MERGED_FAIL;
    built->n = n;
    for (size_t i = 0; i < n; i++) {
        const bool is_key = keyed && i % 2 == 0;
        cfxi_merged done = is_key ? known(m, a[i], &built->items[i])
                           : b    ? cfxi_merge_values(m, a[i], b[i], &built->items[i])
                                  : merge_one(m, a[i], &built->items[i]);
        if (done != CFXI_MERGED)
            return done;
    }
    *form = built;
    return CFXI_MERGED;
}

static bool same_keys(cfx_evaluator *ev, cfx_object **a, cfx_object **b, size_t n)
{
    for (size_t i = 0; i < n; i += 2)
        if (a[i] != b[i] && !ev->w->equal(ev->w->ctx, a[i], b[i]))
            return false;
    return true;
}

static bool same_class(cfx_evaluator *ev, cfx_object *a, cfx_object *b)
{
    const cfx_world *w = ev->w;
    char name[sizeof((cfxi_poison *)0)->type[0]];
    snprintf(name, sizeof name, "%s", w->type_name(w->ctx, a));
    return strncmp(name, w->type_name(w->ctx, b), sizeof name - 1) == 0;
}

/* Of containers of one kind that are both known; NOT with nothing said if their forms differ. */
static cfxi_merged merge_containers(cfxi_merge *m, cfx_object *a, cfx_object *b,
                                    cfx_object_kind kind, bool *same, cfxi_form **form)
{
    cfx_evaluator *ev = m->ev;
    const bool keyed = kind == CFX_OBJECT_DICT || kind == CFX_OBJECT_INSTANCE;
    cfx_object **in_a, **in_b;
    size_t n_a, n_b;
    if (!cfxi_contents(ev, a, &in_a, &n_a) || !cfxi_contents(ev, b, &in_b, &n_b))
        return CFXI_MERGED_FAIL;
    *same = n_a == n_b && (!keyed || same_keys(ev, in_a, in_b, n_a)) &&
            (kind == CFX_OBJECT_TUPLE || kind == CFX_OBJECT_LIST || same_class(ev, a, b));
    return *same ? merge_items(m, a, in_a, in_b, n_a, keyed, form) : CFXI_MERGED_NOT;
}

/* A value whose other side does not matter: graph values come out, the rest is known. */
static cfxi_merged merge_one(cfxi_merge *m, cfx_object *a, cfxi_form **form)
{
    cfx_evaluator *ev = m->ev;
    cfx_object **items;
    size_t n;
    a = cfxi_current(ev, a);
    if (cfxi_node(ev, a))
        return outlet(m, a, NULL, cfxi_kind(ev, a), form);
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, a);
    if (!is_container(kind) || kind == CFX_OBJECT_INSTANCE)
        return known(m, a, form);
    if (!cfxi_contents(ev, a, &items, &n))
        return CFXI_MERGED_FAIL;
    return merge_items(m, a, items, NULL, n, kind == CFX_OBJECT_DICT, form);
}

/* ---- as it was in a region ----------------------------------------------------------------- */

static const cfxi_change *contents_in(const cfxi_region *r, const cfx_object *o)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->changes[i].place.kind == CFXI_PLACE_CONTENTS && r->changes[i].place.object == o)
            return &r->changes[i];
    return NULL;
}

/* The object as it was when the region was closed: a copy, if that was otherwise. */
static cfx_object *as_of(cfx_evaluator *ev, const cfxi_region *r, cfx_object *o)
{
    cfx_object **items;
    size_t n;
    if (cfxi_node(ev, o) || !is_container(ev->w->kind(ev->w->ctx, o)) ||
        ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_INSTANCE)
        return o;
    const cfxi_change *c = contents_in(r, o);
    if (c && c->after.value)
        return c->after.value;
    if (!c && cfxi_current(ev, o) != o)
        return cfxi_current(ev, o);
    if (c) {
        items = c->after.items;
        n = c->after.n;
    } else if (!cfxi_contents(ev, o, &items, &n)) {
        return NULL;
    }
    cfx_object **all = cfxi_ev_alloc(ev, (n + 1) * sizeof *all);
    bool same = !c;
    if (!all)
        return NULL;
    all[0] = o;
    for (size_t i = 0; i < n; i++) {
        all[i + 1] = as_of(ev, r, items[i]);
        if (!all[i + 1])
            return NULL;
        same = same && all[i + 1] == items[i];
    }
    return same ? o : cfxi_build(ev, CFX_BUILD_LIKE, all, n + 1);
}

static bool changes_contents(const cfxi_region *r)
{
    for (size_t i = 0; r && i < r->n; i++)
        if (r->changes[i].place.kind == CFXI_PLACE_CONTENTS)
            return true;
    return false;
}

/* ---- values -------------------------------------------------------------------------------- */

static cfxi_merged merge_known(cfxi_merge *m, cfx_object *a, cfx_object *b, cfxi_form **form)
{
    const cfx_world *w = m->ev->w;
    const cfx_object_kind kind_a = w->kind(w->ctx, a);
    const cfx_object_kind kind_b = w->kind(w->ctx, b);
    cfx_object_kind kind;
    bool same = false;
    if (w->equal(w->ctx, a, b))
        return known(m, a, form);
    if (kind_a == kind_b && is_container(kind_a)) {
        cfxi_merged done = merge_containers(m, a, b, kind_a, &same, form);
        if (same || done == CFXI_MERGED_FAIL)
            return done;
        if (kind_a != CFX_OBJECT_LIST && kind_a != CFX_OBJECT_TUPLE)
            return refuse(m, a, b);
    }
    if (!join(kind_a, kind_b, true, &kind) || !can_be_value(m->ev, a) || !can_be_value(m->ev, b))
        return refuse(m, a, b);
    return outlet(m, a, b, kind, form);
}

cfxi_merged cfxi_merge_values(cfxi_merge *m, cfx_object *a, cfx_object *b, cfxi_form **form)
{
    cfx_evaluator *ev = m->ev;
    cfx_object_kind kind;
    if (a == b && !(m->always && cfxi_pointers_get(m->always, a)))
        return known(m, a, form);
    if (a && changes_contents(m->in_a) && !(a = as_of(ev, m->in_a, a)))
        return CFXI_MERGED_FAIL;
    if (b && changes_contents(m->in_b) && !(b = as_of(ev, m->in_b, b)))
        return CFXI_MERGED_FAIL;
    if (!a || !b) {
        const size_t first = m->outlets.size;
        cfxi_merged done = merge_one(m, a ? a : b, form);
        for (size_t i = first; !a && i < m->outlets.size; i++) {
            cfxi_outlet *o = (cfxi_outlet *)m->outlets.data + i;
            o->b = o->a;
            o->a = NULL;
        }
        return done;
    }
    a = cfxi_current(ev, a);
    b = cfxi_current(ev, b);
    if (!cfxi_node(ev, a) && !cfxi_node(ev, b))
        return merge_known(m, a, b, form);
    if (!join(cfxi_kind(ev, a), cfxi_kind(ev, b), false, &kind) || !can_be_value(ev, a) ||
        !can_be_value(ev, b))
        return refuse(m, a, b);
    return outlet(m, a, b, kind, form);
}

cfx_object *cfxi_form_value(cfx_evaluator *ev, const cfxi_merge *m, const cfxi_form *form)
{
    if (form->kind == FORM_KNOWN)
        return form->object;
    if (form->kind == FORM_OUTLET)
        return ((const cfxi_outlet *)m->outlets.data)[form->outlet].result;
    cfx_object **items = cfxi_ev_alloc(ev, (form->n + 1) * sizeof *items);
    if (!items)
        return NULL;
    items[0] = form->object;
    for (size_t i = 0; i < form->n; i++) {
        items[i + 1] = cfxi_form_value(ev, m, form->items[i]);
        if (!items[i + 1])
            return NULL;
    }
    return cfxi_build(ev, CFX_BUILD_LIKE, items, form->n + 1);
}
