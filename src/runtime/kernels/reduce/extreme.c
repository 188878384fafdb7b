/* extreme.c - the greatest and the least: amax, max, argmax, aminmax and theirs.
 *
 * NaN wins over every number, and of equal elements the first. */
#include "reduce_impl.h"

#include <math.h>

typedef struct extreme {
    union {
        double f;
        int64_t i;
    } value;
    int64_t index;  /* -1: nothing yet */
} extreme;

/* Whether the reduction wants the least: k->number is 1 for the greatest, -1 for the least. */
static bool wants_least(const cfxi_reduction *k) { return k->number < 0; }

static void extreme_begin(const cfxi_reduction *k, void *acc)
{
    (void)k;
    *(extreme *)acc = (extreme){.index = -1};
}

/* ---- comparing ----------------------------------------------------------------------------- */

#define BEATS(least, x, best) ((least) ? (x) < (best) : (x) > (best))

static bool float_beats(bool least, double x, const extreme *best)
{
    if (best->index < 0)
        return true;
    if (x != x)
        return best->value.f == best->value.f;
    return BEATS(least, x, best->value.f);
}

static void take_float(bool least, extreme *acc, double x, int64_t index)
{
    if (float_beats(least, x, acc)) {
        acc->value.f = x;
        acc->index = index;
    }
}

static void take_int(bool least, extreme *acc, int64_t x, int64_t index)
{
    if (acc->index < 0 || BEATS(least, x, acc->value.i)) {
        acc->value.i = x;
        acc->index = index;
    }
}

static void take(const cfxi_reduction *k, extreme *acc, const void *x, int64_t at, int64_t index)
{
    bool least = wants_least(k);
    if (k->compute == CFXI_F32)
        take_float(least, acc, ((const float *)x)[at], index);
    else if (k->compute == CFXI_F64)
        take_float(least, acc, ((const double *)x)[at], index);
    else
        take_int(least, acc, ((const int64_t *)x)[at], index);
}

/* ---- runs ---------------------------------------------------------------------------------- */

/* The best of the run first, then, if it wins, where it is. */
static void take_floats(const cfxi_reduction *k, extreme *acc, const float *x, int64_t n,
                        int64_t first)
{
    float best = wants_least(k) ? k->floats->least(x, n) : k->floats->most(x, n);
    if (!float_beats(wants_least(k), best, acc))
        return;
    int64_t at = 0;
    while (best != best ? x[at] == x[at] : x[at] != best)
        at++;
    acc->value.f = best;
    acc->index = first + at;
}

static void extreme_run(const cfxi_reduction *k, void *acc, const void *x, int64_t n,
                        int64_t first)
{
    if (k->compute == CFXI_F32) {
        take_floats(k, acc, x, n, first);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        take(k, acc, x, i, first + i);
}

static void row_floats(bool least, extreme *acc, const float *x, int64_t n, int64_t first)
{
    for (int64_t i = 0; i < n; i++)
        take_float(least, acc + i, x[i], first);
}

static void extreme_row(const cfxi_reduction *k, void *acc, const void *x, int64_t n,
                        int64_t first)
{
    if (k->compute == CFXI_F32) {
        row_floats(wants_least(k), acc, x, n, first);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        take(k, (extreme *)acc + i, x, i, first);
}

static void extreme_merge(const cfxi_reduction *k, void *acc, const void *later)
{
    const extreme *b = later;
    if (b->index < 0)
        return;
    if (k->compute == CFXI_I64)
        take_int(wants_least(k), acc, b->value.i, b->index);
    else
        take_float(wants_least(k), acc, b->value.f, b->index);
}

/* ---- storing ------------------------------------------------------------------------------- */

static void store_value(const cfxi_reduction *k, const extreme *e, int64_t i)
{
    cfx_dtype dtype = (cfx_dtype)k->out[0]->dtype;
    char *at = k->out[0]->data + i * (int64_t)cfxi_tensor_itemsize(k->out[0]);
    if (k->compute == CFXI_I64)
        cfxi_tensor_store_int(dtype, at, e->value.i);
    else
        cfxi_tensor_store_float(dtype, at, e->value.f);
}

static void value_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    store_value(k, acc, i);
}

static void both_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    store_value(k, acc, i);
    ((int64_t *)k->out[1]->data)[i] = ((const extreme *)acc)->index;
}

static void index_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    ((int64_t *)k->out[0]->data)[i] = ((const extreme *)acc)->index;
}

/* ---- values alone, of floats --------------------------------------------------------------- */

static void float_begin(const cfxi_reduction *k, void *acc)
{
    *(float *)acc = wants_least(k) ? INFINITY : -INFINITY;
}

static void float_row(const cfxi_reduction *k, void *acc, const void *x, int64_t n, int64_t first)
{
    (void)first;
    if (wants_least(k))
        k->floats->least_row(acc, x, n);
    else
        k->floats->most_row(acc, x, n);
}

static void float_run(const cfxi_reduction *k, void *acc, const void *x, int64_t n, int64_t first)
{
    float best = wants_least(k) ? k->floats->least(x, n) : k->floats->most(x, n);
    float_row(k, acc, &best, 1, first);
}

static void float_merge(const cfxi_reduction *k, void *acc, const void *later)
{
    float_row(k, acc, later, 1, 0);
}

static void float_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    cfxi_tensor_store_float((cfx_dtype)k->out[0]->dtype,
                            k->out[0]->data + i * (int64_t)cfxi_tensor_itemsize(k->out[0]),
                            *(const float *)acc);
}

static const cfxi_reducer float_reducer = {
    sizeof(float), float_begin, float_run, float_row, NULL, float_merge, float_store,
};

#define REDUCER(store)                                                                             \
    {sizeof(extreme), extreme_begin, extreme_run, extreme_row, NULL, extreme_merge, store}
static const cfxi_reducer value_reducer = REDUCER(value_store);
static const cfxi_reducer both_reducer = REDUCER(both_store);
static const cfxi_reducer index_reducer = REDUCER(index_store);

/* ---- rules --------------------------------------------------------------------------------- */

static cfx_status not_complex(cfxi_call *c, const cfx_tensor *x)
{
    if (!cfx_dtype_is_complex((cfx_dtype)x->dtype))
        return CFX_OK;
    return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s, which has no order",
                     cfx_dtype_name((cfx_dtype)x->dtype));
}

static bool is_empty(const cfx_tensor *x)
{
    for (size_t d = 0; d < x->ndim; d++)
        if (x->size[d] == 0)
            return true;
    return false;
}

static cfx_status not_empty(cfxi_call *c, const cfx_tensor *x, bool all, uint32_t mask,
                            cfx_status status)
{
    const char *name = cfx_operator_name(c->op);
    if (all && is_empty(x))
        return cfxi_fail(c, status, "%s(): Expected reduction dim to be specified for input.numel()"
                         " == 0. Specify the reduction dim with the 'dim' argument.", name);
    return cfxi_reduce_reduced_not_empty(c, x, mask, name);
}

cfx_status cfxi_rule_amax(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    size_t n;
    CFX_TRY(not_complex(c, x));
    cfxi_rt_list(c, 1, &n);
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, true, &mask));
    CFX_TRY(not_empty(c, x, n == 0, mask, CFX_E_SHAPE));
    return cfxi_reduce_reduced_result(c, 0, (cfx_dtype)x->dtype, x, mask, cfxi_rt_bool(c, 2));
}

cfx_status cfxi_rule_max(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    CFX_TRY(not_complex(c, x));
    CFX_TRY(not_empty(c, x, true, 0, CFX_E_SHAPE));
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, NULL, 0);
}

/* Values and where they are, along one dimension. */
cfx_status cfxi_rule_max_dim(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    CFX_TRY(not_complex(c, x));
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, false, &mask));
    CFX_TRY(not_empty(c, x, false, mask, CFX_E_INDEX));
    CFX_TRY(cfxi_reduce_reduced_result(c, 0, (cfx_dtype)x->dtype, x, mask, cfxi_rt_bool(c, 2)));
    return cfxi_reduce_reduced_result(c, 1, CFX_DTYPE_INT64, x, mask, cfxi_rt_bool(c, 2));
}

cfx_status cfxi_rule_aminmax(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    CFX_TRY(not_complex(c, x));
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, false, &mask));
    if (cfxi_rt_is_none(c, 1) && is_empty(x))
        return cfxi_fail(c, CFX_E_SHAPE, "cannot compute aminmax over an empty dimension as the "
                         "operation has no identity.");
    CFX_TRY(not_empty(c, x, false, mask, CFX_E_INDEX));
    CFX_TRY(cfxi_reduce_reduced_result(c, 0, (cfx_dtype)x->dtype, x, mask, cfxi_rt_bool(c, 2)));
    return cfxi_reduce_reduced_result(c, 1, (cfx_dtype)x->dtype, x, mask, cfxi_rt_bool(c, 2));
}

cfx_status cfxi_rule_argmax(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    if (x->dtype == CFX_DTYPE_BOOL || cfx_dtype_is_complex((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_SHAPE, "does not support %s input",
                         x->dtype == CFX_DTYPE_BOOL ? "bool" : "complex");
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, false, &mask));
    CFX_TRY(not_empty(c, x, cfxi_rt_is_none(c, 1), mask, CFX_E_INDEX));
    return cfxi_reduce_reduced_result(c, 0, CFX_DTYPE_INT64, x, mask, cfxi_rt_bool(c, 2));
}

/* ---- kernels ------------------------------------------------------------------------------- */

static cfx_status find(cfxi_call *c, const cfx_tensor *x, uint32_t mask,
                       const cfxi_reducer *reducer, size_t result, int sign)
{
    cfxi_reduction k = {.reducer = reducer,
                        .compute = cfxi_reduce_run_type_of((cfx_dtype)x->dtype),
                        .out = {cfxi_rt_result_at(c, result)},
                        .number = sign};
    if (reducer == &value_reducer && k.compute == CFXI_F32)
        k.reducer = &float_reducer;
    if (reducer == &both_reducer)
        k.out[1] = cfxi_rt_result_at(c, 1);
    return cfxi_reduce(c, x, mask, &k);
}

static cfx_status values(cfxi_call *c, int sign)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, true, &mask));
    return find(c, x, mask, &value_reducer, 0, sign);
}

cfx_status cfxi_kernel_amax(cfxi_call *c) { return values(c, 1); }
cfx_status cfxi_kernel_amin(cfxi_call *c) { return values(c, -1); }
cfx_status cfxi_kernel_max(cfxi_call *c)
{
    return find(c, cfxi_rt_tensor(c, 0), ~0u, &value_reducer, 0, 1);
}
cfx_status cfxi_kernel_min(cfxi_call *c)
{
    return find(c, cfxi_rt_tensor(c, 0), ~0u, &value_reducer, 0, -1);
}

static cfx_status values_and_indices(cfxi_call *c, int sign)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, false, &mask));
    return find(c, x, mask, &both_reducer, 0, sign);
}

cfx_status cfxi_kernel_max_dim(cfxi_call *c) { return values_and_indices(c, 1); }
cfx_status cfxi_kernel_min_dim(cfxi_call *c) { return values_and_indices(c, -1); }

cfx_status cfxi_kernel_aminmax(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, false, &mask));
    CFX_TRY(find(c, x, mask, &value_reducer, 0, -1));
    return find(c, x, mask, &value_reducer, 1, 1);
}

/* Over everything, the index counts the elements in their logical order. */
static cfx_status indices(cfxi_call *c, int sign)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    uint32_t mask;
    CFX_TRY(cfxi_reduce_reduced_dims(c, 1, x->ndim, false, &mask));
    if (!cfxi_rt_is_none(c, 1))
        return find(c, x, mask, &index_reducer, 0, sign);
    cfx_tensor *flat = cfxi_rt_contiguous(c, x, (cfx_dtype)x->dtype);
    if (!flat)
        return c->err->status;
    cfx_status status = find(c, flat, mask, &index_reducer, 0, sign);
    cfx_tensor_release(flat);
    return status;
}

cfx_status cfxi_kernel_argmax(cfxi_call *c) { return indices(c, 1); }
cfx_status cfxi_kernel_argmin(cfxi_call *c) { return indices(c, -1); }
