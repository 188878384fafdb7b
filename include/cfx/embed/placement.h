/* For language bindings and back ends; may change between versions.
 *
 * embed/placement.h - assigns the calls of a graph to devices if no single device can hold them
 * all.
 *
 * A part is a set of calls that run on one device, together with the inputs and attributes
 * (placeholders, get_attr) that they read, which may be in several parts. The memory that a part
 * needs on a device is the total size of each of its nodes plus, for each of its calls, the size of
 * each value that the call reads from another part.
 */
#ifndef CFX_EMBED_PLACEMENT_H
#define CFX_EMBED_PLACEMENT_H

#include <cfx/embed/partition.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A weighted edge from one part to another, or from one node to another. */
typedef struct cfx_link {
    uint32_t from, to;
    double weight;
} cfx_link;

/* ---- longest paths -------------------------------------------------------------------------- */

/* far[i] becomes the largest sum of vertex and link weights along a path that ends at vertex i;
 * before[i] (may be NULL) becomes the predecessor of i on such a path, or CFX_NO_PART. `links` may
 * be in any order; ties are resolved deterministically. CFX_E_INDEX if a link has a number that is
 * not less than `n`; CFX_E_GRAPH if the links form a cycle. O(n + links). */
CFX_API cfx_status cfx_longest_paths(size_t n, const double *weights, const cfx_link *links,
                                     size_t n_links, double *far, uint32_t *before,
                                     const cfx_allocator *allocator, cfx_error *err);

/* ---- parts to devices ---------------------------------------------------------------------- */

typedef struct cfx_fit_options {
    const double *memory;    /* of each device */
    size_t n_devices;
    const double *sizes;     /* memory that each part needs */
    size_t n_parts;
    const cfx_link *shared;  /* `weight` is what `to` saves on a device that also has `from` */
    size_t n_shared;
    const cfx_link *placed;  /* parts (`from`) that are already on a device (`to`), with their full
                                size; a part can be on several. The weight is ignored */
    size_t n_placed;
} cfx_fit_options;

/* Assigns each unplaced part, in order, to the device with the least free memory among those that
 * have more than the part needs. devices[i] becomes the number of the device, or CFX_NO_PART for
 * parts that were already placed. *fits becomes false at the first part without such a device: it
 * and all later parts get CFX_NO_PART. CFX_E_INDEX if a number is out of range. O(parts * devices +
 * links). */
CFX_API cfx_status cfx_devices_fit(const cfx_fit_options *what, uint32_t *devices, bool *fits,
                                   const cfx_allocator *allocator, cfx_error *err);

/* ---- calls to parts ------------------------------------------------------------------------ */

typedef enum cfx_place_mode {
    /* In the order of the calls: creates a part for the next unused device that can hold the call,
     * and adds calls to it until one does not fit. When all devices are used, each remaining call
     * is a part of its own, placed on a device with room. O(nodes + edges), plus the time of
     * cfx_devices_fit. CFX_E_GRAPH if no unused device can hold a call, or if a remaining part does
     * not fit anywhere. */
    CFX_PLACE_BY_SIZE,
    /* For devices of equal size, and a graph in which some calls are embedding lookups. A new part
     * begins wherever embedding calls and other calls alternate, and where memory runs out. Then
     * parts of each kind are merged while the smallest can join another one (the largest with
     * enough room, at most one level away). Each embedding part gets a device, and all other parts
     * are placed on each of these devices. CFX_E_GRAPH if that does not fit. Quadratic in the
     * parts; each merge visits all calls. */
    CFX_PLACE_EMBEDDINGS,
    /* Each call starts as a part. Then the two parts whose merge gives the graph the lowest latency
     * are merged, as long as the latency does not increase. Candidates are parts that pass each
     * other a value or are at most one level apart. Evaluates the graph for each pair, and all
     * pairs for each call: O(calls^3) times the graph in the worst case. */
    CFX_PLACE_BY_COST,
    /* Improves a given placement (Kernighan-Lin): for each call in order, considers all swaps with
     * a call of another part and all moves to another part, and applies the one with the lowest
     * latency if that is an improvement. O(calls^2) times the graph. */
    CFX_PLACE_BY_EXCHANGE
} cfx_place_mode;

typedef struct cfx_place_options {
    cfx_place_mode mode;
    const double *outputs;    /* the size of each node's value, in the order of the nodes */
    const double *totals;     /* the same, including what else its call needs */
    const double *latencies;  /* of each call, for BY_COST and BY_EXCHANGE */
    const bool *embedding;    /* which calls are embedding lookups, for EMBEDDINGS */
    const double *memory;     /* of each device */
    size_t n_devices;
    double rate;              /* transfer rate between devices, in bytes per second */
} cfx_place_options;

/* Stores in `parts`, which has one entry per node of `g`, in order, the part of each call, and
 * CFX_NO_PART for other nodes. Stores in `devices`, of the same size, the device of each part;
 * CFX_NO_PART for parts that are on all used devices (CFX_PLACE_EMBEDDINGS) or that no device has
 * room for (CFX_PLACE_BY_COST). *n receives the number of parts. For CFX_PLACE_BY_EXCHANGE,
 * `parts`, `devices` and *n also hold the placement to improve (CFX_E_INDEX if a call is in no
 * part); parts that become empty are removed. CFX_E_GRAPH if a node comes before one of its inputs;
 * CFX_E_VALUE if an array is missing, or if a rate is needed and not greater than 0. After a
 * failure the contents of `parts` and `devices` are undefined. */
CFX_API cfx_status cfx_graph_place(cfx_graph *g, const cfx_place_options *what, uint32_t *parts,
                                   uint32_t *devices, size_t *n, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
