/* plan_norm.c - norms that a program has written out become one step:
 *
 *     weight * (x * rsqrt(mean(x * x, -1, True) + eps))              an RMS norm; and, where x is
 *     d = z - mean(z, -1, True)                                      a layer norm of z
 *
 * also with a square or a power, with x / sqrt(...), and without weights; a layer norm may have a
 * bias, too. Nobody else may read what is between. Squares are summed in double: they do not
 * overflow as they would step by step.
 */
#include "plan_groups.h"

typedef struct finder {
    cfxi_plan *plan;
    const cfxi_groups *groups;
} finder;

/* A norm in the making: x / sqrt(mean + eps) * weight + bias. */
typedef struct norm {
    uint32_t steps[8];   /* that go */
    size_t num_steps;
    cfx_tensor *x;
    bool centred;        /* less its mean: a layer norm */
    cfx_tensor *weight;  /* or NULL */
    cfx_tensor *bias;    /* or NULL */
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

static bool is_square(const cfxi_element *e)
{
    return e->fn == CFXI_FN_square ||
           (e->fn == CFXI_FN_mul && e->n == 2 && e->args[0] == e->args[1]) ||
           (e->fn == CFXI_FN_pow && e->args[1] == CFXI_NONE && e->numbers[1] == 2);
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
    return is_square(e);
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

/* Whether only the steps of the norm, `last` among them, read a tensor. */
static bool is_read_inside(const finder *f, const norm *n, uint32_t last, uint32_t tensor)
{
    const uint32_t memory = cfxi_plan_tensor(f->plan, tensor)->memory;
    const cfxi_groups *g = f->groups;
    for (uint32_t i = g->first_reader[memory]; i < g->first_reader[memory + 1]; i++) {
        bool inside = g->readers[i] == last;
        for (size_t k = 0; k < n->num_steps; k++)
            inside = inside || g->readers[i] == n->steps[k];
        if (!inside)
            return false;
    }
    return true;
}

/* If x is z less its mean, and nobody else reads it: the norm is a layer norm of z. */
static void take_centre(const finder *f, norm *n, uint32_t last)
{
    const uint32_t x = cfxi_plan_number(f->plan, n->x);
    const uint32_t step = x != CFXI_NONE ? f->groups->writer[cfxi_plan_tensor(f->plan, x)->memory]
                                         : CFXI_NONE;
    const cfxi_element *e = step != CFXI_NONE ? &f->groups->elements[step] : NULL;
    if (!e || !e->known || e->fn != CFXI_FN_sub || e->n != 2 ||
        cfxi_plan_tensor(f->plan, x)->offset != 0 ||
        !cfxi_plan_lie_alike(n->x, cfxi_plan_step(f->plan, step)->results[0].as.tensor) ||
        !is_read_inside(f, n, last, x))
        return;
    norm found = *n;
    uint32_t reader = step;
    found.x = header_of(f, e->args[0]);
    found.steps[found.num_steps++] = step;
    if (!found.x || !is_same(take_mean(f, &found, header_of(f, e->args[1]), &reader), found.x) ||
        !cfxi_plan_lie_alike(found.x, n->x))
        return;
    *n = found;
    n->centred = true;
}

/* The step that is all that reads what `last` gives, if it is `op` with a vector, which becomes
 * *vector; else CFXI_NONE. */
static uint32_t next_with_vector(const finder *f, const norm *n, uint32_t last, cfx_operator op,
                                 cfx_tensor **vector)
{
    const cfx_tensor *out = cfxi_plan_step(f->plan, last)->results[0].as.tensor;
    const uint32_t next = cfxi_plan_only_reader(f->groups, cfxi_plan_number(f->plan, out));
    const cfxi_step *s = next != CFXI_NONE ? cfxi_plan_step(f->plan, next) : NULL;
    if (!s || s->op != op || s->removed || s->kernel ||
        (op == CFX_OPID_add && s->args[2].as.i != 1))
        return CFXI_NONE;
    for (size_t k = 0; k < 2; k++) {
        cfx_tensor *w = cfxi_plan_tensor_arg(s, k);
        if (w && w->dtype == CFX_DTYPE_FLOAT32 && cfxi_rt_can_read(w) && w->ndim == 1 &&
            w->size[0] == n->x->size[n->x->ndim - 1] &&
            cfxi_plan_only_giver(f->groups, cfxi_plan_tensor_arg(s, 1 - k), next) == last) {
            *vector = w;
            return next;
        }
    }
    return CFXI_NONE;
}

static uint32_t take_vector(const finder *f, norm *n, uint32_t last, cfx_operator op,
                            cfx_tensor **vector)
{
    const uint32_t next = next_with_vector(f, n, last, op, vector);
    if (next == CFXI_NONE)
        return last;
    n->steps[n->num_steps++] = last;
    return next;
}

static cfx_datum tensor_or_none(cfx_tensor *t)
{
    return t ? cfx_datum_tensor(cfx_tensor_retain(t)) : cfx_datum_none();
}

/* Makes the last step a call of the norm's row. */
static cfx_status replace(const finder *f, const norm *n, uint32_t last, cfx_error *err)
{
    cfxi_step *s = cfxi_plan_step(f->plan, last);
    const cfx_datum size = cfx_datum_int(n->x->size[n->x->ndim - 1]);
    const cfx_datum sizes = cfx_datum_seq(CFX_DATUM_LIST, &size, 1, f->plan->allocator, err);
    if (sizes.kind == CFX_DATUM_INVALID)
        return CFX_E_NOMEM;
    cfx_datum args[6] = {cfx_datum_tensor(cfx_tensor_retain(n->x)), sizes,
                         tensor_or_none(n->weight)};
    size_t num_args = 3;
    if (n->centred)
        args[num_args++] = tensor_or_none(n->bias);
    args[num_args++] = cfx_datum_float(n->eps);
    if (n->centred)
        args[num_args++] = cfx_datum_bool(true);
    for (size_t i = 0; i < CFXI_MOST_PARAMS; i++) {
        cfx_datum_release(s->args[i]);
        s->args[i] = i < num_args ? args[i] : cfx_datum_invalid();
    }
    s->num_args = (uint8_t)num_args;
    s->op = n->centred ? CFX_OPID_layer_norm : CFX_OPID_rms_norm;
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
        take_centre(&f, &n, i);
        uint32_t last = take_vector(&f, &n, i, CFX_OPID_mul, &n.weight);
        if (n.centred)
            last = take_vector(&f, &n, last, CFX_OPID_add, &n.bias);
        if (cfx_tensor_is_contiguous(cfxi_plan_step(plan, last)->results[0].as.tensor))
            CFX_TRY(replace(&f, &n, last, err));
    }
    return CFX_OK;
}
