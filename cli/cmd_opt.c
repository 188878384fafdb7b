/* cmd_opt.c - cfx opt: runs passes over a graph. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_PASS, OPT_DUMP };

static const cli_option verb_options[] = {
    [OPT_PASS] = {"--pass", "A,B,...", false, "the passes to run: NAME, NAME=N, NAME:OPTION=N"},
    [OPT_DUMP] = {"--dump-after", "PASS", true, "print the graph to stderr after PASS, or each "
                                                "pass"},
    {NULL, NULL, false, NULL},
};

/* ---- names of passes ----------------------------------------------------------------------- */

enum { MAX_PASSES = 64 };

typedef struct plan {
    cfx_pass_step steps[MAX_PASSES];
    size_t n;
} plan;

/* Fills the plan from "a,b=2,c:x=1". */
static int read_plan(const cli_args *args, plan *p)
{
    cfx_error err = {.status = CFX_OK};
    const char *list = args->values[OPT_PASS];
    p->n = 0;
    if (!list)
        return cli_usage_error(args->verb, "no pass is given; use --pass (cfx passes lists them)");
    do {
        if (p->n == MAX_PASSES)
            return cli_usage_error(args->verb, "at most %d passes are supported", MAX_PASSES);
        cfx_pass_step *step = &p->steps[p->n++];
        if (cfx_pass_list_next(&list, step, &err) != CFX_OK)
            return cli_bad_pass(args, step, &err);
    } while (*list);
    return CLI_OK;
}

static int check_dump(const cli_args *args, const plan *p)
{
    const char *dump = args->values[OPT_DUMP];
    if (!dump || !*dump)
        return CLI_OK;
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->steps[i].pass->name, dump) == 0)
            return CLI_OK;
    cfx_pass_step step;
    cfx_error err = {.status = CFX_OK};
    const char *list = dump;
    if (cfx_pass_list_next(&list, &step, &err) != CFX_OK)
        return cli_bad_pass(args, &step, &err);
    return cli_usage_error(args->verb, "--dump-after=%s, but %s is not among the passes to run",
                           dump, dump);
}

/* ---- running ------------------------------------------------------------------------------- */

/* IR text has names of modules, but no modules: who asked for more than that shall know. */
static void note_idle(const cfx_pass *pass)
{
    char words[CFX_PASS_WORDS_SIZE];
    const unsigned missing = pass->needs & (CFX_PASS_NEEDS_MODULES | CFX_PASS_NEEDS_PATHS);
    if (!missing)
        return;
    cfx_pass_needs_words(missing, words);
    fprintf(stderr, "cfx opt: %s changed nothing: it needs %.*s, which IR text does not have; "
                    "run it from C or Python\n",
            pass->name, (int)strcspn(words, ","), words);
}

static cfx_status run_pass(const cli_args *args, const cfx_pass_step *s, const cli_input *in,
                           cfx_error *err)
{
    const cfx_pass *pass = s->pass;
    const char *dump = args->values[OPT_DUMP];
    size_t before = cfx_graph_size(in->graph);
    bool changed = false;
    cli_progress(pass->name, in->size);
    cli_working(pass->name);
    cfx_status status = cfx_pass_run_with(pass, in->graph, NULL, s->settings, s->n, &changed, err);
    cli_progress_end();
    if (status == CFX_OK && !changed)
        note_idle(pass);
    if (status || !dump || (*dump && strcmp(dump, pass->name) != 0))
        return status;
    fprintf(stderr, "# after %s: %s, %zu -> %zu nodes\n", pass->name,
            changed ? "changed" : "unchanged", before, cfx_graph_size(in->graph));
    return cfx_graph_text(in->graph, cli_stderr(), err);
}

/* Shows all that is wrong with the graph, unless the first pass does not mind. */
static bool is_fit(const plan *p, cli_input *in)
{
    return !(p->steps[0].pass->needs & (CFX_PASS_NEEDS_ORDERED | CFX_PASS_NEEDS_LINTED)) ||
           cli_findings(in, cfx_graph_lint) == 0;
}

static int cmd_opt(const cli_args *args)
{
    plan p;
    cli_input in;
    cfx_error err = {.status = CFX_OK};
    int code = read_plan(args, &p);
    if (code == CLI_OK)
        code = check_dump(args, &p);
    if (code != CLI_OK)
        return code;
    if (!cli_open(&in, args->file)) {
        code = CLI_UNREADABLE;
    } else if (!is_fit(&p, &in)) {
        code = CLI_BAD_INPUT;
    } else {
        cfx_status status = CFX_OK;
        for (size_t i = 0; i < p.n && status == CFX_OK; i++)
            status = run_pass(args, &p.steps[i], &in, &err);
        if (status == CFX_OK)
            status = cfx_graph_text(in.graph, cli_stdout(), &err);
        if (status != CFX_OK)
            code = cli_failed(&in, &err);
    }
    cli_close(&in);
    return code;
}

const cli_verb verb_opt = {
    .name = "opt",
    .summary = "run passes on a graph and print the result as IR text",
    .usage = "--pass A,B,... [--dump-after[=PASS]] FILE",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .examples =
        "  cfx opt --pass dce model.ir >small.ir\n"
        "  cfx opt --pass dce model.ir | cfx code\n"
        "  cfx opt --pass dce --dump-after model.ir >small.ir\n"
        "  cfx opt --pass unroll=4,cse model.ir\n"
        "  cfx opt --pass unroll:max_turns=4:max_nodes=99 model.ir\n",
    .run = cmd_opt,
};
