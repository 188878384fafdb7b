/* cmd_bench.c - cfx bench: how long a model takes, with several numbers of threads. Beside other
 * engines it is measured by the Python package (python/cfx/_bench), which they are installed for;
 * that takes the verb before this file is asked. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BENCH_WEIGHTS, BENCH_INPUT, BENCH_RANDOM, BENCH_THREADS, BENCH_SECONDS, BENCH_JSON,
       BENCH_AGAINST, BENCH_ROUNDS };

static const cli_option verb_options[] = {
    [BENCH_WEIGHTS] = {"--weights", "FILE", false, "the parameters: {tensors}", false},
    [BENCH_INPUT] = {"--input", "[NAME=]FILE", false,
                     "an input, in order or by name, as cfx run takes it", true},
    [BENCH_RANDOM] = {"--random", "N=8,x=2x3", true,
                      "random numbers for the other inputs; sizes that may differ are given",
                      false},
    [BENCH_THREADS] = {"--threads", "N,N,...", false,
                       "numbers of threads, such as 1,2 (default: all the machine has)", false},
    [BENCH_SECONDS] = {"--seconds", "S", false, "how long each is measured (default 1)", false},
    [BENCH_JSON] = {"--json", NULL, false, "write JSON", false},
    [BENCH_AGAINST] = {"--against", "ENGINE,...", false,
                       "compare with other engines that are installed: onnxruntime, openvino, "
                       "torch, compile (of torch)", false},
    [BENCH_ROUNDS] = {"--rounds", "N", false,
                      "with --against: how often the engines take turns (default 5)", false},
    {NULL, NULL, false, NULL, false},
};

enum { MOST_COUNTS = 16 };

/* One line of the table; in seconds. */
typedef struct row {
    unsigned threads;
    double load, first;
    cli_times times;
} row;

typedef struct bench {
    const cli_args *args;
    const cli_input *in;
    double seconds;
    unsigned counts[MOST_COUNTS];  /* of threads; 0: all */
    size_t num_counts;
    row rows[MOST_COUNTS];
    size_t num_rows;
    bool told;
} bench;

/* ---- options -------------------------------------------------------------------------------- */

static bool take_counts(bench *b, const char *text)
{
    b->num_counts = 0;
    do {
        char *end;
        const unsigned long n = strtoul(text, &end, 10);
        if (end == text || n == 0 || n > 1024 || *text == '-' || *text == '+' ||
            (*end && *end != ',') || b->num_counts == MOST_COUNTS)
            return false;
        b->counts[b->num_counts++] = (unsigned)n;
        text = *end ? end + 1 : NULL;
    } while (text);
    return true;
}

static int take_options(bench *b)
{
    const char *threads = b->args->values[BENCH_THREADS];
    const char *seconds = b->args->values[BENCH_SECONDS];
    char *end = NULL;
    if (b->args->values[BENCH_AGAINST] || b->args->values[BENCH_ROUNDS]) {
        fputs("cfx bench: other engines are measured by the Python package; install it "
              "(pip install cfx) and run: python -m cfx bench\n", stderr);
        return CLI_BAD_INPUT;
    }
    if (threads && !take_counts(b, threads))
        return cli_usage_error(b->args->verb, "--threads needs numbers, such as 1,2, not '%s'",
                               threads);
    if (seconds)
        b->seconds = strtod(seconds, &end);
    if (seconds && (end == seconds || *end || !(b->seconds >= 0 && b->seconds <= 3600)))
        return cli_usage_error(b->args->verb, "--seconds needs a number up to 3600, not '%s'",
                               seconds);
    return CLI_OK;
}

/* ---- measuring ------------------------------------------------------------------------------ */

static cfx_status time_first(const cli_program *p, double *took, cfx_error *err)
{
    size_t graph;
    const double begin = cli_seconds();
    const cfx_datum d = cli_program_run(p, &graph, err);
    *took = cli_seconds() - begin;
    if (d.kind == CFX_DATUM_INVALID)
        return err->status;
    cfx_datum_release(d);
    return CFX_OK;
}

/* The model is made anew for each number of threads: its load and first run are those of one who
 * uses that many. */
static cfx_status measure(bench *b, unsigned threads, cfx_error *err)
{
    cli_program p;
    row *r = &b->rows[b->num_rows];
    const cfx_runtime_options options = {.threads = threads, .print = cli_stdout()};
    const double begin = cli_seconds();
    cfx_status status = cli_program_open(&p, b->in, b->args->values[BENCH_WEIGHTS], &options,
                                         CFX_PRECISION_FLOAT32, &b->told, err);
    r->load = cli_seconds() - begin;
    if (status == CFX_OK)
        status = cli_program_fill(&p, b->in, b->args, b->args->values[BENCH_RANDOM], err);
    cli_working("measuring");
    if (status == CFX_OK)
        status = time_first(&p, &r->first, err);
    if (status == CFX_OK)
        status = cli_measure(&p, b->seconds, &r->times, err);
    cli_progress_end();
    if (status == CFX_OK) {
        r->threads = cfx_runtime_threads(p.rt);
        b->num_rows++;
    }
    cli_program_end(&p);
    return status;
}

/* ---- results -------------------------------------------------------------------------------- */

static void print_table(const bench *b)
{
    printf("%s: milliseconds\n", b->in->name);
    printf("threads      load  first run      best    median  spread  runs\n");
    for (size_t i = 0; i < b->num_rows; i++) {
        const row *r = &b->rows[i];
        printf("%7u %9.3f  %9.3f %9.3f %9.3f  %5.0f%% %5zu\n", r->threads, r->load * 1e3,
               r->first * 1e3, r->times.best * 1e3, r->times.median * 1e3,
               100 * r->times.spread / r->times.median, r->times.runs);
    }
}

static void put_number(cfx_json *j, const char *key, double x)
{
    cfx_json_field(j, key);
    cfx_json_float(j, x);
}

static void put_count(cfx_json *j, const char *key, size_t n)
{
    cfx_json_field(j, key);
    cfx_json_uint(j, n);
}

/* {"model": "x.cfx", "rows": [{"threads": 1, "load": seconds, ...}]} */
static cfx_status print_json(const bench *b)
{
    cfx_json j;
    const cfx_sink out = cli_stdout();
    cfx_json_begin(&j, out, false);
    cfx_json_open(&j, '{');
    cfx_json_field(&j, "model");
    cfx_json_text(&j, b->in->name);
    cfx_json_field(&j, "rows");
    cfx_json_open(&j, '[');
    for (size_t i = 0; i < b->num_rows; i++) {
        const row *r = &b->rows[i];
        cfx_json_line(&j);
        cfx_json_open(&j, '{');
        put_count(&j, "threads", r->threads);
        put_number(&j, "load", r->load);
        put_number(&j, "first", r->first);
        put_number(&j, "best", r->times.best);
        put_number(&j, "median", r->times.median);
        put_number(&j, "spread", r->times.spread);
        put_count(&j, "runs", r->times.runs);
        cfx_json_close(&j, '}');
    }
    cfx_json_close(&j, ']');
    cfx_json_close(&j, '}');
    return j.status == CFX_OK ? out.write(out.ctx, "\n", 1) : j.status;
}

static cfx_status run(bench *b, cfx_error *err)
{
    for (size_t i = 0; i < b->num_counts; i++) {
        const cfx_status status = measure(b, b->counts[i], err);
        if (status != CFX_OK)
            return status;
    }
    if (b->args->values[BENCH_JSON])
        return print_json(b);
    print_table(b);
    return CFX_OK;
}

static int cmd_bench(const cli_args *args)
{
    cli_input in;
    cfx_error err = {.status = CFX_OK};
    bench b = {.args = args, .in = &in, .seconds = 1, .num_counts = 1};
    int code = take_options(&b);
    if (code != CLI_OK)
        return code;
    if (!cli_open_to_run(&in, args->file))
        code = CLI_UNREADABLE;
    else if (run(&b, &err) != CFX_OK)
        code = b.told ? CLI_BAD_INPUT : cli_failed(&in, &err);
    cli_close(&in);
    return code;
}

const cli_verb verb_bench = {
    .name = "bench",
    .summary = "measure how long a model takes, also beside other engines",
    .usage = "[--weights FILE] [--input [NAME=]FILE]... [--random[=SIZES]]\n"
              "                 [--threads N,N] [--against ENGINE,...] FILE",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .examples =
        "  cfx bench --random model.cfx\n"
        "  cfx bench --random n=8 --threads 1,2 --json model.cfx\n"
        "  python -m cfx bench --random --against onnxruntime,openvino,torch model.cfx\n",
    .run = cmd_bench,
};
