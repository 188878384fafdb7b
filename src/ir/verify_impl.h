/* verify_impl.h - what the files of the verifier share; used by src/ir alone. */
#ifndef CFXI_VERIFY_IMPL_H
#define CFXI_VERIFY_IMPL_H

#include "graph_impl.h"

enum { CFXI_FINE_REFS = 64 };  /* a power of two */

typedef struct cfxi_verifier {
    cfx_graph *graph;
    cfx_finding_fn *report;
    void *ctx;
    cfx_error *err;       /* receives the first finding */
    cfx_status status;
    bool strict;          /* more than torch.fx's lint asks for, and the structures behind it */
    uint32_t stamp;       /* the nodes' marks number them from here */
    uint32_t *slot;       /* strict: by position of a node, scratch for matching uses; all 0 */
    uint32_t *left;       /* strict: by index of a use edge, scratch likewise */
    cfx_node_map *names;  /* names whose owner is another node, to a node that has them */
    const cfx_ref *fine[CFXI_FINE_REFS];  /* by address: passed before; a graph calls few names */
} cfxi_verifier;

/* Reports what is wrong with `n`, or with the graph if it is NULL. */
void cfxi_ir_finding(cfxi_verifier *v, const cfx_node *n, const char *format, ...) CFX_PRINTF(3, 4);
/* Memory ran out: not everything could be checked. */
void cfxi_ir_verify_nomem(cfxi_verifier *v);

/* Whether `n` is a node on the list, by its mark. */
static inline bool cfxi_ir_is_listed(const cfxi_verifier *v, const cfx_node *n)
{
    return n->graph == v->graph && !cfxi_ir_node_erased(n) && n->mark >= v->stamp &&
           n->mark - v->stamp < v->graph->size;
}

/* ---- structures (verify_links.c) ----------------------------------------------------------- */

/* The list of nodes: links, labels, size. False if it cannot be walked safely. */
bool cfxi_ir_verify_list(cfxi_verifier *v);
/* Use edges against arguments, in both directions. */
void cfxi_ir_verify_inputs(cfxi_verifier *v, const cfx_node *n);
void cfxi_ir_verify_users(cfxi_verifier *v);
void cfxi_ir_verify_callees(cfxi_verifier *v);
void cfxi_ir_verify_name_entry(cfxi_verifier *v, const cfx_node *n);

/* ---- regions (region.c) -------------------------------------------------------------------- */

void cfxi_ir_verify_regions(cfxi_verifier *v, const cfx_node *n);

#endif
