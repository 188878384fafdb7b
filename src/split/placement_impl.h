/* placement_impl.h - what the files of placement share: a graph as flat arrays, and its parts. */
#ifndef CFXI_PLACEMENT_IMPL_H
#define CFXI_PLACEMENT_IMPL_H

#include "analysis/analysis_impl.h"

#include <cfx/embed/placement.h>

/* ---- scratch for the functions on links (placement.c) -------------------------------------- */

/* Room for n things, n_links links, n_devices devices: all of it in an arena. */
typedef struct cfxi_link_room {
    uint32_t *head, *next;       /* links by where they begin or end */
    uint32_t *waiting, *queue;   /* things */
    uint32_t *on, *on_next;      /* the places of each part, and their devices in on_device */
    uint32_t *on_device;
    uint32_t *order;             /* devices, by the memory that is left */
    double *left, *saved;
} cfxi_link_room;

bool cfxi_split_link_room_init(cfxi_link_room *room, cfxi_arena *arena, size_t n, size_t n_links,
                               size_t n_devices);
/* As cfx_longest_paths and cfx_devices_fit, but numbers are not checked. A circle is false. */
bool cfxi_split_longest_ways(size_t n, const double *weights, const cfx_link *links, size_t n_links,
                             double *far, uint32_t *before, cfxi_link_room *room);
bool cfxi_split_fit_parts(const cfx_fit_options *what, uint32_t *devices, cfxi_link_room *room);

/* An array in an arena, or NULL. */
static inline void *cfxi_split_new_array(cfxi_arena *arena, size_t n, size_t item_size)
{
    size_t bytes;
    return cfxi_base_mul_size(n + 1, item_size, 8, &bytes) ? cfxi_base_arena_alloc(arena, bytes)
                                                           : NULL;
}

/* ---- a graph and its parts (part_links.c) -------------------------------------------------- */

enum { CFXI_CALL, CFXI_LEAF, CFXI_OTHER };

typedef struct cfxi_placer {
    cfx_graph *g;
    const cfx_place_options *what;
    size_t n, n_edges;
    cfx_node **nodes;
    unsigned char *kind;        /* of each node */
    uint32_t *reads, *first;    /* what node i reads: reads[first[i]] to reads[first[i + 1]] */
    /* what cfxi_split_survey_parts finds out about parts: */
    size_t n_parts, n_links;
    double *sizes, *latencies;  /* of each part */
    cfx_link *shared, *moved;   /* the same links by `to`, with what that needs less of memory where
                                   `from` is, and with the bytes that pass between devices */
    uint32_t *leaf, *leaves;    /* the leaves of part p: leaf[leaves[p]] to leaf[leaves[p + 1]] */
    /* scratch: */
    uint32_t *members, *starts; /* calls by their part */
    uint32_t *seen, *slot;
    double *far, *weights;
    cfx_link *costs;
    uint32_t *trial, *trial_devices;
    cfxi_link_room room;
    cfxi_arena arena;           /* of all these arrays */
} cfxi_placer;

/* Reads the graph; cfxi_split_placer_done is due in any case. */
cfx_status cfxi_split_placer_init(cfxi_placer *p, cfx_graph *g, const cfx_place_options *what,
                                  cfx_error *err);
void cfxi_split_placer_done(cfxi_placer *p);

/* Looks at the parts of the calls: fills the members of `p` that say so. Linear in the graph; for
 * each link, also in the leaves of the part that it comes from. */
void cfxi_split_survey_parts(cfxi_placer *p, const uint32_t *parts, size_t n);
/* Whether the parts last looked at make no circle; p->far has the level of each. */
bool cfxi_split_part_levels(cfxi_placer *p);
/* Puts these parts on devices, all anew; false if they do not fit, with some on no device. */
bool cfxi_split_map_parts(cfxi_placer *p, uint32_t *devices);
/* How long the graph takes with these parts on devices; INFINITY if they make a circle. */
double cfxi_split_parts_latency(cfxi_placer *p, const uint32_t *devices);

/* parts[i] with `a` and `b` as one, the last, and without a gap. */
void cfxi_split_join_parts(const cfxi_placer *p, const uint32_t *parts, size_t n, uint32_t a,
                           uint32_t b, uint32_t *joined);

/* ---- modes --------------------------------------------------------------------------------- */

typedef struct cfxi_placing {
    uint32_t *parts, *devices;
    size_t n;
} cfxi_placing;

cfx_status cfxi_split_place_by_size(cfxi_placer *p, cfxi_placing *out, cfx_error *err);
cfx_status cfxi_split_place_embeddings(cfxi_placer *p, cfxi_placing *out, cfx_error *err);
cfx_status cfxi_split_place_by_cost(cfxi_placer *p, cfxi_placing *out, cfx_error *err);
cfx_status cfxi_split_place_by_exchange(cfxi_placer *p, cfxi_placing *out, cfx_error *err);

#endif
