/* import_window.c - windows that move over images: what convolution and pooling have in common. */
#include "rules_impl.h"

/* A list of n positive integers, all 1 if the attribute is not there. */
static bool read_list(cfxi_import_call *c, const char *name, int n, int64_t *out)
{
    size_t have;
    const int64_t *ints = cfxi_import_ints(c, name, &have);
    if (have != 0 && have != (size_t)n)
        return cfxi_import_fail(c, CFX_E_VALUE, "'%s' has %zu numbers; it must have %d", name, have,
                                n), false;
    for (int i = 0; i < n; i++) {
        out[i] = have ? ints[i] : 1;
        if (out[i] < 1 || out[i] > INT32_MAX)
            return cfxi_import_fail(c, CFX_E_VALUE, "'%s' has %lld; it must be positive", name,
                                    (long long)out[i]), false;
    }
    return true;
}

static bool read_kernel(cfxi_import_call *c, int weight, cfxi_window *w)
{
    if (weight < 0 || cfxi_import_attribute(c, "kernel_shape"))
        return read_list(c, "kernel_shape", w->n, w->kernel);
    for (int i = 0; i < w->n; i++) {
        const cfx_var size = cfxi_import_size(c, (size_t)weight, i + 2);
        if (size.kind != CFX_VAR_INT)
            return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "the sizes of the weight are not known"),
                   false;
        w->kernel[i] = size.as.i;
    }
    return true;
}

static bool read_pads(cfxi_import_call *c, cfxi_window *w)
{
    size_t have;
    const int64_t *pads = cfxi_import_ints(c, "pads", &have);
    if (have != 0 && have != 2 * (size_t)w->n)
        return cfxi_import_fail(c, CFX_E_VALUE, "'pads' has %zu numbers; it must have %d", have,
                                2 * w->n), false;
    for (int i = 0; i < w->n; i++) {
        w->before[i] = cfx_var_int(have ? pads[i] : 0);
        w->after[i] = cfx_var_int(have ? pads[w->n + i] : 0);
        if (have && (pads[i] < 0 || pads[w->n + i] < 0 || pads[i] > INT32_MAX ||
                     pads[w->n + i] > INT32_MAX))
            return cfxi_import_fail(c, CFX_E_VALUE, "'pads' must not be negative"), false;
    }
    return true;
}

/* As much padding as gives ceil(size / stride) places. */
static void pad_same(cfxi_import_call *c, cfxi_window *w, bool upper)
{
    cfx_scope *s = c->scope;
    for (int i = 0; i < w->n; i++) {
        const int64_t step = w->stride[i];
        cfx_var total = cfx_var_int(cfxi_import_reach(w, i) - 1);
        if (step != 1) {
            const cfx_var size = cfxi_import_size(c, 0, i + 2);
            const cfx_var last = cfxi_import_over(s, cfxi_import_minus(s, size, cfx_var_int(1)),
                                                  cfx_var_int(step));
            const cfx_var all = cfxi_import_plus(s, cfxi_import_times(s, last, cfx_var_int(step)),
                                                 cfx_var_int(cfxi_import_reach(w, i)));
            total = cfxi_import_larger(s, cfxi_import_minus(s, all, size), cfx_var_int(0));
        }
        const cfx_var half = cfxi_import_over(s, total, cfx_var_int(2));
        const cfx_var rest = cfxi_import_minus(s, total, half);
        w->before[i] = upper ? half : rest;
        w->after[i] = upper ? rest : half;
    }
}

bool cfxi_import_window(cfxi_import_call *c, int weight, cfxi_window *w)
{
    const int rank = cfxi_import_need_rank(c, 0);
    if (rank < 3)
        return rank < 0 ? false
                        : (cfxi_import_fail(c, CFX_E_VALUE, "input 0 has %d dimensions; it must "
                                            "have at least 3", rank), false);
    w->n = rank - 2;
    if (!read_kernel(c, weight, w) || !read_list(c, "strides", w->n, w->stride) ||
        !read_list(c, "dilations", w->n, w->dilation) || !read_pads(c, w))
        return false;
    const bool upper = cfxi_import_is(c, "auto_pad", "NOTSET", "SAME_UPPER");
    if (upper || cfxi_import_is(c, "auto_pad", "NOTSET", "SAME_LOWER"))
        pad_same(c, w, upper);
    else if (cfxi_import_is(c, "auto_pad", "NOTSET", "VALID"))
        for (int i = 0; i < w->n; i++)
            w->before[i] = w->after[i] = cfx_var_int(0);
    return cfx_scope_ok(c->scope);
}

int64_t cfxi_import_reach(const cfxi_window *w, int i)
{
    return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

bool cfxi_import_is_symmetric(const cfxi_window *w)
{
    for (int i = 0; i < w->n; i++)
        if (w->before[i].kind != CFX_VAR_INT || w->after[i].kind != CFX_VAR_INT ||
            w->before[i].as.i != w->after[i].as.i)
            return false;
    return true;
}

cfx_var cfxi_import_window_ints(cfx_scope *s, const cfxi_window *w, const int64_t *list)
{
    return cfx_var_ints(s, list, (size_t)w->n);
}

cfx_var cfxi_import_window_padding(cfx_scope *s, const cfxi_window *w)
{
    return cfxi_import_tuple(s, w->before, (size_t)w->n);
}

cfx_var cfxi_import_padded(cfx_scope *s, cfx_var x, cfxi_window *w)
{
    if (cfxi_import_is_symmetric(w))
        return x;
    x = cfxi_import_pad_ends(s, x, w->before, w->after, w->n, cfx_var_int(0));
    for (int i = 0; i < w->n; i++)
        w->before[i] = w->after[i] = cfx_var_int(0);
    return x;
}

cfx_var cfxi_import_convolve(cfxi_import_call *c, cfx_var x, cfx_var weight, cfx_var bias,
                             cfxi_window *w)
{
    cfx_scope *s = c->scope;
    x = cfxi_import_padded(s, x, w);
    const cfx_var stride = cfxi_import_window_ints(s, w, w->stride);
    const cfx_var dilation = cfxi_import_window_ints(s, w, w->dilation);
    const cfx_var padding = cfxi_import_window_padding(s, w);
    const cfx_var groups = cfx_var_int(cfxi_import_int(c, "group", 1));
    switch (w->n) {
    case 1:
        return cfx_conv1d(s, x, weight, .bias = bias, .stride = stride, .padding = padding,
                          .dilation = dilation, .groups = groups);
    case 2:
        return cfx_conv2d(s, x, weight, .bias = bias, .stride = stride, .padding = padding,
                          .dilation = dilation, .groups = groups);
    case 3:
        return cfx_conv3d(s, x, weight, .bias = bias, .stride = stride, .padding = padding,
                          .dilation = dilation, .groups = groups);
    default:
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "convolution of %d dimensions; cfx has 1 to "
                                "3", w->n);
    }
}
