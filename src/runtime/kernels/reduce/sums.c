/* sums.c - sums, products, and what counts: sum, mean, prod, nansum, any, all, count_nonzero. */
#include "reduce_impl.h"

#include <math.h>

typedef union number {
    double f;
    int64_t i;
    double c[2];
} number;

/* Of what is not complex: half as large. */
typedef union sum_of {
    double f;
    int64_t i;
} sum_of;

static void add_sum(const cfxi_reduction *k, sum_of *a, const sum_of *b)
{
    if (k->compute == CFXI_I64)
        a->i = (int64_t)((uint64_t)a->i + (uint64_t)b->i);
    else
        a->f += b->f;
}

/* ---- storing ------------------------------------------------------------------------------- */

static char *result_at(const cfxi_reduction *k, int64_t i)
{
    return k->out[0]->data + i * (int64_t)cfxi_tensor_itemsize(k->out[0]);
}

static void store_number(const cfxi_reduction *k, const number *n, int64_t i)
{
    cfx_dtype dtype = (cfx_dtype)k->out[0]->dtype;
    if (k->compute == CFXI_I64)
        cfxi_tensor_store_int(dtype, result_at(k, i), n->i);
    else if (k->compute == CFXI_C128)
        cfxi_tensor_store_complex(dtype, result_at(k, i), n->c);
    else
        cfxi_tensor_store_float(dtype, result_at(k, i), n->f);
}

static void number_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    store_number(k, acc, i);
}

static void mean_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    number n = *(const number *)acc;
    if (k->compute == CFXI_C128) {
        n.c[0] /= (double)k->count;
        n.c[1] /= (double)k->count;
    } else {
        n.f /= (double)k->count;
    }
    store_number(k, &n, i);
}

static void zero_begin(const cfxi_reduction *k, void *acc)
{
    (void)k;
    memset(acc, 0, sizeof(number));
}

static void one_begin(const cfxi_reduction *k, void *acc)
{
    number n = {.c = {1, 0}};
    if (k->compute == CFXI_I64)
        n.i = 1;
    memcpy(acc, &n, sizeof n);
}

/* ---- sums ---------------------------------------------------------------------------------- */

/* `by` is 0 if all elements go into one accumulator, 1 if each has its own. */
static void add_all(const cfxi_reduction *k, sum_of *acc, size_t by, const void *x, int64_t n)
{
    const double *d = x;
    const int64_t *i = x;
    switch (k->compute) {
    case CFXI_F32:
        if (by)
            k->floats->add(&acc->f, x, n);
        else
            acc->f += k->floats->rows.sum(x, n);
        break;
    case CFXI_F64:
        for (int64_t at = 0; at < n; at++, acc += by)
            acc->f += d[at];
        break;
    case CFXI_I64:
        for (int64_t at = 0; at < n; at++, acc += by)
            acc->i = (int64_t)((uint64_t)acc->i + (uint64_t)i[at]);
        break;
    case CFXI_C128: break;  /* see below */
    }
}

static void sum_run(const cfxi_reduction *k, void *acc, const void *x, int64_t n, int64_t first)
{
    sum_of part = {0};  /* sums of runs are summed: the error grows with the number of runs only */
    (void)first;
    add_all(k, &part, 0, x, n);
    add_sum(k, acc, &part);
}

static void sum_row(const cfxi_reduction *k, void *acc, const void *x, int64_t n, int64_t first)
{
    (void)first;
    add_all(k, acc, 1, x, n);
}

static void sum_four(const cfxi_reduction *k, void *acc, const char *x, int64_t stride, int64_t n)
{
    if (k->compute == CFXI_F32) {
        k->floats->add_four(acc, (const float *)x, (const float *)(x + stride),
                            (const float *)(x + 2 * stride), (const float *)(x + 3 * stride), n);
        return;
    }
    for (int i = 0; i < 4; i++)
        add_all(k, acc, 1, x + i * stride, n);
}

static void sum_merge(const cfxi_reduction *k, void *acc, const void *later)
{
    add_sum(k, acc, later);
}

static void sum_begin(const cfxi_reduction *k, void *acc)
{
    (void)k;
    memset(acc, 0, sizeof(sum_of));
}

static void sum_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    number n = {.c = {0, 0}};
    memcpy(&n, acc, sizeof(sum_of));
    store_number(k, &n, i);
}

static void sum_store_mean(const cfxi_reduction *k, const void *acc, int64_t i)
{
    number n = {.f = ((const sum_of *)acc)->f};
    mean_store(k, &n, i);
}

static void complex_run(const cfxi_reduction *k, void *acc, const void *x, int64_t n,
                        int64_t first)
{
    const double *c = x;
    double part[2] = {0, 0};
    (void)k;
    (void)first;
    for (int64_t i = 0; i < n; i++) {
        part[0] += c[2 * i];
        part[1] += c[2 * i + 1];
    }
    ((number *)acc)->c[0] += part[0];
    ((number *)acc)->c[1] += part[1];
}

static void complex_row(const cfxi_reduction *k, void *acc, const void *x, int64_t n,
                        int64_t first)
{
    double *to = acc;
    (void)k;
    (void)first;
    for (int64_t i = 0; i < 2 * n; i++)
        to[i] += ((const double *)x)[i];
}

static void complex_merge(const cfxi_reduction *k, void *acc, const void *later)
{
    complex_run(k, acc, later, 1, 0);
}

static const cfxi_reducer sum_reducer = {
    sizeof(sum_of), sum_begin, sum_run, sum_row, sum_four, sum_merge, sum_store,
};
static const cfxi_reducer mean_reducer = {
    sizeof(sum_of), sum_begin, sum_run, sum_row, sum_four, sum_merge, sum_store_mean,
};
static const cfxi_reducer complex_sum_reducer = {
    sizeof(number), zero_begin, complex_run, complex_row, NULL, complex_merge, number_store,
};
static const cfxi_reducer complex_mean_reducer = {
    sizeof(number), zero_begin, complex_run, complex_row, NULL, complex_merge, mean_store,
};

/* ---- products ------------------------------------------------------------------------------ */

static void multiply(const cfxi_reduction *k, number *acc, const void *x, int64_t at)
{
    const double *c = (const double *)x + 2 * at;
    switch (k->compute) {
    case CFXI_F32: acc->f = (float)(acc->f * ((const float *)x)[at]); break;
    case CFXI_F64: acc->f *= ((const double *)x)[at]; break;
    case CFXI_I64: acc->i = (int64_t)((uint64_t)acc->i * ((const uint64_t *)x)[at]); break;
    case CFXI_C128:
        *acc = (number){.c = {acc->c[0] * c[0] - acc->c[1] * c[1],
                              acc->c[0] * c[1] + acc->c[1] * c[0]}};
    }
}

static void prod_run(const cfxi_reduction *k, void *acc, const void *x, int64_t n, int64_t first)
{
    (void)first;
    for (int64_t i = 0; i < n; i++)
        multiply(k, acc, x, i);
}

static void prod_row(const cfxi_reduction *k, void *acc, const void *x, int64_t n, int64_t first)
{
    (void)first;
    for (int64_t i = 0; i < n; i++)
        multiply(k, (number *)acc + i, x, i);
}

static void prod_merge(const cfxi_reduction *k, void *acc, const void *later)
{
    float f = (float)((const number *)later)->f;
    multiply(k, acc, k->compute == CFXI_F32 ? (const void *)&f : later, 0);
}

static const cfxi_reducer prod_reducer = {
    sizeof(number), one_begin, prod_run, prod_row, NULL, prod_merge, number_store,
};

/* ---- without NaN --------------------------------------------------------------------------- */

typedef struct counted {
    number sum;
    int64_t n;
} counted;

static void counted_begin(const cfxi_reduction *k, void *acc)
{
    (void)k;
    memset(acc, 0, sizeof(counted));
}

static void counted_add(const cfxi_reduction *k, counted *acc, const void *x, int64_t at)
{
    const double *c = (const double *)x + 2 * at;
    double f = k->compute == CFXI_F32   ? ((const float *)x)[at]
               : k->compute == CFXI_F64 ? ((const double *)x)[at]
               : k->compute == CFXI_C128 ? c[0] + c[1]
                                         : 0;
    if (f != f)
        return;
    acc->n++;
    if (k->compute == CFXI_I64) {
        acc->sum.i = (int64_t)((uint64_t)acc->sum.i + ((const uint64_t *)x)[at]);
    } else if (k->compute == CFXI_C128) {
        acc->sum.c[0] += c[0];
        acc->sum.c[1] += c[1];
    } else {
        acc->sum.f += f;
    }
}

static void counted_run(const cfxi_reduction *k, void *acc, const void *x, int64_t n,
                        int64_t first)
{
    (void)first;
    for (int64_t i = 0; i < n; i++)
        counted_add(k, acc, x, i);
}

static void counted_row(const cfxi_reduction *k, void *acc, const void *x, int64_t n,
                        int64_t first)
{
    (void)first;
    for (int64_t i = 0; i < n; i++)
        counted_add(k, (counted *)acc + i, x, i);
}

static void counted_merge(const cfxi_reduction *k, void *acc, const void *later)
{
    counted *a = acc;
    const counted *b = later;
    a->n += b->n;
    if (k->compute == CFXI_I64) {
        a->sum.i = (int64_t)((uint64_t)a->sum.i + (uint64_t)b->sum.i);
    } else {
        a->sum.f += b->sum.f;
        if (k->compute == CFXI_C128)
            a->sum.c[1] += b->sum.c[1];
    }
}

static void nanmean_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    const counted *a = acc;
    number n = a->sum;
    n.f /= (double)a->n;
    if (k->compute == CFXI_C128)
        n.c[1] /= (double)a->n;
    store_number(k, &n, i);
}

static const cfxi_reducer nansum_reducer = {
    sizeof(counted), counted_begin, counted_run, counted_row, NULL, counted_merge, number_store,
};
static const cfxi_reducer nanmean_reducer = {
    sizeof(counted), counted_begin, counted_run, counted_row, NULL, counted_merge, nanmean_store,
};

/* ---- what is not zero ---------------------------------------------------------------------- */

static bool is_nonzero(cfxi_run_type k, const void *x, int64_t at)
{
    switch (k) {
    case CFXI_F32: return ((const float *)x)[at] != 0;
    case CFXI_F64: return ((const double *)x)[at] != 0;
    case CFXI_I64: return ((const int64_t *)x)[at] != 0;
    case CFXI_C128: break;
    }
    return ((const double *)x)[2 * at] != 0 || ((const double *)x)[2 * at + 1] != 0;
}

static void nonzero_run(const cfxi_reduction *k, void *acc, const void *x, int64_t n,
                        int64_t first)
{
    int64_t count = 0;
    (void)first;
    for (int64_t i = 0; i < n; i++)
        count += is_nonzero(k->compute, x, i);
    *(int64_t *)acc += count;
}

static void nonzero_row(const cfxi_reduction *k, void *acc, const void *x, int64_t n,
                        int64_t first)
{
    (void)first;
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)acc)[i] += is_nonzero(k->compute, x, i);
}

static void nonzero_begin(const cfxi_reduction *k, void *acc)
{
    (void)k;
    *(int64_t *)acc = 0;
}

static void nonzero_merge(const cfxi_reduction *k, void *acc, const void *later)
{
    (void)k;
    *(int64_t *)acc += *(const int64_t *)later;
}

static void count_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    cfxi_tensor_store_int((cfx_dtype)k->out[0]->dtype, result_at(k, i), *(const int64_t *)acc);
}

static void any_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    *result_at(k, i) = *(const int64_t *)acc != 0;
}

static void all_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    *result_at(k, i) = *(const int64_t *)acc == k->count;
}

static const cfxi_reducer count_reducer = {
    sizeof(int64_t), nonzero_begin, nonzero_run, nonzero_row, NULL, nonzero_merge, count_store,
};
static const cfxi_reducer any_reducer = {
    sizeof(int64_t), nonzero_begin, nonzero_run, nonzero_row, NULL, nonzero_merge, any_store,
};
static const cfxi_reducer all_reducer = {
    sizeof(int64_t), nonzero_begin, nonzero_run, nonzero_row, NULL, nonzero_merge, all_store,
};

/* ---- rules --------------------------------------------------------------------------------- */

static cfx_status reduced(cfxi_call *c, cfx_dtype dtype, bool empty_is_all)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, empty_is_all, &mask));
    return cfxi_reduce_reduced_result(c, 0, dtype, x, mask, cfxi_rt_bool(c, 2));
}

static cfx_dtype sum_dtype(const cfxi_call *c, size_t arg)
{
    cfx_dtype dtype = (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype;
    bool counts = !cfx_dtype_is_float(dtype) && !cfx_dtype_is_complex(dtype);
    return cfxi_rt_dtype_or(c, arg, counts ? CFX_DTYPE_INT64 : dtype);
}

cfx_status cfxi_rule_sum(cfxi_call *c) { return reduced(c, sum_dtype(c, 3), true); }

cfx_status cfxi_rule_nansum(cfxi_call *c)
{
    if (cfx_dtype_is_complex((cfx_dtype)cfxi_rt_tensor(c, 0)->dtype))
        return cfxi_fail(c, CFX_E_SHAPE, "nansum on CPU does not support complex inputs");
    return reduced(c, sum_dtype(c, 3), true);
}

cfx_status cfxi_rule_mean(cfxi_call *c)
{
    cfx_dtype dtype = cfxi_rt_dtype_or(c, 3, (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype);
    if (!cfx_dtype_is_float(dtype) && !cfx_dtype_is_complex(dtype))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "could not infer output dtype. %s dtype must be either a floating point "
                         "or complex dtype. Got: %s", cfxi_rt_is_none(c, 3) ? "Input" : "Optional",
                         cfx_dtype_name(dtype));
    return reduced(c, dtype, true);
}

cfx_status cfxi_rule_nanmean(cfxi_call *c)
{
    cfx_dtype dtype = (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype;
    if (!cfx_dtype_is_float(dtype) && !cfx_dtype_is_complex(dtype))
        return cfxi_fail(c, CFX_E_SHAPE, "expected input to have floating point or complex dtype "
                         "but got %s", cfx_dtype_name(dtype));
    return reduced(c, cfxi_rt_dtype_or(c, 3, dtype), true);
}

cfx_status cfxi_rule_any(cfxi_call *c)
{
    bool bytes = cfxi_rt_tensor(c, 0)->dtype == CFX_DTYPE_UINT8;
    return reduced(c, bytes ? CFX_DTYPE_UINT8 : CFX_DTYPE_BOOL, false);
}

cfx_status cfxi_rule_count_nonzero(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, true, &mask));
    return cfxi_reduce_reduced_result(c, 0, CFX_DTYPE_INT64, x, mask, false);
}

/* ---- kernels ------------------------------------------------------------------------------- */

static cfx_status reduce_as(cfxi_call *c, const cfxi_reducer *reducer, cfx_dtype compute,
                            bool empty_is_all)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, empty_is_all, &mask));
    cfxi_reduction k = {.reducer = reducer, .compute = cfxi_reduce_run_type_of(compute),
                        .out = {cfxi_rt_result_at(c, 0)}};
    return cfxi_reduce(c, x, mask, &k);
}

/* Elements are converted to the type of the result first. */
static cfx_status reduce_to_result(cfxi_call *c, const cfxi_reducer *reducer)
{
    return reduce_as(c, reducer, (cfx_dtype)cfxi_rt_result_at(c, 0)->dtype, true);
}

static bool gives_complex(const cfxi_call *c)
{
    return cfx_dtype_is_complex((cfx_dtype)cfxi_rt_result_at(c, 0)->dtype);
}

cfx_status cfxi_kernel_sum(cfxi_call *c)
{
    return reduce_to_result(c, gives_complex(c) ? &complex_sum_reducer : &sum_reducer);
}
cfx_status cfxi_kernel_mean(cfxi_call *c)
{
    return reduce_to_result(c, gives_complex(c) ? &complex_mean_reducer : &mean_reducer);
}
cfx_status cfxi_kernel_prod(cfxi_call *c) { return reduce_to_result(c, &prod_reducer); }
cfx_status cfxi_kernel_nansum(cfxi_call *c) { return reduce_to_result(c, &nansum_reducer); }
cfx_status cfxi_kernel_nanmean(cfxi_call *c) { return reduce_to_result(c, &nanmean_reducer); }

static cfx_status reduce_as_it_is(cfxi_call *c, const cfxi_reducer *reducer, bool empty_is_all)
{
    return reduce_as(c, reducer, (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype, empty_is_all);
}

cfx_status cfxi_kernel_any(cfxi_call *c) { return reduce_as_it_is(c, &any_reducer, false); }
cfx_status cfxi_kernel_all(cfxi_call *c) { return reduce_as_it_is(c, &all_reducer, false); }
cfx_status cfxi_kernel_count_nonzero(cfxi_call *c)
{
    return reduce_as_it_is(c, &count_reducer, true);
}
