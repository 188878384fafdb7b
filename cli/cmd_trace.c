/* cmd_trace.c - cfx trace: captures a model that is written in C. */
#include "cli.h"

#include <string.h>

enum { TRACE_OUTPUT, TRACE_WEIGHTS, TRACE_SHAPES, TRACE_CONCRETE, TRACE_PASS, TRACE_LOWER,
       TRACE_KEEP, TRACE_CFLAGS };

const cli_option trace_options[] = {
    [TRACE_OUTPUT] = {"--output", "FILE", false, "write the graph there; or -o FILE", false},
    [TRACE_WEIGHTS] = {"--weights", "FILE", false, "write the weights there, as .safetensors",
                       false},
    [TRACE_SHAPES] = {"--shapes", "x=TYPE[N,3]", false,
                      "types and shapes of the inputs, to check them against", false},
    [TRACE_CONCRETE] = {"--concrete-args", "y=None", false,
                        "inputs to capture as constants, which are none of the graph's", false},
    [TRACE_PASS] = {"--pass", "A,B,...", false, "run passes over the graph, such as fuse_bn",
                    false},
    [TRACE_LOWER] = {"--lower", NULL, false,
                     "make every call an operator, for cfx run (the default)", false},
    [TRACE_KEEP] = {"--keep-modules", NULL, false, "calls stay as they were written", false},
    [TRACE_CFLAGS] = {"--cflags", "FLAGS", false, "more words for the compiler, which is CC or cc",
                      false},
    {NULL, NULL, false, NULL, false},
};

/* ---- lowering ------------------------------------------------------------------------------ */

static cfx_status tell(void *ctx, const cfx_node *n, const char *why)
{
    (void)n;
    *(bool *)ctx = true;
    fprintf(stderr, "%s\n", why);
    return CFX_OK;
}

static int lower(const cli_model *m, cfx_module *captured)
{
    const cfx_modules tree = cfx_module_tree(captured);
    cfx_error err = {.status = CFX_OK};
    bool told = false;
    const cfx_lower_options options = {.each = tell, .ctx = &told};
    if (cfx_graph_lower(cfx_module_graph(captured), &tree, &options, &err) == CFX_OK)
        return CLI_OK;
    if (!told)
        fprintf(stderr, "%s: %s\n", m->name, err.message);
    return CLI_BAD_INPUT;
}

/* ---- writing ------------------------------------------------------------------------------- */

static int write_file(const char *path, const cfx_buffer *text)
{
    FILE *file = fopen(path, "w");
    bool good = file && fwrite(text->data, 1, text->size, file) == text->size;
    good = file && fclose(file) == 0 && good;
    if (!good)
        perror(path);
    return good ? CLI_OK : CLI_BAD_INPUT;
}

/* All of the text is there before a file is touched. */
static int write_graph(const cli_args *args, const cli_model *m, cfx_graph *g)
{
    const char *path = args->values[TRACE_OUTPUT];
    cfx_buffer text;
    cfx_error err = {.status = CFX_OK};
    int code = CLI_OK;
    cfx_buffer_init(&text, NULL);
    if (cfx_graph_text(g, cfx_buffer_sink(&text), &err) != CFX_OK) {
        fprintf(stderr, "%s: %s\n", m->name, err.message);
        code = CLI_BAD_INPUT;
    } else if (path) {
        code = write_file(path, &text);
    } else if (cli_has_colour(stdout)) {
        cli_colour colour;
        cfx_sink out = cli_colour_sink(&colour, cli_stdout());
        out.write(out.ctx, text.data, text.size);
        cli_colour_free(&colour);
    } else {
        fwrite(text.data, 1, text.size, stdout);
    }
    cfx_buffer_free(&text);
    return code;
}

static int write_weights(const cli_args *args, const cli_model *m, cfx_module *captured,
                         size_t *tensors)
{
    cfx_state *state = cfx_module_state(m->scope, captured);
    cfx_error err = {.status = CFX_OK};
    int code = CLI_OK;
    if (!state)
        return cli_model_failed(m);
    *tensors = cfx_state_size(state);
    if (cfx_safetensors_save(state, args->values[TRACE_WEIGHTS], &err) != CFX_OK) {
        fprintf(stderr, "%s: %s\n", args->values[TRACE_WEIGHTS], err.message);
        code = CLI_BAD_INPUT;
    }
    cfx_state_free(state);
    return code;
}

/* Standard output is free to say what was done if the graph went elsewhere. */
static void print_summary(const cli_args *args, cfx_graph *g, size_t tensors)
{
    if (!args->values[TRACE_OUTPUT])
        return;
    printf("%s: %zu nodes, %s\n", args->values[TRACE_OUTPUT], cfx_graph_size(g),
           args->values[TRACE_KEEP] ? "with calls of modules (cfx show, cfx code)"
                                    : "every call an operator (cfx run)");
    if (args->values[TRACE_WEIGHTS])
        printf("%s: %zu tensor%s\n", args->values[TRACE_WEIGHTS], tensors, tensors == 1 ? "" : "s");
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int trace(const cli_args *args, const cli_model *m)
{
    cfx_scope *s = m->scope;
    const cfx_at nowhere = cfx_at_make(s, NULL, 0);
    const cfx_trace_options options = {.shapes = args->values[TRACE_SHAPES],
                                       .concrete_args = args->values[TRACE_CONCRETE]};
    size_t tensors = 0;
    cli_working("tracing");
    cfx_module *captured = cfx_trace_at(nowhere, m->module, options);
    if (args->values[TRACE_PASS])
        cfx_transform_at(nowhere, captured, args->values[TRACE_PASS]);
    if (!cfx_ok(s) || cli_interrupted(NULL))
        return cli_model_failed(m);
    int code = args->values[TRACE_KEEP] ? CLI_OK : lower(m, captured);
    cli_progress_end();
    if (code == CLI_OK && args->values[TRACE_WEIGHTS])
        code = write_weights(args, m, captured, &tensors);
    if (code == CLI_OK)
        code = write_graph(args, m, cfx_module_graph(captured));
    if (code == CLI_OK)
        print_summary(args, cfx_module_graph(captured), tensors);
    return code;
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
