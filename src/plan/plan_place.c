/* plan_place.c - items of joins are written where they belong: plan_join.h.
 *
 *     %a = conv2d(...)  %b = conv2d(...)       %a and %b are halves of each pixel of %c, and the
 *     %c = cat([%a, %b], 1)                    step of the cat disappears
 *
 * Joins are considered from the last one on: what is in place in a join that is an item itself
 * moves with it. The first join that wants an item has it; the others copy it.
 */
#include "plan_join.h"
#include "plan_peak.h"

typedef struct placer {
    cfxi_plan *plan;
    uint32_t *writer;        /* by memory: the only step that gives it, as a whole; or CFXI_NONE */
    uint32_t *first_tensor;  /* by memory: the tensors in it, a list through */
    uint32_t *next_tensor;   /* by tensor */
    uint32_t *reader;        /* by memory: the only step that reads it; or CFXI_NONE */
    bool *is_read;           /* by memory */
    bool *seen;              /* by memory: it is left in slots */
    bool *vanishes;          /* by memory: likewise, or it will not be there: see the peak */
    bool *takes_gaps;        /* by memory: who reads and writes it does not mind gaps */
    cfxi_peak peak;
} placer;

/* ---- who can work with gaps between rows --------------------------------------------------- */

/* Whether the row's kernel is as fast, and right, for operands and results with gaps between rows
 * of channels. Others may rely on dense results, and mostly copy arguments that are not. */
static bool takes_gaps(const cfxi_step *s)
{
    switch ((int)s->op) {
    case CFX_OPID_conv2d: case CFX_OPID_convolution: case CFX_OPID_conv_transpose2d:
    case CFX_OPID_max_pool2d: case CFX_OPID_avg_pool2d: case CFX_OPID_interpolate:
    case CFX_OPID_batch_norm:
    case CFX_OPID_cat: case CFX_OPID_stack: case CFX_OPID_pad: case CFX_OPID_constant_pad_nd:
        return true;
    default:
        return (cfx_operator_flags(s->op) & CFX_OPERATOR_ELEMENTWISE) && !cfxi_rt_is_by_rule(s->op);
    }
}

/* ---- looking ------------------------------------------------------------------------------- */

typedef struct looking {
    placer *p;
    uint32_t step;
    bool takes_gaps;
} looking;

static void note_touch(void *ctx, uint32_t tensor)
{
    const looking *l = ctx;
    const uint32_t memory = cfxi_plan_tensor(l->p->plan, tensor)->memory;
    l->p->takes_gaps[memory] = l->p->takes_gaps[memory] && l->takes_gaps;
    cfxi_plan_peak_touch(&l->p->peak, memory, l->step);
}

static void note_read(void *ctx, uint32_t tensor)
{
    const looking *l = ctx;
    placer *p = l->p;
    const uint32_t memory = cfxi_plan_tensor(p->plan, tensor)->memory;
    const bool first = !p->is_read[memory] || p->reader[memory] == l->step;
    p->reader[memory] = first ? l->step : CFXI_NONE;
    p->is_read[memory] = true;
    note_touch(ctx, tensor);
}

static void note_seen(void *ctx, uint32_t tensor)
{
    placer *p = ctx;
    p->seen[cfxi_plan_tensor(p->plan, tensor)->memory] = true;
}

static void look_at_step(placer *p, uint32_t i)
{
    const cfxi_plan *plan = p->plan;
    const cfxi_step *s = cfxi_plan_step(plan, i);
    looking l = {p, i, takes_gaps(s)};
    for (size_t k = 0; k < s->num_args; k++)
        cfxi_plan_visit(plan, s->args[k], note_read, &l);
    for (size_t k = 0; k < s->num_results; k++) {
        cfxi_plan_visit(plan, s->results[k], note_touch, &l);
        const uint32_t t = s->results[k].kind == CFX_DATUM_TENSOR
                               ? cfxi_plan_number(plan, s->results[k].as.tensor) : CFXI_NONE;
        if (t != CFXI_NONE)
            p->writer[cfxi_plan_tensor(plan, t)->memory] = s->chosen ? CFXI_NONE : i;
    }
}

static void look(placer *p)
{
    const cfxi_plan *plan = p->plan;
    for (uint32_t i = 0; i < plan->memories.size; i++) {
        p->writer[i] = p->first_tensor[i] = p->reader[i] = CFXI_NONE;
        p->takes_gaps[i] = true;
        p->is_read[i] = false;
    }
    for (uint32_t i = 0; i < plan->tensors.size; i++) {
        uint32_t *first = &p->first_tensor[cfxi_plan_tensor(plan, i)->memory];
        p->next_tensor[i] = *first;
        *first = i;
    }
    for (uint32_t i = 0; i < plan->steps.size; i++)
        look_at_step(p, i);
}

/* Whether a step mostly becomes a part of the one that gives what it reads, or takes its place; or
 * takes that over. */
static bool absorbs(const cfxi_step *s)
{
    const bool convolves = s->op == CFX_OPID_conv2d || s->op == CFX_OPID_convolution;
    const cfx_tensor *w = convolves ? cfxi_plan_tensor_arg(s, 1) : NULL;
    return (cfx_operator_flags(s->op) & CFX_OPERATOR_ELEMENTWISE) ||
           s->op == CFX_OPID_batch_norm ||
           (w && w->ndim == 4 && w->size[2] == 1 && w->size[3] == 1);
}

/* What steps give to a step that absorbs them needs no memory once they are fused. What a
 * convolution takes over are functions. */
static void find_vanishing(const placer *p)
{
    const cfxi_plan *plan = p->plan;
    for (uint32_t i = 0; i < plan->memories.size; i++) {
        const cfxi_step *from =
            p->writer[i] != CFXI_NONE ? cfxi_plan_step(plan, p->writer[i]) : NULL;
        const cfxi_step *to = p->reader[i] != CFXI_NONE ? cfxi_plan_step(plan, p->reader[i]) : NULL;
        const bool to_conv = to && (to->op == CFX_OPID_conv2d || to->op == CFX_OPID_convolution);
        const bool goes = from && to && absorbs(to) &&
                          (!to_conv || cfx_operator_flags(from->op) & CFX_OPERATOR_ELEMENTWISE);
        p->vanishes[i] = p->seen[i] || goes;
    }
}

static void look_at_outs(placer *p)
{
    const cfxi_plan *plan = p->plan;
    for (uint32_t i = 0; i < plan->memories.size; i++)
        p->seen[i] = cfxi_plan_memory(plan, i)->kind != CFXI_MEMORY_ARENA;
    for (size_t i = 0; i < plan->outs.size; i++)
        cfxi_plan_visit(plan, cfxi_plan_out(plan, i)->value, note_seen, p);
}

/* ---- new strides --------------------------------------------------------------------------- */

/* How a dense memory is spread: elements, or blocks of them, that were `unit` bytes apart are
 * `spread` bytes apart, from the smallest unit on. */
typedef struct spreading {
    size_t n;
    int64_t unit[CFX_MAX_DIMS + 1];  /* and last, the whole */
    int64_t spread[CFX_MAX_DIMS];
} spreading;

/* The spreading of a whole memory that `item` fills; false if it is none. */
static bool find_spreading(const cfxi_part *part, spreading *s)
{
    const cfx_tensor *t = part->item;
    int64_t next = (int64_t)cfxi_tensor_itemsize(t);  /* the next stride of a dense tensor */
    int64_t least = next;                             /* and where it goes, at least */
    *s = (spreading){.n = 0};
    for (bool found = true; found;) {
        found = false;
        for (size_t i = 0; i < t->ndim && !found; i++) {
            if (t->size[i] <= 1 || t->stride[i] != next)
                continue;
            if (part->stride[i] < least || (s->n == 0 && part->stride[i] != least))
                return false;
            if (s->n == 0 || part->stride[i] != least) {
                s->unit[s->n] = next;
                s->spread[s->n++] = part->stride[i];
            }
            next *= t->size[i];
            least = part->stride[i] * t->size[i];
            found = true;
        }
    }
    s->unit[s->n] = next;
    return next == cfxi_tensor_numel(t) * (int64_t)cfxi_tensor_itemsize(t);
}

/* Offset and strides of a tensor in the memory, once it is spread; false if no strides do it. */
static bool spread(const spreading *s, const cfx_tensor *t, int64_t *offset,
                   int64_t stride[CFX_MAX_DIMS])
{
    int64_t reach[CFX_MAX_DIMS + 1] = {0};  /* at each level, to the last element */
    int64_t rest = *offset;
    *offset = 0;
    for (size_t k = s->n; k-- > 0;) {
        reach[k] = rest / s->unit[k];
        *offset += reach[k] * s->spread[k];
        rest %= s->unit[k];
    }
    for (size_t i = 0; i < t->ndim; i++) {
        size_t k = s->n;
        stride[i] = t->stride[i];
        if (t->size[i] <= 1 || t->stride[i] == 0)
            continue;
        while (k > 0 && s->unit[k - 1] > t->stride[i])
            k--;
        if (k == 0 || t->stride[i] % s->unit[k - 1] != 0)
            return false;
        stride[i] = t->stride[i] / s->unit[k - 1] * s->spread[k - 1];
        reach[k - 1] += t->stride[i] / s->unit[k - 1] * (t->size[i] - 1);
    }
    for (size_t k = 0; k < s->n; k++)
        if ((reach[k] + 1) * s->unit[k] > s->unit[k + 1])
            return false;
    return rest == 0;
}

/* Gives every tensor in a memory its place in the spread one; false, and nothing is changed, if one
 * of them has none. */
static bool spread_all(const placer *p, uint32_t memory, const spreading *s)
{
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = p->first_tensor[memory]; i != CFXI_NONE; i = p->next_tensor[i]) {
            cfxi_planned_tensor *t = cfxi_plan_tensor(p->plan, i);
            int64_t offset = t->offset;
            int64_t stride[CFX_MAX_DIMS] = {0};
            const bool empty = cfxi_tensor_numel(t->header) == 0;
            if (empty)
                continue;
            if (!spread(s, t->header, &offset, stride))
                return false;
            if (pass == 0)
                continue;
            memcpy(t->header->stride, stride, t->header->ndim * sizeof *stride);
            t->header->data += offset - t->offset;
            t->offset = offset;
        }
    return true;
}

/* ---- placing ------------------------------------------------------------------------------- */

/* Whether a tensor is all of a memory that could be elsewhere. */
static bool can_move(const placer *p, const cfxi_join *join, uint32_t number)
{
    const cfxi_planned_tensor *t = cfxi_plan_tensor(p->plan, number);
    const cfxi_memory *m = cfxi_plan_memory(p->plan, t->memory);
    return !p->seen[t->memory] && m->part_of == CFXI_NONE && p->writer[t->memory] != CFXI_NONE &&
           t->offset == 0 && t->header->dtype == join->out->dtype &&
           (size_t)cfxi_tensor_numel(t->header) * cfxi_tensor_itemsize(t->header) == m->size &&
           m->size > 0;
}

static void place(placer *p, const cfxi_join *join, const cfxi_part *part)
{
    const uint32_t number = cfxi_plan_number(p->plan, part->item);
    spreading s;
    if (number == CFXI_NONE || !can_move(p, join, number) || !find_spreading(part, &s))
        return;
    const uint32_t memory = cfxi_plan_tensor(p->plan, number)->memory;
    const cfxi_planned_tensor *out =
        cfxi_plan_tensor(p->plan, cfxi_plan_number(p->plan, join->out));
    const bool gaps = s.n > 1;
    if (memory == out->memory || (gaps && !p->takes_gaps[memory]) ||
        !cfxi_plan_peak_join(&p->peak, memory, cfxi_plan_root(p->plan, out->memory)))
        return;
    if (!spread_all(p, memory, &s)) {
        cfxi_plan_peak_undo(&p->peak);
        return;
    }
    cfxi_memory *m = cfxi_plan_memory(p->plan, memory);
    m->part_of = out->memory;
    m->part_at = out->offset + part->offset;
}

static void place_items(placer *p, uint32_t step)
{
    cfxi_join join;
    cfxi_part part;
    size_t at = 0;
    int64_t offset = 0;
    if (!cfxi_plan_join_of(cfxi_plan_step(p->plan, step), &join))
        return;
    while (cfxi_plan_next_part(&join, &at, &offset, &part))
        place(p, &join, &part);
}

static void place_all(placer *p)
{
    look(p);
    find_vanishing(p);
    cfxi_plan_peak_begin(&p->peak);
    for (uint32_t i = (uint32_t)p->plan->steps.size; i-- > 0;)
        place_items(p, i);
}

static void free_placer(placer *p)
{
    const cfx_allocator *a = p->plan->allocator;
    const size_t memories = p->plan->memories.size + 1;
    cfxi_base_free(a, p->writer, memories * sizeof *p->writer);
    cfxi_base_free(a, p->first_tensor, memories * sizeof *p->first_tensor);
    cfxi_base_free(a, p->next_tensor, (p->plan->tensors.size + 1) * sizeof *p->next_tensor);
    cfxi_base_free(a, p->reader, memories * sizeof *p->reader);
    cfxi_base_free(a, p->is_read, memories * sizeof *p->is_read);
    cfxi_base_free(a, p->vanishes, memories * sizeof *p->vanishes);
    cfxi_base_free(a, p->seen, memories * sizeof *p->seen);
    cfxi_base_free(a, p->takes_gaps, memories * sizeof *p->takes_gaps);
    cfxi_plan_peak_free(&p->peak);
}

static bool has_joins(const cfxi_plan *plan)
{
    cfxi_join join;
    for (size_t i = 0; i < plan->steps.size; i++)
        if (cfxi_plan_join_of(cfxi_plan_step(plan, i), &join))
            return true;
    return false;
}

cfx_status cfxi_plan_place(cfxi_plan *plan, cfx_error *err)
{
    const cfx_allocator *a = plan->allocator;
    const size_t memories = plan->memories.size + 1;
    if (!has_joins(plan))
        return CFX_OK;
    placer p = {.plan = plan,
                .writer = cfxi_base_alloc(a, memories * sizeof *p.writer),
                .first_tensor = cfxi_base_alloc(a, memories * sizeof *p.first_tensor),
                .next_tensor =
                    cfxi_base_alloc(a, (plan->tensors.size + 1) * sizeof *p.next_tensor),
                .reader = cfxi_base_alloc(a, memories * sizeof *p.reader),
                .is_read = cfxi_base_alloc(a, memories * sizeof *p.is_read),
                .vanishes = cfxi_base_alloc(a, memories * sizeof *p.vanishes),
                .seen = cfxi_base_alloc(a, memories * sizeof *p.seen),
                .takes_gaps = cfxi_base_alloc(a, memories * sizeof *p.takes_gaps)};
    cfx_status status = CFX_OK;
    if (!p.writer || !p.first_tensor || !p.next_tensor || !p.reader || !p.is_read || !p.vanishes ||
        !p.seen || !p.takes_gaps || !cfxi_plan_peak_new(&p.peak, plan, p.vanishes)) {
        status = cfxi_base_nomem(err);
    } else {
        look_at_outs(&p);
        status = cfxi_plan_shorten_joins(plan, p.seen, err);
    }
    if (status == CFX_OK)
        place_all(&p);
    free_placer(&p);
    return status;
}

/* ---- after fusing -------------------------------------------------------------------------- */

/* Where a tensor begins in the memory that its own is a part of, in the end. */
static int64_t begin_of(const cfxi_plan *plan, const cfxi_planned_tensor *t)
{
    int64_t at = t->offset;
    for (const cfxi_memory *m = cfxi_plan_memory(plan, t->memory); m->part_of != CFXI_NONE;
         m = cfxi_plan_memory(plan, m->part_of))
        at += m->part_at;
    return at;
}

static bool is_in_place(const cfxi_plan *plan, const cfxi_planned_tensor *out,
                        const cfxi_part *part)
{
    const uint32_t number = cfxi_plan_number(plan, part->item);
    const cfxi_planned_tensor *t = number != CFXI_NONE ? cfxi_plan_tensor(plan, number) : NULL;
    if (cfxi_tensor_numel(part->item) == 0)
        return true;
    if (!t || cfxi_plan_root(plan, t->memory) != cfxi_plan_root(plan, out->memory) ||
        begin_of(plan, t) != begin_of(plan, out) + part->offset)
        return false;
    for (size_t i = 0; i < part->item->ndim; i++)
        if (part->item->size[i] > 1 && part->item->stride[i] != part->stride[i])
            return false;
    return true;
}

static bool has_border(const cfxi_join *join)
{
    for (size_t i = 0; i < join->borders; i++)
        if (join->border[i].as.i != 0)
            return true;
    return false;
}

void cfxi_plan_drop_joins(cfxi_plan *plan)
{
    for (uint32_t i = 0; i < plan->steps.size; i++) {
        cfxi_step *s = cfxi_plan_step(plan, i);
        cfxi_join join;
        cfxi_part part;
        size_t at = 0;
        int64_t offset = 0;
        if (!cfxi_plan_join_of(s, &join) || has_border(&join))
            continue;
        const cfxi_planned_tensor *out =
            cfxi_plan_tensor(plan, cfxi_plan_number(plan, join.out));
        bool all = true;
        while (all && cfxi_plan_next_part(&join, &at, &offset, &part))
            all = is_in_place(plan, out, &part);
        s->removed = all;
    }
}
