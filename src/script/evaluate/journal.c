/* journal.c - what a part of the program changed, so that it can be put back, and merged. */
#include "graph_control_impl.h"

/* ---- places -------------------------------------------------------------------------------- */

static bool same_place(const cfxi_place *a, const cfxi_place *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == CFXI_PLACE_LOCAL)
        return a->frame == b->frame && a->slot == b->slot;
    return a->object == b->object &&
           (a->kind == CFXI_PLACE_CONTENTS || strcmp(a->name, b->name) == 0);
}

/* A missing attribute is not an error here. */
static bool read_attribute(cfx_evaluator *ev, const cfxi_place *p, cfxi_state *state)
{
    cfx_error err = {0};
    cfx_object *v = ev->w->get(ev->w->ctx, p->object, p->name, &err);
    if (!v && err.status != CFX_E_HOST && err.status != CFX_E_KEY) {
        *ev->err = err;
        return false;
    }
    if (!v && err.status == CFX_E_HOST)
        cfxi_eval_pool(ev, ev->w->caught(ev->w->ctx));
    state->value = v ? cfxi_eval_pool(ev, v) : NULL;
    return !v || state->value;
}

bool cfxi_eval_place_read(cfx_evaluator *ev, const cfxi_place *p, cfxi_state *state)
{
    *state = (cfxi_state){0};
    switch (p->kind) {
    case CFXI_PLACE_LOCAL: {
        const cfxi_local *local = &p->frame->slots[p->slot];
        state->value = local->value;
        state->poison = local->poison;
        state->line = local->line;
        return true;
    }
    case CFXI_PLACE_ATTRIBUTE:
        return read_attribute(ev, p, state);
    case CFXI_PLACE_ASSIGNED:
        state->value = cfxi_eval_is_assigned(ev, p);
        return true;
    case CFXI_PLACE_CONTENTS:
        state->value = cfxi_base_pointers_get(&ev->growing, p->object);
        return cfxi_eval_contents(ev, p->object, &state->items, &state->n);
    }
    return false;
}

/* The object that holds all of an array is made anew whenever it is asked for. */
static bool same_contents(cfx_evaluator *ev, cfx_object *o, const cfxi_state *a,
                          const cfxi_state *b)
{
    if (a->n != b->n || a->n == 0 || memcmp(a->items, b->items, a->n * sizeof *a->items) == 0)
        return a->n == b->n;
    return cfxi_eval_change(ev, &o) == CFX_CHANGE_WHOLE &&
           ev->w->equal(ev->w->ctx, a->items[0], b->items[0]);
}

bool cfxi_eval_state_is(cfx_evaluator *ev, const cfxi_place *p, const cfxi_state *a,
                        const cfxi_state *b)
{
    return a->value == b->value && a->poison == b->poison &&
           (p->kind != CFXI_PLACE_CONTENTS || same_contents(ev, p->object, a, b));
}

static bool write_contents(cfx_evaluator *ev, const cfxi_place *p, const cfxi_state *state)
{
    cfxi_state now;
    if (!cfxi_eval_place_read(ev, p, &now))
        return false;
    if (now.value != state->value &&
        !cfxi_base_pointers_set(&ev->growing, p->object, state->value, ev->allocator)) {
        cfxi_base_nomem(ev->err);
        return false;
    }
    return same_contents(ev, p->object, &now, state) ||
           ev->w->refill(ev->w->ctx, p->object, state->items, state->n, ev->err) == CFX_OK;
}

bool cfxi_eval_place_write(cfx_evaluator *ev, const cfxi_place *p, const cfxi_state *state)
{
    switch (p->kind) {
    case CFXI_PLACE_LOCAL: {
        cfxi_local *local = &p->frame->slots[p->slot];
        local->value = state->value;
        local->poison = state->poison;
        local->line = state->line;
        return true;
    }
    case CFXI_PLACE_ATTRIBUTE: {
        cfxi_state now;
        if (!read_attribute(ev, p, &now))
            return false;
        const cfx_world *w = ev->w;
        return now.value == state->value ||
               (w->put ? w->put : w->set)(w->ctx, p->object, p->name, state->value, ev->err) ==
                   CFX_OK;
    }
    case CFXI_PLACE_ASSIGNED:
        return cfxi_eval_put_assigned(ev, p, state->value);
    case CFXI_PLACE_CONTENTS:
        return write_contents(ev, p, state);
    }
    return false;
}

cfx_object *cfxi_eval_whole(cfx_evaluator *ev, const cfxi_state *contents, cfx_object_kind kind)
{
    if (contents->value)
        return contents->value;
    if (!cfxi_eval_escape_items(ev, contents->items, contents->n))
        return NULL;
    return cfxi_eval_build(ev, kind == CFX_OBJECT_DICT ? CFX_BUILD_DICT : CFX_BUILD_LIST,
                           contents->items, contents->n);
}

/* ---- notes --------------------------------------------------------------------------------- */

static uint32_t hash_place(const cfxi_place *p)
{
    if (p->kind == CFXI_PLACE_LOCAL)
        return cfxi_base_hash_pointer(&p->frame->slots[p->slot]);
    const uint32_t hash = cfxi_base_hash_pointer(p->object);
    if (p->kind == CFXI_PLACE_CONTENTS)
        return hash;
    return hash ^ (uint32_t)cfxi_base_hash_bytes(p->name, strlen(p->name));
}

typedef struct wanted_place {
    const cfxi_change *changes;
    const cfxi_place *place;
} wanted_place;

static bool is_wanted(const void *item, const void *key, size_t size)
{
    const wanted_place *wanted = key;
    (void)size;
    return same_place(&wanted->changes[cfxi_base_set_number(item)].place, wanted->place);
}

cfxi_change *cfxi_eval_region_change(const cfxi_region *r, const cfxi_place *p)
{
    const wanted_place wanted = {r->changes, p};
    const void *item =
        r->n > 0 ? cfxi_base_set_find(&r->places, hash_place(p), is_wanted, &wanted, 0) : NULL;
    return item ? &r->changes[cfxi_base_set_number(item)] : NULL;
}

static bool has_noted(const cfxi_region *r, const cfxi_place *p)
{
    return p->kind == CFXI_PLACE_LOCAL ? p->frame->slots[p->slot].journal == r->number
                                       : cfxi_eval_region_change(r, p) != NULL;
}

/* Room for one more change. */
static bool make_room(cfx_evaluator *ev, cfxi_region *r)
{
    const cfx_allocator in_arena = cfxi_base_arena_allocator(&ev->arena);
    if (r->n == r->capacity) {
        const size_t capacity = r->capacity ? 2 * r->capacity : 8;
        cfxi_change *changes = cfxi_eval_ev_alloc(ev, capacity * sizeof *changes);
        if (!changes)
            return false;
        if (r->n > 0)
            memcpy(changes, r->changes, r->n * sizeof *changes);
        r->changes = changes;
        r->capacity = capacity;
    }
    if (cfxi_base_set_reserve_numbers(&r->places, &r->changes->hash, sizeof *r->changes, &in_arena))
        return true;
    cfxi_base_nomem(ev->err);
    return false;
}

/* Notes that the place was so before the region. */
static bool note_state(cfx_evaluator *ev, cfxi_region *r, const cfxi_place *p,
                       const cfxi_state *before)
{
    if (!make_room(ev, r))
        return false;
    cfxi_change *c = &r->changes[r->n];
    *c = (cfxi_change){.place = *p, .before = *before, .hash = hash_place(p)};
    cfxi_base_set_insert(&r->places, c->hash, cfxi_base_set_item(r->n++));
    if (p->kind == CFXI_PLACE_LOCAL) {
        cfxi_local *local = &p->frame->slots[p->slot];
        c->noted = local->journal;
        local->journal = r->number;
    }
    return true;
}

/* Whether it came into being in the region, and goes with it. */
static bool is_own(const cfx_evaluator *ev, const cfxi_region *r, const cfxi_place *p)
{
    if (p->kind == CFXI_PLACE_LOCAL)
        return p->frame->region == r->number;
    return (uintptr_t)cfxi_base_pointers_get(&ev->births, p->object) >= r->number;
}

bool cfxi_eval_place_note(cfx_evaluator *ev, const cfxi_place *p)
{
    cfxi_state before;
    if (is_own(ev, ev->region, p))
        return true;
    if (has_noted(ev->region, p))
        return true;
    return cfxi_eval_place_read(ev, p, &before) && note_state(ev, ev->region, p, &before);
}

bool cfxi_eval_place_note_late(cfx_evaluator *ev, const cfxi_place *p, const cfxi_state *before)
{
    return is_own(ev, ev->region, p) || has_noted(ev->region, p) ||
           note_state(ev, ev->region, p, before);
}

bool cfxi_eval_journal_slot(cfx_evaluator *ev, cfxi_frame *frame, uint32_t slot)
{
    const cfxi_place p = {.kind = CFXI_PLACE_LOCAL, .frame = frame, .slot = slot};
    return cfxi_eval_place_note(ev, &p);
}

bool cfxi_eval_journal_attribute(cfx_evaluator *ev, cfx_object *o, const char *name)
{
    const cfx_world *w = ev->w;
    if (w->is_computed && w->is_computed(w->ctx, o, name))
        return cfxi_eval_check_alias(ev, o);
    cfxi_frame *frame = cfxi_eval_visible_frame(ev, ev->frame);
    const cfxi_place p = {.kind = CFXI_PLACE_ATTRIBUTE, .object = o, .name = name,
                          .frame = frame, .at = frame ? frame->at : NULL};
    return cfxi_eval_check_alias(ev, o) && cfxi_eval_place_note(ev, &p);
}

bool cfxi_eval_journal_contents(cfx_evaluator *ev, cfx_object *o)
{
    const cfxi_place p = {.kind = CFXI_PLACE_CONTENTS, .object = o, .frame = ev->frame,
                          .at = ev->frame ? ev->frame->at : NULL};
    return cfxi_eval_check_alias(ev, o) && cfxi_eval_place_note(ev, &p);
}

/* It is read nowhere behind `here`, nor in an earlier part of a loop around it. */
bool cfxi_eval_slot_is_dead(const cfxi_frame *f, uint32_t slot, uint64_t here)
{
    if (f->captured || f->def->kind != CFXI_DEF_FUNCTION)
        return false;
    const uint64_t from = f->loop && f->loop < here ? f->loop : here;
    return here == 0 || f->def->last_read[slot] < from;
}

bool cfxi_eval_place_is_dead(const cfx_evaluator *ev, const cfxi_place *p, uint64_t here)
{
    return p->kind == CFXI_PLACE_LOCAL && p->frame == ev->frame &&
           cfxi_eval_slot_is_dead(p->frame, p->slot, here);
}

/* ---- regions ------------------------------------------------------------------------------- */

enum { MOST_DEPTH = 96 };  /* regions of a graph nest a hundred deep */

bool cfxi_eval_journal_begin(cfx_evaluator *ev)
{
    ev->region = cfxi_eval_ev_alloc(ev, sizeof *ev->region);
    if (!ev->region)
        return false;
    ev->region->number = ++ev->regions;
    cfx_iter_begin(&ev->open, ev->g, false);
    return true;
}

void cfxi_eval_journal_end(cfx_evaluator *ev)
{
    if (ev->region)
        cfx_iter_end(&ev->open);
}

static void push(cfx_evaluator *ev, cfxi_region *r)
{
    r->parent = ev->region;
    ev->region = r;
    ev->depth++;
}

cfxi_region *cfxi_eval_region_open(cfx_evaluator *ev)
{
    if (ev->depth >= MOST_DEPTH)
        return cfxi_eval_fail(
            ev, NULL, CFX_E_LIMIT,
            "branches and loops that depend on data are nested more than %d deep here; a loop with "
            "a known count that may end early depending on data nests once per iteration",
            MOST_DEPTH);
    cfxi_region *r = cfxi_eval_ev_alloc(ev, sizeof *r);
    if (!r)
        return NULL;
    r->number = ++ev->regions;
    r->marker = cfxi_eval_stand_in(ev, "region");
    if (!r->marker)
        return NULL;
    push(ev, r);
    return r;
}

cfxi_region *cfxi_eval_trial_open(cfx_evaluator *ev)
{
    cfxi_region *r = cfxi_eval_region_open(ev);
    if (r)
        r->trial = true;
    return r;
}

static void pop(cfx_evaluator *ev)
{
    ev->region = ev->region->parent;
    ev->depth--;
}

static void forget(cfxi_change *c)
{
    if (c->place.kind == CFXI_PLACE_LOCAL)
        c->place.frame->slots[c->place.slot].journal = c->noted;
}

bool cfxi_eval_region_close(cfx_evaluator *ev)
{
    cfxi_change *changes = ev->region->changes;
    for (size_t i = 0; i < ev->region->n; i++)
        if (!cfxi_eval_place_read(ev, &changes[i].place, &changes[i].after))
            return false;
    for (size_t i = ev->region->n; i-- > 0;) {
        forget(&changes[i]);
        if (!cfxi_eval_place_write(ev, &changes[i].place, &changes[i].before))
            return false;
    }
    pop(ev);
    return true;
}

bool cfxi_eval_region_reopen(cfx_evaluator *ev, cfxi_region *r)
{
    push(ev, r);
    for (size_t i = 0; i < r->n; i++) {
        cfxi_change *c = &r->changes[i];
        if (c->place.kind == CFXI_PLACE_LOCAL) {
            cfxi_local *local = &c->place.frame->slots[c->place.slot];
            c->noted = local->journal;
            local->journal = r->number;
        }
        if (!cfxi_eval_place_write(ev, &c->place, &c->after))
            return false;
    }
    return true;
}

bool cfxi_eval_region_commit(cfx_evaluator *ev)
{
    cfxi_region *r = ev->region;
    pop(ev);
    for (size_t i = r->n; i-- > 0;)
        forget(&r->changes[i]);
    for (size_t i = 0; i < r->n; i++) {
        const cfxi_place *p = &r->changes[i].place;
        if (!is_own(ev, ev->region, p) && !has_noted(ev->region, p) &&
            !note_state(ev, ev->region, p, &r->changes[i].before))
            return false;
    }
    return cfx_graph_erase(ev->g, r->marker, ev->err) == CFX_OK;
}

bool cfxi_eval_region_discard(cfx_evaluator *ev)
{
    cfxi_region *r = ev->region;
    if (r->stays)
        return cfxi_eval_fail_stays(ev, r->stays);
    const bool done = cfxi_eval_region_close(ev);
    return done && cfxi_eval_erase_from(ev, r->marker);
}
