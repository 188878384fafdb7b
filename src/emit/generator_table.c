/* generator_table.c - the table of generators, and those that codegen.h and graph.h declare too. */
#include "generator_impl.h"

enum {
    NONE = 0,
    LINTED = CFX_GENERATOR_LINTED,
    MODULES = CFX_GENERATOR_MODULES,
    COLOURED = CFX_GENERATOR_COLOURED,
    CLASS = CFX_GENERATOR_CLASS,
    WIDTH = CFX_GENERATOR_WIDTH,
    SCOPES = CFX_GENERATOR_SCOPES
};

static const cfx_generator generators[] = {
#define CFX_GENERATOR(name, extension, flags, summary)                                             \
    {#name, extension, summary, flags, cfxi_emit_##name##_generate},
#include "generator.def"
#undef CFX_GENERATOR
};

enum { GENERATOR_COUNT = sizeof generators / sizeof *generators };

const cfx_generator *cfx_generator_get(size_t i)
{
    return i < GENERATOR_COUNT ? &generators[i] : NULL;
}

const cfx_generator *cfx_generator_find(const char *name)
{
    for (size_t i = 0; i < GENERATOR_COUNT; i++)
        if (strcmp(generators[i].name, name) == 0)
            return &generators[i];
    return NULL;
}

cfx_status cfx_generate(const cfx_generator *generator, cfx_graph *g,
                        const cfx_generate_options *options, cfx_sink out, cfx_error *err)
{
    static const cfx_generate_options none;
    CFX_TRY(cfxi_base_expect(generator, "generator", err));
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    return generator->run(g, options ? options : &none, out, err);
}

/* ---- generators with functions of their own ------------------------------------------------ */

cfx_status cfxi_emit_c_generate(cfx_graph *g, const cfx_generate_options *options, cfx_sink out,
                                cfx_error *err)
{
    return cfx_codegen_c(g, options->modules, options->class_name, out, err);
}

cfx_status cfxi_emit_dot_generate(cfx_graph *g, const cfx_generate_options *options, cfx_sink out,
                                  cfx_error *err)
{
    const cfx_dot_options dot = {.module_stacks = options->module_stacks, .locations = true};
    return cfx_codegen_dot(g, &dot, out, err);
}

cfx_status cfxi_emit_json_generate(cfx_graph *g, const cfx_generate_options *options, cfx_sink out,
                                   cfx_error *err)
{
    (void)options;
    return cfx_codegen_json(g, out, err);
}

/* With the modules, a class that makes them. */
cfx_status cfxi_emit_python_generate(cfx_graph *g, const cfx_generate_options *options,
                                     cfx_sink out, cfx_error *err)
{
    if (!options->modules)
        return cfx_codegen_python_file(g, options->class_name, out, err);
    return cfx_codegen_python_module(g, options->modules, options->class_name, out, err);
}

cfx_status cfxi_emit_str_generate(cfx_graph *g, const cfx_generate_options *options, cfx_sink out,
                                  cfx_error *err)
{
    cfxi_out end;
    (void)options;
    CFX_TRY(cfx_graph_print(g, out, err));
    cfxi_base_out_begin(&end, out);
    cfxi_base_out_char(&end, '\n');
    return cfxi_base_out_end(&end, err);
}

cfx_status cfxi_emit_table_generate(cfx_graph *g, const cfx_generate_options *options, cfx_sink out,
                                    cfx_error *err)
{
    return cfx_graph_table(g, options->width, out, err);
}

cfx_status cfxi_emit_text_generate(cfx_graph *g, const cfx_generate_options *options, cfx_sink out,
                                   cfx_error *err)
{
    (void)options;
    return cfx_graph_text(g, out, err);
}
