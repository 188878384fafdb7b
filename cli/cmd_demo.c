/* cmd_demo.c - cfx demo: a small network in C, all the way from its source to its results. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the network ---------------------------------------------------------------------------- */

static const char forward_text[] =
    "static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)\n"
    "{\n"
    "    cfx_var y = cfx_call(s, cfx_module_child(self, \"conv1\"), x);\n"
    "    y = cfx_relu(s, cfx_call(s, cfx_module_child(self, \"bn1\"), y));\n"
    "    y = cfx_call(s, cfx_module_child(self, \"conv2\"), y);\n"
    "    y = cfx_call(s, cfx_module_child(self, \"bn2\"), y);\n"
    "    y = cfx_relu(s, cfx_add(s, y, x));\n"
    "    y = cfx_mean(s, y, .dim = cfx_ints(s, 2, 3));\n"
    "    y = cfx_call(s, cfx_module_child(self, \"drop\"), y);\n"
    "    return cfx_call(s, cfx_module_child(self, \"fc\"), y);\n"
    "}\n";

static const char model_text[] =
    "static const cfx_class net_class = {.name = \"Net\", .forward = forward};\n"
    "\n"
    "cfx_module *cfx_model(cfx_scope *s)\n"
    "{\n"
    "    cfx_module *m = cfx_module_new(s, &net_class);\n"
    "    cfx_module_add(s, m, \"conv1\", cfx_nn_conv2d(s, 16, 16, 3, .padding = cfx_v(1)));\n"
    "    cfx_module_add(s, m, \"bn1\", cfx_nn_batch_norm2d(s, 16));\n"
    "    cfx_module_add(s, m, \"conv2\", cfx_nn_conv2d(s, 16, 16, 3, .padding = cfx_v(1)));\n"
    "    cfx_module_add(s, m, \"bn2\", cfx_nn_batch_norm2d(s, 16));\n"
    "    cfx_module_add(s, m, \"drop\", cfx_nn_dropout(s, .p = cfx_v(0.2)));\n"
    "    cfx_module_add(s, m, \"fc\", cfx_nn_linear(s, 16, 10));\n"
    "    cfx_module_train(m, false);\n"
    "    return m;\n"
    "}\n";

/* ---- printing ------------------------------------------------------------------------------ */

/* The heading of a step. */
static void step(int number, const char *text)
{
    printf("\n%s%d. %s%s\n\n", cli_ink_on(stdout, CLI_BOLD), number, text,
           cli_ink_on(stdout, CLI_PLAIN));
    fflush(stdout);
}

static void print_source(const char *text)
{
    while (*text) {
        const size_t size = strcspn(text, "\n");
        printf("%s%.*s\n", size ? "  " : "", (int)size, text);
        text += size + (text[size] == '\n');
    }
}

static cfx_status print_table(cfx_graph *g, cfx_error *err)
{
    const size_t width = cli_width();
    cli_colour colour;
    const bool coloured = cli_has_colour(stdout);
    cfx_sink out = coloured ? cli_colour_sink(&colour, cli_stdout()) : cli_stdout();
    cfx_status status = cfx_graph_table(g, width && width < 100 ? width : 100, out, err);
    if (coloured)
        cli_colour_free(&colour);
    return status;
}

/* ---- measuring ------------------------------------------------------------------------------ */

typedef struct demo {
    cli_model net;
    cli_model generated;
    cfx_module *captured, *transformed;
    cfx_tensor *x;        /* retained; as y, what the network gives for it */
    cfx_tensor *y;
    bool equal;
} demo;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The largest difference of what `m` gives from `y`; negative, and the scope fails. */
static double difference(const demo *d, cfx_scope *s, cfx_module *m)
{
    const size_t mark = cfx_scope_mark(s);
    cfx_var got = cfx_call(s, m, cfx_var_from_tensor(s, d->x));
    cfx_var off = cfx_abs(s, cfx_sub(s, got, cfx_var_from_tensor(s, d->y)));
    const double largest = cfx_var_number(s, cfx_max(s, off));
    cfx_scope_reset(s, mark, cfx_var_empty());
    return cfx_scope_ok(s) ? largest : -1;
}

/* The best of some calls, for a third of a second, in milliseconds. */
static double best_time(const demo *d, cfx_scope *s, cfx_module *m)
{
    const double begin = seconds();
    double best = 0;
    int runs = 0;
    do {
        const size_t mark = cfx_scope_mark(s);
        const double start = seconds();
        cfx_call(s, m, cfx_var_from_tensor(s, d->x));
        const double took = seconds() - start;
        cfx_scope_reset(s, mark, cfx_var_empty());
        best = runs++ == 0 || took < best ? took : best;
    } while (cfx_scope_ok(s) && seconds() - begin < 0.33);
    return best * 1e3;
}

/* One row of the last table; false if the call failed. */
static bool print_way(demo *d, const char *way, cfx_scope *s, cfx_module *m)
{
    const double off = difference(d, s, m);
    const double time = best_time(d, s, m);
    if (!cfx_scope_ok(s))
        return false;
    d->equal = d->equal && off < 1e-4;
    printf("  %-38s %10.3f %22.1e\n", way, time, off);
    fflush(stdout);
    return true;
}

/* ---- the steps ------------------------------------------------------------------------------ */

static int no_luck(const cfx_error *err)
{
    fprintf(stderr, "cfx demo: %s\n", err->message);
    return CLI_BAD_INPUT;
}

static int begin(demo *d)
{
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    static const char head[] = "#include <cfx/cfx.h>\n\n";
    cfx_status status = cfx_buffer_append(&text, head, sizeof head - 1);
    status = status ? status : cfx_buffer_append(&text, forward_text, sizeof forward_text - 1);
    status = status ? status : cfx_buffer_append(&text, "\n", 1);
    status = status ? status : cfx_buffer_append(&text, model_text, sizeof model_text - 1);
    step(1, "A network in C. It runs on tensors, and it can be captured.");
    print_source(text.data);
    fflush(stdout);
    int code = status ? CLI_BAD_INPUT : cli_model_begin(&d->net, "demo.c", text.data, NULL);
    cfx_buffer_free(&text);
    return code;
}

/* Numbers that an untrained batch-norm would not have: otherwise folding it is no work. */
static void unsettle(cfx_scope *s, cfx_module *m)
{
    static const char *const names[] = {"bn1.running_mean", "bn2.running_mean", "bn1.weight",
                                        "bn2.weight", "bn1.bias", "bn2.bias"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cfx_uniform_(s, cfx_module_param(s, m, names[i]));
}

static int capture(demo *d)
{
    cfx_scope *s = d->net.scope;
    cfx_error err = {.status = CFX_OK};
    unsettle(s, d->net.module);
    cfx_var x = cfx_randn(s, cfx_ints(s, 1, 16, 56, 56));
    d->x = cfx_tensor_retain(cfx_var_tensor(s, x));
    d->y = cfx_tensor_retain(cfx_var_tensor(s, cfx_call(s, d->net.module, x)));
    const cfx_at nowhere = cfx_at_make(s, NULL, 0);
    d->captured = cfx_trace_at(nowhere, d->net.module, (cfx_trace_options){.shapes = NULL});
    d->transformed = cfx_trace_at(nowhere, d->net.module, (cfx_trace_options){.shapes = NULL});
    if (!cfx_scope_ok(s))
        return cli_model_failed(&d->net);
    step(2, "Captured: called once with a variable that stands for any tensor.");
    return print_table(cfx_module_graph(d->captured), &err) == CFX_OK ? CLI_OK : no_luck(&err);
}

static int transform(demo *d)
{
    cfx_error err = {.status = CFX_OK};
    cfx_transform(d->net.scope, d->transformed, "remove_dropout,fuse_bn,dce");
    if (!cfx_scope_ok(d->net.scope))
        return cli_model_failed(&d->net);
    step(3, "Transformed: dropout is removed, batch-norm is folded into the convolutions' "
         "weights.");
    if (cli_print_diff(cfx_module_graph(d->captured), cfx_module_graph(d->transformed), &err))
        return no_luck(&err);
    return CLI_OK;
}

static int generate(demo *d)
{
    const cfx_module_tree tree = cfx_module_as_tree(d->transformed);
    cfx_buffer text;
    cfx_error err = {.status = CFX_OK};
    int code = CLI_BAD_INPUT;
    cfx_buffer_init(&text, NULL);
    step(4, "As C again: the transformed graph, as readable source.");
    if (cfx_codegen_c(cfx_module_graph(d->transformed), &tree, "Net", cfx_buffer_sink(&text),
                      &err) == CFX_OK) {
        print_source(text.data);
        code = cli_model_begin(&d->generated, "generated.c", text.data, NULL);
    } else {
        no_luck(&err);
    }
    cfx_buffer_free(&text);
    if (code != CLI_OK)
        return code;
    cfx_state *state = cfx_module_state(d->net.scope, d->transformed);
    cfx_module_load_state(d->generated.scope, d->generated.module, state, CFX_LOAD_UNEXPECTED);
    cfx_state_free(state);
    return cfx_scope_ok(d->generated.scope) ? CLI_OK : cli_model_failed(&d->generated);
}

static int compare(demo *d)
{
    cfx_scope *s = d->net.scope;
    step(5, "All versions compute the same result, for an input of 16 x 56 x 56.");
    printf("  %s%-38s %10s %22s%s\n", cli_ink_on(stdout, CLI_DIM), "", "best, ms",
           "largest difference", cli_ink_on(stdout, CLI_PLAIN));
    if (!print_way(d, "called: one operator at a time", s, d->net.module) ||
        !print_way(d, "captured", s, d->captured) ||
        !print_way(d, "transformed", s, d->transformed))
        return cli_model_failed(&d->net);
    if (!print_way(d, "generated C, compiled and called", d->generated.scope, d->generated.module))
        return cli_model_failed(&d->generated);
    if (!d->equal) {
        fprintf(stderr, "cfx demo: the versions do not compute the same result; please report "
                "this\n");
        return CLI_BAD_INPUT;
    }
    printf("\nNext: cfx trace FILE.c does this with your own model, cfx --help lists all verbs,\n"
           "examples/c has ResNet-18, a transformer, and a loop that depends on data; docs/c.md\n"
           "is the tutorial, README.md has the same for Python.\n");
    return CLI_OK;
}

static int cmd_demo(const cli_args *args)
{
    static int (*const steps[])(demo *d) = {begin, capture, transform, generate, compare};
    demo d = {.equal = true};
    int code = CLI_OK;
    (void)args;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == CLI_OK; i++)
        code = steps[i](&d);
    cfx_tensor_release(d.x);
    cfx_tensor_release(d.y);
    cli_model_end(&d.generated);
    cli_model_end(&d.net);
    return code;
}

const cli_verb verb_demo = {
    .name = "demo",
    .summary = "capture a small network in C, transform it and run it, step by step",
    .operands = CLI_NO_OPERAND,
    .examples =
        "  cfx demo                          a few seconds; needs CC or cc\n",
    .run = cmd_demo,
};
