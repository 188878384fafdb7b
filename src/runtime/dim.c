/* dim.c - sizes that are expressions of symbols. */
#include "runtime_impl.h"

static int64_t overflow(cfx_error *err)
{
    cfx_error_set(err, CFX_E_SHAPE, "a size that does not fit in 64 bits");
    return CFX_DIM_UNKNOWN;
}

int64_t cfx_dim_add(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    int64_t sum;
    (void)dims;
    return __builtin_add_overflow(a, b, &sum) ? overflow(err) : sum;
}

int64_t cfx_dim_sub(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    int64_t difference;
    (void)dims;
    return __builtin_sub_overflow(a, b, &difference) ? overflow(err) : difference;
}

int64_t cfx_dim_mul(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    int64_t product;
    (void)dims;
    return __builtin_mul_overflow(a, b, &product) ? overflow(err) : product;
}

int64_t cfx_dim_div(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    (void)dims;
    if (b == 0) {
        cfx_error_set(err, CFX_E_VALUE, "a size divided by zero");
        return CFX_DIM_UNKNOWN;
    }
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

bool cfx_dim_expect_eq(cfx_dims *dims, int64_t a, int64_t b)
{
    (void)dims;
    return a == b;
}

int64_t cfx_dims_fresh(cfx_dims *dims, cfx_error *err)
{
    (void)dims;
    (void)err;
    return CFX_DIM_UNKNOWN;
}

cfx_status cfx_dims_print(const cfx_dims *dims, int64_t d, cfx_sink out, cfx_error *err)
{
    (void)dims;
    (void)d;
    (void)err;
    return out.write(out.ctx, "?", 1);
}

int64_t cfx_dim_max(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    (void)dims;
    (void)err;
    return a > b ? a : b;
}

int64_t cfx_dim_min(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    (void)dims;
    (void)err;
    return a < b ? a : b;
}

int64_t cfx_dim_mod(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    (void)dims;
    if (b == 0) {
        cfx_error_set(err, CFX_E_VALUE, "a size divided by zero");
        return CFX_DIM_UNKNOWN;
    }
    return a - b * cfx_dim_div(dims, a, b, err);
}

int cfx_dim_compare_eq(const cfx_dims *dims, int64_t a, int64_t b)
{
    (void)dims;
    return a == b;
}

int cfx_dim_compare_lt(const cfx_dims *dims, int64_t a, int64_t b)
{
    (void)dims;
    return a < b;
}

bool cfx_dim_expect_le(cfx_dims *dims, int64_t a, int64_t b)
{
    (void)dims;
    return a <= b;
}
