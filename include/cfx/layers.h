/* layers.h - a function for each class of torch.nn; made by tools/c_api.py.
 *
 * Each makes a module of torch.nn, with its parameters initialised as PyTorch initialises them,
 * from the scope's random numbers. Arguments as in operators.h; the attributes have the same
 * names.
 */
#ifndef CFX_LAYERS_H
#define CFX_LAYERS_H

#pragma GCC system_header /* see scope.h */

#include <cfx/module.h>
#include <cfx/nn.h>

#ifdef __cplusplus
extern "C" {
#endif


/* Makes a module of the class: `args` are by the constructor's parameters; empty ones have
 * their defaults. NULL, and the scope fails. */
CFX_API cfx_module *cfx_nn_make_at(cfx_at at, cfx_nn nn, const cfx_var *args, size_t n);

/* torch.nn.Sequential() */
static inline cfx_module *cfx_nn_sequential_at(cfx_at at)
{
    return cfx_nn_make_at(at, CFX_NN_Sequential, NULL, 0);
}
#define cfx_nn_sequential(s) cfx_nn_sequential_at(CFX_HERE(s))

/* torch.nn.ModuleList() */
static inline cfx_module *cfx_nn_module_list_at(cfx_at at)
{
    return cfx_nn_make_at(at, CFX_NN_ModuleList, NULL, 0);
}
#define cfx_nn_module_list(s) cfx_nn_module_list_at(CFX_HERE(s))

/* torch.nn.ModuleDict() */
static inline cfx_module *cfx_nn_module_dict_at(cfx_at at)
{
    return cfx_nn_make_at(at, CFX_NN_ModuleDict, NULL, 0);
}
#define cfx_nn_module_dict(s) cfx_nn_module_dict_at(CFX_HERE(s))

/* torch.nn.Identity() */
static inline cfx_module *cfx_nn_identity_at(cfx_at at)
{
    return cfx_nn_make_at(at, CFX_NN_Identity, NULL, 0);
}
#define cfx_nn_identity(s) cfx_nn_identity_at(CFX_HERE(s))

/* torch.nn.Linear(int in_features, int out_features, bool bias=True, *, ScalarType? dtype=None) */
typedef struct cfx_nn_linear_args { cfx_var bias, dtype; } cfx_nn_linear_args;
static inline cfx_module *cfx_nn_linear_at(cfx_at at, cfx_var in_features, cfx_var out_features,
        cfx_nn_linear_args o)
{
    const cfx_var args[] = {in_features, out_features, o.bias, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_Linear, args, 4);
}
#define cfx_nn_linear(s, in_features, out_features, ...)                                           \
    cfx_nn_linear_at(CFX_HERE(s), cfx_v(in_features), cfx_v(out_features),                         \
        CFX_OPTIONS(cfx_nn_linear_args, __VA_ARGS__))

/* torch.nn.Bilinear(int in1_features, int in2_features, int out_features, bool bias=True, *,
 *     ScalarType? dtype=None) */
typedef struct cfx_nn_bilinear_args { cfx_var bias, dtype; } cfx_nn_bilinear_args;
static inline cfx_module *cfx_nn_bilinear_at(cfx_at at, cfx_var in1_features, cfx_var in2_features,
        cfx_var out_features, cfx_nn_bilinear_args o)
{
    const cfx_var args[] = {in1_features, in2_features, out_features, o.bias, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_Bilinear, args, 5);
}
#define cfx_nn_bilinear(s, in1_features, in2_features, out_features, ...)                          \
    cfx_nn_bilinear_at(CFX_HERE(s), cfx_v(in1_features), cfx_v(in2_features),                      \
        cfx_v(out_features), CFX_OPTIONS(cfx_nn_bilinear_args, __VA_ARGS__))

/* torch.nn.Embedding(int num_embeddings, int embedding_dim, int? padding_idx=None, float?
 *     max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False,
 *     Tensor? _weight=None, bool _freeze=False, *, ScalarType? dtype=None) */
typedef struct cfx_nn_embedding_args { cfx_var padding_idx, max_norm, norm_type,
        scale_grad_by_freq, sparse, _weight, _freeze, dtype; } cfx_nn_embedding_args;
static inline cfx_module *cfx_nn_embedding_at(cfx_at at, cfx_var num_embeddings, cfx_var
        embedding_dim, cfx_nn_embedding_args o)
{
    const cfx_var args[] = {num_embeddings, embedding_dim, o.padding_idx, o.max_norm, o.norm_type,
        o.scale_grad_by_freq, o.sparse, o._weight, o._freeze, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_Embedding, args, 10);
}
#define cfx_nn_embedding(s, num_embeddings, embedding_dim, ...)                                    \
    cfx_nn_embedding_at(CFX_HERE(s), cfx_v(num_embeddings), cfx_v(embedding_dim),                  \
        CFX_OPTIONS(cfx_nn_embedding_args, __VA_ARGS__))

/* torch.nn.EmbeddingBag(int num_embeddings, int embedding_dim, float? max_norm=None, float
 *     norm_type=2.0, bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, Tensor?
 *     _weight=None, bool include_last_offset=False, int? padding_idx=None, *, ScalarType?
 *     dtype=None) */
typedef struct cfx_nn_embedding_bag_args { cfx_var max_norm, norm_type, scale_grad_by_freq, mode,
        sparse, _weight, include_last_offset, padding_idx, dtype; } cfx_nn_embedding_bag_args;
static inline cfx_module *cfx_nn_embedding_bag_at(cfx_at at, cfx_var num_embeddings, cfx_var
        embedding_dim, cfx_nn_embedding_bag_args o)
{
    const cfx_var args[] = {num_embeddings, embedding_dim, o.max_norm, o.norm_type,
        o.scale_grad_by_freq, o.mode, o.sparse, o._weight, o.include_last_offset, o.padding_idx,
        o.dtype};
    return cfx_nn_make_at(at, CFX_NN_EmbeddingBag, args, 11);
}
#define cfx_nn_embedding_bag(s, num_embeddings, embedding_dim, ...)                                \
    cfx_nn_embedding_bag_at(CFX_HERE(s), cfx_v(num_embeddings), cfx_v(embedding_dim),              \
        CFX_OPTIONS(cfx_nn_embedding_bag_args, __VA_ARGS__))

/* torch.nn.Conv1d(int in_channels, int out_channels, int[1] kernel_size, int[1] stride=1, Any
 *     padding=0, int[1] dilation=1, int groups=1, bool bias=True, str padding_mode='zeros', *,
 *     ScalarType? dtype=None) */
typedef struct cfx_nn_conv1d_args { cfx_var stride, padding, dilation, groups, bias, padding_mode,
        dtype; } cfx_nn_conv1d_args;
static inline cfx_module *cfx_nn_conv1d_at(cfx_at at, cfx_var in_channels, cfx_var out_channels,
        cfx_var kernel_size, cfx_nn_conv1d_args o)
{
    const cfx_var args[] = {in_channels, out_channels, kernel_size, o.stride, o.padding,
        o.dilation, o.groups, o.bias, o.padding_mode, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_Conv1d, args, 10);
}
#define cfx_nn_conv1d(s, in_channels, out_channels, kernel_size, ...)                              \
    cfx_nn_conv1d_at(CFX_HERE(s), cfx_v(in_channels), cfx_v(out_channels), cfx_v(kernel_size),     \
        CFX_OPTIONS(cfx_nn_conv1d_args, __VA_ARGS__))

/* torch.nn.Conv2d(int in_channels, int out_channels, int[2] kernel_size, int[2] stride=1, Any
 *     padding=0, int[2] dilation=1, int groups=1, bool bias=True, str padding_mode='zeros', *,
 *     ScalarType? dtype=None) */
typedef struct cfx_nn_conv2d_args { cfx_var stride, padding, dilation, groups, bias, padding_mode,
        dtype; } cfx_nn_conv2d_args;
static inline cfx_module *cfx_nn_conv2d_at(cfx_at at, cfx_var in_channels, cfx_var out_channels,
        cfx_var kernel_size, cfx_nn_conv2d_args o)
{
    const cfx_var args[] = {in_channels, out_channels, kernel_size, o.stride, o.padding,
        o.dilation, o.groups, o.bias, o.padding_mode, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_Conv2d, args, 10);
}
#define cfx_nn_conv2d(s, in_channels, out_channels, kernel_size, ...)                              \
    cfx_nn_conv2d_at(CFX_HERE(s), cfx_v(in_channels), cfx_v(out_channels), cfx_v(kernel_size),     \
        CFX_OPTIONS(cfx_nn_conv2d_args, __VA_ARGS__))

/* torch.nn.Conv3d(int in_channels, int out_channels, int[3] kernel_size, int[3] stride=1, Any
 *     padding=0, int[3] dilation=1, int groups=1, bool bias=True, str padding_mode='zeros', *,
 *     ScalarType? dtype=None) */
typedef struct cfx_nn_conv3d_args { cfx_var stride, padding, dilation, groups, bias, padding_mode,
        dtype; } cfx_nn_conv3d_args;
static inline cfx_module *cfx_nn_conv3d_at(cfx_at at, cfx_var in_channels, cfx_var out_channels,
        cfx_var kernel_size, cfx_nn_conv3d_args o)
{
    const cfx_var args[] = {in_channels, out_channels, kernel_size, o.stride, o.padding,
        o.dilation, o.groups, o.bias, o.padding_mode, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_Conv3d, args, 10);
}
#define cfx_nn_conv3d(s, in_channels, out_channels, kernel_size, ...)                              \
    cfx_nn_conv3d_at(CFX_HERE(s), cfx_v(in_channels), cfx_v(out_channels), cfx_v(kernel_size),     \
        CFX_OPTIONS(cfx_nn_conv3d_args, __VA_ARGS__))

/* torch.nn.ConvTranspose1d(int in_channels, int out_channels, int[1] kernel_size, int[1]
 *     stride=1, int[1] padding=0, int[1] output_padding=0, int groups=1, bool bias=True, int[1]
 *     dilation=1, str padding_mode='zeros', *, ScalarType? dtype=None) */
typedef struct cfx_nn_conv_transpose1d_args { cfx_var stride, padding, output_padding, groups,
        bias, dilation, padding_mode, dtype; } cfx_nn_conv_transpose1d_args;
static inline cfx_module *cfx_nn_conv_transpose1d_at(cfx_at at, cfx_var in_channels, cfx_var
        out_channels, cfx_var kernel_size, cfx_nn_conv_transpose1d_args o)
{
    const cfx_var args[] = {in_channels, out_channels, kernel_size, o.stride, o.padding,
        o.output_padding, o.groups, o.bias, o.dilation, o.padding_mode, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_ConvTranspose1d, args, 11);
}
#define cfx_nn_conv_transpose1d(s, in_channels, out_channels, kernel_size, ...)                    \
    cfx_nn_conv_transpose1d_at(CFX_HERE(s), cfx_v(in_channels), cfx_v(out_channels),               \
        cfx_v(kernel_size), CFX_OPTIONS(cfx_nn_conv_transpose1d_args, __VA_ARGS__))

/* torch.nn.ConvTranspose2d(int in_channels, int out_channels, int[2] kernel_size, int[2]
 *     stride=1, int[2] padding=0, int[2] output_padding=0, int groups=1, bool bias=True, int[2]
 *     dilation=1, str padding_mode='zeros', *, ScalarType? dtype=None) */
typedef struct cfx_nn_conv_transpose2d_args { cfx_var stride, padding, output_padding, groups,
        bias, dilation, padding_mode, dtype; } cfx_nn_conv_transpose2d_args;
static inline cfx_module *cfx_nn_conv_transpose2d_at(cfx_at at, cfx_var in_channels, cfx_var
        out_channels, cfx_var kernel_size, cfx_nn_conv_transpose2d_args o)
{
    const cfx_var args[] = {in_channels, out_channels, kernel_size, o.stride, o.padding,
        o.output_padding, o.groups, o.bias, o.dilation, o.padding_mode, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_ConvTranspose2d, args, 11);
}
#define cfx_nn_conv_transpose2d(s, in_channels, out_channels, kernel_size, ...)                    \
    cfx_nn_conv_transpose2d_at(CFX_HERE(s), cfx_v(in_channels), cfx_v(out_channels),               \
        cfx_v(kernel_size), CFX_OPTIONS(cfx_nn_conv_transpose2d_args, __VA_ARGS__))

/* torch.nn.ConvTranspose3d(int in_channels, int out_channels, int[3] kernel_size, int[3]
 *     stride=1, int[3] padding=0, int[3] output_padding=0, int groups=1, bool bias=True, int[3]
 *     dilation=1, str padding_mode='zeros', *, ScalarType? dtype=None) */
typedef struct cfx_nn_conv_transpose3d_args { cfx_var stride, padding, output_padding, groups,
        bias, dilation, padding_mode, dtype; } cfx_nn_conv_transpose3d_args;
static inline cfx_module *cfx_nn_conv_transpose3d_at(cfx_at at, cfx_var in_channels, cfx_var
        out_channels, cfx_var kernel_size, cfx_nn_conv_transpose3d_args o)
{
    const cfx_var args[] = {in_channels, out_channels, kernel_size, o.stride, o.padding,
        o.output_padding, o.groups, o.bias, o.dilation, o.padding_mode, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_ConvTranspose3d, args, 11);
}
#define cfx_nn_conv_transpose3d(s, in_channels, out_channels, kernel_size, ...)                    \
    cfx_nn_conv_transpose3d_at(CFX_HERE(s), cfx_v(in_channels), cfx_v(out_channels),               \
        cfx_v(kernel_size), CFX_OPTIONS(cfx_nn_conv_transpose3d_args, __VA_ARGS__))

/* torch.nn.BatchNorm1d(int num_features, float eps=1e-05, float? momentum=0.1, bool affine=True,
 *     bool track_running_stats=True, *, ScalarType? dtype=None, bool bias=True) */
typedef struct cfx_nn_batch_norm1d_args { cfx_var eps, momentum, affine, track_running_stats,
        dtype, bias; } cfx_nn_batch_norm1d_args;
static inline cfx_module *cfx_nn_batch_norm1d_at(cfx_at at, cfx_var num_features,
        cfx_nn_batch_norm1d_args o)
{
    const cfx_var args[] = {num_features, o.eps, o.momentum, o.affine, o.track_running_stats,
        o.dtype, o.bias};
    return cfx_nn_make_at(at, CFX_NN_BatchNorm1d, args, 7);
}
#define cfx_nn_batch_norm1d(s, num_features, ...)                                                  \
    cfx_nn_batch_norm1d_at(CFX_HERE(s), cfx_v(num_features),                                       \
        CFX_OPTIONS(cfx_nn_batch_norm1d_args, __VA_ARGS__))

/* torch.nn.BatchNorm2d(int num_features, float eps=1e-05, float? momentum=0.1, bool affine=True,
 *     bool track_running_stats=True, *, ScalarType? dtype=None, bool bias=True) */
typedef struct cfx_nn_batch_norm2d_args { cfx_var eps, momentum, affine, track_running_stats,
        dtype, bias; } cfx_nn_batch_norm2d_args;
static inline cfx_module *cfx_nn_batch_norm2d_at(cfx_at at, cfx_var num_features,
        cfx_nn_batch_norm2d_args o)
{
    const cfx_var args[] = {num_features, o.eps, o.momentum, o.affine, o.track_running_stats,
        o.dtype, o.bias};
    return cfx_nn_make_at(at, CFX_NN_BatchNorm2d, args, 7);
}
#define cfx_nn_batch_norm2d(s, num_features, ...)                                                  \
    cfx_nn_batch_norm2d_at(CFX_HERE(s), cfx_v(num_features),                                       \
        CFX_OPTIONS(cfx_nn_batch_norm2d_args, __VA_ARGS__))

/* torch.nn.BatchNorm3d(int num_features, float eps=1e-05, float? momentum=0.1, bool affine=True,
 *     bool track_running_stats=True, *, ScalarType? dtype=None, bool bias=True) */
typedef struct cfx_nn_batch_norm3d_args { cfx_var eps, momentum, affine, track_running_stats,
        dtype, bias; } cfx_nn_batch_norm3d_args;
static inline cfx_module *cfx_nn_batch_norm3d_at(cfx_at at, cfx_var num_features,
        cfx_nn_batch_norm3d_args o)
{
    const cfx_var args[] = {num_features, o.eps, o.momentum, o.affine, o.track_running_stats,
        o.dtype, o.bias};
    return cfx_nn_make_at(at, CFX_NN_BatchNorm3d, args, 7);
}
#define cfx_nn_batch_norm3d(s, num_features, ...)                                                  \
    cfx_nn_batch_norm3d_at(CFX_HERE(s), cfx_v(num_features),                                       \
        CFX_OPTIONS(cfx_nn_batch_norm3d_args, __VA_ARGS__))

/* torch.nn.SyncBatchNorm(int num_features, float eps=1e-05, float? momentum=0.1, bool
 *     affine=True, bool track_running_stats=True, Any? process_group=None, *, ScalarType?
 *     dtype=None, bool bias=True) */
typedef struct cfx_nn_sync_batch_norm_args { cfx_var eps, momentum, affine, track_running_stats,
        process_group, dtype, bias; } cfx_nn_sync_batch_norm_args;
static inline cfx_module *cfx_nn_sync_batch_norm_at(cfx_at at, cfx_var num_features,
        cfx_nn_sync_batch_norm_args o)
{
    const cfx_var args[] = {num_features, o.eps, o.momentum, o.affine, o.track_running_stats,
        o.process_group, o.dtype, o.bias};
    return cfx_nn_make_at(at, CFX_NN_SyncBatchNorm, args, 8);
}
#define cfx_nn_sync_batch_norm(s, num_features, ...)                                               \
    cfx_nn_sync_batch_norm_at(CFX_HERE(s), cfx_v(num_features),                                    \
        CFX_OPTIONS(cfx_nn_sync_batch_norm_args, __VA_ARGS__))

/* torch.nn.InstanceNorm1d(int num_features, float eps=1e-05, float momentum=0.1, bool
 *     affine=False, bool track_running_stats=False, *, ScalarType? dtype=None, bool bias=True) */
typedef struct cfx_nn_instance_norm1d_args { cfx_var eps, momentum, affine, track_running_stats,
        dtype, bias; } cfx_nn_instance_norm1d_args;
static inline cfx_module *cfx_nn_instance_norm1d_at(cfx_at at, cfx_var num_features,
        cfx_nn_instance_norm1d_args o)
{
    const cfx_var args[] = {num_features, o.eps, o.momentum, o.affine, o.track_running_stats,
        o.dtype, o.bias};
    return cfx_nn_make_at(at, CFX_NN_InstanceNorm1d, args, 7);
}
#define cfx_nn_instance_norm1d(s, num_features, ...)                                               \
    cfx_nn_instance_norm1d_at(CFX_HERE(s), cfx_v(num_features),                                    \
        CFX_OPTIONS(cfx_nn_instance_norm1d_args, __VA_ARGS__))

/* torch.nn.InstanceNorm2d(int num_features, float eps=1e-05, float momentum=0.1, bool
 *     affine=False, bool track_running_stats=False, *, ScalarType? dtype=None, bool bias=True) */
typedef struct cfx_nn_instance_norm2d_args { cfx_var eps, momentum, affine, track_running_stats,
        dtype, bias; } cfx_nn_instance_norm2d_args;
static inline cfx_module *cfx_nn_instance_norm2d_at(cfx_at at, cfx_var num_features,
        cfx_nn_instance_norm2d_args o)
{
    const cfx_var args[] = {num_features, o.eps, o.momentum, o.affine, o.track_running_stats,
        o.dtype, o.bias};
    return cfx_nn_make_at(at, CFX_NN_InstanceNorm2d, args, 7);
}
#define cfx_nn_instance_norm2d(s, num_features, ...)                                               \
    cfx_nn_instance_norm2d_at(CFX_HERE(s), cfx_v(num_features),                                    \
        CFX_OPTIONS(cfx_nn_instance_norm2d_args, __VA_ARGS__))

/* torch.nn.InstanceNorm3d(int num_features, float eps=1e-05, float momentum=0.1, bool
 *     affine=False, bool track_running_stats=False, *, ScalarType? dtype=None, bool bias=True) */
typedef struct cfx_nn_instance_norm3d_args { cfx_var eps, momentum, affine, track_running_stats,
        dtype, bias; } cfx_nn_instance_norm3d_args;
static inline cfx_module *cfx_nn_instance_norm3d_at(cfx_at at, cfx_var num_features,
        cfx_nn_instance_norm3d_args o)
{
    const cfx_var args[] = {num_features, o.eps, o.momentum, o.affine, o.track_running_stats,
        o.dtype, o.bias};
    return cfx_nn_make_at(at, CFX_NN_InstanceNorm3d, args, 7);
}
#define cfx_nn_instance_norm3d(s, num_features, ...)                                               \
    cfx_nn_instance_norm3d_at(CFX_HERE(s), cfx_v(num_features),                                    \
        CFX_OPTIONS(cfx_nn_instance_norm3d_args, __VA_ARGS__))

/* torch.nn.LayerNorm(int[] normalized_shape, float eps=1e-05, bool elementwise_affine=True, bool
 *     bias=True, *, ScalarType? dtype=None) */
typedef struct cfx_nn_layer_norm_args { cfx_var eps, elementwise_affine, bias, dtype; }
        cfx_nn_layer_norm_args;
static inline cfx_module *cfx_nn_layer_norm_at(cfx_at at, cfx_var normalized_shape,
        cfx_nn_layer_norm_args o)
{
    const cfx_var args[] = {normalized_shape, o.eps, o.elementwise_affine, o.bias, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_LayerNorm, args, 5);
}
#define cfx_nn_layer_norm(s, normalized_shape, ...)                                                \
    cfx_nn_layer_norm_at(CFX_HERE(s), cfx_v(normalized_shape),                                     \
        CFX_OPTIONS(cfx_nn_layer_norm_args, __VA_ARGS__))

/* torch.nn.GroupNorm(int num_groups, int num_channels, float eps=1e-05, bool affine=True, *,
 *     ScalarType? dtype=None, bool bias=True) */
typedef struct cfx_nn_group_norm_args { cfx_var eps, affine, dtype, bias; } cfx_nn_group_norm_args;
static inline cfx_module *cfx_nn_group_norm_at(cfx_at at, cfx_var num_groups, cfx_var num_channels,
        cfx_nn_group_norm_args o)
{
    const cfx_var args[] = {num_groups, num_channels, o.eps, o.affine, o.dtype, o.bias};
    return cfx_nn_make_at(at, CFX_NN_GroupNorm, args, 6);
}
#define cfx_nn_group_norm(s, num_groups, num_channels, ...)                                        \
    cfx_nn_group_norm_at(CFX_HERE(s), cfx_v(num_groups), cfx_v(num_channels),                      \
        CFX_OPTIONS(cfx_nn_group_norm_args, __VA_ARGS__))

/* torch.nn.RMSNorm(int[] normalized_shape, float? eps=None, bool elementwise_affine=True, *,
 *     ScalarType? dtype=None) */
typedef struct cfx_nn_rms_norm_args { cfx_var eps, elementwise_affine, dtype; }
        cfx_nn_rms_norm_args;
static inline cfx_module *cfx_nn_rms_norm_at(cfx_at at, cfx_var normalized_shape,
        cfx_nn_rms_norm_args o)
{
    const cfx_var args[] = {normalized_shape, o.eps, o.elementwise_affine, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_RMSNorm, args, 4);
}
#define cfx_nn_rms_norm(s, normalized_shape, ...)                                                  \
    cfx_nn_rms_norm_at(CFX_HERE(s), cfx_v(normalized_shape), CFX_OPTIONS(cfx_nn_rms_norm_args,     \
        __VA_ARGS__))

/* torch.nn.LocalResponseNorm(int size, float alpha=0.0001, float beta=0.75, float k=1.0) */
typedef struct cfx_nn_local_response_norm_args { cfx_var alpha, beta, k; }
        cfx_nn_local_response_norm_args;
static inline cfx_module *cfx_nn_local_response_norm_at(cfx_at at, cfx_var size,
        cfx_nn_local_response_norm_args o)
{
    const cfx_var args[] = {size, o.alpha, o.beta, o.k};
    return cfx_nn_make_at(at, CFX_NN_LocalResponseNorm, args, 4);
}
#define cfx_nn_local_response_norm(s, size, ...)                                                   \
    cfx_nn_local_response_norm_at(CFX_HERE(s), cfx_v(size),                                        \
        CFX_OPTIONS(cfx_nn_local_response_norm_args, __VA_ARGS__))

/* torch.nn.MaxPool1d(int[] kernel_size, int[]? stride=None, int[] padding=0, int[] dilation=1,
 *     bool return_indices=False, bool ceil_mode=False) */
typedef struct cfx_nn_max_pool1d_args { cfx_var stride, padding, dilation, return_indices,
        ceil_mode; } cfx_nn_max_pool1d_args;
static inline cfx_module *cfx_nn_max_pool1d_at(cfx_at at, cfx_var kernel_size,
        cfx_nn_max_pool1d_args o)
{
    const cfx_var args[] = {kernel_size, o.stride, o.padding, o.dilation, o.return_indices,
        o.ceil_mode};
    return cfx_nn_make_at(at, CFX_NN_MaxPool1d, args, 6);
}
#define cfx_nn_max_pool1d(s, kernel_size, ...)                                                     \
    cfx_nn_max_pool1d_at(CFX_HERE(s), cfx_v(kernel_size), CFX_OPTIONS(cfx_nn_max_pool1d_args,      \
        __VA_ARGS__))

/* torch.nn.MaxPool2d(int[] kernel_size, int[]? stride=None, int[] padding=0, int[] dilation=1,
 *     bool return_indices=False, bool ceil_mode=False) */
typedef struct cfx_nn_max_pool2d_args { cfx_var stride, padding, dilation, return_indices,
        ceil_mode; } cfx_nn_max_pool2d_args;
static inline cfx_module *cfx_nn_max_pool2d_at(cfx_at at, cfx_var kernel_size,
        cfx_nn_max_pool2d_args o)
{
    const cfx_var args[] = {kernel_size, o.stride, o.padding, o.dilation, o.return_indices,
        o.ceil_mode};
    return cfx_nn_make_at(at, CFX_NN_MaxPool2d, args, 6);
}
#define cfx_nn_max_pool2d(s, kernel_size, ...)                                                     \
    cfx_nn_max_pool2d_at(CFX_HERE(s), cfx_v(kernel_size), CFX_OPTIONS(cfx_nn_max_pool2d_args,      \
        __VA_ARGS__))

/* torch.nn.MaxPool3d(int[] kernel_size, int[]? stride=None, int[] padding=0, int[] dilation=1,
 *     bool return_indices=False, bool ceil_mode=False) */
typedef struct cfx_nn_max_pool3d_args { cfx_var stride, padding, dilation, return_indices,
        ceil_mode; } cfx_nn_max_pool3d_args;
static inline cfx_module *cfx_nn_max_pool3d_at(cfx_at at, cfx_var kernel_size,
        cfx_nn_max_pool3d_args o)
{
    const cfx_var args[] = {kernel_size, o.stride, o.padding, o.dilation, o.return_indices,
        o.ceil_mode};
    return cfx_nn_make_at(at, CFX_NN_MaxPool3d, args, 6);
}
#define cfx_nn_max_pool3d(s, kernel_size, ...)                                                     \
    cfx_nn_max_pool3d_at(CFX_HERE(s), cfx_v(kernel_size), CFX_OPTIONS(cfx_nn_max_pool3d_args,      \
        __VA_ARGS__))

/* torch.nn.AvgPool1d(int[1] kernel_size, int[1]? stride=None, int[1] padding=0, bool
 *     ceil_mode=False, bool count_include_pad=True) */
typedef struct cfx_nn_avg_pool1d_args { cfx_var stride, padding, ceil_mode, count_include_pad; }
        cfx_nn_avg_pool1d_args;
static inline cfx_module *cfx_nn_avg_pool1d_at(cfx_at at, cfx_var kernel_size,
        cfx_nn_avg_pool1d_args o)
{
    const cfx_var args[] = {kernel_size, o.stride, o.padding, o.ceil_mode, o.count_include_pad};
    return cfx_nn_make_at(at, CFX_NN_AvgPool1d, args, 5);
}
#define cfx_nn_avg_pool1d(s, kernel_size, ...)                                                     \
    cfx_nn_avg_pool1d_at(CFX_HERE(s), cfx_v(kernel_size), CFX_OPTIONS(cfx_nn_avg_pool1d_args,      \
        __VA_ARGS__))

/* torch.nn.AvgPool2d(int[] kernel_size, int[]? stride=None, int[] padding=0, bool
 *     ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) */
typedef struct cfx_nn_avg_pool2d_args { cfx_var stride, padding, ceil_mode, count_include_pad,
        divisor_override; } cfx_nn_avg_pool2d_args;
static inline cfx_module *cfx_nn_avg_pool2d_at(cfx_at at, cfx_var kernel_size,
        cfx_nn_avg_pool2d_args o)
{
    const cfx_var args[] = {kernel_size, o.stride, o.padding, o.ceil_mode, o.count_include_pad,
        o.divisor_override};
    return cfx_nn_make_at(at, CFX_NN_AvgPool2d, args, 6);
}
#define cfx_nn_avg_pool2d(s, kernel_size, ...)                                                     \
    cfx_nn_avg_pool2d_at(CFX_HERE(s), cfx_v(kernel_size), CFX_OPTIONS(cfx_nn_avg_pool2d_args,      \
        __VA_ARGS__))

/* torch.nn.AvgPool3d(int[] kernel_size, int[]? stride=None, int[] padding=0, bool
 *     ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) */
typedef struct cfx_nn_avg_pool3d_args { cfx_var stride, padding, ceil_mode, count_include_pad,
        divisor_override; } cfx_nn_avg_pool3d_args;
static inline cfx_module *cfx_nn_avg_pool3d_at(cfx_at at, cfx_var kernel_size,
        cfx_nn_avg_pool3d_args o)
{
    const cfx_var args[] = {kernel_size, o.stride, o.padding, o.ceil_mode, o.count_include_pad,
        o.divisor_override};
    return cfx_nn_make_at(at, CFX_NN_AvgPool3d, args, 6);
}
#define cfx_nn_avg_pool3d(s, kernel_size, ...)                                                     \
    cfx_nn_avg_pool3d_at(CFX_HERE(s), cfx_v(kernel_size), CFX_OPTIONS(cfx_nn_avg_pool3d_args,      \
        __VA_ARGS__))

/* torch.nn.LPPool2d(float norm_type, int[] kernel_size, int[]? stride=None, bool
 *     ceil_mode=False) */
typedef struct cfx_nn_lp_pool2d_args { cfx_var stride, ceil_mode; } cfx_nn_lp_pool2d_args;
static inline cfx_module *cfx_nn_lp_pool2d_at(cfx_at at, cfx_var norm_type, cfx_var kernel_size,
        cfx_nn_lp_pool2d_args o)
{
    const cfx_var args[] = {norm_type, kernel_size, o.stride, o.ceil_mode};
    return cfx_nn_make_at(at, CFX_NN_LPPool2d, args, 4);
}
#define cfx_nn_lp_pool2d(s, norm_type, kernel_size, ...)                                           \
    cfx_nn_lp_pool2d_at(CFX_HERE(s), cfx_v(norm_type), cfx_v(kernel_size),                         \
        CFX_OPTIONS(cfx_nn_lp_pool2d_args, __VA_ARGS__))

/* torch.nn.AdaptiveAvgPool1d(int?[]? output_size) */
static inline cfx_module *cfx_nn_adaptive_avg_pool1d_at(cfx_at at, cfx_var output_size)
{
    const cfx_var args[] = {output_size};
    return cfx_nn_make_at(at, CFX_NN_AdaptiveAvgPool1d, args, 1);
}
#define cfx_nn_adaptive_avg_pool1d(s, output_size)                                                 \
    cfx_nn_adaptive_avg_pool1d_at(CFX_HERE(s), cfx_v(output_size))

/* torch.nn.AdaptiveAvgPool2d(int?[]? output_size) */
static inline cfx_module *cfx_nn_adaptive_avg_pool2d_at(cfx_at at, cfx_var output_size)
{
    const cfx_var args[] = {output_size};
    return cfx_nn_make_at(at, CFX_NN_AdaptiveAvgPool2d, args, 1);
}
#define cfx_nn_adaptive_avg_pool2d(s, output_size)                                                 \
    cfx_nn_adaptive_avg_pool2d_at(CFX_HERE(s), cfx_v(output_size))

/* torch.nn.AdaptiveAvgPool3d(int?[]? output_size) */
static inline cfx_module *cfx_nn_adaptive_avg_pool3d_at(cfx_at at, cfx_var output_size)
{
    const cfx_var args[] = {output_size};
    return cfx_nn_make_at(at, CFX_NN_AdaptiveAvgPool3d, args, 1);
}
#define cfx_nn_adaptive_avg_pool3d(s, output_size)                                                 \
    cfx_nn_adaptive_avg_pool3d_at(CFX_HERE(s), cfx_v(output_size))

/* torch.nn.AdaptiveMaxPool1d(int?[]? output_size, bool return_indices=False) */
typedef struct cfx_nn_adaptive_max_pool1d_args { cfx_var return_indices; }
        cfx_nn_adaptive_max_pool1d_args;
static inline cfx_module *cfx_nn_adaptive_max_pool1d_at(cfx_at at, cfx_var output_size,
        cfx_nn_adaptive_max_pool1d_args o)
{
    const cfx_var args[] = {output_size, o.return_indices};
    return cfx_nn_make_at(at, CFX_NN_AdaptiveMaxPool1d, args, 2);
}
#define cfx_nn_adaptive_max_pool1d(s, output_size, ...)                                            \
    cfx_nn_adaptive_max_pool1d_at(CFX_HERE(s), cfx_v(output_size),                                 \
        CFX_OPTIONS(cfx_nn_adaptive_max_pool1d_args, __VA_ARGS__))

/* torch.nn.AdaptiveMaxPool2d(int?[]? output_size, bool return_indices=False) */
typedef struct cfx_nn_adaptive_max_pool2d_args { cfx_var return_indices; }
        cfx_nn_adaptive_max_pool2d_args;
static inline cfx_module *cfx_nn_adaptive_max_pool2d_at(cfx_at at, cfx_var output_size,
        cfx_nn_adaptive_max_pool2d_args o)
{
    const cfx_var args[] = {output_size, o.return_indices};
    return cfx_nn_make_at(at, CFX_NN_AdaptiveMaxPool2d, args, 2);
}
#define cfx_nn_adaptive_max_pool2d(s, output_size, ...)                                            \
    cfx_nn_adaptive_max_pool2d_at(CFX_HERE(s), cfx_v(output_size),                                 \
        CFX_OPTIONS(cfx_nn_adaptive_max_pool2d_args, __VA_ARGS__))

/* torch.nn.FractionalMaxPool2d(int[2] kernel_size, int[2]? output_size=None, float[2]?
 *     output_ratio=None, bool return_indices=False, Tensor? _random_samples=None) */
typedef struct cfx_nn_fractional_max_pool2d_args { cfx_var output_size, output_ratio,
        return_indices, _random_samples; } cfx_nn_fractional_max_pool2d_args;
static inline cfx_module *cfx_nn_fractional_max_pool2d_at(cfx_at at, cfx_var kernel_size,
        cfx_nn_fractional_max_pool2d_args o)
{
    const cfx_var args[] = {kernel_size, o.output_size, o.output_ratio, o.return_indices,
        o._random_samples};
    return cfx_nn_make_at(at, CFX_NN_FractionalMaxPool2d, args, 5);
}
#define cfx_nn_fractional_max_pool2d(s, kernel_size, ...)                                          \
    cfx_nn_fractional_max_pool2d_at(CFX_HERE(s), cfx_v(kernel_size),                               \
        CFX_OPTIONS(cfx_nn_fractional_max_pool2d_args, __VA_ARGS__))

/* torch.nn.MaxUnpool1d(int[1] kernel_size, int[1]? stride=None, int[1] padding=0) */
typedef struct cfx_nn_max_unpool1d_args { cfx_var stride, padding; } cfx_nn_max_unpool1d_args;
static inline cfx_module *cfx_nn_max_unpool1d_at(cfx_at at, cfx_var kernel_size,
        cfx_nn_max_unpool1d_args o)
{
    const cfx_var args[] = {kernel_size, o.stride, o.padding};
    return cfx_nn_make_at(at, CFX_NN_MaxUnpool1d, args, 3);
}
#define cfx_nn_max_unpool1d(s, kernel_size, ...)                                                   \
    cfx_nn_max_unpool1d_at(CFX_HERE(s), cfx_v(kernel_size),                                        \
        CFX_OPTIONS(cfx_nn_max_unpool1d_args, __VA_ARGS__))

/* torch.nn.MaxUnpool2d(int[2] kernel_size, int[2]? stride=None, int[2] padding=0) */
typedef struct cfx_nn_max_unpool2d_args { cfx_var stride, padding; } cfx_nn_max_unpool2d_args;
static inline cfx_module *cfx_nn_max_unpool2d_at(cfx_at at, cfx_var kernel_size,
        cfx_nn_max_unpool2d_args o)
{
    const cfx_var args[] = {kernel_size, o.stride, o.padding};
    return cfx_nn_make_at(at, CFX_NN_MaxUnpool2d, args, 3);
}
#define cfx_nn_max_unpool2d(s, kernel_size, ...)                                                   \
    cfx_nn_max_unpool2d_at(CFX_HERE(s), cfx_v(kernel_size),                                        \
        CFX_OPTIONS(cfx_nn_max_unpool2d_args, __VA_ARGS__))

/* torch.nn.MaxUnpool3d(int[3] kernel_size, int[3]? stride=None, int[3] padding=0) */
typedef struct cfx_nn_max_unpool3d_args { cfx_var stride, padding; } cfx_nn_max_unpool3d_args;
static inline cfx_module *cfx_nn_max_unpool3d_at(cfx_at at, cfx_var kernel_size,
        cfx_nn_max_unpool3d_args o)
{
    const cfx_var args[] = {kernel_size, o.stride, o.padding};
    return cfx_nn_make_at(at, CFX_NN_MaxUnpool3d, args, 3);
}
#define cfx_nn_max_unpool3d(s, kernel_size, ...)                                                   \
    cfx_nn_max_unpool3d_at(CFX_HERE(s), cfx_v(kernel_size),                                        \
        CFX_OPTIONS(cfx_nn_max_unpool3d_args, __VA_ARGS__))

/* torch.nn.Dropout(float p=0.5, bool inplace=False) */
typedef struct cfx_nn_dropout_args { cfx_var p, inplace; } cfx_nn_dropout_args;
static inline cfx_module *cfx_nn_dropout_at(cfx_at at, cfx_nn_dropout_args o)
{
    const cfx_var args[] = {o.p, o.inplace};
    return cfx_nn_make_at(at, CFX_NN_Dropout, args, 2);
}
#define cfx_nn_dropout(s, ...)                                                                     \
    cfx_nn_dropout_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_dropout_args, __VA_ARGS__))

/* torch.nn.Dropout1d(float p=0.5, bool inplace=False) */
typedef struct cfx_nn_dropout1d_args { cfx_var p, inplace; } cfx_nn_dropout1d_args;
static inline cfx_module *cfx_nn_dropout1d_at(cfx_at at, cfx_nn_dropout1d_args o)
{
    const cfx_var args[] = {o.p, o.inplace};
    return cfx_nn_make_at(at, CFX_NN_Dropout1d, args, 2);
}
#define cfx_nn_dropout1d(s, ...)                                                                   \
    cfx_nn_dropout1d_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_dropout1d_args, __VA_ARGS__))

/* torch.nn.Dropout2d(float p=0.5, bool inplace=False) */
typedef struct cfx_nn_dropout2d_args { cfx_var p, inplace; } cfx_nn_dropout2d_args;
static inline cfx_module *cfx_nn_dropout2d_at(cfx_at at, cfx_nn_dropout2d_args o)
{
    const cfx_var args[] = {o.p, o.inplace};
    return cfx_nn_make_at(at, CFX_NN_Dropout2d, args, 2);
}
#define cfx_nn_dropout2d(s, ...)                                                                   \
    cfx_nn_dropout2d_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_dropout2d_args, __VA_ARGS__))

/* torch.nn.Dropout3d(float p=0.5, bool inplace=False) */
typedef struct cfx_nn_dropout3d_args { cfx_var p, inplace; } cfx_nn_dropout3d_args;
static inline cfx_module *cfx_nn_dropout3d_at(cfx_at at, cfx_nn_dropout3d_args o)
{
    const cfx_var args[] = {o.p, o.inplace};
    return cfx_nn_make_at(at, CFX_NN_Dropout3d, args, 2);
}
#define cfx_nn_dropout3d(s, ...)                                                                   \
    cfx_nn_dropout3d_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_dropout3d_args, __VA_ARGS__))

/* torch.nn.AlphaDropout(float p=0.5, bool inplace=False) */
typedef struct cfx_nn_alpha_dropout_args { cfx_var p, inplace; } cfx_nn_alpha_dropout_args;
static inline cfx_module *cfx_nn_alpha_dropout_at(cfx_at at, cfx_nn_alpha_dropout_args o)
{
    const cfx_var args[] = {o.p, o.inplace};
    return cfx_nn_make_at(at, CFX_NN_AlphaDropout, args, 2);
}
#define cfx_nn_alpha_dropout(s, ...)                                                               \
    cfx_nn_alpha_dropout_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_alpha_dropout_args, __VA_ARGS__))

/* torch.nn.FeatureAlphaDropout(float p=0.5, bool inplace=False) */
typedef struct cfx_nn_feature_alpha_dropout_args { cfx_var p, inplace; }
        cfx_nn_feature_alpha_dropout_args;
static inline cfx_module *cfx_nn_feature_alpha_dropout_at(cfx_at at,
        cfx_nn_feature_alpha_dropout_args o)
{
    const cfx_var args[] = {o.p, o.inplace};
    return cfx_nn_make_at(at, CFX_NN_FeatureAlphaDropout, args, 2);
}
#define cfx_nn_feature_alpha_dropout(s, ...)                                                       \
    cfx_nn_feature_alpha_dropout_at(CFX_HERE(s),                                                   \
        CFX_OPTIONS(cfx_nn_feature_alpha_dropout_args, __VA_ARGS__))

/* torch.nn.ReLU(bool inplace=False) */
typedef struct cfx_nn_relu_args { cfx_var inplace; } cfx_nn_relu_args;
static inline cfx_module *cfx_nn_relu_at(cfx_at at, cfx_nn_relu_args o)
{
    const cfx_var args[] = {o.inplace};
    return cfx_nn_make_at(at, CFX_NN_ReLU, args, 1);
}
#define cfx_nn_relu(s, ...) cfx_nn_relu_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_relu_args, __VA_ARGS__))

/* torch.nn.LeakyReLU(float negative_slope=0.01, bool inplace=False) */
typedef struct cfx_nn_leaky_relu_args { cfx_var negative_slope, inplace; } cfx_nn_leaky_relu_args;
static inline cfx_module *cfx_nn_leaky_relu_at(cfx_at at, cfx_nn_leaky_relu_args o)
{
    const cfx_var args[] = {o.negative_slope, o.inplace};
    return cfx_nn_make_at(at, CFX_NN_LeakyReLU, args, 2);
}
#define cfx_nn_leaky_relu(s, ...)                                                                  \
    cfx_nn_leaky_relu_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_leaky_relu_args, __VA_ARGS__))

/* torch.nn.RReLU(float lower=0.125, float upper=0.3333333333333333, bool inplace=False) */
typedef struct cfx_nn_rrelu_args { cfx_var lower, upper, inplace; } cfx_nn_rrelu_args;
static inline cfx_module *cfx_nn_rrelu_at(cfx_at at, cfx_nn_rrelu_args o)
{
    const cfx_var args[] = {o.lower, o.upper, o.inplace};
    return cfx_nn_make_at(at, CFX_NN_RReLU, args, 3);
}
#define cfx_nn_rrelu(s, ...)                                                                       \
    cfx_nn_rrelu_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_rrelu_args, __VA_ARGS__))

/* torch.nn.ELU(float alpha=1.0, bool inplace=False) */
typedef struct cfx_nn_elu_args { cfx_var alpha, inplace; } cfx_nn_elu_args;
static inline cfx_module *cfx_nn_elu_at(cfx_at at, cfx_nn_elu_args o)
{
    const cfx_var args[] = {o.alpha, o.inplace};
    return cfx_nn_make_at(at, CFX_NN_ELU, args, 2);
}
#define cfx_nn_elu(s, ...) cfx_nn_elu_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_elu_args, __VA_ARGS__))

/* torch.nn.CELU(float alpha=1.0, bool inplace=False) */
typedef struct cfx_nn_celu_args { cfx_var alpha, inplace; } cfx_nn_celu_args;
static inline cfx_module *cfx_nn_celu_at(cfx_at at, cfx_nn_celu_args o)
{
    const cfx_var args[] = {o.alpha, o.inplace};
    return cfx_nn_make_at(at, CFX_NN_CELU, args, 2);
}
#define cfx_nn_celu(s, ...) cfx_nn_celu_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_celu_args, __VA_ARGS__))

/* torch.nn.SELU(bool inplace=False) */
typedef struct cfx_nn_selu_args { cfx_var inplace; } cfx_nn_selu_args;
static inline cfx_module *cfx_nn_selu_at(cfx_at at, cfx_nn_selu_args o)
{
    const cfx_var args[] = {o.inplace};
    return cfx_nn_make_at(at, CFX_NN_SELU, args, 1);
}
#define cfx_nn_selu(s, ...) cfx_nn_selu_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_selu_args, __VA_ARGS__))

/* torch.nn.GELU(str approximate='none') */
typedef struct cfx_nn_gelu_args { cfx_var approximate; } cfx_nn_gelu_args;
static inline cfx_module *cfx_nn_gelu_at(cfx_at at, cfx_nn_gelu_args o)
{
    const cfx_var args[] = {o.approximate};
    return cfx_nn_make_at(at, CFX_NN_GELU, args, 1);
}
#define cfx_nn_gelu(s, ...) cfx_nn_gelu_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_gelu_args, __VA_ARGS__))

/* torch.nn.GLU(int dim=-1) */
typedef struct cfx_nn_glu_args { cfx_var dim; } cfx_nn_glu_args;
static inline cfx_module *cfx_nn_glu_at(cfx_at at, cfx_nn_glu_args o)
{
    const cfx_var args[] = {o.dim};
    return cfx_nn_make_at(at, CFX_NN_GLU, args, 1);
}
#define cfx_nn_glu(s, ...) cfx_nn_glu_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_glu_args, __VA_ARGS__))

/* torch.nn.SiLU(bool inplace=False) */
typedef struct cfx_nn_silu_args { cfx_var inplace; } cfx_nn_silu_args;
static inline cfx_module *cfx_nn_silu_at(cfx_at at, cfx_nn_silu_args o)
{
    const cfx_var args[] = {o.inplace};
    return cfx_nn_make_at(at, CFX_NN_SiLU, args, 1);
}
#define cfx_nn_silu(s, ...) cfx_nn_silu_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_silu_args, __VA_ARGS__))

/* torch.nn.Mish(bool inplace=False) */
typedef struct cfx_nn_mish_args { cfx_var inplace; } cfx_nn_mish_args;
static inline cfx_module *cfx_nn_mish_at(cfx_at at, cfx_nn_mish_args o)
{
    const cfx_var args[] = {o.inplace};
    return cfx_nn_make_at(at, CFX_NN_Mish, args, 1);
}
#define cfx_nn_mish(s, ...) cfx_nn_mish_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_mish_args, __VA_ARGS__))

/* torch.nn.Sigmoid() */
static inline cfx_module *cfx_nn_sigmoid_at(cfx_at at)
{
    return cfx_nn_make_at(at, CFX_NN_Sigmoid, NULL, 0);
}
#define cfx_nn_sigmoid(s) cfx_nn_sigmoid_at(CFX_HERE(s))

/* torch.nn.LogSigmoid() */
static inline cfx_module *cfx_nn_log_sigmoid_at(cfx_at at)
{
    return cfx_nn_make_at(at, CFX_NN_LogSigmoid, NULL, 0);
}
#define cfx_nn_log_sigmoid(s) cfx_nn_log_sigmoid_at(CFX_HERE(s))

/* torch.nn.Hardsigmoid(bool inplace=False) */
typedef struct cfx_nn_hardsigmoid_args { cfx_var inplace; } cfx_nn_hardsigmoid_args;
static inline cfx_module *cfx_nn_hardsigmoid_at(cfx_at at, cfx_nn_hardsigmoid_args o)
{
    const cfx_var args[] = {o.inplace};
    return cfx_nn_make_at(at, CFX_NN_Hardsigmoid, args, 1);
}
#define cfx_nn_hardsigmoid(s, ...)                                                                 \
    cfx_nn_hardsigmoid_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_hardsigmoid_args, __VA_ARGS__))

/* torch.nn.Hardswish(bool inplace=False) */
typedef struct cfx_nn_hardswish_args { cfx_var inplace; } cfx_nn_hardswish_args;
static inline cfx_module *cfx_nn_hardswish_at(cfx_at at, cfx_nn_hardswish_args o)
{
    const cfx_var args[] = {o.inplace};
    return cfx_nn_make_at(at, CFX_NN_Hardswish, args, 1);
}
#define cfx_nn_hardswish(s, ...)                                                                   \
    cfx_nn_hardswish_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_hardswish_args, __VA_ARGS__))

/* torch.nn.Tanh() */
static inline cfx_module *cfx_nn_tanh_at(cfx_at at)
{
    return cfx_nn_make_at(at, CFX_NN_Tanh, NULL, 0);
}
#define cfx_nn_tanh(s) cfx_nn_tanh_at(CFX_HERE(s))

/* torch.nn.Tanhshrink() */
static inline cfx_module *cfx_nn_tanhshrink_at(cfx_at at)
{
    return cfx_nn_make_at(at, CFX_NN_Tanhshrink, NULL, 0);
}
#define cfx_nn_tanhshrink(s) cfx_nn_tanhshrink_at(CFX_HERE(s))

/* torch.nn.Hardshrink(float lambd=0.5) */
typedef struct cfx_nn_hardshrink_args { cfx_var lambd; } cfx_nn_hardshrink_args;
static inline cfx_module *cfx_nn_hardshrink_at(cfx_at at, cfx_nn_hardshrink_args o)
{
    const cfx_var args[] = {o.lambd};
    return cfx_nn_make_at(at, CFX_NN_Hardshrink, args, 1);
}
#define cfx_nn_hardshrink(s, ...)                                                                  \
    cfx_nn_hardshrink_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_hardshrink_args, __VA_ARGS__))

/* torch.nn.Softshrink(float lambd=0.5) */
typedef struct cfx_nn_softshrink_args { cfx_var lambd; } cfx_nn_softshrink_args;
static inline cfx_module *cfx_nn_softshrink_at(cfx_at at, cfx_nn_softshrink_args o)
{
    const cfx_var args[] = {o.lambd};
    return cfx_nn_make_at(at, CFX_NN_Softshrink, args, 1);
}
#define cfx_nn_softshrink(s, ...)                                                                  \
    cfx_nn_softshrink_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_softshrink_args, __VA_ARGS__))

/* torch.nn.Softplus(float beta=1.0, float threshold=20.0) */
typedef struct cfx_nn_softplus_args { cfx_var beta, threshold; } cfx_nn_softplus_args;
static inline cfx_module *cfx_nn_softplus_at(cfx_at at, cfx_nn_softplus_args o)
{
    const cfx_var args[] = {o.beta, o.threshold};
    return cfx_nn_make_at(at, CFX_NN_Softplus, args, 2);
}
#define cfx_nn_softplus(s, ...)                                                                    \
    cfx_nn_softplus_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_softplus_args, __VA_ARGS__))

/* torch.nn.Softsign() */
static inline cfx_module *cfx_nn_softsign_at(cfx_at at)
{
    return cfx_nn_make_at(at, CFX_NN_Softsign, NULL, 0);
}
#define cfx_nn_softsign(s) cfx_nn_softsign_at(CFX_HERE(s))

/* torch.nn.Threshold(float threshold, float value, bool inplace=False) */
typedef struct cfx_nn_threshold_args { cfx_var inplace; } cfx_nn_threshold_args;
static inline cfx_module *cfx_nn_threshold_at(cfx_at at, cfx_var threshold, cfx_var value,
        cfx_nn_threshold_args o)
{
    const cfx_var args[] = {threshold, value, o.inplace};
    return cfx_nn_make_at(at, CFX_NN_Threshold, args, 3);
}
#define cfx_nn_threshold(s, threshold, value, ...)                                                 \
    cfx_nn_threshold_at(CFX_HERE(s), cfx_v(threshold), cfx_v(value),                               \
        CFX_OPTIONS(cfx_nn_threshold_args, __VA_ARGS__))

/* torch.nn.Softmax(int? dim=None) */
typedef struct cfx_nn_softmax_args { cfx_var dim; } cfx_nn_softmax_args;
static inline cfx_module *cfx_nn_softmax_at(cfx_at at, cfx_nn_softmax_args o)
{
    const cfx_var args[] = {o.dim};
    return cfx_nn_make_at(at, CFX_NN_Softmax, args, 1);
}
#define cfx_nn_softmax(s, ...)                                                                     \
    cfx_nn_softmax_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_softmax_args, __VA_ARGS__))

/* torch.nn.Softmin(int? dim=None) */
typedef struct cfx_nn_softmin_args { cfx_var dim; } cfx_nn_softmin_args;
static inline cfx_module *cfx_nn_softmin_at(cfx_at at, cfx_nn_softmin_args o)
{
    const cfx_var args[] = {o.dim};
    return cfx_nn_make_at(at, CFX_NN_Softmin, args, 1);
}
#define cfx_nn_softmin(s, ...)                                                                     \
    cfx_nn_softmin_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_softmin_args, __VA_ARGS__))

/* torch.nn.LogSoftmax(int? dim=None) */
typedef struct cfx_nn_log_softmax_args { cfx_var dim; } cfx_nn_log_softmax_args;
static inline cfx_module *cfx_nn_log_softmax_at(cfx_at at, cfx_nn_log_softmax_args o)
{
    const cfx_var args[] = {o.dim};
    return cfx_nn_make_at(at, CFX_NN_LogSoftmax, args, 1);
}
#define cfx_nn_log_softmax(s, ...)                                                                 \
    cfx_nn_log_softmax_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_log_softmax_args, __VA_ARGS__))

/* torch.nn.Softmax2d() */
static inline cfx_module *cfx_nn_softmax2d_at(cfx_at at)
{
    return cfx_nn_make_at(at, CFX_NN_Softmax2d, NULL, 0);
}
#define cfx_nn_softmax2d(s) cfx_nn_softmax2d_at(CFX_HERE(s))

/* torch.nn.ReLU6(bool inplace=False) */
typedef struct cfx_nn_relu6_args { cfx_var inplace; } cfx_nn_relu6_args;
static inline cfx_module *cfx_nn_relu6_at(cfx_at at, cfx_nn_relu6_args o)
{
    const cfx_var args[] = {o.inplace};
    return cfx_nn_make_at(at, CFX_NN_ReLU6, args, 1);
}
#define cfx_nn_relu6(s, ...)                                                                       \
    cfx_nn_relu6_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_relu6_args, __VA_ARGS__))

/* torch.nn.Hardtanh(float min_val=-1.0, float max_val=1.0, bool inplace=False, float?
 *     min_value=None, float? max_value=None) */
typedef struct cfx_nn_hardtanh_args { cfx_var min_val, max_val, inplace, min_value, max_value; }
        cfx_nn_hardtanh_args;
static inline cfx_module *cfx_nn_hardtanh_at(cfx_at at, cfx_nn_hardtanh_args o)
{
    const cfx_var args[] = {o.min_val, o.max_val, o.inplace, o.min_value, o.max_value};
    return cfx_nn_make_at(at, CFX_NN_Hardtanh, args, 5);
}
#define cfx_nn_hardtanh(s, ...)                                                                    \
    cfx_nn_hardtanh_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_hardtanh_args, __VA_ARGS__))

/* torch.nn.PReLU(int num_parameters=1, float init=0.25, *, ScalarType? dtype=None) */
typedef struct cfx_nn_prelu_args { cfx_var num_parameters, init, dtype; } cfx_nn_prelu_args;
static inline cfx_module *cfx_nn_prelu_at(cfx_at at, cfx_nn_prelu_args o)
{
    const cfx_var args[] = {o.num_parameters, o.init, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_PReLU, args, 3);
}
#define cfx_nn_prelu(s, ...)                                                                       \
    cfx_nn_prelu_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_prelu_args, __VA_ARGS__))

/* torch.nn.Flatten(int start_dim=1, int end_dim=-1) */
typedef struct cfx_nn_flatten_args { cfx_var start_dim, end_dim; } cfx_nn_flatten_args;
static inline cfx_module *cfx_nn_flatten_at(cfx_at at, cfx_nn_flatten_args o)
{
    const cfx_var args[] = {o.start_dim, o.end_dim};
    return cfx_nn_make_at(at, CFX_NN_Flatten, args, 2);
}
#define cfx_nn_flatten(s, ...)                                                                     \
    cfx_nn_flatten_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_flatten_args, __VA_ARGS__))

/* torch.nn.Unflatten(int dim, int[] unflattened_size) */
static inline cfx_module *cfx_nn_unflatten_at(cfx_at at, cfx_var dim, cfx_var unflattened_size)
{
    const cfx_var args[] = {dim, unflattened_size};
    return cfx_nn_make_at(at, CFX_NN_Unflatten, args, 2);
}
#define cfx_nn_unflatten(s, dim, unflattened_size)                                                 \
    cfx_nn_unflatten_at(CFX_HERE(s), cfx_v(dim), cfx_v(unflattened_size))

/* torch.nn.ConstantPad1d(int[2] padding, float value) */
static inline cfx_module *cfx_nn_constant_pad1d_at(cfx_at at, cfx_var padding, cfx_var value)
{
    const cfx_var args[] = {padding, value};
    return cfx_nn_make_at(at, CFX_NN_ConstantPad1d, args, 2);
}
#define cfx_nn_constant_pad1d(s, padding, value)                                                   \
    cfx_nn_constant_pad1d_at(CFX_HERE(s), cfx_v(padding), cfx_v(value))

/* torch.nn.ConstantPad2d(int[4] padding, float value) */
static inline cfx_module *cfx_nn_constant_pad2d_at(cfx_at at, cfx_var padding, cfx_var value)
{
    const cfx_var args[] = {padding, value};
    return cfx_nn_make_at(at, CFX_NN_ConstantPad2d, args, 2);
}
#define cfx_nn_constant_pad2d(s, padding, value)                                                   \
    cfx_nn_constant_pad2d_at(CFX_HERE(s), cfx_v(padding), cfx_v(value))

/* torch.nn.ConstantPad3d(int[6] padding, float value) */
static inline cfx_module *cfx_nn_constant_pad3d_at(cfx_at at, cfx_var padding, cfx_var value)
{
    const cfx_var args[] = {padding, value};
    return cfx_nn_make_at(at, CFX_NN_ConstantPad3d, args, 2);
}
#define cfx_nn_constant_pad3d(s, padding, value)                                                   \
    cfx_nn_constant_pad3d_at(CFX_HERE(s), cfx_v(padding), cfx_v(value))

/* torch.nn.ZeroPad1d(int[2] padding) */
static inline cfx_module *cfx_nn_zero_pad1d_at(cfx_at at, cfx_var padding)
{
    const cfx_var args[] = {padding};
    return cfx_nn_make_at(at, CFX_NN_ZeroPad1d, args, 1);
}
#define cfx_nn_zero_pad1d(s, padding) cfx_nn_zero_pad1d_at(CFX_HERE(s), cfx_v(padding))

/* torch.nn.ZeroPad2d(int[4] padding) */
static inline cfx_module *cfx_nn_zero_pad2d_at(cfx_at at, cfx_var padding)
{
    const cfx_var args[] = {padding};
    return cfx_nn_make_at(at, CFX_NN_ZeroPad2d, args, 1);
}
#define cfx_nn_zero_pad2d(s, padding) cfx_nn_zero_pad2d_at(CFX_HERE(s), cfx_v(padding))

/* torch.nn.ZeroPad3d(int[6] padding) */
static inline cfx_module *cfx_nn_zero_pad3d_at(cfx_at at, cfx_var padding)
{
    const cfx_var args[] = {padding};
    return cfx_nn_make_at(at, CFX_NN_ZeroPad3d, args, 1);
}
#define cfx_nn_zero_pad3d(s, padding) cfx_nn_zero_pad3d_at(CFX_HERE(s), cfx_v(padding))

/* torch.nn.ReflectionPad1d(int[2] padding) */
static inline cfx_module *cfx_nn_reflection_pad1d_at(cfx_at at, cfx_var padding)
{
    const cfx_var args[] = {padding};
    return cfx_nn_make_at(at, CFX_NN_ReflectionPad1d, args, 1);
}
#define cfx_nn_reflection_pad1d(s, padding) cfx_nn_reflection_pad1d_at(CFX_HERE(s), cfx_v(padding))

/* torch.nn.ReflectionPad2d(int[4] padding) */
static inline cfx_module *cfx_nn_reflection_pad2d_at(cfx_at at, cfx_var padding)
{
    const cfx_var args[] = {padding};
    return cfx_nn_make_at(at, CFX_NN_ReflectionPad2d, args, 1);
}
#define cfx_nn_reflection_pad2d(s, padding) cfx_nn_reflection_pad2d_at(CFX_HERE(s), cfx_v(padding))

/* torch.nn.ReflectionPad3d(int[6] padding) */
static inline cfx_module *cfx_nn_reflection_pad3d_at(cfx_at at, cfx_var padding)
{
    const cfx_var args[] = {padding};
    return cfx_nn_make_at(at, CFX_NN_ReflectionPad3d, args, 1);
}
#define cfx_nn_reflection_pad3d(s, padding) cfx_nn_reflection_pad3d_at(CFX_HERE(s), cfx_v(padding))

/* torch.nn.ReplicationPad1d(int[2] padding) */
static inline cfx_module *cfx_nn_replication_pad1d_at(cfx_at at, cfx_var padding)
{
    const cfx_var args[] = {padding};
    return cfx_nn_make_at(at, CFX_NN_ReplicationPad1d, args, 1);
}
#define cfx_nn_replication_pad1d(s, padding)                                                       \
    cfx_nn_replication_pad1d_at(CFX_HERE(s), cfx_v(padding))

/* torch.nn.ReplicationPad2d(int[4] padding) */
static inline cfx_module *cfx_nn_replication_pad2d_at(cfx_at at, cfx_var padding)
{
    const cfx_var args[] = {padding};
    return cfx_nn_make_at(at, CFX_NN_ReplicationPad2d, args, 1);
}
#define cfx_nn_replication_pad2d(s, padding)                                                       \
    cfx_nn_replication_pad2d_at(CFX_HERE(s), cfx_v(padding))

/* torch.nn.ReplicationPad3d(int[6] padding) */
static inline cfx_module *cfx_nn_replication_pad3d_at(cfx_at at, cfx_var padding)
{
    const cfx_var args[] = {padding};
    return cfx_nn_make_at(at, CFX_NN_ReplicationPad3d, args, 1);
}
#define cfx_nn_replication_pad3d(s, padding)                                                       \
    cfx_nn_replication_pad3d_at(CFX_HERE(s), cfx_v(padding))

/* torch.nn.CircularPad1d(int[2] padding) */
static inline cfx_module *cfx_nn_circular_pad1d_at(cfx_at at, cfx_var padding)
{
    const cfx_var args[] = {padding};
    return cfx_nn_make_at(at, CFX_NN_CircularPad1d, args, 1);
}
#define cfx_nn_circular_pad1d(s, padding) cfx_nn_circular_pad1d_at(CFX_HERE(s), cfx_v(padding))

/* torch.nn.CircularPad2d(int[4] padding) */
static inline cfx_module *cfx_nn_circular_pad2d_at(cfx_at at, cfx_var padding)
{
    const cfx_var args[] = {padding};
    return cfx_nn_make_at(at, CFX_NN_CircularPad2d, args, 1);
}
#define cfx_nn_circular_pad2d(s, padding) cfx_nn_circular_pad2d_at(CFX_HERE(s), cfx_v(padding))

/* torch.nn.CircularPad3d(int[6] padding) */
static inline cfx_module *cfx_nn_circular_pad3d_at(cfx_at at, cfx_var padding)
{
    const cfx_var args[] = {padding};
    return cfx_nn_make_at(at, CFX_NN_CircularPad3d, args, 1);
}
#define cfx_nn_circular_pad3d(s, padding) cfx_nn_circular_pad3d_at(CFX_HERE(s), cfx_v(padding))

/* torch.nn.Upsample(int[]? size=None, float[]? scale_factor=None, str mode='nearest', bool?
 *     align_corners=None, bool? recompute_scale_factor=None) */
typedef struct cfx_nn_upsample_args { cfx_var size, scale_factor, mode, align_corners,
        recompute_scale_factor; } cfx_nn_upsample_args;
static inline cfx_module *cfx_nn_upsample_at(cfx_at at, cfx_nn_upsample_args o)
{
    const cfx_var args[] = {o.size, o.scale_factor, o.mode, o.align_corners,
        o.recompute_scale_factor};
    return cfx_nn_make_at(at, CFX_NN_Upsample, args, 5);
}
#define cfx_nn_upsample(s, ...)                                                                    \
    cfx_nn_upsample_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_upsample_args, __VA_ARGS__))

/* torch.nn.UpsamplingNearest2d(int[]? size=None, float[]? scale_factor=None) */
typedef struct cfx_nn_upsampling_nearest2d_args { cfx_var size, scale_factor; }
        cfx_nn_upsampling_nearest2d_args;
static inline cfx_module *cfx_nn_upsampling_nearest2d_at(cfx_at at,
        cfx_nn_upsampling_nearest2d_args o)
{
    const cfx_var args[] = {o.size, o.scale_factor};
    return cfx_nn_make_at(at, CFX_NN_UpsamplingNearest2d, args, 2);
}
#define cfx_nn_upsampling_nearest2d(s, ...)                                                        \
    cfx_nn_upsampling_nearest2d_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_upsampling_nearest2d_args,      \
        __VA_ARGS__))

/* torch.nn.UpsamplingBilinear2d(int[]? size=None, float[]? scale_factor=None) */
typedef struct cfx_nn_upsampling_bilinear2d_args { cfx_var size, scale_factor; }
        cfx_nn_upsampling_bilinear2d_args;
static inline cfx_module *cfx_nn_upsampling_bilinear2d_at(cfx_at at,
        cfx_nn_upsampling_bilinear2d_args o)
{
    const cfx_var args[] = {o.size, o.scale_factor};
    return cfx_nn_make_at(at, CFX_NN_UpsamplingBilinear2d, args, 2);
}
#define cfx_nn_upsampling_bilinear2d(s, ...)                                                       \
    cfx_nn_upsampling_bilinear2d_at(CFX_HERE(s),                                                   \
        CFX_OPTIONS(cfx_nn_upsampling_bilinear2d_args, __VA_ARGS__))

/* torch.nn.PixelShuffle(int upscale_factor) */
static inline cfx_module *cfx_nn_pixel_shuffle_at(cfx_at at, cfx_var upscale_factor)
{
    const cfx_var args[] = {upscale_factor};
    return cfx_nn_make_at(at, CFX_NN_PixelShuffle, args, 1);
}
#define cfx_nn_pixel_shuffle(s, upscale_factor)                                                    \
    cfx_nn_pixel_shuffle_at(CFX_HERE(s), cfx_v(upscale_factor))

/* torch.nn.PixelUnshuffle(int downscale_factor) */
static inline cfx_module *cfx_nn_pixel_unshuffle_at(cfx_at at, cfx_var downscale_factor)
{
    const cfx_var args[] = {downscale_factor};
    return cfx_nn_make_at(at, CFX_NN_PixelUnshuffle, args, 1);
}
#define cfx_nn_pixel_unshuffle(s, downscale_factor)                                                \
    cfx_nn_pixel_unshuffle_at(CFX_HERE(s), cfx_v(downscale_factor))

/* torch.nn.ChannelShuffle(int groups) */
static inline cfx_module *cfx_nn_channel_shuffle_at(cfx_at at, cfx_var groups)
{
    const cfx_var args[] = {groups};
    return cfx_nn_make_at(at, CFX_NN_ChannelShuffle, args, 1);
}
#define cfx_nn_channel_shuffle(s, groups) cfx_nn_channel_shuffle_at(CFX_HERE(s), cfx_v(groups))

/* torch.nn.Fold(int[] output_size, int[] kernel_size, int[] dilation=1, int[] padding=0, int[]
 *     stride=1) */
typedef struct cfx_nn_fold_args { cfx_var dilation, padding, stride; } cfx_nn_fold_args;
static inline cfx_module *cfx_nn_fold_at(cfx_at at, cfx_var output_size, cfx_var kernel_size,
        cfx_nn_fold_args o)
{
    const cfx_var args[] = {output_size, kernel_size, o.dilation, o.padding, o.stride};
    return cfx_nn_make_at(at, CFX_NN_Fold, args, 5);
}
#define cfx_nn_fold(s, output_size, kernel_size, ...)                                              \
    cfx_nn_fold_at(CFX_HERE(s), cfx_v(output_size), cfx_v(kernel_size),                            \
        CFX_OPTIONS(cfx_nn_fold_args, __VA_ARGS__))

/* torch.nn.Unfold(int[] kernel_size, int[] dilation=1, int[] padding=0, int[] stride=1) */
typedef struct cfx_nn_unfold_args { cfx_var dilation, padding, stride; } cfx_nn_unfold_args;
static inline cfx_module *cfx_nn_unfold_at(cfx_at at, cfx_var kernel_size, cfx_nn_unfold_args o)
{
    const cfx_var args[] = {kernel_size, o.dilation, o.padding, o.stride};
    return cfx_nn_make_at(at, CFX_NN_Unfold, args, 4);
}
#define cfx_nn_unfold(s, kernel_size, ...)                                                         \
    cfx_nn_unfold_at(CFX_HERE(s), cfx_v(kernel_size), CFX_OPTIONS(cfx_nn_unfold_args,              \
        __VA_ARGS__))

/* torch.nn.CosineSimilarity(int dim=1, float eps=1e-08) */
typedef struct cfx_nn_cosine_similarity_args { cfx_var dim, eps; } cfx_nn_cosine_similarity_args;
static inline cfx_module *cfx_nn_cosine_similarity_at(cfx_at at, cfx_nn_cosine_similarity_args o)
{
    const cfx_var args[] = {o.dim, o.eps};
    return cfx_nn_make_at(at, CFX_NN_CosineSimilarity, args, 2);
}
#define cfx_nn_cosine_similarity(s, ...)                                                           \
    cfx_nn_cosine_similarity_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_cosine_similarity_args,            \
        __VA_ARGS__))

/* torch.nn.PairwiseDistance(float p=2.0, float eps=1e-06, bool keepdim=False) */
typedef struct cfx_nn_pairwise_distance_args { cfx_var p, eps, keepdim; }
        cfx_nn_pairwise_distance_args;
static inline cfx_module *cfx_nn_pairwise_distance_at(cfx_at at, cfx_nn_pairwise_distance_args o)
{
    const cfx_var args[] = {o.p, o.eps, o.keepdim};
    return cfx_nn_make_at(at, CFX_NN_PairwiseDistance, args, 3);
}
#define cfx_nn_pairwise_distance(s, ...)                                                           \
    cfx_nn_pairwise_distance_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_pairwise_distance_args,            \
        __VA_ARGS__))

/* torch.nn.RNN(int input_size, int hidden_size, int num_layers=1, str nonlinearity='tanh', bool
 *     bias=True, bool batch_first=False, float dropout=0.0, bool bidirectional=False, *,
 *     ScalarType? dtype=None) */
typedef struct cfx_nn_rnn_args { cfx_var num_layers, nonlinearity, bias, batch_first, dropout,
        bidirectional, dtype; } cfx_nn_rnn_args;
static inline cfx_module *cfx_nn_rnn_at(cfx_at at, cfx_var input_size, cfx_var hidden_size,
        cfx_nn_rnn_args o)
{
    const cfx_var args[] = {input_size, hidden_size, o.num_layers, o.nonlinearity, o.bias,
        o.batch_first, o.dropout, o.bidirectional, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_RNN, args, 9);
}
#define cfx_nn_rnn(s, input_size, hidden_size, ...)                                                \
    cfx_nn_rnn_at(CFX_HERE(s), cfx_v(input_size), cfx_v(hidden_size),                              \
        CFX_OPTIONS(cfx_nn_rnn_args, __VA_ARGS__))

/* torch.nn.LSTM(int input_size, int hidden_size, int num_layers=1, bool bias=True, bool
 *     batch_first=False, float dropout=0.0, bool bidirectional=False, int proj_size=0, *,
 *     ScalarType? dtype=None) */
typedef struct cfx_nn_lstm_args { cfx_var num_layers, bias, batch_first, dropout, bidirectional,
        proj_size, dtype; } cfx_nn_lstm_args;
static inline cfx_module *cfx_nn_lstm_at(cfx_at at, cfx_var input_size, cfx_var hidden_size,
        cfx_nn_lstm_args o)
{
    const cfx_var args[] = {input_size, hidden_size, o.num_layers, o.bias, o.batch_first,
        o.dropout, o.bidirectional, o.proj_size, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_LSTM, args, 9);
}
#define cfx_nn_lstm(s, input_size, hidden_size, ...)                                               \
    cfx_nn_lstm_at(CFX_HERE(s), cfx_v(input_size), cfx_v(hidden_size),                             \
        CFX_OPTIONS(cfx_nn_lstm_args, __VA_ARGS__))

/* torch.nn.GRU(int input_size, int hidden_size, int num_layers=1, bool bias=True, bool
 *     batch_first=False, float dropout=0.0, bool bidirectional=False, *, ScalarType? dtype=None) */
typedef struct cfx_nn_gru_args { cfx_var num_layers, bias, batch_first, dropout, bidirectional,
        dtype; } cfx_nn_gru_args;
static inline cfx_module *cfx_nn_gru_at(cfx_at at, cfx_var input_size, cfx_var hidden_size,
        cfx_nn_gru_args o)
{
    const cfx_var args[] = {input_size, hidden_size, o.num_layers, o.bias, o.batch_first,
        o.dropout, o.bidirectional, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_GRU, args, 8);
}
#define cfx_nn_gru(s, input_size, hidden_size, ...)                                                \
    cfx_nn_gru_at(CFX_HERE(s), cfx_v(input_size), cfx_v(hidden_size),                              \
        CFX_OPTIONS(cfx_nn_gru_args, __VA_ARGS__))

/* torch.nn.RNNCell(int input_size, int hidden_size, bool bias=True, str nonlinearity='tanh', *,
 *     ScalarType? dtype=None) */
typedef struct cfx_nn_rnn_cell_args { cfx_var bias, nonlinearity, dtype; } cfx_nn_rnn_cell_args;
static inline cfx_module *cfx_nn_rnn_cell_at(cfx_at at, cfx_var input_size, cfx_var hidden_size,
        cfx_nn_rnn_cell_args o)
{
    const cfx_var args[] = {input_size, hidden_size, o.bias, o.nonlinearity, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_RNNCell, args, 5);
}
#define cfx_nn_rnn_cell(s, input_size, hidden_size, ...)                                           \
    cfx_nn_rnn_cell_at(CFX_HERE(s), cfx_v(input_size), cfx_v(hidden_size),                         \
        CFX_OPTIONS(cfx_nn_rnn_cell_args, __VA_ARGS__))

/* torch.nn.LSTMCell(int input_size, int hidden_size, bool bias=True, *, ScalarType? dtype=None) */
typedef struct cfx_nn_lstm_cell_args { cfx_var bias, dtype; } cfx_nn_lstm_cell_args;
static inline cfx_module *cfx_nn_lstm_cell_at(cfx_at at, cfx_var input_size, cfx_var hidden_size,
        cfx_nn_lstm_cell_args o)
{
    const cfx_var args[] = {input_size, hidden_size, o.bias, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_LSTMCell, args, 4);
}
#define cfx_nn_lstm_cell(s, input_size, hidden_size, ...)                                          \
    cfx_nn_lstm_cell_at(CFX_HERE(s), cfx_v(input_size), cfx_v(hidden_size),                        \
        CFX_OPTIONS(cfx_nn_lstm_cell_args, __VA_ARGS__))

/* torch.nn.GRUCell(int input_size, int hidden_size, bool bias=True, *, ScalarType? dtype=None) */
typedef struct cfx_nn_gru_cell_args { cfx_var bias, dtype; } cfx_nn_gru_cell_args;
static inline cfx_module *cfx_nn_gru_cell_at(cfx_at at, cfx_var input_size, cfx_var hidden_size,
        cfx_nn_gru_cell_args o)
{
    const cfx_var args[] = {input_size, hidden_size, o.bias, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_GRUCell, args, 4);
}
#define cfx_nn_gru_cell(s, input_size, hidden_size, ...)                                           \
    cfx_nn_gru_cell_at(CFX_HERE(s), cfx_v(input_size), cfx_v(hidden_size),                         \
        CFX_OPTIONS(cfx_nn_gru_cell_args, __VA_ARGS__))

/* torch.nn.MultiheadAttention(int embed_dim, int num_heads, float dropout=0.0, bool bias=True,
 *     bool add_bias_kv=False, bool add_zero_attn=False, int? kdim=None, int? vdim=None, bool
 *     batch_first=False, *, ScalarType? dtype=None) */
typedef struct cfx_nn_multihead_attention_args { cfx_var dropout, bias, add_bias_kv, add_zero_attn,
        kdim, vdim, batch_first, dtype; } cfx_nn_multihead_attention_args;
static inline cfx_module *cfx_nn_multihead_attention_at(cfx_at at, cfx_var embed_dim, cfx_var
        num_heads, cfx_nn_multihead_attention_args o)
{
    const cfx_var args[] = {embed_dim, num_heads, o.dropout, o.bias, o.add_bias_kv,
        o.add_zero_attn, o.kdim, o.vdim, o.batch_first, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_MultiheadAttention, args, 10);
}
#define cfx_nn_multihead_attention(s, embed_dim, num_heads, ...)                                   \
    cfx_nn_multihead_attention_at(CFX_HERE(s), cfx_v(embed_dim), cfx_v(num_heads),                 \
        CFX_OPTIONS(cfx_nn_multihead_attention_args, __VA_ARGS__))

/* torch.nn.TransformerEncoderLayer(int d_model, int nhead, int dim_feedforward=2048, float
 *     dropout=0.1, str activation='relu', float layer_norm_eps=1e-05, bool batch_first=False,
 *     bool norm_first=False, bool bias=True, *, ScalarType? dtype=None) */
typedef struct cfx_nn_transformer_encoder_layer_args { cfx_var dim_feedforward, dropout,
        activation, layer_norm_eps, batch_first, norm_first, bias, dtype; }
        cfx_nn_transformer_encoder_layer_args;
static inline cfx_module *cfx_nn_transformer_encoder_layer_at(cfx_at at, cfx_var d_model, cfx_var
        nhead, cfx_nn_transformer_encoder_layer_args o)
{
    const cfx_var args[] = {d_model, nhead, o.dim_feedforward, o.dropout, o.activation,
        o.layer_norm_eps, o.batch_first, o.norm_first, o.bias, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_TransformerEncoderLayer, args, 10);
}
#define cfx_nn_transformer_encoder_layer(s, d_model, nhead, ...)                                   \
    cfx_nn_transformer_encoder_layer_at(CFX_HERE(s), cfx_v(d_model), cfx_v(nhead),                 \
        CFX_OPTIONS(cfx_nn_transformer_encoder_layer_args, __VA_ARGS__))

/* torch.nn.TransformerDecoderLayer(int d_model, int nhead, int dim_feedforward=2048, float
 *     dropout=0.1, str activation='relu', float layer_norm_eps=1e-05, bool batch_first=False,
 *     bool norm_first=False, bool bias=True, *, ScalarType? dtype=None) */
typedef struct cfx_nn_transformer_decoder_layer_args { cfx_var dim_feedforward, dropout,
        activation, layer_norm_eps, batch_first, norm_first, bias, dtype; }
        cfx_nn_transformer_decoder_layer_args;
static inline cfx_module *cfx_nn_transformer_decoder_layer_at(cfx_at at, cfx_var d_model, cfx_var
        nhead, cfx_nn_transformer_decoder_layer_args o)
{
    const cfx_var args[] = {d_model, nhead, o.dim_feedforward, o.dropout, o.activation,
        o.layer_norm_eps, o.batch_first, o.norm_first, o.bias, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_TransformerDecoderLayer, args, 10);
}
#define cfx_nn_transformer_decoder_layer(s, d_model, nhead, ...)                                   \
    cfx_nn_transformer_decoder_layer_at(CFX_HERE(s), cfx_v(d_model), cfx_v(nhead),                 \
        CFX_OPTIONS(cfx_nn_transformer_decoder_layer_args, __VA_ARGS__))

/* torch.nn.Transformer(int d_model=512, int nhead=8, int num_encoder_layers=6, int
 *     num_decoder_layers=6, int dim_feedforward=2048, float dropout=0.1, str activation='relu',
 *     Module? custom_encoder=None, Module? custom_decoder=None, float layer_norm_eps=1e-05, bool
 *     batch_first=False, bool norm_first=False, bool bias=True, *, ScalarType? dtype=None) */
typedef struct cfx_nn_transformer_args { cfx_var d_model, nhead, num_encoder_layers,
        num_decoder_layers, dim_feedforward, dropout, activation, custom_encoder, custom_decoder,
        layer_norm_eps, batch_first, norm_first, bias, dtype; } cfx_nn_transformer_args;
static inline cfx_module *cfx_nn_transformer_at(cfx_at at, cfx_nn_transformer_args o)
{
    const cfx_var args[] = {o.d_model, o.nhead, o.num_encoder_layers, o.num_decoder_layers,
        o.dim_feedforward, o.dropout, o.activation, o.custom_encoder, o.custom_decoder,
        o.layer_norm_eps, o.batch_first, o.norm_first, o.bias, o.dtype};
    return cfx_nn_make_at(at, CFX_NN_Transformer, args, 14);
}
#define cfx_nn_transformer(s, ...)                                                                 \
    cfx_nn_transformer_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_transformer_args, __VA_ARGS__))

/* torch.nn.L1Loss(bool? size_average=None, bool? reduce=None, str reduction='mean') */
typedef struct cfx_nn_l1_loss_args { cfx_var size_average, reduce, reduction; }
        cfx_nn_l1_loss_args;
static inline cfx_module *cfx_nn_l1_loss_at(cfx_at at, cfx_nn_l1_loss_args o)
{
    const cfx_var args[] = {o.size_average, o.reduce, o.reduction};
    return cfx_nn_make_at(at, CFX_NN_L1Loss, args, 3);
}
#define cfx_nn_l1_loss(s, ...)                                                                     \
    cfx_nn_l1_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_l1_loss_args, __VA_ARGS__))

/* torch.nn.MSELoss(bool? size_average=None, bool? reduce=None, str reduction='mean') */
typedef struct cfx_nn_mse_loss_args { cfx_var size_average, reduce, reduction; }
        cfx_nn_mse_loss_args;
static inline cfx_module *cfx_nn_mse_loss_at(cfx_at at, cfx_nn_mse_loss_args o)
{
    const cfx_var args[] = {o.size_average, o.reduce, o.reduction};
    return cfx_nn_make_at(at, CFX_NN_MSELoss, args, 3);
}
#define cfx_nn_mse_loss(s, ...)                                                                    \
    cfx_nn_mse_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_mse_loss_args, __VA_ARGS__))

/* torch.nn.SmoothL1Loss(bool? size_average=None, bool? reduce=None, str reduction='mean', float
 *     beta=1.0) */
typedef struct cfx_nn_smooth_l1_loss_args { cfx_var size_average, reduce, reduction, beta; }
        cfx_nn_smooth_l1_loss_args;
static inline cfx_module *cfx_nn_smooth_l1_loss_at(cfx_at at, cfx_nn_smooth_l1_loss_args o)
{
    const cfx_var args[] = {o.size_average, o.reduce, o.reduction, o.beta};
    return cfx_nn_make_at(at, CFX_NN_SmoothL1Loss, args, 4);
}
#define cfx_nn_smooth_l1_loss(s, ...)                                                              \
    cfx_nn_smooth_l1_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_smooth_l1_loss_args,                  \
        __VA_ARGS__))

/* torch.nn.HuberLoss(str reduction='mean', float delta=1.0) */
typedef struct cfx_nn_huber_loss_args { cfx_var reduction, delta; } cfx_nn_huber_loss_args;
static inline cfx_module *cfx_nn_huber_loss_at(cfx_at at, cfx_nn_huber_loss_args o)
{
    const cfx_var args[] = {o.reduction, o.delta};
    return cfx_nn_make_at(at, CFX_NN_HuberLoss, args, 2);
}
#define cfx_nn_huber_loss(s, ...)                                                                  \
    cfx_nn_huber_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_huber_loss_args, __VA_ARGS__))

/* torch.nn.CrossEntropyLoss(Tensor? weight=None, bool? size_average=None, int ignore_index=-100,
 *     bool? reduce=None, str reduction='mean', float label_smoothing=0.0) */
typedef struct cfx_nn_cross_entropy_loss_args { cfx_var weight, size_average, ignore_index, reduce,
        reduction, label_smoothing; } cfx_nn_cross_entropy_loss_args;
static inline cfx_module *cfx_nn_cross_entropy_loss_at(cfx_at at, cfx_nn_cross_entropy_loss_args o)
{
    const cfx_var args[] = {o.weight, o.size_average, o.ignore_index, o.reduce, o.reduction,
        o.label_smoothing};
    return cfx_nn_make_at(at, CFX_NN_CrossEntropyLoss, args, 6);
}
#define cfx_nn_cross_entropy_loss(s, ...)                                                          \
    cfx_nn_cross_entropy_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_cross_entropy_loss_args,          \
        __VA_ARGS__))

/* torch.nn.NLLLoss(Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool?
 *     reduce=None, str reduction='mean') */
typedef struct cfx_nn_nll_loss_args { cfx_var weight, size_average, ignore_index, reduce,
        reduction; } cfx_nn_nll_loss_args;
static inline cfx_module *cfx_nn_nll_loss_at(cfx_at at, cfx_nn_nll_loss_args o)
{
    const cfx_var args[] = {o.weight, o.size_average, o.ignore_index, o.reduce, o.reduction};
    return cfx_nn_make_at(at, CFX_NN_NLLLoss, args, 5);
}
#define cfx_nn_nll_loss(s, ...)                                                                    \
    cfx_nn_nll_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_nll_loss_args, __VA_ARGS__))

/* torch.nn.BCELoss(Tensor? weight=None, bool? size_average=None, bool? reduce=None, str
 *     reduction='mean') */
typedef struct cfx_nn_bce_loss_args { cfx_var weight, size_average, reduce, reduction; }
        cfx_nn_bce_loss_args;
static inline cfx_module *cfx_nn_bce_loss_at(cfx_at at, cfx_nn_bce_loss_args o)
{
    const cfx_var args[] = {o.weight, o.size_average, o.reduce, o.reduction};
    return cfx_nn_make_at(at, CFX_NN_BCELoss, args, 4);
}
#define cfx_nn_bce_loss(s, ...)                                                                    \
    cfx_nn_bce_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_bce_loss_args, __VA_ARGS__))

/* torch.nn.BCEWithLogitsLoss(Tensor? weight=None, bool? size_average=None, bool? reduce=None,
 *     str reduction='mean', Tensor? pos_weight=None) */
typedef struct cfx_nn_bce_with_logits_loss_args { cfx_var weight, size_average, reduce, reduction,
        pos_weight; } cfx_nn_bce_with_logits_loss_args;
static inline cfx_module *cfx_nn_bce_with_logits_loss_at(cfx_at at,
        cfx_nn_bce_with_logits_loss_args o)
{
    const cfx_var args[] = {o.weight, o.size_average, o.reduce, o.reduction, o.pos_weight};
    return cfx_nn_make_at(at, CFX_NN_BCEWithLogitsLoss, args, 5);
}
#define cfx_nn_bce_with_logits_loss(s, ...)                                                        \
    cfx_nn_bce_with_logits_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_bce_with_logits_loss_args,      \
        __VA_ARGS__))

/* torch.nn.KLDivLoss(bool? size_average=None, bool? reduce=None, str reduction='mean', bool
 *     log_target=False) */
typedef struct cfx_nn_kl_div_loss_args { cfx_var size_average, reduce, reduction, log_target; }
        cfx_nn_kl_div_loss_args;
static inline cfx_module *cfx_nn_kl_div_loss_at(cfx_at at, cfx_nn_kl_div_loss_args o)
{
    const cfx_var args[] = {o.size_average, o.reduce, o.reduction, o.log_target};
    return cfx_nn_make_at(at, CFX_NN_KLDivLoss, args, 4);
}
#define cfx_nn_kl_div_loss(s, ...)                                                                 \
    cfx_nn_kl_div_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_kl_div_loss_args, __VA_ARGS__))

/* torch.nn.PoissonNLLLoss(bool log_input=True, bool full=False, bool? size_average=None, float
 *     eps=1e-08, bool? reduce=None, str reduction='mean') */
typedef struct cfx_nn_poisson_nll_loss_args { cfx_var log_input, full, size_average, eps, reduce,
        reduction; } cfx_nn_poisson_nll_loss_args;
static inline cfx_module *cfx_nn_poisson_nll_loss_at(cfx_at at, cfx_nn_poisson_nll_loss_args o)
{
    const cfx_var args[] = {o.log_input, o.full, o.size_average, o.eps, o.reduce, o.reduction};
    return cfx_nn_make_at(at, CFX_NN_PoissonNLLLoss, args, 6);
}
#define cfx_nn_poisson_nll_loss(s, ...)                                                            \
    cfx_nn_poisson_nll_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_poisson_nll_loss_args,              \
        __VA_ARGS__))

/* torch.nn.CTCLoss(int blank=0, str reduction='mean', bool zero_infinity=False) */
typedef struct cfx_nn_ctc_loss_args { cfx_var blank, reduction, zero_infinity; }
        cfx_nn_ctc_loss_args;
static inline cfx_module *cfx_nn_ctc_loss_at(cfx_at at, cfx_nn_ctc_loss_args o)
{
    const cfx_var args[] = {o.blank, o.reduction, o.zero_infinity};
    return cfx_nn_make_at(at, CFX_NN_CTCLoss, args, 3);
}
#define cfx_nn_ctc_loss(s, ...)                                                                    \
    cfx_nn_ctc_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_ctc_loss_args, __VA_ARGS__))

/* torch.nn.HingeEmbeddingLoss(float margin=1.0, bool? size_average=None, bool? reduce=None, str
 *     reduction='mean') */
typedef struct cfx_nn_hinge_embedding_loss_args { cfx_var margin, size_average, reduce, reduction;
        } cfx_nn_hinge_embedding_loss_args;
static inline cfx_module *cfx_nn_hinge_embedding_loss_at(cfx_at at,
        cfx_nn_hinge_embedding_loss_args o)
{
    const cfx_var args[] = {o.margin, o.size_average, o.reduce, o.reduction};
    return cfx_nn_make_at(at, CFX_NN_HingeEmbeddingLoss, args, 4);
}
#define cfx_nn_hinge_embedding_loss(s, ...)                                                        \
    cfx_nn_hinge_embedding_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_hinge_embedding_loss_args,      \
        __VA_ARGS__))

/* torch.nn.CosineEmbeddingLoss(float margin=0.0, bool? size_average=None, bool? reduce=None, str
 *     reduction='mean') */
typedef struct cfx_nn_cosine_embedding_loss_args { cfx_var margin, size_average, reduce, reduction;
        } cfx_nn_cosine_embedding_loss_args;
static inline cfx_module *cfx_nn_cosine_embedding_loss_at(cfx_at at,
        cfx_nn_cosine_embedding_loss_args o)
{
    const cfx_var args[] = {o.margin, o.size_average, o.reduce, o.reduction};
    return cfx_nn_make_at(at, CFX_NN_CosineEmbeddingLoss, args, 4);
}
#define cfx_nn_cosine_embedding_loss(s, ...)                                                       \
    cfx_nn_cosine_embedding_loss_at(CFX_HERE(s),                                                   \
        CFX_OPTIONS(cfx_nn_cosine_embedding_loss_args, __VA_ARGS__))

/* torch.nn.MarginRankingLoss(float margin=0.0, bool? size_average=None, bool? reduce=None, str
 *     reduction='mean') */
typedef struct cfx_nn_margin_ranking_loss_args { cfx_var margin, size_average, reduce, reduction; }
        cfx_nn_margin_ranking_loss_args;
static inline cfx_module *cfx_nn_margin_ranking_loss_at(cfx_at at, cfx_nn_margin_ranking_loss_args
        o)
{
    const cfx_var args[] = {o.margin, o.size_average, o.reduce, o.reduction};
    return cfx_nn_make_at(at, CFX_NN_MarginRankingLoss, args, 4);
}
#define cfx_nn_margin_ranking_loss(s, ...)                                                         \
    cfx_nn_margin_ranking_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_margin_ranking_loss_args,        \
        __VA_ARGS__))

/* torch.nn.MultiLabelMarginLoss(bool? size_average=None, bool? reduce=None, str
 *     reduction='mean') */
typedef struct cfx_nn_multilabel_margin_loss_args { cfx_var size_average, reduce, reduction; }
        cfx_nn_multilabel_margin_loss_args;
static inline cfx_module *cfx_nn_multilabel_margin_loss_at(cfx_at at,
        cfx_nn_multilabel_margin_loss_args o)
{
    const cfx_var args[] = {o.size_average, o.reduce, o.reduction};
    return cfx_nn_make_at(at, CFX_NN_MultiLabelMarginLoss, args, 3);
}
#define cfx_nn_multilabel_margin_loss(s, ...)                                                      \
    cfx_nn_multilabel_margin_loss_at(CFX_HERE(s),                                                  \
        CFX_OPTIONS(cfx_nn_multilabel_margin_loss_args, __VA_ARGS__))

/* torch.nn.SoftMarginLoss(bool? size_average=None, bool? reduce=None, str reduction='mean') */
typedef struct cfx_nn_soft_margin_loss_args { cfx_var size_average, reduce, reduction; }
        cfx_nn_soft_margin_loss_args;
static inline cfx_module *cfx_nn_soft_margin_loss_at(cfx_at at, cfx_nn_soft_margin_loss_args o)
{
    const cfx_var args[] = {o.size_average, o.reduce, o.reduction};
    return cfx_nn_make_at(at, CFX_NN_SoftMarginLoss, args, 3);
}
#define cfx_nn_soft_margin_loss(s, ...)                                                            \
    cfx_nn_soft_margin_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_soft_margin_loss_args,              \
        __VA_ARGS__))

/* torch.nn.TripletMarginLoss(float margin=1.0, float p=2.0, float eps=1e-06, bool swap=False,
 *     bool? size_average=None, bool? reduce=None, str reduction='mean') */
typedef struct cfx_nn_triplet_margin_loss_args { cfx_var margin, p, eps, swap, size_average,
        reduce, reduction; } cfx_nn_triplet_margin_loss_args;
static inline cfx_module *cfx_nn_triplet_margin_loss_at(cfx_at at, cfx_nn_triplet_margin_loss_args
        o)
{
    const cfx_var args[] = {o.margin, o.p, o.eps, o.swap, o.size_average, o.reduce, o.reduction};
    return cfx_nn_make_at(at, CFX_NN_TripletMarginLoss, args, 7);
}
#define cfx_nn_triplet_margin_loss(s, ...)                                                         \
    cfx_nn_triplet_margin_loss_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_triplet_margin_loss_args,        \
        __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
