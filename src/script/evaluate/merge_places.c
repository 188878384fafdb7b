/* merge_places.c - merges variables, attributes and lists that two ways have left in different
 * states. */
#include "graph_control_impl.h"

typedef struct merged_place {
    cfxi_place place;
    cfxi_state state;        /* what it becomes; `value`, `items` by the forms, if any */
    cfxi_form *value;
    cfxi_form **items;
} merged_place;

struct cfxi_merged_places {
    merged_place *all;
    size_t n;
};

/* ---- variables ----------------------------------------------------------------------------- */

static const cfxi_poison *new_poison(cfxi_merge *m, int why, uint32_t a, uint32_t b)
{
    cfxi_poison *p = cfxi_eval_ev_alloc(m->ev, sizeof *p);
    if (p) {
        *p = m->why;
        p->why = why;
        p->line[0] = a;
        p->line[1] = b;
    }
    return p;
}

static bool poison(cfxi_merge *m, merged_place *p, int why, const cfxi_state *a,
                   const cfxi_state *b)
{
    p->state = (cfxi_state){.line = a->value ? a->line : b->line};
    p->state.poison = a->poison ? a->poison
                      : b->poison ? b->poison : new_poison(m, why, p->state.line, b->line);
    return p->state.poison != NULL;
}

static bool merge_local(cfxi_merge *m, merged_place *p, const cfxi_state *a, const cfxi_state *b)
{
    if (a->value == b->value && a->poison == b->poison) {
        p->state = *a;
        return true;
    }
    if (!a->value || !b->value)
        return poison(m, p, CFXI_POISON_ONE_SIDE, a, b);
    p->state.line = a->line;
    switch (cfxi_eval_merge_values(m, a->value, b->value, &p->value)) {
    case CFXI_MERGED_FAIL:
        return false;
    case CFXI_MERGED_NOT:
        return poison(m, p, CFXI_POISON_KINDS, a, b);
    case CFXI_MERGED:
        return true;
    }
    return false;
}

/* ---- attributes ---------------------------------------------------------------------------- */

static bool merge_assigned(cfxi_merge *m, merged_place *p, const cfxi_state *a,
                           const cfxi_state *b)
{
    return cfxi_eval_merge_assigned(m, a->value, b->value, &p->value) == CFXI_MERGED;
}

static bool merge_attribute(cfxi_merge *m, merged_place *p, const cfxi_state *a,
                            const cfxi_state *b)
{
    cfx_evaluator *ev = m->ev;
    if (a->value == b->value) {
        p->state = *a;
        return true;
    }
    if (!a->value || !b->value) {
        cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                       "attribute '%s' is set in only one branch, and the branch depends on data; "
                       "set it before the branch",
                       p->place.name);
        return false;
    }
    const cfxi_merged done = cfxi_eval_merge_values(m, a->value, b->value, &p->value);
    if (done == CFXI_MERGED_NOT)
        cfxi_eval_fail(ev, NULL, CFX_E_TYPE,
                       "attribute '%s' is %s in one branch and %s in the other, depending on data; "
                       "use the same type in both branches",
                       p->place.name, m->why.type[0], m->why.type[1]);
    return done == CFXI_MERGED;
}

/* ---- lists, dicts and sets ----------------------------------------------------------------- */

/* The list or dict becomes a graph value. */
static bool merge_growing(cfxi_merge *m, merged_place *p, const cfxi_state *a, const cfxi_state *b,
                          cfx_object_kind kind)
{
    cfx_evaluator *ev = m->ev;
    cfx_object *in_a = cfxi_eval_whole(ev, a, kind);
    cfx_object *in_b = cfxi_eval_whole(ev, b, kind);
    p->state.items = a->items;
    p->state.n = a->n;
    p->value = in_a && in_b ? cfxi_eval_merge_outlet(m, in_a, in_b, kind) : NULL;
    return p->value != NULL;
}

static bool merge_each(cfxi_merge *m, merged_place *p, const cfxi_state *a, const cfxi_state *b,
                       bool keyed, cfxi_merged *done)
{
    cfx_evaluator *ev = m->ev;
    const size_t outlets = m->outlets.size;
    *done = CFXI_MERGED;
    p->state.n = a->n;
    p->state.items = cfxi_eval_ev_alloc(ev, (a->n + 1) * sizeof *p->state.items);
    p->items = cfxi_eval_ev_alloc(ev, (a->n + 1) * sizeof *p->items);
    if (!p->items || !p->state.items)
        return false;
    for (size_t i = 0; i < a->n && *done == CFXI_MERGED; i++) {
        p->state.items[i] = a->items[i];
        if (!keyed || i % 2 == 1)
            *done = cfxi_eval_merge_values(m, a->items[i], b->items[i], &p->items[i]);
        else if (a->items[i] != b->items[i] &&
                 !ev->w->equal(ev->w->ctx, a->items[i], b->items[i]))
            *done = CFXI_MERGED_NOT;
    }
    if (*done == CFXI_MERGED_NOT) {
        cfxi_eval_merge_take_back(m, outlets);
        p->items = NULL;
    }
    return *done != CFXI_MERGED_FAIL;
}

/* Says it in the line that changed it. */
static bool fail_contents(cfx_evaluator *ev, const cfxi_place *p, cfx_object_kind kind)
{
    cfxi_frame *here = ev->frame;
    cfxi_frame there = p->frame ? *p->frame : *here;
    there.at = p->at ? p->at : there.at;
    ev->frame = &there;
    if (kind == CFX_OBJECT_SET || kind == CFX_OBJECT_DICT)
        cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                       "the keys of a %s differ between two branches that depend on data; give it "
                       "the same keys in both branches", kind == CFX_OBJECT_SET ? "set" : "dict");
    else
        cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                       "this %.60s has another length or contents after one of two branches that "
                       "depend on data; use a list or a tensor, or change it before the branch",
                       ev->w->type_name(ev->w->ctx, p->object));
    ev->frame = here;
    return false;
}

static bool merge_contents(cfxi_merge *m, merged_place *p, const cfxi_state *a,
                           const cfxi_state *b)
{
    cfx_evaluator *ev = m->ev;
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, p->place.object);
    cfxi_merged done = CFXI_MERGED_NOT;
    if (a->value && a->value == b->value) {
        p->state = *a;
        return true;
    }
    cfx_object *owner = p->place.object;
    const bool whole = cfxi_eval_change(ev, &owner) == CFX_CHANGE_WHOLE;
    if (cfxi_eval_state_is(ev, &p->place, a, b)) {
        p->state = *a;
        return true;
    }
    if (!whole && !a->value && !b->value && a->n == b->n && kind != CFX_OBJECT_SET &&
        !merge_each(m, p, a, b, kind == CFX_OBJECT_DICT, &done))
        return false;
    if (done == CFXI_MERGED)
        return true;
    if (cfxi_eval_can_grow(ev, p->place.object))
        return merge_growing(m, p, a, b, kind);
    return fail_contents(ev, &p->place, kind);
}

/* ---- all of them --------------------------------------------------------------------------- */

static bool merge_place(cfxi_merge *m, merged_place *p, const cfxi_state *a, const cfxi_state *b,
                        unsigned dead)
{
    if (dead) {  /* what the other way has; it may need to come out of its region */
        const cfxi_state *s = dead == 1 ? b : a;
        const cfxi_state other = {.items = s->items, .n = s->n};
        p->state = *s;
        if (p->place.kind == CFXI_PLACE_CONTENTS && !s->value) {
            cfxi_state gone = other;
            cfxi_merged done;
            gone.items = cfxi_eval_ev_alloc(m->ev, (s->n + 1) * sizeof *gone.items);
            if (!gone.items)
                return false;
            const bool keyed = m->ev->w->kind(m->ev->w->ctx, p->place.object) == CFX_OBJECT_DICT;
            for (size_t i = 0; keyed && i < s->n; i += 2)
                gone.items[i] = s->items[i];
            return merge_each(m, p, dead == 1 ? &gone : s, dead == 1 ? s : &gone, keyed, &done);
        }
        return !s->value || cfxi_eval_merge_values(m, dead == 1 ? NULL : s->value,
                                                   dead == 1 ? s->value : NULL, &p->value) ==
                                CFXI_MERGED;
    }
    switch (p->place.kind) {
    case CFXI_PLACE_LOCAL:
        return merge_local(m, p, a, b);
    case CFXI_PLACE_ATTRIBUTE:
        return merge_attribute(m, p, a, b);
    case CFXI_PLACE_ASSIGNED:
        return merge_assigned(m, p, a, b);
    case CFXI_PLACE_CONTENTS:
        return merge_contents(m, p, a, b);
    }
    return false;
}

/* Variables that are not read again need not be results. */
static bool add_place(cfxi_merge *m, cfxi_merged_places *places, const cfxi_place *place,
                      const cfxi_state *a, const cfxi_state *b, unsigned dead, uint64_t here)
{
    merged_place *p = &places->all[places->n++];
    const bool ours = place->kind == CFXI_PLACE_LOCAL && place->frame == m->ev->frame &&
                      !place->frame->captured;
    *p = (merged_place){.place = *place};
    if (cfxi_eval_place_is_dead(m->ev, place, here))
        return true;
    if ((dead & 3) == 0 && ours)
        dead >>= 2;
    return merge_place(m, p, a, b, dead & 3);
}

cfxi_merged_places *cfxi_eval_merge_places(cfxi_merge *m, const cfxi_region *a,
                                           const cfxi_region *b, unsigned dead, uint64_t here)
{
    cfxi_merged_places *places = cfxi_eval_ev_alloc(m->ev, sizeof *places);
    if (places)
        places->all = cfxi_eval_ev_alloc(m->ev, (a->n + b->n + 1) * sizeof *places->all);
    if (!places || !places->all)
        return NULL;
    for (size_t i = 0; i < a->n; i++) {
        const cfxi_change *c = &a->changes[i];
        const cfxi_change *other = cfxi_eval_region_change(b, &c->place);
        if (!add_place(m, places, &c->place, &c->after, other ? &other->after : &c->before, dead,
                       here))
            return NULL;
    }
    for (size_t i = 0; i < b->n; i++) {
        const cfxi_change *c = &b->changes[i];
        if (!cfxi_eval_region_change(a, &c->place) &&
            !add_place(m, places, &c->place, &c->before, &c->after, dead, here))
            return NULL;
    }
    return places;
}

bool cfxi_eval_write_places(cfxi_merge *m, const cfxi_merged_places *places)
{
    cfx_evaluator *ev = m->ev;
    for (size_t i = 0; i < places->n; i++) {
        merged_place *p = &places->all[i];
        if (p->value && !(p->state.value = cfxi_eval_form_value(ev, m, p->value)))
            return false;
        for (size_t k = 0; p->items && k < p->state.n; k++)
            if (p->items[k] && !(p->state.items[k] = cfxi_eval_form_value(ev, m, p->items[k])))
                return false;
        if (!cfxi_eval_place_note(ev, &p->place) ||
            !cfxi_eval_place_write(ev, &p->place, &p->state))
            return false;
    }
    return true;
}
