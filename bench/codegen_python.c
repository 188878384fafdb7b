/* codegen_python.c - time to generate Python, per node; torch.fx 2.13 needs about 10,000 ns. */
#include <cfx/cfx.h>
#include <cfx/embed/embed.h>
#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A chain of functions, operators, modules and methods; NULL if it fails. */
static cfx_graph *chain(size_t n, cfx_error *err)
{
    static const struct {
        cfx_opcode op;
        const char *target;
        size_t args;
    } calls[] = {
        {CFX_OP_CALL_FUNCTION, "torch.relu", 1},    {CFX_OP_CALL_FUNCTION, "operator.add", 2},
        {CFX_OP_CALL_MODULE, "layers.0.conv", 1},   {CFX_OP_CALL_METHOD, "view", 2},
        {CFX_OP_CALL_FUNCTION, "pkg.mod.fn", 2},
    };
    cfx_graph *g = cfx_graph_new(NULL, NULL, err);
    cfx_node *x = g ? cfx_graph_placeholder(g, "x", err) : NULL;
    cfx_node *last = x;
    for (size_t i = 0; x && i < n; i++) {
        const cfx_value args[] = {cfx_value_node(x), cfx_value_node(last)};
        last = x;
        x = cfx_graph_call(g, calls[i % 5].op, calls[i % 5].target, args, calls[i % 5].args, NULL,
                           0, err);
    }
    if (x && cfx_graph_output(g, cfx_value_node(x), err))
        return g;
    cfx_graph_release(g);
    return NULL;
}

/* The best of several runs, in nanoseconds per node; negative if it fails. */
static double measure(cfx_graph *g, int runs, cfx_error *err)
{
    double best = 1e9;
    for (int i = 0; i < runs; i++) {
        cfx_pycode_result code;
        const double start = now();
        if (cfx_codegen_python(g, NULL, &code, err))
            return -1;
        const double time = now() - start;
        best = time < best ? time : best;
        cfx_pycode_free(&code);
    }
    return best / (double)cfx_graph_size(g) * 1e9;
}

int main(void)
{
    static const size_t sizes[] = {1000, 40000, 1000000};
    printf("%10s %14s %18s\n", "nodes", "ns per node", "with a collision");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        cfx_error err;
        cfx_graph *g = chain(sizes[i], &err);
        if (!g)
            return fprintf(stderr, "%s\n", err.message), 1;
        const int runs = sizes[i] > 100000 ? 5 : 20;
        const double plain = measure(g, runs, &err);
        /* A reserved word for a name: from there on all names go through the namespace. */
        cfx_node *first = cfx_node_next(cfx_graph_first(g));
        double exact = -1;
        if (cfx_node_set_name(first, "for", 3, &err) == CFX_OK)
            exact = measure(g, runs, &err);
        printf("%10zu %14.1f %18.1f\n", sizes[i], plain, exact);
        cfx_graph_release(g);
        if (plain < 0 || exact < 0)
            return 1;
    }
    return 0;
}
