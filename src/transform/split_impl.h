/* split_impl.h - what extract.c and split.c share. */
#ifndef CFXI_SPLIT_IMPL_H
#define CFXI_SPLIT_IMPL_H

#include "transform_impl.h"

#include <cfx/split.h>

/* A part to be made: all that `body` reads is an input or stands before it in `body`. A node may
 * stand in it twice; whoever reads it gets the copy made last. */
typedef struct cfxi_part_plan {
    cfx_node *const *inputs, *const *body, *const *outputs;
    size_t n_inputs, n_body, n_outputs;
    unsigned flags;     /* CFX_PART_... */
    cfx_node_map *map;  /* receives the copies; what it had for other nodes is not looked at */
} cfxi_part_plan;

/* Fills *part, or leaves it empty with *err set. (extract.c) */
cfx_status cfxi_part_build(cfx_graph *g, const cfxi_part_plan *plan, cfx_part *part,
                           cfx_error *err);

/* A new array with a copy of `n` nodes; NULL if memory is out, too if n is 0. (extract.c) */
cfx_node **cfxi_nodes_copy(const cfx_graph *g, cfx_node *const *nodes, size_t n);

/* cfx_map_fn over a cfx_node_map. (extract.c) */
cfx_value cfxi_map_look_up(void *map, cfx_node *n, cfx_error *err);

#endif
