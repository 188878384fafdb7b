/* cmd_script.c - cfx script: captures a model from its Python source, without Python. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { SCRIPT_CALL, SCRIPT_FUNCTION, SCRIPT_OUTPUT, SCRIPT_WEIGHTS, SCRIPT_PASS, SCRIPT_EVAL,
       SCRIPT_SEED, SCRIPT_KEEP, SCRIPT_PYTHON };

const cli_option script_options[] = {
    [SCRIPT_CALL] = {"--call", "'Net(16)'", false, "the expression that makes the model", false},
    [SCRIPT_FUNCTION] = {"--function", "NAME", false,
                         "capture this function, or class (made without arguments)", false},
    [SCRIPT_OUTPUT] = {"--output", "FILE", false, "write the graph there; or -o FILE", false},
    [SCRIPT_WEIGHTS] = {"--weights", "FILE", false, "write the weights there, as .safetensors",
                        false},
    [SCRIPT_PASS] = {"--pass", "A,B,...", false, "run passes over the graph, such as fuse_bn",
                     false},
    [SCRIPT_EVAL] = {"--eval", NULL, false, "as after model.eval(): dropout drops nothing", false},
    [SCRIPT_SEED] = {"--seed", "N", false, "where random numbers start, those of weights too",
                     false},
    [SCRIPT_KEEP] = {"--keep-modules", NULL, false, "calls stay as they were written", false},
    [SCRIPT_PYTHON] = {"--python", NULL, false,
                       "write Python: a class whose __init__ makes the modules", false},
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
        fputs("  --function NAME captures a function, --call 'Net(16)' what that makes\n", stderr);
    return err->status == CFX_E_SYNTAX ? CLI_UNREADABLE : CLI_BAD_INPUT;
}

static int script(const cli_args *args, const cli_input *in, const cli_model *m)
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
    return cli_write_captured(m, captured, &(cli_written){
        .output = args->values[SCRIPT_OUTPUT], .weights = args->values[SCRIPT_WEIGHTS],
        .keep_modules = args->values[SCRIPT_KEEP] != NULL,
        .python = args->values[SCRIPT_PYTHON] != NULL});
}

static int open_scope(cli_model *m, uint64_t seed)
{
    cfx_error err = {.status = CFX_OK};
    const cfx_runtime_options options = {.seed = seed, .interrupted = cli_interrupted};
    m->rt = cfx_runtime_new(&options, &err);
    m->scope = m->rt ? cfx_scope_new(&(cfx_scope_options){.runtime = m->rt}, &err) : NULL;
    if (m->scope)
        return CLI_OK;
    fprintf(stderr, "%s: %s\n", m->name, err.message);
    return CLI_BAD_INPUT;
}

int cmd_script(const cli_args *args)
{
    cli_input in;
    uint64_t seed = 0;
    if (!cli_number(args, SCRIPT_SEED, UINT64_MAX, &seed))
        return CLI_BAD_USAGE;
    if (args->values[SCRIPT_CALL] && args->values[SCRIPT_FUNCTION])
        return cli_usage_error(args->verb, "give one of --call and --function");
    int code = cli_read(&in, args->file, "Python") ? CLI_OK : CLI_UNREADABLE;
    cli_model m = {.name = in.name};
    cli_watch_interrupts();
    if (code == CLI_OK)
        code = open_scope(&m, seed);
    if (code == CLI_OK)
        code = script(args, &in, &m);
    cfx_scope_free(m.scope);
    cfx_runtime_free(m.rt);
    cli_close(&in);
    return code;
}
