/* main.c - the command cfx: its verbs, its help, and which function serves what. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const cli_verb verbs[] = {
    {"show", "print a graph: as a table, IR text, torch.fx's print, or a picture",
     "[--table | --text | --str | --dot [--scopes] | --shapes INPUTS]\n"
     "                [--wide | --width N] FILE",
     show_options,
     "  cfx show model.ir                 a table, cut to the terminal's width\n"
     "  cfx show --wide model.ir | less -S\n"
     "  cfx show --text model.ir          the IR text, laid out anew\n"
     "  cfx show --dot model.ir | dot -Tsvg >model.svg\n"
     "  cfx show --shapes 'x=float32[N, 3, 224, 224]' model.ir\n",
     cmd_show},
    {"code", "write a graph as a Python file", "[--class NAME] FILE", code_options,
     "  cfx code model.ir                 a function forward(...)\n"
     "  cfx code --class Model model.ir   class Model(torch.nn.Module)\n",
     cmd_code},
    {"run", "compute a graph, and print or write what it gives",
     "[--weights FILE] [--input [NAME=]FILE.npy]... [--output FILE.npy]\n"
     "               FILE", run_options,
     "  cfx run --weights model.safetensors --input x.npy model.ir\n"
     "  cfx run --input x=x.npy --input scale=2.5 --output y.npy model.ir\n"
     "  cfx run --time --threads 2 --input x.npy model.ir\n",
     cmd_run},
    {"opt", "run passes over a graph, and print the IR text of the result",
     "--pass A,B,... [--dump-after[=PASS]] FILE", opt_options,
     "  cfx opt --pass dce model.ir >small.ir\n"
     "  cfx opt --pass dce model.ir | cfx code\n"
     "  cfx opt --pass dce --dump-after model.ir >small.ir\n",
     cmd_opt},
    {"check", "say whether a graph is well formed, and all that is wrong with it", "FILE", NULL,
     "  cfx check model.ir                exits with 0 if it is, else with 1\n"
     "  cfx opt --pass dce model.ir | cfx check\n",
     cmd_check},
    {"ops", "list the operators, or explain one: what it takes, its effects, its names",
     "[--json] [--wide | --width N] [NAME]", ops_options,
     "  cfx ops                           all of them, cut to the terminal's width\n"
     "  cfx ops F.dropout                 one, by its name or any spelling\n"
     "  cfx ops | grep random\n"
     "  cfx ops --json conv2d\n",
     cmd_ops},
    {"passes", "list the passes that opt can run, or explain one", "[NAME]", NULL,
     "  cfx passes\n"
     "  cfx passes fuse_bn                what it needs, and what it keeps as it was\n",
     cmd_passes},
};

enum { VERB_COUNT = sizeof verbs / sizeof *verbs };

static const cli_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

/* ---- help ---------------------------------------------------------------------------------- */

static int help(FILE *out, int code)
{
    fprintf(out, "usage: cfx VERB [OPTION...] [FILE]\n\n"
                 "Reads a graph from FILE, in IR text; - or no FILE is standard input.\n\n");
    for (size_t i = 0; i < VERB_COUNT; i++)
        fprintf(out, "  %-11s%s\n", verbs[i].name, verbs[i].summary);
    fprintf(out, "  %-11s%s\n", "help", "explain a verb, with examples: cfx help show");
    fprintf(out, "  %-11s%s\n\n", "--version", "print the version");
    fprintf(out, "Exit status: 0 done, 1 the input is wrong, 2 the command line is wrong.\n");
    return code;
}

static void print_option(const cli_option *option)
{
    char name[32];
    const char *before = option->may_omit ? "[=" : option->value ? " " : "";
    snprintf(name, sizeof name, "%s%s%s%s", option->name, before,
             option->value ? option->value : "", option->may_omit ? "]" : "");
    printf("  %-22s%s\n", name, option->summary);
}

static int help_verb(const cli_verb *verb)
{
    printf("cfx %s: %s\n\nusage: cfx %s%s%s\n\n", verb->name, verb->summary, verb->name,
           *verb->usage ? " " : "", verb->usage);
    for (size_t i = 0; verb->options && verb->options[i].name; i++)
        print_option(&verb->options[i]);
    printf("%sexamples:\n%s", verb->options ? "\n" : "", verb->examples);
    return CLI_OK;
}

/* ---- dispatch ------------------------------------------------------------------------------ */

static int unknown_verb(const char *word)
{
    const char *words[VERB_COUNT + 3] = {"help", "--help", "--version"};
    for (size_t i = 0; i < VERB_COUNT; i++)
        words[i + 3] = verbs[i].name;
    const char *near = cli_nearest(word, words, sizeof *words, VERB_COUNT + 3);
    fprintf(stderr, "cfx: there is no verb '%s'%s%s%s\n", word, near ? "; did you mean " : "",
            near ? near : "", near ? "?" : "");
    fprintf(stderr, "usage: cfx VERB [OPTION...] [FILE]\nSee: cfx --help\n");
    return CLI_BAD_USAGE;
}

static bool is_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int run(int argc, char **argv)
{
    cli_args args;
    if (argc < 2)
        return help(stderr, CLI_BAD_USAGE);
    if (is_help(argv[1]) && argc == 2)
        return help(stdout, CLI_OK);
    if (strcmp(argv[1], "--version") == 0 && argc == 2) {
        printf("cfx %s\n", cfx_version());
        return CLI_OK;
    }
    const char *name = argv[is_help(argv[1]) ? 2 : 1];
    const cli_verb *verb = find_verb(name);
    if (!verb)
        return unknown_verb(name);
    if (is_help(argv[1]))
        return help_verb(verb);
    int code = cli_parse(verb, argc - 2, argv + 2, &args);
    if (code != CLI_OK)
        return code;
    return args.help ? help_verb(verb) : verb->run(&args);
}

int main(int argc, char **argv) { return cli_finish(run(argc, argv)); }
