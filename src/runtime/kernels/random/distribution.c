/* distribution.c - tensors of random numbers.
 *
 * Element i of a result, counted in the order of its memory, is a function of the generator's i-th
 * number: the same for any number of threads. */
#include "runtime/kernels/reduce/reduce_impl.h"

#include <math.h>

typedef enum kind {
    UNIFORM, NORMAL, LOG_NORMAL, EXPONENTIAL, GEOMETRIC, CAUCHY, INTEGER
} kind;

typedef struct draw {
    kind kind;
    cfx_tensor *y;
    cfxi_random random;
    double a;
    double b;
    int64_t low;      /* of INTEGER */
    uint64_t range;   /* 0: all 64 bits */
} draw;

/* ---- numbers ------------------------------------------------------------------------------- */

/* Uniform in [0, 1) with the digits that the type has: rounding must not give 1. */
static double uniform_for(cfx_dtype dtype, double u)
{
    double digits = dtype == CFX_DTYPE_FLOAT16    ? 0x1p11
                    : dtype == CFX_DTYPE_BFLOAT16 ? 0x1p8
                    : dtype == CFX_DTYPE_FLOAT64 || dtype == CFX_DTYPE_COMPLEX128 ? 0x1p53
                                                                                  : 0x1p24;
    return floor(u * digits) / digits;
}

static double draw_number(const draw *d, cfx_dtype dtype, int64_t i)
{
    double u =
        d->kind == NORMAL || d->kind == LOG_NORMAL ? 0 : cfxi_rt_random_uniform(d->random, i);
    switch (d->kind) {
    case UNIFORM: {
        double x = uniform_for(dtype, u) * (d->b - d->a) + d->a;
        return x >= d->b && d->a < d->b ? d->a : x;
    }
    case NORMAL: return d->a + d->b * cfxi_rt_random_normal(d->random, i);
    case LOG_NORMAL: return exp(d->a + d->b * cfxi_rt_random_normal(d->random, i));
    case EXPONENTIAL: return -log1p(-u) / d->a;
    case GEOMETRIC: return d->a >= 1 ? 1 : floor(log1p(-u) / log1p(-d->a)) + 1;
    case CAUCHY: return d->a + d->b * tan(3.14159265358979323846 * (u - 0.5));
    case INTEGER: break;
    }
    return 0;
}

static int64_t draw_integer(const draw *d, int64_t i)
{
    uint64_t bits = cfxi_rt_random_bits(d->random, i);
    if (d->range)
        bits = (uint64_t)(((unsigned __int128)bits * d->range) >> 64);
    return (int64_t)((uint64_t)d->low + bits);
}

static void draw_some(void *ctx, int64_t begin, int64_t end)
{
    const draw *d = ctx;
    cfx_dtype dtype = (cfx_dtype)d->y->dtype;
    char *at = d->y->data + begin * (int64_t)cfx_dtype_size(dtype);
    for (int64_t i = begin; i < end; i++, at += cfx_dtype_size(dtype)) {
        if (d->kind == INTEGER)
            cfxi_tensor_store_int(dtype, at, draw_integer(d, i));
        else if (!cfx_dtype_is_complex(dtype))
            cfxi_tensor_store_float(dtype, at, draw_number(d, dtype, i));
        else
            cfxi_tensor_store_complex(dtype, at, (const double[2]){draw_number(d, dtype, 2 * i),
                                                            draw_number(d, dtype, 2 * i + 1)});
    }
}

static cfx_status draw_all(cfxi_call *c, draw *d)
{
    d->y = cfxi_rt_result_at(c, 0);
    int64_t n = cfxi_tensor_numel(d->y);
    bool two = cfx_dtype_is_complex((cfx_dtype)d->y->dtype);
    if (two && d->kind == NORMAL)
        d->b *= sqrt(0.5);  /* the parts share the variance */
    d->random = cfxi_rt_random_reserve(c->rt, two ? 2 * n : n);
    cfxi_rt_parallel(c->rt, n, 2048, draw_some, d);
    return CFX_OK;
}

/* ---- rules --------------------------------------------------------------------------------- */

static cfx_status check_continuous(cfxi_call *c, cfx_dtype dtype)
{
    if (cfx_dtype_is_float(dtype) || cfx_dtype_is_complex(dtype))
        return CFX_OK;
    return cfxi_fail(c, CFX_E_UNSUPPORTED, "a continuous distribution is not implemented for %s",
                     cfx_dtype_name(dtype));
}

/* (size, dtype, ...) */
cfx_status cfxi_rule_rand(cfxi_call *c)
{
    int64_t sizes[CFX_MAX_DIMS];
    size_t n;
    cfx_dtype dtype = cfxi_rt_dtype_or(c, 1, CFX_DTYPE_FLOAT32);
    CFX_TRY(check_continuous(c, dtype));
    CFX_TRY(cfxi_rt_ints(c, 0, sizes, &n));
    return cfxi_rt_result(c, 0, dtype, sizes, n);
}

static cfx_status check_spread(cfxi_call *c, double std)
{
    if (std >= 0)
        return CFX_OK;
    return cfxi_fail(c, CFX_E_SHAPE, "normal expects std >= 0.0, but found std %g", std);
}

/* (mean, std, size, dtype, ...) */
cfx_status cfxi_rule_normal_numbers(cfxi_call *c)
{
    int64_t sizes[CFX_MAX_DIMS];
    size_t n;
    cfx_dtype dtype = cfxi_rt_dtype_or(c, 3, CFX_DTYPE_FLOAT32);
    CFX_TRY(check_continuous(c, dtype));
    CFX_TRY(check_spread(c, cfxi_rt_float(c, 1)));
    CFX_TRY(cfxi_rt_ints(c, 2, sizes, &n));
    return cfxi_rt_result(c, 0, dtype, sizes, n);
}

/* (self, dtype, ...) */
cfx_status cfxi_rule_rand_like(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_dtype dtype = cfxi_rt_dtype_or(c, 1, (cfx_dtype)x->dtype);
    CFX_TRY(check_continuous(c, dtype));
    return cfxi_rt_result_like(c, 0, dtype, x);
}

/* Whether a number is one that only a run knows: nothing can be said of it. */
static bool is_unknown(const cfxi_call *c, size_t i) { return c->args[i].symbolic; }

/* (self, the distribution's numbers): of the type and layout of self. */
cfx_status cfxi_rule_continuous(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    CFX_TRY(check_continuous(c, (cfx_dtype)x->dtype));
    if (c->op == CFX_OPID_exponential && !is_unknown(c, 1) && !(cfxi_rt_float(c, 1) > 0))
        return cfxi_fail(c, CFX_E_SHAPE, "exponential_ expects lambda > 0.0, but found lambda=%g",
                         cfxi_rt_float(c, 1));
    if (c->op == CFX_OPID_uniform && !is_unknown(c, 1) && !is_unknown(c, 2) &&
        cfxi_rt_float(c, 1) > cfxi_rt_float(c, 2))
        return cfxi_fail(c, CFX_E_SHAPE, "uniform_ expects to return a [from, to) range, but found "
                         "from=%g > to=%g", cfxi_rt_float(c, 1), cfxi_rt_float(c, 2));
    if (c->op == CFX_OPID_normal)
        CFX_TRY(check_spread(c, cfxi_rt_float(c, 2)));
    if (c->op == CFX_OPID_log_normal && !is_unknown(c, 2) && !(cfxi_rt_float(c, 2) > 0))
        return cfxi_fail(c, CFX_E_SHAPE, "log_normal_ expects std > 0.0, but found std=%g",
                         cfxi_rt_float(c, 2));
    if (c->op == CFX_OPID_cauchy && !is_unknown(c, 2) && !(cfxi_rt_float(c, 2) > 0))
        return cfxi_fail(c, CFX_E_SHAPE, "cauchy_ expects sigma > 0.0, but found sigma=%g",
                         cfxi_rt_float(c, 2));
    return cfxi_rt_result_like(c, 0, (cfx_dtype)x->dtype, x);
}

cfx_status cfxi_rule_geometric(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    double p = cfxi_rt_float(c, 1);
    if (!is_unknown(c, 1) && !(p > 0 && p < 1))
        return cfxi_fail(c, CFX_E_SHAPE, "geometric_ expects p to be in (0, 1), but got p=%g", p);
    return cfxi_rt_result_like(c, 0, (cfx_dtype)x->dtype, x);
}

/* The greatest integer that a type holds exactly; a float: with all below it. */
static double most_of(cfx_dtype dtype)
{
    switch (dtype) {
    case CFX_DTYPE_BOOL: return 1;
    case CFX_DTYPE_UINT8: return 255;
    case CFX_DTYPE_INT8: return 127;
    case CFX_DTYPE_INT16: return 32767;
    case CFX_DTYPE_INT32: return 2147483647;
    case CFX_DTYPE_FLOAT16: return 65504;
    case CFX_DTYPE_INT64: return 0x1p63;
    default: return INFINITY;
    }
}

static cfx_status check_range(cfxi_call *c, cfx_dtype dtype, int64_t low, int64_t high)
{
    if (low >= high)
        return cfxi_fail(c, CFX_E_SHAPE, "random_ expects 'from' to be less than 'to', but got "
                         "from=%lld >= to=%lld", (long long)low, (long long)high);
    double most = most_of(dtype);
    double least = dtype == CFX_DTYPE_BOOL || dtype == CFX_DTYPE_UINT8 ? 0 : -most - 1;
    if ((double)(high - 1) > most || (double)low < least)
        return cfxi_fail(c, CFX_E_SHAPE, "%s is out of bounds for %s",
                         (double)low < least ? "from" : "to - 1", cfx_dtype_name(dtype));
    return CFX_OK;
}

/* (low, high, size, dtype, ...) */
cfx_status cfxi_rule_randint(cfxi_call *c)
{
    int64_t sizes[CFX_MAX_DIMS];
    int64_t low;
    int64_t high;
    size_t n;
    cfx_dtype dtype = cfxi_rt_dtype_or(c, 3, CFX_DTYPE_INT64);
    CFX_TRY(cfxi_rt_number(c, 0, &low));
    CFX_TRY(cfxi_rt_number(c, 1, &high));
    CFX_TRY(cfxi_rt_ints(c, 2, sizes, &n));
    CFX_TRY(check_range(c, dtype, low, high));
    return cfxi_rt_result(c, 0, dtype, sizes, n);
}

/* (self, low, high, dtype, ...) */
cfx_status cfxi_rule_randint_like(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_dtype dtype = cfxi_rt_dtype_or(c, 3, (cfx_dtype)x->dtype);
    int64_t low;
    int64_t high;
    CFX_TRY(cfxi_rt_number(c, 1, &low));
    CFX_TRY(cfxi_rt_number(c, 2, &high));
    CFX_TRY(check_range(c, dtype, low, high));
    return cfxi_rt_result_like(c, 0, dtype, x);
}

/* (self, from, to): to the greatest number of the type if `to` is None. */
cfx_status cfxi_rule_random(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (cfx_dtype_is_complex((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "\"random_kernel_cpu\" not implemented for '%s'",
                         cfx_dtype_name((cfx_dtype)x->dtype));
    if (!cfxi_rt_is_none(c, 2))
        CFX_TRY(check_range(c, (cfx_dtype)x->dtype, cfxi_rt_int(c, 1), cfxi_rt_int(c, 2)));
    return cfxi_rt_result_like(c, 0, (cfx_dtype)x->dtype, x);
}

/* ---- kernels ------------------------------------------------------------------------------- */

static cfx_status draw_two(cfxi_call *c, kind what, double a, double b)
{
    draw d = {.kind = what, .a = a, .b = b};
    return draw_all(c, &d);
}

cfx_status cfxi_kernel_rand(cfxi_call *c) { return draw_two(c, UNIFORM, 0, 1); }
cfx_status cfxi_kernel_rand_like(cfxi_call *c) { return draw_two(c, UNIFORM, 0, 1); }
cfx_status cfxi_kernel_randn(cfxi_call *c) { return draw_two(c, NORMAL, 0, 1); }
cfx_status cfxi_kernel_randn_like(cfxi_call *c) { return draw_two(c, NORMAL, 0, 1); }

cfx_status cfxi_kernel_normal_numbers(cfxi_call *c)
{
    return draw_two(c, NORMAL, cfxi_rt_float(c, 0), cfxi_rt_float(c, 1));
}

#define DISTRIBUTION(id, what)                                                                     \
    cfx_status cfxi_kernel_##id(cfxi_call *c)                                                      \
    {                                                                                              \
        return draw_two(c, what, cfxi_rt_float(c, 1), cfxi_rt_float(c, 2));                        \
    }
DISTRIBUTION(uniform, UNIFORM)
DISTRIBUTION(normal, NORMAL)
DISTRIBUTION(log_normal, LOG_NORMAL)
DISTRIBUTION(cauchy, CAUCHY)
cfx_status cfxi_kernel_exponential(cfxi_call *c)
{
    return draw_two(c, EXPONENTIAL, cfxi_rt_float(c, 1), 0);
}
cfx_status cfxi_kernel_geometric(cfxi_call *c)
{
    return draw_two(c, GEOMETRIC, cfxi_rt_float(c, 1), 0);
}

static cfx_status draw_range(cfxi_call *c, int64_t low, uint64_t range)
{
    draw d = {.kind = INTEGER, .low = low, .range = range};
    return draw_all(c, &d);
}

cfx_status cfxi_kernel_randint(cfxi_call *c)
{
    return draw_range(c, cfxi_rt_int(c, 0),
                      (uint64_t)cfxi_rt_int(c, 1) - (uint64_t)cfxi_rt_int(c, 0));
}
cfx_status cfxi_kernel_randint_like(cfxi_call *c)
{
    return draw_range(c, cfxi_rt_int(c, 1),
                      (uint64_t)cfxi_rt_int(c, 2) - (uint64_t)cfxi_rt_int(c, 1));
}

cfx_status cfxi_kernel_random(cfxi_call *c)
{
    cfx_dtype dtype = (cfx_dtype)cfxi_rt_result_at(c, 0)->dtype;
    int64_t low = cfxi_rt_int(c, 1);
    if (!cfxi_rt_is_none(c, 2))
        return draw_range(c, low, (uint64_t)cfxi_rt_int(c, 2) - (uint64_t)low);
    uint64_t most = dtype == CFX_DTYPE_FLOAT16    ? 1u << 11
                    : dtype == CFX_DTYPE_BFLOAT16 ? 1u << 8
                    : dtype == CFX_DTYPE_FLOAT32  ? 1u << 24
                    : dtype == CFX_DTYPE_FLOAT64  ? UINT64_C(1) << 53
                    : dtype == CFX_DTYPE_INT64    ? (uint64_t)INT64_MAX
                                                  : (uint64_t)most_of(dtype);
    return draw_range(c, low, most - (uint64_t)low + 1);
}

/* ---- permutations -------------------------------------------------------------------------- */

cfx_status cfxi_rule_randperm(cfxi_call *c)
{
    int64_t n = cfxi_rt_int(c, 0);
    if (!cfx_dim_is_symbol(n) && n < 0)
        return cfxi_fail(c, CFX_E_SHAPE, "n must be non-negative, got %lld", (long long)n);
    return cfxi_rt_result(c, 0, cfxi_rt_dtype_or(c, 1, CFX_DTYPE_INT64), &n, 1);
}

cfx_status cfxi_kernel_randperm(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    int64_t n = y->size[0];
    size_t size;
    if (!cfxi_base_mul_size((size_t)n, sizeof(int64_t), 0, &size))
        return cfxi_base_nomem(c->err);
    int64_t *order = cfxi_rt_scratch(c->rt, size);
    if (!order)
        return cfxi_base_nomem(c->err);
    draw d = {.kind = INTEGER, .random = cfxi_rt_random_reserve(c->rt, n)};
    for (int64_t i = 0; i < n; i++) {  /* from the left: the new one changes places */
        d.range = (uint64_t)i + 1;
        int64_t at = draw_integer(&d, i);
        order[i] = i;
        order[i] = order[at];
        order[at] = i;
    }
    cfxi_reduce_store_run(c->rt->isa, CFXI_I64, order, (cfx_dtype)y->dtype, y->data,
                          (int64_t)cfxi_tensor_itemsize(y), n);
    cfxi_rt_scratch_free(c->rt, order);
    return CFX_OK;
}
