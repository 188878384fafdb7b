/* fuse_bn_impl.h - what fuse_bn.c finds, and fuse_weights.c computes with. */
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

/* Holds a floating value until the pair is done; INVALID, and the job fails, if memory is out. */
cfx_value cfxi_pass_fuse_hold(fuse_job *job, cfx_value v);

/* The weights of the one layer; false, and the job has failed. (fuse_weights.c) */
bool cfxi_pass_fuse_weights(fuse_job *job, const fused_layer *layer, const fused_norm *norm,
                            fused_weights *out);

#endif
