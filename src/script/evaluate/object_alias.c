/* object_alias.c - lists, dicts and instances that may be one.
 *
 * Where a branch chooses between two lists, what stands for the chosen one behind it is a third
 * (merge.c), with the contents of either. In the program it is one of the two:
 *     b = a if x.sum() > 0 else [3, 4]
 *     b.append(5)                        # changes a, perhaps
 * So a change is refused as long as the program can still see another that may be the same list.
 */
#include "graph_control_impl.h"

/* A list in a list that is a graph value is there twice: what the graph holds, and what is known
 *     rows.append(row)                   # rows is as long as data say
 *     row[0] = x                         # would not be seen in rows, nor rows[0][0] = x in row
 * So neither is changed while the other is seen. */

/* What an object may be: the first if a branch went one way (a loop ran no round), the second if it
 * went the other. */
typedef struct origin {
    cfx_object *of[2];   /* NULL: one is enough */
    uint64_t merge;      /* objects of one merge went the same way; later ones have more */
    uint32_t line;       /* of the branch or loop */
} origin;

bool cfxi_eval_note_origin(cfx_evaluator *ev, cfx_object *o, cfx_object *a, cfx_object *b,
                           uint64_t merge)
{
    origin *from = cfxi_eval_ev_alloc(ev, sizeof *from);
    if (!from)
        return false;
    *from = (origin){.of = {a, b}, .merge = merge};
    from->line = ev->frame && ev->frame->at ? ev->frame->at->line : 0;
    bool fine = cfxi_base_pointers_set(&ev->origins, o, from, ev->allocator);
    for (size_t i = 0; fine && i < 2; i++)
        if (from->of[i] && !cfxi_base_pointers_get(&ev->originals, from->of[i]))
            fine = cfxi_base_pointers_set(&ev->originals, from->of[i], from, ev->allocator);
    if (!fine)
        cfxi_base_nomem(ev->err);
    return fine;
}

/* ---- what may be the same ------------------------------------------------------------------ */

typedef struct search {
    cfx_evaluator *ev;
    cfx_object *o;           /* that is to be changed; NULL: something that a graph value holds */
    cfxi_pointers bases;     /* all that it may be: object -> itself */
    cfxi_pointers apart;     /* what was found to be none of them: origins are shared */
    unsigned steps;          /* how many pairs of one comparison were looked at */
    cfxi_pointers seen;
    bool found, failed;
    uint32_t line;           /* in which a graph value got what was found */
} search;

static bool add(search *s, cfxi_pointers *set, cfx_object *o)
{
    s->failed = s->failed || !cfxi_base_pointers_set(set, o, o, s->ev->allocator);
    return !s->failed;
}

/* Whether both are graph values: if they are one object when the graph runs, then the change is
 * seen by all who have it. */
static bool are_values(const search *s, cfx_object *o)
{
    return s->o && cfxi_eval_node(s->ev, s->o) && cfxi_eval_node(s->ev, o);
}

static void add_bases(search *s, cfx_object *o)
{
    if (cfxi_base_pointers_get(&s->bases, o) || !add(s, &s->bases, o))
        return;
    const origin *from = cfxi_base_pointers_get(&s->ev->origins, o);
    /* The pool keeps all alive; one that was there before the evaluation, others may have, too. */
    if (o != s->o && !from && !cfxi_base_pointers_get(&s->ev->births, o) && !are_values(s, o))
        s->found = true;
    for (size_t i = 0; from && i < 2; i++)
        if (from->of[i])
            add_bases(s, from->of[i]);
}

/* Whether one of the things that it may be is among those that the other may be. */
static bool shares_base(search *s, cfx_object *o)
{
    const origin *from = cfxi_base_pointers_get(&s->ev->origins, o);
    if (cfxi_base_pointers_get(&s->bases, o))
        return true;
    if (!from || cfxi_base_pointers_get(&s->apart, o) || !add(s, &s->apart, o))
        return false;
    for (size_t i = 0; i < 2; i++)
        if (from->of[i] && shares_base(s, from->of[i]))
            return true;
    return false;
}

enum { MOST_STEPS = 4000 };  /* beyond that, two may be one */

/* Whether two objects are one on some way. Those that one merge made are what they are on the same
 * way, so
 *     if p: best, cur = cur, []      # best and cur are never the same list
 */
static bool may_be_one(search *s, cfx_object *a, cfx_object *b)
{
    const origin *from_a = cfxi_base_pointers_get(&s->ev->origins, a);
    const origin *from_b = cfxi_base_pointers_get(&s->ev->origins, b);
    if (a == b || ++s->steps > MOST_STEPS)
        return true;
    if (!from_a && !from_b)
        return false;
    const bool both = from_a && from_b && from_a->merge == from_b->merge;
    const bool later = from_a && (!from_b || from_a->merge >= from_b->merge);
    for (size_t i = 0; i < 2; i++) {
        cfx_object *x = both || later ? from_a->of[i] : a;
        cfx_object *y = both || !later ? from_b->of[i] : b;
        if (x && y && may_be_one(s, x, y))
            return true;
    }
    return false;
}

/* ---- what the program sees ----------------------------------------------------------------- */

static void find_escaped(search *s, cfx_object *o)
{
    const uint32_t *line = cfxi_base_pointers_get(&s->ev->escaped, o);
    s->found = line && s->ev->w->kind(s->ev->w->ctx, o) != CFX_OBJECT_TUPLE;
    s->line = s->found ? *line : 0;
}

static void visit(search *s, cfx_object *o)
{
    cfx_evaluator *ev = s->ev;
    cfx_object **items;
    size_t n;
    if (s->found || s->failed || cfxi_base_pointers_get(&s->seen, o) || !add(s, &s->seen, o))
        return;
    if (!s->o)
        find_escaped(s, o);
    else
        s->found = o != s->o && !are_values(s, o) && shares_base(s, o) &&
                   (s->steps = 0, may_be_one(s, o, s->o));
    if (cfxi_eval_node(ev, o) || !cfxi_eval_is_container(ev->w->kind(ev->w->ctx, o)) ||
        cfxi_eval_current(ev, o) != o)
        return;
    if (!cfxi_eval_contents(ev, o, &items, &n)) {
        s->failed = true;
        return;
    }
    for (size_t i = 0; i < n; i++)
        visit(s, items[i]);
}

static void visit_frame(search *s, const cfxi_frame *f)
{
    for (uint32_t i = 0; i < f->def->n_locals; i++)
        if (f->slots[i].value &&
            !(f->at && cfxi_eval_slot_is_dead(f, i, cfxi_eval_start_of(f->at))) &&
            !cfxi_eval_slot_is_rewritten(s->ev, f, i))
            visit(s, f->slots[i].value);
}

static void visit_all(search *s)
{
    const cfx_evaluator *ev = s->ev;
    for (const cfxi_frame *f = ev->frame; f; f = f->caller)
        visit_frame(s, f);
    for (const cfx_script_function *f = ev->functions; f; f = f->next)
        for (const cfxi_frame *outer = f->outer; outer; outer = outer->outer)
            visit_frame(s, outer);
}

/* ---- what graph values hold ---------------------------------------------------------------- */

bool cfxi_eval_escape(cfx_evaluator *ev, cfx_object *o, bool once_more)
{
    cfx_object **items;
    size_t n;
    if (cfxi_eval_node(ev, o) || !cfxi_eval_is_container(ev->w->kind(ev->w->ctx, o)))
        return true;
    uint32_t *line = cfxi_eval_ev_alloc(ev, sizeof *line);
    if (!line)
        return false;
    *line = ev->frame && ev->frame->at ? ev->frame->at->line : 0;
    const bool is_old = (uintptr_t)cfxi_base_pointers_get(&ev->births, o) < ev->round;
    const bool again = cfxi_base_pointers_get(&ev->escaped, o) || is_old;  /* in each round */
    if (again && once_more && ev->w->kind(ev->w->ctx, o) != CFX_OBJECT_TUPLE)
        ev->shared = *line;
    if (cfxi_base_pointers_get(&ev->escaped, o))
        return true;
    if (!cfxi_base_pointers_set(&ev->escaped, o, line, ev->allocator)) {
        cfxi_base_nomem(ev->err);
        return false;
    }
    if (cfxi_eval_current(ev, o) != o)
        return true;
    if (!cfxi_eval_contents(ev, o, &items, &n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!cfxi_eval_escape(ev, items[i], once_more))
            return false;
    return true;
}

bool cfxi_eval_escape_items(cfx_evaluator *ev, cfx_object **items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bool has_before = i > 0 && items[i] == items[i - 1];  /* as in [row] * n */
        if (!cfxi_eval_escape(ev, items[i], has_before))
            return false;
    }
    return true;
}

bool cfxi_eval_lend(cfx_evaluator *ev, cfx_object *o)
{
    cfx_object **items;
    size_t n;
    if (cfxi_eval_node(ev, o) || !cfxi_eval_is_container(ev->w->kind(ev->w->ctx, o)))
        return true;
    if (cfxi_eval_current(ev, o) != o)
        return cfxi_eval_escape(ev, o, true);
    if (ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_INSTANCE || !cfxi_eval_contents(ev, o, &items, &n))
        return ev->err->status == CFX_OK;
    for (size_t i = 0; i < n; i++)
        if (!cfxi_eval_lend(ev, items[i]))
            return false;
    return true;
}

/* Whether the program sees a container that a graph value holds as well, and that may change. */
static bool sees_escaped(cfx_evaluator *ev, uint32_t *line)
{
    search s = {.ev = ev};
    visit_all(&s);
    *line = s.line;
    cfxi_base_pointers_free(&s.seen, ev->allocator);
    if (s.failed && ev->err->status == CFX_OK)
        cfxi_base_nomem(ev->err);
    return s.found || s.failed;
}

static bool check_escaped(cfx_evaluator *ev, cfx_object *o)
{
    const uint32_t *at = cfxi_base_pointers_get(&ev->escaped, o);
    uint32_t line = at ? *at : 0;
    if (!at && (!cfxi_eval_node(ev, o) || cfxi_eval_kind(ev, o) == CFX_OBJECT_TENSOR))
        return true;
    line = at ? line : ev->shared;
    if (!line && !sees_escaped(ev, &line))
        return true;
    if (ev->err->status != CFX_OK)
        return false;
    return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                          "this may change a list or dict that line %u also put into a list whose "
                          "length depends on data, or into another object; put a copy there "
                          "instead (list(x), dict(x))",
                          line);
}

bool cfxi_eval_check_alias(cfx_evaluator *ev, cfx_object *o)
{
    if (ev->escaped.n > 0 && !check_escaped(ev, o))
        return false;
    const origin *from = cfxi_base_pointers_get(&ev->origins, o);
    if (!from)
        from = cfxi_base_pointers_get(&ev->originals, o);
    if (!from)
        return true;
    search s = {.ev = ev, .o = o};
    add_bases(&s, o);
    visit_all(&s);
    cfxi_base_pointers_free(&s.bases, ev->allocator);
    cfxi_base_pointers_free(&s.apart, ev->allocator);
    cfxi_base_pointers_free(&s.seen, ev->allocator);
    if (s.failed && ev->err->status == CFX_OK)
        cfxi_base_nomem(ev->err);
    else if (s.found && !s.failed)
        cfxi_eval_fail(
            ev, NULL, CFX_E_UNSUPPORTED,
            "this %s may be an alias of another object, depending on data (line %u), so the change "
            "cannot be captured for both; change a copy, or copy before the branch",
            cfxi_eval_kind_name(ev, o), from->line);
    return !s.failed && !s.found;
}
