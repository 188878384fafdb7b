/* mermaid.c - a graph as a flowchart of Mermaid, which web pages and Markdown viewers draw.
 *
 *     %relu = call_function[target=torch.relu](%x)     n1["relu<br>torch.relu"]
 *                                                      n0 --> n1
 *
 * Nodes are numbered, those of regions behind the number of their region: n1, r1n0. A region is a
 * subgraph whose output has a dotted edge to the node that runs it. Linear in nodes and edges.
 */
#include "generator_impl.h"

typedef struct chart {
    cfxi_out out;
    unsigned regions;  /* written so far */
    cfx_error *err;
    cfx_status status; /* of the host */
} chart;

/* A node's place in the chart: the region that it is in, and the first mark there. */
typedef struct chart_graph {
    cfx_graph *graph;
    unsigned region;  /* 0: the graph itself */
    uint32_t first;
} chart_graph;

static void put_id(chart *c, const chart_graph *g, const cfx_node *n)
{
    if (g->region)
        cfxi_base_out_printf(&c->out, "r%u", g->region);
    cfxi_base_out_printf(&c->out, "n%u", n->mark - g->first);
}

/* Mermaid takes entities for what would end the text, and '#' for the beginning of one. */
static cfx_status write_escaped(void *ctx, const char *data, size_t size)
{
    chart *c = ctx;
    for (size_t i = 0; i < size; i++) {
        if (data[i] && strchr("\"#<>&", data[i]))
            cfxi_base_out_printf(&c->out, "#%d;", data[i]);
        else
            cfxi_base_out_char(&c->out, data[i] == '\n' ? ' ' : data[i]);
    }
    return CFX_OK;
}

/* The target's name, or what the host prints for an object without one. */
static void put_target(chart *c, cfx_node *n)
{
    size_t size;
    cfx_error why = {.status = CFX_OK};
    const char *target = cfx_node_target(n, &size, &why);
    const cfx_host *host = cfx_graph_host(n->graph);
    if (target)
        write_escaped(c, target, size);
    else if (why.status == CFX_E_KEY)
        c->status = host->repr(host->ctx, cfx_node_target_object(n), (cfx_sink){write_escaped, c},
                               c->err);
    else
        c->status = cfx_error_set(c->err, why.status, "%s", why.message);
}

/* Inputs and outputs have round corners. */
static void put_node(chart *c, const chart_graph *g, cfx_node *n)
{
    const bool end = n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT;
    cfxi_base_out_str(&c->out, "  ");
    put_id(c, g, n);
    cfxi_base_out_str(&c->out, end ? "([\"" : "[\"");
    write_escaped(c, n->name->data, n->name->size);
    if (!end) {
        cfxi_base_out_str(&c->out, "<br>");
        put_target(c, n);
    }
    cfxi_base_out_str(&c->out, end ? "\"])\n" : "\"]\n");
}

static void put_edges(chart *c, const chart_graph *g, const cfx_node *n)
{
    for (size_t i = 0; i < cfx_node_num_inputs(n); i++) {
        cfxi_base_out_str(&c->out, "  ");
        put_id(c, g, cfx_node_input(n, i));
        cfxi_base_out_str(&c->out, " --> ");
        put_id(c, g, n);
        cfxi_base_out_char(&c->out, '\n');
    }
}

static void put_graph(chart *c, const chart_graph *g);

static void put_region(chart *c, const chart_graph *outer, const cfx_node *n, cfx_graph *region)
{
    const chart_graph g = {region, ++c->regions, cfxi_ir_graph_number(region)};
    cfxi_base_out_printf(&c->out, "  subgraph r%u[\"", g.region);
    write_escaped(c, n->name->data, n->name->size);
    cfxi_base_out_str(&c->out, "\"]\n");
    put_graph(c, &g);
    cfxi_base_out_str(&c->out, "  end\n");
    if (!cfx_graph_last(region))
        return;
    cfxi_base_out_str(&c->out, "  ");
    put_id(c, &g, cfx_graph_last(region));
    cfxi_base_out_str(&c->out, " -.-> ");
    put_id(c, outer, n);
    cfxi_base_out_char(&c->out, '\n');
}

/* Regions are arguments themselves; how deep they nest is limited. */
static void put_regions(chart *c, const chart_graph *g, const cfx_node *n)
{
    const cfx_value given[] = {cfx_node_args(n), cfx_node_kwargs(n)};
    for (int k = 0; k < 2; k++) {
        size_t size;
        const cfx_value *items = cfx_value_items(given[k], &size);
        for (size_t i = 0; i < size; i++)
            if (cfx_value_graph(items[i]))
                put_region(c, g, n, cfx_value_graph(items[i]));
    }
}

static void put_graph(chart *c, const chart_graph *g)
{
    for (cfx_node *n = cfx_graph_first(g->graph); n && c->status == CFX_OK; n = cfx_node_next(n))
        put_node(c, g, n);
    for (cfx_node *n = cfx_graph_first(g->graph); n && c->status == CFX_OK; n = cfx_node_next(n)) {
        put_edges(c, g, n);
        put_regions(c, g, n);
    }
}

cfx_status cfxi_emit_mermaid_generate(cfx_graph *g, const cfx_generate_options *options,
                                      cfx_sink sink, cfx_error *err)
{
    (void)options;
    chart c = {.err = err};
    cfxi_ir_graph_freeze(g);
    const chart_graph all = {g, 0, cfxi_ir_graph_number(g)};
    cfxi_base_out_begin(&c.out, sink);
    cfxi_base_out_str(&c.out, "flowchart TD\n");
    put_graph(&c, &all);
    const cfx_status ended = cfxi_base_out_end(&c.out, c.status == CFX_OK ? err : NULL);
    cfxi_ir_graph_thaw(g);
    return c.status == CFX_OK ? ended : c.status;
}
