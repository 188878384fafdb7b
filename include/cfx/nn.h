/* nn.h - the classes of torch.nn that C programs can make: a table, nn.def.
 *
 * A row has the class's constructor as PyTorch declares it. It is all that is needed to make such a
 * module in C (layers.h), and to write the constructor's call for one that is there: what was
 * passed is what its attributes of the same names are.
 */
#ifndef CFX_NN_H
#define CFX_NN_H

#include <cfx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cfx_nn {
    CFX_NN_NONE,  /* not in the table */
#define CFX_NN(name, function, schema, make) CFX_NN_##name,
#include <cfx/nn.def>
#undef CFX_NN
    CFX_NN_COUNT
} cfx_nn;

CFX_API cfx_nn cfx_nn_find(const char *name);              /* "torch.nn.Linear" or "Linear" */
CFX_API const char *cfx_nn_name(cfx_nn nn);                /* "Linear"; NULL for NONE */
CFX_API const char *cfx_nn_function(cfx_nn nn);            /* "linear", for cfx_nn_linear */
CFX_API const char *cfx_nn_schema(cfx_nn nn);
CFX_API bool cfx_nn_param(cfx_nn nn, size_t i, cfx_schema_param *param);  /* false past the last */

/* What the constructor of the module at `path` was given: calls `fn` for each parameter that is not
 * its default, in order; `keyword` tells that one before it was left out, or that it must be one.
 * Values are valid during the call; a bias is a bool, whatever the attribute is; a tensor (the
 * weight of a loss) is a HOST value: the buffer of that name; a module (of the type "Module") is a
 * STR, where it is below `path`, of a stack of copies ("layers.0") the first. CFX_E_TYPE if the
 * class is not in the table, holds other modules (Sequential), or the module was changed so that
 * no call makes it. */
typedef cfx_status cfx_nn_arg_fn(void *ctx, const cfx_schema_param *param, bool keyword,
                                 cfx_value v, cfx_error *err);
CFX_API cfx_status cfx_nn_each_arg(const cfx_module_tree *modules, cfx_graph *g, const char *path,
                                   cfx_nn nn, cfx_nn_arg_fn *fn, void *ctx, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
