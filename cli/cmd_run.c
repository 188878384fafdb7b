/* cmd_run.c - cfx run: computes a graph on tensors of files. */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RUN_WEIGHTS, RUN_INPUT, RUN_RANDOM, RUN_OUTPUT, RUN_SEED, RUN_THREADS, RUN_TIME,
       RUN_SAVE };

static const cli_option verb_options[] = {
    [RUN_WEIGHTS] = {"--weights", "FILE", false, "the parameters: {tensors}", false},
    [RUN_INPUT] = {"--input", "[NAME=]FILE", false,
                   "an input, in order or by name: a number, {tensor}, FILE.npz:NAME, raw bytes "
                   "as FILE:uint8[2,3]; all of them: FILE.npz", true},
    [RUN_RANDOM] = {"--random", "N=8,x=2x3", true,
                    "random numbers for the other inputs; sizes that may differ are given", false},
    [RUN_OUTPUT] = {"--output", "FILE", false,
                    "write the results here; several as y.0.npy, y.1.npy, ..., by name into one "
                    ".npz or .safetensors file, or into a FOLDER/", false},
    [RUN_SEED] = {"--seed", "N", false, "seed for random numbers (default 0)", false},
    [RUN_THREADS] = {"--threads", "N", false,
                     "number of threads (default: all that it may use)", false},
    [RUN_TIME] = {"--time", NULL, false,
                  "also print how long loading and runs take, to stderr", false},
    [RUN_SAVE] = {"--save-inputs", "FILE", false,
                  "also write the inputs, such as random ones: x.npz", false},
    {NULL, NULL, false, NULL, false},
};

/* ---- results ------------------------------------------------------------------------------- */

/* "y.npy" and 2: "y.2.npy". */
static void numbered(char *out, size_t room, const char *path, size_t i)
{
    const char *dot = strrchr(path, '.');
    if (!dot || strchr(dot, '/'))
        dot = path + strlen(path);
    snprintf(out, room, "%.*s.%zu%s", (int)(dot - path), path, i, dot);
}

/* The tensor of a result: a number is one without dimensions, as numpy.save has it. The caller
 * releases it; NULL with *err set. */
static cfx_tensor *as_tensor(cfx_datum *d, cfx_error *err)
{
    const cfx_dtype dtype = d->kind == CFX_DATUM_BOOL    ? CFX_DTYPE_BOOL
                            : d->kind == CFX_DATUM_INT   ? CFX_DTYPE_INT64
                            : d->kind == CFX_DATUM_FLOAT ? CFX_DTYPE_FLOAT64
                                                         : CFX_DTYPE_COMPLEX128;
    if (d->kind == CFX_DATUM_TENSOR)
        return cfx_datum_retain(*d).as.tensor;
    if (d->kind == CFX_DATUM_BOOL || d->kind == CFX_DATUM_INT || d->kind == CFX_DATUM_FLOAT ||
        d->kind == CFX_DATUM_COMPLEX)
        return cfx_tensor_from_memory(dtype, NULL, NULL, 0, &d->as, true, NULL, NULL, NULL, err);
    cfx_error_set(err, CFX_E_TYPE, "the result is %s, which no file of tensors holds",
                  cfx_datum_kind_name((cfx_datum_kind)d->kind));
    return NULL;
}

static cfx_status write_result(cfx_datum d, const char *path, cfx_error *err)
{
    size_t n;
    char name[4096];
    cfx_datum *items = cfx_datum_items(d, &n);
    if (!items) {
        cfx_tensor *t = as_tensor(&d, err);
        cfx_status status = t ? cfx_tensor_save(t, path, err) : err->status;
        cfx_tensor_release(t);
        return status;
    }
    size_t step = d.kind == CFX_DATUM_DICT ? 2 : 1;
    for (size_t i = step - 1; i < n; i += step) {
        numbered(name, sizeof name, path, i / step);
        cfx_status status = write_result(items[i], name, err);
        if (status != CFX_OK)
            return status;
    }
    return CFX_OK;
}

/* ---- results by name ------------------------------------------------------------------------ */

/* The name of the i-th result that a caller gets: "result.logits", as the signature has it. */
static const char *result_name(const cfx_signature *s, size_t i)
{
    cfx_signature_result r;
    for (size_t k = 0; cfx_signature_result_at(s, k, &r); k++)
        if (!r.state && i-- == 0)
            return r.name;
    return NULL;
}

/* Adds the tensors of a result, under `name` and what is below it. */
static cfx_status collect(cfx_state *all, const cfx_signature *s, cfx_datum *d, const char *name,
                          cfx_error *err)
{
    size_t n;
    cfx_datum *items = cfx_datum_items(*d, &n);
    const bool dict = d->kind == CFX_DATUM_DICT;
    if (!items) {
        cfx_tensor *t = as_tensor(d, err);
        cfx_status status = t ? cfx_state_set(all, name, t, err) : err->status;
        cfx_tensor_release(t);
        return status;
    }
    for (size_t i = dict; i < n; i += 1 + dict) {
        char below[512];
        const char *given = s ? result_name(s, i) : NULL;
        const char *key = dict ? cfx_datum_text(items[i - 1], NULL) : NULL;
        if (given)
            snprintf(below, sizeof below, "%s", given);
        else if (key)
            snprintf(below, sizeof below, "%.200s.%.200s", name, key);
        else
            snprintf(below, sizeof below, "%.200s.%zu", name, i / (1 + dict));
        cfx_status status = collect(all, NULL, &items[i], below, err);
        if (status != CFX_OK)
            return status;
    }
    return CFX_OK;
}

/* FOLDER/NAME.npy for each. A name is no path: what would lead elsewhere becomes '_'. */
static cfx_status write_folder(const cfx_state *all, const char *folder, cfx_error *err)
{
    char path[4096];
    cfx_tensor *t;
    cfx_status status = CFX_OK;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return cfx_error_set(err, CFX_E_IO, "cannot make the folder '%.150s': %s", folder,
                             strerror(errno));
    for (size_t i = 0; status == CFX_OK && i < cfx_state_size(all); i++) {
        const char *name = cfx_state_entry(all, i, &t);
        const size_t begin = strlen(folder) + (folder[strlen(folder) - 1] != '/');
        snprintf(path, sizeof path, "%s%s%s.npy", folder, begin > strlen(folder) ? "/" : "", name);
        for (char *c = path + begin; *c; c++)
            *c = *c == '/' || *c == '\\' || (unsigned char)*c < 0x20 ? '_' : *c;
        status = cfx_tensor_save(t, path, err);
    }
    return status;
}

static bool is_folder(const char *path)
{
    struct stat what;
    const size_t size = strlen(path);
    return (size > 0 && path[size - 1] == '/') || (stat(path, &what) == 0 && S_ISDIR(what.st_mode));
}

static cfx_status write_results(const cfx_signature *s, cfx_datum d, const char *path,
                                cfx_error *err)
{
    const cfx_file_format *format = cfx_file_format_of_path(path);
    const bool folder = is_folder(path);
    if (!folder && (!format || format->content != CFX_CONTENT_TENSORS))
        return write_result(d, path, err);
    cfx_state *all = cfx_state_new(NULL, err);
    cfx_status status = all ? collect(all, s, &d, "result", err) : err->status;
    if (status == CFX_OK)
        status = folder ? write_folder(all, path, err) : cfx_state_save(all, path, err);
    cfx_state_free(all);
    return status;
}

static cfx_status print_line(cfx_datum d, cfx_error *err)
{
    cfx_sink out = cli_stdout();
    cfx_status status = d.kind == CFX_DATUM_TENSOR ? cfx_tensor_print(d.as.tensor, out, err)
                                                   : cfx_datum_print(d, NULL, out, err);
    return status == CFX_OK ? out.write(out.ctx, "\n", 1) : status;
}

/* One line for each tensor; containers are opened. */
static cfx_status print_result(cfx_datum d, cfx_error *err)
{
    size_t n;
    cfx_sink out = cli_stdout();
    const cfx_datum *items = cfx_datum_items(d, &n);
    cfx_status status = CFX_OK;
    if (!items || d.kind == CFX_DATUM_SLICE)
        return print_line(d, err);
    for (size_t i = 0; status == CFX_OK && i < n; i++) {
        bool key = d.kind == CFX_DATUM_DICT && i % 2 == 0;
        status = key ? cfx_datum_print(items[i], NULL, out, err) : print_result(items[i], err);
        if (status == CFX_OK && key)
            status = out.write(out.ctx, ": ", 2);
    }
    return status;
}

/* The same, with the names of the signature where it has several. */
static cfx_status print_results(const cfx_signature *s, cfx_datum d, cfx_error *err)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    cfx_sink out = cli_stdout();
    cfx_status status = CFX_OK;
    if (!s || !items || d.kind == CFX_DATUM_DICT || !result_name(s, 1))
        return print_result(d, err);
    for (size_t i = 0; status == CFX_OK && i < n; i++) {
        char line[300];
        const char *name = result_name(s, i);
        const int size = snprintf(line, sizeof line, "%.280s:\n", name ? name : "result");
        status = out.write(out.ctx, line, (size_t)size);
        if (status == CFX_OK)
            status = print_result(items[i], err);
    }
    return status;
}

/* ---- running ------------------------------------------------------------------------------- */

/* Further runs, for about a second. */
static cfx_status measure(const cli_program *p, double load, double first, cfx_error *err)
{
    cli_times t;
    cli_working("measuring");
    const cfx_status status = cli_measure(p, 1, &t, err);
    cli_progress_end();
    if (status == CFX_OK)
        fprintf(stderr, "load %.3f ms, first run %.3f ms; then best %.3f ms, median %.3f ms, of "
                "%zu runs, %u threads\n", load * 1e3, first * 1e3, t.best * 1e3, t.median * 1e3,
                t.runs, cfx_runtime_threads(p->rt));
    return status;
}

/* The inputs of a run as a file: those that were given, and those of random numbers. */
static cfx_status save_inputs(const cli_program *p, const char *path, cfx_error *err)
{
    cfx_state *all = cfx_state_new(NULL, err);
    cfx_status status = all ? CFX_OK : err->status;
    for (size_t i = 0; status == CFX_OK && i < p->num_inputs; i++)
        if (p->inputs[i].kind != CFX_DATUM_INVALID)  /* else it has a default */
            status = collect(all, NULL, &p->inputs[i], cli_program_input(p, i), err);
    if (status == CFX_OK)
        status = cfx_state_save(all, path, err);
    cfx_state_free(all);
    return status;
}

static cfx_status run_once(const cli_args *args, const cli_program *p, double *took,
                           cfx_error *err)
{
    size_t graph;
    const char *path = args->values[RUN_OUTPUT];
    cli_working("running");
    *took = cli_seconds();
    cfx_datum result = cli_program_run(p, &graph, err);
    *took = cli_seconds() - *took;
    cli_progress_end();
    if (result.kind == CFX_DATUM_INVALID)
        return err->status;
    const cfx_signature *s = p->executable ? cfx_executable_signature(p->executable, graph)
                                           : p->signature;
    cfx_status status = path ? write_results(s, result, path, err) : print_results(s, result, err);
    cfx_datum_release(result);
    return status;
}

static cfx_status run(const cli_args *args, const cli_input *in, double begin,
                      const cfx_runtime_options *options, bool *told, cfx_error *err)
{
    cli_program p;
    double first = 0;
    cfx_status status =
        cli_program_open(&p, in, args->values[RUN_WEIGHTS], options, CFX_PRECISION_FLOAT32, told,
                         err);
    const double load = cli_seconds() - begin;
    if (status == CFX_OK)
        status = cli_program_fill(&p, in, args, args->values[RUN_RANDOM], err);
    if (status == CFX_OK && args->values[RUN_SAVE])
        status = save_inputs(&p, args->values[RUN_SAVE], err);
    if (status == CFX_OK)
        status = run_once(args, &p, &first, err);
    if (status == CFX_OK && args->values[RUN_TIME])
        status = measure(&p, load, first, err);
    cli_program_end(&p);
    return status;
}

static int cmd_run(const cli_args *args)
{
    cli_input in;
    cfx_error err = {.status = CFX_OK};
    uint64_t seed = 0;
    uint64_t threads = 0;
    bool told = false;
    int code = CLI_OK;
    if (!cli_number(args, RUN_SEED, UINT64_MAX, &seed) ||
        !cli_number(args, RUN_THREADS, 1024, &threads))
        return CLI_BAD_USAGE;
    const cfx_runtime_options options = {.seed = seed, .threads = (unsigned)threads,
                                         .print = cli_stdout()};
    const double begin = cli_seconds();
    if (!cli_open_to_run(&in, args->file))
        code = CLI_UNREADABLE;
    else if (run(args, &in, begin, &options, &told, &err) != CFX_OK)
        code = told ? CLI_BAD_INPUT : cli_failed(&in, &err);
    cli_close(&in);
    return code;
}

const cli_verb verb_run = {
    .name = "run",
    .summary = "run a graph, and print or save the result",
    .usage = "[--weights FILE] [--input [NAME=]FILE]... [--random[=SIZES]]\n"
              "               [--output FILE] FILE",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .examples =
        "  cfx run --weights model.safetensors --input x.npy model.ir\n"
        "  cfx run --input x=x.npy --input scale=2.5 --output y.npy model.ir\n"
        "  cfx run --random n=8 --output y.npz model.cfx\n"
        "  cfx run --input 'x=image.raw:uint8[1,3,224,224]' model.cfx\n"
        "  cfx run --time --threads 2 --input x.npy model.ir\n",
    .run = cmd_run,
};
