/* graph_fixture.h - small graphs that several tests share. */
#ifndef CFX_TESTS_GRAPH_FIXTURE_H
#define CFX_TESTS_GRAPH_FIXTURE_H

#include <cfx/embed/location.h>
#include <cfx/graph.h>
#include <cfx/ops.h>
#include <cfx/pass.h>
#include <stdio.h>
#include <string.h>

/* The names of the nodes, joined by blanks: valid until the next call. */
static inline const char *node_names(const cfx_graph *g)
{
    static char text[512];
    size_t used = 0;
    text[0] = '\0';
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n))
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "",
                                 cfx_node_name(n, NULL));
    return text;
}

static inline cfx_value text_value(cfx_graph *g, const char *text, cfx_error *err)
{
    return cfx_value_str(g, text, strlen(text), err);
}

/* A list with a string, a dict, a slice and a set in it. */
static inline cfx_value sample_value(cfx_graph *g, cfx_node *x, cfx_error *err)
{
    cfx_value entry[] = {text_value(g, "dim", err), cfx_value_node(x)};
    cfx_value members[] = {cfx_value_int(3), text_value(g, "m", err)};
    cfx_value items[] = {
        text_value(g, "mean", err),
        cfx_value_seq(g, CFX_KIND_DICT, entry, 2, err),
        cfx_value_slice(g, cfx_value_none(), cfx_value_node(x), cfx_value_int(2), err),
        cfx_value_seq(g, CFX_KIND_SET, members, 2, err),
        cfx_value_float(0.5),
    };
    return cfx_value_list(g, items, 5, err);
}

static inline bool decorate_sample(cfx_graph *g, cfx_node *n, cfx_error *err)
{
    uint32_t net = cfx_graph_intern_stack(g, 0, "net", "Net", NULL, err);
    uint32_t scope = net ? cfx_graph_intern_stack(g, net, "layers.0", "nn.ReLU", NULL, err) : 0;
    cfx_value type = cfx_value_name(g, "torch.Tensor", 12, err);
    if (!scope || type.kind == CFX_KIND_INVALID)
        return false;
    cfx_node_set_module_stack(n, scope);
    return cfx_node_set_location(n, "model.py", 12, err) == CFX_OK &&
           cfx_node_set_type(n, type, err) == CFX_OK;
}

/* %x, %relu(x) with type, location and scope, %mod(relu, [...], dim=x), output((relu, mod)). */
static inline cfx_graph *sample_graph(const cfx_allocator *a, cfx_error *err)
{
    cfx_error own = {.status = CFX_OK};
    cfx_graph *g = cfx_graph_new(a, NULL, &own);
    cfx_node *x = g ? cfx_graph_placeholder(g, "x", &own) : NULL;
    cfx_value arg = cfx_value_node(x);
    cfx_node *relu = x ? cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.relu", &arg, 1, NULL, 0,
                                        &own) : NULL;
    if (relu && decorate_sample(g, relu, &own)) {
        cfx_value args[] = {cfx_value_node(relu), sample_value(g, x, &own)};
        cfx_kwarg dim = {"dim", cfx_value_node(x)};
        cfx_node *mod = cfx_graph_call(g, CFX_OP_CALL_MODULE, "mod", args, 2, &dim, 1, &own);
        cfx_value pair[] = {cfx_value_node(relu), cfx_value_node(mod)};
        if (mod && cfx_graph_output(g, cfx_value_tuple(g, pair, 2, &own), &own))
            return g;
    }
    cfx_graph_release(g);
    if (err)
        *err = own;
    return NULL;
}

/* A sample graph with a cond before its output, both of whose branches are one region, which is
 * such a graph itself, `depth` deep. Each takes one value and returns two. */
static inline cfx_graph *nested_graph(const cfx_allocator *a, cfx_error *err, int depth)
{
    cfx_error own = {.status = CFX_OK};
    cfx_graph *g = sample_graph(a, &own);
    cfx_graph *sub = g && depth > 0 ? nested_graph(a, &own, depth - 1) : NULL;
    if (g && depth == 0)
        return g;
    if (sub) {
        cfx_insert_point at = {cfx_graph_last(g), false};
        cfx_value x = cfx_value_node(cfx_graph_first(g));
        cfx_value region = cfx_value_region(g, sub, &own);
        cfx_value args[] = {x, region, region, cfx_value_tuple(g, &x, 1, &own)};
        cfx_graph_set_insert_point(g, at, &own);
        cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "cfx.cond", args, 4, NULL, 0, &own);
        cfx_graph_release(sub);
        if (n)
            return g;
    }
    cfx_graph_release(g);
    if (err)
        *err = own;
    return NULL;
}

#endif
