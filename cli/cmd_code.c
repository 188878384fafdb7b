/* cmd_code.c - cfx code: a graph as a complete Python or C file. */
#include "cli.h"

#include <string.h>

enum { CODE_CLASS, CODE_C };

const cli_option code_options[] = {
    [CODE_CLASS] = {"--class", "NAME", false, "write a torch.nn.Module, not a function"},
    [CODE_C] = {"--c", NULL, false, "write C: forward, and cfx_model, which makes it"},
    {NULL, NULL, false, NULL},
};

static cfx_status write_code(cfx_graph *g, const char *name, bool c, cfx_error *err)
{
    if (c)
        return cfx_codegen_c(g, NULL, name, cli_stdout(), err);
    return cfx_codegen_python_file(g, name, cli_stdout(), err);
}

/* A name that Python takes for a class and that hides nothing the code may need. */
static bool is_class_name(const char *name)
{
    bool good = *name && !(*name >= '0' && *name <= '9') &&
                !cfx_name_is_reserved(name, strlen(name));
    for (const char *p = name; *p && good; p++)
        good = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
               *p == '_' || (unsigned char)*p >= 0x80;
    return good;
}

int cmd_code(const cli_args *args)
{
    const char *name = args->values[CODE_CLASS];
    cfx_error err = {.status = CFX_OK};
    cli_input in;
    int code = CLI_OK;
    if (name && !is_class_name(name))
        return cli_usage_error(args->verb, "'%s' cannot be the name of a class; use a word such as "
                               "Model", name);
    if (!cli_open(&in, args->file))
        code = CLI_UNREADABLE;
    else if (cli_findings(&in, cfx_graph_lint) > 0)
        code = CLI_BAD_INPUT;
    else if (write_code(in.graph, name, args->values[CODE_C], &err) != CFX_OK)
        code = cli_failed(&in, &err);
    cli_close(&in);
    return code;
}
