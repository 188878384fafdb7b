/* plan_join.c - steps that put tensors together, and where each of these belongs. */
#include "plan_join.h"

static bool is_planned(const cfx_tensor *t) { return t->storage && t->storage->planned; }

static bool list_of(const cfxi_step *s, cfxi_join *join)
{
    join->items = cfx_datum_items(s->args[0], &join->n);
    const size_t ndim = join->out->ndim - join->stacks;
    for (size_t i = 0; i < join->n; i++)  /* cat takes an empty list of numbers for nothing */
        if (join->items[i].kind != CFX_DATUM_TENSOR || join->items[i].as.tensor->ndim != ndim)
            return false;
    const int64_t dim = s->args[1].as.i;
    join->dim = (size_t)(dim < 0 ? dim + join->out->ndim : dim);
    return join->n > 0 && join->dim < join->out->ndim;
}

/* A constant around the tensor, which keeps all its elements. */
static bool border_of(const cfxi_step *s, cfxi_join *join)
{
    if (s->op == CFX_OPID_pad &&
        (s->args[2].kind != CFX_DATUM_STR ||
         strcmp(cfx_datum_text(s->args[2], NULL), "constant") != 0))
        return false;
    join->items = s->args;
    join->n = 1;
    join->pads = true;
    join->border = cfx_datum_items(s->args[1], &join->borders);
    for (size_t i = 0; i < join->borders; i++)
        if (join->border[i].kind != CFX_DATUM_INT || join->border[i].as.i < 0)
            return false;
    return join->items[0].kind == CFX_DATUM_TENSOR;
}

bool cfxi_plan_join_of(const cfxi_step *s, cfxi_join *join)
{
    *join = (cfxi_join){.stacks = s->op == CFX_OPID_stack};
    if (s->removed || s->kernel || s->chosen || s->num_results != 1 ||
        s->results[0].kind != CFX_DATUM_TENSOR || !is_planned(s->results[0].as.tensor))
        return false;
    join->out = s->results[0].as.tensor;
    switch ((int)s->op) {
    case CFX_OPID_cat: case CFX_OPID_stack:
        return list_of(s, join);
    case CFX_OPID_pad: case CFX_OPID_constant_pad_nd:
        return border_of(s, join);
    default:
        return false;
    }
}

/* How far a padded tensor begins from the first element. */
static int64_t padded_offset(const cfxi_join *join)
{
    int64_t offset = 0;
    for (size_t i = 0; i < join->borders; i += 2)
        offset += join->border[i].as.i * join->out->stride[join->out->ndim - 1 - i / 2];
    return offset;
}

bool cfxi_plan_next_part(const cfxi_join *join, size_t *at, int64_t *offset, cfxi_part *part)
{
    const cfx_tensor *out = join->out;
    if (*at == join->n)
        return false;
    part->item = join->items[(*at)++].as.tensor;
    part->offset = join->pads ? padded_offset(join) : *offset;
    for (size_t i = 0; i < part->item->ndim; i++)
        part->stride[i] = out->stride[join->stacks && i >= join->dim ? i + 1 : i];
    if (!join->pads)
        *offset += (join->stacks ? 1 : part->item->size[join->dim]) * out->stride[join->dim];
    return true;
}

/* ---- lists that grow ----------------------------------------------------------------------- */

typedef struct grown {
    uint32_t step;
    cfx_datum items;  /* as they were: retained */
} grown;

typedef struct growing {
    cfxi_plan *plan;
    const bool *seen;
    cfxi_vec joins;            /* of grown */
    cfxi_pointers latest;      /* the first item -> what `joins` has for it, 1 + its number */
} growing;

/* Whether the items of `s` begin with all of an earlier join's. */
static bool begins_with(const cfxi_join *s, const cfxi_join *before, const cfx_datum *items,
                        size_t n)
{
    if (n < 2 || n > s->n || s->dim != before->dim || s->stacks || before->stacks || s->pads ||
        before->pads || s->out->dtype != before->out->dtype)
        return false;
    for (size_t i = 0; i < n; i++)
        if (s->items[i].as.tensor != items[i].as.tensor)
            return false;
    return true;
}

/* The join's first n items become one. */
static cfx_status shorten(cfxi_plan *plan, cfxi_step *s, const cfxi_join *join, size_t n,
                          cfx_datum whole, cfx_error *err)
{
    const size_t count = 1 + join->n - n;
    cfx_datum *items = cfxi_base_alloc(plan->allocator, count * sizeof *items);
    if (!items)
        return cfxi_base_nomem(err);
    items[0] = whole;
    for (size_t i = 1; i < count; i++)
        items[i] = join->items[n + i - 1];
    const cfx_datum list = cfx_datum_seq(CFX_DATUM_LIST, items, count, plan->allocator, err);
    cfxi_base_free(plan->allocator, items, count * sizeof *items);
    if (list.kind == CFX_DATUM_INVALID)
        return CFX_E_NOMEM;
    cfx_datum_release(s->args[0]);
    s->args[0] = list;
    return CFX_OK;
}

/* A join that a later one may begin with, and what it may begin with itself. */
static cfx_status grow(growing *g, uint32_t step, cfx_error *err)
{
    const cfx_allocator *a = g->plan->allocator;
    cfxi_step *s = cfxi_plan_step(g->plan, step);
    cfxi_join join;
    if (!cfxi_plan_join_of(s, &join) || join.pads || join.stacks)
        return CFX_OK;
    const uint32_t out = cfxi_plan_number(g->plan, join.out);
    const cfx_tensor *first = join.items[0].as.tensor;
    const uintptr_t known = (uintptr_t)cfxi_base_pointers_get(&g->latest, first);
    const cfx_datum items = cfx_datum_retain(s->args[0]);
    cfx_status status = CFX_OK;
    if (known > 0) {
        const grown *before = &((const grown *)g->joins.data)[known - 1];
        const cfxi_step *giver = cfxi_plan_step(g->plan, before->step);
        cfxi_join earlier;
        size_t n;
        const cfx_datum *had = cfx_datum_items(before->items, &n);
        if (cfxi_plan_join_of(giver, &earlier) && begins_with(&join, &earlier, had, n))
            status = shorten(g->plan, s, &join, n, giver->results[0], err);
    }
    grown *own = status == CFX_OK ? cfxi_plan_push(&g->joins, sizeof *own, a, err) : NULL;
    if (!own) {
        cfx_datum_release(items);
        return CFX_E_NOMEM;
    }
    *own = (grown){step, items};
    if (g->seen[cfxi_plan_tensor(g->plan, out)->memory])
        return CFX_OK;  /* it has to be a tensor of its own */
    return cfxi_base_pointers_set(&g->latest, first, (void *)g->joins.size, a)
               ? CFX_OK : cfxi_base_nomem(err);
}

cfx_status cfxi_plan_shorten_joins(cfxi_plan *plan, const bool *seen, cfx_error *err)
{
    growing g = {.plan = plan, .seen = seen};
    cfx_status status = CFX_OK;
    for (uint32_t i = 0; status == CFX_OK && i < plan->steps.size; i++)
        status = grow(&g, i, err);
    for (size_t i = 0; i < g.joins.size; i++)
        cfx_datum_release(((grown *)g.joins.data)[i].items);
    cfxi_base_vec_free(&g.joins, sizeof(grown), plan->allocator);
    cfxi_base_pointers_free(&g.latest, plan->allocator);
    return status;
}
