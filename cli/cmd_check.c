/* cmd_check.c - cfx check: whether a graph is well formed, and all that is wrong with it. */
#include "cli.h"

#include <stdio.h>

/* Nodes and regions, however deep, in the arguments of a graph's nodes. */
typedef struct total {
    size_t nodes;
    size_t regions;
} total;

static void count_graph(const cfx_graph *g, total *inner);

static void count_value(cfx_value v, total *inner)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    const cfx_graph *region = cfx_value_graph(v);
    if (region) {
        inner->regions++;
        inner->nodes += cfx_graph_size(region);
        count_graph(region, inner);
    }
    for (size_t i = 0; i < n; i++)
        count_value(items[i], inner);
}

static void count_graph(const cfx_graph *g, total *inner)
{
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        count_value(cfx_node_args(n), inner);
        count_value(cfx_node_kwargs(n), inner);
    }
}

static void print_good(const cli_input *in)
{
    size_t n = cfx_graph_size(in->graph);
    total inner = {0};
    count_graph(in->graph, &inner);
    printf("%s: well formed, %zu node%s", in->name, n, n == 1 ? "" : "s");
    if (inner.regions)
        printf(" and %zu in %zu region%s", inner.nodes, inner.regions,
               inner.regions == 1 ? "" : "s");
    printf("\n");
}

/* Whether the entries of a .cfx file are what their hashes say. */
static bool has_right_hashes(const cli_input *in)
{
    cfx_error err = {.status = CFX_OK};
    if (!in->package || cfx_package_verify(in->package, &err) == CFX_OK)
        return true;
    cli_report(in, &err);
    return false;
}

static int cmd_check(const cli_args *args)
{
    cli_input in;
    int code = CLI_UNREADABLE;
    if (cli_open(&in, args->file) && has_right_hashes(&in)) {
        code = CLI_BAD_INPUT;
        size_t found = cli_findings(&in, cfx_graph_verify);
        if (found == 0) {
            print_good(&in);
            code = CLI_OK;
        } else if (found > 1) {
            fprintf(stderr, "%s: %zu findings\n", in.name, found);
        }
    }
    cli_close(&in);
    return code;
}

const cli_verb verb_check = {
    .name = "check",
    .summary = "check a graph, or a .cfx file and its hashes, and list every problem",
    .operands = CLI_ONE_FILE,
    .examples =
        "  cfx check model.ir                exits with 0 if well formed, else with 1\n  cfx opt "
        "--pass dce model.ir | cfx check\n",
    .run = cmd_check,
};
