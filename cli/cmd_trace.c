/* cmd_trace.c - cfx trace: captures a model that is written in C. Models of PyTorch are captured by
 * the Python package (python/cfx/_command), which has this verb, too. */
#include "cli.h"

enum { TRACE_OUTPUT, TRACE_WEIGHTS, TRACE_NO_WEIGHTS, TRACE_SHAPES, TRACE_CONCRETE,
       TRACE_PASS, TRACE_LOWER, TRACE_KEEP, TRACE_CFLAGS, TRACE_TO };

static const cli_option verb_options[] = {
    [TRACE_OUTPUT] = {"--output", "FILE", false,
                      "write the graph to FILE, or all to a .cfx file; or -o FILE", false},
    [TRACE_WEIGHTS] = {"--weights", "FILE", false,
                       "write the weights there: {tensors}; the default is beside the output",
                       false},
    [TRACE_NO_WEIGHTS] = {"--no-weights", NULL, false, "write the graph only", false},
    [TRACE_SHAPES] = {"--shapes", "x=TYPE[N,3]", false,
                      "types and shapes of the inputs, checked during capture", false},
    [TRACE_CONCRETE] = {"--concrete-args", "y=None", false,
                        "inputs to replace by constants in the graph", false},
    [TRACE_PASS] = {"--pass", "A,B,...", false, "run passes over the graph, such as fuse_bn",
                    false},
    [TRACE_LOWER] = {"--lower", NULL, false,
                     "make every call an operator, for cfx run (the default)", false},
    [TRACE_KEEP] = {"--keep-modules", NULL, false, "keep calls as they are written", false},
    [TRACE_CFLAGS] = {"--cflags", "FLAGS", false, "extra flags for the compiler (CC, or cc)",
                      false},
    [TRACE_TO] = {"--to", "GENERATOR", false, "the form of the graph: see below", false},
    {NULL, NULL, false, NULL, false},
};

/* ---- the verb ------------------------------------------------------------------------------ */

static int trace(const cli_args *args, const cli_model *m, const cli_written *what)
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
    return cli_write_captured(m, captured, what);
}

static int cmd_trace(const cli_args *args)
{
    cli_model m;
    const cfx_generator *generator;
    if (cli_generator(args, TRACE_TO, &generator) != CLI_OK)
        return CLI_BAD_USAGE;
    if (args->values[TRACE_LOWER] && args->values[TRACE_KEEP])
        return cli_usage_error(args->verb, "give either --lower or --keep-modules, not both");
    const cli_written what = {
        .output = args->values[TRACE_OUTPUT], .weights = args->values[TRACE_WEIGHTS],
        .no_weights = args->values[TRACE_NO_WEIGHTS] != NULL,
        .keep_modules = args->values[TRACE_KEEP] != NULL,
        .lower = args->values[TRACE_LOWER] != NULL, .generator = generator};
    if (cli_check_written(args, &what) != CLI_OK)
        return CLI_BAD_USAGE;
    int code = cli_model_begin(&m, args->file, NULL, args->values[TRACE_CFLAGS]);
    if (code == CLI_OK)
        code = trace(args, &m, &what);
    cli_model_end(&m);
    return code;
}

const cli_verb verb_trace = {
    .name = "trace",
    .summary = "capture a model in C, or a PyTorch module, as IR text",
    .usage = "[-o FILE] [--weights FILE | --no-weights] [--shapes INPUTS]\n"
              "                 [--pass A,B,...] [--concrete-args INPUTS]\n"
              "                 [--lower | --keep-modules] [--cflags FLAGS]\n"
              "                 [--to GENERATOR] FILE",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .generator = "text",
    .examples =
        "  cfx trace model.c                 prints the graph of its cfx_model\n"
        "  cfx trace -o model.ir --pass fuse_bn model.c       and model.safetensors\n"
        "  cfx trace -o model.cfx model.c    graph, layers and weights in one file\n"
        "  cfx trace --shapes 'x=float32[N, 3, 224, 224]' model.c\n"
        "  cfx trace --keep-modules model.c | cfx show\n"
        "  python -m cfx trace net.py:Net -o net.ir           a PyTorch module\n"
        "  python -m cfx trace --help                         its options\n",
    .run = cmd_trace,
};
