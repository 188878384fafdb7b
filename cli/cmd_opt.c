/* cmd_opt.c - cfx opt: runs passes over a graph. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_PASS, OPT_OUTPUT, OPT_DUMP };

static const cli_option verb_options[] = {
    [OPT_PASS] = {"--pass", "A,B,...", false, "the passes to run: NAME, NAME=N, NAME:OPTION=N"},
    [OPT_OUTPUT] = {"--output", "FILE", false,
                    "write to FILE: IR text, or all of a .cfx file; or -o FILE"},
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

/* Passes on a graph, and what they have done. */
typedef struct work {
    const cli_args *args;
    const plan *plan;
    const cli_input *in;
    const cfx_pass *new_inputs;  /* the first that changed the inputs or the output; or NULL */
} work;

/* IR text has names of modules, but no modules: who asked for more than that shall know. */
static void note_idle(const cfx_pass *pass, bool modules)
{
    char words[CFX_PASS_WORDS_SIZE];
    const unsigned missing =
        pass->needs & (CFX_PASS_NEEDS_PATHS | (modules ? 0 : CFX_PASS_NEEDS_MODULES));
    if (!missing)
        return;
    cfx_pass_needs_words(missing, words);
    fprintf(stderr, "cfx opt: %s changed nothing: it needs %.*s, which %s\n", pass->name,
            (int)strcspn(words, ","), words,
            missing & CFX_PASS_NEEDS_MODULES
                ? "IR text does not have; give a .cfx file, or run it from C or Python"
                : "the command cannot give; run it from C or Python");
}

static cfx_status run_pass(work *w, const cfx_pass_step *s, cfx_graph *g,
                           const cfx_module_tree *tree, cfx_error *err)
{
    const cfx_pass *pass = s->pass;
    const char *dump = w->args->values[OPT_DUMP];
    size_t before = cfx_graph_size(g);
    bool changed = false;
    cli_progress(pass->name, w->in->size);
    cli_working(pass->name);
    cfx_status status = cfx_pass_run_with(pass, g, tree, s->settings, s->n, &changed, err);
    cli_progress_end();
    if (status == CFX_OK && !changed)
        note_idle(pass, tree != NULL);
    if (changed && !(pass->keeps & CFX_PASS_KEEPS_INPUTS) && !w->new_inputs)
        w->new_inputs = pass;
    if (status || !dump || (*dump && strcmp(dump, pass->name) != 0))
        return status;
    fprintf(stderr, "# after %s: %s, %zu -> %zu nodes\n", pass->name,
            changed ? "changed" : "unchanged", before, cfx_graph_size(g));
    return cfx_graph_text(g, cli_stderr(), err);
}

static cfx_status run_passes(work *w, cfx_graph *g, const cfx_module_tree *tree, cfx_error *err)
{
    cfx_status status = CFX_OK;
    for (size_t i = 0; i < w->plan->n && status == CFX_OK; i++)
        status = run_pass(w, &w->plan->steps[i], g, tree, err);
    return status;
}

/* ---- a .cfx file as a result ---------------------------------------------------------------- */

/* Whether the passes left layers and weights alone. */
static bool is_same(const cli_described *a, const cli_described *b)
{
    const size_t n = cfx_state_size(a->weights);
    bool same = a->modules.size == b->modules.size && n == cfx_state_size(b->weights) &&
                memcmp(a->modules.data, b->modules.data, a->modules.size) == 0;
    for (size_t i = 0; same && i < n; i++) {
        cfx_tensor *t;
        const char *name = cfx_state_entry(a->weights, i, &t);
        same = cfx_state_get(b->weights, name) == t;
    }
    return same;
}

/* Passes cannot be run on every graph of a file if they change the layers, which all share. */
static cfx_status check_shared(const work *w, cfx_error *err)
{
    const unsigned own = CFX_PASS_NEEDS_MODULES | CFX_PASS_NEEDS_CALLED_MODULES;
    for (size_t i = 0; cli_other_graphs(w->in) > 0 && i < w->plan->n; i++)
        if (w->plan->steps[i].pass->needs & own)
            return cfx_error_set(err, CFX_E_UNSUPPORTED, "the pass %s may change layers, which the "
                                 "graphs of this file share; without -o FILE.cfx, cfx opt prints "
                                 "the first graph", w->plan->steps[i].pass->name);
    return CFX_OK;
}

static cfx_status add_text(cli_parts *parts, const char *name, const char *text, size_t size,
                           cfx_error *err)
{
    cfx_buffer *out = cli_parts_add(parts, name, err);
    if (!out)
        return err->status;
    return cfx_buffer_append(out, text, size) == CFX_OK
               ? CFX_OK : cfx_error_set(err, CFX_E_NOMEM, "out of memory");
}

/* A graph for other kinds of inputs, after the same passes. */
static cfx_status add_other(work *w, cli_parts *parts, const char *name, const char *text,
                            size_t size, cfx_error *err)
{
    cfx_error why = {.status = CFX_OK};
    cfx_graph *g = cfx_graph_parse(text, size, NULL, NULL, &why);
    cfx_status status = g ? run_passes(w, g, NULL, &why) : why.status;
    cfx_buffer *out = status == CFX_OK ? cli_parts_add(parts, name, err) : NULL;
    if (status != CFX_OK)
        cfx_error_set(err, status, "%s: %.400s", name, why.message);
    else
        status = out ? cfx_graph_text(g, cfx_buffer_sink(out), err) : err->status;
    cfx_graph_release(g);
    return status;
}

/* The entries of the file, with what `now` (NULL: nothing) says of the layers. */
static cfx_status add_parts(work *w, cli_parts *parts, cfx_graph *g, const cli_described *now,
                            cfx_error *err)
{
    const char *name;
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && (name = cfx_package_entry(w->in->package, i, NULL));
         i++) {
        size_t size;
        const char *text = cfx_package_text(w->in->package, name, &size);
        if (!text || strcmp(name, "cfx.json") == 0)
            continue;
        if (strcmp(name, "graph.ir") == 0) {
            cfx_buffer *out = cli_parts_add(parts, name, err);
            status = out ? cfx_graph_text(g, cfx_buffer_sink(out), err) : err->status;
        } else if (cli_is_other_graph(name)) {
            status = add_other(w, parts, name, text, size, err);
        } else if (now && strcmp(name, "module.ir") == 0) {
            status = add_text(parts, name, now->modules.data, now->modules.size, err);
        } else {
            status = add_text(parts, name, text, size, err);
        }
    }
    return status;
}

/* Layers that passes did not change stay as the file has them, also those of Python. */
static cfx_status save(work *w, cfx_graph *g, const cli_described *now, cfx_error *err)
{
    cli_parts parts = {0};
    const char *path = w->args->values[OPT_OUTPUT];
    const cfx_package *p = w->in->package;
    size_t size;
    cfx_status status = add_parts(w, &parts, g, now, err);
    if (status == CFX_OK && w->new_inputs && cfx_package_text(p, "signature.ir", &size))
        status = cfx_error_set(err, CFX_E_UNSUPPORTED, "the pass %s changes the inputs or results "
                               "that the file's signature describes; without -o FILE.cfx, cfx opt "
                               "prints IR text", w->new_inputs->name);
    if (status == CFX_OK)
        status = cli_parts_save(&parts, path, cfx_package_model(p),
                                now ? now->weights : cfx_package_weights(p), err);
    if (status == CFX_OK)
        printf("%s: %zu nodes%s\n", path, cfx_graph_size(g),
               now ? ", with new weights" : "");
    cli_parts_free(&parts);
    return status;
}

static cfx_status opt_package(work *w, cfx_graph *g, const cfx_module_tree *tree, cfx_error *err)
{
    cli_described before = {.weights = NULL};
    cli_described after = {.weights = NULL};
    cfx_module *m = w->in->module;
    cfx_status status = check_shared(w, err);
    if (status == CFX_OK && m)
        status = cli_describe(&before, m, err);
    if (status == CFX_OK)
        status = run_passes(w, g, tree, err);
    if (status == CFX_OK && m)
        status = cli_describe(&after, m, err);
    const bool same = status != CFX_OK || !m || is_same(&before, &after);
    if (!same) {
        cli_described_free(&after);
        cfx_transform(w->in->scope, m, "");  /* drops what the graph no longer names */
        status = cli_describe(&after, m, err);
    }
    if (status == CFX_OK)
        status = save(w, g, same ? NULL : &after, err);
    cli_described_free(&before);
    cli_described_free(&after);
    return status;
}

/* ---- IR text as a result -------------------------------------------------------------------- */

static cfx_status print(const work *w, cfx_graph *g, cfx_error *err)
{
    const char *path = w->args->values[OPT_OUTPUT];
    const size_t others = cli_other_graphs(w->in);
    cfx_buffer text;
    if (others)
        fprintf(stderr, "cfx opt: %s has %zu more graph%s; -o FILE.cfx writes all of them\n",
                w->in->name, others, others == 1 ? "" : "s");
    if (!path)
        return cfx_graph_text(g, cli_stdout(), err);
    cfx_buffer_init(&text, NULL);
    cfx_status status = cfx_graph_text(g, cfx_buffer_sink(&text), err);
    if (status == CFX_OK && cli_write_file(path, &text) != CLI_OK)
        status = cfx_error_set(err, CFX_E_IO, "nothing was written");
    if (status == CFX_OK)
        printf("%s: %zu nodes\n", path, cfx_graph_size(g));
    cfx_buffer_free(&text);
    return status;
}

/* With modules, the graph is the module's own: its values can be tensors. */
static cfx_status opt(work *w, cfx_error *err)
{
    const cli_input *in = w->in;
    const cfx_module_tree tree = cfx_module_as_tree(in->module);
    const cfx_module_tree *modules = in->module ? &tree : NULL;
    cfx_graph *g = in->module ? cfx_module_graph(in->module) : in->graph;
    const char *path = w->args->values[OPT_OUTPUT];
    if (path && cli_is_package(path) && !in->package)
        return cfx_error_set(err, CFX_E_VALUE, "'%.100s' needs a .cfx file to begin with: IR text "
                             "has no weights (cfx pack makes one of both)", path);
    if (path && cli_is_package(path))
        return opt_package(w, g, modules, err);
    cfx_status status = run_passes(w, g, modules, err);
    return status == CFX_OK ? print(w, g, err) : status;
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
        work w = {.args = args, .plan = &p, .in = &in};
        if (opt(&w, &err) != CFX_OK)
            code = cli_failed(&in, &err);
    }
    cli_close(&in);
    return code;
}

const cli_verb verb_opt = {
    .name = "opt",
    .summary = "run passes on a graph, and print or save the result",
    .usage = "--pass A,B,... [-o FILE] [--dump-after[=PASS]] FILE",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .examples =
        "  cfx opt --pass dce model.ir >small.ir\n"
        "  cfx opt --pass dce model.ir | cfx code\n"
        "  cfx opt --pass fuse_bn,dce -o small.cfx model.cfx  graph, layers and weights\n"
        "  cfx opt --pass dce --dump-after model.ir >small.ir\n"
        "  cfx opt --pass unroll=4,cse model.ir\n"
        "  cfx opt --pass unroll:max_turns=4:max_nodes=99 model.ir\n",
    .run = cmd_opt,
};
