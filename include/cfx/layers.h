/* layers.h - a function for each class of torch.nn; made by tools/c_api.py.
 *
 * Each makes a module of torch.nn, with its parameters initialised as PyTorch initialises them,
 * from the scope's random numbers. Arguments as in operators.h; the attributes have the same
 * names.
 */
#ifndef CFX_LAYERS_H
#define CFX_LAYERS_H

#include <cfx/capture.h>
#include <cfx/nn.h>

#ifdef __cplusplus
extern "C" {
#else
#pragma GCC system_header /* see scope.h */
#endif


/* Makes a module of the class: `args` are by the constructor's parameters; empty ones have
 * their defaults. NULL, and the scope fails. */
CFX_API cfx_module *cfx_nn_make_at(cfx_at at, cfx_nn nn, const cfx_var *args, size_t n);

/* torch.nn.Identity() */
static inline cfx_module *cfx_nn_identity_at(cfx_at at)
{
    return cfx_nn_make_at(at, CFX_NN_Identity, NULL, 0);
}
#define cfx_nn_identity(s) cfx_nn_identity_at(CFX_HERE(s))

/* torch.nn.Linear(int in_features, int out_features, bool bias=True) */
typedef struct cfx_nn_linear_args { cfx_var bias; } cfx_nn_linear_args;
static inline cfx_module *cfx_nn_linear_at(cfx_at at, cfx_var in_features, cfx_var out_features,
        cfx_nn_linear_args o)
{
    const cfx_var args[] = {in_features, out_features, o.bias};
    return cfx_nn_make_at(at, CFX_NN_Linear, args, 3);
}
#define cfx_nn_linear(s, in_features, out_features, ...)                                           \
    cfx_nn_linear_at(CFX_HERE(s), cfx_v(in_features), cfx_v(out_features),                         \
        CFX_OPTIONS(cfx_nn_linear_args, __VA_ARGS__))

/* torch.nn.ReLU(bool inplace=False) */
typedef struct cfx_nn_relu_args { cfx_var inplace; } cfx_nn_relu_args;
static inline cfx_module *cfx_nn_relu_at(cfx_at at, cfx_nn_relu_args o)
{
    const cfx_var args[] = {o.inplace};
    return cfx_nn_make_at(at, CFX_NN_ReLU, args, 1);
}
#define cfx_nn_relu(s, ...) cfx_nn_relu_at(CFX_HERE(s), CFX_OPTIONS(cfx_nn_relu_args, __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
