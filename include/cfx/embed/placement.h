/* For language bindings and back ends; may change between versions.
 *
 * embed/placement.h - on which devices the calls of a graph run if no device holds all of them.
 *
 * A part is a set of calls that run on one device, and of the inputs and attributes (placeholders,
 * get_attr) that they read: those can be in several parts. What a part needs of a device's memory
 * is the total size of each of its nodes; and, for each of its calls, the size of each value that
 * the call reads from another part.
 */
#ifndef CFX_EMBED_PLACEMENT_H
#define CFX_EMBED_PLACEMENT_H

#include <cfx/embed/partition.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From one part to another, or from one node to another. */
typedef struct cfx_link {
    uint32_t from, to;
    double weight;
} cfx_link;

/* ---- the longest way ----------------------------------------------------------------------- */

/* far[i] becomes the largest sum of the weights of things and of links along a way that ends with
 * thing i; before[i] (may be NULL) what is before i on such a way, CFX_NO_PART if nothing. `links`
 * are in any order; which of several ways of one length counts is the same each time. CFX_E_INDEX
 * if a link has a number that is not below `n`; CFX_E_GRAPH if links make a circle.
 * O(n + links). */
CFX_API cfx_status cfx_longest_paths(size_t n, const double *weights, const cfx_link *links,
                                     size_t n_links, double *far, uint32_t *before,
                                     const cfx_allocator *allocator, cfx_error *err);

/* ---- parts to devices ---------------------------------------------------------------------- */

typedef struct cfx_fit_options {
    const double *memory;    /* of each device */
    size_t n_devices;
    const double *sizes;     /* what each part needs */
    size_t n_parts;
    const cfx_link *shared;  /* what `to` needs less (the weight) where `from` is, too */
    size_t n_shared;
    const cfx_link *placed;  /* parts (`from`) that are on a device (`to`) already, with all their
                                size; a part can be on several. The weight is not looked at */
    size_t n_placed;
} cfx_fit_options;

/* Puts each part that is nowhere yet on the device with the least memory left of those that have
 * more left than it needs, part by part: devices[i] becomes the number of the device, CFX_NO_PART
 * for parts that were placed. *fits becomes false at the first part for which there is no such
 * device: it and those behind it have CFX_NO_PART, too. CFX_E_INDEX if a number is too large.
 * O(parts * devices + links). */
CFX_API cfx_status cfx_devices_fit(const cfx_fit_options *what, uint32_t *devices, bool *fits,
                                   const cfx_allocator *allocator, cfx_error *err);

/* ---- calls to parts ------------------------------------------------------------------------ */

typedef enum cfx_place_mode {
    /* In the order of the calls: a part for the next unused device that can hold the call, which
     * takes all calls up to the first that it has no room for. When all devices are used, each
     * call that is left is a part by itself, to be put where there is room. O(nodes + edges), and
     * the time of cfx_devices_fit. CFX_E_GRAPH if no unused device can hold a call, or if a part
     * that is left fits nowhere. */
    CFX_PLACE_BY_SIZE,
    /* For devices of one size, and a graph in which some calls look up embeddings: a new part
     * begins wherever these change to others, and where there is no more room. Then those of each
     * kind become one as long as the smallest can join another (the largest that leaves it room,
     * at most one level away). Each part of embeddings has a device, and all other parts are on
     * each of these. CFX_E_GRAPH if that does not fit. Quadratic in the parts; each time that two
     * become one, all calls are looked at. */
    CFX_PLACE_EMBEDDINGS,
    /* Each call is a part; then, again and again, those two become one that make the graph's
     * latency the least, as long as it does not grow. Considered are parts that pass each other a
     * value or are at most one level apart. The graph is looked at for each pair, and all pairs for
     * each call: O(calls^3) times the graph at worst. */
    CFX_PLACE_BY_COST,
    /* Improves the placement that is given (Kernighan and Lin's way): for each call in order, of
     * all exchanges with a call of another part and all moves to one, that which makes the
     * latency the least is done if that is less than it was. O(calls^2) times the graph. */
    CFX_PLACE_BY_EXCHANGE
} cfx_place_mode;

typedef struct cfx_place_options {
    cfx_place_mode mode;
    const double *outputs;    /* the size of each node's value, in the order of the nodes */
    const double *totals;     /* and with what else its call needs */
    const double *latencies;  /* of each call: for modes by cost and by exchange */
    const bool *embedding;    /* which calls look up embeddings: for that mode */
    const double *memory;     /* of each device */
    size_t n_devices;
    double rate;              /* bytes a second between devices */
} cfx_place_options;

/* Fills `parts`, which has room for a number for each node of `g` in their order: that of its part
 * for calls, CFX_NO_PART for all else; and `devices`, which has as much room, with the device of
 * each part: CFX_NO_PART for parts that are on all used devices (CFX_PLACE_EMBEDDINGS) or that no
 * device has room for (CFX_PLACE_BY_COST). *n becomes the number of parts; for
 * CFX_PLACE_BY_EXCHANGE `parts`, `devices` and *n are what is to be improved, too (CFX_E_INDEX if a
 * call is in no part); parts that are empty then have gone. CFX_E_GRAPH if a node stands before
 * what it uses, CFX_E_VALUE if something is missing, or a rate that is needed is not more than 0.
 * If it fails, `parts` and `devices` have no meaning. */
CFX_API cfx_status cfx_graph_place(cfx_graph *g, const cfx_place_options *what, uint32_t *parts,
                                   uint32_t *devices, size_t *n, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
