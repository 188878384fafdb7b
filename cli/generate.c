/* generate.c - a graph in any form of the table of generators: cfx show and cfx code. */
#include "cli.h"

#include <string.h>

enum { MOST = 64 };

int cli_generator(const cli_args *args, int option, const cfx_generator **out)
{
    const char *names[MOST];
    size_t n = 0;
    const char *name = args->values[option] ? args->values[option] : args->verb->generator;
    *out = cfx_generator_find(name);
    if (*out)
        return CLI_OK;
    for (; n < MOST && cfx_generator_get(n); n++)
        names[n] = cfx_generator_get(n)->name;
    const char *near = cli_nearest(name, names, sizeof *names, n);
    return cli_usage_error(args->verb, "there is no generator '%s'%s%s%s", name,
                           near ? "; did you mean " : "; cfx help code lists them",
                           near ? near : "", near ? "?" : "");
}

bool cli_generator_takes(const cli_args *args, int option, const cfx_generator *generator,
                         unsigned flag)
{
    char all[200] = "";
    size_t n = 0;
    if (!args->values[option] || generator->flags & flag)
        return true;
    for (size_t i = 0; cfx_generator_get(i); i++)
        if (cfx_generator_get(i)->flags & flag)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s--%s", n++ ? " and " : "",
                     cfx_generator_get(i)->name);
    cli_usage_error(args->verb, "%s belongs to %s", args->verb->options[option].name, all);
    return false;
}

int cli_generate(const cli_args *args, const cfx_generator *generator,
                 const cfx_generate_options *options)
{
    cli_input in;
    cli_colour colour;
    cfx_error err = {.status = CFX_OK};
    int code = CLI_OK;
    const bool coloured = cli_has_colour(stdout) && generator->flags & CFX_GENERATOR_COLOURED;
    if (!cli_open(&in, args->file)) {
        code = CLI_UNREADABLE;
    } else if (generator->flags & CFX_GENERATOR_LINTED && cli_findings(&in, cfx_graph_lint) > 0) {
        code = CLI_BAD_INPUT;
    } else {
        cfx_sink out = coloured ? cli_colour_sink(&colour, cli_stdout()) : cli_stdout();
        if (cfx_generate(generator, in.graph, options, out, &err) != CFX_OK)
            code = cli_failed(&in, &err);
        if (coloured)
            cli_colour_free(&colour);
    }
    cli_close(&in);
    return code;
}
