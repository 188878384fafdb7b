/* observer_scales.c - what was seen becomes scales and zero points, in float32 as in PyTorch. */
#include "observer_impl.h"

#include <float.h>
#include <math.h>

typedef struct affine {
    float scale;
    int64_t zero;
} affine;

/* (high - low) / integers; the range of all floats is wider than a float. */
static float divided(float low, float high, float by)
{
    const float whole = (high - low) / by;
    return isfinite(whole) ? whole : (float)(((double)high - (double)low) / (double)by);
}

static int64_t middle(const cfx_quantize_spec *s)
{
    return s->zero ? s->zero : s->low + (s->high - s->low + 1) / 2;
}

/* Zero is always a value of the integers. */
static affine scale_of(const cfx_quantize_spec *s, float low, float high)
{
    const float eps = (float)s->eps;
    affine a;
    low = low < 0 ? low : 0;
    high = high > 0 ? high : 0;
    if (s->symmetric) {
        const float most = -low > high ? -low : high;
        a.scale = most / (float)((double)(s->high - s->low) / 2);
        a.scale = a.scale > eps ? a.scale : eps;
        a.zero = middle(s);
        return a;
    }
    a.scale = divided(low, high, (float)(s->high - s->low));
    a.scale = a.scale > eps ? a.scale : eps;
    a.zero = a.scale > 0 ? s->low - (int64_t)rintf(low / a.scale) : s->low;
    a.zero = a.zero < s->low ? s->low : a.zero > s->high ? s->high : a.zero;
    return a;
}

/* The range of channel i. Nothing seen of it counts as 0. */
static affine scale_at(const cfx_observer *o, size_t i)
{
    float range[2] = {o->low[i], o->high[i]};
    if (o->spec.observer == CFX_OBSERVE_HISTOGRAM)
        cfxi_quantize_search(o, range);
    else if (o->spec.observer == CFX_OBSERVE_PERCENTILE)
        cfxi_quantize_percentile(o, range);
    const bool seen = range[0] <= range[1];
    affine a = scale_of(&o->spec, seen ? range[0] : 0, seen ? range[1] : 0);
    if (!(a.scale > 0))  /* eps is 0 */
        a.scale = FLT_MIN;
    return a;
}

static cfx_status check_seen(const cfx_observer *o, cfx_error *err)
{
    const cfx_quantize_spec *s = &o->spec;
    if (s->observer == CFX_OBSERVE_FIXED)
        return CFX_OK;
    if (!cfxi_quantize_observer_has_ranges(s))
        return cfx_error_set(err, CFX_E_VALUE, "this value has no scale: it stays a float");
    if (o->calls > 0)
        return CFX_OK;
    if (o->not_finite > 0)
        return cfx_error_set(err, CFX_E_VALUE, "none of the %lld elements observed was finite; "
                             "look for NaN in what the model was calibrated with",
                             (long long)o->seen);
    return cfx_error_set(err, CFX_E_VALUE, "nothing was observed: run the prepared model on some "
                         "inputs before it is converted");
}

/* One number, a list, or [channels, groups]. */
static cfx_tensor *new_tensor(const cfx_observer *o, cfx_dtype dtype, cfx_error *err)
{
    const int64_t n = o->n > 0 ? (int64_t)o->n : 1;
    const int64_t groups = o->groups > 0 ? (int64_t)o->groups : 1;
    const int64_t sizes[] = {n / groups, groups};
    return cfx_tensor_new(dtype, sizes, o->groups > 0 ? 2 : 1, o->allocator, err);
}

cfx_status cfx_observer_scales(const cfx_observer *o, cfx_tensor **scale, cfx_tensor **zero,
                               cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(o, "observer", err));
    CFX_TRY(check_seen(o, err));
    cfx_tensor *s = new_tensor(o, CFX_DTYPE_FLOAT32, err);
    cfx_tensor *z = s ? new_tensor(o, CFX_DTYPE_INT64, err) : NULL;
    if (!z) {
        cfx_tensor_release(s);
        return cfxi_base_nomem(err);
    }
    const bool fixed = o->spec.observer == CFX_OBSERVE_FIXED;
    for (int64_t i = 0; i < cfxi_tensor_numel(s); i++) {
        const affine a = fixed ? (affine){(float)o->spec.scale, o->spec.zero}
                               : scale_at(o, (size_t)i);
        ((float *)(void *)s->data)[i] = a.scale;
        ((int64_t *)(void *)z->data)[i] = a.zero;
    }
    *scale = s;
    *zero = z;
    return CFX_OK;
}
