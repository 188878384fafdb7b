/* cmd_plan.c - cfx plan: how a model is computed, and where the time goes. */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    PLAN_WEIGHTS,
    PLAN_INPUT,
    PLAN_RANDOM,
    PLAN_THREADS,
    PLAN_PRECISION,
    PLAN_PROFILE,
    PLAN_JSON,
    PLAN_TRACE
};

static const cli_option verb_options[] = {
    [PLAN_WEIGHTS] = {"--weights", "FILE", false, "the parameters: {tensors}", false},
    [PLAN_INPUT] = {"--input", "[NAME=]FILE", false,
                    "an input, in order or by name, as cfx run takes it", true},
    [PLAN_RANDOM] = {"--random", "N=8,x=2x3", true,
                     "random numbers for the other inputs; sizes that may differ are given", false},
    [PLAN_THREADS] = {"--threads", "N", false,
                      "number of threads (default: all the machine has)", false},
    [PLAN_PRECISION] = {"--precision", "float32|bf16", false,
                        "what the operands of products are rounded to (default: float32)", false},
    [PLAN_PROFILE] = {"--profile", "RUNS", false,
                      "measure this many runs, and print where the time goes", false},
    [PLAN_JSON] = {"--json", NULL, false, "the profile as JSON", false},
    [PLAN_TRACE] = {"--trace", "FILE", false,
                    "write all measured steps for Chrome's or Perfetto's trace viewer", false},
    {NULL, NULL, false, NULL, false},
};

static cfx_status run_times(const cli_program *p, uint64_t n, cfx_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        size_t graph;
        const cfx_datum d = cli_program_run(p, &graph, err);
        if (d.kind == CFX_DATUM_INVALID)
            return err->status;
        cfx_datum_release(d);
    }
    return CFX_OK;
}

static cfx_status write_file(void *ctx, const char *data, size_t size)
{
    return fwrite(data, 1, size, ctx) == size ? CFX_OK : CFX_E_IO;
}

static cfx_status write_trace(cfx_profile *profile, const char *path, cfx_error *err)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return cfx_error_set(err, CFX_E_IO, "cannot write '%.200s': %s", path, strerror(errno));
    cfx_status status =
        cfx_profile_print(profile, CFX_PROFILE_TRACE, (cfx_sink){write_file, f}, err);
    if (fclose(f) != 0 && status == CFX_OK)
        status = cfx_error_set(err, CFX_E_IO, "cannot write '%.200s': %s", path, strerror(errno));
    return status;
}

/* The first run makes the plan, and is not measured. */
static cfx_status show(const cli_args *args, const cli_program *p, cfx_profile *profile,
                       uint64_t runs, cfx_error *err)
{
    cli_working("planning");
    cfx_status status = run_times(p, 1, err);
    cfx_profile_clear(profile);
    if (status == CFX_OK && runs > 0) {
        cli_working("measuring");
        status = run_times(p, runs, err);
    }
    cli_progress_end();
    if (status != CFX_OK)
        return status;
    if (runs == 0)
        return cli_program_print_plans(p, cli_stdout(), err);
    if (args->values[PLAN_TRACE])
        status = write_trace(profile, args->values[PLAN_TRACE], err);
    return status ? status
                  : cfx_profile_print(profile,
                                      args->values[PLAN_JSON] ? CFX_PROFILE_JSON
                                                              : CFX_PROFILE_TABLE,
                                      cli_stdout(), err);
}

static cfx_status plan(const cli_args *args, const cli_input *in, cfx_profile *profile,
                       const cfx_runtime_options *options, cfx_precision precision, uint64_t runs,
                       bool *told, cfx_error *err)
{
    cli_program p;
    cfx_status status =
        cli_program_open(&p, in, args->values[PLAN_WEIGHTS], options, precision, told, err);
    if (status == CFX_OK)
        status = cli_program_fill(&p, in, args, args->values[PLAN_RANDOM], err);
    if (status == CFX_OK)
        status = show(args, &p, profile, runs, err);
    cli_program_end(&p);
    return status;
}

static bool read_precision(const char *name, cfx_precision *precision)
{
    for (int i = 0; i < CFX_PRECISION_COUNT; i++) {
        *precision = (cfx_precision)i;
        if (!name || strcmp(name, cfx_precision_name(*precision)) == 0)
            return true;
    }
    cli_usage_error(&verb_plan, "--precision must be float32 or bf16, not '%s'", name);
    return false;
}

static int cmd_plan(const cli_args *args)
{
    cli_input in;
    cfx_error err = {.status = CFX_OK};
    cfx_precision precision;
    uint64_t threads = 0;
    uint64_t runs = args->values[PLAN_JSON] || args->values[PLAN_TRACE] ? 10 : 0;
    bool told = false;
    int code = CLI_OK;
    if (!cli_number(args, PLAN_THREADS, 1024, &threads) ||
        !cli_number(args, PLAN_PROFILE, 1000000, &runs) ||
        !read_precision(args->values[PLAN_PRECISION], &precision))
        return CLI_BAD_USAGE;
    cfx_profile *profile = cfx_profile_new(NULL, &err);
    cfx_runtime_options options = {.threads = (unsigned)threads, .print = cli_stdout()};
    if (profile)
        cfx_profile_watch(profile, &options);
    if (!cli_open_to_run(&in, args->file))
        code = CLI_UNREADABLE;
    else if (!profile || plan(args, &in, profile, &options, precision, runs, &told, &err) != CFX_OK)
        code = told ? CLI_BAD_INPUT : cli_failed(&in, &err);
    cli_close(&in);
    cfx_profile_free(profile);
    return code;
}

const cli_verb verb_plan = {
    .name = "plan",
    .summary = "show how a model is computed, and where the time goes",
    .usage = "[--weights FILE] [--input [NAME=]FILE]... [--random[=SIZES]]\n"
              "                [--precision P] [--profile RUNS [--json] [--trace FILE]] FILE",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .examples =
        "  cfx plan --random model.cfx\n"
        "  cfx plan --random --profile 20 --threads 2 model.cfx\n"
        "  cfx plan --input x.npy --profile 20 --trace trace.json model.onnx\n",
    .run = cmd_plan,
};
