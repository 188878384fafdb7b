/* cmd_script.c - cfx script: captures a model from its Python source, without Python. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { SCRIPT_CALL, SCRIPT_FUNCTION, SCRIPT_OUTPUT, SCRIPT_WEIGHTS, SCRIPT_NO_WEIGHTS,
       SCRIPT_PASS, SCRIPT_EVAL, SCRIPT_SEED, SCRIPT_KEEP, SCRIPT_TO };

static const cli_option verb_options[] = {
    [SCRIPT_CALL] = {"--call", "'Net(16)'", false, "the expression that creates the model", false},
    [SCRIPT_FUNCTION] = {"--function", "NAME", false,
                         "capture this function or class (without arguments)", false},
    [SCRIPT_OUTPUT] = {"--output", "FILE", false,
                       "write the graph to FILE, or all to a .cfx file; or -o FILE", false},
    [SCRIPT_WEIGHTS] = {"--weights", "FILE", false,
                        "write the weights there: {tensors}; the default is beside the output",
                        false},
    [SCRIPT_NO_WEIGHTS] = {"--no-weights", NULL, false, "write the graph only", false},
    [SCRIPT_PASS] = {"--pass", "A,B,...", false, "run passes over the graph, such as fuse_bn",
                     false},
    [SCRIPT_EVAL] = {"--eval", NULL, false, "capture in eval mode, as after model.eval()", false},
    [SCRIPT_SEED] = {"--seed", "N", false, "seed for random numbers, including initial weights",
                     false},
    [SCRIPT_KEEP] = {"--keep-modules", NULL, false, "keep calls as they are written", false},
    [SCRIPT_TO] = {"--to", "GENERATOR", false, "the form of the graph: see below", false},
    {NULL, NULL, false, NULL, false},
};

/* Messages begin with the name of the file, without its folder. `chosen`: the command line says
 * what to capture; it is told how if that is missing. */
static int failed(const cli_model *m, bool chosen)
{
    const cfx_error *err = cfx_scope_error(m->scope);
    const char *slash = strrchr(m->name, '/');
    const char *base = slash ? slash + 1 : m->name;
    if (cli_interrupted(NULL) || strncmp(err->message, base, strlen(base)) != 0)
        return cli_model_failed(m);
    cli_progress_end();
    fprintf(stderr, "%s\n", err->message);
    const bool nowhere = err->message[strlen(base) + 1] == ' ';  /* it has no line */
    if (!chosen && nowhere && (err->status == CFX_E_KEY || err->status == CFX_E_TYPE))
        fputs("  use --function NAME to capture a function, --call 'Net(16)' to capture its "
              "result\n", stderr);
    return err->status == CFX_E_SYNTAX ? CLI_UNREADABLE : CLI_BAD_INPUT;
}

static int script(const cli_args *args, const cli_input *in, const cli_model *m,
                  const cli_written *what)
{
    const cfx_at nowhere = cfx_at_make(m->scope, NULL, 0);
    cli_working("capturing");
    cfx_module *captured = cfx_script_model_at(nowhere, in->text, in->size, in->name,
                                               (cfx_script_model_options){
        .call = args->values[SCRIPT_CALL], .name = args->values[SCRIPT_FUNCTION],
        .eval = args->values[SCRIPT_EVAL] != NULL, .print = cli_stderr()});
    if (args->values[SCRIPT_PASS])
        cfx_transform_at(nowhere, captured, args->values[SCRIPT_PASS]);
    if (!cfx_scope_ok(m->scope) || cli_interrupted(NULL))
        return failed(m, args->values[SCRIPT_CALL] || args->values[SCRIPT_FUNCTION]);
    return cli_write_captured(m, captured, what);
}

static int open_scope(cli_model *m, uint64_t seed)
{
    cfx_error err = {.status = CFX_OK};
    const cfx_runtime_options options = {.seed = seed, .interrupted = cli_interrupted,
                                         .print = cli_stderr()};
    m->rt = cfx_runtime_new(&options, &err);
    m->scope = m->rt ? cfx_scope_new(&(cfx_scope_options){.runtime = m->rt}, &err) : NULL;
    if (m->scope)
        return CLI_OK;
    fprintf(stderr, "%s: %s\n", m->name, err.message);
    return CLI_BAD_INPUT;
}

static int cmd_script(const cli_args *args)
{
    cli_input in;
    uint64_t seed = 0;
    const cfx_generator *generator;
    if (cli_generator(args, SCRIPT_TO, &generator) != CLI_OK)
        return CLI_BAD_USAGE;
    if (!cli_number(args, SCRIPT_SEED, UINT64_MAX, &seed))
        return CLI_BAD_USAGE;
    if (args->values[SCRIPT_CALL] && args->values[SCRIPT_FUNCTION])
        return cli_usage_error(args->verb, "give either --call or --function, not both");
    const cli_written what = {
        .output = args->values[SCRIPT_OUTPUT], .weights = args->values[SCRIPT_WEIGHTS],
        .no_weights = args->values[SCRIPT_NO_WEIGHTS] != NULL,
        .keep_modules = args->values[SCRIPT_KEEP] != NULL, .generator = generator};
    if (cli_check_written(args, &what) != CLI_OK)
        return CLI_BAD_USAGE;
    int code = cli_read(&in, args->file, "Python") ? CLI_OK : CLI_UNREADABLE;
    cli_model m = {.name = in.name};
    cli_watch_interrupts();
    if (code == CLI_OK)
        code = open_scope(&m, seed);
    if (code == CLI_OK)
        code = script(args, &in, &m, &what);
    cfx_scope_free(m.scope);
    cfx_runtime_free(m.rt);
    cli_close(&in);
    return code;
}

const cli_verb verb_script = {
    .name = "script",
    .summary = "capture a model from its Python source, without Python",
    .usage = "[--call EXPRESSION | --function NAME] [-o FILE]\n"
              "                  [--weights FILE | --no-weights] [--pass A,B,...]\n"
              "                  [--eval] [--seed N] [--keep-modules | --to GENERATOR] FILE",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .generator = "text",
    .examples =
        "  cfx script model.py               its last nn.Module class, or only function\n"
        "  cfx script --call 'Net(16, depth=2)' -o n.ir model.py    and n.safetensors\n"
        "  cfx run --weights n.safetensors --input x=x.npy n.ir\n"
        "  cfx script -o n.cfx model.py      graph, layers and weights in one file\n"
        "  cfx script --keep-modules model.py | cfx show\n"
        "  cfx script --python model.py      the graph as a Python class again\n",
    .run = cmd_script,
};
