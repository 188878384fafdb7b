/* minimize.c - the smallest part of a graph that still fails a test.
 *
 *     before, with a test that fails on torch.exp      after
 *     %x = placeholder[target=x]()                     %a = placeholder[target=a]()
 *     %a = call_function[target=torch.neg](%x)         %b = call_function[target=torch.exp](%a)
 *     %b = call_function[target=torch.exp](%a)         output(%b)
 *     %c = call_function[target=torch.abs](%b)
 *     output(%c)
 *
 * Needs: nodes in topological order. Keeps: the graph as it is.
 *
 * Delta debugging: halves of the nodes are left out, then quarters, and so on down to single nodes;
 * what can go without the test passing stays out, and single nodes are tried until none can go.
 * What is left out before a node that stays is one of its inputs. For k nodes that matter among n
 * it takes about 2 k log n tests, at worst n^2; each is linear in the nodes that it is about.
 */
#include "analysis/analysis_impl.h"

#include <cfx/embed/check.h>

typedef struct search {
    cfx_graph *graph;
    cfx_subgraph_test_fn *test;
    void *ctx;
    cfx_node **nodes;   /* those that stay */
    size_t n;
    cfx_node **trial;   /* room for as many */
    cfx_subgraph *best;  /* made of `nodes` */
    size_t tests_left;
    cfx_error *err;
} search;

/* Whether the first `n` nodes of the trial fail: then they are the best so far. */
static cfx_status try_part(search *s, size_t n, bool *fails)
{
    cfx_subgraph part = {0};
    const cfx_extract_options what = {.nodes = s->trial, .n = n};
    CFX_TRY(cfx_graph_extract(s->graph, &what, &part, s->err));
    const int answer = s->test(s->ctx, &part);
    *fails = answer > 0;
    if (answer > 0) {
        cfx_subgraph_free(s->best);
        *s->best = part;
    } else {
        cfx_subgraph_free(&part);
    }
    return answer < 0 ? cfxi_base_failed(s->err, CFX_E_HOST) : CFX_OK;
}

/* Leaves out up to `size` nodes from `at` on, if the rest still fails. */
static cfx_status leave_out(search *s, size_t at, size_t size, bool *gone)
{
    const size_t end = at + size < s->n ? at + size : s->n;
    const size_t rest = s->n - (end - at);
    *gone = false;
    if (rest == 0 || s->tests_left == 0)
        return CFX_OK;
    s->tests_left--;
    memcpy(s->trial, s->nodes, at * sizeof *s->trial);
    memcpy(s->trial + at, s->nodes + end, (s->n - end) * sizeof *s->trial);
    CFX_TRY(try_part(s, rest, gone));
    if (*gone) {
        memcpy(s->nodes, s->trial, rest * sizeof *s->nodes);
        s->n = rest;
    }
    return CFX_OK;
}

static cfx_status sweep(search *s, size_t size, bool *any)
{
    *any = false;
    for (size_t at = 0; at < s->n && s->tests_left > 0;) {
        bool gone;
        CFX_TRY(leave_out(s, at, size, &gone));
        *any = *any || gone;
        at += gone ? 0 : size;
    }
    return CFX_OK;
}

static cfx_status shrink(search *s)
{
    bool any = false;
    for (size_t size = s->n / 2; size > 1; size /= 2)
        CFX_TRY(sweep(s, size, &any));
    do {
        CFX_TRY(sweep(s, 1, &any));
    } while (any && s->n > 1 && s->tests_left > 0);
    return CFX_OK;
}

/* All but inputs and outputs. */
static void collect(search *s)
{
    for (cfx_node *n = s->graph->root.next; n != &s->graph->root; n = n->next)
        if (n->op != CFX_OP_PLACEHOLDER && n->op != CFX_OP_OUTPUT)
            s->trial[s->n] = s->nodes[s->n] = n, s->n++;
}

static cfx_status minimize(search *s)
{
    bool fails = false;
    collect(s);
    if (s->n > 0 && s->tests_left > 0) {
        s->tests_left--;
        CFX_TRY(try_part(s, s->n, &fails));
    }
    if (!fails)
        return cfx_error_set(s->err, CFX_E_VALUE, "the test does not fail on the whole graph, so "
                             "there is nothing to minimize");
    return shrink(s);
}

cfx_status cfx_graph_minimize(cfx_graph *g, cfx_subgraph_test_fn *test, void *ctx, size_t max_tests,
                              cfx_subgraph *part, cfx_error *err)
{
    size_t bytes;
    search s = {.graph = g, .test = test, .ctx = ctx, .best = part, .tests_left = max_tests,
                .err = err};
    *part = (cfx_subgraph){0};
    if (cfxi_base_mul_size(g->size + 1, 2 * sizeof(cfx_node *), 0, &bytes))
        s.nodes = cfxi_base_alloc(g->allocator, bytes);
    if (!s.nodes)
        return cfxi_base_nomem(err);
    s.trial = s.nodes + g->size + 1;
    cfxi_ir_graph_freeze(g);
    cfx_status status = minimize(&s);
    cfxi_ir_graph_thaw(g);
    cfxi_base_free(g->allocator, s.nodes, bytes);
    if (status != CFX_OK)
        cfx_subgraph_free(part);
    return status;
}
