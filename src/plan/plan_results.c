/* plan_results.c - what a stretch leaves in the slots for later instructions. */
#include "plan_builder.h"

static bool is_result(const cfxi_builder *b, uint32_t slot)
{
    return b->slots[slot].kind != CFX_DATUM_INVALID && b->input_of[slot] == 0;
}

/* Notes in `wholes` the results that are all of their memory, in the program's layout: cfxi_storage
 * * -> 1 + the slot. */
static cfx_status find_wholes(const cfxi_builder *b, cfxi_hash_map *wholes)
{
    for (uint32_t i = 0; i < b->plan->program->num_slots; i++) {
        if (!is_result(b, i) || !cfxi_plan_is_planned(b->was[i]) ||
            !cfxi_plan_is_planned(b->slots[i]))
            continue;
        const cfx_tensor *t = b->was[i].as.tensor;
        if (t->data != t->storage->data ||
            (size_t)cfxi_tensor_numel(t) * cfxi_tensor_itemsize(t) != t->storage->size)
            continue;
        uint64_t *whole =
            cfxi_base_map_add(wholes, t->storage, sizeof *whole, b->plan->allocator);
        if (!whole)
            return cfxi_base_nomem(b->err);
        *whole = *whole ? *whole : 1 + (uint64_t)i;
    }
    return CFX_OK;
}

/* A view like `was` of the memory of `base`, which the program has it of. */
static cfx_datum view_of(cfxi_builder *b, const cfx_tensor *was, const cfx_tensor *base)
{
    cfx_tensor *t = cfxi_tensor_header((cfx_dtype)was->dtype, was->size, was->ndim,
                                       b->plan->allocator, b->err);
    if (!t)
        return cfx_datum_invalid();
    memcpy(t->stride, was->stride, sizeof t->stride);
    t->number = was->number;
    if (cfxi_tensor_share(t, base, was->data - was->storage->data, b->err) == CFX_OK)
        return cfx_datum_tensor(t);
    cfx_tensor_release(t);
    return cfx_datum_invalid();
}

/* What a slot has, in the layout that the program would have it in. Tensors that share memory there
 * do so here, if one of them is all of it. */
static cfx_datum restored_slot(cfxi_builder *b, uint32_t slot, const cfxi_hash_map *wholes)
{
    const cfx_datum d = b->slots[slot];
    const cfx_datum was = b->was[slot];
    const uint64_t *found =
        cfxi_plan_is_planned(was) && cfxi_plan_is_planned(d)
            ? cfxi_base_map_find(wholes, was.as.tensor->storage, sizeof *found) : NULL;
    const uint32_t whole = found ? (uint32_t)(*found - 1) : slot;
    if (whole == slot || b->slots[whole].as.tensor == d.as.tensor)
        return cfxi_plan_restored(b, cfx_datum_retain(d), was);
    const cfx_datum base = cfxi_plan_restored(b, cfx_datum_retain(b->slots[whole]), b->was[whole]);
    if (base.kind == CFX_DATUM_INVALID)
        return base;
    const cfx_datum view = view_of(b, was.as.tensor, base.as.tensor);
    cfx_datum_release(base);
    return view;
}

/* What later instructions read. */
static cfx_status leave_slots(cfxi_builder *b, const cfxi_hash_map *wholes)
{
    cfxi_plan *plan = b->plan;
    for (uint32_t i = 0; i < plan->program->num_slots; i++) {
        if (!is_result(b, i))
            continue;
        const cfx_datum d = b->eager ? restored_slot(b, i, wholes) : cfx_datum_retain(b->slots[i]);
        cfxi_slot_value *out =
            d.kind != CFX_DATUM_INVALID
                ? cfxi_plan_push(&plan->outs, sizeof *out, plan->allocator, b->err) : NULL;
        if (!out) {
            cfx_datum_release(d);
            return b->err->status;
        }
        *out = (cfxi_slot_value){i, false, d};
        CFX_TRY(cfxi_plan_list(plan, d, b->err));
    }
    return CFX_OK;
}

/* Which outs are one tensor. */
static cfx_status find_first_outs(cfxi_plan *plan, cfx_error *err)
{
    for (size_t i = 0; i < plan->outs.size; i++) {
        const cfx_datum d = cfxi_plan_out(plan, i)->value;
        if (d.kind != CFX_DATUM_TENSOR)
            continue;
        uint64_t *first =
            cfxi_base_map_add(&plan->first_out, d.as.tensor, sizeof *first, plan->allocator);
        if (!first)
            return cfxi_base_nomem(err);
        *first = *first ? *first : i + 1;
    }
    return CFX_OK;
}

cfx_status cfxi_plan_leave_results(cfxi_builder *b)
{
    cfxi_hash_map wholes = {0};
    cfx_status status = b->eager ? find_wholes(b, &wholes) : CFX_OK;
    if (status == CFX_OK)
        status = leave_slots(b, &wholes);
    cfxi_base_map_free(&wholes, sizeof(uint64_t), b->plan->allocator);
    if (status == CFX_OK)
        status = find_first_outs(b->plan, b->err);
    return status == CFX_OK ? cfxi_plan_share_constants(b->plan, b->err) : status;
}
