/* main.c - the command cfx: its verbs, and which function serves what.
 *
 * The table is all there is to say of a verb: help, the manual page and what shells complete are
 * made of it.
 */
#include "cli.h"

#include <string.h>

const cli_verb cli_verbs[] = {
    {"show", "print a graph: table, IR text, torch.fx's print, JSON, or a picture",
     "[--table | --text | --str | --json | --dot [--scopes]]\n"
     "                [--shapes INPUTS] [--wide | --width N] FILE",
     CLI_ONE_FILE, show_options,
     "  cfx show model.ir                 a table, cut to the terminal's width\n"
     "  cfx show --wide model.ir | less -S\n"
     "  cfx show --text model.ir          the IR text, laid out anew\n"
     "  cfx show --dot model.ir | dot -Tsvg >model.svg\n"
     "  cfx show --json model.ir | jq '.nodes[].target'\n"
     "  cfx show --shapes 'x=float32[N, 3, 224, 224]' model.ir\n",
     cmd_show},
    {"stats", "count nodes, weights, operations and memory",
     "[--weights FILE] [--shapes INPUTS] [--json] FILE", CLI_ONE_FILE, stats_options,
     "  cfx stats model.ir                nodes by opcode and operator\n"
     "  cfx stats --weights model.safetensors --shapes 'x=[1, 3, 224, 224]' model.ir\n"
     "  cfx stats --weights model.safetensors --shapes 'x=[N, 3, 224, 224]' model.ir\n",
     cmd_stats},
    {"diff", "tell what differs between two graphs", "[--names] [--all] [--json] FILE FILE",
     CLI_TWO_FILES, diff_options,
     "  cfx diff old.ir new.ir            exits with 0 if they are the same, 1 if not\n"
     "  cfx opt --pass cse model.ir | cfx diff model.ir -\n"
     "  cfx diff --json old.ir new.ir | jq .counts\n",
     cmd_diff},
    {"code", "write a graph as a Python or C file", "[--c] [--class NAME] FILE", CLI_ONE_FILE,
     code_options,
     "  cfx code model.ir                 a function forward(...)\n"
     "  cfx code --class Model model.ir   class Model(torch.nn.Module)\n"
     "  cfx code --c model.ir             C: forward(...), and cfx_model(...)\n",
     cmd_code},
    {"run", "compute a graph, and print or write what it gives",
     "[--weights FILE] [--input [NAME=]FILE.npy]... [--output FILE.npy]\n"
     "               FILE", CLI_ONE_FILE, run_options,
     "  cfx run --weights model.safetensors --input x.npy model.ir\n"
     "  cfx run --input x=x.npy --input scale=2.5 --output y.npy model.ir\n"
     "  cfx run --time --threads 2 --input x.npy model.ir\n",
     cmd_run},
    {"opt", "run passes over a graph, and print the IR text of the result",
     "--pass A,B,... [--dump-after[=PASS]] FILE", CLI_ONE_FILE, opt_options,
     "  cfx opt --pass dce model.ir >small.ir\n"
     "  cfx opt --pass dce model.ir | cfx code\n"
     "  cfx opt --pass dce --dump-after model.ir >small.ir\n"
     "  cfx opt --pass unroll=4,cse model.ir\n"
     "  cfx opt --pass unroll:max_turns=4:max_nodes=99 model.ir\n",
     cmd_opt},
    {"check", "say whether a graph is well formed, and all that is wrong with it", "FILE",
     CLI_ONE_FILE, NULL,
     "  cfx check model.ir                exits with 0 if it is, else with 1\n"
     "  cfx opt --pass dce model.ir | cfx check\n",
     cmd_check},
    {"ops", "list the operators, or explain one: parameters, effects, names",
     "[--json] [--wide | --width N] [NAME]", CLI_OPERATOR, ops_options,
     "  cfx ops                           all of them, cut to the terminal's width\n"
     "  cfx ops F.dropout                 one, by its name or any spelling\n"
     "  cfx ops | grep random\n"
     "  cfx ops --json conv2d\n",
     cmd_ops},
    {"passes", "list the passes that opt can run, or explain one", "[--json] [NAME]",
     CLI_PASS_NAME, passes_options,
     "  cfx passes\n"
     "  cfx passes fuse_bn                what it needs, and what it keeps as it was\n"
     "  cfx passes --json\n",
     cmd_passes},
    {"trace", "capture a model that is written in C, as IR text",
     "[-o FILE] [--weights FILE] [--shapes INPUTS] [--pass A,B,...]\n"
     "                 [--concrete-args INPUTS] [--lower | --keep-modules]\n"
     "                 [--cflags FLAGS] FILE",
     CLI_ONE_FILE, trace_options,
     "  cfx trace model.c                 prints the graph of its cfx_model\n"
     "  cfx trace -o model.ir --weights model.safetensors --pass fuse_bn model.c\n"
     "  cfx trace --shapes 'x=float32[N, 3, 224, 224]' model.c\n"
     "  cfx trace --keep-modules model.c | cfx show\n",
     cmd_trace},
    {"script", "capture a model from its Python source, without Python",
     "[--call EXPRESSION | --function NAME] [-o FILE]\n"
     "                  [--weights FILE] [--pass A,B,...] [--eval] [--seed N]\n"
     "                  [--keep-modules | --python] FILE",
     CLI_ONE_FILE, script_options,
     "  cfx script model.py               its last nn.Module class, or only function\n"
     "  cfx script --call 'Net(16, depth=2)' -o n.ir --weights n.safetensors model.py\n"
     "  cfx run --weights n.safetensors --input x=x.npy n.ir\n"
     "  cfx script --keep-modules model.py | cfx show\n"
     "  cfx script --python model.py      the graph as a Python class again\n",
     cmd_script},
    {"demo", "capture a small network in C, transform it and run it, step by step", "",
     CLI_NO_OPERAND, NULL,
     "  cfx demo                          a few seconds; needs CC or cc\n",
     cmd_demo},
    {"completion", "print a script that lets a shell complete this command's words",
     "bash|zsh|fish", CLI_SHELL, NULL,
     "  source <(cfx completion bash)     for this session; or in ~/.bashrc\n"
     "  cfx completion zsh >~/.zfunc/_cfx\n"
     "  cfx completion fish >~/.config/fish/completions/cfx.fish\n",
     cmd_completion},
};

const size_t cli_num_verbs = sizeof cli_verbs / sizeof *cli_verbs;

enum { VERB_COUNT = sizeof cli_verbs / sizeof *cli_verbs };

static const cli_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (strcmp(cli_verbs[i].name, name) == 0)
            return &cli_verbs[i];
    return NULL;
}

/* ---- dispatch ------------------------------------------------------------------------------ */

static int unknown_verb(const char *word)
{
    const char *words[VERB_COUNT + 3] = {"help", "--help", "--version"};
    for (size_t i = 0; i < VERB_COUNT; i++)
        words[i + 3] = cli_verbs[i].name;
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
        return cli_help(stderr, CLI_BAD_USAGE);
    if (is_help(argv[1]) && argc == 2)
        return cli_help(stdout, CLI_OK);
    if (strcmp(argv[1], "--version") == 0 && argc == 2) {
        printf("cfx %s\n", cfx_version());
        return CLI_OK;
    }
    if (is_help(argv[1]) && strcmp(argv[2], "--man") == 0)
        return cli_help_man();
    const char *name = argv[is_help(argv[1]) ? 2 : 1];
    const cli_verb *verb = find_verb(name);
    if (!verb)
        return unknown_verb(name);
    if (is_help(argv[1]))
        return cli_help_verb(verb);
    int code = cli_parse(verb, argc - 2, argv + 2, &args);
    if (code != CLI_OK)
        return code;
    return args.help ? cli_help_verb(verb) : verb->run(&args);
}

int main(int argc, char **argv) { return cli_finish(run(argc, argv)); }
