/* comparison_impl.h - what the files of cfx_comparison share. */
#ifndef CFXI_COMPARISON_IMPL_H
#define CFXI_COMPARISON_IMPL_H

#include "base/map_impl.h"
#include "ir/graph_impl.h"

#include <cfx/compare.h>
#include <cfx/ops.h>

/* Over the elements of two tensors. (comparison_sums.c) */
typedef struct cfxi_sums {
    int64_t n, odd;         /* finite in both, and not */
    double aa, bb, ab, dd;  /* of squares, products, squared differences */
    double most_a, most_b, most_d;
} cfxi_sums;

/* Adds the elements of two tensors of floats of one shape. CFX_E_NOMEM. */
cfx_status cfxi_check_sums_add(cfxi_sums *s, const cfx_tensor *a, const cfx_tensor *b,
                               cfx_error *err);
cfx_closeness cfxi_check_sums_closeness(const cfxi_sums *s);

/* A pair of nodes. */
typedef struct cfxi_layer {
    cfx_node *a, *b;
    cfx_node *work;        /* of the second graph: that computes what `b` may dequantize */
    const cfx_node *head;  /* of the first graph: the first of those that `b` does the work of */
    cfx_operator partner;  /* what `b`, or what it dequantizes, calls; or NONE */
    bool is_quantized;     /* computes from or to integers */
    bool per_tensor;       /* with weights that have one scale */
    bool left_out;
    cfxi_sums sums;
} cfxi_layer;

struct cfx_comparison {
    const cfx_allocator *allocator;
    cfx_graph *a, *b;
    cfxi_vec layers;        /* of cfxi_layer */
    cfxi_hash_map sources;  /* node of `a` -> 1 + the layer that its value comes from; 0: none */
    size_t *order;          /* the layers with values, the worst first */
    size_t n_order;
    bool is_sorted;
};

bool cfxi_check_is_dequantize(const cfx_node *n);

/* The layer that the value of a node of the first graph comes from; or NULL. */
const cfxi_layer *cfxi_check_source(const cfx_comparison *c, const cfx_node *n);

#endif
