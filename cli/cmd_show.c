/* cmd_show.c - cfx show: a graph as a table, as IR text, as torch.fx prints it, or as a picture. */
#include "cli.h"

#include <string.h>

enum { SHOW_TO, SHOW_SCOPES, SHOW_WIDE, SHOW_WIDTH, SHOW_SHAPES, SHOW_WEIGHTS };

static const cli_option verb_options[] = {
    [SHOW_TO] = {"--to", "GENERATOR", false, "the form to print: see below", false},
    [SHOW_SCOPES] = {"--scopes", NULL, false, "in a picture, a box around each module call", false},
    [SHOW_WIDE] = {"--wide", NULL, false, "never cut the table to the terminal's width", false},
    [SHOW_WIDTH] = {"--width", "N", false, "cut the table to N columns, even in a file", false},
    [SHOW_SHAPES] = {"--shapes", "x=TYPE[N,3]", false, "the type and shape of each node, for these "
                                                       "inputs",
                     false},
    [SHOW_WEIGHTS] = {"--weights", "FILE", false, "for --shapes: the parameters", false},
    {NULL, NULL, false, NULL, false},
};

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

static int cmd_show(const cli_args *args)
{
    const cfx_generator *generator;
    cfx_generate_options how = {.module_stacks = args->values[SHOW_SCOPES] != NULL};
    int code = cli_generator(args, SHOW_TO, &generator);
    if (code != CLI_OK)
        return code;
    if (!cli_generator_takes(args, SHOW_SCOPES, generator, CFX_GENERATOR_SCOPES))
        return CLI_BAD_USAGE;
    if (!cli_table_width(args->values[SHOW_WIDTH], args->values[SHOW_WIDE] != NULL, &how.width))
        return cli_usage_error(args->verb, "--width needs a number of columns, not '%s'",
                               args->values[SHOW_WIDTH]);
    if (args->values[SHOW_SHAPES] && args->values[SHOW_TO])
        return cli_usage_error(args->verb, "--shapes cannot be combined with another output "
                               "format");
    if (args->values[SHOW_WEIGHTS] && !args->values[SHOW_SHAPES])
        return cli_usage_error(args->verb, "--weights needs --shapes");
    if (args->values[SHOW_SHAPES])
        return show_shapes(args);
    return cli_generate(args, generator, &how);
}

const cli_verb verb_show = {
    .name = "show",
    .summary = "print a graph: table, IR text, torch.fx's print, JSON, or a picture",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .generator = "table",
    .examples =
        "  cfx show model.ir                 a table, cut to the terminal's width\n  cfx show "
        "--wide model.ir | less -S\n  cfx show --text model.ir          the IR text, "
        "reformatted\n  cfx show --dot model.ir | dot -Tsvg >model.svg\n  cfx show --json model.ir "
        "| jq '.nodes[].target'\n  cfx show --shapes 'x=float32[N, 3, 224, 224]' model.ir\n",
    .run = cmd_show,
};
