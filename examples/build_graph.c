/* build_graph.c - builds a small network in C, prints it, edits it, and writes it as Python.
 *
 * The first thing to read for a C programmer. It is a whole program; with cfx installed:
 *
 *     cc build_graph.c $(pkg-config --cflags --libs cfx) -o build_graph && ./build_graph
 *
 * Three rules are enough to follow it:
 *
 *   - A graph owns all that is made for it. Nodes are borrowed pointers; there is one thing to
 *     free, the graph itself, with cfx_graph_release.
 *   - What can fail takes a `cfx_error *` last and returns a status (0 is CFX_OK) or NULL. A chain
 *     of calls may share one error: it keeps the first reason.
 *   - The library never prints. Text goes to a cfx_sink, here one that writes to standard output.
 */
#include <cfx/cfx.h>

#include <stdio.h>
#include <stdlib.h>

/* A sink is a function and a pointer for it. */
static cfx_status write_stdout(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    return fwrite(data, 1, size, stdout) == size ? CFX_OK : CFX_E_IO;
}

static const cfx_sink out = {write_stdout, NULL};

/* An error is a status and a message that says what, where, and what to do. */
static void require(bool good, const cfx_error *err)
{
    if (good)
        return;
    fprintf(stderr, "build_graph: %s (%s)\n", err->message, cfx_status_name(err->status));
    exit(1);
}

/* A call with one node and at most one keyword as its arguments. Arguments are an array of values;
 * cfx_value_node(x) is the result of the node x. */
static cfx_node *call(cfx_graph *g, cfx_opcode op, const char *target, cfx_node *x,
                      const cfx_kwarg *kwarg, cfx_error *err)
{
    cfx_value args[] = {cfx_value_node(x)};
    return cfx_graph_call(g, op, target, args, 1, kwarg, kwarg ? 1 : 0, err);
}

/* The branch: relu.mean(-1, keepdim=True) * scale. Nobody uses its result. */
static cfx_node *build_branch(cfx_graph *g, cfx_node *relu, cfx_error *err)
{
    cfx_kwarg keepdim = {"keepdim", cfx_value_bool(true)};
    cfx_value of_relu[] = {cfx_value_node(relu), cfx_value_int(-1)};
    cfx_node *mean = cfx_graph_call(g, CFX_OP_CALL_METHOD, "mean", of_relu, 2, &keepdim, 1, err);
    cfx_node *scale = cfx_graph_get_attr(g, "scale", err);
    cfx_value factors[] = {cfx_value_node(mean), cfx_value_node(scale)};
    return cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.mul", factors, 2, NULL, 0, err);
}

/* softmax(fc2(relu(fc1(x))), dim=-1), and the branch: what examples/graphs/mlp.ir holds as text.
 * Each node is named after its target, as torch.fx names it.
 *
 * A node that could not be made is NULL, and a call that is given it fails too: for a chain of
 * calls one look at the last is enough. */
static void build(cfx_graph *g)
{
    cfx_error err = {.status = CFX_OK};
    cfx_kwarg dim = {"dim", cfx_value_int(-1)};
    cfx_node *x = cfx_graph_placeholder(g, "x", &err);
    cfx_node *fc1 = call(g, CFX_OP_CALL_MODULE, "fc1", x, NULL, &err);
    cfx_node *relu = call(g, CFX_OP_CALL_FUNCTION, "torch.relu", fc1, NULL, &err);
    cfx_node *fc2 = call(g, CFX_OP_CALL_MODULE, "fc2", relu, NULL, &err);
    cfx_node *mul = build_branch(g, relu, &err);
    cfx_node *softmax = call(g, CFX_OP_CALL_FUNCTION, "torch.softmax", fc2, &dim, &err);
    require(mul && cfx_graph_output(g, cfx_value_node(softmax), &err), &err);

    /* A node can also have a type. It is known by name: no Python is needed to speak of it. */
    require(!cfx_node_set_type(x, cfx_value_name(g, "torch.Tensor", 12, &err), &err), &err);

    /* And the place where the user wrote it, which messages will name. */
    require(!cfx_node_set_location(relu, "mlp.py", 11, &err), &err);
}

/* Replaces relu by gelu: a new node, the users moved over to it, the old node erased. */
static void replace_relu_by_gelu(cfx_graph *g)
{
    cfx_error err = {.status = CFX_OK};
    cfx_node *relu = cfx_graph_find(g, "relu"); /* nodes can be found by name */
    if (!relu)
        return;

    /* New nodes go where the insertion point is: the end, until it is moved. */
    cfx_insert_point end = cfx_graph_insert_point(g);
    require(!cfx_graph_set_insert_point(g, (cfx_insert_point){.node = relu}, &err), &err);
    cfx_value args[] = {cfx_node_arg(relu, 0)};
    cfx_node *gelu = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.nn.functional.gelu", args, 1,
                                    NULL, 0, &err);
    require(gelu, &err);
    require(!cfx_graph_set_insert_point(g, end, &err), &err);

    require(!cfx_node_replace_uses(relu, cfx_value_node(gelu), NULL, NULL, NULL, &err), &err);
    require(!cfx_graph_erase(g, relu, &err), &err); /* would fail while relu had users */
}

/* Called for each thing that is wrong with a graph; here nothing is. */
static void print_finding(void *ctx, const cfx_node *n, const char *message)
{
    (void)ctx;
    (void)n;
    printf("%s\n", message);
}

int main(void)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = cfx_graph_new(NULL, NULL, &err); /* malloc; no host language */
    require(g, &err);

    build(g);
    printf("The graph as it was built, %zu nodes:\n\n", cfx_graph_size(g));
    require(!cfx_graph_table(g, 0, out, &err), &err);

    replace_relu_by_gelu(g);
    require(!cfx_pass_run(cfx_pass_find("dce"), g, NULL, NULL, NULL, &err), &err);
    printf("\nAfter replacing relu by gelu and erasing what nobody uses:\n\n");
    require(!cfx_graph_text(g, out, &err), &err);

    /* Whoever edits a graph can ask whether it is still well formed. */
    require(!cfx_graph_verify(g, print_finding, NULL, &err), &err);

    printf("\nThe same as Python:\n\n");
    require(!cfx_codegen_python_file(g, "MLP", out, &err), &err);

    cfx_graph_release(g);
    return 0;
}
