/* pooling_backward.c - the gradient of max pooling: elements go back to where the maximum was. */
#include "runtime/spatial.h"

enum { GRAD, INPUT, INDICES = 7 };

static size_t plane_dims(const cfxi_call *c)
{
    return c->op == CFX_OPID_max_pool3d_with_indices_backward ? 3 : 2;
}

cfx_status cfxi_rule_max_pool_backward(cfxi_call *c)
{
    const cfx_tensor *g = cfxi_rt_tensor(c, GRAD);
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_tensor *indices = cfxi_rt_tensor(c, INDICES);
    const size_t n = plane_dims(c);
    if (!cfx_dtype_is_float((cfx_dtype)x->dtype) || g->dtype != x->dtype)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "the gradient and the input must be of the same float type");
    if (indices->dtype != CFX_DTYPE_INT64)
        return cfxi_fail(c, CFX_E_SHAPE, "expected dtype int64 for `indices` but got dtype %s",
                         cfx_dtype_name((cfx_dtype)indices->dtype));
    if (x->ndim != n + 1 && x->ndim != n + 2)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected %zuD or %zuD (batch mode) tensor, but got input "
                         "with sizes: [%s]", n + 1, n + 2, cfxi_rt_shape_of(x).text);
    bool fits = g->ndim == x->ndim && indices->ndim == x->ndim;
    for (size_t d = 0; fits && d < x->ndim; d++)
        fits = cfxi_rt_same_size(c, g->size[d], indices->size[d]) &&
               (d + n >= x->ndim || cfxi_rt_same_size(c, g->size[d], x->size[d]));
    if (!fits)
        return cfxi_fail(c, CFX_E_SHAPE, "the gradient and the indices must have the sizes of the "
                         "pooled input, and so as many planes as [%s]", cfxi_rt_shape_of(x).text);
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim));
    if (cfxi_rt_prefers_channels_last(x))
        cfxi_rt_result_channels_last(c, 0);
    return CFX_OK;
}

typedef struct planes {
    cfx_dtype type;  /* float32 or float64 */
    const char *g;
    const int64_t *indices;
    char *dx;
    int64_t in;      /* elements of a plane of the input */
    int64_t out;     /* of the gradient */
    atomic_bool outside;
} planes;

static void some_planes(void *ctx, int64_t begin, int64_t end)
{
    planes *s = ctx;
    const int64_t item = (int64_t)cfx_dtype_size(s->type);
    for (int64_t p = begin; p < end; p++) {
        char *dx = s->dx + p * s->in * item;
        memset(dx, 0, (size_t)(s->in * item));
        for (int64_t i = p * s->out; i < (p + 1) * s->out; i++) {
            const int64_t at = s->indices[i];
            if (at < 0 || at >= s->in)
                atomic_store(&s->outside, true);
            else if (s->type == CFX_DTYPE_FLOAT32)
                ((float *)dx)[at] += ((const float *)s->g)[i];
            else
                ((double *)dx)[at] += ((const double *)s->g)[i];
        }
    }
}

static cfx_status back(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)x->dtype);
    planes s = {.type = type, .in = 1, .out = 1};
    int64_t count = 1;
    for (size_t d = 0; d < x->ndim; d++) {
        const bool plane = d + plane_dims(c) >= x->ndim;
        s.in *= plane ? x->size[d] : 1;
        s.out *= plane ? cfxi_rt_tensor(c, GRAD)->size[d] : 1;
        count *= plane ? 1 : x->size[d];
    }
    cfx_tensor *g = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, GRAD), type);
    cfx_tensor *at = g ? cfxi_rt_contiguous(c, cfxi_rt_tensor(c, INDICES), CFX_DTYPE_INT64) : NULL;
    cfx_tensor *dx = at ? cfxi_rt_work(c, 0, type, true) : NULL;
    cfx_status status = dx ? CFX_OK : c->err->status;
    if (dx) {
        s.g = g->data;
        s.indices = (const int64_t *)at->data;
        s.dx = dx->data;
        cfxi_rt_parallel(c->rt, count, 1 + 16384 / (s.in + 1), some_planes, &s);
        if (atomic_load(&s.outside))
            status = cfxi_fail(c, CFX_E_INDEX, "an index is outside of its plane of %lld elements",
                               (long long)s.in);
        status = cfxi_rt_work_done(c, 0, dx, status);
    }
    cfx_tensor_release(at);
    cfx_tensor_release(g);
    return status;
}

cfx_status cfxi_kernel_max_pool2d_with_indices_backward(cfxi_call *c) { return back(c); }
cfx_status cfxi_kernel_max_pool3d_with_indices_backward(cfxi_call *c) { return back(c); }
