/* comparison_sums.c - sums over the elements of two tensors, and what they say. */
#include "comparison_impl.h"
#include "tensor/tensor_impl.h"

#include <math.h>

static inline void add_element(cfxi_sums *s, double x, double y)
{
    const double d = x - y;
    if (!isfinite(d)) {  /* also where both are the same infinity */
        s->odd++;
        return;
    }
    s->n++;
    s->aa += x * x;
    s->bb += y * y;
    s->ab += x * y;
    s->dd += d * d;
    s->most_a = fmax(s->most_a, fabs(x));
    s->most_b = fmax(s->most_b, fabs(y));
    s->most_d = fmax(s->most_d, fabs(d));
}

static void add_float32(cfxi_sums *s, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        add_element(s, (double)a[i], (double)b[i]);
}

/* The elements along the last dimension. */
static void add_line(cfxi_sums *s, const cfx_tensor *a, const char *at, const cfx_tensor *b,
                     const char *bt)
{
    const size_t last = a->ndim - 1;
    for (int64_t i = 0; i < a->size[last]; i++) {
        add_element(s, cfxi_tensor_load_float(a->dtype, at), cfxi_tensor_load_float(b->dtype, bt));
        at += a->stride[last];
        bt += b->stride[last];
    }
}

static void add_strided(cfxi_sums *s, const cfx_tensor *a, const cfx_tensor *b)
{
    int64_t index[CFX_MAX_DIMS] = {0};
    const char *at = cfx_tensor_data(a);
    const char *bt = cfx_tensor_data(b);
    if (a->ndim == 0) {
        add_element(s, cfxi_tensor_load_float(a->dtype, at), cfxi_tensor_load_float(b->dtype, bt));
        return;
    }
    for (size_t d = 0; d < a->ndim;) {
        add_line(s, a, at, b, bt);
        for (d = 1; d < a->ndim; d++) {  /* the next line; d == ndim: it was the last */
            const size_t k = a->ndim - 1 - d;
            at += a->stride[k];
            bt += b->stride[k];
            if (++index[k] < a->size[k])
                break;
            at -= a->stride[k] * a->size[k];
            bt -= b->stride[k] * b->size[k];
            index[k] = 0;
        }
    }
}

cfx_status cfxi_check_sums_add(cfxi_sums *s, const cfx_tensor *a, const cfx_tensor *b,
                               cfx_error *err)
{
    CFX_TRY(cfxi_tensor_settle(a, err));
    CFX_TRY(cfxi_tensor_settle(b, err));
    if (cfx_tensor_numel(a) == 0)
        return CFX_OK;
    if (a->dtype == CFX_DTYPE_FLOAT32 && b->dtype == CFX_DTYPE_FLOAT32 &&
        cfx_tensor_is_contiguous(a) && cfx_tensor_is_contiguous(b))
        add_float32(s, cfx_tensor_data(a), cfx_tensor_data(b), cfx_tensor_numel(a));
    else
        add_strided(s, a, b);
    return CFX_OK;
}

cfx_closeness cfxi_check_sums_closeness(const cfxi_sums *s)
{
    const double both = sqrt(s->aa) * sqrt(s->bb);
    const bool same = !(s->dd > 0);
    return (cfx_closeness){
        .elements = s->n,
        .not_finite = s->odd,
        .sqnr = same ? INFINITY : 10 * log10(s->aa / s->dd),
        .cosine = same ? 1 : both > 0 ? fmin(s->ab / both, 1) : 0,
        .error = same ? 0 : sqrt(s->dd / s->aa),
        .largest = s->most_d,
    };
}
