/* plan_key.c - which values a plan is for. */
#include "plan_impl.h"

/* Lists and dicts may be written to, and be in several places: the interpreter sees to them. */
bool cfxi_plan_can_take(cfx_datum d)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    switch ((cfx_datum_kind)d.kind) {
    case CFX_DATUM_TENSOR: return d.as.tensor->storage != NULL;
    case CFX_DATUM_TUPLE:
        for (size_t i = 0; i < n; i++)
            if (!cfxi_plan_can_take(items[i]))
                return false;
        return true;
    case CFX_DATUM_NONE: case CFX_DATUM_BOOL: case CFX_DATUM_INT: case CFX_DATUM_FLOAT:
    case CFX_DATUM_DTYPE: case CFX_DATUM_LAYOUT: case CFX_DATUM_MEMORY_FORMAT: return true;
    default: return false;
    }
}

static bool is_like(const cfx_tensor *planned, const cfx_tensor *given)
{
    const size_t bytes = planned->ndim * sizeof *planned->size;
    return given->storage && planned->dtype == given->dtype && planned->ndim == given->ndim &&
           planned->number == given->number &&
           memcmp(planned->size, given->size, bytes) == 0 &&
           memcmp(planned->stride, given->stride, bytes) == 0 &&
           planned->storage->read_only == given->storage->read_only;
}

static bool is_same(cfx_datum planned, cfx_datum given)
{
    size_t n;
    size_t m;
    if (planned.kind != given.kind || planned.symbolic != given.symbolic)
        return false;
    const cfx_datum *items = cfx_datum_items(planned, &n);
    const cfx_datum *others = cfx_datum_items(given, &m);
    switch ((cfx_datum_kind)planned.kind) {
    case CFX_DATUM_TENSOR: return is_like(planned.as.tensor, given.as.tensor);
    case CFX_DATUM_BOOL: return planned.as.b == given.as.b;
    case CFX_DATUM_FLOAT: return memcmp(&planned.as.f, &given.as.f, sizeof given.as.f) == 0;
    case CFX_DATUM_NONE: return true;
    case CFX_DATUM_INT: case CFX_DATUM_DTYPE: case CFX_DATUM_LAYOUT:
    case CFX_DATUM_MEMORY_FORMAT: return planned.as.i == given.as.i;
    case CFX_DATUM_TUPLE:
        for (size_t i = 0; n == m && i < n; i++)
            if (!is_same(items[i], others[i]))
                return false;
        return n == m && planned.as.seq->op == given.as.seq->op;
    default: return false;
    }
}

bool cfxi_plan_takes(const cfxi_plan *plan, const cfx_runtime *rt, const cfx_datum *slots)
{
    if (plan->isa != rt->isa || plan->threads != cfx_runtime_threads(rt))
        return false;
    for (size_t i = 0; i < plan->inputs.size; i++)
        if (!is_same(cfxi_plan_input(plan, i)->value, slots[cfxi_plan_input(plan, i)->slot]))
            return false;
    return true;
}
