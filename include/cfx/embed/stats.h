/* For language bindings and back ends; may change between versions.
 *
 * embed/stats.h - what a graph is made of, and what it costs: nodes, weights, operations, memory.
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

/* Calls of one operator; of what is no operator, by the target. */
typedef struct cfx_stats_row {
    const char *name;   /* "conv2d"; "torch.foo"; borrowed from the stats */
    cfx_operator op;    /* or CFX_OPID_NONE */
    size_t count;       /* nodes */
    size_t calls;       /* that costs were added of */
    int64_t flops;      /* these are sizes (dim.h): they may be symbols */
    int64_t bytes;
} cfx_stats_row;

/* The caller owns it, and only reads it; cfx_stats_init before, cfx_stats_free after. */
typedef struct cfx_stats {
    size_t nodes;                       /* those of regions included */
    size_t regions;
    size_t opcodes[CFX_OPCODE_COUNT];   /* nodes of each */
    const cfx_stats_row *rows;          /* the most expensive first, then the most frequent */
    size_t n_rows;
    size_t tensors[CFX_DTYPE_COUNT];    /* weights, by type: how many, */
    int64_t elements[CFX_DTYPE_COUNT];  /*   their elements, */
    int64_t weight_bytes;               /*   and the bytes of all */
    bool has_costs;
    int64_t flops;                      /* of all calls: a size, as below */
    int64_t result_bytes;               /* of all results together */
    int64_t peak_bytes;                 /* most that is alive at once; weights do not count */
    bool peak_depends;                  /* on symbols: it is `peak_bytes` or, for some, more */
    const char *peak_node;              /* the first call at which that is so; NULL: none */
    void *memory;
} cfx_stats;

/* Empty; fails with CFX_E_NOMEM. The allocator (NULL: malloc) must outlive it. */
CFX_API cfx_status cfx_stats_init(cfx_stats *s, const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_stats_free(cfx_stats *s);

/* A call of a module counts for its operator if its module stack tells the class. Linear. */
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
