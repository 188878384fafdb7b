/* cmd_code.c - cfx code: a graph as source code, in any form of the table of generators. */
#include "cli.h"

enum { CODE_TO, CODE_CLASS };

static const cli_option verb_options[] = {
    [CODE_TO] = {"--to", "GENERATOR", false, "the form to write: see below", false},
    [CODE_CLASS] = {"--class", "NAME", false, "write a torch.nn.Module, not a function", false},
    {NULL, NULL, false, NULL, false},
};

static int cmd_code(const cli_args *args)
{
    const char *name = args->values[CODE_CLASS];
    const cfx_generator *generator;
    if (name && !cli_is_class_name(name))
        return cli_usage_error(args->verb, "'%s' is not a valid class name; use a name such as "
                               "Model", name);
    int code = cli_generator(args, CODE_TO, &generator);
    if (code != CLI_OK)
        return code;
    if (!cli_generator_takes(args, CODE_CLASS, generator, CFX_GENERATOR_CLASS))
        return CLI_BAD_USAGE;
    return cli_generate(args, generator, &(cfx_generate_options){.class_name = name});
}

const cli_verb verb_code = {
    .name = "code",
    .summary = "write a graph as a Python or C file",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .generator = "python",
    .examples =
        "  cfx code model.ir                 a function forward(...)\n"
        "  cfx code --class Model model.ir   class Model(torch.nn.Module)\n"
        "  cfx code --c model.ir             C: forward(...), and cfx_model(...)\n"
        "  cfx code model.cfx                a class with the model's layers\n",
    .run = cmd_code,
};
