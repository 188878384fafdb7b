/* calibrate.c - modules in integers: prepared, and converted when they have run on data. */
#include "observing_impl.h"

#include <cfx/calibrate.h>
#include <cfx/embed/base.h>
#include <cfx/embed/location.h>

/* ---- copies -------------------------------------------------------------------------------- */

cfx_module *cfxi_capture_own_copy(cfx_at at, cfx_module *m)
{
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_clone(m->graph, NULL, &err);
    if (!g) {
        cfxi_capture_scope_take(at, &err);
        return NULL;
    }
    cfx_module *copy = cfx_module_from_graph_at(at, g, cfxi_capture_module_title(m), m);
    cfx_graph_release(g);
    return copy;
}

static bool expect(cfx_at at, const cfx_module *m, const char *what)
{
    if (cfx_scope_ok(at.scope) && !m)
        cfx_scope_fail_at(at, CFX_E_VALUE, "cfx_quantize_%s got NULL for the module", what);
    return cfx_scope_ok(at.scope);
}

/* ---- preparing ----------------------------------------------------------------------------- */

static cfx_status prepare(cfx_at at, cfx_module *m, const cfx_quantize_options *o,
                          const cfx_qrules *rules, cfx_error *err)
{
    const cfx_module_tree tree = cfxi_capture_scope_tree(at.scope, m);
    const cfx_quantize_host host = cfxi_capture_quantize_host(m);
    const cfx_prepare_options how = {.every_spelling = true, .left = o->left, .ctx = o->ctx,
                                     .backend = o->backend};
    return cfx_graph_prepare(m->graph, &tree, &host, rules, &how, err);
}

static cfx_status prepare_usual(cfx_at at, cfx_module *m, const cfx_quantize_options *o,
                                cfx_error *err)
{
    cfx_qrules *rules = o->rules ? NULL : cfx_qrules_new(at.scope->allocator, err);
    cfx_status status = o->rules || rules ? CFX_OK : CFX_E_NOMEM;
    if (rules)
        status = cfx_qrules_set_usual(rules, o, err);
    if (status == CFX_OK)
        status = prepare(at, m, o, rules ? rules : o->rules, err);
    cfx_qrules_free(rules);
    return status;
}

cfx_module *cfx_quantize_prepare_at(cfx_at at, cfx_module *m, cfx_quantize_options options)
{
    cfx_error err = {0};
    if (!expect(at, m, "prepare"))
        return NULL;
    if (m->training) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "%s is training; call cfx_module_train(m, false) before "
                          "it is prepared for quantization", cfxi_capture_module_title(m));
        return NULL;
    }
    const size_t mark = at.scope->modules.size;
    cfx_module *copy = m->graph ? cfxi_capture_own_copy(at, m)
                                : cfx_trace_at(at, m, (cfx_trace_options){0});
    cfx_transform_at(at, copy, options.equalize ? "inline,fuse_bn,equalize" : "inline,fuse_bn");
    if (cfx_scope_ok(at.scope) && prepare_usual(at, copy, &options, &err) != CFX_OK)
        cfxi_capture_scope_take(at, &err);
    copy = cfx_scope_ok(at.scope) ? copy : NULL;
    cfxi_capture_scope_keep(at, mark, copy);
    return copy;
}

/* ---- converting ---------------------------------------------------------------------------- */

static cfx_status convert(cfx_at at, cfx_module *m, const char *const *keep, size_t n,
                          const cfx_quantize_options *o, cfx_error *err)
{
    const cfx_module_tree tree = cfxi_capture_scope_tree(at.scope, m);
    const cfx_quantize_host host = cfxi_capture_quantize_host(m);
    const cfx_convert_options how = {.keep = keep, .n_keep = n, .left = o->left, .ctx = o->ctx};
    return cfx_graph_convert(m->graph, &tree, &host, &how, err);
}

cfx_module *cfx_quantize_convert_at(cfx_at at, cfx_module *prepared, const char *const *keep,
                                    size_t n, cfx_quantize_options options)
{
    cfx_error err = {0};
    if (!expect(at, prepared, "convert"))
        return NULL;
    if (!prepared->graph) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "%s is not a prepared module: cfx_quantize_convert "
                          "takes what cfx_quantize_prepare returned",
                          cfxi_capture_module_title(prepared));
        return NULL;
    }
    const size_t mark = at.scope->modules.size;
    cfx_module *copy = cfxi_capture_own_copy(at, prepared);
    if (copy && convert(at, copy, keep, n, &options, &err) != CFX_OK)
        cfxi_capture_scope_take(at, &err);
    else if (copy)
        cfx_transform_at(at, copy, "");  /* drops what the graph no longer names */
    copy = cfx_scope_ok(at.scope) ? copy : NULL;
    cfxi_capture_scope_keep(at, mark, copy);
    return copy;
}
