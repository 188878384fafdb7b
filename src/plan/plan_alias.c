/* plan_alias.c - who sees what an instruction writes: calls in place, lists, results that share.
 *
 *     %y = relu_(%x)       becomes %x = %y = relu(%x), if only slots with %x itself see its memory
 */
#include "plan_builder.h"

/* ---- in place ------------------------------------------------------------------------------ */

static bool has_memory_of(cfx_datum d, const cfx_tensor *t)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        if (has_memory_of(items[i], t))
            return true;
    return d.kind == CFX_DATUM_TENSOR && d.as.tensor->storage == t->storage;
}

/* A range of slots. */
typedef struct range {
    uint32_t first, end;
} range;

/* Whether the program has one tensor in both slots: here it may lie in two ways. */
static bool has_same(const cfxi_builder *b, uint32_t a, uint32_t c)
{
    const cfx_datum *values = b->eager ? b->was : b->slots;
    return b->slots[a].kind == CFX_DATUM_TENSOR && values[a].kind == CFX_DATUM_TENSOR &&
           values[c].kind == CFX_DATUM_TENSOR && values[a].as.tensor == values[c].as.tensor;
}

/* The slots that may see the memory of the tensor in one of them. */
static range slots_with(const cfxi_builder *b, uint32_t slot)
{
    if (!b->eager && cfxi_plan_memory_with(b->slots[slot].as.tensor->storage)->slots == 1)
        return (range){slot, slot + 1};
    return (range){0, b->plan->program->num_slots};
}

/* The slot that a planned tensor on the stack, the first argument, was read from: it may have
 * another layout there. */
static uint32_t slot_of_self(const cfxi_builder *b, const cfxi_instruction *i)
{
    const cfxi_piece *piece = (const cfxi_piece *)b->plan->program->pieces.data + i->first;
    const bool is_slot = piece->kind == CFXI_PIECE_SLOT || piece->kind == CFXI_PIECE_TAKE;
    const bool is_it = is_slot && cfxi_plan_is_planned(b->stack[0]) &&
                       cfxi_plan_is_planned(b->slots[piece->index]);
    return is_it ? piece->index : CFXI_NONE;
}

/* Whether only slots with this very tensor can see its memory: then a call in place is one that
 * gives a new tensor, which takes the place of the old one. */
static bool is_alone(const cfxi_builder *b, range slots, uint32_t slot)
{
    const cfx_tensor *t = b->slots[slot].as.tensor;
    if (cfxi_plan_number(b->plan, t) == CFXI_NONE ||
        cfxi_plan_memory_with(t->storage)->kind != CFXI_MEMORY_ARENA)
        return false;
    for (uint32_t i = slots.first; i < slots.end; i++)
        if (has_memory_of(b->slots[i], t) && !has_same(b, i, slot))
            return false;
    return true;
}

/* What a call in place has given takes the place of its argument. */
static void replace_slot(cfxi_builder *b, uint32_t slot, cfx_datum result)
{
    cfxi_plan_set_slot(b, slot, cfx_datum_retain(result));
    if (b->eager)
        b->was[slot] = b->eager[b->running - b->plan->first];
}

cfx_datum cfxi_plan_call_in_place(cfxi_builder *b, const cfxi_instruction *i,
                                  cfx_operator functional)
{
    const uint32_t slot = slot_of_self(b, i);
    const cfx_tensor *self = slot != CFXI_NONE ? b->stack[0].as.tensor : NULL;
    const range slots = self ? slots_with(b, slot) : (range){0, 0};
    cfx_datum result = cfx_datum_invalid();
    if (!self || !is_alone(b, slots, slot)) {
        cfx_error_set(b->err, CFX_E_UNSUPPORTED, "a call in place has no plan");
        return result;
    }
    result = cfxi_rt_call_planned(b->rt, &b->planner, functional, b->stack, i->num_args, b->err);
    if (result.kind == CFX_DATUM_INVALID)
        return result;
    if (!cfxi_plan_is_planned(result) || result.as.tensor->dtype != self->dtype ||
        result.as.tensor->storage == self->storage ||
        !cfxi_plan_lie_alike(result.as.tensor, self)) {
        cfx_datum_release(result);
        cfx_error_set(b->err, CFX_E_UNSUPPORTED, "a call in place has no plan");
        return cfx_datum_invalid();
    }
    /* strides of dimensions of size 1, too: formats of images are told by them */
    memcpy(result.as.tensor->stride, self->stride, sizeof self->stride);
    for (uint32_t k = slots.first; k < slots.end; k++)
        if (k != slot && has_same(b, k, slot))
            replace_slot(b, k, result);
    replace_slot(b, slot, result);  /* last: others are compared with it */
    return result;
}

/* ---- lists --------------------------------------------------------------------------------- */

static bool is_list(cfx_datum d) { return d.kind == CFX_DATUM_LIST || d.kind == CFX_DATUM_DICT; }

static bool has_list(cfx_datum d)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        if (has_list(items[i]))
            return true;
    return is_list(d);
}

bool cfxi_plan_shares_list(const cfxi_builder *b, cfx_datum result)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(result, &n);
    for (size_t i = 0; i < n; i++)
        if (has_list(items[i]))
            return true;
    for (size_t i = 0; is_list(result) && i < b->plan->program->num_slots; i++)
        if (is_list(b->slots[i]) && b->slots[i].as.seq == result.as.seq)
            return true;
    return false;
}

/* ---- results that share -------------------------------------------------------------------- */

/* Memories of two plans for one stretch that correspond: by number, 1 + that of the other. */
typedef struct matching {
    const cfxi_plan *plans[2];
    uint32_t *others[2];
} matching;

static bool match_tensors(const matching *m, const cfx_tensor *a, const cfx_tensor *b)
{
    const uint32_t numbers[] = {cfxi_plan_number(m->plans[0], a), cfxi_plan_number(m->plans[1], b)};
    if (numbers[0] == CFXI_NONE || numbers[1] == CFXI_NONE)
        return numbers[0] == numbers[1];
    const uint32_t one = cfxi_plan_tensor(m->plans[0], numbers[0])->memory;
    const uint32_t other = cfxi_plan_tensor(m->plans[1], numbers[1])->memory;
    if (m->others[0][one] == 0 && m->others[1][other] == 0) {
        m->others[0][one] = other + 1;
        m->others[1][other] = one + 1;
    }
    return m->others[0][one] == other + 1 && m->others[1][other] == one + 1 &&
           cfxi_plan_memory(m->plans[0], one)->kind == cfxi_plan_memory(m->plans[1], other)->kind &&
           cfxi_plan_memory(m->plans[0], one)->index == cfxi_plan_memory(m->plans[1], other)->index;
}

static bool match_values(const matching *m, cfx_datum a, cfx_datum b)
{
    size_t n;
    size_t k;
    const cfx_datum *items = cfx_datum_items(a, &n);
    const cfx_datum *others = cfx_datum_items(b, &k);
    if (a.kind != b.kind || n != k)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!match_values(m, items[i], others[i]))
            return false;
    return a.kind != CFX_DATUM_TENSOR || match_tensors(m, a.as.tensor, b.as.tensor);
}

bool cfxi_plan_shares_alike(const cfxi_plan *a, const cfxi_plan *b)
{
    const size_t n = a->memories.size + b->memories.size + 1;
    uint32_t *others = cfxi_base_alloc(a->allocator, n * sizeof *others);
    if (!others)
        return false;
    memset(others, 0, n * sizeof *others);
    const matching m = {{a, b}, {others, others + a->memories.size}};
    bool alike = a->outs.size == b->outs.size;
    for (size_t i = 0; alike && i < a->outs.size; i++)
        alike = match_values(&m, cfxi_plan_out(a, i)->value, cfxi_plan_out(b, i)->value);
    cfxi_base_free(a->allocator, others, n * sizeof *others);
    return alike;
}
