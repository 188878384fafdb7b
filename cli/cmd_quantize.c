/* cmd_quantize.c - cfx quantize: a model in integers, calibrated on data. */
#include "cli.h"

#include <cfx/calibrate.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { Q_CALIBRATE, Q_OUTPUT, Q_MODE, Q_WEIGHTS, Q_GROUP, Q_PER, Q_OBSERVER, Q_EQUALIZE,
       Q_CORRECT, Q_KEEP, Q_MAX_ERROR, Q_REPORT, Q_JSON, Q_BATCH };

static const cli_option verb_options[] = {
    [Q_CALIBRATE] = {"--calibrate", "FILE", false,
                     "data to run the model on: a folder with a file for each call, or one file"},
    [Q_OUTPUT] = {"--output", "FILE", false, "the .cfx file to write; or -o FILE"},
    [Q_MODE] = {"--mode", "static|dynamic|weights", false,
                "static: values and weights; dynamic: the ranges of values are those of each run; "
                "weights: nothing else"},
    [Q_WEIGHTS] = {"--weights", "int8|int4", false, "the type of weights; int4 is for --mode "
                                                    "weights"},
    [Q_GROUP] = {"--group", "N", false, "a scale for each N weights of a row, with --mode weights"},
    [Q_PER] = {"--per", "channel|tensor", false,
               "a scale for each output channel of the weights, or one for all"},
    [Q_OBSERVER] = {"--observer", "histogram|minmax|average|percentile", false,
                    "how the ranges of values are found"},
    [Q_EQUALIZE] = {"--equalize", NULL, false, "even out the channels of consecutive layers first"},
    [Q_CORRECT] = {"--correct-bias", NULL, false,
                   "let biases make up for what rounding shifts, as far as the data shows it"},
    [Q_KEEP] = {"--keep", "NAME", false, "a node or a module that stays float", true},
    [Q_MAX_ERROR] = {"--max-error", "E", false,
                     "keep layers in float until the results are at most E off: 0.05 is 5 %"},
    [Q_REPORT] = {"--report", NULL, false, "what each layer lost on the data, worst first"},
    [Q_JSON] = {"--json", NULL, false, "the report as JSON"},
    [Q_BATCH] = {"--batch", "N", false, "how much of one file of data goes into a call"},
    {NULL, NULL, false, NULL, false},
};

enum { MOST_KEPT = 256 };

typedef struct work {
    const cli_args *args;
    cli_input in;
    cli_calls calls;
    bool has_calls;
    cfx_quantize_options options;
    double max_error;             /* 0: any */
    const char *keep[MOST_KEPT];
    size_t n_keep;
    char *names[MOST_KEPT];       /* of layers that were found, owned */
    size_t n_names;
    size_t done;                  /* calls */
    cli_lefts left;               /* what stays float */
    cfx_module *prepared;
    cfx_module *quantized;
    cfx_trial *trial;
} work;

/* ---- options ------------------------------------------------------------------------------- */

/* Which of the words of an option was given, the first if none was. */
static int word_of(const cli_args *args, int option)
{
    const char *given = args->values[option];
    int i = 0;
    for (const char *at = given ? verb_options[option].value : NULL; at; i++) {
        const size_t size = strcspn(at, "|");
        if (strlen(given) == size && strncmp(given, at, size) == 0)
            return i;
        at = at[size] ? at + size + 1 : NULL;
    }
    return given ? -1 : 0;
}

static bool read_words(work *w)
{
    static const int options[] = {Q_MODE, Q_WEIGHTS, Q_PER, Q_OBSERVER};
    static const cfx_observer_kind kinds[] = {CFX_OBSERVE_HISTOGRAM, CFX_OBSERVE_MIN_MAX,
                                              CFX_OBSERVE_MOVING_AVERAGE, CFX_OBSERVE_PERCENTILE};
    int words[4];
    for (size_t i = 0; i < 4; i++)
        if ((words[i] = word_of(w->args, options[i])) < 0) {
            cli_usage_error(w->args->verb, "%s is one of %s, not '%s'",
                            verb_options[options[i]].name, verb_options[options[i]].value,
                            w->args->values[options[i]]);
            return false;
        }
    w->options.mode = (cfx_quantize_mode)words[0];
    w->options.bits = words[1] == 1 ? 4 : 8;
    w->options.per_tensor = words[2] == 1;
    w->options.observer = w->args->values[Q_OBSERVER] ? kinds[words[3]] : CFX_OBSERVE_NOTHING;
    return true;
}

static int read_options(work *w)
{
    const cli_args *args = w->args;
    uint64_t group = 0;
    char *end = NULL;
    const char *most = args->values[Q_MAX_ERROR];
    if (!args->values[Q_OUTPUT] && !args->values[Q_REPORT] && !args->values[Q_JSON])
        return cli_usage_error(args->verb, "give the name of the file to write: -o model.cfx");
    if (args->values[Q_OUTPUT] && !cli_is_package(args->values[Q_OUTPUT]))
        return cli_usage_error(args->verb, "'%s' needs the extension .cfx",
                               args->values[Q_OUTPUT]);
    if (!read_words(w) || !cli_number(args, Q_GROUP, 1 << 20, &group))
        return CLI_BAD_USAGE;
    w->options.group = (int64_t)group;
    w->options.equalize = args->values[Q_EQUALIZE] != NULL;
    w->max_error = most ? strtod(most, &end) : 0;
    if (most && (end == most || *end || !(w->max_error > 0)))
        return cli_usage_error(args->verb, "--max-error is a number above 0, such as 0.05");
    const bool small = w->options.bits == 4 || group > 0;
    if (small && !args->values[Q_MODE])
        w->options.mode = CFX_QUANTIZE_WEIGHTS;
    if (small && w->options.mode != CFX_QUANTIZE_WEIGHTS)
        return cli_usage_error(args->verb, "--weights int4 and --group are for --mode weights");
    if (w->options.mode == CFX_QUANTIZE_STATIC && !args->values[Q_CALIBRATE])
        return cli_usage_error(args->verb, "static quantization needs data to find the ranges of "
                               "values: --calibrate folder/; or use --mode dynamic");
    const char *needs = most ? "--max-error" : args->values[Q_CORRECT] ? "--correct-bias"
                        : args->values[Q_REPORT] || args->values[Q_JSON] ? "the report" : NULL;
    if (needs && !args->values[Q_CALIBRATE])
        return cli_usage_error(args->verb, "%s needs data to run the model on: --calibrate "
                               "folder/", needs);
    for (size_t i = 0; i < args->num_repeated && i < MOST_KEPT; i++)
        w->keep[w->n_keep++] = args->repeated[i];
    return CLI_OK;
}

/* ---- data ---------------------------------------------------------------------------------- */

enum { USUAL_BATCH = 16 };

/* How much of a file goes into a call: as the file of the model says, if it does. */
static int64_t batch_of(const work *w)
{
    size_t size;
    cfx_signature_input first;
    uint64_t given = 0;
    int64_t batch = USUAL_BATCH;
    cfx_error err = {.status = CFX_OK};
    if (cli_number(w->args, Q_BATCH, 1 << 30, &given) && given > 0)
        return (int64_t)given;
    const char *text = cfx_package_text(w->in.package, "signature.ir", &size);
    cfx_signature *s = text ? cfx_signature_parse(text, size, NULL, &err) : NULL;
    if (s && cfx_signature_input_at(s, 0, &first) && first.rank > 0 && first.sizes[0] > 0)
        batch = first.sizes[0];
    cfx_signature_free(s);
    return batch;
}

/* Messages have the lines of the model, not one of this file. */
static cfx_at here(const work *w) { return cfx_at_make(w->in.scope, NULL, 0); }

static cfx_status scope_error(const work *w, cfx_error *err)
{
    *err = *cfx_scope_error(w->in.scope);
    return err->status;
}

static cfx_status calibrate(void *ctx, const cfx_datum *inputs, size_t n, cfx_error *err)
{
    work *w = ctx;
    cfx_scope *s = w->in.scope;
    cfx_var vars[CLI_MAX_INPUTS];
    const size_t mark = cfx_scope_mark(s);
    for (size_t i = 0; i < n; i++)
        vars[i] = inputs[i].kind == CFX_DATUM_INVALID ? cfx_var_none()
                                                      : cfx_var_from_datum_at(here(w), inputs[i]);
    cfx_call_at(here(w), w->prepared, cfx_vars_make(vars, n));
    cfx_scope_reset(s, mark, cfx_var_empty());
    w->done++;
    return cfx_scope_ok(s) ? CFX_OK : scope_error(w, err);
}

static cfx_status run_both(void *ctx, const cfx_datum *inputs, size_t n, cfx_error *err)
{
    work *w = ctx;
    return cfx_trial_run(w->trial, inputs, n, err);
}

static cfx_status run_calls(work *w, const char *what, cli_call_fn *fn, cfx_error *err)
{
    cli_working(what);
    const cfx_status status = cli_calls_each(&w->calls, cfx_module_graph(w->in.module), fn, w, err);
    cli_progress_end();
    return status;
}

/* ---- quantizing ---------------------------------------------------------------------------- */

static cfx_status correct(work *w, cfx_error *err)
{
    cfx_trial_free(w->trial);
    w->trial = cfx_trial_correct_at(here(w), w->in.module, w->quantized);
    const cfx_status status = w->trial ? run_calls(w, "correcting biases", run_both, err)
                                       : scope_error(w, err);
    if (status != CFX_OK)
        return status;
    w->quantized = cfx_trial_corrected_at(here(w), w->trial);
    return w->quantized ? CFX_OK : scope_error(w, err);
}

static cfx_status convert(work *w, cfx_error *err)
{
    w->quantized = cfx_quantize_convert_at(here(w), w->prepared, w->keep, w->n_keep, w->options);
    if (!w->quantized)
        return scope_error(w, err);
    return w->args->values[Q_CORRECT] ? correct(w, err) : CFX_OK;
}

static cfx_status run_trial(work *w, cfx_error *err)
{
    cfx_trial_free(w->trial);
    w->trial = cfx_trial_new_at(here(w), w->in.module, w->quantized);
    return w->trial ? run_calls(w, "comparing", run_both, err) : scope_error(w, err);
}

static bool is_kept(void *ctx, const char *name)
{
    const work *w = ctx;
    for (size_t i = 0; i < w->n_keep; i++)
        if (strcmp(w->keep[i], name) == 0)
            return true;
    return cfx_graph_find(cfx_module_graph(w->prepared), name) == NULL;
}

/* Keeps the layer that adds most in float; false if there is none. */
static bool keep_worst(work *w)
{
    cfx_compared row;
    if (w->n_keep == MOST_KEPT || w->n_names == MOST_KEPT ||
        !cfx_comparison_worst_own(cfx_trial_comparison(w->trial), is_kept, w, &row) ||
        !(row.own_error > 0))
        return false;
    char *name = strdup(row.name);
    if (!name)
        return false;
    w->names[w->n_names++] = name;
    w->keep[w->n_keep++] = name;
    return true;
}

static cfx_status reach_error(work *w, cfx_error *err)
{
    for (;;) {
        cfx_closeness result;
        cfx_status status = run_trial(w, err);
        if (status != CFX_OK)
            return status;
        if (!cfx_comparison_result(cfx_trial_comparison(w->trial), &result))
            return cfx_error_set(err, CFX_E_VALUE, "--max-error cannot be reached: the results of "
                                 "the model are not tensors of floating-point numbers");
        if (result.error <= w->max_error)
            return CFX_OK;
        if (!keep_worst(w))
            return cfx_error_set(err, CFX_E_VALUE, "the results are %.3g off, and no other layer "
                                 "can be kept in float to come to --max-error %.3g", result.error,
                                 w->max_error);
        if ((status = convert(w, err)) != CFX_OK)
            return status;
    }
}

static cfx_status quantize(work *w, cfx_error *err)
{
    w->left.model = w->in.module;
    w->prepared = cfx_quantize_prepare_at(here(w), w->in.module, w->options);
    if (!w->prepared)
        return scope_error(w, err);
    cfx_status status = w->has_calls && w->options.mode == CFX_QUANTIZE_STATIC
                            ? run_calls(w, "calibrating", calibrate, err) : CFX_OK;
    if (status == CFX_OK)
        status = convert(w, err);
    if (status == CFX_OK && w->max_error > 0)
        return reach_error(w, err);
    if (status == CFX_OK && (w->args->values[Q_REPORT] || w->args->values[Q_JSON]))
        return run_trial(w, err);
    return status;
}

/* ---- the file ------------------------------------------------------------------------------ */

static uint64_t bytes_of(const cfx_state *weights)
{
    uint64_t bytes = 0;
    cfx_tensor *t;
    for (size_t i = 0; cfx_state_entry(weights, i, &t); i++)
        bytes += (uint64_t)cfx_tensor_numel(t) * cfx_dtype_size(cfx_tensor_dtype(t));
    return bytes;
}

/* What else the file of the float model says: its signature. */
static cfx_status add_others(const work *w, cli_parts *parts, cfx_error *err)
{
    const char *name;
    for (size_t i = 0; (name = cfx_package_entry(w->in.package, i, NULL)) != NULL; i++) {
        size_t size;
        const char *text = cfx_package_text(w->in.package, name, &size);
        if (!text || strcmp(name, "cfx.json") == 0 || strcmp(name, "graph.ir") == 0 ||
            strcmp(name, "module.ir") == 0)
            continue;
        cfx_buffer *out = cli_parts_add(parts, name, err);
        if (!out || cfx_buffer_append(out, text, size) != CFX_OK)
            return out ? cfx_error_set(err, CFX_E_NOMEM, "out of memory") : err->status;
    }
    return CFX_OK;
}

static cfx_status add_text(cli_parts *parts, const char *name, const cfx_buffer *text,
                           cfx_error *err)
{
    cfx_buffer *out = cli_parts_add(parts, name, err);
    if (!out)
        return err->status;
    return cfx_buffer_append(out, text->data, text->size) == CFX_OK
               ? CFX_OK : cfx_error_set(err, CFX_E_NOMEM, "out of memory");
}

static cfx_status save(const work *w, cfx_error *err)
{
    cli_described d = {.weights = NULL};
    cli_parts parts = {0};
    const char *path = w->args->values[Q_OUTPUT];
    cfx_status status = cli_describe(&d, w->quantized, err);
    if (status == CFX_OK)
        status = add_text(&parts, "graph.ir", &d.graph, err);
    if (status == CFX_OK)
        status = add_text(&parts, "module.ir", &d.modules, err);
    if (status == CFX_OK)
        status = add_others(w, &parts, err);
    if (status == CFX_OK)
        status = cli_parts_save(&parts, path, cfx_package_model(w->in.package), d.weights, err);
    if (status == CFX_OK && !w->args->values[Q_JSON]) {
        printf("%s: %llu bytes of weights, of %llu before", path,
               (unsigned long long)bytes_of(d.weights),
               (unsigned long long)bytes_of(cfx_package_weights(w->in.package)));
        if (w->done > 0)
            printf("; %zu call%s", w->done, w->done == 1 ? "" : "s");
        printf("\n");
    }
    cli_parts_free(&parts);
    cli_described_free(&d);
    return status;
}

/* ---- the report ---------------------------------------------------------------------------- */

static cfx_status report(const work *w, cfx_error *err)
{
    const bool json = w->args->values[Q_JSON] != NULL;
    if (!json && !w->args->values[Q_REPORT])
        return CFX_OK;
    return cfx_comparison_print(cfx_trial_comparison(w->trial),
                                json ? CFX_COMPARISON_JSON : CFX_COMPARISON_TABLE, cli_width(), 0,
                                cli_stdout(), err);
}

/* ---- the verb ------------------------------------------------------------------------------ */

static void note_left(void *ctx, const cfx_node *n, const char *why)
{
    cli_lefts_note(&((work *)ctx)->left, n, why);
}

/* What is in integers, and what stays float. */
static cfx_status print_left(work *w, cfx_error *err)
{
    static const char *const why[] = {"what it reads is not quantized",
                                      "--mode dynamic is for linear layers and recurrent ones",
                                      "--mode weights is for linear layers, recurrent ones and "
                                      "embeddings"};
    return w->args->values[Q_JSON] ? CFX_OK
                                   : cli_lefts_print(&w->left, w->quantized, why[w->options.mode],
                                                     err);
}

static cfx_status check_input(const work *w, cfx_error *err)
{
    if (!w->in.module)
        return cfx_error_set(err, CFX_E_VALUE, "quantization needs the weights: give a .cfx or "
                             ".onnx file with weights (cfx pack makes a .cfx file of IR text and "
                             "weights)");
    if (cli_other_graphs(&w->in) > 0)
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "the file has several graphs, which share "
                             "their weights; quantize it in Python, or save it with one graph");
    cfx_module_train(w->in.module, false);
    return CFX_OK;
}

static cfx_status do_work(work *w, cfx_error *err)
{
    cfx_status status = check_input(w, err);
    if (status == CFX_OK && w->has_calls)
        status = cli_calls_open(&w->calls, w->args->values[Q_CALIBRATE], batch_of(w), err);
    if (status == CFX_OK)
        status = quantize(w, err);
    if (status == CFX_OK && w->args->values[Q_OUTPUT])
        status = save(w, err);
    if (status == CFX_OK)
        status = print_left(w, err);
    return status == CFX_OK ? report(w, err) : status;
}

static int cmd_quantize(const cli_args *args)
{
    work w = {.args = args};
    cfx_error err = {.status = CFX_OK};
    int code = read_options(&w);
    if (code != CLI_OK)
        return code;
    w.has_calls = args->values[Q_CALIBRATE] != NULL;
    w.options.left = note_left;
    w.options.ctx = &w;
    cli_watch_interrupts();
    if (!cli_open(&w.in, args->file))
        code = CLI_UNREADABLE;
    else if (do_work(&w, &err) != CFX_OK)
        code = err.status == CFX_E_INTERRUPTED ? CLI_INTERRUPTED : cli_failed(&w.in, &err);
    cfx_trial_free(w.trial);
    cli_calls_close(&w.calls);
    cli_close(&w.in);
    cli_lefts_free(&w.left);
    while (w.n_names > 0)
        free(w.names[--w.n_names]);
    return code;
}

const cli_verb verb_quantize = {
    .name = "quantize",
    .summary = "compute a model in integers, calibrated on data",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .examples =
        "  cfx quantize --calibrate images/ -o q.cfx model.cfx       a file for each call\n"
        "  cfx quantize --calibrate x.npy --report -o q.cfx model.onnx\n"
        "  cfx quantize --calibrate x.npy --max-error 0.02 -o q.cfx model.cfx\n"
        "  cfx quantize --calibrate x.npy --correct-bias --report -o q.cfx model.cfx\n"
        "  cfx quantize --mode dynamic -o q.cfx model.cfx\n"
        "  cfx quantize --weights int4 --group 32 -o q.cfx model.cfx\n",
    .run = cmd_quantize,
};
