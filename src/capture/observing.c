/* observing.c - modules that observe what they are called with, and what quantization asks of
 * them (cfx_quantize_host). */
#include "observing_impl.h"

/* ---- observers ----------------------------------------------------------------------------- */

cfxi_observing *cfxi_capture_observing_retain(cfxi_observing *w)
{
    if (w)
        atomic_fetch_add_explicit(&w->refs, 1, memory_order_relaxed);
    return w;
}

void cfxi_capture_observing_release(cfxi_observing *w)
{
    if (!w || atomic_fetch_sub_explicit(&w->refs, 1, memory_order_acq_rel) != 1)
        return;
    cfx_observer_free(w->observer);
    cfxi_base_free(w->allocator, w, sizeof *w);
}

static cfxi_observing *observing_new(const cfx_quantize_spec *spec, const cfx_allocator *allocator,
                             cfx_error *err)
{
    cfxi_observing *w = cfxi_base_alloc(allocator, sizeof *w);
    if (!w) {
        cfxi_base_nomem(err);
        return NULL;
    }
    w->allocator = allocator;
    w->whole = false;
    atomic_init(&w->refs, 1);
    w->observer = cfx_observer_new(spec, allocator, err);
    if (w->observer)
        return w;
    cfxi_base_free(allocator, w, sizeof *w);
    return NULL;
}

/* Values that get no scale, or one in each run, are not looked at. */
cfx_status cfxi_capture_observing_see(cfxi_observing *w, cfx_datum value, cfx_error *err)
{
    const cfx_observer_kind kind = cfx_observer_spec(w->observer)->observer;
    if (value.kind != CFX_DATUM_TENSOR || kind == CFX_OBSERVE_NOTHING ||
        kind == CFX_OBSERVE_FIXED || kind == CFX_OBSERVE_EACH_RUN)
        return CFX_OK;
    const cfx_dtype dtype = cfx_tensor_dtype(value.as.tensor);
    if (dtype == CFX_DTYPE_BOOL || cfx_dtype_is_integer(dtype)) {
        w->whole = true;
        return CFX_OK;
    }
    return cfx_observer_observe(w->observer, value.as.tensor, err);
}

/* ---- the host ------------------------------------------------------------------------------ */

static const cfxi_observing *observing_at(const cfx_module *root, const char *path)
{
    const cfx_module *m = cfx_module_child(root, path);
    return m ? m->observing : NULL;
}

static cfx_status observe(void *ctx, const char *path, const cfx_qconfig *config, bool weight,
                          cfx_error *err)
{
    cfx_module *root = ctx;
    cfx_module *m = cfxi_capture_module_make(root->allocator, err);
    if (!m)
        return CFX_E_NOMEM;
    m->training = false;
    m->observing = observing_new(weight ? &config->weight : &config->activation, root->allocator,
                                 err);
    cfx_status status = m->observing ? cfxi_capture_tree_put(root, path, m, err)
                                 : cfxi_base_failed(err, err->status);
    cfx_module_release(m);
    return status;
}

static cfx_status share(void *ctx, const char *path, const char *with, cfx_error *err)
{
    cfx_module *m = cfx_module_child(ctx, with);
    return m ? cfxi_capture_tree_put(ctx, path, m, err)
             : cfx_error_set(err, CFX_E_KEY, "there is no observer at '%.200s'", with);
}

static cfx_status no_observer(const char *path, cfx_error *err)
{
    return cfx_error_set(err, CFX_E_KEY, "'%.200s' is not an observer", path);
}

static cfx_status spec_at(void *ctx, const char *path, cfx_quantize_spec *spec, cfx_error *err)
{
    const cfxi_observing *w = observing_at(ctx, path);
    if (!w)
        return no_observer(path, err);
    *spec = *cfx_observer_spec(w->observer);
    return CFX_OK;
}

static cfx_status look(void *ctx, cfx_graph *g, const char *path, cfx_value tensor, cfx_error *err)
{
    const cfxi_observing *w = observing_at(ctx, path);
    if (!w)
        return no_observer(path, err);
    cfx_datum d = cfxi_capture_datum_of_value(tensor, cfx_graph_allocator(g), err);
    if (d.kind == CFX_DATUM_INVALID)
        return cfxi_base_failed(err, err->status);
    const cfx_status status = d.kind == CFX_DATUM_TENSOR
                                  ? cfx_observer_observe(w->observer, d.as.tensor, err) : CFX_OK;
    cfx_datum_release(d);
    return status;
}

/* A pair of tensors of one element as numbers. */
static void as_numbers(const cfx_tensor *scale, const cfx_tensor *zero, cfx_value *s, cfx_value *z)
{
    *s = cfx_value_float((double)*(const float *)cfx_tensor_data(scale));
    *z = cfx_value_int(*(const int64_t *)cfx_tensor_data(zero));
}

static cfx_status as_tensors(cfx_graph *g, cfx_tensor *scale, cfx_tensor *zero, cfx_value *s,
                             cfx_value *z, cfx_error *err)
{
    *s = cfxi_capture_value_from_datum(g, cfx_datum_tensor(scale), err);
    *z = s->kind == CFX_KIND_INVALID
             ? cfx_value_invalid() : cfxi_capture_value_from_datum(g, cfx_datum_tensor(zero), err);
    return z->kind == CFX_KIND_INVALID ? cfxi_base_failed(err, err->status) : CFX_OK;
}

static cfx_status scales(void *ctx, cfx_graph *g, const char *path, cfx_value *scale,
                         cfx_value *zero, cfx_error *err)
{
    const cfxi_observing *w = observing_at(ctx, path);
    cfx_tensor *s = NULL;
    cfx_tensor *z = NULL;
    if (!w)
        return no_observer(path, err);
    if (w->whole)
        return cfx_error_set(err, CFX_E_TYPE, "it has observed integers");
    if (cfx_observer_not_finite(w->observer) > 0)
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "it has observed values that are not "
                             "finite: %lld of %lld",
                             (long long)cfx_observer_not_finite(w->observer),
                             (long long)cfx_observer_seen(w->observer));
    CFX_TRY(cfx_observer_scales(w->observer, &s, &z, err));
    cfx_status status = CFX_OK;
    if (cfx_observer_spec(w->observer)->per == CFX_PER_TENSOR)
        as_numbers(s, z, scale, zero);
    else
        status = as_tensors(g, s, z, scale, zero, err);
    cfx_tensor_release(s);
    cfx_tensor_release(z);
    return status;
}

cfx_quantize_host cfxi_capture_quantize_host(cfx_module *root)
{
    return (cfx_quantize_host){.ctx = root, .observe = observe, .share = share, .spec = spec_at,
                               .look = look, .scales = scales};
}
