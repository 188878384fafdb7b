/* plan_memory.c - how long planned memory lives, and one arena for all of it.
 *
 * Steps are walked in order: what a step writes first takes the smallest hole that is large enough,
 * what is read for the last time leaves one. Or, where there are not too many, memories are placed
 * from the largest on, each as low as those let it that live at the same time. The smaller arena is
 * taken. A result of an element-wise step takes over the memory of an argument that dies with it.
 */
#include "plan_impl.h"

#include <stdlib.h>

/* ---- life ---------------------------------------------------------------------------------- */

typedef struct touching {
    const cfxi_plan *plan;
    uint32_t step;
} touching;

static void touch(void *ctx, uint32_t tensor)
{
    const touching *t = ctx;
    const uint32_t memory = cfxi_plan_root(t->plan, cfxi_plan_tensor(t->plan, tensor)->memory);
    cfxi_memory *m = cfxi_plan_memory(t->plan, memory);
    m->first = m->first == CFXI_NONE || t->step < m->first ? t->step : m->first;
    m->last = t->step > m->last ? t->step : m->last;
}

static void touch_step(const cfxi_plan *plan, const cfxi_step *s, uint32_t i)
{
    touching t = {plan, i};
    if (s->kernel) {
        if (s->x != CFXI_NONE)
            touch(&t, s->x);
        touch(&t, s->out);
        for (size_t k = 0; k < s->num_operands; k++)
            touch(&t, s->operands[k]);
        return;
    }
    for (size_t k = 0; k < s->num_args; k++)
        cfxi_plan_visit(plan, s->args[k], touch, &t);
    for (size_t k = 0; k < s->num_results; k++)
        cfxi_plan_visit(plan, s->results[k], touch, &t);
}

/* What is returned points into memory of its own. */
static void note_result(void *ctx, uint32_t tensor)
{
    cfxi_plan *plan = ctx;
    cfxi_memory *m = cfxi_plan_memory(plan, cfxi_plan_tensor(plan, tensor)->memory);
    if (m->kind != CFXI_MEMORY_ARENA)
        return;
    m->kind = CFXI_MEMORY_RESULT;
    m->index = plan->num_results++;
}

/* ---- in place ------------------------------------------------------------------------------ */

/* Looks for a memory whose place `out` can take. */
typedef struct taking {
    const cfxi_plan *plan;
    const cfxi_step *step;
    uint32_t number;       /* of the step */
    const cfxi_planned_tensor *out;
    uint32_t memory;       /* that is considered, and */
    bool refused;          /* whether an argument reads it in another way than `out` lies */
    uint32_t found;
} taking;

static bool is_exactly(const cfxi_planned_tensor *a, const cfxi_planned_tensor *b)
{
    const size_t bytes = a->header->ndim * sizeof *a->header->size;
    return a->header->dtype == b->header->dtype && a->header->ndim == b->header->ndim &&
           a->offset == b->offset && memcmp(a->header->size, b->header->size, bytes) == 0 &&
           memcmp(a->header->stride, b->header->stride, bytes) == 0;
}

static void visit_args(const taking *t, cfxi_plan_visit_fn *fn, void *ctx)
{
    for (size_t i = 0; i < t->step->num_args; i++)
        cfxi_plan_visit(t->plan, t->step->args[i], fn, ctx);
}

static void refuse(void *ctx, uint32_t tensor)
{
    taking *t = ctx;
    const cfxi_planned_tensor *arg = cfxi_plan_tensor(t->plan, tensor);
    if (cfxi_plan_root(t->plan, arg->memory) == t->memory)
        t->refused |= arg->memory != t->memory || !is_exactly(arg, t->out);
}

static void consider(void *ctx, uint32_t tensor)
{
    taking *t = ctx;
    t->memory = cfxi_plan_tensor(t->plan, tensor)->memory;
    t->refused = false;
    const cfxi_memory *m = cfxi_plan_memory(t->plan, t->memory);
    if (m->kind != CFXI_MEMORY_ARENA || m->part_of != CFXI_NONE || m->last != t->number ||
        m->first == t->number || m->size < cfxi_plan_memory(t->plan, t->out->memory)->size)
        return;
    visit_args(t, refuse, t);
    if (!t->refused)
        t->found = t->memory;
}

/* The memory whose place this one has: itself, or the first of all that took it over in turn. */
static uint32_t place_of(const cfxi_plan *plan, uint32_t memory)
{
    const uint32_t same = cfxi_plan_memory(plan, memory)->same;
    return same == CFXI_NONE ? memory : same;
}

static void take_over(const cfxi_plan *plan, const cfxi_step *s, uint32_t i)
{
    const bool elementwise = cfx_operator_flags(s->op) & CFX_OPERATOR_ELEMENTWISE;
    if (s->removed || s->kernel || !elementwise || s->num_results != 1 || s->chosen)
        return;
    const uint32_t number = cfxi_plan_number(plan, s->results[0].as.tensor);
    taking t = {.plan = plan, .step = s, .number = i, .out = cfxi_plan_tensor(plan, number),
                .found = CFXI_NONE};
    cfxi_memory *out = cfxi_plan_memory(plan, t.out->memory);
    if (out->kind != CFXI_MEMORY_ARENA || out->part_of != CFXI_NONE || out->first != i)
        return;
    visit_args(&t, consider, &t);
    if (t.found != CFXI_NONE)
        out->same = place_of(plan, t.found);
}

/* ---- parts --------------------------------------------------------------------------------- */

/* A part is where its whole is. Wholes have their places. */
static void place_parts(const cfxi_plan *plan)
{
    for (uint32_t i = 0; i < plan->memories.size; i++) {
        cfxi_memory *m = cfxi_plan_memory(plan, i);
        int64_t at = 0;
        for (const cfxi_memory *part = m; part->part_of != CFXI_NONE;
             part = cfxi_plan_memory(plan, part->part_of))
            at += part->part_at;
        if (m->part_of == CFXI_NONE)
            continue;
        const cfxi_memory *whole = cfxi_plan_memory(plan, cfxi_plan_root(plan, i));
        m->kind = whole->kind;
        m->index = whole->index;
        m->offset = whole->offset + (size_t)at;
    }
}

/* ---- the arena ----------------------------------------------------------------------------- */

typedef struct hole {
    size_t offset, size;
} hole;

typedef struct arena {
    const cfxi_plan *plan;
    cfxi_vec holes;  /* of hole, by offset; none touch each other */
    size_t end;
} arena;

static size_t rounded(size_t size) { return (size + CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN; }

static size_t take_hole(arena *a, size_t size)
{
    hole *holes = a->holes.data;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < a->holes.size; i++)
        if (holes[i].size >= size && (best == SIZE_MAX || holes[i].size < holes[best].size))
            best = i;
    if (best == SIZE_MAX) {  /* at the end, of which the last hole may be a part */
        const size_t n = a->holes.size;
        const bool joins = n > 0 && holes[n - 1].offset + holes[n - 1].size == a->end;
        const size_t at = joins ? holes[n - 1].offset : a->end;
        a->holes.size -= joins;
        a->end = at + size;
        return at;
    }
    const size_t at = holes[best].offset;
    holes[best].offset += size;
    holes[best].size -= size;
    if (holes[best].size == 0) {
        memmove(&holes[best], &holes[best + 1], (a->holes.size - best - 1) * sizeof *holes);
        a->holes.size--;
    }
    return at;
}

/* There is room for one more hole. */
static void leave_hole(arena *a, size_t offset, size_t size)
{
    hole *holes = a->holes.data;
    size_t i = 0;
    while (i < a->holes.size && holes[i].offset < offset)
        i++;
    const bool before = i > 0 && holes[i - 1].offset + holes[i - 1].size == offset;
    const bool after = i < a->holes.size && offset + size == holes[i].offset;
    if (before && after) {
        holes[i - 1].size += size + holes[i].size;
        memmove(&holes[i], &holes[i + 1], (a->holes.size - i - 1) * sizeof *holes);
        a->holes.size--;
    } else if (before) {
        holes[i - 1].size += size;
    } else if (after) {
        holes[i].offset = offset;
        holes[i].size += size;
    } else {
        memmove(&holes[i + 1], &holes[i], (a->holes.size - i) * sizeof *holes);
        holes[i] = (hole){offset, size};
        a->holes.size++;
    }
}

/* Memories that begin and end with each step: lists through `next`. */
typedef struct agenda {
    uint32_t *begins, *ends;            /* by step */
    uint32_t *next_begin, *next_end;    /* by memory */
} agenda;

/* Whether a memory has a place of its own in the arena. */
static bool has_place(const cfxi_memory *m)
{
    return m->kind == CFXI_MEMORY_ARENA && m->first != CFXI_NONE && m->same == CFXI_NONE &&
           m->part_of == CFXI_NONE;
}

static void fill_agenda(const cfxi_plan *plan, agenda *g)
{
    for (size_t i = 0; i < plan->steps.size; i++)
        g->begins[i] = g->ends[i] = CFXI_NONE;
    for (uint32_t i = 0; i < plan->memories.size; i++) {
        const cfxi_memory *m = cfxi_plan_memory(plan, i);
        if (!has_place(m))
            continue;
        g->next_begin[i] = g->begins[m->first];
        g->begins[m->first] = i;
        g->next_end[i] = g->ends[m->last];
        g->ends[m->last] = i;
    }
}

/* *least: the most bytes that are needed at one time; no order of places does with less. */
static cfx_status place_in_order(cfxi_plan *plan, const agenda *g, size_t *least, cfx_error *err)
{
    arena a = {.plan = plan};
    size_t live = 0;
    *least = 0;
    if (!cfxi_base_vec_reserve(&a.holes, plan->memories.size + 1, sizeof(hole), plan->allocator))
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < plan->steps.size; i++) {
        for (uint32_t k = g->begins[i]; k != CFXI_NONE; k = g->next_begin[k]) {
            const size_t size = rounded(cfxi_plan_memory(plan, k)->size + 1);
            cfxi_plan_memory(plan, k)->offset = take_hole(&a, size);
            live += size;
        }
        *least = live > *least ? live : *least;
        for (uint32_t k = g->ends[i]; k != CFXI_NONE; k = g->next_end[k]) {
            const size_t size = rounded(cfxi_plan_memory(plan, k)->size + 1);
            leave_hole(&a, cfxi_plan_memory(plan, k)->offset, size);
            live -= size;
        }
    }
    plan->arena = a.end;
    cfxi_base_vec_free(&a.holes, sizeof(hole), plan->allocator);
    return CFX_OK;
}

/* ---- from the largest on ------------------------------------------------------------------- */

enum { MANY = 1024 };  /* memories, of which each is compared with each */

typedef struct spot {
    cfxi_memory *memory;
    size_t offset, size;
} spot;

static int larger_first(const void *a, const void *b)
{
    const spot *x = a;
    const spot *y = b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->memory->storage.data < y->memory->storage.data ? -1 : 1;  /* all differ */
}

/* The lowest place beside those that live at the same time, which are sorted by where they are. */
static size_t lowest(const spot *const *placed, size_t n, const spot *s)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const spot *other = placed[i];
        const cfxi_memory *m = other->memory;
        if (m->last < s->memory->first || s->memory->last < m->first)
            continue;
        if (other->offset >= at + s->size)
            break;
        if (other->offset + other->size > at)
            at = other->offset + other->size;
    }
    return at;
}

/* Gives n memories places; returns where the last one ends. */
static size_t place_spots(spot *spots, const spot **placed, size_t n)
{
    size_t end = 0;
    qsort(spots, n, sizeof *spots, larger_first);
    for (size_t i = 0; i < n; i++) {
        size_t k = i;
        spots[i].offset = lowest(placed, i, &spots[i]);
        for (; k > 0 && placed[k - 1]->offset > spots[i].offset; k--)
            placed[k] = placed[k - 1];
        placed[k] = &spots[i];
        if (spots[i].offset + spots[i].size > end)
            end = spots[i].offset + spots[i].size;
    }
    return end;
}

/* Takes other places if they make the arena smaller. */
static cfx_status place_by_size(cfxi_plan *plan, cfx_error *err)
{
    const size_t all = plan->memories.size;
    const size_t bytes = (all + 1) * (sizeof(spot) + sizeof(spot *));
    size_t n = 0;
    if (all > MANY)
        return CFX_OK;
    spot *spots = cfxi_base_alloc(plan->allocator, bytes);
    if (!spots)
        return cfxi_base_nomem(err);
    for (uint32_t i = 0; i < all; i++) {
        cfxi_memory *m = cfxi_plan_memory(plan, i);
        if (has_place(m))
            spots[n++] = (spot){m, 0, rounded(m->size + 1)};
    }
    const size_t end = place_spots(spots, (const spot **)(void *)(spots + all + 1), n);
    for (size_t i = 0; end < plan->arena && i < n; i++)
        spots[i].memory->offset = spots[i].offset;
    plan->arena = end < plan->arena ? end : plan->arena;
    cfxi_base_free(plan->allocator, spots, bytes);
    return CFX_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* What took over the place of another is there. */
static void follow_places(const cfxi_plan *plan)
{
    for (uint32_t i = 0; i < plan->memories.size; i++)
        if (cfxi_plan_memory(plan, i)->same != CFXI_NONE)
            cfxi_plan_memory(plan, i)->offset = cfxi_plan_memory(plan, place_of(plan, i))->offset;
}

cfx_status cfxi_plan_lay_out(cfxi_plan *plan, cfx_error *err)
{
    const size_t steps = plan->steps.size;
    const size_t memories = plan->memories.size;
    for (size_t i = 0; i < plan->outs.size; i++)
        cfxi_plan_visit(plan, cfxi_plan_out(plan, i)->value, note_result, plan);
    for (uint32_t i = 0; i < steps; i++)
        if (!cfxi_plan_step(plan, i)->removed)
            touch_step(plan, cfxi_plan_step(plan, i), i);
    for (uint32_t i = 0; i < steps; i++)
        take_over(plan, cfxi_plan_step(plan, i), i);
    for (uint32_t i = 0; i < memories; i++) {  /* a place lives as long as all that have it */
        cfxi_memory *place = cfxi_plan_memory(plan, place_of(plan, i));
        if (cfxi_plan_memory(plan, i)->last > place->last)
            place->last = cfxi_plan_memory(plan, i)->last;
    }
    const size_t bytes = (2 * steps + 2 * memories + 1) * sizeof(uint32_t);
    uint32_t *room = cfxi_base_alloc(plan->allocator, bytes);
    if (!room)
        return cfxi_base_nomem(err);
    agenda g = {room, room + steps, room + 2 * steps, room + 2 * steps + memories};
    fill_agenda(plan, &g);
    size_t least;
    cfx_status status = place_in_order(plan, &g, &least, err);
    if (status == CFX_OK && plan->arena > least)
        status = place_by_size(plan, err);
    follow_places(plan);
    place_parts(plan);
    cfxi_base_free(plan->allocator, room, bytes);
    return status;
}
