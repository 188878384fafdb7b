/* random_graph.h - seeded random graphs, random edits, and a count of what they consist of.
 *
 * Every graph is well formed (cfx_graph_verify holds), and stays so under random_graph_edit. The
 * same seed gives the same graph on every machine.
 */
#ifndef CFX_TESTS_RANDOM_GRAPH_H
#define CFX_TESTS_RANDOM_GRAPH_H

#include <cfx/embed/host.h>
#include <cfx/graph.h>
#include <cfx/ops.h>
#include <cfx/pass.h>

/* A small generator of random numbers, the same everywhere. */
typedef struct random_source {
    uint64_t state;
} random_source;

uint64_t random_next(random_source *r);
size_t random_below(random_source *r, size_t n);     /* 0 .. n - 1 */
bool random_chance(random_source *r, unsigned percent);

/* A host with a handful of objects that all have qualified names. */
extern const cfx_host random_host;

/* A graph with about `nodes` nodes, not counting its regions (up to three deep). Odd seeds use
 * random_host, even ones have no host. NULL with *err set if it fails. */
cfx_graph *random_graph_new(uint64_t seed, size_t nodes, const cfx_allocator *allocator,
                            cfx_error *err);

/* Changes `g` or one of its regions `count` times: erases, moves, replaces uses, renames, sets
 * arguments, targets and types, inserts. */
cfx_status random_graph_edit(cfx_graph *g, uint64_t seed, size_t count, cfx_error *err);

enum { RANDOM_MAX_NESTING = 6, RANDOM_MAX_REGIONS = 3 };

/* What some graphs consist of. */
typedef struct random_stats {
    size_t graphs;
    size_t nodes, opcodes[CFX_OPCODE_COUNT], in_region[RANDOM_MAX_REGIONS + 1];
    size_t typed, located, scoped;
    size_t values, kinds[CFX_KIND_COUNT], nested[RANDOM_MAX_NESTING + 1];
} random_stats;

void random_stats_add(random_stats *stats, const cfx_graph *g);
void random_stats_print(const random_stats *stats);
/* Whether every opcode, kind of value, nesting and depth of regions makes up 1 % at least. */
bool random_stats_balanced(const random_stats *stats);

#endif
