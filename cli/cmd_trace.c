/* cmd_trace.c - cfx trace: captures a model that is written in C. */
#include "cli.h"

enum { TRACE_OUTPUT, TRACE_WEIGHTS, TRACE_SHAPES, TRACE_CONCRETE, TRACE_PASS, TRACE_LOWER,
       TRACE_KEEP, TRACE_CFLAGS };

const cli_option trace_options[] = {
    [TRACE_OUTPUT] = {"--output", "FILE", false, "write the graph there; or -o FILE", false},
    [TRACE_WEIGHTS] = {"--weights", "FILE", false, "write the weights there, as .safetensors",
                       false},
    [TRACE_SHAPES] = {"--shapes", "x=TYPE[N,3]", false,
                      "types and shapes of the inputs, to check them against", false},
    [TRACE_CONCRETE] = {"--concrete-args", "y=None", false,
                        "inputs to capture as constants; the graph has them not", false},
    [TRACE_PASS] = {"--pass", "A,B,...", false, "run passes over the graph, such as fuse_bn",
                    false},
    [TRACE_LOWER] = {"--lower", NULL, false,
                     "make every call an operator, for cfx run (the default)", false},
    [TRACE_KEEP] = {"--keep-modules", NULL, false, "calls stay as they were written", false},
    [TRACE_CFLAGS] = {"--cflags", "FLAGS", false, "more words for the compiler, which is CC or cc",
                      false},
    {NULL, NULL, false, NULL, false},
};

/* ---- the verb ------------------------------------------------------------------------------ */

static int trace(const cli_args *args, const cli_model *m)
{
    cfx_scope *s = m->scope;
    const cfx_at nowhere = cfx_at_make(s, NULL, 0);
    const cfx_trace_options options = {.shapes = args->values[TRACE_SHAPES],
                                       .concrete_args = args->values[TRACE_CONCRETE]};
    cli_working("tracing");
    cfx_module *captured = cfx_trace_at(nowhere, m->module, options);
    if (args->values[TRACE_PASS])
        cfx_transform_at(nowhere, captured, args->values[TRACE_PASS]);
    if (!cfx_scope_ok(s) || cli_interrupted(NULL))
        return cli_model_failed(m);
    return cli_write_captured(m, captured, &(cli_written){
        .output = args->values[TRACE_OUTPUT], .weights = args->values[TRACE_WEIGHTS],
        .keep_modules = args->values[TRACE_KEEP] != NULL});
}

int cmd_trace(const cli_args *args)
{
    cli_model m;
    if (args->values[TRACE_LOWER] && args->values[TRACE_KEEP])
        return cli_usage_error(args->verb, "give one of --lower and --keep-modules");
    int code = cli_model_begin(&m, args->file, NULL, args->values[TRACE_CFLAGS]);
    if (code == CLI_OK)
        code = trace(args, &m);
    cli_model_end(&m);
    return code;
}
