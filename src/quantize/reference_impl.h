/* reference_impl.h - what the files of converting share. */
#ifndef CFXI_QUANTIZE_REFERENCE_IMPL_H
#define CFXI_QUANTIZE_REFERENCE_IMPL_H

#include "prepare_impl.h"

#define DECOMPOSED "torch.ops.quantized_decomposed."

typedef struct cfxi_convert {
    cfx_graph *g;             /* the graph or region at hand */
    const cfx_module_tree *modules;
    const cfx_quantize_host *host;
    const cfx_convert_options *opts;
    const cfx_allocator *allocator;
    cfxi_pointers kept;       /* nodes that stay float: themselves */
    cfxi_pointers unscaled;   /* observers that have no scale: themselves */
    cfxi_pointers layers;     /* call_module of a layer -> the first path of its module */
    cfxi_pointers paths;      /* identity of a module -> the first path of it */
    cfxi_hash_map stored;     /* identity of a weight -> size_t: which of `kinds` is its last */
    cfxi_vec kinds;           /* of cfxi_stored: what was made of weights */
    cfxi_vec replaced;        /* of char *: paths of weights that integers replaced */
    cfxi_vec observers;       /* of char *: paths of observers */
    size_t n_observers;       /* in the graph and its layers */
    size_t n_static, n_seen;  /* of those: with ranges from calibration, and which have one */
    cfx_error bad;            /* the first that has observed what is not finite */
    cfx_error *err;           /* never NULL */
} cfxi_convert;

/* A weight: where it is ("fc.weight"), and whether its columns are the output channels. */
typedef struct cfxi_weight {
    const char *base;
    bool transposed;
} cfxi_weight;

/* A copy of a path at the end of a list of them. (reference.c) */
cfx_status cfxi_quantize_push_path(cfxi_convert *c, cfxi_vec *paths, const char *path);

/* Lets a node stay as it is, and tells why, unless that is NULL. (reference_keep.c) */
cfx_status cfxi_quantize_keep(cfxi_convert *c, cfx_node *n, const char *why);
/* Whether a call is in integers: it is not kept, and its result is observed, or that of the ReLU
 * that counts as one with it. Only before its observers are converted. (reference_keep.c) */
cfx_status cfxi_quantize_in_integers(const cfxi_convert *c, const cfx_node *n, bool *is);
/* Likewise what the options name; CFX_E_KEY if a name stands for nothing. (reference_keep.c) */
cfx_status cfxi_quantize_keep_named(cfxi_convert *c, cfx_graph *g);

/* A call of a function before `n`, with its location; the arguments are given away. NULL with
 * c->err set, also if one of them is INVALID. (reference_weights.c) */
cfx_node *cfxi_quantize_add_call(cfxi_convert *c, cfx_node *before, const char *function,
                                 const cfx_value *args, size_t n);
/* x.to(dtype), likewise. (reference_weights.c) */
cfx_node *cfxi_quantize_add_cast(cfxi_convert *c, cfx_node *before, cfx_value x, cfx_dtype dtype);
static inline cfx_value cfxi_quantize_node_value(cfx_node *n)
{
    return n ? cfx_value_node(n) : cfx_value_invalid();
}
/* The path of the observer of a layer's weights; NULL if it has none. (reference_weights.c) */
const char *cfxi_quantize_weight_observer(const cfxi_convert *c, const char *layer,
                                          char path[CFXI_QUANTIZE_MAX_PATH]);
/* It as integers that are dequantized before `n`; the buffers are made, unless this weight has them
 * for another call. NULL with c->err set. (reference_weights.c) */
cfx_node *cfxi_quantize_weight(cfxi_convert *c, cfx_node *n, cfxi_weight weight,
                               const char *observer, bool look);
void cfxi_quantize_stored_free(cfxi_convert *c);

/* The weight that the model computes and `observer` looks at, quantized and dequantized where it is
 * used, with its scales in buffers. NULL with c->err set. (reference_weights.c) */
cfx_node *cfxi_quantize_computed_weight(cfxi_convert *c, cfx_node *observer,
                                        const cfx_quantize_spec *spec);
/* *why the weight cannot have a scale for each group; NULL if it can, or is to have
 * others. (reference_weights.c) */
cfx_status cfxi_quantize_group_refusal(cfxi_convert *c, cfxi_weight weight,
                                       const cfx_quantize_spec *spec, const char **why);

/* Why the layer that `n` calls cannot become a function; NULL if it can. (reference_layers.c) */
const char *cfxi_quantize_layer_refusal(cfxi_convert *c, const cfx_node *n, cfx_operator op);
/* Makes the call of a layer one of its function with dequantized weights. (reference_layers.c) */
cfx_status cfxi_quantize_layer(cfxi_convert *c, cfx_node *n, cfx_operator op);

/* Whether the matrices of the recurrent module that `n` calls have observers, and it can become a
 * function; else it stays float. (reference_recurrent.c) */
cfx_status cfxi_quantize_look_at_recurrent(cfxi_convert *c, cfx_node *n, bool *is);
/* Makes the call of a recurrent module one of its function. (reference_recurrent.c) */
cfx_status cfxi_quantize_recurrent(cfxi_convert *c, cfx_node *n, cfx_operator op);

#endif
