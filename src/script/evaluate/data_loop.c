/* data_loop.c - loops that a graph value ends: cfx.while_loop and cfx.for_loop.
 *
 * What a loop carries from round to round is found by trying. A round is evaluated as if it changed
 * nothing; what it has changed at its end is carried in the next attempt, where stand-ins take the
 * places of the values that change; and so on until nothing new changes. What never changes stays
 * known inside the loop.
 *
 * A loop that only its test ends is a while_loop of test and body, or a for_loop. Where the body
 * can leave it (break, return), or the test assigns something, the loop is turned: whether there is
 * another round is a value of its own, computed before the loop and at the end of each round.
 *     while test: body         go = test;  while go: body;  go = not left and test
 */
#include "graph_control_impl.h"

/* A value that goes round. */
typedef struct leaf {
    cfx_object *init;        /* before the loop; NULL: it does not matter */
    cfx_node *node;          /* the stand-in of this attempt, and as an object */
    cfx_object *stand_in;
    cfx_object *next;        /* at the end of the round */
    cfx_object_kind kind;
    const char *name;
} leaf;

/* A place that a round changes. */
typedef struct carried {
    cfxi_place place;
    cfxi_state before;       /* before the loop */
    cfxi_state start;        /* at the start of a round of this attempt */
    bool growing;            /* a list of unknown length */
    bool born;               /* it is bound in the loop only */
    const cfxi_poison *poison;  /* it has other types at start and end */
    cfxi_form *value;        /* what it is made up of: outlets are leaves */
    cfxi_form **items;
} carried;

typedef struct loop_memory loop_memory;

typedef struct attempt {
    cfx_evaluator *ev;
    const cfxi_loop *loop;
    cfxi_merge merge;        /* its outlets are the leaves, one for one */
    leaf *leaves;
    size_t n_leaves;
    carried *places;
    size_t n_places, capacity;
    cfxi_pointers stand_ins; /* object -> leaf + 1 */
    cfxi_pointers starts;    /* containers that were made for the places of this attempt */
    loop_memory *memory;
    bool foreseen;           /* places were carried before a round had changed them */
    bool turned;
    uint32_t exits;          /* flows that leave the loop, found so far */
    bool guessed;            /* ... or taken from how the loop is written */
    cfxi_form *result;       /* of a return inside */
    /* of this attempt */
    cfxi_region *region;
    cfx_node *body;          /* marker before the body */
    cfx_node *index_node;    /* of a for */
    cfx_object *index, *count;
    cfx_object *test;        /* whether there is another round */
    cfx_object *go, *go_next, *go_init;
    cfx_node *go_node, *code_node;
    cfxi_outcome out;
    bool again;
} attempt;

static bool nomem(cfx_evaluator *ev)
{
    cfxi_base_nomem(ev->err);
    return false;
}

/* ---- stand-ins ----------------------------------------------------------------------------- */

static cfx_object *stand_in(cfx_evaluator *ev, const char *name, cfx_object_kind kind,
                            cfx_node **node)
{
    *node = cfxi_eval_stand_in(ev, name);
    return *node && cfxi_eval_note_kind(ev, *node, kind) ? cfxi_eval_proxy(ev, *node) : NULL;
}

static bool add_stand_in(attempt *a, leaf *l)
{
    l->stand_in = stand_in(a->ev, l->name ? l->name : "state", l->kind, &l->node);
    return l->stand_in != NULL;
}

static bool add_stand_ins(attempt *a)
{
    cfx_evaluator *ev = a->ev;
    cfxi_outlet *outlets = a->merge.outlets.data;
    a->merge.results++;
    cfxi_base_pointers_free(&a->stand_ins, ev->allocator);
    for (size_t i = 0; i < a->n_leaves; i++) {
        leaf *l = &a->leaves[i];
        if (!l->init)
            continue;  /* no round reads it */
        if (!add_stand_in(a, l))
            return false;
        outlets[i].result = l->stand_in;
        if (cfxi_base_pointers_get(&ev->origins, l->init) &&
            !cfxi_eval_note_origin(ev, l->stand_in, l->init, NULL, a->merge.number))
            return false;
        if (!cfxi_base_pointers_set(&a->stand_ins, l->stand_in, (void *)(i + 1), ev->allocator))
            return nomem(ev);
    }
    return true;
}

/* Puts the carried places into the state that a round begins with. */
static bool bind_all(attempt *a)
{
    cfx_evaluator *ev = a->ev;
    for (size_t i = 0; i < a->n_places; i++) {
        carried *c = &a->places[i];
        c->start = c->before;
        if (c->poison) {
            c->start.value = NULL;
            c->start.poison = c->poison;
        } else if (c->value && !c->born) {
            c->start.value = cfxi_eval_form_value(ev, &a->merge, c->value);
            if (!c->start.value)
                return false;
        }
        if (c->items) {
            c->start.items = cfxi_eval_ev_alloc(ev, (c->before.n + 1) * sizeof *c->start.items);
            for (size_t k = 0; c->start.items && k < c->before.n; k++) {
                c->start.items[k] = c->items[k] ? cfxi_eval_form_value(ev, &a->merge, c->items[k])
                                                : c->before.items[k];
                if (!c->start.items[k])
                    return false;
            }
            if (!c->start.items)
                return false;
        }
        if (!cfxi_eval_place_note(ev, &c->place) ||
            !cfxi_eval_place_write(ev, &c->place, &c->start))
            return false;
    }
    return true;
}

/* What is made for that is of the loop, not of the round: a change of it is put back at its end,
 * when the round is compared with how it began. */
static bool bind_places(attempt *a)
{
    cfx_evaluator *ev = a->ev;
    cfxi_base_pointers_free(&a->starts, ev->allocator);
    ev->starts = &a->starts;
    const bool fine = bind_all(a);
    ev->starts = NULL;
    return fine;
}

/* ---- one attempt --------------------------------------------------------------------------- */

/* Takes back what the test has assigned to variables of its own; *changes: it assigned others. */
static bool forget_own(attempt *a, const cfxi_region *r, bool *changes)
{
    cfx_evaluator *ev = a->ev;
    const cfxi_frame *f = ev->frame;
    for (size_t i = 0; i < r->n; i++) {
        const cfxi_change *c = &r->changes[i];
        const bool own = c->place.kind == CFXI_PLACE_LOCAL && c->place.frame == f &&
                         !f->captured && f->def->kind == CFXI_DEF_FUNCTION && !c->before.value &&
                         f->def->last_read[c->place.slot] < a->loop->test_end;
        *changes = *changes || !own;
        if (own && !cfxi_eval_place_write(ev, &c->place, &c->before))
            return false;
    }
    return true;
}

/* Whether there is another round, as a graph value or a bool; *changes: it assigned something. */
static cfx_object *eval_test(attempt *a, bool *changes)
{
    cfx_evaluator *ev = a->ev;
    if (a->loop->over) {
        cfx_object *in[2] = {a->index, a->count};
        return cfxi_eval_compare(ev, CFX_SIGN_LT, in[0], in[1]);
    }
    const cfxi_region *r = cfxi_eval_region_open(ev);
    cfx_object *t = r ? a->loop->test(ev, a->loop->ctx) : NULL;
    if (!t)
        return NULL;
    const cfxi_eval_truth truth = cfxi_eval_truth_of(ev, &t);
    if (truth == CFXI_TRUTH_FAIL)
        return NULL;
    if (!forget_own(a, r, changes) || !cfxi_eval_region_commit(ev))
        return NULL;
    if (truth != CFXI_TRUTH_GRAPH)
        return cfxi_eval_bool(ev, truth == CFXI_TRUE);
    /* `while todo` of a list: whether there is another round is a value of its own */
    return a->turned && cfxi_eval_is_container(cfxi_eval_kind(ev, t))
               ? cfxi_eval_record(ev, "builtins.bool", &t, 1) : t;
}

static cfxi_flow go_on_if(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    bool ignored = false;
    *value = eval_test(ctx, &ignored);
    return *value ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

/* At the end of a round of a turned loop: whether there is another. */
static bool next_go(attempt *a)
{
    cfx_evaluator *ev = a->ev;
    const uint32_t on = 1u << CFXI_FLOW_ON;
    bool ignored = false;
    if (a->out.mask == on) {
        a->go_next = eval_test(a, &ignored);
    } else if (!(a->out.mask & on)) {
        a->go_next = cfxi_eval_bool(ev, false);
    } else {
        cfx_object *in[2] = {a->out.code, cfxi_eval_int(ev, CFXI_FLOW_BREAK)};
        cfx_object *left = in[1] ? cfxi_eval_record(ev, "operator.ge", in, 2) : NULL;
        if (!left || cfxi_eval_branch(ev, left, cfxi_eval_way_false, go_on_if, a, &a->go_next) !=
                         CFXI_FLOW_ON)
            return false;
    }
    return a->go_next != NULL;
}

static bool run_round(attempt *a)
{
    cfx_evaluator *ev = a->ev;
    const size_t base = cfxi_eval_pendings(ev);
    cfx_object *item = a->loop->over ? cfxi_eval_sequence_item(ev, a->loop->over, a->index) : NULL;
    if (a->loop->over && !item)
        return false;
    const bool keyed = a->loop->over && cfxi_eval_has_keyed(a->loop->over);
    if (keyed)
        cfxi_eval_begin_round(ev, a->loop->over);
    cfxi_flow flow = a->loop->round(ev, a->loop->ctx, item);
    if (flow != CFXI_FLOW_FAIL && keyed)
        flow = cfxi_eval_settle(ev, base, flow, CFXI_FLOW_CONTINUE);
    if (flow == CFXI_FLOW_FAIL ||
        (keyed && flow == CFXI_FLOW_ON && !cfxi_eval_end_round(ev, a->loop->over)))
        return false;
    return cfxi_eval_join(ev, base, flow, CFXI_FLOW_CONTINUE, &a->out);
}

/* The index of the next round of a for that is a while. */
static bool advance(attempt *a)
{
    cfx_object *one = cfxi_eval_int(a->ev, 1);
    a->index = one ? cfxi_eval_binary(a->ev, CFX_SIGN_ADD, a->index, one) : NULL;
    return a->index != NULL;
}

/* Evaluates a round between open and close of a region; *turn: it must be turned first. */
static bool evaluate_round(attempt *a, bool *turn)
{
    cfx_evaluator *ev = a->ev;
    bool changes = false;
    a->region = cfxi_eval_region_open(ev);
    if (!a->region)
        return false;
    ev->round = a->region->number;
    if (a->loop->over && !(a->index = stand_in(ev, "i", CFX_OBJECT_INT, &a->index_node)))
        return false;
    if (a->turned && (!(a->go = stand_in(ev, "go", CFX_OBJECT_BOOL, &a->go_node)) ||
                      (a->exits && !stand_in(ev, "left", CFX_OBJECT_INT, &a->code_node))))
        return false;
    if (!add_stand_ins(a) || !bind_places(a))
        return false;
    a->test = a->turned ? a->go : a->loop->over ? a->index : eval_test(a, &changes);
    if (!a->test || !(a->body = cfxi_eval_stand_in(ev, "region")) || !run_round(a))
        return false;
    const uint32_t exits = a->out.mask & ~(1u << CFXI_FLOW_ON);
    const bool wrong = a->guessed && exits != a->exits;
    *turn = wrong || (!a->turned && (changes || exits));
    a->again = (exits & ~a->exits) != 0;
    a->exits = wrong ? exits : a->exits | exits;
    a->guessed = false;
    if (*turn)
        return cfxi_eval_region_close(ev);
    return (!a->turned || ((!a->loop->over || advance(a)) && next_go(a))) &&
           cfxi_eval_region_close(ev);
}

static bool evaluate(attempt *a, bool *turn)
{
    const uint32_t round = a->ev->round;
    const bool fine = evaluate_round(a, turn);
    a->ev->round = round;
    return fine;
}

/* ---- what it changed ----------------------------------------------------------------------- */

/* Which of the places that are carried each change of the round is of: number + 1, or 0. */
static size_t *places_of_changes(attempt *a)
{
    const cfxi_region *r = a->region;
    size_t *of = cfxi_eval_ev_alloc(a->ev, (r->n + 1) * sizeof *of);
    for (size_t i = 0; of && i < a->n_places; i++) {
        const cfxi_change *c = cfxi_eval_region_change(r, &a->places[i].place);
        if (c)
            of[c - r->changes] = i + 1;
    }
    return of;
}

/* A place that was not carried so far. */
static carried *new_place(attempt *a, const cfxi_change *c)
{
    if (a->n_places == a->capacity) {
        const size_t capacity = a->capacity ? 2 * a->capacity : 8;
        carried *more = cfxi_eval_ev_alloc(a->ev, capacity * sizeof *more);
        if (!more)
            return NULL;
        if (a->n_places > 0)
            memcpy(more, a->places, a->n_places * sizeof *more);
        a->places = more;
        a->capacity = capacity;
    }
    a->places[a->n_places] = (carried){.place = c->place, .before = c->before, .start = c->before};
    return &a->places[a->n_places++];
}

static const char *name_of(const carried *c)
{
    return c->place.kind == CFXI_PLACE_LOCAL ? c->place.frame->def->locals[c->place.slot]
           : c->place.kind == CFXI_PLACE_ATTRIBUTE ? c->place.name
           : c->place.kind == CFXI_PLACE_ASSIGNED ? "assigned" : "items";
}

static bool poison_place(attempt *a, carried *c, const cfxi_state *after, const cfxi_merge *m)
{
    cfx_evaluator *ev = a->ev;
    if (c->place.kind != CFXI_PLACE_LOCAL) {
        cfxi_eval_fail(ev, a->loop->at, CFX_E_TYPE,
                       "the end of this loop depends on data, and '%s' changes type from %s to %s "
                       "in its body; give it the same type before the loop",
                       name_of(c), m->why.type[0], m->why.type[1]);
        return false;
    }
    cfxi_poison *p = cfxi_eval_ev_alloc(ev, sizeof *p);
    if (!p)
        return false;
    *p = m->why;
    p->why = CFXI_POISON_KINDS;
    p->line[0] = c->before.line;
    p->line[1] = after->line;
    a->again = a->again || !c->poison;
    c->poison = p;
    c->value = NULL;
    return true;
}

/* A variable that a round may leave unbound: that matters to who reads it. */
static bool poison_unbound(attempt *a, carried *c, const cfxi_state *after)
{
    cfxi_poison *p = cfxi_eval_ev_alloc(a->ev, sizeof *p);
    if (!p)
        return false;
    *p = (cfxi_poison){.why = CFXI_POISON_ONE_SIDE, .line = {c->before.line, c->before.line}};
    a->again = a->again || !c->poison;
    c->poison = after->poison ? after->poison : p;
    return true;
}

static bool has_else(const attempt *a)
{
    return a->loop->orelse && a->loop->orelse->count > 0;
}

/* Whether what is bound in the loop only has a value behind it: always, or where it was broken. */
static bool born_lives(const attempt *a)
{
    return a->loop->runs || (has_else(a) && a->exits & 1u << CFXI_FLOW_BREAK);
}

static bool follow_value(attempt *a, cfxi_merge *m, carried *c, const cfxi_state *after)
{
    if (c->poison || (!after->value && c->place.kind == CFXI_PLACE_LOCAL && !c->before.value))
        return true;
    c->born = !c->before.value && c->place.kind == CFXI_PLACE_LOCAL;
    if (c->born && !born_lives(a))
        return true;
    cfx_object *from = c->born ? NULL : c->start.value;
    cfx_object *to = after->value;
    if (!from && !to)
        return true;
    if (!to && c->place.kind == CFXI_PLACE_LOCAL)
        return poison_unbound(a, c, after);
    if ((!c->born && !from) || !to) {
        cfxi_eval_fail(a->ev, a->loop->at, CFX_E_UNSUPPORTED,
                       "'%s' is first assigned, or deleted, in a loop whose end depends on data; "
                       "assign it before the loop",
                       name_of(c));
        return false;
    }
    const cfxi_merged done = c->place.kind == CFXI_PLACE_ASSIGNED
                                 ? cfxi_eval_merge_assigned(m, from, to, &c->value)
                                 : cfxi_eval_merge_values(m, from, to, &c->value);
    return done == CFXI_MERGED_NOT ? poison_place(a, c, after, m) : done == CFXI_MERGED;
}

/* Contents: item by item while there are as many, else as one graph value. */
static bool follow_contents(attempt *a, cfxi_merge *m, carried *c, const cfxi_state *after)
{
    cfx_evaluator *ev = a->ev;
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, c->place.object);
    const bool keyed = kind == CFX_OBJECT_DICT;
    const size_t outlets = m->outlets.size;
    cfx_object *owner = c->place.object;
    bool same = !c->growing && !c->before.value && !after->value && after->n == c->before.n &&
                kind != CFX_OBJECT_SET && cfxi_eval_change(ev, &owner) != CFX_CHANGE_WHOLE;
    cfxi_form **items = same ? cfxi_eval_ev_alloc(ev, (after->n + 1) * sizeof *items) : NULL;
    if (same && !items)
        return false;
    for (size_t i = 0; same && i < after->n; i++) {
        if (keyed && i % 2 == 0) {
            same = ev->w->equal(ev->w->ctx, c->start.items[i], after->items[i]) ||
                   c->start.items[i] == after->items[i];
            continue;
        }
        const cfxi_merged done = cfxi_eval_merge_values(m, c->start.items[i], after->items[i],
                                                        &items[i]);
        if (done == CFXI_MERGED_FAIL)
            return false;
        same = done == CFXI_MERGED;
    }
    c->items = items;
    if (same)
        return true;
    cfxi_eval_merge_take_back(m, outlets);
    c->items = NULL;
    if (kind != CFX_OBJECT_LIST && kind != CFX_OBJECT_DICT && kind != CFX_OBJECT_SET) {
        cfxi_eval_fail(ev, a->loop->at, CFX_E_UNSUPPORTED,
                       "a %.60s changes its length or contents in a loop whose end depends on "
                       "data; use a list or a tensor, or give the loop a known count",
                       ev->w->type_name(ev->w->ctx, c->place.object));
        return false;
    }
    if (!cfxi_eval_can_grow(ev, c->place.object)) {
        cfxi_eval_fail(
            ev, a->loop->at, CFX_E_UNSUPPORTED,
            "the keys or the value types of a %s change in a loop whose end depends on data; set "
            "all keys before the loop, or use tensors and lists",
            keyed ? "dict" : "set");
        return false;
    }
    a->again = a->again || !c->growing;
    cfx_object *from = c->growing ? c->start.value : cfxi_eval_whole(ev, &c->before, kind);
    cfx_object *to = cfxi_eval_whole(ev, after, kind);
    c->growing = true;
    c->value = from && to ? cfxi_eval_merge_outlet(m, from, to, kind) : NULL;
    return c->value != NULL;
}

static bool changed(cfx_evaluator *ev, const cfxi_change *c)
{
    return !cfxi_eval_state_is(ev, &c->place, &c->before, &c->after);
}

/* How many of the leaves have a value before the loop. */
static size_t count_given(const leaf *leaves, size_t n)
{
    size_t given = 0;
    for (size_t i = 0; i < n; i++)
        given += leaves[i].init != NULL;
    return given;
}

/* What a value at the start of a round was before the loop: a container that was carried item by
 * item, and is one graph value from now on, holds stand-ins, which go with the attempt. NULL:
 * failed. */
static cfx_object *as_before(const attempt *a, cfx_object *o)
{
    cfx_evaluator *ev = a->ev;
    cfx_object **items;
    size_t n;
    const size_t at = (uintptr_t)cfxi_base_pointers_get(&a->stand_ins, o);
    if (at)
        return a->leaves[at - 1].init;
    if (cfxi_eval_current(ev, o) != o)
        return as_before(a, cfxi_eval_current(ev, o));
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, o);
    if (cfxi_eval_node(ev, o) || !cfxi_eval_is_container(kind) || kind == CFX_OBJECT_INSTANCE)
        return o;
    if (!cfxi_eval_contents(ev, o, &items, &n))
        return NULL;
    cfx_object **all = cfxi_eval_ev_alloc(ev, (n + 1) * sizeof *all);
    bool same = true;
    for (size_t i = 0; all && i < n; i++) {
        if (!(all[i + 1] = as_before(a, items[i])))
            return NULL;
        same = same && all[i + 1] == items[i];
    }
    if (!all || same)
        return all ? o : NULL;
    all[0] = o;
    return cfxi_eval_build(ev, CFX_BUILD_LIKE, all, n + 1);
}

/* The leaves of the next attempt: an outlet begins with what its stand-in began with. One that has
 * no value before the loop is not read in any round, so it does not require another attempt. */
static bool take_leaves(attempt *a, cfxi_merge *m, const char *const *names)
{
    cfx_evaluator *ev = a->ev;
    cfxi_outlet *outlets = m->outlets.data;
    leaf *leaves = cfxi_eval_ev_alloc(ev, (m->outlets.size + 1) * sizeof *leaves);
    if (!leaves)
        return false;
    for (size_t i = 0; i < m->outlets.size; i++) {
        const size_t was = outlets[i].a
                           ? (uintptr_t)cfxi_base_pointers_get(&a->stand_ins, outlets[i].a) : 0;
        leaves[i] = (leaf){.init = outlets[i].a, .next = outlets[i].b, .kind = outlets[i].kind,
                           .name = names[i]};
        if (was) {
            a->again = a->again || outlets[i].kind != a->leaves[was - 1].kind;
            leaves[i].init = a->leaves[was - 1].init;
            leaves[i].node = a->leaves[was - 1].node;
            leaves[i].stand_in = a->leaves[was - 1].stand_in;
        } else if (outlets[i].a) {
            a->again = true;
            if (!(leaves[i].init = as_before(a, outlets[i].a)))
                return false;
        } else if (!add_stand_in(a, &leaves[i])) {
            return false;
        }
    }
    a->again = a->again || count_given(leaves, m->outlets.size) !=
                               count_given(a->leaves, a->n_leaves);
    a->leaves = leaves;
    a->n_leaves = m->outlets.size;
    cfxi_eval_merge_end(&a->merge);
    a->merge = *m;
    a->merge.always = NULL;
    return true;
}

cfx_object *cfxi_eval_before_loop(const attempt *a, cfx_object *o)
{
    const size_t at = (uintptr_t)cfxi_base_pointers_get(&a->stand_ins, o);
    return at && a->leaves[at - 1].init ? a->leaves[at - 1].init : o;
}

/* ---- what it will change ------------------------------------------------------------------- */

/* A loop inside others is captured anew in each of their attempts, and mostly does what it did. */
struct loop_memory {
    bool turned;
    uint32_t exits;
    bool known;              /* the rest is */
    uint32_t *slots;         /* of its frame, that it carries */
    size_t n;
};

/* That of the loop, in calls from these places; NULL: memory is out. */
static loop_memory *memory_of(cfx_evaluator *ev, const cfxi_loop *loop)
{
    uintptr_t key = (uintptr_t)loop->at;
    for (const cfxi_frame *f = ev->frame->caller; f; f = f->caller)
        key = key * 31 + (uintptr_t)f->at;
    loop_memory *memory = cfxi_base_pointers_get(&ev->loops, (const void *)key);
    if (memory || !(memory = cfxi_eval_ev_alloc(ev, sizeof *memory)))
        return memory;
    if (cfxi_base_pointers_set(&ev->loops, (const void *)key, memory, ev->allocator))
        return memory;
    cfxi_base_nomem(ev->err);
    return NULL;
}

static bool remember(const attempt *a)
{
    loop_memory *memory = a->memory;
    *memory = (loop_memory){.turned = a->turned, .exits = a->exits, .known = true};
    memory->slots = cfxi_eval_ev_alloc(a->ev, (a->n_places + 1) * sizeof *memory->slots);
    for (size_t i = 0; memory->slots && i < a->n_places; i++) {
        const cfxi_place *p = &a->places[i].place;
        if (p->kind == CFXI_PLACE_LOCAL && p->frame == a->ev->frame && a->places[i].value)
            memory->slots[memory->n++] = p->slot;
    }
    return memory->slots != NULL;
}

static bool can_be_foreseen(cfx_evaluator *ev, cfx_object *o)
{
    if (cfxi_eval_node(ev, o))
        return true;
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, o);
    return kind == CFX_OBJECT_INT || kind == CFX_OBJECT_FLOAT || kind == CFX_OBJECT_BOOL;
}

/* Carries a variable before it is known that a round changes it. */
static bool carry(attempt *a, uint32_t slot, bool *seen)
{
    cfx_evaluator *ev = a->ev;
    if (seen[slot] || cfxi_eval_slot_is_dead(ev->frame, slot, cfxi_eval_start_of(a->loop->at)))
        return true;
    seen[slot] = true;
    cfxi_change c = {.place = {.kind = CFXI_PLACE_LOCAL, .frame = ev->frame, .slot = slot}};
    if (!cfxi_eval_place_read(ev, &c.place, &c.before))
        return false;
    cfx_object *value = c.before.value;
    if (!value || !can_be_foreseen(ev, value))
        return true;  /* nor is a list that is a graph value now: others may have the same list */
    carried *place = new_place(a, &c);
    const cfx_object_kind kind = cfxi_eval_kind(ev, value);
    if (!place || !(place->value = cfxi_eval_merge_outlet(&a->merge, value, NULL, kind)))
        return false;
    a->leaves[a->n_leaves++] = (leaf){.init = value, .kind = kind, .name = name_of(place)};
    a->foreseen = true;
    return true;
}

/* Carries the variables that are assigned to in the loop, and those that it carried the last time:
 * that saves an attempt if all of them change, and attempts of loops in loops multiply. */
static bool foresee(attempt *a)
{
    cfx_evaluator *ev = a->ev;
    const cfx_script_def *def = ev->frame->def;
    const uint64_t start = cfxi_eval_start_of(a->loop->at), end = cfxi_eval_end_of(a->loop->at);
    bool *seen = cfxi_eval_ev_alloc(ev, def->n_locals + 1);
    a->leaves = seen ? cfxi_eval_ev_alloc(ev, (def->n_locals + 1) * sizeof *a->leaves) : NULL;
    if (!a->leaves)
        return false;
    for (size_t i = cfxi_eval_first_write(def, start);
         i < def->n_writes && def->writes[i].place < end; i++)
        if (!carry(a, def->writes[i].slot, seen))
            return false;
    for (size_t i = 0; i < a->memory->n; i++)
        if (!carry(a, a->memory->slots[i], seen))
            return false;
    return true;
}

/* Whether a round has changed all that was foreseen: what stays as it was can be known. */
static bool came_true(const attempt *a)
{
    const cfx_world *w = a->ev->w;
    for (size_t i = 0; i < a->n_leaves; i++) {
        const leaf *l = &a->leaves[i];
        if (l->init && (l->next == l->stand_in ||
                        (!cfxi_eval_node(a->ev, l->init) && l->next &&
                         !cfxi_eval_node(a->ev, l->next) && w->equal(w->ctx, l->init, l->next))))
            return false;
    }
    return true;
}

/* Names for the outlets that are new since `from`. */
static bool name_outlets(cfx_evaluator *ev, cfxi_vec *names, size_t from, size_t to,
                         const char *name)
{
    names->size = from;
    if (!cfxi_base_vec_reserve(names, to - from, sizeof name, ev->allocator))
        return nomem(ev);
    for (size_t i = from; i < to; i++)
        ((const char **)names->data)[names->size++] = name;
    return true;
}

/* Whether it belongs to a container that the next attempt makes anew. */
static bool is_start(const attempt *a, const cfxi_place *p)
{
    return p->kind != CFXI_PLACE_LOCAL && cfxi_base_pointers_get(&a->starts, p->object);
}

/* Compares the end of the round with its start: what is carried, and whether that is all. */
static bool follow(attempt *a)
{
    cfx_evaluator *ev = a->ev;
    const cfxi_region *r = a->region;
    cfxi_vec names = {0};  /* of const char * */
    cfxi_merge m;
    const size_t *places = places_of_changes(a);
    const uint64_t here = cfxi_eval_start_of(a->loop->at);
    bool fine = places != NULL;
    cfxi_eval_merge_begin(&m, ev);
    m.always = &a->stand_ins;
    m.in_b = r;
    for (size_t i = 0; fine && i < r->n; i++) {
        const cfxi_change *change = &r->changes[i];
        carried *c = places[i] ? &a->places[places[i] - 1] : NULL;
        const size_t from = m.outlets.size;
        if (!c && (!changed(ev, change) || is_start(a, &change->place) ||
                   cfxi_eval_place_is_dead(ev, &change->place, here)))
            continue;  /* it is not read, in another round or afterwards */
        if (!c && !(c = new_place(a, change)))
            fine = false;
        fine = fine && (c->place.kind == CFXI_PLACE_CONTENTS
                        ? follow_contents(a, &m, c, &change->after)
                        : follow_value(a, &m, c, &change->after)) &&
               name_outlets(ev, &names, from, m.outlets.size, name_of(c));
    }
    if (fine && a->out.result) {
        const size_t from = m.outlets.size;
        fine = cfxi_eval_merge_values(&m, NULL, a->out.result, &a->result) == CFXI_MERGED &&
               name_outlets(ev, &names, from, m.outlets.size, "result");
    }
    fine = fine && take_leaves(a, &m, names.data);
    if (!fine)
        cfxi_eval_merge_end(&m);
    cfxi_base_vec_free(&names, sizeof(const char *), ev->allocator);
    return fine;
}

/* ---- making the node ----------------------------------------------------------------------- */

/* The values of the loop: those that it always has, then the leaves. */
typedef struct states {
    cfx_node **nodes;
    cfx_object **init, **next, **out;
    size_t n;
} states;

static void add_state(states *s, cfx_node *node, cfx_object *init, cfx_object *next)
{
    s->nodes[s->n] = node;
    s->init[s->n] = init;
    s->next[s->n++] = next;
}

static bool states_of(attempt *a, states *s, cfx_object *index_init)
{
    cfx_evaluator *ev = a->ev;
    const size_t most = a->n_leaves + 4;
    *s = (states){.nodes = cfxi_eval_ev_alloc(ev, most * sizeof *s->nodes),
                  .init = cfxi_eval_ev_alloc(ev, most * sizeof *s->init),
                  .next = cfxi_eval_ev_alloc(ev, most * sizeof *s->next),
                  .out = cfxi_eval_ev_alloc(ev, most * sizeof *s->out)};
    if (!s->nodes || !s->init || !s->next || !s->out)
        return false;
    if (a->turned) {
        cfx_object *zero = cfxi_eval_int(ev, 0);
        cfx_object *code = a->out.code;
        if (!code && a->exits)
            code = cfxi_eval_int(ev, a->out.mask & 1 ? 0 : a->out.mask & 1u << CFXI_FLOW_BREAK
                                ? CFXI_FLOW_BREAK : CFXI_FLOW_RETURN);
        if (!zero || (a->exits && !code))
            return false;
        add_state(s, a->go_node, a->go_init, a->go_next);
        if (a->exits)
            add_state(s, a->code_node, zero, code);
        if (a->loop->over)
            add_state(s, a->index_node, index_init, a->index);
    } else if (a->loop->over) {
        s->nodes[s->n++] = a->index_node;  /* first input of the body, no state */
    }
    const size_t first = s->n;
    for (size_t i = 0; i < a->n_leaves; i++) {
        const leaf *l = &a->leaves[i];
        const cfx_node *init = l->init ? cfxi_eval_node(ev, l->init) : NULL;
        if (init && init->name == ev->g->nameless && !ev->region->parent && l->name &&
            !cfxi_eval_name_after(ev, l->init, l->name))
            return false;
        add_state(s, l->node, l->init, l->next);
    }
    if (!a->turned && a->loop->over) {  /* states without the index */
        memmove(s->init, s->init + first, a->n_leaves * sizeof *s->init);
        memmove(s->next, s->next + first, a->n_leaves * sizeof *s->next);
        s->n--;
    }
    return true;
}

/* Writes what the loop leaves in the places that it carries. */
static bool write_places(attempt *a)
{
    cfx_evaluator *ev = a->ev;
    for (size_t i = 0; i < a->n_places; i++) {
        carried *c = &a->places[i];
        cfxi_state s = c->before;
        const bool unbound = c->place.kind == CFXI_PLACE_LOCAL && !c->before.value &&
                             (!c->value || !a->loop->runs);
        if (c->poison || unbound) {
            cfxi_poison *p = cfxi_eval_ev_alloc(ev, sizeof *p);
            if (!p)
                return false;
            *p = (cfxi_poison){.why = CFXI_POISON_LOOP,
                               .line = {a->loop->at->line, a->loop->at->line}};
            s = (cfxi_state){.poison = c->poison ? c->poison : p};
        } else if (c->value && !(s.value = cfxi_eval_form_value(ev, &a->merge, c->value))) {
            return false;
        }
        for (size_t k = 0; c->items && k < s.n; k++) {
            if (k == 0 && !(s.items = cfxi_eval_ev_alloc(ev, (s.n + 1) * sizeof *s.items)))
                return false;
            s.items[k] = c->items[k] ? cfxi_eval_form_value(ev, &a->merge, c->items[k])
                                     : c->before.items[k];
            if (!s.items[k])
                return false;
        }
        if (!cfxi_eval_place_note(ev, &c->place) || !cfxi_eval_place_write(ev, &c->place, &s))
            return false;
    }
    return true;
}

static bool build(attempt *a, cfx_object *index_init)
{
    cfx_evaluator *ev = a->ev;
    states s;
    if (!states_of(a, &s, index_init))
        return false;
    cfxi_span test = {.first = a->region->marker, .last = a->body, .results = &a->test,
                      .inputs = s.nodes};
    cfxi_span body = {.first = a->body, .results = s.next, .inputs = s.nodes};
    const bool counted = a->loop->over && !a->turned;
    if (counted)  /* one span: the stand-ins are in it */
        body.first = a->region->marker;
    if (counted && cfx_graph_erase(ev->g, a->body, ev->err) != CFX_OK)
        return false;
    if (!cfxi_eval_make_loop(ev, counted ? a->count : NULL, counted ? NULL : &test, &body, s.init,
                             s.n, s.out))
        return false;
    cfxi_outlet *outlets = a->merge.outlets.data;
    const size_t own = s.n - a->n_leaves;
    a->merge.results++;
    for (size_t i = 0; i < a->n_leaves; i++) {
        outlets[i].result = s.out[own + i];
        if (!cfxi_eval_note_kind(ev, cfxi_eval_node(ev, outlets[i].result), a->leaves[i].kind))
            return false;
    }
    if (a->turned && a->exits) {
        a->out.code = s.out[1];
        if (!cfxi_eval_note_kind(ev, cfxi_eval_node(ev, a->out.code), CFX_OBJECT_INT))
            return false;
    }
    if (a->result && !(a->out.result = cfxi_eval_form_value(ev, &a->merge, a->result)))
        return false;
    return write_places(a);
}

/* ---- behind the loop ----------------------------------------------------------------------- */

/* In the ways that broke a loop, variables that are bound in it only have their values. */
static cfxi_flow bind_born(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    const attempt *a = ctx;
    (void)value;
    for (size_t i = 0; i < a->n_places; i++) {
        const carried *c = &a->places[i];
        cfxi_state s = c->before;
        if (!c->born || c->poison || !c->value)
            continue;
        s.value = cfxi_eval_form_value(ev, &a->merge, c->value);
        s.line = a->loop->at->line;
        if (!s.value || !cfxi_eval_place_note(ev, &c->place) ||
            !cfxi_eval_place_write(ev, &c->place, &s))
            return CFXI_FLOW_FAIL;
    }
    return CFXI_FLOW_ON;
}

/* Ways that broke it are merged already, unless there is an else that they do not take. */
static cfxi_flow after(attempt *a)
{
    const cfxi_outcome out = {.mask = 1u << CFXI_FLOW_ON | a->exits, .code = a->out.code,
                              .result = a->out.result};
    if (!has_else(a))
        return cfxi_eval_resume(a->ev, &out, CFXI_FLOW_BREAK);
    return cfxi_eval_resume_with(a->ev, &out, CFXI_FLOW_ON, a->loop->runs ? NULL : bind_born, a);
}

/* Whether a turned loop has a first round. */
static bool first_go(attempt *a, cfx_object **index_init)
{
    cfx_evaluator *ev = a->ev;
    bool ignored = false;
    *index_init = cfxi_eval_int(ev, 0);
    if (!*index_init)
        return false;
    a->index = *index_init;
    a->go_init = eval_test(a, &ignored);
    return a->go_init != NULL;
}

/* Begins anew, with nothing carried so far. */
static bool start_over(attempt *a)
{
    a->again = true;
    a->n_places = a->n_leaves = 0;
    cfxi_eval_merge_end(&a->merge);
    cfxi_eval_merge_begin(&a->merge, a->ev);
    cfxi_base_pointers_free(&a->stand_ins, a->ev->allocator);
    return cfxi_eval_erase_from(a->ev, a->region->marker);
}

/* ... as a loop that is turned; or not, if it looked as if it had to be. */
static bool turn_loop(attempt *a, cfx_object **index_init)
{
    a->turned = !a->turned || a->exits != 0;
    return start_over(a) && (!a->turned || first_go(a, index_init)) && foresee(a);
}

/* A `raise` where none can be captured: in the test, or in what a round begins with. */
static cfxi_flow failed(cfx_evaluator *ev, const cfxi_loop *loop)
{
    if (ev->raised)
        cfxi_eval_fail(ev, loop->at, CFX_E_UNSUPPORTED,
                       "the header of this loop raises an exception, and the end of the loop "
                       "depends on data; check before the loop");
    ev->raised = NULL;
    return CFXI_FLOW_FAIL;
}

static bool begin(attempt *a, cfx_object **index_init)
{
    if (a->loop->over && !(a->count = cfxi_eval_sequence_count(a->ev, a->loop->over)))
        return false;
    a->memory = memory_of(a->ev, a->loop);
    if (!a->memory)
        return false;
    a->turned = a->memory->known ? a->memory->turned : a->loop->may_exit != 0;
    a->exits = a->memory->known ? a->memory->exits : a->loop->may_exit;
    a->guessed = true;
    return (!a->turned || first_go(a, index_init)) && foresee(a);
}

enum { MOST_ATTEMPTS = 40 };

cfxi_flow cfxi_eval_loop_run(cfx_evaluator *ev, const cfxi_loop *loop)
{
    attempt a = {.ev = ev, .loop = loop};
    const cfxi_going *outer = ev->going, going = {outer, loop->over, &a};
    cfx_object *index_init = NULL;
    bool turn = false;
    int tries = 0;
    ev->going = loop->over ? &going : outer;
    cfxi_eval_merge_begin(&a.merge, ev);
    bool fine = begin(&a, &index_init);
    do {
        a.again = false;
        fine = fine && evaluate(&a, &turn);
        if (fine && turn)
            fine = turn_loop(&a, &index_init);
        else if (fine && (fine = follow(&a)) && a.foreseen && !came_true(&a))
            fine = start_over(&a);
        else if (fine && a.again)
            fine = cfxi_eval_erase_from(ev, a.region->marker);
        a.foreseen = a.foreseen && turn;
        if (fine && a.again && ++tries > MOST_ATTEMPTS) {
            cfxi_eval_fail(ev, loop->at, CFX_E_UNSUPPORTED,
                           "the types of this loop's variables keep changing between iterations; "
                           "give them their final types before the loop");
            fine = false;
        }
    } while (fine && a.again);
    fine = fine && remember(&a) && build(&a, index_init);
    ev->going = outer;
    const cfxi_flow flow = fine ? after(&a) : failed(ev, loop);
    cfxi_eval_merge_end(&a.merge);
    cfxi_base_pointers_free(&a.stand_ins, ev->allocator);
    cfxi_base_pointers_free(&a.starts, ev->allocator);
    return flow;
}
