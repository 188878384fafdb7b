/* cfile.c - a graph as a C file: a copy is lowered, but for the modules that C can make, and
 * written as functions of operators.h.
 *
 * What was lowered has one row for each call and positions for keywords, so one way to write a call
 * is enough. A module stays one if its class is in nn.def; others become calls of rows.
 */
#include "ccode_impl.h"

#include <cfx/lower.h>

/* Lowering has words for what is in its way, with the user's line. */
static cfx_status note(void *ctx, const cfx_node *n, const char *why)
{
    cfxi_ccode *c = ctx;
    (void)n;
    cfxi_emit_c_refuse(c, NULL, "%s", why);
    return CFX_OK;
}

static cfx_status refusal(cfxi_ccode *c, cfx_error *err)
{
    if (c->refused == 0)
        return CFX_OK;
    cfxi_base_utf8_clean(c->why.message);  /* it may have been cut inside a character */
    if (err)
        *err = c->why;
    return CFX_E_TYPE;
}

static cfx_status lower(cfxi_ccode *c, cfx_error *err)
{
    const cfx_lower_options options = {
        .each = note, .keep = c->modules ? cfxi_emit_c_keep : NULL, .ctx = c,
    };
    const cfx_status status = cfx_graph_lower(c->g, c->given, &options, err);
    return c->refused > 0 ? refusal(c, err) : status;
}

static cfx_status generate(cfxi_ccode *c, cfx_error *err)
{
    size_t inputs;
    CFX_TRY(lower(c, err));
    c->functions = cfx_namespace_new(c->allocator, err);
    if (!c->functions)
        return CFX_E_NOMEM;
    CFX_TRY(cfxi_emit_c_functions(c, &inputs, err));
    CFX_TRY(cfxi_emit_c_model(c, inputs, err));
    return refusal(c, err);
}

static cfx_status write_file(const cfxi_ccode *c, cfx_sink sink, cfx_error *err)
{
    cfxi_out out;
    cfxi_base_out_begin(&out, sink);
    cfxi_base_out_str(&out, "#include <cfx/cfx.h>\n");
    cfxi_base_out_str(&out, c->math ? "#include <math.h>\n" : "");
    cfxi_base_out_str(&out, "\ncfx_module *cfx_model(cfx_scope *s);\n");
    cfxi_base_out_write(&out, c->text.data, c->text.size);
    return cfxi_base_out_end(&out, err);
}

cfx_status cfx_codegen_c(cfx_graph *g, const cfx_module_tree *modules, const char *class_name,
                         cfx_sink out, cfx_error *err)
{
    cfx_error own;
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    err = cfxi_base_error_or(err, &own);
    if (class_name && !cfxi_base_is_identifier(class_name, strlen(class_name)))
        return cfx_error_set(err, CFX_E_VALUE, "'%.60s' is not a class name; use letters, digits "
                             "and underscores", class_name);
    cfxi_ccode c = {
        .modules = cfxi_analysis_modules_or_null(modules),
        .given = modules,
        .class_name = class_name ? class_name : "Model",
        .allocator = g->allocator,
        .g = cfx_graph_clone(g, NULL, err),
    };
    if (!c.g)
        return err->status;
    cfx_buffer_init(&c.line, c.allocator);
    cfx_buffer_init(&c.body, c.allocator);
    cfx_buffer_init(&c.text, c.allocator);
    cfx_status status = generate(&c, err);
    if (status == CFX_OK)
        status = write_file(&c, out, err);
    cfx_buffer_free(&c.line);
    cfx_buffer_free(&c.body);
    cfx_buffer_free(&c.text);
    cfxi_base_pointers_free(&c.function_of, c.allocator);
    cfx_namespace_free(c.functions);
    cfx_graph_release(c.g);
    return status;
}
