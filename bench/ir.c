/* ir.c - what the core costs, per node: build, iterate, edit, copy, print, parse, generate.
 *
 * A chain that alternates relu(x) and add(x, 1), through the C API. Each number is the median of
 * several runs in nanoseconds per node; the last column is how much dearer a node of the largest
 * graph is than one of the smallest (1 is linear). `ir 40000` measures one size only.
 */
#include <cfx/cfx.h>
#include <cfx/embed/embed.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) /* of this process: what others do counts less */
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
    fprintf(stderr, "ir: %s failed\n", what);
    exit(1);
}

static void must(cfx_status status, const char *what)
{
    if (status != CFX_OK)
        fail(what);
}

/* ---- what is measured ---------------------------------------------------------------------- */

/* One graph and what was made of it; every step leaves the graph as it found it, but for its size
 * in bytes. */
typedef struct subject {
    cfx_graph *g;
    size_t n;
    cfx_buffer text;
    uint64_t sum; /* keeps the compiler from leaving work out */
} subject;

typedef void step(subject *s);

static cfx_graph *chain(size_t n)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = g ? cfx_graph_placeholder(g, "x", NULL) : NULL;
    for (size_t i = 2; x && i < n; i++) {
        const cfx_value args[] = {cfx_value_node(x), cfx_value_int(1)};
        const bool relu = i % 2 == 0;
        x = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, relu ? "torch.relu" : "_operator.add", args,
                           relu ? 1 : 2, NULL, 0, NULL);
    }
    if (!x || !cfx_graph_output(g, cfx_value_node(x), NULL))
        fail("building");
    return g;
}

static void build(subject *s)
{
    cfx_graph_release(s->g);
    s->g = chain(s->n);
}

static void iterate(subject *s)
{
    cfx_iter it;
    cfx_iter_begin(&it, s->g, false);
    for (cfx_node *n; (n = cfx_iter_next(&it));)
        s->sum += cfx_node_op(n) + cfx_node_num_args(n) + cfx_node_num_users(n);
    cfx_iter_end(&it);
}

static void set_args(subject *s)
{
    for (cfx_node *n = cfx_node_next(cfx_graph_first(s->g)); n; n = cfx_node_next(n)) {
        const cfx_value args[] = {cfx_value_node(cfx_node_prev(n)), cfx_value_int(2)};
        const cfx_value tuple = cfx_value_tuple(s->g, args, cfx_node_num_args(n), NULL);
        must(cfx_node_set_args(n, tuple, NULL), "assigning arguments");
    }
}

/* Every node's uses, one node after the other. */
static void replace(subject *s)
{
    for (cfx_node *n = cfx_graph_first(s->g); n; n = cfx_node_next(n))
        must(cfx_node_replace_uses(n, cfx_value_node(n), NULL, NULL, NULL, NULL), "replacing");
}

/* Puts a node after every node and takes it away again; its name stays taken. */
static void insert_and_erase(subject *s)
{
    for (cfx_node *n = cfx_graph_first(s->g); n; n = cfx_node_next(n)) {
        cfx_graph_set_insert_point(s->g, (cfx_insert_point){n, true}, NULL);
        const cfx_value arg = cfx_value_node(n);
        cfx_node *extra = cfx_graph_call(s->g, CFX_OP_CALL_METHOD, "neg", &arg, 1, NULL, 0, NULL);
        if (!extra)
            fail("inserting");
        must(cfx_graph_erase(s->g, extra, NULL), "erasing");
    }
    cfx_graph_set_insert_point(s->g, (cfx_insert_point){NULL, false}, NULL);
}

static void verify(subject *s) { must(cfx_graph_verify(s->g, NULL, NULL, NULL), "verifying"); }

static void copy(subject *s)
{
    cfx_graph *copied = cfx_graph_clone(s->g, NULL, NULL);
    if (!copied)
        fail("copying");
    cfx_graph_release(copied);
}

static void print(subject *s)
{
    cfx_buffer_free(&s->text);
    must(cfx_graph_print(s->g, cfx_buffer_sink(&s->text), NULL), "printing");
}

static void write_text(subject *s)
{
    cfx_buffer_free(&s->text);
    must(cfx_graph_text(s->g, cfx_buffer_sink(&s->text), NULL), "writing");
}

static void parse(subject *s) /* what write_text has left */
{
    cfx_graph *parsed = cfx_graph_parse(s->text.data, s->text.size, NULL, NULL, NULL);
    if (!parsed)
        fail("parsing");
    cfx_graph_release(parsed);
}

static void generate(subject *s)
{
    cfx_pycode_result code;
    must(cfx_codegen_python(s->g, NULL, &code, NULL), "generating");
    s->sum += code.source.size;
    cfx_pycode_free(&code);
}

static const struct {
    const char *name;
    step *run;
} steps[] = {
    {"build and free", build}, {"iterate and read", iterate}, {"set args", set_args},
    {"replace uses", replace}, {"insert and erase", insert_and_erase}, {"verify", verify},
    {"copy and free", copy}, {"str(graph)", print}, {"write IR text", write_text},
    {"parse and free", parse}, {"generate Python", generate},
};
enum { STEPS = sizeof steps / sizeof *steps, RUNS = 7 };

/* ---- the table ----------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nanoseconds per node: the median of several runs, fewer for a large graph. */
static double measure(step *run, subject *s)
{
    double times[RUNS];
    const size_t runs = s->n > 200000 ? 3 : RUNS;
    const size_t repeat = s->n < 20000 ? 20000 / s->n : 1;
    for (size_t i = 0; i < runs; i++) {
        const double start = now();
        for (size_t k = 0; k < repeat; k++)
            run(s);
        times[i] = (now() - start) / (double)repeat;
    }
    qsort(times, runs, sizeof *times, compare);
    return times[runs / 2] / (double)s->n * 1e9;
}

static void measure_size(size_t n, double column[STEPS + 1])
{
    subject s = {.n = n};
    cfx_buffer_init(&s.text, NULL);
    s.g = chain(n);
    column[STEPS] = (double)cfx_graph_memory(s.g) / (double)n;
    for (size_t k = 0; k < STEPS; k++)
        column[k] = measure(steps[k].run, &s);
    cfx_buffer_free(&s.text);
    cfx_graph_release(s.g);
}

static void print_row(const char *name, double columns[][STEPS + 1], size_t n, size_t row)
{
    printf("%-18s", name);
    for (size_t i = 0; i < n; i++)
        printf("%10.1f", columns[i][row]);
    if (n > 1)
        printf("%9.2f", columns[n - 1][row] / columns[0][row]);
    printf("\n");
}

int main(int argc, char **argv)
{
    static const size_t all[] = {1000, 10000, 40000, 100000, 1000000};
    const size_t one = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    const size_t *sizes = one ? &one : all;
    const size_t n = one ? 1 : sizeof all / sizeof *all;
    double columns[sizeof all / sizeof *all][STEPS + 1];
    printf("%-18s", "ns per node");
    for (size_t i = 0; i < n; i++) {
        printf("%10zu", sizes[i]);
        fflush(stdout);
        measure_size(sizes[i], columns[i]);
    }
    printf("%s\n", n > 1 ? "   growth" : "");
    for (size_t k = 0; k < STEPS; k++)
        print_row(steps[k].name, columns, n, k);
    print_row("bytes per node", columns, n, STEPS);
    return 0;
}
