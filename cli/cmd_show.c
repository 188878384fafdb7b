/* cmd_show.c - cfx show: a graph as a table, as IR text, as torch.fx prints it, or as a picture. */
#include "cli.h"

#include <string.h>

enum { SHOW_TABLE, SHOW_TEXT, SHOW_STR, SHOW_DOT, SHOW_JSON, SHOW_SCOPES, SHOW_WIDE, SHOW_WIDTH,
       SHOW_SHAPES, SHOW_WEIGHTS };

const cli_option show_options[] = {
    [SHOW_TABLE] = {"--table", NULL, false, "one row for each node (the default)"},
    [SHOW_TEXT] = {"--text", NULL, false, "the lossless IR text, laid out anew"},
    [SHOW_STR] = {"--str", NULL, false, "what torch.fx prints for str(graph)"},
    [SHOW_DOT] = {"--dot", NULL, false, "a picture for Graphviz: cfx show --dot F | dot -Tsvg"},
    [SHOW_JSON] = {"--json", NULL, false, "every field of every node, as JSON"},
    [SHOW_SCOPES] = {"--scopes", NULL, false, "in the picture, a box around each module call"},
    [SHOW_WIDE] = {"--wide", NULL, false, "never cut the table to the terminal's width"},
    [SHOW_WIDTH] = {"--width", "N", false, "cut the table to N columns, also into a file"},
    [SHOW_SHAPES] = {"--shapes", "x=TYPE[N,3]", false, "what each node gives, for such inputs"},
    [SHOW_WEIGHTS] = {"--weights", "FILE", false, "for --shapes: the parameters"},
    {NULL, NULL, false, NULL},
};

static cfx_status show(const cli_args *args, cfx_graph *g, size_t width, cfx_sink out,
                       cfx_error *err)
{
    if (args->values[SHOW_TEXT])
        return cfx_graph_text(g, out, err);
    if (args->values[SHOW_JSON])
        return cfx_codegen_json(g, out, err);
    if (args->values[SHOW_DOT]) {
        const cfx_dot_options options = {.module_stacks = args->values[SHOW_SCOPES],
                                         .locations = true};
        return cfx_codegen_dot(g, &options, out, err);
    }
    if (!args->values[SHOW_STR])
        return cfx_graph_table(g, width, out, err);
    cfx_status status = cfx_graph_print(g, out, err);
    return status ? status : out.write(out.ctx, "\n", 1);
}

static int show_shapes(const cli_args *args)
{
    cli_input in;
    cfx_error err = {.status = CFX_OK};
    bool told = false;
    int code = CLI_OK;
    if (!cli_open(&in, args->file))
        code = CLI_UNREADABLE;
    else if (cli_show_shapes(&in, args->values[SHOW_SHAPES], args->values[SHOW_WEIGHTS], &told,
                             cli_stdout(), &err) != CFX_OK)
        code = told ? CLI_BAD_INPUT : cli_failed(&in, &err);
    cli_close(&in);
    return code;
}

int cmd_show(const cli_args *args)
{
    cli_input in;
    cli_colour colour;
    size_t width;
    cfx_error err = {.status = CFX_OK};
    int code = CLI_OK;
    int forms = 0;
    for (int i = SHOW_TABLE; i <= SHOW_JSON; i++)
        forms += args->values[i] != NULL;
    if (forms > 1)
        return cli_usage_error(args->verb, "give one of --table, --text, --str, --dot and --json");
    if (args->values[SHOW_SCOPES] && !args->values[SHOW_DOT])
        return cli_usage_error(args->verb, "--scopes belongs to --dot");
    if (!cli_table_width(args->values[SHOW_WIDTH], args->values[SHOW_WIDE] != NULL, &width))
        return cli_usage_error(args->verb, "--width needs a number of columns, not '%s'",
                               args->values[SHOW_WIDTH]);
    if (args->values[SHOW_SHAPES] && forms)
        return cli_usage_error(args->verb, "--shapes is a form of its own");
    if (args->values[SHOW_WEIGHTS] && !args->values[SHOW_SHAPES])
        return cli_usage_error(args->verb, "--weights belongs to --shapes");
    if (args->values[SHOW_SHAPES])
        return show_shapes(args);
    if (cli_open(&in, args->file)) {
        bool coloured = cli_has_colour(stdout) && !args->values[SHOW_DOT] &&
                        !args->values[SHOW_JSON];
        cfx_sink out = coloured ? cli_colour_sink(&colour, cli_stdout()) : cli_stdout();
        if (show(args, in.graph, width, out, &err) != CFX_OK)
            code = cli_failed(&in, &err);
        if (coloured)
            cli_colour_free(&colour);
    } else {
        code = CLI_UNREADABLE;
    }
    cli_close(&in);
    return code;
}
