/* weight_access.c - tensors and modules as objects of a graph: what a pass reads and writes of
 * weights. */
#include "capture_impl.h"

#include "runtime/program_impl.h"

/* One of both is set. */
typedef struct object {
    atomic_int refs;
    const cfx_allocator *allocator;
    cfx_tensor *tensor;
    cfx_module *module;
} object;

/* ---- the host ------------------------------------------------------------------------------ */

static void retain(void *ctx, void *o)
{
    (void)ctx;
    atomic_fetch_add_explicit(&((object *)o)->refs, 1, memory_order_relaxed);
}

static void release(void *ctx, void *o)
{
    object *it = o;
    (void)ctx;
    if (atomic_fetch_sub_explicit(&it->refs, 1, memory_order_acq_rel) != 1)
        return;
    cfx_tensor_release(it->tensor);
    cfx_module_release(it->module);
    cfxi_base_free(it->allocator, it, sizeof *it);
}

static cfx_status repr(void *ctx, void *o, cfx_sink out, cfx_error *err)
{
    const object *it = o;
    (void)ctx;
    if (it->tensor)
        return cfx_tensor_print(it->tensor, out, err);
    const char *name = cfxi_capture_module_title(it->module);
    return cfxi_base_failed(err, cfxi_base_sink_write(out, name, strlen(name)));
}

static cfx_status qualified_name(void *ctx, void *o, cfx_sink out, cfx_error *err)
{
    (void)ctx;
    (void)o;
    (void)out;
    return cfx_error_set(err, CFX_E_KEY, "a tensor has no qualified name");
}

static cfx_status name_hint(void *ctx, void *o, cfx_sink out, cfx_error *err)
{
    (void)ctx;
    (void)o;
    return cfxi_base_failed(err, cfxi_base_sink_write(out, "object", 6));
}

static int equal(void *ctx, void *a, void *b)
{
    const object *x = a;
    const object *y = b;
    (void)ctx;
    return x->tensor == y->tensor && x->module == y->module;
}

const cfx_host cfxi_capture_object_host = {
    .retain = retain,
    .release = release,
    .repr = repr,
    .qualified_name = qualified_name,
    .name_hint = name_hint,
    .equal = equal,
};

/* ---- to values ----------------------------------------------------------------------------- */

static cfx_value make(cfx_graph *g, cfx_tensor *t, cfx_module *m, cfx_error *err)
{
    const cfx_allocator *allocator = cfxi_base_allocator(cfx_graph_allocator(g));
    if (!g->host)
        g->host =
            &cfxi_capture_object_host; /* one that was parsed or built: now it can hold objects */
    if (g->host != &cfxi_capture_object_host) {
        cfx_error_set(err, CFX_E_TYPE, "this graph belongs to another host language and cannot "
                      "hold a cfx tensor");
        return cfx_value_invalid();
    }
    object *it = cfxi_base_alloc(allocator, sizeof *it);
    if (!it) {
        cfxi_base_nomem(err);
        return cfx_value_invalid();
    }
    *it = (object){.allocator = allocator, .tensor = cfx_tensor_retain(t),
                   .module = cfx_module_retain(m)};
    atomic_init(&it->refs, 1);
    cfx_value v = cfx_value_host(g, it, err);
    release(NULL, it);  /* the value has its own */
    return v;
}

cfx_value cfxi_capture_value_from_module(cfx_graph *g, cfx_module *m, cfx_error *err)
{
    return make(g, NULL, m, err);
}

static cfx_value from_items(cfx_graph *g, cfx_datum d, cfx_error *err)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    const cfx_allocator *allocator = cfx_graph_allocator(g);
    const cfx_kind kind = d.kind == CFX_DATUM_LIST    ? CFX_KIND_LIST
                          : d.kind == CFX_DATUM_TUPLE ? CFX_KIND_TUPLE
                          : d.kind == CFX_DATUM_DICT  ? CFX_KIND_DICT
                                                      : CFX_KIND_SLICE;
    cfxi_vec values = {0};
    cfx_value v = cfx_value_invalid();
    bool good = cfxi_base_vec_reserve(&values, n + 1, sizeof v, allocator);
    if (!good)
        cfxi_base_nomem(err);
    for (size_t i = 0; good && i < n; i++) {
        v = cfxi_capture_value_from_datum(g, items[i], err);
        good = v.kind != CFX_KIND_INVALID;
        if (good)
            ((cfx_value *)values.data)[values.size++] = v;
    }
    v = good ? cfx_value_seq(g, kind, values.data, values.size, err) : cfx_value_invalid();
    for (size_t i = 0; v.kind == CFX_KIND_INVALID && i < values.size; i++)
        cfx_value_discard(g, ((cfx_value *)values.data)[i]);
    cfxi_base_vec_free(&values, sizeof v, allocator);
    return v;
}

cfx_value cfxi_capture_value_from_datum(cfx_graph *g, cfx_datum d, cfx_error *err)
{
    size_t n;
    const char *text = cfx_datum_text(d, &n);
    switch ((cfx_datum_kind)d.kind) {
    case CFX_DATUM_NONE: return cfx_value_none();
    case CFX_DATUM_ELLIPSIS: return cfx_value_ellipsis();
    case CFX_DATUM_BOOL: return cfx_value_bool(d.as.b);
    case CFX_DATUM_INT: return cfx_value_int(d.as.i);
    case CFX_DATUM_FLOAT: return cfx_value_float(d.as.f);
    case CFX_DATUM_COMPLEX: return cfx_value_complex(g, d.as.c[0], d.as.c[1], err);
    case CFX_DATUM_DTYPE: return cfx_value_dtype((cfx_dtype)d.as.i);
    case CFX_DATUM_LAYOUT: return cfx_value_layout((cfx_layout)d.as.i);
    case CFX_DATUM_MEMORY_FORMAT: return cfx_value_memory_format((cfx_memory_format)d.as.i);
    case CFX_DATUM_STR: return cfx_value_str(g, text, n, err);
    case CFX_DATUM_DEVICE: return cfx_value_device(g, text, n, err);
    case CFX_DATUM_TENSOR: return make(g, d.as.tensor, NULL, err);
    case CFX_DATUM_LIST:
    case CFX_DATUM_TUPLE:
    case CFX_DATUM_DICT:
    case CFX_DATUM_SLICE: return from_items(g, d, err);
    case CFX_DATUM_REGION:
    case CFX_DATUM_INVALID: break;
    }
    cfx_error_set(err, CFX_E_TYPE, "a region or an invalid value cannot be stored in a graph");
    return cfx_value_invalid();
}

/* ---- and back ------------------------------------------------------------------------------ */

static cfx_datum to_items(cfx_value v, cfx_datum_kind kind, const cfx_allocator *allocator,
                          cfx_error *err)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    cfxi_vec data = {0};
    cfx_datum d = cfx_datum_invalid();
    bool good = cfxi_base_vec_reserve(&data, n + 1, sizeof d, allocator);
    if (!good)
        cfxi_base_nomem(err);
    for (size_t i = 0; good && i < n; i++) {
        d = cfxi_capture_datum_of_value(items[i], allocator, err);
        good = d.kind != CFX_DATUM_INVALID;
        if (good)
            ((cfx_datum *)data.data)[data.size++] = d;
    }
    if (good)
        d = cfx_datum_seq(kind, data.data, data.size, allocator, err);
    for (size_t i = 0; i < data.size; i++)
        cfx_datum_release(((cfx_datum *)data.data)[i]);
    cfxi_base_vec_free(&data, sizeof d, allocator);
    return d;
}

cfx_datum cfxi_capture_datum_of_value(cfx_value v, const cfx_allocator *allocator, cfx_error *err)
{
    const object *it = v.kind == CFX_KIND_HOST ? cfx_value_object(v) : NULL;
    cfx_datum_kind kind;
    if (it && it->tensor)
        return cfx_datum_tensor(cfx_tensor_retain(it->tensor));
    if (cfxi_rt_seq_kind((cfx_kind)v.kind, &kind))
        return to_items(v, kind, allocator, err);
    return cfxi_rt_datum_from_value(v, allocator, err);
}
