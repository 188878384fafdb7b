/* split_impl.h - what extract.c and split.c share. */
#ifndef CFXI_SPLIT_IMPL_H
#define CFXI_SPLIT_IMPL_H

#include "analysis/analysis_impl.h"

#include <cfx/embed/split.h>

/* A part to be made: all that `body` reads is an input or stands before it in `body`. A node may
 * stand in it twice; whoever reads it gets the copy made last. */
typedef struct cfxi_part_plan {
    cfx_node *const *inputs, *const *body, *const *outputs;
    size_t n_inputs, n_body, n_outputs;
    unsigned flags;     /* CFX_PART_... */
    cfx_node_map *map;  /* receives the copies; what it had for other nodes is not looked at */
} cfxi_part_plan;

/* Fills *part, or leaves it empty with *err set. (extract.c) */
cfx_status cfxi_split_part_build(cfx_graph *g, const cfxi_part_plan *plan, cfx_subgraph *part,
                                 cfx_error *err);

/* A new array with a copy of `n` nodes; NULL if memory is out, too if n is 0. (extract.c) */
cfx_node **cfxi_split_nodes_copy(const cfx_graph *g, cfx_node *const *nodes, size_t n);

/* cfx_map_fn over a cfx_node_map. (extract.c) */
cfx_value cfxi_split_map_look_up(void *map, cfx_node *n, cfx_error *err);

/* What the modules that a graph calls are called in another, where no path has a dot; or nothing,
 * if it was not begun. (extract.c) */
typedef struct cfxi_flat_paths {
    cfx_namespace *taken;
    cfx_node_map *known;  /* callees of the source to paths: which "a_b" is the module "a.b" */
} cfxi_flat_paths;
cfx_status cfxi_split_flat_paths_init(cfxi_flat_paths *paths, cfx_graph *g, cfx_error *err);
void cfxi_split_flat_paths_free(cfxi_flat_paths *paths);  /* all zero is fine */
/* The path that a copy of `n` names, until they are freed; NULL for the same as before. */
cfx_status cfxi_split_flat_path(cfxi_flat_paths *paths, const cfx_node *n, const char **path,
                                cfx_error *err);

/* ---- a graph cut into parts ---------------------------------------------------------------- */

/* Lists of nodes: those of list i are items[starts[i]] up to items[starts[i + 1]]. */
typedef struct cfxi_lists {
    size_t *starts;
    cfx_node **items;
} cfxi_lists;

/* Likewise, but the parts were met in any order: those of list i end at ends[i]. */
typedef struct cfxi_ranges {
    size_t *starts, *ends;  /* NULL: all are empty */
    cfx_node **items;
} cfxi_ranges;

/* What a node does to the stretch behind it (spans.c). */
enum { CFXI_SPAN_NONE, CFXI_SPAN_GRAD, CFXI_SPAN_ENTER, CFXI_SPAN_EXIT };

/* Positions are those on the list. The output counts as a node of part `parts`; what is in none has
 * a larger number. */
typedef struct cfxi_splitter {
    cfx_graph *g;
    const cfx_split_options *what;
    cfx_split_result *result;
    size_t n, parts;
    cfx_node **nodes;     /* by position */
    size_t *part_of;      /* by position */
    uint8_t *roles;       /* by position: CFXI_SPAN_...; NULL if there are none */
    bool writes;          /* something may change its arguments */
    uint32_t stamp;       /* the mark of the first node; for as long as no code of the host runs */
    cfxi_lists members;   /* of each part, and of the output */
    cfxi_ranges before, behind;  /* of each part: copies that open and close it */
    cfxi_lists outputs;   /* of each part */
    cfxi_vec reads;       /* of cfxi_read: of each part, then of the output */
    cfxi_vec body;        /* of cfx_node *: of each part */
    size_t *read_starts, *body_starts;
    cfx_node **readers;   /* of each cut: who reads it first */
    cfxi_arena arena;     /* of all these arrays */
    cfx_error *err;       /* never NULL */
} cfxi_splitter;

typedef struct cfxi_read {
    cfx_node *value;
    size_t user;  /* position of the first in the part that reads it */
} cfxi_read;

static inline size_t cfxi_split_position(const cfxi_splitter *s, const cfx_node *n)
{
    return n->mark - s->stamp;
}

/* A zeroed array that lives as long as the splitter; NULL with *err set. (split.c) */
void *cfxi_split_array(cfxi_splitter *s, size_t n, size_t item_size);

/* Fills result->order. (split_order.c) */
cfx_status cfxi_split_order(cfxi_splitter *s);

/* Finds the roles of nodes, and whether one writes: asks the host. Then, when the members are
 * known, what opens and closes each part. (split_spans.c) */
cfx_status cfxi_split_find_roles(cfxi_splitter *s);
cfx_status cfxi_split_find_spans(cfxi_splitter *s);

/* The base, which calls the parts in their order. (split_base.c) */
cfx_status cfxi_split_build_base(cfxi_splitter *s, cfx_node_map *map);

#endif
