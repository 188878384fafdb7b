/* plan_constants.c - constants that a stretch leaves in slots.
 *
 * Later instructions and the caller may write to what they get, so each run copies it. Tensors that
 * overlap get one copy together: of the bytes that any of them sees, not of the whole memory, which
 * may be a file of weights.
 */
#include "plan_impl.h"

#include <stdlib.h>

/* A constant among the outs, and the bytes that it sees. */
typedef struct seen {
    const cfx_tensor *tensor;
    const char *begin;
    const char *end;
} seen;

typedef struct search {
    cfxi_plan *plan;
    cfxi_vec found;  /* of seen */
    cfx_error *err;
} search;

static bool note(search *s, cfx_datum d)
{
    size_t n;
    int64_t before;
    int64_t after;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        if (!note(s, items[i]))
            return false;
    const cfx_tensor *t = d.kind == CFX_DATUM_TENSOR ? d.as.tensor : NULL;
    if (!t || cfxi_plan_is_planned(d) || !t->storage || !cfxi_tensor_span(t, &before, &after))
        return true;
    if (!cfxi_base_vec_reserve(&s->found, 1, sizeof(seen), s->plan->allocator))
        return cfxi_base_nomem(s->err), false;
    ((seen *)s->found.data)[s->found.size++] = (seen){t, t->data + before, t->data + after};
    return true;
}

static int by_begin(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const seen *)a)->begin;
    const uintptr_t y = (uintptr_t)((const seen *)b)->begin;
    return (x > y) - (x < y);
}

/* Elements that are one element, of a broadcast, stay so only in a copy of the memory. */
static bool repeats(const cfx_tensor *t)
{
    for (size_t i = 0; i < t->ndim; i++)
        if (t->stride[i] <= 0 && t->size[i] > 1)
            return true;
    return false;
}

/* Makes found[first .. end) one shared memory. */
static cfx_status share(search *s, size_t first, size_t end, const char *last)
{
    cfxi_plan *plan = s->plan;
    const seen *found = s->found.data;
    if (end - first == 1 && !repeats(found[first].tensor))
        return CFX_OK;
    cfxi_shared *made = cfxi_plan_push(&plan->shared, sizeof *made, plan->allocator, s->err);
    if (!made)
        return CFX_E_NOMEM;
    *made = (cfxi_shared){found[first].begin, (size_t)(last - found[first].begin)};
    for (size_t i = first; i < end; i++) {
        uint64_t *number = cfxi_base_map_add(&plan->shared_by, found[i].tensor, sizeof *number,
                                             plan->allocator);
        if (!number)
            return cfxi_base_nomem(s->err);
        *number = plan->shared.size;
    }
    return CFX_OK;
}

/* In the order of their addresses, those that overlap follow one another. */
static cfx_status share_all(search *s)
{
    const seen *found = s->found.data;
    for (size_t first = 0, i = 0; first < s->found.size; first = i) {
        const char *last = found[first].end;
        for (i = first + 1; i < s->found.size && found[i].begin < last; i++)
            last = found[i].end > last ? found[i].end : last;
        CFX_TRY(share(s, first, i, last));
    }
    return CFX_OK;
}

cfx_status cfxi_plan_share_constants(cfxi_plan *plan, cfx_error *err)
{
    search s = {.plan = plan, .err = err};
    cfx_status status = CFX_OK;
    for (size_t i = 0; i < plan->outs.size && status == CFX_OK; i++)
        status = note(&s, cfxi_plan_out(plan, i)->value) ? CFX_OK : CFX_E_NOMEM;
    if (s.found.size > 1)
        qsort(s.found.data, s.found.size, sizeof(seen), by_begin);
    if (status == CFX_OK)
        status = share_all(&s);
    cfxi_base_vec_free(&s.found, sizeof(seen), plan->allocator);
    return status;
}

/* ---- in a run ------------------------------------------------------------------------------ */

cfx_tensor *cfxi_plan_header_like(const cfxi_plan *plan, const cfx_tensor *t, cfx_error *err)
{
    cfx_tensor *made =
        cfxi_tensor_header((cfx_dtype)t->dtype, t->size, t->ndim, plan->allocator, err);
    if (made) {
        memcpy(made->stride, t->stride, sizeof made->stride);
        made->number = t->number;
    }
    return made;
}

static cfx_tensor *copy_bytes(const cfxi_plan *plan, const cfxi_shared *from, cfx_error *err)
{
    const int64_t bytes = (int64_t)from->size;
    cfx_tensor *copy = cfx_tensor_new(CFX_DTYPE_UINT8, &bytes, 1, plan->allocator, err);
    if (copy)
        memcpy(copy->data, from->begin, from->size);
    return copy;
}

cfx_tensor *cfxi_plan_copy_constant(const cfxi_plan *plan, cfx_runtime *rt, const cfx_tensor *t,
                                    cfx_tensor **copies, cfx_error *err)
{
    const uint64_t *number = cfxi_base_map_find(&plan->shared_by, t, sizeof *number);
    const cfxi_shared *shared =
        number ? &((const cfxi_shared *)plan->shared.data)[*number - 1] : NULL;
    if (shared && !copies[*number - 1])
        copies[*number - 1] = copy_bytes(plan, shared, err);
    if (shared && !copies[*number - 1])
        return NULL;
    cfx_tensor *made = cfxi_plan_header_like(plan, t, err);
    if (!made)
        return NULL;
    const cfx_status status =
        shared ? cfxi_tensor_share(made, copies[*number - 1], t->data - shared->begin, err)
               : cfxi_tensor_allocate(made, err);
    if (status == CFX_OK && (shared || cfxi_rt_copy(rt, made, t, err) == CFX_OK))
        return made;
    cfx_tensor_release(made);
    return NULL;
}
