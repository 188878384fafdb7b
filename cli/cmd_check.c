/* cmd_check.c - cfx check: whether a graph is well formed, and all that is wrong with it. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

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
    if (in->package)
        printf("; hashes agree");
    if (in->package && cfx_package_weights(in->package))
        printf(", %zu tensor%s", cfx_state_size(cfx_package_weights(in->package)),
               cfx_state_size(cfx_package_weights(in->package)) == 1 ? "" : "s");
    if (cli_other_graphs(in))
        printf(", %zu graphs", cli_other_graphs(in) + 1);
    printf("\n");
}

/* ---- .cfx files ---------------------------------------------------------------------------- */

/* Whether the entries of a .cfx file are what their hashes say. */
static bool has_right_hashes(const cli_input *in)
{
    cfx_error err = {.status = CFX_OK};
    if (!in->package || cfx_package_verify(in->package, &err) == CFX_OK)
        return true;
    cli_report(in, &err);
    return false;
}

/* "FILE: ENTRY: what", or "FILE: ENTRY:LINE:COLUMN: what". */
static size_t complain(const cli_input *in, const char *entry, const cfx_error *err)
{
    fprintf(stderr, "%s: %s: %s\n", in->name, entry, err->message);
    return 1;
}

static size_t count_inputs(const cfx_graph *g)
{
    size_t n = 0;
    for (const cfx_node *node = cfx_graph_first(g); node; node = cfx_node_next(node))
        n += cfx_node_op(node) == CFX_OP_PLACEHOLDER;
    return n;
}

/* Whether a signature can be read, and is one of this graph. Returns what is wrong. */
static size_t check_signature(const cli_input *in, const char *entry, const cfx_graph *g)
{
    cfx_error err = {.status = CFX_OK};
    cfx_signature_input one;
    size_t size;
    size_t n = 0;
    const char *text = cfx_package_text(in->package, entry, &size);
    cfx_signature *s = text ? cfx_signature_parse(text, size, NULL, &err) : NULL;
    if (text && !s)
        return complain(in, entry, &err);
    while (s && cfx_signature_input_at(s, n, &one))
        n++;
    cfx_signature_free(s);
    if (!text || n == count_inputs(g))
        return 0;
    cfx_error_set(&err, CFX_E_VALUE, "it has %zu inputs, but the graph has %zu", n,
                  count_inputs(g));
    return complain(in, entry, &err);
}

/* Whether the file has all that the graph names. */
static size_t check_names(const cli_input *in)
{
    const cfx_module_tree tree = cfx_module_as_tree(in->module);
    cfx_error err = {.status = CFX_OK};
    size_t found = 0;
    for (const cfx_node *n = cfx_graph_first(in->graph); in->module && n; n = cfx_node_next(n)) {
        const cfx_opcode op = cfx_node_op(n);
        const char *path = cfx_node_target(n, NULL, NULL);
        if ((op != CFX_OP_GET_ATTR && op != CFX_OP_CALL_MODULE) || tree.identity(tree.ctx, path))
            continue;
        cfx_error_set(&err, CFX_E_KEY, "%%%s needs '%.100s', which the file does not have",
                      cfx_node_name(n, NULL), path);
        found += complain(in, "graph.ir", &err);
    }
    return found;
}

typedef struct place {
    const cli_input *in;
    const char *entry;
} place;

static void report(void *ctx, const cfx_node *n, const char *message)
{
    const place *p = ctx;
    (void)n;
    fprintf(stderr, "%s: %s: %s\n", p->in->name, p->entry, message);
}

/* A graph for other kinds of inputs: "graphs/1/graph.ir". */
static size_t check_other(const cli_input *in, const char *entry)
{
    cfx_error err = {.status = CFX_OK};
    char signature[300];
    size_t size;
    place where = {in, entry};
    const char *text = cfx_package_text(in->package, entry, &size);
    cfx_graph *g = cfx_graph_parse(text, size, NULL, NULL, &err);
    if (!g)
        return complain(in, entry, &err);
    snprintf(signature, sizeof signature, "%.*ssignature.ir", (int)(strlen(entry) - 8), entry);
    size_t found = cfx_graph_verify(g, report, &where, &err) != CFX_OK;
    found += check_signature(in, signature, g);
    cfx_graph_release(g);
    return found;
}

static size_t check_package(const cli_input *in)
{
    const char *name;
    if (!in->package)
        return 0;
    size_t found = check_signature(in, "signature.ir", in->graph) + check_names(in);
    for (size_t i = 0; (name = cfx_package_entry(in->package, i, NULL)); i++)
        if (cli_is_other_graph(name))
            found += check_other(in, name);
    return found;
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int cmd_check(const cli_args *args)
{
    cli_input in;
    int code = CLI_UNREADABLE;
    if (cli_open(&in, args->file) && has_right_hashes(&in)) {
        code = CLI_BAD_INPUT;
        size_t found = cli_findings(&in, cfx_graph_verify) + check_package(&in);
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
    .summary = "check a graph, or all of a .cfx file, and list every problem",
    .operands = CLI_ONE_FILE,
    .examples =
        "  cfx check model.ir                exits with 0 if well formed, else with 1\n  cfx opt "
        "--pass dce model.ir | cfx check\n",
    .run = cmd_check,
};
