/* plan_norm.c - RMS norms that a program has written out become one step:
 *
 *     weight * (x * rsqrt(mean(x * x, -1, True) + eps))
 *
 * also with a square or a power, with x / sqrt(...), and without weights. Nobody else may read
 * what is between. Squares are summed in double: they do not overflow as they would step by step.
 */
#include "plan_groups.h"

typedef struct finder {
    cfxi_plan *plan;
    const cfxi_groups *groups;
} finder;

/* A norm in the making: x / sqrt(mean + eps) * weight. */
typedef struct norm {
    uint32_t steps[5];   /* that go */
    size_t num_steps;
    cfx_tensor *x;
    cfx_tensor *weight;  /* or NULL */
    double eps;
} norm;

static cfx_tensor *header_of(const finder *f, uint32_t tensor)
{
    return tensor == CFXI_NONE ? NULL : cfxi_plan_tensor(f->plan, tensor)->header;
}

static bool is_same(const cfx_tensor *a, const cfx_tensor *b)
{
    return a && b && a->data == b->data && cfxi_plan_lie_alike(a, b);
}

/* The function that gives `t`, which only `reader` reads; NULL if none does. Its step goes. */
static const cfxi_element *take(const finder *f, norm *n, const cfx_tensor *t, uint32_t *reader)
{
    const uint32_t step = cfxi_plan_only_giver(f->groups, t, *reader);
    if (step == CFXI_NONE || !f->groups->elements[step].known)
        return NULL;
    *reader = n->steps[n->num_steps++] = step;
    return &f->groups->elements[step];
}

/* mean(., -1, True), which only `reader` reads: what it is of, or NULL. */
static cfx_tensor *take_mean(const finder *f, norm *n, const cfx_tensor *t, uint32_t *reader)
{
    const uint32_t step = cfxi_plan_only_giver(f->groups, t, *reader);
    const cfxi_step *s = step != CFXI_NONE ? cfxi_plan_step(f->plan, step) : NULL;
    cfx_tensor *of = s && s->op == CFX_OPID_mean ? cfxi_plan_tensor_arg(s, 0) : NULL;
    size_t count;
    const cfx_datum *dims = of ? cfx_datum_items(s->args[1], &count) : NULL;
    if (!dims || count != 1 || of->ndim == 0 || of->dtype != CFX_DTYPE_FLOAT32 ||
        t->dtype != CFX_DTYPE_FLOAT32 || !s->args[2].as.b ||
        (dims[0].as.i != -1 && dims[0].as.i != of->ndim - 1))
        return NULL;
    *reader = n->steps[n->num_steps++] = step;
    return of;
}

/* Whether `t`, which only the step `reader` reads, is what x is divided by (`root`), or multiplied.
 */
static bool take_scale(const finder *f, norm *n, const cfx_tensor *t, bool root, uint32_t reader)
{
    const cfxi_element *e = take(f, n, t, &reader);
    if (!e || e->fn != (root ? CFXI_FN_sqrt : CFXI_FN_rsqrt))
        return false;
    e = take(f, n, header_of(f, e->args[0]), &reader);
    if (!e || e->fn != CFXI_FN_add || e->n != 2)
        return false;
    const size_t number = e->args[0] == CFXI_NONE ? 0 : 1;
    if (e->args[number] != CFXI_NONE || e->args[1 - number] == CFXI_NONE)
        return false;
    n->eps = (double)e->numbers[number];
    const cfx_tensor *of = take_mean(f, n, header_of(f, e->args[1 - number]), &reader);
    e = of ? take(f, n, of, &reader) : NULL;
    if (!e || !is_same(header_of(f, e->args[0]), n->x))
        return false;
    return e->fn == CFXI_FN_square ||
           (e->fn == CFXI_FN_mul && e->n == 2 && e->args[0] == e->args[1]);
}

/* x times the scale, in any order, or divided by the root. */
static bool find_norm(const finder *f, norm *n, uint32_t last)
{
    const cfxi_element *e = &f->groups->elements[last];
    const cfxi_step *s = cfxi_plan_step(f->plan, last);
    const bool divides = e->known && e->fn == CFXI_FN_div;
    if (!e->known || e->n != 2 || (!divides && e->fn != CFXI_FN_mul))
        return false;
    for (size_t k = 0; k < (divides ? 1 : 2); k++) {
        *n = (norm){.x = header_of(f, e->args[k])};
        const cfx_tensor *scale = header_of(f, e->args[1 - k]);
        if (n->x && scale && scale->ndim == n->x->ndim && n->x->ndim > 0 &&
            scale->size[scale->ndim - 1] == 1 && n->x->size[n->x->ndim - 1] > 1 &&
            cfxi_tensor_numel(n->x) == cfxi_tensor_numel(s->results[0].as.tensor) &&
            take_scale(f, n, scale, divides, last))
            return true;
    }
    return false;
}

/* If all that reads the norm multiplies it by weights, these are a part of it. */
static uint32_t take_weight(const finder *f, norm *n, uint32_t last)
{
    const cfx_tensor *out = cfxi_plan_step(f->plan, last)->results[0].as.tensor;
    const uint32_t next = cfxi_plan_only_reader(f->groups, cfxi_plan_number(f->plan, out));
    const cfxi_step *s = next != CFXI_NONE ? cfxi_plan_step(f->plan, next) : NULL;
    if (!s || s->op != CFX_OPID_mul || s->removed || s->kernel)
        return last;
    for (size_t k = 0; k < 2; k++) {
        cfx_tensor *w = cfxi_plan_tensor_arg(s, k);
        if (w && w->dtype == CFX_DTYPE_FLOAT32 && cfxi_rt_can_read(w) && w->ndim == 1 &&
            w->size[0] == n->x->size[n->x->ndim - 1] &&
            cfxi_plan_only_giver(f->groups, cfxi_plan_tensor_arg(s, 1 - k), next) == last) {
            n->weight = w;
            return next;
        }
    }
    return last;
}

/* Makes the last step a call of the norm's row. */
static cfx_status replace(const finder *f, const norm *n, uint32_t last, cfx_error *err)
{
    cfxi_step *s = cfxi_plan_step(f->plan, last);
    const cfx_datum size = cfx_datum_int(n->x->size[n->x->ndim - 1]);
    const cfx_datum sizes = cfx_datum_seq(CFX_DATUM_LIST, &size, 1, f->plan->allocator, err);
    if (sizes.kind == CFX_DATUM_INVALID)
        return CFX_E_NOMEM;
    const cfx_datum args[] = {
        cfx_datum_tensor(cfx_tensor_retain(n->x)), sizes,
        n->weight ? cfx_datum_tensor(cfx_tensor_retain(n->weight)) : cfx_datum_none(),
        cfx_datum_float(n->eps)};
    for (size_t i = 0; i < CFXI_MOST_PARAMS; i++) {
        cfx_datum_release(s->args[i]);
        s->args[i] = i < 4 ? args[i] : cfx_datum_invalid();
    }
    s->num_args = 4;
    s->op = CFX_OPID_rms_norm;
    for (size_t i = 0; i < n->num_steps; i++)
        cfxi_plan_step(f->plan, n->steps[i])->removed = true;
    return CFX_OK;
}

cfx_status cfxi_plan_fuse_norms(cfxi_plan *plan, const cfxi_groups *groups, cfx_error *err)
{
    const finder f = {plan, groups};
    for (uint32_t i = 0; i < plan->steps.size; i++) {
        norm n;
        if (cfxi_plan_step(plan, i)->removed || !find_norm(&f, &n, i))
            continue;
        const uint32_t last = take_weight(&f, &n, i);
        if (!cfx_tensor_is_contiguous(cfxi_plan_step(plan, last)->results[0].as.tensor))
            continue;
        if (last != i)
            n.steps[n.num_steps++] = i;
        CFX_TRY(replace(&f, &n, last, err));
    }
    return CFX_OK;
}
