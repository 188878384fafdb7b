/* library_call.c - a call of an operator of one's own, and what its rule and kernel are written
 * with.
 *
 * The steps are those of row_call.c: arguments, rule, memory, kernel. But here nobody vouches for
 * the rule and the kernel, so that what they leave is looked at; and a result gets its memory when
 * the kernel asks for it, which tells whether the kernel has forgotten it.
 */
#include "library_impl.h"

#include "ops/ops_impl.h"

#include <stdarg.h>
#include <stdio.h>

struct cfx_kernel_call {
    cfxi_call c;
    const cfxi_custom *f;
    bool computing;                          /* the kernel runs, not the rule */
    cfx_datum described[CFXI_MOST_RESULTS];  /* what the rule said; INVALID: nothing */
};

/* ---- for rules and kernels ----------------------------------------------------------------- */

cfx_datum cfx_kernel_arg(const cfx_kernel_call *c, size_t i)
{
    return i < c->f->signature->num_params ? c->c.args[i]
                                           : cfx_datum_invalid();
}

cfx_tensor *cfx_kernel_tensor(const cfx_kernel_call *c, size_t i)
{
    const cfx_datum d = cfx_kernel_arg(c, i);
    return d.kind == CFX_DATUM_TENSOR ? d.as.tensor : NULL;
}

cfx_tensor *cfx_kernel_dense(cfx_kernel_call *c, size_t i, cfx_dtype dtype)
{
    const cfx_tensor *t = cfx_kernel_tensor(c, i);
    if (t && t->storage && cfxi_tensor_dtype_is_computable(dtype))
        return cfxi_rt_contiguous(&c->c, t, dtype);
    cfx_kernel_fail(c, CFX_E_TYPE, "argument %zu is not a tensor with data, or cannot be converted "
                    "to %s", i, cfx_dtype_name(dtype));
    return NULL;
}

static cfx_status no_result(cfx_kernel_call *c, size_t i)
{
    return cfx_kernel_fail(c, CFX_E_INDEX, "the operator has %u result(s); index %zu is out of "
                           "range",
                           c->f->signature->num_results, i);
}

cfx_status cfx_kernel_set(cfx_kernel_call *c, size_t i, cfx_datum d)
{
    if (i >= c->f->signature->num_results) {
        cfx_datum_release(d);
        return no_result(c, i);
    }
    cfxi_rt_result_datum(&c->c, i, d);
    return CFX_OK;
}

cfx_status cfx_kernel_describe(cfx_kernel_call *c, size_t i, cfx_dtype dtype, const int64_t *sizes,
                               size_t ndim)
{
    if (i >= c->f->signature->num_results)
        return no_result(c, i);
    if (!cfxi_tensor_dtype_is_computable(dtype))
        return cfx_kernel_fail(c, CFX_E_TYPE, "result %zu would have the dtype %s, which cfx "
                               "cannot compute with", i, cfx_dtype_name(dtype));
    return cfxi_rt_result(&c->c, i, dtype, sizes, ndim);
}

cfx_status cfx_kernel_describe_like(cfx_kernel_call *c, size_t i, size_t k)
{
    const cfx_tensor *t = cfx_kernel_tensor(c, k);
    if (!t)
        return cfx_kernel_fail(c, CFX_E_TYPE, "argument %zu is not a tensor", k);
    return cfx_kernel_describe(c, i, cfx_tensor_dtype(t), cfx_tensor_sizes(t), cfx_tensor_ndim(t));
}

cfx_tensor *cfx_kernel_result(cfx_kernel_call *c, size_t i)
{
    if (i >= c->f->signature->num_results) {
        no_result(c, i);
        return NULL;
    }
    const cfx_datum d = c->c.results[i];
    cfx_tensor *t = d.kind == CFX_DATUM_TENSOR ? d.as.tensor : NULL;
    if (!c->computing || !t)
        cfx_kernel_fail(c, CFX_E_VALUE, c->computing ? "result %zu has not been described as a "
                                                       "tensor; call cfx_kernel_describe first"
                                                     : "an infer function has no memory for result "
                                                       "%zu", i);
    else if (cfxi_rt_result_provide(&c->c, i) == CFX_OK && !t->storage)
        cfx_kernel_fail(c, CFX_E_SHAPE, "the sizes of result %zu are not known; the kernel must "
                        "call cfx_kernel_describe", i);
    return c->computing && t && t->storage ? t : NULL;
}

cfx_runtime *cfx_kernel_runtime(const cfx_kernel_call *c) { return c->c.rt; }
cfx_dims *cfx_kernel_dims(const cfx_kernel_call *c) { return c->c.dims; }
void *cfx_kernel_context(const cfx_kernel_call *c) { return c->f->row.ctx; }
cfx_error *cfx_kernel_error(cfx_kernel_call *c) { return c->c.err; }

cfx_status cfx_kernel_fail(cfx_kernel_call *c, cfx_status status, const char *format, ...)
{
    char text[sizeof c->c.err->message];
    va_list args;
    if (c->c.err->status != CFX_OK)
        return c->c.err->status;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return cfx_error_set(c->c.err, status, "%s", text);
}

/* ---- looking at what they left ------------------------------------------------------------- */

static bool is_kind(const char *type, cfx_datum d)
{
    static const struct {
        const char *type;
        cfx_datum_kind kind;
    } kinds[] = {
        {"Tensor", CFX_DATUM_TENSOR}, {"int", CFX_DATUM_INT}, {"float", CFX_DATUM_FLOAT},
        {"bool", CFX_DATUM_BOOL},     {"str", CFX_DATUM_STR}, {"ScalarType", CFX_DATUM_DTYPE},
    };
    const size_t size = strcspn(type, "?[");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].type) == size && memcmp(type, kinds[i].type, size) == 0)
            return d.kind == kinds[i].kind;
    return size != 6 || memcmp(type, "Scalar", 6) != 0 || cfxi_rt_is_number(d);
}

/* Whether it is what the schema says of a result. */
static bool is_result(const char *type, cfx_datum d)
{
    size_t n;
    const char *bracket = strchr(type, '[');
    const cfx_datum *items = cfx_datum_items(d, &n);
    if (d.kind == CFX_DATUM_NONE && type[strlen(type) - 1] == '?')
        return true;
    if (!bracket)
        return is_kind(type, d);
    for (size_t i = 0; i < n; i++)
        if (!is_kind(type, items[i]) && !(items[i].kind == CFX_DATUM_NONE && bracket[-1] == '?'))
            return false;
    return d.kind == CFX_DATUM_LIST || d.kind == CFX_DATUM_TUPLE;
}

/* Whether a tensor is the one that the rule spoke of. */
static bool is_as_described(const cfx_tensor *t, const cfx_tensor *said)
{
    bool same = t->dtype == said->dtype && t->ndim == said->ndim;
    for (size_t d = 0; same && d < t->ndim; d++)
        same = t->size[d] == said->size[d] || said->size[d] == CFX_DIM_UNKNOWN;
    return same;
}

static void show(const cfx_kernel_call *c, cfx_datum d, char *out, size_t size)
{
    cfx_buffer text;
    cfx_buffer_init(&text, c->c.rt->allocator);
    cfx_datum_print(d, NULL, cfx_buffer_sink(&text), NULL);
    snprintf(out, size, "%s", text.data);
    cfx_buffer_free(&text);
}

static cfx_status check_result(cfx_kernel_call *c, size_t i)
{
    cfx_schema_param result = {0};
    const char *who = c->computing ? "kernel" : "infer function";
    const cfx_datum d = c->c.results[i];
    const cfx_datum said = c->described[i];
    char made[60];
    char told[60];
    cfxi_ops_schema_result(c->f->row.schema, i, &result);
    if (d.kind == CFX_DATUM_INVALID ||
        (c->computing && d.kind == CFX_DATUM_TENSOR && !d.as.tensor->storage))
        return cfx_kernel_fail(c, CFX_E_VALUE, "its %s did not set result %zu", who, i);
    if (!is_result(result.type, d))
        return cfx_kernel_fail(c, CFX_E_TYPE, "its %s set result %zu to a %s, but its schema says "
                               "%s",
                               who, i, cfx_datum_kind_name((cfx_datum_kind)d.kind), result.type);
    if (!c->computing || said.kind != CFX_DATUM_TENSOR || d.kind != CFX_DATUM_TENSOR ||
        is_as_described(d.as.tensor, said.as.tensor))
        return CFX_OK;
    show(c, d, made, sizeof made);
    show(c, said, told, sizeof told);
    return cfx_kernel_fail(c, CFX_E_SHAPE, "its kernel set result %zu to %s, but its infer "
                           "function says %s", i,
                           made, told);
}

static cfx_status check_results(cfx_kernel_call *c)
{
    for (size_t i = 0; i < c->f->signature->num_results; i++)
        CFX_TRY(check_result(c, i));
    return CFX_OK;
}

/* ---- calling ------------------------------------------------------------------------------- */

/* What it returns counts, and so does what it reported and forgot. */
static cfx_status ask(cfx_kernel_call *c, cfx_kernel_fn *fn)
{
    cfx_error *err = c->c.err;
    const cfx_status status = fn(c);
    return status == CFX_OK || err->status != CFX_OK ? err->status : cfxi_base_failed(err, status);
}

/* The arguments that the schema says are written to, and the results that are these. */
static cfx_status prepare_written(cfx_kernel_call *c)
{
    const char *schema = c->f->row.schema;
    cfx_schema_param param;
    cfx_schema_param result;
    for (size_t i = 0; cfxi_ops_schema_param(schema, i, &param); i++) {
        const cfx_tensor *t = cfx_kernel_tensor(c, i);
        if (!param.writes)
            continue;
        if (t && t->number)
            return cfx_kernel_fail(c, CFX_E_TYPE, "argument '%.*s' is a number and cannot be "
                                   "written to",
                                   (int)param.name.size, param.name.text);
        if (t)
            CFX_TRY(cfxi_rt_check_written(&c->c, t));
        for (size_t k = 0; cfxi_ops_schema_result(schema, k, &result); k++)
            if (result.writes && result.alias == param.alias)
                CFX_TRY(cfx_kernel_set(c, k, cfx_datum_retain(cfx_kernel_arg(c, i))));
    }
    return CFX_OK;
}

static cfx_status apply_rule(cfx_kernel_call *c)
{
    if (!c->f->row.infer && c->c.infer)
        return cfx_kernel_fail(c, CFX_E_UNSUPPORTED, "it has no infer function");
    if (!c->f->row.infer)
        return CFX_OK;
    CFX_TRY(ask(c, c->f->row.infer));
    CFX_TRY(check_results(c));
    for (size_t i = 0; i < c->f->signature->num_results; i++)
        c->described[i] = cfx_datum_retain(c->c.results[i]);
    return CFX_OK;
}

static cfx_status apply(cfx_kernel_call *c)
{
    CFX_TRY(prepare_written(c));
    CFX_TRY(apply_rule(c));
    if (c->c.infer)
        return CFX_OK;
    if (!c->f->row.kernel)
        return cfx_kernel_fail(c, CFX_E_UNSUPPORTED, "it has no kernel");
    c->computing = true;
    CFX_TRY(ask(c, c->f->row.kernel));
    return check_results(c);
}

cfx_datum cfxi_rt_custom_call(cfx_runtime *rt, cfx_dims *dims, bool infer, const cfxi_watch *watch,
                              const cfxi_custom *f, const cfx_datum *args, size_t n, cfx_error *err)
{
    cfx_error own = {0};
    cfx_datum full[CFXI_MOST_PARAMS];
    cfx_datum result = cfx_datum_invalid();
    err = cfxi_base_error_or(err, &own);
    err->status = CFX_OK;
    cfx_kernel_call c = {.c = {.args = full, .rt = rt, .dims = dims, .infer = infer, .err = err},
                         .f = f};
    cfx_status status = cfxi_rt_arguments(&c.c, f->signature, args, n, full);
    for (size_t i = 0; status == CFX_OK && i < f->signature->num_params; i++)
        if (full[i].kind == CFX_DATUM_INVALID)  /* "float? eps" without a default */
            full[i] = cfx_datum_none();
    if (status == CFX_OK)
        status = apply(&c);
    if (status == CFX_OK)
        result = cfxi_rt_call_pack(&c.c, f->signature);
    if (result.kind == CFX_DATUM_INVALID) {
        cfxi_rt_call_explain(&c.c, f->row.name, f->signature);
    } else if (watch && watch->meter &&
               cfxi_rt_meter_custom(watch->meter, &c.c, f->signature, result) != CFX_OK) {
        cfx_datum_release(result);
        result.kind = CFX_DATUM_INVALID;
    }
    cfxi_rt_call_drop_results(&c.c);
    for (size_t i = 0; i < f->signature->num_results; i++)
        cfx_datum_release(c.described[i]);
    for (size_t i = 0; i < f->signature->num_params; i++)
        cfx_datum_release(full[i]);
    return result;
}

/* ---- by name ------------------------------------------------------------------------------- */

static cfx_datum call_named(cfx_runtime *rt, cfx_dims *dims, bool infer, const char *name,
                            const cfx_datum *args, size_t n, cfx_error *err)
{
    cfx_error own = {0};  /* *err is written to only if this call fails */
    cfx_datum result = cfx_datum_invalid();
    if (!cfxi_rt_all_given(rt, args, n, err))
        return result;
    const cfxi_custom *f = cfxi_rt_library_find(rt->library, name);
    if (f)
        result = cfxi_rt_custom_call(rt, dims, infer, NULL, f, args, n, &own);
    else if (rt->library)
        cfx_error_set(&own, CFX_E_KEY, "the runtime's library has no operator '%.100s'", name);
    else
        cfx_error_set(&own, CFX_E_KEY, "the runtime has no library with an operator '%.100s' "
                      "(cfx_runtime_options.library)", name);
    if (result.kind == CFX_DATUM_INVALID && err)
        *err = own;
    return result;
}

cfx_datum cfx_operator_run_named(cfx_runtime *rt, const char *name, const cfx_datum *args, size_t n,
                                 cfx_error *err)
{
    return call_named(rt, NULL, false, name, args, n, err);
}

cfx_datum cfx_operator_infer_named(cfx_runtime *rt, cfx_dims *dims, const char *name,
                                   const cfx_datum *args, size_t n, cfx_error *err)
{
    return call_named(rt, dims, true, name, args, n, err);
}
