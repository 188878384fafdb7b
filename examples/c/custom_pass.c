/* custom_pass.c - a pass of your own: x ** 2 becomes x * x, wherever and however it is written.
 *
 *     cc custom_pass.c $(pkg-config --cflags --libs cfx) -o custom_pass
 *
 * A pass is a function over the public API. It asks which operator a node calls, not how that is
 * spelled, and cfx_pass_run runs it like one of the table: debug builds of the library also verify
 * the graph afterwards.
 */
#include <cfx/cfx.h>

#include <stdio.h>
#include <string.h>

/* ---- the pass ------------------------------------------------------------------------------ */

static bool is_square(const cfx_node *n)
{
    const cfx_value exponent = cfx_node_operand(n, "exponent"); /* by position or by name */
    if (cfx_node_operator(n) != CFX_OPID_pow)
        return false;
    return (exponent.kind == CFX_KIND_INT && exponent.as.i == 2) ||
           (exponent.kind == CFX_KIND_FLOAT && exponent.as.f == 2);
}

/* A new node before the old one, which everybody uses from then on. */
static cfx_status square_by_product(cfx_graph *g, cfx_node *n, cfx_error *err)
{
    const cfx_value x = cfx_node_operand(n, "self");
    const cfx_value args[] = {x, x};
    cfx_status status = cfx_graph_set_insert_point(g, (cfx_insert_point){n, false}, err);
    if (status != CFX_OK)
        return status;
    cfx_node *product = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.mul", args, 2, NULL, 0, err);
    if (!product)
        return err->status;
    cfx_node_set_location(product, cfx_node_file(n), cfx_node_line(n), NULL); /* for messages */
    status = cfx_node_replace_uses(n, cfx_value_node(product), NULL, NULL, NULL, err);
    return status == CFX_OK ? cfx_graph_erase(g, n, err) : status;
}

/* cfx_pass_fn. The iterator bears it that nodes come and go meanwhile. */
static cfx_status square(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                         bool *changed, cfx_error *err)
{
    const cfx_insert_point before = cfx_graph_insert_point(g);
    cfx_status status = CFX_OK;
    cfx_iter it;
    (void)modules;
    (void)opts;
    if (changed)
        *changed = false;
    cfx_iter_begin(&it, g, false);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;) {
        if (!is_square(n))
            continue;
        status = square_by_product(g, n, err);
        if (changed)
            *changed = true;
    }
    cfx_iter_end(&it);
    cfx_graph_set_insert_point(g, before, NULL);
    return status;
}

static const cfx_pass square_pass = {
    .name = "square",
    .summary = "multiply instead of raising to the power of two",
    .needs = "nothing",
    .keeps = "names, order and locations of all other nodes",
    .run = square,
};

/* ---- running it ---------------------------------------------------------------------------- */

static const char text[] = "graph():\n"
                           "  %x = placeholder[target=x]()\n"
                           "  %a = call_function[target=torch.pow](%x, 2)  @ model.py:4\n"
                           "  %b = call_method[target=pow](%a, exponent=2.0)  @ model.py:5\n"
                           "  %c = call_function[target=operator.pow](%b, 3)  @ model.py:6\n"
                           "  %d = call_function[target=torch.mul](%x, %x)  @ model.py:7\n"
                           "  output((%c, %d))\n";

static cfx_status write_stdout(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    return fwrite(data, 1, size, stdout) == size ? CFX_OK : CFX_E_IO;
}

int main(void)
{
    cfx_error err = {.status = CFX_OK};
    bool changed = false;
    cfx_graph *g = cfx_graph_parse(text, strlen(text), NULL, NULL, &err);
    if (g && cfx_pass_run(&square_pass, g, NULL, NULL, &changed, &err) == CFX_OK &&
        cfx_pass_run(cfx_pass_find("cse"), g, NULL, NULL, NULL, &err) == CFX_OK) {
        printf("%s: %s\n", square_pass.name, changed ? "changed" : "nothing to do");
        cfx_graph_text(g, (cfx_sink){write_stdout, NULL}, &err);
    }
    cfx_graph_release(g);
    if (err.status != CFX_OK)
        fprintf(stderr, "custom_pass: %s\n", err.message);
    return err.status != CFX_OK;
}
