/* windows.c - windows of signals: Hann, Hamming, Kaiser.
 *
 * A window of n is symmetric; a periodic one is the symmetric one of n + 1 without its last number.
 */
#include "runtime/kernels/elementwise/blocks.h"
#include "runtime/view_impl.h"

#include <math.h>

enum { LENGTH, PERIODIC, FIRST };

/* How many numbers a row takes between `periodic` and `dtype`. */
static size_t extra(cfx_operator op)
{
    return op == CFX_OPID_hamming_window ? 2 : op == CFX_OPID_kaiser_window;
}

cfx_status cfxi_rule_window(cfxi_call *c)
{
    const size_t type = FIRST + extra(c->op);
    const cfx_dtype dtype = cfxi_rt_dtype_or(c, type, CFX_DTYPE_FLOAT32);
    const int64_t length = cfxi_rt_int(c, LENGTH);
    CFX_TRY(cfxi_rt_check_device(c, type + 2));
    if (!cfx_dtype_is_float(dtype))
        return cfxi_fail(c, CFX_E_SHAPE, "expected a floating point dtype, got %s",
                         cfx_dtype_name(dtype));
    if (length < 0 && !cfx_dim_is_symbol(length))
        return cfxi_fail(c, CFX_E_SHAPE, "expected a non-negative window_length, got %lld",
                         (long long)length);
    return cfxi_rt_result(c, 0, dtype, &length, 1);
}

/* Number k of the symmetric window of n. */
static double raised_cosine(int64_t k, int64_t n, double alpha, double beta)
{
    return alpha - beta * cos(2 * CFXI_PI * (double)k / (double)(n - 1));
}

static double kaiser(int64_t k, int64_t n, double beta)
{
    const double x = 2 * (double)k / (double)(n - 1) - 1;
    return cfxi_elementwise_i0(beta * sqrt(1 - x * x)) / cfxi_elementwise_i0(beta);
}

static cfx_status fill(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    const int64_t n = y->size[0] + cfxi_rt_bool(c, PERIODIC);
    const bool hamming = c->op == CFX_OPID_hamming_window;
    for (int64_t k = 0; k < y->size[0]; k++) {
        double value = 1;
        if (y->size[0] > 1)
            value = c->op == CFX_OPID_kaiser_window
                        ? kaiser(k, n, cfxi_rt_float(c, FIRST))
                        : raised_cosine(k, n, hamming ? cfxi_rt_float(c, FIRST) : 0.5,
                                        hamming ? cfxi_rt_float(c, FIRST + 1) : 0.5);
        cfxi_tensor_store_float((cfx_dtype)y->dtype, y->data + k * y->stride[0], value);
    }
    return CFX_OK;
}

cfx_status cfxi_kernel_hann_window(cfxi_call *c) { return fill(c); }
cfx_status cfxi_kernel_hamming_window(cfxi_call *c) { return fill(c); }
cfx_status cfxi_kernel_kaiser_window(cfxi_call *c) { return fill(c); }
