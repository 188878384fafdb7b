/* observer.c - observers: what they are told to see, tensors that they see, and others' sight. */
#include "observer_impl.h"

#include <math.h>

enum { MOST_BINS = 1 << 20 };

/* ---- specs ---------------------------------------------------------------------------------- */

/* The least and the greatest integer of a type that values can become; false for other types. */
static bool integers_of(cfx_dtype dtype, int64_t *least, int64_t *most)
{
    const int64_t bits = 8 * (int64_t)cfx_dtype_size(dtype);
    const bool is_signed = dtype == CFX_DTYPE_INT8 || dtype == CFX_DTYPE_INT16 ||
                           dtype == CFX_DTYPE_INT32;
    if (!is_signed && dtype != CFX_DTYPE_UINT8 && dtype != CFX_DTYPE_UINT16)
        return false;
    *least = is_signed ? -((int64_t)1 << (bits - 1)) : 0;
    *most = *least + ((int64_t)1 << bits) - 1;
    return true;
}

void cfx_quantize_spec_default(cfx_quantize_spec *spec, cfx_observer_kind observer, cfx_dtype dtype)
{
    *spec = (cfx_quantize_spec){.observer = observer, .dtype = dtype, .eps = 0x1p-23,
                                .averaging = 0.01, .bins = 2048, .percentile = 99.99,
                                .scale = 1};
    integers_of(dtype, &spec->low, &spec->high);
}

static cfx_status wrong(cfx_error *err, const char *field, const char *why)
{
    return cfx_error_set(err, CFX_E_VALUE, "the field '%s' of the quantization spec %s", field,
                         why);
}

static cfx_status check_integers(const cfx_quantize_spec *s, cfx_error *err)
{
    int64_t least, most;
    if (!integers_of(s->dtype, &least, &most))
        return wrong(err, "dtype", "must be uint8, int8, uint16, int16 or int32, or float16");
    if (s->low >= s->high)
        return wrong(err, "low", "must be less than 'high'");
    if (s->low < least || s->high > most)
        return wrong(err, s->low < least ? "low" : "high", "is not an integer of its dtype");
    if (s->observer == CFX_OBSERVE_FIXED) {
        if (!(s->scale > 0) || !isfinite((float)s->scale))
            return wrong(err, "scale", "must be a positive number");
        if (s->zero < s->low || s->zero > s->high)
            return wrong(err, "zero", "must be between 'low' and 'high'");
    }
    if (!(s->eps >= 0) || !isfinite((float)s->eps))
        return wrong(err, "eps", "must be a number that is not negative");
    return CFX_OK;
}

static cfx_status check_kind(const cfx_quantize_spec *s, cfx_error *err)
{
    if ((unsigned)s->observer > CFX_OBSERVE_EACH_RUN)
        return wrong(err, "observer", "is not a kind of observer");
    if ((unsigned)s->per > CFX_PER_GROUP)
        return wrong(err, "per", "is not CFX_PER_TENSOR, CFX_PER_CHANNEL or CFX_PER_GROUP");
    if (s->per == CFX_PER_GROUP && s->group <= 0)
        return wrong(err, "group", "must be positive");
    if (s->observer == CFX_OBSERVE_MOVING_AVERAGE && !(s->averaging >= 0 && s->averaging <= 1))
        return wrong(err, "averaging", "must be between 0 and 1");
    if (!cfxi_quantize_observer_has_histogram(s))
        return CFX_OK;
    if (s->per != CFX_PER_TENSOR)
        return wrong(err, "per", "must be CFX_PER_TENSOR: histograms are of the whole tensor");
    if (s->bins < 2 || s->bins > MOST_BINS)
        return wrong(err, "bins", "must be between 2 and 1048576");
    if (s->observer == CFX_OBSERVE_PERCENTILE && !(s->percentile > 0 && s->percentile <= 100))
        return wrong(err, "percentile", "must be greater than 0, and at most 100");
    return CFX_OK;
}

static cfx_status check_spec(const cfx_quantize_spec *s, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(s, "quantization spec", err));
    CFX_TRY(check_kind(s, err));
    if (s->observer == CFX_OBSERVE_NOTHING || s->dtype == CFX_DTYPE_FLOAT16)
        return CFX_OK;
    return check_integers(s, err);
}

/* ---- an observer ---------------------------------------------------------------------------- */

/* `fresh` is twice as long as the histogram. */
static size_t histogram_bytes(const cfx_quantize_spec *s)
{
    return (size_t)s->bins * (3 * sizeof(float) + CFXI_COUNTERS * sizeof(uint32_t));
}

static bool make_histogram(cfx_observer *o)
{
    const size_t bins = (size_t)o->spec.bins;
    o->histogram = cfxi_base_alloc(o->allocator, histogram_bytes(&o->spec));
    if (!o->histogram)
        return false;
    memset(o->histogram, 0, histogram_bytes(&o->spec));
    o->fresh = o->histogram + bins;
    o->counts = (uint32_t *)(void *)(o->fresh + 2 * bins);
    return true;
}

cfx_observer *cfx_observer_new(const cfx_quantize_spec *spec, const cfx_allocator *allocator,
                               cfx_error *err)
{
    if (check_spec(spec, err) != CFX_OK)
        return NULL;
    allocator = cfxi_base_allocator(allocator);
    cfx_observer *o = cfxi_base_alloc(allocator, sizeof *o);
    if (o)
        *o = (cfx_observer){.allocator = allocator, .spec = *spec,
                            .isa = cfxi_rt_isa_of_machine()};
    const bool ranges = o && cfxi_quantize_observer_has_ranges(spec);
    if (!o || (ranges && cfxi_quantize_observer_has_histogram(spec) && !make_histogram(o))) {
        cfx_observer_free(o);
        cfxi_base_nomem(err);
        return NULL;
    }
    o->loops = cfxi_quantize_observes_of(o->isa);
    return o;
}

static void free_ranges(cfx_observer *o)
{
    cfxi_base_free(o->allocator, o->low, 4 * o->n * sizeof *o->low);
    o->low = o->high = o->now_low = o->now_high = NULL;
    o->n = o->groups = 0;
}

void cfx_observer_free(cfx_observer *o)
{
    if (!o)
        return;
    free_ranges(o);
    cfxi_base_free(o->allocator, o->histogram, o->histogram ? histogram_bytes(&o->spec) : 0);
    cfxi_base_free(o->allocator, o, sizeof *o);
}

cfx_status cfxi_quantize_observer_size(cfx_observer *o, size_t n, size_t groups, cfx_error *err)
{
    size_t bytes;
    if (o->n == n && o->groups == groups)
        return CFX_OK;
    if (o->n > 0)
        return cfx_error_set(err, CFX_E_SHAPE, "the tensor has %zu channels or groups, but %zu "
                             "were observed before; an observer belongs to one value", n, o->n);
    if (!cfxi_base_mul_size(n, 4 * sizeof(float), 0, &bytes))
        return cfxi_base_nomem(err);
    float *all = cfxi_base_alloc(o->allocator, bytes);
    if (!all)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < 4 * n; i++)
        all[i] = i / n % 2 == 0 ? INFINITY : -INFINITY;
    o->low = all;
    o->high = all + n;
    o->now_low = all + 2 * n;
    o->now_high = all + 3 * n;
    o->n = n;
    o->groups = groups;
    return CFX_OK;
}

const cfx_quantize_spec *cfx_observer_spec(const cfx_observer *o) { return &o->spec; }
int64_t cfx_observer_seen(const cfx_observer *o) { return o->seen; }
int64_t cfx_observer_not_finite(const cfx_observer *o) { return o->not_finite; }

/* ---- observing ------------------------------------------------------------------------------ */

static bool is_float(cfx_dtype dtype)
{
    return dtype == CFX_DTYPE_FLOAT32 || dtype == CFX_DTYPE_FLOAT64 ||
           dtype == CFX_DTYPE_FLOAT16 || dtype == CFX_DTYPE_BFLOAT16 ||
           cfxi_tensor_dtype_is_float8(dtype);
}

cfx_status cfx_observer_observe(cfx_observer *o, const cfx_tensor *x, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(o, "observer", err));
    CFX_TRY(cfxi_base_expect(x, "tensor", err));
    if (!is_float((cfx_dtype)x->dtype))
        return cfx_error_set(err, CFX_E_TYPE, "an observer looks at tensors of floats, not of %s",
                             cfx_dtype_name((cfx_dtype)x->dtype));
    if (cfx_tensor_is_abstract(x))
        return cfx_error_set(err, CFX_E_VALUE, "the tensor has no elements to observe: it is "
                             "abstract");
    const int64_t numel = cfxi_tensor_numel(x);
    if (numel == 0)
        return CFX_OK;
    CFX_TRY(cfxi_tensor_settle(x, err));
    if (cfxi_quantize_observer_has_ranges(&o->spec)) {
        if (o->histogram) {
            CFX_TRY(cfxi_quantize_observer_size(o, 1, 0, err));
            cfxi_quantize_observe_histogram(o, x);
        } else {
            CFX_TRY(cfxi_quantize_observe_ranges(o, x, err));
        }
    }
    cfxi_quantize_observer_count(&o->seen, numel);
    return CFX_OK;
}

/* ---- merging -------------------------------------------------------------------------------- */

bool cfxi_quantize_same_spec(const cfx_quantize_spec *a, const cfx_quantize_spec *b)
{
    return a->observer == b->observer && a->dtype == b->dtype && a->low == b->low &&
           a->high == b->high && a->per == b->per && a->axis == b->axis && a->group == b->group &&
           a->symmetric == b->symmetric && a->eps == b->eps && a->averaging == b->averaging &&
           a->bins == b->bins && a->percentile == b->percentile && a->scale == b->scale &&
           a->zero == b->zero;
}

cfx_status cfx_observer_merge(cfx_observer *o, const cfx_observer *from, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(o, "observer", err));
    CFX_TRY(cfxi_base_expect(from, "observer to merge", err));
    if (!cfxi_quantize_same_spec(&o->spec, &from->spec))
        return cfx_error_set(err, CFX_E_VALUE, "observers of different specs cannot be merged");
    if (from->n > 0)
        CFX_TRY(cfxi_quantize_observer_size(o, from->n, from->groups, err));
    if (from->calls > 0 && o->histogram)
        cfxi_quantize_merge_histogram(o, from);
    else if (from->calls > 0)
        cfxi_quantize_merge_ranges(o, from);
    cfxi_quantize_observer_count(&o->calls, from->calls);
    cfxi_quantize_observer_count(&o->seen, from->seen);
    cfxi_quantize_observer_count(&o->not_finite, from->not_finite);
    return CFX_OK;
}
