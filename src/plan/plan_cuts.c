/* plan_cuts.c - which instructions have other sizes in each run: a cache of keys that grows.
 *
 *     %k = cat([%past, %new], 2)        1 x 12 x 7 x 64, then 1 x 12 x 8 x 64: a cut
 *     %y = linear(%x, weight, bias)     1 x 768 both times
 *
 * Two plans for values of different sizes tell them. The interpreter runs what is cut, and plans of
 * what lies between are for all of these sizes.
 */
#include "plan_impl.h"

/* ---- what differs -------------------------------------------------------------------------- */

static bool lies_alike(const cfx_tensor *a, const cfx_tensor *b)
{
    const size_t bytes = a->ndim * sizeof *a->size;
    return a->dtype == b->dtype && a->ndim == b->ndim && memcmp(a->size, b->size, bytes) == 0 &&
           memcmp(a->stride, b->stride, bytes) == 0;
}

static bool is_alike(cfx_datum a, cfx_datum b)
{
    size_t n;
    size_t m;
    const cfx_datum *items = cfx_datum_items(a, &n);
    const cfx_datum *others = cfx_datum_items(b, &m);
    if (a.kind != b.kind || n != m)
        return false;
    if (a.kind == CFX_DATUM_TENSOR)
        return lies_alike(a.as.tensor, b.as.tensor);
    for (size_t i = 0; items && i < n; i++)
        if (!is_alike(items[i], others[i]))
            return false;
    return items || a.kind == CFX_DATUM_NONE || memcmp(&a.as, &b.as, sizeof a.as) == 0;
}

/* The slots that differ where the plans begin. */
static void compare_inputs(const cfxi_plan *a, const cfxi_plan *b, bool *differs)
{
    for (size_t i = 0; i < a->inputs.size; i++)
        for (size_t k = 0; k < b->inputs.size; k++) {
            const cfxi_slot_value *one = cfxi_plan_input(a, i);
            const cfxi_slot_value *other = cfxi_plan_input(b, k);
            if (one->slot == other->slot)
                differs[one->slot] = !is_alike(one->value, other->value);
        }
}

/* Whether an instruction reads a slot that differs; *weights becomes the bytes of its constants
 * that may be weights. */
static bool reads_different(const cfx_program *p, const cfxi_instruction *instruction,
                            const bool *differs, uint64_t *weights)
{
    const cfxi_piece *pieces = p->pieces.data;
    bool different = false;
    *weights = 0;
    for (uint32_t i = instruction->first; i < instruction->end; i++) {
        if (pieces[i].kind == CFXI_PIECE_SLOT || pieces[i].kind == CFXI_PIECE_TAKE)
            different = different || differs[pieces[i].index];
        if (pieces[i].kind != CFXI_PIECE_CONSTANT)
            continue;
        const cfx_datum d = ((const cfx_datum *)p->constants.data)[pieces[i].index];
        if (d.kind == CFX_DATUM_TENSOR && d.as.tensor->ndim > 1)
            *weights += cfxi_rt_bytes_of(d);
    }
    return different;
}

/* ---- cuts ---------------------------------------------------------------------------------- */

/* Notes the instructions that are to be cut in `cuts`, if that is not NULL; returns whether at
 * least half of the weights are left to plans. */
static bool walk(const cfxi_plan *a, const cfxi_plan *b, bool *differs, cfxi_cut *cuts)
{
    const cfx_program *p = a->program;
    const cfxi_instruction *instructions = p->instructions.data;
    const cfx_datum *one = a->given.data;
    const cfx_datum *other = b->given.data;
    const size_t n = a->given.size < b->given.size ? a->given.size : b->given.size;
    uint64_t planned = 0;
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++) {
        const cfxi_instruction *at = &instructions[a->first + i];
        uint64_t weights;
        const bool cut = reads_different(p, at, differs, &weights);
        all += weights;
        planned += cut ? 0 : weights;
        if (cut && cuts)
            atomic_store_explicit(&cuts[a->first + i], 1, memory_order_relaxed);
        if (at->slot != CFXI_NO_SLOT)
            differs[at->slot] = !is_alike(one[i], other[i]);
    }
    return all > 0 && planned >= all / 2;
}

bool cfxi_plan_find_cuts(const cfxi_plan *a, const cfxi_plan *b, cfxi_cut *cuts)
{
    const size_t bytes = (a->program->num_slots + 1) * sizeof(bool);
    bool *differs = cfxi_base_alloc(a->allocator, bytes);
    bool worth = false;
    for (int round = 0; differs && round < 2; round++) {
        memset(differs, 0, bytes);
        compare_inputs(a, b, differs);
        if (round == 0)
            worth = walk(a, b, differs, NULL);
        else if (worth)
            walk(a, b, differs, cuts);
    }
    cfxi_base_free(a->allocator, differs, bytes);
    return worth;
}
