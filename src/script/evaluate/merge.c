/* merge.c - two values of which the program will have one or the other, as one.
 *
 * What is known and equal on both sides stays known. Tuples, lists, dicts and instances of the same
 * form are merged item by item, so that what they hold is known as well as can be; all else is a
 * graph value afterwards, and comes out of the branch by an outlet. Numbers merge with numbers and
 * with tensors, and None with all; apart from that two types do not mix, because the code behind
 * would have to ask which one it has.
 */
#include "graph_control_impl.h"

#include <stdio.h>

typedef enum form_kind { FORM_KNOWN, FORM_OUTLET, FORM_BUILD } form_kind;

struct cfxi_form {
    form_kind kind;
    cfx_object *object;      /* KNOWN: itself; BUILD: what it is like */
    size_t outlet;
    cfxi_form **items;       /* BUILD: of its contents */
    size_t n;
    cfx_object *a, *b;       /* what it stands for, if that can change */
    bool grows;              /* OUTLET: a list of unknown length (growing_list.c) */
    cfxi_form *next;         /* another one whose `a` is the same */
    cfx_object *value;       /* what was made of it, of the results that there are now */
    unsigned results;
};

void cfxi_eval_merge_begin(cfxi_merge *m, cfx_evaluator *ev)
{
    *m = (cfxi_merge){.ev = ev, .number = ++ev->merges};
}

void cfxi_eval_merge_end(cfxi_merge *m)
{
    cfxi_base_vec_free(&m->outlets, sizeof(cfxi_outlet), m->ev->allocator);
    cfxi_base_pointers_free(&m->built, m->ev->allocator);
}

static cfxi_form *new_form(cfxi_merge *m, form_kind kind, cfx_object *object)
{
    cfxi_form *form = cfxi_eval_ev_alloc(m->ev, sizeof *form);
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

cfxi_form *cfxi_eval_merge_outlet(cfxi_merge *m, cfx_object *a, cfx_object *b, cfx_object_kind kind)
{
    cfxi_form *form = new_form(m, FORM_OUTLET, NULL);
    if (!form)
        return NULL;
    if (!cfxi_base_vec_reserve(&m->outlets, 1, sizeof(cfxi_outlet), m->ev->allocator)) {
        cfxi_base_nomem(m->ev->err);
        return NULL;
    }
    form->outlet = m->outlets.size++;
    ((cfxi_outlet *)m->outlets.data)[form->outlet] = (cfxi_outlet){.a = a, .b = b, .kind = kind};
    return form;
}

static cfxi_merged outlet(cfxi_merge *m, cfx_object *a, cfx_object *b, cfx_object_kind kind,
                          cfxi_form **form)
{
    *form = cfxi_eval_merge_outlet(m, a, b, kind);
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
    if (cfxi_eval_node(ev, o))
        return true;
    switch (ev->w->kind(ev->w->ctx, o)) {
    case CFX_OBJECT_CLASS:
    case CFX_OBJECT_MODULE:
    case CFX_OBJECT_INSTANCE:
        return false;
    case CFX_OBJECT_DICT:  /* of another class, it would be a plain one */
        return cfxi_eval_is_plain_dict(ev, o);
    default:
        return true;
    }
}

/* Whether it is a list, dict, set or instance: one of its own, whatever is in it. */
static bool can_change(cfx_evaluator *ev, cfx_object *o)
{
    if (!o || cfxi_eval_node(ev, o))
        return false;
    switch (ev->w->kind(ev->w->ctx, o)) {
    case CFX_OBJECT_LIST:
    case CFX_OBJECT_DICT:
    case CFX_OBJECT_SET:
    case CFX_OBJECT_INSTANCE:
        return true;
    default:
        return false;
    }
}

/* The kind of either; false if they do not mix. Numbers and tensors do: code that takes the one
 * takes the other. So does None with all: code asks for it. */
static bool join(cfx_object_kind a, cfx_object_kind b, bool both_known, cfx_object_kind *kind)
{
    *kind = a;
    if (a == b)
        return true;
    *kind = CFX_OBJECT_OTHER;  /* also of two numbers: is `True if p else 1` a bool? */
    if ((is_number(a) || a == CFX_OBJECT_TENSOR) && (is_number(b) || b == CFX_OBJECT_TENSOR))
        return true;
    if (a == CFX_OBJECT_NONE || b == CFX_OBJECT_NONE)
        return true;
    return !both_known && (a == CFX_OBJECT_OTHER || b == CFX_OBJECT_OTHER);
}

static cfxi_merged refuse(cfxi_merge *m, cfx_object *a, cfx_object *b)
{
    snprintf(m->why.type[0], sizeof m->why.type[0], "%s", cfxi_eval_kind_name(m->ev, a));
    snprintf(m->why.type[1], sizeof m->why.type[1], "%s", cfxi_eval_kind_name(m->ev, b));
    return CFXI_MERGED_NOT;
}

/* ---- containers ---------------------------------------------------------------------------- */

bool cfxi_eval_is_container(cfx_object_kind kind)
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
        built->items = cfxi_eval_ev_alloc(m->ev, (n + 1) * sizeof *built->items);
    if (!built || !built->items)
        return CFXI_MERGED_FAIL;
    built->n = n;
    for (size_t i = 0; i < n; i++) {
        const bool is_key = keyed && i % 2 == 0;
        cfxi_merged done = is_key ? known(m, a[i], &built->items[i])
                           : b    ? cfxi_eval_merge_values(m, a[i], b[i], &built->items[i])
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
    if (!cfxi_eval_contents(ev, a, &in_a, &n_a) || !cfxi_eval_contents(ev, b, &in_b, &n_b))
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
    a = cfxi_eval_current(ev, a);
    if (cfxi_eval_node(ev, a))
        return outlet(m, a, NULL, cfxi_eval_kind(ev, a), form);
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, a);
    if (!cfxi_eval_is_container(kind) || kind == CFX_OBJECT_INSTANCE)
        return known(m, a, form);
    if (!cfxi_eval_contents(ev, a, &items, &n))
        return CFXI_MERGED_FAIL;
    return merge_items(m, a, items, NULL, n, kind == CFX_OBJECT_DICT, form);
}

/* ---- as it was in a region ----------------------------------------------------------------- */

static const cfxi_change *contents_in(const cfxi_region *r, cfx_object *o)
{
    const cfxi_place p = {.kind = CFXI_PLACE_CONTENTS, .object = o};
    return cfxi_eval_region_change(r, &p);
}

/* The object as it was when the region was closed: a copy, if that was otherwise. */
static cfx_object *as_of(cfx_evaluator *ev, const cfxi_region *r, cfx_object *o)
{
    cfx_object **items;
    size_t n;
    if (cfxi_eval_node(ev, o) || !cfxi_eval_is_container(ev->w->kind(ev->w->ctx, o)) ||
        ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_INSTANCE)
        return o;
    const cfxi_change *c = contents_in(r, o);
    if (c && c->after.value)
        return c->after.value;
    if (!c && cfxi_eval_current(ev, o) != o)
        return cfxi_eval_current(ev, o);
    if (c) {
        items = c->after.items;
        n = c->after.n;
    } else if (!cfxi_eval_contents(ev, o, &items, &n)) {
        return NULL;
    }
    cfx_object **all = cfxi_eval_ev_alloc(ev, (n + 1) * sizeof *all);
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
    return same ? o : cfxi_eval_build(ev, CFX_BUILD_LIKE, all, n + 1);
}

static bool changes_contents(const cfxi_region *r)
{
    for (size_t i = 0; r && i < r->n; i++)
        if (r->changes[i].place.kind == CFXI_PLACE_CONTENTS)
            return true;
    return false;
}

/* ---- values -------------------------------------------------------------------------------- */

/* Notes that a graph value will hold what a known container does. */
static bool hand_over(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object **items;
    size_t n;
    if (cfxi_eval_node(ev, o) || !cfxi_eval_is_container(ev->w->kind(ev->w->ctx, o)))
        return true;
    return cfxi_eval_contents(ev, o, &items, &n) && cfxi_eval_escape_items(ev, items, n);
}

/* Of values that are not containers, or of containers with different structures. */
static cfxi_merged merge_leaves(cfxi_merge *m, cfx_object *a, cfx_object *b, bool known,
                                cfxi_form **form)
{
    cfx_object_kind kind;
    if (!join(cfxi_eval_kind(m->ev, a), cfxi_eval_kind(m->ev, b), known, &kind) ||
        !can_be_value(m->ev, a) || !can_be_value(m->ev, b))
        return refuse(m, a, b);
    if (!hand_over(m->ev, a) || !hand_over(m->ev, b))
        return CFXI_MERGED_FAIL;
    return outlet(m, a, b, kind, form);
}

static cfxi_merged merge_known(cfxi_merge *m, cfx_object *a, cfx_object *b, cfxi_form **form)
{
    const cfx_world *w = m->ev->w;
    const cfx_object_kind kind = w->kind(w->ctx, a);
    bool same = false;
    if (kind == w->kind(w->ctx, b) && cfxi_eval_is_container(kind)) {
        cfxi_merged done = merge_containers(m, a, b, kind, &same, form);
        if (same || done == CFXI_MERGED_FAIL)
            return done;
        if (kind != CFX_OBJECT_LIST && kind != CFX_OBJECT_TUPLE && kind != CFX_OBJECT_DICT)
            return refuse(m, a, b);
    } else if (w->equal(w->ctx, a, b)) {
        return known(m, a, form);
    }
    return merge_leaves(m, a, b, true, form);
}

/* What the one way has, the other never getting here. A list that was there before the branch stays
 * itself: what became of its contents is merged where they are. */
static cfxi_merged merge_alone(cfxi_merge *m, cfx_object *original, cfx_object *o, bool is_a,
                               cfxi_form **form)
{
    const cfxi_region *r = is_a ? m->in_a : m->in_b;
    const size_t first = m->outlets.size;
    if (r && can_change(m->ev, original) &&
        (uintptr_t)cfxi_base_pointers_get(&m->ev->births, original) < r->number)
        return known(m, original, form);
    cfxi_merged done = merge_one(m, o, form);
    for (size_t i = first; !is_a && i < m->outlets.size; i++) {
        cfxi_outlet *out = (cfxi_outlet *)m->outlets.data + i;
        out->b = out->a;
        out->a = NULL;
    }
    return done;
}

static cfxi_merged merge_new(cfxi_merge *m, cfx_object *a, cfx_object *b, cfxi_form **form)
{
    cfx_evaluator *ev = m->ev;
    cfx_object *original = a ? a : b;
    if (a && changes_contents(m->in_a) && !(a = as_of(ev, m->in_a, a)))
        return CFXI_MERGED_FAIL;
    if (b && changes_contents(m->in_b) && !(b = as_of(ev, m->in_b, b)))
        return CFXI_MERGED_FAIL;
    if (!a || !b)
        return merge_alone(m, original, a ? a : b, a != NULL, form);
    a = cfxi_eval_current(ev, a);
    b = cfxi_eval_current(ev, b);
    return cfxi_eval_node(ev, a) || cfxi_eval_node(ev, b) ? merge_leaves(m, a, b, false, form)
                                                : merge_known(m, a, b, form);
}

/* ---- pairs --------------------------------------------------------------------------------- */

static cfxi_form *find_pair(const cfxi_merge *m, cfx_object *a, cfx_object *b)
{
    for (cfxi_form *f = cfxi_base_pointers_get(&m->built, a ? a : b); f; f = f->next)
        if (f->a == a && f->b == b)
            return f;
    return NULL;
}

static bool keep_pair(cfxi_merge *m, cfx_object *a, cfx_object *b, cfxi_form *form)
{
    form->a = a;
    form->b = b;
    form->next = cfxi_base_pointers_get(&m->built, a ? a : b);
    if (cfxi_base_pointers_set(&m->built, a ? a : b, form, m->ev->allocator))
        return true;
    cfxi_base_nomem(m->ev->err);
    return false;
}

/* Whether it is, or has in it, one that comes out even if it stays the same. */
static bool holds_always(const cfxi_merge *m, cfx_object *o)
{
    cfx_evaluator *ev = m->ev;
    cfx_object **items;
    size_t n;
    o = cfxi_eval_current(ev, o);
    if (cfxi_eval_node(ev, o))
        return cfxi_base_pointers_get(m->always, o) != NULL;
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, o);
    if (!cfxi_eval_is_container(kind) || kind == CFX_OBJECT_INSTANCE ||
        !cfxi_eval_contents(ev, o, &items, &n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (holds_always(m, items[i]))
            return true;
    return false;
}

/* `training and True` is `training`: modes are asked so often that it pays to see it. */
static void simplify(const cfxi_merge *m, cfx_object **a, cfx_object **b)
{
    cfx_evaluator *ev = m->ev;
    const cfx_node *flag = m->flag ? cfxi_eval_node(ev, m->flag) : NULL;
    if (!flag || !*a || !*b)
        return;
    if (cfxi_eval_node(ev, *a) == flag)
        *a = ev->true_;
    if (cfxi_eval_node(ev, *b) == flag)
        *b = ev->false_;
    if (ev->w->equal(ev->w->ctx, *a, ev->true_) && ev->w->equal(ev->w->ctx, *b, ev->false_))
        *a = *b = m->flag;
}

/* `once`: all that are given this pair get the same. */
static cfxi_merged merge_pair(cfxi_merge *m, cfx_object *a, cfx_object *b, bool once,
                              cfxi_form **form)
{
    simplify(m, &a, &b);
    if (a == b && !(m->always && holds_always(m, a)))
        return known(m, a, form);
    if (once && (*form = find_pair(m, a, b)) != NULL)
        return CFXI_MERGED;
    const cfxi_merged done = merge_new(m, a, b, form);
    if (done != CFXI_MERGED || !once || (*form)->kind == FORM_KNOWN)
        return done;
    (*form)->grows = (*form)->kind == FORM_OUTLET && can_change(m->ev, a) && can_change(m->ev, b);
    return keep_pair(m, a, b, *form) ? done : CFXI_MERGED_FAIL;
}

cfxi_merged cfxi_eval_merge_values(cfxi_merge *m, cfx_object *a, cfx_object *b, cfxi_form **form)
{
    return merge_pair(m, a, b, can_change(m->ev, a) || can_change(m->ev, b), form);
}

cfxi_merged cfxi_eval_merge_assigned(cfxi_merge *m, cfx_object *a, cfx_object *b, cfxi_form **form)
{
    return merge_pair(m, a, b, true, form);
}

void cfxi_eval_merge_take_back(cfxi_merge *m, size_t outlets)
{
    m->outlets.size = outlets;
    cfxi_base_pointers_free(&m->built, m->ev->allocator);  /* they may have outlets that are gone */
}

/* ---- results ------------------------------------------------------------------------------- */

static cfx_object *build(cfx_evaluator *ev, const cfxi_merge *m, const cfxi_form *form)
{
    cfx_object **items = cfxi_eval_ev_alloc(ev, (form->n + 1) * sizeof *items);
    if (!items)
        return NULL;
    items[0] = form->object;
    for (size_t i = 0; i < form->n; i++) {
        items[i + 1] = cfxi_eval_form_value(ev, m, form->items[i]);
        if (!items[i + 1])
            return NULL;
    }
    return cfxi_eval_build(ev, CFX_BUILD_LIKE, items, form->n + 1);
}

static cfx_object *outlet_value(cfx_evaluator *ev, const cfxi_merge *m, const cfxi_form *form)
{
    const cfxi_outlet *out = (const cfxi_outlet *)m->outlets.data + form->outlet;
    if (!form->grows || !out->result)
        return out->result;
    const bool is_dict = out->kind == CFX_OBJECT_DICT;
    cfx_object *made = cfxi_eval_build(ev, is_dict ? CFX_BUILD_DICT : CFX_BUILD_LIST, NULL, 0);
    return made && cfxi_eval_grow_from(ev, made, out->result) ? made : NULL;
}

cfx_object *cfxi_eval_form_value(cfx_evaluator *ev, const cfxi_merge *m, cfxi_form *form)
{
    if (form->kind == FORM_KNOWN)
        return form->object;
    if (form->value && form->results == m->results)
        return form->value;
    form->value = form->kind == FORM_BUILD ? build(ev, m, form) : outlet_value(ev, m, form);
    form->results = m->results;
    if (form->value && (form->a || form->b) &&
        !cfxi_eval_note_origin(ev, form->value, form->a, form->b,
                               (uint64_t)m->number << 32 | m->results))
        return NULL;
    return form->value;
}
