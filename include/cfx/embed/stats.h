/* For language bindings and back ends; may change between versions.
 *
 * embed/stats.h - statistics of a graph: nodes, weights, operations, memory.
 *
 *     cfx_stats s;
 *     cfx_stats_init(&s, NULL, &err);
 *     cfx_stats_add_graph(&s, g, &err);                       nodes, by opcode and operator
 *     cfx_stats_add_state(&s, state, &err);                   weights, by type
 *     cfx_stats_add_costs(&s, p, rt, dims, in, n, &err);      operations and memory
 *     cfx_stats_free(&s);
 */
#ifndef CFX_EMBED_STATS_H
#define CFX_EMBED_STATS_H

#include <cfx/embed/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls of one operator or, if the target is not an operator, of one target. */
typedef struct cfx_stats_row {
    const char *name;   /* "conv2d"; "torch.foo"; borrowed from the stats */
    cfx_operator op;    /* or CFX_OPID_NONE */
    size_t count;       /* nodes */
    size_t calls;       /* calls whose costs were added */
    int64_t flops;      /* flops and bytes may be symbolic (dim.h) */
    int64_t bytes;
} cfx_stats_row;

/* Owned by the caller, who only reads the fields. Call cfx_stats_init first and cfx_stats_free
 * last. */
typedef struct cfx_stats {
    size_t nodes;                       /* including those in regions */
    size_t regions;
    size_t opcodes[CFX_OPCODE_COUNT];   /* nodes of each */
    const cfx_stats_row *rows;          /* the most expensive first, then the most frequent */
    size_t n_rows;
    size_t tensors[CFX_DTYPE_COUNT];    /* number of weights, by type */
    int64_t elements[CFX_DTYPE_COUNT];  /* elements of weights, by type */
    int64_t weight_bytes;               /* bytes of all weights */
    bool has_costs;
    int64_t flops;                      /* of all calls; may be symbolic, as below */
    int64_t result_bytes;               /* of all results together */
    int64_t peak_bytes;                 /* maximum live at once, without weights */
    bool peak_depends;                  /* on symbols: for some of them the peak is higher */
    const char *peak_node;              /* the first call at the peak; or NULL */
    void *memory;
} cfx_stats;

/* Initialises empty statistics; fails with CFX_E_NOMEM. The allocator (NULL: malloc) must outlive
 * them. */
CFX_API cfx_status cfx_stats_init(cfx_stats *s, const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_stats_free(cfx_stats *s);

/* A call_module node counts for an operator if its module stack gives the class. Linear. */
CFX_API cfx_status cfx_stats_add_graph(cfx_stats *s, cfx_graph *g, cfx_error *err);
CFX_API cfx_status cfx_stats_add_state(cfx_stats *s, const cfx_state *state, cfx_error *err);
/* See cfx_program_cost. */
CFX_API cfx_status cfx_stats_add_costs(cfx_stats *s, const cfx_program *p, cfx_runtime *rt,
                                       cfx_dims *dims, const cfx_datum *inputs, size_t n,
                                       cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
