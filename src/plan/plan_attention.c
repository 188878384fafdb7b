/* plan_attention.c - attention that a program has written out becomes one step:
 *
 *     matmul(softmax(matmul(q, k^T) * scale + mask), v)
 *
 * Views are resolved in a plan, and sizes, strides and constant masks are known, so one walk finds
 * every spelling: it begins with a softmax, goes back over scales and a mask to the product of
 * queries and keys, and on to the product with values. Nobody else may read what is between. A copy
 * that only puts the heads of the result side by side goes, too: attention writes them there.
 *
 * A key that is hidden may be left out: an infinite value or NaN does then not reach its query.
 */
#include "plan_groups.h"

#include <math.h>

enum { MOST_STEPS = 8 };

/* What a number that hides keys is at least: no score is as low. */
static const double HIDES = -1e30;

typedef struct finder {
    cfxi_plan *plan;
    const cfxi_groups *groups;
    cfx_error *err;
} finder;

/* An attention in the making. Tensors are borrowed from steps, but for `own`. */
typedef struct attention {
    uint32_t steps[MOST_STEPS];  /* that go */
    size_t num_steps;
    const cfx_tensor *q, *keys, *v;  /* `keys` is transposed, as the product has it */
    cfx_tensor *mask;            /* or NULL */
    cfx_tensor *own;             /* a mask that was made; or NULL */
    double scale;
    bool causal;
} attention;

/* ---- tensors ------------------------------------------------------------------------------- */

/* A tensor whose rows lie side by side, as the kernel reads them. */
static bool has_rows(const cfx_tensor *t, size_t row)
{
    return t && t->dtype == CFX_DTYPE_FLOAT32 && t->ndim >= 2 && t->stride[row] == 4 &&
           cfxi_tensor_has_whole_strides(t) && cfxi_tensor_numel(t) > 0;
}

/* ---- masks --------------------------------------------------------------------------------- */

/* Whether a mask is broadcast to scores without making them larger, and has lines and columns. */
static bool fits_scores(const cfx_tensor *mask, const cfx_tensor *scores)
{
    if (mask->ndim < 2 || mask->ndim > scores->ndim)
        return false;
    for (size_t i = 0; i < mask->ndim; i++)
        if (mask->size[i] != 1 && mask->size[i] != scores->size[scores->ndim - mask->ndim + i])
            return false;
    return true;
}

static const char *line_of(const cfx_tensor *t, int64_t batch, int64_t row)
{
    const char *at = t->data;
    for (size_t d = (size_t)t->ndim - 2; d-- > 0;) {
        at += batch % t->size[d] * t->stride[d];
        batch /= t->size[d];
    }
    return at + (t->size[t->ndim - 2] == 1 ? 0 : row * t->stride[t->ndim - 2]);
}

/* Whether a constant mask hides an element: those that are `hidden` if it is of bools, else those
 * that are low. */
static bool hides(const cfx_tensor *t, const char *line, int64_t column, bool hidden)
{
    const size_t last = (size_t)t->ndim - 1;
    const char *at = line + (t->size[last] == 1 ? 0 : column * t->stride[last]);
    return t->dtype == CFX_DTYPE_BOOL ? (*at != 0) == hidden
                                      : (double)*(const float *)(const void *)at <= HIDES;
}

/* Whether a constant mask hides what comes after each query, and nothing else. */
static bool is_causal(const cfx_tensor *t, const cfx_tensor *scores, bool hidden)
{
    const int64_t queries = scores->size[scores->ndim - 2];
    const int64_t keys = scores->size[scores->ndim - 1];
    if (cfxi_tensor_numel(t) != queries * keys)
        return false;
    for (int64_t i = 0; i < queries; i++) {
        const char *line = line_of(t, 0, i);
        for (int64_t j = 0; j < keys; j++) {
            const bool other = t->dtype == CFX_DTYPE_FLOAT32 && j <= i &&
                               *(const float *)(const void *)
                                   (line + j * t->stride[t->ndim - 1]) != 0;
            if (other || hides(t, line, j, hidden) != (j > i))
                return false;
        }
    }
    return true;
}

/* A copy of a mask of bools that is true where it does not hide; NULL if a query would see nothing,
 * or memory is out: then scores stay as they are written. */
static cfx_tensor *seen_by(const cfx_tensor *t, bool hidden, const cfx_allocator *allocator)
{
    cfx_tensor *seen = cfx_tensor_new(CFX_DTYPE_BOOL, t->size, t->ndim, allocator, NULL);
    const int64_t columns = t->size[t->ndim - 1];
    const int64_t rows = t->size[t->ndim - 2];
    const int64_t lines = seen && columns > 0 ? cfxi_tensor_numel(t) / columns : 0;
    for (int64_t i = 0; i < lines; i++) {
        bool any = false;
        for (int64_t j = 0; j < columns; j++) {
            const bool see = !hides(t, line_of(t, i / rows, i % rows), j, hidden);
            seen->data[i * columns + j] = see;
            any = any || see;
        }
        if (!any) {
            cfx_tensor_release(seen);
            return NULL;
        }
    }
    return seen;
}

/* Whether a mask can be what is applied last: a factor behind it would scale it, too. */
static bool takes_mask(const attention *a) { return !a->mask && !a->causal && a->scale == 1; }

/* Scores plus a mask. */
static bool add_mask(const finder *f, attention *a, cfx_tensor *mask, const cfx_tensor *scores)
{
    if (!takes_mask(a) || mask->dtype != CFX_DTYPE_FLOAT32 || !fits_scores(mask, scores) ||
        !cfxi_tensor_has_whole_strides(mask))
        return false;
    if (cfxi_rt_can_read(mask))
        a->causal = is_causal(mask, scores, true);
    else if (cfxi_plan_number(f->plan, mask) == CFXI_NONE)
        return false;
    if (!a->causal)
        a->mask = mask;
    return true;
}

/* Scores that become `number` where a mask of bools is `hidden`. Only a constant mask tells whether
 * a query sees anything: if it sees nothing, all weights are the same, unless the number is
 * infinite. */
static bool hide(const finder *f, attention *a, cfx_tensor *mask, bool hidden, double number,
                 const cfx_tensor *scores)
{
    if (!takes_mask(a) || mask->dtype != CFX_DTYPE_BOOL || !(number <= HIDES) ||
        !fits_scores(mask, scores))
        return false;
    if (!cfxi_rt_can_read(mask)) {
        a->mask = mask;
        return !hidden && number == -INFINITY && cfxi_plan_number(f->plan, mask) != CFXI_NONE;
    }
    a->causal = is_causal(mask, scores, hidden);
    if (!a->causal)
        a->mask = a->own = seen_by(mask, hidden, f->plan->allocator);
    return a->causal || a->mask;
}

/* ---- scores -------------------------------------------------------------------------------- */

/* The only element of a constant, or a number. */
static bool number_of(cfx_datum d, double *number)
{
    const cfx_tensor *t = d.kind == CFX_DATUM_TENSOR ? d.as.tensor : NULL;
    if (t && cfxi_rt_can_read(t) && cfxi_tensor_numel(t) == 1 && cfx_dtype_is_float(t->dtype))
        *number = cfxi_tensor_load_float((cfx_dtype)t->dtype, t->data);
    else if (d.kind == CFX_DATUM_FLOAT)
        *number = d.as.f;
    else
        return false;
    return true;
}

static bool is_product(const cfxi_step *s)
{
    return s->op == CFX_OPID_matmul || s->op == CFX_OPID_bmm;
}

/* The product of queries and keys. */
static bool take_product(attention *a, const cfxi_step *s)
{
    const cfx_tensor *q = cfxi_plan_tensor_arg(s, 0);
    const cfx_tensor *k = cfxi_plan_tensor_arg(s, 1);
    if (!q || !k || !has_rows(q, (size_t)q->ndim - 1) || !has_rows(k, (size_t)k->ndim - 2))
        return false;
    a->q = q;
    a->keys = k;
    return true;
}

static bool go_back(const finder *f, attention *a, const cfx_tensor *t, uint32_t reader);

/* Scores and a mask, in any order. */
static bool take_sum(const finder *f, attention *a, const cfxi_step *s, uint32_t step)
{
    const attention before = *a;
    if (s->args[2].kind != CFX_DATUM_INT || s->args[2].as.i != 1)
        return false;
    for (size_t k = 0; k < 2; k++) {
        cfx_tensor *mask = cfxi_plan_tensor_arg(s, 1 - k);
        if (a->own != before.own)
            cfx_tensor_release(a->own);
        *a = before;
        if (mask && add_mask(f, a, mask, s->results[0].as.tensor) &&
            go_back(f, a, cfxi_plan_tensor_arg(s, k), step))
            return true;
    }
    return false;
}

/* Scores of which some are hidden. */
static bool take_hidden(const finder *f, attention *a, const cfxi_step *s, uint32_t step)
{
    const bool where = s->op == CFX_OPID_where;
    cfx_tensor *mask = cfxi_plan_tensor_arg(s, where ? 0 : 1);
    double number;
    return mask && number_of(s->args[2], &number) &&
           hide(f, a, mask, !where, number, s->results[0].as.tensor) &&
           go_back(f, a, cfxi_plan_tensor_arg(s, where ? 1 : 0), step);
}

/* Scores times a number. */
static bool take_factor(const finder *f, attention *a, uint32_t step)
{
    const cfxi_element *e = &f->groups->elements[step];
    const bool first = e->n == 2 && e->args[0] == CFXI_NONE;
    const bool one = e->n == 2 && (e->args[0] == CFXI_NONE) != (e->args[1] == CFXI_NONE);
    if (!e->known || !one)
        return false;
    if (e->fn == CFXI_FN_mul)
        a->scale *= (double)e->numbers[first ? 0 : 1];
    else if (e->fn == CFXI_FN_div && !first)
        a->scale /= (double)e->numbers[1];
    else
        return false;
    return go_back(f, a, cfxi_plan_tensor(f->plan, e->args[first ? 1 : 0])->header, step);
}

/* Goes back from `t`, which the step `reader` reads, to the product. */
static bool go_back(const finder *f, attention *a, const cfx_tensor *t, uint32_t reader)
{
    uint32_t step;
    if (a->num_steps == MOST_STEPS ||
        (step = cfxi_plan_only_giver(f->groups, t, reader)) == CFXI_NONE)
        return false;
    const cfxi_step *s = cfxi_plan_step(f->plan, step);
    a->steps[a->num_steps++] = step;
    switch ((int)s->op) {
    case CFX_OPID_matmul: case CFX_OPID_bmm: return take_product(a, s);
    case CFX_OPID_add: return take_sum(f, a, s, step);
    case CFX_OPID_where: case CFX_OPID_masked_fill: return take_hidden(f, a, s, step);
    default: return take_factor(f, a, step);
    }
}

/* Whether a softmax is over keys, in float32. */
static bool is_over_keys(const cfxi_step *s)
{
    const cfx_tensor *x = s->op == CFX_OPID_softmax ? cfxi_plan_tensor_arg(s, 0) : NULL;
    return x && x->dtype == CFX_DTYPE_FLOAT32 && x->ndim >= 2 &&
           s->results[0].as.tensor->dtype == CFX_DTYPE_FLOAT32 &&
           (s->args[1].as.i == -1 || s->args[1].as.i == x->ndim - 1);
}

/* The step that multiplies weights by values: all that reads them. */
static cfxi_step *find_last(const finder *f, attention *a, uint32_t softmax, uint32_t *last)
{
    const cfx_tensor *weights = cfxi_plan_step(f->plan, softmax)->results[0].as.tensor;
    *last = cfxi_plan_only_reader(f->groups, cfxi_plan_number(f->plan, weights));
    cfxi_step *s = *last != CFXI_NONE ? cfxi_plan_step(f->plan, *last) : NULL;
    a->v = s && is_product(s) ? cfxi_plan_tensor_arg(s, 1) : NULL;
    return a->v && has_rows(a->v, (size_t)a->v->ndim - 1) && cfxi_plan_tensor_arg(s, 0) != a->v &&
                   cfxi_plan_only_giver(f->groups, cfxi_plan_tensor_arg(s, 0), *last) == softmax
               ? s : NULL;
}

/* ---- the result ---------------------------------------------------------------------------- */

/* A header over the memory that a step writes, through which `t` lies there as the step would copy
 * it from `view`: the caller's. NULL if it would not, or memory is out. */
static cfx_tensor *header_in(const cfxi_step *copy, const cfx_tensor *view, const cfx_tensor *t)
{
    const cfx_tensor *to = copy->results[0].as.tensor;
    int64_t stride = 4;
    int64_t strides[CFX_MAX_DIMS] = {0};
    for (size_t i = view->ndim; i-- > 0; stride *= view->size[i]) {
        size_t d = 0;  /* the dimension of `t` that this one is */
        while (d < t->ndim && (strides[d] != 0 || t->size[d] != view->size[i] ||
                               t->stride[d] != view->stride[i]))
            d++;
        if (d == t->ndim && view->size[i] > 1)
            return NULL;
        if (d < t->ndim)
            strides[d] = stride;
    }
    for (size_t d = 0; d < t->ndim; d++)
        if (t->size[d] > 1 && strides[d] == 0)
            return NULL;
    cfx_tensor *made =
        cfxi_tensor_header(CFX_DTYPE_FLOAT32, t->size, t->ndim, t->allocator, NULL);
    if (!made)
        return NULL;
    for (size_t d = 0; d < t->ndim; d++)
        made->stride[d] = strides[d] ? strides[d] : 4;
    made->storage = to->storage;
    made->data = to->data;
    return made;
}

/* If all that reads the result copies it into another order, it is written in that order. */
static void skip_copy(const finder *f, cfxi_step *last, uint32_t number)
{
    cfx_tensor *out = last->results[0].as.tensor;
    const uint32_t reader = cfxi_plan_only_reader(f->groups, cfxi_plan_number(f->plan, out));
    cfxi_step *copy = reader != CFXI_NONE ? cfxi_plan_step(f->plan, reader) : NULL;
    const cfx_tensor *view = copy ? cfxi_plan_tensor_arg(copy, 0) : NULL;
    const bool copies = copy && (copy->op == CFX_OPID_reshape || copy->op == CFX_OPID_contiguous ||
                                 copy->op == CFX_OPID_clone);
    if (!copies || reader < number || copy->num_results != 1 || !view ||
        view->storage != out->storage || view->data != out->data ||
        cfxi_tensor_numel(view) != cfxi_tensor_numel(out) ||
        !cfx_tensor_is_contiguous(copy->results[0].as.tensor))
        return;
    cfx_tensor *made = header_in(copy, view, out);
    if (!made || !has_rows(made, (size_t)made->ndim - 1) ||
        cfxi_plan_list(f->plan, cfx_datum_tensor(made), NULL) != CFX_OK) {
        cfx_tensor_release(made);
        return;
    }
    cfx_tensor_release(out);
    last->results[0] = cfx_datum_tensor(made);
    copy->removed = true;
}

/* ---- the step ------------------------------------------------------------------------------ */

/* Keys as rows: the caller's. */
static cfx_tensor *rows_of(const cfx_tensor *keys, cfx_error *err)
{
    int64_t sizes[CFX_MAX_DIMS];
    const size_t last = (size_t)keys->ndim - 1;
    memcpy(sizes, keys->size, sizeof sizes);
    sizes[last] = keys->size[last - 1];
    sizes[last - 1] = keys->size[last];
    cfx_tensor *k = cfxi_tensor_header(CFX_DTYPE_FLOAT32, sizes, keys->ndim, keys->allocator, err);
    if (!k)
        return NULL;
    memcpy(k->stride, keys->stride, sizeof k->stride);
    k->stride[last] = keys->stride[last - 1];
    k->stride[last - 1] = keys->stride[last];
    k->storage = keys->storage;
    k->data = keys->data;
    return k;
}

/* Its arguments are what the kernel reads, so that readers are found as ever. */
static void set_arguments(cfxi_step *s, const attention *a, cfx_tensor *k)
{
    cfx_tensor *all[] = {(cfx_tensor *)a->q, k, (cfx_tensor *)a->v, a->mask};
    cfx_datum args[4];
    for (size_t i = 0; i < 4; i++)
        args[i] = all[i] ? cfx_datum_tensor(cfx_tensor_retain(all[i])) : cfx_datum_none();
    for (size_t i = 0; i < CFXI_MOST_PARAMS; i++) {
        cfx_datum_release(s->args[i]);
        s->args[i] = i < 4 ? args[i] : cfx_datum_invalid();
    }
    s->num_args = 4;
    s->op = CFX_OPID_scaled_dot_product_attention;
}

static cfx_status make_step(const finder *f, const attention *a, uint32_t number, cfx_tensor *k)
{
    cfxi_plan *plan = f->plan;
    cfxi_step *s = cfxi_plan_step(plan, number);
    CFX_TRY(cfxi_plan_list(plan, cfx_datum_tensor(k), f->err));
    const cfx_tensor *out = s->results[0].as.tensor;
    const int64_t values = out->size[out->ndim - 1];
    const cfxi_problem problem = {
        .kind = CFXI_ATTENTION, .isa = plan->isa, .threads = plan->threads, .scale = a->scale,
        .causal = a->causal, .m = cfxi_tensor_numel(out) / values,
        .n = k->size[k->ndim - 2], .k = k->size[k->ndim - 1] + values};
    const bool constant = a->mask && cfxi_rt_can_read(a->mask);
    cfx_tensor *const mask = constant ? a->mask : NULL;
    const cfxi_constants constants = {.tensors = &mask};
    s->kernel =
        cfxi_backend_attention.prepare(&problem, &constants, plan->allocator, f->err);
    if (!s->kernel)
        return CFX_E_NOMEM;
    set_arguments(s, a, k);
    skip_copy(f, s, number);
    s->x = CFXI_NONE;
    s->out = cfxi_plan_number(plan, s->results[0].as.tensor);
    s->num_operands = 3;
    for (size_t i = 0; i < 3; i++)
        s->operands[i] = cfxi_plan_number(plan, s->args[i].as.tensor);
    if (a->mask && !constant)
        s->operands[s->num_operands++] = cfxi_plan_number(plan, a->mask);
    for (size_t i = 0; i < a->num_steps; i++)
        cfxi_plan_step(plan, a->steps[i])->removed = true;
    return CFX_OK;
}

static bool is_planned(const finder *f, const cfx_tensor *t)
{
    return cfxi_plan_number(f->plan, t) != CFXI_NONE;
}

static cfx_status fuse_from(const finder *f, uint32_t softmax)
{
    attention a = {.scale = 1, .steps = {softmax}, .num_steps = 1};
    uint32_t last;
    cfxi_step *s = find_last(f, &a, softmax, &last);
    cfx_status status = CFX_OK;
    if (s && s->num_results == 1 && !s->chosen &&
        has_rows(s->results[0].as.tensor, (size_t)s->results[0].as.tensor->ndim - 1) &&
        go_back(f, &a, cfxi_plan_tensor_arg(cfxi_plan_step(f->plan, softmax), 0), softmax) &&
        is_planned(f, a.q) && is_planned(f, a.keys) && is_planned(f, a.v)) {
        cfx_tensor *k = rows_of(a.keys, f->err);
        status = k ? make_step(f, &a, last, k) : CFX_E_NOMEM;
        cfx_tensor_release(k);
    }
    cfx_tensor_release(a.own);
    return status;
}

cfx_status cfxi_plan_fuse_attention(cfxi_plan *plan, const cfxi_groups *groups, cfx_error *err)
{
    const finder f = {plan, groups, err};
    for (uint32_t i = 0; i < plan->steps.size; i++)
        if (is_over_keys(cfxi_plan_step(plan, i)))
            CFX_TRY(fuse_from(&f, i));
    return CFX_OK;
}
