/* observer_state.c - what an observer has seen as named tensors, and back: under the names that
 * PyTorch's observers have, and the counts under names of our own.
 */
#include "observer_impl.h"

#include <math.h>

static const char *const count_names[] = {"seen", "not_finite", "calls"};
enum { COUNTS = sizeof count_names / sizeof *count_names };

static int64_t *count_at(cfx_observer *o, size_t i)
{
    int64_t *const all[COUNTS] = {&o->seen, &o->not_finite, &o->calls};
    return all[i];
}

/* ---- saving --------------------------------------------------------------------------------- */

static cfx_status save(cfx_state *state, const char *name, cfx_dtype dtype, const int64_t *sizes,
                       size_t ndim, const void *data, const cfx_allocator *allocator,
                       cfx_error *err)
{
    cfx_tensor *t = cfx_tensor_new(dtype, sizes, ndim, allocator, err);
    if (!t)
        return CFX_E_NOMEM;
    memcpy(t->data, data, (size_t)cfxi_tensor_numel(t) * cfx_dtype_size(dtype));
    const cfx_status status = cfx_state_set(state, name, t, err);
    cfx_tensor_release(t);
    return status;
}

/* A range of the whole tensor is a number; before the first call too, if there is no other. */
static cfx_status save_range(const cfx_observer *o, cfx_state *state, const char *name,
                             const float *values, float nothing, cfx_error *err)
{
    const int64_t groups = o->groups > 0 ? (int64_t)o->groups : 1;
    const int64_t sizes[] = {(int64_t)o->n / groups, groups};
    const size_t ndim = o->spec.per == CFX_PER_TENSOR ? 0 : o->groups > 0 ? 2 : 1;
    return save(state, name, CFX_DTYPE_FLOAT32, sizes, ndim, o->n > 0 ? values : &nothing,
                o->allocator, err);
}

static cfx_status save_all(const cfx_observer *o, cfx_state *state, cfx_error *err)
{
    const int64_t counts[COUNTS] = {o->seen, o->not_finite, o->calls};
    if (cfxi_quantize_observer_has_ranges(&o->spec)) {
        CFX_TRY(save_range(o, state, "min_val", o->low, INFINITY, err));
        CFX_TRY(save_range(o, state, "max_val", o->high, -INFINITY, err));
    }
    if (o->histogram)
        CFX_TRY(save(state, "histogram", CFX_DTYPE_FLOAT32, &o->spec.bins, 1, o->histogram,
                     o->allocator, err));
    for (size_t i = 0; i < COUNTS; i++)
        CFX_TRY(save(state, count_names[i], CFX_DTYPE_INT64, NULL, 0, &counts[i], o->allocator,
                     err));
    return CFX_OK;
}

cfx_state *cfx_observer_save(const cfx_observer *o, cfx_error *err)
{
    if (cfxi_base_expect(o, "observer", err) != CFX_OK)
        return NULL;
    cfx_state *state = cfx_state_new(o->allocator, err);
    if (state && save_all(o, state, err) != CFX_OK) {
        cfx_state_free(state);
        state = NULL;
    }
    return state;
}

/* ---- loading -------------------------------------------------------------------------------- */

static cfx_status wrong(const char *name, cfx_status status, const char *why, cfx_error *err)
{
    return cfx_error_set(err, status, "'%s' of the observer's state %s", name, why);
}

/* The elements of an entry, which must be of a type and lie without gaps. */
static cfx_status elements(const cfx_state *state, const char *name, cfx_dtype dtype,
                           const void **data, int64_t *n, cfx_error *err)
{
    const cfx_tensor *t = cfx_state_get(state, name);
    if (!t)
        return wrong(name, CFX_E_KEY, "is missing", err);
    if (t->dtype != dtype)
        return wrong(name, CFX_E_TYPE, dtype == CFX_DTYPE_INT64 ? "must be int64"
                                                                : "must be float32", err);
    if (cfx_tensor_is_abstract(t) || !cfx_tensor_is_contiguous(t))
        return wrong(name, CFX_E_VALUE, "must be a contiguous tensor", err);
    CFX_TRY(cfxi_tensor_settle(t, err));
    *data = t->data;
    *n = cfxi_tensor_numel(t);
    return CFX_OK;
}

static cfx_status check_names(const cfx_observer *o, const cfx_state *state, cfx_error *err)
{
    const bool ranges = cfxi_quantize_observer_has_ranges(&o->spec);
    for (size_t i = 0; i < cfx_state_size(state); i++) {
        const char *name = cfx_state_entry(state, i, NULL);
        bool known = (ranges && (!strcmp(name, "min_val") || !strcmp(name, "max_val"))) ||
                     (o->histogram && !strcmp(name, "histogram"));
        for (size_t k = 0; k < COUNTS; k++)
            known = known || !strcmp(name, count_names[k]);
        if (!known)
            return cfx_error_set(err, CFX_E_KEY, "'%.100s' is not part of the state of this kind "
                                 "of observer", name);
    }
    return CFX_OK;
}

/* [channels, groups] has the number of groups as its last size. */
static size_t groups_in(const cfx_observer *o, const cfx_state *state)
{
    const cfx_tensor *t = cfx_state_get(state, "min_val");
    return o->spec.per == CFX_PER_GROUP && t->ndim > 0 ? (size_t)t->size[t->ndim - 1] : 0;
}

static bool is_range(float low, float high)
{
    return (isfinite(low) && isfinite(high) && low <= high) ||
           (low == INFINITY && high == -INFINITY);
}

static cfx_status load_ranges(cfx_observer *o, const cfx_state *state, cfx_error *err)
{
    const void *low, *high;
    int64_t n, other;
    CFX_TRY(elements(state, "min_val", CFX_DTYPE_FLOAT32, &low, &n, err));
    CFX_TRY(elements(state, "max_val", CFX_DTYPE_FLOAT32, &high, &other, err));
    if (other != n || (o->spec.per == CFX_PER_TENSOR && n > 1))
        return wrong("max_val", CFX_E_SHAPE, "does not fit 'min_val', or the kind of observer",
                     err);
    const float *lows = low, *highs = high;
    bool seen = false;
    for (int64_t i = 0; i < n; i++) {
        if (!is_range(lows[i], highs[i]))
            return wrong("min_val", CFX_E_VALUE, "and 'max_val' are not ranges", err);
        seen = seen || lows[i] <= highs[i];
    }
    if (n > 0 && (seen || o->spec.per != CFX_PER_TENSOR)) {
        CFX_TRY(cfxi_quantize_observer_size(o, (size_t)n, groups_in(o, state), err));
        memcpy(o->low, lows, (size_t)n * sizeof *lows);
        memcpy(o->high, highs, (size_t)n * sizeof *highs);
    }
    o->calls = seen;
    return CFX_OK;
}

static cfx_status load_histogram(cfx_observer *o, const cfx_state *state, cfx_error *err)
{
    const void *data;
    int64_t n;
    CFX_TRY(elements(state, "histogram", CFX_DTYPE_FLOAT32, &data, &n, err));
    if (n != o->spec.bins)
        return wrong("histogram", CFX_E_SHAPE, "has another number of bins", err);
    const float *counts = data;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(counts[i] >= 0) || !isfinite(counts[i]))
            return wrong("histogram", CFX_E_VALUE, "has counts that are not numbers", err);
        sum += (double)counts[i];
    }
    if (sum > 0 && o->calls == 0)
        return wrong("histogram", CFX_E_VALUE, "contradicts 'min_val': it has counts, but there is "
                     "no range", err);
    memcpy(o->histogram, counts, (size_t)n * sizeof *counts);
    return CFX_OK;
}

/* A state of PyTorch's has no counts. */
static cfx_status load_counts(cfx_observer *o, const cfx_state *state, cfx_error *err)
{
    const bool seen = o->calls > 0;
    for (size_t i = 0; i < COUNTS; i++) {
        const void *data;
        int64_t n;
        if (!cfx_state_get(state, count_names[i]))
            continue;
        CFX_TRY(elements(state, count_names[i], CFX_DTYPE_INT64, &data, &n, err));
        if (n != 1)
            return wrong(count_names[i], CFX_E_SHAPE, "must be one number", err);
        if (*(const int64_t *)data < 0)
            return wrong(count_names[i], CFX_E_VALUE, "must not be negative", err);
        *count_at(o, i) = *(const int64_t *)data;
    }
    if (cfxi_quantize_observer_has_ranges(&o->spec) && (o->calls > 0) != seen)
        return wrong("calls", CFX_E_VALUE, "contradicts 'min_val'", err);
    return CFX_OK;
}

static cfx_status load_all(cfx_observer *o, const cfx_state *state, cfx_error *err)
{
    CFX_TRY(check_names(o, state, err));
    if (cfxi_quantize_observer_has_ranges(&o->spec))
        CFX_TRY(load_ranges(o, state, err));
    if (o->histogram)
        CFX_TRY(load_histogram(o, state, err));
    return load_counts(o, state, err);
}

/* A new observer takes the state, and then they change places: one that fails leaves the old one as
 * it was. */
cfx_status cfx_observer_load(cfx_observer *o, const cfx_state *state, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(o, "observer", err));
    CFX_TRY(cfxi_base_expect(state, "state", err));
    cfx_observer *fresh = cfx_observer_new(&o->spec, o->allocator, err);
    if (!fresh)
        return CFX_E_NOMEM;
    const cfx_status status = load_all(fresh, state, err);
    if (status == CFX_OK) {
        const cfx_observer old = *o;
        *o = *fresh;
        *fresh = old;
    }
    cfx_observer_free(fresh);
    return status;
}
