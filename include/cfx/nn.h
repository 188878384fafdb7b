/* nn.h - the classes of torch.nn that C programs can create. nn.def lists them with their
 * constructors; layers.h has a function for each.
 */
#ifndef CFX_NN_H
#define CFX_NN_H

#include <cfx/base.h>

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

#ifdef __cplusplus
}
#endif
#endif
