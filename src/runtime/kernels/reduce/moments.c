/* moments.c - variance and standard deviation, with the mean if asked for; logsumexp. */
#include "runtime/kernels/elementwise/elementwise_impl.h"
#include "reduce_impl.h"

#include <math.h>

/* ---- variance ------------------------------------------------------------------------------ */

typedef struct moments {
    double mean[2];    /* real, imaginary */
    double squares;    /* sum of squared distances from the mean */
    double n;
} moments;

static void moments_begin(const cfxi_reduction *k, void *acc)
{
    (void)k;
    memset(acc, 0, sizeof(moments));
}

/* Chan's formula: exact up to rounding, whatever the means are. */
static void join(moments *a, const moments *b)
{
    if (b->n == 0)
        return;
    double n = a->n + b->n;
    double share = a->n * b->n / n;
    for (int i = 0; i < 2; i++) {
        double d = b->mean[i] - a->mean[i];
        if (b->mean[i] == a->mean[i])
            continue;  /* infinities too: their difference says nothing */
        a->squares += d * d * share;
        a->mean[i] += d * (b->n / n);
    }
    a->squares += b->squares;
    a->n = n;
}

/* Doubles, `parts` of them for each element. */
static void double_moments(const double *x, int64_t n, int parts, moments *m)
{
    *m = (moments){.n = (double)n};
    for (int p = 0; p < parts; p++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += x[i * parts + p];
        m->mean[p] = sum / (double)n;
        for (int64_t i = 0; i < n; i++) {
            double d = x[i * parts + p] - m->mean[p];
            m->squares += d * d;
        }
    }
}

static void moments_run(const cfxi_reduction *k, void *acc, const void *x, int64_t n,
                        int64_t first)
{
    moments m = {.n = (double)n};
    (void)first;
    if (k->compute == CFXI_F32) {
        m.mean[0] = k->floats->rows.sum(x, n) / (double)n;
        m.squares = k->floats->spread(x, n, m.mean[0]);
    } else {
        double_moments(x, n, k->compute == CFXI_C128 ? 2 : 1, &m);
    }
    join(acc, &m);
}

static inline void moments_step(moments *m, int part, double x, double share)
{
    double d = x - m->mean[part];
    m->mean[part] += d * share;
    m->squares += d * (x - m->mean[part]);
}

/* Welford's step: every accumulator of a row has seen as many. */
static void moments_row(const cfxi_reduction *k, void *acc, const void *x, int64_t n,
                        int64_t first)
{
    moments *m = acc;
    double count = m->n + 1;
    double share = 1 / count;
    (void)first;
    for (int64_t i = 0; i < n; i++) {
        if (k->compute == CFXI_F32) {
            moments_step(m + i, 0, ((const float *)x)[i], share);
        } else if (k->compute == CFXI_F64) {
            moments_step(m + i, 0, ((const double *)x)[i], share);
        } else {
            moments_step(m + i, 0, ((const double *)x)[2 * i], share);
            moments_step(m + i, 1, ((const double *)x)[2 * i + 1], share);
        }
        m[i].n = count;
    }
}

static void moments_merge(const cfxi_reduction *k, void *acc, const void *later)
{
    (void)k;
    join(acc, later);
}

static void store_at(const cfx_tensor *t, int64_t i, double f)
{
    cfxi_tensor_store_float((cfx_dtype)t->dtype, t->data + i * (int64_t)cfxi_tensor_itemsize(t), f);
}

static double variance(const cfxi_reduction *k, const moments *m)
{
    double freedom = (double)k->count - k->number;
    return m->squares / (freedom > 0 ? freedom : 0);
}

static void store_mean(const cfxi_reduction *k, const moments *m, int64_t i)
{
    const cfx_tensor *t = k->out[1];
    if (!t)
        return;
    double mean[2] = {m->n > 0 ? m->mean[0] : NAN, m->mean[1]};
    cfxi_tensor_store_complex((cfx_dtype)t->dtype, t->data + i * (int64_t)cfxi_tensor_itemsize(t),
                              mean);
}

static void var_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    store_at(k->out[0], i, variance(k, acc));
    store_mean(k, acc, i);
}

static void std_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    store_at(k->out[0], i, sqrt(variance(k, acc)));
    store_mean(k, acc, i);
}

static const cfxi_reducer var_reducer = {
    sizeof(moments), moments_begin, moments_run, moments_row, NULL, moments_merge, var_store,
};
static const cfxi_reducer std_reducer = {
    sizeof(moments), moments_begin, moments_run, moments_row, NULL, moments_merge, std_store,
};

static cfx_dtype real_of(cfx_dtype dtype)
{
    return dtype == CFX_DTYPE_COMPLEX64    ? CFX_DTYPE_FLOAT32
           : dtype == CFX_DTYPE_COMPLEX128 ? CFX_DTYPE_FLOAT64
                                           : dtype;
}

/* (self, dim, unbiased, keepdim, correction), the last only of rows that have it */
cfx_status cfxi_rule_var(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_dtype dtype = (cfx_dtype)x->dtype;
    uint32_t mask;
    if (!cfx_dtype_is_float(dtype) && !cfx_dtype_is_complex(dtype))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "std and var only support floating point and complex dtypes");
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, true, &mask));
    return cfxi_reduce_reduced_result(c, 0, real_of(dtype), x, mask, cfxi_rt_bool(c, 3));
}

cfx_status cfxi_rule_var_mean(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    CFX_TRY(cfxi_rule_var(c));
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, true, &mask));
    return cfxi_reduce_reduced_result(c, 1, (cfx_dtype)x->dtype, x, mask, cfxi_rt_bool(c, 3));
}

static double correction(const cfxi_call *c)
{
    bool has = c->op != CFX_OPID_var_dim && c->op != CFX_OPID_std_dim;
    if (has && !cfxi_rt_is_none(c, 4))
        return cfxi_rt_scalar(c, 4);
    return cfxi_rt_is_none(c, 2) || cfxi_rt_bool(c, 2);
}

static cfx_status spread(cfxi_call *c, const cfxi_reducer *reducer, bool with_mean)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, true, &mask));
    cfxi_reduction k = {
        .reducer = reducer,
        .compute = cfxi_reduce_run_type_of((cfx_dtype)x->dtype),
        .out = {cfxi_rt_result_at(c, 0), with_mean ? cfxi_rt_result_at(c, 1) : NULL},
        .number = correction(c)};
    return cfxi_reduce(c, x, mask, &k);
}

cfx_status cfxi_kernel_var(cfxi_call *c) { return spread(c, &var_reducer, false); }
cfx_status cfxi_kernel_std(cfxi_call *c) { return spread(c, &std_reducer, false); }
cfx_status cfxi_kernel_var_dim(cfxi_call *c) { return spread(c, &var_reducer, false); }
cfx_status cfxi_kernel_std_dim(cfxi_call *c) { return spread(c, &std_reducer, false); }
cfx_status cfxi_kernel_var_mean(cfxi_call *c) { return spread(c, &var_reducer, true); }
cfx_status cfxi_kernel_std_mean(cfxi_call *c) { return spread(c, &std_reducer, true); }

/* ---- logsumexp ----------------------------------------------------------------------------- */

/* Log of a sum of exponentials, kept as (most, sum) = log sum exp(x - most): nothing overflows.
 * Of a complex number `most` is the greatest real part. */
typedef struct exponentials {
    double most;
    double sum[2];
} exponentials;

static void exp_begin(const cfxi_reduction *k, void *acc)
{
    (void)k;
    *(exponentials *)acc = (exponentials){.most = -INFINITY};
}

static void exp_add(exponentials *e, double re, double im, bool is_complex)
{
    if (re > e->most || (re != re && e->most == e->most)) {
        double scale = e->most == -INFINITY ? 0 : exp(e->most - re);
        e->sum[0] *= scale;
        e->sum[1] *= scale;
        e->most = re;
    }
    if (re == -INFINITY)
        return;
    double size = re == e->most && re == re ? 1 : exp(re - e->most);
    e->sum[0] += is_complex ? size * cos(im) : size;
    if (is_complex)
        e->sum[1] += size * sin(im);
}

static void exp_element(const cfxi_reduction *k, exponentials *e, const void *x, int64_t i)
{
    if (k->compute == CFXI_F32)
        exp_add(e, ((const float *)x)[i], 0, false);
    else if (k->compute == CFXI_F64)
        exp_add(e, ((const double *)x)[i], 0, false);
    else
        exp_add(e, ((const double *)x)[2 * i], ((const double *)x)[2 * i + 1], true);
}

static void exp_join(exponentials *a, exponentials b)
{
    if (b.most > a->most || b.most != b.most) {
        exponentials swap = *a;
        *a = b;
        b = swap;
    }
    double scale = b.most == -INFINITY ? 0 : b.most == a->most ? 1 : exp(b.most - a->most);
    a->sum[0] += b.sum[0] * scale;
    a->sum[1] += b.sum[1] * scale;
}

/* n <= CFXI_RUN floats at once. */
static void exp_floats(const cfxi_reduction *k, exponentials *e, const float *x, int64_t n)
{
    float most = k->floats->most(x, n);
    if (isinf(most) || most != most) {
        for (int64_t i = 0; i < n; i++)
            exp_element(k, e, x, i);
        return;
    }
    exp_join(e, (exponentials){most, {k->floats->exponentials(NULL, x, n, 1, most), 0}});
}

static void exp_run(const cfxi_reduction *k, void *acc, const void *x, int64_t n, int64_t first)
{
    (void)first;
    if (k->compute == CFXI_F32) {
        exp_floats(k, acc, x, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        exp_element(k, acc, x, i);
}

static void exp_row(const cfxi_reduction *k, void *acc, const void *x, int64_t n, int64_t first)
{
    (void)first;
    for (int64_t i = 0; i < n; i++)
        exp_element(k, (exponentials *)acc + i, x, i);
}

static void exp_merge(const cfxi_reduction *k, void *acc, const void *later)
{
    (void)k;
    exp_join(acc, *(const exponentials *)later);
}

static void exp_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    const exponentials *e = acc;
    const cfx_tensor *t = k->out[0];
    double out[2] = {e->most + log(hypot(e->sum[0], e->sum[1])), 0};
    if (k->compute == CFXI_C128)
        out[1] = atan2(e->sum[1], e->sum[0]);
    cfxi_tensor_store_complex((cfx_dtype)t->dtype, t->data + i * (int64_t)cfxi_tensor_itemsize(t),
                              out);
}

static const cfxi_reducer exp_reducer = {
    sizeof(exponentials), exp_begin, exp_run, exp_row, NULL, exp_merge, exp_store,
};

cfx_status cfxi_rule_logsumexp(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_dtype dtype = (cfx_dtype)x->dtype;
    uint32_t mask;
    if (!cfx_dtype_is_float(dtype) && !cfx_dtype_is_complex(dtype))
        dtype = CFX_DTYPE_FLOAT32;
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, true, &mask));
    return cfxi_reduce_reduced_result(c, 0, dtype, x, mask, cfxi_rt_bool(c, 2));
}

cfx_status cfxi_kernel_logsumexp(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, true, &mask));
    cfxi_reduction k = {.reducer = &exp_reducer,
                        .compute =
                            cfxi_reduce_run_type_of((cfx_dtype)cfxi_rt_result_at(c, 0)->dtype),
                        .out = {cfxi_rt_result_at(c, 0)}};
    return cfxi_reduce(c, x, mask, &k);
}
