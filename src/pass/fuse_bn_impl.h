/* fuse_bn_impl.h - layers and their weights, for passes that compute new ones: what fuse_bn.c
 * finds, and fuse_weights.c computes with. */
#ifndef CFXI_FUSE_BN_IMPL_H
#define CFXI_FUSE_BN_IMPL_H

#include "ops/ops_impl.h"
#include "analysis/module_users_impl.h"

#include <stdio.h>

enum { FUSE_MAX_RANK = 6, FUSE_MAX_PATH = 1000 };

typedef struct fuse_job {
    cfx_graph *g;
    const cfx_module_tree *modules;
    cfxi_survey survey;
    cfx_error *err;     /* never NULL while something is looked up */
    cfx_status status;  /* the first failure */
    cfx_buffer path;    /* scratch */
    cfxi_vec held;      /* of cfx_value: what was looked up and computed for a pair */
    bool changed;
} fuse_job;

/* A tensor, or None. */
typedef struct fused_tensor {
    cfx_value value;
    cfx_node *reader;  /* the get_attr that reads it, if it is an argument */
    cfx_dtype dtype;
    size_t rank;
    int64_t shape[FUSE_MAX_RANK];
} fused_tensor;

/* What a row of the operator table does with its weights. */
typedef struct fused_kind {
    cfx_operator op;
    uint8_t dims;  /* of a convolution; 0 for a linear layer */
    bool transposed;
} fused_kind;

typedef struct fused_layer {
    cfx_node *node;
    fused_tensor weight, bias;
    int64_t groups;
    int dims;  /* of a convolution; 0 for a linear layer */
    bool transposed;
} fused_layer;

typedef struct fused_norm {
    cfx_node *node;
    fused_tensor mean, var, weight, bias;
    double eps;
} fused_norm;

typedef struct fused_weights {
    cfx_value weight, bias;
} fused_weights;

/* Calls `fn` for the graph and its regions; without modules, for nothing. */
typedef cfx_status cfxi_fuse_fn(fuse_job *job);
cfx_status cfxi_pass_fuse_walk(cfx_graph *g, const cfx_module_tree *modules, cfxi_fuse_fn *fn,
                               bool *changed, cfx_error *err);

/* Holds a floating value until it is let go; INVALID, and the job fails, if memory is out. */
cfx_value cfxi_pass_fuse_hold(fuse_job *job, cfx_value v);
/* Lets go of all that is held but the first `keep`. */
void cfxi_pass_fuse_let_go(fuse_job *job, size_t keep);

/* ---- layers (fuse_bn.c) --------------------------------------------------------------------- */

/* NULL for what is neither a linear layer nor a convolution. */
const fused_kind *cfxi_pass_fuse_kind(cfx_operator op);
/* What a node computes; NONE once the job has failed. */
cfx_operator cfxi_pass_fuse_operator(fuse_job *job, const cfx_node *n);
/* The convolution or linear layer that `n` computes; false if it is none, or others call it or read
 * or write its weights: it has to stay as it is. */
bool cfxi_pass_fuse_read_layer(fuse_job *job, cfx_node *n, fused_layer *layer);
/* The node that a layer, a norm or an activation is given, if that is all it is given. */
cfx_node *cfxi_pass_fuse_input_of(const cfx_node *n);

/* Sets module.name. */
cfx_status cfxi_pass_fuse_set(fuse_job *job, const char *module, const char *name, cfx_value v);
/* A node before the layer that reads a new weight from a path of its own, near `base`; or NULL. */
cfx_node *cfxi_pass_fuse_reader(fuse_job *job, cfx_node *layer, const char *base,
                                const char *suffix, cfx_value v);
/* Makes it the weight or the bias of a function. */
cfx_status cfxi_pass_fuse_give(fuse_job *job, cfx_node *n, bool bias, cfx_node *reader);

/* ---- weights (fuse_weights.c) ---------------------------------------------------------------- */

/* An operator of the host's, on values that are held; INVALID if it, or anything before, failed. */
cfx_value cfxi_pass_fuse_compute(fuse_job *job, cfx_operator op, const cfx_value *args, size_t n);
cfx_value cfxi_pass_fuse_reshape(fuse_job *job, cfx_value t, const int64_t *shape, size_t rank);

/* The weights of the one layer; false, and the job has failed. */
bool cfxi_pass_fuse_weights(fuse_job *job, const fused_layer *layer, const fused_norm *norm,
                            fused_weights *out);

#endif
