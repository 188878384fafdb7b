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

bool cli_is_class_name(const char *name)
{
    bool good = *name && !(*name >= '0' && *name <= '9') &&
                !cfx_name_is_reserved(name, strlen(name));
    for (const char *p = name; *p && good; p++)
        good = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
               *p == '_' || (unsigned char)*p >= 0x80;
    return good;
}

/* A text of a file, which may be anyone's: without what would steer the terminal. */
static void print_safely(const char *text)
{
    for (; *text; text++)
        putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

/* What a person wants to know of a .cfx file before its nodes: whose it is, what it takes. */
static cfx_status print_header(const cli_input *in, cfx_error *err)
{
    const cfx_package *p = in->package;
    size_t size;
    const char *text = cfx_package_text(p, "signature.ir", &size);
    const size_t others = cli_other_graphs(in);
    cfx_signature *s = text ? cfx_signature_parse(text, size, NULL, err) : NULL;
    if (text && !s)
        return err->status;
    printf("%s", cli_ink_on(stdout, CLI_BOLD));
    print_safely(*cfx_package_model(p) ? cfx_package_model(p) : "a model");
    printf("%s, written by ", cli_ink_on(stdout, CLI_PLAIN));
    print_safely(cfx_package_producer(p));
    printf("\n");
    if (!cfx_package_weights(p))
        printf("its weights are kept elsewhere\n");
    if (others)
        printf("this graph is the first of %zu, each for other inputs\n", others + 1);
    cfx_status status = s ? cfx_signature_print(s, cli_stdout(), err) : CFX_OK;
    printf("\n");
    cfx_signature_free(s);
    return status;
}

/* With the layers of a .cfx file, code is a class that has them; its name is the model's. */
static cfx_status generate(const cfx_generator *generator, const cli_input *in,
                           cfx_generate_options how, cfx_sink out, cfx_error *err)
{
    const cfx_module_tree tree = cfx_module_as_tree(in->module);
    if (in->package && strcmp(generator->name, "table") == 0) {
        cfx_status status = print_header(in, err);
        if (status != CFX_OK)
            return status;
    }
    if (!in->module || !(generator->flags & CFX_GENERATOR_MODULES))
        return cfx_generate(generator, in->graph, &how, out, err);
    const char *model = cfx_package_model(in->package);
    how.modules = &tree;
    if (!how.class_name)
        how.class_name = cli_is_class_name(model) ? model : "Model";
    return cfx_generate(generator, cfx_module_graph(in->module), &how, out, err);
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
        if (generate(generator, &in, *options, out, &err) != CFX_OK)
            code = cli_failed(&in, &err);
        if (coloured)
            cli_colour_free(&colour);
    }
    cli_close(&in);
    return code;
}
