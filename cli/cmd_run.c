/* cmd_run.c - cfx run: computes a graph on tensors of files. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUN_WEIGHTS, RUN_INPUT, RUN_OUTPUT, RUN_SEED, RUN_THREADS, RUN_TIME };

static const cli_option verb_options[] = {
    [RUN_WEIGHTS] = {"--weights", "FILE", false, "the parameters: {tensors}", false},
    [RUN_INPUT] = {"--input", "[NAME=]FILE", false,
                   "an input, in order or by name: a number, {tensor}", true},
    [RUN_OUTPUT] = {"--output", "FILE", false,
                    "write the result here; several as y.0.npy, y.1.npy, ...", false},
    [RUN_SEED] = {"--seed", "N", false, "seed for random numbers (default 0)", false},
    [RUN_THREADS] = {"--threads", "N", false,
                     "number of threads (default: all the machine has)", false},
    [RUN_TIME] = {"--time", NULL, false,
                  "also print how long a run takes, to stderr", false},
    {NULL, NULL, false, NULL, false},
};

/* ---- inputs -------------------------------------------------------------------------------- */

/* A number, True, False or None as such; anything else names a file. */
static cfx_datum read_input(const char *text, cfx_error *err)
{
    cfx_error none = {0};
    cfx_dims *dims = cfx_dims_new(NULL, err);
    cfx_datum d = cfx_datum_invalid();
    if (dims)
        d = cfx_datum_parse(dims, text, strlen(text), NULL, &none);
    cfx_dims_free(dims);
    if (d.kind != CFX_DATUM_INVALID && d.kind != CFX_DATUM_TENSOR && !d.symbolic)
        return d;
    cfx_datum_release(d);
    return cfx_datum_tensor(cfx_tensor_load(text, NULL, err));
}

/* Where the name before '=' ends; 0 if there is none: x.npy, dir=1/x.npy. */
static size_t name_of(const char *text)
{
    size_t size = strcspn(text, "=");
    return text[size] && !memchr(text, '/', size) && !memchr(text, '.', size) ? size : 0;
}

static cfx_status give_inputs(cli_program *p, const cli_args *args, cfx_error *err)
{
    size_t next = 0;
    for (size_t i = 0; i < args->num_repeated; i++) {
        const char *text = args->repeated[i];
        size_t size = name_of(text);
        const char *name = size ? text : cfx_program_input(p->program, next++);
        if (!name)
            return cfx_error_set(err, CFX_E_TYPE, "too many inputs: expected at most %zu, got %zu",
                                 p->num_inputs,
                                 args->num_repeated);
        cfx_datum d = read_input(size ? text + size + 1 : text, err);
        if (d.kind == CFX_DATUM_INVALID)
            return err->status;
        cfx_status status = cli_program_set(p, name, size ? size : strlen(name), d, err);
        cfx_datum_release(d);
        if (status != CFX_OK)
            return status;
    }
    return CFX_OK;
}

/* ---- results ------------------------------------------------------------------------------- */

/* "y.npy" and 2: "y.2.npy". */
static void numbered(char *out, size_t room, const char *path, size_t i)
{
    const char *dot = strrchr(path, '.');
    if (!dot || strchr(dot, '/'))
        dot = path + strlen(path);
    snprintf(out, room, "%.*s.%zu%s", (int)(dot - path), path, i, dot);
}

/* A number is a tensor without dimensions, as numpy.save has it. */
static cfx_status write_number(cfx_datum d, const char *path, cfx_error *err)
{
    const cfx_dtype dtype = d.kind == CFX_DATUM_BOOL    ? CFX_DTYPE_BOOL
                            : d.kind == CFX_DATUM_INT   ? CFX_DTYPE_INT64
                            : d.kind == CFX_DATUM_FLOAT ? CFX_DTYPE_FLOAT64
                                                        : CFX_DTYPE_COMPLEX128;
    cfx_tensor *t = cfx_tensor_from_memory(dtype, NULL, NULL, 0, &d.as, true, NULL, NULL, NULL,
                                           err);
    cfx_status status = t ? cfx_tensor_save(t, path, err) : err->status;
    cfx_tensor_release(t);
    return status;
}

static cfx_status write_result(cfx_datum d, const char *path, cfx_error *err)
{
    size_t n;
    char name[4096];
    const cfx_datum *items = cfx_datum_items(d, &n);
    if (d.kind == CFX_DATUM_TENSOR)
        return cfx_tensor_save(d.as.tensor, path, err);
    if (d.kind == CFX_DATUM_BOOL || d.kind == CFX_DATUM_INT || d.kind == CFX_DATUM_FLOAT ||
        d.kind == CFX_DATUM_COMPLEX)
        return write_number(d, path, err);
    if (!items)
        return cfx_error_set(err, CFX_E_TYPE, "the result is %s, which no file of tensors holds",
                             cfx_datum_kind_name((cfx_datum_kind)d.kind));
    size_t step = d.kind == CFX_DATUM_DICT ? 2 : 1;
    for (size_t i = step - 1; i < n; i += step) {
        numbered(name, sizeof name, path, i / step);
        cfx_status status = write_result(items[i], name, err);
        if (status != CFX_OK)
            return status;
    }
    return CFX_OK;
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

/* ---- running ------------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of some runs, for about a second. */
static cfx_status measure(const cli_program *p, cfx_error *err)
{
    double begin = seconds();
    double best = 0;
    int runs = 0;
    do {
        double start = seconds();
        cfx_datum d = cfx_program_run(p->program, p->rt, p->inputs, p->num_inputs, err);
        double took = seconds() - start;
        if (d.kind == CFX_DATUM_INVALID)
            return err->status;
        cfx_datum_release(d);
        best = runs++ == 0 || took < best ? took : best;
    } while (seconds() - begin < 1 && runs < 1000);
    fprintf(stderr, "%.3f ms, best of %d runs, %u threads\n", best * 1e3, runs,
            cfx_runtime_threads(p->rt));
    return CFX_OK;
}

static cfx_status run(const cli_args *args, const cli_input *in,
                      const cfx_runtime_options *options, bool *told, cfx_error *err)
{
    cli_program p;
    cfx_datum result = cfx_datum_invalid();
    cfx_status status = cli_program_begin(&p, in, args->values[RUN_WEIGHTS], options, err);
    if (status == CFX_OK)
        status = cli_program_make(&p, in, told, err);
    if (status == CFX_OK)
        status = give_inputs(&p, args, err);
    if (status == CFX_OK) {
        cli_working("running");
        result = cfx_program_run(p.program, p.rt, p.inputs, p.num_inputs, err);
        cli_progress_end();
        status = result.kind == CFX_DATUM_INVALID ? err->status : CFX_OK;
    }
    if (status == CFX_OK)
        status = args->values[RUN_OUTPUT] ? write_result(result, args->values[RUN_OUTPUT], err)
                                          : print_result(result, err);
    if (status == CFX_OK && args->values[RUN_TIME])
        status = measure(&p, err);
    cfx_datum_release(result);
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
    if (!cli_open(&in, args->file))
        code = CLI_UNREADABLE;
    else if (run(args, &in, &options, &told, &err) != CFX_OK)
        code = told ? CLI_BAD_INPUT : cli_failed(&in, &err);
    cli_close(&in);
    return code;
}

const cli_verb verb_run = {
    .name = "run",
    .summary = "run a graph, and print or save the result",
    .usage = "[--weights FILE] [--input [NAME=]FILE]... [--output FILE]\n"
              "               FILE",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .examples =
        "  cfx run --weights model.safetensors --input x.npy model.ir\n"
        "  cfx run --input x=x.npy --input scale=2.5 --output y.npy model.ir\n"
        "  cfx run --time --threads 2 --input x.npy model.ir\n",
    .run = cmd_run,
};
