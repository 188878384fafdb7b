/* observer_range.c - the least and the greatest elements: of a tensor, its channels or its groups;
 * and what becomes of them over many calls.
 */
#include "observer_impl.h"

#include <math.h>

/* ---- one call ------------------------------------------------------------------------------- */

typedef struct seeing {
    const cfxi_observes *loops;
    float range[2];
    int64_t bad;
} seeing;

static void see(void *ctx, const float *x, int64_t n)
{
    seeing *s = ctx;
    s->bad += cfxi_quantize_range(s->loops, x, n, s->range);
}

static void see_part(cfx_observer *o, const cfxi_part *p, size_t i, int64_t *bad)
{
    seeing s = {.loops = o->loops, .range = {INFINITY, -INFINITY}};
    cfxi_quantize_walk(p, o->isa, see, &s);
    o->now_low[i] = s.range[0];
    o->now_high[i] = s.range[1];
    *bad += s.bad;
}

static cfx_status axis_of(const cfx_observer *o, const cfx_tensor *t, size_t *axis, cfx_error *err)
{
    const int64_t at = o->spec.axis < 0 ? o->spec.axis + t->ndim : o->spec.axis;
    if (at < 0 || at >= t->ndim)
        return cfx_error_set(err, CFX_E_SHAPE, "channels are dimension %lld, but the tensor has "
                             "%d dimensions", (long long)o->spec.axis, t->ndim);
    *axis = (size_t)at;
    return CFX_OK;
}

/* Channels that lie side by side, as in [batch, features], are looked at together: some rows of all
 * channels at a time, which stay in the cache. */
static void see_columns(cfx_observer *o, const cfx_tensor *t, size_t axis, int64_t *bad)
{
    enum { ROWS = 16 };
    const cfxi_part rows = cfxi_quantize_part_at(t, axis, 0);
    int64_t index[CFX_MAX_DIMS] = {0};
    const size_t inner = rows.ndim > 0 ? rows.ndim - 1 : 0;
    const int64_t n = rows.ndim > 0 ? rows.size[inner] : 1;
    const int64_t stride = rows.ndim > 0 ? rows.stride[inner] : 0;
    const char *at = rows.data;
    for (;;) {
        for (int64_t r = 0; r < n; r += ROWS)
            *bad += o->loops->columns((const float *)(const void *)(at + r * stride),
                                      n - r < ROWS ? n - r : ROWS, stride / (int64_t)sizeof(float),
                                      (int64_t)o->n, o->now_low, o->now_high);
        size_t d = inner;
        for (; d > 0 && ++index[d - 1] == rows.size[d - 1]; d--) {
            at -= (rows.size[d - 1] - 1) * rows.stride[d - 1];
            index[d - 1] = 0;
        }
        if (d == 0)
            return;
        at += rows.stride[d - 1];
    }
}

static cfx_status see_channels(cfx_observer *o, const cfx_tensor *t, int64_t *bad, cfx_error *err)
{
    size_t axis = 0;
    CFX_TRY(axis_of(o, t, &axis, err));
    CFX_TRY(cfxi_quantize_observer_size(o, (size_t)t->size[axis], 0, err));
    if (t->dtype == CFX_DTYPE_FLOAT32 && t->stride[axis] == sizeof(float) && o->n > 8 &&
        cfxi_tensor_has_whole_strides(t)) {
        see_columns(o, t, axis, bad);
        return CFX_OK;
    }
    for (size_t i = 0; i < o->n; i++) {
        const cfxi_part p = cfxi_quantize_part_at(t, axis, (int64_t)i);
        see_part(o, &p, i, bad);
    }
    return CFX_OK;
}

/* Where row number `row` of the last dimension begins; rows are counted as they are indexed. */
static const char *row_at(const cfx_tensor *t, int64_t row)
{
    const char *at = t->data;
    for (size_t i = t->ndim - 1; i-- > 0;) {
        at += row % t->size[i] * t->stride[i];
        row /= t->size[i];
    }
    return at;
}

/* The last group of a row may have fewer elements. */
static cfx_status see_groups(cfx_observer *o, const cfx_tensor *t, int64_t *bad, cfx_error *err)
{
    if (t->ndim == 0)
        return cfx_error_set(err, CFX_E_SHAPE, "a tensor without dimensions has no groups");
    const int64_t length = t->size[t->ndim - 1];
    const int64_t stride = t->stride[t->ndim - 1];
    const int64_t group = o->spec.group < length ? o->spec.group : length;
    const int64_t groups = (length - 1) / group + 1;
    const int64_t rows = cfxi_tensor_numel(t) / length;
    CFX_TRY(cfxi_quantize_observer_size(o, (size_t)(rows * groups), (size_t)groups, err));
    for (int64_t i = 0; i < rows * groups; i++) {
        const int64_t first = i % groups * group;
        const int64_t n = length - first < group ? length - first : group;
        const cfxi_part p = cfxi_quantize_part_line(row_at(t, i / groups) + first * stride,
                                                    (cfx_dtype)t->dtype, n, stride);
        see_part(o, &p, (size_t)i, bad);
    }
    return CFX_OK;
}

static cfx_status see_tensor(cfx_observer *o, const cfx_tensor *t, int64_t *bad, cfx_error *err)
{
    const cfxi_part p = cfxi_quantize_part(t);
    CFX_TRY(cfxi_quantize_observer_size(o, 1, 0, err));
    see_part(o, &p, 0, bad);
    return CFX_OK;
}

/* ---- many calls ----------------------------------------------------------------------------- */

static void widen(float *low, float *high, float to_low, float to_high)
{
    *low = to_low < *low ? to_low : *low;
    *high = to_high > *high ? to_high : *high;
}

/* Takes this call into account, if something was seen of this channel. */
static void take(cfx_observer *o, size_t i)
{
    const float low = o->now_low[i], high = o->now_high[i];
    const float part = (float)o->spec.averaging;
    if (low > high)
        return;
    if (o->spec.observer == CFX_OBSERVE_MIN_MAX || o->low[i] > o->high[i]) {
        widen(&o->low[i], &o->high[i], low, high);
    } else if (o->spec.observer == CFX_OBSERVE_EACH_RUN) {
        o->low[i] = low;
        o->high[i] = high;
    } else {
        o->low[i] += part * (low - o->low[i]);
        o->high[i] += part * (high - o->high[i]);
    }
}

cfx_status cfxi_quantize_observe_ranges(cfx_observer *o, const cfx_tensor *t, cfx_error *err)
{
    const int64_t seen = cfxi_tensor_numel(t);
    int64_t bad = 0;
    cfx_status status;
    if (o->spec.per == CFX_PER_TENSOR)
        status = see_tensor(o, t, &bad, err);
    else if (o->spec.per == CFX_PER_CHANNEL)
        status = see_channels(o, t, &bad, err);
    else
        status = see_groups(o, t, &bad, err);
    if (status != CFX_OK)
        return status;
    for (size_t i = 0; i < o->n; i++) {
        take(o, i);
        o->now_low[i] = INFINITY;
        o->now_high[i] = -INFINITY;
    }
    cfxi_quantize_observer_count(&o->not_finite, bad);
    cfxi_quantize_observer_count(&o->calls, bad < seen);
    return CFX_OK;
}

/* ---- merging -------------------------------------------------------------------------------- */

static float mean(float a, int64_t a_calls, float b, int64_t b_calls)
{
    return (float)(((double)a * (double)a_calls + (double)b * (double)b_calls) /
                   ((double)a_calls + (double)b_calls));
}

void cfxi_quantize_merge_ranges(cfx_observer *o, const cfx_observer *from)
{
    const bool averages = o->spec.observer == CFX_OBSERVE_MOVING_AVERAGE;
    for (size_t i = 0; i < o->n; i++) {
        const float low = from->low[i], high = from->high[i];
        if (low > high)
            continue;
        if (averages && o->low[i] <= o->high[i]) {
            o->low[i] = mean(o->low[i], o->calls, low, from->calls);
            o->high[i] = mean(o->high[i], o->calls, high, from->calls);
        } else {
            widen(&o->low[i], &o->high[i], low, high);
        }
    }
}
