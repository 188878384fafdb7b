/* plan_tensors.c - the memories and tensors of a plan, and walks over what contains them. */
#include "plan_impl.h"

/* Planned memory has addresses that no process has: beyond 47 bits. */
#define FIRST_ADDRESS ((uintptr_t)1 << 52)

void *cfxi_plan_push(cfxi_vec *vec, size_t size, const cfx_allocator *allocator, cfx_error *err)
{
    if (vec->size >= UINT32_MAX - 1 || !cfxi_base_vec_reserve(vec, 1, size, allocator))
        return cfxi_base_nomem(err), NULL;
    return (char *)vec->data + size * vec->size++;
}

/* ---- memory -------------------------------------------------------------------------------- */

cfxi_memory *cfxi_plan_add_memory(cfxi_plan *plan, cfxi_memory_kind kind, size_t size,
                                  cfx_error *err)
{
    const cfx_allocator *allocator = plan->allocator;
    if (plan->address == 0)
        plan->address = FIRST_ADDRESS;
    if (size > UINTPTR_MAX - 2 * CFXI_ALIGN - plan->address)  /* nor would the arena fit */
        return cfxi_base_nomem(err), NULL;
    cfxi_memory *m = cfxi_base_alloc(allocator, sizeof *m);
    cfxi_memory **place =
        m ? cfxi_plan_push(&plan->memories, sizeof *place, allocator, err) : NULL;
    if (!place) {
        cfxi_base_free(allocator, m, sizeof *m);
        return cfxi_base_nomem(err), NULL;
    }
    *m = (cfxi_memory){.kind = kind, .index = CFXI_NONE, .own = CFXI_NONE, .size = size,
                       .same = CFXI_NONE, .part_of = CFXI_NONE, .first = CFXI_NONE};
    m->storage = (cfxi_storage){.planned = true, .data = (char *)plan->address, .size = size,
                                .allocator = allocator, .block = 0};
    atomic_init(&m->storage.refs, 1 << 30);  /* the plan's: never released by tensors */
    plan->address += (size + 2 * CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN;
    *place = m;
    return m;
}

/* The memory that a storage belongs to: memories have rising addresses. */
static uint32_t memory_of(const cfxi_plan *plan, const cfxi_storage *s)
{
    size_t low = 0;
    size_t high = plan->memories.size;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if ((uintptr_t)cfxi_plan_memory(plan, (uint32_t)middle)->storage.data <=
            (uintptr_t)s->data)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

cfx_status cfxi_plan_give_memory(cfxi_plan *plan, cfx_tensor *t, cfx_error *err)
{
    size_t bytes = cfxi_tensor_itemsize(t);
    for (size_t i = 0; i < t->ndim; i++) {
        if (t->size[i] == 0)
            bytes = 0;
        else if (bytes)
            bytes += (size_t)(t->size[i] - 1) * (size_t)t->stride[i];
    }
    cfxi_memory *m = cfxi_plan_add_memory(plan, CFXI_MEMORY_ARENA, bytes, err);
    if (!m)
        return CFX_E_NOMEM;
    t->storage = &m->storage;
    t->data = m->storage.data;
    return CFX_OK;
}

/* ---- tensors ------------------------------------------------------------------------------- */

uint32_t cfxi_plan_number(const cfxi_plan *plan, const cfx_tensor *t)
{
    const uint64_t *found = cfxi_base_map_find(&plan->by_header, t, sizeof *found);
    return found ? (uint32_t)(*found - 1) : CFXI_NONE;
}

bool cfxi_plan_lie_alike(const cfx_tensor *a, const cfx_tensor *b)
{
    for (size_t i = 0; i < a->ndim && i < b->ndim; i++)
        if (a->size[i] != b->size[i] || (a->size[i] > 1 && a->stride[i] != b->stride[i]))
            return false;
    return a->ndim == b->ndim;
}

cfx_tensor *cfxi_plan_with_strides(cfx_tensor *t, const int64_t *stride, cfx_error *err)
{
    cfx_tensor *view =
        cfxi_tensor_header((cfx_dtype)t->dtype, t->size, t->ndim, t->allocator, err);
    if (!view)
        return NULL;
    memcpy(view->stride, stride, t->ndim * sizeof *stride);
    view->number = t->number;
    if (cfxi_tensor_share(view, t, 0, err) == CFX_OK)
        return view;
    cfx_tensor_release(view);
    return NULL;
}

cfx_datum cfxi_plan_lay_as(cfx_runtime *rt, cfxi_planner *planner, cfx_tensor *t,
                           cfx_memory_format format, cfx_error *err)
{
    const cfx_datum args[] = {cfx_datum_tensor(t),
                              cfx_datum_scalar(CFX_DATUM_MEMORY_FORMAT, format)};
    const cfx_datum d = cfxi_rt_call_planned(rt, planner, CFX_OPID_contiguous, args, 2, err);
    if (d.kind != CFX_DATUM_TENSOR || format != CFX_MEMORY_FORMAT_CHANNELS_LAST ||
        d.as.tensor->ndim != 4 || cfxi_rt_prefers_channels_last(d.as.tensor))
        return d;
    static const uint8_t order[] = {0, 2, 3, 1};
    int64_t stride[CFX_MAX_DIMS];
    cfxi_tensor_ordered_strides(d.as.tensor->size, 4, cfxi_tensor_itemsize(d.as.tensor), order,
                                stride);
    cfx_tensor *view = cfxi_plan_with_strides(d.as.tensor, stride, err);
    cfx_datum_release(d);
    return view ? cfx_datum_tensor(view) : cfx_datum_invalid();
}

bool cfxi_plan_lie_in_order(const cfx_tensor *a, const cfx_tensor *b)
{
    if (a->ndim != b->ndim || a->dtype != b->dtype ||
        memcmp(a->size, b->size, a->ndim * sizeof *a->size) != 0)
        return false;
    for (size_t i = 0; i < a->ndim; i++)
        for (size_t k = 0; k < i; k++)
            if (a->size[i] > 1 && a->size[k] > 1 &&
                (a->stride[i] < a->stride[k]) != (b->stride[i] < b->stride[k]))
                return false;
    return true;
}

static cfx_status list_tensor(cfxi_plan *plan, cfx_tensor *t, cfx_error *err)
{
    if (!t->storage || !t->storage->planned)
        return CFX_OK;
    uint64_t *number = cfxi_base_map_add(&plan->by_header, t, sizeof *number, plan->allocator);
    if (!number)
        return cfxi_base_nomem(err);
    if (*number > 0)
        return CFX_OK;
    cfxi_planned_tensor *p = cfxi_plan_push(&plan->tensors, sizeof *p, plan->allocator, err);
    if (!p) {
        cfxi_base_map_remove(&plan->by_header, t, sizeof *number);
        return CFX_E_NOMEM;
    }
    *p = (cfxi_planned_tensor){cfx_tensor_retain(t), memory_of(plan, t->storage),
                               t->data - t->storage->data};
    *number = plan->tensors.size;
    cfxi_memory *m = cfxi_plan_memory(plan, p->memory);
    if (m->own == CFXI_NONE)  /* an input is listed before its views */
        m->own = (uint32_t)*number - 1;
    return CFX_OK;
}

cfx_status cfxi_plan_list(cfxi_plan *plan, cfx_datum d, cfx_error *err)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        CFX_TRY(cfxi_plan_list(plan, items[i], err));
    return d.kind == CFX_DATUM_TENSOR ? list_tensor(plan, d.as.tensor, err) : CFX_OK;
}

void cfxi_plan_visit(const cfxi_plan *plan, cfx_datum d, cfxi_plan_visit_fn *fn, void *ctx)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        cfxi_plan_visit(plan, items[i], fn, ctx);
    if (cfxi_plan_is_planned(d))
        fn(ctx, cfxi_plan_number(plan, d.as.tensor));
}

static cfx_datum map_items(cfx_datum d, cfx_datum beside, cfxi_plan_map_fn *fn, void *ctx,
                           const cfx_allocator *allocator, cfx_error *err)
{
    size_t n;
    size_t m;
    const cfx_datum *items = cfx_datum_items(d, &n);
    const cfx_datum *others = cfx_datum_items(beside, &m);
    cfx_datum few[8];
    cfx_datum *room = n <= 8 ? few : cfxi_base_alloc(allocator, n * sizeof *room);
    cfx_datum result = cfx_datum_invalid();
    size_t made = 0;
    for (; room && made < n; made++) {
        const cfx_datum other = made < m ? others[made] : cfx_datum_invalid();
        room[made] = cfxi_plan_map(items[made], other, fn, ctx, allocator, err);
        if (room[made].kind == CFX_DATUM_INVALID && items[made].kind != CFX_DATUM_INVALID)
            break;
    }
    if (!room)
        cfxi_base_nomem(err);
    else if (made == n)
        result = cfx_datum_seq((cfx_datum_kind)d.kind, room, n, allocator, err);
    if (result.kind != CFX_DATUM_INVALID)
        result.as.seq->op = d.as.seq->op;
    for (size_t i = 0; i < made; i++)
        cfx_datum_release(room[i]);
    if (room && room != few)
        cfxi_base_free(allocator, room, n * sizeof *room);
    return result;
}

cfx_datum cfxi_plan_map(cfx_datum d, cfx_datum beside, cfxi_plan_map_fn *fn, void *ctx,
                        const cfx_allocator *allocator, cfx_error *err)
{
    size_t n;
    if (d.kind == CFX_DATUM_TENSOR)
        return fn(ctx, d.as.tensor, beside, err);
    return cfx_datum_items(d, &n) ? map_items(d, beside, fn, ctx, allocator, err)
                                  : cfx_datum_retain(d);
}

void cfxi_plan_cut(cfxi_plan *plan, size_t memories, size_t tensors)
{
    while (plan->tensors.size > tensors) {
        cfx_tensor *t = cfxi_plan_tensor(plan, (uint32_t)--plan->tensors.size)->header;
        cfxi_base_map_remove(&plan->by_header, t, sizeof(uint64_t));
        cfx_tensor_release(t);
    }
    while (plan->memories.size > memories)
        cfxi_base_free(plan->allocator,
                       cfxi_plan_memory(plan, (uint32_t)--plan->memories.size),
                       sizeof(cfxi_memory));
}
