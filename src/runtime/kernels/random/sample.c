/* sample.c - samples whose distribution is in a tensor: bernoulli, poisson, normal, multinomial,
 * gumbel_softmax. */
#include "runtime/kernels/reduce/sort_impl.h"

#include <math.h>

typedef struct sampling {
    cfxi_random random;
    const double *p;   /* or the rates, or the means: one for each result, contiguous */
    const double *q;   /* standard deviations */
    cfx_tensor *y;
    atomic_bool outside;
} sampling;

/* ---- bernoulli, normal, poisson ------------------------------------------------------------ */

static double draw_bernoulli(sampling *s, int64_t i)
{
    if (!(s->p[i] >= 0 && s->p[i] <= 1))
        atomic_store(&s->outside, true);
    return cfxi_rt_random_uniform(s->random, i) < s->p[i];
}

static double draw_normal(sampling *s, int64_t i)
{
    if (!(s->q[i] >= 0))
        atomic_store(&s->outside, true);
    return s->p[i] + s->q[i] * cfxi_rt_random_normal(s->random, i);
}

/* Numbers for one element: a generator of its own, from the element's number. */
static double poisson_small(cfxi_random own, double rate)
{
    double limit = exp(-rate);
    double product = 1;
    int64_t n = -1;
    do
        product *= cfxi_rt_random_uniform(own, ++n);
    while (product > limit);
    return (double)n;
}

/* Transformed rejection with squeeze (Hormann 1993), for rates of 10 and more. */
static double poisson_large(cfxi_random own, double rate)
{
    double root = sqrt(rate);
    double b = 0.931 + 2.53 * root;
    double a = -0.059 + 0.02483 * b;
    double inverse = 1.1239 + 1.1328 / (b - 3.4);
    double v_r = 0.9277 - 3.6224 / (b - 2);
    for (int64_t n = 0;; n += 2) {
        double u = cfxi_rt_random_uniform(own, n) - 0.5;
        double v = cfxi_rt_random_uniform(own, n + 1);
        double us = 0.5 - fabs(u);
        double k = floor((2 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= v_r)
            return k;
        if (k < 0 || (us < 0.013 && v > us))
            continue;
        if (log(v * inverse / (a / (us * us) + b)) <= k * log(rate) - rate - lgamma(k + 1))
            return k;
    }
}

static double draw_poisson(sampling *s, int64_t i)
{
    double rate = s->p[i];
    cfxi_random own = {.seed = cfxi_rt_random_bits(s->random, i), .first = 0};
    if (!(rate >= 0)) {
        atomic_store(&s->outside, true);
        return 0;
    }
    if (rate == 0)
        return 0;
    return isinf(rate) ? rate : rate < 10 ? poisson_small(own, rate) : poisson_large(own, rate);
}

typedef struct element_job {
    sampling *s;
    double (*draw)(sampling *s, int64_t i);
} element_job;

static void some_elements(void *ctx, int64_t begin, int64_t end)
{
    const element_job *j = ctx;
    cfx_dtype dtype = (cfx_dtype)j->s->y->dtype;
    for (int64_t i = begin; i < end; i++)
        cfxi_tensor_store_float(dtype, j->s->y->data + i * (int64_t)cfx_dtype_size(dtype),
                                j->draw(j->s, i));
}

/* `t` broadcast to the sizes of the result, as doubles. */
static cfx_tensor *numbers_of(cfxi_call *c, const cfx_tensor *t)
{
    const cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfx_tensor *all = cfx_tensor_new(CFX_DTYPE_FLOAT64, y->size, y->ndim, c->rt->allocator, c->err);
    if (all && cfxi_rt_copy(c->rt, all, t, c->err) != CFX_OK) {
        cfx_tensor_release(all);
        return NULL;
    }
    return all;
}

/* The result is contiguous. */
static cfx_status sample(cfxi_call *c, const cfx_tensor *p, const cfx_tensor *q,
                         double (*draw)(sampling *s, int64_t i), const char *wrong)
{
    sampling s = {.y = cfxi_rt_result_at(c, 0)};
    cfx_tensor *a = numbers_of(c, p);
    cfx_tensor *b = a && q ? numbers_of(c, q) : NULL;
    cfx_status status = a && (b || !q) ? CFX_OK : c->err->status;
    if (status == CFX_OK) {
        element_job j = {&s, draw};
        int64_t n = cfxi_tensor_numel(s.y);
        s.p = (const double *)a->data;
        s.q = b ? (const double *)b->data : NULL;
        s.random = cfxi_rt_random_reserve(c->rt, n);
        cfxi_rt_parallel(c->rt, n, 2048, some_elements, &j);
        if (atomic_load(&s.outside))
            status = cfxi_fail(c, CFX_E_SHAPE, "%s", wrong);
    }
    cfx_tensor_release(a);
    cfx_tensor_release(b);
    return status;
}

static cfx_status check_float(cfxi_call *c, const cfx_tensor *x)
{
    if (cfx_dtype_is_float((cfx_dtype)x->dtype))
        return CFX_OK;
    return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s",
                     cfx_dtype_name((cfx_dtype)x->dtype));
}

/* bernoulli and poisson: of the type of the argument, contiguous. */
cfx_status cfxi_rule_bernoulli(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    CFX_TRY(check_float(c, x));
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim);
}

/* (self, p): the type and sizes of self; p is broadcast. */
cfx_status cfxi_rule_bernoulli_p(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *both[] = {x, cfxi_rt_tensor(c, 1)};
    int64_t sizes[CFX_MAX_DIMS];
    size_t n;
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &n));
    bool grows = n != x->ndim;
    for (size_t d = 0; !grows && d < n; d++)
        grows = !cfxi_rt_same_size(c, sizes[d], x->size[d]);
    if (grows)
        return cfxi_fail(c, CFX_E_SHAPE, "the probabilities cannot be broadcast to the shape of "
                         "the tensor");
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim);
}

cfx_status cfxi_rule_normal_of(cfxi_call *c)
{
    const cfx_tensor *both[] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    int64_t sizes[CFX_MAX_DIMS];
    size_t n;
    cfx_dtype dtype = cfxi_tensor_promote(both, 2);
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &n));
    if (!cfx_dtype_is_float(dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s", cfx_dtype_name(dtype));
    return cfxi_rt_result(c, 0, dtype, sizes, n);
}

static const char *const not_a_probability = "Expected p_in >= 0 && p_in <= 1 to be true";

cfx_status cfxi_kernel_bernoulli(cfxi_call *c)
{
    return sample(c, cfxi_rt_tensor(c, 0), NULL, draw_bernoulli, not_a_probability);
}
cfx_status cfxi_kernel_bernoulli_p(cfxi_call *c)
{
    return sample(c, cfxi_rt_tensor(c, 1), NULL, draw_bernoulli, not_a_probability);
}
cfx_status cfxi_kernel_poisson(cfxi_call *c)
{
    return sample(c, cfxi_rt_tensor(c, 0), NULL, draw_poisson,
                  "invalid Poisson rate, expected rate to be non-negative");
}
cfx_status cfxi_kernel_normal_of(cfxi_call *c)
{
    return sample(c, cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1), draw_normal,
                  "normal expects all elements of std >= 0.0");
}

/* ---- multinomial --------------------------------------------------------------------------- */

/* (self, num_samples, replacement) */
cfx_status cfxi_rule_multinomial(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t sizes[2];
    int64_t n = cfxi_rt_int(c, 1);
    CFX_TRY(check_float(c, x));
    if (x->ndim < 1 || x->ndim > 2)
        return cfxi_fail(c, CFX_E_SHAPE, "prob_dist must be 1 or 2 dim");
    if (!cfx_dim_is_symbol(n) && n <= 0)
        return cfxi_fail(c, CFX_E_SHAPE, "cannot sample n_sample <= 0 samples");
    int64_t categories = x->size[x->ndim - 1];
    if (!cfxi_rt_bool(c, 2) && !cfx_dim_is_symbol(n) && !cfx_dim_is_symbol(categories) &&
        n > categories)
        return cfxi_fail(c, CFX_E_SHAPE, "cannot sample n_sample > prob_dist.size(-1) samples "
                         "without replacement");
    sizes[0] = x->ndim == 2 ? x->size[0] : n;
    sizes[1] = n;
    return cfxi_rt_result(c, 0, CFX_DTYPE_INT64, sizes, x->ndim);
}

/* Each sample is where its number falls among the sums of the probabilities. */
static void with_replacement(cfxi_random r, int64_t first, double *p, int64_t n, int64_t *out,
                             int64_t count)
{
    for (int64_t i = 1; i < n; i++)
        p[i] += p[i - 1];
    for (int64_t k = 0; k < count; k++) {
        double u = cfxi_rt_random_uniform(r, first + k) * p[n - 1];
        int64_t low = 0;
        int64_t high = n - 1;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (p[middle] > u)
                high = middle;
            else
                low = middle + 1;
        }
        out[k] = low;
    }
}

/* The first of exponentials that run at these rates are drawn without replacement. */
static void without_replacement(cfx_runtime *rt, cfxi_random r, int64_t first, double *p, int64_t n,
                                int64_t *out, int64_t count, cfxi_ranked *order)
{
    for (int64_t i = 0; i < n; i++)
        p[i] = p[i] > 0 ? -log1p(-cfxi_rt_random_uniform(r, first + i)) / p[i] : INFINITY;
    cfxi_reduce_rank(rt, order, CFX_DTYPE_FLOAT64, (const char *)p, sizeof *p, n, false);
    order = cfxi_reduce_sort_ranked(order, order + n, n);
    for (int64_t k = 0; k < count; k++)
        out[k] = order[k].index;
}

static cfx_status check_weights(cfxi_call *c, const double *p, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(p[i] >= 0 && p[i] < INFINITY))
            return cfxi_fail(c, CFX_E_SHAPE,
                             "probability tensor contains either `inf`, `nan` or element < 0");
        sum += p[i];
    }
    if (!(sum > 0))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "invalid multinomial distribution (sum of probabilities <= 0)");
    return CFX_OK;
}

static cfx_status multinomial_rows(cfxi_call *c, double *p, int64_t rows, int64_t n)
{
    int64_t count = cfxi_rt_int(c, 1);
    int64_t *out = (int64_t *)cfxi_rt_result_at(c, 0)->data;
    bool again = cfxi_rt_bool(c, 2);
    int64_t each = again ? count : n;
    size_t scratch;
    if (!cfxi_reduce_ranked_size(n, &scratch))
        return cfxi_base_nomem(c->err);
    cfxi_ranked *order = cfxi_rt_scratch(c->rt, scratch);
    if (!order)
        return cfxi_base_nomem(c->err);
    cfxi_random r = cfxi_rt_random_reserve(c->rt, rows * each);
    cfx_status status = CFX_OK;
    for (int64_t row = 0; row < rows && status == CFX_OK; row++, p += n, out += count) {
        status = check_weights(c, p, n);
        if (status == CFX_OK && again)
            with_replacement(r, row * each, p, n, out, count);
        else if (status == CFX_OK)
            without_replacement(c->rt, r, row * each, p, n, out, count, order);
    }
    cfxi_rt_scratch_free(c->rt, order);
    return status;
}

cfx_status cfxi_kernel_multinomial(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t n = x->size[x->ndim - 1];
    if (cfxi_tensor_numel(x) == 0)
        return n ? CFX_OK : cfxi_fail(c, CFX_E_SHAPE, "invalid multinomial distribution");
    /* A copy in any case: it is worked on. */
    cfx_tensor *p = cfx_tensor_new(CFX_DTYPE_FLOAT64, x->size, x->ndim, c->rt->allocator, c->err);
    cfx_status status = p ? cfxi_rt_copy(c->rt, p, x, c->err) : c->err->status;
    if (status == CFX_OK)
        status = multinomial_rows(c, (double *)p->data, cfxi_tensor_numel(x) / n, n);
    cfx_tensor_release(p);
    return status;
}

/* ---- gumbel_softmax ------------------------------------------------------------------------ */

/* (logits, tau, hard, eps, dim) */
cfx_status cfxi_rule_gumbel_softmax(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t dim;
    CFX_TRY(check_float(c, x));
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 4), x->ndim, &dim));
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim);
}

typedef struct hardening {
    cfx_tensor *y;
    size_t dim;
} hardening;

/* 1 where a lane is greatest, 0 elsewhere. */
static void harden(void *ctx, char *const at[], void *scratch, int64_t lane)
{
    const hardening *h = ctx;
    cfx_dtype dtype = (cfx_dtype)h->y->dtype;
    int64_t n = h->y->ndim ? h->y->size[h->dim] : 1;
    int64_t step = h->y->ndim ? h->y->stride[h->dim] : 0;
    int64_t best = 0;
    (void)scratch;
    (void)lane;
    for (int64_t i = 1; i < n; i++)
        if (cfxi_tensor_load_float(dtype, at[0] + i * step) >
            cfxi_tensor_load_float(dtype, at[0] + best * step))
            best = i;
    for (int64_t i = 0; i < n; i++)
        cfxi_tensor_store_float(dtype, at[0] + i * step, i == best);
}

cfx_status cfxi_kernel_gumbel_softmax(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    hardening h = {.y = cfxi_rt_result_at(c, 0)};
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 4), x->ndim, &h.dim));
    cfx_tensor *noisy = numbers_of(c, x);
    if (!noisy)
        return c->err->status;
    int64_t n = cfxi_tensor_numel(x);
    cfxi_random r = cfxi_rt_random_reserve(c->rt, n);
    double *p = (double *)noisy->data;
    for (int64_t i = 0; i < n; i++)
        p[i] = (p[i] - log(-log1p(-cfxi_rt_random_uniform(r, i)))) / cfxi_rt_float(c, 1);
    cfx_datum args[] = {cfx_datum_tensor(noisy), cfx_datum_int(cfxi_rt_int(c, 4))};
    cfx_tensor *soft = cfxi_rt_sub_tensor(c, CFX_OPID_softmax, args, 2);
    cfx_tensor_release(noisy);
    if (!soft)
        return c->err->status;
    cfx_status status = cfxi_rt_copy(c->rt, h.y, soft, c->err);
    cfx_tensor_release(soft);
    if (status == CFX_OK && cfxi_rt_bool(c, 2))
        status = cfxi_reduce_lanes(c, &h.y, 1, h.dim, 8, 0, harden, &h);
    return status;
}
